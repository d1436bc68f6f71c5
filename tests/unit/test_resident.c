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
#include <time.h>

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
  NOTHING,  /* zero, and so are the products */
  ANOTHERS, /* those of OF_ANOTHER * A, which is factored, too */
  A_COLUMN  /* those of A with another first column, likewise */
} residuals;
static const double OF_ANOTHER = 1.8; /* corrections leave 4/9 of an error */
static residuals kind;
static double first_column[ORDER];
static int asked, expected;
static int fails;      /* how many of the next factorizations fail */
static bool projects;  /* the engine has a projection of A */
static double largest; /* of the last r divided by its den */
static uint64_t drawn_from = 11;

static bool resident(void *self) { return self != NULL; }

static double of_copy(const hone_dense *a, int64_t i, int64_t j) {
  const double v = a->a[i + j * a->lda];
  if (kind == A_COLUMN && j == 0)
    return first_column[i];
  return kind == ANOTHERS ? OF_ANOTHER * v : v;
}

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
  static double another[ORDER * ORDER];
  for (int64_t j = 0; j < ORDER; j++)
    for (int64_t i = 0; i < ORDER; i++)
      another[i + j * ORDER] = of_copy(hone_dense_of(a), i, j);
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
      const double v = trans ? of_copy(a, j, i) : of_copy(a, i, j);
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

/* ---- A copy with another first column ------------------------------------ */

enum { COLUMNS = 80 };

typedef struct column_case {
  hone_engine engine;
  hone_request request;
  hone_mem mem;
  hone_watch watch;
  hone_ladder ladder;
  hone_report report;
  hone_column column[COLUMNS];
  double a[ORDER * ORDER], b[ORDER * COLUMNS], x[ORDER * COLUMNS];
  double x_true[ORDER * COLUMNS];
  int heard, stop_at; /* the call of the progress function that stops */
} column_case;

/* It takes its time, so that a phase that is counted twice shows. */
static int stop_there(void *user, const hone_progress *event) {
  column_case *s = user;
  const struct timespec moment = {.tv_nsec = 1000000};
  (void)nanosleep(&moment, NULL);
  return event != NULL && ++s->heard == s->stop_at;
}

/* alike: the first two columns of A are nearly equal, not those of the copy.
   Otherwise the first row and column are apart from the others, and 2.5 times
   the copy's. The copy gives right residuals where x_0 is 0. */
static void make_case(column_case *s, bool alike) {
  sup_rng rng = {7};
  const hone_engine *engines[] = {&s->engine, &hone_engine_double};
  *s = (column_case){.engine = hone_engine_single,
                     .request = {.criterion = HONE_CRITERION_COMPONENTWISE,
                                 .limit = SUP_LIMIT},
                     .watch = {.progress = stop_there, .user = s}};
  s->engine.name = "resident LU";
  s->engine.resident = resident;
  s->engine.factor = factor;
  s->engine.inspect = inspect;
  s->engine.residual = residual;
  kind = A_COLUMN;
  sup_random(&rng, ORDER, ORDER, s->a, ORDER);
  sup_random(&rng, ORDER, 1, first_column, ORDER);
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    s->a[i] = ldexp(rint(ldexp(s->a[i], 20)), -20);
  for (int64_t i = 1; i < ORDER && alike; i++)
    s->a[i + i * ORDER] += 4.0;
  for (int64_t i = 0; i < ORDER && alike; i++)
    s->a[i] = s->a[i + ORDER] + ldexp((double)(i % 3) - 1.0, -44);
  for (int64_t i = 1; i < ORDER && !alike; i++)
    s->a[i] = s->a[i * ORDER] = first_column[i] = 0.0;
  first_column[0] = alike ? first_column[0] + 4.0 : 0.2;
  s->a[0] = alike ? s->a[0] : 0.5;
  CHECK_EQ_INT(sup_ladder_create(&s->ladder, ORDER, engines, 2, &s->request,
                                 &s->mem, NULL, &s->watch),
               HONE_OK);
  CHECK_EQ_INT(hone_ladder_factor(&s->ladder, sup_matrix(ORDER, ORDER, s->a),
                                  &s->report),
               HONE_OK);
  s->heard = 0;
}

