/* SPDX-License-Identifier: BSD-3-Clause */
/* Two GPUs of one host (options.devices), where there are two: systems of whole
   numbers, whose right-hand sides are exact, so that the error of x is known.
   tests/emulate/ has more, on emulated devices. */
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 8 }; /* entries are whole numbers up to this one */

/* Returns the number of GPUs, by the driver. */
static int gpus(void) {
  int (*init)(unsigned) = NULL, (*count)(int *) = NULL;
  int n = 0;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver != NULL) {
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
  }
  return init && count && init(0) == 0 && count(&n) == 0 ? n : 0;
}

#define NEED_TWO()                                                             \
  do {                                                                         \
    NEED_DEVICE();                                                             \
    if (gpus() < 2)                                                            \
      SKIP("there are fewer than two GPUs");                                   \
  } while (0)

/* Numbers of one part (real) or two (complex); B = op(A) X, k columns. */
typedef struct sys {
  int64_t n, k, parts;
  double *a, *x0, *b, *x;
  hone_options options;
  hone_report report;
} sys;

static double whole(sup_rng *rng) {
  return (double)(int)(sup_next(rng) % (2 * TOP + 1)) - TOP;
}

/* Adds op(A)_ij x_j to the sum, A^H where entries are complex. */
static void add(const sys *s, int64_t i, int64_t j, const double *x,
                double *sum) {
  const bool trans = s->options.trans != HONE_NO_TRANS;
  const double *v = s->a + s->parts * (trans ? j + i * s->n : i + j * s->n);
  if (s->parts == 1) {
    sum[0] += v[0] * x[0];
    return;
  }
  const double im = trans ? -v[1] : v[1];
  sum[0] += v[0] * x[0] - im * x[1];
  sum[1] += v[0] * x[1] + im * x[0];
}

static sys make(int64_t n, int64_t k, int64_t parts, bool definite,
                int32_t trans) {
  sup_rng rng = {(uint64_t)(n + k + parts)};
  sys s = {.n = n, .k = k, .parts = parts};
  s.a = sup_filled(parts * n * n, 0.0);
  s.x0 = sup_filled(parts * n * k, 0.0);
  s.b = sup_filled(parts * n * k, 0.0);
  s.x = sup_filled(parts * n * k, nan(""));
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.report = (hone_report)HONE_REPORT_INIT;
  s.options.device = HONE_DEVICE_CUDA;
  s.options.devices = 2;
  s.options.trans = trans;
  s.options.structure = definite ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_GENERAL;
  for (int64_t i = 0; i < parts * n * n; i++)
    s.a[i] = whole(&rng);
  for (int64_t j = 0; definite && j < n; j++) {
    for (int64_t i = 0; i < j; i++)
      for (int64_t p = 0; p < parts; p++)
        s.a[parts * (j + i * n) + p] =
            (p == 1 ? -1.0 : 1.0) * s.a[parts * (i + j * n) + p];
    s.a[parts * j * (n + 1)] = floor(4.0 * TOP * sqrt((double)n));
    if (parts > 1)
      s.a[parts * j * (n + 1) + 1] = 0.0;
  }
  for (int64_t i = 0; i < parts * n * k; i++)
    s.x0[i] = whole(&rng);
  for (int64_t c = 0; c < k; c++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++)
        add(&s, i, j, s.x0 + parts * (j + c * n), s.b + parts * (i + c * n));
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->x0);
  sup_free(s->b);
  sup_free(s->x);
}

static void check_solution(const sys *s, int status) {
  double error = 0.0;
  CHECK_EQ_INT(status, HONE_OK);
  for (int64_t i = 0; i < s->parts * s->n * s->k; i++) {
    const double e = fabs(s->x[i] - s->x0[i]);
    error = e <= error ? error : e;
  }
  ct_note("n %d, %d columns, %d parts, trans %d: %s", (int)s->n, (int)s->k,
          (int)s->parts, (int)s->options.trans, s->report.path);
  CHECK(strstr(s->report.path, ", 2 GPUs") != NULL);
  CHECK(strstr(s->report.path, "set aside") == NULL);
  CHECK_EQ_INT(s->report.host_passes, 0);
  /* the largest entries of x are TOP, or that in both parts */
  CHECK_LE(error, 1.5 * TOP * s->report.forward_error);
  CHECK_LE(s->report.forward_error, 1e-9);
}

