/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in where LAPACK's factors are kept, over the gallery of hard
   matrices, for each x beside the real LAPACK's: the factors are the same, the
   backward error is never larger, and the log says what a check in quadruple
   precision finds. dgecon_ with these factors says the same, too. */
#include "tests/unit/lapack_drop_in.h"

#include "tests/gallery/gallery.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum routine { GESV, GETRS, POSV } routine;

/* The results for one system after another. */
typedef struct tally {
  drop_in d;
  routine routine;
  int count, smaller, room;
  double *omega; /* of the drop-in's x; NaN where it is not finite */
} tally;

static void solve_both(const tally *t, problem *s, double *x_real, int *info) {
  const char *trans = "T", *uplo = "L";
  memcpy(x_real, s->b, entries(s->ld, s->nrhs) * sizeof *x_real);
  if (t->routine == POSV) {
    drop_in_dposv(&t->d, s, *uplo);
    dposv_(uplo, &s->n, &s->nrhs, s->f_real, &s->ld, x_real, &s->ld, info, 1);
  } else if (t->routine == GESV) {
    drop_in_dgesv(&t->d, s);
    dgesv_(&s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x_real, &s->ld,
           info);
  } else {
    t->d.dgetrf(&s->n, &s->n, s->f, &s->ld, s->ipiv, &s->info);
    dgetrf_(&s->n, &s->n, s->f_real, &s->ld, s->ipiv_real, info);
    if (*info != 0)
      return;
    t->d.dgetrs(trans, &s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld,
                &s->info, 1);
    dgetrs_(trans, &s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x_real,
            &s->ld, info, 1);
  }
}

/* Compares the two x of a system, whose matrix and right-hand side are made. */
static void compare(tally *t, problem *s, const char *name) {
  const bool trans = t->routine == GETRS;
  double *x_real = calloc(entries(s->ld, s->nrhs), sizeof *x_real);
  int info = -77;
  problem_reset(s);
  solve_both(t, s, x_real, &info);
  CHECK_EQ_INT(s->info, info);
  problem_check_same(s, s->f, s->f_real);
  CHECK_MEM_EQ(s->ipiv, s->ipiv_real, (size_t)s->n * sizeof(int));
  if (info == 0) {
    const double ours = problem_backward_error(s, trans);
    const double real =
        sup_backward_error(s->n, s->a, s->ld, trans, x_real, s->b);
    const bool good = isnan(real) ? isnan(ours) : ours <= real * (1.0 + 1e-9);
    if (!CHECK(good))
      ct_note("%s, n %d: backward error %g, LAPACK's %g", name, s->n, ours,
              real);
    t->smaller += ours < 0.5 * real;
    t->omega[t->count++] = ours;
  }
  free(x_real);
}

/* Solves systems of every family. */
static void hunt(tally *t) {
  static const int orders[] = {2, 9, 40};
  t->room = gallery_count * 3 * gallery_rhs_count;
  t->omega = calloc((size_t)t->room, sizeof *t->omega);
  for (int k = 0; k < t->room; k++) {
    const gallery_family *family =
        &gallery_families[k / (3 * gallery_rhs_count)];
    const int n = orders[k / gallery_rhs_count % 3];
    gallery_rng rng = {(uint64_t)k};
    if (n < family->least_n || n > family->most_n ||
        (t->routine == POSV && !(family->properties & GALLERY_SYMMETRIC)))
      continue;
    problem s = problem_make(n, 1, 0.0);
    gallery_make(family, n, gallery_parameter(family, &rng), (uint64_t)k, s.a,
                 s.ld);
    gallery_rhs(k % gallery_rhs_count, n, s.a, s.ld, (uint64_t)k, s.b);
    compare(t, &s, family->name);
    problem_free(&s);
  }
}

/* Checks that the log has, line by line, the backward errors of the tally; a
   line of a routine that failed, or of an x that is not finite, has none. The
   log rounds to 3 digits. Errors far below the unit roundoff need not agree. */
static void check_log(const tally *t, char *log) {
  int at = 0;
  for (char *line = strtok(log, "\n"); line != NULL;
       line = strtok(NULL, "\n")) {
    const char *says = strstr(line, "backward error ");
    if (strstr(line, "INFO > 0") != NULL)
      continue;
    if (!CHECK(at < t->count))
      return;
    const double omega = t->omega[at++];
    const double said = says ? atof(says + strlen("backward error ")) : 0.0;
    if (!CHECK_EQ_INT(says == NULL, isnan(omega)))
      ct_note("%s", line);
    if (says != NULL && !CHECK_LE(fabs(said - omega), 6e-3 * omega + 1e-30))
      ct_note("%s: it is %g", line, omega);
  }
  CHECK_EQ_INT(at, t->count);
}

