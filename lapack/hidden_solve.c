/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with hidden factors, and gives their condition; see hidden.h. An x
   that single precision does not bring to the backward error of GOAL is solved
   with LAPACK's own factors. */
#include "lapack/hidden.h"

#include "api/guest.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20 /* most corrections of x */ };
static const double GOAL = 4.0 * HONE_EPS; /* as for dgesv_ */

/* Checks, and LAPACK's own factors ---------------------------------------- */

static bool exchanges_are_ours(const hone_lapack_factors *f) {
  for (int64_t i = 0; i < f->n && hone_lapack_pivots(f); i++)
    if ((hone_lapack_wide(f->at.interface)
             ? ((const int64_t *)f->ipiv)[i]
             : ((const int32_t *)f->ipiv)[i]) != i + 1)
      return false;
  return true;
}

static bool same_hash(const hone_lapack_hidden *h,
                      const hone_lapack_hash *hash) {
  return h->hash.sum == hash->sum && h->hash.product == hash->product &&
         h->hash.turned == hash->turned;
}

/* Tells whether the array is as dgetrf_ left it. */
static bool unchanged(const hone_lapack_hidden *h,
                      const hone_lapack_factors *f) {
  hone_lapack_hash hash;
  hone_lapack_hidden_hash(h, f, &hash);
  return same_hash(h, &hash);
}

/* Copies A, from the caller's array and its diagonal, to a matrix with leading
   dimension ld, which may be that array. */
static void restore(const hone_lapack_hidden *h, const hone_lapack_factors *f,
                    hone_entry *to, int64_t ld) {
  const hone_entry *a = f->a, *diagonal = h->diagonal;
  for (int64_t j = 0; j < f->n; j++) {
    if (to != a)
      memcpy(to + j * ld, a + j * f->lda, (size_t)f->n * sizeof *to);
    to[j + j * ld] = diagonal[j];
  }
}

/* Has LAPACK factor A into factors->a; INFO, or -1 without memory. The array is
   as dgetrf_ left it: these factors will serve for all others that are. */
static int64_t factor_double(const hone_lapack_hidden *h,
                             const hone_lapack_factors *f,
                             hone_lapack_factors *factors) {
  *factors = h->f;
  factors->lda = f->n;
  factors->a = hone_lapack_room(f->n, f->n);
  factors->ipiv = malloc((size_t)f->n * sizeof(int64_t));
  if (factors->a == NULL || factors->ipiv == NULL)
    return -1;
  restore(h, f, factors->a, f->n);
  return hone_lapack_factor(factors);
}

/* Returns LAPACK's factors if there are some. */
static bool have_double(hone_lapack_hidden *h, hone_lapack_factors *factors) {
  *factors = h->f;
  factors->lda = h->f.n;
  return hone_lapack_hidden_double(h, &factors->a, &factors->ipiv);
}

/* Says why the result for this array is NaN. Where factors were discarded, the
   program has been asked, and the log alone tells it. */
static void say(const char *routine, const hone_lapack_factors *f,
                const char *why) {
  const bool discarded =
      memcmp(f->a, &hone_lapack_discarded, sizeof hone_lapack_discarded) == 0;
  if (!discarded || hone_lapack_settings()->log)
    fprintf(stderr, "hone_lapack: %s n %lld: the result is NaN: %s\n", routine,
            (long long)f->n, discarded ? "the factors were discarded" : why);
}

static const char UNKNOWN_TAG[] = "factors that are hidden were changed, or "
                                  "come from elsewhere";
static const char NO_FACTORS[] = "hidden factors cannot be replaced by "
                                 "LAPACK's: no memory, or A is singular";

/* dgetrs_ ----------------------------------------------------------------- */

static void spoil(const hone_lapack_call *call, const char *why) {
  for (int64_t k = 0; k < call->nrhs; k++)
    for (int64_t i = 0; i < call->f.n; i++)
      call->x[i + k * call->ldx] = HONE_NAN;
  say(call->name, &call->f, why);
}

typedef enum outcome { SOLVED, REFUSED, CHANGED } outcome;

