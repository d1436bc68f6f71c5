/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over A in double precision: the residual and |A| |x| + |b|. */
#ifndef HONE_PASS_H
#define HONE_PASS_H

#include "base/engine.h"

enum { HONE_PASS_COLUMNS = 4 }; /* right-hand sides that share one read of A */

/* A pass for k right-hand sides, op(A) = A or A^T:
     r_c   = b_c - op(A) x_c
     den_c = |op(A)| |x_c| + |b_c|                          c = 0 .. k-1 */
typedef struct hone_pass {
  const hone_matrix *a;
  bool trans;
  bool accurate; /* r in double-double, rounded once; else plain double */
  int64_t k;
  const double *const *x; /* k vectors of n */
  const double *const *b; /* k vectors of n */
  double *const *r;       /* k vectors of n, written; r[c] may be b[c] */
  double *const *den;     /* k vectors of n, written */
} hone_pass;

/* Runs the pass on the pool's threads. The bits of r and den do not depend
   on the number of threads. */
void hone_pass_run(hone_pool *pool, const hone_pass *pass);

/* Name of the instruction set in use: "avx512", "avx2" or "base". */
const char *hone_pass_isa(void);

/* The kernels, compiled once per instruction set from pass.c. Rows i0 to
   i1-1 of r and den, for m <= HONE_PASS_COLUMNS right-hand sides. */
typedef struct hone_pass_kernels {
  const char *isa;
  void (*rows)(const hone_pass *pass, int64_t c0, int64_t m, int64_t i0,
               int64_t i1);
  void (*columns)(const hone_pass *pass, int64_t c0, int64_t m, int64_t j0,
                  int64_t j1);
} hone_pass_kernels;
extern const hone_pass_kernels hone_pass_base, hone_pass_avx2, hone_pass_avx512;

#endif
