/* SPDX-License-Identifier: BSD-3-Clause */
/* Solving with the ladder: right-hand sides in blocks, each refined on the
   first usable rung; those that are not accepted climb, and only those. What
   is written to the caller's x, and with which status, is decided here. */
#include "refine/bounds.h"
#include "refine/extra_precise.h"
#include "refine/ladder.h"
#include "refine/null_vector.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An iterate this good is worth starting the next rung from. */
static const double WARM_START = 1e-6;
/* Above this many n eps of rcond, an x without a certain digit is the
   tolerance's doing and not the matrix's. */
static const double REGULAR = 1e3;

static int reserve(hone_ladder *ladder, int64_t columns) {
  if (columns <= ladder->block_columns)
    return HONE_OK;
  hone_mem_put(ladder->mem, ladder->block);
  ladder->block_columns = 0;
  ladder->block = hone_mem_get(
      ladder->mem,
      (size_t)hone_ladder_block(ladder->n, columns, ladder->request.extra) *
          sizeof(hone_entry));
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
  if (ladder->request.max_iterations > 0)
    return ladder->request.max_iterations;
  /* One correction costs a pass over A and two triangular solves, about
     n / 60 of them a double factorization on the machines measured. */
  return precision == 64
             ? 10
             : (int)HONE_MAX((int64_t)8, HONE_MIN(ladder->n / 60, (int64_t)50));
}

/* Makes the column ready for rung r, from the best that it has. */
static void begin_column(const hone_ladder *ladder, hone_refined *column) {
  column->state = HONE_COLUMN_ACTIVE;
  column->ratio = column->step = 0.0;
  column->slow = 0;
  if (hone_refined_take_best(column)) {
    double value =
        hone_errors_value(&column->best_errors, ladder->request.criterion);
    column->has_x = value <= WARM_START;
    column->warm = false;
  } else {
    column->has_x = column->warm; /* the caller's x0, not looked at yet */
  }
  column->tried = 0;
  column->bounded = column->extra = column->slow_only = false;
  column->observed = HONE_NAN;
}

/* Has GMRES with the same factors more to give? Not where the caller's number
   of corrections was the end. */
static bool may_mend(const hone_ladder *ladder, const hone_refined *column) {
  const int most = ladder->request.max_iterations;
  return column->state == HONE_COLUMN_LEFT && column->slow_only &&
         !(most > 0 && column->tried >= most);
}

/* With the same factors: those alone that were only too slow. */
static void begin_rung(climb *c, int r, bool again) {
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    if (column->state == HONE_COLUMN_ACCEPTED ||
        (again && !may_mend(c->ladder, column)))
      continue;
    begin_column(c->ladder, column);
    c->rung[i] = r;
  }
}

/* Those not accepted; the first one's reason goes into the report. slow: how
   many of them GMRES may help. */
static int64_t count_left(climb *c, const char *who, int64_t *slow) {
  int64_t left = 0;
  *slow = 0;
  for (int64_t i = 0; i < c->m; i++) {
    const hone_refined *column = &c->columns[i];
    if (column->state == HONE_COLUMN_ACCEPTED)
      continue;
    if (left++ == 0 && column->state == HONE_COLUMN_LEFT)
      hone_ladder_add_reason(c->report, who, column->why);
    *slow += may_mend(c->ladder, column);
  }
  return left;
}

static bool accepted_on(const climb *c, int64_t i, int r) {
  return c->columns[i].state == HONE_COLUMN_ACCEPTED && c->rung[i] == r;
}

/* Is the error of an accepted column small enough for the caller? */
static bool error_suffices(const climb *c, int64_t i) {
  const hone_certificate *certificate =
      &c->ladder->rung[c->rung[i]].certificate;
  const hone_refined *column = &c->columns[i];
  return hone_bounds_certain(certificate, column) &&
         (!c->ladder->request.extra ||
          hone_bounds_forward(certificate, column, false) <= HONE_EXTRA_LIMIT);
}

