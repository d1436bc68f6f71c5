/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves with complex factors in single or in double precision
   (FACTOR_BITS, of a part), in double arithmetic. chain.c deals blocks of rows
   to the threads. Entries are pairs of real numbers, and loops are kept plain
   so that the compiler turns them into vector instructions. Real and imaginary
   parts are copied apart first: vector instructions then need not exchange
   them, which pays from two right-hand sides on, and costs little with one.
   apply.c has the same for real entries. */
#include "cpu_factor/apply.h"
#include "cpu_factor/chain.h"
#include "cpu_factor/real.h"

#include "base/vectors.h"

#include <string.h>

enum {
  SHARED = 8,       /* right-hand sides that share one read of F */
  FOUR = 4,         /* columns that are subtracted at once */
  TILE = 32,        /* columns solved before the others are updated */
  CHUNK_ROWS = 128, /* rows at once */
  AHEAD = 8,        /* columns that are fetched into the cache */
  LINE = 64 / (2 * (int)sizeof(real)) /* entries of a line of the cache */
};

/* One triangular solve, with T = F, F^T or F^H. */
typedef struct triangle {
  int64_t n, ld; /* in entries */
  const real *f;
  bool lower, trans, unit;
  double sign; /* of the imaginary parts: -1 for F^H */
  int64_t k;   /* <= SHARED */
  hone_entry *v;
  int64_t ldv;
} triangle;

static const real *at(const triangle *t, int64_t i, int64_t j) {
  return t->f + 2 * (i + j * t->ld);
}

/* Asks for 'columns' columns of a chunk of rows, AHEAD of column j, to be in
   the cache when they are needed. */
static void fetch(const triangle *t, int64_t i, int64_t len, int64_t j,
                  int columns, int64_t end) {
  for (int64_t c = j + AHEAD; c < HONE_MIN(j + AHEAD + columns, end); c++)
    for (int64_t row = i; row < i + len; row += LINE)
      __builtin_prefetch(at(t, row, c));
}

/* Real and imaginary parts of a chunk of rows, apart. */
typedef struct chunk {
  double re[CHUNK_ROWS], im[CHUNK_ROWS];
} chunk;

HONE_VECTOR static void part_factors(int64_t len, const real *restrict a,
                                     chunk *restrict to) {
  for (int64_t i = 0; i < len; i++) {
    to->re[i] = (double)a[2 * i];
    to->im[i] = (double)a[2 * i + 1];
  }
}

HONE_VECTOR static void part(int64_t len, const double *restrict v,
                             chunk *restrict to) {
  for (int64_t i = 0; i < len; i++) {
    to->re[i] = v[2 * i];
    to->im[i] = v[2 * i + 1];
  }
}

HONE_VECTOR static void join(int64_t len, const chunk *restrict from,
                             double *restrict v) {
  for (int64_t i = 0; i < len; i++) {
    v[2 * i] = from->re[i];
    v[2 * i + 1] = from->im[i];
  }
}

/* y -= a[0] x[0] + ... + a[3] x[3]. */
HONE_VECTOR static void subtract_4(int64_t len, const chunk *restrict a,
                                   const double *restrict x,
                                   chunk *restrict y) {
  const double r0 = x[0], i0 = x[1], r1 = x[2], i1 = x[3];
  const double r2 = x[4], i2 = x[5], r3 = x[6], i3 = x[7];
  for (int64_t i = 0; i < len; i++) {
    const double s =
        a[0].re[i] * r0 - a[0].im[i] * i0 + (a[1].re[i] * r1 - a[1].im[i] * i1);
    const double t =
        a[2].re[i] * r2 - a[2].im[i] * i2 + (a[3].re[i] * r3 - a[3].im[i] * i3);
    const double p =
        a[0].re[i] * i0 + a[0].im[i] * r0 + (a[1].re[i] * i1 + a[1].im[i] * r1);
    const double q =
        a[2].re[i] * i2 + a[2].im[i] * r2 + (a[3].re[i] * i3 + a[3].im[i] * r3);
    y->re[i] -= s + t;
    y->im[i] -= p + q;
  }
}

