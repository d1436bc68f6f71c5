/* SPDX-License-Identifier: BSD-3-Clause */
/* The host as a device: the operations of device.h by OpenBLAS, in single
   precision. The panel is OpenBLAS's own LU of a tall block, so that with
   wide block columns nearly all the work runs at the speed of its GEMM; its
   Cholesky factorization takes all of the matrix at once. */
#include "base/rounding.h"
#include "cpu_sp/apply.h"
#include "cpu_sp/small_lu.h"
#include "gpu_sp/device.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* LAPACK, from OpenBLAS; no header of its own on Debian. */
void sgetrf_(const int *m, const int *n, float *a, const int *lda, int *ipiv,
             int *info);
void slaswp_(const int *n, float *a, const int *lda, const int *k1,
             const int *k2, const int *ipiv, const int *incx);
void sgetrs_(const char *trans, const int *n, const int *nrhs, const float *a,
             const int *lda, const int *ipiv, float *b, const int *ldb,
             int *info);
void spotrf_(const char *uplo, const int *n, float *a, const int *lda,
             int *info);
void spotrs_(const char *uplo, const int *n, const int *nrhs, const float *a,
             const int *lda, float *b, const int *ldb, int *info);

enum {
  SMALL_UP_TO = 512, /* our own LU of one block column: docs/performance.md */
  FIRST_PART = 6,    /* the first block column has n / 6 columns */
  FIRST_LEAST = 96,  /* but no fewer: what the judgement of lu.c needs */
  TASK_COLUMNS = 32, /* columns scanned by one task */
  APPLY_THREADS_FROM = 800,
  TRSV_COLUMNS = 3 /* up to so many right-hand sides go one by one: below
                      that TRSM's packing of L and U costs more */
};

/* A pivot of Cholesky's so far below its column of S, though negative, may be
   the rounding of one that is positive. */
static const float ROUNDING = 1e-2F;

typedef struct host {
  int64_t n, ld;
  float *f;       /* n x n, ld */
  float *col_max; /* 2 n: max |s_ij|, then max |u_ij| of each column */
  int *ipiv;      /* n, from 1, as LAPACK; from 0 where small */
  float *v;       /* n x v_columns: right-hand sides in single */
  float *work;    /* of hone_small_lu */
  bool small;     /* f holds the factors of hone_small_lu, of S^T */
  bool spd;
  int64_t v_columns;
  int64_t flushed; /* by load, since the first block column */
  hone_mem *mem;
  hone_pool *pool;
} host;

static bool host_probe(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return true;
}

/* Whole cache lines, and no power of two between columns: those fall into
   the same few cache sets. */
static int64_t leading(int64_t n) {
  int64_t ld = (n + 15) / 16 * 16;
  return ld % 256 == 0 ? ld + 16 : ld;
}

static int64_t host_bytes(int64_t n, int64_t k) {
  int64_t work = n <= SMALL_UP_TO ? hone_small_lu_work(n) : 0;
  return (leading(n) * n + 2 * n + n * k + work) * (int64_t)sizeof(float) +
         n * (int64_t)sizeof(int) + (int64_t)sizeof(host);
}

/* One block column to judge the pivots by, the rest at once: OpenBLAS's LU
   is at its best on large blocks. */
static int64_t host_block(void *self, const hone_scaling *scaling, int64_t j) {
  (void)scaling;
  const host *h = self;
  const int64_t n = h->n;
  if (n <= SMALL_UP_TO || j > 0 || h->spd)
    return n - j;
  return HONE_MAX((int64_t)FIRST_LEAST, (n / FIRST_PART + 31) / 32 * 32);
}

static void host_destroy(void *self, hone_mem *mem) {
  host *h = self;
  if (h == NULL)
    return;
  hone_mem_put(mem, h->work);
  hone_mem_put(mem, h->v);
  hone_mem_put(mem, h->ipiv);
  hone_mem_put(mem, h->col_max);
  hone_mem_put(mem, h->f);
  hone_mem_put(mem, h);
}

static int host_create(void **self, const hone_engine_config *config) {
  const int64_t n = config->n;
  host *h = hone_mem_get(config->mem, sizeof *h);
  *self = h;
  if (h == NULL)
    return HONE_NO_MEMORY;
  const bool work = n <= SMALL_UP_TO && !config->spd;
  *h = (host){.n = n,
              .ld = leading(n),
              .spd = config->spd,
              .mem = config->mem,
              .pool = config->pool};
  h->f = hone_mem_get(h->mem, (size_t)(h->ld * n) * sizeof *h->f);
  h->col_max = hone_mem_get(h->mem, (size_t)(2 * n) * sizeof *h->col_max);
  h->ipiv = hone_mem_get(h->mem, (size_t)n * sizeof *h->ipiv);
  if (work)
    h->work =
        hone_mem_get(h->mem, (size_t)hone_small_lu_work(n) * sizeof *h->work);
  if (h->f && h->col_max && h->ipiv && (h->work || !work))
    return HONE_OK;
  host_destroy(h, h->mem);
  *self = NULL;
  return HONE_NO_MEMORY;
}

static int host_load(void *self, const hone_matrix *a,
                     const hone_scaling *scaling, int64_t j, int64_t w) {
  host *h = self;
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
  return HONE_OK;
}

static int panel_spd(host *h, int64_t j, int64_t w, int64_t *zero_pivot) {
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

static int host_panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  host *h = self;
  if (h->spd)
    return panel_spd(h, j, w, zero_pivot);
  int m = (int)(h->n - j), width = (int)w, ld = (int)h->ld, info = 0;
  h->small = w == h->n && h->n <= SMALL_UP_TO;
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
  if (j > 0) /* the row exchanges on the panel's left */
    slaswp_(&left, h->f, &ld, &from, &to, h->ipiv, &one);
  return HONE_OK;
}

