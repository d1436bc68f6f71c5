/* SPDX-License-Identifier: BSD-3-Clause */
/* dposv_, dsposv_, dpotrf_ and dpotrs_ do what gesv.c does, for a symmetric
   positive definite A given by one triangle. */
#include "lapack/dropin.h"

#include <stddef.h>
#include <stdlib.h>

#define HONE_EXPORT __attribute__((visibility("default")))

/* Returns 'U', 'L', or '?' for any other UPLO; such calls are passed on. */
static char triangle(const char *uplo) {
  return hone_lapack_is(uplo, 'U')   ? 'U'
         : hone_lapack_is(uplo, 'L') ? 'L'
                                     : '?';
}

static hone_lapack_factors factors(const void *caller, const char *uplo,
                                   const int *n, const double *a,
                                   const int *lda) {
  return (hone_lapack_factors){.n = *n,
                               .lda = *lda,
                               .a = (double *)(uintptr_t)a,
                               .uplo = triangle(uplo),
                               .caller = caller};
}

/* dposv_ ------------------------------------------------------------------ */

void hone_lapack_dposv(const void *caller, const char *uplo, const int *n,
                       const int *nrhs, double *a, const int *lda, double *b,
                       const int *ldb, int *info, size_t length) {
  const hone_lapack_call call = {.name = "dposv",
                                 .f = factors(caller, uplo, n, a, lda),
                                 .nrhs = *nrhs,
                                 .b = b,
                                 .ldb = *ldb,
                                 .x = b,
                                 .ldx = *ldb};
  if (call.f.uplo != '?' && hone_lapack_takes(&call) &&
      hone_lapack_plain(&call, info))
    return;
  hone_dposv_fn *real =
      (hone_dposv_fn *)hone_lapack_must(HONE_REAL_dposv_, caller);
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dposv_fn dposv_;
void dposv_(const char *uplo, const int *n, const int *nrhs, double *a,
            const int *lda, double *b, const int *ldb, int *info,
            size_t uplo_length) {
  hone_lapack_dposv(__builtin_return_address(0), uplo, n, nrhs, a, lda, b, ldb,
                    info, uplo_length);
}

/* dsposv_ ----------------------------------------------------------------- */

void hone_lapack_dsposv(const void *caller, const char *uplo, const int *n,
                        const int *nrhs, double *a, const int *lda,
                        const double *b, const int *ldb, double *x,
                        const int *ldx, double *work, float *swork, int *iter,
                        int *info, size_t length) {
  const hone_lapack_call call = {.name = "dsposv",
                                 .f = factors(caller, uplo, n, a, lda),
                                 .nrhs = *nrhs,
                                 .b = b,
                                 .ldb = *ldb,
                                 .x = x,
                                 .ldx = *ldx};
  if (call.f.uplo != '?' && b != x && hone_lapack_takes(&call)) {
    hone_lapack_mixed(&call, iter, info);
    return;
  }
  hone_dsposv_fn *real =
      (hone_dsposv_fn *)hone_lapack_real(HONE_REAL_dsposv_, caller);
  if (real == NULL) {
    hone_lapack_without_mixed(&call, "DSPOSV", iter, info);
    return;
  }
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, x, ldx, work, swork, iter, info, length);
  if (hone_lapack_settings()->on &&
      hone_lapack_false_success(&call, *iter, *info))
    hone_lapack_double(&call, -31, iter, info); /* A is unchanged */
  else
    hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dsposv_fn dsposv_;
void dsposv_(const char *uplo, const int *n, const int *nrhs, double *a,
             const int *lda, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, int *iter, int *info,
             size_t uplo_length) {
  hone_lapack_dsposv(__builtin_return_address(0), uplo, n, nrhs, a, lda, b, ldb,
                     x, ldx, work, swork, iter, info, uplo_length);
}

/* dpotrf_, dpotrs_ -------------------------------------------------------- */

void hone_lapack_dpotrf(const void *caller, const char *uplo, const int *n,
                        double *a, const int *lda, int *info, size_t length) {
  const hone_lapack_factors f = factors(caller, uplo, n, a, lda);
  double *copy = f.uplo != '?' ? hone_lapack_copy_to_keep(&f) : NULL;
  hone_dpotrf_fn *real =
      (hone_dpotrf_fn *)hone_lapack_must(HONE_REAL_dpotrf_, caller);
  real(uplo, n, a, lda, info, length);
  if (copy != NULL && *info == 0)
    hone_lapack_keep(&f, copy);
  else
    free(copy);
}

HONE_EXPORT hone_dpotrf_fn dpotrf_;
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda,
             int *info, size_t uplo_length) {
  hone_lapack_dpotrf(__builtin_return_address(0), uplo, n, a, lda, info,
                     uplo_length);
}

void hone_lapack_dpotrs(const void *caller, const char *uplo, const int *n,
                        const int *nrhs, const double *a, const int *lda,
                        double *b, const int *ldb, int *info, size_t length) {
  const hone_lapack_call call = {.name = "dpotrs",
                                 .f = factors(caller, uplo, n, a, lda),
                                 .nrhs = *nrhs,
                                 .b = b,
                                 .ldb = *ldb,
                                 .x = b,
                                 .ldx = *ldb};
  if (call.f.uplo != '?' && hone_lapack_refined(&call, 'N', info))
    return;
  hone_dpotrs_fn *real =
      (hone_dpotrs_fn *)hone_lapack_must(HONE_REAL_dpotrs_, caller);
  const double start_ms = hone_lapack_now_ms();
  real(uplo, n, nrhs, a, lda, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dpotrs_fn dpotrs_;
void dpotrs_(const char *uplo, const int *n, const int *nrhs, const double *a,
             const int *lda, double *b, const int *ldb, int *info,
             size_t uplo_length) {
  hone_lapack_dpotrs(__builtin_return_address(0), uplo, n, nrhs, a, lda, b, ldb,
                     info, uplo_length);
}
