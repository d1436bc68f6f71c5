/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of POSIX threads for the passes over A. One atomic counter hands out
   the tasks; no result may depend on which thread runs a task. A job ends with
   its last task: a worker that the kernel has not woken by then is not waited
   for, so that other programs on its CPU do not hold up the job. OpenMP is not
   used: its threads spin after each region, and so take CPUs from the program
   that calls. */
#define _GNU_SOURCE /* for CPU affinity */
#include "base/pool.h"

#include "base/float_environment.h"
#include "base/numbers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct hone_pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  int most;      /* threads that worker[] has room for, with the calling one */
  int threads;   /* at present, with the calling one */
  int forks;     /* of the process that has the workers: see below */
  pid_t process; /* which it is */
  uint32_t job;  /* the number of jobs begun so far */
  bool quit;
  hone_task run;
  void *ctx;
  _Atomic int64_t tasks, finished; /* of the present job */
  /* The number of the job, and in the lower half the next task. */
  _Atomic uint64_t ticket;
  cpu_set_t allowed; /* CPUs that the workers may run on */
  size_t avoided;    /* CPU that the workers avoid; CPU_SETSIZE: none */
  pthread_t worker[];
};

/* ---- The pool that the process keeps, and its children ------------------- */

/* Nobody waits for the lock: who does not get it at once does without. */
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static hone_pool *kept;

/* The forks between the process that loaded the library and this one. A child
   has its parent's pools, but not their threads. */
static _Atomic int forks;

static void lock_kept(void) { pthread_mutex_lock(&keeping); }
static void unlock_kept(void) { pthread_mutex_unlock(&keeping); }
static void begin_as_child(void) {
  unlock_kept();
  forks++;
}

__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(lock_kept, unlock_kept, begin_as_child);
}

static bool is_inherited(const hone_pool *pool) { return pool->forks != forks; }

/* Sees children, too, that were made without fork(). */
static bool has_no_workers_here(const hone_pool *pool) {
  return is_inherited(pool) || pool->process != getpid();
}

bool hone_pool_is_lost(const hone_pool *pool) {
  return pool != NULL && is_inherited(pool) &&
         atomic_load(&pool->finished) < atomic_load(&pool->tasks);
}

/* ---- Waiting ------------------------------------------------------------- */

enum {
  KEEPS = 20000, /* looks, 13 to 25 us, */
  YIELDS = 1000, /* and then as many, 0.2 to 0.3 ms, */
  CLOCKS = 2000, /* or, while the CPUs are crowded, looks with the clock */
  NAP = 20000,   /* ns */
  CROWD = 4      /* yields that took long show that CPUs are crowded, */
};
static const int64_t LONG = 300000;          /* ns */
static const int64_t WITHIN = 50000000;      /* in so many ns, */
static const int64_t REMEMBERED = 500000000; /* for the next ones */

/* A thread that yields to another one that waits has its CPU back at once. To
   one that computes it loses milliseconds. */
static _Atomic int64_t first_long_yield, crowded_until; /* ns of the clock */
static _Atomic int long_yields;                         /* since the first */

static int64_t clock_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Notes that a yield took long. What other threads note meanwhile may be lost
   or counted twice. */
static void note_long_yield(int64_t now) {
  if (now - first_long_yield > WITHIN) {
    first_long_yield = now;
    long_yields = 0;
  }
  if (++long_yields >= CROWD)
    crowded_until = now + REMEMBERED;
}

void hone_wait(int *looks) {
  if (++*looks <= KEEPS)
    return;
  const int64_t now = clock_ns();
  const bool crowded =
      now < atomic_load_explicit(&crowded_until, memory_order_relaxed);
  if (*looks > KEEPS + (crowded ? CLOCKS : YIELDS)) {
    (void)nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
  } else if (!crowded) {
    (void)sched_yield();
    if (clock_ns() - now > LONG)
      note_long_yield(now);
  }
}

/* ---- Jobs ---------------------------------------------------------------- */

static uint64_t first_ticket(uint32_t job) { return (uint64_t)job << 32; }

/* Takes the next task of the job; returns -1 if there is none, or the job has
   ended. Until a task that was taken has finished, the job does not end. */
static int64_t take_task(hone_pool *pool, uint32_t job) {
  uint64_t ticket = atomic_load(&pool->ticket);
  for (;;) {
    const int64_t task = (int64_t)(ticket & UINT32_MAX);
    if (ticket >> 32 != job || task >= atomic_load(&pool->tasks))
      return -1;
    if (atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1))
      return task;
  }
}

