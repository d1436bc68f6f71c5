/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of a GPU's factorization that a caller may choose: where diagonal
   blocks are factored, and how the block rows of U are computed. Each form must
   solve, and the report must name it. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"

#include "api/hone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SCALED: in units of powers of two, so that it is factored twice, the second
   time from a complete copy. */
enum { UNIFORM, DOMINANT, STEEP, SCALED };

typedef struct sys {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_tuning tuning;
  hone_report report;
} sys;

/* STEEP: without pivoting, L of the first diagonal block has 1 on its diagonal
   and -2 below it in the first 23 columns, so that its inverse in single
   precision has no correct digit. The rest of the matrix is L times random
   numbers, with a strong diagonal. */
static void fill_steep(sup_rng *rng, int64_t n, double *a) {
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < n; i++)
      if (j >= 128 && i < 128)
        a[i + j * n] = sup_uniform(rng);
    for (int64_t i = HONE_MIN(n, (int64_t)128) - 1; i > 0; i--)
      if (j >= 128 && i <= 23)
        a[i + j * n] -= 2.0 * a[i - 1 + j * n];
    a[j + j * n] = j < 128 ? 1.0 : 64.0;
    if (j < 23 && j + 1 < n)
      a[j + 1 + j * n] = -2.0;
  }
}

static void scale_rows(int64_t n, double *a) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * n] *= ldexp(1.0, (int)(i % 41) - 20);
}

