/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder. Rungs are engines, from the cheapest to the most precise:

     inspect, scale    once for a matrix
     factor            the first rung that serves; a rung is set aside when
                       it breaks down, sees that it is hopeless, or cannot
                       tell the matrix from a singular one
     refine            every right-hand side on the first usable rung; those
                       not accepted climb, and only those

   Nothing is returned as accepted that hone_refine did not measure on the
   caller's own matrix, with factors that were shown to tell it from a
   singular one. */
#include "refine/ladder.h"

#include "cpu_dp/pass.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An iterate this good is worth starting the next rung from. */
static const double WARM_START = 1e-6;

const char *hone_ladder_isa(void) { return hone_pass_isa(); }

/* Memory --------------------------------------------------------------- */

static int64_t scratch_doubles(int64_t n) {
  return HONE_MAX(hone_inspect_scratch(n), hone_estimate_scratch(n));
}

/* Four vectors, the scratch, and two vectors of int. */
static int64_t vector_doubles(int64_t n) {
  return 4 * n + scratch_doubles(n) + n;
}

int64_t hone_ladder_bytes(int64_t n, int64_t nrhs) {
  int64_t columns = HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS);
  return (vector_doubles(n) + 5 * n * columns) * (int64_t)sizeof(double);
}

int hone_ladder_create(hone_ladder *ladder, int64_t n,
                       const hone_engine *const *engines, int count,
                       const hone_wish *wish, hone_mem *mem, hone_pool *pool,
                       hone_watch *watch) {
  *ladder = (hone_ladder){.n = n,
                          .mem = mem,
                          .pool = pool,
                          .watch = watch,
                          .wish = *wish,
                          .rungs = count};
  for (int r = 0; r < count; r++)
    ladder->rung[r].engine = engines[r];
  double *v = hone_mem_get(mem, (size_t)vector_doubles(n) * sizeof *v);
  if (v == NULL)
    return HONE_NO_MEMORY;
  ladder->vectors = v;
  ladder->scaling.row = v;
  ladder->scaling.col = v + n;
  ladder->seen.row_max = v + 2 * n;
  ladder->seen.col_max = v + 3 * n;
  ladder->scratch = v + 4 * n;
  ladder->scaling.row_exp = (int *)(ladder->scratch + scratch_doubles(n));
  ladder->scaling.col_exp = ladder->scaling.row_exp + n;
  return HONE_OK;
}

static void drop(hone_ladder *ladder, hone_rung *rung) {
  if (rung->self != NULL)
    rung->engine->destroy(rung->self, ladder->mem);
  rung->self = NULL;
  rung->state = HONE_RUNG_NEW;
}

void hone_ladder_destroy(hone_ladder *ladder) {
  for (int r = 0; r < ladder->rungs; r++)
    drop(ladder, &ladder->rung[r]);
  hone_mem_put(ladder->mem, ladder->block);
  hone_mem_put(ladder->mem, ladder->vectors);
  ladder->block = ladder->vectors = NULL;
}

/* Report --------------------------------------------------------------- */

static void add_reason(hone_report *report, const char *who, const char *why) {
  size_t used = strlen(report->reason);
  snprintf(report->reason + used, sizeof report->reason - used, "%s%s: %s",
           used ? "; " : "", who, why);
}

static double since_ms(double start_s) {
  return 1e3 * (hone_now_s() - start_s);
}

/* What the report says of the matrix and its factors. */
static void report_matrix(const hone_ladder *ladder, hone_report *report) {
  const hone_rung *rung = &ladder->rung[ladder->used];
  report->norm1 = ladder->norm1;
  report->max_abs = ladder->max_abs;
  report->min_abs = ladder->min_abs;
  for (int64_t i = 0; ladder->scaling.used && i < ladder->n; i++) {
    int row = ladder->scaling.row_exp[i], col = ladder->scaling.col_exp[i];
    report->scale_min = HONE_MIN(report->scale_min, HONE_MIN(row, col));
    report->scale_max = HONE_MAX(report->scale_max, HONE_MAX(row, col));
  }
  if (!ladder->factored)
    return;
  report->rcond = rung->certificate.rcond;
  report->growth = rung->info.growth;
  report->flushed = rung->info.flushed;
}

