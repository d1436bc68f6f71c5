/* SPDX-License-Identifier: BSD-3-Clause */
/* The dense operator: the table through which refinement reads a dense A, in
   double precision on the CPU. Read base/operator.h first. Each function of the
   table is implemented in the file named beside it; this file only waits for a
   matrix that is copied from a device's memory. */
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

/* Fetches a few columns first if A lies in a device's memory. If they show that
   A has no structure, returns true: the other columns can then arrive while A
   is factored. */
static bool sample_excludes(const hone_dense *a, bool definite, int *st) {
  int64_t column[HONE_STRUCTURE_SAMPLES];
  *st = HONE_OK;
  if (a->copy == NULL || a->copy->state != HONE_HOST_COPY_PENDING ||
      a->n < SAMPLED_FROM)
    return false;
  for (int k = 0; k < HONE_STRUCTURE_SAMPLES; k++)
    column[k] = hone_structure_sample(a->n, k);
  *st = hone_host_copy_columns(a->copy, column, HONE_STRUCTURE_SAMPLES);
  return *st == HONE_OK && hone_structure_excluded(a, definite);
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
                          bool definite, double *work, hone_structure *out) {
  const hone_dense *a = hone_dense_of(matrix);
  int st;
  *out = (hone_structure){.lower = a->n - 1, .upper = a->n - 1};
  if (sample_excludes(a, definite, &st))
    return HONE_OK;
  if (st == HONE_OK)
    st = await(matrix, pool);
  if (st != HONE_OK)
    return st;
  hone_structure_find(pool, a, definite, work, out);
  out->found = kind_of(out, a->n);
  return HONE_OK;
}

static bool symmetric(const hone_matrix *a, hone_pool *pool) {
  return hone_structure_symmetric(pool, hone_dense_of(a));
}

static void project_entry(const hone_matrix *matrix, bool trans, int64_t j,
                          const hone_entry *v, hone_entry *hi, hone_entry *lo,
                          double *sum) {
  const hone_dense *a = hone_dense_of(matrix);
  if (trans)
    hone_project_rows(1, a->n, a->a + j, a->lda, v, hi, lo, sum);
  else
    hone_project_column(a->n, a->a + j * a->lda, v, hi, lo, sum);
}

const hone_operator hone_dense_operator = {
    .name = "dense",
    .scratch = scratch,
    .start = start,
    .await = await,
    .find_structure = find_structure, /* structure.c */
    .symmetric = symmetric,           /* structure.c */
    .inspect = hone_inspect,          /* inspect.c */
    .residual = hone_dense_residual,  /* residual.c */
#ifndef HONE_COMPLEX
    .residual_steps = hone_dense_steps, /* steps.c */
#endif
    .product = hone_dense_product,   /* product.c */
    .wide_row = hone_dense_wide_row, /* wide_row.c */
    .project_entry = project_entry};
