/* SPDX-License-Identifier: BSD-3-Clause */
/* Every error has a reason in words that names the argument, the option or the
   place, in the report and in its text. */
#include "tests/unit/support.h"

#include "api/hone_tuning.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9, NRHS = 3, TEXT = 8192 };

static const double UNTOUCHED = -3.75e77;

/* A well-conditioned system with leading dimensions N. */
typedef struct sys {
  double a[N * N], b[N * NRHS], x[N * NRHS];
  hone_options options;
  hone_report report;
} sys;

static sys make(void) {
  sys s = {.options = HONE_OPTIONS_INIT, .report = HONE_REPORT_INIT};
  sup_rng rng = {17};
  sup_random(&rng, N, N, s.a, N);
  for (int i = 0; i < N; i++)
    s.a[i + i * N] += 4.0;
  sup_random(&rng, N, NRHS, s.b, N);
  for (int i = 0; i < N * NRHS; i++)
    s.x[i] = UNTOUCHED;
  return s;
}

static int once(sys *s) {
  return hone_solve(N, NRHS, s->a, N, s->b, N, s->x, N, &s->options,
                    &s->report);
}

static int kept(hone_solver *solver, sys *s) {
  return hone_solver_solve(solver, NRHS, s->b, N, s->x, N, &s->options,
                           &s->report);
}

static hone_solver *factored(const sys *s) {
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_create(&solver, N, NULL), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s->a, N, NULL), HONE_OK);
  return solver;
}

static bool untouched(const sys *s) {
  return sup_untouched(s->x, N * NRHS, UNTOUCHED);
}

static void check_reason(const hone_report *r, int status, const char *want) {
  char text[TEXT];
  CHECK_EQ_INT(r->status, status);
  CHECK_CONTAINS(r->reason, want);
  CHECK_LT(0, hone_report_text(r, text, sizeof text));
  CHECK_CONTAINS(text, want);
  CHECK_CONTAINS(text, "reason          ");
}

typedef struct case_ {
  int status;
  const char *want;
} case_;

TEST(reasons, a_refused_argument_is_named) {
  static const case_ cases[] = {
      {HONE_BAD_SIZE, "n is -1, not from 0 to 2^29"},
      {HONE_BAD_SIZE, "nrhs is -2, not from 0 to 2^29"},
      {HONE_NULL_POINTER, "a is NULL"},
      {HONE_NULL_POINTER, "b is NULL"},
      {HONE_NULL_POINTER, "x is NULL"},
      {HONE_BAD_LEADING_DIMENSION, "lda is 8, less than max(1, n) = 9"},
      {HONE_BAD_LEADING_DIMENSION, "ldb is 8, less"},
      {HONE_BAD_LEADING_DIMENSION, "ldx is 8, less"},
      {HONE_BAD_LEADING_DIMENSION, "ldx0 is 8, less"},
      {HONE_BAD_LEADING_DIMENSION, "a would span 2^62 bytes or more"},
      {HONE_BAD_OVERLAP, "x overlaps b"},
      {HONE_BAD_OVERLAP, "x overlaps options.x0"},
      {HONE_BAD_OVERLAP, "x overlaps A"}};
  for (int k = 0; k < 13; k++) {
    sys s = make();
    ct_note("%s", cases[k].want);
    s.options.x0 = k == 8 ? s.b : k == 11 ? s.x + 1 : NULL;
    s.options.ldx0 = k == 8 ? N - 1 : N;
    hone_solve(k == 0 ? -1 : N, k == 1 ? -2 : NRHS, k == 2 ? NULL : s.a,
               k == 5   ? N - 1
               : k == 9 ? INT64_MAX / 8
                        : N,
               k == 3 ? NULL : s.b, k == 6 ? N - 1 : N,
               k == 4    ? NULL
               : k == 10 ? s.b + 1
               : k == 12 ? s.a
                         : s.x,
               k == 7 ? N - 1 : N, &s.options, &s.report);
    check_reason(&s.report, cases[k].status, cases[k].want);
    CHECK(untouched(&s));
  }
}

static void *some_alloc(size_t bytes, void *ctx) {
  (void)ctx;
  return malloc(bytes);
}

static void *no_alloc(size_t bytes, void *ctx) {
  (void)ctx;
  (void)bytes;
  return NULL;
}

