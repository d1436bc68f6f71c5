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
      s.f[i + j * s.ld] = (float)(4.0 * sup_uniform(rng) / (double)n);
    s.f[j + j * s.ld] = (float)(1.5 + sup_uniform(rng));
    s.pivot[j] = (int)(j + (int64_t)(sup_next(rng) % (uint64_t)(n - j))) + base;
  }
  return s;
}

void pf_discard(pf_sample *s) {
  free(s->f);
  free(s->pivot);
}

/* Applies one triangle of F, or of its transpose, by definition. */
static void plain_triangle(const pf_sample *s, bool lower, bool trans,
                           bool unit, long double *v) {
  const bool down = lower != trans;
  for (int64_t k = 0; k < s->n; k++) {
    const int64_t i = down ? k : s->n - 1 - k;
    const int64_t from = down ? 0 : i + 1, to = down ? i : s->n;
    for (int64_t j = from; j < to; j++)
      v[i] -= (long double)(trans ? s->f[j + i * s->ld] : s->f[i + j * s->ld]) *
              v[j];
    if (!unit)
      v[i] /= (long double)s->f[i + i * s->ld];
  }
}

static void plain_exchange(const pf_sample *s, int base, bool backwards,
                           long double *v) {
  for (int64_t q = 0; q < s->n; q++) {
    const int64_t k = backwards ? s->n - 1 - q : q;
    long double t = v[k];
    v[k] = v[s->pivot[k] - base];
    v[s->pivot[k] - base] = t;
  }
}

void pf_solve(const pf_sample *s, hone_form form, int base, bool trans,
              long double *v) {
  if (form == HONE_FORM_CHOLESKY) {
    plain_triangle(s, true, false, false, v);
    plain_triangle(s, true, true, false, v);
    return;
  }
  const bool rows = form == HONE_FORM_LU;
  if (rows != trans)
    plain_exchange(s, base, false, v);
  plain_triangle(s, !trans, trans, rows == !trans, v);
  plain_triangle(s, trans, trans, rows == trans, v);
  if (rows == trans)
    plain_exchange(s, base, true, v);
}
