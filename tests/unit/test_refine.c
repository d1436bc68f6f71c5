/* SPDX-License-Identifier: BSD-3-Clause */
/* Every exit of refine.c and ladder.c, driven by engines that do as their
   script says (support.h). The rates below are contractions: an engine of
   rate e leaves the residual -e r of every r, so each correction is |e|
   times the last one. What is accepted is measured again in quadruple
   precision. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ORDER = 12, MOST_COLUMNS = 6 };

/* A ladder on a stage: matrix, right-hand sides, engines, an audience. */
typedef struct stage {
  hone_mem mem;
  hone_watch watch;
  hone_request request;
  hone_ladder ladder;
  hone_report report;
  hone_column column[MOST_COLUMNS];
  const hone_engine *engine[HONE_MAX_RUNGS];
  sup_script *script[HONE_MAX_RUNGS]; /* NULL: not a scripted engine */
  int engines;
  int64_t n, nrhs;
  double *a, *b, *x, *x_true;
  /* The audience: calls heard, and after which one it says stop. */
  int heard, stop_at;
  double smallest, last; /* backward errors told */
} stage;

static int listen(void *user, const hone_progress *event) {
  stage *s = user;
  s->heard++;
  s->last = event->backward_error;
  s->smallest = fmin(s->smallest, event->backward_error);
  return s->stop_at > 0 && s->heard >= s->stop_at;
}

