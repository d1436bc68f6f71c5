/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel that solves one system of a batch in each thread block, or a few,
   and its launch for one shape. */
#ifndef HONE_DEVICE_BATCH_KERNEL_H
#define HONE_DEVICE_BATCH_KERNEL_H

#include "gpu_sp/batch/columns.h"
#include "gpu_sp/batch/residual.h"

#include "base/probe_factor.h"
#include "gpu_sp/calls.h"

namespace {

/* r and c of a thread. */
template <class S> __device__ __forceinline__ int row_of_thread(int thread) {
  return S::WHOLE_ROWS ? thread
                       : thread / 32 % S::WARP_ROWS * 8 + thread % 32 / 4;
}
template <class S> __device__ __forceinline__ int column_of_thread(int thread) {
  return S::WHOLE_ROWS ? 0 : thread / 32 / S::WARP_ROWS * 4 + thread % 4;
}

template <class S, int BLOCKS>
__global__ void __launch_bounds__(S::BLOCK, BLOCKS)
    solve_systems(const __grid_constant__ hone_device_systems in,
                  const probe_factors factors) {
  HONE_DYNAMIC_SHARED(unsigned char, memory);
  const int own = static_cast<int>(threadIdx.x) / S::THREADS;
  const int thread = static_cast<int>(threadIdx.x) % S::THREADS;
  const int64_t k = static_cast<int64_t>(blockIdx.x) * S::SYSTEMS + own;
  if (S::SYSTEMS > 1 && k >= in.count)
    return; /* no other system of the warp waits for this one's lanes */
  system<S> t;
  t.s = reinterpret_cast<shared_memory<S> *>(memory + static_cast<size_t>(own) *
                                                          SHARED_STRIDE<S>);
  t.own_lanes = ((1U << S::THREADS % 32) - 1U) << (own * S::THREADS % 32);
  t.in = &in;
  t.a = array_of<const number<S::P>>(in.a, k);
  t.n = static_cast<int>(in.n);
  t.thread = thread;
  t.r = row_of_thread<S>(thread);
  t.c = column_of_thread<S>(thread);
  const uint64_t seed = in.seed + static_cast<uint64_t>(k) * in.seed_step;
  matrix_norms norms = load(t);
  scale(t, &norms);
  draw(t, seed);
  multiply<true>(t, seed, [&](int ii, int jj) { return t.m[ii][jj]; });
  const double smallest_pivot = invert(t);
  const certified m = certify(t, norms, seed, factors);
  bool serves = m.serves && smallest_pivot > 0.0;
  if (serves)
    serves = solve_columns(t, m, norms.norm_rows, k);
  if (thread == 0)
    give_outcome(t, m, serves, k);
}

/* The function of base/probe_factor.h is that for real numbers here: it counts
   two real vectors, or one complex one, as two. */
probe_factors factors_of(int64_t n) {
  const double rows = static_cast<double>(n);
  return {hone_probe_factor_of(2, 1.0), hone_probe_factor_of(2, rows),
          hone_probe_factor_of(PROBES_ALL, 1.0),
          hone_probe_factor_of(PROBES_ALL, rows)};
}

/* The dynamic shared memory that a kernel has without asking. */
constexpr size_t SHARED_UNASKED = 48 << 10;

template <class S, int BLOCKS>
cudaError_t launch(const hone_device_systems &in, cudaStream_t stream) {
  constexpr size_t bytes = SHARED_BYTES<S>;
  cudaError_t e = cudaSuccess;
  if (bytes > SHARED_UNASKED)
    e = cudaFuncSetAttribute(solve_systems<S, BLOCKS>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes));
  if (e != cudaSuccess)
    return e;
  const int64_t blocks = (in.count + S::SYSTEMS - 1) / S::SYSTEMS;
  HONE_LAUNCH((solve_systems<S, BLOCKS>), static_cast<unsigned>(blocks),
              S::BLOCK, bytes, stream, in, factors_of(in.n));
  return cudaGetLastError();
}

/* Both do something with the shape of systems: it is launched, or its shared
   memory is told. */
struct inverse_launcher {
  cudaStream_t stream;
  template <class S, int BLOCKS>
  cudaError_t of(const hone_device_systems &in) const {
    return launch<S, BLOCKS>(in, stream);
  }
};
struct inverse_bytes {
  size_t *bytes;
  template <class S, int BLOCKS>
  cudaError_t of(const hone_device_systems &) const {
    *bytes = SHARED_BYTES<S>;
    return cudaSuccess;
  }
};

} // namespace

#endif
