/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the drop-in keeps hidden factors: their memory, threads, fork, and
   whose factors are hidden at all. */
#include "tests/unit/lapack_hidden.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_hidden(const hidden_system *s) { return isnan(s->f[0]); }

static void check_solves(const hidden_calls *d, hidden_system *s) {
  hidden_getrs(d, s, 'N');
  CHECK_EQ_INT(s->info, 0);
  CHECK_LE(hidden_backward_error(s, 'N'), 20.0 * SUP_LIMIT);
}

/* A matrix that has no room even alone takes none from others. */
TEST(lapack, hidden_diagonals_do_not_give_way_to_what_is_too_large) {
  hidden_calls d = hidden_open(NULL, "1");
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(100, 1, 0), large = hidden_make(600, 1, 0);
  double *const own = s.f;
  s.f = large.f; /* the workspace, which the larger matrix has afterwards */
  hidden_reset(&s);
  hidden_getrf(&d, &s);
  CHECK(is_hidden(&s));
  memcpy(own, s.f, (size_t)s.ld_f * (size_t)s.n * sizeof *own);
  s.f = own;
  hidden_reset(&large);
  hidden_getrf(&d, &large);
  CHECK(!is_hidden(&large));
  check_solves(&d, &s);
  hidden_free(&s);
  hidden_free(&large);
  hidden_close(&d);
}

/* Factors that were freed are made anew by LAPACK, from A in the array and its
   diagonal, which stays. */
TEST(lapack, hidden_factors_that_were_freed_are_made_anew) {
  enum { COUNT = 60 }; /* of 4 n^2 = 40 kB each; the limit is 1 MiB */
  hidden_calls d = hidden_open(NULL, "1");
  REQUIRE(d.getrf != NULL);
  hidden_system s[COUNT];
  int hidden = 0;
  for (int k = 0; k < COUNT; k++) {
    s[k] = hidden_make(100, 1, 0);
    s[k].a[1] = k;
    hidden_reset(&s[k]);
    hidden_getrf(&d, &s[k]);
    hidden += is_hidden(&s[k]);
  }
  CHECK_GE(hidden, 40);
  for (int k = 0; k < COUNT; k++)
    check_solves(&d, &s[k]);
  for (int k = 0; k < COUNT; k++)
    hidden_free(&s[k]);
  hidden_close(&d);
}

/* Diagonals may not be freed: if they take all the memory, LAPACK's factors are
   shown. */
TEST(lapack, hidden_factors_stay_within_their_memory) {
  enum { COUNT = 3000 }; /* diagonals of 400 bytes, and what describes them */
  hidden_calls d = hidden_open(NULL, "1");
  REQUIRE(d.getrf != NULL);
  hidden_system *s = calloc(COUNT, sizeof *s);
  int hidden = 0;
  for (int k = 0; k < COUNT; k++) {
    s[k] = hidden_make(50, 1, 0);
    hidden_getrf(&d, &s[k]);
    hidden += is_hidden(&s[k]);
  }
  CHECK_GE(hidden, 100);
  CHECK_LT(hidden, COUNT / 2 + COUNT / 4);
  CHECK(!is_hidden(&s[COUNT - 1]));
  for (int k = 0; k < COUNT; k += 111)
    check_solves(&d, &s[k]);
  for (int k = 0; k < COUNT; k++)
    hidden_free(&s[k]);
  free(s);
  hidden_close(&d);
}

TEST(lapack, hidden_factors_in_an_array_used_again_take_no_more_memory) {
  hidden_calls d = hidden_open(NULL, "1");
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(50, 1, 0);
  for (int k = 0; k < 6000; k++) { /* all diagonals would take 2.4 MB */
    hidden_reset(&s);
    hidden_getrf(&d, &s);
    if (!CHECK(is_hidden(&s)))
      break;
  }
  check_solves(&d, &s);
  hidden_free(&s);
  hidden_close(&d);
}

/* The array of an older matrix was overwritten, but there is a copy of it. */
TEST(lapack, hidden_factors_of_an_overwritten_array_serve_its_copy) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(100, 1, 0), copy = hidden_make(100, 1, 0);
  s.a[1] = copy.a[1] = copy.full[1] = 3.0;
  hidden_reset(&s);
  hidden_getrf(&d, &s);
  memcpy(copy.f, s.f, entries(s.ld, s.n) * sizeof *s.f);
  memcpy(copy.ipiv, s.ipiv, (size_t)s.n * sizeof *s.ipiv);
  s.a[1] = 4.0;
  hidden_reset(&s);
  hidden_getrf(&d, &s);
  check_solves(&d, &s);
  check_solves(&d, &copy);
  hidden_free(&s);
  hidden_free(&copy);
  hidden_close(&d);
}

TEST(lapack, hidden_factors_need_memory) {
  hidden_calls d = hidden_open(NULL, "0");
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(50, 1, 0);
  hidden_getrf(&d, &s);
  hidden_check_getrf(&s);
  hidden_free(&s);
  hidden_close(&d);
}

/* ---- Threads and processes ---------------------------------------------- */

typedef struct share {
  const hidden_calls *d;
  hidden_system *common;
  double worst;
} share;

static void *work(void *p) {
  share *w = p;
  for (int k = 0; k < 20; k++) {
    hidden_system own = hidden_make(60 + k, 1, 0), s = *w->common;
    s.x = calloc(entries(s.ld, s.nrhs), sizeof *s.x);
    hidden_getrf(w->d, &own);
    hidden_getrs(w->d, &s, 'T');
    hidden_getrs(w->d, &own, 'N');
    w->worst = fmax(w->worst, fmax(hidden_backward_error(&s, 'T'),
                                   hidden_backward_error(&own, 'N')));
    free(s.x);
    hidden_free(&own);
  }
  return NULL;
}

