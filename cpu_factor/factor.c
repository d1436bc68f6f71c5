/* SPDX-License-Identifier: BSD-3-Clause */
/* Right-looking LU with partial pivoting, and Cholesky factorization, by block
   columns. Step s eliminates with the panel of columns k0 .. k1-1:

     solve      U[k0:k1, J]  = inv(L[k0:k1, k0:k1]) F[k0:k1, J], after the rows
                               of block column J were exchanged (LU only)
     subtract   F[k1:n, J]  -= L[k1:n, k0:k1] U[k0:k1, J], by chunks of rows
                (Cholesky: F[J:n, J] -= L[J:n, k0:k1] L[J, k0:k1]^T)
     panel      P F[k1:n, next] = L U, as soon as this block column is updated

   Each of these is a task. A task waits for those that it needs, which come
   before it in the list, so that no thread waits in vain. The next panel comes
   early in the list: one thread factors it while the others subtract.

   Columns before 'from' are factored already; their panels come first, and the
   rows of the other columns have been exchanged for them. The rows of L to the
   left of a panel are exchanged when all is done.

   Every entry is updated by the same products in the same order, whatever runs
   when, so that the bits of the factors depend on nothing but S. */
#include "cpu_factor/factor.h"

#include "base/pool.h"
#include "cpu_factor/kernels.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
  NARROW_BELOW = 1536, /* orders whose panels have */
  NARROW = 96,         /* so many columns, */
  NARROW_CHUNK = 192,  /* and chunks so many rows; */
  MIDDLE_BELOW = 5000, /* orders beyond with */
  MIDDLE = 128,
  MIDDLE_CHUNK = 512,
  WIDE = 192, /* and all others with */
  WIDE_CHUNK = 384,
  TOGETHER = 4,   /* block columns that a task subtracts from */
  SLOT_PART = 64, /* packed chunks take a 64th of the factors at most, */
  FEW_SLOTS = 16, /* or, if that is less than so many, */
  FEW_PART = 16,  /* a 16th where complex parts are packed apart: A and B are
                     taken apart for every strip where there is no room */
  SHARES = 4,     /* tasks that solve for the block column of the next panel */
  MOVED = 64      /* columns whose rows a task exchanges at the end */
};

static int64_t panel_width(int64_t n) {
  return n < NARROW_BELOW ? NARROW : n < MIDDLE_BELOW ? MIDDLE : WIDE;
}

static int64_t chunk_height(int64_t n) {
  return n < NARROW_BELOW   ? NARROW_CHUNK
         : n < MIDDLE_BELOW ? MIDDLE_CHUNK
                            : WIDE_CHUNK;
}

static int64_t slot_bytes(const hone_factor_kernels *kernels, int64_t n) {
  return HONE_MIN(chunk_height(n), kernels->space_rows) * panel_width(n) *
         (int64_t)kernels->packed;
}

static int64_t slots_for(const hone_factor_kernels *kernels, int64_t n) {
  const int64_t slot = slot_bytes(kernels, n);
  const int64_t bytes = n * n * (int64_t)kernels->size;
  const int64_t many = bytes / SLOT_PART / slot;
  if (kernels->packed == kernels->size)
    return many;
  return HONE_MAX(many, HONE_MIN(bytes / FEW_PART / slot, (int64_t)FEW_SLOTS));
}

/* ---- The list of tasks --------------------------------------------------- */

typedef struct block_state {
  _Atomic int steps;  /* whose subtraction is done */
  _Atomic int parts;  /* shares or chunks of the present step that are done */
  _Atomic int solved; /* steps whose rows of U are done */
  char apart[64 - 3 * sizeof(_Atomic int)]; /* in a cache line of its own */
} block_state;

typedef struct plan {
  const hone_factoring *job;
  int64_t from, to, width; /* columns of a panel */
  int64_t old, blocks;     /* steps with panels before 'from'; block columns */
  int64_t slots;
  int64_t *first;     /* old + blocks + 1: the first task of each step */
  block_state *state; /* blocks */
  _Atomic int *taken; /* slots: is the space in use? */
  char *space;
  _Atomic int64_t panels; /* factored, from column 'from' on */
  _Atomic bool stopped;
  bool cancelled;
  int64_t zero;
  pthread_t caller;
  int64_t told; /* the last step whose progress was reported */
} plan;

