/* SPDX-License-Identifier: BSD-3-Clause */
/* The edges of the contract of hone.h: systems without unknowns, columns that
   overlap other arrays or have no solution, columns that a second factorization
   solved, sizes at their limits, and the matrix in force after an error. */
#include "tests/unit/support.h"

#include "api/hone_tuning.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 9, NRHS = 3 };

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

/* Nothing to solve -------------------------------------------------------- */

static void check_all_accepted(const hone_report *r, int64_t nrhs) {
  CHECK_EQ_INT(r->status, HONE_OK);
  CHECK_EQ_INT(r->accepted, nrhs);
  CHECK_EQ_INT(r->nrhs, nrhs);
  CHECK_NEAR(r->backward_error, 0.0, 0.0);
  CHECK_NEAR(r->normwise_error, 0.0, 0.0);
  CHECK_NEAR(r->residual_error, 0.0, 0.0);
  CHECK_NEAR(r->forward_error, 0.0, 0.0);
  CHECK_NEAR(r->tolerance, SUP_LIMIT, 0.0);
  CHECK_EQ_INT(r->digits, 16);
  CHECK_EQ_INT(r->iterations, 0);
  CHECK_STR(r->reason, "");
}

static int solve_empty(bool once, int64_t n, int64_t nrhs,
                       const hone_options *o, hone_report *report) {
  hone_solver *solver = NULL;
  const int64_t ld = HONE_MAX((int64_t)1, n);
  if (once)
    return hone_solve(n, nrhs, NULL, ld, NULL, ld, NULL, ld, o, report);
  CHECK_EQ_INT(hone_solver_create(&solver, n, NULL), HONE_OK);
  const int st = hone_solver_solve(solver, nrhs, NULL, ld, NULL, ld, o, report);
  hone_solver_destroy(&solver);
  return st;
}

/* By one call and by a solver, which needs no matrix for it. */
TEST(edges, a_system_without_unknowns_or_columns_is_accepted) {
  static const int64_t sizes[][2] = {{0, NRHS}, {0, 0}, {N, 0}};
  for (int k = 0; k < 6; k++) {
    const int64_t n = sizes[k / 2][0], nrhs = sizes[k / 2][1];
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    hone_column columns[NRHS + 1];
    memset(columns, 0x5a, sizeof columns);
    o.columns = columns;
    ct_note("n %d, nrhs %d, %s", (int)n, (int)nrhs, k % 2 ? "kept" : "once");
    CHECK_EQ_INT(solve_empty(k % 2 == 0, n, nrhs, &o, &report), HONE_OK);
    check_all_accepted(&report, nrhs);
    for (int64_t j = 0; j < nrhs; j++) {
      const hone_column want = {.status = HONE_OK, .digits = 16};
      CHECK_MEM_EQ(&columns[j], &want, sizeof want);
    }
    for (size_t at = 0; at < sizeof *columns; at++)
      CHECK_EQ_INT(((unsigned char *)&columns[nrhs])[at], 0x5a);
  }
}

TEST(edges, columns_of_an_empty_system_may_be_of_an_older_version) {
  enum { LEAST = 24 };
  for (int k = 0; k < 2; k++) {
    const hone_column want = {.status = HONE_OK, .digits = 16};
    unsigned char older[(NRHS + 1) * LEAST];
    hone_options o = HONE_OPTIONS_INIT;
    memset(older, 0x5a, sizeof older);
    o.columns = (hone_column *)(void *)older;
    o.column_size = LEAST;
    CHECK_EQ_INT(solve_empty(k == 0, 0, NRHS, &o, NULL), HONE_OK);
    for (size_t j = 0; j < NRHS; j++)
      CHECK_MEM_EQ(older + j * LEAST, &want, LEAST);
    for (size_t at = NRHS * LEAST; at < sizeof older; at++)
      CHECK_EQ_INT(older[at], 0x5a);
  }
}

TEST(edges, columns_of_an_empty_system_may_lie_on_a_device) {
  NEED_FAKE();
  device_begin();
  hone_column columns[NRHS];
  hone_options o = HONE_OPTIONS_INIT;
  o.columns =
      (hone_column *)(void *)device_alloc(NRHS * sizeof(hone_column) / 8);
  CHECK_EQ_INT(solve_empty(true, 0, NRHS, &o, NULL), HONE_OK);
  device_get(columns, o.columns, sizeof columns);
  for (int j = 0; j < NRHS; j++) {
    CHECK_EQ_INT(columns[j].status, HONE_OK);
    CHECK_EQ_INT(columns[j].digits, 16);
  }
  device_free(o.columns);
  device_end();
}

