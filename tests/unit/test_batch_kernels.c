/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of blocks of every instruction set that this processor has, for
   real entries and, compiled with HONE_COMPLEX, for complex ones. */
#include "base/isa.h"
#include "cpu_batch/block.h"
#include "tests/gallery/either.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = HONE_BLOCK_LANES, CORRECTIONS = 3 };

#ifdef HONE_COMPLEX
static const char *const suite = "batch_kernels_complex";
#else
static const char *const suite = "batch_kernels";
#endif

static const struct {
  const hone_block_kernels *kernels;
  hone_isa isa;
  int lanes;
} tables[] = {{&hone_block_base, HONE_ISA_BASE, 2},
              {&hone_rows_base, HONE_ISA_BASE, 1},
#if defined(__x86_64__)
              {&hone_block_avx2, HONE_ISA_AVX2, 4},
              {&hone_rows_avx2, HONE_ISA_AVX2, 1},
              {&hone_block_avx512, HONE_ISA_AVX512, 8},
              {&hone_rows_avx512, HONE_ISA_AVX512, 1}
#endif
};
enum { TABLES = sizeof tables / sizeof *tables };

/* A block of systems, each with one right-hand side. Memory holds NaN before
   the kernels write it, and has guards at its ends. */
typedef struct lot {
  const hone_block_kernels *kernels;
  int64_t n;
  double *a[MOST], *b[MOST], *x[MOST], *memory;
  hone_block block;
  hone_block_matrix matrices[MOST];
  hone_block_solve job;
} lot;

static double *entry(const lot *t, int l, int64_t i, int64_t j) {
  return t->a[l] + (i + j * t->n) * HONE_PARTS;
}

static lot make(const hone_block_kernels *kernels, int64_t n) {
  const int64_t bytes = kernels->bytes(n);
  const int64_t of_a = n * n * HONE_PARTS, of_b = n * HONE_PARTS;
  lot t = {.kernels = kernels, .n = n};
  t.memory = sup_aligned(bytes / (int64_t)sizeof(double), HONE_NAN);
  t.block = (hone_block){.n = n, .memory = t.memory, .determinants = true};
  t.job = (hone_block_solve){.limit = SUP_LIMIT, .corrections = CORRECTIONS};
  for (int l = 0; l < MOST; l++) {
    sup_rng rng = {(uint64_t)(l + 10 * n)};
    t.a[l] = sup_filled(of_a, 0.0);
    t.b[l] = sup_filled(of_b, 0.0);
    t.x[l] = sup_filled(of_b, -7.0);
    for (int64_t i = 0; i < of_a; i++)
      t.a[l][i] = sup_uniform(&rng);
    for (int64_t i = 0; i < n; i++)
      *entry(&t, l, i, (i + 1) % n) += 1.0 + sqrt((double)n);
    for (int64_t i = 0; i < of_b; i++)
      t.b[l][i] = sup_uniform(&rng);
    t.matrices[l] = (hone_block_matrix){
        .at = (const hone_entry *)t.a[l], .row = 1, .column = n};
    t.job.b[l] = (const hone_entry *)t.b[l];
    t.job.x[l] = (hone_entry *)t.x[l];
  }
  return t;
}

static void discard(lot *t) {
  for (int l = 0; l < MOST; l++) {
    sup_free(t->a[l]);
    sup_free(t->b[l]);
    sup_free(t->x[l]);
  }
  sup_free(t->memory);
}

static void factor_and_solve(lot *t) {
  t->kernels->factor(&t->block, t->matrices, 17);
  t->kernels->solve(&t->block, &t->job);
}

/* Runs a check with every table. */
static void with_tables(void (*check)(const hone_block_kernels *)) {
  for (int i = 0; i < TABLES; i++)
    if (tables[i].isa <= hone_isa_here())
      check(tables[i].kernels);
}

/* ---- Numbers ------------------------------------------------------------ */

static double largest(int64_t n, const double *v) {
  double most = 0.0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, either_size(HONE_PARTS, v + i * HONE_PARTS));
  return most;
}

/* The modulus of entry i of b - A x, in extended precision. */
static double residual_of(const lot *t, int l, int64_t i) {
  const hone_entry *x = (const hone_entry *)t->x[l];
  hone_wide sum = (hone_wide)((const hone_entry *)t->b[l])[i];
  for (int64_t j = 0; j < t->n; j++)
    sum -= (hone_wide)((const hone_entry *)t->a[l])[i + j * t->n] *
           (hone_wide)x[j];
  return (double)hone_absl(sum);
}

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

static void check_lane(const lot *t, int l, reference *r) {
  const hone_block_column *c = &t->job.column[l];
  const int64_t n = t->n;
  double most = 0.0, norm = 0.0;
  if (!CHECK(t->block.lane[l].serves && c->accepted))
    return;
  const double omega = either_omega(HONE_PARTS, n, t->a[l], t->x[l], t->b[l]);
  CHECK_LE(omega * (1.0 - 1e-12), SUP_LIMIT);
  CHECK_NEAR(c->componentwise, omega, 1e-6 * omega + 1e-24);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < n; j++)
      sum += either_size(HONE_PARTS, entry(t, l, i, j));
    norm = fmax(norm, sum);
    most = fmax(most, residual_of(t, l, i));
  }
  /* The residual in extended precision is itself wrong by some 1e-18. */
  CHECK_NEAR(t->block.lane[l].norm, norm, 1e-13 * norm);
  CHECK_NEAR(c->residual, most / largest(n, t->b[l]),
             0.01 * c->residual + 1e-17);
  CHECK_NEAR(c->normwise, most / norm / largest(n, t->x[l]) / sqrt((double)n),
             0.01 * c->normwise + 1e-18);
  either_solve(r, HONE_PARTS, n, 1, t->a[l], t->b[l]);
  const double distance = (double)either_distance(r, HONE_PARTS, 0, t->x[l]);
  CHECK_LE(distance, c->forward * (1.0 + 1e-9));
  CHECK_LE(c->forward, 1e3 * SUP_EPS / t->block.lane[l].rcond);
  CHECK(c->corrections >= 0 && c->corrections <= CORRECTIONS);
}

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
