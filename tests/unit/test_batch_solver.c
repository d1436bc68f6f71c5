/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_batch_solver: factors of many matrices are kept, for real and complex
   entries; every solve is held against hone_batch_solve. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"
#include "tests/unit/fake_driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 19, NRHS = 2 };
static const double UNTOUCHED = -3.75e77;

/* Systems without gaps; numbers have so many parts. */
typedef struct batch {
  int parts;
  int64_t n;
  double *a, *b, *x;
  hone_batch_result results[COUNT];
  hone_report report;
} batch;

static int64_t numbers(const batch *s, int64_t columns) {
  return s->parts * s->n * columns * COUNT;
}

static batch make(int parts, int64_t n, uint64_t seed) {
  batch s = {.parts = parts, .n = n, .report = HONE_REPORT_INIT};
  sup_rng rng = {seed};
  s.a = sup_filled(numbers(&s, n), 0.0);
  s.b = sup_filled(numbers(&s, NRHS), 0.0);
  s.x = sup_filled(numbers(&s, NRHS), UNTOUCHED);
  for (int64_t i = 0; i < numbers(&s, n); i++)
    s.a[i] = sup_uniform(&rng);
  for (int64_t i = 0; i < numbers(&s, NRHS); i++)
    s.b[i] = sup_uniform(&rng);
  return s;
}

