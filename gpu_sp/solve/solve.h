/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with the factors on the device, for the engine tables and for the
   residual. */
#ifndef HONE_CUDA_SOLVE_H
#define HONE_CUDA_SOLVE_H

#include "gpu_sp/state.h"

/* Members of the engine tables: solve, expect. */
int hone_cuda_solve(void *self, bool trans, int64_t k, hone_entry *v,
                    int64_t ldv);
void hone_cuda_expect_solve(void *self);

/* Enqueues to = inv(S) from or inv(S^T) from for k columns of n entries, in
   device or pinned memory, without the row exchanges: those are the caller's,
   before the solve or, with S^T, after it. Solves on other streams than c->work
   must wait for those before them, and be waited for. */
int hone_cuda_enqueue_solve(hone_cuda *c, cudaStream_t stream, bool trans,
                            int64_t k, const double *from, double *to);

/* Returns the power of two s with v = s r, all of whose entries are those of r
   times s; 0 if there is none, or only an extreme one. r, v: n entries each. */
double hone_cuda_multiple_of(const hone_cuda *c, const double *r,
                             const hone_entry *v);

/* Enqueues c->w = op(A) C from for k columns of n entries in device memory, C
   being the scaling of op(S) behind op(A) where there is one. Overwrites
   c->v where there is. */
int hone_cuda_multiply(hone_cuda *c, bool scaled, bool trans, int64_t k,
                       const hone_entry *from);

/* Enqueues the solve that the refinement will ask for next, for the residual r
   whose copy is in c->w, and waits for r alone. hone_cuda_solve takes the
   result if it is asked for a multiple of r. */
int hone_cuda_solve_ahead(hone_cuda *c, bool trans);

#endif
