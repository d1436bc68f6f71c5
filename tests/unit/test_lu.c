/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision LU engines, that of the host and that of CUDA: the same
   checks for both. The factors stay inside the engine and are tested by what
   they solve: first with matrices P L U of small dyadic numbers, for which
   factors, inverses and every partial sum are exact in single precision, so
   that each bit is known; then with random matrices, beside OpenBLAS's sgetrf.
   Next to read: test_lu_breakdown.c. */
#include "tests/unit/lu_engine.h"

#include "base/lapack.h"
#include "cpu_sp/blocked.h"

#include <math.h>

static const double EPS_SP = 0x1p-24;

/* A = inv(R) S inv(C), so that the engine scales A to S. */
static void unscale(lu *f, sup_rng *rng, const exact *e, double *a,
                    int64_t lda) {
  for (int64_t i = 0; i < e->n; i++)
    lu_set_scale(f, i, lu_pick(rng, 201) - 100, lu_pick(rng, 201) - 100);
  for (int64_t j = 0; j < e->n; j++)
    for (int64_t i = 0; i < e->n; i++)
      a[i + j * lda] = ldexp(e->s[i + j * e->n],
                             -f->scaling.row_exp[i] - f->scaling.col_exp[j]);
}

static void check_exact_block(const hone_engine *engine, int64_t n,
                              int64_t block, bool scaled) {
  static const int64_t columns[] = {1, 2, 3, 4, 5, 17, MOST};
  sup_rng rng = {(uint64_t)n};
  exact e = exact_make(&rng, n, -1, lu_can_exchange(engine, block, n));
  const int64_t lda = n + 3;
  double *a = sup_filled(lda * n, (double)NAN), *x = sup_filled(n * MOST, 0.0);
  double *v = sup_filled(n * MOST, 0.0), unit;
  lu f;
  lu_open(&f, engine, n, block, 1);
  for (int64_t j = 0; j < n; j++)
    memcpy(a + j * lda, e.s + j * n, (size_t)n * sizeof *a);
  if (scaled)
    unscale(&f, &rng, &e, a, lda);
  CHECK_EQ_INT(lu_factor(&f, a, lda), HONE_OK);
  exact_check_factors(&f, &e);
  for (int trans = 0; trans < 2; trans++) {
    for (int64_t i = 0; i < n * MOST; i++)
      x[i] = (double)(lu_pick(&rng, 17) - 8) / 16.0;
    exact_multiply(&e, trans, n > 100 ? 17 : MOST, x, v, &unit);
    for (int k = 0; k < (n > 100 ? 6 : 7); k++)
      if (!lu_not_its_turn(engine, k + trans, 2))
        exact_check_solve(&f, trans, columns[k], x, v, unit);
  }
  lu_close(&f);
  sup_free(a);
  sup_free(x);
  sup_free(v);
  exact_lu_free(&e);
}

static void solves_exactly_where_arithmetic_is_exact(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int at = 0; at < ORDERS * BLOCKS; at++) {
    const int64_t n = lu_orders[at / BLOCKS], block = lu_block(at % BLOCKS, n);
    ct_note("n = %d, block %d, %s", (int)n, (int)block,
            at % 2 ? "scaled" : "not scaled");
    if (!lu_too_slow(engine, block, n))
      check_exact_block(engine, n, block, at % 2);
  }
}

static void solves_exactly_with_several_threads(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = 421;
  sup_rng rng = {7};
  exact e = exact_make(&rng, n, -1, false);
  double *x = sup_filled(n, 0.0), *v = sup_filled(n, 0.0), unit;
  for (int64_t i = 0; i < n; i++)
    x[i] = (double)(lu_pick(&rng, 17) - 8) / 16.0;
  exact_multiply(&e, false, 1, x, v, &unit);
  for (int threads = 1; threads <= 5; threads += 2) {
    lu f;
    lu_open(&f, engine, n, threads == 3 ? 64 : 0, threads);
    ct_note("%d threads", threads);
    CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_OK);
    exact_check_factors(&f, &e);
    exact_check_solve(&f, false, 1, x, v, unit);
    lu_close(&f);
  }
  sup_free(x);
  sup_free(v);
  exact_lu_free(&e);
}

/* Random matrices, beside sgetrf ------------------------------------------- */

typedef struct reference {
  float *f;
  int *ipiv;
  double growth;
} reference;

static double larger(double p, double q) { return !(q <= p) ? q : p; }

