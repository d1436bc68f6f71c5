/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder where an engine makes coarse factors, cannot be had, breaks down
   or fails: which engine follows, and what the report says. For real and for
   complex entries. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

/* One engine with coarse and with accurate arithmetic ---------------------- */

static int same_engine_twice(fixture *s, double coarse, double accurate) {
  sup_script *script = fixture_set_up_one(s, false);
  s->engine[s->engines++] = s->engine[0];
  fixture_add_double(s);
  script->coarse_rate = coarse;
  script->rate = accurate;
  s->request.gmres_steps = -1;
  s->request.choices.arithmetic = HONE_ARITHMETIC_FP16;
  return fixture_run(s);
}

TEST_OF(refine, factors_more_precisely_before_it_factors_in_double) {
  fixture s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.9, 1e-5), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_EQ_INT(s.script[0]->arithmetic, HONE_ARITHMETIC_AUTO);
  /* The coarse factors are given back first. */
  CHECK_EQ_INT(s.script[0]->alive_most, 1);
  CHECK_EQ_INT(s.column[0].precision, 32);
  CHECK_EQ_INT(s.report.fallback_columns, 1);
  CHECK_CONTAINS(s.report.path, "scripted, scripted");
  CHECK(s.ladder.rung[2].self == NULL);
  /* The next matrix starts with coarse factors again. */
  CHECK_EQ_INT(fixture_factor(&s), HONE_OK);
  CHECK_EQ_INT(s.script[0]->arithmetic, HONE_ARITHMETIC_FP16);
  CHECK_EQ_INT(s.script[0]->alive_most, 1);
  fixture_tear_down(&s);
}

TEST_OF(refine, starts_with_accurate_factors_from_the_x_of_the_coarse_ones) {
  fixture s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.02, 1e-5), HONE_OK);
  const int32_t alone = s.report.iterations;
  CHECK_EQ_INT(s.script[0]->factors, 1); /* coarse factors suffice */
  fixture_tear_down(&s);
  fixture_set_up_one(&s, false);
  s.engine[s.engines++] = s.engine[0];
  fixture_add_double(&s);
  s.script[0]->coarse_rate = 0.02;
  s.script[0]->rate = 1e-5;
  s.request.gmres_steps = -1;
  s.request.choices.arithmetic = HONE_ARITHMETIC_TF32;
  s.request.max_iterations = alone - 3; /* reaches 1e-11 */
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_LE(s.report.iterations, alone - 1);
  fixture_tear_down(&s);
}

TEST_OF(refine, tries_gmres_with_coarse_factors_before_it_makes_others) {
  fixture s;
  fixture_set_up_one(&s, false)->coarse_rate = 0.9;
  s.engine[s.engines++] = s.engine[0];
  fixture_add_double(&s);
  s.request.choices.arithmetic = HONE_ARITHMETIC_BF16X3;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 1);
  CHECK_LE(1, s.report.gmres_steps);
  fixture_tear_down(&s);
}

TEST_OF(refine, climbs_to_double_where_no_single_precision_factors_serve) {
  fixture s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.9, 0.95), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_EQ_INT(s.column[0].precision, 64);
  fixture_tear_down(&s);
}

TEST_OF(refine, does_not_try_an_engine_again_that_could_not_be_created) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, false);
  s.engine[s.engines++] = s.engine[0];
  fixture_add_double(&s);
  s.request.choices.arithmetic = HONE_ARITHMETIC_BF16;
  script->create_status = HONE_DEVICE_FAILED;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(script->creates, 1);
  CHECK_EQ_INT(s.column[0].precision, 64);
  fixture_tear_down(&s);
}

/* Engines that cannot be used ---------------------------------------------- */

static void is_absent(sup_script *e) { e->absent = true; }
static void no_memory(sup_script *e) { e->create_status = HONE_NO_MEMORY; }
static void no_memory_late(sup_script *e) { e->factor_status = HONE_NO_MEMORY; }
static void device_fails(sup_script *e) {
  e->factor_status = HONE_DEVICE_FAILED;
}
static void zero_pivot(sup_script *e) { e->info.zero_pivot = 3; }
static void nan_growth(sup_script *e) { e->info.growth = (double)NAN; }
static void inf_growth(sup_script *e) { e->info.growth = (double)INFINITY; }
static void hopeless(sup_script *e) {
  e->info.hopeless = true, e->info.growth = (double)NAN;
}
static void no_solve(sup_script *e) {
  e->ladder = NULL; /* the solves of the condition estimate fail too */
  e->solve_status = HONE_DEVICE_FAILED, e->solve_fails_at = 0;
}

static const struct breakdown {
  const char *name;
  void (*script)(sup_script *);
  const char *reason;
  int alone;
} breakdowns[] = {
    {"absent", is_absent, "cannot be used", HONE_NO_DEVICE},
    {"no memory", no_memory, "out of memory", HONE_NO_MEMORY},
    {"no memory late", no_memory_late, "out of memory", HONE_NO_MEMORY},
    {"device fails", device_fails, "device failed", HONE_DEVICE_FAILED},
    {"zero pivot", zero_pivot, "exactly zero", HONE_SINGULAR},
    {"growth NaN", nan_growth, "overflow", HONE_OVERFLOW},
    {"growth Inf", inf_growth, "overflow", HONE_OVERFLOW},
    {"hopeless", hopeless, "pivots fall too fast", HONE_OVERFLOW},
    {"solve fails", no_solve, "device failed", HONE_DEVICE_FAILED}};
enum { BREAKDOWNS = sizeof breakdowns / sizeof *breakdowns };

