/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a float into the 16-bit parts that tensor cores multiply: the high
   part is the float rounded to FP16 or BF16, the low part is the remainder,
   rounded likewise. Then: where the parts of rows of U go. Device code;
   included by the .cu files whose kernels split. Read steps.cu next. */
#ifndef HONE_CUDA_SPLIT_FLOAT_H
#define HONE_CUDA_SPLIT_FLOAT_H

#include "gpu_sp/factor/number.h"

namespace {

constexpr float FP16_LIMIT = 65000.0F;

struct half_type {
  typedef __half type;
  static constexpr bool bounded = true;
  static __device__ __forceinline__ __half of(float v) {
    return __float2half_rn(v);
  }
  static __device__ __forceinline__ float back(__half v) {
    return __half2float(v);
  }
};

struct bfloat_type {
  typedef __nv_bfloat16 type;
  static constexpr bool bounded = false;
  static __device__ __forceinline__ __nv_bfloat16 of(float v) {
    return __float2bfloat16_rn(v);
  }
  static __device__ __forceinline__ float back(__nv_bfloat16 v) {
    return __bfloat162float(v);
  }
};

template <class T> struct two_parts { typename T::type hi, lo; };

/* v = hi + lo, nearly. *overflow becomes 1 where v is beyond FP16, or NaN. */
template <class T>
__device__ __forceinline__ two_parts<T> split(float v, int *overflow) {
  two_parts<T> p;
  if (T::bounded && !(fabsf(v) <= FP16_LIMIT))
    *overflow = 1; /* many threads may write the same */
  p.hi = T::of(v);
  p.lo = T::of(v - T::back(p.hi));
  return p;
}

/* Where the parts of a row of U go: 'out' is the right operand of products,
   'left' (S = U^H U alone) the left one. */
template <class T> struct rows_out {
  typename T::type *out;
  int64_t ldo;
  typename T::type *left;
  int64_t ldl;
  hone_split_place place;
  int *overflow;
};

/* Returns the place of a later inner panel of the same outer panel. Products
   with low parts are in the reverse order, so that those of the first inner
   panels lie together (operands.h). */
__device__ __forceinline__ hone_split_place place_behind(hone_split_place place,
                                                         int inner) {
  place.lo -= inner * 2 * HONE_WIDE;
  place.hi -= inner * 2 * HONE_WIDE;
  place.hh += inner * HONE_WIDE;
  return place;
}

/* Writes the parts of one float into column 'at' of row 'i' of the left
   operand, whose places are those of L's parts. */
template <class T, bool THREE>
__device__ __forceinline__ void put_left_float(const rows_out<T> &o, float v,
                                               int i, int64_t at) {
  const two_parts<T> p = split<T>(v, o.overflow);
  typename T::type *to = o.left + i * o.ldl + at;
  to[o.place.hh * o.ldl] = p.hi;
  if (THREE) {
    to[o.place.lo * o.ldl] = p.hi;
    to[o.place.hi * o.ldl] = p.lo;
  }
}

/* Writes entry (i, at) of U into the left operand, which has U^H: a complex
   entry as its real part and below it the imaginary part of its conjugate. */
template <class T, bool THREE>
__device__ __forceinline__ void put_left(const rows_out<T> &o, number v, int i,
                                         int64_t at) {
#ifdef HONE_COMPLEX
  put_left_float<T, THREE>(o, v.re, 2 * i, at);
  put_left_float<T, THREE>(o, -v.im, 2 * i + 1, at);
#else
  put_left_float<T, THREE>(o, v, i, at);
#endif
}

#ifdef HONE_COMPLEX

/* Writes a 2 x 2 block (a b; -b a) of one part. */
template <class V>
__device__ __forceinline__ void put_block(V a, V b, V minus_b, V *to,
                                          int64_t ldo) {
  struct alignas(2 * sizeof(V)) row {
    V x, y;
  };
  *reinterpret_cast<row *>(to) = {a, b};
  *reinterpret_cast<row *>(to + ldo) = {minus_b, a};
}

/* Writes entry (i, at) of the rows of U into the right operand: as a block, see
   factor.h. */
template <class T, bool THREE>
__device__ __forceinline__ void put_right(const rows_out<T> &o, number v, int i,
                                          int64_t at) {
  const two_parts<T> re = split<T>(v.re, o.overflow);
  const two_parts<T> im = split<T>(v.im, o.overflow);
  const two_parts<T> minus = split<T>(-v.im, o.overflow);
  typename T::type *to = o.out + 2 * i * o.ldo + 2 * at;
  put_block(re.hi, im.hi, minus.hi, to + o.place.hh * o.ldo, o.ldo);
  if (THREE) {
    put_block(re.lo, im.lo, minus.lo, to + o.place.lo * o.ldo, o.ldo);
    put_block(re.hi, im.hi, minus.hi, to + o.place.hi * o.ldo, o.ldo);
  }
}

#else

/* Writes entry (i, at) of the rows of U into the right operand. */
template <class T, bool THREE>
__device__ __forceinline__ void put_right(const rows_out<T> &o, float v, int i,
                                          int64_t at) {
  const two_parts<T> p = split<T>(v, o.overflow);
  typename T::type *to = o.out + i * o.ldo + at;
  to[o.place.hh * o.ldo] = p.hi;
  if (THREE) {
    to[o.place.lo * o.ldo] = p.lo;
    to[o.place.hi * o.ldo] = p.hi;
  }
}

#endif

} // namespace

#endif
