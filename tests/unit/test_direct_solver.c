/* SPDX-License-Identifier: BSD-3-Clause */
/* A solver that takes matrices of one structure after another, and direct
   solves that are stopped. */
#include "tests/unit/shaped_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void solve_kept(hone_solver *solver, shaped *s) {
  for (int trans = 0; trans < 2; trans++) {
    s->options.trans = trans;
    int st = sup_solver_solve(solver, trans, s->nrhs, s->b, s->n, s->x, s->n,
                              NULL, 0, NULL, &s->report);
    CHECK_EQ_INT(st, HONE_OK);
    shaped_check_x(s, st);
  }
}

static int64_t calls;

static void *count(size_t bytes, void *ctx) {
  (void)ctx;
  calls++;
  return malloc(bytes);
}

static void release(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

TEST(direct, takes_matrices_of_different_structure_one_after_another) {
  hone_solver *solver = NULL;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.alloc = count;
  o.free = release;
  REQUIRE(hone_solver_create(&solver, 520, &o) == HONE_OK);
  for (int round = 0; round < 3; round++) {
    if (round == 2)
      calls = 0; /* every structure has come, in both units */
    for (int kind = 0; kind < SHAPES; kind++) {
      shaped s = shaped_make((shape)kind, 520, 2, 3);
      ct_note("round %d, shape %d", round, kind);
      shaped_fill(&s, (shape)kind, round == 1 ? 5.0 : 0.0);
      CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
      solve_kept(solver, &s);
      if (round != 1)
        shaped_check_path(&s, kind == DEFINITE
                                  ? HONE_FOUND_DEFINITE
                                  : shaped_structure((shape)kind, s.n));
      shaped_discard(&s);
    }
  }
  CHECK_EQ_INT(calls, 0);
  hone_solver_destroy(&solver);
}

/* The solver keeps room for the widest band so far. */
TEST(direct, takes_bands_of_any_width_one_after_another) {
  static const int64_t widths[] = {2, 9, 3, 14, 14, 9};
  static const bool grows[] = {true, true, false, true, false, false};
  hone_solver *solver = NULL;
  shaped s = shaped_make(BAND, 150, 1, 0);
  s.options.alloc = count;
  s.options.free = release;
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  for (int i = 0; i < 6; i++) {
    shaped_fill(&s, BAND, 0.0);
    for (int64_t j = 0; j + widths[i] < s.n; j++)
      s.a[j + widths[i] + j * s.n] = s.a[j + (j + widths[i]) * s.n] = 0.1;
    calls = 0;
    ct_note("band %d", i);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_BANDED);
    CHECK((calls > 0) == grows[i]);
    solve_kept(solver, &s);
  }
  hone_solver_destroy(&solver);
  shaped_discard(&s);
}

/* The first matrix is overwritten with NaN before the update. */
TEST(direct, updates_from_every_structure_to_every_other) {
  for (int from = 0; from < SHAPES; from++)
    for (int to = 0; to < SHAPES; to++) {
      hone_solver *solver = NULL;
      shaped s = shaped_make((shape)from, 90, 1, 0),
             t = shaped_make((shape)to, 90, 1, 0);
      REQUIRE(hone_solver_create(&solver, 90, &s.options) == HONE_OK);
      ct_note("from %d to %d", from, to);
      CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, NULL), HONE_OK);
      solve_kept(solver, &s);
      for (int64_t i = 0; i < s.n * s.n; i++)
        s.a[i] = (double)NAN;
      CHECK_EQ_INT(hone_solver_update(solver, t.a, t.lda, &t.report), HONE_OK);
      if (from <= BAND)
        CHECK_STR(t.report.reason, "");
      solve_kept(solver, &t);
      hone_solver_destroy(&solver);
      shaped_discard(&s);
      shaped_discard(&t);
    }
}

/* The factors are kept, and no structure is looked for in the new matrix. */
TEST(direct, updates_cholesky_to_a_matrix_that_is_not_symmetric) {
  hone_solver *solver = NULL;
  shaped s = shaped_make(DEFINITE, 520, 1, 0);
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  s.a[7] += 1e-4;
  CHECK_EQ_INT(hone_solver_update(solver, s.a, s.lda, &s.report), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_GENERAL);
  solve_kept(solver, &s);
  CHECK_CONTAINS(s.report.path, "single Cholesky of an earlier matrix");
  hone_solver_destroy(&solver);
  shaped_discard(&s);
}

TEST(direct, holds_no_factors_after_a_failed_update) {
  hone_solver *solver = NULL;
  shaped s = shaped_make(UPPER, 90, 1, 0);
  REQUIRE(hone_solver_create(&solver, 90, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, NULL), HONE_OK);
  s.a[0] = 0.0;
  CHECK_EQ_INT(hone_solver_update(solver, s.a, s.lda, NULL), HONE_SINGULAR);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, s.n, s.x, s.n, NULL, 0, NULL, NULL),
      HONE_NOT_FACTORED);
  hone_solver_destroy(&solver);
  shaped_discard(&s);
}

/* Stopping ----------------------------------------------------------------- */

static int stop_at(void *user, const hone_progress *event) {
  return strcmp(event->phase, user) == 0;
}

TEST(direct, stops_in_the_phase_where_the_callback_says_so) {
  static char phases[][8] = {"inspect", "factor", "refine"};
  for (int kind = 0; kind <= BAND; kind++)
    for (int p = 0; p < 3; p++) {
      shaped s = shaped_make((shape)kind, 100, 1, 0);
      ct_note("shape %d, phase %d", kind, p);
      s.options.progress = stop_at;
      s.options.progress_user = phases[p];
      s.options.tolerance = p == 2 ? 1e-30 : 0.0; /* never accepted */
      CHECK_EQ_INT(shaped_solve(&s),
                   p == 2 ? HONE_INTERRUPTED : HONE_CANCELLED);
      shaped_discard(&s);
    }
}

TEST(direct, stops_at_the_deadline) {
  for (int kind = 0; kind <= BAND; kind++) {
    shaped s = shaped_make((shape)kind, 100, 1, 0);
    s.options.deadline_s = 1e-9;
    CHECK_EQ_INT(shaped_solve(&s), HONE_CANCELLED);
    shaped_discard(&s);
  }
}
