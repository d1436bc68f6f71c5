/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with a few vectors, P = op(A) V, in plain double, by
   the BLAS. Next to read: dense.c. */
#include "cpu_dp/product.h"
#include "base/dense.h"
#include "base/lapack.h"

void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p) {
  const hone_dense *a = hone_dense_of(matrix);
  const int n = (int)a->n, lda = (int)a->lda, columns = (int)k;
  const hone_entry one = 1.0, zero = 0.0;
  (void)pool; /* the BLAS has threads of its own */
  dgemm_(trans ? "T" : "N", "N", &n, &columns, &n, &one, a->a, &lda, v, &n,
         &zero, p, &n);
}
