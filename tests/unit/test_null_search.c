/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a null vector, by itself and through the public calls: a
   singular matrix is refused without a factorization in double, and no regular
   one is. */
#include "refine/null_search.h"

#include "tests/unit/ct.h"
#include "tests/unit/reference.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

/* ---- By itself ------------------------------------------------------------
 */

enum { N = 90 };

typedef struct searched {
  hone_mem mem;
  hone_watch watch;
  hone_scaling scaling;
  hone_matrix matrix;
  hone_factor_info info;
  double a[N * N], v[N], ones[N], *scratch;
  int none[N];
  void *self;
  hone_factored f;
  hone_null_search search;
} searched;

static double norm1(const double *a) {
  double norm = 0.0;
  for (int j = 0; j < N; j++) {
    double sum = 0.0;
    for (int i = 0; i < N; i++)
      sum += fabs(a[i + j * N]);
    norm = fmax(norm, sum);
  }
  return norm;
}

/* Searches with the single factors of s->a. */
static void begin_search(searched *s) {
  const hone_engine_config config = {
      .n = N, .mem = &s->mem, .watch = &s->watch};
  REQUIRE(hone_engine_single.create(&s->self, &config) == HONE_OK);
  s->matrix = *sup_matrix(N, N, s->a);
  for (int i = 0; i < N; i++)
    s->ones[i] = 1.0;
  s->scaling = (hone_scaling){s->ones, s->ones, s->none, s->none, false};
  REQUIRE(hone_engine_single.factor(s->self, &s->matrix, &s->scaling,
                                    &s->info) == HONE_OK);
  s->f = (hone_factored){.engine = &hone_engine_single,
                         .self = s->self,
                         .a = &s->matrix,
                         .scaling = &s->scaling};
  s->scratch = sup_filled(hone_null_search_scratch(N), (double)NAN);
  s->search = (hone_null_search){
      .f = &s->f, .norm1 = norm1(s->a), .v = s->v, .scratch = s->scratch};
  CHECK_EQ_INT(hone_null_search_begin(&s->search), HONE_OK);
}

static void tear_down(searched *s) {
  hone_engine_single.destroy(s->self, &s->mem);
  sup_free(s->scratch);
}

/* a = a (I - v v^T / v^T v) for 'count' random vectors v: the columns become
   dependent except for rounding. */
static void remove_directions(sup_rng *rng, int count, double *a) {
  for (int k = 0; k < count; k++) {
    double v[N], image[N], square = 0.0;
    sup_random(rng, N, 1, v, N);
    sup_multiply(N, a, N, false, v, image);
    for (int i = 0; i < N; i++)
      square += v[i] * v[i];
    for (int j = 0; j < N; j++)
      for (int i = 0; i < N; i++)
        a[i + j * N] -= image[i] * v[j] / square;
  }
}

TEST(null_search, proves_dependent_columns) {
  for (int k = 0; k < 60; k++) {
    searched s = {.info.growth = 0.0};
    sup_rng rng = {(uint64_t)k};
    ct_note("matrix %d", k);
    sup_random(&rng, N, N, s.a, N);
    remove_directions(&rng, 1 + k % 7, s.a);
    begin_search(&s);
    CHECK(hone_null_search_proves(&s.search));
    CHECK_LE(2, s.search.passes);
    tear_down(&s);
  }
}

/* The bound is never below what any vector attains, 1 / ||inv(A)||_1. */
TEST(null_search, proves_nothing_of_regular_matrices) {
  static const double conds[] = {1e3, 1e7, 1e9, 1e11, 1e13, 1e14};
  for (int k = 0; k < 24; k++) {
    searched s = {.info.growth = 0.0};
    sup_rng rng = {(uint64_t)k};
    ct_note("matrix %d", k);
    sup_matrix_cond(&rng, N, k < 12 ? SUP_ONE_SMALL : SUP_ARITHMETIC,
                    conds[k % 6], s.a, N);
    begin_search(&s);
    CHECK(!hone_null_search_proves(&s.search));
    CHECK_LE(0.99 / ref_inverse_norm1(N, s.a), s.search.least);
    tear_down(&s);
  }
}

/* Two columns are equal in single precision, but not in double where 'away' is
   not zero. */
TEST(null_search, zero_pivots_are_replaced) {
  static const double aways[] = {0.0, 1e-10, 1e-12};
  for (int k = 0; k < 3; k++) {
    searched s = {.info.growth = 0.0};
    sup_rng rng = {4};
    int64_t row = -1, col = -1;
    ct_note("away %g", aways[k]);
    for (int i = 0; i < N * N; i++) /* integers: the elimination is exact */
      s.a[i] = i % (N + 1) == 0 ? 4.0 : 0.0;
    for (int i = 0; i < N; i++)
      s.a[i + 20 * N] = s.a[i + 31 * N] = (double)(sup_next(&rng) % 4);
    s.a[20 + 20 * N] = s.a[20 + 31 * N] = 4.0;
    s.a[31 + 20 * N] = 2.0;
    s.a[31 + 31 * N] = 2.0 + aways[k];
    begin_search(&s);
    CHECK(s.info.zero_pivot >= 0 && s.info.replaced);
    CHECK(isfinite(s.info.growth));
    CHECK_EQ_INT(hone_null_search_proves(&s.search), k == 0);
    CHECK_EQ_INT(hone_null_search_exact(&s.search), k == 0);
    hone_engine_single.smallest_pivot(s.self, false, &row, &col);
    CHECK_EQ_INT(row, 31);
    CHECK(col == 31 || col == 20);
    tear_down(&s);
  }
}

