/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures iterates: passes over A, on the host or by the engine that holds a
   copy of A, in double or double-double, and what vouches for a residual of the
   engine. In double precision. Every comparison is written so that NaN fails
   it. Next to read: errors.c for the measures, verdict.c. */
#include "refine/evaluate.h"

#include "refine/steps.h"
#include "refine/verdict.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Products of numbers within 2^+-600 keep every digit. Sums of magnitudes up to
   2^LARGEST_EXP keep those of their terms that are not far below the others. */
enum { SAFE_EXP = 600, LARGEST_EXP = 1020 };
/* Vectors are shifted no higher than 2^SHIFTED_EXP, and entries that come out
   below 2^-SHIFTED_EXP may have lost digits. */
enum { SHIFTED_EXP = 1000 };
/* Entries so many powers of two above the least normal number have parts that
   keep 110 bits below the modulus. */
enum { SPARE_BITS = HONE_PARTS == 1 ? 0 : 35 };
/* A plain pass decides against a loose tolerance only where its noise is at
   most this part of the tolerance. */
static const double PLAIN_NOISE_PART = 0.01;
/* The accurate pass is taken at once where the predicted value is within
   PREDICTED_NEAR of the limit, and after a plain pass where the measured value
   is within MEASURED_NEAR of it. */
static const double PREDICTED_NEAR = 1e3, MEASURED_NEAR = 16.0;

/* Returns the sum of the exponents of ||A|| and of the largest entry of x, or 0
   where x is 0 or not finite: no product is much larger. *top: that of x. */
static int product_exponent(const hone_refinement *ctx, const hone_entry *x,
                            int *top) {
  const double size = hone_max_abs(ctx->f.a->n, x);
  *top = 0;
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return 0;
  *top = ilogb(size);
  return *top + ilogb(ctx->norm_a);
}

/* Returns the exponent e >= 0 for which the products of A with 2^e x are not
   all below the range in which they keep every digit; 0 where they are not. 2^e
   x and 2^e b stay in range: beside a b that is so large the products count for
   nothing. */
static int upward_shift(const hone_refinement *ctx, const hone_refined *c) {
  int top;
  const int e = product_exponent(ctx, c->x, &top);
  if (e >= -SAFE_EXP)
    return 0;
  const double b = hone_max_abs(ctx->f.a->n, c->b);
  if (b > 0.0 && b <= DBL_MAX)
    top = HONE_MAX(top, ilogb(b));
  return HONE_MAX(HONE_MIN(-e, SHIFTED_EXP - top), 0);
}

bool hone_in_safe_range(const hone_refinement *ctx, const hone_entry *x) {
  int top;
  const int e = product_exponent(ctx, x, &top);
  return e >= -SAFE_EXP && e <= SAFE_EXP;
}

/* Returns the exponent e <= 0 for which 2^e den lies below 2^LARGEST_EXP; 0
   where den does. Where rows and columns have units, ||A|| and max |x| say
   nothing of that: only a row whose own sum is too large asks for a shift, by
   which small entries of x, b and r may underflow. */
static int downward_shift(const hone_refinement *ctx, const hone_refined *c) {
  const double largest = hone_pow2(LARGEST_EXP);
  int top, shift = 0;
  if (product_exponent(ctx, c->x, &top) <= SAFE_EXP)
    return 0;
  for (int64_t i = 0; i < ctx->f.a->n; i++) {
    if (c->den[i] <= largest)
      continue;
    hone_wide_row row = {.a = ctx->f.a,
                         .trans = ctx->trans,
                         .i = i,
                         .x = c->x,
                         .b = c->b[i],
                         .fast = true,
                         .shift = -2 * LARGEST_EXP};
    ctx->f.a->op->wide_row(&row);
    if (row.den > 0.0 && row.den <= DBL_MAX)
      shift = HONE_MIN(shift, -LARGEST_EXP - 1 - ilogb(row.den));
  }
  return shift;
}

/* to = 2^e from. Returns true if an entry may have lost digits by underflow.
   The parts of a complex entry may lose some that are below eps^2 / 16 of it.
 */
