/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a panel of up to HONE_PANEL columns with tournament pivoting (Grigori,
   Demmel & Xiang 2011, CALU), in single precision, in one launch. The panel's
   rows lie in the shared memory of up to 128 thread blocks; for every 16
   columns (8 of complex numbers: written here for 16)

     level 1  each thread block does LU with partial pivoting on its rows, in
              registers, and posts the 16 pivot rows as candidates
     level 2  every thread block does the same with all candidates (where there
              are many, one thread block has first chosen 16 of those of each 16
              thread blocks): this gives the 16 pivot rows, with U and inv(L) of
              their 16 x 16 block
     update   every thread block computes the pivot rows' part of U and its own
              rows' multipliers, and updates its rows; level 1 of the next 16
              columns begins as soon as those columns are up to date

   Rows do not move while the panel is being factored; they are written back in
   their new order at the end. Read next: tournament.h for levels 1 and 2,
   tall_panel.cu for panels of more rows, steps.cu for what follows a panel. */
#include "gpu_sp/factor/panel_shape.h"

namespace {

/* Stores the result of level 2 in shared memory: factors and pivot rows. */
__device__ __forceinline__ void
store_pivots(const panel_args &args, shared_state *sh, int c0, int first_row) {
  const int tid = hone_hide_value((int)threadIdx.x);
  const lu_exchange *g = &sh->exchange;
  if (tid < STEP * STEP) {
    const int q = tid / STEP, c = tid % STEP;
    const bool none = g->pivot_row[q] < 0;
    const number *row = g->row[q][g->pivot_warp[q]];
    const number u = none || q + c >= STEP ? number_of(0.0F) : row[c];
    sh->upper[q][c] = u;
    if (c == 0)
      sh->inverse[q] = inverse_of(u);
    const number l =
        none || c >= q ? number_of(0.0F) : row[(c - q + STEP) % STEP];
    sh->lower[c][q] = c == q ? number_of(1.0F) : l;
  } else if (tid < STEP * STEP + STEP) {
    const int p = tid - STEP * STEP, w = g->pivot_row[p];
    const bool in = c0 + p < args.w, counts = in && w >= 0;
    const bool final = (int)gridDim.x > args.merged_blocks;
    const int row = counts ? sh->row[w] : -1, local = row - first_row;
    sh->from[p] = counts ? (final ? sh->chosen[w] : w) : -1;
    sh->pivot[p] = row;
    if (counts)
      sh->pivots[c0 + p] = row;
    if (counts && local >= 0 && local < args.rows) {
      atomicOr(&sh->used[local / 32], 1U << (local % 32));
      sh->own[atomicAdd(&sh->owned, 1)] = p;
    }
    if (blockIdx.x == 0 && in &&
        (w < 0 || is_zero(g->row[p][g->pivot_warp[p]][0])))
      atomicMin(args.zero_pivot, args.k + c0 + p);
  }
  __syncthreads();
}

/* Computes the pivot rows' part of U right of the step, inv(L) times their
   columns, in the warps that have no rows of their own. */
__device__ __forceinline__ void rows_of_u(const panel_args &args, float *s,
                                          shared_state *sh, int c0,
                                          unsigned tag) {
  column_of_u *u = u_of(args, s);
  row_of_a *right = a_of(args, s);
  const int threads = THREADS - args.rows, left = args.w - c0 - STEP;
  const int floats = HONE_PARTS * left, first = HONE_PARTS * (c0 + STEP);
  const int tid = hone_hide_value((int)threadIdx.x) - args.rows;
  constexpr int AT_ONCE = 6;
#pragma unroll 1
  for (int e0 = tid; e0 < STEP * HONE_WIDE; e0 += AT_ONCE * threads) {
    const posted *at[AT_ONCE];
    posted word[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
      const int e = e0 + k * threads, p = e / HONE_WIDE, c = e % HONE_WIDE;
      const int from = e < STEP * HONE_WIDE && c < floats ? sh->from[p] : -1;
      at[k] = &args.work->value[c0 / STEP % 2][from < 0 ? 0 : from][first];
      word[k] = (posted)tag << 32;
      if (from >= 0)
        word[k] = hone_load_word(at[k] + c);
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
      const int e = e0 + k * threads, p = e / HONE_WIDE, c = e % HONE_WIDE;
      if (e < STEP * HONE_WIDE && c < floats)
        reinterpret_cast<float *>(right[p])[c] =
            __uint_as_float(tag_of(word[k]) == tag ? (unsigned)word[k]
                                                   : receive(at[k] + c, tag));
    }
  }
  hone_barrier(2, threads);
  if (tid >= 32 * STEP / 4)
    return;
  constexpr int EACH = HONE_PANEL / 32;
  const int c = tid % 32, q = tid / 32 * 4; /* EACH columns, 4 rows */
  number sum[EACH][4] = {};
#pragma unroll 4
  for (int p = 0; p < STEP; p++) {
    number l[4], x[EACH];
#pragma unroll
    for (int r = 0; r < 4; r++)
      l[r] = sh->lower[p][q + r];
#pragma unroll
    for (int e = 0; e < EACH; e++)
      x[e] = c + e * 32 < left ? right[p][c + e * 32] : number_of(0.0F);
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int r = 0; r < 4; r++)
        sum[e][r] = plus_product(sum[e][r], l[r], x[e]);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (c + e * 32 < left)
#pragma unroll
      for (int r = 0; r < 4; r += NUMBERS_IN_FOUR)
        *reinterpret_cast<float4 *>(&u[c0 + STEP + c + e * 32][q + r]) =
            four_of(&sum[e][r]);
}

/* Returns the number of the row among the step's pivot rows; -1: it is none. */
__device__ __forceinline__ int pivot_number(const shared_state *sh, int row) {
  for (int e = 0; e < sh->owned; e++)
    if (sh->pivot[sh->own[e]] == row)
      return sh->own[e];
  return -1;
}

/* Computes the multipliers of the thread block's rows, one row a thread:
   l = a inv(U11), a the row's columns of the step. Pivot rows become rows of L
   and U. The columns shift through the registers as in register_lu.h. */
__device__ __forceinline__ void multipliers(const panel_args &args, float *s,
                                            const shared_state *sh, int c0,
                                            int first_row) {
  const int i = (int)threadIdx.x, stride = args.rows + 1;
  const int q = is_used(sh, i) ? pivot_number(sh, first_row + i) : (int)STEP;
  if (q < 0)
    return;
  number l[STEP];
#pragma unroll
  for (int p = 0; p < STEP; p++)
    l[p] = c0 + p < args.w ? get(s, stride, c0 + p, i) : number_of(0.0F);
#pragma unroll 4
  for (int p = 0; p < STEP; p++) {
    number u[STEP];
    load_row(sh->upper[p], u);
    const number m = l[0] * sh->inverse[p];
    number at = m;
    if (p >= q)
      at = sh->upper[q][p - q];
    if (c0 + p < args.w)
      put(s, stride, c0 + p, i, at);
#pragma unroll
    for (int r = 1; r < STEP; r++)
      l[r - 1] = less_product(l[r], m, u[r]);
  }
}

/* Updates the next STEP columns: a warp takes some of them in 64 rows. */
__device__ __forceinline__ void eliminate(const panel_args &args, float *s,
                                          const shared_state *sh, int c0,
                                          int first_row) {
  constexpr int R = 2;
  const column_of_u *right = u_of(args, s);
  const int tid = (int)threadIdx.x, stride = args.rows + 1, next = c0 + STEP;
  const int strips = args.rows / (32 * R), warp = warp_number();
  const int each = STEP / (WARPS / strips); /* 8, 4 or 2 warps share a strip */
  const int i = warp % strips * 32 * R + tid % 32;
  const int from = next + warp / strips * each;
  const int to = min(min(args.w, next + STEP), from + each);
  if (from < to) {
    number l[R][STEP];
    bool left[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
      left[r] = !is_used(sh, i + 32 * r);
#pragma unroll
      for (int p = 0; p < STEP; p++)
        l[r][p] =
            left[r] ? get(s, stride, c0 + p, i + 32 * r) : number_of(0.0F);
    }
#pragma unroll 2
    for (int c = from; c < to; c++) {
      number u[STEP];
      load_row(right[c], u);
#pragma unroll
      for (int r = 0; r < R; r++) {
        number sum = left[r] ? get(s, stride, c, i + 32 * r) : number_of(0.0F);
#pragma unroll
        for (int p = 0; p < STEP; p++)
          sum = less_product(sum, l[r][p], u[p]);
        if (left[r])
          put(s, stride, c, i + 32 * r, sum);
      }
    }
  }
  for (int e = tid / HONE_PANEL; e < sh->owned; e += THREADS / HONE_PANEL) {
    const int p = sh->own[e], c = next + tid % HONE_PANEL;
    if (c < args.w) /* the pivot rows themselves */
      put(s, stride, c, sh->pivot[p] - first_row, right[c][p]);
  }
  __syncthreads();
}

/* Updates the columns from 'from' on, in the warps that take no part in
   level 1. */
__device__ __forceinline__ void update(const panel_args &args, float *s,
                                       const shared_state *sh, int c0,
                                       int from) {
  constexpr int R = 4;
  const column_of_u *right = u_of(args, s);
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1, first = from + warp - LU_WARPS;
  for (int i0 = 0; i0 < args.rows; i0 += 32 * R) {
    number l[R][STEP];
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int i = i0 + r * 32 + lane;
      const bool active = !is_used(sh, i);
#pragma unroll
      for (int p = 0; p < STEP; p++)
        l[r][p] = active ? get(s, stride, c0 + p, i) : number_of(0.0F);
    }
    for (int c = first; c < args.w; c += WARPS - LU_WARPS) {
      number u[STEP];
      load_row(right[c], u);
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int i = i0 + r * 32 + lane;
        number sum = get(s, stride, c, i);
#pragma unroll
        for (int p = 0; p < STEP; p++)
          sum = less_product(sum, l[r][p], u[p]);
        put(s, stride, c, i, sum);
      }
    }
  }
}

