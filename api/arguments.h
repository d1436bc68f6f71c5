/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the arrays that a call is given. Each returns a status. */
#ifndef HONE_ARGUMENTS_H
#define HONE_ARGUMENTS_H

#include "api/caller_arrays.h"

enum { HONE_MAX_ORDER = 1 << 29 }; /* 8 n^2 fits in int64_t, n in BLAS's int */

/* a: n x columns. */
int hone_check_matrix(int64_t n, int64_t columns, const double *a, int64_t lda);

/* Sizes and pointers of b, x and x0, and whether x overlaps b or x0. */
int hone_check_vectors(const hone_vectors *v);

/* All that hone_check_vectors checks, the order, and A. */
int hone_check_system(const hone_vectors *v, const double *a, int64_t lda);

/* Tells whether x overlaps A, n x n. Both were checked before. */
bool hone_x_overlaps(const hone_vectors *v, const double *a, int64_t lda);

/* HONE_NOT_FINITE_B if b or x0 has an entry that is not finite; the report then
   says where. */
int hone_check_finite(const hone_vectors *v, hone_report *report);

#endif
