/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers that a caller gets besides x: in reports of failed calls, from
   progress callbacks, of the memory needed, and of a zero pivot. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/operator.h"

#include "api/hone.h"
#include "refine/accelerate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Programs are compiled with these numbers. */
TEST(contract, pins_the_numbers_of_structures_and_tuning) {
  CHECK_EQ_INT(HONE_STRUCTURE_AUTO, 0);
  CHECK_EQ_INT(HONE_STRUCTURE_SPD, 1);
  CHECK_EQ_INT(HONE_STRUCTURE_GENERAL, 2);
  CHECK_EQ_INT(HONE_FOUND_GENERAL, 0);
  CHECK_EQ_INT(HONE_FOUND_DEFINITE, 1);
  CHECK_EQ_INT(HONE_FOUND_BANDED, 2);
  CHECK_EQ_INT(HONE_FOUND_TRIANGULAR, 3);
  CHECK_EQ_INT(HONE_FOUND_DIAGONAL, 4);
  CHECK_EQ_INT(HONE_ARITHMETIC_AUTO, 0);
  CHECK_EQ_INT(HONE_ARITHMETIC_FP32, 1);
  CHECK_EQ_INT(HONE_ARITHMETIC_TF32, 2);
  CHECK_EQ_INT(HONE_ARITHMETIC_FP16X3, 3);
  CHECK_EQ_INT(HONE_ARITHMETIC_BF16X3, 4);
  CHECK_EQ_INT(HONE_ARITHMETIC_FP16, 5);
  CHECK_EQ_INT(HONE_ARITHMETIC_BF16, 6);
  CHECK_EQ_INT(HONE_PIVOT_AUTO, 0);
  CHECK_EQ_INT(HONE_PIVOT_BLOCK, 1);
  CHECK_EQ_INT(HONE_PIVOT_NONE, 2);
  CHECK_EQ_INT(HONE_DIAGONAL_AUTO, 0);
  CHECK_EQ_INT(HONE_DIAGONAL_GPU, 1);
  CHECK_EQ_INT(HONE_DIAGONAL_CPU, 2);
  CHECK_EQ_INT(HONE_BLOCK_ROWS_AUTO, 0);
  CHECK_EQ_INT(HONE_BLOCK_ROWS_TRSM, 1);
  CHECK_EQ_INT(HONE_BLOCK_ROWS_SEEDED, 2);
  CHECK_EQ_INT(HONE_BLOCK_ROWS_CROUT, 3);
  CHECK_EQ_INT(HONE_RESIDUALS_AUTO, 0);
  CHECK_EQ_INT(HONE_RESIDUALS_HOST, 1);
}

/* Reports ------------------------------------------------------------------ */

/* The report of a call that failed has no results. */
static void check_nothing_known(const hone_report *r, int status) {
  CHECK_EQ_INT(r->status, status);
  CHECK_EQ_INT(r->accepted, 0);
  CHECK(isnan(r->backward_error));
  CHECK(isnan(r->normwise_error));
  CHECK(isnan(r->residual_error));
  CHECK(isnan(r->forward_error));
  CHECK(isnan(r->rcond));
  CHECK(isnan(r->growth));
  CHECK_EQ_INT(r->iterations, 0);
  CHECK_EQ_INT(r->precision, 0);
  CHECK_EQ_INT(r->fallback_columns, 0);
  CHECK_EQ_INT(r->min_pivot_row, -1);
  CHECK_EQ_INT(r->min_pivot_col, -1);
  CHECK_EQ_INT(r->null_count, 0);
  CHECK_EQ_INT(r->dependent_count, 0);
  CHECK_EQ_INT(r->digits, 0);
  CHECK_EQ_INT(r->host_passes, 0);
  CHECK(r->total_ms >= 0.0 && r->total_ms < 1e4);
}

