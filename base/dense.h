/* SPDX-License-Identifier: BSD-3-Clause */
/* A dense matrix in host memory, stored by columns. The dense operator
   (cpu_dp/dense.c) and every engine for dense matrices read it. */
#ifndef HONE_DENSE_H
#define HONE_DENSE_H

#include "base/device_memory.h"
#include "base/operator.h"

typedef struct hone_dense {
  int64_t n, lda;
  const hone_entry *a;  /* n x n, lda >= n; borrowed, never written */
  hone_host_copy *copy; /* not NULL: A lies in a device's memory, and a is the
                           host's copy of it, which is fetched when it is first
                           read, or may still be arriving */
  bool trans_expected;  /* most systems will be with A^T, as those of a caller
                           who stores A by rows */
  int64_t serial; /* the number of this matrix in the process: another one may
                     come to lie at a; 0: it has none */
} hone_dense;

/* Returns column i of A, or row i, for the caller to read until it gives it
   back; its entries lie *step apart. NULL: A cannot be fetched from its device.
   Any thread may call it. */
const hone_entry *hone_dense_take_line(const hone_dense *a, bool row, int64_t i,
                                       int64_t *step);
void hone_dense_give_line(const hone_dense *a);

/* Returns the dense matrix behind a hone_matrix whose operator is
   hone_dense_operator. */
static inline const hone_dense *hone_dense_of(const hone_matrix *a) {
  return (const hone_dense *)a->self;
}

extern const hone_operator hone_dense_operator;

static inline hone_matrix hone_dense_matrix(const hone_dense *dense) {
  const hone_matrix matrix = {&hone_dense_operator, dense, dense->n};
  return matrix;
}

#endif
