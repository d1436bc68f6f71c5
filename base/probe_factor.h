/* SPDX-License-Identifier: BSD-3-Clause */
/* The factor that turns products with random vectors into a bound on a norm,
   except with a probability that is chosen: refine/probes.c has the theorem and
   its proof. */
#ifndef HONE_PROBE_FACTOR_H
#define HONE_PROBE_FACTOR_H

#include "base/entry.h"

/* The probability with which a single statement may be wrong, and that for all
   statements made of one matrix together, where three factorizations or fewer
   were certified: there are fewer than 200. */
#define HONE_PROBE_FAILURE 5e-12
#define HONE_PROBE_FAILURE_ALL 1e-9

/* Returns theta: the root of the sum of squares of v^T g over t random vectors
   g, times theta, bounds ||v||_2 for each of 'count' vectors v at once. Complex
   vectors count as two. The volume of the unit ball is pi^(t/2) / (t/2)!, where
   (t/2)! ends with the factors 1/2 and sqrt(pi) for an odd t. */
static inline double hone_probe_factor_of(int t, double count) {
  const double pi = 3.141592653589793;
  double power = HONE_PROBE_FAILURE / count;
  t *= HONE_PARTS;
  const double fraction = 0.5 * (t % 2);
  for (int i = 1; i <= t / 2; i++)
    power *= 6.0 * ((double)i + fraction) / pi;
  if (t % 2 > 0) /* sqrt(6 / pi) (1/2)! */
    power *= sqrt(1.5);
  /* 1 / sqrt(s), power = s^(t/2) */
  return t == 2   ? 1.0 / sqrt(power)
         : t == 4 ? 1.0 / sqrt(sqrt(power))
                  : pow(power, -1.0 / t);
}

#endif
