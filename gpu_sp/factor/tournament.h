/* SPDX-License-Identifier: BSD-3-Clause */
/* The tournament that chooses the pivots of a panel (panel.cu), in single
   precision. Each thread block factors its own rows (register_lu.h) and posts
   the 16 pivot rows (8 of complex numbers) as candidates; then every thread
   block factors the candidates of all, and so finds the same pivot rows.

   The time from one step of columns to the next bounds the panel's. So no
   thread block decides for the others, and there are no counters and no fences:
   each number is posted in one word with the tag of its step, and a reader
   reads until the tag is right. Included by panel.cu alone; read that next. */
#ifndef HONE_CUDA_TOURNAMENT_H
#define HONE_CUDA_TOURNAMENT_H

#include "gpu_sp/factor/register_lu.h"

namespace {

enum {
  MAX_BLOCKS = 128,
  FEW_BLOCKS = 64,
  CANDIDATES = MAX_BLOCKS * STEP,
  MERGED_BLOCKS = 32, /* the candidates of so many thread blocks are factored at
                         once; */
  GROUP = 16,         /* of more, those of so many are factored first */
  FINALISTS = MAX_BLOCKS / GROUP * STEP,
  OF_GROUP = GROUP * STEP / WARP_ROWS, /* rows that a lane has of the candidates
                                          of a group, */
  OF_ALL = MERGED_BLOCKS * STEP / WARP_ROWS, /* and of those that are factored
                                                at once */
  MOST_ROWS = 384,            /* of a thread block, by its shared memory */
  CANDIDATE_STRIDE = STEP + 1 /* floats apart, against bank conflicts */
};

/* A number of 32 bits, and above it the tag of its step. */
typedef unsigned long long posted;

/* Workspace of the panels. A thread block posts the words of a step only when
   it has read all words of the step before. So whoever has seen the words of
   all thread blocks for the present step may overwrite those of the step
   before: two sets are enough. */
struct panel_work {
  unsigned tag;              /* the last one used */
  posted row[2][CANDIDATES]; /* -1: none */
  __align__(16) posted value[2][CANDIDATES][HONE_WIDE];
  posted finalist[2][FINALISTS]; /* the candidates that the groups chose */
  posted final_row[2][FINALISTS];
  __align__(16) posted final_value[2][FINALISTS][HONE_STEP_FLOATS];
};

struct panel_args {
  float *f; /* the panel's first element */
  int64_t ld;
  int m, w;          /* rows, columns */
  int rows;          /* of a thread block */
  int merged_blocks; /* most thread blocks whose candidates are factored at
                        once; with more, those of groups are factored first */
  int scratch_at;    /* floats before the scratch area in shared memory */
  int eligible;      /* rows that may become pivots */
  bool natural;
  int k; /* the panel's first row and column in the matrix */
  hone_moves *moves;
  int *zero_pivot;
  panel_work *work;
};

/* A thread block keeps this in shared memory, beside its rows s and the scratch
   area behind them. */
struct shared_state {
  __align__(16) number upper[STEP][STEP]; /* U of the pivot rows, row by row, */
  __align__(16) number lower[STEP][STEP]; /* from the diagonal on; and inv(L),
                                            column by column */
  lu_exchange exchange;
  number inverse[STEP];          /* of U's diagonal */
  int row[MERGED_BLOCKS * STEP]; /* of the candidates; -1: none */
  int chosen[FINALISTS];         /* which candidates the groups chose */
  int pivot[STEP], from[STEP];
  int own[STEP], owned;   /* the pivots that are rows of this thread block */
  int pivots[HONE_PANEL]; /* all pivot rows so far */
  unsigned tag;           /* of the step before the first */
  unsigned used[MOST_ROWS / 32]; /* a bit per row of the thread block: it became
                                    a pivot row */
};

/* The scratch area holds the candidates; afterwards the pivot rows in the
   columns right of the step: first U, column by column, then the entries of A
   that U is computed from, row by row. */
typedef number candidate_row[CANDIDATE_STRIDE];
__device__ __forceinline__ candidate_row *candidates_at(const panel_args &args,
                                                        float *s) {
  return reinterpret_cast<candidate_row *>(s + args.scratch_at);
}

typedef number column_of_u[STEP];
typedef number row_of_a[HONE_PANEL];
__device__ __forceinline__ column_of_u *u_of(const panel_args &args, float *s) {
  return reinterpret_cast<column_of_u *>(s + args.scratch_at);
}

__device__ __forceinline__ row_of_a *a_of(const panel_args &args, float *s) {
  return reinterpret_cast<row_of_a *>(s + args.scratch_at +
                                      HONE_PANEL * HONE_STEP_FLOATS);
}

__device__ __forceinline__ bool is_used(const shared_state *sh, int i) {
  return (sh->used[i / 32] >> (i % 32)) & 1;
}

/* Does level 1: the first warps factor the thread block's rows. */
template <int R>
__device__ __forceinline__ void level_one(const panel_args &args,
                                          const float *s, shared_state *sh,
                                          int c0, int first_row) {
  const int lane = (int)threadIdx.x % 32, warp = warp_number();
  const int stride = args.rows + 1;
  number a[R][STEP];
  unsigned active = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int i = (warp * R + r) * 32 + lane;
    const bool on = first_row + i < args.eligible && !is_used(sh, i);
    active |= (unsigned)on << r;
#pragma unroll
    for (int c = 0; c < STEP; c++)
      a[r][c] =
          on && c0 + c < args.w ? get(s, stride, c0 + c, i) : number_of(0.0F);
  }
  register_lu<R>(a, active, args.natural, &sh->exchange);
}

