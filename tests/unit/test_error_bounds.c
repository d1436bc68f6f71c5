/* SPDX-License-Identifier: BSD-3-Clause */
/* options.error_bounds: the error of every entry of x is at most its bound,
   beside solutions in quadruple precision; where the bounds may lie, and when
   there are none. */
#include "tests/unit/device_memory.h"
#include "tests/unit/reference.h"
#include "tests/unit/shaped_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { NRHS = 3, PAD = 2 };

static const double UNTOUCHED = -6.25e77;

/* A system with its solutions; the bounds have a leading dimension n + PAD. */
typedef struct trial {
  int64_t n, nrhs;
  double *a, *b, *x, *hi, *lo, *bounds;
  hone_column column[NRHS];
  hone_options options;
  hone_report report;
} trial;

/* The trial owns a from here on. */
static trial make(int64_t n, double *a) {
  trial t = {.n = n,
             .nrhs = NRHS,
             .a = a,
             .b = sup_filled(NRHS * n, 0.0),
             .x = sup_filled(NRHS * n, UNTOUCHED),
             .hi = sup_filled(NRHS * n, 0.0),
             .lo = sup_filled(NRHS * n, 0.0),
             .bounds = sup_filled(NRHS * (n + PAD), UNTOUCHED),
             .options = HONE_OPTIONS_INIT,
             .report = HONE_REPORT_INIT};
  sup_rng rng = {(uint64_t)n};
  sup_random(&rng, n, NRHS, t.b, n);
  for (int64_t i = 0; i < n; i++) /* the last right-hand side is sparse */
    t.b[2 * n + i] *= i % 7 == 3 ? 1.0 : 0.0;
  t.options.error_bounds = t.bounds;
  t.options.ld_error_bounds = n + PAD;
  return t;
}

static trial make_family(int family, int64_t n, double cond, uint64_t seed) {
  sup_rng rng = {seed};
  double *a = sup_filled(n * n, 0.0);
  ref_matrix(&rng, family, n, cond, a);
  return make(n, a);
}

/* Diagonally dominant. */
static trial make_easy(int64_t n) {
  trial t = make_family(REF_RANDOM, n, 1.0, 5);
  for (int64_t i = 0; i < n; i++)
    t.a[i + i * n] += (double)n;
  return t;
}

static void discard(trial *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
  sup_free(t->hi);
  sup_free(t->lo);
  sup_free(t->bounds);
}

static int solve(trial *t) {
  t->options.columns = t->column;
  return hone_solve(t->n, t->nrhs, t->a, t->n, t->b, t->n, t->x, t->n,
                    &t->options, &t->report);
}

/* Counts of what the systems were like. */
typedef struct tally {
  int bounded, unbounded, gmres, single, in_double;
} tally;

/* Checks the bounds of column c, and the largest of them with the bound on the
   whole of x. */
static void check_column(const trial *t, int64_t c, tally *seen) {
  const double *x = t->x + c * t->n, *bound = t->bounds + c * (t->n + PAD);
  const double *hi = t->hi + c * t->n, *lo = t->lo + c * t->n;
  double largest = 0.0, size = 0.0;
  for (int64_t i = 0; i < t->n; i++) {
    CHECK_LE(fabs((x[i] - hi[i]) - lo[i]), bound[i]);
    largest = fmax(largest, bound[i]);
    size = fmax(size, fabs(x[i]));
  }
  CHECK(sup_untouched(bound + t->n, PAD, UNTOUCHED));
  if (isinf(t->column[c].forward_error)) {
    CHECK(isinf(largest));
    seen->unbounded++;
    return;
  }
  /* forward_error has eps more, for a reference that is rounded. */
  const double whole = t->column[c].forward_error * size;
  CHECK_LE(whole - SUP_EPS * size, largest + 1e-9 * whole);
  CHECK_LE(largest, whole * (1.0 + 1e-9));
  seen->bounded++;
}

static void check(trial *t, tally *seen) {
  const bool trans =
      (t->options.trans == HONE_TRANS) != (t->options.layout == HONE_ROW_MAJOR);
  const bool solvable =
      ref_solve(t->n, t->a, trans, t->nrhs, t->b, t->hi, t->lo);
  CHECK(solvable);
  const int st = solve(t);
  CHECK_LE(0, st);
  if (!solvable || st < 0)
    return;
  const int before = seen->bounded;
  for (int64_t c = 0; c < t->nrhs; c++)
    check_column(t, c, seen);
  /* Columns that noise is sampled for add 1e-11 each time. */
  const double failure = t->report.bound_failure;
  CHECK(seen->bounded > before ? failure >= 1e-9 && failure <= 1.5e-9
                               : failure <= 0.0);
  seen->gmres += t->report.gmres_steps > 0;
  seen->single += t->report.precision == 32;
  seen->in_double += t->report.precision == 64;
}