TEST(report, has_no_results_after_refused_arguments) {
  double a[4] = {2.0, 0.0, 0.0, 2.0}, b[2] = {1.0, 1.0}, x[2];
  hone_report r = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  memset(&r, 0x5a, sizeof r);
  r.struct_size = sizeof r;
  CHECK_EQ_INT(hone_solve(2, 1, NULL, 2, b, 2, x, 2, NULL, &r),
               HONE_NULL_POINTER);
  check_nothing_known(&r, HONE_NULL_POINTER);
  CHECK_NEAR(r.tolerance, 0.0, 0.0);
  CHECK_EQ_INT(r.n, 2);
  CHECK_EQ_INT(r.nrhs, 1);
  memset(&r, 0x5a, sizeof r);
  r.struct_size = sizeof r;
  CHECK_EQ_INT(hone_solve(-1, 1, a, 2, b, 2, x, 2, NULL, &r), HONE_BAD_SIZE);
  check_nothing_known(&r, HONE_BAD_SIZE);
  CHECK_EQ_INT(r.n, -1);
  o.trans = 3;
  memset(&r, 0x5a, sizeof r);
  r.struct_size = sizeof r;
  CHECK_EQ_INT(hone_solve(2, 1, a, 2, b, 2, x, 2, &o, &r), HONE_BAD_OPTION);
  check_nothing_known(&r, HONE_BAD_OPTION);
  o.trans = 0;
  b[1] = (double)NAN;
  memset(&r, 0x5a, sizeof r);
  r.struct_size = sizeof r;
  CHECK_EQ_INT(hone_solve(2, 1, a, 2, b, 2, x, 2, &o, &r), HONE_NOT_FINITE_B);
  check_nothing_known(&r, HONE_NOT_FINITE_B);
  CHECK_EQ_INT(r.bad_row, 1);
  CHECK_EQ_INT(r.bad_col, 0);
}

TEST(report, has_exact_results_for_a_system_without_equations) {
  static const double tolerance[] = {4.0 * SUP_EPS, SUP_EPS, 1e-12};
  for (int criterion = 0; criterion < 3; criterion++) {
    hone_report r = HONE_REPORT_INIT;
    hone_options o = HONE_OPTIONS_INIT;
    o.criterion = criterion;
    memset(&r, 0x5a, sizeof r);
    r.struct_size = sizeof r;
    CHECK_EQ_INT(hone_solve(0, 3, NULL, 1, NULL, 1, NULL, 1, &o, &r), HONE_OK);
    CHECK_NEAR(r.backward_error, 0.0, 0.0);
    CHECK_NEAR(r.normwise_error, 0.0, 0.0);
    CHECK_NEAR(r.residual_error, 0.0, 0.0);
    CHECK_NEAR(r.forward_error, 0.0, 0.0);
    CHECK_NEAR(r.tolerance, tolerance[criterion], 0.0);
    CHECK_EQ_INT(r.digits, 16);
    CHECK_EQ_INT(r.nrhs, 3);
    CHECK_EQ_INT(r.bad_row, -1);
    CHECK_EQ_INT(r.bad_col, -1);
  }
}

/* Progress ----------------------------------------------------------------- */

enum { EVENTS = 200 };

typedef struct listener {
  int count;
  struct {
    char phase[24];
    double fraction, elapsed_s, backward_error;
    int iteration, precision, gmres;
  } event[EVENTS];
} listener;

static int listen_to(void *user, const hone_progress *event) {
  listener *l = user;
  if (l->count < EVENTS) {
    strncpy(l->event[l->count].phase, event->phase,
            sizeof l->event[0].phase - 1);
    l->event[l->count].fraction = event->fraction;
    l->event[l->count].elapsed_s = event->elapsed_s;
    l->event[l->count].backward_error = event->backward_error;
    l->event[l->count].iteration = event->iteration;
    l->event[l->count].precision = event->precision;
    l->event[l->count].gmres = event->gmres;
    l->count++;
  }
  return 0;
}

enum { DIAGONAL, TRIANGULAR, BAND, DEFINITE, FULL, DOUBLE, KINDS };

static void fill(int kind, int64_t n, double *a) {
  sup_rng rng = {(uint64_t)n};
  sup_random(&rng, n, n, a, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double *v = &a[i + j * n];
      *v = i == j ? 2.0 + *v : *v / (double)n;
      if ((kind == DIAGONAL && i != j) || (kind == TRIANGULAR && i < j) ||
          (kind == BAND && llabs(i - j) > 1))
        *v = 0.0;
      if (kind == DEFINITE && i > j)
        *v = a[j + i * n];
    }
  for (int64_t j = 0; j < n && kind == DEFINITE; j++)
    for (int64_t i = j + 1; i < n; i++)
      a[i + j * n] = a[j + i * n];
}

/* First comes the inspection, then the factorization, both from 0, then the
   corrections, counted from 0. Times are those since the call. */
