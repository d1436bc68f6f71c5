/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors a matrix in single precision, a whole one by the library, a triangle
   with the caller's own spotrf_ or ssytrf_, or, where a GPU has Cholesky, by
   the library as well, and solves with these factors; see hidden.h. */
#include "lapack/hidden.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

/* Factors in single precision --------------------------------------------- */

/* Rounds scale v to single precision. Returns the largest magnitude, NaN if a
   number is not finite. */
HONE_VECTOR static float round_column(int64_t count, const double *restrict v,
                                      double scale, float *restrict to) {
  float most = 0.0f, bad = 0.0f;
#pragma omp simd reduction(max : most) reduction(+ : bad)
  for (int64_t i = 0; i < count; i++) {
    const float s = (float)(scale * v[i]);
    to[i] = s;
    bad += 0.0f * s;
    most = fabsf(s) > most ? fabsf(s) : most;
  }
  return bad > 0.0f || bad < 0.0f || bad != bad ? (float)HONE_NAN : most;
}

static float round_matrix(const hone_lapack_factors *f, double scale,
                          hone_single *to) {
  float most = 0.0f;
  for (int64_t j = 0; j < f->n; j++) {
    const int64_t from = f->uplo == 'L' ? j : 0;
    const int64_t m = (f->uplo == 'U' ? j + 1 : f->n) - from;
    const hone_entry *a = (const hone_entry *)f->a + from + j * f->lda;
    const float column = round_column(m * HONE_PARTS, (const double *)a, scale,
                                      (float *)(to + from + j * f->n));
    most = isnan(most) || column <= most ? most : column;
  }
  return most;
}

/* Rounds A, scaled by a power of two if its entries are very large or small.
   Returns false if it is not finite or zero. */
static bool rounded(hone_lapack_hidden *h) {
  const float large = 0x1p60f, small = 0x1p-60f;
  float most = round_matrix(&h->f, 1.0, h->single);
  h->scale = 1.0;
  if (most >= small && most <= large)
    return true;
  double of_a = 0.0;
  for (int64_t j = 0; j < h->f.n; j++)
    for (int64_t i = h->f.uplo == 'L' ? j : 0;
         i < (h->f.uplo == 'U' ? j + 1 : h->f.n); i++) {
      const double v = hone_abs1(((hone_entry *)h->f.a)[i + j * h->f.lda]);
      of_a = isnan(of_a) || v <= of_a ? of_a : v;
    }
  if (!(of_a >= 0x1p-900 && of_a <= 0x1p900))
    return false;
  h->scale = ldexp(1.0, -ilogb(of_a));
  most = round_matrix(&h->f, h->scale, h->single);
  return most >= small && most <= large;
}

/* Calls ssytrf_, or chetrf_, with as much work space as it asks for, and behind
   it a column more: see hone_lapack_sytrf_room. */
static void factor_symmetric(const hone_lapack_hidden *h,
                             const hone_lapack_integer *n,
                             hone_lapack_integer *info) {
  const hone_lapack_caller at = h->f.at;
  const bool hermitian = h->f.kind == HONE_LAPACK_HERMITIAN;
  hone_single_sytrf_fn *sytrf = (hone_single_sytrf_fn *)hone_lapack_real(
      hermitian ? HONE_REAL_single_hetrf : HONE_REAL_single_sytrf, at);
  *info = hone_lapack_make(at, -1);
  if (sytrf == NULL)
    return;
  const hone_lapack_integer asks = hone_lapack_make(at, -1);
  hone_single first = 0.0f;
  sytrf(&h->f.uplo, n, h->single, n, h->exchanges, &first, &asks, info, 1);
  const int64_t size =
      HONE_MAX((int64_t)1, (int64_t)hone_real((hone_entry)first));
  const hone_lapack_integer lwork = hone_lapack_make(at, size);
  hone_single *work = malloc((size_t)(size + h->f.n) * sizeof *work);
  *info = hone_lapack_make(at, -1);
  if (work != NULL)
    sytrf(&h->f.uplo, n, h->single, n, h->exchanges, work, &lwork, info, 1);
  free(work);
}

