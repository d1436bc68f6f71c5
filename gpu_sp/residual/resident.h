/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of A that stays on the device: its inspection, and residuals. */
#ifndef HONE_CUDA_RESIDENT_H
#define HONE_CUDA_RESIDENT_H

#include "gpu_sp/state.h"

/* Members of the engine tables: inspect, residual, residuals, product, lend. */
int hone_cuda_inspect_matrix(void *self, const hone_matrix *a,
                             const hone_scaling *scaling, double *scratch,
                             hone_inspection *seen);
int hone_cuda_matrix_residual(void *self, const hone_matrix *a, bool trans,
                              const hone_entry *x, const hone_entry *b,
                              hone_entry *r, double *den);
int hone_cuda_matrix_residuals(void *self, const hone_matrix *a, bool trans,
                               const hone_residual_block *block);
int hone_cuda_matrix_product(void *self, const hone_matrix *a, bool trans,
                             int64_t k, const hone_entry *x, hone_entry *p);
const hone_entry *hone_cuda_lend(void *self, const hone_matrix *a, int64_t *ld);

/* Residuals of several columns go through so many slots in turn, each of which
   takes x, b, r and, if they are wanted, den of some columns in pinned memory,
   with the room of so many vectors of n entries for each of them. Returns for
   how many columns a slot has room: no more than hone_cuda_columns(n) for all;
   *memory is the first one's. The memory may be that through which A came. */
enum { HONE_CUDA_SLOTS = 2 };
int64_t hone_cuda_slot_room(const hone_cuda *c, int vectors, double **memory);

/* Enqueues r = b - op(A) x for 'count' columns, in plain double
   (base/engine.h), by the columns of A that the device has: of x it takes the
   entries for these, or, with A^T, gives those of r. x: device memory; b: NULL
   for zeros, or, as r, pinned memory. */
int hone_cuda_plain_residuals(hone_cuda *c, bool trans, int64_t count,
                              const hone_entry *x, const hone_entry *b,
                              hone_entry *r);

/* Enqueues the inspection of the columns of A that have arrived since the last
   call, up to column 'to'. */
int hone_cuda_inspect_arrived(hone_cuda *c, int64_t to);

#endif
