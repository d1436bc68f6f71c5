/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of real calls: complete whatever the status is, and true of the
   matrix, of the work and of the memory. */
#include "tests/unit/ct.h"
#include "tests/unit/json_reader.h"
#include "tests/unit/support.h"

#include "base/lapack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 8192 };

/* Reports of real calls ---------------------------------------------------- */

typedef struct solved {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} solved;

static solved prepare(int64_t n) {
  solved s = {.n = n,
              .a = sup_filled(n * n, 0.0),
              .b = sup_filled(n, 1.0),
              .x = sup_filled(n, 0.0)};
  sup_rng rng = {(uint64_t)n};
  sup_random(&rng, n, n, s.a, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s.report, sizeof s.report);
  return s;
}

/* Fills the report with other bytes before the call. */
static int solve(solved *s) {
  memset(&s->report, 0xab, sizeof s->report);
  s->report.struct_size = sizeof s->report;
  return hone_solve(s->n, 1, s->a, s->n, s->b, s->n, s->x, s->n, &s->options,
                    &s->report);
}

static void discard(solved *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* Every field is written, and both texts can be read. */
static void check_complete(const hone_report *r, int status) {
  char text[TEXT_SIZE];
  uint64_t word, stale;
  json j;
  CHECK_EQ_INT(r->status, status);
  memset(&stale, 0xab, sizeof stale);
  for (size_t i = 0; i < sizeof *r / sizeof word; i++) {
    memcpy(&word, (const char *)r + i * sizeof word, sizeof word);
    CHECK(word != stale);
  }
  hone_report_json(r, text, sizeof text);
  if (CHECK(json_read(&j, text)))
    json_check_report(&j, r);
  const char *const keys[] = {"status",     "status_text",    "n",
                              "nrhs",       "backward_error", "normwise_error",
                              "iterations", "rcond",          "path",
                              "inspect_ms", "factor_ms",      "refine_ms",
                              "certify_ms", "fallback_ms",    "total_ms"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    CHECK(json_find(&j, keys[i]) != NULL);
  hone_report_text(r, text, sizeof text);
  CHECK_CONTAINS(text, hone_status_text(status));
  CHECK_GE(r->total_ms, 0.0);
}

static int stop_at_once(void *user, const hone_progress *event) {
  (void)user;
  return event->phase != NULL;
}

static int stop_in_refinement(void *user, const hone_progress *event) {
  (void)user;
  return strcmp(event->phase, "refine") == 0;
}

TEST(report, is_complete_whatever_the_status) {
  static const int statuses[] = {
      HONE_OK,           HONE_NOT_CONVERGED, HONE_INTERRUPTED,
      HONE_CANCELLED,    HONE_BAD_OPTION,    HONE_BAD_STRUCT_SIZE,
      HONE_NOT_FINITE_A, HONE_NOT_FINITE_B,  HONE_SINGULAR,
      HONE_NO_MEMORY,    HONE_BAD_SIZE,      HONE_NULL_POINTER};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    const int status = statuses[i];
    solved s = prepare(40);
    double *a = s.a;
    ct_note("%s", hone_status_text(status));
    if (status == HONE_NOT_CONVERGED || status == HONE_INTERRUPTED)
      s.options.tolerance = 1e-30;
    if (status == HONE_INTERRUPTED)
      s.options.progress = stop_in_refinement;
    if (status == HONE_CANCELLED)
      s.options.progress = stop_at_once;
    if (status == HONE_BAD_OPTION)
      s.options.layout = 2;
    if (status == HONE_BAD_STRUCT_SIZE)
      s.options.struct_size = 0;
    if (status == HONE_NO_MEMORY)
      s.options.memory_limit_bytes = 1000;
    if (status == HONE_NOT_FINITE_A)
      s.a[3 + 5 * 40] = (double)NAN;
    if (status == HONE_NOT_FINITE_B)
      s.b[7] = (double)INFINITY;
    for (int64_t k = 0; status == HONE_SINGULAR && k < 40; k++)
      s.a[11 + k * 40] = 0.0;
    s.a = status == HONE_NULL_POINTER ? NULL : a;
    s.n = status == HONE_BAD_SIZE ? -1 : 40;
    CHECK_EQ_INT(solve(&s), status);
    check_complete(&s.report, status);
    CHECK_EQ_INT(s.report.n, s.n);
    CHECK_EQ_INT(s.report.nrhs, 1);
    s.a = a;
    discard(&s);
  }
}

/* The text names row and column of an error where there is one, and only
   there. */
TEST(report, text_names_row_and_column_of_bad_entries) {
  char text[TEXT_SIZE];
  solved s = prepare(20);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  hone_report_text(&s.report, text, sizeof text);
  CHECK(strstr(text, "place") == NULL);
  s.a[3 + 5 * 20] = (double)NAN;
  CHECK_EQ_INT(solve(&s), HONE_NOT_FINITE_A);
  hone_report_text(&s.report, text, sizeof text);
  CHECK_CONTAINS(text, "row 3, column 5");
  for (int64_t j = 0; j < 20; j++)
    s.a[11 + j * 20] = s.a[3 + j * 20] = 0.0;
  CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
  hone_report_text(&s.report, text, sizeof text);
  CHECK_CONTAINS(text, "row 3");
  discard(&s);
}

/* Reports about the matrix ------------------------------------------------- */

static double norm_1(int64_t n, const double *a) {
  double norm = 0.0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
      sum += fabs(a[i + j * n]);
    norm = fmax(norm, sum);
  }
  return norm;
}

