/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_solve and the reusable solver on systems that must be solved: orders,
   numbers of right-hand sides, leading dimensions and starts of every kind. The
   errors in the report are measured again in quadruple precision. Systems that
   may not be solvable are in test_matrices.c. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double UNTOUCHED = 6.5e99;

/* A system with NaN in the padding of A and b, of which some columns of x are
   known. */
typedef struct sys {
  int64_t n, nrhs, lda, ldb, ldx;
  double *a, *b, *x, *x_true;
  hone_options options;
  hone_report report;
  hone_column *columns;
} sys;

enum { UNIFORM, NORMAL, ORTHOGONAL, DOMINANT, KINDS };

static void fill_matrix(sup_rng *rng, int kind, int64_t n, double *a,
                        int64_t lda) {
  if (kind == ORTHOGONAL) {
    sup_matrix_cond(rng, n, SUP_GEOMETRIC, 1.0, a, lda);
    return;
  }
  sup_random(rng, n, n, a, lda);
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; kind == NORMAL && i < n; i++)
      a[i + j * lda] = sup_normal(rng);
    if (kind == DOMINANT)
      a[j + j * lda] = (j % 2 ? 1.0 : -1.0) * (double)n;
  }
}

/* All leading dimensions are n + pad. b is random until set_known. */
static sys make(int kind, int64_t n, int64_t nrhs, int64_t pad) {
  sup_rng rng = {(uint64_t)(n * KINDS + kind)};
  sys s = {.n = n,
           .nrhs = nrhs,
           .lda = n + pad,
           .ldb = n + 2 * pad,
           .ldx = n + 3 * pad};
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(s.ldb * nrhs, (double)NAN);
  s.x = sup_filled(s.ldx * nrhs, UNTOUCHED);
  s.x_true = sup_filled(n * nrhs, 0.0);
  s.columns = calloc((size_t)nrhs + 1, sizeof *s.columns);
  if (s.columns == NULL)
    abort();
  fill_matrix(&rng, kind, n, s.a, s.lda);
  sup_random(&rng, n, nrhs, s.b, s.ldb);
  sup_random(&rng, n, nrhs, s.x_true, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s.report, sizeof s.report);
  s.options.columns = s.columns;
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
  sup_free(s->x_true);
  free(s->columns);
}

static void set_known(sys *s, bool trans, int64_t c) {
  sup_multiply(s->n, s->a, s->lda, trans, s->x_true + c * s->n,
               s->b + c * s->ldb);
}

static int solve(sys *s) {
  return hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->ldb, s->x, s->ldx,
                    &s->options, &s->report);
}

/* ||x - x_true|| / ||x|| in the norm of the bound: the 1-norm, for A^T the
   infinity norm. */
static double column_error(const sys *s, bool trans, int64_t c) {
  double sum = 0.0, size = 0.0, max = 0.0, max_size = 0.0;
  for (int64_t i = 0; i < s->n; i++) {
    double x = s->x[i + c * s->ldx], e = fabs(x - s->x_true[i + c * s->n]);
    sum += e;
    size += fabs(x);
    max = fmax(max, e);
    max_size = fmax(max_size, fabs(x));
  }
  return trans ? max / max_size : sum / size;
}

/* Column c is accepted, its errors are those reported, and it is near x_true:
   rounding b moves the solution by at most cond(A) eps. */
static void check_column(const sys *s, bool trans, bool known, int64_t c) {
  const hone_column *said = &s->columns[c];
  double omega = sup_backward_error(s->n, s->a, s->lda, trans,
                                    s->x + c * s->ldx, s->b + c * s->ldb);
  CHECK_EQ_INT(said->status, HONE_OK);
  CHECK_LE(omega, SUP_LIMIT);
  CHECK_NEAR(said->backward_error, omega, 0.01 * omega);
  CHECK_LE(said->backward_error, s->report.backward_error);
  if (known)
    CHECK_LE(column_error(s, trans, c),
             said->forward_error + 4.0 * SUP_EPS / s->report.rcond);
}

static void check_solved(const sys *s, int status) {
  double worst = 0.0;
  CHECK_EQ_INT(status, HONE_OK);
  CHECK_EQ_INT(s->report.status, HONE_OK);
  CHECK_EQ_INT(s->report.accepted, s->nrhs);
  CHECK_EQ_INT(s->report.n, s->n);
  CHECK_EQ_INT(s->report.nrhs, s->nrhs);
  CHECK_LE(s->report.forward_error, 1e-6);
  for (int64_t c = 0; c < s->nrhs; c++)
    worst = fmax(worst, s->columns[c].backward_error);
  CHECK_NEAR(s->report.backward_error, worst, 0.0);
  CHECK_LE(worst, SUP_LIMIT);
  for (int64_t c = 0; c < s->nrhs; c++)
    CHECK(sup_untouched(s->x + s->n + c * s->ldx, s->ldx - s->n, UNTOUCHED));
}

