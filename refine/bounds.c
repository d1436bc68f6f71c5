/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward error bounds. With e = x - x_true, r = b - A x and M the factors,

     -e = inv(A) r = d + G (-e),   d = inv(M) r,   G = I - inv(M) A
     ||e|| <= ||d|| / (1 - ||G||) = (1 + q) ||d||

   d is the correction that was not made any more: it has the size and the
   direction of the error, where ||inv(A)|| ||r|| is its size for the worst of
   all residuals. r is that of the very x returned, rounding included. The
   norm is that of scaled variables, inv(C) x: there factors are made, and
   there G is small. Of an entry in the caller's units only

     |e_i| <= |d_i| + C_i q ||inv(C) d||

   follows, which is no more than (1 + q) max |d_i| where the C_i are alike.

   What q is: where M is sure to contract (hone_bounds_known), from the larger
   of what was measured when the factors were certified and what the condition
   number foretells. Elsewhere the corrections of a column have to show that
   they shrink, but a large part of an error that shrinks fast hides a small
   one that does not: q is then what may be hidden (see leftover).

   What remains is noise, the part of r that its computation missed: at most
   gamma (|A| |x| + |b|) in any direction. The norm of the inverse bounds its
   effect, with badly scaled matrices by far too much, and C_i q ||inv(C) d||
   is as blunt: where they would count, the solution for noise of this size and
   random signs is taken instead. */
#include "refine/bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* An estimate of ||inv(A)|| is a lower bound that is rarely off by more than
   3 (Higham 2002, section 15.3); the measured contraction is one too. */
static const double NORM_FACTOR = 3.0, ERROR_FACTOR = 2.0, NOISE_FACTOR = 4.0;
/* Factors that contract less than this say too little of the error. */
static const double CONTRACTION_LIMIT = 0.75;
/* Measured contractions are 0.03 to 1 times u growth cond(S), u the rounding of
   the factors' precision, in 99 of 100 systems of the gallery. Less than that
   is the luck of one direction: that of integers or of a single bad column. */
static const double LUCK = 32.0;
/* Of noise at random: 6 up to n = 32, where few numbers decide, 2 up to 512,
   above that 1. */
enum { FEW = 32, SOME = 512 };
/* Noise that is nothing beside the rounding of x. */
static const double QUIET = 0.0625;
/* What is not known counts where it is more than this times what is. */
static const double COUNTS = 4.0;
/* A column's own corrections have to shrink like this to show anything. */
static const double OBSERVED_MOST = 0.5;

double hone_refined_missed(const hone_refined *c, int64_t n, int64_t i) {
  /* r = 0: nothing was rounded, but it may have vanished */
  return (c->r[i] != 0.0 ? c->gamma * c->den[i] : 0.0) +
         (double)(2 * n + 2) * 0x1p-1074;
}

/* Largest of 2^-e x in double; NaN is the largest. */
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
    bits &= INT64_MAX; /* NaN of either sign */
    max = bits > max ? bits : max;
  }
  memcpy(&size, &max, sizeof size);
  return size;
}

/* Of 2^-e x, which may lie beyond the range of double, or x (e NULL); NaN where
   there is one. */
static long double max_scaled(int64_t n, const hone_entry *x, const int *e) {
  const double plain = e ? plain_scaled(n, x, e) : hone_max_abs(n, x);
  if (e == NULL || isnan(plain) || (plain >= 0x1p-800 && plain <= 0x1p800))
    return (long double)plain; /* nothing was rounded */
  long double max = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    long double v = hone_absl((hone_wide)x[i]);
    v = ldexpl(v, -e[i]);
    max = v <= max ? max : v; /* takes NaN */
  }
  return max;
}

