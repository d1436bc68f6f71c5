/* SPDX-License-Identifier: BSD-3-Clause */
/* This header declares what the files of the drop-in for LAPACK share. A
   caller's dgesv_ arrives in gesv.c, a dposv_ in posv.c; dispatch.c decides how
   the system is solved. The other files are:

     real.c     finds the LAPACK that would have been called without us
     hone.c     loads libhone when it is first needed, and calls it
     refine.c   refines with LAPACK's own factors
     residual.c residuals in double-double, and backward errors
     kept.c     keeps copies of matrices that the caller has had factored
     config.c   reads the environment, logs, knows who reads no factors
     lapacke_*  are the C interface, LAPACKE

   Sizes are LAPACK's 32-bit integers. exports.map lists the exported names. */
#ifndef HONE_LAPACK_DROPIN_H
#define HONE_LAPACK_DROPIN_H

#include "api/hone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Configuration ----------------------------------------------------------- */

/* Whether dgesv_ and dposv_ leave LAPACK's factors in A. */
enum {
  HONE_LAPACK_AUTO = 0,   /* yes, except for callers known to discard them */
  HONE_LAPACK_KEEP = 1,   /* always */
  HONE_LAPACK_DISCARD = 2 /* never: no caller reads them */
};

enum {
  /* Single precision with refinement is faster than dgesv_ from order
     PAYS_FROM on, with at most n / PAYS_SHARE right-hand sides
     (docs/lapack.md has the measurements). */
  HONE_LAPACK_PAYS_FROM = 300,
  HONE_LAPACK_PAYS_SHARE = 400
};

typedef struct hone_lapack_config {
  bool on, log;
  int crossover;          /* smaller orders are passed on */
  int columns;            /* most right-hand sides; 0: depends on n */
  int factors;            /* HONE_LAPACK_AUTO, ... */
  const char *discarding; /* modules that discard factors, "a:b", or NULL */
  int64_t kept_bytes;     /* limit for all copies of factored matrices */
} hone_lapack_config;

/* Returns the settings, which are read from the environment once. */
const hone_lapack_config *hone_lapack_settings(void);
/* Tells whether the module that holds this code address reads no factors. */
bool hone_lapack_discards(const void *caller);

double hone_lapack_now_ms(void);
/* Writes a line to stderr if HONE_LOG is set. omega is the backward error, NaN
   if it is not known; start_ms was returned by hone_lapack_now_ms. */
void hone_lapack_log(const char *routine, int n, int nrhs, const char *how,
                     double omega, double start_ms);

/* Tells whether this thread is inside the library already. Its calls of LAPACK
   then go to the real one. */
bool hone_lapack_inside(void);
void hone_lapack_enter(void);
void hone_lapack_leave(void);

/* The real LAPACK --------------------------------------------------------- */

/* The types of LAPACK's routines, as dgesv_ and the others are defined here.
   They have the hidden length that Fortran compilers append for every CHARACTER
   argument, since the real routine may read it. The prototypes of base/lapack.h
   leave these lengths out, so that it cannot be included here. */
typedef void hone_dgesv_fn(const int *n, const int *nrhs, double *a,
                           const int *lda, int *ipiv, double *b, const int *ldb,
                           int *info);
typedef void hone_dsgesv_fn(const int *n, const int *nrhs, double *a,
                            const int *lda, int *ipiv, const double *b,
                            const int *ldb, double *x, const int *ldx,
                            double *work, float *swork, int *iter, int *info);
typedef void hone_dposv_fn(const char *uplo, const int *n, const int *nrhs,
                           double *a, const int *lda, double *b, const int *ldb,
                           int *info, size_t uplo_length);
typedef void hone_dsposv_fn(const char *uplo, const int *n, const int *nrhs,
                            double *a, const int *lda, const double *b,
                            const int *ldb, double *x, const int *ldx,
                            double *work, float *swork, int *iter, int *info,
                            size_t uplo_length);
typedef void hone_dgetrf_fn(const int *m, const int *n, double *a,
                            const int *lda, int *ipiv, int *info);
typedef void hone_dgetrs_fn(const char *trans, const int *n, const int *nrhs,
                            const double *a, const int *lda, const int *ipiv,
                            double *b, const int *ldb, int *info,
                            size_t trans_length);
typedef void hone_dpotrf_fn(const char *uplo, const int *n, double *a,
                            const int *lda, int *info, size_t uplo_length);
typedef void hone_dpotrs_fn(const char *uplo, const int *n, const int *nrhs,
                            const double *a, const int *lda, double *b,
                            const int *ldb, int *info, size_t uplo_length);
typedef void hone_xerbla_fn(const char *name, const int *info, size_t length);
typedef void hone_lapacke_xerbla_fn(const char *name, int info);
typedef int hone_lapacke_get_nancheck_fn(void);
typedef int hone_get_num_threads_fn(void);

