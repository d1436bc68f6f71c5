/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of substitution for HONE_TOGETHER right-hand sides. One entry of T
   at a time is multiplied with a row of v, and the sums for TILE rows stay in
   registers. A complex entry t takes two products, re t with the row and im t
   with i times the row. Every entry of v is computed by itself, so that it
   depends on no other column. This file is compiled once for each instruction
   set, with SUBSTITUTION_ISA as its name; substitution.c chooses one at run
   time. */
#include "base/isa.h"
#include "cpu_sp/substitution_kernels.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* Rows whose sums take half of the registers or some more. */
#if defined(__AVX512F__)
enum { TILE = 6 };
#elif defined(__AVX2__)
enum { TILE = HONE_PARTS == 1 ? 6 : 4 };
#else
enum { TILE = 2 };
#endif

enum {
  LINE = 16 / HONE_PARTS, /* entries of a cache line */
  STREAMS = 32,           /* columns of F that are read side by side: as many as
                             processors recognize as streams */
  ROWS = 192,             /* rows at once */
  PIECE = 96,             /* entries of a column of F that are used at once */
  VECTORS = HONE_LANES * (int)sizeof(float) / HONE_VECTOR_BYTES
};

typedef float lanes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                   aligned(sizeof(float)), may_alias));

/* A row of the right-hand sides. */
typedef struct row {
  lanes part[VECTORS];
} row;

#define INLINE static inline __attribute__((always_inline))

/* sum += t x for an entry t of T, whose parts begin at f; x_i: i x, or -i x
   where t is conjugated. */
INLINE void add_product(const float *f, const row *x, const row *x_i,
                        lanes sum[VECTORS]) {
  for (int p = 0; p < VECTORS; p++) {
    sum[p] += f[0] * x->part[p];
    if (HONE_PARTS > 1)
      sum[p] += f[HONE_PARTS - 1] * x_i->part[p];
  }
}

/* y -= t x. */
INLINE void subtract_product(const float *f, const row *x, const row *x_i,
                             row *y) {
  for (int p = 0; p < VECTORS; p++) {
    y->part[p] -= f[0] * x->part[p];
    if (HONE_PARTS > 1)
      y->part[p] -= f[HONE_PARTS - 1] * x_i->part[p];
  }
}

/* Returns sign times i x; of no use for real numbers. */
INLINE row times_i(const row *x, float sign) {
  const float *v = (const float *)x;
  row out = *x;
  float *to = (float *)&out;
  for (int q = 0; HONE_PARTS > 1 && q < HONE_TOGETHER; q++) {
    to[q] = -sign * v[q + HONE_TOGETHER];
    to[q + HONE_TOGETHER] = sign * v[q];
  }
  return out;
}

/* y_r -= sum_s t_rs x_s for 'rows' rows, the parts of t_00 beginning at f. */
INLINE void subtract_tile(int rows, int64_t count, const float *f,
                          int64_t row_step, int64_t column_step, float sign,
                          bool fetches, const row *x, row *y) {
  lanes sum[TILE][VECTORS];
  for (int r = 0; r < rows; r++)
    for (int p = 0; p < VECTORS; p++)
      sum[r][p] = (lanes){0.0F};
  for (int64_t s = 0; s < count; s++) {
    const row x_i = times_i(x + s, sign);
    if (fetches) /* the columns that are next */
      __builtin_prefetch(f + HONE_PARTS * (s + STREAMS) * column_step);
    for (int r = 0; r < rows; r++)
      add_product(f + HONE_PARTS * (r * row_step + s * column_step), x + s,
                  &x_i, sum[r]);
  }
  for (int r = 0; r < rows; r++)
    for (int p = 0; p < VECTORS; p++)
      y[r].part[p] -= sum[r][p];
}

/* y[i0:i1] -= T[i0:i1, j0:j1] x[j0:j1], T = F. */
INLINE void subtract_columns(const hone_triangle *t, int64_t i0, int64_t i1,
                             int64_t j0, int64_t j1, bool fetches, const row *x,
                             row *y) {
  const int64_t ld = t->column_step;
  int64_t i = i0;
  for (; i + TILE <= i1; i += TILE)
    subtract_tile(TILE, j1 - j0, hone_triangle_at(t, i, j0), 1, ld, t->sign,
                  fetches, x + j0, y + i - i0);
  for (; i < i1; i++)
    subtract_tile(1, j1 - j0, hone_triangle_at(t, i, j0), 1, ld, t->sign,
                  fetches, x + j0, y + i - i0);
}

