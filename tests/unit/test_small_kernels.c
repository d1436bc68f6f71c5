/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorizations of small matrices in double precision, as compiled for
   every instruction set that this processor has. */
#include "base/isa.h"
#include "cpu_dp/small_kernels.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { COLUMNS = 11 };
static const int64_t orders[] = {1,  2,  3,  4,  7,  8,   9,   15,  16,
                                 17, 24, 31, 33, 64, 100, 129, 255, 256};

typedef struct matrix {
  const hone_small_kernels *kernels;
  int64_t n, lda, ld;
  double *a, *f, *x, *b;
  int *ipiv;
} matrix;

/* The kernels with this number; NULL: they do not run here, or there are no
   more. */
static const hone_small_kernels *kernels_at(int number) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (number == 1)
    return isa >= HONE_ISA_AVX2 ? &hone_small_avx2 : NULL;
  if (number == 2)
    return isa >= HONE_ISA_AVX512 ? &hone_small_avx512 : NULL;
#endif
  return number == 0 ? &hone_small_base : NULL;
}

static matrix make(const hone_small_kernels *kernels, int64_t n) {
  const int64_t block = HONE_SMALL_BLOCK, rows = (n + block - 1) / block;
  matrix m = {.kernels = kernels, .n = n, .lda = n + 3};
  m.ld = (rows + (n % 3 == 0)) * block;
  m.a = sup_filled(m.lda * n, (double)NAN);
  m.f = sup_filled(m.ld * rows * block, (double)NAN);
  m.x = sup_filled(m.lda * COLUMNS, 0.0);
  m.b = sup_filled(m.lda * COLUMNS, 0.0);
  m.ipiv = (int *)sup_filled(n, 0.0);
  return m;
}

static void discard(matrix *m) {
  sup_free(m->a);
  sup_free(m->f);
  sup_free(m->x);
  sup_free(m->b);
  sup_free((double *)m->ipiv);
}

static void fill(matrix *m, bool definite) {
  sup_rng rng = {(uint64_t)m->n};
  for (int64_t j = 0; j < m->n; j++)
    for (int64_t i = 0; i < m->n; i++)
      m->a[i + j * m->lda] = sup_uniform(&rng) - 0.5;
  for (int64_t j = 0; definite && j < m->n; j++) {
    for (int64_t i = 0; i < j; i++) /* the other triangle is not read */
      m->a[j + i * m->lda] = (double)NAN;
    m->a[j * (m->lda + 1)] = (double)m->n;
  }
  for (int64_t i = 0; i < m->lda * COLUMNS; i++)
    m->b[i] = m->x[i] = sup_uniform(&rng) - 0.5;
}

static double entry(const matrix *m, bool definite, bool trans, int64_t i,
                    int64_t j) {
  const bool turned = definite ? i > j : trans;
  return m->a[turned ? j + i * m->lda : i + j * m->lda];
}

/* Solves for k right-hand sides: is the residual that of a backward stable
   method? */
static void check_solutions(matrix *m, bool definite, bool trans, int64_t k) {
  const int *ipiv = definite ? NULL : m->ipiv;
  memcpy(m->x, m->b, (size_t)(m->lda * COLUMNS) * sizeof *m->x);
  m->kernels->solve(m->n, m->f, m->ld, ipiv, trans, k, m->x, m->lda);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < m->n; i++) {
      double r = m->b[i + c * m->lda], size = fabs(r);
      for (int64_t j = 0; j < m->n; j++) {
        const double t = entry(m, definite, trans, i, j);
        r -= t * m->x[j + c * m->lda];
        size += fabs(t * m->x[j + c * m->lda]);
      }
      CHECK_LE(fabs(r), 1e-13 * (double)(m->n + 10) * size);
    }
  for (int64_t i = k * m->lda; i < COLUMNS * m->lda; i++)
    CHECK(m->x[i] == m->b[i]);
}

