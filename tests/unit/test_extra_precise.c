/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra-precise mode: x beside solutions in quadruple precision. Next to read:
   test_refine_extra.c, where engines follow scripts. */
#include "tests/unit/reference.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double UNTOUCHED = 77.25;
static const double ULP = 2.0 * SUP_EPS, PROMISED = 8.0 * SUP_EPS;

enum { MOST_COLUMNS = 100 };

typedef struct trial {
  int64_t n, nrhs;
  double *a, *b, *x, *hi, *lo;
  bool solvable;
  hone_options options;
  hone_report report;
} trial;

static hone_column column[MOST_COLUMNS];

/* The trial owns a from here on. */
static trial make(sup_rng *rng, int64_t n, int64_t nrhs, double *a,
                  bool trans) {
  trial t = {.n = n,
             .nrhs = nrhs,
             .a = a,
             .b = sup_filled(nrhs * n, 0.0),
             .x = sup_filled(nrhs * n, UNTOUCHED),
             .hi = sup_filled(nrhs * n, 0.0),
             .lo = sup_filled(nrhs * n, 0.0)};
  sup_random(rng, n, nrhs, t.b, n);
  t.solvable = ref_solve(n, a, trans, nrhs, t.b, t.hi, t.lo);
  CHECK(t.solvable);
  t.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&t.report, sizeof t.report);
  t.options.factor_precision = HONE_FACTOR_SINGLE;
  t.options.trans = trans;
  t.options.columns = column;
  t.options.extra_precise = 1;
  return t;
}

static trial make_family(int family, int64_t n, double cond, uint64_t seed,
                         bool trans) {
  sup_rng rng = {seed};
  double *a = sup_filled(n * n, 0.0);
  ref_matrix(&rng, family, n, cond, a);
  return make(&rng, n, 2, a, trans);
}

static int solve(trial *t) {
  return hone_solve(t->n, t->nrhs, t->a, t->n, t->b, t->n, t->x, t->n,
                    &t->options, &t->report);
}

static void discard(trial *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
  sup_free(t->hi);
  sup_free(t->lo);
}

static double error_of(const trial *t, int64_t c) {
  return ref_error(t->n, t->x + c * t->n, t->hi + c * t->n, t->lo + c * t->n);
}

static double error_of_any(const trial *t, int64_t c) {
  return ref_error_of_any(t->n, t->x + c * t->n, t->hi + c * t->n,
                          t->lo + c * t->n);
}

/* x must be accepted and equal to the solution but for its last bit. */
static void check_last_bit(trial *t) {
  CHECK_EQ_INT(solve(t), HONE_OK);
  for (int64_t c = 0; c < t->nrhs; c++) {
    CHECK_LE(error_of(t, c), ULP);
    CHECK_LE(error_of(t, c), column[c].forward_error);
    CHECK_LE(column[c].forward_error, PROMISED);
    CHECK_LE(column[c].backward_error, SUP_LIMIT);
    CHECK_NEAR(column[c].backward_error,
               sup_backward_error(t->n, t->a, t->n, t->options.trans,
                                  t->x + c * t->n, t->b + c * t->n),
               1e-3 * SUP_EPS);
  }
}

TEST(extra_precise, gives_x_to_its_last_bit_up_to_condition_1e7) {
  static const int families[] = {REF_RANDOM,     REF_ONE_LARGE,
                                 REF_ONE_SMALL,  REF_GEOMETRIC,
                                 REF_ARITHMETIC, REF_LOG_UNIFORM};
  for (int k = 0; k < 72; k++) {
    const int64_t n = 5 + 11 * k % 56;
    const double cond = pow(10.0, 1 + k % 7);
    trial t = make_family(families[k % 6], n, cond, (uint64_t)k, k % 4 == 3);
    ct_note("%s, n %d, condition %g", ref_name(families[k % 6]), (int)n, cond);
    check_last_bit(&t);
    for (int c = 0; c < 2; c++) {
      if (cond < 1e7) /* above, the contraction is larger than 1/10 */
        CHECK_EQ_INT(column[c].precision, 32);
      CHECK_LE(error_of_any(&t, c), ULP);
    }
    discard(&t);
  }
}

