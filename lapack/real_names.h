/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines of the real LAPACK that the drop-in calls: their types and their
   names. Only dropin.h includes this file. */
#ifndef HONE_LAPACK_REAL_NAMES_H
#define HONE_LAPACK_REAL_NAMES_H

#include "base/entry.h"

#include <stddef.h>
#include <stdint.h>

/* The types of LAPACK's routines. Pointers to integers of either width are
   pointers to void. The hidden length that Fortran compilers append for every
   CHARACTER argument is there, since the real routine may read it; the
   prototypes of base/lapack.h leave these lengths out. */
typedef void hone_gesv_fn(const void *n, const void *nrhs, hone_entry *a,
                          const void *lda, void *ipiv, hone_entry *b,
                          const void *ldb, void *info);
typedef void hone_posv_fn(const char *uplo, const void *n, const void *nrhs,
                          hone_entry *a, const void *lda, hone_entry *b,
                          const void *ldb, void *info, size_t uplo_length);
typedef void hone_mixed_gesv_fn(const void *n, const void *nrhs, hone_entry *a,
                                const void *lda, void *ipiv,
                                const hone_entry *b, const void *ldb,
                                hone_entry *x, const void *ldx,
                                hone_entry *work, hone_single *swork,
                                HONE_RWORK(double *rwork) void *iter,
                                void *info);
typedef void hone_mixed_posv_fn(const char *uplo, const void *n,
                                const void *nrhs, hone_entry *a,
                                const void *lda, const hone_entry *b,
                                const void *ldb, hone_entry *x, const void *ldx,
                                hone_entry *work, hone_single *swork,
                                HONE_RWORK(double *rwork) void *iter,
                                void *info, size_t uplo_length);
typedef void hone_getrf_fn(const void *m, const void *n, hone_entry *a,
                           const void *lda, void *ipiv, void *info);
typedef void hone_getrs_fn(const char *trans, const void *n, const void *nrhs,
                           const hone_entry *a, const void *lda,
                           const void *ipiv, hone_entry *b, const void *ldb,
                           void *info, size_t trans_length);
typedef void hone_potrf_fn(const char *uplo, const void *n, hone_entry *a,
                           const void *lda, void *info, size_t uplo_length);
typedef void hone_potrs_fn(const char *uplo, const void *n, const void *nrhs,
                           const hone_entry *a, const void *lda, hone_entry *b,
                           const void *ldb, void *info, size_t uplo_length);
typedef void hone_gecon_fn(const char *norm, const void *n, const void *a,
                           const void *lda, const void *anorm, void *rcond,
                           void *work, void *iwork, void *info,
                           size_t norm_length);
typedef void hone_pocon_fn(const char *uplo, const void *n, const void *a,
                           const void *lda, const void *anorm, void *rcond,
                           void *work, void *iwork, void *info,
                           size_t uplo_length);
typedef void hone_getri_fn(const void *n, hone_entry *a, const void *lda,
                           const void *ipiv, hone_entry *work,
                           const void *lwork, void *info);
typedef void hone_potri_fn(const char *uplo, const void *n, hone_entry *a,
                           const void *lda, void *info, size_t uplo_length);
/* The symmetric routines and, with the same arguments, the Hermitian ones. Only
   dsycon_ has iwork. */
typedef void hone_sysv_fn(const char *uplo, const void *n, const void *nrhs,
                          hone_entry *a, const void *lda, void *ipiv,
                          hone_entry *b, const void *ldb, hone_entry *work,
                          const void *lwork, void *info, size_t uplo_length);
typedef void hone_sytrf_fn(const char *uplo, const void *n, hone_entry *a,
                           const void *lda, void *ipiv, hone_entry *work,
                           const void *lwork, void *info, size_t uplo_length);
typedef void hone_sytrs_fn(const char *uplo, const void *n, const void *nrhs,
                           const hone_entry *a, const void *lda,
                           const void *ipiv, hone_entry *b, const void *ldb,
                           void *info, size_t uplo_length);
typedef void hone_sycon_fn(const char *uplo, const void *n, const void *a,
                           const void *lda, const void *ipiv, const void *anorm,
                           void *rcond, void *work,
                           HONE_IWORK(void *iwork) void *info,
                           size_t uplo_length);
typedef void hone_sytri_fn(const char *uplo, const void *n, hone_entry *a,
                           const void *lda, const void *ipiv, hone_entry *work,
                           void *info, size_t uplo_length);
/* Only dlacn2_ has isgn. */
typedef void hone_lacn2_fn(const void *n, hone_entry *v, hone_entry *x,
                           HONE_IWORK(void *isgn) double *est, void *kase,
                           void *isave);
