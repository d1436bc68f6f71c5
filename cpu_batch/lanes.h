/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic with one number for each lane, real or complex. Files that include
   this are compiled once for each instruction set, with -ffp-contract=off:
   where a product and a sum are to be rounded once, they say so. */
#ifndef HONE_LANES_H
#define HONE_LANES_H

#include "base/entry.h"
#include "base/isa.h"

#include <string.h>
#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))
/* Before a loop over vectors that are to stay in registers. */
#define UNROLL _Pragma("GCC unroll 16")

enum { LANES = HONE_VECTOR_BYTES / (int)sizeof(double) };

typedef double lanes __attribute__((vector_size(HONE_VECTOR_BYTES)));
typedef int64_t mask __attribute__((vector_size(HONE_VECTOR_BYTES)));
typedef uint64_t bits __attribute__((vector_size(HONE_VECTOR_BYTES)));

/* An entry of every lane's matrix or vector: its real part and, where entries
   are complex, its imaginary part. */
typedef struct many {
  lanes part[HONE_PARTS];
} many;

/* ---- Real numbers ------------------------------------------------------- */

INLINE lanes all(double v) {
#if defined(__AVX512F__)
  return (lanes)_mm512_set1_pd(v);
#elif defined(__AVX2__)
  return (lanes)_mm256_set1_pd(v);
#else
  return (lanes){v, v};
#endif
}

INLINE lanes choose(mask which, lanes yes, lanes no) {
  return (lanes)(((mask)yes & which) | ((mask)no & ~which));
}

INLINE lanes magnitude(lanes v) { return (lanes)((mask)v & INT64_MAX); }

/* The larger one; b where a number is NaN. */
INLINE lanes larger(lanes a, lanes b) { return choose(a > b, a, b); }

INLINE lanes smaller(lanes a, lanes b) { return choose(a < b, a, b); }

/* The larger one, or NaN if one is. */
INLINE lanes larger_or_nan(lanes a, lanes b) {
  return choose((b <= a) | (a != a), a, b);
}

INLINE lanes root(lanes v) {
#if defined(__AVX512F__)
  return (lanes)_mm512_sqrt_pd((__m512d)v);
#elif defined(__AVX2__)
  return (lanes)_mm256_sqrt_pd((__m256d)v);
#else
  return (lanes){__builtin_sqrt(v[0]), __builtin_sqrt(v[1])};
#endif
}

INLINE bool any(mask which) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)which, (__m512i)which) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256((__m256i)which, (__m256i)which) == 0;
#else
  return (which[0] | which[1]) != 0;
#endif
}

/* Lane l gets that of lane l ^ by; by: 1, 2 or 4. */
INLINE lanes turned(lanes v, int by) {
#if defined(__AVX512F__)
  return by == 4   ? (lanes)_mm512_shuffle_f64x2((__m512d)v, (__m512d)v, 0x4e)
         : by == 2 ? (lanes)_mm512_shuffle_f64x2((__m512d)v, (__m512d)v, 0xb1)
                   : (lanes)_mm512_permute_pd((__m512d)v, 0x55);
#elif defined(__AVX2__)
  return by == 2 ? (lanes)_mm256_permute2f128_pd((__m256d)v, (__m256d)v, 1)
                 : (lanes)_mm256_permute_pd((__m256d)v, 5);
#else
  return (lanes){v[by], v[0]};
#endif
}

/* All lanes get that of lane l. */
INLINE lanes lane_everywhere(lanes v, int l) {
#if defined(__AVX512F__)
  return (lanes)_mm512_permutexvar_pd(_mm512_set1_epi64(l), (__m512d)v);
#else
  return all(v[l]);
#endif
}

/* Numbers number at[0], at[1], ... of v. */
INLINE lanes gathered(const double *v, const int64_t *at) {
#if defined(__AVX512F__)
  return (lanes)_mm512_i64gather_pd(_mm512_loadu_si512(at), v, 8);
#elif defined(__AVX2__)
  const __m256i where = _mm256_loadu_si256((const __m256i *)at);
  return (lanes)_mm256_i64gather_pd(v, where, 8);
#else
  return (lanes){v[at[0]], v[at[1]]};
#endif
}

