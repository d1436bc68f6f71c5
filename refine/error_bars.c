/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bars, in double where nothing is scaled and nothing leaves its range,
   in long double elsewhere. */
#include "refine/error_bars.h"

#include <float.h>

/* The factor above 1 covers the rounding errors of a sum of six terms, and
   'every', the term of every entry, what underflows. max: of |t| and of the
   bars. Returns false if a number leaves the range in which this holds, or is
   NaN. */
HONE_VECTOR static bool plain_bars(const hone_bars *s, double every,
                                   double *bars, double max[2]) {
  const hone_entry *t = s->t, *d = s->d;
  const double *rows = s->rows, f = (double)s->f, above = 1.0 + 0x1p-48;
  const double by_t = (double)s->rounding_t, by_d = (double)s->rounding_d;
  double known = 0.0, most = 0.0, bad = f * 0.0 + every * 0.0;
#pragma omp simd reduction(max : known, most) reduction(+ : bad)
  for (int64_t i = 0; i < s->n; i++) {
    const double k = hone_abs(t[i]);
    const double rest = rows[i] * f + every + by_t * k + by_d * hone_abs(d[i]);
    const double bar = above * (k + rest);
    known = k > known ? k : known;
    most = bar > most ? bar : most;
    bad += bar * 0.0;
    if (bars != NULL)
      bars[i] = bar;
  }
  max[0] = known;
  max[1] = most;
  return bad == 0.0;
}

static bool evaluate_in_double(const hone_bars *s, double *bars,
                               hone_bars_outcome *out) {
  const double every = (double)(s->all + s->lost + s->grain);
  double max[2];
  if (!plain_bars(s, every + 4.0 * DBL_TRUE_MIN, NULL, max))
    return false;
  if (bars != NULL)
    (void)plain_bars(s, every + 4.0 * DBL_TRUE_MIN, bars, max);
  out->known = out->known_scaled = (long double)max[0];
  out->total = out->total_scaled = (long double)max[1];
  return true;
}

static void evaluate_in_long_double(const hone_bars *s, double *bars,
                                    hone_bars_outcome *out) {
  const int *e = s->exponents;
  *out = (hone_bars_outcome){0.0L, 0.0L, 0.0L, 0.0L};
  for (int64_t i = 0; i < s->n; i++) {
    const long double known = hone_absl((hone_wide)s->t[i]);
    const long double weight = s->weights ? (long double)s->weights[i] : 1.0L;
    long double rest =
        weight * ((long double)s->rows[i] * s->f + s->all) + s->lost;
    long double by_itself = s->grain + s->rounding_t * known +
                            s->rounding_d * hone_absl((hone_wide)s->d[i]);
    if (s->noise)
      by_itself += (long double)s->noise[i];
    rest += e ? hone_shiftl(by_itself, -e[i]) : by_itself;
    long double scaled = known;
    if (e) {
      scaled = hone_shiftl(known, -e[i]);
      out->known_scaled = HONE_MAX(out->known_scaled, scaled);
    }
    scaled += rest;
    const long double total = known + (e ? hone_shiftl(rest, e[i]) : rest);
    out->known = HONE_MAX(out->known, known);
    out->total = hone_larger_or_nanl(out->total, total);
    out->total_scaled = hone_larger_or_nanl(out->total_scaled, scaled);
    if (bars != NULL)
      bars[i] = total <= (long double)DBL_MAX ? (double)total : HONE_INF;
  }
  if (!e)
    out->known_scaled = out->known;
}

void hone_bars_evaluate(const hone_bars *s, double *bars,
                        hone_bars_outcome *out) {
  const bool plain =
      s->exponents == NULL && s->weights == NULL && s->noise == NULL;
  if (!plain || !evaluate_in_double(s, bars, out))
    evaluate_in_long_double(s, bars, out);
}