static void discard(batch *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

static double *matrix(const batch *s, int64_t k) {
  return s->a + k * s->parts * s->n * s->n;
}

static hone_batch described(const batch *s) {
  hone_batch b = HONE_BATCH_INIT;
  b.count = COUNT;
  b.n = b.lda = b.ldb = b.ldx = s->n;
  b.nrhs = NRHS;
  b.a = s->a;
  b.b = s->b;
  b.x = s->x;
  b.stride_a = s->n * s->n;
  b.stride_b = b.stride_x = s->n * NRHS;
  return b;
}

/* One of the two is not NULL. */
typedef struct kept {
  hone_batch_solver *real;
  hone_z_batch_solver *complex;
} kept;

static hone_z_batch as_complex(const hone_batch *b) {
  hone_z_batch z;
  memcpy(&z, b, sizeof z); /* the members are the same */
  return z;
}

static int create(kept *k, int parts, const hone_options *o) {
  *k = (kept){NULL, NULL};
  return parts == 1 ? hone_batch_solver_create(&k->real, o)
                    : hone_z_batch_solver_create(&k->complex, o);
}

static int factor(const kept *k, batch *s, const hone_batch *b) {
  const hone_z_batch z = as_complex(b);
  return s->parts == 1
             ? hone_batch_solver_factor(k->real, b, s->results, &s->report)
             : hone_z_batch_solver_factor(k->complex, &z, s->results,
                                          &s->report);
}

static int solve(const kept *k, batch *s, const hone_batch *b,
                 const hone_options *o) {
  const hone_z_batch z = as_complex(b);
  return s->parts == 1
             ? hone_batch_solver_solve(k->real, b, o, s->results, &s->report)
             : hone_z_batch_solver_solve(k->complex, &z, o, s->results,
                                         &s->report);
}

static int at_once(batch *s, const hone_batch *b, const hone_options *o) {
  const hone_z_batch z = as_complex(b);
  return s->parts == 1 ? hone_batch_solve(b, o, s->results, &s->report)
                       : hone_z_batch_solve(&z, o, s->results, &s->report);
}

static void destroy(kept *k) {
  hone_batch_solver_destroy(&k->real);
  hone_z_batch_solver_destroy(&k->complex);
  CHECK(k->real == NULL && k->complex == NULL);
}

/* Solves twice with kept factors: x has the bits of hone_batch_solve. */
static void compare(batch *s, const hone_options *o) {
  kept k;
  const hone_batch b = described(s);
  const size_t bytes = (size_t)numbers(s, NRHS) * sizeof *s->x;
  double *expected = sup_filled(numbers(s, NRHS), UNTOUCHED);
  hone_batch_result once[COUNT];
  hone_batch into = b;
  into.x = expected;
  const int st = at_once(s, &into, o);
  memcpy(once, s->results, sizeof once);
  CHECK_EQ_INT(create(&k, s->parts, o), HONE_OK);
  const int factored = factor(&k, s, &b);
  CHECK(factored == HONE_OK || factored == st);
  CHECK(sup_untouched(s->x, numbers(s, NRHS), UNTOUCHED));
  for (int turn = 0; turn < 2; turn++) {
    for (int64_t i = 0; i < numbers(s, NRHS); i++)
      s->x[i] = UNTOUCHED;
    CHECK_EQ_INT(solve(&k, s, &b, NULL), st);
    CHECK_MEM_EQ(s->x, expected, bytes);
    for (int i = 0; i < COUNT; i++) {
      CHECK_EQ_INT(s->results[i].status, once[i].status);
      if (once[i].status != HONE_OK)
        continue;
      CHECK_LE(s->results[i].backward_error, SUP_LIMIT);
      CHECK_LE(s->results[i].forward_error, 1e-6);
      CHECK_NEAR(s->results[i].rcond, once[i].rcond, 0.9 * once[i].rcond);
    }
  }
  destroy(&k);
  sup_free(expected);
}

static const int64_t orders[] = {1, 2, 7, 16, 33, 70, 128, 260};
enum { ORDERS = sizeof orders / sizeof *orders };

TEST(batch_solver, solves_as_the_single_call_does) {
  for (int parts = 1; parts <= 2; parts++)
    for (int i = 0; i < ORDERS; i++)
      for (int trans = 0; trans < 3; trans++) {
        batch s = make(parts, orders[i], 5 + (uint64_t)i);
        hone_options o = HONE_OPTIONS_INIT;
        ct_note("n = %d, parts = %d, trans = %d", (int)s.n, parts, trans);
        o.trans = trans;
        o.layout = i % 2;
        o.deterministic = 1;
        compare(&s, &o);
        if (orders[i] <= 256)
          CHECK_CONTAINS(s.report.path, "19 in blocks, 0 alone");
        discard(&s);
      }
}

TEST(batch_solver, keeps_the_errors_of_single_matrices) {
  for (int parts = 1; parts <= 2; parts++) {
    batch s = make(parts, 9, 77);
    hone_options o = HONE_OPTIONS_INIT;
    ct_note("parts = %d", parts);
    o.deterministic = 1;
    matrix(&s, 3)[0] = (double)NAN;
    memset(matrix(&s, 8), 0, (size_t)(parts * 81) * sizeof *s.a);
    memcpy(matrix(&s, 9), matrix(&s, 9) + 9 * parts,
           (size_t)(9 * parts) * sizeof *s.a); /* two equal columns */
    compare(&s, &o);
    CHECK_EQ_INT(s.results[3].status, HONE_NOT_FINITE_A);
    CHECK_EQ_INT(s.results[8].status, HONE_SINGULAR);
    CHECK(s.results[9].status != HONE_OK);
    CHECK_EQ_INT(s.results[10].status, HONE_OK);
    discard(&s);
  }
}

TEST(batch_solver, factors_another_batch_after_the_first) {
  kept k;
  batch s = make(1, 6, 1), other = make(1, 20, 2);
  const hone_batch b = described(&s), c = described(&other);
  CHECK_EQ_INT(create(&k, 1, NULL), HONE_OK);
  CHECK_EQ_INT(solve(&k, &s, &b, NULL), HONE_NOT_FACTORED);
  CHECK_EQ_INT(factor(&k, &s, &b), HONE_OK);
  CHECK_EQ_INT(factor(&k, &other, &c), HONE_OK);
  CHECK_EQ_INT(solve(&k, &s, &b, NULL), HONE_BAD_SIZE);
  CHECK(sup_untouched(s.x, numbers(&s, NRHS), UNTOUCHED));
  CHECK_EQ_INT(solve(&k, &other, &c, NULL), HONE_OK);
  for (int i = 0; i < COUNT; i++)
    CHECK_LE(sup_backward_error(20, matrix(&other, i), 20, false,
                                other.x + i * 20 * NRHS,
                                other.b + i * 20 * NRHS),
             SUP_LIMIT);
  destroy(&k);
  discard(&s);
  discard(&other);
}

TEST(batch_solver, keeps_its_matrices_when_arguments_are_refused) {
  kept k, refused;
  batch s = make(1, 6, 4);
  hone_batch b = described(&s);
  hone_options o = HONE_OPTIONS_INIT;
  CHECK_EQ_INT(create(&k, 1, NULL), HONE_OK);
  CHECK_EQ_INT(factor(&k, &s, &b), HONE_OK);
  b.lda = 5;
  CHECK_EQ_INT(factor(&k, &s, &b), HONE_BAD_LEADING_DIMENSION);
  CHECK_EQ_INT(s.results[7].status, HONE_BAD_LEADING_DIMENSION);
  b = described(&s);
  o.trans = HONE_TRANS;
  CHECK_EQ_INT(solve(&k, &s, &b, &o), HONE_BAD_OPTION);
  o.trans = HONE_NO_TRANS;
  o.x0 = s.b;
  CHECK_EQ_INT(solve(&k, &s, &b, &o), HONE_BAD_OPTION);
  CHECK_EQ_INT(solve(&k, &s, &b, NULL), HONE_OK);
  CHECK_EQ_INT(create(&refused, 1, &o), HONE_BAD_OPTION);
  o.x0 = NULL;
  o.device = HONE_DEVICE_CUDA;
  CHECK_EQ_INT(create(&refused, 1, &o), HONE_BAD_OPTION);
  CHECK(refused.real == NULL);
  destroy(&k);
  discard(&s);
}

TEST(batch_solver, no_result_depends_on_the_neighbours) {
  for (int parts = 1; parts <= 2; parts++) {
    batch s = make(parts, 6, 31);
    const hone_batch b = described(&s);
    const size_t bytes = (size_t)numbers(&s, NRHS) * sizeof *s.x;
    hone_options o = HONE_OPTIONS_INIT;
    hone_batch_result before[COUNT];
    double *x = sup_filled(numbers(&s, NRHS), 0.0);
    o.deterministic = 1;
    ct_note("parts = %d", parts);
    CHECK_EQ_INT(at_once(&s, &b, &o), HONE_OK);
    memcpy(before, s.results, sizeof before);
    memcpy(x, s.x, bytes);
    double *a = matrix(&s, 3); /* becomes nearly singular, and large */
    for (int64_t i = 0; i < 6 * parts; i++) {
      a[i] *= 0x1p30;
      a[6 * parts + i] = a[i] * (1.0 + (i == 0 ? 1e-9 : 0.0));
    }
    (void)at_once(&s, &b, &o);
    CHECK_LE(s.results[3].rcond, 1e-8);
    for (int k = 0; k < COUNT; k++)
      if (k != 3) {
        CHECK_MEM_EQ(&s.results[k], &before[k], sizeof before[k]);
        CHECK_MEM_EQ(s.x + k * 6 * NRHS * parts, x + k * 6 * NRHS * parts,
                     (size_t)(6 * NRHS * parts) * sizeof *x);
      }
    sup_free(x);
    discard(&s);
  }
}

/* A claim that is false must not change a determinant. */
TEST(batch_solver, determinants_are_those_of_the_whole_matrix) {
  batch s = make(1, 2, 8);
  hone_batch b = described(&s);
  hone_options o = HONE_OPTIONS_INIT;
  o.structure = HONE_STRUCTURE_SPD;
  b.determinants = 1;
  for (int k = 0; k < COUNT; k++)
    memcpy(matrix(&s, k), (double[]){1.0, 1e-3, 0.0, 1.0}, 4 * sizeof *s.a);
  CHECK_EQ_INT(at_once(&s, &b, &o), HONE_OK);
  for (int k = 0; k < COUNT; k++) {
    CHECK_NEAR(s.results[k].log_abs_det, 0.0, 1e-15);
    CHECK_NEAR(s.results[k].det_re, 1.0, 0.0);
  }
  b.n = 0;
  CHECK_EQ_INT(at_once(&s, &b, &o), HONE_OK);
  CHECK_NEAR(s.results[5].log_abs_det, 0.0, 0.0);
  CHECK_NEAR(s.results[5].det_re, 1.0, 0.0);
  discard(&s);
}

/* The solvers of such systems read A where it lies; the host must not. */
TEST(batch_solver, determinants_of_matrices_in_device_memory_are_there) {
  for (int parts = 1; parts <= 2; parts++) {
    kept k;
    batch s = make(parts, 4, 5);
    hone_batch b = described(&s);
    hone_options o = HONE_OPTIONS_INIT;
    const size_t bytes = (size_t)numbers(&s, s.n) * sizeof *s.a;
    double known[COUNT];
    o.device = HONE_DEVICE_CPU;
    b.determinants = 1;
    CHECK_EQ_INT(at_once(&s, &b, &o), HONE_OK);
    for (int i = 0; i < COUNT; i++)
      known[i] = s.results[i].log_abs_det;
    fake_begin();
    b.a = fake_alloc(bytes, false);
    memcpy(fake_real(b.a), s.a, bytes);
    CHECK_EQ_INT(create(&k, parts, &o), HONE_OK);
    CHECK_EQ_INT(factor(&k, &s, &b), HONE_OK);
    for (int i = 0; i < COUNT; i++)
      CHECK_NEAR(s.results[i].log_abs_det, known[i],
                 1e-13 * (1.0 + fabs(known[i])));
    CHECK_EQ_INT(solve(&k, &s, &b, NULL), HONE_OK);
    destroy(&k);
    fake_free((void *)b.a);
    fake_end();
    discard(&s);
  }
}

/* Systems that no block serves have none either. Factors serve of a matrix that
   rounding may make singular, but its determinant is not told. */
TEST(batch_solver, determinants_belong_to_factor) {
  kept k;
  batch s = make(1, 6, 12);
  hone_batch b = described(&s);
  hone_options o = HONE_OPTIONS_INIT;
  o.deterministic = 1;
  b.determinants = 1;
  matrix(&s, 4)[0] = 1e-310; /* no block serves it */
  memcpy(matrix(&s, 7), matrix(&s, 7) + 6, 6 * sizeof *s.a);
  matrix(&s, 7)[0] *= 1.0 + 0x1p-52;
  CHECK_EQ_INT(create(&k, 1, &o), HONE_OK);
  CHECK_EQ_INT(factor(&k, &s, &b), HONE_OK);
  for (int i = 0; i < COUNT; i++)
    CHECK(i == 7 ? isnan(s.results[i].log_abs_det + s.results[i].det_re)
                 : fabs(s.results[i].det_re) >= 1.0);
  (void)solve(&k, &s, &b, NULL);
  CHECK_CONTAINS(s.report.path, "17 in blocks, 2 alone");
  for (int i = 0; i < COUNT; i++)
    CHECK(isnan(s.results[i].log_abs_det) && isnan(s.results[i].det_re));
  destroy(&k);
  discard(&s);
}

/* The fractions of one call. */
typedef struct told {
  int events;
  double first, last;
} told;

static int listen(void *user, const hone_progress *event) {
  told *t = user;
  if (t->events++ == 0)
    t->first = event->fraction;
  t->last = event->fraction;
  return 0;
}

TEST(batch_solver, every_call_tells_its_own_progress) {
  kept k;
  batch s = make(1, 6, 13);
  const hone_batch b = described(&s);
  hone_options o = HONE_OPTIONS_INIT;
  told t = {.events = 0};
  o.progress = listen;
  o.progress_user = &t;
  CHECK_EQ_INT(create(&k, 1, &o), HONE_OK);
  for (int turn = 0; turn < 4; turn++) {
    t = (told){.events = 0};
    CHECK_EQ_INT(turn % 3 == 0 ? factor(&k, &s, &b) : solve(&k, &s, &b, NULL),
                 HONE_OK);
    CHECK_LE(1, t.events);
    CHECK_NEAR(t.first, 0.0, 0.0);
    CHECK_LT(t.last, 1.0);
  }
  destroy(&k);
  discard(&s);
}

TEST(batch_solver, may_not_write_what_all_systems_read) {
  batch s = make(1, 4, 6);
  hone_batch b = described(&s);
  b.stride_b = 0;
  b.b = s.x; /* the first x is the b of all */
  CHECK_EQ_INT(at_once(&s, &b, NULL), HONE_BAD_OVERLAP);
  CHECK_CONTAINS(s.report.reason, "x overlaps b, which all systems share");
  b = described(&s);
  b.stride_a = 0;
  b.a = s.x + 4 * NRHS * (COUNT - 2); /* the last x is in the A of all */
  CHECK_EQ_INT(at_once(&s, &b, NULL), HONE_BAD_OVERLAP);
  CHECK_CONTAINS(s.report.reason, "x overlaps a, which all systems share");
  CHECK(sup_untouched(s.x, numbers(&s, NRHS), UNTOUCHED));
  discard(&s);
}

/* Memory that fails from one allocation on, for so many of them, and counts
   what is not freed. */
typedef struct heap {
  int64_t calls, fail_at, failing, live;
} heap;

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  const int64_t call = h->calls++;
  if (call >= h->fail_at && call - h->fail_at < h->failing)
    return NULL;
  h->live++;
  return malloc(bytes);
}

