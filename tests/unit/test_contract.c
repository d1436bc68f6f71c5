/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h: what each status means, what bad input gets, what
   hard numbers get, what is left alone. Whatever the system, a status of 0
   is measured again in quadruple precision, and an error must have left x as
   it was. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <cblas.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double UNTOUCHED = -3.75e77;

/* A system as it is handed over. Leading dimensions may be larger than n:
   what lies between is NaN. */
typedef struct sys {
  int64_t n, nrhs, lda, ldb, ldx;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} sys;

static sys make_padded(int64_t n, int64_t nrhs, int64_t pad) {
  sys s = {.n = n, .nrhs = nrhs, .lda = n + pad, .ldb = n + pad};
  sup_rng rng = {(uint64_t)(n + 1000 * nrhs)};
  s.ldx = s.lda;
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(s.ldb * nrhs, (double)NAN);
  s.x = sup_filled(s.ldx * nrhs, UNTOUCHED);
  sup_random(&rng, n, n, s.a, s.lda);
  for (int64_t i = 0; i < n; i++)
    s.a[i + i * s.lda] += sqrt((double)n) + 1.0;
  sup_random(&rng, n, nrhs, s.b, s.ldb);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  memset(&s.report, 0xff, sizeof s.report);
  s.report.struct_size = sizeof s.report;
  return s;
}

/* Random, well-conditioned, tight. */
static sys make(int64_t n, int64_t nrhs) { return make_padded(n, nrhs, 0); }

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* b = A ones. */
static void set_consistent(sys *s) {
  double *ones = sup_filled(s->n, 1.0);
  for (int64_t c = 0; c < s->nrhs; c++)
    sup_multiply(s->n, s->a, s->lda, false, ones, s->b + c * s->ldb);
  sup_free(ones);
}

static void scale(sys *s, double a, double b) {
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++)
      s->a[i + j * s->lda] *= a;
  for (int64_t c = 0; c < s->nrhs; c++)
    for (int64_t i = 0; i < s->n; i++)
      s->b[i + c * s->ldb] *= b;
}

static int call(sys *s) {
  return hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->ldb, s->x, s->ldx,
                    &s->options, &s->report);
}

/* What every call must keep to, whatever its status. */
static void check_honest(const sys *s, int st) {
  CHECK_EQ_INT(s->report.status, st);
  CHECK_EQ_INT(s->report.n, s->n);
  CHECK_EQ_INT(s->report.nrhs, s->nrhs);
  CHECK(strcmp(hone_status_text(st), hone_status_text(INT_MAX)) != 0);
  if (st < 0) {
    CHECK(sup_untouched(s->x, s->ldx * s->nrhs, UNTOUCHED));
    return;
  }
  for (int64_t c = 0; c < s->nrhs; c++) {
    double omega = sup_backward_error(s->n, s->a, s->lda, false,
                                      s->x + c * s->ldx, s->b + c * s->ldb);
    if (st == HONE_OK && s->options.criterion == HONE_CRITERION_COMPONENTWISE)
      CHECK_LE(omega, SUP_LIMIT);
    else
      CHECK(isfinite(omega)); /* and so is x */
  }
}

static int solve_honestly(sys *s) {
  int st = call(s);
  check_honest(s, st);
  return st;
}

/* Solves from fresh, checks the status and that an error left x alone. */
static void expect(sys *s, int status) {
  CHECK_EQ_INT(solve_honestly(s), status);
}

/* Numbers and texts ---------------------------------------------------------*/

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
  sys s = make(4, 2);
  for (int which = 0; which < 3; which++) {
    int st =
        hone_solve(4, 2, which == 0 ? NULL : s.a, 4, which == 1 ? NULL : s.b, 4,
                   which == 2 ? NULL : s.x, 4, &s.options, &s.report);
    ct_note("argument %d", which);
    CHECK_EQ_INT(st, HONE_NULL_POINTER);
    check_honest(&s, st);
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
  discard(&s);
}

TEST(contract, takes_null_for_what_is_optional) {
  sys s = make(4, 2);
  CHECK_EQ_INT(hone_solve(4, 2, s.a, 4, s.b, 4, s.x, 4, NULL, NULL), HONE_OK);
  CHECK_LE(sup_backward_error(4, s.a, 4, false, s.x, s.b), SUP_LIMIT);
  CHECK_EQ_INT(hone_memory_needed(4, 2, NULL, NULL, NULL), HONE_OK);
  discard(&s);
}

TEST(contract, refuses_sizes_that_are_negative_or_too_large) {
  static const int64_t bad[] = {-1, INT64_MIN, INT32_MAX, INT64_MAX};
  sys s = make(3, 1);
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
  discard(&s);
}

TEST(contract, refuses_leading_dimensions_that_cannot_be) {
  static const int64_t bad[] = {2, 0, -3, INT64_MIN, INT64_MAX, INT64_MAX / 8};
  sys s = make(3, 2);
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
      check_honest(&s, st);
    }
  }
  s.options.x0 = NULL; /* then ldx0 means nothing */
  s.options.ldx0 = -1;
  expect(&s, HONE_OK);
  sup_free(x0);
  discard(&s);
}

/* n = 0 and nrhs = 0 need no arrays, but leading dimensions all the same. */
TEST(contract, solves_empty_systems) {
  sys s = make(3, 2);
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
  discard(&s);
}

TEST(contract, solves_systems_of_one_and_two_unknowns) {
  for (int64_t n = 1; n <= 2; n++)
    for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
      sys s = make(n, 3);
      s.options.factor_precision = start;
      expect(&s, HONE_OK);
      discard(&s);
    }
}

/* Options ------------------------------------------------------------------ */

