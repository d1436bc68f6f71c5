/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of many right-hand sides, in double precision. Where x changes by
   d, its residual changes by -A d. For many columns that is a matrix product,
   which runs at the speed of the arithmetic, and its rounding errors are small
   where d is. For the first x, and while d is large, the product is exact: x
   and d are rounded to HONE_STEP_VECTOR bits below their largest entry, and A
   to its leading bits A1. The product of the rest A2 with the sum of these d
   follows when x is nearly right.

   So r_i is known with an error of at most missed * weight_i + gamma den_i, and
   a column for which that is not small beside den_i in every row is left to
   the pass over A in double-double. Complex systems are real ones here, of n
   rows and 2 n columns for each part of r. docs/numerics.md has the proof. Next
   to read: evaluate.c. */
#include "refine/steps.h"

#include "refine/evaluate.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Steps above this part of x are rounded to few bits, so that their product
   with A1 is exact. */
static const double ROUNDED_ABOVE = 0x1p-34;
/* The product with the rest of A follows when the last step is at most this
   part of what it has not been made of yet, or omega at most so many times what
   it may be. */
static const double REST_FROM_STEP = 0x1p-6, REST_FROM_OMEGA = 64.0;
/* The denominators are computed again when the steps of x may have changed them
   by this part. */
static const double DENOMINATORS_MOVED = 0x1p-14;
/* An error of the residual is small beside the denominator if it is at most
   this part, and denominators are known if weight_i max |x| is at most so many
   times den_i. */
static const double SMALL_ERROR = 0x1p-58, LARGE_WEIGHT = 0x1p30;
/* Errors above this part of den_i show in omega. */
static const double SEEN_ERROR = 0x1p-70;
/* Vectors of few bits need more corrections than others. */
enum { CORRECTIONS_LEAST = 8 };
/* With a smaller rcond, what the product with A1 alone leaves of the residual
   makes corrections that are not small beside x. */
static const double LEAST_RCOND = 0x1p-27;
/* Norms of A for which products neither overflow nor lose digits. */
static const double MOST_NORM = 0x1p300;
/* The modulus of a complex error is at most so many times the larger of its
   parts: a little above the root of 2. */
static const double MODULUS = HONE_PARTS > 1 ? 0x1.6a0ap0 : 1.0;
/* Rounding errors of a sum of HONE_STEP_DEPTH products, and some more, in
   modulus. */
#define SUM_ROUNDING (MODULUS * (HONE_STEP_DEPTH + 8) * HONE_EPS)
/* |A2| <= REST times the largest part of the row within a block. */
#define REST (1.0 / (double)(INT64_C(1) << HONE_STEP_BITS))

/* Rounding errors of a sum of blocks in pairs of doubles, relative to the
   largest partial sum. */
static double pair_rounding(int64_t n) {
  const double blocks = (double)(n * HONE_PARTS / HONE_STEP_DEPTH + 2);
  return MODULUS * blocks * blocks * HONE_EPS * HONE_EPS;
}

void hone_steps_begin(const hone_refinement *ctx, int64_t m,
                      hone_refined *columns) {
  bool serves = hone_steps_pay(ctx->f.a->n, m) && ctx->steps_work != NULL &&
                ctx->f.a->op->residual_steps != NULL && !ctx->f.use_copy &&
                ctx->f.space == NULL && !ctx->f.scaling->used &&
                ctx->f.engine->precision == 32 && ctx->norm_a <= MOST_NORM &&
                ctx->norm_a >= 1.0 / MOST_NORM && ctx->rcond >= LEAST_RCOND &&
                ctx->max_corrections >= CORRECTIONS_LEAST &&
                ctx->limit < HONE_LOOSE_TOLERANCE;
  for (int64_t c = 0; c < m; c++)
    serves =
        serves && columns[c].state == HONE_COLUMN_ACTIVE && !columns[c].has_x;
  for (int64_t c = 0; c < m; c++) {
    columns[c].by_steps = serves;
    columns[c].step = NULL;
    columns[c].all_exact = true;
    columns[c].any_done = false;
    columns[c].missed = columns[c].moved = columns[c].pending = 0.0;
    columns[c].low = serves ? ctx->low + 2 * c * ctx->f.a->n : NULL;
    columns[c].done = serves ? columns[c].low + ctx->f.a->n : NULL;
  }
}

