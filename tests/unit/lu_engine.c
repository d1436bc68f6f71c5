/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/lu_engine.h"

#include "cpu_sp/blocked.h"

#include <math.h>

void lu_open(lu *f, const hone_engine *engine, int64_t n, int64_t block,
             int threads) {
  *f = (lu){.engine = engine};
  hone_pool_create(&f->pool, &f->mem, threads);
  f->config = (hone_engine_config){.n = n,
                                   .mem = &f->mem,
                                   .pool = f->pool,
                                   .watch = &f->watch,
                                   .block = block};
  f->scaling.row = sup_filled(n, 1.0);
  f->scaling.col = sup_filled(n, 1.0);
  f->scaling.row_exp = calloc((size_t)n, sizeof(int));
  f->scaling.col_exp = calloc((size_t)n, sizeof(int));
  if (f->scaling.row_exp == NULL || f->scaling.col_exp == NULL)
    abort();
  if (!CHECK_EQ_INT(engine->create(&f->self, &f->config), HONE_OK))
    abort();
}

void lu_close(lu *f) {
  f->engine->destroy(f->self, &f->mem);
  hone_pool_destroy(&f->pool, &f->mem);
  CHECK_EQ_INT(f->mem.held, 0);
  sup_free(f->scaling.row);
  sup_free(f->scaling.col);
  free(f->scaling.row_exp);
  free(f->scaling.col_exp);
}

int lu_factor(lu *f, const double *a, int64_t lda) {
  const hone_matrix matrix = *sup_matrix(f->config.n, lda, a);
  memset(&f->info, 0x5a, sizeof f->info);
  return f->engine->factor(f->self, &matrix, &f->scaling, &f->info);
}

void lu_set_scale(lu *f, int64_t i, int row_exp, int col_exp) {
  f->scaling.used = true;
  f->scaling.row_exp[i] = row_exp;
  f->scaling.col_exp[i] = col_exp;
  f->scaling.row[i] = ldexp(1.0, row_exp);
  f->scaling.col[i] = ldexp(1.0, col_exp);
}

/* Exact matrices ----------------------------------------------------------- */

int lu_pick(sup_rng *rng, int count) {
  return (int)(sup_next(rng) % (uint64_t)count);
}

exact exact_make(sup_rng *rng, int64_t n, int64_t zero, bool exchange) {
  exact e = {n, sup_filled(n * n, 0.0), sup_filled(n, 0.0), 0.0};
  double *s = e.s, *l = sup_filled(n * n, 0.0), *u = sup_filled(n * n, 0.0);
  double u_max = 0.0, s_max = 0.0;
  for (int64_t j = 0; j < n; j++)
    e.pivot[j] = j == zero
                     ? 0.0
                     : ldexp(lu_pick(rng, 2) ? 1.0 : -1.0, lu_pick(rng, 3) - 1);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double value = i == j ? 1.0 : 0.5 * (double)(lu_pick(rng, 3) - 1);
      if (i == j || (i > j && i % 2 == 1 && j % 2 == 0))
        l[i + j * n] = value;
      if (i == j || (i < j && i % 2 == 0 && j % 2 == 1))
        u[i + j * n] = e.pivot[i] * value;
      u_max = fmax(u_max, fabs(u[i + j * n]));
    }
  for (int64_t i = 0; i < n; i++) { /* row i of L U becomes row to of S */
    int64_t to = exchange ? lu_pick(rng, (int)i + 1) : i;
    for (int64_t j = 0; j < n; j++) {
      double sum = 0.0;
      for (int64_t k = 0; k <= HONE_MIN(i, j); k++)
        sum += l[i + k * n] * u[k + j * n];
      s[i + j * n] = s[to + j * n];
      s[to + j * n] = sum;
      s_max = fmax(s_max, fabs(sum));
    }
  }
  e.growth = u_max / s_max;
  sup_free(l);
  sup_free(u);
  return e;
}

void exact_lu_free(exact *e) {
  sup_free(e->s);
  sup_free(e->pivot);
}