/* a b + c, rounded once where the processor can; 'exactly': always. */
#if defined(__AVX512F__)
INLINE lanes multiply_add(lanes a, lanes b, lanes c) {
  return _mm512_fmadd_pd(a, b, c);
}
INLINE lanes subtract_product(lanes c, lanes a, lanes b) {
  return _mm512_fnmadd_pd(a, b, c);
}
#elif defined(__FMA__)
INLINE lanes multiply_add(lanes a, lanes b, lanes c) {
  return _mm256_fmadd_pd(a, b, c);
}
INLINE lanes subtract_product(lanes c, lanes a, lanes b) {
  return _mm256_fnmadd_pd(a, b, c);
}
#elif defined(__aarch64__)
INLINE lanes multiply_add(lanes a, lanes b, lanes c) {
  return (lanes)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
INLINE lanes subtract_product(lanes c, lanes a, lanes b) {
  return (lanes)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
INLINE lanes multiply_add(lanes a, lanes b, lanes c) { return a * b + c; }
INLINE lanes subtract_product(lanes c, lanes a, lanes b) { return c - a * b; }
#define LANES_SPLIT
#endif

/* The rounding error of the product p = a b, exactly; without a fused operation
   by Dekker's splitting, for factors below 2^970. */
INLINE lanes product_error(lanes a, lanes b, lanes p) {
#ifdef LANES_SPLIT
  const double splitter = 0x1p27 + 1.0;
  const lanes ca = a * splitter, cb = b * splitter;
  const lanes a1 = ca - (ca - a), b1 = cb - (cb - b);
  const lanes a2 = a - a1, b2 = b - b1;
  return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#else
  return multiply_add(a, b, -p);
#endif
}

/* Subtracts the product a b from the pair (*hi, *lo): Dot2 of Ogita, Rump &
   Oishi (2005), as base/exact.h has it. */
INLINE void subtract_exactly(lanes a, lanes b, lanes *hi, lanes *lo) {
  const lanes n = -b, p = a * n, e = product_error(a, n, p);
  const lanes t = *hi + p, z = t - *hi;
  *lo += e + ((*hi - (t - z)) + (p - z));
  *hi = t;
}

/* Makes hi the rounded sum of the pairs, as hone_fold does. */
INLINE void fold_lanes(lanes *hi, lanes *lo) {
  const lanes s = *hi + *lo;
  *lo = (*hi - s) + *lo;
  *hi = s;
}

/* ---- Entries ------------------------------------------------------------ */

INLINE many nothing(void) {
  many v;
  for (int p = 0; p < HONE_PARTS; p++)
    v.part[p] = all(0.0);
  return v;
}

INLINE many scaled(many v, lanes by) {
  for (int p = 0; p < HONE_PARTS; p++)
    v.part[p] *= by;
  return v;
}

INLINE many sum_of(many a, many b) {
  for (int p = 0; p < HONE_PARTS; p++)
    a.part[p] += b.part[p];
  return a;
}

/* by = 1 or -1: a + by b. */
INLINE many difference_of(many a, many b) {
  for (int p = 0; p < HONE_PARTS; p++)
    a.part[p] -= b.part[p];
  return a;
}

INLINE many chosen(mask which, many yes, many no) {
  for (int p = 0; p < HONE_PARTS; p++)
    yes.part[p] = choose(which, yes.part[p], no.part[p]);
  return yes;
}

#ifdef HONE_COMPLEX

INLINE many conjugate_of(many v) {
  v.part[1] = -v.part[1];
  return v;
}

/* |re| + |im|, by which pivots are chosen. */
INLINE lanes size_of(many v) {
  return magnitude(v.part[0]) + magnitude(v.part[1]);
}

INLINE lanes square_of(many v) {
  return v.part[0] * v.part[0] + v.part[1] * v.part[1];
}

/* |v|, of numbers whose squares stay in range. */
INLINE lanes modulus_of(many v) { return root(square_of(v)); }

/* c - a b */
INLINE many minus_product(many c, many a, many b) {
  c.part[0] = subtract_product(c.part[0], a.part[0], b.part[0]);
  c.part[1] = subtract_product(c.part[1], a.part[0], b.part[1]);
  c.part[0] = multiply_add(a.part[1], b.part[1], c.part[0]);
  c.part[1] = subtract_product(c.part[1], a.part[1], b.part[0]);
  return c;
}

/* c + a b, every product and sum rounded. */
INLINE many plus_rounded(many c, many a, many b) {
  c.part[0] += a.part[0] * b.part[0] - a.part[1] * b.part[1];
  c.part[1] += a.part[0] * b.part[1] + a.part[1] * b.part[0];
  return c;
}

INLINE many product_of(many a, many b) { return plus_rounded(nothing(), a, b); }

INLINE many reciprocal_of(many v) {
  const lanes square = square_of(v);
  v.part[0] = v.part[0] / square;
  v.part[1] = -v.part[1] / square;
  return v;
}

INLINE void subtract_exact_product(many a, many b, many *hi, many *lo) {
  subtract_exactly(a.part[0], b.part[0], &hi->part[0], &lo->part[0]);
  subtract_exactly(-a.part[1], b.part[1], &hi->part[0], &lo->part[0]);
  subtract_exactly(a.part[0], b.part[1], &hi->part[1], &lo->part[1]);
  subtract_exactly(a.part[1], b.part[0], &hi->part[1], &lo->part[1]);
}

#else

INLINE many conjugate_of(many v) { return v; }
INLINE lanes size_of(many v) { return magnitude(v.part[0]); }
INLINE lanes square_of(many v) { return v.part[0] * v.part[0]; }
INLINE lanes modulus_of(many v) { return magnitude(v.part[0]); }
INLINE many minus_product(many c, many a, many b) {
  c.part[0] = subtract_product(c.part[0], a.part[0], b.part[0]);
  return c;
}
INLINE many plus_rounded(many c, many a, many b) {
  c.part[0] += a.part[0] * b.part[0];
  return c;
}
INLINE many product_of(many a, many b) {
  a.part[0] *= b.part[0];
  return a;
}
INLINE many reciprocal_of(many v) {
  v.part[0] = all(1.0) / v.part[0];
  return v;
}
INLINE void subtract_exact_product(many a, many b, many *hi, many *lo) {
  subtract_exactly(a.part[0], b.part[0], &hi->part[0], &lo->part[0]);
}

#endif

INLINE void fold(many *hi, many *lo) {
  for (int p = 0; p < HONE_PARTS; p++)
    fold_lanes(&hi->part[p], &lo->part[p]);
}

/* Every lane gets the entry of lane l. */
INLINE many entry_everywhere(many v, int l) {
  for (int p = 0; p < HONE_PARTS; p++)
    v.part[p] = lane_everywhere(v.part[p], l);
  return v;
}

/* Entry of one lane. */
INLINE void put_lane(many *v, int l, hone_entry e) {
  v->part[0][l] = hone_real(e);
  if (HONE_PARTS == 2)
    v->part[HONE_PARTS - 1][l] = hone_imag(e);
}

/* Every lane gets this entry. */
INLINE many everywhere_of(hone_entry e) {
  many v;
  v.part[0] = all(hone_real(e));
  if (HONE_PARTS == 2)
    v.part[HONE_PARTS - 1] = all(hone_imag(e));
  return v;
}

/* LANES entries that lie one behind the other, a lane each. */
INLINE many load_lanes(const hone_entry *from) {
  many v;
#if defined(HONE_COMPLEX) && defined(__AVX512F__)
  const double *at = (const double *)from;
  const __m512d a = _mm512_loadu_pd(at), b = _mm512_loadu_pd(at + LANES);
  const __m512i re = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i im = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
  v.part[0] = (lanes)_mm512_permutex2var_pd(a, re, b);
  v.part[1] = (lanes)_mm512_permutex2var_pd(a, im, b);
#elif defined(HONE_COMPLEX)
  for (int l = 0; l < LANES; l++)
    put_lane(&v, l, from[l]);
#else
  memcpy(&v, from, sizeof v);
#endif
  return v;
}

INLINE hone_entry lane_of(const many *v, int l) {
  hone_entry e;
  double part[HONE_PARTS];
  for (int p = 0; p < HONE_PARTS; p++)
    part[p] = v->part[p][l];
  memcpy(&e, part, sizeof e);
  return e;
}

#endif
