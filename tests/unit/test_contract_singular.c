/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for singular and ill-conditioned matrices: no x is
   accepted that its error bound does not certify. */
#include "base/lapack.h"
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

TEST(contract, says_which_row_or_column_is_zero) {
  for (int k = 0; k < 8; k++) {
    bool row = k & 1, row_major = k & 2, start_single = k & 4;
    sys s = sys_make(9, 1);
    ct_note("%s 6 is zero, %s", row ? "row" : "column",
            row_major ? "row-major" : "column-major");
    s.options.layout = row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.factor_precision =
        start_single ? HONE_FACTOR_SINGLE : HONE_FACTOR_AUTO;
    for (int64_t i = 0; i < 9; i++)
      s.a[row == row_major ? i + 6 * 9 : 6 + i * 9] = i % 2 ? 0.0 : -0.0;
    sys_expect(&s, HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_row, row ? 6 : -1);
    CHECK_EQ_INT(s.report.bad_col, row ? -1 : 6);
    sys_discard(&s);
  }
}

/* Small integers of rank n - 1, so that elimination is exact and meets a zero
   pivot. */
static void make_integer(sys *s, bool repeat) {
  const int64_t n = s->n;
  for (int64_t k = 0; k < n * n; k++) {
    int64_t i = k % n, j = k / n;
    if (repeat) /* the identity; columns 1 and n are then made equal */
      s->a[k] = i == j || (i == 0 && j == n - 1) || (i == n - 1 && j == 0);
    else /* (1, -2, 1, 0, ...) is in the null space */
      s->a[k] = (double)(i + j + (i == j && i > 2));
  }
}

TEST(contract, never_accepts_an_exactly_singular_integer_matrix) {
  for (int64_t n = 3; n <= 9; n++)
    for (int k = 0; k < 6; k++) {
      sys s = sys_make(n, 2);
      ct_note("n %d, start %d, kind %d", (int)n, k / 2, k % 2);
      s.options.factor_precision = k / 2;
      make_integer(&s, k % 2);
      sys_set_consistent(&s);
      CHECK(sys_solve(&s) != HONE_OK);
      CHECK_EQ_INT(s.report.accepted, 0);
      sys_discard(&s);
    }
}

/* The determinant of [3 1; 1 1/3] is not zero when 1/3 is rounded, but the
   second pivot is, in double precision, as for dgesv. */
TEST(contract, calls_a_pivot_that_rounds_to_zero_singular_as_dgesv_does) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
    const double a[] = {3.0, 1.0, 1.0, 1.0 / 3.0};
    const int n = 2, nrhs = 1;
    int pivots[2], info;
    sys s = sys_make(2, 1);
    ct_note("start %d", start);
    s.options.factor_precision = start;
    memcpy(s.a, a, sizeof a);
    sys_expect(&s, start == HONE_FACTOR_SINGLE ? HONE_ILL_CONDITIONED
                                               : HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_col, start == HONE_FACTOR_SINGLE ? -1 : 1);
    dgesv_(&n, &nrhs, s.a, &n, pivots, s.b, &n, &info);
    CHECK_EQ_INT(info, 2);
    sys_discard(&s);
  }
}

enum { DUPLICATE_COLUMNS, DUPLICATE_ROWS, COMBINED_COLUMNS, LOW_RANK, KINDS };
static const char *const kind_names[KINDS] = {
    "two equal columns", "two equal rows", "a combination of columns",
    "rank n / 2"};

static void make_singular(sys *s, int kind) {
  const int64_t n = s->n;
  for (int64_t i = 0; i < n; i++) {
    if (kind == DUPLICATE_COLUMNS)
      s->a[i + (n - 1) * n] = s->a[i + n];
    if (kind == DUPLICATE_ROWS)
      s->a[n - 2 + i * n] = s->a[i * n];
    if (kind == COMBINED_COLUMNS)
      s->a[i + n / 2 * n] =
          0.5 * s->a[i] - 0.25 * s->a[i + n] + s->a[i + (n - 1) * n];
    for (int64_t j = n / 2; kind == LOW_RANK && j < n; j++)
      s->a[i + j * n] = s->a[i + (j - n / 2) * n] + s->a[i];
  }
}

TEST(contract, never_accepts_a_numerically_singular_matrix) {
  static const int64_t orders[] = {5, 30, 130, 300};
  for (int k = 0; k < 4 * KINDS * 3; k++) {
    sys s = sys_make(orders[k % 4], 1);
    int kind = k / 4 % KINDS, criterion = k / 4 / KINDS;
    make_singular(&s, kind);
    sys_set_consistent(&s); /* so that the residual can be made small */
    for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
      ct_note("%s, n %d, criterion %d, start %d", kind_names[kind], (int)s.n,
              criterion, start);
      s.options.factor_precision = start;
      s.options.criterion = criterion;
      for (int64_t i = 0; i < s.n; i++)
        s.x[i] = UNTOUCHED;
      int st = sys_solve(&s);
      CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR ||
            st == HONE_NOT_CONVERGED);
      CHECK_EQ_INT(s.report.accepted, 0);
    }
    sys_discard(&s);
  }
}

