/* SPDX-License-Identifier: BSD-3-Clause */
/* Refinement that a progress callback or a deadline stops. For real and for
   complex entries. */
#include "tests/unit/ladder_fixture.h"

#include "tests/unit/ct.h"

#include <math.h>

TEST_OF(refine, stops_before_there_is_any_x_and_leaves_x_untouched) {
  fixture s;
  fixture_set_up_one(&s, true);
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  s.watch.stopped = true;
  CHECK_EQ_INT(fixture_solve(&s), HONE_CANCELLED);
  CHECK(fixture_untouched(&s));
  CHECK_EQ_INT(s.report.accepted, 0);
  CHECK_EQ_INT(s.script[0]->solves, 0);
  fixture_tear_down(&s);
}

TEST_OF(refine, stops_with_the_best_x_so_far) {
  for (int stop = 1; stop <= 3; stop++) {
    fixture s;
    ct_note("stop at event %d", stop);
    fixture_set_up_one(&s, true)->rate = 1e-3;
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    s.heard = 0;
    s.stop_at = stop;
    CHECK_EQ_INT(fixture_solve(&s), HONE_INTERRUPTED);
    CHECK_EQ_INT(s.heard, stop);
    CHECK_EQ_INT(s.column[0].status, HONE_INTERRUPTED);
    CHECK_EQ_INT(s.column[0].iterations, stop - 1);
    CHECK_NEAR(fixture_backward_error(&s, 0), s.smallest, 1e-6 * s.smallest);
    CHECK_LE(fixture_backward_error(&s, 0), pow(1e-3, stop));
    CHECK(s.ladder.rung[1].self == NULL);
    fixture_tear_down(&s);
  }
}

TEST_OF(refine, stops_at_a_deadline_that_has_passed_with_what_it_has) {
  fixture s;
  fixture_set_up_one(&s, true)->rate = 1e-3;
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  s.watch.progress = NULL;
  s.watch.deadline_s = hone_now_s() - 1.0;
  CHECK_EQ_INT(fixture_solve(&s), HONE_INTERRUPTED);
  CHECK_LE(fixture_backward_error(&s, 0), 1e-3);
  CHECK_LE(SUP_LIMIT, fixture_backward_error(&s, 0));
  fixture_tear_down(&s);
}

TEST_OF(refine, returns_accepted_columns_as_accepted_when_stopped) {
  fixture s;
  double rates[ORDER];
  fixture_set_up_mixed(&s, rates, 0.4);
  for (int i = ORDER / 2; i < ORDER; i++)
    rates[i] = 0.0; /* accepted at once */
  s.request.max_iterations = 100;
  REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
  s.stop_at = s.heard + 4;
  CHECK_EQ_INT(fixture_solve(&s), HONE_INTERRUPTED);
  CHECK_EQ_INT(s.report.accepted, 3);
  for (int c = 0; c < 5; c++) {
    bool bad = c == 1 || c == 3;
    CHECK_EQ_INT(s.column[c].status, bad ? HONE_INTERRUPTED : HONE_OK);
    CHECK_LE(fixture_backward_error(&s, c), bad ? 0.1 : SUP_LIMIT);
  }
  fixture_tear_down(&s);
}
