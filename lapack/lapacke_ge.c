/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACKE_dgesv, dsgesv, dgetrf, dgetrs and their _work routines. Row-major
   matrices are transposed, solved by columns, and transposed back together with
   the factors, as LAPACKE promises. */
#include "lapack/lapacke.h"

#include "base/base.h"

#include <stdlib.h>

#define HERE __builtin_return_address(0)

/* dgesv ------------------------------------------------------------------- */

static int gesv_by_rows(const void *caller, int n, int nrhs, double *a, int lda,
                        int *ipiv, double *b, int ldb) {
  const char *name = "LAPACKE_dgesv_work";
  const int ld = HONE_MAX(1, n);
  int info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(caller, name, -5);
  if (ldb < nrhs)
    return hone_lapacke_error(caller, name, -8);
  double *at = hone_lapacke_turn(n, n, a, lda);
  double *bt = hone_lapacke_turn(n, nrhs, b, ldb);
  if (at != NULL && bt != NULL) {
    hone_lapack_dgesv(caller, &n, &nrhs, at, &ld, ipiv, bt, &ld, &info);
    info = hone_lapacke_info(info);
    hone_lapacke_turn_back(n, n, at, a, lda);
    hone_lapacke_turn_back(n, nrhs, bt, b, ldb);
  } else {
    hone_lapacke_error(caller, name, info);
  }
  free(at);
  free(bt);
  return info;
}

static int gesv_work(const void *caller, int layout, int n, int nrhs, double *a,
                     int lda, int *ipiv, double *b, int ldb) {
  int info = 0;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(caller, "LAPACKE_dgesv_work", -1);
  if (layout == LAPACK_ROW_MAJOR)
    return gesv_by_rows(caller, n, nrhs, a, lda, ipiv, b, ldb);
  hone_lapack_dgesv(caller, &n, &nrhs, a, &lda, ipiv, b, &ldb, &info);
  return hone_lapacke_info(info);
}

HONE_EXPORT int LAPACKE_dgesv_work(int layout, int n, int nrhs, double *a,
                                   int lda, int *ipiv, double *b, int ldb);
int LAPACKE_dgesv_work(int layout, int n, int nrhs, double *a, int lda,
                       int *ipiv, double *b, int ldb) {
  return gesv_work(HERE, layout, n, nrhs, a, lda, ipiv, b, ldb);
}

HONE_EXPORT int LAPACKE_dgesv(int layout, int n, int nrhs, double *a, int lda,
                              int *ipiv, double *b, int ldb);
int LAPACKE_dgesv(int layout, int n, int nrhs, double *a, int lda, int *ipiv,
                  double *b, int ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dgesv", -1);
  if (hone_lapacke_nancheck(HERE)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -4;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -7;
  }
  return gesv_work(HERE, layout, n, nrhs, a, lda, ipiv, b, ldb);
}

/* dsgesv ------------------------------------------------------------------ */

static int dsgesv_by_rows(const void *caller, int n, int nrhs, double *a,
                          int lda, int *ipiv, const double *b, int ldb,
                          double *x, int ldx, double *work, float *swork,
                          int *iter) {
  const char *name = "LAPACKE_dsgesv_work";
  const int ld = HONE_MAX(1, n);
  int info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(caller, name, -5);
  if (ldb < nrhs)
    return hone_lapacke_error(caller, name, -8);
  if (ldx < nrhs)
    return hone_lapacke_error(caller, name, -10);
  double *at = hone_lapacke_turn(n, n, a, lda);
  double *bt = hone_lapacke_turn(n, nrhs, b, ldb);
  double *xt = hone_lapacke_turn(n, nrhs, x, ldx);
  if (at != NULL && bt != NULL && xt != NULL) {
    hone_lapack_dsgesv(caller, &n, &nrhs, at, &ld, ipiv, bt, &ld, xt, &ld, work,
                       swork, iter, &info);
    info = hone_lapacke_info(info);
    hone_lapacke_turn_back(n, n, at, a, lda);
    hone_lapacke_turn_back(n, nrhs, xt, x, ldx);
  } else {
    hone_lapacke_error(caller, name, info);
  }
  free(at);
  free(bt);
  free(xt);
  return info;
}

static int dsgesv_work(const void *caller, int layout, int n, int nrhs,
                       double *a, int lda, int *ipiv, const double *b, int ldb,
                       double *x, int ldx, double *work, float *swork,
                       int *iter) {
  int info = 0;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(caller, "LAPACKE_dsgesv_work", -1);
  if (layout == LAPACK_ROW_MAJOR)
    return dsgesv_by_rows(caller, n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work,
                          swork, iter);
  hone_lapack_dsgesv(caller, &n, &nrhs, a, &lda, ipiv, b, &ldb, x, &ldx, work,
                     swork, iter, &info);
  return hone_lapacke_info(info);
}

HONE_EXPORT int LAPACKE_dsgesv_work(int layout, int n, int nrhs, double *a,
                                    int lda, int *ipiv, double *b, int ldb,
                                    double *x, int ldx, double *work,
                                    float *swork, int *iter);
int LAPACKE_dsgesv_work(int layout, int n, int nrhs, double *a, int lda,
                        int *ipiv, double *b, int ldb, double *x, int ldx,
                        double *work, float *swork, int *iter) {
  return dsgesv_work(HERE, layout, n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work,
                     swork, iter);
}

