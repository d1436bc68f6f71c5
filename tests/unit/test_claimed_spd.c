/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller claims that A is symmetric positive definite, and is wrong. What
   holds of the matrix that one triangle of A would define must not be taken for
   true of A. */
#include "base/rounding.h"
#include "tests/unit/ct.h"
#include "tests/unit/mirror_difference.h"
#include "tests/unit/one_entry.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int32_t host = HONE_DEVICE_CPU, cuda = HONE_DEVICE_CUDA;

static bool no_device(int32_t device) {
  char why[160] = "";
  const char *required = getenv("HONE_REQUIRE_GPU");
  if (device == host || hone_engine_cholesky_cuda.probe(why, sizeof why))
    return false;
  ct_note("%s", why);
  CHECK(required == NULL || strcmp(required, "1") != 0);
  return true;
}

#define NEED(device)                                                           \
  do {                                                                         \
    if (no_device(device))                                                     \
      SKIP("no usable CUDA device");                                           \
  } while (0)

typedef struct claim {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_column column;
  hone_report report;
} claim;

static claim make(int32_t device, int64_t n) {
  sup_rng rng = {(uint64_t)n};
  claim c = {.n = n,
             .a = sup_filled(n * n, 0.0),
             .b = sup_filled(n, 0.0),
             .x = sup_filled(n, 0.0)};
  sup_matrix_spd(&rng, n, 30.0, c.a);
  sup_random(&rng, n, 1, c.b, n);
  c.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&c.report, sizeof c.report);
  c.options.device = device;
  c.options.factor_precision = HONE_FACTOR_SINGLE;
  c.options.structure = HONE_STRUCTURE_SPD;
  return c;
}

static int solve(claim *c) {
  c->options.columns = &c->column;
  return hone_solve(c->n, 1, c->a, c->n, c->b, c->n, c->x, c->n, &c->options,
                    &c->report);
}

static void discard(claim *c) {
  sup_free(c->a);
  sup_free(c->b);
  sup_free(c->x);
}

/* An entry below the diagonal differs by one bit from its mirror image. The
   error is bounded with all of A: a copy of one triangle is not used. */
static void
believes_a_copy_of_one_triangle_only_where_it_is_the_matrix(const void *arg) {
  NEED(*(const int32_t *)arg);
  for (int unsymmetric = 0; unsymmetric < 2; unsymmetric++) {
    claim c = make(*(const int32_t *)arg, 200);
    if (unsymmetric)
      c.a[150 + 3 * c.n] = nextafter(c.a[150 + 3 * c.n], 10.0);
    ct_note("unsymmetric %d", unsymmetric);
    CHECK_EQ_INT(solve(&c), HONE_OK);
    CHECK_CONTAINS(c.report.path, "single Cholesky");
    CHECK_LE(sup_backward_error(c.n, c.a, c.n, false, c.x, c.b), SUP_LIMIT);
    if (*(const int32_t *)arg == cuda)
      CHECK(unsymmetric ? c.report.device_passes == 0
                        : c.report.device_passes > 0);
    discard(&c);
  }
}

/* Two rows of A are equal; the matrix defined by one triangle would be
   definite. */
static void accepts_nothing_of_a_singular_matrix(const void *arg) {
  NEED(*(const int32_t *)arg);
  for (int consistent = 0; consistent < 2; consistent++) {
    claim c = make(*(const int32_t *)arg, 100);
    const int64_t n = c.n, last = n - 1;
    c.a[0] += 100.0;
    c.a[last * n] = c.a[last * (n + 1)];
    for (int64_t j = 0; j < last; j++)
      c.a[last + j * n] = c.a[j * n];
    for (int64_t i = 0; consistent && i < n; i++) {
      c.b[i] = 0.0;
      for (int64_t j = 0; j < n; j++)
        c.b[i] += c.a[i + j * n];
    }
    ct_note("consistent %d", consistent);
    CHECK_LT(0, abs(solve(&c)));
    CHECK_EQ_INT(c.report.accepted, 0);
    discard(&c);
  }
}

/* The part of A that is not symmetric contracts well, but not for the vector of
   the certificate. Error bounds must hold, or fall back to norms. */
