/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop with a matrix that is not dense: an implicit Toeplitz matrix behind
   base/operator.h (toeplitz.h). It is refined and accepted by the same rule as
   a dense matrix.

   Every x is measured in quadruple precision on a dense copy, the twin, and
   every report is compared with that of the twin's own solve. */
#include "tests/unit/toeplitz.h"

#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A system on its stage --------------------------------------------------- */

enum { MOST_COLUMNS = 70 };

/* One solve of it. */
typedef struct run {
  int status, factor_status;
  int passes; /* of factor and solve */
  hone_report factored, solved;
  hone_column column[MOST_COLUMNS];
  double *x; /* n x nrhs */
  int64_t held;
} run;

typedef struct stage {
  int64_t n, nrhs;
  bool trans, cholesky;
  double *diagonals, *left, *right;
  double *twin;   /* the dense matrix, n x n */
  double *whole;  /* n x nrhs, small whole numbers */
  double *x_true; /* n x nrhs, these over the scaling of A */
  double *b;      /* op(A) x_true: exact where the diagonals have few bits */
  toeplitz_calls calls;
  toeplitz_matrix matrix;
  const hone_operator *op;
  hone_request request;
  run here, dense; /* through the table above, and of the twin */
} stage;

/* Diagonals of 20 bits, so that D T E x is exact for small whole x. */
static void set_up(stage *s, int64_t n, int64_t nrhs) {
  sup_rng rng = {(uint64_t)(n + 1)};
  *s = (stage){.n = n, .nrhs = nrhs, .op = &toeplitz_operator};
  s->request = (hone_request){.criterion = HONE_CRITERION_COMPONENTWISE,
                              .limit = SUP_LIMIT,
                              .columns = nrhs};
  s->diagonals = sup_filled(2 * n - 1, 0.0);
  s->twin = sup_filled(n * n, 0.0);
  s->whole = sup_filled(n * nrhs, 0.0);
  s->x_true = sup_filled(n * nrhs, 0.0);
  s->b = sup_filled(n * nrhs, 0.0);
  s->here.x = sup_filled(n * nrhs, 77.0);
  s->dense.x = sup_filled(n * nrhs, 77.0);
  for (int64_t k = 0; k < 2 * n - 1; k++)
    s->diagonals[k] = nearbyint(sup_uniform(&rng) * 0x1p20) * 0x1p-20;
  for (int64_t k = 0; k < n * nrhs; k++)
    s->whole[k] = s->x_true[k] = 1.0 + (double)(sup_next(&rng) % 8);
}

/* All diagonals c_((i-j) mod n) of a circulant, whose rows have the sum
   'sum': then ones are an eigenvector to that eigenvalue. */
static void make_circulant(stage *s, double sum) {
  const int64_t n = s->n;
  double *t = s->diagonals + n - 1;
  for (int64_t k = 1; k < n; k++) {
    t[k - n] = t[k];
    sum -= t[k];
  }
  t[0] = sum;
}

static void make_scaled(stage *s) {
  sup_rng rng = {99};
  s->left = sup_filled(s->n, 0.0);
  s->right = sup_filled(s->n, 0.0);
  for (int64_t i = 0; i < s->n; i++) {
    s->left[i] = ldexp(1.0, (int)(sup_next(&rng) % 161) - 80);
    s->right[i] = ldexp(1.0, (int)(sup_next(&rng) % 161) - 80);
  }
}

/* The last step before a solve: the twin, and b. x is as large as the scaling
   of A makes it. */
static void finish(stage *s) {
  const double *scale = s->trans ? s->left : s->right;
  for (int64_t k = 0; k < s->n * s->nrhs && scale != NULL; k++)
    s->x_true[k] = s->whole[k] / scale[k % s->n];
  s->matrix = (toeplitz_matrix){.no_order = -1,
                                .no_lda = -1,
                                .order = s->n,
                                .diagonals = s->diagonals,
                                .left = s->left,
                                .right = s->right,
                                .calls = &s->calls};
  toeplitz_write_dense(&s->matrix, s->twin);
  for (int64_t c = 0; c < s->nrhs; c++)
    sup_multiply(s->n, s->twin, s->n, s->trans, s->x_true + c * s->n,
                 s->b + c * s->n);
}

