/* SPDX-License-Identifier: BSD-3-Clause */
/* The contraction of factors, measured with random errors w, in double
   precision:

     left = ||w - inv(M) S w|| / ||w||,   S = R A C

   The contraction along one vector, which condition.c measures, may be small by
   accident. Next to read: bounds.c, which uses the contraction. */
#include "refine/condition.h"

#include <math.h>

/* For a random vector w and every row g of a matrix G, |g^T w| is at least
   ||g||_2 / 4 except for one w in five, and ||g||_2 is sqrt(n) times what g
   does to most other vectors. */
static const double PROBE_FACTOR = 4.0;

/* *left = ||w - inv(M) S w|| / ||w|| in the infinity norm (S^T if trans), for a
   random w with full mantissas. */
static int measure_contraction(const hone_factored *f, bool trans,
                               hone_entry *scratch, double *left) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  hone_entry *w = scratch, *x = w + n, *b = x + n, *r = b + n;
  double *den = (double *)(r + n);
  double most = 0.0, size = 0.0;
  uint64_t seed = 1 + trans;
  for (int64_t i = 0; i < n; i++) {
    w[i] = 0.5 + (double)(hone_random_bits(&seed) >> 11) * 0x1p-54;
    w[i] = hone_random_bits(&seed) >> 63 ? -w[i] : w[i];
    x[i] = w[i];
    if (s->used)
      x[i] = hone_shift_entry(w[i], trans ? s->row_exp[i] : s->col_exp[i]);
    b[i] = 0.0;
  }
  hone_residual(f, trans, x, b, r, den); /* r = -S w */
  for (int64_t i = 0; s->used && i < n; i++)
    r[i] = hone_shift_entry(r[i], trans ? s->col_exp[i] : s->row_exp[i]);
  int st = hone_apply_inverse(f, true, trans, 1, r, n, NULL, NULL);
  for (int64_t i = 0; i < n; i++) {
    const double rest = hone_abs(w[i] + r[i]);
    most = rest <= most ? most : rest; /* takes NaN */
    size = fmax(size, hone_abs(w[i]));
  }
  *left = most / size;
  return st;
}

int hone_certify_contraction(const hone_factored *f, hone_entry *scratch,
                             hone_certificate *out) {
  for (int trans = 0; trans < 2; trans++) {
    double left = HONE_NAN;
    int st = measure_contraction(f, trans, scratch, &left);
    if (st != HONE_OK)
      return st;
    out->passes++;
    left *= PROBE_FACTOR;
    if (!(left <= out->contraction)) /* takes NaN */
      out->contraction = left;
  }
  out->predicted_contraction =
      0.0; /* the measurement replaces the prediction */
  return HONE_OK;
}
