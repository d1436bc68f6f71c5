/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes r = b - A x in double-double precision, and from it the backward
   error omega of x, with an error of at most 2 n 2^-53 omega + 2^-62 for n up
   to 2^20. It is accurate enough to decide between two x, and equals what an
   independent check in higher precision finds. */
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

#ifdef HONE_COMPLEX
#include "lapack/residual_complex.h"
#else

/* Subtracts a x from the pair (*hi, *lo) and adds |a x| to *den. */
HONE_INLINE void subtract(double a, double x, double *hi, double *lo,
                          double *den) {
  hone_add_product(a, -x, hi, lo);
  *den = __builtin_fma(fabs(a), fabs(x), *den);
}

/* Subtracts m rows of four columns of A, which lie lda apart, times x. */
HONE_VECTOR static void four_columns(int64_t m, const double *restrict a,
                                     int64_t lda, const double *x,
                                     double *restrict hi, double *restrict lo,
                                     double *restrict den) {
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const double *restrict a1 = a + lda, *restrict a2 = a + 2 * lda;
  const double *restrict a3 = a + 3 * lda;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    double h = hi[i], l = lo[i], d = den[i];
    subtract(a[i], x0, &h, &l, &d);
    subtract(a1[i], x1, &h, &l, &d);
    subtract(a2[i], x2, &h, &l, &d);
    subtract(a3[i], x3, &h, &l, &d);
    hi[i] = h;
    lo[i] = l;
    den[i] = d;
  }
}

HONE_VECTOR static void one_column(int64_t m, const double *restrict a,
                                   double x, double *restrict hi,
                                   double *restrict lo, double *restrict den) {
#pragma omp simd
  for (int64_t i = 0; i < m; i++)
    subtract(a[i], x, &hi[i], &lo[i], &den[i]);
}

/* Subtracts rows from .. from+m-1 of w columns of A, j and those behind it,
   times x from the sums of right-hand side k. */
static void subtract_rows(const hone_lapack_group *g, int64_t k, int64_t from,
                          int64_t m, int64_t j, int64_t w) {
  const int64_t n = g->n, at = from + k * n;
  const double *a = g->a + from + j * n, *x = g->x + j + k * n;
  if (w == 4)
    four_columns(m, a, n, x, g->r + at, g->low + at, g->den + at);
  for (int64_t i = 0; i < w && w != 4; i++)
    one_column(m, a + i * n, x[i], g->r + at, g->low + at, g->den + at);
}

/* Subtracts the product of column j of A with x from the sums of row j, in
   partial sums. */
HONE_VECTOR static void dot(int64_t n, const double *restrict a,
                            const double *restrict x, double *hi, double *lo,
                            double *den) {
  enum { LANES = 16 };
  double h[LANES] = {0.0}, l[LANES] = {0.0}, d[LANES] = {0.0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
#pragma omp simd
    for (int k = 0; k < LANES; k++)
      subtract(a[i + k], x[i + k], &h[k], &l[k], &d[k]);
  for (; i < n; i++)
    subtract(a[i], x[i], &h[0], &l[0], &d[0]);
  for (int k = 0; k < LANES; k++) {
    hone_add_product(h[k], 1.0, hi, lo);
    *lo += l[k];
    *den += d[k];
  }
}

static void subtract_dot(const hone_lapack_group *g, int64_t k, int64_t j) {
  const int64_t n = g->n, at = j + k * n;
  dot(n, g->a + j * n, g->x + k * n, g->r + at, g->low + at, g->den + at);
}

static void begin(const hone_lapack_group *g, int64_t k) {
  for (int64_t i = 0; i < g->n; i++) {
    g->r[i + k * g->n] = g->b[i + k * g->ldb];
    g->low[i + k * g->n] = 0.0;
    g->den[i + k * g->n] = fabs(g->r[i + k * g->n]);
  }
}

static void end(const hone_lapack_group *g, int64_t k) {
  for (int64_t i = k * g->n; i < (k + 1) * g->n; i++)
    g->r[i] += g->low[i];
}

#endif

/* Computes r and den of the open columns in one pass over A. */
static void one_pass(const hone_lapack_group *g, const bool *open) {
  const int64_t n = g->n, step = 4;
  /* Sums of so many rows of one column stay in the first cache. */
  const int64_t most = 2048 / (HONE_PARTS * HONE_PARTS);
  const int64_t chunk = HONE_MAX((int64_t)256, most / g->columns);
  for (int64_t k = 0; k < g->columns; k++)
    if (open[k])
      begin(g, k);
  for (int64_t from = 0; from < n && g->trans == 'N'; from += chunk)
    for (int64_t j = 0; j < n; j += step)
      for (int64_t k = 0; k < g->columns; k++)
        if (open[k])
          subtract_rows(g, k, from, HONE_MIN(chunk, n - from), j,
                        HONE_MIN(step, n - j));
  for (int64_t j = 0; j < n && g->trans != 'N'; j++)
    for (int64_t k = 0; k < g->columns; k++)
      if (open[k])
        subtract_dot(g, k, j);
  for (int64_t k = 0; k < g->columns; k++)
    if (open[k])
      end(g, k);
}

/* Rows that leave the range of double ------------------------------------- */

typedef struct wide_row {
  int64_t i;
  hone_wide r, rest;
  long double den;
} wide_row;

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
      subtract_wide(&row[t], g->a[row[t].i + j * n], x[j]);
  for (int64_t t = 0; t < count && trans; t++)
    for (int64_t j = 0; j < n; j++) {
      const hone_entry a = g->a[j + row[t].i * n];
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

/* omega = max_i |r_i| / den_i of column k; NaN if x is not finite. */
static double backward_error(const hone_lapack_group *g, int64_t k) {
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

void hone_lapack_residual(const hone_lapack_group *g, const bool *open,
                          double *omega) {
  one_pass(g, open);
  for (int64_t k = 0; k < g->columns; k++)
    omega[k] = open[k] ? backward_error(g, k) : HONE_NAN;
}
