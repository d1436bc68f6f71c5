/* SPDX-License-Identifier: BSD-3-Clause */
/* The expensive parts of the reference: two factorizations, residuals in three
   words, and the backward error of any x. */
#include "tests/gallery/reference_parts.h"

#include "base/lapack.h"
#include "tests/gallery/reference.h"
#include "tests/gallery/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad; /* holds products of doubles exactly */
#else
typedef long double quad;
#endif

/* ---- LU in double ---- */

static bool factor_double(reference_factors *f) {
  const int n = (int)f->n;
  int info = 0;
  /* f->col has room for the row exchanges. */
  dgetrf_(&n, &n, f->high, &n, f->col, &info);
  for (int k = 0; k < n; k++)
    f->row[k] = k;
  for (int k = 0; k < n; k++) {
    int other = f->col[k] - 1, swap = f->row[k];
    f->row[k] = f->row[other];
    f->row[other] = swap;
  }
  for (int k = 0; k < n; k++)
    f->col[k] = k;
  return info == 0;
}

/* ---- LU in double-double, complete pivoting ---- */

/* (h, l) -= (ah, al) (bh, bl) for len entries of h, l, ah and al. */
WIDE_LOOP static void subtract(int64_t len, double *restrict h,
                               double *restrict l, const double *restrict ah,
                               const double *restrict al, double bh,
                               double bl) {
  for (int64_t i = 0; i < len; i++)
    wide_subtract_product(&h[i], &l[i], ah[i], al[i], bh, bl);
}

WIDE_LOOP static double largest(int64_t len, const double *v) {
  enum { LANES = 8 };
  double max[LANES] = {0.0};
  int64_t i = 0;
  for (; i + LANES <= len; i += LANES)
    for (int k = 0; k < LANES; k++) {
      double w = __builtin_fabs(v[i + k]);
      max[k] = w > max[k] ? w : max[k];
    }
  for (; i < len; i++)
    max[0] = __builtin_fabs(v[i]) > max[0] ? __builtin_fabs(v[i]) : max[0];
  for (int k = 1; k < LANES; k++)
    max[0] = max[k] > max[0] ? max[k] : max[0];
  return max[0];
}

static void swap_doubles(double *a, double *b) {
  double old = *a;
  *a = *b;
  *b = old;
}

static void swap_ints(int *a, int *b) {
  int old = *a;
  *a = *b;
  *b = old;
}

/* Exchanges rows and columns so that the largest entry from row and column k on
   comes to (k, k). */
static double bring_pivot(reference_factors *f, int64_t k) {
  const int64_t n = f->n;
  double max = -1.0;
  int64_t row = k, col = k;
  for (int64_t j = k; j < n; j++) {
    double m = largest(n - k, f->high + k + j * n);
    if (m > max) {
      max = m;
      col = j;
    }
  }
  while (row < n - 1 && fabs(f->high[row + col * n]) < max)
    row++;
  for (int64_t i = 0; i < n && col != k; i++) {
    swap_doubles(&f->high[i + k * n], &f->high[i + col * n]);
    swap_doubles(&f->low[i + k * n], &f->low[i + col * n]);
  }
  for (int64_t j = 0; j < n && row != k; j++) {
    swap_doubles(&f->high[k + j * n], &f->high[row + j * n]);
    swap_doubles(&f->low[k + j * n], &f->low[row + j * n]);
  }
  swap_ints(&f->row[k], &f->row[row]);
  swap_ints(&f->col[k], &f->col[col]);
  return max;
}

static bool factor_wide(reference_factors *f) {
  const int64_t n = f->n;
  double least = 0.0;
  for (int k = 0; k < (int)n; k++)
    f->row[k] = f->col[k] = k;
  for (int64_t k = 0; k < n; k++) {
    const double pivot = bring_pivot(f, k);
    least = k == 0 ? (double)n * 0x1p-101 * pivot : least;
    if (!(pivot > least) || !(pivot <= DBL_MAX))
      return false;
    double *h = f->high + k * n, *l = f->low + k * n;
    for (int64_t i = k + 1; i < n; i++)
      wide_divide(h[i], l[i], h[k], l[k], &h[i], &l[i]);
    for (int64_t j = k + 1; j < n; j++) {
      double *hj = f->high + j * n, *lj = f->low + j * n;
      subtract(n - k - 1, hj + k + 1, lj + k + 1, h + k + 1, l + k + 1, hj[k],
               lj[k]);
    }
  }
  return true;
}

bool reference_factor(reference_factors *f) {
  return f->wide ? factor_wide(f) : factor_double(f);
}

/* ---- Solving with the factors ---- */

