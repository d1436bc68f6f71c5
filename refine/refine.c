/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement in double precision, and the acceptance rule:

     r = b - A x                in double or double-double, on the caller's A
     accept x if omega <= C eps, omega = max_i |r|_i / (|A| |x| + |b|)_i
     d = C inv(M) R r           M: the engine's factors of S = R A C
     x = x + d                  or further, where d shrinks slowly
                                (accelerate.h)

   Residuals are taken in double-double wherever x may be accepted or rejected
   by them, so that the leading digits of omega are right and not blurred by the
   rounding errors of its own computation. Every comparison is written so that
   NaN fails it.

   Next to read: evaluate.c for the passes over A, errors.c for omega and the
   other measures, bounds.c for the forward error, climb.c for the caller of
   hone_refine. */
#include "refine/accelerate.h"
#include "refine/evaluate.h"
#include "refine/steps.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A correction larger than this part of the last one is slow; refinement ends
   with the second slow one. */
static const double SLOW_RATE = 0.5;
enum { SLOW_MOST = 2 };
/* A first solution may be refined where the factors are if so many corrections
   more than these are allowed; at most so many are made there. */
enum { CORRECTIONS_BEHIND = 4, CORRECTIONS_AHEAD = 12 };
/* The omega above which the caller's x0 is dropped, whatever the limit is: a
   solve from x = 0, whose omega is 1, gives a better x at the price of a
   correction. */
static const double X0_USELESS = 1e-2;
/* Refinement goes on if its rate promises the limit after at most so many more
   corrections than are allowed. */
static const double CORRECTIONS_BEYOND = 2.0;

/* Gives up on the column. A column that began from the caller's x0 starts again
   from nothing instead: a poor x0 must not spoil what a solve without it would
   reach. So does one whose residuals followed the steps of x: they may have
   been too coarse. */
static void give_up(const hone_refinement *ctx, hone_refined *c,
                    const char *why) {
  if (c->from_x0 || c->by_steps) {
    c->rung_corrections = 0;
    c->from_x0 = c->by_steps = c->has_x = c->measured = false;
    c->correction_size = c->rate = 0.0;
    c->slow_corrections = c->recorded = 0;
    c->last_value = HONE_INF;
    return;
  }
  c->state = HONE_COLUMN_LEFT;
  c->only_slow = isfinite(hone_errors_value(&c->errors, ctx->criterion));
  snprintf(c->why, sizeof c->why, "%s", why);
}

/* Sets the rate of a column under GMRES, which stagnates for a step or two
   before its residual falls: the rate is the geometric mean over the last
   steps. Returns false while there are too few of them. */
static bool rate_of_steps(hone_refined *c, double value) {
  double *past = &c->past_values[c->rung_corrections % HONE_RATED_STEPS];
  const bool rated = c->rung_corrections >= HONE_RATED_STEPS;
  if (rated)
    c->rate = pow(value / *past, 1.0 / HONE_RATED_STEPS);
  *past = value;
  return rated;
}

/* Is the present iterate the best so far? Where parts of x underflow, omega is
   1 whatever the rest of x is: among iterates of equal omega the one with the
   smaller normwise backward error is best. */
static bool is_best(const hone_refinement *ctx, const hone_refined *c,
                    double value) {
  const double best = hone_errors_value(&c->best_errors, ctx->criterion);
  if (c->best == NULL) /* where x underflows, its normwise error is infinite */
    return value <= DBL_MAX || (c->x_is_zero && value > 0.0);
  return value < best ||
         (value <= best && c->errors.normwise < c->best_errors.normwise);
}

/* Accepts the column, or keeps its best iterate and gives up when further
   corrections cannot reach the limit. */
static void decide(const hone_refinement *ctx, hone_refined *c) {
  double value = hone_errors_value(&c->errors, ctx->criterion);
  if (is_best(ctx, c, value)) {
    c->best = c->x;
    c->best_errors = c->errors;
  }
  if (c->from_x0 && c->rung_corrections == 0 && value <= DBL_MAX &&
      !(value <= X0_USELESS)) {
    give_up(ctx, c, "x0 is of no use");
    return;
  }
  /* Where omega is NaN, the other measures are not trusted either. */
  if (value <= ctx->limit && c->errors.componentwise <= DBL_MAX &&
      (c->verified || hone_plain_suffices(ctx, value))) {
    c->state = HONE_COLUMN_ACCEPTED;
    return;
  }
  if (!(value <= DBL_MAX)) {
    give_up(ctx, c,
            c->x_is_zero ? "x underflows to zero"
                         : "the iterate is not finite");
    return;
  }
  int left = ctx->max_corrections - c->rung_corrections;
  const bool rated = ctx->f.space
                         ? rate_of_steps(c, value)
                         : c->rung_corrections > 0 && c->rate < SLOW_RATE;
  if (left <= 0) {
    give_up(ctx, c, "no convergence within the corrections allowed");
  } else if (rated && !(c->rate < 1.0)) {
    give_up(ctx, c, "no longer converges");
  } else if (rated) {
    double needed = log(value / ctx->limit) / -log(c->rate);
    if (!(needed <= (double)left + CORRECTIONS_BEYOND))
      give_up(ctx, c, "converges too slowly to pay");
  }
}

