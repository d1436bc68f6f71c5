/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: each allocation fails once, alone or with all later ones; the limit,
   the report's bytes and hone_memory_needed are compared with what the hooks
   counted; nothing is allocated after the first solve. The hooks fill memory
   with NaN, so that the use of uninitialized memory shows in the results. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The counts of the memory hooks, which get this struct as their context. */
typedef struct heap {
  int64_t calls;     /* calls of alloc */
  int64_t fail_at;   /* the call that fails; -1: none */
  bool fail_after;   /* all later calls fail too */
  bool failed;       /* whether a call has failed */
  int64_t blocks;    /* blocks not yet freed */
  int64_t bytes;     /* bytes not yet freed */
  int64_t peak;      /* the largest value of bytes */
  int64_t strangers; /* frees of memory that is not of this heap */
} heap;

typedef struct block {
  _Alignas(16) heap *owner;
  size_t bytes;
} block;

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  int64_t call = h->calls++;
  if (h->fail_at >= 0 &&
      (h->fail_after ? call >= h->fail_at : call == h->fail_at)) {
    h->failed = true;
    return NULL;
  }
  block *b = malloc(sizeof *b + bytes);
  if (b == NULL)
    return NULL;
  *b = (block){h, bytes};
  memset(b + 1, 0xff, bytes);
  h->blocks++;
  h->bytes += (int64_t)bytes;
  h->peak = HONE_MAX(h->peak, h->bytes);
  return b + 1;
}

static void give(void *memory, void *ctx) {
  heap *h = ctx;
  block *b = (block *)memory - 1;
  if (b->owner != h)
    h->strangers++;
  h->blocks--;
  h->bytes -= (int64_t)b->bytes;
  memset(memory, 0xff, b->bytes);
  b->owner = NULL;
  free(b);
}

static void check_all_given_back(const heap *h) {
  CHECK_EQ_INT(h->blocks, 0);
  CHECK_EQ_INT(h->bytes, 0);
  CHECK_EQ_INT(h->strangers, 0);
}

/* A system and how to solve it. */
typedef struct problem {
  const char *name;
  int64_t n, nrhs;
  int start;
  double cond; /* condition of a geometric spectrum; 0: diagonally dominant */
  int cap;     /* corrections for each engine; 0: the default */
  int shape;   /* 'u': upper triangle, 'b': band, 's': symmetric; 0: full */
  bool graded; /* so that scaling is needed */
  int mode;    /* mode of another spectrum; 0: geometric */
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} problem;

static const double UNTOUCHED = 77.25;

static void take_shape(problem *p) {
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->n; i++) {
      double *v = &p->a[i + j * p->n];
      if ((p->shape == 'u' && i > j) || (p->shape == 'b' && i > j + 3) ||
          (p->shape == 'b' && j > i + 2))
        *v = 0.0;
      else if (p->shape == 's' && i > j)
        *v = p->a[j + i * p->n];
      if (p->graded)
        *v *= ldexp(1.0, (int)(i % 40));
    }
}

static void make(problem *p, heap *h) {
  sup_rng rng = {(uint64_t)p->n};
  p->a = sup_filled(p->n * p->n, 0.0);
  p->b = sup_filled(p->n * p->nrhs, 0.0);
  p->x = sup_filled(p->n * p->nrhs, UNTOUCHED);
  if (p->cond > 0.0)
    sup_matrix_cond(&rng, p->n, p->mode ? p->mode : SUP_GEOMETRIC, p->cond,
                    p->a, p->n);
  else
    sup_random(&rng, p->n, p->n, p->a, p->n);
  for (int64_t i = 0; !(p->cond > 0.0) && i < p->n; i++)
    p->a[i + i * p->n] += sqrt((double)p->n);
  take_shape(p);
  sup_random(&rng, p->n, p->nrhs, p->b, p->n);
  *h = (heap){.fail_at = -1};
  p->options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p->report, sizeof p->report);
  p->options.factor_precision = p->start;
  p->options.threads = 2;
  p->options.max_iterations = p->cap;
  p->options.alloc = take;
  p->options.free = give;
  p->options.alloc_ctx = h;
}

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

static int one_call(problem *p) {
  return hone_solve(p->n, p->nrhs, p->a, p->n, p->b, p->n, p->x, p->n,
                    &p->options, &p->report);
}