static void give(void *memory, void *ctx) {
  heap *h = ctx;
  h->live -= memory != NULL;
  free(memory);
}

static void use_heap(hone_options *o, heap *h) {
  o->alloc = take;
  o->free = give;
  o->alloc_ctx = h;
}

/* Gives the systems the orders 4 and 5, and makes number 6 singular, in units
   that no block serves. */
static void mix(const batch *s, hone_batch *b, int64_t *each) {
  for (int i = 0; i < COUNT; i++)
    each[i] = i % 3 == 0 ? 4 : 5;
  b->orders = each;
  memset(matrix(s, 6), 0, (size_t)(25 * s->parts) * sizeof *s->a);
  matrix(s, 6)[0] = 1e-310;
}

/* Factors while allocations fail, and solves when there is memory again: errors
   of matrices are those of the first call. Returns whether one failed. */
static bool keeps_errors(int parts, heap *h) {
  batch s = make(parts, 5, 9);
  hone_batch b = described(&s);
  hone_batch_result factored[COUNT];
  int64_t each[COUNT];
  kept k;
  hone_options o = HONE_OPTIONS_INIT;
  mix(&s, &b, each);
  use_heap(&o, h);
  const bool made = create(&k, parts, &o) == HONE_OK;
  const int st = made ? factor(&k, &s, &b) : HONE_NO_MEMORY;
  const bool failed = h->calls > h->fail_at;
  memcpy(factored, s.results, sizeof factored);
  CHECK(failed || st == HONE_SINGULAR);
  h->failing = 0;
  if (made)
    CHECK_EQ_INT(solve(&k, &s, &b, NULL), st);
  for (int i = 0; made && i < COUNT; i++) {
    const int was = factored[i].status;
    CHECK(was == (i == 6 && !failed ? HONE_SINGULAR : HONE_OK) || failed);
    CHECK_EQ_INT(s.results[i].status, was);
    CHECK_EQ_INT(s.results[i].row, factored[i].row);
    CHECK_EQ_INT(s.results[i].col, factored[i].col);
  }
  CHECK(!made || s.report.reason[0] != '\0');
  destroy(&k);
  CHECK_EQ_INT(h->live, 0);
  discard(&s);
  return failed;
}

