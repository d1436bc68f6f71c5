/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides how a call is solved. dgesv_ and dposv_ promise factors in A:

     nobody reads them   the library solves in single precision and refines; if
                         it does not accept its x, the other way is taken
     somebody may        the real LAPACK factors in place, and x is refined with
                         these factors

   dsgesv_ and dsposv_ leave A unchanged if refinement succeeds (ITER >= 0), so
   that the library is always tried first. */
#define _GNU_SOURCE /* madvise */
#include "lapack/dropin.h"

#include "base/base.h"
#include "base/float_environment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ITER of dsgesv_ when the system was solved in double precision. */
enum {
  ITER_ELSEWHERE = -1, /* for a reason of the implementation or the machine */
  ITER_OVERFLOW = -2,  /* A or B does not fit in single precision */
  ITER_FACTORS = -3,   /* single precision could not factor A */
  ITER_SLOW = -31      /* refinement did not converge */
};

/* LAPACK's own routines, in place ----------------------------------------- */

int hone_lapack_factor(const hone_lapack_factors *f) {
  int info = 0;
  hone_lapack_enter();
  if (f->uplo == 0) {
    hone_dgetrf_fn *getrf =
        (hone_dgetrf_fn *)hone_lapack_must(HONE_REAL_dgetrf_, f->caller);
    getrf(&f->n, &f->n, f->a, &f->lda, f->ipiv, &info);
  } else {
    hone_dpotrf_fn *potrf =
        (hone_dpotrf_fn *)hone_lapack_must(HONE_REAL_dpotrf_, f->caller);
    potrf(&f->uplo, &f->n, f->a, &f->lda, &info, 1);
  }
  hone_lapack_leave();
  return info;
}

int hone_lapack_backsolve(const hone_lapack_factors *f, char trans, int nrhs,
                          double *v, int ldv) {
  int info = 0;
  hone_lapack_enter();
  if (f->uplo == 0) {
    hone_dgetrs_fn *getrs =
        (hone_dgetrs_fn *)hone_lapack_must(HONE_REAL_dgetrs_, f->caller);
    getrs(&trans, &f->n, &nrhs, f->a, &f->lda, f->ipiv, v, &ldv, &info, 1);
  } else {
    hone_dpotrs_fn *potrs =
        (hone_dpotrs_fn *)hone_lapack_must(HONE_REAL_dpotrs_, f->caller);
    potrs(&f->uplo, &f->n, &nrhs, f->a, &f->lda, v, &ldv, &info, 1);
  }
  hone_lapack_leave();
  return info;
}

/* Has the real dgesv_ or dposv_ solve the call. Its factors need not have the
   bits of those of dgetrf_: in OpenBLAS they differ for some n and lda. */
static int real_driver(const hone_lapack_call *call) {
  const hone_lapack_factors *f = &call->f;
  int info = 0;
  hone_lapack_enter();
  if (f->uplo == 0) {
    hone_dgesv_fn *gesv =
        (hone_dgesv_fn *)hone_lapack_must(HONE_REAL_dgesv_, f->caller);
    gesv(&f->n, &call->nrhs, f->a, &f->lda, f->ipiv, call->x, &call->ldx,
         &info);
  } else {
    hone_dposv_fn *posv =
        (hone_dposv_fn *)hone_lapack_must(HONE_REAL_dposv_, f->caller);
    posv(&f->uplo, &f->n, &call->nrhs, f->a, &f->lda, call->x, &call->ldx,
         &info, 1);
  }
  hone_lapack_leave();
  return info;
}

double *hone_lapack_room(size_t rows, size_t columns) {
  const size_t huge = 1 << 21;
  columns = HONE_MAX(columns, (size_t)1);
  if (rows > (SIZE_MAX - huge) / sizeof(double) / columns)
    return NULL;
  const size_t bytes = HONE_MAX(rows * columns, (size_t)1) * sizeof(double);
  if (bytes < 2 * huge)
    return malloc(bytes);
  const size_t whole = (bytes + huge - 1) / huge * huge;
  double *room = aligned_alloc(huge, whole);
#ifdef MADV_HUGEPAGE
  if (room != NULL)
    (void)madvise(room, whole, MADV_HUGEPAGE); /* only a hint, which may fail */
#endif
  return room;
}

