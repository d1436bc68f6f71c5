/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes hidden factors; see hidden.h. hidden_single.c has the factors in single
   precision, hidden_solve.c solves with them.

   INFO of dgetrf_ must be what LAPACK's would be. If LAPACK finds a pivot that
   is zero, there is a vector u with u^T A = 0 but for rounding errors, and
   |u^T b| <= ||b - A x|| for any b and x. Systems with random b are therefore
   solved and refined a little. That their residuals become small has a
   probability of about their product if A is singular; otherwise it shows how
   fast refinement converges. dsytrf_ is treated likewise, and so is dpotrf_: A
   - E, which spotrf_ has factored, is positive definite, and if A is not,
   refinement diverges. */
#include "lapack/hidden.h"

#include "api/guest.h"
#include "base/numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  TRIALS = 2,     /* systems with random b */
  TRIAL_STEPS = 6 /* solves for each */
};
static const double RATE = 0x1p-3;   /* most that a correction may leave of r */
static const double UNLIKELY = 1e-6; /* that A is singular all the same */

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
  hone_lapack_hidden_residual(h, g, open, omega);
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
                         .symmetric = h->f.kind == HONE_LAPACK_SYMMETRIC,
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

/* Puts the diagonal into the array again. */
static void restore_diagonal(const hone_lapack_hidden *h,
                             const hone_entry *diagonal) {
  hone_entry *a = h->f.a;
  for (int64_t i = 0; i < h->f.n; i++)
    a[i + i * h->f.lda] = diagonal[i];
}

/* Puts tags in its place. All numbers but the first have bits of a hash of the
   diagonal in the place of the matrix's number: another process may give the
   same number to a matrix that differs from this one in the diagonal alone. */
static void tag_diagonal(const hone_lapack_hidden *h) {
  const uint64_t number_bits = 0xffffffffu;
  hone_lapack_hash hash = {0, 0, 0};
  hone_entry *a = h->f.a;
  hone_lapack_add_hash(&hash, h->diagonal, 0, h->f.n * HONE_PARTS, 0);
  for (int64_t i = 0; i < h->f.n * HONE_PARTS; i++) {
    uint64_t state = hash.sum + (uint64_t)i * hash.product;
    const uint64_t word = i == 0 ? h->tag
                                 : (h->tag & ~number_bits) |
                                       (hone_random_bits(&state) & number_bits);
    memcpy((double *)(a + i / HONE_PARTS * (h->f.lda + 1)) + i % HONE_PARTS,
           &word, sizeof word);
  }
}

/* Copies it; the imaginary part of a Hermitian matrix's counts as 0. whole: as
   it is. */
static void take_diagonal(const hone_lapack_hidden *h, hone_entry *whole) {
  const hone_entry *a = h->f.a;
  hone_entry *diagonal = h->diagonal;
  for (int64_t i = 0; i < h->f.n; i++) {
    const hone_entry v = a[i + i * h->f.lda];
    whole[i] = v;
    diagonal[i] = hone_lapack_conjugates(&h->f) ? hone_real(v) : v;
  }
}

static const char NO_ROOM_SAYS[] = "no room for hidden factors, ";
typedef enum hiding { HIDDEN, HIDDEN_THERE, REFUSED, NO_ROOM } hiding;

/* How the line in the log begins. */
static const char *begins(hiding result) {
  static const char *const says[] = {[HIDDEN] = "single, ",
                                     [HIDDEN_THERE] = "single on a GPU, ",
                                     [REFUSED] = "single refused, ",
                                     [NO_ROOM] = NO_ROOM_SAYS};
  return says[result];
}

static bool is_hidden(hiding result) { return result <= HIDDEN_THERE; }