static void set_form(trial *t, int form) {
  t->options.trans = form & 1 ? HONE_TRANS : HONE_NO_TRANS;
  t->options.layout = form & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
  t->options.extra_precise = form >> 2 & 1;
}

/* The bounds ------------------------------------------------------------- */

TEST(error_bounds, are_at_least_the_errors_of_all_entries) {
  tally seen = {0};
  for (int k = 0; k < 13 * 20; k++) {
    const int family = k % REF_FAMILIES;
    const double cond = pow(10.0, 1 + k % 11);
    trial t = make_family(family, 3 + k % 41, cond, (uint64_t)k);
    t.options.factor_precision = HONE_FACTOR_SINGLE;
    set_form(&t, k / REF_FAMILIES);
    ct_note("%s, n %d, condition %g, form %d", ref_name(family), (int)t.n, cond,
            k / REF_FAMILIES % 8);
    check(&t, &seen);
    discard(&t);
  }
  CHECK_LE(600, seen.bounded); /* of 780 */
  CHECK_LE(100, seen.single);
  CHECK_LE(30, seen.in_double);
}

/* Rows 0 and 3 are so nearly equal that rounding errors of double factors are
   1e-3 of a correction. A product with S that is rounded once for a sum gave
   vectors for which the second power of E was exactly 0. */
TEST(error_bounds, hold_where_products_and_solves_undo_each_other) {
  static const double a[4][4] = {
      {0.0, -0x1.0000000004f6fp+30, 0x1.fffffea4631f4p+18,
       -0x1.1ffffffffc3e1p+29},
      {0x1.bffffea46096cp-10, -0x1.9fffff7d9e1e1p-4, 0x1.ffffffffffffdp-3,
       -0x1.bfffff7daa859p-3},
      {0x1.9ffffea45dbbep+3, -0x1.6fffff7dadcc4p+11, 0x1.9ffffea4553e2p-2,
       -0x1.8fffff7d13b97p+10},
      {0.0, -0x1.0000000004f6fp+30, 0x1.fffffea463212p+18,
       -0x1.1ffffffffc3ebp+29}};
  static const double b[4] = {0x1.406609d07ad2bp+28, -0x1.68cf65659594bp+28,
                              -0x1.0aed7d178818p+28, -0x1.79f1b57p+28};
  static const double exact[4] = {-0x1.29602fc254709p+51,
                                  -0x1.3a618f2a8a9b4p+48, 0x1.79de489cb62c9p+48,
                                  0x1.179d262dce834p+49};
  for (int layout = HONE_COL_MAJOR; layout <= HONE_ROW_MAJOR; layout++) {
    double given[16], x[4], bars[4];
    hone_options o = HONE_OPTIONS_INIT;
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++)
        given[layout == HONE_ROW_MAJOR ? 4 * i + j : i + 4 * j] = a[i][j];
    o.layout = layout;
    o.deterministic = 1;
    o.error_bounds = bars;
    o.ld_error_bounds = 4;
    ct_note("layout %d", layout);
    CHECK_EQ_INT(hone_solve(4, 1, given, 4, b, 4, x, 4, &o, NULL), HONE_OK);
    for (int i = 0; i < 4; i++)
      CHECK_LE(fabs(x[i] - exact[i]), bars[i] * (1.0 + 1e-9));
  }
}

TEST(error_bounds, hold_at_larger_orders) {
  tally seen = {0};
  for (int k = 0; k < 8; k++) {
    sup_rng rng = {(uint64_t)k};
    const int64_t n = 150 + 20 * k;
    double *a = sup_filled(n * n, 0.0);
    sup_matrix_cond(&rng, n, SUP_GEOMETRIC, pow(10.0, 1 + k % 7), a, n);
    trial t = make(n, a);
    t.options.factor_precision = HONE_FACTOR_SINGLE;
    ct_note("n %d", (int)n);
    set_form(&t, k);
    check(&t, &seen);
    discard(&t);
  }
  CHECK_EQ_INT(seen.bounded, 8 * NRHS);
}

