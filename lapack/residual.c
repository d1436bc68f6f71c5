/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes r = b - A x in double-double precision, and from it the backward
   error omega of x, with an error of at most 2 n 2^-53 omega + 2^-62 for n up
   to 2^20. It is accurate enough to decide between two x, and equals what an
   independent check in higher precision finds. */
#include "lapack/dropin.h"

#include "base/base.h"
#include "base/exact.h"
#include "lapack/parts.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef HONE_COMPLEX
#include "lapack/residual_complex.h"
#else

/* Subtracts a x from the pair (*hi, *lo) and adds |a x| to *den. */
HONE_INLINE void subtract(double a, double x, double *hi, double *lo,
                          double *den) {
  hone_add_product(a, -x, hi, lo);
  *den = __builtin_fma(fabs(a), fabs(x), *den);
}

/* Subtracts m rows of four columns of A, which lie lda apart, times x. */
HONE_VECTOR static void four_columns(int64_t m, const double *restrict a,
                                     int64_t lda, const double *x,
                                     double *restrict hi, double *restrict lo,
                                     double *restrict den) {
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const double *restrict a1 = a + lda, *restrict a2 = a + 2 * lda;
  const double *restrict a3 = a + 3 * lda;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    double h = hi[i], l = lo[i], d = den[i];
    subtract(a[i], x0, &h, &l, &d);
    subtract(a1[i], x1, &h, &l, &d);
    subtract(a2[i], x2, &h, &l, &d);
    subtract(a3[i], x3, &h, &l, &d);
    hi[i] = h;
    lo[i] = l;
    den[i] = d;
  }
}

HONE_VECTOR static void one_column(int64_t m, const double *restrict a,
                                   double x, double *restrict hi,
                                   double *restrict lo, double *restrict den) {
#pragma omp simd
  for (int64_t i = 0; i < m; i++)
    subtract(a[i], x, &hi[i], &lo[i], &den[i]);
}

/* Subtracts rows from .. from+m-1 of w columns of A, j and those behind it,
   times x from the sums of right-hand side k. These entries are at a, with
   leading dimension lda. */
static void subtract_rows(const hone_lapack_group *g, int64_t k, int64_t from,
                          int64_t m, int64_t j, int64_t w, const double *a,
                          int64_t lda) {
  const int64_t n = g->n, at = from + k * n;
  const double *x = g->x + j + k * n;
  if (w == 4)
    four_columns(m, a, lda, x, g->r + at, g->low + at, g->den + at);
  for (int64_t i = 0; i < w && w != 4; i++)
    one_column(m, a + i * lda, x[i], g->r + at, g->low + at, g->den + at);
}

/* Subtracts the product of column j of A with x from the sums of row j, in
   partial sums. */