static void some_free(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

/* Spoils option number k; false: there are no more. */
static bool spoil(int k, hone_options *o, hone_tuning *t) {
  int32_t *const whole[] = {
      &o->device,         &o->factor_precision, &o->structure,
      &o->layout,         &o->criterion,        &o->trans,
      &o->max_iterations, &o->threads,          &t->arithmetic,
      &t->pivoting,       &t->diagonal,         &t->block_rows,
      &t->residuals,      &t->reserved};
  o->tuning = t;
  if (k < 14)
    *whole[k] = k == 6 || k == 7 ? -7 : 7;
  switch (k) {
  case 14:
    o->tolerance = (double)NAN;
    break;
  case 15:
    o->tolerance = 1.5;
    break;
  case 16:
    o->deadline_s = -1.0;
    break;
  case 17:
    o->memory_limit_bytes = -1;
    break;
  case 18:
    o->device_memory_limit_bytes = -1;
    break;
  case 19:
    o->alloc = some_alloc;
    break;
  case 20:
    o->free = some_free;
    break;
  case 21:
    o->triangle = 7;
    break;
  default:
    return k < 14;
  }
  return true;
}

TEST(reasons, a_refused_option_is_named) {
  static const char *const wants[] = {
      "options.device has the unknown value 7",
      "options.factor_precision has the unknown value 7",
      "options.structure has the unknown value 7",
      "options.layout has the unknown value 7",
      "options.criterion has the unknown value 7",
      "options.trans has the unknown value 7",
      "options.max_iterations is -7, not at least 0",
      "options.threads is -7, not at least 0",
      "tuning.arithmetic has the unknown value 7",
      "tuning.pivoting has the unknown value 7",
      "tuning.diagonal has the unknown value 7",
      "tuning.block_rows has the unknown value 7",
      "tuning.residuals has the unknown value 7",
      "tuning.reserved has the unknown value 7",
      "options.tolerance is nan",
      "options.tolerance is 1.5, not at most 1",
      "options.deadline_s is -1, not at least 0",
      "options.memory_limit_bytes is -1, not at least 0",
      "options.device_memory_limit_bytes is -1, not at least 0",
      "options.free is NULL and options.alloc is not",
      "options.alloc is NULL and options.free is not",
      "options.triangle has the unknown value 7"};
  sys s = make();
  hone_solver *solver = factored(&s);
  int k = 0;
  for (;; k++) {
    hone_tuning tuning = HONE_TUNING_INIT;
    s = make();
    if (!spoil(k, &s.options, &tuning))
      break;
    REQUIRE(k < 22);
    ct_note("%s", wants[k]);
    CHECK_EQ_INT(once(&s), HONE_BAD_OPTION);
    check_reason(&s.report, HONE_BAD_OPTION, wants[k]);
    hone_report_init(&s.report, sizeof s.report);
    CHECK_EQ_INT(kept(solver, &s), HONE_BAD_OPTION);
    check_reason(&s.report, HONE_BAD_OPTION, wants[k]);
    CHECK(untouched(&s));
  }
  CHECK_EQ_INT(k, 22);
  hone_solver_destroy(&solver);
}

TEST(reasons, an_option_that_contradicts_the_solver_is_named) {
  sys s = make();
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_solver *solver = factored(&s);
  s.options.criterion = HONE_CRITERION_NORMWISE;
  CHECK_EQ_INT(kept(solver, &s), HONE_BAD_OPTION);
  check_reason(&s.report, HONE_BAD_OPTION, "options.criterion is neither 0");
  s.options.criterion = 0;
  s.options.tolerance = 0.5;
  CHECK_EQ_INT(kept(solver, &s), HONE_BAD_OPTION);
  check_reason(&s.report, HONE_BAD_OPTION, "options.tolerance is neither 0");
  s.options.tolerance = 0.0;
  s.options.alloc = some_alloc;
  s.options.free = some_free;
  CHECK_EQ_INT(kept(solver, &s), HONE_BAD_OPTION);
  check_reason(&s.report, HONE_BAD_OPTION, "options.alloc is neither 0");
  s.options.alloc = NULL;
  s.options.free = NULL;
  s.options.tuning = &tuning;
  tuning.pivoting = HONE_PIVOT_NONE;
  CHECK_EQ_INT(kept(solver, &s), HONE_BAD_OPTION);
  check_reason(&s.report, HONE_BAD_OPTION, "tuning.pivoting is neither 0");
  hone_solver_destroy(&solver);
}

TEST(reasons, a_refused_size_of_a_struct_is_named) {
  sys s = make();
  hone_column columns[NRHS];
  hone_tuning tuning = HONE_TUNING_INIT;
  s.options.struct_size = 7;
  CHECK_EQ_INT(once(&s), HONE_BAD_STRUCT_SIZE);
  check_reason(&s.report, HONE_BAD_STRUCT_SIZE,
               "options.struct_size is 7, not from 8 to ");
  s = make();
  s.options.columns = columns;
  s.options.column_size = 23;
  CHECK_EQ_INT(once(&s), HONE_BAD_STRUCT_SIZE);
  check_reason(&s.report, HONE_BAD_STRUCT_SIZE,
               "options.column_size is 23, not from 24 to 48");
  s = make();
  s.options.tuning = &tuning;
  tuning.struct_size = 0;
  CHECK_EQ_INT(once(&s), HONE_BAD_STRUCT_SIZE);
  check_reason(&s.report, HONE_BAD_STRUCT_SIZE,
               "tuning.struct_size is 0, not from 8 to ");
}

TEST(reasons, a_solver_that_cannot_solve_yet_says_so) {
  sys s = make();
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_factor(NULL, s.a, N, &s.report), HONE_NULL_POINTER);
  check_reason(&s.report, HONE_NULL_POINTER, "solver is NULL");
  CHECK_EQ_INT(kept(NULL, &s), HONE_NULL_POINTER);
  check_reason(&s.report, HONE_NULL_POINTER, "solver is NULL");
  CHECK_EQ_INT(hone_solver_create(&solver, N, NULL), HONE_OK);
  CHECK_EQ_INT(kept(solver, &s), HONE_NOT_FACTORED);
  check_reason(&s.report, HONE_NOT_FACTORED, "hone_solver_factor");
  hone_solver_destroy(&solver);
}

