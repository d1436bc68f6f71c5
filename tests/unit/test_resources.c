/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that an engine holds, and the passes over A. In the systems every
   sum is exact, so that the first x is right and rounding has no influence on
   the number of passes. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Engines ------------------------------------------------------------------ */

/* Blocks allocated and not yet freed, and their bytes less those that the
   library adds to each for alignment and accounting. */
typedef struct heap {
  int64_t bytes, blocks;
} heap;

enum { ADDED = 64 + 16 };

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  int64_t *p = malloc(bytes + 16);
  if (p == NULL)
    abort();
  p[0] = (int64_t)bytes;
  h->bytes += p[0] - ADDED;
  h->blocks++;
  return p + 2;
}

static void give(void *memory, void *ctx) {
  heap *h = ctx;
  int64_t *p = (int64_t *)memory - 2;
  h->bytes -= p[0] - ADDED;
  h->blocks--;
  free(p);
}

/* The upper triangle, or band, is dominated by its diagonal; below it the band
   is as wide as the engine takes it. */
static void fill(int64_t n, int64_t below, int64_t above, double *a) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * n] = i == j                             ? 4.0
                     : i <= j + below && j <= i + above ? 0.5 / (double)n
                                                        : 0.0;
}

static void check_held(const hone_engine *engine, int64_t n, int64_t k,
                       int64_t below, int64_t above) {
  /* 4 n floats of the small LU, which Cholesky shares a device with */
  const int64_t unused =
      engine == &hone_engine_cholesky && n <= 512 ? 16 * n : 0;
  heap h = {0};
  hone_mem mem = {.alloc = take, .free = give, .ctx = &h};
  hone_watch watch = {0};
  const hone_structure structure = {
      .lower = below, .upper = above, .definite = below == n - 1};
  const hone_engine_config config = {
      .n = n, .mem = &mem, .watch = &watch, .structure = &structure};
  void *self = NULL;
  hone_factor_info info;
  double *a = sup_filled(n * n, 0.0), *v = sup_filled(n * k, 1.0);
  double *ones = sup_filled(n, 1.0);
  int *zeros = calloc((size_t)n, sizeof *zeros);
  const hone_scaling scaling = {.row = ones,
                                .col = ones,
                                .row_exp = zeros,
                                .col_exp = zeros,
                                .used = true};
  const hone_matrix matrix = *sup_matrix(n, n, a);
  fill(n, below, above, a);
  ct_note("%s, n %d, %d columns", engine->name, (int)n, (int)k);
  REQUIRE(engine->create(&self, &config) == HONE_OK);
  CHECK_EQ_INT(engine->factor(self, &matrix, &scaling, &info), HONE_OK);
  CHECK(info.growth > 0.0 && info.growth < 2.0);
  CHECK_EQ_INT(engine->solve(self, false, k, v, n), HONE_OK);
  CHECK_EQ_INT(engine->solve(self, true, k, v, n), HONE_OK);
  CHECK_EQ_INT(h.bytes + unused, engine->bytes(n, k));
  engine->destroy(self, &mem);
  CHECK_EQ_INT(h.bytes, 0);
  CHECK_EQ_INT(h.blocks, 0);
  CHECK_EQ_INT(mem.held, 0);
  sup_free(a);
  sup_free(v);
  sup_free(ones);
  free(zeros);
}

/* Equal to the byte, as hone_memory_needed uses it. (For bands it assumes the
   widest band that pays, all below the diagonal.) */
TEST(resources, bytes_of_every_engine_are_those_that_it_announces) {
  static const int orders[] = {5, 130, 513};
  for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
    for (int64_t k = 1; k <= 64; k += 63) {
      const int64_t n = orders[o];
      check_held(&hone_engine_diagonal, n, k, 0, 0);
      check_held(&hone_engine_triangular, n, k, 0, n - 1);
      check_held(&hone_engine_banded, n, k, n / 5, 0);
      check_held(&hone_engine_double, n, k, n - 1, n - 1);
      check_held(&hone_engine_single, n, k, n - 1, n - 1);
      check_held(&hone_engine_cholesky, n, k, n - 1, n - 1);
    }
}

