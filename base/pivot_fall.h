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
/* Would the last pivots be below this part of the first ones, at the rate at
   which the pivots fall? */
bool hone_pivots_end_below(const hone_pivot_fall *fall, double part);

/* All n pivots, counted by their size relative to the largest. */
typedef struct hone_pivot_counts {
  int64_t n;
  int64_t small;   /* at the rounding errors of single precision, nearly */
  int64_t between; /* between those and the large ones */
} hone_pivot_counts;

/* Adds one pivot. */
void hone_pivot_count(hone_pivot_counts *counts, float pivot, float largest);

/* Do the pivots of a complete factorization fall gradually to rounding errors?
   Then more singular values of the matrix are lost in these factors than can be
   deflated, and no gap is above them that a search for a null vector needs. */
bool hone_pivots_fade(const hone_pivot_counts *counts);

#endif
