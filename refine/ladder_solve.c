/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves for right-hand sides, block by block, in double precision: each block
   climbs (climb.c); here it is decided what is written to the caller's x, with
   which status, and what later findings revoke. Next to read: climb.c. */
#include "refine/bounds.h"
#include "refine/climb.h"
#include "refine/null_vector.h"
#include "refine/probes.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* With rcond_scaled above this many n eps, an x without a certain digit is due
   to a loose tolerance and not to the matrix. */
static const double WELL_CONDITIONED = 1e3;

static void fill_infinite(int64_t n, double *bars) {
  for (int64_t i = 0; i < n; i++)
    bars[i] = HONE_INF;
}

/* Makes the best iterate of column i its x and fills its result. Returns false
   if the column has no iterate. */
static bool finish_column(hone_climb *c, int64_t i, int st, hone_column *out) {
  hone_refined *column = &c->columns[i];
  const hone_rung *rung = &c->ladder->rung[c->rung[i]];
  /* If the host could not read A when it had to, no iterate that the device
     alone has measured is anybody's x. */
  const int lost = hone_matrix_failure(&c->ladder->a);
  bool accepted = column->state == HONE_COLUMN_ACCEPTED;
  const bool stopped = st == HONE_INTERRUPTED || st == HONE_CANCELLED;
  bool nonsingular = rung->certificate.nonsingular && !c->ladder->refuted;
  *out = (hone_column){.status = HONE_NOT_CONVERGED,
                       .iterations = column->iterations,
                       .precision = rung->engine->precision,
                       .backward_error = HONE_INF,
                       .normwise_error = HONE_INF,
                       .residual_error = HONE_INF,
                       .forward_error = HONE_INF};
  if (!accepted && (lost != HONE_OK || !hone_refined_take_best(column))) {
    out->precision = 0;
    out->status = lost != HONE_OK ? lost
                  : stopped       ? HONE_CANCELLED
                                  : (st < 0 ? st : HONE_OVERFLOW);
    return false;
  }
  out->backward_error = column->errors.componentwise;
  out->normwise_error = column->errors.normwise;
  out->residual_error = column->errors.residual + column->errors.residual_noise;
  /* Where another matrix was being factored when the solve ended, its scaling
     has come, and the certificate is that of earlier factors. */
  if (nonsingular && c->ladder->factored)
    out->forward_error = hone_bounds_forward(&rung->certificate, column, false);
  out->digits = hone_bounds_digits(out->forward_error);
  const hone_request *request = &c->ladder->request;
  const bool meets_tolerance =
      hone_errors_value(&column->errors, request->criterion) <= request->limit;
  if (!nonsingular)
    out->status = HONE_ILL_CONDITIONED;
  else if (accepted && meets_tolerance) /* also where it was measured again */
    out->status = HONE_OK;
  else if (stopped)
    out->status = HONE_INTERRUPTED;
  /* A caller who sets a loose tolerance does not mean an x without a certain
     digit. */
  if (meets_tolerance && out->status <= HONE_NOT_CONVERGED &&
      c->ladder->factored &&
      !hone_bounds_certify_a_digit(&rung->certificate, column))
    out->status =
        stopped /* before its error was bounded */
            ? HONE_INTERRUPTED
            : rung->certificate.rcond_scaled >=
                      WELL_CONDITIONED * (double)c->ladder->n * HONE_EPS
                  ? HONE_NOT_CONVERGED /* the tolerance was loose */
                  : HONE_ILL_CONDITIONED;
  if (out->status == HONE_OK &&
      !hone_climb_error_suffices(c, i)) /* refinement was interrupted */
    out->status = stopped ? HONE_INTERRUPTED : HONE_NOT_CONVERGED;
  if (out->status != HONE_OK && column->sparse)
    out->backward_error = column->plain;
  return true;
}

/* Did column i need other factors than the first ones that were made? */
static bool fell_back(const hone_climb *c, int64_t i) {
  bool earlier = false;
  for (int r = 0; r < c->rung[i]; r++)
    earlier = earlier || c->ladder->rung[r].factored;
  return earlier;
}

/* Returns the probability with which a bound may be wrong: the first number is
   that of three certificates, of which each makes 64 statements at most. */
static double failure_of(const hone_ladder *ladder) {
  enum { COUNTED = 3, EACH = 64 };
  const int more = HONE_MAX(ladder->certificates - COUNTED, 0);
  return HONE_PROBE_FAILURE_ALL +
         HONE_PROBE_FAILURE * (double)(ladder->statements + EACH * more);
}

/* Raises what a report tells to that of one more column. It tells NaN before
   the first one. */
