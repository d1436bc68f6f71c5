/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict by projection: whether a residual that a device computed with its
   copy of A is that of the caller's own A, decided on the host with O(n)
   operations. In double precision. Next to read: verdict.c. */
#ifndef HONE_VERDICT_H
#define HONE_VERDICT_H

#include "refine/refine.h"

/* Returns the projection of the present op(A) that the engine has, or NULL if
   it has none, or if a few entries of it, computed anew at random places, show
   that A is not what it was when the engine read it. */
const hone_projection *hone_verdict_projection(hone_refinement *ctx);

/* Returns true if the column's r and den are vouched for: if the projection
   shows no error of account. Up to a few rows that it cannot resolve are
   computed by the host, and replaced in r and den. Returns false if there are
   more of them, or an error: then a pass over A has to decide. */
bool hone_verdict(const hone_refinement *ctx, const hone_projection *p,
                  hone_refined *column);

/* The magnitudes of two sums that are 0 but for rounding, and how large
   rounding makes them; see verdict.c. */
typedef struct hone_verdict_sums {
  double residual, resolution;         /* v^T b - w^T x - v^T r */
  double denominators, den_resolution; /* |v|^T den - u^T |x| - |v|^T |b| */
} hone_verdict_sums;

/* Computes these sums for a column with shift 0. */
hone_verdict_sums hone_verdict_sum(int64_t n, const hone_projection *p,
                                   const hone_refined *column);

/* Do the sums vanish, as far as rounding lets them? */
bool hone_verdict_holds(const hone_verdict_sums *sums);
/* Returns the denominator from which the sums resolve a row. */
double hone_verdict_least(const hone_verdict_sums *sums);

/* Errors of r up to this part of den, a quarter of the unit roundoff, and of
   den up to this part of itself are of no account; larger ones are not noticed
   with a probability of at most ..._FAILURE. */
#define HONE_VERDICT_ERROR 0x1p-55
#define HONE_VERDICT_FAILURE 0x1p-20
#define HONE_VERDICT_DEN_ERROR 0x1p-3
#define HONE_VERDICT_DEN_FAILURE 0x1p-10

#endif
