/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a batch: any allocation may fail, the caller's limit holds, and
   the caller's functions are called on the calling thread only. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/memory_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COUNT = 20 };

/* How the systems of a batch are solved. */
enum { IN_BLOCKS, ALONE, LARGE, BOTH, MIXED, KINDS };

/* orders: of the systems, for a batch of several orders. */
static bat make_kind(int parts, int kind, int64_t *orders) {
  const int64_t count = kind == ALONE ? 3 : kind == LARGE ? 2 : COUNT;
  const int64_t n = kind == ALONE ? 130 : kind == LARGE ? 410 : 12;
  bat t = bat_make(parts, count, n, 2);
  for (int64_t k = 0; k < count && kind >= BOTH; k += 3)
    bat_b(&t, k)[0] *= 0x1p500; /* for no block */
  for (int64_t k = 0; k < count; k++)
    orders[k] = 1 + k % 4;
  for (int64_t k = 0; k < count && kind == MIXED; k++)
    for (int64_t i = 0; i < orders[k]; i++)
      *bat_entry(&t, k, i, i) += 5.0;
  t.batch.orders = kind == MIXED ? orders : NULL;
  t.batch.determinants = 1;
  t.options.threads = 2;
  return t;
}

/* A system has its x, or had no memory for it. */
static void check_outcome(const bat *t, int st, bool failed) {
  int64_t without = 0, strange = 0;
  for (int64_t k = 0; k < t->batch.count; k++) {
    const hone_batch_result *r = &t->results[k];
    strange += r->status != HONE_OK && r->status != HONE_NO_MEMORY;
    strange += !failed && !isfinite(r->log_abs_det);
    without += r->status != HONE_OK;
  }
  CHECK_EQ_INT(strange, 0);
  CHECK_EQ_INT(st, without > 0 ? HONE_NO_MEMORY : HONE_OK);
  CHECK(failed || st == HONE_OK);
  bat_check(t, st);
}

static void fail_each(bat *t, bool after) {
  bool done = false;
  heap h;
  for (int64_t k = 0; k < 2000 && !done; k += 1 + k / 4) {
    ct_note("parts %d, n %d, orders %d, allocation %d fails, and all after: %d",
            t->parts, (int)t->batch.n, t->batch.orders != NULL, (int)k, after);
    heap_use(&t->options, &h);
    h.fail_at = k;
    h.fail_after = after;
    const int st = bat_call(t);
    check_outcome(t, st, h.failed);
    heap_check(&h);
    CHECK_EQ_INT(h.elsewhere, 0);
    done = !h.failed;
  }
  CHECK(done);
}

static void fail_kinds(void) {
  int64_t orders[COUNT];
  for (int way = 0; way < 4 * KINDS; way++) {
    bat t = make_kind(1 + way % 2, way / 4, orders);
    fail_each(&t, way / 2 % 2 == 1);
    bat_discard(&t);
  }
}

TEST(batch_memory, may_fail_at_any_allocation) { fail_kinds(); }

/* Results of the library's own, as the caller wants none or smaller ones. */
TEST(batch_memory, for_results_may_fail) {
  for (int way = 0; way < 4; way++) {
    bat t = bat_make(1 + way % 2, COUNT, 5, 1);
    heap h;
    ct_note("parts %d, way %d", t.parts, way);
    heap_use(&t.options, &h);
    h.fail_at = 0;
    t.batch.result_size = offsetof(hone_batch_result, rcond);
    CHECK_EQ_INT(bat_call_with(t.parts, &t.batch, &t.options,
                               way < 2 ? NULL : t.results, &t.report),
                 HONE_NO_MEMORY);
    for (size_t k = 0; k < COUNT && way >= 2; k++) {
      int32_t status = 0;
      memcpy(&status, (char *)t.results + k * t.batch.result_size,
             sizeof status);
      CHECK_EQ_INT(status, HONE_NO_MEMORY);
    }
    CHECK(sup_untouched(t.x, bat_doubles(&t), UNTOUCHED));
    heap_check(&h);
    h.fail_at = -1;
    CHECK_EQ_INT(bat_call_with(t.parts, &t.batch, &t.options, NULL, NULL),
                 HONE_OK);
    heap_check(&h);
    bat_discard(&t);
  }
}

/* Never more than the limit, for the whole call; what does not fit has no
   memory, and everything is solved where the limit is what was needed. */
