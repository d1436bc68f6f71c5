/* SPDX-License-Identifier: BSD-3-Clause */
/* dgesv_, dsgesv_, dgetrf_ and dgetrs_ decide which calls the drop-in solves
   and pass all others on. Calls with wrong arguments are passed on too: the
   real routine finds them, calls xerbla_ and sets INFO. */
#include "lapack/dropin.h"

#include <stddef.h>
#include <stdlib.h>

#define HONE_EXPORT __attribute__((visibility("default")))

/* dgesv_ ------------------------------------------------------------------ */

void hone_lapack_dgesv(const void *caller, const int *n, const int *nrhs,
                       double *a, const int *lda, int *ipiv, double *b,
                       const int *ldb, int *info) {
  const hone_lapack_call call = {
      .name = "dgesv",
      .f = {.n = *n, .lda = *lda, .a = a, .ipiv = ipiv, .caller = caller},
      .nrhs = *nrhs,
      .b = b,
      .ldb = *ldb,
      .x = b,
      .ldx = *ldb};
  if (hone_lapack_takes(&call) && hone_lapack_plain(&call, info))
    return;
  hone_dgesv_fn *real =
      (hone_dgesv_fn *)hone_lapack_must(HONE_REAL_dgesv_, caller);
  const double start_ms = hone_lapack_now_ms();
  real(n, nrhs, a, lda, ipiv, b, ldb, info);
  hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dgesv_fn dgesv_;
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info) {
  hone_lapack_dgesv(__builtin_return_address(0), n, nrhs, a, lda, ipiv, b, ldb,
                    info);
}

/* dsgesv_ ----------------------------------------------------------------- */

void hone_lapack_dsgesv(const void *caller, const int *n, const int *nrhs,
                        double *a, const int *lda, int *ipiv, const double *b,
                        const int *ldb, double *x, const int *ldx, double *work,
                        float *swork, int *iter, int *info) {
  const hone_lapack_call call = {
      .name = "dsgesv",
      .f = {.n = *n, .lda = *lda, .a = a, .ipiv = ipiv, .caller = caller},
      .nrhs = *nrhs,
      .b = b,
      .ldb = *ldb,
      .x = x,
      .ldx = *ldx};
  if (b != x && hone_lapack_takes(&call)) {
    hone_lapack_mixed(&call, iter, info);
    return;
  }
  hone_dsgesv_fn *real =
      (hone_dsgesv_fn *)hone_lapack_real(HONE_REAL_dsgesv_, caller);
  if (real == NULL) {
    hone_lapack_without_mixed(&call, "DSGESV", iter, info);
    return;
  }
  const double start_ms = hone_lapack_now_ms();
  real(n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work, swork, iter, info);
  if (hone_lapack_settings()->on &&
      hone_lapack_false_success(&call, *iter, *info))
    hone_lapack_double(&call, -31, iter, info); /* A is unchanged */
  else
    hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dsgesv_fn dsgesv_;
void dsgesv_(const int *n, const int *nrhs, double *a, const int *lda,
             int *ipiv, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, int *iter, int *info) {
  hone_lapack_dsgesv(__builtin_return_address(0), n, nrhs, a, lda, ipiv, b, ldb,
                     x, ldx, work, swork, iter, info);
}

/* dgetrf_, dgetrs_ -------------------------------------------------------- */

/* The real library makes the factors, since anybody may read them. A copy of A
   is kept for refinement. */
void hone_lapack_dgetrf(const void *caller, const int *m, const int *n,
                        double *a, const int *lda, int *ipiv, int *info) {
  const hone_lapack_factors f = {
      .n = *n, .lda = *lda, .a = a, .ipiv = ipiv, .caller = caller};
  double *copy = *m == *n ? hone_lapack_copy_to_keep(&f) : NULL;
  hone_dgetrf_fn *real =
      (hone_dgetrf_fn *)hone_lapack_must(HONE_REAL_dgetrf_, caller);
  real(m, n, a, lda, ipiv, info);
  if (copy != NULL && *info == 0)
    hone_lapack_keep(&f, copy);
  else
    free(copy);
}

HONE_EXPORT hone_dgetrf_fn dgetrf_;
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv,
             int *info) {
  hone_lapack_dgetrf(__builtin_return_address(0), m, n, a, lda, ipiv, info);
}

void hone_lapack_dgetrs(const void *caller, const char *trans, const int *n,
                        const int *nrhs, const double *a, const int *lda,
                        const int *ipiv, double *b, const int *ldb, int *info,
                        size_t length) {
  const bool known = hone_lapack_is(trans, 'N') || hone_lapack_is(trans, 'T') ||
                     hone_lapack_is(trans, 'C');
  const hone_lapack_call call = {.name = "dgetrs",
                                 .f = {.n = *n,
                                       .lda = *lda,
                                       .a = (double *)(uintptr_t)a,
                                       .ipiv = (int *)(uintptr_t)ipiv,
                                       .caller = caller},
                                 .nrhs = *nrhs,
                                 .b = b,
                                 .ldb = *ldb,
                                 .x = b,
                                 .ldx = *ldb};
  if (known &&
      hone_lapack_refined(&call, hone_lapack_is(trans, 'N') ? 'N' : 'T', info))
    return;
  hone_dgetrs_fn *real =
      (hone_dgetrs_fn *)hone_lapack_must(HONE_REAL_dgetrs_, caller);
  const double start_ms = hone_lapack_now_ms();
  real(trans, n, nrhs, a, lda, ipiv, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}

HONE_EXPORT hone_dgetrs_fn dgetrs_;
void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a,
             const int *lda, const int *ipiv, double *b, const int *ldb,
             int *info, size_t trans_length) {
  hone_lapack_dgetrs(__builtin_return_address(0), trans, n, nrhs, a, lda, ipiv,
                     b, ldb, info, trans_length);
}
