/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting of a band matrix in double precision, and solutions
   with its factors. Read next: band_lu.c. */
#ifndef HONE_BAND_LU_H
#define HONE_BAND_LU_H

#include "base/entry.h"
#include "base/pool.h"

/* A band matrix S of order n with 'lower' diagonals below the main one and
   'upper' above it. It is stored as by LAPACK's dgbtrf, column by column, with
   room for lower more diagonals of U above the band, and for block - 1 more on
   either side: s_ij lies in row diagonal + i - j of column j of ab. */
typedef struct hone_band {
  int64_t n, lower, upper;
  int64_t block;    /* columns of a panel */
  int64_t diagonal; /* the row of ab that has the main diagonal */
  int64_t ld;       /* rows of ab */
  hone_entry *ab;   /* ld x n; borrowed, as ipiv is */
  int *ipiv;        /* n, from 1: row i was exchanged with row ipiv[i] */
} hone_band;

/* Returns the layout of a band of this shape, without ab and ipiv. */
hone_band hone_band_of(int64_t n, int64_t lower, int64_t upper);

/* S = ab, with zeros outside the band, is overwritten by its factors,
   P S = L U. Their bits do not depend on the number of threads. Returns the
   first column whose pivot is zero, or -1. */
int64_t hone_band_factor(const hone_band *s, hone_pool *pool);

/* Computes v = inv(S) v, or inv(S^T) v, in place for k columns. */
void hone_band_solve(const hone_band *s, bool trans, int64_t k, hone_entry *v,
                     int64_t ldv);

#endif
