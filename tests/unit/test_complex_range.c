/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems at the upper end of the range of double, where a modulus
   overflows although both parts are finite. */
#include "tests/unit/complex_system.h"

#include "base/complex_values.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const double LIMIT = 4.0 * 0x1p-53 * (1.0 + 1e-10);

/* Its modulus is 2.1e308, and DBL_MAX is 1.8e308. */
static hone_complex beyond(void) { return CMPLX(-1.5e308, 1.5e308); }

/* The arrays in which an entry is beyond double. */
enum { IN_A, IN_B, IN_X0, PLACES };

static void refuse(int64_t n, int where, int layout) {
  static const char *const texts[] = {
      "the modulus of A(3, 1) is beyond double",
      "the modulus of b(3, 1) is beyond double",
      "the modulus of options.x0(3, 1) is beyond double"};
  hone_complex *array[PLACES] = {cs_random(n, n, 1), cs_random(n, 2, 2),
                                 cs_random(n, 2, 3)};
  hone_complex *x = cs_random(n, 2, 4), *was = cs_random(n, 2, 4);
  hone_report report = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  o.layout = layout;
  o.x0 = (const double *)array[IN_X0];
  o.ldx0 = n;
  array[where][where == IN_A && layout ? 1 + 3 * n : 3 + n] = beyond();
  CHECK_EQ_INT(
      hone_z_solve(n, 2, array[IN_A], n, array[IN_B], n, x, n, &o, &report),
      where == IN_A ? HONE_NOT_FINITE_A : HONE_NOT_FINITE_B);
  CHECK_EQ_INT(report.bad_row, 3);
  CHECK_EQ_INT(report.bad_col, 1);
  CHECK_STR(report.reason, texts[where]);
  CHECK_MEM_EQ(x, was, (size_t)(2 * n) * sizeof *x);
  for (int k = 0; k < PLACES; k++)
    free(array[k]);
  free(x);
  free(was);
}

TEST(complex_range, refuses_entries_whose_modulus_is_beyond_double) {
  static const int64_t orders[] = {4, 40, 300};
  for (int k = 0; k < 3; k++)
    for (int where = 0; where < PLACES; where++)
      for (int layout = 0; layout < 2; layout++) {
        ct_note("n %d, array %d, layout %d", (int)orders[k], where, layout);
        refuse(orders[k], where, layout);
      }
}

TEST(complex_range, takes_any_entry_whose_modulus_is_a_double) {
  const int64_t n = 30;
  for (int in_a = 0; in_a < 2; in_a++) {
    hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, 1, 2);
    hone_complex *x = cs_random(n, 1, 3);
    const cs_problem p = {.n = n, .lda = n, .a = a};
    for (int64_t i = 0; i < n; i++) /* |x| stays below |b| */
      a[i + i * n] += 40.0;
    b[0] = CMPLX(1.2e308, -1.2e308); /* its modulus is 1.7e308 */
    b[1] = CMPLX(0.0, DBL_MAX);
    for (int64_t i = 0; i < 2 && in_a; i++)
      a[i + i * n] = b[i], b[i] *= 0.25;
    CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, NULL, NULL), HONE_OK);
    CHECK_LE(cs_backward_error(&p, x, b), LIMIT);
    free(a);
    free(b);
    free(x);
  }
}

/* A x = b with A = I / 2 or, not diagonal, A = I / 2 - e_2 e_1^T / 4, where x_2
   is zero. In the second column |x_1| is beyond double, b_1 is not. */
TEST(complex_range, returns_no_x_whose_modulus_is_beyond_double) {
  for (int dense = 0; dense < 2; dense++)
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      const hone_complex one = CMPLX(0.6e308, 0.6e308);
      const hone_complex two = CMPLX(0.75e308, 0.75e308);
      const hone_complex a[] = {0.5, dense ? -0.25 : 0.0, 0.0, 0.5};
      const hone_complex b[] = {one, -0.5 * dense * one, two,
                                -0.5 * dense * two};
      hone_complex x[] = {7.0, 7.0, 7.0, 7.0};
      hone_column columns[2];
      hone_options o = HONE_OPTIONS_INIT;
      o.criterion = criterion;
      o.columns = columns;
      o.structure = dense ? HONE_STRUCTURE_GENERAL : HONE_STRUCTURE_AUTO;
      ct_note("dense %d, criterion %d", dense, criterion);
      CHECK_GE(hone_z_solve(2, 2, a, 2, b, 2, x, 2, &o, NULL),
               HONE_NOT_CONVERGED);
      CHECK_EQ_INT(columns[0].status, HONE_OK);
      CHECK_EQ_INT(columns[1].status, HONE_OVERFLOW);
      CHECK(x[0] == 2.0 * one && x[1] == 0.0);
      CHECK(x[2] == 7.0 && x[3] == 7.0);
    }
}

/* Diagonal matrices, and permuted ones that are solved by LU, of condition 1;
   with entries of modulus DBL_MAX, and of any other, rounded. */
TEST(complex_range, reports_no_rcond_above_1) {
  int ones = 0;
  for (int k = 0; k < 120; k++) {
    const int64_t n = 1 + k % 3;
    hone_complex *a = cs_random(n, n, (uint64_t)k), *b = cs_random(n, 1, 2);
    hone_complex *x = cs_random(n, 1, 3);
    const hone_complex v = a[0] / cabs(a[0]) * (k < 60 ? DBL_MAX : 1.0 + k);
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    o.structure = k % 2 ? HONE_STRUCTURE_GENERAL : HONE_STRUCTURE_AUTO;
    o.factor_precision = k / 4 % 3;
    for (int64_t i = 0; i < n * n; i++)
      a[i] = i / n == (k % 4 < 2 ? i % n : n - 1 - i % n) ? 0.999 * v : 0.0;
    ct_note("case %d", k);
    CHECK_GE(hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_LE(report.rcond, 1.0);
    CHECK_GE(report.rcond, 1.0 - 1e-6);
    ones += report.rcond >= 1.0;
    free(a);
    free(b);
    free(x);
  }
  CHECK(ones > 20);
}
