/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a float into the 16-bit parts that tensor cores multiply: the high
   part is the float rounded to FP16 or BF16, the low part is the remainder,
   rounded likewise. Device code; included by the .cu files whose kernels split.
   Read steps.cu next. */
#ifndef HONE_CUDA_SPLIT_FLOAT_H
#define HONE_CUDA_SPLIT_FLOAT_H

#include "gpu_sp/factor/factor.h"

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

} // namespace

#endif