static void append(char *text, size_t size, const char *more) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s", more);
}

/* "single LU, 3 refinements", "single LU set aside, double LU, ...". */
static void report_path(const hone_ladder *ladder, hone_report *report) {
  char *path = report->path, step[64];
  path[0] = '\0';
  for (int r = 0; r < ladder->rungs; r++) {
    const hone_rung *rung = &ladder->rung[r];
    if (!rung->tried)
      continue;
    snprintf(step, sizeof step, "%s%s%s", path[0] ? ", " : "",
             rung->engine->name, rung->set_aside ? " set aside" : "");
    append(path, sizeof report->path, step);
  }
  if (ladder->stale)
    append(path, sizeof report->path, " of an earlier matrix");
  if (report->nrhs == 0 || path[0] == '\0') /* nothing was solved */
    return;
  snprintf(step, sizeof step, ", %d refinement%s", report->iterations,
           report->iterations == 1 ? "" : "s");
  append(path, sizeof report->path, step);
}

/* The matrix ------------------------------------------------------------ */

static int64_t first_zero(int64_t n, const double *max) {
  for (int64_t i = 0; i < n; i++)
    if (!(max[i] > 0.0))
      return i;
  return -1;
}

static void take_range(hone_ladder *ladder) {
  ladder->norm1 = ladder->seen.norm1;
  ladder->norm_inf = ladder->seen.norm_inf;
  ladder->max_abs = 0.0;
  ladder->min_abs = INFINITY;
  for (int64_t i = 0; i < ladder->n; i++) {
    double row = ladder->seen.row_max[i], col = ladder->seen.col_max[i];
    ladder->max_abs = fmax(ladder->max_abs, row);
    ladder->min_abs = fmin(ladder->min_abs, fmin(row, col));
  }
}

/* Inspects A and finds its scaling, or, keep_scaling, sees it through the
   scaling there is. */
static int inspect(hone_ladder *ladder, bool keep_scaling,
                   hone_report *report) {
  double start = hone_now_s();
  hone_inspection *seen = &ladder->seen;
  if (hone_watch_stop(ladder->watch, "inspect", 0.0, 0, NAN))
    return HONE_CANCELLED;
  hone_inspect(ladder->pool, &ladder->a, NULL, ladder->scratch, seen);
  if (seen->bad_row >= 0) {
    report->bad_row = seen->bad_row;
    report->bad_col = seen->bad_col;
    return HONE_NOT_FINITE_A;
  }
  report->bad_row = first_zero(ladder->n, seen->row_max);
  report->bad_col = first_zero(ladder->n, seen->col_max);
  if (report->bad_row >= 0 || report->bad_col >= 0) {
    add_reason(report, "matrix",
               report->bad_row >= 0 ? "a row is zero" : "a column is zero");
    return HONE_SINGULAR;
  }
  take_range(ladder);
  if (!keep_scaling)
    hone_scale_find(ladder->pool, &ladder->a, ladder->scratch, seen,
                    &ladder->scaling);
  else if (ladder->scaling.used)
    hone_inspect(ladder->pool, &ladder->a, &ladder->scaling, ladder->scratch,
                 seen);
  ladder->have_matrix = true;
  report->inspect_ms += since_ms(start);
  return HONE_OK;
}

/* Rungs ------------------------------------------------------------------ */

static hone_factored factored_by(const hone_ladder *ladder, int r) {
  return (hone_factored){.engine = ladder->rung[r].engine,
                         .self = ladder->rung[r].self,
                         .a = &ladder->a,
                         .scaling = &ladder->scaling,
                         .pool = ladder->pool};
}

static int certify(hone_ladder *ladder, int r, hone_report *report) {
  double start = hone_now_s();
  const hone_factored f = factored_by(ladder, r);
  int st = hone_estimate(&f, ladder->norm1, ladder->seen.norm1, ladder->scratch,
                         &ladder->rung[r].certificate);
  report->certify_ms += since_ms(start);
  report->passes += ladder->rung[r].certificate.tries;
  return st;
}

