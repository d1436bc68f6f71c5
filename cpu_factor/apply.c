/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves in double arithmetic with factors in single or in double
   precision (FACTOR_BITS), bound by the bytes of the factors, which are read
   once for four right-hand sides.

   chain.c deals blocks of rows to the threads. Within a block, the triangle on
   the diagonal is solved TILE columns at a time. */
#include "cpu_factor/apply_many.h"
#include "cpu_factor/chain.h"
#include "cpu_factor/real.h"

#include <string.h>

enum {
  SHARED = 4,       /* right-hand sides that share one read of F */
  TILE = 32,        /* columns solved before the others are updated */
  CHUNK_ROWS = 192, /* rows at once */
  AHEAD = 8,        /* columns that are fetched into the cache */
  LINE = 64 / (int)sizeof(real)
};

/* One triangular solve. */
typedef struct triangle {
  int64_t n, ld;
  const real *f;
  bool lower, trans, unit;
  bool many; /* apply_many.c solves */
  int64_t k; /* <= SHARED, or <= HONE_APPLY_MOST */
  double *v;
  int64_t ldv;
} triangle;

/* y[0:len] -= A[0:len, 0:4] x. */
HONE_VECTOR static void subtract_4(int64_t len, const real *restrict a,
                                   int64_t ld, const double *restrict x,
                                   double *restrict y) {
  const real *restrict a1 = a + ld, *restrict a2 = a + 2 * ld;
  const real *restrict a3 = a + 3 * ld;
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  for (int64_t i = 0; i < len; i++) {
    double s = (double)a[i] * x0 + (double)a1[i] * x1;
    double t = (double)a2[i] * x2 + (double)a3[i] * x3;
    y[i] -= s + t;
  }
}

HONE_VECTOR static void subtract_1(int64_t len, const real *restrict a,
                                   double x, double *restrict y) {
  for (int64_t i = 0; i < len; i++)
    y[i] -= (double)a[i] * x;
}

/* out[0:4] = A[0:len, 0:4]^T x. */
HONE_VECTOR static void dot_4(int64_t len, const real *restrict a, int64_t ld,
                              const double *restrict x, double *restrict out) {
  const real *restrict a1 = a + ld, *restrict a2 = a + 2 * ld;
  const real *restrict a3 = a + 3 * ld;
  double s = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s, s1, s2, s3)
  for (int64_t i = 0; i < len; i++) {
    s += (double)a[i] * x[i];
    s1 += (double)a1[i] * x[i];
    s2 += (double)a2[i] * x[i];
    s3 += (double)a3[i] * x[i];
  }
  out[0] = s;
  out[1] = s1;
  out[2] = s2;
  out[3] = s3;
}

HONE_VECTOR static double dot_1(int64_t len, const real *restrict a,
                                const double *restrict x) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < len; i++)
    s += (double)a[i] * x[i];
  return s;
}

/* Copies rows i .. i+len-1 of every right-hand side to y, or back. */
static void copy_rows(const triangle *t, int64_t i, int64_t len, bool back,
                      double y[SHARED][CHUNK_ROWS]) {
  for (int64_t c = 0; c < t->k; c++) {
    double *v = t->v + c * t->ldv + i;
    memcpy(back ? v : y[c], back ? y[c] : v, (size_t)len * sizeof *v);
  }
}

/* v[i0:i1] -= F[i0:i1, j0:j1] v[j0:j1], for every right-hand side. The rows are
   changed in a copy: the processor fetches what stands behind them as well,
   again and again, and would take it from the thread that changes it. */
static void subtract(const triangle *t, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
  double y[SHARED][CHUNK_ROWS];
  for (int64_t i = i0; i < i1; i += CHUNK_ROWS) {
    const int64_t len = HONE_MIN((int64_t)CHUNK_ROWS, i1 - i);
    int64_t j = j0;
    copy_rows(t, i, len, false, y);
    for (; j + 4 <= j1; j += 4) {
      for (int64_t c = j + AHEAD; c < HONE_MIN(j + AHEAD + 4, j1); c++)
        for (int64_t at = i; at < i + len; at += LINE)
          __builtin_prefetch(t->f + at + c * t->ld);
      for (int64_t c = 0; c < t->k; c++)
        subtract_4(len, t->f + i + j * t->ld, t->ld, t->v + c * t->ldv + j,
                   y[c]);
    }
    for (; j < j1; j++)
      for (int64_t c = 0; c < t->k; c++)
        subtract_1(len, t->f + i + j * t->ld, t->v[c * t->ldv + j], y[c]);
    copy_rows(t, i, len, true, y);
  }
}

/* v[j0:j1] -= F[i0:i1, j0:j1]^T v[i0:i1], for every right-hand side. */
static void gather(const triangle *t, int64_t i0, int64_t i1, int64_t j0,
                   int64_t j1) {
  int64_t j = j0;
  for (; j + 4 <= j1; j += 4)
    for (int64_t c = 0; c < t->k; c++) {
      double *v = t->v + c * t->ldv, sum[4];
      dot_4(i1 - i0, t->f + i0 + j * t->ld, t->ld, v + i0, sum);
      for (int q = 0; q < 4; q++)
        v[j + q] -= sum[q];
    }
  for (; j < j1; j++)
    for (int64_t c = 0; c < t->k; c++) {
      double *v = t->v + c * t->ldv;
      v[j] -= dot_1(i1 - i0, t->f + i0 + j * t->ld, v + i0);
    }
}

