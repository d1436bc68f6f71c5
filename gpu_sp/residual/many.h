/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the residuals of many columns, in twice the working precision, on
   the device. Read next: many.cu. */
#ifndef HONE_CUDA_MANY_H
#define HONE_CUDA_MANY_H

#include "gpu_sp/residual/residual.h"

/* Are the residuals of so many columns made here? */
bool hone_cuda_many_serves(const hone_double_matrix &a, int64_t count);

/* The sums of a row are made in parts of so many of its m entries. */
int64_t hone_cuda_many_width(int64_t m);
/* Returns the bytes of the workspace below. */
int64_t hone_cuda_many_bytes(int64_t n, int64_t m);

/* Writes the parts of op(A) x, for up to HONE_RESIDUAL_MANY columns, to the
   workspace 'work' on the device, as add_parts of residual.cu reads them. */
cudaError_t hone_cuda_many_parts(const hone_double_matrix &a, bool trans,
                                 const hone_entry *x, int64_t count,
                                 double *work, cudaStream_t stream);

#endif
