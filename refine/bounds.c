/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds, in double precision; norms that may leave its range are in long
   double. Everything here is in scaled variables, in which the factors M of S =
   R A C were made. With e = x_true - x, E = I - inv(M) S and corrections d_1,
   d_2, ... that are kept apart from x,

     d_k = inv(M) (b - S (x + t_{k-1})),   t_k = t_{k-1} + d_k
     e   = t_k + E^k e

   The certificate has a power m of E with ||E^m||_2 <= eta <= 0.9, and rho_i
   that bound the norms of its rows, both by random probes (probes.c). So after
   k >= m corrections, the error f that was left before the last m of them is at
   most

     ||f||_2  <=  (||d_{k-m+1}||_2 + ... + ||d_k||_2) / (1 - eta)

   and for every component

     |e_i|    <=  |t_i| + rho_i ||f||_2                      the error bars

   Where powers are relaxed (relaxation.h), every m-th correction is made omega
   times, and d_k is what was added to t; k is a multiple of m, or one more.

   t is the error itself, but for what the second term says, so the bound is
   rarely much larger than the error. One correction suffices for most columns:
   a solve, and no pass over A.

   There remains noise, the rounding error of the computed residuals: at most
   gamma (|A| |x| + |b|), in any direction. The bound on ||inv(S)||_2 bounds its
   effect, or, where that would count, random vectors of its size. Residuals of
   x + t that are not double-double have their own, 'products'.

   The computed d_k is h_k away from inv(M) (b - S (x + t_{k-1})): rounding
   errors of the solve, entries that vanish in the arithmetic of the factors,
   digits below DBL_TRUE_MIN. With a bound on |h|, t_k - e becomes larger by h_k
   + E h_{k-1} + ... + E^(m-1) h_{k-m+1}; so sum_{j<m} ||E^j|| ||h|| is added to
   the sum in ||f||, and |h_i| + sum_{0<j<m} ||E^j|| ||h|| to the bar; or omega
   h_k and F in the place of one E.

   Next to read: condition.c for the certificate. */
#include "refine/bounds.h"

#include "refine/error_bars.h"
#include "refine/extra_precise.h"
#include "refine/noise.h"
#include "refine/relaxation.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A bound is tight enough if it is at most TIGHT times the error that is known,
   or if what is added to that is below SMALL of x. */
static const long double TIGHT = 2.0L, SMALL = HONE_NOISE_SMALL;
/* Statements made of a power: of the norm, and of the rows, and as many for the
   choice that looked at numbers that were drawn. */
enum { POWER_STATEMENTS = 4 };
/* A bound above this, in the caller's units alone, is due to units that differ
   widely; entries below LEAST_WEIGHT of the largest then count as that. */
static const double POOR_BOUND = 1e-3, LEAST_WEIGHT = 1e-3;
/* Covers the rounding of t and of a bar, and that of an entry of a correction
   in single precision, for which the probes may have been lucky. */
static const long double ROUNDING = 4.0L * 0x1p-53L,
                         ROUNDING_SINGLE = 4.0L * 0x1p-24L;
/* In norms relative to x, a solve is assumed to be wrong by at most its result,
   and by so many times ||E|| where that is more (docs/numerics.md). */
static const long double OF_PROBED = 4.0L;
/* A bound within this part of x serves extra-precise mode. */
static const long double LIMIT = (long double)(HONE_EXTRA_LIMIT - HONE_EPS);
/* Another correction is worth making where the last one halved the bound. */
static const long double WORTH = 0.5L;
/* A sample of noise is worth taking where the bound without noise is at most so
   much of the bound with it. */
static const long double WORTH_SAMPLE = 0.75L;

/* Is little assumed of the rounding errors of the solves, because a condition
   number of S says nothing of small entries of x? Then a residual of x + t is
   measured at least once: t counts as it is, however it was found, and only the
   solve for what is left, the last one, is relied upon. */
