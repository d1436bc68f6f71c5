/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a block, as the kernels divide it. */
#ifndef HONE_PARTS_H
#define HONE_PARTS_H

#include "cpu_batch/block.h"
#include "cpu_batch/lanes.h"

/* Solves go by COLUMNS at once. So many random vectors make the first statement
   (base/probe_factor.h); where they do not show enough, PROBES_ALL make a new
   one. */
enum {
  COLUMNS = 2 / HONE_PARTS,
  PROBES_ALL = 12 / HONE_PARTS,
  VECTORS = 4 * COLUMNS /* of work */
};

typedef struct parts {
  int64_t n, ld; /* ld: of s and f, odd, so that columns of one order do not
                    compete for the same lines of the cache */
  many *s;       /* n x n: S = R op(A) C */
  many *f;       /* n x n: P S = L U, L with a diagonal of ones */
  many *inverse; /* n: 1 / u_ii */
  many *first;   /* n: a solution of the first statement */
  lanes *row;    /* n: R, powers of two */
  lanes *col;    /* n: C */
  lanes *rows;   /* n: bounds on the 2-norms of the rows of E */
  lanes *den;    /* n */
  lanes *few;    /* n: the rows by that statement */
  mask *from;    /* n: row i of P S is row from[i] of S */
  mask *pivot;   /* n: the row that was exchanged with row i in step i */
  many *v;       /* VECTORS vectors of n */
  double *drawn; /* random numbers, 2 COLUMNS vectors of n entries */
} parts;

INLINE int64_t leading_of(int64_t n) { return n | 1; }

static int64_t bytes_of(int64_t n) {
  return (2 * leading_of(n) * n + (2 + VECTORS) * n) * (int64_t)sizeof(many) +
         7 * n * (int64_t)sizeof(lanes) +
         2 * COLUMNS * HONE_PARTS * n * (int64_t)sizeof(double);
}

INLINE parts parts_of(const hone_block *block) {
  const int64_t n = block->n;
  parts p = {.n = n, .ld = leading_of(n), .s = block->memory};
  p.f = p.s + p.ld * n;
  p.inverse = p.f + p.ld * n;
  p.first = p.inverse + n;
  p.v = p.first + n;
  p.row = (lanes *)(p.v + VECTORS * n);
  p.col = p.row + n;
  p.rows = p.col + n;
  p.den = p.rows + n;
  p.few = p.den + n;
  p.from = (mask *)(p.few + n);
  p.pivot = p.from + n;
  p.drawn = (double *)(p.pivot + n);
  return p;
}

#endif
