/* SPDX-License-Identifier: BSD-3-Clause */
/* options.structure: a structure that the caller names makes the solve cheaper,
   but never changes the answer. Below these tests stands the ladder with
   Cholesky engines. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The tests run on both devices, on CUDA where there is a device. */
typedef struct where {
  int32_t device;
  const hone_engine *engine;
} where;

static const where host = {HONE_DEVICE_CPU, &hone_engine_cholesky};
static const where cuda = {HONE_DEVICE_CUDA, &hone_engine_cholesky_cuda};

#define NEED(at)                                                               \
  do {                                                                         \
    char why_[160] = "";                                                       \
    const char *required_ = getenv("HONE_REQUIRE_GPU");                        \
    if (!(at)->engine->probe(why_, sizeof why_)) {                             \
      ct_note("%s", why_);                                                     \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP(why_);                                                              \
    }                                                                          \
  } while (0)

static hone_options options_for(const where *at, int32_t structure) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = at->device;
  o.factor_precision = HONE_FACTOR_SINGLE;
  o.structure = structure;
  o.deterministic = 1;
  return o;
}

/* Solves, and measures the backward error of x itself. */
static int solve(const hone_options *o, int64_t n, int64_t nrhs,
                 const double *a, const double *b, double *x, hone_report *r) {
  int st = hone_solve(n, nrhs, a, n, b, n, x, n, o, r);
  const bool trans = (o->trans == HONE_TRANS) != (o->layout == HONE_ROW_MAJOR);
  for (int64_t c = 0; c < nrhs && st == HONE_OK; c++)
    CHECK_LE(sup_backward_error(n, a, n, trans, x + c * n, b + c * n),
             SUP_LIMIT);
  return st;
}

/* A symmetric positive definite system and its solution; b is random. */
typedef struct sys {
  int64_t n;
  double *a, *b, *x;
  hone_report report;
} sys;

static sys make(int64_t n, int64_t nrhs, double cond) {
  sup_rng rng = {(uint64_t)(3 * n + nrhs)};
  sys s = {.n = n, .report = HONE_REPORT_INIT};
  s.a = sup_filled(n * n, 0.0);
  s.b = sup_filled(n * nrhs, 0.0);
  s.x = sup_filled(n * nrhs, 6.5e99);
  sup_matrix_spd(&rng, n, cond, s.a);
  sup_random(&rng, n, nrhs, s.b, n);
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

static void check_cholesky(const sys *s) {
  CHECK_STR(s->report.reason, "");
  CHECK_CONTAINS(s->report.path, "single Cholesky");
  CHECK(strstr(s->report.path, "LU") == NULL);
  CHECK_EQ_INT(s->report.precision, 32);
  CHECK_LE(s->report.growth, 1.0 + 1e-2);
}

static void solves_by_cholesky(const void *arg) {
  NEED((const where *)arg);
  static const int64_t orders[] = {1,   2,   3,   31,  127, 128,
                                   129, 200, 257, 500, 700};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    for (int form = 0; form < 4; form++) {
      hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
      sys s = make(orders[i], 2, form == 3 ? 1e4 : 30.0);
      ct_note("n = %d, form %d", (int)s.n, form);
      o.trans = form == 1 ? HONE_TRANS : HONE_NO_TRANS;
      o.layout = form == 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
      CHECK_EQ_INT(solve(&o, s.n, 2, s.a, s.b, s.x, &s.report), HONE_OK);
      check_cholesky(&s);
      discard(&s);
    }
}

static void solves_for_many_right_hand_sides(const void *arg) {
  NEED((const where *)arg);
  enum { NRHS = 70 };
  hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
  sys s = make(150, NRHS, 30.0);
  CHECK_EQ_INT(solve(&o, s.n, NRHS, s.a, s.b, s.x, &s.report), HONE_OK);
  CHECK_EQ_INT(s.report.accepted, NRHS);
  check_cholesky(&s);
  discard(&s);
}

static void solves_in_every_arithmetic(const void *arg) {
  NEED((const where *)arg);
  for (int32_t kind = 0; kind <= HONE_ARITHMETIC_BF16; kind++) {
    hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
    sys s = make(600, 1, 10.0);
    ct_note("arithmetic %d", (int)kind);
    hone_tuning tuning = HONE_TUNING_INIT;
    tuning.arithmetic = kind;
    o.tuning = &tuning;
    CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
    check_cholesky(&s);
    for (int64_t i = 0; i < s.n * s.n; i++) /* FP16 makes the engine scale */
      s.a[i] = ldexp(s.a[i], 17);
    CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
    check_cholesky(&s);
    discard(&s);
  }
}

/* A is copied through the host's memory, as where the device has no room for
   it. */
static void needs_no_copy_of_the_matrix(const void *arg) {
  NEED((const where *)arg);
  hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
  sys s = make(700, 1, 30.0);
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.residuals = HONE_RESIDUALS_HOST;
  o.tuning = &tuning;
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
  check_cholesky(&s);
  CHECK_EQ_INT(s.report.device_passes, 0);
  discard(&s);
}

/* D S D with units that differ by up to 10^8 needs scaling, which is the same
   for rows and columns. */
static void solves_in_mixed_units(const void *arg) {
  NEED((const where *)arg);
  static const double ranges[] = {4.0, 40.0};
  for (int at = 0; at < 2; at++) {
    hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
    sys s = make(300, 1, 30.0);
    sup_rng rng = {3};
    double *d = sup_filled(s.n, 0.0);
    for (int64_t i = 0; i < s.n; i++)
      d[i] = pow(10.0, 2.0 * ranges[at] * sup_uniform(&rng));
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t i = 0; i < s.n; i++)
        s.a[i + j * s.n] *= d[i] * d[j];
    ct_note("10^+-%g", ranges[at]);
    CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
    check_cholesky(&s);
    CHECK_LT(s.report.scale_exponent_min, -8);
    sup_free(d);
    discard(&s);
  }
}

