/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting of one system whose columns are vectors:
   right-looking, by panels of PANEL columns, two of which, DEEPEST columns,
   update a tile of the trailing matrix in registers. Rows of L are not
   exchanged by the steps of later columns: S = P1 L1 P2 L2 .. U, where each
   factor is that of DEEPEST columns, as in LINPACK. */
#ifndef HONE_FACTOR_ROWS_H
#define HONE_FACTOR_ROWS_H

#include "cpu_batch/parts.h"

enum {
  PANEL = 8,
  DEEPEST = 16,
  TOPS = DEEPEST / LANES, /* vectors with the first rows of so many columns */
#if defined(__AVX512F__) || defined(__aarch64__)
  TILE_ROWS = 4 / HONE_PARTS, /* vectors; 32 registers */
  TILE_COLUMNS = 4
#else
  TILE_ROWS = 4 / HONE_PARTS, /* 16 registers */
  TILE_COLUMNS = 2
#endif
};

/* Exchanges rows i and k of the columns j0 .. j1 - 1. The vectors that have
   them are read and written as a whole, as they are just before and after. */
INLINE void exchange_in_panel(const parts *p, int64_t i, int64_t k, int64_t j0,
                              int64_t j1) {
  const mask row = rows_of(0), is_i = row == lane_in(i),
             is_k = row == lane_in(k);
  for (int64_t j = j0; j < j1; j++) {
    many *a = p->f + j * p->ld + vector_of(i),
         *b = p->f + j * p->ld + vector_of(k);
    const many of_i = entry_everywhere(*a, (int)lane_in(i));
    const many of_k = entry_everywhere(*b, (int)lane_in(k));
    *a = chosen(is_i, of_k, *a);
    *b = chosen(is_k, of_i, *b);
  }
}

INLINE many only(mask is, many v) { return chosen(is, v, nothing()); }

/* Divides column k by its pivot below the diagonal, and subtracts it from the
   next 'count' columns. Returns the largest entry below row k of the first of
   these. */
INLINE search eliminate(const int count, const parts *p, int64_t k, many by) {
  const int64_t ld = p->ld;
  many *column = p->f + k * ld, u[PANEL];
  search next = {all(-1.0), (mask)all(0.0)};
  UNROLL
  for (int c = 0; c < count; c++)
    u[c] = entry_at(column + (c + 1) * ld, k);
  for (int64_t i = k / LANES; i < p->m; i++) {
    const mask rows = rows_of(i), below = rows > k;
    const many l = product_of(column[i], by), own = only(below, l);
    column[i] = chosen(below, l, column[i]);
    UNROLL
    for (int c = 0; c < count; c++) {
      many *at = &column[i + (c + 1) * ld];
      *at = minus_product(*at, own, u[c]);
      if (c == 0)
        look(&next, choose(below, size_of(*at), all(-1.0)), rows);
    }
  }
  return next;
}

/* Does so for the columns of the panel behind number k. */
INLINE search eliminate_some(int64_t count, const parts *p, int64_t k,
                             many by) {
  switch (count) {
  case 1:
    return eliminate(1, p, k, by);
  case 2:
    return eliminate(2, p, k, by);
  case 3:
    return eliminate(3, p, k, by);
  case 4:
    return eliminate(4, p, k, by);
  case 5:
    return eliminate(5, p, k, by);
  case 6:
    return eliminate(6, p, k, by);
  case 7:
    return eliminate(7, p, k, by);
  default:
    return eliminate(0, p, k, by);
  }
}

static void factor_panel(const parts *p, bool definite, int64_t k0, int64_t k1,
                         pivots *out) {
  const int64_t ld = p->ld;
  int64_t *pivot = (int64_t *)p->pivot;
  search next = {all(-1.0), (mask)all(0.0)};
  for (int64_t i = k0 / LANES; i < p->m; i++)
    look(&next, size_of(p->f[i + k0 * ld]), rows_of(i));
  for (int64_t k = k0; k < k1; k++) {
    many *column = p->f + k * ld;
    const search found = found_over(next);
    const int64_t r = definite ? k : found.at[0];
    pivot[k] = r;
    take_pivot(k, definite ? entry_at(column, k).part[0] : found.most, out);
    if (r != k)
      exchange_in_panel(p, k, r, k0, k1);
    out->parity = r != k ? -out->parity : out->parity;
    const many by = reciprocal_of(entry_at(column, k));
    for (int q = 0; q < HONE_PARTS; q++)
      *entry_place(p->inverse, k, 0, q) = by.part[q][0];
    next = eliminate_some(k1 - k - 1, p, k, by);
  }
}

