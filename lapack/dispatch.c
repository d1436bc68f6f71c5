/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides how a call is solved. dgesv_ and dposv_ promise factors in A:

     nobody reads them   the library solves in single precision and refines; if
                         it does not accept its x, the other way is taken
     somebody may        the real LAPACK factors in place, and x is refined with
                         these factors

   dsgesv_ and dsposv_ leave A unchanged if refinement succeeds (ITER >= 0), so
   that the library is always tried first. */
#include "lapack/hidden.h"

#include "api/guest.h"
#include "base/base.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ITER of dsgesv_ when the system was solved in double precision. */
enum {
  ITER_ELSEWHERE = -1, /* for a reason of the implementation or the machine */
  ITER_OVERFLOW = -2,  /* A or B does not fit in single precision */
  ITER_FACTORS = -3,   /* single precision could not factor A */
  ITER_SLOW = -31      /* refinement did not converge */
};

/* ---- Which calls the drop-in solves ------------------------------------- */

static bool apart(const void *a, int64_t lda, int64_t columns_a, const void *b,
                  int64_t ldb, int64_t columns_b, int64_t n) {
  const uintptr_t a0 = (uintptr_t)a, b0 = (uintptr_t)b;
  const uintptr_t size = sizeof(hone_entry);
  return a0 + (uintptr_t)(lda * (columns_a - 1) + n) * size <= b0 ||
         b0 + (uintptr_t)(ldb * (columns_b - 1) + n) * size <= a0;
}

static int64_t columns_at(const hone_lapack_config *config, int64_t n) {
  if (config->columns >= 0)
    return config->columns;
  if (n < HONE_LAPACK_PAYS_FROM)
    return INT64_MAX;
  return HONE_MAX((int64_t)1, n / HONE_LAPACK_PAYS_SHARE);
}

bool hone_lapack_small(int64_t n) {
  const hone_lapack_config *config = hone_lapack_settings();
  return n < 1 || n < (config->crossover >= 0 ? config->crossover
                                              : HONE_LAPACK_PAYS_FROM);
}

bool hone_lapack_takes(const hone_lapack_call *call) {
  const hone_lapack_config *config = hone_lapack_settings();
  const hone_lapack_factors *f = &call->f;
  const int64_t n = f->n;
  if (hone_lapack_small(n) || !config->on || call->nrhs < 1)
    return false;
  return call->nrhs <= columns_at(config, n) && !hone_lapack_nested(f->at) &&
         !hone_lapack_other_width(f->at) && f->a != NULL && call->b != NULL &&
         call->x != NULL && f->lda >= n && call->ldb >= n && call->ldx >= n &&
         apart(f->a, f->lda, n, call->b, call->ldb, call->nrhs, n) &&
         apart(f->a, f->lda, n, call->x, call->ldx, call->nrhs, n) &&
         (call->b == call->x || apart(call->b, call->ldb, call->nrhs, call->x,
                                      call->ldx, call->nrhs, n));
}

void hone_lapack_passed(const hone_lapack_call *call, double start_ms) {
  const hone_lapack_config *config = hone_lapack_settings();
  if (config->log && !hone_lapack_nested(call->f.at))
    hone_lapack_log(call->name, call->f.n, call->nrhs, "passed on", HONE_NAN,
                    start_ms);
}

/* ---- Ways to solve it -------------------------------------------------- */

void hone_lapack_no_exchanges(const hone_lapack_factors *f) {
  if (f->ipiv == NULL)
    return;
  for (int64_t i = 0; i < f->n; i++)
    if (hone_lapack_wide(f->at.interface))
      ((int64_t *)f->ipiv)[i] = i + 1;
    else
      ((int32_t *)f->ipiv)[i] = (int32_t)(i + 1);
}

void hone_lapack_discard(const hone_lapack_factors *f) {
  hone_entry *a = f->a;
  for (int64_t i = 0; i < f->n * HONE_PARTS; i++)
    memcpy((double *)(a + i / HONE_PARTS * (f->lda + 1)) + i % HONE_PARTS,
           &hone_lapack_discarded, sizeof hone_lapack_discarded);
  hone_lapack_no_exchanges(f);
}

/* Has the library solve the call. An x with sparse rows is left to LAPACK,
   whose substitution often finds their zeros exactly. */
static int by_library(const hone_lapack_call *call, hone_entry *x, int64_t ldx,
                      hone_report *report) {
  const hone_lapack_factors *f = &call->f;
  const int st = hone_lapack_single(f->n, call->nrhs, f->a, f->lda, call->b,
                                    call->ldb, x, ldx, f->uplo, f->at, report);
  return st == HONE_OK && report->sparse_columns > 0 ? HONE_NOT_CONVERGED : st;
}

/* Solves dgesv_ and dposv_ where nobody reads the factors. Returns false, with
   A and b unchanged, if x is not accepted. */