/* Diagonally dominant, so that nothing but the script makes trouble. */
static void set_up(stage *s, int64_t nrhs) {
  sup_rng rng = {7};
  *s = (stage){.n = ORDER, .nrhs = nrhs, .smallest = (double)INFINITY};
  s->request = (hone_request){.criterion = HONE_CRITERION_COMPONENTWISE,
                              .limit = SUP_LIMIT};
  s->a = sup_filled(ORDER * ORDER, 0.0);
  s->b = sup_filled(ORDER * nrhs, 0.0);
  s->x = sup_filled(ORDER * nrhs, 77.0);
  s->x_true = sup_filled(ORDER * nrhs, 0.0);
  sup_random(&rng, ORDER, ORDER, s->a, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    s->a[i + i * ORDER] += 8.0;
  sup_random(&rng, ORDER, nrhs, s->x_true, ORDER);
  for (int64_t c = 0; c < nrhs; c++)
    sup_multiply(ORDER, s->a, ORDER, false, s->x_true + c * ORDER,
                 s->b + c * ORDER);
  s->watch = (hone_watch){.progress = listen, .user = s};
}

static sup_script *add_scripted(stage *s, const char *name, int precision) {
  int slot = s->engines++;
  s->engine[slot] = sup_scripted(slot, name, precision, &s->script[slot]);
  s->script[slot]->ladder = &s->ladder;
  return s->script[slot];
}

static void add_double(stage *s) {
  s->engine[s->engines++] = &hone_engine_double;
}

static int open_stage(stage *s) {
  return sup_ladder_create(&s->ladder, s->n, s->engine, s->engines, &s->request,
                           &s->mem, NULL, &s->watch);
}

static void clear_report(stage *s) {
  memset(&s->report, 0, sizeof s->report);
  s->report.bad_row = s->report.bad_col = -1;
}

static int factor(stage *s) {
  clear_report(s);
  return hone_ladder_factor(&s->ladder, sup_matrix(s->n, s->n, s->a),
                            &s->report);
}

static int solve_from(stage *s, const double *x0) {
  clear_report(s);
  return hone_ladder_solve(&s->ladder, false, s->nrhs, s->b, s->n, s->x, s->n,
                           x0, s->n, s->column, &s->report);
}

static int solve(stage *s) { return solve_from(s, NULL); }

static int open_factor_solve(stage *s) {
  int st = open_stage(s);
  if (st == HONE_OK)
    st = factor(s);
  return st == HONE_OK ? solve(s) : st;
}

/* Everything given back, every engine made also destroyed. */
static void tear_down(stage *s) {
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  for (int r = 0; r < s->engines; r++)
    if (s->script[r] != NULL && s->script[r]->create_status == HONE_OK)
      CHECK_EQ_INT(s->script[r]->creates, s->script[r]->destroys);
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
  sup_free(s->x_true);
}

static double omega(const stage *s, int64_t c) {
  return sup_backward_error(s->n, s->a, s->n, false, s->x + c * s->n,
                            s->b + c * s->n);
}

static void check_all_accepted(const stage *s) {
  CHECK_EQ_INT(s->report.accepted, s->nrhs);
  for (int64_t c = 0; c < s->nrhs; c++) {
    CHECK_EQ_INT(s->column[c].status, HONE_OK);
    CHECK_LE(omega(s, c), s->request.limit);
    CHECK_NEAR(s->column[c].backward_error, omega(s, c), 1e-3 * SUP_EPS);
  }
}

static bool untouched(const stage *s) {
  return sup_untouched(s->x, s->n * s->nrhs, 77.0);
}

/* One right-hand side, one scripted engine and, so wished, double above. */
static sup_script *set_up_one(stage *s, bool with_double) {
  set_up(s, 1);
  sup_script *script = add_scripted(s, "scripted", 32);
  if (with_double)
    add_double(s);
  return script;
}

/* Refinement converges ---------------------------------------------------- */

TEST(refine, accepts_after_as_many_corrections_as_the_rate_takes) {
  static const struct {
    double rate;
    int corrections;
  } cases[] = {{1e-17, 0}, {1e-9, 1}, {1e-6, 2},
               {-1e-6, 2}, {1e-4, 3}, {3e-3, 5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    stage s;
    ct_note("rate %g", cases[i].rate);
    set_up_one(&s, true)->rate = cases[i].rate;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(s.column[0].iterations, cases[i].corrections);
    CHECK_EQ_INT(s.column[0].precision, 32);
    CHECK_EQ_INT(s.report.iterations, cases[i].corrections);
    CHECK_EQ_INT(s.report.fallback_columns, 0);
    /* the first solution, corrections, and the error bound */
    CHECK_EQ_INT(s.script[0]->solves, cases[i].corrections + 2);
    CHECK_STR(s.report.reason, "");
    CHECK_CONTAINS(s.report.path, "scripted");
    CHECK_LE(sup_forward_error(s.n, s.x, s.x_true), 1e-14);
    CHECK_LE(s.column[0].forward_error, 1e-13);
    tear_down(&s);
  }
}

TEST(refine, solves_with_the_transpose) {
  stage s;
  set_up_one(&s, false)->rate = 1e-4;
  REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
  clear_report(&s);
  CHECK_EQ_INT(hone_ladder_solve(&s.ladder, true, 1, s.b, s.n, s.x, s.n, NULL,
                                 0, NULL, &s.report),
               HONE_OK);
  CHECK_LE(sup_backward_error(s.n, s.a, s.n, true, s.x, s.b), SUP_LIMIT);
  CHECK_LE(1e-3, omega(&s, 0)); /* and not with A */
  tear_down(&s);
}

TEST(refine, accepts_on_the_callers_matrix_when_that_is_badly_scaled) {
  stage s;
  sup_script *script = set_up_one(&s, false);
  script->rate = 1e-4;
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++)
      s.a[i + j * s.n] = ldexp(s.a[i + j * s.n], (int)(i * 40 - j * 30));
  sup_multiply(s.n, s.a, s.n, false, s.x_true, s.b);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  CHECK(s.ladder.scaling.used);
  CHECK_LT(s.report.scale_exponent_min, s.report.scale_exponent_max);
  check_all_accepted(&s);
  tear_down(&s);
}

TEST(refine, converges_at_a_rate_near_one_half_when_given_the_corrections) {
  stage s;
  set_up_one(&s, false)->rate = 0.45;
  s.request.max_iterations = 100;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_LE(35, s.report.iterations);
  tear_down(&s);
}

TEST(refine, makes_no_more_corrections_than_allowed) {
  for (int cap = 1; cap <= 3; cap++) {
    stage s;
    ct_note("cap %d", cap);
    set_up_one(&s, false)->rate = 3e-4; /* takes four */
    s.request.max_iterations = cap;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
    CHECK_LE(s.report.iterations, cap);
    CHECK_LE(s.script[0]->solves, cap + 1);
    CHECK_LE(omega(&s, 0), 1e-3);
    tear_down(&s);
  }
}

/* Refinement gives up ------------------------------------------------------ */

static void stagnate_fast(sup_script *e) { e->rate = 0.6; }
static void stagnate(sup_script *e) { e->rate = 0.9; }
static void creep(sup_script *e) { e->rate = -0.45; }
static void diverge(sup_script *e) { e->rate = 2.0; }
static void stand_still(sup_script *e) { e->rate = 1.0; }
static void nan_at_once(sup_script *e) {
  e->poison_at = 0, e->poison = (double)NAN;
}
static void inf_at_once(sup_script *e) {
  e->poison_at = 0, e->poison = (double)INFINITY;
}
static void nan_later(sup_script *e) {
  e->rate = 1e-3, e->poison_at = 2, e->poison = (double)NAN;
}
static void inf_later(sup_script *e) {
  e->rate = 1e-3, e->poison_at = 1, e->poison = -(double)INFINITY;
}
static void turn_worse(sup_script *e) {
  e->rate = 30.0, e->steps = 2, e->step_rate[0] = e->step_rate[1] = 1e-3;
}
static void cap_is_short(sup_script *e) { e->rate = 1e-6; }

/* What an engine may do wrong, and what is said about it. */
static const struct fault {
  const char *name;
  void (*script)(sup_script *);
  const char *reason;
  int cap;
  int alone; /* status where there is no other engine */
} faults[] = {
    {"rate 0.6", stagnate_fast, "shrink too slowly", 0, HONE_NOT_CONVERGED},
    {"rate 0.9", stagnate, "shrink too slowly", 0, HONE_NOT_CONVERGED},
    {"rate 1", stand_still, "no longer shrink", 0, HONE_NOT_CONVERGED},
    {"rate 2", diverge, "no longer shrink", 0, HONE_NOT_CONVERGED},
    {"rate -0.45", creep, "too slowly to pay", 0, HONE_NOT_CONVERGED},
    {"NaN at once", nan_at_once, "not finite", 0, HONE_OVERFLOW},
    {"Inf at once", inf_at_once, "not finite", 0, HONE_OVERFLOW},
    {"NaN later", nan_later, "not finite", 0, HONE_NOT_CONVERGED},
    {"Inf later", inf_later, "not finite", 0, HONE_NOT_CONVERGED},
    {"worse", turn_worse, "no longer shrink", 0, HONE_NOT_CONVERGED},
    {"cap", cap_is_short, "within the corrections allowed", 1,
     HONE_NOT_CONVERGED}};
enum { FAULTS = sizeof faults / sizeof *faults };

TEST(refine, says_why_it_gave_up_and_leaves_a_finite_best_or_x_untouched) {
  for (int i = 0; i < FAULTS; i++) {
    stage s;
    ct_note("%s", faults[i].name);
    faults[i].script(set_up_one(&s, false));
    s.request.max_iterations = faults[i].cap;
    CHECK_EQ_INT(open_factor_solve(&s), faults[i].alone);
    CHECK_CONTAINS(s.report.reason, faults[i].reason);
    CHECK_EQ_INT(s.report.accepted, 0);
    if (faults[i].alone < 0) {
      CHECK(untouched(&s));
    } else {
      CHECK_NEAR(omega(&s, 0), s.report.backward_error, 1e-12);
      CHECK_LE(SUP_LIMIT, omega(&s, 0));
      CHECK_EQ_INT(s.column[0].status, faults[i].alone);
    }
    tear_down(&s);
  }
}

TEST(refine, climbs_to_double_after_every_way_of_giving_up) {
  for (int i = 0; i < FAULTS; i++) {
    stage s;
    ct_note("%s", faults[i].name);
    faults[i].script(set_up_one(&s, true));
    s.request.max_iterations = faults[i].cap;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_CONTAINS(s.report.reason, faults[i].reason);
    CHECK_CONTAINS(s.report.path, "double LU");
    CHECK_EQ_INT(s.report.fallback_columns, 1);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_EQ_INT(s.column[0].precision, 64);
    tear_down(&s);
  }
}

TEST(refine, spends_little_on_an_engine_that_will_not_converge) {
  for (int i = 0; i < FAULTS; i++) {
    stage s;
    ct_note("%s", faults[i].name);
    faults[i].script(set_up_one(&s, true));
    open_factor_solve(&s);
    CHECK_LE(s.script[0]->solves, 5);
    tear_down(&s);
  }
}

/* After this script the third and later iterates are worse than the second;
   those told to the audience are every one that was measured. */
static void keeps_best(void (*script)(sup_script *), int corrections) {
  stage s;
  script(set_up_one(&s, false));
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_LE(3, s.script[0]->solves);
  CHECK_NEAR(s.report.backward_error, s.smallest, 0.0);
  CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_EQ_INT(s.report.iterations, corrections);
  tear_down(&s);
}

TEST(refine, returns_the_best_iterate_and_not_the_last) {
  keeps_best(turn_worse, 2);
  keeps_best(nan_later, 2);
  stage s; /* the same where the last is not so much worse */
  sup_script *e = set_up_one(&s, false);
  turn_worse(e);
  e->rate = 3.0;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_LT(s.smallest, s.last);
  CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
  tear_down(&s);
}

TEST(refine, keeps_the_single_precision_best_when_double_does_worse) {
  stage s;
  set_up_one(&s, false)->rate = 1e-4;
  diverge(add_scripted(&s, "second", 64));
  s.request.max_iterations = 1; /* 1e-8 by then */
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_LE(omega(&s, 0), 1e-8);
  CHECK_CONTAINS(s.report.reason, "second");
  tear_down(&s);
}

/* Some columns good, some bad ---------------------------------------------- */

/* A = D, so that a right-hand side's rate is that of the rows it lives in:
   columns 1 and 3 in the first half, whose rate is bad. */
static void set_up_mixed(stage *s, double *rates, double bad) {
  set_up(s, 5);
  for (int64_t j = 0; j < s->n; j++) {
    rates[j] = j < s->n / 2 ? bad : 1e-5;
    for (int64_t i = 0; i < s->n; i++)
      s->a[i + j * s->n] = i == j ? 1.0 + (double)i : 0.0;
  }
  for (int64_t c = 0; c < s->nrhs; c++)
    for (int64_t i = 0; i < s->n; i++)
      if ((i < s->n / 2) != (c == 1 || c == 3))
        s->b[i + c * s->n] = 0.0;
  add_scripted(s, "scripted", 32)->rates = rates;
}

TEST(refine, climbs_with_the_bad_columns_only) {
  static const double bads[] = {0.9, 2.0};
  for (int k = 0; k < 2; k++) {
    stage s;
    double rates[ORDER];
    ct_note("rate %g", bads[k]);
    set_up_mixed(&s, rates, bads[k]);
    sup_script *second = add_scripted(&s, "second", 64);
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(s.report.fallback_columns, 2);
    CHECK(strstr(s.report.reason, "second") == NULL); /* it did not fail */
    for (int c = 0; c < 5; c++) {
      CHECK_EQ_INT(s.column[c].precision, c == 1 || c == 3 ? 64 : 32);
      if (c != 1 && c != 3)
        CHECK_EQ_INT(s.column[c].iterations, 3);
    }
    CHECK_EQ_INT(second->columns, 2 * second->solves);
    tear_down(&s);
  }
}

TEST(refine, reports_each_column_by_itself_where_nothing_is_above) {
  stage s;
  double rates[ORDER];
  set_up_mixed(&s, rates, 0.9);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.report.accepted, 3);
  for (int c = 0; c < 5; c++) {
    bool bad = c == 1 || c == 3;
    CHECK_EQ_INT(s.column[c].status, bad ? HONE_NOT_CONVERGED : HONE_OK);
    CHECK(bad == !(omega(&s, c) <= SUP_LIMIT));
    CHECK_NEAR(omega(&s, c), s.column[c].backward_error, 1e-12);
  }
  CHECK_NEAR(s.report.backward_error,
             fmax(s.column[1].backward_error, s.column[3].backward_error), 0.0);
  tear_down(&s);
}