/* NULL: the factors can be used. Else why not. */
static const char *breakdown(const hone_rung *rung) {
  if (rung->info.hopeless)
    return "the pivots fall too fast for this precision";
  if (rung->info.zero_pivot >= 0)
    return "a pivot is exactly zero";
  if (!(rung->info.growth <= DBL_MAX))
    return "the factors overflow";
  return NULL;
}

static int create(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  char why[128] = "";
  if (rung->self != NULL)
    return HONE_OK;
  if (!rung->engine->probe(why, sizeof why))
    return HONE_NO_DEVICE;
  for (int i = 0; i < ladder->rungs && ladder->wish.one_shot; i++)
    if (ladder->rung[i].self != NULL)
      drop(ladder, &ladder->rung[i]);
  const hone_engine_config config = {.n = ladder->n,
                                     .mem = ladder->mem,
                                     .pool = ladder->pool,
                                     .watch = ladder->watch,
                                     .block = ladder->wish.block};
  return rung->engine->create(&rung->self, &config);
}

/* Factors on rung r. HONE_OK: its state says whether it can be used. */
static int factor_rung(hone_ladder *ladder, int r, hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  double start = hone_now_s();
  rung->state = HONE_RUNG_USELESS;
  int st = create(ladder, r);
  if (st == HONE_OK)
    st = rung->engine->factor(rung->self, &ladder->a, &ladder->scaling,
                              &rung->info);
  *(r == 0 ? &report->factor_ms : &report->fallback_ms) += since_ms(start);
  if (st != HONE_OK) /* memory or device may be there the next time */
    rung->state = HONE_RUNG_NEW;
  rung->tried = rung->tried || st != HONE_CANCELLED;
  rung->set_aside = true;
  if (st != HONE_OK)
    return st;
  const char *why = breakdown(rung);
  if (why == NULL) {
    if ((st = certify(ladder, r, report)) != HONE_OK)
      return st;
    if (!rung->certificate.nonsingular)
      why = "these factors cannot tell the matrix from a singular one";
  }
  if (why != NULL)
    add_reason(report, rung->engine->name, why);
  bool last = r == ladder->rungs - 1;
  if (breakdown(rung) == NULL && (last || why == NULL)) {
    rung->state = HONE_RUNG_READY;
    rung->set_aside = false;
  }
  return HONE_OK;
}

/* The first rung above r in precision. */
static int above(const hone_ladder *ladder, int r) {
  int next = r + 1;
  while (next < ladder->rungs && ladder->rung[next].engine->precision ==
                                     ladder->rung[r].engine->precision)
    next++;
  return next;
}

/* The first usable rung from r on, factored if it is not yet. On HONE_OK it
   is *found; else why there is none. A rung that failed is followed by the
   next, one whose precision did not suffice by the next more precise. */
static int usable(hone_ladder *ladder, int r, hone_report *report, int *found) {
  int st = HONE_OK;
  for (int next; r < ladder->rungs; r = next) {
    hone_rung *rung = &ladder->rung[r];
    next = above(ladder, r);
    if (rung->state == HONE_RUNG_NEW) {
      int now = factor_rung(ladder, r, report);
      if (now == HONE_CANCELLED)
        return now;
      if (now != HONE_OK) {
        add_reason(report, rung->engine->name, hone_status_text(now));
        st = now;
        next = r + 1;
        continue;
      }
      st = HONE_OVERFLOW;
      if (rung->info.zero_pivot >= 0) {
        report->bad_col = rung->info.zero_pivot;
        st = HONE_SINGULAR;
      }
    }
    if (rung->state == HONE_RUNG_READY) {
      report->bad_col = -1;
      *found = r;
      return HONE_OK;
    }
  }
  return st != HONE_OK ? st : HONE_NOT_CONVERGED;
}

