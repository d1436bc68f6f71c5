/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of kernels.c that multiplies complex matrices by three products of
   real ones (Karatsuba's; Higham 1992 bounds its error):

     Re A B = S - T,  Im A B = (Re A + Im A) (Re B + Im B) - S - T,
     where S = Re A Re B and T = Im A Im B

   The parts of A and of B, and the sums of both, are copied apart. A part of an
   entry of the result is as wrong as its modulus permits: an imaginary part
   that is small beside the real one has the error of the real one. That is what
   the error bounds of LU and Cholesky factorizations count, by modulus. The
   products inside panels and triangles are made of four (kernels.c). */
#ifndef HONE_PRODUCTS_COMPLEX_H
#define HONE_PRODUCTS_COMPLEX_H

enum {
  APART = 3,          /* the real parts, the imaginary parts, their sums */
  ROWS_APART = REALS, /* rows of a strip; each of the three fills VECTORS */
  SPACE_ROWS = 256    /* rows of A that are apart at once, whole strips */
};

/* Takes the numbers at the places 'from' of two vectors, one behind the other.
 */
#ifdef __clang__
#define TAKE(a, b, from)                                                       \
  ({                                                                           \
    lanes out_;                                                                \
    for (int l_ = 0; l_ < LANES; l_++)                                         \
      out_[l_] =                                                               \
          (from)[l_] < LANES ? (a)[(from)[l_]] : (b)[(from)[l_] - LANES];      \
    out_;                                                                      \
  })
#else
#define TAKE(a, b, from) __builtin_shuffle(a, b, from)
#endif

/* Places of the parts of entries, and of pairs of parts among parts. */
typedef struct places {
  bits re, im, low, high;
} places;

INLINE places places_of_parts(void) {
  places at;
  for (int l = 0; l < LANES; l++) {
    at.re[l] = 2 * l;
    at.im[l] = 2 * l + 1;
    at.low[l] = l / 2 + l % 2 * LANES;
    at.high[l] = (l + LANES) / 2 + l % 2 * LANES;
  }
  return at;
}

/* Takes apart one column of a strip. */
INLINE void take_apart(const real *a, real *to) {
  const places at = places_of_parts();
  UNROLL
  for (int v = 0; v < VECTORS; v++) {
    const lanes x = GET(a + 2 * v * LANES), y = GET(a + (2 * v + 1) * LANES);
    const lanes re = TAKE(x, y, at.re), im = TAKE(x, y, at.im);
    AT(to + v * LANES) = re;
    AT(to + (VECTORS + v) * LANES) = im;
    AT(to + (2 * VECTORS + v) * LANES) = re + im;
  }
}

/* Takes apart k columns of 'rows' <= ROWS_APART rows; rows that are missing
   become 0. */
static void strip_apart(int64_t rows, int64_t k, const real *a, int64_t lda,
                        real *to) {
  real column[ROWS_APART * PARTS] = {0};
  for (int64_t p = 0; p < k; p++)
    if (rows == ROWS_APART) {
      take_apart(a + p * lda, to + p * APART * REALS);
    } else {
      memcpy(column, a + p * lda, (size_t)(rows * PARTS) * sizeof *column);
      take_apart(column, to + p * APART * REALS);
    }
}

/* The columns of B of a tile, ready to be multiplied. */
typedef struct right_columns {
  const real *re, *both; /* the imaginary parts follow re[0] */
  int64_t row, column;   /* between the numbers of re */
  int64_t both_row, both_column;
  real sign; /* of the imaginary parts */
} right_columns;

/* The sums of the parts of k entries that are next to each other. */
INLINE void add_parts(int64_t k, const real *b, real sign, real *both) {
  const places at = places_of_parts();
  int64_t p = 0;
  for (; p + LANES <= k; p += LANES) {
    const lanes x = GET(b + 2 * p), y = GET(b + 2 * p + LANES);
    AT(both + p) = TAKE(x, y, at.re) + sign * TAKE(x, y, at.im);
  }
  for (; p < k; p++)
    both[p] = b[2 * p] + sign * b[2 * p + 1];
}

/* Copies k rows of w <= SUMS columns, each followed by zeros up to SUMS. */
static void copy_rows(int64_t k, int64_t w, const real *b, int64_t row,
                      real *to) {
  for (int64_t p = 0; p < k; p++) {
    real *copy = to + p * SUMS * PARTS;
    if (w == SUMS) {
      memcpy(copy, b + p * row, SUMS * PARTS * sizeof *to);
      continue;
    }
    memset(copy, 0, SUMS * PARTS * sizeof *to);
    memcpy(copy, b + p * row, (size_t)(w * PARTS) * sizeof *to);
  }
}

/* Takes k rows of w <= SUMS columns of B. Columns of a B that is stored by
   columns stay where they are; rows of its transpose are copied to the space.
   The sums of parts follow there, in the same order. */
static right_columns take_columns(int64_t k, int64_t w, const real *b,
                                  const hone_strided *place, real *space) {
  const real sign = place->conjugate ? (real)-1 : (real)1;
  real *both = space + k * SUMS * PARTS;
  if (place->column == PARTS) {
    copy_rows(k, w, b, place->row, space);
    add_parts(k * SUMS, space, sign, both);
    return (right_columns){space, both, SUMS * PARTS, PARTS, SUMS, 1, sign};
  }
  for (int64_t j = 0; j < w; j++)
    add_parts(k, b + j * place->column, sign, both + j * k);
  return (right_columns){b, both, place->row, place->column, 1, k, sign};
}

/* C -= A B for a strip and 'width' columns, from column j on. */
INLINE void tile_apart(int width, int64_t k, const real *restrict a,
                       const right_columns *b, int64_t j, real *restrict c,
                       int64_t ldc) {
  const places at = places_of_parts();
  const real *re = b->re + j * b->column, sign = b->sign;
  lanes sum[SUMS * VECTORS], difference[SUMS * VECTORS], total[SUMS * VECTORS];
  fetch_tile(width, ROWS_APART * PARTS * (int)sizeof(real), c, ldc);
  multiply(width, 1, k, a, APART * REALS, re, b->row, b->column, sum);
  UNROLL
  for (int s = 0; s < width * VECTORS; s++)
    total[s] = sum[s];
  __asm__("" : "+m"(total)); /* registers are for the sums */
  multiply(width, 1, k, a + REALS, APART * REALS, re + 1, b->row, b->column,
           sum);
  UNROLL
  for (int s = 0; s < width * VECTORS; s++) {
    difference[s] = total[s] - sign * sum[s];
    total[s] += sign * sum[s];
  }
  __asm__("" : "+m"(total), "+m"(difference));
  multiply(width, 1, k, a + 2 * REALS, APART * REALS,
           b->both + j * b->both_column, b->both_row, b->both_column, sum);
  UNROLL
  for (int s = 0; s < width * VECTORS; s++) {
    const lanes re_c = difference[s], im_c = sum[s] - total[s];
    real *to = c + s / VECTORS * ldc + s % VECTORS * 2 * LANES;
    AT(to) -= TAKE(re_c, im_c, at.low);
    AT(to + LANES) -= TAKE(re_c, im_c, at.high);
  }
}

#define TILE_APART(name, width)                                                \
  static __attribute__((noinline)) void name(                                  \
      int64_t k, const real *a, const right_columns *b, int64_t j, real *c,    \
      int64_t ldc) {                                                           \
    tile_apart(width, k, a, b, j, c, ldc);                                     \
  }
TILE_APART(tile_apart_wide, SUMS)
TILE_APART(tile_apart_narrow, 4)
TILE_APART(tile_apart_one, 1)

/* Does so for w <= SUMS columns. */
static void tiles_apart(int64_t w, int64_t k, const real *a,
                        const right_columns *b, real *c, int64_t ldc) {
  int64_t j = 0;
  if (w == SUMS) {
    tile_apart_wide(k, a, b, 0, c, ldc);
    return;
  }
  for (; j + 4 <= w; j += 4)
    tile_apart_narrow(k, a, b, j, c + j * ldc, ldc);
  for (; j < w; j++)
    tile_apart_one(k, a, b, j, c + j * ldc, ldc);
}

/* Does so for fewer rows. */
static void part_apart(int64_t rows, int64_t w, int64_t k, const real *a,
                       const right_columns *b, real *c, int64_t ldc) {
  real part[SUMS * ROWS_APART * PARTS] = {0};
  const int64_t ld = ROWS_APART * PARTS;
  const size_t bytes = (size_t)(rows * PARTS) * sizeof *part;
  for (int64_t j = 0; j < w; j++)
    memcpy(part + j * ld, c + j * ldc, bytes);
  tiles_apart(w, k, a, b, part, ld);
  for (int64_t j = 0; j < w; j++)
    memcpy(c + j * ldc, part + j * ld, bytes);
}

/* C -= A B for the rows of A that were taken apart. */
static void subtract_apart(int64_t m, int64_t w, int64_t k, const real *a,
                           hone_strided right, int64_t below, real *c,
                           int64_t ldc) {
  real block[APART * HONE_PANEL_MOST * SUMS];
  for (int64_t j = 0; j < w; j += SUMS) {
    const int64_t columns = HONE_MIN((int64_t)SUMS, w - j);
    const int64_t first =
        below < 0 || j <= below ? 0 : (j - below) / ROWS_APART * ROWS_APART;
    if (first >= m)
      return;
    const right_columns b = take_columns(
        k, columns, (const real *)right.at + j * right.column, &right, block);
    for (int64_t i = first; i < m; i += ROWS_APART) {
      const real *strip = a + i * APART * k;
      real *to = c + j * ldc + i * PARTS;
      if (m - i >= ROWS_APART)
        tiles_apart(columns, k, strip, &b, to, ldc);
      else
        part_apart(m - i, columns, k, strip, &b, to, ldc);
    }
  }
}

/* As the table's 'subtract' says. */
static void subtract_by_three(int64_t m, int64_t w, int64_t k, const void *left,
                              int64_t lda, hone_strided right, int64_t below,
                              void *out, int64_t ldc, void *space) {
  real strip[APART * HONE_PANEL_MOST * REALS];
  const int64_t most = space == NULL ? ROWS_APART : SPACE_ROWS;
  real *apart = space == NULL ? strip : space;
  right.row *= PARTS;
  right.column *= PARTS;
  for (int64_t i0 = 0; i0 < m; i0 += most) {
    const int64_t rows = HONE_MIN(most, m - i0);
    for (int64_t i = 0; i < rows; i += ROWS_APART)
      strip_apart(HONE_MIN((int64_t)ROWS_APART, rows - i), k,
                  (const real *)left + (i0 + i) * PARTS, lda * PARTS,
                  apart + i * APART * k);
    subtract_apart(rows, w, k, apart, right, below < 0 ? -1 : below + i0,
                   (real *)out + i0 * PARTS, ldc * PARTS);
  }
}

#endif
