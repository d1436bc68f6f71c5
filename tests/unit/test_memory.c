/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: each allocation fails once, alone or with all later ones; the limit,
   the report's bytes and hone_memory_needed are compared with what the hooks
   counted; nothing is allocated after the first solve. */
#include "tests/unit/memory_problem.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes allocation 0, 1, 2, ... fail until the call makes fewer. Of the larger
   orders an emulated device, which takes long for each, has every other one:
   the even ones alone, and the odd ones with all after them. */
static void fail_each(problem p, int (*call)(problem *), bool fail_after) {
  const bool few = sup_emulated() && p.n > 500;
  heap h;
  mp_make(&p, &h);
  for (int64_t k = few && fail_after; k < 200; k += 1 + few) {
    ct_note("%s, nrhs %d, parts %d: allocation %d fails%s", p.name, (int)p.nrhs,
            p.parts, (int)k, fail_after ? ", and all after it" : "");
    for (int64_t i = 0; i < mp_doubles(&p); i++)
      p.x[i] = MP_UNTOUCHED;
    h = (heap){.fail_at = k, .fail_after = fail_after};
    int st = call(&p);
    mp_check(&p, st);
    heap_check(&h);
    if (!h.failed) {
      CHECK_EQ_INT(st, HONE_OK);
      CHECK_LE(1, k); /* the hooks were called */
      break;
    }
    CHECK_LT(k, 198);
  }
  mp_discard(&p);
}

#define FALLBACK(columns, condition, corrections)                              \
  {                                                                            \
    .name = "fallback", .n = 150, .nrhs = columns,                             \
    .start = HONE_FACTOR_SINGLE, .cond = condition, .cap = corrections         \
  }

static const problem kinds[] = {
    {.name = "default", .n = 8, .nrhs = 1},
    {.name = "double", .n = 8, .nrhs = 5, .start = HONE_FACTOR_DOUBLE},
    {.name = "double", .n = 8, .nrhs = 70, .start = HONE_FACTOR_DOUBLE},
    {.name = "single", .n = 200, .nrhs = 1, .start = HONE_FACTOR_SINGLE},
    {.name = "single", .n = 200, .nrhs = 5, .start = HONE_FACTOR_SINGLE},
    {.name = "single", .n = 150, .nrhs = 70, .start = HONE_FACTOR_SINGLE},
    {.name = "pool", .n = 420, .nrhs = 2, .start = HONE_FACTOR_SINGLE},
    {.name = "triangular", .n = 90, .nrhs = 5, .shape = 'u'},
    {.name = "scaled", .n = 90, .nrhs = 1, .shape = 'u', .graded = true},
    {.name = "banded", .n = 90, .nrhs = 1, .shape = 'b'},
    {.name = "banded", .n = 420, .nrhs = 70, .shape = 'b', .graded = true},
    {.name = "definite", .n = 520, .nrhs = 1, .shape = 's'},
    {.name = "definite", .n = 520, .nrhs = 1, .shape = 's', .cap = 1},
    FALLBACK(1, 1e11, 0),
    FALLBACK(5, 1e11, 0),
    FALLBACK(1, 1e6, 1), /* the solve notices: too few corrections */
    FALLBACK(5, 1e6, 1),
    {.name = "GMRES", /* the certificate takes GMRES */
     .n = 150,
     .nrhs = 2,
     .start = HONE_FACTOR_SINGLE,
     .cond = 1e10,
     .mode = SUP_ONE_SMALL},
    {.name = "GMRES", /* the solve takes GMRES, then double LU */
     .n = 150,
     .nrhs = 2,
     .start = HONE_FACTOR_SINGLE,
     .cond = 1e9,
     .mode = SUP_ONE_LARGE},
};
enum { KINDS = sizeof kinds / sizeof *kinds, ALL = 2 * KINDS };

/* Every kind with real numbers, then with complex ones. */
static problem kind(int i) {
  problem p = kinds[i % KINDS];
  p.parts = 1 + i / KINDS;
  return p;
}

/* Every column falls back to double, in two blocks. */
static const problem climbing = FALLBACK(70, 1e6, 1);

TEST(memory, failure_leaves_nothing_behind_wherever_hone_solve_allocates) {
  for (int i = 0; i < ALL; i++) {
    fail_each(kind(i), mp_solve, false);
    fail_each(kind(i), mp_solve, true);
  }
}

TEST(memory, failure_leaves_nothing_behind_wherever_a_solver_allocates) {
  for (int i = 0; i < ALL; i++) {
    fail_each(kind(i), mp_three_calls, false);
    fail_each(kind(i), mp_three_calls, true);
  }
}

