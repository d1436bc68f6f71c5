// SPDX-License-Identifier: BSD-3-Clause
// Plans and launches the triangular solves with float factors, in double
// arithmetic. Read next: triangles.h, sweep.h and wide.h for the kernels,
// invert.cu for the inverses, solve.cu for the callers.

#include "gpu_sp/solve/wide.h"

namespace {

int64_t block_rows(int64_t n) { return (HONE_PARTS * n + B - 1) / B; }

// Returns the words of a set of mailboxes with as many columns as there are.
int64_t box_words(int64_t n) {
  return block_rows(n) * B * hone_triangle_columns(n);
}

bool transposed(enum hone_triangle which) {
  return which == HONE_LOWER_TRANS || which == HONE_UPPER_TRANS;
}

// The members that all columns of a solve share, and the columns of one launch.
struct Solve {
  hone_triangles t;
  hone_solve_columns v; // v.k <= hone_triangle_columns(t.n)
  hone_triangle_work *work;
  cudaStream_t stream;
};

using Kernel = void (*)(int64_t, const float *, int64_t, bool, Plan, Vectors,
                        int64_t);

// Enqueues so many sweeps, from plan.first on, in one launch. doubles: of
// shared memory; number: of the kernel, among all.
cudaError_t launch(Kernel kernel, int doubles, int number, const Solve &s,
                   const Plan &plan, int sweeps) {
  const int bytes = doubles * static_cast<int>(sizeof(double));
  const unsigned bit = 1U << number;
  if (!(s.work->ready & bit)) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess)
      return error;
    s.work->ready |= bit;
  }
  const hone_triangles &t = s.t;
  const bool aligned =
      reinterpret_cast<uintptr_t>(t.t) % sizeof(float2) == 0 && t.ld % 2 == 0;
  const int64_t blocks = sweeps * plan.groups * block_rows(t.n);
  HONE_LAUNCH(kernel, static_cast<unsigned>(blocks), THREADS, bytes, s.stream,
              HONE_PARTS * t.n, t.t, t.ld, aligned, plan,
              Vectors{s.v.from, s.v.to}, s.v.ldv);
  return cudaGetLastError();
}

template <int K>
cudaError_t sweep(bool trans, const Solve &s, const Plan &plan, int sweeps) {
  return launch(trans ? sweep_kernel<K, true> : sweep_kernel<K, false>,
                Shared<K>::size, 2 * K + trans, s, plan, sweeps);
}

template <int K>
cudaError_t wide(bool trans, const Solve &s, const Plan &plan, int sweeps) {
  return launch(trans ? wide_kernel<K, true> : wide_kernel<K, false>,
                WideShared<K>::size, 8 + K / 4 + trans, s, plan, sweeps);
}

cudaError_t launch_some(bool trans, const Solve &s, const Plan &plan,
                        int sweeps, int each) {
  return each == 1   ? sweep<1>(trans, s, plan, sweeps)
         : each == 2 ? sweep<2>(trans, s, plan, sweeps)
         : each == 4 ? sweep<4>(trans, s, plan, sweeps)
         : each == 8 ? wide<8>(trans, s, plan, sweeps)
                     : wide<16>(trans, s, plan, sweeps);
}

// Returns the bytes of shared memory of a group's thread blocks.
int bytes_of(int each) {
  const int doubles = each == 1   ? Shared<1>::size
                      : each == 2 ? Shared<2>::size
                      : each == 4 ? Shared<4>::size
                      : each == 8 ? WideShared<8>::size
                                  : WideShared<16>::size;
  return doubles * static_cast<int>(sizeof(double));
}

