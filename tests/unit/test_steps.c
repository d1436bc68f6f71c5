/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals that follow the steps of x by matrix products, beside sums without
   rounding (GMP): their error bounds (docs/numerics.md) with every instruction
   set, for matrices made to break them, and the bits for any number of threads
   and columns. The tests are compiled for real and for complex entries. */
#include "cpu_dp/steps.h"
#include "refine/steps.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <float.h>
#include <gmp.h>
#include <math.h>
#include <string.h>

enum { BITS = 6000, MOST_COLUMNS = 13 };

/* ---- Systems ------------------------------------------------------------- */

typedef enum kind {
  UNIFORM,
  WIDE,       /* entries over 80 powers of two */
  ONE_HUGE,   /* one entry of every row is 2^60 times the others */
  ROWS,       /* rows of size 2^-250 to 2^250 */
  ENDS,       /* denormal entries beside those near 1 */
  FEW_BITS,   /* all ones, and the entries next to 1 */
  TINY_PARTS, /* vectors with entries down to 2^-200 */
  LARGE,      /* all multiplied by 2^200 */
  SMALL,      /* and by 2^-200 */
  KINDS
} kind;

typedef struct system {
  int64_t n, lda, k;
  hone_dense dense;
  hone_matrix matrix;
  hone_entry *a, *v, *b, *r, *low;
  double *den, *weight;
  double size[MOST_COLUMNS];
} system;

static double draw_part(sup_rng *rng, kind what, int64_t i, int64_t j,
                        int64_t n) {
  const double u = sup_uniform(rng);
  const int e = (int)(sup_next(rng) % 81) - 40;
  switch (what) {
  case WIDE:
    return ldexp(u, e);
  case ONE_HUGE:
    return j == i * 7 % n ? ldexp(u, 60) : u;
  case ROWS:
    return ldexp(u, (int)(i % 11 - 5) * 50);
  case ENDS:
    return e < 0 ? ldexp(u, -1040) : u;
  case FEW_BITS:
    return e < 0 ? 1.0 : e < 20 ? nextafter(1.0, 0.0) : nextafter(1.0, 2.0);
  case LARGE:
    return ldexp(u, 200);
  case SMALL:
    return ldexp(u, -200);
  default:
    return u;
  }
}

static double *parts_of(hone_entry *v) { return (double *)v; }

static system make(kind what, int64_t n, int64_t k, bool trans) {
  sup_rng rng = {(uint64_t)(1000 * n + 10 * (int)what + trans)};
  system s = {.n = n, .lda = n + 3, .k = k};
  s.a = entries_filled(s.lda * n, (double)NAN);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int p = 0; p < HONE_PARTS; p++)
        parts_of(s.a + (trans ? j + i * s.lda : i + j * s.lda))[p] =
            draw_part(&rng, what, i, j, n);
  s.v = entries_filled(n * k, 0.0);
  s.b = entries_filled(n * k, 0.0);
  s.low = entries_filled(n * k, 0.0);
  s.den = sup_filled(n * k, (double)NAN);
  s.weight = sup_filled(n, (double)NAN);
  for (int64_t i = 0; i < n * k * HONE_PARTS; i++) {
    const int e = (int)(sup_next(&rng) % 200);
    const int row = (int)(i / HONE_PARTS % n % 11 - 5) * 50;
    parts_of(s.v)[i] =
        what == TINY_PARTS ? ldexp(sup_uniform(&rng), -e) : sup_uniform(&rng);
    parts_of(s.b)[i] =
        what == ROWS ? ldexp(sup_uniform(&rng), row) : sup_uniform(&rng);
  }
  s.r = entries_copy(s.b, n * k);
  s.dense = (hone_dense){n, s.lda, s.a, NULL, false, 0};
  s.matrix = (hone_matrix){&hone_dense_operator, NULL, n};
  return s;
}

static void discard(system *s) {
  entries_free(s->a);
  entries_free(s->v);
  entries_free(s->b);
  entries_free(s->r);
  entries_free(s->low);
  sup_free(s->den);
  sup_free(s->weight);
}