static void tear_down(stage *s) {
  CHECK_EQ_INT(s->here.held, 0);
  CHECK_EQ_INT(s->dense.held, 0);
  sup_free(s->diagonals);
  sup_free(s->left);
  sup_free(s->right);
  sup_free(s->twin);
  sup_free(s->whole);
  sup_free(s->x_true);
  sup_free(s->b);
  sup_free(s->here.x);
  sup_free(s->dense.x);
}

static void clear(hone_report *report) {
  memset(report, 0, sizeof *report);
  report->bad_row = report->bad_col = -1;
}

static int ladder_solve(hone_ladder *ladder, const stage *s, run *r) {
  clear(&r->solved);
  r->solved.nrhs = s->nrhs;
  const int st = hone_ladder_solve(ladder, s->trans, s->nrhs, s->b, s->n, r->x,
                                   s->n, NULL, s->n, r->column, &r->solved);
  r->passes += r->solved.host_passes;
  return st;
}

/* Factors and solves, through whichever table the matrix has. update: the
   matrix was another one at first. */
static void run_on(stage *s, const hone_matrix *a, const hone_matrix *earlier,
                   const hone_step *steps, int count, run *r) {
  hone_mem mem = {.alloc = NULL};
  hone_watch watch = {.progress = NULL};
  hone_ladder ladder;
  clear(&r->factored);
  r->status = r->factor_status = hone_ladder_create(
      &ladder, a->op, s->n, steps, count, &s->request, &mem, NULL, &watch);
  if (r->status == HONE_OK)
    r->status =
        hone_ladder_factor(&ladder, earlier ? earlier : a, &r->factored);
  r->passes = r->factored.host_passes;
  if (r->status == HONE_OK && earlier != NULL) {
    clear(&r->factored);
    r->status = hone_ladder_update(&ladder, a, &r->factored);
    r->passes += r->factored.host_passes;
  }
  r->factor_status = r->status;
  if (r->status == HONE_OK)
    r->status = ladder_solve(&ladder, s, r);
  hone_ladder_destroy(&ladder);
  r->held = mem.held;
}

static hone_matrix matrix_of(const stage *s) {
  return (hone_matrix){s->op, &s->matrix, s->n};
}

static void run_both(stage *s, const toeplitz_matrix *earlier) {
  const hone_step here[] = {{&toeplitz_cholesky, true},
                            {&toeplitz_single, true},
                            {&toeplitz_double, true}};
  const hone_step dense[] = {{&hone_engine_cholesky, true},
                             {&hone_engine_single, true},
                             {&hone_engine_double, true}};
  const int skip = s->cholesky ? 0 : 1;
  const hone_matrix a = matrix_of(s), before = {s->op, earlier, s->n};
  double *other = earlier ? sup_filled(s->n * s->n, 0.0) : NULL;
  s->calls = (toeplitz_calls){.starts = 0};
  run_on(s, &a, earlier ? &before : NULL, here + skip, 3 - skip, &s->here);
  if (earlier != NULL)
    toeplitz_write_dense(earlier, other);
  run_on(s, sup_matrix(s->n, s->n, s->twin),
         earlier ? sup_matrix(s->n, s->n, other) : NULL, dense + skip, 3 - skip,
         &s->dense);
  sup_free(other);
}

/* Checks --------------------------------------------------------------------
 */

static void check_near(double a, double b, double part) {
  CHECK_NEAR(a, b, part * fabs(b));
}