// Makes groups of one column where thread blocks cannot have as much shared
// memory as several need.
cudaError_t fit(hone_triangle_work *work, int *each) {
  cudaError_t error = cudaSuccess;
  if (work->shared == 0) {
    int device = 0;
    error = cudaGetDevice(&device);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(
          &work->shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error == cudaSuccess && bytes_of(*each) > work->shared)
    *each = 1;
  return error;
}

// Takes the half of the workspace that is clear, and plans to clear the other.
// Two words of tickets stand before the mailboxes.
cudaError_t take_half(const Solve &s, int columns, Plan *plan) {
  hone_triangle_work *const work = s.work;
  const int64_t box = box_words(s.t.n);
  if (!work->clean) {
    const size_t words = static_cast<size_t>(2 + 4 * box);
    const cudaError_t error =
        cudaMemsetAsync(work->there, 0xff, words * sizeof(long long), s.stream);
    if (error != cudaSuccess)
      return error;
    work->half = work->columns = 0;
  }
  int *const tickets = static_cast<int *>(work->there);
  long long *const boxes = static_cast<long long *>(work->there) + 2;
  const int now = work->half, old = 1 - now;
  for (int i = 0; i < 2; i++) {
    plan->box[i] = boxes + (2 * now + i) * box;
    plan->old_box[i] = boxes + (2 * old + i) * box;
  }
  plan->ticket = tickets + 2 * now;
  plan->old_ticket = tickets + 2 * old;
  plan->old_columns = work->columns;
  work->half = old;
  work->columns = columns;
  return cudaSuccess;
}

cudaError_t solve_some(const hone_sweep *sweep, int sweeps, const Solve &s) {
  Plan plan = {};
  plan.columns = static_cast<int>(s.v.k);
  int each = s.work->group > 0 ? s.work->group
                               : hone_cuda_triangle_group(s.t.n, plan.columns);
  cudaError_t error = fit(s.work, &each);
  plan.groups = (plan.columns + each - 1) / each;
  if (error == cudaSuccess)
    error = take_half(s, plan.groups * each, &plan);
  s.work->clean = false; // unless all goes well
  bool trans[2] = {};
  for (int i = 0; i < sweeps; i++) {
    plan.inverse[i] = sweep[i].inverse;
    // inv(conj(T)) v is the conjugate of inv(T) conj(v).
    plan.turned[i] = sweep[i].conjugate != (i > 0 && sweep[i - 1].conjugate);
    plan.forward[i] =
        sweep[i].which == HONE_LOWER || sweep[i].which == HONE_UPPER_TRANS;
    trans[i] = transposed(sweep[i].which);
  }
  plan.last = sweeps - 1;
  plan.result_turned = sweep[sweeps - 1].conjugate;
  const bool together = sweeps == 2 && trans[0] == trans[1];
  if (error == cudaSuccess)
    error = launch_some(trans[0], s, plan, together ? 2 : 1, each);
  if (error == cudaSuccess && sweeps == 2 && !together) {
    plan.first = 1;
    plan.ticket++;
    error = launch_some(trans[1], s, plan, 1, each);
  }
  s.work->clean = error == cudaSuccess;
  return error;
}

} // namespace

// 1, 2, 4, 8 or 16 of them. Fewer columns let one block
// row follow the other sooner, more read T fewer times. The limits were
// measured on an H200 (docs/performance.md).
int hone_cuda_triangle_group(int64_t n, int columns) {
  const int64_t rows = HONE_PARTS * n;
  if (columns == 1)
    return 1;
  if ((columns + 1) / 2 * rows <= int64_t(3) << 14)
    return 2;
  if (columns <= 4)
    return 4;
  return columns > 8 && (columns + 7) / 8 * rows >= int64_t(1) << 16 ? 16 : 8;
}

int64_t hone_cuda_triangle_bytes(int64_t n) {
  // Tickets, and two sets of two mailboxes.
  return (2 + 4 * box_words(n)) * static_cast<int64_t>(sizeof(long long));
}

cudaError_t hone_cuda_triangles(const hone_sweep *sweep, int sweeps,
                                const hone_triangles &t,
                                const hone_solve_columns &v,
                                hone_triangle_work *work, cudaStream_t stream) {
  if (t.n <= 0)
    return cudaSuccess;
  const int64_t most = hone_triangle_columns(t.n);
  for (int64_t done = 0; done < v.k; done += most) {
    const int64_t left = v.k - done;
    const int64_t columns = left < most ? left : most;
    const hone_solve_columns now = {columns, v.from + done * v.ldv,
                                    v.to + done * v.ldv, v.ldv};
    const cudaError_t error =
        solve_some(sweep, sweeps, Solve{t, now, work, stream});
    if (error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}
