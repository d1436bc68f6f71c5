/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a diagonal block in single precision, and the inverses of its
   triangles, on one core of the CPU. A GPU waits for the result
   (gpu_sp/forms/diagonal.cu), so no work goes to other threads and nothing is
   transposed. The file is in base/ because it needs no CUDA, and engines do not
   include each other. Read next: block_lu.c. */
#ifndef HONE_BLOCK_LU_H
#define HONE_BLOCK_LU_H

#include <stdbool.h>

/* The most rows of a block, and its leading dimension. All matrices here are
   HONE_BLOCK x HONE_BLOCK floats, row by row. Entries outside of the first w
   rows and columns are overwritten. */
enum { HONE_BLOCK = 128 };

/* P A = L U in place, L with a unit diagonal, by partial pivoting, or without
   pivoting if natural. NaN counts as larger than any number, so that it is not
   hidden. Row i is row row[i] of A, i < w. Returns the first column whose pivot
   is zero, or -1; after a zero pivot the factors are useless. */
int hone_block_lu(int w, bool natural, float *a, int *row);

/* Inverses of the triangles of that LU, whose pivots must not be zero; zeros
   outside of the triangle and beyond w. inv(U) U = I and L inv(L) = I hold as
   accurately as rounding allows, since the products wanted are A inv(U) and
   inv(L) A. */
void hone_block_upper(int w, float *a, float *inverse);
void hone_block_lower(int w, float *a, float *inverse);

/* The three functions as a processor without AVX2 and FMA runs them; the
   above choose by the processor at hand. */
typedef struct hone_block_code {
  int (*lu)(int w, bool natural, float *a, int *row);
  void (*upper)(int w, float *a, float *inverse);
  void (*lower)(int w, float *a, float *inverse);
} hone_block_code;
extern const hone_block_code hone_block_portable;

#endif