/* Finds which rows go where from the list of pivot rows: pivot rows go to the
   top, and the rows that they displace to the places they left. */
__device__ void find_moves(const panel_args &args, const shared_state *sh,
                           int *dst, int *src, unsigned *top, int *before) {
  const int tid = (int)threadIdx.x, lane = tid % 32, w = args.w;
  const bool in = tid < w, mine = tid < HONE_PANEL;
  const int pivot = in ? sh->pivots[tid] : 0;
  if (mine)
    dst[HONE_PANEL + tid] = dst[tid] = -1;
  if (tid < HONE_PANEL / 32)
    top[tid] = 0;
  __syncthreads();
  if (in && pivot < w)
    atomicOr(&top[pivot / 32], 1U << (pivot % 32));
  __syncthreads();
  /* A pivot row from below the top leaves a place, and a row of the top that is
     no pivot row needs one: each counts those before it. */
  const bool leaves = in && pivot >= w;
  const bool displaced = in && !((top[mine ? tid / 32 : 0] >> lane) & 1);
  const unsigned a = __ballot_sync(ALL, leaves);
  const unsigned b = __ballot_sync(ALL, displaced), below = (1U << lane) - 1;
  if (mine && lane == 0) {
    before[tid / 32] = __popc(a);
    before[4 + tid / 32] = __popc(b);
  }
  __syncthreads();
  if (in) {
    int left = __popc(a & below), needs = __popc(b & below);
    for (int q = 0; q < tid / 32; q++) {
      left += before[q];
      needs += before[4 + q];
    }
    dst[tid] = tid;
    src[tid] = pivot;
    if (leaves)
      dst[w + left] = pivot;
    if (displaced)
      src[w + needs] = tid;
  }
  __syncthreads();
}

