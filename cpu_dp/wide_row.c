/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the residual whose products leave the range of double, or leave no
   room below them for the low parts of double-double: in long double, which
   has the range, and in pairs of them, for one has 64 bits and the bounds
   count on 106. */
#include "refine/refine.h"

#include <math.h>
#include <string.h>

/* The leading 26 bits of v. */
static double leading(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits &= ~(uint64_t)0 << 27;
  memcpy(&v, &bits, sizeof bits);
  return v;
}

/* sum + rest = sum + rest + v, exactly but for the rounding of rest. */
static void add(long double v, long double *sum, long double *rest) {
  const long double s = *sum + v, of_v = s - *sum;
  *rest += (*sum - (s - of_v)) + (v - of_v);
  *sum = s;
}

/* sum + rest - a x, by products that are exact. */
static void subtract(double a, double x, long double *sum, long double *rest) {
  const double a1 = leading(a), a2 = a - a1, x1 = leading(x), x2 = x - x1;
  add(-(long double)a1 * (long double)x1, sum, rest);
  add(-(long double)a1 * (long double)x2, sum, rest);
  add(-(long double)a2 * (long double)x1, sum, rest);
  add(-(long double)a2 * (long double)x2, sum, rest);
}

double hone_wide_row(const hone_matrix *a, bool trans, int64_t i,
                     hone_refined *c) {
  long double r = (long double)c->b[i], rest = 0.0L, den = fabsl(r);
  const double *at = trans ? a->a + i * a->lda : a->a + i;
  const int64_t step = trans ? 1 : a->lda;
  for (int64_t j = 0; j < a->n; j++) {
    const double entry = at[j * step], x = c->x[j];
    const long double product = (long double)entry * (long double)x;
    if (c->lost) /* all rows: it need not be slow */
      r -= product;
    else
      subtract(entry, x, &r, &rest);
    den += fabsl(product);
  }
  r += rest;
  c->r[i] = (double)ldexpl(r, c->shift);
  return den > 0.0L ? (double)(fabsl(r) / den) : 0.0;
}