/* Solves with known solutions of the first and the last column, and of all
   columns up to the order few; these are checked. */
static void check_random(int kind, int64_t n, int64_t nrhs, int start,
                         int64_t few) {
  sys s = make(kind, n, nrhs, nrhs % 3);
  const int64_t step = n <= few ? 1 : HONE_MAX((int64_t)1, nrhs - 1);
  ct_note("kind %d, n = %d, nrhs = %d, start %d", kind, (int)n, (int)nrhs,
          start);
  for (int64_t c = 0; c < nrhs; c += step)
    set_known(&s, false, c);
  s.options.factor_precision = start;
  check_solved(&s, solve(&s));
  for (int64_t c = 0; c < nrhs; c += step)
    check_column(&s, false, true, c);
  if (nrhs > 64) { /* the ends of a block of right-hand sides */
    check_column(&s, false, step == 1, 63);
    check_column(&s, false, step == 1, 64);
  }
  discard(&s);
}

static const int64_t sides[] = {1, 2, 3, 15, 64, 65, 130};
enum { SIDES = sizeof sides / sizeof *sides };

TEST(solve, accepts_small_random_systems_from_every_start) {
  static const int64_t orders[] = {1, 2, 3, 31, 32, 33};
  for (int o = 0; o < 6; o++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int k = 0; k < SIDES; k++)
        for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++)
          check_random(kind, orders[o], sides[k], start, 3);
}

TEST(solve, accepts_random_systems_around_the_crossovers) {
  static const int64_t orders[] = {100, 127, 128, 129, 300, 513};
  for (int o = 0; o < 6; o++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int k = 0; k < SIDES; k++)
        check_random(kind, orders[o], sides[k], (o + kind + k) % 3, 0);
}

TEST(solve, accepts_1500_right_hand_sides) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = make(NORMAL, 40, 1500, 1);
    s.options.factor_precision = start;
    check_solved(&s, solve(&s));
    for (int64_t c = 0; c < s.nrhs; c += 7)
      check_column(&s, false, false, c);
    discard(&s);
  }
}

/* In each layout; (row-major, A) equals (column-major, A^T). */
TEST(solve, accepts_transposes_in_either_layout) {
  static const int64_t orders[] = {1, 5, 33, 150};
  for (int at = 0; at < 4 * 4 * 2; at++) {
    const bool trans = at & 1, row_major = at & 2;
    sys s = make(UNIFORM, orders[at / 8], 5, 2);
    s.options.trans = trans ? HONE_TRANS : HONE_NO_TRANS;
    s.options.layout = row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.factor_precision =
        at & 4 ? HONE_FACTOR_SINGLE : HONE_FACTOR_DOUBLE;
    ct_note("n = %d, trans %d, layout %d, start %d", (int)s.n, trans,
            s.options.layout, s.options.factor_precision);
    for (int64_t c = 0; c < s.nrhs; c++)
      set_known(&s, trans != row_major, c);
    check_solved(&s, solve(&s));
    for (int64_t c = 0; c < s.nrhs; c++)
      check_column(&s, trans != row_major, false, c);
    for (int64_t c = 0; c < s.nrhs; c++)
      CHECK_LE(column_error(&s, true, c), 1e-10);
    discard(&s);
  }
}

TEST(solve, writes_the_solution_over_the_right_hand_side) {
  for (int64_t n = 3; n < 200; n *= 4) {
    sys s = make(UNIFORM, n, 7, 1);
    check_solved(&s, solve(&s));
    CHECK_EQ_INT(
        hone_solve(n, 7, s.a, s.lda, s.b, s.ldb, s.b, s.ldb, &s.options, NULL),
        HONE_OK);
    for (int64_t c = 0; c < s.nrhs; c++)
      CHECK_MEM_EQ(s.b + c * s.ldb, s.x + c * s.ldx,
                   (size_t)n * sizeof(double));
    discard(&s);
  }
}

TEST(solve, accepts_empty_systems) {
  double x[2] = {UNTOUCHED, UNTOUCHED};
  hone_report report = HONE_REPORT_INIT;
  CHECK_EQ_INT(hone_solve(0, 1, NULL, 1, NULL, 1, NULL, 1, NULL, &report),
               HONE_OK);
  CHECK_EQ_INT(hone_solve(2, 0, NULL, 2, NULL, 2, x, 2, NULL, &report),
               HONE_OK);
  CHECK_EQ_INT(report.n, 2);
  CHECK_EQ_INT(report.nrhs, 0);
  CHECK(sup_untouched(x, 2, UNTOUCHED));
}

/* The reusable solver ------------------------------------------------------ */

