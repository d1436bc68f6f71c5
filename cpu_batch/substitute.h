/* SPDX-License-Identifier: BSD-3-Clause */
/* Substitution with the factors of all lanes. */
#ifndef HONE_SUBSTITUTE_LANES_H
#define HONE_SUBSTITUTE_LANES_H

#include "cpu_batch/parts.h"

/* Rows whose sums stay in registers. */
enum { SUMS = 4 / HONE_PARTS };

/* x[i0 .. i0+rows-1] -= F[the same rows, k0 .. k1-1] x[k0 .. k1-1], for m
   columns of n. */
INLINE void subtract_rows(const int rows, const int m, const parts *p,
                          int64_t i0, int64_t k0, int64_t k1, many *x) {
  const int64_t n = p->n;
  many sum[SUMS][AT_ONCE];
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      sum[r][c] = x[i0 + r + c * n];
  for (int64_t k = k0; k < k1; k++)
    for (int c = 0; c < m; c++) {
      const many by = x[k + c * n];
      for (int r = 0; r < rows; r++)
        sum[r][c] = minus_product(sum[r][c], p->f[i0 + r + k * p->ld], by);
    }
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      x[i0 + r + c * n] = sum[r][c];
}

/* x = inv(U) inv(L) x. */
INLINE void substitute(const int m, const parts *p, many *x) {
  const int64_t n = p->n, whole = n - n % SUMS;
  for (int64_t i = 0; i < whole; i += SUMS) {
    subtract_rows(SUMS, m, p, i, 0, i, x);
    for (int r = 1; r < SUMS; r++)
      subtract_rows(1, m, p, i + r, i, i + r, x);
  }
  for (int64_t i = whole; i < n; i++)
    subtract_rows(1, m, p, i, 0, i, x);
  for (int64_t i = n; i > 0;) {
    const int rows = i > whole ? 1 : SUMS;
    i -= rows;
    if (rows > 1)
      subtract_rows(SUMS, m, p, i, i + SUMS, n, x);
    for (int64_t r = i + rows - 1; r >= i; r--) {
      subtract_rows(1, m, p, r, r + 1, rows > 1 ? i + SUMS : n, x);
      for (int c = 0; c < m; c++)
        x[r + c * n] = product_of(x[r + c * n], p->inverse[r]);
    }
  }
}

/* to = P v for one column. */
INLINE void permute(const parts *p, const many *v, many *to) {
  for (int64_t i = 0; i < p->n; i++)
    for (int q = 0; q < HONE_PARTS; q++)
      for (int l = 0; l < LANES; l++)
        to[i].part[q][l] = v[p->from[i][l]].part[q][l];
}

/* x = inv(S) v as far as the factors give it, for m columns. */
static void solve_one(const parts *p, const many *v, many *x) {
  permute(p, v, x);
  substitute(1, p, x);
}

/* Does so for 2 COLUMNS. */
static void solve_columns(const parts *p, const many *v, many *x) {
  for (int c = 0; c < 2 * COLUMNS; c++)
    permute(p, v + c * p->n, x + c * p->n);
  for (int c = 0; c < 2 * COLUMNS; c += AT_ONCE)
    substitute(AT_ONCE, p, x + c * p->n);
}

/* x = inv(S^T) v, by inner products with columns of the factors. v is
   overwritten. */
static void solve_transposed(const parts *p, many *v, many *x) {
  const int64_t n = p->n;
  for (int64_t i = 0; i < n; i++) {
    many sum = v[i];
    for (int64_t k = 0; k < i; k++)
      sum = minus_product(sum, p->f[k + i * p->ld], v[k]);
    v[i] = product_of(sum, p->inverse[i]);
  }
  for (int64_t i = n - 1; i >= 0; i--) {
    many sum = v[i];
    for (int64_t k = i + 1; k < n; k++)
      sum = minus_product(sum, p->f[k + i * p->ld], v[k]);
    v[i] = sum;
  }
  for (int64_t i = 0; i < n; i++)
    for (int q = 0; q < HONE_PARTS; q++)
      for (int l = 0; l < LANES; l++)
        x[p->from[i][l]].part[q][l] = v[i].part[q][l];
}

#endif