/* Overlaps ---------------------------------------------------------------- */

/* Room for all arrays of a system; columns begin at any of its doubles. */
enum { A_AT = 0, B_AT = 100, X_AT = 140, X0_AT = 180, ROOM = 260 };

static int solve_in_room(hone_solver *solver, double *room, hone_options *o,
                         hone_report *report) {
  return solver != NULL ? hone_solver_solve(solver, NRHS, room + B_AT, N,
                                            room + X_AT, N, o, report)
                        : hone_solve(N, NRHS, room + A_AT, N, room + B_AT, N,
                                     room + X_AT, N, o, report);
}

static void furnish(double *room) {
  const sys s = make();
  for (int i = 0; i < ROOM; i++)
    room[i] = 1.0;
  memcpy(room + A_AT, s.a, sizeof s.a);
  memcpy(room + B_AT, s.b, sizeof s.b);
}

/* The columns are three entries, 24 or 48 bytes apart. They are refused if only
   their first or their last byte lies in another array, and accepted where they
   end or begin beside it. */
TEST(edges, columns_may_not_overlap_another_array) {
  static const struct {
    const char *name;
    int at, count;
  } arrays[] = {{"A", A_AT, N * N},
                {"b", B_AT, N * NRHS},
                {"x", X_AT, N * NRHS},
                {"options.x0", X0_AT, N * NRHS}};
  for (int k = 0; k < 4 * 2 * 2; k++) {
    double room[ROOM], before[ROOM];
    char want[64];
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    const int at = arrays[k / 4].at, count = arrays[k / 4].count;
    o.column_size = k & 1 ? 24 : sizeof(hone_column);
    const int length = (int)(NRHS * o.column_size / sizeof(double));
    furnish(room);
    o.x0 = room + X0_AT;
    o.ldx0 = N;
    hone_solver *solver = NULL;
    if (k & 2) {
      CHECK_EQ_INT(hone_solver_create(&solver, N, NULL), HONE_OK);
      CHECK_EQ_INT(hone_solver_factor(solver, room + A_AT, N, NULL), HONE_OK);
    }
    memcpy(before, room, sizeof room);
    snprintf(want, sizeof want, "options.columns overlaps %s",
             arrays[k / 4].name);
    ct_note("%s, column_size %d, %s", want, (int)o.column_size,
            solver ? "kept" : "once");
    o.columns = (hone_column *)(void *)(room + at + count - 1);
    CHECK_EQ_INT(solve_in_room(solver, room, &o, &report), HONE_BAD_OVERLAP);
    CHECK_STR(report.reason, want);
    if (at >= length) {
      o.columns = (hone_column *)(void *)(room + at - length + 1);
      CHECK_EQ_INT(solve_in_room(solver, room, &o, &report), HONE_BAD_OVERLAP);
    }
    CHECK_MEM_EQ(room, before, sizeof room);
    if (k & 1) { /* 9 doubles fit between two arrays */
      o.columns = (hone_column *)(void *)(room + at + count);
      CHECK_EQ_INT(solve_in_room(solver, room, &o, &report), HONE_OK);
    }
    hone_solver_destroy(&solver);
  }
}

/* An array of no elements overlaps nothing, wherever it is said to lie. */
TEST(edges, nothing_overlaps_an_empty_array) {
  hone_column columns[NRHS] = {{0}};
  double *within = &columns[1].backward_error;
  hone_options o = HONE_OPTIONS_INIT;
  o.columns = columns;
  CHECK_EQ_INT(hone_solve(0, NRHS, within, 1, within, 1, within, 1, &o, NULL),
               HONE_OK);
}

/* A column without a solution --------------------------------------------- */