/* ---- Steps of x ---------------------------------------------------------- */

/* Rounds numbers of at most 'size' to multiples of 2^-HONE_STEP_VECTOR of a
   power of two above it. */
HONE_VECTOR static void round_to_few_bits(int64_t count, double size,
                                          double *v) {
  const double unit =
      1.5 * hone_shift(1.0, 52 + ilogb(size) + 1 - HONE_STEP_VECTOR);
  for (int64_t i = 0; i < count; i++)
    v[i] = (v[i] + unit) - unit;
}

/* to = x + d, d = to - x. */
HONE_VECTOR static void add_step(int64_t n, const hone_entry *x, hone_entry *d,
                                 hone_entry *to) {
  for (int64_t i = 0; i < n; i++) {
    const hone_entry sum = x[i] + d[i];
    d[i] = sum - x[i];
    to[i] = sum;
  }
}

void hone_steps_correct(const hone_refinement *ctx, hone_refined *c,
                        hone_entry *d) {
  const int64_t n = ctx->f.a->n;
  const double size = hone_max_abs(n, d);
  const double x = c->has_x ? (double)c->errors.size : 0.0;
  c->exact_step = c->all_exact && size > ROUNDED_ABOVE * x && size <= DBL_MAX;
  c->all_exact = c->exact_step;
  if (c->exact_step)
    round_to_few_bits(n * HONE_PARTS, size, (double *)d);
  c->first = !c->has_x;
  c->step = c->first ? NULL : d;
  if (c->has_x)
    add_step(n, c->x, d, hone_refined_next(c));
  else
    memcpy(hone_refined_next(c), d, (size_t)n * sizeof *d);
  c->step_size = hone_max_abs(n, d);
  hone_refined_turn(ctx, c);
}

/* ---- Products ------------------------------------------------------------ */

typedef struct product {
  int part;
  bool denominators;
} product;

/* Makes the products of the job, for as many columns at once as an operator
   takes. */
static void make_products(hone_refinement *ctx,
                          const hone_residual_steps *job) {
  for (int64_t at = 0; at < job->k; at += HONE_STEPS_MOST) {
    hone_residual_steps some = *job;
    some.k = HONE_MIN(job->k - at, (int64_t)HONE_STEPS_MOST);
    some.v += at;
    some.r += at;
    if (job->low != NULL)
      some.low += at;
    if (job->den != NULL) {
      some.den += at;
      some.x += at;
      some.b += at;
      some.size += at;
    }
    ctx->f.a->op->residual_steps(&some, ctx->f.pool);
    ctx->passes++;
  }
}

/* The vectors are the steps or, for the rest of A, x - done. */
static void multiply(hone_refinement *ctx, product p, int64_t m,
                     hone_refined *const *list) {
  const hone_entry *v[HONE_SOLVE_COLUMNS], *x[HONE_SOLVE_COLUMNS];
  const hone_entry *b[HONE_SOLVE_COLUMNS];
  hone_entry *r[HONE_SOLVE_COLUMNS], *low[HONE_SOLVE_COLUMNS];
  double *den[HONE_SOLVE_COLUMNS], size[HONE_SOLVE_COLUMNS];
  const double dd = pair_rounding(ctx->f.a->n);
  if (m == 0)
    return;
  for (int64_t k = 0; k < m; k++) {
    hone_refined *c = list[k];
    v[k] = c->step != NULL ? c->step : c->x;
    x[k] = c->x;
    b[k] = c->b;
    r[k] = c->r;
    low[k] = c->low;
    den[k] = c->den;
    size[k] = c->x_largest;
    if (p.part == HONE_STEP_REST)
      c->missed += (REST * SUM_ROUNDING + dd) * c->pending;
    else
      c->missed += (c->exact_step ? dd : SUM_ROUNDING + dd) * c->step_size;
    if (p.part == HONE_STEP_LEADING)
      c->pending += c->step_size;
    if (p.denominators) {
      c->fresh = true;
      c->moved = 0.0;
    }
  }
  const hone_residual_steps job = {.a = ctx->f.a,
                                   .trans = ctx->trans,
                                   .part = p.part,
                                   .k = m,
                                   .v = v,
                                   .r = r,
                                   .low = low,
                                   .den = p.denominators ? den : NULL,
                                   .x = x,
                                   .b = b,
                                   .size = size,
                                   .weight = ctx->weight,
                                   .work = ctx->steps_work};
  make_products(ctx, &job);
}

