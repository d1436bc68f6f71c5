/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by test_lapack_*.c: the drop-in for LAPACK, opened as a plugin would
   open it, the real LAPACK beside it, and systems to call both with. */
#ifndef TESTS_LAPACK_DROP_IN_H
#define TESTS_LAPACK_DROP_IN_H

#include "tests/unit/support.h"

/* The real LAPACK: OpenBLAS, with which this program is linked. */
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv,
             int *info);
void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a,
             const int *lda, const int *ipiv, double *b, const int *ldb,
             int *info, size_t length);
void dgecon_(const char *norm, const int *n, const double *a, const int *lda,
             const double *anorm, double *rcond, double *work, int *iwork,
             int *info, size_t length);
void dposv_(const char *uplo, const int *n, const int *nrhs, double *a,
            const int *lda, double *b, const int *ldb, int *info,
            size_t length);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda,
             int *info, size_t length);

/* The drop-in, and its own versions of these and other routines. */
typedef struct drop_in {
  void *library;
  __typeof__(dgesv_) *dgesv;
  __typeof__(dgetrf_) *dgetrf;
  __typeof__(dgetrs_) *dgetrs;
  __typeof__(dpotrf_) *dpotrf;
  void (*dsgesv)(const int *n, const int *nrhs, double *a, const int *lda,
                 int *ipiv, const double *b, const int *ldb, double *x,
                 const int *ldx, double *work, float *swork, int *iter,
                 int *info);
  void (*dposv)(const char *uplo, const int *n, const int *nrhs, double *a,
                const int *lda, double *b, const int *ldb, int *info,
                size_t length);
  void (*dsposv)(const char *uplo, const int *n, const int *nrhs, double *a,
                 const int *lda, const double *b, const int *ldb, double *x,
                 const int *ldx, double *work, float *swork, int *iter,
                 int *info, size_t length);
  void (*dpotrs)(const char *uplo, const int *n, const int *nrhs,
                 const double *a, const int *lda, double *b, const int *ldb,
                 int *info, size_t length);
} drop_in;

/* Opens the drop-in, in the folder of this program, with these values of
   HONE_LAPACK_CROSSOVER and HONE_LAPACK_FACTORS; records a failure where there
   is none. */
drop_in drop_in_open(const char *crossover, const char *factors);
void drop_in_close(drop_in *d);

/* The calls of xerbla_ and LAPACKE_xerbla, which this program defines; info and
   name are those of the last one. */
extern struct xerbla_calls {
  int calls, info;
  char name[16];
} xerbla_call;

/* Writes stderr to a file from log_start to log_stop, which returns what was
   written, to be freed. */
typedef struct log_capture {
  void *file; /* FILE */
  int before;
} log_capture;
log_capture log_start(void);
char *log_stop(log_capture *capture);

/* A system and the arrays that the routines write; ld > n. */
typedef struct problem {
  int n, nrhs, ld, info, iter, *ipiv, *ipiv_real;
  double *a, *b;          /* the system, which stays */
  double *f, *x, *f_real; /* A, b and A again, to be overwritten */
  double *work;
  float *swork;
} problem;

/* cond > 0: a matrix of that condition; cond < 0: a symmetric positive definite
   one of condition -cond; 0: uniform entries. */
problem problem_make(int n, int nrhs, double cond);
void problem_free(problem *s);

/* Copies the system into the arrays to be overwritten. */
void problem_reset(problem *s);

/* Sets to NaN, in a, the triangle that routines called with uplo do not read.
 */
void problem_spoil(const problem *s, char uplo, double *a);

/* The largest backward error of the columns of x. */
double problem_backward_error(const problem *s, bool trans);

/* Checks that two matrices of ld x n are equal, bit for bit. */
void problem_check_same(const problem *s, const double *p, const double *q);

/* Checks that f and ipiv are those of the real dgetrf_ or dgesv_, which in
   OpenBLAS differ at small orders. */
void problem_check_getrf(problem *s);
void problem_check_gesv(problem *s);

/* Calls with the arrays of s. */
void drop_in_dgesv(const drop_in *d, problem *s);
void drop_in_dsgesv(const drop_in *d, problem *s);
void drop_in_dposv(const drop_in *d, problem *s, char uplo);
void drop_in_dsposv(const drop_in *d, problem *s, char uplo);

/* The entries of an array of so many columns. */
static inline size_t entries(int ld, int columns) {
  return (size_t)ld * (size_t)columns;
}

#endif
