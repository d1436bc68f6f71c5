/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a panel of up to 128 columns with tournament pivoting (Grigori,
   Demmel & Xiang 2011, CALU), in one launch. The panel's rows lie in the
   shared memory of up to 128 blocks; every 16 columns

     level 1  each block's first warp does LU with partial pivoting on its
              rows, in registers, and publishes the 16 winners
     level 2  of 16 blocks the one that comes last plays the winners off (in
              two rounds where a block has more than one tile)
     level 3  of those the last one again: 16 pivot rows, and the LU factors
              of their 16 x 16 block
     update   every block computes the pivot rows' part of U, its own rows'
              multipliers, and updates its rows; level 1 of the next 16
              columns begins as soon as those are up to date

   Rows do not move while the panel is being factored; they are written back
   in their new order at the end. */
#include "gpu_sp/cuda_kernels.h"

namespace {

enum {
  STEP = HONE_STEP,
  THREADS = 256,
  WARPS = THREADS / 32,
  MAX_BLOCKS = 128,
  TILE = 256,    /* rows a warp can hold, 8 a lane */
  MAX_TILES = 3, /* of a block */
  GROUP = 16     /* blocks of one match of level 2 */
};

constexpr unsigned ALL = 0xffffffffU;

/* One step's outcome, for all blocks. */
struct verdict {
  float lu[STEP][STEP]; /* LU factors of the pivot rows, row by row */
  int row[STEP];        /* the pivot rows, counted from the panel's first */
  int from[STEP];       /* and the candidates that they were */
};

/* Workspace of one panel. */
struct panel_sync {
  int in_group[HONE_PANEL / STEP]
              [MAX_BLOCKS / GROUP]; /* blocks, of each step */
  int arrived[HONE_PANEL / STEP];   /* groups, or blocks where they are few */
  int decided;                      /* steps */
};

struct panel_work {
  verdict decision[2];
  int row[2][MAX_BLOCKS * MAX_TILES * STEP]; /* of candidates; -1: none */
  int finalist[2][TILE];                     /* the winners of level 2 */
  float value[2][MAX_BLOCKS * MAX_TILES * STEP][HONE_PANEL];
};

struct panel_args {
  float *f; /* the panel's first element */
  int64_t ld;
  int m, w;     /* rows, columns */
  int rows;     /* of a block, 32 R a tile */
  int tiles;    /* of a block */
  int eligible; /* rows that may become pivots */
  bool natural;
  int k; /* the panel's first row and column in the matrix */
  hone_moves *moves;
  int *zero_pivot;
  panel_sync *sync;
  panel_work *work;
};

/* The warp's number, known to the compiler to be the same in all its lanes:
   otherwise every shuffle behind a branch on it takes a slow way round. */
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(ALL, (int)threadIdx.x / 32, 0);
}

/* One number that orders the rows of a tile by the magnitude of a value (to
   15 bits; NaN above all, rows not active below) and names the row. */
__device__ __forceinline__ unsigned key_of(float v, bool active, bool natural,
                                           int row) {
  const unsigned bits = __float_as_uint(fabsf(v)) + TILE;
  const unsigned order = natural ? 1U << 30 : bits & ~(unsigned)(TILE - 1);
  return active ? order | (unsigned)(TILE - 1 - row) : 0U;
}

/* 1 / v to the last bit or so, 0 for 0, without a branch. */
__device__ __forceinline__ float reciprocal(float v) {
  const float r = __fdividef(1.0F, v != 0.0F ? v : 1.0F);
  return v != 0.0F ? fmaf(fmaf(-v, r, 1.0F), r, r) : 0.0F;
}

