/* SPDX-License-Identifier: BSD-3-Clause */
/* The report's account of a singular matrix: its smallest pivot and its null
   vectors. Unknowns are the columns of A here and equations its rows, as
   stored; for a transposed solve they are exchanged (api/solver.c). In double
   precision. Next to read: null_vector.c. */
#ifndef HONE_NULL_VECTOR_H
#define HONE_NULL_VECTOR_H

#include "refine/condition.h"

enum {
  HONE_NULL_LISTED = 8,
  HONE_NULL_SCRATCH = 2
}; /* entries listed; scratch vectors of n entries */

/* Fills the report's suspect_, null_ and dependent_ fields, as far as they can
   be found, from factors that show S to be nearly singular.
   replace_zero_pivots: S is exactly singular, and the factors may be destroyed
   by giving tiny values to zero pivots. certificate: of these
   factors. scratch: HONE_NULL_SCRATCH n entries. */
void hone_null_find(const hone_factored *f, const hone_certificate *certificate,
                    bool replace_zero_pivots, hone_entry *scratch,
                    hone_report *report);

/* Returns a column of S that depends on those before it, by a null vector z of
   S, n entries. */
int64_t hone_null_dependent_column(int64_t n, const hone_entry *z);

/* Fills them for a matrix with a row or a column of zeros; -1: there is
   none. */
void hone_null_report_zeros(int64_t row, int64_t col, hone_report *report);

#endif