TEST(memory, failure_leaves_nothing_behind_when_a_second_block_falls_back) {
  fail_each(climbing, mp_solve, false);
  fail_each(climbing, mp_solve, true);
  fail_each(climbing, mp_three_calls, false);
  fail_each(climbing, mp_three_calls, true);
}

TEST(memory, failure_of_the_single_engine_is_followed_by_double) {
  problem p = kinds[3];
  heap h;
  int accepted = 0;
  mp_make(&p, &h);
  for (int64_t k = 0; k < 20; k++) {
    h = (heap){.fail_at = k};
    int st = mp_solve(&p);
    if (h.failed && st == HONE_OK) {
      accepted++;
      CHECK_CONTAINS(p.report.reason, "out of memory");
    }
    heap_check(&h);
  }
  CHECK_LE(1, accepted);
  mp_discard(&p);
}

/* A solver that ran out of memory in one call serves the next. Of the larger
   orders an emulated device, which takes seconds for each, has every fourth. */
TEST(memory, failure_leaves_a_solver_that_can_be_used_again) {
  for (int i = 0; i < ALL; i++) {
    problem p = kind(i);
    const int64_t step = sup_emulated() && p.n > 400 ? 4 : 1;
    heap h;
    mp_make(&p, &h);
    for (int64_t k = i % step; k < 30; k += step) {
      either_solver solver;
      ct_note("%s, nrhs %d, k %d", p.name, (int)p.nrhs, (int)k);
      h = (heap){.fail_at = -1};
      REQUIRE(either_create(&solver, p.parts, p.n, &p.options) == HONE_OK);
      h.fail_at = h.calls + k;
      int st = either_factor(&solver, p.a, p.n, &p.report);
      if (st == HONE_OK)
        st = mp_solve_with(&p, &solver);
      bool failed = h.failed;
      CHECK(failed || st == HONE_OK);
      h.fail_at = -1;
      CHECK_EQ_INT(either_factor(&solver, p.a, p.n, &p.report), HONE_OK);
      st = mp_solve_with(&p, &solver);
      CHECK_EQ_INT(st, HONE_OK);
      mp_check(&p, st);
      either_destroy(&solver);
      heap_check(&h);
      if (!failed)
        break;
    }
    mp_discard(&p);
  }
}

TEST(memory, is_not_allocated_by_later_factorizations_and_solves) {
  for (int i = 0; i < ALL; i++) {
    problem p = kind(i);
    heap h;
    either_solver solver;
    ct_note("%s, n %d, nrhs %d, parts %d", p.name, (int)p.n, (int)p.nrhs,
            p.parts);
    mp_make(&p, &h);
    REQUIRE(either_create(&solver, p.parts, p.n, &p.options) == HONE_OK);
    CHECK_EQ_INT(either_factor(&solver, p.a, p.n, NULL), HONE_OK);
    CHECK_EQ_INT(mp_solve_with(&p, &solver), HONE_OK);
    int64_t calls = h.calls;
    for (int again = 0; again < 3; again++) {
      CHECK_EQ_INT(either_factor(&solver, p.a, p.n, NULL), HONE_OK);
      CHECK_EQ_INT(mp_solve_with(&p, &solver), HONE_OK);
      CHECK_EQ_INT(either_update(&solver, p.a, p.n, NULL), HONE_OK);
      CHECK_EQ_INT(mp_solve_with(&p, &solver), HONE_OK);
    }
    CHECK_EQ_INT(h.calls, calls);
    either_destroy(&solver);
    heap_check(&h);
    mp_discard(&p);
  }
}

TEST(memory, does_not_grow_over_many_solves) {
  problem p = kinds[3];
  heap h;
  either_solver solver;
  mp_make(&p, &h);
  REQUIRE(either_create(&solver, p.parts, p.n, &p.options) == HONE_OK);
  CHECK_EQ_INT(either_factor(&solver, p.a, p.n, NULL), HONE_OK);
  CHECK_EQ_INT(mp_solve_with(&p, &solver), HONE_OK);
  const int64_t bytes = h.bytes, peak = p.report.host_bytes;
  for (int i = 0; i < 200; i++) {
    CHECK_EQ_INT(mp_solve_with(&p, &solver), HONE_OK);
    if (!CHECK_EQ_INT(h.bytes, bytes))
      break;
  }
  CHECK_EQ_INT(p.report.host_bytes, peak);
  either_destroy(&solver);
  heap_check(&h);
  for (int i = 0; i < 200; i++) {
    CHECK_EQ_INT(mp_solve(&p), HONE_OK);
    if (!CHECK_EQ_INT(h.blocks, 0))
      break;
  }
  mp_discard(&p);
}

