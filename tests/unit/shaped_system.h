/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems whose matrix has one of the structures that the library looks for,
   and the checks of how they were solved. */
#ifndef TESTS_SHAPED_SYSTEM_H
#define TESTS_SHAPED_SYSTEM_H

#include "tests/unit/support.h"

typedef enum shape {
  DIAGONAL,
  LOWER,
  UPPER,
  BAND, /* 2 below, 1 above */
  DEFINITE,
  FULL,
  SHAPES
} shape;

/* The padding below the n rows of A is NaN. */
typedef struct shaped {
  int64_t n, lda, nrhs;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} shaped;

/* On the CPU; lda = n + pad. */
shaped shaped_make(shape kind, int64_t n, int64_t nrhs, int64_t pad);
void shaped_discard(shaped *s);

/* May entry (i, j) differ from zero? */
bool shaped_inside(shape kind, int64_t i, int64_t j);

/* A well-conditioned A, whose rows and columns are then multiplied by factors
   between 10^-units and 10^units. */
void shaped_fill(shaped *s, shape kind, double units);

/* Sets trans and layout from bits 0 and 1 of form. */
enum { FORMS = 16 };
void shaped_take_form(shaped *s, int form);

/* hone_solve, and the check of x. */
int shaped_solve(shaped *s);

/* Status 0: the backward error is small. An error: x is untouched. */
void shaped_check_x(const shaped *s, int st);

/* The structure that the report should name. */
int shaped_structure(shape kind, int64_t n);

/* The report names this structure, and the engine for it alone. */
void shaped_check_path(const shaped *s, int structure);

/* If must, A has to be solved; else only where LU of all of A solves it, as
   entries may leave the range of double precision in any factorization. */
void shaped_check_no_worse_than_lu(shaped *s, bool must);

#endif
