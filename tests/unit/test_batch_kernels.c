/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of blocks of every instruction set that this processor has, for
   real entries and, compiled with HONE_COMPLEX, for complex ones. */
#include "tests/unit/batch_lot.h"

#ifdef HONE_COMPLEX
static const char *const suite = "batch_kernels_complex";
#else
static const char *const suite = "batch_kernels";
#endif

/* ---- Numbers ------------------------------------------------------------ */

/* a = inv(a), by Gauss-Jordan elimination with partial pivoting. */
static void invert(int64_t n, hone_wide *a) {
  int64_t *pivot = calloc((size_t)n, sizeof *pivot);
  for (int64_t k = 0; k < n; k++) {
    pivot[k] = k;
    for (int64_t i = k + 1; i < n; i++)
      if (hone_absl(a[i + k * n]) > hone_absl(a[pivot[k] + k * n]))
        pivot[k] = i;
    for (int64_t j = 0; j < n; j++) {
      const hone_wide held = a[k + j * n];
      a[k + j * n] = a[pivot[k] + j * n];
      a[pivot[k] + j * n] = held;
    }
    const hone_wide by = 1.0L / a[k + k * n];
    a[k + k * n] = 1.0L;
    for (int64_t j = 0; j < n; j++)
      a[k + j * n] *= by;
    for (int64_t i = 0; i < n; i++) {
      const hone_wide f = a[i + k * n];
      if (i == k)
        continue;
      a[i + k * n] = 0.0L;
      for (int64_t j = 0; j < n; j++)
        a[i + j * n] -= f * a[k + j * n];
    }
  }
  for (int64_t k = n - 1; k >= 0; k--)
    for (int64_t i = 0; i < n; i++) {
      const hone_wide held = a[i + k * n];
      a[i + k * n] = a[i + pivot[k] * n];
      a[i + pivot[k] * n] = held;
    }
  free(pivot);
}

static double norm_1(int64_t n, const hone_wide *a) {
  long double most = 0.0L;
  for (int64_t j = 0; j < n; j++) {
    long double sum = 0.0L;
    for (int64_t i = 0; i < n; i++)
      sum += hone_absl(a[i + j * n]);
    most = sum > most ? sum : most;
  }
  return (double)most;
}

/* 1 / (||A||_1 ||inv(A)||_1). */
static double condition_of(const lot *t, int l) {
  const int64_t n = t->n;
  hone_wide *w = calloc((size_t)(n * n), sizeof *w);
  for (int64_t i = 0; i < n * n; i++)
    w[i] = (hone_wide)((const hone_entry *)t->a[l])[i];
  double norms = norm_1(n, w);
  invert(n, w);
  norms *= norm_1(n, w);
  free(w);
  return 1.0 / norms;
}

/* ---- Checks ------------------------------------------------------------- */

static void check_orders(const hone_block_kernels *k) {
  static const int64_t orders[] = {1,  2,  3,  4,  5,   7,   8,  9,  12,
                                   13, 16, 17, 24, 31,  32,  33, 47, 63,
                                   64, 65, 79, 96, 127, 128, 145};
  reference r = {0};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
    lot t = make(k, orders[o]);
    factor_and_solve(&t);
    for (int l = 0; l < k->lanes; l++) {
      ct_note("%s, n %d, lane %d", k->isa, (int)orders[o], l);
      check_lane(&t, l, &r);
    }
    for (int l = k->lanes; l < MOST; l++)
      CHECK(sup_untouched(t.x[l], orders[o] * HONE_PARTS, -7.0));
    discard(&t);
  }
  reference_free(&r);
}

static void solve_every_order(const void *arg) {
  (void)arg;
  with_tables(check_orders);
}

/* The estimate is a lower bound on the norm of the inverse, and hardly ever
   less than a tenth of it. */
static void check_conditions(const hone_block_kernels *k) {
  for (int64_t n = 1; n <= 40; n += 1 + n / 3)
    for (int graded = 0; graded < 2; graded++) {
      lot t = make(k, n);
      for (int l = 0; l < k->lanes && graded; l++)
        for (int64_t i = 0; i < n * n * HONE_PARTS; i++)
          t.a[l][i] = ldexp(t.a[l][i], (int)(i / HONE_PARTS % n * 23 % 19) +
                                           l * (int)(i / HONE_PARTS / n % 3));
      factor_and_solve(&t);
      for (int l = 0; l < k->lanes; l++) {
        const double rcond = condition_of(&t, l);
        ct_note("%s, n %d, graded %d, lane %d", k->isa, (int)n, graded, l);
        CHECK(t.block.lane[l].serves);
        CHECK_GE(t.block.lane[l].rcond, rcond * (1.0 - 1e-6));
        CHECK_LE(t.block.lane[l].rcond, 10.0 * rcond);
        CHECK(t.block.lane[l].rcond_scaled <= 1.0 + 1e-9);
        if (!graded)
          CHECK_NEAR(t.block.lane[l].rcond_scaled, t.block.lane[l].rcond, 0.0);
      }
      discard(&t);
    }
}

