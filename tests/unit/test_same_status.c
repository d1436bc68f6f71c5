/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices that double precision cannot tell from singular ones: the status is
   the same on a CUDA device, true or emulated, as on the CPU, and so is that of
   a solution that overflows. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Matrices ------------------------------------------------------------ */

static void hilbert(int64_t n, double *a) {
  for (int64_t k = 0; k < n * n; k++)
    a[k] = 1.0 / (double)(k % n + k / n + 1);
}

/* Not symmetric. */
static void cauchy(int64_t n, double *a) {
  for (int64_t k = 0; k < n * n; k++)
    a[k] = 1.0 / ((double)(k % n) + 2.0 * (double)(k / n) + 1.5);
}

/* Random points on a line, many of them near to each other. */
static void gaussian(int64_t n, double *a) {
  sup_rng rng = {3};
  double *x = sup_filled(n, 0.0);
  sup_random(&rng, n, 1, x, n);
  for (int64_t k = 0; k < n * n; k++) {
    const double d = x[k % n] - x[k / n];
    a[k] = exp(-1e3 * d * d);
  }
  sup_free(x);
}

/* Rank n - 20 but for rounding errors. */
static void low_rank(int64_t n, double *a) {
  const int64_t rank = n - 20;
  sup_rng rng = {4};
  double *u = sup_filled(n * rank, 0.0), *v = sup_filled(n * rank, 0.0);
  sup_random(&rng, n, rank, u, n);
  sup_random(&rng, n, rank, v, n);
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t l = 0; l < rank; l++)
    for (int64_t k = 0; k < n * n; k++)
      a[k] += u[k % n + l * n] * v[k / n + l * n];
  sup_free(u);
  sup_free(v);
}

static const struct {
  const char *name;
  void (*make)(int64_t n, double *a);
} families[] = {{"Hilbert", hilbert},
                {"Cauchy", cauchy},
                {"Gaussian", gaussian},
                {"rank n - 20", low_rank}};
enum { FAMILIES = sizeof families / sizeof *families };

static sys make(int parts, int family, int64_t n, double scale) {
  sys s = sys_make_of(parts, n, 2);
  sup_rng rng = {6};
  double *a = sup_filled(n * n, 0.0);
  families[family].make(n, a);
  for (int64_t k = 0; k < n * n; k++)
    a[k] *= scale;
  if (parts == 2)
    a = sys_with_phases(&rng, n, n, false, a);
  sup_free(s.a);
  s.a = a;
  ct_note("%s times %g, n %d, parts %d", families[family].name, scale, (int)n,
          parts);
  return s;
}

/* ---- Single systems ------------------------------------------------------ */

/* Solves on the CPU and on the device, which must say this of A. */
static void expect_on_both(sys *s, int status) {
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
    s->options.device = device;
    for (int64_t k = 0; k < sys_doubles(s); k++)
      s->x[k] = UNTOUCHED;
    CHECK_EQ_INT(sys_solve(s), status);
    CHECK_EQ_INT(s->report.accepted, 0);
  }
}

static void refuse_on_both(int parts, int family, double scale) {
  for (int start = HONE_FACTOR_AUTO; start <= HONE_FACTOR_DOUBLE; start++) {
    sys s = make(parts, family, 120, scale);
    s.options.factor_precision = start;
    s.options.trans = start;
    expect_on_both(&s, HONE_ILL_CONDITIONED);
    CHECK(s.report.rcond <= SUP_EPS);
    sys_discard(&s);
  }
}

TEST(same_status, of_matrices_that_are_singular_but_for_rounding) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++)
    for (int family = 0; family < FAMILIES; family++)
      refuse_on_both(parts, family, 1.0);
}

TEST(same_status, of_such_matrices_near_the_ends_of_the_range) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++)
    for (int k = 0; k < 2; k++) {
      refuse_on_both(parts, 0, k == 0 ? 1e200 : 1e-200);
      refuse_on_both(parts, 3, k == 0 ? 1e200 : 1e-200);
    }
}

/* Cholesky comes first where the caller says so, or the library sees it. */
TEST(same_status, of_such_matrices_that_may_be_definite) {
  NEED_DEVICE();
  for (int structure = HONE_STRUCTURE_AUTO; structure <= HONE_STRUCTURE_GENERAL;
       structure++) {
    sys s = make(1, 2, 150, 1.0);
    s.options.structure = structure;
    expect_on_both(&s, HONE_ILL_CONDITIONED);
    sys_discard(&s);
  }
}

TEST(same_status, of_such_matrices_in_a_kept_solver) {
  NEED_DEVICE();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
    sys s = make(1, 1, 120, 1.0);
    s.options.device = device;
    either_solver solver = sys_solver(&s);
    CHECK_EQ_INT(sys_factor(&s, &solver), HONE_OK);
    for (int again = 0; again < 2; again++)
      CHECK_EQ_INT(sys_solve_with(&s, &solver, s.x, &s.report),
                   HONE_ILL_CONDITIONED);
    either_destroy(&solver);
    sys_discard(&s);
  }
}

/* A is well conditioned, and x above 1e400. */
TEST(same_status, of_solutions_that_overflow) {
  NEED_DEVICE();
  for (int k = 0; k < 6; k++) {
    sys s = sys_make_of(1 + k / 3, 60, 1);
    ct_note("parts %d, start %d", s.parts, k % 3);
    s.options.factor_precision = k % 3;
    for (int64_t i = 0; i < s.parts * s.n * s.n; i++)
      s.a[i] *= 1e-200;
    for (int64_t i = 0; i < s.parts * s.n; i++)
      s.b[i] *= 1e200;
    expect_on_both(&s, HONE_OVERFLOW);
    sys_discard(&s);
  }
}

/* ---- Batches ------------------------------------------------------------- */

TEST(same_status, of_such_matrices_in_batches) {
  NEED_DEVICE();
  static const int64_t orders[] = {30, 100, 150};
  for (int k = 0; k < 6; k++) {
    const int64_t n = orders[k / 2];
    bat t = bat_make(1 + k % 2, 2, n, 1);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        bat_entry(&t, 1, i, j)[0] = 1.0 / (double)(i + j + 1);
        bat_entry(&t, 1, i, j)[t.parts - 1] = 1.0 / (double)(i + j + 1);
      }
    for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
      ct_note("n %d, parts %d, device %d", (int)n, t.parts, device);
      t.options.device = device;
      bat_solve(&t);
      CHECK_EQ_INT(t.results[0].status, HONE_OK);
      CHECK_EQ_INT(t.results[1].status, HONE_ILL_CONDITIONED);
    }
    bat_discard(&t);
  }
}
