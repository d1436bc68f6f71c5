/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the residual whose products leave the range of double, or leave no
   room below them for the low parts of double-double: in long double, which
   has the range, and in pairs of them, for one has 64 bits and the bounds
   count on 106. */
#include "cpu_dp/pass.h"

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

void hone_dense_wide_row(hone_wide_row *row) {
  const hone_dense *a = hone_dense_of(row->a);
  long double r = (long double)row->b, rest = 0.0L, den = fabsl(r);
  const double *at = row->trans ? a->a + row->i * a->lda : a->a + row->i;
  const int64_t step = row->trans ? 1 : a->lda;
  for (int64_t j = 0; j < a->n; j++) {
    const double entry = at[j * step], x = row->x[j];
    const long double product = (long double)entry * (long double)x;
    if (row->fast)
      r -= product;
    else
      subtract(entry, x, &r, &rest);
    den += fabsl(product);
  }
  r += rest;
  row->r = (double)ldexpl(r, row->shift);
  row->quotient = den > 0.0L ? (double)(fabsl(r) / den) : 0.0;
}
