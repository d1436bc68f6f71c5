/* SPDX-License-Identifier: BSD-3-Clause */
/* A second matrix behind base/operator.h: A = D T E with T a Toeplitz matrix,
   of which only the 2n - 1 numbers of its diagonals are stored, and D and E
   diagonal. Its engines factor a dense copy by the engines for dense matrices;
   the loop never sees that copy. */
#ifndef TESTS_TOEPLITZ_H
#define TESTS_TOEPLITZ_H

#include "refine/ladder.h"

/* How often the table was called. */
typedef struct toeplitz_calls {
  int starts, awaits, residuals, products, inspections, symmetries, wide_rows;
  int early; /* calls that read A after start and before await */
} toeplitz_calls;

/* Code that takes it for a hone_dense finds an impossible order and no array.
 */
typedef struct toeplitz_matrix {
  int64_t no_order, no_lda; /* -1 */
  const double *no_array;   /* NULL */
  void *no_copy;            /* NULL */
  int64_t order;
  const double *diagonals;    /* 2n - 1: t_(i-j) at i - j + n - 1 */
  const double *left, *right; /* D and E, n powers of two each; or NULL */
  toeplitz_calls *calls;
  int await_status;
} toeplitz_matrix;

/* Writes all of A, n x n. */
void toeplitz_write_dense(const toeplitz_matrix *m, double *a);

/* Neither start nor await nor find_structure; and with the first two. */
extern const hone_operator toeplitz_operator, toeplitz_operator_that_arrives;

extern const hone_engine toeplitz_single, toeplitz_double, toeplitz_cholesky;

#endif
