/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of threads (base/pool.c): every task of a job runs once, whichever
   workers are awake in time. */
#include "base/pool.h"

#include "tests/unit/ct.h"

#include <stdatomic.h>

enum { TASKS = 37, JOBS = 3000 };

typedef struct count {
  _Atomic int64_t runs[TASKS];
  _Atomic int64_t finished; /* tasks, the first ones */
} count;

static void count_task(void *ctx, int64_t task) {
  atomic_fetch_add(&((count *)ctx)->runs[task], 1);
}

/* Waits for the tasks before it. */
static void count_in_order(void *ctx, int64_t task) {
  count *c = ctx;
  while (atomic_load(&c->finished) < task) {
  }
  count_task(ctx, task);
  atomic_store(&c->finished, task + 1);
}

static void check_jobs(int threads, int jobs, hone_task task, bool started) {
  hone_mem mem = {.limit = 0};
  hone_pool *pool;
  int64_t wrong = 0;
  hone_pool_create(&pool, &mem, threads);
  for (int job = 0; job < jobs; job++) {
    count c = {.finished = 0};
    const int64_t tasks = started ? threads - 1 : 1 + job % TASKS;
    if (started) {
      hone_pool_start(pool, task, &c);
      hone_pool_wait(pool);
    } else {
      hone_pool_run(pool, tasks, task, &c);
    }
    for (int64_t i = 0; i < TASKS; i++)
      wrong += atomic_load(&c.runs[i]) != (i < tasks);
  }
  hone_pool_destroy(&pool, &mem);
  ct_note("%d threads", threads);
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(mem.held, 0);
}

TEST(pool, runs_every_task_once) {
  for (int threads = 1; threads <= 5; threads++)
    check_jobs(threads, JOBS, count_task, false);
}

TEST(pool, begins_tasks_in_their_order) {
  for (int threads = 1; threads <= 3; threads++)
    check_jobs(threads, 20, count_in_order, false);
}

TEST(pool, runs_what_was_started_without_the_caller) {
  for (int threads = 2; threads <= 5; threads++)
    check_jobs(threads, JOBS, count_task, true);
}
