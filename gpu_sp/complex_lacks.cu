/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that the engines for complex entries do not have: those of the methods
   that a caller may choose for real ones (forms/). create never makes a state
   for which they would be called. */
#include "gpu_sp/forms/forms.h"

bool hone_cuda_cpu_factors_block(const hone_cuda *, int64_t) { return false; }

int hone_cuda_factor_block_on_cpu(hone_cuda *, const hone_cuda_queue &, int,
                                  int64_t, int64_t, enum hone_pivoting) {
  return HONE_INTERNAL;
}

int hone_cuda_block_row_u(hone_cuda *, const hone_cuda_queue &, int,
                          const hone_u_rows &, const hone_operand &) {
  return HONE_INTERNAL;
}

int hone_cuda_block_row_seed(hone_cuda *, const hone_cuda_queue &, int, int64_t,
                             int64_t) {
  return HONE_INTERNAL;
}
