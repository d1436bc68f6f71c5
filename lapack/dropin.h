/* SPDX-License-Identifier: BSD-3-Clause */
/* This header declares what the files of the drop-in for LAPACK share. A
   caller's dgesv_ arrives in exports.c, and goes on to gesv.c, or a dposv_ to
   posv.c; dispatch.c decides how the system is solved. The other files are:

     real.c     finds the LAPACK that would have been called without us
     hone.c     loads libhone when it is first needed, and calls it
     refine.c   refines with LAPACK's own factors
     residual.c residuals in double-double, and backward errors
     kept.c     keeps copies of matrices that the caller has had factored
     refusals.c remembers for whom single precision does not suffice
     config.c   reads the environment, logs, knows who reads no factors
     lapacke*.c are the C interface, LAPACKE

   exports.c is compiled for every interface of interfaces.h: for the caller's
   names and integers. It hands on pointers to integers as they are, since the
   real routine may get the call; within the drop-in sizes are int64_t. What
   handles entries is compiled for double and, with HONE_COMPLEX, for double
   complex (entry_names.h). exports.map lists the exported names. */
#ifndef HONE_LAPACK_DROPIN_H
#define HONE_LAPACK_DROPIN_H

#include "api/hone.h"

#include "base/entry.h"
#include "lapack/entry_names.h"
#include "lapack/interfaces.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Callers ----------------------------------------------------------------- */

/* Whoever called one of our routines. */
typedef struct hone_lapack_caller {
  const void *address;             /* the call's return address */
  hone_lapack_interface interface; /* of the name that was called */
} hone_lapack_caller;

static inline bool hone_lapack_wide(hone_lapack_interface interface) {
  return interface == HONE_ILP64 || interface == HONE_SCIPY_ILP64;
}

/* Reads or writes an integer of the caller's width. */
static inline int64_t hone_lapack_get(hone_lapack_caller at, const void *p) {
  return hone_lapack_wide(at.interface) ? *(const int64_t *)p
                                        : *(const int32_t *)p;
}
static inline void hone_lapack_put(hone_lapack_caller at, void *p, int64_t v) {
  if (hone_lapack_wide(at.interface))
    *(int64_t *)p = v;
  else
    *(int32_t *)p = (int32_t)v;
}

/* An integer of either width, whose address is given to a real routine. */
typedef union hone_lapack_integer {
  int32_t narrow;
  int64_t wide;
} hone_lapack_integer;

static inline hone_lapack_integer hone_lapack_make(hone_lapack_caller at,
                                                   int64_t v) {
  hone_lapack_integer i = {.wide = 0};
  hone_lapack_put(at, &i, v);
  return i;
}

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
  HONE_LAPACK_PAYS_FROM = HONE_PARTS == 1 ? 300 : 400,
  HONE_LAPACK_PAYS_SHARE = 400
};

typedef struct hone_lapack_config {
  bool on, log;
  int crossover;          /* smaller orders are passed on; -1: PAYS_FROM */
  int columns;            /* most right-hand sides; 0: depends on n */
  int factors;            /* HONE_LAPACK_AUTO, ... */
  const char *discarding; /* modules that discard factors, "a:b", or NULL */
  int64_t kept_bytes;     /* limit for all copies of factored matrices */
} hone_lapack_config;

/* Returns the settings, which are read from the environment once. */
const hone_lapack_config *hone_lapack_settings(void);
/* Tells whether the module that called reads no factors. */
bool hone_lapack_discards(hone_lapack_caller at);

/* Returns the time; 0 where nothing is logged. */
double hone_lapack_now_ms(void);
/* Writes a line to stderr if HONE_LOG is set. omega is the backward error, NaN
   if it is not known; start_ms was returned by hone_lapack_now_ms. */
void hone_lapack_log(const char *routine, int64_t n, int64_t nrhs,
                     const char *how, double omega, double start_ms);

/* Tells whether this thread is inside the library already. Its calls of LAPACK
   then go to the real one. */
bool hone_lapack_inside(void);
void hone_lapack_enter(void);
void hone_lapack_leave(void);

/* How often a name was called. */
typedef struct hone_lapack_count {
  const char *name;
  atomic_llong calls;
  struct hone_lapack_count *next; /* for config.c */
} hone_lapack_count;
/* Counts a call for the summary that is logged at exit. */
void hone_lapack_seen(hone_lapack_count *count, hone_lapack_caller at);

/* The real LAPACK --------------------------------------------------------- */

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
typedef void hone_xerbla_fn(const char *name, const void *info, size_t length);
typedef void hone_lapacke_xerbla_fn(const char *name, int32_t info);
typedef void hone_lapacke_xerbla_64_fn(const char *name, int64_t info);
typedef int hone_lapacke_get_nancheck_fn(void);
typedef int hone_get_num_threads_fn(void);

