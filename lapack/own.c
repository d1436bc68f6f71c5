/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the real LAPACK's own routines in double precision. */
#include "lapack/dropin.h"

#include "base/base.h"

#include <stdlib.h>

/* Sizes as the real routines take them. */
typedef struct sizes {
  hone_lapack_integer n, lda, nrhs, ld, lwork, info;
} sizes;

static sizes sizes_of(const hone_lapack_factors *f, int64_t nrhs, int64_t ld) {
  return (sizes){.n = hone_lapack_make(f->at, f->n),
                 .lda = hone_lapack_make(f->at, f->lda),
                 .nrhs = hone_lapack_make(f->at, nrhs),
                 .ld = hone_lapack_make(f->at, ld),
                 .lwork = hone_lapack_make(f->at, f->lwork),
                 .info = hone_lapack_make(f->at, 0)};
}

/* Returns the symmetric routine, or the Hermitian one where f is so. */
static void *symmetric(const hone_lapack_factors *f, hone_lapack_name sy,
                       hone_lapack_name he) {
  return hone_lapack_must(f->kind == HONE_LAPACK_HERMITIAN ? he : sy, f->at);
}

/* Calls dsytrf_ with the caller's work space, or with as much of our own. */
static void factor_symmetric(const hone_lapack_factors *f, sizes *s) {
  hone_sytrf_fn *sytrf =
      (hone_sytrf_fn *)symmetric(f, HONE_REAL_sytrf, HONE_REAL_hetrf);
  hone_entry *own = f->work ? NULL : hone_lapack_sytrf_room(f->lwork, f->n);
  hone_entry *work = f->work ? f->work : own;
  if (work != NULL)
    sytrf(&f->uplo, &s->n, f->a, &s->lda, f->ipiv, work, &s->lwork, &s->info,
          1);
  else
    s->info = hone_lapack_make(f->at, -1);
  free(own);
}

int64_t hone_lapack_factor(const hone_lapack_factors *f) {
  sizes s = sizes_of(f, 0, 0);
  hone_lapack_enter();
  if (f->kind == HONE_LAPACK_LU) {
    hone_getrf_fn *getrf =
        (hone_getrf_fn *)hone_lapack_must(HONE_REAL_getrf, f->at);
    getrf(&s.n, &s.n, f->a, &s.lda, f->ipiv, &s.info);
  } else if (f->kind == HONE_LAPACK_CHOLESKY) {
    hone_potrf_fn *potrf =
        (hone_potrf_fn *)hone_lapack_must(HONE_REAL_potrf, f->at);
    potrf(&f->uplo, &s.n, f->a, &s.lda, &s.info, 1);
  } else {
    factor_symmetric(f, &s);
  }
  hone_lapack_leave();
  return hone_lapack_get(f->at, &s.info);
}

int64_t hone_lapack_backsolve(const hone_lapack_factors *f, char trans,
                              int64_t nrhs, hone_entry *v, int64_t ldv) {
  sizes s = sizes_of(f, nrhs, ldv);
  hone_lapack_enter();
  if (f->kind == HONE_LAPACK_LU) {
    hone_getrs_fn *getrs =
        (hone_getrs_fn *)hone_lapack_must(HONE_REAL_getrs, f->at);
    getrs(&trans, &s.n, &s.nrhs, f->a, &s.lda, f->ipiv, v, &s.ld, &s.info, 1);
  } else if (f->kind == HONE_LAPACK_CHOLESKY) {
    hone_potrs_fn *potrs =
        (hone_potrs_fn *)hone_lapack_must(HONE_REAL_potrs, f->at);
    potrs(&f->uplo, &s.n, &s.nrhs, f->a, &s.lda, v, &s.ld, &s.info, 1);
  } else {
    hone_sytrs_fn *sytrs =
        (hone_sytrs_fn *)symmetric(f, HONE_REAL_sytrs, HONE_REAL_hetrs);
    sytrs(&f->uplo, &s.n, &s.nrhs, f->a, &s.lda, f->ipiv, v, &s.ld, &s.info, 1);
  }
  hone_lapack_leave();
  return hone_lapack_get(f->at, &s.info);
}

int64_t hone_lapack_real_driver(const hone_lapack_call *call) {
  const hone_lapack_factors *f = &call->f;
  sizes s = sizes_of(f, call->nrhs, call->ldx);
  hone_lapack_enter();
  if (f->kind == HONE_LAPACK_LU) {
    hone_gesv_fn *gesv =
        (hone_gesv_fn *)hone_lapack_must(HONE_REAL_gesv, f->at);
    gesv(&s.n, &s.nrhs, f->a, &s.lda, f->ipiv, call->x, &s.ld, &s.info);
  } else if (f->kind == HONE_LAPACK_CHOLESKY) {
    hone_posv_fn *posv =
        (hone_posv_fn *)hone_lapack_must(HONE_REAL_posv, f->at);
    posv(&f->uplo, &s.n, &s.nrhs, f->a, &s.lda, call->x, &s.ld, &s.info, 1);
  } else {
    hone_sysv_fn *sysv =
        (hone_sysv_fn *)symmetric(f, HONE_REAL_sysv, HONE_REAL_hesv);
    sysv(&f->uplo, &s.n, &s.nrhs, f->a, &s.lda, f->ipiv, call->x, &s.ld,
         f->work, &s.lwork, &s.info, 1);
  }
  hone_lapack_leave();
  return hone_lapack_get(f->at, &s.info);
}

int64_t hone_lapack_rcond(const hone_lapack_factors *f, char norm, double anorm,
                          double *rcond) {
  sizes s = sizes_of(f, 0, 0);
  hone_entry *work = malloc((size_t)(4 * f->n) * sizeof *work);
  double *iwork = malloc((size_t)(2 * f->n) * sizeof *iwork);
  const bool room = work != NULL && iwork != NULL;
  s.info = hone_lapack_make(f->at, -1);
  hone_lapack_enter();
  if (room && f->kind == HONE_LAPACK_LU) {
    hone_gecon_fn *gecon =
        (hone_gecon_fn *)hone_lapack_must(HONE_REAL_gecon, f->at);
    gecon(&norm, &s.n, f->a, &s.lda, &anorm, rcond, work, iwork, &s.info, 1);
  } else if (room && f->kind == HONE_LAPACK_CHOLESKY) {
    hone_pocon_fn *pocon =
        (hone_pocon_fn *)hone_lapack_must(HONE_REAL_pocon, f->at);
    pocon(&f->uplo, &s.n, f->a, &s.lda, &anorm, rcond, work, iwork, &s.info, 1);
  } else if (room) {
    hone_sycon_fn *sycon =
        (hone_sycon_fn *)symmetric(f, HONE_REAL_sycon, HONE_REAL_hecon);
    sycon(&f->uplo, &s.n, f->a, &s.lda, f->ipiv, &anorm, rcond, work,
          HONE_IWORK(iwork) & s.info, 1);
  }
  hone_lapack_leave();
  free(work);
  free(iwork);
  return hone_lapack_get(f->at, &s.info);
}
