/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring the iterates of a refinement, in double precision: hone_refine and
   evaluate.c share this header. */
#ifndef HONE_EVALUATE_H
#define HONE_EVALUATE_H

#include "refine/refine.h"

/* Measures the columns, with the accurate pass wherever it may decide, and
   those that the engine's copy of A would accept on the caller's own A. */
void hone_evaluate(hone_refinement *ctx, int64_t m, hone_refined *const *list);

/* A tolerance this large lies far above the rounding of plain double. */
#define HONE_LOOSE_TOLERANCE 1e-10

/* Do the products of A with x lie well inside the range of double precision? */
bool hone_in_safe_range(const hone_refinement *ctx, const hone_entry *x);

/* May x be accepted, and its errors be reported, by a value from a plain pass?
   Only against a loose tolerance. */
bool hone_plain_suffices(const hone_refinement *ctx, double value);

#endif
