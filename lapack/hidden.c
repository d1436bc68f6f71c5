/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes hidden factors; see hidden.h. hidden_solve.c solves with them. The
   factors are those of the caller's own sgetrf_ or spotrf_.

   INFO of dgetrf_ must be what LAPACK's would be. If LAPACK finds a pivot that
   is zero, there is a vector u with u^T A = 0 but for rounding errors, and
   |u^T b| <= ||b - A x|| for any b and x. Systems with random b are therefore
   solved and refined a little. That their residuals become small has a
   probability of about their product if A is singular; otherwise it shows how
   fast refinement converges. dpotrf_ is treated alike: A - E, which spotrf_
   has factored, is positive definite, and if A is not, refinement diverges. */
#include "lapack/hidden.h"

#include "base/base.h"
#include "base/float_environment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  TRIALS = 2,     /* systems with random b */
  TRIAL_STEPS = 6 /* solves for each */
};
static const double RATE = 0x1p-3;   /* most that a correction may leave of r */
static const double UNLIKELY = 1e-6; /* that A is singular all the same */

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

static int64_t factor_single(const hone_lapack_hidden *h) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_enter();
  if (h->f.uplo == 0) {
    hone_single_getrf_fn *getrf =
        (hone_single_getrf_fn *)hone_lapack_must(HONE_REAL_single_getrf, at);
    getrf(&n, &n, h->single, &n, h->exchanges, &info);
  } else {
    hone_single_potrf_fn *potrf =
        (hone_single_potrf_fn *)hone_lapack_must(HONE_REAL_single_potrf, at);
    potrf(&h->f.uplo, &n, h->single, &n, &info, 1);
  }
  hone_lapack_leave();
  return hone_lapack_get(at, &info);
}

/* Exchanges rows of a vector as the factorization did, or back. */
static void exchange(const hone_lapack_hidden *h, bool back, hone_single *v) {
  const int64_t n = h->f.n;
  for (int64_t t = 0; t < n; t++) {
    const int64_t i = back ? n - 1 - t : t;
    const int64_t k = (hone_lapack_wide(h->f.at.interface)
                           ? ((const int64_t *)h->exchanges)[i]
                           : ((const int32_t *)h->exchanges)[i]) -
                      1;
    const hone_single was = v[i];
    v[i] = v[k];
    v[k] = was;
  }
}

/* Solves for one right-hand side. OpenBLAS's sgetrs_ would take twice as long,
   where it treats one as if it were many. */
static void solve_one(const hone_lapack_hidden *h, char trans, hone_single *v) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  const hone_lapack_integer one = hone_lapack_make(at, 1);
  const char uplo = h->f.uplo, ways[] = {'N', trans, 'C'};
  hone_single_trsv_fn *trsv =
      (hone_single_trsv_fn *)hone_lapack_must(HONE_REAL_single_trsv, at);
  hone_lapack_enter();
  if (uplo == 0 && trans == 'N') {
    exchange(h, false, v);
    trsv("L", "N", "U", &n, h->single, &n, v, &one, 1, 1, 1);
    trsv("U", "N", "N", &n, h->single, &n, v, &one, 1, 1, 1);
  } else if (uplo == 0) {
    trsv("U", &ways[1], "N", &n, h->single, &n, v, &one, 1, 1, 1);
    trsv("L", &ways[1], "U", &n, h->single, &n, v, &one, 1, 1, 1);
    exchange(h, true, v);
  } else {
    trsv(&uplo, &ways[uplo == 'U' ? 2 : 0], "N", &n, h->single, &n, v, &one, 1,
         1, 1);
    trsv(&uplo, &ways[uplo == 'U' ? 0 : 2], "N", &n, h->single, &n, v, &one, 1,
         1, 1);
  }
  hone_lapack_leave();
}