TEST(contract, refuses_a_struct_size_that_is_missing_or_from_the_future) {
  static const size_t bad[] = {0,
                               1,
                               sizeof(size_t) - 1,
                               sizeof(hone_options) + 1,
                               sizeof(hone_options) + 64,
                               SIZE_MAX};
  sys s = make(3, 1);
  hone_solver *solver = (hone_solver *)&s;
  for (int i = 0; i < 6; i++) {
    ct_note("struct_size %zu", bad[i]);
    s.options.struct_size = bad[i];
    expect(&s, HONE_BAD_STRUCT_SIZE);
    CHECK_EQ_INT(hone_solver_create(&solver, 3, &s.options),
                 HONE_BAD_STRUCT_SIZE);
    CHECK(solver == NULL);
    CHECK_EQ_INT(hone_memory_needed(3, 1, &s.options, NULL, NULL),
                 HONE_BAD_STRUCT_SIZE);
  }
  discard(&s);
}

/* A caller compiled against an older version: its struct ends earlier, and
   what lies behind it is not options. */
TEST(contract, takes_an_older_struct_and_reads_nothing_behind_it) {
  static const size_t ends[] = {sizeof(size_t),
                                offsetof(hone_options, layout),
                                offsetof(hone_options, threads),
                                offsetof(hone_options, tolerance),
                                offsetof(hone_options, progress),
                                offsetof(hone_options, alloc)};
  for (int i = 0; i < 6; i++) {
    sys s = make(5, 1);
    ct_note("struct_size %zu", ends[i]);
    memset(&s.options, 0xa5, sizeof s.options);
    hone_options_init(&s.options, ends[i]);
    CHECK_EQ_INT(s.options.struct_size, ends[i]);
    CHECK_EQ_INT(((unsigned char *)&s.options)[ends[i]], 0xa5);
    int st = call(&s);
    s.options = (hone_options)HONE_OPTIONS_INIT;
    CHECK_EQ_INT(st, HONE_OK);
    check_honest(&s, st);
    discard(&s);
  }
}

typedef void (*spoiler)(hone_options *o);
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

TEST(contract, refuses_every_option_that_does_not_exist) {
  static const spoiler spoilers[] = {
      bad_device,    bad_device_below,    bad_start,     bad_start_below,
      bad_layout,    bad_layout_below,    bad_trans,     bad_trans_below,
      bad_criterion, bad_criterion_below, bad_threads,   bad_iterations,
      bad_tolerance, nan_tolerance,       inf_tolerance, bad_deadline,
      nan_deadline,  bad_limit,           alloc_alone,   free_alone};
  for (size_t i = 0; i < sizeof spoilers / sizeof *spoilers; i++) {
    sys s = make(3, 1);
    hone_solver *solver = (hone_solver *)&s;
    ct_note("spoiler %zu", i);
    spoilers[i](&s.options);
    expect(&s, HONE_BAD_OPTION);
    CHECK_EQ_INT(hone_solver_create(&solver, 3, &s.options), HONE_BAD_OPTION);
    CHECK(solver == NULL);
    CHECK_EQ_INT(hone_memory_needed(3, 1, &s.options, NULL, NULL),
                 HONE_BAD_OPTION);
    discard(&s);
  }
}

TEST(contract, refuses_to_solve_before_a_matrix_is_factored) {
  sys s = make(3, 1);
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
      sup_solver_solve(solver, 2, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_BAD_OPTION);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.a, 3, NULL, 0, NULL, NULL),
      HONE_BAD_OVERLAP);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, 3, s.x, 3, NULL, 0, NULL, NULL),
      HONE_OK);
  CHECK_LE(sup_backward_error(3, s.a, 3, false, s.x, s.b), SUP_LIMIT);
  hone_solver_destroy(&solver);
  discard(&s);
}

/* What is not a number ------------------------------------------------------*/