TEST(lapack, hidden_factors_serve_threads_at_the_same_time) {
  enum { THREADS = 6 };
  pthread_t thread[THREADS];
  share part[THREADS];
  hidden_calls d = hidden_open(NULL, "1");
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(90, 2, 0);
  hidden_getrf(&d, &s);
  for (int i = 0; i < THREADS; i++) {
    part[i] = (share){&d, &s, 0.0};
    pthread_create(&thread[i], NULL, work, &part[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    CHECK_LE(part[i].worst, 20.0 * SUP_LIMIT);
  }
  hidden_free(&s);
  hidden_close(&d);
}

/* In the child: rcond, x, and factors of the same array and of another one.
   LAPACK's x have larger errors than the limit. */
static int use_in_child(const hidden_calls *d, hidden_system *s,
                        double real_rcond) {
  const double limit = s->n < 512 ? SUP_LIMIT : 64.0 * SUP_EPS;
  hidden_system other = hidden_make(s->n, 1, 0);
  double rcond = -1.0;
  alarm(60);
  hidden_gecon(d, s, '1', 1.0, &rcond);
  hidden_getrs(d, s, 'N');
  bool good = fabs(rcond - real_rcond) <= 0.05 * real_rcond &&
              hidden_backward_error(s, 'N') <= limit;
  hidden_getrf(d, &other);
  hidden_getrs(d, &other, 'N');
  good = good && hidden_backward_error(&other, 'N') <= limit;
  hidden_reset(s);
  hidden_getrf(d, s);
  hidden_getrs(d, s, 'N');
  return good && hidden_backward_error(s, 'N') <= limit ? 0 : 1;
}

/* From order 512 on, they lie on a GPU where there is one: the child has
   LAPACK's. */
TEST(lapack, hidden_factors_serve_the_child_of_a_fork) {
  static const int orders[] = {90, 600};
  for (int i = 0; i < 2; i++) {
    hidden_calls d = hidden_open(NULL, NULL);
    REQUIRE(d.getrf != NULL);
    hidden_system s = hidden_make(orders[i], 1, 0);
    double rcond = 0.0;
    hidden_real_gecon(&s, '1', 1.0, &rcond);
    hidden_getrf(&d, &s);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
      _exit(use_in_child(&d, &s, rcond));
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ_INT(status, 0);
    check_solves(&d, &s);
    hidden_free(&s);
    hidden_close(&d);
  }
}

/* Parent and child go on with numbers of their own. */
TEST(lapack, hidden_factors_have_other_numbers_in_the_child_of_a_fork) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(40, 1, 0);
  uint64_t here = 0, there = 0;
  int ends[2];
  hidden_getrf(&d, &s);
  REQUIRE(pipe(ends) == 0);
  fflush(NULL);
  const pid_t child = fork();
  hidden_reset(&s);
  hidden_getrf(&d, &s);
  memcpy(&here, s.f, sizeof here);
  if (child == 0)
    _exit(write(ends[1], &here, sizeof here) == sizeof here ? 0 : 1);
  CHECK_EQ_INT(read(ends[0], &there, sizeof there), (int)sizeof there);
  CHECK(is_hidden(&s));
  CHECK(here != there);
  waitpid(child, NULL, 0);
  close(ends[0]);
  close(ends[1]);
  hidden_free(&s);
  hidden_close(&d);
}

/* ---- Consent ------------------------------------------------------------ */

static bool hides(const char *setting) {
  hidden_calls d = hidden_open(setting, NULL);
  bool hidden = false;
  if (CHECK(d.getrf != NULL)) {
    hidden_system s = hidden_make(40, 1, 0);
    hidden_getrf(&d, &s);
    hidden = is_hidden(&s);
    if (!hidden)
      hidden_check_getrf(&s);
    check_solves(&d, &s);
    hidden_free(&s);
  }
  hidden_close(&d);
  return hidden;
}

TEST(lapack, factors_are_hidden_from_the_callers_that_are_named) {
  CHECK(!hides("auto"));
  CHECK(!hides("never"));
  CHECK(!hides("_flapack:other"));
  CHECK(hides("_flapack:unit_te"));
  CHECK(hides("always"));
}

TEST(lapack, factors_of_a_matrix_that_is_not_square_are_shown) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(40, 1, 0), t = hidden_make(40, 1, 0);
  const int m = 41;
  d.getrf(&m, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  dgetrf_(&m, &t.n, t.f, &t.ld, t.ipiv, &t.info);
  CHECK_EQ_INT(s.info, t.info);
  CHECK_MEM_EQ(s.f, t.f, entries(s.ld, s.n) * sizeof *s.f);
  hidden_free(&s);
  hidden_free(&t);
  hidden_close(&d);
}

/* The second matrix from the same call is LAPACK's, after the first one was
   inverted. */
TEST(lapack, factors_are_shown_to_a_call_whose_matrices_are_inverted) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(45, 1, 0);
  for (int k = 0; k < 3; k++) {
    hidden_reset(&s);
    hidden_getrf(&d, &s);
    CHECK_EQ_INT(is_hidden(&s), k == 0);
    hidden_invert(&d, &s);
    hidden_check_inverse(&s);
  }
  hidden_free(&s);
  const int lwork = -1;
  hidden_system t = hidden_make(46, 1, 0);
  d.getri(&t.n, t.f, &t.ld, t.ipiv, t.x, &lwork, &t.info);
  hidden_getrf(&d, &t); /* it was asked how much room the inverse needs */
  hidden_check_getrf(&t);
  hidden_free(&t);
  hidden_close(&d);
}
