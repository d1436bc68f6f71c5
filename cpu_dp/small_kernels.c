/* SPDX-License-Identifier: BSD-3-Clause */
/* Right-looking LU and Cholesky by panels of BLOCK columns (rows, for
   Cholesky), compiled once for each instruction set, with SMALL_ISA as its
   name. Rows are padded, so that every loop goes over whole vectors:

     panel    P F[k:n, k:k+8] = L U
     row      U[k:k+8, j]     = inv(L11) F[k:k+8, j]    for the columns j to the
     update   F[k+8:n, j]    -= L21 U[k:k+8, j]         right, TILE at a time

   Cholesky's row is the same with L11 = U11^T; its L21 is the transpose of the
   row, and the update ends at the diagonal. Next to read: small_solve.h, which
   has the substitutions. */
#include "cpu_dp/small_kernels.h"

#include "base/isa.h"

#ifndef HONE_COMPLEX /* complex ones are factored by cpu_factor/ */

#include "cpu_dp/small_solve.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

enum {
  TILE = 4,                     /* columns that are updated at once, */
  STEPS = 3,                    /* and blocks of rows */
  TOGETHER = LANES > 4 ? 8 : 4, /* columns that a row is solved for */
  MOST = HONE_SMALL_DOUBLE_UP_TO
};

/* ---- The panel ---------------------------------------------------------- */

typedef int64_t whole __attribute__((vector_size(HONE_VECTOR_BYTES),
                                     aligned(sizeof(int64_t)), may_alias));

INLINE int64_t bits_of_abs(double v) {
  int64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits & INT64_MAX;
}

INLINE whole larger(whole a, whole b) {
  const whole is = a > b;
  return (a & is) | (b & ~is);
}

/* The row of the largest magnitude in v[from .. m-1], m a multiple of BLOCK.
   The last bits of the magnitudes are replaced by a code of the row, so that of
   equal ones the first is the largest; rows less than 2^-44 smaller count as
   equal. NaN is chosen over numbers. */
INLINE int64_t largest_at(int64_t m, const double *v, int64_t from) {
  const int64_t code = 511; /* at least 2 * MOST - 1 */
  static const int64_t first[BLOCK] = {511, 510, 509, 508, 507, 506, 505, 504};
  whole key[PARTS] = {{0}}, rows[PARTS];
  int64_t top = 0;
  for (int p = 0; p < PARTS; p++)
    rows[p] = *(const whole *)(first + p * LANES);
  for (int64_t i = 0; i < m; i += BLOCK)
    for (int p = 0; p < PARTS; p++) {
      whole k = *(const whole *)(v + i + p * LANES) & (INT64_MAX - code);
      k |= rows[p];
      if (i == 0)
        k &= rows[p] <= code - from; /* rows above do not count */
      rows[p] -= BLOCK;
      key[p] = larger(k, key[p]);
    }
  for (int p = 0; p < PARTS; p++)
    for (int l = 0; l < LANES; l++)
      top = HONE_MAX(top, key[p][l]);
  return code - (top & code);
}

INLINE void swap_rows(int64_t columns, double *f, int64_t ld, int64_t a,
                      int64_t b) {
  for (int64_t j = 0; j < columns; j++) {
    const double held = f[a + j * ld];
    f[a + j * ld] = f[b + j * ld];
    f[b + j * ld] = held;
  }
}

/* Divides v[from .. m-1] by the pivot. */
INLINE void divide(int64_t m, double *v, int64_t from, double pivot) {
  const double by = 1.0 / pivot;
  const bool multiply = fabs(by) <= DBL_MAX;
  for (int64_t i = from; i < BLOCK; i++)
    v[i] = multiply ? v[i] * by : v[i] / pivot;
  if (multiply)
    for (int64_t i = BLOCK; i < m; i += BLOCK)
      for (int64_t l = 0; l < BLOCK; l++)
        v[i + l] *= by;
  else
    for (int64_t i = BLOCK; i < m; i++)
      v[i] /= pivot;
}

/* v[from .. m-1] -= s l[from .. m-1]. */
INLINE void subtract(int64_t m, const double *restrict l, int64_t from,
                     double s, double *restrict v) {
  for (int64_t i = from; i < BLOCK; i++)
    v[i] -= s * l[i];
  for (int64_t i = BLOCK; i < m; i += BLOCK)
    for (int64_t p = 0; p < BLOCK; p++)
      v[i + p] -= s * l[i + p];
}

