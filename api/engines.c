/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines behind the roles of the policy (refine/policy.c), and the
   situation that the caller's options make. */
#include "api/engines.h"

#include "gpu_sp/batch/batch.h"

static const hone_engine *const ENGINES[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &hone_engine_diagonal,
    [HONE_ROLE_TRIANGULAR] = &hone_engine_triangular,
    [HONE_ROLE_BANDED] = &hone_engine_banded,
    [HONE_ROLE_GPU_CHOLESKY] = &hone_engine_cholesky_cuda,
    [HONE_ROLE_CPU_CHOLESKY] = &hone_engine_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &hone_engine_cholesky_double,
    [HONE_ROLE_GPUS_LU] = &hone_engine_several_cuda,
    [HONE_ROLE_GPU_LU] = &hone_engine_single_cuda,
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

/* Below this order a panel is a quarter of A, and nothing is left to divide. */
enum { SEVERAL_FROM = 512 };

/* Are several GPUs to be used? One that is not there is no reason to fail: the
   report says how many there were. */
static bool use_several(const hone_options *o, int64_t n) {
  char why[160];
  return o->devices != 0 && o->devices != 1 && n >= SEVERAL_FROM &&
         hone_engine_several_cuda.probe(why, sizeof why);
}

/* Is a GPU to be used? AUTO asks for one only from orders on where it pays. */
static bool use_gpu(const hone_options *o, int64_t n, bool one_shot, char *why,
                    size_t why_size) {
  if (o->device == HONE_DEVICE_CPU ||
      (o->device == HONE_DEVICE_AUTO && n < hone_policy_gpu_from(one_shot)))
    return false;
  return hone_engine_single_cuda.probe(why, why_size);
}

int hone_choose_engines(const hone_options *o, int64_t n, bool one_shot,
                        hone_step steps[HONE_MAX_RUNGS], char *why,
                        size_t why_size) {
  why[0] = '\0';
  const bool gpu = use_gpu(o, n, one_shot, why, why_size);
  if (o->device == HONE_DEVICE_CUDA && !gpu)
    return 0;
  const hone_situation situation = {
      .n = n,
      .structure = o->structure,
      .start = o->factor_precision,
      .gpu = gpu,
      .several = gpu && use_several(o, n),
      .coarse = gpu && hone_arithmetic_coarse(o->tuning->arithmetic)};
  return hone_policy_steps(&situation, ENGINES, steps);
}

int64_t hone_engines_device_bytes(const hone_options *o, int64_t n,
                                  bool resident) {
  const hone_engine_config config = {.n = n, .choices = hone_choices_of(o)};
  if (n == 0)
    return 0;
  if (n >= SEVERAL_FROM && (o->devices > 1 || use_several(o, n)))
    return hone_engine_several_cuda.device_bytes(&config, resident);
  int64_t bytes = hone_engine_single_cuda.device_bytes(&config, resident);
  if (o->structure != HONE_STRUCTURE_GENERAL)
    bytes = HONE_MAX(bytes,
                     hone_engine_cholesky_cuda.device_bytes(&config, resident));
  return bytes;
}

int64_t hone_engines_release(void) {
  hone_pool_release_kept();
  hone_mem_release_kept();
  int64_t bytes = hone_device_batch_release();
  if (hone_engine_single_cuda.release != NULL)
    bytes += hone_engine_single_cuda.release();
  return bytes;
}
