/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of LU and Cholesky factorizations. The file is compiled once for
   each precision (FACTOR_BITS) and instruction set (FACTOR_ISA).

   Products: a tile of C of STRIP rows and up to WIDTH columns stays in
   registers, while one column of A at a time is multiplied with a row of B.
   A is read as it is stored, or after it was copied strip by strip.

   Panels: they are split into halves down to LEAF columns (leaves.h). */
#include "cpu_factor/kernels.h"

#include "base/isa.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

#if FACTOR_BITS == 32
typedef float real;
typedef int32_t integer;
#define LEAST_NORMAL 0x1p-126F
#define SQUARE_ROOT sqrtf
#else
typedef double real;
typedef int64_t integer;
#define LEAST_NORMAL 0x1p-1022
#define SQUARE_ROOT sqrt
#endif

enum {
  LANES = HONE_VECTOR_BYTES / (int)sizeof(real),
  VECTORS = 2, /* of a strip */
  STRIP = VECTORS * LANES,
#if defined(__AVX512F__) || defined(__aarch64__)
  WIDTH = 12, /* of 32 registers VECTORS * WIDTH hold sums, */
#else
  WIDTH = HONE_VECTOR_BYTES > 16 ? 6 : 4, /* or of 16 */
#endif
  NARROW = 4, /* where WIDTH does not divide the number of columns */
  BLOCK = 32, /* rows of a block of a triangle; a multiple of STRIP */
  LEAF = 16,  /* columns of a panel that is not split */
  AHEAD = 2   /* columns */
};