/* Refines with the factors in single precision. */
static outcome solve_hidden(const hone_lapack_call *call, char trans,
                            const hone_lapack_hidden *h, double *omega) {
  const int64_t n = call->f.n, nrhs = call->nrhs;
  hone_lapack_hash hash = {0, 0, 0};
  const hone_lapack_system system = {.hidden = h,
                                     .a = call->f.a,
                                     .lda = call->f.lda,
                                     .diagonal = h->diagonal,
                                     .uplo = call->f.uplo,
                                     .symmetric =
                                         call->f.kind == HONE_LAPACK_SYMMETRIC,
                                     .hash = &hash,
                                     .threads = h->threads,
                                     .steps = STEPS};
  hone_entry *x = hone_lapack_room(n, nrhs);
  if (x != NULL)
    hone_lapack_copy_columns(n, nrhs, call->b, call->ldb, x, n);
  outcome result;
  if (x != NULL && hone_lapack_hidden_backsolve(h, trans, nrhs, x, n) == 0) {
    *omega = hone_lapack_refine_with(&system, n, trans, nrhs, call->b,
                                     call->ldb, x, n);
    result = !same_hash(h, &hash) ? CHANGED : *omega <= GOAL ? SOLVED : REFUSED;
  } else { /* A was not read, as for a b that is not finite */
    result = unchanged(h, &call->f) ? REFUSED : CHANGED;
  }
  if (result == SOLVED)
    hone_lapack_copy_columns(n, nrhs, x, n, call->x, call->ldx);
  free(x);
  return result;
}

/* Solves with LAPACK's factors, which are made if there are none. */
static void solve_double(const hone_lapack_call *call, char trans,
                         hone_lapack_hidden *h, void *info_out) {
  hone_lapack_factors factors;
  const bool there = have_double(h, &factors);
  const int64_t info = there ? 0 : factor_double(h, &call->f, &factors);
  if (info == 0)
    hone_lapack_backsolve(&factors, trans, call->nrhs, call->x, call->ldx);
  else
    spoil(call, NO_FACTORS);
  if (info > 0)
    hone_lapack_put(call->f.at, info_out, info);
  if (!there && info == 0) {
    hone_lapack_hidden_add(h, factors.a, factors.ipiv);
  } else if (!there) {
    free(factors.a);
    free(factors.ipiv);
  }
}

/* Returns how many right-hand sides cost as much as LAPACK's factorization. */
static int64_t columns_worth(int64_t n) {
  return HONE_MAX((int64_t)16, n / 50);
}

/* Returns how many right-hand sides cost what the factorization has saved. A
   GPU saves more than all that are solved with hidden factors. */
static int64_t columns_saved(const hone_lapack_hidden *h) {
  enum { LEAST = 4, SHARE = 700 }; /* docs/lapack.md */
  const int64_t n = h->f.n;
  return h->library != NULL && h->account.device
             ? columns_worth(n)
             : HONE_MAX((int64_t)LEAST, n / SHARE);
}

static void solve_known(const hone_lapack_call *call, char trans,
                        hone_lapack_hidden *h, void *info) {
  const double start_ms = hone_lapack_now_ms();
  const int64_t before = hone_lapack_hidden_count(h, call->nrhs);
  const bool few = before + call->nrhs <= columns_worth(call->f.n);
  const bool has = hone_lapack_hidden_has(h);
  const char *how = "with hidden factors in single";
  hone_lapack_factors factors;
  double omega = HONE_NAN;
  outcome result = exchanges_are_ours(&call->f) ? REFUSED : CHANGED;
  const bool tries =
      few && has && !have_double(h, &factors) && result == REFUSED;
  if (tries)
    result = solve_hidden(call, trans, h, &omega);
  else if (result == REFUSED && !unchanged(h, &call->f))
    result = CHANGED;
  if (result == REFUSED || before + call->nrhs > columns_saved(h))
    hone_lapack_regret(&h->f);
  if (result == REFUSED) {
    how = tries ? "single refused, with LAPACK's factors"
                : "with LAPACK's factors";
    omega = HONE_NAN;
    solve_double(call, trans, h, info);
  } else if (result == CHANGED) {
    (void)hone_lapack_hidden_count(h, -call->nrhs); /* they were not solved */
    spoil(call, UNKNOWN_TAG);
    return;
  }
  hone_lapack_log(call->name, call->f.n, call->nrhs, how, omega, start_ms);
}

