/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that fork while a call runs, and signals that are sent to one: in
   the child a call ends, and nothing half done by a thread that is not there
   counts as solved. */
#define _DEFAULT_SOURCE /* for usleep */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 4000, SMALL = 16, SECONDS = 60 };

/* Forks in the event of this number, or the first one of this part of a phase:
   how many there are depends on what other threads do. */
typedef struct forking {
  int event, events;
  double from;
  pid_t child; /* 0 in the child, -1 before */
} forking;

static int fork_in(void *user, const hone_progress *event) {
  forking *f = user;
  if (f->child < 0 && f->events++ >= f->event && event->fraction >= f->from) {
    f->child = fork();
    if (f->child == 0)
      (void)alarm(SECONDS); /* ends a child that waits for ever */
  }
  return 0;
}

/* Checks that the child has ended well. */
static void check_child(pid_t child) {
  int status = -1;
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ_INT(status, 0);
}

/* MANY systems of order SMALL. */
typedef struct systems {
  double *a, *b, *x;
  hone_batch batch;
  hone_batch_result results[MANY];
} systems;

static void make_systems(systems *s) {
  sup_rng rng = {41};
  s->a = sup_filled((int64_t)MANY * SMALL * SMALL, 0.0);
  s->b = sup_filled((int64_t)MANY * SMALL, 1.0);
  s->x = sup_filled((int64_t)MANY * SMALL, 0.0);
  for (int64_t i = 0; i < (int64_t)MANY * SMALL * SMALL; i++)
    s->a[i] = sup_uniform(&rng) + (i % (SMALL * SMALL) % (SMALL + 1) ? 0 : 5);
  s->batch = (hone_batch)HONE_BATCH_INIT;
  s->batch.count = MANY;
  s->batch.n = s->batch.lda = s->batch.ldb = s->batch.ldx = SMALL;
  s->batch.nrhs = 1;
  s->batch.a = s->a;
  s->batch.b = s->b;
  s->batch.x = s->x;
  s->batch.stride_a = SMALL * SMALL;
  s->batch.stride_b = s->batch.stride_x = SMALL;
  memset(s->results, 0, sizeof s->results);
}