static reference factor_by_sgetrf(int64_t n, const double *s) {
  reference r = {malloc((size_t)(n * n) * sizeof(float)),
                 malloc((size_t)n * sizeof(int)), 0.0};
  int order = (int)n, info = 0;
  double s_max = 0.0, u_max = 0.0;
  if (r.f == NULL || r.ipiv == NULL)
    abort();
  for (int64_t i = 0; i < n * n; i++) {
    r.f[i] = (float)s[i];
    s_max = larger(s_max, fabs((double)r.f[i]));
  }
  sgetrf_(&order, &order, r.f, &order, r.ipiv, &info);
  CHECK_EQ_INT(info, 0);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++)
      u_max = larger(u_max, fabs((double)r.f[i + j * n]));
  r.growth = u_max / s_max;
  return r;
}

static void solve_by_reference(const reference *r, int64_t n, bool trans,
                               double *v) {
  int order = (int)n, one = 1, info = 0;
  float *w = malloc((size_t)n * sizeof *w);
  if (w == NULL)
    abort();
  for (int64_t i = 0; i < n; i++)
    w[i] = (float)v[i];
  sgetrs_(trans ? "T" : "N", &order, &one, r->f, &order, r->ipiv, w, &order,
          &info);
  for (int64_t i = 0; i < n; i++)
    v[i] = (double)w[i];
  free(w);
}

/* The condition is 10. Apart from growth, the textbook bound on the error is n
   eps cond. Both solutions satisfy it, so they differ by at most twice that.
   (Measured: 1/20 of it from n = 31 on.) Where two pivot candidates are nearly
   equal, the engines may choose differently, which changes growth a little. */
static void check_random_order(const hone_engine *engine, int64_t n,
                               int blocks) {
  sup_rng rng = {(uint64_t)(31 * n)};
  const double cond = 10.0, limit = (double)n * EPS_SP * cond;
  double *s = sup_filled(n * n, 0.0), *x = sup_filled(n, 0.0);
  double *v = sup_filled(n, 0.0), *w = sup_filled(n, 0.0);
  sup_matrix_cond(&rng, n, SUP_LOG_UNIFORM, cond, s, n);
  sup_random(&rng, n, 1, x, n);
  reference ref = factor_by_sgetrf(n, s);
  for (int at = 0; at < blocks; at++) {
    lu f;
    if (lu_too_slow(engine, lu_block(at, n), n))
      continue;
    lu_open(&f, engine, n, lu_block(at, n), 1);
    CHECK_EQ_INT(lu_factor(&f, s, n), HONE_OK);
    for (int trans = 0; trans < 2; trans++) {
      ct_note("n = %d, block %d, trans %d", (int)n, (int)lu_block(at, n),
              trans);
      sup_multiply(n, s, n, trans, x, v);
      memcpy(w, v, (size_t)n * sizeof *w);
      CHECK_EQ_INT(engine->solve(f.self, trans, 1, v, n), HONE_OK);
      solve_by_reference(&ref, n, trans, w);
      CHECK_LE(sup_forward_error(n, v, x), limit);
      CHECK_LE(sup_forward_error(n, v, w), 2.0 * limit);
    }
    CHECK_LE(f.info.growth, 3.0 * ref.growth);
    CHECK_LE(ref.growth, 3.0 * f.info.growth);
    lu_close(&f);
  }
  free(ref.f);
  free(ref.ipiv);
  sup_free(s);
  sup_free(x);
  sup_free(v);
  sup_free(w);
}

static void agrees_with_sgetrf(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o++)
    check_random_order(engine, lu_orders[o], BLOCKS);
  check_random_order(engine, 1100, 1); /* with the engine's own block size */
}

/* Each row adds half of the last column's entry to the rows below: the last
   entry of U is (3/2)^15, and 3^15 has 24 bits. */
static void reports_growth_to_the_last_digit(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 16 };
  double s[N * N] = {0.0};
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++)
      s[i + j * N] = i == j ? 1.0 : -0.5;
    s[i + (N - 1) * N] = 1.0;
  }
  for (int64_t block = 1; block < 8; block += 3) {
    lu f;
    lu_open(&f, engine, N, block, 1);
    CHECK_EQ_INT(lu_factor(&f, s, N), HONE_OK);
    CHECK_NEAR(f.info.growth, 0x1p-15 * 14348907.0, 1e-4);
    lu_close(&f);
  }
}

#define ENTRY(name)                                                            \
  { #name, name }
static const lu_check checks[] = {
    ENTRY(solves_exactly_where_arithmetic_is_exact),
    ENTRY(solves_exactly_with_several_threads),
    ENTRY(agrees_with_sgetrf),
    ENTRY(reports_growth_to_the_last_digit),
};

CT_CONSTRUCTOR static void register_checks(void) {
  lu_register(checks, sizeof checks / sizeof *checks);
}
