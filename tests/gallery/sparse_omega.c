/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error of Arioli, Demmel & Duff (1989) for columns with entries
   near zero, in quadruple precision, as docs/numerics.md, "Refine and accept",
   defines it; complex ones in moduli. Read reference.h and either.h first. */
#include "tests/gallery/either.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide;
#else
typedef long double wide;
#endif

enum {
  SWEEPS = 12,
  /* The library's scaling may differ by this, for example after an update. */
  SCALING_SLACK = 64
};
#define EPS 0x1p-53
/* The library sums denominators in double. */
#define ROUNDING_SLACK (1 + (wide)0x1p-40)
/* A product below the range of double is nothing to it. */
#define UNDERFLOW (wide)0x1p-1074

/* n x n numbers of one or two parts. */
typedef struct matrix {
  int parts;
  int64_t n, lda;
  const double *a;
} matrix;

static const double *at(const matrix *m, int64_t i, int64_t j) {
  return m->a + (i + j * m->lda) * m->parts;
}

/* Exact for one part. */
static wide size_of(int parts, wide re, wide im) {
  if (parts == 2)
    return (wide)hypotl((long double)re, (long double)im);
  return re < 0 ? -re : re;
}

static wide size_at(int parts, const double *v) {
  return size_of(parts, (wide)v[0], (wide)v[parts - 1]);
}

/* The exponent of the largest |2^(row_i + col_j) a_ij| of row (or column) k. */
static int exponent(const matrix *m, const int *row, const int *col, int64_t k,
                    bool of_row) {
  int max = INT_MIN;
  for (int64_t l = 0; l < m->n; l++) {
    const int64_t i = of_row ? k : l, j = of_row ? l : k;
    const long double size = (long double)size_at(m->parts, at(m, i, j));
    if (size > 0.0L && ilogbl(size) + row[i] + col[j] > max)
      max = ilogbl(size) + row[i] + col[j];
  }
  return max > INT_MIN ? max : 0;
}

/* Half of the exponent, rounded down, that brings numbers of this exponent into
   [1/2, 1). */
static int half_step(int of) {
  const int e = of + 1;
  return -(e >= 0 ? e / 2 : (e - 1) / 2);
}

/* Scales as docs/numerics.md, "Inspect and scale", says. The scaling is not
   unique, so that another one would not do. */
static void find_scaling(const matrix *m, int *row, int *col, int *step) {
  const int64_t n = m->n;
  for (int64_t k = 0; k < 2 * n; k++)
    row[k] = 0; /* and col */
  for (int sweep = 0, range = INT_MAX; sweep < SWEEPS; sweep++) {
    int low = INT_MAX, high = INT_MIN;
    for (int64_t k = 0; k < 2 * n; k++) {
      const int e = exponent(m, row, col, k % n, k < n);
      low = e < low ? e : low;
      high = e > high ? e : high;
      step[k] = half_step(e);
    }
    if ((high - low <= 6 && high <= 20 && low >= -20) ||
        (sweep > 1 && high - low >= range))
      return;
    range = high - low;
    for (int64_t k = 0; k < 2 * n; k++)
      row[k] += step[k];
  }
}

/* The largest |2^-col_j x_j|; with col == NULL, the largest |x_j|. */
static wide largest_entry(int parts, int64_t n, const double *x,
                          const int *col) {
  wide max = 0;
  for (int64_t j = 0; j < n; j++) {
    const wide v = (wide)ldexpl((long double)size_at(parts, x + j * parts),
                                col ? -col[j] : 0);
    max = v > max ? v : max;
  }
  return max;
}

/* A row: its residual, |b| + |A| |x|, the same without entries of x that
   vanish, and the largest entry of A. */
typedef struct sums {
  wide re, im, den, products, entry;
} sums;

/* Adds row i of A times x. vanishes: n. */
static void add_row(const matrix *m, int64_t i, const double *x,
                    const bool *vanishes, sums *to) {
  const int p = m->parts;
  for (int64_t j = 0; j < m->n; j++) {
    const double *v = at(m, i, j), *w = x + j * p;
    const wide size = size_at(p, v), product = size * size_at(p, w);
    to->re -= (wide)v[0] * (wide)w[0];
    if (p == 2) {
      to->re += (wide)v[1] * (wide)w[1];
      to->im -= (wide)v[0] * (wide)w[1] + (wide)v[1] * (wide)w[0];
    }
    to->den += product;
    to->products += vanishes[j] ? 0 : product;
    to->entry = size > to->entry ? size : to->entry;
  }
}

/* With the scaling of 'other'. */
static double measure(const matrix *other, const matrix *m, const double *x,
                      const double *b) {
  const int64_t n = m->n;
  const int parts = m->parts;
  int *row = malloc((size_t)(4 * n) * sizeof *row), *col = row + n;
  bool *vanishes = malloc((size_t)n * sizeof *vanishes);
  wide omega = 0;
  if (row == NULL || vanishes == NULL)
    abort();
  find_scaling(other, row, col, col + n);
  const wide tau = 1000 * (wide)n * (wide)EPS;
  const wide size = largest_entry(parts, n, x, NULL);
  const wide scaled_size = SCALING_SLACK * largest_entry(parts, n, x, col);
  for (int64_t j = 0; j < n; j++) {
    const wide own = size_at(parts, x + j * parts);
    vanishes[j] = own <= tau * size &&
                  (wide)ldexpl((long double)own, -col[j]) <= tau * scaled_size;
  }
  for (int64_t i = 0; i < n; i++) {
    const double *v = b + i * parts;
    sums s = {.re = (wide)v[0], .im = parts == 2 ? (wide)v[1] : 0};
    s.den = s.products = size_at(parts, v);
    add_row(m, i, x, vanishes, &s);
    const wide given = s.entry * size;
    const wide scaled =
        (wide)ldexpl(2.0L, exponent(m, row, col, i, true) - row[i]) *
        scaled_size;
    if (100 * (s.products - n * UNDERFLOW) <= s.den * ROUNDING_SLACK)
      s.den += given < scaled ? given : scaled;
    const wide r = size_of(parts, s.re, s.im);
    const wide q = s.den > 0 ? r / s.den : r;
    omega = q <= omega ? omega : q;
  }
  free(row);
  free(vanishes);
  return (double)omega;
}

double reference_sparse_omega(int64_t n, const double *a, int64_t lda,
                              const double *x, const double *b) {
  const matrix m = {1, n, lda, a};
  return measure(&m, &m, x, b);
}

double either_sparse_omega(int parts, int64_t n, const double *other,
                           const double *a, const double *x, const double *b) {
  const matrix scaled = {parts, n, n, other}, m = {parts, n, n, a};
  return measure(&scaled, &m, x, b);
}
