/* SPDX-License-Identifier: BSD-3-Clause */
/* Prototypes of the routines of LAPACK and the BLAS that tests and benchmarks
   call, by their Fortran names; the library calls none. OpenBLAS provides the
   routines, but Debian has no header for them. Arguments are those of LAPACK.
   The hidden lengths that Fortran appends for CHARACTER arguments are left out,
   because each of these is a single letter. */
#ifndef HONE_LAPACK_H
#define HONE_LAPACK_H

#include "base/entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- In the precision of hone_entry: double, or double complex (z...) -----
 */

/* LU with partial pivoting, and the solution of systems with the factors. */
void dgetrf_(const int *m, const int *n, hone_entry *a, const int *lda,
             int *ipiv, int *info);
void dgetrs_(const char *trans, const int *n, const int *nrhs,
             const hone_entry *a, const int *lda, const int *ipiv,
             hone_entry *b, const int *ldb, int *info);
/* LU of a band matrix, and solutions with it. */
void dgbtrf_(const int *m, const int *n, const int *kl, const int *ku,
             hone_entry *ab, const int *ldab, int *ipiv, int *info);
void dgbtrs_(const char *trans, const int *n, const int *kl, const int *ku,
             const int *nrhs, const hone_entry *ab, const int *ldab,
             const int *ipiv, hone_entry *b, const int *ldb, int *info);
/* The Cholesky factorization, and the solution of systems with it. */
void dpotrf_(const char *uplo, const int *n, hone_entry *a, const int *lda,
             int *info);
void dpotrs_(const char *uplo, const int *n, const int *nrhs,
             const hone_entry *a, const int *lda, hone_entry *b, const int *ldb,
             int *info);
/* Matrix products and triangular solves. */
void dgemm_(const char *transa, const char *transb, const int *m, const int *n,
            const int *k, const hone_entry *alpha, const hone_entry *a,
            const int *lda, const hone_entry *b, const int *ldb,
            const hone_entry *beta, hone_entry *c, const int *ldc);
void dgemv_(const char *trans, const int *m, const int *n,
            const hone_entry *alpha, const hone_entry *a, const int *lda,
            const hone_entry *x, const int *incx, const hone_entry *beta,
            hone_entry *y, const int *incy);
void dtrsm_(const char *side, const char *uplo, const char *trans,
            const char *diag, const int *m, const int *n,
            const hone_entry *alpha, const hone_entry *a, const int *lda,
            hone_entry *b, const int *ldb);
void dtrsv_(const char *uplo, const char *trans, const char *diag, const int *n,
            const hone_entry *a, const int *lda, hone_entry *x,
            const int *incx);

#ifndef HONE_COMPLEX

/* ---- Single precision ------------------------------------------------- */

void sgetrf_(const int *m, const int *n, float *a, const int *lda, int *ipiv,
             int *info);
void slaswp_(const int *n, float *a, const int *lda, const int *k1,
             const int *k2, const int *ipiv, const int *incx);
void sgetrs_(const char *trans, const int *n, const int *nrhs, const float *a,
             const int *lda, const int *ipiv, float *b, const int *ldb,
             int *info);
void spotrf_(const char *uplo, const int *n, float *a, const int *lda,
             int *info);
void spotrs_(const char *uplo, const int *n, const int *nrhs, const float *a,
             const int *lda, float *b, const int *ldb, int *info);
void sgemm_(const char *transa, const char *transb, const int *m, const int *n,
            const int *k, const float *alpha, const float *a, const int *lda,
            const float *b, const int *ldb, const float *beta, float *c,
            const int *ldc);
void ssyrk_(const char *uplo, const char *trans, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda,
            const float *beta, float *c, const int *ldc);
void strsm_(const char *side, const char *uplo, const char *trans,
            const char *diag, const int *m, const int *n, const float *alpha,
            const float *a, const int *lda, float *b, const int *ldb);
void strsv_(const char *uplo, const char *trans, const char *diag, const int *n,
            const float *a, const int *lda, float *x, const int *incx);

/* ---- Drivers that tests and benchmarks compare with -------------------- */

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);
void dsgesv_(const int *n, const int *nrhs, double *a, const int *lda,
             int *ipiv, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, int *iter, int *info);
void dposv_(const char *uplo, const int *n, const int *nrhs, double *a,
            const int *lda, double *b, const int *ldb, int *info);
void dsposv_(const char *uplo, const int *n, const int *nrhs, double *a,
             const int *lda, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, int *iter, int *info);
void dgecon_(const char *norm, const int *n, const double *a, const int *lda,
             const double *anorm, double *rcond, double *work, int *iwork,
             int *info);
void dlacn2_(const int *n, double *v, double *x, int *isgn, double *est,
             int *kase, int *isave);
void dtrmm_(const char *side, const char *uplo, const char *trans,
            const char *diag, const int *m, const int *n, const double *alpha,
            const double *a, const int *lda, double *b, const int *ldb);

/* ---- OpenBLAS's own functions, for tests and benchmarks ---------------- */

/* They are NULL where the program is linked with another BLAS. */
__attribute__((weak)) void openblas_set_num_threads(int threads);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char *openblas_get_config(void);
__attribute__((weak)) char *openblas_get_corename(void);

static inline void hone_blas_set_threads(int threads) {
  if (openblas_set_num_threads)
    openblas_set_num_threads(threads);
}

static inline int hone_blas_threads(void) {
  return openblas_get_num_threads ? openblas_get_num_threads() : 1;
}

static inline const char *hone_blas_config(void) {
  return openblas_get_config ? openblas_get_config() : "not OpenBLAS";
}

static inline const char *hone_blas_corename(void) {
  return openblas_get_corename ? openblas_get_corename() : "unknown";
}

#endif

#ifdef __cplusplus
}
#endif
#endif