static double largest(const system *s, int64_t c) {
  double most = 0.0;
  for (int64_t i = 0; i < s->n; i++)
    most = fmax(most, hone_abs(s->v[i + c * s->n]));
  return most;
}

/* Rounds every column to HONE_STEP_VECTOR bits below its largest entry. */
static void round_columns(system *s) {
  for (int64_t c = 0; c < s->k; c++) {
    const double unit = ldexp(1.0, ilogb(largest(s, c)) + 1 - HONE_STEP_VECTOR);
    double *v = parts_of(s->v + c * s->n);
    for (int64_t i = 0; i < s->n * HONE_PARTS; i++)
      v[i] = nearbyint(v[i] / unit) * unit;
  }
}

/* ---- Passes -------------------------------------------------------------- */

static int kernels_here(const hone_steps_kernels **list) {
  int count = 0;
  list[count++] = &hone_steps_base;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    list[count++] = &hone_steps_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    list[count++] = &hone_steps_avx512;
#endif
  return count;
}

/* One product with the given part of op(A); kernels NULL: by the pool. */
static void pass(const hone_steps_kernels *kernels, hone_pool *pool, system *s,
                 bool trans, int part, bool denominators) {
  const hone_entry *v[MOST_COLUMNS], *b[MOST_COLUMNS];
  hone_entry *r[MOST_COLUMNS], *low[MOST_COLUMNS];
  double *den[MOST_COLUMNS];
  double *work = sup_filled(hone_steps_work(s->n, s->k), (double)NAN);
  s->matrix.self = &s->dense;
  for (int64_t c = 0; c < s->k; c++) {
    v[c] = s->v + c * s->n;
    b[c] = s->b + c * s->n;
    r[c] = s->r + c * s->n;
    low[c] = s->low + c * s->n;
    den[c] = s->den + c * s->n;
    s->size[c] = largest(s, c);
  }
  const hone_residual_steps job = {
      &s->matrix, trans, part,    s->k,
      v,          r,     low,     denominators ? den : NULL,
      v,          b,     s->size, s->weight,
      work};
  if (kernels == NULL)
    hone_dense_steps(&job, pool);
  else
    hone_dense_steps_by(kernels, &job, pool);
  sup_free(work);
}

/* ---- Exact sums ---------------------------------------------------------- */

typedef struct exact {
  mpf_t r[HONE_PARTS], term, factor;
  long double den, norm; /* sums of moduli, not exact */
} exact;

static void exact_begin(exact *e) {
  for (int p = 0; p < HONE_PARTS; p++)
    mpf_init2(e->r[p], BITS);
  mpf_init2(e->term, BITS);
  mpf_init2(e->factor, BITS);
}

static void exact_end(exact *e) {
  for (int p = 0; p < HONE_PARTS; p++)
    mpf_clear(e->r[p]);
  mpf_clears(e->term, e->factor, NULL);
}

static void subtract(exact *e, int part, double a, double v) {
  mpf_set_d(e->term, a);
  mpf_set_d(e->factor, v);
  mpf_mul(e->term, e->term, e->factor);
  mpf_sub(e->r[part], e->r[part], e->term);
}

/* r = b - op(A) v, den = |op(A)| |v| + |b|, norm = sum |a|, for row i and
   column c. */
static void exact_row(exact *e, const system *s, bool trans, int64_t i,
                      int64_t c) {
  const double *b = parts_of(s->b + i + c * s->n);
  for (int p = 0; p < HONE_PARTS; p++)
    mpf_set_d(e->r[p], b[p]);
  e->den = hone_absl((hone_wide)s->b[i + c * s->n]);
  e->norm = 0.0L;
  for (int64_t j = 0; j < s->n; j++) {
    hone_entry *a = s->a + (trans ? j + i * s->lda : i + j * s->lda);
    hone_entry *v = s->v + j + c * s->n;
    const long double size = hone_absl((hone_wide)*a);
    for (int p = 0; p < HONE_PARTS; p++)
      subtract(e, p, parts_of(a)[0], parts_of(v)[p]);
    for (int p = 0; p < HONE_PARTS && HONE_PARTS > 1; p++)
      subtract(e, p, (p == 0 ? -1.0 : 1.0) * parts_of(a)[HONE_PARTS - 1],
               parts_of(v)[HONE_PARTS - 1 - p]);
    e->den += size * hone_absl((hone_wide)*v);
    e->norm += size;
  }
}

