/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a panel of up to 128 columns with tournament pivoting (Grigori,
   Demmel & Xiang 2011, CALU), in one launch. The panel's rows lie in the
   shared memory of up to 128 blocks; every 16 columns

     level 1  each block does LU with partial pivoting on its rows, in
              registers, and publishes the 16 winners
     level 2  the block that comes last plays the winners of all off (where
              they are many, those of 16 blocks, and the last of all the
              winners of those): 16 pivot rows, with U and inv(L) of their
              16 x 16 block
     update   every block computes the pivot rows' part of U, its own rows'
              multipliers, and updates its rows; level 1 of the next 16
              columns begins as soon as those are up to date

   Rows do not move while the panel is being factored; they are written back
   in their new order at the end. */
#include "gpu_sp/cuda_game.h"

namespace {

enum {
  MAX_BLOCKS = 128,
  CANDIDATES = MAX_BLOCKS * STEP,
  TOGETHER = 32,  /* blocks whose candidates all play at once; of more, */
  GROUP = 16,     /* those of so many play among themselves first */
  MOST_ROWS = 384 /* of a block: what its shared memory holds */
};

/* One step's outcome, for all blocks. */
struct verdict {
  float lu[STEP][STEP]; /* of the pivot rows, row by row: U, and inv(L) below */
  int row[STEP];        /* the pivot rows, counted from the panel's first */
  int from[STEP];       /* and the candidates that they were */
};

/* Workspace of one panel. */
struct panel_sync {
  int in_group[HONE_PANEL / STEP][MAX_BLOCKS / GROUP]; /* blocks, of a step */
  int arrived[HONE_PANEL / STEP]; /* groups, or blocks where they are few */
  int decided;                    /* steps */
};

struct panel_work {
  verdict decision[2];
  int row[2][CANDIDATES];                     /* -1: none */
  int finalist[2][MAX_BLOCKS / GROUP * STEP]; /* the groups' winners */
  __align__(16) float value[2][CANDIDATES][HONE_PANEL];
};

struct panel_args {
  float *f; /* the panel's first element */
  int64_t ld;
  int m, w;     /* rows, columns */
  int rows;     /* of a block */
  int eligible; /* rows that may become pivots */
  bool natural;
  int k; /* the panel's first row and column in the matrix */
  hone_moves *moves;
  int *zero_pivot;
  panel_sync *sync;
  panel_work *work;
};

/* What a block keeps in shared memory. */
struct shared_state {
  __align__(16) float u[HONE_PANEL]
                       [STEP]; /* the pivot rows' columns right of the step */
  __align__(16) float upper[STEP][STEP]; /* of the pivot rows: U, and */
  __align__(16) float lower[STEP][STEP]; /* inv(L); zeros beside them */
  arena game;
  float inverse[STEP]; /* of upper's diagonal */
  int pivot[STEP], from[STEP];
  int own[STEP], owned;          /* which of the pivots are this block's rows */
  int pivots[HONE_PANEL];        /* all so far */
  int last;                      /* this block plays the last level */
  unsigned used[MOST_ROWS / 32]; /* bit per row of the block: became a pivot */
};

__device__ __forceinline__ bool is_used(const shared_state *sh, int i) {
  return (sh->used[i / 32] >> (i % 32)) & 1;
}

/* Level 1, by the first warps: the block's rows. */
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
    const bool on = first_row + i < args.eligible && !is_used(sh, i);
    active |= (unsigned)on << r;
#pragma unroll
    for (int c = 0; c < STEP; c++)
      a[r][c] = on && c0 + c < args.w ? s[(c0 + c) * stride + i] : 0.0F;
  }
  play<R>(a, active, args.natural, &sh->game);
}

/* Candidate number i of a round: one after the other, or the finalists. */
__device__ __forceinline__ int candidate(const panel_args &args, int parity,
                                         int first, int i) {
  return first >= 0 ? first + i : __ldcg(&args.work->finalist[parity][i]);
}

