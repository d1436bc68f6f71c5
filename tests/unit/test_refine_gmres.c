/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES preconditioned with factors that refinement alone does not converge
   with. For real and for complex entries. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <stdlib.h>
#include <string.h>

TEST_OF(refine, takes_gmres_for_the_bad_columns_only) {
  static const double bads[] = {0.9, 2.0, -0.95};
  for (int k = 0; k < 3; k++) {
    fixture s;
    double rates[ORDER];
    ct_note("rate %g", bads[k]);
    fixture_set_up_mixed(&s, rates, bads[k]);
    for (int i = 0; i < ORDER / 2; i += 2) /* not all rates alike */
      rates[i] *= 0.99;
    sup_script *second = fixture_add_scripted(&s, "second", 64);
    s.request.gmres_steps = 10;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(second->creates, 0);
    CHECK_EQ_INT(s.report.fallback_columns, 0);
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_LE(1, s.report.gmres_steps);
    CHECK_LE(s.report.gmres_steps, 5);
    CHECK_CONTAINS(s.report.reason, "scripted: corrections");
    for (int c = 0; c < 5; c++) {
      CHECK_EQ_INT(s.column[c].precision, 32);
      if (c != 1 && c != 3) /* accepted before GMRES */
        CHECK_EQ_INT(s.column[c].iterations, 3);
    }
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, climbs_to_double_where_gmres_does_not_converge_either) {
  fixture s;
  double rates[ORDER];
  sup_rng rng = {3};
  fixture_set_up_one(&s, false);
  sup_script *second = fixture_add_scripted(&s, "second", 64);
  for (int i = 0; i < ORDER; i++) /* as many distinct eigenvalues as possible */
    rates[i] = 3.0 * sup_uniform(&rng);
  s.script[0]->rates = rates;
  s.request.gmres_steps = 5;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(second->factors, 1);
  CHECK_EQ_INT(s.column[0].precision, 64);
  CHECK_LE(1, s.report.gmres_steps);
  CHECK_LE(s.report.gmres_steps, 5);
  CHECK_CONTAINS(s.report.reason, "; GMRES: ");
  fixture_tear_down(&s);
}

TEST_OF(refine, keeps_the_best_iterate_through_gmres) {
  fixture s;
  double rates[ORDER];
  sup_rng rng = {3};
  fixture_set_up_one(&s, false);
  for (int i = 0; i < ORDER; i++)
    rates[i] = 3.0 * sup_uniform(&rng);
  s.script[0]->rates = rates;
  s.request.gmres_steps = 6;
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(s.report.backward_error, s.smallest, 0.0);
  CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
  fixture_tear_down(&s);
}

TEST_OF(refine, tries_no_gmres_where_the_iterate_is_not_finite) {
  static void (*const scripts[])(sup_script *) = {
      fault_nan_at_once, fault_inf_at_once, fault_inf_later};
  for (int i = 0; i < 3; i++) {
    fixture s;
    ct_note("script %d", i);
    scripts[i](fixture_set_up_one(&s, true));
    s.request.gmres_steps = 10;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    CHECK(strstr(s.report.reason, "GMRES") == NULL);
    CHECK_EQ_INT(s.report.precision, 64);
    fixture_tear_down(&s);
  }
}

/* The second column's x is beyond the range of double precision. */
TEST_OF(refine, tries_no_gmres_for_a_column_beyond_range_beside_a_slow_one) {
  fixture s;
  fixture_set_up(&s, 2);
  fixture_add_scripted(&s, "scripted", 32)->rate = 0.9;
  s.request.gmres_steps = 10;
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    s.a[i] *= 0x1p-60;
  for (int64_t i = 0; i < ORDER; i++) {
    s.b[i] *= 0x1p-60;
    s.b[i + ORDER] = 1e300;
  }
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.column[0].status, HONE_OK);
  CHECK_EQ_INT(s.column[1].status, HONE_OVERFLOW);
  CHECK_LE(1, s.report.gmres_steps);
  /* GMRES solved for the first column only. */
  CHECK_EQ_INT(s.script[0]->columns - s.script[0]->solves, 1);
  fixture_tear_down(&s);
}

TEST_OF(refine, tries_no_gmres_at_small_orders_or_where_it_is_switched_off) {
  for (int steps = -1; steps <= 0; steps++) {
    fixture s;
    ct_note("steps %d", steps);
    fault_stagnation(fixture_set_up_one(&s, true));
    s.request.gmres_steps = steps;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK(s.ladder.pairs_memory == NULL); /* no memory for pairs either */
    fixture_tear_down(&s);
  }
}

/* An allocator that has no room for the pairs of GMRES. */
static void *refuse_pairs(size_t bytes, void *ctx) {
  (void)ctx;
  return (int64_t)(bytes / sizeof(hone_entry)) >= hone_space_entries(ORDER)
             ? NULL
             : malloc(bytes);
}

static void release(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

TEST_OF(refine, goes_on_without_gmres_where_there_is_no_memory_for_it) {
  fixture s;
  fault_stagnation(fixture_set_up_one(&s, false));
  fixture_add_scripted(&s, "second", 64);
  s.request.gmres_steps = 10;
  REQUIRE(fixture_open(&s) == HONE_OK);
  s.mem.alloc = refuse_pairs;
  s.mem.free = release;
  REQUIRE(fixture_factor(&s) == HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_CONTAINS(s.report.reason, "GMRES: out of memory");
  CHECK_EQ_INT(s.report.precision, 64);
  fixture_tear_down(&s);
}

/* GMRES could solve with the factors of the first matrix, but a new
   factorization is cheaper. */
TEST_OF(refine, factors_anew_rather_than_take_gmres_with_earlier_factors) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  s.request.gmres_steps = 10;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + i * s.n] *= i % 2 ? 1.35 : 0.65;
  fixture_clear_report(&s);
  CHECK_EQ_INT(
      hone_ladder_update(&s.ladder, sup_matrix(s.n, s.n, s.a), &s.report),
      HONE_OK);
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_EQ_INT(s.report.gmres_steps, 0);
  fixture_tear_down(&s);
}
