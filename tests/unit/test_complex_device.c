/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems through the public calls on a GPU, held against solutions in
   quadruple precision: test_complex.c does so on the CPU. */
#include "api/hone_tuning.h"
#include "base/base.h"
#include "base/engine.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "base/complex_values.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The measured omega and the reported one are both computed: they differ in
   the rounding of the denominators, n eps of them. */
static const double LIMIT = 4.0 * 0x1p-53, AGREES = 1e-10;

#define NEED_GPU()                                                             \
  do {                                                                         \
    char why_[160] = "";                                                       \
    const char *required_ = getenv("HONE_REQUIRE_GPU");                        \
    if (!hone_engine_single_cuda.probe(why_, sizeof why_)) {                   \
      ct_note("%s", why_);                                                     \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP(why_);                                                              \
    }                                                                          \
  } while (0)

static hone_options on_gpu(void) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  return o;
}

/* Solves and checks everything that is said of x; 'bars' against a solution in
   quadruple precision, which takes long. Matrices of some structure the CPU
   solves without factors: then the report names no device. */
static void check_solve(const cs_problem *p, int64_t nrhs,
                        const hone_options *wanted, bool with_bars) {
  const int64_t n = p->n;
  hone_complex *b = cs_random(n, nrhs, (uint64_t)n + 1);
  hone_complex *x = malloc((size_t)(n * nrhs) * sizeof *x);
  double *bars = malloc((size_t)(n * nrhs) * sizeof *bars);
  hone_column *columns = malloc((size_t)nrhs * sizeof *columns);
  hone_options o = *wanted;
  hone_report report = HONE_REPORT_INIT;
  o.trans = p->trans;
  o.layout = p->row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
  o.columns = columns;
  o.error_bounds = bars;
  o.ld_error_bounds = n;
  CHECK_EQ_INT(hone_z_solve(n, nrhs, p->a, p->lda, b, n, x, n, &o, &report),
               HONE_OK);
  CHECK_EQ_INT(report.accepted, nrhs);
  for (int64_t c = 0; c < nrhs; c++) {
    cs_errors errors;
    const double omega = cs_backward_error(p, x + c * n, b + c * n);
    CHECK_LE(omega, LIMIT * (1.0 + AGREES));
    CHECK_NEAR(omega, columns[c].backward_error, AGREES * LIMIT);
    if (!with_bars)
      continue;
    CHECK(cs_compare(p, x + c * n, b + c * n, bars + c * n, &errors));
    CHECK_LE(errors.forward, columns[c].forward_error);
    CHECK_LE(errors.outside, 1.0);
  }
  free(b);
  free(x);
  free(bars);
  free(columns);
}

static void check_family(int family, int64_t n, const hone_options *o) {
  hone_complex *a = cs_matrix(family, n, 7 + (uint64_t)n);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    const cs_problem p = {.n = n, .lda = n, .a = a, .trans = trans};
    ct_note("%s, n = %d, trans = %d", cs_name(family), (int)n, trans);
    check_solve(&p, 2, o, n <= 70);
  }
  free(a);
}

TEST(complex_device, solves_every_family) {
  NEED_GPU();
  static const int64_t orders[] = {1, 2, 3, 17, 64, 65};
  const hone_options o = on_gpu();
  for (int family = 0; family < CS_FAMILIES; family++)
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
      check_family(family, orders[k], &o);
}

TEST(complex_device, solves_orders_of_several_panels) {
  NEED_GPU();
  const hone_options o = on_gpu();
  check_family(CS_UNIFORM, 130, &o);
  check_family(CS_MOMENTS, 210, &o);
  check_family(CS_SCALED, 300, &o);
}

/* The residuals of the host, of the device, and of both. */
TEST(complex_device, computes_residuals_wherever_it_is_told_to) {
  NEED_GPU();
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_options o = on_gpu();
  o.tuning = &tuning;
  for (int where = HONE_RESIDUALS_AUTO; where <= HONE_RESIDUALS_TWICE;
       where++) {
    tuning.residuals = where;
    ct_note("residuals = %d", where);
    check_family(CS_NORMAL, 70, &o);
    check_family(CS_SCALED, 40, &o);
  }
}

/* The report says who factored, and by which method; with the projection of A
   the host makes no pass over A. */
TEST(complex_device, reports_what_it_used) {
  NEED_GPU();
  const int64_t n = 150;
  hone_complex *a = cs_matrix(CS_UNIFORM, n, 5), *b = cs_random(n, 1, 6);
  hone_complex *x = cs_random(n, 1, 7);
  hone_options o = on_gpu();
  hone_report report = HONE_REPORT_INIT;
  CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report), HONE_OK);
  CHECK_CONTAINS(report.device, "CUDA");
  CHECK_CONTAINS(report.path, "fp16x3, tournament pivoting");
  CHECK_CONTAINS(report.path, "single LU");
  CHECK_EQ_INT(report.precision, 32);
  CHECK(report.device_passes > 0);
  CHECK_EQ_INT(report.host_passes, 0);
  /* A goes there once. */
  CHECK_GE(report.to_device_bytes, n * n * (int64_t)sizeof *a);
  CHECK_LT(report.to_device_bytes, 2 * n * n * (int64_t)sizeof *a);
  CHECK_GE(report.device_bytes, n * n * 24); /* A, and its factors */
  free(a);
  free(b);
  free(x);
}

