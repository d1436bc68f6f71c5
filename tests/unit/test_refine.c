/* SPDX-License-Identifier: BSD-3-Clause */
/* The refinement loop with engines that follow a script (ladder_fixture.h):
   where it converges, where it gives up, and what it accepts. An engine of rate
   e leaves the residual -e r of every r, so each correction is |e| times the
   one before it. Every x that is accepted is measured again in quadruple
   precision. These tests are compiled twice, the second time for complex
   entries.
   Next to read: test_refine_gmres.c, test_refine_engines.c. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

/* Refinement converges ----------------------------------------------------- */

TEST_OF(refine, accepts_after_as_many_corrections_as_the_rate_takes) {
  static const struct {
    double rate;
    int corrections;
  } cases[] = {{1e-17, 0}, {1e-9, 1}, {1e-6, 2},
               {-1e-6, 2}, {1e-4, 3}, {3e-3, 5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture s;
    ct_note("rate %g", cases[i].rate);
    fixture_set_up_one(&s, true)->rate = cases[i].rate;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.column[0].iterations, cases[i].corrections);
    CHECK_EQ_INT(s.column[0].precision, 32);
    CHECK_EQ_INT(s.report.iterations, cases[i].corrections);
    CHECK_EQ_INT(s.report.fallback_columns, 0);
    /* one solve for x, the corrections, and one for the error bound */
    CHECK_EQ_INT(s.script[0]->solves, cases[i].corrections + 2);
    CHECK_STR(s.report.reason, "");
    CHECK_CONTAINS(s.report.path, "scripted");
    CHECK_LE(entries_forward_error(s.n, s.x, s.x_true), 1e-14);
    CHECK_LE(s.column[0].forward_error, 1e-13);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, solves_with_the_transpose) {
  fixture s;
  fixture_set_up_one(&s, false)->rate = 1e-4;
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  fixture_clear_report(&s);
  CHECK_EQ_INT(hone_ladder_solve(&s.ladder, true, 1, s.b, s.n, s.x, s.n, NULL,
                                 0, NULL, &s.report),
               HONE_OK);
  CHECK_LE(entries_backward_error(s.n, s.a, s.n, true, s.x, s.b), SUP_LIMIT);
  CHECK_LE(1e-3, fixture_backward_error(&s, 0)); /* x does not solve with A */
  fixture_tear_down(&s);
}

TEST_OF(refine, accepts_x_by_the_callers_matrix_if_that_is_badly_scaled) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, false);
  script->rate = 1e-4;
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++)
      s.a[i + j * s.n] *= ldexp(1.0, (int)(i * 40 - j * 30));
  entries_multiply(s.n, s.a, s.n, false, s.x_true, s.b);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  CHECK(s.ladder.scaling.used);
  CHECK_LT(s.report.scale_exponent_min, s.report.scale_exponent_max);
  fixture_check_accepted(&s);
  fixture_tear_down(&s);
}

TEST_OF(refine, converges_at_a_rate_near_one_half_if_corrections_suffice) {
  fixture s;
  fixture_set_up_one(&s, false)->rate = 0.45;
  s.request.max_iterations = 100;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_LE(35, s.report.iterations);
  fixture_tear_down(&s);
}

TEST_OF(refine, makes_no_more_corrections_than_allowed) {
  for (int cap = 1; cap <= 3; cap++) {
    fixture s;
    ct_note("cap %d", cap);
    fixture_set_up_one(&s, false)->rate = 3e-4; /* would take four */
    s.request.max_iterations = cap;
    CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
    CHECK_LE(s.report.iterations, cap);
    CHECK_LE(s.script[0]->solves, cap + 1);
    CHECK_LE(fixture_backward_error(&s, 0), 1e-3);
    fixture_tear_down(&s);
  }
}

/* Refinement gives up ------------------------------------------------------ */

static void stagnate_early(sup_script *e) { e->rate = 0.6; }
static void converge_slowly(sup_script *e) { e->rate = -0.45; }
static void diverge(sup_script *e) { e->rate = 2.0; }
static void keep_the_residual(sup_script *e) { e->rate = 1.0; }
static void nan_later(sup_script *e) {
  e->rate = 1e-3, e->poison_at = 2, e->poison = (double)NAN;
}
static void cap_is_short(sup_script *e) { e->rate = 1e-6; }

/* Scripts of engines that do not converge, and the reason that the report
   gives. */