/* Column c of row rs of lane p, for all lanes; rs the same in all. */
template <int R, int LOW = 0, int COUNT = R>
__device__ __forceinline__ void broadcast(const float (&a)[R][STEP], int rs,
                                          int p, float (&u)[STEP]) {
  if constexpr (COUNT == 1) {
#pragma unroll
    for (int c = 1; c < STEP; c++)
      u[c] = __shfl_sync(ALL, a[LOW][c], p);
  } else {
    if (rs < LOW + COUNT / 2)
      broadcast<R, LOW, COUNT / 2>(a, rs, p, u);
    else
      broadcast<R, LOW + COUNT / 2, COUNT / 2>(a, rs, p, u);
  }
}

/* What the last level keeps for the factors of the pivot rows. */
struct finals {
  float l[STEP][TILE]; /* multipliers of every row, for each column */
  float u[STEP][STEP]; /* of pivot row j: the columns j, j + 1, ... */
};

/* The largest key of the first column, 0 where no row is active; *value: the
   lane's own best entry. */
template <int R>
__device__ __forceinline__ unsigned best_row(const float (&a)[R][STEP],
                                             unsigned active, bool natural,
                                             float *value) {
  const int lane = (int)threadIdx.x % 32;
  unsigned best = 0;
  *value = 0.0F;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const unsigned key =
        key_of(a[r][0], (active >> r) & 1, natural, r * 32 + lane);
    *value = key > best ? a[r][0] : *value;
    best = key > best ? key : best;
  }
  return __reduce_max_sync(ALL, best);
}

/* LU with partial pivoting of 32 R rows of 16 columns in a warp's registers:
   lane l holds the rows l, l + 32, ... active: bit r for row r of the lane.
   win[j] = the row that became the pivot of column j, or -1 (shared memory,
   written by lane 0). keep: NULL, or for the factors.

   The columns shift through the registers, so that the present one is always
   the first and the loop is one short piece of code: unrolled, it ran at the
   speed of fetching instructions. What bounds it is the latency from one
   pivot to the next: one reduction names the winner, reciprocals are made
   before it is known. */
template <int R, bool KEEP>
__device__ __forceinline__ void play(float (&a)[R][STEP], unsigned active,
                                     bool natural, int *win, finals *keep) {
  const int lane = (int)threadIdx.x % 32;
  float value;
  __syncwarp();
  unsigned top = best_row<R>(a, active, natural, &value);
#pragma unroll 1
  for (int j = 0; j < STEP; j++) {
    float inverse = reciprocal(value);
    const int row = TILE - 1 - (int)(top % TILE), p = row % 32, rs = row / 32;
    float u[STEP];
    inverse = __shfl_sync(ALL, inverse, p);
    broadcast<R>(a, rs, p, u);
    if (lane == p)
      active &= ~(1U << rs);
    if (KEEP)
      u[0] = __shfl_sync(ALL, value, p);
    if (KEEP && lane == 0) {
#pragma unroll
      for (int c = 0; c < STEP; c++)
        keep->u[j][c] = u[c];
    }
    float l[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
      l[r] = (active >> r) & 1 ? a[r][0] * inverse : 0.0F;
      a[r][0] = a[r][1] - l[r] * u[1];
      if (KEEP)
        keep->l[j][r * 32 + lane] = l[r];
    }
    /* The next pivot is looked for while the other columns are updated. */
    if (lane == 0)
      win[j] = top > 0 ? row : -1;
    top = best_row<R>(a, active, natural, &value);
#pragma unroll
    for (int c = 2; c < STEP; c++)
#pragma unroll
      for (int r = 0; r < R; r++)
        a[r][c - 1] = a[r][c] - l[r] * u[c];
  }
  __syncwarp();
}

/* What a block keeps in shared memory. */
struct shared_state {
  float u[HONE_PANEL][STEP]; /* the pivot rows' columns right of the step */
  float lu[STEP][STEP];
  float inverse[STEP];      /* of lu's diagonal */
  int win[WARPS + 1][STEP]; /* of the warps' levels, and of level 3 */
  finals keep;
  int match[MAX_TILES * STEP]; /* winners of the first round of level 2 */
  int pivot[STEP], from[STEP];
  int own[STEP], owned;   /* which of the pivots are this block's rows */
  int pivots[HONE_PANEL]; /* all so far */
  int last;               /* this block plays the last levels */
  unsigned used[16];      /* bit per row of the block: became a pivot */
};