void hone_bounds_relate(const hone_refinement *ctx, const hone_refined *c,
                        const hone_entry *d, hone_beside *out) {
  const int64_t n = ctx->f.a->n;
  const hone_scaling *s = ctx->f.scaling;
  const int *e = s->used ? (ctx->trans ? s->row_exp : s->col_exp) : NULL;
  /* An error below the range of double may have vanished; and what lies below
     the range of the factors' arithmetic, beside the largest entry of the
     solution and times a condition that they can tell, is lost. */
  long double lost = (long double)fmax(c->solved, 0x1p-1074) *
                     (ctx->f.engine->precision == 64 ? 0x1p-960L : 0x1p-96L);
  int widest = 0;
  for (int64_t i = 0; e && i < n; i++)
    widest = i == 0 ? e[i] : HONE_MAX(widest, e[i]);
  lost = ldexpl(lost, widest) + 0x1p-1074L;
  const long double x = max_scaled(n, c->x, NULL);
  const long double size = max_scaled(n, d, e);
  out->plain = (double)((max_scaled(n, d, NULL) + lost) / x);
  out->scaled = e ? (double)(size / max_scaled(n, c->x, e)) : out->plain;
  out->spread = e ? (double)(ldexpl(size, widest) / x) : out->plain;
}

static double contraction_of(const hone_certificate *certificate) {
  const double foretold = certificate->foretold / LUCK;
  return foretold <= certificate->contraction ? certificate->contraction
                                              : foretold; /* takes NaN */
}

bool hone_bounds_known(const hone_certificate *certificate) {
  return contraction_of(certificate) <= CONTRACTION_LIMIT &&
         certificate->contraction <= CONTRACTION_LIMIT;
}

bool hone_bounds_doubtful(const hone_certificate *certificate, bool stale) {
  return certificate->contraction <= CONTRACTION_LIMIT &&
         (stale || !hone_bounds_known(certificate));
}

/* q: beside a correction, how much of the error may be left; NaN: too much for
   corrections to say how large an error is, or not known. Where M is sure to
   contract, g / (1 - g). Else:

   without pairs, ||G|| was seen to be large or must be feared to be, and the
   corrections shrink because its powers do not grow: e = d + G d + ...;

   with the pairs of a certificate, S z = c, along the singular vector u of the
   smallest singular value a correction leaves 1 - ||C^T u||^2. The proof was
   that for the unit vector y where u is largest c is near y, so that
   ||C^T u||^2 is not much below u_j^2 >= 1/n. (Those pairs tell nothing of
   the transpose.) */
static double leftover(const hone_refinement *ctx, const hone_refined *c) {
  const hone_certificate *certificate = ctx->certificate;
  const double g = contraction_of(certificate);
  if (c->lost) /* r may have vanished in part */
    return HONE_NAN;
  if (!ctx->observe)
    return g <= CONTRACTION_LIMIT ? g / (1.0 - g) : HONE_NAN;
  if (!(c->observed <= OBSERVED_MOST) || (certificate->pairs > 0 && ctx->trans))
    return HONE_NAN;
  const double n = (double)ctx->f.a->n;
  return certificate->pairs > 0 || g <= n ? n : g;
}

void hone_bounds_rest(const hone_refinement *ctx, const hone_refined *c,
                      const hone_beside *d, double *plain, double *scaled) {
  const double q = c->zero ? 0.0 : leftover(ctx, c);
  *plain = q * d->spread;
  *scaled = q * d->scaled;
}

