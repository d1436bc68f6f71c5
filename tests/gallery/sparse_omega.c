/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error of Arioli, Demmel & Duff (1989) for columns with entries
   near zero, in quadruple precision, as docs/numerics.md, "Refine and accept",
   defines it. Read reference.h first. */
#include "tests/gallery/reference.h"

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

static wide size_of(wide v) { return v < 0 ? -v : v; }

/* The exponent of the largest |2^(row_i + col_j) a_ij| of row (or column) k. */
static int exponent(int64_t n, const double *a, int64_t lda, const int *row,
                    const int *col, int64_t k, bool of_row) {
  int max = INT_MIN;
  for (int64_t l = 0; l < n; l++) {
    const int64_t i = of_row ? k : l, j = of_row ? l : k;
    const double size = fabs(a[i + j * lda]);
    if (size > 0.0 && ilogb(size) + row[i] + col[j] > max)
      max = ilogb(size) + row[i] + col[j];
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
static void find_scaling(int64_t n, const double *a, int64_t lda, int *row,
                         int *col, int *step) {
  for (int64_t k = 0; k < 2 * n; k++)
    row[k] = 0; /* and col */
  for (int sweep = 0, range = INT_MAX; sweep < SWEEPS; sweep++) {
    int low = INT_MAX, high = INT_MIN;
    for (int64_t k = 0; k < 2 * n; k++) {
      const int e = exponent(n, a, lda, row, col, k % n, k < n);
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
static wide largest_entry(int64_t n, const double *x, const int *col) {
  wide max = 0;
  for (int64_t j = 0; j < n; j++) {
    const wide v = (wide)ldexpl((long double)fabs(x[j]), col ? -col[j] : 0);
    max = v > max ? v : max;
  }
  return max;
}

/* With the scaling of 'other' (ld). */
static double measure(int64_t n, const double *other, int64_t ld,
                      const double *a, int64_t lda, const double *x,
                      const double *b) {
  int *row = malloc((size_t)(4 * n) * sizeof *row), *col = row + n;
  wide omega = 0;
  if (row == NULL)
    return (double)NAN;
  find_scaling(n, other, ld, row, col, col + n);
  const wide tau = 1000 * (wide)n * (wide)EPS;
  const wide size = largest_entry(n, x, NULL);
  const wide scaled_size = SCALING_SLACK * largest_entry(n, x, col);
  for (int64_t i = 0; i < n; i++) {
    wide r = (wide)b[i], den = size_of(r), products = den;
    double entry = 0.0;
    for (int64_t j = 0; j < n; j++) {
      const wide p = (wide)a[i + j * lda] * (wide)x[j];
      const wide y = (wide)ldexpl((long double)fabs(x[j]), -col[j]);
      const bool vanishes =
          size_of((wide)x[j]) <= tau * size && y <= tau * scaled_size;
      r -= p;
      den += size_of(p);
      products += vanishes ? 0 : size_of(p);
      entry = fmax(entry, fabs(a[i + j * lda]));
    }
    const wide given = (wide)entry * size;
    const wide scaled =
        (wide)ldexpl(2.0L, exponent(n, a, lda, row, col, i, true) - row[i]) *
        scaled_size;
    if (100 * (products - n * UNDERFLOW) <= den * ROUNDING_SLACK)
      den += given < scaled ? given : scaled;
    const wide q = den > 0 ? size_of(r) / den : size_of(r);
    omega = q <= omega ? omega : q;
  }
  free(row);
  return (double)omega;
}

double reference_sparse_omega(int64_t n, const double *a, int64_t lda,
                              const double *x, const double *b) {
  return measure(n, a, lda, a, lda, x, b);
}

double reference_sparse_omega_scaled_as(int64_t n, const double *other,
                                        const double *a, int64_t lda,
                                        const double *x, const double *b) {
  return measure(n, other, n, a, lda, x, b);
}
