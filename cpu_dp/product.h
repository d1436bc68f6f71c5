/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with vectors: see product.c. */
#ifndef HONE_PRODUCT_H
#define HONE_PRODUCT_H

#include "base/dense.h"

/* The function of the operator table. */
void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p);

/* P = op(A) V for k vectors. */
typedef struct hone_product_run {
  const hone_dense *a;
  bool trans;
  int64_t k;
  const hone_entry *v;
  hone_entry *p;
} hone_product_run;

/* Computes rows from .. to - 1 of P. Compiled once for each instruction set
   from product_kernels.c. */
typedef struct hone_product_kernel {
  void (*rows)(const hone_product_run *run, int64_t from, int64_t to);
} hone_product_kernel;

extern const hone_product_kernel hone_product_base, hone_product_avx2,
    hone_product_avx512;

#endif
