/* SPDX-License-Identifier: BSD-3-Clause */
/* dgesv_, dsgesv_, dgetrf_ and dgetrs_ decide which calls the drop-in solves
   and pass all others on. Calls with wrong arguments are passed on too: the
   real routine finds them, calls xerbla_ and sets INFO. */
#include "lapack/hidden.h"

#include <stdlib.h>

static hone_lapack_factors factors(hone_lapack_caller at, const void *n,
                                   const hone_entry *a, const void *lda,
                                   const void *ipiv) {
  return (hone_lapack_factors){.n = hone_lapack_get(at, n),
                               .lda = hone_lapack_get(at, lda),
                               .a = (void *)(uintptr_t)a,
                               .parts = HONE_PARTS,
                               .ipiv = (void *)(uintptr_t)ipiv,
                               .at = at};
}

void hone_lapack_gesv(hone_lapack_caller at, const void *n, const void *nrhs,
                      hone_entry *a, const void *lda, void *ipiv, hone_entry *b,
                      const void *ldb, void *info) {
  const hone_lapack_call call = {.name = HONE_LETTER "gesv",
                                 .f = factors(at, n, a, lda, ipiv),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = b,
                                 .ldx = hone_lapack_get(at, ldb)};
  if (hone_lapack_takes(&call) && hone_lapack_plain(&call, info))
    return;
  hone_gesv_fn *real = (hone_gesv_fn *)hone_lapack_must(HONE_REAL_gesv, at);
  const double start_ms = hone_lapack_now_ms();
  real(n, nrhs, a, lda, ipiv, b, ldb, info);
  hone_lapack_passed(&call, start_ms);
}

void hone_lapack_mixed_gesv(hone_lapack_caller at, const void *n,
                            const void *nrhs, hone_entry *a, const void *lda,
                            void *ipiv, const hone_entry *b, const void *ldb,
                            hone_entry *x, const void *ldx, hone_entry *work,
                            hone_single *swork, double *rwork, void *iter,
                            void *info) {
  const hone_lapack_call call = {.name = HONE_MIXED "gesv",
                                 .f = factors(at, n, a, lda, ipiv),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = x,
                                 .ldx = hone_lapack_get(at, ldx)};
  (void)rwork;
  if (b != x && hone_lapack_takes(&call)) {
    hone_lapack_mixed(&call, iter, info);
    return;
  }
  hone_mixed_gesv_fn *real =
      (hone_mixed_gesv_fn *)hone_lapack_real(HONE_REAL_mixed_gesv, at);
  if (real == NULL) {
    hone_lapack_without_mixed(&call, HONE_MIXED_CAPITALS "GESV", iter, info);
    return;
  }
  const double start_ms = hone_lapack_now_ms();
  real(n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work, swork,
       HONE_RWORK(rwork) iter, info);
  if (hone_lapack_settings()->on &&
      hone_lapack_false_success(&call, iter, info))
    hone_lapack_double(&call, -31, iter, info); /* A is unchanged */
  else
    hone_lapack_passed(&call, start_ms);
}

void hone_lapack_getrf(hone_lapack_caller at, const void *m, const void *n,
                       hone_entry *a, const void *lda, void *ipiv, void *info) {
  const hone_lapack_factors f = factors(at, n, a, lda, ipiv);
  if (hone_lapack_get(at, m) != f.n ||
      !hone_lapack_hide(HONE_LETTER "getrf", &f, info))
    hone_lapack_getrf_shown(at, m, n, a, lda, ipiv, info);
}

/* The real library makes the factors, since anybody may read them. A copy of A
   is kept for refinement. */
void hone_lapack_getrf_shown(hone_lapack_caller at, const void *m,
                             const void *n, hone_entry *a, const void *lda,
                             void *ipiv, void *info) {
  const hone_lapack_factors f = factors(at, n, a, lda, ipiv);
  hone_entry *copy =
      hone_lapack_get(at, m) == f.n ? hone_lapack_copy_to_keep(&f) : NULL;
  hone_getrf_fn *real = (hone_getrf_fn *)hone_lapack_must(HONE_REAL_getrf, at);
  real(m, n, a, lda, ipiv, info);
  if (copy != NULL && hone_lapack_get(at, info) == 0)
    hone_lapack_keep(&f, copy);
  else
    free(copy);
}

/* Returns 'N', 'T', 'C', or '?' for any other TRANS; such calls are passed on.
 */
static char known(const char *trans) {
  return hone_lapack_is(trans, 'N')   ? 'N'
         : hone_lapack_is(trans, 'T') ? 'T'
         : hone_lapack_is(trans, 'C') ? 'C'
                                      : '?';
}

void hone_lapack_getrs(hone_lapack_caller at, const char *trans, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       const void *ipiv, hone_entry *b, const void *ldb,
                       void *info, size_t length) {
  const hone_lapack_call call = {.name = HONE_LETTER "getrs",
                                 .f = factors(at, n, a, lda, ipiv),
                                 .nrhs = hone_lapack_get(at, nrhs),
                                 .b = b,
                                 .ldb = hone_lapack_get(at, ldb),
                                 .x = b,
                                 .ldx = hone_lapack_get(at, ldb)};
  if (known(trans) != '?' &&
      (hone_lapack_hidden_solve(&call, known(trans), info) ||
       hone_lapack_refined(&call, known(trans), info)))
    return;
  hone_getrs_fn *real = (hone_getrs_fn *)hone_lapack_must(HONE_REAL_getrs, at);
  const double start_ms = hone_lapack_now_ms();
  real(trans, n, nrhs, a, lda, ipiv, b, ldb, info, length);
  hone_lapack_passed(&call, start_ms);
}
