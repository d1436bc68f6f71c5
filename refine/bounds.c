/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward error bounds, in double precision; norms that leave its range are in
   long double. With e = x - x_true, r = b - A x and M the factors,

     -e = inv(A) r = d + G (-e),   d = inv(M) r,   G = I - inv(M) A
     ||e|| <= ||d|| / (1 - ||G||) = (1 + q) ||d||

   d is the correction that was not applied any more. It has the size and the
   direction of the error, whereas ||inv(A)|| ||r|| is the size of the error for
   the worst of all residuals. r is the residual of the very x returned, its
   rounding included. The norm is that of the scaled variables inv(C) x: the
   factors are those of the scaled matrix, and there G is small. For an entry in
   the caller's units only

     |e_i| <= |d_i| + C_i q ||inv(C) d||

   follows, which is no more than (1 + q) max |d_i| if the C_i are all alike.

   q is found as follows. Where M surely contracts
   (hone_bounds_contraction_known), q comes from the larger of two contractions:
   the one measured when the factors were certified, and the one that the
   condition number predicts. Elsewhere the corrections of a column have to show
   that they shrink. But a large part of an error that shrinks fast hides a
   small part that does not: q then bounds what may be hidden (see
   remainder_factor).

   There remains noise, the rounding error of the computed r: at most gamma (|A|
   |x| + |b|), in any direction. The norm of the inverse bounds its effect, but
   for badly scaled matrices far too generously, and C_i q ||inv(C) d|| is as
   pessimistic. Where these two bounds would matter, the solution for noise of
   this size and random signs is taken instead.

   Next to read: condition.c for the certificate, extra_precise.c for columns
   whose error is made smaller. */
#include "refine/bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* NORM_FACTOR: an estimate of ||inv(A)|| is a lower bound that is rarely off by
   more than 3 (Higham 2002, section 15.3); the measured contraction is a lower
   bound too. */
static const double NORM_FACTOR = 3.0, ERROR_FACTOR = 2.0, NOISE_FACTOR = 4.0;
/* Factors that contract less than this say too little about the error. */
static const double CONTRACTION_LIMIT = 0.75;
/* Measured contractions are 0.03 to 1 times u growth cond(S), u being the unit
   roundoff of the factors, in 99 of 100 systems of the gallery. A smaller one
   is an accident of the direction tried: it occurs for matrices of integers or
   with a single bad column. */
static const double PREDICTION_OVERESTIMATE = 32.0;
/* Random noise vectors tried: 6 up to n = 32, where few numbers decide, 2 up to
   n = 512, and 1 above that. */
enum {
  SMALL_ORDER = 32,
  MEDIUM_ORDER = 512,
  SAMPLES_SMALL = 6,
  SAMPLES_MEDIUM = 2,
  SAMPLES_LARGE = 1
};
/* Seeds are this far apart: 2^32 divided by the golden ratio. */
static const uint32_t SEED_STEP = 0x9e3779b9u;
/* Norms within these bounds lost nothing to underflow or overflow. */
static const double NORM_LEAST = 0x1p-800, NORM_MOST = 0x1p800;
/* An entry below this part of the largest one is lost in the arithmetic of
   factors in double, and of factors in single precision. */
static const long double LOST_DOUBLE = 0x1p-960L, LOST_SINGLE = 0x1p-96L;
enum { DIGITS_MOST = 16 }; /* of double precision */
/* Noise below this part of eps is negligible beside the rounding of x. */
static const double NEGLIGIBLE_NOISE = 0.0625;
/* Unmeasured error counts where it exceeds UNMEASURED_RATIO times the measured
   error. */
static const double UNMEASURED_RATIO = 4.0;
/* The corrections of a column have to shrink at least like this before they
   show anything. */
static const double OBSERVED_LIMIT = 0.5;

double hone_refined_residual_noise(const hone_refined *c, int64_t n,
                                   int64_t i) {
  /* where r = 0 nothing was rounded, but r may have underflowed */
  return (c->r[i] != 0.0 ? c->gamma * c->den[i] : 0.0) +
         (double)(2 * n + 2) * DBL_TRUE_MIN;
}