static bool plain_single(const hone_lapack_call *call, double start_ms) {
  const hone_lapack_factors *f = &call->f;
  hone_entry *x = hone_lapack_room(f->n, call->nrhs);
  hone_report report = HONE_REPORT_INIT;
  if (x == NULL)
    return false;
  const bool solved = by_library(call, x, f->n, &report) == HONE_OK;
  hone_lapack_tried(f, solved);
  if (solved) {
    hone_lapack_copy_columns(f->n, call->nrhs, x, f->n, call->x, call->ldx);
    hone_lapack_discard(f);
    hone_lapack_log(call->name, f->n, call->nrhs, report.path,
                    report.backward_error, start_ms);
  }
  free(x);
  return solved;
}

/* Solves in double and leaves LAPACK's factors in A. copy is a copy of A, and b
   a copy of the right-hand sides; why begins the line in the log. */
static int64_t plain_double(const hone_lapack_call *call,
                            const hone_entry *copy, const hone_entry *b,
                            const char *why, double start_ms) {
  const hone_lapack_factors *f = &call->f;
  char how[64];
  double omega = HONE_NAN;
  const int64_t info = hone_lapack_real_driver(call);
  if (info == 0)
    omega = hone_lapack_refine(f, copy, 'N', call->nrhs, b, f->n, call->x,
                               call->ldx);
  snprintf(how, sizeof how, "%sdouble, factors kept, %s", why,
           info == 0 ? "refined" : "INFO > 0");
  hone_lapack_log(call->name, f->n, call->nrhs, how, omega, start_ms);
  return info;
}

/* Does as hone_lapack_plain_kept. */
static bool plain_kept(const hone_lapack_call *call, const char *why,
                       double start_ms, void *info) {
  const hone_lapack_factors *f = &call->f;
  hone_entry *copy = hone_lapack_copy(f, false);
  hone_entry *b = hone_lapack_room(f->n, call->nrhs);
  const bool done = copy != NULL && b != NULL;
  if (done) {
    hone_lapack_copy_columns(f->n, call->nrhs, call->b, call->ldb, b, f->n);
    hone_lapack_put(f->at, info, plain_double(call, copy, b, why, start_ms));
  }
  free(b);
  free(copy);
  return done;
}

bool hone_lapack_plain_kept(const hone_lapack_call *call, const char *why,
                            double start_ms, void *info) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const bool done = plain_kept(call, why, start_ms, info);
  hone_guest_leave(&guest);
  return done;
}

static bool plain(const hone_lapack_call *call, void *info) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  const bool discards = hone_lapack_discards(f->at);
  const bool tries = discards && !hone_lapack_spares(f);
  const char *why = tries      ? "single refused, "
                    : discards ? "single refused before, "
                               : "";
  hone_lapack_put(f->at, info, 0);
  return (tries && plain_single(call, start_ms)) ||
         plain_kept(call, why, start_ms, info);
}

bool hone_lapack_plain(const hone_lapack_call *call, void *info) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const bool done = plain(call, info);
  hone_guest_leave(&guest);
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
static void solve_in_double(const hone_lapack_call *call,
                            const hone_entry *copy, int iter, void *iter_out,
                            void *info_out) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  char how[64];
  double omega = HONE_NAN;
  int64_t info = hone_lapack_factor(f);
  if (info == 0) {
    hone_lapack_copy_columns(f->n, call->nrhs, call->b, call->ldb, call->x,
                             call->ldx);
    info = hone_lapack_backsolve(f, 'N', call->nrhs, call->x, call->ldx);
  }
  if (info == 0 && copy != NULL)
    omega = hone_lapack_refine(f, copy, 'N', call->nrhs, call->b, call->ldb,
                               call->x, call->ldx);
  hone_lapack_put(f->at, iter_out, iter);
  hone_lapack_put(f->at, info_out, info);
  snprintf(how, sizeof how, "double, ITER %d, INFO %lld", iter,
           (long long)info);
  hone_lapack_log(call->name, f->n, call->nrhs, how, omega, start_ms);
}

void hone_lapack_double(const hone_lapack_call *call, int iter, void *iter_out,
                        void *info) {
  hone_guest guest;
  hone_guest_enter(&guest);
  hone_entry *copy = hone_lapack_copy(&call->f, false);
  solve_in_double(call, copy, iter, iter_out, info);
  free(copy);
  hone_guest_leave(&guest);
}

/* ITER >= 0 promises ||r|| <= sqrt(n) eps ||A|| ||x||, which follows from the
   library's own test only for n > 64. Here the error must be at most a quarter
   of eps, because those who check the promise evaluate r in double precision,
   whose rounding errors about double it at n = 2, and may take 1-norms, as
   LAPACK's own test programs do, which doubles the quotient once more. LAPACK
   measures a complex r by |re| + |im|, up to sqrt(2) |r|. */
static bool keeps_promise(const hone_report *report) {
  const double share = HONE_PARTS == 1 ? 0.25 : 0.17;
  return report->normwise_error <= share * HONE_EPS;
}

