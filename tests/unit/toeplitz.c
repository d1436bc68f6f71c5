/* SPDX-License-Identifier: BSD-3-Clause */
/* See toeplitz.h. Plain loops compute the numbers; they share nothing with the
   library. */
#include "tests/unit/toeplitz.h"

#include "tests/unit/support.h"

#include <float.h>
#include <math.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide;
#else
typedef long double wide;
#endif

/* The operator ------------------------------------------------------------- */

static const toeplitz_matrix *matrix_of(const hone_matrix *a) {
  return (const toeplitz_matrix *)a->self;
}

static double entry(const toeplitz_matrix *m, int64_t i, int64_t j) {
  const double t = m->diagonals[i - j + m->order - 1];
  return m->left != NULL ? m->left[i] * t * m->right[j] : t;
}

static double entry_of(const toeplitz_matrix *m, bool trans, int64_t i,
                       int64_t j) {
  return trans ? entry(m, j, i) : entry(m, i, j);
}

enum { SCRATCH = 40 }; /* vectors: more than any other operator asks for */

static int64_t scratch(int64_t n) { return SCRATCH * n; }

static void start(const hone_matrix *a, hone_pool *pool) {
  (void)pool;
  matrix_of(a)->calls->starts++;
}

static int await(const hone_matrix *a, hone_pool *pool) {
  (void)pool;
  matrix_of(a)->calls->awaits++;
  return matrix_of(a)->await_status;
}

static void count(const hone_matrix *a, int *counter) {
  const toeplitz_calls *c = matrix_of(a)->calls;
  (*counter)++;
  if (c->starts > 0 && c->awaits == 0)
    matrix_of(a)->calls->early++;
}

static bool symmetric(const hone_matrix *a, hone_pool *pool) {
  const toeplitz_matrix *m = matrix_of(a);
  (void)pool;
  count(a, &m->calls->symmetries);
  for (int64_t i = 0; i < m->order; i++)
    for (int64_t j = 0; j < i; j++)
      if (!(entry(m, i, j) == entry(m, j, i)))
        return false;
  return true;
}

static double largest_sum(int64_t n, const double *sum) {
  double largest = 0.0;
  for (int64_t i = 0; i < n; i++)
    largest = fmax(largest, sum[i]);
  return fmin(largest, DBL_MAX);
}

static void inspect(const hone_matrix *a, hone_pool *pool,
                    const hone_scaling *scaling, double *sums,
                    hone_inspection *out) {
  const toeplitz_matrix *m = matrix_of(a);
  const int64_t n = m->order;
  double *row_sum = sums, *col_sum = sums + n;
  (void)pool;
  count(a, &m->calls->inspections);
  for (int64_t k = 2 * n; k < SCRATCH * n; k++)
    sums[k] = (double)NAN;
  out->bad_row = out->bad_col = -1;
  for (int64_t i = 0; i < n; i++)
    out->row_max[i] = out->col_max[i] = row_sum[i] = col_sum[i] = 0.0;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double v = fabs(entry(m, i, j));
      if (scaling != NULL)
        v = v * scaling->row[i] * scaling->col[j];
      if (!isfinite(v) && out->bad_row < 0) {
        out->bad_row = i;
        out->bad_col = j;
      }
      out->row_max[i] = fmax(out->row_max[i], v);
      out->col_max[j] = fmax(out->col_max[j], v);
      row_sum[i] += v;
      col_sum[j] += v;
    }
  out->norm1 = largest_sum(n, col_sum);
  out->norm_inf = largest_sum(n, row_sum);
}

/* *hi + *lo = *hi + *lo - a x, to twice double precision. */
static void subtract(double a, double x, double *hi, double *lo) {
  const double p = -a * x, e = fma(-a, x, -p);
  const double s = *hi + p, z = s - *hi;
  *lo += ((*hi - (s - z)) + (p - z)) + e;
  *hi = s;
}

static void residual(const hone_residual_job *pass, hone_pool *pool) {
  const toeplitz_matrix *m = matrix_of(pass->a);
  (void)pool;
  count(pass->a, &m->calls->residuals);
  for (int64_t c = 0; c < pass->k; c++)
    for (int64_t i = 0; i < m->order; i++) {
      double hi = pass->b[c][i], lo = 0.0, den = fabs(hi);
      for (int64_t j = 0; j < m->order; j++) {
        const double t = entry_of(m, pass->trans, i, j), x = pass->x[c][j];
        if (pass->accurate)
          subtract(t, x, &hi, &lo);
        else
          hi -= t * x;
        den += fabs(t * x);
      }
      pass->r[c][i] = hi + lo;
      pass->den[c][i] = den;
    }
}

static void product(const hone_matrix *a, hone_pool *pool, bool trans,
                    int64_t k, const double *v, double *p) {
  const toeplitz_matrix *m = matrix_of(a);
  const int64_t n = m->order;
  (void)pool;
  count(a, &m->calls->products);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++)
        sum += entry_of(m, trans, i, j) * v[j + c * n];
      p[i + c * n] = sum;
    }
}