static int factor(hone_solver *solver, sys *s) {
  return hone_solver_factor(solver, s->a, s->lda, &s->report);
}

static int solve_with(hone_solver *solver, sys *s, bool trans) {
  return sup_solver_solve(solver, trans ? HONE_TRANS : HONE_NO_TRANS, s->nrhs,
                          s->b, s->ldb, s->x, s->ldx, NULL, 0, s->columns,
                          &s->report);
}

/* Solves by hone_solve, and checks that the solver gives the same bits. */
static void check_same_as_one_call(hone_solver *solver, sys *s) {
  const int64_t count = s->ldx * s->nrhs;
  const size_t bytes = (size_t)count * sizeof(double);
  CHECK_EQ_INT(solve(s), HONE_OK);
  double *x = sup_copy(s->x, count);
  hone_column first = s->columns[0];
  for (int again = 0; again < 2; again++) {
    for (int64_t i = 0; i < count; i++)
      s->x[i] = UNTOUCHED;
    check_solved(s, solve_with(solver, s, false));
    CHECK_MEM_EQ(s->x, x, bytes);
    CHECK_MEM_EQ(&s->columns[0], &first, sizeof first);
  }
  sup_free(x);
}

/* Creates the solver without columns, which belong to one solve. */
static int create(hone_solver **solver, const sys *s) {
  hone_options options = s->options;
  options.columns = NULL;
  return hone_solver_create(solver, s->n, &options);
}

TEST(solver, gives_the_same_bits_as_hone_solve) {
  static const int64_t orders[] = {1, 3, 100, 129, 300};
  for (int at = 0; at < 5 * 3; at++) {
    sys s = make(UNIFORM, orders[at / 3], at % 2 ? 3 : 70, 1);
    hone_solver *solver = NULL;
    s.options.factor_precision = at % 3;
    s.options.deterministic = 1;
    ct_note("n = %d, start %d", (int)s.n, at % 3);
    CHECK_EQ_INT(create(&solver, &s), HONE_OK);
    REQUIRE(solver != NULL);
    CHECK_EQ_INT(factor(solver, &s), HONE_OK);
    check_same_as_one_call(solver, &s);
    hone_solver_destroy(&solver);
    CHECK(solver == NULL);
    discard(&s);
  }
}

TEST(solver, is_independent_of_another_solver) {
  sys s[2] = {make(UNIFORM, 140, 3, 1), make(NORMAL, 140, 65, 0)};
  hone_solver *solver[2] = {NULL, NULL};
  for (int k = 0; k < 2; k++) {
    s[k].options.deterministic = 1;
    CHECK_EQ_INT(create(&solver[k], &s[k]), HONE_OK);
    REQUIRE(solver[k] != NULL);
  }
  for (int k = 0; k < 2; k++)
    CHECK_EQ_INT(factor(solver[k], &s[k]), HONE_OK);
  for (int round = 0; round < 2; round++)
    for (int k = 0; k < 2; k++)
      check_same_as_one_call(solver[k], &s[k]);
  hone_solver_destroy(&solver[0]);
  check_same_as_one_call(solver[1], &s[1]);
  hone_solver_destroy(&solver[1]);
  discard(&s[0]);
  discard(&s[1]);
}

TEST(solver, factors_one_matrix_after_another) {
  static const int kinds[] = {UNIFORM, DOMINANT, ORTHOGONAL, UNIFORM};
  hone_solver *solver = NULL;
  hone_options options = HONE_OPTIONS_INIT;
  options.deterministic = 1;
  CHECK_EQ_INT(hone_solver_create(&solver, 150, &options), HONE_OK);
  REQUIRE(solver != NULL);
  for (int k = 0; k < 4; k++) {
    sys s = make(kinds[k], 150, 4, k);
    s.options.deterministic = 1;
    CHECK_EQ_INT(factor(solver, &s), HONE_OK);
    check_same_as_one_call(solver, &s);
    discard(&s);
  }
  hone_solver_destroy(&solver);
}

TEST(solver, solves_with_a_and_its_transpose_after_one_factorization) {
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = make(NORMAL, 150, 9, 2);
    hone_solver *solver = NULL;
    s.options.factor_precision = start;
    CHECK_EQ_INT(create(&solver, &s), HONE_OK);
    REQUIRE(solver != NULL);
    CHECK_EQ_INT(factor(solver, &s), HONE_OK);
    for (int at = 0; at < 4; at++) {
      for (int64_t c = 0; c < s.nrhs; c++)
        set_known(&s, at % 2, c);
      ct_note("start %d, trans %d", start, at % 2);
      check_solved(&s, solve_with(solver, &s, at % 2));
      for (int64_t c = 0; c < s.nrhs; c++)
        check_column(&s, at % 2, false, c);
      for (int64_t c = 0; c < s.nrhs; c++)
        CHECK_LE(column_error(&s, true, c), 1e-10);
    }
    hone_solver_destroy(&solver);
    discard(&s);
  }
}

