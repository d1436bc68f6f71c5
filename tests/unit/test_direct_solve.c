/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct solves that follow from the structure of A: diagonal, triangular,
   banded, and Cholesky where A may be definite. */
#include "tests/unit/shaped_system.h"

#include "cpu_dp/structure.h"
#include "tests/unit/ct.h"

#include <stdlib.h>
#include <string.h>

static const int64_t orders[] = {1, 2, 3, 17, 64, 65, 200};
enum { ORDERS = sizeof orders / sizeof *orders };

TEST(direct, solves_every_structure_in_every_form) {
  for (int kind = 0; kind < SHAPES; kind++)
    for (int i = 0; i < ORDERS; i++)
      for (int form = 0; form < FORMS; form++) {
        shaped s = shaped_make((shape)kind, orders[i], form & 4 ? 5 : 1,
                               form & 8 ? 3 : 0);
        ct_note("shape %d, n %d, form %d", kind, (int)s.n, form);
        shaped_take_form(&s, form);
        CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
        const int structure = shaped_structure((shape)kind, s.n);
        if (kind != BAND || structure != HONE_FOUND_BANDED ||
            s.options.layout == HONE_COL_MAJOR)
          shaped_check_path(&s, structure);
        CHECK_EQ_INT(s.report.accepted, s.nrhs);
        shaped_discard(&s);
      }
}

/* A is scaled while pieces of it are copied, more than one at the larger
   order. */
TEST(direct, solves_every_structure_in_mixed_units) {
  static const double units[] = {5.0, 60.0};
  for (int kind = 0; kind <= BAND; kind++)
    for (int form = 0; form < FORMS / 2; form++)
      for (int u = 0; u < 2; u++) {
        shaped s =
            shaped_make((shape)kind, form & 4 ? 90 : 400, form & 4 ? 5 : 1, 1);
        ct_note("shape %d, form %d, 10^+-%g", kind, form, units[u]);
        shaped_fill(&s, (shape)kind, units[u]);
        shaped_take_form(&s, form);
        shaped_check_no_worse_than_lu(&s, kind < BAND || u == 0);
        CHECK_EQ_INT(s.report.structure, shaped_structure((shape)kind, s.n));
        CHECK(strstr(s.report.path, "set aside") == NULL);
        CHECK_LT(s.report.scale_exponent_min, -3);
        CHECK(u == 1 || strstr(s.report.path, "double") == NULL);
        if (kind < BAND)
          CHECK_LE(s.report.iterations, 2);
        shaped_discard(&s);
      }
}

TEST(direct, takes_cholesky_for_a_matrix_that_may_be_definite) {
  for (int form = 0; form < FORMS; form += 3) {
    shaped s = shaped_make(DEFINITE, 520, form & 4 ? 5 : 1, form & 8 ? 3 : 0);
    ct_note("form %d", form);
    shaped_take_form(&s, form);
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    shaped_check_path(&s, HONE_FOUND_DEFINITE);
    shaped_discard(&s);
  }
}

TEST(direct, finds_structures_with_any_number_of_threads) {
  for (int kind = 0; kind < SHAPES; kind++)
    for (int threads = 1; threads <= 3; threads += 2) {
      shaped s = shaped_make((shape)kind, 600, 1, 0);
      ct_note("shape %d, %d threads", kind, threads);
      s.options.threads = threads;
      CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
      shaped_check_path(&s, kind == DEFINITE
                                ? HONE_FOUND_DEFINITE
                                : shaped_structure((shape)kind, s.n));
      shaped_discard(&s);
    }
}

/* The band has the same pivots as LU of the full matrix. */
TEST(direct, reports_the_growth_factor_that_lu_would) {
  for (int kind = 0; kind <= BAND; kind++) {
    shaped s = shaped_make((shape)kind, 90, 1, 0);
    ct_note("shape %d", kind);
    s.a[20 * 91] = 1e-9; /* makes a large multiplier or a row exchange */
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    const double growth = s.report.growth;
    s.options.structure = HONE_STRUCTURE_GENERAL;
    s.options.factor_precision = HONE_FACTOR_DOUBLE;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_NEAR(growth, kind == LOWER ? 1.0 : s.report.growth, 1e-12);
    CHECK(kind != BAND || growth > 1.01 || growth < 0.99);
    shaped_discard(&s);
  }
}

