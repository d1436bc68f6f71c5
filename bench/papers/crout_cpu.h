/* SPDX-License-Identifier: BSD-3-Clause */
/* The direct Crout method on one thread of the CPU, with which the publication
   compares the iterative one (gpu_sp/forms/crout.h). */
#ifndef BENCH_PAPERS_CROUT_CPU_H
#define BENCH_PAPERS_CROUT_CPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Overwrites the host matrix a with Z, the factors in the form of crout.h,
   entry by entry in the order of the formulas. Sums over k ascend and use fused
   multiply-adds, like those of the kernels. Returns HONE_OK, or HONE_SINGULAR
   or HONE_OVERFLOW, and then sets *column, unless it is NULL. */
int hone_crout_cpu_s(int64_t n, float *a, int64_t lda, int64_t *column);
int hone_crout_cpu_d(int64_t n, double *a, int64_t lda, int64_t *column);

#ifdef __cplusplus
}
#endif

#endif
