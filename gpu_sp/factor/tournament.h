/* SPDX-License-Identifier: BSD-3-Clause */
/* A round of the tournament: LU with partial pivoting of up to 512 rows of 16
   columns in the registers of the first four warps of a block. C++; included by
   cuda_rounds.h alone.

   What bounds it is the latency from one pivot to the next. A warp finds its
   best row by one reduction, lays it out in shared memory, and after a barrier
   all read the best of all warps' and update, the next pivot's column first.
   Every instruction counts: sixteen warps with a row a lane are slower than
   four with four, which share a multiprocessor's four schedulers. */
#ifndef HONE_CUDA_GAME_H
#define HONE_CUDA_GAME_H

#include "gpu_sp/kernels.h"

namespace {

enum {
  STEP = HONE_STEP,
  THREADS = 512,
  WARPS = THREADS / 32,
  PLAYERS = 4, /* warps that play */
  LOCAL = 128  /* rows of a warp, at most: 4 a lane */
};

constexpr unsigned ALL = 0xffffffffU;

/* What the warps tell each other, for every column of a round. A row holds the
   columns from the present one on, and then, from its other end, its row of
   inv(L), L the unit lower triangle of the pivot rows: entry (c - j) % 16 of
   the pivot row j is u_jc for c >= j and inv(L)_jc for c < j. */
struct arena {
  __align__(16) float row[STEP][PLAYERS][STEP];
  __align__(16) unsigned key[STEP][PLAYERS];
  float inverse[STEP][PLAYERS]; /* of the row's first entry */
  int who[STEP]; /* the outcome: the warp that had the pivot row, */
  int win[STEP]; /* and that row's number, or -1: none was left */
};

/* The warp's number, known to the compiler to be the same in all its lanes:
   otherwise every shuffle behind a branch on it takes a slow way round. */
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(ALL, (int)threadIdx.x / 32, 0);
}

/* A key orders the rows of a warp by the magnitude of a value (to 16 bits; NaN
   above all, rows that are not active below) and names the row: no two are the
   same. In a natural order by their place alone, those of lower warps first. */
struct ordering {
  unsigned mask, place;
};

__device__ __forceinline__ ordering order_of(bool natural, int warp) {
  ordering o;
  o.mask = natural ? 0U : ~(unsigned)(LOCAL - 1);
  o.place = natural ? 1U << 30 | (unsigned)(PLAYERS - 1 - warp) * LOCAL : 0U;
  return o;
}

__device__ __forceinline__ unsigned key_of(float v, bool active, ordering o,
                                           int row) {
  const unsigned bits = __float_as_uint(fabsf(v)) + LOCAL;
  const unsigned order = (bits & o.mask) | o.place;
  return (active ? order : 0U) | (unsigned)(LOCAL - 1 - row);
}

/* 1 / v to the last bit or so, 0 for 0. Beyond 2^126 it is 0 and below 2^-126
   not finite, which the growth tells. */
__device__ __forceinline__ float reciprocal(float v) {
  const float r = hone_reciprocal(v);
  return v != 0.0F ? fmaf(fmaf(-v, r, 1.0F), r, r) : 0.0F;
}

/* The lane's largest key of the first column; *value: that entry. */
template <int R>
__device__ __forceinline__ unsigned
best_row(const float (&a)[R][STEP], unsigned active, ordering o, float *value) {
  const int lane = (int)threadIdx.x % 32;
  unsigned best = key_of(a[0][0], active & 1, o, lane);
  *value = a[0][0];
#pragma unroll
  for (int r = 1; r < R; r++) {
    const unsigned key = key_of(a[r][0], (active >> r) & 1, o, r * 32 + lane);
    *value = key > best ? a[r][0] : *value;
    best = key > best ? key : best;
  }
  return best;
}

__device__ __forceinline__ void store_row(float *to, const float (&v)[STEP]) {
#pragma unroll
  for (int q = 0; q < STEP; q += 4)
    *reinterpret_cast<float4 *>(to + q) =
        make_float4(v[q], v[q + 1], v[q + 2], v[q + 3]);
}

