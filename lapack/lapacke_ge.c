/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACKE_dgesv, dsgesv, dgetrf, dgetrs and their _work routines. Row-major
   matrices are transposed, solved by columns, and transposed back together with
   the factors, as LAPACKE promises. */
#include "lapack/lapacke.h"

#include <stdlib.h>

/* dgesv ------------------------------------------------------------------- */

static int64_t gesv_by_columns(hone_lapack_caller at, int64_t n, int64_t nrhs,
                               hone_entry *a, int64_t lda, void *ipiv,
                               hone_entry *b, int64_t ldb) {
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer nrhs_at = hone_lapack_make(at, nrhs);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  const hone_lapack_integer ldb_at = hone_lapack_make(at, ldb);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_gesv(at, &n_at, &nrhs_at, a, &lda_at, ipiv, b, &ldb_at, &info);
  return hone_lapacke_info(at, &info);
}

static int64_t gesv_by_rows(hone_lapack_caller at, int64_t n, int64_t nrhs,
                            hone_entry *a, int64_t lda, void *ipiv,
                            hone_entry *b, int64_t ldb) {
  const char *name = "LAPACKE_" HONE_LETTER "gesv_work";
  const int64_t ld = HONE_MAX((int64_t)1, n);
  int64_t info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(at, name, -5);
  if (ldb < nrhs)
    return hone_lapacke_error(at, name, -8);
  hone_entry *turned_a = hone_lapacke_turn(n, n, a, lda);
  hone_entry *turned_b = hone_lapacke_turn(n, nrhs, b, ldb);
  if (turned_a != NULL && turned_b != NULL) {
    info = gesv_by_columns(at, n, nrhs, turned_a, ld, ipiv, turned_b, ld);
    hone_lapacke_turn_back(n, n, turned_a, a, lda);
    hone_lapacke_turn_back(n, nrhs, turned_b, b, ldb);
  } else {
    hone_lapacke_error(at, name, info);
  }
  free(turned_a);
  free(turned_b);
  return info;
}

int64_t hone_lapacke_gesv_work(hone_lapack_caller at, int layout, int64_t n,
                               int64_t nrhs, hone_entry *a, int64_t lda,
                               void *ipiv, hone_entry *b, int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "gesv_work", -1);
  return layout == LAPACK_ROW_MAJOR
             ? gesv_by_rows(at, n, nrhs, a, lda, ipiv, b, ldb)
             : gesv_by_columns(at, n, nrhs, a, lda, ipiv, b, ldb);
}

int64_t hone_lapacke_gesv(hone_lapack_caller at, int layout, int64_t n,
                          int64_t nrhs, hone_entry *a, int64_t lda, void *ipiv,
                          hone_entry *b, int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "gesv", -1);
  if (hone_lapacke_nancheck(at)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -4;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -7;
  }
  return hone_lapacke_gesv_work(at, layout, n, nrhs, a, lda, ipiv, b, ldb);
}

/* dsgesv ------------------------------------------------------------------ */

static int64_t mixed_by_columns(hone_lapack_caller at, int64_t n, int64_t nrhs,
                                hone_entry *a, int64_t lda, void *ipiv,
                                const hone_entry *b, int64_t ldb, hone_entry *x,
                                int64_t ldx, hone_entry *work,
                                hone_single *swork, double *rwork, void *iter) {
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer nrhs_at = hone_lapack_make(at, nrhs);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  const hone_lapack_integer ldb_at = hone_lapack_make(at, ldb);
  const hone_lapack_integer ldx_at = hone_lapack_make(at, ldx);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_mixed_gesv(at, &n_at, &nrhs_at, a, &lda_at, ipiv, b, &ldb_at, x,
                         &ldx_at, work, swork, rwork, iter, &info);
  return hone_lapacke_info(at, &info);
}

static int64_t mixed_by_rows(hone_lapack_caller at, int64_t n, int64_t nrhs,
                             hone_entry *a, int64_t lda, void *ipiv,
                             const hone_entry *b, int64_t ldb, hone_entry *x,
                             int64_t ldx, hone_entry *work, hone_single *swork,
                             double *rwork, void *iter) {
  const char *name = "LAPACKE_" HONE_MIXED "gesv_work";
  const int64_t ld = HONE_MAX((int64_t)1, n);
  int64_t info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(at, name, -5);
  if (ldb < nrhs)
    return hone_lapacke_error(at, name, -8);
  if (ldx < nrhs)
    return hone_lapacke_error(at, name, -10);
  hone_entry *turned_a = hone_lapacke_turn(n, n, a, lda);
  hone_entry *turned_b = hone_lapacke_turn(n, nrhs, b, ldb);
  hone_entry *turned_x = hone_lapacke_turn(n, nrhs, x, ldx);
  if (turned_a != NULL && turned_b != NULL && turned_x != NULL) {
    info = mixed_by_columns(at, n, nrhs, turned_a, ld, ipiv, turned_b, ld,
                            turned_x, ld, work, swork, rwork, iter);
    hone_lapacke_turn_back(n, n, turned_a, a, lda);
    hone_lapacke_turn_back(n, nrhs, turned_x, x, ldx);
  } else {
    hone_lapacke_error(at, name, info);
  }
  free(turned_a);
  free(turned_b);
  free(turned_x);
  return info;
}

int64_t hone_lapacke_mixed_gesv_work(hone_lapack_caller at, int layout,
                                     int64_t n, int64_t nrhs, hone_entry *a,
                                     int64_t lda, void *ipiv,
                                     const hone_entry *b, int64_t ldb,
                                     hone_entry *x, int64_t ldx,
                                     hone_entry *work, hone_single *swork,
                                     double *rwork, void *iter) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_MIXED "gesv_work", -1);
  return layout == LAPACK_ROW_MAJOR
             ? mixed_by_rows(at, n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work,
                             swork, rwork, iter)
             : mixed_by_columns(at, n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work,
                                swork, rwork, iter);
}