/* max_i 2^-e_i |x_i| in double; NaN counts as the largest. */
HONE_VECTOR static double plain_scaled(int64_t n, const hone_entry *x,
                                       const int *e) {
  int64_t max = 0;
  double size;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    int64_t bits = (int64_t)(1023 - e[i]) * (INT64_C(1) << 52);
    double v;
    memcpy(&v, &bits, sizeof v);
    v *= hone_abs(x[i]);
    memcpy(&bits, &v, sizeof bits);
    bits &= INT64_MAX; /* clears the sign of NaN as well */
    max = bits > max ? bits : max;
  }
  memcpy(&size, &max, sizeof size);
  return size;
}

/* max_i 2^-e_i |x_i|, which may lie beyond the range of double, or max |x_i| (e
   NULL); NaN if an entry is NaN. */
static long double max_scaled(int64_t n, const hone_entry *x, const int *e) {
  const double plain = e ? plain_scaled(n, x, e) : hone_max_abs(n, x);
  if (e == NULL || isnan(plain) || (plain >= NORM_LEAST && plain <= NORM_MOST))
    return (long double)plain; /* nothing was rounded */
  long double max = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    long double v = hone_absl((hone_wide)x[i]);
    v = ldexpl(v, -e[i]);
    max = v <= max ? max : v; /* takes NaN */
  }
  return max;
}

void hone_bounds_relative_size(const hone_refinement *ctx,
                               const hone_refined *c, const hone_entry *d,
                               hone_relative_size *out) {
  const int64_t n = ctx->f.a->n;
  const hone_scaling *s = ctx->f.scaling;
  const int *e = s->used ? (ctx->trans ? s->row_exp : s->col_exp) : NULL;
  /* 'lost' covers underflow. An error below the range of double may have
     vanished; and an entry is lost if it lies below the range of the factors'
     arithmetic, relative to the largest entry of the solution and times a
     condition number that the factors can resolve. */
  long double lost =
      (long double)fmax(c->solution_size, DBL_TRUE_MIN) *
      (ctx->f.engine->precision == 64 ? LOST_DOUBLE : LOST_SINGLE);
  int widest = 0;
  for (int64_t i = 0; e && i < n; i++)
    widest = i == 0 ? e[i] : HONE_MAX(widest, e[i]);
  lost = ldexpl(lost, widest) + (long double)DBL_TRUE_MIN;
  const long double x = max_scaled(n, c->x, NULL);
  const long double size = max_scaled(n, d, e);
  out->plain = (double)((max_scaled(n, d, NULL) + lost) / x);
  out->scaled = e ? (double)(size / max_scaled(n, c->x, e)) : out->plain;
  out->spread = e ? (double)(ldexpl(size, widest) / x) : out->plain;
}

static double contraction(const hone_certificate *certificate) {
  const double predicted =
      certificate->predicted_contraction / PREDICTION_OVERESTIMATE;
  return predicted <= certificate->contraction ? certificate->contraction
                                               : predicted; /* takes NaN */
}

bool hone_bounds_contraction_known(const hone_certificate *certificate) {
  return contraction(certificate) <= CONTRACTION_LIMIT &&
         certificate->contraction <= CONTRACTION_LIMIT;
}

bool hone_bounds_contraction_doubtful(const hone_certificate *certificate,
                                      bool factors_stale) {
  return certificate->contraction <= CONTRACTION_LIMIT &&
         (factors_stale || !hone_bounds_contraction_known(certificate));
}

/* q: the part of the error that a correction may leave, relative to the
   correction; NaN: it is not known, or so large that corrections do not say how
   large the error is. Where M surely contracts by g,

     q = g / (1 - g).

   Elsewhere there are two cases. Without pairs, ||G|| was measured to be large
   or may be large, and the corrections shrink because its powers do not grow: e
   = d + G d + ... With the pairs S z = c of a certificate, a correction leaves
   1 - ||C^T u||^2 along the singular vector u of the smallest singular value.
   It was certified that c is near y for the unit vector y where u is largest,
   so that ||C^T u||^2 is not much below u_j^2 >= 1/n. (Those pairs say nothing
   about the transpose.) */
