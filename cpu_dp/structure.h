/* SPDX-License-Identifier: BSD-3-Clause */
/* What of A's structure pays: narrow bands, triangles, symmetry. */
#ifndef HONE_STRUCTURE_H
#define HONE_STRUCTURE_H

#include "base/dense.h"

/* Does the LU of a band with lower and upper diagonals beside the main one
   pay beside that of a whole matrix? */
bool hone_band_pays(int64_t lower, int64_t upper, int64_t n);

/* Finds A's bandwidths where a triangle or a band that pays comes of them,
   and, where no such comes of them and definite is asked for, whether A may be
   positive definite. Everything is exact; NaN and Inf are not zero, and NaN
   not equal to itself. A matrix of no structure shows that within a few
   entries; none takes more than reading A once for bands and once for
   symmetry. scratch: n doubles. */
void hone_structure_find(hone_pool *pool, const hone_dense *a, bool definite,
                         double *scratch, hone_structure *out);

/* The columns that are looked at before the others, k = 0, 1, ... Do these
   alone show that hone_structure_find would find nothing? Reads no others. */
enum { HONE_STRUCTURE_SAMPLES = 8 };
int64_t hone_structure_sample(int64_t n, int k);
bool hone_structure_excluded(const hone_dense *a, bool definite);

/* Is A symmetric, to the last bit? Reads A once, at most. */
bool hone_structure_symmetric(hone_pool *pool, const hone_dense *a);

#endif
