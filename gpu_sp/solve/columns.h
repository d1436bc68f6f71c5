/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels over the rows of several columns of n entries: a thread for each row,
   and a row of thread blocks for each column. Device code; included by the
   files of this folder and by residual/resident.cu. */
#ifndef HONE_CUDA_COLUMNS_H
#define HONE_CUDA_COLUMNS_H

#include "gpu_sp/state.h"

namespace {

enum { ROW_THREADS = 256 };

__device__ inline int64_t row_of_thread() {
  return (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
}

inline dim3 grid_of(int64_t n, int64_t columns) {
  return dim3((unsigned)((n + ROW_THREADS - 1) / ROW_THREADS),
              (unsigned)columns);
}

} // namespace

#endif
