/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves in double arithmetic, with factors in single or double
   precision (FACTOR_BITS), for many right-hand sides. The triangle is cut into
   blocks of columns. For one after the other, the threads solve with its
   triangle on the diagonal, each for a few right-hand sides, and then subtract
   its product with the solutions, strip by strip, from the rows that are still
   to be solved for. Next to read: apply_many_kernels.c. */
#include "cpu_factor/apply_many.h"

#include "base/isa.h"
#include "cpu_factor/real.h"

static const hone_apply_kernels *kernels(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &FACTOR_NAME(hone_apply_avx512)
                                  : &FACTOR_NAME(hone_apply_avx2);
#endif
  return &FACTOR_NAME(hone_apply_base);
}

typedef struct tasks {
  hone_apply_block block;
  const hone_apply_kernels *kernels;
  int64_t i0, i1; /* rows that are still to be solved for */
} tasks;

static void solve(void *ctx, int64_t task) {
  tasks *run = ctx;
  run->kernels->solve(&run->block, task);
}

static void subtract(void *ctx, int64_t task) {
  const tasks *run = ctx;
  const int64_t i = run->i0 + task * HONE_APPLY_STRIP;
  run->kernels->subtract(&run->block, i,
                         HONE_MIN((int64_t)HONE_APPLY_STRIP, run->i1 - i));
}

void FACTOR_NAME(hone_apply_many)(hone_pool *pool,
                                  const hone_apply_triangle *t) {
  const int64_t blocks = (t->n + HONE_APPLY_BLOCK - 1) / HONE_APPLY_BLOCK;
  tasks run;
  run.kernels = kernels();
  run.block.t = t;
  for (int64_t s = 0; s < blocks; s++) {
    const int64_t from = (t->lower ? s : blocks - 1 - s) * HONE_APPLY_BLOCK;
    const int64_t to = HONE_MIN(from + HONE_APPLY_BLOCK, t->n);
    run.block.from = from;
    run.block.to = to;
    run.i0 = t->lower ? to : 0;
    run.i1 = t->lower ? t->n : from;
    hone_pool_run(pool,
                  (t->k + run.kernels->columns - 1) / run.kernels->columns,
                  solve, &run);
    hone_pool_run(pool,
                  (run.i1 - run.i0 + HONE_APPLY_STRIP - 1) / HONE_APPLY_STRIP,
                  subtract, &run);
  }
}
