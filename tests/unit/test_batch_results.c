/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of batches in device memory, and batches whose caller wants none: the
   host looks at no system that the device has solved. Nothing else may differ
   from a call whose results lie on the host. */
#include "tests/unit/batch_away.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/memory_problem.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST = 12, /* systems */
  WORDS = sizeof(hone_batch_result) / sizeof(double)
};
static const unsigned char UNUSED = 0xa5; /* in what no call may write */

/* A call with its results at three places: on the host, nowhere, and on the
   device, one byte range behind the other. */
typedef struct places {
  bat t;
  away w;
  hone_batch_result host[MOST], back[MOST];
  double *there;
  size_t size; /* of a result */
} places;

/* With this, results of short calls are copied, too, and by all threads. */
enum { COPIER = 2 * sizeof(hone_batch_result) };

static void open_places(places *p, bat t, size_t size) {
  wrapped_trial.copier = COPIER;
  p->t = t;
  p->size = size;
  p->t.options.device = HONE_DEVICE_AUTO;
  p->t.options.columns = NULL;
  p->t.options.deterministic = 1;
  p->t.batch.result_size = size;
  p->w = away_send(&p->t, false);
  p->there = device_alloc(MOST * WORDS);
}

static void close_places(places *p) {
  wrapped_trial.copier = 0;
  device_free(p->there);
  away_discard(&p->w);
  bat_discard(&p->t);
}

static int call(places *p, hone_batch_result *results) {
  return bat_call_with(p->t.parts, &p->w.batch, &p->t.options, results,
                       &p->t.report);
}

/* Calls with results of p->size bytes, on the device or on the host, and gives
   each its own place in p->back; what the call did not write is UNUSED. */
static int call_with_results(places *p, bool there) {
  _Alignas(double) unsigned char bytes[sizeof p->back];
  memset(bytes, UNUSED, sizeof bytes);
  device_put(p->there, bytes, sizeof bytes);
  void *const to = there ? (void *)p->there : (void *)bytes;
  const int st = call(p, to);
  if (there)
    device_get(bytes, p->there, sizeof bytes);
  memset(p->back, UNUSED, sizeof p->back);
  const size_t used = (size_t)p->t.batch.count * p->size;
  for (size_t k = 0; k < (size_t)p->t.batch.count; k++)
    memcpy(&p->back[k], bytes + k * p->size, p->size);
  size_t written = 0;
  for (size_t i = used; i < sizeof bytes; i++)
    written += bytes[i] != UNUSED;
  CHECK_EQ_INT((int64_t)written, 0);
  return st;
}

static int call_there(places *p) { return call_with_results(p, true); }

/* Logarithms and signs of determinants are computed on the device. */
static void check_determinant(const hone_batch_result *v,
                              const hone_batch_result *w) {
  if (isnan(v->log_abs_det)) {
    CHECK(isnan(w->log_abs_det) && isnan(w->det_re) && isnan(w->det_im));
    return;
  }
  if (v->log_abs_det != w->log_abs_det) /* they may be -Inf */
    CHECK_NEAR(w->log_abs_det, v->log_abs_det,
               1e-13 * (1.0 + fabs(v->log_abs_det)));
  CHECK_NEAR(w->det_re, v->det_re, 1e-14);
  CHECK_NEAR(w->det_im, v->det_im, 1e-14);
}

static void check_alike(const places *p) {
  const size_t plain = offsetof(hone_batch_result, log_abs_det);
  const size_t bytes = p->size < plain ? p->size : plain;
  for (int64_t k = 0; k < p->t.batch.count; k++) {
    ct_note("result %d", (int)k);
    CHECK_MEM_EQ(&p->back[k], &p->host[k], bytes);
    if (p->size > plain)
      check_determinant(&p->host[k], &p->back[k]);
  }
}

static void check_reports(const hone_report *v, const hone_report *w) {
  CHECK_EQ_INT(w->status, v->status);
  CHECK_EQ_INT(w->accepted, v->accepted);
  CHECK_EQ_INT(w->iterations, v->iterations);
  CHECK_EQ_INT(w->precision, v->precision);
  CHECK_EQ_INT(w->digits, v->digits);
  CHECK_MEM_EQ(&w->backward_error, &v->backward_error, sizeof(double));
  CHECK_MEM_EQ(&w->normwise_error, &v->normwise_error, sizeof(double));
  CHECK_MEM_EQ(&w->residual_error, &v->residual_error, sizeof(double));
  CHECK_MEM_EQ(&w->forward_error, &v->forward_error, sizeof(double));
  CHECK_MEM_EQ(&w->rcond, &v->rcond, sizeof(double));
  CHECK(strcmp(w->path, v->path) == 0);
  CHECK(strcmp(w->reason, v->reason) == 0);
}