static sys make(int kind, int64_t n) {
  sup_rng rng = {(uint64_t)(n * 4 + kind)};
  sys s = {.n = n};
  s.a = sup_filled(n * n, 0.0);
  s.b = sup_filled(n, 0.0);
  s.x = sup_filled(n, 0.0);
  if (kind == STEEP)
    fill_steep(&rng, n, s.a);
  else
    sup_random(&rng, n, n, s.a, n);
  for (int64_t j = 0; kind == DOMINANT && j < n; j++)
    s.a[j + j * n] = j % 2 ? (double)n : -(double)n;
  if (kind == SCALED)
    scale_rows(n, s.a);
  sup_random(&rng, n, 1, s.b, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s.report, sizeof s.report);
  s.tuning = (hone_tuning)HONE_TUNING_INIT;
  s.options.device = HONE_DEVICE_CUDA;
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

static int solve(sys *s) {
  s->options.tuning = &s->tuning;
  return hone_solve(s->n, 1, s->a, s->n, s->b, s->n, s->x, s->n, &s->options,
                    &s->report);
}

/* Is there a true or an emulated device? */
static bool usable(void) {
  double a = 2.0, b = 1.0, x;
  hone_options options = HONE_OPTIONS_INIT;
  options.device = HONE_DEVICE_CUDA;
  return hone_solve(1, 1, &a, 1, &b, 1, &x, 1, &options, NULL) !=
         HONE_NO_DEVICE;
}

#define NEED_DEVICE()                                                          \
  do {                                                                         \
    if (!usable()) {                                                           \
      const char *required_ = getenv("HONE_REQUIRE_GPU");                      \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP("no usable CUDA device");                                           \
    }                                                                          \
  } while (0)

static void check_accepted(sys *s) {
  ct_note("n %d, diagonal %d, block rows %d, pivoting %d, arithmetic %d",
          (int)s->n, s->tuning.diagonal, s->tuning.block_rows,
          s->tuning.pivoting, s->tuning.arithmetic);
  CHECK_EQ_INT(solve(s), HONE_OK);
  CHECK_LE(sup_backward_error(s->n, s->a, s->n, false, s->x, s->b), SUP_LIMIT);
}

/* The forms in the report, for a matrix that needs no fallback. */
static void check_report(const sys *s) {
  const hone_report *r = &s->report;
  const bool cpu = s->tuning.diagonal == HONE_DIAGONAL_CPU;
  const bool iterated = s->tuning.block_rows >= HONE_BLOCK_ROWS_SEEDED;
  CHECK_EQ_INT(r->precision, 32);
  CHECK_STR(r->reason, "");
  CHECK_EQ_INT(strstr(r->path, "by the CPU") != NULL, cpu);
  CHECK_EQ_INT(strstr(r->path, " sections") != NULL, s->tuning.block_rows > 0);
  CHECK_EQ_INT(r->diagonal_ms > 0.0, cpu);
  CHECK_LE(0.0, r->diagonal_wait_ms);
  CHECK_LE(r->diagonal_wait_ms, r->diagonal_ms);
  CHECK_EQ_INT(r->block_rows > 0, s->n > 128 && (cpu || iterated));
  CHECK_EQ_INT(r->block_row_fallbacks, 0);
  CHECK_LE(r->block_rows, r->block_row_sweeps);
  CHECK_LE(r->block_row_sweeps_max, r->block_row_sweeps);
  CHECK_EQ_INT(r->block_row_sweeps_max > 0, r->block_row_sweeps > 0);
  CHECK_LE(r->block_row_sweeps_max,
           s->tuning.block_rows == HONE_BLOCK_ROWS_CROUT ? 129 : 4);
}

/* Solves systems of one order in all forms. */
static void every_form(int64_t n, int64_t tail) {
  static const int arithmetics[] = {HONE_ARITHMETIC_FP16X3,
                                    HONE_ARITHMETIC_FP32};
  wrapped_trial.cpu_from = tail;
  for (int pivoting = 0; pivoting <= HONE_PIVOT_NONE; pivoting++) {
    sys s = make(pivoting == HONE_PIVOT_AUTO ? UNIFORM : DOMINANT, n);
    s.tuning.pivoting = pivoting;
    for (int a = 0; a < 2; a++)
      for (int d = HONE_DIAGONAL_GPU; d <= HONE_DIAGONAL_CPU; d++)
        for (int f = 0; f <= HONE_BLOCK_ROWS_CROUT; f++) {
          s.tuning.arithmetic = arithmetics[a];
          s.tuning.diagonal = d;
          s.tuning.block_rows = f;
          check_accepted(&s);
          check_report(&s);
        }
    discard(&s);
  }
  wrapped_trial = (hone_trial){0};
}

TEST(gpu_forms, solve_less_than_a_block) {
  NEED_DEVICE();
  every_form(100, 1);
}

TEST(gpu_forms, solve_one_block) {
  NEED_DEVICE();
  every_form(128, 1);
}

TEST(gpu_forms, solve_two_blocks_and_a_column) {
  NEED_DEVICE();
  every_form(257, 1);
}

/* There are three outer panels, the last one below the tail. The CPU factors
   the blocks of the scaled matrix's second panel while the columns of the third
   are updated. */
TEST(gpu_forms, solve_where_the_cpu_works_beside_the_update) {
  NEED_DEVICE();
  if (!sup_emulated())
    every_form(700, 300);
  wrapped_trial.cpu_from = 300;
  for (int f = 0; f <= HONE_BLOCK_ROWS_SEEDED; f++) {
    sys s = make(SCALED, 700);
    s.tuning.diagonal = HONE_DIAGONAL_CPU;
    s.tuning.block_rows = f;
    check_accepted(&s);
    check_report(&s);
    discard(&s);
  }
  wrapped_trial = (hone_trial){0};
}

/* The CPU factors blocks far from the end; the tail's are factored by the GPU
   and not counted. */
TEST(gpu_forms, leave_the_tail_to_the_gpu) {
  NEED_DEVICE();
  sys s = make(UNIFORM, 300);
  s.tuning.diagonal = HONE_DIAGONAL_CPU;
  wrapped_trial.cpu_from = 301;
  check_accepted(&s);
  CHECK_EQ_INT(s.report.diagonal_ms > 0.0, 0);
  CHECK(strstr(s.report.path, "by the CPU") == NULL);
  CHECK_EQ_INT(s.report.block_rows, 0);
  wrapped_trial.cpu_from = 300;
  check_accepted(&s);
  CHECK_EQ_INT(s.report.block_rows, 1);
  wrapped_trial = (hone_trial){0};
  discard(&s);
}

/* Panels of 32 columns. From the second on the CPU factors the diagonal blocks
   while enough columns remain for the update to take longer; a slower update
   needs fewer columns. */
TEST(gpu_forms, choose_the_cpu_where_the_update_takes_longer) {
  NEED_DEVICE();
  static const struct {
    int arithmetic, blocks;
  } all[] = {{HONE_ARITHMETIC_FP16X3, 2}, {HONE_ARITHMETIC_BF16X3, 2},
             {HONE_ARITHMETIC_FP32, 4},   {HONE_ARITHMETIC_TF32, 1},
             {HONE_ARITHMETIC_FP16, 0},   {HONE_ARITHMETIC_BF16, 0}};
  wrapped_trial.outer = 32;
  for (int i = 0; i < 6; i++) {
    sys s = make(DOMINANT, 200);
    s.tuning.diagonal = HONE_DIAGONAL_CPU;
    s.tuning.arithmetic = all[i].arithmetic;
    wrapped_trial.hides_from = 120;
    check_accepted(&s);
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_EQ_INT(s.report.block_rows, all[i].blocks);
    CHECK_EQ_INT(s.report.diagonal_ms > 0.0, all[i].blocks > 0);
    wrapped_trial.hides_from = 1; /* all panels but the first */
    check_accepted(&s);
    CHECK_EQ_INT(s.report.block_rows, 5);
    wrapped_trial.hides_from = 0; /* in small matrices, none */
    check_accepted(&s);
    CHECK_EQ_INT(s.report.block_rows, 0);
    CHECK(strstr(s.report.path, "by the CPU") == NULL);
    discard(&s);
  }
  wrapped_trial = (hone_trial){0};
}

/* No corrections are allowed, so that every block row is solved directly. */
TEST(gpu_forms, fall_back_to_a_direct_solve) {
  NEED_DEVICE();
  wrapped_trial.cpu_from = 1;
  wrapped_trial.corrections = -1;
  sys s = make(UNIFORM, 300);
  s.tuning.diagonal = HONE_DIAGONAL_CPU;
  s.tuning.block_rows = HONE_BLOCK_ROWS_SEEDED;
  check_accepted(&s);
  CHECK_EQ_INT(s.report.precision, 32);
  CHECK_LE(3, s.report.block_rows);
  CHECK_EQ_INT(s.report.block_row_fallbacks, s.report.block_rows);
  CHECK_EQ_INT(s.report.block_row_sweeps, 0);
  wrapped_trial = (hone_trial){0};
  discard(&s);
}

TEST(gpu_forms, fall_back_where_the_inverse_is_worthless) {
  NEED_DEVICE();
  wrapped_trial.cpu_from = 1;
  for (int d = HONE_DIAGONAL_GPU; d <= HONE_DIAGONAL_CPU; d++) {
    sys s = make(STEEP, 200);
    s.tuning.pivoting = HONE_PIVOT_NONE;
    s.tuning.arithmetic = HONE_ARITHMETIC_FP32;
    s.tuning.diagonal = d;
    s.tuning.block_rows = HONE_BLOCK_ROWS_SEEDED;
    check_accepted(&s);
    CHECK_LE(1, s.report.block_row_fallbacks);
    discard(&s);
  }
  wrapped_trial = (hone_trial){0};
}

/* The next panel is factored while the other columns are updated. */
TEST(gpu_forms, factor_the_next_panel_ahead) {
  NEED_DEVICE();
  static const int arithmetics[] = {
      HONE_ARITHMETIC_FP16X3, HONE_ARITHMETIC_FP32, HONE_ARITHMETIC_BF16X3};
  for (int i = 0; i < 3; i++) {
    sys s = make(UNIFORM, 900);
    hone_report without;
    s.tuning.arithmetic = arithmetics[i];
    wrapped_trial.ahead_from = s.n + 1;
    check_accepted(&s);
    without = s.report;
    wrapped_trial.ahead_from = s.n;
    check_accepted(&s);
    CHECK_LE(without.device_bytes + 1, s.report.device_bytes);
    CHECK_LE(fabs(s.report.growth - without.growth), 1e-3 * without.growth);
    s.tuning.pivoting = HONE_PIVOT_BLOCK;
    check_accepted(&s);
    discard(&s);
  }
  wrapped_trial = (hone_trial){0};
}

/* Panels of more rows than one launch takes, of which there are none without
   pivoting beyond the block, beside panels of one launch and those of the
   host. */
static void check_tall(int64_t n, int pivoting) {
  sys s = make(pivoting == HONE_PIVOT_AUTO ? UNIFORM : DOMINANT, n);
  hone_report one = HONE_REPORT_INIT, host = HONE_REPORT_INIT;
  s.tuning.pivoting = pivoting;
  check_accepted(&s);
  one = s.report;
  s.options.device = HONE_DEVICE_CPU;
  check_accepted(&s);
  host = s.report;
  s.options.device = HONE_DEVICE_CUDA;
  wrapped_trial.part_rows = 256;
  for (int d = HONE_DIAGONAL_GPU; d <= HONE_DIAGONAL_CPU; d++)
    for (int f = 0; f <= HONE_BLOCK_ROWS_SEEDED; f += HONE_BLOCK_ROWS_SEEDED) {
      s.tuning.diagonal = d;
      s.tuning.block_rows = f;
      check_accepted(&s);
      check_report(&s);
      CHECK_LE(s.report.growth, 4.0 * one.growth);
      CHECK_LE(s.report.growth, 8.0 * host.growth);
      CHECK_LE(one.device_bytes + 1, s.report.device_bytes);
    }
  wrapped_trial.part_rows = 0;
  discard(&s);
}

TEST(gpu_forms, take_panels_of_any_height) {
  NEED_DEVICE();
  wrapped_trial.cpu_from = 1;
  for (int pivoting = 0; pivoting <= HONE_PIVOT_NONE; pivoting++)
    check_tall(257, pivoting);
  wrapped_trial.ahead_from = 1;
  check_tall(600, HONE_PIVOT_AUTO);
  wrapped_trial = (hone_trial){0};
}

/* Memory by hone_memory_needed, also of orders too large for any test: 12 n^2
   bytes and 5 %, or 4 n^2 bytes and 10 %. */
TEST(gpu_forms, need_little_memory_beside_a_large_matrix) {
  static const int64_t orders[] = {65536, 80000, 105000, 180000};
  char why[128] = "";
  if (!hone_engine_single_cuda.probe(why, sizeof why) &&
      strstr(why, "this build") != NULL)
    SKIP(why);
  for (int i = 0; i < 4; i++) {
    const double n = (double)orders[i];
    int64_t with, without;
    ct_note("n %d", (int)orders[i]);
    CHECK_EQ_INT(hone_device_memory_needed(orders[i], NULL, &with, &without),
                 HONE_OK);
    CHECK_LE(12.0 * n * n, (double)with);
    CHECK_LE((double)with, 12.6 * n * n);
    CHECK_LE(4.0 * n * n, (double)without);
    CHECK_LE((double)without, 4.4 * n * n);
  }
}

/* A solver that is used again counts from zero for each matrix. */
TEST(gpu_forms, count_the_last_factorization) {
  NEED_DEVICE();
  wrapped_trial.cpu_from = 1;
  sys s = make(UNIFORM, 200);
  hone_solver *solver = NULL;
  hone_report first = HONE_REPORT_INIT, second = HONE_REPORT_INIT;
  s.tuning.diagonal = HONE_DIAGONAL_CPU;
  s.options.tuning = &s.tuning;
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.n, &first), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.n, &second), HONE_OK);
  CHECK_EQ_INT(first.block_rows, 1);
  CHECK_EQ_INT(second.block_rows, 1);
  CHECK_EQ_INT(second.block_row_sweeps, first.block_row_sweeps);
  hone_solver_destroy(&solver);
  wrapped_trial = (hone_trial){0};
  discard(&s);
}

