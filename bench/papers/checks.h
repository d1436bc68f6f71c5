/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_papers computes this on the CPU around the factorizations: Igual's
   refinement, and how far L U is from A. A NaN comes out as NaN everywhere. */
#ifndef HONE_BENCH_PAPERS_CHECKS_H
#define HONE_BENCH_PAPERS_CHECKS_H

#include <cstdint>
#include <vector>

/* Igual's algorithm 1: first solution and corrections with single-precision
   factors on the CPU, residuals by DGEMV, until ||r|| / ||x|| < sqrt(2^-52)
   (infinity norms; he does not say which), then two iterations more. His rule
   depends on the units of A, and he has no bound: here 30 iterations. */
struct Refined {
  int iterations = 0;
  bool stopped = false; /* by his rule */
};
/* a: n x n, packed. f: n x n, its factors: L below and on the diagonal
   (Cholesky, pivots NULL) or L \ U with LAPACK's pivots. x: out. */
Refined igual_refine(int64_t n, const double *a, const float *f,
                     const int *pivots, const double *b, double *x);

/* ||A v - P^T L U v|| / (||A|| ||v||), infinity norms, v of ones and minus
   ones: whether factors are those of A, in two passes over them. */
double factors_error(int64_t n, const float *a, const float *f,
                     const int *pivots, int threads);

/* The larger of the two in error, NaN once one is. */
void note_error(double e, double *error);

/* Largest |A - L U| (|P A - L U| with pivots from 1) of all entries, in double
   by OpenBLAS; NaN when a factor has an entry that is not finite, when there
   is no memory, or when a pivot is not a row. z: as crout.h has it where
   crout, else L \ U with L's diagonal ones. */
template <class T>
double largest_defect(int64_t n, const T *a, const T *z, bool crout,
                      const int64_t *pivots);

/* Row i of P A is row rows[i] of A, both from 0, pivots from 1 or NULL; false:
   a pivot is not a row. */
bool permutation(int64_t n, const int64_t *pivots, std::vector<int64_t> *rows);

/* Largest |a_ij|; NaN when one is NaN. */
template <class T> double largest_entry(int64_t count, const T *a);

#endif
