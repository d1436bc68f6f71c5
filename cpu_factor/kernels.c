/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of LU and Cholesky factorizations. The file is compiled once for
   each precision (FACTOR_BITS) and instruction set (FACTOR_ISA), for real and
   for complex entries.

   Products: a tile of C of STRIP rows and up to WIDTH columns stays in
   registers, while one column of A at a time is multiplied with a row of B.
   A is read as it is stored, or after it was copied strip by strip.

   Complex entries are PARTS = 2 real numbers, one after the other. The parts of
   a column of A, as they are stored, are multiplied with the real and with the
   imaginary part of an entry of B: that is the real kernel for a matrix of
   twice as many rows and columns. In the end C -= A Re B + i A Im B, where i
   exchanges the parts of every entry: four real products for a complex one, in
   panels and triangles. Trailing updates take three (products_complex.h).

   Leading dimensions count entries; within this file, those of arrays of real
   numbers count numbers.

   Panels: they are split into halves down to LEAF columns (leaves.h, or
   leaves_complex.h). */
#include "cpu_factor/kernels.h"

#include "base/isa.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

#if FACTOR_BITS == 32
typedef float real;
typedef hone_single entry;
typedef int32_t integer;
#define LEAST_NORMAL 0x1p-126F
#define SQUARE_ROOT sqrtf
#else
typedef double real;
typedef hone_entry entry;
typedef int64_t integer;
#define LEAST_NORMAL 0x1p-1022
#define SQUARE_ROOT sqrt
#endif

enum {
  PARTS = HONE_PARTS,
  LANES = HONE_VECTOR_BYTES / (int)sizeof(real),
  VECTORS = 2, /* of a strip */
  REALS = VECTORS * LANES,
  STRIP = REALS / PARTS,
#if defined(__AVX512F__) || defined(__aarch64__)
  SUMS = 12, /* of 32 registers VECTORS * SUMS hold sums, */
#else
  SUMS = HONE_VECTOR_BYTES > 16 ? 6 : 4, /* or of 16 */
#endif
  WIDTH = SUMS / PARTS,
  NARROW = 4 / PARTS, /* where WIDTH does not divide the number of columns */
  BLOCK = 32,         /* rows of a block of a triangle; a multiple of STRIP */
  BLOCK_REALS = BLOCK * PARTS,
  LEAF = 16 / PARTS, /* columns of a panel that is not split */
  AHEAD = 2          /* columns */
};

