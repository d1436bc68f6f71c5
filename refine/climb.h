/* SPDX-License-Identifier: BSD-3-Clause */
/* The climb of one block of right-hand sides, for ladder_solve.c. Next to read:
   climb.c. */
#ifndef HONE_CLIMB_H
#define HONE_CLIMB_H

#include "refine/ladder.h"

/* The data that the columns of one block share while they climb. */
typedef struct hone_climb {
  hone_ladder *ladder;
  hone_report *report;
  bool trans;
  int64_t m;
  hone_refined *columns;
  int rung[HONE_SOLVE_COLUMNS]; /* the rung whose factors solved the column */
} hone_climb;

/* Refines the block's columns and climbs with those that need it. Returns
   HONE_OK (the columns' states tell the rest), HONE_INTERRUPTED,
   HONE_CANCELLED, or why no rung could be used. */
int hone_climb_columns(hone_climb *climb);

/* Was column i accepted with the factors of rung r? */
static inline bool hone_climb_accepted_on(const hone_climb *c, int64_t i,
                                          int r) {
  return c->columns[i].state == HONE_COLUMN_ACCEPTED && c->rung[i] == r;
}

/* Is the error bound of accepted column i small enough for the caller? */
bool hone_climb_error_suffices(const hone_climb *climb, int64_t i);

/* Refine columns accepted on rung r further (climb_digits.c): in extra-precise
   mode, those without a certain digit, and those that lost digits to the units
   of the unknowns alone. */
int hone_climb_refine_extra(hone_climb *c, int r, hone_refinement *ctx);
int hone_climb_refine_uncertain(hone_climb *c, int r, hone_refinement *ctx);
void hone_climb_refine_units(hone_climb *c, int r, hone_refinement *ctx);

/* Makes the best iterate of each column that was not accepted its x, and
   measures what no accurate pass has measured, so that the errors reported are
   those of x. */
void hone_climb_measure_unaccepted(hone_climb *c);

#endif
