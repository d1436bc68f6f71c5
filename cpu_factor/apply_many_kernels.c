/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of triangular solves in double arithmetic for many right-hand
   sides, compiled once for each instruction set, with APPLY_ISA as its name.
   Floats become doubles while a part of the triangle is packed. Every column is
   computed by itself. */
#include "base/isa.h"
#include "base/tile.h"
#include "cpu_factor/apply_many.h"
#include "cpu_factor/real.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

enum {
  BLOCK = HONE_APPLY_BLOCK,
  STRIP = HONE_APPLY_STRIP,
  ROWS = HONE_TILE_ROWS,
  COLUMNS = HONE_TILE_COLUMNS,
  LANES = HONE_VECTOR_BYTES / (int)sizeof(double),
  PARTS = COLUMNS / LANES, /* vectors of a row of a group */
  UNKNOWNS = 6             /* rows that are solved for together */
};

typedef struct row {
  hone_doubles part[PARTS];
} row;

/* ---- The triangle on the diagonal ---------------------------------------- */

/* Row r of x is that of unknown 'first' + r * step. */
typedef struct order {
  int64_t first, step, count;
} order;

/* Solves for rows from .. to - 1 of x, those before being solved already. t:
   rows of the triangle, UNKNOWNS entries for each unknown. */
INLINE void solve_rows(int64_t from, int64_t to, bool unit, const double *t,
                       row *x) {
  row sum[UNKNOWNS];
  for (int r = 0; r < UNKNOWNS; r++)
    sum[r] = x[HONE_MIN(from + r, to - 1)];
  for (int64_t s = 0; s < from; s++)
#pragma GCC unroll 6
    for (int r = 0; r < UNKNOWNS; r++)
#pragma GCC unroll 4
      for (int p = 0; p < PARTS; p++)
        sum[r].part[p] -= t[s * UNKNOWNS + r] * x[s].part[p];
  for (int64_t s = from; s < to; s++) {
    const double *column = t + s * UNKNOWNS;
    for (int p = 0; p < PARTS && !unit; p++)
      sum[s - from].part[p] /= column[s - from];
    x[s] = sum[s - from];
    for (int64_t r = s - from + 1; r < to - from; r++)
      for (int p = 0; p < PARTS; p++)
        sum[r].part[p] -= column[r] * x[s].part[p];
  }
}

/* Copies rows from .. to - 1 of the triangle on the diagonal. */
INLINE void pack_rows(const hone_apply_triangle *t, const order *o,
                      int64_t from, int64_t to, double *rows) {
  for (int64_t s = 0; s < to; s++) {
    const real *f =
        (const real *)t->f + (o->first + s * o->step) * t->column_step;
    for (int64_t r = 0; r < UNKNOWNS; r++)
      rows[s * UNKNOWNS + r] =
          from + r < to
              ? (double)f[(o->first + (from + r) * o->step) * t->row_step]
              : 0.0;
  }
}

static void solve_group(hone_apply_block *block, int64_t group) {
  const hone_apply_triangle *t = block->t;
  const int64_t count = block->to - block->from, c0 = group * COLUMNS;
  const int64_t columns = HONE_MIN((int64_t)COLUMNS, t->k - c0);
  const order o = {t->lower ? block->from : block->to - 1, t->lower ? 1 : -1,
                   count};
  double rows[BLOCK * UNKNOWNS];
  _Alignas(64) row x[BLOCK];
  memset(x, 0, sizeof x);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < count; r++)
      ((double *)&x[r])[c] = t->v[(c0 + c) * t->ldv + o.first + r * o.step];
  for (int64_t r = 0; r < count; r += UNKNOWNS) {
    const int64_t to = HONE_MIN(r + UNKNOWNS, count);
    pack_rows(t, &o, r, to, rows);
    solve_rows(r, to, t->unit, rows, x);
  }
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < count; r++)
      t->v[(c0 + c) * t->ldv + o.first + r * o.step] = ((double *)&x[r])[c];
  double *to = block->x + c0 * count;
  for (int64_t r = 0; r < count; r++)
    memcpy(to + (t->lower ? r : count - 1 - r) * COLUMNS, &x[r], sizeof x[r]);
}

/* ---- Strips -------------------------------------------------------------- */

INLINE void pack_strip(const hone_apply_block *block, int64_t i, int64_t rows,
                       double *to) {
  const hone_apply_triangle *t = block->t;
  const int64_t count = block->to - block->from;
  const real *f =
      (const real *)t->f + i * t->row_step + block->from * t->column_step;
  if (rows == STRIP && t->row_step == 1) {
    for (int64_t s = 0; s < count; s++)
      for (int tile = 0; tile < STRIP / ROWS; tile++)
        for (int r = 0; r < ROWS; r++)
          to[(tile * BLOCK + s) * ROWS + r] =
              (double)f[s * t->column_step + tile * ROWS + r];
    return;
  }
  for (int64_t r = 0; r < STRIP; r++)
    for (int64_t s = 0; s < count; s++)
      to[(r / ROWS * BLOCK + s) * ROWS + r % ROWS] =
          r < rows ? (double)f[r * t->row_step + s * t->column_step] : 0.0;
}

/* Subtracts from 'rows' rows of the columns c0, c0 + 1, ... of v. */
INLINE void subtract_tile(const hone_apply_triangle *t, int64_t count,
                          const double *a, const double *x, int64_t c0,
                          int64_t i, int64_t rows) {
  hone_doubles sum[COLUMNS][HONE_TILE_VECTORS];
  const int64_t columns = HONE_MIN((int64_t)COLUMNS, t->k - c0);
  hone_tile_product(COLUMNS, count, a, x, a, 0, sum);
  for (int64_t c = 0; c < columns; c++) {
    double *v = t->v + (c0 + c) * t->ldv + i;
    if (rows >= ROWS) {
      for (int p = 0; p < HONE_TILE_VECTORS; p++)
        ((hone_doubles *)v)[p] -= sum[c][p];
      continue;
    }
    double out[ROWS];
    memcpy(out, sum[c], sizeof out);
    for (int64_t r = 0; r < rows; r++)
      v[r] -= out[r];
  }
}

static void subtract_strip(const hone_apply_block *block, int64_t i,
                           int64_t rows) {
  const int64_t count = block->to - block->from;
  _Alignas(64) double strip[STRIP * BLOCK];
  pack_strip(block, i, rows, strip);
  for (int64_t r = 0; r < rows; r += ROWS)
    for (int64_t c = 0; c < block->t->k; c += COLUMNS)
      subtract_tile(block->t, count, strip + r * BLOCK, block->x + c * count, c,
                    i + r, rows - r);
}

const hone_apply_kernels FACTOR_NAME(JOIN(hone_apply_, APPLY_ISA)) = {
    COLUMNS, solve_group, subtract_strip};