static void wide_row(hone_wide_row *row) {
  const toeplitz_matrix *m = matrix_of(row->a);
  wide r = (wide)row->b, den = r < 0 ? -r : r;
  count(row->a, &m->calls->wide_rows);
  for (int64_t j = 0; j < m->order; j++) {
    const wide p = (wide)entry_of(m, row->trans, row->i, j) * (wide)row->x[j];
    r -= p;
    den += p < 0 ? -p : p;
  }
  const wide size = r < 0 ? -r : r;
  row->quotient = den > 0 ? (double)(size / den) : 0.0;
  for (int s = row->shift; s != 0; s += s > 0 ? -1 : 1) {
    r *= s > 0 ? (wide)2.0 : (wide)0.5;
    den *= s > 0 ? (wide)2.0 : (wide)0.5;
  }
  row->r = (double)r;
  row->den = (double)den;
}

const hone_operator toeplitz_operator = {.name = "toeplitz",
                                         .scratch = scratch,
                                         .symmetric = symmetric,
                                         .inspect = inspect,
                                         .residual = residual,
                                         .product = product,
                                         .wide_row = wide_row};

const hone_operator toeplitz_operator_that_arrives = {.name = "toeplitz",
                                                      .scratch = scratch,
                                                      .start = start,
                                                      .await = await,
                                                      .symmetric = symmetric,
                                                      .inspect = inspect,
                                                      .residual = residual,
                                                      .product = product,
                                                      .wide_row = wide_row};

/* Engines: those for dense matrices, applied to a dense copy --------------- */

typedef struct copying {
  const hone_engine *engine;
  void *self;
  int64_t n;
  double *copy; /* n x n */
} copying;

void toeplitz_write_dense(const toeplitz_matrix *m, double *a) {
  for (int64_t j = 0; j < m->order; j++)
    for (int64_t i = 0; i < m->order; i++)
      a[i + j * m->order] = entry(m, i, j);
}

static void destroy(void *self, hone_mem *mem) {
  copying *e = self;
  if (e == NULL)
    return;
  e->engine->destroy(e->self, mem);
  hone_mem_put(mem, e->copy);
  hone_mem_put(mem, e);
}

static int create(const hone_engine *engine, void **self,
                  const hone_engine_config *config) {
  const size_t n = (size_t)config->n;
  copying *e = hone_mem_get(config->mem, sizeof *e);
  *self = NULL;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (copying){.engine = engine, .n = config->n};
  e->copy = hone_mem_get(config->mem, n * n * sizeof *e->copy);
  const int st =
      e->copy == NULL ? HONE_NO_MEMORY : engine->create(&e->self, config);
  if (st == HONE_OK)
    *self = e;
  else
    destroy(e, config->mem);
  return st;
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  copying *e = self;
  toeplitz_write_dense(matrix_of(a), e->copy);
  return e->engine->factor(e->self, sup_matrix(e->n, e->n, e->copy), scaling,
                           info);
}

static int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  copying *e = self;
  return e->engine->solve(e->self, trans, k, v, ldv);
}

static int apply(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  copying *e = self;
  return e->engine->apply(e->self, trans, k, v, ldv);
}

static void suspect(void *self, bool mend, int64_t *row, int64_t *col) {
  copying *e = self;
  e->engine->smallest_pivot(e->self, mend, row, col);
}

static bool probe(char *why, size_t why_size) {
  return hone_engine_double.probe(why, why_size);
}

static int create_single(void **self, const hone_engine_config *config) {
  return create(&hone_engine_single, self, config);
}
static int create_double(void **self, const hone_engine_config *config) {
  return create(&hone_engine_double, self, config);
}
static int create_cholesky(void **self, const hone_engine_config *config) {
  return create(&hone_engine_cholesky, self, config);
}

static bool applies_definite(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

static int64_t bytes(int64_t n, int64_t k) {
  return hone_engine_double.bytes(n, k) + 8 * n * n;
}

const hone_engine toeplitz_single = {.name = "single LU",
                                     .place = "CPU",
                                     .precision = 32,
                                     .probe = probe,
                                     .create = create_single,
                                     .factor = factor,
                                     .solve = solve,
                                     .apply = apply,
                                     .destroy = destroy,
                                     .bytes = bytes};
const hone_engine toeplitz_double = {.name = "double LU",
                                     .place = "CPU",
                                     .precision = 64,
                                     .probe = probe,
                                     .create = create_double,
                                     .factor = factor,
                                     .solve = solve,
                                     .destroy = destroy,
                                     .bytes = bytes,
                                     .smallest_pivot = suspect};
const hone_engine toeplitz_cholesky = {.name = "single Cholesky",
                                       .place = "CPU",
                                       .precision = 32,
                                       .symmetric = true,
                                       .applies = applies_definite,
                                       .probe = probe,
                                       .create = create_cholesky,
                                       .factor = factor,
                                       .solve = solve,
                                       .apply = apply,
                                       .destroy = destroy,
                                       .bytes = bytes};
