/* SPDX-License-Identifier: BSD-3-Clause */
/* dgecon_, dgetri_, dpocon_ and dpotri_ are served where the factors are hidden
   (hidden.h), and passed on otherwise, as calls with wrong arguments are. */
#include "lapack/hidden.h"

#include <stdlib.h>

static hone_lapack_factors factors(hone_lapack_caller at, char uplo,
                                   const void *n, const hone_entry *a,
                                   const void *lda, const void *ipiv) {
  return (hone_lapack_factors){.n = hone_lapack_get(at, n),
                               .lda = hone_lapack_get(at, lda),
                               .a = (void *)(uintptr_t)a,
                               .parts = HONE_PARTS,
                               .ipiv = (void *)(uintptr_t)ipiv,
                               .kind = uplo == 0 ? HONE_LAPACK_LU
                                                 : HONE_LAPACK_CHOLESKY,
                               .uplo = uplo,
                               .at = at};
}

void hone_lapack_gecon(hone_lapack_caller at, const char *norm, const void *n,
                       const hone_entry *a, const void *lda,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info, size_t length) {
  const hone_lapack_factors f = factors(at, 0, n, a, lda, NULL);
  const char which = hone_lapack_is(norm, 'O') || *norm == '1' ? '1'
                     : hone_lapack_is(norm, 'I')               ? 'I'
                                                               : '?';
  if (which != '?' && hone_lapack_hidden_rcond(&f, which, *anorm, rcond, info))
    return;
  hone_gecon_fn *real = (hone_gecon_fn *)hone_lapack_must(HONE_REAL_gecon, at);
  real(norm, n, a, lda, anorm, rcond, work, iwork, info, length);
}

void hone_lapack_pocon(hone_lapack_caller at, const char *uplo, const void *n,
                       const hone_entry *a, const void *lda,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info, size_t length) {
  const char which = hone_lapack_triangle(uplo);
  const hone_lapack_factors f = factors(at, which, n, a, lda, NULL);
  if (which != '?' && hone_lapack_hidden_rcond(&f, '1', *anorm, rcond, info))
    return;
  hone_pocon_fn *real = (hone_pocon_fn *)hone_lapack_must(HONE_REAL_pocon, at);
  real(uplo, n, a, lda, anorm, rcond, work, iwork, info, length);
}

void hone_lapack_getri(hone_lapack_caller at, const void *n, hone_entry *a,
                       const void *lda, const void *ipiv, hone_entry *work,
                       const void *lwork, void *info) {
  const hone_lapack_factors f = factors(at, 0, n, a, lda, ipiv);
  const bool asks = hone_lapack_get(at, lwork) < 0;
  void *exchanges = NULL;
  if (asks)
    hone_lapack_will_invert(&f);
  else if (hone_lapack_get(at, lwork) >= f.n && ipiv != NULL &&
           hone_lapack_hidden_invert(&f, &exchanges, info) ==
               HONE_LAPACK_UNKNOWN)
    return;
  hone_getri_fn *real = (hone_getri_fn *)hone_lapack_must(HONE_REAL_getri, at);
  real(n, a, lda, exchanges ? exchanges : ipiv, work, lwork, info);
  free(exchanges);
}

void hone_lapack_potri(hone_lapack_caller at, const char *uplo, const void *n,
                       hone_entry *a, const void *lda, void *info,
                       size_t length) {
  const char which = hone_lapack_triangle(uplo);
  const hone_lapack_factors f = factors(at, which, n, a, lda, NULL);
  void *exchanges = NULL;
  if (which != '?' &&
      hone_lapack_hidden_invert(&f, &exchanges, info) == HONE_LAPACK_UNKNOWN)
    return;
  free(exchanges);
  hone_potri_fn *real = (hone_potri_fn *)hone_lapack_must(HONE_REAL_potri, at);
  real(uplo, n, a, lda, info, length);
}
