/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings residuals of many right-hand sides up to date with a dense A: chooses
   the kernels for this processor and hands strips of rows to the threads. Next
   to read: steps_kernels.c. */
#include "cpu_dp/steps.h"

#include "base/isa.h"

#include <float.h>
#include <math.h>

static const hone_steps_kernels *kernels(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_steps_avx512 : &hone_steps_avx2;
#endif
  return &hone_steps_base;
}

typedef struct steps_tasks {
  hone_steps_run run;
  const hone_steps_kernels *kernels;
} steps_tasks;

static void pack(void *ctx, int64_t task) {
  const steps_tasks *tasks = ctx;
  tasks->kernels->pack(&tasks->run, task * HONE_STEPS_BLOCK);
}

static void strip(void *ctx, int64_t task) {
  const steps_tasks *tasks = ctx;
  tasks->kernels->strip(&tasks->run, task * HONE_STEPS_STRIP);
}

/* Returns the power of two that brings numbers of this size to at most 1. */
static double scale_of(double size) {
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return 1.0;
  return hone_pow2(HONE_MAX(-1022, HONE_MIN(-ilogb(size) - 1, 1022)));
}

void hone_dense_steps_by(const hone_steps_kernels *by,
                         const hone_residual_steps *job, hone_pool *pool) {
  const hone_dense *a = hone_dense_of(job->a);
  const int64_t n = a->n, padded = hone_steps_columns(job->k);
  steps_tasks tasks = {
      .run = {.job = job,
              .a = a->a,
              .n = n,
              .lda = a->lda,
              .padded = padded,
              .v = job->work,
              .sizes =
                  (float *)(job->work + n * padded * HONE_PARTS * HONE_PARTS)},
      .kernels = by};
  for (int64_t c = 0; c < job->k; c++)
    tasks.run.scale[c] = job->den ? scale_of(job->size[c]) : 1.0;
  if (n < HONE_THREADS_FROM)
    pool = NULL;
  hone_pool_run(pool, (n + HONE_STEPS_BLOCK - 1) / HONE_STEPS_BLOCK, pack,
                &tasks);
  hone_pool_run(pool, (n + HONE_STEPS_STRIP - 1) / HONE_STEPS_STRIP, strip,
                &tasks);
}

void hone_dense_steps(const hone_residual_steps *job, hone_pool *pool) {
  hone_dense_steps_by(kernels(), job, pool);
}