/* Extra-precise mode: all columns accepted on rung r at once, unless that was
   done before GMRES took up the others. */
static int refine_extra(climb *c, int r, hone_refinement *ctx) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t i = 0; i < c->m; i++)
    if (accepted_on(c, i, r) && !c->columns[i].extra)
      list[count++] = &c->columns[i];
  return hone_extra(ctx, true, count, list);
}

/* Columns of which no digit is certain: rare, one by one, with a tail in the
   scratch. */
static int refine_uncertain(climb *c, int r, hone_refinement *ctx) {
  const int64_t n = c->ladder->n;
  int st = HONE_OK;
  for (int64_t i = 0; i < c->m && st == HONE_OK; i++) {
    hone_refined *column = &c->columns[i];
    if (!accepted_on(c, i, r) || error_suffices(c, i))
      continue;
    column->tail = c->ladder->scratch;
    column->tail_r = column->tail + n;
    column->tail_den = (double *)(column->tail_r + n);
    st = hone_extra(ctx, false, 1, &column);
  }
  return st;
}

/* Error bounds of the columns accepted on rung r. Those of which no digit is
   certain, and in extra-precise mode all of them, are refined on; what is
   still too large climbs. */
static int certify_columns(climb *c, int r, hone_refinement *ctx) {
  const hone_certificate *certificate = &c->ladder->rung[r].certificate;
  const double start = hone_now_s();
  int st = HONE_OK;
  if (!certificate->nonsingular) /* nothing to be had */
    return HONE_OK;
  ctx->certificate = certificate;
  ctx->observe = ctx->f.space != NULL || !hone_bounds_known(certificate);
  if (c->ladder->request.max_iterations == 0) /* as many again */
    ctx->cap *= 2;
  if (c->ladder->request.extra) {
    ctx->there = NULL;
    st = refine_extra(c, r, ctx);
  }
  const double middle = hone_now_s();
  hone_bounds_estimate(ctx, certificate, c->m, c->columns);
  const double end = hone_now_s();
  if (st == HONE_OK && !c->ladder->request.extra) {
    st = refine_uncertain(c, r, ctx);
    hone_bounds_estimate(ctx, certificate, c->m, c->columns);
  }
  for (int64_t i = 0; i < c->m && st == HONE_OK; i++)
    if (accepted_on(c, i, r) && !error_suffices(c, i)) {
      c->columns[i].state = HONE_COLUMN_LEFT;
      snprintf(c->columns[i].why, sizeof c->columns[i].why,
               "its error bound is too large");
    }
  c->report->certify_ms += 1e3 * (end - middle);
  c->report->refine_ms += 1e3 * (hone_now_s() - end + middle - start);
  return st;
}

static int64_t count_open(const climb *c) {
  int64_t open = 0;
  for (int64_t i = 0; i < c->m; i++)
    open += c->columns[i].state != HONE_COLUMN_ACCEPTED;
  return open;
}

/* The pairs a solve on rung r begins with: those of its certificate, unless
   another rung's stand there, or they are of A and this is A^T. */
static hone_space begin_space(const climb *c, int r) {
  const hone_ladder *ladder = c->ladder;
  if (ladder->space_of != r || ladder->rung[r].certificate.pairs == 0)
    return hone_space_make(ladder->n, c->trans, ladder->pairs);
  return c->trans ? hone_space_behind(&ladder->space) : ladder->space;
}