/* NaN stands below the diagonal; LU would read it. */
TEST(resources, cholesky_reads_one_triangle_only) {
  static const hone_engine *const engines[] = {&hone_engine_cholesky,
                                               &hone_engine_cholesky_double};
  for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++)
    for (int64_t n = 2; n <= 200; n += 66) {
      heap h = {0};
      hone_mem mem = {.alloc = take, .free = give, .ctx = &h};
      hone_watch watch = {0};
      const hone_structure structure = {
          .lower = n - 1, .upper = n - 1, .definite = true};
      const hone_engine_config config = {
          .n = n, .mem = &mem, .watch = &watch, .structure = &structure};
      void *self = NULL;
      hone_factor_info info;
      double *a = sup_filled(n * n, (double)NAN), *v = sup_filled(n, 0.0);
      double *ones = sup_filled(n, 1.0);
      const hone_scaling scaling = {.row = ones, .col = ones};
      const hone_matrix matrix = *sup_matrix(n, n, a);
      const bool lower = e == 0; /* is read, else the upper one */
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++)
          a[lower ? i + j * n : j + i * n] =
              i == j ? 4.0 : (j + 1 == i ? 2.0 : 0.0);
      v[0] = 4.0; /* b is the first column of A */
      v[1] = 2.0;
      ct_note("%s, n %d", engines[e]->name, (int)n);
      REQUIRE(engines[e]->create(&self, &config) == HONE_OK);
      CHECK_EQ_INT(engines[e]->factor(self, &matrix, &scaling, &info), HONE_OK);
      CHECK_EQ_INT(info.zero_pivot, -1);
      CHECK_NEAR(info.growth, 1.0, 0.0); /* max u^2 = 4 and max |a| = 4 */
      CHECK_EQ_INT(engines[e]->solve(self, false, 1, v, n), HONE_OK);
      /* The condition of A is below n^2; that many eps may be lost. */
      for (int64_t i = 0; i < n; i++)
        CHECK_NEAR(v[i], i == 0 ? 1.0 : 0.0,
                   (double)(n * n) *
                       (engines[e]->precision == 32 ? 0x1p-23 : 0x1p-52));
      engines[e]->destroy(self, &mem);
      CHECK_EQ_INT(h.blocks, 0);
      sup_free(a);
      sup_free(v);
      sup_free(ones);
    }
}

/* Passes ------------------------------------------------------------------- */

/* A permutation times 4, and one entry of 2: factors, inverse and solutions are
   small dyadic numbers. */
static hone_report solve_exactly(int64_t n, int64_t nrhs,
                                 const hone_options *chosen, bool warm) {
  hone_options o = *chosen;
  hone_report r = HONE_REPORT_INIT;
  double *a = sup_filled(n * n, 0.0), *b = sup_filled(n * nrhs, 0.0);
  double *x = sup_filled(n * nrhs, 0.0), *x0 = sup_filled(n * nrhs, 0.0);
  for (int64_t j = 0; j < n; j++)
    a[(j * 7 + 3) % n + j * n] = 4.0;
  a[(3 + 7) % n] = 2.0;
  for (int64_t c = 0; c < nrhs; c++) {
    for (int64_t i = 0; i < n; i++)
      x0[i + c * n] = (double)(1 + (i + c) % 5);
    sup_multiply(n, a, n, o.trans == HONE_TRANS, x0 + c * n, b + c * n);
  }
  if (warm) {
    o.x0 = x0;
    o.ldx0 = n;
  }
  CHECK_EQ_INT(hone_solve(n, nrhs, a, n, b, n, x, n, &o, &r), HONE_OK);
  CHECK_MEM_EQ(x, x0, (size_t)(n * nrhs) * sizeof *x);
  CHECK_EQ_INT(r.iterations, 0);
  CHECK_NEAR(r.backward_error, 0.0, 0.0);
  CHECK_EQ_INT(r.accepted, nrhs);
  CHECK_EQ_INT(r.device_passes, 0);
  CHECK_EQ_INT(r.certificate_steps, 0);
  sup_free(a);
  sup_free(b);
  sup_free(x);
  sup_free(x0);
  return r;
}

/* Each 64 columns take one pass in double-double, and before it one in plain
   double unless the factors promise an accurate x. The passes for the
   certificate do not depend on the columns. An accurate x, or x0, takes no more
   passes in any mode. */
TEST(resources, passes_are_the_same_for_every_64_columns) {
  for (int trans = 0; trans < 2; trans++)
    for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
      hone_options o = HONE_OPTIONS_INIT;
      o.device = HONE_DEVICE_CPU;
      o.structure = HONE_STRUCTURE_GENERAL;
      o.factor_precision = start;
      o.trans = trans;
      o.deterministic = 1; /* by a solver */
      ct_note("trans %d, start %d", trans, start);
      const int each = start == HONE_FACTOR_SINGLE ? 2 : 1;
      const hone_report one = solve_exactly(40, 1, &o, false);
      CHECK_LE(1, one.host_passes);
      CHECK_LE(one.host_passes, 8);
      CHECK_EQ_INT(solve_exactly(40, 64, &o, false).host_passes,
                   one.host_passes);
      CHECK_EQ_INT(solve_exactly(40, 65, &o, false).host_passes,
                   one.host_passes + each);
      CHECK_EQ_INT(solve_exactly(40, 129, &o, false).host_passes,
                   one.host_passes + 2 * each);
      CHECK_EQ_INT(solve_exactly(40, 1, &o, true).host_passes, one.host_passes);
      o.extra_precise = 1;
      CHECK_EQ_INT(solve_exactly(40, 1, &o, false).host_passes,
                   one.host_passes);
      CHECK_EQ_INT(solve_exactly(40, 65, &o, true).host_passes,
                   one.host_passes + each);
    }
}

