/* SPDX-License-Identifier: BSD-3-Clause */
/* A triangle T is cut into blocks of rows. One task solves for one of them:

     x_b = inv(T_bb) (v_b - sum_s T_bs x_s),   s: the blocks solved before

   The sum is taken in the order in which these are solved, and the task waits
   for those that another thread has not solved yet. One job of the pool solves
   with both triangles in this way. */
#include "cpu_factor/chain.h"

#include "base/numbers.h"

#include <stdatomic.h>

enum {
  BLOCK_LEAST = 96, /* rows of a block; more, but at most BLOCK_MOST, where */
  BLOCK_MOST = 192, /* there are more than */
  BLOCKS = 43,      /* so many. A thread reads longer pieces faster, but the
                       blocks wait for each other: docs/performance.md */
  BLOCK_MULTIPLE = 48,
  TOGETHER = 4 /* blocks that are subtracted at once */
};

typedef struct chain_run {
  const hone_chain *chain;
  int64_t block, blocks;
  _Atomic int64_t solved; /* tasks that are finished, the first ones */
} chain_run;

/* Waits until so many tasks are finished. They were begun before the present
   one. */
static void wait_for(chain_run *run, int64_t tasks) {
  for (int looks = 0;
       atomic_load_explicit(&run->solved, memory_order_acquire) < tasks;)
    hone_wait(&looks);
}

/* The rows of the blocks that T solves for as numbers s .. s + count - 1. */
static void place(const chain_run *run, int t, int64_t s, int64_t count,
                  int64_t *from, int64_t *to) {
  *from = (t == 0 ? s : run->blocks - s - count) * run->block;
  *to = HONE_MIN(*from + count * run->block, run->chain->n);
}

static void solve_for_block(void *ctx, int64_t task) {
  chain_run *run = ctx;
  const hone_chain *chain = run->chain;
  const int64_t before = task / run->blocks * run->blocks, u = task - before;
  const int t = before > 0;
  int64_t i0, i1, j0, j1;
  place(run, t, u, 1, &i0, &i1);
  wait_for(run, before);
  for (int64_t s = 0, count; s < u; s += count) {
    /* Long pieces of columns are read faster. The last blocks may not be
       solved yet. */
    count = s + TOGETHER < u ? TOGETHER : 1;
    wait_for(run, before + s + count);
    place(run, t, s, count, &j0, &j1);
    chain->subtract(chain->ctx, t, i0, i1, j0, j1);
  }
  chain->solve(chain->ctx, t, i0, i1);
  atomic_store_explicit(&run->solved, task + 1, memory_order_release);
}

void hone_chain_run(hone_pool *pool, const hone_chain *chain) {
  const int64_t share = chain->n / BLOCKS + BLOCK_MULTIPLE - 1;
  const int64_t block = share / BLOCK_MULTIPLE * BLOCK_MULTIPLE;
  chain_run run = {.chain = chain,
                   .block = HONE_MAX((int64_t)BLOCK_LEAST,
                                     HONE_MIN(block, (int64_t)BLOCK_MOST))};
  run.blocks = (chain->n + run.block - 1) / run.block;
  hone_pool_run(pool, 2 * run.blocks, solve_for_block, &run);
}
