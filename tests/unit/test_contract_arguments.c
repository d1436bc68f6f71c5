/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for arguments: the numbers and texts of statuses and
   options, and the status that each bad argument or option gets. */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers and texts -------------------------------------------------------- */

static const struct {
  int status, number;
} numbers[] = {{HONE_OK, 0},
               {HONE_NOT_CONVERGED, 1},
               {HONE_ILL_CONDITIONED, 2},
               {HONE_INTERRUPTED, 3},
               {HONE_NULL_POINTER, -10},
               {HONE_BAD_SIZE, -11},
               {HONE_BAD_LEADING_DIMENSION, -12},
               {HONE_BAD_OPTION, -13},
               {HONE_BAD_STRUCT_SIZE, -14},
               {HONE_BAD_OVERLAP, -15},
               {HONE_NOT_FACTORED, -16},
               {HONE_BUSY, -17},
               {HONE_NOT_FINITE_A, -20},
               {HONE_NOT_FINITE_B, -21},
               {HONE_SINGULAR, -30},
               {HONE_OVERFLOW, -31},
               {HONE_NO_MEMORY, -40},
               {HONE_NO_DEVICE, -50},
               {HONE_DEVICE_FAILED, -51},
               {HONE_CANCELLED, -60},
               {HONE_INTERNAL, -90}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

TEST(contract, pins_the_number_of_every_status) {
#define COUNT(name, number, text) +1
  CHECK_EQ_INT(0 HONE_STATUS_LIST(COUNT), NUMBERS);
#undef COUNT
  for (int i = 0; i < NUMBERS; i++)
    CHECK_EQ_INT(numbers[i].status, numbers[i].number);
}

TEST(contract, has_a_text_for_any_int) {
  const char *unknown = hone_status_text(INT_MAX);
  for (int st = -1000; st <= 1000; st++) {
    const char *text = hone_status_text(st);
    bool known = false;
    for (int i = 0; i < NUMBERS; i++)
      known = known || numbers[i].number == st;
    ct_note("status %d", st);
    REQUIRE(text != NULL && text[0] != '\0');
    CHECK((strcmp(text, unknown) != 0) == known);
  }
  CHECK_STR(hone_status_text(INT_MIN), unknown);
  for (int i = 0; i < NUMBERS; i++)
    for (int j = 0; j < i; j++)
      CHECK(strcmp(hone_status_text(numbers[i].number),
                   hone_status_text(numbers[j].number)) != 0);
}

TEST(contract, pins_the_numbers_of_the_options) {
  CHECK_EQ_INT(HONE_COL_MAJOR, 0);
  CHECK_EQ_INT(HONE_ROW_MAJOR, 1);
  CHECK_EQ_INT(HONE_NO_TRANS, 0);
  CHECK_EQ_INT(HONE_TRANS, 1);
  CHECK_EQ_INT(HONE_DEVICE_AUTO, 0);
  CHECK_EQ_INT(HONE_DEVICE_CPU, 1);
  CHECK_EQ_INT(HONE_DEVICE_CUDA, 2);
  CHECK_EQ_INT(HONE_FACTOR_AUTO, 0);
  CHECK_EQ_INT(HONE_FACTOR_SINGLE, 1);
  CHECK_EQ_INT(HONE_FACTOR_DOUBLE, 2);
  CHECK_EQ_INT(HONE_CRITERION_COMPONENTWISE, 0);
  CHECK_EQ_INT(HONE_CRITERION_NORMWISE, 1);
  CHECK_EQ_INT(HONE_CRITERION_RESIDUAL, 2);
}

TEST(contract, version_text_and_numbers_agree) {
  char text[64];
  snprintf(text, sizeof text, "%d.%d.%d", HONE_VERSION_MAJOR,
           HONE_VERSION_MINOR, HONE_VERSION_PATCH);
  CHECK_STR(hone_version(), text);
}

/* Arguments ---------------------------------------------------------------- */

TEST(contract, refuses_null_pointers) {
  sys s = sys_make(4, 2);
  for (int which = 0; which < 3; which++) {
    int st =
        hone_solve(4, 2, which == 0 ? NULL : s.a, 4, which == 1 ? NULL : s.b, 4,
                   which == 2 ? NULL : s.x, 4, &s.options, &s.report);
    ct_note("argument %d", which);
    CHECK_EQ_INT(st, HONE_NULL_POINTER);
    sys_check(&s, st);
  }
  CHECK_EQ_INT(hone_solver_create(NULL, 4, NULL), HONE_NULL_POINTER);
  CHECK_EQ_INT(hone_solver_factor(NULL, s.a, 4, NULL), HONE_NULL_POINTER);
  CHECK_EQ_INT(hone_solver_update(NULL, s.a, 4, NULL), HONE_NULL_POINTER);
  CHECK_EQ_INT(
      sup_solver_solve(NULL, 0, 1, s.b, 4, s.x, 4, NULL, 0, NULL, &s.report),
      HONE_NULL_POINTER);
  CHECK(sup_untouched(s.x, 8, UNTOUCHED));
  hone_solver *none = NULL;
  hone_solver_destroy(NULL);
  hone_solver_destroy(&none);
  hone_options_init(NULL, 8);
  sys_discard(&s);
}

TEST(contract, accepts_null_for_optional_arguments) {
  sys s = sys_make(4, 2);
  CHECK_EQ_INT(hone_solve(4, 2, s.a, 4, s.b, 4, s.x, 4, NULL, NULL), HONE_OK);
  CHECK_LE(sup_backward_error(4, s.a, 4, false, s.x, s.b), SUP_LIMIT);
  CHECK_EQ_INT(hone_memory_needed(4, 2, NULL, NULL, NULL), HONE_OK);
  sys_discard(&s);
}

/* hone_memory_needed refuses what hone_solve does. */
TEST(contract, tells_no_memory_for_arrays_of_options_that_are_refused) {
  sys s = sys_make(4, 2);
  double other[8] = {0.0}, bounds[8];
  int64_t bytes = 5;
  for (int64_t ld = 3; ld <= 4; ld++) {
    const int status = ld == 4 ? HONE_OK : HONE_BAD_LEADING_DIMENSION;
    hone_options warm = s.options, bars = s.options;
    warm.x0 = other;
    warm.ldx0 = ld;
    bars.error_bounds = bounds;
    bars.ld_error_bounds = ld;
    for (int which = 0; which < 2; which++) {
      const hone_options *o = which == 0 ? &warm : &bars;
      CHECK_EQ_INT(hone_solve(4, 2, s.a, 4, s.b, 4, s.x, 4, o, &s.report),
                   status);
      CHECK_EQ_INT(hone_memory_needed(4, 2, o, &bytes, NULL), status);
      CHECK((bytes == 5) == (ld == 3));
    }
  }
  sys_discard(&s);
}

/* Bytes beyond any number are as many as an int64_t holds. */
TEST(contract, tells_memory_that_no_number_counts) {
  const int64_t n = INT64_C(1) << 29;
  hone_options o = HONE_OPTIONS_INIT;
  int64_t single, twice;
  o.triangle = HONE_TRIANGLE_LOWER;
  o.trans = HONE_CONJ_TRANS;
  for (int parts = 1; parts <= 2; parts++) {
    CHECK_EQ_INT((parts == 1 ? hone_memory_needed
                             : hone_z_memory_needed)(n, n, &o, &single, &twice),
                 HONE_OK);
    CHECK_LE(0x1p60, (double)single);
    CHECK(twice >= single);
  }
}

/* Columns of an older version are copied. */
TEST(contract, holds_no_more_memory_than_it_tells_with_older_columns) {
  enum { COUNT = 200000, OLD = 24 };
  sys s = sys_make(4, COUNT);
  int64_t needed;
  s.options.column_size = OLD;
  s.options.columns = (hone_column *)malloc((size_t)COUNT * OLD);
  REQUIRE(s.options.columns != NULL);
  CHECK_EQ_INT(hone_memory_needed(4, COUNT, &s.options, NULL, &needed),
               HONE_OK);
  s.options.memory_limit_bytes = needed;
  CHECK_EQ_INT(sys_call(&s), HONE_OK);
  CHECK_LE(s.report.host_bytes, needed);
  free(s.options.columns);
  sys_discard(&s);
}

/* Factors in double are those of LU, whichever way solves. */
TEST(contract, ignores_a_claim_with_factors_in_double) {
  for (int deterministic = 0; deterministic < 2; deterministic++) {
    sys s = sys_make(50, 1);
    for (int64_t j = 0; j < 50; j++)
      for (int64_t i = 0; i < 50; i++)
        s.a[i + j * 50] = i == j ? 3.0 : 1.0 / (double)(1 + i + j);
    s.options.structure = HONE_STRUCTURE_SPD;
    s.options.factor_precision = HONE_FACTOR_DOUBLE;
    s.options.deterministic = deterministic;
    CHECK_EQ_INT(sys_call(&s), HONE_OK);
    CHECK_CONTAINS(s.report.path, "double LU");
    sys_discard(&s);
  }
}

TEST(contract, refuses_sizes_that_are_negative_or_too_large) {
  static const int64_t bad[] = {-1, INT64_MIN, INT32_MAX, INT64_MAX};
  sys s = sys_make(3, 1);
  hone_solver *solver = (hone_solver *)&s;
  for (int i = 0; i < 4; i++) {
    int64_t most = HONE_MAX((int64_t)3, bad[i]);
    int64_t bytes = 5;
    ct_note("size %lld", (long long)bad[i]);
    CHECK_EQ_INT(hone_solve(bad[i], 1, s.a, most, s.b, most, s.x, most,
                            &s.options, &s.report),
                 HONE_BAD_SIZE);
    CHECK_EQ_INT(hone_solver_create(&solver, bad[i], NULL), HONE_BAD_SIZE);
    CHECK(solver == NULL);
    CHECK_EQ_INT(hone_memory_needed(bad[i], 1, NULL, &bytes, NULL),
                 HONE_BAD_SIZE);
    if (bad[i] < 0) {
      CHECK_EQ_INT(
          hone_solve(3, bad[i], s.a, 3, s.b, 3, s.x, 3, &s.options, &s.report),
          HONE_BAD_SIZE);
      CHECK_EQ_INT(hone_memory_needed(3, bad[i], NULL, &bytes, NULL),
                   HONE_BAD_SIZE);
    }
    CHECK_EQ_INT(bytes, 5);
  }
  CHECK(sup_untouched(s.x, 3, UNTOUCHED));
  sys_discard(&s);
}

TEST(contract, refuses_invalid_leading_dimensions) {
  static const int64_t bad[] = {2, 0, -3, INT64_MIN, INT64_MAX, INT64_MAX / 8};
  sys s = sys_make(3, 2);
  double *x0 = sup_filled(6, 0.0);
  for (int i = 0; i < 6; i++) {
    for (int which = 0; which < 4; which++) {
      ct_note("leading dimension %lld, of argument %d", (long long)bad[i],
              which);
      s.options.x0 = x0;
      s.options.ldx0 = which == 3 ? bad[i] : 3;
      int st = hone_solve(3, 2, s.a, which == 0 ? bad[i] : 3, s.b,
                          which == 1 ? bad[i] : 3, s.x, which == 2 ? bad[i] : 3,
                          &s.options, &s.report);
      CHECK_EQ_INT(st, HONE_BAD_LEADING_DIMENSION);
      sys_check(&s, st);
    }
  }
  s.options.x0 = NULL; /* ldx0 is not read then */
  s.options.ldx0 = -1;
  sys_expect(&s, HONE_OK);
  sup_free(x0);
  sys_discard(&s);
}

/* Empty systems need no arrays, but valid leading dimensions. */
TEST(contract, solves_empty_systems) {
  sys s = sys_make(3, 2);
  CHECK_EQ_INT(hone_solve(0, 0, NULL, 1, NULL, 1, NULL, 1, NULL, NULL),
               HONE_OK);
  CHECK_EQ_INT(hone_solve(0, 5, NULL, 1, NULL, 1, NULL, 1, NULL, &s.report),
               HONE_OK);
  CHECK_EQ_INT(s.report.status, HONE_OK);
  CHECK_EQ_INT(s.report.nrhs, 5);
  CHECK_EQ_INT(hone_solve(3, 0, s.a, 3, NULL, 3, NULL, 3, NULL, NULL), HONE_OK);
  CHECK_EQ_INT(hone_solve(0, 0, NULL, 0, NULL, 1, NULL, 1, NULL, NULL),
               HONE_BAD_LEADING_DIMENSION);
  CHECK_EQ_INT(hone_solve(0, 0, NULL, 1, NULL, 0, NULL, 1, NULL, NULL),
               HONE_BAD_LEADING_DIMENSION);
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_create(&solver, 0, NULL), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, NULL, 1, NULL), HONE_OK);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 2, NULL, 1, NULL, 1, NULL, 0, NULL, NULL),
      HONE_OK);
  hone_solver_destroy(&solver);
  CHECK(sup_untouched(s.x, 6, UNTOUCHED));
  sys_discard(&s);
}