static void check_reports(const hone_report *here, const hone_report *dense) {
  CHECK_EQ_INT(here->bad_row, dense->bad_row);
  CHECK_EQ_INT(here->bad_col, dense->bad_col);
  CHECK_EQ_INT(here->precision, dense->precision);
  CHECK_EQ_INT(here->accepted, dense->accepted);
  CHECK_EQ_INT(here->scale_exponent_min, dense->scale_exponent_min);
  CHECK_EQ_INT(here->scale_exponent_max, dense->scale_exponent_max);
  CHECK_EQ_INT(here->underflows, dense->underflows);
  CHECK_EQ_INT(here->null_count, dense->null_count);
  CHECK_EQ_INT(here->structure, dense->structure);
  CHECK(here->max_abs == dense->max_abs);
  CHECK(here->min_abs == dense->min_abs);
  check_near(here->norm1, dense->norm1, 1e-13);
  check_near(here->growth, dense->growth, 1e-13);
  check_near(here->rcond, dense->rcond, 1e-2);
}

/* Both runs ended alike, and the numbers of each x are true. */
static void check_alike(const stage *s) {
  CHECK_EQ_INT(s->here.factor_status, s->dense.factor_status);
  CHECK_EQ_INT(s->here.status, s->dense.status);
  check_reports(&s->here.factored, &s->dense.factored);
  if (s->here.factor_status != HONE_OK)
    return;
  check_reports(&s->here.solved, &s->dense.solved);
  CHECK_EQ_INT(s->calls.residuals, s->here.passes);
  for (int64_t c = 0; c < s->nrhs; c++) {
    const hone_column *here = &s->here.column[c], *dense = &s->dense.column[c];
    const double *x = s->here.x + c * s->n, *b = s->b + c * s->n;
    const double omega =
        sup_backward_error(s->n, s->twin, s->n, s->trans, x, b);
    const double error = sup_forward_error(s->n, x, s->x_true + c * s->n);
    ct_note("column %d", (int)c);
    CHECK_EQ_INT(here->status, dense->status);
    CHECK_EQ_INT(here->precision, dense->precision);
    CHECK_LE(abs(here->digits - dense->digits), 2);
    CHECK_NEAR(here->backward_error, omega, 1e-3 * omega + 1e-25);
    CHECK_LE(error, here->forward_error);
  }
  ct_note(NULL);
}

/* ... and every x is accepted, by the same rule. */
static void check_solved(const stage *s) {
  check_alike(s);
  CHECK_EQ_INT(s->here.status, HONE_OK);
  CHECK_EQ_INT(s->here.solved.accepted, s->nrhs);
  for (int64_t c = 0; c < s->nrhs; c++)
    CHECK_LE(sup_backward_error(s->n, s->twin, s->n, s->trans,
                                s->here.x + c * s->n, s->b + c * s->n),
             SUP_LIMIT);
}

/* Tests ---------------------------------------------------------------------
 */

TEST(operator, of_an_implicit_matrix_is_refined_as_a_dense_one) {
  static const int64_t orders[] = {1, 2, 3, 17, 64, 150};
  for (int at = 0; at < 12; at++) {
    stage s;
    set_up(&s, orders[at / 2], 1);
    s.trans = at % 2;
    finish(&s);
    ct_note("n %d", (int)s.n);
    run_both(&s, NULL);
    check_solved(&s);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    CHECK_STR(s.here.solved.path, s.dense.solved.path);
    CHECK(s.calls.inspections > 0);
    CHECK_EQ_INT(s.calls.symmetries, 0);
    tear_down(&s);
  }
}

TEST(operator, solves_for_several_columns_and_more_than_a_block) {
  static const int64_t counts[] = {2, 5, 64, 70};
  for (int at = 0; at < 8; at++) {
    stage s;
    set_up(&s, 30, counts[at / 2]);
    s.trans = at % 2;
    finish(&s);
    run_both(&s, NULL);
    check_solved(&s);
    tear_down(&s);
  }
}

/* D T E has entries of 2^-160 to 2^160. */
TEST(operator, is_inspected_through_the_scaling_that_it_needs) {
  for (int trans = 0; trans < 2; trans++) {
    stage s;
    set_up(&s, 50, 2);
    make_scaled(&s);
    s.trans = trans;
    finish(&s);
    run_both(&s, NULL);
    check_solved(&s);
    CHECK_LT(s.here.factored.scale_exponent_min, -20);
    CHECK_LT(20, s.here.factored.scale_exponent_max);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    tear_down(&s);
  }
}

