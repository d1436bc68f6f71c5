/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry in single precision as the kernels of the panels and of the rows of
   U compute with it: a float, or a complex number. In shared memory the real
   and the imaginary parts of a column are columns of their own, so that threads
   in neighbouring rows read neighbouring words. Device code. Read register_lu.h
   next. */
#ifndef HONE_CUDA_NUMBER_H
#define HONE_CUDA_NUMBER_H

#include "gpu_sp/factor/factor.h"

namespace {

/* Returns 1 / v nearly to the last bit, and 0 for 0. Where |v| > 2^126 the
   result is 0, where |v| < 2^-126 it is not finite; the growth factor then
   shows it. */
__device__ __forceinline__ float real_reciprocal(float v) {
  const float r = hone_reciprocal(v);
  return v != 0.0F ? fmaf(fmaf(-v, r, 1.0F), r, r) : 0.0F;
}

#ifdef HONE_COMPLEX

struct __align__(8) number {
  float re, im;
};

__device__ __forceinline__ number number_of(float re) { return {re, 0.0F}; }
/* Returns |re v| + |im v|, by which pivots are compared, as in LAPACK. */
__device__ __forceinline__ float size_of(number v) {
  return fabsf(v.re) + fabsf(v.im);
}
__device__ __forceinline__ bool is_zero(number v) {
  return v.re == 0.0F && v.im == 0.0F;
}
__device__ __forceinline__ number operator-(number v) { return {-v.re, -v.im}; }
__device__ __forceinline__ number operator*(number a, number b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ number plus(number a, number b) {
  return {a.re + b.re, a.im + b.im};
}
/* Returns a - l u. */
__device__ __forceinline__ number less_product(number a, number l, number u) {
  return {a.re - l.re * u.re + l.im * u.im, a.im - l.re * u.im - l.im * u.re};
}
__device__ __forceinline__ number plus_product(number a, number l, number u) {
  return {a.re + l.re * u.re - l.im * u.im, a.im + l.re * u.im + l.im * u.re};
}
/* Returns the first or the second number; each part is chosen by itself,
   because a choice between addresses would put both into local memory. */
__device__ __forceinline__ number choose(bool first, number yes, number no) {
  return {first ? yes.re : no.re, first ? yes.im : no.im};
}
/* Returns 1 / v. The larger part is brought to [1, 2) by a power of two, so
   that no square overflows or vanishes; where it is below 2^-126 or from 2^127
   on the result is not finite. */
__device__ __forceinline__ number reciprocal(number v) {
  const float most = fmaxf(fabsf(v.re), fabsf(v.im));
  const unsigned e = __float_as_uint(most) >> 23;
  const float scale = __uint_as_float(e < 254U ? (254U - e) << 23 : 0U);
  const float re = v.re * scale, im = v.im * scale;
  const float by = real_reciprocal(re * re + im * im) * scale;
  const float none = e < 254U ? 0.0F : nanf("");
  return is_zero(v) ? number_of(0.0F) : number{re * by + none, none - im * by};
}

__device__ __forceinline__ number inverse_of(number v) { return reciprocal(v); }
__device__ __forceinline__ float real_of(number v) { return v.re; }
__device__ __forceinline__ number conjugate(number v) { return {v.re, -v.im}; }
__device__ __forceinline__ number times(number v, float by) {
  return {v.re * by, v.im * by};
}
/* Returns the v of another lane of the warp. */
__device__ __forceinline__ number shuffle(number v, int lane) {
  return {__shfl_sync(0xffffffffU, v.re, lane),
          __shfl_sync(0xffffffffU, v.im, lane)};
}

/* Load and store a number of F. */
__device__ __forceinline__ number load_number(const float *f) {
  const float2 v = *reinterpret_cast<const float2 *>(f);
  return {v.x, v.y};
}
__device__ __forceinline__ void store_number(float *f, number v) {
  *reinterpret_cast<float2 *>(f) = make_float2(v.re, v.im);
}

/* Column c of row i in shared memory, columns 'stride' floats apart. */
__device__ __forceinline__ number get(const float *s, int stride, int c,
                                      int i) {
  return {s[2 * c * stride + i], s[(2 * c + 1) * stride + i]};
}
__device__ __forceinline__ void put(float *s, int stride, int c, int i,
                                    number v) {
  s[2 * c * stride + i] = v.re;
  s[(2 * c + 1) * stride + i] = v.im;
}

__device__ __forceinline__ float4 four_of(const number *v) {
  return make_float4(v[0].re, v[0].im, v[1].re, v[1].im);
}
__device__ __forceinline__ void take_four(const float4 &f, number *v) {
  v[0] = {f.x, f.y};
  v[1] = {f.z, f.w};
}

#else

typedef float number;

__device__ __forceinline__ number number_of(float v) { return v; }
__device__ __forceinline__ float size_of(number v) { return fabsf(v); }
__device__ __forceinline__ bool is_zero(number v) { return v == 0.0F; }
__device__ __forceinline__ number plus(number a, number b) { return a + b; }
__device__ __forceinline__ number less_product(number a, number l, number u) {
  return a - l * u;
}
__device__ __forceinline__ number plus_product(number a, number l, number u) {
  return a + l * u;
}
__device__ __forceinline__ number choose(bool first, number yes, number no) {
  return first ? yes : no;
}
__device__ __forceinline__ number reciprocal(number v) {
  return real_reciprocal(v);
}
/* Returns 1 / v, to the last bit, and 0 for 0. */
__device__ __forceinline__ number inverse_of(number v) {
  return v != 0.0F ? 1.0F / v : 0.0F;
}
__device__ __forceinline__ float real_of(number v) { return v; }
__device__ __forceinline__ number conjugate(number v) { return v; }
__device__ __forceinline__ number times(number v, float by) { return v * by; }
__device__ __forceinline__ number shuffle(number v, int lane) {
  return __shfl_sync(0xffffffffU, v, lane);
}

__device__ __forceinline__ number load_number(const float *f) { return *f; }
__device__ __forceinline__ void store_number(float *f, number v) { *f = v; }

__device__ __forceinline__ number get(const float *s, int stride, int c,
                                      int i) {
  return s[c * stride + i];
}
__device__ __forceinline__ void put(float *s, int stride, int c, int i,
                                    number v) {
  s[c * stride + i] = v;
}

__device__ __forceinline__ float4 four_of(const number *v) {
  return make_float4(v[0], v[1], v[2], v[3]);
}
__device__ __forceinline__ void take_four(const float4 &f, number *v) {
  v[0] = f.x;
  v[1] = f.y;
  v[2] = f.z;
  v[3] = f.w;
}

#endif

enum { NUMBERS_IN_FOUR = 4 / HONE_PARTS }; /* of a load of four floats */

} // namespace

#endif
