/* SPDX-License-Identifier: BSD-3-Clause */
/* The checksums of a whole matrix by which its triangles are compared
   (base/rounding.h), for real and for complex entries. */
#ifndef HONE_TEST_MIRROR_DIFFERENCE_H
#define HONE_TEST_MIRROR_DIFFERENCE_H

#include "base/rounding.h"

enum { MIRROR_MOST = 130 }; /* the largest order */

/* Returns the difference of the sums over the triangles of a, n x n with
   leading dimension n: 0 if a is symmetric or Hermitian. */
static inline uint64_t mirror_difference(int64_t n, const hone_entry *a) {
  static uint32_t keys[HONE_PARTS * MIRROR_MOST];
  uint64_t sum = 0;
  hone_mirror_keys((uint64_t)n + 7, n, keys);
  for (int64_t j = 0; j < n; j++) {
    sum += hone_mirror_sum(j, 0, j, keys, a + j * n);
    sum -= hone_mirror_sum(n - j - 1, j + 1, j, keys, a + j * n + j + 1);
  }
  return sum;
}

#endif
