/* SPDX-License-Identifier: BSD-3-Clause */
/* The residual, cpu_dp/residual_kernels.c, beside quadruple precision: its
   error bounds, with every instruction set of this processor and any number of
   threads, and NaN and Inf. Right-hand sides 3 to 8 are the first three times a
   power of two, so that three exact residuals serve for nine.

   Next to read: test_scale.c, for the pass before the factorization. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/engine.h"
#include "cpu_dp/residual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

enum { COLUMNS = 9, EXACT = 3 };

typedef struct problem {
  int64_t n;
  hone_dense a;            /* the padding below row n is NaN */
  hone_matrix matrix;      /* the matrix as the pass reads it */
  double *store;           /* the array behind a */
  double *x, *b;           /* n x COLUMNS */
  quad *r, *den;           /* n x EXACT: exact values for op(A) */
  double *out_r, *out_den; /* n x COLUMNS: results of the pass */
} problem;

static quad quad_abs(quad v) { return v < 0 ? -v : v; }

static double entry(const problem *p, bool trans, int64_t i, int64_t j) {
  return trans ? p->store[j + i * p->a.lda] : p->store[i + j * p->a.lda];
}

/* The exact residuals of the present a, x and b; the other columns are made
   from the first three. */
static void set_exact(problem *p, bool trans) {
  const int64_t n = p->n;
  for (int64_t c = EXACT; c < COLUMNS; c++)
    for (int64_t i = 0; i < n; i++) {
      p->x[i + c * n] = ldexp(p->x[i + c % EXACT * n], (int)c);
      p->b[i + c * n] = ldexp(p->b[i + c % EXACT * n], (int)c);
    }
  for (int64_t c = 0; c < EXACT; c++)
    for (int64_t i = 0; i < n; i++) {
      quad r = (quad)p->b[i + c * n], den = quad_abs(r);
      for (int64_t j = 0; j < n; j++) {
        quad t = (quad)entry(p, trans, i, j) * (quad)p->x[j + c * n];
        r -= t;
        den += quad_abs(t);
      }
      p->r[i + c * n] = r;
      p->den[i + c * n] = den;
    }
}

/* Random entries; with wide, their exponents are from -40 to 40. */
static void fill(sup_rng *rng, int64_t count, bool wide, double *v) {
  for (int64_t i = 0; i < count; i++) {
    v[i] = sup_uniform(rng);
    if (wide)
      v[i] = ldexp(v[i], (int)(80.0 * sup_uniform(rng)));
  }
}

static void make_problem(problem *p, int64_t n, int64_t pad, bool wide) {
  sup_rng rng = {(uint64_t)(1000 * n + wide)};
  const int64_t lda = n + pad;
  *p = (problem){.n = n, .store = sup_filled(lda * n, (double)NAN)};
  p->a = (hone_dense){n, lda, p->store, NULL, false, 0};
  p->matrix = hone_dense_matrix(&p->a);
  for (int64_t j = 0; j < n; j++)
    fill(&rng, n, wide, p->store + j * lda);
  p->x = sup_filled(n * COLUMNS, 0.0);
  p->b = sup_filled(n * COLUMNS, 0.0);
  fill(&rng, n * EXACT, wide, p->x);
  fill(&rng, n * EXACT, wide, p->b);
  p->r = calloc((size_t)(n * EXACT), sizeof *p->r);
  p->den = calloc((size_t)(n * EXACT), sizeof *p->den);
  if (p->r == NULL || p->den == NULL)
    abort();
  p->out_r = sup_filled(n * COLUMNS, (double)NAN);
  p->out_den = sup_filled(n * COLUMNS, (double)NAN);
}

static void free_problem(problem *p) {
  sup_free(p->store);
  sup_free(p->x);
  sup_free(p->b);
  sup_free(p->out_r);
  sup_free(p->out_den);
  free(p->r);
  free(p->den);
}

/* The arguments of a pass and the arrays of pointers in them. */
typedef struct described {
  const double *x[COLUMNS], *b[COLUMNS];
  double *r[COLUMNS], *den[COLUMNS];
  hone_residual_job pass;
} described;