static void gives_what_is_not_definite_to_lu(const void *arg) {
  const where *at = arg;
  NEED(at);
  for (int kind = 0; kind < 3; kind++) {
    hone_options o = options_for(at, HONE_STRUCTURE_SPD);
    sys s = make(kind == 0 ? 2 : 260, 1, 5.0);
    double *y = sup_filled(s.n, 0.0);
    if (kind < 2) /* one or more negative eigenvalues, in the last rows */
      s.a[s.n * s.n - 1] -= 3.0;
    else
      s.a[0] = 0.0;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "single Cholesky: a pivot is not positive");
    CHECK_CONTAINS(s.report.path, "set aside, single LU");
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_EQ_INT(s.report.bad_col, -1);
    o = options_for(at, HONE_STRUCTURE_GENERAL);
    CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, y, &s.report), HONE_OK);
    CHECK_STR(s.report.reason, "");
    if (at == &host)
      CHECK_MEM_EQ(s.x, y, (size_t)s.n * sizeof *y);
    CHECK_LE(sup_forward_error(s.n, s.x, y), 1e-12);
    sup_free(y);
    discard(&s);
  }
}

/* One triangle could belong to a definite matrix: only residuals with all of A
   show that it does not. A device that was sent this triangle only computes
   residuals of another matrix; its result is checked once and then no longer
   used. */
static void solves_by_lu_where_a_is_not_symmetric(const void *arg) {
  NEED((const where *)arg);
  for (int kind = 0; kind < 2; kind++) {
    hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
    sys s = make(200, 2, 5.0);
    const double size = kind ? 1e-10 : 1.0; /* refinement corrects the latter */
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t i = j + 1; i < s.n; i++)
        s.a[i + j * s.n] += size * (double)((i * j) % 3 - 1);
    ct_note("kind %d", kind);
    CHECK_EQ_INT(solve(&o, s.n, 2, s.a, s.b, s.x, &s.report), HONE_OK);
    if (kind)
      check_cholesky(&s);
    else
      CHECK_CONTAINS(s.report.path, "single LU");
    CHECK(kind || s.report.reason[0] != '\0');
    discard(&s);
  }
}

