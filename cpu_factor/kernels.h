/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of LU and Cholesky factorizations on one thread. One table of
   functions for each precision and instruction set; factor.c deals the work to
   threads. Every matrix is stored by columns. Each entry of a result is
   computed by the same operations in the same order however a matrix is cut
   into rows and columns. Next to read: kernels.c. */
#ifndef HONE_FACTOR_KERNELS_H
#define HONE_FACTOR_KERNELS_H

#include "cpu_factor/factor.h"

/* For complex entries there are tables of the same form: L^T is L^H in
   Cholesky's factorization, and magnitudes of pivots are |re| + |im|. */

/* The most columns of a panel, and so the longest inner dimension. */
enum { HONE_PANEL_MOST = 192 };

/* A block of A stored by columns, or of its transpose: entry (i, j) is
   at[i * row + j * column]. */
typedef struct hone_strided {
  const void *at;
  int64_t row, column;
  bool conjugate; /* complex: of its conjugate */
} hone_strided;

struct hone_factor_kernels {
  size_t size; /* bytes of an entry */
  /* Bytes of an entry of A that is packed; complex: its parts apart, with their
     sum. */
  size_t packed;
  int64_t space_rows; /* the most rows of A that are packed at once */
  /* C -= A B; C is m x w, the inner dimension k <= HONE_PANEL_MOST. If
     'below' >= 0, entry (i, j) of C is wanted only where i + below >= j; others
     may be changed or not. space: k times min(m rounded up to 32, space_rows)
     packed entries; NULL: A is not packed, or a strip at a time, which gives
     the same bits. */
  void (*subtract)(int64_t m, int64_t w, int64_t k, const void *a, int64_t lda,
                   hone_strided b, int64_t below, void *c, int64_t ldc,
                   void *space);
  /* B = inv(L) B; L is the unit lower triangle of k x k, k <= HONE_PANEL_MOST,
     B is k x w. */
  void (*solve_lower)(int64_t k, int64_t w, const void *l, int64_t ldl, void *b,
                      int64_t ldb);
  /* Exchanges row i with row pivot[i] - 1 for i = from .. to - 1, in w columns.
   */
  void (*exchange)(int64_t w, void *f, int64_t ldf, int64_t from, int64_t to,
                   const int *pivot);
  /* P F = L U for a panel F of m x w, w <= HONE_PANEL_MOST, with partial
     pivoting: the first of the largest entries, NaN being larger than any
     number. pivot[i], from 1, counts rows of F. Returns the first column whose
     pivot is zero, or -1; below such a pivot L is zero. */
  int64_t (*lu)(int64_t m, int64_t w, void *f, int64_t ldf, int *pivot);
  /* F = L L^T for the panel of the lower triangle; the entries above the
     diagonal may be changed. Returns the first column whose pivot is not
     positive and leaves that pivot there, or -1. */
  int64_t (*cholesky)(int64_t m, int64_t w, void *f, int64_t ldf);
};

extern const hone_factor_kernels hone_factor_base_32, hone_factor_base_64,
    hone_factor_avx2_32, hone_factor_avx2_64, hone_factor_avx512_32,
    hone_factor_avx512_64;

#endif
