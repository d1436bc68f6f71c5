/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES-IR with single-precision factors through the public calls: matrices for
   which refinement is too slow, real and complex. The pairs that it keeps are
   tested in test_gmres_space.c. Matrices with a few small singular values are
   solved by deflation: test_nearly_singular.c. */
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Public calls ------------------------------------------------------------- */

typedef struct problem {
  int64_t n, nrhs;
  hone_entry *a, *b, *x;
  hone_options options;
  hone_column column[4];
  hone_report report;
} problem;

/* Complex factors in single precision are about twice as wrong: the condition
   is half of what is said. */
static problem make(int64_t n, int64_t nrhs, int mode, double cond,
                    uint64_t seed) {
  problem p = {.n = n, .nrhs = nrhs};
  sup_rng rng = {seed};
  p.a = entries_filled(n * n, 0.0);
  p.b = entries_filled(n * nrhs, 0.0);
  p.x = entries_filled(n * nrhs, 77.0);
  entries_matrix_cond(&rng, n, mode, cond / HONE_PARTS, p.a, n);
  entries_random(&rng, n, nrhs, p.b, n);
  p.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p.report, sizeof p.report);
  p.options.factor_precision = HONE_FACTOR_SINGLE;
  p.options.device = HONE_DEVICE_CPU;
  p.options.threads = 1;
  p.options.deterministic = 1;
  return p;
}

static void discard(problem *p) {
  entries_free(p->a);
  entries_free(p->b);
  entries_free(p->x);
}

static int solve(problem *p) {
  p->options.columns = p->column;
  return hone_solve(p->n, p->nrhs, p->a, p->n, p->b, p->n, p->x, p->n,
                    &p->options, &p->report);
}

/* op(A), without gaps. */
static hone_entry *op_of(const problem *p) {
  hone_entry *op = entries_filled(p->n * p->n, 0.0);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->n; i++) {
      const hone_entry v = p->options.trans == HONE_NO_TRANS
                               ? p->a[i + j * p->n]
                               : p->a[j + i * p->n];
      op[i + j * p->n] = p->options.trans == HONE_CONJ_TRANS ? hone_conj(v) : v;
    }
  return op;
}

static double omega(const problem *p, int64_t c) {
  hone_entry *op = op_of(p);
  const double omega = entries_backward_error(p->n, op, p->n, false,
                                              p->x + c * p->n, p->b + c * p->n);
  entries_free(op);
  return omega;
}

/* The error of column c by the reference, which solves to more than twice
   double precision. */
static double error(const problem *p, int64_t c) {
  hone_entry *op = op_of(p);
  const double distance =
      entries_distance(p->n, op, p->x + c * p->n, p->b + c * p->n);
  entries_free(op);
  return distance;
}

/* Returns true if GMRES took part. Which side of its limit a system is on
   depends on rounding. */
static bool solved_by_gmres(problem *p, int steps) {
  char want[64];
  CHECK_EQ_INT(solve(p), HONE_OK);
  CHECK_EQ_INT(p->report.accepted, p->nrhs);
  CHECK_EQ_INT(p->report.precision, 32);
  CHECK_EQ_INT(p->report.fallback_columns, 0);
  CHECK_LE(p->report.gmres_steps, steps);
  CHECK_CONTAINS(p->report.path, "single LU");
  snprintf(want, sizeof want, "GMRES %d step%s", p->report.gmres_steps,
           p->report.gmres_steps == 1 ? "" : "s");
  if (p->report.gmres_steps > 0)
    CHECK_STR(strstr(p->report.path, "GMRES "), want); /* and nothing follows */
  for (int64_t c = 0; c < p->nrhs; c++) {
    CHECK_EQ_INT(p->column[c].precision, 32);
    CHECK_LE(omega(p, c), SUP_LIMIT);
    CHECK_NEAR(omega(p, c), p->column[c].backward_error, 1e-3 * SUP_EPS);
    CHECK_LE(error(p, c), p->column[c].forward_error);
  }
  return p->report.gmres_steps > 0;
}

/* With A, A^T and, where it is another matrix, A^H. */
TEST_OF(gmres, solves_with_single_factors_where_refinement_cannot) {
  enum { OPS = HONE_PARTS + 1, CONDS = 4 };
  static const double conds[CONDS] = {5e7, 6e7, 7e7, 8e7};
  int solved[OPS] = {0}, all = 0;
  for (int k = 0; k < CONDS * OPS; k++) {
    problem p = make(100, 1, SUP_GEOMETRIC, conds[k / OPS], (uint64_t)k);
    p.options.trans = k % OPS;
    ct_note("cond %g, trans %d", conds[k / OPS], p.options.trans);
    solved[k % OPS] += solved_by_gmres(&p, 10);
    CHECK_EQ_INT(p.report.certificate_steps, 0);
    discard(&p);
  }
  for (int op = 0; op < OPS; op++) {
    CHECK_LE(1, solved[op]);
    all += solved[op];
  }
  CHECK_LE(5, all);
}

TEST_OF(gmres, solves_for_several_columns_and_badly_scaled_rows) {
  int solved = 0;
  for (int k = 0; k < 24; k++) {
    problem p = make(100, 2, SUP_ARITHMETIC, 1.5e7, (uint64_t)k);
    const bool scaled = k % 2;
    ct_note("matrix %d", k);
    for (int64_t j = 0; scaled && j < p.n; j++)
      for (int64_t i = 0; i < p.n; i++)
        p.a[i + j * p.n] *= ldexp(1.0, (int)(i * 7 % 41 - j * 5 % 31));
    solved += solved_by_gmres(&p, 10);
    CHECK_EQ_INT(p.report.scale_exponent_min < p.report.scale_exponent_max,
                 scaled);
    discard(&p);
  }
  CHECK_LE(3, solved); /* how many depends on roundings */
}

