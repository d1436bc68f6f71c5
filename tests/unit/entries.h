/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of entries for tests that are compiled twice, the second time with
   HONE_COMPLEX, and what is said of real or complex x alike: errors are moduli,
   and the judges solve a complex system as a real one of twice the order
   (tests/gallery/either.h). Where an array of doubles would do for real
   entries, its functions are those of support.h. */
#ifndef TESTS_ENTRIES_H
#define TESTS_ENTRIES_H

#include "tests/unit/support.h"

/* A test of real entries, and another of complex ones, with names of their own.
   What this header declares has two names as well. */
#ifdef HONE_COMPLEX
#define TEST_OF(unit, sentence) TEST(unit##_complex, sentence)
#define entries_filled entries_z_filled
#define entries_copy entries_z_copy
#define entries_free entries_z_free
#define entries_untouched entries_z_untouched
#define entries_uniform entries_z_uniform
#define entries_random entries_z_random
#define entries_matrix_cond entries_z_matrix_cond
#define entries_multiply entries_z_multiply
#define entries_backward_error entries_z_backward_error
#define entries_forward_error entries_z_forward_error
#define entries_distance entries_z_distance
#define entries_inverse_norm1 entries_z_inverse_norm1
#else
#define TEST_OF(unit, sentence) TEST(unit, sentence)
#endif

/* A constant; for real entries, its real part. */
#ifdef HONE_COMPLEX
#define ENTRY(re, im) CMPLX(re, im)
#else
#define ENTRY(re, im) (re)
#endif

/* Every part of which is value; freed by entries_free, which checks guards. */
hone_entry *entries_filled(int64_t count, double value);
hone_entry *entries_copy(const hone_entry *from, int64_t count);
void entries_free(hone_entry *array);
/* Is every part of all entries equal to value, bit for bit? */
bool entries_untouched(const hone_entry *array, int64_t count, double value);

/* The last part is v, another one is 1. */
static inline hone_entry entries_ending_in(double v) {
#ifdef HONE_COMPLEX
  return CMPLX(1.0, v);
#else
  return v;
#endif
}

/* Every part is uniform in [-1/2, 1/2). */
hone_entry entries_uniform(sup_rng *rng);
void entries_random(sup_rng *rng, int64_t n, int64_t m, hone_entry *a,
                    int64_t lda);

/* Singular values as of sup_matrix_cond; H1 and H2 are complex, if a is. */
void entries_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond,
                         hone_entry *a, int64_t lda);

/* b = op(A) x in quadruple precision, op being the plain transpose, rounded
   once. b and x must not overlap. */
void entries_multiply(int64_t n, const hone_entry *a, int64_t lda, bool trans,
                      const hone_entry *x, hone_entry *b);

/* max_i |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, and max |x - x_true| / max
   |x_true|. */
double entries_backward_error(int64_t n, const hone_entry *a, int64_t lda,
                              bool trans, const hone_entry *x,
                              const hone_entry *b);
double entries_forward_error(int64_t n, const hone_entry *x,
                             const hone_entry *x_true);

/* max |x - x_true| / max |x|, x_true being what the reference says of A x = b;
   NaN where it says nothing. */
double entries_distance(int64_t n, const hone_entry *a, const hone_entry *x,
                        const hone_entry *b);
/* The 1-norm of inv(A) by the reference; NaN where it says nothing. */
double entries_inverse_norm1(int64_t n, const hone_entry *a);

#endif
