/* SPDX-License-Identifier: BSD-3-Clause */
/* Small systems in rational arithmetic, by GMP: whether A is singular, its
   determinant, and the exact error of any x. Every double counts as the number
   that it is. Meant for orders up to 12, and for sparse integers up to 40.
   Nothing here uses the library. */
#ifndef TESTS_GALLERY_EXACT_H
#define TESTS_GALLERY_EXACT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct exact_system exact_system;

/* Solves A x = b for nrhs right-hand sides; all entries must be finite. The
   arrays are not kept. */
exact_system *exact_solve(int64_t n, int64_t nrhs, const double *a, int64_t lda,
                          const double *b, int64_t ldb);
void exact_free(exact_system *e); /* NULL is allowed */

bool exact_singular(const exact_system *e);
/* det A = f 2^*exponent with 1/2 <= |f| < 1, or f = 0. */
double exact_determinant(const exact_system *e, int64_t *exponent);

/* Entry i of the true x for right-hand side c of a regular A. */
long double exact_solution(const exact_system *e, int64_t i, int64_t c);

/* max_i |x - x_true|_i / max_i |x_i| for right-hand side c of a regular A, with
   a relative error of 2^-50; Inf if x is not finite, or is zero and should not
   be. components[i], if not NULL, is |x - x_true|_i. */
long double exact_error(const exact_system *e, int64_t c, const double *x,
                        long double *components);

#endif