static void check_not_factored(hone_solver *solver, sys *s) {
  CHECK_EQ_INT(solve_with(solver, s, false), HONE_NOT_FACTORED);
  CHECK_EQ_INT(s->report.status, HONE_NOT_FACTORED);
  CHECK(sup_untouched(s->x, s->ldx * s->nrhs, UNTOUCHED));
}

/* A solver does not solve before a factorization or after one that failed, nor
   with factors of an earlier matrix. The next factorization makes it usable
   again. */
TEST(solver, does_not_solve_after_a_factorization_that_failed) {
  sys s = make(UNIFORM, 150, 4, 1);
  double *good = sup_copy(s.a, s.lda * s.n);
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_create(&solver, s.n, NULL), HONE_OK);
  REQUIRE(solver != NULL);
  check_not_factored(solver, &s);
  for (int failure = 0; failure < 3; failure++) {
    for (int64_t k = 0; failure == 0 && k < s.n; k++)
      s.a[17 + k * s.lda] = 0.0;
    for (int64_t k = 0; failure == 1 && k < s.n; k++)
      s.a[k + 17 * s.lda] = 0.0;
    if (failure == 2)
      s.a[20 + 30 * s.lda] = (double)NAN;
    ct_note("failure %d", failure);
    CHECK_EQ_INT(factor(solver, &s),
                 failure == 2 ? HONE_NOT_FINITE_A : HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_row, failure == 0 ? 17 : failure == 1 ? -1 : 20);
    CHECK_EQ_INT(s.report.bad_col, failure == 0 ? -1 : failure == 1 ? 17 : 30);
    check_not_factored(solver, &s);
    memcpy(s.a, good, (size_t)(s.lda * s.n) * sizeof *good);
    CHECK_EQ_INT(factor(solver, &s), HONE_OK);
    check_solved(&s, solve_with(solver, &s, false));
    for (int64_t i = 0; i < s.ldx * s.nrhs; i++)
      s.x[i] = UNTOUCHED;
  }
  hone_solver_destroy(&solver);
  sup_free(good);
  discard(&s);
}

/* Such pivots occur in the boundary element matrix of a cube, from face to
   face. */
TEST(solve, keeps_single_factors_of_pivots_that_fall_and_rise) {
  enum { SWING_N = 864, FACE = 144 };
  double *a = sup_filled((int64_t)SWING_N * SWING_N, 0.0);
  double *b = sup_filled(SWING_N, 1.0), *x = sup_filled(SWING_N, 0.0);
  hone_report report = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  o.structure = HONE_STRUCTURE_GENERAL; /* not by substitution */
  for (int64_t i = 0; i < SWING_N; i++) {
    int at = (int)(i % FACE);
    a[i * SWING_N + i] = at < 32 ? 0.045 : at < 112 ? 0.2 : 0.021;
  }
  CHECK_EQ_INT(
      hone_solve(SWING_N, 1, a, SWING_N, b, SWING_N, x, SWING_N, &o, &report),
      HONE_OK);
  CHECK_EQ_INT(report.precision, 32);
  CHECK_STR(report.reason, "");
  sup_free(a);
  sup_free(b);
  sup_free(x);
}

/* Residuals of subnormal systems underflow unless they are scaled: a criterion
   that finds 0 there would accept anything. */
TEST(solve, measures_residuals_below_the_range_of_double) {
  enum { TINY_N = 20 };
  sup_rng rng = {77};
  double a[TINY_N * TINY_N], b[TINY_N], x[TINY_N];
  for (int criterion = HONE_CRITERION_NORMWISE;
       criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    hone_options o;
    hone_report report = HONE_REPORT_INIT;
    o = (hone_options)HONE_OPTIONS_INIT;
    o.factor_precision = HONE_FACTOR_SINGLE;
    o.criterion = criterion;
    o.tolerance = 1e-14;
    for (int i = 0; i < TINY_N * TINY_N; i++)
      a[i] = ldexp(sup_uniform(&rng) + (i % (TINY_N + 1) == 0 ? 4 : 0), -1062);
    for (int i = 0; i < TINY_N; i++)
      b[i] = ldexp(sup_uniform(&rng), -1055);
    ct_note("criterion %d", criterion);
    CHECK_EQ_INT(
        hone_solve(TINY_N, 1, a, TINY_N, b, TINY_N, x, TINY_N, &o, &report),
        HONE_OK);
    CHECK_LE(sup_backward_error(TINY_N, a, TINY_N, false, x, b), 1e-12);
    CHECK_LE(1, report.iterations);
  }
}
