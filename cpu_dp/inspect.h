/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the range of a dense A in one pass: the maxima of rows and columns, the
   norms, and the first entry that is NaN or Inf. */
#ifndef HONE_INSPECT_H
#define HONE_INSPECT_H

#include "base/dense.h"

/* Returns the number of doubles of scratch that hone_inspect needs. */
int64_t hone_inspect_scratch(int64_t n);

/* Inspects S = R A C (A itself where scaling is NULL). The bits of the
   results do not depend on the number of threads. */
void hone_inspect(const hone_matrix *a, hone_pool *pool,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out);

#endif
