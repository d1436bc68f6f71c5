/* SPDX-License-Identifier: BSD-3-Clause */
/* What the condition estimate asks of vectors. */
#ifndef HONE_VECTORS_H
#define HONE_VECTORS_H

#include "base/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Where vector instructions begin to pay: getting into them and out again costs
   as much as some ten entries. */
enum { HONE_MANY = 16 };

/* Sum of magnitudes, in an order given by n alone. */
double hone_sum_abs(int64_t n, const hone_entry *v);

/* The first of the largest magnitude, NaNs left out. */
int64_t hone_largest_at(int64_t n, const hone_entry *v);

/* sign[i] = 1 where v_i >= 0, else -1; true when it was so before. */
bool hone_take_signs(int64_t n, const hone_entry *v, hone_entry *sign);

/* The largest of n sums of magnitudes; DBL_MAX where one is not finite. */
double hone_largest_sum(int64_t n, const double *v);

#endif