/* Cholesky's factors alone solve, with each op(A): LU does not follow. Of a
   claimed matrix one triangle goes to the device. */
static void check_definite(int64_t n, const hone_options *wanted) {
  hone_complex *a = cs_matrix(CS_DEFINITE, n, 1), *b = cs_random(n, 3, 2);
  hone_complex *x = cs_random(n, 3, 3);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    hone_options o = *wanted;
    hone_report report = HONE_REPORT_INIT;
    const cs_problem p = {.n = n, .lda = n, .a = a, .trans = trans};
    o.trans = trans;
    ct_note("n = %d, trans = %d", (int)n, trans);
    CHECK_EQ_INT(hone_z_solve(n, 3, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_CONTAINS(report.device, "CUDA");
    CHECK_CONTAINS(report.path, "single Cholesky (fp16x3, one triangle)");
    CHECK(strstr(report.path, "LU") == NULL);
    CHECK_LE(report.iterations, 4); /* the condition is below 10 */
    CHECK_LE(cs_backward_error(&p, x, b), LIMIT * (1.0 + AGREES));
    CHECK(report.device_passes > 0);
    if (trans == HONE_NO_TRANS) /* a projection for A^T is not taken */
      CHECK_EQ_INT(report.host_passes, 0);
    if (n >= 200)
      CHECK_LT(report.to_device_bytes, n * n * (int64_t)sizeof *a * 3 / 4);
    check_solve(&p, 2, wanted, n <= 70);
  }
  free(a);
  free(b);
  free(x);
}

TEST(complex_device, takes_claimed_and_found_definite_matrices_by_cholesky) {
  NEED_GPU();
  hone_options o = on_gpu();
  o.factor_precision = HONE_FACTOR_SINGLE;
  check_definite(230, &o);
  o.structure = HONE_STRUCTURE_SPD;
  check_definite(1, &o);
  check_definite(65, &o);
  check_definite(230, &o);
}

/* A claim that is wrong costs time, not the answer: a diagonal with imaginary
   parts, a symmetric matrix that is not Hermitian, an indefinite one, and one
   whose triangles differ in a bit. */
TEST(complex_device, survives_wrong_claims_of_definiteness) {
  NEED_GPU();
  static const int families[] = {CS_SYMMETRIC, CS_HERMITIAN, CS_UNIFORM};
  const int64_t n = 60;
  hone_options o = on_gpu();
  o.structure = HONE_STRUCTURE_SPD;
  for (size_t k = 0; k < sizeof families / sizeof *families; k++)
    check_family(families[k], n, &o);
  for (int wrong = 0; wrong < 3; wrong++) {
    hone_complex *a = cs_matrix(CS_DEFINITE, n, 1);
    const double re = creal(a[9 + 5 * n]), im = cimag(a[9 + 5 * n]);
    a[7 + 7 * n] += CMPLX(0.0, wrong == 0 ? 3.0 : 0.0);
    if (wrong > 0)
      a[9 + 5 * n] = wrong == 1 ? CMPLX(nextafter(re, 9.0), im)
                                : CMPLX(re, nextafter(im, 9.0));
    const cs_problem p = {.n = n, .lda = n, .a = a, .trans = HONE_NO_TRANS};
    ct_note("wrong %d", wrong);
    check_solve(&p, 1, &o, true);
    free(a);
  }
}

TEST(complex_device, reads_matrices_stored_by_rows) {
  NEED_GPU();
  const int64_t n = 77;
  const hone_options o = on_gpu();
  hone_complex *a = cs_matrix(CS_UNIFORM, n, 5);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    const cs_problem p = {
        .n = n, .lda = n, .a = a, .trans = trans, .row_major = true};
    check_solve(&p, 2, &o, true);
  }
  free(a);
}

TEST(complex_device, solves_for_many_right_hand_sides) {
  NEED_GPU();
  const hone_options o = on_gpu();
  hone_complex *a = cs_matrix(CS_NORMAL, 90, 5);
  const cs_problem p = {.n = 90, .lda = 90, .a = a, .trans = HONE_CONJ_TRANS};
  check_solve(&p, 131, &o, false);
  free(a);
}

/* Choices of tuning that are for real matrices alone change nothing. */
TEST(complex_device, takes_the_default_where_a_choice_is_for_real_matrices) {
  NEED_GPU();
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_options o = on_gpu();
  o.tuning = &tuning;
  for (int choice = 0; choice < 4; choice++) {
    tuning.diagonal = choice == 0 ? HONE_DIAGONAL_CPU : HONE_DIAGONAL_AUTO;
    tuning.block_rows = choice;
    check_family(CS_UNIFORM, 70, &o);
  }
}

TEST(complex_device, factors_in_every_arithmetic) {
  NEED_GPU();
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_options o = on_gpu();
  o.tuning = &tuning;
  for (int arithmetic = 0; arithmetic <= HONE_ARITHMETIC_BF16; arithmetic++) {
    tuning.arithmetic = arithmetic;
    ct_note("arithmetic = %d", arithmetic);
    check_family(CS_NORMAL, 70, &o);
  }
}