/* U12 = inv(L11) F12 for some columns from j on; L11 has 'depth' columns, from
   k0 on. */
INLINE void solve_top(const int depth, const int columns, const parts *p,
                      int64_t k0, int64_t j) {
  const int tops = depth / LANES;
  const int64_t ld = p->ld;
  many *f = p->f + vector_of(k0), x[TOPS][TILE_COLUMNS];
  for (int c = 0; c < columns; c++)
    for (int t = 0; t < tops; t++)
      x[t][c] = f[t + (j + c) * ld];
  UNROLL
  for (int k = 0; k < depth; k++) {
    const many *l = f + (k0 + k) * ld;
    const many own = only(rows_of(0) > k % LANES, l[k / LANES]);
    UNROLL
    for (int c = 0; c < columns; c++) {
      const many u = entry_everywhere(x[k / LANES][c], k % LANES);
      x[k / LANES][c] = minus_product(x[k / LANES][c], own, u);
      UNROLL
      for (int t = k / LANES + 1; t < tops; t++)
        x[t][c] = minus_product(x[t][c], l[t], u);
    }
  }
  for (int c = 0; c < columns; c++)
    for (int t = 0; t < tops; t++)
      f[t + (j + c) * ld] = x[t][c];
}

/* A tile of F22 -= L21 U12, vectors i and columns j on. */
INLINE void update_tile(const int depth, const int rows, const int columns,
                        const parts *p, int64_t k0, int64_t i, int64_t j) {
  const int64_t ld = p->ld;
  many *f = p->f, sum[TILE_ROWS][TILE_COLUMNS];
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++)
      sum[r][c] = f[i + r + (j + c) * ld];
  UNROLL
  for (int k = 0; k < depth; k++) {
    many l[TILE_ROWS];
    UNROLL
    for (int r = 0; r < rows; r++)
      l[r] = f[i + r + (k0 + k) * ld];
    UNROLL
    for (int c = 0; c < columns; c++) {
      const many u = entry_at(f + (j + c) * ld, k0 + k);
      UNROLL
      for (int r = 0; r < rows; r++)
        sum[r][c] = minus_product(sum[r][c], l[r], u);
    }
  }
  for (int c = 0; c < columns; c++)
    for (int r = 0; r < rows; r++)
      f[i + r + (j + c) * ld] = sum[r][c];
}

/* Lane c of vector r becomes lane r of vector c. */
INLINE void transpose(lanes v[LANES]) {
  UNROLL
  for (int by = LANES / 2; by > 0; by /= 2) {
    const mask second = (rows_of(0) & by) != 0;
    UNROLL
    for (int r = 0; r < LANES; r++) {
      if (r & by)
        continue;
      const lanes top = v[r], low = v[r + by];
      v[r] = choose(second, turned(low, by), top);
      v[r + by] = choose(second, low, turned(top, by));
    }
  }
}

/* A square of U12 = D L21^H of a Hermitian matrix: LANES rows from k on, which
   begin a vector, and the columns of the rows of vector i, up to number j1. */
INLINE void mirror_square(const parts *p, int64_t k, int64_t i, int64_t j1) {
  lanes u[HONE_PARTS][LANES];
  for (int c = 0; c < LANES; c++) {
    const many *column = p->f + (k + c) * p->ld;
    const lanes d = entry_at(column, k + c).part[0];
    u[0][c] = d * column[i].part[0];
    if (HONE_PARTS == 2)
      u[HONE_PARTS - 1][c] = -d * column[i].part[HONE_PARTS - 1];
  }
  for (int q = 0; q < HONE_PARTS; q++)
    transpose(u[q]);
  for (int l = 0; l < LANES && i * LANES + l < j1; l++)
    for (int q = 0; q < HONE_PARTS; q++)
      p->f[(i * LANES + l) * p->ld + vector_of(k)].part[q] = u[q][l];
}

/* U12 = D L21^H from the columns k0 .. k1 - 1 of L, whole vectors, for columns
   from j0 on, which begins one. */
