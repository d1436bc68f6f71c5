/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome for one system of a batch, from the lanes of a processor
   (cpu_batch/block.h) or from a device (gpu_sp/batch/batch.h). */
#ifndef HONE_BLOCK_LANE_H
#define HONE_BLOCK_LANE_H

#include <stdbool.h>
#include <stdint.h>

/* Why a lane has no factors that serve. It is then another algorithm's. */
typedef struct hone_block_lane {
  bool serves;           /* the factors passed the certificate */
  double rcond;          /* of op(A): 1 / (||A||_1 ||inv(A)||_1), estimated */
  double rcond_scaled;   /* of S = R op(A) C */
  double contraction;    /* bounds ||I - inv(M) S||_2, M being the factors */
  double inverse;        /* bounds ||inv(S)||_2 */
  double norm;           /* ||op(A)||, infinity norm */
  int pivot;             /* the place of the smallest pivot in the factors */
  double determinant[2]; /* the mantissa of det(A) and, for complex entries, the
                            imaginary part of it, below 2 in magnitude */
  int64_t exponent;      /* det(A) = mantissa 2^exponent */
} hone_block_lane;

/* The result for one right-hand side of one lane. */
typedef struct hone_block_column {
  bool accepted; /* x was written, and every member below is valid */
  int corrections;
  double componentwise, normwise, residual; /* backward errors */
  double forward; /* bounds max |x - x_true| / max |x| */
} hone_block_column;

#endif
