/* SPDX-License-Identifier: BSD-3-Clause */
/* The direct Crout method on one thread of the CPU, which the iterative one
   (gpu_sp/forms/crout.h) was published beside. */
#ifndef BENCH_PAPERS_CROUT_CPU_H
#define BENCH_PAPERS_CROUT_CPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Host matrix a becomes Z as crout.h has it, element by element in the order
   of the formulas, sums over k upwards with fused multiply-adds, as the kernels
   have them. HONE_OK, or HONE_SINGULAR or HONE_OVERFLOW at *column (may be
   NULL). */
int hone_crout_cpu_s(int64_t n, float *a, int64_t lda, int64_t *column);
int hone_crout_cpu_d(int64_t n, double *a, int64_t lda, int64_t *column);

#ifdef __cplusplus
}
#endif

#endif