/* Enough columns for three blocks; the ladder gives the first factors back
   when it climbs, and the other blocks must notice; the second ones are made
   once. */
TEST(refine, solves_the_columns_of_other_blocks_after_a_climb) {
  for (int one_shot = 0; one_shot < 2; one_shot++) {
    stage s;
    const int64_t nrhs = 2 * HONE_SOLVE_COLUMNS + 6;
    ct_note("one_shot %d", one_shot);
    set_up_one(&s, false)->rate = 0.9;
    sup_script *second = add_scripted(&s, "second", 64);
    second->rate = 1e-17;
    s.request.one_shot = one_shot;
    double *b = sup_filled(ORDER * nrhs, 0.0), *x = sup_copy(b, ORDER * nrhs);
    for (int64_t c = 0; c < nrhs; c++)
      memcpy(b + c * ORDER, s.b, ORDER * sizeof *b);
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    clear_report(&s);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, nrhs, b, ORDER, x, ORDER,
                                   NULL, 0, NULL, &s.report),
                 HONE_OK);
    CHECK_EQ_INT(s.report.accepted, nrhs);
    CHECK_EQ_INT(second->factors, 1);
    for (int64_t c = 0; c < nrhs; c++)
      CHECK_LE(sup_backward_error(ORDER, s.a, ORDER, false, x + c * ORDER, s.b),
               SUP_LIMIT);
    sup_free(b);
    sup_free(x);
    tear_down(&s);
  }
}

/* GMRES with the same factors ---------------------------------------------- */