/* Element (3, 1), in the caller's numbering. */
TEST(reasons, what_is_not_finite_is_named_with_its_place) {
  static const double bad[] = {(double)NAN, (double)INFINITY,
                               -(double)INFINITY};
  static const char *const names[] = {"NaN", "Inf", "-Inf"};
  for (int k = 0; k < 12; k++) {
    sys s = make();
    char want[64];
    double x0[N * NRHS] = {0};
    const int which = k / 3;
    s.options.layout = which == 1 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.x0 = x0;
    s.options.ldx0 = N;
    *(which == 0   ? &s.a[3 + N]
      : which == 1 ? &s.a[1 + 3 * N]
      : which == 2 ? &s.b[3 + N]
                   : &x0[3 + N]) = bad[k % 3];
    snprintf(want, sizeof want, "%s(3, 1) is %s",
             which < 2    ? "A"
             : which == 2 ? "b"
                          : "options.x0",
             names[k % 3]);
    ct_note("%s, case %d", want, k);
    const int status = which < 2 ? HONE_NOT_FINITE_A : HONE_NOT_FINITE_B;
    CHECK_EQ_INT(once(&s), status);
    CHECK_STR(s.report.reason, want);
    check_reason(&s.report, status, want);
  }
}

/* Rows are the caller's rows in words and in numbers. */
TEST(reasons, zeros_are_named_in_the_callers_numbering) {
  for (int k = 0; k < 16; k++) {
    const bool row_major = k & 1, row = k & 2, column = k & 4, update = k & 8;
    sys s = make(), t = make();
    char want[64] = "";
    s.options.layout = row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    for (int i = 0; i < N; i++) {
      if (row)
        s.a[row_major ? i + 6 * N : 6 + i * N] = 0.0;
      if (column)
        s.a[row_major ? 2 + i * N : i + 2 * N] = 0.0;
    }
    if (row)
      strcat(want, "A: row 6 is zero");
    if (column)
      strcat(want, row ? "; A: column 2 is zero" : "A: column 2 is zero");
    ct_note("%s, case %d", want, k);
    int st;
    if (update) {
      hone_solver *solver = NULL;
      CHECK_EQ_INT(hone_solver_create(&solver, N, &s.options), HONE_OK);
      CHECK_EQ_INT(hone_solver_factor(solver, t.a, N, NULL), HONE_OK);
      st = hone_solver_update(solver, s.a, N, &s.report);
      hone_solver_destroy(&solver);
    } else {
      st = once(&s);
    }
    CHECK_EQ_INT(st, row || column ? HONE_SINGULAR : HONE_OK);
    CHECK_STR(s.report.reason, want);
    CHECK_EQ_INT(s.report.bad_row, row ? 6 : -1);
    CHECK_EQ_INT(s.report.bad_col, column ? 2 : -1);
  }
}

/* Ones, so that elimination is exact, with two columns alike. */
TEST(reasons, a_zero_pivot_is_named_in_the_callers_numbering) {
  for (int row_major = 0; row_major < 2; row_major++) {
    sys s = make();
    for (int i = 0; i < N * N; i++)
      s.a[i] = i % (N + 1) == 0;
    s.a[2 + 5 * N] = s.a[5 + 2 * N] = 1.0;
    s.options.layout = row_major;
    CHECK_EQ_INT(once(&s), HONE_SINGULAR);
    CHECK_CONTAINS(s.report.reason, row_major
                                        ? "A: the pivot of row 5 is zero"
                                        : "A: the pivot of column 5 is zero");
    CHECK_EQ_INT(s.report.bad_row, row_major ? 5 : -1);
    CHECK_EQ_INT(s.report.bad_col, row_major ? -1 : 5);
  }
}