static void describe(described *d, const problem *p, bool trans, bool accurate,
                     int64_t k) {
  for (int64_t c = 0; c < k; c++) {
    d->x[c] = p->x + c * p->n;
    d->b[c] = p->b + c * p->n;
    d->r[c] = p->out_r + c * p->n;
    d->den[c] = p->out_den + c * p->n;
  }
  d->pass = (hone_residual_job){&p->matrix, trans, accurate, k,
                                d->x,       d->b,  d->r,     d->den};
}

static void run(hone_pool *pool, const problem *p, bool trans, bool accurate,
                int64_t k) {
  described d;
  describe(&d, p, trans, accurate, k);
  hone_dense_residual(&d.pass, pool);
}

/* The errors of k columns as multiples of their bounds.

   Plain: n products and n + 1 terms with one rounding for each fused operation;
   (n + 2) eps den covers any order of summation.

   Accurate: eps |r| for the final rounding and hone_pair_terms(n) eps^2 den.

   den: n + 1 roundings of terms of one sign. */
static void worst_errors(const problem *p, bool accurate, int64_t k,
                         double *worst_r, double *worst_den) {
  const double eps = SUP_EPS, m = (double)p->n + 2.0;
  *worst_r = *worst_den = 0.0;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < p->n; i++) {
      const quad up = (quad)ldexp(1.0, c < EXACT ? 0 : (int)c);
      quad r = up * (quad)p->r[i + c % EXACT * p->n];
      quad den = up * (quad)p->den[i + c % EXACT * p->n];
      const quad u = (quad)(eps * 1.001), terms = (quad)m;
      const quad pairs = (quad)(double)hone_pair_terms(p->n);
      quad bound = accurate ? u * quad_abs(r) + pairs * u * u * den
                            : terms * (quad)eps * den;
      quad e_r = quad_abs((quad)p->out_r[i + c * p->n] - r) / bound;
      quad e_den = quad_abs((quad)p->out_den[i + c * p->n] - den) /
                   ((terms - (quad)1) * (quad)eps * den);
      if (!(e_r <= (quad)*worst_r)) /* also NaN */
        *worst_r = isnan(*worst_r) ? *worst_r : (double)e_r;
      if (!(e_den <= (quad)*worst_den))
        *worst_den = isnan(*worst_den) ? *worst_den : (double)e_den;
    }
}

static void check_errors(const problem *p, bool accurate, int64_t k) {
  double worst_r, worst_den;
  worst_errors(p, accurate, k, &worst_r, &worst_den);
  CHECK_LE(worst_r, 1.0);
  CHECK_LE(worst_den, 1.0);
}

static void check_order(int64_t n, int64_t pad, bool wide, int64_t k_step) {
  problem p;
  make_problem(&p, n, pad, wide);
  for (int trans = 0; trans < 2; trans++) {
    set_exact(&p, trans);
    for (int accurate = 0; accurate < 2; accurate++)
      for (int64_t k = 1; k <= COLUMNS; k += k_step) {
        ct_note("n = %d, trans %d, accurate %d, k = %d, wide %d", (int)n, trans,
                accurate, (int)k, wide);
        for (int64_t i = 0; i < n * COLUMNS; i++)
          p.out_r[i] = p.out_den[i] = (double)NAN;
        run(NULL, &p, trans, accurate, k);
        check_errors(&p, accurate, k);
        CHECK(sup_untouched(p.out_r + k * n, (COLUMNS - k) * n, (double)NAN));
        CHECK(sup_untouched(p.out_den + k * n, (COLUMNS - k) * n, (double)NAN));
      }
  }
  free_problem(&p);
}

/* Products that lie just below half a unit of the running sum, 1.5, so that all
   of them go to the sum of rounding errors; their last bits have that one round
   to the same side each time. The last product cancels the 1.5. */