static void mirror_top(const parts *p, int64_t k0, int64_t k1, int64_t j0,
                       int64_t j1) {
  for (int64_t k = k0; k < k1; k += LANES)
    for (int64_t i = vector_of(j0); i * LANES < j1; i++)
      mirror_square(p, k, i, j1);
}

/* The vectors from 'i' on of these columns. */
INLINE void update_columns(const int depth, const int columns, const parts *p,
                           int64_t k0, int64_t i, int64_t j) {
  for (; i + TILE_ROWS <= p->m; i += TILE_ROWS)
    update_tile(depth, TILE_ROWS, columns, p, k0, i, j);
  if (TILE_ROWS > 2 && i + 2 <= p->m) {
    update_tile(depth, 2, columns, p, k0, i, j);
    i += 2;
  }
  if (i < p->m)
    update_tile(depth, 1, columns, p, k0, i, j);
}

/* Updates the columns j0 .. j1 - 1 by 'depth' columns from k0 on; of a definite
   matrix the lower triangle suffices, and the rows beside it in a vector. */
INLINE void update(const int depth, const parts *p, bool definite, int64_t k0,
                   int64_t j0, int64_t j1) {
  const int64_t whole = j1 - (j1 - j0) % TILE_COLUMNS, below = k0 + depth;
  if (definite)
    mirror_top(p, k0, below, j0, j1);
  for (int64_t j = j0; j < whole && !definite; j += TILE_COLUMNS)
    solve_top(depth, TILE_COLUMNS, p, k0, j);
  for (int64_t j = whole; j < j1 && !definite; j++)
    solve_top(depth, 1, p, k0, j);
  for (int64_t j = j0; j < whole; j += TILE_COLUMNS)
    update_columns(depth, TILE_COLUMNS, p, k0, vector_of(definite ? j : below),
                   j);
  for (int64_t j = whole; j < j1; j++)
    update_columns(depth, 1, p, k0, vector_of(definite ? j : below), j);
}

/* Makes the exchanges of the steps k0 .. k1 - 1 in the columns j0 .. j1 - 1; of
   a definite matrix there are none. */
static void exchange(const parts *p, bool definite, int64_t k0, int64_t k1,
                     int64_t j0, int64_t j1) {
  const int64_t *pivot = (const int64_t *)p->pivot;
  for (int64_t j = j0; j < j1 && !definite; j++) {
    double *column = (double *)(p->f + j * p->ld);
    for (int64_t k = k0; k < k1; k++)
      for (int q = 0; q < HONE_PARTS; q++) {
        double *a = column + offset_of(k) + q * LANES;
        double *b = column + offset_of(pivot[k]) + q * LANES;
        const double held = *a;
        *a = *b;
        *b = held;
      }
  }
}

/* Divides column k of U by its pivot, in the vector that has it: so
   substitution has one operation less to wait for in each row. */
static void divide_tops(const parts *p) {
  for (int64_t k = 0; k < p->n; k++) {
    many *top = p->f + k * p->ld + vector_of(k);
    const many by = product_of(*top, entry_at(p->inverse, k));
    *top = chosen(rows_of(0) < lane_in(k), by, *top);
  }
}

/* Factors f, which holds a copy of S. A matrix that is said to be definite is
   not pivoted, and its pivots have to be positive: S = L D L^H, U = D L^H, from
   its lower triangle, but for what lies in a vector with that. */
static pivots factor(const parts *p, bool definite) {
  const int64_t n = p->n;
  pivots out = {all(HONE_INF), (mask)all(0.0), all(1.0)};
  p->inverse[p->m - 1] = nothing();
  for (int64_t i = n * p->ld; i < columns_of(n) * p->ld; i++)
    p->f[i] = nothing();
  for (int64_t k0 = 0; k0 < n; k0 += DEEPEST) {
    const int64_t k1 = HONE_MIN(k0 + PANEL, n), k2 = HONE_MIN(k0 + DEEPEST, n);
    factor_panel(p, definite, k0, k1, &out);
    exchange(p, definite, k0, k1, k1, k2);
    if (k1 < k2)
      update(PANEL, p, definite, k0, k1, k2);
    factor_panel(p, definite, k1, k2, &out);
    exchange(p, definite, k1, k2, k0, k1);
    exchange(p, definite, k0, k2, k2, n);
    if (k2 < n)
      update(DEEPEST, p, definite, k0, k2, n);
  }
  divide_tops(p);
  return out;
}

#endif
