/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES-IR with single-precision factors through the public calls: matrices for
   which classical refinement does not converge, and the error bounds. The pairs
   that it keeps are tested in test_gmres_space.c. */
#include "tests/unit/ct.h"
#include "tests/unit/reference.h"
#include "tests/unit/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Public calls ------------------------------------------------------------- */

typedef struct problem {
  int64_t n, nrhs;
  double *a, *b, *x;
  hone_options options;
  hone_column column[4];
  hone_report report;
} problem;

static problem make(int64_t n, int64_t nrhs, int mode, double cond,
                    uint64_t seed) {
  problem p = {.n = n, .nrhs = nrhs};
  sup_rng rng = {seed};
  p.a = sup_filled(n * n, 0.0);
  p.b = sup_filled(n * nrhs, 0.0);
  p.x = sup_filled(n * nrhs, 77.0);
  sup_matrix_cond(&rng, n, mode, cond, p.a, n);
  sup_random(&rng, n, nrhs, p.b, n);
  p.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p.report, sizeof p.report);
  p.options.factor_precision = HONE_FACTOR_SINGLE;
  p.options.device = HONE_DEVICE_CPU;
  p.options.threads = 1;
  return p;
}

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

static int solve(problem *p) {
  p->options.columns = p->column;
  return hone_solve(p->n, p->nrhs, p->a, p->n, p->b, p->n, p->x, p->n,
                    &p->options, &p->report);
}

static double omega(const problem *p, int64_t c) {
  return sup_backward_error(p->n, p->a, p->n, p->options.trans, p->x + c * p->n,
                            p->b + c * p->n);
}

static void check_solved_by_gmres(problem *p, int steps) {
  char want[64];
  CHECK_EQ_INT(solve(p), HONE_OK);
  CHECK_EQ_INT(p->report.accepted, p->nrhs);
  CHECK_EQ_INT(p->report.precision, 32);
  CHECK_EQ_INT(p->report.fallback_columns, 0);
  CHECK_LE(1, p->report.gmres_steps);
  CHECK_LE(p->report.gmres_steps, steps);
  CHECK_CONTAINS(p->report.path, "single LU");
  snprintf(want, sizeof want, "GMRES %d step%s", p->report.gmres_steps,
           p->report.gmres_steps == 1 ? "" : "s");
  CHECK_STR(strstr(p->report.path, "GMRES "), want); /* and nothing follows */
  for (int64_t c = 0; c < p->nrhs; c++) {
    CHECK_EQ_INT(p->column[c].precision, 32);
    CHECK_LE(omega(p, c), SUP_LIMIT);
    CHECK_NEAR(omega(p, c), p->column[c].backward_error, 1e-3 * SUP_EPS);
  }
}

TEST(gmres, solves_with_single_factors_where_refinement_cannot) {
  static const double conds[] = {1e8, 1e9, 3e9, 1e10};
  for (int k = 0; k < 16; k++) {
    const int mode = k % 2 ? SUP_ONE_SMALL : SUP_ARITHMETIC;
    problem p = make(200, 1, mode, conds[k / 4], (uint64_t)k);
    p.options.trans = k / 2 % 2;
    ct_note("mode %d, cond %g, trans %d", mode, conds[k / 4], p.options.trans);
    check_solved_by_gmres(&p, 10);
    CHECK_LE(p.report.certificate_steps, 25);
    CHECK_LE(1, p.report.certificate_steps);
    discard(&p);
  }
}

TEST(gmres, solves_for_several_columns_and_badly_scaled_rows) {
  problem p = make(150, 2, SUP_ONE_SMALL, 1e10, 3);
  check_solved_by_gmres(&p, 10);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a[i + j * p.n] =
          ldexp(p.a[i + j * p.n], (int)(i * 7 % 41 - j * 5 % 31));
  check_solved_by_gmres(&p, 10);
  CHECK_LT(p.report.scale_exponent_min, p.report.scale_exponent_max);
  discard(&p);
}

/* The certificate shows that refinement would not converge. */
TEST(gmres, is_taken_at_once_where_the_certificate_needed_pairs) {
  problem p = make(200, 1, SUP_ONE_SMALL, 2.7e8, 1);
  check_solved_by_gmres(&p, 10);
  CHECK_STR(p.report.reason, "");
  CHECK_EQ_INT(p.report.gmres_steps, p.report.iterations);
  discard(&p);
}

/* Pairs do not help against the rounding of E g at such conditions, nor where
   more than a few directions do not contract. */
