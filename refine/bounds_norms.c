/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals and norms for bounds.c, and the numbers that bounds come to:
   in double precision, with norms in long double. */
#include "base/vectors.h"
#include "refine/bounds.h"
#include "refine/noise.h"
#include "refine/relaxation.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { DIGITS_MOST = 16 }; /* of double precision */
/* So many columns are worth more random vectors, for cheaper residuals. */
enum { WORTH_VECTORS = 32 };
/* Noise below this part of eps is negligible beside the rounding of x. */
static const double NEGLIGIBLE_NOISE = 0.0625;

long double hone_bounds_widest_unit(const hone_refinement *ctx) {
  const int *e = hone_refined_exponents(ctx);
  int widest = 0;
  for (int64_t i = 0; e && i < ctx->f.a->n; i++)
    widest = i == 0 ? e[i] : HONE_MAX(widest, e[i]);
  return hone_shiftl(1.0L, widest);
}

double hone_bounds_inverse(const hone_certificate *certificate,
                           const hone_refined *c) {
  return (c->by_steps || c->by_many) && certificate->inverse_many > 0.0
             ? certificate->inverse_many
             : certificate->inverse_bound;
}

double hone_refined_residual_noise(const hone_refined *c, int64_t n,
                                   int64_t i) {
  return c->gamma * c->den[i] + HONE_EPS * hone_abs(c->r[i]) +
         (double)(2 * n + 2) * DBL_TRUE_MIN; /* r may have underflowed */
}

long double hone_bounds_noise_effect(const hone_certificate *certificate,
                                     const hone_refined *c) {
  return c->errors.noise <= 0.0L /* the inverse may be Inf */
             ? 0.0L
             : (long double)hone_bounds_inverse(certificate, c) *
                   c->errors.noise;
}

bool hone_bounds_noise_counts(const hone_certificate *certificate,
                              const hone_refined *c) {
  return !(HONE_NOISE_FACTOR * hone_bounds_noise_effect(certificate, c) <=
           HONE_NOISE_SMALL * c->errors.size_scaled);
}

bool hone_bounds_use_device(const hone_refinement *ctx,
                            const hone_certificate *certificate,
                            hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  int64_t violations = 0;
  const long double noise = 2.0L * hone_bounds_noise_effect(certificate, c);
  const long double negligible = (long double)(NEGLIGIBLE_NOISE * HONE_EPS);
  for (int64_t i = 0; i < n; i++)
    violations += !(hone_abs(ctx->v[i] - c->r[i]) <= c->gamma * c->den[i]);
  violations += !(noise <= negligible * c->errors.size_scaled);
  violations +=
      !(hone_bounds_widest_unit(ctx) * noise <= negligible * c->errors.size);
  if (violations > 0)
    return false;
  memcpy(c->r, ctx->v, (size_t)n * sizeof *c->r);
  c->gamma *= 2.0;
  c->errors.noise *= 2.0L;
  return true;
}

/* Columns that a plain pass accepted against a loose tolerance need a residual
   in double-double, and those whose x stayed as it was since noise was sampled
   need their denominators. */
void hone_bounds_measure(hone_refinement *ctx, int64_t m,
                         hone_refined *columns) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++)
    if (columns[c].state == HONE_COLUMN_ACCEPTED &&
        !columns[c].error_estimated &&
        (!columns[c].verified || columns[c].den_lost))
      list[count++] = &columns[c];
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, list);
}

/* All columns without a bound begin anew then: those among them whose noise was
   sampled need their denominators. */
bool hone_bounds_measure_noisy(hone_refinement *ctx, int64_t m,
                               hone_refined *const *list) {
  hone_refined *again[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  bool any = false;
  for (int64_t c = 0; c < m; c++) {
    any = any || list[c]->noisy;
    if (!list[c]->noisy || list[c]->by_steps)
      continue;
    list[c]->noisy = false;
    if (!hone_noise_by_rows(ctx, list[c]))
      return false;
  }
  for (int64_t c = 0; any && c < m; c++) {
    if (list[c]->noisy)
      list[c]->noisy = list[c]->by_steps = false;
    else if (!list[c]->den_lost || list[c]->error_estimated)
      continue;
    again[count++] = list[c];
  }
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, again);
  return any;
}

/* inv(S) = inv(I - E) inv(M), and ||inv(I - E)|| <= (1 + ||E|| + ... +
   ||E^(m-1)||) / (1 - ||E^m||); with relaxed powers, the first E is omega E. */