/* Level 2: count candidates from the first on (-1: the finalists). */
template <int R>
__device__ __forceinline__ void level_two(const panel_args &args,
                                          shared_state *sh, int parity, int c0,
                                          int first, int count) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  float a[R][STEP];
  unsigned active = 0;
  if (warp >= PLAYERS)
    return;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int i = (warp * R + r) * 32 + lane;
    const int from = i < count ? candidate(args, parity, first, i) : -1;
    const bool on = from >= 0 && __ldcg(&args.work->row[parity][from]) >= 0;
    active |= (unsigned)on << r;
#pragma unroll
    for (int q = 0; q < STEP; q += 4) {
      float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      if (from >= 0) /* where there is no candidate, whatever stands there */
        v = __ldcg(reinterpret_cast<const float4 *>(
            &args.work->value[parity][from][c0 + q]));
      a[r][q] = v.x;
      a[r][q + 1] = v.y;
      a[r][q + 2] = v.z;
      a[r][q + 3] = v.w;
    }
  }
  play<R>(a, active, args.natural, &sh->game);
}

/* What level 2 has found, for all blocks. */
__device__ __forceinline__ void give_verdict(const panel_args &args,
                                             const shared_state *sh, int parity,
                                             int c0, int first) {
  const int tid = (int)threadIdx.x;
  const arena *g = &sh->game;
  verdict *v = &args.work->decision[parity];
  if (tid < STEP * STEP) {
    const int q = tid / STEP, c = tid % STEP;
    v->lu[q][c] =
        g->win[q] < 0 ? 0.0F : g->row[q][g->who[q]][(c - q + STEP) % STEP];
  } else if (tid < STEP * STEP + STEP) {
    const int p = tid - STEP * STEP, w = g->win[p];
    const int from = w < 0 ? -1 : candidate(args, parity, first, w);
    v->from[p] = from;
    v->row[p] = from < 0 ? -1 : __ldcg(&args.work->row[parity][from]);
    if (c0 + p < args.w && (from < 0 || g->row[p][g->who[p]][0] == 0.0F))
      atomicMin(args.zero_pivot, args.k + c0 + p);
  }
}

/* Is this block the last of count to come? For all its threads. */
__device__ __forceinline__ bool last_of(shared_state *sh, int *counter,
                                        int count) {
  __syncthreads();
  if (threadIdx.x == 0)
    sh->last = hone_arrive(counter) == count - 1;
  __syncthreads();
  return __shfl_sync(ALL, sh->last, 0) != 0; /* see warp_number */
}

/* Of many blocks, those of each group play among themselves. True: this is the
   last block of the last group. */
__device__ __forceinline__ bool settle_groups(const panel_args &args,
                                              shared_state *sh, int parity,
                                              int c0, int groups) {
  const int group = (int)blockIdx.x / GROUP, tid = (int)threadIdx.x;
  const int left = (int)gridDim.x - group * GROUP, step = c0 / STEP;
  const int members = left < GROUP ? left : (int)GROUP;
  const int first = group * GROUP * STEP;
  if (!last_of(sh, &args.sync->in_group[step][group], members))
    return false;
  level_two<2>(args, sh, parity, c0, first, members * STEP);
  __syncthreads();
  if (tid < STEP) {
    const int w = sh->game.win[tid];
    args.work->finalist[parity][group * STEP + tid] = w < 0 ? -1 : first + w;
  }
  return last_of(sh, &args.sync->arrived[step], groups);
}

/* The winners of this block's rows, with all columns from c0 on, for all
   blocks; then level 2, where that falls to it. True: it has decided. */
__device__ __forceinline__ bool publish(const panel_args &args, const float *s,
                                        shared_state *sh, int c0,
                                        int first_row) {
  const int step = c0 / STEP, parity = step % 2, stride = args.rows + 1;
  const int first = (int)blockIdx.x * STEP;
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  for (int i = warp; i < STEP; i += WARPS) {
    const int row = sh->game.win[i];
    if (lane == 0)
      args.work->row[parity][first + i] = row < 0 ? -1 : first_row + row;
    for (int c = c0 + lane; c < args.w && row >= 0; c += 32)
      args.work->value[parity][first + i][c] = s[c * stride + row];
  }
  const int blocks = __shfl_sync(ALL, (int)gridDim.x, 0); /* see there */
  const int groups = (blocks + GROUP - 1) / GROUP;
  const bool all = blocks <= TOGETHER;
  if (all ? !last_of(sh, &args.sync->arrived[step], blocks)
          : !settle_groups(args, sh, parity, c0, groups))
    return false;
  if (all && blocks > 32 * PLAYERS / STEP)
    level_two<4>(args, sh, parity, c0, 0, blocks * STEP);
  else
    level_two<1>(args, sh, parity, c0, all ? 0 : -1,
                 (all ? blocks : groups) * STEP);
  __syncthreads();
  give_verdict(args, sh, parity, c0, all ? 0 : -1);
  return true;
}

