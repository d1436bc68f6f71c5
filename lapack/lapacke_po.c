/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACKE_dposv, dsposv, dpotrf, dpotrs and their _work routines. Row-major
   arrays are transposed, as LAPACKE does: a triangle stored by rows could be
   taken for the other one stored by columns, but LAPACK's rounding errors, and
   an INFO that depends on them, are not the same for both. */
#include "lapack/lapacke.h"

#include "base/base.h"

#include <stdlib.h>

#define HERE __builtin_return_address(0)

/* The matrix and, for drivers, b and x by columns. */
typedef struct turned {
  char uplo;
  int n, ld;
  double *a, *b, *x;
} turned;

/* Makes copies of a and of what else is not NULL. Returns false without memory.
   The routine refuses an UPLO that is neither U nor L, and reads no matrix. */
static bool turn(turned *t, int nrhs, const double *a, int lda, const double *b,
                 int ldb, const double *x, int ldx) {
  const bool upper = hone_lapack_is(&t->uplo, 'U');
  t->ld = HONE_MAX(1, t->n);
  t->b = b != NULL ? hone_lapacke_turn(t->n, nrhs, b, ldb) : NULL;
  t->x = x != NULL ? hone_lapacke_turn(t->n, nrhs, x, ldx) : NULL;
  t->a = upper || hone_lapack_is(&t->uplo, 'L')
             ? hone_lapacke_turn_triangle(upper, t->n, a, lda)
             : hone_lapacke_room(t->n, t->n);
  return t->a != NULL && (b == NULL || t->b != NULL) &&
         (x == NULL || t->x != NULL);
}

static void turn_matrix_back(const turned *t, double *a, int lda) {
  const bool upper = hone_lapack_is(&t->uplo, 'U');
  if (upper || hone_lapack_is(&t->uplo, 'L'))
    hone_lapacke_turn_triangle_back(upper, t->n, t->a, a, lda);
}

static void release(const turned *t) {
  free(t->a);
  free(t->b);
  free(t->x);
}

/* Checks those arguments of the _work routines that LAPACK does not check. */
static int check(const void *caller, const char *name, int layout, int n,
                 int lda, int nrhs, int ldb, int ldx) {
  const bool rows = layout == LAPACK_ROW_MAJOR;
  int info = 0;
  if (!hone_lapacke_layout(layout))
    info = -1;
  else if (rows && lda < n)
    info = -6;
  else if (rows && ldb < nrhs)
    info = -8;
  else if (rows && ldx < nrhs)
    info = -10;
  return info ? hone_lapacke_error(caller, name, info) : 0;
}

static int nan_in(const void *caller, int layout, char uplo, int n, int nrhs,
                  const double *a, int lda, const double *b, int ldb) {
  if (!hone_lapacke_nancheck(caller))
    return 0;
  if (hone_lapacke_po_nan(layout, uplo, n, a, lda))
    return -5;
  return hone_lapacke_ge_nan(layout, n, nrhs, b, ldb) ? -7 : 0;
}

/* dposv and dpotrs -------------------------------------------------------- */

/* The two differ only in the routine that they call. */
typedef struct job {
  const void *caller;
  const char *name;
  bool factored; /* call dpotrs */
} job;

static int solve(const job *j, char uplo, int n, int nrhs, double *a, int lda,
                 double *b, int ldb) {
  int info = 0;
  if (j->factored)
    hone_lapack_dpotrs(j->caller, &uplo, &n, &nrhs, a, &lda, b, &ldb, &info, 1);
  else
    hone_lapack_dposv(j->caller, &uplo, &n, &nrhs, a, &lda, b, &ldb, &info, 1);
  return hone_lapacke_info(info);
}