static bool shift_vector(int64_t n, const hone_entry *from, int e,
                         hone_entry *to) {
  const double least = hone_shift(1.0, SPARE_BITS - SHIFTED_EXP);
  bool lost = false;
  for (int64_t i = 0; i < n; i++) {
    to[i] = hone_shift_entry(from[i], e);
    lost =
        lost || (from[i] != 0.0 && !(hone_abs(to[i]) >= least) &&
                 (HONE_PARTS == 1 || hone_shift_entry(to[i], -e) != from[i]));
  }
  return lost;
}

/* gamma, the rounding error of the computed r as a part of den. In plain double
   it bounds the rounding of the sum; in double-double the rounding errors of
   the sums of rounding errors, of more of them if it is rough; where rows are
   computed one by one (lost), the rounding of long double. */
static double residual_gamma(int64_t n, bool accurate, bool rough, bool lost) {
  const double terms = (double)HONE_ROUNDINGS * (double)(n + 4);
  if (lost)
    return terms * 0x1p-63;
  if (rough)
    return (double)hone_block_terms(n) * HONE_EPS * HONE_EPS;
  return accurate ? (double)hone_pair_terms(n) * HONE_EPS * HONE_EPS
                  : terms * HONE_EPS;
}

/* Shifts the tail by 2^shift and sets its right-hand side to zero. */
static void begin_tail(int64_t n, hone_refined *c) {
  memset(c->tail_r, 0, (size_t)n * sizeof *c->tail_r);
  if (c->shift != 0)
    shift_vector(n, c->tail, c->shift, c->tail);
}

/* Columns that several threads treat at once. */
typedef struct listed_columns {
  const hone_refinement *ctx;
  hone_refined *const *list;
  const hone_projection *projection; /* for the verdict */
  bool accurate, device, rough;      /* the pass that measures them */
} listed_columns;

static void take_errors(void *ctx, int64_t c) {
  const listed_columns *columns = ctx;
  hone_refined *column = columns->list[c];
  column->verified = columns->accurate && !columns->device;
  column->den_lost = column->wide = false;
  column->vouched_there = false;
  column->gamma = residual_gamma(columns->ctx->f.a->n, columns->accurate,
                                 columns->rough, column->digits_lost);
  hone_refined_errors(columns->ctx, column);
  if (column->sparse && column->best == column->x) /* it was accepted so */
    column->errors.componentwise = column->by_rows;
}

/* May a device make more rounding errors in a pass for several columns? In
   refinement with factors of single precision they stay far below those of x.
 */
static bool may_be_rough(const hone_refinement *ctx, int64_t m,
                         hone_refined *const *list) {
  bool may = m > 1 && ctx->f.engine->precision == 32;
  for (int64_t c = 0; c < m; c++)
    may = may && !list[c]->measure_tail;
  return may;
}

/* Makes one pass over A for the columns listed:

     r = b - op(A) x,   den = |op(A)| |x| + |b|

   x and b of columns that have a shift are passed as 2^shift x and 2^shift b.
   Then r and den carry the same factor, which cancels in every error measure.
 */