TEST(refine, mends_with_gmres_the_bad_columns_only) {
  static const double bads[] = {0.9, 2.0, -0.95};
  for (int k = 0; k < 3; k++) {
    stage s;
    double rates[ORDER];
    ct_note("rate %g", bads[k]);
    set_up_mixed(&s, rates, bads[k]);
    for (int i = 0; i < ORDER / 2; i += 2) /* and not all alike */
      rates[i] *= 0.99;
    sup_script *second = add_scripted(&s, "second", 64);
    s.request.gmres_steps = 10;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(second->creates, 0);
    CHECK_EQ_INT(s.report.fallback_columns, 0);
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_LE(1, s.report.gmres_steps);
    CHECK_LE(s.report.gmres_steps, 5);
    CHECK_CONTAINS(s.report.reason, "scripted: corrections");
    for (int c = 0; c < 5; c++) {
      CHECK_EQ_INT(s.column[c].precision, 32);
      if (c != 1 && c != 3) /* frozen since */
        CHECK_EQ_INT(s.column[c].iterations, 3);
    }
    tear_down(&s);
  }
}

TEST(refine, climbs_on_from_gmres_where_that_does_not_do_either) {
  stage s;
  double rates[ORDER];
  sup_rng rng = {3};
  set_up_one(&s, false);
  sup_script *second = add_scripted(&s, "second", 64);
  for (int i = 0; i < ORDER; i++) /* as many eigenvalues as there can be */
    rates[i] = 3.0 * sup_uniform(&rng);
  s.script[0]->rates = rates;
  s.request.gmres_steps = 5;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(second->factors, 1);
  CHECK_EQ_INT(s.column[0].precision, 64);
  CHECK_LE(1, s.report.gmres_steps);
  CHECK_LE(s.report.gmres_steps, 5);
  CHECK_CONTAINS(s.report.reason, "; GMRES: ");
  tear_down(&s);
}

TEST(refine, keeps_the_best_iterate_through_gmres) {
  stage s;
  double rates[ORDER];
  sup_rng rng = {3};
  set_up_one(&s, false);
  for (int i = 0; i < ORDER; i++)
    rates[i] = 3.0 * sup_uniform(&rng);
  s.script[0]->rates = rates;
  s.request.gmres_steps = 6;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(s.report.backward_error, s.smallest, 0.0);
  CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
  tear_down(&s);
}

TEST(refine, tries_no_gmres_where_the_iterate_is_not_finite) {
  static void (*const scripts[])(sup_script *) = {nan_at_once, inf_at_once,
                                                  inf_later};
  for (int i = 0; i < 3; i++) {
    stage s;
    ct_note("script %d", i);
    scripts[i](set_up_one(&s, true));
    s.request.gmres_steps = 10;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    CHECK(strstr(s.report.reason, "GMRES") == NULL);
    CHECK_EQ_INT(s.report.precision, 64);
    tear_down(&s);
  }
}

/* The second column's x is beyond the range of double precision. */
TEST(refine, tries_no_gmres_for_a_column_beyond_range_beside_a_slow_one) {
  stage s;
  set_up(&s, 2);
  add_scripted(&s, "scripted", 32)->rate = 0.9;
  s.request.gmres_steps = 10;
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    s.a[i] *= 0x1p-60;
  for (int64_t i = 0; i < ORDER; i++) {
    s.b[i] *= 0x1p-60;
    s.b[i + ORDER] = 1e300;
  }
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_EQ_INT(s.column[0].status, HONE_OK);
  CHECK_EQ_INT(s.column[1].status, HONE_OVERFLOW);
  CHECK_LE(1, s.report.gmres_steps);
  CHECK_EQ_INT(s.script[0]->columns - s.script[0]->solves, 1); /* the first */
  tear_down(&s);
}

TEST(refine, tries_no_gmres_at_small_orders_or_where_it_is_not_wished) {
  for (int steps = -1; steps <= 0; steps++) {
    stage s;
    ct_note("steps %d", steps);
    stagnate(set_up_one(&s, true));
    s.request.gmres_steps = steps;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK(s.ladder.pairs_memory == NULL); /* and no memory for it */
    tear_down(&s);
  }
}

TEST(refine, goes_on_without_gmres_where_there_is_no_memory_for_it) {
  stage s;
  stagnate(set_up_one(&s, false));
  add_scripted(&s, "second", 64);
  s.request.gmres_steps = 10;
  REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
  s.mem.limit = s.mem.held + hone_space_entries(ORDER) * 8;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_CONTAINS(s.report.reason, "GMRES: out of memory");
  CHECK_EQ_INT(s.report.precision, 64);
  tear_down(&s);
}

/* The factors of the first matrix serve the second by GMRES, but a new
   factorization is the better answer. */
TEST(refine, factors_anew_rather_than_mend_an_earlier_matrix) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  s.request.gmres_steps = 10;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + i * s.n] *= i % 2 ? 1.35 : 0.65;
  clear_report(&s);
  CHECK_EQ_INT(
      hone_ladder_update(&s.ladder, sup_matrix(s.n, s.n, s.a), &s.report),
      HONE_OK);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_EQ_INT(s.report.gmres_steps, 0);
  tear_down(&s);
}

/* The engine's factors are those of a matrix that is away by as much as single
   rounding; the matrix itself is regular, with condition 1e10. */
TEST(refine, certifies_with_gmres_what_the_factors_alone_cannot_tell) {
  for (int wish = 0; wish < 2; wish++) {
    stage s;
    sup_rng rng = {5};
    double near[ORDER * ORDER];
    ct_note("GMRES %d", wish);
    set_up(&s, 2);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    s.a[3 + 3 * ORDER] *= 1.0 + 1e-9;
    for (int64_t i = 0; i < ORDER * ORDER; i++)
      near[i] = s.a[i] * (1.0 + 1e-7 * sup_uniform(&rng));
    add_scripted(&s, "scripted", 32)->instead = near;
    add_double(&s);
    s.request.gmres_steps = wish ? 8 : -1;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(s.report.precision, wish ? 32 : 64);
    CHECK_EQ_INT(s.ladder.rung[0].certificate.contraction[0].pairs > 0, wish);
    CHECK_EQ_INT(s.report.gmres_steps > 0, wish);
    if (wish) {
      CHECK_STR(s.report.reason, "");
      CHECK(s.ladder.rung[1].self == NULL);
      CHECK_LE(1e9, s.ladder.rung[0].certificate.inverse_norm);
    }
    tear_down(&s);
  }
}

/* Two columns are equal, but the engine's factors are far from singular there:
   nearest to it they are where two others nearly are, which GMRES mends. */