/* |r + low - exact| <= bound for a part, and r is r + low rounded. */
static bool near(exact *e, int part, double r, double low, long double bound) {
  mpf_set_d(e->term, r);
  mpf_set_d(e->factor, low);
  mpf_add(e->term, e->term, e->factor);
  mpf_sub(e->term, e->term, e->r[part]);
  mpf_abs(e->term, e->term);
  mpf_set_d(e->factor, (double)bound);
  return isfinite(r) && mpf_cmp(e->term, e->factor) <= 0 &&
         !(fabs(low) > 0x1p-53 * fabs(r) + DBL_TRUE_MIN);
}

/* The bounds of docs/numerics.md for a part of r, which is a sum of 'columns'
   products. */
static long double bound_of(int part, int64_t columns, double weight,
                            double size) {
  const long double eps = 0x1p-53L,
                    scale = (long double)weight * (long double)size;
  const long double sum = (HONE_STEP_DEPTH + 8) * eps;
  const long double rest = ldexpl(1.0L, -HONE_STEP_BITS);
  const long double blocks = (long double)(columns / HONE_STEP_DEPTH + 2);
  const long double pairs = blocks * blocks * eps * eps;
  return part == HONE_STEP_LEADING ? (rest + pairs) * scale
         : part == HONE_STEP_REST  ? (rest * sum + 2 * pairs) * scale
                                   : (sum + pairs) * scale;
}

static void check(const system *s, bool trans, int part, bool denominators) {
  exact e;
  int64_t wrong = 0, wrong_den = 0, wrong_weight = 0;
  const int64_t columns = s->n * HONE_PARTS;
  exact_begin(&e);
  for (int64_t c = 0; c < s->k; c++)
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t at = i + c * s->n;
      exact_row(&e, s, trans, i, c);
      const double den = (double)e.den;
      const long double bound =
          bound_of(part, columns, s->weight[i], s->size[c]) +
          (long double)(columns + 4) * 0x1p-106L * (long double)den +
          (long double)(2 * columns + 2) * 0x1p-1074L;
      for (int p = 0; p < HONE_PARTS; p++)
        wrong += !near(&e, p, parts_of(s->r + at)[p], parts_of(s->low + at)[p],
                       bound);
      wrong_weight += !(s->weight[i] >= (double)e.norm * (1.0 - 0x1p-40));
      if (denominators && s->weight[i] * s->size[c] <= 0x1p30 * den)
        wrong_den += !(s->den[at] <= den * (1.0 + 0x1p-50) &&
                       s->den[at] >= den * (1.0 - 0x1p-15));
    }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(wrong_den, 0);
  CHECK_EQ_INT(wrong_weight, 0);
  exact_end(&e);
}

static void check_kernels(const hone_steps_kernels *kernels, kind what,
                          int64_t n, int64_t k, bool trans) {
  system s = make(what, n, k, trans);
  pass(kernels, NULL, &s, trans, HONE_STEP_WHOLE, true);
  check(&s, trans, HONE_STEP_WHOLE, true);
  memcpy(s.r, s.b, (size_t)(n * k) * sizeof *s.r);
  memset(s.low, 0, (size_t)(n * k) * sizeof *s.low);
  round_columns(&s);
  pass(kernels, NULL, &s, trans, HONE_STEP_LEADING, false);
  check(&s, trans, HONE_STEP_LEADING, false);
  pass(kernels, NULL, &s, trans, HONE_STEP_REST, true);
  check(&s, trans, HONE_STEP_REST, true);
  discard(&s);
}