static void estimate_conditions(const void *arg) {
  (void)arg;
  with_tables(check_conditions);
}

/* Upper triangles, so that pivots are the diagonal. */
static void check_pivots(const hone_block_kernels *k) {
  lot t = make(k, 20);
  for (int l = 0; l < k->lanes; l++)
    for (int64_t j = 0; j < 20; j++) {
      for (int64_t i = j; i < 20; i++)
        memset(entry(&t, l, i, j), 0, HONE_PARTS * sizeof(double));
      *entry(&t, l, j, j) = j == 2 * l + 1 ? 4.0 : 8.0 + (double)j;
    }
  factor_and_solve(&t);
  for (int l = 0; l < k->lanes; l++) {
    ct_note("%s, lane %d", k->isa, l);
    CHECK(t.block.lane[l].serves);
    CHECK_EQ_INT(t.block.lane[l].pivot, 2 * l + 1);
  }
  discard(&t);
}

static void name_the_smallest_pivot(const void *arg) {
  (void)arg;
  with_tables(check_pivots);
}

/* Lanes without a matrix, or without a right-hand side; and the others have
   the bits that they have without them. */
static void check_gaps(const hone_block_kernels *k) {
  for (int64_t n = 1; n <= 33; n += 8) {
    lot full = make(k, n);
    factor_and_solve(&full);
    for (int gap = 0; gap < k->lanes; gap++) {
      lot t = make(k, n);
      const bool matrix = gap % 2 == 0;
      ct_note("%s, n %d, gap %d", k->isa, (int)n, gap);
      if (matrix)
        t.matrices[gap].at = NULL;
      t.job.b[gap] = NULL;
      t.job.x[gap] = NULL;
      factor_and_solve(&t);
      CHECK_EQ_INT(t.block.lane[gap].serves, !matrix);
      CHECK(!t.job.column[gap].accepted);
      for (int l = 0; l < k->lanes; l++)
        if (l != gap)
          CHECK_MEM_EQ(t.x[l], full.x[l],
                       (size_t)(n * HONE_PARTS) * sizeof(double));
      discard(&t);
    }
    discard(&full);
  }
}

static void leave_lanes_empty(const void *arg) {
  (void)arg;
  with_tables(check_gaps);
}

/* A matrix that is read by rows and conjugated is the adjoint. */
static void check_forms(const hone_block_kernels *k) {
  for (int64_t n = 2; n <= 20; n += 9) {
    lot t = make(k, n), turned = make(k, n);
    for (int l = 0; l < MOST; l++) {
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
          entry(&turned, l, j, i)[HONE_PARTS - 1] =
              -entry(&t, l, i, j)[HONE_PARTS - 1];
          entry(&turned, l, j, i)[0] = entry(&t, l, i, j)[0];
        }
      turned.matrices[l].row = n;
      turned.matrices[l].column = 1;
      turned.matrices[l].conjugate = true;
    }
    factor_and_solve(&t);
    factor_and_solve(&turned);
    for (int l = 0; l < k->lanes; l++) {
      ct_note("%s, n %d, lane %d", k->isa, (int)n, l);
      CHECK_MEM_EQ(t.x[l], turned.x[l],
                   (size_t)(n * HONE_PARTS) * sizeof(double));
      CHECK_NEAR(t.block.lane[l].norm, turned.block.lane[l].norm, 1e-14);
      CHECK_NEAR(t.block.lane[l].rcond, turned.block.lane[l].rcond,
                 1e-12 * t.block.lane[l].rcond);
    }
    discard(&t);
    discard(&turned);
  }
}

static void read_matrices_by_rows(const void *arg) {
  (void)arg;
  with_tables(check_forms);
}

/* The numbers of a vector of this table's processors. */
static int64_t width_of(const hone_block_kernels *k) {
  int64_t width = 1;
  for (int i = 0; i < TABLES; i++)
    if (tables[i].kernels == k)
      width = INT64_C(2) << tables[i].isa;
  return width;
}

/* Where a part of an entry of the factors is in memory: behind S, whose columns
   are an odd number of vectors apart. */
static double *factor_at(const lot *t, int64_t i, int64_t j, int l, int part) {
  const int64_t width = width_of(t->kernels);
  const bool by_rows = t->kernels->lanes == 1;
  const int64_t ld = (by_rows ? (t->n + width - 1) / width : t->n) | 1;
  const int64_t at = ld * (t->n + j) + (by_rows ? i / width : i);
  return t->memory + (at * HONE_PARTS + part) * width +
         (by_rows ? i % width : l);
}

/* Factors that are wrong by the share 2^-e. The corrections are then shorter
   by that factor only, and an x that needs more of them is refused. */
