/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for reusable solvers and for the columns of a report.
 */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

TEST(contract, reusable_solver_gives_the_same_bits_as_hone_solve) {
  for (int64_t n = 9; n <= 150; n += 141) {
    sys s = sys_make(n, 3);
    hone_column columns[3];
    hone_solver *solver;
    s.options.deterministic = 1;
    CHECK_EQ_INT(sys_call(&s), HONE_OK);
    double *x = sup_filled(n * 3, UNTOUCHED);
    REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, n, &s.report), HONE_OK);
    for (int again = 0; again < 2; again++) {
      CHECK_EQ_INT(sup_solver_solve(solver, HONE_NO_TRANS, 3, s.b, n, x, n,
                                    NULL, 0, columns, &s.report),
                   HONE_OK);
      CHECK_MEM_EQ(x, s.x, (size_t)(n * 3) * sizeof *x);
    }
    for (int c = 0; c < 3; c++)
      CHECK_EQ_INT(columns[c].status, HONE_OK);
    CHECK_EQ_INT(sup_solver_solve(solver, HONE_TRANS, 1, s.b, n, x, n, s.x, n,
                                  NULL, NULL),
                 HONE_OK);
    CHECK_LE(sup_backward_error(n, s.a, n, true, x, s.b), SUP_LIMIT);
    hone_solver_destroy(&solver);
    CHECK(solver == NULL);
    sup_free(x);
    sys_discard(&s);
  }
}

TEST(contract, columns_and_report_agree) {
  sys s = sys_make(150, 5);
  hone_column columns[5];
  memset(columns, 0xff, sizeof columns);
  s.options.columns = columns;
  sys_expect(&s, HONE_OK);
  double backward = 0.0, normwise = 0.0, forward = 0.0;
  int32_t iterations = 0, digits = 16;
  for (int c = 0; c < 5; c++) {
    CHECK_EQ_INT(columns[c].status, HONE_OK);
    digits = HONE_MIN(digits, columns[c].digits);
    CHECK_NEAR(
        columns[c].backward_error,
        sup_backward_error(150, s.a, 150, false, s.x + 150 * c, s.b + 150 * c),
        1e-3 * SUP_EPS);
    backward = fmax(backward, columns[c].backward_error);
    normwise = fmax(normwise, columns[c].normwise_error);
    forward = fmax(forward, columns[c].forward_error);
    iterations = HONE_MAX(iterations, columns[c].iterations);
  }
  CHECK_NEAR(s.report.backward_error, backward, 0.0);
  CHECK_NEAR(s.report.normwise_error, normwise, 0.0);
  CHECK_NEAR(s.report.forward_error, forward, 0.0);
  CHECK_EQ_INT(s.report.iterations, iterations);
  CHECK_EQ_INT(s.report.digits, digits);
  CHECK_EQ_INT(s.report.accepted, 5);
  CHECK_NEAR(s.report.tolerance, SUP_LIMIT, 0.0);
  CHECK_EQ_INT(s.report.bad_row, -1);
  CHECK_EQ_INT(s.report.bad_col, -1);
  CHECK_STR(s.report.reason, "");
  CHECK(s.report.path[0] != '\0' && s.report.device[0] != '\0');
  sys_discard(&s);
}

/* One solve of a kept solver, with bounds on every entry of x. */
typedef struct bounded {
  double *x, *bars; /* room for MOST columns of ORDER complex numbers */
  double forward, rcond;
} bounded;

enum { ORDER = 420, MOST = 20 };

static void solve_bounded(const sys *s, either_solver *solver, int64_t nrhs,
                          int trans, bounded *out) {
  hone_options o = HONE_OPTIONS_INIT;
  hone_report r = HONE_REPORT_INIT;
  const either_call call = {s->parts, s->n,   nrhs,   s->a, s->lda,
                            s->b,     s->ldb, out->x, s->n};
  o.trans = trans;
  o.error_bounds = out->bars;
  o.ld_error_bounds = s->n;
  CHECK_EQ_INT(either_solver_solve(solver, &call, &o, &r), HONE_OK);
  out->forward = r.forward_error;
  out->rcond = r.rcond;
}