static void finish(hone_pool *pool, int64_t count) {
  const int64_t tasks = atomic_load(&pool->tasks);
  if (atomic_fetch_add(&pool->finished, count) + count < tasks ||
      is_inherited(pool)) /* nobody waits, and a worker may have had the lock */
    return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->done);
  pthread_mutex_unlock(&pool->lock);
}

static void do_tasks(hone_pool *pool, uint32_t job) {
  for (int64_t task; (task = take_task(pool, job)) >= 0;) {
    pool->run(pool->ctx, task);
    finish(pool, 1);
  }
}

static void *work(void *arg) {
  hone_pool *pool = arg;
  uint32_t seen = 0;
  hone_float_environment of_creator;
  hone_float_enter(&of_creator);
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->quit && pool->job == seen)
      pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->quit)
      break;
    seen = pool->job;
    pthread_mutex_unlock(&pool->lock);
    do_tasks(pool, seen);
    pthread_mutex_lock(&pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* ---- Workers ------------------------------------------------------------- */

/* Tasks use up to 400 KiB of the stack; musl gives a thread 128 KiB, macOS 512,
   and the user may have set less than either (ulimit -s). */
enum { LEAST_STACK = 1 << 20 };

/* Signals to the process are for threads of the caller, which may wait for
   them. What an instruction of the worker itself raises cannot wait, and a
   profiler's clock is to see all threads. */
static void choose_signals(sigset_t *blocked) {
  static const int taken[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                              SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
  sigfillset(blocked);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    sigdelset(blocked, taken[i]);
}

static int start_worker(hone_pool *pool, pthread_t *worker) {
  pthread_attr_t attributes;
  size_t stack = 0;
  sigset_t blocked, callers;
  if (pthread_attr_init(&attributes) != 0)
    return -1;
  (void)pthread_attr_getstacksize(&attributes, &stack);
  if (stack < LEAST_STACK)
    (void)pthread_attr_setstacksize(&attributes, LEAST_STACK);
  choose_signals(&blocked);
  (void)pthread_sigmask(SIG_BLOCK, &blocked, &callers);
  const int st = pthread_create(worker, &attributes, work, pool);
  (void)pthread_sigmask(SIG_SETMASK, &callers, NULL);
  pthread_attr_destroy(&attributes);
  return st;
}

/* The workers may run where the calling thread may. */
static void start_workers(hone_pool *pool, int threads) {
  pool->quit = false;
  pool->threads = 1;
  pool->avoided = CPU_SETSIZE;
  if (sched_getaffinity(0, sizeof pool->allowed, &pool->allowed) != 0)
    CPU_ZERO(&pool->allowed);
  for (int i = 0; i < threads - 1; i++) {
    if (start_worker(pool, &pool->worker[i]) != 0)
      break;
    pool->threads++;
  }
}

/* There is no job. */
static void stop_workers(hone_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->quit = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 0; i < pool->threads - 1; i++)
    pthread_join(pool->worker[i], NULL);
  pool->threads = 1;
}

/* Another process had the workers: nobody has the lock, nobody waits, and there
   is no job. */
static void begin_anew(hone_pool *pool) {
  pool->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  pool->wake = pool->done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pool->threads = 1;
  pool->forks = forks;
  pool->process = getpid();
  atomic_store(&pool->ticket, first_ticket(pool->job) | UINT32_MAX);
  atomic_store(&pool->tasks, 0);
  atomic_store(&pool->finished, 0);
}

void hone_pool_reserve(hone_pool **out, hone_mem *mem, int most) {
  *out = NULL;
  if (most <= 1)
    return;
  const size_t workers = (size_t)most - 1;
  hone_pool *pool =
      hone_mem_get(mem, sizeof *pool + workers * sizeof pool->worker[0]);
  if (pool == NULL)
    return;
  *pool = (hone_pool){.most = most};
  begin_anew(pool);
  *out = pool;
}

void hone_pool_create(hone_pool **out, hone_mem *mem, int threads) {
  hone_pool_reserve(out, mem, threads);
  hone_pool_adapt(*out, threads);
}

void hone_pool_destroy(hone_pool **ref, hone_mem *mem) {
  hone_pool *pool = *ref;
  *ref = NULL;
  if (pool == NULL)
    return;
  if (!has_no_workers_here(pool)) {
    stop_workers(pool);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
  }
  hone_mem_put(mem, pool);
}

/* Lets the workers run where the calling thread may, if that has changed. */
static void follow_affinity(hone_pool *pool) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      CPU_EQUAL(&allowed, &pool->allowed))
    return;
  for (int i = 0; i < pool->threads - 1; i++)
    (void)pthread_setaffinity_np(pool->worker[i], sizeof allowed, &allowed);
  pool->allowed = allowed;
  pool->avoided = CPU_SETSIZE;
}