static void make_agree(problem *p) {
  const int64_t n = p->n;
  int64_t mod = 1;
  while (2 * mod <= 2 * (n - 1))
    mod *= 2;
  sup_rng rng = {5};
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const double v = 1.975 + 0.03 * sup_uniform(&rng);
      const int64_t leading = (int64_t)(v * 0x1p52) / mod * mod;
      const int64_t last = mod / 2 + (i % 2 == 0 ? -1 : 1);
      p->store[i + j * p->a.lda] =
          j < n - 1 ? (double)(leading + last) * 0x1p-52 : 1.5;
    }
  for (int64_t c = 0; c < EXACT; c++)
    for (int64_t j = 0; j < n; j++) {
      p->x[j + c * n] = j < n - 1 ? 0x1p-54 : 1.0;
      p->b[j + c * n] = 1.5;
    }
}

TEST(residual, keeps_its_error_bounds_where_all_roundings_agree) {
  for (int64_t n = 2; n <= 2000; n = n < 80 ? n + 1 : n * 2) {
    problem p;
    make_problem(&p, n, 1, false);
    make_agree(&p);
    for (int trans = 0; trans < 2; trans++) {
      ct_note("n = %d, trans %d", (int)n, trans);
      set_exact(&p, trans);
      run(NULL, &p, trans, true, COLUMNS);
      check_errors(&p, true, COLUMNS);
    }
    free_problem(&p);
  }
}

TEST(residual, keeps_its_error_bounds_at_small_orders) {
  for (int64_t n = 1; n <= 70; n++)
    check_order(n, n % 4, n % 2 == 0, 1);
}

TEST(residual, keeps_its_error_bounds_around_blocks_of_256_rows) {
  for (int64_t n = 255; n <= 260; n++)
    check_order(n, n % 3, n % 2 == 0, 4);
}

TEST(residual, keeps_its_error_bounds_around_blocks_of_512_rows) {
  for (int64_t n = 511; n <= 515; n++)
    check_order(n, 515 - n, n % 2 == 0, 4);
}

TEST(residual, keeps_its_error_bounds_at_order_1000) {
  check_order(1000, 3, false, 4);
}

/* Columns (for A^T, rows) come in pairs v, -v far apart: partial sums grow to
   den, and all but b cancels, so that r = b exactly. */
TEST(residual, keeps_a_residual_20_digits_below_the_products) {
  const int64_t n = 256, half = n / 2;
  for (int trans = 0; trans < 2; trans++) {
    problem p;
    make_problem(&p, n, 1, false);
    for (int64_t j = 0; j < half; j++) {
      for (int64_t i = 0; i < n; i++) {
        int64_t at = trans ? j + i * p.a.lda : i + j * p.a.lda;
        int64_t twin = trans ? at + half : at + half * p.a.lda;
        p.store[twin] = -p.store[at];
      }
      for (int64_t c = 0; c < EXACT; c++)
        p.x[half + j + c * n] = p.x[j + c * n];
    }
    for (int64_t i = 0; i < n * EXACT; i++)
      p.b[i] *= 1e-20;
    set_exact(&p, trans);
    run(NULL, &p, trans, true, COLUMNS);
    check_errors(&p, true, COLUMNS);
    for (int64_t i = 0; i < n * COLUMNS; i++)
      CHECK_NEAR(p.out_r[i], p.b[i], 1e-25 * ldexp(1.0, (int)(i / n)));
    free_problem(&p);
  }
}

/* Instruction sets --------------------------------------------------------- */

static int kernels_here(const hone_residual_kernels **list) {
  int count = 0;
  list[count++] = &hone_residual_base;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    list[count++] = &hone_residual_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    list[count++] = &hone_residual_avx512;
#endif
  return count;
}

/* Passes over pieces of step rows (for A^T, columns), with four right-hand
   sides. */
static void run_pieces(const hone_residual_kernels *kernels, const problem *p,
                       bool trans, bool accurate, int64_t step) {
  described d;
  describe(&d, p, trans, accurate, HONE_RESIDUAL_COLUMNS);
  for (int64_t m = 0; m < HONE_RESIDUAL_COLUMNS; m += 3)
    for (int64_t i = 0; i < p->n; i += step)
      (trans ? kernels->columns : kernels->rows)(
          &d.pass, m, HONE_MIN((int64_t)3, HONE_RESIDUAL_COLUMNS - m), i,
          HONE_MIN(i + step, p->n));
}