void hone_steps_subtract_spare(hone_refinement *ctx, int64_t m,
                               hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  const hone_entry *t[HONE_SOLVE_COLUMNS];
  hone_entry *v[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    t[c] = list[c]->spare;
    v[c] = ctx->v + c * n;
    memcpy(v[c], list[c]->r, (size_t)n * sizeof *v[c]);
  }
  const hone_residual_steps job = {.a = ctx->f.a,
                                   .trans = ctx->trans,
                                   .part = HONE_STEP_WHOLE,
                                   .k = m,
                                   .v = t,
                                   .r = v,
                                   .weight = ctx->weight,
                                   .work = ctx->steps_work};
  make_products(ctx, &job);
}

long double hone_steps_rounding(const hone_refinement *ctx,
                                const hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  long double squares = 0.0L;
  for (int64_t i = 0; i < n; i++)
    squares += (long double)ctx->weight[i] * (long double)ctx->weight[i];
  return sqrtl(squares) * (long double)SUM_ROUNDING *
         (long double)hone_max_abs(n, c->spare);
}

/* ---- Measures ------------------------------------------------------------ */

/* Columns that several threads treat at once. */
typedef struct listed_columns {
  const hone_refinement *ctx;
  hone_refined *const *list;
} listed_columns;

static void begin_column(void *ctx, int64_t k) {
  const listed_columns *columns = ctx;
  const int64_t n = columns->ctx->f.a->n;
  hone_refined *c = columns->list[k];
  c->x_largest = hone_max_abs(n, c->x);
  c->shift = 0;
  c->digits_lost = false;
  c->fresh = false;
  if (c->first) {
    memcpy(c->r, c->b, (size_t)n * sizeof *c->r);
    memset(c->low, 0, (size_t)n * sizeof *c->low);
  } else {
    c->moved += c->step_size;
  }
}

/* Returns max_i weight_i / den_i; infinity if a den_i is not above 'least'.
   step > 0: den_i, which belongs
   to x before a step of this size, is lowered to what it is at least. */
HONE_VECTOR static double largest_weight(int64_t n, const double *weight,
                                         double step, double least,
                                         double *den) {
  double most = 0.0;
  int64_t bad = 0;
#pragma omp simd reduction(max : most) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    const double d = den[i] - step * weight[i] * (1.0 + 0x1p-50);
    const double quotient = weight[i] / d;
    den[i] = d;
    most = quotient > most ? quotient : most;
    bad += !(d > least);
  }
  return bad > 0 ? HONE_INF : most;
}

static void measure_column(void *ctx, int64_t k) {
  const listed_columns *columns = ctx;
  const hone_refinement *refinement = columns->ctx;
  const int64_t n = refinement->f.a->n;
  hone_refined *c = columns->list[k];
  const double lowered = c->fresh || c->first ? 0.0 : c->step_size;
  const double weight = largest_weight(n, refinement->weight, lowered,
                                       hone_least_denominator(n), c->den);
  c->widest = weight;
  const double missed = c->missed + MODULUS * REST * c->pending;
  c->fresh = true; /* den belongs to this x now */
  c->gamma = missed * weight + 2.0 * pair_rounding(n) +
             MODULUS * (double)(n * HONE_PARTS + 4) * HONE_EPS * HONE_EPS;
  c->by_steps = weight * c->x_largest <= LARGE_WEIGHT &&
                (c->pending > 0.0 || missed * weight <= SMALL_ERROR);
  c->verified = c->by_steps && !(c->pending > 0.0);
  c->unseen = MODULUS * REST * c->pending * weight;
  if (!c->by_steps)
    return;
  hone_refined_errors(refinement, c);
  if (c->verified && c->gamma > SEEN_ERROR)
    c->errors.componentwise += c->gamma; /* omega is at most that */
}

static void measure(const hone_refinement *ctx, int64_t m,
                    hone_refined *const *list) {
  listed_columns columns = {ctx, list};
  hone_for_columns(ctx->f.pool, ctx->f.a->n, m, measure_column, &columns);
}

/* Is the product with the rest of A to follow now? It is when x is nearly right
   compared with what has no product yet, or the product may be seen. */
