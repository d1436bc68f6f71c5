/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the reference: factorizations and passes over the matrix. All
   matrices here are n x n, stored by columns without gaps. */
#ifndef TESTS_GALLERY_REFERENCE_PARTS_H
#define TESTS_GALLERY_REFERENCE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* P S Q = L U, in double (low NULL, Q = I) or in double-double. */
typedef struct reference_factors {
  int64_t n;
  /* L below the diagonal, U above; low: in double-double only. */
  double *high, *low;
  int *row, *col; /* entry k of P v is v[row[k]]; Q likewise */
  bool wide;
} reference_factors;

/* Factors the matrix in high (in double-double: in high and low). Returns false
   if a pivot is zero, not finite or, in double-double, not distinguishable from
   zero. */
bool reference_factor(reference_factors *f);

/* (xh, xl) = inv(S) (xh, xl). With factors in double xl is neither read nor
   written. scratch: 2 n. */
void reference_apply(const reference_factors *f, double *xh, double *xl,
                     double *scratch);

/* x = inv(S) x or inv(S^T) x in double, with the leading words of the factors.
   scratch: n. */
void reference_apply_double(const reference_factors *f, bool trans, double *x,
                            double *scratch);

/* (r0 + r1 + r2) -= A (xh + xl); each r has n entries. */
void reference_residual(int64_t n, const double *a, int64_t lda,
                        const double *xh, const double *xl, double *r0,
                        double *r1, double *r2);

#endif