static int update_spd(host *h, int64_t j, int64_t w) {
  const int ld = (int)h->ld;
  float *u = h->f + j * h->ld;
  cblas_strsm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit,
              (int)j, (int)w, 1.0F, h->f, ld, u, ld);
  cblas_ssyrk(CblasColMajor, CblasUpper, CblasTrans, (int)w, (int)j, -1.0F, u,
              ld, 1.0F, u + j, ld);
  return HONE_OK;
}

/* Load has made the row exchanges. */
static int host_update(void *self, int64_t j, int64_t w) {
  host *h = self;
  if (h->spd)
    return update_spd(h, j, w);
  const int ld = (int)h->ld;
  const float *l = h->f + j;
  float *u = h->f + j * h->ld;
  cblas_strsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit,
              (int)j, (int)w, 1.0F, h->f, ld, u, ld);
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)(h->n - j),
              (int)w, (int)j, -1.0F, l, ld, u, ld, 1.0F, u + j, ld);
  return HONE_OK;
}

static int host_finish(void *self) {
  (void)self;
  return HONE_OK;
}

static int host_pivots(void *self, int64_t j, int64_t w, float *out) {
  const host *h = self;
  for (int64_t i = 0; i < w; i++)
    out[i] = fabsf(h->f[(j + i) * h->ld + j + i]);
  for (int64_t i = 0; h->spd && i < w; i++)
    out[i] *= out[i];
  return HONE_OK;
}

typedef struct growth_job {
  const host *h;
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
  const host *h = job->h;
  int64_t to = HONE_MIN((task + 1) * TASK_COLUMNS, h->n);
  for (int64_t j = task * TASK_COLUMNS; j < to; j++) {
    const float *f = h->f + j * h->ld;
    job->max[j] = h->small ? largest(h->n - j, f + j) : largest(j + 1, f);
  }
}

static int host_outcome(void *self, bool complete, hone_factor_info *info) {
  host *h = self;
  const int64_t n = h->n;
  info->flushed = h->flushed;
  if (h->spd && info->zero_pivot >= 0) { /* spotrf leaves the pivot there */
    const int64_t p = info->zero_pivot;
    info->rounding = fabsf(h->f[p * h->ld + p]) <= ROUNDING * h->col_max[p];
  }
  if (!complete)
    return HONE_OK;
  float *max = h->col_max + n;
  growth_job job = {h, max};
  hone_pool_run(n < 400 ? NULL : h->pool, (n + TASK_COLUMNS - 1) / TASK_COLUMNS,
                growth_columns, &job);
  double u = 0.0, s = 0.0;
  for (int64_t j = 0; j < n; j++) {
    u = (double)max[j] <= u ? u : (double)max[j]; /* takes NaN, */
    if (isnan(u))                                 /* and keeps it */
      break;
    s = HONE_MAX(s, (double)h->col_max[j]);
  }
  info->growth = (h->spd ? u * u : u) / s;
  return HONE_OK;
}

/* Room for k right-hand sides in single precision. */
static int reserve(host *h, int64_t k) {
  if (k <= h->v_columns)
    return HONE_OK;
  hone_mem_put(h->mem, h->v);
  h->v_columns = 0;
  h->v = hone_mem_get(h->mem, (size_t)(h->n * k) * sizeof *h->v);
  if (h->v == NULL)
    return HONE_NO_MEMORY;
  h->v_columns = k;
  return HONE_OK;
}

static int host_solve(void *self, bool trans, int64_t k, double *v,
                      int64_t ldv) {
  host *h = self;
  int n = (int)h->n, ld = (int)h->ld, info = 0;
  int st = reserve(h, k);
  if (st != HONE_OK)
    return st;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < h->n; i++)
      h->v[c * h->n + i] = (float)v[c * ldv + i];
  const int together = k <= TRSV_COLUMNS ? 1 : (int)k;
  for (int64_t c = 0; c < k && h->small; c++)
    hone_small_solve(h->n, h->f, h->ld, h->ipiv, trans, h->v + c * h->n);
  for (int64_t c = 0; c < k && info == 0 && !h->small; c += together)
    if (h->spd)
      spotrs_("U", &n, &together, h->f, &ld, h->v + c * h->n, &n, &info);
    else
      sgetrs_(trans ? "T" : "N", &n, &together, h->f, &ld, h->ipiv,
              h->v + c * h->n, &n, &info);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < h->n; i++)
      v[c * ldv + i] = (double)h->v[c * h->n + i];
  return info == 0 ? HONE_OK : HONE_INTERNAL;
}

static int host_apply(void *self, bool trans, int64_t k, double *v,
                      int64_t ldv) {
  const host *h = self;
  const hone_factors factors = {.form = h->spd     ? HONE_FORM_CHOLESKY
                                        : h->small ? HONE_FORM_TRANSPOSED
                                                   : HONE_FORM_LU,
                                .n = h->n,
                                .ld = h->ld,
                                .f = h->f,
                                .pivot = h->ipiv,
                                .base = h->small ? 0 : 1};
  hone_apply(h->n < APPLY_THREADS_FROM ? NULL : h->pool, &factors, trans, k, v,
             ldv);
  return HONE_OK;
}

const hone_device hone_device_host = {.name = "CPU",
                                      .probe = host_probe,
                                      .create = host_create,
                                      .destroy = host_destroy,
                                      .bytes = host_bytes,
                                      .block = host_block,
                                      .load = host_load,
                                      .update = host_update,
                                      .panel = host_panel,
                                      .finish = host_finish,
                                      .pivots = host_pivots,
                                      .outcome = host_outcome,
                                      .solve = host_solve,
                                      .apply = host_apply};