TEST(residual, keeps_its_error_bounds_with_every_instruction_set_and_piece) {
  static const int64_t orders[] = {1, 3, 17, 64, 515};
  const hone_residual_kernels *list[3];
  const int count = kernels_here(list);
  for (int at = 0; at < 5 * 4; at++) {
    const bool trans = at & 1, accurate = at & 2;
    problem p;
    make_problem(&p, orders[at / 4], 2, true);
    set_exact(&p, trans);
    const int64_t values = p.n * HONE_RESIDUAL_COLUMNS;
    for (int k = 0; k < count; k++) {
      ct_note("%s, n = %d, trans %d, accurate %d", list[k]->isa, (int)p.n,
              trans, accurate);
      run_pieces(list[k], &p, trans, accurate, p.n);
      check_errors(&p, accurate, HONE_RESIDUAL_COLUMNS);
      double *r = sup_copy(p.out_r, values), *den = sup_copy(p.out_den, values);
      run_pieces(list[k], &p, trans, accurate, 37);
      CHECK_MEM_EQ(p.out_r, r, (size_t)values * sizeof *r);
      CHECK_MEM_EQ(p.out_den, den, (size_t)values * sizeof *den);
      sup_free(r);
      sup_free(den);
    }
    free_problem(&p);
  }
}

TEST(residual, is_computed_by_an_instruction_set_this_processor_has) {
  const hone_residual_kernels *list[3];
  const int count = kernels_here(list);
  CHECK_STR(hone_residual_isa(), list[count - 1]->isa);
  CHECK_STR(hone_residual_base.isa, "base");
}

/* Threads ------------------------------------------------------------------ */

static void expect_same_bits(const problem *p, bool trans, bool accurate,
                             int threads) {
  const size_t bytes = (size_t)(p->n * COLUMNS) * sizeof(double);
  hone_mem mem = {0};
  hone_pool *pool;
  run(NULL, p, trans, accurate, COLUMNS);
  double *r = sup_copy(p->out_r, p->n * COLUMNS);
  double *den = sup_copy(p->out_den, p->n * COLUMNS);
  hone_pool_create(&pool, &mem, threads);
  CHECK_EQ_INT(hone_pool_threads(pool), threads);
  run(pool, p, trans, accurate, COLUMNS);
  CHECK_MEM_EQ(p->out_r, r, bytes);
  CHECK_MEM_EQ(p->out_den, den, bytes);
  hone_pool_destroy(&pool, &mem);
  CHECK_EQ_INT(mem.held, 0);
  sup_free(r);
  sup_free(den);
}

TEST(residual, has_the_same_bits_with_any_number_of_threads) {
  static const int64_t orders[] = {63, 399, 400, 401, 515, 1000};
  static const int threads[] = {1, 2, 3, 5};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
    problem p;
    make_problem(&p, orders[o], 1, true);
    set_exact(&p, false);
    for (int at = 0; at < 4 * 4; at++) {
      ct_note("n = %d, %d threads, trans %d, accurate %d", (int)p.n,
              threads[at / 4], at & 1, at & 2);
      expect_same_bits(&p, at & 1, at & 2, threads[at / 4]);
    }
    free_problem(&p);
  }
}

TEST(residual, may_overwrite_the_right_hand_side) {
  static const int64_t orders[] = {1, 70, 515};
  for (int at = 0; at < 3 * 4; at++) {
    const bool trans = at & 1, accurate = at & 2;
    problem p;
    described d;
    make_problem(&p, orders[at / 4], 1, false);
    const int64_t values = p.n * COLUMNS;
    set_exact(&p, trans);
    run(NULL, &p, trans, accurate, COLUMNS);
    double *r = sup_copy(p.out_r, values), *den = sup_copy(p.out_den, values);
    memcpy(p.out_r, p.b, (size_t)values * sizeof *p.b);
    describe(&d, &p, trans, accurate, COLUMNS);
    for (int c = 0; c < COLUMNS; c++)
      d.b[c] = d.r[c];
    hone_dense_residual(&d.pass, NULL);
    CHECK_MEM_EQ(p.out_r, r, (size_t)values * sizeof *r);
    CHECK_MEM_EQ(p.out_den, den, (size_t)values * sizeof *den);
    sup_free(r);
    sup_free(den);
    free_problem(&p);
  }
}