void hone_pool_adapt(hone_pool *pool, int threads) {
  if (pool == NULL)
    return;
  const bool inherited = has_no_workers_here(pool);
  if (inherited)
    begin_anew(pool);
  threads = HONE_MIN(threads, pool->most);
  if (inherited || threads != pool->threads) {
    stop_workers(pool);
    start_workers(pool, threads);
  } else {
    follow_affinity(pool);
  }
}

int hone_pool_threads(const hone_pool *pool) {
  return pool ? pool->threads : 1;
}

/* Keeps the workers off the caller's CPU. The threads of a program's own OpenMP
   loops and BLAS calls spin for a while after each, so that the kernel finds no
   idle CPU and wakes our workers on the one that the caller runs on. All
   threads of the pool would then share that CPU, and a pass would take twice as
   long. */
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
  if (is_inherited(pool)) /* a progress function has forked */
    hone_pool_adapt(pool, pool->threads);
  avoid_cpu_of_caller(pool);
  pthread_mutex_lock(&pool->lock);
  pool->job++;
  /* A worker of the job before may be looking for a task still. */
  atomic_store(&pool->ticket, first_ticket(pool->job) | UINT32_MAX);
  pool->run = run;
  pool->ctx = ctx;
  atomic_store(&pool->finished, 0);
  atomic_store(&pool->tasks, tasks);
  atomic_store(&pool->ticket, first_ticket(pool->job));
  if (tasks < pool->threads - 1)
    for (int64_t i = 0; i < tasks; i++)
      pthread_cond_signal(&pool->wake);
  else
    pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
}

void hone_pool_start(hone_pool *pool, int64_t most, hone_task run, void *ctx) {
  const int64_t workers = hone_pool_threads(pool) - 1;
  if (workers > 0)
    start(pool, HONE_MIN(workers, most), run, ctx);
}

/* Waits until all tasks have finished. Those that a parent's threads began
   never do in the child. */
static void await(hone_pool *pool) {
  if (is_inherited(pool))
    return;
  pthread_mutex_lock(&pool->lock);
  while (atomic_load(&pool->finished) < atomic_load(&pool->tasks))
    pthread_cond_wait(&pool->done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void hone_pool_wait(hone_pool *pool) {
  if (pool == NULL)
    return;
  int64_t left = 0;
  while (take_task(pool, pool->job) >= 0)
    left++;
  if (left > 0)
    finish(pool, left);
  await(pool);
}

void hone_pool_run(hone_pool *pool, int64_t tasks, hone_task run, void *ctx) {
  if (hone_pool_threads(pool) == 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; task++)
      run(ctx, task);
    return;
  }
  start(pool, tasks, run, ctx);
  do_tasks(pool, pool->job);
  await(pool);
}

/* ---- The kept pool ------------------------------------------------------- */

/* Returns the kept pool, which is then the caller's, or NULL. */
static hone_pool *take_kept(void) {
  if (pthread_mutex_trylock(&keeping) != 0)
    return NULL;
  hone_pool *pool = kept;
  kept = NULL;
  unlock_kept();
  return pool;
}

static void destroy_kept(hone_pool *pool) {
  hone_mem nobody = {.held = hone_mem_size(pool)};
  hone_pool_destroy(&pool, &nobody);
}

void hone_pool_open(hone_pool **out, hone_mem *mem, int most) {
  *out = NULL;
  if (most <= 1)
    return;
  hone_pool *pool = mem->alloc == NULL ? take_kept() : NULL;
  if (pool != NULL && pool->most == most &&
      hone_mem_charge(mem, hone_mem_size(pool))) {
    *out = pool;
    return;
  }
  destroy_kept(pool);
  hone_pool_reserve(out, mem, most);
}

void hone_pool_close(hone_pool **ref, hone_mem *mem) {
  hone_pool *pool = *ref;
  if (pool != NULL && mem->alloc == NULL &&
      pthread_mutex_trylock(&keeping) == 0) {
    if (kept == NULL) {
      kept = pool;
      *ref = NULL;
      (void)hone_mem_charge(mem, -hone_mem_size(pool));
    }
    unlock_kept();
  }
  hone_pool_destroy(ref, mem);
}

/* It is also called when the library is unloaded, or the process ends. */
__attribute__((destructor)) void hone_pool_release_kept(void) {
  destroy_kept(take_kept());
}