TEST_OF(steps, keep_their_error_bounds_with_every_instruction_set) {
  static const int64_t orders[] = {1, 2, 5, 47, 48, 49, 95, 97, 130};
  const hone_steps_kernels *list[3];
  const int count = kernels_here(list);
  for (int at = 0; at < 9 * KINDS; at += HONE_PARTS)
    for (int q = 0; q < count; q++) {
      const int64_t n = orders[at / KINDS], k = 1 + at * 5 % MOST_COLUMNS;
      const bool trans = (at / HONE_PARTS + q) % 2;
      ct_note("kind %d, n %d, k %d, kernels %d, trans %d", at % KINDS, (int)n,
              (int)k, q, trans);
      check_kernels(list[q], (kind)(at % KINDS), n, k, trans);
    }
}

TEST_OF(steps, keep_their_error_bounds_over_several_blocks) {
  const hone_steps_kernels *list[3];
  const int count = kernels_here(list);
  for (int what = 0; what < KINDS; what++) {
    ct_note("kind %d", what);
    check_kernels(list[what % count], (kind)what, 400 / HONE_PARTS, 3,
                  what % 2);
    check_kernels(list[count - 1], (kind)what, 301 / HONE_PARTS, 2,
                  what % 2 == 0);
  }
}

/* ---- Bits ---------------------------------------------------------------- */

static void expect_column(const system *all, const system *one, int64_t c) {
  const size_t bytes = (size_t)all->n * sizeof *all->r;
  CHECK_MEM_EQ(all->r + c * all->n, one->r, bytes);
  CHECK_MEM_EQ(all->low + c * all->n, one->low, bytes);
  CHECK_MEM_EQ(all->den + c * all->n, one->den,
               (size_t)all->n * sizeof *all->den);
}

/* The bits of a column are those that it has by itself, on one thread. */
TEST_OF(steps, have_the_same_bits_with_other_columns_and_threads) {
  for (int part = 0; part < 3; part++)
    for (int trans = 0; trans < 2; trans++) {
      hone_mem mem = {0};
      hone_pool *pool;
      system all = make(WIDE, 500, MOST_COLUMNS, trans);
      hone_pool_create(&pool, &mem, 3);
      pass(NULL, pool, &all, trans, part, true);
      hone_pool_destroy(&pool, &mem);
      for (int64_t c = 0; c < MOST_COLUMNS; c += 3) {
        system one = make(WIDE, 500, MOST_COLUMNS, trans);
        ct_note("part %d, trans %d, column %d", part, trans, (int)c);
        one.k = 1;
        memcpy(one.v, all.v + c * all.n, (size_t)all.n * sizeof *one.v);
        memcpy(one.b, all.b + c * all.n, (size_t)all.n * sizeof *one.b);
        memcpy(one.r, one.b, (size_t)all.n * sizeof *one.r);
        pass(NULL, NULL, &one, trans, part, true);
        expect_column(&all, &one, c);
        discard(&one);
      }
      discard(&all);
    }
}

/* Each part of a complex r has an error; that of r is their modulus. */
TEST_OF(steps, state_the_rounding_of_a_product_in_modulus) {
  enum { N = 3 };
  double weight[N] = {2.0, 3.0, 6.0}; /* of length 7 */
  hone_entry spare[N] = {ENTRY(0.0, 0.0), ENTRY(0.0, -4.0) - 3.0, 1.0};
  const hone_matrix matrix = {&hone_dense_operator, NULL, N};
  const hone_refinement ctx = {.f = {.a = &matrix}, .weight = weight};
  const hone_refined column = {.spare = spare};
  const double size = HONE_PARTS == 1 ? 3.0 : 5.0, eps = 0x1p-53;
  const double want =
      sqrt((double)HONE_PARTS) * 7.0 * size * (HONE_STEP_DEPTH + 8) * eps;
  const double rounding = (double)hone_steps_rounding(&ctx, &column);
  CHECK_LE(want, rounding * (1.0 + 0x1p-40));
  CHECK_LE(rounding, want * 1.0001);
}