/* Nor do they need a device: only what there is to solve asks for one. */
TEST(contract, solves_empty_systems_without_the_device_asked_for) {
  hone_options o = HONE_OPTIONS_INIT;
  hone_solver *solver = NULL;
  hone_batch b = HONE_BATCH_INIT;
  int64_t bytes = -1;
  o.device = HONE_DEVICE_CUDA;
  b.count = 3, b.nrhs = b.lda = b.ldb = b.ldx = 1;
  CHECK_EQ_INT(hone_solve(0, 1, NULL, 1, NULL, 1, NULL, 1, &o, NULL), HONE_OK);
  CHECK_EQ_INT(hone_batch_solve(&b, &o, NULL, NULL), HONE_OK);
  CHECK_EQ_INT(hone_memory_needed(0, 1, &o, &bytes, NULL), HONE_OK);
  CHECK(bytes >= 0);
  CHECK_EQ_INT(hone_memory_needed(5, 0, &o, &bytes, NULL), HONE_OK);
  CHECK_EQ_INT(hone_solver_create(&solver, 0, &o), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, NULL, 1, NULL), HONE_OK);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 2, NULL, 1, NULL, 1, NULL, 0, NULL, NULL),
      HONE_OK);
  hone_solver_destroy(&solver);
}

TEST(contract, solves_systems_of_one_and_two_unknowns) {
  for (int64_t n = 1; n <= 2; n++)
    for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
      sys s = sys_make(n, 3);
      s.options.factor_precision = start;
      sys_expect(&s, HONE_OK);
      sys_discard(&s);
    }
}

