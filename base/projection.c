/* SPDX-License-Identifier: BSD-3-Clause */
/* Projections of parts of a matrix: draws the weights, and chooses the kernels
   for this processor. The arithmetic is in projection_kernels.c. */
#include "base/projection_kernels.h"

#include "base/exact.h"
#include "base/isa.h"

static const hone_projection_kernels *kernels(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_projection_avx512
                                  : &hone_projection_avx2;
#endif
  return &hone_projection_base;
}

void hone_project_column(int64_t n, const hone_entry *a, const hone_entry *v,
                         hone_entry *hi, hone_entry *lo, double *sum) {
  static const hone_column_copy none = {NULL, false};
  kernels()->column(n, a, v, &none, hi, lo, sum);
}

void hone_project_copied(int64_t n, const hone_entry *a, const hone_entry *v,
                         const hone_column_copy *copy, hone_entry *hi,
                         hone_entry *lo, double *sum) {
  kernels()->column(n, a, v, copy, hi, lo, sum);
}

void hone_project_products(int64_t n, const hone_entry *a, const hone_entry *v,
                           hone_entry *hi, hone_entry *lo, double *sum) {
  if (HONE_PARTS == 1) {
    hone_project_column(n, a, v, hi, lo, sum);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    hone_accumulate(a[i], v[i], hi, lo);
    *sum += hone_abs(a[i]) * hone_abs(v[i]);
  }
}

void hone_project_rows(int64_t rows, int64_t columns, const hone_entry *a,
                       int64_t lda, const hone_entry *v, hone_entry *hi,
                       hone_entry *lo, double *sum) {
  kernels()->rows(rows, columns, a, lda, v, hi, lo, sum);
}

void hone_projection_draw(int64_t n, uint64_t *seed, hone_entry *v) {
  for (int64_t i = 0; i < n; i++) {
    const uint64_t bits = hone_random_bits(seed);
    const double size = 0.5 + (double)(bits >> 12) * 0x1p-53;
    v[i] = bits & 1 ? size : -size;
  }
}