static void apply_wide(const reference_factors *f, double *xh, double *xl,
                       double *vh, double *vl) {
  const int64_t n = f->n;
  for (int64_t k = 0; k < n; k++) {
    vh[k] = xh[f->row[k]];
    vl[k] = xl[f->row[k]];
  }
  for (int64_t k = 0; k < n; k++)
    subtract(n - k - 1, vh + k + 1, vl + k + 1, f->high + k + 1 + k * n,
             f->low + k + 1 + k * n, vh[k], vl[k]);
  for (int64_t k = n - 1; k >= 0; k--) {
    const double *h = f->high + k * n, *l = f->low + k * n;
    wide_divide(vh[k], vl[k], h[k], l[k], &vh[k], &vl[k]);
    subtract(k, vh, vl, h, l, vh[k], vl[k]);
  }
  for (int64_t k = 0; k < n; k++) {
    xh[f->col[k]] = vh[k];
    xl[f->col[k]] = vl[k];
  }
}

void reference_apply_double(const reference_factors *f, bool trans, double *x,
                            double *scratch) {
  const int n = (int)f->n, one = 1;
  const int *in = trans ? f->col : f->row, *out = trans ? f->row : f->col;
  const char *op = trans ? "T" : "N";
  for (int k = 0; k < n; k++)
    scratch[k] = x[in[k]];
  dtrsv_(trans ? "U" : "L", op, trans ? "N" : "U", &n, f->high, &n, scratch,
         &one);
  dtrsv_(trans ? "L" : "U", op, trans ? "U" : "N", &n, f->high, &n, scratch,
         &one);
  for (int k = 0; k < n; k++)
    x[out[k]] = scratch[k];
}

void reference_apply(const reference_factors *f, double *xh, double *xl,
                     double *scratch) {
  if (f->wide)
    apply_wide(f, xh, xl, scratch, scratch + f->n);
  else
    reference_apply_double(f, false, xh, scratch);
}

/* ---- Passes ---- */

/* One column: r -= a (xh + xl). */
WIDE_LOOP static void column(int64_t n, const double *restrict a, double xh,
                             double xl, double *restrict r0,
                             double *restrict r1, double *restrict r2) {
  for (int64_t i = 0; i < n; i++) {
    double s = r0[i], c = r1[i], d = r2[i], p, e, q, f, g;
    wide_product(-a[i], xh, &p, &e);
    wide_product(-a[i], xl, &q, &g);
    wide_add_three(&s, &c, &d, p);
    wide_sum(c, e, &c, &f);
    d += f + g;
    wide_sum(c, q, &c, &f);
    r0[i] = s;
    r1[i] = c;
    r2[i] = d + f;
  }
}

void reference_residual(int64_t n, const double *a, int64_t lda,
                        const double *xh, const double *xl, double *r0,
                        double *r1, double *r2) {
  for (int64_t j = 0; j < n; j++)
    column(n, a + j * lda, xh[j], xl[j], r0, r1, r2);
}

/* r -= a x in twice double precision; den += |a x|. */
WIDE_LOOP static void measure(int64_t n, const double *restrict a, double x,
                              double *restrict r0, double *restrict r1,
                              double *restrict den) {
  const double size = __builtin_fabs(x);
  for (int64_t i = 0; i < n; i++) {
    double p, e, f;
    wide_product(-a[i], x, &p, &e);
    wide_sum(r0[i], p, &r0[i], &f);
    r1[i] += e + f;
    den[i] += __builtin_fabs(a[i]) * size;
  }
}

/* Computes that quotient for one row whose products leave the range of
   double. */
static double row_in_quad(int64_t n, const double *a, int64_t lda,
                          const double *x, double b) {
  quad r = (quad)b, den = r < 0 ? -r : r;
  for (int64_t j = 0; j < n; j++) {
    quad p = (quad)a[j * lda] * (quad)x[j];
    r -= p;
    den += p < 0 ? -p : p;
  }
  r = r < 0 ? -r : r;
  return den > 0 ? (double)(r / den) : 0.0;
}

double reference_omega(int64_t n, const double *a, int64_t lda, const double *x,
                       const double *b) {
  const double low = 0x1p-800, high = 0x1p1000;
  double *r0 = malloc(3 * (size_t)n * sizeof *r0), *r1 = r0 + n, *den = r1 + n;
  double omega = 0.0;
  if (r0 == NULL)
    abort();
  for (int64_t i = 0; i < n; i++) {
    r0[i] = b[i];
    r1[i] = 0.0;
    den[i] = fabs(b[i]);
    omega = isfinite(x[i]) ? omega : (double)NAN;
  }
  for (int64_t j = 0; j < n && !isnan(omega); j++)
    measure(n, a + j * lda, x[j], r0, r1, den);
  for (int64_t i = 0; i < n && !isnan(omega); i++) {
    double q = den[i] >= low && den[i] <= high
                   ? fabs(r0[i] + r1[i]) / den[i]
                   : row_in_quad(n, a + i, lda, x, b[i]);
    omega = q <= omega ? omega : q;
  }
  free(r0);
  return omega;
}
