/* SPDX-License-Identifier: BSD-3-Clause */
/* A product of two small packed matrices whose sums stay in registers. It is
   inlined into files that are compiled once for each instruction set, with
   -ffp-contract=fast.

   A is packed row by row of its transpose: TILE_ROWS entries for each of
   'count' columns. B has 'columns' entries for each of its 'count' rows. */
#ifndef HONE_TILE_H
#define HONE_TILE_H

#include "base/isa.h"

#include <stdint.h>

enum {
  HONE_TILE_VECTORS = 3,
  HONE_TILE_COLUMNS = HONE_VECTOR_BYTES == 64 ? 8 : 4, /* at most, */
  HONE_TILE_LEAST = 4,                                 /* or so many */
  HONE_TILE_ROWS = HONE_TILE_VECTORS * HONE_VECTOR_BYTES / (int)sizeof(double),
  HONE_TILE_FLOATS = HONE_TILE_VECTORS * HONE_VECTOR_BYTES / (int)sizeof(float)
};

typedef double hone_doubles __attribute__((vector_size(HONE_VECTOR_BYTES),
                                           aligned(sizeof(double)), may_alias));
typedef float hone_floats __attribute__((vector_size(HONE_VECTOR_BYTES),
                                         aligned(sizeof(float)), may_alias));

#define HONE_TILE_PRODUCT(name, type, vector, rows)                            \
  static inline __attribute__((always_inline)) void name(                      \
      int columns, int64_t count, const type *a, const type *b,                \
      const double *fetch, int64_t step,                                       \
      vector sum[HONE_TILE_COLUMNS][HONE_TILE_VECTORS]) {                      \
    for (int c = 0; c < columns; c++)                                          \
      for (int v = 0; v < HONE_TILE_VECTORS; v++)                              \
        sum[c][v] = (vector){0};                                               \
    for (int64_t s = 0; s < count; s++) {                                      \
      const vector *row = (const vector *)(a + s * (rows));                    \
      const vector a0 = row[0], a1 = row[1], a2 = row[2];                      \
      __builtin_prefetch(fetch + s * step, 0, 2);                              \
      _Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) {              \
        const type by = b[s * columns + c];                                    \
        sum[c][0] += a0 * by;                                                  \
        sum[c][1] += a1 * by;                                                  \
        sum[c][2] += a2 * by;                                                  \
      }                                                                        \
    }                                                                          \
  }

/* While it runs, the cache lines at fetch, fetch + step, ... are fetched, one
   for each row of B: what is to be packed next. */

/* sum = A B in double, and in single precision. */
HONE_TILE_PRODUCT(hone_tile_product, double, hone_doubles, HONE_TILE_ROWS)
HONE_TILE_PRODUCT(hone_tile_product_single, float, hone_floats,
                  HONE_TILE_FLOATS)

#endif
