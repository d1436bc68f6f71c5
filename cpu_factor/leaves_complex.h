/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of kernels.c that is arithmetic with complex entries, but for
   trailing updates (products_complex.h): what a tile leaves in C, and leaves,
   which are panels of up to LEAF columns, column by column, left-looking. The
   pass that updates a column also finds its pivot, by |re| + |im| as LAPACK's
   icamax, and scales the column before. leaves.h has the same for real entries.
 */
#ifndef HONE_LEAVES_COMPLEX_H
#define HONE_LEAVES_COMPLEX_H

enum { ROWS = LANES / PARTS }; /* entries of a vector */

/* ---- Vectors of parts ---------------------------------------------------- */

/* Exchanges the parts of every entry. */
INLINE bits exchange_parts(bits v) {
#ifdef __clang__
  bits out;
  for (int l = 0; l < LANES; l++)
    out[l] = v[l ^ 1];
  return out;
#else
  bits from;
  for (int l = 0; l < LANES; l++)
    from[l] = l ^ 1;
  return __builtin_shuffle(v, from);
#endif
}

/* i v */
INLINE lanes times_i(lanes v) {
  const integer top =
      FACTOR_BITS == 32 ? (integer)INT32_MIN : (integer)INT64_MIN;
  bits sign;
  for (int l = 0; l < LANES; l++)
    sign[l] = l % 2 == 0 ? top : 0;
  return (lanes)(exchange_parts((bits)v) ^ sign);
}

/* The sum of products with the real and with the imaginary parts. */
INLINE lanes whole(const lanes *sum) { return sum[0] + times_i(sum[1]); }

/* x a */
INLINE lanes times(lanes a, const real *x) {
  return a * x[0] + times_i(a) * x[1];
}

/* Returns a block of B of k x w entries, and *place is how it is stored: its
   conjugate is copied to the space. */
INLINE const real *take_block(int64_t k, int64_t w, const real *b,
                              hone_strided *place, real *space) {
  if (!place->conjugate)
    return b;
  for (int64_t j = 0; j < w; j++)
    for (int64_t p = 0; p < k; p++) {
      const real *from = b + p * place->row + j * place->column;
      real *to = space + (p + j * k) * PARTS;
      to[0] = from[0];
      to[1] = -from[1];
    }
  place->row = PARTS;
  place->column = k * PARTS;
  return space;
}

/* ---- Scalars ------------------------------------------------------------- */

static entry entry_of(real re, real im) {
  const real parts[PARTS] = {re, im};
  entry v;
  memcpy(&v, parts, sizeof v);
  return v;
}

static real re(entry v) {
  real parts[PARTS];
  memcpy(parts, &v, sizeof v);
  return parts[0];
}

static real im(entry v) {
  real parts[PARTS];
  memcpy(parts, &v, sizeof v);
  return parts[1];
}

static real absolute(real v) { return v < (real)0 ? -v : v; }

static real size_of(entry v) { return absolute(re(v)) + absolute(im(v)); }

/* Returns a b, without the rules of C for infinities. */
static entry product(entry a, entry b) {
  return entry_of(re(a) * re(b) - im(a) * im(b), re(a) * im(b) + im(a) * re(b));
}

/* Returns v / p without needless overflow (Smith 1962). */
static entry quotient(entry v, entry p) {
  const bool wide = absolute(re(p)) >= absolute(im(p));
  const real most = wide ? re(p) : im(p), least = wide ? im(p) : re(p);
  const real r = least / most, by = most + least * r;
  return wide ? entry_of((re(v) + im(v) * r) / by, (im(v) - re(v) * r) / by)
              : entry_of((re(v) * r + im(v)) / by, (im(v) * r - re(v)) / by);
}

/* ---- Columns ------------------------------------------------------------- */

/* The largest magnitude of a column, as the bits of a positive number, and its
   row, lane by lane. The bits of NaN are larger than those of any number. */
typedef struct largest {
  bits magnitude, row;
} largest;

/* Passes over rows from .. m-1 of column c of a leaf: scales column c-1 by
   'scale', C[:, c] -= F[:, 0:c] u, and finds the largest entry. */
INLINE largest update(int c, int64_t from, int64_t m, entry *f, int64_t ldf,
                      const entry *u, entry scale) {
  const integer all =
      FACTOR_BITS == 32 ? (integer)INT32_MAX : (integer)INT64_MAX;
  const real by[PARTS] = {re(scale), im(scale)};
  largest best = {{0}, {0}};
  bits number;
  for (int l = 0; l < LANES; l++)
    number[l] = l / PARTS;
  for (int64_t i = from; i + ROWS <= m; i += ROWS) {
    lanes v = GET((const real *)(f + c * ldf + i));
    UNROLL
    for (int t = 0; t < c; t++) {
      lanes l = GET((const real *)(f + t * ldf + i));
      if (t == c - 1) {
        l = times(l, by);
        AT((real *)(f + t * ldf + i)) = l;
      }
      v -= times(l, (const real *)(u + t));
    }
    AT((real *)(f + c * ldf + i)) = v;
    const bits parts = (bits)v & all;
    const bits size = (bits)((lanes)parts + (lanes)exchange_parts(parts));
    const bits larger = size > best.magnitude;
    best.magnitude = (size & larger) | (best.magnitude & ~larger);
    best.row = ((number + (integer)i) & larger) | (best.row & ~larger);
  }
  return best;
}

