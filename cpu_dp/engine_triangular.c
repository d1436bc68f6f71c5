/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for diagonal and triangular matrices, in double precision. There
   is nothing to factor: substitution reads the caller's own matrix, scaled on
   the way where that is needed. It goes by block columns; J stands for columns
   j .. j+w-1, I for the rows below them (above them in an upper triangle):

     x[J] = inv(S[J, J]) v[J],   v[I] -= S[I, J] x[J]         S x = v
     v[J] -= S[I, J]^T x[I],     x[J] = inv(S[J, J]^T) v[J]   S^T x = v

   Where A is scaled, both steps use a scaled copy of one piece at a time. Read
   base/engine.h first. */
#include "base/dense.h"
#include "base/engine.h"
#include "cpu_dp/pivots.h"

#include <math.h>

enum {
  BLOCK = 64, /* columns of a block column */
  ROWS = 256, /* rows of a piece, which is then 128 KB */
  SHARED = 4  /* columns of A that are subtracted at once */
};

typedef struct engine_tri {
  int64_t n;
  hone_mem *mem;
  hone_watch *watch;
  const hone_structure *structure;
  hone_dense a;                /* the caller's A, borrowed from factor on */
  const hone_scaling *scaling; /* borrowed from factor on */
  bool lower;
  hone_entry *diagonal; /* n: s_jj */
  bool zeros_replaced;  /* zeros of the diagonal were replaced, so that it
                           differs from that of S */
  hone_entry *piece;    /* ROWS x BLOCK; NULL until an A is scaled */
} engine_tri;

static bool applies_diagonal(const hone_structure *s, int64_t n) {
  (void)n;
  return s->lower == 0 && s->upper == 0;
}

static bool applies_triangular(const hone_structure *s, int64_t n) {
  (void)n;
  return s->lower == 0 || s->upper == 0;
}

static bool probe(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return true;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return (n + ROWS * BLOCK) * (int64_t)sizeof(hone_entry) +
         (int64_t)sizeof(engine_tri);
}

static int64_t bytes_diagonal(int64_t n, int64_t k) {
  return bytes(n, k) - ROWS * BLOCK * (int64_t)sizeof(hone_entry);
}

static void destroy(void *self, hone_mem *mem) {
  engine_tri *e = self;
  if (e == NULL)
    return;
  hone_mem_put(mem, e->piece);
  hone_mem_put(mem, e->diagonal);
  hone_mem_put(mem, e);
}

static int create(void **self, const hone_engine_config *config) {
  engine_tri *e = hone_mem_get(config->mem, sizeof *e);
  *self = e;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (engine_tri){.n = config->n,
                    .mem = config->mem,
                    .watch = config->watch,
                    .structure = config->structure};
  e->diagonal =
      hone_mem_get(config->mem, (size_t)config->n * sizeof *e->diagonal);
  if (e->diagonal != NULL)
    return HONE_OK;
  destroy(e, config->mem);
  *self = NULL;
  return HONE_NO_MEMORY;
}

