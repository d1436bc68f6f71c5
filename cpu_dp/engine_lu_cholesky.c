/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for full matrices in double precision: LU with partial pivoting
   of the scaled matrix, and Cholesky, which takes half the work. They serve
   where single precision does not suffice, and for small matrices, which have
   kernels of their own (small_kernels.c). LU of the transpose takes its pivots
   from rows of S in the place of columns, and so serves many a matrix whose LU
   factors grow beyond use. Read base/engine.h first. */
#include "base/dense.h"
#include "base/engine.h"
#include "base/isa.h"
#include "cpu_dp/pivots.h"
#include "cpu_dp/small_kernels.h"
#include "cpu_factor/apply.h"
#include "cpu_factor/factor.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  TASKS_A_THREAD = 2,
  ENTRY_BITS = 8 * (int)sizeof(hone_entry),
  SOLVE_THREADS_FROM = 600, /* orders from which threads share a solution */
  TILE = 32 /* rows of S^T that are loaded at once, from as many columns of A */
};

typedef struct engine_dp {
  int64_t n, ld;
  hone_entry *f; /* n x n, ld: S, overwritten by its factors */
  double *max;   /* 2 n: max |s_ij| of each column, then max |u_ij| (|l_ij|) */
  int *ipiv;
  void *work;      /* of hone_factor_columns */
  bool spd;        /* Cholesky: S = L L^T of the lower triangle alone; if small,
                      U^T U of the upper one */
  bool transposed; /* P S^T = L U */
  const hone_small_kernels *small; /* NULL: the matrix is not small */
  hone_pool *pool;
  hone_watch *watch;
  const hone_dense *a; /* set during factor only */
  int64_t columns;     /* columns of a task */
  const hone_scaling *scaling;
} engine_dp;

static bool probe(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return true;
}

static const hone_small_kernels *small_kernels(int64_t n) {
#ifdef HONE_COMPLEX
  (void)n;
  return NULL;
#else
  if (n > HONE_SMALL_DOUBLE_UP_TO)
    return NULL;
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_small_avx512 : &hone_small_avx2;
#endif
  return &hone_small_base;
#endif
}

/* Bytes before f, which is aligned as the whole is. */
enum { HEAD = (sizeof(engine_dp) + 63) / 64 * 64 };

/* An odd number of cache lines, so that the rows of columns that are read
   together fall into different cache sets. */
static int64_t leading_dimension(int64_t n) {
  const int64_t lines = (n + 7) / 8;
  return (lines % 2 == 0 ? lines + 1 : lines) * 8;
}

/* With the columns of zeros that the kernels for small matrices need. */
static int64_t columns_held(int64_t n) {
  const int64_t block = HONE_SMALL_BLOCK;
  return n <= HONE_SMALL_DOUBLE_UP_TO ? (n + block - 1) / block * block : n;
}

static int64_t work_of(int64_t n) {
  return n <= HONE_SMALL_DOUBLE_UP_TO
             ? 0
             : hone_factor_work(hone_factor_kernels_of(ENTRY_BITS), n);
}

static int64_t bytes_with(int64_t n, int64_t work) {
  return leading_dimension(n) * columns_held(n) * (int64_t)sizeof(hone_entry) +
         2 * n * (int64_t)sizeof(double) + (n + 1) * (int64_t)sizeof(int) +
         work + HEAD;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return bytes_with(n, work_of(n));
}

static int64_t bytes_transposed(int64_t n, int64_t k) {
  (void)k;
  return bytes_with(n, hone_factor_work(hone_factor_kernels_of(ENTRY_BITS), n));
}

static void destroy(void *self, hone_mem *mem) { hone_mem_put(mem, self); }

/* The engine and its arrays are one piece of memory. */
static int create_as(bool spd, int64_t size, void **self,
                     const hone_engine_config *config) {
  const int64_t n = config->n, ld = leading_dimension(n);
  char *memory = hone_mem_get(config->mem, (size_t)size);
  engine_dp *e = (engine_dp *)memory;
  *self = e;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (engine_dp){.n = n,
                   .ld = ld,
                   .spd = spd,
                   .small = small_kernels(n),
                   .pool = config->pool,
                   .watch = config->watch};
  e->f = (hone_entry *)(memory + HEAD);
  e->max = (double *)(e->f + ld * columns_held(n));
  e->ipiv = (int *)(e->max + 2 * n);
  e->work = e->ipiv + (n + 1) / 2 * 2;
  return HONE_OK;
}