TEST(contract, says_where_a_is_not_finite) {
  static const double bad[] = {(double)NAN, (double)INFINITY,
                               -(double)INFINITY};
  static const int64_t places[][2] = {{0, 0}, {7, 2}, {2, 7}, {8, 8}};
  for (int layout = 0; layout < 2; layout++)
    for (int k = 0; k < 12; k++) {
      const int64_t *at = places[k / 3];
      sys s = make_padded(9, 1, 2);
      ct_note("layout %d, %g at %d, %d", layout, bad[k % 3], (int)at[0],
              (int)at[1]);
      s.options.layout = layout;
      s.a[layout ? at[1] + at[0] * s.lda : at[0] + at[1] * s.lda] = bad[k % 3];
      expect(&s, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(s.report.bad_row, at[0]);
      CHECK_EQ_INT(s.report.bad_col, at[1]);
      discard(&s);
    }
}

TEST(contract, says_where_b_or_x0_is_not_finite) {
  static const double bad[] = {(double)NAN, (double)INFINITY,
                               -(double)INFINITY};
  for (int k = 0; k < 6; k++) {
    sys s = make(9, 3);
    double *x0 = sup_filled(27, 0.0);
    ct_note("%g in %s", bad[k % 3], k < 3 ? "b" : "x0");
    s.options.x0 = x0;
    s.options.ldx0 = 9;
    (k < 3 ? s.b : x0)[4 + 2 * 9] = bad[k % 3];
    expect(&s, HONE_NOT_FINITE_B);
    CHECK_EQ_INT(s.report.bad_row, 4);
    CHECK_EQ_INT(s.report.bad_col, 2);
    sup_free(x0);
    discard(&s);
  }
}

/* Large finite numbers are not Inf, even where their sums are. */
TEST(contract, does_not_mistake_sums_that_overflow_for_infinity) {
  sys s = make(20, 1);
  for (int64_t i = 0; i < 400; i++)
    s.a[i] = s.a[i] * 0x1.8p1020;
  set_consistent(&s);
  for (int64_t i = 0; i < 20; i++)
    CHECK(isfinite(s.b[i]));
  expect(&s, HONE_OK);
  for (int64_t i = 0; i < 20; i++)
    s.b[i] = (i % 2 ? -DBL_MAX : DBL_MAX);
  solve_honestly(&s);
  discard(&s);
}

/* Singular ----------------------------------------------------------------- */

TEST(contract, says_which_row_or_column_is_zero) {
  for (int k = 0; k < 8; k++) {
    bool row = k & 1, row_major = k & 2, start_single = k & 4;
    sys s = make(9, 1);
    ct_note("%s 6 is zero, %s", row ? "row" : "column",
            row_major ? "row-major" : "column-major");
    s.options.layout = row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.factor_precision =
        start_single ? HONE_FACTOR_SINGLE : HONE_FACTOR_AUTO;
    for (int64_t i = 0; i < 9; i++)
      s.a[row == row_major ? i + 6 * 9 : 6 + i * 9] = i % 2 ? 0.0 : -0.0;
    expect(&s, HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_row, row ? 6 : -1);
    CHECK_EQ_INT(s.report.bad_col, row ? -1 : 6);
    discard(&s);
  }
}

/* Small integers of rank n - 1: elimination is exact and meets a zero. */
static void make_integer(sys *s, bool repeat) {
  const int64_t n = s->n;
  for (int64_t k = 0; k < n * n; k++) {
    int64_t i = k % n, j = k / n;
    if (repeat) /* the unit matrix; the last column repeats the first */
      s->a[k] = i == j || (i == 0 && j == n - 1) || (i == n - 1 && j == 0);
    else /* (1, -2, 1, 0, ...) is in the null space */
      s->a[k] = (double)(i + j + (i == j && i > 2));
  }
}

TEST(contract, never_accepts_an_exactly_singular_integer_matrix) {
  for (int64_t n = 3; n <= 9; n++)
    for (int k = 0; k < 6; k++) {
      sys s = make(n, 2);
      ct_note("n %d, start %d, kind %d", (int)n, k / 2, k % 2);
      s.options.factor_precision = k / 2;
      make_integer(&s, k % 2);
      set_consistent(&s);
      CHECK(solve_honestly(&s) != HONE_OK);
      CHECK_EQ_INT(s.report.accepted, 0);
      discard(&s);
    }
}

enum { DUPLICATE_COLUMNS, DUPLICATE_ROWS, COMBINED_COLUMNS, LOW_RANK, KINDS };
static const char *const kind_names[KINDS] = {
    "two equal columns", "two equal rows", "a combination of columns",
    "rank n / 2"};

static void make_singular(sys *s, int kind) {
  const int64_t n = s->n;
  for (int64_t i = 0; i < n; i++) {
    if (kind == DUPLICATE_COLUMNS)
      s->a[i + (n - 1) * n] = s->a[i + n];
    if (kind == DUPLICATE_ROWS)
      s->a[n - 2 + i * n] = s->a[i * n];
    if (kind == COMBINED_COLUMNS)
      s->a[i + n / 2 * n] =
          0.5 * s->a[i] - 0.25 * s->a[i + n] + s->a[i + (n - 1) * n];
    for (int64_t j = n / 2; kind == LOW_RANK && j < n; j++)
      s->a[i + j * n] = s->a[i + (j - n / 2) * n] + s->a[i];
  }
}

TEST(contract, never_accepts_a_numerically_singular_matrix) {
  static const int64_t orders[] = {5, 30, 130, 300};
  for (int k = 0; k < 4 * KINDS * 3; k++) {
    sys s = make(orders[k % 4], 1);
    int kind = k / 4 % KINDS, criterion = k / 4 / KINDS;
    make_singular(&s, kind);
    set_consistent(&s); /* the residual can be made small */
    for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
      ct_note("%s, n %d, criterion %d, start %d", kind_names[kind], (int)s.n,
              criterion, start);
      s.options.factor_precision = start;
      s.options.criterion = criterion;
      for (int64_t i = 0; i < s.n; i++)
        s.x[i] = UNTOUCHED;
      int st = solve_honestly(&s);
      CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR ||
            st == HONE_NOT_CONVERGED);
      CHECK_EQ_INT(s.report.accepted, 0);
    }
    discard(&s);
  }
}

TEST(contract, never_accepts_singular_matrices_of_mixed_units) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int64_t n = 20; n <= 160; n += 140) {
      sys s = make(n, 1);
      ct_note("%s, n %d", kind_names[kind], (int)n);
      make_singular(&s, kind);
      for (int64_t j = 0; j < n; j++) /* by powers of two: still singular */
        for (int64_t i = 0; i < n; i++)
          s.a[i + j * n] =
              ldexp(s.a[i + j * n], (int)(i * 37 % 101 + j * 11 % 101) - 100);
      set_consistent(&s);
      CHECK(solve_honestly(&s) != HONE_OK);
      discard(&s);
    }
}

TEST(contract, never_accepts_the_hilbert_matrix_of_order_20) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++)
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      sys s = make(20, 1);
      s.options.factor_precision = start;
      s.options.criterion = criterion;
      for (int64_t i = 0; i < 400; i++)
        s.a[i] = 1.0 / (double)(i / 20 + i % 20 + 1);
      set_consistent(&s);
      CHECK(solve_honestly(&s) != HONE_OK);
      discard(&s);
    }
}

