/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting, P S = L U, of the matrices in all lanes at once:
   right-looking, by panels, with a tile of the trailing matrix in registers.
   Every lane has pivots of its own. */
#ifndef HONE_FACTOR_LANES_H
#define HONE_FACTOR_LANES_H

#include "cpu_batch/parts.h"

enum {
  ALONE = 12, /* the largest order that is one panel */
  PANEL = 8,
  WIDE_PANEL = 16, /* the latter from WIDE_FROM on */
  WIDE_FROM = 64,
#if defined(__AVX512F__) || defined(__aarch64__)
  TILE_ROWS = HONE_PARTS == 1 ? 4 : 2, /* 32 registers */
  TILE_COLUMNS = 4
#else
  TILE_ROWS = HONE_PARTS == 1 ? 4 : 2, /* 16 registers */
  TILE_COLUMNS = 2
#endif
};

/* Exchanges row k with row pivot[k] of each lane, in turn for k = k0 .. k1 - 1,
   in one column. */
INLINE void exchange(many *column, const mask *pivot, int64_t k0, int64_t k1) {
  for (int64_t k = k0; k < k1; k++)
    for (int l = 0; l < LANES; l++) {
      const int64_t r = pivot[k][l];
      for (int q = 0; q < HONE_PARTS; q++) {
        double *a = (double *)&column[k].part[q] + l;
        double *b = (double *)&column[r].part[q] + l;
        const double held = *a;
        *a = *b;
        *b = held;
      }
    }
}

/* The row of the largest entry of column k, from k on. Its size becomes *size.
 */
INLINE mask find_pivot(int64_t n, const many *column, int64_t k, lanes *size) {
  lanes most = size_of(column[k]);
  mask at = (mask)all(0.0) + k, row = at;
  for (int64_t i = k + 1; i < n; i++) {
    const lanes v = size_of(column[i]);
    const mask is = v > most;
    row += 1;
    most = choose(is, v, most);
    at = (at & ~is) | (row & is);
  }
  *size = most;
  return at;
}

/* column[i] -= l[i] u for i = from .. n - 1. */
INLINE void eliminate(int64_t from, int64_t n, const many *l, many u,
                      many *column) {
  for (int64_t i = from; i < n; i++)
    column[i] = minus_product(column[i], l[i], u);
}

static void factor_panel(const parts *p, int64_t k0, int64_t k1, pivots *out) {
  const int64_t n = p->n;
  for (int64_t k = k0; k < k1; k++) {
    many *column = p->f + k * p->ld;
    lanes size;
    const mask at = find_pivot(n, column, k, &size);
    take_pivot(k, size, out);
    out->parity = choose(at != k, -out->parity, out->parity);
    p->pivot[k] = at;
    if (any(at != k))
      for (int64_t j = k0; j < k1; j++)
        exchange(p->f + j * p->ld, p->pivot, k, k + 1);
    const many by = p->inverse[k] = reciprocal_of(column[k]);
    for (int64_t i = k + 1; i < n; i++)
      column[i] = product_of(column[i], by);
    for (int64_t j = k + 1; j < k1; j++)
      eliminate(k + 1, n, column, p->f[k + j * p->ld], p->f + j * p->ld);
  }
}

/* Factors the panel of a Hermitian matrix, without exchanges: S = L D L^H, D
   being positive. The rows of U = D L^H to its right follow from its columns.
 */
static void factor_definite_panel(const parts *p, int64_t k0, int64_t k1,
                                  pivots *out) {
  const int64_t n = p->n;
  for (int64_t k = k0; k < k1; k++) {
    many *column = p->f + k * p->ld;
    many d = nothing();
    d.part[0] = column[k].part[0];
    take_pivot(k, d.part[0], out);
    column[k] = d;
    const many by = p->inverse[k] = reciprocal_of(d);
    p->pivot[k] = (mask)all(0.0) + k;
    for (int64_t i = k + 1; i < n; i++) {
      p->f[k + i * p->ld] = conjugate_of(column[i]);
      column[i] = product_of(column[i], by);
    }
    for (int64_t j = k + 1; j < k1; j++)
      eliminate(j, n, column, p->f[k + j * p->ld], p->f + j * p->ld);
  }
}