/* A kept solver: factor, solve for every op(A), update. */
TEST(complex_device, keeps_factors_and_takes_updates) {
  NEED_GPU();
  const int64_t n = 140;
  hone_complex *a = cs_matrix(CS_NORMAL, n, 5), *b = cs_random(n, 3, 6);
  hone_complex *x = cs_random(n, 3, 7);
  hone_options o = on_gpu();
  hone_z_solver *solver = NULL;
  CHECK_EQ_INT(hone_z_solver_create(&solver, n, &o), HONE_OK);
  CHECK_EQ_INT(hone_z_solver_factor(solver, a, n, NULL), HONE_OK);
  for (int turn = 0; turn < 6; turn++) {
    hone_report report = HONE_REPORT_INIT;
    o.trans = turn % 3;
    const cs_problem p = {.n = n, .lda = n, .a = a, .trans = o.trans};
    ct_note("turn %d", turn);
    CHECK_EQ_INT(hone_z_solver_solve(solver, 3, b, n, x, n, &o, &report),
                 HONE_OK);
    CHECK_CONTAINS(report.device, "CUDA");
    for (int c = 0; c < 3; c++)
      CHECK_LE(cs_backward_error(&p, x + c * n, b + c * n),
               LIMIT * (1.0 + AGREES));
    if (turn == 2) { /* by a thousandth */
      for (int64_t i = 0; i < n * n; i += 3)
        a[i] *= CMPLX(1.0, 1e-3);
      CHECK_EQ_INT(hone_z_solver_update(solver, a, n, NULL), HONE_OK);
    }
  }
  hone_z_solver_destroy(&solver);
  CHECK(solver == NULL);
  free(a);
  free(b);
  free(x);
}

TEST(complex_device, says_that_a_matrix_is_singular_or_not_finite) {
  NEED_GPU();
  const int64_t n = 100;
  hone_complex *b = cs_random(n, 1, 6), *x = cs_random(n, 1, 7);
  hone_options o = on_gpu();
  for (int kind = 0; kind < 5; kind++) {
    hone_complex *a = cs_matrix(CS_NORMAL, n, 5);
    hone_report report = HONE_REPORT_INIT;
    for (int64_t i = 0; i < n && kind == 0; i++)
      a[i + 41 * n] = 0.0;
    for (int64_t i = 0; i < n && kind == 1; i++)
      a[i + 41 * n] = CMPLX(0.0, 1.0) * a[i + 7 * n];
    if (kind == 2)
      a[9 + 90 * n] = CMPLX(HONE_NAN, 0.0);
    if (kind == 3)
      a[9 + 90 * n] = CMPLX(0.0, HONE_NAN);
    if (kind == 4)
      a[9 + 90 * n] = CMPLX(1.0, HONE_INF);
    ct_note("kind %d", kind);
    const int st = hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report);
    if (kind == 1) /* the factors are complete */
      CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
    else
      CHECK_EQ_INT(st, kind == 0 ? HONE_SINGULAR : HONE_NOT_FINITE_A);
    if (kind >= 2)
      CHECK_CONTAINS(report.reason, "A(9, 90)");
    free(a);
  }
  free(b);
  free(x);
}

/* With so little device memory that A stays with the host, and with none. */
TEST(complex_device, obeys_a_limit_of_device_memory) {
  NEED_GPU();
  const int64_t n = 200;
  hone_complex *a = cs_matrix(CS_NORMAL, n, 5);
  const cs_problem p = {.n = n, .lda = n, .a = a, .trans = HONE_NO_TRANS};
  hone_options o = on_gpu();
  const int64_t factors = n * n * 8;
  o.device_memory_limit_bytes = 1;
  check_solve(&p, 1, &o, false); /* by the CPU */
  for (int64_t more = 40; more <= 44; more++) {
    o.device_memory_limit_bytes = factors + (more << 20);
    check_solve(&p, 1, &o, false);
  }
  free(a);
}

/* As for real entries (test_gpu_forms.c), twice as much: 24 n^2 bytes and 5 %,
   or 8 n^2 bytes and 10 %. */
TEST(complex_device, needs_little_memory_beside_a_large_matrix) {
  static const int64_t orders[] = {65536, 80000, 105000, 180000};
  char why[128] = "";
  if (!hone_engine_single_cuda.probe(why, sizeof why) &&
      strstr(why, "this build") != NULL)
    SKIP(why);
  for (int i = 0; i < 4; i++) {
    const double n = (double)orders[i];
    int64_t with, without;
    ct_note("n %d", (int)orders[i]);
    CHECK_EQ_INT(hone_z_device_memory_needed(orders[i], NULL, &with, &without),
                 HONE_OK);
    CHECK_LE(24.0 * n * n, (double)with);
    CHECK_LE((double)with, 25.2 * n * n);
    CHECK_LE(8.0 * n * n, (double)without);
    CHECK_LE((double)without, 8.8 * n * n);
  }
}
