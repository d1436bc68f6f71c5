/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of residual.c that sums products of complex numbers. While sums are
   made, the real parts of a column of r stand in the first half of its memory
   and the imaginary parts in the second, and likewise those of low: one vector
   instruction then treats as many rows as for a real A. */
#ifndef HONE_LAPACK_RESIDUAL_COMPLEX_H
#define HONE_LAPACK_RESIDUAL_COMPLEX_H

#include <string.h>

/* The sums of one right-hand side, or their partial sums. */
typedef struct sums {
  double *restrict hi_re, *restrict hi_im; /* leading parts */
  double *restrict lo_re, *restrict lo_im; /* what their rounding lost */
  double *restrict den;
} sums;

static sums sums_of(const hone_lapack_group *g, int64_t k, int64_t i) {
  double *hi = (double *)(g->r + k * g->n);
  double *lo = (double *)(g->low + k * g->n);
  return (sums){hi + i, hi + g->n + i, lo + i, lo + g->n + i,
                g->den + k * g->n + i};
}

/* Subtracts m entries of A times x, of which nx is the negative. */
HONE_VECTOR static void one_column(int64_t m, const double *restrict a,
                                   const hone_entry nx, sums to) {
  const double xr = creal(nx), xi = cimag(nx), ax = hone_abs(nx);
  double *restrict hr = to.hi_re, *restrict hi = to.hi_im;
  double *restrict lr = to.lo_re, *restrict li = to.lo_im;
  double *restrict den = to.den;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    const double re = a[2 * i], im = a[2 * i + 1];
    double p = hr[i], q = hi[i], s = lr[i], t = li[i];
    hone_add_product(re, xr, &p, &s);
    hone_add_product(-im, xi, &p, &s);
    hone_add_product(re, xi, &q, &t);
    hone_add_product(im, xr, &q, &t);
    hr[i] = p;
    hi[i] = q;
    lr[i] = s;
    li[i] = t;
    den[i] = __builtin_fma(hone_abs(CMPLX(re, im)), ax, den[i]);
  }
}

static void subtract_rows(const hone_lapack_group *g, int64_t k, int64_t from,
                          int64_t m, int64_t j, int64_t w) {
  const int64_t n = g->n;
  for (int64_t c = j; c < j + w; c++)
    one_column(m, (const double *)(g->a + from + c * n), -g->x[c + k * n],
               sums_of(g, k, from));
}

enum { LANES = 16 };

/* The sums of LANES partial dot products of a and x; s is -1 for x and 1 for
   its conjugate, with which conj(b - A^H x) is summed. */
HONE_VECTOR static void lanes(int64_t n, const double *restrict a,
                              const double *restrict x, double s, sums to) {
  double *restrict hr = to.hi_re, *restrict hi = to.hi_im;
  double *restrict lr = to.lo_re, *restrict li = to.lo_im;
  double *restrict den = to.den;
  for (int64_t i = 0; i < n; i += LANES)
#pragma omp simd
    for (int k = 0; k < LANES; k++) {
      const double re = a[2 * (i + k)], im = a[2 * (i + k) + 1];
      const double xr = -x[2 * (i + k)], xi = s * x[2 * (i + k) + 1];
      hone_add_product(re, xr, &hr[k], &lr[k]);
      hone_add_product(-im, xi, &hr[k], &lr[k]);
      hone_add_product(re, xi, &hi[k], &li[k]);
      hone_add_product(im, xr, &hi[k], &li[k]);
      den[k] = __builtin_fma(hone_abs(CMPLX(re, im)), hone_abs(CMPLX(xr, xi)),
                             den[k]);
    }
}

/* Subtracts the product of column j of A, or of its conjugate, with x from the
   sums of row j. */
static void subtract_dot(const hone_lapack_group *g, int64_t k, int64_t j) {
  const double s = g->trans == 'C' ? 1.0 : -1.0;
  const int64_t n = g->n, whole = n / LANES * LANES;
  const sums to = sums_of(g, k, j);
  double part[5][LANES] = {{0.0}};
  hone_entry rest_a[LANES] = {0.0}, rest_x[LANES] = {0.0};
  const sums parts = {part[0], part[1], part[2], part[3], part[4]};
  lanes(whole, (const double *)(g->a + j * n), (const double *)(g->x + k * n),
        s, parts);
  memcpy(rest_a, g->a + j * n + whole, (size_t)(n - whole) * sizeof *rest_a);
  memcpy(rest_x, g->x + k * n + whole, (size_t)(n - whole) * sizeof *rest_x);
  lanes(LANES, (const double *)rest_a, (const double *)rest_x, s, parts);
  for (int i = 0; i < LANES; i++) {
    hone_add_product(part[0][i], 1.0, to.hi_re, to.lo_re);
    hone_add_product(part[1][i], -s, to.hi_im, to.lo_im);
    *to.lo_re += part[2][i];
    *to.lo_im += -s * part[3][i];
    *to.den += part[4][i];
  }
}

static void begin(const hone_lapack_group *g, int64_t k) {
  const sums to = sums_of(g, k, 0);
  for (int64_t i = 0; i < g->n; i++) {
    const hone_entry b = g->b[i + k * g->ldb];
    to.hi_re[i] = creal(b);
    to.hi_im[i] = cimag(b);
    to.lo_re[i] = to.lo_im[i] = 0.0;
    to.den[i] = hone_abs(b);
  }
}

/* Puts the two parts of each number together again. */
static void end(const hone_lapack_group *g, int64_t k) {
  const sums from = sums_of(g, k, 0);
  for (int64_t i = 0; i < g->n; i++) {
    from.lo_re[i] += from.hi_re[i];
    from.lo_im[i] += from.hi_im[i];
  }
  for (int64_t i = 0; i < g->n; i++)
    g->r[i + k * g->n] = CMPLX(from.lo_re[i], from.lo_im[i]);
}

#endif