/* Rows move between global and shared memory. A warp takes a row, and has this
   many of its rows under way at once. */
constexpr int ROWS_AT_ONCE = 8, WIDE = HONE_WIDE / 32;

__device__ __forceinline__ void read_rows(const panel_args &args, float *s,
                                          shared_state *sh, int first_row) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1, w = HONE_PARTS * args.w; /* floats */
  for (int i0 = warp; i0 < args.rows; i0 += ROWS_AT_ONCE * WARPS) {
    float v[ROWS_AT_ONCE][WIDE];
#pragma unroll
    for (int e = 0; e < ROWS_AT_ONCE; e++) {
      const int row = first_row + i0 + e * WARPS;
      const float *from = args.f + (int64_t)row * args.ld + lane;
#pragma unroll
      for (int q = 0; q < WIDE; q++)
        v[e][q] = row < args.m && lane + q * 32 < w ? from[q * 32] : 0.0F;
    }
#pragma unroll
    for (int e = 0; e < ROWS_AT_ONCE; e++) {
      const int i = i0 + e * WARPS;
#pragma unroll
      for (int q = 0; q < WIDE; q++)
        if (lane + q * 32 < w)
          s[(lane + q * 32) * stride + i] = v[e][q];
      if (lane == 0 && first_row + i >= args.m)
        atomicOr(&sh->used[i / 32], 1U << (i % 32));
    }
  }
}