static double remainder_factor(const hone_refinement *ctx,
                               const hone_refined *c) {
  const hone_certificate *certificate = ctx->certificate;
  const double g = contraction(certificate);
  if (c->digits_lost) /* entries of r may have underflowed */
    return HONE_NAN;
  if (!ctx->observe_contraction)
    return g <= CONTRACTION_LIMIT ? g / (1.0 - g) : HONE_NAN;
  if (!(c->observed_contraction <= OBSERVED_LIMIT) ||
      (certificate->pairs > 0 && ctx->trans))
    return HONE_NAN;
  const double n = (double)ctx->f.a->n;
  return certificate->pairs > 0 || g <= n ? n : g;
}

void hone_bounds_remainder(const hone_refinement *ctx, const hone_refined *c,
                           const hone_relative_size *d, double *plain,
                           double *scaled) {
  const double q = c->x_is_zero ? 0.0 : remainder_factor(ctx, c);
  *plain = q * d->spread;
  *scaled = q * d->scaled;
}

void hone_bounds_set_error(const hone_refinement *ctx, hone_refined *c,
                           hone_entry *d, const hone_entry *tail) {
  hone_relative_size next = {0}, all = {0};
  c->error_estimated = true;
  c->contraction_known = !ctx->observe_contraction;
  c->noise_estimated = false;
  c->noise_error = c->noise_error_scaled = HONE_INF;
  if (!c->x_is_zero) /* otherwise b = 0 and x is exact */
    hone_bounds_relative_size(ctx, c, d, &next);
  hone_bounds_remainder(ctx, c, &next, &c->remainder, &c->remainder_scaled);
  all = next;
  for (int64_t i = 0; tail && i < ctx->f.a->n; i++)
    d[i] += tail[i];
  if (tail && !c->x_is_zero)
    hone_bounds_relative_size(ctx, c, d, &all);
  c->error = all.plain;
  c->error_scaled = all.scaled;
}

static long double inverse_norm(const hone_certificate *certificate,
                                bool scaled) {
  return (long double)NORM_FACTOR *
         (scaled ? (long double)certificate->inverse_norm_scaled
                 : certificate->inverse_norm) /
         (1.0L - (long double)certificate->defect);
}

/* Bounds the effect of the noise by norms: ||inv(A)|| ||noise|| / ||x||. */
static double noise_bound(const hone_certificate *certificate,
                          const hone_refined *c, bool scaled) {
  const long double noise = scaled ? c->errors.noise_scaled : c->errors.noise;
  return noise > 0.0L ? (double)(inverse_norm(certificate, scaled) * noise)
                      : 0.0;
}

/* Bounds the error that exists beside the estimated one; NaN: there is no
   bound. */
static double unmeasured_error(const hone_certificate *certificate,
                               const hone_refined *c, bool scaled) {
  const double noise_error = scaled ? c->noise_error_scaled : c->noise_error;
  const double remainder =
      ERROR_FACTOR * (scaled ? c->remainder_scaled : c->remainder);
  const double noise = noise_bound(certificate, c, scaled);
  if (c->contraction_known) /* the noise sampled covers both */
    return noise_error <= remainder + noise ? noise_error : remainder + noise;
  return remainder + (noise_error <= noise ? noise_error : noise);
}

static bool unmeasured_error_counts(const hone_certificate *certificate,
                                    const hone_refined *c) {
  return c->remainder <= DBL_MAX &&
         (!(unmeasured_error(certificate, c, false) <=
            UNMEASURED_RATIO * c->error + HONE_EPS) ||
          !(unmeasured_error(certificate, c, true) <=
            UNMEASURED_RATIO * c->error_scaled + HONE_EPS));
}

