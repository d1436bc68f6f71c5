/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of a matrix that is given by one triangle; see triangle.h. */
#include "base/triangle.h"

#include "base/base.h"

#include <string.h>

enum { STEP = HONE_TRIANGLE_STEP };

/* Rows or columns from .. to-1. */
typedef struct range {
  int64_t from, to;
} range;

/* Those of some rows that column c of the given triangle has. */
static range given(const hone_triangle *t, range rows, int64_t c) {
  return t->upper ? (range){rows.from, HONE_MIN(rows.to, c + 1)}
                  : (range){HONE_MAX(rows.from, c), rows.to};
}

/* Those of some columns that row r of the given triangle has, without the
   diagonal: they are the rows of column r of the other one. */
static range image_of(const hone_triangle *t, range columns, int64_t r) {
  return t->upper ? (range){HONE_MAX(columns.from, r + 1), columns.to}
                  : (range){columns.from, HONE_MIN(columns.to, r)};
}

/* Copies a tile, and its image through a small array: columns whose distance is
   a power of two push each other out of the caches. */
static void copy_tile(const hone_triangle *t, range rows, range columns,
                      hone_entry *to) {
  hone_entry image[STEP * STEP];
  const int64_t n = t->n;
  for (int64_t c = columns.from; c < columns.to; c++) {
    const hone_entry *a = t->a + c * t->lda;
    const range g = given(t, rows, c);
    hone_entry *row = image + c - columns.from;
    for (int64_t r = g.from; r < g.to; r++) {
      const hone_entry v = a[r];
      to[r + c * n] = r == c && t->conjugates ? hone_real(v) : v;
      row[(r - rows.from) * STEP] = t->conjugates ? hone_conj(v) : v;
    }
  }
  for (int64_t r = rows.from; r < rows.to; r++) {
    const range o = image_of(t, columns, r);
    if (o.from < o.to)
      memcpy(to + o.from + r * n,
             image + o.from - columns.from + (r - rows.from) * STEP,
             (size_t)(o.to - o.from) * sizeof *to);
  }
}

void hone_triangle_copy(const hone_triangle *t, int64_t j, int64_t w,
                        hone_entry *to) {
  const range columns = {j, j + w};
  const int64_t end = t->upper ? j + w : t->n;
  for (int64_t r = t->upper ? 0 : j; r < end; r += STEP)
    copy_tile(t, (range){r, HONE_MIN(r + STEP, end)}, columns, to);
}
