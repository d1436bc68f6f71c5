/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's arrays where the rest of the library can read them: those in
   the memory of a device are copied, all others are taken as they are. */
#ifndef HONE_CALLER_ARRAYS_H
#define HONE_CALLER_ARRAYS_H

#include "base/device_memory.h"

/* What is given with right-hand sides. */
typedef struct hone_vectors {
  int64_t n, nrhs;
  const double *b, *x0;
  double *x;
  int64_t ldb, ldx, ldx0;
  hone_column *columns;
} hone_vectors;

/* What a solver keeps for it. Begins as zeros. */
typedef struct hone_arrays {
  hone_mem *mem;
  hone_host_copy host_copy;      /* A, where it lies on a device, */
  const double *a;               /* as the caller named it, */
  int64_t lda;                   /* with this leading dimension */
  double *room[3];               /* copies of b, x, x0: n x nrhs */
  hone_column *columns;          /* nrhs */
  int64_t rooms[3], column_room; /* bytes */
  hone_vectors given;            /* by the caller; */
  hone_device_memory x_place, columns_place;
  bool x_there, columns_there; /* are those on a device? */
} hone_arrays;

/* The vectors become copies where they have to. The caller's are kept until
   hone_arrays_return. */
int hone_arrays_take_vectors(hone_arrays *stage, hone_mem *mem,
                             hone_vectors *v);
/* x and columns, if status >= 0, to where the caller wants them. Returns
   status, or why that failed. */
int hone_arrays_return(hone_arrays *stage, int status);
/* a, n x n, becomes its twin's copy, still empty: hone_host_copy_await. */
int hone_arrays_take_matrix(hone_arrays *stage, hone_mem *mem, int64_t n,
                            const double **a, int64_t *lda);
void hone_arrays_destroy(hone_arrays *stage);

#endif
