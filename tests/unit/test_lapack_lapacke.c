/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in's LAPACKE interface: matrices by rows, and errors. */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int ROWS = 101, COLUMNS = 102;

/* Copies A to to by rows, with leading dimension n. */
static void by_rows(const problem *s, const double *from, double *to) {
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t j = 0; j < s->n; j++)
      to[i * s->n + j] = from[i + j * s->ld];
}

TEST(lapack, row_major_factors_are_those_of_the_same_matrix) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.library != NULL);
  int (*gesv)(int, int, int, double *, int, int *, double *, int);
  int (*getrf)(int, int, int, double *, int, int *);
  int (*solve)(int, char, int, int, const double *, int, const int *, double *,
               int);
  *(void **)&gesv = dlsym(d.library, "LAPACKE_dgesv");
  *(void **)&getrf = dlsym(d.library, "LAPACKE_dgetrf");
  *(void **)&solve = dlsym(d.library, "LAPACKE_dgetrs");
  REQUIRE(gesv && getrf && solve);
  problem s = problem_make(70, 1, 1e7);
  double *a = malloc(entries(s.n, s.n) * sizeof *a);
  double *f = malloc(entries(s.n, s.n) * sizeof *f);
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(gesv(ROWS, s.n, 1, a, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  dgesv_(&s.n, &s.nrhs, s.f_real, &s.ld, s.ipiv_real, s.work, &s.n, &s.info);
  by_rows(&s, s.f_real, f);
  CHECK_MEM_EQ(a, f, entries(s.n, s.n) * sizeof *a);
  CHECK_MEM_EQ(s.ipiv, s.ipiv_real, (size_t)s.n * sizeof(int));
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(getrf(ROWS, s.n, s.n, a, s.n, s.ipiv), 0);
  memcpy(s.x, s.b, (size_t)s.n * sizeof *s.x);
  CHECK_EQ_INT(solve(ROWS, 'T', s.n, 1, a, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(problem_backward_error(&s, true), SUP_LIMIT);
  free(a);
  free(f);
  problem_free(&s);
  drop_in_close(&d);
}

/* Factors one triangle of A by rows, and checks that the factor and INFO are
   those of the same triangle by columns, and that the other is not touched. */
static void check_cholesky_by_rows(const drop_in *d, problem *s, char uplo) {
  int (*potrf)(int, char, int, double *, int);
  int (*posv)(int, char, int, int, double *, int, double *, int);
  *(void **)&potrf = dlsym(d->library, "LAPACKE_dpotrf");
  *(void **)&posv = dlsym(d->library, "LAPACKE_dposv");
  double *a = malloc(entries(s->n, s->n) * sizeof *a);
  double *f = malloc(entries(s->n, s->n) * sizeof *f);
  int info = 0;
  /* LAPACKE's leading dimension, on which rounding errors may depend. */
  const problem packed = {.n = s->n, .ld = s->n};
  for (int solves = 0; solves < 2; solves++) {
    ct_note("uplo %c, solves %d", uplo, solves);
    problem_reset(s);
    problem_spoil(s, uplo, s->f_real);
    by_rows(s, s->f_real, a);
    by_rows(&packed, a, f); /* by columns, that is */
    if (solves)
      dposv_(&uplo, &s->n, &s->nrhs, f, &s->n, s->work, &s->n, &info, 1);
    else
      dpotrf_(&uplo, &s->n, f, &s->n, &info, 1);
    CHECK_EQ_INT(solves ? posv(ROWS, uplo, s->n, 1, a, s->n, s->x, 1)
                        : potrf(ROWS, uplo, s->n, a, s->n),
                 info);
    by_rows(&packed, a, s->f_real);
    CHECK_MEM_EQ(s->f_real, f, entries(s->n, s->n) * sizeof *a);
  }
  free(a);
  free(f);
}

TEST(lapack, row_major_cholesky_factors_and_info_are_lapacks) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.library != NULL);
  for (int indefinite = 0; indefinite < 2; indefinite++) {
    problem s = problem_make(71, 1, -1e7);
    if (indefinite)
      s.a[40 + 40 * s.ld] = -1.0;
    check_cholesky_by_rows(&d, &s, 'U');
    check_cholesky_by_rows(&d, &s, 'L');
    problem_free(&s);
  }
  drop_in_close(&d);
}

TEST(lapack, lapacke_takes_row_major_triangles_and_reports_errors) {
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.library != NULL);
  int (*posv)(int, char, int, int, double *, int, double *, int);
  int (*sgesv)(int, int, int, double *, int, int *, double *, int, double *,
               int, int *);
  *(void **)&posv = dlsym(d.library, "LAPACKE_dposv");
  *(void **)&sgesv = dlsym(d.library, "LAPACKE_dsgesv");
  REQUIRE(posv && sgesv);
  problem s = problem_make(70, 1, -1e4);
  double *a = malloc(entries(s.n, s.n) * sizeof *a);
  problem_spoil(&s, 'U', s.f);
  by_rows(&s, s.f, a);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 1, a, s.n, s.x, 1), 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(sgesv(ROWS, s.n, 1, a, s.n, s.ipiv, s.b, 1, s.x, 1, &s.iter), 0);
  CHECK_GE(s.iter, 0);
  CHECK_LE(problem_backward_error(&s, false), SUP_LIMIT);
  xerbla_call.calls = 0;
  CHECK_EQ_INT(posv(7, 'U', s.n, 1, a, s.n, s.x, 1), -1);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 1, a, s.n - 1, s.x, 1), -6);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 2, a, s.n, s.x, 1), -8);
  CHECK_EQ_INT(xerbla_call.calls, 3);
  CHECK_EQ_INT(posv(ROWS, 'Q', s.n, 1, a, s.n, s.x, 1), -2);
  a[3] = (double)NAN;
  CHECK_EQ_INT(posv(COLUMNS, 'L', s.n, 1, a, s.n, s.x, s.n), -5);
  CHECK_EQ_INT(
      sgesv(COLUMNS, s.n, 1, a, s.n, s.ipiv, s.b, s.n, s.x, s.n, &s.iter), -4);
  free(a);
  problem_free(&s);
  drop_in_close(&d);
}

/* LAPACKE looks for NaN before it looks at leading dimensions. */
TEST(lapack, lapacke_finds_nan_beside_a_leading_dimension_that_is_too_small) {
  enum { N = 3 };
  drop_in d = drop_in_open("1", "auto");
  REQUIRE(d.library != NULL);
  int (*gesv)(int, int, int, double *, int, int *, double *, int);
  int (*posv)(int, char, int, int, double *, int, double *, int);
  *(void **)&gesv = dlsym(d.library, "LAPACKE_dgesv");
  *(void **)&posv = dlsym(d.library, "LAPACKE_dposv");
  REQUIRE(gesv && posv);
  for (int at = 0; at < 2; at++) { /* the first entry is NaN, or none is */
    double a[N * N] = {4, 1, 1, 1, 4, 1, 1, 1, 4}, b[N] = {1, 1, 1};
    int pivot[N];
    a[0] = at == 0 ? (double)NAN : 4.0;
    CHECK_EQ_INT(gesv(ROWS, N, 1, a, N - 1, pivot, b, 1), at == 0 ? -4 : -5);
    CHECK_EQ_INT(posv(ROWS, 'U', N, 1, a, N - 1, b, 1), at == 0 ? -5 : -6);
  }
  drop_in_close(&d);
}