static double rcond_by_dgecon(int64_t order, const double *a) {
  int n = (int)order, info = 0;
  double *f = sup_copy(a, order * order), *work = sup_filled(4 * order, 0.0);
  double norm = norm_1(order, a), rcond = 0.0;
  int *iwork = malloc((size_t)n * sizeof *iwork);
  if (iwork == NULL)
    abort();
  dgetrf_(&n, &n, f, &n, iwork, &info);
  CHECK_EQ_INT(info, 0);
  dgecon_("1", &n, f, &n, &norm, &rcond, work, iwork, &info);
  sup_free(f);
  sup_free(work);
  free(iwork);
  return rcond;
}

TEST(report, rcond_is_that_of_dgecon_for_the_matrix_as_given) {
  static const int64_t orders[] = {1, 2, 50, 300};
  static const double spread[] = {0.0, 4.0, 8.0}; /* exponents of the units */
  for (int k = 0; k < 4 * 3 * 2; k++) {
    const int64_t n = orders[k / 6];
    const double d = spread[k % 3];
    sup_rng rng = {(uint64_t)k};
    solved s = prepare(n);
    s.options.factor_precision =
        k / 3 % 2 ? HONE_FACTOR_SINGLE : HONE_FACTOR_DOUBLE;
    for (int64_t j = 0; j < n; j++) {
      double row = pow(10.0, d * sup_uniform(&rng));
      double col = pow(10.0, d * sup_uniform(&rng));
      for (int64_t i = 0; i < n; i++) {
        s.a[j + i * n] *= row;
        s.a[i + j * n] *= col;
      }
    }
    ct_note("n = %d, units 10^+-%g, start %d", (int)n, d / 2.0,
            s.options.factor_precision);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    double norm = norm_1(n, s.a), rcond = rcond_by_dgecon(n, s.a);
    CHECK_NEAR(s.report.norm1, norm, 1e-12 * norm);
    CHECK_LE(s.report.rcond, 10.0 * rcond);
    CHECK_GE(s.report.rcond, 0.1 * rcond);
    discard(&s);
  }
}

/* The identity, then a matrix whose last column grows by 3/2 in each row. The
   latter counts for double only: the single engine may factor the transpose. */
