/* SPDX-License-Identifier: BSD-3-Clause */
/* dposv_, dsposv_, dpotrf_ and dpotrs_ do what gesv.c does, for a symmetric (or
   Hermitian) positive definite A given by one triangle. */
#include "lapack/hidden.h"

#include <stdlib.h>

static hone_lapack_factors factors(hone_lapack_caller at, const char *uplo,
                                   const void *n, const hone_entry *a,
                                   const void *lda) {
  return (hone_lapack_factors){.n = hone_lapack_get(at, n),
                               .lda = hone_lapack_get(at, lda),
                               .a = (void *)(uintptr_t)a,
                               .parts = HONE_PARTS,
                               .kind = HONE_LAPACK_CHOLESKY,
                               .uplo = hone_lapack_triangle(uplo),
                               .at = at};
}

void hone_lapack_posv(hone_lapack_caller at, const char *uplo, const void *n,
                      const void *nrhs, hone_entry *a, const void *lda,
                      hone_entry *b, const void *ldb, void *info,
                      size_t length) {
  const hone_lapack_call call = {.name = HONE_LETTER "posv",
                                 .f = factors(at, uplo, n, a, lda),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = b,
                                 .ldx = hone_lapack_get(at, ldb)};
  if (call.f.uplo != '?' && hone_lapack_takes(&call) &&
      hone_lapack_plain(&call, info))
    return;
  hone_posv_fn *real = (hone_posv_fn *)hone_lapack_must(HONE_REAL_posv, at);
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}

void hone_lapack_mixed_posv(hone_lapack_caller at, const char *uplo,
                            const void *n, const void *nrhs, hone_entry *a,
                            const void *lda, const hone_entry *b,
                            const void *ldb, hone_entry *x, const void *ldx,
                            hone_entry *work, hone_single *swork, double *rwork,
                            void *iter, void *info, size_t length) {
  const hone_lapack_call call = {.name = HONE_MIXED "posv",
                                 .f = factors(at, uplo, n, a, lda),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = x,
                                 .ldx = hone_lapack_get(at, ldx)};
  (void)rwork;
  if (call.f.uplo != '?' && b != x && hone_lapack_takes(&call)) {
    hone_lapack_mixed(&call, iter, info);
    return;
  }
  hone_mixed_posv_fn *real =
      (hone_mixed_posv_fn *)hone_lapack_real(HONE_REAL_mixed_posv, at);
  if (real == NULL) {
    hone_lapack_without_mixed(&call, HONE_MIXED_CAPITALS "POSV", iter, info);
    return;
  }
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, x, ldx, work, swork,
       HONE_RWORK(rwork) iter, info, length);
  if (hone_lapack_settings()->on &&
      hone_lapack_false_success(&call, iter, info))
    hone_lapack_double(&call, -31, iter, info); /* A is unchanged */
  else
    hone_lapack_passed(&call, start_ms);
}

void hone_lapack_potrf(hone_lapack_caller at, const char *uplo, const void *n,
                       hone_entry *a, const void *lda, void *info,
                       size_t length) {
  const hone_lapack_factors f = factors(at, uplo, n, a, lda);
  if (f.uplo == '?' || !hone_lapack_hide(HONE_LETTER "potrf", &f, info))
    hone_lapack_potrf_shown(at, uplo, n, a, lda, info, length);
}

void hone_lapack_potrf_shown(hone_lapack_caller at, const char *uplo,
                             const void *n, hone_entry *a, const void *lda,
                             void *info, size_t length) {
  const hone_lapack_factors f = factors(at, uplo, n, a, lda);
  hone_entry *copy = f.uplo != '?' ? hone_lapack_copy_to_keep(&f) : NULL;
  hone_potrf_fn *real = (hone_potrf_fn *)hone_lapack_must(HONE_REAL_potrf, at);
  real(uplo, n, a, lda, info, length);
  if (copy != NULL && hone_lapack_get(at, info) == 0)
    hone_lapack_keep(&f, copy);
  else
    free(copy);
}

void hone_lapack_potrs(hone_lapack_caller at, const char *uplo, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       hone_entry *b, const void *ldb, void *info,
                       size_t length) {
  const hone_lapack_call call = {.name = HONE_LETTER "potrs",
                                 .f = factors(at, uplo, n, a, lda),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = b,
                                 .ldx = hone_lapack_get(at, ldb)};
  if (call.f.uplo != '?' && (hone_lapack_hidden_solve(&call, 'N', info) ||
                             hone_lapack_refined(&call, 'N', info)))
    return;
  hone_potrs_fn *real = (hone_potrs_fn *)hone_lapack_must(HONE_REAL_potrs, at);
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}
