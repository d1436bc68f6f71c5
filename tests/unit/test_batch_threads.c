/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches on several threads, and batches that are stopped. */
#include "base/cpus.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/float_settings.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Systems of several orders, so many that other threads are woken, among which
   some are solved by themselves and one is singular. */
static bat make_mixed(int parts, int64_t *orders, int64_t count) {
  bat t = bat_make(parts, count, 40, 2);
  for (int64_t k = 0; k < count; k++) {
    orders[k] = k % 50 == 7 ? 40 : 8 + k % 3;
    for (int64_t i = 0; i < orders[k]; i++)
      *bat_entry(&t, k, i, i) += 9.0;
    for (int64_t i = 0; i < orders[k] * parts && k % 40 == 5; i++)
      bat_b(&t, k)[i] *= 0x1p500; /* for no block */
  }
  memset(bat_entry(&t, 11, 0, 0), 0, (size_t)(40 * parts) * sizeof(double));
  t.batch.orders = orders;
  t.batch.determinants = 1;
  return t;
}

static void check_bits(int parts, int deterministic) {
  enum { MANY = 300 };
  int64_t orders[MANY];
  bat t = make_mixed(parts, orders, MANY);
  double *x = NULL;
  hone_batch_result *results = NULL;
  t.options.deterministic = deterministic;
  for (int threads = 1; threads <= 4; threads++) {
    ct_note("parts %d, deterministic %d, threads %d", parts, deterministic,
            threads);
    t.options.threads = threads;
    CHECK_EQ_INT(bat_call(&t), HONE_SINGULAR);
    CHECK_LE(t.report.threads, threads);
    if (x == NULL) {
      x = sup_copy(t.x, bat_doubles(&t));
      results = calloc(MANY, sizeof *results);
      memcpy(results, t.results, MANY * sizeof *results);
    }
    CHECK_MEM_EQ(t.x, x, (size_t)bat_doubles(&t) * sizeof *x);
    for (int64_t k = 0; k < MANY && deterministic; k++)
      CHECK_MEM_EQ(&t.results[k], &results[k], sizeof *results);
  }
  free(results);
  sup_free(x);
  bat_discard(&t);
}

TEST(batch_threads, do_not_change_a_bit_of_x) {
  for (int way = 0; way < 4; way++)
    check_bits(1 + way % 2, way / 2);
}

/* Threads are woken where there is work for them, and never more than asked
   for or than there are CPUs. */
TEST(batch_threads, are_woken_where_it_pays) {
  static const struct {
    int64_t count, n;
    bool pays;
  } cases[] = {{1, 5, false},
               {60, 10, false},
               {1000, 16, true},
               {4, 128, true},
               {1, 60, false}};
  for (int way = 0; way < 20; way++) {
    const int c = way / 4;
    bat t = bat_make(1 + way % 2, cases[c].count, cases[c].n, 1);
    int64_t *orders = calloc((size_t)cases[c].count, sizeof *orders);
    for (int64_t k = 0; k < cases[c].count; k++)
      orders[k] = cases[c].n;
    if (way / 2 % 2 == 1)
      t.batch.orders = orders;
    for (int threads = 0; threads <= 3; threads++) {
      const int wanted = threads > 0 ? threads : hone_threads_wanted();
      ct_note("parts %d, case %d, orders %d, threads %d", t.parts, c,
              way / 2 % 2, threads);
      t.options.threads = threads;
      CHECK_EQ_INT(bat_call(&t), HONE_OK);
      CHECK_EQ_INT(t.report.threads,
                   cases[c].pays ? HONE_MIN(wanted, hone_cpus()) : 1);
    }
    free(orders);
    bat_discard(&t);
  }
}

/* ---- Progress ----------------------------------------------------------- */

typedef struct listener {
  pthread_t thread; /* that made the call */
  int heard, stop_at, bad;
  double fraction, elapsed_s;
  int rounding; /* that the call was made with */
} listener;

static int listen(void *user, const hone_progress *event) {
  listener *l = user;
  l->bad += !pthread_equal(pthread_self(), l->thread) ||
            strcmp(event->phase, "batch") != 0 ||
            !(event->fraction >= l->fraction && event->fraction <= 1.0) ||
            !(event->elapsed_s >= l->elapsed_s) || fegetround() != l->rounding;
  l->fraction = event->fraction;
  l->elapsed_s = event->elapsed_s;
  return ++l->heard == l->stop_at;
}

static listener listener_of(bat *t, int stop_at) {
  const listener l = {
      .thread = pthread_self(), .stop_at = stop_at, .rounding = FE_TONEAREST};
  t->options.progress = listen;
  return l;
}

/* Batches whose systems are solved in blocks, alone, alone and large, or both
   ways. */
static bat make_kind(int parts, int kind) {
  const int64_t count = kind == 2 ? 3 : 60;
  bat t = bat_make(parts, count, kind == 1 ? 130 : kind == 2 ? 410 : 10, 1);
  t.options.factor_precision = HONE_FACTOR_DOUBLE;
  for (int64_t k = 0; k < count && kind == 3; k += 2)
    bat_b(&t, k)[0] *= 0x1p500;
  return t;
}

TEST(batch_threads, progress_tells_what_part_is_done) {
  for (int way = 0; way < 16; way++) {
    bat t = make_kind(1 + way % 2, way / 2 % 4);
    listener l = listener_of(&t, 0);
    t.options.progress_user = &l;
    t.options.threads = 1 + way / 8;
    ct_note("parts %d, kind %d, threads %d", t.parts, way / 2 % 4,
            t.options.threads);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(l.bad, 0);
    CHECK(l.heard >= 2);
    bat_discard(&t);
  }
}