/* Every entry, in any unit. */
TEST(extra_precise, gives_every_entry_of_x_in_mixed_units) {
  static const int families[] = {REF_GRADED_ROWS, REF_GRADED_COLUMNS,
                                 REF_GRADED_BOTH, REF_MIXED_UNITS};
  for (int k = 0; k < 48; k++) {
    const double cond = pow(10.0, 2 + k % 8);
    trial t = make_family(families[k % 4], 6 + k, cond, (uint64_t)k, k % 8 > 4);
    ct_note("%s, n %d, grading %g", ref_name(families[k % 4]), 6 + k, cond);
    check_last_bit(&t);
    for (int c = 0; c < 2; c++)
      CHECK_LE(error_of_any(&t, c), ULP);
    discard(&t);
  }
}

/* Beyond 1e12 the noise of residuals in double-double, which random vectors
   bound, leaves some x with a bound above PROMISED, and rows are summed in
   pairs of long doubles (docs/numerics.md). */
TEST(extra_precise, holds_for_larger_conditions_with_double_factors) {
  for (int k = 0; k < 48; k++) {
    const double cond = pow(10.0, 9 + k % 6);
    trial t = make_family(REF_GEOMETRIC, 40, cond, (uint64_t)k, k % 4 > 1);
    ct_note("condition %g", cond);
    check_last_bit(&t);
    CHECK_EQ_INT(column[0].precision, 64);
    discard(&t);
  }
}

/* Where full accuracy is out of reach it is not claimed, and the bound still
   holds. */
TEST(extra_precise, reports_the_error_where_full_accuracy_is_out_of_reach) {
  for (int k = 0; k < 12; k++) {
    trial t = make_family(REF_ONE_SMALL, 20, pow(10.0, 15.0 + k / 4.0),
                          (uint64_t)k, false);
    int st = solve(&t);
    ct_note("matrix %d", k);
    CHECK_LE(0, st);
    for (int c = 0; c < 2; c++) {
      CHECK_LE(error_of(&t, c), column[c].forward_error);
      if (column[c].status == HONE_OK)
        CHECK_LE(column[c].forward_error, PROMISED);
      else
        CHECK_LT(PROMISED, column[c].forward_error);
    }
    discard(&t);
  }
}

/* A system for which the plain mode meets its backward error and leaves an
   error that the extra-precise mode removes. */
static trial make_distinguishing(void) {
  return make_family(REF_GEOMETRIC, 60, 1e6, 2, false);
}

TEST(extra_precise, is_more_accurate_than_the_plain_mode) {
  trial t = make_distinguishing();
  t.options.extra_precise = 0;
  CHECK_EQ_INT(solve(&t), HONE_OK);
  const int32_t plain = t.report.iterations;
  CHECK_LE(4.0 * PROMISED, error_of(&t, 0));
  t.options.extra_precise = -1; /* any value but 0 switches it on */
  check_last_bit(&t);
  CHECK_LT(plain, t.report.iterations);
  discard(&t);
}

/* In an options struct that ends before the field the mode is plain, whatever
   bytes follow. */
TEST(extra_precise, is_off_in_an_older_struct) {
  trial t = make_distinguishing();
  t.options.struct_size = offsetof(hone_options, extra_precise);
  CHECK_EQ_INT(solve(&t), HONE_OK);
  CHECK_LE(4.0 * PROMISED, error_of(&t, 0));
  discard(&t);
}