TEST(refine, certifies_no_matrix_with_a_null_vector_that_was_not_tried) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    stage s;
    sup_rng rng = {seed};
    double near[ORDER * ORDER], ones[ORDER];
    ct_note("seed %d", (int)seed);
    set_up(&s, 1);
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
    add_scripted(&s, "scripted", 32)->instead = near;
    s.request.gmres_steps = 10;
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    CHECK(!s.ladder.rung[0].certificate.nonsingular);
    CHECK_LT(HONE_OK, solve(&s));
    CHECK_EQ_INT(s.report.accepted, 0);
    tear_down(&s);
  }
}

TEST(refine, gives_up_on_gmres_for_many_columns_but_not_on_an_answer) {
  for (int memory = 0; memory < 2; memory++) {
    stage s;
    sup_rng rng = {5};
    double near[ORDER * ORDER];
    ct_note("second has memory: %d", memory);
    set_up(&s, MOST_COLUMNS);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    s.a[3 + 3 * ORDER] *= 1.0 + 1e-9;
    for (int64_t i = 0; i < ORDER * ORDER; i++)
      near[i] = s.a[i] * (1.0 + 1e-7 * sup_uniform(&rng));
    add_scripted(&s, "scripted", 32)->instead = near;
    sup_script *second = add_scripted(&s, "second", 64);
    if (!memory)
      second->create_status = HONE_NO_MEMORY;
    s.request.gmres_steps = 8;
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    CHECK_LE(1, s.ladder.rung[0].certificate.contraction[0].pairs);
    s.ladder.request.gmres_steps = 0; /* by the rule: none at this order */
    if (!memory)
      s.ladder.copy_rung = -1;
    int st = solve(&s);
    CHECK_CONTAINS(s.report.reason, "does not pay for so many columns");
    if (memory) {
      CHECK_EQ_INT(st, HONE_OK);
      check_all_accepted(&s);
      CHECK_EQ_INT(s.report.precision, 64);
    } else {
      CHECK_LT(st, 0); /* at this order not even one column pays */
      CHECK(untouched(&s));
    }
    tear_down(&s);
  }
}

/* The same engine, more precisely -------------------------------------------*/

static int same_engine_twice(stage *s, double coarse, double accurate) {
  sup_script *script = set_up_one(s, false);
  s->engine[s->engines++] = s->engine[0];
  add_double(s);
  script->coarse_rate = coarse;
  script->rate = accurate;
  s->request.gmres_steps = -1;
  s->request.choices.arithmetic = HONE_ARITHMETIC_FP16;
  return open_factor_solve(s);
}

TEST(refine, factors_more_precisely_before_it_factors_in_double) {
  stage s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.9, 1e-5), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_EQ_INT(s.script[0]->arithmetic, HONE_ARITHMETIC_AUTO);
  CHECK_EQ_INT(s.script[0]->alive_most, 1); /* the coarse one made room */
  CHECK_EQ_INT(s.column[0].precision, 32);
  CHECK_EQ_INT(s.report.fallback_columns, 1);
  CHECK_CONTAINS(s.report.path, "scripted, scripted");
  CHECK(s.ladder.rung[2].self == NULL);
  CHECK_EQ_INT(factor(&s), HONE_OK); /* and coarse again at the beginning */
  CHECK_EQ_INT(s.script[0]->arithmetic, HONE_ARITHMETIC_FP16);
  CHECK_EQ_INT(s.script[0]->alive_most, 1);
  tear_down(&s);
}

TEST(refine, starts_the_more_precise_rung_from_what_the_coarse_one_found) {
  stage s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.02, 1e-5), HONE_OK);
  const int32_t alone = s.report.iterations;
  CHECK_EQ_INT(s.script[0]->factors, 1); /* it did */
  tear_down(&s);
  set_up_one(&s, false);
  s.engine[s.engines++] = s.engine[0];
  add_double(&s);
  s.script[0]->coarse_rate = 0.02;
  s.script[0]->rate = 1e-5;
  s.request.gmres_steps = -1;
  s.request.choices.arithmetic = HONE_ARITHMETIC_TF32;
  s.request.max_iterations = alone - 3; /* 1e-11 by then */
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_LE(s.report.iterations, alone - 1);
  tear_down(&s);
}

TEST(refine, mends_coarse_factors_before_it_makes_others) {
  stage s;
  set_up_one(&s, false)->coarse_rate = 0.9;
  s.engine[s.engines++] = s.engine[0];
  add_double(&s);
  s.request.choices.arithmetic = HONE_ARITHMETIC_BF16X3;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 1);
  CHECK_LE(1, s.report.gmres_steps);
  tear_down(&s);
}

TEST(refine, goes_on_to_double_where_no_single_precision_does) {
  stage s;
  CHECK_EQ_INT(same_engine_twice(&s, 0.9, 0.95), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(s.script[0]->factors, 2);
  CHECK_EQ_INT(s.column[0].precision, 64);
  tear_down(&s);
}

TEST(refine, does_not_ask_an_engine_again_that_could_not_be_had) {
  stage s;
  sup_script *script = set_up_one(&s, false);
  s.engine[s.engines++] = s.engine[0];
  add_double(&s);
  s.request.choices.arithmetic = HONE_ARITHMETIC_BF16;
  script->create_status = HONE_DEVICE_FAILED;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(script->creates, 1);
  CHECK_EQ_INT(s.column[0].precision, 64);
  tear_down(&s);
}

/* Engines that cannot be had ----------------------------------------------- */

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
  e->ladder = NULL; /* the estimate's solves too */
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

TEST(refine, climbs_past_an_engine_that_breaks_down) {
  for (int i = 0; i < BREAKDOWNS; i++) {
    stage s;
    ct_note("%s", breakdowns[i].name);
    breakdowns[i].script(set_up_one(&s, true));
    REQUIRE(open_stage(&s) == HONE_OK);
    CHECK_EQ_INT(factor(&s), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "scripted: ");
    CHECK_CONTAINS(s.report.reason, breakdowns[i].reason);
    CHECK_CONTAINS(s.report.path, "scripted set aside, double LU");
    CHECK_EQ_INT(s.report.bad_col, -1);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_EQ_INT(s.column[0].precision, 64);
    CHECK_EQ_INT(s.report.fallback_columns, 0);
    tear_down(&s);
  }
}

TEST(refine, fails_with_the_breakdown_where_nothing_is_above) {
  for (int i = 0; i < BREAKDOWNS; i++) {
    stage s;
    ct_note("%s", breakdowns[i].name);
    breakdowns[i].script(set_up_one(&s, false));
    CHECK_EQ_INT(open_factor_solve(&s), breakdowns[i].alone);
    CHECK_CONTAINS(s.report.reason, breakdowns[i].reason);
    CHECK(!s.ladder.factored);
    CHECK(untouched(&s));
    if (breakdowns[i].alone == HONE_SINGULAR)
      CHECK_EQ_INT(s.report.bad_col, 3);
    tear_down(&s);
  }
}

TEST(refine, does_not_climb_after_a_cancelled_factorization) {
  stage s;
  set_up_one(&s, true)->factor_status = HONE_CANCELLED;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_CANCELLED);
  CHECK(!s.ladder.factored);
  CHECK(untouched(&s));
  CHECK(s.ladder.rung[1].self == NULL);
  s.script[0]->factor_status = HONE_OK; /* and the ladder is as good as new */
  CHECK_EQ_INT(factor(&s), HONE_OK);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  tear_down(&s);
}