/* Too many directions do not contract. */
TEST_OF(gmres, leaves_what_it_cannot_mend_to_double) {
  for (int k = 0; k < 6; k++) {
    problem p = make(200, 1, SUP_GEOMETRIC, k % 2 ? 1e13 : 1e12, (uint64_t)k);
    ct_note("matrix %d", k);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_LE(omega(&p, 0), SUP_LIMIT);
    CHECK_EQ_INT(p.report.precision, 64);
    CHECK_EQ_INT(p.report.gmres_steps, 0);
    /* mostly the pivots show it, else the certificate */
    if (strstr(p.report.reason, "the pivots fall too fast") == NULL)
      CHECK_CONTAINS(p.report.reason, "cannot tell the matrix from a singular");
    discard(&p);
  }
}

/* At order 50, and for three columns at order 100. */
TEST_OF(gmres, gives_way_to_double_where_it_does_not_pay) {
  static const int64_t columns[] = {1, 3}, orders[] = {50, 100};
  static const double conds[] = {1.5e8, 8e7};
  for (int k = 0; k < 2; k++) {
    problem p = make(orders[k], columns[k], SUP_GEOMETRIC, conds[k], 6);
    ct_note("n %d, cond %g, columns %d", (int)orders[k], conds[k],
            (int)columns[k]);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_EQ_INT(p.report.precision, 64);
    CHECK_EQ_INT(p.report.gmres_steps, 0);
    CHECK_CONTAINS(p.report.reason, "single LU: ");
    discard(&p);
  }
}

TEST_OF(gmres, makes_no_more_steps_than_corrections_are_allowed) {
  problem p = make(100, 1, SUP_GEOMETRIC, 8e7, 8);
  p.options.max_iterations = 1;
  CHECK_EQ_INT(solve(&p), HONE_OK);
  CHECK_LE(p.report.gmres_steps, 1);
  discard(&p);
}

TEST_OF(gmres, never_takes_a_singular_matrix_for_a_regular_one) {
  for (int k = 0; k < 6; k++) {
    problem p = make(120, 1, SUP_ARITHMETIC, 10.0, (uint64_t)k);
    hone_entry ones[120];
    const int64_t from = 5 + k, to = 90 - k;
    ct_note("columns %d and %d", (int)from, (int)to);
    for (int64_t i = 0; i < p.n; i++) {
      ones[i] = 1.0;
      p.a[i + to * p.n] = p.a[i + from * p.n]; /* two equal columns, or */
      if (k % 2) /* a column that is the sum of two others */
        p.a[i + to * p.n] += p.a[i + (from + 1) * p.n];
      p.a[i + to * p.n] = (hone_entry)(hone_single)p.a[i + to * p.n];
      p.a[i + from * p.n] = (hone_entry)(hone_single)p.a[i + from * p.n];
      p.a[i + to * p.n] = p.a[i + from * p.n];
    }
    entries_multiply(p.n, p.a, p.n, false, ones, p.b);
    int st = solve(&p);
    CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR);
    CHECK_EQ_INT(p.report.accepted, 0);
    discard(&p);
  }
}

static int solve_again(hone_solver *solver, problem *p, int trans,
                       hone_entry *x) {
  hone_options options = HONE_OPTIONS_INIT;
  options.trans = trans;
  return hone_solver_solve(solver, 1, p->b, p->n, x, p->n, &options,
                           &p->report);
}

TEST_OF(gmres, gives_the_same_bits_for_the_same_system) {
  problem p = make(100, 1, SUP_GEOMETRIC, 7e7, 9);
  hone_solver *solver;
  hone_entry *first = entries_filled(p.n, 0.0);
  hone_entry *third = entries_copy(first, p.n);
  REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
  CHECK_EQ_INT(solve_again(solver, &p, 0, first), HONE_OK);
  CHECK_LE(1, p.report.gmres_steps);
  p.options.trans = HONE_TRANS; /* a different solve in between */
  CHECK_EQ_INT(solve_again(solver, &p, 1, p.x), HONE_OK);
  CHECK_EQ_INT(p.report.precision, 32);
  CHECK_LE(omega(&p, 0), SUP_LIMIT);
  CHECK_EQ_INT(solve_again(solver, &p, 0, third), HONE_OK);
  CHECK_MEM_EQ(first, third, (size_t)p.n * sizeof *first);
  hone_solver_destroy(&solver);
  entries_free(first);
  entries_free(third);
  discard(&p);
}

TEST_OF(gmres, is_counted_in_the_report) {
  problem p = make(100, 1, SUP_GEOMETRIC, 7e7, 9);
  char text[4096], want[64];
  CHECK(solved_by_gmres(&p, 10));
  hone_report_json(&p.report, text, sizeof text);
  snprintf(want, sizeof want, "\"gmres_steps\": %d", p.report.gmres_steps);
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

TEST_OF(gmres, solves_where_a_device_holds_the_matrix_and_its_factors) {
  if (no_gpu())
    SKIP("no usable CUDA device");
  int solved = 0;
  for (int k = 0; k < 12; k++) {
    problem p =
        make(100, 2, SUP_ARITHMETIC, 3e6 * (double)(1 << k / 2), (uint64_t)k);
    ct_note("matrix %d", k);
    p.options.device = HONE_DEVICE_CUDA;
    p.options.trans = k % 2;
    solved += solved_by_gmres(&p, 25);
    discard(&p);
  }
  CHECK_LE(2, solved);
}

/* Products of one FP16 piece leave three correct digits in the factors. */
TEST_OF(gmres, is_followed_by_accurate_factors_after_coarse_ones_on_a_device) {
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
