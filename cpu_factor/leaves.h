/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of kernels.c that factors a leaf, which is a panel of up to LEAF
   columns: column by column, left-looking. The pass that updates a column also
   finds its pivot and scales the column before. */
#ifndef HONE_LEAVES_H
#define HONE_LEAVES_H

/* The largest magnitude of a column, as the bits of a positive number, and its
   row, lane by lane. The bits of NaN are larger than those of any number. */
typedef struct largest {
  bits magnitude, row;
} largest;

static bits lane_numbers(void) {
  bits number;
  for (int l = 0; l < LANES; l++)
    number[l] = l;
  return number;
}

/* Passes over rows from .. m-1 of column c of a leaf: scales column c-1 by
   'scale', C[:, c] -= F[:, 0:c] u, and finds the largest entry. A vector that
   begins before row 'from' keeps its entries before. */
INLINE largest update(int c, int64_t from, int64_t m, real *f, int64_t ldf,
                      const real *u, real scale) {
  const bits number = lane_numbers();
  largest best = {{0}, {0}};
  real *to = f + c * ldf;
  int64_t i = from;
  for (; i + LANES <= m; i += LANES) {
    lanes v = GET(to + i);
    UNROLL
    for (int t = 0; t < c; t++) {
      lanes l = GET(f + t * ldf + i);
      if (t == c - 1) {
        l *= scale;
        AT(f + t * ldf + i) = l;
      }
      v -= l * u[t];
    }
    AT(to + i) = v;
    const bits size =
        (bits)v & (FACTOR_BITS == 32 ? (integer)INT32_MAX : (integer)INT64_MAX);
    const bits larger = size > best.magnitude;
    best.magnitude = (size & larger) | (best.magnitude & ~larger);
    best.row = ((number + (integer)i) & larger) | (best.row & ~larger);
  }
  return best;
}

/* The rows that are left behind whole vectors. */
static void update_rest(int c, int64_t from, int64_t m, real *f, int64_t ldf,
                        const real *u, real scale) {
  for (int64_t i = from; i < m; i++) {
    real v = f[c * ldf + i];
    for (int t = 0; t < c; t++) {
      if (t == c - 1)
        f[t * ldf + i] *= scale;
      v -= f[t * ldf + i] * u[t];
    }
    f[c * ldf + i] = v;
  }
}

#define CASE(c)                                                                \
  case c:                                                                      \
    return update(c, from, m, f, ldf, u, scale);

/* The inner loop has a constant length, so that u stays in registers. */
static largest update_column(int64_t c, int64_t from, int64_t m, real *f,
                             int64_t ldf, const real *u, real scale) {
  switch (c) {
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    CASE(8)
    CASE(9)
    CASE(10)
    CASE(11)
    CASE(12)
    CASE(13)
    CASE(14)
    CASE(15)
  default:
    return update(0, from, m, f, ldf, u, scale);
  }
}

static integer magnitude(real v) {
  integer i;
  memcpy(&i, &v, sizeof i);
  return i & (FACTOR_BITS == 32 ? (integer)INT32_MAX : (integer)INT64_MAX);
}

/* Is entry i of a column larger than the largest so far? Then it is. */
static void compare(const real *column, int64_t i, integer *most,
                    int64_t *row) {
  const integer size = magnitude(column[i]);
  if (size > *most) {
    *most = size;
    *row = i;
  }
}

/* Updates column c from row 'from' on, and returns the first row of its largest
   entry. Vectors begin at multiples of their length. */
static int64_t update_and_search(int64_t c, int64_t from, int64_t m, real *f,
                                 int64_t ldf, const real *u, real scale) {
  const int64_t head = HONE_MIN(m, (from + LANES - 1) / LANES * LANES);
  const int64_t rest = head + (m - head) / LANES * LANES;
  const real *column = f + c * ldf;
  integer most = 0;
  int64_t row = from;
  update_rest((int)c, from, head, f, ldf, u, scale);
  const largest best = update_column(c, head, m, f, ldf, u, scale);
  update_rest((int)c, rest, m, f, ldf, u, scale);
  for (int64_t i = from; i < head; i++)
    compare(column, i, &most, &row);
  integer top = most;
  for (int l = 0; l < LANES; l++)
    top = HONE_MAX(top, best.magnitude[l]);
  if (top > most) {
    row = m;
    for (int l = 0; l < LANES; l++)
      if (best.magnitude[l] == top && best.row[l] < row)
        row = best.row[l];
    most = top;
  }
  for (int64_t i = rest; i < m; i++)
    compare(column, i, &most, &row);
  return row;
}

/* Returns what a column below its pivot is multiplied by; *divide: the
   reciprocal of the pivot overflows, so the column must be divided. */
static real reciprocal(real pivot, bool *divide) {
  *divide = !(magnitude(pivot) >= magnitude(LEAST_NORMAL));
  return *divide ? (real)1 : (real)1 / pivot;
}

static void divide_column(int64_t from, int64_t m, real pivot, real *f) {
  for (int64_t i = from; i < m; i++)
    f[i] /= pivot;
}

static void scale_column(int64_t from, int64_t m, real scale, real *f) {
  for (int64_t i = from; i < m; i++)
    f[i] *= scale;
}

static int64_t lu_leaf(int64_t m, int64_t w, real *f, int64_t ldf, int *pivot) {
  real u[LEAF], scale = 1;
  int64_t zero = -1;
  for (int64_t c = 0; c < w; c++) {
    for (int64_t t = 0; t < c; t++) {
      u[t] = f[t + c * ldf];
      for (int64_t s = 0; s < t; s++)
        u[t] -= f[t + s * ldf] * u[s];
      f[t + c * ldf] = u[t];
    }
    const int64_t row = update_and_search(c, c, m, f, ldf, u, scale);
    scale = 1;
    pivot[c] = (int)row + 1;
    const real p = f[row + c * ldf];
    for (int64_t j = 0; j < w && row != c; j++) {
      const real t = f[c + j * ldf];
      f[c + j * ldf] = f[row + j * ldf];
      f[row + j * ldf] = t;
    }
    bool divide = false;
    if (p != (real)0) /* NaN as well */
      scale = reciprocal(p, &divide);
    else if (zero < 0)
      zero = c;
    if (divide && p != (real)0)
      divide_column(c + 1, m, p, f + c * ldf);
  }
  if (scale != (real)1)
    scale_column(w, m, scale, f + (w - 1) * ldf);
  return zero;
}

static int64_t cholesky_leaf(int64_t m, int64_t w, real *f, int64_t ldf) {
  real u[LEAF];
  for (int64_t c = 0; c < w; c++) {
    for (int64_t t = 0; t < c; t++)
      u[t] = f[c + t * ldf];
    update_column(c, c, m, f, ldf, u, (real)1);
    update_rest((int)c, c + (m - c) / LANES * LANES, m, f, ldf, u, (real)1);
    const real p = f[c + c * ldf];
    if (!(p > (real)0))
      return c;
    const real root = SQUARE_ROOT(p);
    bool divide;
    const real scale = reciprocal(root, &divide);
    f[c + c * ldf] = root;
    if (divide)
      divide_column(c + 1, m, root, f + c * ldf);
    else
      scale_column(c + 1, m, scale, f + c * ldf);
  }
  return -1;
}

#endif