/* LU of m x w entries from p on, m being padded. pivot: the rows exchanged,
   from 0. Returns the first column with a zero pivot, or -1. */
static int64_t factor_panel(int64_t m, int64_t w, double *p, int64_t ld,
                            int *pivot) {
  int64_t zero = -1;
  for (int64_t c = 0; c < w; c++) {
    double *column = p + c * ld;
    const int64_t at = largest_at(m, column, c);
    pivot[c] = (int)at;
    if (at != c)
      swap_rows(w, p, ld, c, at);
    if (!(column[c] != 0.0)) {
      zero = zero < 0 ? c : zero;
      continue;
    }
    divide(m, column, c + 1, column[c]);
    for (int64_t j = c + 1; j < w; j++)
      subtract(m, column, c + 1, p[c + j * ld], p + j * ld);
  }
  return zero;
}

/* ---- Row and update ----------------------------------------------------- */

/* The unit lower triangle of a block, with zeros on and above its diagonal, by
   columns, and what its solutions are divided by. */
typedef struct block_triangle {
  rows_of l[BLOCK];
  rows_of inverse; /* 1 / the diagonal */
  bool unit;
} block_triangle;

/* u = inv(L) u for TOGETHER columns, to v. */
INLINE void solve_row(const block_triangle *t, rows_of u[TOGETHER], double *v,
                      int64_t ld, whole max[PARTS]) {
  for (int r = 0; r < BLOCK - 1; r++)
    for (int c = 0; c < TOGETHER; c++) {
      const double s = u[c].part[r / LANES][r % LANES];
      for (int p = r / LANES; p < PARTS; p++)
        u[c].part[p] -= t->l[r].part[p] * s;
    }
  for (int c = 0; c < TOGETHER; c++) {
    for (int p = 0; p < PARTS && !t->unit; p++)
      u[c].part[p] *= t->inverse.part[p];
    for (int p = 0; p < PARTS; p++)
      max[p] = larger((whole)u[c].part[p] & INT64_MAX, max[p]);
    store(&u[c], v + c * ld);
  }
}

/* C -= L U for 'steps' blocks of rows, BLOCK columns of L and TILE of C. */
INLINE void update_tile(int steps, const double *l, int64_t ldl,
                        const double *u, double *c, int64_t ld) {
  rows_of sum[STEPS][TILE];
  for (int q = 0; q < TILE; q++)
    for (int s = 0; s < steps; s++)
      sum[s][q] = load(c + s * BLOCK + q * ld);
  for (int k = 0; k < BLOCK; k++)
    for (int s = 0; s < steps; s++) {
      const rows_of column = load(l + s * BLOCK + k * ldl);
      for (int q = 0; q < TILE; q++)
        for (int p = 0; p < PARTS; p++)
          sum[s][q].part[p] -= column.part[p] * u[k + q * ld];
    }
  for (int q = 0; q < TILE; q++)
    for (int s = 0; s < steps; s++)
      store(&sum[s][q], c + s * BLOCK + q * ld);
}

/* Updates m rows, a multiple of BLOCK. */
INLINE void update(int64_t m, const double *l, int64_t ldl, const double *u,
                   double *c, int64_t ld) {
  int64_t i = 0;
  for (; i + STEPS * BLOCK <= m; i += STEPS * BLOCK)
    update_tile(STEPS, l + i, ldl, u, c + i, ld);
  if (m - i == 2 * BLOCK)
    update_tile(2, l + i, ldl, u, c + i, ld);
  else if (m - i == BLOCK)
    update_tile(1, l + i, ldl, u, c + i, ld);
}