/* Zero rows and columns ---------------------------------------------------- */

/* The reason names a zero row or column, wherever it is. */
TEST(report, reason_names_a_zero_row_or_column) {
  for (int64_t at = 0; at < 3; at++)
    for (int column = 0; column < 2; column++) {
      double a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 10}, b[3] = {1, 1, 1}, x[3];
      hone_report r = HONE_REPORT_INIT;
      for (int64_t k = 0; k < 3; k++)
        a[column ? k + at * 3 : at + k * 3] = 0.0;
      CHECK_EQ_INT(hone_solve(3, 1, a, 3, b, 3, x, 3, NULL, &r), HONE_SINGULAR);
      char want[32];
      snprintf(want, sizeof want, "A: %s %d is zero", column ? "column" : "row",
               (int)at);
      CHECK_STR(r.reason, want);
      CHECK_EQ_INT(r.bad_row, column ? -1 : at);
      CHECK_EQ_INT(r.bad_col, column ? at : -1);
      CHECK_EQ_INT(r.null_count, column);
      CHECK_EQ_INT(r.dependent_count, !column);
    }
}

/* Memory ------------------------------------------------------------------- */

/* Fails the call that takes *left from 1 to 0. */
static void *take_or_fail(size_t bytes, void *left) {
  int *const calls = left;
  return --*calls == 0 ? NULL : malloc(bytes);
}
static void free_it(void *memory, void *left) {
  (void)left;
  free(memory);
}

/* Two columns differ by 1e-10: single precision finds them equal, double does
   not. Without the memory for double that must not be mistaken for a singular
   matrix. */
TEST(report, too_little_memory_is_no_singular_matrix) {
  enum { MOST = 100 };
  double *a = sup_filled(MOST * MOST, 0.0), b[MOST], x[MOST];
  for (int n = 50; n <= MOST; n += 50) {
    sup_rng rng = {5};
    int without = 0;
    sup_random(&rng, n, n, a, n);
    sup_random(&rng, n, 1, b, n);
    for (int64_t i = 0; i < n; i++)
      a[i + (n - 1) * n] = a[i] * (1.0 + (double)(i % 3) * 1e-10);
    for (int k = 0; k < 16; k++) {
      int left = k;
      hone_options o = HONE_OPTIONS_INIT;
      o.device = HONE_DEVICE_CPU;
      o.alloc = take_or_fail;
      o.free = free_it;
      o.alloc_ctx = &left;
      o.deterministic = 1; /* by a solver */
      const int st = hone_solve(n, 1, a, n, b, n, x, n, &o, NULL);
      ct_note("n %d, allocation %d fails: %d", n, k, st);
      CHECK(st == HONE_OK || st == HONE_NO_MEMORY || st == HONE_NOT_CONVERGED ||
            st == HONE_ILL_CONDITIONED);
      CHECK(k > 0 || st == HONE_OK);
      without += st == HONE_NO_MEMORY;
    }
    CHECK_GE(without, 2);
  }
  sup_free(a);
}

/* A kept solver has room for the threads that the machine can run, however many
   the caller allows: it once asked for 17 GB. */
TEST(resources, a_kept_solver_needs_no_room_for_threads_that_cannot_be) {
  static const int32_t allowed[] = {0, INT32_MAX};
  const int64_t n = 1100;
  double *a = calloc((size_t)(n * n), sizeof *a);
  double *b = calloc((size_t)n, sizeof *b);
  REQUIRE(a != NULL && b != NULL);
  for (int64_t k = 0; k < n * n; k++)
    a[k] = k % (n + 1) == 0 ? 4.0 : 1e-3 * (double)(k % 7);
  unsetenv("HONE_NUM_THREADS");
  unsetenv("OPENBLAS_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  for (int i = 0; i < 2; i++) {
    hone_options o = HONE_OPTIONS_INIT;
    hone_report once = HONE_REPORT_INIT, kept = HONE_REPORT_INIT;
    hone_solver *solver = NULL;
    o.device = HONE_DEVICE_CPU;
    o.threads = allowed[i];
    CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, b, n, &o, &once), HONE_OK);
    CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, n, NULL), HONE_OK);
    CHECK_EQ_INT(hone_solver_solve(solver, 1, b, n, b, n, NULL, &kept),
                 HONE_OK);
    CHECK_EQ_INT(kept.threads, once.threads);
    CHECK_LE(kept.host_bytes, 2 * once.host_bytes);
    hone_solver_destroy(&solver);
  }
  free(a);
  free(b);
}