static int solver_solve(problem *p, hone_solver *solver) {
  return sup_solver_solve(solver, HONE_NO_TRANS, p->nrhs, p->b, p->n, p->x,
                          p->n, NULL, 0, NULL, &p->report);
}

static int three_calls(problem *p) {
  hone_solver *solver;
  int st = hone_solver_create(&solver, p->n, &p->options);
  CHECK((st == HONE_OK) == (solver != NULL));
  if (st == HONE_OK)
    st = hone_solver_factor(solver, p->a, p->n, &p->report);
  if (st == HONE_OK)
    st = solver_solve(p, solver);
  hone_solver_destroy(&solver);
  CHECK(solver == NULL);
  return st;
}

/* If the status is 0, x must have a small backward error. The first and the
   last column are checked, and those at the ends of a block. */
static void check_solution(const problem *p, int status) {
  const int64_t n = p->n;
  if (status < 0) {
    CHECK_EQ_INT(status, HONE_NO_MEMORY);
    CHECK(sup_untouched(p->x, n * p->nrhs, UNTOUCHED));
    return;
  }
  for (int64_t i = 0; i < n * p->nrhs && status == HONE_OK; i++)
    if (!isfinite(p->x[i])) {
      CHECK(isfinite(p->x[i]));
      return;
    }
  for (int64_t c = 0; c < p->nrhs && status == HONE_OK; c++)
    if (c == 0 || c == p->nrhs - 1 || c == 63 || c == 64)
      CHECK_LE(
          sup_backward_error(n, p->a, n, false, p->x + c * n, p->b + c * n),
          SUP_LIMIT);
}

/* Makes allocation 0, 1, 2, ... fail until the call makes fewer. */
static void fail_each(const problem *kind, int (*call)(problem *),
                      bool fail_after) {
  problem p = *kind;
  heap h;
  make(&p, &h);
  for (int64_t k = 0; k < 200; k++) {
    ct_note("%s, nrhs %d: allocation %d fails%s", p.name, (int)p.nrhs, (int)k,
            fail_after ? ", and all after it" : "");
    for (int64_t i = 0; i < p.n * p.nrhs; i++)
      p.x[i] = UNTOUCHED;
    h = (heap){.fail_at = k, .fail_after = fail_after};
    int st = call(&p);
    check_solution(&p, st);
    check_all_given_back(&h);
    if (!h.failed) {
      CHECK_EQ_INT(st, HONE_OK);
      CHECK_LE(4, k); /* the hooks were called */
      break;
    }
    CHECK_LT(k, 199);
  }
  discard(&p);
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
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every column falls back to double, in two blocks. */
static const problem climbing = FALLBACK(70, 1e6, 1);

TEST(memory, failure_leaves_nothing_behind_wherever_hone_solve_allocates) {
  for (int i = 0; i < KINDS; i++) {
    fail_each(&kinds[i], one_call, false);
    fail_each(&kinds[i], one_call, true);
  }
}

TEST(memory, failure_leaves_nothing_behind_wherever_a_solver_allocates) {
  for (int i = 0; i < KINDS; i++) {
    fail_each(&kinds[i], three_calls, false);
    fail_each(&kinds[i], three_calls, true);
  }
}

TEST(memory, failure_leaves_nothing_behind_when_a_second_block_falls_back) {
  fail_each(&climbing, one_call, false);
  fail_each(&climbing, one_call, true);
  fail_each(&climbing, three_calls, false);
  fail_each(&climbing, three_calls, true);
}

TEST(memory, failure_of_the_single_engine_is_followed_by_double) {
  problem p = kinds[3];
  heap h;
  int accepted = 0;
  make(&p, &h);
  for (int64_t k = 0; k < 20; k++) {
    h = (heap){.fail_at = k};
    int st = one_call(&p);
    if (h.failed && st == HONE_OK) {
      accepted++;
      CHECK_CONTAINS(p.report.reason, "out of memory");
    }
    check_all_given_back(&h);
  }
  CHECK_LE(1, accepted);
  discard(&p);
}

/* A solver that ran out of memory in one call serves the next. */
TEST(memory, failure_leaves_a_solver_that_can_be_used_again) {
  for (int i = 0; i < KINDS; i++) {
    problem p = kinds[i];
    heap h;
    make(&p, &h);
    for (int64_t k = 0; k < 30; k++) {
      hone_solver *solver;
      ct_note("%s, nrhs %d, k %d", p.name, (int)p.nrhs, (int)k);
      h = (heap){.fail_at = -1};
      REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
      h.fail_at = h.calls + k;
      int st = hone_solver_factor(solver, p.a, p.n, &p.report);
      if (st == HONE_OK)
        st = solver_solve(&p, solver);
      bool failed = h.failed;
      CHECK(failed || st == HONE_OK);
      h.fail_at = -1;
      CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &p.report), HONE_OK);
      st = solver_solve(&p, solver);
      CHECK_EQ_INT(st, HONE_OK);
      check_solution(&p, st);
      hone_solver_destroy(&solver);
      check_all_given_back(&h);
      if (!failed)
        break;
    }
    discard(&p);
  }
}

