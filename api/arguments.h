/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the arguments of a call. Each returns a status; if that is an
   error, the report's reason names the argument. report may be NULL. */
#ifndef HONE_ARGUMENTS_H
#define HONE_ARGUMENTS_H

#include "api/caller_arrays.h"

/* The largest n and nrhs: 16 n^2 fits in int64_t, n in BLAS's int, and a b
   without padding is never too large. */
enum { HONE_MAX_ORDER = 1 << 29 };

int hone_check_sizes(int64_t n, int64_t nrhs, hone_report *report);

/* a: n x columns, called name, with its leading dimension ld<name>. An
   underscore before the name is part of ld<name> alone. */
int hone_check_matrix(int64_t n, int64_t columns, const hone_entry *a,
                      int64_t lda, const char *name, hone_report *report);

/* nrhs, b, x, x0, columns and error_bounds, and whether an array that is
   written overlaps another one. */
int hone_check_vectors(const hone_vectors *v, hone_report *report);

/* Checks the arrays that options name, and their leading dimensions. */
int hone_check_arrays_of_options(const hone_vectors *v, hone_report *report);
/* All that hone_check_vectors checks, the order, and A. */
int hone_check_system(const hone_vectors *v, const hone_entry *a, int64_t lda,
                      hone_report *report);

/* Whether x, columns or error_bounds overlap A, n x n. All were checked before.
 */
int hone_check_apart(const hone_vectors *v, const hone_entry *a, int64_t lda,
                     hone_report *report);

/* HONE_NOT_FINITE_B if b or x0 has an entry that is not finite; the report then
   says where. pool: may be NULL. */
int hone_check_finite(const hone_vectors *v, hone_pool *pool,
                      hone_report *report);

#endif
