/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with single-precision factors in single arithmetic
   (cpu_sp/substitution.c), beside plain loops in long double. For real and for
   complex entries. */
#include "cpu_sp/substitution.h"

#include "tests/unit/ct.h"
#include "tests/unit/plain_factors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct threads {
  hone_mem mem;
  hone_pool *pool;
} threads;

static threads start(int count) {
  threads t = {.mem = {.limit = 0}};
  hone_pool_create(&t.pool, &t.mem, count);
  return t;
}

static void end(threads *t) { hone_pool_destroy(&t->pool, &t->mem); }

static void substitute(hone_pool *pool, const pf_sample *s, hone_form form,
                       int base, bool trans, int64_t k, hone_entry *v,
                       int64_t ldv) {
  const hone_factors factors = {form, s->n, s->ld, s->f, s->pivot, base};
  const int64_t size = hone_substitution_work(s->n, k);
  float *work = malloc((size_t)size * sizeof *work);
  if (work == NULL)
    abort();
  for (int64_t i = 0; i < size; i++)
    work[i] = NAN;
  hone_substitute(pool, &factors, trans, k, v, ldv, work);
  free(work);
}

static void check_against_plain(hone_pool *pool, sup_rng *rng, int64_t n,
                                int64_t k, hone_form form, bool trans) {
  const int base = form == HONE_FORM_LU;
  const int64_t ldv = n + 2;
  pf_sample s = pf_make(rng, n, base);
  hone_entry *v = entries_filled(ldv * k, 5.0);
  double size = 0.0, error = 0.0;
  entries_random(rng, n, k, v, ldv);
  hone_entry *from = entries_copy(v, ldv * k);
  hone_wide *want = malloc((size_t)n * sizeof *want);
  REQUIRE(want != NULL);
  ct_note("%s, n %d, k %d, trans %d, %d threads", pf_name(form), (int)n, (int)k,
          trans, hone_pool_threads(pool));
  substitute(pool, &s, form, base, trans, k, v, ldv);
  for (int64_t c = 0; c < k; c++) {
    for (int64_t i = 0; i < n; i++)
      want[i] = (hone_wide)from[i + c * ldv];
    pf_solve(&s, form, base, trans, want);
    for (int64_t i = 0; i < n; i++) {
      const hone_wide off_by = want[i] - (hone_wide)v[i + c * ldv];
      const double off = (double)hone_absl(off_by);
      size = fmax(size, (double)hone_absl(want[i]));
      error = off <= error || isnan(error) ? error : off; /* keeps NaN */
    }
    CHECK(entries_untouched(v + n + c * ldv, 1, 5.0)); /* below n */
  }
  CHECK_LE(error, 4e-6 * size);
  free(want);
  entries_free(v);
  entries_free(from);
  pf_discard(&s);
}

TEST_OF(substitution, agrees_with_plain_loops_for_every_order_and_form) {
  sup_rng rng = {1};
  for (int64_t n = 1; n <= 200; n++)
    for (hone_form form = 0; (int)form < PF_FORMS; form++)
      for (int trans = 0; trans < 2; trans++)
        check_against_plain(NULL, &rng, n, n % 3 == 0 ? 1 : 1 + n % 19, form,
                            trans);
}

TEST_OF(substitution, agrees_with_plain_loops_for_every_number_of_columns) {
  sup_rng rng = {2};
  for (int64_t k = 1; k <= MOST; k++)
    for (hone_form form = 0; (int)form < PF_FORMS; form++)
      for (int trans = 0; trans < 2; trans++)
        check_against_plain(NULL, &rng, 101, k, form, trans);
}

TEST_OF(substitution, agrees_with_plain_loops_on_any_number_of_threads) {
  static const int64_t orders[] = {1, 95, 96, 97, 191, 193, 289, 521};
  static const int64_t columns[] = {1, 2, 17};
  sup_rng rng = {3};
  for (int count = 2; count <= 5; count += 3) {
    threads t = start(count);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
      for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (hone_form form = 0; (int)form < PF_FORMS; form++)
          for (int trans = 0; trans < 2; trans++)
            check_against_plain(t.pool, &rng, orders[i], columns[c], form,
                                trans);
    end(&t);
  }
}

/* Blocks have more rows there than at smaller orders, and all threads share all
   groups of columns. */
TEST_OF(substitution, agrees_with_plain_loops_at_an_order_of_wide_blocks) {
  sup_rng rng = {4};
  threads t = start(3);
  for (int trans = 0; trans < 2; trans++) {
    check_against_plain(t.pool, &rng, 2801, 1, HONE_FORM_LU, trans);
    check_against_plain(t.pool, &rng, 2801, 3, HONE_FORM_LU, trans);
    check_against_plain(t.pool, &rng, 1601, 49, HONE_FORM_LU, trans);
  }
  end(&t);
}

