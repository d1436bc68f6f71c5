/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines of LAPACK's C interface share LAPACKE's error codes, its search
   for NaN, and the transposition of row-major matrices. */
#ifndef HONE_LAPACK_LAPACKE_H
#define HONE_LAPACK_LAPACKE_H

#include "lapack/dropin.h"

#define HONE_EXPORT __attribute__((visibility("default")))

/* These values are LAPACKE's. */
enum {
  LAPACK_ROW_MAJOR = 101,
  LAPACK_COL_MAJOR = 102,
  LAPACK_WORK_MEMORY_ERROR = -1010,
  LAPACK_TRANSPOSE_MEMORY_ERROR = -1011
};

/* Reports an error as LAPACKE does; returns info. */
int hone_lapacke_error(const void *caller, const char *name, int info);
/* Turns a Fortran routine's INFO into that of a routine whose first argument is
   the layout. */
static inline int hone_lapacke_info(int info) {
  return info < 0 ? info - 1 : info;
}
static inline bool hone_lapacke_layout(int layout) {
  return layout == LAPACK_ROW_MAJOR || layout == LAPACK_COL_MAJOR;
}

/* Tells whether arguments are searched for NaN (LAPACKE_set_nancheck,
   LAPACKE_NANCHECK=0). */
bool hone_lapacke_nancheck(const void *caller);
/* Tells whether a rows x columns matrix has a NaN. Where lda is too small the
   answer is false. */
bool hone_lapacke_ge_nan(int layout, int rows, int columns, const double *a,
                         int lda);
/* Does so for one triangle of an n x n matrix. */
bool hone_lapacke_po_nan(int layout, char uplo, int n, const double *a,
                         int lda);

/* Copies a row-major rows x columns matrix into new memory, column by column
   with ld max(1, rows). The result is to be freed; NULL: no memory. */
double *hone_lapacke_turn(int rows, int columns, const double *a, int lda);
/* Copies such a matrix back, row by row. */
void hone_lapacke_turn_back(int rows, int columns, const double *turned,
                            double *a, int lda);
/* Do so with one triangle of an n x n matrix; the other is neither read nor
   written. */
double *hone_lapacke_turn_triangle(bool upper, int n, const double *a, int lda);
void hone_lapacke_turn_triangle_back(bool upper, int n, const double *turned,
                                     double *a, int lda);
/* Allocates such a matrix, with undefined contents. */
double *hone_lapacke_room(int rows, int columns);

#endif
