/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting of a band matrix, right-looking by panels. The
   address of an entry of the band is that of a full matrix whose leading
   dimension is ld - 1. A panel of w = block columns that begins at column j has
   nonzero entries in rows j .. j+w+lower-1, and the rows of the panel in
   columns up to j+w+lower+upper-1:

         w        lower + upper
     [ panel ]   [ U        ]  w rows
     [       ]   [ trailing ]  lower rows

   These blocks are full matrices for the kernels of cpu_factor: the storage has
   room for the w - 1 diagonals by which their corners extend beyond the band.
   Rows are exchanged in the panel and to the right of it, not in L to the left
   of it. */
#include "cpu_dp/band_lu.h"

#include "cpu_factor/kernels.h"

enum {
  BLOCK_MOST = 32,
  BLOCK_LEAST = 4,
  ENTRY_BITS = 8 * (int)sizeof(hone_entry),
  TASK_COLUMNS = 48, /* of the trailing matrix, updated by one thread */
  THREADS_FROM = 192 /* diagonals below the main one */
};

hone_band hone_band_of(int64_t n, int64_t lower, int64_t upper) {
  const int64_t block =
      HONE_MIN(HONE_MAX(lower, (int64_t)BLOCK_LEAST), (int64_t)BLOCK_MOST);
  const int64_t diagonal = lower + upper + block - 1;
  return (hone_band){.n = n,
                     .lower = lower,
                     .upper = upper,
                     .block = block,
                     .diagonal = diagonal,
                     .ld = diagonal + lower + block};
}

/* Factorization ----------------------------------------------------------- */

/* Returns the address of s_ij. */
static hone_entry *at(const hone_band *s, int64_t i, int64_t j) {
  return s->ab + (s->diagonal + i - j) + j * s->ld;
}

typedef struct band_update {
  const hone_band *s;
  const hone_factor_kernels *kernels;
  int64_t from, width; /* the panel's columns */
  int64_t rows;        /* of the trailing matrix that it changes */
  int64_t columns;     /* to its right that it changes */
  int64_t task_columns;
} band_update;

/* Updates some of the columns to the right of a panel. */
static void update_columns(void *ctx, int64_t task) {
  const band_update *u = ctx;
  const hone_band *s = u->s;
  const int64_t first = task * u->task_columns, ldf = s->ld - 1;
  const int64_t w = HONE_MIN(u->task_columns, u->columns - first);
  const int64_t below = u->from + u->width;
  const hone_entry *panel = at(s, u->from, u->from);
  hone_entry *to = at(s, u->from, below + first);
  u->kernels->exchange(w, to, ldf, 0, u->width, s->ipiv + u->from);
  u->kernels->solve_lower(u->width, w, panel, ldf, to, ldf);
  if (u->rows > 0)
    u->kernels->subtract(u->rows, w, u->width, panel + u->width, ldf,
                         (hone_strided){to, 1, ldf, false}, -1, to + u->width,
                         ldf, NULL);
}

int64_t hone_band_factor(const hone_band *s, hone_pool *pool) {
  const hone_factor_kernels *kernels = hone_factor_kernels_of(ENTRY_BITS);
  int64_t zero = -1;
  for (int64_t j = 0; j < s->n; j += s->block) {
    band_update u = {.s = s, .kernels = kernels, .from = j};
    u.width = HONE_MIN(s->block, s->n - j);
    const int64_t after = s->n - j - u.width;
    u.rows = HONE_MIN(s->lower, after);
    u.columns = HONE_MIN(s->lower + s->upper, after);
    const int64_t z = kernels->lu(u.width + u.rows, u.width, at(s, j, j),
                                  s->ld - 1, s->ipiv + j);
    zero = zero < 0 && z >= 0 ? j + z : zero;
    const bool shared = s->lower >= THREADS_FROM && hone_pool_threads(pool) > 1;
    u.task_columns = shared ? TASK_COLUMNS : HONE_MAX(u.columns, (int64_t)1);
    hone_pool_run(shared ? pool : NULL,
                  (u.columns + u.task_columns - 1) / u.task_columns,
                  update_columns, &u);
    for (int64_t i = j; i < j + u.width; i++)
      s->ipiv[i] += (int)j;
  }
  return zero;
}