/* Factors one triangle; returns INFO, or -1 if the caller's LAPACK has no
   routines for single precision. */
static int64_t factor_triangle(const hone_lapack_hidden *h) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  hone_lapack_integer info = hone_lapack_make(at, -1);
  hone_lapack_enter();
  if (h->f.kind == HONE_LAPACK_CHOLESKY) {
    hone_single_potrf_fn *potrf =
        (hone_single_potrf_fn *)hone_lapack_real(HONE_REAL_single_potrf, at);
    if (potrf != NULL)
      potrf(&h->f.uplo, &n, h->single, &n, &info, 1);
  } else {
    factor_symmetric(h, &n, &info);
  }
  hone_lapack_leave();
  return hone_lapack_get(at, &info);
}

/* Has the library factor A, on a GPU if it has one. Returns its status. */
static int factor_by_library(hone_lapack_hidden *h,
                             const hone_single_table *table,
                             const hone_options *options) {
  hone_lapack_enter();
  const int st =
      table->make(h->f.n, h->f.a, h->f.lda, options, &h->library, &h->account);
  hone_lapack_leave();
  h->destroy = table->destroy;
  h->scale = ldexp(1.0, h->account.exponent);
  return st;
}

static int64_t factor_whole(hone_lapack_hidden *h) {
  const hone_single_table *table = hone_lapack_single_table();
  hone_options options = HONE_OPTIONS_INIT;
  if (table == NULL)
    return -1;
  options.threads = h->threads;
  return factor_by_library(h, table, &options) == HONE_OK ? 0 : -1;
}

/* Has the library factor a definite matrix on a GPU. Returns 1 if none serves
   this one, otherwise as hone_lapack_hidden_factor. */
static int64_t factor_definite(hone_lapack_hidden *h) {
  const hone_single_table *table = hone_lapack_single_table();
  hone_options options = HONE_OPTIONS_INIT;
  options.threads = h->threads;
  options.structure = HONE_STRUCTURE_SPD;
  options.triangle =
      h->f.uplo == 'U' ? HONE_TRIANGLE_UPPER : HONE_TRIANGLE_LOWER;
  if (table == NULL || !table->expects_device(h->f.n, &options))
    return 1;
  const int st = factor_by_library(h, table, &options);
  if (st == HONE_OK) { /* what an earlier matrix has left is not needed */
    free(h->single);
    h->single = NULL;
  }
  return st == HONE_OK                                    ? 0
         : st == HONE_SINGULAR || st == HONE_NOT_FINITE_A ? -1
                                                          : 1;
}

int64_t hone_lapack_hidden_factor(hone_lapack_hidden *hidden) {
  const int64_t n = hidden->f.n;
  if (hidden->f.kind == HONE_LAPACK_LU)
    return factor_whole(hidden);
  const int64_t info =
      hidden->f.kind == HONE_LAPACK_CHOLESKY ? factor_definite(hidden) : 1;
  if (info <= 0)
    return info;
  if (hidden->single == NULL)
    hidden->single = hone_lapack_room(n, n / 2 + 1);
  return hidden->single != NULL && rounded(hidden) ? factor_triangle(hidden)
                                                   : -1;
}

/* Solves for one right-hand side with Cholesky factors. OpenBLAS's spotrs_
   would take twice as long, where it treats one as if it were many. */
static int64_t solve_one(const hone_lapack_hidden *h, hone_single *v) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  const hone_lapack_integer one = hone_lapack_make(at, 1);
  const bool upper = h->f.uplo == 'U';
  hone_single_trsv_fn *trsv =
      (hone_single_trsv_fn *)hone_lapack_real(HONE_REAL_single_trsv, at);
  if (trsv == NULL)
    return -1;
  hone_lapack_enter();
  trsv(&h->f.uplo, upper ? "C" : "N", "N", &n, h->single, &n, v, &one, 1, 1, 1);
  trsv(&h->f.uplo, upper ? "N" : "C", "N", &n, h->single, &n, v, &one, 1, 1, 1);
  hone_lapack_leave();
  return 0;
}

