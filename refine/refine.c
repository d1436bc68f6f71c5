/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement in double precision, and the acceptance rule:

     r = b - A x                in double or double-double, on the caller's A
     accept x if omega <= C eps, omega = max_i |r|_i / (|A| |x| + |b|)_i
     d = C inv(M) R r           M: the engine's factors of S = R A C
     x = x + d

   Residuals are taken in double-double wherever x may be accepted or rejected
   by them, so that the leading digits of omega are right and not blurred by the
   rounding errors of its own computation. Every comparison is written so that
   NaN fails it.

   Next to read: errors.c for omega and the other measures, bounds.c for the
   forward error, climb.c for the caller of hone_refine. */
#include "refine/verdict.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Products of numbers within 2^+-600 keep every digit. */
enum { SAFE_EXP = 600 };
/* A tolerance this large lies far above the rounding of plain double, which
   decides only where its noise is at most PLAIN_NOISE_PART of the tolerance. */
static const double LOOSE_TOLERANCE = 1e-10, PLAIN_NOISE_PART = 0.01;
/* The accurate pass is taken at once where the predicted value is within
   PREDICTED_NEAR of the limit, and after a plain pass where the measured value
   is within MEASURED_NEAR of it. */
static const double PREDICTED_NEAR = 1e3, MEASURED_NEAR = 16.0;
/* A correction larger than this part of the last one is slow; refinement ends
   with the second slow one. */
static const double SLOW_RATE = 0.5;
enum { SLOW_MOST = 2 };
/* The omega above which the caller's x0 is no better than x = 0, whose omega is
   1. */
static const double X0_USELESS = 0.5;
/* Refinement goes on if its rate promises the limit after at most so many more
   corrections than are allowed. */
static const double CORRECTIONS_BEYOND = 2.0;

/* Returns the exponent e for which the products of A with 2^e x lie well inside
   the range of double precision; 0 where they already do. */
static int safe_shift(const hone_refinement *ctx, const hone_entry *x) {
  double size = hone_max_abs(ctx->f.a->n, x);
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return 0;
  int top = ilogb(size), e = top + ilogb(ctx->norm_a);
  if (e <= SAFE_EXP && e >= -SAFE_EXP)
    return 0;
  if (e > SAFE_EXP) /* e is no lower than needed: small entries of x and b would
                       underflow */
    return SAFE_EXP - e;
  return HONE_MIN(-e, HONE_MAX_EXP - top); /* 2^e x itself stays in range */
}

/* to = 2^e from. Returns true if an entry may have lost digits by underflow. */
static bool shift_vector(int64_t n, const hone_entry *from, int e,
                         hone_entry *to) {
  const double least = hone_shift(1.0, -HONE_MAX_EXP);
  bool lost = false;
  for (int64_t i = 0; i < n; i++) {
    to[i] = hone_shift_entry(from[i], e);
    lost = lost || (from[i] != 0.0 && !(hone_abs(to[i]) >= least));
  }
  return lost;
}

/* gamma, the rounding error of the computed r as a part of den. In plain double
   it bounds the rounding of the sum; in double-double the rounding of the sum
   of its rounding errors; where rows are computed one by one (lost), the
   rounding of long double. */
static double residual_gamma(int64_t n, bool accurate, bool lost) {
  const double terms = (double)(n + 4);
  if (lost)
    return terms * 0x1p-63;
  return terms * (accurate ? HONE_EPS * HONE_EPS : HONE_EPS);
}

/* Shifts the tail by 2^shift and sets its right-hand side to zero. */
static void begin_tail(int64_t n, hone_refined *c) {
  memset(c->tail_r, 0, (size_t)n * sizeof *c->tail_r);
  if (c->shift != 0)
    shift_vector(n, c->tail, c->shift, c->tail);
}

/* Makes one pass over A for the columns listed:

     r = b - op(A) x,   den = |op(A)| |x| + |b|

   Columns whose products would overflow or underflow are passed as 2^e x and
   2^e b. Then r and den carry the same factor, which cancels in every error
   measure. */