/* Makes x_true_0 = first, and subtracts 'along' (1, -1) from the first two. */
static void make_column(column_case *s, int64_t c, double first, double along) {
  double *t = s->x_true + c * ORDER;
  for (int64_t i = 0; i < ORDER; i++)
    t[i] = ldexp((double)((i * 7 + c * 5) % 3 - 1), -4);
  t[0] = first + along;
  t[1] -= along;
  for (int64_t i = 0; i < ORDER; i++) {
    quad sum = 0;
    for (int64_t j = 0; j < ORDER; j++)
      sum += (quad)s->a[i + j * ORDER] * (quad)t[j];
    s->b[i + c * ORDER] = (double)sum;
  }
}

static double spent_ms(const hone_report *r) {
  return r->inspect_ms + r->factor_ms + r->certify_ms + r->refine_ms +
         r->fallback_ms;
}

/* No time is counted twice. */
static int solve_columns(column_case *s, int64_t from, int64_t count) {
  const int64_t at = from * ORDER;
  const double start_s = hone_now_s(), spent = spent_ms(&s->report);
  const int st =
      hone_ladder_solve(&s->ladder, false, count, s->b + at, ORDER, s->x + at,
                        ORDER, NULL, 0, s->column + from, &s->report);
  const double passed_ms = 1e3 * (hone_now_s() - start_s);
  CHECK_LE(spent_ms(&s->report) - spent, passed_ms * (1.0 + 1e-9));
  return st;
}

static void check_column(const column_case *s, int64_t c) {
  const int64_t at = c * ORDER;
  if (s->column[c].status >= HONE_OK)
    CHECK_LE(error_of(s->x + at, s->x_true + at), s->column[c].forward_error);
}

static void end_case(column_case *s) {
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
}

/* x of the first block do not tell the copy from A, that of the second does. */
TEST(resident, a_copy_that_a_later_block_refutes_bounds_no_error) {
  static column_case s;
  make_case(&s, true);
  const int64_t block = s.ladder.block;
  REQUIRE(block < COLUMNS);
  for (int64_t c = 0; c <= block; c++)
    make_column(&s, c, c < block ? 0.0 : 0.0625, c < block ? 0x1p-9 : 0.0);
  CHECK_LT(HONE_OK, solve_columns(&s, 0, block + 1));
  CHECK_CONTAINS(s.report.reason, "refuses an x that its copy accepts");
  CHECK_EQ_INT(s.report.accepted, 0);
  for (int64_t c = 0; c <= block; c++)
    check_column(&s, c);
  end_case(&s);
}

/* The first two stops come before A is asked. */
TEST(resident, a_copy_that_is_refuted_before_a_stop_bounds_no_error) {
  static column_case s;
  for (int stop = 3; stop <= 8; stop++) {
    make_case(&s, true);
    ct_note("stop %d", stop);
    s.stop_at = stop;
    make_column(&s, 0, 0.0, 0x1p-9);
    make_column(&s, 1, 0.0625, 0.0);
    CHECK(solve_columns(&s, 0, 2) != HONE_OK);
    check_column(&s, 0);
    check_column(&s, 1);
    end_case(&s);
  }
}

/* Factors that are found not to serve are not tried by the next solve. */
TEST(resident, factors_of_a_refuted_copy_are_set_aside) {
  static column_case s;
  make_case(&s, false);
  make_column(&s, 0, 0.0625, 0.0);
  make_column(&s, 1, 0.0, 0.0);
  for (int64_t c = 0; c < 2; c++) {
    CHECK_EQ_INT(solve_columns(&s, c, 1), HONE_OK);
    CHECK_EQ_INT(s.column[c].precision, 64);
    check_column(&s, c);
  }
  end_case(&s);
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