static bool rounding_is_probed(const hone_refinement *ctx,
                               const hone_bounding *b,
                               const hone_contraction *contraction) {
  return b->weights != NULL && contraction->power == 1 &&
         ctx->f.deflation == NULL;
}

/* Bounds the 2-norm, in scaled variables, of what a correction loses: 'lost' in
   every entry, digits below the grain, and the rounding errors of t. */
static long double vanished_norm(const hone_refinement *ctx,
                                 const hone_bounding *b, int step,
                                 long double lost) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  long double norm = b->grain * hone_noise_uniform_norm(n, e, b->weights);
  norm += lost * hone_noise_uniform_norm(n, NULL, b->weights);
  for (int k = 0; k < step && step > 1; k++)
    norm += ROUNDING * b->norm[k];
  return norm;
}

/* Bounds the error of every component after 'step' >= power corrections; with
   'write' the bars replace t in the column's spare vector. */
static void evaluate(const hone_refinement *ctx, const hone_bounding *b,
                     const hone_contraction *contraction, int step, bool write,
                     hone_bars_outcome *out) {
  const hone_refined *c = b->column;
  const long double before = (long double)contraction->before;
  /* F leaves 1 - omega of the rounding errors of the correction before. */
  const long double excess = (long double)hone_abs(contraction->excess);
  const long double single =
      ctx->f.engine->precision == 64 ? 0.0L : ROUNDING_SINGLE;
  hone_bars s = {.n = ctx->f.a->n,
                 .exponents = hone_refined_exponents(ctx),
                 .weights = b->weights,
                 .noise = b->sampled ? c->den : NULL,
                 .t = c->spare,
                 .d = b->d,
                 .rows = contraction->rows,
                 .rounding_d = single * (1.0L + excess),
                 .rounding_t = ROUNDING + single * excess,
                 .grain = b->grain,
                 .lost = hone_noise_lost_part(ctx, c) * (1.0L + excess)};
  for (int k = step - contraction->power; k < step; k++)
    s.lost = HONE_MAX(s.lost, b->rounding[k]);
  const long double solve =
      rounding_is_probed(ctx, b, contraction)
          ? HONE_MAX(1.0L, OF_PROBED * (long double)contraction->bound) *
                b->norm[step - 1]
          : 0.0L;
  const long double vanished = vanished_norm(ctx, b, step, s.lost) + solve;
  s.f = b->noise + b->products + hone_relaxation_sum(contraction) * vanished;
  for (int k = step - contraction->power; k < step; k++)
    s.f += b->norm[k];
  s.f /= 1.0L - (long double)contraction->bound;
  s.all =
      before * vanished + solve + b->products + (b->sampled ? 0.0L : b->noise);
  hone_bars_evaluate(&s, write ? (double *)c->spare : NULL, out);
}

static bool tight(const hone_bounding *b, const hone_bars_outcome *o) {
  return o->total <= TIGHT * o->known + SMALL * b->column->errors.size &&
         o->total_scaled <=
             TIGHT * o->known_scaled + SMALL * b->column->errors.size_scaled;
}

/* Does noise make much of the bound? */
static bool noise_prevails(const hone_bounding *b, const hone_bars_outcome *o) {
  return !(b->noise <= HONE_NOISE_LITTLE * o->known_scaled +
                           SMALL * b->column->errors.size_scaled);
}

/* May noise make the bound larger than the rounding of x does? */
static bool noise_counts(const hone_refinement *ctx, const hone_bounding *b) {
  return !(b->noise <= SMALL * b->column->errors.size_scaled) ||
         !(hone_bounds_widest_unit(ctx) * b->noise <=
           SMALL * b->column->errors.size);
}

/* Would the bound be much smaller if there were no noise? A sample of it takes
   as long as the refinement of x. */
