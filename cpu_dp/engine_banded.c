/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine for banded matrices, in double precision: band LU with partial
   pivoting of a packed copy of the scaled band. Read base/engine.h and
   band_lu.h first. */
#include "base/engine.h"
#include "cpu_dp/band_lu.h"
#include "cpu_dp/pivots.h"
#include "cpu_dp/structure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The band LU is taken for at most n / SHARE diagonals beside the main one
   (docs/numerics.md). */
enum { SHARE = 5 };

typedef struct engine_band {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  const hone_structure *structure;
  char text[96];
  int64_t room;   /* entries that ab has room for */
  hone_entry *ab; /* of s: the factors overwrite S */
  int *ipiv;
  hone_band s;
} engine_band;

bool hone_band_pays(int64_t lower, int64_t upper, int64_t n) {
  return lower + upper <= n / SHARE;
}

static bool applies(const hone_structure *s, int64_t n) {
  return hone_band_pays(s->lower, s->upper, n);
}

static bool probe(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return true;
}

/* The bytes are those of the widest band that pays. */
static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return hone_band_of(n, n / SHARE, 0).ld * n * (int64_t)sizeof(hone_entry) +
         n * (int64_t)sizeof(int) + (int64_t)sizeof(engine_band);
}

static void destroy(void *self, hone_mem *mem) {
  engine_band *e = self;
  if (e == NULL)
    return;
  hone_mem_put(mem, e->ipiv);
  hone_mem_put(mem, e->ab);
  hone_mem_put(mem, e);
}

static int create(void **self, const hone_engine_config *config) {
  engine_band *e = hone_mem_get(config->mem, sizeof *e);
  *self = e;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (engine_band){.n = config->n,
                     .mem = config->mem,
                     .pool = config->pool,
                     .watch = config->watch,
                     .structure = config->structure};
  e->ipiv = hone_mem_get(config->mem, (size_t)e->n * sizeof *e->ipiv);
  if (e->ipiv != NULL)
    return HONE_OK;
  destroy(e, config->mem);
  *self = NULL;
  return HONE_NO_MEMORY;
}

/* Makes room for the band of the present structure. */
static int reserve(engine_band *e) {
  const int64_t lower = e->structure->lower, upper = e->structure->upper;
  snprintf(e->text, sizeof e->text, "%lld below, %lld above", (long long)lower,
           (long long)upper);
  e->s = hone_band_of(e->n, lower, upper);
  const int64_t wanted = e->s.ld * e->n;
  if (wanted > e->room) {
    hone_mem_put(e->mem, e->ab);
    e->room = 0;
    e->ab = hone_mem_get(e->mem, (size_t)wanted * sizeof *e->ab);
    if (e->ab == NULL)
      return HONE_NO_MEMORY;
    e->room = wanted;
  }
  e->s.ab = e->ab;
  e->s.ipiv = e->ipiv;
  return HONE_OK;
}

/* Returns the larger of max and |v|, or NaN if one of them is NaN. */
static double larger(double max, hone_entry v) {
  return hone_abs(v) <= max || isnan(max) ? max : hone_abs(v);
}

/* Packs the band of S, with zeros around it. Returns its largest magnitude. */
static double load(engine_band *e, const hone_dense *a,
                   const hone_scaling *scaling) {
  double max = 0.0;
  memset(e->ab, 0, (size_t)(e->s.ld * e->n) * sizeof *e->ab);
  for (int64_t j = 0; j < e->n; j++) {
    const int64_t from = HONE_MAX(j - e->s.upper, (int64_t)0);
    const int64_t to = HONE_MIN(j + e->s.lower + 1, e->n);
    hone_entry *ab = e->ab + j * e->s.ld + e->s.diagonal - j;
    for (int64_t i = from; i < to; i++) {
      const hone_entry v = a->a[i + j * a->lda];
      ab[i] = scaling->used
                  ? hone_scaled_entry(scaling->row[i], scaling->col[j], v)
                  : v;
      max = larger(max, ab[i]);
    }
  }
  return max;
}

/* Returns max |u_ij|. U has lower + upper diagonals above the main one, since
   row exchanges widen it. */
static double largest_of_u(const hone_band *s) {
  double max = 0.0;
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i <= HONE_MIN(s->lower + s->upper, j); i++)
      max = larger(max, s->ab[s->diagonal - i + j * s->ld]);
  return max;
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  engine_band *e = self;
  *info = (hone_factor_info){.growth = HONE_NAN, .zero_pivot = -1};
  if (hone_watch_stop(e->watch, "factor", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  if (reserve(e) != HONE_OK)
    return HONE_NO_MEMORY;
  const double max = load(e, hone_dense_of(a), scaling);
  info->zero_pivot = hone_band_factor(&e->s, e->pool);
  if (info->zero_pivot < 0)
    info->growth = largest_of_u(&e->s) / max;
  return HONE_OK;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const engine_band *e = self;
  hone_band_solve(&e->s, trans, k, v, ldv);
  return HONE_OK;
}

static void smallest_pivot(void *self, bool replace_zeros, int64_t *row,
                           int64_t *col) {
  const engine_band *e = self;
  hone_pivot_smallest(e->n, e->ab + e->s.diagonal, e->s.ld, e->ipiv,
                      replace_zeros, row, col);
}

static void account(void *self, hone_account *out) {
  const engine_band *e = self;
  *out = (hone_account){.text = ""};
  memcpy(out->text, e->text, sizeof out->text);
}

const hone_engine hone_engine_banded = {.name = "banded LU",
                                        .place = "CPU",
                                        .precision = 64,
                                        .applies = applies,
                                        .probe = probe,
                                        .create = create,
                                        .factor = factor,
                                        .solve = solve,
                                        .destroy = destroy,
                                        .bytes = bytes,
                                        .account = account,
                                        .smallest_pivot = smallest_pivot};
