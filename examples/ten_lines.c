/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest program, shown in README: 2x + y = 3 and x + 3y = 5. */
#include "api/hone.h"
#include <stdio.h>
int main(void) {
  double a[] = {2, 1, 1, 3}, b[] = {3, 5}, x[2] = {0}; /* A by columns */
  hone_report report = HONE_REPORT_INIT;
  int status = hone_solve(2, 1, a, 2, b, 2, x, 2, NULL, &report);
  printf("x = %g, y = %g: %s (backward error %.1e)\n", x[0], x[1],
         hone_status_text(status), report.backward_error);
  return status != HONE_OK;
}
