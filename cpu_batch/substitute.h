/* SPDX-License-Identifier: BSD-3-Clause */
/* Substitution with the factors of all lanes, and products with S. */
#ifndef HONE_SUBSTITUTE_LANES_H
#define HONE_SUBSTITUTE_LANES_H

#include "cpu_batch/parts.h"

/* Rows whose sums stay in registers: in a product, and in a residual. */
enum {
  ROWS = 4 / HONE_PARTS,
#if defined(__AVX512F__) || defined(__aarch64__)
  RESIDUAL_ROWS = 4 / HONE_PARTS
#else
  RESIDUAL_ROWS = 2 / HONE_PARTS
#endif
};

/* x[i0 .. i0+rows-1] -= F[the same rows, k0 .. k1-1] x[k0 .. k1-1], for m
   columns of n. */
INLINE void subtract_rows(const int rows, const int m, const parts *p,
                          int64_t i0, int64_t k0, int64_t k1, many *x) {
  const int64_t n = p->n;
  many sum[ROWS][AT_ONCE];
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
  const int64_t n = p->n, whole = n - n % ROWS;
  for (int64_t i = 0; i < whole; i += ROWS) {
    subtract_rows(ROWS, m, p, i, 0, i, x);
    for (int r = 1; r < ROWS; r++)
      subtract_rows(1, m, p, i + r, i, i + r, x);
  }
  for (int64_t i = whole; i < n; i++)
    subtract_rows(1, m, p, i, 0, i, x);
  for (int64_t i = n; i > 0;) {
    const int rows = i > whole ? 1 : ROWS;
    i -= rows;
    if (rows > 1)
      subtract_rows(ROWS, m, p, i, i + ROWS, n, x);
    for (int64_t r = i + rows - 1; r >= i; r--) {
      subtract_rows(1, m, p, r, r + 1, rows > 1 ? i + ROWS : n, x);
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

/* out = S v for m columns, every product and every sum rounded: with fused
   operations S z and the solve for it can undo one another exactly
   (docs/numerics.md). v holds one vector for all lanes. */
INLINE void multiply_rows(const int rows, const int m, const parts *p,
                          int64_t i0, const hone_entry *v, many *out) {
  const int64_t n = p->n;
  many sum[ROWS][COLUMNS];
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      sum[r][c] = nothing();
  for (int64_t j = 0; j < n; j++)
    for (int c = 0; c < m; c++) {
      many by;
      by.part[0] = all(hone_real(v[j + c * n]));
      if (HONE_PARTS == 2)
        by.part[HONE_PARTS - 1] = all(hone_imag(v[j + c * n]));
      for (int r = 0; r < rows; r++)
        sum[r][c] = plus_rounded(sum[r][c], p->s[i0 + r + j * p->ld], by);
    }
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      out[i0 + r + c * n] = sum[r][c];
}

static void multiply(const parts *p, const hone_entry *v, many *out) {
  int64_t i = 0;
  for (; i + ROWS <= p->n; i += ROWS)
    multiply_rows(ROWS, COLUMNS, p, i, v, out);
  for (; i < p->n; i++)
    multiply_rows(1, COLUMNS, p, i, v, out);
}

/* r = c - S y in plain double. */
INLINE void plain_rows(const int rows, const parts *p, int64_t i0,
                       const many *c, const many *y, many *r) {
  many sum[ROWS];
  for (int k = 0; k < rows; k++)
    sum[k] = c[i0 + k];
  for (int64_t j = 0; j < p->n; j++)
    for (int k = 0; k < rows; k++)
      sum[k] = minus_product(sum[k], p->s[i0 + k + j * p->ld], y[j]);
  for (int k = 0; k < rows; k++)
    r[i0 + k] = sum[k];
}

static void plain_residual(const parts *p, const many *c, const many *y,
                           many *r) {
  int64_t i = 0;
  for (; i + ROWS <= p->n; i += ROWS)
    plain_rows(ROWS, p, i, c, y, r);
  for (; i < p->n; i++)
    plain_rows(1, p, i, c, y, r);
}

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|. */
INLINE void residual_rows(const int rows, const parts *p, int64_t i0,
                          const many *c, const many *y, many *r) {
  const int64_t n = p->n;
  many hi[ROWS], lo[ROWS];
  lanes den[ROWS];
  for (int k = 0; k < rows; k++) {
    hi[k] = c[i0 + k];
    lo[k] = nothing();
    den[k] = modulus_of(hi[k]);
  }
  for (int64_t j = 0; j < n; j++) {
    const many by = y[j];
    const lanes size = modulus_of(by);
    for (int k = 0; k < rows; k++) {
      const many s = p->s[i0 + k + j * p->ld];
      subtract_exact_product(s, by, &hi[k], &lo[k]);
      den[k] = multiply_add(modulus_of(s), size, den[k]);
    }
  }
  for (int k = 0; k < rows; k++) {
    r[i0 + k] = sum_of(hi[k], lo[k]);
    p->den[i0 + k] = den[k];
  }
}

static void residual(const parts *p, const many *c, const many *y, many *r) {
  int64_t i = 0;
  for (; i + RESIDUAL_ROWS <= p->n; i += RESIDUAL_ROWS)
    residual_rows(RESIDUAL_ROWS, p, i, c, y, r);
  for (; i < p->n; i++)
    residual_rows(1, p, i, c, y, r);
}

#endif
