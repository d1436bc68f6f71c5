/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACKE_dsysv, dsytrf, dsytrs, for complex numbers also the Hermitian ones,
   and their _work routines. Row-major arrays are transposed, as in
   lapacke_po.c.
 */
#include "lapack/lapacke.h"

#include <stdlib.h>

static const char *const names[2][3] = {
    {"LAPACKE_" HONE_LETTER "sysv", "LAPACKE_" HONE_LETTER "sytrf",
     "LAPACKE_" HONE_LETTER "sytrs"},
    {"LAPACKE_" HONE_LETTER "hesv", "LAPACKE_" HONE_LETTER "hetrf",
     "LAPACKE_" HONE_LETTER "hetrs"}};
static const char *const work_names[2][3] = {
    {"LAPACKE_" HONE_LETTER "sysv_work", "LAPACKE_" HONE_LETTER "sytrf_work",
     "LAPACKE_" HONE_LETTER "sytrs_work"},
    {"LAPACKE_" HONE_LETTER "hesv_work", "LAPACKE_" HONE_LETTER "hetrf_work",
     "LAPACKE_" HONE_LETTER "hetrs_work"}};

static const char *name_of(const hone_lapacke_symmetric *c) {
  return names[c->kind == HONE_LAPACK_HERMITIAN][c->job];
}

static const char *work_name_of(const hone_lapacke_symmetric *c) {
  return work_names[c->kind == HONE_LAPACK_HERMITIAN][c->job];
}

static bool factors(const hone_lapacke_symmetric *c) {
  return c->job == HONE_LAPACKE_FACTOR;
}

static bool is_factored(const hone_lapacke_symmetric *c) {
  return c->job == HONE_LAPACKE_SOLVE_FACTORED;
}

/* Calls the Fortran routine with arrays by columns; returns its INFO as
   LAPACKE's. */
static int64_t call_fortran(const hone_lapacke_symmetric *c) {
  const hone_lapack_caller at = c->at;
  const hone_lapack_symmetric_call by = {
      .at = at, .kind = c->kind, .uplo = &c->uplo};
  const hone_lapack_integer n = hone_lapack_make(at, c->n);
  const hone_lapack_integer nrhs = hone_lapack_make(at, c->nrhs);
  const hone_lapack_integer lda = hone_lapack_make(at, c->lda);
  const hone_lapack_integer ldb = hone_lapack_make(at, c->ldb);
  const hone_lapack_integer lwork = hone_lapack_make(at, c->lwork);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  if (factors(c))
    hone_lapack_sytrf(by, &n, c->a, &lda, c->ipiv, c->work, &lwork, &info);
  else if (is_factored(c))
    hone_lapack_sytrs(by, &n, &nrhs, c->a, &lda, c->ipiv, c->b, &ldb, &info);
  else
    hone_lapack_sysv(by, &n, &nrhs, c->a, &lda, c->ipiv, c->b, &ldb, c->work,
                     &lwork, &info);
  return hone_lapacke_info(at, &info);
}

/* Does so for arrays by rows. A call that asks for the size of the work space
   has no arrays. */
static int64_t by_rows(const hone_lapacke_symmetric *c) {
  const bool upper = hone_lapack_is(&c->uplo, 'U');
  const bool triangle = upper || hone_lapack_is(&c->uplo, 'L');
  const bool has_b = !factors(c);
  hone_lapacke_symmetric t = *c;
  t.lda = t.ldb = HONE_MAX((int64_t)1, c->n);
  if (!is_factored(c) && c->lwork == -1)
    return call_fortran(&t);
  int64_t info = LAPACK_TRANSPOSE_MEMORY_ERROR;
  t.a = triangle ? hone_lapacke_turn_triangle(upper, c->n, c->a, c->lda)
                 : hone_lapack_room(c->n, c->n);
  t.b = has_b ? hone_lapacke_turn(c->n, c->nrhs, c->b, c->ldb) : NULL;
  if (t.a != NULL && (t.b != NULL || !has_b)) {
    info = call_fortran(&t);
    if (triangle && !is_factored(c))
      hone_lapacke_turn_triangle_back(upper, c->n, t.a, c->a, c->lda);
    if (has_b)
      hone_lapacke_turn_back(c->n, c->nrhs, t.b, c->b, c->ldb);
  } else {
    hone_lapacke_error(c->at, work_name_of(c), info);
  }
  free(t.a);
  free(t.b);
  return info;
}

/* Checks those arguments that LAPACK does not check. */
int64_t hone_lapacke_symmetric_work(const hone_lapacke_symmetric *c) {
  const bool rows = c->layout == LAPACK_ROW_MAJOR;
  int info = 0;
  if (!hone_lapacke_layout(c->layout))
    info = -1;
  else if (rows && c->lda < c->n)
    info = factors(c) ? -5 : -6;
  else if (rows && !factors(c) && c->ldb < c->nrhs)
    info = -9;
  if (info != 0)
    return hone_lapacke_error(c->at, work_name_of(c), info);
  return rows ? by_rows(c) : call_fortran(c);
}

/* Calls the _work routine with as much work space as it asks for. */
static int64_t with_work(const hone_lapacke_symmetric *c) {
  hone_lapacke_symmetric w = *c;
  hone_entry first = 0.0;
  w.work = &first;
  w.lwork = -1;
  int64_t info = hone_lapacke_symmetric_work(&w);
  if (info != 0)
    return info;
  w.lwork = HONE_MAX((int64_t)1, (int64_t)hone_real(first));
  w.work = hone_lapack_sytrf_room(w.lwork, c->n);
  info = w.work != NULL
             ? hone_lapacke_symmetric_work(&w)
             : hone_lapacke_error(c->at, name_of(c), LAPACK_WORK_MEMORY_ERROR);
  free(w.work);
  return info;
}

int64_t hone_lapacke_symmetric_call(const hone_lapacke_symmetric *c) {
  if (!hone_lapacke_layout(c->layout))
    return hone_lapacke_error(c->at, name_of(c), -1);
  if (hone_lapacke_nancheck(c->at)) {
    if (hone_lapacke_po_nan(c->layout, c->uplo, c->n, c->a, c->lda))
      return factors(c) ? -4 : -5;
    if (!factors(c) &&
        hone_lapacke_ge_nan(c->layout, c->n, c->nrhs, c->b, c->ldb))
      return -8;
  }
  return is_factored(c) ? hone_lapacke_symmetric_work(c) : with_work(c);
}