/* Level 1: warp t on tile t of the block's rows. */
template <int R>
__device__ __forceinline__ void level_one(const panel_args &args,
                                          const float *s, shared_state *sh,
                                          int c0, int first_row) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1;
  float a[R][STEP];
  unsigned active = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int i = (warp * R + r) * 32 + lane;
    const bool on =
        first_row + i < args.eligible && !((sh->used[i / 32] >> lane) & 1);
    active |= (unsigned)on << r;
#pragma unroll
    for (int c = 0; c < STEP; c++)
      a[r][c] = on && c0 + c < args.w ? s[(c0 + c) * stride + i] : 0.0F;
  }
  play<R, false>(a, active, args.natural, sh->win[warp], nullptr);
}

/* 16 columns of candidate i, or zeros. */
__device__ __forceinline__ void candidate(const panel_work *work, int parity,
                                          int i, int c0, bool on,
                                          float (&a)[STEP]) {
#pragma unroll
  for (int q = 0; q < STEP / 4; q++) {
    float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (on)
      v = __ldcg(reinterpret_cast<const float4 *>(
          &work->value[parity][i][c0 + 4 * q]));
    a[4 * q] = v.x;
    a[4 * q + 1] = v.y;
    a[4 * q + 2] = v.z;
    a[4 * q + 3] = v.w;
  }
}

/* Level 2: warp t on the candidates first + 256 t .. of count. */
__device__ __forceinline__ void level_two(const panel_args &args,
                                          shared_state *sh, int parity, int c0,
                                          int first, int count) {
  constexpr int R = TILE / 32;
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int base = first + warp * TILE;
  float a[R][STEP];
  unsigned active = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int i = base + r * 32 + lane;
    const bool on = i < count && __ldcg(&args.work->row[parity][i]) >= 0;
    active |= (unsigned)on << r;
    candidate(args.work, parity, i, c0, on, a[r]);
  }
  play<R, false>(a, active, args.natural, sh->win[warp], nullptr);
  if (lane < STEP) {
    const int w = sh->win[warp][lane];
    sh->match[warp * STEP + lane] = w < 0 ? -1 : base + w;
  }
}

/* Its second round, by one warp: the group's 16 finalists. */
__device__ __forceinline__ void settle_group(const panel_args &args,
                                             shared_state *sh, int parity,
                                             int c0, int group) {
  constexpr int R = 2;
  const int lane = (int)threadIdx.x % 32, count = args.tiles * STEP;
  int *out = args.work->finalist[parity] + group * STEP;
  if (args.tiles == 1) {
    if (lane < STEP)
      out[lane] = sh->match[lane];
    return;
  }
  float a[R][STEP];
  unsigned active = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int i = r * 32 + lane < count ? sh->match[r * 32 + lane] : -1;
    active |= (unsigned)(i >= 0) << r;
    candidate(args.work, parity, i, c0, i >= 0, a[r]);
  }
  play<R, false>(a, active, args.natural, sh->win[WARPS], nullptr);
  if (lane < STEP) {
    const int w = sh->win[WARPS][lane];
    out[lane] = w < 0 ? -1 : sh->match[w];
  }
}