TEST(error_bounds, hold_where_gmres_makes_the_corrections) {
  tally seen = {0};
  for (int k = 0; k < 60; k++) {
    const int64_t n = 64; /* the smallest order for GMRES */
    sup_rng rng = {(uint64_t)k};
    double *a = sup_filled(n * n, 0.0);
    sup_matrix_cond(&rng, n, k % 5 + 1, pow(10.0, 7 + k % 8), a, n);
    trial t = make(n, a);
    t.options.factor_precision = HONE_FACTOR_SINGLE;
    t.nrhs = 1;
    t.options.deterministic = 1;
    t.options.device = HONE_DEVICE_CPU;
    set_form(&t, k % 4);
    ct_note("trial %d", k);
    check(&t, &seen);
    discard(&t);
  }
  CHECK_EQ_INT(seen.bounded, 60);
  CHECK_LE(5, seen.gmres);
}

TEST(error_bounds, hold_for_every_structure) {
  tally seen = {0};
  for (int k = 0; k < SHAPES * 16; k++) {
    const shape kind = (shape)(k % SHAPES);
    shaped s = shaped_make(kind, 12 + k % 40, 1, 0);
    shaped_fill(&s, kind, k % 3 * 3.0);
    trial t = make(s.n, sup_copy(s.a, s.n * s.n));
    if (kind == DEFINITE && k % 2)
      t.options.structure = HONE_STRUCTURE_SPD;
    set_form(&t, k / SHAPES);
    ct_note("shape %d, n %d, form %d", (int)kind, (int)s.n, k / SHAPES % 8);
    check(&t, &seen);
    discard(&t);
    shaped_discard(&s);
  }
  CHECK_EQ_INT(seen.bounded, SHAPES * 16 * NRHS);
}

/* x and the report of a solver do not depend on whether the caller wants
   bounds. */
TEST(error_bounds, change_nothing_else) {
  for (int k = 0; k < 8; k++) {
    trial t = make_family(k % REF_FAMILIES, 30, 1e6, 3);
    t.options.deterministic = 1;
    set_form(&t, k);
    const int st = solve(&t);
    double *x = sup_copy(t.x, NRHS * t.n);
    const hone_report report = t.report;
    t.options.error_bounds = NULL;
    t.options.ld_error_bounds = 0;
    CHECK_EQ_INT(solve(&t), st);
    CHECK_MEM_EQ(x, t.x, (size_t)(NRHS * t.n) * sizeof *x);
    CHECK_NEAR(report.forward_error, t.report.forward_error, 0.0);
    CHECK_NEAR(report.bound_failure, t.report.bound_failure, 0.0);
    CHECK_STR(report.path, t.report.path);
    sup_free(x);
    discard(&t);
  }
}

TEST(error_bounds, of_a_solver_are_those_of_one_solve) {
  trial t = make_easy(20);
  hone_solver *solver = NULL;
  REQUIRE(hone_solver_create(&solver, t.n, NULL) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, t.a, t.n, &t.report), HONE_OK);
  CHECK_NEAR(t.report.bound_failure, 0.0, 0.0);
  CHECK_EQ_INT(hone_solver_solve(solver, NRHS, t.b, t.n, t.x, t.n, &t.options,
                                 &t.report),
               HONE_OK);
  for (int64_t c = 0; c < NRHS; c++)
    for (int64_t i = 0; i < t.n; i++)
      CHECK_LE(t.bounds[i + c * (t.n + PAD)], 1e-13);
  double *before = sup_copy(t.bounds, NRHS * (t.n + PAD));
  t.b[3] += 1.0;
  CHECK_EQ_INT(
      hone_solver_solve(solver, NRHS, t.b, t.n, t.x, t.n, NULL, &t.report),
      HONE_OK);
  CHECK_MEM_EQ(t.bounds, before, (size_t)(NRHS * (t.n + PAD)) * sizeof *before);
  hone_solver_destroy(&solver);
  sup_free(before);
  discard(&t);
}

/* No bounds ------------------------------------------------------------ */

static void check_infinite(const trial *t, int64_t c) {
  for (int64_t i = 0; i < t->n; i++)
    CHECK(isinf(t->bounds[i + c * (t->n + PAD)]));
}

TEST(error_bounds, of_a_singular_system_are_infinite) {
  trial t = make_family(REF_RANDOM, 30, 1.0, 8);
  for (int64_t i = 0; i < t.n; i++)
    t.a[i + 4 * t.n] = t.a[i + 9 * t.n] + t.a[i + 2 * t.n];
  CHECK_EQ_INT(solve(&t), HONE_ILL_CONDITIONED);
  for (int64_t c = 0; c < NRHS; c++)
    check_infinite(&t, c);
  CHECK_NEAR(t.report.bound_failure, 0.0, 0.0);
  discard(&t);
}

