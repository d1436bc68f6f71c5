/* SPDX-License-Identifier: BSD-3-Clause */
/* A symmetric or Hermitian matrix of which one triangle is given, as LAPACK's
   dposv_ takes it. All else in the library reads whole matrices: a copy has the
   triangle and its mirror image. */
#ifndef HONE_TRIANGLE_H
#define HONE_TRIANGLE_H

#include "base/entry.h"

#include <stdbool.h>

typedef struct hone_triangle {
  int64_t n, lda;
  const hone_entry *a; /* stored by columns; the other triangle is not read */
  bool upper;          /* which one is given, with the diagonal */
  bool conjugates;     /* the other one is its conjugate, and the imaginary part
                          of the diagonal counts as 0 */
} hone_triangle;

/* Columns that are copied together. */
enum { HONE_TRIANGLE_STEP = 32 };

/* Copies columns j .. j+w-1 of the given triangle, w <= HONE_TRIANGLE_STEP, and
   their mirror image, which are rows, to the whole matrix 'to', n x n with
   leading dimension n, apart from a. */
void hone_triangle_copy(const hone_triangle *t, int64_t j, int64_t w,
                        hone_entry *to);

#endif
