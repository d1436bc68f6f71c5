/* SPDX-License-Identifier: BSD-3-Clause */
/* The direct Crout method on one thread: see papers_crout_cpu.h. No blocking
   and no reordering: this is what the iterative method was published beside.
   The file includes itself once for each precision. */
#ifndef REAL
#include "bench/papers_crout_cpu.h"

#include "base/base.h"

#define REAL float
#define FMA fmaf
#define SUM sum_s
#define CROUT hone_crout_cpu_s
#include "bench/papers_crout_cpu.c"

#define REAL double
#define FMA fma
#define SUM sum_d
#define CROUT hone_crout_cpu_d
#include "bench/papers_crout_cpu.c"

#else

/* Sum of l_k u_k, one after the other. */
static inline REAL SUM(int64_t n, const REAL *l, int64_t ldl, const REAL *u) {
  REAL sum = 0;
  for (int64_t k = 0; k < n; k++)
    sum = FMA(l[k * ldl], u[k], sum);
  return sum;
}

/* Compiled for processors with fused multiply-adds and without: there they
   are calls, slow but the same numbers. */
HONE_VECTOR int CROUT(int64_t n, REAL *a, int64_t lda, int64_t *column) {
  for (int64_t j = 0; j < n; j++) {
    REAL *aj = a + j * lda;
    for (int64_t i = j; i < n; i++)
      aj[i] -= SUM(j, a + i, lda, aj);
    const REAL pivot = aj[j];
    bool finite = true;
    for (int64_t i = j; i < n; i++)
      finite = finite && isfinite(aj[i]);
    for (int64_t i = j + 1; i < n && finite && pivot != 0; i++) {
      REAL *ai = a + i * lda;
      ai[j] = (ai[j] - SUM(j, a + j, lda, ai)) / pivot;
    }
    if (!finite || pivot == 0) {
      if (column != NULL)
        *column = j;
      return finite ? HONE_SINGULAR : HONE_OVERFLOW;
    }
  }
  return HONE_OK;
}

#undef REAL
#undef FMA
#undef SUM
#undef CROUT
#endif
