/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

static int listen(void *user, const hone_progress *event) {
  fixture *s = user;
  s->heard++;
  s->last = event->backward_error;
  s->smallest = fmin(s->smallest, event->backward_error);
  return s->stop_at > 0 && s->heard >= s->stop_at;
}

void fixture_set_up(fixture *s, int64_t nrhs) {
  sup_rng rng = {7};
  *s = (fixture){.n = ORDER, .nrhs = nrhs, .smallest = (double)INFINITY};
  s->request = (hone_request){.criterion = HONE_CRITERION_COMPONENTWISE,
                              .limit = SUP_LIMIT};
  s->a = entries_filled(ORDER * ORDER, 0.0);
  s->b = entries_filled(ORDER * nrhs, 0.0);
  s->x = entries_filled(ORDER * nrhs, 77.0);
  s->x_true = entries_filled(ORDER * nrhs, 0.0);
  entries_random(&rng, ORDER, ORDER, s->a, ORDER);
  for (int64_t i = 0; i < ORDER; i++)
    s->a[i + i * ORDER] += 8.0;
  entries_random(&rng, ORDER, nrhs, s->x_true, ORDER);
  for (int64_t c = 0; c < nrhs; c++)
    entries_multiply(ORDER, s->a, ORDER, false, s->x_true + c * ORDER,
                     s->b + c * ORDER);
  s->watch = (hone_watch){.progress = listen, .user = s};
}

sup_script *fixture_add_scripted(fixture *s, const char *name, int precision) {
  int slot = s->engines++;
  s->engine[slot] = sup_scripted(slot, name, precision, &s->script[slot]);
  s->script[slot]->ladder = &s->ladder;
  return s->script[slot];
}

void fixture_add_double(fixture *s) {
  s->engine[s->engines++] = &hone_engine_double;
}

int fixture_open(fixture *s) {
  return sup_ladder_create(&s->ladder, s->n, s->engine, s->engines, &s->request,
                           &s->mem, NULL, &s->watch);
}

void fixture_clear_report(fixture *s) {
  memset(&s->report, 0, sizeof s->report);
  s->report.bad_row = s->report.bad_col = -1;
}

int fixture_factor(fixture *s) {
  fixture_clear_report(s);
  return hone_ladder_factor(&s->ladder, sup_matrix(s->n, s->n, s->a),
                            &s->report);
}

int fixture_solve_from(fixture *s, const hone_entry *x0) {
  fixture_clear_report(s);
  return hone_ladder_solve(&s->ladder, false, s->nrhs, s->b, s->n, s->x, s->n,
                           x0, s->n, s->column, &s->report);
}

int fixture_solve(fixture *s) { return fixture_solve_from(s, NULL); }

int fixture_run(fixture *s) {
  int st = fixture_open(s);
  if (st == HONE_OK)
    st = fixture_factor(s);
  return st == HONE_OK ? fixture_solve(s) : st;
}

void fixture_tear_down(fixture *s) {
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  for (int r = 0; r < s->engines; r++)
    if (s->script[r] != NULL && s->script[r]->create_status == HONE_OK)
      CHECK_EQ_INT(s->script[r]->creates, s->script[r]->destroys);
  entries_free(s->a);
  entries_free(s->b);
  entries_free(s->x);
  entries_free(s->x_true);
}

double fixture_backward_error(const fixture *s, int64_t c) {
  return entries_backward_error(s->n, s->a, s->n, false, s->x + c * s->n,
                                s->b + c * s->n);
}

void fixture_check_accepted(const fixture *s) {
  CHECK_EQ_INT(s->report.accepted, s->nrhs);
  for (int64_t c = 0; c < s->nrhs; c++) {
    CHECK_EQ_INT(s->column[c].status, HONE_OK);
    CHECK_LE(fixture_backward_error(s, c), s->request.limit);
    CHECK_NEAR(s->column[c].backward_error, fixture_backward_error(s, c),
               1e-3 * SUP_EPS);
  }
}

bool fixture_untouched(const fixture *s) {
  return entries_untouched(s->x, s->n * s->nrhs, 77.0);
}

sup_script *fixture_set_up_one(fixture *s, bool with_double) {
  fixture_set_up(s, 1);
  sup_script *script = fixture_add_scripted(s, "scripted", 32);
  if (with_double)
    fixture_add_double(s);
  return script;
}

void fixture_set_up_mixed(fixture *s, double *rates, double bad) {
  fixture_set_up(s, 5);
  for (int64_t j = 0; j < s->n; j++) {
    rates[j] = j < s->n / 2 ? bad : 1e-5;
    for (int64_t i = 0; i < s->n; i++)
      s->a[i + j * s->n] = i == j ? 1.0 + (double)i : 0.0;
  }
  for (int64_t c = 0; c < s->nrhs; c++)
    for (int64_t i = 0; i < s->n; i++)
      if ((i < s->n / 2) != (c == 1 || c == 3))
        s->b[i + c * s->n] = 0.0;
  fixture_add_scripted(s, "scripted", 32)->rates = rates;
}

void fault_stagnation(sup_script *e) { e->rate = 0.9; }
void fault_nan_at_once(sup_script *e) {
  e->poison_at = 0, e->poison = (double)NAN;
}
void fault_inf_at_once(sup_script *e) {
  e->poison_at = 0, e->poison = (double)INFINITY;
}
void fault_inf_later(sup_script *e) {
  e->rate = 1e-3, e->poison_at = 1, e->poison = -(double)INFINITY;
}
void fault_divergence_later(sup_script *e) {
  e->rate = 30.0, e->steps = 2, e->step_rate[0] = e->step_rate[1] = 1e-3;
}
