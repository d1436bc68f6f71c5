/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the blocked factorizations with outer panels: lu.cu has those of
   P S = L U, cholesky.cu those of S = U^T U. The loop over block columns
   (loop.h) calls them. */
#ifndef HONE_CUDA_OUTER_PANELS_H
#define HONE_CUDA_OUTER_PANELS_H

#include "gpu_sp/state.h"

/* Factors the columns k .. k+w-1 of a block column that ends at column 'end',
   and moves the rows of all columns in F. Where more of the block column
   follows, a call of hone_cuda_apply_panel for all of it must be next: it makes
   the moves that were put off. */
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

/* The steps of S = U^T U, where no rows move. */
int hone_cuda_factor_panel_spd(hone_cuda *c, int64_t k, int64_t w);
int hone_cuda_apply_panel_spd(hone_cuda *c, int panel, int64_t c0, int64_t c1);

#endif