/* Options ------------------------------------------------------------------ */

TEST(contract, refuses_a_struct_size_that_is_too_small_or_too_large) {
  static const size_t bad[] = {0,
                               1,
                               sizeof(size_t) - 1,
                               sizeof(hone_options) + 1,
                               sizeof(hone_options) + 64,
                               SIZE_MAX};
  sys s = sys_make(3, 1);
  hone_solver *solver = (hone_solver *)&s;
  for (int i = 0; i < 6; i++) {
    ct_note("struct_size %zu", bad[i]);
    s.options.struct_size = bad[i];
    sys_expect(&s, HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(hone_solver_create(&solver, 3, &s.options),
                 HONE_BAD_STRUCT_SIZE);
    CHECK(solver == NULL);
    CHECK_EQ_INT(hone_memory_needed(3, 1, &s.options, NULL, NULL),
                 HONE_BAD_STRUCT_SIZE);
  }
  sys_discard(&s);
}

/* A caller that was compiled with an older version has a shorter struct; the
   bytes behind it are no options. */
TEST(contract, accepts_an_older_struct_and_reads_nothing_behind_it) {
  static const size_t ends[] = {sizeof(size_t),
                                offsetof(hone_options, layout),
                                offsetof(hone_options, threads),
                                offsetof(hone_options, tolerance),
                                offsetof(hone_options, progress),
                                offsetof(hone_options, alloc)};
  for (int i = 0; i < 6; i++) {
    sys s = sys_make(5, 1);
    ct_note("struct_size %zu", ends[i]);
    memset(&s.options, 0xa5, sizeof s.options);
    hone_options_init(&s.options, ends[i]);
    CHECK_EQ_INT(s.options.struct_size, ends[i]);
    CHECK_EQ_INT(((unsigned char *)&s.options)[ends[i]], 0xa5);
    int st = sys_call(&s);
    s.options = (hone_options)HONE_OPTIONS_INIT;
    CHECK_EQ_INT(st, HONE_OK);
    sys_check(&s, st);
    sys_discard(&s);
  }
}

typedef void (*invalid_option)(hone_options *o);
static void *some_alloc(size_t bytes, void *ctx) {
  (void)ctx;
  return malloc(bytes);
}
static void some_free(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}
static void bad_device(hone_options *o) { o->device = 3; }
static void bad_device_below(hone_options *o) { o->device = -1; }
static void bad_start(hone_options *o) { o->factor_precision = 3; }
static void bad_start_below(hone_options *o) { o->factor_precision = -1; }
static void bad_layout(hone_options *o) { o->layout = 2; }
static void bad_layout_below(hone_options *o) { o->layout = INT32_MIN; }
static void bad_trans(hone_options *o) { o->trans = 'T'; }
static void bad_trans_below(hone_options *o) { o->trans = -1; }
static void bad_criterion(hone_options *o) { o->criterion = 3; }
static void bad_criterion_below(hone_options *o) { o->criterion = -2; }
static void bad_threads(hone_options *o) { o->threads = -1; }
static void bad_iterations(hone_options *o) { o->max_iterations = -1; }
static void bad_tolerance(hone_options *o) { o->tolerance = -1e-16; }
static void nan_tolerance(hone_options *o) { o->tolerance = (double)NAN; }
static void inf_tolerance(hone_options *o) { o->tolerance = (double)INFINITY; }
static void bad_deadline(hone_options *o) { o->deadline_s = -1.0; }
static void nan_deadline(hone_options *o) { o->deadline_s = (double)NAN; }
static void bad_limit(hone_options *o) { o->memory_limit_bytes = -1; }
static void alloc_alone(hone_options *o) { o->alloc = some_alloc; }
static void free_alone(hone_options *o) { o->free = some_free; }

TEST(contract, refuses_every_invalid_option) {
  static const invalid_option cases[] = {
      bad_device,    bad_device_below,    bad_start,     bad_start_below,
      bad_layout,    bad_layout_below,    bad_trans,     bad_trans_below,
      bad_criterion, bad_criterion_below, bad_threads,   bad_iterations,
      bad_tolerance, nan_tolerance,       inf_tolerance, bad_deadline,
      nan_deadline,  bad_limit,           alloc_alone,   free_alone};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sys s = sys_make(3, 1);
    hone_solver *solver = (hone_solver *)&s;
    ct_note("case %zu", i);
    cases[i](&s.options);
    sys_expect(&s, HONE_BAD_OPTION);
    CHECK_EQ_INT(hone_solver_create(&solver, 3, &s.options), HONE_BAD_OPTION);
    CHECK(solver == NULL);
    CHECK_EQ_INT(hone_memory_needed(3, 1, &s.options, NULL, NULL),
                 HONE_BAD_OPTION);
    sys_discard(&s);
  }
}

TEST(contract, refuses_to_solve_before_a_matrix_is_factored) {
  sys s = sys_make(3, 1);
  hone_solver *solver;
  REQUIRE(hone_solver_create(&solver, 3, NULL) == HONE_OK);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_NOT_FACTORED);
  double bad = s.a[1];
  s.a[1] = (double)NAN;
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, 3, NULL), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_NOT_FACTORED);
  CHECK(sup_untouched(s.x, 3, UNTOUCHED));
  s.a[1] = bad;
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, 3, NULL), HONE_OK);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 3, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_BAD_OPTION);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.a, 3, NULL, 0, NULL, NULL),
      HONE_BAD_OVERLAP);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_OK);
  CHECK_LE(sup_backward_error(3, s.a, 3, false, s.x, s.b), SUP_LIMIT);
  hone_solver_destroy(&solver);
  sys_discard(&s);
}