bool hone_lapack_hidden_try(const hone_lapack_call *call, void *info) {
  hone_lapack_hidden *h;
  hone_guest guest;
  const double start_ms = hone_lapack_now_ms();
  double omega = HONE_NAN;
  if (hone_lapack_hidden_find(&call->f, &h) != HONE_LAPACK_KNOWN)
    return hone_lapack_hidden_solve(call, 'N', info); /* x becomes NaN */
  hone_guest_enter(&guest);
  const bool solved = hone_lapack_hidden_has(h) && call->nrhs > 0 &&
                      solve_hidden(call, 'N', h, &omega) == SOLVED;
  if (solved) {
    hone_lapack_put(call->f.at, info, 0);
    hone_lapack_log(call->name, call->f.n, call->nrhs,
                    "with hidden factors in single", omega, start_ms);
  } else {
    restore(h, &call->f, call->f.a, call->f.lda);
    hone_lapack_regret(&h->f);
  }
  hone_lapack_hidden_release(h);
  hone_guest_leave(&guest);
  return solved;
}

bool hone_lapack_hidden_solve(const hone_lapack_call *call, char trans,
                              void *info) {
  hone_lapack_hidden *h;
  hone_guest guest;
  if (call->nrhs < 0 || call->ldb < call->f.n ||
      (hone_lapack_pivots(&call->f) && call->f.ipiv == NULL))
    return false;
  const hone_lapack_tag tag = hone_lapack_hidden_find(&call->f, &h);
  if (tag == HONE_LAPACK_UNTAGGED)
    return false;
  hone_lapack_put(call->f.at, info, 0);
  hone_guest_enter(&guest);
  if (tag == HONE_LAPACK_UNKNOWN) {
    spoil(call, UNKNOWN_TAG);
  } else {
    if (call->nrhs > 0)
      solve_known(call, trans, h, info);
    hone_lapack_hidden_release(h);
  }
  hone_guest_leave(&guest);
  return true;
}

/* dgecon_, dpocon_ and dsycon_ --------------------------------------------- */

/* Computes rcond with LAPACK's factors, which are made if there are none. INFO
   > 0 then means that A is exactly singular, of which rcond is 0. */
static void rcond_double(const hone_lapack_factors *f, char norm, double anorm,
                         hone_lapack_hidden *h, double *rcond) {
  hone_lapack_factors factors;
  const bool there = have_double(h, &factors);
  const int64_t info = there             ? 0
                       : unchanged(h, f) ? factor_double(h, f, &factors)
                                         : -1;
  *rcond = info > 0 ? 0.0 : HONE_NAN;
  if (info == 0 && hone_lapack_rcond(&factors, norm, anorm, rcond) != 0)
    *rcond = HONE_NAN;
  if (!there && info == 0) {
    hone_lapack_hidden_add(h, factors.a, factors.ipiv);
  } else if (!there) {
    free(factors.a);
    free(factors.ipiv);
  }
}

/* Does so with factors in single precision, unless they are gone or do not
   serve, as those on a device in the child of a fork. */
static void rcond_known(const hone_lapack_factors *f, char norm, double anorm,
                        hone_lapack_hidden *h, double *rcond) {
  hone_lapack_factors factors;
  if (hone_lapack_hidden_has(h) && !have_double(h, &factors) &&
      hone_lapack_hidden_rcond_single(h, norm, rcond) == 0)
    *rcond = anorm > 0.0 ? *rcond / anorm : *rcond * anorm;
  else
    rcond_double(f, norm, anorm, h, rcond);
}