/* A tile of F22 -= L21 U12, rows i and columns j on, from the columns k0 .. k1
   - 1 of L. */
INLINE void update_tile(const int rows, const int columns, const parts *p,
                        int64_t i, int64_t j, int64_t k0, int64_t k1) {
  const int64_t ld = p->ld;
  many *f = p->f;
  many sum[TILE_ROWS][TILE_COLUMNS];
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++)
      sum[r][c] = f[i + r + (j + c) * ld];
  for (int64_t k = k0; k < k1; k++) {
    many l[TILE_ROWS];
    for (int r = 0; r < rows; r++)
      l[r] = f[i + r + k * ld];
    for (int c = 0; c < columns; c++) {
      const many u = f[k + (j + c) * ld];
      for (int r = 0; r < rows; r++)
        sum[r][c] = minus_product(sum[r][c], l[r], u);
    }
  }
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++)
      f[i + r + (j + c) * ld] = sum[r][c];
}

/* The rows from 'i' on of these columns. */
INLINE void update_columns(const int columns, const parts *p, int64_t i,
                           int64_t j, int64_t k0, int64_t k1) {
  for (; i + TILE_ROWS <= p->n; i += TILE_ROWS)
    update_tile(TILE_ROWS, columns, p, i, j, k0, k1);
  for (; i < p->n; i++)
    update_tile(1, columns, p, i, j, k0, k1);
}

/* U12 = inv(L11) F12 and F22 -= L21 U12 for the columns from k1 on; of a
   definite matrix U12 is known, and the lower triangle of F22 suffices. */
static void update(const parts *p, bool definite, int64_t k0, int64_t k1) {
  const int64_t n = p->n;
  for (int64_t j = k1; j < n && !definite; j++) {
    many *column = p->f + j * p->ld;
    for (int64_t k = k0; k < k1; k++)
      eliminate(k + 1, k1, p->f + k * p->ld, column[k], column);
  }
  int64_t j = k1;
  for (; j + TILE_COLUMNS <= n; j += TILE_COLUMNS)
    update_columns(TILE_COLUMNS, p, definite ? j : k1, j, k0, k1);
  for (; j < n; j++)
    update_columns(1, p, definite ? j : k1, j, k0, k1);
}

/* from = the rows of S in the order of P S. */
static void follow_exchanges(const parts *p) {
  const int64_t n = p->n;
  for (int64_t i = 0; i < n; i++)
    p->from[i] = rows_of(i);
  for (int64_t k = 0; k < n; k++)
    for (int l = 0; l < LANES; l++) {
      const int64_t r = p->pivot[k][l], held = p->from[k][l];
      p->from[k][l] = p->from[r][l];
      p->from[r][l] = held;
    }
}

/* Factors f, which holds a copy of S. */
static pivots factor(const parts *p, bool definite) {
  const int64_t n = p->n;
  const int64_t width = n <= ALONE ? n : n < WIDE_FROM ? PANEL : WIDE_PANEL;
  pivots out = {all(HONE_INF), (mask)all(0.0), all(1.0)};
  for (int64_t k0 = 0; k0 < n; k0 += width) {
    const int64_t k1 = HONE_MIN(k0 + width, n);
    if (definite)
      factor_definite_panel(p, k0, k1, &out);
    else
      factor_panel(p, k0, k1, &out);
    for (int64_t j = 0; j < n && !definite; j++)
      if (j < k0 || j >= k1)
        exchange(p->f + j * p->ld, p->pivot, k0, k1);
    if (k1 < n)
      update(p, definite, k0, k1);
  }
  follow_exchanges(p);
  return out;
}

#endif