static void check_spoiled(const hone_block_kernels *k) {
  enum { N = 12 };
  reference r = {0};
  lot good = make(k, N);
  factor_and_solve(&good);
  for (int e = 0; e <= 24; e += 2)
    for (int at = 0; at < N; at += 5) {
      lot t = make(k, N);
      const int lane = (at + e / 2) % k->lanes;
      ct_note("%s, 2^-%d, entry %d, lane %d", k->isa, e, at, lane);
      t.kernels->factor(&t.block, t.matrices, 17);
      CHECK(t.block.lane[lane].serves);
      for (int p = 0; p < HONE_PARTS; p++)
        *factor_at(&t, (at + 3) % N, at, lane, p) *= 1.0 + ldexp(1.0, -e);
      *factor_at(&t, at, at, lane, 0) += ldexp(1.0, 3 - e);
      for (int64_t j = 0; j < N; j++)
        *factor_at(&t, at, j, lane, 0) += ldexp(1.0, 2 - e);
      t.kernels->solve(&t.block, &t.job);
      if (e <= 2)
        CHECK(!t.job.column[lane].accepted);
      if (t.job.column[lane].accepted)
        check_lane(&t, lane, &r);
      else
        CHECK(sup_untouched(t.x[lane], N * HONE_PARTS, -7.0));
      for (int l = 0; l < k->lanes; l++)
        if (l != lane)
          CHECK_MEM_EQ(t.x[l], good.x[l], N * HONE_PARTS * sizeof(double));
      discard(&t);
    }
  discard(&good);
  reference_free(&r);
}

static void refuse_x_of_spoiled_factors(const void *arg) {
  (void)arg;
  with_tables(check_spoiled);
}

/* No correction is made that is not allowed, and the limit is the caller's. */
static void check_limits(const hone_block_kernels *k) {
  lot t = make(k, 9);
  t.job.corrections = 0;
  t.job.limit = 1e-3;
  factor_and_solve(&t);
  for (int l = 0; l < k->lanes; l++) {
    ct_note("%s, lane %d", k->isa, l);
    CHECK(t.job.column[l].accepted);
    CHECK_EQ_INT(t.job.column[l].corrections, 0);
  }
  t.job.limit = 0x1p-80;
  t.job.corrections = CORRECTIONS;
  t.kernels->solve(&t.block, &t.job);
  for (int l = 0; l < k->lanes; l++)
    CHECK(!t.job.column[l].accepted);
  discard(&t);
}

static void keep_the_limits_of_the_caller(const void *arg) {
  (void)arg;
  with_tables(check_limits);
}

/* The verdict of factor on a lane decides about its x: no bound is made of
   factors that do not contract, or of an inverse so large that noise counts. */
static void check_statements(const hone_block_kernels *k) {
  for (int kind = 0; kind < 6; kind++) {
    lot t = make(k, 9);
    const int of = k->lanes > 1 ? 1 : 0;
    hone_block_lane *lane = &t.block.lane[of];
    ct_note("%s, kind %d", k->isa, kind);
    t.kernels->factor(&t.block, t.matrices, 17);
    if (kind == 0)
      lane->inverse = 1e25;
    else if (kind == 1)
      lane->inverse = HONE_NAN;
    else if (kind == 2)
      lane->contraction = 1.0;
    else if (kind == 3)
      lane->contraction = HONE_NAN;
    else if (kind == 4)
      lane->rcond_scaled = 0.0;
    else
      lane->serves = false;
    t.kernels->solve(&t.block, &t.job);
    for (int l = 0; l < k->lanes; l++)
      CHECK_EQ_INT(t.job.column[l].accepted, l != of);
    CHECK(sup_untouched(t.x[of], 9 * HONE_PARTS, -7.0));
    discard(&t);
  }
}

static void refuse_x_that_they_cannot_bound(const void *arg) {
  (void)arg;
  with_tables(check_statements);
}

static void have_the_lanes_of_their_vectors(const void *arg) {
  (void)arg;
  for (int i = 0; i < TABLES; i++)
    CHECK_EQ_INT(tables[i].kernels->lanes, tables[i].lanes);
  const int best = HONE_MIN(2 * (int)hone_isa_here(), (int)TABLES - 2);
  CHECK(hone_block_kernels_here(1) == tables[best].kernels);
  CHECK(hone_block_kernels_here(HONE_BLOCK_UP_TO) == tables[best + 1].kernels);
}

CT_CONSTRUCTOR static void list_checks(void) {
  ct_register(suite, "have_the_lanes_of_their_vectors",
              have_the_lanes_of_their_vectors, NULL);
  ct_register(suite, "solve_every_order", solve_every_order, NULL);
  ct_register(suite, "estimate_conditions", estimate_conditions, NULL);
  ct_register(suite, "name_the_smallest_pivot", name_the_smallest_pivot, NULL);
  ct_register(suite, "leave_lanes_empty", leave_lanes_empty, NULL);
  ct_register(suite, "read_matrices_by_rows", read_matrices_by_rows, NULL);
  ct_register(suite, "refuse_x_of_spoiled_factors", refuse_x_of_spoiled_factors,
              NULL);
  ct_register(suite, "refuse_x_that_they_cannot_bound",
              refuse_x_that_they_cannot_bound, NULL);
  ct_register(suite, "keep_the_limits_of_the_caller",
              keep_the_limits_of_the_caller, NULL);
}
