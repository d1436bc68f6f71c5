/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for complex entries, of every instruction set that this processor
   has: factorizations, residuals and products. Compiled with HONE_COMPLEX. */
#include "base/isa.h"
#include "cpu_dp/product.h"
#include "cpu_dp/residual.h"
#include "cpu_factor/apply.h"
#include "cpu_factor/kernels.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

typedef long double _Complex wide;

typedef struct table {
  const hone_factor_kernels *factor[2]; /* single, double */
  const hone_residual_kernels *residual;
  const hone_product_kernel *product;
  const char *name;
  hone_isa isa;
} table;

static const table tables[] = {
    {{&hone_factor_base_32, &hone_factor_base_64},
     &hone_residual_base,
     &hone_product_base,
     "base",
     HONE_ISA_BASE},
#if defined(__x86_64__)
    {{&hone_factor_avx2_32, &hone_factor_avx2_64},
     &hone_residual_avx2,
     &hone_product_avx2,
     "avx2",
     HONE_ISA_AVX2},
    {{&hone_factor_avx512_32, &hone_factor_avx512_64},
     &hone_residual_avx512,
     &hone_product_avx512,
     "avx512",
     HONE_ISA_AVX512},
#endif
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static bool can_run(const table *t) { return t->isa <= hone_isa_here(); }

/* ---- Factorizations ------------------------------------------------------ */

typedef struct factoring {
  hone_factoring job;
  hone_mem mem;
  hone_watch watch;
  bool single;
  hone_entry *s; /* n x n: the matrix that was factored */
} factoring;

static hone_entry get(const factoring *f, int64_t i, int64_t j) {
  const int64_t at = i + j * f->job.ldf;
  return f->single ? (hone_entry)((hone_single *)f->job.f)[at]
                   : ((hone_entry *)f->job.f)[at];
}

static void set(const factoring *f, int64_t i, int64_t j, hone_entry v) {
  const int64_t at = i + j * f->job.ldf;
  if (f->single)
    ((hone_single *)f->job.f)[at] = (hone_single)v;
  else
    ((hone_entry *)f->job.f)[at] = v;
}

static void begin(factoring *f, const hone_factor_kernels *kernels, int64_t n,
                  int family, int threads) {
  *f = (factoring){.single = kernels->size == sizeof(hone_single)};
  f->job = (hone_factoring){.kernels = kernels,
                            .n = n,
                            .ldf = n + 3,
                            .spd = family == CS_DEFINITE,
                            .watch = &f->watch,
                            .phase = "factor"};
  f->job.f = calloc((size_t)(f->job.ldf * n), kernels->size);
  f->job.pivot = malloc((size_t)n * sizeof(int));
  f->job.work =
      aligned_alloc(64, (size_t)(hone_factor_work(kernels, n) + 64) / 64 * 64);
  f->s = cs_matrix(family, n, 3);
  if (!f->job.f || !f->job.pivot || !f->job.work || !f->s)
    abort();
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      if (f->single)
        f->s[i + j * n] = (hone_entry)(hone_single)f->s[i + j * n];
      set(f, i, j, f->s[i + j * n]);
    }
  hone_pool_create(&f->job.pool, &f->mem, threads);
}

static void end(factoring *f) {
  hone_pool_destroy(&f->job.pool, &f->mem);
  CHECK_EQ_INT(f->mem.held, 0);
  free(f->job.f);
  free(f->job.pivot);
  free(f->job.work);
  free(f->s);
}

/* The bounds of test_factor.c, n eps |L| |U|, times 4, which is what a sum of
   complex products made of three real ones may be worse
   (test_complex_products.c); of four, 2 sqrt(2) (Higham 2002, lemma 3.5). A
   pivot is the largest by |re| + |im|, so that |l_ij| <= sqrt(2). */