static bool wants_rest(const hone_refined *c) {
  return c->by_steps && c->pending > 0.0 &&
         ((!c->first && c->step_size <= REST_FROM_STEP * c->pending) ||
          c->errors.componentwise <= REST_FROM_OMEGA * c->unseen);
}

static bool wants_denominators(const hone_refined *c) {
  return c->first || c->moved * c->widest > DENOMINATORS_MOVED;
}

/* Is the product of the step with A1 made, and that with A2 left for later? */
static bool takes_leading(const hone_refined *c) {
  return c->exact_step || c->pending > 0.0;
}

/* Lists the columns that are measured with new denominators, or without. */
static int64_t list_those(bool denominators, bool leading, int64_t m,
                          hone_refined *const *from, hone_refined **list) {
  int64_t count = 0;
  for (int64_t k = 0; k < m; k++)
    if (takes_leading(from[k]) == leading &&
        wants_denominators(from[k]) == denominators)
      list[count++] = from[k];
  return count;
}

static void subtract_steps(hone_refinement *ctx, int64_t m,
                           hone_refined *const *list) {
  hone_refined *those[4][HONE_SOLVE_COLUMNS];
  int64_t count[4];
  for (int q = 0; q < 4; q++) /* before any of them changes */
    count[q] = list_those(q & 1, q & 2, m, list, those[q]);
  for (int q = 0; q < 4; q++) {
    const bool leading = q & 2;
    const product p = {leading ? HONE_STEP_LEADING : HONE_STEP_WHOLE, q & 1};
    multiply(ctx, p, count[q], those[q]);
  }
}

/* The vector for the product with the rest of A takes the place of the step. */
static void begin_rest(void *ctx, int64_t k) {
  const listed_columns *columns = ctx;
  const int64_t n = columns->ctx->f.a->n;
  hone_refined *c = columns->list[k];
  if (c->any_done)
    for (int64_t i = 0; i < n; i++)
      c->step[i] = c->x[i] - c->done[i];
  else
    c->step = NULL;
  memcpy(c->done, c->x, (size_t)n * sizeof *c->done);
  c->any_done = true;
}

/* Completes the residuals of those columns that are ready for it. */
static void complete(hone_refinement *ctx, int64_t m,
                     hone_refined *const *list) {
  hone_refined *ready[HONE_SOLVE_COLUMNS];
  hone_refined *those[2][HONE_SOLVE_COLUMNS] = {{NULL}};
  int64_t count = 0, part[2] = {0, 0};
  for (int64_t k = 0; k < m; k++)
    if (wants_rest(list[k])) {
      const bool denominators = wants_denominators(list[k]);
      those[denominators][part[denominators]++] = list[k];
      ready[count++] = list[k];
    }
  listed_columns columns = {ctx, ready};
  hone_for_columns(ctx->f.pool, ctx->f.a->n, count, begin_rest, &columns);
  multiply(ctx, (product){HONE_STEP_REST, false}, part[0], those[0]);
  multiply(ctx, (product){HONE_STEP_REST, true}, part[1], those[1]);
  for (int64_t k = 0; k < count; k++)
    ready[k]->pending = 0.0;
  measure(ctx, count, ready);
}

int64_t hone_steps_measure(hone_refinement *ctx, int64_t m,
                           hone_refined *const *list, hone_refined **rest) {
  hone_refined *served[HONE_SOLVE_COLUMNS];
  int64_t count = 0, left = 0;
  for (int64_t c = 0; c < m; c++) {
    list[c]->by_steps =
        list[c]->by_steps && hone_in_safe_range(ctx, list[c]->x);
    if (list[c]->by_steps)
      served[count++] = list[c];
    else
      rest[left++] = list[c];
  }
  listed_columns columns = {ctx, served};
  ctx->device_residual_of = NULL;
  hone_for_columns(ctx->f.pool, ctx->f.a->n, count, begin_column, &columns);
  subtract_steps(ctx, count, served);
  measure(ctx, count, served);
  complete(ctx, count, served);
  for (int64_t c = 0; c < count; c++) {
    if (served[c]->by_steps)
      continue;
    if (served[c]->first)
      served[c]->has_x = false;
    else
      rest[left++] = served[c];
  }
  return left;
}
