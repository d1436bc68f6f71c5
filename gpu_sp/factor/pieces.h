/* SPDX-License-Identifier: BSD-3-Clause */
/* How a float is cut into the pieces that tensor cores multiply. C++;
   included by the .cu files whose kernels make pieces. */
#ifndef HONE_CUDA_PIECES_H
#define HONE_CUDA_PIECES_H

#include "gpu_sp/kernels.h"

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

template <class T> struct pieces_of { typename T::type hi, lo; };

template <class T>
__device__ __forceinline__ pieces_of<T> cut(float v, int *overflow) {
  pieces_of<T> p;
  if (T::bounded && !(fabsf(v) <= FP16_LIMIT))
    *overflow = 1; /* many may write the same */
  p.hi = T::of(v);
  p.lo = T::of(v - T::back(p.hi));
  return p;
}

} // namespace

#endif