int64_t hone_lapacke_mixed_gesv(hone_lapack_caller at, int layout, int64_t n,
                                int64_t nrhs, hone_entry *a, int64_t lda,
                                void *ipiv, const hone_entry *b, int64_t ldb,
                                hone_entry *x, int64_t ldx, void *iter) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_MIXED "gesv", -1);
  if (hone_lapacke_nancheck(at)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -4;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -7;
  }
  hone_lapacke_mixed_room room;
  int64_t info = LAPACK_WORK_MEMORY_ERROR;
  if (hone_lapacke_mixed_take(&room, n, nrhs))
    info = hone_lapacke_mixed_gesv_work(at, layout, n, nrhs, a, lda, ipiv, b,
                                        ldb, x, ldx, room.work, room.swork,
                                        room.rwork, iter);
  else
    hone_lapacke_error(at, "LAPACKE_" HONE_MIXED "gesv", info);
  hone_lapacke_mixed_free(&room);
  return info;
}

/* dgetrf ------------------------------------------------------------------ */

static int64_t getrf_by_columns(hone_lapack_caller at, int64_t m, int64_t n,
                                hone_entry *a, int64_t lda, void *ipiv) {
  const hone_lapack_integer m_at = hone_lapack_make(at, m);
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_getrf_shown(at, &m_at, &n_at, a, &lda_at, ipiv, &info);
  return hone_lapacke_info(at, &info);
}

int64_t hone_lapacke_getrf_work(hone_lapack_caller at, int layout, int64_t m,
                                int64_t n, hone_entry *a, int64_t lda,
                                void *ipiv) {
  const char *name = "LAPACKE_" HONE_LETTER "getrf_work";
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, name, -1);
  if (layout == LAPACK_COL_MAJOR)
    return getrf_by_columns(at, m, n, a, lda, ipiv);
  if (lda < n)
    return hone_lapacke_error(at, name, -5);
  hone_entry *turned = hone_lapacke_turn(m, n, a, lda);
  if (turned == NULL)
    return hone_lapacke_error(at, name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  const int64_t info =
      getrf_by_columns(at, m, n, turned, HONE_MAX((int64_t)1, m), ipiv);
  hone_lapacke_turn_back(m, n, turned, a, lda);
  free(turned);
  return info;
}

int64_t hone_lapacke_getrf(hone_lapack_caller at, int layout, int64_t m,
                           int64_t n, hone_entry *a, int64_t lda, void *ipiv) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "getrf", -1);
  if (hone_lapacke_nancheck(at) && hone_lapacke_ge_nan(layout, m, n, a, lda))
    return -4;
  return hone_lapacke_getrf_work(at, layout, m, n, a, lda, ipiv);
}

/* dgetrs ------------------------------------------------------------------ */

static int64_t getrs_by_columns(hone_lapack_caller at, char trans, int64_t n,
                                int64_t nrhs, const hone_entry *a, int64_t lda,
                                const void *ipiv, hone_entry *b, int64_t ldb) {
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer nrhs_at = hone_lapack_make(at, nrhs);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  const hone_lapack_integer ldb_at = hone_lapack_make(at, ldb);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_getrs(at, &trans, &n_at, &nrhs_at, a, &lda_at, ipiv, b, &ldb_at,
                    &info, 1);
  return hone_lapacke_info(at, &info);
}

static int64_t getrs_by_rows(hone_lapack_caller at, char trans, int64_t n,
                             int64_t nrhs, const hone_entry *a, int64_t lda,
                             const void *ipiv, hone_entry *b, int64_t ldb) {
  const char *name = "LAPACKE_" HONE_LETTER "getrs_work";
  const int64_t ld = HONE_MAX((int64_t)1, n);
  int64_t info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  if (lda < n)
    return hone_lapacke_error(at, name, -6);
  if (ldb < nrhs)
    return hone_lapacke_error(at, name, -9);
  hone_entry *turned_a = hone_lapacke_turn(n, n, a, lda);
  hone_entry *turned_b = hone_lapacke_turn(n, nrhs, b, ldb);
  if (turned_a != NULL && turned_b != NULL) {
    info =
        getrs_by_columns(at, trans, n, nrhs, turned_a, ld, ipiv, turned_b, ld);
    hone_lapacke_turn_back(n, nrhs, turned_b, b, ldb);
  } else {
    hone_lapacke_error(at, name, info);
  }
  free(turned_a);
  free(turned_b);
  return info;
}

int64_t hone_lapacke_getrs_work(hone_lapack_caller at, int layout, char trans,
                                int64_t n, int64_t nrhs, const hone_entry *a,
                                int64_t lda, const void *ipiv, hone_entry *b,
                                int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "getrs_work", -1);
  return layout == LAPACK_ROW_MAJOR
             ? getrs_by_rows(at, trans, n, nrhs, a, lda, ipiv, b, ldb)
             : getrs_by_columns(at, trans, n, nrhs, a, lda, ipiv, b, ldb);
}

int64_t hone_lapacke_getrs(hone_lapack_caller at, int layout, char trans,
                           int64_t n, int64_t nrhs, const hone_entry *a,
                           int64_t lda, const void *ipiv, hone_entry *b,
                           int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "getrs", -1);
  if (hone_lapacke_nancheck(at)) {
    if (hone_lapacke_ge_nan(layout, n, n, a, lda))
      return -5;
    if (hone_lapacke_ge_nan(layout, n, nrhs, b, ldb))
      return -8;
  }
  return hone_lapacke_getrs_work(at, layout, trans, n, nrhs, a, lda, ipiv, b,
                                 ldb);
}
