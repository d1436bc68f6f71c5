/* SPDX-License-Identifier: BSD-3-Clause */
/* The tournament of a panel (cuda_panel.cu), between its blocks: each plays its
   own rows off and posts the winners, then every block plays those of all off,
   and so finds the same 16 pivot rows.

   What counts is the time from one step to the next. So blocks do not wait for
   one of them to decide, and not for counters or fences either: each number
   that is posted has the tag of its step beside it, in one word, and who reads
   it reads until that is right. C++; included by cuda_panel.cu alone. */
#ifndef HONE_CUDA_ROUNDS_H
#define HONE_CUDA_ROUNDS_H

#include "gpu_sp/factor/tournament.h"

namespace {

enum {
  MAX_BLOCKS = 128,
  CANDIDATES = MAX_BLOCKS * STEP,
  TOGETHER = 32, /* blocks whose candidates all play at once; of more, */
  GROUP = 16,    /* those of so many play among themselves first */
  FINALISTS = MAX_BLOCKS / GROUP * STEP,
  MOST_ROWS = 384, /* of a block: what its shared memory holds */
  STAGE = STEP + 1 /* of a candidate, against bank conflicts */
};

/* 32 bits of a number and, above them, the tag of the step it is of. */
typedef unsigned long long posted;

/* Workspace of the panels. What a step posts is read until the next step's has
   come from everybody, so that the one after it may overwrite it. */
struct panel_work {
  unsigned tag;              /* the last that was used */
  posted row[2][CANDIDATES]; /* -1: none */
  __align__(16) posted value[2][CANDIDATES][HONE_PANEL];
  posted finalist[2][FINALISTS]; /* the groups' winners: which candidates, */
  posted final_row[2][FINALISTS];
  __align__(16) posted final_value[2][FINALISTS][STEP];
};

struct panel_args {
  float *f; /* the panel's first element */
  int64_t ld;
  int m, w;     /* rows, columns */
  int rows;     /* of a block */
  int together; /* blocks whose candidates all play at once; of more, those of
                   groups play among themselves first */
  int behind;   /* the rows in shared memory, floats */
  int eligible; /* rows that may become pivots */
  bool natural;
  int k; /* the panel's first row and column in the matrix */
  hone_moves *moves;
  int *zero_pivot;
  panel_work *work;
};

/* What a block keeps in shared memory beside its rows s and, behind those, what
   is used for two things in turn: candidates, and U made of them. */
struct shared_state {
  __align__(16) float upper[STEP][STEP]; /* of the pivot rows: U, row by row */
  __align__(16) float lower[STEP][STEP]; /* from the diagonal on; and inv(L),
                                            column by column */
  arena game;
  float inverse[STEP];      /* of U's diagonal */
  int row[TOGETHER * STEP]; /* of the candidates; -1: none */
  int number[FINALISTS];    /* which candidates the finalists are */
  int pivot[STEP], from[STEP];
  int own[STEP], owned;          /* which of the pivots are this block's rows */
  int pivots[HONE_PANEL];        /* all so far */
  unsigned tag;                  /* of the step before the first */
  unsigned used[MOST_ROWS / 32]; /* bit per row of the block: became a pivot */
};

/* That is: candidates; or, of the pivot rows, U right of the step, column by
   column, and behind it what it is made of, row by row. */
typedef float staged[STAGE];
__device__ __forceinline__ staged *stage_of(const panel_args &args, float *s) {
  return reinterpret_cast<staged *>(s + args.behind);
}

typedef float column_of_u[STEP];
typedef float row_of_a[HONE_PANEL];
__device__ __forceinline__ column_of_u *u_of(const panel_args &args, float *s) {
  return reinterpret_cast<column_of_u *>(s + args.behind);
}

__device__ __forceinline__ row_of_a *a_of(const panel_args &args, float *s) {
  return reinterpret_cast<row_of_a *>(s + args.behind + HONE_PANEL * STEP);
}

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

__device__ __forceinline__ void post(posted *to, unsigned bits, unsigned tag) {
  hone_post(to, (posted)tag << 32 | bits);
}

__device__ __forceinline__ unsigned tag_of(posted word) {
  return (unsigned)(word >> 32);
}

/* The number, once it has come. */
__device__ __forceinline__ unsigned receive(const posted *from, unsigned tag) {
  posted word = hone_look(from);
#pragma unroll 1
  while (tag_of(word) != tag) {
    hone_wait();
    word = hone_look(from);
  }
  return (unsigned)word;
}

/* Where a round's candidates are posted, from the first on: 16 numbers of
   each, 'stride' words apart. */
struct round_of {
  const posted *row, *number, *value;
  int stride, count;
  unsigned tag;
};

/* Four numbers of a candidate, by one thread. */
struct quarter {
  posted a, b, c, d;
};
__device__ __forceinline__ const posted *quarter_at(const round_of &of,
                                                    int unit) {
  return of.value + (unit / 4) * of.stride + unit % 4 * 4;
}
__device__ __forceinline__ quarter ask(const round_of &of, int unit) {
  quarter q = {};
  if (unit / 4 < of.count) {
    hone_look_at_two(quarter_at(of, unit), &q.a, &q.b);
    hone_look_at_two(quarter_at(of, unit) + 2, &q.c, &q.d);
  }
  return q;
}

/* To shared memory, now or as soon as they have come. */
__device__ __forceinline__ void put(const round_of &of, int unit,
                                    const quarter &q, staged *stage) {
  const int i = unit / 4, part = unit % 4;
  float *to = &stage[i][part * 4];
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
      to[e] = __uint_as_float(receive(quarter_at(of, unit) + e, of.tag));
  }
}

