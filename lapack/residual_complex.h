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

/* Returns |re + i im| without care for overflow and underflow of squares: such
   a row has a denominator out of range, or one that is too small. */
HONE_INLINE double quick_abs(double re, double im) {
  return sqrt(__builtin_fma(re, re, im * im));
}

/* -x, and |x|. */
typedef struct factor {
  double re, im, size;
} factor;

static factor factor_of(hone_entry x) {
  return (factor){-creal(x), -cimag(x), hone_abs(x)};
}

/* Subtracts a x from the sums of a row. quick is a constant. */
HONE_INLINE void subtract(const double *a, factor x, const bool quick,
                          double *hr, double *hi, double *lr, double *li,
                          double *den) {
  const double re = a[0], im = a[1];
  const double size = quick ? quick_abs(re, im) : hone_abs(CMPLX(re, im));
  hone_add_product(re, x.re, hr, lr);
  hone_add_product(-im, x.im, hr, lr);
  hone_add_product(re, x.im, hi, li);
  hone_add_product(im, x.re, hi, li);
  *den = __builtin_fma(size, x.size, *den);
}

/* Subtracts m entries of a column of A times x. */
HONE_INLINE void add_column(int64_t m, const double *restrict a, const factor x,
                            sums to, const bool quick) {
  double *restrict hr = to.hi_re, *restrict hi = to.hi_im;
  double *restrict lr = to.lo_re, *restrict li = to.lo_im;
  double *restrict den = to.den;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    double p = hr[i], q = hi[i], s = lr[i], t = li[i], d = den[i];
    subtract(a + 2 * i, x, quick, &p, &q, &s, &t, &d);
    hr[i] = p;
    hi[i] = q;
    lr[i] = s;
    li[i] = t;
    den[i] = d;
  }
}

HONE_VECTOR static void one_column(int64_t m, const double *restrict a,
                                   const hone_entry x, sums to) {
  add_column(m, a, factor_of(x), to, false);
}

HONE_VECTOR static void quick_column(int64_t m, const double *restrict a,
                                     const hone_entry x, sums to) {
  add_column(m, a, factor_of(x), to, true);
}

/* Does as quick_column for four columns, which lie lda numbers apart. The sums
   of a row stay in registers meanwhile, and get the same bits. They are written
   out: as a loop over an array of columns this took four times as long. */
HONE_VECTOR static void quick_four(int64_t m, const double *restrict a,
                                   int64_t lda, const hone_entry *x, sums to) {
  const factor x0 = factor_of(x[0]), x1 = factor_of(x[1]);
  const factor x2 = factor_of(x[2]), x3 = factor_of(x[3]);
  const double *restrict a1 = a + lda, *restrict a2 = a + 2 * lda;
  const double *restrict a3 = a + 3 * lda;
  double *restrict hr = to.hi_re, *restrict hi = to.hi_im;
  double *restrict lr = to.lo_re, *restrict li = to.lo_im;
  double *restrict den = to.den;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    double p = hr[i], q = hi[i], s = lr[i], t = li[i], d = den[i];
    subtract(a + 2 * i, x0, true, &p, &q, &s, &t, &d);
    subtract(a1 + 2 * i, x1, true, &p, &q, &s, &t, &d);
    subtract(a2 + 2 * i, x2, true, &p, &q, &s, &t, &d);
    subtract(a3 + 2 * i, x3, true, &p, &q, &s, &t, &d);
    hr[i] = p;
    hi[i] = q;
    lr[i] = s;
    li[i] = t;
    den[i] = d;
  }
}

static void subtract_rows(const hone_lapack_group *g, int64_t k, int64_t from,
                          int64_t m, int64_t j, int64_t w, const hone_entry *a,
                          int64_t lda) {
  const hone_entry *x = g->x + j + k * g->n;
  const sums to = sums_of(g, k, from);
  if (g->quick && w == 4) {
    quick_four(m, (const double *)a, 2 * lda, x, to);
    return;
  }
  for (int64_t c = 0; c < w; c++)
    (g->quick ? quick_column : one_column)(m, (const double *)(a + c * lda),
                                           x[c], to);
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

/* Subtracts the product of m entries, at a, or of their conjugates, with rows
   from .. from+m-1 of x from the sums of row j. */
static void subtract_dot(const hone_lapack_group *g, int64_t k, int64_t j,
                         int64_t from, int64_t m, const hone_entry *a,
                         bool conjugate) {
  const double s = conjugate ? 1.0 : -1.0;
  const int64_t whole = m / LANES * LANES, rest = m - whole;
  const hone_entry *x = g->x + from + k * g->n;
  const sums to = sums_of(g, k, j);
  double part[5][LANES] = {{0.0}};
  hone_entry rest_a[LANES] = {0.0}, rest_x[LANES] = {0.0};
  const sums parts = {part[0], part[1], part[2], part[3], part[4]};
  lanes(whole, (const double *)a, (const double *)x, s, parts);
  memcpy(rest_a, a + whole, (size_t)rest * sizeof *rest_a);
  memcpy(rest_x, x + whole, (size_t)rest * sizeof *rest_x);
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