/* Two columns are equal: a pivot is zero. */
static void check_singular(int64_t n, int diagonal, int pivoting) {
  sys s = make(UNIFORM, n);
  s.tuning.diagonal = diagonal;
  s.tuning.pivoting = pivoting;
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++)
      s.a[i + j * s.n] = i == j && j != 40 ? 1.0 : 0.0;
  s.a[40 + 0 * s.n] = 1.0;
  s.a[0 + 40 * s.n] = 1.0;
  s.a[40 + 40 * s.n] = 1.0;
  ct_note("n %d, diagonal %d, pivoting %d", (int)n, diagonal, pivoting);
  CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_col, 40);
  discard(&s);
}

/* The zero pivot is found on the CPU, on the GPU, or in one launch more. */
TEST(gpu_forms, find_a_singular_matrix) {
  NEED_DEVICE();
  wrapped_trial.cpu_from = 1;
  for (int pivoting = 0; pivoting <= HONE_PIVOT_NONE; pivoting++) {
    check_singular(150, HONE_DIAGONAL_CPU, pivoting);
    wrapped_trial.part_rows = 256;
    check_singular(300, HONE_DIAGONAL_GPU, pivoting);
    check_singular(300, HONE_DIAGONAL_CPU, pivoting);
    wrapped_trial.part_rows = 0;
  }
  wrapped_trial = (hone_trial){0};
}