HONE_VECTOR static void subtract_1(int64_t len, const real *restrict a,
                                   const double *x, double *restrict y) {
  const double xr = x[0], xi = x[1];
  for (int64_t i = 0; i < len; i++) {
    const double ar = (double)a[2 * i], ai = (double)a[2 * i + 1];
    y[2 * i] -= ar * xr - ai * xi;
    y[2 * i + 1] -= ar * xi + ai * xr;
  }
}

/* Sums of products of the parts of a column with those of v. */
typedef struct sums {
  double re_re, im_im, re_im, im_re;
} sums;

/* Adds the products of two columns with v. */
HONE_VECTOR static void add_dots(int64_t len, const chunk *restrict a,
                                 const chunk *restrict b,
                                 const chunk *restrict v, sums to[2]) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  double t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
  for (int64_t i = 0; i < len; i++) {
    const double re = v->re[i], im = v->im[i];
    s0 += a->re[i] * re;
    s1 += a->im[i] * im;
    s2 += a->re[i] * im;
    s3 += a->im[i] * re;
    t0 += b->re[i] * re;
    t1 += b->im[i] * im;
    t2 += b->re[i] * im;
    t3 += b->im[i] * re;
  }
  to[0] = (sums){s0, s1, s2, s3};
  to[1] = (sums){t0, t1, t2, t3};
}

/* y -= the sum, in which a is conjugated if the sign is -1. */
static void subtract_sums(const sums *s, double sign, double *y) {
  y[0] -= s->re_re - sign * s->im_im;
  y[1] -= s->re_im + sign * s->im_re;
}

/* v[i0:i1] -= F[i0:i1, j0:j1] v[j0:j1], for every right-hand side. Missing
   columns of the last four count as zeros. */
static void subtract(const triangle *t, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
  chunk a[FOUR], y[SHARED];
  double x[2 * FOUR] = {0.0};
  for (int64_t i = i0; i < i1; i += CHUNK_ROWS) {
    const int64_t len = HONE_MIN((int64_t)CHUNK_ROWS, i1 - i);
    for (int64_t c = 0; c < t->k; c++)
      part(len, (const double *)(t->v + c * t->ldv + i), &y[c]);
    for (int64_t j = j0; j < j1; j += FOUR) {
      const int64_t w = HONE_MIN((int64_t)FOUR, j1 - j);
      fetch(t, i, len, j, FOUR, j1);
      for (int64_t q = 0; q < FOUR; q++)
        part_factors(len, at(t, i, j + HONE_MIN(q, w - 1)), &a[q]);
      memset(x, 0, sizeof x);
      for (int64_t c = 0; c < t->k; c++) {
        memcpy(x, t->v + c * t->ldv + j, (size_t)w * sizeof *t->v);
        subtract_4(len, a, x, &y[c]);
      }
    }
    for (int64_t c = 0; c < t->k; c++)
      join(len, &y[c], (double *)(t->v + c * t->ldv + i));
  }
}

/* v[j0:j1] -= op(F[i0:i1, j0:j1]) v[i0:i1], for every right-hand side. */
static void gather(const triangle *t, int64_t i0, int64_t i1, int64_t j0,
                   int64_t j1) {
  chunk a[2], v[SHARED];
  sums s[2];
  for (int64_t i = i0; i < i1; i += CHUNK_ROWS) {
    const int64_t len = HONE_MIN((int64_t)CHUNK_ROWS, i1 - i);
    for (int64_t c = 0; c < t->k; c++)
      part(len, (const double *)(t->v + c * t->ldv + i), &v[c]);
    for (int64_t j = j0; j < j1; j += 2) {
      const int64_t w = HONE_MIN((int64_t)2, j1 - j);
      fetch(t, i, len, j, 2, j1);
      for (int64_t q = 0; q < w; q++)
        part_factors(len, at(t, i, j + q), &a[q]);
      for (int64_t c = 0; c < t->k; c++) {
        double *y = (double *)(t->v + c * t->ldv + j);
        add_dots(len, &a[0], &a[w - 1], &v[c], s);
        for (int64_t q = 0; q < w; q++)
          subtract_sums(&s[q], t->sign, y + 2 * q);
      }
    }
  }
}