INLINE int64_t padded(int64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

/* ---- LU ----------------------------------------------------------------- */

/* The exchanges of a panel at once: row c of the block becomes row from[c], and
   row to[i] below it becomes row of[i] of the block. */
typedef struct exchanges {
  int64_t from[BLOCK], to[BLOCK], of[BLOCK];
  int64_t count;
} exchanges;

static void collect(int64_t w, const int *pivot, exchanges *x) {
  x->count = 0;
  for (int64_t c = 0; c < BLOCK; c++)
    x->from[c] = c;
  for (int64_t c = 0; c < w; c++) {
    const int64_t r = pivot[c], held = x->from[c];
    int64_t at = 0;
    if (r < BLOCK) {
      x->from[c] = x->from[r];
      x->from[r] = held;
      continue;
    }
    while (at < x->count && x->to[at] != r)
      at++;
    if (at == x->count) {
      x->to[x->count++] = r;
      x->of[at] = r;
    }
    x->from[c] = x->of[at];
    x->of[at] = held;
  }
}

/* Returns the block's rows of a column after the exchanges; writes those
   below. */
INLINE rows_of exchange(const exchanges *x, double *f) {
  rows_of u;
#define ROW(l) f[x->from[l]]
#if defined(__AVX512F__)
  u.part[0] =
      (lanes){ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7)};
#elif defined(__AVX2__)
  u.part[0] = (lanes){ROW(0), ROW(1), ROW(2), ROW(3)};
  u.part[1] = (lanes){ROW(4), ROW(5), ROW(6), ROW(7)};
#else
  for (int l = 0; l < BLOCK; l++)
    u.entry[l] = ROW(l);
#endif
#undef ROW
  for (int64_t i = 0; i < x->count; i++)
    f[x->to[i]] = f[x->of[i]];
  return u;
}

static void take_unit_lower(const double *f, int64_t ld, block_triangle *t) {
  t->unit = true;
  for (int64_t c = 0; c < BLOCK; c++)
    for (int64_t i = 0; i < BLOCK; i++)
      t->l[c].entry[i] = i > c ? f[i + c * ld] : 0.0;
}

/* The largest magnitude of the upper triangle of a block of w columns, beside
   max, as bits. */
INLINE int64_t largest_of_diagonal(int64_t w, const double *f, int64_t ld,
                                   int64_t max) {
  for (int64_t j = 0; j < w; j++)
    for (int64_t i = 0; i <= j; i++)
      max = HONE_MAX(max, bits_of_abs(f[i + j * ld]));
  return max;
}

static double number_of(int64_t top, const whole max[PARTS]) {
  double found;
  for (int p = 0; p < PARTS; p++)
    for (int l = 0; l < LANES; l++)
      top = HONE_MAX(top, max[p][l]);
  memcpy(&found, &top, sizeof found);
  return found <= DBL_MAX ? found : HONE_NAN;
}

/* The trailing columns: exchanges, row and update. */
static void advance_lu(int64_t rows, const double *panel, const exchanges *x,
                       double *u, int64_t ld, whole max[PARTS]) {
  block_triangle t;
  rows_of row[TOGETHER];
  take_unit_lower(panel, ld, &t);
  for (int64_t j = 0; j < rows - BLOCK; j += TOGETHER, u += TOGETHER * ld) {
    for (int c = 0; c < TOGETHER; c++)
      row[c] = exchange(x, u + c * ld);
    solve_row(&t, row, u, ld, max);
    for (int64_t c = 0; c < TOGETHER; c += TILE)
      update(rows - BLOCK, panel + BLOCK, ld, u + c * ld, u + BLOCK + c * ld,
             ld);
  }
}

static int64_t factor_lu(int64_t n, double *f, int64_t ld, int *ipiv,
                         double *largest) {
  const int64_t rows = padded(n);
  int64_t zero = -1, top = 0;
  whole max[PARTS] = {{0}};
  exchanges x;
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int64_t w = HONE_MIN((int64_t)BLOCK, n - k);
    double *panel = f + k + k * ld;
    const int64_t z = factor_panel(rows - k, w, panel, ld, ipiv + k);
    zero = zero < 0 && z >= 0 ? k + z : zero;
    top = largest_of_diagonal(w, panel, ld, top);
    collect(w, ipiv + k, &x);
    for (int64_t j = 0; j < k; j++) {
      const rows_of row = exchange(&x, f + k + j * ld);
      store(&row, f + k + j * ld);
    }
    advance_lu(rows - k, panel, &x, panel + BLOCK * ld, ld, max);
    for (int64_t c = 0; c < w; c++)
      ipiv[k + c] += (int)(k + 1);
  }
  *largest = number_of(top, max);
  return zero;
}

/* ---- Cholesky ----------------------------------------------------------- */