/* On a GPU Cholesky inspects one triangle. Fault 0: NaN below or above the
   diagonal; 1: a row or a column of zeros, where the other is not zero. */
static void check_fault(int fault, bool above) {
  enum { ORDER = 40, AT = 7 };
  sup_rng rng = {9};
  double a[ORDER * ORDER], b[ORDER], x[ORDER];
  hone_options o = HONE_OPTIONS_INIT;
  hone_report report = HONE_REPORT_INIT;
  sup_matrix_spd(&rng, ORDER, 10.0, a);
  sup_random(&rng, ORDER, 1, b, ORDER);
  for (int i = 0; i < ORDER && fault == 1; i++)
    a[above ? i + AT * ORDER : AT + i * ORDER] = 0.0;
  if (fault == 0)
    a[above ? AT + 30 * ORDER : 30 + AT * ORDER] = (double)NAN;
  o.device = HONE_DEVICE_CUDA;
  o.structure = HONE_STRUCTURE_SPD;
  ct_note("fault %d, above %d", fault, above);
  CHECK_EQ_INT(hone_solve(ORDER, 1, a, ORDER, b, ORDER, x, ORDER, &o, &report),
               fault == 0 ? HONE_NOT_FINITE_A : HONE_SINGULAR);
  if (fault == 0)
    CHECK_CONTAINS(report.reason, above ? "A(7, 30) is NaN" : "A(30, 7) is");
  else
    CHECK_CONTAINS(report.reason, above ? "A: column 7 is" : "A: row 7 is");
  const int rows[2][2] = {{30, AT}, {AT, -1}},
            cols[2][2] = {{AT, 30}, {-1, AT}};
  CHECK_EQ_INT(report.bad_row, rows[fault][above]);
  CHECK_EQ_INT(report.bad_col, cols[fault][above]);
}

TEST(reasons, a_fault_outside_the_triangle_that_cholesky_reads_is_found) {
  char why[128];
  if (!hone_engine_cholesky_cuda.probe(why, sizeof why))
    SKIP(why);
  for (int k = 0; k < 4; k++)
    check_fault(k / 2, k % 2);
}

TEST(reasons, memory_that_cannot_be_had_is_named) {
  sys s = make();
  s.options.memory_limit_bytes = 1000;
  CHECK_EQ_INT(once(&s), HONE_NO_MEMORY);
  check_reason(&s.report, HONE_NO_MEMORY,
               "would exceed options.memory_limit_bytes, which is 1000");
  s.options.memory_limit_bytes = 0;
  s.options.alloc = no_alloc;
  s.options.free = some_free;
  CHECK_EQ_INT(once(&s), HONE_NO_MEMORY);
  check_reason(&s.report, HONE_NO_MEMORY, "no memory for ");
  CHECK(untouched(&s));
}

static int stop(void *user, const hone_progress *event) {
  return strcmp(event->phase, (const char *)user) == 0;
}

TEST(reasons, who_stopped_a_call_is_named) {
  char phase[] = "inspect", other[] = "refine";
  sys s = make();
  s.options.deadline_s = 1e-9;
  CHECK_EQ_INT(once(&s), HONE_CANCELLED);
  check_reason(&s.report, HONE_CANCELLED,
               "options.deadline_s had passed in the phase \"inspect\"");
  s = make();
  s.options.progress = stop;
  s.options.progress_user = phase;
  CHECK_EQ_INT(once(&s), HONE_CANCELLED);
  check_reason(&s.report, HONE_CANCELLED,
               "options.progress asked to stop in the phase \"inspect\"");
  s = make();
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  s.options.progress = stop;
  s.options.progress_user = other;
  CHECK_EQ_INT(once(&s), HONE_INTERRUPTED);
  check_reason(&s.report, HONE_INTERRUPTED,
               "options.progress asked to stop in the phase \"refine\"");
  s.options.progress = NULL;
  CHECK_EQ_INT(once(&s), HONE_OK);
  CHECK_STR(s.report.reason, "");
}

TEST(reasons, a_device_that_is_not_there_is_named) {
  sys s = make();
  if (cuda_usable())
    SKIP("there is a device");
  s.options.device = HONE_DEVICE_CUDA;
  CHECK_EQ_INT(once(&s), HONE_NO_DEVICE);
  check_reason(&s.report, HONE_NO_DEVICE, "options.device: ");
  CHECK(strlen(s.report.reason) > strlen("options.device: "));
}

TEST(reasons, an_overflow_has_a_reason) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = make();
    s.options.factor_precision = start;
    for (int i = 0; i < N * N; i++)
      s.a[i] *= 1e-200;
    for (int i = 0; i < N * NRHS; i++)
      s.b[i] *= 1e200;
    CHECK_EQ_INT(once(&s), HONE_OVERFLOW);
    CHECK_LT(0, strlen(s.report.reason));
  }
}
