/* SPDX-License-Identifier: BSD-3-Clause */
/* The convergence of one solve, heard through the progress callback and drawn
   as an SVG file that needs no other program. */
#ifndef EXAMPLES_CONVERGENCE_H
#define EXAMPLES_CONVERGENCE_H

#include "api/hone.h"

#include <stdbool.h>
#include <stdio.h>

enum { CONVERGENCE_STEPS = 4000 }; /* later ones are not kept */

typedef struct convergence_step {
  int at; /* corrections made before */
  int precision;
  bool gmres;
  double error; /* what the criterion measures */
} convergence_step;

/* All zero: nothing heard yet. */
typedef struct convergence {
  int count;
  convergence_step step[CONVERGENCE_STEPS];
} convergence;

/* Takes what it is told of refinement and ignores the rest. */
void convergence_hear(convergence *heard, const hone_progress *event);

/* Draws. title, subtitle: text; unit: of the vertical axis; limit: accepted at
   or below. False: nothing was heard, or the file failed. */
bool convergence_draw(const convergence *heard, const char *title,
                      const char *subtitle, const char *unit, double limit,
                      FILE *file);

#endif
