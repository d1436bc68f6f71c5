/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h at the ends of the range: NaN and Inf in the input,
   entries and solutions that overflow or underflow, and any start x0. */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* NaN and Inf -------------------------------------------------------------- */

TEST(contract, says_where_a_is_not_finite) {
  static const double bad[] = {(double)NAN, (double)INFINITY,
                               -(double)INFINITY};
  static const int64_t places[][2] = {{0, 0}, {7, 2}, {2, 7}, {8, 8}};
  for (int layout = 0; layout < 2; layout++)
    for (int k = 0; k < 12; k++) {
      const int64_t *at = places[k / 3];
      sys s = sys_make_padded(9, 1, 2);
      ct_note("layout %d, %g at %d, %d", layout, bad[k % 3], (int)at[0],
              (int)at[1]);
      s.options.layout = layout;
      s.a[layout ? at[1] + at[0] * s.lda : at[0] + at[1] * s.lda] = bad[k % 3];
      sys_expect(&s, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(s.report.bad_row, at[0]);
      CHECK_EQ_INT(s.report.bad_col, at[1]);
      sys_discard(&s);
    }
}

TEST(contract, says_where_b_or_x0_is_not_finite) {
  static const double bad[] = {(double)NAN, (double)INFINITY,
                               -(double)INFINITY};
  for (int k = 0; k < 6; k++) {
    sys s = sys_make(9, 3);
    double *x0 = sup_filled(27, 0.0);
    ct_note("%g in %s", bad[k % 3], k < 3 ? "b" : "x0");
    s.options.x0 = x0;
    s.options.ldx0 = 9;
    (k < 3 ? s.b : x0)[4 + 2 * 9] = bad[k % 3];
    sys_expect(&s, HONE_NOT_FINITE_B);
    CHECK_EQ_INT(s.report.bad_row, 4);
    CHECK_EQ_INT(s.report.bad_col, 2);
    sup_free(x0);
    sys_discard(&s);
  }
}

/* Large finite entries are accepted even where their sums overflow. */
TEST(contract, does_not_mistake_sums_that_overflow_for_infinity) {
  sys s = sys_make(20, 1);
  for (int64_t i = 0; i < 400; i++)
    s.a[i] = s.a[i] * 0x1.8p1020;
  sys_set_consistent(&s);
  for (int64_t i = 0; i < 20; i++)
    CHECK(isfinite(s.b[i]));
  sys_expect(&s, HONE_OK);
  for (int64_t i = 0; i < 20; i++)
    s.b[i] = (i % 2 ? -DBL_MAX : DBL_MAX);
  sys_solve(&s);
  sys_discard(&s);
}

/* The range of double ------------------------------------------------------ */

/* One entry far outside the range of single precision beside ordinary ones. */
TEST(contract, solves_with_entries_that_overflow_or_vanish_in_single) {
  static const double entries[] = {1e39,   -1e39, 1e-42,  3e-306, 5e-324,
                                   1e-310, 1e150, -1e300, 1e-200};
  for (int k = 0; k < 9 * 2 * 2; k++) {
    sys s = sys_make(k % 2 ? 40 : 6, 2);
    bool diagonal = k & 2;
    ct_note("%g %s, n %d", entries[k / 4], diagonal ? "on the diagonal" : "off",
            (int)s.n);
    s.a[diagonal ? 3 + 3 * s.n : 1 + 4 * s.n] = entries[k / 4];
    s.a[0] = 5.0;
    s.options.factor_precision = HONE_FACTOR_SINGLE;
    sys_set_consistent(&s);
    sys_expect(&s, HONE_OK);
    sys_discard(&s);
  }
}

TEST(contract, solves_a_row_of_3e_306_next_to_a_5) {
  static const double rows[] = {3e-306, 1e-42, 1e39, 1e290};
  for (int k = 0; k < 16; k++) {
    sys s = sys_make(k & 4 ? 30 : 2, 1);
    ct_note("%s of %g, n %d", k & 8 ? "column" : "row", rows[k % 4], (int)s.n);
    s.a[0] = 5.0;
    for (int64_t j = 0; j < s.n; j++)
      s.a[k & 8 ? j + s.n : 1 + j * s.n] *= rows[k % 4];
    sys_set_consistent(&s);
    sys_expect(&s, HONE_OK);
    sys_discard(&s);
  }
}

TEST(contract, solves_matrices_and_right_hand_sides_of_any_magnitude) {
  static const struct {
    double a, b;
  } cases[] = {{1e300, 1.0},     {1e-300, 1.0},    {1e300, 1e300},
               {1e-300, 1e-300}, {1e-305, 1e-305}, {1.0, 1e-60},
               {1.0, 1e200},     {1.0, 1e300},     {1e-300, 1e-310},
               {1e-50, 1.0},     {1e-200, 1e-150}, {1e150, 1e-100},
               {0x1p-60, 1e250}, {1e-42, 1.0},     {1e39, 1.0}};
  for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
    sys s = sys_make(k % 2 ? 140 : 10, 2);
    ct_note("A %g, b %g, n %d", cases[k / 2].a, cases[k / 2].b, (int)s.n);
    sys_scale(&s, cases[k / 2].a, cases[k / 2].b);
    sys_expect(&s, HONE_OK);
    sys_discard(&s);
  }
}

