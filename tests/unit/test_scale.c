/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes over A before the factorization: cpu_dp/inspect.c beside plain
   loops in long double, and refine/scale.c, whose powers of two must be exact,
   be undone to the last bit, and leave a level matrix alone. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "cpu_dp/inspect.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inspection --------------------------------------------------------------- */

typedef struct inspected {
  int64_t n;
  hone_dense dense;
  hone_matrix a; /* the matrix as an operator */
  double *store, *scratch;
  hone_inspection seen;
} inspected;

/* a: n x n, zero, with NaN in the padding. */
static void open_inspected(inspected *s, int64_t n, int64_t pad) {
  *s = (inspected){.n = n, .store = sup_filled((n + pad) * n, (double)NAN)};
  s->dense = (hone_dense){n, n + pad, s->store, NULL, false, 0};
  s->a = hone_dense_matrix(&s->dense);
  for (int64_t j = 0; j < n; j++)
    memset(s->store + j * (n + pad), 0, (size_t)n * sizeof(double));
  s->scratch = sup_filled(hone_inspect_scratch(n), (double)NAN);
  s->seen.row_max = sup_filled(n, (double)NAN);
  s->seen.col_max = sup_filled(n, (double)NAN);
}

static void close_inspected(inspected *s) {
  sup_free(s->store);
  sup_free(s->scratch);
  sup_free(s->seen.row_max);
  sup_free(s->seen.col_max);
}

static double *at(const inspected *s, int64_t i, int64_t j) {
  return s->store + i + j * s->dense.lda;
}

/* row, col: exponents of a scaling, or NULL. Maxima are exact; sums in double
   have n terms of one sign. */
static void check_inspection(const inspected *s, const int *row,
                             const int *col) {
  const int64_t n = s->n;
  long double norm1 = 0.0L, norm_inf = 0.0L;
  for (int64_t k = 0; k < n; k++) {
    long double row_sum = 0.0L, col_sum = 0.0L, row_max = 0.0L, col_max = 0.0L;
    for (int64_t i = 0; i < n; i++) {
      int e_row = row ? row[k] + col[i] : 0, e_col = row ? row[i] + col[k] : 0;
      long double in_row = ldexpl(fabsl((long double)*at(s, k, i)), e_row);
      long double in_col = ldexpl(fabsl((long double)*at(s, i, k)), e_col);
      row_sum += in_row;
      col_sum += in_col;
      row_max = fmaxl(row_max, in_row);
      col_max = fmaxl(col_max, in_col);
    }
    CHECK_NEAR(s->seen.row_max[k], row_max, 0.0);
    CHECK_NEAR(s->seen.col_max[k], col_max, 0.0);
    norm1 = fmaxl(norm1, col_sum);
    norm_inf = fmaxl(norm_inf, row_sum);
  }
  const double tol = (double)n * SUP_EPS;
  CHECK_NEAR(s->seen.norm1, norm1, tol * (double)norm1);
  CHECK_NEAR(s->seen.norm_inf, norm_inf, tol * (double)norm_inf);
  CHECK_EQ_INT(s->seen.bad_row, -1);
  CHECK_EQ_INT(s->seen.bad_col, -1);
}

/* A pool of so many threads must give the same bits. */
static void check_same_with_pool(const inspected *s, int threads) {
  const size_t bytes = (size_t)s->n * sizeof(double);
  inspected other = *s;
  hone_mem mem = {0};
  hone_pool *pool;
  other.seen.row_max = sup_filled(s->n, (double)NAN);
  other.seen.col_max = sup_filled(s->n, (double)NAN);
  hone_pool_create(&pool, &mem, threads);
  hone_inspect(&s->a, pool, NULL, s->scratch, &other.seen);
  hone_pool_destroy(&pool, &mem);
  CHECK_MEM_EQ(other.seen.row_max, s->seen.row_max, bytes);
  CHECK_MEM_EQ(other.seen.col_max, s->seen.col_max, bytes);
  CHECK_MEM_EQ(&other.seen.norm1, &s->seen.norm1, sizeof(double));
  CHECK_MEM_EQ(&other.seen.norm_inf, &s->seen.norm_inf, sizeof(double));
  sup_free(other.seen.row_max);
  sup_free(other.seen.col_max);
}