static void limit_kinds(void) {
  int64_t orders[COUNT];
  for (int way = 0; way < 2 * KINDS; way++) {
    bat t = make_kind(1 + way % 2, way / 2, orders);
    heap h;
    heap_use(&t.options, &h);
    ct_note("parts %d, kind %d", t.parts, way / 2);
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    const int64_t needed = h.peak;
    CHECK(needed > 0);
    CHECK_NEAR((double)t.report.host_bytes, (double)needed, 0.0);
    for (int64_t part = 0; part <= 16; part++) {
      const int64_t limit = HONE_MAX(needed * part / 16, (int64_t)1);
      ct_note("parts %d, kind %d, limit %d of %d", t.parts, way / 2, (int)limit,
              (int)needed);
      heap_use(&t.options, &h);
      t.options.memory_limit_bytes = limit;
      const int st = bat_call(&t);
      check_outcome(&t, st, part < 16);
      CHECK_LE((double)h.peak, (double)limit);
      heap_check(&h);
    }
    bat_discard(&t);
  }
}

TEST(batch_memory, is_limited) { limit_kinds(); }

/* Where there is a driver, arrays are asked where they lie; those in the host's
   memory are not copied. */
TEST(batch_memory, is_no_more_beside_a_driver) {
  device_begin();
  fail_kinds();
  limit_kinds();
  for (int parts = 1; parts <= 2; parts++) {
    int64_t orders[COUNT];
    int64_t held[2];
    for (int driver = 0; driver < 2; driver++) {
      bat t = make_kind(parts, ALONE, orders);
      if (!driver)
        device_end();
      CHECK_EQ_INT(bat_call(&t), HONE_OK);
      held[driver] = t.report.host_bytes;
      if (!driver)
        device_begin();
      bat_discard(&t);
    }
    if (!device_is_true())
      CHECK_EQ_INT(held[1], held[0]);
  }
  device_end();
}

TEST(batch_memory, is_asked_for_on_the_calling_thread_only) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, 400, 20, 1);
    heap h;
    for (int64_t k = 0; k < 400; k += 5)
      bat_b(&t, k)[0] *= 0x1p500; /* for no block */
    ct_note("parts %d", parts);
    t.batch.determinants = 1;
    t.options.threads = 4;
    heap_use(&t.options, &h);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_in_blocks(&t), 320);
    CHECK_EQ_INT(h.elsewhere, 0);
    CHECK(h.calls > 0);
    heap_check(&h);
    bat_discard(&t);
  }
}

/* ---- What is kept -------------------------------------------------------- */

/* Factors and solves twice, with a solver that has this limit: no more is ever
   held than the limit, and the most of it is told. What has no memory says so,
   and a matrix that had none has none in any solve. Returns the systems that
   were solved each time. */
static int64_t keep_within(bat *t, int64_t limit, heap *h) {
  hone_batch_solver *solver = NULL;
  hone_options o = t->options;
  hone_batch_result factored[200];
  int64_t solved = 0;
  heap_use(&o, h);
  o.columns = NULL;
  o.memory_limit_bytes = limit;
  if (!CHECK_EQ_INT(hone_batch_solver_create(&solver, &o), HONE_OK))
    return 0;
  for (int turn = 0; turn < 3; turn++) {
    const int st = turn == 0 ? hone_batch_solver_factor(solver, &t->batch,
                                                        t->results, &t->report)
                             : hone_batch_solver_solve(solver, &t->batch, NULL,
                                                       t->results, &t->report);
    CHECK(limit == 0 || h->peak <= limit);
    CHECK_NEAR((double)t->report.host_bytes, (double)h->peak, 0.0);
    CHECK(st == HONE_OK || st == HONE_NO_MEMORY);
    solved = 0;
    for (int64_t k = 0; k < t->batch.count; k++) {
      const int status = t->results[k].status;
      CHECK(status == HONE_OK || status == HONE_NO_MEMORY);
      CHECK(turn == 0 || factored[k].status == HONE_OK ||
            status == factored[k].status);
      solved += status == HONE_OK;
    }
    CHECK(turn == 0 || t->report.accepted == solved * t->batch.nrhs);
    if (turn == 0)
      memcpy(factored, t->results, (size_t)t->batch.count * sizeof *t->results);
  }
  hone_batch_solver_destroy(&solver);
  heap_check(h);
  return solved;
}

/* Matrices whose block finds no room have a solver each, and these count. */
TEST(batch_memory, of_small_matrices_that_are_kept_is_limited) {
  bat t = bat_make(1, 200, 5, 1);
  heap h;
  CHECK_EQ_INT(keep_within(&t, 0, &h), 200);
  const int64_t solved = keep_within(&t, h.peak * 7 / 8, &h);
  CHECK(solved > 0 && solved < 200);
  bat_discard(&t);
}

TEST(batch_memory, of_all_that_is_kept_is_told_and_limited) {
  int64_t orders[COUNT];
  for (int kind = 0; kind < KINDS; kind++) {
    bat t = make_kind(1, kind, orders);
    heap h;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(keep_within(&t, 0, &h), t.batch.count);
    const int64_t needed = h.peak;
    for (int64_t part = 1; part <= 8; part++) {
      ct_note("kind %d, part %d of %d bytes", kind, (int)part, (int)needed);
      const int64_t solved = keep_within(&t, needed * part / 8, &h);
      CHECK(part < 8 || solved == t.batch.count);
    }
    bat_discard(&t);
  }
}