/* X(name) for every function that is looked up at run time, in the caller's
   interface: Fortran routines, of which we define all but the last two, then
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
  X(dgerfs)                                                                    \
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

/* Returns the function that this caller would have reached without us, or NULL.
   The library that defines it then stays loaded. */
void *hone_lapack_real(hone_lapack_name name, hone_lapack_caller at);
/* Does the same for a routine that every LAPACK has. If it is missing, the
   program ends, as the dynamic linker would have ended it. */
void *hone_lapack_must(hone_lapack_name name, hone_lapack_caller at);
/* Tells whether the caller is a LAPACK, of which dgesvx_ and dgerfs_ call
   dgetrf_ and dgetrs_ for themselves. */
bool hone_lapack_is_lapack(hone_lapack_caller at);
/* Returns an address that tells the caller's module from others, or NULL. */
const void *hone_lapack_module(hone_lapack_caller at);
/* Returns the number of threads that the real library uses, or 0 if it cannot
   be asked. */
int hone_lapack_real_threads(hone_lapack_caller at);

/* The library ------------------------------------------------------------- */

/* Calls hone_solve, but stops it, with HONE_CANCELLED or HONE_INTERRUPTED,
   before it factors in double. If definite is true only Cholesky is accepted.
   Returns HONE_NO_DEVICE if libhone.so.0 cannot be loaded. */
int hone_lapack_single(int64_t n, int64_t nrhs, const hone_entry *a,
                       int64_t lda, const hone_entry *b, int64_t ldb,
                       hone_entry *x, int64_t ldx, bool definite,
                       hone_lapack_caller at, hone_report *report);

/* Allocates memory for a matrix for the time of a call, to be freed by free, or
   returns NULL. Large matrices are placed on huge pages, because the page
   faults of fresh memory would take a tenth of the time of a solve. */
hone_entry *hone_lapack_room(int64_t rows, int64_t columns);

/* Factors, refinement ----------------------------------------------------- */

/* A matrix, or its factors, stored as LAPACK stores them: L and U, or one
   triangle for Cholesky. */
typedef struct hone_lapack_factors {
  int64_t n, lda;
  void *a;               /* entries */
  int parts;             /* real numbers in an entry, HONE_PARTS */
  void *ipiv;            /* row exchanges of LU, integers of the caller's */
  char uplo;             /* 'U' or 'L' for Cholesky, 0 for LU */
  hone_lapack_caller at; /* the real LAPACK is looked up for this caller */
} hone_lapack_factors;

/* Calls dgetrf_ or dpotrf_ in place; returns INFO. */
int64_t hone_lapack_factor(const hone_lapack_factors *f);
/* Calls dgetrs_ or dpotrs_ in place, v = inv(op(A)) v; returns INFO. */
int64_t hone_lapack_backsolve(const hone_lapack_factors *f, char trans,
                              int64_t nrhs, hone_entry *v, int64_t ldv);
/* Returns a copy of the matrix that is about to be factored, column by column
   with ld n, to be freed; or NULL without memory. The copy is a whole matrix
   also where A is given by one triangle. */
hone_entry *hone_lapack_copy(const hone_lapack_factors *f);

/* Right-hand sides that are refined together, with their vectors. */
typedef struct hone_lapack_group {
  int64_t n;
  const hone_entry *a; /* n x n, ld n */
  char trans;          /* 'N', 'T' or 'C', as for dgetrs_ */
  int columns;
  const hone_entry *b;
  int64_t ldb;
  hone_entry *x;       /* the current iterate, n x columns, ld n */
  hone_entry *r, *low; /* its residual and work space, stored alike */
  double *den;         /* its denominators, stored alike */
} hone_lapack_group;

/* Computes r = b - op(A) x, as if in double-double precision and rounded once,
   den = |op(A)| |x| + |b|, and omega = max_i |r_i| / den_i for every open
   column. omega is NaN if x is not finite. */
void hone_lapack_residual(const hone_lapack_group *g, const bool *open,
                          double *omega);

/* Improves x by refinement, with the matrix a (n x n, ld n), until its
   componentwise backward error is at most 2 units of rounding or no longer
   falls. x is changed only where its backward error becomes smaller. Returns
   the largest backward error of a column, NaN if x is not finite, or NaN
   without memory, with x unchanged. */
double hone_lapack_refine(const hone_lapack_factors *f, const hone_entry *a,
                          char trans, int64_t nrhs, const hone_entry *b,
                          int64_t ldb, hone_entry *x, int64_t ldx);

/* A copy of a matrix that the caller has factored. It is recognised by the
   contents of its factors. */
typedef struct hone_lapack_kept hone_lapack_kept;
/* Takes over a, the copy that hone_lapack_copy made of the matrix whose factors
   are f; frees it if it cannot be kept. */
void hone_lapack_keep(const hone_lapack_factors *f, void *a);
/* Tells whether hone_lapack_keep would take a copy of this size. */
bool hone_lapack_may_keep(const hone_lapack_factors *f);
/* Finds the matrix (ld n) whose factors these are. The result is NULL if it is
   not known, and must be released otherwise. */