static void bounds_errors_by_the_whole_matrix(const void *arg) {
  NEED(*(const int32_t *)arg);
  for (int k = 1; k <= 5; k++) {
    claim c = make(*(const int32_t *)arg, 80);
    double *truth = sup_filled(c.n, 0.0);
    for (int64_t i = 2; i < c.n; i++)
      c.a[i + c.n] += pow(10.0, -k);
    c.options.criterion = HONE_CRITERION_RESIDUAL;
    c.options.tolerance = 1e-3;
    const int st = solve(&c);
    hone_options exact = HONE_OPTIONS_INIT;
    exact.factor_precision = HONE_FACTOR_DOUBLE;
    exact.extra_precise = 1;
    CHECK_EQ_INT(
        hone_solve(c.n, 1, c.a, c.n, c.b, c.n, truth, c.n, &exact, NULL),
        HONE_OK);
    ct_note("k %d, %s", k, c.report.path);
    CHECK_EQ_INT(st, HONE_OK);
    /* relative to x, as the bound is: 1e-4 of it make a difference here */
    CHECK_LE(sup_forward_error(c.n, truth, c.x), c.column.forward_error);
    sup_free(truth);
    discard(&c);
  }
}

/* E = I - inv(M) A has one large entry, where A differs from its mirrored
   triangle. The column of inv(A) that it makes is 100 times as long as the
   others, and solutions for random vectors hardly grow by it: an estimate by
   such solutions and by inv(M) alone gave an rcond up to 22 times too large. */
static void estimates_the_condition_of_the_whole_matrix(const void *arg) {
  NEED(*(const int32_t *)arg);
  for (int64_t n = 130; n < 260; n += 42)
    for (int k = 0; k < 3; k++) {
      claim c = make(*(const int32_t *)arg, n);
      const int64_t p = n - 1 - 20 * k, q = 5 * k;
      const double by = 100.0 * (double)n;
      one_entry_matrix(n, c.a);
      c.a[p + q * n] += by;
      c.options.factor_precision = HONE_FACTOR_AUTO;
      CHECK_EQ_INT(solve(&c), HONE_OK);
      ct_note("n %d, %s, rcond %g", (int)n, c.report.path, c.report.rcond);
      /* On a device a pivot may come to be negative before that is found. */
      if (*(const int32_t *)arg == host)
        CHECK_CONTAINS(c.report.reason,
                       "Cholesky: the matrix is not symmetric");
      const double truth = one_entry_rcond(n, p, q, by);
      CHECK_LE(truth, 1.1 * c.report.rcond);
      CHECK_LE(c.report.rcond, 3.0 * truth);
      discard(&c);
    }
}

/* Neither of a true claim, however poor the factors are, nor of a wrong one
   where they contract at once. */
static void says_nothing_against_a_claim_that_serves(const void *arg) {
  NEED(*(const int32_t *)arg);
  for (int k = 0; k < 6; k++) {
    claim c = make(*(const int32_t *)arg, 200);
    sup_rng rng = {5};
    sup_matrix_spd(&rng, c.n, k == 0 ? 30.0 : pow(10.0, 5 + k), c.a);
    if (k == 0)
      c.a[150 + 3 * c.n] = nextafter(c.a[150 + 3 * c.n], 10.0);
    (void)solve(&c);
    ct_note("k %d, %s: %s", k, c.report.path, c.report.reason);
    CHECK(strstr(c.report.reason, "not symmetric") == NULL);
    discard(&c);
  }
}

#define ENTRY(name)                                                            \
  { #name, name }
static const struct {
  const char *name;
  void (*run)(const void *at);
} checks[] = {
    ENTRY(believes_a_copy_of_one_triangle_only_where_it_is_the_matrix),
    ENTRY(accepts_nothing_of_a_singular_matrix),
    ENTRY(bounds_errors_by_the_whole_matrix),
    ENTRY(estimates_the_condition_of_the_whole_matrix),
    ENTRY(says_nothing_against_a_claim_that_serves),
};

CT_CONSTRUCTOR static void register_checks(void) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    ct_register("claimed_spd_host", checks[i].name, checks[i].run, &host);
    ct_register("claimed_spd_cuda", checks[i].name, checks[i].run, &cuda);
  }
}

/* Checksums that tell a triangle from its mirror image --------------------- */

static void swap(double *a, int64_t p, int64_t q) {
  const double old = a[p];
  a[p] = a[q];
  a[q] = old;
}

