/* SPDX-License-Identifier: BSD-3-Clause */
/* The refinement loop with a matrix that is not dense (implicit_system.h): it
   is refined and accepted by the same rule as a dense matrix. Every x is
   measured in quadruple precision on a dense copy, and every report is compared
   with that of the copy's own solve. */
#include "tests/unit/implicit_system.h"

#include "tests/unit/ct.h"

#include <math.h>

TEST(operator, that_is_implicit_is_refined_like_a_dense_matrix) {
  static const int64_t orders[] = {1, 2, 3, 17, 64, 150};
  for (int at = 0; at < 12; at++) {
    implicit s;
    implicit_set_up(&s, orders[at / 2], 1);
    s.trans = at % 2;
    implicit_finish(&s);
    ct_note("n %d", (int)s.n);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    CHECK_STR(s.here.solved.path, s.dense.solved.path);
    CHECK(s.calls.inspections > 0);
    CHECK_EQ_INT(s.calls.symmetries, 0);
    implicit_tear_down(&s);
  }
}

TEST(operator, solves_for_several_columns_and_more_than_a_block) {
  static const int64_t counts[] = {2, 5, 64, 70};
  for (int at = 0; at < 8; at++) {
    implicit s;
    implicit_set_up(&s, 30, counts[at / 2]);
    s.trans = at % 2;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    implicit_tear_down(&s);
  }
}

/* The entries of D T E range from 2^-160 to 2^160. */
TEST(operator, is_inspected_through_the_scaling_that_it_needs) {
  for (int trans = 0; trans < 2; trans++) {
    implicit s;
    implicit_set_up(&s, 50, 2);
    implicit_make_scaled(&s);
    s.trans = trans;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK_LT(s.here.factored.scale_exponent_min, -20);
    CHECK_LT(20, s.here.factored.scale_exponent_max);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    implicit_tear_down(&s);
  }
}

/* One eigenvalue is 2^-29, the others are about 5: refinement with
   single-precision factors alone does not converge. */
TEST(operator, of_condition_1e9_is_solved_by_deflation) {
  for (int trans = 0; trans < 2; trans++) {
    implicit s;
    implicit_set_up(&s, 100, 1);
    implicit_make_circulant(&s, 0x1p-29);
    s.trans = trans;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK_LT(s.here.solved.rcond, 1e-9);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    CHECK_CONTAINS(s.here.solved.path, " deflated, ");
    s.request.deflation = -1;
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK_EQ_INT(s.here.solved.precision, 64);
    implicit_tear_down(&s);
  }
}

TEST(operator, gives_every_digit_of_x_in_extra_precise_mode) {
  for (int at = 0; at < 4; at++) {
    implicit s;
    implicit_set_up(&s, 100, 2);
    if (at >= 2)
      implicit_make_circulant(&s, 0x1p-20);
    s.trans = at % 2;
    s.request.extra = true;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK_LE(s.here.solved.forward_error, 8.0 * SUP_EPS);
    for (int64_t c = 0; c < 2; c++)
      CHECK_LE(sup_forward_error(100, s.here.x + c * 100, s.x_true + c * 100),
               8.0 * SUP_EPS);
    implicit_tear_down(&s);
  }
}

/* The rows sum to 0, so that the vector of ones is a null vector. */
TEST(operator, that_is_singular_is_refused_like_a_dense_matrix) {
  for (int trans = 0; trans < 2; trans++) {
    implicit s;
    implicit_set_up(&s, 40, 1);
    implicit_make_circulant(&s, 0.0);
    s.trans = trans;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_alike(&s);
    CHECK(s.here.status == HONE_ILL_CONDITIONED ||
          s.here.status == HONE_SINGULAR);
    CHECK_EQ_INT(s.here.solved.accepted, 0);
    if (s.here.status == HONE_ILL_CONDITIONED)
      CHECK_EQ_INT(s.here.solved.null_count, 40);
    implicit_tear_down(&s);
  }
}

TEST(operator, with_a_zero_row_is_singular) {
  implicit s;
  implicit_set_up(&s, 9, 1);
  implicit_make_scaled(&s);
  s.left[5] = 0.0;
  implicit_finish(&s);
  implicit_run(&s, NULL);
  implicit_check_alike(&s);
  CHECK_EQ_INT(s.here.status, HONE_SINGULAR);
  CHECK_EQ_INT(s.here.factored.bad_row, 5);
  implicit_tear_down(&s);
}

