/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of a matrix A on random weights v,

     w = op(A)^T v   in double-double,    u = |op(A)|^T |v|

   which takes one pass over A. For every x, b and r = b - op(A) x,

     v^T r = v^T b - w^T x

   so that a residual which another machine computed can be checked against the
   caller's own A with O(n) operations: refine/verdict.h. */
#ifndef HONE_PROJECTION_H
#define HONE_PROJECTION_H

#include "base/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Arrays of n entries each, borrowed. */
typedef struct hone_projection {
  const hone_entry *v;
  const hone_entry *w, *w_rest; /* w + w_rest in double-double */
  const double *u;
  bool by_device; /* a device took it, of an A in its memory; otherwise the host
                     did */
} hone_projection;

/* Fills v with random weights, uniform on [-1, -1/2] and [1/2, 1]; advances the
   seed. */
void hone_projection_draw(int64_t n, uint64_t *seed, hone_entry *v);

/* Adds a part of one column of A to its entries of the projection: adds a^T v
   to the pair (*hi, *lo), and |a|^T |v| to *sum. n entries. The weights v are
   real. */
void hone_project_column(int64_t n, const hone_entry *a, const hone_entry *v,
                         hone_entry *hi, hone_entry *lo, double *sum);

/* Where the entries of a column are copied to. */
typedef struct hone_column_copy {
  hone_entry *to; /* NULL: nowhere */
  bool streams;   /* past the caches, if 'to' is a multiple of 64 bytes: faster
                     where few threads copy what none of them reads */
} hone_column_copy;

/* Adds a part of one column as hone_project_column does, and copies its n
   entries to where they do not overlap it. */
void hone_project_copied(int64_t n, const hone_entry *a, const hone_entry *v,
                         const hone_column_copy *copy, hone_entry *hi,
                         hone_entry *lo, double *sum);

/* Does as hone_project_column for any v. */
void hone_project_products(int64_t n, const hone_entry *a, const hone_entry *v,
                           hone_entry *hi, hone_entry *lo, double *sum);

/* Adds a block of A to the projection for op(A) = A^T: adds a v to the pairs
   (hi, lo), and |a| |v| to sum. a: rows x columns, lda; v: columns;
   hi, lo, sum: rows. */
void hone_project_rows(int64_t rows, int64_t columns, const hone_entry *a,
                       int64_t lda, const hone_entry *v, hone_entry *hi,
                       hone_entry *lo, double *sum);

#endif