__device__ __forceinline__ void post(posted *to, unsigned bits, unsigned tag) {
  hone_store_word(to, (posted)tag << 32 | bits);
}

__device__ __forceinline__ unsigned tag_of(posted word) {
  return (unsigned)(word >> 32);
}

/* Waits for the number, and returns it. */
__device__ __forceinline__ unsigned receive(const posted *from, unsigned tag) {
  posted word = hone_load_word(from);
#pragma unroll 1
  while (tag_of(word) != tag) {
    hone_poll_pause();
    word = hone_load_word(from);
  }
  return (unsigned)word;
}

/* Where the candidates of one LU are posted: 16 floats for each, 'stride' words
   from candidate to candidate. */
struct candidate_list {
  const posted *row, *chosen, *value;
  int stride, count;
  unsigned tag;
};

/* Four floats of a candidate, which one thread loads. */
struct four_words {
  posted a, b, c, d;
};
__device__ __forceinline__ const posted *four_at(const candidate_list &of,
                                                 int unit) {
  return of.value + (unit / 4) * of.stride + unit % 4 * 4;
}
__device__ __forceinline__ four_words load_four(const candidate_list &of,
                                                int unit) {
  four_words q = {};
  if (unit / 4 < of.count) {
    hone_load_two_words(four_at(of, unit), &q.a, &q.b);
    hone_load_two_words(four_at(of, unit) + 2, &q.c, &q.d);
  }
  return q;
}

/* Stores the numbers to shared memory, at once or as soon as they have come. */
__device__ __forceinline__ void store_four(const candidate_list &of, int unit,
                                           const four_words &q,
                                           candidate_row *candidates) {
  const int i = unit / 4, part = unit % 4;
  float *to = reinterpret_cast<float *>(candidates[i]) + part * 4;
  if (i >= of.count)
    return;
  if (tag_of(q.a) == of.tag && tag_of(q.b) == of.tag && tag_of(q.c) == of.tag &&
      tag_of(q.d) == of.tag) {
    to[0] = __uint_as_float((unsigned)q.a);
    to[1] = __uint_as_float((unsigned)q.b);
    to[2] = __uint_as_float((unsigned)q.c);
    to[3] = __uint_as_float((unsigned)q.d);
  } else {
#pragma unroll 1
    for (int e = 0; e < 4; e++)
      to[e] = __uint_as_float(receive(four_at(of, unit) + e, of.tag));
  }
}

/* Does level 2, for at most 128 R candidates: all threads of the thread block
   bring them to shared memory, and the first warps factor them. */
template <int R>
__device__ __forceinline__ void
level_two(const panel_args &args, const candidate_list &of, shared_state *sh,
          candidate_row *candidates) {
  const int tid = hone_hide_value((int)threadIdx.x), lane = tid % 32;
  const int warp = warp_number();
  const bool in = tid < of.count, named = in && of.chosen;
  const posted row = in ? hone_load_word(of.row + tid) : 0;
  const posted chosen = named ? hone_load_word(of.chosen + tid) : 0;
  four_words q[R];
#pragma unroll
  for (int r = 0; r < R; r++)
    q[r] = load_four(of, tid + r * THREADS);
#pragma unroll
  for (int r = 0; r < R; r++)
    store_four(of, tid + r * THREADS, q[r], candidates);
  if (in)
    sh->row[tid] = (int)(tag_of(row) == of.tag ? (unsigned)row
                                               : receive(of.row + tid, of.tag));
  if (named)
    sh->chosen[tid] =
        (int)(tag_of(chosen) == of.tag ? (unsigned)chosen
                                       : receive(of.chosen + tid, of.tag));
  __syncthreads();
  if (warp < LU_WARPS) {
    number a[R][STEP];
    unsigned active = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int i = (warp * R + r) * 32 + lane;
      const bool on = i < of.count && sh->row[i] >= 0;
      active |= (unsigned)on << r;
#pragma unroll
      for (int c = 0; c < STEP; c++)
        a[r][c] = on ? candidates[i][c] : number_of(0.0F);
    }
    register_lu<R>(a, active, args.natural, &sh->exchange);
  }
  __syncthreads();
}

