/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact structure of a dense A that makes the solution cheaper: a narrow band,
   a triangle, symmetry. */
#ifndef HONE_STRUCTURE_H
#define HONE_STRUCTURE_H

#include "base/dense.h"

/* Returns true if the band LU of a matrix with 'lower' diagonals below the main
   one and 'upper' above it is faster than the LU of a full matrix. */
bool hone_band_pays(int64_t lower, int64_t upper, int64_t n);

/* Finds the bandwidths of A if A is triangular or has a band that pays. If
   not, and the search is for symmetry too, finds whether A may be positive
   definite. Every comparison is exact; NaN and Inf are not zero, and NaN is not
   equal to itself. For a matrix without structure a few entries decide; A is
   read at most once for bands and once for symmetry. With HONE_SEARCH_SAMPLE
   only the diagonal and some columns of a large A are read for symmetry, with
   their mirror images, and out->sampled is set if they allow a definite A.
   scratch: n doubles. */
void hone_structure_find(hone_pool *pool, const hone_dense *a,
                         hone_search search, double *scratch,
                         hone_structure *out);

/* hone_structure_sample returns the column that is read k-th, k = 0, 1, ...,
   before all others; the first and the last column, with the corners of A, come
   first. hone_structure_excluded returns true if the first so many of them
   alone show that hone_structure_find would find nothing; it reads no others.
   hone_structure_allows_definite returns true if they show that A has no band
   that pays, but may be definite. */
enum { HONE_STRUCTURE_SAMPLES = 8 };
int64_t hone_structure_sample(int64_t n, int k);
bool hone_structure_excluded(const hone_dense *a, int samples, bool definite);
bool hone_structure_allows_definite(const hone_dense *a, int samples);

/* Returns true if A is symmetric to the last bit. Reads A at most once. */
bool hone_structure_symmetric(hone_pool *pool, const hone_dense *a);

#endif