/* Refines on rung r; steps > 0: by so many steps of GMRES. */
static int refine_on(climb *c, int r, int steps, bool again) {
  hone_ladder *ladder = c->ladder;
  hone_refinement ctx = {
      .f = hone_ladder_factored_by(ladder, r),
      .trans = c->trans,
      .criterion = ladder->request.criterion,
      .limit = ladder->request.limit,
      .cap = correction_cap(ladder, ladder->rung[r].engine->precision),
      .norm_a = c->trans ? ladder->norm1 : ladder->norm_inf,
      .watch = ladder->watch,
      .v = ladder->block + 4 * ladder->n * ladder->block_columns};
  double start = hone_now_s();
  hone_space space;
  if (steps > 0) {
    space = begin_space(c, r);
    ctx.f.space = &space;
    ctx.cap = steps;
  }
  begin_rung(c, r, again);
  ladder->used = HONE_MAX(ladder->used, r);
  int st = hone_refine(&ctx, c->m, c->columns);
  c->report->refine_ms += 1e3 * (hone_now_s() - start);
  if (st == HONE_OK)
    st = certify_columns(c, r, &ctx);
  c->report->host_passes += ctx.passes;
  c->report->device_passes += ctx.device_passes;
  c->report->precision = ladder->rung[r].engine->precision;
  return st;
}

/* Everything that rung r's factors are good for: refinement, and where that
   is too slow GMRES; that at once where already the certificate needed it,
   unless it does not pay for so many columns and something is above. *left: the
   columns not accepted; *skipped: none was tried. */
static int use_rung(climb *c, int r, int64_t *left, bool *skipped) {
  hone_ladder *ladder = c->ladder;
  const hone_rung *rung = &ladder->rung[r];
  int64_t slow = 0;
  int steps = 0;
  *left = count_open(c);
  if (rung->certificate.pairs > 0) {
    const bool must = *skipped || hone_ladder_above(ladder, r) >= ladder->rungs;
    steps = hone_ladder_gmres_steps(ladder, r, must ? 1 : *left, c->report);
    *skipped = steps == 0;
    if (steps == 0) {
      hone_ladder_add_reason(c->report, rung->engine->name,
                             "GMRES does not pay for so many columns");
      return HONE_OK;
    }
  }
  for (bool again = false;; again = true) {
    int st = refine_on(c, r, steps, again);
    if (st == HONE_INTERRUPTED)
      return st;
    if (st != HONE_OK)
      hone_ladder_add_reason(c->report, rung->engine->name,
                             hone_status_text(st));
    *left = count_left(c, steps > 0 ? "GMRES" : rung->engine->name, &slow);
    if (st != HONE_OK || slow == 0 || steps > 0)
      return st;
    steps = hone_ladder_gmres_steps(ladder, r, slow, c->report);
    if (steps == 0)
      return st;
  }
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
  bool skipped = false;
  if (st != HONE_OK)
    return st;
  for (;;) {
    const int from = r;
    int64_t left;
    st = use_rung(c, r, &left, &skipped);
    if (st == HONE_INTERRUPTED)
      return st;
    if (left == 0)
      return HONE_OK;
    if (ladder->stale) {
      st = hone_ladder_refactor(ladder, c->report);
      r = ladder->at;
    } else if (hone_ladder_above(ladder, r) < ladder->rungs) {
      st = hone_ladder_usable(ladder,
                              st == HONE_OK ? hone_ladder_above(ladder, r)
                                            : hone_ladder_elsewhere(ladder, r),
                              c->report, &r);
      c->report->fallback_columns += st == HONE_OK ? (int32_t)left : 0;
    } else {
      return st;
    }
    if (st != HONE_OK && st != HONE_CANCELLED && skipped &&
        ladder->rung[from].state == HONE_RUNG_READY)
      return use_rung(c, from, &left, &skipped); /* better than nothing */
    if (st != HONE_OK)
      return st;
    skipped = false;
  }
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
  out->forward_error = hone_bounds_forward(&rung->certificate, column, false);
  out->digits = hone_bounds_digits(out->forward_error);
  if (!nonsingular)
    out->status = HONE_ILL_CONDITIONED;
  else if (accepted)
    out->status = HONE_OK;
  else if (st == HONE_INTERRUPTED || st == HONE_CANCELLED)
    out->status = HONE_INTERRUPTED;
  /* Nobody who asked for less meant an x without a digit. */
  const hone_request *request = &c->ladder->request;
  bool met =
      hone_errors_value(&column->now, request->criterion) <= request->limit;
  if (met && out->status <= HONE_NOT_CONVERGED &&
      !hone_bounds_certain(&rung->certificate, column))
    out->status = rung->certificate.rcond_scaled >=
                          REGULAR * (double)c->ladder->n * HONE_EPS
                      ? HONE_NOT_CONVERGED /* a loose tolerance */
                      : HONE_ILL_CONDITIONED;
  if (out->status == HONE_OK && !error_suffices(c, i)) /* stopped before */
    out->status = HONE_INTERRUPTED;
  return true;
}

