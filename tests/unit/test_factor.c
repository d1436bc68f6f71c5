/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky factorizations of cpu_factor/, with the kernels of every
   instruction set that this processor has, in both precisions. */
#include "base/isa.h"
#include "cpu_factor/kernels.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct table {
  const hone_factor_kernels *kernels;
  const char *name;
  hone_isa isa;
  double eps;
} table;

static const table tables[] = {
    {&hone_factor_base_32, "base, single", HONE_ISA_BASE, 0x1p-24},
    {&hone_factor_base_64, "base, double", HONE_ISA_BASE, 0x1p-53},
#if defined(__x86_64__)
    {&hone_factor_avx2_32, "avx2, single", HONE_ISA_AVX2, 0x1p-24},
    {&hone_factor_avx2_64, "avx2, double", HONE_ISA_AVX2, 0x1p-53},
    {&hone_factor_avx512_32, "avx512, single", HONE_ISA_AVX512, 0x1p-24},
    {&hone_factor_avx512_64, "avx512, double", HONE_ISA_AVX512, 0x1p-53},
#endif
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static bool can_run(const table *t) { return t->isa <= hone_isa_here(); }

/* A factorization with everything that it needs. */
typedef struct factoring {
  const table *t;
  hone_factoring job;
  hone_mem mem;
  hone_watch watch;
  double *s; /* n x n: what was factored */
} factoring;

static double get(const factoring *f, int64_t i, int64_t j) {
  const int64_t at = i + j * f->job.ldf;
  return f->t->kernels->size == 4 ? (double)((float *)f->job.f)[at]
                                  : ((double *)f->job.f)[at];
}

static void put(const factoring *f, int64_t i, int64_t j, double v) {
  const int64_t at = i + j * f->job.ldf;
  if (f->t->kernels->size == 4)
    ((float *)f->job.f)[at] = (float)v;
  else
    ((double *)f->job.f)[at] = v;
}

/* Rounds entry (i, j) to the precision of the table. */
static void set(factoring *f, int64_t i, int64_t j, double v) {
  f->s[i + j * f->job.n] = f->t->kernels->size == 4 ? (double)(float)v : v;
}

static void begin(factoring *f, const table *t, int64_t n, bool spd,
                  int threads) {
  *f = (factoring){.t = t};
  f->job = (hone_factoring){.kernels = t->kernels,
                            .n = n,
                            .ldf = n + 3,
                            .spd = spd,
                            .watch = &f->watch,
                            .phase = "factor"};
  f->job.f = malloc((size_t)(f->job.ldf * n) * t->kernels->size);
  f->job.pivot = malloc((size_t)n * sizeof(int));
  f->job.work = aligned_alloc(
      64, (size_t)(hone_factor_work(t->kernels, n) + 64) / 64 * 64);
  f->s = sup_filled(n * n, 0.0);
  if (!f->job.f || !f->job.pivot || !f->job.work)
    abort();
  hone_pool_create(&f->job.pool, &f->mem, threads);
}

static void end(factoring *f) {
  hone_pool_destroy(&f->job.pool, &f->mem);
  CHECK_EQ_INT(f->mem.held, 0);
  free(f->job.f);
  free(f->job.pivot);
  free(f->job.work);
  sup_free(f->s);
}

static void fill(factoring *f, uint64_t seed) {
  sup_rng rng = {seed};
  const int64_t n = f->job.n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      set(f, i, j, sup_uniform(&rng) - 0.5);
  for (int64_t j = 0; f->job.spd && j < n; j++)
    for (int64_t i = 0; i <= j; i++)
      set(f, i, j, i == j ? (double)n : f->s[j + i * n]);
}

/* Factors by parts that end before the columns of ends[], the last being n.
   Returns the first zero pivot. */
static int64_t factor(factoring *f, int parts, const int64_t *ends) {
  const int64_t n = f->job.n;
  int64_t zero = -1, before = 0, from = 0;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      put(f, i, j, f->s[i + j * n]);
  for (int p = 0; p < parts; p++) {
    if (p > 0 && !f->job.spd) /* as loading the columns does */
      f->t->kernels->exchange(n - from,
                              (char *)f->job.f + (size_t)(from * f->job.ldf) *
                                                     f->t->kernels->size,
                              f->job.ldf, before, from, f->job.pivot);
    CHECK_EQ_INT(hone_factor_columns(&f->job, from, ends[p], &zero), HONE_OK);
    before = from;
    from = ends[p];
  }
  return zero;
}

static int64_t factor_at_once(factoring *f) { return factor(f, 1, &f->job.n); }

/* The textbook bound of LU is n eps |L| |U| (Higham 2002, theorem 9.3), that
   of Cholesky (n + 1) eps |L| |L|^T (theorem 10.3). A reciprocal and one more
   addition for each panel are allowed for by the 4. */
static void check_product(const factoring *f) {
  const int64_t n = f->job.n;
  const bool spd = f->job.spd;
  int64_t *row = malloc((size_t)n * sizeof *row), wrong = 0, large = 0;
  if (row == NULL)
    abort();
  for (int64_t i = 0; i < n; i++)
    row[i] = i;
  for (int64_t i = 0; i < n && !spd; i++) {
    const int64_t with = f->job.pivot[i] - 1, t = row[i];
    row[i] = row[with];
    row[with] = t;
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = spd ? j : 0; i < n; i++) {
      double sum = 0.0, size = 0.0;
      for (int64_t k = 0; k <= HONE_MIN(i, j); k++) {
        const double l = !spd && i == k ? 1.0 : get(f, i, k);
        const double u = spd ? get(f, j, k) : get(f, k, j);
        sum += l * u;
        size += fabs(l * u);
      }
      const double limit = (double)(n + 4) * (f->t->eps + 0x1p-53) * size;
      wrong += !(fabs(sum - f->s[row[i] + j * n]) <= limit);
      large += !spd && i > j && !(fabs(get(f, i, j)) <= 1.0 + 2.0 * f->t->eps);
    }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(large, 0);
  free(row);
}

static const int64_t orders[] = {1,  2,  7,  15, 16, 17,  31,  32, 33,
                                 48, 63, 95, 96, 97, 130, 193, 230};
enum { ORDERS = sizeof orders / sizeof orders[0] };

TEST(factor, products_of_the_factors_are_the_matrix) {
  for (int t = 0; t < TABLES; t++)
    for (int o = 0; o < ORDERS && can_run(&tables[t]); o++)
      for (int spd = 0; spd < 2; spd++) {
        factoring f;
        begin(&f, &tables[t], orders[o], spd, 1);
        ct_note("%s, n %d, %s", tables[t].name, (int)orders[o],
                spd ? "Cholesky" : "LU");
        fill(&f, (uint64_t)orders[o]);
        CHECK_EQ_INT(factor_at_once(&f), -1);
        check_product(&f);
        end(&f);
      }
}

TEST(factor, parts_of_any_width_give_factors_as_good) {
  for (int t = 0; t < TABLES; t++)
    for (int spd = 0; spd < 2 && can_run(&tables[t]); spd++) {
      const int64_t ends[3][3] = {
          {1, 40, 210}, {96, 192, 210}, {100, 209, 210}};
      for (int p = 0; p < 3; p++) {
        factoring f;
        begin(&f, &tables[t], 210, spd, 2);
        ct_note("%s, parts %d", tables[t].name, p);
        fill(&f, 5);
        CHECK_EQ_INT(factor(&f, 3, ends[p]), -1);
        check_product(&f);
        end(&f);
      }
    }
}

/* Orders below and above the one from which panels are wider, so that there are
   several block columns, groups and chunks, and packed ones. */
TEST(factor, gives_the_same_bits_for_any_number_of_threads) {
  for (int64_t n = 700; n <= 1600; n += 900)
    for (int spd = 0; spd < 2; spd++) {
      const int64_t ends[] = {192, n};
      char *first = NULL;
      for (int threads = 1; threads <= 5; threads++) {
        factoring f;
        begin(&f, &tables[0], n, spd, threads);
        f.t =
            &(table){hone_factor_kernels_of(32), "", hone_isa_here(), 0x1p-24};
        f.job.kernels = f.t->kernels;
        ct_note("n %d, %d threads", (int)n, threads);
        fill(&f, 9);
        CHECK_EQ_INT(factor(&f, 2, ends), -1);
        const size_t bytes = (size_t)(f.job.ldf * n) * 4;
        for (int64_t j = 0; j < n; j++) /* the rest is not defined */
          for (int64_t i = spd ? 0 : n; i < (spd ? j : f.job.ldf); i++)
            put(&f, i, j, 0.0);
        for (int64_t j = 0; j < n && spd; j++)
          for (int64_t i = n; i < f.job.ldf; i++)
            put(&f, i, j, 0.0);
        if (first == NULL) {
          first = malloc(bytes);
          if (first == NULL)
            abort();
          memcpy(first, f.job.f, bytes);
        }
        CHECK(memcmp(first, f.job.f, bytes) == 0);
        end(&f);
      }
      free(first);
    }
}

TEST(factor, takes_the_first_of_the_largest_entries) {
  for (int t = 0; t < TABLES; t++)
    for (int at = 0; at < 40 && can_run(&tables[t]); at++) {
      factoring f;
      begin(&f, &tables[t], 40, false, 1);
      ct_note("%s, row %d", tables[t].name, at);
      for (int64_t i = 0; i < 40; i++) { /* column 0 only */
        set(&f, i, i, 1.0);
        set(&f, i, 0, i < at ? 0.25 : (i % 2 ? -0.5 : 0.5));
      }
      (void)factor_at_once(&f);
      CHECK_EQ_INT(f.job.pivot[0], at + 1);
      end(&f);
    }
}

TEST(factor, names_the_first_zero_pivot_and_goes_on) {
  for (int t = 0; t < TABLES; t++)
    for (int64_t c = 0; c < 130 && can_run(&tables[t]); c += 43) {
      factoring f;
      begin(&f, &tables[t], 130, false, 2);
      ct_note("%s, column %d", tables[t].name, (int)c);
      fill(&f, 3);
      for (int64_t i = 0; i < 130; i++) {
        set(&f, i, c, 0.0);
        set(&f, i, 129, 0.0);
      }
      CHECK_EQ_INT(factor_at_once(&f), c);
      for (int64_t i = c; i < 130; i++)
        CHECK_NEAR(get(&f, i, c), 0.0, 0.0);
      check_product(&f);
      end(&f);
    }
}

TEST(factor, does_not_hide_a_nan) {
  for (int t = 0; t < TABLES; t++)
    for (int64_t at = 0; at < 120 && can_run(&tables[t]); at += 17) {
      factoring f;
      begin(&f, &tables[t], 120, false, 1);
      ct_note("%s, place %d", tables[t].name, (int)at);
      fill(&f, 4);
      f.s[at + (at / 2) * 120] = (double)NAN;
      (void)factor_at_once(&f);
      CHECK(isnan(get(&f, 119, 119)));
      end(&f);
    }
}

/* 1 / pivot overflows. */
TEST(factor, divides_by_tiny_pivots) {
  for (int t = 0; t < TABLES; t++)
    for (int spd = 0; spd < 2 && can_run(&tables[t]); spd++) {
      const double tiny = tables[t].kernels->size == 4 ? 0x1p-140 : 0x1p-1060;
      factoring f;
      begin(&f, &tables[t], 20, spd, 1);
      ct_note("%s", tables[t].name);
      for (int64_t i = 0; i < 20; i++)
        set(&f, i, i, spd ? 1.0 : tiny);
      set(&f, 3, 0, spd ? 0.5 : tiny / 2.0);
      CHECK_EQ_INT(factor_at_once(&f), -1);
      CHECK_NEAR(get(&f, 3, 0), 0.5, 0.0);
      for (int64_t i = 4; i < 20; i++)
        CHECK_NEAR(get(&f, i, 0), 0.0, 0.0);
      end(&f);
    }
}

TEST(factor, names_the_first_pivot_of_cholesky_that_is_not_positive) {
  static const double bad[] = {0.0, -1.0, (double)NAN};
  for (int t = 0; t < TABLES; t++)
    for (int64_t c = 0; c < 240 && can_run(&tables[t]); c += 37)
      for (int b = 0; b < 3; b++) {
        factoring f;
        begin(&f, &tables[t], 240, true, 2);
        ct_note("%s, column %d, %d", tables[t].name, (int)c, b);
        for (int64_t i = 0; i < 240; i++)
          set(&f, i, i, i == c ? bad[b] : 1.0);
        set(&f, 239, c, 0.5);
        CHECK_EQ_INT(factor_at_once(&f), c);
        CHECK(b == 2 ? isnan(get(&f, c, c)) : get(&f, c, c) == bad[b]);
        end(&f);
      }
}

static int stop_at(void *user, const hone_progress *event) {
  int *left = user;
  return event->fraction >= 0.0 && (*left)-- == 0;
}

TEST(factor, stops_when_it_is_asked_to) {
  for (int left = 0; left < 4; left++)
    for (int threads = 1; threads < 4; threads += 2) {
      factoring f;
      int64_t zero = -1;
      int count = left;
      begin(&f, &tables[0], 600, false, threads);
      f.watch = (hone_watch){.progress = stop_at, .user = &count};
      fill(&f, 2);
      for (int64_t j = 0; j < 600; j++)
        for (int64_t i = 0; i < 600; i++)
          put(&f, i, j, f.s[i + j * 600]);
      const int st = hone_factor_columns(&f.job, 0, 600, &zero);
      /* With several threads the caller's may see fewer of the steps. */
      CHECK(st == HONE_CANCELLED || (threads > 1 && left > 0));
      CHECK_EQ_INT(zero, -1);
      end(&f);
    }
}
