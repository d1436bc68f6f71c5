/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries in double precision as kernels over vectors compute with them: a
   double, or a complex number. Device code. */
#ifndef HONE_CUDA_ENTRIES_H
#define HONE_CUDA_ENTRIES_H

#include "gpu_sp/launch.h"

#include <cfloat>

namespace {

/* The powers of two by which an entry is multiplied, one after the other. */
struct scale_pair {
  double first, second;
};

/* Returns those of s = r a c. As in base/entry.h: r a may be out of range
   though s is not, but r c is in range then. */
__device__ inline scale_pair scale_pair_of(double r, double c) {
  const double both = r * c;
  const bool fits = both >= DBL_MIN && both <= DBL_MAX;
  return {fits ? both : r, fits ? 1.0 : c};
}

/* Returns the larger size; NaN if there is one. */
__host__ __device__ inline double larger(double most, double size) {
  return size <= most || isnan(most) ? most : size;
}

#ifdef HONE_COMPLEX

/* Returns the modulus. Where the sum of squares may have lost digits, or is not
   finite, the larger part is taken out of the root. */
__device__ inline double modulus(double re, double im) {
  const double square = __fma_rn(re, re, __dmul_rn(im, im));
  if (square > 0x1p-900 && square < 0x1p1000)
    return sqrt(square);
  re = fabs(re);
  im = fabs(im);
  const double most = re > im ? re : im, least = re > im ? im : re;
  const double q = least / (most > 0.0 ? most : 1.0);
  return most * sqrt(1.0 + q * q);
}

__device__ inline hone_entry zero_entry() { return {0.0, 0.0}; }
__device__ inline hone_entry one_entry() { return {1.0, 0.0}; }
__device__ inline hone_entry entry_of(double re, double im) { return {re, im}; }
__device__ inline double real_part(const hone_entry &v) { return v.re; }
__device__ inline double imaginary_part(const hone_entry &v) { return v.im; }
__device__ inline hone_entry conjugate_of(const hone_entry &v) {
  return {v.re, -v.im};
}
__device__ inline double size_of(const hone_entry &v) {
  return modulus(v.re, v.im);
}
/* Returns |v|^2. */
__device__ inline double square_of(const hone_entry &v) {
  return v.re * v.re + v.im * v.im;
}
/* Returns the conjugate of v / |v|, or 1 where v is 0. */
__device__ inline hone_entry conjugate_sign_of(const hone_entry &v) {
  const double size = size_of(v);
  return size > 0.0 ? conjugate_of({v.re / size, v.im / size}) : one_entry();
}
__device__ inline hone_entry operator*(double by, const hone_entry &v) {
  return {by * v.re, by * v.im};
}
__device__ inline hone_entry operator+(const hone_entry &v,
                                       const hone_entry &w) {
  return {v.re + w.re, v.im + w.im};
}
__device__ inline hone_entry operator-(const hone_entry &v,
                                       const hone_entry &w) {
  return {v.re - w.re, v.im - w.im};
}
/* Returns v + a x. */
__device__ inline hone_entry
plus_product(const hone_entry &v, const hone_entry &a, const hone_entry &x) {
  return {fma(-a.im, x.im, fma(a.re, x.re, v.re)),
          fma(a.im, x.re, fma(a.re, x.im, v.im))};
}
/* Returns the entry of F at f. */
__device__ inline hone_entry widened(const float *f) {
  const float2 v = *reinterpret_cast<const float2 *>(f);
  return {static_cast<double>(v.x), static_cast<double>(v.y)};
}

#else

__device__ inline double zero_entry() { return 0.0; }
__device__ inline double one_entry() { return 1.0; }
__device__ inline double entry_of(double re, double) { return re; }
__device__ inline double real_part(double v) { return v; }
__device__ inline double imaginary_part(double) { return 0.0; }
__device__ inline double conjugate_of(double v) { return v; }
__device__ inline double size_of(double v) { return v < 0.0 ? -v : v; }
__device__ inline double square_of(double v) { return v * v; }
__device__ inline double conjugate_sign_of(double v) {
  return v >= 0.0 ? 1.0 : -1.0;
}
__device__ inline double plus_product(double v, double a, double x) {
  return fma(a, x, v);
}
__device__ inline double widened(const float *f) {
  return static_cast<double>(*f);
}

#endif

} // namespace

#endif