/* Solves for many; returns INFO. */
static int64_t solve_many(const hone_lapack_hidden *h, char trans, int64_t nrhs,
                          hone_single *v) {
  const hone_lapack_caller at = h->f.at;
  const hone_lapack_integer n = hone_lapack_make(at, h->f.n);
  const hone_lapack_integer columns = hone_lapack_make(at, nrhs);
  hone_lapack_integer info = hone_lapack_make(at, 0);
  hone_lapack_enter();
  if (h->f.uplo == 0) {
    hone_single_getrs_fn *getrs =
        (hone_single_getrs_fn *)hone_lapack_must(HONE_REAL_single_getrs, at);
    getrs(&trans, &n, &columns, h->single, &n, h->exchanges, v, &n, &info, 1);
  } else {
    hone_single_potrs_fn *potrs =
        (hone_single_potrs_fn *)hone_lapack_must(HONE_REAL_single_potrs, at);
    potrs(&h->f.uplo, &n, &columns, h->single, &n, v, &n, &info, 1);
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

int64_t hone_lapack_hidden_backsolve(const hone_lapack_hidden *hidden,
                                     char trans, int64_t nrhs, hone_entry *v,
                                     int64_t ldv) {
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
  if (info == 0 && nrhs == 1)
    solve_one(hidden, trans, w);
  else if (info == 0)
    info = solve_many(hidden, trans, nrhs, w);
  for (int64_t k = 0; k < nrhs && info == 0; k++) {
    const double back = scale[k] > 0.0 ? hidden->scale / scale[k] : 0.0;
    for (int64_t i = 0; i < n; i++)
      v[i + k * ldv] = hone_times(back, (hone_entry)w[i + k * n]);
  }
  free(w);
  free(scale);
  return info;
}

/* Whether they suffice ---------------------------------------------------- */

/* Fills b with random numbers of variance 1. */
static void random_columns(int64_t count, hone_entry *b) {
  double *v = (double *)b;
  uint64_t state = 0;
  for (int64_t i = 0; i < count * HONE_PARTS; i++) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    v[i] = ((double)(z >> 11) * 0x1p-52 - 1.0) * sqrt(3.0 / HONE_PARTS);
  }
}

static double length(int64_t n, const hone_entry *v) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_abs(v[i]);
    sum += size * size;
  }
  return sqrt(sum);
}

/* Takes one step of the trial: r becomes the residual of x + inv(A) r, x that
   sum. Returns whether r became as small as it should, and in *chance the
   product of the lengths of all residuals. */
static bool trial_step(const hone_lapack_hidden *h, const hone_lapack_group *g,
                       double *lengths, double *chance) {
  const int64_t n = g->n;
  const bool open[TRIALS] = {true, true};
  double omega[TRIALS];
  if (hone_lapack_hidden_backsolve(h, 'N', TRIALS, g->r, n) != 0)
    return false;
  for (int64_t i = 0; i < n * TRIALS; i++)
    g->x[i] += g->r[i];
  hone_lapack_residual(g, open, omega);
  bool good = true;
  *chance = 1.0;
  for (int64_t k = 0; k < TRIALS; k++) {
    const double now = length(n, g->r + k * n);
    good = good && now <= RATE * lengths[k];
    *chance *= HONE_MIN(1.0, now);
    lengths[k] = now;
  }
  return good;
}

/* Solves systems with random b, and computes the hash of the array. */
static bool trial(hone_lapack_hidden *h) {
  const int64_t n = h->f.n, size = n * TRIALS;
  hone_entry *work = hone_lapack_room(n, 4 * TRIALS);
  double *den = malloc((size_t)size * sizeof *den);
  bool good = work != NULL && den != NULL;
  double lengths[TRIALS], chance = 1.0;
  hone_lapack_group g = {.n = n,
                         .lda = h->f.lda,
                         .a = h->f.a,
                         .diagonal = h->diagonal,
                         .uplo = h->f.uplo,
                         .hash = &h->hash,
                         .threads = h->threads,
                         .quick = hone_lapack_hidden_quick(h),
                         .trans = 'N',
                         .columns = TRIALS,
                         .b = work,
                         .ldb = n,
                         .x = work + size,
                         .r = work + 2 * size,
                         .low = work + 3 * size,
                         .den = den};
  if (good) {
    random_columns(size, work);
    memset(g.x, 0, (size_t)size * sizeof *g.x);
    memcpy(g.r, work, (size_t)size * sizeof *g.r);
    for (int64_t k = 0; k < TRIALS; k++)
      lengths[k] = length(n, work + k * n);
  }
  for (int i = 0; i < TRIAL_STEPS && good && chance > UNLIKELY; i++) {
    good = trial_step(h, &g, lengths, &chance);
    g.hash = NULL;
  }
  free(work);
  free(den);
  return good && chance <= UNLIKELY;
}

