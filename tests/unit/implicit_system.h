/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems with a matrix that is not dense: a Toeplitz matrix behind
   base/operator.h (toeplitz.h), solved through that table and, as a dense copy,
   through the table of dense matrices. */
#ifndef TESTS_IMPLICIT_SYSTEM_H
#define TESTS_IMPLICIT_SYSTEM_H

#include "tests/unit/support.h"
#include "tests/unit/toeplitz.h"

enum { MOST_COLUMNS = 70 };

typedef struct implicit_result {
  int status, factor_status;
  int passes; /* over A, of factor and solve */
  hone_report factored, solved;
  hone_column column[MOST_COLUMNS];
  double *x;    /* n x nrhs */
  int64_t held; /* bytes not given back */
} implicit_result;

typedef struct implicit {
  int64_t n, nrhs;
  bool trans, cholesky;
  double *diagonals, *left, *right;
  double *twin;   /* the dense copy, n x n */
  double *whole;  /* n x nrhs, small integers */
  double *x_true; /* n x nrhs: whole divided by the scaling of A */
  double *b;      /* op(A) x_true, exact where the diagonals have few bits */
  toeplitz_calls calls;
  toeplitz_matrix matrix;
  const hone_operator *op;
  hone_request request;
  implicit_result here, dense; /* of the implicit matrix and of its copy */
} implicit;

/* Diagonals of 20 bits, so that D T E x is exact for small integers x. */
void implicit_set_up(implicit *s, int64_t n, int64_t nrhs);
void implicit_tear_down(implicit *s);

/* Makes T a circulant whose rows sum to sum: the vector of ones is then an
   eigenvector of that eigenvalue. */
void implicit_make_circulant(implicit *s, double sum);

/* Scales rows and columns by powers of two from 2^-80 to 2^80. */
void implicit_make_scaled(implicit *s);

/* Computes the dense copy and b: the last step before implicit_run. */
void implicit_finish(implicit *s);

hone_matrix implicit_matrix(const implicit *s);

/* Factors and solves, through either table. Where earlier is not NULL, that
   matrix is factored first, and A is an update of it. */
void implicit_run(implicit *s, const toeplitz_matrix *earlier);

/* Both results agree, and the errors in the reports are true. */
void implicit_check_alike(const implicit *s);

/* ... and every x is accepted. */
void implicit_check_solved(const implicit *s);

#endif
