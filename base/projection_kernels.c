/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that project a matrix on random weights (base/projection.h). This
   file is compiled once for each instruction set, with PROJECTION_ISA as its
   name; projection.c chooses one at run time. The loops are kept plain so that
   the compiler turns them into vector instructions. */
#include "base/projection_kernels.h"

#include "base/exact.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

enum { LANES = 16 }; /* partial sums of a column */

/* The LANES partial sums begin as 0 and are added at the end, again without
   error. */
static void project_column(int64_t n, const hone_entry *restrict a,
                           const hone_entry *restrict v, hone_entry *hi,
                           hone_entry *lo, double *sum) {
  hone_entry h[LANES] = {0.0}, l[LANES] = {0.0};
  double s[LANES] = {0.0};
  int64_t i = 0;
  for (; i + LANES * HONE_GROUP <= n; i += LANES * HONE_GROUP)
    for (int k = 0; k < LANES; k++) {
      hone_entry p[HONE_GROUP], q[HONE_GROUP];
      for (int g = 0; g < HONE_GROUP; g++) {
        p[g] = a[i + g * LANES + k];
        q[g] = v[i + g * LANES + k];
      }
      hone_add_group(p, q, &h[k], &l[k], &s[k]);
    }
  for (; i < n; i++) {
    hone_accumulate(a[i], v[i], &h[i % LANES], &l[i % LANES]);
    s[i % LANES] += hone_abs(a[i]) * hone_abs(v[i]);
  }
  for (int k = 0; k < LANES; k++) {
    hone_accumulate(h[k], 1.0, hi, lo);
    *lo += l[k];
    *sum += s[k];
  }
}

static void project_rows(int64_t rows, int64_t columns, const hone_entry *a,
                         int64_t lda, const hone_entry *v,
                         hone_entry *restrict hi, hone_entry *restrict lo,
                         double *restrict sum) {
  int64_t j = 0;
  for (; j + HONE_GROUP <= columns; j += HONE_GROUP) {
    const hone_entry *restrict b = a + j * lda;
    hone_entry q[HONE_GROUP];
    for (int g = 0; g < HONE_GROUP; g++)
      q[g] = v[j + g];
    for (int64_t i = 0; i < rows; i++) {
      hone_entry p[HONE_GROUP];
      for (int g = 0; g < HONE_GROUP; g++)
        p[g] = b[i + g * lda];
      hone_add_group(p, q, &hi[i], &lo[i], &sum[i]);
    }
  }
  for (; j < columns; j++)
    for (int64_t i = 0; i < rows; i++) {
      hone_accumulate(a[i + j * lda], v[j], &hi[i], &lo[i]);
      sum[i] += hone_abs(a[i + j * lda]) * hone_abs(v[j]);
    }
}

const hone_projection_kernels JOIN(hone_projection_, PROJECTION_ISA) = {
    project_column, project_rows};
