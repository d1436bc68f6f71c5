/* SPDX-License-Identifier: BSD-3-Clause */
/* A solver whose matrices lie in device memory, one after the other, and what
   it does where memory or the driver fails: it solves, or returns an error and
   leaves x untouched, and everything is given back. */
#define _GNU_SOURCE /* usleep */
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double UNTOUCHED = 77.25;

/* Memory hooks that make one allocation fail and count what is allocated. */
typedef struct heap {
  int64_t calls, fail_at, blocks;
} heap;

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  void *p = ++h->calls == h->fail_at ? NULL : malloc(bytes);
  h->blocks += p != NULL;
  if (p != NULL)
    memset(p, 0xff, bytes);
  return p;
}

static void give(void *memory, void *ctx) {
  heap *h = ctx;
  h->blocks--;
  free(memory);
}

typedef struct sys {
  int64_t n;
  double *a, *b, *there_a, *there_b, *there_x;
  double *x;
  hone_options options;
  hone_report report;
  heap heap;
} sys;

static void make(sys *s, int64_t n, int device) {
  sup_rng rng = {(uint64_t)n};
  memset(s, 0, sizeof *s);
  s->n = n;
  s->a = sup_filled(n * n, 0.0);
  s->b = sup_filled(n, 0.0);
  s->x = sup_filled(n, UNTOUCHED);
  sup_random(&rng, n, n, s->a, n);
  sup_random(&rng, n, 1, s->b, n);
  s->there_a = on_device(s->a, n * n);
  s->there_b = on_device(s->b, n);
  s->there_x = on_device(s->x, n);
  s->options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s->report, sizeof s->report);
  s->options.device = device;
  s->options.threads = 4;
  s->options.alloc = take;
  s->options.free = give;
  s->options.alloc_ctx = &s->heap;
}

static void discard(sys *s) {
  CHECK_EQ_INT(s->heap.blocks, 0);
  device_free(s->there_a);
  device_free(s->there_b);
  device_free(s->there_x);
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* Puts another matrix in the place of A. */
static void change(sys *s, double by) {
  for (int64_t i = 0; i < s->n; i++)
    s->a[i * (s->n + 1)] += by;
  device_put(s->there_a, s->a, (size_t)(s->n * s->n) * sizeof(double));
}

static int solve_with(sys *s, hone_solver *solver) {
  const int st = sup_solver_solve(solver, HONE_TRANS, 1, s->there_b, s->n,
                                  s->there_x, s->n, NULL, 0, NULL, &s->report);
  device_get(s->x, s->there_x, (size_t)s->n * sizeof(double));
  return st;
}

static void check_solves(sys *s, hone_solver *solver) {
  CHECK_EQ_INT(solve_with(s, solver), HONE_OK);
  CHECK_LE(sup_backward_error(s->n, s->a, s->n, true, s->x, s->b), SUP_LIMIT);
}

static void keep(int device, int64_t n) {
  device_begin();
  sys s;
  hone_solver *solver = NULL;
  make(&s, n, device);
  ct_note("device %d, n %d", device, (int)n);
  REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, n, &s.report), HONE_OK);
  check_solves(&s, solver);
  const int64_t calls = s.heap.calls;
  for (int turn = 0; turn < 3; turn++) { /* later turns allocate nothing */
    change(&s, 0.5);
    CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, n, &s.report), HONE_OK);
    check_solves(&s, solver);
  }
  CHECK_EQ_INT(s.heap.calls, calls);
  change(&s, 1e-6);
  CHECK_EQ_INT(hone_solver_update(solver, s.there_a, n, &s.report), HONE_OK);
  check_solves(&s, solver);
  CHECK_CONTAINS(s.report.path, "earlier matrix");
  change(&s, 1.0);
  const int64_t blocks = s.heap.blocks;
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, n, &s.report), HONE_OK);
  CHECK_EQ_INT(s.heap.blocks, blocks - 1); /* the host's copy of A is freed */
  check_solves(&s, solver);
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, n, &s.report), HONE_OK);
  check_solves(&s, solver);
  hone_solver_destroy(&solver);
  discard(&s);
  device_end();
}

TEST(device_arrays_solver, takes_matrices_one_after_the_other) {
  keep(HONE_DEVICE_CPU, 60);
  keep(HONE_DEVICE_CPU, 420);
}

TEST(device_arrays_solver, takes_matrices_one_after_the_other_on_the_gpu) {
  NEED_DEVICE();
  keep(HONE_DEVICE_CUDA, 60);
  keep(HONE_DEVICE_CUDA, 420);
}

static bool projected_there(const sys *s) {
  return strstr(s->report.path, "A projected by the device") != NULL;
}