/* Whenever status is 0, the bound on the forward error holds. */
TEST(contract, bounds_the_forward_error_of_what_it_accepts) {
  for (int k = 0; k < 17 * 3; k++) {
    sys s = make(k % 2 ? 40 : 140, 1);
    sup_rng rng = {(uint64_t)k};
    hone_column column;
    double cond = pow(10.0, k / 3);
    ct_note("condition %g, n %d", cond, (int)s.n);
    sup_matrix_cond(&rng, s.n, k % 3 == 2 ? SUP_ONE_SMALL : SUP_GEOMETRIC, cond,
                    s.a, s.n);
    double *x_true = sup_filled(s.n, 1.0);
    for (int64_t i = 0; i < s.n; i++)
      x_true[i] = sup_uniform(&rng);
    sup_multiply(s.n, s.a, s.n, false, x_true, s.b);
    s.options.columns = &column;
    int st = solve_honestly(&s);
    CHECK_LE(0, st);
    if (cond <= 1e12)
      CHECK_EQ_INT(st, HONE_OK);
    if (st == HONE_OK) { /* 1-norms; b was rounded once more */
      double error = 0.0, size = 0.0;
      for (int64_t i = 0; i < s.n; i++) {
        error += fabs(s.x[i] - x_true[i]);
        size += fabs(s.x[i]);
      }
      CHECK_LE(error / size, column.forward_error + 2.0 * cond * SUP_EPS);
      CHECK_LT(column.forward_error, 1.0);
    }
    sup_free(x_true);
    discard(&s);
  }
}

/* Range -------------------------------------------------------------------- */

/* One entry far outside of single precision beside ordinary ones. */
TEST(contract, solves_with_entries_that_overflow_or_vanish_in_single) {
  static const double entries[] = {1e39,   -1e39, 1e-42,  3e-306, 5e-324,
                                   1e-310, 1e150, -1e300, 1e-200};
  for (int k = 0; k < 9 * 2 * 2; k++) {
    sys s = make(k % 2 ? 40 : 6, 2);
    bool diagonal = k & 2;
    ct_note("%g %s, n %d", entries[k / 4], diagonal ? "on the diagonal" : "off",
            (int)s.n);
    s.a[diagonal ? 3 + 3 * s.n : 1 + 4 * s.n] = entries[k / 4];
    s.a[0] = 5.0;
    s.options.factor_precision = HONE_FACTOR_SINGLE;
    set_consistent(&s);
    expect(&s, HONE_OK);
    discard(&s);
  }
}

TEST(contract, solves_a_row_of_3e_306_next_to_a_5) {
  static const double rows[] = {3e-306, 1e-42, 1e39, 1e290};
  for (int k = 0; k < 16; k++) {
    sys s = make(k & 4 ? 30 : 2, 1);
    ct_note("%s of %g, n %d", k & 8 ? "column" : "row", rows[k % 4], (int)s.n);
    s.a[0] = 5.0;
    for (int64_t j = 0; j < s.n; j++)
      s.a[k & 8 ? j + s.n : 1 + j * s.n] *= rows[k % 4];
    set_consistent(&s);
    expect(&s, HONE_OK);
    discard(&s);
  }
}

TEST(contract, solves_matrices_and_right_hand_sides_of_any_size) {
  static const struct {
    double a, b;
  } cases[] = {{1e300, 1.0},     {1e-300, 1.0},    {1e300, 1e300},
               {1e-300, 1e-300}, {1e-305, 1e-305}, {1.0, 1e-60},
               {1.0, 1e200},     {1.0, 1e300},     {1e-300, 1e-310},
               {1e-50, 1.0},     {1e-200, 1e-150}, {1e150, 1e-100},
               {0x1p-60, 1e250}, {1e-42, 1.0},     {1e39, 1.0}};
  for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
    sys s = make(k % 2 ? 140 : 10, 2);
    ct_note("A %g, b %g, n %d", cases[k / 2].a, cases[k / 2].b, (int)s.n);
    scale(&s, cases[k / 2].a, cases[k / 2].b);
    expect(&s, HONE_OK);
    discard(&s);
  }
}

/* Entries that are denormal have few bits, but they are the entries. */
TEST(contract, solves_a_matrix_of_denormal_numbers) {
  for (int k = 0; k < 4; k++) {
    sys s = make(k % 2 ? 150 : 12, 1);
    ct_note("n %d, x about 1e%d", (int)s.n, k < 2 ? 0 : 20);
    scale(&s, 1e-310, k < 2 ? 1e-310 : 1e-290);
    expect(&s, HONE_OK);
    discard(&s);
  }
}

/* x is denormal: 4 eps cannot be had, which is to be said. */
TEST(contract, is_honest_about_a_solution_that_is_denormal) {
  for (int k = 0; k < 3; k++) {
    sys s = make(20, 1);
    ct_note("case %d", k);
    scale(&s, k == 0 ? 1.0 : 1e100, k == 2 ? 1e-250 : 1e-310);
    CHECK(solve_honestly(&s) != HONE_OK);
    discard(&s);
  }
}

TEST(contract, finds_a_solution_near_1e50) {
  sys s = make(50, 1);
  scale(&s, 1e-25, 1e25);
  expect(&s, HONE_OK);
  double size = 0.0;
  for (int64_t i = 0; i < s.n; i++)
    size = fmax(size, fabs(s.x[i]));
  CHECK_LE(1e47, size);
  CHECK_LE(size, 1e52);
  discard(&s);
}

TEST(contract, says_that_a_solution_overflows) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = make(20, 1);
    s.options.factor_precision = start;
    scale(&s, 1e-200, 1e200);
    expect(&s, HONE_OVERFLOW);
    discard(&s);
  }
}

