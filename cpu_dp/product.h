/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with vectors: see product.c. */
#ifndef HONE_PRODUCT_H
#define HONE_PRODUCT_H

#include "base/operator.h"

/* The function of the operator table. */
void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p);

#endif
