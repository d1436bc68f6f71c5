/* SPDX-License-Identifier: BSD-3-Clause */
/* Row exchanges of the blocked LU (lu.cu), and the largest entries, which tell
   its growth. Declared in factor.h. */
#include "gpu_sp/factor/factor.h"

namespace {

enum { THREADS = 256, LARGEST_BLOCKS = 528 };

/* ---- Row moves --------------------------------------------------------- */

enum { MOVE_THREADS = 1024, MOVE_WARPS = MOVE_THREADS / 32 };

/* A thread block takes 32 floats of all rows that move, a warp EACH of those
   rows. left, c0 and c1 count floats. */
template <int EACH>
__global__ void __launch_bounds__(MOVE_THREADS)
    move_rows(float *f, int64_t ld, int64_t left, int64_t c0, int64_t c1,
              const int *dst, const int *src, int entries) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int64_t lefts = (left + 31) / 32, b = blockIdx.x;
  const int64_t c = (b < lefts ? b * 32 : c0 + (b - lefts) * 32) + lane;
  const bool in = c < (b < lefts ? left : c1);
  float v[EACH];
  int to[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int i = warp + e * MOVE_WARPS;
    to[e] = in && i < entries ? dst[i] : -1;
    v[e] = to[e] < 0 ? 0.0F : f[(int64_t)src[i] * ld + c];
  }
  __syncthreads(); /* all read before one is overwritten */
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (to[e] >= 0)
      f[(int64_t)to[e] * ld + c] = v[e];
}

/* See hone_cuda_compose. The one thread block applies the panels' moves to map,
   one panel after the other, then enters every row that they name once into the
   composed list, and restores map. */
__global__ void __launch_bounds__(1024)
    compose(const hone_moves *moves, int panels, int *dst, int *src, int *perm,
            int *place, int *map) {
  const int tid = (int)threadIdx.x, entries = 2 * HONE_PANEL;
  const int all = panels * entries;
  for (int p = 0; p < panels; p++) {
    int to = -1, from = 0;
    if (tid < entries) {
      to = moves[p].dst[tid];
      from = to < 0 ? 0 : map[moves[p].src[tid]];
    }
    __syncthreads();
    if (to >= 0)
      map[to] = from;
    __syncthreads();
  }
  for (int e = tid; e < all; e += (int)blockDim.x) {
    const int row = moves[e / entries].dst[e % entries];
    int from = -1;
    if (row >= 0)
      from = atomicExch(&map[row], -1); /* the first thread enters the row */
    dst[e] = from < 0 || from == row ? -1 : row;
    src[e] = from < 0 ? 0 : from;
    src[e + all] = from < 0 ? -1 : row; /* whose map is restored below */
  }
  __syncthreads();
  for (int e = tid; e < all; e += (int)blockDim.x) {
    if (src[e + all] >= 0)
      map[src[e + all]] = src[e + all];
    src[e + all] = perm[src[e]];
  }
  __syncthreads();
  for (int e = tid; e < all; e += (int)blockDim.x)
    if (dst[e] >= 0) {
      perm[dst[e]] = src[e + all];
      place[src[e + all]] = dst[e];
    }
}

/* ---- Growth ------------------------------------------------------------ */

/* The bits of nonnegative floats are ordered as the floats are. A thread block
   takes every gridDim.x-th row of n entries: all of it, or the upper triangle's
   part. */
__global__ void __launch_bounds__(THREADS)
    largest(int64_t n, int64_t rows, bool upper, const float *f, int64_t ld,
            unsigned *max) {
  constexpr int AT_ONCE = 8;
  unsigned top = 0;
  const int64_t end = HONE_PARTS * n;
  for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
    for (int64_t j = (upper ? HONE_PARTS * i : 0) + threadIdx.x; j < end;
         j += AT_ONCE * THREADS) {
      const float *row = f + i * ld;
      float v[AT_ONCE];
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++)
        v[e] = j + e * THREADS < end ? fabsf(row[j + e * THREADS]) : 0.0F;
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++) {
        const unsigned bits =
            v[e] <= 3.4e38F ? __float_as_uint(v[e]) : 0x7f800000U;
        top = bits > top ? bits : top;
      }
    }
  top = __reduce_max_sync(0xffffffffU, top);
  if (threadIdx.x % 32 == 0)
    atomicMax(max, top);
}

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

/* Few thread blocks, each for several rows: other kernels find room beside
   them, and few atomic operations wait for each other. */
unsigned blocks_of_largest(int64_t n) {
  return n < LARGEST_BLOCKS ? (unsigned)n : (unsigned)LARGEST_BLOCKS;
}

} // namespace

cudaError_t hone_cuda_move(float *f, int64_t ld, int64_t left, int64_t c0,
                           int64_t c1, const hone_move_list &list,
                           cudaStream_t stream) {
  left *= HONE_PARTS;
  c0 *= HONE_PARTS;
  c1 *= HONE_PARTS;
  const unsigned blocks =
      blocks_of(left, 32) + (c1 > c0 ? blocks_of(c1 - c0, 32) : 0U);
  if (blocks == 0)
    return cudaSuccess;
  auto kernel = move_rows<8>;
  if (list.entries > 32 * MOVE_WARPS)
    kernel = move_rows<64>;
  else if (list.entries > 16 * MOVE_WARPS)
    kernel = move_rows<32>;
  else if (list.entries > 8 * MOVE_WARPS)
    kernel = move_rows<16>;
  HONE_LAUNCH(kernel, blocks, MOVE_THREADS, 0, stream, f, ld, left, c0, c1,
              list.dst, list.src, list.entries);
  return cudaGetLastError();
}

cudaError_t hone_cuda_compose(const hone_moves *moves, int panels, int *dst,
                              int *src, int *perm, int *place, int *map,
                              cudaStream_t stream) {
  HONE_LAUNCH(compose, 1, 1024, 0, stream, moves, panels, dst, src, perm, place,
              map);
  return cudaGetLastError();
}

cudaError_t hone_cuda_largest_u(int64_t n, int64_t rows, const float *f,
                                int64_t ld, unsigned *max,
                                cudaStream_t stream) {
  if (rows <= 0)
    return cudaSuccess;
  HONE_LAUNCH(largest, blocks_of_largest(rows), THREADS, 0, stream, n, rows,
              true, f, ld, max);
  return cudaGetLastError();
}

cudaError_t hone_cuda_largest(int64_t n, const float *f, int64_t ld,
                              unsigned *max, cudaStream_t stream) {
  HONE_LAUNCH(largest, blocks_of_largest(n), THREADS, 0, stream, n, n, false, f,
              ld, max);
  return cudaGetLastError();
}