static int create(void **self, const hone_engine_config *config) {
  return create_as(false, bytes(config->n, 1), self, config);
}

/* The kernels for small matrices are not needed here. */
static int create_transposed(void **self, const hone_engine_config *config) {
  int st = create_as(false, bytes_transposed(config->n, 1), self, config);
  if (st != HONE_OK)
    return st;
  engine_dp *e = *self;
  e->transposed = true;
  e->small = NULL;
  return HONE_OK;
}

static int create_spd(void **self, const hone_engine_config *config) {
  return create_as(true, bytes(config->n, 1), self, config);
}

static bool applies_spd(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

/* Returns the largest magnitude of n numbers, or NaN if one is NaN or Inf. */
HONE_VECTOR static double largest_of_any(int64_t n, const hone_entry *u) {
  double max = 0.0, bad = 0.0;
#pragma omp simd reduction(max : max) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    double v = hone_abs(u[i]);
    max = v > max ? v : max;
    bad += v * 0.0;
  }
  return max + bad;
}

#ifdef HONE_COMPLEX

/* Does so by one square root, unless squares leave the range of double. */
HONE_VECTOR static double largest(int64_t n, const hone_entry *u) {
  double max = 0.0, bad = 0.0;
#pragma omp simd reduction(max : max) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    double v =
        hone_real(u[i]) * hone_real(u[i]) + hone_imag(u[i]) * hone_imag(u[i]);
    max = v > max ? v : max;
    bad += v * 0.0;
  }
  return max >= 0x1p-900 && max + bad <= DBL_MAX ? sqrt(max)
                                                 : largest_of_any(n, u);
}

#else

static double largest(int64_t n, const hone_entry *u) {
  return largest_of_any(n, u);
}

#endif

static void load_columns(void *ctx, int64_t task) {
  engine_dp *e = ctx;
  const double *row = e->scaling->used ? e->scaling->row : NULL;
  int64_t to = HONE_MIN((task + 1) * e->columns, e->n);
  for (int64_t j = task * e->columns; j < to; j++) {
    const hone_entry *restrict a = e->a->a + j * e->a->lda;
    hone_entry *restrict f = e->f + j * e->ld;
    const double c = e->scaling->col[j];
    const int64_t first = e->spd ? j : 0;
    for (int64_t i = first; i < e->n; i++)
      f[i] = row ? hone_scaled_entry(row[i], c, a[i]) : a[i];
    e->max[j] = largest(e->n - first, f + first);
  }
}

/* Loads columns of S^T, which are rows of S. */
static void load_transposed(void *ctx, int64_t task) {
  engine_dp *e = ctx;
  const double *row = e->scaling->used ? e->scaling->row : NULL;
  const int64_t from = task * e->columns, n = e->n;
  const int64_t to = HONE_MIN(from + e->columns, n);
  for (int64_t at = 0; at < n; at += TILE)
    for (int64_t j = from; j < to; j++)
      for (int64_t i = at; i < HONE_MIN(at + TILE, n); i++) {
        const hone_entry a = e->a->a[j + i * e->a->lda];
        e->f[i + j * e->ld] =
            row ? hone_scaled_entry(row[j], e->scaling->col[i], a) : a;
      }
  for (int64_t j = from; j < to; j++)
    e->max[j] = largest(n, e->f + j * e->ld);
}

static void growth_columns(void *ctx, int64_t task) {
  engine_dp *e = ctx;
  int64_t to = HONE_MIN((task + 1) * e->columns, e->n);
  for (int64_t j = task * e->columns; j < to; j++) {
    const hone_entry *f = e->f + j * e->ld;
    e->max[e->n + j] = e->spd ? largest(e->n - j, f + j) : largest(j + 1, f);
  }
}

#ifndef HONE_COMPLEX

/* Loads a small matrix; returns the largest magnitude. */
static double load_small(engine_dp *e) {
  const double *row = e->scaling->row, *col = e->scaling->col;
  const double max =
      e->small->load(e->n, e->a->a, e->a->lda, e->spd, e->f, e->ld);
  if (!e->scaling->used)
    return max;
  for (int64_t j = 0; j < e->n; j++)
    for (int64_t i = 0; i < (e->spd ? j + 1 : e->n); i++)
      e->f[i + j * e->ld] =
          hone_scaled_entry(row[i], col[j], e->f[i + j * e->ld]);
  return e->small->load(e->n, e->f, e->ld, e->spd, e->f, e->ld);
}

