/* SPDX-License-Identifier: BSD-3-Clause */
/* LU with partial pivoting and Cholesky factorization in single precision, by
   two to four parts of the columns:

     load      F[:, J] <- S[:, J], scaled and rounded, its rows exchanged as
                          the columns before exchanged them
     columns   P F[j:n, J] = L U, after the columns before were subtracted
     judge     do the pivots fall so fast that the factors are of no use?

   A matrix that is beyond single precision shows it in the pivots of the first
   parts, before most of the work is done. A symmetric positive definite S =
   L L^T goes through the same loop, without exchanges: nothing above its
   diagonal is read, the pivots are l_cc^2, and one that is not positive counts
   as a zero pivot. cpu_factor/factor.c has the factorization itself. */
#include "cpu_sp/blocked.h"

#include "base/pivot_fall.h"
#include "base/rounding.h"
#include "base/vectors.h"
#include "cpu_factor/factor.h"
#include "cpu_sp/small_lu.h"

#include <math.h>

enum {
  ONE_PART_UP_TO = 512,   /* orders up to here have one part; otherwise */
  FIRST_PART = 6,         /* the first part has n / 6 columns, */
  FIRST_MULTIPLE = 96,    /* in whole panels; where its pivots fall, */
  SECOND_PART = 2,        /* the second part ends with column n / 2, */
  SMALL_PART = 5,         /* and a small LU has parts of n / 5 columns, */
  SMALL_PART_LEAST = 96,  /* at least, */
  SMALL_MULTIPLE = 4,     /* in whole panels */
  TASK_COLUMNS = 32,      /* columns scanned by one task */
  SCAN_THREADS_FROM = 400 /* orders from which growth is found by threads */
};

/* A pivot of Cholesky's that is negative, but no larger than this times the
   largest entry of its column of S, may be positive but for rounding. */
static const float ROUNDING = 1e-2F;
static const float ROUNDOFF = 0x1p-24F;
/* If at their rate the last pivots will be below this part of the first, they
   are judged again; from LATE of the columns on the prediction is better, and
   they are hopeless already if that is below LATE_LIMIT. */
static const double FALLING = 1e-2, LATE = 0.4, LATE_LIMIT = 6e-7;
/* A small LU is not judged by the level of its pivots, which lie low after one
   large singular value too. */
static const double SMALL_LIMIT = 1e-7;
/* The leading columns are tried where a fourth of their pivots are below LOW of
   the largest. They are lost if so many powers of what their factors leave of a
   random vector keep LOST_KEEP of it. (In the gallery at n = 600, 800 and 1000
   lost ones kept 1.2 and more after n / 6 columns, all others 0.02 at most.) */
static const float LOW = 1e-4F;
static const double LOST_KEEP = 0.5;
enum { LOW_ONE_IN = 4, LOST_POWERS = 3, RANDOM_AT_ONCE = 64 };

/* ---- The steps ---------------------------------------------------------- */

/* Some block columns to judge the pivots by, more of them if they fall, then
   all others at once. */
int64_t hone_blocked_width(const hone_blocked *h, int64_t j) {
  const int64_t n = h->n;
  if (h->block > 0)
    return HONE_MIN(h->block, n - j);
  if (n <= ONE_PART_UP_TO || h->spd || (j > 0 && !h->falling))
    return n - j;
  const int64_t end = j == 0 ? n / FIRST_PART : n / SECOND_PART;
  const int64_t to =
      (end + FIRST_MULTIPLE - 1) / FIRST_MULTIPLE * FIRST_MULTIPLE;
  return to > j ? HONE_MIN(to, n) - j : n - j;
}

void hone_blocked_load(hone_blocked *h, const hone_matrix *a,
                       const hone_scaling *scaling, int64_t j, int64_t w) {
  const hone_rounding rounding = {.a = hone_dense_of(a),
                                  .scaling = scaling,
                                  .j = j,
                                  .w = w,
                                  .exchange = h->ipiv,
                                  .exchanges = h->spd ? 0 : j,
                                  .lower = h->spd,
                                  .f = h->f + j * h->ld,
                                  .ldf = h->ld,
                                  .col_max = h->col_max + j};
  h->flushed =
      (j > 0 ? h->flushed : 0) + hone_round_columns(h->pool, &rounding);
}