static int solve(sys *s) {
  if (s->parts == 1)
    return hone_solve(s->n, s->k, s->a, s->n, s->b, s->n, s->x, s->n,
                      &s->options, &s->report);
  return hone_z_solve(s->n, s->k, (const hone_complex *)s->a, s->n,
                      (const hone_complex *)s->b, s->n, (hone_complex *)s->x,
                      s->n, &s->options, &s->report);
}

static void check(int64_t n, int64_t k, int64_t parts, bool definite,
                  int32_t trans) {
  sys s = make(n, k, parts, definite, trans);
  check_solution(&s, solve(&s));
  discard(&s);
}

TEST(two_devices, solve_general_systems) {
  NEED_TWO();
  for (int64_t parts = 1; parts <= 2; parts++) {
    const int32_t last = parts > 1 ? HONE_CONJ_TRANS : HONE_TRANS;
    check(600, 1, parts, false, HONE_NO_TRANS);
    check(2501, 1, parts, false, last);
    check(2500, 40, parts, false, HONE_NO_TRANS);
    check(5000 / parts, 1, parts, false, HONE_NO_TRANS);
  }
}

TEST(two_devices, solve_definite_systems) {
  NEED_TWO();
  for (int64_t parts = 1; parts <= 2; parts++) {
    check(700, 3, parts, true, HONE_NO_TRANS);
    check(2600, 70, parts, true, HONE_NO_TRANS);
    check(5000 / parts, 1, parts, true, HONE_NO_TRANS);
  }
}

/* Every call gives the same bits, where the caller wants that. */
TEST(two_devices, repeat_themselves) {
  NEED_TWO();
  sys s = make(3000, 2, 1, false, HONE_NO_TRANS);
  double *first = sup_filled(s.n * s.k, 0.0);
  s.options.deterministic = 1;
  check_solution(&s, solve(&s));
  memcpy(first, s.x, (size_t)(s.n * s.k) * sizeof(double));
  for (int i = 0; i < 5; i++) {
    check_solution(&s, solve(&s));
    CHECK_EQ_INT(memcmp(first, s.x, (size_t)(s.n * s.k) * sizeof(double)), 0);
  }
  sup_free(first);
  discard(&s);
}

/* A solver keeps its factors on both. */
TEST(two_devices, keep_factors) {
  NEED_TWO();
  sys s = make(2700, 5, 1, false, HONE_NO_TRANS);
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solver_create(&solver, s.n, &s.options), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.n, NULL), HONE_OK);
  for (int i = 0; i < 3; i++) {
    const int st = hone_solver_solve(solver, s.k, s.b, s.n, s.x, s.n,
                                     &s.options, &s.report);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK(strstr(s.report.path, ", 2 GPUs") != NULL);
    for (int64_t j = 0; j < s.n * s.k; j++)
      CHECK_NEAR(s.x[j], s.x0[j], 1.5 * TOP * s.report.forward_error);
  }
  hone_solver_destroy(&solver);
  discard(&s);
}

/* They refuse a NaN that one of them gets, and a column that is there twice. */
TEST(two_devices, refuse_what_one_refuses) {
  NEED_TWO();
  sys s = make(1500, 1, 1, false, HONE_NO_TRANS);
  s.a[1499 + 1400 * s.n] = nan("");
  CHECK_EQ_INT(solve(&s), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(s.report.bad_row, 1499);
  CHECK_EQ_INT(s.report.bad_col, 1400);
  memcpy(s.a + 1400 * s.n, s.a + 3 * s.n, (size_t)s.n * sizeof(double));
  const int st = solve(&s);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  discard(&s);
}