/* Row i of the thread block goes to row place[i]. */
__device__ __forceinline__ void write_rows(const panel_args &args,
                                           const float *s, const int *place,
                                           int first_row) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1, w = HONE_PARTS * args.w; /* floats */
#pragma unroll 2
  for (int i = warp; i < args.rows && first_row + i < args.m; i += WARPS) {
    float *to = args.f + (int64_t)place[i] * args.ld + lane;
#pragma unroll
    for (int q = 0; q < WIDE; q++)
      if (lane + q * 32 < w)
        to[q * 32] = s[(lane + q * 32) * stride + i];
  }
}

template <int R>
__global__ void __launch_bounds__(THREADS, 1) factor_panel(panel_args args) {
  HONE_DYNAMIC_SHARED(float, s);
  __shared__ shared_state state;
  __shared__ int dst[2 * HONE_PANEL], src[2 * HONE_PANEL], before[8];
  __shared__ unsigned top[HONE_PANEL / 32];
  shared_state *sh = &state;
  const int tid = (int)threadIdx.x, warp = warp_number();
  const int first_row = (int)blockIdx.x * args.rows;
  if (tid < HONE_PANEL)
    sh->pivots[tid] = 0;
  if (tid < MOST_ROWS / 32)
    sh->used[tid] = 0;
  if (tid == 0) /* Thread block 0 writes the tag at its end, which it does not
                   reach before this thread block has posted. */
    sh->tag = __ldcg(&args.work->tag);
  __syncthreads();
  read_rows(args, s, sh, first_row);
  __syncthreads();
  if (warp < LU_WARPS)
    level_one<R>(args, s, sh, 0, first_row);
  unsigned tag = sh->tag;
  for (int c0 = 0;; c0 += STEP) {
    __syncthreads();
    tag++;
    post_winners(args, s, sh, c0, first_row, tag);
    choose_pivots(args, s, sh, c0, tag);
    store_pivots(args, sh, c0, first_row);
    if (warp < args.rows / 32)
      multipliers(args, s, sh, c0, first_row);
    else
      rows_of_u(args, s, sh, c0, tag);
    __syncthreads();
    eliminate(args, s, sh, c0, first_row);
    if (c0 + STEP >= args.w)
      break;
    if (warp < LU_WARPS)
      level_one<R>(args, s, sh, c0 + STEP, first_row);
    else
      update(args, s, sh, c0, c0 + 2 * STEP);
  }
  find_moves(args, sh, dst, src, top, before);
  if (blockIdx.x == 0 && tid == 0)
    args.work->tag = tag;
  int *place = reinterpret_cast<int *>(s + args.scratch_at);
  if (tid < args.rows)
    place[tid] = first_row + tid;
  __syncthreads();
  if (tid < 2 * HONE_PANEL) {
    const bool none = dst[tid] < 0;
    if (!none && src[tid] >= first_row && src[tid] < first_row + args.rows)
      place[src[tid] - first_row] = dst[tid];
    if (blockIdx.x == 0) {
      args.moves->dst[tid] = none ? -1 : args.k + dst[tid];
      args.moves->src[tid] = none ? -1 : args.k + src[tid];
    }
  }
  __syncthreads();
  write_rows(args, s, place, first_row);
}