/* The second column of x overflows. */
TEST(error_bounds, of_a_column_without_a_solution_are_infinite) {
  trial t = make_easy(10);
  for (int64_t i = 0; i < t.n * t.n; i++)
    t.a[i] *= 1e-3;
  for (int64_t i = 0; i < t.n; i++)
    t.b[t.n + i] = i % 2 ? 1.7e308 : -1.7e308;
  CHECK_LT(0, solve(&t));
  CHECK_EQ_INT(t.column[0].status, HONE_OK);
  CHECK_EQ_INT(t.column[1].status, HONE_OVERFLOW);
  check_infinite(&t, 1);
  CHECK_LE(t.bounds[0], 1e-12);
  CHECK_LE(t.bounds[2 * (t.n + PAD)], 1e-12);
  CHECK_NEAR(t.report.bound_failure, 1e-9, 0.0);
  discard(&t);
}

TEST(error_bounds, of_zero_are_zero) {
  trial t = make_easy(10);
  memset(t.b, 0, (size_t)(NRHS * t.n) * sizeof *t.b);
  CHECK_EQ_INT(solve(&t), HONE_OK);
  for (int64_t c = 0; c < NRHS; c++)
    for (int64_t i = 0; i < t.n; i++)
      CHECK_NEAR(t.bounds[i + c * (t.n + PAD)], 0.0, 0.0);
  discard(&t);
}

/* Corrections leave the range of double here, and the bound by norms does not.
   By rational arithmetic x = (-4, -8130414, 1, 6.6e-124), roughly. */
TEST(error_bounds, are_finite_where_the_forward_error_is) {
  static const double a[] = {
      0x1.ac88d635ee81ap+329,  0x1.69fb55a84507p+770,   0x1.3b7600b79119ep-668,
      0x1.49172caff9f38p+273,  -0x1.d2edaa32d1cf4p-241, 0x1.20803c58bc57p-316,
      -0x1.d5e4f1d7ce344p-202, 0x1.e47180ecdf8a8p-105,  -0x1.5630c49a1c6cep+724,
      0x1.0a5abf588cb9cp+749,  0x1.6bab021a27cap+214,   -0x1.d8cce61ed76c8p+429,
      -0x1.b70e7ec43c332p+700, -0x1.b9ab8255b027p-641,  -0x1.ea297aa758c8p-407,
      0x1.7a5d8b88fdb4p+684};
  static const double b[] = {-0x1.5630c49a1c6cep+724, -0x1.69fb53938f885p+772,
                             0x1.6bab021a27cap+214, -0x1.d8cce61ed76c8p+429};
  double x[4], bars[4];
  hone_report report = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.error_bounds = bars;
  o.ld_error_bounds = 4;
  CHECK_LE(HONE_OK, hone_solve(4, 1, a, 4, b, 4, x, 4, &o, &report));
  CHECK_LE(report.forward_error, 1e160);
  for (int i = 0; i < 4; i++)
    CHECK_LE(bars[i], 2.0 * report.forward_error * 8130415.0);
}

TEST(error_bounds, of_an_empty_system_are_not_written) {
  static const int64_t sizes[][2] = {{0, 3}, {0, 0}, {5, 0}};
  for (int k = 0; k < 3; k++) {
    const int64_t n = sizes[k][0], ld = HONE_MAX(n, (int64_t)1);
    double bounds[20];
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    for (int i = 0; i < 20; i++)
      bounds[i] = UNTOUCHED;
    o.error_bounds = bounds;
    o.ld_error_bounds = ld;
    CHECK_EQ_INT(
        hone_solve(n, sizes[k][1], NULL, ld, NULL, ld, NULL, ld, &o, &report),
        HONE_OK);
    CHECK(sup_untouched(bounds, 20, UNTOUCHED));
    CHECK_NEAR(report.bound_failure, 0.0, 0.0);
    o.ld_error_bounds = ld - 1;
    CHECK_EQ_INT(
        hone_solve(n, sizes[k][1], NULL, ld, NULL, ld, NULL, ld, &o, &report),
        HONE_BAD_LEADING_DIMENSION);
  }
}

/* Arguments ------------------------------------------------------------- */

TEST(error_bounds, have_a_leading_dimension) {
  trial t = make_easy(9);
  t.options.ld_error_bounds = 8;
  CHECK_EQ_INT(solve(&t), HONE_BAD_LEADING_DIMENSION);
  CHECK_STR(t.report.reason, "ld_error_bounds is 8, less than max(1, n) = 9");
  t.options.ld_error_bounds = INT64_MAX / 2;
  CHECK_EQ_INT(solve(&t), HONE_BAD_LEADING_DIMENSION);
  CHECK_CONTAINS(t.report.reason, ": error_bounds would span 2^62");
  CHECK(sup_untouched(t.bounds, NRHS * (t.n + PAD), UNTOUCHED));
  CHECK(sup_untouched(t.x, NRHS * t.n, UNTOUCHED));
  t.options.error_bounds = NULL; /* then it is not read */
  CHECK_EQ_INT(solve(&t), HONE_OK);
  discard(&t);
}