/* Hides factors ----------------------------------------------------------- */

/* Puts the tag, or the diagonal again, into the array. */
static void set_diagonal(const hone_lapack_hidden *h, bool tagged) {
  hone_entry *a = h->f.a, *diagonal = h->diagonal;
  hone_entry tag;
  for (int p = 0; p < HONE_PARTS; p++)
    memcpy((double *)&tag + p, &h->tag, sizeof h->tag);
  for (int64_t i = 0; i < h->f.n; i++)
    memcpy(a + i + i * h->f.lda, tagged ? &tag : diagonal + i, sizeof tag);
}

/* The imaginary part of a Hermitian matrix's diagonal counts as 0. */
static void take_diagonal(const hone_lapack_hidden *h) {
  const hone_entry *a = h->f.a;
  hone_entry *diagonal = h->diagonal;
  for (int64_t i = 0; i < h->f.n; i++) {
    const hone_entry v = a[i + i * h->f.lda];
    diagonal[i] = h->f.uplo == 0 ? v : hone_real(v);
  }
}

static bool hidden(const hone_lapack_factors *f, bool at_once) {
  hone_lapack_hidden *h = hone_lapack_hidden_new(f, at_once);
  if (h == NULL)
    return false;
  h->threads = hone_lapack_real_threads(f->at);
  if (h->single == NULL)
    h->single = hone_lapack_room(f->n, f->n / 2 + 1);
  bool good = h->single != NULL && rounded(h) && factor_single(h) == 0;
  if (good) {
    take_diagonal(h);
    set_diagonal(h, true);
    good = trial(h);
    if (!good)
      set_diagonal(h, false);
  }
  if (good) {
    hone_lapack_no_exchanges(f);
    hone_lapack_hidden_put(h);
  } else {
    hone_lapack_hidden_free(h);
  }
  return good;
}

static bool too_small(int64_t n) {
  return hone_lapack_small(n) || (hone_lapack_settings()->crossover < 0 &&
                                  n < HONE_LAPACK_HIDING_PAYS_FROM);
}

static _Thread_local struct {
  const void *module;
  int64_t n;
} inverts; /* the caller that asked dgetri_ for its work space */

void hone_lapack_will_invert(const hone_lapack_factors *f) {
  bool at_once;
  if (!too_small(f->n) && hone_lapack_hides(f->at, &at_once)) {
    inverts.module = hone_lapack_module(f->at);
    inverts.n = f->n;
  }
}

static bool will_invert(const hone_lapack_factors *f) {
  if (inverts.module == NULL || inverts.n != f->n ||
      inverts.module != hone_lapack_module(f->at))
    return false;
  inverts.module = NULL;
  return true;
}

bool hone_lapack_hide(const char *name, const hone_lapack_factors *f,
                      void *info) {
  hone_lapack_factors site = *f;
  hone_float_environment callers;
  bool at_once = false;
  if (too_small(f->n) || !hone_lapack_settings()->on || f->lda < f->n ||
      f->a == NULL || (f->uplo == 0 && f->ipiv == NULL) ||
      hone_lapack_nested(f->at) || !hone_lapack_hides(f->at, &at_once))
    return false;
  site.by_site = true;
  hone_lapack_hidden_overwritten(f);
  if (will_invert(f) || hone_lapack_spares(&site))
    return false;
  const double start_ms = hone_lapack_now_ms();
  hone_float_enter(&callers);
  const bool done = hidden(&site, at_once);
  hone_float_leave(&callers);
  hone_lapack_tried(&site, done);
  if (done)
    hone_lapack_put(f->at, info, 0);
  hone_lapack_log(name, f->n, 0,
                  done ? "single, factors hidden"
                       : "single refused, LAPACK's factors follow",
                  HONE_NAN, start_ms);
  return done;
}