void hone_refined_measure(hone_refinement *ctx, bool accurate, bool device,
                          int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  const hone_entry *x[2 * HONE_SOLVE_COLUMNS], *b[2 * HONE_SOLVE_COLUMNS];
  hone_entry *r[2 * HONE_SOLVE_COLUMNS];
  double *den[2 * HONE_SOLVE_COLUMNS];
  int64_t k = m;
  ctx->device_residual_of = NULL;
  for (int64_t c = 0; c < m; c++) {
    x[c] = list[c]->x;
    b[c] = list[c]->b;
    r[c] = list[c]->r;
    den[c] = list[c]->den;
    int e = list[c]->shift = safe_shift(ctx, list[c]->x);
    list[c]->digits_lost = false;
    if (e != 0) {
      bool lost_x = shift_vector(n, x[c], e, ctx->v + c * n);
      bool lost_b = shift_vector(n, b[c], e, r[c]);
      list[c]->digits_lost = lost_x || lost_b;
      x[c] = ctx->v + c * n;
      b[c] = r[c];
    }
    if (list[c]->measure_tail) {
      x[k] = list[c]->tail;
      b[k] = r[k] = list[c]->tail_r;
      den[k] = list[c]->tail_den;
      begin_tail(n, list[c]);
      k++;
    }
  }
  const hone_residual_job pass = {.a = ctx->f.a,
                                  .trans = ctx->trans,
                                  .accurate = accurate,
                                  .k = k,
                                  .x = x,
                                  .b = b,
                                  .r = r,
                                  .den = den};
  if (!device)
    ctx->f.a->op->residual(&pass, ctx->f.pool);
  for (int64_t c = 0; device && c < k; c++)
    ctx->f.use_copy =
        hone_residual(&ctx->f, ctx->trans, x[c], b[c], r[c], den[c]) &&
        ctx->f.use_copy; /* a copy that failed is not used again */
  *(device ? &ctx->device_passes : &ctx->passes) += 1;
  for (int64_t c = 0; c < m; c++) {
    list[c]->verified = accurate && !device;
    if (list[c]->measure_tail && list[c]->shift != 0)
      shift_vector(n, list[c]->tail, -list[c]->shift, list[c]->tail);
    list[c]->gamma = residual_gamma(n, accurate, list[c]->digits_lost);
    hone_refined_errors(ctx, list[c]);
  }
}

/* Could this value, taken from a plain pass, fall on the other side of the
   limit when it is measured accurately? */
static bool near_limit(const hone_refinement *ctx, double value) {
  return value <= MEASURED_NEAR * ctx->limit;
}

/* May x be accepted, and its errors be reported, by a value from a plain pass,
   which is wrong by at most n eps of the denominator? Only against a loose
   tolerance. */
static bool plain_suffices(const hone_refinement *ctx, double value) {
  double noise = (double)(ctx->f.a->n + 2) * HONE_EPS;
  return ctx->criterion == HONE_CRITERION_COMPONENTWISE &&
         ctx->limit >= LOOSE_TOLERANCE &&
         noise <= PLAIN_NOISE_PART * ctx->limit && value + noise <= ctx->limit;
}

/* Predicts the next value of the criterion from the last one and the rate so
   far. */
static double predicted_value(const hone_refinement *ctx,
                              const hone_refined *c) {
  if (c->measured)
    return hone_errors_value(&c->errors, ctx->criterion) * c->rate;
  return ctx->f.engine->precision == 64 ? HONE_EPS : 1.0;
}

/* Stops using the engine's copy of A, which has proved to differ from A: a copy
   of a symmetric matrix is one triangle mirrored. The convergence history
   starts anew. */
static void distrust_copy(hone_refinement *ctx, hone_refined *c) {
  ctx->f.use_copy = false;
  c->correction_size = c->rate = 0.0;
  c->slow_corrections = 0;
  c->last_value = HONE_INF;
}

/* Tells a device that solves for one column at a time to begin with the
   correction that will most likely follow, while the host examines the
   residual. */
static bool announce_correction(const hone_refinement *ctx, int64_t m,
                                hone_refined *const *list) {
  const bool expects = m == 1 && !ctx->f.space && !list[0]->measure_tail &&
                       ctx->f.engine->expect != NULL;
  if (expects)
    ctx->f.engine->expect(ctx->f.self);
  return expects;
}

/* Is the value of the column's criterion one that is accepted? */
static bool meets_limit(const hone_refinement *ctx, const hone_refined *c) {
  return hone_errors_value(&c->errors, ctx->criterion) <= ctx->limit;
}

/* Lists in 'rest' the columns that the device would accept and the projection
   does not vouch for. */
static int64_t list_unvouched(hone_refinement *ctx, int64_t m,
                              hone_refined *const *list, hone_refined **rest) {
  const hone_projection *p = NULL;
  bool first = true;
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++) {
    if (!meets_limit(ctx, list[c]))
      continue;
    if (first)
      p = hone_verdict_projection(ctx);
    first = false;
    list[c]->verified =
        p != NULL && hone_verdict(ctx, p, list[c]) && meets_limit(ctx, list[c]);
    if (!list[c]->verified)
      rest[count++] = list[c];
  }
  return count;
}

/* Measures the columns on the engine's copy of A. For those that it would
   accept, the caller's own A decides: by its projection, or else by a pass over
   it on the host. */
static void evaluate_on_device(hone_refinement *ctx, int64_t m,
                               hone_refined *const *list) {
  hone_refined *rest[HONE_SOLVE_COLUMNS];
  const bool announced = announce_correction(ctx, m, list);
  hone_refined_measure(ctx, true, true, m, list);
  const bool keep_device_residual =
      announced && meets_limit(ctx, list[0]) && list[0]->shift == 0;
  if (keep_device_residual) /* v is free where no column was shifted */
    memcpy(ctx->v, list[0]->r, (size_t)ctx->f.a->n * sizeof *ctx->v);
  const int64_t count = list_unvouched(ctx, m, list, rest);
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, rest);
  ctx->device_residual_of = keep_device_residual ? list[0] : NULL;
  for (int64_t c = 0; c < count; c++)
    if (!meets_limit(ctx, rest[c]))
      distrust_copy(ctx, rest[c]);
}

