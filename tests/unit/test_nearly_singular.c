/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices with a few singular values below the rounding error of single
   precision, through the public calls: they are solved by deflation, without a
   factorization in double, and those of no certain digit are refused as
   cheaply. */
#include "tests/unit/ct.h"
#include "tests/unit/reference.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

typedef struct problem {
  int64_t n, nrhs;
  double *a, *b, *x, *hi, *lo;
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
  p.hi = sup_filled(n * nrhs, 0.0);
  p.lo = sup_filled(n * nrhs, 0.0);
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
  sup_free(p->hi);
  sup_free(p->lo);
}

static int solve(problem *p) {
  p->options.columns = p->column;
  return hone_solve(p->n, p->nrhs, p->a, p->n, p->b, p->n, p->x, p->n,
                    &p->options, &p->report);
}

/* Checks an accepted answer by single factors, and its bounds, in quadruple
   precision. */
static void check_answer(problem *p) {
  CHECK_EQ_INT(p->report.accepted, p->nrhs);
  CHECK_EQ_INT(p->report.precision, 32);
  CHECK_EQ_INT(p->report.fallback_columns, 0);
  CHECK_LE(1, p->report.certificate_steps);
  CHECK_CONTAINS(p->report.path, " deflated, ");
  REQUIRE(ref_solve(p->n, p->a, p->options.trans, p->nrhs, p->b, p->hi, p->lo));
  for (int64_t c = 0; c < p->nrhs; c++) {
    const double *x = p->x + c * p->n;
    const double omega = sup_backward_error(p->n, p->a, p->n, p->options.trans,
                                            x, p->b + c * p->n);
    const double error = ref_error(p->n, x, p->hi + c * p->n, p->lo + c * p->n);
    CHECK_LE(omega, SUP_LIMIT);
    CHECK_NEAR(omega, p->column[c].backward_error, 1e-3 * SUP_EPS);
    CHECK_LE(error, p->column[c].forward_error);
    CHECK_LE(p->column[c].forward_error, 1e3 * error + 1e-13);
  }
}

TEST(nearly_singular, is_solved_with_single_factors) {
  static const double conds[] = {1e8, 1e9, 1e10, 1e12, 1e13};
  for (int k = 0; k < 20; k++) {
    const int mode = k % 2 ? SUP_ONE_SMALL : SUP_ARITHMETIC;
    problem p = make(64, 1 + k % 3, mode, conds[k / 4], (uint64_t)k);
    p.options.trans = k / 2 % 2;
    ct_note("mode %d, cond %g, trans %d", mode, conds[k / 4], p.options.trans);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    check_answer(&p);
    discard(&p);
  }
}

TEST(nearly_singular, is_solved_in_mixed_units_and_in_extra_precision) {
  for (int k = 0; k < 2; k++) {
    problem p = make(64, 2, SUP_ONE_SMALL, 1e10, (uint64_t)k);
    ct_note("case %d", k);
    if (k == 0)
      for (int64_t j = 0; j < p.n; j++)
        for (int64_t i = 0; i < p.n; i++)
          p.a[i + j * p.n] =
              ldexp(p.a[i + j * p.n], (int)(i * 7 % 41 - j * 5 % 31));
    p.options.extra_precise = k == 1;
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_EQ_INT(p.report.scale_exponent_min < 0, k == 0);
    if (k == 1)
      CHECK_LE(p.report.forward_error, 8.0 * SUP_EPS);
    check_answer(&p);
    discard(&p);
  }
}

/* A has a condition beyond 1 / eps, or is singular: the same answer as by
   double factors, without making them. */
