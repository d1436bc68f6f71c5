/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting of up to 512 rows of HONE_STEP columns, in single
   precision, in the registers of the first four warps of a thread block. Each
   level of the tournament (tournament.h, read next) is one of these.

   The latency from one pivot to the next bounds the time. A warp finds its best
   row by one reduction and writes it to shared memory; after a barrier all
   warps read the best row of all and update, the next pivot's column first.
   Every instruction counts: sixteen warps with a row a lane are slower than
   four warps with four rows a lane, which share a multiprocessor's four
   schedulers. */
#ifndef HONE_CUDA_REGISTER_LU_H
#define HONE_CUDA_REGISTER_LU_H

#include "gpu_sp/factor/number.h"

namespace {

enum {
  STEP = HONE_STEP,
  THREADS = 512,
  WARPS = THREADS / 32,
  LU_WARPS = 4,   /* warps that take part */
  WARP_ROWS = 128 /* rows of a warp at most: 4 a lane */
};

constexpr unsigned ALL = 0xffffffffU;

/* The warps exchange this for every column. Entry (c - j) % STEP of pivot row j
   is u_jc for c >= j and inv(L)_jc for c < j, L the unit lower triangle of the
   pivot rows: the columns from the present one on come first, then the row's
   part of inv(L). */
struct lu_exchange {
  __align__(16) number row[STEP][LU_WARPS][STEP];
  __align__(16) unsigned key[STEP][LU_WARPS];
  number inverse[STEP][LU_WARPS]; /* of the row's first entry */
  int pivot_warp[STEP];           /* result: the warp that had the pivot row */
  int pivot_row[STEP]; /* result: that row, or -1 where none was left */
};

/* Returns the warp's number. The shuffle tells the compiler that it is the same
   in all lanes; otherwise every shuffle in a branch on it compiles to slow
   code. */
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(ALL, (int)threadIdx.x / 32, 0);
}

/* A key orders the rows of a warp by the magnitude of a value, to 16 bits, with
   NaN above all and rows that are not active below all. It also names the row,
   so no two keys are equal. In the natural order a key depends on the row's
   place alone, and lower warps come first. */
struct ordering {
  unsigned mask, place;
};

__device__ __forceinline__ ordering order_of(bool natural, int warp) {
  ordering o;
  o.mask = natural ? 0U : ~(unsigned)(WARP_ROWS - 1);
  o.place =
      natural ? 1U << 30 | (unsigned)(LU_WARPS - 1 - warp) * WARP_ROWS : 0U;
  return o;
}

__device__ __forceinline__ unsigned key_of(number v, bool active, ordering o,
                                           int row) {
  const unsigned bits = __float_as_uint(size_of(v)) + WARP_ROWS;
  const unsigned order = (bits & o.mask) | o.place;
  return (active ? order : 0U) | (unsigned)(WARP_ROWS - 1 - row);
}

/* Returns the largest key of the lane's rows in the first column; *value is
   that entry. */
template <int R>
__device__ __forceinline__ unsigned best_row(const number (&a)[R][STEP],
                                             unsigned active, ordering o,
                                             number *value) {
  const int lane = (int)threadIdx.x % 32;
  unsigned best = key_of(a[0][0], active & 1, o, lane);
  *value = a[0][0];
#pragma unroll
  for (int r = 1; r < R; r++) {
    const unsigned key = key_of(a[r][0], (active >> r) & 1, o, r * 32 + lane);
    *value = choose(key > best, a[r][0], *value);
    best = key > best ? key : best;
  }
  return best;
}

__device__ __forceinline__ void store_row(number *to, const number (&v)[STEP]) {
#pragma unroll
  for (int q = 0; q < STEP; q += NUMBERS_IN_FOUR)
    *reinterpret_cast<float4 *>(to + q) = four_of(v + q);
}

__device__ __forceinline__ void load_row(const number *from,
                                         number (&v)[STEP]) {
#pragma unroll
  for (int q = 0; q < STEP; q += NUMBERS_IN_FOUR)
    take_four(*reinterpret_cast<const float4 *>(from + q), v + q);
}

