/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a dense matrix with a few vectors (cpu_dp/product.c), beside
   plain loops. */
#include "cpu_dp/product.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

enum { MOST_VECTORS = 8 };

/* The padding below the n rows of A is NaN. Small integers: no sum rounds. */
static double *integers(sup_rng *rng, int64_t n, int64_t columns, int64_t lda) {
  double *a = sup_filled(lda * columns, (double)NAN);
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = (double)(sup_next(rng) % 201) - 100.0;
  return a;
}

static void plain_product(int64_t n, int64_t lda, const double *a, bool trans,
                          int64_t k, const double *v, double *p) {
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++)
        sum += (trans ? a[j + i * lda] : a[i + j * lda]) * v[j + c * n];
      p[i + c * n] = sum;
    }
}

static void check_order(int64_t n, hone_pool *pool) {
  sup_rng rng = {(uint64_t)n};
  for (int64_t pad = 0; pad <= 5; pad += 5) {
    double *a = integers(&rng, n, n, n + pad);
    double *v = integers(&rng, n, MOST_VECTORS, n);
    double *want = sup_filled(n * MOST_VECTORS, 0.0);
    for (int trans = 0; trans < 2; trans++)
      for (int64_t k = 1; k <= MOST_VECTORS; k += n > 100 ? 7 : 1) {
        double *p = sup_filled(n * k, (double)NAN);
        ct_note("n %d, lda %d, %d vectors, trans %d", (int)n, (int)(n + pad),
                (int)k, trans);
        plain_product(n, n + pad, a, trans, k, v, want);
        hone_dense_product(sup_matrix(n, n + pad, a), pool, trans, k, v, p);
        CHECK_MEM_EQ(p, want, (size_t)(n * k) * sizeof *p);
        sup_free(p);
      }
    sup_free(a);
    sup_free(v);
    sup_free(want);
  }
}

TEST(product, is_that_of_plain_loops_at_all_small_orders) {
  for (int64_t n = 1; n <= 40; n++)
    check_order(n, NULL);
}

TEST(product, is_that_of_plain_loops_around_the_sizes_of_blocks) {
  static const int64_t orders[] = {63,  64,  65,  127, 128, 129,
                                   255, 256, 257, 319, 511, 513};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    check_order(orders[i], NULL);
}

/* A sum of n terms in any order. */
TEST(product, rounds_like_a_sum_in_double) {
  enum { ORDER = 300 };
  sup_rng rng = {4};
  double *a = sup_filled(ORDER * ORDER, 0.0), *v = sup_filled(ORDER, 0.0);
  double *p = sup_filled(ORDER, 0.0), *exact = sup_filled(ORDER, 0.0);
  sup_random(&rng, ORDER, ORDER, a, ORDER);
  sup_random(&rng, ORDER, 1, v, ORDER);
  for (int trans = 0; trans < 2; trans++) {
    hone_dense_product(sup_matrix(ORDER, ORDER, a), NULL, trans, 1, v, p);
    sup_multiply(ORDER, a, ORDER, trans, v, exact);
    for (int64_t i = 0; i < ORDER; i++)
      CHECK_NEAR(p[i], exact[i], SUP_EPS * ORDER * 0.25 * ORDER);
  }
  sup_free(a);
  sup_free(v);
  sup_free(p);
  sup_free(exact);
}

TEST(product, has_the_same_bits_on_any_number_of_threads) {
  static const int64_t orders[] = {399, 400, 401, 511, 513, 700};
  for (size_t at = 0; at < sizeof orders / sizeof *orders; at++) {
    const int64_t n = orders[at], size = n * MOST_VECTORS;
    sup_rng rng = {at};
    double *a = sup_filled(n * n, 0.0), *v = sup_filled(size, 0.0);
    double *alone = sup_filled(size, 0.0), *p = sup_filled(size, 0.0);
    sup_random(&rng, n, n, a, n);
    sup_random(&rng, n, MOST_VECTORS, v, n);
    for (int trans = 0; trans < 2; trans++) {
      hone_dense_product(sup_matrix(n, n, a), NULL, trans, MOST_VECTORS, v,
                         alone);
      for (int threads = 2; threads <= 7; threads += 1 + threads / 3) {
        hone_mem mem = {0};
        hone_pool *pool;
        hone_pool_create(&pool, &mem, threads);
        ct_note("n %d, trans %d, %d threads", (int)n, trans, threads);
        hone_dense_product(sup_matrix(n, n, a), pool, trans, MOST_VECTORS, v,
                           p);
        CHECK_MEM_EQ(p, alone, (size_t)size * sizeof *p);
        hone_pool_destroy(&pool, &mem);
      }
    }
    sup_free(a);
    sup_free(v);
    sup_free(alone);
    sup_free(p);
  }
}

/* NaN and infinite products spoil the entries that they belong to only. */
TEST(product, keeps_nan_where_it_belongs) {
  enum { ORDER = 70 };
  double *a = sup_filled(ORDER * ORDER, 1.0), *v = sup_filled(ORDER, 1.0);
  double *p = sup_filled(ORDER, 0.0);
  a[66 + 3 * ORDER] = (double)NAN;
  for (int trans = 0; trans < 2; trans++) {
    hone_dense_product(sup_matrix(ORDER, ORDER, a), NULL, trans, 1, v, p);
    for (int64_t i = 0; i < ORDER; i++)
      CHECK_EQ_INT(isnan(p[i]), i == (trans ? 3 : 66));
  }
  sup_free(a);
  sup_free(v);
  sup_free(p);
}