/* to_ij = to_ji = a_ij for the given triangle, in tiles that fit in cache. */
static void mirror(const hone_lapack_factors *f, double *to) {
  enum { TILE = 32 };
  const int64_t n = f->n;
  const bool upper = f->uplo == 'U';
  for (int64_t j0 = 0; j0 < n; j0 += TILE)
    for (int64_t i0 = 0; i0 <= j0; i0 += TILE)
      for (int64_t j = j0; j < HONE_MIN(j0 + TILE, n); j++)
        for (int64_t i = i0; i < HONE_MIN(i0 + TILE, j + 1); i++) {
          double v = upper ? f->a[i + j * f->lda] : f->a[j + i * f->lda];
          to[i + j * n] = to[j + i * n] = v;
        }
}

double *hone_lapack_copy(const hone_lapack_factors *f) {
  const size_t n = (size_t)f->n;
  double *copy = hone_lapack_room(n, n);
  if (copy == NULL)
    return NULL;
  if (f->uplo != 0)
    mirror(f, copy);
  else
    for (size_t j = 0; j < n; j++)
      memcpy(copy + j * n, f->a + j * (size_t)f->lda, n * sizeof *copy);
  return copy;
}

/* ---- Which calls the drop-in solves ------------------------------------- */

static bool apart(const double *a, int64_t lda, int64_t columns_a,
                  const double *b, int64_t ldb, int64_t columns_b, int64_t n) {
  const uintptr_t a0 = (uintptr_t)a, b0 = (uintptr_t)b, size = sizeof *a;
  return a0 + (uintptr_t)(lda * (columns_a - 1) + n) * size <= b0 ||
         b0 + (uintptr_t)(ldb * (columns_b - 1) + n) * size <= a0;
}

static int columns_at(const hone_lapack_config *config, int n) {
  if (config->columns > 0)
    return config->columns;
  if (n < HONE_LAPACK_PAYS_FROM)
    return INT32_MAX;
  return HONE_MAX(1, n / HONE_LAPACK_PAYS_SHARE);
}

/* Tells whether a LAPACK made this call, the real one for us or any for itself:
   dgesvx_ and dgerfs_ base their error bounds on what LAPACK's own dgetrs_
   returns. */
static bool by_lapack(const void *caller) {
  return hone_lapack_inside() || hone_lapack_is_lapack(caller);
}

bool hone_lapack_takes(const hone_lapack_call *call) {
  const hone_lapack_config *config = hone_lapack_settings();
  const hone_lapack_factors *f = &call->f;
  const int n = f->n;
  if (n < config->crossover || !config->on || n < 1 || call->nrhs < 1)
    return false;
  return call->nrhs <= columns_at(config, n) && !by_lapack(f->caller) &&
         f->a != NULL && call->b != NULL && call->x != NULL && f->lda >= n &&
         call->ldb >= n && call->ldx >= n &&
         apart(f->a, f->lda, n, call->b, call->ldb, call->nrhs, n) &&
         apart(f->a, f->lda, n, call->x, call->ldx, call->nrhs, n) &&
         (call->b == call->x || apart(call->b, call->ldb, call->nrhs, call->x,
                                      call->ldx, call->nrhs, n));
}

void hone_lapack_passed(const hone_lapack_call *call, double start_ms) {
  const hone_lapack_config *config = hone_lapack_settings();
  if (config->log && !by_lapack(call->f.caller))
    hone_lapack_log(call->name, call->f.n, call->nrhs, "passed on", HONE_NAN,
                    start_ms);
}

/* ---- Ways to solve it -------------------------------------------------- */

static void copy_columns(int n, int nrhs, const double *from, int64_t ld_from,
                         double *to, int64_t ld_to) {
  for (int64_t j = 0; j < nrhs; j++)
    memcpy(to + j * ld_to, from + j * ld_from, (size_t)n * sizeof *to);
}

/* Sets ipiv = 1 ... n, a valid permutation, where there are no factors. */
static void no_exchanges(const hone_lapack_factors *f) {
  for (int i = 0; i < f->n && f->ipiv != NULL; i++)
    f->ipiv[i] = i + 1;
}

/* Has the library solve the call. copy is a copy of A where A is given by one
   triangle, and NULL otherwise. An x with sparse rows is left to LAPACK, whose
   substitution often finds their zeros exactly. */
static int by_library(const hone_lapack_call *call, const double *copy,
                      double *x, int ldx, hone_report *report) {
  const hone_lapack_factors *f = &call->f;
  const int st = hone_lapack_single(f->n, call->nrhs, copy ? copy : f->a,
                                    copy ? f->n : f->lda, call->b, call->ldb, x,
                                    ldx, f->uplo != 0, f->caller, report);
  return st == HONE_OK && report->sparse_columns > 0 ? HONE_NOT_CONVERGED : st;
}

/* Solves dgesv_ and dposv_ where nobody reads the factors. Returns false, with
   A and b unchanged, if x is not accepted. */