static void check_product(const factoring *f) {
  const int64_t n = f->job.n;
  const bool spd = f->job.spd;
  const long double eps = f->single ? 0x1p-24L : 0x1p-53L;
  int64_t *row = malloc((size_t)n * sizeof *row), wrong = 0, large = 0;
  for (int64_t i = 0; i < n; i++)
    row[i] = i;
  for (int64_t i = 0; i < n && !spd; i++) {
    const int64_t with = f->job.pivot[i] - 1, t = row[i];
    row[i] = row[with];
    row[with] = t;
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = spd ? j : 0; i < n; i++) {
      wide sum = 0.0L;
      long double size = 0.0L;
      for (int64_t k = 0; k <= HONE_MIN(i, j); k++) {
        const wide l = !spd && i == k ? 1.0L : (wide)get(f, i, k);
        const wide u = spd ? conjl((wide)get(f, j, k)) : (wide)get(f, k, j);
        sum += l * u;
        size += cabsl(l * u);
      }
      const wide error = sum - (wide)f->s[row[i] + j * n];
      wrong += !(cabsl(error) <= 4.0L * (long double)(n + 6) * eps * size);
      large += !spd && i > j && !(cabs(get(f, i, j)) <= 1.4143);
    }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(large, 0);
  free(row);
}

TEST(complex_kernels, products_of_the_factors_are_the_matrix) {
  static const int64_t orders[] = {1, 2, 7, 8, 9, 16, 17, 33, 65, 97, 131};
  static const int families[] = {CS_UNIFORM, CS_DEFINITE};
  for (int t = 0; t < TABLES; t++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
      for (int k = 0; k < 4 && can_run(&tables[t]); k++) {
        factoring f;
        int64_t zero = -1;
        begin(&f, tables[t].factor[k % 2], orders[o], families[k / 2], 2);
        ct_note("%s, %d bytes, n = %d, %s", tables[t].name,
                (int)f.job.kernels->size, (int)orders[o],
                cs_name(families[k / 2]));
        CHECK_EQ_INT(hone_factor_columns(&f.job, 0, f.job.n, &zero), HONE_OK);
        CHECK_EQ_INT(zero, -1);
        check_product(&f);
        end(&f);
      }
}

TEST(complex_kernels, factor_to_the_same_bits_with_any_number_of_threads) {
  const int64_t n = 700;
  for (int k = 0; k < 4; k++) {
    const int bits = k % 2 ? 128 : 64;
    factoring one, more;
    begin(&one, hone_factor_kernels_of(bits), n,
          k < 2 ? CS_UNIFORM : CS_DEFINITE, 1);
    int64_t zero = -1;
    CHECK_EQ_INT(hone_factor_columns(&one.job, 0, n, &zero), HONE_OK);
    for (int threads = 2; threads <= 4; threads++) {
      begin(&more, hone_factor_kernels_of(bits), n,
            k < 2 ? CS_UNIFORM : CS_DEFINITE, threads);
      CHECK_EQ_INT(hone_factor_columns(&more.job, 0, n, &zero), HONE_OK);
      CHECK_MEM_EQ(more.job.f, one.job.f,
                   (size_t)(n * one.job.ldf) * one.job.kernels->size);
      end(&more);
    }
    end(&one);
  }
}

/* Solves with the factors and returns max |op(S) x - b| / max |b|. */
static double residual_of_solve(const factoring *f, bool trans, int64_t k,
                                hone_pool *pool, hone_entry *x) {
  const int64_t n = f->job.n;
  hone_entry *b = cs_random(n, k, 8);
  const hone_factors factors = {.form = f->job.spd ? HONE_FORM_CHOLESKY
                                                   : HONE_FORM_LU,
                                .n = n,
                                .ld = f->job.ldf,
                                .f = f->job.f,
                                .pivot = f->job.pivot,
                                .base = 1};
  double most = 0.0, size = 0.0;
  memcpy(x, b, (size_t)(n * k) * sizeof *x);
  (f->single ? hone_apply_32 : hone_apply_64)(pool, &factors, trans, k, x, n);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n; i++) {
      hone_entry r = -b[i + c * n];
      for (int64_t j = 0; j < n; j++)
        r += (trans ? f->s[j + i * n] : f->s[i + j * n]) * x[j + c * n];
      most = cabs(r) <= most || isnan(most) ? most : cabs(r);
      size = fmax(size, cabs(b[i + c * n]));
    }
  free(b);
  return most / size;
}

/* The factors of well-conditioned matrices are wrong by n eps and less, in
   their own precision; 1e3 covers the growth and the condition. */