TEST(nearly_singular, is_refused_without_a_double_factorization) {
  static const double conds[] = {1e16, 1e17, 1e30};
  for (int k = 0; k < 6; k++) {
    problem p = make(150, 1, SUP_ONE_SMALL, conds[k % 3], (uint64_t)k);
    ct_note("matrix %d", k);
    for (int64_t i = 0; k >= 3 && i < p.n; i++) { /* dependent columns */
      double *row = p.a + i;
      for (int64_t j = 0; j < p.n; j++)
        row[j * p.n] = ldexp(rint(ldexp(row[j * p.n], 20)), -20);
      row[3 * p.n] = row[7 * p.n] + row[11 * p.n] - row[p.n];
    }
    const int st = solve(&p);
    CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR);
    CHECK_EQ_INT(p.report.accepted, 0);
    CHECK_EQ_INT(p.report.digits, 0);
    CHECK_EQ_INT(p.report.precision, 32);
    CHECK_LE(p.report.rcond, SUP_EPS);
    CHECK_LE(1, p.report.null_count);
    discard(&p);
  }
}

TEST(nearly_singular, gives_the_same_bits_for_the_same_system) {
  problem p = make(100, 2, SUP_ARITHMETIC, 1e11, 9);
  double *first = sup_filled(p.n * 2, 0.0);
  hone_solver *solver;
  REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
  CHECK_EQ_INT(sup_solver_solve(solver, 0, 2, p.b, p.n, first, p.n, NULL, 0,
                                NULL, &p.report),
               HONE_OK);
  CHECK_EQ_INT(sup_solver_solve(solver, 1, 2, p.b, p.n, p.x, p.n, NULL, 0, NULL,
                                &p.report),
               HONE_OK); /* the transpose in between */
  CHECK_EQ_INT(p.report.precision, 32);
  CHECK_EQ_INT(sup_solver_solve(solver, 0, 2, p.b, p.n, p.x, p.n, NULL, 0, NULL,
                                &p.report),
               HONE_OK);
  CHECK_MEM_EQ(first, p.x, (size_t)p.n * 2 * sizeof *first);
  CHECK_EQ_INT(solve(&p), HONE_OK); /* another draw, the same x */
  CHECK_MEM_EQ(first, p.x, (size_t)p.n * 2 * sizeof *first);
  hone_solver_destroy(&solver);
  sup_free(first);
  discard(&p);
}

/* Three rows are changed: the old factors, single or double, serve with three
   directions deflated. After that a row is made equal to another one. */
TEST(nearly_singular, update_of_a_few_rows_keeps_the_factors) {
  for (int precision = HONE_FACTOR_SINGLE; precision <= HONE_FACTOR_DOUBLE;
       precision++) {
    problem p = make(64, 1, SUP_ARITHMETIC, 10.0, 4);
    hone_solver *solver;
    ct_note("precision %d", precision);
    p.options.factor_precision = precision;
    REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
    for (int64_t j = 0; j < p.n; j++)
      for (int64_t i = 20; i < 23; i++)
        p.a[i + j * p.n] = cos((double)(i * j * j));
    CHECK_EQ_INT(hone_solver_update(solver, p.a, p.n, &p.report), HONE_OK);
    CHECK_CONTAINS(p.report.path, "3 directions deflated");
    CHECK_CONTAINS(p.report.path, "of an earlier matrix");
    CHECK_EQ_INT(sup_solver_solve(solver, 0, 1, p.b, p.n, p.x, p.n, NULL, 0,
                                  p.column, &p.report),
                 HONE_OK);
    CHECK_LE(sup_backward_error(p.n, p.a, p.n, 0, p.x, p.b), SUP_LIMIT);
    REQUIRE(ref_solve(p.n, p.a, false, 1, p.b, p.hi, p.lo));
    CHECK_LE(ref_error(p.n, p.x, p.hi, p.lo), p.report.forward_error);
    for (int64_t j = 0; j < p.n; j++)
      p.a[20 + j * p.n] = p.a[50 + j * p.n];
    const int updated = hone_solver_update(solver, p.a, p.n, &p.report);
    if (precision == HONE_FACTOR_SINGLE || updated != HONE_SINGULAR) {
      CHECK_LE(HONE_OK, updated); /* else equal rows leave a pivot of zero */
      CHECK_LE(HONE_ILL_CONDITIONED,
               sup_solver_solve(solver, 0, 1, p.b, p.n, p.x, p.n, NULL, 0,
                                p.column, &p.report));
    }
    CHECK_EQ_INT(p.report.accepted, 0);
    hone_solver_destroy(&solver);
    discard(&p);
  }
}