/* The rows that are left behind whole vectors. */
static void update_rest(int64_t c, int64_t from, int64_t m, entry *f,
                        int64_t ldf, const entry *u, entry scale) {
  for (int64_t i = from; i < m; i++) {
    entry v = f[c * ldf + i];
    for (int64_t t = 0; t < c; t++) {
      if (t == c - 1)
        f[t * ldf + i] = product(f[t * ldf + i], scale);
      v -= product(f[t * ldf + i], u[t]);
    }
    f[c * ldf + i] = v;
  }
}

#define CASE(c)                                                                \
  case c:                                                                      \
    return update(c, from, m, f, ldf, u, scale);

/* The inner loop has a constant length, so that u stays in registers. */
static largest update_column(int64_t c, int64_t from, int64_t m, entry *f,
                             int64_t ldf, const entry *u, entry scale) {
  switch (c) {
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
  default:
    return update(0, from, m, f, ldf, u, scale);
  }
}

/* Is entry i of a column larger than the largest so far? Then it is. */
static void compare(const entry *column, int64_t i, integer *most,
                    int64_t *row) {
  const real size = size_of(column[i]);
  integer magnitude;
  memcpy(&magnitude, &size, sizeof magnitude);
  magnitude &= FACTOR_BITS == 32 ? (integer)INT32_MAX : (integer)INT64_MAX;
  if (magnitude > *most) {
    *most = magnitude;
    *row = i;
  }
}

/* Updates column c from row 'from' on, and returns the first row of its largest
   entry. Vectors begin at multiples of their length. */
static int64_t update_and_search(int64_t c, int64_t from, int64_t m, entry *f,
                                 int64_t ldf, const entry *u, entry scale) {
  const int64_t head = HONE_MIN(m, (from + ROWS - 1) / ROWS * ROWS);
  const int64_t rest = head + (m - head) / ROWS * ROWS;
  const entry *column = f + c * ldf;
  integer most = 0;
  int64_t row = from;
  update_rest(c, from, head, f, ldf, u, scale);
  const largest best = update_column(c, head, m, f, ldf, u, scale);
  update_rest(c, rest, m, f, ldf, u, scale);
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

/* ---- Leaves -------------------------------------------------------------- */

/* Returns what the column below a pivot is multiplied by. Where the reciprocal
   overflows, the column is divided here, and that is 1. */
static entry eliminate(int64_t from, int64_t m, entry pivot, entry *f) {
  const entry one = entry_of((real)1, (real)0);
  if (size_of(pivot) >= LEAST_NORMAL)
    return quotient(one, pivot);
  for (int64_t i = from; i < m; i++)
    f[i] = quotient(f[i], pivot);
  return one;
}

static int64_t lu_leaf(int64_t m, int64_t w, entry *f, int64_t ldf,
                       int *pivot) {
  entry u[LEAF], scale = entry_of((real)1, (real)0);
  int64_t zero = -1;
  for (int64_t c = 0; c < w; c++) {
    for (int64_t t = 0; t < c; t++) {
      u[t] = f[t + c * ldf];
      for (int64_t s = 0; s < t; s++)
        u[t] -= product(f[t + s * ldf], u[s]);
      f[t + c * ldf] = u[t];
    }
    const int64_t row = update_and_search(c, c, m, f, ldf, u, scale);
    scale = entry_of((real)1, (real)0);
    pivot[c] = (int)row + 1;
    const entry p = f[row + c * ldf];
    for (int64_t j = 0; j < w && row != c; j++) {
      const entry t = f[c + j * ldf];
      f[c + j * ldf] = f[row + j * ldf];
      f[row + j * ldf] = t;
    }
    if (!(size_of(p) == (real)0)) /* NaN as well */
      scale = eliminate(c + 1, m, p, f + c * ldf);
    else if (zero < 0)
      zero = c;
  }
  for (int64_t i = w; i < m; i++)
    f[i + (w - 1) * ldf] = product(f[i + (w - 1) * ldf], scale);
  return zero;
}

static int64_t cholesky_leaf(int64_t m, int64_t w, entry *f, int64_t ldf) {
  const entry one = entry_of((real)1, (real)0);
  entry u[LEAF];
  for (int64_t c = 0; c < w; c++) {
    for (int64_t t = 0; t < c; t++)
      u[t] = entry_of(re(f[c + t * ldf]), -im(f[c + t * ldf]));
    update_column(c, c, m, f, ldf, u, one);
    update_rest(c, c + (m - c) / ROWS * ROWS, m, f, ldf, u, one);
    const real p = re(f[c + c * ldf]);
    if (!(p > (real)0))
      return c;
    const entry root = entry_of(SQUARE_ROOT(p), (real)0);
    const entry scale = eliminate(c + 1, m, root, f + c * ldf);
    f[c + c * ldf] = root;
    for (int64_t i = c + 1; i < m; i++)
      f[i + c * ldf] = entry_of(re(scale) * re(f[i + c * ldf]),
                                re(scale) * im(f[i + c * ldf]));
  }
  return -1;
}

#endif
