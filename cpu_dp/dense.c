/* SPDX-License-Identifier: BSD-3-Clause */
/* The dense operator: the table through which refinement reads a dense A, in
   double precision on the CPU. Read base/operator.h first. Each function of the
   table is implemented in the file named beside it; this file only sees to it
   that a matrix in a device's memory has been copied to the host before one of
   them reads it. Where it cannot be, their results are NaN, which no comparison
   of refinement accepts; 'failure' tells why. */
#include "base/dense.h"
#include "base/projection.h"
#include "cpu_dp/inspect.h"
#include "cpu_dp/product.h"
#include "cpu_dp/residual.h"
#include "cpu_dp/steps.h"
#include "cpu_dp/structure.h"

/* The order from which a few columns are fetched first; below it all of A
   arrives as soon as they would. */
enum { SAMPLED_FROM = 256 };

static int64_t scratch(int64_t n) { return hone_inspect_scratch(n); }

static void start(const hone_matrix *a, hone_pool *pool) {
  hone_host_copy_start(hone_dense_of(a)->copy, pool);
}

static int await(const hone_matrix *a, hone_pool *pool) {
  return hone_host_copy_await(hone_dense_of(a)->copy, pool);
}

/* Fetches two columns first if A lies in a device's memory, which suffice for
   most matrices, and then a few more. Returns true if they decide the structure
   as far as is wanted: they show that A has none, or it may be definite, and a
   sample was wanted. The other columns can then arrive while A is factored, or
   need not. */
static bool sample_decides(const hone_dense *a, hone_search search,
                           hone_structure *out, int *st) {
  int64_t column[HONE_STRUCTURE_SAMPLES];
  const bool definite = search != HONE_SEARCH_ZEROS;
  bool excluded = false;
  *st = HONE_OK;
  if (a->copy == NULL || a->copy->state != HONE_HOST_COPY_PENDING ||
      a->n < SAMPLED_FROM)
    return false;
  for (int k = 0; k < HONE_STRUCTURE_SAMPLES; k++)
    column[k] = hone_structure_sample(a->n, k);
  for (int from = 0, to = 2; *st == HONE_OK && !excluded && from < to;
       from = to, to = HONE_STRUCTURE_SAMPLES) {
    *st = hone_host_copy_columns(a->copy, column + from, to - from);
    excluded = *st == HONE_OK && hone_structure_excluded(a, to, definite);
  }
  if (*st != HONE_OK || excluded || search != HONE_SEARCH_SAMPLE)
    return excluded;
  out->definite = out->sampled =
      hone_structure_allows_definite(a, HONE_STRUCTURE_SAMPLES);
  out->found = out->sampled ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL;
  return out->sampled;
}

static int kind_of(const hone_structure *s, int64_t n) {
  if (s->lower == 0 && s->upper == 0)
    return HONE_FOUND_DIAGONAL;
  if (s->lower == 0 || s->upper == 0)
    return HONE_FOUND_TRIANGULAR;
  if (hone_band_pays(s->lower, s->upper, n))
    return HONE_FOUND_BANDED;
  return s->definite ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL;
}

static int find_structure(const hone_matrix *matrix, hone_pool *pool,
                          hone_search search, double *work,
                          hone_structure *out) {
  const hone_dense *a = hone_dense_of(matrix);
  int st;
  *out = (hone_structure){.lower = a->n - 1, .upper = a->n - 1};
  if (sample_decides(a, search, out, &st))
    return HONE_OK;
  if (st == HONE_OK)
    st = await(matrix, pool);
  if (st != HONE_OK)
    return st;
  hone_structure_find(pool, a, search, work, out);
  out->found = kind_of(out, a->n);
  return HONE_OK;
}

static int failure(const hone_matrix *a) {
  return hone_host_copy_failure(hone_dense_of(a)->copy);
}

static bool symmetric(const hone_matrix *a, hone_pool *pool) {
  return await(a, pool) == HONE_OK &&
         hone_structure_symmetric(pool, hone_dense_of(a));
}

/* Vectors where A cannot be read. */
static void fill_entries(int64_t n, hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = HONE_NAN;
}
static void fill_sizes(int64_t n, double *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = HONE_NAN;
}

static void inspect(const hone_matrix *a, hone_pool *pool,
                    const hone_scaling *scaling, double *scratch,
                    hone_inspection *out) {
  if (await(a, pool) == HONE_OK) {
    hone_inspect(a, pool, scaling, scratch, out);
    return;
  }
  fill_sizes(a->n, out->row_max);
  fill_sizes(a->n, out->col_max);
  out->norm1 = out->norm_inf = HONE_NAN;
  out->bad_row = out->bad_col = -1;
}

static void residual(const hone_residual_job *job, hone_pool *pool) {
  if (await(job->a, pool) == HONE_OK) {
    hone_dense_residual(job, pool);
    return;
  }
  for (int64_t c = 0; c < job->k; c++) {
    fill_entries(job->a->n, job->r[c]);
    fill_sizes(job->a->n, job->den[c]);
  }
}

static void residual_steps(const hone_residual_steps *job, hone_pool *pool) {
  if (await(job->a, pool) == HONE_OK) {
    hone_dense_steps(job, pool);
    return;
  }
  for (int64_t c = 0; c < job->k; c++) {
    fill_entries(job->a->n, job->r[c]);
    if (job->den != NULL)
      fill_sizes(job->a->n, job->den[c]);
  }
  fill_sizes(job->a->n, job->weight);
}

static void product(const hone_matrix *a, hone_pool *pool, bool trans,
                    int64_t k, const hone_entry *v, hone_entry *p) {
  if (await(a, pool) == HONE_OK)
    hone_dense_product(a, pool, trans, k, v, p);
  else
    fill_entries(k * a->n, p);
}

const hone_entry *hone_dense_take_line(const hone_dense *a, bool row, int64_t i,
                                       int64_t *step) {
  *step = 1;
  if (!hone_host_copy_serves(a->copy))
    return hone_host_copy_take_line(a->copy, row, i);
  *step = row ? a->lda : 1;
  return a->a + (row ? i : i * a->lda);
}

void hone_dense_give_line(const hone_dense *a) {
  if (!hone_host_copy_serves(a->copy))
    hone_host_copy_give_line(a->copy);
}

static void project_entry(const hone_matrix *matrix, bool trans, int64_t j,
                          const hone_entry *v, hone_entry *hi, hone_entry *lo,
                          double *sum) {
  const hone_dense *a = hone_dense_of(matrix);
  int64_t step;
  const hone_entry *line = hone_dense_take_line(a, trans, j, &step);
  if (line == NULL) {
    *sum = HONE_NAN;
    return;
  }
  if (trans)
    hone_project_rows(1, a->n, line, step, v, hi, lo, sum);
  else
    hone_project_column(a->n, line, v, hi, lo, sum);
  hone_dense_give_line(a);
}

const hone_operator hone_dense_operator = {
    .name = "dense",
    .scratch = scratch,
    .start = start,
    .await = await,
    .failure = failure,
    .find_structure = find_structure, /* structure.c */
    .symmetric = symmetric,           /* structure.c */
    .inspect = inspect,               /* inspect.c */
    .residual = residual,             /* residual.c */
    .residual_steps = residual_steps, /* steps.c */
    .product = product,               /* product.c */
    .wide_row = hone_dense_wide_row,  /* wide_row.c */
    .project_entry = project_entry};
