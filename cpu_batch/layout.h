/* SPDX-License-Identifier: BSD-3-Clause */
/* How systems lie in vectors. Files of kernels are compiled for two layouts.
   In the first a vector has one entry of SYSTEMS systems, a lane each, and a
   vector of n entries is n of these. In the second, compiled with BATCH_ROWS,
   there is one system, and a vector of n entries is as many as they fill: row
   i is lane i mod LANES of number i / LANES. Rows behind the last one are 0
   unless something else is said. So a loop over vectors_of(n) treats all rows
   in both, and what it has found in each lane is brought together by the
   functions named ..._over. */
#ifndef HONE_LAYOUT_H
#define HONE_LAYOUT_H

#include "cpu_batch/lanes.h"

#ifdef BATCH_ROWS
enum { SYSTEMS = 1 };
#else
enum { SYSTEMS = LANES };
#endif

INLINE int64_t vectors_of(int64_t n) {
  return SYSTEMS > 1 ? n : (n + LANES - 1) / LANES;
}

/* The vector that has row i, and the lane in it. */
INLINE int64_t vector_of(int64_t i) {
  return (int64_t)((uint64_t)i / (uint64_t)LANES);
}
INLINE int64_t lane_in(int64_t i) {
  return (int64_t)((uint64_t)i % (uint64_t)LANES);
}

/* Where row i is in a vector of entries, among its doubles: its first part. */
INLINE int64_t offset_of(int64_t i) {
  return vector_of(i) * LANES * HONE_PARTS + lane_in(i);
}

/* The numbers of the rows that vector i has. */
INLINE mask rows_of(int64_t i) {
#if defined(__AVX512F__)
  const mask first = {0, 1, 2, 3, 4, 5, 6, 7};
#elif defined(__AVX2__)
  const mask first = {0, 1, 2, 3};
#else
  const mask first = {0, 1};
#endif
  return SYSTEMS > 1 ? (mask)all(0.0) + i : first + i * LANES;
}

/* ---- One row ------------------------------------------------------------ */

INLINE double *number_place(lanes *v, int64_t i, int l) {
  return SYSTEMS > 1 ? (double *)&v[i] + l : (double *)v + i;
}

INLINE double *entry_place(many *v, int64_t i, int l, int part) {
  return SYSTEMS > 1 ? (double *)&v[i].part[part] + l
                     : (double *)&v[vector_of(i)].part[part] + lane_in(i);
}

/* Exchanges two rows of a system by itself. */
INLINE void exchange_rows(many *v, int64_t i, int64_t k) {
  for (int q = 0; q < HONE_PARTS; q++) {
    double *a = entry_place(v, i, 0, q), *b = entry_place(v, k, 0, q);
    const double held = *a;
    *a = *b;
    *b = held;
  }
}

/* The number of row i, in all lanes of its system. */
INLINE lanes number_at(const lanes *v, int64_t i) {
  return SYSTEMS > 1 ? v[i] : all(((const double *)v)[i]);
}

INLINE many entry_at(const many *v, int64_t i) {
  many e;
  if (SYSTEMS > 1)
    return v[i];
  for (int q = 0; q < HONE_PARTS; q++)
    e.part[q] = all(((const double *)&v[i / LANES].part[q])[i % LANES]);
  return e;
}

INLINE void put_number(lanes *v, int64_t i, lanes number) {
  if (SYSTEMS > 1)
    v[i] = number;
  else
    ((double *)v)[i] = number[0];
}

INLINE void put_entry(many *v, int64_t i, int l, hone_entry e) {
  *entry_place(v, i, l, 0) = hone_real(e);
  if (HONE_PARTS == 2)
    *entry_place(v, i, l, HONE_PARTS - 1) = hone_imag(e);
}

INLINE hone_entry get_entry(const many *v, int64_t i, int l) {
  return SYSTEMS > 1 ? lane_of(&v[i], l)
                     : lane_of(&v[vector_of(i)], (int)lane_in(i));
}

/* The entries of some rows, whose places are those of the first part. */
INLINE many gathered_entries(const many *v, const int64_t *at) {
  many e;
  for (int q = 0; q < HONE_PARTS; q++)
    e.part[q] = gathered((const double *)v + q * LANES, at);
  return e;
}

/* Entries from..from+LANES-1 of a vector of n whose entries lie one behind the
   other, or 0 where it ends. */
INLINE many load_rows(const hone_entry *v, int64_t from, int64_t n) {
  many e = nothing();
  if (from + LANES <= n)
    return load_lanes(v + from);
  for (int l = 0; from + l < n; l++)
    put_lane(&e, l, v[from + l]);
  return e;
}

/* The rows of vector i, of a vector of n entries that all systems have. */
INLINE many common_entries(const hone_entry *v, int64_t i, int64_t n) {
  return SYSTEMS > 1 ? everywhere_of(v[i]) : load_rows(v, i * LANES, n);
}

/* ---- All rows of a system ----------------------------------------------- */

INLINE lanes sum_over(lanes v) {
  for (int by = LANES / 2; SYSTEMS == 1 && by > 0; by /= 2)
    v += turned(v, by);
  return v;
}

/* NaN if any number is. */
INLINE lanes largest_over(lanes v) {
  for (int by = LANES / 2; SYSTEMS == 1 && by > 0; by /= 2) {
    const lanes other = turned(v, by);
    v = choose((v != v) | (v > other), v, other);
  }
  return v;
}

INLINE lanes smallest_over(lanes v) { return -largest_over(-v); }

/* Is it so in all rows? */
INLINE mask everywhere(mask is) {
  for (int by = LANES / 2; SYSTEMS == 1 && by > 0; by /= 2)
    is &= (mask)turned((lanes)is, by);
  return is;
}

INLINE mask anywhere(mask is) { return ~everywhere(~is); }

/* The largest number so far, and the first row that has it, lane by lane. */
typedef struct search {
  lanes most;
  mask at;
} search;

INLINE void look(search *s, lanes size, mask row) {
  const mask is = size > s->most;
  s->most = choose(is, size, s->most);
  s->at = (s->at & ~is) | (row & is);
}

INLINE search found_over(search s) {
  for (int by = LANES / 2; SYSTEMS == 1 && by > 0; by /= 2) {
    const lanes most = turned(s.most, by);
    const mask at = (mask)turned((lanes)s.at, by);
    const mask is = (most > s.most) | ((most == s.most) & (at < s.at));
    s.most = choose(is, most, s.most);
    s.at = (s.at & ~is) | (at & is);
  }
  return s;
}

/* Gives rows behind the last one its number, which changes no extreme. */
INLINE void repeat_last(int64_t n, lanes *v) {
  for (int64_t i = n; SYSTEMS == 1 && i < vectors_of(n) * LANES; i++)
    ((double *)v)[i] = ((const double *)v)[n - 1];
}

#endif
