/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes a matrix singular: its smallest pivot and its null vectors, in
   the words of the report. Here unknowns are A's columns and equations its
   rows as stored; a transposed solve swaps them (api/solver.c). */
#ifndef HONE_NULL_VECTOR_H
#define HONE_NULL_VECTOR_H

#include "refine/condition.h"

enum { HONE_NULL_LISTED = 8, HONE_NULL_SCRATCH = 2 }; /* vectors of n */

/* Of factors that say S is nearly singular; mend: exactly, and they may be
   spoilt. Fills min_pivot_..., null_... and dependent_... as far as they can be
   had. scratch: HONE_NULL_SCRATCH n doubles. */
void hone_null_find(const hone_factored *f, bool mend, hone_entry *scratch,
                    hone_report *report);

/* Of a matrix with a row or a column of zeros (-1: none). */
void hone_null_of_zeros(int64_t row, int64_t col, hone_report *report);

#endif
