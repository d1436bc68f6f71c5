/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in's dgesv, dsgesv, dgetrf and dgetrs. A, ipiv and INFO are compared
   bit by bit with those of the real LAPACK. */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dgesv -------------------------------------------------------------------- */

TEST(lapack, dgesv_leaves_lapacks_factors_and_refines_x) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.dgesv != NULL);
  for (int n = 1; n <= 150; n = 2 * n + 1) {
    problem s = problem_make(n, 3, n > 1 ? 1e6 : 0.0);
    drop_in_dgesv(&d, &s);
    CHECK_EQ_INT(s.info, 0);
    CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
    problem_check_gesv(&s);
    problem_free(&s);
  }
  drop_in_close(&d);
}

TEST(lapack, dgesv_without_factors_leaves_nan_on_the_diagonal) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(120, 2, 1e3);
  drop_in_dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  for (int64_t i = 0; i < s.n; i++) {
    CHECK(isnan(s.f[i + i * s.ld]));
    CHECK_EQ_INT(s.ipiv[i], i + 1);
  }
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, dgesv_without_factors_leaves_hard_matrices_to_lapack) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(100, 1, 1e15);
  drop_in_dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  problem_check_gesv(&s);
  problem_reset(&s);
  memset(s.a + 40 * s.ld, 0, (size_t)s.n * sizeof *s.a); /* makes A singular */
  problem_reset(&s);
  drop_in_dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 41);
  problem_check_gesv(&s);
  CHECK_MEM_EQ(s.x, s.b, entries(s.ld, s.nrhs) * sizeof *s.x);
  problem_free(&s);
  drop_in_close(&d);
}

/* Does dgesv leave its factors to a caller in this program? */
static bool factors_are_kept(const char *factors) {
  drop_in d = drop_in_open("1", factors);
  problem s = problem_make(40, 1, 0.0);
  if (d.dgesv != NULL)
    drop_in_dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  bool kept = !isnan(s.f[0]);
  problem_free(&s);
  drop_in_close(&d);
  return kept;
}

TEST(lapack, factors_are_discarded_for_the_callers_that_are_named) {
  CHECK(factors_are_kept("auto"));
  CHECK(factors_are_kept("keep"));
  CHECK(!factors_are_kept("discard"));
  CHECK(!factors_are_kept("unit_tests:libother.so"));
  CHECK(!factors_are_kept("libother.so:unit_tests"));
  CHECK(factors_are_kept("libother.so:libunit_tests"));
  CHECK(factors_are_kept("unit_tests_more:"));
}

/* Checks that the results have the bits of the real dgesv_. */
static void check_passed(const drop_in *d, problem *s) {
  int info = -77;
  drop_in_dgesv(d, s);
  double *x = malloc(entries(s->ld, s->nrhs) * sizeof *x);
  memcpy(x, s->b, entries(s->ld, s->nrhs) * sizeof *x);
  dgesv_(&s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x, &s->ld, &info);
  CHECK_EQ_INT(s->info, info);
  problem_check_same(s, s->f, s->f_real);
  CHECK_MEM_EQ(s->x, x, entries(s->ld, s->nrhs) * sizeof *x);
  free(x);
}

