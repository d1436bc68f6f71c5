/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACKE_dposv, dsposv, dpotrf, dpotrs and their _work routines. Row-major
   arrays are transposed, as LAPACKE does: a triangle stored by rows could be
   taken for the other one stored by columns, but LAPACK's rounding errors, and
   an INFO that depends on them, are not the same for both. */
#include "lapack/lapacke.h"

#include <stdlib.h>

/* The matrix and, for drivers, b and x by columns. */
typedef struct turned {
  char uplo;
  int64_t n, ld;
  hone_entry *a, *b, *x;
} turned;

/* Makes copies of a and of what else is not NULL. Returns false without memory.
   The routine refuses an UPLO that is neither U nor L, and reads no matrix. */
static bool turn(turned *t, int64_t nrhs, const hone_entry *a, int64_t lda,
                 const hone_entry *b, int64_t ldb, const hone_entry *x,
                 int64_t ldx) {
  const bool upper = hone_lapack_is(&t->uplo, 'U');
  t->ld = HONE_MAX((int64_t)1, t->n);
  t->b = b != NULL ? hone_lapacke_turn(t->n, nrhs, b, ldb) : NULL;
  t->x = x != NULL ? hone_lapacke_turn(t->n, nrhs, x, ldx) : NULL;
  t->a = upper || hone_lapack_is(&t->uplo, 'L')
             ? hone_lapacke_turn_triangle(upper, t->n, a, lda)
             : hone_lapack_room(t->n, t->n);
  return t->a != NULL && (b == NULL || t->b != NULL) &&
         (x == NULL || t->x != NULL);
}

static void turn_matrix_back(const turned *t, hone_entry *a, int64_t lda) {
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
static int64_t check(hone_lapack_caller at, const char *name, int layout,
                     int64_t n, int64_t lda, int64_t nrhs, int64_t ldb,
                     int64_t ldx) {
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
  return info ? hone_lapacke_error(at, name, info) : 0;
}

static int64_t nan_in(hone_lapack_caller at, int layout, char uplo, int64_t n,
                      int64_t nrhs, const hone_entry *a, int64_t lda,
                      const hone_entry *b, int64_t ldb) {
  if (!hone_lapacke_nancheck(at))
    return 0;
  if (hone_lapacke_po_nan(layout, uplo, n, a, lda))
    return -5;
  return hone_lapacke_ge_nan(layout, n, nrhs, b, ldb) ? -7 : 0;
}

/* dposv and dpotrs -------------------------------------------------------- */

/* The two differ only in the routine that they call. */
typedef struct job {
  hone_lapack_caller at;
  const char *name;
  bool factored; /* call dpotrs */
} job;

static int64_t solve(const job *j, char uplo, int64_t n, int64_t nrhs,
                     hone_entry *a, int64_t lda, hone_entry *b, int64_t ldb) {
  const hone_lapack_integer n_at = hone_lapack_make(j->at, n);
  const hone_lapack_integer nrhs_at = hone_lapack_make(j->at, nrhs);
  const hone_lapack_integer lda_at = hone_lapack_make(j->at, lda);
  const hone_lapack_integer ldb_at = hone_lapack_make(j->at, ldb);
  hone_lapack_integer info = hone_lapack_make(j->at, 0);
  if (j->factored)
    hone_lapack_potrs(j->at, &uplo, &n_at, &nrhs_at, a, &lda_at, b, &ldb_at,
                      &info, 1);
  else
    hone_lapack_posv(j->at, &uplo, &n_at, &nrhs_at, a, &lda_at, b, &ldb_at,
                     &info, 1);
  return hone_lapacke_info(j->at, &info);
}

/* a is not written for dpotrs. */
static int64_t work(const job *j, int layout, char uplo, int64_t n,
                    int64_t nrhs, hone_entry *a, int64_t lda, hone_entry *b,
                    int64_t ldb) {
  int64_t info = check(j->at, j->name, layout, n, lda, nrhs, ldb, nrhs);
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
    info = hone_lapacke_error(j->at, j->name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

int64_t hone_lapacke_posv_work(hone_lapack_caller at, int layout, char uplo,
                               int64_t n, int64_t nrhs, hone_entry *a,
                               int64_t lda, hone_entry *b, int64_t ldb) {
  const job j = {at, "LAPACKE_" HONE_LETTER "posv_work", false};
  return work(&j, layout, uplo, n, nrhs, a, lda, b, ldb);
}

int64_t hone_lapacke_posv(hone_lapack_caller at, int layout, char uplo,
                          int64_t n, int64_t nrhs, hone_entry *a, int64_t lda,
                          hone_entry *b, int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "posv", -1);
  const int64_t bad = nan_in(at, layout, uplo, n, nrhs, a, lda, b, ldb);
  return bad ? bad
             : hone_lapacke_posv_work(at, layout, uplo, n, nrhs, a, lda, b,
                                      ldb);
}

int64_t hone_lapacke_potrs_work(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, int64_t nrhs, const hone_entry *a,
                                int64_t lda, hone_entry *b, int64_t ldb) {
  const job j = {at, "LAPACKE_" HONE_LETTER "potrs_work", true};
  return work(&j, layout, uplo, n, nrhs, (hone_entry *)(uintptr_t)a, lda, b,
              ldb);
}

int64_t hone_lapacke_potrs(hone_lapack_caller at, int layout, char uplo,
                           int64_t n, int64_t nrhs, const hone_entry *a,
                           int64_t lda, hone_entry *b, int64_t ldb) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "potrs", -1);
  const int64_t bad = nan_in(at, layout, uplo, n, nrhs, a, lda, b, ldb);
  return bad ? bad
             : hone_lapacke_potrs_work(at, layout, uplo, n, nrhs, a, lda, b,
                                       ldb);
}

