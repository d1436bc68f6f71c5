/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems for tests: families of matrices, and solutions and backward
   errors in quadruple precision (on machines without it, in long double), which
   use nothing of the library. */
#ifndef HONE_COMPLEX_SYSTEM_H
#define HONE_COMPLEX_SYSTEM_H

#include "api/hone.h"

#include <stdbool.h>

enum {
  CS_UNIFORM,   /* both parts of every entry uniform in [-1/2, 1/2) */
  CS_NORMAL,    /* both parts normal */
  CS_SPECTRUM,  /* U diag(sigma) V^H, sigma from 1 to 1e-6, geometric */
  CS_STEEP,     /* the same from 1 to 1e-11 */
  CS_NEARLY,    /* the same, all 1 but for two: 1e-9 and 3e-10 */
  CS_UNITS,     /* |a_ij| = 1, random phases */
  CS_SCALED,    /* uniform, rows and columns times 2^-60 .. 2^60 */
  CS_HELMHOLTZ, /* -u'' - k^2 (1 + i/10) u in the plane, five points */
  CS_MOMENTS,   /* exp(i k r) / r between points on a helix: symmetric */
  CS_SYMMETRIC, /* a_ij = a_ji, uniform */
  CS_HERMITIAN, /* a_ij = conj(a_ji), indefinite */
  CS_DEFINITE,  /* Hermitian positive definite */
  CS_BANDED,    /* two diagonals on either side */
  CS_LOWER,     /* triangular */
  CS_DIAGONAL,
  CS_FAMILIES
};

const char *cs_name(int family);

/* n x n without gaps, from malloc. */
hone_complex *cs_matrix(int family, int64_t n, uint64_t seed);
/* n x m, both parts uniform in [-1/2, 1/2). */
hone_complex *cs_random(int64_t n, int64_t m, uint64_t seed);

/* op(A) x = b, trans being HONE_NO_TRANS, HONE_TRANS or HONE_CONJ_TRANS. */
typedef struct cs_problem {
  int64_t n, lda;
  const hone_complex *a;
  int trans;
  bool row_major;
} cs_problem;

/* max_i |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, a row 0 / 0 being 0. */
double cs_backward_error(const cs_problem *p, const hone_complex *x,
                         const hone_complex *b);

/* Errors of x against the solution in quadruple precision. */
typedef struct cs_errors {
  double forward; /* max |x - x_true| / max |x_true| */
  double outside; /* max |x_i - x_true,i| / bars_i; 0 without bars */
} cs_errors;

/* False: the refinement in quadruple precision did not converge. */
bool cs_compare(const cs_problem *p, const hone_complex *x,
                const hone_complex *b, const double *bars, cs_errors *out);

#endif