/* Solves for many with the factors of a triangle; returns INFO. */
static int64_t solve_many(const hone_lapack_hidden *h, int64_t nrhs,
                          hone_single *v) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  const hone_lapack_integer columns = hone_lapack_make(at, nrhs);
  hone_lapack_integer info = hone_lapack_make(at, -1);
  hone_lapack_enter();
  if (h->f.kind == HONE_LAPACK_CHOLESKY) {
    hone_single_potrs_fn *potrs =
        (hone_single_potrs_fn *)hone_lapack_real(HONE_REAL_single_potrs, at);
    if (potrs != NULL)
      potrs(&h->f.uplo, &n, &columns, h->single, &n, v, &n, &info, 1);
  } else {
    const bool hermitian = h->f.kind == HONE_LAPACK_HERMITIAN;
    hone_single_sytrs_fn *sytrs = (hone_single_sytrs_fn *)hone_lapack_real(
        hermitian ? HONE_REAL_single_hetrs : HONE_REAL_single_sytrs, at);
    if (sytrs != NULL)
      sytrs(&h->f.uplo, &n, &columns, h->single, &n, h->exchanges, v, &n, &info,
            1);
  }
  hone_lapack_leave();
  return hone_lapack_get(at, &info);
}

/* Returns the power of two that brings the largest magnitude of v to 1 .. 2, or
   0 where v is not finite, zero, or out of range. */
static double scale_of(int64_t n, const hone_entry *v) {
  double most = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_abs1(v[i]);
    most = isnan(most) || size <= most ? most : size;
  }
  return most >= 0x1p-1000 && most <= 0x1p1000 ? ldexp(1.0, -ilogb(most)) : 0.0;
}

static bool is_zero(int64_t n, const hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    if (!(hone_abs1(v[i]) <= 0.0))
      return false;
  return true;
}

/* v = inv(A) v in single precision with the factors of a triangle. */
static int64_t solve_triangle(const hone_lapack_hidden *hidden, int64_t nrhs,
                              hone_entry *v, int64_t ldv) {
  const int64_t n = hidden->f.n;
  hone_single *w = malloc((size_t)(n * nrhs) * sizeof *w);
  double *scale = malloc((size_t)nrhs * sizeof *scale);
  int64_t info = w != NULL && scale != NULL ? 0 : -1;
  for (int64_t k = 0; k < nrhs && info == 0; k++) {
    const hone_entry *from = v + k * ldv;
    scale[k] = scale_of(n, from);
    if (!(scale[k] > 0.0) && !is_zero(n, from))
      info = -1;
    for (int64_t i = 0; i < n; i++)
      w[i + k * n] = (hone_single)hone_times(scale[k], from[i]);
  }
  if (info == 0 && nrhs == 1 && hidden->f.kind == HONE_LAPACK_CHOLESKY)
    info = solve_one(hidden, w);
  else if (info == 0)
    info = solve_many(hidden, nrhs, w);
  for (int64_t k = 0; k < nrhs && info == 0; k++) {
    const double back = scale[k] > 0.0 ? hidden->scale / scale[k] : 0.0;
    for (int64_t i = 0; i < n; i++)
      v[i + k * ldv] = hone_times(back, (hone_entry)w[i + k * n]);
  }
  free(w);
  free(scale);
  return info;
}

/* v = inv(op(A)) v with the factors of the library. */
static int64_t solve_by_library(const hone_lapack_hidden *hidden, char trans,
                                int64_t nrhs, hone_entry *v, int64_t ldv) {
  const int64_t n = hidden->f.n;
  for (int64_t k = 0; k < nrhs; k++)
    if (!(scale_of(n, v + k * ldv) > 0.0) && !is_zero(n, v + k * ldv))
      return -1;
  hone_lapack_enter();
  const int st =
      hone_lapack_single_table()->solve(hidden->library, trans, nrhs, v, ldv);
  hone_lapack_leave();
  return st == HONE_OK ? 0 : -1;
}

