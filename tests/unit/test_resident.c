/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines that hold a copy of A and compute residuals with it: whatever they
   return, x is accepted by the caller's own A only: by a residual of the host,
   or by a projection of A where the engine has one. The engine is the host's
   single-precision LU with residuals that are true, zero, too large, or that
   fail. Products A v, which are residuals with b = 0, are true. */
#include "tests/unit/support.h"

#include "api/hone.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

enum { ORDER = 40 };

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad; /* of 113 bits where there is no __float128 */
#endif

typedef enum residuals {
  TRUE_ONES,
  ZERO,
  LARGE,
  FAILING,
  LAST,
  NOTHING, /* zero, and so are the products */
  ANOTHERS /* those of OF_ANOTHER * A, which is factored, too */
} residuals;
static const double OF_ANOTHER = 1.8; /* corrections leave 4/9 of an error */
static residuals kind;
static int asked, expected;
static int fails;      /* how many of the next factorizations fail */
static bool projects;  /* the engine has a projection of A */
static double largest; /* of the last r divided by its den */
static uint64_t drawn_from = 11;

static bool resident(void *self) { return self != NULL; }

/* Without scaling where it is not known yet. */
static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  double one[ORDER];
  int zero[ORDER] = {0};
  for (int i = 0; i < ORDER; i++)
    one[i] = 1.0;
  const hone_scaling none = {one, one, zero, zero, false};
  if (fails > 0) {
    fails--;
    return HONE_DEVICE_FAILED;
  }
  if (kind != ANOTHERS)
    return hone_engine_single.factor(self, a, scaling ? scaling : &none, info);
  static double another[ORDER * ORDER];
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    another[i] = OF_ANOTHER * hone_dense_of(a)->a[i];
  return hone_engine_single.factor(self, sup_matrix(ORDER, ORDER, another),
                                   scaling ? scaling : &none, info);
}

static int inspect(void *self, const hone_matrix *matrix,
                   const hone_scaling *scaling, double *scratch,
                   hone_inspection *seen) {
  const hone_dense *a = hone_dense_of(matrix);
  double *row_sum = scratch, *col_sum = scratch + ORDER;
  (void)self;
  memset(seen->row_max, 0, ORDER * sizeof(double));
  memset(row_sum, 0, ORDER * sizeof(double));
  for (int64_t j = 0; j < ORDER; j++) {
    seen->col_max[j] = col_sum[j] = 0.0;
    for (int64_t i = 0; i < ORDER; i++) {
      double v = fabs(a->a[i + j * a->lda]);
      if (scaling)
        v *= scaling->row[i] * scaling->col[j];
      seen->row_max[i] = fmax(seen->row_max[i], v);
      seen->col_max[j] = fmax(seen->col_max[j], v);
      row_sum[i] += v;
      col_sum[j] += v;
    }
  }
  return HONE_OK;
}

static int residual(void *self, const hone_matrix *matrix, bool trans,
                    const double *x, const double *b, double *r, double *den) {
  const hone_dense *a = hone_dense_of(matrix);
  (void)self;
  asked++;
  if (kind == FAILING)
    return HONE_DEVICE_FAILED;
  bool product = true;
  for (int64_t i = 0; i < ORDER; i++)
    product = product && b[i] == 0.0;
  for (int64_t i = 0; i < ORDER; i++) {
    quad sum = (quad)b[i];
    double size = fabs(b[i]);
    for (int64_t j = 0; j < ORDER; j++) {
      double v = trans ? a->a[j + i * a->lda] : a->a[i + j * a->lda];
      if (kind == ANOTHERS)
        v *= OF_ANOTHER;
      sum -= (quad)v * (quad)x[j];
      size += fabs(v * x[j]);
    }
    r[i] = (double)sum;
    if (kind == NOTHING || (kind == ZERO && !product))
      r[i] = 0.0;
    if (kind == LARGE && !product)
      r[i] = 1.0;
    den[i] = size;
    largest = i == 0 ? 0.0 : largest;
    largest = fmax(largest, fabs((double)sum) / size);
  }
  for (int64_t i = 0; i < ORDER && kind == LAST && largest <= SUP_LIMIT; i++)
    r[i] = 0.0;
  return HONE_OK;
}

