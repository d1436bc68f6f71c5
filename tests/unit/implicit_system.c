/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/implicit_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void implicit_set_up(implicit *s, int64_t n, int64_t nrhs) {
  sup_rng rng = {(uint64_t)(n + 1)};
  *s = (implicit){.n = n, .nrhs = nrhs, .op = &toeplitz_operator};
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

void implicit_make_circulant(implicit *s, double sum) {
  const int64_t n = s->n;
  double *t = s->diagonals + n - 1;
  for (int64_t k = 1; k < n; k++) {
    t[k - n] = t[k];
    sum -= t[k];
  }
  t[0] = sum;
}

void implicit_make_scaled(implicit *s) {
  sup_rng rng = {99};
  s->left = sup_filled(s->n, 0.0);
  s->right = sup_filled(s->n, 0.0);
  for (int64_t i = 0; i < s->n; i++) {
    s->left[i] = ldexp(1.0, (int)(sup_next(&rng) % 161) - 80);
    s->right[i] = ldexp(1.0, (int)(sup_next(&rng) % 161) - 80);
  }
}

void implicit_finish(implicit *s) {
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

void implicit_tear_down(implicit *s) {
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

static int ladder_solve(hone_ladder *ladder, const implicit *s,
                        implicit_result *r) {
  clear(&r->solved);
  r->solved.nrhs = s->nrhs;
  const int st = hone_ladder_solve(ladder, s->trans, s->nrhs, s->b, s->n, r->x,
                                   s->n, NULL, s->n, r->column, &r->solved);
  r->passes += r->solved.host_passes;
  return st;
}

/* Factors and solves through the table of a. Where earlier is not NULL, earlier
   is factored and a is the update. */
static void run_on(implicit *s, const hone_matrix *a,
                   const hone_matrix *earlier, const hone_step *steps,
                   int count, implicit_result *r) {
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

hone_matrix implicit_matrix(const implicit *s) {
  return (hone_matrix){s->op, &s->matrix, s->n};
}

void implicit_run(implicit *s, const toeplitz_matrix *earlier) {
  const hone_step here[] = {{.engine = &toeplitz_cholesky, .accurate = true},
                            {.engine = &toeplitz_single, .accurate = true},
                            {.engine = &toeplitz_double, .accurate = true}};
  const hone_step dense[] = {
      {.engine = &hone_engine_cholesky, .accurate = true},
      {.engine = &hone_engine_single, .accurate = true},
      {.engine = &hone_engine_double, .accurate = true}};
  const int skip = s->cholesky ? 0 : 1;
  const hone_matrix a = implicit_matrix(s), before = {s->op, earlier, s->n};
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
  if (dense->rcond > SUP_EPS) /* below, it is noise */
    check_near(here->rcond, dense->rcond, 1e-2);
}

void implicit_check_alike(const implicit *s) {
  CHECK_EQ_INT(s->here.factor_status, s->dense.factor_status);
  CHECK_EQ_INT(s->here.status, s->dense.status);
  check_reports(&s->here.factored, &s->dense.factored);
  if (s->here.factor_status != HONE_OK)
    return;
  check_reports(&s->here.solved, &s->dense.solved);
  CHECK_EQ_INT(s->calls.residuals + s->calls.products, s->here.passes);
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

void implicit_check_solved(const implicit *s) {
  implicit_check_alike(s);
  CHECK_EQ_INT(s->here.status, HONE_OK);
  CHECK_EQ_INT(s->here.solved.accepted, s->nrhs);
  for (int64_t c = 0; c < s->nrhs; c++)
    CHECK_LE(sup_backward_error(s->n, s->twin, s->n, s->trans,
                                s->here.x + c * s->n, s->b + c * s->n),
             SUP_LIMIT);
}
