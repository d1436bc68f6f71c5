/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of the triangular solves on several devices, in double arithmetic.
   Declared for solve.cu.

   Vectors of n entries, k of them together, lie by panels of rows: those of
   panel p, w rows, are at k p nb, the first vector's w entries, then the
   second's, and so on. What a device sends of a panel is one piece.
   Transposes are plain ones, of complex entries too. */
#ifndef HONE_SEVERAL_SWEEPS_H
#define HONE_SEVERAL_SWEEPS_H

#include "gpu_sp/launch.h"

/* The four triangles, by the order in which their panels are solved for. */
enum hone_sweep_kind {
  HONE_SWEEP_L,  /* inv(L): from the first panel to the last */
  HONE_SWEEP_U,  /* inv(U): from the last to the first */
  HONE_SWEEP_UT, /* inv(U^T): from the first to the last */
  HONE_SWEEP_LT  /* inv(L^T): from the last to the first */
};

/* A device's columns of a panel: F is kept row by row, and column 0 of 'f' is
   the first of the panel, row 0 the first of S. */
struct hone_panel_columns {
  const float *f;
  int64_t ld, k, w; /* floats from row to row of F; the panel's first row; its
                       rows and columns */
};

/* x = inv(T) (x - sums - the gathered sums) for the panel's rows, T the
   triangle's diagonal block; k vectors. */
struct hone_panel_solve {
  enum hone_sweep_kind kind;
  const double *inverse;    /* of the panel's blocks of HONE_PANEL rows: that
                               of U^T or of L^T (solve/triangles.h) */
  hone_entry *x;            /* of the panel: w entries of each vector */
  const hone_entry *sums;   /* likewise */
  const hone_entry *gather; /* likewise, from 'sources' devices, 'apart' entries
                               from one to the next */
  int sources;
  int64_t apart;
  int k;
};
cudaError_t hone_several_solve_panel(const hone_panel_columns &panel,
                                     const hone_panel_solve &solve,
                                     cudaStream_t stream);

/* sums += F[r0:r1, panel] x for k vectors: x of the panel, sums of all rows. */
struct hone_panel_product {
  const hone_entry *x;
  hone_entry *sums;
  int k;
  int64_t n, nb; /* of S; columns of a panel */
};
cudaError_t hone_several_add_rows(const hone_panel_columns &panel,
                                  const hone_panel_product &product, int64_t r0,
                                  int64_t r1, cudaStream_t stream);

/* sums += F[panel's rows, c0:c1]^T x for k vectors, where c0 and c1 count the
   columns of F, which is all that the device has: column j is in the panel
   j / nb * of + first. */
struct hone_dealt {
  int of, first;
};
cudaError_t hone_several_add_columns(const hone_panel_columns &rows,
                                     const hone_panel_product &product,
                                     const hone_dealt &deal, int64_t c0,
                                     int64_t c1, cudaStream_t stream);

#endif