/* Level 3: the finalists, or all candidates, by one warp. */
template <int R>
__device__ __forceinline__ void level_three(const panel_args &args,
                                            shared_state *sh, int parity,
                                            int c0, bool all, int count) {
  const int lane = (int)threadIdx.x % 32;
  verdict *v = &args.work->decision[parity];
  float a[R][STEP];
  int i[R];
  unsigned active = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int place = r * 32 + lane;
    i[r] = -1;
    if (place < count)
      i[r] = all ? place : __ldcg(&args.work->finalist[parity][place]);
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const bool on = i[r] >= 0 && __ldcg(&args.work->row[parity][i[r]]) >= 0;
    active |= (unsigned)on << r;
    candidate(args.work, parity, i[r], c0, i[r] >= 0, a[r]);
  }
  play<R, true>(a, active, args.natural, sh->win[WARPS], &sh->keep);
  if (lane < STEP) {
    const int w = sh->win[WARPS][lane];
    const int from = w < 0 || all ? w : __ldcg(&args.work->finalist[parity][w]);
    v->from[lane] = from;
    v->row[lane] = from < 0 ? -1 : __ldcg(&args.work->row[parity][from]);
    if (c0 + lane < args.w && (from < 0 || sh->keep.u[lane][0] == 0.0F))
      atomicMin(args.zero_pivot, args.k + c0 + lane);
  }
  for (int e = lane; e < STEP * STEP; e += 32) {
    const int q = e / STEP, c = e % STEP, w = sh->win[WARPS][q];
    v->lu[q][c] = c >= q ? sh->keep.u[q][c - q] : sh->keep.l[c][w < 0 ? 0 : w];
  }
}

/* Is this block the last of count to come? For all its threads. */
__device__ __forceinline__ bool last_of(shared_state *sh, int *counter,
                                        int count) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    sh->last = atomicAdd(counter, 1) == count - 1;
    if (sh->last)
      __threadfence();
  }
  __syncthreads();
  return __shfl_sync(ALL, sh->last, 0) != 0; /* see warp_number */
}

/* The winners of this block's tiles, with all columns from c0 on, for all
   blocks; then the levels that fall to it. True: it has played the last. */
__device__ __forceinline__ bool publish(const panel_args &args, const float *s,
                                        shared_state *sh, int c0,
                                        int first_row) {
  const int step = c0 / STEP, parity = step % 2, stride = args.rows + 1;
  const int each = args.tiles * STEP, blocks = (int)gridDim.x;
  const int first = (int)blockIdx.x * each, group = (int)blockIdx.x / GROUP;
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  int count = blocks * each; /* of the last level */
  for (int i = warp; i < each; i += WARPS) {
    const int local = sh->win[i / STEP][i % STEP];
    const int row = (i / STEP) * (args.rows / args.tiles) + local;
    if (lane == 0)
      args.work->row[parity][first + i] = local < 0 ? -1 : first_row + row;
    for (int c = c0 + lane; c < args.w && local >= 0; c += 32)
      args.work->value[parity][first + i][c] = s[c * stride + row];
  }
  const bool all = count <= TILE;
  int rivals = blocks;
  if (!all) {
    const int from = group * GROUP, left = blocks - from;
    const int members = left < GROUP ? left : GROUP;
    if (!last_of(sh, &args.sync->in_group[step][group], members))
      return false;
    if (warp < args.tiles)
      level_two(args, sh, parity, c0, from * each, (from + members) * each);
    __syncthreads();
    if (warp == 0)
      settle_group(args, sh, parity, c0, group);
    rivals = (blocks + GROUP - 1) / GROUP;
    count = rivals * STEP;
  }
  if (!last_of(sh, &args.sync->arrived[step], rivals))
    return false;
  if (warp == 0) {
    count = __shfl_sync(ALL, count, 0); /* see warp_number */
    if (count <= 64)
      level_three<2>(args, sh, parity, c0, all, count);
    else if (count <= 128)
      level_three<4>(args, sh, parity, c0, all, count);
    else
      level_three<8>(args, sh, parity, c0, all, count);
  }
  return true;
}

/* What was decided, into shared memory: factors, pivot rows, and the part of
   U right of them. */