void hone_bounds_for_many(hone_refinement *ctx, hone_certificate *certificate) {
  const hone_contraction *contraction = &certificate->contraction[false];
  const int64_t n = ctx->f.a->n;
  hone_entry *z = ctx->scratch;
  hone_factored f = ctx->f;
  uint64_t seed = ctx->many_seed;
  uint64_t rounding_seed = ~seed; /* another sequence */
  certificate->inverse_many = certificate->inverse_bound;
  if (contraction->power == 0)
    return;
  f.rounding_seed = &rounding_seed;
  for (int p = 0; p < HONE_PROBES; p++)
    hone_probe_draw(n, &seed, z + p * n);
  if (hone_apply_inverse(&f, true, false, HONE_PROBES, z, n, NULL, NULL) !=
      HONE_OK)
    return;
  const double factors =
      hone_probe_factor(1.0) * sqrt(hone_sum_of_squares(HONE_PROBES * n, z));
  const double bound =
      factors * (1.0 + contraction->before) / (1.0 - contraction->bound);
  if (factors <= DBL_MAX)
    certificate->factors_many = factors;
  if (bound < certificate->inverse_bound)
    certificate->inverse_many = bound;
}

/* Bounds what the norm of an error in a residual grows by, by that of inv(M): a
   correction is followed by powers of E. */
static long double spread_of_factors(hone_refinement *ctx,
                                     hone_certificate *certificate) {
  if (!(certificate->inverse_many > 0.0))
    hone_bounds_for_many(ctx, certificate);
  return certificate->factors_many > 0.0
             ? hone_relaxation_sum(&certificate->contraction[ctx->trans]) *
                   (long double)certificate->factors_many
             : (long double)HONE_INF;
}

/* Few columns are not worth random vectors, not even those that another solve
   has drawn: bounds do not depend on what was solved for before. Deflated
   factors of S^T are not the transpose of those of S. */
bool hone_bounds_allow(hone_refinement *ctx, hone_certificate *certificate,
                       int64_t m, const hone_refined *const *columns,
                       hone_residual_block *block, long double *effect) {
  const bool serves = m >= WORTH_VECTORS && !ctx->f.scaling->used &&
                      !(ctx->trans && ctx->f.deflation != NULL);
  long double most = (long double)HONE_INF;
  block->plain = hone_noise_of_products(ctx, false, m, columns, most, effect);
  if (!block->plain && serves) {
    most = spread_of_factors(ctx, certificate);
    block->plain = hone_noise_of_products(ctx, false, m, columns, most, effect);
  }
  block->rough = !block->plain &&
                 hone_noise_of_products(ctx, true, m, columns, most, effect);
  return block->plain || block->rough;
}

/* Bounds the error by norms: ||inv(S)|| (||r|| + noise), in scaled variables.
 */
static long double error_by_norms(const hone_certificate *certificate,
                                  const hone_refined *c) {
  const long double r = c->errors.residual_norm + c->errors.noise;
  return r > 0.0L ? (long double)certificate->inverse_bound * r : r;
}

void hone_bounds_bars_by_norms(int64_t n, const int *e,
                               const hone_certificate *certificate,
                               const hone_refined *c, double *bars) {
  const bool exact = c->x_is_zero && !(c->errors.residual_norm > 0.0L);
  const long double error = exact ? 0.0L : error_by_norms(certificate, c);
  for (int64_t i = 0; i < n; i++) {
    const long double bar =
        exact ? 0.0L
              : (e ? hone_shiftl(error, e[i]) : error) + HONE_BOUNDS_GRAIN;
    bars[i] = bar <= (long double)DBL_MAX ? (double)bar : HONE_INF;
  }
}

double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *c, bool scaled) {
  const long double error = error_by_norms(certificate, c);
  const long double size = scaled ? c->errors.size_scaled : c->errors.size;
  long double relative =
      (scaled ? error : c->errors.widest_unit * error) / size;
  if (c->x_is_zero)
    relative = c->errors.residual_norm > 0.0L ? (long double)HONE_INF : 0.0L;
  double bound = (double)relative;
  if (!certificate->nonsingular)
    return HONE_INF;
  const double known = scaled ? c->error_scaled : c->error;
  if (c->error_estimated && !(bound <= known))
    bound = known;
  bound += HONE_EPS; /* a reference would be rounded, too */
  return bound <= DBL_MAX ? bound : HONE_INF;
}

bool hone_bounds_certify_a_digit(const hone_certificate *certificate,
                                 const hone_refined *c) {
  return hone_bounds_digits(hone_bounds_forward(certificate, c, false)) > 0 &&
         hone_bounds_digits(hone_bounds_forward(certificate, c, true)) > 0;
}

int32_t hone_bounds_digits(double bound) {
  static const double least[DIGITS_MOST] = {
      1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,
      1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16};
  enum { USUAL = 12 }; /* or more: where most bounds begin to be compared */
  int32_t digits = bound <= least[USUAL - 1] ? USUAL : 0;
  while (digits < DIGITS_MOST && bound <= least[digits])
    digits++;
  return digits;
}