TEST(memory, is_not_allocated_by_later_factorizations_and_solves) {
  for (int i = 0; i < KINDS; i++) {
    problem p = kinds[i];
    heap h;
    hone_solver *solver;
    ct_note("%s, n %d, nrhs %d", p.name, (int)p.n, (int)p.nrhs);
    make(&p, &h);
    REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, NULL), HONE_OK);
    CHECK_EQ_INT(solver_solve(&p, solver), HONE_OK);
    int64_t calls = h.calls;
    for (int again = 0; again < 3; again++) {
      CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, NULL), HONE_OK);
      CHECK_EQ_INT(solver_solve(&p, solver), HONE_OK);
      CHECK_EQ_INT(hone_solver_update(solver, p.a, p.n, NULL), HONE_OK);
      CHECK_EQ_INT(solver_solve(&p, solver), HONE_OK);
    }
    CHECK_EQ_INT(h.calls, calls);
    hone_solver_destroy(&solver);
    check_all_given_back(&h);
    discard(&p);
  }
}

TEST(memory, does_not_grow_over_many_solves) {
  problem p = kinds[3];
  heap h;
  hone_solver *solver;
  make(&p, &h);
  REQUIRE(hone_solver_create(&solver, p.n, &p.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, NULL), HONE_OK);
  CHECK_EQ_INT(solver_solve(&p, solver), HONE_OK);
  const int64_t bytes = h.bytes, peak = p.report.host_bytes;
  for (int i = 0; i < 200; i++) {
    CHECK_EQ_INT(solver_solve(&p, solver), HONE_OK);
    if (!CHECK_EQ_INT(h.bytes, bytes))
      break;
  }
  CHECK_EQ_INT(p.report.host_bytes, peak);
  hone_solver_destroy(&solver);
  check_all_given_back(&h);
  for (int i = 0; i < 200; i++) {
    CHECK_EQ_INT(one_call(&p), HONE_OK);
    if (!CHECK_EQ_INT(h.blocks, 0))
      break;
  }
  discard(&p);
}

/* Counted bytes ------------------------------------------------------------ */

TEST(memory, in_the_report_is_the_peak_that_the_hooks_counted) {
  for (int i = 0; i < KINDS; i++) {
    problem p = kinds[i];
    heap h;
    ct_note("%s, n %d, nrhs %d", p.name, (int)p.n, (int)p.nrhs);
    make(&p, &h);
    CHECK_EQ_INT(one_call(&p), HONE_OK);
    CHECK_EQ_INT(p.report.host_bytes, h.peak);
    discard(&p);
  }
}

TEST(memory, is_no_more_than_hone_memory_needed_says) {
  for (int i = 0; i < KINDS; i++) {
    problem p = kinds[i];
    heap h;
    int64_t single = -1, twice = -1;
    ct_note("%s, n %d, nrhs %d", p.name, (int)p.n, (int)p.nrhs);
    make(&p, &h);
    CHECK_EQ_INT(hone_memory_needed(p.n, p.nrhs, &p.options, &single, &twice),
                 HONE_OK);
    CHECK_EQ_INT(one_call(&p), HONE_OK);
    CHECK_LE(p.report.host_bytes, p.report.precision == 32 ? single : twice);
    discard(&p);
  }
}