TEST(gmres, leaves_what_pairs_cannot_mend_to_double) {
  static const int modes[] = {SUP_ONE_SMALL, SUP_ARITHMETIC, SUP_GEOMETRIC};
  for (int k = 0; k < 12; k++) {
    problem p = make(200, 1, modes[k % 3], k % 2 ? 1e13 : 1e12, (uint64_t)k);
    ct_note("matrix %d", k);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_LE(omega(&p, 0), SUP_LIMIT);
    CHECK_EQ_INT(p.report.gmres_steps > 0, p.report.precision == 32);
    discard(&p);
  }
}

TEST(gmres, gives_way_to_double_where_it_does_not_pay) {
  static const int64_t columns[] = {1, 1, 3};
  static const int64_t orders[] = {50, 200, 200};
  static const double conds[] = {1e9, 1e12, 1e9};
  for (int k = 0; k < 3; k++) {
    problem p = make(orders[k], columns[k],
                     k == 1 ? SUP_LOG_UNIFORM : SUP_ONE_SMALL, conds[k], 6);
    ct_note("n %d, cond %g, columns %d", (int)orders[k], conds[k],
            (int)columns[k]);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_EQ_INT(p.report.precision, 64);
    CHECK_EQ_INT(p.report.gmres_steps, 0);
    CHECK_CONTAINS(p.report.reason, "cannot tell the matrix from a singular");
    discard(&p);
  }
}

/* The certificate needs GMRES; then there are so many columns that the double
   factorization is cheaper. Where there is no memory for it, GMRES solves for
   them. */
TEST(gmres, serves_many_columns_where_there_is_no_memory_for_double) {
  int64_t held = 0;
  for (int limited = 0; limited < 2; limited++) {
    problem p = make(200, 4, SUP_ONE_SMALL, 1e9, 6);
    hone_solver *solver;
    ct_note("limited %d", limited);
    if (limited) /* room for the right-hand sides, but not for 8 n^2 bytes */
      p.options.memory_limit_bytes = held + 4 * p.n * p.n;
    REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
    CHECK_LE(1, p.report.certificate_steps);
    held = p.report.host_bytes;
    CHECK_EQ_INT(sup_solver_solve(solver, 0, 4, p.b, p.n, p.x, p.n, NULL, 0,
                                  p.column, &p.report),
                 HONE_OK);
    CHECK_CONTAINS(p.report.reason, "does not pay for so many columns");
    CHECK_EQ_INT(p.report.precision, limited ? 32 : 64);
    for (int c = 0; c < 4; c++)
      CHECK_LE(omega(&p, c), SUP_LIMIT);
    hone_solver_destroy(&solver);
    discard(&p);
  }
}

TEST(gmres, makes_no_more_steps_than_corrections_are_allowed) {
  problem p = make(200, 1, SUP_ONE_SMALL, 1e9, 8);
  p.options.max_iterations = 1;
  CHECK_EQ_INT(solve(&p), HONE_OK);
  CHECK_LE(p.report.gmres_steps, 1);
  discard(&p);
}

TEST(gmres, never_takes_a_singular_matrix_for_a_regular_one) {
  for (int k = 0; k < 6; k++) {
    problem p = make(120, 1, SUP_ARITHMETIC, 10.0, (uint64_t)k);
    double ones[120];
    const int64_t from = 5 + k, to = 90 - k;
    ct_note("columns %d and %d", (int)from, (int)to);
    for (int64_t i = 0; i < p.n; i++) {
      ones[i] = 1.0;
      p.a[i + to * p.n] = p.a[i + from * p.n]; /* two equal columns, or */
      if (k % 2) /* a column that is the sum of two others */
        p.a[i + to * p.n] += p.a[i + (from + 1) * p.n];
      p.a[i + to * p.n] = (double)(float)p.a[i + to * p.n];
      p.a[i + from * p.n] = (double)(float)p.a[i + from * p.n];
      p.a[i + to * p.n] = p.a[i + from * p.n];
    }
    sup_multiply(p.n, p.a, p.n, false, ones, p.b);
    int st = solve(&p);
    CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR);
    CHECK_EQ_INT(p.report.accepted, 0);
    discard(&p);
  }
}

TEST(gmres, gives_the_same_bits_for_the_same_system) {
  problem p = make(150, 2, SUP_ARITHMETIC, 1e9, 9);
  hone_solver *solver;
  double *first = sup_filled(p.n * 2, 0.0), *third = sup_copy(first, p.n * 2);
  REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
  CHECK_LE(1, p.report.certificate_steps);
  CHECK_EQ_INT(sup_solver_solve(solver, 0, 2, p.b, p.n, first, p.n, NULL, 0,
                                NULL, &p.report),
               HONE_OK);
  CHECK_LE(1, p.report.gmres_steps);
  p.options.trans = HONE_TRANS; /* a different solve in between */
  CHECK_EQ_INT(sup_solver_solve(solver, 1, 2, p.b, p.n, p.x, p.n, NULL, 0, NULL,
                                &p.report),
               HONE_OK);
  CHECK_EQ_INT(p.report.precision, 32);
  CHECK_LE(omega(&p, 1), SUP_LIMIT);
  CHECK_EQ_INT(sup_solver_solve(solver, 0, 2, p.b, p.n, third, p.n, NULL, 0,
                                NULL, &p.report),
               HONE_OK);
  CHECK_MEM_EQ(first, third, (size_t)p.n * 2 * sizeof *first);
  hone_solver_destroy(&solver);
  sup_free(first);
  sup_free(third);
  discard(&p);
}