TEST(progress, goes_from_inspection_over_factorization_to_refinement) {
  const int64_t n = 60;
  for (int kind = 0; kind < KINDS; kind++) {
    double *a = sup_filled(n * n, 0.0), *b = sup_filled(n, 1.0);
    double *x = sup_filled(n, 0.0), last = 0.0;
    static listener l;
    hone_report r = HONE_REPORT_INIT;
    hone_options o;
    l.count = 0;
    o = (hone_options)HONE_OPTIONS_INIT;
    fill(kind, n, a);
    o.device = HONE_DEVICE_CPU;
    o.progress = listen_to;
    o.progress_user = &l;
    o.factor_precision =
        kind == DOUBLE ? HONE_FACTOR_DOUBLE : HONE_FACTOR_SINGLE;
    o.structure = kind == DEFINITE ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
    CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, x, n, &o, &r), HONE_OK);
    ct_note("kind %d: %s, %d events", kind, r.path, l.count);
    REQUIRE(l.count >= 3 && l.count < EVENTS);
    CHECK_STR(l.event[0].phase, "inspect");
    CHECK_STR(l.event[1].phase, kind == DOUBLE ? "factor in double" : "factor");
    CHECK_STR(l.event[l.count - 1].phase, "refine");
    for (int e = 0; e < l.count; e++) {
      const bool refine = strcmp(l.event[e].phase, "refine") == 0;
      CHECK(l.event[e].elapsed_s >= last);
      CHECK_LE(l.event[e].elapsed_s, 1e-3 * r.total_ms);
      last = l.event[e].elapsed_s;
      CHECK_NEAR(l.event[e].fraction, 0.0, 0.0); /* each phase has just begun */
      CHECK_EQ_INT(l.event[e].gmres, 0);
      CHECK_EQ_INT(l.event[e].iteration, refine ? e - 2 : 0);
      CHECK_EQ_INT(l.event[e].precision, refine ? r.precision : 0);
      CHECK_EQ_INT(isnan(l.event[e].backward_error), !refine);
    }
    CHECK_EQ_INT(l.event[l.count - 1].iteration, r.iterations);
    CHECK_NEAR(l.event[l.count - 1].backward_error, r.backward_error, 0.0);
    CHECK_LE(l.event[l.count - 1].backward_error, SUP_LIMIT);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

/* Phases ------------------------------------------------------------------- */

/* No phase takes longer than the call, nor do all together. */
TEST(report, has_times_that_add_up_to_no_more_than_the_total) {
  for (int kind = 0; kind < KINDS; kind++) {
    const int64_t n = 130;
    double *a = sup_filled(n * n, 0.0), *b = sup_filled(n, 1.0);
    double *x = sup_filled(n, 0.0);
    hone_report r = HONE_REPORT_INIT;
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CPU;
    o.deterministic = 1; /* elsewhere small systems have two phases */
    o.factor_precision = kind == DOUBLE ? HONE_FACTOR_DOUBLE : HONE_FACTOR_AUTO;
    fill(kind, n, a);
    CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, x, n, &o, &r), HONE_OK);
    ct_note("kind %d: %s", kind, r.path);
    const double phase[] = {r.inspect_ms, r.factor_ms, r.refine_ms,
                            r.certify_ms, r.fallback_ms};
    double sum = 0.0;
    for (size_t k = 0; k < sizeof phase / sizeof phase[0]; k++) {
      CHECK(phase[k] >= 0.0 && phase[k] <= r.total_ms);
      CHECK_EQ_INT(phase[k] > 0.0, k < 4);
      sum += phase[k];
    }
    CHECK_LE(sum, r.total_ms);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

/* Memory ------------------------------------------------------------------- */

static int64_t needed(int64_t n, int64_t nrhs, int structure, bool twice) {
  int64_t single = -1, two = -1;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.structure = structure;
  CHECK_EQ_INT(hone_memory_needed(n, nrhs, &o, &single, &two), HONE_OK);
  return twice ? two : single;
}

/* Up to 64 columns are solved at a time: each of the first 64 needs the same
   memory, more of it where residuals follow the steps of x, and none after them
   needs any. The first four have a history of their corrections besides. */
