/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales, rounds and transposes the caller's columns of doubles, and writes
   each row of floats where the row exchanges so far have brought it. Tiles pass
   through shared memory, so that both matrices are accessed in contiguous
   pieces. Of a symmetric matrix the columns of the lower triangle become rows
   of F as they are. Read next: feed.cu, which copies the columns to the device,
   and factor/lu.cu. */
#include "gpu_sp/feed/round.h"

#include "gpu_sp/entries.h"

#include <cfloat>
#include <cmath>

namespace {

enum { TILE = 64, THREADS = 256, WARPS = THREADS / 32, GROUP = 8 };
constexpr unsigned ALL = 0xffffffffU;

/* The flushed entries and the largest magnitude of one thread. */
struct rounded {
  unsigned flushed; /* entries that became 0 */
  unsigned top;     /* the bits of the largest magnitude */
};

__device__ __forceinline__ void see(float v, rounded *seen) {
  const unsigned bits = __float_as_uint(fabsf(v)); /* NaN's exceed Inf's */
  seen->top = bits > seen->top ? bits : seen->top;
}

__device__ __forceinline__ float round_part(double a, const scale_pair &by,
                                            rounded *seen) {
  float v = static_cast<float>(a * by.first * by.second);
  v = fabsf(v) < FLT_MIN ? 0.0F : v;
  see(v, seen);
  return v;
}

/* The sizes of the matrices of one transposition. */
struct extents {
  int64_t n, lda; /* rows, and leading dimension of a */
  int64_t j, w;   /* first column in the matrix, columns */
  int64_t ldf;
};

#ifdef HONE_COMPLEX

/* Pairs that are loaded and stored at once. */
struct __align__(8) number {
  float re, im;
};

__device__ __forceinline__ number conjugate(const number &v) {
  return {v.re, -v.im};
}

__device__ __forceinline__ number entry(const hone_entry &a,
                                        const scale_pair &by, rounded *seen) {
  const number v = {round_part(a.re, by, seen), round_part(a.im, by, seen)};
  const bool zero = !(v.re != 0.0F) & !(v.im != 0.0F);
  seen->flushed += ((a.re != 0.0) | (a.im != 0.0)) & zero;
  return v;
}

__device__ __forceinline__ number entry(const hone_single &a,
                                        const scale_pair &, rounded *seen) {
  see(a.re, seen);
  see(a.im, seen);
  return {a.re, a.im};
}

#else

typedef float number;

__device__ __forceinline__ float conjugate(float v) { return v; }

__device__ __forceinline__ float entry(double a, const scale_pair &by,
                                       rounded *seen) {
  const float v = round_part(a, by, seen);
  seen->flushed += (a != 0.0) & !(v != 0.0F);
  return v;
}

__device__ __forceinline__ float entry(float a, const scale_pair &,
                                       rounded *seen) {
  see(a, seen);
  return a;
}

#endif

/* Adds what the threads of a block have seen to *flushed and *top. */
__device__ __forceinline__ void
report(rounded seen, unsigned long long *flushed, unsigned *top) {
  __shared__ rounded part[WARPS];
  const int tid = static_cast<int>(threadIdx.x);
  seen.flushed = __reduce_add_sync(ALL, seen.flushed);
  seen.top = __reduce_max_sync(ALL, seen.top);
  if (tid % 32 == 0)
    part[tid / 32] = seen;
  __syncthreads();
  if (tid != 0)
    return;
  for (int k = 1; k < WARPS; k++) {
    seen.flushed += part[k].flushed;
    seen.top = part[k].top > seen.top ? part[k].top : seen.top;
  }
  const unsigned inf = __float_as_uint(HUGE_VALF);
  atomicMax(top, seen.top < inf ? seen.top : inf);
  if (seen.flushed > 0)
    atomicAdd(flushed, static_cast<unsigned long long>(seen.flushed));
}

/* A thread block transposes 64 rows of 64 columns. a points to column j of the
   matrix. The pointers stay parameters of their own: __restrict__ has no effect
   on members of a struct. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    transpose(const extents size, const T *__restrict__ a,
              const double *__restrict__ row, const double *__restrict__ col,
              const int *__restrict__ place, float *__restrict__ f,
              unsigned long long *flushed, unsigned *top) {
  const int64_t n = size.n, lda = size.lda, j = size.j, w = size.w;
  const int64_t ldf = size.ldf;
  __shared__ number tile[TILE][TILE + 1];
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = tid % 32, warp = tid / 32;
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * TILE;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * TILE;
  const int64_t i = i0 + tid % TILE;
  rounded seen = {0, 0};
  T v[TILE * TILE / THREADS];
#pragma unroll
  for (int q = 0; q < TILE * TILE / THREADS; q++) {
    const int64_t c = c0 + tid / TILE + q * (THREADS / TILE);
    v[q] = i < n && c < w ? a[i + c * lda] : T();
  }
  const double r = row && i < n ? row[i] : 1.0;
#pragma unroll
  for (int q = 0; q < TILE * TILE / THREADS; q++) {
    const int at = tid / TILE + q * (THREADS / TILE);
    const double k = col && c0 + at < w ? col[j + c0 + at] : 1.0;
    tile[at][tid % TILE] = entry(v[q], scale_pair_of(r, k), &seen);
  }
  __syncthreads();
  for (int q = warp; q < TILE; q += WARPS) {
    if (i0 + q >= n)
      break;
    const int64_t to = place ? place[i0 + q] : i0 + q;
    for (int c = lane; c < TILE; c += 32)
      if (c0 + c < w)
        *reinterpret_cast<number *>(f + to * ldf + HONE_PARTS * (j + c0 + c)) =
            tile[c][q];
  }
  report(seen, flushed, top);
}

/* Conjugates 256 rows, from row j on, of GROUP columns, which become rows of F;
   a, and col here, point to column j of the matrix. A thread has one row. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    take_rows(const extents size, const T *__restrict__ a,
              const double *__restrict__ row, const double *__restrict__ col,
              float *__restrict__ f, unsigned long long *flushed,
              unsigned *top) {
  const int64_t n = size.n, j = size.j;
  const int64_t i = j + static_cast<int64_t>(blockIdx.x) * THREADS +
                    static_cast<int64_t>(threadIdx.x);
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * GROUP;
  rounded seen = {0, 0};
  T v[GROUP];
#pragma unroll
  for (int q = 0; q < GROUP; q++) {
    const int64_t c = c0 + q;
    v[q] = i < n && c < size.w && i >= j + c ? a[i + c * size.lda] : T();
  }
  const double r = row && i < n ? row[i] : 1.0;
#pragma unroll
  for (int q = 0; q < GROUP; q++) {
    const int64_t c = c0 + q;
    const double k = col && c < size.w ? col[c] : 1.0;
    const number s = conjugate(entry(v[q], scale_pair_of(r, k), &seen));
    if (i < n && c < size.w)
      *reinterpret_cast<number *>(f + (j + c) * size.ldf + HONE_PARTS * i) = s;
  }
  report(seen, flushed, top);
}

/* A thread block conjugates and transposes one tile on or below the diagonal.
 */
__global__ void __launch_bounds__(THREADS)
    mirror(int64_t n, hone_entry *__restrict__ a, int64_t lda) {
  constexpr int SIDE = 32;
  __shared__ hone_entry tile[SIDE][SIDE + 1];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * SIDE;
  const int64_t j0 = static_cast<int64_t>(blockIdx.y) * SIDE;
  if (i0 < j0)
    return;
  for (int q = warp; q < SIDE; q += WARPS)
    if (i0 + lane < n && j0 + q < n)
      tile[q][lane] = a[i0 + lane + (j0 + q) * lda];
  __syncthreads();
  for (int q = warp; q < SIDE; q += WARPS)
    if (j0 + lane < n && i0 + q < n && j0 + lane < i0 + q)
      a[j0 + lane + (i0 + q) * lda] = conjugate_of(tile[lane][q]);
}

__device__ __forceinline__ bool equal(const hone_entry &v,
                                      const hone_entry &w) {
  return real_part(v) == real_part(w) && imaginary_part(v) == imaginary_part(w);
}

/* A thread block compares one tile on or below the diagonal with its mirror
   image. */
__global__ void __launch_bounds__(THREADS)
    compare_triangles(int64_t n, const hone_entry *__restrict__ a, int64_t lda,
                      int *differs) {
  constexpr int SIDE = 32;
  __shared__ hone_entry tile[SIDE][SIDE + 1];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * SIDE;
  const int64_t j0 = static_cast<int64_t>(blockIdx.y) * SIDE;
  if (i0 < j0)
    return;
  for (int q = warp; q < SIDE; q += WARPS)
    if (i0 + lane < n && j0 + q < n)
      tile[q][lane] = a[i0 + lane + (j0 + q) * lda];
  __syncthreads();
  bool same = true;
  for (int q = warp; q < SIDE; q += WARPS)
    if (j0 + lane < n && i0 + q < n)
      same =
          equal(a[j0 + lane + (i0 + q) * lda], conjugate_of(tile[lane][q])) &&
          same;
  if (!same)
    *differs = 1;
}

dim3 tiles(int64_t n, int64_t w) {
  return dim3(static_cast<unsigned>((n + TILE - 1) / TILE),
              static_cast<unsigned>((w + TILE - 1) / TILE));
}

dim3 blocks_of_rows(int64_t rows, int64_t w) {
  return dim3(static_cast<unsigned>((rows + THREADS - 1) / THREADS),
              static_cast<unsigned>((w + GROUP - 1) / GROUP));
}

} // namespace

