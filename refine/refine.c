/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement in double precision, and the acceptance rule:

     r = b - A x                in double or double-double, on the caller's A
     accept x if omega <= C eps, omega = max_i |r|_i / (|A| |x| + |b|)_i
     d = C inv(M) R r           M: the engine's factors of S = R A C
     x = x + d

   Residuals are taken in double-double where the verdict may fall, so that
   omega is known to its leading digits and not up to the rounding of its own
   computation. Every comparison is written so that NaN fails it. */
#include "refine/refine.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAFE_EXP = 600 };           /* products within 2^+-600 lose nothing */
static const double LOOSE = 1e-10; /* a tolerance far above rounding */

/* Exponent e that keeps the products of A with 2^e x well inside the range
   of double precision; 0 where they are so already. */
static int safe_shift(const hone_refinement *ctx, const hone_entry *x) {
  double size = hone_max_abs(ctx->f.a->n, x);
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return 0;
  int top = ilogb(size), e = top + ilogb(ctx->norm_a);
  if (e <= SAFE_EXP && e >= -SAFE_EXP)
    return 0;
  if (e > SAFE_EXP) /* no further: small entries of x and b vanish otherwise */
    return SAFE_EXP - e;
  return HONE_MIN(-e, HONE_MAX_EXP - top); /* 2^e x itself in range */
}

/* to = 2^e from; true when a digit may have been lost below the range. */
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

/* What the computation of r may have missed, as a part of den: roundings of
   the sum in plain double, of the sum of its roundings in double-double, or
   of long double where rows are measured one by one. */
static double residual_noise(int64_t n, bool accurate, bool lost) {
  const double terms = (double)(n + 4);
  if (lost)
    return terms * 0x1p-63;
  return terms * (accurate ? HONE_EPS * HONE_EPS : HONE_EPS);
}

/* 2^shift tail, and a right-hand side of zeros for it. */
static void begin_tail(int64_t n, hone_refined *c) {
  memset(c->tail_r, 0, (size_t)n * sizeof *c->tail_r);
  if (c->shift != 0)
    shift_vector(n, c->tail, c->shift, c->tail);
}

/* One pass over A for the columns listed. Columns whose numbers would
   overflow or vanish on the way are passed as 2^e x and 2^e b: r and den
   then carry the same factor, which no error here sees. */