void hone_blocked_pivots(const hone_blocked *h, int64_t j, int64_t w,
                         float *out) {
  for (int64_t i = 0; i < w; i++)
    out[i] = hone_abs_single(h->f[(j + i) * h->ld + j + i]);
  for (int64_t i = 0; h->spd && i < w; i++)
    out[i] *= out[i];
}

static double mean_pivot(const hone_blocked *h, int64_t j) {
  float pivot[HONE_PIVOT_SAMPLE];
  hone_blocked_pivots(h, j, HONE_PIVOT_SAMPLE, pivot);
  return hone_pivot_mean(pivot);
}

/* With 'done' columns factored: are the factors too poor to be refined with, or
   may they prove to be so later? Sets h->hopeless and h->falling. */
static void judge(hone_blocked *h, int64_t done) {
  if (!hone_pivots_can_be_judged(h->n, done))
    return;
  hone_pivot_fall fall = {.n = h->n,
                          .done = done,
                          .start = mean_pivot(h, 0),
                          .middle = mean_pivot(h, hone_pivot_middle(done)),
                          .end = mean_pivot(h, hone_pivot_end(done))};
  hone_blocked_pivots(h, 0, 1, &fall.first);
  h->falling = hone_pivots_end_below(&fall, FALLING);
  const bool late = !h->small && (double)done >= LATE * (double)h->n;
  h->hopeless = (h->small ? hone_pivots_end_below(&fall, SMALL_LIMIT)
                          : hone_pivots_hopeless(&fall)) ||
                (late && hone_pivots_end_below(&fall, LATE_LIMIT));
}

/* Are they, with all columns factored? Where pivots were zero, and in Cholesky,
   that is left to the certificate. */
static bool fades(const hone_blocked *h) {
  hone_pivot_counts counts = {.n = 0};
  float largest = 0.0F, pivot;
  for (int64_t c = 0; c < h->n; c++) {
    hone_blocked_pivots(h, c, 1, &pivot);
    largest = HONE_MAX(largest, pivot);
  }
  for (int64_t c = 0; c < h->n; c++) {
    hone_blocked_pivots(h, c, 1, &pivot);
    hone_pivot_count(&counts, pivot, largest);
  }
  return hone_pivots_fade(&counts);
}

/* Are many of the first 'done' pivots small? */
static bool many_are_low(const hone_blocked *h, int64_t done) {
  float largest = 0.0F, pivot;
  int64_t low = 0;
  for (int64_t c = 0; c < done; c++) {
    hone_blocked_pivots(h, c, 1, &pivot);
    largest = HONE_MAX(largest, pivot);
  }
  for (int64_t c = 0; c < done; c++) {
    hone_blocked_pivots(h, c, 1, &pivot);
    low += pivot <= LOW * largest;
  }
  return LOW_ONE_IN * low >= done;
}

static void draw(int64_t n, hone_entry *v) {
  double unit[RANDOM_AT_ONCE], *part = (double *)v;
  uint64_t seed = 1;
  for (int64_t at = 0; at < HONE_PARTS * n; at += RANDOM_AT_ONCE) {
    const int64_t count =
        HONE_MIN((int64_t)RANDOM_AT_ONCE, HONE_PARTS * n - at);
    hone_random_units(count, &seed, unit);
    for (int64_t i = 0; i < count; i++)
      part[at + i] = unit[i];
  }
}

/* to += by from, for n entries in single precision. */
HONE_VECTOR static void add_single(int64_t n, hone_entry by,
                                   const hone_single *restrict from,
                                   hone_entry *restrict to) {
  for (int64_t i = 0; i < n; i++)
    to[i] += by * (hone_entry)from[i];
}

/* v = v - inv(L11 U11) (P S)11 v, of the first 'done' rows and columns.
   q: n. */
