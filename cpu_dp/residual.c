/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes residuals of a dense A: chooses the kernels for this processor and
   hands blocks of rows (of columns, for A^T) to the threads. The arithmetic is
   in residual_kernels.c. */
#include "cpu_dp/residual.h"

#include "base/isa.h"

static const hone_residual_kernels *kernels(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_residual_avx512 : &hone_residual_avx2;
#endif
  return &hone_residual_base;
}

const char *hone_residual_isa(void) { return kernels()->isa; }

typedef struct residual_run {
  const hone_residual_job *job;
  const hone_residual_kernels *kernels;
  int64_t c0, m; /* right-hand sides c0 .. c0+m-1 share this pass */
  int64_t step;  /* rows of a task (columns, for A^T) */
} residual_run;

static void run_task(void *ctx, int64_t task) {
  const residual_run *run = ctx;
  int64_t from = task * run->step;
  int64_t to = HONE_MIN(from + run->step, run->job->a->n);
  if (run->job->trans)
    run->kernels->columns(run->job, run->c0, run->m, from, to);
  else
    run->kernels->rows(run->job, run->c0, run->m, from, to);
}

/* Returns the number of rows of a task: whole cache lines, one task for each
   thread, at most the 2048 rows that the kernel keeps in the cache, and at
   least 64, which make a task worth handing out. Rows are not split further,
   since memory delivers long pieces of columns faster. */
static int64_t task_rows(int64_t n, int threads) {
  int64_t rows = (n + threads - 1) / threads;
  rows = (rows + 15) / 16 * 16;
  return HONE_MAX((int64_t)64, HONE_MIN(rows, (int64_t)2048));
}

void hone_dense_residual(const hone_residual_job *job, hone_pool *pool) {
  const int64_t n = job->a->n;
  if (n < HONE_THREADS_FROM)
    pool = NULL;
  residual_run run = {.job = job,
                      .kernels = kernels(),
                      .step = task_rows(n, hone_pool_threads(pool))};
  for (run.c0 = 0; run.c0 < job->k; run.c0 += HONE_RESIDUAL_COLUMNS) {
    run.m = HONE_MIN((int64_t)HONE_RESIDUAL_COLUMNS, job->k - run.c0);
    hone_pool_run(pool, (n + run.step - 1) / run.step, run_task, &run);
  }
}