/* Level 2, of at most 128 R candidates, by the whole block: they come to shared
   memory, by all its threads, and then play. */
template <int R>
__device__ __forceinline__ void level_two(const panel_args &args,
                                          const round_of &of, shared_state *sh,
                                          staged *stage) {
  const int tid = hone_opaque((int)threadIdx.x), lane = tid % 32;
  const int warp = warp_number();
  const bool in = tid < of.count, named = in && of.number;
  const posted row = in ? hone_look(of.row + tid) : 0;
  const posted number = named ? hone_look(of.number + tid) : 0;
  quarter q[R];
#pragma unroll
  for (int r = 0; r < R; r++)
    q[r] = ask(of, tid + r * THREADS);
#pragma unroll
  for (int r = 0; r < R; r++)
    put(of, tid + r * THREADS, q[r], stage);
  if (in)
    sh->row[tid] = (int)(tag_of(row) == of.tag ? (unsigned)row
                                               : receive(of.row + tid, of.tag));
  if (named)
    sh->number[tid] =
        (int)(tag_of(number) == of.tag ? (unsigned)number
                                       : receive(of.number + tid, of.tag));
  __syncthreads();
  if (warp < PLAYERS) {
    float a[R][STEP];
    unsigned active = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int i = (warp * R + r) * 32 + lane;
      const bool on = i < of.count && sh->row[i] >= 0;
      active |= (unsigned)on << r;
#pragma unroll
      for (int c = 0; c < STEP; c++)
        a[r][c] = on ? stage[i][c] : 0.0F;
    }
    play<R>(a, active, args.natural, &sh->game);
  }
  __syncthreads();
}

/* The winners of this block's rows, with all columns from c0 on, for all
   blocks. */
__device__ __forceinline__ void publish(const panel_args &args, const float *s,
                                        shared_state *sh, int c0, int first_row,
                                        unsigned tag) {
  const int parity = c0 / STEP % 2, stride = args.rows + 1;
  const int first = (int)blockIdx.x * STEP;
  const int lane = hone_opaque((int)threadIdx.x) % 32, warp = warp_number();
  if (threadIdx.x == 0)
    sh->owned = 0;
  for (int i = warp; i < STEP; i += WARPS) {
    const int row = sh->game.win[i];
    posted *to = args.work->value[parity][first + i];
    for (int c = c0 + lane; c < args.w || c < c0 + STEP; c += 32) {
      const bool on = row >= 0 && c < args.w;
      post(to + c, on ? __float_as_uint(s[c * stride + row]) : 0U, tag);
    }
    if (lane == 0)
      post(&args.work->row[parity][first + i],
           (unsigned)(row < 0 ? -1 : first_row + row), tag);
  }
}

/* The winners of a group, for all blocks, after its round. */
__device__ __forceinline__ void publish_group(const panel_args &args,
                                              const shared_state *sh,
                                              int parity, int c0, int group,
                                              unsigned tag) {
  const int tid = hone_opaque((int)threadIdx.x);
  if (tid >= STEP * STEP)
    return;
  const int p = tid / STEP, c = tid % STEP, w = sh->game.win[p];
  const int at = group * STEP + p, from = group * GROUP * STEP + w;
  const posted *value = &args.work->value[parity][w < 0 ? 0 : from][c0 + c];
  const unsigned bits = w < 0 ? 0U : receive(value, tag);
  post(&args.work->final_value[parity][at][c], bits, tag);
  if (c == 0)
    post(&args.work->finalist[parity][at], (unsigned)(w < 0 ? -1 : from), tag);
  if (c == 1)
    post(&args.work->final_row[parity][at], (unsigned)(w < 0 ? -1 : sh->row[w]),
         tag);
}

/* Level 2, and the level between where the blocks are many. The outcome is in
   sh->game, its candidates' numbers among the round's. */
__device__ __forceinline__ void decide(const panel_args &args, float *s,
                                       shared_state *sh, int c0, unsigned tag) {
  staged *stage = stage_of(args, s);
  const int parity = c0 / STEP % 2;
  const int blocks = __shfl_sync(ALL, (int)gridDim.x, 0); /* see warp_number */
  const int block = __shfl_sync(ALL, (int)blockIdx.x, 0);
  panel_work *work = args.work;
  round_of of = {work->row[parity], nullptr,       &work->value[parity][0][c0],
                 HONE_PANEL,        blocks * STEP, tag};
  if (blocks * STEP <= 128)
    level_two<1>(args, of, sh, stage);
  else if (blocks <= GROUP)
    level_two<2>(args, of, sh, stage);
  else if (blocks <= args.together)
    level_two<4>(args, of, sh, stage);
  if (blocks <= args.together)
    return;
  const int groups = (blocks + GROUP - 1) / GROUP, group = block / GROUP;
  if (block % GROUP == 0) {
    const int left = blocks - block, first = block * STEP;
    of.row += first;
    of.value += (int64_t)first * of.stride;
    of.count = (left < GROUP ? left : (int)GROUP) * STEP;
    level_two<2>(args, of, sh, stage);
    publish_group(args, sh, parity, c0, group, tag);
    __syncthreads();
  }
  of = {work->final_row[parity],
        work->finalist[parity],
        &work->final_value[parity][0][0],
        STEP,
        groups * STEP,
        tag};
  level_two<1>(args, of, sh, stage);
}

} // namespace

#endif
