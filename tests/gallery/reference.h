/* SPDX-License-Identifier: BSD-3-Clause */
/* An independent reference: the solution x of A x = b far beyond double
   precision, with a bound on its error, and the componentwise backward error of
   any x. Nothing here uses the library.

   Rows and columns are scaled by powers of two. x is kept in double-double (106
   bits), residuals are summed in three doubles (159 bits), and corrections come
   from an LU factorization in double or, where these do not contract well, from
   one in double-double with complete pivoting.

   The contraction is measured, not estimated: besides the given right-hand
   sides two more are solved whose solutions are known, random vectors z with
   right-hand sides A z in three doubles. A direction in which the factors are
   wrong, above all that of a null vector, shows in the error of z, which is
   known at every step. */
#ifndef TESTS_GALLERY_REFERENCE_H
#define TESTS_GALLERY_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  REFERENCE_DOUBLE,        /* trusted, by LU in double */
  REFERENCE_DOUBLE_DOUBLE, /* trusted, by LU in double-double */
  REFERENCE_UNTRUSTED,     /* did not converge */
  REFERENCE_SINGULAR /* a pivot is below the rounding of double-double: A is
                        singular, or might be */
};

/* Owns its arrays, and keeps them from one system to the next. */
typedef struct reference {
  int64_t n, nrhs;
  int state, steps;
  double contraction; /* of the errors of the known vectors in the worst step */
  double condition;   /* ||A||_1 ||inv(A)||_1, estimated; Inf: out of range */
  double *high, *low; /* scaled x, n x nrhs */
  int *exponent;      /* of the columns' scaling, n */
  int *shift;         /* one for each right-hand side */
  double *error;      /* bounds on the relative error of each column of x in the
                         1-norm and in the infinity norm; Inf: not trusted */
  int64_t room_n, room_columns;
  void *memory;
} reference;

/* Solves for nrhs right-hand sides (b: ldb). r is {0} at first, or holds an
   earlier system. a and b must be finite. */
void reference_solve(reference *r, int64_t n, int64_t nrhs, const double *a,
                     int64_t lda, const double *b, int64_t ldb);
void reference_free(reference *r);

/* ||x - x_true|| / ||x|| of a computed x for right-hand side c, in the 1-norm
   or the infinity norm; Inf if x is not finite, or is zero and should not be.
   The reference's own error changes it by at most error[c]. */
long double reference_distance(const reference *r, int64_t c, const double *x,
                               bool infinity_norm);
/* |x - x_true,i| for an x that is finite; the reference's own error changes it
   by at most error[c] times the largest entry of column c. */
long double reference_miss(const reference *r, int64_t c, int64_t i, double x);
/* The exponent of the largest entry of x; from 1024 on, x overflows. *least is
   that of the smallest entry that is not zero; below -1022, x cannot be stored
   completely, and no x of doubles may satisfy a componentwise criterion. For x
   = 0 both are 0. */
int reference_size(const reference *r, int64_t c, int *least);

/* max_i |b - A x|_i / (|A| |x| + |b|)_i with a relative error of 1e-12; NaN if
   x is not finite. 0 / 0 counts as 0. Products below the range of double are
   not lost. */
double reference_omega(int64_t n, const double *a, int64_t lda, const double *x,
                       const double *b);

/* omega where rows that consist of nearly vanishing products are measured as
   in Arioli, Demmel & Duff (1989): see docs/numerics.md, "Refine and accept".
   Never larger than the library's own. */
double reference_sparse_omega(int64_t n, const double *a, int64_t lda,
                              const double *x, const double *b);

#endif