TEST(contract, solves_the_columns_that_do_not_overflow) {
  sys s = make(20, 3);
  hone_column columns[3];
  scale(&s, 1e-200, 1.0);
  for (int64_t i = 0; i < 20; i++)
    s.b[i + 20] *= 1e200;
  s.options.columns = columns;
  CHECK_EQ_INT(call(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.report.accepted, 2);
  for (int c = 0; c < 3; c++) {
    CHECK_EQ_INT(columns[c].status, c == 1 ? HONE_OVERFLOW : HONE_OK);
    if (c != 1)
      CHECK_LE(
          sup_backward_error(20, s.a, 20, false, s.x + c * 20, s.b + c * 20),
          SUP_LIMIT);
  }
  CHECK(sup_untouched(s.x + 20, 20, UNTOUCHED));
  discard(&s);
}

TEST(contract, solves_for_zero) {
  sys s = make(150, 3);
  memset(s.b + 150, 0, 150 * sizeof *s.b);
  expect(&s, HONE_OK);
  CHECK(sup_untouched(s.x + 150, 150, 0.0));
  for (int criterion = 1; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    s.options.criterion = criterion;
    ct_note("criterion %d", criterion);
    expect(&s, HONE_OK);
    CHECK(sup_untouched(s.x + 150, 150, 0.0));
  }
  discard(&s);
}

/* A start of zeros is what many callers have at hand. */
TEST(contract, solves_from_any_finite_start) {
  static const double starts[] = {0.0, 1.0, -1e300, DBL_MAX, 1e-310, DBL_MIN};
  for (int k = 0; k < 6 * 3 * 2; k++) {
    sys s = make(k % 2 ? 150 : 9, 2);
    double *x0 = sup_filled(s.n * 2, starts[k / 6]);
    ct_note("x0 = %g, criterion %d, n %d", starts[k / 6], k / 2 % 3, (int)s.n);
    s.options.criterion = k / 2 % 3;
    s.options.x0 = x0;
    s.options.ldx0 = s.n;
    expect(&s, HONE_OK);
    CHECK(sup_untouched(x0, s.n * 2, starts[k / 6]));
    sup_free(x0);
    discard(&s);
  }
}

/* Arrays ------------------------------------------------------------------- */

TEST(contract, leaves_a_and_b_as_they_are_and_never_reads_the_padding) {
  for (int k = 0; k < 8; k++) {
    sys s = make_padded(k & 1 ? 150 : 11, 3, 5);
    ct_note("n %d, case %d", (int)s.n, k);
    s.options.layout = k & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.factor_precision =
        k & 4 ? HONE_FACTOR_DOUBLE : HONE_FACTOR_SINGLE;
    double *a = sup_copy(s.a, s.lda * s.n), *b = sup_copy(s.b, s.ldb * 3);
    CHECK_EQ_INT(call(&s), HONE_OK);
    CHECK_MEM_EQ(s.a, a, (size_t)(s.lda * s.n) * sizeof *a);
    CHECK_MEM_EQ(s.b, b, (size_t)(s.ldb * 3) * sizeof *b);
    for (int64_t c = 0; c < 3; c++) {
      CHECK_LE(sup_backward_error(s.n, s.a, s.lda, k & 2, s.x + c * s.ldx,
                                  s.b + c * s.ldb),
               SUP_LIMIT);
      CHECK(sup_untouched(s.x + c * s.ldx + s.n, 5, UNTOUCHED));
    }
    sup_free(a);
    sup_free(b);
    discard(&s);
  }
}

TEST(contract, gives_the_same_bits_with_and_without_padding) {
  sys s = make(150, 2), t = make_padded(150, 2, 7);
  CHECK_EQ_INT(call(&s), HONE_OK);
  CHECK_EQ_INT(call(&t), HONE_OK);
  for (int c = 0; c < 2; c++)
    CHECK_MEM_EQ(s.x + c * s.ldx, t.x + c * t.ldx, 150 * sizeof *s.x);
  discard(&s);
  discard(&t);
}

TEST(contract, solves_in_place_of_b_or_x0) {
  for (int k = 0; k < 4; k++) {
    sys s = make(k & 1 ? 150 : 9, 70);
    ct_note("x is %s, n %d", k & 2 ? "x0" : "b", (int)s.n);
    CHECK_EQ_INT(call(&s), HONE_OK);
    double *place = sup_copy(s.b, s.n * 70);
    s.options.x0 = k & 2 ? place : NULL;
    s.options.ldx0 = s.n;
    CHECK_EQ_INT(hone_solve(s.n, 70, s.a, s.n, k & 2 ? s.b : place, s.n, place,
                            s.n, &s.options, NULL),
                 HONE_OK);
    if (!(k & 2))
      CHECK_MEM_EQ(place, s.x, (size_t)(s.n * 70) * sizeof *place);
    for (int64_t c = 0; c < 70; c += 23)
      CHECK_LE(sup_backward_error(s.n, s.a, s.n, false, place + c * s.n,
                                  s.b + c * s.n),
               SUP_LIMIT);
    sup_free(place);
    discard(&s);
  }
}

TEST(contract, refuses_an_x_that_overlaps_anything_else) {
  enum { N = 4, ROOM = 100 };
  sys s = make(N, 2);
  double *room = sup_filled(ROOM, 1.0);
  const double *a = room, *b = room + 40, *x0 = room + 60;
  for (int64_t i = 0; i < N; i++)
    room[i + i * N] = 8.0;
  double *before = sup_copy(room, ROOM);
  static const struct {
    int64_t x, ldx;
  } bad[] = {{0, N},  {15, N},     {8, N},      {41, N},    {47, N},
             {37, N}, {40, N + 1}, {40, N + 2}, {61, N},    {67, N},
             {57, N}, {60, N + 1}, {33, N},     {34, N + 1}};
  s.options.x0 = x0;
  s.options.ldx0 = N;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double *x = room + bad[i].x;
    ct_note("x at %d, ldx %d", (int)bad[i].x, (int)bad[i].ldx);
    CHECK_EQ_INT(
        hone_solve(N, 2, a, N, b, N, x, bad[i].ldx, &s.options, &s.report),
        HONE_BAD_OVERLAP);
    CHECK_MEM_EQ(room, before, ROOM * sizeof *room);
  }
  CHECK_EQ_INT(hone_solve(N, 2, a, N, b, N, room + 48, N, &s.options, NULL),
               HONE_OK); /* side by side is not overlapping */
  CHECK_EQ_INT(hone_solve(N, 2, a, N, b, N, room + 16, N, &s.options, NULL),
               HONE_OK);
  sup_free(room);
  sup_free(before);
  discard(&s);
}

