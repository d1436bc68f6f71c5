/* SPDX-License-Identifier: BSD-3-Clause */
/* Anderson's acceleration of refinement (Anderson 1965; in the notation of
   Walker & Ni 2011), in double precision.

   Refinement repeats x = x + d, d = inv(M) (b - A x). Each error is E times the
   one before, E = I - inv(M) A, and so is each correction. One direction in
   which the factors M say little of A makes all of it slow, though every other
   error is gone after a few corrections: of random matrices of one order most
   take four corrections, and some twenty. Where the steps s_1 and s_2 of x have
   changed d by c_1 and c_2, the steps g_1 s_1 + g_2 s_2 would change it by g_1
   c_1 + g_2 c_2. With the g that minimize ||d - g_1 c_1 - g_2 c_2||_2, in
   scaled variables,

     x = x + d - g_1 (s_1 + c_1) - g_2 (s_2 + c_2)

   is where the correction would be smallest, and then one more correction. Two
   slow directions so cost little more than none. x is accepted by its own
   residual, as always. Next to read: refine.c. */
#ifndef HONE_ACCELERATE_H
#define HONE_ACCELERATE_H

#include "refine/refine.h"

/* A block of more columns, and a smaller matrix, is refined without. */
enum {
  HONE_ACCELERATED_MOST = 4,
  HONE_ACCELERATED_FROM = 64,
  HONE_ACCELERATED_VECTORS = 6
};

/* Returns the entries of the histories of a block of so many columns at most.
 */
static inline int64_t hone_accelerate_entries(int64_t n, int64_t columns) {
  return n < HONE_ACCELERATED_FROM
             ? 0
             : HONE_ACCELERATED_VECTORS * n *
                   HONE_MIN(columns, (int64_t)HONE_ACCELERATED_MOST);
}

/* Gives the m columns their part of ctx->history, empty. */
void hone_accelerate_begin(const hone_refinement *ctx, int64_t m,
                           hone_refined *columns);

/* Replaces the correction d of the column's x by an accelerated one, if its
   rate is slow enough for that to pay, and records it. */
void hone_accelerate(const hone_refinement *ctx, hone_refined *column,
                     hone_entry *d);

#endif