static bool sample_gains(const hone_refinement *ctx,
                         const hone_contraction *contraction, int step,
                         const hone_bounding *b, const hone_bars_outcome *o) {
  hone_bounding quiet = *b;
  hone_bars_outcome least;
  quiet.noise = 0.0L;
  evaluate(ctx, &quiet, contraction, step, false, &least);
  return !(least.total > WORTH_SAMPLE * o->total) ||
         !(least.total_scaled > WORTH_SAMPLE * o->total_scaled);
}

/* v = inv(M) v for the columns listed, in double arithmetic, for which
   hone_noise_of_solve bounds the rounding errors. */
static int solve(hone_refinement *ctx, int64_t m, hone_bounding *list) {
  int shift[HONE_SOLVE_COLUMNS] = {0};
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++)
    shift[c] = list[c].column->shift;
  hone_factored f = ctx->f;
  f.in_double = true;
  int st =
      hone_apply_inverse(&f, false, ctx->trans, m, ctx->v, f.a->n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++) {
    list[c].largest = size[c];
    list[c].column->solution_size =
        fmax(list[c].column->solution_size, size[c]);
  }
  return st;
}

/* Adds correction number step + 1, which is in d. Returns true if a bound may
   be had after it. */
static bool add_correction(const hone_refinement *ctx,
                           const hone_contraction *contraction, int step,
                           hone_bounding *b, hone_entry *d) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  const hone_entry omega = hone_relaxation_at(contraction, step + 1);
  hone_refined *c = b->column;
  for (int64_t i = 0; i < n; i++) {
    d[i] *= omega;
    c->spare[i] = step > 0 ? c->spare[i] + d[i] : d[i];
  }
  b->d = d;
  b->norm[step] = hone_noise_scaled_norm(n, d, e, b->weights);
  const bool probed = rounding_is_probed(ctx, b, contraction);
  long double norm = b->norm[step];
  if (b->weights)
    norm = probed ? 0.0L : hone_noise_scaled_norm(n, d, e, NULL);
  b->rounding[step] = hone_noise_of_solve(ctx, d, (long double)b->largest,
                                          b->condition * norm, contraction);
  return hone_relaxation_completes(contraction, step + (probed ? 0 : 1));
}

/* A correction is followed by one of these. */
typedef enum verdict {
  BOUNDED,
  CORRECT_AGAIN,
  SAMPLE_NOISE,
  TOO_NOISY
} verdict;

/* Bounds the error after 'step' corrections, of which o is the outcome. If the
   bound is tight, or will not become so, the column receives it. */
static verdict judge(const hone_refinement *ctx,
                     const hone_contraction *contraction, int step,
                     hone_bounding *b, hone_bars_outcome *o) {
  hone_refined *c = b->column;
  if (!tight(b, o) && noise_counts(ctx, b)) {
    if (c->by_steps && noise_prevails(b, o))
      return TOO_NOISY;
    if (!c->by_steps && !b->sampled && contraction->power == 1 &&
        sample_gains(ctx, contraction, step, b, o))
      return SAMPLE_NOISE;
    if (b->weights == NULL && noise_prevails(b, o) &&
        !(o->total <= LIMIT * c->errors.size) && hone_noise_rows_serve(ctx, c))
      return TOO_NOISY;
  }
  if (!tight(b, o) &&
      hone_relaxation_next(contraction, step) <= HONE_BOUNDS_STEPS &&
      (!(b->last <= (long double)DBL_MAX) || o->total <= WORTH * b->last)) {
    b->last = o->total;
    return CORRECT_AGAIN;
  }
  evaluate(ctx, b, contraction, step, true, o);
  c->error = (double)(o->total / b->column->errors.size);
  c->error_scaled = (double)(o->total_scaled / b->column->errors.size_scaled);
  c->error_estimated = true;
  c->bars = (const double *)c->spare;
  return BOUNDED;
}