/* Solves with results that the host makes, as it does where the caller wants
   those of right-hand sides, too. */
static int call_with_columns(places *p) {
  const size_t sides = (size_t)(p->t.batch.count * p->t.batch.nrhs);
  hone_column *columns = calloc(sides + 1, sizeof *columns);
  memset(p->host, UNUSED, sizeof p->host);
  p->w.batch.result_size = sizeof p->host[0];
  p->t.options.columns = columns;
  const int st = call(p, p->host);
  p->t.options.columns = NULL;
  free(columns);
  return st;
}

/* Solves with results at all three places; returns the status. */
static int check_places(places *p) {
  const size_t x_bytes = (size_t)bat_doubles(&p->t) * sizeof(double);
  double *x = malloc(x_bytes);
  const int st = call_with_columns(p);
  const hone_report report = p->t.report;
  device_get(x, p->w.x, x_bytes);
  p->w.batch.result_size = p->size;
  for (int place = 0; place < 3; place++) {
    ct_note("results nowhere, on the host, on the device: %d", place);
    device_put(p->w.x, p->t.x, x_bytes);
    const int again = place ? call_with_results(p, place == 2) : call(p, NULL);
    CHECK_EQ_INT(again, st);
    if (place > 0)
      check_alike(p);
    check_reports(&report, &p->t.report);
    device_get(p->t.x, p->w.x, x_bytes);
    for (int64_t k = 0; k < p->t.batch.count; k++)
      if (p->host[k].status >= 0)
        CHECK_MEM_EQ(bat_x(&p->t, k), x + (bat_x(&p->t, k) - p->t.x),
                     x_bytes / (size_t)p->t.batch.count);
  }
  free(x);
  return st;
}

/* Full results and those of programs that know fewer members. */
static const size_t sizes[] = {sizeof(hone_batch_result),
                               offsetof(hone_batch_result, row),
                               offsetof(hone_batch_result, normwise_error)};

TEST(batch_results, may_lie_in_device_memory) {
  NEED_DEVICE();
  static const int64_t of[] = {3, 20, 130};
  for (int way = 0; way < 36; way++) {
    places p;
    device_begin();
    const int64_t n = of[way / 6 % 3], nrhs = 1 + way / 18 * 2;
    wrapped_trial.portion = way % 2 ? 5 : 0;
    open_places(&p, bat_make(1 + way % 2, MOST - 1, n, nrhs),
                sizes[way / 2 % 3]);
    p.w.batch.determinants = way / 2 % 2;
    ct_note("parts %d, n %d, nrhs %d, size %d", p.t.parts, (int)n, (int)nrhs,
            (int)p.size);
    CHECK_EQ_INT(check_places(&p), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&p.t), MOST - 1);
    close_places(&p);
    device_end();
  }
  wrapped_trial = (hone_trial){0};
}

/* Systems that the device leaves, with and without an x, among others. */
static void spoil(bat *t, int64_t k) {
  if (k == 2)
    *bat_entry(t, k, 0, 0) = 1e304;
  if (k == 4)
    *bat_entry(t, k, 1, 2) = (double)NAN;
  if (k == 5)
    memset(bat_entry(t, k, 0, 0), 0,
           (size_t)(t->batch.n * t->parts) * sizeof(double));
  if (k == 7)
    bat_b(t, k)[0] = HUGE_VAL;
}

TEST(batch_results, of_systems_that_the_host_solves_come_to_the_device) {
  NEED_DEVICE();
  for (int way = 0; way < 18; way++) {
    places p;
    device_begin();
    bat t = bat_make(1 + way % 2, 10, 7, 1);
    const int bad = way / 6; /* none in the first portions, in all, in some */
    for (int64_t k = 0; k < 10; k++)
      if (bad == 1 || (bad == 2 && k > 3) || (bad == 0 && k == 2))
        spoil(&t, k);
    wrapped_trial.portion = way / 2 % 3 + 1;
    open_places(&p, t, sizes[way % 3]);
    ct_note("way %d", way);
    CHECK_EQ_INT(check_places(&p), bad == 0 ? HONE_OK : HONE_NOT_FINITE_A);
    CHECK_EQ_INT(bat_on_device(&p.t), bad == 0 ? 9 : bad == 1 ? 6 : 7);
    close_places(&p);
    device_end();
  }
  wrapped_trial = (hone_trial){0};
}

