/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of threads that wait for work. */
#ifndef HONE_POOL_H
#define HONE_POOL_H

#include "base/memory.h"

/* The order of A from which threads share a pass over A. Below it one thread
   has finished before the others have woken up. */
enum { HONE_THREADS_FROM = 400 };

/* NULL is a valid pool, which consists of the calling thread alone, so that no
   caller needs to test for it. */
typedef struct hone_pool hone_pool;
typedef void (*hone_task)(void *ctx, int64_t task);

/* Creates a pool of the calling thread alone, with room for 'most'. *pool
   becomes NULL for most <= 1, and where there is no memory. */
void hone_pool_reserve(hone_pool **pool, hone_mem *mem, int most);
/* Gives the pool so many threads, the calling one included, or as many as it
   has room for or can be created. They may run where the calling thread may run
   now. In the child of a fork, where a pool has none of its threads, new ones
   are created. */
void hone_pool_adapt(hone_pool *pool, int threads);
/* Does both. */
void hone_pool_create(hone_pool **pool, hone_mem *mem, int threads);
void hone_pool_destroy(hone_pool **pool, hone_mem *mem);
/* Reserve and destroy a pool that the process keeps between calls: to create
   threads takes some 50 us each. open takes the kept pool if it has room for as
   many; close keeps the pool unless there is one already. Memory of the
   caller's own functions is never kept. */
void hone_pool_open(hone_pool **pool, hone_mem *mem, int most);
void hone_pool_close(hone_pool **pool, hone_mem *mem);
/* Destroys the pool that is kept. */
void hone_pool_release_kept(void);
/* Returns the number of threads, with the calling one. */
int hone_pool_threads(const hone_pool *pool);
/* Is this the child of a fork that the calling thread has made in a task of a
   job, and has that job tasks that have not ended? After the job these are the
   ones that threads of the parent had begun, which never end; within it the
   calling thread's own task is among them. */
bool hone_pool_is_lost(const hone_pool *pool);
/* Runs tasks 0 .. tasks-1, fewer than 2^32, each once, and waits for all. They
   begin in this order, so that a task may wait for those before it, and end in
   any order. */
void hone_pool_run(hone_pool *pool, int64_t tasks, hone_task run, void *ctx);
/* Starts one task, 0, 1, ..., on each thread of the pool but the calling one,
   or on 'most' of them, and returns at once. In a pool of one thread nothing is
   started. No other job may begin before hone_pool_wait has returned, which
   waits for the tasks that have begun; the others are then not run any more. */
void hone_pool_start(hone_pool *pool, int64_t most, hone_task run, void *ctx);
void hone_pool_wait(hone_pool *pool);

/* Waits for a moment for what another thread is doing; *looks is 0 at first and
   then how often it was called. The thread keeps its CPU for some 20 us, yields
   to other threads for 0.3 ms, if they give it back at once, and then sleeps,
   again and again. A sleep takes 70 to 100 us, and a chain of threads that wait
   for each other would stand still if it came sooner: docs/performance.md. */
void hone_wait(int *looks);

#endif