/* ---- Through the public calls ---------------------------------------------
 */

typedef struct problem {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} problem;

static problem make(int64_t n, uint64_t seed) {
  sup_rng rng = {seed};
  problem p = {.n = n,
               .a = sup_filled(n * n, 0.0),
               .b = sup_filled(n, 0.0),
               .x = sup_filled(n, 77.0)};
  sup_random(&rng, n, n, p.a, n);
  sup_random(&rng, n, 1, p.b, n);
  p.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p.report, sizeof p.report);
  p.options.factor_precision = HONE_FACTOR_SINGLE;
  p.options.device = HONE_DEVICE_CPU;
  p.options.deterministic = 1; /* the same draws every time */
  return p;
}

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

static int solve(problem *p) {
  return hone_solve(p->n, 1, p->a, p->n, p->b, p->n, p->x, p->n, &p->options,
                    &p->report);
}

enum { EQUAL_COLUMNS, EQUAL_ROWS, SUM_OF_COLUMNS, RANK_HALF, ISLANDS, KINDS };

/* The islands are networks without ground. */
static void make_singular(problem *p, int kind) {
  const int64_t n = p->n, half = n / 2;
  sup_rng rng = {(uint64_t)n};
  if (kind == ISLANDS)
    memset(p->a, 0, (size_t)(n * n) * sizeof *p->a);
  for (int64_t i = 0; i < n; i++) {
    double *row = p->a + i;
    if (kind == EQUAL_COLUMNS)
      row[3 * n] = row[half * n];
    else if (kind == EQUAL_ROWS)
      p->a[3 + i * n] = p->a[half + i * n];
    else if (kind == SUM_OF_COLUMNS)
      row[3 * n] = row[half * n] + row[(half + 1) * n];
    for (int64_t j = 0; kind == RANK_HALF && j < half; j++)
      row[(half + j) * n] = ldexp(row[j * n], 1) + row[(j + 1) % half * n];
    for (int k = 0; kind == ISLANDS && k < 3; k++) {
      const int64_t j =
          (i + 4 * (int64_t)(1 + sup_next(&rng) % 9)) % (n - n % 4);
      if (i >= n - n % 4 || i == j)
        continue;
      p->a[i + i * n] += 1.0;
      p->a[j + j * n] += 1.0;
      p->a[i + j * n] -= 1.0;
      p->a[j + i * n] -= 1.0;
    }
    if (kind == ISLANDS && i >= n - n % 4)
      row[i * n] = 1.0;
  }
}

TEST(null_search, singular_matrices_are_refused_without_double_factors) {
  static const int64_t orders[] = {13, 40, 64, 101, 250, 520, 700};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
    for (int kind = 0; kind < KINDS; kind++) {
      problem p = make(orders[o], (uint64_t)kind);
      ct_note("order %d, kind %d", (int)orders[o], kind);
      p.options.structure = HONE_STRUCTURE_GENERAL;
      make_singular(&p, kind);
      const int st = solve(&p);
      CHECK(st == HONE_ILL_CONDITIONED || st == HONE_SINGULAR);
      CHECK(strstr(p.report.path, "double") == NULL);
      CHECK(p.report.fallback_ms == 0.0);
      CHECK_EQ_INT(p.report.accepted, 0);
      CHECK_LE(1, p.report.null_count);
      CHECK_LE(1, p.report.dependent_count);
      if (st == HONE_SINGULAR) {
        CHECK(sup_untouched(p.x, p.n, 77.0));
        CHECK_LE(0, p.report.bad_col);
      } else {
        CHECK_LE(p.report.rcond, SUP_EPS);
        CHECK_LE(sup_backward_error(p.n, p.a, p.n, 0, p.x, p.b), 1e-10);
      }
      if (kind == EQUAL_COLUMNS) {
        CHECK_EQ_INT(p.report.null_count, 2);
        CHECK_EQ_INT(p.report.null_index[0], 3);
        CHECK_EQ_INT(p.report.null_index[1], p.n / 2);
        CHECK_NEAR(p.report.null_weight[0], sqrt(0.5), 1e-12);
        CHECK_NEAR(p.report.null_weight[1], -sqrt(0.5), 1e-12);
      }
      discard(&p);
    }
}

/* In single precision the columns that differ by 1e-10 are equal. */
TEST(null_search, almost_equal_columns_are_solved) {
  static const double aways[] = {1e-6, 1e-10, 1e-12};
  static const int64_t orders[] = {13, 64, 101, 300, 520};
  for (int k = 0; k < 15; k++) {
    problem p = make(orders[k / 3], (uint64_t)k);
    sup_rng rng = {(uint64_t)(100 + k)};
    double *hi = sup_filled(p.n, 0.0), *lo = sup_filled(p.n, 0.0);
    ct_note("order %d, away %g", (int)p.n, aways[k % 3]);
    for (int64_t i = 0; i < p.n; i++)
      p.a[i + 3 * p.n] = p.a[i + 8 * p.n] + aways[k % 3] * sup_uniform(&rng);
    CHECK_EQ_INT(solve(&p), HONE_OK);
    CHECK_LE(sup_backward_error(p.n, p.a, p.n, 0, p.x, p.b), SUP_LIMIT);
    const bool known = ref_solve(p.n, p.a, false, 1, p.b, hi, lo);
    CHECK(known || p.n > 64);
    if (known)
      CHECK_LE(ref_error(p.n, p.x, hi, lo), p.report.forward_error);
    CHECK_LE(p.report.forward_error, 0.1);
    sup_free(hi);
    sup_free(lo);
    discard(&p);
  }
}