static void make_pass(hone_refinement *ctx, bool accurate, bool device,
                      int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  const hone_entry *x[2 * HONE_SOLVE_COLUMNS], *b[2 * HONE_SOLVE_COLUMNS];
  hone_entry *r[2 * HONE_SOLVE_COLUMNS];
  double *den[2 * HONE_SOLVE_COLUMNS];
  int64_t k = m;
  for (int64_t c = 0; c < m; c++) {
    const int e = list[c]->shift;
    x[c] = list[c]->x;
    b[c] = list[c]->b;
    r[c] = list[c]->r;
    den[c] = list[c]->den;
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
  const hone_residual_block block = {
      k, x, b, r, den, false, may_be_rough(ctx, m, list)};
  if (!device)
    ctx->f.a->op->residual(&pass, ctx->f.pool);
  else /* a copy that failed is not used again */
    ctx->f.use_copy =
        hone_residuals(&ctx->f, ctx->trans, &block) && ctx->f.use_copy;
  *(device ? &ctx->device_passes : &ctx->passes) += 1;
  for (int64_t c = 0; c < m; c++)
    if (list[c]->measure_tail && list[c]->shift != 0)
      shift_vector(n, list[c]->tail, -list[c]->shift, list[c]->tail);
}

static void shift_upwards(void *ctx, int64_t c) {
  const listed_columns *columns = ctx;
  columns->list[c]->shift = upward_shift(columns->ctx, columns->list[c]);
}

/* The shift so far becomes the whole one. A column that has to be shifted
   downwards is measured once more. */
static void end_pass(void *ctx, int64_t c) {
  const listed_columns *columns = ctx;
  hone_refined *column = columns->list[c];
  column->shift += downward_shift(columns->ctx, column);
  if (column->shift >= 0)
    take_errors(ctx, c);
}

/* Products that all are small are shifted upwards. A column of which a row
   leaves the range is measured once more, shifted downwards as far as it has
   to be. */
void hone_refined_measure(hone_refinement *ctx, bool accurate, bool device,
                          int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  hone_refined *large[2 * HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  listed_columns columns = {.ctx = ctx,
                            .list = list,
                            .accurate = accurate,
                            .device = device,
                            .rough = device && may_be_rough(ctx, m, list)};
  ctx->device_residual_of = NULL;
  hone_for_columns(ctx->f.pool, n, m, shift_upwards, &columns);
  make_pass(ctx, accurate, device, m, list);
  hone_for_columns(ctx->f.pool, n, m, end_pass, &columns);
  for (int64_t c = 0; c < m; c++)
    if (list[c]->shift < 0)
      large[count++] = list[c];
  if (count == 0)
    return;
  make_pass(ctx, accurate, device, count, large);
  columns.list = large;
  hone_for_columns(ctx->f.pool, n, count, take_errors, &columns);
}

/* Could this value, taken from a plain pass, fall on the other side of the
   limit when it is measured accurately? */
static bool near_limit(const hone_refinement *ctx, double value) {
  return value <= MEASURED_NEAR * ctx->limit;
}

/* A plain pass is wrong by at most n eps of the denominator. */
bool hone_plain_suffices(const hone_refinement *ctx, double value) {
  double noise = (double)HONE_ROUNDINGS * (double)(ctx->f.a->n + 2) * HONE_EPS;
  return ctx->criterion == HONE_CRITERION_COMPONENTWISE &&
         ctx->limit >= HONE_LOOSE_TOLERANCE &&
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
  ctx->copy_refuted = true;
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

static void judge_by_projection(void *ctx, int64_t c) {
  const listed_columns *columns = ctx;
  hone_refined *column = columns->list[c];
  column->verified = hone_verdict(columns->ctx, columns->projection, column) &&
                     meets_limit(columns->ctx, column);
  column->vouched_there = column->verified && columns->projection->by_device;
}

/* Lists in 'rest' the columns that the device would accept and the projection
   does not vouch for. */
static int64_t list_unvouched(hone_refinement *ctx, int64_t m,
                              hone_refined *const *list, hone_refined **rest) {
  hone_refined *good[HONE_SOLVE_COLUMNS];
  int64_t met = 0, count = 0;
  for (int64_t c = 0; c < m; c++)
    if (meets_limit(ctx, list[c]))
      good[met++] = list[c];
  listed_columns columns = {.ctx = ctx,
                            .list = good,
                            .projection =
                                met > 0 ? hone_verdict_projection(ctx) : NULL};
  if (columns.projection != NULL)
    hone_for_columns(ctx->f.pool, ctx->f.a->n, met, judge_by_projection,
                     &columns);
  for (int64_t c = 0; c < met; c++)
    if (!good[c]->verified)
      rest[count++] = good[c];
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

void hone_evaluate(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  hone_refined *rest[2 * HONE_SOLVE_COLUMNS];
  bool accurate = false;
  if (ctx->f.use_copy) {
    evaluate_on_device(ctx, m, list);
    return;
  }
  m = hone_steps_measure(ctx, m, list, rest);
  if (m == 0)
    return;
  list = rest;
  accurate = ctx->f.space != NULL; /* the pairs need accurate residuals */
  for (int64_t c = 0; c < m; c++)
    accurate = accurate ||
               predicted_value(ctx, list[c]) <= PREDICTED_NEAR * ctx->limit;
  hone_refined_measure(ctx, accurate, false, m, list);
  if (accurate)
    return;
  for (int64_t c = 0; c < m; c++) {
    double value = hone_errors_value(&list[c]->errors, ctx->criterion);
    if (near_limit(ctx, value) && !hone_plain_suffices(ctx, value)) {
      hone_refined_measure(ctx, true, false, m, list);
      return;
    }
  }
}
