/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with single-precision factors in double arithmetic: beside plain loops
   in long double for every form of factors, and, through the engines, on
   matrices whose factors are exact, so that only rounding in double is left. */
#include "cpu_factor/apply.h"

#include "tests/unit/ct.h"
#include "tests/unit/plain_factors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_against_plain(hone_pool *pool, sup_rng *rng, int64_t n,
                                int64_t k, hone_form form, int base,
                                bool trans) {
  pf_sample s = pf_make(rng, n, base);
  const int64_t ldv = n + 2;
  double *v = sup_filled(ldv * k, 5.0), size = 0.0, error = 0.0;
  sup_random(rng, n, k, v, ldv);
  double *from = sup_copy(v, ldv * k);
  const hone_factors factors = {form, n, s.ld, s.f, s.pivot, base};
  ct_note("%s, n %d, k %d, trans %d, base %d", pf_name(form), (int)n, (int)k,
          trans, base);
  hone_apply_32(pool, &factors, trans, k, v, ldv);
  long double *want = malloc((size_t)n * sizeof *want);
  for (int64_t c = 0; c < k; c++) {
    for (int64_t i = 0; i < n; i++)
      want[i] = (long double)from[i + c * ldv];
    pf_solve(&s, form, base, trans, want);
    for (int64_t i = 0; i < n; i++) {
      size = fmax(size, fabs((double)want[i]));
      error =
          fmax(error, fabs((double)(want[i] - (long double)v[i + c * ldv])));
    }
    CHECK_EQ_INT(v[n + c * ldv] - 5.0, 0); /* entries below n are unchanged */
  }
  CHECK_LE(error, 1e-14 * size);
  free(want);
  sup_free(v);
  sup_free(from);
  pf_discard(&s);
}

TEST(apply, agrees_with_plain_loops_for_every_order_and_form) {
  sup_rng rng = {1};
  for (int64_t n = 1; n <= 130; n++)
    for (int form = 0; form < PF_FORMS; form++)
      for (int trans = 0; trans < 2; trans++)
        check_against_plain(NULL, &rng, n, 1 + n % 3, (hone_form)form,
                            form == 0, trans);
}

TEST(apply, agrees_with_plain_loops_for_many_columns_and_blocks) {
  static const int64_t orders[] = {255, 256, 257, 300, 521, 700};
  hone_mem mem = {.limit = 0};
  hone_pool *pool;
  sup_rng rng = {2};
  hone_pool_create(&pool, &mem, 3);
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    for (int form = 0; form < PF_FORMS; form++)
      for (int trans = 0; trans < 2; trans++)
        check_against_plain(i % 2 ? pool : NULL, &rng, orders[i],
                            1 + (int64_t)i, (hone_form)form, 1, trans);
  hone_pool_destroy(&pool, &mem);
}

TEST(apply, agrees_with_plain_loops_from_8_columns_on) {
  static const int64_t orders[] = {1, 5, 48, 191, 193, 241, 400, 500};
  static const int64_t columns[] = {8, 9, 16, 20, 64, 67};
  hone_mem mem = {.limit = 0};
  hone_pool *pool;
  sup_rng rng = {4};
  hone_pool_create(&pool, &mem, 3);
  for (int at = 0; at < 8 * PF_FORMS * 2; at++)
    check_against_plain(at % 3 ? pool : NULL, &rng, orders[at % 8],
                        columns[at % 6], (hone_form)(at / 8 % PF_FORMS), 1,
                        at / 8 / PF_FORMS);
  hone_pool_destroy(&pool, &mem);
}

/* The bits of a column are those that it has on one thread among others. */
TEST(apply, gives_the_same_bits_for_many_columns) {
  enum { N = 450, K = 67, LESS = 9 };
  sup_rng rng = {5};
  pf_sample s = pf_make(&rng, N, 0);
  double *v = sup_filled(N * K, 0.0);
  sup_random(&rng, N, K, v, N);
  for (int form = 0; form < PF_FORMS; form++)
    for (int trans = 0; trans < 2; trans++) {
      const hone_factors f = {(hone_form)form, N, s.ld, s.f, s.pivot, 0};
      double *all = sup_copy(v, N * K);
      hone_mem mem = {.limit = 0};
      hone_pool *pool;
      hone_pool_create(&pool, &mem, 3);
      hone_apply_32(pool, &f, trans, K, all, N);
      hone_pool_destroy(&pool, &mem);
      for (int64_t c = 0; c + LESS <= K; c += 29) {
        double *some = sup_copy(v + c * N, N * LESS);
        hone_apply_32(NULL, &f, trans, LESS, some, N);
        CHECK_MEM_EQ(some, all + c * N, N * LESS * sizeof *some);
        sup_free(some);
      }
      sup_free(all);
    }
  sup_free(v);
  pf_discard(&s);
}

