/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the ladder: a ladder with engines that follow a
   script (scripted_engine.h), one matrix, its right-hand sides and a progress
   callback. Compiled twice, the second time for complex entries. */
#ifndef TESTS_LADDER_FIXTURE_H
#define TESTS_LADDER_FIXTURE_H

#include "tests/unit/entries.h"

#ifdef HONE_COMPLEX
#define fixture_set_up fixture_z_set_up
#define fixture_set_up_one fixture_z_set_up_one
#define fixture_set_up_mixed fixture_z_set_up_mixed
#define fixture_add_scripted fixture_z_add_scripted
#define fixture_add_double fixture_z_add_double
#define fixture_open fixture_z_open
#define fixture_factor fixture_z_factor
#define fixture_solve_from fixture_z_solve_from
#define fixture_solve fixture_z_solve
#define fixture_run fixture_z_run
#define fixture_clear_report fixture_z_clear_report
#define fixture_tear_down fixture_z_tear_down
#define fixture_backward_error fixture_z_backward_error
#define fixture_check_accepted fixture_z_check_accepted
#define fixture_untouched fixture_z_untouched
#define fault_stagnation fault_z_stagnation
#define fault_nan_at_once fault_z_nan_at_once
#define fault_inf_at_once fault_z_inf_at_once
#define fault_inf_later fault_z_inf_later
#define fault_divergence_later fault_z_divergence_later
#endif

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
  hone_entry *a, *b, *x, *x_true;
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
int fixture_solve_from(fixture *s, const hone_entry *x0);
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