/* A projection that the device takes of A vouches for x, for A as for A^T, in
   every solve with the same factors: vectors move, and lines of A. An update
   has the host read A. */
TEST(device_arrays_solver, moves_vectors_but_not_a) {
  NEED_DEVICE();
  device_begin();
  sys s;
  hone_solver *solver = NULL;
  const int64_t n = 420, whole = n * n * 8;
  make(&s, n, HONE_DEVICE_CUDA);
  REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, n, &s.report), HONE_OK);
  for (int turn = 0; turn < 4; turn++) {
    const int trans = turn % 2 ? HONE_TRANS : HONE_NO_TRANS;
    const int64_t before = s.report.from_device_bytes;
    CHECK_EQ_INT(sup_solver_solve(solver, trans, 1, s.there_b, n, s.there_x, n,
                                  NULL, 0, NULL, &s.report),
                 HONE_OK);
    device_get(s.x, s.there_x, (size_t)n * sizeof(double));
    ct_note("turn %d: %s", turn, s.report.path);
    CHECK_LE(sup_backward_error(n, s.a, n, trans == HONE_TRANS, s.x, s.b),
             SUP_LIMIT);
    CHECK(projected_there(&s));
    CHECK_EQ_INT(s.report.host_passes, 0);
    CHECK_LE(s.report.from_device_bytes - before, 60 * n * 8);
    CHECK_LE(s.report.to_device_bytes, 400 * n * 8);
  }
  CHECK_LE(s.report.from_device_bytes, whole / 2);
  change(&s, 1e-6);
  CHECK_EQ_INT(hone_solver_update(solver, s.there_a, n, &s.report), HONE_OK);
  CHECK_GE(s.report.from_device_bytes, whole);
  check_solves(&s, solver);
  CHECK(!projected_there(&s));
  CHECK_GE(s.report.host_passes, 1);
  hone_solver_destroy(&solver);
  discard(&s);
  device_end();
}

/* The contract forbids it, but an x of an earlier matrix would be silent. Where
   the device reads A itself, residuals are those of the present A, and a
   projection that is taken anew, for the transpose, is too. */
TEST(device_arrays_solver, notices_an_a_that_changed_since_it_was_factored) {
  NEED_DEVICE();
  device_begin();
  for (int trans = 0; trans < 2; trans++) {
    sys s;
    hone_solver *solver = NULL;
    make(&s, 300, HONE_DEVICE_CUDA);
    REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, s.n, NULL), HONE_OK);
    for (int64_t i = 0; i < s.n * s.n; i++)
      s.a[i] *= 1.0 + 0x1p-40;
    change(&s, 0.0);
    CHECK_EQ_INT(sup_solver_solve(solver, trans, 1, s.there_b, s.n, s.there_x,
                                  s.n, NULL, 0, NULL, &s.report),
                 HONE_OK);
    device_get(s.x, s.there_x, (size_t)s.n * sizeof(double));
    CHECK_LE(sup_backward_error(s.n, s.a, s.n, trans != 0, s.x, s.b),
             SUP_LIMIT);
    CHECK_EQ_INT(s.report.host_passes > 0, !projected_there(&s));
    if (trans == 0) {
      CHECK(!projected_there(&s));
      CHECK_GE(s.report.from_device_bytes, s.n * s.n * 8);
    }
    hone_solver_destroy(&solver);
    discard(&s);
  }
  device_end();
}

/* When the host wants to read A, in a solve, it can no longer be fetched: there
   is no x that anything vouches for. */
TEST(device_arrays_solver, returns_no_x_where_a_can_no_longer_be_read) {
  NEED_FAKE();
  NEED_DEVICE();
  device_begin();
  sys s;
  hone_solver *solver = NULL;
  make(&s, 300, HONE_DEVICE_CUDA);
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  for (int turn = 0; turn < 2; turn++) {
    CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, s.n, NULL), HONE_OK);
    for (int64_t i = 0; i < s.n; i++)
      s.x[i] = UNTOUCHED;
    fake.ordinal = 7; /* no call of the driver for device 0 succeeds */
    for (int again = 0; again < 2; again++) {
      CHECK_EQ_INT(sup_solver_solve(solver, 0, 1, s.b, s.n, s.x, s.n, NULL, 0,
                                    NULL, &s.report),
                   HONE_DEVICE_FAILED);
      CHECK_CONTAINS(s.report.reason, "A: it cannot be copied from the device");
      CHECK(sup_untouched(s.x, s.n, UNTOUCHED));
    }
    fake.ordinal = 0;
  }
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, s.n, NULL), HONE_OK);
  check_solves(&s, solver);
  hone_solver_destroy(&solver);
  discard(&s);
  device_end();
}