/* The routines in single precision. */
typedef void hone_single_potrf_fn(const char *uplo, const void *n,
                                  hone_single *a, const void *lda, void *info,
                                  size_t uplo_length);
typedef void hone_single_potrs_fn(const char *uplo, const void *n,
                                  const void *nrhs, const hone_single *a,
                                  const void *lda, hone_single *b,
                                  const void *ldb, void *info,
                                  size_t uplo_length);
typedef void hone_single_sytrf_fn(const char *uplo, const void *n,
                                  hone_single *a, const void *lda, void *ipiv,
                                  hone_single *work, const void *lwork,
                                  void *info, size_t uplo_length);
typedef void hone_single_sytrs_fn(const char *uplo, const void *n,
                                  const void *nrhs, const hone_single *a,
                                  const void *lda, const void *ipiv,
                                  hone_single *b, const void *ldb, void *info,
                                  size_t uplo_length);
typedef void hone_single_trsv_fn(const char *uplo, const char *trans,
                                 const char *diag, const void *n,
                                 const hone_single *a, const void *lda,
                                 hone_single *x, const void *incx,
                                 size_t uplo_length, size_t trans_length,
                                 size_t diag_length);
typedef void hone_xerbla_fn(const char *name, const void *info, size_t length);
typedef void hone_lapacke_xerbla_fn(const char *name, int32_t info);
typedef void hone_lapacke_xerbla_64_fn(const char *name, int64_t info);
typedef int hone_lapacke_get_nancheck_fn(void);
typedef int hone_get_num_threads_fn(void);

/* X(name) for every function that is looked up at run time, in the caller's
   interface: Fortran routines, of which we define those before dgerfs, then
   functions of C. */
#define HONE_LAPACK_FORTRAN_LIST(X)                                            \
  X(dgesv)                                                                     \
  X(dsgesv)                                                                    \
  X(dposv)                                                                     \
  X(dsposv)                                                                    \
  X(dgetrf)                                                                    \
  X(dgetrs)                                                                    \
  X(dpotrf)                                                                    \
  X(dpotrs)                                                                    \
  X(zgesv)                                                                     \
  X(zcgesv)                                                                    \
  X(zposv)                                                                     \
  X(zcposv)                                                                    \
  X(zgetrf)                                                                    \
  X(zgetrs)                                                                    \
  X(zpotrf)                                                                    \
  X(zpotrs)                                                                    \
  X(dgecon)                                                                    \
  X(dgetri)                                                                    \
  X(dpocon)                                                                    \
  X(dpotri)                                                                    \
  X(zgecon)                                                                    \
  X(zgetri)                                                                    \
  X(zpocon)                                                                    \
  X(zpotri)                                                                    \
  X(dsysv)                                                                     \
  X(dsytrf)                                                                    \
  X(dsytrs)                                                                    \
  X(dsycon)                                                                    \
  X(dsytri)                                                                    \
  X(zsysv)                                                                     \
  X(zsytrf)                                                                    \
  X(zsytrs)                                                                    \
  X(zsycon)                                                                    \
  X(zsytri)                                                                    \
  X(zhesv)                                                                     \
  X(zhetrf)                                                                    \
  X(zhetrs)                                                                    \
  X(zhecon)                                                                    \
  X(zhetri)                                                                    \
  X(dgerfs)                                                                    \
  X(dlacn2)                                                                    \
  X(zlacn2)                                                                    \
  X(spotrf)                                                                    \
  X(spotrs)                                                                    \
  X(spocon)                                                                    \
  X(ssytrf)                                                                    \
  X(ssytrs)                                                                    \
  X(ssycon)                                                                    \
  X(strsv)                                                                     \
  X(cpotrf)                                                                    \
  X(cpotrs)                                                                    \
  X(cpocon)                                                                    \
  X(csytrf)                                                                    \
  X(csytrs)                                                                    \
  X(csycon)                                                                    \
  X(chetrf)                                                                    \
  X(chetrs)                                                                    \
  X(checon)                                                                    \
  X(ctrsv)                                                                     \
  X(xerbla)
#define HONE_LAPACK_C_LIST(X)                                                  \
  X(LAPACKE_xerbla)                                                            \
  X(LAPACKE_get_nancheck)                                                      \
  X(openblas_get_num_threads)

typedef enum hone_lapack_name {
#define HONE_LAPACK_REAL_ENUM(name) HONE_REAL_##name,
  HONE_LAPACK_FORTRAN_LIST(HONE_LAPACK_REAL_ENUM)
      HONE_LAPACK_C_LIST(HONE_LAPACK_REAL_ENUM)
#undef HONE_LAPACK_REAL_ENUM
          HONE_REAL_COUNT
} hone_lapack_name;

#endif