TEST(operator, reports_where_the_first_nan_stands) {
  static const int64_t offsets[] = {0, 1, -1, 7, -7};
  for (int at = 0; at < 5; at++) {
    const int64_t k = offsets[at];
    implicit s;
    implicit_set_up(&s, 8, 1);
    implicit_finish(&s);
    s.diagonals[k + 7] = at % 2 ? (double)NAN : (double)INFINITY;
    toeplitz_write_dense(&s.matrix, s.twin);
    implicit_run(&s, NULL);
    implicit_check_alike(&s);
    CHECK_EQ_INT(s.here.status, HONE_NOT_FINITE_A);
    CHECK_EQ_INT(s.here.factored.bad_row, k > 0 ? k : 0);
    CHECK_EQ_INT(s.here.factored.bad_col, k > 0 ? 0 : -k);
    CHECK(sup_untouched(s.here.x, 8, 77.0));
    implicit_tear_down(&s);
  }
}

/* Products about 2^-950 beside others about 1: the residual of that row is
   computed again, in extended range. */
TEST(operator, is_asked_for_rows_near_the_end_of_the_range_of_double) {
  for (int trans = 0; trans < 2; trans++) {
    implicit s;
    implicit_set_up(&s, 20, 2);
    s.left = sup_filled(20, 1.0);
    s.right = sup_filled(20, 1.0);
    (trans ? s.right : s.left)[7] = 0x1p-950;
    s.trans = trans;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    implicit_check_solved(&s);
    CHECK(s.calls.wide_rows > 0);
    implicit_tear_down(&s);
  }
}

TEST(operator, without_find_structure_has_none_unless_the_caller_says_so) {
  implicit s;
  implicit_set_up(&s, 40, 1);
  for (int64_t k = 0; k < 40; k++) /* symmetric and diagonally dominant */
    s.diagonals[39 - k] = s.diagonals[39 + k];
  s.diagonals[39] = 64.0;
  s.cholesky = true;
  implicit_finish(&s);
  implicit_run(&s, NULL);
  CHECK_EQ_INT(s.here.status, HONE_OK);
  CHECK_EQ_INT(s.here.factored.structure, HONE_FOUND_GENERAL);
  CHECK_CONTAINS(s.here.solved.path, "single LU");
  CHECK_CONTAINS(s.dense.solved.path, "single Cholesky");
  s.request.structure = HONE_STRUCTURE_SPD;
  implicit_run(&s, NULL);
  implicit_check_solved(&s);
  CHECK_CONTAINS(s.here.solved.path, "single Cholesky");
  /* Changes one diagonal above the main one: no longer symmetric. */
  s.diagonals[3] += 1.0;
  implicit_finish(&s);
  implicit_run(&s, NULL);
  implicit_check_solved(&s);
  CHECK_STR(s.here.solved.path, s.dense.solved.path);
  implicit_tear_down(&s);
}

TEST(operator, that_arrives_late_is_awaited_before_anything_is_read) {
  implicit s;
  implicit_set_up(&s, 30, 1);
  s.op = &toeplitz_operator_that_arrives;
  implicit_finish(&s);
  implicit_run(&s, NULL);
  implicit_check_solved(&s);
  CHECK_EQ_INT(s.calls.starts, 1);
  CHECK(s.calls.awaits > 0);
  CHECK_EQ_INT(s.calls.early, 0);
  s.matrix.await_status = HONE_DEVICE_FAILED;
  implicit_run(&s, NULL);
  CHECK_EQ_INT(s.here.factor_status, HONE_DEVICE_FAILED);
  CHECK_EQ_INT(s.calls.inspections + s.calls.residuals, 0);
  implicit_tear_down(&s);
}

static void residual_with_a_denominator_lost(const hone_residual_job *pass,
                                             hone_pool *pool) {
  toeplitz_operator.residual(pass, pool);
  for (int64_t c = 0; c < pass->k; c++)
    pass->den[c][3] = (double)NAN;
}

