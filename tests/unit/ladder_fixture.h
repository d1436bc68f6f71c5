/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the ladder: a ladder with engines that follow a
   script (support.h), one matrix, its right-hand sides and a progress callback.
 */
#ifndef TESTS_LADDER_FIXTURE_H
#define TESTS_LADDER_FIXTURE_H

#include "tests/unit/support.h"

enum { ORDER = 12, MOST_COLUMNS = 6 };

typedef struct fixture {
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
  /* Calls of the progress callback, and the one that asks to stop. */
  int heard, stop_at;
  double smallest, last; /* backward errors that the callback received */
} fixture;

/* A diagonally dominant matrix of order ORDER, for which every engine converges
   unless its script says otherwise; no engines yet. */
void fixture_set_up(fixture *s, int64_t nrhs);

/* Sets up one right-hand side and one scripted engine, followed by double
   precision LU if with_double. */
sup_script *fixture_set_up_one(fixture *s, bool with_double);

/* A is diagonal, so that the contraction of a right-hand side is the rate of
   the rows where it is not zero. Columns 1 and 3 of five are those of the first
   half, where the rate is bad. */
void fixture_set_up_mixed(fixture *s, double *rates, double bad);

/* Engines in the order in which the ladder tries them. */
sup_script *fixture_add_scripted(fixture *s, const char *name, int precision);
void fixture_add_double(fixture *s);

int fixture_open(fixture *s); /* creates the ladder */
int fixture_factor(fixture *s);
int fixture_solve_from(fixture *s, const double *x0);
int fixture_solve(fixture *s);
int fixture_run(fixture *s); /* the three above, one after the other */
void fixture_clear_report(fixture *s);

/* Destroys all; checks that memory and engines were given back. */
void fixture_tear_down(fixture *s);

/* The backward error of column c in quadruple precision. */
double fixture_backward_error(const fixture *s, int64_t c);
void fixture_check_accepted(const fixture *s); /* every column */
bool fixture_untouched(const fixture *s);      /* x, by the last solve */

/* Scripts of engines that do not serve. */
void fault_stagnation(sup_script *e);
void fault_nan_at_once(sup_script *e);
void fault_inf_at_once(sup_script *e);
void fault_inf_later(sup_script *e);
void fault_divergence_later(sup_script *e); /* after two good corrections */

#endif
