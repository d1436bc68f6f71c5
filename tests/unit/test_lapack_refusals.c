/* SPDX-License-Identifier: BSD-3-Clause */
/* For whom the drop-in spares the attempt in single precision, and that x is as
   good as ever (lapack/refusals.c). */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double HARD = 1e15, EASY = 1e3;

static drop_in open_logging(void) {
  setenv("HONE_LOG", "1", 1);
  return drop_in_open("1", "discard");
}

static void close_logging(drop_in *d) {
  drop_in_close(d);
  unsetenv("HONE_LOG");
}

/* Solves one system and tells whether Hone was called for it, by the log. */
static bool is_tried(const drop_in *d, int n, double cond) {
  problem s = problem_make(n, 1, cond);
  log_capture capture = log_start();
  drop_in_dgesv(d, &s);
  char *text = log_stop(&capture);
  const bool tried = strstr(text, "hone: n ") != NULL;
  const bool solved = strstr(text, "dgesv n") && strstr(text, ": single LU");
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  CHECK_EQ_INT(tried && !solved, strstr(text, ": single refused, d") != NULL);
  CHECK_EQ_INT(!tried, strstr(text, ": single refused before, d") != NULL);
  free(text);
  problem_free(&s);
  return tried;
}

/* Solves count systems of order n, n + step, ... Returns a letter for each, 'x'
   if it was tried, to be read before the next call. */
static const char *turn(const drop_in *d, int n, int step, int count,
                        double cond) {
  static char tried[64];
  memset(tried, 0, sizeof tried);
  for (int k = 0; k < count && k < 63; k++)
    tried[k] = is_tried(d, n + k * step, cond) ? 'x' : '.';
  return tried;
}

TEST(lapack, whose_matrices_are_refused_is_spared_the_attempt) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 80, 0, 45, HARD),
            "xxx........x................x................");
  CHECK(is_tried(&d, 81, HARD)); /* another order */
  CHECK_STR(turn(&d, 80, 0, 19, EASY), "................xxx");
  CHECK_STR(turn(&d, 80, 0, 3, HARD), "xxx");
  CHECK(!is_tried(&d, 80, EASY));
  close_logging(&d);
}

/* After three orders in a row every other order is spared its first calls. */
TEST(lapack, whose_matrices_of_many_orders_are_refused_is_spared) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 60, 1, 12, HARD), "xxx........x");
  for (int k = 0; k < 7; k++)
    CHECK_STR(turn(&d, 60, 1, 12, HARD), "............");
  CHECK_STR(turn(&d, 60, 1, 12, HARD), "...xxxxxxxx.");
  CHECK_STR(turn(&d, 60, 1, 12, HARD), "xxx........x");
  close_logging(&d);
}

TEST(lapack, whose_order_is_never_the_same_is_spared) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 60, 1, 45, HARD),
            "xxx........x................x................");
  CHECK_STR(turn(&d, 105, 1, 20, EASY), "................xxxx");
  CHECK_STR(turn(&d, 125, 1, 4, HARD), "xxx.");
  close_logging(&d);
}

/* An order that succeeds is served whatever becomes of others, and others are
   spared although it succeeds. */
TEST(lapack, whose_matrices_are_good_and_bad_is_served_the_good) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  char bad[32] = "", good[32] = "";
  CHECK(is_tried(&d, 50, EASY));
  for (int k = 0; k < 20; k++) {
    bad[k] = is_tried(&d, 60 + k, HARD) ? 'x' : '.';
    good[k] = is_tried(&d, 50, EASY) ? 'x' : '.';
  }
  CHECK_STR(bad, "xxx........x........");
  CHECK_STR(good, "xxxxxxxxxxxxxxxxxxxx");
  close_logging(&d);
  d = open_logging();
  REQUIRE(d.dgesv != NULL);
  for (int k = 0; k < 20; k++) {
    bad[k] = is_tried(&d, 60, HARD) ? 'x' : '.';
    good[k] = is_tried(&d, 50, EASY) ? 'x' : '.';
  }
  CHECK_STR(bad, "xxx........x........");
  CHECK_STR(good, "xxxxxxxxxxxxxxxxxxxx");
  close_logging(&d);
}

/* One that comes late is found after 8 calls of its own, however seldom they
   are among those of others. */
TEST(lapack, whose_good_order_comes_late_is_served_it) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 60, 1, 3, HARD), "xxx");
  char good[16] = "";
  for (int k = 0; k < 12; k++) {
    good[k] = is_tried(&d, 50, EASY) ? 'x' : '.';
    (void)turn(&d, 60, 1, 12, HARD);
  }
  CHECK_STR(good, "........xxxx");
  close_logging(&d);
}

TEST(lapack, whose_orders_are_refused_now_and_then_is_not_spared) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  for (int k = 0; k < 5; k++) { /* two new ones are refused, one is not */
    CHECK_STR(turn(&d, 60 + 3 * k, 1, 2, HARD), "xx");
    CHECK(is_tried(&d, k % 2 ? 60 + 3 * k : 62 + 3 * k, EASY));
  }
  CHECK_STR(turn(&d, 40, 1, 6, EASY), "xxxxxx");
  CHECK_STR(turn(&d, 40, 1, 6, HARD), "xxxxxx"); /* these did succeed */
  CHECK_STR(turn(&d, 80, 1, 4, HARD), "xxx.");
  close_logging(&d);
}

