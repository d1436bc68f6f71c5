/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra-precise refinement: refines beyond a small backward error to a small
   error of x itself, with residuals in double-double. Next to read:
   extra_precise.c. */
#ifndef HONE_EXTRA_PRECISE_H
#define HONE_EXTRA_PRECISE_H

#include "refine/refine.h"

/* The forward error bound that extra-precise mode asks for. */
#define HONE_EXTRA_LIMIT (8.0 * HONE_EPS)

/* How far columns are refined. */
typedef enum hone_aim {
  /* until the next correction is below eps / 2 of x, and of every entry of x
     where that can be had */
  HONE_AIM_LAST_BIT,
  /* until it is below 1e-3 of x */
  HONE_AIM_DIGITS,
  /* until it is, in the caller's units, below error_scaled of x */
  HONE_AIM_UNITS
} hone_aim;

/* Refines the m accepted columns listed, which are measured and have room for a
   tail each. On HONE_OK a column is either still accepted, with
   its residual measured by the host, or given up on, and its best iterate is
   one that would be accepted. On HONE_INTERRUPTED, or on the status of a solve
   that failed, some columns are active. */
int hone_refine_extra_precise(hone_refinement *ctx, hone_aim aim, int64_t m,
                              hone_refined **list);

/* The size of a vector d relative to x, in the infinity norm. */
typedef struct hone_relative_size {
  double plain;  /* ||d|| / ||x|| */
  double scaled; /* in scaled variables: ||inv(C) d|| / ||inv(C) x|| */
} hone_relative_size;
void hone_extra_relative_size(const hone_refinement *ctx,
                              const hone_refined *column, const hone_entry *d,
                              hone_relative_size *out);

#endif
