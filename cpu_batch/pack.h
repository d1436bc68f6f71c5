/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the matrices into lanes and scales them: S = R op(A) C. R and C are
   powers of two, so that nothing is rounded: omega of S y = R b is that of
   op(A) x = b. */
#ifndef HONE_PACK_H
#define HONE_PACK_H

#include "cpu_batch/parts.h"

/* Lanes whose entries, or those of b, are outside this range are left to
   others: within it no sum or product of a solve overflows, and what underflows
   is negligible beside the denominators that are allowed. */
static const double LARGEST_ENTRY = 0x1p300, SMALLEST_ENTRY = 0x1p-300;
/* A matrix is not scaled if the largest entries of its rows and of its columns
   lie within this factor of one another, and of 1. */
static const double LEVEL = 0x1p6, NEAR_ONE = 0x1p20;

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

/* The extremes of a block's entries. */
typedef struct extent {
  lanes most, least; /* of the parts; least: of those that are not 0 */
  lanes bad;         /* 0, or NaN where an entry is not finite */
} extent;

INLINE void take_extent(extent *e, many v) {
  for (int k = 0; k < HONE_PARTS; k++) {
    const lanes size = magnitude(v.part[k]);
    e->most = larger(size, e->most);
    e->least = choose((size > 0.0) & (size < e->least), size, e->least);
    e->bad += size * 0.0;
  }
}

INLINE mask extent_serves(const extent *e) {
  return (e->bad == 0.0) & (e->most <= LARGEST_ENTRY) &
         (e->least >= SMALLEST_ENTRY);
}

static const extent NO_EXTENT;

INLINE extent begin_extent(void) {
  extent e = NO_EXTENT;
  e.least = all(1.0);
  return e;
}

/* The power of two by which v becomes at least 1 and less than 2. */
INLINE lanes levelling(lanes v) {
  const mask exponent = (mask)v & INT64_C(0x7ff0000000000000);
  return (lanes)(INT64_C(0x7fe0000000000000) - exponent);
}

/* The largest part of an entry. */
INLINE lanes extreme_of(many v) {
  lanes most = magnitude(v.part[0]);
  if (HONE_PARTS == 2)
    most = larger(magnitude(v.part[HONE_PARTS - 1]), most);
  return most;
}

typedef struct packed {
  mask serves;       /* lanes that may go on */
  mask plain;        /* lanes that are not scaled */
  lanes norm_rows;   /* ||op(A)||, infinity norm */
  lanes norm_cols;   /* ||op(A)||_1 */
  lanes norm_scaled; /* ||S||_1 */
} packed;

/* The ratio of the largest to the smallest of n numbers, and whether they are
   all near 1. */
INLINE mask is_level(int64_t n, const lanes *v) {
  lanes most = v[0], least = v[0];
  for (int64_t i = 1; i < n; i++) {
    most = larger(v[i], most);
    least = smaller(v[i], least);
  }
  return (most <= LEVEL * least) & (most <= NEAR_ONE) &
         (least >= 1.0 / NEAR_ONE);
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
INLINE void gather(const parts *p, const sources *from, packed *out) {
  const bool by_rows = from->row[0] != 1;
  const found v =
      by_rows ? gather_lines(true, p, from) : gather_lines(false, p, from);
  lanes cross_sum_most = all(0.0);
  out->serves = extent_serves(&v.extent);
  for (int64_t i = 0; i < p->n; i++) {
    cross_sum_most = larger(p->den[i], cross_sum_most);
    out->serves &= (p->row[i] > 0.0) & (p->col[i] > 0.0);
  }
  out->norm_rows = by_rows ? v.line_sum_most : cross_sum_most;
  out->norm_cols = by_rows ? cross_sum_most : v.line_sum_most;
}

/* R levels the rows, and C then the columns. */
INLINE void level_rows(const parts *p, const packed *out) {
  const int64_t n = p->n;
  for (int64_t i = 0; i < n; i++)
    p->row[i] = choose(out->plain, all(1.0), levelling(p->row[i]));
  for (int64_t j = 0; j < n; j++) {
    lanes most = all(1.0);
    for (int64_t i = 0; any(~out->plain) && i < n; i++)
      most = larger(extreme_of(p->s[i + j * p->ld]) * p->row[i],
                    i == 0 ? all(0.0) : most);
    p->col[j] = choose(out->plain, all(1.0), levelling(most));
  }
}

/* S = R op(A) C, where a lane is scaled, and ||S||_1. */
INLINE void apply_scaling(const parts *p, packed *out) {
  const int64_t n = p->n;
  out->norm_scaled = all(0.0);
  for (int64_t j = 0; j < n; j++) {
    lanes sum = all(0.0);
    for (int64_t i = 0; i < n; i++) {
      many *at = &p->s[i + j * p->ld];
      *at = scaled(*at, p->row[i] * p->col[j]);
      p->f[i + j * p->ld] = *at;
      sum += modulus_of(*at);
    }
    out->norm_scaled = larger(sum, out->norm_scaled);
  }
}

/* R = C, powers of two that bring the diagonal to at least 1 and below 4. */
INLINE void level_diagonal(const parts *p, packed *out) {
  for (int64_t i = 0; i < p->n; i++) {
    const lanes d = p->s[i + i * p->ld].part[0];
    const mask exponent = ((mask)d >> 52) - 1023;
    const lanes by = (lanes)((1023 - (exponent >> 1)) << 52);
    out->serves &= d > 0.0;
    p->row[i] = p->col[i] = choose(out->plain, all(1.0), by);
  }
}

static packed pack(const parts *p, bool definite,
                   const hone_block_matrix *matrices) {
  const int64_t n = p->n;
  const sources from = sources_of(matrices);
  packed out;
  gather(p, &from, &out);
  out.plain = is_level(n, p->row) & is_level(n, p->col);
  const bool as_they_are = !any(~out.plain);
  if (definite)
    level_diagonal(p, &out);
  else
    level_rows(p, &out);
  if (as_they_are)
    out.norm_scaled = out.norm_cols;
  else
    apply_scaling(p, &out);
  return out;
}

#endif