static double larger(double a, double b) { return b <= a ? a : b; }

static void add_to_report(climb *c, const hone_refined *refined,
                          const hone_column *column) {
  hone_report *report = c->report;
  report->gmres_steps = HONE_MAX(report->gmres_steps, refined->steps);
  c->ladder->refinements =
      HONE_MAX(c->ladder->refinements, refined->iterations - refined->steps);
  report->accepted += column->status == HONE_OK;
  report->iterations = HONE_MAX(report->iterations, column->iterations);
  report->backward_error =
      larger(report->backward_error, column->backward_error);
  report->normwise_error =
      larger(report->normwise_error, column->normwise_error);
  report->forward_error = larger(report->forward_error, column->forward_error);
  report->residual_error =
      larger(report->residual_error, column->residual_error);
  report->digits = hone_bounds_digits(report->forward_error);
}

static void begin_block(hone_ladder *ladder, climb *c, const hone_entry *b,
                        int64_t ldb, const hone_entry *x0, int64_t ldx0) {
  const int64_t n = ladder->n, columns = ladder->block_columns;
  const bool extra = ladder->request.extra;
  for (int64_t i = 0; i < c->m; i++) {
    hone_entry *v = ladder->block + i * n;
    c->columns[i] = (hone_refined){
        .b = b + i * ldb,
        .x = v,
        .spare = v + n * columns,
        .r = v + 2 * n * columns,
        .den = (double *)(v + 3 * n * columns),
        .tail = extra ? v + 5 * n * columns : NULL,
        .tail_r = extra ? v + 6 * n * columns : NULL,
        .tail_den = extra ? (double *)(v + 7 * n * columns) : NULL,
        .has_x = x0 != NULL,
        .warm = x0 != NULL};
    if (x0)
      memcpy(v, x0 + i * ldx0, (size_t)n * sizeof *v);
  }
}

int hone_ladder_solve(hone_ladder *ladder, bool trans, int64_t nrhs,
                      const hone_entry *b, int64_t ldb, hone_entry *x,
                      int64_t ldx, const hone_entry *x0, int64_t ldx0,
                      hone_column *columns, hone_report *report) {
  hone_refined refined[HONE_SOLVE_COLUMNS];
  climb c = {
      .ladder = ladder, .report = report, .trans = trans, .columns = refined};
  int status = HONE_OK, failed = HONE_OK;
  bool wrote = false, singular = false;
  ladder->used = ladder->at;
  ladder->refinements = 0;
  int st = reserve(ladder, HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS));
  if (st != HONE_OK)
    return st;
  for (int64_t at = 0; at < nrhs; at += c.m) {
    memset(c.rung, 0, sizeof c.rung);
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
      add_to_report(&c, &refined[i], &column);
      singular = singular || column.status == HONE_ILL_CONDITIONED;
      if (columns)
        columns[at + i] = column;
    }
  }
  if (singular && ladder->rung[ladder->used].self != NULL) {
    const hone_factored f = hone_ladder_factored_by(ladder, ladder->used);
    hone_null_find(&f, false, ladder->scratch, report);
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