/* Columns whose corrections number step + 1 are in ctx->v. */
typedef struct corrected_columns {
  hone_refinement *ctx;
  const hone_certificate *certificate;
  const hone_contraction *contraction;
  int step;
  hone_bounding *list;
  verdict verdict[HONE_SOLVE_COLUMNS];
} corrected_columns;

static void take_correction(void *columns, int64_t k) {
  corrected_columns *all = columns;
  hone_bounding *b = &all->list[k];
  hone_bars_outcome o;
  all->verdict[k] = CORRECT_AGAIN;
  if (!add_correction(all->ctx, all->contraction, all->step, b,
                      all->ctx->v + k * all->ctx->f.a->n))
    return;
  evaluate(all->ctx, b, all->contraction, all->step + 1, false, &o);
  all->verdict[k] = judge(all->ctx, all->contraction, all->step + 1, b, &o);
}

/* Bounds the effect of noise on the column by random vectors, and judges again.
 */
static verdict sample_noise(corrected_columns *all, hone_bounding *b) {
  hone_bars_outcome o;
  /* Where the solve fails, the effect is bounded by norms. */
  b->sampled = hone_noise_sample(all->ctx, all->contraction, b->weights,
                                 b->column, &b->noise) == HONE_OK;
  evaluate(all->ctx, b, all->contraction, all->step + 1, false, &o);
  return judge(all->ctx, all->contraction, all->step + 1, b, &o);
}

/* Begins to bound the error of an accepted column. */
static hone_bounding begin_column(const hone_refinement *ctx,
                                  const hone_certificate *certificate,
                                  hone_refined *c) {
  hone_bounding b = {.column = c,
                     .grain = HONE_BOUNDS_GRAIN,
                     .condition = 1.0L / (long double)certificate->rcond_scaled,
                     .last = (long double)HONE_INF};
  c->spread = HONE_NOISE_FACTOR *
              hone_relaxation_sum(&certificate->contraction[ctx->trans]) *
              (long double)hone_bounds_inverse(certificate, c);
  b.noise = HONE_NOISE_FACTOR * hone_bounds_noise_effect(certificate, c);
  if (!c->by_steps && noise_counts(ctx, &b)) {
    hone_noise_of_zeros(ctx, c);
    b.noise = HONE_NOISE_FACTOR * hone_bounds_noise_effect(certificate, c);
  }
  c->best = c->x; /* spare is overwritten */
  c->best_errors = c->errors;
  c->solution_size = 0.0;
  return b;
}

static void begin_listed(void *columns, int64_t k) {
  const corrected_columns *all = columns;
  hone_refinement *ctx = all->ctx;
  hone_refined *c = all->list[k].column;
  const int64_t n = ctx->f.a->n;
  if (ctx->device_residual_of != c ||
      !hone_bounds_use_device(ctx, all->certificate, c))
    memcpy(ctx->v + k * n, c->r, (size_t)n * sizeof *ctx->v);
  all->list[k] = begin_column(ctx, all->certificate, c);
}

/* Lists the columns to bound and puts their residuals into ctx->v. */
static int64_t begin(hone_refinement *ctx, const hone_certificate *certificate,
                     int64_t m, hone_refined *columns, hone_bounding *list) {
  corrected_columns all = {ctx, certificate, .list = list};
  int64_t count = 0;
  for (hone_refined *c = columns; c < columns + m; c++)
    if (c->state == HONE_COLUMN_ACCEPTED && !c->error_estimated &&
        !c->digits_lost && !c->x_is_zero)
      list[count++].column = c;
  if (m > 1)
    ctx->device_residual_of = NULL;
  hone_for_columns(ctx->f.pool, ctx->f.a->n, count, begin_listed, &all);
  ctx->device_residual_of = NULL;
  return count;
}

/* Makes corrections, which are kept apart, until every column listed has its
   bound. Their residuals are in ctx->v. */
