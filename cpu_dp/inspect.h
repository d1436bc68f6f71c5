/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over A that finds its range: sizes of rows and columns, norms,
   and the place of anything that is not a finite number. */
#ifndef HONE_INSPECT_H
#define HONE_INSPECT_H

#include "base/engine.h"

typedef struct hone_inspection {
  double *row_max, *col_max; /* n each, the caller's: max |s_ij| */
  double norm1, norm_inf;    /* of S; DBL_MAX where the sum overflows */
  int64_t bad_row, bad_col;  /* first NaN or Inf by columns, or -1 */
} hone_inspection;

/* Doubles of scratch that hone_inspect needs. */
int64_t hone_inspect_scratch(int64_t n);

/* Inspects S = R A C (A itself where scaling is NULL). The bits do not
   depend on the number of threads. */
void hone_inspect(hone_pool *pool, const hone_matrix *a,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out);

/* The largest of n sums of magnitudes; DBL_MAX where one is not finite. */
double hone_largest_sum(int64_t n, const double *v);

#endif
