/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems: every answer of hone_z_solve is held against one in
   quadruple precision that uses nothing of the library. */
#include "base/lapack.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "base/complex_values.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LAPACK's, of which base/lapack.h has the real one. */
void zgesv_(const int *n, const int *nrhs, hone_complex *a, const int *lda,
            int *ipiv, hone_complex *b, const int *ldb, int *info);

/* The measured omega and the reported one are both computed: they differ in
   the rounding of the denominators, n eps of them. */
static const double LIMIT = 4.0 * 0x1p-53, AGREES = 1e-10;

static cs_problem problem(int64_t n, const hone_complex *a, int trans) {
  return (cs_problem){.n = n, .lda = n, .a = a, .trans = trans};
}

/* Solves and checks everything that is said of x. */
static void check_solve(const cs_problem *p, int64_t nrhs,
                        const hone_options *wanted, uint64_t seed) {
  const int64_t n = p->n;
  hone_complex *b = cs_random(n, nrhs, seed + 1);
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
    const cs_problem p = problem(n, a, trans);
    ct_note("%s, n = %d, trans = %d, precision = %d", cs_name(family), (int)n,
            trans, o->factor_precision);
    check_solve(&p, 2, o, 3);
  }
  free(a);
}

TEST(complex_solve, solves_every_family_in_both_precisions) {
  static const int64_t orders[] = {1, 2, 3, 5, 17, 40};
  for (int precision = HONE_FACTOR_AUTO; precision <= HONE_FACTOR_DOUBLE;
       precision++) {
    hone_options o = HONE_OPTIONS_INIT;
    o.factor_precision = precision;
    for (int family = 0; family < CS_FAMILIES; family++)
      for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        check_family(family, orders[k], &o);
  }
}

TEST(complex_solve, solves_orders_of_several_panels) {
  hone_options o = HONE_OPTIONS_INIT;
  for (int precision = HONE_FACTOR_SINGLE; precision <= HONE_FACTOR_DOUBLE;
       precision++) {
    o.factor_precision = precision;
    check_family(CS_UNIFORM, 130, &o);
    check_family(CS_MOMENTS, 210, &o);
  }
}

/* Factors in single precision serve where scaling has made them. */
TEST(complex_solve, scales_before_it_rounds_to_single_precision) {
  const int64_t n = 90;
  hone_complex *a = cs_matrix(CS_SCALED, n, 5), *b = cs_random(n, 1, 6);
  hone_complex *x = cs_random(n, 1, 7);
  hone_options o = HONE_OPTIONS_INIT;
  hone_report report = HONE_REPORT_INIT;
  const cs_problem p = problem(n, a, HONE_NO_TRANS);
  o.factor_precision = HONE_FACTOR_SINGLE;
  CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report), HONE_OK);
  CHECK_EQ_INT(report.precision, 32);
  CHECK_EQ_INT(report.underflows, 0);
  CHECK_LE(cs_backward_error(&p, x, b), LIMIT * (1.0 + AGREES));
  free(a);
  free(b);
  free(x);
}

/* Two directions in which the factors say nothing are deflated, for each op(A):
   without that, factors in double follow. */
TEST(complex_solve, deflates_directions_that_single_precision_does_not_see) {
  const int64_t n = 90;
  hone_complex *a = cs_matrix(CS_NEARLY, n, 5), *b = cs_random(n, 1, 6);
  hone_complex *x = cs_random(n, 1, 7);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    const cs_problem p = problem(n, a, trans);
    o.factor_precision = HONE_FACTOR_SINGLE;
    o.trans = trans;
    ct_note("trans = %d", trans);
    CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_EQ_INT(report.precision, 32);
    CHECK(report.certificate_steps > 0);
    /* sigma_min / sigma_max = 3e-10; 1-norms differ by at most n. */
    CHECK_LE(report.rcond, 3e-10 * (double)n);
    CHECK_LE(3e-10 / (double)n, report.rcond);
    check_solve(&p, 2, &o, 8);
  }
  free(a);
  free(b);
  free(x);
}