static bool plain_single(const hone_lapack_call *call, const double *copy) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  const size_t n = (size_t)f->n, nrhs = (size_t)call->nrhs;
  double *x = hone_lapack_room(n, nrhs);
  hone_report report = HONE_REPORT_INIT;
  if (x == NULL)
    return false;
  const bool solved = by_library(call, copy, x, f->n, &report) == HONE_OK;
  if (solved) {
    copy_columns(f->n, call->nrhs, x, f->n, call->x, call->ldx);
    /* Whoever reads A all the same must not take it for factors. */
    for (int64_t i = 0; i < f->n; i++)
      f->a[i + i * f->lda] = HONE_NAN;
    no_exchanges(f);
    hone_lapack_log(call->name, f->n, call->nrhs, report.path,
                    report.backward_error, start_ms);
  }
  free(x);
  return solved;
}

/* Solves in double and leaves LAPACK's factors in A. copy is a copy of A, and b
   a copy of the right-hand sides. */
static int plain_double(const hone_lapack_call *call, const double *copy,
                        const double *b) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  double omega = HONE_NAN;
  const int info = real_driver(call);
  if (info == 0)
    omega = hone_lapack_refine(f, copy, 'N', call->nrhs, b, f->n, call->x,
                               call->ldx);
  hone_lapack_log(call->name, f->n, call->nrhs,
                  info == 0 ? "double, factors kept, refined"
                            : "double, factors kept, INFO > 0",
                  omega, start_ms);
  return info;
}

static bool plain(const hone_lapack_call *call, int *info) {
  const hone_lapack_factors *f = &call->f;
  const bool discards = hone_lapack_discards(f->caller);
  *info = 0;
  if (discards && f->uplo == 0 && plain_single(call, NULL))
    return true;
  double *copy = hone_lapack_copy(f);
  double *b = hone_lapack_room((size_t)f->n, (size_t)call->nrhs);
  bool done = copy != NULL && b != NULL;
  if (done && !(discards && f->uplo != 0 && plain_single(call, copy))) {
    copy_columns(f->n, call->nrhs, call->b, call->ldb, b, f->n);
    *info = plain_double(call, copy, b);
  }
  free(b);
  free(copy);
  return done;
}

bool hone_lapack_plain(const hone_lapack_call *call, int *info) {
  hone_float_environment callers;
  hone_float_enter(&callers);
  const bool done = plain(call, info);
  hone_float_leave(&callers);
  return done;
}

/* ---- dsgesv_ and dsposv_ ------------------------------------------------ */

static int iter_for(int status) {
  switch (status) {
  case HONE_NOT_FINITE_A:
  case HONE_NOT_FINITE_B:
  case HONE_OVERFLOW:
    return ITER_OVERFLOW;
  case HONE_SINGULAR:
  case HONE_CANCELLED: /* no single-precision factors served */
    return ITER_FACTORS;
  case HONE_NO_MEMORY:
  case HONE_NO_DEVICE:
  case HONE_DEVICE_FAILED:
    return ITER_ELSEWHERE;
  default:
    return ITER_SLOW;
  }
}

/* Solves in double, and refines if there is a copy of A. */
static void solve_in_double(const hone_lapack_call *call, const double *copy,
                            int iter, int *iter_out, int *info) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  char how[64];
  double omega = HONE_NAN;
  *iter_out = iter;
  *info = hone_lapack_factor(f);
  if (*info == 0) {
    copy_columns(f->n, call->nrhs, call->b, call->ldb, call->x, call->ldx);
    *info = hone_lapack_backsolve(f, 'N', call->nrhs, call->x, call->ldx);
  }
  if (*info == 0 && copy != NULL)
    omega = hone_lapack_refine(f, copy, 'N', call->nrhs, call->b, call->ldb,
                               call->x, call->ldx);
  snprintf(how, sizeof how, "double, ITER %d, INFO %d", *iter_out, *info);
  hone_lapack_log(call->name, f->n, call->nrhs, how, omega, start_ms);
}

void hone_lapack_double(const hone_lapack_call *call, int iter, int *iter_out,
                        int *info) {
  hone_float_environment callers;
  hone_float_enter(&callers);
  double *copy = hone_lapack_copy(&call->f);
  solve_in_double(call, copy, iter, iter_out, info);
  free(copy);
  hone_float_leave(&callers);
}

