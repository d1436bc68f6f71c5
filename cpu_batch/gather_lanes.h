/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings matrices into lanes, one into each. */
#ifndef HONE_GATHER_LANES_H
#define HONE_GATHER_LANES_H

#include "cpu_batch/extent.h"

/* Where the lanes' matrices lie, and how far entries are apart. */
typedef struct sources {
  const hone_entry *at[LANES], *next[LANES];
  int64_t row[LANES], column[LANES];
  bool conjugate;
} sources;

/* An empty lane has the matrix of another one, which no one reads. */
INLINE sources sources_of(const hone_block_matrix *m) {
  sources s = {.conjugate = false};
  int some = 0;
  for (int l = 0; l < LANES; l++)
    some = m[l].at != NULL ? l : some;
  for (int l = 0; l < LANES; l++) {
    const hone_block_matrix *from = m[l].at != NULL ? &m[l] : &m[some];
    s.at[l] = from->at;
    s.next[l] = from->next != NULL ? from->next : from->at;
    s.row[l] = from->row;
    s.column[l] = from->column;
    s.conjugate = s.conjugate || from->conjugate;
  }
  return s;
}

/* Found while the matrices are gathered. Lines are columns or, if A is
   read by rows, rows; cross lines are the others. */
typedef struct found {
  extent extent;
  lanes *line, *cross; /* the largest part in each, n */
  lanes *cross_sum;    /* the sums of moduli, n */
  lanes line_sum_most; /* the largest sum of a line */
} found;

/* Entries of one line of every lane. */
typedef struct line {
  const hone_entry *at[LANES], *next[LANES];
  int64_t step[LANES];
} line;

INLINE line line_of(const sources *from, bool by_rows, int64_t number) {
  line v;
  for (int l = 0; l < LANES; l++) {
    const int64_t skip = number * (by_rows ? from->row[l] : from->column[l]);
    v.at[l] = from->at[l] + skip;
    v.next[l] = from->next[l] + skip;
    v.step[l] = by_rows ? from->column[l] : from->row[l];
  }
  return v;
}

/* Gathers one line into s and f; to: its first entry there, 'apart' from one to
   the next. The same entries of the next block are fetched on the way. */
INLINE void gather_line(const parts *p, const sources *from, const line *v,
                        int64_t to, int64_t apart, found *out) {
  const int64_t a_line = 64 / (int64_t)sizeof(hone_entry); /* of the cache */
  lanes most = all(0.0), sum = all(0.0);
  for (int64_t i = 0; i < p->n; i++) {
    many e;
    for (int l = 0; l < LANES; l++)
      put_lane(&e, l, v->at[l][i * v->step[l]]);
    for (int l = 0; i % a_line == 0 && l < LANES; l++)
      __builtin_prefetch(v->next[l] + i * v->step[l]);
    if (HONE_PARTS == 2 && from->conjugate)
      e.part[HONE_PARTS - 1] = -e.part[HONE_PARTS - 1];
    const lanes size = extreme_of(e), modulus = modulus_of(e);
    take_extent(&out->extent, e);
    out->cross[i] = larger(size, out->cross[i]);
    out->cross_sum[i] += modulus;
    most = larger(size, most);
    sum += modulus;
    p->s[to + i * apart] = p->f[to + i * apart] = e;
  }
  out->line_sum_most = larger(sum, out->line_sum_most);
  *out->line++ = most;
}

INLINE found gather_lines(const bool by_rows, const parts *p,
                          const sources *from) {
  const int64_t n = p->n;
  found out = {.extent = begin_extent(),
               .line = by_rows ? p->row : p->col,
               .cross = by_rows ? p->col : p->row,
               .cross_sum = p->den,
               .line_sum_most = all(0.0)};
  for (int64_t i = 0; i < n; i++)
    out.cross[i] = out.cross_sum[i] = all(0.0);
  for (int64_t i = 0; i < n; i++) {
    const line v = line_of(from, by_rows, i);
    gather_line(p, from, &v, by_rows ? i : i * p->ld, by_rows ? p->ld : 1,
                &out);
  }
  return out;
}

/* s = f = op(A) of all lanes, in the order in which A lies in memory; its
   norms, and the largest part of every row and column, in row and col. */
INLINE void gather(const parts *p, const hone_block_matrix *matrices,
                   packed *out) {
  const sources from = sources_of(matrices);
  const bool by_rows = from.row[0] != 1;
  const found v =
      by_rows ? gather_lines(true, p, &from) : gather_lines(false, p, &from);
  lanes cross_sum_most = all(0.0);
  out->serves = is_within(&v.extent, LARGEST_ENTRY, SMALLEST_ENTRY);
  for (int64_t i = 0; i < p->n; i++) {
    cross_sum_most = larger(p->den[i], cross_sum_most);
    out->serves &= (p->row[i] > 0.0) & (p->col[i] > 0.0);
  }
  out->norm_rows = by_rows ? v.line_sum_most : cross_sum_most;
  out->norm_cols = by_rows ? cross_sum_most : v.line_sum_most;
}

#endif