void hone_refined_turn(const hone_refinement *ctx, hone_refined *c) {
  hone_entry *to = hone_refined_next(c);
  if (to == c->spare) {
    c->spare = c->x;
    c->x = to;
  }
  if (c->has_x) {
    c->iterations++;
    c->gmres_steps += ctx->f.space != NULL;
    c->rung_corrections++;
  }
  c->has_x = true;
}

void hone_refined_correct(const hone_refinement *ctx, hone_refined *c,
                          const hone_entry *d) {
  hone_entry *to = hone_refined_next(c);
  for (int64_t i = 0; i < ctx->f.a->n; i++)
    to[i] = c->has_x ? c->x[i] + d[i] : d[i];
  hone_refined_turn(ctx, c);
}

static void apply_correction(const hone_refinement *ctx, hone_refined *c,
                             hone_entry *d) {
  if (c->by_steps)
    hone_steps_correct(ctx, c, d);
  else
    hone_refined_correct(ctx, c, d);
}

/* Decides by the size of the correction d whether it is applied. The first
   solution, found from nothing, counts as x itself and not as a correction. */
static void take_correction(const hone_refinement *ctx, hone_refined *c,
                            hone_entry *d, double size) {
  if (!c->has_x) {
    apply_correction(ctx, c, d);
    c->measured = false;
    c->correction_size = c->x_size = size;
    return;
  }
  double value = hone_errors_value(&c->errors, ctx->criterion);
  /* Small entries of x may still improve when the large ones no longer do. */
  bool better = value <= SLOW_RATE * c->last_value;
  c->last_value = value;
  if (c->correction_size > 0.0 && !ctx->f.space) {
    c->rate = size / c->correction_size;
    c->slow_corrections += !(c->rate <= SLOW_RATE) && !better;
    if (!better && (!(c->rate < 1.0) || c->slow_corrections >= SLOW_MOST)) {
      give_up(ctx, c,
              c->rate < 1.0 ? "corrections shrink too slowly"
                            : "corrections no longer shrink");
      return;
    }
  }
  c->correction_size = size;
  if (!c->by_steps)
    hone_accelerate(ctx, c, d);
  apply_correction(ctx, c, d);
}

/* Columns that are corrected, with their part of v. */
typedef struct corrected_columns {
  const hone_refinement *ctx;
  hone_refined *const *list;
  double size[HONE_SOLVE_COLUMNS]; /* of the corrections */
} corrected_columns;

static void give_right_hand_side(void *ctx, int64_t c) {
  const corrected_columns *columns = ctx;
  const hone_refined *column = columns->list[c];
  const int64_t n = columns->ctx->f.a->n;
  memcpy(columns->ctx->v + c * n, column->has_x ? column->r : column->b,
         (size_t)n * sizeof *columns->ctx->v);
}

static void correct_column(void *ctx, int64_t c) {
  const corrected_columns *columns = ctx;
  take_correction(columns->ctx, columns->list[c],
                  columns->ctx->v + c * columns->ctx->f.a->n, columns->size[c]);
}

/* d = inv(M) r for the columns listed; d = inv(M) b where x is not set yet. */
static int correct(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  corrected_columns columns = {ctx, list, {0.0}};
  int shift[HONE_SOLVE_COLUMNS] = {0};
  for (int64_t c = 0; c < m; c++) {
    if (ctx->f.space)
      hone_pairs_open(ctx, list[c], !list[c]->has_x);
    shift[c] = list[c]->has_x ? list[c]->shift : 0;
  }
  hone_for_columns(ctx->f.pool, n, m, give_right_hand_side, &columns);
  int st = hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift,
                              columns.size);
  if (st == HONE_OK)
    hone_for_columns(ctx->f.pool, n, m, correct_column, &columns);
  return st;
}