static void mixed(const hone_lapack_call *call, int *iter, int *info) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  hone_report report = HONE_REPORT_INIT;
  double *copy = f->uplo != 0 ? hone_lapack_copy(f) : NULL;
  int st = HONE_NO_MEMORY;
  if (f->uplo == 0 || copy != NULL)
    st = by_library(call, copy, call->x, call->ldx, &report);
  /* ITER >= 0 promises ||r|| <= sqrt(n) eps ||A|| ||x||, which follows from the
     library's own test only for n > 64. Here the error must be at most a
     quarter of eps, because those who check the promise evaluate r in double
     precision, whose rounding errors about double it at n = 2, and may take
     1-norms, as LAPACK's own test programs do, which doubles the quotient once
     more. */
  if (st == HONE_OK && !(report.normwise_error <= 0.25 * HONE_EPS))
    st = HONE_NOT_CONVERGED;
  if (st == HONE_OK) {
    *iter = report.iterations;
    *info = 0;
    no_exchanges(f);
    hone_lapack_log(call->name, f->n, call->nrhs, report.path,
                    report.backward_error, start_ms);
  } else {
    if (copy == NULL)
      copy = hone_lapack_copy(f);
    solve_in_double(call, copy, iter_for(st), iter, info);
  }
  free(copy);
}

void hone_lapack_mixed(const hone_lapack_call *call, int *iter, int *info) {
  hone_float_environment callers;
  hone_float_enter(&callers);
  mixed(call, iter, info);
  hone_float_leave(&callers);
}

int hone_lapack_wrong(const hone_lapack_call *call) {
  const hone_lapack_factors *f = &call->f;
  const int least = HONE_MAX(1, f->n);
  const int shift = f->uplo != 0; /* dsposv_ begins with UPLO, has no IPIV */
  return f->n < 0            ? 1 + shift
         : call->nrhs < 0    ? 2 + shift
         : f->lda < least    ? 4 + shift
         : call->ldb < least ? 7
         : call->ldx < least ? 9
                             : 0;
}

void hone_lapack_without_mixed(const hone_lapack_call *call, const char *name,
                               int *iter, int *info) {
  const bool uplo_wrong = call->f.uplo == '?';
  const int wrong = uplo_wrong ? 1 : hone_lapack_wrong(call);
  *iter = 0;
  *info = -wrong;
  if (wrong != 0) {
    hone_xerbla_fn *xerbla =
        (hone_xerbla_fn *)hone_lapack_real(HONE_REAL_xerbla_, call->f.caller);
    if (xerbla != NULL)
      xerbla(name, &wrong, strlen(name));
  } else if (call->f.n > 0) {
    hone_lapack_double(call, ITER_ELSEWHERE, iter, info);
  }
}

bool hone_lapack_false_success(const hone_lapack_call *call, int iter,
                               int info) {
  if (iter < 0 || info != 0)
    return false;
  for (int64_t j = 0; j < call->nrhs; j++)
    for (int64_t i = 0; i < call->f.n; i++)
      if (isnan(call->x[i + j * call->ldx]))
        return true;
  return false;
}

/* ---- dgetrf_ and dpotrf_, then dgetrs_ and dpotrs_ ---------------------- */

double *hone_lapack_copy_to_keep(const hone_lapack_factors *f) {
  const hone_lapack_config *config = hone_lapack_settings();
  if (f->n < config->crossover || !config->on || f->n < 1 || f->lda < f->n ||
      f->a == NULL || !hone_lapack_may_keep(f->n) || by_lapack(f->caller))
    return NULL;
  return hone_lapack_copy(f);
}

static bool refined(const hone_lapack_call *call, char trans, int *info) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  const double *a = NULL;
  if (!hone_lapack_takes(call))
    return false;
  hone_lapack_kept *kept = hone_lapack_find(f, &a);
  if (kept == NULL)
    return false;
  double *b = hone_lapack_room((size_t)f->n, (size_t)call->nrhs);
  if (b != NULL) {
    copy_columns(f->n, call->nrhs, call->b, call->ldb, b, f->n);
    double omega = HONE_NAN;
    *info = hone_lapack_backsolve(f, trans, call->nrhs, call->x, call->ldx);
    if (*info == 0)
      omega = hone_lapack_refine(f, a, trans, call->nrhs, b, f->n, call->x,
                                 call->ldx);
    hone_lapack_log(call->name, f->n, call->nrhs, "with its factors, refined",
                    omega, start_ms);
  }
  hone_lapack_release(kept);
  free(b);
  return b != NULL;
}

bool hone_lapack_refined(const hone_lapack_call *call, char trans, int *info) {
  hone_float_environment callers;
  hone_float_enter(&callers);
  const bool done = refined(call, trans, info);
  hone_float_leave(&callers);
  return done;
}
