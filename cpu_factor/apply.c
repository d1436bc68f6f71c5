/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves in double arithmetic with factors in single or in double
   precision (FACTOR_BITS), bound by the bytes of the factors, which are read
   once for four right-hand sides.

   The matrix is cut into blocks of columns. Of each, the triangle on the
   diagonal is solved by the calling thread, TILE columns at a time; what
   stands below (above) it is dealt to the threads, by rows where it is
   subtracted from what is still to be solved, by columns where the transpose
   gathers what is solved already. Blocks depend on n alone. */
#include "cpu_factor/apply_many.h"
#include "cpu_factor/real.h"

enum {
  SHARED = 4,        /* right-hand sides that share one read of F */
  TILE = 32,         /* columns solved before the others are updated */
  BLOCKS = 8,        /* blocks of columns that threads share, */
  BLOCK_LEAST = 256, /* of at least so many columns */
  CHUNK_ROWS = 512,  /* rows of one task: 8 KB of four columns */
  CHUNK_COLUMNS = 32 /* columns of one task of the transpose */
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

/* v[i0:i1] -= F[i0:i1, j0:j1] v[j0:j1], for every right-hand side. */
static void subtract(const triangle *t, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
  for (int64_t i = i0; i < i1; i += CHUNK_ROWS) {
    const int64_t len = HONE_MIN((int64_t)CHUNK_ROWS, i1 - i);
    int64_t j = j0;
    for (; j + 4 <= j1; j += 4)
      for (int64_t c = 0; c < t->k; c++) {
        double *v = t->v + c * t->ldv;
        subtract_4(len, t->f + i + j * t->ld, t->ld, v + j, v + i);
      }
    for (; j < j1; j++)
      for (int64_t c = 0; c < t->k; c++) {
        double *v = t->v + c * t->ldv;
        subtract_1(len, t->f + i + j * t->ld, v[j], v + i);
      }
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

/* The part of one block of columns that threads share: its rows i0 to i1,
   outside of the triangle on the diagonal. */
typedef struct beside {
  const triangle *t;
  int64_t i0, i1, j0, j1;
} beside;

static void run_beside(void *ctx, int64_t task) {
  const beside *b = ctx;
  if (b->t->trans) {
    int64_t j = b->j0 + task * CHUNK_COLUMNS;
    gather(b->t, b->i0, b->i1, j, HONE_MIN(j + CHUNK_COLUMNS, b->j1));
  } else {
    int64_t i = b->i0 + task * CHUNK_ROWS;
    subtract(b->t, i, HONE_MIN(i + CHUNK_ROWS, b->i1), b->j0, b->j1);
  }
}

static void solve_triangle(hone_pool *pool, const triangle *t) {
  const bool down = t->lower != t->trans;
  const int64_t width =
      HONE_MAX((int64_t)BLOCK_LEAST, (t->n / BLOCKS + TILE - 1) / TILE * TILE);
  const int64_t blocks = (t->n + width - 1) / width;
  for (int64_t s = 0; s < blocks; s++) {
    const int64_t j0 = (down ? s : blocks - 1 - s) * width;
    const int64_t j1 = HONE_MIN(j0 + width, t->n);
    beside b = {t, t->lower ? j1 : 0, t->lower ? t->n : j0, j0, j1};
    const int64_t tasks = b.i1 <= b.i0 ? 0
                          : t->trans
                              ? (j1 - j0 + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS
                              : (b.i1 - b.i0 + CHUNK_ROWS - 1) / CHUNK_ROWS;
    if (t->trans)
      hone_pool_run(pool, tasks, run_beside, &b);
    solve_block(t, j0, j1);
    if (!t->trans)
      hone_pool_run(pool, tasks, run_beside, &b);
  }
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

/* Solves with both triangles of the factors, one after the other. */
static void solve_both(hone_pool *pool, const hone_factors *f, triangle *t,
                       bool lower_first, bool unit_lower, bool unit_upper) {
  for (int step = 0; step < 2; step++) {
    t->lower = (step == 0) == lower_first;
    t->unit = t->lower ? unit_lower : unit_upper;
    if (f->form == HONE_FORM_CHOLESKY) { /* L, then L^T */
      t->lower = true;
      t->trans = step == 1;
    }
    if (t->many)
      solve_for_many(pool, t);
    else
      solve_triangle(pool, t);
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
    solve_both(pool, f, &t, !trans, rows && !spd, !rows && !spd);
    for (int64_t q = 0; q < m && !spd && rows == trans; q++)
      exchange(f, true, t.v + q * ldv);
  }
}