/* Solves with the triangle F[j0:j1, j0:j1] of at most TILE columns, column by
   column (trans: by rows of the transpose), in the order of elimination. */
static void solve_tile(const triangle *t, int64_t j0, int64_t j1) {
  const bool down = t->lower != t->trans;
  for (int64_t s = 0; s < j1 - j0; s++) {
    const int64_t j = down ? j0 + s : j1 - 1 - s;
    const int64_t from = t->lower ? j + 1 : j0, to = t->lower ? j1 : j;
    const real *f = t->f + j * t->ld;
    for (int64_t c = 0; c < t->k; c++) {
      double *v = t->v + c * t->ldv;
      if (t->trans)
        v[j] -= dot_1(to - from, f + from, v + from);
      if (!t->unit)
        v[j] /= (double)f[j];
      if (!t->trans)
        subtract_1(to - from, f + from, v[j], v + from);
    }
  }
}

/* Solves with the triangle F[j0:j1, j0:j1], tile by tile. */
static void solve_block(const triangle *t, int64_t j0, int64_t j1) {
  const bool down = t->lower != t->trans;
  const int64_t tiles = (j1 - j0 + TILE - 1) / TILE;
  for (int64_t s = 0; s < tiles; s++) {
    const int64_t at = j0 + (down ? s : tiles - 1 - s) * TILE;
    const int64_t to = HONE_MIN(at + TILE, j1);
    if (t->trans)
      gather(t, t->lower ? to : j0, t->lower ? j1 : at, at, to);
    solve_tile(t, at, to);
    if (!t->trans)
      subtract(t, t->lower ? to : j0, t->lower ? j1 : at, at, to);
  }
}

/* ---- The steps of the chain ---------------------------------------------- */

static void subtract_block(void *ctx, int step, int64_t i0, int64_t i1,
                           int64_t j0, int64_t j1) {
  const triangle *t = (const triangle *)ctx + step;
  if (t->trans)
    gather(t, j0, j1, i0, i1);
  else
    subtract(t, i0, i1, j0, j1);
}

static void solve_rows(void *ctx, int step, int64_t i0, int64_t i1) {
  solve_block((const triangle *)ctx + step, i0, i1);
}

/* Exchanges the entries of v as the rows (columns) were exchanged, in that
   order or backwards. */
static void exchange(const hone_factors *f, bool backwards, double *v) {
  for (int64_t s = 0; s < f->n; s++) {
    const int64_t k = backwards ? f->n - 1 - s : s;
    const int64_t p = (int64_t)f->pivot[k] - f->base;
    double held = v[k];
    v[k] = v[p];
    v[p] = held;
  }
}

static void solve_for_many(hone_pool *pool, const triangle *t) {
  const hone_apply_triangle many = {.f = t->f,
                                    .n = t->n,
                                    .row_step = t->trans ? t->ld : 1,
                                    .column_step = t->trans ? 1 : t->ld,
                                    .lower = t->lower != t->trans,
                                    .unit = t->unit,
                                    .k = t->k,
                                    .ldv = t->ldv,
                                    .v = t->v};
  FACTOR_NAME(hone_apply_many)(pool, &many);
}

/* Solves with both triangles of the factors, one after the other: t has what
   they have in common. */
static void solve_both(hone_pool *pool, const hone_factors *f,
                       const triangle *t) {
  const bool spd = f->form == HONE_FORM_CHOLESKY; /* L, then L^T */
  triangle both[2] = {*t, *t};
  for (int step = 0; step < 2; step++) {
    both[step].lower = spd || (step == 0) != t->trans;
    both[step].trans = spd ? step == 1 : t->trans;
    both[step].unit = !spd && both[step].lower == (f->form == HONE_FORM_LU);
  }
  const hone_chain chain = {t->n, both, subtract_block, solve_rows};
  if (t->many) {
    solve_for_many(pool, &both[0]);
    solve_for_many(pool, &both[1]);
  } else {
    hone_chain_run(pool, &chain);
  }
}

void FACTOR_NAME(hone_apply)(hone_pool *pool, const hone_factors *f, bool trans,
                             int64_t k, double *v, int64_t ldv) {
  const bool spd = f->form == HONE_FORM_CHOLESKY;
  const bool rows = f->form == HONE_FORM_LU; /* are exchanged, not columns */
  const bool many = k >= HONE_APPLY_MANY_FROM;
  const int64_t shared = many ? (int64_t)HONE_APPLY_MOST : (int64_t)SHARED;
  for (int64_t c = 0; c < k; c += shared) {
    const int64_t m = HONE_MIN(shared, k - c);
    triangle t = {.n = f->n,
                  .ld = f->ld,
                  .f = f->f,
                  .trans = trans,
                  .many = many,
                  .k = m,
                  .v = v + c * ldv,
                  .ldv = ldv};
    for (int64_t q = 0; q < m && !spd && rows != trans; q++)
      exchange(f, false, t.v + q * ldv);
    solve_both(pool, f, &t);
    for (int64_t q = 0; q < m && !spd && rows == trans; q++)
      exchange(f, true, t.v + q * ldv);
  }
}