static void correct_until_bounded(hone_refinement *ctx,
                                  hone_certificate *certificate,
                                  const hone_contraction *contraction,
                                  int64_t count, hone_bounding *list) {
  const int64_t n = ctx->f.a->n;
  corrected_columns all = {
      .ctx = ctx, .contraction = contraction, .list = list};
  for (; count > 0 && solve(ctx, count, list) == HONE_OK; all.step++) {
    int64_t continuing = 0;
    hone_for_columns(ctx->f.pool, n, count, take_correction, &all);
    for (int64_t c = 0; c < count; c++) {
      if (all.verdict[c] == SAMPLE_NOISE)
        all.verdict[c] = sample_noise(&all, &list[c]);
      list[c].column->noisy = all.verdict[c] == TOO_NOISY;
      if (all.verdict[c] == CORRECT_AGAIN)
        list[continuing++] = list[c];
    }
    count = continuing;
    if (count > 0 &&
        hone_watch_stop(ctx->watch, "refine", 0.0, all.step, HONE_NAN))
      return;
    if (count > 0)
      hone_bounds_measure_rest(ctx, certificate, count, list);
  }
}

/* Bounds the error of a column whose entries differ so much in scaled variables
   that a bound in the 2-norm leaves no digit of x in the caller's units: with
   probes of its own, of inv(W) E W, where W y has entries of about 1. */
static void bound_relative_to_x(hone_refinement *ctx,
                                hone_certificate *certificate,
                                hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  double *weights =
      (double *)(ctx->scratch + hone_probe_scratch(n, ctx->f.use_copy));
  hone_contraction contraction = {.rows = weights + n};
  hone_probing probing = {.f = &ctx->f,
                          .trans = ctx->trans,
                          .weights = weights,
                          .seed = *ctx->seed,
                          .scratch = ctx->scratch};
  hone_refined_measure(ctx, true, false, 1, &c); /* den was lost */
  const double size = (double)c->errors.size;
  for (int64_t i = 0; i < n; i++)
    weights[i] =
        hone_shift(fmax(hone_abs(c->x[i]), LEAST_WEIGHT * size), e ? -e[i] : 0);
  int st = hone_probe(&probing, HONE_PROBE_POWERS, &contraction);
  ctx->statements += POWER_STATEMENTS * contraction.power;
  *ctx->seed = probing.seed;
  ctx->passes += probing.passes;
  if (st != HONE_OK || contraction.power == 0)
    return;
  double least = HONE_INF;
  for (int64_t i = 0; i < n; i++)
    least = fmin(least, weights[i]);
  hone_bounding b = begin_column(ctx, certificate, c);
  b.noise /= (long double)least;
  b.weights = weights;
  memcpy(ctx->v, c->r, (size_t)n * sizeof *ctx->v);
  c->error_estimated = false; /* its bars are overwritten */
  correct_until_bounded(ctx, certificate, &contraction, 1, &b);
}

void hone_bounds_estimate(hone_refinement *ctx, hone_certificate *certificate,
                          int64_t m, hone_refined *columns) {
  const hone_contraction *contraction = &certificate->contraction[ctx->trans];
  hone_bounding *const list = ctx->bounding;
  hone_refined *listed[HONE_SOLVE_COLUMNS];
  if (contraction->power == 0)
    return;
  hone_bounds_measure(ctx, m, columns);
  int64_t count = begin(ctx, certificate, m, columns, list);
  for (int64_t c = 0; c < count; c++)
    listed[c] = list[c].column;
  correct_until_bounded(ctx, certificate, contraction, count, list);
  if (hone_bounds_measure_noisy(ctx, count, listed))
    correct_until_bounded(ctx, certificate, contraction,
                          begin(ctx, certificate, m, columns, list), list);
  for (int64_t c = 0; c < count && ctx->f.scaling->used; c++)
    if (listed[c]->error_estimated && !(listed[c]->error <= POOR_BOUND) &&
        listed[c]->error_scaled <= POOR_BOUND)
      bound_relative_to_x(ctx, certificate, listed[c]);
}