/* Solutions --------------------------------------------------------------- */

/* Computes v -= x f for n entries. */
HONE_VECTOR static void subtract(int64_t n, hone_entry x,
                                 const hone_entry *restrict f,
                                 hone_entry *restrict v) {
  for (int64_t i = 0; i < n; i++)
    v[i] -= x * f[i];
}

/* Returns the sum of f_i v_i. */
HONE_VECTOR static hone_entry dot(int64_t n, const hone_entry *restrict f,
                                  const hone_entry *restrict v) {
  hone_entry sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += f[i] * v[i];
  return sum;
}

/* k columns, of which the factors are read once for all. */
typedef struct columns {
  int64_t k, ld;
  hone_entry *v;
} columns;

static void exchange(columns b, int64_t i, int64_t with) {
  for (hone_entry *v = b.v; v < b.v + b.k * b.ld; v += b.ld) {
    const hone_entry t = v[i];
    v[i] = v[with];
    v[with] = t;
  }
}

/* Returns the number of rows of L below the diagonal of column j, in the panel
   that begins at column 'from'. */
static int64_t rows_of_l(const hone_band *s, int64_t from, int64_t j) {
  return HONE_MIN(from + s->block + s->lower, s->n) - j - 1;
}

/* Returns the number of rows of U above the diagonal of column j. */
static int64_t rows_of_u(const hone_band *s, int64_t j) {
  return HONE_MIN(s->lower + s->upper, j);
}

static void solve(const hone_band *s, columns b) {
  for (int64_t from = 0; from < s->n; from += s->block) {
    const int64_t to = HONE_MIN(from + s->block, s->n);
    for (int64_t i = from; i < to; i++)
      exchange(b, i, s->ipiv[i] - 1);
    for (int64_t j = from; j < to; j++)
      for (hone_entry *v = b.v; v < b.v + b.k * b.ld; v += b.ld)
        subtract(rows_of_l(s, from, j), v[j], at(s, j, j) + 1, v + j + 1);
  }
  for (int64_t j = s->n - 1; j >= 0; j--) {
    const int64_t rows = rows_of_u(s, j);
    const hone_entry *diagonal = at(s, j, j);
    for (hone_entry *v = b.v; v < b.v + b.k * b.ld; v += b.ld) {
      v[j] /= *diagonal;
      subtract(rows, v[j], diagonal - rows, v + j - rows);
    }
  }
}

static void solve_transposed(const hone_band *s, columns b) {
  for (int64_t j = 0; j < s->n; j++) {
    const int64_t rows = rows_of_u(s, j);
    const hone_entry *diagonal = at(s, j, j);
    for (hone_entry *v = b.v; v < b.v + b.k * b.ld; v += b.ld) {
      v[j] -= dot(rows, diagonal - rows, v + j - rows);
      v[j] /= *diagonal;
    }
  }
  for (int64_t from = (s->n - 1) / s->block * s->block; from >= 0;
       from -= s->block) {
    const int64_t to = HONE_MIN(from + s->block, s->n);
    for (int64_t j = to - 1; j >= from; j--)
      for (hone_entry *v = b.v; v < b.v + b.k * b.ld; v += b.ld)
        v[j] -= dot(rows_of_l(s, from, j), at(s, j, j) + 1, v + j + 1);
    for (int64_t i = to - 1; i >= from; i--)
      exchange(b, i, s->ipiv[i] - 1);
  }
}

void hone_band_solve(const hone_band *s, bool trans, int64_t k, hone_entry *v,
                     int64_t ldv) {
  const columns b = {k, ldv, v};
  if (trans)
    solve_transposed(s, b);
  else
    solve(s, b);
}