TEST(extra_precise, solves_for_many_right_hand_sides) {
  enum { N = 30 };
  sup_rng rng = {9};
  double *a = sup_filled(N * N, 0.0);
  ref_matrix(&rng, REF_GEOMETRIC, N, 1e6, a);
  trial t = make(&rng, N, MOST_COLUMNS, a, false);
  memset(t.b + 5 * N, 0, N * sizeof *t.b); /* b = 0, hence x = 0 */
  memset(t.hi + 5 * N, 0, N * sizeof *t.b);
  memset(t.lo + 5 * N, 0, N * sizeof *t.b);
  check_last_bit(&t);
  CHECK_EQ_INT(t.report.accepted, MOST_COLUMNS);
  discard(&t);
}

TEST(extra_precise, solves_a_thousand_equations) {
  sup_rng rng = {11};
  const int64_t n = sup_emulated() ? 100 : 1000;
  double *a = sup_filled(n * n, 0.0);
  sup_matrix_cond(&rng, n, SUP_LOG_UNIFORM, 1e6, a, n);
  trial t = make(&rng, n, 1, a, false);
  check_last_bit(&t);
  CHECK_EQ_INT(column[0].precision, 32);
  CHECK_LE(error_of_any(&t, 0), ULP);
  discard(&t);
}

/* Products of A and x overflow or underflow on the way. */
TEST(extra_precise, works_near_both_ends_of_the_range) {
  static const double sizes[][2] = {
      {1e300, 1e-5}, {1e-290, 1e-5}, {1e250, 1e250}, {1e-100, 1e150}};
  for (int k = 0; k < 8; k++) {
    sup_rng rng = {(uint64_t)k};
    const double *size = sizes[k % 4];
    enum { N = 25 };
    double *a = sup_filled(N * N, 0.0);
    ref_matrix(&rng, REF_ONE_SMALL, N, 1e6, a);
    trial t = make(&rng, N, 1, a, k > 3);
    int scale_a = ilogb(size[0]), scale_b = ilogb(size[1]);
    for (int64_t i = 0; i < N * N; i++)
      t.a[i] = ldexp(t.a[i], scale_a);
    for (int64_t i = 0; i < N; i++) {
      t.b[i] = ldexp(t.b[i], scale_b);
      t.hi[i] = ldexp(t.hi[i], scale_b - scale_a);
      t.lo[i] = ldexp(t.lo[i], scale_b - scale_a);
    }
    ct_note("A %g, b %g", size[0], size[1]);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK_LE(error_of(&t, 0), ULP);
    discard(&t);
  }
}

TEST(extra_precise, makes_no_more_corrections_than_allowed) {
  for (int cap = 1; cap <= 5; cap++) {
    trial t = make_family(REF_GEOMETRIC, 40, 1e5, 5, false);
    t.options.max_iterations = cap;
    int st = solve(&t);
    ct_note("cap %d", cap);
    CHECK(st == HONE_OK || st == HONE_NOT_CONVERGED);
    if (st != HONE_OK)
      CHECK_CONTAINS(t.report.reason, "error of x");
    CHECK_LE(t.report.iterations, 2 * cap); /* single, then double precision */
    CHECK_LE(error_of(&t, 0), column[0].forward_error);
    discard(&t);
  }
}

TEST(extra_precise, needs_no_more_memory_than_announced) {
  for (int extra = 0; extra < 2; extra++) {
    trial t = make_family(REF_GEOMETRIC, 60, 1e10, 5, false);
    int64_t single_bytes, double_bytes;
    t.options.extra_precise = extra;
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK_EQ_INT(
        hone_memory_needed(60, 2, &t.options, &single_bytes, &double_bytes),
        HONE_OK);
    CHECK_LE(t.report.host_bytes, double_bytes);
    if (extra == 0) {
      hone_options more = t.options;
      int64_t more_bytes;
      more.extra_precise = 1;
      CHECK_EQ_INT(hone_memory_needed(60, 2, &more, &more_bytes, NULL),
                   HONE_OK);
      CHECK_EQ_INT(more_bytes - single_bytes, 3 * 60 * 2 * sizeof(double));
    }
    discard(&t);
  }
}