static void mixed(const hone_lapack_call *call, void *iter, void *info) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  hone_report report = HONE_REPORT_INIT;
  int st = by_library(call, call->x, call->ldx, &report);
  if (st == HONE_OK && !keeps_promise(&report))
    st = HONE_NOT_CONVERGED;
  if (st == HONE_OK) {
    hone_lapack_put(f->at, iter, report.iterations);
    hone_lapack_put(f->at, info, 0);
    hone_lapack_no_exchanges(f);
    hone_lapack_log(call->name, f->n, call->nrhs, report.path,
                    report.backward_error, start_ms);
  } else {
    hone_entry *copy = hone_lapack_copy(f, false);
    solve_in_double(call, copy, iter_for(st), iter, info);
    free(copy);
  }
}

void hone_lapack_mixed(const hone_lapack_call *call, void *iter, void *info) {
  hone_guest guest;
  hone_guest_enter(&guest);
  mixed(call, iter, info);
  hone_guest_leave(&guest);
}

int hone_lapack_wrong(const hone_lapack_call *call) {
  const hone_lapack_factors *f = &call->f;
  const int64_t least = HONE_MAX((int64_t)1, f->n);
  const int shift = f->uplo != 0; /* dsposv_ begins with UPLO, has no IPIV */
  return f->n < 0            ? 1 + shift
         : call->nrhs < 0    ? 2 + shift
         : f->lda < least    ? 4 + shift
         : call->ldb < least ? 7
         : call->ldx < least ? 9
                             : 0;
}

void hone_lapack_without_mixed(const hone_lapack_call *call, const char *name,
                               void *iter, void *info) {
  const hone_lapack_caller at = call->f.at;
  const bool uplo_wrong = call->f.uplo == '?';
  const int wrong = uplo_wrong ? 1 : hone_lapack_wrong(call);
  hone_lapack_put(at, iter, 0);
  hone_lapack_put(at, info, -wrong);
  if (wrong != 0) {
    hone_xerbla_fn *xerbla =
        (hone_xerbla_fn *)hone_lapack_real(HONE_REAL_xerbla, at);
    const hone_lapack_integer number = hone_lapack_make(at, wrong);
    if (xerbla != NULL)
      xerbla(name, &number, strlen(name));
  } else if (call->f.n > 0) {
    hone_lapack_double(call, ITER_ELSEWHERE, iter, info);
  }
}

bool hone_lapack_false_success(const hone_lapack_call *call, const void *iter,
                               const void *info) {
  const hone_lapack_caller at = call->f.at;
  if (hone_lapack_get(at, iter) < 0 || hone_lapack_get(at, info) != 0)
    return false;
  for (int64_t j = 0; j < call->nrhs; j++)
    for (int64_t i = 0; i < call->f.n; i++) {
      const hone_entry x = call->x[i + j * call->ldx];
      if (isnan(hone_real(x)) || isnan(hone_imag(x)))
        return !hone_lapack_other_width(at); /* ITER could not be written */
    }
  return false;
}

/* ---- dgetrf_ and dpotrf_, then dgetrs_ and dpotrs_ ---------------------- */

hone_entry *hone_lapack_copy_to_keep(const hone_lapack_factors *f) {
  const hone_lapack_config *config = hone_lapack_settings();
  if (hone_lapack_small(f->n) || !config->on || f->lda < f->n || f->a == NULL ||
      !hone_lapack_may_keep(f) || hone_lapack_nested(f->at) ||
      hone_lapack_other_width(f->at))
    return NULL;
  return hone_lapack_copy(f, true);
}

static bool refined(const hone_lapack_call *call, char trans, void *info_out) {
  const hone_lapack_factors *f = &call->f;
  const double start_ms = hone_lapack_now_ms();
  const void *a = NULL;
  if (!hone_lapack_takes(call))
    return false;
  hone_lapack_kept *kept = hone_lapack_find(f, &a);
  if (kept == NULL)
    return false;
  hone_entry *b = hone_lapack_room(f->n, call->nrhs);
  if (b != NULL) {
    hone_lapack_copy_columns(f->n, call->nrhs, call->b, call->ldb, b, f->n);
    double omega = HONE_NAN;
    const int64_t info =
        hone_lapack_backsolve(f, trans, call->nrhs, call->x, call->ldx);
    hone_lapack_put(f->at, info_out, info);
    if (info == 0)
      omega = hone_lapack_refine(f, a, trans, call->nrhs, b, f->n, call->x,
                                 call->ldx);
    hone_lapack_log(call->name, f->n, call->nrhs, "with its factors, refined",
                    omega, start_ms);
  }
  hone_lapack_release(kept);
  free(b);
  return b != NULL;
}

bool hone_lapack_refined(const hone_lapack_call *call, char trans, void *info) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const bool done = refined(call, trans, info);
  hone_guest_leave(&guest);
  return done;
}