/* Subnormal entries have few bits, but count as they are. */
TEST(contract, solves_a_matrix_of_subnormal_numbers) {
  for (int k = 0; k < 4; k++) {
    sys s = sys_make(k % 2 ? 150 : 12, 1);
    ct_note("n %d, x about 1e%d", (int)s.n, k < 2 ? 0 : 20);
    sys_scale(&s, 1e-310, k < 2 ? 1e-310 : 1e-290);
    sys_expect(&s, HONE_OK);
    sys_discard(&s);
  }
}

/* If x is subnormal, a backward error of 4 eps is out of reach, and the status
   says so. */
TEST(contract, does_not_accept_a_solution_that_is_subnormal) {
  for (int k = 0; k < 3; k++) {
    sys s = sys_make(20, 1);
    ct_note("case %d", k);
    sys_scale(&s, k == 0 ? 1.0 : 1e100, k == 2 ? 1e-250 : 1e-310);
    CHECK(sys_solve(&s) != HONE_OK);
    sys_discard(&s);
  }
}

TEST(contract, finds_a_solution_near_1e50) {
  sys s = sys_make(50, 1);
  sys_scale(&s, 1e-25, 1e25);
  sys_expect(&s, HONE_OK);
  double size = 0.0;
  for (int64_t i = 0; i < s.n; i++)
    size = fmax(size, fabs(s.x[i]));
  CHECK_LE(1e47, size);
  CHECK_LE(size, 1e52);
  sys_discard(&s);
}

TEST(contract, says_that_a_solution_overflows) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = sys_make(20, 1);
    s.options.factor_precision = start;
    sys_scale(&s, 1e-200, 1e200);
    sys_expect(&s, HONE_OVERFLOW);
    sys_discard(&s);
  }
}

