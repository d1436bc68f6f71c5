/* SPDX-License-Identifier: BSD-3-Clause */
/* The determinant of one matrix, by LU in double precision. */
#ifndef HONE_DETERMINANT_H
#define HONE_DETERMINANT_H

#include "base/entry.h"

typedef struct hone_determinant_job {
  int64_t n;
  const hone_entry *a; /* n x n, finite */
  int64_t lda;
} hone_determinant_job;

/* *log_abs = log |det A|, and det A / |det A| = *re + i *im; -Inf and 0 if a
   pivot is zero. Returns HONE_NO_MEMORY, and sets nothing, where there is
   none. */
int hone_determinant(const hone_determinant_job *job, hone_mem *mem,
                     double *log_abs, double *re, double *im);

#endif