cudaError_t hone_cuda_round(const hone_double_columns &a,
                            const hone_device_scaling &scaling,
                            const hone_rounded &to, cudaStream_t stream) {
  if (a.w <= 0)
    return cudaSuccess;
  const extents size = {a.rows, a.lda, a.j, a.w, to.ldf};
  HONE_LAUNCH((transpose<hone_entry>), tiles(a.rows, a.w), THREADS, 0, stream,
              size, a.a + a.j * a.lda, scaling.row, scaling.col, to.place, to.f,
              to.flushed, to.top);
  return cudaGetLastError();
}

cudaError_t hone_cuda_round_triangle(const hone_double_columns &a,
                                     int64_t number,
                                     const hone_device_scaling &scaling,
                                     const hone_rounded &to,
                                     cudaStream_t stream) {
  if (a.w <= 0)
    return cudaSuccess;
  const extents size = {a.rows, a.lda, number, a.w, to.ldf};
  const double *const col = scaling.col ? scaling.col + a.j : nullptr;
  HONE_LAUNCH((take_rows<hone_entry>), blocks_of_rows(a.rows - number, a.w),
              THREADS, 0, stream, size, a.a + a.j * a.lda, scaling.row, col,
              to.f, to.flushed, to.top);
  return cudaGetLastError();
}