TEST(contract, never_accepts_singular_matrices_of_mixed_units) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int64_t n = 20; n <= 160; n += 140) {
      sys s = sys_make(n, 1);
      ct_note("%s, n %d", kind_names[kind], (int)n);
      make_singular(&s, kind);
      for (int64_t j = 0; j < n; j++) /* powers of two keep A singular */
        for (int64_t i = 0; i < n; i++)
          s.a[i + j * n] =
              ldexp(s.a[i + j * n], (int)(i * 37 % 101 + j * 11 % 101) - 100);
      sys_set_consistent(&s);
      CHECK(sys_solve(&s) != HONE_OK);
      sys_discard(&s);
    }
}

TEST(contract, never_accepts_the_hilbert_matrix_of_order_20) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++)
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      sys s = sys_make(20, 1);
      s.options.factor_precision = start;
      s.options.criterion = criterion;
      for (int64_t i = 0; i < 400; i++)
        s.a[i] = 1.0 / (double)(i / 20 + i % 20 + 1);
      sys_set_consistent(&s);
      CHECK(sys_solve(&s) != HONE_OK);
      sys_discard(&s);
    }
}

/* A solver's factors are those of an earlier call, whose report is another. */
TEST(contract, says_why_at_each_solve_with_factors_of_a_singular_matrix) {
  enum { N = 20 };
  sys s = sys_make(N, 1);
  hone_solver *solver;
  for (int64_t i = 0; i < N * N; i++)
    s.a[i] = 1.0 / (double)(i / N + i % N + 1);
  sys_set_consistent(&s);
  REQUIRE(hone_solver_create(&solver, N, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, N, &s.report), HONE_OK);
  for (int again = 0; again < 2; again++) {
    CHECK_EQ_INT(sup_solver_solve(solver, HONE_NO_TRANS, 1, s.b, N, s.x, N,
                                  NULL, 0, NULL, &s.report),
                 HONE_ILL_CONDITIONED);
    CHECK_CONTAINS(s.report.reason, "LU: these factors cannot tell the matrix");
  }
  hone_solver_destroy(&solver);
  sys_discard(&s);
}

/* If the status is 0, the error is at most its bound. */
TEST(contract, bounds_the_forward_error_of_what_it_accepts) {
  for (int k = 0; k < 17 * 3; k++) {
    sys s = sys_make(k % 2 ? 40 : 140, 1);
    sup_rng rng = {(uint64_t)k};
    hone_column column;
    double cond = pow(10.0, k / 3);
    ct_note("condition %g, n %d", cond, (int)s.n);
    sup_matrix_cond(&rng, s.n, k % 3 == 2 ? SUP_ONE_SMALL : SUP_GEOMETRIC, cond,
                    s.a, s.n);
    double *x_true = sup_filled(s.n, 1.0);
    for (int64_t i = 0; i < s.n; i++)
      x_true[i] = sup_uniform(&rng);
    sup_multiply(s.n, s.a, s.n, false, x_true, s.b);
    s.options.columns = &column;
    int st = sys_solve(&s);
    CHECK_LE(0, st);
    if (cond <= 1e12)
      CHECK_EQ_INT(st, HONE_OK);
    if (st == HONE_OK) { /* in 1-norms; b was rounded too */
      double error = 0.0, size = 0.0;
      for (int64_t i = 0; i < s.n; i++) {
        error += fabs(s.x[i] - x_true[i]);
        size += fabs(s.x[i]);
      }
      CHECK_LE(error / size, column.forward_error + 2.0 * cond * SUP_EPS);
      CHECK_LT(column.forward_error, 1.0);
    }
    sup_free(x_true);
    sys_discard(&s);
  }
}

/* Entries of x, some 1e39, leave the range of single precision, by whose
   factors the matrix cannot be told from a singular one; in double there is an
   x. */
TEST(contract, finds_an_x_where_that_of_single_precision_overflows) {
  enum { N = 260 };
  double *a = sup_filled(N * N, 0.0), *b = sup_filled(N, 0.0);
  double *x = sup_filled(N, 0.0);
  for (uint64_t seed = 1; seed <= 50; seed++) {
    sup_rng rng = {seed};
    hone_report report = HONE_REPORT_INIT;
    hone_options options = HONE_OPTIONS_INIT;
    options.device = HONE_DEVICE_CPU;
    options.factor_precision = HONE_FACTOR_SINGLE;
    options.layout = HONE_ROW_MAJOR;
    options.deterministic = 1;
    for (int64_t j = 0; j < N; j++) /* upper Hessenberg, normal entries */
      for (int64_t i = 0; i < N; i++) {
        const double size = sqrt(-2.0 * log(sup_uniform(&rng) + 0.5 + 1e-300));
        const double entry = size * cos(6.283185307179586 * sup_uniform(&rng));
        a[j + i * N] = i <= j + 1 ? entry : 0.0;
      }
    for (int64_t i = 0; i < N; i++)
      b[i] = sup_uniform(&rng);
    ct_note("seed %d", (int)seed);
    CHECK_LE(0, hone_solve(N, 1, a, N, b, N, x, N, &options, &report));
  }
  sup_free(a);
  sup_free(b);
  sup_free(x);
}