TEST(batch_solver, keeps_the_errors_of_allocations_that_fail) {
  for (int way = 0; way < 4; way++)
    for (int64_t at = 0; CHECK_LT(at, 400); at++) {
      heap h = {.fail_at = at, .failing = way % 2 == 0 ? 1 : INT64_MAX};
      ct_note("way %d, allocation %d fails", way, (int)at);
      if (!keeps_errors(1 + way / 2, &h))
        break;
    }
}

TEST(batch_solver, survives_every_allocation_that_fails) {
  for (int parts = 1; parts <= 2; parts++)
    for (int64_t at = 0;; at++) {
      batch s = make(parts, 5, 9);
      hone_batch b = described(&s);
      int64_t each[COUNT];
      heap h = {.fail_at = at, .failing = INT64_MAX};
      kept k;
      hone_options o = HONE_OPTIONS_INIT;
      ct_note("parts = %d, allocation %d fails", parts, (int)at);
      mix(&s, &b, each);
      use_heap(&o, &h);
      int st = create(&k, parts, &o);
      if (st == HONE_OK && factor(&k, &s, &b) != HONE_NO_MEMORY)
        st = solve(&k, &s, &b, NULL);
      const bool done = h.calls < at;
      for (int i = 0; i < COUNT && st != HONE_NO_MEMORY && done; i++)
        CHECK(i == 6 || s.results[i].status == HONE_OK);
      destroy(&k);
      CHECK_EQ_INT(h.live, 0);
      discard(&s);
      if (done || !CHECK_LT(at, 400))
        break;
    }
}
