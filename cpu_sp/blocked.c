/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocked LU with partial pivoting in single precision, left-looking by block
   columns, over OpenBLAS. Block column J of width w at column j:

     load     F[:, J]     <- S[:, J], scaled and rounded, its rows exchanged
                             as the panels before exchanged them
     update   U[0:j, J]    = inv(L[0:j, 0:j]) F[0:j, J]
              F[j:n, J]   -= L[j:n, 0:j] U[0:j, J]
     panel    P F[j:n, J]  = L U
     judge    do the pivots fall so fast that the factors are of no use?

   Left-looking because block columns are then taken from the caller's matrix
   one at a time as they are needed, the inner dimension of the update is
   long, and a matrix that is beyond single precision shows it in the pivots
   of the first panels, before most of the work is done.

   A symmetric positive definite S = U^T U goes through the same loop, without
   exchanges: nothing below its diagonal is read, U[0:j, J] = inv(U[0:j,
   0:j]^T) F[0:j, J], F[J, J] -= U[0:j, J]^T U[0:j, J], the pivots are u_cc^2,
   and one that is not positive counts as a zero pivot.

   The panel is OpenBLAS's own LU of a tall block, so that with wide block
   columns nearly all the work runs at the speed of its GEMM. */
#include "cpu_sp/blocked.h"

#include "base/lapack.h"
#include "base/pivot_fall.h"
#include "base/rounding.h"
#include "cpu_sp/small_lu.h"

#include <cblas.h>
#include <math.h>

enum {
  FIRST_PART = 6,         /* the first block column has n / 6 columns, */
  FIRST_LEAST = 96,       /* but no fewer than the judgement of pivots needs */
  TASK_COLUMNS = 32,      /* columns scanned by one task */
  SCAN_THREADS_FROM = 400 /* orders from which growth is found by threads */
};

/* A pivot of Cholesky's that is negative, but no larger than this times the
   largest entry of its column of S, may be positive but for rounding. */
static const float ROUNDING = 1e-2F;
static const float ROUNDOFF = 0x1p-24F;

/* ---- The steps ---------------------------------------------------------- */

/* One block column to judge the pivots by, then all other columns at once:
   OpenBLAS's LU is at its best on large blocks, and its Cholesky
   factorization takes all of the matrix. */
int64_t hone_blocked_width(const hone_blocked *h, int64_t j) {
  const int64_t n = h->n;
  if (h->block > 0)
    return HONE_MIN(h->block, n - j);
  if (n <= HONE_SMALL_UP_TO || j > 0 || h->spd)
    return n - j;
  const int64_t part = (n / FIRST_PART + 31) / 32 * 32;
  return HONE_MIN(HONE_MAX((int64_t)FIRST_LEAST, part), n);
}

void hone_blocked_load(hone_blocked *h, const hone_matrix *a,
                       const hone_scaling *scaling, int64_t j, int64_t w) {
  const hone_rounding rounding = {.a = hone_dense_of(a),
                                  .scaling = scaling,
                                  .j = j,
                                  .w = w,
                                  .exchange = h->ipiv,
                                  .exchanges = h->spd ? 0 : j,
                                  .f = h->f + j * h->ld,
                                  .ldf = h->ld,
                                  .col_max = h->col_max + j};
  h->flushed =
      (j > 0 ? h->flushed : 0) + hone_round_columns(h->pool, &rounding);
}

static void update_spd(hone_blocked *h, int64_t j, int64_t w) {
  const int ld = (int)h->ld;
  float *u = h->f + j * h->ld;
  cblas_strsm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit,
              (int)j, (int)w, 1.0F, h->f, ld, u, ld);
  cblas_ssyrk(CblasColMajor, CblasUpper, CblasTrans, (int)w, (int)j, -1.0F, u,
              ld, 1.0F, u + j, ld);
}

/* The trailing update: U[0:j, J] = inv(L11) F[0:j, J], and
   F[j:n, J] -= L21 U[0:j, J]. */
void hone_blocked_update(hone_blocked *h, int64_t j, int64_t w) {
  if (h->spd) {
    update_spd(h, j, w);
    return;
  }
  const int ld = (int)h->ld;
  const float *l = h->f + j;
  float *u = h->f + j * h->ld;
  cblas_strsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit,
              (int)j, (int)w, 1.0F, h->f, ld, u, ld);
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)(h->n - j),
              (int)w, (int)j, -1.0F, l, ld, u, ld, 1.0F, u + j, ld);
}

/* F[J, J] = U^T U. */
static int panel_spd(hone_blocked *h, int64_t j, int64_t w,
                     int64_t *zero_pivot) {
  const int width = (int)w, ld = (int)h->ld;
  int info = 0;
  spotrf_("U", &width, h->f + j * h->ld + j, &ld, &info);
  if (info > 0)
    *zero_pivot = j + info - 1;
  for (int64_t c = j; c < j + w && *zero_pivot < 0; c++)
    if (!(h->f[c * h->ld + c] > 0.0F)) /* OpenBLAS lets NaN through */
      *zero_pivot = c;
  return info < 0 ? HONE_INTERNAL : HONE_OK;
}

