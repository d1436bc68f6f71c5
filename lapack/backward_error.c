/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error of x, of which r and den are known (residual.c), and the
   rows of r that leave the range of double. */
#include "lapack/dropin.h"

#include "base/base.h"
#include "base/exact.h"

#include <math.h>
#include <stdlib.h>

/* Rows whose denominators are out of this range are computed again in long
   double: above it sums may overflow, below it the underflow of the products'
   low parts would count. */
static const double MOST = 0x1p1022;
static inline double least(int64_t n) { return (double)(n + 4) * 0x1p-1010; }

typedef struct wide_row {
  int64_t i;
  hone_wide r, rest;
  long double den;
} wide_row;

/* Returns entry i, j of A. */
static hone_entry entry_of(const hone_lapack_group *g, int64_t i, int64_t j) {
  if (i == j && g->diagonal != NULL)
    return g->diagonal[i];
  const bool mirrored = g->uplo == 'U' ? i > j : g->uplo == 'L' && i < j;
  const hone_entry v = mirrored ? g->a[j + i * g->lda] : g->a[i + j * g->lda];
  return mirrored && !g->symmetric ? hone_conj(v) : v;
}

/* Products that are exactly zero cost nothing: a row with denominator 0 has no
   others as a rule. */
static void subtract_wide(wide_row *row, hone_entry a, hone_entry x) {
  if (a != 0.0 && x != 0.0) {
    hone_subtract_exactly(a, x, &row->r, &row->rest);
    row->den += hone_absl((hone_wide)a * (hone_wide)x);
  }
}

static void wide_pass(const hone_lapack_group *g, const hone_entry *x,
                      int64_t count, wide_row *row) {
  const int64_t n = g->n;
  const bool trans = g->trans != 'N', conjugate = g->trans == 'C';
  for (int64_t j = 0; j < n && !trans; j++)
    for (int64_t t = 0; t < count && x[j] != 0.0; t++)
      subtract_wide(&row[t], entry_of(g, row[t].i, j), x[j]);
  for (int64_t t = 0; t < count && trans; t++)
    for (int64_t j = 0; j < n; j++) {
      const hone_entry a = entry_of(g, j, row[t].i);
      subtract_wide(&row[t], conjugate ? hone_conj(a) : a, x[j]);
    }
}

/* Returns the largest of two quotients, and NaN if one is NaN. */
static double larger(double p, double q) { return isnan(p) || p >= q ? p : q; }

/* Computes 'count' rows of column k again, which are out of range. Returns the
   largest |r_i| / den_i, or NaN without memory. */
static double wide_quotients(const hone_lapack_group *g, int64_t k,
                             int64_t count) {
  const int64_t n = g->n;
  hone_entry *r = g->r + k * n;
  double omega = 0.0;
  const double *den = g->den + k * n;
  wide_row *row = malloc((size_t)count * sizeof *row);
  if (row == NULL)
    return HONE_NAN;
  for (int64_t i = 0, t = 0; i < n; i++)
    if (!(den[i] >= least(n) && den[i] <= MOST)) {
      const hone_wide b = (hone_wide)g->b[i + k * g->ldb];
      row[t++] = (wide_row){.i = i, .r = b, .den = hone_absl(b)};
    }
  wide_pass(g, g->x + k * n, count, row);
  for (int64_t t = 0; t < count; t++) {
    const hone_wide sum = row[t].r + row[t].rest;
    r[row[t].i] = (hone_entry)sum;
    if (!(row[t].den <= 0.0L))
      omega = larger(omega, (double)(hone_absl(sum) / row[t].den));
  }
  free(row);
  return omega;
}

bool hone_lapack_in_range(const hone_lapack_group *g, int64_t k) {
  const double *den = g->den + k * g->n;
  bool good = true;
  for (int64_t i = 0; i < g->n; i++)
    good = good && den[i] >= least(g->n) && den[i] <= MOST;
  return good;
}

/* omega = max_i |r_i| / den_i of column k; NaN if x is not finite. */
double hone_lapack_backward_error(const hone_lapack_group *g, int64_t k) {
  const int64_t n = g->n;
  const hone_entry *x = g->x + k * n, *r = g->r + k * n;
  const double *den = g->den + k * n;
  double omega = 0.0;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    if (!hone_finite(x[i]))
      return HONE_NAN;
  for (int64_t i = 0; i < n; i++) {
    if (den[i] >= least(n) && den[i] <= MOST)
      omega = larger(omega, hone_abs(r[i]) / den[i]);
    else
      count++;
  }
  return count > 0 ? larger(omega, wide_quotients(g, k, count)) : omega;
}