/* Layout and transposes: the same storage, read as A or as its transpose. */
TEST(contract, solves_all_four_combinations_of_layout_and_transpose) {
  for (int64_t n = 11; n <= 150; n += 139) {
    sys s = make_padded(n, 2, 3);
    double *x[4];
    for (int k = 0; k < 4; k++) {
      ct_note("n %d, layout %d, trans %d", (int)n, k / 2, k % 2);
      s.options.layout = k / 2;
      s.options.trans = k % 2;
      CHECK_EQ_INT(call(&s), HONE_OK);
      bool stored_trans = (k / 2) != (k % 2);
      for (int64_t c = 0; c < 2; c++) {
        const double *xc = s.x + c * s.ldx, *bc = s.b + c * s.ldb;
        CHECK_LE(sup_backward_error(n, s.a, s.lda, stored_trans, xc, bc),
                 SUP_LIMIT);
        CHECK_LE(1e-3,
                 sup_backward_error(n, s.a, s.lda, !stored_trans, xc, bc));
      }
      x[k] = sup_copy(s.x, s.ldx * 2);
    }
    CHECK_MEM_EQ(x[0], x[3], (size_t)s.ldx * 2 * sizeof(double));
    CHECK_MEM_EQ(x[1], x[2], (size_t)s.ldx * 2 * sizeof(double));
    for (int k = 0; k < 4; k++)
      sup_free(x[k]);
    discard(&s);
  }
}

/* Threads ------------------------------------------------------------------ */

TEST(contract, leaves_openblas_with_the_threads_it_had) {
  const int before = openblas_get_num_threads();
  for (int set = 1; set <= 2; set++) {
    openblas_set_num_threads(set);
    const int now = openblas_get_num_threads();
    for (int threads = 0; threads <= 3; threads++)
      for (int k = 0; k < 4; k++) {
        sys s = make(k == 1 ? 420 : 20, 1);
        ct_note("OpenBLAS %d, threads %d, case %d", now, threads, k);
        s.options.threads = threads;
        s.options.deterministic = k == 2;
        if (k == 3)
          s.a[5] = (double)NAN;
        expect(&s, k == 3 ? HONE_NOT_FINITE_A : HONE_OK);
        CHECK_EQ_INT(openblas_get_num_threads(), now);
        CHECK_EQ_INT(s.report.threads, threads > 0 ? threads : now);
        discard(&s);
      }
  }
  openblas_set_num_threads(before);
}

TEST(contract, deterministic_gives_the_same_bits_for_any_threads) {
  static const struct {
    int64_t n, nrhs;
    int start;
  } cases[] = {{130, 3, HONE_FACTOR_SINGLE},
               {500, 1, HONE_FACTOR_SINGLE},
               {500, 5, HONE_FACTOR_SINGLE},
               {500, 2, HONE_FACTOR_DOUBLE}};
  for (int i = 0; i < 4; i++) {
    sys s = make(cases[i].n, cases[i].nrhs);
    const int64_t count = s.n * s.nrhs;
    double *first = NULL;
    hone_report one = HONE_REPORT_INIT;
    s.options.deterministic = 1;
    s.options.factor_precision = cases[i].start;
    for (int threads = 1; threads <= 3; threads++) {
      ct_note("n %d, nrhs %d, threads %d", (int)s.n, (int)s.nrhs, threads);
      s.options.threads = threads;
      CHECK_EQ_INT(call(&s), HONE_OK);
      if (first == NULL) {
        first = sup_copy(s.x, count);
        one = s.report;
      }
      CHECK_MEM_EQ(s.x, first, (size_t)count * sizeof *first);
      CHECK_MEM_EQ(&s.report.rcond, &one.rcond, sizeof one.rcond);
      CHECK_MEM_EQ(&s.report.backward_error, &one.backward_error,
                   sizeof one.backward_error);
    }
    sup_free(first);
    discard(&s);
  }
}

typedef struct runner {
  sys s;
  int worst;      /* status */
  double largest; /* backward error */
} runner;

static void *run(void *arg) {
  runner *r = arg;
  sys *s = &r->s;
  hone_solver *solver;
  if (hone_solver_create(&solver, s->n, &s->options) != HONE_OK)
    r->worst = HONE_INTERNAL;
  for (int i = 0; i < 15 && r->worst == HONE_OK; i++) {
    s->a[i] += 0.5;
    int st = hone_solver_factor(solver, s->a, s->lda, NULL);
    if (st == HONE_OK)
      st = sup_solver_solve(solver, 0, s->nrhs, s->b, s->ldb, s->x, s->ldx,
                            NULL, 0, NULL, &s->report);
    r->worst = st;
    r->largest = fmax(
        r->largest, sup_backward_error(s->n, s->a, s->lda, false, s->x, s->b));
  }
  hone_solver_destroy(&solver);
  return NULL;
}

TEST(contract, two_solvers_work_side_by_side_on_two_threads) {
  runner r[2] = {{.s = make(140, 2)}, {.s = make(420, 1)}};
  pthread_t thread[2];
  for (int i = 0; i < 2; i++)
    REQUIRE(pthread_create(&thread[i], NULL, run, &r[i]) == 0);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], NULL);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_INT(r[i].worst, HONE_OK);
    CHECK_LE(r[i].largest, SUP_LIMIT);
    discard(&r[i].s);
  }
}

/* Output ------------------------------------------------------------------- */

/* stdout and stderr go to a file between capture and release. */
typedef struct capture {
  FILE *file;
  int out, err; /* the real ones */
} capture;

