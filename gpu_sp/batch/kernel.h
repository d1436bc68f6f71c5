/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel that solves one system of a batch in each thread block, and its
   launch for one shape. */
#ifndef HONE_DEVICE_BATCH_KERNEL_H
#define HONE_DEVICE_BATCH_KERNEL_H

#include "gpu_sp/batch/solve.h"

#include "base/probe_factor.h"
#include "gpu_sp/calls.h"

namespace {

/* det(A) = parity prod u_kk / prod (r_i c_i), as a mantissa and an exponent.
   One thread computes it. */
template <class S>
__device__ __forceinline__ void take_determinant(const system<S> &t,
                                                 hone_block_lane *out) {
  number<S::P> product = make<S::P>(1.0);
  unsigned long long seen[2] = {0, 0};
  int64_t exponent = 0;
  for (int k = 0; k < t.n; k++) {
    int shift = 0;
    product = product_of(product, t.s->pivot[k]);
    (void)frexp(extreme_of(product), &shift);
    for (int p = 0; p < S::P; p++)
      product.part[p] = ldexp(product.part[p], -shift);
    exponent += shift - ilogb(t.s->row[k]) - ilogb(t.s->col[k]);
    /* Every cycle of an even number of rows changes the sign. */
    const bool new_cycle = !(seen[k / 64] >> k % 64 & 1);
    for (int i = t.s->from[k]; new_cycle && i != k; i = t.s->from[i]) {
      seen[i / 64] |= 1ULL << i % 64;
      product = scaled(product, -1.0);
    }
  }
  out->determinant[0] = product.part[0];
  out->determinant[1] = S::P == 2 ? product.part[S::P - 1] : 0.0;
  out->exponent = exponent;
}

template <class T>
__device__ __forceinline__ T *array_of(const hone_device_arrays &in,
                                       int64_t k) {
  const void *const at = in.list != nullptr
                             ? in.list[k]
                             : static_cast<const T *>(in.first) + k * in.stride;
  return hone_given_pointer(static_cast<T *>(const_cast<void *>(at)));
}

template <class S>
__device__ __forceinline__ void
give_lane(const system<S> &t, const matrix_norms &norms, const certified &m,
          const pivots &p, bool serves, hone_block_lane *to) {
  hone_block_lane lane = {};
  lane.serves = serves;
  lane.rcond = m.rcond;
  lane.rcond_scaled = m.rcond_scaled;
  lane.contraction = m.contraction;
  lane.inverse = m.inverse;
  lane.norm = norms.norm_rows;
  lane.pivot = p.at;
  if (t.in->determinants && serves)
    take_determinant(t, &lane);
  *to = lane;
}

/* Solves for all right-hand sides, until one is not accepted. */
template <class S>
__device__ __forceinline__ bool
solve_columns(const system<S> &t, const certified &m, double norm, int64_t k) {
  using entry = number<S::P>;
  const hone_device_systems &in = *t.in;
  const entry *b = array_of<const entry>(in.b, k);
  entry *x = array_of<entry>(in.x, k);
  entry *room = in.room != nullptr
                    ? static_cast<entry *>(in.room) + k * in.nrhs * in.n
                    : nullptr;
  bool accepted = true;
  for (int64_t c = 0; c < in.nrhs && accepted; c++) {
    entry *to = room != nullptr ? room + c * in.n : x + c * in.ldx;
    const hone_block_column column =
        solve_column(t, m, norm, b + c * in.ldb, to);
    accepted = column.accepted;
    if (t.thread == 0)
      in.column[k * in.nrhs + c] = column;
  }
  for (int64_t c = 0; c < in.nrhs && accepted && room != nullptr; c++)
    if (t.is_row())
      x[c * in.ldx + t.thread] = room[c * in.n + t.thread];
  return accepted;
}

template <class S, int BLOCKS>
__global__ void __launch_bounds__(S::THREADS, BLOCKS)
    solve_systems(const __grid_constant__ hone_device_systems in,
                  const probe_factors factors) {
  HONE_DYNAMIC_SHARED(shared_memory<S>, memory);
  const int64_t k = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  system<S> t;
  t.s = memory;
  t.in = &in;
  t.a = array_of<const number<S::P>>(in.a, k);
  t.n = static_cast<int>(in.n);
  t.thread = thread;
  t.r = thread % S::R;
  t.c = thread / S::R;
  const uint64_t seed = in.seed + static_cast<uint64_t>(k) * in.seed_step;
  matrix_norms norms = load(t);
  scale(t, &norms);
  draw(t, seed);
  multiply<true>(t, seed, [&](int ii, int jj) { return t.m[ii][jj]; });
  const pivots p = invert(t);
  const certified m = certify(t, norms, seed, factors);
  bool serves = m.serves && p.smallest > 0.0;
  if (serves)
    serves = solve_columns(t, m, norms.norm_rows, k);
  if (thread == 0)
    give_lane(t, norms, m, p, serves, &in.lane[k]);
}

/* The function of base/probe_factor.h is that for real numbers here: it counts
   two real vectors, or one complex one, as two. */
probe_factors factors_of(int64_t n) {
  const double rows = static_cast<double>(n);
  return {hone_probe_factor_of(2, 1.0), hone_probe_factor_of(2, rows),
          hone_probe_factor_of(PROBES_ALL, 1.0),
          hone_probe_factor_of(PROBES_ALL, rows)};
}

template <class S, int BLOCKS>
cudaError_t launch(const hone_device_systems &in, cudaStream_t stream) {
  const size_t bytes = sizeof(shared_memory<S>);
  const cudaError_t e = cudaFuncSetAttribute(
      solve_systems<S, BLOCKS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      static_cast<int>(bytes));
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH((solve_systems<S, BLOCKS>), static_cast<unsigned>(in.count),
              S::THREADS, bytes, stream, in, factors_of(in.n));
  return cudaGetLastError();
}

} // namespace

#endif