typedef real lanes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                  aligned(sizeof(real)), may_alias));
typedef integer bits __attribute__((vector_size(HONE_VECTOR_BYTES),
                                    aligned(sizeof(real)), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

#define AT(p) (*(lanes *)(p))
#define GET(p) (*(const lanes *)(p))

#include "cpu_factor/leaves.h"

/* ---- Products ------------------------------------------------------------ */

/* C -= A B for STRIP rows and 'width' columns. Column p of A is a + p * step;
   entry (p, j) of B is b[p * b_row + j * b_column]. */
INLINE void tile(int width, int64_t k, const real *restrict a, int64_t step,
                 const real *restrict b, int64_t b_row, int64_t b_column,
                 real *restrict c, int64_t ldc) {
  lanes sum[WIDTH][VECTORS];
  UNROLL
  for (int j = 0; j < width; j++) {
    UNROLL
    for (int v = 0; v < VECTORS; v++)
      sum[j][v] = (lanes){0};
    for (int byte = 0; byte < STRIP * (int)sizeof(real); byte += 64)
      __builtin_prefetch((const char *)(c + j * ldc) + byte, 1);
  }
  const real *q[4] = {b, b + 3 * b_column, b + 6 * b_column, b + 9 * b_column};
  for (int64_t p = 0; p < k; p++) {
    lanes x[VECTORS];
    __asm__(""
            : "+r"(q[0]), "+r"(q[1]), "+r"(q[2]), "+r"(q[3]), "+r"(b_column));
    UNROLL
    for (int v = 0; v < VECTORS; v++)
      x[v] = GET(a + v * LANES);
    UNROLL
    for (int j = 0; j < width; j++) {
      const real y = q[j / 3][j % 3 * b_column];
      UNROLL
      for (int v = 0; v < VECTORS; v++)
        sum[j][v] += x[v] * y;
    }
    a += step;
    UNROLL
    for (int j = 0; j < (width + 2) / 3; j++)
      q[j] += b_row;
  }
  UNROLL
  for (int j = 0; j < width; j++) {
    UNROLL
    for (int v = 0; v < VECTORS; v++)
      AT(c + j * ldc + v * LANES) -= sum[j][v];
  }
}

/* The functions that are compiled of it; columns of B one after the other. */
#define TILE(name, width)                                                      \
  static __attribute__((noinline)) void name(                                  \
      int64_t k, const real *a, int64_t step, const real *b, int64_t b_row,    \
      int64_t b_column, real *c, int64_t ldc) {                                \
    tile(width, k, a, step, b, b_row, b_column, c, ldc);                       \
  }
TILE(tile_wide, WIDTH)
TILE(tile_narrow, NARROW)
TILE(tile_one, 1)

/* Does so for w <= WIDTH columns. */
static void tiles(int64_t w, int64_t k, const real *a, int64_t step,
                  const real *b, int64_t b_row, int64_t b_column, real *c,
                  int64_t ldc) {
  int64_t j = 0;
  if (w == WIDTH) {
    tile_wide(k, a, step, b, b_row, b_column, c, ldc);
    return;
  }
  for (; j + NARROW <= w; j += NARROW)
    tile_narrow(k, a, step, b + j * b_column, b_row, b_column, c + j * ldc,
                ldc);
  for (; j < w; j++)
    tile_one(k, a, step, b + j * b_column, b_row, b_column, c + j * ldc, ldc);
}

/* Copies 'rows' <= STRIP rows of k columns, one column after the other; rows
   that are missing become 0. */
static void pack_strip(int64_t rows, int64_t k, const real *a, int64_t lda,
                       real *to) {
  if (rows == STRIP) {
    for (int64_t p = 0; p < k; p++)
      for (int v = 0; v < VECTORS; v++)
        AT(to + p * STRIP + v * LANES) = GET(a + p * lda + v * LANES);
    return;
  }
  memset(to, 0, (size_t)(k * STRIP) * sizeof *to);
  for (int64_t p = 0; p < k; p++)
    memcpy(to + p * STRIP, a + p * lda, (size_t)rows * sizeof *to);
}

/* A strip of fewer rows, for w <= WIDTH columns; a is packed. */
static void part_of_strip(int64_t rows, int64_t w, int64_t k, const real *a,
                          const real *b, int64_t b_row, int64_t b_column,
                          real *c, int64_t ldc) {
  real part[WIDTH * STRIP] = {0};
  for (int64_t j = 0; j < w; j++)
    memcpy(part + j * STRIP, c + j * ldc, (size_t)rows * sizeof *part);
  tiles(w, k, a, STRIP, b, b_row, b_column, part, STRIP);
  for (int64_t j = 0; j < w; j++)
    memcpy(c + j * ldc, part + j * STRIP, (size_t)rows * sizeof *part);
}

static void subtract(int64_t m, int64_t w, int64_t k, const void *left,
                     int64_t lda, hone_strided right, int64_t below, void *out,
                     int64_t ldc, void *space) {
  const real *a = left, *b = right.at;
  real last[HONE_PANEL_MOST * STRIP], *c = out, *packed = space;
  const int64_t whole = m / STRIP * STRIP;
  for (int64_t i = 0; packed != NULL && i < whole; i += STRIP)
    pack_strip(STRIP, k, a + i, lda, packed + i * k);
  if (whole < m)
    pack_strip(m - whole, k, a + whole, lda, last);
  for (int64_t j = 0; j < w; j += WIDTH) {
    const int64_t columns = HONE_MIN((int64_t)WIDTH, w - j);
    const real *column = b + j * right.column;
    int64_t i = below < 0 || j <= below ? 0 : (j - below) / STRIP * STRIP;
    for (; i < whole; i += STRIP)
      tiles(columns, k, packed ? packed + i * k : a + i, packed ? STRIP : lda,
            column, right.row, right.column, c + i + j * ldc, ldc);
    if (whole < m)
      part_of_strip(m - whole, columns, k, last, column, right.row,
                    right.column, c + whole + j * ldc, ldc);
  }
}

/* ---- Triangles ----------------------------------------------------------- */

/* A block of rows of the unit lower triangle L. */
typedef struct row_block {
  real left[HONE_PANEL_MOST * BLOCK]; /* strips of what is left of it, */
  real diagonal[BLOCK][BLOCK]; /* by columns: L's on the diagonal, with zeros
                                  on the diagonal and above it */
} row_block;

static void copy_row_block(int64_t rows, int64_t from, const real *l,
                           int64_t ldl, row_block *to) {
  for (int64_t i = 0; i < BLOCK; i += STRIP)
    pack_strip(HONE_MAX((int64_t)0, HONE_MIN((int64_t)STRIP, rows - i)), from,
               l + from + i, ldl, to->left + i * from);
  memset(to->diagonal, 0, sizeof to->diagonal);
  for (int64_t j = 0; j < rows; j++)
    for (int64_t i = j + 1; i < rows; i++)
      to->diagonal[j][i] = l[from + i + (from + j) * ldl];
}

/* Copies w columns of 'rows' <= BLOCK entries. */
INLINE void copy_columns(int64_t rows, int64_t w, const real *from,
                         int64_t ld_from, real *to, int64_t ld_to) {
  for (int64_t j = 0; j < w; j++)
    if (rows == BLOCK) {
      for (int i = 0; i < BLOCK; i += LANES)
        AT(to + j * ld_to + i) = GET(from + j * ld_from + i);
    } else {
      memcpy(to + j * ld_to, from + j * ld_from, (size_t)rows * sizeof *to);
    }
}

/* B = inv(L) B for the block on the diagonal and w <= WIDTH columns of BLOCK
   rows. */
INLINE void substitute(int64_t rows, int64_t w, const row_block *l, real *b) {
  for (int64_t p = 0; p + 1 < rows; p++)
    for (int64_t j = 0; j < w; j++) {
      const real x = b[j * BLOCK + p];
      for (int64_t i = p / LANES * LANES; i < BLOCK; i += LANES)
        AT(b + j * BLOCK + i) -= GET(l->diagonal[p] + i) * x;
    }
}

static void solve_lower(int64_t k, int64_t w, const void *triangle, int64_t ldl,
                        void *in_out, int64_t ldb) {
  const real *l = triangle;
  real *b = in_out, part[WIDTH * BLOCK];
  row_block block;
  for (int64_t from = 0; from < k; from += BLOCK) {
    const int64_t rows = HONE_MIN((int64_t)BLOCK, k - from);
    copy_row_block(rows, from, l, ldl, &block);
    for (int64_t j = 0; j < w; j += WIDTH) {
      const int64_t columns = HONE_MIN((int64_t)WIDTH, w - j);
      real *c = b + j * ldb;
      if (rows < BLOCK)
        memset(part, 0, sizeof part);
      copy_columns(rows, columns, c + from, ldb, part, BLOCK);
      for (int64_t i = 0; i < BLOCK && from > 0; i += STRIP)
        tiles(columns, from, block.left + i * from, STRIP, c, 1, ldb, part + i,
              BLOCK);
      if (columns == WIDTH)
        substitute(rows, WIDTH, &block, part);
      else
        substitute(rows, columns, &block, part);
      copy_columns(rows, columns, part, BLOCK, c + from, ldb);
    }
  }
}

static void exchange(int64_t w, void *matrix, int64_t ldf, int64_t from,
                     int64_t to, const int *pivot) {
  for (int64_t j = 0; j < w; j++) {
    real *f = (real *)matrix + j * ldf;
    for (int64_t i = from; i < to; i++) {
      const int64_t with = (int64_t)pivot[i] - 1;
      const real t = f[i];
      __builtin_prefetch(f + with + AHEAD * ldf, 1);
      f[i] = f[with];
      f[with] = t;
    }
  }
}

/* ---- Panels -------------------------------------------------------------- */

static int64_t half_of(int64_t w) { return (w / 2 + LEAF - 1) / LEAF * LEAF; }

static int64_t lu_panel(int64_t m, int64_t w, void *panel, int64_t ldf,
                        int *pivot) {
  real *f = panel;
  if (w <= LEAF)
    return lu_leaf(m, w, f, ldf, pivot);
  const int64_t w1 = half_of(w), w2 = w - w1;
  real *right = f + w1 * ldf;
  int64_t zero = lu_panel(m, w1, f, ldf, pivot);
  exchange(w2, right, ldf, 0, w1, pivot);
  solve_lower(w1, w2, f, ldf, right, ldf);
  subtract(m - w1, w2, w1, f + w1, ldf, (hone_strided){right, 1, ldf}, -1,
           right + w1, ldf, NULL);
  const int64_t zero2 = lu_panel(m - w1, w2, right + w1, ldf, pivot + w1);
  for (int64_t i = w1; i < w; i++)
    pivot[i] += (int)w1;
  exchange(w1, f, ldf, w1, w, pivot);
  if (zero < 0 && zero2 >= 0)
    zero = w1 + zero2;
  return zero;
}

static int64_t cholesky_panel(int64_t m, int64_t w, void *panel, int64_t ldf) {
  real *f = panel;
  if (w <= LEAF)
    return cholesky_leaf(m, w, f, ldf);
  const int64_t w1 = half_of(w), w2 = w - w1;
  int64_t bad = cholesky_panel(m, w1, f, ldf);
  if (bad >= 0)
    return bad;
  real *right = f + w1 + w1 * ldf;
  subtract(m - w1, w2, w1, f + w1, ldf, (hone_strided){f + w1, ldf, 1}, 0,
           right, ldf, NULL);
  bad = cholesky_panel(m - w1, w2, right, ldf);
  return bad < 0 ? bad : w1 + bad;
}

const hone_factor_kernels JOIN(hone_factor_, FACTOR_ISA,
                               FACTOR_BITS) = {.size = sizeof(real),
                                               .subtract = subtract,
                                               .solve_lower = solve_lower,
                                               .exchange = exchange,
                                               .lu = lu_panel,
                                               .cholesky = cholesky_panel};