/* Solves with the triangle F[j0:j1, j0:j1] of at most TILE columns, column by
   column (trans: by rows of the transpose), in the order of elimination. */
static void solve_tile(const triangle *t, int64_t j0, int64_t j1) {
  const bool down = t->lower != t->trans;
  for (int64_t s = 0; s < j1 - j0; s++) {
    const int64_t j = down ? j0 + s : j1 - 1 - s;
    const int64_t from = t->lower ? j + 1 : j0, to = t->lower ? j1 : j;
    const real *d = at(t, j, j);
    const hone_entry pivot = CMPLX((double)d[0], t->sign * (double)d[1]);
    if (t->trans)
      gather(t, from, to, j, j + 1);
    for (int64_t c = 0; c < t->k; c++) {
      hone_entry *v = t->v + c * t->ldv;
      if (!t->unit)
        v[j] /= pivot;
      if (!t->trans)
        subtract_1(to - from, at(t, from, j), (const double *)(v + j),
                   (double *)(v + from));
    }
  }
}

/* Solves with the triangle F[j0:j1, j0:j1], tile by tile. */
static void solve_block(const triangle *t, int64_t j0, int64_t j1) {
  const bool down = t->lower != t->trans;
  const int64_t tiles = (j1 - j0 + TILE - 1) / TILE;
  for (int64_t s = 0; s < tiles; s++) {
    const int64_t from = j0 + (down ? s : tiles - 1 - s) * TILE;
    const int64_t to = HONE_MIN(from + TILE, j1);
    if (t->trans)
      gather(t, t->lower ? to : j0, t->lower ? j1 : from, from, to);
    solve_tile(t, from, to);
    if (!t->trans)
      subtract(t, t->lower ? to : j0, t->lower ? j1 : from, from, to);
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

/* Exchanges the entries of v as the rows were exchanged, in that order or
   backwards. */
static void exchange(const hone_factors *f, bool backwards, hone_entry *v) {
  for (int64_t s = 0; s < f->n; s++) {
    const int64_t k = backwards ? f->n - 1 - s : s;
    const int64_t p = (int64_t)f->pivot[k] - f->base;
    const hone_entry held = v[k];
    v[k] = v[p];
    v[p] = held;
  }
}

/* Solves with both triangles of the factors, one after the other: t has what
   they have in common. */
static void solve_both(hone_pool *pool, const hone_factors *f,
                       const triangle *t) {
  const bool definite = f->form == HONE_FORM_CHOLESKY; /* L, then L^H */
  triangle both[2] = {*t, *t};
  for (int step = 0; step < 2; step++) {
    both[step].lower = definite || (step == 0) != t->trans;
    both[step].trans = definite ? step == 1 : t->trans;
    both[step].unit = !definite && both[step].lower;
    both[step].sign = definite && step == 1 ? -1.0 : 1.0;
  }
  const hone_chain chain = {t->n, both, subtract_block, solve_rows};
  hone_chain_run(pool, &chain);
}

void FACTOR_NAME(hone_apply)(hone_pool *pool, const hone_factors *f, bool trans,
                             int64_t k, hone_entry *v, int64_t ldv) {
  const bool definite = f->form == HONE_FORM_CHOLESKY;
  for (int64_t c = 0; c < k; c += SHARED) {
    triangle t = {.n = f->n,
                  .ld = f->ld,
                  .f = f->f,
                  .trans = trans,
                  .k = HONE_MIN((int64_t)SHARED, k - c),
                  .v = v + c * ldv,
                  .ldv = ldv};
    /* inv(S^T) v of a Hermitian S is the conjugate of inv(S) conj(v). */
    for (int64_t q = 0; q < t.k && definite && trans; q++)
      hone_conjugate(f->n, t.v + q * ldv);
    for (int64_t q = 0; q < t.k && !definite && !trans; q++)
      exchange(f, false, t.v + q * ldv);
    solve_both(pool, f, &t);
    for (int64_t q = 0; q < t.k && !definite && trans; q++)
      exchange(f, true, t.v + q * ldv);
    for (int64_t q = 0; q < t.k && definite && trans; q++)
      hone_conjugate(f->n, t.v + q * ldv);
  }
}
