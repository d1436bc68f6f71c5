/* SPDX-License-Identifier: BSD-3-Clause */
/* Power-of-two scaling of the matrix, and of vectors into and out of it. */
#ifndef HONE_SCALE_H
#define HONE_SCALE_H

#include "base/engine.h"

/* How A is looked at: on the host, or by an engine that holds a copy. */
typedef struct hone_sight {
  hone_pool *pool;
  const hone_matrix *a;
  double *scratch;           /* of the operator */
  const hone_engine *engine; /* that is resident; NULL: the host */
  void *self;
} hone_sight;

/* Inspects S = R A C (A itself where scaling is NULL). An engine does not tell
   where an entry that is not finite stands: bad_row, bad_col are then 0. */
int hone_see(const hone_sight *sight, const hone_scaling *scaling,
             hone_inspection *seen);

/* Finds a scaling of A that brings the largest entry of every row and
   column near 1 (Ruiz 2001: both by the square root at once, a few sweeps).
   *seen holds the inspection of A itself and becomes that of S. A matrix
   whose rows and columns are already alike is left as it is. Needs nonzero
   rows and columns. Fails only where an engine does. */
int hone_scale_find(const hone_sight *sight, hone_inspection *seen,
                    hone_scaling *scaling);

/* to_i = 2^(sign e_i + k) from_i, sign 1 or -1, e NULL: zeros. In place or not.
   Rounded once where it leaves the normal range. */
void hone_scale_by(int64_t n, const int *e, int sign, int k,
                   const hone_entry *from, hone_entry *to);

/* v = 2^k R r with the largest entry of v in [1/2, 1); r finite and not
   zero. row_exp: exponents of R, NULL: ones. Returns k. */
int hone_scale_in(int64_t n, const int *row_exp, const hone_entry *r,
                  hone_entry *v);

/* d = 2^-k C v, in place; returns nothing lost unless d underflows. */
void hone_scale_out(int64_t n, const int *col_exp, int k, hone_entry *v);

#endif
