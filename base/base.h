/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared floor: memory with an account, threads, the clock and the
   caller's wish to stop. Every folder may include this file, and nothing
   here knows what a linear system is. */
#ifndef HONE_BASE_H
#define HONE_BASE_H

#include "api/hone.h"

#include <math.h>
#include <stdbool.h>

#define HONE_EPS 0x1p-53       /* unit roundoff of double precision */
#define HONE_NAN ((double)NAN) /* the C library's are floats */
#define HONE_INF ((double)INFINITY)
#define HONE_MAX(a, b) ((a) > (b) ? (a) : (b))
#define HONE_MIN(a, b) ((a) < (b) ? (a) : (b))

/* A plain loop worth compiling for each vector width of the processor; the
   loader picks the one that fits. gcc only: clang 14 gives the resolvers of
   static functions external names, which collide. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__) &&  \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HONE_VECTOR __attribute__((target_clones("default", "fma", "avx512f")))
#else
#define HONE_VECTOR
#endif

/* 2^e for -1022 <= e <= 1023. */
static inline double hone_pow2(int e) {
  union {
    uint64_t bits;
    double value;
  } u = {(uint64_t)(e + 1023) << 52};
  return u.value;
}

/* v 2^e for any e; without a call where 2^e is a normal number. */
static inline double hone_shift(double v, int e) {
  return e >= -1022 && e <= 1023 ? v * hone_pow2(e) : ldexp(v, e);
}

/* Memory ------------------------------------------------------------- */

/* Where a solver's memory comes from and how much it holds. */
typedef struct hone_mem {
  void *(*alloc)(size_t bytes, void *ctx); /* NULL: the C library's */
  void (*free)(void *memory, void *ctx);
  void *ctx;
  int64_t limit; /* bytes it may hold; 0: no limit */
  int64_t held, peak;
} hone_mem;

/* bytes of memory, aligned to 64 bytes, contents undefined; NULL when there
   is none or the limit forbids it. bytes = 0 gives a valid pointer. */
void *hone_mem_get(hone_mem *mem, size_t bytes);
/* Gives memory of hone_mem_get back; NULL is allowed. */
void hone_mem_put(hone_mem *mem, void *memory);
/* Counts memory that others allocate, pinned buffers, as held too; bytes < 0:
   no longer. False: it would go beyond the limit, and is not counted. */
bool hone_mem_charge(hone_mem *mem, int64_t bytes);

/* Threads ------------------------------------------------------------ */

/* A few threads that wait for work. NULL is a valid pool of the calling
   thread alone, so that no caller needs to ask. */
typedef struct hone_pool hone_pool;
typedef void (*hone_task)(void *ctx, int64_t task);

/* *pool becomes NULL for threads <= 1, or where threads cannot be had. */
void hone_pool_create(hone_pool **pool, hone_mem *mem, int threads);
void hone_pool_destroy(hone_pool **pool, hone_mem *mem);
int hone_pool_threads(const hone_pool *pool);
/* Runs task 0 .. tasks-1, each once, in any order, and waits for all. */
void hone_pool_run(hone_pool *pool, int64_t tasks, hone_task run, void *ctx);
/* The other threads of the pool run task 0, 1, ..., one for each of them, while
   the caller goes on; where there are none, nothing happens. No other job may
   begin before hone_pool_wait has seen this one end. */
void hone_pool_start(hone_pool *pool, hone_task run, void *ctx);
void hone_pool_wait(hone_pool *pool);

/* The clock and the caller's wish to stop ------------------------------ */

double hone_now_s(void);

typedef struct hone_watch {
  hone_progress_fn progress; /* NULL: none */
  void *user;
  double start_s;
  double deadline_s; /* of hone_now_s; 0: none */
  bool stopped;      /* once true it stays so for the call */
} hone_watch;

/* True when the call should stop: the deadline has passed or the caller's
   progress function said so. backward_error: NaN where there is none. */
bool hone_watch_stop(hone_watch *watch, const char *phase, double fraction,
                     int iteration, double backward_error);
/* The same with all that there is to tell, but the time. */
bool hone_watch_tell(hone_watch *watch, const hone_progress *event);

#endif