/* Neighbours in blocks are solved however many solvers there is no room for,
   and so are those that found room in factor. */
TEST(batch_memory, of_solvers_makes_room_for_neighbours) {
  bat t = bat_make(1, 60, 5, 1);
  heap h;
  for (int64_t k = 0; k < 60; k += 3)
    bat_a(&t, k)[0] = 1e-310; /* for no block */
  CHECK_EQ_INT(keep_within(&t, 0, &h), 60);
  CHECK_EQ_INT(bat_in_blocks(&t), 40);
  const int64_t needed = h.peak;
  for (int64_t part = 8; part <= 32; part++) {
    hone_batch_solver *solver = NULL;
    hone_options o = t.options;
    ct_note("part %d of %d bytes", (int)part, (int)needed);
    heap_use(&o, &h);
    o.columns = NULL;
    o.memory_limit_bytes = needed * part / 32;
    CHECK_EQ_INT(hone_batch_solver_create(&solver, &o), HONE_OK);
    const int st =
        hone_batch_solver_factor(solver, &t.batch, t.results, &t.report);
    CHECK(st == HONE_OK || (st == HONE_NO_MEMORY && part < 32));
    int64_t solved = 0;
    for (int64_t k = 0; k < 60; k++)
      solved += t.results[k].status == HONE_OK;
    CHECK(solved >= 41);
    for (int turn = 0; turn < 2; turn++) {
      CHECK_EQ_INT(
          hone_batch_solver_solve(solver, &t.batch, NULL, NULL, &t.report), st);
      CHECK_EQ_INT(t.report.accepted, solved);
      CHECK_EQ_INT(bat_in_blocks(&t), 40);
      CHECK_LE((double)h.peak, (double)o.memory_limit_bytes);
    }
    hone_batch_solver_destroy(&solver);
    heap_check(&h);
  }
  bat_discard(&t);
}

/* Threads that make solvers at once: at least what is kept is told. */
TEST(batch_memory, of_several_solvers_is_told) {
  bat t = bat_make(1, 3, 300, 1);
  hone_batch_solver *one = NULL, *all = NULL;
  int64_t held[2];
  t.options.columns = NULL;
  CHECK_EQ_INT(hone_batch_solver_create(&one, &t.options), HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_create(&all, &t.options), HONE_OK);
  for (int i = 0; i < 2; i++) {
    t.batch.count = i == 0 ? 1 : 3;
    CHECK_EQ_INT(
        hone_batch_solver_factor(i == 0 ? one : all, &t.batch, NULL, &t.report),
        HONE_OK);
    held[i] = t.report.host_bytes;
  }
  CHECK_LE(2.9 * (double)held[0], (double)held[1]);
  hone_batch_solver_destroy(&one);
  hone_batch_solver_destroy(&all);
  bat_discard(&t);
}

/* The list is gone when the first solve comes. */
TEST(batch_memory, of_the_list_of_matrices_need_not_stay) {
  static const int64_t orders[] = {3, 130};
  for (int k = 0; k < 4; k++) {
    const bool real = k % 2 == 0;
    bat t = bat_make(real ? 1 : 2, 3, orders[k / 2], 1);
    const double **list = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const double *was[3] = {bat_a(&t, 2), bat_a(&t, 0), bat_a(&t, 1)};
    hone_batch_solver *solver = NULL;
    hone_z_batch_solver *z_solver = NULL;
    hone_z_batch z;
    ct_note("order %d, %s", (int)orders[k / 2], real ? "real" : "complex");
    REQUIRE((void *)list != MAP_FAILED);
    memcpy(list, was, sizeof was);
    t.options.columns = NULL;
    t.batch.a_list = list;
    memcpy(&z, &t.batch, sizeof z);
    CHECK_EQ_INT(real ? hone_batch_solver_create(&solver, &t.options)
                      : hone_z_batch_solver_create(&z_solver, &t.options),
                 HONE_OK);
    CHECK_EQ_INT(real ? hone_batch_solver_factor(solver, &t.batch, NULL, NULL)
                      : hone_z_batch_solver_factor(z_solver, &z, NULL, NULL),
                 HONE_OK);
    CHECK_EQ_INT(munmap((void *)list, 4096), 0);
    CHECK_EQ_INT(
        real ? hone_batch_solver_solve(solver, &t.batch, NULL, NULL, NULL)
             : hone_z_batch_solver_solve(z_solver, &z, NULL, NULL, NULL),
        HONE_OK);
    t.batch.a_list = was;
    for (int64_t i = 0; i < 3; i++)
      CHECK_LE(bat_omega(&t, i, 0, bat_x(&t, i)), SUP_LIMIT);
    hone_batch_solver_destroy(&solver);
    hone_z_batch_solver_destroy(&z_solver);
    bat_discard(&t);
  }
}
