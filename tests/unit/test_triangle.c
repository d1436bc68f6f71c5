/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices that are given by one triangle: options.triangle. The other one is
   NaN here. */
#include "api/hone.h"

#include "api/solver.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/entries.h"
#include "tests/unit/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A system of which x is known. */
typedef struct half_system {
  int64_t n, lda;
  int triangle, layout;
  hone_entry *whole; /* n x n, ld n, stored by columns */
  hone_entry *given; /* one triangle of it, in the layout, lda; else NaN */
  hone_entry *x, *b, *found;
  hone_options options;
} half_system;

static bool is_lower(int triangle) {
  return triangle == HONE_TRIANGLE_LOWER ||
         triangle == HONE_TRIANGLE_LOWER_SYMMETRIC;
}

static bool is_hermitian(int triangle) {
  return triangle == HONE_TRIANGLE_LOWER || triangle == HONE_TRIANGLE_UPPER;
}

/* Diagonally dominant, with this sign: of condition about 3. */
static void fill_whole(half_system *s, double sign) {
  sup_rng rng = {(uint64_t)s->n};
  entries_random(&rng, s->n, s->n, s->whole, s->n);
  for (int64_t j = 0; j < s->n; j++) {
    hone_entry *diagonal = &s->whole[j + j * s->n];
    *diagonal += sign * (double)s->n;
    if (is_hermitian(s->triangle))
      *diagonal = hone_real(*diagonal);
    for (int64_t i = j + 1; i < s->n; i++)
      s->whole[j + i * s->n] = is_hermitian(s->triangle)
                                   ? hone_conj(s->whole[i + j * s->n])
                                   : s->whole[i + j * s->n];
  }
}

static hone_entry *place(const half_system *s, int64_t i, int64_t j) {
  return s->layout == HONE_ROW_MAJOR ? &s->given[j + i * s->lda]
                                     : &s->given[i + j * s->lda];
}

/* Gives the triangle; the diagonal of a Hermitian matrix has an imaginary part,
   which does not count. */
static void give(half_system *s) {
  for (int64_t k = 0; k < s->lda * s->n; k++)
    s->given[k] = HONE_NAN;
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++)
      if (is_lower(s->triangle) ? i >= j : i <= j)
        *place(s, i, j) = s->whole[i + j * s->n];
#ifdef HONE_COMPLEX
  for (int64_t i = 0; i < s->n && is_hermitian(s->triangle); i++)
    *place(s, i, i) = CMPLX(hone_real(*place(s, i, i)), 5.0);
#endif
}

static half_system make_half(int64_t n, int triangle, int layout) {
  sup_rng rng = {(uint64_t)(n + triangle)};
  half_system s = {.n = n,
                   .lda = n + 3,
                   .triangle = triangle,
                   .layout = layout,
                   .whole = entries_filled(n * n, 0.0),
                   .given = entries_filled((n + 3) * n, 0.0),
                   .x = entries_filled(n, 0.0),
                   .b = entries_filled(n, 0.0),
                   .found = entries_filled(n, 0.0),
                   .options = HONE_OPTIONS_INIT};
  fill_whole(&s, -1.0);
  give(&s);
  entries_random(&rng, n, 1, s.x, n);
  entries_multiply(n, s.whole, n, false, s.x, s.b);
  s.options.triangle = triangle;
  s.options.layout = layout;
  return s;
}

static void free_half(half_system *s) {
  entries_free(s->whole);
  entries_free(s->given);
  entries_free(s->x);
  entries_free(s->b);
  entries_free(s->found);
}

static int solve(half_system *s, hone_report *report) {
  return hone_solve(s->n, 1, s->given, s->lda, s->b, s->n, s->found, s->n,
                    &s->options, report);
}

/* Also for A^T and A^H, of which x is known by the whole matrix. */
static void check_ways(half_system *s) {
  hone_entry *x = entries_copy(s->x, s->n);
  for (int way = HONE_NO_TRANS; way <= HONE_CONJ_TRANS; way++) {
    ct_note("n %d, triangle %d, layout %d, way %d", (int)s->n, s->triangle,
            s->layout, way);
    const bool conjugates = way == HONE_CONJ_TRANS;
    for (int64_t i = 0; i < s->n; i++)
      x[i] = conjugates ? hone_conj(s->x[i]) : s->x[i];
    entries_multiply(s->n, s->whole, s->n, way != HONE_NO_TRANS, x, s->b);
    for (int64_t i = 0; i < s->n && conjugates; i++)
      s->b[i] = hone_conj(s->b[i]);
    s->options.trans = way;
    CHECK_EQ_INT(solve(s, NULL), HONE_OK);
    CHECK_LE(entries_forward_error(s->n, s->found, s->x), 64.0 * SUP_EPS);
  }
  s->options.trans = HONE_NO_TRANS;
  entries_free(x);
}

