/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra-precise mode with engines that follow a script, for real and for
   complex entries: x beside the reference, which solves to more than twice
   double precision. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

static const double ULP = 2.0 * SUP_EPS;

static int run(fixture *s, double rate, int fails_at) {
  sup_script *script = fixture_set_up_one(s, true);
  script->rate = rate;
  script->solve_fails_at = fails_at;
  script->solve_status = HONE_DEVICE_FAILED;
  s->request.extra = true;
  return fixture_run(s);
}

TEST_OF(extra_precise, makes_as_many_corrections_as_the_rate_takes) {
  static const struct {
    double rate;
    int at_most, precision;
  } cases[] = {{1e-17, 1, 32}, {1e-7, 3, 32},  {1e-4, 5, 32},
               {0.008, 9, 32}, {0.6, 100, 64}, {-0.9, 100, 64}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture s;
    ct_note("rate %g", cases[i].rate);
    CHECK_EQ_INT(run(&s, cases[i].rate, -1), HONE_OK);
    CHECK_LE(entries_distance(s.n, s.a, s.x, s.b), ULP);
    CHECK_EQ_INT(s.column[0].precision, cases[i].precision);
    CHECK_LE(s.column[0].iterations, cases[i].at_most);
    fixture_tear_down(&s);
  }
}

TEST_OF(extra_precise, goes_on_with_another_engine_when_a_solve_fails) {
  for (int at = 0; at < 6; at++) {
    fixture s;
    ct_note("solve %d fails", at);
    CHECK_EQ_INT(run(&s, 1e-4, at), HONE_OK);
    CHECK_LE(entries_distance(s.n, s.a, s.x, s.b), ULP);
    CHECK_EQ_INT(s.column[0].precision, 64);
    fixture_tear_down(&s);
  }
}
