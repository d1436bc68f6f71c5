/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs run with later versions of the library: sizes of structs, fields
   without a use, and which call accepts which options. */
#include "api/hone_tuning.h"

#include "ct.h"
#include "support.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6, NRHS = 3 };
#define UNTOUCHED 7.5

typedef struct sys {
  double a[N * N], b[N * NRHS], x[N * NRHS];
  hone_options options;
  hone_report report;
} sys;

static sys make(void) {
  sup_rng rng = {5};
  sys s = {.options = HONE_OPTIONS_INIT, .report = HONE_REPORT_INIT};
  sup_random(&rng, N, N, s.a, N);
  for (int i = 0; i < N; i++)
    s.a[i + i * N] += 4.0;
  sup_random(&rng, N, NRHS, s.b, N);
  for (int i = 0; i < N * NRHS; i++)
    s.x[i] = UNTOUCHED;
  return s;
}

static int solve(sys *s) {
  return hone_solve(N, NRHS, s->a, N, s->b, N, s->x, N, &s->options,
                    &s->report);
}

static hone_solver *factored(const sys *s, const hone_options *options) {
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_create(&solver, N, options), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s->a, N, NULL), HONE_OK);
  return solver;
}

static int solve_with(hone_solver *solver, sys *s) {
  return hone_solver_solve(solver, NRHS, s->b, N, s->x, N, &s->options,
                           &s->report);
}

static bool untouched(const sys *s) {
  return sup_untouched(s->x, N * NRHS, UNTOUCHED);
}

/* Checks each column of x. */
static void check_solved(const sys *s, bool trans) {
  for (int j = 0; j < NRHS; j++)
    CHECK_LE(sup_backward_error(N, s->a, N, trans, s->x + j * N, s->b + j * N),
             SUP_LIMIT);
}

/* Initial values ----------------------------------------------------------- */

TEST(abi, initial_values_are_sizes_and_zeros) {
  const hone_options options = HONE_OPTIONS_INIT;
  const hone_report report = HONE_REPORT_INIT;
  const hone_tuning tuning = HONE_TUNING_INIT;
  hone_options o;
  hone_report r;
  CHECK_EQ_INT(options.struct_size, sizeof options);
  CHECK_EQ_INT(options.column_size, sizeof(hone_column));
  CHECK_EQ_INT(report.struct_size, sizeof report);
  CHECK_EQ_INT(tuning.struct_size, sizeof tuning);
  memset(&o, 0xa5, sizeof o);
  memset(&r, 0xa5, sizeof r);
  hone_options_init(&o, sizeof o);
  hone_report_init(&r, sizeof r);
  CHECK_EQ_INT(o.column_size, 0);
  o.column_size = sizeof(hone_column);
  CHECK_MEM_EQ(&o, &options, sizeof o);
  CHECK_MEM_EQ(&r, &report, sizeof r);
}

TEST(abi, init_functions_write_no_more_than_the_size_they_are_given) {
  hone_report r;
  const size_t size = offsetof(hone_report, rcond);
  hone_report_init(NULL, 8);
  memset(&r, 0xa5, sizeof r);
  hone_report_init(&r, 4); /* shorter than struct_size itself */
  CHECK_EQ_INT(((unsigned char *)&r)[0], 0xa5);
  hone_report_init(&r, size);
  CHECK_EQ_INT(r.struct_size, size);
  CHECK_EQ_INT(((unsigned char *)&r)[size - 1], 0);
  CHECK_EQ_INT(((unsigned char *)&r)[size], 0xa5);
}

/* Reports ------------------------------------------------------------------ */

static const size_t bad_reports[] = {0, 8, offsetof(hone_report, bad_row) - 1,
                                     sizeof(hone_report) + 1, SIZE_MAX};

