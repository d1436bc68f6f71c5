/* SPDX-License-Identifier: BSD-3-Clause */
/* The last pivots are predicted from those in the middle and at the end of
   the factored columns, as if they fell geometrically. (Not from the first:
   the pivots of random matrices rise for a while.) The guess only decides
   which factorization is tried first: random and diagonally dominant matrices
   keep their pivots level, matrices with geometric spectra have pivots that
   fall as the spectrum does. */
#include "base/pivot_fall.h"

#include <math.h>

/* Pivots are judged with at least this much of the matrix behind and still
   ahead. */
static const double JUDGE_FROM = 0.05, JUDGE_TO = 0.8;
enum { JUDGE_FROM_COLUMN = 3 * HONE_PIVOT_SAMPLE };
/* Refinement is out of reach when the pivots, falling as they do now, would
   end this far below where they began, or when they have reached the rounding
   errors of single precision already. */
static const double FALL_LIMIT = 1e-7, LEVEL_LIMIT = 3e-7;
/* The fall from the first pivots on must agree, at a rate that allows for the
   rise of the first pivots of random matrices: the pivots of boundary element
   matrices swing up and down by a factor of 10 from face to face. So it has to
   be this part of the logarithm of the other: 1e-4 for FALL_LIMIT. */
static const double WHOLE_PART = 4.0 / 7.0;
/* Pivots are small or large from these parts of the largest on. They fade where
   so many of n are small, and so many are between. (Geometric spectra of
   condition 3e7, which GMRES may serve, have 0.03 n to 0.08 n small ones, of
   1e9 0.26 n to 0.3 n; matrices of rank n / 2 but for rounding n / 2, and 0.004
   n between.) */
static const float SMALL = 1e-5F, LARGE = 1e-2F;
enum { SMALL_ONE_IN = 4, BETWEEN_ONE_IN = 10 };

bool hone_pivots_can_be_judged(int64_t n, int64_t done) {
  const double part = (double)done / (double)n;
  return done >= JUDGE_FROM_COLUMN && part >= JUDGE_FROM && part <= JUDGE_TO;
}

int64_t hone_pivot_middle(int64_t done) {
  return (done - HONE_PIVOT_SAMPLE) / 2;
}

int64_t hone_pivot_end(int64_t done) { return done - HONE_PIVOT_SAMPLE; }

double hone_pivot_mean(const float pivot[HONE_PIVOT_SAMPLE]) {
  double sum = 0.0;
  for (int i = 0; i < HONE_PIVOT_SAMPLE; i++)
    sum += log((double)pivot[i]);
  return sum / HONE_PIVOT_SAMPLE;
}

bool hone_pivots_end_below(const hone_pivot_fall *p, double part) {
  const int64_t middle = hone_pivot_middle(p->done);
  const int64_t end = hone_pivot_end(p->done);
  double fall = (p->end - p->middle) * (double)p->n / (double)(end - middle);
  double whole = (p->end - p->start) * (double)p->n / (double)end;
  return !(fall >= log(part)) && !(whole >= WHOLE_PART * log(part));
}

/* NaN is hopeless: every comparison is written so that NaN fails it. */
bool hone_pivots_hopeless(const hone_pivot_fall *p) {
  double level = p->end - log((double)p->first);
  return hone_pivots_end_below(p, FALL_LIMIT) || !(level >= log(LEVEL_LIMIT));
}

/* NaN is counted nowhere: the growth of such factors says enough. */
void hone_pivot_count(hone_pivot_counts *counts, float pivot, float largest) {
  counts->n++;
  counts->small += pivot <= SMALL * largest;
  counts->between += pivot > SMALL * largest && pivot <= LARGE * largest;
}

bool hone_pivots_fade(const hone_pivot_counts *counts) {
  return SMALL_ONE_IN * counts->small >= counts->n &&
         BETWEEN_ONE_IN * counts->between >= counts->n;
}
