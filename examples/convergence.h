/* SPDX-License-Identifier: BSD-3-Clause */
/* Records the convergence of one solve through the progress callback and draws
   it as an SVG file. */
#ifndef EXAMPLES_CONVERGENCE_H
#define EXAMPLES_CONVERGENCE_H

#include "api/hone.h"

#include <stdbool.h>
#include <stdio.h>

enum { CONVERGENCE_STEPS = 4000 }; /* later steps are not recorded */

typedef struct convergence_step {
  int at; /* the number of corrections made before */
  int precision;
  bool gmres;
  double error; /* in the measure of the criterion */
} convergence_step;

/* Is initialized with zeros. */
typedef struct convergence {
  int count;
  convergence_step step[CONVERGENCE_STEPS];
} convergence;

/* Records an event of refinement; other events are ignored. */
void convergence_hear(convergence *heard, const hone_progress *event);

/* Draws the steps recorded. unit is the title of the vertical axis; errors up
   to limit are accepted. Returns false if nothing was recorded or the file
   cannot be written. */
bool convergence_draw(const convergence *heard, const char *title,
                      const char *subtitle, const char *unit, double limit,
                      FILE *file);

#endif
