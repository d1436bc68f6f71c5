/* SPDX-License-Identifier: BSD-3-Clause */
/* Real or complex systems in one program. A number has one part or two, the
   real part first, and n numbers are n * parts doubles. The complex system
   A x = b of order n has the same solutions as the real one of order 2 n,

     [ Re A  -Im A ] [ Re x ]   [ Re b ]
     [ Im A   Re A ] [ Im x ] = [ Im b ],

   which is singular exactly if A is: the reference, exact arithmetic and
   right-hand sides of the gallery take that one. What is measured in moduli is
   here. Nothing here uses the library. */
#ifndef TESTS_GALLERY_EITHER_H
#define TESTS_GALLERY_EITHER_H

#include "tests/gallery/gallery.h"
#include "tests/gallery/reference.h"

#include <math.h>
#include <stdbool.h>

static inline double either_size(int parts, const double *v) {
  return parts == 1 ? fabs(v[0]) : hypot(v[0], v[1]);
}
/* The modulus must be in the range of double, too. */
static inline bool either_finite(int parts, const double *v) {
  return isfinite(either_size(parts, v));
}

/* to = op(a): n x n without gaps; conjugates: of every number. */
void either_copy(int parts, int64_t n, const double *a, int64_t lda, bool turn,
                 bool conjugates, double *to);

/* The real matrix of order parts * n, without gaps, and its vectors. */
void either_matrix(int parts, int64_t n, const double *a, int64_t lda,
                   double *m);
void either_vector(int parts, int64_t n, const double *v, double *stacked);

/* Families with GALLERY_COMPLEX are made as they are. Of others, the complex
   matrix has phases, is a sum R + i S of two, or a row or column with others
   added that are multiplied by i; which, the seed decides. A singular one stays
   singular, a definite one becomes Hermitian and stays definite, and a
   symmetric one becomes Hermitian, symmetric or neither. */
void either_make(const gallery_family *family, int parts, int64_t n,
                 double parameter, uint64_t seed, double *a, int64_t lda);
int either_families(int parts); /* so many families there are */
void either_rhs(int kind, int parts, int64_t n, const double *a, int64_t lda,
                uint64_t seed, double *b);

/* b = A x, rounded once. */
void either_product(int parts, int64_t n, const double *a, int64_t lda,
                    const double *x, double *b);

/* The functions of reference.h. */
void either_solve(reference *r, int parts, int64_t n, int64_t nrhs,
                  const double *a, const double *b);
/* |x_i - x_true,i|, and the largest of them by the largest |x_i|; both may be
   wrong by the reference's own error times 1.5. */
long double either_miss(const reference *r, int parts, int64_t c, int64_t i,
                        const double *x);
long double either_distance(const reference *r, int parts, int64_t c,
                            const double *x);
double either_omega(int parts, int64_t n, const double *a, const double *x,
                    const double *b);
/* Takes the scaling of other; all are without gaps. */
double either_sparse_omega(int parts, int64_t n, const double *other,
                           const double *a, const double *x, const double *b);

#endif
