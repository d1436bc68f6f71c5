/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a portion in the form that callers get, written where they
   are wanted on the device, or where the host copies them from, and the worst
   of them. So a call whose systems are all solved reads a few numbers from the
   device, and makes no result of its own. api/batch_results.c makes the same
   results on the host. */
#include "gpu_sp/batch/batch.h"

#include "gpu_sp/calls.h"
#include "gpu_sp/launch.h"

#include <cstring>

namespace {

constexpr unsigned ALL = 0xffffffffU;
constexpr int THREADS = 128;

/* The digits that a bound leaves certain, as hone_bounds_digits counts them. */
__device__ int digits_of(double bound) {
  constexpr double least[HONE_DEVICE_DIGITS] = {
      1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,
      1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16};
  int digits = 0;
#pragma unroll
  for (int k = 0; k < HONE_DEVICE_DIGITS; k++)
    digits += bound <= least[k] ? 1 : 0;
  return digits;
}

/* Numbers that were accepted are never NaN. */
__device__ __forceinline__ double larger(double a, double b) {
  return b > a ? b : a;
}

__device__ void take_determinant(const hone_device_determinant &d,
                                 hone_batch_result *r) {
  const double re = d.mantissa[0], im = d.mantissa[1];
  const double size = sqrt(re * re + im * im);
  r->log_abs_det = log(size) + static_cast<double>(d.exponent) * log(2.0);
  r->det_re = re / size;
  r->det_im = im / size;
}

/* The result of system k, which was solved. */
__device__ hone_batch_result result_of(const hone_device_systems &in,
                                       int64_t k) {
  hone_batch_result r = in.results.none;
  r.status = HONE_OK;
  r.precision = 64;
  r.digits = HONE_DEVICE_DIGITS;
  r.backward_error = r.normwise_error = r.residual_error = r.forward_error =
      0.0;
  r.rcond = in.rcond[k];
  for (int64_t c = 0; c < in.nrhs; c++) {
    const hone_block_column &column = in.column[k * in.nrhs + c];
    r.iterations = max(r.iterations, column.corrections);
    r.backward_error = larger(r.backward_error, column.componentwise);
    r.normwise_error = larger(r.normwise_error, column.normwise);
    r.residual_error = larger(r.residual_error, column.residual);
    r.forward_error = larger(r.forward_error, column.forward);
  }
  r.digits = digits_of(r.forward_error);
  if (in.determinant != nullptr)
    take_determinant(in.determinant[k], &r);
  return r;
}

using word = unsigned long long;
constexpr int WORDS = sizeof(hone_batch_result) / sizeof(word);
static_assert(sizeof(hone_batch_result) % sizeof(word) == 0, "whole words");

/* Writes as much of a block's results as the caller's have, side by side from
   'to' on. A thread has one result; their words go by way of shared memory, so
   that those that lie side by side are written together. */
__device__ void give(const hone_batch_result &r, int64_t count, char *to,
                     size_t bytes) {
  __shared__ word given[THREADS][WORDS];
  const int thread = static_cast<int>(threadIdx.x);
  memcpy(given[thread], &r, sizeof r);
  __syncthreads();
  const char *const from = reinterpret_cast<const char *>(&given[0][0]);
  if ((reinterpret_cast<uintptr_t>(to) | bytes) % sizeof(word) == 0) {
    const int words = static_cast<int>(bytes / sizeof(word));
    for (int i = thread; i < static_cast<int>(count) * words; i += THREADS)
      reinterpret_cast<word *>(to)[i] = given[i / words][i % words];
  } else if (thread < count) {
    for (size_t i = 0; i < bytes; i++)
      to[static_cast<size_t>(thread) * bytes + i] =
          from[static_cast<size_t>(thread) * sizeof r + i];
  }
}

/* Numbers that are not negative are ordered as their bits are. */
__device__ word bits_of(double v) {
  return static_cast<word>(__double_as_longlong(v));
}

/* Raises *to to the largest of the warp's numbers. */
__device__ void raise(word v, word *to) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const word other = __shfl_xor_sync(ALL, v, by);
    v = other > v ? other : v;
  }
  if (threadIdx.x % 32 == 0)
    (void)atomicMax(to, v);
}

/* One thread for each system. */
__global__ void __launch_bounds__(THREADS)
    sum_up(const __grid_constant__ hone_device_systems in) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * THREADS +
                    static_cast<int>(threadIdx.x);
  hone_device_worst *const worst = in.results.worst;
  const bool is = k < in.count, solved = is && in.rcond[k] > 0.0;
  hone_batch_result r = in.results.none;
  if (solved)
    r = result_of(in, k);
  if (in.results.to != nullptr) {
    const int64_t first = k - static_cast<int>(threadIdx.x);
    give(r, min(in.count - first, static_cast<int64_t>(THREADS)),
         hone_given_pointer(in.results.to +
                            static_cast<size_t>(first) * in.results.bytes),
         in.results.bytes);
  }
  raise(solved ? bits_of(r.backward_error) : 0, &worst->backward);
  raise(solved ? bits_of(r.normwise_error) : 0, &worst->normwise);
  raise(solved ? bits_of(r.residual_error) : 0, &worst->residual);
  raise(solved ? bits_of(r.forward_error) : 0, &worst->forward);
  raise(solved ? ~bits_of(r.rcond) : 0, &worst->not_rcond);
  raise(solved ? static_cast<word>(r.iterations) : 0, &worst->iterations);
  const unsigned served = __ballot_sync(ALL, solved);
  if (threadIdx.x % 32 == 0)
    (void)atomicAdd(&worst->served, static_cast<word>(__popc(served)));
}

} // namespace

int hone_device_batch_sum_up(const hone_device_systems *s, void *stream) {
  const int64_t blocks = (s->count + THREADS - 1) / THREADS;
  if (blocks < 1)
    return HONE_OK;
  HONE_LAUNCH(sum_up, static_cast<unsigned>(blocks), THREADS, 0,
              static_cast<cudaStream_t>(stream), *s);
  return CALL(cudaGetLastError());
}
