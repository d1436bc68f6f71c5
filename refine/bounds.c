/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward error bounds. With e = x - x_true, r = b - A x and M the factors,

     -e = inv(A) r = d + G (-e),   d = inv(M) r,   G = I - inv(M) A
     ||e|| <= ||d|| / (1 - ||G||)

   d is the correction that was not made any more: it has the size and the
   direction of the error, where ||inv(A)|| ||r|| is its size for the worst of
   all residuals. r is that of the very x returned, rounding included. What G
   does where it does most was measured when the factors were certified: the
   vector tried there is the one that inv(M) magnifies most. Rounding r and
   the solve to single precision are of the size of G, and in it.

   What remains is noise, the part of r that its computation missed: at most
   gamma (|A| |x| + |b|) in any direction. The norm of the inverse bounds its
   effect, with badly scaled matrices by far too much: where it would count,
   the solution for noise of this size and random signs is taken instead. */
#include "refine/bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* An estimate of ||inv(A)|| is a lower bound that is rarely off by more than
   3 (Higham 2002, section 15.3); the measured contraction is one too. */
static const double NORM_FACTOR = 3.0, ERROR_FACTOR = 2.0, NOISE_FACTOR = 4.0;
/* Factors that contract less than this say too little of the error. */
static const double CONTRACTION_LIMIT = 0.75;
/* What contracts in scaled variables may not, entry by entry, in units that
   differ by powers of ten: there bounds without this factor were below the
   error by up to 15 (10,000 systems on an H200). */
static const double UNITS_FACTOR = 64.0;
/* What was seen of one error's course is taken for no better than this. */
static const double OBSERVED_LEAST = 0.5;

double hone_refined_missed(const hone_refined *c, int64_t n, int64_t i) {
  /* r = 0: nothing was rounded, but it may have vanished */
  return (c->r[i] != 0.0 ? c->gamma * c->den[i] : 0.0) +
         (double)(2 * n + 2) * 0x1p-1074;
}

/* Of 2^-e x, which may lie beyond the range of double. */
static long double max_scaled(int64_t n, const double *x, const int *e) {
  long double max = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    long double v = fabsl((long double)x[i]);
    v = e ? ldexpl(v, -e[i]) : v;
    max = v <= max ? max : v; /* takes NaN */
  }
  return max;
}

void hone_bounds_relate(const hone_refinement *ctx, const hone_refined *c,
                        const double *d, double *plain, double *scaled) {
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
  *plain =
      (double)((max_scaled(n, d, NULL) + lost) / max_scaled(n, c->x, NULL));
  *scaled = e ? (double)(max_scaled(n, d, e) / max_scaled(n, c->x, e)) : *plain;
}

void hone_bounds_take(const hone_refinement *ctx, hone_refined *c,
                      const double *d) {
  c->bounded = true;
  c->direct = !ctx->observe;
  c->units = ctx->units;
  c->heard = false;
  c->missed = c->missed_scaled = HONE_INF;
  c->error = c->error_scaled = 0.0;
  if (!c->zero) /* else b = 0, x is exact */
    hone_bounds_relate(ctx, c, d, &c->error, &c->error_scaled);
}

static long double inverse_norm(const hone_certificate *certificate,
                                bool scaled) {
  return (long double)NORM_FACTOR *
         (scaled ? (long double)certificate->inverse_norm_scaled
                 : certificate->inverse_norm) /
         (1.0L - (long double)certificate->defect);
}

/* How much of an error a correction leaves; NaN: too much for solutions to say
   how large an error is, or not known. Where the certificate does not know it,
   two corrections must have shown it. */
static double contraction_of(const hone_certificate *certificate,
                             const hone_refined *c) {
  double contraction = certificate->contraction;
  if (!c->direct) /* observed may be NaN */
    contraction = c->observed <= OBSERVED_LEAST ? OBSERVED_LEAST : c->observed;
  const bool known = c->bounded && !c->lost; /* r may have vanished in part */
  return known && contraction <= CONTRACTION_LIMIT ? contraction : HONE_NAN;
}

static double noise_of(const hone_certificate *certificate,
                       const hone_refined *c, bool scaled) {
  const double missed = scaled ? c->missed_scaled : c->missed;
  const long double noise = scaled ? c->now.noise_scaled : c->now.noise;
  const double bound =
      noise > 0.0L ? (double)(inverse_norm(certificate, scaled) * noise) : 0.0;
  return contraction_of(certificate, c) <= 1.0 && missed <= bound ? missed
                                                                  : bound;
}

static bool counts(const hone_certificate *certificate, const hone_refined *c) {
  return !(noise_of(certificate, c, false) <= c->error + HONE_EPS) ||
         !(noise_of(certificate, c, true) <= c->error_scaled + HONE_EPS);
}

/* v = inv(M) v for the columns listed. */
static int solve_for(hone_refinement *ctx, int64_t m,
                     hone_refined *const *list) {
  int shift[HONE_SOLVE_COLUMNS];
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++)
    shift[c] = list[c]->shift;
  int st = hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v,
                              ctx->f.a->n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    list[c]->solved = size[c];
  return st;
}

/* Columns whose noise counts: what does it come to? */
static void hear_noise(hone_refinement *ctx,
                       const hone_certificate *certificate, int64_t m,
                       hone_refined *columns) {
  const int64_t n = ctx->f.a->n;
  hone_refined *loud[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = &columns[i];
    double *v = ctx->v + count * n;
    uint32_t bits = 1;
    if (!c->bounded || c->heard)
      continue;
    c->heard = true;
    if (!counts(certificate, c))
      continue;
    loud[count++] = c;
    for (int64_t j = 0; j < n; j++) {
      bits = bits * 1664525u + 1013904223u;
      v[j] = (bits >> 31 ? -1.0 : 1.0) * hone_refined_missed(c, n, j);
    }
  }
  if (count == 0 || solve_for(ctx, count, loud) != HONE_OK)
    return;
  for (int64_t i = 0; i < count; i++) {
    hone_bounds_relate(ctx, loud[i], ctx->v + i * n, &loud[i]->missed,
                       &loud[i]->missed_scaled);
    loud[i]->missed *= NOISE_FACTOR;
    loud[i]->missed_scaled *= NOISE_FACTOR;
  }
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
    memcpy(ctx->v + count * n, columns[c].r, (size_t)n * sizeof *ctx->v);
    list[count++] = &columns[c];
  }
  bool solved = count > 0 && solve_for(ctx, count, list) == HONE_OK;
  for (int64_t c = 0; solved && c < count; c++)
    hone_bounds_take(ctx, list[c], ctx->v + c * n);
  hear_noise(ctx, certificate, m, columns);
}

bool hone_bounds_known(const hone_certificate *certificate) {
  return certificate->contraction <= CONTRACTION_LIMIT;
}

double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *c, bool scaled) {
  const long double relative =
      scaled ? c->now.relative_scaled : c->now.relative;
  double bound =
      (double)(relative > 0.0L ? inverse_norm(certificate, scaled) * relative
                               : relative);
  if (!certificate->nonsingular)
    return HONE_INF;
  const double error = scaled ? c->error_scaled : c->error;
  const double factor =
      ERROR_FACTOR * (c->units && !scaled ? UNITS_FACTOR : 1.0);
  const double direct = factor * error / (1.0 - contraction_of(certificate, c));
  bound = direct <= bound ? direct : bound; /* not NaN */
  bound += noise_of(certificate, c, scaled);
  bound += (c->units && !scaled ? 4.0 : 1.0) * HONE_EPS; /* x was rounded */
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
