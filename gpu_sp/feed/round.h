/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that scale columns of A, which feed.cu has copied to the device,
   round them to floats and write them into F, row by row. Read next: round.cu
   for the kernels, then factor/factor.h for what becomes of F. */
#ifndef HONE_CUDA_ROUND_H
#define HONE_CUDA_ROUND_H

#include "gpu_sp/launch.h"

/* Matrices are of double or, column-major likewise, of pairs (re, im); leading
   dimensions of A count entries, those of F floats. */

/* Columns j .. j+w-1 of a double-precision matrix, and of those its first
   'rows' rows. Column-major on the device; a points to column 0. */
struct hone_double_columns {
  const hone_entry *a; /* rows x (j+w), lda */
  int64_t lda, rows;
  int64_t j, w;
};

/* The scaling of a matrix: s_ij = row[i] a_ij col[j]. Powers of two, doubles
   on the device; NULL: not scaled. */
struct hone_device_scaling {
  const double *row; /* one for each row */
  const double *col; /* one for each column, counted from column 0 */
};

/* Where rounded columns go: row i of A becomes row place[i] of F. */
struct hone_rounded {
  float *f; /* F, on the device, row by row: see factor.h */
  int64_t ldf;
  const int *place; /* device; NULL: row i stays row i */
  unsigned *top;    /* device: raised to the bits of the largest magnitude
                       written; to those of Inf where one is not finite */
  unsigned long long *flushed; /* device: raised by the number of entries that
                                  were not 0 and became 0; NULL for floats */
};

/* F[place[i], j..j+w-1] = S[i, j..j+w-1], scaled and rounded to float.
   Magnitudes below FLT_MIN become 0; complex: those of parts. */
cudaError_t hone_cuda_round(const hone_double_columns &a,
                            const hone_device_scaling &scaling,
                            const hone_rounded &to, cudaStream_t stream);

/* Rounds the lower triangle alone of a symmetric or Hermitian S: row c of F,
   from the diagonal on, becomes the conjugate of column c of S, for the columns
   'number' .. number+w-1, which are the columns j .. j+w-1 of a and of
   scaling.col. In front of the diagonal, from column 'number' on, F is 0.
   to.place is not read. */
cudaError_t hone_cuda_round_triangle(const hone_double_columns &a,
                                     int64_t number,
                                     const hone_device_scaling &scaling,
                                     const hone_rounded &to,
                                     cudaStream_t stream);

/* F[place[i], j..j+w-1] = the n x w entries at a, which are the columns
   j .. j+w-1 alone, column-major, lda. Neither scaled nor flushed. */
cudaError_t hone_cuda_transpose(int64_t n, const hone_single *a, int64_t lda,
                                int64_t j, int64_t w, const hone_rounded &to,
                                cudaStream_t stream);

/* Does so with floats, which are neither scaled nor flushed. */
cudaError_t hone_cuda_take_triangle(int64_t n, const hone_single *a,
                                    int64_t lda, int64_t j, int64_t w,
                                    const hone_rounded &to,
                                    cudaStream_t stream);

/* a_ij = conj(a_ji) for i < j: on the device, n x n, lda. */
cudaError_t hone_cuda_mirror(int64_t n, hone_entry *a, int64_t lda,
                             cudaStream_t stream);

/* Sets *differs to 1, on the device, unless a_ij = conj(a_ji) for all i and j:
   on the device, n x n, lda. */
cudaError_t hone_cuda_compare_triangles(int64_t n, const hone_entry *a,
                                        int64_t lda, int *differs,
                                        cudaStream_t stream);

#endif