/* y[i0:i1] -= T[i0:i1, j0:j1] x[j0:j1], T = F^T. The pieces of columns of F are
   too short for the processor to fetch the next ones by itself. */
INLINE void subtract_rows(const hone_triangle *t, int64_t i0, int64_t i1,
                          int64_t j0, int64_t j1, const row *x, row *y) {
  const int64_t ld = t->row_step;
  int64_t i = i0;
  for (; i + TILE <= i1; i += TILE) {
    for (int64_t next = i + TILE; next < HONE_MIN(i + 2 * TILE, i1); next++)
      for (int64_t j = j0; j < j1; j += LINE)
        __builtin_prefetch(hone_triangle_at(t, next, j), 0, 2);
    subtract_tile(TILE, j1 - j0, hone_triangle_at(t, i, j0), ld, 1, t->sign,
                  false, x + j0, y + i - i0);
  }
  for (; i < i1; i++)
    subtract_tile(1, j1 - j0, hone_triangle_at(t, i, j0), ld, 1, t->sign, false,
                  x + j0, y + i - i0);
}

/* The rows are changed in a copy, as in substitution_one.c. */
static void subtract_many(const hone_triangle *t, int64_t i0, int64_t i1,
                          int64_t j0, int64_t j1, float *v) {
  const bool turned = t->row_step > 1;
  const int64_t step = turned ? PIECE : STREAMS;
  const row *x = (const row *)v;
  row y[ROWS];
  for (int64_t i = i0; i < i1; i += ROWS) {
    const int64_t end = HONE_MIN(i + ROWS, i1);
    const size_t bytes = (size_t)(end - i) * sizeof *y;
    memcpy(y, x + i, bytes);
    for (int64_t j = j0; j < j1; j += step) {
      const int64_t to = HONE_MIN(j + step, j1);
      if (turned)
        subtract_rows(t, i, end, j, to, x, y);
      else
        subtract_columns(t, i, end, j, to, to + STREAMS <= j1, x, y);
    }
    memcpy((row *)v + i, y, bytes);
  }
}

/* Solves with T[i0:i1, i0:i1] of at most TILE rows. */
INLINE void solve_tile(const hone_triangle *t, int64_t i0, int64_t i1, row *v) {
  for (int64_t q = 0; q < i1 - i0; q++) {
    const int64_t j = t->lower ? i0 + q : i1 - 1 - q;
    const int64_t from = t->lower ? j + 1 : i0, to = t->lower ? i1 : j;
    if (!t->unit)
      hone_divide_row(HONE_TOGETHER, hone_triangle_at(t, j, j), t->sign,
                      (float *)(v + j));
    const row x_i = times_i(v + j, t->sign);
    for (int64_t i = from; i < to; i++)
      subtract_product(hone_triangle_at(t, i, j), v + j, &x_i, v + i);
  }
}

static void solve_many(const hone_triangle *t, int64_t i0, int64_t i1,
                       float *v) {
  const int64_t tiles = (i1 - i0 + TILE - 1) / TILE;
  for (int64_t s = 0; s < tiles; s++) {
    const int64_t r0 = i0 + (t->lower ? s : tiles - 1 - s) * TILE;
    const int64_t r1 = HONE_MIN(r0 + TILE, i1);
    const int64_t j0 = t->lower ? i0 : r1, j1 = t->lower ? r0 : i1;
    if (t->row_step > 1)
      subtract_rows(t, r0, r1, j0, j1, (row *)v, (row *)v + r0);
    else
      subtract_columns(t, r0, r1, j0, j1, false, (row *)v, (row *)v + r0);
    solve_tile(t, r0, r1, (row *)v);
  }
}

const hone_substitution_kernels JOIN(hone_substitution_, SUBSTITUTION_ISA) = {
    subtract_many, solve_many};
