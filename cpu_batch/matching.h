/* SPDX-License-Identifier: BSD-3-Clause */
/* Exponents that scale a matrix by its heaviest perfect matching. */
#ifndef HONE_MATCHING_H
#define HONE_MATCHING_H

#include "base/entry.h"

enum { HONE_NO_EXPONENT = INT32_MIN /* of an entry that is 0 */ };

/* Finds integers row[i] and col[j] with exponent[i + j n] + row[i] + col[j] <=
   0 for all entries, and = 0 for n entries, one in every row and column: of all
   such choices their product is the largest (Duff & Koster 2001). So every row
   and column of the scaled matrix has an entry of its largest size, wherever
   the large ones were. work: 4 (n + 1) numbers. Returns false if every choice
   has an entry that is 0; the matrix is singular then. */
bool hone_match(int64_t n, const int32_t *exponent, int64_t *row, int64_t *col,
                int64_t *work);

#endif