TEST(edges, a_column_without_a_solution_keeps_what_it_held) {
  for (int in_place = 0; in_place < 2; in_place++) {
    sys s = make();
    hone_column columns[NRHS];
    s.options.columns = columns;
    for (int i = 0; i < N * N; i++)
      s.a[i] *= 1e-200;
    for (int i = 0; i < N; i++)
      s.b[i + N] *= 1e200;
    double *x = in_place ? s.b : s.x, before[N];
    memcpy(before, x + N, sizeof before);
    hone_solver *solver = factored(&s);
    CHECK_LT(0, hone_solver_solve(solver, NRHS, s.b, N, x, N, &s.options,
                                  &s.report));
    CHECK_EQ_INT(columns[0].status, HONE_OK);
    CHECK_EQ_INT(columns[1].status, HONE_OVERFLOW);
    CHECK(isinf(columns[1].backward_error));
    CHECK_EQ_INT(columns[2].status, HONE_OK);
    CHECK_MEM_EQ(x + N, before, sizeof before);
    CHECK(isfinite(x[0]) && isfinite(x[2 * N]));
    hone_solver_destroy(&solver);
  }
}

/* Second factorizations --------------------------------------------------- */

/* Condition 1e12: the single factors are set aside by the factor call, or at
   1e5 with one correction allowed, by the solve. Both reports say which. */