/* No call does anything else before it refuses the report. */
TEST(abi, a_report_of_no_valid_size_is_not_written) {
  sys s = make();
  hone_solver *solver = factored(&s, NULL);
  hone_report before;
  memset(&s.report, 0x5a, sizeof s.report);
  for (int i = 0; i < 5; i++) {
    s.report.struct_size = bad_reports[i];
    before = s.report;
    ct_note("struct_size %zu", bad_reports[i]);
    CHECK_EQ_INT(solve(&s), HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(solve_with(solver, &s), HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, N, &s.report),
                 HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(hone_solver_update(solver, s.a, N, &s.report),
                 HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(hone_solver_factor(NULL, s.a, N, &s.report),
                 HONE_BAD_STRUCT_SIZE);
    CHECK_MEM_EQ(&s.report, &before, sizeof before);
    CHECK(untouched(&s));
  }
  hone_solver_destroy(&solver);
}

/* The report of a program compiled with an older version ends earlier. */
TEST(abi, an_older_report_is_filled_to_its_end) {
  static const size_t sizes[] = {
      offsetof(hone_report, bad_row), offsetof(hone_report, device),
      offsetof(hone_report, null_count), offsetof(hone_report, block_rows),
      sizeof(hone_report)};
  for (int i = 0; i < 5; i++) {
    sys s = make(), whole = make();
    const size_t size = sizes[i];
    memset(&s.report, 0x5a, sizeof s.report);
    s.report.struct_size = size;
    ct_note("struct_size %zu", size);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_EQ_INT(solve(&whole), HONE_OK);
    CHECK_EQ_INT(s.report.struct_size, size);
    CHECK_EQ_INT(s.report.accepted, NRHS);
    CHECK_NEAR(s.report.forward_error, whole.report.forward_error, 0.0);
    CHECK_EQ_INT(s.report.threads, whole.report.threads);
    for (size_t at = size; at < sizeof s.report; at++)
      CHECK_EQ_INT(((unsigned char *)&s.report)[at], 0x5a);
  }
}

TEST(abi, fields_that_a_report_lacks_are_zero_in_its_texts) {
  char text[4096], expected[4096];
  hone_report r = HONE_REPORT_INIT, part = HONE_REPORT_INIT;
  const size_t size = offsetof(hone_report, rcond);
  part.n = 5;
  part.norm1 = 2.0;
  part.min_pivot_row = part.min_pivot_col = -1;
  r = part;
  r.min_pivot_row = 3;
  r.rcond = 0.25;
  r.block_rows = 4;
  strcpy(r.path, "a path");
  r.struct_size = size;
  CHECK_LT(0, hone_report_json(&part, expected, sizeof expected));
  CHECK_LT(0, hone_report_json(&r, text, sizeof text));
  CHECK_STR(text, expected);
  CHECK_LT(0, hone_report_text(&part, expected, sizeof expected));
  CHECK_LT(0, hone_report_text(&r, text, sizeof text));
  CHECK_STR(text, expected);
}

/* A short report without room for the row and column of an error has none, not
   row 0. */
TEST(abi, a_short_report_names_no_row_or_column) {
  char text[4096];
  hone_report r = HONE_REPORT_INIT;
  r.struct_size = offsetof(hone_report, bad_row);
  CHECK_LT(0, hone_report_text(&r, text, sizeof text));
  CHECK(strstr(text, "place") == NULL);
  CHECK_LT(0, hone_report_json(&r, text, sizeof text));
  CHECK_CONTAINS(text, "\"bad_row\": -1, \"bad_col\": -1");
}

TEST(abi, a_report_of_no_valid_size_has_no_text) {
  hone_report r = HONE_REPORT_INIT;
  char text[8];
  for (int i = 0; i < 6; i++) {
    const hone_report *given = i < 5 ? &r : NULL;
    r.struct_size = i < 5 ? bad_reports[i] : sizeof r;
    strcpy(text, "before");
    CHECK_EQ_INT(hone_report_json(given, text, sizeof text), 0);
    CHECK_STR(text, "");
    strcpy(text, "before");
    CHECK_EQ_INT(hone_report_text(given, text, sizeof text), 0);
    CHECK_STR(text, "");
    CHECK_EQ_INT(hone_report_text(given, NULL, 0), 0);
  }
}

/* Columns ------------------------------------------------------------------ */

TEST(abi, columns_of_no_valid_size_are_refused) {
  static const size_t bad[] = {0, 8, offsetof(hone_column, normwise_error) - 1,
                               sizeof(hone_column) + 1, SIZE_MAX};
  for (int i = 0; i < 5; i++) {
    sys s = make();
    hone_column columns[NRHS], before[NRHS];
    hone_solver *solver = factored(&s, NULL);
    memset(columns, 0x5a, sizeof columns);
    memcpy(before, columns, sizeof columns);
    s.options.columns = columns;
    s.options.column_size = bad[i];
    ct_note("column_size %zu", bad[i]);
    CHECK_EQ_INT(solve(&s), HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(solve_with(solver, &s), HONE_BAD_STRUCT_SIZE);
    CHECK_MEM_EQ(columns, before, sizeof columns);
    CHECK(untouched(&s));
    s.options.columns = NULL; /* then column_size is not read */
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_EQ_INT(solve_with(solver, &s), HONE_OK);
    hone_solver_destroy(&solver);
  }
}

/* The entries of an older version are shorter. */
static void check_older_columns(bool kept, size_t size) {
  sys s = make();
  hone_column columns[NRHS];
  unsigned char older[(NRHS + 1) * sizeof(hone_column)];
  hone_solver *solver = factored(&s, NULL);
  memset(older, 0x5a, sizeof older);
  s.options.columns = columns;
  CHECK_EQ_INT(kept ? solve_with(solver, &s) : solve(&s), HONE_OK);
  s.options.columns = (hone_column *)(void *)older;
  s.options.column_size = size;
  ct_note("column_size %zu, %s", size, kept ? "kept" : "once");
  CHECK_EQ_INT(kept ? solve_with(solver, &s) : solve(&s), HONE_OK);
  for (size_t j = 0; j < NRHS; j++)
    CHECK_MEM_EQ(older + j * size, &columns[j], size);
  for (size_t at = NRHS * size; at < sizeof older; at++)
    CHECK_EQ_INT(older[at], 0x5a);
  s.b[0] = (double)NAN; /* after an error the columns are unchanged */
  memset(older, 0x5a, sizeof older);
  CHECK_EQ_INT(kept ? solve_with(solver, &s) : solve(&s), HONE_NOT_FINITE_B);
  for (size_t at = 0; at < sizeof older; at++)
    CHECK_EQ_INT(older[at], 0x5a);
  hone_solver_destroy(&solver);
}

TEST(abi, older_columns_are_filled_one_beside_the_other) {
  static const size_t sizes[] = {offsetof(hone_column, normwise_error),
                                 offsetof(hone_column, residual_error),
                                 offsetof(hone_column, forward_error),
                                 sizeof(hone_column)};
  for (int i = 0; i < 4; i++) {
    check_older_columns(false, sizes[i]);
    check_older_columns(true, sizes[i]);
  }
}

/* Options and tuning ------------------------------------------------------- */

TEST(abi, fields_without_a_use_must_be_zero) {
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_solver *solver = NULL;
  sys s = make();
  s.options.tuning = &tuning;
  tuning.reserved = -1;
  CHECK_EQ_INT(solve(&s), HONE_BAD_OPTION);
  CHECK_EQ_INT(hone_solver_create(&solver, N, &s.options), HONE_BAD_OPTION);
  CHECK_EQ_INT(hone_memory_needed(N, 1, &s.options, NULL, NULL),
               HONE_BAD_OPTION);
  CHECK(untouched(&s));
  tuning.reserved = 0;
  CHECK_EQ_INT(solve(&s), HONE_OK);
}

TEST(abi, tuning_is_read_up_to_its_struct_size) {
  static const size_t bad[] = {0, 4, sizeof(hone_tuning) + 1, SIZE_MAX};
  hone_tuning tuning;
  sys s = make();
  s.options.tuning = &tuning;
  memset(&tuning, 0x5a, sizeof tuning);
  for (int i = 0; i < 4; i++) {
    tuning.struct_size = bad[i];
    CHECK_EQ_INT(solve(&s), HONE_BAD_STRUCT_SIZE);
    CHECK(untouched(&s));
  }
  tuning.arithmetic = HONE_ARITHMETIC_TF32; /* an older size: the fields behind
                                               it are not read */
  tuning.struct_size = offsetof(hone_tuning, pivoting);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  /* Now they are read, and pivoting is invalid. */
  tuning.struct_size = sizeof tuning;
  CHECK_EQ_INT(solve(&s), HONE_BAD_OPTION);
}

/* The solver keeps a copy of the tuning. */
TEST(abi, tuning_is_copied) {
  sys s = make();
  hone_tuning tuning = HONE_TUNING_INIT, same = HONE_TUNING_INIT;
  tuning.pivoting = same.pivoting = HONE_PIVOT_BLOCK;
  s.options.tuning = &tuning;
  hone_solver *solver = factored(&s, &s.options);
  memset(&tuning, 0x5a, sizeof tuning);
  s.options.tuning = &same;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_OK);
  same.pivoting = HONE_PIVOT_NONE;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_BAD_OPTION);
  hone_solver_destroy(&solver);
}

/* Options of one solve ----------------------------------------------------- */

TEST(abi, create_refuses_options_that_belong_to_one_solve) {
  sys s = make();
  hone_column columns[NRHS];
  hone_solver *solver;
  for (int i = 0; i < 4; i++) {
    hone_options o = HONE_OPTIONS_INIT;
    o.trans = i == 0 ? HONE_TRANS : HONE_NO_TRANS;
    o.x0 = i == 1 ? s.x : NULL;
    o.ldx0 = N;
    o.columns = i == 2 ? columns : NULL;
    o.error_bounds = i == 3 ? s.x : NULL;
    o.ld_error_bounds = N;
    solver = (hone_solver *)&s;
    ct_note("option %d", i);
    CHECK_EQ_INT(hone_solver_create(&solver, N, &o), HONE_BAD_OPTION);
    CHECK(solver == NULL);
  }
}

TEST(abi, a_solve_takes_trans_x0_and_columns) {
  sys s = make();
  hone_column columns[NRHS] = {{0}};
  double x0[N * NRHS];
  hone_solver *solver = factored(&s, NULL);
  s.options.trans = HONE_TRANS;
  s.options.columns = columns;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_OK);
  check_solved(&s, true);
  for (int j = 0; j < NRHS; j++)
    CHECK_EQ_INT(columns[j].digits > 0, 1);
  memcpy(x0, s.x, sizeof x0);
  s.options.x0 = x0;
  s.options.ldx0 = N - 1;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_BAD_LEADING_DIMENSION);
  s.options.ldx0 = N;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_OK);
  CHECK_EQ_INT(s.report.iterations, 0); /* because x0 is the solution */
  x0[0] = (double)NAN;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_NOT_FINITE_B);
  CHECK_EQ_INT(hone_solver_solve(solver, NRHS, s.b, N, s.x, N, NULL, NULL),
               HONE_OK);
  check_solved(&s, false);
  hone_solver_destroy(&solver);
}