__device__ __forceinline__ void take_verdict(const panel_args &args,
                                             shared_state *sh, int c0,
                                             int first_row, bool judge) {
  const int step = c0 / STEP, parity = step % 2, tid = (int)threadIdx.x;
  const verdict *v = &args.work->decision[parity];
  if (judge)
    __syncthreads();
  if (tid == 0)
    sh->owned = 0;
  if (judge && tid == 0) {
    __threadfence();
    hone_store_release(&args.sync->decided, step + 1);
  } else if (tid == 0) {
    while (hone_load_acquire(&args.sync->decided) <= step) {
    }
  }
  __syncthreads();
  for (int e = tid; e < STEP * STEP; e += THREADS) {
    const float value = __ldcg(&v->lu[e / STEP][e % STEP]);
    sh->lu[e / STEP][e % STEP] = value;
    if (e / STEP == e % STEP)
      sh->inverse[e / STEP] = value != 0.0F ? 1.0F / value : 0.0F;
  }
  if (tid < STEP) {
    const int row = __ldcg(&v->row[tid]), local = row - first_row;
    const bool counts = c0 + tid < args.w && row >= 0;
    sh->from[tid] = counts ? __ldcg(&v->from[tid]) : -1;
    sh->pivot[tid] = counts ? row : -1;
    if (counts)
      sh->pivots[c0 + tid] = row;
    if (counts && local >= 0 && local < args.rows) {
      atomicOr(&sh->used[local / 32], 1U << (local % 32));
      sh->own[atomicAdd(&sh->owned, 1)] = tid;
    }
  }
  __syncthreads();
  for (int c = c0 + STEP + tid; c < args.w; c += THREADS) {
    float x[STEP];
#pragma unroll
    for (int p = 0; p < STEP; p++)
      x[p] = sh->from[p] < 0
                 ? 0.0F
                 : __ldcg(&args.work->value[parity][sh->from[p]][c]);
#pragma unroll
    for (int p = 0; p < STEP; p++) {
#pragma unroll
      for (int q = p + 1; q < STEP; q++)
        x[q] -= sh->lu[q][p] * x[p];
      sh->u[c][p] = x[p];
    }
  }
  __syncthreads();
}

/* l = the row's part of inv(U11) from the right; a holds 16 columns. */
__device__ __forceinline__ void multipliers(const shared_state *sh,
                                            float (&l)[STEP]) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    l[p] *= sh->inverse[p];
#pragma unroll
    for (int q = p + 1; q < STEP; q++)
      l[q] -= l[p] * sh->lu[p][q];
  }
}

/* The multipliers of the block's rows, and the next 16 columns of each: the
   threads that share a row each do a part of those. */
__device__ void eliminate(const panel_args &args, float *s, shared_state *sh,
                          int c0, int first_row) {
  const int tid = (int)threadIdx.x, stride = args.rows + 1;
  const int parts = args.rows < THREADS ? THREADS / args.rows : 1;
  const int part = parts > 1 ? tid / args.rows : 0, next = c0 + STEP;
  const int from = next + part * (STEP / parts);
  const int to = min(args.w, from + STEP / parts);
  float l[STEP];
  for (int i = tid % args.rows; i < args.rows; i += THREADS) {
    const bool active = !((sh->used[i / 32] >> (i % 32)) & 1);
#pragma unroll
    for (int p = 0; p < STEP; p++)
      l[p] = active && c0 + p < args.w ? s[(c0 + p) * stride + i] : 0.0F;
    if (parts > 1) /* all have read before one writes */
      __syncthreads();
    multipliers(sh, l);
    if (!active)
      continue;
    if (part == 0) {
#pragma unroll
      for (int p = 0; p < STEP; p++)
        if (c0 + p < args.w)
          s[(c0 + p) * stride + i] = l[p];
    }
#pragma unroll 4
    for (int c = from; c < to; c++) {
      float sum = s[c * stride + i];
#pragma unroll
      for (int p = 0; p < STEP; p++)
        sum -= l[p] * sh->u[c][p];
      s[c * stride + i] = sum;
    }
  }
  for (int e = 0; e < sh->owned; e++) { /* the pivot rows themselves */
    const int p = sh->own[e], i = sh->pivot[p] - first_row;
    for (int c = c0 + tid; c < args.w; c += THREADS)
      s[c * stride + i] = c < next ? sh->lu[p][c - c0] : sh->u[c][p];
  }
  __syncthreads();
}

