/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular matrices, and factors that do not show that a matrix is singular.
   For real and for complex entries. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Columns 3 and 7 are equal, but the engine factors a matrix that is away by as
   much as rounding would move it. b = A ones, so that every residual can be
   made small. */
static void set_up_singular(fixture *s, hone_entry *near, double away) {
  sup_rng rng = {5};
  hone_entry ones[ORDER];
  fixture_set_up(s, 1);
  memcpy(s->a + 3 * ORDER, s->a + 7 * ORDER, ORDER * sizeof *s->a);
  for (int64_t i = 0; i < ORDER; i++)
    ones[i] = 1.0;
  entries_multiply(ORDER, s->a, ORDER, false, ones, s->b);
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    near[i] = s->a[i] * (1.0 + away * entries_uniform(&rng));
}

TEST_OF(refine, never_accepts_with_factors_that_miss_a_singular_matrix) {
  static const double aways[] = {1e-4, 1e-7, 1e-10, 1e-15};
  static const int criteria[] = {HONE_CRITERION_COMPONENTWISE,
                                 HONE_CRITERION_NORMWISE,
                                 HONE_CRITERION_RESIDUAL};
  for (int k = 0; k < 12; k++) {
    fixture s;
    hone_entry near[ORDER * ORDER];
    ct_note("away %g, criterion %d", aways[k / 3], criteria[k % 3]);
    set_up_singular(&s, near, aways[k / 3]);
    fixture_add_scripted(&s, "scripted", 32)->instead = near;
    fixture_add_scripted(&s, "second", 64)->instead = near;
    s.request.criterion = criteria[k % 3];
    s.request.limit = 1e-10;
    s.request.deflation = -1; /* nor is a null vector searched for */
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    CHECK_CONTAINS(s.report.reason, "scripted: these factors cannot tell");
    CHECK_CONTAINS(s.report.reason, "second: these factors cannot tell");
    CHECK_EQ_INT(fixture_solve(&s), HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(s.report.accepted, 0);
    CHECK_EQ_INT(s.column[0].status, HONE_ILL_CONDITIONED);
    CHECK_LE(DBL_MAX, s.column[0].forward_error); /* no digit is certified */
    CHECK_CONTAINS(s.report.path, "scripted set aside, second");
    CHECK(isfinite(fixture_backward_error(&s, 0)));
    fixture_tear_down(&s);
  }
}

/* An engine as accurate is on the ladder for where the first one cannot be had
   (LU in double on a device and on the host). It finds no better x. */
TEST_OF(refine, keeps_the_x_of_double_factors_before_an_engine_as_accurate) {
  fixture s;
  hone_entry near[ORDER * ORDER];
  set_up_singular(&s, near, 1e-15);
  fixture_add_scripted(&s, "scripted", 64)->instead = near;
  sup_script *second = fixture_add_scripted(&s, "second", 64);
  second->instead = near;
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(s.column[0].status, HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(second->creates, 0);
  CHECK(isfinite(fixture_backward_error(&s, 0)));
  fixture_tear_down(&s);
}

TEST_OF(refine, climbs_when_only_double_factors_show_that_a_is_regular) {
  fixture s;
  hone_entry near[ORDER * ORDER];
  set_up_singular(&s, near, 1e-7);
  /* Now regular, with a condition about 1e10. */
  s.a[3 + 3 * ORDER] *= 1.0 + 1e-9;
  hone_entry ones[ORDER];
  for (int64_t i = 0; i < ORDER; i++)
    ones[i] = 1.0;
  entries_multiply(ORDER, s.a, ORDER, false, ones, s.b);
  fixture_add_scripted(&s, "scripted", 32)->instead = near;
  fixture_add_double(&s);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.column[0].precision, 64);
  CHECK_LE(entries_distance(ORDER, s.a, s.x, s.b), /* b was rounded */
           s.column[0].forward_error);
  CHECK_LE(s.column[0].forward_error, 1e-2);
  fixture_tear_down(&s);
}

TEST_OF(refine, finds_zero_rows_and_columns_before_any_engine_is_made) {
  for (int row = 0; row < 2; row++) {
    fixture s;
    sup_script *script = fixture_set_up_one(&s, true);
    for (int64_t i = 0; i < ORDER; i++)
      s.a[row ? 4 + i * ORDER : i + 4 * ORDER] = 0.0;
    CHECK_EQ_INT(fixture_run(&s), HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_row, row ? 4 : -1);
    CHECK_EQ_INT(s.report.bad_col, row ? -1 : 4);
    CHECK_EQ_INT(script->creates, 0);
    CHECK(fixture_untouched(&s));
    fixture_tear_down(&s);
  }
}

/* ---- Later findings ------------------------------------------------------
 */

/* More columns than a block holds. All are solved by the first engine but the
   last, which needs the second one, whose factors cannot tell A from a singular
   matrix. */
enum { REVOKED = HONE_BLOCK_COLUMNS + 3 };

static void set_up_late_finding(fixture *s, double *rates, hone_entry *wrong) {
  fixture_set_up(s, REVOKED);
  for (int64_t j = 0; j < ORDER; j++) {
    rates[j] = j < ORDER - 1 ? 1e-5 : 0.9;
    for (int64_t i = 0; i < ORDER; i++) {
      s->a[i + j * ORDER] = i == j ? 1.0 + (double)i : 0.0;
      wrong[i + j * ORDER] = i == j ? 1e3 : 1.0;
    }
  }
  for (int64_t c = 0; c < REVOKED; c++)
    for (int64_t i = 0; i < ORDER; i++)
      if ((i < ORDER - 1) != (c < REVOKED - 1))
        s->b[i + c * ORDER] = 0.0;
  fixture_add_scripted(s, "scripted", 32)->rates = rates;
  fixture_add_scripted(s, "second", 64)->instead = wrong;
}

TEST_OF(refine, a_later_block_revokes_what_an_earlier_one_was_told) {
  for (int64_t nrhs = REVOKED - 1; nrhs <= REVOKED; nrhs++) {
    fixture s;
    hone_column column[REVOKED] = {{0}};
    double rates[ORDER];
    hone_entry wrong[ORDER * ORDER];
    const bool revoked = nrhs == REVOKED;
    double *bars = sup_filled(ORDER * nrhs, -1.0);
    ct_note("%d columns", (int)nrhs);
    set_up_late_finding(&s, rates, wrong);
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    s.ladder.bars = bars;
    s.ladder.ldbars = ORDER;
    fixture_clear_report(&s);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, nrhs, s.b, ORDER, s.x,
                                   ORDER, NULL, 0, column, &s.report),
                 revoked ? HONE_ILL_CONDITIONED : HONE_OK);
    CHECK_EQ_INT(s.report.accepted, revoked ? 0 : nrhs);
    CHECK((s.report.forward_error <= 0.1) == !revoked);
    CHECK((s.report.digits > 0) == !revoked);
    CHECK((s.report.bound_failure > 0.0) == !revoked);
    for (int64_t c = 0; c < nrhs; c++) {
      ct_note("column %d of %d", (int)c, (int)nrhs);
      CHECK_EQ_INT(column[c].status, revoked ? HONE_ILL_CONDITIONED : HONE_OK);
      CHECK_EQ_INT(column[c].precision, c < REVOKED - 1 ? 32 : 64);
      CHECK((column[c].forward_error <= 0.1) == !revoked);
      CHECK((column[c].digits > 0) == !revoked);
      for (int64_t i = 0; i < ORDER; i++)
        CHECK((bars[i + c * ORDER] <= 1.0) == !revoked);
    }
    sup_free(bars);
    fixture_tear_down(&s);
  }
}
