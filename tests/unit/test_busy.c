/* SPDX-License-Identifier: BSD-3-Clause */
/* One solver, several calls at once: one has it, the others return HONE_BUSY
   and touch nothing. */
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
  w.s.options.deterministic = 1;
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

/* ---- In the child of a fork --------------------------------------------- */

/* A thread that stays in a progress function, of factor or of solve. */
typedef struct held {
  sys s;
  either_solver solver;
  bool in_solve;
  int factored, solved; /* by the thread */
  double *x;
  _Atomic bool armed, holds;
} held;

static int hold(void *user, const hone_progress *event) {
  held *h = user;
  (void)event;
  while (h->armed) {
    h->holds = true;
    (void)sched_yield();
  }
  return 0;
}

static void *factor_and_solve(void *arg) {
  held *h = arg;
  h->armed = !h->in_solve;
  h->factored = sys_factor(&h->s, &h->solver);
  h->armed = h->in_solve;
  h->solved = sys_solve_with(&h->s, &h->solver, h->x, NULL);
  return NULL;
}

static bool has_x_of_s(const held *h, const double *x) {
  return memcmp(x, h->s.x, (size_t)sys_doubles(&h->s) * sizeof *x) == 0;
}

/* Returns 0 if the solver holds no matrix until it is given one. */
static int begin_again(held *h) {
  hone_report report = HONE_REPORT_INIT;
  h->armed = false;
  int wrong =
      sys_solve_with(&h->s, &h->solver, h->x, &report) != HONE_NOT_FACTORED;
  wrong += !sup_untouched(h->x, sys_doubles(&h->s), UNTOUCHED);
  wrong += either_update(&h->solver, h->s.a, h->s.lda, NULL) != HONE_OK;
  wrong += sys_factor(&h->s, &h->solver) != HONE_OK;
  wrong += sys_solve_with(&h->s, &h->solver, h->x, NULL) != HONE_OK;
  wrong += !has_x_of_s(h, h->x);
  either_destroy(&h->solver);
  return wrong;
}

static int destroy_at_once(held *h) {
  either_destroy(&h->solver);
  return h->solver.real != NULL || h->solver.complex != NULL;
}

static void check_child(int (*body)(held *h), held *h) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body(h));
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_INT(status, 0);
}

static void check_held(int parts, int64_t n, bool in_solve) {
  held h = {.s = sys_make_of(parts, n, 1), .in_solve = in_solve};
  pthread_t thread;
  ct_note("n %d, parts %d, in solve %d", (int)n, parts, in_solve);
  h.s.options.deterministic = 1;
  h.s.options.threads = 2;
  sys_expect(&h.s, HONE_OK); /* x, to compare with */
  h.x = sup_filled(sys_doubles(&h.s), UNTOUCHED);
  h.s.options.progress = hold;
  h.s.options.progress_user = &h;
  h.solver = sys_solver(&h.s);
  REQUIRE(pthread_create(&thread, NULL, factor_and_solve, &h) == 0);
  while (!h.holds)
    (void)sched_yield();
  CHECK_EQ_INT(sys_factor(&h.s, &h.solver), HONE_BUSY);
  check_child(begin_again, &h);
  check_child(destroy_at_once, &h);
  h.armed = false;
  pthread_join(thread, NULL);
  CHECK_EQ_INT(h.factored, HONE_OK);
  CHECK_EQ_INT(h.solved, HONE_OK);
  CHECK(has_x_of_s(&h, h.x));
  either_destroy(&h.solver);
  sup_free(h.x);
  sys_discard(&h.s);
}

TEST(busy, a_solver_of_a_thread_that_a_fork_left_behind_holds_no_matrix) {
  for (int parts = 1; parts <= 2; parts++)
    for (int in_solve = 0; in_solve < 2; in_solve++) {
      check_held(parts, 40, in_solve);
      check_held(parts, 450, in_solve);
    }
}

/* The thread that forks is in the call in the child, too. */
static int fork_once(void *user, const hone_progress *event) {
  within *w = user;
  double x[80];
  (void)event;
  if (!w->armed)
    return 0;
  w->armed = false;
  w->calls = fork() == 0; /* in the child: 1, or 2 if the solver is not busy */
  if (w->calls == 1)
    w->calls += sys_solve_with(&w->s, &w->solver, x, NULL) != HONE_BUSY;
  return 0;
}

TEST(busy, a_call_whose_progress_function_forks_ends_in_both_processes) {
  for (int parts = 1; parts <= 2; parts++) {
    within w = within_make(parts);
    const int64_t count = sys_doubles(&w.s);
    double *x = sup_filled(count, UNTOUCHED);
    int status = -1;
    w.s.options.progress = fork_once;
    w.s.options.progress_user = &w;
    w.solver = sys_solver(&w.s);
    CHECK_EQ_INT(sys_factor(&w.s, &w.solver), HONE_OK);
    w.armed = true;
    const int st = sys_solve_with(&w.s, &w.solver, x, NULL);
    const bool good = st == HONE_OK && !w.armed &&
                      memcmp(x, w.s.x, (size_t)count * sizeof *x) == 0;
    if (w.calls > 0)
      _exit(!good || w.calls != 1);
    CHECK(good);
    CHECK(wait(&status) > 0);
    CHECK_EQ_INT(status, 0);
    either_destroy(&w.solver);
    sup_free(x);
    sys_discard(&w.s);
  }
}