/* dsposv ------------------------------------------------------------------ */

static int64_t mixed(hone_lapack_caller at, char uplo, int64_t n, int64_t nrhs,
                     hone_entry *a, int64_t lda, const hone_entry *b,
                     int64_t ldb, hone_entry *x, int64_t ldx, hone_entry *room,
                     hone_single *swork, double *rwork, void *iter) {
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer nrhs_at = hone_lapack_make(at, nrhs);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  const hone_lapack_integer ldb_at = hone_lapack_make(at, ldb);
  const hone_lapack_integer ldx_at = hone_lapack_make(at, ldx);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_mixed_posv(at, &uplo, &n_at, &nrhs_at, a, &lda_at, b, &ldb_at, x,
                         &ldx_at, room, swork, rwork, iter, &info, 1);
  return hone_lapacke_info(at, &info);
}

int64_t hone_lapacke_mixed_posv_work(hone_lapack_caller at, int layout,
                                     char uplo, int64_t n, int64_t nrhs,
                                     hone_entry *a, int64_t lda,
                                     const hone_entry *b, int64_t ldb,
                                     hone_entry *x, int64_t ldx,
                                     hone_entry *room, hone_single *swork,
                                     double *rwork, void *iter) {
  const char *name = "LAPACKE_" HONE_MIXED "posv_work";
  int64_t info = check(at, name, layout, n, lda, nrhs, ldb, ldx);
  if (info != 0)
    return info;
  if (layout == LAPACK_COL_MAJOR)
    return mixed(at, uplo, n, nrhs, a, lda, b, ldb, x, ldx, room, swork, rwork,
                 iter);
  turned t = {.uplo = uplo, .n = n};
  if (turn(&t, nrhs, a, lda, b, ldb, x, ldx)) {
    info = mixed(at, uplo, n, nrhs, t.a, t.ld, t.b, t.ld, t.x, t.ld, room,
                 swork, rwork, iter);
    turn_matrix_back(&t, a, lda);
    hone_lapacke_turn_back(n, nrhs, t.x, x, ldx);
  } else {
    info = hone_lapacke_error(at, name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

int64_t hone_lapacke_mixed_posv(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, int64_t nrhs, hone_entry *a,
                                int64_t lda, const hone_entry *b, int64_t ldb,
                                hone_entry *x, int64_t ldx, void *iter) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_MIXED "posv", -1);
  int64_t info = nan_in(at, layout, uplo, n, nrhs, a, lda, b, ldb);
  if (info != 0)
    return info;
  hone_lapacke_mixed_room room;
  info = LAPACK_WORK_MEMORY_ERROR;
  if (hone_lapacke_mixed_take(&room, n, nrhs))
    info = hone_lapacke_mixed_posv_work(at, layout, uplo, n, nrhs, a, lda, b,
                                        ldb, x, ldx, room.work, room.swork,
                                        room.rwork, iter);
  else
    hone_lapacke_error(at, "LAPACKE_" HONE_MIXED "posv", info);
  hone_lapacke_mixed_free(&room);
  return info;
}

/* dpotrf ------------------------------------------------------------------ */

static int64_t factor(hone_lapack_caller at, char uplo, int64_t n,
                      hone_entry *a, int64_t lda) {
  const hone_lapack_integer n_at = hone_lapack_make(at, n);
  const hone_lapack_integer lda_at = hone_lapack_make(at, lda);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_potrf_shown(at, &uplo, &n_at, a, &lda_at, &info, 1);
  return hone_lapacke_info(at, &info);
}

int64_t hone_lapacke_potrf_work(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, hone_entry *a, int64_t lda) {
  const char *name = "LAPACKE_" HONE_LETTER "potrf_work";
  int64_t info;
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, name, -1);
  if (layout == LAPACK_ROW_MAJOR && lda < n)
    return hone_lapacke_error(at, name, -5);
  if (layout == LAPACK_COL_MAJOR)
    return factor(at, uplo, n, a, lda);
  turned t = {.uplo = uplo, .n = n};
  if (turn(&t, 0, a, lda, NULL, 0, NULL, 0)) {
    info = factor(at, uplo, n, t.a, t.ld);
    turn_matrix_back(&t, a, lda);
  } else {
    info = hone_lapacke_error(at, name, LAPACK_TRANSPOSE_MEMORY_ERROR);
  }
  release(&t);
  return info;
}

int64_t hone_lapacke_potrf(hone_lapack_caller at, int layout, char uplo,
                           int64_t n, hone_entry *a, int64_t lda) {
  if (!hone_lapacke_layout(layout))
    return hone_lapacke_error(at, "LAPACKE_" HONE_LETTER "potrf", -1);
  if (hone_lapacke_nancheck(at) && hone_lapacke_po_nan(layout, uplo, n, a, lda))
    return -4;
  return hone_lapacke_potrf_work(at, layout, uplo, n, a, lda);
}
