/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors in single or in double precision applied in double arithmetic: every
   float is loaded as it is, products and sums are those of double precision. */
#ifndef HONE_APPLY_H
#define HONE_APPLY_H

#include "base/base.h"
#include "base/entry.h"

/* The factors that F holds, column by column. */
typedef enum hone_form {
  HONE_FORM_LU,         /* P S = L U, L of unit diagonal */
  HONE_FORM_TRANSPOSED, /* S P^T = L U, U of unit diagonal: hone_small_lu's */
  HONE_FORM_CHOLESKY    /* S = L L^T; complex: L L^H */
} hone_form;

typedef struct hone_factors {
  hone_form form;
  int64_t n, ld;
  const void *f;    /* n x n, ld; floats or doubles */
  const int *pivot; /* n: row (transposed: column) k was exchanged with
                       pivot[k] - base; not of Cholesky */
  int base;         /* 0 or 1: where pivot counts from */
} hone_factors;

/* In place: v = inv(S) v or inv(S^T) v for k columns, ldv >= n. The bits do
   not depend on the number of threads. */
void hone_apply_32(hone_pool *pool, const hone_factors *factors, bool trans,
                   int64_t k, hone_entry *v, int64_t ldv);
void hone_apply_64(hone_pool *pool, const hone_factors *factors, bool trans,
                   int64_t k, hone_entry *v, int64_t ldv);

#endif
