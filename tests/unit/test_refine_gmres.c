/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES preconditioned with factors that refinement alone does not converge
   with. */
#include "tests/unit/ladder_fixture.h"
#include "tests/unit/reference.h"

#include "tests/unit/ct.h"

#include <string.h>

TEST(refine, takes_gmres_for_the_bad_columns_only) {
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

TEST(refine, climbs_to_double_where_gmres_does_not_converge_either) {
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

TEST(refine, keeps_the_best_iterate_through_gmres) {
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

TEST(refine, tries_no_gmres_where_the_iterate_is_not_finite) {
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
TEST(refine, tries_no_gmres_for_a_column_beyond_range_beside_a_slow_one) {
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

TEST(refine, tries_no_gmres_at_small_orders_or_where_it_is_switched_off) {
  for (int steps = -1; steps <= 0; steps++) {
    fixture s;
    ct_note("steps %d", steps);
    fault_stagnation(fixture_set_up_one(&s, true));
    s.request.gmres_steps = steps;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK(s.ladder.pairs_memory[0] == NULL); /* no memory for pairs either */
    fixture_tear_down(&s);
  }
}

TEST(refine, goes_on_without_gmres_where_there_is_no_memory_for_it) {
  fixture s;
  fault_stagnation(fixture_set_up_one(&s, false));
  fixture_add_scripted(&s, "second", 64);
  s.request.gmres_steps = -1;
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  CHECK(s.ladder.pairs_memory[0] == NULL);
  s.ladder.request.gmres_steps = 10;
  s.mem.limit = s.mem.held + hone_space_entries(ORDER) * 8;
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_CONTAINS(s.report.reason, "GMRES: out of memory");
  CHECK_EQ_INT(s.report.precision, 64);
  fixture_tear_down(&s);
}

/* GMRES could solve with the factors of the first matrix, but a new
   factorization is cheaper. */
TEST(refine, factors_anew_rather_than_take_gmres_with_earlier_factors) {
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

/* The engine factors a matrix that is away by more than A is from a singular
   one. A itself is regular, with condition 1e8. */
TEST(refine, certifies_with_gmres_where_the_factors_alone_cannot) {
  for (int gmres = 0; gmres < 2; gmres++) {
    fixture s;
    sup_rng rng = {5};
    double near[ORDER * ORDER];
    ct_note("GMRES %d", gmres);
    fixture_set_up(&s, 2);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    s.a[3 + 3 * ORDER] *= 1.0 + 1e-7;
    for (int64_t i = 0; i < ORDER * ORDER; i++)
      near[i] = s.a[i] * (1.0 + 1e-6 * sup_uniform(&rng));
    fixture_add_scripted(&s, "scripted", 32)->instead = near;
    fixture_add_double(&s);
    s.request.gmres_steps = gmres ? 8 : -1;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.report.precision, gmres ? 32 : 64);
    CHECK_EQ_INT(s.ladder.rung[0].certificate.contraction[0].pairs > 0, gmres);
    CHECK_EQ_INT(s.report.gmres_steps > 0, gmres);
    if (gmres) {
      CHECK_STR(s.report.reason, "");
      CHECK(s.ladder.rung[1].self == NULL);
      const double inverse = ref_inverse_norm1(ORDER, s.a);
      const double said = (double)s.ladder.rung[0].certificate.inverse_norm;
      CHECK_LE(inverse, 10.0 * said);
      CHECK_LE(said, 5.0 * inverse);
    }
    fixture_tear_down(&s);
  }
}

/* Columns 3 and 7 of A are equal, but the engine's factors are far from
   singular in that direction. The direction in which they are nearly singular
   belongs to columns 1 and 5, where A is regular and GMRES converges. */
TEST(refine, certifies_no_matrix_whose_null_vector_the_factors_do_not_show) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    fixture s;
    sup_rng rng = {seed};
    double near[ORDER * ORDER], ones[ORDER];
    ct_note("seed %d", (int)seed);
    fixture_set_up(&s, 1);
    sup_random(&rng, ORDER, ORDER, s.a, ORDER);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    memcpy(s.a + 1 * ORDER, s.a + 5 * ORDER, ORDER * sizeof *s.a);
    memcpy(near, s.a, sizeof near);
    for (int64_t i = 0; i < ORDER; i++) {
      near[i + 3 * ORDER] *= 1.0 + 1e-4 * sup_uniform(&rng);
      near[i + 1 * ORDER] *= 1.0 + 1e-7 * sup_uniform(&rng);
      s.a[i + 1 * ORDER] *= 1.0 + 1e-9 * sup_uniform(&rng);
      ones[i] = 1.0;
    }
    sup_multiply(ORDER, s.a, ORDER, false, ones, s.b);
    fixture_add_scripted(&s, "scripted", 32)->instead = near;
    s.request.gmres_steps = 10;
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    CHECK(!s.ladder.rung[0].certificate.nonsingular);
    CHECK_LT(HONE_OK, fixture_solve(&s));
    CHECK_EQ_INT(s.report.accepted, 0);
    fixture_tear_down(&s);
  }
}

TEST(refine, takes_no_gmres_for_many_columns_and_climbs_or_fails) {
  for (int memory = 0; memory < 2; memory++) {
    fixture s;
    sup_rng rng = {5};
    double near[ORDER * ORDER];
    ct_note("second has memory: %d", memory);
    fixture_set_up(&s, MOST_COLUMNS);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    s.a[3 + 3 * ORDER] *= 1.0 + 1e-7;
    for (int64_t i = 0; i < ORDER * ORDER; i++)
      near[i] = s.a[i] * (1.0 + 1e-6 * sup_uniform(&rng));
    fixture_add_scripted(&s, "scripted", 32)->instead = near;
    sup_script *second = fixture_add_scripted(&s, "second", 64);
    if (!memory)
      second->create_status = HONE_NO_MEMORY;
    s.request.gmres_steps = 8;
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    CHECK_LE(1, s.ladder.rung[0].certificate.contraction[0].pairs);
    /* The rule allows no GMRES at this order. */
    s.ladder.request.gmres_steps = 0;
    if (!memory)
      s.ladder.copy_rung = -1;
    int st = fixture_solve(&s);
    CHECK_CONTAINS(s.report.reason, "does not pay for so many columns");
    if (memory) {
      CHECK_EQ_INT(st, HONE_OK);
      fixture_check_accepted(&s);
      CHECK_EQ_INT(s.report.precision, 64);
    } else {
      CHECK_LT(st, 0); /* at this order GMRES does not pay for one column */
      CHECK(fixture_untouched(&s));
    }
    fixture_tear_down(&s);
  }
}