/* While new orders are spared, one that was refused before may be the next to
   be tried, and counts. One that had succeeded does not, nor one that was
   spared calls of its own. */
TEST(lapack, whose_known_orders_are_refused_is_spared_for_new_ones) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK(is_tried(&d, 50, EASY));
  CHECK_STR(turn(&d, 60, 1, 3, HARD), "xxx");
  CHECK(is_tried(&d, 50, HARD));
  CHECK_STR(turn(&d, 70, 1, 8, HARD), "........");
  CHECK(is_tried(&d, 60, HARD));
  CHECK_STR(turn(&d, 80, 1, 17, HARD), "................x");
  CHECK_STR(turn(&d, 80, 0, 8, HARD), ".......x");
  CHECK_STR(turn(&d, 100, 1, 33, HARD), "................................x");
  close_logging(&d);
}

TEST(lapack, whose_matrices_are_refused_is_tried_with_another_routine) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 60, 1, 4, HARD), "xxx.");
  problem s = problem_make(60, 1, -EASY);
  log_capture capture = log_start();
  drop_in_dposv(&d, &s, 'L');
  char *text = log_stop(&capture);
  CHECK_CONTAINS(text, "dposv n 60, nrhs 1: single Cholesky");
  free(text);
  problem_free(&s);
  close_logging(&d);
}

/* There is memory for 256 orders; the one that came first is forgotten. */
TEST(lapack, whose_matrices_were_refused_long_ago_is_tried_again) {
  drop_in d = open_logging();
  REQUIRE(d.dgesv != NULL);
  CHECK_STR(turn(&d, 80, 0, 4, HARD), "xxx.");
  for (int k = 0; k < 255; k++)
    CHECK(is_tried(&d, k < 78 ? k + 2 : k + 3, 0.0));
  CHECK(!is_tried(&d, 80, HARD));
  CHECK(is_tried(&d, 258, 0.0));
  CHECK_STR(turn(&d, 80, 0, 4, HARD), "xxx.");
  close_logging(&d);
}

/* ---- dgetrf_, by the call ----------------------------------------------- */

/* Two calls that no compiler makes one of. */
static __attribute__((noinline)) void factor_here(const drop_in *d,
                                                  problem *s) {
  d->dgetrf(&s->n, &s->n, s->f, &s->ld, s->ipiv, &s->info);
}
static __attribute__((noinline)) void factor_there(const drop_in *d,
                                                   problem *s) {
  const int m = s->n;
  d->dgetrf(&m, &m, s->f, &s->ld, s->ipiv, &s->info);
}

/* Factors a matrix in one of two calls; tells whether single precision was
   tried, and refused it. */
static bool factor_is_tried(const drop_in *d, int n, bool other_call) {
  problem s = problem_make(n, 1, HARD);
  log_capture capture = log_start();
  if (other_call)
    factor_there(d, &s);
  else
    factor_here(d, &s);
  char *text = log_stop(&capture);
  problem_check_getrf(&s);
  const bool tried = strstr(text, "single refused, LAPACK's factors") != NULL;
  free(text);
  problem_free(&s);
  return tried;
}

TEST(lapack, whose_factors_of_many_orders_are_refused_is_spared) {
  setenv("HONE_LAPACK_HIDE", "always", 1);
  drop_in d = open_logging();
  REQUIRE(d.dgetrf != NULL);
  char tried[16] = "";
  for (int k = 0; k < 12; k++)
    tried[k] = factor_is_tried(&d, 60 + k, false) ? 'x' : '.';
  CHECK_STR(tried, "xxx........x");
  CHECK(factor_is_tried(&d, 60, true));
  close_logging(&d);
  unsetenv("HONE_LAPACK_HIDE");
}

/* ---- Threads ------------------------------------------------------------ */

static void *solve_good_and_bad(void *p) {
  const drop_in *d = p;
  bool good = true;
  for (int k = 0; k < 40; k++) {
    problem s = problem_make(30 + k % 13, 1, k % 3 ? HARD : EASY);
    drop_in_dgesv(d, &s);
    good =
        good && s.info == 0 && problem_backward_error(&s, false) <= SUP_LIMIT;
    problem_free(&s);
  }
  return good ? p : NULL;
}

TEST(lapack, whose_threads_are_refused_gets_good_solutions) {
  drop_in d = drop_in_open("1", "discard");
  REQUIRE(d.dgesv != NULL);
  pthread_t thread[4];
  for (int k = 0; k < 4; k++)
    REQUIRE(pthread_create(&thread[k], NULL, solve_good_and_bad, &d) == 0);
  for (int k = 0; k < 4; k++) {
    void *good = NULL;
    pthread_join(thread[k], &good);
    CHECK(good == &d);
  }
  drop_in_close(&d);
}
