/* SPDX-License-Identifier: BSD-3-Clause */
/* The two engines for full matrices in double precision: LU with partial
   pivoting of the scaled matrix, and Cholesky factorization, which takes half
   the work. They serve where single precision does not suffice, and for small
   matrices. Read base/engine.h first. */
#include "base/dense.h"
#include "base/engine.h"
#include "cpu_dp/pivots.h"
#include "cpu_factor/apply.h"
#include "cpu_factor/factor.h"

#include <math.h>

enum {
  TASKS_A_THREAD = 2,
  ENTRY_BITS = 8 * (int)sizeof(hone_entry),
  SOLVE_THREADS_FROM = 600 /* orders from which threads share a solution */
};

typedef struct engine_dp {
  int64_t n, ld;
  hone_entry *f; /* n x n, ld: S, overwritten by its factors */
  double *max;   /* 2 n: max |s_ij| of each column, then max |u_ij| (|l_ij|) */
  int *ipiv;
  void *work; /* of hone_factor_columns */
  bool spd;   /* Cholesky: S = L L^T; only the lower triangle is used */
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

/* An odd number of cache lines, so that the rows of columns that are read
   together fall into different cache sets. */
static int64_t leading_dimension(int64_t n) {
  const int64_t lines = (n + 7) / 8;
  return (lines % 2 == 0 ? lines + 1 : lines) * 8;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return leading_dimension(n) * n * (int64_t)sizeof(hone_entry) +
         2 * n * (int64_t)sizeof(double) + n * (int64_t)sizeof(int) +
         hone_factor_work(ENTRY_BITS, n) + (int64_t)sizeof(engine_dp);
}

static void destroy(void *self, hone_mem *mem) {
  engine_dp *e = self;
  if (e == NULL)
    return;
  hone_mem_put(mem, e->work);
  hone_mem_put(mem, e->ipiv);
  hone_mem_put(mem, e->max);
  hone_mem_put(mem, e->f);
  hone_mem_put(mem, e);
}

static int create_as(bool spd, void **self, const hone_engine_config *config) {
  const int64_t n = config->n;
  engine_dp *e = hone_mem_get(config->mem, sizeof *e);
  *self = e;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (engine_dp){.n = n,
                   .ld = leading_dimension(n),
                   .spd = spd,
                   .pool = config->pool,
                   .watch = config->watch};
  e->f = hone_mem_get(config->mem, (size_t)(e->ld * n) * sizeof *e->f);
  e->max = hone_mem_get(config->mem, (size_t)(2 * n) * sizeof *e->max);
  e->ipiv = hone_mem_get(config->mem, (size_t)n * sizeof *e->ipiv);
  e->work = hone_mem_get(config->mem, (size_t)hone_factor_work(ENTRY_BITS, n));
  if (e->f && e->max && e->ipiv && e->work)
    return HONE_OK;
  destroy(e, config->mem);
  *self = NULL;
  return HONE_NO_MEMORY;
}

static int create(void **self, const hone_engine_config *config) {
  return create_as(false, self, config);
}

static int create_spd(void **self, const hone_engine_config *config) {
  return create_as(true, self, config);
}

static bool applies_spd(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

/* Returns the largest magnitude of n numbers, or NaN if one is NaN or Inf. */
HONE_VECTOR static double largest(int64_t n, const hone_entry *u) {
  double max = 0.0, bad = 0.0;
#pragma omp simd reduction(max : max) reduction(+ : bad)
  for (int64_t i = 0; i < n; i++) {
    double v = hone_abs(u[i]);
    max = v > max ? v : max;
    bad += v * 0.0;
  }
  return max + bad;
}

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
      f[i] = row ? hone_times(c, hone_times(row[i], a[i])) : a[i];
    e->max[j] = largest(e->n - first, f + first);
  }
}

static void growth_columns(void *ctx, int64_t task) {
  engine_dp *e = ctx;
  int64_t to = HONE_MIN((task + 1) * e->columns, e->n);
  for (int64_t j = task * e->columns; j < to; j++) {
    const hone_entry *f = e->f + j * e->ld;
    e->max[e->n + j] = e->spd ? largest(e->n - j, f + j) : largest(j + 1, f);
  }
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  engine_dp *e = self;
  *info = (hone_factor_info){.growth = HONE_NAN, .zero_pivot = -1};
  hone_pool *pool = e->n < HONE_THREADS_FROM ? NULL : e->pool;
  /* There are few, wide tasks: when two threads touch a fresh huge page at the
     same time, both clear it. */
  int64_t tasks = (int64_t)TASKS_A_THREAD * hone_pool_threads(pool);
  e->columns = e->n / tasks + 1;
  tasks = (e->n + e->columns - 1) / e->columns;
  e->a = hone_dense_of(a);
  e->scaling = scaling;
  hone_pool_run(pool, tasks, load_columns, e);
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
  return HONE_OK;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const engine_dp *e = self;
  const hone_factors factors = {.form =
                                    e->spd ? HONE_FORM_CHOLESKY : HONE_FORM_LU,
                                .n = e->n,
                                .ld = e->ld,
                                .f = e->f,
                                .pivot = e->ipiv,
                                .base = 1};
  hone_apply_64(e->n < SOLVE_THREADS_FROM ? NULL : e->pool, &factors, trans, k,
                v, ldv);
  return HONE_OK;
}

static void smallest_pivot(void *self, bool replace_zeros, int64_t *row,
                           int64_t *col) {
  const engine_dp *e = self;
  hone_pivot_smallest(e->n, e->f, e->ld + 1, e->ipiv, replace_zeros, row, col);
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