static hiding hidden(const hone_lapack_factors *f, bool at_once) {
  hone_lapack_hidden *h = hone_lapack_hidden_new(f, at_once);
  hiding result = REFUSED;
  if (h == NULL)
    return NO_ROOM;
  h->threads = hone_lapack_real_threads(f->at);
  hone_entry *whole = malloc((size_t)f->n * sizeof *whole);
  if (whole == NULL)
    result = NO_ROOM;
  else if (hone_lapack_hidden_factor(h) == 0) {
    take_diagonal(h, whole);
    tag_diagonal(h);
    const hiding place = h->account.device ? HIDDEN_THERE : HIDDEN;
    if (trial(h))
      result = hone_lapack_hidden_put(h) ? place : NO_ROOM;
    if (!is_hidden(result))
      restore_diagonal(h, whole);
  }
  free(whole);
  if (is_hidden(result))
    hone_lapack_no_exchanges(f);
  else
    hone_lapack_hidden_free(h);
  return result;
}

static bool too_small(const hone_lapack_factors *f) {
  const bool symmetric =
      f->kind == HONE_LAPACK_SYMMETRIC || f->kind == HONE_LAPACK_HERMITIAN;
  const int64_t least = symmetric ? HONE_LAPACK_SYMMETRIC_PAYS_FROM
                                  : HONE_LAPACK_HIDING_PAYS_FROM;
  return hone_lapack_small(f->n) ||
         (hone_lapack_settings()->crossover < 0 && f->n < least);
}

static _Thread_local struct {
  const void *module;
  int64_t n;
} inverts; /* the caller that asked dgetri_ for its work space */

void hone_lapack_will_invert(const hone_lapack_factors *f) {
  bool at_once;
  if (!too_small(f) && hone_lapack_hides(f->at, &at_once)) {
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

/* Hides the factors of a matrix whose caller consents, unless its matrices were
   refused before. Returns false, with A unchanged, if they are not hidden. *why
   begins the line in the log. */
static bool hide(const hone_lapack_factors *f, bool at_once, const char **why) {
  hone_lapack_factors site = *f;
  hone_guest guest;
  site.by_site = true;
  site.work = NULL; /* it is the caller's */
  hone_lapack_hidden_overwritten(f);
  *why = "";
  if (will_invert(f))
    return false;
  *why = "single refused before, ";
  if (hone_lapack_spares(&site))
    return false;
  hone_guest_enter(&guest);
  const hiding result = hidden(&site, at_once);
  hone_guest_leave(&guest);
  *why = begins(result);
  if (result != NO_ROOM)
    hone_lapack_tried(&site, is_hidden(result));
  return is_hidden(result);
}

bool hone_lapack_hide(const char *name, const hone_lapack_factors *f,
                      void *info) {
  bool at_once = false;
  const char *why;
  if (too_small(f) || !hone_lapack_settings()->on || f->lda < f->n ||
      f->a == NULL || (hone_lapack_pivots(f) && f->ipiv == NULL) ||
      hone_lapack_nested(f->at) || !hone_lapack_hides(f->at, &at_once) ||
      hone_lapack_other_width(f->at))
    return false;
  const double start_ms = hone_lapack_now_ms();
  const bool done = hide(f, at_once, &why);
  if (done)
    hone_lapack_put(f->at, info, 0);
  if (done || strcmp(why, begins(NO_ROOM)) == 0 ||
      strcmp(why, begins(REFUSED)) == 0) {
    char how[64];
    snprintf(how, sizeof how, "%s%s", why,
             done ? "factors hidden" : "LAPACK's factors follow");
    hone_lapack_log(name, f->n, 0, how, HONE_NAN, start_ms);
  }
  return done;
}

bool hone_lapack_hidden_driver(const hone_lapack_call *call, bool may_hide,
                               const char **why, void *info) {
  const hone_lapack_factors *f = &call->f;
  bool at_once = false;
  *why = "";
  if (too_small(f) || f->ipiv == NULL || hone_lapack_other_width(f->at))
    return false;
  const bool hides = may_hide && hone_lapack_hides(f->at, &at_once);
  if (!(hides || hone_lapack_discards(f->at)) || !hide(f, at_once, why))
    return false;
  uint64_t tag;
  memcpy(&tag, f->a, sizeof tag);
  const bool solved = hone_lapack_hidden_try(call, info);
  if (solved && hides) /* dsytrs_ may follow */
    return true;
  if (solved)
    hone_lapack_discard(f);
  else
    *why = "single refused, ";
  hone_lapack_hidden_drop(tag);
  return solved;
}