TEST(gpu_forms, refuse_invalid_values) {
  static const int bad[][2] = {{-1, 0}, {3, 0}, {0, -1}, {0, 4}};
  double a = 2.0, b = 1.0, x = 5.0;
  for (int i = 0; i < 4; i++) {
    hone_options options = HONE_OPTIONS_INIT;
    hone_tuning tuning = HONE_TUNING_INIT;
    hone_report report = HONE_REPORT_INIT;
    options.tuning = &tuning;
    tuning.diagonal = bad[i][0];
    tuning.block_rows = bad[i][1];
    ct_note("diagonal %d, block rows %d", bad[i][0], bad[i][1]);
    CHECK_EQ_INT(hone_solve(1, 1, &a, 1, &b, 1, &x, 1, &options, &report),
                 HONE_BAD_OPTION);
    CHECK(x == 5.0);
  }
}

TEST(gpu_forms, appear_in_the_report) {
  hone_report report = HONE_REPORT_INIT;
  char text[4096];
  report.diagonal_ms = 2.5;
  report.diagonal_wait_ms = 0.25;
  report.block_rows = 7;
  report.block_row_sweeps = 9;
  report.block_row_sweeps_max = 2;
  report.block_row_fallbacks = 1;
  hone_report_json(&report, text, sizeof text);
  CHECK_CONTAINS(text, "\"diagonal_ms\": 2.5, "
                       "\"diagonal_wait_ms\": 0.25, \"block_rows\": 7, "
                       "\"block_row_sweeps\": 9, "
                       "\"block_row_sweeps_max\": 2, "
                       "\"block_row_fallbacks\": 1");
  hone_report_text(&report, text, sizeof text);
  CHECK_CONTAINS(text,
                 "diagonal blocks 2.500 ms, the GPU waited 0.250 ms; 7 block ");
  hone_report_init(&report, sizeof report);
  hone_report_text(&report, text, sizeof text);
  CHECK(strstr(text, "tuning") == NULL);
}