static void discard_systems(systems *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* How many systems have status 0 and an x that does not solve them. */
static int wrong_ones(const systems *s) {
  int wrong = 0;
  for (int64_t k = 0; k < MANY; k++) {
    double most = 0.0;
    for (int i = 0; i < SMALL; i++) {
      double r = -s->b[k * SMALL + i];
      for (int j = 0; j < SMALL; j++)
        r += s->a[k * SMALL * SMALL + i + j * SMALL] * s->x[k * SMALL + j];
      most = fmax(most, fabs(r));
    }
    wrong += s->results[k].status == HONE_OK && !(most < 1e-12);
  }
  return wrong;
}

TEST(forks, of_the_progress_function_of_a_batch_solve_no_system_wrongly) {
  static systems s;
  for (int event = 0; event < 40; event += 13) {
    forking f = {.event = event, .child = -1};
    hone_options options = HONE_OPTIONS_INIT;
    make_systems(&s);
    options.threads = 2;
    options.device = HONE_DEVICE_CPU;
    options.progress = fork_in;
    options.progress_user = &f;
    const int st = hone_batch_solve(&s.batch, &options, s.results, NULL);
    const bool good = wrong_ones(&s) == 0;
    if (f.child == 0)
      _exit(!good || (st != HONE_OK && st != HONE_CANCELLED));
    CHECK(good);
    CHECK_EQ_INT(st, HONE_OK);
    if (f.child > 0 || event == 0)
      check_child(f.child);
    discard_systems(&s);
  }
}

/* The child keeps no factors that the fork has left half done. */
TEST(forks, of_the_progress_function_of_a_batch_keep_no_wrong_factors) {
  static systems s;
  forking f = {.child = -1};
  hone_options options = HONE_OPTIONS_INIT;
  hone_batch_solver *solver = NULL;
  make_systems(&s);
  options.threads = 2;
  options.progress = fork_in;
  options.progress_user = &f;
  REQUIRE(hone_batch_solver_create(&solver, &options) == HONE_OK);
  const int factored = hone_batch_solver_factor(solver, &s.batch, NULL, NULL);
  const int st =
      hone_batch_solver_solve(solver, &s.batch, NULL, s.results, NULL);
  const bool good = wrong_ones(&s) == 0;
  if (f.child == 0)
    _exit(!good || (factored == HONE_OK ? st != HONE_OK
                                        : factored != HONE_CANCELLED ||
                                              st != HONE_NOT_FACTORED));
  CHECK(good);
  CHECK_EQ_INT(factored, HONE_OK);
  CHECK_EQ_INT(st, HONE_OK);
  check_child(f.child);
  hone_batch_solver_destroy(&solver);
  discard_systems(&s);
}

TEST(forks, of_the_progress_function_in_a_factorization_end_in_the_child) {
  enum { N = 900 };
  for (int part = 1; part < 4; part++) {
    forking f = {.from = part / 4.0, .child = -1};
    hone_options options = HONE_OPTIONS_INIT;
    sup_rng rng = {43};
    double *a = sup_filled(N * N, 0.0), *b = sup_filled(N, 1.0);
    double *x = sup_filled(N, 0.0);
    sup_random(&rng, N, N, a, N);
    options.threads = 2;
    options.device = HONE_DEVICE_CPU;
    options.progress = fork_in;
    options.progress_user = &f;
    const int st = hone_solve(N, 1, a, N, b, N, x, N, &options, NULL);
    if (f.child == 0)
      _exit(st != HONE_OK && st != HONE_CANCELLED);
    CHECK_EQ_INT(st, HONE_OK);
    if (f.child > 0) /* unless the other thread has done all of that part */
      check_child(f.child);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

/* Systems that no block solves, each by a solver of its own, which the thread
   that is not there may have. */
TEST(forks, of_the_progress_function_of_a_solve_leave_nothing_half_done) {
  static systems s;
  forking f = {.event = 2, .child = -1};
  hone_options options = HONE_OPTIONS_INIT, solves = HONE_OPTIONS_INIT;
  hone_batch_solver *solver = NULL;
  make_systems(&s);
  s.batch.count = MANY / 4;
  options.threads = 2;
  options.criterion = HONE_CRITERION_NORMWISE;
  solves.progress = fork_in;
  solves.progress_user = &f;
  REQUIRE(hone_batch_solver_create(&solver, &options) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL), HONE_OK);
  int st = hone_batch_solver_solve(solver, &s.batch, &solves, s.results, NULL);
  if (f.child == 0) {
    bool good = st == HONE_OK || st == HONE_CANCELLED;
    const bool lost = st != HONE_OK;
    st = hone_batch_solver_solve(solver, &s.batch, NULL, s.results, NULL);
    good = good && st == (lost ? HONE_NOT_FACTORED : HONE_OK);
    good = good &&
           hone_batch_solver_factor(solver, &s.batch, NULL, NULL) == HONE_OK;
    st = hone_batch_solver_solve(solver, &s.batch, NULL, s.results, NULL);
    _exit(!good || st != HONE_OK);
  }
  CHECK_EQ_INT(st, HONE_OK);
  check_child(f.child);
  hone_batch_solver_destroy(&solver);
  discard_systems(&s);
}

/* ---- By another thread --------------------------------------------------- */

typedef struct held {
  hone_batch_solver *solver;
  systems *s;
  _Atomic bool holds, may_go;
} held;

static int hold(void *user, const hone_progress *event) {
  held *h = user;
  (void)event;
  h->holds = true;
  while (!h->may_go)
    (void)usleep(1000);
  return 0;
}

static void *solve_held(void *user) {
  held *h = user;
  hone_options options = HONE_OPTIONS_INIT;
  options.progress = hold;
  options.progress_user = h;
  (void)hone_batch_solver_solve(h->solver, &h->s->batch, &options, NULL, NULL);
  return NULL;
}

TEST(forks, leave_a_batch_solver_in_use_without_matrices_but_free) {
  static systems s;
  held h = {.s = &s};
  pthread_t thread;
  make_systems(&s);
  REQUIRE(hone_batch_solver_create(&h.solver, NULL) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(h.solver, &s.batch, NULL, NULL),
               HONE_OK);
  REQUIRE(pthread_create(&thread, NULL, solve_held, &h) == 0);
  while (!h.holds)
    (void)usleep(1000);
  CHECK_EQ_INT(hone_batch_solver_solve(h.solver, &s.batch, NULL, NULL, NULL),
               HONE_BUSY);
  const pid_t child = fork();
  if (child == 0) {
    (void)alarm(SECONDS);
    bool good = hone_batch_solver_solve(h.solver, &s.batch, NULL, s.results,
                                        NULL) == HONE_NOT_FACTORED;
    good = good &&
           hone_batch_solver_factor(h.solver, &s.batch, NULL, NULL) == HONE_OK;
    good = good && hone_batch_solver_solve(h.solver, &s.batch, NULL, s.results,
                                           NULL) == HONE_OK;
    hone_batch_solver_destroy(&h.solver);
    _exit(!good || wrong_ones(&s) > 0);
  }
  check_child(child);
  h.may_go = true;
  pthread_join(thread, NULL);
  hone_batch_solver_destroy(&h.solver);
  discard_systems(&s);
}

static int64_t blocks; /* that the caller's functions have given */
static void *count_block(size_t bytes, void *ctx) {
  (void)ctx;
  blocks++;
  return malloc(bytes);
}
static void free_block(void *block, void *ctx) {
  (void)ctx;
  blocks -= block != NULL;
  free(block);
}

/* A solver that nobody uses is freed in a child as elsewhere. */
TEST(forks, keep_no_memory_of_batch_solvers_that_are_destroyed) {
  static systems s;
  hone_options options = HONE_OPTIONS_INIT;
  hone_batch_solver *solver = NULL;
  options.alloc = count_block;
  options.free = free_block;
  make_systems(&s);
  REQUIRE(hone_batch_solver_create(&solver, &options) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL), HONE_OK);
  const pid_t child = fork();
  if (child == 0) {
    const bool some = blocks > 0;
    hone_batch_solver_destroy(&solver);
    _exit(!some || blocks != 0);
  }
  check_child(child);
  hone_batch_solver_destroy(&solver);
  CHECK_EQ_INT(blocks, 0);
  discard_systems(&s);
}

/* ---- Signals ------------------------------------------------------------- */

/* In a child, which has no threads yet: a signal that the program blocks, and
   waits for, does not end it in a thread of the library. */
static int wait_for_a_signal(void) {
  enum { N = 500 };
  const struct timespec limit = {.tv_sec = SECONDS};
  hone_options options = HONE_OPTIONS_INIT;
  sup_rng rng = {47};
  double *a = sup_filled(N * N, 0.0), *b = sup_filled(N, 1.0);
  double *x = sup_filled(N, 0.0);
  sigset_t set;
  sup_random(&rng, N, N, a, N);
  options.threads = 2;
  options.device = HONE_DEVICE_CPU;
  const int st = hone_solve(N, 1, a, N, b, N, x, N, &options, NULL);
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
  (void)kill(getpid(), SIGTERM);
  return st != HONE_OK || sigtimedwait(&set, NULL, &limit) != SIGTERM;
}

TEST(forks, threads_of_the_library_take_no_signals_of_the_program) {
  const pid_t child = fork();
  if (child == 0)
    _exit(wait_for_a_signal());
  check_child(child);
}
