/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of threads: every task is run once, and nobody waits for a worker
   that the kernel does not let run. Such a worker is made by a signal whose
   handler waits. */
#define _GNU_SOURCE /* for pthread_kill */
#include "base/pool.h"
#include "tests/unit/ct.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TASKS = 60, MOST_THREADS = 5, JOBS = 3000 };

typedef struct counts {
  _Atomic int of[MOST_TASKS];
} counts;

static void count_task(void *ctx, int64_t task) {
  counts *c = ctx;
  atomic_fetch_add(&c->of[task], 1);
}

static void check_jobs(int threads) {
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  hone_pool_create(&pool, &mem, threads);
  CHECK_EQ_INT(hone_pool_threads(pool), threads);
  for (int job = 0; job < JOBS; job++) {
    const int64_t tasks = job % MOST_TASKS;
    counts c = {{0}};
    hone_pool_run(pool, tasks, count_task, &c);
    int wrong = 0;
    for (int64_t k = 0; k < MOST_TASKS; k++)
      wrong += c.of[k] != (k < tasks ? 1 : 0);
    CHECK_EQ_INT(wrong, 0);
  }
  hone_pool_destroy(&pool, &mem);
  CHECK_EQ_INT(mem.held, 0);
}

TEST(pool, runs_each_task_once) {
  for (int threads = 1; threads <= MOST_THREADS; threads++)
    check_jobs(threads);
}

static void check_started(int threads, int64_t most) {
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  hone_pool_create(&pool, &mem, threads);
  for (int job = 0; job < JOBS; job++) {
    counts c = {{0}};
    hone_pool_start(pool, most, count_task, &c);
    hone_pool_wait(pool);
    int wrong = 0;
    for (int64_t k = 0; k < MOST_TASKS; k++)
      wrong += c.of[k] > (k < most && k < threads - 1 ? 1 : 0);
    CHECK_EQ_INT(wrong, 0);
  }
  hone_pool_destroy(&pool, &mem);
}

TEST(pool, starts_each_task_at_most_once) {
  for (int threads = 1; threads <= MOST_THREADS; threads++)
    for (int64_t most = 1; most <= MOST_THREADS; most += 2)
      check_started(threads, most);
}

/* ---- A worker that does not run ------------------------------------------ */

/* SIGPROF is one of the signals that workers take. */
static int held[2]; /* the pipe that the handler reads */
static _Atomic int holding;

static void hold(int signal) {
  char byte;
  (void)signal;
  atomic_fetch_add(&holding, 1);
  while (read(held[0], &byte, 1) < 0)
    continue;
  atomic_fetch_sub(&holding, 1);
}

typedef struct workers {
  pthread_t caller, thread[MOST_THREADS];
  _Atomic int count;
} workers;

/* Notes each worker: every one takes one task, and waits for the others. */
static void note_worker(void *ctx, int64_t task) {
  workers *w = ctx;
  (void)task;
  w->thread[atomic_fetch_add(&w->count, 1)] = pthread_self();
  while (atomic_load(&w->count) < MOST_THREADS - 1)
    (void)usleep(100);
}

TEST(pool, does_not_wait_for_a_worker_that_does_not_run) {
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  workers w = {.caller = pthread_self()};
  counts c = {{0}}, none = {{0}};
  struct sigaction how = {.sa_handler = hold}, before;
  REQUIRE(pipe(held) == 0);
  REQUIRE(sigaction(SIGPROF, &how, &before) == 0);
  hone_pool_create(&pool, &mem, MOST_THREADS);
  REQUIRE(hone_pool_threads(pool) == MOST_THREADS);
  hone_pool_start(pool, MOST_THREADS - 1, note_worker, &w);
  while (atomic_load(&w.count) < MOST_THREADS - 1)
    (void)usleep(100);
  hone_pool_wait(pool);
  for (int k = 0; k < MOST_THREADS - 1; k++)
    CHECK_EQ_INT(pthread_kill(w.thread[k], SIGPROF), 0);
  while (atomic_load(&holding) < MOST_THREADS - 1)
    (void)usleep(100);
  (void)alarm(30); /* a pool that waits never ends */
  hone_pool_run(pool, MOST_TASKS, count_task, &c);
  hone_pool_start(pool, MOST_THREADS - 1, count_task, &none);
  hone_pool_wait(pool);
  (void)alarm(0);
  CHECK_EQ_INT(atomic_load(&holding), MOST_THREADS - 1);
  for (int k = 0; k < MOST_THREADS - 1; k++)
    CHECK_EQ_INT(write(held[1], "", 1), 1);
  hone_pool_destroy(&pool, &mem);
  for (int k = 0; k < MOST_TASKS; k++) {
    CHECK_EQ_INT(c.of[k], 1);
    CHECK_EQ_INT(none.of[k], 0);
  }
  (void)sigaction(SIGPROF, &before, NULL);
  (void)close(held[0]);
  (void)close(held[1]);
}

/* A thread that waits for long must not take its CPU from the one that it waits
   for. Each sleep takes at least 20 us. */
TEST(pool, sleeps_where_a_thread_waits_for_long) {
  enum { SLEEPS = 100 };
  struct timespec from, to;
  int looks = INT_MAX - SLEEPS - 1;
  (void)clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < SLEEPS; i++)
    hone_wait(&looks);
  (void)clock_gettime(CLOCK_MONOTONIC, &to);
  CHECK(1e9 * (double)(to.tv_sec - from.tv_sec) +
            (double)(to.tv_nsec - from.tv_nsec) >=
        SLEEPS * 20e3);
}
