/* SPDX-License-Identifier: BSD-3-Clause */
/* A guess from the pivots so far: would single-precision factors be too poor
   to refine with? Every single-precision engine asks it while it factors, so
   that a matrix that single precision cannot hold costs little. */
#ifndef HONE_PIVOT_FALL_H
#define HONE_PIVOT_FALL_H

#include "base/base.h"

enum { HONE_PIVOT_SAMPLE = 32 }; /* consecutive pivots in each mean */

/* Three samples of the pivots of the columns factored so far. */
typedef struct hone_pivot_fall {
  int64_t n, done; /* order; columns factored */
  /* means of log |pivot| of HONE_PIVOT_SAMPLE columns: from column 0 on, from
     hone_pivot_middle(done) on, and the last ones before done */
  double start, middle, end;
  float first; /* |pivot| of column 0 */
} hone_pivot_fall;

/* Are 'done' factored columns of n enough for a judgement, and is enough of
   the matrix still ahead for it to save work? */
bool hone_pivots_can_be_judged(int64_t n, int64_t done);

/* The first columns of the middle and of the last sample. */
int64_t hone_pivot_middle(int64_t done);
int64_t hone_pivot_end(int64_t done);

/* The mean of log |pivot|; -Inf where a pivot is zero. */
double hone_pivot_mean(const float pivot[HONE_PIVOT_SAMPLE]);

/* Do the pivots fall so fast that refinement is out of reach? */
bool hone_pivots_hopeless(const hone_pivot_fall *fall);

#endif
