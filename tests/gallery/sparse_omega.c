/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error of Arioli, Demmel & Duff (1989) for columns with entries
   near zero, in quadruple precision and with a scaling of its own: powers of
   two that bring the largest entries of rows and columns near 1. The definition
   is in docs/numerics.md, "Refine and accept". Read reference.h first. */
#include "tests/gallery/reference.h"

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
  /* The scaling of the library may differ from this one: the measure allows for
     so much. */
  SCALING_SLACK = 64
};
#define EPS 0x1p-53
/* The library sums denominators in double. */
#define ROUNDING_SLACK (1 + (wide)0x1p-40)
/* A product below the range of double is nothing to it. */
#define UNDERFLOW (wide)0x1p-1074

static wide size_of(wide v) { return v < 0 ? -v : v; }

/* The largest |2^(row_i + col_j) a_ij| of row (or column) k. */
static double largest(int64_t n, const double *a, int64_t lda, const int *row,
                      const int *col, int64_t k, bool of_row) {
  double max = 0.0;
  for (int64_t l = 0; l < n; l++) {
    const int64_t i = of_row ? k : l, j = of_row ? l : k;
    max = fmax(max, ldexp(fabs(a[i + j * lda]), row[i] + col[j]));
  }
  return max;
}

static void find_scaling(int64_t n, const double *a, int64_t lda, int *row,
                         int *col) {
  for (int64_t i = 0; i < n; i++)
    row[i] = col[i] = 0;
  for (int sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    int *e = sweep % 2 ? col : row;
    for (int64_t k = 0; k < n; k++) {
      const double max = largest(n, a, lda, row, col, k, sweep % 2 == 0);
      if (max > 0.0 && isfinite(max))
        e[k] -= (int)lrint(0.5 * (ilogb(max) + 1));
    }
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

double reference_sparse_omega(int64_t n, const double *a, int64_t lda,
                              const double *x, const double *b) {
  int *row = malloc((size_t)(2 * n) * sizeof *row), *col = row + n;
  wide omega = 0;
  if (row == NULL)
    return (double)NAN;
  find_scaling(n, a, lda, row, col);
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
        (wide)ldexpl((long double)largest(n, a, lda, row, col, i, true),
                     -row[i]) *
        scaled_size;
    if (100 * (products - n * UNDERFLOW) <= den * ROUNDING_SLACK)
      den += given < scaled ? given : scaled;
    const wide q = den > 0 ? size_of(r) / den : size_of(r);
    omega = q <= omega ? omega : q;
  }
  free(row);
  return (double)omega;
}