TEST(refine, goes_on_elsewhere_when_the_device_fails_during_the_solve) {
  for (int at = 0; at < 3; at++) {
    stage s;
    ct_note("solve %d fails", at);
    sup_script *first = set_up_one(&s, false);
    sup_script *second = add_scripted(&s, "second", 32);
    add_double(&s);
    first->rate = second->rate = 1e-4;
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    first->solve_fails_at = at;
    first->solve_status = HONE_DEVICE_FAILED;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_all_accepted(&s);
    CHECK_CONTAINS(s.report.reason, "device failed");
    CHECK_EQ_INT(second->factors, 1); /* the same precision, elsewhere */
    CHECK(s.ladder.rung[2].self == NULL);
    tear_down(&s);
  }
}

TEST(refine, passes_over_an_engine_no_more_precise_than_one_that_stagnates) {
  stage s;
  stagnate(set_up_one(&s, false));
  sup_script *second = add_scripted(&s, "second", 32);
  add_double(&s);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(second->creates, 0);
  CHECK_EQ_INT(s.column[0].precision, 64);
  tear_down(&s);
}

TEST(refine, keeps_what_it_has_when_the_double_factors_cannot_be_had) {
  stage s;
  sup_script *first = set_up_one(&s, false);
  no_memory(add_scripted(&s, "second", 64));
  turn_worse(first);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
  CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
  CHECK_CONTAINS(s.report.reason, "out of memory");
  nan_at_once(first); /* and with nothing to keep */
  first->steps = first->solves = 0;
  memcpy(s.x, s.b, sizeof *s.x * ORDER);
  CHECK_EQ_INT(solve(&s), HONE_NO_MEMORY);
  CHECK_MEM_EQ(s.x, s.b, sizeof *s.x * ORDER);
  tear_down(&s);
}

/* Neither says anything about the matrix or the engine. */
TEST(refine, tries_again_an_engine_that_was_stopped_or_short_of_memory) {
  static const int statuses[] = {HONE_CANCELLED, HONE_NO_MEMORY};
  for (int i = 0; i < 2; i++) {
    stage s;
    ct_note("status %d", statuses[i]);
    stagnate(set_up_one(&s, false));
    sup_script *second = add_scripted(&s, "second", 64);
    second->factor_status = statuses[i];
    CHECK_LT(HONE_OK, open_factor_solve(&s));
    second->factor_status = HONE_OK;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_all_accepted(&s);
    tear_down(&s);
  }
}

/* Told to stop ------------------------------------------------------------- */

TEST(refine, stops_before_there_is_any_x_and_leaves_x_untouched) {
  stage s;
  set_up_one(&s, true);
  REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
  s.watch.stopped = true;
  CHECK_EQ_INT(solve(&s), HONE_CANCELLED);
  CHECK(untouched(&s));
  CHECK_EQ_INT(s.report.accepted, 0);
  CHECK_EQ_INT(s.script[0]->solves, 0);
  tear_down(&s);
}

TEST(refine, stops_with_the_best_x_so_far) {
  for (int stop = 1; stop <= 3; stop++) {
    stage s;
    ct_note("stop at event %d", stop);
    set_up_one(&s, true)->rate = 1e-3;
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    s.heard = 0;
    s.stop_at = stop;
    CHECK_EQ_INT(solve(&s), HONE_INTERRUPTED);
    CHECK_EQ_INT(s.heard, stop);
    CHECK_EQ_INT(s.column[0].status, HONE_INTERRUPTED);
    CHECK_EQ_INT(s.column[0].iterations, stop - 1);
    CHECK_NEAR(omega(&s, 0), s.smallest, 1e-6 * s.smallest);
    CHECK_LE(omega(&s, 0), pow(1e-3, stop));
    CHECK(s.ladder.rung[1].self == NULL);
    tear_down(&s);
  }
}

TEST(refine, stops_at_a_deadline_that_has_passed_with_what_it_has) {
  stage s;
  set_up_one(&s, true)->rate = 1e-3;
  REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
  s.watch.progress = NULL;
  s.watch.deadline_s = hone_now_s() - 1.0;
  CHECK_EQ_INT(solve(&s), HONE_INTERRUPTED);
  CHECK_LE(omega(&s, 0), 1e-3);
  CHECK_LE(SUP_LIMIT, omega(&s, 0));
  tear_down(&s);
}

TEST(refine, returns_accepted_columns_as_accepted_when_stopped) {
  stage s;
  double rates[ORDER];
  set_up_mixed(&s, rates, 0.4);
  for (int i = ORDER / 2; i < ORDER; i++)
    rates[i] = 0.0; /* these are done at once */
  s.request.max_iterations = 100;
  REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
  s.stop_at = s.heard + 4;
  CHECK_EQ_INT(solve(&s), HONE_INTERRUPTED);
  CHECK_EQ_INT(s.report.accepted, 3);
  for (int c = 0; c < 5; c++) {
    bool bad = c == 1 || c == 3;
    CHECK_EQ_INT(s.column[c].status, bad ? HONE_INTERRUPTED : HONE_OK);
    CHECK_LE(omega(&s, c), bad ? 0.1 : SUP_LIMIT);
  }
  tear_down(&s);
}

