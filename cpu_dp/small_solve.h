/* SPDX-License-Identifier: BSD-3-Clause */
/* Substitution with the factors of small_kernels.c, which includes this file
   for each instruction set. One right-hand side is solved for along the columns
   of the factors, several at once as the entries of vectors. */
#ifndef HONE_SMALL_SOLVE_H
#define HONE_SMALL_SOLVE_H

#include "base/isa.h"
#include "cpu_dp/small_kernels.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef double lanes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                    aligned(sizeof(double)), may_alias));
enum {
  BLOCK = HONE_SMALL_BLOCK,
  LANES = HONE_VECTOR_BYTES / (int)sizeof(double),
  PARTS = BLOCK / LANES
};

/* BLOCK entries of a column, or of a row of right-hand sides. */
typedef union rows_of {
  double entry[BLOCK];
  lanes part[PARTS];
} rows_of;

INLINE rows_of load(const double *from) {
  rows_of v;
  for (int p = 0; p < PARTS; p++)
    v.part[p] = *(const lanes *)(from + p * LANES);
  return v;
}

INLINE void store(const rows_of *v, double *to) {
  for (int p = 0; p < PARTS; p++)
    *(lanes *)(to + p * LANES) = v->part[p];
}

/* v -= s w. */
INLINE void take_away(rows_of *v, double s, const rows_of *w) {
  for (int p = 0; p < PARTS; p++)
    v->part[p] -= w->part[p] * s;
}

INLINE void scale(rows_of *v, double s) {
  for (int p = 0; p < PARTS; p++)
    v->part[p] *= s;
}

enum { GROUP = 4 }; /* unknowns that are eliminated at once */

/* A triangle of f: entry (i, j) of op(T) is f[i * row_step + j * column_step].
 */
typedef struct triangle {
  const double *f;
  int64_t row_step, column_step;
  bool lower, unit;
} triangle;

/* v_i of BLOCK right-hand sides for the rows i of a group of w, among
   themselves. */
INLINE void solve_group(const triangle *t, int64_t j, int64_t w, rows_of *v) {
  for (int64_t c = 0; c < w; c++) {
    const int64_t row = t->lower ? j + c : j + w - 1 - c;
    for (int64_t d = 0; d < c; d++) {
      const int64_t known = t->lower ? j + d : j + w - 1 - d;
      take_away(&v[row], t->f[row * t->row_step + known * t->column_step],
                &v[known]);
    }
    if (!t->unit)
      scale(&v[row], 1.0 / t->f[row * (t->row_step + t->column_step)]);
  }
}

/* v_i -= sum of T_ij v_j over the w unknowns of a group, for the rows from ..
   to - 1. */
INLINE void subtract_group(const triangle *t, int64_t from, int64_t to,
                           int64_t j, int64_t w, rows_of *v) {
  for (int64_t i = from; i < to; i++) {
    const double *f = t->f + i * t->row_step + j * t->column_step;
    rows_of sum = v[i];
    for (int64_t c = 0; c < w; c++)
      take_away(&sum, f[c * t->column_step], &v[j + c]);
    v[i] = sum;
  }
}

INLINE void solve_triangle(const triangle *t, int64_t n, rows_of *v) {
  const int64_t groups = (n + GROUP - 1) / GROUP;
  for (int64_t g = 0; g < groups; g++) {
    const int64_t j = (t->lower ? g : groups - 1 - g) * GROUP;
    const int64_t w = HONE_MIN((int64_t)GROUP, n - j);
    const int64_t from = t->lower ? j + w : 0, to = t->lower ? n : j;
    solve_group(t, j, w, v);
    if (w == GROUP)
      subtract_group(t, from, to, j, GROUP, v);
    else
      subtract_group(t, from, to, j, w, v);
  }
}

INLINE void exchange_rows(int64_t n, const int *ipiv, bool backwards,
                          rows_of *v) {
  for (int64_t s = 0; s < n; s++) {
    const int64_t k = backwards ? n - 1 - s : s, p = ipiv[k] - 1;
    const rows_of held = v[k];
    v[k] = v[p];
    v[p] = held;
  }
}

/* ---- One right-hand side ------------------------------------------------- */

/* The form of a triangle T of f: op(T) is lower or upper, has ones on its
   diagonal or not, and is T^T or T. It is known where the loops are compiled.
 */
typedef struct form {
  bool lower, unit, turned;
} form;

/* v = inv(op(T)) v for a block; f: that of T. Rows and columns from w on are
   zero, and so is v there. */
INLINE void solve_alone(form t, const double *f, int64_t ld, int64_t w,
                        double *v) {
  const int64_t row_step = t.turned ? ld : 1, column_step = t.turned ? 1 : ld;
  double inverse[BLOCK], x[BLOCK];
#pragma GCC unroll 8
  for (int64_t c = 0; c < BLOCK; c++) {
    inverse[c] = c < w ? 1.0 / f[c * (ld + 1)] : 0.0;
    x[c] = v[c];
  }
#pragma GCC unroll 8
  for (int64_t s = 0; s < BLOCK; s++) {
    const int64_t c = t.lower ? s : BLOCK - 1 - s;
    x[c] = t.unit ? x[c] : x[c] * inverse[c];
#pragma GCC unroll 8
    for (int64_t r = s + 1; r < BLOCK; r++) {
      const int64_t i = t.lower ? r : BLOCK - 1 - r;
      x[i] -= f[i * row_step + c * column_step] * x[c];
    }
  }
#pragma GCC unroll 8
  for (int64_t c = 0; c < BLOCK; c++)
    v[c] = x[c];
}

