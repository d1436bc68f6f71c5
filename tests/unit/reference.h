/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions to twice double precision, and matrices that are hard on an error
   bound. The code shares nothing with the library. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "tests/unit/support.h"

/* Solves op(A) (hi + lo) = b to a relative error of about 1e-32 cond(A): by
   elimination in quadruple precision up to n = 64, above by double-precision
   factors refined with quadruple-precision residuals. Returns false if A is
   singular or refinement does not converge. */
bool ref_solve(int64_t n, const double *a, bool trans, int64_t nrhs,
               const double *b, double *hi, double *lo);

/* max |x - (hi + lo)| / max |x|, and the largest of |x - (hi + lo)|_i /
   |hi_i| (0 where both are 0). */
double ref_error(int64_t n, const double *x, const double *hi,
                 const double *lo);
double ref_error_of_any(int64_t n, const double *x, const double *hi,
                        const double *lo);

/* The infinity norm and the 1-norm of a, and the 1-norm of inv(A), from
   ref_solve with the unit vectors (-1: singular; n <= 64). */
double ref_norm1(int64_t n, const double *a);
double ref_inverse_norm1(int64_t n, const double *a);

/* Families of matrices that are hard on an error bound, stored by columns with
   lda = n. */
enum {
  REF_RANDOM,
  REF_GRADED_ROWS,
  REF_GRADED_COLUMNS,
  REF_GRADED_BOTH,
  REF_MIXED_UNITS, /* D S D, S symmetric positive definite */
  REF_ONE_LARGE,   /* the distributions of support.h: */
  REF_ONE_SMALL,
  REF_GEOMETRIC,
  REF_ARITHMETIC,
  REF_LOG_UNIFORM,
  REF_HILBERT, /* Hilbert's of order <= 12 in the corner, random elsewhere */
  REF_VANDERMONDE,
  REF_NEAR_COLUMNS, /* two columns that differ by 1 / cond */
  REF_FAMILIES
};
const char *ref_name(int family);
/* cond is the condition of the families that have one; elsewhere it says how
   strongly they are graded. */
void ref_matrix(sup_rng *rng, int family, int64_t n, double cond, double *a);

#endif
