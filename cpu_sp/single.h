/* SPDX-License-Identifier: BSD-3-Clause */
/* Magnitudes of entries in single precision. */
#ifndef HONE_SINGLE_H
#define HONE_SINGLE_H

#include "base/entry.h"

#ifdef HONE_COMPLEX

/* In double precision the squares neither overflow nor underflow. */
static inline float hone_abs_single(hone_single v) {
  const double re = (double)crealf(v), im = (double)cimagf(v);
  return (float)sqrt(re * re + im * im);
}

#else

static inline float hone_abs_single(hone_single v) { return fabsf(v); }

#endif
#endif
