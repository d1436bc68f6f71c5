/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for threads: OpenBLAS keeps its number of them, the
   option deterministic holds, and solvers work side by side. */
#include "base/cpus.h"
#include "base/lapack.h"
#include "base/pool.h"
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TEST(contract, leaves_the_number_of_openblas_threads_unchanged) {
  const int before = hone_blas_threads();
  for (int set = 1; set <= 2; set++) {
    hone_blas_set_threads(set);
    const int now = hone_blas_threads();
    for (int threads = 0; threads <= 3; threads++)
      for (int k = 0; k < 4; k++) {
        sys s = sys_make(k == 1 ? 420 : 20, 1);
        ct_note("OpenBLAS %d, threads %d, case %d", now, threads, k);
        s.options.threads = threads;
        s.options.deterministic = k == 2;
        if (k == 3)
          s.a[5] = (double)NAN;
        sys_expect(&s, k == 3 ? HONE_NOT_FINITE_A : HONE_OK);
        CHECK_EQ_INT(hone_blas_threads(), now);
        const int wanted = hone_threads_wanted(), cpus = hone_cpus();
        const int most = s.n < HONE_THREADS_FROM ? 1
                         : threads > 0           ? threads
                                                 : wanted;
        CHECK_EQ_INT(s.report.threads, HONE_MIN(most, cpus));
        sys_discard(&s);
      }
  }
  hone_blas_set_threads(before);
}

TEST(contract, takes_the_number_of_threads_from_the_environment) {
  static const char *const names[] = {
      "HONE_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
  static const struct {
    const char *value[3];
    int wanted;
  } cases[] = {{{"1", "2", "3"}, 1},
               {{NULL, "2", "3"}, 2},
               {{NULL, NULL, "3,2"}, 3},
               {{"", "x", "5"}, 5},
               {{"0", "-4", NULL}, INT_MAX},
               {{NULL, NULL, NULL}, INT_MAX},
               {{"99999999999", NULL, NULL}, INT_MAX}};
  char *before[3];
  for (int i = 0; i < 3; i++)
    before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    ct_note("case %d", (int)c);
    for (int i = 0; i < 3; i++)
      if (cases[c].value[i] == NULL)
        unsetenv(names[i]);
      else
        setenv(names[i], cases[c].value[i], 1);
    CHECK_EQ_INT(hone_threads_wanted(), cases[c].wanted);
    sys s = sys_make(420, 1);
    const int cpus = hone_cpus();
    sys_expect(&s, HONE_OK);
    CHECK_EQ_INT(s.report.threads, HONE_MIN(cases[c].wanted, cpus));
    sys_discard(&s);
  }
  for (int i = 0; i < 3; i++) {
    if (before[i] == NULL)
      unsetenv(names[i]);
    else
      setenv(names[i], before[i], 1);
    free(before[i]);
  }
}

/* Solves s with 1 to 3 threads. */
static void check_bits(sys *s) {
  const int64_t count = sys_doubles(s);
  double *first = NULL;
  hone_report one = HONE_REPORT_INIT;
  s->options.deterministic = 1;
  for (int threads = 1; threads <= 3; threads++) {
    ct_note("n %d, nrhs %d, parts %d, threads %d", (int)s->n, (int)s->nrhs,
            s->parts, threads);
    s->options.threads = threads;
    CHECK_EQ_INT(sys_call(s), HONE_OK);
    if (first == NULL) {
      first = sup_copy(s->x, count);
      one = s->report;
    }
    CHECK_MEM_EQ(s->x, first, (size_t)count * sizeof *first);
    CHECK_MEM_EQ(&s->report.rcond, &one.rcond, sizeof one.rcond);
    CHECK_MEM_EQ(&s->report.backward_error, &one.backward_error,
                 sizeof one.backward_error);
  }
  sup_free(first);
}

TEST(contract, deterministic_gives_the_same_bits_for_any_number_of_threads) {
  static const struct {
    int64_t n, nrhs;
    int start;
  } cases[] = {{130, 3, HONE_FACTOR_SINGLE},
               {500, 1, HONE_FACTOR_SINGLE},
               {500, 5, HONE_FACTOR_SINGLE},
               {500, 2, HONE_FACTOR_DOUBLE},
               {1100, 1, HONE_FACTOR_SINGLE}};
  for (int i = 0; i < 10; i++) {
    sys s = sys_make_of(1 + i / 5, cases[i % 5].n, cases[i % 5].nrhs);
    s.options.factor_precision = cases[i % 5].start;
    check_bits(&s);
    sys_discard(&s);
  }
}

typedef struct runner {
  sys s;
  int worst; /* status */
} runner;

static void *run(void *arg) {
  runner *r = arg;
  sys *s = &r->s;
  either_solver solver = sys_solver(s);
  for (int i = 0; i < 15 && r->worst == HONE_OK; i++) {
    s->a[i] += 0.5;
    int st = sys_factor(s, &solver);
    if (st == HONE_OK)
      st = sys_solve_with(s, &solver, s->x, &s->report);
    r->worst = st;
    sys_check(s, st);
  }
  either_destroy(&solver);
  return NULL;
}

/* Two of real numbers and one of complex ones. */
TEST(contract, solvers_work_side_by_side_on_their_threads) {
  runner r[3] = {{.s = sys_make(140, 2)},
                 {.s = sys_make(420, 1)},
                 {.s = sys_make_of(2, 140, 2)}};
  pthread_t thread[3];
  for (int i = 0; i < 3; i++)
    REQUIRE(pthread_create(&thread[i], NULL, run, &r[i]) == 0);
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ_INT(r[i].worst, HONE_OK);
    sys_discard(&r[i].s);
  }
}

enum { AT_ONCE = 3, REPEATS = 4 };

typedef struct repeater {
  sys s;
  const double *x; /* that was computed while nobody else solved */
  int64_t differ;  /* solves with other bits, or another status */
} repeater;

static void *repeat(void *arg) {
  repeater *r = arg;
  const size_t bytes = (size_t)sys_doubles(&r->s) * sizeof *r->x;
  for (int i = 0; i < REPEATS; i++)
    r->differ += sys_call(&r->s) != HONE_OK || memcmp(r->s.x, r->x, bytes) != 0;
  return NULL;
}

TEST(contract, deterministic_gives_the_same_bits_while_other_threads_solve) {
  static const int64_t orders[] = {60, 500, 1100, 60, 500};
  for (int k = 0; k < 5; k++) {
    const int parts = 1 + k / 3;
    sys alone = sys_make_of(parts, orders[k], 2);
    pthread_t thread[AT_ONCE];
    repeater r[AT_ONCE];
    alone.options.deterministic = 1;
    CHECK_EQ_INT(sys_call(&alone), HONE_OK);
    for (int i = 0; i < AT_ONCE; i++) {
      r[i] = (repeater){.s = sys_make_of(parts, orders[k], 2), .x = alone.x};
      r[i].s.options.deterministic = 1;
      r[i].s.options.threads = i;
      CHECK_MEM_EQ(r[i].s.a, alone.a, sizeof *alone.a);
    }
    for (int i = 0; i < AT_ONCE; i++)
      REQUIRE(pthread_create(&thread[i], NULL, repeat, &r[i]) == 0);
    for (int i = 0; i < AT_ONCE; i++)
      pthread_join(thread[i], NULL);
    for (int i = 0; i < AT_ONCE; i++) {
      ct_note("n %d, parts %d, caller %d", (int)orders[k], parts, i);
      CHECK_EQ_INT(r[i].differ, 0);
      sys_discard(&r[i].s);
    }
    sys_discard(&alone);
  }
}
