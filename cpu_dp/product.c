/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense A with a few vectors, P = op(A) V, in plain double. One
   pass over A serves all vectors: a block of it stays in the cache, and a few
   rows of P for WIDTH vectors stay in registers (with AVX2 12 of 16). Every
   entry of P is summed in the same order whatever the number of threads. Next
   to read: dense.c. */
#include "cpu_dp/product.h"

#include "base/dense.h"

#include <string.h>

enum {
  MOST = 12,           /* vectors that share one pass over A */
  WIDTH = 6,           /* vectors of a tile */
  STRIP = 8,           /* columns of op(A) that are copied at once */
  ROWS = 256,          /* of a block of A, which has STRIP columns, */
  TRANS_ROWS = 64,     /* of a block of A^T, */
  TRANS_COLUMNS = 256, /* which is read along columns of A */
  LEAST_ROWS = 64      /* of a task */
};

/* Entries that are computed at once. */
#ifdef HONE_COMPLEX
enum { LANES = 1 };
typedef hone_entry lanes;
#else
enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)),
                                    aligned(sizeof(double)), may_alias));
#endif

#define INLINE static inline __attribute__((always_inline))

typedef struct product_run {
  const hone_dense *a;
  bool trans;
  int64_t k;
  const hone_entry *v;
  hone_entry *p;
  int64_t step; /* rows of P of a task */
} product_run;

/* Blocks of A, V and P are copied, because entries of columns that lie powers
   of two apart displace one another in the cache. */
typedef struct product_block {
  hone_entry a[STRIP][LANES];
  hone_entry v[TRANS_COLUMNS][MOST];
  hone_entry p[ROWS / LANES][MOST][LANES];
} product_block;

/* P += A V for LANES rows and 'width' vectors from vector c on. */
INLINE void add_tile(int width, int64_t count, const hone_entry a[STRIP][LANES],
                     const hone_entry v[STRIP][MOST], int64_t c,
                     hone_entry p[MOST][LANES]) {
  lanes sum[WIDTH];
  for (int q = 0; q < width; q++)
    sum[q] = *(const lanes *)p[c + q];
  for (int64_t s = 0; s < count; s++) {
    const lanes column = *(const lanes *)a[s];
    for (int q = 0; q < width; q++)
      sum[q] += column * v[s][c + q];
  }
  for (int q = 0; q < width; q++)
    *(lanes *)p[c + q] = sum[q];
}

INLINE void add_tiles(int64_t k, int64_t count,
                      const hone_entry a[STRIP][LANES],
                      const hone_entry v[STRIP][MOST],
                      hone_entry p[MOST][LANES]) {
  int64_t c = 0;
  for (; c + WIDTH <= k; c += WIDTH)
    add_tile(WIDTH, count, a, v, c, p);
  for (; c + 4 <= k; c += 4)
    add_tile(4, count, a, v, c, p);
  for (; c < k; c++)
    add_tile(1, count, a, v, c, p);
}

/* Copies LANES rows of op(A), or fewer rows and zeros below, from the entry a
   on. */
INLINE void copy_rows(int64_t rows, int64_t count, const hone_entry *a,
                      int64_t lda, bool trans, hone_entry to[STRIP][LANES]) {
  if (rows == LANES && count == STRIP && !trans)
    for (int64_t s = 0; s < STRIP; s++)
      *(lanes *)to[s] = *(const lanes *)(a + s * lda);
  else if (rows == LANES && count == STRIP)
    for (int64_t l = 0; l < LANES; l++)
      for (int64_t s = 0; s < STRIP; s++)
        to[s][l] = a[s + l * lda];
  else
    for (int64_t l = 0; l < LANES; l++)
      for (int64_t s = 0; s < count; s++)
        to[s][l] = l >= rows ? 0.0 : trans ? a[s + l * lda] : a[l + s * lda];
}

/* Adds the product with LANES rows, or fewer, and 'columns' columns of op(A)
   from the entry a on. */
INLINE void add_product(const product_run *run, int64_t rows, int64_t columns,
                        const hone_entry *a, bool fetches, int64_t k,
                        product_block *block, hone_entry p[MOST][LANES]) {
  const int64_t lda = run->a->lda, step = run->trans ? 1 : lda;
  for (int64_t j = 0; j < columns; j += STRIP) {
    const int64_t count = HONE_MIN((int64_t)STRIP, columns - j);
    for (int64_t s = 0; fetches && s < STRIP; s++)
      __builtin_prefetch(a + (STRIP + s) * lda);
    copy_rows(rows, count, a + j * step, lda, run->trans, block->a);
    add_tiles(k, count, block->a, block->v + j, p);
  }
}

/* Rows i .. i + rows - 1 of P for k <= MOST vectors. */
HONE_VECTOR static void multiply_rows(const product_run *run, int64_t i,
                                      int64_t rows, int64_t k,
                                      const hone_entry *v, hone_entry *p) {
  const int64_t n = run->a->n, lda = run->a->lda;
  const int64_t width = run->trans ? TRANS_COLUMNS : STRIP;
  product_block block;
  memset(block.p, 0, (size_t)((rows + LANES - 1) / LANES) * sizeof block.p[0]);
  for (int64_t j = 0; j < n; j += width) {
    const int64_t columns = HONE_MIN(width, n - j);
    const bool fetches = !run->trans && j + 2 * STRIP <= n;
    for (int64_t c = 0; c < k; c++)
      for (int64_t s = 0; s < columns; s++)
        block.v[s][c] = v[c * n + j + s];
    for (int64_t r = 0; r < rows; r += LANES)
      add_product(run, HONE_MIN((int64_t)LANES, rows - r), columns,
                  run->a->a +
                      (run->trans ? j + (i + r) * lda : i + r + j * lda),
                  fetches, k, &block, block.p[r / LANES]);
  }
  for (int64_t c = 0; c < k; c++)
    for (int64_t r = 0; r < rows; r++)
      p[c * n + i + r] = block.p[r / LANES][c][r % LANES];
}

static void run_task(void *ctx, int64_t task) {
  const product_run *run = ctx;
  const int64_t n = run->a->n, from = task * run->step;
  const int64_t to = HONE_MIN(from + run->step, n);
  const int64_t most = run->trans ? TRANS_ROWS : ROWS;
  for (int64_t i = from; i < to; i += most)
    for (int64_t c = 0; c < run->k; c += MOST)
      multiply_rows(run, i, HONE_MIN(most, to - i),
                    HONE_MIN((int64_t)MOST, run->k - c), run->v + c * n,
                    run->p + c * n);
}

void hone_dense_product(const hone_matrix *matrix, hone_pool *pool, bool trans,
                        int64_t k, const hone_entry *v, hone_entry *p) {
  const int64_t n = matrix->n;
  if (n < HONE_THREADS_FROM)
    pool = NULL;
  const int threads = hone_pool_threads(pool);
  const int64_t share = ((n + threads - 1) / threads + 7) / 8 * 8;
  product_run run = {
      .a = hone_dense_of(matrix),
      .trans = trans,
      .k = k,
      .v = v,
      .p = p,
      .step = HONE_MAX((int64_t)LEAST_ROWS, HONE_MIN(share, (int64_t)ROWS))};
  hone_pool_run(pool, (n + run.step - 1) / run.step, run_task, &run);
}
