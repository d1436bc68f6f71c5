/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric matrices on a GPU that nobody claimed to be symmetric: Cholesky
   takes those of which a sample is symmetric, and compares the triangles of all
   of A on its way to the device. */
#include "api/hone.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1100 };

typedef struct problem {
  double *a, *b, *x;
  hone_report report;
} problem;

static problem make(void) {
  sup_rng rng = {N};
  problem p = {.a = sup_filled((int64_t)N * N, 0.0),
               .b = sup_filled(N, 0.0),
               .x = sup_filled(N, 0.0)};
  sup_random(&rng, N, N, p.a, N);
  for (int64_t j = 0; j < N; j++) {
    p.a[j * (N + 1)] += N;
    for (int64_t i = 0; i < j; i++)
      p.a[i + j * N] = p.a[j + i * N];
  }
  sup_random(&rng, N, 1, p.b, N);
  return p;
}

/* a: A, or its copy in a device's memory. */
static int solve_with(problem *p, const double *a) {
  hone_options options = HONE_OPTIONS_INIT;
  hone_report_init(&p->report, sizeof p->report);
  options.device = HONE_DEVICE_CUDA;
  const int st = hone_solve(N, 1, a, N, p->b, N, p->x, N, &options, &p->report);
  ct_note("%s; %s", p->report.path, p->report.reason);
  return st;
}

static int solve(problem *p) { return solve_with(p, p->a); }

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

TEST(device_symmetry, is_found_on_the_way_there) {
  NEED_DEVICE();
  problem p = make();
  CHECK_EQ_INT(solve(&p), HONE_OK);
  CHECK_CONTAINS(p.report.path, "single Cholesky (");
  CHECK(strstr(p.report.path, "LU") == NULL);
  CHECK_EQ_INT(p.report.structure, HONE_FOUND_DEFINITE);
  CHECK_LE(sup_backward_error(N, p.a, N, false, p.x, p.b), SUP_LIMIT);
  CHECK_LT(p.report.to_device_bytes, (int64_t)N * N * 5); /* of 8 */
  discard(&p);
}

/* The entry is not in the sample (test_direct_detection.c). NaN there is found
   as anywhere else. */
TEST(device_symmetry, that_is_only_in_a_sample_is_not_believed) {
  NEED_DEVICE();
  const double values[] = {0.0, nextafter(1.0, 2.0), (double)NAN};
  for (int v = 0; v < 3; v++) {
    problem p = make();
    double *const entry = p.a + 1000 + 950 * N;
    *entry = v == 1 ? values[v] * *entry : values[v];
    const int st = solve(&p);
    if (v == 2) {
      CHECK_EQ_INT(st, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(p.report.bad_row, 1000);
      CHECK_EQ_INT(p.report.bad_col, 950);
    } else {
      CHECK_EQ_INT(st, HONE_OK);
      CHECK_EQ_INT(strncmp(p.report.path, "single LU (", 11), 0);
      CHECK_CONTAINS(p.report.reason,
                     "single Cholesky: the matrix is not symmetric");
      CHECK_EQ_INT(p.report.structure, HONE_FOUND_GENERAL);
      CHECK_LE(sup_backward_error(N, p.a, N, false, p.x, p.b), SUP_LIMIT);
    }
    discard(&p);
  }
}

/* An eigenvalue is negative: LU follows with the copy and norms of all of A. */
TEST(device_symmetry, of_a_matrix_that_is_not_definite_is_followed_by_lu) {
  NEED_DEVICE();
  problem p = make();
  for (int k = 0; k < 3; k++) {
    p.a[(900 + k) * (N + 1)] = 1.0;
    for (int l = 0; l < 3; l++)
      if (l != k)
        p.a[900 + l + (900 + k) * N] = -0.75;
  }
  double norm1 = 0.0;
  for (int64_t j = 0; j < N; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < N; i++)
      sum += fabs(p.a[i + j * N]);
    norm1 = fmax(norm1, sum);
  }
  CHECK_EQ_INT(solve(&p), HONE_OK);
  CHECK_CONTAINS(p.report.path, "single Cholesky (");
  CHECK_CONTAINS(p.report.path, "set aside, single LU");
  CHECK_EQ_INT(p.report.structure, HONE_FOUND_DEFINITE);
  CHECK_NEAR(p.report.norm1, norm1, 1e-12 * norm1);
  CHECK_LE(sup_backward_error(N, p.a, N, false, p.x, p.b), SUP_LIMIT);
  discard(&p);
}

/* The device compares the triangles where they lie, and the host fetches a few
   columns. */
TEST(device_symmetry, of_a_matrix_in_its_memory_is_found_there) {
  NEED_DEVICE();
  device_begin();
  for (int symmetric = 0; symmetric < 2; symmetric++) {
    problem p = make();
    const int64_t bytes = (int64_t)N * N * (int64_t)sizeof(double);
    double *there = device_is_true() ? device_alloc((int64_t)N * N)
                                     : fake_alloc((size_t)bytes, true);
    if (!symmetric)
      p.a[1000 + 950 * N] *= 1.0 + 0x1p-50;
    device_put(there, p.a, (size_t)bytes);
    CHECK_EQ_INT(solve_with(&p, there), HONE_OK);
    CHECK_EQ_INT(strncmp(p.report.path,
                         symmetric ? "single Cholesky (" : "single LU (", 11),
                 0);
    CHECK_EQ_INT(p.report.structure,
                 symmetric ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL);
    CHECK_CONTAINS(p.report.path, "A projected by the device");
    CHECK_EQ_INT(strstr(p.report.reason, "the matrix is not symmetric") != NULL,
                 !symmetric);
    CHECK_LE(sup_backward_error(N, p.a, N, false, p.x, p.b), SUP_LIMIT);
    CHECK_LE(p.report.from_device_bytes, N * 8 * 80);
    device_free(there);
    discard(&p);
  }
  device_end();
}