void hone_bounds_take(const hone_refinement *ctx, hone_refined *c,
                      hone_entry *d, const hone_entry *tail) {
  hone_beside next = {0}, all = {0};
  c->bounded = true;
  c->direct = !ctx->observe;
  c->noise_estimated = false;
  c->missed = c->missed_scaled = HONE_INF;
  if (!c->zero) /* else b = 0, x is exact */
    hone_bounds_relate(ctx, c, d, &next);
  hone_bounds_rest(ctx, c, &next, &c->rest, &c->rest_scaled);
  all = next;
  for (int64_t i = 0; tail && i < ctx->f.a->n; i++)
    d[i] += tail[i];
  if (tail && !c->zero)
    hone_bounds_relate(ctx, c, d, &all);
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

/* By norms: what the computation of r missed. */
static double noise_of(const hone_certificate *certificate,
                       const hone_refined *c, bool scaled) {
  const long double noise = scaled ? c->now.noise_scaled : c->now.noise;
  return noise > 0.0L ? (double)(inverse_norm(certificate, scaled) * noise)
                      : 0.0;
}

/* What there may be beside the error that is known; NaN: anything. */
static double unknown(const hone_certificate *certificate,
                      const hone_refined *c, bool scaled) {
  const double missed = scaled ? c->missed_scaled : c->missed;
  const double rest = ERROR_FACTOR * (scaled ? c->rest_scaled : c->rest);
  const double noise = noise_of(certificate, c, scaled);
  if (c->direct) /* heard: both */
    return missed <= rest + noise ? missed : rest + noise;
  return rest + (missed <= noise ? missed : noise);
}

static bool counts(const hone_certificate *certificate, const hone_refined *c) {
  return c->rest <= DBL_MAX &&
         (!(unknown(certificate, c, false) <= COUNTS * c->error + HONE_EPS) ||
          !(unknown(certificate, c, true) <=
            COUNTS * c->error_scaled + HONE_EPS));
}

/* v = inv(M) v for the columns listed. */
static int solve_for(hone_refinement *ctx, int64_t m,
                     hone_refined *const *list) {
  int shift[HONE_SOLVE_COLUMNS] = {0};
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++)
    shift[c] = list[c]->shift;
  int st = hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v,
                              ctx->f.a->n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    list[c]->solved = size[c];
  return st;
}

/* At random, with signs, what r_i may have missed and, of factors that
   contract, what their errors E make of an error as large as d: ||E|| is about
   g / ||inv(S)||. (Of sizes at random, too: where two equations decide, alike
   but for their size, signs alone may cancel.) False: beyond the range of
   double. */
static bool make_noise(const hone_refinement *ctx, const hone_refined *c,
                       uint32_t seed, hone_entry *v) {
  const int64_t n = ctx->f.a->n;
  const hone_scaling *s = ctx->f.scaling;
  const int *in = s->used ? (ctx->trans ? s->col_exp : s->row_exp) : NULL;
  const int *out = s->used ? (ctx->trans ? s->row_exp : s->col_exp) : NULL;
  long double of_factors = 0.0L;
  if (c->direct)
    of_factors = (long double)c->rest_scaled * max_scaled(n, c->x, out) /
                 (long double)ctx->certificate->inverse_norm_scaled;
  of_factors = ldexpl(of_factors, c->shift);
  bool finite = true;
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_refined_missed(c, n, i) +
                        (double)(in ? ldexpl(of_factors, -in[i]) : of_factors);
    finite = finite && size <= DBL_MAX;
    seed = seed * 1664525u + 1013904223u;
    v[i] = (0.5 + 0x1p-33 * (double)seed) * size;
    seed = seed * 1664525u + 1013904223u;
    v[i] = seed >> 31 ? -v[i] : v[i];
  }
  for (int64_t i = 0; !finite && i < n; i++)
    v[i] = 1.0;
  return finite;
}

static double larger(double a, double b) { /* NaN is Inf */
  return b <= a ? a : b <= DBL_MAX ? b : HONE_INF;
}

/* One try of that: what it comes to. Of the factors' errors only its shape
   counts, the size in scaled variables is known. */
static int try_noise(hone_refinement *ctx, uint32_t seed, int64_t m,
                     hone_refined *const *loud) {
  const int64_t n = ctx->f.a->n;
  bool finite[HONE_SOLVE_COLUMNS];
  for (int64_t i = 0; i < m; i++)
    finite[i] = make_noise(ctx, loud[i], seed, ctx->v + i * n);
  int st = solve_for(ctx, m, loud);
  for (int64_t i = 0; i < m && st == HONE_OK; i++) {
    hone_refined *c = loud[i];
    hone_beside noise;
    hone_bounds_relate(ctx, c, ctx->v + i * n, &noise);
    double factor = NOISE_FACTOR * (1.0 + leftover(ctx, c));
    if (c->direct && !(noise.scaled >= c->rest_scaled)) /* not 0 / 0 */
      factor *= c->rest_scaled / noise.scaled;
    if (!finite[i])
      factor = HONE_INF;
    c->missed = larger(c->missed, factor * noise.plain);
    c->missed_scaled = larger(c->missed_scaled, factor * noise.scaled);
  }
  return st;
}