static void check_orders(int device) {
  static const int64_t orders[] = {1, 2, 31, 33, 257, 450};
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
    for (int triangle = 1; triangle <= 4; triangle++)
      for (int layout = 0; layout <= 1; layout++) {
        half_system s = make_half(orders[k], triangle, layout);
        hone_entry *before = entries_copy(s.given, s.lda * s.n);
        s.options.device = device;
        check_ways(&s);
        CHECK(memcmp(before, s.given, (size_t)(s.lda * s.n) * sizeof *before) ==
              0);
        entries_free(before);
        free_half(&s);
      }
}

TEST_OF(triangle, is_all_that_is_read) { check_orders(HONE_DEVICE_CPU); }

TEST_OF(triangle_cuda, is_all_that_is_read) {
  NEED_DEVICE();
  check_orders(HONE_DEVICE_CUDA);
}

/* A definite one is factored by Cholesky, by a claim or without. */
static void check_definite(int64_t n, int structure) {
  hone_report report = HONE_REPORT_INIT;
  half_system s = make_half(n, HONE_TRIANGLE_UPPER, HONE_COL_MAJOR);
  fill_whole(&s, 2.0);
  give(&s);
  entries_multiply(n, s.whole, n, false, s.x, s.b);
  s.options.structure = structure;
  CHECK_EQ_INT(solve(&s, &report), HONE_OK);
  CHECK_LE(entries_forward_error(n, s.found, s.x), 64.0 * SUP_EPS);
  CHECK_CONTAINS(report.path, "Cholesky");
  free_half(&s);
}

TEST_OF(triangle, of_a_definite_matrix_leads_to_cholesky) {
  check_definite(60, HONE_STRUCTURE_SPD);
  check_definite(520, HONE_STRUCTURE_SPD);
  check_definite(600, HONE_STRUCTURE_AUTO);
}

/* The caller's array serves other purposes after the call: x, here. */
TEST_OF(triangle, is_borrowed_for_one_call) {
  hone_solver *solver = NULL;
  half_system s = make_half(120, HONE_TRIANGLE_LOWER, HONE_COL_MAJOR);
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  hone_options o = HONE_OPTIONS_INIT;
  o.triangle = HONE_TRIANGLE_UPPER; /* not as it was created */
  REQUIRE(hone_solver_factor(solver, s.given, s.lda, NULL) == HONE_OK);
  CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, s.n, s.found, s.n, &o, NULL),
               HONE_BAD_OPTION);
  o.triangle = HONE_TRIANGLE_LOWER;
  CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, s.n, s.given, s.n, &o, NULL),
               HONE_OK);
  CHECK_LE(entries_forward_error(s.n, s.given, s.x), 64.0 * SUP_EPS);
  for (int64_t k = 0; k < s.n * s.n; k++)
    s.whole[k] = hone_times(1.0 + 0x1p-20, s.whole[k]);
  give(&s);
  CHECK_EQ_INT(hone_solver_update(solver, s.given, s.lda, NULL), HONE_OK);
  for (int64_t k = 0; k < s.lda * s.n; k++)
    s.given[k] = HONE_NAN;
  CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, s.n, s.found, s.n, NULL, NULL),
               HONE_OK);
  for (int64_t i = 0; i < s.n; i++)
    s.found[i] = hone_times(1.0 + 0x1p-20, s.found[i]);
  CHECK_LE(entries_forward_error(s.n, s.found, s.x), 64.0 * SUP_EPS);
  hone_solver_destroy(&solver);
  free_half(&s);
}

