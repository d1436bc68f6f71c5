/* SPDX-License-Identifier: BSD-3-Clause */
/* This header declares what the files of the drop-in for LAPACK share. A
   caller's dgesv_ arrives in exports.c, and goes on to gesv.c, or a dposv_ to
   posv.c; dispatch.c decides how the system is solved, and hidden.h describes
   what is done where a caller factors first and solves later. The other files
   are:

     real.c     finds the LAPACK that would have been called without us
     own.c      calls the routines of that LAPACK in double precision
     hone.c     loads libhone when it is first needed, and calls it
     refine.c   refines with LAPACK's own factors
     residual.c residuals in double-double
     backward_error.c
                backward errors
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
#include "api/single_factors.h"
#include "base/entry.h"
#include "lapack/entry_names.h"
#include "lapack/interfaces.h"
#include "lapack/real_names.h"

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
  hone_lapack_integer i = {.wide = v}; /* of either width */
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
  /* dgetrf_ and dgetrs_ are two calls, each with more to do. */
  HONE_LAPACK_HIDING_PAYS_FROM = HONE_PARTS == 1 ? 800 : 1000,
  /* dsytrf_ has half the work of dgetrf_. */
  HONE_LAPACK_SYMMETRIC_PAYS_FROM = HONE_PARTS == 1 ? 2500 : 2000,
  HONE_LAPACK_PAYS_SHARE = 400
};

/* Whether dgetrf_ and dpotrf_ may hide their factors (hidden.h). */
enum {
  HONE_LAPACK_HIDE_KNOWN = 0, /* from callers known not to read them, and those
                                 that are named */
  HONE_LAPACK_HIDE_NEVER = 1,
  HONE_LAPACK_HIDE_ALWAYS = 2
};

typedef struct hone_lapack_config {
  bool on, log;
  int crossover;          /* smaller orders are passed on; -1: PAYS_FROM */
  int columns;            /* most right-hand sides; -1: depends on n */
  int factors;            /* HONE_LAPACK_AUTO, ... */
  const char *discarding; /* modules that discard factors, "a:b", or NULL */
  int64_t kept_bytes;     /* limit for all copies of factored matrices */
  int hide;               /* HONE_LAPACK_HIDE_KNOWN, ... */
  const char *hiding;     /* modules that do not read them, "a:b", or NULL */
  int64_t hidden_bytes;   /* limit for all hidden factors */
} hone_lapack_config;

/* Returns the settings, which are read from the environment once. */
const hone_lapack_config *hone_lapack_settings(void);
/* Tells whether the module that called reads no factors of dgesv_. */
bool hone_lapack_discards(hone_lapack_caller at);
/* Tells whether it reads no factors of dgetrf_ and dpotrf_. *at_once: it also
   solves with them before its thread factors the next matrix. */
bool hone_lapack_hides(hone_lapack_caller at, bool *at_once);

/* Returns the time; 0 where nothing is logged. */
double hone_lapack_now_ms(void);
/* Writes a line to stderr if HONE_LOG is set. omega is the backward error, NaN
   if it is not known; start_ms was returned by hone_lapack_now_ms. */
void hone_lapack_log(const char *routine, int64_t n, int64_t nrhs,
                     const char *how, double omega, double start_ms);

/* Tells whether this thread is inside the library already. Its calls of LAPACK
   then go to the real one. */
bool hone_lapack_inside(void);
/* Tells whether a LAPACK made this call, the real one for us or any for itself:
   dgesvx_ and dgerfs_ base their error bounds on what LAPACK's own dgetrs_
   returns. */
bool hone_lapack_nested(hone_lapack_caller at);
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
/* Returns its file's path; "" for the program. */
const char *hone_lapack_module_path(hone_lapack_caller at);
/* Returns how many threads the real library uses; 0: it cannot be asked. */
int hone_lapack_real_threads(hone_lapack_caller at);
/* Has it 64-bit integers under 32-bit names? Then all calls are passed on. */
bool hone_lapack_other_width(hone_lapack_caller at);

/* The library ------------------------------------------------------------- */