/* v = inv(M) v for the columns listed. */
static int solve(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  int shift[HONE_SOLVE_COLUMNS] = {0};
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++)
    shift[c] = list[c]->shift;
  int st = hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v,
                              ctx->f.a->n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    list[c]->solution_size = size[c];
  return st;
}

/* The linear congruential generator of Numerical Recipes, modulo 2^32. */
static uint32_t next_random(uint32_t v) { return v * 1664525u + 1013904223u; }

/* v = a random vector with entries of random sign and random size, as large as
   the rounding error of r_i may be. For factors that contract it also contains
   the effect that their errors E have on an error as large as d: ||E|| is about
   g / ||inv(S)||. (The sizes are random too: where two equations decide that
   differ only in their size, signs alone may cancel.) Returns false if v leaves
   the range of double. */
static bool random_noise(const hone_refinement *ctx, const hone_refined *c,
                         uint32_t seed, hone_entry *v) {
  const int64_t n = ctx->f.a->n;
  const hone_scaling *s = ctx->f.scaling;
  const int *in = s->used ? (ctx->trans ? s->col_exp : s->row_exp) : NULL;
  const int *out = s->used ? (ctx->trans ? s->row_exp : s->col_exp) : NULL;
  long double of_factors = 0.0L;
  if (c->contraction_known)
    of_factors = (long double)c->remainder_scaled * max_scaled(n, c->x, out) /
                 (long double)ctx->certificate->inverse_norm_scaled;
  of_factors = ldexpl(of_factors, c->shift);
  bool finite = true;
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_refined_residual_noise(c, n, i) +
                        (double)(in ? ldexpl(of_factors, -in[i]) : of_factors);
    finite = finite && size <= DBL_MAX;
    seed = next_random(seed);
    v[i] = (0.5 + 0x1p-33 * (double)seed) * size;
    seed = next_random(seed);
    v[i] = seed >> 31 ? -v[i] : v[i];
  }
  for (int64_t i = 0; !finite && i < n; i++)
    v[i] = 1.0;
  return finite;
}

static double larger_or_inf(double a, double b) { /* NaN counts as Inf */
  return b <= a ? a : b <= DBL_MAX ? b : HONE_INF;
}

/* Solves for one random noise vector and raises the columns' noise_error to the
   result. Only the shape that results from the factors' errors counts, because
   their size in scaled variables is known. */
static int sample_noise_error(hone_refinement *ctx, uint32_t seed, int64_t m,
                              hone_refined *const *noisy) {
  const int64_t n = ctx->f.a->n;
  bool finite[HONE_SOLVE_COLUMNS];
  for (int64_t i = 0; i < m; i++)
    finite[i] = random_noise(ctx, noisy[i], seed, ctx->v + i * n);
  int st = solve(ctx, m, noisy);
  for (int64_t i = 0; i < m && st == HONE_OK; i++) {
    hone_refined *c = noisy[i];
    hone_relative_size noise;
    hone_bounds_relative_size(ctx, c, ctx->v + i * n, &noise);
    double factor = NOISE_FACTOR * (1.0 + remainder_factor(ctx, c));
    if (c->contraction_known &&
        !(noise.scaled >= c->remainder_scaled)) /* not 0 / 0 */
      factor *= c->remainder_scaled / noise.scaled;
    if (!finite[i])
      factor = HONE_INF;
    c->noise_error = larger_or_inf(c->noise_error, factor * noise.plain);
    c->noise_error_scaled =
        larger_or_inf(c->noise_error_scaled, factor * noise.scaled);
  }
  return st;
}

/* Estimates the effect of noise by sampling, for columns where its bound by
   norms would count: the largest result of a few random vectors, of more
   vectors where few numbers are involved. */
