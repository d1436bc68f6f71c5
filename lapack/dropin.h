/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in for LAPACK: what its files share. A caller's dgesv_ arrives at
   gesv.c or posv.c; driver.c decides how it is solved:

     real.c     the LAPACK that would have been called without us
     hone.c     the library, loaded when it is first needed
     refine.c   refinement in double with LAPACK's own factors
     kept.c     copies of matrices that the caller has had factored
     config.c   the environment, the log, who does not read factors

   Sizes are LAPACK's 32-bit integers. What is exported is in exports.map. */
#ifndef HONE_LAPACK_DROPIN_H
#define HONE_LAPACK_DROPIN_H

#include "api/hone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Configuration ----------------------------------------------------------- */

/* The factors that dgesv_ and dposv_ leave in A. */
enum {
  HONE_LAPACK_AUTO = 0,   /* kept, but for callers known to discard them */
  HONE_LAPACK_KEEP = 1,   /* always LAPACK's */
  HONE_LAPACK_DISCARD = 2 /* nobody reads them */
};

enum {
  /* Order from which single precision and refinement pay beside dgesv_, and
     the right-hand sides for which they do, n / so many: docs/lapack.md. */
  HONE_LAPACK_PAYS_FROM = 300,
  HONE_LAPACK_PAYS_SHARE = 400
};

typedef struct hone_lapack_config {
  bool on, log;
  int crossover;          /* orders below it are passed on */
  int columns;            /* so are more right-hand sides; 0: from n */
  int factors;            /* HONE_LAPACK_AUTO, ... */
  const char *discarding; /* modules that discard, "name:name"; or NULL */
  int64_t kept_bytes;     /* copies of factored matrices, all together */
} hone_lapack_config;

/* Read from the environment once. */
const hone_lapack_config *hone_lapack_settings(void);
/* Tells whether the module that holds this code address reads no factors. */
bool hone_lapack_discards(const void *caller);

double hone_lapack_now_ms(void);
/* One line on stderr where HONE_LOG is set. omega: backward error, NaN: not
   known. start_ms: of hone_lapack_now_ms. */
void hone_lapack_log(const char *routine, int n, int nrhs, const char *how,
                     double omega, double start_ms);

/* Tells whether this thread is inside the library already. Its calls of LAPACK
   then go to the real one. */
bool hone_lapack_inside(void);
void hone_lapack_enter(void);
void hone_lapack_leave(void);

/* The real LAPACK --------------------------------------------------------- */

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

/* X(name): what is looked for. */
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

/* The function that code at caller would have reached without us, or NULL.
   Found once for each name; its library then stays loaded. */
void *hone_lapack_real(hone_lapack_name name, const void *caller);
/* As hone_lapack_real, but for a routine that every LAPACK has: if it is
   missing the program ends, as it would by the dynamic linker. */
void *hone_lapack_must(hone_lapack_name name, const void *caller);
/* As many threads as the real library uses; 0: it does not say. */
int hone_lapack_real_threads(const void *caller);

/* The library ------------------------------------------------------------- */

/* hone_solve with single-precision factors alone: instead of factoring in
   double it stops, with HONE_CANCELLED or HONE_INTERRUPTED. definite: by
   Cholesky alone. HONE_NO_DEVICE: libhone.so.0 cannot be loaded. */
int hone_lapack_single(int n, int nrhs, const double *a, int lda,
                       const double *b, int ldb, double *x, int ldx,
                       bool definite, const void *caller, hone_report *report);

/* Memory for matrices, on huge pages where they are large: the page faults of
   fresh memory would take a tenth of a solve. For free. NULL: none. */
double *hone_lapack_room(size_t rows, size_t columns);

/* Factors, refinement ----------------------------------------------------- */

/* Factors where LAPACK has them: LU, or one triangle of Cholesky's. */
typedef struct hone_lapack_factors {
  int n, lda;
  double *a;
  int *ipiv;          /* of LU */
  char uplo;          /* 'U', 'L': Cholesky; 0: LU */
  const void *caller; /* whose LAPACK it is */
} hone_lapack_factors;