/* A nearby matrix
 * ------------------------------------------------------------*/

static int update(stage *s) {
  clear_report(s);
  return hone_ladder_update(&s->ladder, sup_matrix(s->n, s->n, s->a),
                            &s->report);
}

static void disturb(stage *s, double by) {
  sup_rng rng = {99};
  for (int64_t i = 0; i < s->n * s->n; i++)
    s->a[i] *= 1.0 + by * sup_uniform(&rng);
}

TEST(refine, keeps_the_factors_for_a_nearby_matrix) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  disturb(&s, 1e-5);
  CHECK_LE(1e-8, omega(&s, 0)); /* the old x no longer does */
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_LE(1, s.report.iterations);
  CHECK_EQ_INT(script->factors, 1);
  CHECK(s.ladder.rung[1].self == NULL);
  CHECK_CONTAINS(s.report.path, "of an earlier matrix");
  CHECK_STR(s.report.reason, "");
  tear_down(&s);
}

TEST(refine, factors_a_matrix_that_is_not_so_near_after_all) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + i * s.n] *= i % 2 ? 1.35 : 0.65;
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_CONTAINS(s.report.reason, "factors of an earlier matrix");
  CHECK_EQ_INT(s.column[0].precision, 32);
  CHECK_EQ_INT(solve(&s), HONE_OK); /* with factors that fit */
  CHECK_STR(s.report.reason, "");
  tear_down(&s);
}

TEST(refine, factors_at_once_a_matrix_that_is_nothing_like_the_last) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  for (int64_t i = 0; i < s.n * s.n; i++)
    s.a[i] = -s.a[i];
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(script->factors, 2);
  CHECK_CONTAINS(s.report.reason, "earlier matrix");
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  tear_down(&s);
}

TEST(refine, sees_that_an_update_brought_a_singular_or_broken_matrix) {
  stage s;
  set_up_one(&s, true);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  double *good = sup_copy(s.a, ORDER * ORDER);
  memcpy(s.a, s.a + ORDER, ORDER * sizeof *s.a); /* two equal columns */
  int st = update(&s);
  CHECK(st != HONE_OK || solve(&s) != HONE_OK);
  memset(s.a, 0, ORDER * sizeof *s.a);
  CHECK_EQ_INT(update(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_col, 0);
  s.a[5] = (double)NAN;
  CHECK_EQ_INT(update(&s), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(s.report.bad_row, 5);
  CHECK(!s.ladder.factored);
  memcpy(s.a, good, ORDER * ORDER * sizeof *good);
  CHECK_EQ_INT(update(&s), HONE_OK); /* nothing of that stays behind */
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  sup_free(good);
  tear_down(&s);
}

TEST(refine, factors_when_there_is_nothing_to_update) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  REQUIRE(open_stage(&s) == HONE_OK);
  CHECK_EQ_INT(update(&s), HONE_OK);
  CHECK_EQ_INT(script->factors, 1);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_all_accepted(&s);
  tear_down(&s);
}

/* Singular matrices -------------------------------------------------------- */

/* Two equal columns, and an engine that does not see it: it factors a
   matrix that is away by as much as rounding would bring. b = A ones, so
   that every residual can be made small. */
static void set_up_singular(stage *s, double *near, double away) {
  sup_rng rng = {5};
  double ones[ORDER];
  set_up(s, 1);
  memcpy(s->a + 3 * ORDER, s->a + 7 * ORDER, ORDER * sizeof *s->a);
  for (int64_t i = 0; i < ORDER; i++)
    ones[i] = 1.0;
  sup_multiply(ORDER, s->a, ORDER, false, ones, s->b);
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    near[i] = s->a[i] * (1.0 + away * sup_uniform(&rng));
}

TEST(refine, never_accepts_with_factors_that_miss_a_singular_matrix) {
  static const double aways[] = {1e-4, 1e-7, 1e-10, 1e-15};
  static const int criteria[] = {HONE_CRITERION_COMPONENTWISE,
                                 HONE_CRITERION_NORMWISE,
                                 HONE_CRITERION_RESIDUAL};
  for (int k = 0; k < 12; k++) {
    stage s;
    double near[ORDER * ORDER];
    ct_note("away %g, criterion %d", aways[k / 3], criteria[k % 3]);
    set_up_singular(&s, near, aways[k / 3]);
    add_scripted(&s, "scripted", 32)->instead = near;
    add_scripted(&s, "second", 64)->instead = near;
    s.request.criterion = criteria[k % 3];
    s.request.limit = 1e-10;
    REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
    CHECK_CONTAINS(s.report.reason, "scripted: these factors cannot tell");
    CHECK_CONTAINS(s.report.reason, "second: these factors cannot tell");
    CHECK_EQ_INT(solve(&s), HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(s.report.accepted, 0);
    CHECK_EQ_INT(s.column[0].status, HONE_ILL_CONDITIONED);
    CHECK_LE(DBL_MAX, s.column[0].forward_error); /* no digit is certain */
    CHECK_CONTAINS(s.report.path, "scripted set aside, second");
    CHECK(isfinite(omega(&s, 0)));
    tear_down(&s);
  }
}

TEST(refine, climbs_when_single_factors_cannot_tell_but_double_ones_can) {
  stage s;
  double near[ORDER * ORDER];
  set_up_singular(&s, near, 1e-7);
  s.a[3 + 3 * ORDER] *= 1.0 + 1e-9; /* regular, condition about 1e10 */
  double ones[ORDER];
  for (int64_t i = 0; i < ORDER; i++)
    ones[i] = 1.0;
  sup_multiply(ORDER, s.a, ORDER, false, ones, s.b);
  add_scripted(&s, "scripted", 32)->instead = near;
  add_double(&s);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  check_all_accepted(&s);
  CHECK_EQ_INT(s.column[0].precision, 64);
  CHECK_LE(sup_forward_error(ORDER, s.x, ones), s.column[0].forward_error);
  CHECK_LE(s.column[0].forward_error, 1e-2);
  tear_down(&s);
}

TEST(refine, finds_zero_rows_and_columns_before_any_engine_is_made) {
  for (int row = 0; row < 2; row++) {
    stage s;
    sup_script *script = set_up_one(&s, true);
    for (int64_t i = 0; i < ORDER; i++)
      s.a[row ? 4 + i * ORDER : i + 4 * ORDER] = 0.0;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_SINGULAR);
    CHECK_EQ_INT(s.report.bad_row, row ? 4 : -1);
    CHECK_EQ_INT(s.report.bad_col, row ? -1 : 4);
    CHECK_EQ_INT(script->creates, 0);
    CHECK(untouched(&s));
    tear_down(&s);
  }
}

/* What is accepted ----------------------------------------------------------*/

/* The two other criteria, by definition, of the x returned. */
static double criterion_of(const stage *s, int criterion) {
  double ax[ORDER], r = 0.0, b = 0.0, x = 0.0, a = 0.0;
  if (criterion == HONE_CRITERION_COMPONENTWISE)
    return omega(s, 0);
  sup_multiply(s->n, s->a, s->n, false, s->x, ax);
  for (int64_t i = 0; i < s->n; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < s->n; j++)
      sum += fabs(s->a[i + j * s->n]);
    r = fmax(r, fabs(s->b[i] - ax[i]));
    b = fmax(b, fabs(s->b[i]));
    x = fmax(x, fabs(s->x[i]));
    a = fmax(a, sum);
  }
  return criterion == HONE_CRITERION_NORMWISE ? r / (sqrt((double)s->n) * a * x)
                                              : r / b;
}

