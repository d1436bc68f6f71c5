/* SPDX-License-Identifier: BSD-3-Clause */
/* dsysv_, dsytrf_, dsytrs_, dsycon_ and dsytri_ do what gesv.c and condition.c
   do, for a symmetric or Hermitian A that need not be definite and is given by
   one triangle. A call of dsysv_ that single precision solves goes the way of
   dsytrf_ and dsytrs_ with hidden factors, since ssytrf_ has half the work of
   the library's LU. */
#include "lapack/hidden.h"

#include <stdlib.h>

static hone_lapack_factors factors(hone_lapack_caller at, hone_lapack_kind kind,
                                   const char *uplo, const void *n,
                                   const hone_entry *a, const void *lda,
                                   const void *ipiv) {
  return (hone_lapack_factors){.n = hone_lapack_get(at, n),
                               .lda = hone_lapack_get(at, lda),
                               .a = (void *)(uintptr_t)a,
                               .parts = HONE_PARTS,
                               .ipiv = (void *)(uintptr_t)ipiv,
                               .kind = kind,
                               .uplo = hone_lapack_triangle(uplo),
                               .lwork = 1,
                               .at = at};
}

/* Returns the real symmetric or Hermitian routine. */
static void *real_of(const hone_lapack_factors *f, hone_lapack_name sy,
                     hone_lapack_name he) {
  return hone_lapack_must(f->kind == HONE_LAPACK_HERMITIAN ? he : sy, f->at);
}

static bool hermitian(const hone_lapack_factors *f) {
  return f->kind == HONE_LAPACK_HERMITIAN;
}

/* Takes the caller's work space. Returns false where there is none, as in calls
   that ask for its size. */
static bool take_work(hone_lapack_factors *f, hone_entry *work,
                      const void *lwork) {
  f->work = work;
  f->lwork = hone_lapack_get(f->at, lwork);
  return work != NULL && f->lwork >= 1;
}

/* Sets WORK(1) as the real dsytrf_ does. */
static void tell_work(const hone_lapack_factors *f) {
  hone_sytrf_fn *real =
      (hone_sytrf_fn *)real_of(f, HONE_REAL_sytrf, HONE_REAL_hetrf);
  const hone_lapack_integer n = hone_lapack_make(f->at, f->n);
  const hone_lapack_integer lda = hone_lapack_make(f->at, f->lda);
  const hone_lapack_integer asks = hone_lapack_make(f->at, -1);
  hone_lapack_integer info = hone_lapack_make(f->at, 0);
  real(&f->uplo, &n, f->a, &lda, f->ipiv, f->work, &asks, &info, 1);
}

static bool driver(const hone_lapack_call *call, bool may_hide, void *info) {
  const char *why;
  const double start_ms = hone_lapack_now_ms();
  if (hone_lapack_hidden_driver(call, may_hide, &why, info)) {
    tell_work(&call->f);
    return true;
  }
  return hone_lapack_plain_kept(call, why, start_ms, info);
}

void hone_lapack_sysv(hone_lapack_symmetric_call by, const void *n,
                      const void *nrhs, hone_entry *a, const void *lda,
                      void *ipiv, hone_entry *b, const void *ldb,
                      hone_entry *work, const void *lwork, void *info) {
  const hone_lapack_caller at = by.at;
  hone_lapack_call call = {.f = factors(at, by.kind, by.uplo, n, a, lda, ipiv),
                           .nrhs = hone_lapack_get(at, nrhs),
                           .b = b,
                           .ldb = hone_lapack_get(at, ldb),
                           .x = b,
                           .ldx = hone_lapack_get(at, ldb)};
  const bool works = take_work(&call.f, work, lwork);
  call.name = hermitian(&call.f) ? HONE_LETTER "hesv" : HONE_LETTER "sysv";
  if (works && call.f.uplo != '?' && hone_lapack_takes(&call) &&
      driver(&call, by.may_hide, info))
    return;
  hone_sysv_fn *real =
      (hone_sysv_fn *)real_of(&call.f, HONE_REAL_sysv, HONE_REAL_hesv);
  const double start_ms = hone_lapack_now_ms();
  real(by.uplo, n, nrhs, a, lda, ipiv, b, ldb, work, lwork, info, 1);
  if (hone_lapack_get(at, lwork) >= 1)
    hone_lapack_passed(&call, start_ms);
}

