/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of the factorization that a caller may choose beside the default
   (hone.h: options.diagonal, options.sections), as the factorization and the
   files that implement them see each other: cuda_diagonal.cu (the diagonal
   block on the CPU), cuda_sections.cu (the rows of U and the columns of L).

   Included by cuda_state.h alone. */
#ifndef HONE_CUDA_FORMS_H
#define HONE_CUDA_FORMS_H

#include "gpu_sp/calls.h"
#include "gpu_sp/kernels.h"

struct hone_cuda;

/* What one stream needs to work on an outer panel: pieces of L and U, and,
   for the forms, room for sections. */
struct hone_cuda_lane {
  cudaStream_t stream;
  cublasHandle_t handle;
  void *lp, *up; /* see struct hone_cuda */
  int64_t ldl, ldu;
  /* Of the forms; NULL: not needed. room floats each but for the triangles */
  float *right;         /* what a section was: the right-hand side */
  float *defect, *step; /* of a correction; behind right, in this order */
  float *lower, *upper; /* L11, U11, the other triangle filled with zeros */
  int *changed;         /* device: a correction was not small */
  int *seen;            /* pinned: the same; HONE_CROUT_FLAGS */
};

enum { HONE_CUDA_PARTS = 16 }; /* that a block comes in */

/* A diagonal block and what the CPU makes of it, row by row, HONE_PANEL x
   HONE_PANEL; pinned, and read and written by kernels. */
struct hone_cuda_block {
  float lu[HONE_PANEL * HONE_PANEL];    /* in: the block; out: its LU */
  float upper[HONE_PANEL * HONE_PANEL]; /* inv(U11) */
  float lower[HONE_PANEL * HONE_PANEL]; /* inv(L11) */
  int row[HONE_PANEL];                  /* row i was row row[i] */
  unsigned arrived[HONE_CUDA_PARTS];    /* the ticket of the block last in lu */
  unsigned ticket;                      /* of the block on its way; the CPU's */
};

struct hone_cuda_forms {
  void *memory; /* on the device: everything below that is there */
  void *pinned;
  float *constants; /* 1, -1, 0 */
  float *inverse;   /* inv(L11) of every inner panel, row by row; where sections
                       are seeded */
  float *upper;     /* inv(U11) of the present one */
  float *identity;  /* L11 beside the unit matrix */
  int64_t room;
  hone_cuda_lane side; /* panels, while 'work' updates; work's for the rest */
  hone_cuda_lane main;
  hone_cuda_block *block;
  cudaEvent_t ready;    /* on work: the next panel's columns are up to date */
  int64_t ready_at;     /* which these are; -1: none */
  cudaEvent_t busy;     /* on work, timed: all there is to hide behind */
  cudaEvent_t out, in;  /* on side, timed: begin and end of its way */
  cudaEvent_t factored; /* on side: the panel is done */
};

/* Device memory, by what c->choices asks for. */
int64_t hone_cuda_forms_bytes(const hone_cuda *c);
/* Streams, events, handles; after the rest of c is there. */
int hone_cuda_forms_create(hone_cuda *c);
void hone_cuda_forms_destroy(hone_cuda *c);
/* Before a factorization: what an interrupted one left is waited for, the
   account is cleared. */
int hone_cuda_forms_clear(hone_cuda *c);

/* ---- The diagonal block on the CPU (cuda_diagonal.cu) ------------------- */

/* Is the panel at column k done by way of the CPU? */
bool hone_cuda_by_cpu(const hone_cuda *c, int64_t k);
/* What hone_cuda_panel does, for inner panel 'index' of all. Waits. */
int hone_cuda_diagonal(hone_cuda *c, const hone_cuda_lane &on, int index,
                       int64_t k, int64_t w, enum hone_pivoting pivoting);

/* ---- Sections (cuda_sections.cu) ---------------------------------------- */

/* L21 = A21 inv(U11) in place, from inv(U11) by the CPU; what can be done
   before that is there, and the rest. */
int hone_cuda_section_l_begin(hone_cuda *c, const hone_cuda_lane &on, int64_t k,
                              int64_t w);
int hone_cuda_section_l(hone_cuda *c, const hone_cuda_lane &on, int64_t k,
                        int64_t w);
/* What hone_cuda_rows does, by the form that was chosen. */
int hone_cuda_section_u(hone_cuda *c, const hone_cuda_lane &on, int index,
                        int64_t k, int64_t w, int64_t c0, int64_t c1,
                        const hone_piece_scale *scale, hone_piece_place place);
/* inv(L11) of inner panel 'index', from F, where the CPU does not make it. */
int hone_cuda_section_seed(hone_cuda *c, const hone_cuda_lane &on, int index,
                           int64_t k, int64_t w);

#endif