/* The columns from c on, by the warps that have no tile to play. */
template <int R>
__device__ void update(const panel_args &args, float *s, shared_state *sh,
                       int c0, int from) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1;
  for (int tile = 0; tile < args.tiles; tile++) {
    float l[R][STEP];
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int i = (tile * R + r) * 32 + lane;
      const bool active = !((sh->used[i / 32] >> lane) & 1);
#pragma unroll
      for (int p = 0; p < STEP; p++)
        l[r][p] = active ? s[(c0 + p) * stride + i] : 0.0F;
    }
    for (int c = from + warp - args.tiles; c < args.w;
         c += WARPS - args.tiles) {
      float u[STEP];
#pragma unroll
      for (int p = 0; p < STEP; p++)
        u[p] = sh->u[c][p];
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int at = c * stride + (tile * R + r) * 32 + lane;
        float sum = s[at];
#pragma unroll
        for (int p = 0; p < STEP; p++)
          sum -= l[r][p] * u[p];
        s[at] = sum;
      }
    }
  }
}

/* Which rows go where, from the list of pivot rows: these to the top, the
   rows they displace to the places they left. */
__device__ void find_moves(const panel_args &args, const shared_state *sh,
                           int *dst, int *src, unsigned char *top) {
  const int tid = (int)threadIdx.x, w = args.w;
  for (int i = tid; i < w; i += THREADS)
    top[i] = 0;
  __syncthreads();
  for (int i = tid; i < w; i += THREADS)
    if (sh->pivots[i] < w)
      top[sh->pivots[i]] = 1;
  __syncthreads();
  for (int i = tid; i < w; i += THREADS) {
    dst[i] = i;
    src[i] = sh->pivots[i];
    int left = 0, displaced = 0; /* before i */
    for (int q = 0; q < i; q++) {
      left += sh->pivots[q] >= w;
      displaced += !top[q];
    }
    if (sh->pivots[i] >= w)
      dst[w + left] = sh->pivots[i];
    if (!top[i])
      src[w + displaced] = i;
    if (i == w - 1)
      for (int q = left + (sh->pivots[i] >= w); q < HONE_PANEL; q++)
        dst[w + q] = -1;
  }
  __syncthreads();
}

template <int R>
__global__ void __launch_bounds__(THREADS, 1) factor_panel(panel_args args) {
  HONE_DYNAMIC_SHARED(float, s);
  __shared__ shared_state state;
  __shared__ int dst[2 * HONE_PANEL], src[2 * HONE_PANEL];
  __shared__ unsigned char top[HONE_PANEL];
  shared_state *sh = &state;
  const int tid = (int)threadIdx.x, warp = warp_number();
  const int stride = args.rows + 1, first_row = (int)blockIdx.x * args.rows;
  if (tid < HONE_PANEL)
    sh->pivots[tid] = 0;
  if (tid < 16)
    sh->used[tid] = 0;
  __syncthreads();
  for (int i = warp; i < args.rows; i += WARPS) {
    const int row = first_row + i;
    for (int c = tid % 32; c < args.w; c += 32)
      s[c * stride + i] =
          row < args.m ? args.f[(int64_t)row * args.ld + c] : 0.0F;
    if (row >= args.m && tid % 32 == 0)
      atomicOr(&sh->used[i / 32], 1U << (i % 32));
  }
  __syncthreads();
  if (warp < args.tiles)
    level_one<R>(args, s, sh, 0, first_row);
  for (int c0 = 0;; c0 += STEP) {
    __syncthreads();
    const bool judge = publish(args, s, sh, c0, first_row);
    take_verdict(args, sh, c0, first_row, judge);
    eliminate(args, s, sh, c0, first_row);
    if (c0 + STEP >= args.w)
      break;
    if (warp < args.tiles)
      level_one<R>(args, s, sh, c0 + STEP, first_row);
    else
      update<R>(args, s, sh, c0, c0 + 2 * STEP);
  }
  find_moves(args, sh, dst, src, top);
  if (blockIdx.x == 0)
    for (int i = tid; i < 2 * HONE_PANEL; i += THREADS) {
      const bool none = i >= 2 * args.w || dst[i] < 0;
      args.moves->dst[i] = none ? -1 : args.k + dst[i];
      args.moves->src[i] = none ? -1 : args.k + src[i];
    }
  for (int i = warp; i < args.rows; i += WARPS) {
    const int row = first_row + i;
    if (row >= args.m)
      continue;
    int to = row;
    if (row < args.w || ((sh->used[i / 32] >> (i % 32)) & 1)) {
      int found = -1;
      for (int q = tid % 32; q < 2 * args.w; q += 32)
        if (dst[q] >= 0 && src[q] == row)
          found = dst[q];
      found = (int)__reduce_max_sync(ALL, (unsigned)(found + 1)) - 1;
      to = found < 0 ? row : found;
    }
    for (int c = tid % 32; c < args.w; c += 32)
      args.f[(int64_t)to * args.ld + c] = s[c * stride + i];
  }
}

