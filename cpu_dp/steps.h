/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of many right-hand sides, brought up to date by matrix products;
   base/operator.h has hone_residual_steps, docs/numerics.md the error bounds.
 */
#ifndef HONE_STEPS_KERNELS_H
#define HONE_STEPS_KERNELS_H

#include "base/dense.h"

enum {
  HONE_STEPS_DEPTH =
      HONE_STEP_DEPTH, /* real columns of op(A) that are packed, */
  HONE_STEPS_BLOCK = HONE_STEPS_DEPTH / HONE_PARTS, /* or so many of it, */
  HONE_STEPS_STRIP = 48                             /* and rows */
};

/* The vectors, packed: of every HONE_STEPS_BLOCK rows first all of the first
   HONE_TILE_COLUMNS real columns, row by row, then the next ones. */
typedef struct hone_steps_run {
  const hone_residual_steps *job;
  const hone_entry *a;
  int64_t n, lda;
  int64_t padded; /* k, rounded up */
  double *v;      /* the vectors of the product: 'padded' columns of n; where
                     they are complex, twice so many of 2 n */
  float *sizes;   /* |x| times 'scale': n x padded */
  double scale[HONE_STEPS_MOST]; /* powers of two, one for each column */
} hone_steps_run;

typedef struct hone_steps_kernels {
  /* Packs rows j .. j + HONE_STEPS_BLOCK - 1 of the vectors. */
  void (*pack)(const hone_steps_run *run, int64_t j);
  /* Rows i .. i + HONE_STEPS_STRIP - 1 of r, den and weight. */
  void (*strip)(const hone_steps_run *run, int64_t i);
} hone_steps_kernels;
extern const hone_steps_kernels hone_steps_base, hone_steps_avx2,
    hone_steps_avx512;

/* Brings the residuals up to date on the threads of the pool, by the kernels
   for this processor or by others. The bits of a column depend neither on the
   number of threads nor on the other columns. */
void hone_dense_steps(const hone_residual_steps *job, hone_pool *pool);
void hone_dense_steps_by(const hone_steps_kernels *kernels,
                         const hone_residual_steps *job, hone_pool *pool);

#endif
