/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of a matrix's entries, found while it is brought into lanes. */
#ifndef HONE_EXTENT_H
#define HONE_EXTENT_H

#include "cpu_batch/parts.h"

/* Lanes whose entries, or those of b, are outside this range are left to
   others: within it no sum or product of a solve overflows, and what underflows
   is negligible beside the denominators that are allowed. */
static const double LARGEST_ENTRY = 0x1p300, SMALLEST_ENTRY = 0x1p-300;
/* A matrix is not scaled if the largest entries of its rows and of its columns
   lie within this factor of one another, and of 1. */
static const double LEVEL = 0x1p6, NEAR_ONE = 0x1p20;

/* The extremes of a block's entries: those of the bits of the sizes of their
   parts, which are ordered as the sizes are, with NaN above all. */
typedef struct extent {
  bits most;
  bits least; /* of those that are not 0, less 1: 0 is above all */
} extent;

INLINE extent begin_extent(void) {
  const bits none = (bits)all(0.0);
  return (extent){none, ~none};
}

INLINE void take_extent(extent *e, many v) {
  for (int k = 0; k < HONE_PARTS; k++) {
    const bits size = (bits)magnitude(v.part[k]), less = size - 1;
    e->most = (bits)choose((mask)(size > e->most), (lanes)size, (lanes)e->most);
    e->least =
        (bits)choose((mask)(less < e->least), (lanes)less, (lanes)e->least);
  }
}

/* Is everything a number, of a size that is 0 or between the two? */
INLINE mask is_within(const extent *e, double most, double least) {
  const mask below = (mask)(e->most <= (bits)all(most));
  return everywhere(below & (mask)(e->least >= (bits)all(least) - 1));
}

/* The power of two by which v becomes at least 1 and less than 2. */
INLINE lanes levelling(lanes v) {
  const mask exponent = (mask)v & INT64_C(0x7ff0000000000000);
  return (lanes)(INT64_C(0x7fe0000000000000) - exponent);
}

/* The largest part of an entry. */
INLINE lanes extreme_of(many v) {
  lanes most = magnitude(v.part[0]);
  if (HONE_PARTS == 2)
    most = larger(magnitude(v.part[HONE_PARTS - 1]), most);
  return most;
}

typedef struct packed {
  mask serves;             /* lanes that may go on */
  mask plain;              /* lanes that are not scaled */
  lanes norm_rows;         /* ||op(A)||, infinity norm */
  lanes norm_cols;         /* ||op(A)||_1 */
  lanes norm_scaled;       /* ||S||_1 */
  double max_abs, min_abs; /* for a system by itself: the largest modulus, and
                              the smallest of those of rows and columns */
} packed;

/* Are the numbers of a vector near one another, and near 1? */
INLINE mask is_level(const parts *p, const lanes *v) {
  lanes most = v[0], least = v[0];
  for (int64_t i = 1; i < p->m; i++) {
    most = larger(v[i], most);
    least = smaller(v[i], least);
  }
  most = largest_over(most);
  least = smallest_over(least);
  return (most <= LEVEL * least) & (most <= NEAR_ONE) &
         (least >= 1.0 / NEAR_ONE);
}

#endif
