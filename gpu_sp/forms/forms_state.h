/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a CUDA engine's state that belongs to look-ahead and to the
   methods of forms/ (forms.h). Included by state.h alone. */
#ifndef HONE_CUDA_FORMS_STATE_H
#define HONE_CUDA_FORMS_STATE_H

#include "gpu_sp/calls.h"
#include "gpu_sp/factor/factor.h"

/* A stream, and the memory that work on an outer panel needs on it: the
   operands L and U in 16-bit parts, and workspace of the forms. */
struct hone_cuda_queue {
  cudaStream_t stream;
  cublasHandle_t handle;
  void *lp, *up;    /* see struct hone_cuda */
  int64_t ldl, ldu; /* 16-bit numbers from row to row of them */
  /* Workspace of the methods of forms/, on the device; NULL: not needed. right,
     defect and step follow each other in memory, with room for HONE_PANEL rows
     or columns of F each. */
  float *right;         /* a block row or column before it is solved for */
  float *defect, *step; /* of a correction */
  float *lower, *upper; /* L11, U11, the other triangle filled with zeros */
  int *changed;         /* nonzero: a correction was not small */
  int *seen;            /* pinned: the host's copies of flags;
                           HONE_CROUT_FLAGS */
};

enum { HONE_CUDA_PARTS = 16 }; /* thread blocks that copy a diagonal block */

/* A diagonal block and what the CPU computes from it, row by row, HONE_PANEL x
   HONE_PANEL floats each; in pinned memory, which kernels read and write. */
struct hone_cuda_block {
  float lu[HONE_PANEL * HONE_PANEL];    /* in: the block; out: its LU */
  float upper[HONE_PANEL * HONE_PANEL]; /* inv(U11) */
  float lower[HONE_PANEL * HONE_PANEL]; /* inv(L11) */
  int row[HONE_PANEL];                  /* row i was row row[i] */
  unsigned arrived[HONE_CUDA_PARTS];    /* for each part of lu, the ticket of
                                           the block that it belongs to */
  unsigned ticket; /* of the block that the CPU waits for; blocks are
                      numbered */
};

struct hone_cuda_forms {
  void *memory; /* on the device: everything below that lies there */
  void *pinned;
  float *constants; /* 1, -1, 0 */
  float *inverse;   /* inv(L11) of every inner panel, row by row; NULL: block
                       rows do not start from it */
  float *upper;     /* inv(U11) of the present inner panel */
  float *identity;  /* L11 and the unit matrix, side by side */
  hone_cuda_queue side;   /* look-ahead: factors panels while 'work' updates */
  hone_cuda_queue main;   /* the stream 'work' */
  hone_cuda_queue ahead;  /* LU: updates the columns of the next panel by the
                             inner panels of the one that is being factored, by
                             the L of side or main. Or it is main once more */
  int slots;              /* so many inner panels of L have room in side.lp, n
                             rows each: all of an outer panel, or 1 */
  hone_cuda_block *block; /* pinned */
  cudaEvent_t ready;      /* on work or ahead: the next panel's columns are up
                             to date */
  int64_t ready_at;       /* the first of those columns; -1: none */
  cudaEvent_t busy;     /* on work, timed: end of the updates that were enqueued
                           when the outer panel began */
  cudaEvent_t out, in;  /* on side, timed: a block leaves for the CPU; it is
                           back */
  cudaEvent_t factored; /* on side: the panel is factored */
  cudaEvent_t moved;    /* on side: so is an inner panel, and rows have moved */
  cudaEvent_t behind;   /* on work: the stream ahead may go on with the columns
                           of the panel behind the next one */
  int64_t behind_at;    /* the first of those columns; -1: none */
  cudaEvent_t updated;  /* on side: the other columns of the outer panel are up
                           to date with an inner panel, or L is split */
  cudaEvent_t read;     /* on ahead: it has read the operand L of main */
  cudaEvent_t done;     /* on ahead: all that it does beside a panel is done */
  cudaEvent_t in_order; /* on work: rows have moved as the last composed moves
                           say */
  cudaEvent_t composed; /* on side: a panel's moves are composed, */
  int composed_panel;   /* of this panel; -1: of none */
  cudaEvent_t used;     /* on ahead: the L of an inner panel has been
                           multiplied, if slots is 1 */
};

#endif