/* Cholesky's factors alone solve, with each op(A): LU does not follow. */
static void check_definite(int64_t n, const hone_options *wanted) {
  hone_complex *a = cs_matrix(CS_DEFINITE, n, 1);
  hone_complex *b = cs_random(n, 9, 2), *x = cs_random(n, 9, 3);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    hone_options o = *wanted;
    hone_report report = HONE_REPORT_INIT;
    const cs_problem p = problem(n, a, trans);
    o.trans = trans;
    ct_note("n = %d, trans = %d", (int)n, trans);
    CHECK_EQ_INT(hone_z_solve(n, 9, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_CONTAINS(report.path, "Cholesky");
    CHECK(strstr(report.path, "LU") == NULL);
    CHECK_LE(report.iterations, 4); /* the condition is below 10 */
    CHECK_LE(cs_backward_error(&p, x, b), LIMIT * (1.0 + AGREES));
    if (n < 200)
      check_solve(&p, 3, wanted, 4);
  }
  free(a);
  free(b);
  free(x);
}

TEST(complex_solve, takes_claimed_and_found_definite_matrices_by_cholesky) {
  hone_options o = HONE_OPTIONS_INIT;
  check_definite(520, &o);
  o.structure = HONE_STRUCTURE_SPD;
  check_definite(90, &o);
  o.factor_precision = HONE_FACTOR_SINGLE;
  check_definite(90, &o);
  check_definite(230, &o);
}

/* A claim that is wrong costs time, not the answer: a diagonal with imaginary
   parts, a symmetric matrix that is not Hermitian, an indefinite one. */
TEST(complex_solve, survives_wrong_claims_of_definiteness) {
  static const int families[] = {CS_SYMMETRIC, CS_HERMITIAN, CS_UNIFORM};
  const int64_t n = 60;
  hone_options o = HONE_OPTIONS_INIT;
  o.structure = HONE_STRUCTURE_SPD;
  for (int precision = 0; precision <= HONE_FACTOR_SINGLE; precision++) {
    o.factor_precision = precision;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
      check_family(families[k], n, &o);
    hone_complex *a = cs_matrix(CS_DEFINITE, n, 1);
    a[7 + 7 * n] += CMPLX(0.0, 3.0);
    const cs_problem p = problem(n, a, HONE_NO_TRANS);
    check_solve(&p, 1, &o, 2);
    free(a);
  }
}

TEST(complex_solve, reads_matrices_stored_by_rows) {
  const int64_t n = 37;
  hone_options o = HONE_OPTIONS_INIT;
  hone_complex *a = cs_matrix(CS_UNIFORM, n, 5);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++) {
    cs_problem p = problem(n, a, trans);
    p.row_major = true;
    check_solve(&p, 2, &o, 6);
  }
  free(a);
}

TEST(complex_solve, solves_for_many_right_hand_sides) {
  hone_options o = HONE_OPTIONS_INIT;
  hone_complex *a = cs_matrix(CS_NORMAL, 40, 5);
  const cs_problem p = problem(40, a, HONE_CONJ_TRANS);
  check_solve(&p, 131, &o, 6);
  free(a);
}