static void expect(void *self) { expected += self != NULL; }

static const hone_projection *projection(void *self, const hone_matrix *a,
                                         bool trans) {
  static double v[ORDER], w[ORDER], w_rest[ORDER], u[ORDER];
  static const hone_projection made = {v, w, w_rest, u, false};
  uint64_t seed = 5;
  (void)self;
  hone_projection_draw(ORDER, &seed, v);
  for (int64_t j = 0; j < ORDER; j++) {
    w[j] = w_rest[j] = u[j] = 0.0;
    a->op->project_entry(a, trans, j, v, &w[j], &w_rest[j], &u[j]);
  }
  return &made;
}

typedef struct outcome {
  int status;
  double omega; /* in quadruple precision */
  double error; /* max |x - x_true| / max |x| */
  hone_column column;
  hone_report report;
} outcome;

/* Rounds all to multiples of 2^-20, and makes b = A x_true, exactly. */
static void round_all(double *a, double *x_true, double *b) {
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    a[i] = ldexp(rint(ldexp(a[i], 20)), -20);
  for (int64_t i = 0; i < ORDER; i++)
    b[i] = 0.0;
  for (int64_t j = 0; j < ORDER; j++) {
    x_true[j] = ldexp(rint(ldexp(x_true[j], 20)), -20);
    for (int64_t i = 0; i < ORDER; i++)
      b[i] += a[i + j * ORDER] * x_true[j];
  }
}

static double error_of(const double *x, const double *x_true) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < ORDER; i++) {
    error = fmax(error, fabs(x[i] - x_true[i]));
    size = fmax(size, fabs(x[i]));
  }
  return error / size;
}

static outcome run_to(residuals how, bool fall_back, bool extra) {
  sup_rng rng = {drawn_from};
  hone_engine engine = hone_engine_single;
  engine.name = "resident LU";
  engine.resident = resident;
  engine.factor = factor;
  engine.inspect = inspect;
  engine.residual = residual;
  engine.expect = how == LAST ? expect : NULL;
  engine.projection = projects ? projection : NULL;
  const hone_engine *engines[] = {&engine, &hone_engine_double};
  const hone_request request = {.criterion = HONE_CRITERION_COMPONENTWISE,
                                .limit = SUP_LIMIT,
                                .max_iterations = how == ANOTHERS ? 80 : 0,
                                .extra = extra};
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_ladder ladder;
  outcome o;
  double *a = sup_filled(ORDER * ORDER, 0.0), *b = sup_filled(ORDER, 0.0);
  double *x = sup_filled(ORDER, 0.0), *x_true = sup_filled(ORDER, 0.0);
  sup_random(&rng, ORDER, ORDER, a, ORDER);
  sup_random(&rng, ORDER, 1, x_true, ORDER);
  round_all(a, x_true, b);
  memset(&o, 0, sizeof o);
  kind = how;
  asked = expected = 0;
  CHECK_EQ_INT(sup_ladder_create(&ladder, ORDER, engines, fall_back ? 2 : 1,
                                 &request, &mem, NULL, &watch),
               HONE_OK);
  o.status =
      hone_ladder_factor(&ladder, sup_matrix(ORDER, ORDER, a), &o.report);
  if (o.status == HONE_OK)
    o.status = hone_ladder_solve(&ladder, false, 1, b, ORDER, x, ORDER, NULL, 0,
                                 &o.column, &o.report);
  o.omega = sup_backward_error(ORDER, a, ORDER, false, x, b);
  o.error = error_of(x, x_true);
  hone_ladder_destroy(&ladder);
  CHECK_EQ_INT(mem.held, 0);
  sup_free(a);
  sup_free(b);
  sup_free(x);
  sup_free(x_true);
  return o;
}