/* Calls hone_solve, but stops it, with HONE_CANCELLED or HONE_INTERRUPTED,
   before it factors in double. uplo: 'U' or 'L', the triangle of a definite A,
   of which only Cholesky is accepted; 0: a whole A. HONE_NO_DEVICE:
   libhone.so.0 cannot be loaded. */
int hone_lapack_single(int64_t n, int64_t nrhs, const hone_entry *a,
                       int64_t lda, const hone_entry *b, int64_t ldb,
                       hone_entry *x, int64_t ldx, char uplo,
                       hone_lapack_caller at, hone_report *report);

/* Returns the library's functions for factors in single precision that it does
   not refine with, or NULL if it cannot be loaded or has none. */
const hone_single_table *hone_lapack_single_table(void);

/* Allocates memory for a matrix for the time of a call, to be freed by free, or
   returns NULL. Large matrices are placed on huge pages, because the page
   faults of fresh memory would take a tenth of the time of a solve. */
hone_entry *hone_lapack_room(int64_t rows, int64_t columns);

/* Allocates work space of lwork entries for a factorization of order n by
   dsytrf_ or one of its kin. OpenBLAS's cgemv and zgemv for Haswell and later
   (seen in 0.3.21) read up to one column, n entries, behind it, which another
   allocation need not follow. */
static inline hone_entry *hone_lapack_sytrf_room(int64_t lwork, int64_t n) {
  return hone_lapack_room(lwork + n, 1);
}

/* Factors, refinement ----------------------------------------------------- */

/* The routine that factors a matrix. Only that of LU takes a whole matrix, the
   others one triangle. */
typedef enum hone_lapack_kind {
  HONE_LAPACK_LU,        /* dgetrf_ */
  HONE_LAPACK_CHOLESKY,  /* dpotrf_ */
  HONE_LAPACK_SYMMETRIC, /* dsytrf_ or zsytrf_ */
  HONE_LAPACK_HERMITIAN  /* zhetrf_ */
} hone_lapack_kind;

/* A matrix, or its factors, stored as LAPACK stores them. */
typedef struct hone_lapack_factors {
  int64_t n, lda;
  void *a;    /* entries */
  int parts;  /* real numbers in an entry, HONE_PARTS */
  void *ipiv; /* exchanges, integers of the caller's; NULL for Cholesky */
  hone_lapack_kind kind;
  char uplo;             /* 'U' or 'L'; 0 for LU */
  void *work;            /* of the caller of dsytrf_ or dsysv_, or NULL */
  int64_t lwork;         /* its size, on which LAPACK's roundings depend */
  hone_lapack_caller at; /* the real LAPACK is looked up for this caller */
  bool by_site;          /* refusals are remembered for the call, not for the
                            module that made it */
} hone_lapack_factors;

/* Tells whether the factors have exchanges. */
static inline bool hone_lapack_pivots(const hone_lapack_factors *f) {
  return f->kind != HONE_LAPACK_CHOLESKY;
}
/* Tells whether the other triangle is the conjugate of the given one. */
static inline bool hone_lapack_conjugates(const hone_lapack_factors *f) {
  return f->kind == HONE_LAPACK_CHOLESKY || f->kind == HONE_LAPACK_HERMITIAN;
}

/* Calls dgetrf_, dpotrf_ or dsytrf_ in place; returns INFO, or -1 without
   memory. */
int64_t hone_lapack_factor(const hone_lapack_factors *f);
/* Calls dgetrs_, dpotrs_ or dsytrs_ in place, v = inv(op(A)) v; returns INFO.
 */
int64_t hone_lapack_backsolve(const hone_lapack_factors *f, char trans,
                              int64_t nrhs, hone_entry *v, int64_t ldv);
/* Calls dgecon_, dpocon_ or dsycon_; returns INFO, or -1 without memory. */
int64_t hone_lapack_rcond(const hone_lapack_factors *f, char norm, double anorm,
                          double *rcond);
/* Returns a copy of the matrix that is about to be factored, column by column
   with ld n, to be freed; or NULL without memory. The copy is a whole matrix
   also where A is given by one triangle. keeps: it outlives the call. */
hone_entry *hone_lapack_copy(const hone_lapack_factors *f, bool keeps);

