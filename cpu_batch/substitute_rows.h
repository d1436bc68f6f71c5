/* SPDX-License-Identifier: BSD-3-Clause */
/* Substitution with the factors of one system, whose columns are vectors. */
#ifndef HONE_SUBSTITUTE_ROWS_H
#define HONE_SUBSTITUTE_ROWS_H

#include "cpu_batch/parts.h"

/* x -= F[the rows of vectors from .. to - 1, LANES columns from k0 on] by, for
   m right-hand sides. */
INLINE void subtract_columns(const int m, const parts *p, int64_t k0,
                             int64_t from, int64_t to,
                             const many by[LANES][AT_ONCE], many *x) {
  for (int64_t i = from; i < to; i++) {
    const many *f = p->f + i + k0 * p->ld;
    many sum[AT_ONCE], other[AT_ONCE];
    UNROLL
    for (int c = 0; c < m; c++) {
      sum[c] = x[i + c * p->m];
      other[c] = nothing();
    }
    for (int k = 0; k < LANES; k++)
      for (int c = 0; c < m; c++)
        if (k % 2 == 0)
          sum[c] = minus_product(sum[c], f[k * p->ld], by[k][c]);
        else
          other[c] = minus_product(other[c], f[k * p->ld], by[k][c]);
    UNROLL
    for (int c = 0; c < m; c++)
      x[i + c * p->m] = sum_of(sum[c], other[c]);
  }
}

/* Vector i of inv(L) x, and what follows for those behind it. */
INLINE void solve_lower(const int m, const parts *p, int64_t i, many *x) {
  const int64_t k0 = i * LANES;
  many v[AT_ONCE], by[LANES][AT_ONCE];
  UNROLL
  for (int c = 0; c < m; c++)
    v[c] = x[i + c * p->m];
  UNROLL
  for (int k = 0; k < LANES; k++) {
    const many l =
        chosen(rows_of(0) > k, p->f[i + (k0 + k) * p->ld], nothing());
    UNROLL
    for (int c = 0; c < m; c++) {
      by[k][c] = entry_everywhere(v[c], k);
      v[c] = minus_product(v[c], l, by[k][c]);
    }
  }
  UNROLL
  for (int c = 0; c < m; c++)
    x[i + c * p->m] = v[c];
  subtract_columns(m, p, k0, i + 1, p->m, by, x);
}

/* Those of inv(U) x. The columns of U have been divided by their pivots
   there (divide_tops), so x is, at last. */
INLINE void solve_upper(const int m, const parts *p, int64_t i, many *x) {
  const int64_t k0 = i * LANES;
  many v[AT_ONCE], by[LANES][AT_ONCE];
  UNROLL
  for (int c = 0; c < m; c++)
    v[c] = x[i + c * p->m];
  UNROLL
  for (int k = LANES - 1; k >= 0; k--) {
    const many u =
        chosen(rows_of(0) < k, p->f[i + (k0 + k) * p->ld], nothing());
    const many inverse = entry_at(p->inverse, k0 + k);
    UNROLL
    for (int c = 0; c < m; c++) {
      const many own = entry_everywhere(v[c], k);
      v[c] = minus_product(v[c], u, own);
      by[k][c] = product_of(own, inverse);
    }
  }
  UNROLL
  for (int c = 0; c < m; c++)
    x[i + c * p->m] = product_of(v[c], p->inverse[i]);
  subtract_columns(m, p, k0, 0, i, by, x);
}

/* Makes the exchanges of the DEEPEST steps from k0 on in m right-hand sides. */
INLINE void exchange_in(const int m, const parts *p, int64_t k0, many *x) {
  const int64_t *pivot = (const int64_t *)p->pivot;
  for (int64_t k = k0; k < HONE_MIN(k0 + DEEPEST, p->n); k++)
    for (int c = 0; c < m; c++)
      exchange_rows(x + c * p->m, k, pivot[k]);
}

/* x = inv(U) inv(L) x. */
INLINE void substitute(const int m, const parts *p, many *x) {
  for (int64_t i = 0; i < p->m; i++) {
    if (i * LANES % DEEPEST == 0)
      exchange_in(m, p, i * LANES, x);
    solve_lower(m, p, i, x);
  }
  for (int64_t i = p->m - 1; i >= 0; i--)
    solve_upper(m, p, i, x);
}

/* x = inv(S) v as far as the factors give it. */
static void solve_one(const parts *p, const many *v, many *x) {
  memcpy(x, v, (size_t)p->m * sizeof *x);
  substitute(1, p, x);
}

/* Does so for 2 COLUMNS. */
static void solve_columns(const parts *p, const many *v, many *x) {
  memcpy(x, v, (size_t)(2 * COLUMNS * p->m) * sizeof *x);
  for (int c = 0; c < 2 * COLUMNS; c += AT_ONCE)
    substitute(AT_ONCE, p, x + c * p->m);
}

/* sum[k] -= the inner products of columns k0 + k of F and v, over the rows of
   vectors from .. to - 1. */
INLINE void subtract_products(const parts *p, int64_t k0, int64_t from,
                              int64_t to, const many *v, many *sum) {
  for (int k = 0; k < LANES && k0 + k < p->n; k++) {
    many own = nothing();
    for (int64_t i = from; i < to; i++)
      own = minus_product(own, p->f[i + (k0 + k) * p->ld], v[i]);
    for (int q = 0; q < HONE_PARTS; q++)
      sum[k].part[q] = sum_over(own.part[q]);
    sum[k] = sum_of(sum[k], entry_at(v, k0 + k));
  }
}

/* x = inv(S^T) v, by inner products with columns of the factors. v is
   overwritten. */
static void solve_transposed(const parts *p, many *v, many *x) {
  const int64_t *pivot = (const int64_t *)p->pivot;
  many sum[LANES];
  for (int64_t i = 0; i < p->m; i++) {
    const int64_t k0 = i * LANES;
    subtract_products(p, k0, 0, i, v, sum);
    for (int k = 0; k < LANES && k0 + k < p->n; k++) {
      const many *column = p->f + (k0 + k) * p->ld;
      sum[k] = product_of(sum[k], entry_at(p->inverse, k0 + k));
      for (int s = 0; s < k; s++)
        sum[k] = minus_product(sum[k], entry_at(column, k0 + s), sum[s]);
      for (int q = 0; q < HONE_PARTS; q++)
        *entry_place(v, k0 + k, 0, q) = sum[k].part[q][0];
    }
  }
  for (int64_t i = p->m - 1; i >= 0; i--) {
    const int64_t k0 = i * LANES;
    const int count = (int)HONE_MIN((int64_t)LANES, p->n - k0);
    subtract_products(p, k0, i + 1, p->m, v, sum);
    UNROLL
    for (int k = count - 1; k >= 0; k--) {
      const many *column = p->f + (k0 + k) * p->ld;
      UNROLL
      for (int s = k + 1; s < count; s++)
        sum[k] = minus_product(sum[k], entry_at(column, k0 + s), sum[s]);
      for (int q = 0; q < HONE_PARTS; q++)
        *entry_place(v, k0 + k, 0, q) = sum[k].part[q][0];
    }
    if (k0 % DEEPEST == 0)
      for (int64_t k = HONE_MIN(k0 + DEEPEST, p->n) - 1; k >= k0; k--)
        exchange_rows(v, k, pivot[k]);
  }
  for (int64_t i = 0; i < p->m; i++)
    x[i] = chosen(rows_of(i) < p->n, v[i], nothing());
}

#endif
