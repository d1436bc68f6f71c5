/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over A that finds its range: sizes of rows and columns, norms,
   and the place of anything that is not a finite number. */
#ifndef HONE_INSPECT_H
#define HONE_INSPECT_H

#include "base/dense.h"

/* Doubles of scratch that hone_inspect needs. */
int64_t hone_inspect_scratch(int64_t n);

/* Inspects S = R A C (A itself where scaling is NULL). The bits do not
   depend on the number of threads. */
void hone_inspect(const hone_matrix *a, hone_pool *pool,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out);

#endif
