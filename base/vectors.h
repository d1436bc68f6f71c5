/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, maxima, signs and products of vectors, in double precision. */
#ifndef HONE_VECTORS_H
#define HONE_VECTORS_H

#include "base/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* The length from which vector instructions pay: entering and leaving them
   costs as much as about ten entries. */
enum { HONE_MANY = 16 };

/* Returns the sum of magnitudes. The order of the additions depends on n alone.
 */
double hone_sum_abs(int64_t n, const hone_entry *v);

/* Returns the index of the first entry of the largest magnitude; NaNs are
   ignored. */
int64_t hone_largest_at(int64_t n, const hone_entry *v);

/* Sets sign[i] = 1 where v_i >= 0, else -1 (complex: v_i / |v_i|). Returns true
   when sign was so before. */
bool hone_take_signs(int64_t n, const hone_entry *v, hone_entry *sign);

/* Returns the largest of n sums of magnitudes, or DBL_MAX if it is not finite.
 */
double hone_largest_sum(int64_t n, const double *v);

/* Returns a^T b; complex: a^H b. */
hone_entry hone_dot(int64_t n, const hone_entry *restrict a,
                    const hone_entry *restrict b);

/* Returns a^T b, without a conjugate. */
hone_entry hone_dot_plain(int64_t n, const hone_entry *restrict a,
                          const hone_entry *restrict b);

/* v = the conjugate of v. */
void hone_conjugate(int64_t n, hone_entry *v);

/* Fills u with random numbers, uniform in [-1, 1), from as many steps of the
   generator hone_random_bits. */
void hone_random_units(int64_t n, uint64_t *seed, double *u);

double hone_sum_of_squares(int64_t n, const hone_entry *v);

/* y = y + by x */
void hone_add_multiple(int64_t n, hone_entry by, const hone_entry *restrict x,
                       hone_entry *restrict y);

#endif