int64_t hone_lapack_hidden_backsolve(const hone_lapack_hidden *hidden,
                                     char trans, int64_t nrhs, hone_entry *v,
                                     int64_t ldv) {
  return hidden->library != NULL ? solve_by_library(hidden, trans, nrhs, v, ldv)
                                 : solve_triangle(hidden, nrhs, v, ldv);
}

/* The condition ------------------------------------------------------------ */

/* Estimates ||inv(A)||_1, or with norm 'I' its infinity norm, by solutions that
   dlacn2_ asks for, as dgecon_ does (Higham, ACM TOMS 14 (1988) 381-396).
   Returns a status. */
static int64_t inverse_norm(const hone_lapack_hidden *h, char norm,
                            double *estimate) {
  const hone_lapack_caller at = h->f.at;
  const int64_t n = h->f.n;
  const hone_lapack_integer order = hone_lapack_make(at, n);
  const int64_t plainly = norm == 'I' ? 2 : 1; /* KASE for inv(A) */
  hone_lacn2_fn *lacn2 =                       /* older LAPACKs have none */
      (hone_lacn2_fn *)hone_lapack_real(HONE_REAL_lacn2, at);
  hone_entry *work = malloc((size_t)(2 * n) * sizeof *work);
  int64_t *signs = malloc((size_t)n * sizeof *signs);
  hone_lapack_integer kase = hone_lapack_make(at, 0), saved[3];
  const bool may = work != NULL && signs != NULL && lacn2 != NULL;
  int64_t info = may ? 0 : -1, wants = 1;
  *estimate = 0.0;
  while (info == 0 && wants != 0) {
    hone_lapack_enter();
    lacn2(&order, work + n, work, HONE_IWORK(signs) estimate, &kase, saved);
    hone_lapack_leave();
    wants = hone_lapack_get(at, &kase);
    if (wants != 0)
      info = hone_lapack_hidden_backsolve(h, wants == plainly ? 'N' : 'C', 1,
                                          work, n);
  }
  free(work);
  free(signs);
  return info;
}

/* The norm of A is said to be 1. */
static int64_t rcond_by_library(const hone_lapack_hidden *h, char norm,
                                double *rcond) {
  double estimate;
  if (inverse_norm(h, norm, &estimate) != 0 || !(estimate > 0.0))
    return -1;
  *rcond = 1.0 / estimate;
  return 0;
}

/* The norm of the factors is said to be 1: rcond of A is this over scale and
   the norm of A. */
static int64_t rcond_triangle(const hone_lapack_hidden *h, double *rcond) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  hone_lapack_integer info = hone_lapack_make(at, -1);
  hone_entry *work = malloc((size_t)(3 * h->f.n) * sizeof *work);
  int64_t *iwork = malloc((size_t)h->f.n * sizeof *iwork);
  const float one = 1.0f;
  float found = (float)HONE_NAN;
  hone_lapack_enter();
  const bool room = work != NULL && iwork != NULL;
  if (room && h->f.kind == HONE_LAPACK_CHOLESKY) {
    hone_pocon_fn *pocon =
        (hone_pocon_fn *)hone_lapack_real(HONE_REAL_single_pocon, at);
    if (pocon != NULL)
      pocon(&h->f.uplo, &n, h->single, &n, &one, &found, work, iwork, &info, 1);
  } else if (room) {
    const bool hermitian = h->f.kind == HONE_LAPACK_HERMITIAN;
    hone_sycon_fn *sycon = (hone_sycon_fn *)hone_lapack_real(
        hermitian ? HONE_REAL_single_hecon : HONE_REAL_single_sycon, at);
    if (sycon != NULL)
      sycon(&h->f.uplo, &n, h->single, &n, h->exchanges, &one, &found, work,
            HONE_IWORK(iwork) & info, 1);
  }
  hone_lapack_leave();
  *rcond = (double)found / h->scale;
  free(work);
  free(iwork);
  return hone_lapack_get(at, &info);
}

int64_t hone_lapack_hidden_rcond_single(const hone_lapack_hidden *h, char norm,
                                        double *rcond) {
  return h->library != NULL ? rcond_by_library(h, norm, rcond)
                            : rcond_triangle(h, rcond);
}