static void check_routine(routine which, int at_least) {
  tally t = {.routine = which};
  setenv("HONE_LOG", "1", 1);
  t.d = drop_in_open("1", "keep");
  if (t.d.dgesv != NULL) {
    log_capture capture = log_start();
    hunt(&t);
    char *log = log_stop(&capture);
    check_log(&t, log);
    free(log);
    CHECK_GE(t.count, at_least);
    CHECK_GE(t.smaller, at_least / 10);
  }
  free(t.omega);
  drop_in_close(&t.d);
  unsetenv("HONE_LOG");
}

TEST(lapack, with_factors_kept_no_x_of_dgesv_is_worse_than_lapacks) {
  check_routine(GESV, 1000);
}

TEST(lapack, with_factors_kept_no_x_of_dgetrs_is_worse_than_lapacks) {
  check_routine(GETRS, 1000);
}

TEST(lapack, with_factors_kept_no_x_of_dposv_is_worse_than_lapacks) {
  check_routine(POSV, 200);
}

TEST(lapack, a_column_that_overflows_leaves_no_backward_error_in_the_log) {
  setenv("HONE_LOG", "1", 1);
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(5, 2, 0.0);
  for (int64_t i = 0; i < s.n; i++)
    s.b[i] *= 1e308;
  for (int64_t i = 0; i < s.n * s.ld; i++)
    s.a[i] *= 1e-100;
  problem_reset(&s);
  log_capture capture = log_start();
  drop_in_dgesv(&d, &s);
  char *log = log_stop(&capture);
  CHECK_CONTAINS(log, "factors kept, refined; ");
  CHECK(strstr(log, "backward error") == NULL);
  free(log);
  problem_free(&s);
  drop_in_close(&d);
  unsetenv("HONE_LOG");
}

/* Two matrices with the same factors: 1 - 1e20 and 2 - 1e20 round to -1e20. */
TEST(lapack, factors_of_two_matrices_are_refined_with_neither) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dgesv != NULL);
  const int n = 2, one = 1;
  const double first[] = {1.0, 1.0, 1e20, 1.0};
  double f[2][4];
  int ipiv[2], info = -77;
  for (int k = 0; k < 4; k++) { /* both come twice */
    memcpy(f[k % 2], first, sizeof first);
    f[k % 2][3] += k % 2;
    d.dgetrf(&n, &n, f[k % 2], &n, ipiv, &info);
    CHECK_EQ_INT(info, 0);
    double x[] = {1.0, 0.0}, own[] = {1.0, 0.0};
    d.dgetrs("N", &n, &one, f[k % 2], &n, ipiv, x, &n, &info, 1);
    CHECK_EQ_INT(info, 0);
    dgetrs_("N", &n, &one, f[k % 2], &n, ipiv, own, &n, &info, 1);
    CHECK_NEAR(x[0], k == 0 ? -1e-20 : own[0], 1e-30);
  }
  CHECK_MEM_EQ(f[0], f[1], sizeof f[0]);
  drop_in_close(&d);
}

/* dgecon ------------------------------------------------------------------- */

static double rcond_of(const problem *s, const double *f) {
  double norm = 0.0, rcond = -1.0, *work = calloc(entries(s->n, 4), sizeof *f);
  int info = -77, *iwork = calloc((size_t)s->n, sizeof *iwork);
  for (int64_t j = 0; j < s->n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < s->n; i++)
      sum += fabs(s->a[i + j * s->ld]);
    norm = fmax(norm, sum);
  }
  dgecon_("1", &s->n, f, &s->ld, &norm, &rcond, work, iwork, &info, 1);
  free(work);
  free(iwork);
  return rcond;
}

/* Where factors are discarded, dgecon_ finds NaN and must not say that A is
   well conditioned. This does not happen to ill-conditioned matrices, which
   LAPACK solves. */
static void check_dgecon(const char *factors, double cond) {
  drop_in d = drop_in_open("1", factors);
  problem s = problem_make(90, 1, cond);
  if (d.dgesv != NULL)
    drop_in_dgesv(&d, &s);
  dgesv_(&s.n, &s.nrhs, s.f_real, &s.ld, s.ipiv_real, s.b, &s.ld, &s.info);
  const double ours = rcond_of(&s, s.f), real = rcond_of(&s, s.f_real);
  CHECK(real > 0.0);
  if (isnan(s.f[0])) {
    CHECK(!(ours > 0.0));
    CHECK(strcmp(factors, "discard") == 0 && cond < 1e14);
  } else {
    CHECK_MEM_EQ(&ours, &real, sizeof real);
  }
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, dgecon_after_dgesv_says_what_it_says_after_lapacks) {
  const double cond[] = {1e2, 1e8, 1e14, 1e15, 1e16, 1e17};
  for (int k = 0; k < 6; k++) {
    check_dgecon("keep", cond[k]);
    check_dgecon("discard", cond[k]);
  }
}