/* A copy of one entry waits for all that the caller did to A in the default
   stream, for which none of our streams waits. */
TEST(device_arrays_solver, waits_for_a_before_it_is_read) {
  hone_mem mem = {0};
  hone_host_copy copy = {0};
  hone_device_memory place;
  double entry = 0.0;
  fake_begin();
  double *a = fake_alloc(4 * sizeof *a, false);
  *(double *)fake_real(a) = 7.0;
  CHECK(hone_device_memory_of(a, &place));
  CHECK_EQ_INT(hone_host_copy_open(&copy, &mem, 2, &place, a, 2, 8), HONE_OK);
  CHECK_EQ_INT(fake.fetched, sizeof *a);
  memcpy(&entry, copy.copy, sizeof entry);
  CHECK(entry == 7.0);
  hone_host_copy_close(&copy);
  fake.calls = 0;
  CHECK_EQ_INT(hone_host_copy_open(&copy, &mem, 2, &place, a, 2, 8), HONE_OK);
  fake.fail_at = fake.calls - 1; /* the copy, before its context is left */
  fake.failure = 999;
  CHECK_EQ_INT(hone_host_copy_open(&copy, &mem, 2, &place, a, 2, 8),
               HONE_DEVICE_FAILED);
  hone_host_copy_destroy(&copy);
  CHECK_EQ_INT(mem.held, 0);
  fake_free(a);
  CHECK_EQ_INT(fake.live, 0);
  fake_end();
}

/* The limit that the caller sets includes the copy. */
TEST(device_arrays_solver, counts_the_copy_of_a_against_the_limit) {
  int64_t single = 0;
  device_begin();
  sys s;
  make(&s, 100, HONE_DEVICE_CPU);
  CHECK_EQ_INT(hone_memory_needed(100, 1, &s.options, &single, NULL), HONE_OK);
  for (int fits = 0; fits < 2; fits++) {
    const int64_t copies = 100 * 101 * 8 + 3 * 100 * 8;
    s.options.memory_limit_bytes = fits ? single + copies : copies;
    const int st = hone_solve(100, 1, s.there_a, 100, s.there_b, 100, s.there_x,
                              100, &s.options, &s.report);
    device_get(s.x, s.there_x, 800);
    CHECK_EQ_INT(st, fits ? HONE_OK : HONE_NO_MEMORY);
    CHECK_LE(s.report.host_bytes, s.options.memory_limit_bytes);
    CHECK_EQ_INT(sup_untouched(s.x, 100, UNTOUCHED), !fits);
  }
  discard(&s);
  device_end();
}

/* A factorization that fails for lack of memory for the copy leaves no
   factors. */
TEST(device_arrays_solver, holds_no_factors_without_memory_for_the_copy) {
  NEED_FAKE();
  device_begin();
  sys s;
  hone_solver *solver = NULL;
  make(&s, 40, HONE_DEVICE_CPU);
  REQUIRE(hone_solver_create(&solver, 40, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, 40, NULL), HONE_OK);
  s.heap.fail_at = s.heap.calls + 1;
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, 40, &s.report),
               HONE_NO_MEMORY);
  CHECK_CONTAINS(s.report.reason, "A: no host memory for its copy");
  CHECK_EQ_INT(solve_with(&s, solver), HONE_NOT_FACTORED);
  CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, 40, NULL), HONE_OK);
  check_solves(&s, solver);
  hone_solver_destroy(&solver);
  discard(&s);
  device_end();
}

static int all_at_once(sys *s) {
  for (int64_t i = 0; i < s->n; i++)
    s->x[i] = UNTOUCHED;
  device_put(s->there_x, s->x, (size_t)s->n * sizeof(double));
  const int st = hone_solve(s->n, 1, s->there_a, s->n, s->there_b, s->n,
                            s->there_x, s->n, &s->options, &s->report);
  device_get(s->x, s->there_x, (size_t)s->n * sizeof(double));
  return st;
}

/* x is accepted, or there is an error and x is untouched. */
static void check_honest(const sys *s, int st) {
  if (st == HONE_OK)
    CHECK_LE(sup_backward_error(s->n, s->a, s->n, false, s->x, s->b),
             SUP_LIMIT);
  else
    CHECK(sup_untouched(s->x, s->n, UNTOUCHED));
  CHECK(st == HONE_OK || st == HONE_DEVICE_FAILED || st == HONE_NO_MEMORY);
  if (st == HONE_DEVICE_FAILED)
    CHECK(s->report.reason[0] != '\0');
  CHECK_EQ_INT(s->heap.blocks, 0);
  CHECK_EQ_INT(fake.live, 0);
}