/* The pivot rows' part of U right of the step: inv(L) times their columns. The
   threads of a column make 4 rows each. */
__device__ __forceinline__ void
rows_of_u(const panel_args &args, shared_state *sh, int parity, int c0) {
  const int tid = (int)threadIdx.x, q0 = tid / HONE_PANEL * 4;
  const int c = c0 + STEP + tid % HONE_PANEL;
  if (c >= args.w)
    return;
  float x[STEP];
#pragma unroll
  for (int p = 0; p < STEP; p++)
    x[p] = sh->from[p] < 0 ? 0.0F
                           : __ldcg(&args.work->value[parity][sh->from[p]][c]);
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    float l[STEP], sum = 0.0F;
    load_row(sh->lower[q0 + q], l);
#pragma unroll
    for (int p = 0; p < STEP; p++)
      sum += l[p] * x[p];
    sh->u[c][q0 + q] = sum;
  }
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
    hone_store_release(&args.sync->decided, step + 1);
  } else if (tid == 0) {
    while (hone_load_acquire(&args.sync->decided) <= step) {
    }
  }
  __syncthreads();
  if (tid < STEP * STEP) {
    const int q = tid / STEP, c = tid % STEP;
    const float value = __ldcg(&v->lu[q][c]);
    sh->upper[q][c] = c >= q ? value : 0.0F;
    sh->lower[q][c] = c < q ? value : (c == q ? 1.0F : 0.0F);
    if (q == c)
      sh->inverse[q] = value != 0.0F ? 1.0F / value : 0.0F;
  } else if (tid < STEP * STEP + STEP) {
    const int p = tid - STEP * STEP;
    const int row = __ldcg(&v->row[p]), local = row - first_row;
    const bool counts = c0 + p < args.w && row >= 0;
    sh->from[p] = counts ? __ldcg(&v->from[p]) : -1;
    sh->pivot[p] = counts ? row : -1;
    if (counts)
      sh->pivots[c0 + p] = row;
    if (counts && local >= 0 && local < args.rows) {
      atomicOr(&sh->used[local / 32], 1U << (local % 32));
      sh->own[atomicAdd(&sh->owned, 1)] = p;
    }
  }
  __syncthreads();
  rows_of_u(args, sh, parity, c0);
  __syncthreads();
}

/* Which of the step's pivots a row is; -1: none. */
__device__ __forceinline__ int pivot_of(const shared_state *sh, int row) {
  for (int e = 0; e < sh->owned; e++)
    if (sh->pivot[sh->own[e]] == row)
      return sh->own[e];
  return -1;
}

/* The multipliers of the block's rows, a thread for each: l = a inv(U11), a its
   16 columns. Those that are pivot rows become rows of L and U. */
__device__ __forceinline__ void multipliers(const panel_args &args, float *s,
                                            const shared_state *sh, int c0,
                                            int first_row) {
  const int i = (int)threadIdx.x, stride = args.rows + 1;
  if (i >= args.rows)
    return;
  const int q = is_used(sh, i) ? pivot_of(sh, first_row + i) : STEP;
  if (q < 0)
    return;
  float l[STEP];
#pragma unroll
  for (int p = 0; p < STEP; p++)
    l[p] = c0 + p < args.w ? s[(c0 + p) * stride + i] : 0.0F;
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    float u[STEP];
    load_row(sh->upper[p], u);
    l[p] *= sh->inverse[p];
#pragma unroll
    for (int r = p + 1; r < STEP; r++)
      l[r] -= l[p] * u[r];
  }
#pragma unroll
  for (int p = 0; p < STEP; p++)
    if (c0 + p < args.w)
      s[(c0 + p) * stride + i] = p < q ? l[p] : sh->upper[q][p];
}