static void raise_told(const hone_ladder *ladder, double v, double *told) {
  *told = ladder->any_told || !isnan(*told) ? hone_larger_or_nan(*told, v) : v;
}

static void add_to_report(hone_climb *c, const hone_refined *refined,
                          const hone_column *column) {
  hone_report *report = c->report;
  report->gmres_steps = HONE_MAX(report->gmres_steps, refined->gmres_steps);
  c->ladder->refinements = HONE_MAX(c->ladder->refinements,
                                    refined->iterations - refined->gmres_steps);
  if (refined->verified && refined->vouched_there)
    c->ladder->vouched_there = true;
  report->accepted += column->status == HONE_OK;
  if (column->status == HONE_OK && refined->sparse) {
    report->sparse_columns++;
    c->ladder->plain_most =
        hone_larger_or_nan(c->ladder->plain_most, refined->plain);
  }
  report->iterations = HONE_MAX(report->iterations, column->iterations);
  raise_told(c->ladder, column->backward_error, &report->backward_error);
  raise_told(c->ladder, column->normwise_error, &report->normwise_error);
  raise_told(c->ladder, column->forward_error, &report->forward_error);
  raise_told(c->ladder, column->residual_error, &report->residual_error);
  c->ladder->any_told = true;
  report->digits = hone_bounds_digits(report->forward_error);
  if (column->forward_error <= DBL_MAX)
    report->bound_failure = failure_of(c->ladder);
}

static void begin_block(hone_ladder *ladder, hone_climb *c, const hone_entry *b,
                        int64_t ldb, const hone_entry *x0, int64_t ldx0) {
  const int64_t n = ladder->n, columns = ladder->workspace_columns;
  const bool extra = ladder->request.extra;
  for (int64_t i = 0; i < c->m; i++) {
    hone_entry *v = ladder->workspace + i * n;
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
        .from_x0 = x0 != NULL};
    if (x0)
      memcpy(v, x0 + i * ldx0, (size_t)n * sizeof *v);
  }
}

/* Writes the bounds on the errors of the entries of column i, whose result is
 *result. */
static void write_bars(const hone_climb *c, int64_t i,
                       const hone_column *result, double *bars) {
  const hone_ladder *ladder = c->ladder;
  const hone_refined *column = &c->columns[i];
  const hone_certificate *certificate = &ladder->rung[c->rung[i]].certificate;
  const hone_scaling *s = &ladder->scaling;
  const int *exponents = c->trans ? s->row_exp : s->col_exp;
  if (!(result->forward_error <= DBL_MAX)) {
    fill_infinite(ladder->n, bars);
    return;
  }
  /* The forward error is bounded by norms, too. */
  const long double known =
      column->error_estimated ? (long double)column->error * column->errors.size
                              : (long double)HONE_INF;
  if (known <= (long double)DBL_MAX)
    memcpy(bars, column->bars, (size_t)ladder->n * sizeof *bars);
  else
    hone_bounds_bars_by_norms(ladder->n, s->used ? exponents : NULL,
                              certificate, column, bars);
}

/* A block of columns that end, and where their x and bounds go. */
typedef struct ended_columns {
  hone_climb *c;
  int st; /* of the climb */
  hone_entry *x;
  int64_t ldx;
  double *bars;
  hone_column result[HONE_SOLVE_COLUMNS];
  bool has_x[HONE_SOLVE_COLUMNS];
} ended_columns;

/* The outcome of all blocks. */
typedef struct outcome {
  int status, failed; /* of columns with an x, and without */
  bool wrote, singular;
} outcome;

static void end_column(void *ctx, int64_t i) {
  ended_columns *all = ctx;
  const hone_ladder *ladder = all->c->ladder;
  hone_column *result = &all->result[i];
  all->has_x[i] = finish_column(all->c, i, all->st, result);
  if (all->has_x[i])
    memcpy(all->x + i * all->ldx, all->c->columns[i].x,
           (size_t)ladder->n * sizeof *all->x);
  if (all->bars != NULL)
    write_bars(all->c, i, result, all->bars + i * ladder->ldbars);
}

/* Adds up the results of a block, and gives them to the caller. */
static void add_up(const ended_columns *ended, hone_column *columns,
                   outcome *out) {
  hone_climb *c = ended->c;
  for (int64_t i = 0; i < c->m; i++) {
    const hone_column *column = &ended->result[i];
    if (ended->has_x[i])
      out->status = HONE_MAX(out->status, column->status);
    else
      out->failed = column->status;
    out->wrote = out->wrote || ended->has_x[i];
    add_to_report(c, &c->columns[i], column);
    c->report->fallback_columns += fell_back(c, i);
    out->singular = out->singular || column->status == HONE_ILL_CONDITIONED;
    if (columns)
      columns[i] = *column;
  }
}

