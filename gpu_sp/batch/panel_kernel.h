/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel whose thread blocks solve systems by panels, one after the other,
   each block in its own part of the workspace, and its launch for one shape. */
#ifndef HONE_DEVICE_BATCH_PANEL_KERNEL_H
#define HONE_DEVICE_BATCH_PANEL_KERNEL_H

#include "gpu_sp/batch/columns.h"
#include "gpu_sp/batch/panel_certify.h"

#include "base/probe_factor.h"
#include "gpu_sp/calls.h"

namespace {

/* Factors S. Returns the size of the smallest pivot, or, of a definite matrix,
   that pivot, which may be negative; the same in all threads. */
template <bool DEFINITE, class System>
__device__ HONE_NOINLINE double factor_panels(const System t) {
  using S = typename System::S;
  double smallest[1] = {HONE_INF};
  held<S> h;
  t.locate();
  t.each_place([&](int i) { t.s->place[i] = S::N; });
  t.sync();
#pragma unroll 1
  for (int q = 0; q < t.panel_count(); q++) {
    const panel_rows<S> rows = rows_of_panel<DEFINITE>(t, q);
    bring_up_to_date<DEFINITE>(t, q, rows, &h);
    if constexpr (DEFINITE)
      factor_definite(t, q, rows, &h, smallest);
    else
      factor_general(t, q, rows, &h, smallest);
    t.sync();
  }
  if (DEFINITE)
    t.all(smallest, smaller());
  return smallest[0];
}

/* Factors, certifies and solves system k. */
template <class S>
__device__ __forceinline__ void solve_by_panels(panel_system<S> *t, int64_t k,
                                                const probe_factors &factors) {
  const hone_device_systems &in = *t->in;
  const uint64_t seed = in.seed + static_cast<uint64_t>(k) * in.seed_step;
  bool serves = false;
  certified m = {};
  t->a = array_of<const number<S::P>>(in.a, k);
  const matrix_norms norms = prepare(*t, seed);
  if (norms.serves) {
    const bool factored = (t->definite ? factor_panels<true>(*t)
                                       : factor_panels<false>(*t)) > 0.0;
    if (factored && !t->definite)
      order_rows(*t);
    if (factored)
      m = certify_panels(*t, norms, seed, factors);
    serves = factored && m.serves;
  }
  if (serves)
    serves = solve_columns(*t, m, norms.norm_rows, k);
  if (t->thread == 0)
    give_outcome(*t, m, serves, k);
  t->sync();
}

template <class S, int BLOCKS>
__global__ void __launch_bounds__(S::THREADS, BLOCKS)
    solve_large(const __grid_constant__ hone_device_systems in,
                const probe_factors factors) {
  HONE_DYNAMIC_SHARED(panel_memory<S>, memory);
  panel_system<S> t;
  t.s = memory;
  t.in = &in;
  t.n = static_cast<int>(in.n);
  t.thread = static_cast<int>(threadIdx.x);
  t.warp = t.thread / 32;
  t.lane = t.thread % 32;
  t.by_row = in.by_row;
  t.by_column = in.by_column;
  t.conjugates = sign_word(in.conjugate);
  t.definite = in.definite;
  t.f = static_cast<number<S::P> *>(in.work) + blockIdx.x * in.work_stride;
  t.ld = (t.n + S::LINE - 1) / S::LINE * S::LINE;
  for (int64_t k = blockIdx.x; k < in.count; k += gridDim.x)
    solve_by_panels(&t, k, factors);
}

/* The function of base/probe_factor.h is that for real numbers here: K vectors
   count as four. */
probe_factors panel_factors_of(int64_t n) {
  const double rows = static_cast<double>(n);
  return {hone_probe_factor_of(4, 1.0), hone_probe_factor_of(4, rows),
          hone_probe_factor_of(PROBES_ALL, 1.0),
          hone_probe_factor_of(PROBES_ALL, rows)};
}

/* The numbers that the factors of one matrix take. */
template <class S> int64_t numbers_of(int64_t n) {
  const int64_t ld = (n + S::LINE - 1) / S::LINE * S::LINE;
  return (n + S::NB - 1) / S::NB * S::NB * ld;
}

/* Finds how many thread blocks are resident at once, and what room each needs.
 */
template <class S, int BLOCKS>
cudaError_t plan(int64_t n, hone_device_room *out) {
  const size_t bytes = panel_bytes<S>::ALL;
  int device = 0, processors = 0, blocks = 0;
  cudaError_t e = cudaFuncSetAttribute(
      solve_large<S, BLOCKS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      static_cast<int>(bytes));
  if (e == cudaSuccess)
    e = cudaGetDevice(&device);
  if (e == cudaSuccess)
    e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                               device);
  if (e == cudaSuccess)
    e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, solve_large<S, BLOCKS>, S::THREADS, bytes);
  out->blocks = static_cast<int64_t>(blocks) * processors;
  out->stride = numbers_of<S>(n);
  return e;
}

template <class S, int BLOCKS>
cudaError_t launch_large(const hone_device_systems &in, cudaStream_t stream) {
  const int64_t blocks = in.count < in.blocks ? in.count : in.blocks;
  HONE_LAUNCH((solve_large<S, BLOCKS>), static_cast<unsigned>(blocks),
              S::THREADS, panel_bytes<S>::ALL, stream, in,
              panel_factors_of(in.n));
  return cudaGetLastError();
}

/* Do plan and launch_large for a shape that is chosen by the order. */
struct planner {
  int64_t n;
  hone_device_room *out;
  template <class S, int BLOCKS> cudaError_t of() const {
    return plan<S, BLOCKS>(n, out);
  }
};

/* Tells the bytes of shared memory. */
struct panel_bytes_of {
  size_t *bytes;
  template <class S, int BLOCKS> cudaError_t of() const {
    *bytes = panel_bytes<S>::ALL;
    return cudaSuccess;
  }
};

struct launcher {
  const hone_device_systems *systems;
  cudaStream_t stream;
  template <class S, int BLOCKS> cudaError_t of() const {
    return launch_large<S, BLOCKS>(*systems, stream);
  }
};

} // namespace

#endif