static const int64_t orders[] = {1,   2,   3,   7,   8,   9,   127, 128, 129,
                                 255, 256, 257, 399, 400, 401, 513, 1025};
enum { ORDERS = sizeof orders / sizeof *orders };

TEST(inspect, finds_the_same_maxima_and_norms_with_any_number_of_threads) {
  for (int o = 0; o < ORDERS; o++) {
    const int64_t n = orders[o];
    sup_rng rng = {(uint64_t)n};
    inspected s;
    open_inspected(&s, n, n % 5);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++)
        *at(&s, i, j) = sup_normal(&rng);
    ct_note("n = %d", (int)n);
    hone_inspect(&s.a, NULL, NULL, s.scratch, &s.seen);
    check_inspection(&s, NULL, NULL);
    for (int threads = 2; n >= 399 && threads <= 5; threads++)
      check_same_with_pool(&s, threads);
    close_inspected(&s);
  }
}

TEST(inspect, measures_the_scaled_matrix) {
  for (int o = 0; o < ORDERS - 2; o++) {
    const int64_t n = orders[o];
    sup_rng rng = {(uint64_t)n};
    inspected s;
    open_inspected(&s, n, 1);
    hone_scaling c = {.row = sup_filled(n, 1.0), .col = sup_filled(n, 1.0)};
    int *e = malloc((size_t)(2 * n) * sizeof *e);
    if (e == NULL)
      abort();
    for (int64_t j = 0; j < n; j++) {
      c.row[j] = ldexp(1.0, e[j] = (int)(400.0 * sup_uniform(&rng)));
      c.col[j] = ldexp(1.0, e[n + j] = (int)(400.0 * sup_uniform(&rng)));
      sup_random(&rng, n, 1, at(&s, 0, j), n);
    }
    c.used = true;
    ct_note("n = %d", (int)n);
    hone_inspect(&s.a, NULL, &c, s.scratch, &s.seen);
    check_inspection(&s, e, e + n);
    free(e);
    sup_free(c.row);
    sup_free(c.col);
    close_inspected(&s);
  }
}

/* Three entries are not finite; the first one by columns is reported. */
TEST(inspect, reports_the_first_nan_or_infinity_by_columns) {
  static const double kinds[] = {(double)NAN, (double)INFINITY,
                                 -(double)INFINITY};
  hone_mem mem = {0};
  hone_pool *pool;
  hone_pool_create(&pool, &mem, 3);
  for (int o = 0; o < ORDERS; o++) {
    const int64_t n = orders[o];
    const int64_t place[][2] = {
        {0, 0}, {n - 1, 0}, {n / 2, n / 3}, {0, n - 1}, {n - 1, n - 1}};
    inspected s;
    open_inspected(&s, n, 2);
    for (int p = 0; p < 5; p++) {
      const int64_t row = place[p][0], col = place[p][1];
      for (int64_t i = 0; i < n * s.dense.lda; i++)
        s.store[i] = 1.0;
      *at(&s, row, col) = kinds[p % 3];
      *at(&s, n - 1, n - 1) = kinds[(p + 1) % 3];
      if (col + 1 < n)
        *at(&s, 0, col + 1) = kinds[(p + 2) % 3];
      ct_note("n = %d, row %d, column %d", (int)n, (int)row, (int)col);
      hone_inspect(&s.a, pool, NULL, s.scratch, &s.seen);
      CHECK_EQ_INT(s.seen.bad_row, row);
      CHECK_EQ_INT(s.seen.bad_col, col);
    }
    close_inspected(&s);
  }
  hone_pool_destroy(&pool, &mem);
}

TEST(inspect, takes_a_norm_that_overflows_for_the_largest_number) {
  inspected s;
  open_inspected(&s, 20, 0);
  for (int64_t i = 0; i < 20; i++)
    *at(&s, i, 3) = *at(&s, 4, i) = -1e308;
  hone_inspect(&s.a, NULL, NULL, s.scratch, &s.seen);
  CHECK_EQ_INT(s.seen.bad_row, -1);
  CHECK_EQ_INT(s.seen.bad_col, -1);
  CHECK_NEAR(s.seen.norm1, DBL_MAX, 0.0);
  CHECK_NEAR(s.seen.norm_inf, DBL_MAX, 0.0);
  CHECK_NEAR(s.seen.row_max[4], 1e308, 0.0);
  CHECK_NEAR(s.seen.row_max[5], 1e308, 0.0);
  CHECK_NEAR(s.seen.col_max[5], 1e308, 0.0);
  close_inspected(&s);
}