static int stop_after(void *user, const hone_progress *event) {
  (void)event;
  int *left = user;
  return --*left < 0;
}

TEST(extra_precise, stops_at_any_event_of_the_callback) {
  int st = HONE_CANCELLED;
  for (int events = 0; events < 40 && st != HONE_OK; events++) {
    trial t = make_family(REF_GEOMETRIC, 40, 1e6, 5, false);
    int left = events;
    ct_note("after %d events", events);
    t.options.progress = stop_after;
    t.options.progress_user = &left;
    st = solve(&t);
    CHECK(st == HONE_OK || st == HONE_CANCELLED || st == HONE_INTERRUPTED);
    if (st == HONE_CANCELLED)
      CHECK(sup_untouched(t.x, 2 * t.n, UNTOUCHED));
    for (int c = 0; st >= 0 && c < 2; c++) {
      double omega = sup_backward_error(t.n, t.a, t.n, false, t.x + c * t.n,
                                        t.b + c * t.n);
      CHECK_NEAR(column[c].backward_error, omega,
                 1e-3 * omega + 1e-3 * SUP_EPS);
      CHECK_LE(error_of(&t, c), column[c].forward_error);
    }
    discard(&t);
  }
  CHECK_EQ_INT(st, HONE_OK);
}

TEST(extra_precise, solves_on_a_device_with_a_copy_of_the_matrix) {
  char why[128] = "";
  if (!hone_engine_single_cuda.probe(why, sizeof why))
    SKIP("no usable CUDA device");
  trial t = make_family(REF_GEOMETRIC, 60, 1e5, 5, false);
  t.options.device = HONE_DEVICE_CUDA;
  check_last_bit(&t);
  CHECK_LE(1, t.report.device_passes);
  discard(&t);
}

/* A lower triangle, which is not looked for, and unit vectors as b: LU
   exchanges rows, and leaves 1e-20 or so where x has zeros. In plain mode such
   rows are measured as sparse ones; the more accurate x, whose omega is 1 too,
   was then refused: "a smaller error cost backward error". */
static void solve_unit_vectors(int device, int start) {
  enum { N = 30 };
  for (uint64_t seed = 1; seed <= 12; seed++) {
    sup_rng rng = {seed};
    double *a = sup_filled(N * N, 0.0);
    for (int64_t j = 0; j < N; j++)
      for (int64_t i = j; i < N; i++)
        a[i + j * N] = i == j ? 1.0 + sup_uniform(&rng) : 4 * sup_uniform(&rng);
    trial t = make(&rng, N, 2, a, false);
    memset(t.b, 0, 2 * N * sizeof *t.b);
    t.b[seed] = t.b[N + 2 * seed] = 1.0;
    CHECK(ref_solve(N, a, false, 2, t.b, t.hi, t.lo));
    t.options.structure = HONE_STRUCTURE_GENERAL;
    t.options.factor_precision = start;
    t.options.device = device;
    ct_note("seed %d, start %d", (int)seed, start);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    for (int c = 0; c < 2; c++) {
      CHECK_LE(column[c].backward_error, SUP_LIMIT);
      CHECK_LE(column[c].forward_error, PROMISED);
      CHECK_LE(error_of(&t, c), column[c].forward_error);
    }
    discard(&t);
  }
}

TEST(extra_precise, accepts_entries_near_zero_as_the_plain_mode_does) {
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++)
    solve_unit_vectors(HONE_DEVICE_CPU, start);
}

TEST(extra_precise, accepts_entries_near_zero_on_a_device) {
  char why[128] = "";
  if (!hone_engine_single_cuda.probe(why, sizeof why))
    SKIP("no usable CUDA device");
  for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++)
    solve_unit_vectors(HONE_DEVICE_CUDA, start);
}
