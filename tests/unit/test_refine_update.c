/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_ladder_update: factors of one matrix serve another that is near it.
   For real and for complex entries. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

static int update(fixture *s) {
  fixture_clear_report(s);
  return hone_ladder_update(&s->ladder, sup_matrix(s->n, s->n, s->a),
                            &s->report);
}

static void disturb(fixture *s, double by) {
  sup_rng rng = {99};
  for (int64_t i = 0; i < s->n * s->n; i++)
    s->a[i] *= 1.0 + by * entries_uniform(&rng);
}

TEST_OF(refine, keeps_the_factors_for_a_nearby_matrix) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  disturb(&s, 1e-5);
  /* x does not solve the new system. */
  CHECK_LE(1e-8, fixture_backward_error(&s, 0));
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_LE(1, s.report.iterations);
  CHECK_EQ_INT(script->factors, 1);
  CHECK(s.ladder.rung[1].self == NULL);
  CHECK_CONTAINS(s.report.path, "of an earlier matrix");
  CHECK_STR(s.report.reason, "");
  fixture_tear_down(&s);
}

TEST_OF(refine, factors_again_where_the_earlier_factors_do_not_converge) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + i * s.n] *= i % 2 ? 1.35 : 0.65;
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_CONTAINS(s.report.reason, " of an earlier matrix: ");
  CHECK_CONTAINS(s.report.reason, "; factors of an earlier matrix: too far");
  CHECK_EQ_INT(s.column[0].precision, 32);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK); /* with factors of this matrix */
  CHECK_STR(s.report.reason, "");
  fixture_tear_down(&s);
}

TEST_OF(refine, factors_at_once_a_matrix_far_from_the_last) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  for (int64_t i = 0; i < s.n * s.n; i++)
    s.a[i] = -s.a[i];
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_CONTAINS(s.report.reason, "earlier matrix");
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  fixture_tear_down(&s);
}

TEST_OF(refine, finds_an_updated_matrix_singular_or_not_finite) {
  fixture s;
  fixture_set_up_one(&s, true);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  hone_entry *good = entries_copy(s.a, ORDER * ORDER);
  memcpy(s.a, s.a + ORDER, ORDER * sizeof *s.a); /* two equal columns */
  int st = update(&s);
  CHECK(st != HONE_OK || fixture_solve(&s) != HONE_OK);
  memset(s.a, 0, ORDER * sizeof *s.a);
  CHECK_EQ_INT(update(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_col, 0);
  s.a[5] = entries_ending_in((double)NAN);
  CHECK_EQ_INT(update(&s), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(s.report.bad_row, 5);
  CHECK(!s.ladder.factored);
  memcpy(s.a, good, ORDER * ORDER * sizeof *good);
  CHECK_EQ_INT(update(&s), HONE_OK); /* the ladder works as before */
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  entries_free(good);
  fixture_tear_down(&s);
}

TEST_OF(refine, update_factors_where_there_is_no_earlier_matrix) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  REQUIRE(fixture_open(&s) == HONE_OK);
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(script->factors, 1);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  fixture_tear_down(&s);
}

/* Column 0 is accepted with the earlier factors. The others are not, and the
   factorization of the present matrix meets a zero pivot. All columns are then
   solved for with the next factors. */
TEST_OF(refine, a_zero_pivot_after_an_update_leaves_no_column_behind) {
  for (int replaced = 0; replaced < 2; replaced++) {
    fixture s;
    double rates[ORDER];
    ct_note("replaced %d", replaced);
    fixture_set_up_mixed(&s, rates, 0.8);
    fixture_add_double(&s);
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    CHECK_EQ_INT(update(&s), HONE_OK);
    s.script[0]->info.zero_pivot = 3;
    s.script[0]->info.replaced = replaced;
    CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "too far from the present one");
    CHECK_CONTAINS(s.report.reason, "a pivot is exactly zero");
    CHECK_EQ_INT(s.column[0].precision, 64);
    CHECK_EQ_INT(s.column[1].precision, 64);
    for (int c = 0; c < s.nrhs; c++) {
      CHECK_EQ_INT(s.column[c].status, HONE_OK);
      CHECK_LE(s.column[c].forward_error, 1e-10);
    }
    fixture_check_accepted(&s);
    fixture_tear_down(&s);
  }
}
