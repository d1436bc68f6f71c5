/* SPDX-License-Identifier: BSD-3-Clause */
/* Solving with the ladder: right-hand sides in blocks, each refined on the
   first usable rung; those that are not accepted climb, and only those. What
   is written to the caller's x, and with which status, is decided here. */
#include "refine/ladder.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An iterate this good is worth starting the next rung from. */
static const double WARM_START = 1e-6;

static int reserve(hone_ladder *ladder, int64_t columns) {
  if (columns <= ladder->block_columns)
    return HONE_OK;
  hone_mem_put(ladder->mem, ladder->block);
  ladder->block_columns = 0;
  ladder->block = hone_mem_get(ladder->mem, (size_t)(5 * ladder->n * columns) *
                                                sizeof(double));
  if (ladder->block == NULL)
    return HONE_NO_MEMORY;
  ladder->block_columns = columns;
  return HONE_OK;
}

/* What the columns of one block share while they climb. */
typedef struct climb {
  hone_ladder *ladder;
  hone_report *report;
  bool trans;
  int64_t m;
  hone_refined *columns;
  int rung[HONE_SOLVE_COLUMNS]; /* whose factors solved it */
} climb;

static int correction_cap(const hone_ladder *ladder, int precision) {
  if (ladder->wish.max_iterations > 0)
    return ladder->wish.max_iterations;
  /* One correction costs a pass over A and two triangular solves, about
     n / 60 of them a double factorization on the machines measured. */
  return precision == 64
             ? 10
             : (int)HONE_MAX((int64_t)8, HONE_MIN(ladder->n / 60, (int64_t)50));
}

static void begin_rung(const hone_ladder *ladder, climb *c, int r) {
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    if (column->state == HONE_COLUMN_ACCEPTED)
      continue;
    column->state = HONE_COLUMN_ACTIVE;
    column->ratio = column->step = 0.0;
    column->slow = 0;
    if (hone_refined_take_best(column)) {
      double value =
          hone_errors_value(&column->best_errors, ladder->wish.criterion);
      column->has_x = value <= WARM_START;
      column->warm = false;
    } else {
      column->has_x = column->warm; /* the caller's x0, not looked at yet */
    }
    column->tried = 0;
    c->rung[i] = r;
  }
}

/* Those not accepted; the first one's reason goes into the report. */
static int64_t count_left(climb *c, int r) {
  int64_t left = 0;
  for (int64_t i = 0; i < c->m; i++) {
    if (c->columns[i].state == HONE_COLUMN_ACCEPTED)
      continue;
    if (left++ == 0 && c->columns[i].state == HONE_COLUMN_LEFT)
      hone_ladder_add_reason(c->report, c->ladder->rung[r].engine->name,
                             c->columns[i].why);
  }
  return left;
}

static int refine_on(climb *c, int r) {
  hone_ladder *ladder = c->ladder;
  hone_refinement ctx = {
      .f = hone_ladder_factored_by(ladder, r),
      .trans = c->trans,
      .criterion = ladder->wish.criterion,
      .limit = ladder->wish.limit,
      .cap = correction_cap(ladder, ladder->rung[r].engine->precision),
      .norm_a = c->trans ? ladder->norm1 : ladder->norm_inf,
      .watch = ladder->watch,
      .v = ladder->block + 4 * ladder->n * ladder->block_columns};
  double start = hone_now_s();
  begin_rung(ladder, c, r);
  ladder->used = HONE_MAX(ladder->used, r);
  int st = hone_refine(&ctx, c->m, c->columns);
  c->report->refine_ms += 1e3 * (hone_now_s() - start);
  c->report->passes += ctx.passes;
  c->report->device_passes += ctx.device_passes;
  c->report->precision = ladder->rung[r].engine->precision;
  return st;
}

/* The rung a block of columns begins on: the first that holds factors. An
   earlier block may have climbed and given the cheaper ones' memory back. */
static int begin_climb(hone_ladder *ladder, hone_report *report, int *r) {
  for (*r = ladder->at; *r < ladder->rungs; ++*r)
    if (ladder->rung[*r].state == HONE_RUNG_READY)
      return HONE_OK;
  return hone_ladder_usable(ladder, ladder->at, report, r);
}

/* Refines the block's columns, climbing with those that need it. Returns
   HONE_OK (states tell), HONE_INTERRUPTED or HONE_CANCELLED, or why there
   was no rung that could be used. */
static int climb_columns(climb *c) {
  hone_ladder *ladder = c->ladder;
  int r, st = begin_climb(ladder, c->report, &r);
  if (st != HONE_OK)
    return st;
  for (;;) {
    st = refine_on(c, r);
    if (st == HONE_INTERRUPTED)
      return st;
    if (st != HONE_OK)
      hone_ladder_add_reason(c->report, ladder->rung[r].engine->name,
                             hone_status_text(st));
    const int64_t left = count_left(c, r);
    if (left == 0)
      return HONE_OK;
    if (ladder->stale) {
      st = hone_ladder_refactor(ladder, c->report);
      r = ladder->at;
    } else if (hone_ladder_above(ladder, r) < ladder->rungs) {
      st = hone_ladder_usable(
          ladder, st == HONE_OK ? hone_ladder_above(ladder, r) : r + 1,
          c->report, &r);
      c->report->fallback_columns += st == HONE_OK ? (int32_t)left : 0;
    } else {
      return st;
    }
    if (st != HONE_OK)
      return st;
  }
}

