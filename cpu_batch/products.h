/* SPDX-License-Identifier: BSD-3-Clause */
/* Products with S and residuals, for both layouts of systems in vectors. */
#ifndef HONE_PRODUCTS_LANES_H
#define HONE_PRODUCTS_LANES_H

#include "cpu_batch/parts.h"

/* Vectors of sums that stay in registers: in a product, and in a residual. */
enum {
  FOLDED = 4, /* columns after which pairs of a residual are folded */
  ROWS = 4 / HONE_PARTS,
#if defined(__AVX512F__) || defined(__aarch64__)
  RESIDUAL_ROWS = 4 / HONE_PARTS
#else
  RESIDUAL_ROWS = 2 / HONE_PARTS
#endif
};

/* out = S v for m columns, every product and every sum rounded: with fused
   operations S z and the solve for it can undo one another exactly
   (docs/numerics.md). All systems have the same v. */
INLINE void multiply_rows(const int rows, const int m, const parts *p,
                          int64_t i0, const hone_entry *v, many *out) {
  many sum[ROWS][COLUMNS];
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      sum[r][c] = nothing();
  for (int64_t j = 0; j < p->n; j++)
    for (int c = 0; c < m; c++) {
      const many by = everywhere_of(v[j + c * p->n]);
      for (int r = 0; r < rows; r++)
        sum[r][c] = plus_rounded(sum[r][c], p->s[i0 + r + j * p->ld], by);
    }
  for (int c = 0; c < m; c++)
    for (int r = 0; r < rows; r++)
      out[i0 + r + c * p->m] = sum[r][c];
}

static void multiply(const parts *p, const hone_entry *v, many *out) {
  int64_t i = 0;
  for (; i + ROWS <= p->m; i += ROWS)
    multiply_rows(ROWS, COLUMNS, p, i, v, out);
  for (; i < p->m; i++)
    multiply_rows(1, COLUMNS, p, i, v, out);
}

/* r = c - S y in plain double. */
INLINE void plain_rows(const int rows, const parts *p, int64_t i0,
                       const many *c, const many *y, many *r) {
  many sum[ROWS];
  for (int k = 0; k < rows; k++)
    sum[k] = c[i0 + k];
  for (int64_t j = 0; j < p->n; j++) {
    const many by = entry_at(y, j);
    for (int k = 0; k < rows; k++)
      sum[k] = minus_product(sum[k], p->s[i0 + k + j * p->ld], by);
  }
  for (int k = 0; k < rows; k++)
    r[i0 + k] = sum[k];
}

static void plain_residual(const parts *p, const many *c, const many *y,
                           many *r) {
  int64_t i = 0;
  for (; i + ROWS <= p->m; i += ROWS)
    plain_rows(ROWS, p, i, c, y, r);
  for (; i < p->m; i++)
    plain_rows(1, p, i, c, y, r);
}

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|; |y| is
   in few. */
INLINE void residual_rows(const int rows, const parts *p, int64_t i0,
                          const many *c, const many *y, many *r) {
  many hi[ROWS], lo[ROWS];
  lanes den[ROWS];
  for (int k = 0; k < rows; k++) {
    hi[k] = c[i0 + k];
    lo[k] = nothing();
    den[k] = modulus_of(hi[k]);
  }
  for (int64_t j = 0; j < p->n; j++) {
    const many by = entry_at(y, j);
    const lanes size = number_at(p->few, j);
    for (int k = 0; k < rows; k++) {
      const int64_t at = i0 + k + j * p->ld;
      const many s = p->s[at];
      subtract_exact_product(s, by, &hi[k], &lo[k]);
      den[k] =
          multiply_add(MODULI ? p->moduli[at] : modulus_of(s), size, den[k]);
      if (j % FOLDED == FOLDED - 1)
        fold(&hi[k], &lo[k]);
    }
  }
  for (int k = 0; k < rows; k++) {
    r[i0 + k] = sum_of(hi[k], lo[k]);
    p->den[i0 + k] = den[k];
  }
}

static void residual(const parts *p, const many *c, const many *y, many *r) {
  int64_t i = 0;
  for (int64_t j = 0; j < p->m; j++)
    p->few[j] = modulus_of(y[j]);
  for (; i + RESIDUAL_ROWS <= p->m; i += RESIDUAL_ROWS)
    residual_rows(RESIDUAL_ROWS, p, i, c, y, r);
  for (; i < p->m; i++)
    residual_rows(1, p, i, c, y, r);
}

#endif