typedef real lanes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                  aligned(sizeof(real)), may_alias));
typedef integer bits __attribute__((vector_size(HONE_VECTOR_BYTES),
                                    aligned(sizeof(real)), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

#define AT(p) (*(lanes *)(p))
#define GET(p) (*(const lanes *)(p))

#ifdef HONE_COMPLEX
#include "cpu_factor/leaves_complex.h"
#else
#include "cpu_factor/leaves.h"

/* The sum of products that a tile has made, and a product with a scalar x. */
INLINE lanes whole(const lanes *sum) { return sum[0]; }
INLINE lanes times(lanes a, const real *x) { return a * x[0]; }

/* Returns a block of B as it is to be read, here unchanged. */
INLINE const real *take_block(int64_t k, int64_t w, const real *b,
                              hone_strided *place, real *space) {
  (void)k;
  (void)w;
  (void)place;
  (void)space;
  return b;
}
#endif

/* ---- Products ------------------------------------------------------------ */

/* Multiplies STRIP rows with 'width' columns, each of 'parts' real numbers that
   are next to each other. Column p of A is a + p * step; entry (p, j) of B
   begins at b[p * b_row + j * b_column]. The sums of column j are those from
   sum[j * VECTORS * parts] on: of each vector one for each part. */
INLINE void multiply(int width, int parts, int64_t k, const real *restrict a,
                     int64_t step, const real *restrict b, int64_t b_row,
                     int64_t b_column, lanes *sum) {
  UNROLL
  for (int s = 0; s < width * parts * VECTORS; s++)
    sum[s] = (lanes){0};
  const real *q[4] = {b, b + 3 * b_column, b + 6 * b_column, b + 9 * b_column};
  for (int64_t p = 0; p < k; p++) {
    lanes x[VECTORS];
    __asm__(""
            : "+r"(q[0]), "+r"(q[1]), "+r"(q[2]), "+r"(q[3]), "+r"(b_column));
    UNROLL
    for (int v = 0; v < VECTORS; v++)
      x[v] = GET(a + v * LANES);
    UNROLL
    for (int j = 0; j < width * parts; j++) {
      const int column = j / parts, part = j % parts;
      const real y = q[column / 3][column % 3 * b_column + part];
      UNROLL
      for (int v = 0; v < VECTORS; v++)
        sum[(column * VECTORS + v) * parts + part] += x[v] * y;
    }
    a += step;
    UNROLL
    for (int j = 0; j < (width + 2) / 3; j++)
      q[j] += b_row;
  }
}

/* Asks for the columns of a tile of C to be in the cache. */
INLINE void fetch_tile(int width, int bytes, const real *c, int64_t ldc) {
  for (int j = 0; j < width; j++)
    UNROLL
  for (int byte = 0; byte < bytes; byte += 64)
    __builtin_prefetch((const char *)(c + j * ldc) + byte, 1);
}

/* C -= A B for STRIP rows and 'width' columns. */
INLINE void tile(int width, int64_t k, const real *restrict a, int64_t step,
                 const real *restrict b, int64_t b_row, int64_t b_column,
                 real *restrict c, int64_t ldc) {
  lanes sum[SUMS * VECTORS];
  fetch_tile(width, REALS * (int)sizeof(real), c, ldc);
  multiply(width, PARTS, k, a, step, b, b_row, b_column, sum);
  UNROLL
  for (int s = 0; s < width * VECTORS; s++)
    AT(c + s / VECTORS * ldc + s % VECTORS * LANES) -= whole(sum + s * PARTS);
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
        AT(to + p * REALS + v * LANES) = GET(a + p * lda + v * LANES);
    return;
  }
  memset(to, 0, (size_t)(k * REALS) * sizeof *to);
  for (int64_t p = 0; p < k; p++)
    memcpy(to + p * REALS, a + p * lda, (size_t)(rows * PARTS) * sizeof *to);
}

/* A strip of fewer rows, for w <= WIDTH columns; a is packed. */
static void part_of_strip(int64_t rows, int64_t w, int64_t k, const real *a,
                          const real *b, int64_t b_row, int64_t b_column,
                          real *c, int64_t ldc) {
  real part[WIDTH * REALS] = {0};
  const size_t bytes = (size_t)(rows * PARTS) * sizeof *part;
  for (int64_t j = 0; j < w; j++)
    memcpy(part + j * REALS, c + j * ldc, bytes);
  tiles(w, k, a, REALS, b, b_row, b_column, part, REALS);
  for (int64_t j = 0; j < w; j++)
    memcpy(c + j * ldc, part + j * REALS, bytes);
}

static void subtract(int64_t m, int64_t w, int64_t k, const void *left,
                     int64_t lda, hone_strided right, int64_t below, void *out,
                     int64_t ldc, void *space) {
  const real *a = left, *b = right.at;
  real last[HONE_PANEL_MOST * REALS], *c = out, *packed = space;
  real block[PARTS > 1 ? HONE_PANEL_MOST * WIDTH * PARTS : 1];
  const int64_t whole_rows = m / STRIP * STRIP, rest = m - whole_rows;
  lda *= PARTS;
  ldc *= PARTS;
  for (int64_t i = 0; packed != NULL && i < whole_rows; i += STRIP)
    pack_strip(STRIP, k, a + i * PARTS, lda, packed + i * PARTS * k);
  if (rest > 0)
    pack_strip(rest, k, a + whole_rows * PARTS, lda, last);
  for (int64_t j = 0; j < w; j += WIDTH) {
    const int64_t columns = HONE_MIN((int64_t)WIDTH, w - j);
    hone_strided at = {NULL, right.row * PARTS, right.column * PARTS,
                       right.conjugate};
    const real *column = take_block(k, columns, b + j * at.column, &at, block);
    real *cj = c + j * ldc;
    int64_t i = below < 0 || j <= below ? 0 : (j - below) / STRIP * STRIP;
    for (; i < whole_rows; i += STRIP)
      tiles(columns, k, packed ? packed + i * PARTS * k : a + i * PARTS,
            packed ? REALS : lda, column, at.row, at.column, cj + i * PARTS,
            ldc);
    if (rest > 0)
      part_of_strip(rest, columns, k, last, column, at.row, at.column,
                    cj + whole_rows * PARTS, ldc);
  }
}

/* The product of trailing updates. Complex: subtract serves inside panels
   alone, without space. */
#ifdef HONE_COMPLEX
#include "cpu_factor/products_complex.h"
#define TRAILING_UPDATE subtract_by_three
#else
#define TRAILING_UPDATE subtract
enum { APART = 1, SPACE_ROWS = INT32_MAX };
#endif

/* ---- Triangles ----------------------------------------------------------- */

/* A block of rows of the unit lower triangle L. */
typedef struct row_block {
  real left[HONE_PANEL_MOST * BLOCK_REALS]; /* strips of what is left of it, */
  real diagonal[BLOCK][BLOCK_REALS]; /* by columns: L's on the diagonal, with
                                        zeros on the diagonal and above it */
} row_block;

static void copy_row_block(int64_t rows, int64_t from, const real *l,
                           int64_t ldl, row_block *to) {
  const real *first = l + from * PARTS;
  for (int64_t i = 0; i < BLOCK; i += STRIP)
    pack_strip(HONE_MAX((int64_t)0, HONE_MIN((int64_t)STRIP, rows - i)), from,
               first + i * PARTS, ldl, to->left + i * PARTS * from);
  memset(to->diagonal, 0, sizeof to->diagonal);
  for (int64_t j = 0; j < rows; j++)
    for (int64_t i = (j + 1) * PARTS; i < rows * PARTS; i++)
      to->diagonal[j][i] = first[i + (from + j) * ldl];
}

/* Copies w columns of 'rows' <= BLOCK entries. */
INLINE void copy_columns(int64_t rows, int64_t w, const real *from,
                         int64_t ld_from, real *to, int64_t ld_to) {
  for (int64_t j = 0; j < w; j++)
    if (rows == BLOCK) {
      for (int i = 0; i < BLOCK_REALS; i += LANES)
        AT(to + j * ld_to + i) = GET(from + j * ld_from + i);
    } else {
      memcpy(to + j * ld_to, from + j * ld_from,
             (size_t)(rows * PARTS) * sizeof *to);
    }
}

/* B = inv(L) B for the block on the diagonal and w <= WIDTH columns of BLOCK
   rows. */
INLINE void substitute(int64_t rows, int64_t w, const row_block *l, real *b) {
  for (int64_t p = 0; p + 1 < rows; p++)
    for (int64_t j = 0; j < w; j++) {
      real x[PARTS];
      memcpy(x, b + j * BLOCK_REALS + p * PARTS, sizeof x);
      for (int64_t i = p * PARTS / LANES * LANES; i < BLOCK_REALS; i += LANES)
        AT(b + j * BLOCK_REALS + i) -= times(GET(l->diagonal[p] + i), x);
    }
}

static void solve_lower(int64_t k, int64_t w, const void *triangle, int64_t ldl,
                        void *in_out, int64_t ldb) {
  const real *l = triangle;
  real *b = in_out, part[WIDTH * BLOCK_REALS];
  row_block block;
  ldl *= PARTS;
  ldb *= PARTS;
  for (int64_t from = 0; from < k; from += BLOCK) {
    const int64_t rows = HONE_MIN((int64_t)BLOCK, k - from);
    copy_row_block(rows, from, l, ldl, &block);
    for (int64_t j = 0; j < w; j += WIDTH) {
      const int64_t columns = HONE_MIN((int64_t)WIDTH, w - j);
      real *c = b + j * ldb, *changed = c + from * PARTS;
      if (rows < BLOCK)
        memset(part, 0, sizeof part);
      copy_columns(rows, columns, changed, ldb, part, BLOCK_REALS);
      for (int64_t i = 0; i < BLOCK_REALS && from > 0; i += REALS)
        tiles(columns, from, block.left + i * from, REALS, c, PARTS, ldb,
              part + i, BLOCK_REALS);
      if (columns == WIDTH)
        substitute(rows, WIDTH, &block, part);
      else
        substitute(rows, columns, &block, part);
      copy_columns(rows, columns, part, BLOCK_REALS, changed, ldb);
    }
  }
}

static void exchange(int64_t w, void *matrix, int64_t ldf, int64_t from,
                     int64_t to, const int *pivot) {
  for (int64_t j = 0; j < w; j++) {
    entry *f = (entry *)matrix + j * ldf;
    for (int64_t i = from; i < to; i++) {
      const int64_t with = (int64_t)pivot[i] - 1;
      const entry t = f[i];
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
  entry *f = panel;
  if (w <= LEAF)
    return lu_leaf(m, w, f, ldf, pivot);
  const int64_t w1 = half_of(w), w2 = w - w1;
  entry *right = f + w1 * ldf;
  int64_t zero = lu_panel(m, w1, f, ldf, pivot);
  exchange(w2, right, ldf, 0, w1, pivot);
  solve_lower(w1, w2, f, ldf, right, ldf);
  subtract(m - w1, w2, w1, f + w1, ldf, (hone_strided){right, 1, ldf, false},
           -1, right + w1, ldf, NULL);
  const int64_t zero2 = lu_panel(m - w1, w2, right + w1, ldf, pivot + w1);
  for (int64_t i = w1; i < w; i++)
    pivot[i] += (int)w1;
  exchange(w1, f, ldf, w1, w, pivot);
  if (zero < 0 && zero2 >= 0)
    zero = w1 + zero2;
  return zero;
}

static int64_t cholesky_panel(int64_t m, int64_t w, void *panel, int64_t ldf) {
  entry *f = panel;
  if (w <= LEAF)
    return cholesky_leaf(m, w, f, ldf);
  const int64_t w1 = half_of(w), w2 = w - w1;
  int64_t bad = cholesky_panel(m, w1, f, ldf);
  if (bad >= 0)
    return bad;
  entry *right = f + w1 + w1 * ldf;
  subtract(m - w1, w2, w1, f + w1, ldf, (hone_strided){f + w1, ldf, 1, true}, 0,
           right, ldf, NULL);
  bad = cholesky_panel(m - w1, w2, right, ldf);
  return bad < 0 ? bad : w1 + bad;
}

const hone_factor_kernels JOIN(hone_factor_, FACTOR_ISA,
                               FACTOR_BITS) = {.size = sizeof(entry),
                                               .packed = APART * sizeof(real),
                                               .space_rows = SPACE_ROWS,
                                               .subtract = TRAILING_UPDATE,
                                               .solve_lower = solve_lower,
                                               .exchange = exchange,
                                               .lu = lu_panel,
                                               .cholesky = cholesky_panel};
