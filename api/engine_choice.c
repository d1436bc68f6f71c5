/* SPDX-License-Identifier: BSD-3-Clause */
/* The situation that the caller's options make, in which the policy
   (refine/policy.c) chooses among the engines of engines.c. */
#include "api/engines.h"

/* Below this order a panel is a quarter of A, and nothing is left to divide. */
enum { SEVERAL_FROM = 512 };

/* Are several GPUs to be used? One that is not there is no reason to fail: the
   report says how many there were. */
static bool use_several(const hone_options *o, int64_t n) {
  char why[160];
  return o->devices != 0 && o->devices != 1 && n >= SEVERAL_FROM &&
         hone_engine_several_cuda.probe(why, sizeof why);
}

/* May the factors lie in host memory, and be made by a GPU? */
static bool use_outside(const hone_options *o, int64_t n) {
  return n >= hone_policy_outside_from() || hone_choices_of(o).trial.window > 0;
}

/* Is a GPU to be used? AUTO asks for one only from orders on where it pays. */
static bool use_gpu(const hone_options *o, int64_t n, bool one_shot, char *why,
                    size_t why_size) {
  if (o->device == HONE_DEVICE_CPU || n == 0 ||
      (o->device == HONE_DEVICE_AUTO && n < hone_policy_gpu_from(one_shot)))
    return false;
  return hone_engine_single_cuda.probe(why, why_size);
}

int hone_choose_engines(const hone_options *o, int64_t n, bool one_shot,
                        hone_step steps[HONE_MAX_RUNGS], char *why,
                        size_t why_size) {
  why[0] = '\0';
  const bool gpu = use_gpu(o, n, one_shot, why, why_size);
  if (o->device == HONE_DEVICE_CUDA && n > 0 && !gpu)
    return 0;
  const hone_situation situation = {
      .n = n,
      .structure = o->structure,
      .start = o->factor_precision,
      .gpu = gpu,
      .several = gpu && use_several(o, n),
      .outside = gpu && use_outside(o, n),
      .coarse = gpu && hone_arithmetic_coarse(o->tuning->arithmetic)};
  return hone_policy_steps(&situation, hone_role_engines, steps);
}

int64_t hone_engines_device_bytes(const hone_options *o, int64_t n,
                                  bool resident) {
  const hone_engine_config config = {.n = n, .choices = hone_choices_of(o)};
  if (n == 0)
    return 0;
  const bool several =
      n >= SEVERAL_FROM && (o->devices > 1 || use_several(o, n));
  const hone_engine *const lu =
      several ? &hone_engine_several_cuda : &hone_engine_single_cuda;
  const hone_engine *const cholesky =
      several ? &hone_engine_several_cholesky_cuda : &hone_engine_cholesky_cuda;
  int64_t bytes = lu->device_bytes(&config, resident);
  if (o->structure != HONE_STRUCTURE_GENERAL)
    bytes = HONE_MAX(bytes, cholesky->device_bytes(&config, resident));
  return bytes;
}