/* Copies the lane's row number r, which the compiler does not know. */
template <int R>
__device__ __forceinline__ void pick(const number (&a)[R][STEP], int r,
                                     number (&v)[STEP]) {
#pragma unroll
  for (int c = 0; c < STEP; c++) {
    v[c] = a[0][c];
#pragma unroll
    for (int q = 1; q < R; q++)
      v[c] = choose(r == q, a[q][c], v[c]);
  }
}

/* Returns the largest of the warps' keys; its low bits name the warp. */
__device__ __forceinline__ unsigned
best_warp(const unsigned (&keys)[LU_WARPS]) {
  const uint4 k = *reinterpret_cast<const uint4 *>(keys);
  const unsigned from[] = {k.x, k.y, k.z, k.w};
  unsigned best = 0;
#pragma unroll
  for (int w = 0; w < LU_WARPS; w++) {
    const unsigned key =
        (from[w] & ~(unsigned)(WARP_ROWS - 1)) | (unsigned)(LU_WARPS - 1 - w);
    best = key > best ? key : best;
  }
  return best;
}

/* Factors the rows in a, by the thread block's first warps: row
   32 R w + 32 r + l is row r of lane l of warp w, and bit r of active says
   whether that row of the lane takes part. The result is in g after the thread
   block's next barrier.

   The columns shift through the registers, so the present column is always the
   first, and the loop is one short piece of code; unrolled, it ran at the speed
   of fetching instructions. inv(L) shifts in from the last register: the same
   elimination, applied to the unit matrix. */
template <int R>
__device__ __forceinline__ void register_lu(number (&a)[R][STEP],
                                            unsigned active, bool natural,
                                            lu_exchange *g) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const ordering o = order_of(natural, warp);
  unsigned outcome = 0; /* the key of column 'lane' */
  number value;
  unsigned best = best_row<R>(a, active, o, &value);
#pragma unroll 1
  for (int j = 0; j < STEP; j++) {
    const number mine = reciprocal(value);
    const unsigned top = __reduce_max_sync(ALL, best);
    const int r = (WARP_ROWS - 1 - (int)(top % WARP_ROWS)) / 32;
    if (best == top) {
      number v[STEP];
      pick<R>(a, r, v);
      g->key[j][warp] = top;
      g->inverse[j][warp] = mine;
      store_row(g->row[j][warp], v);
    }
    hone_barrier(1, LU_WARPS * 32);
    const unsigned first = best_warp(g->key[j]);
    const int who = LU_WARPS - 1 - (int)(first % LU_WARPS);
    const number inverse = g->inverse[j][who];
    number u[STEP];
    load_row(g->row[j][who], u);
    outcome = lane == j ? first : outcome;
    if (warp == who && best == top)
      active &= ~(1U << r);
    number l[R];
#pragma unroll
    for (int q = 0; q < R; q++) {
      l[q] = choose((active >> q) & 1, a[q][0] * inverse, number_of(0.0F));
      a[q][0] = less_product(a[q][1], l[q], u[1]);
    }
    /* The next pivot is sought while the other columns are updated. */
    best = best_row<R>(a, active, o, &value);
#pragma unroll
    for (int q = 0; q < R; q++) {
#pragma unroll
      for (int c = 2; c < STEP; c++)
        a[q][c - 1] = less_product(a[q][c], l[q], u[c]);
      a[q][STEP - 1] = -l[q];
    }
  }
  if (warp == 0 && lane < STEP) {
    const int who = LU_WARPS - 1 - (int)(outcome % LU_WARPS);
    const int row = WARP_ROWS - 1 - (int)(g->key[lane][who] % WARP_ROWS);
    g->pivot_warp[lane] = who;
    g->pivot_row[lane] = outcome < WARP_ROWS ? -1 : who * 32 * R + row;
  }
}

} // namespace

#endif