static bool start_capture(capture *c) {
  fflush(NULL);
  c->file = tmpfile();
  if (c->file == NULL)
    return false;
  c->out = dup(1);
  c->err = dup(2);
  return dup2(fileno(c->file), 1) >= 0 && dup2(fileno(c->file), 2) >= 0;
}

/* What was printed, cut off at size - 1 characters. */
static void end_capture(capture *c, char *text, size_t size) {
  fflush(NULL);
  dup2(c->out, 1);
  dup2(c->err, 2);
  close(c->out);
  close(c->err);
  rewind(c->file);
  text[fread(text, 1, size - 1, c->file)] = '\0';
  fclose(c->file);
}

static void set_log(const char *value) {
  if (value == NULL)
    unsetenv("HONE_LOG");
  else
    setenv("HONE_LOG", value, 1);
}

/* Six calls, good and bad. */
static void make_calls(void) {
  sys s = make(20, 2), t = make(420, 1), zero = make(5, 1);
  sup_rng rng = {3};
  call(&s);
  s.a[3] = (double)NAN;
  call(&s);
  sup_matrix_cond(&rng, 420, SUP_ONE_SMALL, 1e11, t.a, 420);
  t.options.factor_precision =
      HONE_FACTOR_SINGLE; /* with a fallback to talk about */
  call(&t);
  zero.n = 0;
  call(&zero);
  zero.n = -1;
  call(&zero);
  zero.n = 5;
  memset(zero.a, 0, 25 * sizeof *zero.a);
  call(&zero);
  discard(&s);
  discard(&t);
  discard(&zero);
}

static void lines_printed(const char *log, int lines) {
  const char *saved = getenv("HONE_LOG");
  char text[8192], *keep = saved ? malloc(strlen(saved) + 1) : NULL;
  if (keep)
    strcpy(keep, saved);
  set_log(log);
  capture c = {0};
  bool started = start_capture(&c);
  make_calls();
  if (started)
    end_capture(&c, text, sizeof text);
  set_log(keep);
  free(keep);
  if (!CHECK(started))
    return;
  int seen = 0;
  for (const char *p = text; *p != '\0'; p++)
    seen += *p == '\n';
  if (!CHECK_EQ_INT(seen, lines))
    fprintf(stderr, "%s\n", text);
  if (lines == 0)
    CHECK_STR(text, "");
  else
    CHECK_CONTAINS(text, "hone: ");
}

TEST(contract, prints_nothing) {
  lines_printed(NULL, 0);
  lines_printed("", 0);
  lines_printed("0", 0);
}

TEST(contract, prints_one_line_a_solve_when_hone_log_is_set) {
  lines_printed("1", 6);
}

/* Told to stop --------------------------------------------------------------*/

typedef struct audience {
  int heard, stop_at;
  double last_s;
  int bad_events;
  bool refining;
  bool accepted; /* by the event heard last */
} audience;

static int listen(void *user, const hone_progress *event) {
  static const char *const phases[] = {"inspect", "factor", "refine",
                                       "factor in double"};
  audience *a = user;
  bool known = false;
  for (int i = 0; i < 4; i++)
    known = known || strcmp(event->phase, phases[i]) == 0;
  a->bad_events += !known || !(event->elapsed_s >= a->last_s) ||
                   !(event->fraction >= 0.0 && event->fraction <= 1.0);
  a->last_s = event->elapsed_s;
  bool refining = strcmp(event->phase, "refine") == 0;
  a->bad_events += refining != !isnan(event->backward_error) ||
                   refining != (event->precision > 0) ||
                   (event->gmres != 0 && !refining);
  a->accepted = refining && event->backward_error <= SUP_LIMIT;
  a->refining = a->refining || refining;
  return ++a->heard == a->stop_at;
}

TEST(contract, stops_wherever_it_is_told_to) {
  for (int kind = 0; kind < 3; kind++) {
    bool done = false;
    for (int stop = 1; stop < 60 && !done; stop++) {
      sys s = make(kind == 0 ? 9 : 150, 2);
      sup_rng rng = {8};
      audience a = {.stop_at = stop};
      ct_note("kind %d, stop at event %d", kind, stop);
      s.options.factor_precision =
          kind == 0 ? HONE_FACTOR_DOUBLE : HONE_FACTOR_SINGLE;
      if (kind == 2)
        sup_matrix_cond(&rng, 150, SUP_GEOMETRIC, 1e11, s.a, 150);
      s.options.progress = listen;
      s.options.progress_user = &a;
      int st = solve_honestly(&s);
      CHECK_EQ_INT(a.bad_events, 0);
      done = a.heard < stop;
      if (done || a.accepted) /* the last event came too late to stop it */
        CHECK_EQ_INT(st, HONE_OK);
      else
        CHECK_EQ_INT(st, a.refining ? HONE_INTERRUPTED : HONE_CANCELLED);
      if (!done)
        CHECK_EQ_INT(a.heard, stop); /* asked no more once it said stop */
      discard(&s);
    }
    CHECK(done);
  }
}

typedef struct diary {
  int iterations, restarts, gmres;
  double last, elapsed_s;
} diary;

static int write_down(void *user, const hone_progress *event) {
  diary *d = user;
  if (event->precision == 0)
    return 0;
  d->restarts += event->iteration == 0;
  d->iterations += event->iteration > 0;
  d->gmres += event->gmres && event->iteration > 0;
  d->last = event->backward_error;
  d->elapsed_s = event->elapsed_s;
  return 0;
}

/* The callback hears of every iterate, of the accepted one too, and of how it
   was made. Condition 1e5: refinement; 2.7e8: GMRES. */