static int factor_small(engine_dp *e, hone_factor_info *info) {
  if (hone_watch_stop(e->watch, "factor in double", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  const double s = load_small(e);
  double u;
  info->zero_pivot = e->spd ? e->small->cholesky(e->n, e->f, e->ld, &u)
                            : e->small->lu(e->n, e->f, e->ld, e->ipiv, &u);
  info->growth = (e->spd ? u * u : u) / s;
  return HONE_OK;
}

#endif

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  engine_dp *e = self;
  *info = (hone_factor_info){.growth = HONE_NAN, .zero_pivot = -1};
  e->a = hone_dense_of(a);
  e->scaling = scaling;
#ifndef HONE_COMPLEX
  if (e->small != NULL)
    return factor_small(e, info);
#endif
  hone_pool *pool = e->n < HONE_THREADS_FROM ? NULL : e->pool;
  /* There are few, wide tasks: when two threads touch a fresh huge page at the
     same time, both clear it. */
  int64_t tasks = (int64_t)TASKS_A_THREAD * hone_pool_threads(pool);
  e->columns = e->n / tasks + 1;
  tasks = (e->n + e->columns - 1) / e->columns;
  hone_pool_run(pool, tasks, e->transposed ? load_transposed : load_columns, e);
  const hone_factoring job = {.kernels = hone_factor_kernels_of(ENTRY_BITS),
                              .n = e->n,
                              .ldf = e->ld,
                              .spd = e->spd,
                              .f = e->f,
                              .pivot = e->ipiv,
                              .work = e->work,
                              .pool = pool,
                              .watch = e->watch,
                              .phase = "factor in double"};
  const int st = hone_factor_columns(&job, 0, e->n, &info->zero_pivot);
  if (st != HONE_OK)
    return st;
  hone_pool_run(pool, tasks, growth_columns, e);
  double s = 0.0, u = 0.0;
  for (int64_t j = 0; j < e->n; j++) {
    s = e->max[j] <= s ? s : e->max[j];
    u = e->max[e->n + j] <= u ? u : e->max[e->n + j];
    if (isnan(u))
      break;
  }
  info->growth = (e->spd ? u * u : u) / s;
  if (e->transposed && info->zero_pivot >= 0) /* a row of S^T, a column of S */
    info->zero_pivot = hone_pivot_row(e->n, e->ipiv, info->zero_pivot);
  return HONE_OK;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const engine_dp *e = self;
#ifndef HONE_COMPLEX
  if (e->small != NULL) {
    e->small->solve(e->n, e->f, e->ld, e->spd ? NULL : e->ipiv, trans, k, v,
                    ldv);
    return HONE_OK;
  }
#endif
  const hone_factors factors = {.form =
                                    e->spd ? HONE_FORM_CHOLESKY : HONE_FORM_LU,
                                .n = e->n,
                                .ld = e->ld,
                                .f = e->f,
                                .pivot = e->ipiv,
                                .base = 1};
  hone_apply_64(e->n < SOLVE_THREADS_FROM ? NULL : e->pool, &factors,
                trans != e->transposed, k, v, ldv);
  return HONE_OK;
}

static void smallest_pivot(void *self, bool replace_zeros, int64_t *row,
                           int64_t *col) {
  const engine_dp *e = self;
  hone_pivot_smallest(e->n, e->f, e->ld + 1, e->ipiv, replace_zeros,
                      e->transposed ? col : row, e->transposed ? row : col);
}

const hone_engine hone_engine_double = {.name = "double LU",
                                        .place = "CPU",
                                        .precision = 64,
                                        .probe = probe,
                                        .create = create,
                                        .factor = factor,
                                        .solve = solve,
                                        .destroy = destroy,
                                        .bytes = bytes,
                                        .smallest_pivot = smallest_pivot};

const hone_engine hone_engine_double_transposed = {
    .name = "double LU of the transpose",
    .place = "CPU",
    .precision = 64,
    .other_pivots = true,
    .probe = probe,
    .create = create_transposed,
    .factor = factor,
    .solve = solve,
    .destroy = destroy,
    .bytes = bytes_transposed,
    .smallest_pivot = smallest_pivot};

const hone_engine hone_engine_cholesky_double = {.name = "double Cholesky",
                                                 .place = "CPU",
                                                 .precision = 64,
                                                 .symmetric = true,
                                                 .applies = applies_spd,
                                                 .probe = probe,
                                                 .create = create_spd,
                                                 .factor = factor,
                                                 .solve = solve,
                                                 .destroy = destroy,
                                                 .bytes = bytes};
