/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of a batch has a deadline and a report of its own, which the next call
   does not share, and one that is refused writes its results nowhere else. */
#define _DEFAULT_SOURCE /* for usleep */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The calling thread solves systems of this order one after the other. */
enum { N = 420, COUNT = 2 };

/* Systems that no block solves: the criterion is not componentwise. */
typedef struct alone {
  double *a, *b, *x;
  hone_batch batch;
  hone_batch_result results[COUNT];
  hone_options options;
} alone;

static alone make(void) {
  alone s = {.batch = HONE_BATCH_INIT, .options = HONE_OPTIONS_INIT};
  sup_rng rng = {53};
  s.a = sup_filled((int64_t)COUNT * N * N, 0.0);
  sup_random(&rng, N, (int64_t)COUNT * N, s.a, N);
  s.b = sup_filled((int64_t)COUNT * N, 1.0);
  s.x = sup_filled((int64_t)COUNT * N, 0.0);
  s.options.criterion = HONE_CRITERION_NORMWISE;
  s.batch.count = COUNT;
  s.batch.n = s.batch.lda = s.batch.ldb = s.batch.ldx = N;
  s.batch.nrhs = 1;
  s.batch.a = s.a;
  s.batch.b = s.b;
  s.batch.x = s.x;
  s.batch.stride_a = N * N;
  s.batch.stride_b = s.batch.stride_x = N;
  return s;
}

static void discard(alone *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

static int stop(void *user, const hone_progress *event) {
  (void)user, (void)event;
  return 1;
}

static int take_time(void *user, const hone_progress *event) {
  int *events = user;
  (void)event;
  if ((*events)++ < 3)
    (void)usleep(1200000);
  return 0;
}

/* The first solve, which has a deadline, makes the solvers of single systems
   that the second one uses. */
TEST(batch_solver, the_deadline_of_a_solve_is_not_that_of_the_next) {
  alone s = make();
  hone_options first = HONE_OPTIONS_INIT, second = HONE_OPTIONS_INIT;
  hone_batch_solver *solver = NULL;
  int events = 0;
  s.options.progress = stop;
  REQUIRE(hone_batch_solver_create(&solver, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL),
               HONE_CANCELLED);
  first.deadline_s = 2.0;
  second.progress = first.progress = take_time;
  second.progress_user = first.progress_user = &events;
  events = 3; /* takes no time */
  CHECK_EQ_INT(
      hone_batch_solver_solve(solver, &s.batch, &first, s.results, NULL),
      HONE_OK);
  events = 0;
  CHECK_EQ_INT(
      hone_batch_solver_solve(solver, &s.batch, &second, s.results, NULL),
      HONE_OK);
  CHECK(events > 3);
  hone_batch_solver_destroy(&solver);
  discard(&s);
}

static int call_again(void *user, const hone_progress *event) {
  hone_batch_solver **solver = user;
  hone_report report = HONE_REPORT_INIT;
  alone s = make();
  (void)event;
  report.status = 1;
  CHECK_EQ_INT(
      hone_batch_solver_solve(*solver, &s.batch, NULL, s.results, &report),
      HONE_BUSY);
  CHECK_EQ_INT(report.status, HONE_BUSY);
  CHECK_STR(report.reason, "another call uses this solver");
  discard(&s);
  return 0;
}

TEST(batch_solver, reports_tell_that_it_is_busy_or_missing) {
  alone s = make();
  hone_report report = HONE_REPORT_INIT;
  hone_batch_solver *solver = NULL;
  report.status = 1;
  CHECK_EQ_INT(hone_batch_solver_factor(NULL, &s.batch, NULL, &report),
               HONE_NULL_POINTER);
  CHECK_EQ_INT(report.status, HONE_NULL_POINTER);
  CHECK_STR(report.reason, "solver is NULL");
  s.options.progress = call_again;
  s.options.progress_user = &solver;
  REQUIRE(hone_batch_solver_create(&solver, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL), HONE_OK);
  hone_batch_solver_destroy(&solver);
  discard(&s);
}

/* An array for the systems that were factored would be too short. */
TEST(batch_solver, a_wrong_count_writes_no_results) {
  alone s = make();
  hone_batch_solver *solver = NULL;
  REQUIRE(hone_batch_solver_create(&solver, &s.options) == HONE_OK);
  s.batch.count = 1;
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL), HONE_OK);
  s.batch.count = COUNT;
  for (int k = 0; k < COUNT; k++)
    s.results[k].status = 77;
  CHECK_EQ_INT(hone_batch_solver_solve(solver, &s.batch, NULL, s.results, NULL),
               HONE_BAD_SIZE);
  for (int k = 0; k < COUNT; k++)
    CHECK_EQ_INT(s.results[k].status, 77);
  hone_batch_solver_destroy(&solver);
  discard(&s);
}

/* Two arguments are wrong: nothing is written where the results overlap. */
TEST(batch_solver, refused_results_do_not_overwrite_a_matrix) {
  alone s = make();
  hone_batch_result *const over = (hone_batch_result *)(void *)s.a;
  hone_batch_solver *solver = NULL;
  const double before = s.a[0];
  REQUIRE(hone_batch_solver_create(&solver, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, NULL, NULL), HONE_OK);
  s.options.layout = 77;
  CHECK_EQ_INT(hone_batch_solve(&s.batch, &s.options, over, NULL),
               HONE_BAD_OPTION);
  CHECK_EQ_INT(
      hone_batch_solver_solve(solver, &s.batch, &s.options, over, NULL),
      HONE_BAD_OPTION);
  s.batch.reserved = 1;
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, over, NULL),
               HONE_BAD_OPTION);
  s.batch.reserved = 0;
  s.batch.stride_a = INT64_MAX / 2; /* no array lies so */
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &s.batch, s.results, NULL),
               HONE_BAD_SIZE);
  CHECK_EQ_INT(s.results[COUNT - 1].status, HONE_BAD_SIZE);
  CHECK(s.a[0] == before);
  hone_batch_solver_destroy(&solver);
  discard(&s);
}
