/* SPDX-License-Identifier: BSD-3-Clause */
/* A second matrix behind base/operator.h: A = D T E, where T is a Toeplitz
   matrix, stored as the 2n - 1 numbers of its diagonals, and D and E are
   diagonal. Its engines factor a dense copy, which refinement never sees. */
#ifndef TESTS_TOEPLITZ_H
#define TESTS_TOEPLITZ_H

#include "refine/ladder.h"

/* How often each function of the table was called. */
typedef struct toeplitz_calls {
  int starts, awaits, residuals, products, inspections, symmetries, wide_rows;
  int early; /* calls that read A after start and before await */
} toeplitz_calls;

/* Code that mistakes this for a hone_dense finds an impossible order and no
   array. */
typedef struct toeplitz_matrix {
  int64_t no_order, no_lda; /* -1 */
  const double *no_array;   /* NULL */
  void *no_copy;            /* NULL */
  int64_t order;
  const double *diagonals;    /* 2n - 1: t_(i-j) is entry i - j + n - 1 */
  const double *left, *right; /* D and E, powers of two; or NULL */
  toeplitz_calls *calls;
  int await_status;
} toeplitz_matrix;

/* Writes all of A, n x n. */
void toeplitz_write_dense(const toeplitz_matrix *m, double *a);

/* The first table has no start, await and find_structure; the second one has
   start and await. */
extern const hone_operator toeplitz_operator, toeplitz_operator_that_arrives;

extern const hone_engine toeplitz_single, toeplitz_double, toeplitz_cholesky;

#endif