static int64_t steps_of(const plan *p) { return p->old + p->blocks; }

/* The columns of step s. */
static void columns_of(const plan *p, int64_t s, int64_t *k0, int64_t *k1) {
  const int64_t start = s < p->old ? 0 : p->from;
  const int64_t end = s < p->old ? p->from : p->to;
  *k0 = start + (s < p->old ? s : s - p->old) * p->width;
  *k1 = HONE_MIN(*k0 + p->width, end);
}

static int64_t column_of(const plan *p, int64_t block) {
  return HONE_MIN(p->from + block * p->width, p->to);
}

/* The first block column that step s changes. */
static int64_t first_block(const plan *p, int64_t s) {
  return s < p->old ? 0 : s - p->old + 1;
}

/* Block columns of step s that are subtracted from together: the first one
   alone, then TOGETHER at a time. */
static int64_t groups(const plan *p, int64_t s) {
  const int64_t count = p->blocks - first_block(p, s);
  return count <= 0 ? 0 : 1 + (count - 1 + TOGETHER - 1) / TOGETHER;
}

static void group_of(const plan *p, int64_t s, int64_t group, int64_t *b0,
                     int64_t *b1) {
  const int64_t first = first_block(p, s);
  *b0 = group == 0 ? first : first + 1 + (group - 1) * TOGETHER;
  *b1 = group == 0 ? first + 1 : HONE_MIN(*b0 + TOGETHER, p->blocks);
}

/* The first row that step s changes in a group of block columns. */
static int64_t top_of(const plan *p, int64_t s, int64_t group) {
  int64_t k0, k1, b0, b1;
  columns_of(p, s, &k0, &k1);
  group_of(p, s, group, &b0, &b1);
  return p->job->spd ? column_of(p, b0) : k1;
}

/* Rows of a chunk. The first group, which the next panel waits for, has more
   and smaller ones. */
static int64_t chunk_rows(const plan *p, int64_t group) {
  return group == 0 ? p->width : chunk_height(p->job->n);
}

static int64_t chunks(const plan *p, int64_t s, int64_t group) {
  const int64_t rows = p->job->n - top_of(p, s, group);
  const int64_t chunk = chunk_rows(p, group);
  return HONE_MAX((int64_t)1, (rows + chunk - 1) / chunk);
}

/* SHARES tasks solve for the first block column, one for each other. */
static int64_t solves(const plan *p, int64_t s) {
  const int64_t count = p->blocks - first_block(p, s);
  return p->job->spd || count <= 0 ? 0 : count + SHARES - 1;
}

/* Does the task of a panel follow the first group of step s? */
static bool has_panel(const plan *p, int64_t s) {
  return s + 1 >= p->old && s + 1 < steps_of(p);
}

static int64_t tasks_of(const plan *p, int64_t s) {
  int64_t count = solves(p, s);
  for (int64_t g = 0; g < groups(p, s); g++)
    count += chunks(p, s, g);
  return count + has_panel(p, s);
}

/* ---- Waiting ------------------------------------------------------------- */

/* Waits until *counter >= least; what it counts began before. */
static void await(const plan *p, _Atomic int *counter, int64_t least) {
  int looks = 0;
  while (atomic_load_explicit(counter, memory_order_acquire) < least &&
         !atomic_load_explicit(&p->stopped, memory_order_relaxed))
    hone_wait(&looks);
}

static void await_panel(const plan *p, int64_t s) {
  int looks = 0;
  while (s >= p->old &&
         atomic_load_explicit(&p->panels, memory_order_acquire) <= s - p->old &&
         !atomic_load_explicit(&p->stopped, memory_order_relaxed))
    hone_wait(&looks);
}

/* ---- Tasks --------------------------------------------------------------- */

static void *at(const plan *p, int64_t i, int64_t j) {
  const hone_factoring *job = p->job;
  return (char *)job->f + (size_t)(i + j * job->ldf) * job->kernels->size;
}