static int start_matrix(hone_ladder *ladder, hone_report *report) {
  ladder->factored = ladder->stale = ladder->have_matrix = false;
  for (int r = 0; r < ladder->rungs; r++) {
    ladder->rung[r].state = HONE_RUNG_NEW;
    ladder->rung[r].tried = false;
  }
  ladder->at = 0;
  int st = inspect(ladder, false, report);
  if (st == HONE_OK)
    st = usable(ladder, 0, report, &ladder->at);
  ladder->factored = st == HONE_OK;
  ladder->used = ladder->at;
  if (ladder->factored)
    report->precision = ladder->rung[ladder->at].engine->precision;
  if (ladder->have_matrix)
    report_matrix(ladder, report);
  return st;
}

/* The factors of an earlier matrix no longer serve. */
static int refactor(hone_ladder *ladder, hone_report *report) {
  add_reason(report, "factors of an earlier matrix",
             "too far from the present one, which is factored now");
  return start_matrix(ladder, report);
}

int hone_ladder_factor(hone_ladder *ladder, const double *a, int64_t lda,
                       hone_report *report) {
  ladder->a = (hone_matrix){ladder->n, lda, a};
  int st = start_matrix(ladder, report);
  report_path(ladder, report);
  return st;
}

int hone_ladder_update(hone_ladder *ladder, const double *a, int64_t lda,
                       hone_report *report) {
  if (!ladder->factored)
    return hone_ladder_factor(ladder, a, lda, report);
  ladder->a = (hone_matrix){ladder->n, lda, a};
  ladder->have_matrix = false;
  int st = inspect(ladder, true, report);
  if (st != HONE_OK) {
    ladder->factored = false;
    return st;
  }
  for (int r = 0; r < ladder->rungs; r++) /* a rung above is not for this A */
    if (r != ladder->at)
      ladder->rung[r].state = HONE_RUNG_NEW;
  ladder->stale = true;
  st = certify(ladder, ladder->at, report);
  if (st == HONE_OK && !ladder->rung[ladder->at].certificate.nonsingular)
    st = refactor(ladder, report);
  report_matrix(ladder, report);
  report_path(ladder, report);
  return st;
}

/* Solve ------------------------------------------------------------------ */

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
      add_reason(c->report, c->ladder->rung[r].engine->name, c->columns[i].why);
  }
  return left;
}

static int refine_on(climb *c, int r) {
  hone_ladder *ladder = c->ladder;
  hone_refinement ctx = {
      .f = factored_by(ladder, r),
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
  c->report->refine_ms += since_ms(start);
  c->report->passes += ctx.passes;
  c->report->precision = ladder->rung[r].engine->precision;
  return st;
}

/* The rung a block of columns begins on: the first that holds factors. An
   earlier block may have climbed and given the cheaper ones' memory back. */
static int begin_climb(hone_ladder *ladder, hone_report *report, int *r) {
  for (*r = ladder->at; *r < ladder->rungs; ++*r)
    if (ladder->rung[*r].state == HONE_RUNG_READY)
      return HONE_OK;
  return usable(ladder, ladder->at, report, r);
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
      add_reason(c->report, ladder->rung[r].engine->name, hone_status_text(st));
    if (count_left(c, r) == 0)
      return HONE_OK;
    if (ladder->stale) {
      st = refactor(ladder, c->report);
      r = ladder->at;
    } else if (above(ladder, r) < ladder->rungs) {
      st = usable(ladder, st == HONE_OK ? above(ladder, r) : r + 1, c->report,
                  &r);
      c->report->fallback_columns +=
          st == HONE_OK ? (int32_t)count_left(c, r) : 0;
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
    return (double)INFINITY;
  double bound =
      3.0 * inverse_norm * relative / (1.0 - certificate->defect) + HONE_EPS;
  return bound <= DBL_MAX ? bound : (double)INFINITY;
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
                       .backward_error = INFINITY,
                       .normwise_error = INFINITY,
                       .residual_error = INFINITY,
                       .forward_error = INFINITY};
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
  report_matrix(ladder, report);
  report_path(ladder, report);
  if (failed == HONE_OK)
    return status;
  if (!wrote)
    return failed;
  return failed == HONE_CANCELLED ? HONE_INTERRUPTED
                                  : HONE_MAX(status, HONE_NOT_CONVERGED);
}
