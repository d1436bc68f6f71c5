/* SPDX-License-Identifier: BSD-3-Clause */
/* What the C forms share: LAPACKE's error codes, its look for NaN, and the
   turning of row-major matrices. */
#ifndef HONE_LAPACK_LAPACKE_H
#define HONE_LAPACK_LAPACKE_H

#include "lapack/dropin.h"

#define HONE_EXPORT __attribute__((visibility("default")))

/* LAPACKE's own numbers. */
enum {
  LAPACK_ROW_MAJOR = 101,
  LAPACK_COL_MAJOR = 102,
  LAPACK_WORK_MEMORY_ERROR = -1010,
  LAPACK_TRANSPOSE_MEMORY_ERROR = -1011
};

/* Tells of an error as LAPACKE does; returns info. */
int hone_lapacke_error(const void *caller, const char *name, int info);
/* What a Fortran routine's INFO is when the layout is the first argument. */
static inline int hone_lapacke_info(int info) {
  return info < 0 ? info - 1 : info;
}
static inline bool hone_lapacke_layout(int layout) {
  return layout == LAPACK_ROW_MAJOR || layout == LAPACK_COL_MAJOR;
}

/* Is NaN looked for (LAPACKE_set_nancheck, LAPACKE_NANCHECK=0)? */
bool hone_lapacke_nancheck(const void *caller);
/* Has the rows x columns matrix a NaN? Only where sizes make sense. */
bool hone_lapacke_ge_nan(int layout, int rows, int columns, const double *a,
                         int lda);
/* The same of one triangle of an n x n matrix. */
bool hone_lapacke_po_nan(int layout, char uplo, int n, const double *a,
                         int lda);

/* A row-major rows x columns matrix by columns, ld max(1, rows), in new memory;
   NULL: none. To be freed. */
double *hone_lapacke_turn(int rows, int columns, const double *a, int lda);
/* And back. */
void hone_lapacke_turn_back(int rows, int columns, const double *turned,
                            double *a, int lda);
/* Room for such a matrix, contents undefined. */
double *hone_lapacke_room(int rows, int columns);

#endif
