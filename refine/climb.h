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

/* Is the error bound of accepted column i small enough for the caller? */
bool hone_climb_error_suffices(const hone_climb *climb, int64_t i);

/* Makes the best iterate of each column that was not accepted its x, and
   measures what no accurate pass has measured, so that the errors reported are
   those of x. */
void hone_climb_measure_unaccepted(hone_climb *c);

#endif