TEST(refine, accepts_by_each_criterion_and_tolerance_as_defined) {
  static const double limits[] = {1e-2, 1e-5, 1e-8, 1e-12};
  int32_t before = 0;
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    for (int i = 0; i < 4; i++) {
      stage s;
      ct_note("criterion %d, limit %g", criterion, limits[i]);
      set_up_one(&s, false)->rate = 0.03;
      s.request.criterion = criterion;
      s.request.limit = limits[i];
      CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
      double value = criterion_of(&s, criterion);
      CHECK_LE(value, limits[i]);
      CHECK_LE(1e-3 * limits[i], value); /* and no better than was asked */
      CHECK_NEAR(s.report.normwise_error,
                 criterion_of(&s, HONE_CRITERION_NORMWISE), 2.0 * SUP_EPS);
      CHECK_NEAR(s.report.backward_error, omega(&s, 0), 2.0 * SUP_EPS);
      if (i > 0)
        CHECK_LT(before, s.report.iterations);
      before = s.report.iterations;
      tear_down(&s);
    }
  }
}

TEST(refine, does_not_promise_what_double_precision_cannot_give) {
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    stage s;
    ct_note("criterion %d", criterion);
    set_up_one(&s, true)->rate = 1e-4;
    s.request.criterion = criterion;
    s.request.limit = 1e-18;
    CHECK_EQ_INT(open_factor_solve(&s), HONE_NOT_CONVERGED);
    CHECK_LE(omega(&s, 0), 1e-15); /* but the x is as good as can be */
    CHECK_LE(sup_forward_error(s.n, s.x, s.x_true), 1e-14);
    CHECK_LE(s.report.iterations, 25);
    tear_down(&s);
  }
}

TEST(refine, corrects_nothing_from_a_start_that_is_good_already) {
  stage s;
  sup_script *script = set_up_one(&s, true);
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  double *x0 = sup_copy(s.x, ORDER);
  script->solves = 0;
  CHECK_EQ_INT(solve_from(&s, x0), HONE_OK);
  CHECK_EQ_INT(script->solves, 1); /* for the error bound */
  CHECK_EQ_INT(s.report.iterations, 0);
  CHECK_MEM_EQ(s.x, x0, ORDER * sizeof *x0);
  sup_free(x0);
  tear_down(&s);
}

TEST(refine, saves_corrections_from_a_start_that_is_near) {
  stage s;
  set_up_one(&s, true)->rate = 1e-3;
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  int32_t cold = s.report.iterations;
  double *x0 = sup_copy(s.x_true, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    x0[i] *= 1.0 + (i % 2 ? 1e-9 : -1e-9);
  CHECK_EQ_INT(solve_from(&s, x0), HONE_OK);
  check_all_accepted(&s);
  CHECK_LT(s.report.iterations, cold);
  sup_free(x0);
  tear_down(&s);
}

TEST(refine, is_not_led_astray_by_a_start_that_is_far) {
  static const double starts[] = {0.0, 1e8, -1e30, 1e300, 1e-310};
  for (int k = 0; k < 5; k++) {
    for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
      stage s;
      ct_note("x0 = %g, criterion %d", starts[k], criterion);
      set_up_one(&s, true)->rate = 1e-6;
      s.request.criterion = criterion;
      for (int64_t i = 0; i < ORDER * ORDER; i++)
        s.a[i] *= 0x1p40; /* A x0 overflows for the largest */
      for (int64_t i = 0; i < ORDER; i++)
        s.b[i] *= 0x1p40;
      double *x0 = sup_filled(ORDER, starts[k]);
      REQUIRE(open_stage(&s) == HONE_OK && factor(&s) == HONE_OK);
      CHECK_EQ_INT(solve_from(&s, x0), HONE_OK);
      CHECK_LE(omega(&s, 0), 2.0 * SUP_LIMIT); /* others promise less */
      sup_free(x0);
      tear_down(&s);
    }
  }
}

TEST(refine, gives_the_same_bits_again) {
  stage s;
  stagnate_fast(set_up_one(&s, true));
  CHECK_EQ_INT(open_factor_solve(&s), HONE_OK);
  double *first = sup_copy(s.x, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    s.x[i] = (double)NAN; /* what x held before does not matter */
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_MEM_EQ(s.x, first, ORDER * sizeof *first);
  sup_free(first);
  tear_down(&s);
}