/* Measures the columns, with the accurate pass wherever it may decide. */
static void evaluate(hone_refinement *ctx, int64_t m,
                     hone_refined *const *list) {
  bool accurate = false;
  if (ctx->f.use_copy) {
    evaluate_on_device(ctx, m, list);
    return;
  }
  accurate = ctx->f.space != NULL; /* the pairs need accurate residuals */
  for (int64_t c = 0; c < m; c++)
    accurate = accurate ||
               predicted_value(ctx, list[c]) <= PREDICTED_NEAR * ctx->limit;
  hone_refined_measure(ctx, accurate, false, m, list);
  if (accurate)
    return;
  for (int64_t c = 0; c < m; c++) {
    double value = hone_errors_value(&list[c]->errors, ctx->criterion);
    if (near_limit(ctx, value) && !plain_suffices(ctx, value)) {
      hone_refined_measure(ctx, true, false, m, list);
      return;
    }
  }
}

/* Gives up on the column. A column that began from the caller's x0 starts again
   from nothing instead: a poor x0 must not spoil what a solve without it would
   reach. */
static void give_up(const hone_refinement *ctx, hone_refined *c,
                    const char *why) {
  if (c->from_x0) {
    c->from_x0 = c->has_x = c->measured = false;
    c->correction_size = c->rate = 0.0;
    c->slow_corrections = c->rung_corrections = 0;
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
  if (c->best == NULL)
    return value <= DBL_MAX;
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
  if (value <= ctx->limit && (c->verified || plain_suffices(ctx, value))) {
    c->state = HONE_COLUMN_ACCEPTED;
    return;
  }
  if (!(value <= DBL_MAX)) {
    give_up(ctx, c, "the iterate is not finite");
    return;
  }
  if (c->from_x0 && c->rung_corrections == 0 && !(value <= X0_USELESS)) {
    give_up(ctx, c, "x0 is no better than 0");
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

/* x is written into the buffer that does not hold the best iterate. */
void hone_refined_correct(const hone_refinement *ctx, hone_refined *c,
                          const hone_entry *d) {
  hone_entry *to = c->best == c->x ? c->spare : c->x;
  for (int64_t i = 0; i < ctx->f.a->n; i++)
    to[i] = c->has_x ? c->x[i] + d[i] : d[i];
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

/* Decides by the size of the correction d whether it is applied. The first
   solution, found from nothing, counts as x itself and not as a correction. */
static void take_correction(const hone_refinement *ctx, hone_refined *c,
                            const hone_entry *d, double size) {
  if (!c->has_x) {
    hone_refined_correct(ctx, c, d);
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
  hone_refined_correct(ctx, c, d);
}

/* d = inv(M) r for the columns listed; d = inv(M) b where x is not set yet. */
static int correct(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  double size[HONE_SOLVE_COLUMNS];
  int shift[HONE_SOLVE_COLUMNS] = {0};
  for (int64_t c = 0; c < m; c++) {
    if (ctx->f.space)
      hone_pairs_open(ctx, list[c], !list[c]->has_x);
    shift[c] = list[c]->has_x ? list[c]->shift : 0;
    memcpy(ctx->v + c * n, list[c]->has_x ? list[c]->r : list[c]->b,
           (size_t)n * sizeof *ctx->v);
  }
  int st =
      hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    take_correction(ctx, list[c], ctx->v + c * n, size[c]);
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
    max = value <= max ? max : value;
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
    c->measured = c->verified = false; /* r is another iterate's */
  }
  c->errors = c->best_errors;
  c->has_x = true;
  return true;
}

/* Computes a first solution for each active column that has none. */
static int start_columns(hone_refinement *ctx, int64_t m,
                         hone_refined *columns) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && !columns[c].has_x)
      list[count++] = &columns[c];
  return count > 0 ? correct(ctx, count, list) : HONE_OK;
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
  for (int64_t c = 0; ctx->f.space && c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && columns[c].has_x)
      hone_pairs_open(ctx, &columns[c], true);
  for (int step = 0;; step++) {
    int st = start_columns(ctx, m, columns);
    int64_t active = list_active(m, columns, list), continuing = 0;
    if (st != HONE_OK || active == 0)
      return st;
    evaluate(ctx, active, list);
    if (ctx->f.space)
      hone_pairs_close(ctx, active, list);
    for (int64_t c = 0; c < active; c++)
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
    if (continuing > 0 && (st = correct(ctx, continuing, list)) != HONE_OK)
      return st;
  }
}
