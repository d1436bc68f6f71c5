/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines behind the roles of the policy for complex systems; engines.c has
   those of real systems. A GPU has Cholesky's factorization and LU in single
   precision; what they do not serve the CPU factors in double. */
#include "api/engines.h"

static const hone_engine *const ENGINES[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &hone_engine_diagonal,
    [HONE_ROLE_TRIANGULAR] = &hone_engine_triangular,
    [HONE_ROLE_BANDED] = &hone_engine_banded,
    [HONE_ROLE_GPU_CHOLESKY] = &hone_engine_cholesky_cuda,
    [HONE_ROLE_CPU_CHOLESKY] = &hone_engine_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &hone_engine_cholesky_double,
    [HONE_ROLE_GPU_LU] = &hone_engine_single_cuda,
    [HONE_ROLE_CPU_LU] = &hone_engine_single,
    [HONE_ROLE_CPU_LU_DOUBLE] = &hone_engine_double,
    [HONE_ROLE_CPU_LU_TRANSPOSED] = &hone_engine_double_transposed,
};

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
      .coarse = gpu && hone_arithmetic_coarse(o->tuning->arithmetic)};
  return hone_policy_steps(&situation, ENGINES, steps);
}

int64_t hone_engines_device_bytes(const hone_options *o, int64_t n,
                                  bool resident) {
  const hone_engine_config config = {.n = n, .choices = hone_choices_of(o)};
  if (n == 0)
    return 0;
  int64_t bytes = hone_engine_single_cuda.device_bytes(&config, resident);
  if (o->structure != HONE_STRUCTURE_GENERAL)
    bytes = HONE_MAX(bytes,
                     hone_engine_cholesky_cuda.device_bytes(&config, resident));
  return bytes;
}
