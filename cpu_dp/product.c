/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with a few vectors, P = op(A) V, in plain double. One
   pass over A serves all vectors. Every entry of P is summed in the same order
   whatever the number of threads. Next to read: product_kernels.c. */
#include "cpu_dp/product.h"

#include "base/isa.h"

enum { MOST_ROWS = 256, LEAST_ROWS = 64, LINE = 8 }; /* rows of a task */

typedef struct product_tasks {
  hone_product_run run;
  const hone_product_kernel *kernel;
  int64_t step; /* rows of P of a task */
} product_tasks;

static const hone_product_kernel *kernel(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_product_avx512 : &hone_product_avx2;
#endif
  return &hone_product_base;
}

static void run_task(void *ctx, int64_t task) {
  const product_tasks *tasks = ctx;
  const int64_t from = task * tasks->step;
  tasks->kernel->rows(&tasks->run, from,
                      HONE_MIN(from + tasks->step, tasks->run.a->n));
}

void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p) {
  const int64_t n = matrix->n;
  if (n < HONE_THREADS_FROM)
    pool = NULL;
  const int threads = hone_pool_threads(pool);
  const int64_t share = ((n + threads - 1) / threads + LINE - 1) / LINE * LINE;
  product_tasks tasks = {.run = {.a = hone_dense_of(matrix),
                                 .trans = trans,
                                 .k = k,
                                 .v = v,
                                 .p = p},
                         .kernel = kernel(),
                         .step = HONE_MAX((int64_t)LEAST_ROWS,
                                          HONE_MIN(share, (int64_t)MOST_ROWS))};
  hone_pool_run(pool, (n + tasks.step - 1) / tasks.step, run_task, &tasks);
}
