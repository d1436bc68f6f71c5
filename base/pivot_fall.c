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
   matrices swing up and down by a factor of 10 from face to face. */
static const double WHOLE_LIMIT = 1e-4;

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

/* NaN is hopeless: every comparison is written so that NaN fails it. */
bool hone_pivots_hopeless(const hone_pivot_fall *p) {
  const int64_t middle = hone_pivot_middle(p->done);
  const int64_t end = hone_pivot_end(p->done);
  double fall = (p->end - p->middle) * (double)p->n / (double)(end - middle);
  double whole = (p->end - p->start) * (double)p->n / (double)end;
  double level = p->end - log((double)p->first);
  bool falling = !(fall >= log(FALL_LIMIT)) && !(whole >= log(WHOLE_LIMIT));
  return falling || !(level >= log(LEVEL_LIMIT));
}