/* Then the next 16 columns: the threads of a row do a part of them each. */
__device__ __forceinline__ void eliminate(const panel_args &args, float *s,
                                          shared_state *sh, int c0,
                                          int first_row) {
  const int tid = (int)threadIdx.x, stride = args.rows + 1;
  const int parts = THREADS / args.rows, part = tid / args.rows;
  const int i = tid % args.rows, next = c0 + STEP;
  const int from = next + part * (STEP / parts);
  const int to = min(args.w, from + STEP / parts);
  multipliers(args, s, sh, c0, first_row);
  __syncthreads();
  if (part < parts && !is_used(sh, i) && from < to) {
    float l[STEP];
#pragma unroll
    for (int p = 0; p < STEP; p++)
      l[p] = s[(c0 + p) * stride + i];
#pragma unroll 1
    for (int c = from; c < to; c++) {
      float u[STEP], sum = s[c * stride + i];
      load_row(sh->u[c], u);
#pragma unroll
      for (int p = 0; p < STEP; p++)
        sum -= l[p] * u[p];
      s[c * stride + i] = sum;
    }
  }
  for (int e = 0; e < sh->owned; e++) { /* the pivot rows themselves */
    const int p = sh->own[e], row = sh->pivot[p] - first_row;
    for (int c = next + tid; c < args.w; c += THREADS)
      s[c * stride + row] = sh->u[c][p];
  }
  __syncthreads();
}

/* The columns from 'from' on, by the warps that do not play. */
__device__ void update(const panel_args &args, float *s, const shared_state *sh,
                       int c0, int from) {
  constexpr int R = 4;
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1;
  for (int i0 = 0; i0 < args.rows; i0 += 32 * R) {
    float l[R][STEP];
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int i = i0 + r * 32 + lane;
      const bool active = !is_used(sh, i);
#pragma unroll
      for (int p = 0; p < STEP; p++)
        l[r][p] = active ? s[(c0 + p) * stride + i] : 0.0F;
    }
    for (int c = from + warp - PLAYERS; c < args.w; c += WARPS - PLAYERS) {
      float u[STEP];
      load_row(sh->u[c], u);
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int at = c * stride + i0 + r * 32 + lane;
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
  if (tid < MOST_ROWS / 32)
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
  if (warp < PLAYERS)
    level_one<R>(args, s, sh, 0, first_row);
  for (int c0 = 0;; c0 += STEP) {
    __syncthreads();
    const bool judge = publish(args, s, sh, c0, first_row);
    take_verdict(args, sh, c0, first_row, judge);
    eliminate(args, s, sh, c0, first_row);
    if (c0 + STEP >= args.w)
      break;
    if (warp < PLAYERS)
      level_one<R>(args, s, sh, c0 + STEP, first_row);
    else
      update(args, s, sh, c0, c0 + 2 * STEP);
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
    if (row < args.w || is_used(sh, i)) {
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

/* How a panel of m rows is cut into blocks, r rows a lane in level 1. Few
   blocks leave the others of the device to what runs beside; many rows in a
   block take longer to update. */
struct panel_shape {
  int r, rows, blocks;
};

panel_shape shape_of(int64_t m) {
  panel_shape p = {1, 0, 0};
  if (m > (int64_t)TOGETHER * 128)
    p.r = m > (int64_t)MAX_BLOCKS * 256 ? 3 : 2;
  p.rows = 32 * PLAYERS * p.r;
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

int64_t hone_cuda_panel_rows() { return (int64_t)MAX_BLOCKS * MOST_ROWS; }

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
  args.eligible = pivoting == HONE_BLOCK_ONLY ? (int)w : args.m;
  args.natural = pivoting == HONE_NATURAL;
  args.k = (int)k;
  args.moves = moves;
  args.zero_pivot = zero_pivot;
  args.sync = reinterpret_cast<panel_sync *>(bytes) + k;
  args.work = reinterpret_cast<panel_work *>(bytes + sync_bytes(n));
  if (shape.r == 1)
    return launch<1>(args, shape.blocks, stream);
  if (shape.r == 2)
    return launch<2>(args, shape.blocks, stream);
  return launch<3>(args, shape.blocks, stream);
}