/* Options ------------------------------------------------------------------ */

TEST(direct, finds_no_structure_where_the_caller_names_one) {
  for (int kind = 0; kind < SHAPES; kind++) {
    shaped s = shaped_make((shape)kind, 520, 1, 0);
    ct_note("shape %d", kind);
    s.options.structure = HONE_STRUCTURE_GENERAL;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    shaped_check_path(&s, HONE_FOUND_GENERAL);
    s.options.structure = HONE_STRUCTURE_SPD; /* the caller says so */
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_CONTAINS(s.report.path, "single Cholesky");
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_GENERAL);
    shaped_discard(&s);
  }
}

TEST(direct, takes_no_cholesky_if_factors_are_to_be_double) {
  for (int kind = 0; kind < SHAPES; kind++) {
    shaped s = shaped_make((shape)kind, 520, 1, 0);
    ct_note("shape %d", kind);
    s.options.factor_precision = HONE_FACTOR_DOUBLE;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK((strstr(s.report.path, "double LU") == NULL) == (kind <= BAND));
    shaped_discard(&s);
  }
}

TEST(direct, needs_little_memory_and_no_more_than_announced) {
  for (int kind = 0; kind <= BAND; kind++) {
    shaped s = shaped_make((shape)kind, 1000, 1, 0);
    ct_note("shape %d", kind);
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_LE(s.report.host_bytes, 1000000); /* single LU takes 4 n^2 */
    shaped_discard(&s);
  }
  for (int64_t n = 20; n <= 660; n += 128) {
    shaped s = shaped_make(BAND, n, 1, 0);
    int64_t single = 0, below = n;
    while (!hone_band_pays(below, 1, n))
      below--;
    /* The widest band, nearly all below the diagonal. */
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = j + 1; i < HONE_MIN(j + below + 1, n); i++)
        s.a[i + j * n] = 1.0 / (double)(n + i + j);
    ct_note("n %d, %d below", (int)n, (int)below);
    CHECK_EQ_INT(hone_memory_needed(n, 1, &s.options, &single, NULL), HONE_OK);
    s.options.memory_limit_bytes = single;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_BANDED);
    CHECK_LE(s.report.host_bytes, single);
    CHECK_LE(1.0, (double)hone_engine_banded.bytes(n, 1) /
                      (8.0 * (double)n * (2.0 * (double)below + 2.0)));
    shaped_discard(&s);
  }
}

TEST(direct, finds_structures_where_a_gpu_is_asked_for) {
  static const char *const places[] = {"CPU", "CPU",  "CPU",
                                       "CPU", "CUDA", "CUDA"};
  char why[160] = "";
  const char *required = getenv("HONE_REQUIRE_GPU");
  if (!hone_engine_single_cuda.probe(why, sizeof why)) {
    REQUIRE(required == NULL || strcmp(required, "1") != 0);
    SKIP(why);
  }
  for (int kind = 0; kind < SHAPES; kind++)
    for (int layout = 0; layout < 2; layout++) {
      shaped s = shaped_make((shape)kind, 300, 2, layout ? 3 : 0);
      ct_note("shape %d, layout %d", kind, layout);
      s.options.device = HONE_DEVICE_CUDA;
      s.options.layout = layout;
      CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
      CHECK_EQ_INT(s.report.structure,
                   kind == DEFINITE ? HONE_FOUND_DEFINITE
                                    : shaped_structure((shape)kind, s.n));
      CHECK_CONTAINS(s.report.device, places[kind]);
      CHECK_CONTAINS(s.report.path, kind == DEFINITE ? "single Cholesky"
                                    : kind == FULL   ? "single LU"
                                                     : "");
      CHECK_STR(s.report.reason, "");
      shaped_discard(&s);
    }
}
