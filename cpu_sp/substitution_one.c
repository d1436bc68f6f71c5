/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of substitution for one right-hand side, bound by the memory that F
   is read from: four of its columns at a time. */
#include "cpu_sp/substitution_kernels.h"

#include <string.h>

enum {
  TILE = 16,
  ROWS = 192, /* at once */
  AHEAD = 8,  /* columns that are fetched into the cache */
  LINE = 16   /* floats of a cache line */
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

/* The rows are changed in a copy: the processor fetches what stands behind them
   as well, again and again, and would take it from the thread that changes
   it. */
static void subtract_columns(const hone_triangle *t, int64_t i0, int64_t i1,
                             int64_t j0, int64_t j1, float *v) {
  const int64_t ld = t->column_step;
  float y[ROWS];
  for (int64_t i = i0; i < i1; i += ROWS) {
    const int64_t len = HONE_MIN((int64_t)ROWS, i1 - i);
    int64_t j = j0;
    memcpy(y, v + i, (size_t)len * sizeof *y);
    for (; j + 4 <= j1; j += 4) {
      for (int64_t c = j + AHEAD; c < HONE_MIN(j + AHEAD + 4, j1); c++)
        for (int64_t at = i; at < i + len; at += LINE)
          __builtin_prefetch(t->f + at + c * ld);
      subtract_4(len, t->f + i + j * ld, ld, v + j, y);
    }
    for (; j < j1; j++)
      subtract_1(len, t->f + i + j * ld, v[j], y);
    memcpy(v + i, y, (size_t)len * sizeof *y);
  }
}

/* Rows of T are columns of F. */
static void subtract_dots(const hone_triangle *t, int64_t i0, int64_t i1,
                          int64_t j0, int64_t j1, float *v) {
  const int64_t ld = t->row_step;
  int64_t i = i0;
  for (; i + 4 <= i1; i += 4) {
    float sum[4];
    dot_4(j1 - j0, t->f + j0 + i * ld, ld, v + j0, sum);
    for (int q = 0; q < 4; q++)
      v[i + q] -= sum[q];
  }
  for (; i < i1; i++)
    v[i] -= dot_1(j1 - j0, t->f + j0 + i * ld, v + j0);
}

static void subtract_one(const hone_triangle *t, int64_t i0, int64_t i1,
                         int64_t j0, int64_t j1, float *v) {
  if (t->row_step == 1)
    subtract_columns(t, i0, i1, j0, j1, v);
  else
    subtract_dots(t, i0, i1, j0, j1, v);
}

/* Solves with T[i0:i1, i0:i1] of at most TILE rows. */
static void solve_tile(const hone_triangle *t, int64_t i0, int64_t i1,
                       float *v) {
  for (int64_t q = 0; q < i1 - i0; q++) {
    const int64_t j = t->lower ? i0 + q : i1 - 1 - q;
    const int64_t from = t->lower ? j + 1 : i0, to = t->lower ? i1 : j;
    const float *f = t->f + j * t->column_step;
    if (!t->unit)
      v[j] /= f[j * t->row_step];
    for (int64_t i = from; i < to; i++)
      v[i] -= f[i * t->row_step] * v[j];
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