static void *some_alloc(size_t bytes, void *ctx) {
  (void)ctx;
  return malloc(bytes);
}

static void some_free(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

/* Sets option number which to a valid value other than the default. Returns
   false if there is no such option. */
static bool set_option(int which, hone_options *o, hone_tuning *tuning) {
  int32_t *const whole[] = {
      &o->device,          &o->factor_precision, &o->structure,
      &o->layout,          &o->criterion,        &o->extra_precise,
      &o->max_iterations,  &o->threads,          &o->deterministic,
      &tuning->arithmetic, &tuning->pivoting,    &tuning->diagonal,
      &tuning->block_rows, &tuning->residuals};
  o->tuning = tuning;
  if (which < 14)
    *whole[which] = 1;
  else if (which == 14)
    o->tolerance = 1e-9;
  else if (which == 15)
    o->memory_limit_bytes = 100000000;
  else if (which == 16)
    o->device_memory_limit_bytes = 100000000;
  else if (which == 17) {
    o->alloc = some_alloc;
    o->free = some_free;
  } else
    return false;
  return true;
}

TEST(abi, a_solve_takes_no_options_that_contradict_the_solver) {
  sys s = make();
  hone_solver *plain = factored(&s, NULL);
  int which = 0;
  for (;; which++) {
    hone_options o = HONE_OPTIONS_INIT;
    hone_tuning tuning = HONE_TUNING_INIT;
    if (!set_option(which, &o, &tuning))
      break;
    ct_note("option %d", which);
    s = make();
    hone_solver *alike = factored(&s, &o);
    /* Zeros agree with any solver. */
    CHECK_EQ_INT(solve_with(alike, &s), HONE_OK);
    s = make();
    s.options = o;
    CHECK_EQ_INT(solve_with(plain, &s), HONE_BAD_OPTION);
    CHECK_EQ_INT(s.report.status, HONE_BAD_OPTION);
    CHECK(untouched(&s));
    CHECK_EQ_INT(solve_with(alike, &s), HONE_OK); /* equal options agree */
    hone_solver_destroy(&alike);
  }
  CHECK_EQ_INT(which, 18);
  hone_solver_destroy(&plain);
}

static int stop(void *user, const hone_progress *event) {
  (void)event;
  ++*(int *)user;
  return 1;
}

static int go_on(void *user, const hone_progress *event) {
  (void)event;
  ++*(int *)user;
  return 0;
}

/* The callback and the deadline of one solve replace the solver's. */
TEST(abi, a_solve_has_its_own_progress_and_deadline) {
  sys s = make();
  int calls = 0, stops = 0;
  s.options.factor_precision = HONE_FACTOR_SINGLE; /* x is corrected */
  s.options.progress = go_on;
  s.options.progress_user = &calls;
  hone_solver *solver = factored(&s, &s.options);
  CHECK_LT(0, calls);
  calls = 0;
  s.options.progress = stop;
  s.options.progress_user = &stops;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_INTERRUPTED);
  CHECK_EQ_INT(calls, 0);
  CHECK_LT(0, stops);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  stops = 0;
  /* The solver's callback again. */
  CHECK_EQ_INT(solve_with(solver, &s), HONE_OK);
  CHECK_LT(0, calls);
  CHECK_EQ_INT(stops, 0);
  s.options.deadline_s = 1e-12;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_INTERRUPTED);
  s.options.deadline_s = -1.0;
  CHECK_EQ_INT(solve_with(solver, &s), HONE_BAD_OPTION);
  hone_solver_destroy(&solver);
}