TEST(report, growth_is_that_of_the_factorization) {
  enum { N = 16 };
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    solved s = prepare(N);
    s.options.factor_precision = start;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_GE(s.report.growth, 0.1);
    CHECK_LE(s.report.growth, N);
    for (int64_t i = 0; i < N * N; i++)
      s.a[i] = i % N == i / N ? 1.0 : 0.0;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_NEAR(s.report.growth, 1.0, 0.0);
    for (int64_t i = 0; i < N; i++) {
      for (int64_t j = 0; j < i; j++)
        s.a[i + j * N] = -0.5;
      s.a[i + (N - 1) * N] = 1.0;
    }
    CHECK_EQ_INT(solve(&s), HONE_OK);
    if (start == HONE_FACTOR_DOUBLE)
      CHECK_NEAR(s.report.growth, pow(1.5, N - 1), 1e-9);
    discard(&s);
  }
}

TEST(report, gives_range_and_scaling_and_entries_that_underflow) {
  solved s = prepare(20);
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  /* Else the matrix would be solved as a band. */
  s.options.structure = HONE_STRUCTURE_GENERAL;
  for (int i = 0; i < 20 * 20; i++)
    s.a[i] = i % 21 == 0 ? 4.0 : 0.0;
  s.a[0] = 1.0;
  s.a[1 + 20] = -8.0;
  s.a[3] = 1e-60;
  s.a[4 + 5 * 20] = -1e-42;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_EQ_INT(s.report.underflows, 2);
  CHECK_EQ_INT(s.report.scale_exponent_min, 0);
  CHECK_EQ_INT(s.report.scale_exponent_max, 0);
  CHECK_NEAR(s.report.max_abs, 8.0, 0.0);
  CHECK_NEAR(s.report.min_abs, 1.0, 0.0);
  for (int i = 0; i < 20; i++)
    s.a[6 + 20 * i] *= 1e9;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_LE(s.report.scale_exponent_min, -10);
  CHECK_GE(s.report.scale_exponent_min, -40);
  CHECK_NEAR(s.report.max_abs, 4e9, 0.0);
  discard(&s);
}

/* Work and memory ---------------------------------------------------------- */

static void check_work(const hone_report *r) {
  double sum = r->inspect_ms + r->factor_ms + r->refine_ms + r->certify_ms +
               r->fallback_ms;
  CHECK_GE(r->total_ms, sum);
  CHECK_GE(sum, 0.0);
  CHECK_GE(r->host_passes, r->iterations + 1);
  CHECK_LE(r->host_passes, 3 * (r->iterations + 2) + 20);
  CHECK_CONTAINS(r->device, "CPU");
  CHECK_GE(r->threads, 1);
  CHECK_EQ_INT(r->device_bytes, 0);
}

TEST(report, counts_passes_time_and_memory) {
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    const int64_t n = 300;
    int64_t needed[2];
    solved s = prepare(n);
    s.options.factor_precision = start;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    const bool single = start == HONE_FACTOR_SINGLE;
    check_work(&s.report);
    CHECK_EQ_INT(s.report.precision, single ? 32 : 64);
    CHECK_CONTAINS(s.report.path, single ? "single LU" : "double LU");
    CHECK_STR(s.report.reason, "");
    CHECK_EQ_INT(s.report.accepted, 1);
    CHECK_EQ_INT(hone_memory_needed(n, 1, &s.options, &needed[0], &needed[1]),
                 HONE_OK);
    CHECK_GE(s.report.host_bytes, (single ? 4 : 8) * n * n);
    CHECK_LE(s.report.host_bytes, needed[single ? 0 : 1]);
    discard(&s);
  }
}

TEST(report, gives_a_reason_for_every_climb) {
  const int64_t n = 300;
  sup_rng rng = {1};
  solved s = prepare(n);
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1e12, s.a, n);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_work(&s.report);
  CHECK_EQ_INT(s.report.precision, 64);
  CHECK_CONTAINS(s.report.path, "double LU");
  CHECK_CONTAINS(s.report.reason, "single LU");
  CHECK_LT(0.0, s.report.fallback_ms);
  CHECK_LE(s.report.rcond, 1e-11);
  discard(&s);
}