static void check_factors(matrix *m, bool definite) {
  double most = 0.0, largest = 0.0;
  fill(m, definite);
  for (int64_t j = 0; j < m->n; j++)
    for (int64_t i = 0; i < (definite ? j + 1 : m->n); i++)
      most = fmax(most, fabs(m->a[i + j * m->lda]));
  CHECK_NEAR(m->kernels->load(m->n, m->a, m->lda, definite, m->f, m->ld), most,
             0.0);
  const int64_t bad =
      definite ? m->kernels->cholesky(m->n, m->f, m->ld, &largest)
               : m->kernels->lu(m->n, m->f, m->ld, m->ipiv, &largest);
  CHECK_EQ_INT(bad, -1);
  most = 0.0;
  for (int64_t j = 0; j < m->n; j++)
    for (int64_t i = 0; i <= j; i++)
      most = fmax(most, fabs(m->f[i + j * m->ld]));
  CHECK_NEAR(largest, most, 0.0);
  for (int64_t j = 0; !definite && j < m->n; j++)
    for (int64_t i = j + 1; i < m->n; i++)
      CHECK_LE(fabs(m->f[i + j * m->ld]), 1.0 + 1e-10); /* largest pivots */
  for (int trans = 0; trans < 2; trans++)
    for (int64_t k = 1; k <= COLUMNS; k += k < 3 ? 1 : 4)
      check_solutions(m, definite, trans, k);
}

TEST(small_kernels, factor_and_solve_at_every_width) {
  for (int number = 0; number < 3; number++)
    for (size_t at = 0; at < sizeof orders / sizeof *orders; at++)
      for (int definite = 0; kernels_at(number) && definite < 2; definite++) {
        matrix m = make(kernels_at(number), orders[at]);
        ct_note("kernels %d, n %d, definite %d", number, (int)m.n, definite);
        check_factors(&m, definite);
        discard(&m);
      }
}

TEST(small_kernels, tell_pivots_that_are_zero_or_not_positive) {
  for (int number = 0; number < 3; number++)
    for (int64_t n = 2; kernels_at(number) && n < 40; n += 5)
      for (int64_t where = 0; where < n; where += 3) {
        matrix m = make(kernels_at(number), n);
        double largest = 0.0;
        ct_note("kernels %d, n %d, column %d", number, (int)n, (int)where);
        fill(&m, false);
        for (int64_t i = 0; i < n; i++)
          m.a[i + where * m.lda] = 0.0;
        (void)m.kernels->load(n, m.a, m.lda, false, m.f, m.ld);
        CHECK_EQ_INT(m.kernels->lu(n, m.f, m.ld, m.ipiv, &largest), where);
        fill(&m, true);
        m.a[where * (m.lda + 1)] = where % 2 ? 0.0 : -1.0;
        (void)m.kernels->load(n, m.a, m.lda, true, m.f, m.ld);
        CHECK_EQ_INT(m.kernels->cholesky(n, m.f, m.ld, &largest), where);
        discard(&m);
      }
}

/* Entries of 1e300 overflow on the way; pivots of 1e-310 have no reciprocal. */
TEST(small_kernels, show_overflow_and_divide_by_tiny_pivots) {
  for (int number = 0; kernels_at(number < 3 ? number : 0) && number < 3;
       number++) {
    matrix m = make(kernels_at(number), 20);
    double largest = 0.0;
    ct_note("kernels %d", number);
    for (int64_t j = 0; j < m.n; j++)
      for (int64_t i = 0; i < m.n; i++)
        m.a[i + j * m.lda] = i == j    ? 1e308
                             : i > j   ? -1e308
                             : j == 19 ? 1e308
                                       : 0;
    CHECK_NEAR(m.kernels->load(m.n, m.a, m.lda, false, m.f, m.ld), 1e308, 0.0);
    (void)m.kernels->lu(m.n, m.f, m.ld, m.ipiv, &largest);
    CHECK(isnan(largest));
    for (int64_t j = 0; j < m.n; j++)
      for (int64_t i = 0; i < m.n; i++)
        m.a[i + j * m.lda] = i == j ? 1e-310 : i > j ? 0.5e-310 : 0.0;
    (void)m.kernels->load(m.n, m.a, m.lda, false, m.f, m.ld);
    CHECK_EQ_INT(m.kernels->lu(m.n, m.f, m.ld, m.ipiv, &largest), -1);
    CHECK_NEAR(m.f[1], 0.5, 1e-12);
    CHECK_NEAR(m.f[19], 0.5, 1e-12);
    m.a[5] = (double)NAN;
    CHECK(isnan(m.kernels->load(m.n, m.a, m.lda, false, m.f, m.ld)));
    discard(&m);
  }
}