/* How a panel of m rows is cut into blocks and tiles. */
struct panel_shape {
  int r, tiles, blocks, rows;
};

panel_shape shape_of(int64_t m) {
  panel_shape p = {2, 1, 0, 0};
  /* Few rows: so few blocks that level 2 falls away; many: all that fit. */
  const int64_t most =
      m <= GROUP * 32 * 4 ? (int64_t)GROUP : (int64_t)MAX_BLOCKS;
  while (p.r < 8 && m > most * 32 * p.r)
    p.r *= 2;
  if (m > (int64_t)MAX_BLOCKS * TILE) /* 384 rows: all that a block can hold */
    p = {4, MAX_TILES, 0, 0};
  p.rows = 32 * p.r * p.tiles;
  p.blocks = (int)((m + p.rows - 1) / p.rows);
  return p;
}

size_t sync_bytes(int64_t n) {
  return ((size_t)n * sizeof(panel_sync) + 255) / 256 * 256;
}

template <int R>
cudaError_t launch(const panel_args &args, int blocks, cudaStream_t stream) {
  const size_t shared =
      (size_t)(args.rows + 1) * (size_t)args.w * sizeof(float);
  cudaError_t e = cudaFuncSetAttribute(
      factor_panel<R>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH_COOPERATIVE(factor_panel<R>, blocks, THREADS, shared, stream,
                          args);
  return cudaGetLastError();
}

} // namespace

int64_t hone_cuda_panel_bytes(int64_t n) {
  return (int64_t)(sync_bytes(n) + sizeof(panel_work));
}

int64_t hone_cuda_panel_rows() {
  return (int64_t)MAX_BLOCKS * MAX_TILES * TILE / 2;
}

cudaError_t hone_cuda_panel(int64_t n, float *f, int64_t ld, int64_t k,
                            int64_t w, enum hone_pivoting pivoting,
                            hone_moves *moves, int *zero_pivot, void *work,
                            cudaStream_t stream) {
  const panel_shape shape = shape_of(n - k);
  unsigned char *bytes = static_cast<unsigned char *>(work);
  panel_args args = {};
  args.f = f + k * ld + k;
  args.ld = ld;
  args.m = (int)(n - k);
  args.w = (int)w;
  args.rows = shape.rows;
  args.tiles = shape.tiles;
  args.eligible = pivoting == HONE_BLOCK_ONLY ? (int)w : args.m;
  args.natural = pivoting == HONE_NATURAL;
  args.k = (int)k;
  args.moves = moves;
  args.zero_pivot = zero_pivot;
  args.sync = reinterpret_cast<panel_sync *>(bytes) + k;
  args.work = reinterpret_cast<panel_work *>(bytes + sync_bytes(n));
  if (shape.r == 2)
    return launch<2>(args, shape.blocks, stream);
  if (shape.r == 4)
    return launch<4>(args, shape.blocks, stream);
  return launch<8>(args, shape.blocks, stream);
}