static void apply_leading(const hone_blocked *h, const hone_dense *a,
                          const hone_scaling *scaling, int64_t done,
                          hone_entry *restrict v, hone_entry *restrict q) {
  const double *row = scaling->row, *col = scaling->col;
  for (int64_t i = 0; i < h->n; i++)
    q[i] = 0.0;
  for (int64_t j = 0; j < done; j++)
    for (int64_t i = 0; i < h->n; i++) {
      const hone_entry s = a->a[i + j * a->lda];
      q[i] += (scaling->used ? hone_scaled_entry(row[i], col[j], s) : s) * v[j];
    }
  for (int64_t j = 0; j < done; j++) {
    const hone_entry other = q[h->ipiv[j] - 1];
    q[h->ipiv[j] - 1] = q[j];
    q[j] = other;
  }
  for (int64_t j = 0; j < done; j++)
    add_single(done - j - 1, -q[j], h->f + j * h->ld + j + 1, q + j + 1);
  for (int64_t j = done - 1; j >= 0; j--) {
    q[j] /= (hone_entry)h->f[j * h->ld + j];
    add_single(j, -q[j], h->f + j * h->ld, q);
  }
  for (int64_t i = 0; i < done; i++)
    v[i] -= q[i];
}

/* With many small pivots: do the factors say nothing of the leading columns, so
   that inv(L11 U11) (P S)11 leaves a large part of the space as it was? If S is
   regular, that is not to be known from the size of pivots: where they have
   dropped to the rounding errors of single precision they stay level, as those
   of a matrix with singular values of that size would. The vectors
   are in the columns of F that are not loaded yet, a fifth of them or more. */
static bool leading_are_lost(const hone_blocked *h, const hone_matrix *a,
                             const hone_scaling *scaling, int64_t done) {
  void *space = h->f + done * h->ld;
  hone_entry *v = space, *q = v + done;
  if (h->small || h->spd || !hone_pivots_can_be_judged(h->n, done) ||
      !many_are_low(h, done))
    return false;
  draw(done, v);
  const double before = sqrt(hone_sum_of_squares(done, v));
  for (int power = 0; power < LOST_POWERS; power++)
    apply_leading(h, hone_dense_of(a), scaling, done, v, q);
  return !(sqrt(hone_sum_of_squares(done, v)) < LOST_KEEP * before);
}

#ifndef HONE_COMPLEX
/* Factors a small S by parts, as long as its pivots fall but are not hopeless,
   and the rest of it. Pivots of zero are not judged. */
