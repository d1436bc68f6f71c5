/* SPDX-License-Identifier: BSD-3-Clause */
/* Scaling of the matrix by powers of two, S = R A C, and of vectors into and
   out of scaled variables. In double precision, exact. Next to read:
   scale.c. */
#ifndef HONE_SCALE_H
#define HONE_SCALE_H

#include "base/engine.h"

/* A view of A for inspection: through the host, or through an engine that holds
   a copy of A. */
typedef struct hone_inspection_view {
  hone_pool *pool;
  const hone_matrix *a;
  double *scratch; /* for the operator */
  /* The engine with the copy; NULL: the host inspects. */
  const hone_engine *engine;
  void *self;
} hone_inspection_view;

/* Inspects S = R A C (A itself where scaling is NULL). An engine does not say
   where a NaN or Inf stands: bad_row and bad_col are then 0. */
int hone_view_inspect(const hone_inspection_view *view,
                      const hone_scaling *scaling, hone_inspection *inspection);

/* Finds a scaling that brings the largest entry of every row and column of S =
   R A C near 1 (Ruiz 2001: both by the square root at once, in a few sweeps).
   *inspection is that of A on entry and that of S on return. A matrix whose
   rows and columns are already alike is not scaled. Rows and columns must not
   be zero. Fails only where an engine does. */
int hone_scale_find(const hone_inspection_view *view,
                    hone_inspection *inspection, hone_scaling *scaling);

/* to_i = 2^(sign e_i + k) from_i, with sign 1 or -1, and e NULL for zeros. 'to'
   may be 'from'. Each entry is rounded once if it leaves the normal range. */
void hone_scale_by(int64_t n, const int *e, int sign, int k,
                   const hone_entry *from, hone_entry *to);

/* v = 2^k R r, with the k that brings the largest entry of v into [1/2, 1). r
   is finite and not zero. row_exp: exponents of R, NULL for R = I. Returns
   k. */
int hone_scale_in(int64_t n, const int *row_exp, const hone_entry *r,
                  hone_entry *v);

/* v = 2^-k C v, in place; exact unless an entry underflows. */
void hone_scale_out(int64_t n, const int *col_exp, int k, hone_entry *v);

#endif