/* The eigenvalue 2^-29 among others of about 5: single factors alone do not
   contract. */
TEST(operator, is_taken_by_gmres_where_its_condition_is_1e9) {
  for (int trans = 0; trans < 2; trans++) {
    stage s;
    set_up(&s, 100, 1);
    make_circulant(&s, 0x1p-29);
    s.trans = trans;
    finish(&s);
    run_both(&s, NULL);
    check_solved(&s);
    CHECK_LT(s.here.solved.rcond, 1e-9);
    CHECK_EQ_INT(s.here.solved.precision, 32);
    CHECK_CONTAINS(s.here.solved.path, "GMRES");
    s.request.gmres_steps = -1;
    run_both(&s, NULL);
    check_solved(&s);
    CHECK_EQ_INT(s.here.solved.precision, 64);
    tear_down(&s);
  }
}

TEST(operator, gives_every_digit_of_x_in_extra_precise_mode) {
  for (int at = 0; at < 4; at++) {
    stage s;
    set_up(&s, 100, 2);
    if (at >= 2)
      make_circulant(&s, 0x1p-20);
    s.trans = at % 2;
    s.request.extra = true;
    finish(&s);
    run_both(&s, NULL);
    check_solved(&s);
    CHECK_LE(s.here.solved.forward_error, 8.0 * SUP_EPS);
    for (int64_t c = 0; c < 2; c++)
      CHECK_LE(sup_forward_error(100, s.here.x + c * 100, s.x_true + c * 100),
               8.0 * SUP_EPS);
    tear_down(&s);
  }
}

/* Rows with the sum 0: ones are a null vector. */
TEST(operator, that_is_singular_is_refused_as_the_dense_one_is) {
  for (int trans = 0; trans < 2; trans++) {
    stage s;
    set_up(&s, 40, 1);
    make_circulant(&s, 0.0);
    s.trans = trans;
    finish(&s);
    run_both(&s, NULL);
    check_alike(&s);
    CHECK(s.here.status == HONE_ILL_CONDITIONED ||
          s.here.status == HONE_SINGULAR);
    CHECK_EQ_INT(s.here.solved.accepted, 0);
    if (s.here.status == HONE_ILL_CONDITIONED)
      CHECK_EQ_INT(s.here.solved.null_count, 40);
    tear_down(&s);
  }
}

TEST(operator, with_a_zero_row_or_column_is_called_singular) {
  stage s;
  set_up(&s, 9, 1);
  make_scaled(&s);
  s.left[5] = 0.0;
  finish(&s);
  run_both(&s, NULL);
  check_alike(&s);
  CHECK_EQ_INT(s.here.status, HONE_SINGULAR);
  CHECK_EQ_INT(s.here.factored.bad_row, 5);
  tear_down(&s);
}

TEST(operator, tells_where_the_first_nan_stands) {
  static const int64_t offsets[] = {0, 1, -1, 7, -7};
  for (int at = 0; at < 5; at++) {
    const int64_t k = offsets[at];
    stage s;
    set_up(&s, 8, 1);
    finish(&s);
    s.diagonals[k + 7] = at % 2 ? (double)NAN : (double)INFINITY;
    toeplitz_write_dense(&s.matrix, s.twin);
    run_both(&s, NULL);
    check_alike(&s);
    CHECK_EQ_INT(s.here.status, HONE_NOT_FINITE_A);
    CHECK_EQ_INT(s.here.factored.bad_row, k > 0 ? k : 0);
    CHECK_EQ_INT(s.here.factored.bad_col, k > 0 ? 0 : -k);
    CHECK(sup_untouched(s.here.x, 8, 77.0));
    tear_down(&s);
  }
}

/* Products about 2^-950 beside others about 1: that row is measured once more,
   in extended range. */
TEST(operator, is_asked_for_rows_near_the_end_of_the_range_of_double) {
  for (int trans = 0; trans < 2; trans++) {
    stage s;
    set_up(&s, 20, 2);
    s.left = sup_filled(20, 1.0);
    s.right = sup_filled(20, 1.0);
    (trans ? s.right : s.left)[7] = 0x1p-950;
    s.trans = trans;
    finish(&s);
    run_both(&s, NULL);
    check_solved(&s);
    CHECK(s.calls.wide_rows > 0);
    tear_down(&s);
  }
}