/* X(name) for every function that is looked up at run time. */
#define HONE_LAPACK_REAL_LIST(X)                                               \
  X(dgesv_)                                                                    \
  X(dsgesv_)                                                                   \
  X(dposv_)                                                                    \
  X(dsposv_)                                                                   \
  X(dgetrf_)                                                                   \
  X(dgetrs_)                                                                   \
  X(dpotrf_)                                                                   \
  X(dpotrs_)                                                                   \
  X(xerbla_)                                                                   \
  X(LAPACKE_xerbla)                                                            \
  X(LAPACKE_get_nancheck)                                                      \
  X(openblas_get_num_threads)

typedef enum hone_lapack_name {
#define HONE_LAPACK_REAL_ENUM(name) HONE_REAL_##name,
  HONE_LAPACK_REAL_LIST(HONE_LAPACK_REAL_ENUM)
#undef HONE_LAPACK_REAL_ENUM
      HONE_REAL_COUNT
} hone_lapack_name;

/* Returns the function that code at the address caller would have reached
   without us, or NULL. Each name is looked up once; the library that defines it
   then stays loaded. */
void *hone_lapack_real(hone_lapack_name name, const void *caller);
/* Does the same for a routine that every LAPACK has. If it is missing, the
   program ends, as the dynamic linker would have ended it. */
void *hone_lapack_must(hone_lapack_name name, const void *caller);
/* Tells whether the code at the address caller is in a LAPACK, of which dgesvx_
   and dgerfs_ call dgetrf_ and dgetrs_ for themselves. */
bool hone_lapack_is_lapack(const void *caller);
/* Returns the number of threads that the real library uses, or 0 if it cannot
   be asked. */
int hone_lapack_real_threads(const void *caller);

/* The library ------------------------------------------------------------- */

/* Calls hone_solve, but stops it, with HONE_CANCELLED or HONE_INTERRUPTED,
   before it factors in double. If definite is true only Cholesky is accepted.
   Returns HONE_NO_DEVICE if libhone.so.0 cannot be loaded. */
int hone_lapack_single(int n, int nrhs, const double *a, int lda,
                       const double *b, int ldb, double *x, int ldx,
                       bool definite, const void *caller, hone_report *report);

/* Allocates memory for a matrix, to be freed by free, or returns NULL. Large
   matrices are placed on huge pages, because the page faults of fresh memory
   would take a tenth of the time of a solve. */
double *hone_lapack_room(size_t rows, size_t columns);

/* Factors, refinement ----------------------------------------------------- */

/* A matrix, or its factors, stored as LAPACK stores them: L and U, or one
   triangle for Cholesky. */
typedef struct hone_lapack_factors {
  int n, lda;
  double *a;
  int *ipiv;          /* row exchanges of LU */
  char uplo;          /* 'U' or 'L' for Cholesky, 0 for LU */
  const void *caller; /* the real LAPACK is looked up for this address */
} hone_lapack_factors;

/* Calls dgetrf_ or dpotrf_ in place; returns INFO. */
int hone_lapack_factor(const hone_lapack_factors *f);
/* Calls dgetrs_ or dpotrs_ in place, v = inv(A) v or inv(A^T) v; returns INFO.
 */
int hone_lapack_backsolve(const hone_lapack_factors *f, char trans, int nrhs,
                          double *v, int ldv);
/* Returns a copy of the matrix that is about to be factored, column by column
   with ld n, to be freed; or NULL without memory. The copy is a whole matrix
   also where A is given by one triangle. */
double *hone_lapack_copy(const hone_lapack_factors *f);

/* Right-hand sides that are refined together, with their vectors. */
typedef struct hone_lapack_group {
  int64_t n;
  const double *a; /* n x n, ld n */
  bool trans;
  int columns;
  const double *b;
  int64_t ldb;
  double *x;       /* the current iterate, n x columns, ld n */
  double *r, *den; /* its residual and denominators, stored alike */
  double *low;     /* work space, stored alike */
} hone_lapack_group;

/* Computes r = b - A x, as if in double-double precision and rounded once, den
   = |A| |x| + |b|, and omega = max_i |r_i| / den_i for every open column. omega
   is NaN if x is not finite. */
void hone_lapack_residual(const hone_lapack_group *g, const bool *open,
                          double *omega);

/* Improves x by refinement, with the matrix a (n x n, ld n), until its
   componentwise backward error is at most 2 units of rounding or no longer
   falls. x is changed only where its backward error becomes smaller. Returns
   the largest backward error of a column, NaN if x is not finite, or NaN
   without memory, with x unchanged. */
double hone_lapack_refine(const hone_lapack_factors *f, const double *a,
                          char trans, int nrhs, const double *b, int ldb,
                          double *x, int ldx);