TEST(apply, gives_the_same_bits_on_any_number_of_threads) {
  enum { N = 2100 };
  sup_rng rng = {3};
  pf_sample s = pf_make(&rng, N, 0);
  double *v = sup_filled(N, 0.0);
  sup_random(&rng, N, 1, v, N);
  for (int form = 0; form < PF_FORMS; form++)
    for (int trans = 0; trans < 2; trans++) {
      const hone_factors f = {(hone_form)form, N, s.ld, s.f, s.pivot, 0};
      double *one = sup_copy(v, N), *three = sup_copy(v, N);
      hone_mem mem = {.limit = 0};
      hone_pool *pool;
      hone_pool_create(&pool, &mem, 3);
      hone_apply_32(NULL, &f, trans, 1, one, N);
      hone_apply_32(pool, &f, trans, 1, three, N);
      hone_pool_destroy(&pool, &mem);
      CHECK_MEM_EQ(one, three, N * sizeof *one);
      sup_free(one);
      sup_free(three);
    }
  sup_free(v);
  pf_discard(&s);
}

/* S = L U with few bits in every number: the factors are exact in single
   precision, and the diagonal entries are the pivots. spd: S = U^T U. */
static void exact_product(sup_rng *rng, int64_t n, bool spd, double *a) {
  double *l = sup_filled(n * n, 0.0), *u = sup_filled(n * n, 0.0);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) {
      const bool here = sup_next(rng) % (uint64_t)n < 3;
      const double value = sup_next(rng) % 2 ? 1.0 : -1.0;
      u[i + j * n] = i == j ? 4.0 : here ? value : 0.0;
      if (spd)
        l[j + i * n] = u[i + j * n];
      else
        l[j + i * n] = i == j                            ? 1.0
                       : sup_next(rng) % (uint64_t)n < 3 ? 0.25
                                                         : 0;
    }
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k <= j; k++)
      for (int64_t i = k; i < n && u[k + j * n] != 0.0; i++)
        a[i + j * n] += l[i + k * n] * u[k + j * n];
  sup_free(l);
  sup_free(u);
}

static void check_engine(const hone_engine *engine, int64_t n, bool spd) {
  hone_mem mem = {.limit = 0};
  hone_watch watch = {.progress = NULL};
  sup_rng rng = {(uint64_t)n};
  double *a = sup_filled(n * n, 0.0), *ones = sup_filled(n, 1.0);
  double *x = sup_filled(2 * n, 0.0), *b = sup_filled(n, 0.0);
  int *none = calloc((size_t)n, sizeof *none);
  const hone_scaling scaling = {ones, ones, none, none, false};
  const hone_matrix matrix = *sup_matrix(n, n, a);
  const hone_engine_config config = {.n = n, .mem = &mem, .watch = &watch};
  hone_factor_info info;
  void *self = NULL;
  exact_product(&rng, n, spd, a);
  REQUIRE(engine->create(&self, &config) == HONE_OK);
  REQUIRE(engine->factor(self, &matrix, &scaling, &info) == HONE_OK);
  for (int trans = 0; trans < 2; trans++) {
    ct_note("%s, n %d, trans %d", engine->name, (int)n, trans);
    sup_random(&rng, n, 1, b, n);
    memcpy(x, b, (size_t)n * sizeof *x);
    memcpy(x + n, b, (size_t)n * sizeof *x);
    CHECK_EQ_INT(engine->apply(self, trans, 2, x, n), HONE_OK);
    CHECK_LE(sup_backward_error(n, a, n, trans, x, b), 1e-13);
    CHECK_MEM_EQ(x, x + n, (size_t)n * sizeof *x);
    CHECK_EQ_INT(engine->solve(self, trans, 1, b, n), HONE_OK);
    /* The solve in single arithmetic is less exact. */
    CHECK_LE(1e-10, sup_forward_error(n, b, x));
    CHECK_LE(sup_forward_error(n, b, x), 1e-4);
  }
  engine->destroy(self, &mem);
  CHECK_EQ_INT(mem.held, 0);
  free(none);
  sup_free(a);
  sup_free(ones);
  sup_free(x);
  sup_free(b);
}

TEST(apply, with_exact_factors_is_wrong_by_double_rounding_only) {
  static const int64_t orders[] = {1, 2, 7, 64, 100, 511, 530, 600};
  for (size_t i = 2; i < sizeof orders / sizeof *orders; i++) {
    check_engine(&hone_engine_single, orders[i], false);
    check_engine(&hone_engine_cholesky, orders[i], true);
  }
}