/* An older program does not know the option. */
TEST(error_bounds, are_not_written_for_an_older_program) {
  trial t = make_easy(9);
  t.options.struct_size = offsetof(hone_options, error_bounds);
  CHECK_EQ_INT(solve(&t), HONE_OK);
  CHECK(sup_untouched(t.bounds, NRHS * (t.n + PAD), UNTOUCHED));
  discard(&t);
}

/* The first or the last bound alone lies in another array. */
TEST(error_bounds, may_not_overlap_another_array) {
  enum { N = 6, LENGTH = N * NRHS, ROOM = 200 };
  static const struct {
    const char *name;
    int at, count;
  } arrays[] = {{"A", 30, N * N},
                {"b", 90, LENGTH},
                {"x", 110, LENGTH},
                {"options.x0", 130, LENGTH},
                {"options.columns", 150, NRHS * 6}};
  for (int k = 0; k < 5 * 3; k++) {
    const int at = arrays[k / 3].at, count = arrays[k / 3].count;
    trial t = make_easy(N);
    double room[ROOM] = {0.0};
    char want[80];
    memcpy(room + 30, t.a, sizeof(double) * N * N);
    hone_options o = HONE_OPTIONS_INIT;
    o.x0 = room + 130;
    o.ldx0 = N;
    o.columns = (hone_column *)(void *)(room + 150);
    o.ld_error_bounds = N;
    o.error_bounds = k % 3 == 0   ? room + at + count - 1
                     : k % 3 == 1 ? room + at - LENGTH + 1
                                  : room + 170;
    snprintf(want, sizeof want, "options.error_bounds overlaps %s",
             arrays[k / 3].name);
    ct_note("%s, %d", want, k % 3);
    const int st = hone_solve(N, NRHS, room + 30, N, room + 90, N, room + 110,
                              N, &o, &t.report);
    CHECK_EQ_INT(st, k % 3 == 2 ? HONE_OK : HONE_BAD_OVERLAP);
    if (k % 3 == 0)
      CHECK_STR(t.report.reason, want);
    discard(&t);
  }
}

/* With a solver, whose A is known already. */
TEST(error_bounds, may_not_overlap_the_matrix_of_a_solver) {
  trial t = make_easy(9);
  hone_solver *solver = NULL;
  REQUIRE(hone_solver_create(&solver, t.n, NULL) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, t.a, t.n, NULL), HONE_OK);
  t.options.error_bounds = t.a;
  t.options.ld_error_bounds = t.n;
  CHECK_EQ_INT(hone_solver_solve(solver, NRHS, t.b, t.n, t.x, t.n, &t.options,
                                 &t.report),
               HONE_BAD_OVERLAP);
  CHECK_STR(t.report.reason, "options.error_bounds overlaps A");
  hone_solver_destroy(&solver);
  discard(&t);
}

TEST(error_bounds, may_lie_on_a_device) {
  device_begin();
  for (int form = 0; form < 8; form++) {
    trial t = make_family(REF_GRADED_COLUMNS, 25, 1e4, 3);
    const int64_t count = NRHS * (t.n + PAD);
    double *there = on_device(t.bounds, count);
    set_form(&t, form);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    double *here = sup_filled(count, 0.0);
    const int64_t before = t.report.to_device_bytes;
    t.options.error_bounds = there;
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK_GE(t.report.to_device_bytes, before + NRHS * t.n * 8);
    device_get(here, there, (size_t)count * sizeof *here);
    CHECK_MEM_EQ(here, t.bounds, (size_t)count * sizeof *here);
    device_free(there);
    sup_free(here);
    discard(&t);
  }
  device_end();
}

/* Texts ------------------------------------------------------------------- */

TEST(error_bounds, have_their_probability_in_the_texts_of_the_report) {
  char text[4096];
  trial t = make_easy(9);
  CHECK_EQ_INT(solve(&t), HONE_OK);
  CHECK_LT(0, hone_report_text(&t.report, text, sizeof text));
  CHECK_CONTAINS(text, " digits certain but for a probability of 1e-09\n");
  CHECK_LT(0, hone_report_json(&t.report, text, sizeof text));
  CHECK_CONTAINS(text, "\"bound_failure\": 1.0000000000000001e-09");
  discard(&t);
}
