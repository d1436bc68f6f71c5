/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels behind projection.h's functions on columns and rows, compiled
   once for each instruction set from projection_kernels.c. */
#ifndef HONE_PROJECTION_KERNELS_H
#define HONE_PROJECTION_KERNELS_H

#include "base/projection.h"

typedef struct hone_projection_kernels {
  void (*column)(int64_t n, const hone_entry *a, const hone_entry *v,
                 const hone_column_copy *copy, hone_entry *hi, hone_entry *lo,
                 double *sum);
  void (*rows)(int64_t rows, int64_t columns, const hone_entry *a, int64_t lda,
               const hone_entry *v, hone_entry *hi, hone_entry *lo,
               double *sum);
} hone_projection_kernels;
extern const hone_projection_kernels hone_projection_base, hone_projection_avx2,
    hone_projection_avx512;

#endif
