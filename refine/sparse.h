/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns whose componentwise backward error is large only because of entries
   near zero, in double precision. Next to read: sparse.c. */
#ifndef HONE_SPARSE_H
#define HONE_SPARSE_H

#include "refine/refine.h"

/* Looks again at the columns that were given up on though their normwise error
   is small: measures them in a way that makes up for entries near zero, accepts
   those that meet the limit, and corrects the others as long as that halves the
   error. */
int hone_sparse_refine(hone_refinement *ctx, int64_t m, hone_refined *columns);

/* Measures in this way the x of an accepted column that was refined since, and
   whose r the host has measured. Returns true, and takes the x as the best one,
   if it meets the limit. */
bool hone_sparse_meets_limit(hone_refinement *ctx, hone_refined *column);

#endif