static outcome run(residuals how, bool fall_back) {
  return run_to(how, fall_back, false);
}

TEST(resident, residuals_are_computed_there_and_x_is_accepted_here) {
  const outcome o = run(TRUE_ONES, false);
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_LE(o.omega, SUP_LIMIT);
  CHECK_EQ_INT(o.report.host_passes, 1);
  CHECK_GE(o.report.device_passes, 2);
}

TEST(resident, x_is_accepted_by_a_projection_of_a) {
  projects = true;
  const outcome o = run(TRUE_ONES, false);
  projects = false;
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_LE(o.omega, SUP_LIMIT);
  CHECK_EQ_INT(o.report.host_passes, 0);
  CHECK_GE(o.report.device_passes, 2);
}

TEST(resident, a_projection_accepts_no_residual_that_is_not_true) {
  projects = true;
  const outcome zero = run(ZERO, false), last = run(LAST, false);
  const outcome large = run(LARGE, true), failing = run(FAILING, false);
  const outcome nothing = run(NOTHING, false);
  projects = false;
  CHECK_EQ_INT(zero.status, HONE_OK);
  CHECK_LE(zero.omega, SUP_LIMIT);
  CHECK_GE(zero.report.host_passes, 2);
  CHECK_EQ_INT(last.status, HONE_OK);
  CHECK_EQ_INT(last.report.host_passes, 1);
  CHECK_EQ_INT(large.report.precision, 64);
  CHECK_EQ_INT(failing.status, HONE_OK);
  CHECK_GE(failing.report.host_passes, 2);
  CHECK_EQ_INT(nothing.status, HONE_ILL_CONDITIONED);
}

TEST(resident, a_residual_of_zero_is_checked_by_the_host) {
  const outcome o = run(ZERO, false);
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_LE(o.omega, SUP_LIMIT);
  CHECK_GE(o.report.iterations, 1);
  CHECK_GE(o.report.host_passes, 2); /* the first pass did not accept x */
}

/* The residual is true until x is accurate enough, then zero. The host accepts
   x, but solves for its own residual. */
TEST(resident, a_residual_of_zero_is_no_error_bound) {
  const outcome o = run(TRUE_ONES, false), last = run(LAST, false);
  CHECK_EQ_INT(last.status, HONE_OK);
  CHECK_GE(expected, 2);
  CHECK_EQ_INT(last.report.host_passes, 1);
  CHECK_NEAR(last.column.forward_error, o.column.forward_error, 0.0);
}