/* dgetrf_ or dpotrf_ in place; INFO. */
int hone_lapack_factor(const hone_lapack_factors *f);
/* dgetrs_ or dpotrs_ in place: v = inv(A) v, or inv(A^T) v. INFO. */
int hone_lapack_backsolve(const hone_lapack_factors *f, char trans, int nrhs,
                          double *v, int ldv);
/* A copy of the matrix about to be factored, n x n by columns, all of it also
   where one triangle is given; NULL: no memory. To be freed. */
double *hone_lapack_copy(const hone_lapack_factors *f);

/* Improves x by refinement with residuals of a (n x n, ld n) until its
   componentwise backward error is 2 eps or no longer falls. The largest over
   the columns; NaN: no memory, x is as it was. */
double hone_lapack_refine(const hone_lapack_factors *f, const double *a,
                          char trans, int nrhs, const double *b, int ldb,
                          double *x, int ldx);

/* A matrix that the caller has factored, recognised by the contents of its
   factors. */
typedef struct hone_lapack_kept hone_lapack_kept;
/* Takes a (of hone_lapack_copy) over, with the factors it became; frees it
   where there is no room. */
void hone_lapack_keep(const hone_lapack_factors *f, double *a);
/* Tells whether hone_lapack_keep would take a copy of this order. */
bool hone_lapack_may_keep(int n);
/* The matrix these are factors of, ld n, or NULL. */
hone_lapack_kept *hone_lapack_find(const hone_lapack_factors *f,
                                   const double **a);
void hone_lapack_release(hone_lapack_kept *kept);

/* Drivers ----------------------------------------------------------------- */

/* One call of dgesv_, dposv_, dgetrs_, dpotrs_ (x is b) or of a mixed form. */
typedef struct hone_lapack_call {
  const char *name;
  hone_lapack_factors f;
  int nrhs, ldb, ldx;
  const double *b;
  double *x;
} hone_lapack_call;

/* Tells whether we solve this call. If not, the real library does, and the log
   says so. */
bool hone_lapack_takes(const hone_lapack_call *call);
/* Logs a call that the real library has solved. */
void hone_lapack_passed(const char *name, int n, int nrhs, double start_ms);
/* dgesv_, dposv_: INFO; false: for the real library after all. */
bool hone_lapack_plain(const hone_lapack_call *call, int *info);
/* dsgesv_, dsposv_. */
void hone_lapack_mixed(const hone_lapack_call *call, int *iter, int *info);
/* Solves in double by the real library; ITER (< 0) is returned as given. */
void hone_lapack_double(const hone_lapack_call *call, int iter, int *iter_out,
                        int *info);
/* dgetrf_, dpotrf_: a copy of A where one is to be kept, or NULL. */
double *hone_lapack_copy_to_keep(const hone_lapack_factors *f);
/* dgetrs_, dpotrs_: in place as the real routine does it, then refined, where
   the factors are known. False: for the real library. */
bool hone_lapack_refined(const hone_lapack_call *call, char trans, int *info);
/* Tells whether a result of the real dsgesv_ holds a NaN and claims to have
   converged. */
bool hone_lapack_false_success(const hone_lapack_call *call, int iter,
                               int info);

/* The first argument of dsgesv_ or dsposv_ that is wrong, from 1; 0: none. */
int hone_lapack_wrong(const hone_lapack_call *call);
/* dsgesv_, dsposv_ of a LAPACK from before 3.1 (3.2), which has none. */
void hone_lapack_without_mixed(const hone_lapack_call *call, const char *name,
                               int *iter, int *info);

static inline bool hone_lapack_is(const char *arg, char letter) {
  return arg != NULL && (*arg == letter || *arg == letter - 'A' + 'a');
}

/* The routines themselves, for the caller at an address ------------------- */

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
