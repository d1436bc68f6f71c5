/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's doubles to scaled singles, on the CPU's cores. */
#ifndef HONE_ROUNDING_H
#define HONE_ROUNDING_H

#include "base/dense.h"

/* Columns j .. j+w-1 of S = R A C, rows exchanged, into f (n x w, ldf):
   row k with row exchange[k] - 1 for k = 0 .. exchanges-1, as LAPACK's
   xLASWP. Entries below FLT_MIN in magnitude become 0: denormal numbers
   would slow the factorization down and carry no digits. */
typedef struct hone_rounding {
  const hone_dense *a;
  const hone_scaling *scaling;
  int64_t j, w;
  const int *exchange;
  int64_t exchanges;
  float *f;
  int64_t ldf;
  float *col_max; /* w: largest magnitude of each column, written */
} hone_rounding;

/* Is none of n numbers NaN or Inf? */
bool hone_all_finite(int64_t n, const double *v);

/* Of n entries of A from row, column on, n rows of one column: a sum of hashes
   that does not tell a_ij from a_ji, each of the value and of the unordered
   pair i, j. Those of both triangles differ, but for one in 2^32, where A is
   not symmetric to the last bit. */
uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                         const double *v);

/* Returns how many nonzero entries became 0. */
int64_t hone_round_columns(hone_pool *pool, const hone_rounding *rounding);

#endif
