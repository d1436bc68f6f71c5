/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for diagonal and triangular matrices, in double precision. There
   is nothing to factor: substitution reads the caller's own matrix, scaled on
   the way where that is needed. It goes by block columns; J stands for columns
   j .. j+w-1, I for the rows below them (above them in an upper triangle):

     x[J] = inv(S[J, J]) v[J],   v[I] -= S[I, J] x[J]         S x = v
     v[J] -= S[I, J]^T x[I],     x[J] = inv(S[J, J]^T) v[J]   S^T x = v

   Both steps call OpenBLAS; where A is scaled, a scaled copy of one piece at a
   time is made for it. Read base/engine.h first. */
#include "base/dense.h"
#include "base/engine.h"
#include "base/lapack.h"
#include "cpu_dp/pivots.h"

#include <math.h>

enum {
  BLOCK = 64,      /* columns of a block column */
  ROWS = 256,      /* rows of a scaled piece, which is then 128 KB */
  TRSV_COLUMNS = 3 /* up to so many right-hand sides are solved one by one */
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
    e->diagonal[j] = scaling->used ? hone_times(scaling->col[j],
                                                hone_times(scaling->row[j], d))
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
                                    int64_t j, int64_t w, int *ld) {
  const hone_entry *a = e->a.a + i + j * e->a.lda;
  const double *row = e->scaling->row + i;
  *ld = (int)e->a.lda;
  if (!e->scaling->used)
    return a;
  for (int64_t c = 0; c < w; c++) {
    const hone_entry *restrict from = a + c * e->a.lda;
    hone_entry *restrict to = e->piece + c * ROWS;
    for (int64_t r = 0; r < m; r++)
      to[r] = hone_times(e->scaling->col[j + c], hone_times(row[r], from[r]));
  }
  *ld = ROWS;
  return e->piece;
}

/* Computes v[J] = inv(S[J, J]) v[J], or v[J] = inv(S[J, J]^T) v[J]. */
static void solve_block(const engine_tri *e, bool trans, int64_t j, int w,
                        int64_t k, hone_entry *v, int64_t ldv) {
  int ld;
  const hone_entry *s = piece_of_s(e, j, w, j, w, &ld);
  const char *uplo = e->lower ? "L" : "U", *op = trans ? "T" : "N";
  const int columns = (int)k, ldb = (int)ldv, step = 1;
  const hone_entry one = 1.0;
  if (k > TRSV_COLUMNS) {
    dtrsm_("L", uplo, op, "N", &w, &columns, &one, s, &ld, v + j, &ldb);
    return;
  }
  for (int64_t c = 0; c < k; c++)
    dtrsv_(uplo, op, "N", &w, s, &ld, v + j + c * ldv, &step);
}

/* Computes v[I] -= S[I, J] v[J], or v[J] -= S[I, J]^T v[I], where I are the m
   rows from i on. */
static void update_rows(const engine_tri *e, bool trans, int64_t i, int64_t m,
                        int64_t j, int w, int64_t k, hone_entry *v,
                        int64_t ldv) {
  int ld;
  const hone_entry *s = piece_of_s(e, i, m, j, w, &ld);
  hone_entry *from = trans ? v + i : v + j, *to = trans ? v + j : v + i;
  const char *op = trans ? "T" : "N";
  const int rows = (int)m, columns = (int)k, ldb = (int)ldv, step = 1;
  const hone_entry one = 1.0, minus_one = -1.0;
  if (k > TRSV_COLUMNS) {
    dgemm_(op, "N", trans ? &w : &rows, &columns, trans ? &rows : &w,
           &minus_one, s, &ld, from, &ldb, &one, to, &ldb);
    return;
  }
  for (int64_t c = 0; c < k; c++)
    dgemv_(op, &rows, &w, &minus_one, s, &ld, from + c * ldv, &step, &one,
           to + c * ldv, &step);
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
      sum += a[i] * (s->used ? s->row[i] : 1.0) * c * v[i];
    v[j] = (v[j] - sum) / e->diagonal[j];
    for (int64_t i = from; !trans && i < to; i++)
      v[i] -= a[i] * (s->used ? s->row[i] : 1.0) * c * v[j];
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
  const int64_t step = e->scaling->used ? ROWS : e->n;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t j = (e->lower != trans ? b : blocks - 1 - b) * BLOCK;
    const int64_t w = HONE_MIN((int64_t)BLOCK, e->n - j);
    const int64_t from = e->lower ? j + w : 0, to = e->lower ? e->n : j;
    if (!trans)
      solve_block(e, trans, j, (int)w, k, v, ldv);
    for (int64_t i = from; i < to; i += step)
      update_rows(e, trans, i, HONE_MIN(step, to - i), j, (int)w, k, v, ldv);
    if (trans)
      solve_block(e, trans, j, (int)w, k, v, ldv);
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
