/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of double precision, exact powers of two, and the generator of
   pseudorandom bits. */
#ifndef HONE_NUMBERS_H
#define HONE_NUMBERS_H

#include <math.h>
#include <stdint.h>

#define HONE_EPS 0x1p-53 /* unit roundoff of double precision */
/* NAN and INFINITY of the C library are floats. */
#define HONE_NAN ((double)NAN)
#define HONE_INF ((double)INFINITY)
#define HONE_MAX(a, b) ((a) > (b) ? (a) : (b))
#define HONE_MIN(a, b) ((a) < (b) ? (a) : (b))

/* Returns the larger number; NaN is larger than any, whichever it is. */
static inline double hone_larger_or_nan(double a, double b) {
  return b <= a || a != a ? a : b;
}
static inline long double hone_larger_or_nanl(long double a, long double b) {
  return b <= a || a != a ? a : b;
}

/* HONE_VECTOR marks a plain loop that is compiled once for each vector width
   of the processor; the loader picks the version that fits. It works with gcc
   and glibc only: musl's loader knows no such functions, and clang 14 gives the
   resolvers of static functions external names, which collide. The resolvers
   run before a sanitizer is ready for them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) &&      \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
#define HONE_VECTOR __attribute__((target_clones("default", "fma", "avx512f")))
#else
#define HONE_VECTOR
#endif

/* Returns 2^e for -1022 <= e <= 1023. */
static inline double hone_pow2(int e) {
  union {
    uint64_t bits;
    double value;
  } u = {(uint64_t)(e + 1023) << 52};
  return u.value;
}

/* Returns v 2^e. */
static inline long double hone_shiftl(long double v, int e) {
  return e == 0 ? v : ldexpl(v, e);
}

/* Returns v 2^e for any e. Where 2^e is a normal number, no library function
   is called. */
static inline double hone_shift(double v, int e) {
  return e >= -1022 && e <= 1023 ? v * hone_pow2(e) : ldexp(v, e);
}

/* Returns 64 pseudorandom bits and advances the state by HONE_RANDOM_STEP: the
   generator splitmix64 (Steele, Lea & Flood 2014). The same initial state
   always gives the same sequence. */
#define HONE_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t hone_random_bits(uint64_t *state) {
  uint64_t z = *state += HONE_RANDOM_STEP;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

#endif
