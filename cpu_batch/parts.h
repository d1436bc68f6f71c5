/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a block, as the kernels divide it. */
#ifndef HONE_PARTS_H
#define HONE_PARTS_H

#include "cpu_batch/block.h"
#include "cpu_batch/layout.h"

/* COLUMNS random vectors make the first statement (base/probe_factor.h); where
   they do not show enough, PROBES_ALL make a new one. Of the two solves that
   each needs, AT_ONCE are made together, if there are registers for it. */
enum {
  COLUMNS = 2 / HONE_PARTS,
#if defined(__AVX512F__) || defined(__aarch64__)
  AT_ONCE = 2 * COLUMNS,
#else
  AT_ONCE = COLUMNS,
#endif
  PROBES_ALL = 12 / HONE_PARTS,
  VECTORS = 4 * COLUMNS,                   /* of work */
  MODULI = SYSTEMS == 1 && HONE_PARTS == 2 /* of S are kept */
};

/* A vector of n entries or numbers is m vectors of lanes. */
typedef struct parts {
  int64_t n, m;
  int64_t ld;    /* of s and f, odd, so that columns of one order do not compete
                    for the same lines of the cache */
  many *s;       /* n x n: S = R op(A) C */
  many *f;       /* n x n: P S = L U, L with a diagonal of ones. Where a vector
                    has several rows: as factor_rows.h says, columns of 0
                    behind the last one up to as many, and those of U divided
                    by their pivots in the vector that has both */
  lanes *moduli; /* n x n: |S|, if MODULI are kept */
  many *inverse; /* n: 1 / u_ii */
  many *first;   /* n: a solution of the first statement */
  lanes *row;    /* n: R, powers of two */
  lanes *col;    /* n: C */
  lanes *rows;   /* n: bounds on the 2-norms of the rows of E */
  lanes *den;    /* n */
  lanes *few;    /* n: the rows by that statement; moduli of y */
  mask *pivot;   /* n: the row that was exchanged with row i in step i */
  mask *from;    /* n, where a vector has several systems: row i of P S is row
                    from[i] of S */
  many *v;       /* VECTORS vectors of n */
  double *drawn; /* random numbers, 2 COLUMNS vectors of n entries */
} parts;

INLINE int64_t leading_of(int64_t n) { return vectors_of(n) | 1; }

INLINE int64_t columns_of(int64_t n) {
  return SYSTEMS > 1 ? n : vectors_of(n) * LANES;
}

static int64_t bytes_of(int64_t n) {
  const int64_t m = vectors_of(n), ld = leading_of(n), matrix = ld * n;
  return (matrix + ld * columns_of(n) + (2 + VECTORS) * m) *
             (int64_t)sizeof(many) +
         (7 * m + MODULI * matrix) * (int64_t)sizeof(lanes) +
         2 * COLUMNS * HONE_PARTS * n * (int64_t)sizeof(double);
}

INLINE parts parts_of(const hone_block *block) {
  const int64_t n = block->n, m = vectors_of(n), ld = leading_of(n);
  parts p = {.n = n, .m = m, .ld = ld, .s = block->memory};
  p.f = p.s + ld * n;
  p.inverse = p.f + ld * columns_of(n);
  p.first = p.inverse + m;
  p.v = p.first + m;
  p.row = (lanes *)(p.v + VECTORS * m);
  p.col = p.row + m;
  p.rows = p.col + m;
  p.den = p.rows + m;
  p.few = p.den + m;
  p.pivot = (mask *)(p.few + m);
  p.from = p.pivot + m;
  p.moduli = (lanes *)(p.from + m);
  p.drawn = (double *)(p.moduli + MODULI * ld * n);
  return p;
}

/* The smallest pivots so far. */
typedef struct pivots {
  lanes smallest;
  mask at;      /* the step of the smallest */
  lanes parity; /* 1 or -1: the sign of P */
} pivots;

INLINE void take_pivot(int64_t k, lanes size, pivots *out) {
  const mask is = ~(size >= out->smallest); /* takes NaN */
  out->smallest = choose(is, size, out->smallest);
  out->at = (out->at & ~is) | (((mask)all(0.0) + k) & is);
}

#endif
