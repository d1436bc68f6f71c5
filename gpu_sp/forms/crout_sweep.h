/* SPDX-License-Identifier: BSD-3-Clause */
/* Sweeps over sections of the iterative Crout method, and over triangular
   solves by the same iteration, until they are at rest: see crout.h. One kernel
   sweeps every kind of section, in single or double precision, in place. Other
   thread blocks may read an element before or after it changes; in a sweep that
   changes nothing there is no difference. Included by crout.cu and
   crout_triangle.cu alone; read these next. */
#ifndef HONE_CROUT_SWEEP_H
#define HONE_CROUT_SWEEP_H

extern "C" {
#include "base/base.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/forms/crout.h"
#include "gpu_sp/launch.h"

/* A stream, and what the section on it needs. */
struct hone_crout_queue {
  cudaStream_t stream;
  void *a, *prefix; /* device: the section before the iteration; the first terms
                       of its sums */
  int *flags;       /* device, HONE_CROUT_FLAGS */
  int *seen;        /* pinned: the flags as last read */
  hone_crout_blas blas;
};

namespace {

enum { BATCH = 64, BAD = BATCH, LINE = 128 };
static_assert(BAD + 2 <= HONE_CROUT_FLAGS, "one for each sweep, and two");

/* The elements of a section depend on others: DIAGONAL on each other, by rows
   and columns; RIGHT on those above them; BELOW on those to their left. COLUMNS
   is BELOW with division by pivots; UNIT_COLUMNS is BELOW by itself, inside a
   triangular solve. */
enum kind { DIAGONAL, RIGHT, BELOW, COLUMNS, UNIT_COLUMNS };

template <class T> struct section {
  int kind;
  int64_t rows, cols;
  int64_t depth;  /* columns before the section, which every sweep includes */
  const T *lower; /* rows x (depth + ...), ldl */
  const T *upper; /* (depth + ...) x cols, ldu */
  T *z;           /* the section itself, ldz; a part of lower or upper */
  const T *pivot; /* first element of the diagonal with the pivots, ldp */
  int64_t ldl, ldu, ldz, ldp;
  const T *a;      /* the contents of z before the iteration, packed: ldw */
  const T *prefix; /* the first terms of the sums, ldw; NULL: none */
  int64_t ldw;
  const T *scale; /* of the tolerance, for each row; NULL: 1 */
  T tolerance;
};

/* ---- Kernels ------------------------------------------------------------ */

__device__ inline float mul_add(float a, float b, float c) {
  return fmaf(a, b, c);
}
__device__ inline double mul_add(double a, double b, double c) {
  return fma(a, b, c);
}
__device__ inline float magnitude(float v) { return fabsf(v); }
__device__ inline double magnitude(double v) { return fabs(v); }
template <class T> __device__ inline bool finite(T v) { return v - v == T(0); }
__device__ inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the number of terms that the sum of element (i, j) has in its own
   section. */
__device__ inline int64_t terms(int kind, int64_t i, int64_t j) {
  return kind == DIAGONAL ? least(i, j) : kind == RIGHT ? i : j;
}

/* Returns true if the element is divided by a pivot. */
__device__ inline bool divided(int kind, int64_t i, int64_t j) {
  return kind == RIGHT || kind == COLUMNS || (kind == DIAGONAL && i < j);
}
template <class T>
__device__ inline T pivot_of(const section<T> &s, int64_t i, int64_t j) {
  return s.pivot[(s.kind == COLUMNS ? j : i) * (s.ldp + 1)];
}

/* Adds the terms 0 .. count-1, whole tiles, to sum. Beyond the section its last
   row and column are read again, since every thread must load. */
template <class T, int B>
__device__ T whole_tiles(const section<T> &s, int64_t i, int64_t j,
                         int64_t count, T (&lower)[B][B], T (&upper)[B][B],
                         T sum) {
  const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
  const T *l = s.lower + least(i, s.rows - 1) + ty * s.ldl;
  const T *u = s.upper + least(j, s.cols - 1) * s.ldu + tx;
  for (int64_t k = 0; k < count; k += B) {
    lower[ty][tx] = *l;
    upper[ty][tx] = *u;
    l += B * s.ldl;
    u += B;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < B; q++)
      sum = mul_add(lower[q][tx], upper[ty][q], sum);
    __syncthreads();
  }
  return sum;
}

/* Adds the terms from .. end-1, fewer than B; end is the thread's own. */
template <class T, int B>
__device__ T last_tile(const section<T> &s, int64_t i, int64_t j, int64_t from,
                       int64_t end, T (&lower)[B][B], T (&upper)[B][B], T sum) {
  const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
  const int64_t last = s.depth + (s.kind == RIGHT ? s.rows : s.cols) - 1;
  lower[ty][tx] =
      s.lower[least(i, s.rows - 1) + least(from + ty, last) * s.ldl];
  upper[ty][tx] =
      s.upper[least(from + tx, last) + least(j, s.cols - 1) * s.ldu];
  __syncthreads();
  for (int q = 0; q < (int)(end - from); q++)
    sum = mul_add(lower[q][tx], upper[ty][q], sum);
  return sum;
}

/* Computes all elements of the section once. *changed becomes 1 when an element
   changes, or is NaN or Inf. With tolerance 0 a change of the sign of a zero
   alone goes unnoticed; no other element depends on that. before: the flag of
   the sweep before this one, or NULL. If it is 0, this sweep does nothing. */
template <class T, int B>
__global__ void __launch_bounds__(B *B)
    sweep(section<T> s, const int *before, int *changed) {
  __shared__ T lower[B][B], upper[B][B];
  if (before != nullptr && *before == 0)
    return;
  const int64_t i0 = (int64_t)blockIdx.x * B, i = i0 + threadIdx.x;
  const int64_t j0 = (int64_t)blockIdx.y * B, j = j0 + threadIdx.y;
  const bool inside = i < s.rows && j < s.cols;
  const int64_t from = s.depth + terms(s.kind, i0, j0);
  const int64_t end = s.depth + terms(s.kind, i, j);
  T sum = inside && s.prefix != nullptr ? s.prefix[i + j * s.ldw] : T(0);
  sum = whole_tiles<T, B>(s, i, j, from, lower, upper, sum);
  sum = last_tile<T, B>(s, i, j, from, end, lower, upper, sum);
  if (!inside)
    return;
  T v = s.a[i + j * s.ldw] - sum, bound = s.tolerance, unit = 1;
  if (divided(s.kind, i, j)) {
    const T pivot = pivot_of(s, i, j);
    v /= pivot;
    unit = s.scale != nullptr ? magnitude(pivot) : unit;
  }
  if (s.scale != nullptr)
    bound *= s.scale[i];
  T *z = s.z + i + j * s.ldz;
  if (!(magnitude(v - *z) * unit <= bound))
    *changed = 1; /* many threads may write the same */
  *z = v;
}

/* p = lower upper, count terms (whole tiles), summed as in the sweep. */
template <class T, int B>
__global__ void __launch_bounds__(B *B)
    multiply(section<T> s, int64_t count, T *p) {
  __shared__ T lower[B][B], upper[B][B];
  const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
  const int64_t j = (int64_t)blockIdx.y * B + threadIdx.y;
  const T sum = whole_tiles<T, B>(s, i, j, count, lower, upper, T(0));
  if (i < s.rows && j < s.cols)
    p[i + j * s.ldw] = sum;
}

/* Writes the scaled guess. The pivots of a diagonal section are not known yet:
   its own diagonal stands in for them. */
template <class T> __device__ inline T left(const section<T> &s, int64_t at) {
  return s.prefix != nullptr ? s.a[at] - s.prefix[at] : s.a[at];
}
template <class T> __global__ void guess(section<T> s) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t j = blockIdx.y;
  if (i >= s.rows)
    return;
  T v = left(s, i + j * s.ldw);
  if (divided(s.kind, i, j)) {
    const T by =
        s.kind == DIAGONAL ? left(s, i + i * s.ldw) : pivot_of(s, i, j);
    v = finite(v / by) ? v / by : v;
  }
  s.z[i + j * s.ldz] = v;
}