using panel_kernel = void (*)(panel_args);

/* Returns the kernel whose thread blocks have so many rows. */
panel_kernel kernel_of(int rows) {
  static const panel_kernel kernels[SIZES] = {factor_panel<1>, factor_panel<2>,
                                              factor_panel<3>};
  return kernels[rows / WARP_ROWS - 1];
}

} // namespace

/* The workspace of tall_panel.cu follows this one. */
int64_t hone_cuda_panel_bytes(int64_t n, int64_t part_rows) {
  const int64_t flat = ((int64_t)sizeof(panel_work) + 255) / 256 * 256;
  return flat + hone_cuda_tall_bytes(n, part_rows);
}

int hone_cuda_panel_blocks(int64_t rows, const hone_panel_room &room) {
  const int64_t parts = hone_cuda_panel_parts(rows, room.part_rows);
  const int64_t of_part = (rows + parts - 1) / parts;
  const int each = rows_of_block(of_part, room.few_blocks, limits_here());
  return (int)((of_part + each - 1) / each);
}

int64_t hone_cuda_panel_rows() {
  const panel_limits limits = limits_here();
  int64_t most = 2 * HONE_PANEL; /* tall_panel.cu needs so many */
  for (int size = 1; size <= SIZES; size++) {
    const int64_t rows = (int64_t)limits.blocks[size - 1] * size * WARP_ROWS;
    most = rows > most ? rows : most;
  }
  return most;
}

cudaError_t hone_cuda_panel(const hone_panel &panel, hone_moves *moves,
                            int *zero_pivot, const hone_panel_room &room,
                            cudaStream_t stream) {
  const int64_t k = panel.k, rows = panel.f.n - k;
  if (hone_cuda_panel_parts(rows, room.part_rows) > 1)
    return hone_cuda_tall_panel(panel, moves, zero_pivot, room, stream);
  panel_shape shape = {};
  const panel_limits limits = limits_here();
  shape_of(rows, panel.w, rows_of_block(rows, room.few_blocks, limits),
           limits.shared, &shape);
  panel_args args = {};
  args.f = panel.f.f + k * panel.f.ld + HONE_PARTS * k;
  args.ld = panel.f.ld;
  args.m = (int)rows;
  args.w = (int)panel.w;
  args.rows = shape.rows;
  args.merged_blocks = shape.merged_blocks;
  args.scratch_at = shape.scratch_at;
  args.eligible = panel.pivoting == HONE_BLOCK_ONLY ? args.w : args.m;
  args.natural = panel.pivoting == HONE_NATURAL;
  args.k = (int)k;
  args.moves = moves;
  args.zero_pivot = zero_pivot;
  args.work = static_cast<panel_work *>(room.memory);
  const panel_kernel kernel = kernel_of(shape.rows);
  /* A kernel has one limit for all threads of the process: it is the same for
     every panel, as the launch of another thread may come in between. */
  const cudaError_t e = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)limits.shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH_COOPERATIVE(kernel, shape.blocks, THREADS, shape.shared, stream,
                          args);
  return cudaGetLastError();
}
