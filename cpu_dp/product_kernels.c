/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of products of a dense A with a few vectors. It is compiled once
   for each instruction set, with PRODUCT_ISA as its name; product.c chooses one
   at run time. A few rows of P for WIDTH vectors stay in registers, while one
   entry of V at a time is multiplied with rows of a column of op(A). */
#include "base/isa.h"
#include "cpu_dp/product.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* A complex vector v counts as two real ones, Re v and Im v. The parts of a
   column of A, as they are stored, are multiplied with both, and in the end p =
   A Re v + i A Im v. */
enum {
  LANES = 8, /* real numbers */
  ENTRIES = LANES / HONE_PARTS,
  PARTS = LANES * (int)sizeof(double) / HONE_VECTOR_BYTES
};
typedef double lanes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                    aligned(sizeof(double)), may_alias));

enum {
  MOST = 12, /* real vectors that share one pass over A */
  WIDTH = HONE_VECTOR_BYTES > 16 ? 6 : 2, /* vectors of a tile, */
  NARROW = WIDTH > 2 ? 4 : WIDTH, /* or where WIDTH does not divide all */
  PAIR = 2,                       /* or of the last ones */
  STRIP = 8,                      /* columns of op(A) that are copied at once */
  ROWS = 256,         /* of a block of A, which has STRIP columns, */
  TRANS_ROWS = 64,    /* of a block of A^T, */
  TRANS_COLUMNS = 256 /* which is read along columns of A */
};

#define INLINE static inline __attribute__((always_inline))

/* ENTRIES entries of a column. */
typedef union rows_of {
  hone_entry entry[ENTRIES];
  lanes part[PARTS];
} rows_of;

/* Blocks of A, V and P are copied, because entries of columns that lie powers
   of two apart displace one another in the cache. */
typedef struct product_block {
  rows_of a[STRIP];
  double v[TRANS_COLUMNS][MOST];
  rows_of p[ROWS / ENTRIES][MOST];
} product_block;

/* P += A V for ENTRIES rows and 'width' vectors from vector c on. */
INLINE void add_tile(int width, int64_t count, const rows_of *a,
                     const double v[STRIP][MOST], int64_t c, rows_of *p) {
  lanes sum[WIDTH][PARTS];
  for (int q = 0; q < width; q++)
    for (int l = 0; l < PARTS; l++)
      sum[q][l] = p[c + q].part[l];
  for (int64_t s = 0; s < count; s++)
    for (int q = 0; q < width; q++)
      for (int l = 0; l < PARTS; l++)
        sum[q][l] += a[s].part[l] * v[s][c + q];
  for (int q = 0; q < width; q++)
    for (int l = 0; l < PARTS; l++)
      p[c + q].part[l] = sum[q][l];
}

INLINE void add_tiles(int64_t k, int64_t count, const rows_of *a,
                      const double v[STRIP][MOST], rows_of *p) {
  int64_t c = 0;
  for (; k % WIDTH == 0 && c < k; c += WIDTH)
    add_tile(WIDTH, count, a, v, c, p);
  for (; c + NARROW <= k; c += NARROW)
    add_tile(NARROW, count, a, v, c, p);
  for (; c + PAIR <= k; c += PAIR)
    add_tile(PAIR, count, a, v, c, p);
  for (; c < k; c++)
    add_tile(1, count, a, v, c, p);
}

/* Copies ENTRIES rows of op(A), or fewer rows and zeros below, from the entry a
   on. */
INLINE void copy_rows(int64_t rows, int64_t count, const hone_entry *a,
                      int64_t lda, bool trans, rows_of *to) {
  if (rows == ENTRIES && count == STRIP && !trans)
    for (int64_t s = 0; s < STRIP; s++)
      memcpy(to[s].entry, a + s * lda, sizeof to[s].entry);
  else if (rows == ENTRIES && count == STRIP)
    for (int64_t l = 0; l < ENTRIES; l++)
      for (int64_t s = 0; s < STRIP; s++)
        to[s].entry[l] = a[s + l * lda];
  else
    for (int64_t l = 0; l < ENTRIES; l++)
      for (int64_t s = 0; s < count; s++)
        to[s].entry[l] = l >= rows ? 0.0
                         : trans   ? a[s + l * lda]
                                   : a[l + s * lda];
}

/* Returns entry l of p = A v, from the products with the parts of v. */
INLINE hone_entry entry_of(const rows_of *p, int64_t l) {
#ifdef HONE_COMPLEX
  const hone_entry re = p[0].entry[l], im = p[1].entry[l];
  return CMPLX(creal(re) - cimag(im), cimag(re) + creal(im));
#else
  return p->entry[l];
#endif
}

/* Adds the product with ENTRIES rows, or fewer, and 'columns' columns of op(A)
   from the entry a on. */
INLINE void add_product(const hone_product_run *run, int64_t rows,
                        int64_t columns, const hone_entry *a, bool fetches,
                        int64_t k, product_block *block, rows_of *p) {
  const int64_t lda = run->a->lda, step = run->trans ? 1 : lda;
  for (int64_t j = 0; j < columns; j += STRIP) {
    const int64_t count = HONE_MIN((int64_t)STRIP, columns - j);
    for (int64_t s = 0; fetches && s < STRIP; s++)
      __builtin_prefetch(a + (STRIP + s) * lda);
    copy_rows(rows, count, a + j * step, lda, run->trans, block->a);
    add_tiles(k * HONE_PARTS, count, block->a, block->v + j, p);
  }
}

/* Rows i .. i + rows - 1 of P for k <= MOST / HONE_PARTS vectors. */
static void multiply_block(const hone_product_run *run, int64_t i, int64_t rows,
                           int64_t k, const hone_entry *v, hone_entry *p) {
  const int64_t n = run->a->n, lda = run->a->lda;
  const int64_t width = run->trans ? TRANS_COLUMNS : STRIP;
  product_block block;
  memset(block.p, 0,
         (size_t)((rows + ENTRIES - 1) / ENTRIES) * sizeof block.p[0]);
  for (int64_t j = 0; j < n; j += width) {
    const int64_t columns = HONE_MIN(width, n - j);
    const bool fetches = !run->trans && j + 2 * STRIP <= n;
    for (int64_t c = 0; c < k; c++)
      for (int64_t s = 0; s < columns; s++)
        memcpy(&block.v[s][c * HONE_PARTS], v + c * n + j + s, sizeof *v);
    for (int64_t r = 0; r < rows; r += ENTRIES)
      add_product(run, HONE_MIN((int64_t)ENTRIES, rows - r), columns,
                  run->a->a +
                      (run->trans ? j + (i + r) * lda : i + r + j * lda),
                  fetches, k, &block, block.p[r / ENTRIES]);
  }
  for (int64_t c = 0; c < k; c++)
    for (int64_t r = 0; r < rows; r++)
      p[c * n + i + r] =
          entry_of(block.p[r / ENTRIES] + c * HONE_PARTS, r % ENTRIES);
}

static void multiply_rows(const hone_product_run *run, int64_t from,
                          int64_t to) {
  const int64_t n = run->a->n, most = run->trans ? TRANS_ROWS : ROWS;
  for (int64_t i = from; i < to; i += most)
    for (int64_t c = 0; c < run->k; c += MOST / HONE_PARTS)
      multiply_block(run, i, HONE_MIN(most, to - i),
                     HONE_MIN((int64_t)MOST / HONE_PARTS, run->k - c),
                     run->v + c * n, run->p + c * n);
}

const hone_product_kernel JOIN(hone_product_, PRODUCT_ISA) = {multiply_rows};
