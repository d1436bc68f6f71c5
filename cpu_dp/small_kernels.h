/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky factorizations of small matrices in double precision, and
   solutions with them, on one core. LAPACK's routines spend most of their time
   outside of products there. Next to read: small_kernels.c. */
#ifndef HONE_SMALL_KERNELS_H
#define HONE_SMALL_KERNELS_H

#include "base/entry.h"

enum {
  HONE_SMALL_DOUBLE_UP_TO = HONE_PARTS == 1 ? 256 : 0, /* the largest order */
  HONE_SMALL_BLOCK = 8 /* rows and columns are padded to multiples of it */
};

/* Compiled once for each instruction set from small_kernels.c. f is an array of
   order n, padded by zeros to a multiple of HONE_SMALL_BLOCK rows and columns;
   ld is such a multiple, too. Largest magnitudes are NaN if an entry is NaN or
   Inf. */
typedef struct hone_small_kernels {
  /* Copies A, or its upper triangle, and pads it. Returns the largest
     magnitude. */
  double (*load)(int64_t n, const double *a, int64_t lda, bool upper, double *f,
                 int64_t ld);
  /* P S = L U with partial pivoting, in the form that LAPACK's DGETRF gives it.
     Returns the first column whose pivot is zero, or -1. *largest: of U. */
  int64_t (*lu)(int64_t n, double *f, int64_t ld, int *ipiv, double *largest);
  /* S = U^T U, from the upper triangle of S, as DPOTRF does. Returns the first
     column whose pivot is not positive, where it ends, or -1. */
  int64_t (*cholesky)(int64_t n, double *f, int64_t ld, double *largest);
  /* v = inv(op(S)) v for k columns. ipiv: NULL for Cholesky's factors. */
  void (*solve)(int64_t n, const double *f, int64_t ld, const int *ipiv,
                bool trans, int64_t k, double *v, int64_t ldv);
} hone_small_kernels;

extern const hone_small_kernels hone_small_base, hone_small_avx2,
    hone_small_avx512;

#endif
