/* SPDX-License-Identifier: BSD-3-Clause */
/* The pivots of LAPACK's LU factorizations, full or banded: which is the
   smallest, and whose it was. */
#ifndef HONE_PIVOTS_H
#define HONE_PIVOTS_H

#include "base/base.h"
#include "base/entry.h"

#include <math.h>

/* The row that ended in place k, ipiv the exchanges as LAPACK gives them:
   those backwards. */
static inline int64_t hone_pivot_row(int64_t n, const int *ipiv, int64_t k) {
  for (int64_t i = n - 1; i >= 0; i--) {
    const int64_t other = ipiv[i] - 1;
    k = k == i ? other : (k == other ? i : k);
  }
  return k;
}

/* Row and column of the smallest of n pivots, step apart. ipiv NULL: no rows
   were exchanged. mend: those that are exactly zero become eps times the
   largest, so that one can solve. */
static inline void hone_pivot_smallest(int64_t n, hone_entry *pivot,
                                       int64_t step, const int *ipiv, bool mend,
                                       int64_t *row, int64_t *col) {
  double most = 0.0;
  int64_t at = 0;
  for (int64_t k = 0; k < n; k++) {
    most = HONE_MAX(most, hone_abs(pivot[k * step]));
    if (hone_abs(pivot[k * step]) < hone_abs(pivot[at * step]))
      at = k;
  }
  for (int64_t k = 0; mend && k < n; k++)
    if (!(hone_abs(pivot[k * step]) > 0.0))
      pivot[k * step] = HONE_EPS * (most > 0.0 ? most : 1.0);
  *row = ipiv ? hone_pivot_row(n, ipiv, at) : at;
  *col = at;
}

#endif