/* Calls of the CPU alone, whose arrays lie on the host. */
TEST(batch_results, of_the_host_come_to_the_device) {
  NEED_DEVICE();
  device_begin();
  bat t = bat_make(1, MOST, 5, 1);
  hone_batch_solver *solver = NULL;
  hone_batch_result host[MOST], back[MOST];
  double *there = device_alloc(MOST * WORDS);
  hone_batch_result *const results = (hone_batch_result *)(void *)there;
  t.options.deterministic = 1;
  t.options.columns = NULL;
  *bat_entry(&t, 3, 1, 1) = (double)NAN;
  for (int step = 0; step < 3; step++) {
    int st[2] = {HONE_OK, HONE_OK};
    ct_note("step %d", step);
    if (step == 1)
      CHECK_EQ_INT(hone_batch_solver_create(&solver, &t.options), HONE_OK);
    for (int place = 0; place < 2; place++) {
      hone_batch_result *const to = place ? results : host;
      if (step == 0)
        st[place] = bat_call_with(1, &t.batch, &t.options, to, &t.report);
      else if (step == 1)
        st[place] = hone_batch_solver_factor(solver, &t.batch, to, &t.report);
      else
        st[place] =
            hone_batch_solver_solve(solver, &t.batch, NULL, to, &t.report);
    }
    device_get(back, there, sizeof back);
    CHECK_EQ_INT(st[1], st[0]);
    CHECK_EQ_INT(back[3].status, HONE_NOT_FINITE_A);
    CHECK_MEM_EQ(back, host, sizeof back);
  }
  hone_batch_solver_destroy(&solver);
  device_free(there);
  bat_discard(&t);
  device_end();
}

/* The calls of CUDA of a call for 64 systems, without results or with those on
   the host. */
static int64_t calls_with(bat *t, hone_batch_result *results, int *st) {
  away w = away_send(t, false);
  const int64_t before = failing_calls.made;
  *st = bat_call_with(t->parts, &w.batch, &t->options, results, &t->report);
  away_discard(&w);
  return failing_calls.made - before;
}

/* Only where a system is left does the host fetch what it makes results of, and
   wait for it, and it finds the last one of two warps. */