HONE_VECTOR static void dot(int64_t n, const double *restrict a,
                            const double *restrict x, double *hi, double *lo,
                            double *den) {
  enum { LANES = 16 };
  double h[LANES] = {0.0}, l[LANES] = {0.0}, d[LANES] = {0.0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
#pragma omp simd
    for (int k = 0; k < LANES; k++)
      subtract(a[i + k], x[i + k], &h[k], &l[k], &d[k]);
  for (; i < n; i++)
    subtract(a[i], x[i], &h[0], &l[0], &d[0]);
  for (int k = 0; k < LANES; k++) {
    hone_add_product(h[k], 1.0, hi, lo);
    *lo += l[k];
    *den += d[k];
  }
}

/* Subtracts the product of m entries, at a, with rows from .. from+m-1 of x
   from the sums of row j. */
static void subtract_dot(const hone_lapack_group *g, int64_t k, int64_t j,
                         int64_t from, int64_t m, const double *a,
                         bool conjugate) {
  const int64_t n = g->n, at = j + k * n;
  (void)conjugate;
  dot(m, a, g->x + from + k * n, g->r + at, g->low + at, g->den + at);
}

static void begin(const hone_lapack_group *g, int64_t k) {
  for (int64_t i = 0; i < g->n; i++) {
    g->r[i + k * g->n] = g->b[i + k * g->ldb];
    g->low[i + k * g->n] = 0.0;
    g->den[i + k * g->n] = fabs(g->r[i + k * g->n]);
  }
}

static void end(const hone_lapack_group *g, int64_t k) {
  for (int64_t i = k * g->n; i < (k + 1) * g->n; i++)
    g->r[i] += g->low[i];
}

#endif

/* Rows of a whole A, or its columns where A is transposed, that no thread has
   taken yet. Threads take them piece by piece: one whose CPU has other work
   takes fewer. */
typedef struct supply {
  _Atomic int64_t next;
  int64_t piece; /* that is taken at once */
} supply;

/* The part of one thread in a pass over A. That of a triangle is a range of its
   columns from the beginning. */
typedef struct stripe {
  const hone_lapack_group *g; /* the pass's, or own */
  hone_lapack_group own;      /* with sums of its own */
  const bool *open;
  supply *rest;
  int64_t from, to;
  hone_lapack_hash hash;
} stripe;

static int64_t between(int64_t least, int64_t v, int64_t most) {
  return HONE_MAX(least, HONE_MIN(v, most));
}

/* Does as subtract_rows with entries of A. Its rows j .. j+w-1 hold diagonal
   entries, which are taken from g->diagonal. */
static void subtract_block(const hone_lapack_group *g, int64_t k, int64_t from,
                           int64_t m, int64_t j, int64_t w) {
  enum { STEP = 4 };
  hone_entry square[STEP * STEP];
  const hone_entry *a = g->a + j * g->lda;
  const int64_t end = from + m, lda = g->lda;
  const int64_t top = g->diagonal ? between(from, j, end) : end;
  const int64_t low = g->diagonal ? between(from, j + w, end) : end;
  if (top > from)
    subtract_rows(g, k, from, top - from, j, w, a + from, lda);
  for (int64_t c = 0; c < w && low > top; c++)
    for (int64_t i = top; i < low; i++)
      square[i - top + c * STEP] = i == j + c ? g->diagonal[i] : a[i + c * lda];
  if (low > top)
    subtract_rows(g, k, top, low - top, j, w, square, STEP);
  if (end > low)
    subtract_rows(g, k, low, end - low, j, w, a + low, lda);
}

static void pass_rows(stripe *s) {
  const hone_lapack_group *g = s->g;
  const int64_t n = g->n, step = 4, from = s->from, m = s->to - s->from;
  for (int64_t j = 0; j < n; j += step) {
    const int64_t w = HONE_MIN(step, n - j);
    for (int64_t k = 0; k < g->columns; k++)
      if (s->open[k])
        subtract_block(g, k, from, m, j, w);
    for (int64_t c = j; c < j + w && g->hash != NULL; c++)
      hone_lapack_add_hash(&s->hash, (const double *)(g->a + from + c * g->lda),
                           from * HONE_PARTS, m * HONE_PARTS, c);
  }
}

static void pass_columns(stripe *s) {
  const hone_lapack_group *g = s->g;
  const int64_t n = g->n;
  const bool conjugate = g->trans == 'C';
  for (int64_t j = s->from; j < s->to; j++) {
    const hone_entry *a = g->a + j * g->lda;
    const int64_t head = g->diagonal ? j : n;
    for (int64_t k = 0; k < g->columns; k++)
      if (s->open[k]) {
        subtract_dot(g, k, j, 0, head, a, conjugate);
        if (g->diagonal) {
          subtract_dot(g, k, j, j, 1, g->diagonal + j, conjugate);
          subtract_dot(g, k, j, j + 1, n - j - 1, a + j + 1, conjugate);
        }
      }
    if (g->hash != NULL)
      hone_lapack_add_hash(&s->hash, (const double *)a, 0, n * HONE_PARTS, j);
  }
}

/* Subtracts the products of m entries of w columns, j and those behind it, from
   row 'from' on, for their rows and for their columns. */
static void subtract_twice(const hone_lapack_group *g, int64_t k, int64_t from,
                           int64_t m, int64_t j, int64_t w) {
  const hone_entry *a = g->a + from + j * g->lda;
  subtract_rows(g, k, from, m, j, w, a, g->lda);
  for (int64_t c = 0; c < w; c++)
    subtract_dot(g, k, j + c, from, m, a + c * g->lda, !g->symmetric);
}

/* Each entry of the triangle counts for its row and for its column. */
static void pass_triangle(stripe *s) {
  const hone_lapack_group *g = s->g;
  const bool upper = g->uplo == 'U';
  const int64_t n = g->n, step = 4;
  for (int64_t j = s->from; j < s->to; j += step) {
    const int64_t w = HONE_MIN(step, s->to - j), end = j + w;
    for (int64_t k = 0; k < g->columns; k++) {
      if (!s->open[k])
        continue;
      subtract_twice(g, k, upper ? 0 : end, upper ? j : n - end, j, w);
      for (int64_t c = j; c < end; c++) {
        subtract_twice(g, k, upper ? j : c + 1, upper ? c - j : end - c - 1, c,
                       1);
        subtract_dot(g, k, c, c, 1, g->diagonal + c, false);
      }
    }
    for (int64_t c = j; c < end && g->hash != NULL; c++) {
      const int64_t first = upper ? 0 : c, count = upper ? c + 1 : n - c;
      hone_lapack_add_hash(&s->hash,
                           (const double *)(g->a + first + c * g->lda),
                           first * HONE_PARTS, count * HONE_PARTS, c);
    }
  }
}

/* Returns how many rows, or columns, a thread takes at once. Sums of so many
   rows of one column stay in the second cache. */
static int64_t piece_of(const hone_lapack_group *g, int64_t threads) {
  enum { PIECES = 4, LEAST = 512 }; /* of a thread; rows that pay */
  const int64_t most = 8192 / HONE_PARTS / g->columns;
  const int64_t least = g->trans == 'N' ? LEAST : 1;
  return HONE_MAX(least, HONE_MIN(most, g->n / (PIECES * threads) + 1));
}

static void pass_stripe(void *p) {
  stripe *s = p;
  const int64_t n = s->g->n, piece = s->rest->piece;
  if (s->g->uplo != 0) {
    pass_triangle(s);
    return;
  }
  while ((s->from = atomic_fetch_add(&s->rest->next, piece)) < n) {
    s->to = HONE_MIN(s->from + piece, n);
    if (s->g->trans == 'N')
      pass_rows(s);
    else
      pass_columns(s);
  }
}

/* Where part t of 'count' of a triangle begins. They have equal areas. */
static int64_t start_of(const hone_lapack_group *g, int64_t t, int64_t count) {
  const double share = (double)t / (double)count;
  if (t == count)
    return g->n;
  const double at = g->uplo == 'U' ? sqrt(share) : 1.0 - sqrt(1.0 - share);
  return (int64_t)(at * (double)g->n);
}

/* Gives the part sums of its own, which are 0; false without memory. Columns of
   a triangle have products for all rows. */
static bool take_sums(stripe *s) {
  const size_t size = (size_t)(s->own.n * s->own.columns);
  s->own.r = calloc(size, sizeof *s->own.r);
  s->own.low = calloc(size, sizeof *s->own.low);
  s->own.den = calloc(size, sizeof *s->own.den);
  s->g = &s->own;
  return s->own.r != NULL && s->own.low != NULL && s->own.den != NULL;
}

static void free_sums(stripe *s) {
  free(s->own.r);
  free(s->own.low);
  free(s->own.den);
}

/* Adds the part's own sums to those of the group. */
static void add_sums(const stripe *s, const hone_lapack_group *g) {
  for (int64_t k = 0; k < g->columns; k++) {
    const int64_t at = k * g->n;
    double *hi = (double *)(g->r + at), *low = (double *)(g->low + at);
    const double *own = (const double *)(s->own.r + at);
    const double *own_low = (const double *)(s->own.low + at);
    for (int64_t i = 0; i < g->n * HONE_PARTS && s->open[k]; i++) {
      hone_add_product(own[i], 1.0, &hi[i], &low[i]);
      low[i] += own_low[i];
    }
    for (int64_t i = at; i < at + g->n && s->open[k]; i++)
      g->den[i] += s->own.den[i];
  }
}

/* Adds up what the parts have made. */
static void gather(stripe *stripes, int64_t count, const hone_lapack_group *g) {
  for (int64_t t = 0; t < count; t++) {
    if (stripes[t].g == &stripes[t].own)
      add_sums(&stripes[t], g);
    free_sums(&stripes[t]);
    if (g->hash != NULL) {
      g->hash->sum += stripes[t].hash.sum;
      g->hash->product += stripes[t].hash.product;
      g->hash->turned += stripes[t].hash.turned;
    }
  }
}

/* Makes the parts of a pass. Returns how many there are: a triangle is one if
   there is no memory for more. */
static int64_t divide(stripe *stripes, int64_t count, supply *rest,
                      const hone_lapack_group *g, const bool *open) {
  bool room = true;
  for (int64_t t = 0; t < count; t++) {
    stripes[t] = (stripe){.g = g,
                          .open = open,
                          .rest = rest,
                          .from = start_of(g, t, count),
                          .to = start_of(g, t + 1, count)};
    if (g->uplo != 0 && t > 0) {
      stripes[t].own = *g;
      room = take_sums(&stripes[t]) && room;
    }
  }
  for (int64_t t = 0; t < count && !room; t++)
    free_sums(&stripes[t]);
  return room ? count : divide(stripes, 1, rest, g, open);
}

/* Computes r and den of the open columns in one pass over A. */
static void one_pass(const hone_lapack_group *g, const bool *open) {
  enum { STRIPES = HONE_LAPACK_PARTS_MOST, WORTH = 1 << 20 /* numbers */ };
  stripe stripes[STRIPES];
  const int64_t n = g->n;
  const bool shared = n * n * HONE_PARTS >= WORTH;
  int64_t threads = shared ? between(1, g->threads, STRIPES) : 1;
  supply rest = {.piece = piece_of(g, threads)};
  if (g->uplo == 0) /* no more than there are pieces */
    threads = HONE_MIN(threads, (n + rest.piece - 1) / rest.piece);
  const int64_t count = divide(stripes, threads, &rest, g, open);
  for (int64_t k = 0; k < g->columns; k++)
    if (open[k])
      begin(g, k);
  hone_lapack_run_parts(count, pass_stripe, stripes, sizeof *stripes);
  gather(stripes, count, g);
  for (int64_t k = 0; k < g->columns; k++)
    if (open[k])
      end(g, k);
}

void hone_lapack_residual(const hone_lapack_group *g, const bool *open,
                          double *omega) {
  one_pass(g, open);
  for (int64_t k = 0; k < g->columns; k++)
    omega[k] = open[k] ? hone_lapack_backward_error(g, k) : HONE_NAN;
}