TEST(lapack, calls_below_the_crossover_are_passed_on) {
  drop_in d = drop_in_open("51", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(50, 1, 1e5);
  check_passed(&d, &s);
  problem_free(&s);
  s = problem_make(51, 1, 1e5);
  drop_in_dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, many_right_hand_sides_are_passed_on) {
  drop_in d = drop_in_open("300", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(799, 2, 1e5);
  check_passed(&d, &s);
  problem_free(&s);
  s = problem_make(800, 2, 1e5);
  drop_in_dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  problem_free(&s);
  s = problem_make(300, 1, 1e5);
  drop_in_dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, all_calls_are_passed_on_when_it_is_off) {
  setenv("HONE_LAPACK", "off", 1);
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(50, 1, 1e5);
  check_passed(&d, &s);
  problem_free(&s);
  drop_in_close(&d);
  unsetenv("HONE_LAPACK");
}

TEST(lapack, overlapping_arguments_are_passed_on) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(30, 1, 0.0);
  const int n = s.n - 1, one = 1; /* b overlaps the last column of A's array */
  double *b = s.f + n * s.ld, *b_real = s.f_real + n * s.ld;
  b -= 5;
  b_real -= 5;
  d.dgesv(&n, &one, s.f, &s.ld, s.ipiv, b, &s.ld, &s.info);
  dgesv_(&n, &one, s.f_real, &s.ld, s.ipiv_real, b_real, &s.ld, &s.info);
  problem_check_same(&s, s.f, s.f_real);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, wrong_arguments_reach_xerbla_as_lapack_sends_them) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(5, 1, 0.0);
  const int minus = -1, four = 4, n = s.n;
  xerbla_call.calls = 0;
  d.dgesv(&minus, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info);
  CHECK_EQ_INT(s.info, -1);
  CHECK_EQ_INT(xerbla_call.info, 1);
  CHECK_CONTAINS(xerbla_call.name, "DGESV");
  d.dgesv(&n, &s.nrhs, s.f, &four, s.ipiv, s.x, &s.ld, &s.info);
  CHECK_EQ_INT(s.info, -4);
  d.dgetrf(&n, &n, s.f, &four, s.ipiv, &s.info);
  CHECK_EQ_INT(s.info, -4);
  d.dgetrs("X", &n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
  /* INFO is not set by OpenBLAS 0.3.21. */
  CHECK_EQ_INT(xerbla_call.info, 1);
  d.dposv("X", &n, &s.nrhs, s.f, &s.ld, s.x, &s.ld, &s.info, 1);
  CHECK_EQ_INT(s.info, -1);
  d.dsgesv(&n, &s.nrhs, s.f, &s.ld, s.ipiv, s.b, &four, s.x, &s.ld, s.work,
           s.swork, &s.iter, &s.info);
  CHECK_EQ_INT(s.info, -7);
  CHECK_EQ_INT(xerbla_call.calls, 6);
  problem_check_same(&s, s.f, s.a);
  problem_free(&s);
  drop_in_close(&d);
}

/* dsgesv and dsposv -------------------------------------------------------- */

TEST(lapack, dsgesv_leaves_a_alone_where_refinement_succeeds) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dsgesv != NULL);
  problem s = problem_make(130, 5, 1e4);
  drop_in_dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_GE(s.iter, 1);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  problem_check_same(&s, s.f, s.a);
  for (int i = 0; i < s.n; i++)
    CHECK(s.ipiv[i] >= i + 1 && s.ipiv[i] <= s.n);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, dsgesv_falls_back_to_lapacks_factors) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dsgesv != NULL);
  problem s = problem_make(100, 2, 1e15);
  drop_in_dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LT(s.iter, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  problem_check_getrf(&s);
  memset(s.a + 40 * s.ld, 0, (size_t)s.n * sizeof *s.a);
  problem_reset(&s);
  drop_in_dsgesv(&d, &s);
  CHECK_EQ_INT(s.iter, -3);
  CHECK_EQ_INT(s.info, 41);
  problem_check_getrf(&s);
  problem_free(&s);
  s = problem_make(20, 1, 0.0);
  s.a[3] = 1e300; /* too large for single precision */
  problem_reset(&s);
  drop_in_dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  problem_free(&s);
  drop_in_close(&d);
}

/* NaN stands in A or in b. ITER and INFO must agree above and below the
   crossover. */
static void check_nan(const char *crossover, bool in_a) {
  drop_in d = drop_in_open(crossover, "keep");
  problem s = problem_make(64, 1, 0.0);
  *(in_a ? &s.a[5 + 7 * s.ld] : &s.b[9]) = (double)NAN;
  problem_reset(&s);
  if (d.dsgesv != NULL)
    drop_in_dsgesv(&d, &s);
  CHECK_LT(s.iter, 0);
  problem_free(&s);
  s = problem_make(64, 1, -1e3);
  *(in_a ? &s.a[5 + 7 * s.ld] : &s.b[9]) = (double)NAN;
  problem_reset(&s);
  if (d.dsposv != NULL)
    drop_in_dsposv(&d, &s, 'U');
  CHECK(s.iter < 0 || s.info > 0);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, nan_is_never_reported_as_converged) {
  check_nan("1", true);
  check_nan("1", false);
  check_nan("1000", true);
  check_nan("1000", false);
}