static void estimate_noise_errors(hone_refinement *ctx,
                                  const hone_certificate *certificate,
                                  int64_t m, hone_refined *columns) {
  hone_refined *noisy[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = &columns[i];
    if (!c->error_estimated || c->noise_estimated)
      continue;
    c->noise_estimated = true;
    if (!unmeasured_error_counts(certificate, c))
      continue;
    c->noise_error = c->noise_error_scaled = 0.0;
    noisy[count++] = c;
  }
  const uint32_t samples = ctx->f.a->n <= SMALL_ORDER    ? SAMPLES_SMALL
                           : ctx->f.a->n <= MEDIUM_ORDER ? SAMPLES_MEDIUM
                                                         : SAMPLES_LARGE;
  int st = HONE_OK;
  for (uint32_t seed = 1; seed <= samples && count > 0 && st == HONE_OK; seed++)
    st = sample_noise_error(ctx, seed * SEED_STEP, count, noisy);
  for (int64_t i = 0; i < count && st != HONE_OK; i++)
    noisy[i]->noise_error = noisy[i]->noise_error_scaled = HONE_INF;
}

/* Uses the residual r that the device computed and that is in ctx->v, because
   to solve for that takes no time. It is as good as the host's if, by the
   host's own bound, no entry is further away than the rounding error of either
   computation. Then it becomes r, with twice the noise, provided that this
   noise is negligible. */
static bool use_device_residual(const hone_refinement *ctx,
                                const hone_certificate *certificate,
                                hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  int64_t violations = 0;
  for (int64_t i = 0; i < n; i++)
    violations += !(hone_abs(ctx->v[i] - c->r[i]) <= c->gamma * c->den[i]);
  for (int scaled = 0; scaled < 2; scaled++)
    violations += !(2.0 * noise_bound(certificate, c, scaled) <=
                    NEGLIGIBLE_NOISE * HONE_EPS);
  if (violations > 0)
    return false;
  memcpy(c->r, ctx->v, (size_t)n * sizeof *c->r);
  c->gamma *= 2.0;
  c->errors.noise *= 2.0L;
  c->errors.noise_scaled *= 2.0L;
  return true;
}

void hone_bounds_estimate(hone_refinement *ctx,
                          const hone_certificate *certificate, int64_t m,
                          hone_refined *columns) {
  const int64_t n = ctx->f.a->n;
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++) {
    if (columns[c].state != HONE_COLUMN_ACCEPTED || columns[c].error_estimated)
      continue;
    if (m > 1 || ctx->device_residual_of != columns ||
        !use_device_residual(ctx, certificate, columns))
      memcpy(ctx->v + count * n, columns[c].r, (size_t)n * sizeof *ctx->v);
    list[count++] = &columns[c];
  }
  ctx->device_residual_of = NULL;
  bool solved = count > 0 && solve(ctx, count, list) == HONE_OK;
  for (int64_t c = 0; solved && c < count; c++)
    hone_bounds_set_error(ctx, list[c], ctx->v + c * n, NULL);
  estimate_noise_errors(ctx, certificate, m, columns);
}

double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *c, bool scaled) {
  const long double relative =
      scaled ? c->errors.relative_scaled : c->errors.relative;
  double bound =
      (double)(relative > 0.0L ? inverse_norm(certificate, scaled) * relative
                               : relative);
  bound += noise_bound(certificate, c, scaled);
  if (!certificate->nonsingular)
    return HONE_INF;
  const double error = scaled ? c->error_scaled : c->error;
  const double known =
      c->error_estimated
          ? ERROR_FACTOR * error + unmeasured_error(certificate, c, scaled)
          : HONE_NAN;
  bound =
      known <= bound ? known : bound; /* takes 'known' only if it is not NaN */
  bound += HONE_EPS;                  /* x was rounded */
  return bound <= DBL_MAX ? bound : HONE_INF;
}

bool hone_bounds_certify_a_digit(const hone_certificate *certificate,
                                 const hone_refined *c) {
  return hone_bounds_digits(hone_bounds_forward(certificate, c, false)) > 0 &&
         hone_bounds_digits(hone_bounds_forward(certificate, c, true)) > 0;
}

int32_t hone_bounds_digits(double bound) {
  if (!(bound < 1.0))
    return 0;
  return (int32_t)HONE_MAX(0.0,
                           HONE_MIN(floor(-log10(bound)), (double)DIGITS_MOST));
}