/* Columns where the norms of what is not known would count: what does it come
   to? The largest of some tries, of more where few numbers are involved. */
static void hear_noise(hone_refinement *ctx,
                       const hone_certificate *certificate, int64_t m,
                       hone_refined *columns) {
  hone_refined *loud[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = &columns[i];
    if (!c->bounded || c->noise_estimated)
      continue;
    c->noise_estimated = true;
    if (!counts(certificate, c))
      continue;
    c->missed = c->missed_scaled = 0.0;
    loud[count++] = c;
  }
  const uint32_t tries = ctx->f.a->n <= FEW ? 6 : ctx->f.a->n <= SOME ? 2 : 1;
  int st = HONE_OK;
  for (uint32_t seed = 1; seed <= tries && count > 0 && st == HONE_OK; seed++)
    st = try_noise(ctx, seed * 0x9e3779b9u, count, loud);
  for (int64_t i = 0; i < count && st != HONE_OK; i++)
    loud[i]->missed = loud[i]->missed_scaled = HONE_INF;
}

/* ctx->v holds r as the device had it, and to solve for that takes no time. It
   is as good as the host's, by the host's own word: no entry is further away
   than the computation of either may have missed. So it is r from now on, with
   twice the noise, where that is nothing. */
static bool take_there(const hone_refinement *ctx,
                       const hone_certificate *certificate, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  int64_t apart = 0;
  for (int64_t i = 0; i < n; i++)
    apart += !(hone_abs(ctx->v[i] - c->r[i]) <= c->gamma * c->den[i]);
  for (int scaled = 0; scaled < 2; scaled++)
    apart += !(2.0 * noise_of(certificate, c, scaled) <= QUIET * HONE_EPS);
  if (apart > 0)
    return false;
  memcpy(c->r, ctx->v, (size_t)n * sizeof *c->r);
  c->gamma *= 2.0;
  c->now.noise *= 2.0L;
  c->now.noise_scaled *= 2.0L;
  return true;
}

void hone_bounds_estimate(hone_refinement *ctx,
                          const hone_certificate *certificate, int64_t m,
                          hone_refined *columns) {
  const int64_t n = ctx->f.a->n;
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++) {
    if (columns[c].state != HONE_COLUMN_ACCEPTED || columns[c].bounded)
      continue;
    if (m > 1 || ctx->there != columns ||
        !take_there(ctx, certificate, columns))
      memcpy(ctx->v + count * n, columns[c].r, (size_t)n * sizeof *ctx->v);
    list[count++] = &columns[c];
  }
  ctx->there = NULL;
  bool solved = count > 0 && solve_for(ctx, count, list) == HONE_OK;
  for (int64_t c = 0; solved && c < count; c++)
    hone_bounds_take(ctx, list[c], ctx->v + c * n, NULL);
  hear_noise(ctx, certificate, m, columns);
}

double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *c, bool scaled) {
  const long double relative =
      scaled ? c->now.relative_scaled : c->now.relative;
  double bound =
      (double)(relative > 0.0L ? inverse_norm(certificate, scaled) * relative
                               : relative);
  bound += noise_of(certificate, c, scaled);
  if (!certificate->nonsingular)
    return HONE_INF;
  const double error = scaled ? c->error_scaled : c->error;
  const double known =
      c->bounded ? ERROR_FACTOR * error + unknown(certificate, c, scaled)
                 : HONE_NAN;
  bound = known <= bound ? known : bound; /* not NaN */
  bound += HONE_EPS;                      /* x was rounded */
  return bound <= DBL_MAX ? bound : HONE_INF;
}

bool hone_bounds_certain(const hone_certificate *certificate,
                         const hone_refined *c) {
  return hone_bounds_digits(hone_bounds_forward(certificate, c, false)) > 0 &&
         hone_bounds_digits(hone_bounds_forward(certificate, c, true)) > 0;
}

int32_t hone_bounds_digits(double bound) {
  if (!(bound < 1.0))
    return 0;
  return (int32_t)HONE_MAX(0.0, HONE_MIN(floor(-log10(bound)), 16.0));
}
