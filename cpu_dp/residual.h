/* SPDX-License-Identifier: BSD-3-Clause */
/* The residual r = b - op(A) x of a dense A and its denominator |op(A)| |x| +
   |b|, both from one pass over A, in double or in double-double precision.
   base/operator.h has hone_residual_job. */
#ifndef HONE_DENSE_RESIDUAL_H
#define HONE_DENSE_RESIDUAL_H

#include "base/dense.h"

/* The number of right-hand sides that share one pass over A. */
enum { HONE_RESIDUAL_COLUMNS = 4 };

/* Computes the residuals of the job on the threads of the pool. The bits of r
   and den do not depend on the number of threads. */
void hone_dense_residual(const hone_residual_job *job, hone_pool *pool);

/* Computes one entry of the residual in extended range (wide_row.c); see
   base/operator.h. */
void hone_dense_wide_row(hone_wide_row *row);

/* Returns the name of the instruction set in use: "avx512", "avx2" or
   "base". */
const char *hone_residual_isa(void);

/* The kernels, compiled once for each instruction set from residual_kernels.c.
   rows computes rows i0 .. i1-1 of r and den with A; columns computes entries
   j0 .. j1-1 with A^T. Both take right-hand sides c0 .. c0+m-1, m <=
   HONE_RESIDUAL_COLUMNS. */
typedef struct hone_residual_kernels {
  const char *isa;
  void (*rows)(const hone_residual_job *job, int64_t c0, int64_t m, int64_t i0,
               int64_t i1);
  void (*columns)(const hone_residual_job *job, int64_t c0, int64_t m,
                  int64_t j0, int64_t j1);
} hone_residual_kernels;
extern const hone_residual_kernels hone_residual_base, hone_residual_avx2,
    hone_residual_avx512;

#endif
