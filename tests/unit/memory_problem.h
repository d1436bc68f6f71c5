/* SPDX-License-Identifier: BSD-3-Clause */
/* Real and complex systems whose memory is that of a heap (heap.h). */
#ifndef TESTS_MEMORY_PROBLEM_H
#define TESTS_MEMORY_PROBLEM_H

#include "tests/gallery/either_call.h"
#include "tests/unit/heap.h"
#include "tests/unit/support.h"

/* A system and how to solve it. */
typedef struct problem {
  const char *name;
  int64_t n, nrhs;
  int parts; /* of a number; 0: one. With two, A^H x = b is solved */
  int start;
  double cond; /* condition of a geometric spectrum; 0: diagonally dominant */
  int cap;     /* corrections for each engine; 0: the default */
  int shape;   /* 'u': upper triangle, 'b': band, 's': symmetric; 0: full */
  bool graded; /* so that scaling is needed */
  int mode;    /* mode of another spectrum; 0: geometric */
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} problem;

/* x holds it before each call. */
static const double MP_UNTOUCHED = 77.25;

/* Makes the arrays and options of p, which has all above them. */
void mp_make(problem *p, heap *h);
void mp_discard(problem *p);
int64_t mp_doubles(const problem *p); /* of b, and of x */

/* The call for all columns; a solve with a solver; and a solver for one. */
int mp_solve(problem *p);
int mp_solve_with(problem *p, either_solver *solver);
int mp_three_calls(problem *p);

/* If the status is 0, x must have a small backward error. The first and the
   last column are checked, and those at the ends of a block. */
void mp_check(const problem *p, int status);

#endif
