/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocked factorizations with outer panels, P S = L U and S = U^H U: the
   loops over inner panels and strips, and look-ahead, which both have in
   common (outer_panels.cu), call the steps of one of them (lu.cu, cholesky.cu).
   The loop over block columns (loop.h) calls these functions. Cholesky's has
   block rows: where a block column is updated, its columns c0 .. c1-1, there it
   is those rows, in all columns from the diagonal on. */
#ifndef HONE_CUDA_OUTER_PANELS_H
#define HONE_CUDA_OUTER_PANELS_H

#include "gpu_sp/state.h"

/* The block of F with the rows i .. i+m-1 and the columns c0 .. c1-1, from
   which a product is subtracted. The operand up holds the parts of the columns
   from 'first' on. */
struct hone_f_block {
  int64_t i, m, c0, c1, first;
};

/* The steps of one factorization. They are enqueued on a queue, and use its
   operands. */
struct hone_cuda_steps {
  /* Factors inner panel 'inner' of p and updates the rest of p. */
  int (*factor_inner)(hone_cuda *c, const hone_cuda_queue &on,
                      const hone_cuda_panel_info *p, int inner);
  /* Makes the left operand of all inner panels, for an update of the columns
     c0 .. c1-1 on the queue main. */
  int (*split)(hone_cuda *c, int panel, int64_t c0, int64_t c1);
  /* Computes w rows of U, from those of inner panel 'inner' on, in the columns
     c0 .. c1-1, and their parts; those of 'together' inner panels at most. */
  int (*rows)(hone_cuda *c, const hone_cuda_queue &on,
              const hone_cuda_panel_info *p, int inner, int64_t w, int64_t c0,
              int64_t c1);
  int together;
  /* Subtracts from the block the product of p's first 'inner' inner panels. */
  int (*product)(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int inner,
                 const hone_f_block &b);
  /* Updates the rows below the panel in the columns c0 .. c1-1: in the LU all
     of them, in Cholesky's those up to row end-1. The operand of the rows of U
     begins at column 'first'. */
  int (*below)(hone_cuda *c, const hone_cuda_queue &on,
               const hone_cuda_panel_info *p, int64_t c0, int64_t c1,
               int64_t end, int64_t first);
  /* Updates a block row that came later, the rows r0 .. r1-1, by the panel.
     NULL: block columns come. */
  int (*later)(hone_cuda *c, int panel, int64_t r0, int64_t r1);
  /* Composes the panel's row moves, and makes them in the columns 0 .. left-1
     and c0 .. c1-1. NULL: no rows move. */
  int (*compose)(hone_cuda *c, const hone_cuda_panel_info *p);
  int (*move)(hone_cuda *c, const hone_cuda_panel_info *p, int64_t left,
              int64_t c0, int64_t c1);
};
extern const hone_cuda_steps hone_cuda_lu_steps, hone_cuda_cholesky_steps;

/* Cholesky's steps for one of several devices (several/cholesky.cu), whose
   operands have room for all columns: */
/* Computes the rows of U of a panel whose diagonal block is factored. */
int hone_cuda_cholesky_rows(hone_cuda *c, const hone_cuda_queue &on,
                            const hone_cuda_panel_info *p);
/* Makes the operands of complete rows of U on the queue main, in the columns
   from 'from' on, */
int hone_cuda_cholesky_split(hone_cuda *c, int panel, int64_t from);
/* and updates the rows r0 .. r1-1 by them, 'from' being the same. */
int hone_cuda_cholesky_update(hone_cuda *c, int panel, int64_t r0, int64_t r1,
                              int64_t from);

/* Lets the products of the update that is enqueued next leave room for the
   panel of w columns, or nb, that begins at row k and is factored beside them,
   until c->room is cleared. */
void hone_cuda_leave_room(hone_cuda *c, int64_t k, int64_t w);
/* Factors the columns k .. k+w-1 of a block column that ends at column 'end',
   and moves rows. A call of hone_cuda_apply_panel for the rest of the block
   column must be next: it makes the moves that were put off, and computes
   Cholesky's rows of U, also where nothing is left. */
int hone_cuda_factor_panel(hone_cuda *c, int64_t k, int64_t w, int64_t end);
/* Updates the columns c0 .. c1-1, whose rows are in their present order, by
   this panel. */
int hone_cuda_apply_panel(hone_cuda *c, int panel, int64_t c0, int64_t c1);
/* Updates columns that came later by all panels from number 'from' on. */
int hone_cuda_apply_panels_from(hone_cuda *c, int from, int64_t c0, int64_t c1);
/* Updates columns that came later by the panels from .. to-1. The last panel
   before column c0 must not be among them: it is left to
   hone_cuda_apply_panels_from. However the panels are divided between the two
   functions, the products have the same shapes, and so the same bits. */
int hone_cuda_apply_panels(hone_cuda *c, int from, int to, int64_t c0,
                           int64_t c1);

#endif