/* omega is NaN then, but the other two measures are small. */
TEST(operator, whose_denominators_are_nan_has_no_x_accepted) {
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    hone_operator lossy = toeplitz_operator;
    implicit s;
    lossy.residual = residual_with_a_denominator_lost;
    implicit_set_up(&s, 20, 1);
    s.request.criterion = criterion;
    implicit_finish(&s);
    implicit_run(&s, NULL);
    CHECK_EQ_INT(s.here.status, HONE_OK);
    s.op = &lossy;
    implicit_run(&s, NULL);
    ct_note("criterion %d", criterion);
    CHECK(s.here.status != HONE_OK);
    CHECK_EQ_INT(s.here.solved.accepted, 0);
    implicit_tear_down(&s);
  }
}

TEST(operator, is_solved_with_the_factors_of_a_nearby_matrix) {
  implicit s;
  implicit_set_up(&s, 60, 2);
  implicit_finish(&s);
  double *near = sup_copy(s.diagonals, 119);
  for (int64_t k = 0; k < 119; k++)
    near[k] *= 1.0 + 1e-5 * (double)(k % 3);
  toeplitz_matrix earlier = s.matrix;
  earlier.diagonals = near;
  implicit_run(&s, &earlier);
  implicit_check_solved(&s);
  CHECK_CONTAINS(s.here.solved.path, "single LU of an earlier matrix");
  sup_free(near);
  implicit_tear_down(&s);
}

/* The functions of the table ----------------------------------------------- */

/* Compares the residuals and denominators of both tables; accurate residuals
   agree to rounding. */
static void compare_residuals(const implicit *s, bool trans, bool accurate) {
  const int64_t n = s->n;
  const hone_matrix a = implicit_matrix(s), *twin = sup_matrix(n, n, s->twin);
  double *out = sup_filled(4 * n, 0.0);
  const double *x = s->x_true, *b = s->b;
  double *r1 = out, *r2 = out + n, *d1 = out + 2 * n, *d2 = out + 3 * n;
  hone_residual_job pass = {.a = &a,
                            .trans = trans,
                            .accurate = accurate,
                            .k = 1,
                            .x = &x,
                            .b = &b,
                            .r = &r1,
                            .den = &d1};
  a.op->residual(&pass, NULL);
  pass.a = twin;
  pass.r = &r2;
  pass.den = &d2;
  twin->op->residual(&pass, NULL);
  for (int64_t i = 0; i < n; i++) {
    const double miss =
        accurate ? 4.0 * SUP_EPS * fabs(r2[i]) + 1e3 * SUP_EPS * SUP_EPS * d2[i]
                 : (double)n * SUP_EPS * d2[i];
    CHECK_NEAR(r1[i], r2[i], miss);
    CHECK_NEAR(d1[i], d2[i], (double)n * SUP_EPS * d2[i]);
  }
  sup_free(out);
}

static void compare_rows(const implicit *s, bool trans, bool fast) {
  const hone_matrix a = implicit_matrix(s),
                    *twin = sup_matrix(s->n, s->n, s->twin);
  for (int64_t i = 0; i < s->n; i++) {
    hone_wide_row mine = {.a = &a,
                          .trans = trans,
                          .i = i,
                          .x = s->x_true,
                          .b = s->b[i],
                          .fast = fast,
                          .shift = 3};
    hone_wide_row dense = mine;
    dense.a = twin;
    a.op->wide_row(&mine);
    twin->op->wide_row(&dense);
    const double den = fabs(mine.r) / mine.quotient;
    const double miss = (fast ? 0x1p-63 * (double)s->n : 0x1p-100) * den;
    CHECK_NEAR(mine.r, dense.r, 2.0 * SUP_EPS * fabs(mine.r) + miss);
    CHECK_NEAR(mine.quotient, dense.quotient,
               2.0 * SUP_EPS * mine.quotient + miss / den);
  }
}

TEST(operator, computes_the_same_as_that_of_the_dense_copy) {
  for (int at = 0; at < 2; at++) {
    implicit s;
    implicit_set_up(&s, 70, 1);
    if (at == 1)
      implicit_make_scaled(&s);
    implicit_finish(&s);
    for (int64_t i = 0; i < 70; i++) /* x is not quite the solution */
      s.x_true[i] *= 1.0 + 1e-9 * (double)(i + 1);
    for (int kind = 0; kind < 4; kind++) {
      ct_note("kind %d", kind);
      compare_residuals(&s, kind & 1, kind & 2);
      compare_rows(&s, kind & 1, kind & 2);
    }
    implicit_tear_down(&s);
  }
}