static void finds_nan_in_either_triangle(const void *arg) {
  NEED((const where *)arg);
  for (int upper = 0; upper < 2; upper++) {
    hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
    sys s = make(150, 1, 5.0);
    s.a[upper ? 3 + 140 * s.n : 140 + 3 * s.n] = (double)NAN;
    CHECK_EQ_INT(
        hone_solve(s.n, 1, s.a, s.n, s.b, s.n, s.x, s.n, &o, &s.report),
        HONE_NOT_FINITE_A);
    CHECK_EQ_INT(s.report.bad_row, upper ? 3 : 140);
    CHECK_EQ_INT(s.report.bad_col, upper ? 140 : 3);
    CHECK(sup_untouched(s.x, s.n, 6.5e99));
    discard(&s);
  }
}

/* One solver takes a definite matrix, one that is not, and a definite one. */
static void starts_anew_with_each_matrix(const void *arg) {
  NEED((const where *)arg);
  const hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
  sys s = make(180, 1, 30.0);
  hone_solver *solver = NULL;
  const double corner = s.a[0];
  REQUIRE(hone_solver_create(&solver, s.n, &o) == HONE_OK);
  for (int round = 0; round < 4; round++) {
    s.a[0] = round % 2 ? -corner : corner;
    ct_note("round %d", round);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.n, &s.report), HONE_OK);
    CHECK_EQ_INT(sup_solver_solve(solver, HONE_NO_TRANS, 1, s.b, s.n, s.x, s.n,
                                  NULL, 0, NULL, &s.report),
                 HONE_OK);
    CHECK_LE(sup_backward_error(s.n, s.a, s.n, false, s.x, s.b), SUP_LIMIT);
    CHECK((strstr(s.report.path, "LU") != NULL) == (round % 2 == 1));
  }
  hone_solver_destroy(&solver);
  discard(&s);
}

/* The other forms of the factorization are for LU only. */
static void ignores_forms_of_lu(const void *arg) {
  NEED((const where *)arg);
  hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
  sys s = make(400, 1, 30.0);
  double *y = sup_filled(s.n, 0.0);
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.pivoting = HONE_PIVOT_NONE;
  tuning.diagonal = tuning.block_rows = 1;
  o.tuning = &tuning;
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, y, &s.report), HONE_OK);
  check_cholesky(&s);
  CHECK_MEM_EQ(s.x, y, (size_t)s.n * sizeof *y);
  sup_free(y);
  discard(&s);
}

static int held;

static void *count_up(size_t bytes, void *ctx) {
  int *left = ctx;
  if ((*left)-- <= 0)
    return NULL;
  held++;
  return malloc(bytes);
}

static void count_down(void *memory, void *ctx) {
  (void)ctx;
  held -= memory != NULL;
  free(memory);
}

static void keeps_to_its_memory(const void *arg) {
  NEED((const where *)arg);
  hone_options o = options_for(arg, HONE_STRUCTURE_SPD);
  sys s = make(100, 1, 5.0);
  int64_t single = 0, both = 0;
  CHECK_EQ_INT(hone_memory_needed(s.n, 1, &o, &single, &both), HONE_OK);
  o.memory_limit_bytes = single;
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
  CHECK_LE(s.report.host_bytes, single);
  o.memory_limit_bytes = 1000;
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_NO_MEMORY);
  o.memory_limit_bytes = 0;
  o.alloc = count_up;
  o.free = count_down;
  s.a[0] = -s.a[0]; /* every engine but the last fails */
  int st = HONE_NO_MEMORY;
  for (int k = 0; k < 40; k++) {
    int left = k;
    o.alloc_ctx = &left;
    ct_note("%d allocations", k);
    st = solve(&o, s.n, 1, s.a, s.b, s.x, &s.report);
    CHECK(st == HONE_OK || st == HONE_NO_MEMORY);
    CHECK_EQ_INT(held, 0);
  }
  CHECK_EQ_INT(st, HONE_OK);
  discard(&s);
}