/* A copy of a matrix that the caller has factored. It is recognised by the
   contents of its factors. */
typedef struct hone_lapack_kept hone_lapack_kept;
/* Takes over a, the copy that hone_lapack_copy made of the matrix whose factors
   are f; frees it if it cannot be kept. */
void hone_lapack_keep(const hone_lapack_factors *f, double *a);
/* Tells whether hone_lapack_keep would take a copy of this order. */
bool hone_lapack_may_keep(int n);
/* Finds the matrix (ld n) whose factors these are. The result is NULL if it is
   not known, and must be released otherwise. */
hone_lapack_kept *hone_lapack_find(const hone_lapack_factors *f,
                                   const double **a);
void hone_lapack_release(hone_lapack_kept *kept);

/* Drivers ----------------------------------------------------------------- */

/* One call of dgesv_, dposv_, dgetrs_ or dpotrs_, where x is b, or of the
   mixed-precision dsgesv_ or dsposv_. */
typedef struct hone_lapack_call {
  const char *name;
  hone_lapack_factors f;
  int nrhs, ldb, ldx;
  const double *b;
  double *x;
} hone_lapack_call;

/* Tells whether the drop-in solves this call itself. */
bool hone_lapack_takes(const hone_lapack_call *call);
/* Logs a call that the real library has solved. */
void hone_lapack_passed(const hone_lapack_call *call, double start_ms);
/* Solves a call of dgesv_ or dposv_. Returns false, with A and b unchanged, if
   the real library must solve it after all. */
bool hone_lapack_plain(const hone_lapack_call *call, int *info);
/* Solves a call of dsgesv_ or dsposv_. */
void hone_lapack_mixed(const hone_lapack_call *call, int *iter, int *info);
/* Solves a call of dsgesv_ or dsposv_ in double with the real library, and sets
 *iter_out = iter (< 0). */
void hone_lapack_double(const hone_lapack_call *call, int iter, int *iter_out,
                        int *info);
/* Returns a copy of the matrix that dgetrf_ or dpotrf_ is about to factor, or
   NULL if none is to be kept. */
double *hone_lapack_copy_to_keep(const hone_lapack_factors *f);
/* Solves a call of dgetrs_ or dpotrs_ as the real routine does, then refines x.
   Returns false, with b unchanged, if the matrix of the factors is not known.
 */
bool hone_lapack_refined(const hone_lapack_call *call, char trans, int *info);
/* Tells whether x of the real dsgesv_ or dsposv_ has a NaN although ITER and
   INFO say that it converged. */
bool hone_lapack_false_success(const hone_lapack_call *call, int iter,
                               int info);

/* Returns the number of the first wrong argument of dsgesv_ or dsposv_, counted
   from 1, or 0. */
int hone_lapack_wrong(const hone_lapack_call *call);
/* Stands in for dsgesv_ and dsposv_ where the real LAPACK has none (they came
   with 3.1 and 3.2). */
void hone_lapack_without_mixed(const hone_lapack_call *call, const char *name,
                               int *iter, int *info);

static inline bool hone_lapack_is(const char *arg, char letter) {
  return arg != NULL && (*arg == letter || *arg == letter - 'A' + 'a');
}

/* The routines themselves, with the caller's return address --------------- */

void hone_lapack_dgesv(const void *caller, const int *n, const int *nrhs,
                       double *a, const int *lda, int *ipiv, double *b,
                       const int *ldb, int *info);
void hone_lapack_dsgesv(const void *caller, const int *n, const int *nrhs,
                        double *a, const int *lda, int *ipiv, const double *b,
                        const int *ldb, double *x, const int *ldx, double *work,
                        float *swork, int *iter, int *info);
void hone_lapack_dgetrf(const void *caller, const int *m, const int *n,
                        double *a, const int *lda, int *ipiv, int *info);
void hone_lapack_dgetrs(const void *caller, const char *trans, const int *n,
                        const int *nrhs, const double *a, const int *lda,
                        const int *ipiv, double *b, const int *ldb, int *info,
                        size_t length);
void hone_lapack_dposv(const void *caller, const char *uplo, const int *n,
                       const int *nrhs, double *a, const int *lda, double *b,
                       const int *ldb, int *info, size_t length);
void hone_lapack_dsposv(const void *caller, const char *uplo, const int *n,
                        const int *nrhs, double *a, const int *lda,
                        const double *b, const int *ldb, double *x,
                        const int *ldx, double *work, float *swork, int *iter,
                        int *info, size_t length);
void hone_lapack_dpotrf(const void *caller, const char *uplo, const int *n,
                        double *a, const int *lda, int *info, size_t length);
void hone_lapack_dpotrs(const void *caller, const char *uplo, const int *n,
                        const int *nrhs, const double *a, const int *lda,
                        double *b, const int *ldb, int *info, size_t length);

#endif
