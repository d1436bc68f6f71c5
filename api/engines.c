/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines behind the roles of the policy (refine/policy.c);
   engines_complex.c has those of complex systems. What all engines have in
   common: the choices that the caller's options make, and what is kept. */
#include "api/engines.h"

#include "gpu_sp/batch/batch.h"

const hone_engine *const hone_role_engines[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &hone_engine_diagonal,
    [HONE_ROLE_TRIANGULAR] = &hone_engine_triangular,
    [HONE_ROLE_BANDED] = &hone_engine_banded,
    [HONE_ROLE_GPUS_CHOLESKY] = &hone_engine_several_cholesky_cuda,
    [HONE_ROLE_GPU_CHOLESKY] = &hone_engine_cholesky_cuda,
    [HONE_ROLE_CPU_CHOLESKY] = &hone_engine_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &hone_engine_cholesky_double,
    [HONE_ROLE_GPUS_LU] = &hone_engine_several_cuda,
    [HONE_ROLE_GPU_LU] = &hone_engine_single_cuda,
    [HONE_ROLE_GPU_LU_OUTSIDE] = &hone_engine_outside,
    [HONE_ROLE_CPU_LU] = &hone_engine_single,
    [HONE_ROLE_GPU_LU_DOUBLE] = &hone_engine_double_cuda,
    [HONE_ROLE_CPU_LU_DOUBLE] = &hone_engine_double,
    [HONE_ROLE_CPU_LU_TRANSPOSED] = &hone_engine_double_transposed,
};

hone_choices hone_choices_of(const hone_options *o) {
  const hone_tuning *t = o->tuning;
  return (hone_choices){.arithmetic = t->arithmetic,
                        .pivoting = t->pivoting,
                        .diagonal = t->diagonal,
                        .sections = t->block_rows,
                        .residuals = t->residuals,
                        .device_limit = o->device_memory_limit_bytes,
                        .devices = o->devices};
}

int64_t hone_engines_release(void) {
  hone_pool_release_kept();
  hone_mem_release_kept();
  int64_t bytes = hone_device_batch_release();
  if (hone_engine_single_cuda.release != NULL)
    bytes += hone_engine_single_cuda.release();
  return bytes;
}
