/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns whose componentwise backward error is large only because of entries
   near zero, in double precision. Next to read: sparse.c. */
#ifndef HONE_SPARSE_H
#define HONE_SPARSE_H

#include "refine/refine.h"

/* The largest entries of the rows of op(A) and of op(S): n each. */
typedef struct hone_sparse_rows {
  const double *max, *scaled_max;
} hone_sparse_rows;

/* Lists the columns that were given up on though their normwise error is small:
   makes the iterate with the smallest one their x. Returns how many there are.
 */
int64_t hone_sparse_list(int64_t m, hone_refined *columns, hone_refined **list);

/* Measures the columns listed by the backward error of Arioli, Demmel & Duff
   (1989) and accepts those that meet the limit. The others are corrected as
   long as that halves it. The list is changed. */
int hone_sparse_refine(hone_refinement *ctx, const hone_sparse_rows *rows,
                       int64_t m, hone_refined **list);

#endif