TEST(memory_needed, grows_with_the_columns_up_to_64) {
  const int64_t from = HONE_STEPS_FROM;
  for (int structure = 0; structure < 3; structure++)
    for (int64_t n = 100; n <= 1500; n += 700)
      for (int twice = 0; twice < 2; twice++) {
        const int64_t one = needed(n, 1, structure, twice);
        const int64_t history = 8 * HONE_ACCELERATED_VECTORS * n;
        const int64_t each = needed(n, 2, structure, twice) - one - history;
        const int64_t many = needed(n, from, structure, twice);
        const int64_t more =
            (needed(n, 64, structure, twice) - many) / (64 - from);
        ct_note("structure %d, n %d", structure, (int)n);
        CHECK_LE(8 * n, each);
        CHECK_LE(each, 100 * n);
        CHECK_EQ_INT(more > each, hone_steps_pay(n, from));
        CHECK_LE(more, each + 32 * n);
        CHECK_EQ_INT(needed(n, HONE_ACCELERATED_MOST, structure, twice) - one,
                     (HONE_ACCELERATED_MOST - 1) * (each + history));
        CHECK_EQ_INT(needed(n, from - 1, structure, twice) - one,
                     (from - 2) * each + (HONE_ACCELERATED_MOST - 1) * history);
        CHECK_EQ_INT(needed(n, 64, structure, twice) - many,
                     (64 - from) * more);
        CHECK_EQ_INT(needed(n, 65, structure, twice) - many,
                     (64 - from) * more);
        CHECK_EQ_INT(needed(n, 1000, structure, twice) - many,
                     (64 - from) * more);
      }
}

/* 2^29 is the largest order. No arrays are needed to ask about it. */
TEST(memory_needed, is_known_up_to_order_2_to_the_29) {
  const int64_t most = INT64_C(1) << 29;
  double none;
  for (int64_t more = 0; more < 2; more++) {
    const int64_t n = most + more;
    const int wanted = more ? HONE_BAD_SIZE : HONE_OK;
    int64_t one = -1, two = -1;
    CHECK_EQ_INT(hone_memory_needed(n, 1, NULL, &one, &two), wanted);
    CHECK_EQ_INT(one > 4 * n * n, !more);
    CHECK_EQ_INT(two > 8 * n * n, !more);
    CHECK_EQ_INT(hone_device_memory_needed(n, NULL, &one, &two), wanted);
    CHECK_EQ_INT(hone_solve(n, 0, &none, n, &none, n, &none, n, NULL, NULL),
                 wanted);
  }
}

/* Nearby matrices ---------------------------------------------------------- */

/* The solver's last matrix was scaled, or was not; a good matrix that follows
   is solved. */
TEST(report, says_what_is_wrong_with_the_next_matrix_of_a_solver) {
  const int64_t n = 30;
  for (int scaled = 0; scaled < 2; scaled++)
    for (int update = 0; update < 2; update++)
      for (int wrong = 0; wrong < 3; wrong++) {
        double *a = sup_filled(n * n, 0.0), *b = sup_filled(n, 1.0);
        double *x = sup_filled(n, 5.0), *c;
        int (*const take)(hone_solver *, const double *, int64_t,
                          hone_report *) =
            update ? hone_solver_update : hone_solver_factor;
        hone_solver *solver;
        hone_report r = HONE_REPORT_INIT;
        hone_options o = HONE_OPTIONS_INIT;
        o.device = HONE_DEVICE_CPU;
        o.structure = HONE_STRUCTURE_GENERAL;
        fill(FULL, n, a);
        for (int64_t k = 0; k < n * n; k++)
          a[k] = scaled ? ldexp(a[k], (int)(k % n) * 9 - 60) : a[k];
        c = sup_copy(a, n * n);
        ct_note("scaled %d, update %d, wrong %d", scaled, update, wrong);
        REQUIRE(hone_solver_create(&solver, n, &o) == HONE_OK);
        CHECK_EQ_INT(hone_solver_factor(solver, a, n, &r), HONE_OK);
        CHECK_EQ_INT(r.scale_exponent_min < r.scale_exponent_max, scaled);
        if (wrong == 0)
          c[4 + 7 * n] = (double)NAN;
        for (int64_t k = 0; k < n && wrong > 0; k++)
          c[wrong == 1 ? 4 + k * n : k + 7 * n] = 0.0;
        CHECK_EQ_INT(take(solver, c, n, &r),
                     wrong ? HONE_SINGULAR : HONE_NOT_FINITE_A);
        CHECK_EQ_INT(r.bad_row, wrong == 2 ? -1 : 4);
        CHECK_EQ_INT(r.bad_col, wrong == 1 ? -1 : 7);
        CHECK_EQ_INT(
            sup_solver_solve(solver, 0, 1, b, n, x, n, NULL, 0, NULL, &r),
            HONE_NOT_FACTORED);
        CHECK(sup_untouched(x, n, 5.0));
        CHECK_EQ_INT(take(solver, a, n, &r), HONE_OK);
        CHECK_EQ_INT(
            sup_solver_solve(solver, 0, 1, b, n, x, n, NULL, 0, NULL, &r),
            HONE_OK);
        CHECK_LE(sup_backward_error(n, a, n, false, x, b), SUP_LIMIT);
        hone_solver_destroy(&solver);
        sup_free(a);
        sup_free(b);
        sup_free(c);
        sup_free(x);
      }
}