TEST_OF(substitution, gives_the_same_bits_on_any_number_of_threads) {
  enum { N = 1009 };
  sup_rng rng = {5};
  pf_sample s = pf_make(&rng, N, 0);
  hone_entry *v = entries_filled(N * MOST, 0.0);
  entries_random(&rng, N, MOST, v, N);
  for (hone_form form = 0; (int)form < PF_FORMS; form++)
    for (int64_t k = 1; k <= MOST; k = k == 1 ? 17 : k + 47)
      for (int count = 2; count <= 5; count++) {
        threads t = start(count);
        hone_entry *one = entries_copy(v, N * k),
                   *many = entries_copy(v, N * k);
        ct_note("%s, k %d, %d threads", pf_name(form), (int)k, count);
        substitute(NULL, &s, form, 0, count % 2, k, one, N);
        substitute(t.pool, &s, form, 0, count % 2, k, many, N);
        CHECK_MEM_EQ(one, many, (size_t)(N * k) * sizeof *one);
        entries_free(one);
        entries_free(many);
        end(&t);
      }
  entries_free(v);
  pf_discard(&s);
}

/* Column 'at' of k columns has the bits that it has as one of three. */
TEST_OF(substitution, gives_a_column_the_same_bits_beside_any_others) {
  enum { N = 311 };
  sup_rng rng = {6};
  pf_sample s = pf_make(&rng, N, 0);
  hone_entry *v = entries_filled(N * MOST, 0.0);
  entries_random(&rng, N, MOST, v, N);
  for (hone_form form = 0; (int)form < PF_FORMS; form++)
    for (int64_t k = 4; k <= MOST; k += 1 + k / 4) {
      const int64_t at = k * 2 / 3;
      hone_entry *all = entries_copy(v, N * k), *three = entries_copy(v, N * 3);
      memcpy(three + N, v + at * N, N * sizeof *v);
      ct_note("%s, k %d", pf_name(form), (int)k);
      substitute(NULL, &s, form, 0, k % 2, k, all, N);
      substitute(NULL, &s, form, 0, k % 2, 3, three, N);
      CHECK_MEM_EQ(all + at * N, three + N, N * sizeof *v);
      entries_free(all);
      entries_free(three);
    }
  entries_free(v);
  pf_discard(&s);
}

TEST_OF(substitution, solves_for_two_columns_as_for_each_alone) {
  enum { N = 311 };
  sup_rng rng = {9};
  pf_sample s = pf_make(&rng, N, 0);
  hone_entry *v = entries_filled(N * 2, 0.0);
  entries_random(&rng, N, 2, v, N);
  for (hone_form form = 0; (int)form < PF_FORMS; form++) {
    hone_entry *both = entries_copy(v, N * 2), *alone = entries_copy(v, N * 2);
    substitute(NULL, &s, form, 0, false, 2, both, N);
    substitute(NULL, &s, form, 0, false, 1, alone, N);
    substitute(NULL, &s, form, 0, false, 1, alone + N, N);
    CHECK_MEM_EQ(both, alone, N * 2 * sizeof *v);
    entries_free(both);
    entries_free(alone);
  }
  entries_free(v);
  pf_discard(&s);
}

static bool all_finite(int64_t n, const hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    if (!hone_finite(v[i]))
      return false;
  return true;
}

/* An entry that is NaN, or beyond single precision, spoils its own column
   alone. */
TEST_OF(substitution, keeps_nan_and_inf_in_their_column) {
  enum { N = 130, K = 5, AT = 3 };
  const double bad[] = {(double)NAN, (double)INFINITY, 1e200};
  sup_rng rng = {7};
  pf_sample s = pf_make(&rng, N, 0);
  hone_entry *v = entries_filled(N * K, 0.0);
  entries_random(&rng, N, K, v, N);
  for (hone_form form = 0; (int)form < PF_FORMS; form++)
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
      hone_entry *good = entries_copy(v, N * K),
                 *spoilt = entries_copy(v, N * K);
      hone_entry *one = entries_copy(v, N);
      spoilt[AT * N + 60] = one[60] = entries_ending_in(bad[i]);
      ct_note("%s, %g", pf_name(form), bad[i]);
      substitute(NULL, &s, form, 0, i % 2, K, good, N);
      substitute(NULL, &s, form, 0, i % 2, K, spoilt, N);
      substitute(NULL, &s, form, 0, i % 2, 1, one, N);
      CHECK(!all_finite(N, spoilt + AT * N));
      CHECK(!all_finite(N, one));
      CHECK_MEM_EQ(spoilt, good, AT * N * sizeof *v);
      CHECK_MEM_EQ(spoilt + (AT + 1) * N, good + (AT + 1) * N,
                   (K - AT - 1) * N * sizeof *v);
      entries_free(good);
      entries_free(spoilt);
      entries_free(one);
    }
  entries_free(v);
  pf_discard(&s);
}

/* A factor with an entry that is no number spoils every column. */
TEST_OF(substitution, lets_nan_of_the_factors_through) {
  enum { N = 200, K = 20 };
  sup_rng rng = {8};
  pf_sample s = pf_make(&rng, N, 0);
  hone_entry *v = entries_filled(N * K, 0.0);
  entries_random(&rng, N, K, v, N);
  s.f[20 + 150 * s.ld] = s.f[150 + 20 * s.ld] = NAN;
  for (hone_form form = 0; (int)form < PF_FORMS; form++)
    for (int64_t k = 1; k <= K; k += K - 1) {
      hone_entry *x = entries_copy(v, N * k);
      substitute(NULL, &s, form, 0, false, k, x, N);
      for (int64_t c = 0; c < k; c++)
        CHECK(!all_finite(N, x + c * N));
      entries_free(x);
    }
  entries_free(v);
  pf_discard(&s);
}