bool hone_lapack_hidden_rcond(const hone_lapack_factors *f, char norm,
                              double anorm, double *rcond, void *info) {
  hone_lapack_hidden *h;
  hone_guest guest;
  const double start_ms = hone_lapack_now_ms();
  static const char *const names[] = {
      [HONE_LAPACK_LU] = HONE_LETTER "gecon",
      [HONE_LAPACK_CHOLESKY] = HONE_LETTER "pocon",
      [HONE_LAPACK_SYMMETRIC] = HONE_LETTER "sycon",
      [HONE_LAPACK_HERMITIAN] = HONE_LETTER "hecon"};
  const char *name = names[f->kind];
  const hone_lapack_tag tag =
      anorm < 0.0 ? HONE_LAPACK_UNTAGGED : hone_lapack_hidden_find(f, &h);
  if (tag == HONE_LAPACK_UNTAGGED)
    return false;
  hone_lapack_put(f->at, info, 0);
  hone_guest_enter(&guest);
  *rcond = HONE_NAN;
  const bool same = f->ipiv == NULL || exchanges_are_ours(f);
  if (tag == HONE_LAPACK_KNOWN && same && (h->at_once || unchanged(h, f))) {
    rcond_known(f, norm, anorm, h, rcond);
    if (isnan(*rcond) && !isnan(anorm))
      say(name, f, NO_FACTORS);
    hone_lapack_log(name, f->n, 0, "with hidden factors", HONE_NAN, start_ms);
  } else {
    say(name, f, UNKNOWN_TAG);
  }
  if (h != NULL)
    hone_lapack_hidden_release(h);
  hone_guest_leave(&guest);
  return true;
}

/* dgetri_, dpotri_ and dsytri_ --------------------------------------------- */

/* Gives pivots the width of another interface's integers; there is room for 64
   bits. */
static void change_width(hone_lapack_caller from, hone_lapack_caller to,
                         int64_t n, void *pivots) {
  const bool wide = hone_lapack_wide(to.interface);
  int32_t *narrow = pivots;
  int64_t *wider = pivots;
  if (wide == hone_lapack_wide(from.interface))
    return;
  for (int64_t i = 0; i < n && !wide; i++)
    memcpy(narrow + i, &(int32_t){(int32_t)wider[i]}, sizeof *narrow);
  for (int64_t i = n - 1; i >= 0 && wide; i--) {
    int32_t pivot;
    memcpy(&pivot, narrow + i, sizeof pivot);
    memcpy(wider + i, &(int64_t){pivot}, sizeof *wider);
  }
}

/* Puts LAPACK's factors into the array, with pivots as the caller's interface
   has them; returns INFO, or -1. */
static int64_t replace(const hone_lapack_factors *f, hone_lapack_hidden *h,
                       void **exchanges) {
  hone_lapack_factors in_place = *f;
  if (!exchanges_are_ours(f) || !unchanged(h, f))
    return -1;
  in_place.at = h->f.at;
  in_place.lwork = h->f.lwork;
  in_place.ipiv = malloc((size_t)f->n * sizeof(int64_t));
  if (in_place.ipiv == NULL)
    return -1;
  *exchanges = in_place.ipiv;
  restore(h, f, f->a, f->lda);
  hone_lapack_regret(&h->f);
  const int64_t info = hone_lapack_factor(&in_place);
  if (info >= 0 && hone_lapack_pivots(f))
    change_width(h->f.at, f->at, f->n, in_place.ipiv);
  return info;
}

hone_lapack_tag hone_lapack_hidden_invert(const hone_lapack_factors *f,
                                          void **exchanges, void *info_out) {
  hone_lapack_hidden *h;
  hone_guest guest;
  static const char *const names[] = {
      [HONE_LAPACK_LU] = HONE_LETTER "getri",
      [HONE_LAPACK_CHOLESKY] = HONE_LETTER "potri",
      [HONE_LAPACK_SYMMETRIC] = HONE_LETTER "sytri",
      [HONE_LAPACK_HERMITIAN] = HONE_LETTER "hetri"};
  hone_entry *a = f->a;
  *exchanges = NULL;
  const hone_lapack_tag tag = hone_lapack_hidden_find(f, &h);
  if (tag == HONE_LAPACK_UNTAGGED)
    return tag;
  hone_guest_enter(&guest);
  const int64_t info = h != NULL ? replace(f, h, exchanges) : -1;
  if (info < 0)
    say(names[f->kind], f, UNKNOWN_TAG);
  if (h != NULL)
    hone_lapack_hidden_release(h);
  hone_lapack_put(f->at, info_out, info > 0 ? info : 0);
  if (info < 0) {
    for (int64_t j = 0; j < f->n; j++)
      for (int64_t i = f->uplo == 'L' ? j : 0;
           i < (f->uplo == 'U' ? j + 1 : f->n); i++)
        a[i + j * f->lda] = HONE_NAN;
  }
  hone_guest_leave(&guest);
  return info == 0 ? HONE_LAPACK_KNOWN : HONE_LAPACK_UNKNOWN;
}