/* Solves the section directly: one thread for each column of U or row of L. */
template <class T> __global__ void direct(section<T> s) {
  const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const bool right = s.kind == RIGHT;
  if (line >= (right ? s.cols : s.rows))
    return;
  for (int64_t q = 0; q < (right ? s.rows : s.cols); q++) {
    const int64_t i = right ? q : line, j = right ? line : q;
    T sum = s.prefix != nullptr ? s.prefix[i + j * s.ldw] : T(0);
    for (int64_t k = 0; k < s.depth + q; k++)
      sum = mul_add(s.lower[i + k * s.ldl], s.upper[k + j * s.ldu], sum);
    const T v = s.a[i + j * s.ldw] - sum;
    s.z[i + j * s.ldz] = right ? v / pivot_of(s, i, j) : v;
  }
}

/* Raises bad[0] to to_end less the first column with a zero pivot, and bad[1]
   to to_end less the first column with an entry that is not finite. They start
   as 0. */
template <class T>
__global__ void find_bad(section<T> s, int64_t to_end, int *bad) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t j = blockIdx.y;
  if (i >= s.rows)
    return;
  const T v = s.z[i + j * s.ldz];
  if (s.kind == DIAGONAL && i == j && v == T(0))
    atomicMax(bad, (int)(to_end - j));
  if (!finite(v))
    atomicMax(bad + 1, (int)(to_end - j));
}