/* P F[j:n, J] = L U. *zero_pivot: the first zero pivot's column, or unchanged.
   Where J is all of a small S, its transpose is factored: zero_pivot, pivots
   and growth are then those of S^T. */
int hone_blocked_panel(hone_blocked *h, int64_t j, int64_t w,
                       int64_t *zero_pivot) {
  if (h->spd)
    return panel_spd(h, j, w, zero_pivot);
  int m = (int)(h->n - j), width = (int)w, ld = (int)h->ld, info = 0;
  h->small = w == h->n && h->n <= HONE_SMALL_UP_TO;
  if (h->small) {
    int64_t zero = hone_small_lu(h->n, h->f, h->ld, h->ipiv, h->work);
    if (zero >= 0)
      *zero_pivot = zero;
    return HONE_OK;
  }
  sgetrf_(&m, &width, h->f + j * h->ld + j, &ld, h->ipiv + j, &info);
  if (info < 0)
    return HONE_INTERNAL;
  if (info > 0 && *zero_pivot < 0)
    *zero_pivot = j + info - 1;
  for (int64_t i = j; i < j + w; i++)
    h->ipiv[i] += (int)j;
  const int left = (int)j, from = left + 1, to = (int)(j + w), one = 1;
  if (j > 0) /* the row exchanges, left of the panel */
    slaswp_(&left, h->f, &ld, &from, &to, h->ipiv, &one);
  return HONE_OK;
}

void hone_blocked_pivots(const hone_blocked *h, int64_t j, int64_t w,
                         float *out) {
  for (int64_t i = 0; i < w; i++)
    out[i] = fabsf(h->f[(j + i) * h->ld + j + i]);
  for (int64_t i = 0; h->spd && i < w; i++)
    out[i] *= out[i];
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

static double mean_pivot(const hone_blocked *h, int64_t j) {
  float pivot[HONE_PIVOT_SAMPLE];
  hone_blocked_pivots(h, j, HONE_PIVOT_SAMPLE, pivot);
  return hone_pivot_mean(pivot);
}

/* With 'done' columns factored: are the factors too poor to be refined with? */
static bool judge(const hone_blocked *h, int64_t done) {
  if (!hone_pivots_can_be_judged(h->n, done))
    return false;
  hone_pivot_fall fall = {.n = h->n,
                          .done = done,
                          .start = mean_pivot(h, 0),
                          .middle = mean_pivot(h, hone_pivot_middle(done)),
                          .end = mean_pivot(h, hone_pivot_end(done))};
  hone_blocked_pivots(h, 0, 1, &fall.first);
  return hone_pivots_hopeless(&fall);
}

/* ---- Growth ------------------------------------------------------------- */

typedef struct growth_job {
  const hone_blocked *h;
  float *max; /* n: of each column of U, NaN where one entry is */
} growth_job;

/* Largest magnitude of n floats; NaN where one is NaN or Inf. */
HONE_VECTOR static float largest(int64_t n, const float *u) {
  float max = 0.0F, bad = 0.0F;
#pragma omp simd reduction(max : max) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    float v = fabsf(u[i]);
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
    const float *f = h->f + j * h->ld;
    job->max[j] = h->small ? largest(h->n - j, f + j) : largest(j + 1, f);
  }
}

void hone_blocked_outcome(hone_blocked *h, bool complete,
                          hone_factor_info *info) {
  const int64_t n = h->n;
  info->flushed = h->flushed;
  if (h->spd && info->zero_pivot >= 0) { /* spotrf leaves the pivot there */
    const int64_t p = info->zero_pivot;
    info->rounding = fabsf(h->f[p * h->ld + p]) <= ROUNDING * h->col_max[p];
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
  for (int64_t j = 0, w;
       j < n && !(h->spd && info->zero_pivot >= 0) && !info->hopeless; j += w) {
    w = hone_blocked_width(h, j);
    const double done = (double)j / (double)n;
    if (hone_watch_stop(h->watch, "factor", done, 0, HONE_NAN))
      return HONE_CANCELLED;
    hone_blocked_load(h, a, scaling, j, w);
    if (j > 0)
      hone_blocked_update(h, j, w);
    int st = hone_blocked_panel(h, j, w, &info->zero_pivot);
    if (st != HONE_OK)
      return st;
    if (info->zero_pivot >= 0 && !h->spd)
      info->replaced = replace_zeros(h, j, w) || info->replaced;
    info->hopeless = judge(h, j + w);
  }
  info->replaced = info->replaced && !info->hopeless;
  const bool complete =
      (info->zero_pivot < 0 || info->replaced) && !info->hopeless;
  hone_blocked_outcome(h, complete, info);
  return HONE_OK;
}
