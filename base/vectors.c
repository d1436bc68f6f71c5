/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, maxima, signs and products of vectors, in double precision; see
   vectors.h. A device waits between two of its calls while these loops run, so
   that short vectors are treated without the cost of entering vector
   instructions. */
#include "base/vectors.h"

#include "base/base.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SUMS = 8 }; /* partial sums added side by side */

/* This function is inlined into one caller with vector instructions and one
   without. */
static inline double sum_abs(int64_t n, const hone_entry *v) {
  double sum[SUMS] = {0.0};
  int64_t i = 0;
  for (; i + SUMS <= n; i += SUMS)
#pragma omp simd
    for (int k = 0; k < SUMS; k++)
      sum[k] += hone_abs(v[i + k]);
  for (; i < n; i++)
    sum[i % SUMS] += hone_abs(v[i]);
  for (int half = SUMS / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++)
      sum[k] += sum[k + half];
  return sum[0];
}

HONE_VECTOR static double sum_of_many(int64_t n, const hone_entry *v) {
  return sum_abs(n, v);
}

HONE_VECTOR static int64_t largest_of_many(int64_t n, const hone_entry *v) {
  double max = 0.0;
  int64_t at = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++)
    max = hone_abs(v[i]) > max ? hone_abs(v[i]) : max;
  while (at < n && !(hone_abs(v[at]) >= max))
    at++;
  return at < n ? at : 0;
}

double hone_sum_abs(int64_t n, const hone_entry *v) {
  if (n >= HONE_MANY)
    return sum_of_many(n, v);
  return n == 1 ? hone_abs(v[0]) : sum_abs(n, v);
}

int64_t hone_largest_at(int64_t n, const hone_entry *v) {
  int64_t at = 0;
  double max = 0.0;
  if (n >= HONE_MANY)
    return largest_of_many(n, v);
  for (int64_t i = 0; i < n; i++)
    if (hone_abs(v[i]) > max) {
      max = hone_abs(v[i]);
      at = i;
    }
  return at;
}

HONE_VECTOR bool hone_take_signs(int64_t n, const hone_entry *v,
                                 hone_entry *sign) {
  int other = 0;
#pragma omp simd reduction(| : other)
  for (int64_t i = 0; i < n; i++) {
    const hone_entry s = hone_sign(v[i]);
    other |= s != sign[i];
    sign[i] = s;
  }
  return other == 0;
}

double hone_largest_sum(int64_t n, const double *v) {
  double max = 0.0;
  for (int64_t i = 0; i < n; i++)
    max = v[i] <= max ? max : v[i]; /* NaN is kept */
  return isfinite(max) ? max : DBL_MAX;
}

HONE_VECTOR hone_entry hone_dot(int64_t n, const hone_entry *restrict a,
                                const hone_entry *restrict b) {
  hone_entry s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += hone_conj(a[i]) * b[i];
  return s;
}

HONE_VECTOR hone_entry hone_dot_plain(int64_t n, const hone_entry *restrict a,
                                      const hone_entry *restrict b) {
  hone_entry s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += a[i] * b[i];
  return s;
}

void hone_conjugate(int64_t n, hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = hone_conj(v[i]);
}

HONE_VECTOR void hone_random_units(int64_t n, uint64_t *seed, double *u) {
  const uint64_t first = *seed;
  for (int64_t i = 0; i < n; i++) {
    uint64_t state = first + (uint64_t)i * HONE_RANDOM_STEP;
    const uint64_t k = hone_random_bits(&state) >> 11;
    /* The two halves of k as the last digits of 2^84 and 2^52: vector
       instructions that convert integers of 64 bits are rare. */
    const uint64_t high = (k >> 32) | UINT64_C(0x4530000000000000);
    const uint64_t low = (k & UINT32_MAX) | UINT64_C(0x4330000000000000);
    double h, l;
    memcpy(&h, &high, sizeof h);
    memcpy(&l, &low, sizeof l);
    u[i] = ((h - (0x1p84 + 0x1p52)) + l - 0x1p52) * 0x1p-52;
  }
  *seed = first + (uint64_t)n * HONE_RANDOM_STEP;
}

HONE_VECTOR double hone_sum_of_squares(int64_t n, const hone_entry *v) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += hone_real(hone_conj(v[i]) * v[i]);
  return s;
}

HONE_VECTOR void hone_add_multiple(int64_t n, hone_entry by,
                                   const hone_entry *restrict x,
                                   hone_entry *restrict y) {
  for (int64_t i = 0; i < n; i++)
    y[i] += by * x[i];
}