static const struct fault {
  const char *name;
  void (*script)(sup_script *);
  const char *reason;
  int cap;
  int alone; /* the status where no engine follows */
} faults[] = {
    {"rate 0.6", stagnate_early, "shrink too slowly", 0, HONE_NOT_CONVERGED},
    {"rate 0.9", fault_stagnation, "shrink too slowly", 0, HONE_NOT_CONVERGED},
    {"rate 1", keep_the_residual, "no longer shrink", 0, HONE_NOT_CONVERGED},
    {"rate 2", diverge, "no longer shrink", 0, HONE_NOT_CONVERGED},
    {"rate -0.45", converge_slowly, "too slowly to pay", 0, HONE_NOT_CONVERGED},
    {"NaN at once", fault_nan_at_once, "not finite", 0, HONE_OVERFLOW},
    {"Inf at once", fault_inf_at_once, "not finite", 0, HONE_OVERFLOW},
    {"NaN later", nan_later, "not finite", 0, HONE_NOT_CONVERGED},
    {"Inf later", fault_inf_later, "not finite", 0, HONE_NOT_CONVERGED},
    {"worse later", fault_divergence_later, "no longer shrink", 0,
     HONE_NOT_CONVERGED},
    {"cap", cap_is_short, "within the corrections allowed", 1,
     HONE_NOT_CONVERGED}};
enum { FAULTS = sizeof faults / sizeof *faults };