/* Scaling ------------------------------------------------------------------ */

typedef struct scaled {
  inspected on;
  hone_scaling c;
} scaled;

/* A uniform random matrix, to be graded. */
static void open_scaled(scaled *s, int64_t n) {
  sup_rng rng = {(uint64_t)(77 * n)};
  open_inspected(&s->on, n, 1);
  sup_random(&rng, n, n, s->on.store, s->on.dense.lda);
  s->c = (hone_scaling){.row = sup_filled(n, (double)NAN),
                        .col = sup_filled(n, (double)NAN),
                        .row_exp = malloc((size_t)n * sizeof(int)),
                        .col_exp = malloc((size_t)n * sizeof(int))};
  if (s->c.row_exp == NULL || s->c.col_exp == NULL)
    abort();
}

static void close_scaled(scaled *s) {
  sup_free(s->c.row);
  sup_free(s->c.col);
  free(s->c.row_exp);
  free(s->c.col_exp);
  close_inspected(&s->on);
}

static void find(scaled *s) {
  hone_inspect(&s->on.a, NULL, NULL, s->on.scratch, &s->on.seen);
  const hone_inspection_view sight = {.a = &s->on.a, .scratch = s->on.scratch};
  CHECK_EQ_INT(hone_scale_find(&sight, &s->on.seen, &s->c), HONE_OK);
}

/* The scaling has the powers of two that its exponents say, and the inspection
   is that of S. */
static void check_consistent(const scaled *s) {
  const hone_scaling *c = &s->c;
  for (int64_t i = 0; i < s->on.n; i++) {
    CHECK_NEAR(c->row[i], ldexp(1.0, c->row_exp[i]), 0.0);
    CHECK_NEAR(c->col[i], ldexp(1.0, c->col_exp[i]), 0.0);
    CHECK_LE(abs(c->row_exp[i]), c->used ? HONE_MAX_EXP : 0);
    CHECK_LE(abs(c->col_exp[i]), c->used ? HONE_MAX_EXP : 0);
  }
  check_inspection(&s->on, c->row_exp, c->col_exp);
}

/* The exponents, by ilogb, of the smallest and the largest row or column of
   S. */
static void range_of(const scaled *s, int *low, int *high) {
  *low = INT32_MAX;
  *high = -INT32_MAX;
  for (int64_t i = 0; i < s->on.n; i++) {
    int row = ilogb(s->on.seen.row_max[i]), col = ilogb(s->on.seen.col_max[i]);
    *low = HONE_MIN(*low, HONE_MIN(row, col));
    *high = HONE_MAX(*high, HONE_MAX(row, col));
  }
}

static void check_range(const scaled *s, int low, int high) {
  int is_low, is_high;
  range_of(s, &is_low, &is_high);
  CHECK(s->c.used);
  CHECK_GE(is_low, low);
  CHECK_LE(is_high, high);
}

/* Row i is multiplied by 2^(r i), column j by 2^(c j), relative to the
   middle. */
static void grade(scaled *s, double r, double c) {
  const int64_t n = s->on.n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double y = (double)i / (double)(n - 1) - 0.5;
      double z = (double)j / (double)(n - 1) - 0.5;
      *at(&s->on, i, j) *= exp2(r * y) * exp2(c * z);
    }
}

/* Rows, columns or both are graded by up to 1e24 in all. The maxima come out
   between 2^-7 and 2 (measured), as the sweeps stop at a factor of 2^6. */
TEST(scale, brings_graded_matrices_within_a_factor_of_256) {
  for (int64_t n = 2; n < 130; n = 3 * n + 1)
    for (double grading = 20.0; grading <= 80.0; grading *= 2.0)
      for (int way = 0; way < 4; way++) {
        scaled s;
        ct_note("n = %d, grading 2^%g, way %d", (int)n, grading, way);
        open_scaled(&s, n);
        grade(&s, way == 1 ? 0.0 : grading,
              way == 0   ? 0.0
              : way == 3 ? -grading
                         : grading);
        find(&s);
        check_consistent(&s);
        check_range(&s, -7, 0);
        close_scaled(&s);
      }
}