static int64_t list_active(int64_t m, hone_refined *columns,
                           hone_refined **list) {
  int64_t active = 0;
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE)
      list[active++] = &columns[c];
  return active;
}

static double largest_value(const hone_refinement *ctx, int64_t m,
                            hone_refined *const *list) {
  double max = 0.0;
  for (int64_t c = 0; c < m; c++) {
    double value = hone_errors_value(&list[c]->errors, ctx->criterion);
    max = value <= max || !list[c]->has_x ? max : value;
  }
  return max;
}

bool hone_refined_take_best(hone_refined *c) {
  if (c->best == NULL)
    return false;
  if (c->best != c->x) {
    hone_entry *other = c->x;
    c->x = c->spare;
    c->spare = other;
    c->measured = c->verified = c->vouched_there =
        false; /* r is another iterate's */
  }
  c->errors = c->best_errors;
  c->has_x = true;
  return true;
}

/* Do steps of x lie in v, whose products with A are not made yet? */
static bool has_steps(int64_t m, const hone_refined *columns) {
  bool has = false;
  for (int64_t c = 0; c < m; c++)
    has = has || (columns[c].state == HONE_COLUMN_ACTIVE && columns[c].has_x &&
                  columns[c].by_steps && columns[c].step != NULL);
  return has;
}

/* Lists the active columns that have an x. */
static int64_t list_begun(int64_t m, hone_refined *columns,
                          hone_refined **list) {
  int64_t begun = 0;
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && columns[c].has_x)
      list[begun++] = &columns[c];
  return begun;
}

/* Computes a first solution for each active column that has none. One that was
   refined where the factors are is measured like any other. */
static int start_columns(hone_refinement *ctx, int64_t m,
                         hone_refined *columns) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  int made = HONE_MIN(ctx->max_corrections - CORRECTIONS_BEHIND,
                      (int)CORRECTIONS_AHEAD);
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && !columns[c].has_x)
      list[count++] = &columns[c];
  if (count == 0)
    return HONE_OK;
  ctx->f.corrections = made > 0 && ctx->f.space == NULL ? &made : NULL;
  const int st = correct(ctx, count, list);
  ctx->device_passes += ctx->f.corrections != NULL ? made : 0;
  for (int64_t c = 0; ctx->f.corrections != NULL && c < count; c++) {
    list[c]->iterations += made;
    list[c]->rung_corrections += made;
  }
  ctx->f.corrections = NULL;
  return st;
}

static bool report_progress(const hone_refinement *ctx, int step,
                            double value) {
  const hone_progress event = {.phase = "refine",
                               .iteration = step,
                               .precision = ctx->f.engine->precision,
                               .backward_error = value,
                               .gmres = ctx->f.space != NULL};
  return hone_watch_tell(ctx->watch, &event);
}

int hone_refine(hone_refinement *ctx, int64_t m, hone_refined *columns) {
  hone_refined *list[2 * HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    columns[c].measured = false;
    columns[c].last_value = HONE_INF;
    columns[c].open_pair = -1;
  }
  hone_steps_begin(ctx, m, columns);
  hone_accelerate_begin(ctx, m, columns);
  for (int64_t c = 0; ctx->f.space && c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && columns[c].has_x)
      hone_pairs_open(ctx, &columns[c], true);
  for (int step = 0;; step++) {
    int st = has_steps(m, columns) ? HONE_OK : start_columns(ctx, m, columns);
    int64_t active = list_begun(m, columns, list), continuing = 0;
    if (st != HONE_OK || active == 0)
      return st;
    hone_evaluate(ctx, active, list);
    if (ctx->f.space)
      hone_pairs_close(ctx, active, list);
    for (int64_t c = 0; c < active; c++)
      if (list[c]->has_x)
        decide(ctx, list[c]);
    double value = largest_value(ctx, active, list);
    for (int64_t c = 0; c < active; c++)
      if (list[c]->state == HONE_COLUMN_ACTIVE && list[c]->has_x)
        list[continuing++] = list[c];
    const bool stop =
        report_progress(ctx, step, value); /* the last x is reported too */
    if (list_active(m, columns, list + continuing) == 0)
      return HONE_OK;
    if (stop)
      return HONE_INTERRUPTED;
    if (ctx->steps_work != NULL) /* no step lies in v until the next correct */
      st = start_columns(ctx, m, columns);
    if (st == HONE_OK && continuing > 0)
      st = correct(ctx, continuing, list);
    if (st != HONE_OK)
      return st;
  }
}