void hone_lapack_sytrf(hone_lapack_symmetric_call by, const void *n,
                       hone_entry *a, const void *lda, void *ipiv,
                       hone_entry *work, const void *lwork, void *info) {
  hone_lapack_factors f = factors(by.at, by.kind, by.uplo, n, a, lda, ipiv);
  const bool works = take_work(&f, work, lwork) && f.uplo != '?';
  const char *name = hermitian(&f) ? HONE_LETTER "hetrf" : HONE_LETTER "sytrf";
  if (works && by.may_hide && hone_lapack_hide(name, &f, info)) {
    tell_work(&f);
    return;
  }
  hone_entry *copy = works ? hone_lapack_copy_to_keep(&f) : NULL;
  hone_sytrf_fn *real =
      (hone_sytrf_fn *)real_of(&f, HONE_REAL_sytrf, HONE_REAL_hetrf);
  real(by.uplo, n, a, lda, ipiv, work, lwork, info, 1);
  if (copy != NULL && hone_lapack_get(by.at, info) == 0)
    hone_lapack_keep(&f, copy);
  else
    free(copy);
}

void hone_lapack_sytrs(hone_lapack_symmetric_call by, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       const void *ipiv, hone_entry *b, const void *ldb,
                       void *info) {
  const hone_lapack_caller at = by.at;
  hone_lapack_call call = {.f = factors(at, by.kind, by.uplo, n, a, lda, ipiv),
                           .nrhs = hone_lapack_get(at, nrhs),
                           .b = b,
                           .ldb = hone_lapack_get(at, ldb),
                           .x = b,
                           .ldx = hone_lapack_get(at, ldb)};
  call.name = hermitian(&call.f) ? HONE_LETTER "hetrs" : HONE_LETTER "sytrs";
  if (call.f.uplo != '?' && (hone_lapack_hidden_solve(&call, 'N', info) ||
                             hone_lapack_refined(&call, 'N', info)))
    return;
  hone_sytrs_fn *real =
      (hone_sytrs_fn *)real_of(&call.f, HONE_REAL_sytrs, HONE_REAL_hetrs);
  const double start_ms = hone_lapack_now_ms();
  real(by.uplo, n, nrhs, a, lda, ipiv, b, ldb, info, 1);
  hone_lapack_passed(&call, start_ms);
}

void hone_lapack_sycon(hone_lapack_symmetric_call by, const void *n,
                       const hone_entry *a, const void *lda, const void *ipiv,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info) {
  const hone_lapack_factors f =
      factors(by.at, by.kind, by.uplo, n, a, lda, ipiv);
  (void)iwork; /* zsycon_ and zhecon_ have none */
  if (f.uplo != '?' && ipiv != NULL &&
      hone_lapack_hidden_rcond(&f, '1', *anorm, rcond, info))
    return;
  hone_sycon_fn *real =
      (hone_sycon_fn *)real_of(&f, HONE_REAL_sycon, HONE_REAL_hecon);
  real(by.uplo, n, a, lda, ipiv, anorm, rcond, work, HONE_IWORK(iwork) info, 1);
}

void hone_lapack_sytri(hone_lapack_symmetric_call by, const void *n,
                       hone_entry *a, const void *lda, const void *ipiv,
                       hone_entry *work, void *info) {
  const hone_lapack_factors f =
      factors(by.at, by.kind, by.uplo, n, a, lda, ipiv);
  void *exchanges = NULL;
  if (f.uplo != '?' && ipiv != NULL &&
      hone_lapack_hidden_invert(&f, &exchanges, info) == HONE_LAPACK_UNKNOWN)
    return;
  hone_sytri_fn *real =
      (hone_sytri_fn *)real_of(&f, HONE_REAL_sytri, HONE_REAL_hetri);
  real(by.uplo, n, a, lda, exchanges ? exchanges : ipiv, work, info, 1);
  free(exchanges);
}