hone_lapack_kept *hone_lapack_find(const hone_lapack_factors *f,
                                   const void **a);
void hone_lapack_release(hone_lapack_kept *kept);

/* Tells whether single precision refused so many matrices of this caller that
   this one is spared the attempt. */
bool hone_lapack_spares(const hone_lapack_factors *f);
/* Remembers how an attempt has ended. */
void hone_lapack_tried(const hone_lapack_factors *f, bool solved);

/* Drivers ----------------------------------------------------------------- */

/* One call of dgesv_, dposv_, dgetrs_ or dpotrs_, where x is b, or of the
   mixed-precision dsgesv_ or dsposv_. */
typedef struct hone_lapack_call {
  const char *name;
  hone_lapack_factors f;
  int64_t nrhs, ldb, ldx;
  const hone_entry *b;
  hone_entry *x;
} hone_lapack_call;

/* Tells whether the drop-in solves this call itself. */
bool hone_lapack_takes(const hone_lapack_call *call);
/* Logs a call that the real library has solved. */
void hone_lapack_passed(const hone_lapack_call *call, double start_ms);
/* Solves a call of dgesv_ or dposv_. Returns false, with A and b unchanged, if
   the real library must solve it after all. */
bool hone_lapack_plain(const hone_lapack_call *call, void *info);
/* Solves a call of dsgesv_ or dsposv_. */
void hone_lapack_mixed(const hone_lapack_call *call, void *iter, void *info);
/* Solves a call of dsgesv_ or dsposv_ in double with the real library, and sets
 *iter_out = iter (< 0). */
void hone_lapack_double(const hone_lapack_call *call, int iter, void *iter_out,
                        void *info);
/* Returns a copy of the matrix that dgetrf_ or dpotrf_ is about to factor, or
   NULL if none is to be kept. */
hone_entry *hone_lapack_copy_to_keep(const hone_lapack_factors *f);
/* Solves a call of dgetrs_ or dpotrs_ as the real routine does, then refines x.
   Returns false, with b unchanged, if the matrix of the factors is not known.
 */
bool hone_lapack_refined(const hone_lapack_call *call, char trans, void *info);
/* Tells whether x of the real dsgesv_ or dsposv_ has a NaN although ITER and
   INFO say that it converged. */
bool hone_lapack_false_success(const hone_lapack_call *call, const void *iter,
                               const void *info);

/* Returns the number of the first wrong argument of dsgesv_ or dsposv_, counted
   from 1, or 0. */
int hone_lapack_wrong(const hone_lapack_call *call);
/* Stands in for dsgesv_ and dsposv_ where the real LAPACK has none (they came
   with 3.1 and 3.2). */
void hone_lapack_without_mixed(const hone_lapack_call *call, const char *name,
                               void *iter, void *info);

static inline bool hone_lapack_is(const char *arg, char letter) {
  return arg != NULL && (*arg == letter || *arg == letter - 'A' + 'a');
}

/* The routines themselves ------------------------------------------------- */

/* Their arguments are those of LAPACK, behind the caller. A real dsgesv_ has no
   rwork. */
void hone_lapack_gesv(hone_lapack_caller at, const void *n, const void *nrhs,
                      hone_entry *a, const void *lda, void *ipiv, hone_entry *b,
                      const void *ldb, void *info);
void hone_lapack_mixed_gesv(hone_lapack_caller at, const void *n,
                            const void *nrhs, hone_entry *a, const void *lda,
                            void *ipiv, const hone_entry *b, const void *ldb,
                            hone_entry *x, const void *ldx, hone_entry *work,
                            hone_single *swork, double *rwork, void *iter,
                            void *info);
void hone_lapack_getrf(hone_lapack_caller at, const void *m, const void *n,
                       hone_entry *a, const void *lda, void *ipiv, void *info);
void hone_lapack_getrs(hone_lapack_caller at, const char *trans, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       const void *ipiv, hone_entry *b, const void *ldb,
                       void *info, size_t length);
void hone_lapack_posv(hone_lapack_caller at, const char *uplo, const void *n,
                      const void *nrhs, hone_entry *a, const void *lda,
                      hone_entry *b, const void *ldb, void *info,
                      size_t length);
void hone_lapack_mixed_posv(hone_lapack_caller at, const char *uplo,
                            const void *n, const void *nrhs, hone_entry *a,
                            const void *lda, const hone_entry *b,
                            const void *ldb, hone_entry *x, const void *ldx,
                            hone_entry *work, hone_single *swork, double *rwork,
                            void *iter, void *info, size_t length);
void hone_lapack_potrf(hone_lapack_caller at, const char *uplo, const void *n,
                       hone_entry *a, const void *lda, void *info,
                       size_t length);
void hone_lapack_potrs(hone_lapack_caller at, const char *uplo, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       hone_entry *b, const void *ldb, void *info,
                       size_t length);

#endif