/* After hone_solver_factor nothing is left of the earlier matrix; after
   hone_solver_update x is solved for with its factors, and the report says
   so. */
TEST(report, says_whether_the_factors_are_of_an_earlier_matrix) {
  const int64_t n = 30;
  double *a = sup_filled(n * n, 0.0), *b = sup_filled(n, 1.0);
  double *x = sup_filled(n, 0.0), *fresh = sup_filled(n, 0.0), *c;
  hone_solver *solver;
  hone_report r = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.factor_precision = HONE_FACTOR_SINGLE;
  fill(FULL, n, a);
  c = sup_copy(a, n * n);
  for (int64_t k = 0; k < n * n; k++)
    c[k] *= 1.0 + 1e-4 * (double)(k % 7);
  CHECK_EQ_INT(hone_solve(n, 1, c, n, b, n, fresh, n, &o, &r), HONE_OK);
  for (int update = 0; update < 2; update++) {
    REQUIRE(hone_solver_create(&solver, n, &o) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, n, &r), HONE_OK);
    CHECK_EQ_INT(
        (update ? hone_solver_update : hone_solver_factor)(solver, c, n, &r),
        HONE_OK);
    CHECK_EQ_INT(r.factor_ms > 0.0, !update);
    CHECK_EQ_INT(sup_solver_solve(solver, 0, 1, b, n, x, n, NULL, 0, NULL, &r),
                 HONE_OK);
    ct_note("update %d: %s", update, r.path);
    CHECK_EQ_INT(strstr(r.path, "of an earlier matrix") != NULL, update);
    if (!update)
      CHECK_MEM_EQ(x, fresh, (size_t)n * sizeof *x);
    CHECK_LE(sup_backward_error(n, c, n, false, x, b), SUP_LIMIT);
    hone_solver_destroy(&solver);
  }
  sup_free(a);
  sup_free(b);
  sup_free(c);
  sup_free(x);
  sup_free(fresh);
}

/* Zero pivots -------------------------------------------------------------- */

/* Column k equals the one before it, and all entries are small integers: the
   pivot there is exactly 0 in any engine. */
TEST(report, names_the_zero_pivot) {
  static const int orders[] = {2, 3, 7, 65, 130};
  for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
    for (int64_t at = 1; at < orders[o]; at += at < 8 ? 1 : 29)
      for (int form = 0; form < 8; form++) {
        const int64_t n = orders[o];
        double *a = sup_filled(n * n, 0.0), *b = sup_filled(n, 1.0);
        double *x = sup_filled(n, 5.0);
        const bool rows = form & 1, band = form & 4;
        hone_report r = HONE_REPORT_INIT;
        hone_options options = HONE_OPTIONS_INIT;
        options.device = HONE_DEVICE_CPU;
        options.layout = rows ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
        options.factor_precision =
            form & 2 ? HONE_FACTOR_DOUBLE : HONE_FACTOR_SINGLE;
        options.structure = band ? HONE_STRUCTURE_AUTO : HONE_STRUCTURE_GENERAL;
        for (int64_t i = 0; i < n; i++)
          a[i * (n + 1)] = 2.0;
        a[at * (n + 1)] = 0.0;
        a[at - 1 + at * n] = 2.0; /* equal to column at - 1 */
        ct_note("n %d, column %d, form %d", (int)n, (int)at, form);
        const int st = hone_solve(n, 1, a, n, b, n, x, n, &options, &r);
        CHECK_EQ_INT(st, HONE_SINGULAR);
        /* A row of zeros, where there is one, is found first. */
        CHECK_EQ_INT(rows ? r.bad_col : r.bad_row, at);
        a[at + (at - 1) * n] = a[at * (n + 1)] = 4.0; /* no row is zero now */
        CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, x, n, &options, &r),
                     HONE_SINGULAR);
        CHECK_EQ_INT(rows ? r.bad_row : r.bad_col, at);
        CHECK_EQ_INT(rows ? r.bad_col : r.bad_row, -1);
        CHECK_EQ_INT(rows ? r.min_pivot_row : r.min_pivot_col, at);
        CHECK(sup_untouched(x, n, 5.0));
        sup_free(a);
        sup_free(b);
        sup_free(x);
      }
}