TEST(complex_kernels, apply_factors_and_their_transposes) {
  static const int64_t orders[] = {1, 2, 31, 33, 97, 300};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
    for (int k = 0; k < 8; k++) {
      const int64_t n = orders[o], columns = 1 + 9 * (k / 4);
      const bool single = k % 2 == 0;
      factoring f;
      int64_t zero = -1;
      begin(&f, hone_factor_kernels_of(single ? 64 : 128), n,
            k % 4 < 2 ? CS_UNIFORM : CS_DEFINITE, 3);
      ct_note("n = %d, way %d", (int)n, k);
      CHECK_EQ_INT(hone_factor_columns(&f.job, 0, n, &zero), HONE_OK);
      hone_entry *x = cs_random(n, columns, 1), *y = cs_random(n, columns, 1);
      for (int trans = 0; trans < 2; trans++) {
        CHECK_LE(residual_of_solve(&f, trans, columns, f.job.pool, x),
                 (double)n * 1e3 * (single ? 0x1p-24 : 0x1p-53));
        (void)residual_of_solve(&f, trans, columns, NULL, y);
        CHECK_MEM_EQ(x, y, (size_t)(n * columns) * sizeof *x);
      }
      free(x);
      free(y);
      end(&f);
    }
}

/* A pivot is the largest by |re| + |im|, NaN before all, and a zero one is
   told; one that is small or large is divided by without overflow. */
TEST(complex_kernels, choose_pivots_as_lapack_does) {
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 2 && can_run(&tables[t]); k++) {
      const int64_t n = 40;
      factoring f;
      int64_t zero = -1;
      begin(&f, tables[t].factor[k], n, CS_UNIFORM, 1);
      ct_note("%s, %s", tables[t].name, k ? "double" : "single");
      for (int64_t i = 0; i < n; i++) { /* 0.9 (1 + i) is larger than 1.1 */
        const hone_entry v = i == 3    ? CMPLX(1.1, 0.0)
                             : i == 21 ? CMPLX(-0.9, 0.9)
                                       : CMPLX(0.0, 0.1);
        set(&f, i, 0, v);
        set(&f, i, 5, 0.0); /* a multiple of the first column */
      }
      CHECK_EQ_INT(hone_factor_columns(&f.job, 0, n, &zero), HONE_OK);
      CHECK_EQ_INT(f.job.pivot[0], 22);
      CHECK_EQ_INT(zero, 5);
      CHECK(cabs(get(&f, 21, 0)) <= 1.0); /* 0.1 i and others over the pivot */
      end(&f);
    }
}

/* The first of several pivots of one size is taken, whichever loop sees them,
   so that all instruction sets choose the same. */
TEST(complex_kernels, choose_the_first_of_equal_pivots) {
  static const double re[] = {1.0, 0.0, -1.0, 0.0};
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 2 && can_run(&tables[t]); k++)
      for (int64_t first = 0; first < 37; first++) {
        const int64_t n = 37;
        factoring f;
        int64_t zero = -1;
        begin(&f, tables[t].factor[k], n, CS_UNIFORM, 1);
        ct_note("%s, %s, row %d", tables[t].name, k ? "double" : "single",
                (int)first);
        for (int64_t i = 0; i < n; i++)
          set(&f, i, 0,
              (i < first ? 0.5 : 1.0) * CMPLX(re[i % 4], re[(i + 1) % 4]));
        CHECK_EQ_INT(hone_factor_columns(&f.job, 0, n, &zero), HONE_OK);
        CHECK_EQ_INT(f.job.pivot[0], first + 1);
        end(&f);
      }
}

/* The reciprocal of a subnormal pivot overflows. Either part of the pivot may
   be the larger one; subnormal numbers have fewer digits. */