void hone_refined_measure(hone_refinement *ctx, bool accurate, bool device,
                          int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  const hone_entry *x[2 * HONE_SOLVE_COLUMNS], *b[2 * HONE_SOLVE_COLUMNS];
  hone_entry *r[2 * HONE_SOLVE_COLUMNS];
  double *den[2 * HONE_SOLVE_COLUMNS];
  int64_t k = m;
  ctx->there = NULL;
  for (int64_t c = 0; c < m; c++) {
    x[c] = list[c]->x;
    b[c] = list[c]->b;
    r[c] = list[c]->r;
    den[c] = list[c]->den;
    int e = list[c]->shift = safe_shift(ctx, list[c]->x);
    list[c]->lost = false;
    if (e != 0) {
      bool lost_x = shift_vector(n, x[c], e, ctx->v + c * n);
      bool lost_b = shift_vector(n, b[c], e, r[c]);
      list[c]->lost = lost_x || lost_b;
      x[c] = ctx->v + c * n;
      b[c] = r[c];
    }
    if (list[c]->with_tail) {
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
    ctx->f.resident =
        hone_residual(&ctx->f, ctx->trans, x[c], b[c], r[c], den[c]) &&
        ctx->f.resident; /* one that failed is not asked again */
  *(device ? &ctx->device_passes : &ctx->passes) += 1;
  for (int64_t c = 0; c < m; c++) {
    list[c]->verified = accurate && !device;
    if (list[c]->with_tail && list[c]->shift != 0)
      shift_vector(n, list[c]->tail, -list[c]->shift, list[c]->tail);
    list[c]->gamma = residual_noise(n, accurate, list[c]->lost);
    hone_refined_errors(ctx, list[c]);
  }
}

/* Could the verdict fall on an x with this value? */
static bool near_limit(const hone_refinement *ctx, double value) {
  return value <= 16.0 * ctx->limit;
}

/* Is a value from a plain pass, wrong by at most n eps of the denominator,
   good enough to accept and to report? Only against a loose tolerance. */
static bool plain_suffices(const hone_refinement *ctx, double value) {
  double noise = (double)(ctx->f.a->n + 2) * HONE_EPS;
  return ctx->criterion == HONE_COMPONENTWISE && ctx->limit >= LOOSE &&
         noise <= 0.01 * ctx->limit && value + noise <= ctx->limit;
}

/* The next value, from the last one and the rate so far. */
static double predicted(const hone_refinement *ctx, const hone_refined *c) {
  if (c->measured)
    return hone_errors_value(&c->now, ctx->criterion) * c->ratio;
  return ctx->f.engine->precision == 64 ? HONE_EPS : 1.0;
}

/* The copy is not A, or not quite: of a symmetric matrix it is one triangle
   twice. It is not asked again, and the corrections begin to count anew. */
static void disbelieve(hone_refinement *ctx, hone_refined *c) {
  ctx->f.resident = false;
  c->step = c->ratio = 0.0;
  c->slow = 0;
  c->last_value = HONE_INF;
}

/* A device that solves for one column at a time may begin on the correction
   that is most likely to follow while its residual is looked at. */
static bool expect_correction(const hone_refinement *ctx, int64_t m,
                              hone_refined *const *list) {
  const bool expects = m == 1 && !ctx->f.space && !list[0]->with_tail &&
                       ctx->f.engine->expect != NULL;
  if (expects)
    ctx->f.engine->expect(ctx->f.self);
  return expects;
}

/* Measures the columns where a copy of A is. Those it would accept are
   measured again, by the host on the caller's own A: it has the last word. */
static void evaluate_there(hone_refinement *ctx, int64_t m,
                           hone_refined *const *list) {
  hone_refined *good[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  const bool ahead = expect_correction(ctx, m, list);
  hone_refined_measure(ctx, true, true, m, list);
  for (int64_t c = 0; c < m; c++)
    if (hone_errors_value(&list[c]->now, ctx->criterion) <= ctx->limit)
      good[count++] = list[c];
  const bool keep = ahead && count > 0 && list[0]->shift == 0;
  if (keep) /* without a shift v is free */
    memcpy(ctx->v, list[0]->r, (size_t)ctx->f.a->n * sizeof *ctx->v);
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, good);
  ctx->there = keep ? list[0] : NULL;
  for (int64_t c = 0; c < count; c++)
    if (!(hone_errors_value(&good[c]->now, ctx->criterion) <= ctx->limit))
      disbelieve(ctx, good[c]);
}

/* Measures the columns, again with the accurate pass where it may decide. */
static void evaluate(hone_refinement *ctx, int64_t m,
                     hone_refined *const *list) {
  bool accurate = false;
  if (ctx->f.resident) {
    evaluate_there(ctx, m, list);
    return;
  }
  accurate = ctx->f.space != NULL; /* pairs take it */
  for (int64_t c = 0; c < m; c++)
    accurate = accurate || predicted(ctx, list[c]) <= 1e3 * ctx->limit;
  hone_refined_measure(ctx, accurate, false, m, list);
  if (accurate)
    return;
  for (int64_t c = 0; c < m; c++) {
    double value = hone_errors_value(&list[c]->now, ctx->criterion);
    if (near_limit(ctx, value) && !plain_suffices(ctx, value)) {
      hone_refined_measure(ctx, true, false, m, list);
      return;
    }
  }
}

/* Gives up on the column, or, where it began from the caller's x0, begins
   again from nothing: a poor x0 must not cost what a solve without it gets. */
static void leave(const hone_refinement *ctx, hone_refined *c,
                  const char *why) {
  if (c->warm) {
    c->warm = c->has_x = c->measured = false;
    c->step = c->ratio = 0.0;
    c->slow = c->tried = 0;
    c->last_value = HONE_INF;
    return;
  }
  c->state = HONE_COLUMN_LEFT;
  c->slow_only = isfinite(hone_errors_value(&c->now, ctx->criterion));
  snprintf(c->why, sizeof c->why, "%s", why);
}

/* GMRES stands still for a step or two before it falls: its rate is the mean of
   the last few. False: there have not been so many. */
static bool rate_of_steps(hone_refined *c, double value) {
  double *past = &c->past[c->tried % HONE_RATED_STEPS];
  const bool rated = c->tried >= HONE_RATED_STEPS;
  if (rated)
    c->ratio = pow(value / *past, 1.0 / HONE_RATED_STEPS);
  *past = value;
  return rated;
}

/* Where parts of x vanish below the range of double, omega is 1 whatever the
   rest is: of those alike the one with the smaller normwise error is best. */
static bool is_best(const hone_refinement *ctx, const hone_refined *c,
                    double value) {
  const double best = hone_errors_value(&c->best_errors, ctx->criterion);
  if (c->best == NULL)
    return value <= DBL_MAX;
  return value < best ||
         (value <= best && c->now.normwise < c->best_errors.normwise);
}

/* Accepts, keeps the best, or sees that there is no point in going on. */
static void judge(const hone_refinement *ctx, hone_refined *c) {
  double value = hone_errors_value(&c->now, ctx->criterion);
  if (is_best(ctx, c, value)) {
    c->best = c->x;
    c->best_errors = c->now;
  }
  if (value <= ctx->limit && (c->verified || plain_suffices(ctx, value))) {
    c->state = HONE_COLUMN_ACCEPTED;
    return;
  }
  if (!(value <= DBL_MAX)) {
    leave(ctx, c, "the iterate is not finite");
    return;
  }
  if (c->warm && c->tried == 0 && !(value <= 0.5)) {
    leave(ctx, c, "x0 is no better than 0"); /* whose omega is 1 */
    return;
  }
  int left = ctx->cap - c->tried;
  const bool rated =
      ctx->f.space ? rate_of_steps(c, value) : c->tried > 0 && c->ratio < 0.5;
  if (left <= 0) {
    leave(ctx, c, "no convergence within the corrections allowed");
  } else if (rated && !(c->ratio < 1.0)) {
    leave(ctx, c, "no longer converges");
  } else if (rated) {
    double needed = log(value / ctx->limit) / -log(c->ratio);
    if (!(needed <= (double)left + 2.0))
      leave(ctx, c, "converges too slowly to pay");
  }
}

/* x = x + d into the buffer that is not the best iterate. */
static void add_correction(int64_t n, hone_refined *c, const hone_entry *d) {
  hone_entry *to = c->best == c->x ? c->spare : c->x;
  for (int64_t i = 0; i < n; i++)
    to[i] = c->has_x ? c->x[i] + d[i] : d[i];
  if (to == c->spare) {
    c->spare = c->x;
    c->x = to;
  }
}

/* Decides by the size of the correction whether it is applied. The first
   solution from nothing counts as x itself, not as a correction. */
static void take_correction(int64_t n, const hone_refinement *ctx,
                            hone_refined *c, const hone_entry *d, double size) {
  if (!c->has_x) {
    add_correction(n, c, d);
    c->has_x = true;
    c->measured = false;
    c->step = c->size = size;
    return;
  }
  double value = hone_errors_value(&c->now, ctx->criterion);
  bool better = value <= 0.5 * c->last_value; /* small entries of x may gain
                                   while the large ones are at their end */
  c->last_value = value;
  if (c->step > 0.0 && !ctx->f.space) {
    c->ratio = size / c->step;
    c->slow += !(c->ratio <= 0.5) && !better;
    if (!better && (!(c->ratio < 1.0) || c->slow >= 2)) {
      leave(ctx, c,
            c->ratio < 1.0 ? "corrections shrink too slowly"
                           : "corrections no longer shrink");
      return;
    }
  }
  c->step = size;
  add_correction(n, c, d);
  c->iterations++;
  c->steps += ctx->f.space != NULL;
  c->tried++;
}

/* d = inv(M) r for the columns listed. */
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
    take_correction(n, ctx, list[c], ctx->v + c * n, size[c]);
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

static double worst(const hone_refinement *ctx, int64_t m,
                    hone_refined *const *list) {
  double max = 0.0;
  for (int64_t c = 0; c < m; c++) {
    double value = hone_errors_value(&list[c]->now, ctx->criterion);
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
  }
  c->now = c->best_errors;
  c->has_x = true;
  return true;
}

/* First solutions for the columns that have none. */
static int start_columns(hone_refinement *ctx, int64_t m,
                         hone_refined *columns) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t fresh = 0;
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && !columns[c].has_x)
      list[fresh++] = &columns[c];
  return fresh > 0 ? correct(ctx, fresh, list) : HONE_OK;
}

static bool tell(const hone_refinement *ctx, int step, double value) {
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
    columns[c].pair = -1;
  }
  for (int64_t c = 0; ctx->f.space && c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACTIVE && columns[c].has_x)
      hone_pairs_open(ctx, &columns[c], true);
  for (int step = 0;; step++) {
    int st = start_columns(ctx, m, columns);
    int64_t active = list_active(m, columns, list), going = 0;
    if (st != HONE_OK || active == 0)
      return st;
    evaluate(ctx, active, list);
    if (ctx->f.space)
      hone_pairs_close(ctx, active, list);
    for (int64_t c = 0; c < active; c++)
      judge(ctx, list[c]);
    double value = worst(ctx, active, list);
    for (int64_t c = 0; c < active; c++)
      if (list[c]->state == HONE_COLUMN_ACTIVE && list[c]->has_x)
        list[going++] = list[c];
    const bool stop = tell(ctx, step, value); /* of the last x too */
    if (list_active(m, columns, list + going) == 0)
      return HONE_OK;
    if (stop)
      return HONE_INTERRUPTED;
    if (going > 0 && (st = correct(ctx, going, list)) != HONE_OK)
      return st;
  }
}
