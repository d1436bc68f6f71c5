/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the smallest pivot of an LU factorization of LAPACK, full or banded, in
   double precision, and the row and the column of the matrix it belongs to. The
   engines report it for a singular matrix. */
#ifndef HONE_PIVOTS_H
#define HONE_PIVOTS_H

#include "base/base.h"
#include "base/entry.h"

#include <math.h>

/* Returns the row of the matrix that became pivot row k, by undoing the row
   exchanges in ipiv (as LAPACK stores them) from the last to the first. */
static inline int64_t hone_pivot_row(int64_t n, const int *ipiv, int64_t k) {
  for (int64_t i = n - 1; i >= 0; i--) {
    const int64_t other = ipiv[i] - 1;
    k = k == i ? other : (k == other ? i : k);
  }
  return k;
}

/* Finds the row and the column of the smallest of n pivots, which lie 'step'
   entries apart. ipiv may be NULL: no rows were exchanged. If replace_zeros is
   true, pivots that are exactly zero become eps times the largest, so that
   systems can be solved with the factors. */
static inline void hone_pivot_smallest(int64_t n, hone_entry *pivot,
                                       int64_t step, const int *ipiv,
                                       bool replace_zeros, int64_t *row,
                                       int64_t *col) {
  double largest = 0.0;
  int64_t smallest = 0;
  for (int64_t k = 0; k < n; k++) {
    largest = HONE_MAX(largest, hone_abs(pivot[k * step]));
    if (hone_abs(pivot[k * step]) < hone_abs(pivot[smallest * step]))
      smallest = k;
  }
  for (int64_t k = 0; replace_zeros && k < n; k++)
    if (!(hone_abs(pivot[k * step]) > 0.0))
      pivot[k * step] = HONE_EPS * (largest > 0.0 ? largest : 1.0);
  *row = ipiv ? hone_pivot_row(n, ipiv, smallest) : smallest;
  *col = smallest;
}

#endif