/* The report names the entry that the caller gave. */
static void check_place(int64_t n, int triangle, int layout) {
  hone_report report = HONE_REPORT_INIT;
  half_system s = make_half(n, triangle, layout);
  const int64_t row = is_lower(triangle) ? n - 2 : 3, col = n + 1 - row;
  *place(&s, row, col) = entries_ending_in(HONE_NAN);
  ct_note("n %d, triangle %d, layout %d", (int)n, triangle, layout);
  CHECK_EQ_INT(solve(&s, &report), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(report.bad_row, row);
  CHECK_EQ_INT(report.bad_col, col);
  CHECK_CONTAINS(report.reason, "is NaN");
  free_half(&s);
}

TEST_OF(triangle, has_the_entry_that_is_not_finite) {
  for (int layout = 0; layout <= 1; layout++)
    for (int triangle = 1; triangle <= 4; triangle++) {
      check_place(40, triangle, layout);
      check_place(420, triangle, layout);
    }
}

/* ---- Memory -------------------------------------------------------------- */

TEST_OF(triangle, is_copied_within_the_limit) {
  int64_t whole = 0, half = 0;
  hone_report report = HONE_REPORT_INIT;
  half_system s = make_half(400, HONE_TRIANGLE_LOWER, HONE_COL_MAJOR);
  const int64_t copy = s.n * s.n * (int64_t)sizeof(hone_entry);
  s.options.device = HONE_DEVICE_CPU;
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  REQUIRE(hone_memory_needed(s.n, 1, &s.options, &half, NULL) == HONE_OK);
  s.options.triangle = HONE_TRIANGLE_BOTH;
  REQUIRE(hone_memory_needed(s.n, 1, &s.options, &whole, NULL) == HONE_OK);
  CHECK_EQ_INT(half, whole + copy);
  s.options.triangle = HONE_TRIANGLE_LOWER;
  s.options.memory_limit_bytes = half;
  CHECK_EQ_INT(solve(&s, &report), HONE_OK);
  CHECK_GE((double)report.host_bytes, (double)copy);
  CHECK_LE((double)report.host_bytes, (double)half);
  s.options.memory_limit_bytes = copy / 2 * 3;
  CHECK_EQ_INT(solve(&s, &report), HONE_NO_MEMORY);
  free_half(&s);
}

static void check_failing_memory(int64_t n) {
  half_system s = make_half(n, HONE_TRIANGLE_UPPER, HONE_COL_MAJOR);
  heap memory;
  heap_use(&s.options, &memory);
  memory.failed = true;
  for (int64_t at = 0; memory.failed; at++) {
    heap_use(&s.options, &memory);
    memory.fail_at = at;
    const int st = solve(&s, NULL);
    ct_note("n %d, request %d", (int)n, (int)at);
    CHECK(st == HONE_OK || (memory.failed && st == HONE_NO_MEMORY));
    heap_check(&memory);
    REQUIRE(at < 200);
  }
  free_half(&s);
}

TEST_OF(triangle, needs_memory) {
  check_failing_memory(50);
  check_failing_memory(420);
}

/* A solver whose copy cannot be had holds no matrix. */
TEST_OF(triangle, of_which_there_is_no_copy_is_not_factored) {
  hone_solver *solver = NULL;
  hone_report report = HONE_REPORT_INIT;
  half_system s = make_half(300, HONE_TRIANGLE_LOWER, HONE_COL_MAJOR);
  s.options.memory_limit_bytes = s.n * s.n * (int64_t)sizeof(hone_entry) - 1;
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.given, s.lda, &report),
               HONE_NO_MEMORY);
  CHECK_CONTAINS(report.reason, "triangle");
  CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, s.n, s.found, s.n, NULL, NULL),
               HONE_NOT_FACTORED);
  hone_solver_destroy(&solver);
  free_half(&s);
}

/* ---- Arguments, and memory of a device ----------------------------------- */

TEST_OF(triangle, is_one_of_four) {
  half_system s = make_half(5, HONE_TRIANGLE_LOWER, HONE_COL_MAJOR);
  s.options.triangle = 5;
  CHECK_EQ_INT(solve(&s, NULL), HONE_BAD_OPTION);
  s.options.triangle = -1;
  CHECK_EQ_INT(solve(&s, NULL), HONE_BAD_OPTION);
  free_half(&s);
}

/* Copies it from there. */
static void check_there(int64_t n, int device) {
  half_system s = make_half(n, HONE_TRIANGLE_LOWER, HONE_COL_MAJOR);
  const int64_t count = s.lda * s.n * HONE_PARTS;
  hone_entry *there =
      (hone_entry *)(void *)on_device((const double *)s.given, count);
  s.options.device = device;
  CHECK_EQ_INT(
      hone_solve(n, 1, there, s.lda, s.b, n, s.found, n, &s.options, NULL),
      HONE_OK);
  CHECK_LE(entries_forward_error(n, s.found, s.x), 64.0 * SUP_EPS);
  device_free(there);
  free_half(&s);
}

TEST_OF(triangle, lies_on_a_device) {
  device_begin();
  check_there(50, HONE_DEVICE_CPU);
  check_there(420, HONE_DEVICE_CPU);
  device_end();
}

TEST_OF(triangle_cuda, lies_on_the_device_that_is_used) {
  NEED_DEVICE();
  device_begin();
  check_there(420, HONE_DEVICE_CUDA);
  device_end();
}