/* D K D, D = 10^U(-4, 4), as for stiffness in mixed units. */
static void make_mixed_units(scaled *s) {
  const int64_t n = s->on.n;
  sup_rng rng = {(uint64_t)n};
  for (int64_t j = 0; j < n; j++) {
    double d = pow(10.0, 8.0 * sup_uniform(&rng));
    for (int64_t i = 0; i < n; i++) {
      *at(&s->on, i, j) *= d;
      *at(&s->on, j, i) *= d;
    }
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < j; i++)
      *at(&s->on, i, j) = *at(&s->on, j, i);
}

TEST(scale, levels_mixed_units_and_keeps_symmetry) {
  for (int64_t n = 3; n < 200; n *= 4) {
    scaled s;
    ct_note("n = %d", (int)n);
    open_scaled(&s, n);
    make_mixed_units(&s);
    find(&s);
    check_consistent(&s);
    check_range(&s, -7, 0);
    CHECK_MEM_EQ(s.c.row_exp, s.c.col_exp, (size_t)n * sizeof(int));
    close_scaled(&s);
  }
}

/* Many R and C make the same S; those whose largest exponent is smallest are
   taken. Where columns differ most, the first sweep makes r_i a_ij underflow,
   though r_i a_ij c_j does not. */
TEST(scale, levels_units_as_far_apart_as_double_allows) {
  static const int units[][2] = {{720, 0}, {0, 720},   {720, 250}, {-250, 720},
                                 {990, 0}, {0, 990},   {500, 490}, {-490, 500},
                                 {990, 1}, {300, -600}};
  for (int64_t n = 2; n < 130; n = 3 * n + 1)
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
      scaled s;
      int row = 0, col = 0;
      ct_note("n = %d, 2^%d, 2^%d", (int)n, units[u][0], units[u][1]);
      open_scaled(&s, n);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          *at(&s.on, i, j) =
              ldexp(*at(&s.on, i, j), (i % 2 ? -units[u][0] : units[u][0]) +
                                          (j % 2 ? -units[u][1] : units[u][1]));
      find(&s);
      check_consistent(&s);
      check_range(&s, -7, 0);
      for (int64_t i = 0; i < n; i++) {
        row = HONE_MAX(row, abs(s.c.row_exp[i]));
        col = HONE_MAX(col, abs(s.c.col_exp[i]));
      }
      CHECK_LE(HONE_MAX(row, col),
               HONE_MAX(abs(units[u][0]), abs(units[u][1])) + 8);
      close_scaled(&s);
    }
}

/* One entry, row or column is at an end of the range of double. Subnormal
   numbers are scaled as far as exponents go. */
TEST(scale, stays_exact_at_the_ends_of_the_range) {
  static const double ends[] = {1e300, DBL_MAX, 1e-300, 1e-310, 5e-324};
  for (int64_t n = 1; n < 60; n = 4 * n + 3)
    for (int k = 0; k < 5 * 3; k++) {
      const int64_t there = n / 2;
      scaled s;
      ct_note("n = %d, %g, %d", (int)n, ends[k / 3], k % 3);
      open_scaled(&s, n);
      for (int64_t i = 0; i < n; i++)
        if (k % 3 != 0 || i == there)
          *(k % 3 == 1 ? at(&s.on, there, i) : at(&s.on, i, there)) =
              ends[k / 3];
      find(&s);
      check_consistent(&s);
      if (s.c.used)
        check_range(&s, ends[k / 3] < DBL_MIN ? -75 : -8, 0);
      else
        CHECK(k / 3 > 1 && k % 3 == 0); /* one small entry needs no scaling */
      close_scaled(&s);
    }
}

TEST(scale, leaves_level_matrices_alone) {
  static const int exponents[] = {0, 10, -10, 55, -55};
  for (int kind = 0; kind < 4; kind++)
    for (int e = 0; e < 5; e++) {
      const int64_t n = 40;
      sup_rng rng = {3};
      scaled s;
      open_scaled(&s, n);
      if (kind == 1)
        sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1.0, s.on.store,
                        s.on.dense.lda);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
          int uneven = kind == 3 ? (int)(i % 5) : 0; /* up to 2^4 */
          *at(&s.on, i, j) = ldexp(kind == 2 ? i == j : *at(&s.on, i, j),
                                   exponents[e] + uneven);
        }
      ct_note("kind %d, times 2^%d", kind, exponents[e]);
      find(&s);
      CHECK(!s.c.used);
      check_consistent(&s);
      close_scaled(&s);
    }
}

