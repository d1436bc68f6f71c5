/* SPDX-License-Identifier: BSD-3-Clause */
/* Relaxed corrections, in double precision. Where one small singular value of
   S makes the factors inaccurate, one eigenvalue lambda of E = I - inv(M) S
   prevails. A correction made omega = 1 / (1 - lambda) times leaves

     F = I - omega inv(M) S = (1 - omega) I + omega E

   of an error in the place of E, and F has the eigenvalue 0 there. So E F is
   often smaller than many powers of E. All of this holds for every omega, as
   long as random vectors that bound E F had no part in the choice of it: a
   bound relies on E F being small, not on lambda being known.

   From the second power of E on, powers are E^(m-1) F, by which every m-th
   correction is made omega times. With ||E|| <= b1 and ||F|| <= |omega| b1 +
   |1 - omega|, what follows a correction, and multiplies its rounding errors,
   has norms of at most

     1 or |omega|  +  before,   before = max(b1, ||F||) + the later powers'.

   Next to read: probes.c, which finds omega; bounds.c, which uses it. */
#ifndef HONE_RELAXATION_H
#define HONE_RELAXATION_H

#include "refine/probes.h"

/* Returns omega, by a vector u and p = inv(M) S u: the one for which u - omega
   p is orthogonal to u. It is 1, so that nothing is relaxed, unless that makes
   u - p ten times shorter, and |lambda| is at most 0.5: factors that leave more
   need so many corrections that others, or deflated ones, serve better. */
hone_entry hone_relaxation_by(int64_t n, const hone_entry *u,
                              const hone_entry *p);

/* Bounds the norms of E and F, where ||E|| <= first. */
static inline double hone_relaxation_norm(hone_entry omega, double first) {
  return fmax(first, hone_abs(omega) * first + hone_abs(1.0 - omega));
}

static inline hone_entry hone_relaxation_of(const hone_contraction *c) {
  return 1.0 + c->excess;
}
/* Returns the larger one of 1 and |omega|. */
static inline double hone_relaxation_most(const hone_contraction *c) {
  return fmax(1.0, hone_abs(hone_relaxation_of(c)));
}
/* Bounds the sum of the norms of what follows each of m corrections. */
static inline long double hone_relaxation_sum(const hone_contraction *c) {
  return (long double)hone_relaxation_most(c) + (long double)c->before;
}

/* May a bound be made behind so many corrections? One of the last m is relaxed,
   whatever their number; but where it is neither the last one nor the one
   before, powers of E that are not relaxed follow it, of which nothing is
   known.
 */
static inline bool hone_relaxation_completes(const hone_contraction *c,
                                             int made) {
  return made >= c->power && (c->excess == 0.0 || made % c->power <= 1);
}
/* Returns behind how many corrections the next bound may be made. */
static inline int hone_relaxation_next(const hone_contraction *c, int made) {
  do
    made++;
  while (!hone_relaxation_completes(c, made));
  return made;
}
/* Returns how many times correction number 'made' is made. */
static inline hone_entry hone_relaxation_at(const hone_contraction *c,
                                            int made) {
  return made % c->power == 0 ? hone_relaxation_of(c) : 1.0;
}

#endif