TEST(contract, solves_the_columns_that_do_not_overflow) {
  sys s = sys_make(20, 3);
  hone_column columns[3];
  sys_scale(&s, 1e-200, 1.0);
  for (int64_t i = 0; i < 20; i++)
    s.b[i + 20] *= 1e200;
  s.options.columns = columns;
  CHECK_EQ_INT(sys_call(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.report.accepted, 2);
  for (int c = 0; c < 3; c++) {
    CHECK_EQ_INT(columns[c].status, c == 1 ? HONE_OVERFLOW : HONE_OK);
    if (c != 1)
      CHECK_LE(
          sup_backward_error(20, s.a, 20, false, s.x + c * 20, s.b + c * 20),
          SUP_LIMIT);
  }
  CHECK(sup_untouched(s.x + 20, 20, UNTOUCHED));
  sys_discard(&s);
}

/* Zeros may be negative, as those of LAPACK: their signs depend on the signs of
   pivots and on the order of the sums, which differs between instruction sets
   (and so under valgrind, which has no AVX-512). */
static bool all_zero(const double *x, int64_t count) {
  int64_t zeros = 0;
  for (int64_t i = 0; i < count; i++)
    zeros += fabs(x[i]) <= 0.0;
  return zeros == count;
}

TEST(contract, solves_for_a_right_hand_side_of_zeros) {
  sys s = sys_make(150, 3);
  memset(s.b + 150, 0, 150 * sizeof *s.b);
  sys_expect(&s, HONE_OK);
  CHECK(all_zero(s.x + 150, 150));
  for (int criterion = 1; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    s.options.criterion = criterion;
    ct_note("criterion %d", criterion);
    sys_expect(&s, HONE_OK);
    CHECK(all_zero(s.x + 150, 150));
  }
  sys_discard(&s);
}

/* Many callers pass zeros as the start. */
TEST(contract, solves_from_any_finite_start) {
  static const double starts[] = {0.0, 1.0, -1e300, DBL_MAX, 1e-310, DBL_MIN};
  for (int k = 0; k < 6 * 3 * 2; k++) {
    sys s = sys_make(k % 2 ? 150 : 9, 2);
    double *x0 = sup_filled(s.n * 2, starts[k / 6]);
    ct_note("x0 = %g, criterion %d, n %d", starts[k / 6], k / 2 % 3, (int)s.n);
    s.options.criterion = k / 2 % 3;
    s.options.x0 = x0;
    s.options.ldx0 = s.n;
    sys_expect(&s, HONE_OK);
    CHECK(sup_untouched(x0, s.n * 2, starts[k / 6]));
    sup_free(x0);
    sys_discard(&s);
  }
}

/* Where x is subnormal or the norm of A beyond the range of double, quotients
   of the other criteria once underflowed to 0, and any x was accepted. */
TEST(contract, other_criteria_are_never_stated_too_small) {
  for (int k = 0; k < 400; k++) {
    enum { MOST = 6 };
    const int n = 1 + k % MOST, residual = k / MOST % 2;
    sup_rng rng = {(uint64_t)k};
    double a[MOST * MOST], b[MOST], x[MOST];
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    o.device = HONE_DEVICE_CPU;
    o.criterion = residual ? HONE_CRITERION_RESIDUAL : HONE_CRITERION_NORMWISE;
    for (int i = 0; i < n * n; i++)
      a[i] = 2.0 * sup_uniform(&rng) * 1.7e308;
    for (int i = 0; i < n; i++)
      b[i] = 2.0 * sup_uniform(&rng);
    ct_note("system %d", k);
    const int st = hone_solve(n, 1, a, n, b, n, x, n, &o, &report);
    if (st < 0)
      continue;
    long double r = 0.0L, norm = 0.0L, size = 0.0L, right = 0.0L;
    for (int i = 0; i < n; i++) {
      long double t = (long double)b[i], sum = 0.0L;
      for (int j = 0; j < n; j++) {
        t -= (long double)a[i + j * n] * (long double)x[j];
        sum += fabsl((long double)a[i + j * n]);
      }
      r = fmaxl(r, fabsl(t));
      norm = fmaxl(norm, sum);
      size = fmaxl(size, fabsl((long double)x[i]));
      right = fmaxl(right, fabsl((long double)b[i]));
    }
    /* the sums above are wrong by n units of long double */
    const long double slack = 0x1p-60L;
    CHECK_GE((long double)report.residual_error, 0.99L * r / right - slack);
    CHECK_GE((long double)report.normwise_error,
             0.99L * r / norm / size / sqrtl((long double)n) - slack);
  }
}

/* Row 0 is K (x_0 + x_1 - x_2) = b_0 with an x of about K: its terms are 2^180
   and more times b_0, which is lost even in double-double, so that a computed
   residual of 0 says nothing. In exact arithmetic the residual is b_0 or
   larger, since the sum is a multiple of the last digit of x. */
TEST(contract, residuals_lost_below_their_terms_are_not_stated_too_small) {
  int accepted = 0, stated = 0;
  for (int k = 0; k < 300; k++) {
    const double big = pow(10.0, 20.0 + (double)(k % 11));
    sup_rng rng = {(uint64_t)k};
    const double a[9] = {big,       0.0,  1.0 / big, big, 1.0 / big,
                         1.0 / big, -big, 1.0 / big, 0.0};
    double b[3], x[3], rows[9];
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    hone_batch_result result = {0};
    hone_batch batch = HONE_BATCH_INIT;
    o.device = HONE_DEVICE_CPU;
    o.criterion = k % 3;
    o.trans = k / 3 % 2 ? HONE_TRANS : HONE_NO_TRANS;
    for (int i = 0; i < 3; i++)
      b[i] = 0.1 + fabs(sup_uniform(&rng));
    for (int i = 0; i < 9; i++)
      rows[i] = o.trans == HONE_TRANS ? a[i / 3 + i % 3 * 3] : a[i];
    batch.count = 1;
    batch.n = batch.lda = batch.ldb = batch.ldx = 3;
    batch.nrhs = 1;
    batch.a = rows;
    batch.b = b;
    batch.x = x;
    ct_note("system %d", k);
    for (int in_batch = 0; in_batch < 2; in_batch++) {
      const int st = in_batch
                         ? hone_batch_solve(&batch, &o, &result, &report)
                         : hone_solve(3, 1, rows, 3, b, 3, x, 3, &o, &report);
      const double said =
          in_batch ? result.residual_error : report.residual_error;
      if (st < 0)
        continue;
      const long double sum =
          ((long double)x[0] + (long double)x[1]) - (long double)x[2];
      const long double r = fabsl((long double)b[0] - (long double)big * sum);
      const long double right =
          fmaxl(fmaxl((long double)b[0], (long double)b[1]), (long double)b[2]);
      CHECK_GE((long double)said, 0.99L * r / right);
      if (o.criterion == HONE_CRITERION_RESIDUAL && st == HONE_OK)
        CHECK_LE(r / right, 1e-12L);
      accepted += st == HONE_OK;
      stated++;
    }
  }
  CHECK_GE(stated, 500);
  CHECK_GE(accepted, 100);
}

/* No backward error relative to x is finite there. */
TEST(contract, gives_zero_for_an_x_that_underflows_by_any_criterion) {
  const int64_t orders[] = {2, 40, 300};
  for (int k = 0; k < 3; k++)
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      const int64_t n = orders[k];
      sys s = sys_make(n, 1);
      for (int64_t i = 0; i < n * n; i++)
        s.a[i] = 0.0;
      for (int64_t i = 0; i < n; i++) {
        s.a[i + i * n] = 1e300;
        s.a[(i + 1) % n + i * n] = 2e299;
        s.b[i] = 1e-300;
        s.x[i] = 7.0;
      }
      s.options.criterion = criterion;
      CHECK_LT(HONE_OK, sys_solve(&s));
      CHECK(isinf(s.report.forward_error));
      for (int64_t i = 0; i < n; i++)
        CHECK(s.x[i] == 0.0);
      if (criterion == HONE_CRITERION_NORMWISE)
        CHECK_CONTAINS(s.report.reason, "x underflows to zero");
      sys_discard(&s);
    }
}
