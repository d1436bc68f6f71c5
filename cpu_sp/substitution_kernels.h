/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of forward and back substitution: see substitution.c. */
#ifndef HONE_SUBSTITUTION_KERNELS_H
#define HONE_SUBSTITUTION_KERNELS_H

#include "cpu_sp/substitution.h"

/* A triangle T = F, F^T or F^H: t_ij is the entry i * row_step + j *
   column_step of f, one of the steps being 1. */
typedef struct hone_triangle {
  const float *f;
  int64_t row_step, column_step;
  bool lower, unit; /* of T */
  float sign;       /* of the imaginary parts of F: -1 for F^H */
} hone_triangle;

/* Where the parts of entry (i, j) of T begin. */
static inline const float *hone_triangle_at(const hone_triangle *t, int64_t i,
                                            int64_t j) {
  return t->f + HONE_PARTS * (i * t->row_step + j * t->column_step);
}

/* Divides the numbers of a row by the entry f: the real parts of 'width' ones
   are followed by their imaginary parts. Complex: in double, whose range the
   squares of single numbers do not leave. */
static inline void hone_divide_row(int width, const float *f, float sign,
                                   float *v) {
  if (HONE_PARTS == 1) {
    for (int q = 0; q < width; q++)
      v[q] /= f[0];
    return;
  }
  const double fr = (double)f[0], fi = (double)(sign * f[HONE_PARTS - 1]);
  const double square = fr * fr + fi * fi;
  for (int q = 0; q < width; q++) {
    const double re = (double)v[q], im = (double)v[q + width];
    v[q] = (float)((re * fr + im * fi) / square);
    v[q + width] = (float)((im * fr - re * fi) / square);
  }
}

/* v[i0:i1] -= T[i0:i1, j0:j1] v[j0:j1]. */
typedef void hone_subtract_block(const hone_triangle *t, int64_t i0, int64_t i1,
                                 int64_t j0, int64_t j1, float *v);
/* v[i0:i1] = inv(T[i0:i1, i0:i1]) v[i0:i1]. */
typedef void hone_solve_block(const hone_triangle *t, int64_t i0, int64_t i1,
                              float *v);

/* Steps for n x HONE_TOGETHER right-hand sides, stored row by row
   (substitution_many.c), or for one (substitution_one.c). */
typedef struct hone_substitution_kernels {
  hone_subtract_block *subtract;
  hone_solve_block *solve;
} hone_substitution_kernels;

extern const hone_substitution_kernels hone_substitution_base,
    hone_substitution_avx2, hone_substitution_avx512, hone_substitution_one;

#endif