TEST(gmres, is_counted_in_the_report) {
  problem p = make(150, 1, SUP_ARITHMETIC, 1e9, 9);
  char text[4096], want[64];
  check_solved_by_gmres(&p, 10);
  hone_report_json(&p.report, text, sizeof text);
  snprintf(want, sizeof want, "\"gmres_steps\": %d", p.report.gmres_steps);
  CHECK_CONTAINS(text, want);
  snprintf(want, sizeof want, "\"certificate_steps\": %d",
           p.report.certificate_steps);
  CHECK_CONTAINS(text, want);
  hone_report_text(&p.report, text, sizeof text);
  snprintf(want, sizeof want, "GMRES %d step", p.report.gmres_steps);
  CHECK_CONTAINS(text, want);
  discard(&p);
}

/* On a GPU ----------------------------------------------------------------- */

static bool no_gpu(void) {
  char why[128];
  return !hone_engine_single_cuda.probe(why, sizeof why);
}

TEST(gmres, solves_where_a_device_holds_the_matrix_and_its_factors) {
  if (no_gpu())
    SKIP("no usable CUDA device");
  for (int trans = 0; trans < 2; trans++) {
    problem p = make(150, 2, SUP_ONE_SMALL, 1e10, 11);
    ct_note("trans %d", trans);
    p.options.device = HONE_DEVICE_CUDA;
    p.options.trans = trans;
    check_solved_by_gmres(&p, 10);
    CHECK_LE(p.report.certificate_steps, p.report.device_passes);
    discard(&p);
  }
}

/* Products of one FP16 piece leave three correct digits in the factors. */
TEST(gmres, is_followed_by_accurate_factors_after_coarse_ones_on_a_device) {
  if (no_gpu())
    SKIP("no usable CUDA device");
  problem p = make(300, 1, SUP_GEOMETRIC, 3e5, 12);
  p.options.device = HONE_DEVICE_CUDA;
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.arithmetic = HONE_ARITHMETIC_BF16;
  p.options.tuning = &tuning;
  CHECK_EQ_INT(solve(&p), HONE_OK);
  CHECK_LE(omega(&p, 0), SUP_LIMIT);
  CHECK_EQ_INT(p.report.precision, 32);
  CHECK_CONTAINS(p.report.path, "bf16");
  CHECK_CONTAINS(p.report.path, "fp16x3");
  discard(&p);
}

/* Bounds ------------------------------------------------------------------- */

/* The error bound, beside solutions in quadruple precision. */
TEST(gmres, bounds_the_error_of_every_x) {
  int by_gmres = 0, accepted = 0;
  for (uint64_t seed = 1; seed <= 90; seed++) {
    sup_rng rng = {seed};
    const int64_t n = 64; /* the smallest order for GMRES */
    const int mode = (int)(seed % 5) + 1;
    const double cond = pow(10.0, 9.0 + 6.0 * sup_uniform(&rng));
    problem p = make(n, 2, mode, cond, seed);
    double *hi = sup_filled(2 * n, 0.0), *lo = sup_filled(2 * n, 0.0);
    ct_note("seed %d, n %d, mode %d, cond %g", (int)seed, (int)n, mode, cond);
    CHECK(ref_solve(n, p.a, false, 2, p.b, hi, lo));
    const int st = solve(&p);
    CHECK_LE(0, st);
    for (int64_t c = 0; c < 2; c++) {
      const double error = ref_error(n, p.x + c * n, hi + c * n, lo + c * n);
      CHECK_LE(error, p.column[c].forward_error);
      if (p.column[c].status != HONE_OK)
        continue;
      accepted++;
      CHECK_LE(omega(&p, c), SUP_LIMIT);
      CHECK_LT(p.column[c].forward_error, 1.0);
      CHECK_LT(error, 1.0);
    }
    by_gmres += p.report.gmres_steps > 0;
    sup_free(hi);
    sup_free(lo);
    discard(&p);
  }
  CHECK_LE(20, by_gmres); /* GMRES has to be among them */
  CHECK_LE(150, accepted);
}
