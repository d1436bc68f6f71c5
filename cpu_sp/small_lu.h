/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a small matrix in single precision on one core, where a library's
   threads and packing cost more than the arithmetic. */
#ifndef HONE_SMALL_LU_H
#define HONE_SMALL_LU_H

#include "base/base.h"

/* Factors the transpose of the n x n matrix F (column-major, ld): with
   partial pivoting, P F^T = L U, in place; this call eliminates with the
   columns from .. to - 1, multiples of 4 but for n, after those before. In
   memory, row i of F^T is column i of F, contiguous: exchanges and updates run
   along it. pivot[k]: row exchanged with row k, from 0. work:
   hone_small_lu_work(n) floats. Returns the first zero pivot's index, or -1. */
int64_t hone_small_lu(int64_t n, int64_t from, int64_t to, float *f, int64_t ld,
                      int *pivot, float *work);
int64_t hone_small_lu_work(int64_t n);

/* v = inv(F) v, or inv(F^T) v, from these factors. */
void hone_small_solve(int64_t n, const float *f, int64_t ld, const int *pivot,
                      bool trans, float *v);

#endif
