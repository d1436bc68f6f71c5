/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums and largest numbers over the threads of a thread block. Device code. */
#ifndef HONE_DEVICE_BATCH_THREADS_H
#define HONE_DEVICE_BATCH_THREADS_H

#include "gpu_sp/launch.h"

namespace {

constexpr unsigned ALL = 0xffffffffU;

/* Waits for all threads of a thread block that has so many warps. */
template <int WARPS> __device__ __forceinline__ void sync_threads() {
  if (WARPS == 1)
    __syncwarp();
  else
    __syncthreads();
}

/* Combine M numbers of each of LANES neighbouring lanes of a warp, which the
   mask names, or of each thread of a thread block; all of these get the
   results. */
template <int LANES, int M, class Op>
__device__ __forceinline__ void combine_lanes(unsigned mask, double (&v)[M],
                                              Op op) {
#pragma unroll
  for (int q = 0; q < M; q++)
#pragma unroll
    for (int by = LANES / 2; by > 0; by /= 2)
      v[q] = op(v[q], __shfl_xor_sync(mask, v[q], by));
}
template <int WARPS, int M, class Op>
__device__ __forceinline__ void combine(double (*scratch)[WARPS], int thread,
                                        double (&v)[M], Op op) {
  combine_lanes<32>(ALL, v, op);
  if (WARPS == 1)
    return;
  sync_threads<WARPS>();
#pragma unroll
  for (int q = 0; q < M; q++)
    if (thread % 32 == 0)
      scratch[q][thread / 32] = v[q];
  sync_threads<WARPS>();
#pragma unroll
  for (int q = 0; q < M; q++) {
    v[q] = scratch[q][0];
    for (int w = 1; w < WARPS; w++)
      v[q] = op(v[q], scratch[q][w]);
  }
}

} // namespace

#endif
