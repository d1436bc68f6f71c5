/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with a few vectors, P = op(A) V, in plain double. One
   pass over A serves all vectors; its blocks stay in the cache meanwhile. Every
   entry of P is summed in the same order whatever the number of threads. Next
   to read: dense.c. */
#include "cpu_dp/product.h"

#include "base/dense.h"

#include <string.h>

enum {
  ROWS = 256,     /* of a block of A: as much of a column as is used at once */
  COLUMNS = 4,    /* of a block of A */
  LEAST_ROWS = 64 /* of a task */
};

typedef struct product_run {
  const hone_dense *a;
  int64_t k;
  const hone_entry *v;
  hone_entry *p;
  int64_t step; /* rows of P of a task */
} product_run;

/* p += a_0 v_0 + ... + a_3 v_3 for 'rows' rows of four columns of A. */
HONE_VECTOR static void add_columns(int64_t rows, const hone_entry *restrict a,
                                    int64_t lda, const hone_entry *v,
                                    hone_entry *restrict p) {
  const hone_entry v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
#pragma omp simd
  for (int64_t i = 0; i < rows; i++)
    p[i] +=
        a[i] * v0 + a[i + lda] * v1 + a[i + 2 * lda] * v2 + a[i + 3 * lda] * v3;
}

HONE_VECTOR static void add_column(int64_t rows, const hone_entry *restrict a,
                                   hone_entry v, hone_entry *restrict p) {
#pragma omp simd
  for (int64_t i = 0; i < rows; i++)
    p[i] += a[i] * v;
}

/* Rows i .. i + rows - 1 of A V. */
static void multiply_rows(const product_run *run, int64_t i, int64_t rows) {
  const int64_t n = run->a->n, lda = run->a->lda;
  int64_t j = 0;
  for (int64_t c = 0; c < run->k; c++)
    memset(run->p + c * n + i, 0, (size_t)rows * sizeof *run->p);
  for (; j + COLUMNS <= n; j += COLUMNS)
    for (int64_t c = 0; c < run->k; c++)
      add_columns(rows, run->a->a + i + j * lda, lda, run->v + c * n + j,
                  run->p + c * n + i);
  for (; j < n; j++)
    for (int64_t c = 0; c < run->k; c++)
      add_column(rows, run->a->a + i + j * lda, run->v[c * n + j],
                 run->p + c * n + i);
}

static void task_rows(void *ctx, int64_t task) {
  const product_run *run = ctx;
  const int64_t n = run->a->n, from = task * run->step;
  const int64_t to = HONE_MIN(from + run->step, n);
  for (int64_t i = from; i < to; i += ROWS)
    multiply_rows(run, i, HONE_MIN((int64_t)ROWS, to - i));
}

HONE_VECTOR static hone_entry dot(int64_t rows, const hone_entry *restrict a,
                                  const hone_entry *restrict v) {
  hone_entry sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < rows; i++)
    sum += a[i] * v[i];
  return sum;
}

/* Entries j0 .. j1 - 1 of A^T V. */
static void task_columns(void *ctx, int64_t task) {
  const product_run *run = ctx;
  const int64_t n = run->a->n, lda = run->a->lda, from = task * run->step;
  const int64_t to = HONE_MIN(from + run->step, n);
  for (int64_t c = 0; c < run->k; c++)
    memset(run->p + c * n + from, 0, (size_t)(to - from) * sizeof *run->p);
  for (int64_t i = 0; i < n; i += ROWS)
    for (int64_t j = from; j < to; j++)
      for (int64_t c = 0; c < run->k; c++)
        run->p[c * n + j] += dot(HONE_MIN((int64_t)ROWS, n - i),
                                 run->a->a + i + j * lda, run->v + c * n + i);
}

void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p) {
  const int64_t n = matrix->n;
  if (n < HONE_THREADS_FROM)
    pool = NULL;
  const int threads = hone_pool_threads(pool);
  const int64_t share = (n + threads - 1) / threads;
  product_run run = {
      .a = hone_dense_of(matrix),
      .k = k,
      .v = v,
      .p = p,
      .step = HONE_MAX((int64_t)LEAST_ROWS, HONE_MIN(share, (int64_t)ROWS))};
  hone_pool_run(pool, (n + run.step - 1) / run.step,
                trans ? task_columns : task_rows, &run);
}
