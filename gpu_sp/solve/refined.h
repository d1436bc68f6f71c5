/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions for several right-hand sides, refined where the factors are. */
#ifndef HONE_CUDA_REFINED_H
#define HONE_CUDA_REFINED_H

#include "gpu_sp/state.h"

/* A member of the engine tables: solve_refined. */
int hone_cuda_solve_refined(void *self, hone_refined_solve *job);

#endif
