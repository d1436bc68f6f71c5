/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a correction is relaxed, in double precision. Next to read:
   relaxation.h, which says what for. */
#include "refine/relaxation.h"

#include "base/vectors.h"

/* With u^H p = a, lambda = 1 - a / u^H u, ||u - omega p||^2 = u^H u (u^H u p^H
   p / |a|^2 - 1). Its rounding errors, of eps u^H u, only spoil the choice. */
hone_entry hone_relaxation_by(int64_t n, const hone_entry *u,
                              const hone_entry *p) {
  const double uu = hone_sum_of_squares(n, u), pp = hone_sum_of_squares(n, p);
  const hone_entry a = hone_dot(n, u, p);
  const double aa = hone_abs(a) * hone_abs(a);
  const double relaxed = uu * (uu / aa * pp - 1.0);
  const double plain = uu - 2.0 * hone_real(a) + pp;
  return aa > 0.0 && hone_abs(uu - a) <= HONE_RELAXATION_CONVERGES * uu &&
                 relaxed <= HONE_RELAXATION_PREVAILS * plain
             ? hone_times(uu / aa, hone_conj(a))
             : 1.0;
}