/* A hash of the entries of a matrix, as bits. Every entry adds to it by itself,
   so that parts may be added in any order. A change of a single number always
   changes sum. */
typedef struct hone_lapack_hash {
  uint64_t sum, product, turned;
} hone_lapack_hash;
/* Adds numbers from .. from+count-1 of a column, which are at v. */
void hone_lapack_add_hash(hone_lapack_hash *hash, const double *v, int64_t from,
                          int64_t count, int64_t column);

/* A matrix A that x is refined with, and factors near to those of A. */
typedef struct hone_lapack_system {
  const hone_lapack_factors *f; /* the real LAPACK's, if hidden is NULL */
  const struct hone_lapack_hidden *hidden; /* otherwise in single precision */
  const hone_entry *a;
  int64_t lda;
  const hone_entry *diagonal; /* of A, where a has other numbers; or NULL */
  char uplo;                  /* 'U' or 'L' where a is one triangle, else 0 */
  bool symmetric;             /* the other one is not its conjugate */
  hone_lapack_hash *hash;     /* receives the hash of a in the first pass; or
                                 NULL */
  int threads, steps;         /* at most; most corrections */
} hone_lapack_system;

/* Right-hand sides that are refined together, with their vectors. */
typedef struct hone_lapack_group {
  int64_t n, lda;
  const hone_entry *a; /* as in hone_lapack_system */
  const hone_entry *diagonal;
  char uplo;
  bool symmetric;
  hone_lapack_hash *hash;
  int threads;
  bool quick; /* denominators of rows whose entries' squares underflow
                 may be too small */
  char trans; /* 'N', 'T' or 'C', as for dgetrs_ */
  int columns;
  const hone_entry *b;
  int64_t ldb;
  hone_entry *x;       /* the current iterate, n x columns, ld n */
  hone_entry *r, *low; /* its residual and work space, stored alike */
  double *den;         /* its denominators, stored alike */
} hone_lapack_group;

enum { HONE_LAPACK_AT_ONCE = 16 /* most columns of a group */ };

/* Computes r = b - op(A) x, as if in double-double precision and rounded once,
   den = |op(A)| |x| + |b|, and omega = max_i |r_i| / den_i for every open
   column. omega is NaN if x is not finite. */
void hone_lapack_residual(const hone_lapack_group *g, const bool *open,
                          double *omega);
/* Computes omega of column k, whose r and den are known. */
double hone_lapack_backward_error(const hone_lapack_group *g, int64_t k);
/* Tells whether no row of column k leaves the range of double, as den shows. */
bool hone_lapack_in_range(const hone_lapack_group *g, int64_t k);

/* Improves x by refinement until its componentwise backward error is at most 2
   units of rounding or no longer falls. x is changed only where its backward
   error becomes smaller. Returns the largest backward error of a column, NaN if
   x is not finite, or NaN without memory, with x unchanged. */
double hone_lapack_refine_with(const hone_lapack_system *system, int64_t n,
                               char trans, int64_t nrhs, const hone_entry *b,
                               int64_t ldb, hone_entry *x, int64_t ldx);
/* Does so with LAPACK's factors and the whole matrix a (n x n, ld n). */
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
/* Spares the next calls at once: the attempt succeeded, but did not pay. */
void hone_lapack_regret(const hone_lapack_factors *f);

/* Drivers ----------------------------------------------------------------- */

/* One call of dgesv_, dposv_, dsysv_, dgetrs_, dpotrs_ or dsytrs_, where x is
   b, or of the mixed-precision dsgesv_ or dsposv_. */
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
/* Has the real dgesv_, dposv_ or dsysv_ solve the call; returns INFO. Its
   factors need not have the bits of those of dgetrf_: in OpenBLAS they differ
   for some n and lda. */
int64_t hone_lapack_real_driver(const hone_lapack_call *call);
/* Solves a call of dgesv_ or dposv_. Returns false, with A and b unchanged, if
   the real library must solve it after all. */
bool hone_lapack_plain(const hone_lapack_call *call, void *info);
/* Solves a call of dsysv_ or zhesv_ likewise, with LAPACK's factors; why begins
   the line in the log. */
