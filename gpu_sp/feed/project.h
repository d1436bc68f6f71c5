/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of the caller's A on random weights (base/projection.h), taken
   by the threads that read A while they copy it to the device. Sums along a
   column are complete with the column; for op(A) = A^T, sums along rows, each
   thread has its own, which are added at the end.

   Of an A that lies on the device already, it is the device that takes it, from
   the original, beside the factorization: project_there.cu. */
#ifndef HONE_CUDA_PROJECT_H
#define HONE_CUDA_PROJECT_H

#include "gpu_sp/state.h"

/* Returns the doubles of c->projection.memory. */
int64_t hone_cuda_projection_room(int64_t n);
/* Returns the bytes of c->projection.there; 0: the device takes none. */
int64_t hone_cuda_projection_bytes(int64_t n);

/* Forgets the projection of the matrix before, and draws weights for this one
   unless the caller chose otherwise. readable: threads of the host can read A
   at the speed of memory. */
int hone_cuda_projection_begin(hone_cuda *c, const hone_dense *a,
                               bool readable);

/* Enqueues the projection of the original of A on the stream feed. */
int hone_cuda_project_there(hone_cuda *c, bool trans);

/* Columns are divided into so many parts, each of which has a set of sums.
   more: some columns have one part more. */
void hone_cuda_projection_divide(hone_cuda *c, int64_t parts, bool more);
/* A block of A: 'rows' rows from 'row' on of 'count' columns from j on. They
   are of part 'set' of these columns, which one thread takes, from above. One
   column may be copied on the way, if op(A) = A. */
struct hone_cuda_projected {
  int64_t j, count, row, rows, set;
  bool begins;    /* the part begins with this block */
  hone_entry *to; /* NULL: nowhere */
  bool streams;   /* as hone_column_copy says */
};
/* Adds the block; 'worker' is the number of the thread. */
void hone_cuda_project(hone_cuda *c, int worker,
                       const hone_cuda_projected &block);

/* Member of the engine tables: projection. */
const hone_projection *hone_cuda_projection_of(void *self, const hone_matrix *a,
                                               bool trans);

#endif