cudaError_t hone_cuda_mirror(int64_t n, hone_entry *a, int64_t lda,
                             cudaStream_t stream) {
  const unsigned side = static_cast<unsigned>((n + 31) / 32);
  HONE_LAUNCH(mirror, dim3(side, side), THREADS, 0, stream, n, a, lda);
  return cudaGetLastError();
}

cudaError_t hone_cuda_compare_triangles(int64_t n, const hone_entry *a,
                                        int64_t lda, int *differs,
                                        cudaStream_t stream) {
  const unsigned side = static_cast<unsigned>((n + 31) / 32);
  HONE_LAUNCH(compare_triangles, dim3(side, side), THREADS, 0, stream, n, a,
              lda, differs);
  return cudaGetLastError();
}

cudaError_t hone_cuda_transpose(int64_t n, const hone_single *a, int64_t lda,
                                int64_t j, int64_t w, const hone_rounded &to,
                                cudaStream_t stream) {
  if (w <= 0)
    return cudaSuccess;
  const extents size = {n, lda, j, w, to.ldf};
  const double *none = nullptr;
  unsigned long long *no_count = nullptr;
  HONE_LAUNCH((transpose<hone_single>), tiles(n, w), THREADS, 0, stream, size,
              a, none, none, to.place, to.f, no_count, to.top);
  return cudaGetLastError();
}

cudaError_t hone_cuda_take_triangle(int64_t n, const hone_single *a,
                                    int64_t lda, int64_t j, int64_t w,
                                    const hone_rounded &to,
                                    cudaStream_t stream) {
  if (w <= 0)
    return cudaSuccess;
  const extents size = {n, lda, j, w, to.ldf};
  const double *none = nullptr;
  unsigned long long *no_count = nullptr;
  HONE_LAUNCH((take_rows<hone_single>), blocks_of_rows(n - j, w), THREADS, 0,
              stream, size, a, none, none, to.f, no_count, to.top);
  return cudaGetLastError();
}