TEST_OF(refine,
        says_why_it_gave_up_and_returns_its_best_x_or_leaves_x_untouched) {
  for (int i = 0; i < FAULTS; i++) {
    fixture s;
    ct_note("%s", faults[i].name);
    faults[i].script(fixture_set_up_one(&s, false));
    s.request.max_iterations = faults[i].cap;
    CHECK_EQ_INT(fixture_run(&s), faults[i].alone);
    CHECK_CONTAINS(s.report.reason, faults[i].reason);
    CHECK_EQ_INT(s.report.accepted, 0);
    if (faults[i].alone < 0) {
      CHECK(fixture_untouched(&s));
    } else {
      CHECK_NEAR(fixture_backward_error(&s, 0), s.report.backward_error, 1e-12);
      CHECK_LE(SUP_LIMIT, fixture_backward_error(&s, 0));
      CHECK_EQ_INT(s.column[0].status, faults[i].alone);
    }
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, climbs_to_double_whatever_made_it_give_up) {
  for (int i = 0; i < FAULTS; i++) {
    fixture s;
    ct_note("%s", faults[i].name);
    faults[i].script(fixture_set_up_one(&s, true));
    s.request.max_iterations = faults[i].cap;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_CONTAINS(s.report.reason, faults[i].reason);
    CHECK_CONTAINS(s.report.path, "double LU");
    CHECK_EQ_INT(s.report.fallback_columns, 1);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_EQ_INT(s.column[0].precision, 64);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, spends_little_on_an_engine_that_will_not_converge) {
  for (int i = 0; i < FAULTS; i++) {
    fixture s;
    ct_note("%s", faults[i].name);
    faults[i].script(fixture_set_up_one(&s, true));
    fixture_run(&s);
    CHECK_LE(s.script[0]->solves, 5);
    fixture_tear_down(&s);
  }
}

/* After this script the third and later iterates are worse than the second. The
   callback receives every iterate that was measured. */
static void keeps_best(void (*script)(sup_script *), int corrections) {
  fixture s;
  script(fixture_set_up_one(&s, false));
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_LE(3, s.script[0]->solves);
  /* which is reported by an accurate pass */
  CHECK_NEAR(s.report.backward_error, s.smallest, 1e-6 * s.smallest);
  CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_EQ_INT(s.report.iterations, corrections);
  fixture_tear_down(&s);
}

TEST_OF(refine, returns_the_best_iterate_and_not_the_last) {
  keeps_best(fault_divergence_later, 2);
  keeps_best(nan_later, 2);
  fixture s; /* now the last iterate is only a little worse */
  sup_script *e = fixture_set_up_one(&s, false);
  fault_divergence_later(e);
  e->rate = 3.0;
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_LT(s.smallest, s.last);
  CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
  fixture_tear_down(&s);
}

TEST_OF(refine, keeps_the_single_precision_best_when_double_does_worse) {
  fixture s;
  fixture_set_up_one(&s, false)->rate = 1e-4;
  diverge(fixture_add_scripted(&s, "second", 64));
  s.request.max_iterations = 1; /* reaches 1e-8 */
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_LE(fixture_backward_error(&s, 0), 1e-8);
  CHECK_CONTAINS(s.report.reason, "second");
  fixture_tear_down(&s);
}

/* Some columns converge, some do not --------------------------------------- */

TEST_OF(refine, climbs_with_the_bad_columns_only) {
  static const double bads[] = {0.9, 2.0};
  for (int k = 0; k < 2; k++) {
    fixture s;
    double rates[ORDER];
    ct_note("rate %g", bads[k]);
    fixture_set_up_mixed(&s, rates, bads[k]);
    sup_script *second = fixture_add_scripted(&s, "second", 64);
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.report.fallback_columns, 2);
    /* The second engine did not fail. */
    CHECK(strstr(s.report.reason, "second") == NULL);
    for (int c = 0; c < 5; c++) {
      CHECK_EQ_INT(s.column[c].precision, c == 1 || c == 3 ? 64 : 32);
      if (c != 1 && c != 3)
        CHECK_EQ_INT(s.column[c].iterations, 3);
    }
    CHECK_EQ_INT(second->columns, 2 * second->solves);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, reports_each_column_by_itself_where_no_engine_follows) {
  fixture s;
  double rates[ORDER];
  fixture_set_up_mixed(&s, rates, 0.9);
  CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.report.accepted, 3);
  for (int c = 0; c < 5; c++) {
    bool bad = c == 1 || c == 3;
    CHECK_EQ_INT(s.column[c].status, bad ? HONE_NOT_CONVERGED : HONE_OK);
    CHECK(bad == !(fixture_backward_error(&s, c) <= SUP_LIMIT));
    CHECK_NEAR(fixture_backward_error(&s, c), s.column[c].backward_error,
               1e-12);
  }
  CHECK_NEAR(s.report.backward_error,
             fmax(s.column[1].backward_error, s.column[3].backward_error), 0.0);
  fixture_tear_down(&s);
}

/* The columns make three blocks, of as many as the first engine gains by. The
   ladder destroys the first factors when it
   climbs for one block; the other blocks take the second factors, which are
   made once. */
TEST_OF(refine, solves_the_columns_of_other_blocks_after_a_climb) {
  for (int way = 0; way < 4; way++) {
    fixture s;
    const bool one_shot = way & 1, wide = way & 2;
    const int64_t block = wide ? HONE_SOLVE_COLUMNS : HONE_BLOCK_COLUMNS;
    const int64_t nrhs = 2 * block + 6;
    ct_note("one_shot %d, wide %d", one_shot, wide);
    sup_script *first = fixture_set_up_one(&s, false);
    sup_script *second = fixture_add_scripted(&s, "second", 64);
    first->rate = 0.9;
    second->rate = 1e-17;
    if (wide)
      sup_scripted_widen(0);
    s.request.one_shot = one_shot;
    hone_entry *b = entries_filled(ORDER * nrhs, 0.0);
    hone_entry *x = entries_copy(b, ORDER * nrhs);
    for (int64_t c = 0; c < nrhs; c++)
      memcpy(b + c * ORDER, s.b, ORDER * sizeof *b);
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    fixture_clear_report(&s);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, nrhs, b, ORDER, x, ORDER,
                                   NULL, 0, NULL, &s.report),
                 HONE_OK);
    CHECK_EQ_INT(s.report.accepted, nrhs);
    CHECK_EQ_INT(first->columns_most, block);
    CHECK_EQ_INT(second->columns_most, block);
    CHECK_EQ_INT(second->factors, 1);
    for (int64_t c = 0; c < nrhs; c++)
      CHECK_LE(
          entries_backward_error(ORDER, s.a, ORDER, false, x + c * ORDER, s.b),
          SUP_LIMIT);
    entries_free(b);
    entries_free(x);
    fixture_tear_down(&s);
  }
}

/* Accepted x --------------------------------------------------------------- */

/* The criterion by its definition, of the x returned. */
static double criterion_of(const fixture *s, int criterion) {
  hone_entry ax[ORDER];
  double r = 0.0, b = 0.0, x = 0.0, a = 0.0;
  if (criterion == HONE_CRITERION_COMPONENTWISE)
    return fixture_backward_error(s, 0);
  entries_multiply(s->n, s->a, s->n, false, s->x, ax);
  for (int64_t i = 0; i < s->n; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < s->n; j++)
      sum += hone_abs(s->a[i + j * s->n]);
    r = fmax(r, hone_abs(s->b[i] - ax[i]));
    b = fmax(b, hone_abs(s->b[i]));
    x = fmax(x, hone_abs(s->x[i]));
    a = fmax(a, sum);
  }
  return criterion == HONE_CRITERION_NORMWISE ? r / (sqrt((double)s->n) * a * x)
                                              : r / b;
}