bool hone_lapack_plain_kept(const hone_lapack_call *call, const char *why,
                            double start_ms, void *info);
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

/* Tells whether LAPACK is better for this order. */
bool hone_lapack_small(int64_t n);
void hone_lapack_copy_columns(int64_t n, int64_t nrhs, const hone_entry *from,
                              int64_t ld_from, hone_entry *to, int64_t ld_to);
/* Puts a tag on A's diagonal, and sets ipiv, where there are no factors:
   whoever reads A all the same must not take it for them. */
void hone_lapack_discard(const hone_lapack_factors *f);
/* Sets ipiv = 1 ... n, a valid permutation, where there are no factors. */
void hone_lapack_no_exchanges(const hone_lapack_factors *f);

static inline bool hone_lapack_is(const char *arg, char letter) {
  return arg != NULL && (*arg == letter || *arg == letter - 'A' + 'a');
}

/* Returns 'U', 'L', or '?' for any other UPLO; such calls are passed on. */
static inline char hone_lapack_triangle(const char *uplo) {
  return hone_lapack_is(uplo, 'U')   ? 'U'
         : hone_lapack_is(uplo, 'L') ? 'L'
                                     : '?';
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
/* Do as hone_lapack_getrf and hone_lapack_potrf, and always leave LAPACK's
   factors. */
void hone_lapack_getrf_shown(hone_lapack_caller at, const void *m,
                             const void *n, hone_entry *a, const void *lda,
                             void *ipiv, void *info);
void hone_lapack_potrf_shown(hone_lapack_caller at, const char *uplo,
                             const void *n, hone_entry *a, const void *lda,
                             void *info, size_t length);
void hone_lapack_gecon(hone_lapack_caller at, const char *norm, const void *n,
                       const hone_entry *a, const void *lda,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info, size_t length);
void hone_lapack_getri(hone_lapack_caller at, const void *n, hone_entry *a,
                       const void *lda, const void *ipiv, hone_entry *work,
                       const void *lwork, void *info);
void hone_lapack_pocon(hone_lapack_caller at, const char *uplo, const void *n,
                       const hone_entry *a, const void *lda,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info, size_t length);
void hone_lapack_potri(hone_lapack_caller at, const char *uplo, const void *n,
                       hone_entry *a, const void *lda, void *info,
                       size_t length);
void hone_lapack_potrf(hone_lapack_caller at, const char *uplo, const void *n,
                       hone_entry *a, const void *lda, void *info,
                       size_t length);
void hone_lapack_potrs(hone_lapack_caller at, const char *uplo, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       hone_entry *b, const void *ldb, void *info,
                       size_t length);

/* Who called one of the following routines, and which one: dsysv_ or zhesv_,
   dsytrf_ or zhetrf_, ... */
typedef struct hone_lapack_symmetric_call {
  hone_lapack_caller at;
  hone_lapack_kind kind;
  const char *uplo;
  bool may_hide; /* false for LAPACKE, which looks for NaN in A */
} hone_lapack_symmetric_call;

void hone_lapack_sysv(hone_lapack_symmetric_call by, const void *n,
                      const void *nrhs, hone_entry *a, const void *lda,
                      void *ipiv, hone_entry *b, const void *ldb,
                      hone_entry *work, const void *lwork, void *info);
void hone_lapack_sytrf(hone_lapack_symmetric_call by, const void *n,
                       hone_entry *a, const void *lda, void *ipiv,
                       hone_entry *work, const void *lwork, void *info);
void hone_lapack_sytrs(hone_lapack_symmetric_call by, const void *n,
                       const void *nrhs, const hone_entry *a, const void *lda,
                       const void *ipiv, hone_entry *b, const void *ldb,
                       void *info);
void hone_lapack_sycon(hone_lapack_symmetric_call by, const void *n,
                       const hone_entry *a, const void *lda, const void *ipiv,
                       const double *anorm, double *rcond, void *work,
                       void *iwork, void *info);
void hone_lapack_sytri(hone_lapack_symmetric_call by, const void *n,
                       hone_entry *a, const void *lda, const void *ipiv,
                       hone_entry *work, void *info);

#endif
