/* SPDX-License-Identifier: BSD-3-Clause */
/* The direct Crout method on one thread of the CPU, in single and double
   precision; see crout_cpu.h. As in the publication, which compares the
   iterative method with it, nothing is blocked or reordered. The file includes
   itself once for each precision. */
#ifndef REAL
#include "bench/papers/crout_cpu.h"

#include "base/base.h"

#define REAL float
#define FMA fmaf
#define SUM sum_s
#define CROUT hone_crout_cpu_s
#include "bench/papers/crout_cpu.c"

#define REAL double
#define FMA fma
#define SUM sum_d
#define CROUT hone_crout_cpu_d
#include "bench/papers/crout_cpu.c"

#else

/* Returns the sum of l_k u_k over ascending k. */
static inline REAL SUM(int64_t n, const REAL *l, int64_t ldl, const REAL *u) {
  REAL sum = 0;
  for (int64_t k = 0; k < n; k++)
    sum = FMA(l[k * ldl], u[k], sum);
  return sum;
}

/* HONE_VECTOR compiles this for processors with fused multiply-adds and for
   those without, where a slow function gives the same results. */
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