/* Orders small and large in one batch: three ways to solve in one call. */
TEST(batch_threads, progress_never_falls_back) {
  enum { MANY = 40 };
  int64_t orders[MANY];
  for (int way = 0; way < 4; way++) {
    bat t = bat_make(1 + way % 2, MANY, 402, 1);
    listener l = listener_of(&t, 0);
    t.options.progress_user = &l;
    t.options.threads = 1 + way / 2;
    t.options.factor_precision = HONE_FACTOR_DOUBLE;
    for (int64_t k = 0; k < MANY; k++) {
      orders[k] = k == 3 || k == 22 ? 402 : k % 5 == 0 ? 257 + k % 2 : 6;
      for (int64_t i = 0; i < orders[k]; i++)
        *bat_entry(&t, k, i, i) += 30.0;
    }
    t.batch.orders = orders;
    ct_note("parts %d, threads %d", t.parts, t.options.threads);
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    CHECK_EQ_INT(l.bad, 0);
    CHECK(l.fraction > 0.9); /* before the last system, or behind it */
    bat_discard(&t);
  }
}

/* A system is whole, or has no x. Returns how many have one. */
static int64_t count_whole(const bat *t) {
  int64_t whole = 0;
  for (int64_t k = 0; k < t->batch.count; k++) {
    const hone_batch_result *r = &t->results[k];
    CHECK(r->status == HONE_OK || r->status == HONE_CANCELLED);
    whole += r->status == HONE_OK;
  }
  return whole;
}

TEST(batch_threads, stop_at_any_event_of_the_callback) {
  for (int way = 0; way < 16; way++) {
    int64_t before = 0;
    bool done = false;
    /* With two threads it is chance what is done at an event. */
    const int fewer = way < 8 ? 4 : 2;
    for (int stop = 1; stop < 200 && !done; stop += 1 + stop / fewer) {
      bat t = make_kind(1 + way % 2, way / 2 % 4);
      listener l = listener_of(&t, stop);
      t.options.progress_user = &l;
      t.options.threads = 1 + way / 8;
      ct_note("parts %d, kind %d, threads %d, stop at event %d", t.parts,
              way / 2 % 4, t.options.threads, stop);
      const int st = bat_solve(&t);
      CHECK_EQ_INT(l.bad, 0);
      done = l.heard < stop;
      const int64_t whole = count_whole(&t);
      if (done)
        CHECK_EQ_INT(st, HONE_OK);
      else
        CHECK_EQ_INT(l.heard, stop); /* no more events after the stop */
      CHECK_EQ_INT(st, whole == t.batch.count ? HONE_OK : HONE_CANCELLED);
      if (t.options.threads == 1) {
        CHECK(stop > 1 || whole == 0);
        CHECK(whole >= before);
        before = whole;
      }
      if (st == HONE_CANCELLED)
        CHECK_CONTAINS(t.report.reason, "asked to stop");
      bat_discard(&t);
    }
    CHECK(done);
  }
}

TEST(batch_threads, stop_at_the_deadline) {
  for (int way = 0; way < 8; way++) {
    bat t = make_kind(1 + way % 2, way / 2);
    ct_note("parts %d, kind %d", t.parts, way / 2);
    t.options.threads = 1;
    t.options.deadline_s = 1e-9;
    CHECK_EQ_INT(bat_solve(&t), HONE_CANCELLED);
    CHECK_EQ_INT(count_whole(&t), 0);
    CHECK_CONTAINS(t.report.reason, "deadline");
    t.options.deadline_s = 1e6;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    t.options.deadline_s = (double)INFINITY;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    bat_discard(&t);
  }
}

/* ---- The caller's floating-point environment ---------------------------- */

TEST(batch_threads, and_the_callers_environment_change_no_result) {
  enum { MANY = 80 };
  for (int way = 0; way < 4; way++) {
    int64_t orders[MANY];
    bat t = make_mixed(1 + way % 2, orders, MANY);
    double *x = NULL;
    hone_batch_result results[MANY];
    t.options.deterministic = 1;
    t.options.threads = 1 + way / 2;
    for (int k = 0; k < FLOAT_SETTINGS; k++) {
      ct_note("parts %d, threads %d, %s", t.parts, t.options.threads,
              float_settings[k].name);
      for (int64_t i = 0; i < bat_doubles(&t); i++)
        t.x[i] = UNTOUCHED;
      float_setting_enter(&float_settings[k]);
      const int st =
          bat_call_with(t.parts, &t.batch, &t.options, t.results, &t.report);
      CHECK(float_setting_leave(&float_settings[k]));
      CHECK_EQ_INT(st, HONE_SINGULAR);
      if (k == 0) {
        x = sup_copy(t.x, bat_doubles(&t));
        memcpy(results, t.results, sizeof results);
      }
      CHECK_MEM_EQ(t.x, x, (size_t)bat_doubles(&t) * sizeof *x);
      CHECK_MEM_EQ(t.results, results, sizeof results);
    }
    sup_free(x);
    bat_discard(&t);
  }
}

TEST(batch_threads, progress_has_the_environment_of_the_caller) {
  for (int way = 0; way < 8; way++) {
    bat t = make_kind(1 + way % 2, way / 2);
    listener l = listener_of(&t, 0);
    l.rounding = FE_DOWNWARD;
    t.options.progress_user = &l;
    ct_note("parts %d, kind %d", t.parts, way / 2);
    fesetround(FE_DOWNWARD);
    const int st =
        bat_call_with(t.parts, &t.batch, &t.options, t.results, &t.report);
    CHECK_EQ_INT(fegetround(), FE_DOWNWARD);
    fesetround(FE_TONEAREST);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK_EQ_INT(l.bad, 0);
    bat_discard(&t);
  }
}
