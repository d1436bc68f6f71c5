/* SPDX-License-Identifier: BSD-3-Clause */
/* The room forms has the methods of the publications, which a caller may choose
   instead of the default (hone.h: options.diagonal, options.sections), in
   single precision: diagonal blocks factored on the CPU, and block rows of U
   and block columns of L computed by iteration. A block row is the part of 128
   rows of U on the right of their diagonal block, a block column the part of
   128 columns of L below it. Declared here is what the factorization and those
   files need of each other. Read next: diagonal.cu and block_lu.h for the
   diagonal blocks, block_rows.cu for the iterations, crout.h for the iterative
   Crout method.

   Included by state.h alone. */
#ifndef HONE_CUDA_FORMS_H
#define HONE_CUDA_FORMS_H

#include "gpu_sp/calls.h"
#include "gpu_sp/factor/factor.h"

struct hone_cuda;

/* A stream, and the memory that work on an outer panel needs on it: the split
   operands L and U, and workspace of the forms. */
struct hone_cuda_queue {
  cudaStream_t stream;
  cublasHandle_t handle;
  void *lp, *up; /* see struct hone_cuda */
  int64_t ldl, ldu;
  /* Workspace of the forms on the device; NULL: not needed. right, defect and
     step have room for HONE_PANEL rows or columns of F each, in this order */
  float *right;         /* a block row or column before it is solved for */
  float *defect, *step; /* of a correction */
  float *lower, *upper; /* L11, U11, the other triangle filled with zeros */
  int *changed;         /* a correction was not small */
  int *seen;            /* pinned: copies of flags; HONE_CROUT_FLAGS */
};

enum { HONE_CUDA_PARTS = 16 }; /* thread blocks that copy a diagonal block */

/* A diagonal block and what the CPU computes from it, row by row, HONE_PANEL x
   HONE_PANEL floats each; in pinned memory, which kernels read and write. */
struct hone_cuda_block {
  float lu[HONE_PANEL * HONE_PANEL];    /* in: the block; out: its LU */
  float upper[HONE_PANEL * HONE_PANEL]; /* inv(U11) */
  float lower[HONE_PANEL * HONE_PANEL]; /* inv(L11) */
  int row[HONE_PANEL];                  /* row i was row row[i] */
  unsigned arrived[HONE_CUDA_PARTS];    /* the ticket of the block last in lu */
  unsigned ticket; /* the CPU's: of the block that is being copied */
};

struct hone_cuda_forms {
  void *memory; /* on the device: everything below that lies there */
  void *pinned;
  float *constants; /* 1, -1, 0 */
  float *inverse;   /* inv(L11) of every inner panel, row by row; where block
                       rows start from it */
  float *upper;     /* inv(U11) of the present inner panel */
  float *identity;  /* L11 and the unit matrix, side by side */
  int64_t room;
  hone_cuda_queue side;   /* look-ahead: factors panels while 'work' updates */
  hone_cuda_queue main;   /* the stream 'work' */
  hone_cuda_block *block; /* pinned */
  cudaEvent_t ready;      /* on work: the next panel's columns are up to date */
  int64_t ready_at;       /* the first of those columns; -1: none */
  cudaEvent_t busy;     /* on work, timed: end of the updates that were enqueued
                           when the outer panel began */
  cudaEvent_t out, in;  /* on side, timed: a block leaves; it is back */
  cudaEvent_t factored; /* on side: the panel is factored */
};

/* Bytes of device memory that c->choices need. */
int64_t hone_cuda_forms_bytes(const hone_cuda *c);
/* Creates streams, events and handles, after the other members of c. */
int hone_cuda_forms_create(hone_cuda *c);
void hone_cuda_forms_destroy(hone_cuda *c);
/* Called before a factorization: waits for what an interrupted one enqueued,
   and clears the account. */
int hone_cuda_forms_clear(hone_cuda *c);

/* ---- The diagonal block on the CPU (diagonal.cu) ------------------------ */

/* Does the CPU factor the diagonal block at column k? */
bool hone_cuda_by_cpu(const hone_cuda *c, int64_t k);
/* Does what hone_cuda_panel does, for inner panel number 'index' of the matrix.
   Waits. */
int hone_cuda_diagonal(hone_cuda *c, const hone_cuda_queue &on, int index,
                       int64_t k, int64_t w, enum hone_pivoting pivoting);

/* ---- Block rows and block columns (block_rows.cu) ------------------------ */

/* L21 = A21 inv(U11) in place, by the CPU's inv(U11): _begin is what can be
   done before the inverse is there. */
int hone_cuda_block_column_begin(hone_cuda *c, const hone_cuda_queue &on,
                                 int64_t k, int64_t w);
int hone_cuda_block_column_l(hone_cuda *c, const hone_cuda_queue &on, int64_t k,
                             int64_t w);
/* Does what hone_cuda_rows does, by the form that was chosen. */
int hone_cuda_block_row_u(hone_cuda *c, const hone_cuda_queue &on, int index,
                          const hone_u_rows &rows, const hone_operand &to);
/* Computes inv(L11) of inner panel number 'index' from F, where the CPU does
   not. */
int hone_cuda_block_row_seed(hone_cuda *c, const hone_cuda_queue &on, int index,
                             int64_t k, int64_t w);

#endif