/* A copy for which every product is zero shows a singular matrix. */
TEST(resident, a_copy_of_zeros_certifies_nothing) {
  const outcome o = run(NOTHING, false);
  CHECK_EQ_INT(o.status, HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(o.report.accepted, 0);
}

/* A copy that is another matrix, of which factors and certificate were made:
   where A refuses the x that it accepts, bounds hold for A all the same. */
TEST(resident, a_copy_that_is_not_a_bounds_no_error) {
  for (drawn_from = 20; drawn_from < 40; drawn_from++) {
    const outcome o = run(ANOTHERS, true);
    CHECK_EQ_INT(o.status, HONE_OK);
    CHECK_EQ_INT(o.report.precision, 32);
    CHECK_LE(o.omega, SUP_LIMIT);
    CHECK_LE(o.error, o.column.forward_error);
    CHECK_CONTAINS(o.report.reason,
                   "the matrix refuses an x that its copy accepts");
  }
  drawn_from = 11;
}

TEST(resident, residuals_that_stay_large_are_not_accepted) {
  CHECK_GE(run(LARGE, false).status, 1);
  const outcome o = run(LARGE, true);
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_LE(o.omega, SUP_LIMIT);
  CHECK_EQ_INT(o.report.precision, 64);
}

TEST(resident, a_residual_that_fails_is_followed_by_the_hosts) {
  const outcome o = run(FAILING, false);
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_LE(o.omega, SUP_LIMIT);
  CHECK_GE(asked, 1);
  CHECK_GE(o.report.host_passes, 2);
}

TEST(resident, extra_precision_accepts_by_the_hosts_residual_too) {
  const outcome o = run_to(TRUE_ONES, false, true);
  CHECK_EQ_INT(o.status, HONE_OK);
  CHECK_NEAR(o.column.backward_error, o.omega, 1e-3 * SUP_EPS);
  CHECK_LE(o.column.forward_error, 8.0 * SUP_EPS);
  CHECK_GE(o.report.device_passes, 3);
  const outcome lie = run_to(ZERO, false, true);
  CHECK_LE(0, lie.status);
  CHECK_NEAR(lie.column.backward_error, lie.omega, 1e-3 * SUP_EPS);
  CHECK_GE(run_to(LARGE, false, true).status, 1);
  const outcome failing = run_to(FAILING, false, true);
  CHECK_EQ_INT(failing.status, HONE_OK);
  CHECK_NEAR(failing.column.backward_error, failing.omega, 1e-3 * SUP_EPS);
}

/* A device that fails once serves without its copy of A, and the report says
   so. */
TEST(resident, a_factorization_that_fails_once_is_tried_again) {
  static const char *const words = "resident LU: the device failed, and is";
  fails = 1;
  const outcome once = run(TRUE_ONES, false);
  CHECK_EQ_INT(fails, 0);
  CHECK_EQ_INT(once.status, HONE_OK);
  CHECK_LE(once.omega, SUP_LIMIT);
  CHECK_CONTAINS(once.report.reason, words);
  CHECK_EQ_INT(once.report.device_passes, 0);
  fails = 2;
  const outcome twice = run(TRUE_ONES, false);
  CHECK_EQ_INT(fails, 0);
  CHECK_EQ_INT(twice.status, HONE_DEVICE_FAILED);
  CHECK_CONTAINS(twice.report.reason, words);
  CHECK(strstr(run(TRUE_ONES, false).report.reason, words) == NULL);
}

/* Where a device begins to solve ahead, a solve sends it b and, for each
   residual, x and b: all corrections and the error bound follow from these. */
TEST(resident, corrections_and_the_error_bound_are_solved_for_ahead) {
  enum { N = 300 };
  char why[128];
  if (!hone_engine_single_cuda.probe(why, sizeof why))
    SKIP(why);
  for (int trans = 0; trans < 2; trans++) {
    sup_rng rng = {12};
    double *a = sup_filled(N * N, 0.0), *b = sup_filled(N, 0.0);
    double *x = sup_filled(N, 0.0);
    hone_options options;
    hone_report before = HONE_REPORT_INIT, solved = HONE_REPORT_INIT;
    hone_solver *solver = NULL;
    options = (hone_options)HONE_OPTIONS_INIT;
    options.device = HONE_DEVICE_CUDA;
    sup_random(&rng, N, N, a, N);
    sup_random(&rng, N, 1, b, N);
    CHECK_EQ_INT(hone_solver_create(&solver, N, &options), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, N, &before), HONE_OK);
    if (trans) /* the first such solve certifies the factors for A^T too */
      CHECK_EQ_INT(
          sup_solver_solve(solver, 1, 1, b, N, x, N, NULL, 0, NULL, &before),
          HONE_OK);
    CHECK_EQ_INT(
        sup_solver_solve(solver, trans, 1, b, N, x, N, NULL, 0, NULL, &solved),
        HONE_OK);
    ct_note("trans %d", trans);
    CHECK_GE(solved.device_passes, 3);
    CHECK_EQ_INT(solved.to_device_bytes - before.to_device_bytes,
                 (1 + 2 * solved.device_passes) * N * (int)sizeof(double));
    hone_solver_destroy(&solver);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}
