/* SPDX-License-Identifier: BSD-3-Clause */
/* The determinant of one matrix, by LU in double precision. */
#ifndef HONE_DETERMINANT_H
#define HONE_DETERMINANT_H

#include "base/entry.h"

typedef struct hone_determinant_job {
  int64_t n;
  const hone_entry *a; /* n x n, finite */
  int64_t lda;
  uint64_t seed; /* of random vectors */
} hone_determinant_job;

typedef struct hone_determinant_value {
  double log_abs; /* log |det A|; -Inf if a pivot is zero */
  double re, im;  /* det A / |det A|; 0 if a pivot is zero */
  bool certain;   /* the factors are so close to A that the sign of a real
                     determinant is right, but for a probability of
                     HONE_PROBE_FAILURE */
} hone_determinant_value;

/* Returns HONE_NO_MEMORY, and sets nothing, where there is none. */
int hone_determinant(const hone_determinant_job *job, hone_mem *mem,
                     hone_determinant_value *out);

#endif
