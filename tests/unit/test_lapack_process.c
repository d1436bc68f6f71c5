/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in in a program of several threads, after fork, and its log. */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *solve_often(void *p) {
  const drop_in *d = p;
  int good = 1;
  for (int k = 0; k < 6; k++) {
    problem s = problem_make(60 + 10 * k, 1, 1e5);
    drop_in_dgesv(d, &s);
    good =
        good && s.info == 0 && problem_backward_error(&s, false) <= SUP_LIMIT;
    problem_reset(&s);
    d->dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
    d->dgetrs("N", &s.n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
    good =
        good && s.info == 0 && problem_backward_error(&s, false) <= SUP_LIMIT;
    problem_free(&s);
  }
  return good ? p : NULL;
}

TEST(lapack, threads_solve_at_the_same_time) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  pthread_t thread[4];
  for (int k = 0; k < 4; k++)
    REQUIRE(pthread_create(&thread[k], NULL, solve_often, &d) == 0);
  for (int k = 0; k < 4; k++) {
    void *good = NULL;
    pthread_join(thread[k], &good);
    CHECK(good == &d);
  }
  drop_in_close(&d);
}

typedef struct solve_once {
  const drop_in *d;
  problem *s;
  bool returned;
} solve_once;

static void *solve_cancelled(void *p) {
  solve_once *once = p;
  pthread_cancel(pthread_self());
  drop_in_dgesv(once->d, once->s);
  once->returned = true;
  pthread_testcancel();
  return p;
}

/* LAPACK has no place where a thread can be cancelled; the drop-in writes to
   the log, and waits for the threads that copy A. */
TEST(lapack, threads_that_are_cancelled_end_after_the_call) {
  for (int logs = 0; logs < 2; logs++) {
    if (logs)
      setenv("HONE_LOG", "1", 1);
    drop_in d = drop_in_open("1", "keep");
    REQUIRE(d.dgesv != NULL);
    problem s = problem_make(logs ? 60 : 1100, 1, 0.0);
    solve_once once = {.d = &d, .s = &s};
    pthread_t thread;
    void *end = NULL;
    log_capture capture = log_start();
    REQUIRE(pthread_create(&thread, NULL, solve_cancelled, &once) == 0);
    pthread_join(thread, &end);
    free(log_stop(&capture));
    unsetenv("HONE_LOG");
    CHECK(end == PTHREAD_CANCELED && once.returned);
    CHECK_LE(problem_backward_error(&s, false), 1e-12);
    problem_free(&s);
    drop_in_close(&d);
  }
}

TEST(lapack, a_child_of_fork_can_solve) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(60, 1, 1e5);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  pid_t child = fork();
  if (child == 0) {
    d.dgetrs("N", &s.n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
    _exit(s.info == 0 && problem_backward_error(&s, false) <= SUP_LIMIT ? 0
                                                                        : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, the_log_has_one_line_for_each_solve) {
  setenv("HONE_LOG", "1", 1);
  drop_in d = drop_in_open("20", "discard");
  REQUIRE(d.dgesv != NULL);
  log_capture capture = log_start();
  const int orders[] = {10, 30};
  for (int k = 0; k < 2; k++) {
    problem s = problem_make(orders[k], 1, 0.0);
    drop_in_dgesv(&d, &s);
    problem_free(&s);
  }
  char *text = log_stop(&capture);
  unsetenv("HONE_LOG");
  int lines = 0;
  for (const char *at = text; (at = strstr(at, "hone_lapack: dgesv n ")); at++)
    lines++;
  CHECK_EQ_INT(lines, 2);
  CHECK_CONTAINS(text, "dgesv n 10, nrhs 1: passed on; ");
  CHECK_CONTAINS(text, "dgesv n 30, nrhs 1: single LU, ");
  free(text);
  drop_in_close(&d);
}

/* The time in the log is that of the call, with the attempt that failed. */
TEST(lapack, the_log_counts_the_time_of_a_refused_attempt) {
  setenv("HONE_LOG", "1", 1);
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(300, 1, 1e15);
  log_capture capture = log_start();
  drop_in_dgesv(&d, &s);
  char *text = log_stop(&capture);
  const char *ours = strstr(text, "hone_lapack: dgesv");
  const char *attempt = strstr(text, "hone: n");
  if (CHECK(ours != NULL && attempt != NULL)) {
    double ms[2] = {0.0, 0.0};
    const char *line[] = {attempt, ours};
    for (int k = 0; k < 2; k++) {
      const char *end = strstr(line[k], " ms");
      if (!CHECK(end != NULL))
        break;
      while (end > line[k] && end[-1] != ' ')
        end--;
      ms[k] = atof(end);
    }
    CHECK_LT(ms[0], ms[1]);
  }
  free(text);
  problem_free(&s);
  drop_in_close(&d);
  unsetenv("HONE_LOG");
}