/* Counted bytes ------------------------------------------------------------ */

TEST(memory, in_the_report_is_the_peak_that_the_hooks_counted) {
  for (int i = 0; i < ALL; i++) {
    problem p = kind(i);
    heap h;
    ct_note("%s, n %d, nrhs %d, parts %d", p.name, (int)p.n, (int)p.nrhs,
            p.parts);
    mp_make(&p, &h);
    CHECK_EQ_INT(mp_solve(&p), HONE_OK);
    CHECK_EQ_INT(p.report.host_bytes, h.peak);
    mp_discard(&p);
  }
}

TEST(memory, is_no_more_than_hone_memory_needed_says) {
  for (int i = 0; i < ALL; i++) {
    problem p = kind(i);
    heap h;
    int64_t single = -1, twice = -1;
    ct_note("%s, n %d, nrhs %d, parts %d", p.name, (int)p.n, (int)p.nrhs,
            p.parts);
    mp_make(&p, &h);
    CHECK_EQ_INT(
        either_memory_needed(p.parts, p.n, p.nrhs, &p.options, &single, &twice),
        HONE_OK);
    CHECK_EQ_INT(mp_solve(&p), HONE_OK);
    CHECK_LE(p.report.host_bytes, p.report.precision == 32 ? single : twice);
    mp_discard(&p);
  }
}

TEST(memory, is_four_bytes_an_entry_in_single_precision) {
  problem p = {.n = 1500, .nrhs = 1, .start = HONE_FACTOR_SINGLE};
  heap h;
  const double n = 1500.0;
  int64_t single = -1, twice = -1;
  mp_make(&p, &h);
  /* A GPU's pinned buffers are not bounded by n^2. */
  p.options.device = HONE_DEVICE_CPU;
  CHECK_EQ_INT(mp_solve(&p), HONE_OK);
  CHECK_EQ_INT(p.report.precision, 32);
  /* plus vectors, and the padding of one block to a huge page */
  CHECK_LE(p.report.host_bytes, 4.2 * n * n + 750.0 * n + 0x1p21);
  CHECK_EQ_INT(hone_memory_needed(1500, 1, &p.options, &single, &twice),
               HONE_OK);
  CHECK_LE(p.report.host_bytes, single);
  CHECK_LE(single, 5.0 * n * n + 900.0 * n + 0x1p23);
  CHECK_LE(8.0 * n * n, twice);
  CHECK_LE(twice, 8.2 * n * n + 900.0 * n + 0x1p23);
  mp_discard(&p);
}

/* hone_solve keeps a block of the same size, and no other call does. */
TEST(memory, of_factors_is_kept_until_it_is_released) {
  problem p = {.n = 1500, .nrhs = 1, .start = HONE_FACTOR_SINGLE};
  heap h;
  (void)hone_release_kept();
  CHECK_EQ_INT(hone_mem_kept(), 0);
  mp_make(&p, &h);
  p.options.device = HONE_DEVICE_CPU;
  CHECK_EQ_INT(mp_solve(&p), HONE_OK); /* with functions of the caller's own */
  CHECK_EQ_INT(hone_mem_kept(), 0);
  p.options.alloc = NULL;
  p.options.free = NULL;
  CHECK_EQ_INT(mp_solve(&p), HONE_OK);
  const int64_t kept = hone_mem_kept(), bytes = p.report.host_bytes;
  CHECK(kept >= 4 * 1500 * 1500 && kept <= bytes);
  CHECK_EQ_INT(mp_solve(&p), HONE_OK);
  CHECK_EQ_INT(hone_mem_kept(), kept);
  CHECK_EQ_INT(p.report.host_bytes, bytes);
  p.options.memory_limit_bytes = bytes - 1; /* it counts as any other memory */
  CHECK_EQ_INT(mp_solve(&p), HONE_NO_MEMORY);
  p.options.memory_limit_bytes = 0;
  CHECK_EQ_INT(mp_solve(&p), HONE_OK);
  (void)hone_release_kept();
  CHECK_EQ_INT(hone_mem_kept(), 0);
  mp_discard(&p);
}

