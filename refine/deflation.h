/* SPDX-License-Identifier: BSD-3-Clause */
/* Deflation, in double precision: a correction of the factors M of S in the few
   directions in which they say nothing of S.

   Factors in single precision are wrong for singular values of S below their
   rounding error. E = I - inv(M) S then leaves as many directions as long as
   they were, and all others shrink. Let Z hold an orthonormal basis of those
   directions, U one of those that I - inv(M^T) S^T leaves, W = S^T U and C =
   S Z. Then

     inv(N) r = y + Z inv(W^T Z) (U^T r - W^T y),   y = inv(M) r

   is used instead of inv(M) r, and I - inv(N) S = (I - Z inv(W^T Z) W^T) E: a
   projection along Z follows E. For S^T the pairs (Z, W) and (U, C) change
   places. One application costs 4 n k products more, for k directions.

   The projection is oblique. An orthogonal one, with C in the place of W,
   magnifies what is not exactly in Z by the reciprocal of the smallest singular
   value, and fails from condition 1e12 on; this one serves up to 1e15. (It is
   that of deflated and two-level preconditioners: Nicolaides 1987; Frank &
   Vuik 2001.) Next to read: deflation.c for how Z and U are found. */
#ifndef HONE_DEFLATION_H
#define HONE_DEFLATION_H

#include "base/entry.h"

#include <stdbool.h>
#include <stdint.h>

enum { HONE_DEFLATED_MOST = 7 };

typedef struct hone_deflation {
  int64_t n;
  int count;                 /* k; 0: the factors are used as they are */
  hone_entry *z, *u, *c, *w; /* n x k each, borrowed */
  /* inv(W^T Z), k x k by columns */
  hone_entry inverse[HONE_DEFLATED_MOST * HONE_DEFLATED_MOST];
} hone_deflation;

struct hone_factored;

/* Entries of z, u, c and w together, with room for HONE_DEFLATED_MOST. */
int64_t hone_deflation_entries(int64_t n);

/* Makes an empty deflation in this memory. */
hone_deflation hone_deflation_make(int64_t n, hone_entry *memory);

/* Finds the directions that the factors leave long, from a fixed draw: probes
   that follow have to show what the deflation is good for. If there are no
   directions, or too many, count is 0. scratch: hone_probe_scratch(n,
   f->use_copy) entries. *passes: passes over A; added to. *least: the smallest
   ||S z||_1 / ||z||_1 seen, if it is smaller. Fails only where a solve fails.
 */
int hone_deflate(const struct hone_factored *f, hone_entry *scratch,
                 int *passes, hone_deflation *d, double *least);

/* Deflates one direction: d->z holds a null vector of S on entry, and d->u the
   left one on return. The factors with this deflation contract no error, but
   solve with a small residual. norm1: ||S||_1; the other arguments as above. */
int hone_deflate_null(const struct hone_factored *f, double norm1,
                      hone_entry *scratch, int *passes, hone_deflation *d);

/* coefficient = U^T r, or Z^T r for S^T, before r is overwritten by y. */
void hone_deflation_project(const hone_deflation *d, bool trans,
                            const hone_entry *r, hone_entry *coefficient);
/* y = y + Z inv(W^T Z) (coefficient - W^T y), or the same for S^T. */
void hone_deflation_correct(const hone_deflation *d, bool trans,
                            const hone_entry *coefficient, hone_entry *y);

#endif
