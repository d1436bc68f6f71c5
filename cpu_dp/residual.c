/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the pass over A: chooses the kernels for this processor and deals
   blocks of rows (of columns, for A^T) to the threads. */
#include "cpu_dp/residual.h"

static const hone_residual_kernels *kernels(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return &hone_residual_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &hone_residual_avx2;
#endif
  return &hone_residual_base;
}

const char *hone_residual_isa(void) { return kernels()->isa; }

typedef struct run_job {
  const hone_residual_job *pass;
  const hone_residual_kernels *kernels;
  int64_t c0, m; /* right-hand sides of this read of A */
  int64_t step;  /* rows (columns of A, for A^T) of one task */
} run_job;

static void run_task(void *ctx, int64_t task) {
  const run_job *job = ctx;
  int64_t from = task * job->step;
  int64_t to = HONE_MIN(from + job->step, job->pass->a->n);
  if (job->pass->trans)
    job->kernels->columns(job->pass, job->c0, job->m, from, to);
  else
    job->kernels->rows(job->pass, job->c0, job->m, from, to);
}

/* Rows of a task: whole cache lines, a task a thread, at most what the kernel
   keeps in cache, at least what makes a task worth handing out. Long pieces of
   columns: memory delivers them faster. */
static int64_t task_rows(int64_t n, int threads) {
  int64_t rows = (n + threads - 1) / threads;
  rows = (rows + 15) / 16 * 16;
  return HONE_MAX((int64_t)64, HONE_MIN(rows, (int64_t)2048));
}

void hone_dense_residual(const hone_residual_job *pass, hone_pool *pool) {
  const int64_t n = pass->a->n;
  if (n < 400) /* one thread is through before another is awake */
    pool = NULL;
  run_job job = {.pass = pass,
                 .kernels = kernels(),
                 .step = task_rows(n, hone_pool_threads(pool))};
  for (job.c0 = 0; job.c0 < pass->k; job.c0 += HONE_RESIDUAL_COLUMNS) {
    job.m = HONE_MIN((int64_t)HONE_RESIDUAL_COLUMNS, pass->k - job.c0);
    hone_pool_run(pool, (n + job.step - 1) / job.step, run_task, &job);
  }
}