/* ---- Sweeps ------------------------------------------------------------- */

int status_of(cudaError_t e) {
  if (e == cudaSuccess)
    return HONE_OK;
  (void)cudaGetLastError(); /* clears the error, which is not the next call's */
  return e == cudaErrorMemoryAllocation ? HONE_NO_MEMORY : HONE_DEVICE_FAILED;
}
int launched() { return status_of(cudaGetLastError()); }

template <class T> struct task {
  section<T> s;
  hone_crout_queue *on;
  int64_t r0, c0;        /* the section's place in the matrix */
  int64_t bound, sweeps; /* most sweeps; sweeps made */
  bool at_rest;
};

dim3 tiles(int64_t rows, int64_t cols, int block) {
  return dim3((unsigned)((rows + block - 1) / block),
              (unsigned)((cols + block - 1) / block));
}
dim3 lines(int64_t rows, int64_t cols) {
  return dim3((unsigned)((rows + LINE - 1) / LINE),
              (unsigned)HONE_MIN(cols, (int64_t)65535));
}

int read_flags(const hone_crout_queue &on, int from, int count) {
  return status_of(cudaMemcpyAsync(on.seen + from, on.flags + from,
                                   (size_t)count * sizeof(int),
                                   cudaMemcpyDeviceToHost, on.stream));
}
int clear_flags(const hone_crout_queue &on, int from, int count) {
  return status_of(cudaMemsetAsync(on.flags + from, 0,
                                   (size_t)count * sizeof(int), on.stream));
}
int wait(const hone_crout_queue &on) {
  return status_of(cudaStreamSynchronize(on.stream));
}

template <class T> int enqueue(const task<T> &t, int block, int count) {
  void (*kernel)(section<T>, const int *, int *) = sweep<T, 32>;
  if (block == 8)
    kernel = sweep<T, 8>;
  if (block == 16)
    kernel = sweep<T, 16>;
  const dim3 grid = tiles(t.s.rows, t.s.cols, block), threads(block, block);
  const int *before = nullptr;
  int *flag = t.on->flags, st = clear_flags(*t.on, 0, count);
  for (int q = 0; q < count && st == HONE_OK; q++) {
    HONE_LAUNCH(kernel, grid, threads, 0, t.on->stream, t.s, before, flag);
    before = flag++;
    st = launched();
  }
  TRY(read_flags(*t.on, 0, count));
  return st;
}

/* Sweeps over the sections of all tasks, each independently, until they are at
   rest or have had 'bound' sweeps. It waits for the tasks' own streams alone.
 */
template <class T> int converge(int block, int batch, task<T> *t, int tasks) {
  for (int st = HONE_OK;;) {
    int queued[2] = {0, 0};
    for (int q = 0; q < tasks && st == HONE_OK; q++) {
      if (!t[q].at_rest)
        queued[q] = (int)HONE_MIN((int64_t)batch, t[q].bound - t[q].sweeps);
      if (queued[q] > 0)
        st = enqueue(t[q], block, queued[q]);
    }
    if (st != HONE_OK || queued[0] + queued[1] == 0)
      return st;
    for (int q = 0; q < tasks && st == HONE_OK; q++) {
      st = queued[q] > 0 ? wait(*t[q].on) : st;
      for (int f = 0; f < queued[q] && !t[q].at_rest; f++) {
        t[q].sweeps++;
        t[q].at_rest = t[q].on->seen[f] == 0;
      }
    }
  }
}

} // namespace

#endif
