/* SPDX-License-Identifier: BSD-3-Clause */
/* See plain_factors.h. */
#include "tests/unit/plain_factors.h"

#include <stdlib.h>

const char *pf_name(hone_form form) {
  static const char *const name[PF_FORMS] = {[HONE_FORM_LU] = "LU",
                                             [HONE_FORM_TRANSPOSED] =
                                                 "transposed",
                                             [HONE_FORM_CHOLESKY] = "Cholesky"};
  return name[form];
}

pf_sample pf_make(sup_rng *rng, int64_t n, int base) {
  pf_sample s = {.n = n, .ld = n + 3};
  s.f = malloc((size_t)(s.ld * n) * sizeof *s.f);
  s.pivot = malloc((size_t)n * sizeof *s.pivot);
  if (s.f == NULL || s.pivot == NULL)
    abort();
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < s.ld; i++)
      s.f[i + j * s.ld] =
          (hone_single)hone_times(4.0 / (double)n, entries_uniform(rng));
    s.f[j + j * s.ld] = (hone_single)(1.5 + entries_uniform(rng));
    s.pivot[j] = (int)(j + (int64_t)(sup_next(rng) % (uint64_t)(n - j))) + base;
  }
  return s;
}

void pf_discard(pf_sample *s) {
  free(s->f);
  free(s->pivot);
}

static hone_wide conjugate(hone_wide v) {
#ifdef HONE_COMPLEX
  return conjl(v);
#else
  return v;
#endif
}

/* Applies one triangle of F, of its transpose, or of that transpose conjugated,
   by definition. */
static void plain_triangle(const pf_sample *s, bool lower, bool trans,
                           bool conjugated, bool unit, hone_wide *v) {
  const bool down = lower != trans;
  for (int64_t k = 0; k < s->n; k++) {
    const int64_t i = down ? k : s->n - 1 - k;
    const int64_t from = down ? 0 : i + 1, to = down ? i : s->n;
    for (int64_t j = from; j < to; j++) {
      const hone_wide t =
          (hone_wide)(trans ? s->f[j + i * s->ld] : s->f[i + j * s->ld]);
      v[i] -= (conjugated ? conjugate(t) : t) * v[j];
    }
    const hone_wide d = (hone_wide)s->f[i + i * s->ld];
    if (!unit)
      v[i] /= conjugated ? conjugate(d) : d;
  }
}

static void plain_exchange(const pf_sample *s, int base, bool backwards,
                           hone_wide *v) {
  for (int64_t q = 0; q < s->n; q++) {
    const int64_t k = backwards ? s->n - 1 - q : q;
    hone_wide t = v[k];
    v[k] = v[s->pivot[k] - base];
    v[s->pivot[k] - base] = t;
  }
}

void pf_solve(const pf_sample *s, hone_form form, int base, bool trans,
              hone_wide *v) {
  if (form == HONE_FORM_CHOLESKY) { /* S^T is the conjugate of S */
    for (int64_t i = 0; i < s->n && trans; i++)
      v[i] = conjugate(v[i]);
    plain_triangle(s, true, false, false, false, v);
    plain_triangle(s, true, true, true, false, v);
    for (int64_t i = 0; i < s->n && trans; i++)
      v[i] = conjugate(v[i]);
    return;
  }
  const bool rows = form == HONE_FORM_LU;
  if (rows != trans)
    plain_exchange(s, base, false, v);
  plain_triangle(s, !trans, trans, false, rows == !trans, v);
  plain_triangle(s, trans, trans, false, rows == trans, v);
  if (rows == trans)
    plain_exchange(s, base, true, v);
}
