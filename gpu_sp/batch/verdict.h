/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits, and what is found of a matrix and of its factors, for all kernels for
   batches. Device code. */
#ifndef HONE_DEVICE_BATCH_VERDICT_H
#define HONE_DEVICE_BATCH_VERDICT_H

#include "gpu_sp/batch/batch.h"
#include "gpu_sp/batch/numbers.h"
#include "gpu_sp/batch/threads.h"

namespace {

/* As in cpu_batch/pack.h. */
constexpr double LARGEST_ENTRY = 0x1p300, SMALLEST_ENTRY = 0x1p-300;
constexpr double LEVEL = 0x1p6, NEAR_ONE = 0x1p20;

/* The power of two by which v becomes at least 1 and less than 2. */
__device__ __forceinline__ double levelling(double v) {
  const long long exponent = __double_as_longlong(v) & 0x7ff0000000000000LL;
  return __longlong_as_double(0x7fe0000000000000LL - exponent);
}

/* Norms that the certificate needs, the same in all threads. */
struct matrix_norms {
  bool serves, plain; /* plain: not scaled */
  double norm_rows, norm_cols, norm_scaled;
};

/* As in cpu_batch/certify.h: the bound on ||E|| that the few vectors, and all
   of them, have to show, and where rounding errors might count. */
constexpr double FEW_BOUND = 0x1p-6, ALL_BOUND = 0.9, FEW_NOISE = 1.0 / 64.0;
constexpr int PROBES_ALL = 12; /* real vectors; half as many complex ones */
/* Covers the rounding of sums of up to 2^14 squares. */
constexpr double SUMMED = 1.0 + 0x1p-36;

/* Factors of the two statements (base/probe_factor.h): with S::K vectors and
   with all, for one number and for n rows. */
struct probe_factors {
  double few, few_rows, all, all_rows;
};

/* Random number of this index, uniform in [-1, 1): base/vectors.c has the
   same. */
__device__ __forceinline__ double random_unit(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * HONE_RANDOM_STEP;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<double>(static_cast<int64_t>(z >> 11)) * 0x1p-52 - 1.0;
}

/* The verdict on an inverse or on factors, the same in all threads. */
struct certified {
  bool serves;
  double contraction, inverse, rcond, rcond_scaled;
};

} // namespace

#endif