/* Posts this thread block's candidates, with all columns from c0 on. */
__device__ __forceinline__ void post_winners(const panel_args &args,
                                             const float *s, shared_state *sh,
                                             int c0, int first_row,
                                             unsigned tag) {
  const int parity = c0 / STEP % 2, stride = args.rows + 1;
  const int first = (int)blockIdx.x * STEP;
  const int lane = hone_hide_value((int)threadIdx.x) % 32, warp = warp_number();
  if (threadIdx.x == 0)
    sh->owned = 0;
  for (int i = warp; i < STEP; i += WARPS) {
    const int row = sh->exchange.pivot_row[i];
    posted *to = args.work->value[parity][first + i];
    const int end = HONE_PARTS * args.w; /* floats */
    for (int c = HONE_PARTS * c0 + lane;
         c < end || c < HONE_PARTS * (c0 + STEP); c += 32) {
      const bool on = row >= 0 && c < end;
      post(to + c, on ? __float_as_uint(s[c * stride + row]) : 0U, tag);
    }
    if (lane == 0)
      post(&args.work->row[parity][first + i],
           (unsigned)(row < 0 ? -1 : first_row + row), tag);
  }
}

/* Posts the candidates that a group chose. */
__device__ __forceinline__ void post_group_winners(const panel_args &args,
                                                   const shared_state *sh,
                                                   int parity, int c0,
                                                   int group, unsigned tag) {
  const int tid = hone_hide_value((int)threadIdx.x);
  if (tid >= STEP * HONE_STEP_FLOATS)
    return;
  const int p = tid / HONE_STEP_FLOATS, c = tid % HONE_STEP_FLOATS;
  const int w = sh->exchange.pivot_row[p];
  const int at = group * STEP + p, from = group * GROUP * STEP + w;
  const posted *value =
      &args.work->value[parity][w < 0 ? 0 : from][HONE_PARTS * c0 + c];
  const unsigned bits = w < 0 ? 0U : receive(value, tag);
  post(&args.work->final_value[parity][at][c], bits, tag);
  if (c == 0)
    post(&args.work->finalist[parity][at], (unsigned)(w < 0 ? -1 : from), tag);
  if (c == 1)
    post(&args.work->final_row[parity][at], (unsigned)(w < 0 ? -1 : sh->row[w]),
         tag);
}

/* Does level 2, where there are many thread blocks after a level for groups of
   them. The result is in sh->exchange, and refers to the candidates of the last
   level. */
__device__ __forceinline__ void choose_pivots(const panel_args &args, float *s,
                                              shared_state *sh, int c0,
                                              unsigned tag) {
  candidate_row *candidates = candidates_at(args, s);
  const int parity = c0 / STEP % 2;
  const int blocks =
      __shfl_sync(ALL, (int)gridDim.x, 0); /* uniform: see warp_number */
  const int block = __shfl_sync(ALL, (int)blockIdx.x, 0);
  panel_work *work = args.work;
  candidate_list of = {work->row[parity],
                       nullptr,
                       &work->value[parity][0][HONE_PARTS * c0],
                       HONE_WIDE,
                       blocks * STEP,
                       tag};
  if (blocks * STEP <= WARP_ROWS)
    level_two<1>(args, of, sh, candidates);
  else if (blocks <= GROUP)
    level_two<OF_GROUP>(args, of, sh, candidates);
  else if (blocks <= args.merged_blocks)
    level_two<OF_ALL>(args, of, sh, candidates);
  if (blocks <= args.merged_blocks)
    return;
  const int groups = (blocks + GROUP - 1) / GROUP, group = block / GROUP;
  if (block % GROUP == 0) {
    const int left = blocks - block, first = block * STEP;
    of.row += first;
    of.value += (int64_t)first * of.stride;
    of.count = (left < GROUP ? left : (int)GROUP) * STEP;
    level_two<OF_GROUP>(args, of, sh, candidates);
    post_group_winners(args, sh, parity, c0, group, tag);
    __syncthreads();
  }
  of = {work->final_row[parity],
        work->finalist[parity],
        &work->final_value[parity][0][0],
        HONE_STEP_FLOATS,
        groups * STEP,
        tag};
  level_two<1>(args, of, sh, candidates);
}

} // namespace

#endif