TEST(batch_results, are_fetched_only_for_systems_that_are_left) {
  NEED_DEVICE();
  device_begin();
  int st = HONE_OK;
  bat t = bat_make(1, 64, 4, 1);
  t.options.device = HONE_DEVICE_AUTO;
  t.options.columns = NULL;
  wrapped_trial.copier = COPIER;
  (void)calls_with(&t, NULL, &st); /* makes what the process keeps */
  const int64_t calls = calls_with(&t, NULL, &st);
  CHECK_EQ_INT(st, HONE_OK);
  CHECK_EQ_INT(calls_with(&t, t.results, &st), calls);
  for (int64_t k = 31; k < 64; k += 32)
    for (int host = 0; host < 2; host++) {
      double *entry = bat_entry(&t, k, 1, 1);
      const double old = *entry;
      *entry = (double)NAN;
      CHECK_EQ_INT(calls_with(&t, host ? t.results : NULL, &st), calls + 2);
      CHECK_EQ_INT(st, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(t.report.accepted, 63);
      *entry = old;
    }
  wrapped_trial.copier = 0;
  bat_discard(&t);
  device_end();
}

/* The results of right-hand sides, some of which have no x. */
TEST(batch_results, of_columns_may_lie_in_device_memory) {
  NEED_DEVICE();
  for (int way = 0; way < 8; way++) {
    hone_column host[2 * MOST], back[2 * MOST];
    device_begin();
    const bool away_too = way / 2 % 2, here = way / 4 == 1;
    bat t = bat_make(1 + way % 2, MOST, 5, 2);
    for (int64_t k = 0; k < MOST; k++)
      if (k == 3 || k == 4)
        *bat_entry(&t, k, 1, 1) = k == 3 ? (double)NAN : 1e304;
    away w = away_send(&t, false);
    const size_t bytes = sizeof back;
    double *there = device_alloc((int64_t)(bytes / sizeof(double)));
    t.options.deterministic = 1;
    t.options.device = here ? HONE_DEVICE_CPU : HONE_DEVICE_AUTO;
    for (int place = 0; place < 2; place++) {
      t.options.columns = place ? (hone_column *)(void *)there : host;
      CHECK_EQ_INT(bat_call_with(t.parts, away_too ? &w.batch : &t.batch,
                                 &t.options, t.results, &t.report),
                   HONE_NOT_FINITE_A);
    }
    device_get(back, there, sizeof back);
    ct_note("way %d", way);
    CHECK_MEM_EQ(back, host, sizeof back);
    CHECK_EQ_INT(back[6].status, HONE_NOT_FINITE_A);
    device_free(there);
    away_discard(&w);
    bat_discard(&t);
    device_end();
  }
}

/* Results and columns may not lie in another array of the call. */
TEST(batch_results, overlap_no_other_array) {
  double memory[400] = {0.0};
  hone_report report = HONE_REPORT_INIT;
  hone_batch_result results[2];
  for (int way = 0; way < 8; way++) {
    hone_options o = HONE_OPTIONS_INIT;
    hone_batch b = HONE_BATCH_INIT;
    double *const a = memory + 100, *const rhs = memory + 200;
    double *const x = memory + 300;
    double *const at[] = {a + 7, rhs + 3, x, memory + 304};
    void *const to = at[way % 4];
    for (int64_t i = 0; i < 8; i++)
      a[i] = rhs[i] = i % 3 == 0 ? 2.0 : 1.0;
    b.count = b.n = 2;
    b.nrhs = 1;
    b.a = a, b.lda = 2, b.stride_a = 4;
    b.b = rhs, b.ldb = 2, b.stride_b = 2;
    b.x = x, b.ldx = 2, b.stride_x = 2;
    o.columns = way < 4 ? NULL : to;
    ct_note("way %d", way);
    const int st = hone_batch_solve(&b, &o, way < 4 ? to : results, &report);
    CHECK_EQ_INT(st, way % 4 == 3 ? HONE_OK : HONE_BAD_OVERLAP);
    CHECK(way % 4 == 3 || strstr(report.reason, "overlaps") != NULL);
    CHECK(way < 4 || results[1].status == st);
  }
  /* Results and columns at one place. */
  hone_options o = HONE_OPTIONS_INIT;
  hone_batch b = HONE_BATCH_INIT;
  b.count = 2;
  b.nrhs = b.lda = b.ldb = b.ldx = 1;
  o.columns = (hone_column *)(void *)results;
  CHECK_EQ_INT(hone_batch_solve(&b, &o, results, &report), HONE_BAD_OVERLAP);
}

/* Arguments that are refused, with results there. */
TEST(batch_results, in_device_memory_tell_of_refused_calls) {
  NEED_DEVICE();
  device_begin();
  places p;
  open_places(&p, bat_make(1, MOST - 1, 4, 1), sizeof(hone_batch_result));
  p.w.batch.ldx = 3;
  CHECK_EQ_INT(call_there(&p), HONE_BAD_LEADING_DIMENSION);
  for (int64_t k = 0; k < MOST - 1; k++) {
    CHECK_EQ_INT(p.back[k].status, HONE_BAD_LEADING_DIMENSION);
    CHECK(isinf(p.back[k].forward_error));
  }
  close_places(&p);
  device_end();
}

static int stop(void *user, const hone_progress *event) {
  (void)event;
  int *calls = user;
  return --*calls < 0;
}

/* A call that is cancelled after some portions. */
TEST(batch_results, made_there_tell_of_cancelled_systems) {
  NEED_DEVICE();
  int some[2] = {0, 0}; /* with results on the host, on the device */
  for (int way = 0; way < 24; way++) {
    places p;
    int calls = way / 2;
    ct_note("results on the device: %d, after %d events", way % 2, calls);
    device_begin();
    open_places(&p, bat_make(1, MOST - 1, 4, 1), sizeof(hone_batch_result));
    wrapped_trial.portion = 2;
    p.t.options.progress = stop;
    p.t.options.progress_user = &calls;
    const int st = call_with_results(&p, way % 2 > 0);
    int64_t cancelled = 0;
    device_get(p.t.x, p.w.x, (size_t)bat_doubles(&p.t) * sizeof(double));
    for (int64_t k = 0; k < MOST - 1; k++)
      if (p.back[k].status == HONE_OK)
        CHECK_LE(bat_omega(&p.t, k, 0, bat_x(&p.t, k)), SUP_LIMIT);
      else
        cancelled += p.back[k].status == HONE_CANCELLED;
    CHECK_EQ_INT(st, cancelled > 0 ? HONE_CANCELLED : HONE_OK);
    CHECK_EQ_INT(p.t.report.accepted, MOST - 1 - cancelled);
    some[way % 2] += cancelled > 0 && cancelled < MOST - 1;
    close_places(&p);
    device_end();
  }
  CHECK_GE(some[0], 2);
  CHECK_GE(some[1], 2);
  wrapped_trial = (hone_trial){0};
}

/* Whichever call of CUDA fails: what a result says is true of x. */
TEST(batch_results, made_there_survive_every_failed_call) {
  NEED_FAKE();
  NEED_DEVICE();
  int refused = 0, solved[2] = {0, 0}, left[2] = {0, 0};
  for (int way = 0; way < 8; way++)
    for (int64_t at = 1; at < 200; at++) {
      places p;
      device_begin();
      bat t = bat_make(1 + way % 2, MOST - 1, 6, 1);
      if (way / 2 % 2 == 1)
        spoil(&t, 2);
      wrapped_trial.portion = 3;
      open_places(&p, t, sizeof(hone_batch_result));
      failing_calls.fail_at = at;
      (void)call_with_results(&p, way < 4);
      const bool over = failing_calls.fail_at > 0;
      failing_calls.fail_at = 0;
      ct_note("way %d, call %d", way, (int)at);
      device_get(p.t.x, p.w.x, (size_t)bat_doubles(&p.t) * sizeof(double));
      for (int64_t k = 0; k < MOST - 1; k++) {
        refused += p.back[k].status < 0;
        solved[way / 4] += p.back[k].status == HONE_OK;
        if (p.back[k].status == HONE_OK)
          CHECK_LE(bat_omega(&p.t, k, 0, bat_x(&p.t, k)), SUP_LIMIT);
      }
      left[way / 4] += bat_on_device(&p.t) < MOST - 1;
      close_places(&p);
      device_end();
      if (over)
        break;
    }
  wrapped_trial = (hone_trial){0};
  CHECK_EQ_INT(refused, 0);
  for (int place = 0; place < 2; place++) {
    CHECK_GE(left[place], 12);
    CHECK_GE(solved[place], 12 * (MOST - 1));
  }
}

/* Whichever allocation fails: a result is there, and true of x. */
TEST(batch_results, in_device_memory_survive_every_failed_allocation) {
  NEED_DEVICE();
  int64_t without = 0, with = 0;
  for (int way = 0; way < 4; way++) {
    bool done = false;
    for (int64_t at = 0; at < 200 && !done; at++) {
      places p;
      heap h;
      device_begin();
      bat t = bat_make(1, MOST - 1, 6, 1);
      bat_b(&t, 2)[0] *= 0x1p500; /* for no device */
      wrapped_trial.portion = 4;
      open_places(&p, t, sizeof(hone_batch_result));
      heap_use(&p.t.options, &h);
      h.fail_at = at;
      h.fail_after = way % 2;
      const int st = way / 2 ? call(&p, NULL) : call_there(&p);
      heap_check(&h);
      ct_note("way %d, allocation %d", way, (int)at);
      device_get(p.t.x, p.w.x, (size_t)bat_doubles(&p.t) * sizeof(double));
      for (int64_t k = 0; k < MOST - 1 && way / 2 == 0; k++) {
        without += p.back[k].status == HONE_NO_MEMORY;
        with += p.back[k].status == HONE_OK;
        CHECK(p.back[k].status == HONE_OK ||
              p.back[k].status == HONE_NO_MEMORY);
        if (p.back[k].status == HONE_OK)
          CHECK_LE(bat_omega(&p.t, k, 0, bat_x(&p.t, k)), SUP_LIMIT);
      }
      CHECK(st == HONE_OK || (h.failed && st == HONE_NO_MEMORY));
      done = !h.failed;
      close_places(&p);
      device_end();
    }
    CHECK(done);
  }
  wrapped_trial = (hone_trial){0};
  CHECK_GE(without, 1);
  CHECK_GE(with, MOST);
}