/* a is not written for dpotrs. */
static int work(const job *j, int layout, char uplo, int n, int nrhs, double *a,
                int lda, double *b, int ldb) {
  int info = check(j->caller, j->name, layout, n, lda, nrhs, ldb, nrhs);
  if (info != 0)
    return info;
  if (layout == LAPACK_COL_MAJOR)
    return solve(j, uplo, n, nrhs, a, lda, b, ldb);
  turned t = {.uplo = uplo, .n = n};
  if (turn(&t, nrhs, a, lda, b, ldb, NULL, 0)) {
    info = solve(j, uplo, n, nrhs, t.a, t.ld, t.b, t.ld);
    if (!j->factored)
      turn_matrix_back(&t, a, lda);
    hone_lapacke_turn_back(n, nrhs, t.b, b, ldb);
  } else {
    info =
        hone_lapacke_error(j->caller, j->name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

HONE_EXPORT int LAPACKE_dposv_work(int layout, char uplo, int n, int nrhs,
                                   double *a, int lda, double *b, int ldb);
int LAPACKE_dposv_work(int layout, char uplo, int n, int nrhs, double *a,
                       int lda, double *b, int ldb) {
  const job j = {HERE, "LAPACKE_dposv_work", false};
  return work(&j, layout, uplo, n, nrhs, a, lda, b, ldb);
}

HONE_EXPORT int LAPACKE_dposv(int layout, char uplo, int n, int nrhs, double *a,
                              int lda, double *b, int ldb);
int LAPACKE_dposv(int layout, char uplo, int n, int nrhs, double *a, int lda,
                  double *b, int ldb) {
  const job j = {HERE, "LAPACKE_dposv_work", false};
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dposv", -1);
  int bad = nan_in(HERE, layout, uplo, n, nrhs, a, lda, b, ldb);
  return bad ? bad : work(&j, layout, uplo, n, nrhs, a, lda, b, ldb);
}

HONE_EXPORT int LAPACKE_dpotrs_work(int layout, char uplo, int n, int nrhs,
                                    const double *a, int lda, double *b,
                                    int ldb);
int LAPACKE_dpotrs_work(int layout, char uplo, int n, int nrhs, const double *a,
                        int lda, double *b, int ldb) {
  const job j = {HERE, "LAPACKE_dpotrs_work", true};
  return work(&j, layout, uplo, n, nrhs, (double *)(uintptr_t)a, lda, b, ldb);
}

HONE_EXPORT int LAPACKE_dpotrs(int layout, char uplo, int n, int nrhs,
                               const double *a, int lda, double *b, int ldb);
int LAPACKE_dpotrs(int layout, char uplo, int n, int nrhs, const double *a,
                   int lda, double *b, int ldb) {
  const job j = {HERE, "LAPACKE_dpotrs_work", true};
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dpotrs", -1);
  int bad = nan_in(HERE, layout, uplo, n, nrhs, a, lda, b, ldb);
  return bad ? bad
             : work(&j, layout, uplo, n, nrhs, (double *)(uintptr_t)a, lda, b,
                    ldb);
}

/* dsposv ------------------------------------------------------------------ */

static int dsposv_work(const void *caller, int layout, char uplo, int n,
                       int nrhs, double *a, int lda, const double *b, int ldb,
                       double *x, int ldx, double *room, float *swork,
                       int *iter) {
  const char *name = "LAPACKE_dsposv_work";
  int info = check(caller, name, layout, n, lda, nrhs, ldb, ldx);
  if (info != 0)
    return info;
  if (layout == LAPACK_COL_MAJOR) {
    hone_lapack_dsposv(caller, &uplo, &n, &nrhs, a, &lda, b, &ldb, x, &ldx,
                       room, swork, iter, &info, 1);
    return hone_lapacke_info(info);
  }
  turned t = {.uplo = uplo, .n = n};
  if (turn(&t, nrhs, a, lda, b, ldb, x, ldx)) {
    hone_lapack_dsposv(caller, &uplo, &n, &nrhs, t.a, &t.ld, t.b, &t.ld, t.x,
                       &t.ld, room, swork, iter, &info, 1);
    info = hone_lapacke_info(info);
    turn_matrix_back(&t, a, lda);
    hone_lapacke_turn_back(n, nrhs, t.x, x, ldx);
  } else {
    info = hone_lapacke_error(caller, name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

HONE_EXPORT int LAPACKE_dsposv_work(int layout, char uplo, int n, int nrhs,
                                    double *a, int lda, double *b, int ldb,
                                    double *x, int ldx, double *work_room,
                                    float *swork, int *iter);
int LAPACKE_dsposv_work(int layout, char uplo, int n, int nrhs, double *a,
                        int lda, double *b, int ldb, double *x, int ldx,
                        double *work_room, float *swork, int *iter) {
  return dsposv_work(HERE, layout, uplo, n, nrhs, a, lda, b, ldb, x, ldx,
                     work_room, swork, iter);
}

HONE_EXPORT int LAPACKE_dsposv(int layout, char uplo, int n, int nrhs,
                               double *a, int lda, double *b, int ldb,
                               double *x, int ldx, int *iter);
int LAPACKE_dsposv(int layout, char uplo, int n, int nrhs, double *a, int lda,
                   double *b, int ldb, double *x, int ldx, int *iter) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dsposv", -1);
  int info = nan_in(HERE, layout, uplo, n, nrhs, a, lda, b, ldb);
  if (info != 0)
    return info;
  double *room = hone_lapacke_room(n, nrhs);
  double *swork =
      hone_lapacke_room(n, n / 2 + 1 + nrhs); /* n (n + nrhs) floats */
  info = LAPACK_WORK_MEMORY_ERROR;
  if (room != NULL && swork != NULL)
    info = dsposv_work(HERE, layout, uplo, n, nrhs, a, lda, b, ldb, x, ldx,
                       room, (float *)swork, iter);
  else
    hone_lapacke_error(HERE, "LAPACKE_dsposv", info);
  free(room);
  free(swork);
  return info;
}

/* dpotrf ------------------------------------------------------------------ */

static int potrf_work(const void *caller, int layout, char uplo, int n,
                      double *a, int lda) {
  int info = 0;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(caller, "LAPACKE_dpotrf_work", -1);
  if (layout == LAPACK_ROW_MAJOR && lda < n)
    return hone_lapacke_error(caller, "LAPACKE_dpotrf_work", -5);
  if (layout == LAPACK_COL_MAJOR) {
    hone_lapack_dpotrf(caller, &uplo, &n, a, &lda, &info, 1);
    return hone_lapacke_info(info);
  }
  turned t = {.uplo = uplo, .n = n};
  if (turn(&t, 0, a, lda, NULL, 0, NULL, 0)) {
    hone_lapack_dpotrf(caller, &uplo, &n, t.a, &t.ld, &info, 1);
    info = hone_lapacke_info(info);
    turn_matrix_back(&t, a, lda);
  } else {
    info = hone_lapacke_error(caller, "LAPACKE_dpotrf_work",
                              LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

HONE_EXPORT int LAPACKE_dpotrf_work(int layout, char uplo, int n, double *a,
                                    int lda);
int LAPACKE_dpotrf_work(int layout, char uplo, int n, double *a, int lda) {
  return potrf_work(HERE, layout, uplo, n, a, lda);
}

HONE_EXPORT int LAPACKE_dpotrf(int layout, char uplo, int n, double *a,
                               int lda);
int LAPACKE_dpotrf(int layout, char uplo, int n, double *a, int lda) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dpotrf", -1);
  if (hone_lapacke_nancheck(HERE) &&
      hone_lapacke_po_nan(layout, uplo, n, a, lda))
    return -4;
  return potrf_work(HERE, layout, uplo, n, a, lda);
}
