/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A foreign program, built with the installed library. The file is both C and
 * C++. The program solves 2x + y = 3 and x + 3y = 5 by hone_solve and by a
 * solver, and checks that header and library have the same version.
 */
#include <hone.h>

#include <stdio.h>
#include <string.h>

static int by_solver(const double *a, const double *b, double *x) {
  hone_solver *solver = NULL;
  hone_options options = HONE_OPTIONS_INIT;
  int status = hone_solver_create(&solver, 2, &options);
  if (status == HONE_OK)
    status = hone_solver_factor(solver, a, 2, NULL);
  if (status == HONE_OK)
    status = hone_solver_solve(solver, 1, b, 2, x, 2, NULL, NULL);
  hone_solver_destroy(&solver);
  return status;
}

int main(void) {
  const double a[] = {2, 1, 1, 3}, b[] = {3, 5}; /* A by columns */
  double x[2] = {0, 0}, y[2] = {0, 0};
  char version[40];
  hone_report report = HONE_REPORT_INIT;
  int first = hone_solve(2, 1, a, 2, b, 2, x, 2, NULL, &report);
  int second = by_solver(a, b, y);
  (void)snprintf(version, sizeof version, "%d.%d.%d", HONE_VERSION_MAJOR,
                 HONE_VERSION_MINOR, HONE_VERSION_PATCH);
  if (strcmp(version, hone_version()) != 0) {
    printf("the header is of version %s, the library of %s\n", version,
           hone_version());
    return 1;
  }
  if (first != HONE_OK || second != HONE_OK || report.accepted != 1) {
    printf("%s; %s\n", hone_status_text(first), hone_status_text(second));
    return 1;
  }
  printf("%g %g, %g %g\n", x[0], x[1], y[0], y[1]);
  return 0;
}
