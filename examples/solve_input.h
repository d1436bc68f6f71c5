/* SPDX-License-Identifier: BSD-3-Clause */
/* The system that solve_system solves: from files, or made. */
#ifndef HONE_EXAMPLES_SOLVE_INPUT_H
#define HONE_EXAMPLES_SOLVE_INPUT_H

#include "examples/matrix_market.h"
#include "examples/solve_options.h"

/*
 * A system and its solution. Where A is complex every entry of A, b and x is
 * two numbers, the real and the imaginary part. Where only b is complex, each
 * of its columns becomes two real columns, with the real and with the imaginary
 * parts.
 */
struct system {
  mm_matrix a, b; /* b is computed if there is no file for it */
  bool split;     /* only b was complex, and has two columns for each now */
  int parts;      /* numbers of an entry of A, b and x: 1 or 2 */
  double *x;      /* n x b.cols entries */
  double *want;   /* n x b.cols real numbers, the known solution, or NULL */
  double *bounds; /* n x b.cols, on the errors of x */
  double read_ms;
};

/* Makes A and b and allocates x. Returns the exit status; fail has printed
   why. */
int system_make(const struct settings *s, struct system *run);

/* Returns |x_k - want_k| or, without a known solution, NaN. */
double system_error(const struct system *run, int64_t k);

/* Returns |x_k|. */
double system_modulus(const struct system *run, int64_t k);

void system_free(struct system *run);

#endif