static int small_columns(hone_blocked *h, int64_t *zero_pivot) {
  const int64_t part = HONE_MAX(h->n / SMALL_PART, (int64_t)SMALL_PART_LEAST) /
                       SMALL_MULTIPLE * SMALL_MULTIPLE;
  if (hone_watch_stop(h->watch, "factor", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  for (int64_t k = 0, next; k < h->n && !h->hopeless; k = next) {
    const bool parts = (k == 0 || h->falling) && SECOND_PART * k < h->n;
    next = parts ? HONE_MIN(k + part, h->n) : h->n;
    const int64_t zero =
        hone_small_lu(h->n, k, next, h->f, h->ld, h->ipiv, h->small_work);
    if (zero >= 0 && *zero_pivot < 0)
      *zero_pivot = zero;
    h->falling = false;
    if (*zero_pivot < 0)
      judge(h, next);
  }
  return HONE_OK;
}
#endif

/* Where J is all of a small S, its transpose is factored: zero_pivot, pivots
   and growth are then those of S^T. */
int hone_blocked_columns(hone_blocked *h, int64_t j, int64_t w,
                         int64_t *zero_pivot) {
  h->small = !h->spd && w == h->n && h->n <= HONE_SMALL_UP_TO;
#ifndef HONE_COMPLEX
  if (h->small)
    return small_columns(h, zero_pivot);
#endif
  const hone_factoring job = {
      .kernels = hone_factor_kernels_of(8 * (int)sizeof(hone_single)),
      .n = h->n,
      .ldf = h->ld,
      .spd = h->spd,
      .f = h->f,
      .pivot = h->ipiv,
      .work = h->work,
      .pool = h->pool,
      .watch = h->watch,
      .phase = "factor"};
  return hone_factor_columns(&job, j, j + w, zero_pivot);
}

/* Replaces pivots of zero in the columns j .. j+w-1, below which L is zero, by
   the rounding error of S: P (S + d) = L U, with d of that size in as many
   places. Returns whether there were any. */
static bool replace_zeros(hone_blocked *h, int64_t j, int64_t w) {
  float max = 0.0F;
  bool any = false;
  for (int64_t c = 0; c < j + w; c++)
    max = HONE_MAX(max, h->col_max[c]);
  for (int64_t c = j; c < j + w; c++)
    if (h->f[c * h->ld + c] == 0.0F) {
      h->f[c * h->ld + c] = ROUNDOFF * (max > 0.0F ? max : 1.0F);
      any = true;
    }
  return any;
}

/* ---- Growth ------------------------------------------------------------- */

typedef struct growth_job {
  const hone_blocked *h;
  float *max; /* n: of each column of U, NaN where one entry is */
} growth_job;

/* Largest magnitude of n entries; NaN where one is NaN or Inf. */
HONE_VECTOR static float largest(int64_t n, const hone_single *u) {
  float max = 0.0F, bad = 0.0F;
#pragma omp simd reduction(max : max) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    float v = hone_abs_single(u[i]);
    max = v > max ? v : max;
    bad += v * 0.0F; /* NaN for NaN and Inf, else 0 */
  }
  return max + bad;
}

static void growth_columns(void *ctx, int64_t task) {
  const growth_job *job = ctx;
  const hone_blocked *h = job->h;
  int64_t to = HONE_MIN((task + 1) * TASK_COLUMNS, h->n);
  for (int64_t j = task * TASK_COLUMNS; j < to; j++) {
    const hone_single *f = h->f + j * h->ld;
    job->max[j] =
        h->small || h->spd ? largest(h->n - j, f + j) : largest(j + 1, f);
  }
}

void hone_blocked_outcome(hone_blocked *h, bool complete,
                          hone_factor_info *info) {
  const int64_t n = h->n;
  info->flushed = h->flushed;
  if (h->spd && info->zero_pivot >= 0) { /* the pivot was left there */
    const int64_t p = info->zero_pivot;
    info->rounding =
        hone_abs_single(h->f[p * h->ld + p]) <= ROUNDING * h->col_max[p];
  }
  if (!complete)
    return;
  float *max = h->col_max + n;
  growth_job job = {h, max};
  hone_pool_run(n < SCAN_THREADS_FROM ? NULL : h->pool,
                (n + TASK_COLUMNS - 1) / TASK_COLUMNS, growth_columns, &job);
  double u = 0.0, s = 0.0;
  for (int64_t j = 0; j < n; j++) {
    u = (double)max[j] <= u ? u : (double)max[j]; /* takes NaN, */
    if (isnan(u))                                 /* and keeps it */
      break;
    s = HONE_MAX(s, (double)h->col_max[j]);
  }
  info->growth = (h->spd ? u * u : u) / s;
}

/* ---- The loop ----------------------------------------------------------- */

int hone_blocked_factor(void *self, const hone_matrix *a,
                        const hone_scaling *scaling, hone_factor_info *info) {
  hone_blocked *h = self;
  const int64_t n = h->n;
  *info = (hone_factor_info){.growth = HONE_NAN, .zero_pivot = -1};
  h->falling = h->hopeless = false;
  for (int64_t j = 0, w;
       j < n && !(h->spd && info->zero_pivot >= 0) && !info->hopeless; j += w) {
    w = hone_blocked_width(h, j);
    hone_blocked_load(h, a, scaling, j, w);
    const int st = hone_blocked_columns(h, j, w, &info->zero_pivot);
    if (st != HONE_OK)
      return st;
    if (info->zero_pivot >= 0 && !h->spd)
      info->replaced = replace_zeros(h, j, w) || info->replaced;
    if (!h->small)
      judge(h, j + w);
    if (info->zero_pivot < 0 && !h->hopeless)
      h->hopeless = leading_are_lost(h, a, scaling, j + w);
    info->hopeless = h->hopeless;
  }
  if (info->zero_pivot < 0 && !h->spd && !info->hopeless)
    info->hopeless = fades(h);
  info->replaced = info->replaced && !info->hopeless;
  const bool complete =
      (info->zero_pivot < 0 || info->replaced) && !info->hopeless;
  hone_blocked_outcome(h, complete, info);
  return HONE_OK;
}
