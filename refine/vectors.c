/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over vectors that stand between one call of a device and the next. */
#include "refine/vectors.h"

#include "api/base.h"

#include <math.h>

enum { SUMS = 8 }; /* added up beside one another */

HONE_VECTOR double hone_sum_abs(int64_t n, const double *v) {
  double sum[SUMS] = {0.0};
  int64_t i = 0;
  for (; i + SUMS <= n; i += SUMS)
#pragma omp simd
    for (int k = 0; k < SUMS; k++)
      sum[k] += fabs(v[i + k]);
  for (; i < n; i++)
    sum[i % SUMS] += fabs(v[i]);
  for (int half = SUMS / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++)
      sum[k] += sum[k + half];
  return sum[0];
}

HONE_VECTOR int64_t hone_largest_at(int64_t n, const double *v) {
  double max = 0.0;
  int64_t at = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++)
    max = fabs(v[i]) > max ? fabs(v[i]) : max;
  while (at < n && !(fabs(v[at]) >= max))
    at++;
  return at < n ? at : 0;
}

HONE_VECTOR bool hone_take_signs(int64_t n, const double *v, double *sign) {
  int other = 0;
#pragma omp simd reduction(| : other)
  for (int64_t i = 0; i < n; i++) {
    const double s = v[i] >= 0.0 ? 1.0 : -1.0;
    other |= s != sign[i];
    sign[i] = s;
  }
  return other == 0;
}