/* Bound on the relative error of x, from the norm of the inverse and the
   residual; the estimate of that norm is low by a factor of 3 at most in
   practice (Higham 2002, section 15.3). */
static double forward_bound(const hone_certificate *certificate,
                            double inverse_norm, double relative) {
  if (!certificate->nonsingular)
    return HONE_INF;
  double bound =
      3.0 * inverse_norm * relative / (1.0 - certificate->defect) + HONE_EPS;
  return bound <= DBL_MAX ? bound : HONE_INF;
}

/* The column's result; its best iterate becomes x. False: it has none. */
static bool finish_column(climb *c, int64_t i, int st, hone_column *out) {
  hone_refined *column = &c->columns[i];
  const hone_rung *rung = &c->ladder->rung[c->rung[i]];
  bool accepted = column->state == HONE_COLUMN_ACCEPTED;
  bool nonsingular = rung->certificate.nonsingular;
  *out = (hone_column){.status = HONE_NOT_CONVERGED,
                       .iterations = column->iterations,
                       .precision = rung->engine->precision,
                       .backward_error = HONE_INF,
                       .normwise_error = HONE_INF,
                       .residual_error = HONE_INF,
                       .forward_error = HONE_INF};
  if (!accepted && !hone_refined_take_best(column)) {
    out->status = st == HONE_INTERRUPTED || st == HONE_CANCELLED
                      ? HONE_CANCELLED
                      : (st < 0 ? st : HONE_OVERFLOW);
    return false;
  }
  out->backward_error = column->now.componentwise;
  out->normwise_error = column->now.normwise;
  out->residual_error = column->now.residual;
  const hone_certificate *certificate = &rung->certificate;
  out->forward_error = forward_bound(certificate, certificate->inverse_norm,
                                     column->now.relative);
  double scaled = forward_bound(certificate, certificate->inverse_norm_scaled,
                                column->now.relative_scaled);
  if (!nonsingular)
    out->status = HONE_ILL_CONDITIONED;
  else if (accepted)
    out->status = HONE_OK;
  else if (st == HONE_INTERRUPTED || st == HONE_CANCELLED)
    out->status = HONE_INTERRUPTED;
  if (out->status == HONE_OK &&
      c->ladder->wish.criterion == HONE_COMPONENTWISE &&
      !(scaled < 1.0)) /* no digit is certain, whatever the units */
    out->status = HONE_ILL_CONDITIONED;
  return true;
}

static double larger(double a, double b) { return b <= a ? a : b; }

static void add_to_report(hone_report *report, const hone_column *column) {
  report->accepted += column->status == HONE_OK;
  report->iterations = HONE_MAX(report->iterations, column->iterations);
  report->backward_error =
      larger(report->backward_error, column->backward_error);
  report->normwise_error =
      larger(report->normwise_error, column->normwise_error);
  report->forward_error = larger(report->forward_error, column->forward_error);
  report->residual_error =
      larger(report->residual_error, column->residual_error);
}

static void begin_block(hone_ladder *ladder, climb *c, const double *b,
                        int64_t ldb, const double *x0, int64_t ldx0) {
  const int64_t n = ladder->n, columns = ladder->block_columns;
  for (int64_t i = 0; i < c->m; i++) {
    double *v = ladder->block + i * n;
    c->columns[i] = (hone_refined){.b = b + i * ldb,
                                   .x = v,
                                   .spare = v + n * columns,
                                   .r = v + 2 * n * columns,
                                   .den = v + 3 * n * columns,
                                   .has_x = x0 != NULL,
                                   .warm = x0 != NULL};
    if (x0)
      memcpy(v, x0 + i * ldx0, (size_t)n * sizeof *v);
  }
}

int hone_ladder_solve(hone_ladder *ladder, bool trans, int64_t nrhs,
                      const double *b, int64_t ldb, double *x, int64_t ldx,
                      const double *x0, int64_t ldx0, hone_column *columns,
                      hone_report *report) {
  hone_refined refined[HONE_SOLVE_COLUMNS];
  climb c = {
      .ladder = ladder, .report = report, .trans = trans, .columns = refined};
  int status = HONE_OK, failed = HONE_OK;
  bool wrote = false;
  ladder->used = ladder->at;
  int st = reserve(ladder, HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS));
  if (st != HONE_OK)
    return st;
  for (int64_t at = 0; at < nrhs; at += c.m) {
    c.m = HONE_MIN((int64_t)HONE_SOLVE_COLUMNS, nrhs - at);
    begin_block(ladder, &c, b + at * ldb, ldb, x0 ? x0 + at * ldx0 : NULL,
                ldx0);
    st = ladder->watch->stopped ? HONE_CANCELLED : climb_columns(&c);
    for (int64_t i = 0; i < c.m; i++) {
      hone_column column;
      if (finish_column(&c, i, st, &column)) {
        memcpy(x + (at + i) * ldx, refined[i].x, (size_t)ladder->n * sizeof *x);
        status = HONE_MAX(status, column.status);
        wrote = true;
      } else {
        failed = column.status;
      }
      add_to_report(report, &column);
      if (columns)
        columns[at + i] = column;
    }
  }
  hone_ladder_report_matrix(ladder, report);
  hone_ladder_report_path(ladder, report);
  if (failed == HONE_OK)
    return status;
  if (!wrote)
    return failed;
  return failed == HONE_CANCELLED ? HONE_INTERRUPTED
                                  : HONE_MAX(status, HONE_NOT_CONVERGED);
}