TEST(memory, is_four_bytes_an_entry_in_single_precision) {
  problem p = {.n = 1500, .nrhs = 1, .start = HONE_FACTOR_SINGLE};
  heap h;
  const double n = 1500.0;
  int64_t single = -1, twice = -1;
  make(&p, &h);
  /* A GPU's pinned buffers are not bounded by n^2. */
  p.options.device = HONE_DEVICE_CPU;
  CHECK_EQ_INT(one_call(&p), HONE_OK);
  CHECK_EQ_INT(p.report.precision, 32);
  /* plus vectors, and the padding of one block to a huge page */
  CHECK_LE(p.report.host_bytes, 4.2 * n * n + 700.0 * n + 0x1p21);
  CHECK_EQ_INT(hone_memory_needed(1500, 1, &p.options, &single, &twice),
               HONE_OK);
  CHECK_LE(p.report.host_bytes, single);
  CHECK_LE(single, 5.0 * n * n + 900.0 * n + 0x1p23);
  CHECK_LE(8.0 * n * n, twice);
  CHECK_LE(twice, 8.2 * n * n + 900.0 * n + 0x1p23);
  discard(&p);
}

/* hone_solve keeps a block of the same size, and no other call does. */
TEST(memory, of_factors_is_kept_until_it_is_released) {
  problem p = {.n = 1500, .nrhs = 1, .start = HONE_FACTOR_SINGLE};
  heap h;
  (void)hone_release_kept();
  CHECK_EQ_INT(hone_mem_kept(), 0);
  make(&p, &h);
  p.options.device = HONE_DEVICE_CPU;
  CHECK_EQ_INT(one_call(&p), HONE_OK); /* with functions of the caller's own */
  CHECK_EQ_INT(hone_mem_kept(), 0);
  p.options.alloc = NULL;
  p.options.free = NULL;
  CHECK_EQ_INT(one_call(&p), HONE_OK);
  const int64_t kept = hone_mem_kept(), bytes = p.report.host_bytes;
  CHECK(kept >= 4 * 1500 * 1500 && kept <= bytes);
  CHECK_EQ_INT(one_call(&p), HONE_OK);
  CHECK_EQ_INT(hone_mem_kept(), kept);
  CHECK_EQ_INT(p.report.host_bytes, bytes);
  p.options.memory_limit_bytes = bytes - 1; /* it counts as any other memory */
  CHECK_EQ_INT(one_call(&p), HONE_NO_MEMORY);
  p.options.memory_limit_bytes = 0;
  CHECK_EQ_INT(one_call(&p), HONE_OK);
  (void)hone_release_kept();
  CHECK_EQ_INT(hone_mem_kept(), 0);
  discard(&p);
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
    make(&p, &h);
    CHECK_EQ_INT(one_call(&p), HONE_OK);
    const int64_t peak = h.peak;
    for (int part = 0; part <= 16; part++) {
      ct_note("%s, %d / 16 of %lld bytes", p.name, part, (long long)peak);
      for (int64_t k = 0; k < p.n * p.nrhs; k++)
        p.x[k] = UNTOUCHED;
      h = (heap){.fail_at = -1};
      p.options.memory_limit_bytes = HONE_MAX((int64_t)1, peak * part / 16);
      int st = one_call(&p);
      CHECK_LE(h.peak, p.options.memory_limit_bytes);
      CHECK_LE(p.report.host_bytes, p.options.memory_limit_bytes);
      check_solution(&p, st);
      if (part == 16)
        CHECK_EQ_INT(st, HONE_OK);
      if (part < 4)
        CHECK_EQ_INT(st, HONE_NO_MEMORY);
      check_all_given_back(&h);
    }
    discard(&p);
  }
}

TEST(memory, a_limit_of_what_is_needed_is_enough) {
  for (int i = 0; i < KINDS; i++) {
    problem p = kinds[i];
    heap h;
    int64_t single = 0, twice = 0;
    ct_note("%s, n %d, nrhs %d", p.name, (int)p.n, (int)p.nrhs);
    make(&p, &h);
    hone_memory_needed(p.n, p.nrhs, &p.options, &single, &twice);
    p.options.memory_limit_bytes = p.cond > 0.0 ? twice : single;
    if (p.start == HONE_FACTOR_AUTO)
      p.options.memory_limit_bytes = twice;
    CHECK_EQ_INT(one_call(&p), HONE_OK);
    discard(&p);
  }
}
