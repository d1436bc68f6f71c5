/* SPDX-License-Identifier: BSD-3-Clause */
/* The random vectors of probes, and the factor of their theorem, in double
   precision. Next to read: probes.c. */
#include "base/vectors.h"
#include "refine/probes.h"

double hone_probe_factor(double count) {
  return hone_probe_factor_of(HONE_PROBES, count);
}

void hone_probe_draw(int64_t n, uint64_t *seed, hone_entry *v) {
  enum { DRAWN = 64 };                    /* at once */
  const double root = 1.7320508075688772; /* sqrt 3 */
  double unit[DRAWN], *part = (double *)v;
  for (int64_t at = 0; at < HONE_PARTS * n; at += DRAWN) {
    const int64_t count = HONE_MIN((int64_t)DRAWN, HONE_PARTS * n - at);
    hone_random_units(count, seed, unit);
    for (int64_t i = 0; i < count; i++)
      part[at + i] = root * unit[i];
  }
}
