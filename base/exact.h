/* SPDX-License-Identifier: BSD-3-Clause */
/* Error-free sums of products, for real and for complex entries, in pairs of
   doubles and in pairs of long doubles. A complex product is added as the real
   products of its parts. residual_kernels.c and wide_row.c use them.

   The method is Dot2 (Ogita, Rump & Oishi 2005): p + e = a x holds exactly, by
   a fused multiply-add; t + f = s + p holds exactly, by Knuth's TwoSum; the
   errors e + f are summed separately. The result is as accurate as if it were
   computed in twice the working precision and rounded once. */
#ifndef HONE_EXACT_H
#define HONE_EXACT_H

#include "base/entry.h"

#include <stdint.h>
#include <string.h>

#define HONE_INLINE static inline __attribute__((always_inline))

/* Adds the real product a n to the pair (*hi, *lo). */
HONE_INLINE void hone_add_product(double a, double n, double *hi, double *lo) {
  double p = a * n;
  double e = __builtin_fma(a, n, -p);
  double t = *hi + p;
  double z = t - *hi;
  double f = (*hi - (t - z)) + (p - z);
  *hi = t;
  *lo += e + f;
}

/* Makes *hi the rounded sum of the pair and *lo what that leaves, but for an
   error of eps |*lo|. Where this is done after every few products, the rounding
   errors of lo grow with the length of a sum, not with its square. */
HONE_INLINE void hone_fold(double *hi, double *lo) {
  const double s = *hi + *lo;
  *lo = (*hi - s) + *lo;
  *hi = s;
}

/* How many products hone_add_group adds at once. */
enum { HONE_GROUP = 8 };

/* Adds the real products a[k] n[k] to the pair (*hi, *lo), and their magnitudes
   to *sum: with fewer operations than one by one, and with an error of about
   2^-102 of the largest product for each. The sum begins with m = 16 times the
   largest magnitude, so that it stays between m/2 and 2 m, and differences of
   partial sums are exact (Sterbenz). */
HONE_INLINE void hone_add_group_of_reals(const double *a, const double *n,
                                         double *hi, double *lo, double *sum) {
  double most = 0.0, s = *sum, errors = *lo;
  for (int k = 0; k < HONE_GROUP; k++) {
    const double size = __builtin_fabs(a[k] * n[k]);
    most = size > most ? size : most;
    s += size;
  }
  const double start = 2.0 * HONE_GROUP * most;
  double at = start;
  for (int k = 0; k < HONE_GROUP; k++) {
    const double next = __builtin_fma(a[k], n[k], at);
    errors += __builtin_fma(a[k], n[k], at - next);
    at = next;
  }
  const double p = at - start, t = *hi + p, z = t - *hi;
  *lo = errors + ((*hi - (t - z)) + (p - z));
  *hi = t;
  *sum = s;
}

/* Returns v with only its leading 26 bits. */
static inline double hone_leading_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits &= ~(uint64_t)0 << 27;
  memcpy(&v, &bits, sizeof bits);
  return v;
}

/* Adds v to the pair (*sum, *rest), exactly but for the rounding of rest. */
static inline void hone_add_wide(long double v, long double *sum,
                                 long double *rest) {
  const long double s = *sum + v, of_v = s - *sum;
  *rest += (*sum - (s - of_v)) + (v - of_v);
  *sum = s;
}

/* Subtracts the real product a x from the pair (*sum, *rest). The four products
   of halves are exact in long double. */
static inline void hone_subtract_wide(double a, double x, long double *sum,
                                      long double *rest) {
  const double a1 = hone_leading_bits(a), a2 = a - a1;
  const double x1 = hone_leading_bits(x), x2 = x - x1;
  hone_add_wide(-(long double)a1 * (long double)x1, sum, rest);
  hone_add_wide(-(long double)a1 * (long double)x2, sum, rest);
  hone_add_wide(-(long double)a2 * (long double)x1, sum, rest);
  hone_add_wide(-(long double)a2 * (long double)x2, sum, rest);
}

#ifdef HONE_COMPLEX

/* Adds a n to the pair (*hi, *lo). */
HONE_INLINE void hone_accumulate(hone_entry a, hone_entry n, hone_entry *hi,
                                 hone_entry *lo) {
  double hr = creal(*hi), hi_ = cimag(*hi), lr = creal(*lo), li = cimag(*lo);
  hone_add_product(creal(a), creal(n), &hr, &lr);
  hone_add_product(-cimag(a), cimag(n), &hr, &lr);
  hone_add_product(creal(a), cimag(n), &hi_, &li);
  hone_add_product(cimag(a), creal(n), &hi_, &li);
  *hi = CMPLX(hr, hi_);
  *lo = CMPLX(lr, li);
}

/* Adds a n to *hi, rounded at each step. */
HONE_INLINE void hone_accumulate_plain(hone_entry a, hone_entry n,
                                       hone_entry *hi) {
  *hi += a * n;
}

/* Adds HONE_GROUP products a n to the pair (*hi, *lo), and their magnitudes to
 *sum. */
HONE_INLINE void hone_add_group(const hone_entry *a, const hone_entry *n,
                                hone_entry *hi, hone_entry *lo, double *sum) {
  for (int k = 0; k < HONE_GROUP; k++) {
    hone_accumulate(a[k], n[k], hi, lo);
    *sum += hone_abs(a[k]) * hone_abs(n[k]);
  }
}

/* Subtracts a x from the pair (*sum, *rest). */
static inline void hone_subtract_exactly(hone_entry a, hone_entry x,
                                         hone_wide *sum, hone_wide *rest) {
  long double sr = creall(*sum), si = cimagl(*sum);
  long double rr = creall(*rest), ri = cimagl(*rest);
  hone_subtract_wide(creal(a), creal(x), &sr, &rr);
  hone_subtract_wide(-cimag(a), cimag(x), &sr, &rr);
  hone_subtract_wide(creal(a), cimag(x), &si, &ri);
  hone_subtract_wide(cimag(a), creal(x), &si, &ri);
  *sum = CMPLXL(sr, si);
  *rest = CMPLXL(rr, ri);
}

#else

HONE_INLINE void hone_accumulate(hone_entry a, hone_entry n, hone_entry *hi,
                                 hone_entry *lo) {
  hone_add_product(a, n, hi, lo);
}

HONE_INLINE void hone_accumulate_plain(hone_entry a, hone_entry n,
                                       hone_entry *hi) {
  *hi = __builtin_fma(a, n, *hi);
}

HONE_INLINE void hone_add_group(const hone_entry *a, const hone_entry *n,
                                hone_entry *hi, hone_entry *lo, double *sum) {
  hone_add_group_of_reals(a, n, hi, lo, sum);
}

static inline void hone_subtract_exactly(hone_entry a, hone_entry x,
                                         hone_wide *sum, hone_wide *rest) {
  hone_subtract_wide(a, x, sum, rest);
}

#endif
#endif
