/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of the gradient step. A column of inv(S) with a large 1-norm is
   sought without the host: the signs of y, a solve with S^T, the place of the
   largest entry, and the unit vector that has its 1 there. Read next: probe.cu,
   which solves for that vector beside its own. */
#include "gpu_sp/solve/gradient.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/solve.h"

namespace {

static_assert((int)HONE_GRADIENT_ROWS == (int)ROW_THREADS,
              "a thread block has so many rows");

/* An entry's magnitude and its place; a place is below 2^53. */
struct candidate {
  double size, place;
};

/* Returns the larger one; of equal ones, the one that comes first. */
__device__ inline candidate larger(const candidate &a, const candidate &b) {
  const bool second =
      b.size > a.size || (b.size == a.size && b.place < a.place);
  return second ? b : a;
}

/* Returns the largest of the candidates of all threads. Every thread calls it
   once. */
__device__ inline candidate largest_of_block(candidate mine) {
  __shared__ candidate of[ROW_THREADS];
  const int me = (int)threadIdx.x;
  of[me] = mine;
  __syncthreads();
  for (int left = ROW_THREADS / 2; left > 0; left /= 2) {
    if (me < left)
      of[me] = larger(of[me], of[me + left]);
    __syncthreads();
  }
  return of[0];
}

/* z_i = conj(sign(y_i)). */
__global__ void sign_kernel(int64_t n, const hone_entry *y, hone_entry *z) {
  const int64_t i = row_of_thread();
  if (i < n)
    z[i] = conjugate_sign_of(y[i]);
}

/* Each thread block writes its largest entry, and where it is. No entry is
   larger than NaN; so the place of a vector of NaN is 0. */
__global__ void largest_kernel(int64_t n, const hone_entry *z, candidate *to) {
  const int64_t i = row_of_thread();
  candidate mine = {0.0, 0.0};
  if (i < n && size_of(z[i]) > 0.0)
    mine = {size_of(z[i]), (double)i};
  const candidate most = largest_of_block(mine);
  if (threadIdx.x == 0)
    to[blockIdx.x] = most;
}

/* z becomes the unit vector of the largest of 'count' candidates. */
__global__ void unit_kernel(int64_t n, int count, const candidate *from,
                            hone_entry *z) {
  const int64_t i = row_of_thread();
  candidate mine = {0.0, 0.0};
  for (int e = (int)threadIdx.x; e < count; e += ROW_THREADS)
    mine = larger(mine, from[e]);
  const candidate most = largest_of_block(mine);
  if (i < n)
    z[i] = (double)i == most.place ? one_entry() : zero_entry();
}

/* Each thread block writes the sum of its |z_i|. */
__global__ void sum_kernel(int64_t n, const hone_entry *z, double *sums) {
  __shared__ double of[ROW_THREADS];
  const int64_t i = row_of_thread();
  const int me = (int)threadIdx.x;
  of[me] = i < n ? size_of(z[i]) : 0.0;
  __syncthreads();
  for (int left = ROW_THREADS / 2; left > 0; left /= 2) {
    if (me < left)
      of[me] += of[me + left];
    __syncthreads();
  }
  if (me == 0)
    sums[blockIdx.x] = of[0];
}

} // namespace

int hone_cuda_gradient_begin(hone_cuda *c, cudaStream_t stream,
                             const hone_entry *y, hone_entry *z,
                             hone_entry *room) {
  const int64_t n = c->n;
  const dim3 grid = grid_of(n, 1);
  double *const column = reinterpret_cast<double *>(z);
  candidate *const candidates = reinterpret_cast<candidate *>(room);
  HONE_LAUNCH(sign_kernel, grid, ROW_THREADS, 0, stream, n, y, z);
  int st = CALL(cudaGetLastError());
  /* Rows are not exchanged behind the solve: so the place is the one in F. */
  TRY(hone_cuda_enqueue_solve(c, stream, hone_cuda_transposes(c, true), 1,
                              column, column));
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(largest_kernel, grid, ROW_THREADS, 0, stream, n, z, candidates);
  HONE_LAUNCH(unit_kernel, grid, ROW_THREADS, 0, stream, n, (int)grid.x,
              candidates, z);
  TRY_CUDA(cudaGetLastError());
  return st;
}

int hone_cuda_gradient_sums(hone_cuda *c, const hone_entry *z, double *sums) {
  HONE_LAUNCH(sum_kernel, grid_of(c->n, 1), ROW_THREADS, 0, c->work, c->n, z,
              sums);
  return CALL(cudaGetLastError());
}