HONE_EXPORT int LAPACKE_dsgesv(int layout, int n, int nrhs, double *a, int lda,
                               int *ipiv, double *b, int ldb, double *x,
                               int ldx, int *iter);
int LAPACKE_dsgesv(int layout, int n, int nrhs, double *a, int lda, int *ipiv,
                   double *b, int ldb, double *x, int ldx, int *iter) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dsgesv", -1);
  if (hone_lapacke_nancheck(HERE)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -4;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -7;
  }
  double *work = hone_lapacke_room(n, nrhs);
  double *swork =
      hone_lapacke_room(n, n / 2 + 1 + nrhs); /* n (n + nrhs) floats */
  int info = LAPACK_WORK_MEMORY_ERROR;
  if (work != NULL && swork != NULL)
    info = dsgesv_work(HERE, layout, n, nrhs, a, lda, ipiv, b, ldb, x, ldx,
                       work, (float *)swork, iter);
  else
    hone_lapacke_error(HERE, "LAPACKE_dsgesv", info);
  free(work);
  free(swork);
  return info;
}

/* dgetrf ------------------------------------------------------------------ */

static int getrf_work(const void *caller, int layout, int m, int n, double *a,
                      int lda, int *ipiv) {
  const char *name = "LAPACKE_dgetrf_work";
  const int ld = HONE_MAX(1, m);
  int info = 0;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(caller, name, -1);
  if (layout == LAPACK_COL_MAJOR) {
    hone_lapack_dgetrf(caller, &m, &n, a, &lda, ipiv, &info);
    return hone_lapacke_info(info);
  }
  if (lda < n)
    return hone_lapacke_error(caller, name, -5);
  double *at = hone_lapacke_turn(m, n, a, lda);
  if (at == NULL)
    return hone_lapacke_error(caller, name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  hone_lapack_dgetrf(caller, &m, &n, at, &ld, ipiv, &info);
  hone_lapacke_turn_back(m, n, at, a, lda);
  free(at);
  return hone_lapacke_info(info);
}

HONE_EXPORT int LAPACKE_dgetrf_work(int layout, int m, int n, double *a,
                                    int lda, int *ipiv);
int LAPACKE_dgetrf_work(int layout, int m, int n, double *a, int lda,
                        int *ipiv) {
  return getrf_work(HERE, layout, m, n, a, lda, ipiv);
}

HONE_EXPORT int LAPACKE_dgetrf(int layout, int m, int n, double *a, int lda,
                               int *ipiv);
int LAPACKE_dgetrf(int layout, int m, int n, double *a, int lda, int *ipiv) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dgetrf", -1);
  if (hone_lapacke_nancheck(HERE) && hone_lapacke_ge_nan(layout, m, n, a, lda))
    return -4;
  return getrf_work(HERE, layout, m, n, a, lda, ipiv);
}

/* dgetrs ------------------------------------------------------------------ */

static int getrs_by_rows(const void *caller, char trans, int n, int nrhs,
                         const double *a, int lda, const int *ipiv, double *b,
                         int ldb) {
  const char *name = "LAPACKE_dgetrs_work";
  const int ld = HONE_MAX(1, n);
  int info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(caller, name, -6);
  if (ldb < nrhs)
    return hone_lapacke_error(caller, name, -9);
  double *at = hone_lapacke_turn(n, n, a, lda);
  double *bt = hone_lapacke_turn(n, nrhs, b, ldb);
  if (at != NULL && bt != NULL) {
    hone_lapack_dgetrs(caller, &trans, &n, &nrhs, at, &ld, ipiv, bt, &ld, &info,
                       1);
    info = hone_lapacke_info(info);
    hone_lapacke_turn_back(n, nrhs, bt, b, ldb);
  } else {
    hone_lapacke_error(caller, name, info);
  }
  free(at);
  free(bt);
  return info;
}

static int getrs_work(const void *caller, int layout, char trans, int n,
                      int nrhs, const double *a, int lda, const int *ipiv,
                      double *b, int ldb) {
  int info = 0;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(caller, "LAPACKE_dgetrs_work", -1);
  if (layout == LAPACK_ROW_MAJOR)
    return getrs_by_rows(caller, trans, n, nrhs, a, lda, ipiv, b, ldb);
  hone_lapack_dgetrs(caller, &trans, &n, &nrhs, a, &lda, ipiv, b, &ldb, &info,
                     1);
  return hone_lapacke_info(info);
}

HONE_EXPORT int LAPACKE_dgetrs_work(int layout, char trans, int n, int nrhs,
                                    const double *a, int lda, const int *ipiv,
                                    double *b, int ldb);
int LAPACKE_dgetrs_work(int layout, char trans, int n, int nrhs,
                        const double *a, int lda, const int *ipiv, double *b,
                        int ldb) {
  return getrs_work(HERE, layout, trans, n, nrhs, a, lda, ipiv, b, ldb);
}

HONE_EXPORT int LAPACKE_dgetrs(int layout, char trans, int n, int nrhs,
                               const double *a, int lda, const int *ipiv,
                               double *b, int ldb);
int LAPACKE_dgetrs(int layout, char trans, int n, int nrhs, const double *a,
                   int lda, const int *ipiv, double *b, int ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(HERE, "LAPACKE_dgetrs", -1);
  if (hone_lapacke_nancheck(HERE)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -5;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -8;
  }
  return getrs_work(HERE, layout, trans, n, nrhs, a, lda, ipiv, b, ldb);
}
