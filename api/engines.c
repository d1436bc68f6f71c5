/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for an order and the caller's options. */
#include "api/engines.h"

enum {
  GPU_FROM_KEPT = 512,  /* orders that a GPU solves sooner than 16 cores: by a
                           solver that is there already, */
  GPU_FROM_ONCE = 2048, /* and with one made for the call (docs/performance.md,
                           both measured on an H200) */
  CHOLESKY_FROM = 513   /* orders from which OpenBLAS's Cholesky pays beside
                           our LU, which ends at 512 */
};

hone_choices hone_choices_of(const hone_options *o) {
  const hone_tuning *t = o->tuning;
  return (hone_choices){.arithmetic = t->arithmetic,
                        .pivoting = t->pivoting,
                        .diagonal = t->diagonal,
                        .sections = t->block_rows,
                        .residuals = t->residuals,
                        .device_limit = o->device_memory_limit_bytes};
}

int hone_choose_engines(const hone_options *o, int64_t n, bool one_shot,
                        const hone_engine **engines, char *why,
                        size_t why_size) {
  const int64_t gpu_from = one_shot ? GPU_FROM_ONCE : GPU_FROM_KEPT;
  const bool cuda_asked = o->device == HONE_DEVICE_CUDA;
  int count = 0;
  why[0] = '\0';
  if (cuda_asked && !hone_engine_single_cuda.probe(why, why_size))
    return 0;
  if (o->structure == HONE_STRUCTURE_AUTO) {
    engines[count++] = &hone_engine_diagonal;
    engines[count++] = &hone_engine_triangular;
    engines[count++] = &hone_engine_banded;
  }
  const bool cuda =
      cuda_asked || (o->device == HONE_DEVICE_AUTO && n >= gpu_from &&
                     hone_engine_single_cuda.probe(why, why_size));
  if (o->factor_precision != HONE_FACTOR_DOUBLE) {
    const bool coarse = cuda && hone_arithmetic_coarse(o->tuning->arithmetic);
    if (cuda && o->structure != HONE_STRUCTURE_GENERAL)
      engines[count++] = &hone_engine_cholesky_cuda;
    if (coarse && o->structure != HONE_STRUCTURE_GENERAL)
      engines[count++] = &hone_engine_cholesky_cuda;
    if (o->structure == HONE_STRUCTURE_SPD ||
        (o->structure == HONE_STRUCTURE_AUTO && n >= CHOLESKY_FROM))
      engines[count++] = &hone_engine_cholesky;
    if (!cuda && o->structure == HONE_STRUCTURE_AUTO && n >= CHOLESKY_FROM)
      engines[count++] = &hone_engine_cholesky_double;
    if (cuda)
      engines[count++] = &hone_engine_single_cuda;
    if (coarse)
      engines[count++] = &hone_engine_single_cuda;
    engines[count++] = &hone_engine_single;
  }
  if (cuda)
    engines[count++] = &hone_engine_double_cuda;
  engines[count++] = &hone_engine_double;
  return count;
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
