/* SPDX-License-Identifier: BSD-3-Clause */
/* One solver, several calls at once: one has it, the others return HONE_BUSY
   and touch nothing. */
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- From a progress function ------------------------------------------- */

typedef struct within {
  sys s;
  either_solver solver;
  bool armed, destroys;
  int calls;
} within;

static int call_again(void *user, const hone_progress *event) {
  within *w = user;
  double x[80];
  hone_report report = HONE_REPORT_INIT;
  (void)event;
  if (!w->armed)
    return 0;
  w->calls++;
  for (int i = 0; i < 80; i++)
    x[i] = UNTOUCHED;
  CHECK_EQ_INT(sys_solve_with(&w->s, &w->solver, x, &report), HONE_BUSY);
  CHECK_EQ_INT(report.status, HONE_BUSY);
  CHECK_EQ_INT(report.n, 40);
  CHECK_STR(report.reason, "another call uses this solver");
  CHECK(sup_untouched(x, 80, UNTOUCHED));
  CHECK_EQ_INT(sys_factor(&w->s, &w->solver), HONE_BUSY);
  CHECK_EQ_INT(either_update(&w->solver, w->s.a, 40, NULL), HONE_BUSY);
  if (w->destroys) {
    w->armed = false;
    either_destroy(&w->solver);
    CHECK(w->solver.real == NULL && w->solver.complex == NULL);
  }
  return 0;
}

static within within_make(int parts) {
  within w = {.s = sys_make_of(parts, 40, 1)};
  sys_expect(&w.s, HONE_OK); /* x, to compare with */
  w.s.options.progress = call_again;
  return w;
}

TEST(busy, calls_from_a_progress_function_do_nothing) {
  for (int parts = 1; parts <= 2; parts++) {
    within w = within_make(parts);
    const int64_t count = sys_doubles(&w.s);
    double *x = sup_filled(count, UNTOUCHED);
    w.s.options.progress_user = &w;
    w.solver = sys_solver(&w.s);
    w.armed = true;
    CHECK_EQ_INT(sys_factor(&w.s, &w.solver), HONE_OK);
    CHECK_EQ_INT(sys_solve_with(&w.s, &w.solver, x, NULL), HONE_OK);
    CHECK(w.calls >= 2);
    CHECK_MEM_EQ(x, w.s.x, (size_t)count * sizeof *x);
    either_destroy(&w.solver);
    sup_free(x);
    sys_discard(&w.s);
  }
}

static _Atomic int blocks;
static void *count_block(size_t bytes, void *ctx) {
  (void)ctx;
  blocks++;
  return malloc(bytes);
}
static void uncount_block(void *memory, void *ctx) {
  (void)ctx;
  blocks -= memory != NULL;
  free(memory);
}

TEST(busy, a_solver_destroyed_in_a_call_is_freed_by_that_call) {
  for (int parts = 1; parts <= 2; parts++) {
    within w = within_make(parts);
    const int64_t count = sys_doubles(&w.s);
    double *x = sup_filled(count, UNTOUCHED);
    w.s.options.progress_user = &w;
    w.s.options.alloc = count_block;
    w.s.options.free = uncount_block;
    w.solver = sys_solver(&w.s);
    either_solver solver = w.solver;
    CHECK_EQ_INT(sys_factor(&w.s, &solver), HONE_OK);
    w.armed = w.destroys = true;
    CHECK(blocks > 0);
    CHECK_EQ_INT(sys_solve_with(&w.s, &solver, x, NULL), HONE_OK);
    CHECK_EQ_INT(w.calls, 1);
    CHECK_EQ_INT(blocks, 0);
    CHECK_MEM_EQ(x, w.s.x, (size_t)count * sizeof *x);
    sup_free(x);
    sys_discard(&w.s);
  }
}

/* ---- From several threads ----------------------------------------------- */

enum { THREADS = 3, ROUNDS = 150 };

typedef struct shared {
  sys s;
  either_solver solver;
  _Atomic int solved, busy, wrong;
} shared;

static void *solve_often(void *arg) {
  shared *h = arg;
  const int64_t count = sys_doubles(&h->s);
  double *x = malloc((size_t)count * sizeof *x);
  for (int k = 0; k < ROUNDS; k++) {
    for (int64_t i = 0; i < count; i++)
      x[i] = UNTOUCHED;
    const int st = sys_solve_with(&h->s, &h->solver, x, NULL);
    if (st == HONE_OK) {
      h->solved++;
      h->wrong += memcmp(x, h->s.x, (size_t)count * sizeof *x) != 0;
    } else {
      h->busy++;
      h->wrong += st != HONE_BUSY || !sup_untouched(x, count, UNTOUCHED);
    }
  }
  free(x);
  return NULL;
}

static void check_threads(int parts, int64_t n) {
  shared h = {.s = sys_make_of(parts, n, 1)};
  pthread_t thread[THREADS];
  ct_note("n %d, parts %d", (int)n, parts);
  h.s.options.deterministic = 1;
  sys_expect(&h.s, HONE_OK);
  h.solver = sys_solver(&h.s);
  CHECK_EQ_INT(sys_factor(&h.s, &h.solver), HONE_OK);
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_create(&thread[k], NULL, solve_often, &h) == 0);
  for (int k = 0; k < THREADS; k++)
    pthread_join(thread[k], NULL);
  CHECK_EQ_INT(h.wrong, 0);
  CHECK(h.solved > 0);
  CHECK_EQ_INT(h.solved + h.busy, THREADS * ROUNDS);
  either_destroy(&h.solver);
  sys_discard(&h.s);
}

TEST(busy, threads_that_share_a_solver_get_its_x_or_none) {
  for (int parts = 1; parts <= 2; parts++) {
    check_threads(parts, 60);
    check_threads(parts, 420);
  }
}