TEST(edges, columns_solved_by_a_second_factorization_are_counted) {
  enum { ORDER = 200 };
  for (int k = 0; k < 2; k++) {
    sup_rng rng = {5};
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    hone_solver *solver = NULL;
    double *a = sup_filled(ORDER * ORDER, 0.0);
    double *b = sup_filled(ORDER * NRHS, 1.0);
    double *x = sup_filled(ORDER * NRHS, 0.0);
    ct_note("case %d", k);
    sup_matrix_cond(&rng, ORDER, SUP_GEOMETRIC, k == 0 ? 1e12 : 1e6, a, ORDER);
    sup_random(&rng, ORDER, NRHS, b, ORDER);
    o.factor_precision = HONE_FACTOR_SINGLE;
    o.max_iterations = k == 0 ? 0 : 1;
    CHECK_EQ_INT(
        hone_solve(ORDER, NRHS, a, ORDER, b, ORDER, x, ORDER, &o, &report),
        HONE_OK);
    CHECK_EQ_INT(report.precision, 64);
    CHECK_EQ_INT(report.fallback_columns, NRHS);
    CHECK_EQ_INT(hone_solver_create(&solver, ORDER, &o), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, ORDER, &report), HONE_OK);
    CHECK_EQ_INT(report.precision, k == 0 ? 64 : 32);
    CHECK_EQ_INT(report.fallback_columns, 0);
    CHECK((report.fallback_ms > 0.0) == (k == 0));
    for (int again = 0; again < 2; again++) {
      CHECK_EQ_INT(
          hone_solver_solve(solver, NRHS, b, ORDER, x, ORDER, &o, &report),
          HONE_OK);
      CHECK_EQ_INT(report.precision, 64);
      CHECK_EQ_INT(report.fallback_columns, NRHS);
      CHECK((report.fallback_ms > 0.0) == (k == 1 && again == 0));
    }
    hone_solver_destroy(&solver);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

/* Sizes ------------------------------------------------------------------- */

TEST(edges, every_call_refuses_the_same_sizes) {
  const int64_t most = INT64_C(1) << 29;
  static const int64_t bad[] = {-1, INT64_MIN, (1 << 29) + 1, INT64_MAX};
  int64_t bytes = 5;
  for (int k = 0; k < 4; k++) {
    ct_note("%lld", (long long)bad[k]);
    CHECK_EQ_INT(hone_solve(0, bad[k], NULL, 1, NULL, 1, NULL, 1, NULL, NULL),
                 HONE_BAD_SIZE);
    CHECK_EQ_INT(hone_memory_needed(0, bad[k], NULL, &bytes, NULL),
                 HONE_BAD_SIZE);
    CHECK_EQ_INT(hone_memory_needed(bad[k], 0, NULL, &bytes, NULL),
                 HONE_BAD_SIZE);
    CHECK_EQ_INT(hone_device_memory_needed(bad[k], NULL, &bytes, NULL),
                 HONE_BAD_SIZE);
    CHECK_EQ_INT(bytes, 5);
  }
  CHECK_EQ_INT(hone_solve(0, most, NULL, 1, NULL, 1, NULL, 1, NULL, NULL),
               HONE_OK);
  CHECK_EQ_INT(hone_memory_needed(most, most, NULL, &bytes, NULL), HONE_OK);
  CHECK_LE(most, bytes);
}

TEST(edges, the_smallest_structs_are_those_that_the_header_names) {
  for (int less = 0; less < 2; less++) {
    sys s = make();
    hone_tuning tuning = HONE_TUNING_INIT;
    unsigned char columns[NRHS * sizeof(hone_column)];
    const int want = less ? HONE_BAD_STRUCT_SIZE : HONE_OK;
    s.report.struct_size = 96 - (size_t)less;
    CHECK_EQ_INT(once(&s), want);
    s = make();
    s.options.columns = (hone_column *)(void *)columns;
    s.options.column_size = 24 - (size_t)less;
    CHECK_EQ_INT(once(&s), want);
    s = make();
    s.options.tuning = &tuning;
    tuning.struct_size = 8 - (size_t)less;
    CHECK_EQ_INT(once(&s), want);
    s = make();
    s.options.struct_size = 8 - (size_t)less;
    CHECK_EQ_INT(once(&s), want);
  }
}

/* Half of a pointer is not an address. Where the struct ends before it, it is
   not read. */
TEST(edges, a_struct_that_ends_in_a_pointer_is_refused) {
  static const size_t pointers[] = {offsetof(hone_options, x0),
                                    offsetof(hone_options, columns),
                                    offsetof(hone_options, progress),
                                    offsetof(hone_options, progress_user),
                                    offsetof(hone_options, alloc),
                                    offsetof(hone_options, free),
                                    offsetof(hone_options, alloc_ctx),
                                    offsetof(hone_options, tuning),
                                    offsetof(hone_options, error_bounds)};
  for (size_t k = 0; k < sizeof pointers / sizeof *pointers; k++)
    for (size_t more = 0; more < sizeof(void *); more++) {
      sys s = make();
      const size_t size = pointers[k] + more;
      memset((char *)&s.options + pointers[k], 0x5a,
             sizeof s.options - pointers[k]);
      s.options.struct_size = size;
      ct_note("struct_size %zu", size);
      if (more == 0) {
        CHECK_EQ_INT(once(&s), HONE_OK);
        continue;
      }
      CHECK_EQ_INT(once(&s), HONE_BAD_STRUCT_SIZE);
      CHECK_CONTAINS(s.report.reason, "in a pointer");
    }
}

TEST(edges, a_tolerance_is_at_most_1) {
  sys s = make();
  s.options.tolerance = 1.0;
  CHECK_EQ_INT(once(&s), HONE_OK);
  s.options.tolerance = nextafter(1.0, 2.0);
  CHECK_EQ_INT(once(&s), HONE_BAD_OPTION);
}

/* The matrix in force ----------------------------------------------------- */

static void check_solves(hone_solver *solver, const sys *s) {
  double x[N];
  CHECK_EQ_INT(hone_solver_solve(solver, 1, s->b, N, x, N, NULL, NULL),
               HONE_OK);
  CHECK_LE(sup_backward_error(N, s->a, N, false, x, s->b), SUP_LIMIT);
}

TEST(edges, a_refused_matrix_leaves_the_one_before_in_force) {
  sys s = make(), t = make();
  hone_report bad = {.struct_size = 1};
  hone_solver *solver = factored(&s);
  t.a[1] = 2.5;
  CHECK_EQ_INT(hone_solver_factor(solver, NULL, N, NULL), HONE_NULL_POINTER);
  check_solves(solver, &s);
  CHECK_EQ_INT(hone_solver_update(solver, t.a, N - 1, NULL),
               HONE_BAD_LEADING_DIMENSION);
  check_solves(solver, &s);
  CHECK_EQ_INT(hone_solver_factor(solver, t.a, N, &bad), HONE_BAD_STRUCT_SIZE);
  check_solves(solver, &s);
  CHECK_EQ_INT(hone_solver_update(solver, t.a, N, NULL), HONE_OK);
  check_solves(solver, &t);
  hone_solver_destroy(&solver);
}

TEST(edges, a_matrix_with_a_fault_leaves_none_in_force) {
  for (int k = 0; k < 4; k++) {
    sys s = make(), t = make();
    hone_solver *solver = factored(&s);
    for (int i = 0; i < N; i++)
      t.a[i] = k & 1 ? 0.0 : (double)NAN;
    CHECK_EQ_INT(k & 2 ? hone_solver_update(solver, t.a, N, NULL)
                       : hone_solver_factor(solver, t.a, N, NULL),
                 k & 1 ? HONE_SINGULAR : HONE_NOT_FINITE_A);
    memset(t.a, 0, sizeof t.a); /* it is not borrowed either */
    CHECK_EQ_INT(kept(solver, &s), HONE_NOT_FACTORED);
    CHECK(untouched(&s));
    CHECK_EQ_INT(hone_solver_update(solver, s.a, N, NULL), HONE_OK);
    check_solves(solver, &s);
    hone_solver_destroy(&solver);
  }
}

/* The estimate that an update makes with the old factors cannot be had. */
TEST(edges, an_update_that_fails_leaves_no_matrix_in_force) {
  sys s = make();
  sup_script *script;
  hone_mem mem = {0};
  hone_watch watch = {.stopped = false};
  hone_ladder ladder;
  const hone_request request = {.limit = SUP_LIMIT, .gmres_steps = -1};
  const hone_engine *engine = sup_scripted(0, "scripted", 32, &script);
  CHECK_EQ_INT(
      sup_ladder_create(&ladder, N, &engine, 1, &request, &mem, NULL, &watch),
      HONE_OK);
  const hone_matrix *a = sup_matrix(N, N, s.a);
  CHECK_EQ_INT(hone_ladder_factor(&ladder, a, &s.report), HONE_OK);
  CHECK(ladder.factored);
  script->solve_status = HONE_DEVICE_FAILED;
  script->solve_fails_at = 0;
  script->solves = 0;
  CHECK_EQ_INT(hone_ladder_update(&ladder, a, &s.report), HONE_DEVICE_FAILED);
  CHECK(!ladder.factored);
  hone_ladder_destroy(&ladder);
}

static int stop_in_factor(void *user, const hone_progress *event) {
  (void)user;
  return strcmp(event->phase, "factor") == 0;
}

/* The solve finds the kept factors useless, and is stopped as it factors. */
TEST(edges, a_solve_that_is_stopped_in_factor_leaves_no_matrix_in_force) {
  sys s = make(), t = make();
  hone_options o = HONE_OPTIONS_INIT;
  hone_solver *solver = NULL;
  o.factor_precision = HONE_FACTOR_SINGLE;
  CHECK_EQ_INT(hone_solver_create(&solver, N, &o), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, N, NULL), HONE_OK);
  for (int i = 0; i < N; i++) /* as far as the update does not factor itself */
    t.a[i + i * N] *= i % 2 ? 1.35 : 0.65;
  CHECK_EQ_INT(hone_solver_update(solver, t.a, N, &t.report), HONE_OK);
  CHECK_CONTAINS(t.report.path, "of an earlier matrix");
  t.options.progress = stop_in_factor;
  CHECK_LT(0, kept(solver, &t));
  t.options.progress = NULL;
  CHECK_EQ_INT(kept(solver, &t), HONE_NOT_FACTORED);
  CHECK_EQ_INT(hone_solver_factor(solver, t.a, N, NULL), HONE_OK);
  check_solves(solver, &t);
  hone_solver_destroy(&solver);
}