TEST_OF(refine, climbs_past_an_engine_that_breaks_down) {
  for (int i = 0; i < BREAKDOWNS; i++) {
    fixture s;
    ct_note("%s", breakdowns[i].name);
    breakdowns[i].script(fixture_set_up_one(&s, true));
    REQUIRE(fixture_open(&s) == HONE_OK);
    CHECK_EQ_INT(fixture_factor(&s), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "scripted: ");
    CHECK_CONTAINS(s.report.reason, breakdowns[i].reason);
    CHECK_CONTAINS(s.report.path, "scripted set aside, double LU");
    CHECK_EQ_INT(s.report.bad_col, -1);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.column[0].precision, 64);
    const bool made_factors = breakdowns[i].alone == HONE_SINGULAR ||
                              breakdowns[i].alone == HONE_OVERFLOW;
    CHECK_EQ_INT(s.report.fallback_columns, made_factors);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, fails_with_the_breakdown_where_no_other_engine_follows) {
  for (int i = 0; i < BREAKDOWNS; i++) {
    fixture s;
    ct_note("%s", breakdowns[i].name);
    breakdowns[i].script(fixture_set_up_one(&s, false));
    CHECK_EQ_INT(fixture_run(&s), breakdowns[i].alone);
    CHECK_CONTAINS(s.report.reason, breakdowns[i].reason);
    CHECK(!s.ladder.factored);
    CHECK(fixture_untouched(&s));
    if (breakdowns[i].alone == HONE_SINGULAR)
      CHECK_EQ_INT(s.report.bad_col, 3);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, does_not_climb_after_a_cancelled_factorization) {
  fixture s;
  fixture_set_up_one(&s, true)->factor_status = HONE_CANCELLED;
  CHECK_EQ_INT(fixture_run(&s), HONE_CANCELLED);
  CHECK(!s.ladder.factored);
  CHECK(fixture_untouched(&s));
  CHECK(s.ladder.rung[1].self == NULL);
  s.script[0]->factor_status = HONE_OK; /* the ladder still works */
  CHECK_EQ_INT(fixture_factor(&s), HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  fixture_tear_down(&s);
}

TEST_OF(refine, goes_on_with_another_engine_when_the_device_fails_in_a_solve) {
  for (int at = 0; at < 3; at++) {
    fixture s;
    ct_note("solve %d fails", at);
    sup_script *first = fixture_set_up_one(&s, false);
    sup_script *second = fixture_add_scripted(&s, "second", 32);
    fixture_add_double(&s);
    first->rate = second->rate = 1e-4;
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    first->solve_fails_at = at;
    first->solve_status = HONE_DEVICE_FAILED;
    CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_CONTAINS(s.report.reason, "device failed");
    /* An engine of the same precision follows. */
    CHECK_EQ_INT(second->factors, 1);
    CHECK(s.ladder.rung[2].self == NULL);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, skips_an_engine_no_more_precise_than_one_that_stagnates) {
  fixture s;
  fault_stagnation(fixture_set_up_one(&s, false));
  sup_script *second = fixture_add_scripted(&s, "second", 32);
  fixture_add_double(&s);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(second->creates, 0);
  CHECK_EQ_INT(s.column[0].precision, 64);
  fixture_tear_down(&s);
}

TEST_OF(refine, keeps_its_best_x_when_double_factors_cannot_be_made) {
  fixture s;
  sup_script *first = fixture_set_up_one(&s, false);
  no_memory(fixture_add_scripted(&s, "second", 64));
  fault_divergence_later(first);
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_CONTAINS(s.report.reason, "out of memory");
  fault_nan_at_once(first); /* now there is no iterate to keep */
  first->steps = first->solves = 0;
  memcpy(s.x, s.b, sizeof *s.x * ORDER);
  CHECK_EQ_INT(fixture_solve(&s), HONE_NO_MEMORY);
  CHECK_MEM_EQ(s.x, s.b, sizeof *s.x * ORDER);
  fixture_tear_down(&s);
}

/* Neither status says anything about the matrix or the engine. */
TEST_OF(refine, tries_again_an_engine_that_was_stopped_or_short_of_memory) {
  static const int statuses[] = {HONE_CANCELLED, HONE_NO_MEMORY};
  for (int i = 0; i < 2; i++) {
    fixture s;
    ct_note("status %d", statuses[i]);
    fault_stagnation(fixture_set_up_one(&s, false));
    sup_script *second = fixture_add_scripted(&s, "second", 64);
    second->factor_status = statuses[i];
    CHECK_LT(HONE_OK, fixture_run(&s));
    second->factor_status = HONE_OK;
    CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
    fixture_check_accepted(&s);
    fixture_tear_down(&s);
  }
}

/* A certificate of A^T that was not had because a solve failed is made by the
   next solve with A^T. */
TEST_OF(refine, certifies_the_transpose_after_a_solve_that_failed) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  const hone_contraction *of_transpose =
      &s.ladder.rung[0].certificate.contraction[1];
  script->ladder = NULL; /* the solves of probes count, too */
  script->solve_status = HONE_DEVICE_FAILED;
  CHECK_EQ_INT(fixture_open(&s), HONE_OK);
  CHECK_EQ_INT(fixture_factor(&s), HONE_OK);
  for (int round = 0; round < 2; round++) {
    script->solve_fails_at = round == 0 ? 0 : -1;
    fixture_clear_report(&s);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, true, 1, s.b, s.n, s.x, s.n, NULL,
                                   0, s.column, &s.report),
                 HONE_OK);
    CHECK_EQ_INT(s.column[0].precision, round == 0 ? 64 : 32);
    CHECK_LE(s.column[0].forward_error, 1e-14);
  }
  CHECK_EQ_INT(of_transpose->power, 1);
  fixture_tear_down(&s);
}
