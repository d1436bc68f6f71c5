/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's arrays where the rest of the library can read them: those in
   the memory of a device are copied, all others are taken as they are. */
#ifndef HONE_API_PLACE_H
#define HONE_API_PLACE_H

#include "refine/place.h"

/* What is given with right-hand sides. */
typedef struct hone_vectors {
  int64_t n, nrhs;
  const double *b, *x0;
  double *x;
  int64_t ldb, ldx, ldx0;
  hone_column *columns;
} hone_vectors;

/* What a solver keeps for it. Begins as zeros. */
typedef struct hone_stage {
  hone_mem *mem;
  hone_twin twin;                /* A, where it lies on a device, */
  const double *a;               /* as the caller named it, */
  int64_t lda;                   /* with this leading dimension */
  double *room[3];               /* copies of b, x, x0: n x nrhs */
  hone_column *columns;          /* nrhs */
  int64_t rooms[3], column_room; /* bytes */
  hone_vectors given;            /* by the caller; */
  hone_place x_place, columns_place;
  bool x_there, columns_there; /* are those on a device? */
} hone_stage;

/* The vectors become copies where they have to. The caller's are kept until
   hone_stage_return. */
int hone_stage_vectors(hone_stage *stage, hone_mem *mem, hone_vectors *v);
/* x and columns, if status >= 0, to where the caller wants them. Returns
   status, or why that failed. */
int hone_stage_return(hone_stage *stage, int status);
/* a, n x n, becomes its twin's copy, still empty: hone_twin_await. */
int hone_stage_matrix(hone_stage *stage, hone_mem *mem, int64_t n,
                      const double **a, int64_t *lda);
void hone_stage_destroy(hone_stage *stage);

#endif
