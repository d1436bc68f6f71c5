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