/* Narrow outer panels, and A comes in seven block columns: those that have
   come by then are updated together with the panels before them. With one
   thread none comes before it is awaited; with more, some do, and never the
   same ones. */
TEST(gpu_forms, give_the_same_bits_whenever_a_arrives) {
  NEED_DEVICE();
  sys s = make(UNIFORM, 450);
  double *first = sup_filled(s.n, 0.0), growth = 0.0;
  wrapped_trial.ahead_from = 1;
  wrapped_trial.outer = 32;
  for (int run = 0; run < 6; run++) {
    s.options.threads = run == 0 ? 1 : 4;
    check_accepted(&s);
    CHECK_EQ_INT(s.report.precision, 32);
    if (run == 0) {
      memcpy(first, s.x, (size_t)s.n * sizeof *first);
      growth = s.report.growth;
    }
    CHECK_MEM_EQ(first, s.x, (size_t)s.n * sizeof *first);
    CHECK_MEM_EQ(&growth, &s.report.growth, sizeof growth);
  }
  wrapped_trial = (hone_trial){0};
  sup_free(first);
  discard(&s);
}

/* The first pivots fall so fast that LU is given up while A still arrives.
   The norm, which is that of one of the last columns, must be right all the
   same. */
TEST(gpu_forms, inspect_all_of_a_where_lu_is_given_up_early) {
  NEED_DEVICE();
  const int64_t n = 500;
  sys s = make(UNIFORM, n);
  double norm1 = 0.0;
  wrapped_trial.ahead_from = 1;
  wrapped_trial.outer = 32;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
      double *at = &s.a[i + j * n];
      *at =
          (i == j ? 2.0 : *at / (double)n) * ldexp(1.0, (int)(j / 16 - i / 4));
      sum += fabs(*at);
    }
    norm1 = fmax(norm1, sum);
  }
  s.options.threads = 4;
  check_accepted(&s);
  CHECK_LE(fabs(s.report.norm1 - norm1), 1e-12 * norm1);
  CHECK_LE(20, s.report.scale_exponent_max - s.report.scale_exponent_min);
  wrapped_trial = (hone_trial){0};
  discard(&s);
}
