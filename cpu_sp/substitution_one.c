/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of substitution for one right-hand side, bound by the memory that F
   is read from: four of its columns at a time. Complex entries lie as pairs of
   numbers, and the loops are those for real ones, of twice the length: a column
   is multiplied with the real and with the imaginary parts of x apart, and a
   row with two arrangements of x. */
#include "cpu_sp/substitution_kernels.h"

#include <string.h>

enum {
  TILE = 16,
  ROWS = 192,            /* at once */
  DOTTED = 768,          /* entries of rows of T at once */
  AHEAD = 8,             /* columns that are fetched into the cache */
  LINE = 16 / HONE_PARTS /* entries of a cache line */
};

/* y -= F[:, 0:4] x. */
HONE_VECTOR static void subtract_4(int64_t len, const float *restrict f,
                                   int64_t ld, const float *restrict x,
                                   float *restrict y) {
  const float *restrict f1 = f + ld, *restrict f2 = f + 2 * ld;
  const float *restrict f3 = f + 3 * ld;
  const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
#pragma omp simd
  for (int64_t i = 0; i < len; i++)
    y[i] -= (f[i] * x0 + f1[i] * x1) + (f2[i] * x2 + f3[i] * x3);
}

HONE_VECTOR static void subtract_1(int64_t len, const float *restrict f,
                                   float x, float *restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < len; i++)
    y[i] -= f[i] * x;
}

/* out = F[:, 0:4]^T x. */
HONE_VECTOR static void dot_4(int64_t len, const float *restrict f, int64_t ld,
                              const float *restrict x, float *restrict out) {
  const float *restrict f1 = f + ld, *restrict f2 = f + 2 * ld;
  const float *restrict f3 = f + 3 * ld;
  float s = 0.0F, s1 = 0.0F, s2 = 0.0F, s3 = 0.0F;
#pragma omp simd reduction(+ : s, s1, s2, s3)
  for (int64_t i = 0; i < len; i++) {
    s += f[i] * x[i];
    s1 += f1[i] * x[i];
    s2 += f2[i] * x[i];
    s3 += f3[i] * x[i];
  }
  out[0] = s;
  out[1] = s1;
  out[2] = s2;
  out[3] = s3;
}

HONE_VECTOR static float dot_1(int64_t len, const float *restrict f,
                               const float *restrict x) {
  float s = 0.0F;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < len; i++)
    s += f[i] * x[i];
  return s;
}

/* y[0] -= F re x and y[1] -= F im x for w columns, four or one, of len numbers
   each; real: y[0] -= F x. */
static void subtract_few(int w, int64_t len, const float *f, int64_t ld,
                         const float *x, float y[][HONE_PARTS * ROWS]) {
  for (int part = 0; part < HONE_PARTS; part++) {
    float by[4];
    for (int q = 0; q < w; q++)
      by[q] = x[q * HONE_PARTS + part];
    if (w == 4)
      subtract_4(len, f, ld, by, y[part]);
    else
      subtract_1(len, f, by[0], y[part]);
  }
}

/* v = y[0] + i y[1]; real: v = y[0]. */
static void join(int64_t len, float y[][HONE_PARTS * ROWS], float *v) {
  for (int64_t i = 0; HONE_PARTS > 1 && i < len; i += HONE_PARTS) {
    const float *turned = y[HONE_PARTS - 1] + i;
    y[0][i] -= turned[HONE_PARTS - 1];
    y[0][i + HONE_PARTS - 1] += turned[0];
  }
  memcpy(v, y[0], (size_t)len * sizeof *v);
}

/* T = F, so that no part changes its sign. The rows are changed in a copy: the
   processor fetches what stands behind them as well, again and again, and would
   take it from the thread that changes it. */
static void subtract_columns(const hone_triangle *t, int64_t i0, int64_t i1,
                             int64_t j0, int64_t j1, float *v) {
  const int64_t ld = t->column_step * HONE_PARTS;
  float y[HONE_PARTS][HONE_PARTS * ROWS];
  for (int64_t i = i0; i < i1; i += ROWS) {
    const int64_t rows = HONE_MIN((int64_t)ROWS, i1 - i);
    const int64_t len = rows * HONE_PARTS;
    int64_t j = j0;
    memcpy(y[0], v + i * HONE_PARTS, (size_t)len * sizeof **y);
    if (HONE_PARTS > 1)
      memset(y[HONE_PARTS - 1], 0, sizeof *y);
    for (; j + 4 <= j1; j += 4) {
      for (int64_t c = j + AHEAD; c < HONE_MIN(j + AHEAD + 4, j1); c++)
        for (int64_t at = i; at < i + rows; at += LINE)
          __builtin_prefetch(hone_triangle_at(t, at, c));
      subtract_few(4, len, hone_triangle_at(t, i, j), ld, v + j * HONE_PARTS,
                   y);
    }
    for (; j < j1; j++)
      subtract_few(1, len, hone_triangle_at(t, i, j), ld, v + j * HONE_PARTS,
                   y);
    join(len, y, v + i * HONE_PARTS);
  }
}

