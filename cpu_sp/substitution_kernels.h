/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of forward and back substitution: see substitution.c. */
#ifndef HONE_SUBSTITUTION_KERNELS_H
#define HONE_SUBSTITUTION_KERNELS_H

#include "cpu_sp/substitution.h"

/* A triangle T = F or T = F^T: t_ij = f[i * row_step + j * column_step], one of
   the steps being 1. */
typedef struct hone_triangle {
  const float *f;
  int64_t row_step, column_step;
  bool lower, unit; /* of T */
} hone_triangle;

/* v[i0:i1] -= T[i0:i1, j0:j1] v[j0:j1]. */
typedef void hone_subtract_block(const hone_triangle *t, int64_t i0, int64_t i1,
                                 int64_t j0, int64_t j1, float *v);
/* v[i0:i1] = inv(T[i0:i1, i0:i1]) v[i0:i1]. */
typedef void hone_solve_block(const hone_triangle *t, int64_t i0, int64_t i1,
                              float *v);

/* Steps for n x HONE_LANES right-hand sides, stored row by row
   (substitution_many.c), or for one (substitution_one.c). */
typedef struct hone_substitution_kernels {
  hone_subtract_block *subtract;
  hone_solve_block *solve;
} hone_substitution_kernels;

extern const hone_substitution_kernels hone_substitution_base,
    hone_substitution_avx2, hone_substitution_avx512, hone_substitution_one;

#endif