static void run_panel(plan *p, int64_t block) {
  const hone_factoring *job = p->job;
  const int64_t k0 = column_of(p, block), k1 = column_of(p, block + 1);
  await(p, &p->state[block].steps, p->old + block);
  if (p->stopped)
    return;
  int64_t zero;
  if (job->spd) {
    zero =
        job->kernels->cholesky(job->n - k0, k1 - k0, at(p, k0, k0), job->ldf);
  } else {
    zero = job->kernels->lu(job->n - k0, k1 - k0, at(p, k0, k0), job->ldf,
                            job->pivot + k0);
    for (int64_t i = k0; i < k1; i++)
      job->pivot[i] += (int)k0;
  }
  if (zero >= 0 && p->zero < 0)
    p->zero = k0 + zero;
  if (zero >= 0 && job->spd)
    p->stopped = true;
  atomic_store_explicit(&p->panels, block + 1, memory_order_release);
}

/* Counts one of so many parts of the block column's present step; returns true
   when it was the last. */
static bool finish_part(plan *p, int64_t block, int64_t parts) {
  if (atomic_fetch_add(&p->state[block].parts, 1) + 1 < parts)
    return false;
  atomic_store(&p->state[block].parts, 0);
  return true;
}

/* Solves for one of several shares of a block column. */
static void run_solve(plan *p, int64_t s, int64_t block, int64_t share,
                      int64_t shares) {
  const hone_factoring *job = p->job;
  const int64_t j = column_of(p, block), w = column_of(p, block + 1) - j;
  const int64_t from = j + share * w / shares;
  const int64_t count = j + (share + 1) * w / shares - from;
  int64_t k0, k1;
  columns_of(p, s, &k0, &k1);
  await(p, &p->state[block].steps, s);
  await_panel(p, s);
  if (p->stopped)
    return;
  if (s >= p->old)
    job->kernels->exchange(count, at(p, 0, from), job->ldf, k0, k1, job->pivot);
  job->kernels->solve_lower(k1 - k0, count, at(p, k0, k0), job->ldf,
                            at(p, k0, from), job->ldf);
  if (finish_part(p, block, shares))
    atomic_store_explicit(&p->state[block].solved, (int)s + 1,
                          memory_order_release);
}

/* Takes space for a packed chunk; returns -1 if all is in use. */
static int64_t take_slot(plan *p) {
  for (int64_t i = 0; i < p->slots; i++) {
    int no = 0;
    if (atomic_compare_exchange_strong(&p->taken[i], &no, 1))
      return i;
  }
  return -1;
}

static void subtract(plan *p, int64_t s, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
  const hone_factoring *job = p->job;
  int64_t k0, k1;
  columns_of(p, s, &k0, &k1);
  const hone_strided b = {job->spd ? at(p, j0, k0) : at(p, k0, j0),
                          job->spd ? job->ldf : 1, job->spd ? 1 : job->ldf,
                          job->spd};
  const int64_t slot = take_slot(p);
  char *space =
      slot < 0 ? NULL : p->space + slot * slot_bytes(job->kernels, job->n);
  job->kernels->subtract(i1 - i0, j1 - j0, k1 - k0, at(p, i0, k0), job->ldf, b,
                         job->spd ? i0 - j0 : -1, at(p, i0, j0), job->ldf,
                         space);
  if (slot >= 0)
    atomic_store(&p->taken[slot], 0);
}

static void run_chunk(plan *p, int64_t s, int64_t group, int64_t chunk) {
  const int64_t rows = chunk_rows(p, group), top = top_of(p, s, group);
  const int64_t i0 = top + chunk * rows;
  const int64_t i1 = HONE_MIN(i0 + rows, p->job->n);
  int64_t b0, b1;
  group_of(p, s, group, &b0, &b1);
  await_panel(p, s);
  for (int64_t b = b0; b < b1; b++)
    if (p->job->spd)
      await(p, &p->state[b].steps, s);
    else
      await(p, &p->state[b].solved, s + 1);
  if (p->stopped)
    return;
  if (i0 < i1)
    subtract(p, s, i0, i1, column_of(p, b0), column_of(p, b1));
  for (int64_t b = b0; b < b1; b++)
    if (finish_part(p, b, chunks(p, s, group)))
      atomic_store_explicit(&p->state[b].steps, (int)s + 1,
                            memory_order_release);
}

/* Reports progress, in the caller's thread only: at the beginning, and once for
   each panel after the first new one. */
static void tell(plan *p, int64_t s) {
  int64_t k0, k1;
  if (!pthread_equal(pthread_self(), p->caller) || s <= p->told ||
      (s > 0 && s <= p->old))
    return;
  p->told = s;
  columns_of(p, s, &k0, &k1);
  const double done = (double)HONE_MAX(k0, p->from) / (double)p->job->n;
  if (hone_watch_stop(p->job->watch, p->job->phase, done, 0, HONE_NAN)) {
    p->cancelled = true;
    p->stopped = true;
  }
}