/* Arrangements of a complex x whose real products with a row of T are the real
   and the imaginary part of the product. */
static void arrange(int64_t count, const float *x, float sign,
                    float to[][HONE_PARTS * DOTTED]) {
  for (int64_t i = 0; HONE_PARTS > 1 && i < count * HONE_PARTS;
       i += HONE_PARTS) {
    to[0][i] = x[i];
    to[0][i + HONE_PARTS - 1] = -sign * x[i + HONE_PARTS - 1];
    to[HONE_PARTS - 1][i] = x[i + HONE_PARTS - 1];
    to[HONE_PARTS - 1][i + HONE_PARTS - 1] = sign * x[i];
  }
}

/* Rows of T are columns of F. */
static void subtract_dots(const hone_triangle *t, int64_t i0, int64_t i1,
                          int64_t j0, int64_t j1, float *v) {
  const int64_t ld = t->row_step * HONE_PARTS;
  float arranged[HONE_PARTS][HONE_PARTS * DOTTED];
  for (int64_t j = j0; j < j1; j += DOTTED) {
    const int64_t count = HONE_MIN((int64_t)DOTTED, j1 - j);
    const int64_t len = count * HONE_PARTS;
    int64_t i = i0;
    arrange(count, v + j * HONE_PARTS, t->sign, arranged);
    for (; i + 4 <= i1; i += 4)
      for (int part = 0; part < HONE_PARTS; part++) {
        const float *x = HONE_PARTS > 1 ? arranged[part] : v + j;
        float sum[4];
        dot_4(len, hone_triangle_at(t, i, j), ld, x, sum);
        for (int q = 0; q < 4; q++)
          v[(i + q) * HONE_PARTS + part] -= sum[q];
      }
    for (; i < i1; i++)
      for (int part = 0; part < HONE_PARTS; part++)
        v[i * HONE_PARTS + part] -=
            dot_1(len, hone_triangle_at(t, i, j),
                  HONE_PARTS > 1 ? arranged[part] : v + j);
  }
}

static void subtract_one(const hone_triangle *t, int64_t i0, int64_t i1,
                         int64_t j0, int64_t j1, float *v) {
  if (t->row_step == 1)
    subtract_columns(t, i0, i1, j0, j1, v);
  else
    subtract_dots(t, i0, i1, j0, j1, v);
}

/* y -= t x for an entry t of T, whose parts begin at f. */
static void subtract_product(const float *f, float sign, const float *x,
                             float *y) {
  const float fi = sign * f[HONE_PARTS - 1], xi = x[HONE_PARTS - 1];
  if (HONE_PARTS == 1) {
    y[0] -= f[0] * x[0];
  } else {
    y[0] -= f[0] * x[0] - fi * xi;
    y[HONE_PARTS - 1] -= f[0] * xi + fi * x[0];
  }
}

/* Solves with T[i0:i1, i0:i1] of at most TILE rows. */
static void solve_tile(const hone_triangle *t, int64_t i0, int64_t i1,
                       float *v) {
  for (int64_t q = 0; q < i1 - i0; q++) {
    const int64_t j = t->lower ? i0 + q : i1 - 1 - q;
    const int64_t from = t->lower ? j + 1 : i0, to = t->lower ? i1 : j;
    const float *x = v + j * HONE_PARTS;
    if (!t->unit)
      hone_divide_row(1, hone_triangle_at(t, j, j), t->sign,
                      v + j * HONE_PARTS);
    for (int64_t i = from; i < to; i++)
      subtract_product(hone_triangle_at(t, i, j), t->sign, x,
                       v + i * HONE_PARTS);
  }
}

static void solve_one(const hone_triangle *t, int64_t i0, int64_t i1,
                      float *v) {
  const int64_t tiles = (i1 - i0 + TILE - 1) / TILE;
  for (int64_t s = 0; s < tiles; s++) {
    const int64_t r0 = i0 + (t->lower ? s : tiles - 1 - s) * TILE;
    const int64_t r1 = HONE_MIN(r0 + TILE, i1);
    subtract_one(t, r0, r1, t->lower ? i0 : r1, t->lower ? r0 : i1, v);
    solve_tile(t, r0, r1, v);
  }
}

const hone_substitution_kernels hone_substitution_one = {subtract_one,
                                                         solve_one};
