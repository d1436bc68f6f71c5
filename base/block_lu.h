/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a small block in single precision, and the inverses of its triangles,
   on one core. A GPU waits for it (gpu_sp/forms/diagonal.cu), so that nothing
   is handed to other threads and nothing is transposed. It stands in base/
   because it needs no CUDA, and engines do not include each other. */
#ifndef HONE_BLOCK_LU_H
#define HONE_BLOCK_LU_H

#include <stdbool.h>

/* Rows of a block at most, and how far its rows are apart. All matrices here
   are HONE_BLOCK x HONE_BLOCK floats, row by row; what lies outside of the
   first w rows and columns is overwritten. */
enum { HONE_BLOCK = 128 };

/* P A = L U in place, L with a unit diagonal. Partial pivoting, for which NaN
   is larger than any number so that it is not hidden; natural: none. row[i],
   i < w: which row of A became row i. Returns the first column whose pivot is
   zero, or -1; after a zero pivot the factors are of no use. */
int hone_block_lu(int w, bool natural, float *a, int *row);

/* From its result; zeros outside of the triangle and beyond w. No pivot may be
   zero. The first as accurate from the left, inv(U) U = I, the second from the
   right, L inv(L) = I, as rounding allows: they stand in A inv(U), inv(L) A. */
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