/* Special numbers ---------------------------------------------------------- */

TEST(residual, is_b_exactly_where_x_is_zero) {
  for (int at = 0; at < 4; at++) {
    problem p;
    make_problem(&p, 37, 0, true);
    for (int64_t i = 0; i < p.n * COLUMNS; i++)
      p.x[i] = 0.0;
    run(NULL, &p, at & 1, at & 2, COLUMNS);
    for (int64_t i = 0; i < p.n * COLUMNS; i++) {
      CHECK_NEAR(p.out_r[i], p.b[i], 0.0);
      CHECK_NEAR(p.out_den[i], fabs(p.b[i]), 0.0);
    }
    free_problem(&p);
  }
}

TEST(residual, keeps_the_digits_of_products_of_huge_and_tiny_numbers) {
  for (int at = 0; at < 4; at++) {
    const bool trans = at & 1, accurate = at & 2;
    problem p;
    make_problem(&p, 37, 0, false);
    for (int64_t i = 0; i < p.n * p.n; i++)
      p.store[i] *= 1e300;
    for (int64_t i = 0; i < p.n * EXACT; i++)
      p.x[i] *= 1e-300;
    set_exact(&p, trans);
    ct_note("trans %d, accurate %d", trans, accurate);
    run(NULL, &p, trans, accurate, COLUMNS);
    check_errors(&p, accurate, COLUMNS);
    free_problem(&p);
  }
}

/* Row i of r must not be finite, and every other row must be. */
static void expect_bad_row(const problem *p, int64_t k, int64_t row) {
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < p->n; i++) {
      bool finite = isfinite(p->out_r[i + c * p->n]) &&
                    isfinite(p->out_den[i + c * p->n]);
      CHECK_EQ_INT(finite, row >= 0 && i != row);
    }
}

/* bad stands in A, where it spoils one row of r, then in x, where it spoils all
   of them, then in b. */
static void spoil(int64_t n, int64_t i, int64_t j, double bad, int at) {
  const bool trans = at & 1, accurate = at & 2;
  problem p;
  ct_note("n = %d, %g in (%d, %d), trans %d, accurate %d", (int)n, bad, (int)i,
          (int)j, trans, accurate);
  make_problem(&p, n, 1, false);
  double *where[] = {&p.store[i + j * p.a.lda], &p.x[j], &p.b[i]};
  const int64_t row[] = {trans ? j : i, -1, i};
  for (int w = 0; w < 3; w++) {
    double kept = *where[w];
    *where[w] = bad;
    run(NULL, &p, trans, accurate, 1);
    expect_bad_row(&p, 1, row[w]);
    *where[w] = kept;
  }
  free_problem(&p);
}

TEST(residual, never_hides_nan_or_infinity) {
  static const int64_t orders[] = {1, 5, 70, 515};
  for (int o = 0; o < 4; o++)
    for (int at = 0; at < 4; at++) {
      const int64_t n = orders[o];
      spoil(n, 0, 0, (double)NAN, at);
      spoil(n, n - 1, n - 1, (double)NAN, at);
      spoil(n, n / 2, n / 3, (double)NAN, at);
      spoil(n, n - 1, 0, (double)INFINITY, at);
      spoil(n, n / 3, n - 1, (double)-INFINITY, at);
    }
}

TEST(residual, never_hides_a_product_that_overflows) {
  for (int at = 0; at < 4; at++) {
    problem p;
    make_problem(&p, 70, 1, false);
    for (int64_t c = 0; c < COLUMNS; c++)
      p.x[c * p.n + 20] = 1e200;
    p.store[20 + 20 * p.a.lda] = -1e200;
    run(NULL, &p, at & 1, at & 2, COLUMNS);
    expect_bad_row(&p, COLUMNS, 20);
    free_problem(&p);
  }
}
