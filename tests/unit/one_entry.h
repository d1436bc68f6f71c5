/* SPDX-License-Identifier: BSD-3-Clause */
/* M = n I + J, J being all ones, and A = M + by e_p e_q^T, whose inverse is
   known (Sherman & Morrison 1950). Of factors of M, A has an error I - inv(M) A
   with a single large entry. */
#ifndef HONE_TEST_ONE_ENTRY_H
#define HONE_TEST_ONE_ENTRY_H

#include <math.h>
#include <stdint.h>

/* a = M, n x n with leading dimension n. */
static inline void one_entry_matrix(int64_t n, double *a) {
  for (int64_t i = 0; i < n * n; i++)
    a[i] = i % (n + 1) ? 1.0 : (double)n + 1.0;
}

/* Returns 1 / (||A||_1 ||inv(A)||_1), for p != q and by > 0. */
static inline double one_entry_rcond(int64_t n, int64_t p, int64_t q,
                                     double by) {
  const double own = 1.0 / (double)n, less = 0.5 * own * own;
  double largest = 0.0;
  for (int64_t j = 0; j < n; j++) {
    const double at_q = ((j == q) ? own : 0.0) - less;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
      const double at_p = ((i == p) ? own : 0.0) - less;
      sum += fabs(((i == j) ? own : 0.0) - less -
                  by * at_p * at_q / (1.0 - by * less));
    }
    largest = fmax(largest, sum);
  }
  return 1.0 / (2.0 * (double)n + by) / largest;
}

#endif