/* Entries go through vectors, those at the end do not. */
TEST(claimed_spd, checksums_are_the_sums_of_those_of_entries) {
  enum { N = 70 };
  uint32_t keys[N];
  claim c = make(host, N);
  hone_mirror_keys(3, N, keys);
  for (int64_t from = 0; from < 9; from++)
    for (int64_t n = 0; from + n <= N; n++) {
      uint64_t sum = 0;
      for (int64_t i = from; i < from + n; i++)
        sum += hone_mirror_sum(1, i, 3, keys, c.a + i);
      CHECK_EQ_INT(hone_mirror_sum(n, from, 3, keys, c.a + from) == sum, 1);
    }
  discard(&c);
}

TEST(claimed_spd, checksums_differ_wherever_a_is_not_symmetric) {
  enum { N = 40 };
  claim c = make(host, N);
  double *a = c.a;
  CHECK_EQ_INT(mirror_difference(N, a) == 0, 1);
  a[3 + 20 * N] = 0.0;
  a[20 + 3 * N] = -0.0;
  CHECK_EQ_INT(mirror_difference(N, a) == 0, 1);
  for (int bit = 0; bit < 64;
       bit++) { /* one bit of one entry, or the same bit of two */
    uint64_t bits[2] = {0};
    memcpy(&bits[0], &a[5 + 2 * N], sizeof *bits);
    memcpy(&bits[1], &a[9 + 4 * N], sizeof *bits);
    for (int k = 0; k < 2; k++) {
      bits[k] ^= (uint64_t)1 << bit;
      memcpy(&a[k ? 9 + 4 * N : 5 + 2 * N], &bits[k], sizeof *bits);
      ct_note("bit %d, %d entries", bit, k + 1);
      CHECK(mirror_difference(N, a) != 0);
    }
    a[5 + 2 * N] = a[2 + 5 * N];
    a[9 + 4 * N] = a[4 + 9 * N];
  }
  CHECK_EQ_INT(mirror_difference(N, a) == 0, 1);
  for (int64_t i = 6; i < N; i++) { /* two entries exchanged */
    swap(a, 5 + 2 * N, i + 2 * N);
    CHECK(mirror_difference(N, a) != 0);
    swap(a, 5 + 2 * N, i + 2 * N);
    swap(a, i + 2 * N, i - 1 + 3 * N); /* on one antidiagonal */
    CHECK(mirror_difference(N, a) != 0);
    swap(a, i + 2 * N, i - 1 + 3 * N);
  }
  CHECK_EQ_INT(mirror_difference(N, a) == 0, 1);
  discard(&c);
}

/* A block of integers whose mirror image was stored without transposing it, and
   differences that add up to zero in every row and column. */
TEST(claimed_spd, checksums_see_differences_that_cancel_each_other) {
  enum { N = 130 };
  claim c = make(host, N);
  double *a = c.a;
  for (int64_t m = 2; m <= 32; m++) {
    for (int64_t i = 0; i < N * N; i++)
      a[i] = i % (N + 1) == 0 ? 1000.0 : 1.0;
    for (int64_t q = 0; q < m; q++)
      for (int64_t p = 0; p < m; p++) {
        const double v = (double)((p * 7 + q * 3 + m) % 11);
        a[10 + p + (60 + q) * N] = a[60 + p + (10 + q) * N] = v;
      }
    ct_note("a block of %d", (int)m);
    CHECK(mirror_difference(N, a) != 0);
  }
  for (int k = 0; k < 60; k++) {
    for (int64_t i = 0; i < N * N; i++)
      a[i] = 1.0;
    CHECK(mirror_difference(N, a) == 0);
    const int64_t i = k, j = 64 + k; /* [1 -1; -1 1] is added to ones */
    a[i + j * N] = a[i + 1 + (j + 1) * N] = 2.0;
    a[i + 1 + j * N] = a[i + (j + 1) * N] = 0.0;
    CHECK(mirror_difference(N, a) != 0);
    a[i + j * N] = a[i + 1 + (j + 1) * N] = 1.0 + 0x1p-20;
    a[i + 1 + j * N] = a[i + (j + 1) * N] = 1.0 - 0x1p-20;
    CHECK(mirror_difference(N, a) != 0);
  }
  discard(&c);
}
