/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision engines of the host, LU and Cholesky: creation,
   solutions with the factors, and the two tables. The factorization itself is
   in blocked.c. */
#include "cpu_factor/apply.h"
#include "cpu_factor/factor.h"
#include "cpu_sp/blocked.h"
#include "cpu_sp/small_lu.h"
#include "cpu_sp/substitution.h"

#include <math.h>

/* Orders from which threads share a solution in double arithmetic, and from
   which they take groups of right-hand sides each in single precision. */
enum { APPLY_THREADS_FROM = 800, GROUPS_FROM = 192 };
enum { SINGLE_BITS = 8 * (int)sizeof(hone_single) };

static bool probe(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return true;
}

static bool is_definite(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

/* ---- Memory ------------------------------------------------------------- */

/* An odd number of cache lines, so that the rows of columns that are read
   together fall into different cache sets. */
static int64_t leading_dimension(int64_t n) {
  const int64_t lines = (n + 15) / 16;
  return (lines % 2 == 0 ? lines + 1 : lines) * 16;
}

#ifdef HONE_COMPLEX

/* Small orders are factored like others. */
static int64_t small_work(int64_t n, bool spd) {
  (void)n;
  (void)spd;
  return 0;
}

#else

static int64_t small_work(int64_t n, bool spd) {
  return n <= HONE_SMALL_UP_TO && !spd ? hone_small_lu_work(n) : 0;
}

#endif

static int64_t floats_of_work(int64_t n, int64_t k, bool spd) {
  return hone_substitution_work(n, k) + small_work(n, spd);
}

static int64_t bytes(int64_t n, int64_t k) {
  return leading_dimension(n) * n * (int64_t)sizeof(hone_single) +
         (2 * n + floats_of_work(n, k, false)) * (int64_t)sizeof(float) +
         n * (int64_t)sizeof(int) +
         hone_factor_work(hone_factor_kernels_of(SINGLE_BITS), n) +
         (int64_t)sizeof(hone_blocked);
}

static void destroy(void *self, hone_mem *mem) {
  hone_blocked *h = self;
  if (h == NULL)
    return;
  hone_mem_put(mem, h->work);
  hone_mem_put(mem, h->small_work);
  hone_mem_put(mem, h->v);
  hone_mem_put(mem, h->ipiv);
  hone_mem_put(mem, h->col_max);
  hone_mem_put(mem, h->f);
  hone_mem_put(mem, h);
}

static int create(bool spd, void **self, const hone_engine_config *config) {
  const int64_t n = config->n, ld = leading_dimension(n);
  const int64_t small = small_work(n, spd);
  hone_blocked *h = hone_mem_get(config->mem, sizeof *h);
  *self = NULL;
  if (h == NULL)
    return HONE_NO_MEMORY;
  *h = (hone_blocked){.n = n,
                      .ld = ld,
                      .block = config->block,
                      .spd = spd,
                      .mem = config->mem,
                      .pool = config->pool,
                      .watch = config->watch};
  h->f = hone_mem_get(h->mem, (size_t)(ld * n) * sizeof *h->f);
  h->col_max = hone_mem_get(h->mem, (size_t)(2 * n) * sizeof *h->col_max);
  h->ipiv = hone_mem_get(h->mem, (size_t)n * sizeof *h->ipiv);
  if (small > 0)
    h->small_work = hone_mem_get(h->mem, (size_t)small * sizeof(float));
  h->work = hone_mem_get(
      h->mem, (size_t)hone_factor_work(hone_factor_kernels_of(SINGLE_BITS), n));
  if (h->f && h->col_max && h->ipiv && h->work &&
      (h->small_work || small == 0)) {
    *self = h;
    return HONE_OK;
  }
  destroy(h, h->mem);
  return HONE_NO_MEMORY;
}

static int create_lu(void **self, const hone_engine_config *config) {
  return create(false, self, config);
}

static int create_cholesky(void **self, const hone_engine_config *config) {
  return create(true, self, config);
}

/* ---- Solutions ---------------------------------------------------------- */

static hone_factors factors_of(const hone_blocked *h) {
  return (hone_factors){.form = h->spd     ? HONE_FORM_CHOLESKY
                                : h->small ? HONE_FORM_TRANSPOSED
                                           : HONE_FORM_LU,
                        .n = h->n,
                        .ld = h->ld,
                        .f = h->f,
                        .pivot = h->ipiv,
                        .base = h->small ? 0 : 1};
}

static int apply(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const hone_blocked *h = self;
  const hone_factors factors = factors_of(h);
  hone_apply_32(h->n < APPLY_THREADS_FROM ? NULL : h->pool, &factors, trans, k,
                v, ldv);
  return HONE_OK;
}

/* Room for k right-hand sides in single precision. */
static int reserve(hone_blocked *h, int64_t k) {
  const int64_t size = hone_substitution_work(h->n, k);
  if (size <= h->v_size)
    return HONE_OK;
  float *const old = h->v; /* a child of a fork at this moment has none */
  h->v = NULL;
  h->v_size = 0;
  hone_mem_put(h->mem, old);
  h->v = hone_mem_get(h->mem, (size_t)size * sizeof *h->v);
  if (h->v == NULL)
    return HONE_NO_MEMORY;
  h->v_size = size;
  return HONE_OK;
}

#ifdef HONE_COMPLEX

static bool solve_small(hone_blocked *h, bool trans, int64_t k, hone_entry *v) {
  (void)h;
  (void)trans;
  (void)k;
  (void)v;
  return false;
}

#else

/* v = inv(S) v, or inv(S^T) v, for one right-hand side and small factors;
   returns false if that is not what is asked for. */
static bool solve_small(hone_blocked *h, bool trans, int64_t k, double *v) {
  if (!h->small || k > 1)
    return false;
  for (int64_t i = 0; i < h->n; i++)
    h->v[i] = (float)v[i];
  hone_small_solve(h->n, h->f, h->ld, h->ipiv, trans, h->v);
  for (int64_t i = 0; i < h->n; i++)
    v[i] = (double)h->v[i];
  return true;
}

#endif

static hone_pool *pool_for(const hone_blocked *h, int64_t k) {
  const bool groups = h->n >= GROUPS_FROM && hone_substitution_groups(k) > 1;
  return groups || h->n >= HONE_SHARED_FROM ? h->pool : NULL;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  hone_blocked *h = self;
  const hone_factors factors = factors_of(h);
  int st = reserve(h, k);
  if (st != HONE_OK)
    return st;
  if (!solve_small(h, trans, k, v))
    hone_substitute(pool_for(h, k), &factors, trans, k, v, ldv, h->v);
  return HONE_OK;
}

/* ---- The smallest pivot ------------------------------------------------- */

/* Returns the row that exchanges brought to place k, by undoing them. */
static int64_t origin(const hone_blocked *h, int64_t k) {
  const int64_t base = h->small ? 0 : 1;
  for (int64_t j = k; j >= 0; j--) {
    const int64_t other = h->ipiv[j] - base;
    k = k == j ? other : (k == other ? j : k);
  }
  return k;
}

/* Pivots of zero have been replaced already. */
static void smallest_pivot(void *self, bool replace_zeros, int64_t *row,
                           int64_t *col) {
  const hone_blocked *h = self;
  int64_t at = 0;
  (void)replace_zeros;
  for (int64_t k = 1; k < h->n; k++)
    if (hone_abs_single(h->f[k * (h->ld + 1)]) <
        hone_abs_single(h->f[at * (h->ld + 1)]))
      at = k;
  *row = h->small ? at : origin(h, at); /* small: S^T was factored */
  *col = h->small ? origin(h, at) : at;
}

/* ---- The engines -------------------------------------------------------- */

const hone_engine hone_engine_single = {.name = "single LU",
                                        .place = "CPU",
                                        .precision = 32,
                                        .probe = probe,
                                        .create = create_lu,
                                        .factor = hone_blocked_factor,
                                        .solve = solve,
                                        .apply = apply,
                                        .destroy = destroy,
                                        .bytes = bytes,
                                        .smallest_pivot = smallest_pivot};

const hone_engine hone_engine_cholesky = {.name = "single Cholesky",
                                          .place = "CPU",
                                          .precision = 32,
                                          .symmetric = true,
                                          .applies = is_definite,
                                          .probe = probe,
                                          .create = create_cholesky,
                                          .factor = hone_blocked_factor,
                                          .solve = solve,
                                          .apply = apply,
                                          .destroy = destroy,
                                          .bytes = bytes};