/* Makes each call of the driver fail with that failure; 0: each allocation. */
static void fail_each(int device, int64_t n, int failure) {
  sys s;
  int failed = 0, solved = 0;
  device_begin();
  fake.failure = failure;
  make(&s, n, device);
  CHECK_EQ_INT(all_at_once(&s), HONE_OK);
  for (int64_t k = 1; k < 5000; k++) {
    fake.fail_at = failure ? k : 0;
    s.heap = (heap){.fail_at = failure ? 0 : k};
    const int st = all_at_once(&s);
    const bool over = failure ? fake.fail_at > 0 : s.heap.calls < k;
    fake.fail_at = 0;
    ct_note("device %d, n %d, failure %d, call %d", device, (int)n, failure,
            (int)k);
    check_honest(&s, st);
    failed += st != HONE_OK;
    solved += st == HONE_OK;
    if (over)
      break;
    if (n > 400 && k > 8) /* the calls in the middle are all alike */
      k += 1 + k / 4;
  }
  CHECK_GE(failed, 3);
  CHECK_GE(solved, 1);
  discard(&s);
  device_end();
}

TEST(device_arrays_solver, survives_every_failed_call_of_the_driver) {
  NEED_FAKE();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++)
    if (device == HONE_DEVICE_CPU || cuda_usable()) {
      fail_each(device, 30, 999);
      fail_each(device, 30, 2);
      fail_each(device, 270, 999);
      fail_each(device, 420, 999);
    }
}

/* Makes calls of the CUDA runtime fail while A is factored where it lies. */
TEST(device_arrays_solver, survives_failed_calls_of_the_engine) {
  NEED_FAKE();
  NEED_DEVICE();
  sys s;
  device_begin();
  make(&s, 150, HONE_DEVICE_CUDA);
  const int64_t before = failing_calls.made;
  CHECK_EQ_INT(all_at_once(&s), HONE_OK);
  const int64_t calls = failing_calls.made - before;
  for (int64_t k = 1; k <= calls; k += 1 + k / 16) {
    failing_calls.fail_at = k;
    const int st = all_at_once(&s);
    failing_calls.fail_at = 0;
    ct_note("call %d of %d", (int)k, (int)calls);
    CHECK_EQ_INT(st, HONE_OK); /* the host's engine follows */
    check_honest(&s, st);
  }
  discard(&s);
  device_end();
}

TEST(device_arrays_solver, survives_every_failed_allocation) {
  NEED_FAKE();
  fail_each(HONE_DEVICE_CPU, 30, 0);
  fail_each(HONE_DEVICE_CPU, 420, 0);
}

static int stop_at(void *user, const hone_progress *event) {
  return strcmp(event->phase, user) == 0;
}

/* The caller may free A as soon as the call has returned. */
TEST(device_arrays_solver, reads_nothing_of_a_after_a_call_that_was_stopped) {
  static char factor[] = "factor", inspect[] = "inspect", refine[] = "refine";
  char *const at[] = {factor, inspect, refine};
  device_begin();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++)
    for (int k = 0; k < 3; k++) {
      sys s;
      if (device == HONE_DEVICE_CUDA && !cuda_usable())
        continue;
      make(&s, 420, device);
      s.options.structure = HONE_STRUCTURE_GENERAL;
      s.options.progress = stop_at;
      s.options.progress_user = at[k];
      const int st = all_at_once(&s);
      ct_note("device %d, %s", device, at[k]);
      CHECK_EQ_INT(st, at[k] == refine ? HONE_INTERRUPTED : HONE_CANCELLED);
      CHECK_EQ_INT(sup_untouched(s.x, s.n, UNTOUCHED), st < 0);
      discard(&s);
    }
  device_end();
}

/* The threads of a solver that still exists would go on, unless they are
   stopped. */
TEST(device_arrays_solver, reads_nothing_of_a_that_still_exists_after_a_stop) {
  NEED_FAKE();
  static char inspect[] = "inspect";
  device_begin();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
    sys s;
    hone_solver *solver = NULL;
    if (device == HONE_DEVICE_CUDA && !cuda_usable())
      continue;
    make(&s, 420, device);
    s.options.structure = HONE_STRUCTURE_GENERAL;
    s.options.progress = stop_at;
    s.options.progress_user = inspect;
    REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
    fake.slow = 2000;
    CHECK_EQ_INT(hone_solver_factor(solver, s.there_a, s.n, &s.report),
                 HONE_CANCELLED);
    fake.over = true;
    usleep(20000); /* time for a thread that goes on to show */
    hone_solver_destroy(&solver);
    ct_note("device %d", device);
    CHECK_EQ_INT(fake.late, 0);
    fake.slow = 0;
    fake.over = false;
    discard(&s);
  }
  device_end();
}