TEST(scale, brings_level_matrices_far_from_1_near_1) {
  static const int exponents[] = {70, -70, 200, -200, 1000, -1000};
  for (int e = 0; e < 6; e++) {
    scaled s;
    ct_note("times 2^%d", exponents[e]);
    open_scaled(&s, 30);
    for (int64_t i = 0; i < 30 * s.on.dense.lda; i++)
      s.on.store[i] = ldexp(s.on.store[i], exponents[e]);
    find(&s);
    check_consistent(&s);
    check_range(&s, -60, 60); /* in this range nothing is scaled */
    close_scaled(&s);
  }
}

/* Vectors ------------------------------------------------------------------ */

enum { LENGTH = 100 };

/* r has exponents from low to low + range; the exponents of R are within most
   of 0. */
static void check_round_trip(sup_rng *rng, int low, int range, int most) {
  double r[LENGTH], v[LENGTH], largest = 0.0;
  int e[LENGTH], undo[LENGTH];
  for (int i = 0; i < LENGTH; i++) {
    e[i] = (int)((2.0 * most + 1.0) * sup_uniform(rng));
    undo[i] = -e[i];
    r[i] = ldexp(sup_uniform(rng),
                 low - e[i] + (int)((sup_uniform(rng) + 0.5) * range));
  }
  r[7] = 0.0;
  const int *row_exp = most > 0 ? e : NULL;
  int k = hone_scale_in(LENGTH, row_exp, r, v);
  for (int i = 0; i < LENGTH; i++) {
    CHECK_NEAR(v[i], ldexp(r[i], k + e[i]), 0.0);
    largest = fmax(largest, fabs(v[i]));
  }
  CHECK_GE(largest, 0.5);
  CHECK_LT(largest, 1.0);
  hone_scale_out(LENGTH, most > 0 ? undo : NULL, k, v);
  CHECK_MEM_EQ(v, r, sizeof r);
}

TEST(scale, converts_vectors_to_and_fro_without_rounding) {
  static const int lows[] = {-1021, -900, -300, 0, 300, 970};
  sup_rng rng = {1};
  for (int k = 0; k < 6; k++) {
    ct_note("exponents from %d", lows[k]);
    for (int round = 0; round < 20; round++) {
      int room = 1000 - abs(lows[k]);
      check_round_trip(&rng, lows[k], lows[k] < -1000 ? 30 : 50, 0);
      if (room >= 100)
        check_round_trip(&rng, lows[k], 50, HONE_MIN(room - 60, 600));
    }
  }
}

/* The largest entry decides, wherever it stands, also with the largest
   exponents of scaling and with subnormal numbers. */
TEST(scale, scales_vectors_by_their_largest_entry_at_the_ends_of_the_range) {
  static const struct {
    double r[3];
    int row_exp[3], k;
    double v[3];
  } cases[] = {
      {{5e-324, 0.0, 0.0}, {0, 0, 0}, 1073, {0.5, 0.0, 0.0}},
      {{5e-324, 0.0, -5e-324}, {1000, 5, 1000}, 73, {0.5, 0.0, -0.5}},
      {{DBL_MAX, 1.0, 0.0}, {0, 0, 0}, -1024, {1 - 0x1p-53, 0x1p-1024, 0.0}},
      {{0x1p1023, 1, 1}, {1000, 0, 0}, -2024, {0.5, 0.0, 0.0}},
      {{0x1p1023, 1, 4}, {-1000, 0, -10}, -24, {0.5, 0x1p-24, 0x1p-32}},
      {{1, 0x1p1000, 3}, {0, -1000, 0}, -2, {0.25, 0.25, 0.75}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    double v[3];
    ct_note("case %d", (int)c);
    CHECK_EQ_INT(hone_scale_in(3, cases[c].row_exp, cases[c].r, v), cases[c].k);
    for (int i = 0; i < 3; i++)
      CHECK_NEAR(v[i], cases[c].v[i], 0.0);
    memcpy(v, cases[c].r, sizeof v);
    CHECK_EQ_INT(hone_scale_in(3, cases[c].row_exp, v, v), cases[c].k);
    CHECK_MEM_EQ(v, cases[c].v, sizeof v); /* also in place */
  }
}
