/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_papers runs Igual's refinement on the CPU, and measures how far L U is
   from A. A NaN in the data makes every result NaN. */
#ifndef HONE_BENCH_PAPERS_CHECKS_H
#define HONE_BENCH_PAPERS_CHECKS_H

#include <cstdint>
#include <vector>

/* Igual's algorithm 1 computes the first solution and the corrections with
   single-precision factors on the CPU, and residuals by DGEMV, until ||r|| /
   ||x|| < sqrt(2^-52), then does two more iterations. He does not say which
   norms; here they are infinity norms. His rule depends on the units of A, and
   he sets no limit; here it is 30 iterations. */
struct Refined {
  int iterations = 0;
  bool stopped = false; /* by his rule */
};
/* a is n x n with ld n. f has its factors: L on and below the diagonal
   (Cholesky, with pivots NULL) or L \ U with LAPACK's pivots. */
Refined igual_refine(int64_t n, const double *a, const float *f,
                     const int *pivots, const double *b, double *x);

/* Returns ||A v - P^T L U v|| / (||A|| ||v||) in infinity norms, where v has
   ones and minus ones. It tells whether these are factors of A, in one pass
   over A and two over the factors. */
double factors_error(int64_t n, const float *a, const float *f,
                     const int *pivots, int threads);

/* Sets *error to the larger of the two, or to NaN if one of them is NaN. */
void note_error(double e, double *error);

/* Returns the largest entry of |A - L U|, or of |P A - L U| with pivots counted
   from 1, computed in double by OpenBLAS. The result is NaN if a factor has an
   entry that is not finite, if memory is missing, or if a pivot is not a row. z
   has the factors in the form of crout.h if crout is true, else L \ U with unit
   L. */
template <class T>
double largest_defect(int64_t n, const T *a, const T *z, bool crout,
                      const int64_t *pivots);

/* Turns LAPACK's pivots, counted from 1, or NULL, into a permutation: row i of
   P A is row rows[i] of A, counted from 0. Returns false if a pivot is not a
   row. */
bool permutation(int64_t n, const int64_t *pivots, std::vector<int64_t> *rows);

/* Returns the largest |a_ij|, or NaN if one is NaN. */
template <class T> double largest_entry(int64_t count, const T *a);

#endif
