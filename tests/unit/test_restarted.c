/* SPDX-License-Identifier: BSD-3-Clause */
/* Many right-hand sides, one of which gives up the residuals that follow its
   steps, and begins anew while the steps of the others wait for their product
   with A; and what is reported of a matrix that follows another one. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

enum { N = 400, COLUMNS = 16 };

typedef struct problem {
  double *a, *b, *x;
  hone_column columns[COLUMNS];
  hone_options options;
  hone_report report;
} problem;

/* A block of order 2, whose entries are off by lambda 2^-24 when they are
   rounded, so that corrections of its part of x shrink by a half at best, and a
   matrix that single precision serves well. In the last column only the former
   counts. */
static void fill(problem *p, uint64_t seed) {
  sup_rng rng = {seed};
  const double e = 0x1p-23, t = 0.56 * 2.0 * e / 4.0;
  for (int64_t j = 0; j < N; j++)
    for (int64_t i = 0; i < N; i++)
      p->a[i + j * N] = i < 2 || j < 2
                            ? 0.0
                            : (i == j ? 2.0 : 0.0) + 0.008 * sup_uniform(&rng);
  p->a[0] = p->a[1 + N] = 2.0 - t;
  p->a[1] = p->a[N] = 2.0 - e + t;
  for (int64_t c = 0; c < COLUMNS; c++) {
    double *y = p->x + c * N;
    for (int64_t i = 0; i < N; i++)
      y[i] = 2.0 * sup_uniform(&rng) * (c == COLUMNS - 1 ? 0x1p-45 : 1.0);
    y[0] = c == COLUMNS - 1 ? 0x1p-33 : sup_uniform(&rng);
    y[1] = c == COLUMNS - 1 ? -y[0] : y[0];
    for (int64_t i = 0; i < N; i++) {
      long double sum = 0.0L;
      for (int64_t j = 0; j < N; j++)
        sum += (long double)p->a[i + j * N] * (long double)y[j];
      p->b[i + c * N] = (double)sum;
    }
  }
}

static problem make(void) {
  problem p = {.options = HONE_OPTIONS_INIT, .report = HONE_REPORT_INIT};
  p.a = sup_filled((int64_t)N * N, 0.0);
  p.b = sup_filled((int64_t)N * COLUMNS, 0.0);
  p.x = sup_filled((int64_t)N * COLUMNS, 0.0);
  p.options.device = HONE_DEVICE_CPU;
  p.options.threads = 1;
  p.options.deterministic = 1;
  p.options.factor_precision = HONE_FACTOR_SINGLE;
  p.options.structure = HONE_STRUCTURE_GENERAL;
  return p;
}

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

TEST(restarted, columns_leave_the_steps_of_others_alone) {
  problem p = make();
  p.options.columns = p.columns;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    ct_note("seed %d", (int)seed);
    fill(&p, seed);
    CHECK_EQ_INT(
        hone_solve(N, COLUMNS, p.a, N, p.b, N, p.x, N, &p.options, &p.report),
        HONE_OK);
    /* Nor would a residual of another x be noticed only afterwards. */
    CHECK(strstr(p.report.reason, "measured again") == NULL);
    for (int64_t c = 0; c < COLUMNS; c++) {
      const double error =
          sup_backward_error(N, p.a, N, false, p.x + c * N, p.b + c * N);
      CHECK_EQ_INT(p.columns[c].status, HONE_OK);
      CHECK_LE(error, SUP_LIMIT);
      /* The error itself is found with some of double precision. */
      CHECK_LE(fabs(error - p.columns[c].backward_error), 2.0 * SUP_EPS);
    }
  }
  discard(&p);
}

/* Another matrix is told of after the factors of the first were not enough for
   a solve: its own condition, by the factors that the certificate is of. */
TEST(restarted, updates_are_reported_by_their_own_certificate) {
  double rcond[2];
  for (int climbs = 0; climbs < 2; climbs++) {
    problem p = make();
    sup_rng rng = {5};
    hone_solver *solver = NULL;
    for (int64_t i = 0; i < N * N; i++)
      p.a[i] = 0.008 * sup_uniform(&rng) + (i % (N + 1) == 0 ? 2.0 : 0.0);
    REQUIRE(hone_solver_create(&solver, N, &p.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, p.a, N, &p.report), HONE_OK);
    for (int64_t i = 0; i < N; i++) /* of the smallest numbers, or none */
      p.b[i] = climbs ? ldexp((double)(1 + i % 3), -1073) : 1.0;
    (void)hone_solver_solve(solver, 1, p.b, N, p.x, N, NULL, &p.report);
    CHECK_EQ_INT(p.report.precision, climbs ? 64 : 32);
    for (int64_t i = 0; i < N; i++)
      p.a[i] *= 0.3;
    CHECK_EQ_INT(hone_solver_update(solver, p.a, N, &p.report), HONE_OK);
    rcond[climbs] = p.report.rcond;
    CHECK(strstr(p.report.path, "double") == NULL);
    hone_solver_destroy(&solver);
    discard(&p);
  }
  CHECK(rcond[0] == rcond[1]);
}
