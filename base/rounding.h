/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales and rounds columns of the caller's A to single precision, on the
   CPU. */
#ifndef HONE_ROUNDING_H
#define HONE_ROUNDING_H

#include "base/dense.h"

/* Writes columns j .. j+w-1 of S = R A C to f (n x w, ldf) and then exchanges
   row k with row exchange[k] - 1 for k = 0 .. exchanges-1, as LAPACK's xLASWP
   does. Numbers below FLT_MIN in magnitude become 0, since denormal numbers
   would slow the factorization down and carry no digits; complex: each part. */
typedef struct hone_rounding {
  const hone_dense *a;
  const hone_scaling *scaling;
  int64_t j, w;
  const int *exchange;
  int64_t exchanges;
  hone_single *f;
  int64_t ldf;
  float *col_max; /* w: largest magnitude of what was read of each column,
                     written */
  bool lower; /* only entries of the lower triangle of A are read and written */
} hone_rounding;

/* Returns true if none of the n numbers is NaN or Inf. */
bool hone_all_finite(int64_t n, const double *v);

/* Draws the keys of n rows and columns: HONE_PARTS n numbers. */
void hone_mirror_keys(uint64_t seed, int64_t n, uint32_t *keys);

/* Returns a sum of hashes of n entries v of one column of A, the first of them
   a_ij with i = row, j = column. Each hash is made of the value and of the
   product of the keys of i and j, so that a_ij and a_ji count alike; complex:
   a_ij, i < j, and the conjugate of a_ji. All n entries are on one side of the
   diagonal. keys: of all rows. If A is not symmetric, or Hermitian, to the last
   bit, the sums over its two triangles differ, whatever A is, but for few of
   all keys: docs/numerics.md. */
uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                         const uint32_t *keys, const hone_entry *v);

/* Rounds the columns. Returns how many nonzero entries became 0. */
int64_t hone_round_columns(hone_pool *pool, const hone_rounding *rounding);

#endif