TEST(complex_kernels, divide_by_subnormal_pivots) {
  static const double re[] = {1.0, 0.4, -0.4, 1.0},
                      im[] = {0.4, 1.0, 1.0, -0.4};
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 8 && can_run(&tables[t]); k++) {
      const int64_t n = 37;
      const bool single = k < 4;
      const double tiny = single ? 0x1p-128 : 0x1p-1024;
      hone_entry *column = cs_random(n, 1, 4);
      factoring f;
      int64_t zero = -1;
      int wrong = 0;
      begin(&f, tables[t].factor[!single], n, CS_UNIFORM, 1);
      ct_note("%s, way %d", tables[t].name, k);
      column[0] = CMPLX(re[k % 4], im[k % 4]);
      for (int64_t i = 0; i < n; i++)
        set(&f, i, 0, CMPLX(tiny * creal(column[i]), tiny * cimag(column[i])));
      CHECK_EQ_INT(hone_factor_columns(&f.job, 0, 1, &zero), HONE_OK);
      CHECK_EQ_INT(f.job.pivot[0], 1);
      for (int64_t i = 1; i < n; i++)
        wrong += !(cabs(get(&f, i, 0) - column[i] / column[0]) <=
                   (single ? 1e-5 : 1e-14));
      CHECK_EQ_INT(wrong, 0);
      free(column);
      end(&f);
    }
}

/* ---- Residuals and products ---------------------------------------------- */

/* r = b - op(A) x of one row, in quadruple precision. */
static wide exact_residual(int64_t n, const hone_entry *a, int64_t step,
                           const hone_entry *x, hone_entry b) {
  quad re = (quad)creal(b), im = (quad)cimag(b);
  for (int64_t j = 0; j < n; j++) {
    const hone_entry v = a[j * step];
    re -=
        (quad)creal(v) * (quad)creal(x[j]) - (quad)cimag(v) * (quad)cimag(x[j]);
    im -=
        (quad)creal(v) * (quad)cimag(x[j]) + (quad)cimag(v) * (quad)creal(x[j]);
  }
  return CMPLXL((long double)re, (long double)im);
}

enum { EVEN, SPREAD, LARGE, SPREADS };

/* Multiplies rows of op(A) by powers of two with which squares of their entries
   vanish, overflow or lose digits. */
static void spread_rows(int kind, int64_t n, bool trans, hone_entry *a,
                        int64_t lda) {
  static const int exponents[SPREADS][4] = {
      {0, 0, 0, 0}, {-600, 600, 0, -530}, {0, 600, 0, 0}};
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      hone_entry *entry = trans ? &a[j + i * lda] : &a[i + j * lda];
      *entry = hone_shift_entry(*entry, exponents[kind][i % 4]);
    }
}

/* Residuals of columns, n entries each. */
typedef struct residuals {
  const hone_entry *x, *b;
  hone_entry *r; /* may be b */
  double *den;
} residuals;

static void take_residuals(const table *t, const hone_dense *dense, bool trans,
                           bool accurate, int64_t columns, residuals of) {
  const hone_entry *x[HONE_RESIDUAL_COLUMNS], *b[HONE_RESIDUAL_COLUMNS];
  hone_entry *r[HONE_RESIDUAL_COLUMNS];
  double *den[HONE_RESIDUAL_COLUMNS];
  for (int64_t c = 0; c < columns; c++) {
    x[c] = of.x + c * dense->n;
    b[c] = of.b + c * dense->n;
    r[c] = of.r + c * dense->n;
    den[c] = of.den + c * dense->n;
  }
  const hone_matrix matrix = hone_dense_matrix(dense);
  const hone_residual_job job = {&matrix, trans, accurate, columns,
                                 x,       b,     r,        den};
  (trans ? t->residual->columns : t->residual->rows)(&job, 0, columns, 0,
                                                     dense->n);
}

/* Returns how many residuals and denominators are not within their bounds. */
static int64_t count_wrong(const hone_dense *dense, bool trans, bool accurate,
                           int64_t columns, residuals of) {
  const int64_t n = dense->n, step = trans ? 1 : dense->lda;
  const long double eps = accurate ? 0x1p-106L : 0x1p-53L;
  int64_t wrong = 0;
  for (int64_t c = 0; c < columns; c++)
    for (int64_t i = 0; i < n; i++) {
      const hone_entry *row = dense->a + (trans ? i * dense->lda : i);
      const hone_entry *x = of.x + c * n, b = of.b[c * n + i];
      const wide exact = exact_residual(n, row, step, x, b);
      long double size = cabsl((wide)b);
      for (int64_t j = 0; j < n; j++)
        size += cabsl((wide)row[j * step]) * cabsl((wide)x[j]);
      const long double limit =
          3.0L * (long double)(n + 4) * eps * size + 0x1p-53L * cabsl(exact);
      wrong += !(cabsl((wide)of.r[c * n + i] - exact) <= limit);
      wrong += !(fabsl((long double)of.den[c * n + i] - size) <=
                 (long double)(n + 4) * 0x1p-53L * size);
    }
  return wrong;
}