/* Entries of x then differ by 2^150 in scaled variables, so that its bounds
   need random vectors of their own. */
static void spread_units(sys *s) {
  for (int64_t k = 0; k < s->parts * s->n * s->n; k++)
    s->a[k] = ldexp(s->a[k], (int)(k / s->parts / s->n % 6) * 30);
  sys_set_consistent(s);
}

static void check_history(int parts, int64_t n, double cond, bool spread) {
  enum { SOLVES = 6 };
  static const struct {
    int64_t nrhs;
    int trans;
  } solve[SOLVES] = {{1, 0}, {1, 1}, {MOST, 1}, {3, 0}, {MOST, 0}, {1, 0}};
  sys s = sys_make_of(parts, n, MOST);
  bounded fresh, kept;
  bounded *all[] = {&fresh, &kept};
  for (int k = 0; k < 2; k++) {
    all[k]->x = sup_filled(parts * n * MOST, UNTOUCHED);
    all[k]->bars = sup_filled(n * MOST, UNTOUCHED);
  }
  s.options.deterministic = 1;
  sys_set_cond(&s, 5, 3, cond);
  if (spread)
    spread_units(&s);
  either_solver solver = sys_solver(&s);
  CHECK_EQ_INT(sys_factor(&s, &solver), HONE_OK);
  for (int k = 0; k < SOLVES; k++) {
    const size_t numbers = (size_t)(n * solve[k].nrhs);
    either_solver other = sys_solver(&s);
    ct_note("n %d, parts %d, condition %g, spread %d, solve %d", (int)n, parts,
            cond, spread, k);
    CHECK_EQ_INT(sys_factor(&s, &other), HONE_OK);
    solve_bounded(&s, &solver, solve[k].nrhs, solve[k].trans, &kept);
    solve_bounded(&s, &other, solve[k].nrhs, solve[k].trans, &fresh);
    CHECK_MEM_EQ(kept.x, fresh.x, numbers * (size_t)parts * sizeof *kept.x);
    CHECK_MEM_EQ(kept.bars, fresh.bars, numbers * sizeof *kept.bars);
    CHECK_MEM_EQ(&kept.forward, &fresh.forward, sizeof kept.forward);
    CHECK_MEM_EQ(&kept.rcond, &fresh.rcond, sizeof kept.rcond);
    either_destroy(&other);
  }
  for (int k = 0; k < 2; k++) {
    sup_free(all[k]->x);
    sup_free(all[k]->bars);
  }
  either_destroy(&solver);
  sys_discard(&s);
}

TEST(contract, deterministic_bounds_do_not_depend_on_earlier_solves) {
  for (int parts = 1; parts <= 2; parts++)
    for (int64_t n = 30; n <= ORDER; n += ORDER - 30) {
      check_history(parts, n, 1e2, false);
      check_history(parts, n, 1e2, true);
      check_history(parts, n, 1e10, false);
    }
}

/* Where the tolerance is so loose that any x is within it, one that says
   nothing is not accepted. */
TEST(contract, a_start_of_no_use_is_dropped_at_any_tolerance) {
  static const double a[4] = {2.0, 1.0, 1.0, 3.0}, b[2] = {3.0, 5.0};
  static const double starts[] = {0.0, 1e20, -1e300};
  for (int k = 0; k < 6; k++) {
    const double x0[2] = {0.9 * starts[k % 3], -0.6 * starts[k % 3]};
    double x[2];
    hone_options o = HONE_OPTIONS_INIT;
    o.tolerance = k < 3 ? 1.0 : 0.5;
    o.factor_precision = HONE_FACTOR_DOUBLE;
    o.x0 = x0;
    o.ldx0 = 2;
    ct_note("x0 about %g, tolerance %g", starts[k % 3], o.tolerance);
    CHECK_EQ_INT(hone_solve(2, 1, a, 2, b, 2, x, 2, &o, NULL), HONE_OK);
    CHECK_NEAR(x[0], 0.8, 1e-12);
    CHECK_NEAR(x[1], 1.4, 1e-12);
  }
}