TEST(contract, tells_of_every_correction) {
  for (int kind = 0; kind < 2; kind++) {
    sys s = make(200, 1);
    sup_rng rng = {1};
    diary d = {0};
    ct_note("kind %d", kind);
    sup_matrix_cond(&rng, 200, SUP_GEOMETRIC, kind == 0 ? 1e5 : 2.7e8, s.a,
                    200);
    s.options.factor_precision = HONE_FACTOR_SINGLE;
    s.options.progress = write_down;
    s.options.progress_user = &d;
    expect(&s, HONE_OK);
    CHECK_EQ_INT(d.iterations, s.report.iterations);
    CHECK_EQ_INT(d.gmres, s.report.gmres_steps);
    CHECK(d.last <= s.report.backward_error &&
          d.last >= s.report.backward_error);
    CHECK_LE(1 + kind, d.gmres + 1);
    CHECK_LE(1, d.restarts);
    CHECK(d.elapsed_s > 0.0);
    discard(&s);
  }
}

TEST(contract, stops_at_the_deadline) {
  sys s = make(150, 1);
  s.options.deadline_s = 1e-9;
  expect(&s, HONE_CANCELLED);
  s.options.deadline_s = 1e6;
  expect(&s, HONE_OK);
  s.options.deadline_s = (double)INFINITY;
  expect(&s, HONE_OK);
  discard(&s);
}

/* The solver is as good as new for the next call. */
TEST(contract, goes_on_with_a_solver_that_was_stopped) {
  for (int stop = 1; stop < 12; stop++) {
    sys s = make(150, 1);
    sup_rng rng = {8};
    audience a = {.stop_at = stop};
    hone_solver *solver;
    ct_note("stop at event %d", stop);
    sup_matrix_cond(&rng, 150, SUP_GEOMETRIC, 1e6, s.a, 150);
    s.options.factor_precision = HONE_FACTOR_SINGLE;
    s.options.max_iterations = 1; /* the solve climbs */
    s.options.progress = listen;
    s.options.progress_user = &a;
    REQUIRE(hone_solver_create(&solver, 150, &s.options) == HONE_OK);
    int st = hone_solver_factor(solver, s.a, 150, &s.report);
    if (st != HONE_OK) {
      CHECK_EQ_INT(st, HONE_CANCELLED);
      CHECK_EQ_INT(hone_solver_factor(solver, s.a, 150, NULL), HONE_OK);
    }
    for (int again = 0; again < 2; again++) {
      st = sup_solver_solve(solver, 0, 1, s.b, 150, s.x, 150, NULL, 0, NULL,
                            &s.report);
      CHECK_LE(0, st);
      a.stop_at = 0;
    }
    CHECK_EQ_INT(st, HONE_OK);
    CHECK_EQ_INT(s.report.accepted, 1);
    check_honest(&s, st);
    CHECK_CONTAINS(s.report.path, "double LU");
    hone_solver_destroy(&solver);
    discard(&s);
  }
}

/* The reusable solver -------------------------------------------------------*/

TEST(contract, reusable_solver_gives_what_the_one_call_gives) {
  for (int64_t n = 9; n <= 150; n += 141) {
    sys s = make(n, 3);
    hone_column columns[3];
    hone_solver *solver;
    CHECK_EQ_INT(call(&s), HONE_OK);
    double *x = sup_filled(n * 3, UNTOUCHED);
    REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, n, &s.report), HONE_OK);
    for (int again = 0; again < 2; again++) {
      CHECK_EQ_INT(sup_solver_solve(solver, HONE_NO_TRANS, 3, s.b, n, x, n,
                                    NULL, 0, columns, &s.report),
                   HONE_OK);
      CHECK_MEM_EQ(x, s.x, (size_t)(n * 3) * sizeof *x);
    }
    for (int c = 0; c < 3; c++)
      CHECK_EQ_INT(columns[c].status, HONE_OK);
    CHECK_EQ_INT(sup_solver_solve(solver, HONE_TRANS, 1, s.b, n, x, n, s.x, n,
                                  NULL, NULL),
                 HONE_OK);
    CHECK_LE(sup_backward_error(n, s.a, n, true, x, s.b), SUP_LIMIT);
    hone_solver_destroy(&solver);
    CHECK(solver == NULL);
    sup_free(x);
    discard(&s);
  }
}

TEST(contract, columns_and_report_tell_the_same) {
  sys s = make(150, 5);
  hone_column columns[5];
  memset(columns, 0xff, sizeof columns);
  s.options.columns = columns;
  expect(&s, HONE_OK);
  double backward = 0.0, normwise = 0.0, forward = 0.0;
  int32_t iterations = 0, digits = 16;
  for (int c = 0; c < 5; c++) {
    CHECK_EQ_INT(columns[c].status, HONE_OK);
    digits = HONE_MIN(digits, columns[c].digits);
    CHECK_NEAR(
        columns[c].backward_error,
        sup_backward_error(150, s.a, 150, false, s.x + 150 * c, s.b + 150 * c),
        1e-3 * SUP_EPS);
    backward = fmax(backward, columns[c].backward_error);
    normwise = fmax(normwise, columns[c].normwise_error);
    forward = fmax(forward, columns[c].forward_error);
    iterations = HONE_MAX(iterations, columns[c].iterations);
  }
  CHECK_NEAR(s.report.backward_error, backward, 0.0);
  CHECK_NEAR(s.report.normwise_error, normwise, 0.0);
  CHECK_NEAR(s.report.forward_error, forward, 0.0);
  CHECK_EQ_INT(s.report.iterations, iterations);
  CHECK_EQ_INT(s.report.digits, digits);
  CHECK_EQ_INT(s.report.accepted, 5);
  CHECK_NEAR(s.report.tolerance, SUP_LIMIT, 0.0);
  CHECK_EQ_INT(s.report.bad_row, -1);
  CHECK_EQ_INT(s.report.bad_col, -1);
  CHECK_STR(s.report.reason, "");
  CHECK(s.report.path[0] != '\0' && s.report.device[0] != '\0');
  discard(&s);
}
