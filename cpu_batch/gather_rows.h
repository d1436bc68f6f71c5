/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the matrix of one system into vectors, column by column. */
#ifndef HONE_GATHER_ROWS_H
#define HONE_GATHER_ROWS_H

#include "cpu_batch/extent.h"

/* Rows i .. i + LANES - 1 of a column of n entries that are 'step' apart. */
INLINE many load_column(const hone_entry *column, int64_t step, int64_t i,
                        int64_t n) {
  many e = nothing();
  if (step == 1)
    return load_rows(column, i, n);
  for (int l = 0; l < LANES && i + l < n; l++)
    put_lane(&e, l, column[(i + l) * step]);
  return e;
}

/* Fetches rows i .. i + LANES - 1 of a column that will be read after some 4
   KB: of this matrix, or of the next one. */
INLINE void fetch_column(const hone_block_matrix *a, int64_t n, int64_t i,
                         int64_t j) {
  const int64_t size = (int64_t)sizeof(hone_entry);
  const int64_t then = j + HONE_MIN(4096 / (n * size) + 1, n);
  const hone_entry *matrix = then < n ? a->at : a->next;
  const int64_t column = then < n ? then : then - n;
  if (a->row != 1 || matrix == NULL)
    return;
  for (int l = 0; l < LANES; l += (int)(64 / size))
    __builtin_prefetch(matrix + i + l + column * a->column);
}

/* s = f = op(A); its norms, and the largest modulus of every row and column, in
   row and col. */
INLINE void gather(const parts *p, const hone_block_matrix *a, packed *out) {
  const int64_t n = p->n;
  extent extremes = begin_extent();
  lanes sum_most = all(0.0), row_sum_most = all(0.0);
  lanes largest = all(0.0), least = all(HONE_INF);
  for (int64_t i = 0; i < p->m; i++)
    p->row[i] = p->den[i] = all(0.0);
  for (int64_t j = 0; j < n; j++) {
    lanes most = all(0.0), sum = all(0.0);
    for (int64_t i = 0; i < p->m; i++) {
      many e = load_column(a->at + j * a->column, a->row, i * LANES, n);
      fetch_column(a, n, i * LANES, j);
      if (HONE_PARTS == 2 && a->conjugate)
        e.part[HONE_PARTS - 1] = -e.part[HONE_PARTS - 1];
      const lanes modulus = modulus_of(e);
      take_extent(&extremes, e);
      p->row[i] = larger(modulus, p->row[i]);
      p->den[i] += modulus;
      most = larger(modulus, most);
      sum += modulus;
      p->s[i + j * p->ld] = p->f[i + j * p->ld] = e;
      if (MODULI)
        p->moduli[i + j * p->ld] = modulus;
    }
    put_number(p->col, j, largest_over(most));
    sum_most = larger(sum_over(sum), sum_most);
  }
  repeat_last(n, p->row);
  repeat_last(n, p->col);
  for (int64_t i = 0; i < p->m; i++) {
    row_sum_most = larger(p->den[i], row_sum_most);
    largest = larger(p->row[i], largest);
    least = smaller(smaller(p->row[i], p->col[i]), least);
  }
  out->max_abs = largest_over(largest)[0];
  out->min_abs = smallest_over(least)[0];
  out->serves = is_within(&extremes, LARGEST_ENTRY, SMALLEST_ENTRY) &
                (all(out->min_abs) > 0.0);
  out->norm_rows = largest_over(row_sum_most);
  out->norm_cols = sum_most;
}

#endif