/* U^T U of the diagonal block of w rows, and its triangle for the rest of the
   row. Returns the first column whose pivot is not positive, or -1. */
static int64_t factor_diagonal(int64_t w, double *f, int64_t ld,
                               block_triangle *t) {
  double g[BLOCK][BLOCK]; /* g[c]: row c of U, divided by its diagonal */
  memset(t, 0, sizeof *t);
  memset(g, 0, sizeof g);
  for (int64_t c = 0; c < w; c++)
    for (int64_t j = c; j < w; j++)
      g[c][j] = f[c + j * ld];
  for (int64_t c = 0; c < w; c++) {
    const double pivot = g[c][c], by = 1.0 / pivot, root = sqrt(pivot);
    f[c + c * ld] = pivot;
    if (!(pivot > 0.0))
      return c;
    double *row = g[c];
    for (int64_t i = c + 1; i < w; i++) {
      const double s = row[i] * by;
      for (int64_t j = 0; j < BLOCK; j++)
        g[i][j] -= s * row[j];
    }
    f[c + c * ld] = root;
    t->inverse.entry[c] = 1.0 / root;
    for (int64_t j = c + 1; j < w; j++) {
      f[c + j * ld] = row[j] / root;
      t->l[c].entry[j] = row[j] * by;
    }
  }
  return -1;
}

/* l = the transpose of BLOCK rows of U. */
static void transpose_row(int64_t columns, const double *u, int64_t ld,
                          double *l, int64_t ldl) {
  for (int64_t j = 0; j < columns; j++)
    for (int64_t c = 0; c < BLOCK; c++)
      l[j + c * ldl] = u[c + j * ld];
}

static int64_t factor_cholesky(int64_t n, double *f, int64_t ld,
                               double *largest) {
  double l[BLOCK * MOST];
  const int64_t rows = padded(n);
  int64_t top = 0;
  whole max[PARTS] = {{0}};
  block_triangle t;
  rows_of row[TOGETHER];
  *largest = HONE_NAN;
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int64_t w = HONE_MIN((int64_t)BLOCK, n - k), next = k + BLOCK;
    double *block = f + k + k * ld;
    const int64_t bad = factor_diagonal(w, block, ld, &t);
    if (bad >= 0)
      return k + bad;
    top = largest_of_diagonal(w, block, ld, top);
    for (int64_t j = next; j < rows; j += TOGETHER) {
      for (int c = 0; c < TOGETHER; c++)
        row[c] = load(f + k + (j + c) * ld);
      solve_row(&t, row, f + k + j * ld, ld, max);
    }
    transpose_row(rows - next, f + k + next * ld, ld, l, MOST);
    for (int64_t j = next; j < rows; j += TILE) {
      const int64_t below = (j - next) / BLOCK * BLOCK + BLOCK;
      update(below, l, MOST, f + k + j * ld, f + next + j * ld, ld);
    }
  }
  *largest = number_of(top, max);
  return -1;
}

/* ---- Loading ------------------------------------------------------------- */

static double load_matrix(int64_t n, const double *a, int64_t lda, bool upper,
                          double *f, int64_t ld) {
  const int64_t whole_rows = n / BLOCK * BLOCK;
  int64_t top = 0;
  whole max[PARTS] = {{0}};
  for (int64_t j = 0; j < n; j++) {
    const double *from = a + j * lda;
    double *to = f + j * ld;
    const int64_t rows = upper ? j + 1 : n, blocks = rows / BLOCK * BLOCK;
    for (int64_t i = 0; i < blocks; i += BLOCK) {
      const rows_of v = load(from + i);
      for (int p = 0; p < PARTS; p++)
        max[p] = larger((whole)v.part[p] & INT64_MAX, max[p]);
      store(&v, to + i);
    }
    for (int64_t i = blocks; i < rows; i++) {
      top = HONE_MAX(top, bits_of_abs(from[i]));
      to[i] = from[i];
    }
    memset(to + rows, 0, (size_t)(padded(n) - rows) * sizeof *to);
  }
  if (whole_rows < n)
    memset(f + n * ld, 0, (size_t)((padded(n) - n) * ld) * sizeof *f);
  return number_of(top, max);
}

const hone_small_kernels JOIN(hone_small_, SMALL_ISA) = {
    load_matrix, factor_lu, factor_cholesky, hone_small_solve_all};

#endif