void exact_multiply(const exact *e, bool trans, int64_t k, const double *x,
                    double *v, double *unit) {
  const int64_t n = e->n, down = trans ? n : 1, along = trans ? 1 : n;
  double max = 0.0;
  memset(v, 0, (size_t)(n * k) * sizeof *v);
  for (int64_t c = 0; c < k; c++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++)
        v[i + c * n] += e->s[i * down + j * along] * x[j + c * n];
  for (int64_t i = 0; i < k * n; i++)
    max = fmax(max, fabs(v[i]));
  *unit = max > 0.0 ? ldexp(1.0, ilogb(max) + 1) : 1.0;
  for (int64_t i = 0; i < k * n; i++)
    v[i] /= *unit;
}

const int64_t lu_orders[ORDERS] = {1,  2,  3,   31,  32,  33,  63,
                                   64, 65, 100, 127, 129, 200, 257};

int64_t lu_block(int at, int64_t n) {
  static const int64_t blocks[BLOCKS - 1] = {0, 1, 7, 32, 64};
  return at < BLOCKS - 1 ? blocks[at] : n;
}

bool lu_one_panel(int64_t block, int64_t n) { return block == 0 || block >= n; }

bool lu_can_exchange(const hone_engine *engine, int64_t block, int64_t n) {
  return !lu_one_panel(block, n) &&
         (engine != &hone_engine_single_cuda || n <= 64 || block == 1);
}

bool lu_too_slow(const hone_engine *engine, int64_t block, int64_t n) {
  return engine == &hone_engine_single_cuda && sup_emulated() && block > 0 &&
         n / block > 40;
}

bool lu_not_its_turn(const hone_engine *engine, int at, int k) {
  return engine == &hone_engine_single_cuda && sup_emulated() && at % k != 0;
}

/* The error allowed in a solution of size 1/2. Tournament pivoting takes other
   rows than partial pivoting, and products of 22-bit pieces are not exact. */
static double slack(const lu *f) {
  return f->engine == &hone_engine_single ? 0.0 : 1e-4;
}

void exact_check_solve(lu *f, bool trans, int64_t k, const double *x,
                       const double *v, double unit) {
  const int64_t n = f->config.n, ldv = n + k % 3;
  double *w = sup_filled(ldv * k, (double)NAN);
  int64_t wrong = 0, padding = 0;
  for (int64_t c = 0; c < k; c++)
    memcpy(w + c * ldv, v + c * n, (size_t)n * sizeof *w);
  CHECK_EQ_INT(f->engine->solve(f->self, trans, k, w, ldv), HONE_OK);
  for (int64_t c = 0; c < k; c++) {
    for (int64_t i = 0; i < n; i++)
      wrong += !(fabs(w[i + c * ldv] * unit - x[i + c * n]) <= slack(f));
    padding += !sup_untouched(w + c * ldv + n, ldv - n, (double)NAN);
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(padding, 0);
  sup_free(w);
}

void exact_check_factors(lu *f, const exact *e) {
  const int64_t n = e->n;
  float *pivot = malloc((size_t)n * sizeof *pivot);
  CHECK_EQ_INT(f->info.zero_pivot, -1);
  CHECK_EQ_INT(f->info.flushed, 0);
  CHECK(!f->info.hopeless);
  if (pivot == NULL)
    abort();
  if (slack(f) > 0.0) {
    CHECK_LE(f->info.growth, 16.0 * e->growth);
    free(pivot);
    return;
  }
  CHECK_NEAR(f->info.growth, e->growth, 1e-6 * e->growth);
  hone_blocked_pivots(f->self, 0, n, pivot); /* only for the host's engine */
  for (int64_t i = 0; i < n; i++)
    CHECK_NEAR(pivot[i], fabs(e->pivot[i]), 0.0);
  hone_blocked_pivots(f->self, n / 2, n - n / 2, pivot);
  for (int64_t i = n / 2; i < n; i++)
    CHECK_NEAR(pivot[i - n / 2], fabs(e->pivot[i]), 0.0);
  free(pivot);
}

void lu_register(const lu_check *checks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ct_register("engine_host/lu", checks[i].name, checks[i].run,
                &hone_engine_single);
    ct_register("engine_cuda/lu", checks[i].name, checks[i].run,
                &hone_engine_single_cuda);
  }
}
