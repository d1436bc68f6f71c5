/* SPDX-License-Identifier: BSD-3-Clause */
/* An estimate of ||inv(S)||_1 by one gradient step (Hager 1984) from a vector
   on the device, where all of it stays: refine/condition.c makes the same of
   solves. */
#ifndef HONE_CUDA_GRADIENT_H
#define HONE_CUDA_GRADIENT_H

#include "gpu_sp/state.h"

/* Enqueues z = the unit vector, in the order of F's rows, that promises the
   largest growth: the gradient is inv(S^T) conj(sign y). All of it is enqueued
   on 'stream'; see hone_cuda_enqueue_solve. y, z, room: n >= 2 entries each, on
   the device; room is overwritten. */
int hone_cuda_gradient_begin(hone_cuda *c, cudaStream_t stream,
                             const hone_entry *y, hone_entry *z,
                             hone_entry *room);

/* Enqueues, on c->work, the sums of |z_i| by thread blocks of
   HONE_GRADIENT_ROWS rows, to device or pinned memory. */
enum { HONE_GRADIENT_ROWS = 256 };
int hone_cuda_gradient_sums(hone_cuda *c, const hone_entry *z, double *sums);

#endif
