/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in's dposv, dsposv, dpotrf and dpotrs beside the real LAPACK's. */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <string.h>

/* Checks that s->f has the factor that the real dpotrf_ makes. */
static void check_cholesky(problem *s, char uplo) {
  int info = -77;
  problem_spoil(s, uplo, s->f_real);
  dpotrf_(&uplo, &s->n, s->f_real, &s->ld, &info, 1);
  CHECK_EQ_INT(s->info, info);
  problem_check_same(s, s->f, s->f_real);
}

TEST(lapack, cholesky_reads_one_triangle_and_leaves_lapacks_factor) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.dposv != NULL);
  for (const char *uplo = "UL"; *uplo; uplo++) {
    problem s = problem_make(140, 2, -1e6);
    problem_spoil(&s, *uplo, s.f);
    drop_in_dposv(&d, &s, *uplo);
    CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
    check_cholesky(&s, *uplo);
    problem_reset(&s);
    problem_spoil(&s, *uplo, s.f);
    d.dpotrf(uplo, &s.n, s.f, &s.ld, &s.info, 1);
    check_cholesky(&s, *uplo);
    d.dpotrs(uplo, &s.n, &s.nrhs, s.f, &s.ld, s.x, &s.ld, &s.info, 1);
    CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
    problem_reset(&s);
    problem_spoil(&s, *uplo, s.f);
    memcpy(s.f_real, s.f, entries(s.ld, s.n) * sizeof *s.f);
    drop_in_dsposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 0);
    CHECK_GE(s.iter, 0);
    CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
    problem_check_same(&s, s.f, s.f_real);
    problem_free(&s);
  }
  drop_in_close(&d);
}

/* A matrix that is not definite must not be solved by LU instead. */
static void check_indefinite(const char *factors) {
  drop_in d = drop_in_open("1", factors);
  for (const char *uplo = "UL"; *uplo; uplo++) {
    problem s = problem_make(80, 1, -1e2);
    s.a[60 + 60 * s.ld] = -1.0;
    problem_reset(&s);
    problem_spoil(&s, *uplo, s.f);
    if (d.dposv != NULL)
      drop_in_dposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 61);
    check_cholesky(&s, *uplo);
    problem_reset(&s);
    problem_spoil(&s, *uplo, s.f);
    if (d.dsposv != NULL)
      drop_in_dsposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 61);
    CHECK_EQ_INT(s.iter, -3);
    problem_free(&s);
  }
  drop_in_close(&d);
}

TEST(lapack, a_matrix_that_is_not_definite_gets_lapacks_info) {
  check_indefinite("keep");
  check_indefinite("discard");
}