TEST(edges, a_layout_of_zero_means_as_created) {
  sys s = make();
  hone_options o = HONE_OPTIONS_INIT;
  hone_solver *solver = NULL;
  o.layout = HONE_ROW_MAJOR;
  CHECK_EQ_INT(hone_solver_create(&solver, N, &o), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, N, NULL), HONE_OK);
  CHECK_EQ_INT(kept(solver, &s), HONE_OK); /* HONE_COL_MAJOR, which is 0 */
  CHECK_LE(sup_backward_error(N, s.a, N, true, s.x, s.b), SUP_LIMIT);
  hone_solver_destroy(&solver);
}

TEST(edges, norm1_of_a_row_major_matrix_is_its_infinity_norm) {
  sys s = make();
  double largest[2] = {0.0, 0.0}; /* sums by columns and by rows, as stored */
  for (int j = 0; j < N; j++) {
    double sums[2] = {0.0, 0.0};
    for (int i = 0; i < N; i++) {
      sums[0] += fabs(s.a[i + j * N]);
      sums[1] += fabs(s.a[j + i * N]);
    }
    largest[0] = fmax(largest[0], sums[0]);
    largest[1] = fmax(largest[1], sums[1]);
  }
  CHECK_LT(1e-3, fabs(largest[0] - largest[1]));
  CHECK_EQ_INT(once(&s), HONE_OK);
  CHECK_NEAR(s.report.norm1, largest[0], 1e-14 * largest[0]);
  s.options.layout = HONE_ROW_MAJOR; /* the rows are what is stored together */
  CHECK_EQ_INT(once(&s), HONE_OK);
  CHECK_NEAR(s.report.norm1, largest[0], 1e-14 * largest[0]);
}