/* A block that an account has left is not held beside a larger one. */
TEST(memory, that_is_kept_makes_room_for_more) {
  hone_mem mem = {.keeps = true}, other = {.keeps = true};
  (void)hone_release_kept();
  hone_mem_put(&mem, hone_mem_get(&mem, (size_t)8 << 20));
  CHECK_LE((int64_t)8 << 20, hone_mem_kept());
  hone_mem_put(&mem, hone_mem_get(&mem, 1000));
  void *others = hone_mem_get(&other, (size_t)16 << 20);
  CHECK_LE((int64_t)8 << 20, hone_mem_kept());
  void *large = hone_mem_get(&mem, (size_t)16 << 20);
  CHECK_EQ_INT(hone_mem_kept(), 0);
  hone_mem_put(&mem, large);
  hone_mem_put(&other, others);
  (void)hone_release_kept();
}

/* The piece of small systems is not above the limit, either. */
TEST(memory, of_the_arena_is_within_the_limit) {
  hone_mem mem = {.limit = 10000};
  hone_mem_open_arena(&mem, 20000);
  CHECK(mem.arena == NULL);
  hone_mem_close_arena(&mem);
  hone_mem_open_arena(&mem, 5000);
  CHECK(mem.arena != NULL);
  hone_mem_close_arena(&mem);
}

/* Kernels try this one first, and hold more than what solves it. */
TEST(memory, of_an_attempt_is_told) {
  enum { N = 96 };
  heap h;
  hone_options o = HONE_OPTIONS_INIT;
  hone_report r = HONE_REPORT_INIT;
  double *a = sup_filled(N * N, 0.0), b[N], x[N];
  for (int64_t i = 0; i < N; i++) {
    b[i] = 1.0;
    for (int64_t j = 0; j < N; j++)
      a[i + j * N] = 1.0 / (double)(i + j + 1);
  }
  o.device = HONE_DEVICE_CPU;
  heap_use(&o, &h);
  (void)hone_solve(N, 1, a, N, b, N, x, N, &o, &r);
  CHECK_EQ_INT(r.host_bytes, h.peak);
  sup_free(a);
}

TEST(memory, needed_grows_with_the_order_and_does_not_overflow) {
  int64_t last_single = 0, last_double = 0;
  hone_options o = HONE_OPTIONS_INIT;
  o.factor_precision = HONE_FACTOR_SINGLE;
  enum { LARGEST = 1 << 29 }; /* the largest order of the library */
  for (int64_t n = 1; n <= LARGEST; n *= 2) {
    int64_t single = -1, twice = -1;
    ct_note("n %lld", (long long)n);
    CHECK_EQ_INT(hone_memory_needed(n, 1, &o, &single, &twice), HONE_OK);
    CHECK_LE(last_single, single);
    CHECK_LE(last_double, twice);
    CHECK_LE(4.0 * (double)n * (double)n, single);
    last_single = single;
    last_double = twice;
  }
  CHECK_EQ_INT(hone_memory_needed(LARGEST + 1, 1, &o, NULL, NULL),
               HONE_BAD_SIZE);
}

TEST(memory, stays_within_the_limit) {
  static const int list[] = {1, 4, 8};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    problem p = kinds[list[i]];
    heap h;
    mp_make(&p, &h);
    CHECK_EQ_INT(mp_solve(&p), HONE_OK);
    const int64_t peak = h.peak;
    for (int part = 0; part <= 16; part++) {
      ct_note("%s, %d / 16 of %lld bytes", p.name, part, (long long)peak);
      for (int64_t k = 0; k < mp_doubles(&p); k++)
        p.x[k] = MP_UNTOUCHED;
      h = (heap){.fail_at = -1};
      p.options.memory_limit_bytes = HONE_MAX((int64_t)1, peak * part / 16);
      int st = mp_solve(&p);
      CHECK_LE(h.peak, p.options.memory_limit_bytes);
      CHECK_LE(p.report.host_bytes, p.options.memory_limit_bytes);
      mp_check(&p, st);
      if (part == 16)
        CHECK_EQ_INT(st, HONE_OK);
      if (part < 4)
        CHECK_EQ_INT(st, HONE_NO_MEMORY);
      heap_check(&h);
    }
    mp_discard(&p);
  }
}

TEST(memory, a_limit_of_what_is_needed_is_enough) {
  for (int i = 0; i < ALL; i++) {
    problem p = kind(i);
    heap h;
    int64_t single = 0, twice = 0;
    ct_note("%s, n %d, nrhs %d, parts %d", p.name, (int)p.n, (int)p.nrhs,
            p.parts);
    mp_make(&p, &h);
    either_memory_needed(p.parts, p.n, p.nrhs, &p.options, &single, &twice);
    p.options.memory_limit_bytes = p.cond > 0.0 ? twice : single;
    if (p.start == HONE_FACTOR_AUTO)
      p.options.memory_limit_bytes = twice;
    CHECK_EQ_INT(mp_solve(&p), HONE_OK);
    mp_discard(&p);
  }
}