TEST(operator, without_find_structure_has_none_unless_the_caller_says_so) {
  stage s;
  set_up(&s, 40, 1);
  for (int64_t k = 0; k < 40; k++) /* symmetric and dominant */
    s.diagonals[39 - k] = s.diagonals[39 + k];
  s.diagonals[39] = 64.0;
  s.cholesky = true;
  finish(&s);
  run_both(&s, NULL);
  CHECK_EQ_INT(s.here.status, HONE_OK);
  CHECK_EQ_INT(s.here.factored.structure, HONE_FOUND_GENERAL);
  CHECK_CONTAINS(s.here.solved.path, "single LU");
  CHECK_CONTAINS(s.dense.solved.path, "single Cholesky");
  s.request.structure = HONE_STRUCTURE_SPD;
  run_both(&s, NULL);
  check_solved(&s);
  CHECK_CONTAINS(s.here.solved.path, "single Cholesky");
  CHECK(s.calls.symmetries > 0);
  s.diagonals[3] += 1.0; /* one of the upper triangle: not symmetric now */
  finish(&s);
  run_both(&s, NULL);
  check_solved(&s);
  CHECK_STR(s.here.solved.path, s.dense.solved.path);
  tear_down(&s);
}

TEST(operator, with_a_start_is_waited_for_before_anything_is_read) {
  stage s;
  set_up(&s, 30, 1);
  s.op = &toeplitz_operator_that_arrives;
  finish(&s);
  run_both(&s, NULL);
  check_solved(&s);
  CHECK_EQ_INT(s.calls.starts, 1);
  CHECK(s.calls.awaits > 0);
  CHECK_EQ_INT(s.calls.early, 0);
  s.matrix.await_status = HONE_DEVICE_FAILED;
  run_both(&s, NULL);
  CHECK_EQ_INT(s.here.factor_status, HONE_DEVICE_FAILED);
  CHECK_EQ_INT(s.calls.inspections + s.calls.residuals, 0);
  tear_down(&s);
}

TEST(operator, keeps_the_factors_of_a_matrix_nearby) {
  stage s;
  set_up(&s, 60, 2);
  finish(&s);
  double *near = sup_copy(s.diagonals, 119);
  for (int64_t k = 0; k < 119; k++)
    near[k] *= 1.0 + 1e-5 * (double)(k % 3);
  toeplitz_matrix earlier = s.matrix;
  earlier.diagonals = near;
  run_both(&s, &earlier);
  check_solved(&s);
  CHECK_CONTAINS(s.here.solved.path, "single LU of an earlier matrix");
  sup_free(near);
  tear_down(&s);
}

/* The contract of the table -------------------------------------------------
 */

/* Both passes of both tables: r to rounding of itself where accurate. */
static void compare_residuals(const stage *s, bool trans, bool accurate) {
  const int64_t n = s->n;
  const hone_matrix a = matrix_of(s), *twin = sup_matrix(n, n, s->twin);
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

static void compare_rows(const stage *s, bool trans, bool fast) {
  const hone_matrix a = matrix_of(s), *twin = sup_matrix(s->n, s->n, s->twin);
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

TEST(operator, of_a_dense_matrix_computes_what_another_one_does) {
  for (int at = 0; at < 2; at++) {
    stage s;
    set_up(&s, 70, 1);
    if (at == 1)
      make_scaled(&s);
    finish(&s);
    for (int64_t i = 0; i < 70; i++) /* x is not quite the solution */
      s.x_true[i] *= 1.0 + 1e-9 * (double)(i + 1);
    for (int kind = 0; kind < 4; kind++) {
      ct_note("kind %d", kind);
      compare_residuals(&s, kind & 1, kind & 2);
      compare_rows(&s, kind & 1, kind & 2);
    }
    tear_down(&s);
  }
}