__device__ __forceinline__ void load_row(const float *from, float (&v)[STEP]) {
#pragma unroll
  for (int q = 0; q < STEP; q += 4) {
    const float4 f = *reinterpret_cast<const float4 *>(from + q);
    v[q] = f.x;
    v[q + 1] = f.y;
    v[q + 2] = f.z;
    v[q + 3] = f.w;
  }
}

/* Row number r of the lane's, r not known to the compiler. */
template <int R>
__device__ __forceinline__ void pick(const float (&a)[R][STEP], int r,
                                     float (&v)[STEP]) {
#pragma unroll
  for (int c = 0; c < STEP; c++) {
    v[c] = a[0][c];
#pragma unroll
    for (int q = 1; q < R; q++)
      v[c] = r == q ? a[q][c] : v[c];
  }
}

/* The largest of the warps' keys, its low bits naming the warp. */
__device__ __forceinline__ unsigned best_warp(const unsigned (&keys)[PLAYERS]) {
  const uint4 k = *reinterpret_cast<const uint4 *>(keys);
  const unsigned from[] = {k.x, k.y, k.z, k.w};
  unsigned best = 0;
#pragma unroll
  for (int w = 0; w < PLAYERS; w++) {
    const unsigned key =
        (from[w] & ~(unsigned)(LOCAL - 1)) | (unsigned)(PLAYERS - 1 - w);
    best = key > best ? key : best;
  }
  return best;
}

/* The round, by the block's first warps: row 32 R w + 32 r + l of it is
   row r of lane l of warp w; active: bit r for that row of the lane. The
   outcome is in g once the block has synchronized.

   The columns shift through the registers, so that the present one is always
   the first and the loop is one short piece of code: unrolled, it ran at the
   speed of fetching instructions. What shifts in from behind is inv(L): the
   same elimination, done to the unit matrix beside the rows. */
template <int R>
__device__ __forceinline__ void play(float (&a)[R][STEP], unsigned active,
                                     bool natural, arena *g) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const ordering o = order_of(natural, warp);
  unsigned outcome = 0; /* of column 'lane' */
  float value;
  unsigned best = best_row<R>(a, active, o, &value);
#pragma unroll 1
  for (int j = 0; j < STEP; j++) {
    const float mine = reciprocal(value);
    const unsigned top = __reduce_max_sync(ALL, best);
    const int r = (LOCAL - 1 - (int)(top % LOCAL)) / 32;
    if (best == top) {
      float v[STEP];
      pick<R>(a, r, v);
      g->key[j][warp] = top;
      g->inverse[j][warp] = mine;
      store_row(g->row[j][warp], v);
    }
    hone_barrier(1, PLAYERS * 32);
    const unsigned first = best_warp(g->key[j]);
    const int who = PLAYERS - 1 - (int)(first % PLAYERS);
    const float inverse = g->inverse[j][who];
    float u[STEP];
    load_row(g->row[j][who], u);
    outcome = lane == j ? first : outcome;
    if (warp == who && best == top)
      active &= ~(1U << r);
    float l[R];
#pragma unroll
    for (int q = 0; q < R; q++) {
      l[q] = (active >> q) & 1 ? a[q][0] * inverse : 0.0F;
      a[q][0] = a[q][1] - l[q] * u[1];
    }
    /* The next pivot is looked for while the other columns are updated. */
    best = best_row<R>(a, active, o, &value);
#pragma unroll
    for (int q = 0; q < R; q++) {
#pragma unroll
      for (int c = 2; c < STEP; c++)
        a[q][c - 1] = a[q][c] - l[q] * u[c];
      a[q][STEP - 1] = -l[q];
    }
  }
  if (warp == 0 && lane < STEP) {
    const int who = PLAYERS - 1 - (int)(outcome % PLAYERS);
    const int row = LOCAL - 1 - (int)(g->key[lane][who] % LOCAL);
    g->who[lane] = who;
    g->win[lane] = outcome < LOCAL ? -1 : who * 32 * R + row;
  }
}

} // namespace

#endif