/* As accurate as LAPACK in double, and with bounds that say so. */
TEST(complex_solve, is_not_less_accurate_than_zgesv) {
  const int64_t n = 100;
  for (int family = CS_UNIFORM; family <= CS_DEFINITE; family++) {
    hone_complex *a = cs_matrix(family, n, 11), *b = cs_random(n, 1, 12);
    hone_complex *x = cs_random(n, 1, 13), *f = cs_random(n, n, 14);
    int *pivot = malloc((size_t)n * sizeof *pivot), info = 0;
    const int order = (int)n, one = 1;
    hone_options o = HONE_OPTIONS_INIT;
    cs_errors ours, theirs;
    const cs_problem p = problem(n, a, HONE_NO_TRANS);
    o.factor_precision = HONE_FACTOR_SINGLE;
    ct_note("%s", cs_name(family));
    CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, NULL), HONE_OK);
    CHECK(cs_compare(&p, x, b, NULL, &ours));
    memcpy(f, a, (size_t)(n * n) * sizeof *f);
    memcpy(x, b, (size_t)n * sizeof *x);
    zgesv_(&order, &one, f, &order, pivot, x, &order, &info);
    CHECK_EQ_INT(info, 0);
    CHECK(cs_compare(&p, x, b, NULL, &theirs));
    /* Both are random multiples of the same bound; ten is generous. */
    CHECK_LE(ours.forward, 10.0 * theirs.forward + 4.0 * 0x1p-53);
    free(a);
    free(b);
    free(x);
    free(f);
    free(pivot);
  }
}

TEST(complex_solve, reaches_the_last_digits_in_extra_precise_mode) {
  hone_options o = HONE_OPTIONS_INIT;
  o.extra_precise = 1;
  o.factor_precision = HONE_FACTOR_SINGLE;
  for (int family = CS_UNIFORM; family < CS_FAMILIES; family++) {
    const int64_t n = 70;
    hone_complex *a = cs_matrix(family, n, 21), *b = cs_random(n, 1, 22);
    hone_complex *x = cs_random(n, 1, 23);
    cs_errors errors;
    const cs_problem p = problem(n, a, HONE_NO_TRANS);
    ct_note("%s", cs_name(family));
    CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, NULL), HONE_OK);
    CHECK(cs_compare(&p, x, b, NULL, &errors));
    CHECK_LE(errors.forward, 8.0 * 0x1p-53);
    free(a);
    free(b);
    free(x);
  }
}

/* ---- The same bits ------------------------------------------------------- */

TEST(complex_solve, has_the_same_bits_for_any_number_of_threads) {
  for (int family = CS_UNIFORM; family <= CS_DEFINITE; family += CS_DEFINITE)
    for (int precision = HONE_FACTOR_SINGLE; precision <= HONE_FACTOR_DOUBLE;
         precision++) {
      const int64_t n = 700, nrhs = 3;
      hone_complex *a = cs_matrix(family, n, 31), *b = cs_random(n, nrhs, 32);
      hone_complex *first = cs_random(n, nrhs, 33), *x = cs_random(n, nrhs, 33);
      hone_options o = HONE_OPTIONS_INIT;
      o.deterministic = 1;
      o.factor_precision = precision;
      for (int threads = 1; threads <= 4; threads++) {
        o.threads = threads;
        ct_note("%s, precision = %d, threads = %d", cs_name(family), precision,
                threads);
        CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, threads == 1 ? first : x,
                                  n, &o, NULL),
                     HONE_OK);
        if (threads > 1)
          CHECK_MEM_EQ(x, first, (size_t)(n * nrhs) * sizeof *x);
      }
      free(a);
      free(b);
      free(first);
      free(x);
    }
}

/* A real system, with or without CONJ_TRANS, is what it was. */
TEST(complex_solve, treats_the_adjoint_of_real_matrices_as_the_transpose) {
  const int64_t n = 30;
  double *a = malloc((size_t)(n * n) * sizeof *a), b[30], x[30], y[30];
  sup_rng rng = {5};
  hone_options o = HONE_OPTIONS_INIT;
  o.deterministic = 1;
  sup_random(&rng, n, n, a, n);
  sup_random(&rng, n, 1, b, n);
  o.trans = HONE_TRANS;
  CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, x, n, &o, NULL), HONE_OK);
  o.trans = HONE_CONJ_TRANS;
  CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, y, n, &o, NULL), HONE_OK);
  CHECK_MEM_EQ(x, y, sizeof x);
  free(a);
}