/* At small orders 4 eps componentwise allows more than sqrt(n) eps normwise. */
TEST(lapack, iter_says_success_only_within_lapacks_own_bound) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dsposv != NULL);
  for (int n = 1; n < 12; n++) {
    problem s = problem_make(n, 16, n > 1 ? -4.0 : 0.0);
    if (n == 1)
      s.a[0] = fabs(s.a[0]);
    problem_reset(&s);
    drop_in_dsposv(&d, &s, n % 2 ? 'U' : 'L');
    double norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++)
        sum += fabs(s.a[i + j * s.ld]);
      norm = fmax(norm, sum);
    }
    for (int64_t c = 0; c < s.nrhs && s.iter >= 0; c++) {
      double r = 0.0, x = 0.0;
      for (int64_t i = 0; i < n; i++) {
        long double sum = (long double)s.b[i + c * s.ld];
        for (int64_t j = 0; j < n; j++)
          sum -=
              (long double)s.a[i + j * s.ld] * (long double)s.x[j + c * s.ld];
        r = fmax(r, fabs((double)sum));
        x = fmax(x, fabs(s.x[i + c * s.ld]));
      }
      CHECK_LE(r, 1.01 * sqrt((double)n) * SUP_EPS * norm * x);
    }
    problem_free(&s);
  }
  drop_in_close(&d);
}

/* dgetrf and dgetrs -------------------------------------------------------- */

static void getrs(const drop_in *d, problem *s, char trans, const double *f) {
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  d->dgetrs(&trans, &s->n, &s->nrhs, f, &s->ld, s->ipiv, s->x, &s->ld, &s->info,
            1);
  CHECK_EQ_INT(s->info, 0);
}

/* Checks that the result has the bits of the real dgetrs_, which refinement
   would have changed. */
static void check_getrs_passed(const drop_in *d, problem *s, const double *f) {
  const size_t bytes = entries(s->ld, s->nrhs) * sizeof *s->x;
  double *x = malloc(bytes);
  memcpy(x, s->b, bytes);
  dgetrs_("N", &s->n, &s->nrhs, f, &s->ld, s->ipiv, x, &s->ld, &s->info, 1);
  getrs(d, s, 'N', f);
  CHECK_GE(problem_backward_error(s, false), 2.5 * SUP_EPS);
  CHECK_MEM_EQ(s->x, x, bytes);
  free(x);
}

TEST(lapack, dgetrs_refines_with_factors_that_dgetrf_made) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  problem s = problem_make(150, 20, 1e8);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  CHECK_EQ_INT(s.info, 0);
  problem_check_getrf(&s);
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  getrs(&d, &s, 't', s.f);
  CHECK_LE(problem_backward_error(&s, true), SUP_LIMIT);
  getrs(&d, &s, 'C', s.f_real); /* a copy of the factors elsewhere */
  CHECK_LE(problem_backward_error(&s, true), SUP_LIMIT);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, dgetrs_passes_on_factors_that_dgetrf_did_not_make) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  problem s = problem_make(250, 6, 0.0);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  const double was = s.f[33 + 50 * s.ld];
  /* Changes one bit of one entry. */
  s.f[33 + 50 * s.ld] = was * (1.0 + 0x1p-52);
  check_getrs_passed(&d, &s, s.f);
  s.f[33 + 50 * s.ld] = was;
  int pivot = s.ipiv[3];
  s.ipiv[3] = s.n;
  check_getrs_passed(&d, &s, s.f);
  s.ipiv[3] = pivot;
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, kept_matrices_stay_within_their_memory) {
  /* Room for 2 matrices of order 220, 388 kB each. */
  setenv("HONE_LAPACK_KEPT_MIB", "1", 1);
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  problem s[3];
  for (int k = 0; k < 3; k++) {
    s[k] = problem_make(220, 6, 0.0);
    s[k].f[0] += (double)k;
    s[k].a[0] += (double)k;
    d.dgetrf(&s[k].n, &s[k].n, s[k].f, &s[k].ld, s[k].ipiv, &s[k].info);
  }
  check_getrs_passed(&d, &s[0], s[0].f);
  for (int k = 1; k < 3; k++) {
    getrs(&d, &s[k], 'N', s[k].f);
    CHECK_LE(problem_backward_error(&s[k], false), SUP_LIMIT);
  }
  for (int k = 0; k < 3; k++)
    problem_free(&s[k]);
  drop_in_close(&d);
  /* None is kept with no memory for it, which is what a program that says
     nothing has: "" counts as not set. */
  for (int k = 0; k < 2; k++) {
    setenv("HONE_LAPACK_KEPT_MIB", k == 0 ? "0" : "", 1);
    d = drop_in_open("1", "auto");
    s[0] = problem_make(150, 6, 0.0);
    d.dgetrf(&s[0].n, &s[0].n, s[0].f, &s[0].ld, s[0].ipiv, &s[0].info);
    check_getrs_passed(&d, &s[0], s[0].f);
    problem_free(&s[0]);
    drop_in_close(&d);
  }
  unsetenv("HONE_LAPACK_KEPT_MIB");
}