/* Takes back what was said of columns of earlier blocks, when a later one has
   shown that A may be singular. Returns true if there was one. Which of them
   were accepted by the measure for sparse rows is not known any more: all get
   the largest plain omega of those. */
static bool revoke(const hone_ladder *ladder, int64_t count,
                   hone_column *columns, hone_report *report) {
  const bool any = report->accepted > 0;
  for (int64_t i = 0; ladder->bars != NULL && i < count; i++)
    fill_infinite(ladder->n, ladder->bars + i * ladder->ldbars);
  for (int64_t i = 0; columns != NULL && i < count; i++)
    if (columns[i].status >= HONE_OK) {
      if (columns[i].status == HONE_OK)
        columns[i].backward_error =
            hone_larger_or_nan(columns[i].backward_error, ladder->plain_most);
      columns[i].status = HONE_ILL_CONDITIONED;
      columns[i].forward_error = HONE_INF;
      columns[i].digits = 0;
    }
  report->backward_error =
      hone_larger_or_nan(report->backward_error, ladder->plain_most);
  report->accepted = report->digits = report->sparse_columns = 0;
  report->forward_error = HONE_INF;
  report->bound_failure = 0.0;
  return any;
}

/* Says where A is nearly singular, and why no digit is certain, if the report
   has no reason yet: the factors may be those of an earlier call. */
static void explain_singular(hone_ladder *ladder, hone_report *report) {
  const hone_rung *rung = &ladder->rung[ladder->highest_rung];
  if (report->reason[0] == '\0')
    hone_ladder_add_reason(report, rung->engine->name, hone_ladder_doubt(rung));
  if (rung->self == NULL)
    return;
  const hone_factored f = hone_ladder_factored_by(ladder, ladder->highest_rung);
  hone_null_find(&f, &rung->certificate, false, ladder->scratch, report);
}

int hone_ladder_solve(hone_ladder *ladder, bool trans, int64_t nrhs,
                      const hone_entry *b, int64_t ldb, hone_entry *x,
                      int64_t ldx, const hone_entry *x0, int64_t ldx0,
                      hone_column *columns, hone_report *report) {
  hone_climb c = {.ladder = ladder, .report = report, .trans = trans};
  ended_columns ended;
  outcome out = {HONE_OK, HONE_OK, false, false};
  const bool refuted_before = ladder->copy_refuted;
  ladder->highest_rung = ladder->start_rung;
  ladder->refinements = 0;
  ladder->vouched_there = false;
  ladder->any_told = false;
  ladder->plain_most = 0.0;
  ladder->statements = 0;
  int st = hone_ladder_reserve(ladder, HONE_MIN(nrhs, ladder->block));
  if (st != HONE_OK)
    return st;
  c.columns = ladder->columns;
  ended.c = &c;
  ended.ldx = ldx;
  for (int64_t at = 0; at < nrhs; at += c.m) {
    memset(c.rung, 0, sizeof c.rung);
    c.m = HONE_MIN(ladder->block, nrhs - at);
    begin_block(ladder, &c, b + at * ldb, ldb, x0 ? x0 + at * ldx0 : NULL,
                ldx0);
    ended.st = ladder->watch->stopped ? HONE_CANCELLED : hone_climb_columns(&c);
    hone_climb_measure_unaccepted(&c);
    /* Earlier blocks rest on a copy that is not A. */
    if (ladder->copy_refuted && !refuted_before && at > 0)
      ladder->refuted = true;
    ended.x = x + at * ldx;
    ended.bars = ladder->bars ? ladder->bars + at * ladder->ldbars : NULL;
    hone_for_columns(ladder->pool, ladder->n, c.m, end_column, &ended);
    add_up(&ended, columns ? columns + at : NULL, &out);
  }
  if (ladder->refuted && revoke(ladder, nrhs, columns, report)) {
    out.status = HONE_ILL_CONDITIONED;
    out.singular = true;
  }
  if (out.singular)
    explain_singular(ladder, report);
  hone_ladder_report_matrix(ladder, report);
  hone_ladder_report_path(ladder, report);
  if (out.failed == HONE_OK)
    return out.status;
  if (!out.wrote)
    return out.failed;
  return out.failed == HONE_CANCELLED
             ? HONE_INTERRUPTED
             : HONE_MAX(out.status, HONE_NOT_CONVERGED);
}