TEST_OF(refine, accepts_by_each_criterion_and_tolerance_as_defined) {
  static const double limits[] = {1e-2, 1e-5, 1e-8, 1e-12};
  int32_t before = 0;
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    for (int i = 0; i < 4; i++) {
      fixture s;
      ct_note("criterion %d, limit %g", criterion, limits[i]);
      fixture_set_up_one(&s, false)->rate = 0.03;
      s.request.criterion = criterion;
      s.request.limit = limits[i];
      CHECK_EQ_INT(fixture_run(&s), HONE_OK);
      double value = criterion_of(&s, criterion);
      CHECK_LE(value, limits[i]);
      CHECK_LE(1e-3 * limits[i], value); /* and not much better than asked */
      CHECK_NEAR(s.report.normwise_error,
                 criterion_of(&s, HONE_CRITERION_NORMWISE), 2.0 * SUP_EPS);
      CHECK_NEAR(s.report.backward_error, fixture_backward_error(&s, 0),
                 2.0 * SUP_EPS);
      if (i > 0)
        CHECK_LT(before, s.report.iterations);
      before = s.report.iterations;
      fixture_tear_down(&s);
    }
  }
}

TEST_OF(refine, does_not_accept_x_by_a_tolerance_below_rounding) {
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    fixture s;
    ct_note("criterion %d", criterion);
    fixture_set_up_one(&s, true)->rate = 1e-4;
    s.request.criterion = criterion;
    s.request.limit = 1e-18;
    CHECK_EQ_INT(fixture_run(&s), HONE_NOT_CONVERGED);
    /* x is as good as double precision allows. */
    CHECK_LE(fixture_backward_error(&s, 0), 1e-15);
    CHECK_LE(entries_forward_error(s.n, s.x, s.x_true), 1e-14);
    CHECK_LE(s.report.iterations, 25);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, makes_no_correction_from_an_accepted_start) {
  fixture s;
  sup_script *script = fixture_set_up_one(&s, true);
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  hone_entry *x0 = entries_copy(s.x, ORDER);
  script->solves = 0;
  CHECK_EQ_INT(fixture_solve_from(&s, x0), HONE_OK);
  CHECK_EQ_INT(script->solves, 1); /* for the error bound */
  CHECK_EQ_INT(s.report.iterations, 0);
  CHECK_MEM_EQ(s.x, x0, ORDER * sizeof *x0);
  entries_free(x0);
  fixture_tear_down(&s);
}

TEST_OF(refine, makes_fewer_corrections_from_a_near_start) {
  fixture s;
  fixture_set_up_one(&s, true)->rate = 1e-3;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  int32_t cold = s.report.iterations;
  hone_entry *x0 = entries_copy(s.x_true, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    x0[i] *= 1.0 + (i % 2 ? 1e-9 : -1e-9);
  CHECK_EQ_INT(fixture_solve_from(&s, x0), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_LT(s.report.iterations, cold);
  entries_free(x0);
  fixture_tear_down(&s);
}

TEST_OF(refine, solves_from_a_start_that_is_far) {
  static const double starts[] = {0.0, 1e8, -1e30, 1e300, 1e-310};
  for (int k = 0; k < 5; k++) {
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      fixture s;
      ct_note("x0 = %g, criterion %d", starts[k], criterion);
      fixture_set_up_one(&s, true)->rate = 1e-6;
      s.request.criterion = criterion;
      for (int64_t i = 0; i < ORDER * ORDER; i++)
        s.a[i] *= 0x1p40; /* A x0 overflows for the largest x0 */
      for (int64_t i = 0; i < ORDER; i++)
        s.b[i] *= 0x1p40;
      hone_entry *x0 = entries_filled(ORDER, starts[k]);
      REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
      CHECK_EQ_INT(fixture_solve_from(&s, x0), HONE_OK);
      /* The other criteria promise less. */
      CHECK_LE(fixture_backward_error(&s, 0), 2.0 * SUP_LIMIT);
      entries_free(x0);
      fixture_tear_down(&s);
    }
  }
}

TEST_OF(refine, gives_the_same_bits_again) {
  fixture s;
  stagnate_early(fixture_set_up_one(&s, true));
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  hone_entry *first = entries_copy(s.x, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    s.x[i] = (double)NAN; /* the earlier contents of x do not matter */
  CHECK_EQ_INT(fixture_solve(&s), HONE_OK);
  CHECK_MEM_EQ(s.x, first, ORDER * sizeof *first);
  entries_free(first);
  fixture_tear_down(&s);
}