static void run_task(void *ctx, int64_t task) {
  plan *p = ctx;
  int64_t low = 0, high = steps_of(p);
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (p->first[middle] <= task)
      low = middle;
    else
      high = middle;
  }
  const int64_t s = low;
  task -= p->first[s];
  tell(p, s);
  if (hone_pool_is_lost(p->job->pool)) { /* others may have begun steps */
    p->cancelled = true;
    p->stopped = true;
  }
  if (p->stopped)
    return;
  if (task < solves(p, s)) {
    if (task < SHARES)
      run_solve(p, s, first_block(p, s), task, SHARES);
    else
      run_solve(p, s, first_block(p, s) + task - SHARES + 1, 0, 1);
    return;
  }
  task -= solves(p, s);
  for (int64_t g = 0; g < groups(p, s); g++) {
    if (task < chunks(p, s, g)) {
      run_chunk(p, s, g, task);
      return;
    }
    task -= chunks(p, s, g);
    if (g == 0 && has_panel(p, s) && task-- == 0) {
      run_panel(p, s + 1 - p->old);
      return;
    }
  }
}

/* ---- The end ------------------------------------------------------------- */

/* Exchanges rows of L to the left of each panel from column 'from' on. */
static void exchange_left(void *ctx, int64_t task) {
  const plan *p = ctx;
  const hone_factoring *job = p->job;
  const int64_t end = HONE_MIN((task + 1) * MOVED, p->to);
  for (int64_t j = task * MOVED, next; j < end; j = next) {
    next = j < p->from ? p->from
                       : p->from + ((j - p->from) / p->width + 1) * p->width;
    const int64_t rows = j < p->from ? p->from : next;
    next = HONE_MIN(next, end);
    if (rows < p->to)
      job->kernels->exchange(next - j, at(p, 0, j), job->ldf, rows, p->to,
                             job->pivot);
  }
}

/* ---- The whole ----------------------------------------------------------- */

int64_t hone_factor_work(const hone_factor_kernels *kernels, int64_t n) {
  const int64_t steps = n / panel_width(n) + 4;
  return steps * (int64_t)(sizeof(int64_t) + sizeof(block_state)) +
         slots_for(kernels, n) *
             (slot_bytes(kernels, n) + (int64_t)sizeof(_Atomic int));
}

static void lay_out(plan *p) {
  const int64_t steps = steps_of(p);
  char *at = p->job->work;
  const hone_factor_kernels *kernels = p->job->kernels;
  p->slots = slots_for(kernels, p->job->n);
  p->space = at;
  at += p->slots * slot_bytes(kernels, p->job->n);
  p->first = (int64_t *)at;
  at += (size_t)(steps + 1) * sizeof *p->first;
  p->state = (block_state *)at;
  at += (size_t)p->blocks * sizeof *p->state;
  p->taken = (_Atomic int *)at;
  for (int64_t b = 0; b < p->blocks; b++)
    p->state[b] = (block_state){0};
  for (int64_t i = 0; i < p->slots; i++)
    p->taken[i] = 0;
  p->first[0] = 0;
  for (int64_t s = 0; s < steps; s++)
    p->first[s + 1] = p->first[s] + tasks_of(p, s);
}

int hone_factor_columns(const hone_factoring *job, int64_t from, int64_t to,
                        int64_t *zero) {
  const int64_t width = panel_width(job->n);
  plan p = {.job = job,
            .from = from,
            .to = to,
            .width = width,
            .old = (from + width - 1) / width,
            .blocks = (to - from + width - 1) / width,
            .zero = -1,
            .told = -1,
            .caller = pthread_self()};
  lay_out(&p);
  if (p.old == 0) {
    tell(&p, 0);
    run_panel(&p, 0);
  }
  hone_pool_run(job->pool, p.first[steps_of(&p)], run_task, &p);
  if (p.cancelled)
    return HONE_CANCELLED;
  if (p.zero >= 0 && *zero < 0)
    *zero = p.zero;
  if (!job->spd)
    hone_pool_run(job->pool, (to + MOVED - 1) / MOVED, exchange_left, &p);
  return HONE_OK;
}
