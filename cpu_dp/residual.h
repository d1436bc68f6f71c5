/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over A in double precision: the residual and |A| |x| + |b|. */
#ifndef HONE_DENSE_RESIDUAL_H
#define HONE_DENSE_RESIDUAL_H

#include "base/dense.h"

enum {
  HONE_RESIDUAL_COLUMNS = 4
}; /* right-hand sides that share one read of A */

/* Runs the pass on the pool's threads. The bits of r and den do not depend
   on the number of threads. */
void hone_dense_residual(const hone_residual_job *pass, hone_pool *pool);

/* One row in extended range: see operator.h. (wide_row.c) */
void hone_dense_wide_row(hone_wide_row *row);

/* Name of the instruction set in use: "avx512", "avx2" or "base". */
const char *hone_residual_isa(void);

/* The kernels, compiled once per instruction set from pass.c. Rows i0 to
   i1-1 of r and den, for m <= HONE_RESIDUAL_COLUMNS right-hand sides. */
typedef struct hone_residual_kernels {
  const char *isa;
  void (*rows)(const hone_residual_job *pass, int64_t c0, int64_t m, int64_t i0,
               int64_t i1);
  void (*columns)(const hone_residual_job *pass, int64_t c0, int64_t m,
                  int64_t j0, int64_t j1);
} hone_residual_kernels;
extern const hone_residual_kernels hone_residual_base, hone_residual_avx2,
    hone_residual_avx512;

#endif
