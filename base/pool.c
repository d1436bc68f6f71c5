/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of POSIX threads for the passes over A. One atomic counter hands out
   the tasks; no result may depend on which thread runs a task. OpenMP is not
   used: its threads spin after each region and so take cores from OpenBLAS,
   which has threads of its own. */
#define _GNU_SOURCE /* for CPU affinity */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct hone_pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  int threads;  /* with the calling one */
  int busy;     /* workers that have begun the present job, not finished it */
  bool open;    /* workers may still begin it */
  uint64_t job; /* the number of jobs begun so far */
  bool quit;
  hone_task run;
  void *ctx;
  int64_t tasks;
  _Atomic int64_t next;
  cpu_set_t allowed; /* CPUs that the creating thread may run on */
  size_t avoided;    /* CPU that the workers avoid; CPU_SETSIZE: none */
  pthread_t worker[];
};

static void take_tasks(hone_pool *pool) {
  for (;;) {
    int64_t task = atomic_fetch_add(&pool->next, 1);
    if (task >= pool->tasks)
      return;
    pool->run(pool->ctx, task);
  }
}

static void *work(void *arg) {
  hone_pool *pool = arg;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->quit && !(pool->open && pool->job != seen))
      pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->quit)
      break;
    seen = pool->job;
    pool->busy++;
    pthread_mutex_unlock(&pool->lock);
    take_tasks(pool);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0)
      pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

void hone_pool_create(hone_pool **out, hone_mem *mem, int threads) {
  *out = NULL;
  if (threads <= 1)
    return;
  size_t workers = (size_t)threads - 1;
  hone_pool *pool =
      hone_mem_get(mem, sizeof *pool + workers * sizeof pool->worker[0]);
  if (pool == NULL)
    return;
  *pool = (hone_pool){.threads = 1, .avoided = CPU_SETSIZE};
  if (sched_getaffinity(0, sizeof pool->allowed, &pool->allowed) != 0)
    CPU_ZERO(&pool->allowed);
  if (pthread_mutex_init(&pool->lock, NULL) != 0) {
    hone_mem_put(mem, pool);
    return;
  }
  pthread_cond_init(&pool->wake, NULL); /* cannot fail on Linux */
  pthread_cond_init(&pool->done, NULL);
  for (size_t i = 0; i < workers; i++) {
    if (pthread_create(&pool->worker[i], NULL, work, pool) != 0)
      break;
    pool->threads++;
  }
  *out = pool;
}

void hone_pool_destroy(hone_pool **ref, hone_mem *mem) {
  hone_pool *pool = *ref;
  *ref = NULL;
  if (pool == NULL)
    return;
  pthread_mutex_lock(&pool->lock);
  pool->quit = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 0; i < pool->threads - 1; i++)
    pthread_join(pool->worker[i], NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  hone_mem_put(mem, pool);
}

int hone_pool_threads(const hone_pool *pool) {
  return pool ? pool->threads : 1;
}

/* Keeps the workers off the caller's CPU. Between the calls of OpenBLAS its
   threads spin on every other CPU, so that the kernel finds no idle CPU and
   wakes our workers on the one that the caller runs on. All threads of the
   pool would then share that CPU, while OpenBLAS spins on the others, and a
   pass would take twice as long. */
static void avoid_cpu_of_caller(hone_pool *pool) {
  const int cpu = sched_getcpu();
  const size_t here = cpu >= 0 ? (size_t)cpu : CPU_SETSIZE;
  if (here == pool->avoided || here >= CPU_SETSIZE ||
      CPU_COUNT(&pool->allowed) < 2 || !CPU_ISSET(here, &pool->allowed))
    return;
  cpu_set_t others = pool->allowed;
  CPU_CLR(here, &others);
  for (int i = 0; i < pool->threads - 1; i++) /* only a hint */
    (void)pthread_setaffinity_np(pool->worker[i], sizeof others, &others);
  pool->avoided = here;
}

static void start(hone_pool *pool, int64_t tasks, hone_task run, void *ctx) {
  avoid_cpu_of_caller(pool);
  pthread_mutex_lock(&pool->lock);
  pool->run = run;
  pool->ctx = ctx;
  pool->tasks = tasks;
  atomic_store(&pool->next, 0);
  pool->open = true;
  pool->job++;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
}

void hone_pool_start(hone_pool *pool, hone_task run, void *ctx) {
  if (hone_pool_threads(pool) > 1)
    start(pool, pool->threads - 1, run, ctx);
}

/* Does not wait for workers that wake up when all tasks are taken. */
void hone_pool_wait(hone_pool *pool) {
  if (pool == NULL)
    return;
  pthread_mutex_lock(&pool->lock);
  while (pool->open &&
         (pool->busy > 0 || atomic_load(&pool->next) < pool->tasks))
    pthread_cond_wait(&pool->done, &pool->lock);
  pool->open = false;
  pthread_mutex_unlock(&pool->lock);
}

void hone_pool_run(hone_pool *pool, int64_t tasks, hone_task run, void *ctx) {
  if (hone_pool_threads(pool) == 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; task++)
      run(ctx, task);
    return;
  }
  start(pool, tasks, run, ctx);
  take_tasks(pool);
  hone_pool_wait(pool);
}