#define ENTRY(name)                                                            \
  { #name, name }
static const struct {
  const char *name;
  void (*run)(const void *at);
} checks[] = {
    ENTRY(solves_by_cholesky),
    ENTRY(solves_for_many_right_hand_sides),
    ENTRY(solves_in_every_arithmetic),
    ENTRY(needs_no_copy_of_the_matrix),
    ENTRY(solves_in_mixed_units),
    ENTRY(ignores_forms_of_lu),
    ENTRY(gives_what_is_not_definite_to_lu),
    ENTRY(solves_by_lu_where_a_is_not_symmetric),
    ENTRY(finds_nan_in_either_triangle),
    ENTRY(starts_anew_with_each_matrix),
    ENTRY(keeps_to_its_memory),
};

CT_CONSTRUCTOR static void register_checks(void) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    ct_register("structure_host", checks[i].name, checks[i].run, &host);
    ct_register("structure_cuda", checks[i].name, checks[i].run, &cuda);
  }
}

/* Options and the ladder --------------------------------------------------- */

TEST(structure, option_has_three_values) {
  hone_options o = options_for(&host, 3);
  const double a = 4.0, b = 2.0;
  double x = 0.0;
  CHECK_EQ_INT(hone_solve(1, 1, &a, 1, &b, 1, &x, 1, &o, NULL),
               HONE_BAD_OPTION);
  o.structure = -1;
  CHECK_EQ_INT(hone_solve(1, 1, &a, 1, &b, 1, &x, 1, &o, NULL),
               HONE_BAD_OPTION);
}

TEST(structure, spd_has_no_effect_on_a_start_in_double) {
  hone_options o = options_for(&host, HONE_STRUCTURE_SPD);
  sys s = make(20, 1, 5.0);
  o.factor_precision = HONE_FACTOR_DOUBLE;
  CHECK_EQ_INT(solve(&o, s.n, 1, s.a, s.b, s.x, &s.report), HONE_OK);
  CHECK(strstr(s.report.path, "Cholesky") == NULL);
  discard(&s);
}

TEST(structure, spd_scales_rows_and_columns_alike) {
  for (int range = 2; range <= 130; range *= 4) {
    hone_mem mem = {.alloc = NULL};
    hone_watch watch = {.deadline_s = 0.0};
    const hone_request request = {.limit = SUP_LIMIT};
    const hone_engine *engines[] = {&hone_engine_cholesky, &hone_engine_double};
    hone_report report = HONE_REPORT_INIT;
    hone_ladder ladder;
    sys s = make(60, 1, 30.0);
    sup_rng rng = {(uint64_t)range};
    ct_note("10^+-%d", range);
    for (int64_t k = 0; k < s.n; k++) {
      const double d = pow(10.0, 2.0 * range * sup_uniform(&rng));
      for (int64_t i = 0; i < s.n; i++) {
        s.a[i + k * s.n] *= d;
        s.a[k + i * s.n] *= d;
      }
    }
    /* The triangles were rounded in different orders. */
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t i = 0; i < j; i++)
        s.a[j + i * s.n] = s.a[i + j * s.n];
    CHECK_EQ_INT(sup_ladder_create(&ladder, s.n, engines, 2, &request, &mem,
                                   NULL, &watch),
                 HONE_OK);
    CHECK_EQ_INT(
        hone_ladder_factor(&ladder, sup_matrix(s.n, s.n, s.a), &report),
        HONE_OK);
    CHECK(ladder.scaling.used);
    CHECK_MEM_EQ(ladder.scaling.row_exp, ladder.scaling.col_exp,
                 (size_t)s.n * sizeof(int));
    hone_ladder_destroy(&ladder);
    discard(&s);
  }
}