/* v_i -= F[i, j:j+8] v[j:j+8] for the blocks of rows from .. to - 1. */
INLINE void subtract_columns(const double *f, int64_t ld, int64_t j,
                             int64_t from, int64_t to, double *v) {
  for (int64_t i = from; i < to; i += BLOCK) {
    rows_of even = load(v + i), odd = {{0.0}};
    for (int64_t c = 0; c < BLOCK; c += 2) {
      const rows_of a = load(f + i + (j + c) * ld);
      const rows_of b = load(f + i + (j + c + 1) * ld);
      take_away(&even, v[j + c], &a);
      take_away(&odd, v[j + c + 1], &b);
    }
    for (int p = 0; p < PARTS; p++)
      even.part[p] += odd.part[p];
    store(&even, v + i);
  }
}

/* v_(j+c) -= F[:, j+c]^T v over the blocks of rows from .. to - 1. */
INLINE void subtract_dots(const double *f, int64_t ld, int64_t j, int64_t from,
                          int64_t to, double *v) {
  rows_of sum[BLOCK];
  if (from == to)
    return;
  memset(sum, 0, sizeof sum);
  for (int64_t i = from; i < to; i += BLOCK) {
    const rows_of x = load(v + i);
    for (int64_t c = 0; c < BLOCK; c++) {
      const rows_of a = load(f + i + (j + c) * ld);
      for (int p = 0; p < PARTS; p++)
        sum[c].part[p] += a.part[p] * x.part[p];
    }
  }
  for (int64_t c = 0; c < BLOCK; c++)
    for (int64_t l = 0; l < BLOCK; l++)
      v[j + c] -= sum[c].entry[l];
}

/* v = inv(op(T)) v; both are padded by zeros. */
INLINE void solve_triangle_alone(form t, const double *f, int64_t ld, int64_t n,
                                 double *v) {
  const int64_t blocks = (n + BLOCK - 1) / BLOCK, rows = blocks * BLOCK;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t j = (t.lower ? b : blocks - 1 - b) * BLOCK;
    const int64_t w = HONE_MIN((int64_t)BLOCK, n - j);
    /* The rows of the unknowns that come before, or after. */
    const bool above = t.lower == t.turned;
    const int64_t from = above ? 0 : j + BLOCK, to = above ? j : rows;
    if (t.turned)
      subtract_dots(f, ld, j, from, to, v);
    solve_alone(t, f + j * (ld + 1), ld, w, v + j);
    if (!t.turned)
      subtract_columns(f, ld, j, from, to, v);
  }
}

static void exchange_entries(int64_t n, const int *ipiv, bool backwards,
                             double *v) {
  for (int64_t s = 0; s < n; s++) {
    const int64_t k = backwards ? n - 1 - s : s, p = ipiv[k] - 1;
    const double held = v[k];
    v[k] = v[p];
    v[p] = held;
  }
}

/* ---- Solutions ----------------------------------------------------------- */

/* The triangles in the order in which they are solved with: L and U, U^T and
   L^T, or U^T and U. */
static void triangles_of(const double *f, int64_t ld, bool lu, bool trans,
                         triangle out[2]) {
  const bool turned = !lu || trans;
  out[0] = (triangle){f, turned ? ld : 1, turned ? 1 : ld, true, lu && !trans};
  out[1] = (triangle){f, lu && trans ? ld : 1, lu && trans ? 1 : ld, false,
                      lu && trans};
}

static void solve_one(int64_t n, const double *f, int64_t ld, const int *ipiv,
                      bool trans, double *v) {
  double w[HONE_SMALL_DOUBLE_UP_TO + BLOCK];
  memset(w + n / BLOCK * BLOCK, 0, BLOCK * sizeof *w);
  memcpy(w, v, (size_t)n * sizeof *w);
  if (ipiv != NULL && !trans) {
    exchange_entries(n, ipiv, false, w);
    solve_triangle_alone((form){true, true, false}, f, ld, n, w);   /* L */
    solve_triangle_alone((form){false, false, false}, f, ld, n, w); /* U */
  } else if (ipiv != NULL) {
    solve_triangle_alone((form){true, false, true}, f, ld, n, w); /* U^T */
    solve_triangle_alone((form){false, true, true}, f, ld, n, w); /* L^T */
    exchange_entries(n, ipiv, true, w);
  } else {
    solve_triangle_alone((form){true, false, true}, f, ld, n, w);   /* U^T */
    solve_triangle_alone((form){false, false, false}, f, ld, n, w); /* U */
  }
  memcpy(v, w, (size_t)n * sizeof *w);
}

/* Solves for k <= BLOCK right-hand sides. */
static void solve_block(int64_t n, const double *f, int64_t ld, const int *ipiv,
                        bool trans, int64_t k, double *v, int64_t ldv) {
  rows_of w[HONE_SMALL_DOUBLE_UP_TO];
  const bool lu = ipiv != NULL;
  triangle t[2];
  triangles_of(f, ld, lu, trans, t);
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < BLOCK; c++)
      w[i].entry[c] = c < k ? v[i + c * ldv] : 0.0;
  if (lu && !trans)
    exchange_rows(n, ipiv, false, w);
  solve_triangle(&t[0], n, w);
  solve_triangle(&t[1], n, w);
  if (lu && trans)
    exchange_rows(n, ipiv, true, w);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n; i++)
      v[i + c * ldv] = w[i].entry[c];
}

static void hone_small_solve_all(int64_t n, const double *f, int64_t ld,
                                 const int *ipiv, bool trans, int64_t k,
                                 double *v, int64_t ldv) {
  for (int64_t c = 0; c < k; c += BLOCK)
    if (k - c == 1)
      solve_one(n, f, ld, ipiv, trans, v + c * ldv);
    else
      solve_block(n, f, ld, ipiv, trans, HONE_MIN((int64_t)BLOCK, k - c),
                  v + c * ldv, ldv);
}

#endif