static void check_residuals(const table *t, int64_t n, bool trans,
                            bool accurate, int spread, int64_t columns) {
  const int64_t lda = n + 2, size = n * columns;
  hone_entry *a = cs_random(lda, n, 5), *x = cs_random(n, columns, 6);
  hone_entry *b = cs_random(n, columns, 7), *r = cs_random(n, columns, 8);
  double *den = malloc((size_t)size * sizeof *den);
  double *again = malloc((size_t)size * sizeof *again);
  const hone_dense dense = {.n = n, .lda = lda, .a = a};
  spread_rows(spread, n, trans, a, lda);
  /* b is nearly A x: digits cancel. */
  for (int64_t i = 0; i < n; i++)
    b[i] = (hone_entry)-exact_residual(n, trans ? a + i * lda : a + i,
                                       trans ? 1 : lda, x, 0.0);
  take_residuals(t, &dense, trans, accurate, columns,
                 (residuals){x, b, r, den});
  CHECK_EQ_INT(
      count_wrong(&dense, trans, accurate, columns, (residuals){x, b, r, den}),
      0);
  take_residuals(t, &dense, trans, accurate, columns,
                 (residuals){x, b, b, again});
  CHECK(memcmp(b, r, (size_t)size * sizeof *b) == 0);
  CHECK(memcmp(den, again, (size_t)size * sizeof *den) == 0);
  free(a);
  free(x);
  free(b);
  free(r);
  free(den);
  free(again);
}

TEST(complex_kernels, residuals_have_twice_the_digits) {
  static const int64_t orders[] = {1, 2, 3, 4, 5, 17, 64, 131};
  for (int t = 0; t < TABLES; t++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
      for (int way = 0; way < 4 * SPREADS && can_run(&tables[t]); way++) {
        ct_note("%s, n = %d, way %d", tables[t].name, (int)orders[o], way);
        check_residuals(&tables[t], orders[o], way & 1, way & 2, way / 4, 3);
      }
}

TEST(complex_kernels, residuals_of_one_to_four_columns) {
  for (int t = 0; t < TABLES; t++)
    for (int64_t m = 1; m <= HONE_RESIDUAL_COLUMNS && can_run(&tables[t]); m++)
      for (int way = 0; way < 4; way++) {
        ct_note("%s, %d columns, way %d", tables[t].name, (int)m, way);
        check_residuals(&tables[t], 300, way & 1, true, way / 2, m);
      }
}

TEST(complex_kernels, products_are_within_their_bound) {
  static const int64_t orders[] = {1, 3, 4, 5, 9, 33, 70};
  enum { COLUMNS = 16 };
  for (int t = 0; t < TABLES; t++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
      for (int way = 0; way < 8 && can_run(&tables[t]); way++) {
        const int64_t n = orders[o], k = (way / 2 + 1) * 4;
        const bool trans = way % 2;
        hone_entry *a = cs_random(n, n, 5), *v = cs_random(n, COLUMNS, 6);
        hone_entry *p = cs_random(n, COLUMNS, 7);
        const hone_dense dense = {.n = n, .lda = n, .a = a};
        const hone_product_run run = {&dense, trans, k - way / 2, v, p};
        int64_t wrong = 0;
        tables[t].product->rows(&run, 0, n);
        for (int64_t c = 0; c < run.k; c++)
          for (int64_t i = 0; i < n; i++) {
            wide sum = 0.0L;
            long double size = 0.0L;
            for (int64_t j = 0; j < n; j++) {
              const wide q = (wide)(trans ? a[j + i * n] : a[i + j * n]) *
                             (wide)v[c * n + j];
              sum += q;
              size += cabsl(q);
            }
            wrong += !(cabsl((wide)p[c * n + i] - sum) <=
                       3.0L * (long double)(n + 2) * 0x1p-53L * size);
          }
        ct_note("%s, n = %d, way %d", tables[t].name, (int)n, way);
        CHECK_EQ_INT(wrong, 0);
        free(a);
        free(v);
        free(p);
      }
}