static int factor_diagonal(void *self, const hone_matrix *matrix,
                           const hone_scaling *scaling,
                           hone_factor_info *info) {
  const hone_dense *a = hone_dense_of(matrix);
  engine_tri *e = self;
  *info = (hone_factor_info){.growth = 1.0, .zero_pivot = -1};
  if (hone_watch_stop(e->watch, "factor", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  e->a = *a;
  e->scaling = scaling;
  e->lower = e->structure->upper == 0;
  e->zeros_replaced = false;
  for (int64_t j = 0; j < e->n; j++) {
    const hone_entry d = a->a[j * (a->lda + 1)];
    e->diagonal[j] =
        scaling->used ? hone_scaled_entry(scaling->row[j], scaling->col[j], d)
                      : d;
    if (d == 0.0 && info->zero_pivot < 0)
      info->zero_pivot = j;
    if (!(hone_abs(e->diagonal[j]) > 0.0)) /* underflowed */
      info->growth = HONE_NAN;
  }
  return HONE_OK;
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  engine_tri *e = self;
  if (scaling->used && e->piece == NULL) {
    e->piece = hone_mem_get(e->mem, (size_t)(ROWS * BLOCK) * sizeof *e->piece);
    if (e->piece == NULL)
      return HONE_NO_MEMORY;
  }
  return factor_diagonal(self, a, scaling, info);
}

static int solve_diagonal(void *self, bool trans, int64_t k, hone_entry *v,
                          int64_t ldv) {
  const engine_tri *e = self;
  (void)trans;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < e->n; i++)
      v[i + c * ldv] /= e->diagonal[i];
  return HONE_OK;
}

/* Returns S[i .. i+m-1, j .. j+w-1] and its leading dimension. Where A is
   scaled, m <= ROWS, and the next call overwrites the piece. */
static const hone_entry *piece_of_s(const engine_tri *e, int64_t i, int64_t m,
                                    int64_t j, int64_t w, int64_t *ld) {
  const hone_entry *a = e->a.a + i + j * e->a.lda;
  const double *row = e->scaling->row + i;
  *ld = e->a.lda;
  if (!e->scaling->used)
    return a;
  for (int64_t c = 0; c < w; c++) {
    const hone_entry *restrict from = a + c * e->a.lda;
    hone_entry *restrict to = e->piece + c * ROWS;
    for (int64_t r = 0; r < m; r++)
      to[r] = hone_scaled_entry(row[r], e->scaling->col[j + c], from[r]);
  }
  *ld = ROWS;
  return e->piece;
}

/* to[0:m] -= S[0:m, 0:w] x[0:w]. */
HONE_VECTOR static void subtract(int64_t m, int64_t w, const hone_entry *s,
                                 int64_t ld, const hone_entry *x,
                                 hone_entry *restrict to) {
  int64_t j = 0;
  for (; j + SHARED <= w; j += SHARED) {
    const hone_entry *restrict s0 = s + j * ld, *restrict s1 = s0 + ld;
    const hone_entry *restrict s2 = s1 + ld, *restrict s3 = s2 + ld;
    const hone_entry x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    for (int64_t i = 0; i < m; i++)
      to[i] -= (s0[i] * x0 + s1[i] * x1) + (s2[i] * x2 + s3[i] * x3);
  }
  for (; j < w; j++)
    for (int64_t i = 0; i < m; i++)
      to[i] -= s[i + j * ld] * x[j];
}

/* Returns the sum of s_i x_i over n entries. */
HONE_VECTOR static hone_entry dot(int64_t n, const hone_entry *restrict s,
                                  const hone_entry *restrict x) {
  hone_entry sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += s[i] * x[i];
  return sum;
}

/* Computes v[J] = inv(S[J, J]) v[J], or v[J] = inv(S[J, J]^T) v[J]. */
static void solve_block(const engine_tri *e, bool trans, int64_t j, int64_t w,
                        int64_t k, hone_entry *v, int64_t ldv) {
  int64_t ld;
  const hone_entry *s = piece_of_s(e, j, w, j, w, &ld);
  for (int64_t c = 0; c < k; c++) {
    hone_entry *x = v + j + c * ldv;
    for (int64_t step = 0; step < w; step++) {
      const int64_t p = e->lower != trans ? step : w - 1 - step;
      const int64_t from = e->lower ? p + 1 : 0, to = e->lower ? w : p;
      const hone_entry *column = s + p * ld;
      if (trans)
        x[p] -= dot(to - from, column + from, x + from);
      x[p] /= column[p];
      if (!trans)
        subtract(to - from, 1, column + from, ld, x + p, x + from);
    }
  }
}

/* Computes v[I] -= S[I, J] v[J], or v[J] -= S[I, J]^T v[I], where I are the m
   rows from i on. */
static void update_rows(const engine_tri *e, bool trans, int64_t i, int64_t m,
                        int64_t j, int64_t w, int64_t k, hone_entry *v,
                        int64_t ldv) {
  int64_t ld;
  const hone_entry *s = piece_of_s(e, i, m, j, w, &ld);
  for (int64_t c = 0; c < k; c++) {
    hone_entry *x = v + c * ldv;
    if (!trans)
      subtract(m, w, s, ld, x + j, x + i);
    for (int64_t q = 0; trans && q < w; q++)
      x[j + q] -= dot(m, s + q * ld, x + i);
  }
}

/* Solves for one right-hand side with the diagonal in which zeros have been
   replaced, column by column. It serves inverse iteration for null vectors. */
static void solve_with_zeros_replaced(const engine_tri *e, bool trans,
                                      hone_entry *v) {
  const hone_scaling *s = e->scaling;
  for (int64_t step = 0; step < e->n; step++) {
    const int64_t j = e->lower != trans ? step : e->n - 1 - step;
    const int64_t from = e->lower ? j + 1 : 0, to = e->lower ? e->n : j;
    const hone_entry *a = e->a.a + j * e->a.lda;
    const double c = s->used ? s->col[j] : 1.0;
    hone_entry sum = 0.0;
    for (int64_t i = from; trans && i < to; i++)
      sum += hone_scaled_entry(s->used ? s->row[i] : 1.0, c, a[i]) * v[i];
    v[j] = (v[j] - sum) / e->diagonal[j];
    for (int64_t i = from; !trans && i < to; i++)
      v[i] -= hone_scaled_entry(s->used ? s->row[i] : 1.0, c, a[i]) * v[j];
  }
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const engine_tri *e = self;
  for (int64_t c = 0; e->zeros_replaced && c < k; c++)
    solve_with_zeros_replaced(e, trans, v + c * ldv);
  if (e->zeros_replaced)
    return HONE_OK;
  const int64_t blocks = (e->n + BLOCK - 1) / BLOCK;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t j = (e->lower != trans ? b : blocks - 1 - b) * BLOCK;
    const int64_t w = HONE_MIN((int64_t)BLOCK, e->n - j);
    const int64_t from = e->lower ? j + w : 0, to = e->lower ? e->n : j;
    if (!trans)
      solve_block(e, trans, j, w, k, v, ldv);
    for (int64_t i = from; i < to; i += ROWS)
      update_rows(e, trans, i, HONE_MIN((int64_t)ROWS, to - i), j, w, k, v,
                  ldv);
    if (trans)
      solve_block(e, trans, j, w, k, v, ldv);
  }
  return HONE_OK;
}

static void smallest_pivot(void *self, bool replace_zeros, int64_t *row,
                           int64_t *col) {
  engine_tri *e = self;
  e->zeros_replaced = e->zeros_replaced || replace_zeros;
  hone_pivot_smallest(e->n, e->diagonal, 1, NULL, replace_zeros, row, col);
}

const hone_engine hone_engine_diagonal = {.name = "diagonal solve",
                                          .place = "CPU",
                                          .precision = 64,
                                          .applies = applies_diagonal,
                                          .probe = probe,
                                          .create = create,
                                          .factor = factor_diagonal,
                                          .solve = solve_diagonal,
                                          .destroy = destroy,
                                          .bytes = bytes_diagonal,
                                          .smallest_pivot = smallest_pivot};

const hone_engine hone_engine_triangular = {.name = "triangular solve",
                                            .place = "CPU",
                                            .precision = 64,
                                            .applies = applies_triangular,
                                            .probe = probe,
                                            .create = create,
                                            .factor = factor,
                                            .solve = solve,
                                            .destroy = destroy,
                                            .bytes = bytes,
                                            .smallest_pivot = smallest_pivot};
