/* SPDX-License-Identifier: BSD-3-Clause */
/* A right-hand side of the caller's that is solved for beside the probes: its
   column goes through the same solves, which take hardly longer with it, and so
   refinement begins with a solution that has been corrected once. */
#ifndef HONE_CUDA_BESIDE_H
#define HONE_CUDA_BESIDE_H

#include "gpu_sp/state.h"

/* A member of the engine tables: solved_beside. */
int hone_cuda_solved_beside(void *self, hone_refined_solve *job);

/* Takes s->beside, if s is the first step and has one. */
void hone_cuda_beside_begin(hone_cuda *c, const hone_probe_step *s);
/* Returns 1 if the solve of step s has a column for that right-hand side: in
   the first two steps; else 0. */
int hone_cuda_beside_columns(const hone_cuda *c, const hone_probe_step *s);
/* Enqueues z = that column, on the device, before the solve, */
int hone_cuda_beside_give(hone_cuda *c, hone_entry *z);
/* enqueues the solve of k columns, so that the bits of z depend neither on k
   nor on the columns before it, */
int hone_cuda_beside_solve(hone_cuda *c, int64_t k);
/* and takes the solution z. */
int hone_cuda_beside_take(hone_cuda *c, const hone_entry *z);

#endif
