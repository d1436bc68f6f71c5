/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision LU engines: one list of checks, registered for the
   engine of the host and for that of CUDA.

   The factors stay with the engine, so that they are tested by what they
   solve. First with matrices S = P L U of small dyadic numbers whose factors,
   their inverses and every partial sum are exact in single precision: there
   each bit is known. Then with random ones, beside OpenBLAS's own sgetrf. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/engine.h"
#include "base/lapack.h"
#include "cpu_sp/blocked.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EPS_SP = 0x1p-24;

/* Skips where the engine cannot be used, unless a GPU is required. */
#define NEED(engine)                                                           \
  do {                                                                         \
    char why_[160] = "";                                                       \
    const char *required_ = getenv("HONE_REQUIRE_GPU");                        \
    if (!(engine)->probe(why_, sizeof why_)) {                                 \
      ct_note("%s", why_);                                                     \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP(why_);                                                              \
    }                                                                          \
  } while (0)

/* An engine with what it needs  -------------------------------------------- */

typedef struct lu {
  const hone_engine *engine;
  void *self;
  hone_mem mem;
  hone_pool *pool;
  hone_watch watch;
  hone_engine_config config;
  hone_scaling scaling;
  hone_factor_info info;
} lu;

static void open_lu(lu *f, const hone_engine *engine, int64_t n, int64_t block,
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

static void close_lu(lu *f) {
  f->engine->destroy(f->self, &f->mem);
  hone_pool_destroy(&f->pool, &f->mem);
  CHECK_EQ_INT(f->mem.held, 0);
  sup_free(f->scaling.row);
  sup_free(f->scaling.col);
  free(f->scaling.row_exp);
  free(f->scaling.col_exp);
}

static int factor(lu *f, const double *a, int64_t lda) {
  const hone_matrix matrix = *sup_matrix(f->config.n, lda, a);
  memset(&f->info, 0x5a, sizeof f->info);
  return f->engine->factor(f->self, &matrix, &f->scaling, &f->info);
}

static void set_scale(lu *f, int64_t i, int row_exp, int col_exp) {
  f->scaling.used = true;
  f->scaling.row_exp[i] = row_exp;
  f->scaling.col_exp[i] = col_exp;
  f->scaling.row[i] = ldexp(1.0, row_exp);
  f->scaling.col[i] = ldexp(1.0, col_exp);
}

/* Exact matrices --------------------------------------------------------- */

static int pick(sup_rng *rng, int count) {
  return (int)(sup_next(rng) % (uint64_t)count);
}

typedef struct exact {
  int64_t n;
  double *s;     /* n x n: P L U */
  double *pivot; /* n: u_cc */
  double growth;
} exact;

/* L = I + N, U = D (I + M): N has entries +-1/2 in odd rows and even columns,
   M the like in even rows and odd columns, so that N N = M M = 0 and
   inv(L) = I - N, inv(U) = (I - M) inv(D). In each column the pivot is twice
   as large as what is below it. zero: a column whose pivot is 0, or -1.

   An engine may factor the transpose of a matrix that it has in one panel:
   it then finds the same pivots, as the transpose has the same form, unless
   the rows are exchanged. So exchange them only where block < n. */
static exact make_exact(sup_rng *rng, int64_t n, int64_t zero, bool exchange) {
  exact e = {n, sup_filled(n * n, 0.0), sup_filled(n, 0.0), 0.0};
  double *s = e.s, *l = sup_filled(n * n, 0.0), *u = sup_filled(n * n, 0.0);
  double u_max = 0.0, s_max = 0.0;
  for (int64_t j = 0; j < n; j++)
    e.pivot[j] =
        j == zero ? 0.0 : ldexp(pick(rng, 2) ? 1.0 : -1.0, pick(rng, 3) - 1);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double value = i == j ? 1.0 : 0.5 * (double)(pick(rng, 3) - 1);
      if (i == j || (i > j && i % 2 == 1 && j % 2 == 0))
        l[i + j * n] = value;
      if (i == j || (i < j && i % 2 == 0 && j % 2 == 1))
        u[i + j * n] = e.pivot[i] * value;
      u_max = fmax(u_max, fabs(u[i + j * n]));
    }
  for (int64_t i = 0; i < n; i++) { /* row i of L U goes to row to of S */
    int64_t to = exchange ? pick(rng, (int)i + 1) : i;
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

static void free_exact(exact *e) {
  sup_free(e->s);
  sup_free(e->pivot);
}

/* v = op(S) x divided by a power of two that keeps it within 1. */
static void multiply(const exact *e, bool trans, int64_t k, const double *x,
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

enum { MOST = HONE_SOLVE_COLUMNS };

static const int64_t orders[] = {1,  2,  3,   31,  32,  33,  63,
                                 64, 65, 100, 127, 129, 200, 257};
enum { ORDERS = sizeof orders / sizeof *orders, BLOCKS = 6 };

static int64_t block_of(int at, int64_t n) {
  static const int64_t blocks[BLOCKS - 1] = {0, 1, 7, 32, 64};
  return at < BLOCKS - 1 ? blocks[at] : n;
}

/* Is the whole matrix one panel, or may it be? */
static bool one_panel(int64_t block, int64_t n) {
  return block == 0 || block >= n;
}

/* May rows be exchanged and the pivots still be known? Not in one panel; and
   a tournament finds the rows of partial pivoting for sure only within the 64
   rows of one tile, or one column at a time. */
static bool can_exchange(const hone_engine *engine, int64_t block, int64_t n) {
  return !one_panel(block, n) &&
         (engine != &hone_engine_single_cuda || n <= 64 || block == 1);
}

/* More block columns than an emulated device can factor in a second or two. */
static bool too_slow(const hone_engine *engine, int64_t block, int64_t n) {
  return engine == &hone_engine_single_cuda && sup_emulated() && block > 0 &&
         n / block > 40;
}

/* Tournament pivoting takes other rows than partial pivoting, and pieces of
   22 bits are not exact: there a solution (of size 1/2) has an error. */
static double slack(const lu *f) {
  return f->engine == &hone_engine_single ? 0.0 : 1e-4;
}

/* Solves for the first k columns of v, which stand ldv apart. */
static void check_exact_solve(lu *f, bool trans, int64_t k, const double *x,
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

/* What one factorization of e must have given; no more than that it went
   well where the pivots need not be those of partial pivoting. */
static void check_exact_factors(lu *f, const exact *e) {
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
  hone_blocked_pivots(f->self, 0, n, pivot); /* without slack: the host's */
  for (int64_t i = 0; i < n; i++)
    CHECK_NEAR(pivot[i], fabs(e->pivot[i]), 0.0);
  hone_blocked_pivots(f->self, n / 2, n - n / 2, pivot);
  for (int64_t i = n / 2; i < n; i++)
    CHECK_NEAR(pivot[i - n / 2], fabs(e->pivot[i]), 0.0);
  free(pivot);
}

/* A = inv(R) S inv(C), so that what the engine loads is S again. */
static void unscale(lu *f, sup_rng *rng, const exact *e, double *a,
                    int64_t lda) {
  for (int64_t i = 0; i < e->n; i++)
    set_scale(f, i, pick(rng, 201) - 100, pick(rng, 201) - 100);
  for (int64_t j = 0; j < e->n; j++)
    for (int64_t i = 0; i < e->n; i++)
      a[i + j * lda] = ldexp(e->s[i + j * e->n],
                             -f->scaling.row_exp[i] - f->scaling.col_exp[j]);
}

static void check_exact_block(const hone_engine *engine, int64_t n,
                              int64_t block, bool scaled) {
  static const int64_t columns[] = {1, 2, 3, 4, 5, 17, MOST};
  sup_rng rng = {(uint64_t)n};
  exact e = make_exact(&rng, n, -1, can_exchange(engine, block, n));
  const int64_t lda = n + 3;
  double *a = sup_filled(lda * n, (double)NAN), *x = sup_filled(n * MOST, 0.0);
  double *v = sup_filled(n * MOST, 0.0), unit;
  lu f;
  open_lu(&f, engine, n, block, 1);
  for (int64_t j = 0; j < n; j++)
    memcpy(a + j * lda, e.s + j * n, (size_t)n * sizeof *a);
  if (scaled)
    unscale(&f, &rng, &e, a, lda);
  CHECK_EQ_INT(factor(&f, a, lda), HONE_OK);
  check_exact_factors(&f, &e);
  for (int trans = 0; trans < 2; trans++) {
    for (int64_t i = 0; i < n * MOST; i++)
      x[i] = (double)(pick(&rng, 17) - 8) / 16.0;
    multiply(&e, trans, n > 100 ? 17 : MOST, x, v, &unit);
    for (int k = 0; k < (n > 100 ? 6 : 7); k++)
      check_exact_solve(&f, trans, columns[k], x, v, unit);
  }
  close_lu(&f);
  sup_free(a);
  sup_free(x);
  sup_free(v);
  free_exact(&e);
}

static void solves_exactly_where_the_arithmetic_is(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int at = 0; at < ORDERS * BLOCKS; at++) {
    const int64_t n = orders[at / BLOCKS], block = block_of(at % BLOCKS, n);
    ct_note("n = %d, block %d, %s", (int)n, (int)block,
            at % 2 ? "scaled" : "not scaled");
    if (!too_slow(engine, block, n))
      check_exact_block(engine, n, block, at % 2);
  }
}

static void solves_exactly_with_several_threads(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = 421;
  sup_rng rng = {7};
  exact e = make_exact(&rng, n, -1, false);
  double *x = sup_filled(n, 0.0), *v = sup_filled(n, 0.0), unit;
  for (int64_t i = 0; i < n; i++)
    x[i] = (double)(pick(&rng, 17) - 8) / 16.0;
  multiply(&e, false, 1, x, v, &unit);
  for (int threads = 1; threads <= 5; threads += 2) {
    lu f;
    open_lu(&f, engine, n, threads == 3 ? 64 : 0, threads);
    ct_note("%d threads", threads);
    CHECK_EQ_INT(factor(&f, e.s, n), HONE_OK);
    check_exact_factors(&f, &e);
    check_exact_solve(&f, false, 1, x, v, unit);
    close_lu(&f);
  }
  sup_free(x);
  sup_free(v);
  free_exact(&e);
}

/* Random matrices, beside sgetrf ----------------------------------------- */

typedef struct reference {
  float *f;
  int *ipiv;
  double growth;
} reference;

static reference factor_by_sgetrf(int64_t n, const double *s) {
  reference r = {malloc((size_t)(n * n) * sizeof(float)),
                 malloc((size_t)n * sizeof(int)), 0.0};
  int order = (int)n, info = 0;
  double s_max = 0.0, u_max = 0.0;
  if (r.f == NULL || r.ipiv == NULL)
    abort();
  for (int64_t i = 0; i < n * n; i++) {
    r.f[i] = (float)s[i];
    s_max = fmax(s_max, fabs((double)r.f[i]));
  }
  sgetrf_(&order, &order, r.f, &order, r.ipiv, &info);
  CHECK_EQ_INT(info, 0);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++)
      u_max = fmax(u_max, fabs((double)r.f[i + j * n]));
  r.growth = u_max / s_max;
  return r;
}

static void solve_by_reference(const reference *r, int64_t n, bool trans,
                               double *v) {
  int order = (int)n, one = 1, info = 0;
  float *w = malloc((size_t)n * sizeof *w);
  if (w == NULL)
    abort();
  for (int64_t i = 0; i < n; i++)
    w[i] = (float)v[i];
  sgetrs_(trans ? "T" : "N", &order, &one, r->f, &order, r->ipiv, w, &order,
          &info);
  for (int64_t i = 0; i < n; i++)
    v[i] = (double)w[i];
  free(w);
}

/* Condition 10: the textbook bound on the error, growth aside, is
   n eps cond, and both solutions keep it; so they are twice that apart at
   most. (Measured: 1/20 of it from n = 31 on.) Which rows are pivots may
   differ where two candidates are as large, and growth with it, a little. */
static void check_random_order(const hone_engine *engine, int64_t n,
                               int blocks) {
  sup_rng rng = {(uint64_t)(31 * n)};
  const double cond = 10.0, limit = (double)n * EPS_SP * cond;
  double *s = sup_filled(n * n, 0.0), *x = sup_filled(n, 0.0);
  double *v = sup_filled(n, 0.0), *w = sup_filled(n, 0.0);
  sup_matrix_cond(&rng, n, SUP_LOG_UNIFORM, cond, s, n);
  sup_random(&rng, n, 1, x, n);
  reference ref = factor_by_sgetrf(n, s);
  for (int at = 0; at < blocks; at++) {
    lu f;
    if (too_slow(engine, block_of(at, n), n))
      continue;
    open_lu(&f, engine, n, block_of(at, n), 1);
    CHECK_EQ_INT(factor(&f, s, n), HONE_OK);
    for (int trans = 0; trans < 2; trans++) {
      ct_note("n = %d, block %d, trans %d", (int)n, (int)block_of(at, n),
              trans);
      sup_multiply(n, s, n, trans, x, v);
      memcpy(w, v, (size_t)n * sizeof *w);
      CHECK_EQ_INT(engine->solve(f.self, trans, 1, v, n), HONE_OK);
      solve_by_reference(&ref, n, trans, w);
      CHECK_LE(sup_forward_error(n, v, x), limit);
      CHECK_LE(sup_forward_error(n, v, w), 2.0 * limit);
    }
    CHECK_LE(f.info.growth, 3.0 * ref.growth);
    CHECK_LE(ref.growth, 3.0 * f.info.growth);
    close_lu(&f);
  }
  free(ref.f);
  free(ref.ipiv);
  sup_free(s);
  sup_free(x);
  sup_free(v);
  sup_free(w);
}

static void agrees_with_sgetrf(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o++)
    check_random_order(engine, orders[o], BLOCKS);
  check_random_order(engine, 1100, 1); /* the engine's own block */
}

/* Each row below adds half of the last column's entry: (3/2)^15 in the end,
   and 3^15 has 24 bits. */
static void reports_growth_to_the_last_digit(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 16 };
  double s[N * N] = {0.0};
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++)
      s[i + j * N] = i == j ? 1.0 : -0.5;
    s[i + (N - 1) * N] = 1.0;
  }
  for (int64_t block = 1; block < 8; block += 3) {
    lu f;
    open_lu(&f, engine, N, block, 1);
    CHECK_EQ_INT(factor(&f, s, N), HONE_OK);
    CHECK_NEAR(f.info.growth, 0x1p-15 * 14348907.0, 1e-4);
    close_lu(&f);
  }
}

/* Breakdown -------------------------------------------------------------- */

static void names_the_first_zero_pivot(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o++) {
    const int64_t n = orders[o];
    const int64_t places[] = {0, n / 3, n / 2, n - 1};
    for (int at = 0; at < 4 * BLOCKS; at++) {
      sup_rng rng = {(uint64_t)at};
      const int64_t block = block_of(at / 4, n);
      if (too_slow(engine, block, n))
        continue;
      exact e =
          make_exact(&rng, n, places[at % 4], can_exchange(engine, block, n));
      lu f;
      ct_note("n = %d, block %d, pivot %d", (int)n, (int)block,
              (int)places[at % 4]);
      open_lu(&f, engine, n, block, 1);
      CHECK_EQ_INT(factor(&f, e.s, n), HONE_OK);
      CHECK_EQ_INT(f.info.zero_pivot, places[at % 4]);
      close_lu(&f);
      free_exact(&e);
    }
  }
}

/* Entries that vanish, below the diagonal of every second column of the
   identity; the first four of the list do not. In half of the cases A is S
   in units that differ from row to row. */
static void counts_what_vanishes_in_single(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const double list[] = {
      (double)FLT_MIN, 0.0,     -0.0,   -(double)FLT_MIN,
      1e-42,           1e-46,   -1e-39, 0.75 * (double)FLT_MIN,
      5e-324,          -DBL_MIN};
  enum { KEPT = 4, LISTED = sizeof list / sizeof *list, N = 1101 };
  double *s = sup_filled(N * N, 0.0);
  for (int j = 0; j < N; j++) {
    s[j + j * N] = 1.0;
    for (int i = 1; j % 2 == 0 && i <= LISTED; i++)
      s[(j + i) % N + j * N] = list[i - 1];
  }
  for (int at = 0; at < 4; at++) {
    lu f;
    ct_note("case %d", at);
    open_lu(&f, engine, N, at % 2 ? 64 : 0, at < 2 ? 3 : 1);
    for (int i = 0; at == 2 && i < N * N; i++)
      s[i] = ldexp(s[i], i % N % 7 + i / N % 5);
    for (int i = 0; at >= 2 && i < N; i++)
      set_scale(&f, i, -(i % 7), -(i % 5));
    CHECK_EQ_INT(factor(&f, s, N), HONE_OK);
    CHECK_EQ_INT(f.info.flushed, (N + 1) / 2 * (LISTED - KEPT));
    CHECK_EQ_INT(f.info.zero_pivot, -1);
    close_lu(&f);
  }
  sup_free(s);
}

/* 1 x 1: a number below FLT_MIN is 0, and what counts is its scaled value. */
static void flushes_by_the_scaled_value(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  static const struct {
    double a;
    int row_exp, col_exp, flushed;
  } cases[] = {{1e-39, 0, 0, 1},      {(double)FLT_MIN, 0, 0, 0},
               {1e-42, 10, 10, 0},    {1e-42, -10, 10, 1},
               {1.0, -63, -63, 0},    {1.0, -63, -64, 1},
               {1e-300, -500, -8, 1}, {1e-300, 450, 500, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lu f;
    ct_note("case %d", (int)i);
    open_lu(&f, engine, 1, 0, 1);
    set_scale(&f, 0, cases[i].row_exp, cases[i].col_exp);
    CHECK_EQ_INT(factor(&f, &cases[i].a, 1), HONE_OK);
    CHECK_EQ_INT(f.info.flushed, cases[i].flushed);
    CHECK_EQ_INT(f.info.zero_pivot, cases[i].flushed ? 0 : -1);
    close_lu(&f);
  }
}

static void growth_is_not_finite_after_overflow(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 150 };
  for (int at = 0; at < 4 * BLOCKS; at++) {
    sup_rng rng = {5};
    if (at % 4 == 3 && one_panel(block_of(at / 4, N), N))
      continue; /* the transpose of that matrix does not grow */
    if (too_slow(engine, block_of(at / 4, N), N))
      continue;
    double *s = sup_filled(N * N, 0.0);
    if (at % 4 < 3) { /* 1e39 at the beginning, inside, at the end */
      const int64_t place[] = {N - 1, N / 2 + N * (N / 3), N * N - 1};
      sup_random(&rng, N, N, s, N);
      s[place[at % 4]] = at % 2 ? -1e39 : 1e39;
    } else { /* u_nn = 2^149 */
      for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < i; j++)
          s[i + j * N] = -1.0;
        s[i + i * N] = s[i + (N - 1) * N] = 1.0;
      }
    }
    lu f;
    ct_note("case %d, block %d", at % 4, (int)block_of(at / 4, N));
    open_lu(&f, engine, N, block_of(at / 4, N), 1);
    CHECK_EQ_INT(factor(&f, s, N), HONE_OK);
    CHECK(!(f.info.growth <= DBL_MAX));
    close_lu(&f);
    sup_free(s);
  }
}

/* Stopping early --------------------------------------------------------- */

typedef struct listener {
  int events, stop_at; /* event that asks to stop; -1: none */
  double last;         /* fraction told last */
  bool in_order;
} listener;

static int listen(void *user, const hone_progress *event) {
  listener *l = user;
  l->in_order = l->in_order && strcmp(event->phase, "factor") == 0 &&
                event->fraction >= l->last && event->fraction < 1.0;
  l->last = event->fraction;
  return l->events++ == l->stop_at;
}

static void hear(lu *f, listener *l, int stop_at) {
  *l = (listener){.stop_at = stop_at, .in_order = true};
  f->watch = (hone_watch){.progress = listen, .user = l};
}

enum { JUDGED = 600, JUDGED_BLOCK = 64, JUDGED_BLOCKS = 10 };

static void check_verdict(const hone_engine *engine, const char *name,
                          const double *s, bool hopeless) {
  lu f;
  listener l;
  open_lu(&f, engine, JUDGED, JUDGED_BLOCK, 1);
  hear(&f, &l, -1);
  ct_note("%s", name);
  CHECK_EQ_INT(factor(&f, s, JUDGED), HONE_OK);
  CHECK(l.in_order);
  CHECK_EQ_INT(f.info.hopeless, hopeless);
  if (hopeless) {
    CHECK_LE(
        l.events,
        2 + (engine == &hone_engine_single_cuda)); /* of 10 block columns */
    CHECK(!(f.info.growth <= DBL_MAX));
  } else {
    CHECK_EQ_INT(l.events, JUDGED_BLOCKS);
    CHECK_GE(l.last, 0.9);
    CHECK_LE(f.info.growth, 100.0);
  }
  close_lu(&f);
}

static void gives_up_on_what_single_cannot_hold(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = JUDGED;
  sup_rng rng = {11};
  double *s = sup_filled(n * n, 0.0);
  sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1e14, s, n);
  check_verdict(engine, "geometric, 1e14", s, true);
  sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1e5, s, n);
  check_verdict(engine, "geometric, 1e5", s, false);
  sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1.0, s, n);
  check_verdict(engine, "orthogonal", s, false);
  sup_random(&rng, n, n, s, n);
  check_verdict(engine, "uniform", s, false);
  for (int64_t i = 0; i < n; i++)
    s[i + i * n] = (i % 2 ? 1.0 : -1.0) * (double)n;
  check_verdict(engine, "diagonally dominant", s, false);
  sup_free(s);
}

static void stops_between_block_columns_when_told(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = 100, block = 32;
  sup_rng rng = {12};
  exact e = make_exact(&rng, n, -1, can_exchange(engine, block, n));
  lu f;
  listener l;
  open_lu(&f, engine, n, block, 1);
  for (int stop_at = 0; stop_at < 4; stop_at++) {
    hear(&f, &l, stop_at);
    CHECK_EQ_INT(factor(&f, e.s, n), HONE_CANCELLED);
    CHECK_EQ_INT(l.events, stop_at + 1);
    CHECK_NEAR(l.last, (double)(stop_at * block) / (double)n, 1e-15);
    CHECK(l.in_order);
  }
  f.watch = (hone_watch){.deadline_s = hone_now_s() - 1.0};
  CHECK_EQ_INT(factor(&f, e.s, n), HONE_CANCELLED);
  f.watch = (hone_watch){.deadline_s = 0.0};
  CHECK_EQ_INT(factor(&f, e.s, n), HONE_OK); /* and begins anew after that */
  check_exact_factors(&f, &e);
  close_lu(&f);
  free_exact(&e);
}

/* State and memory ------------------------------------------------------- */

static void remembers_nothing_of_the_matrix_before(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = 129;
  sup_rng rng = {13};
  const bool exchange = can_exchange(engine, 32, n);
  exact good = make_exact(&rng, n, -1, exchange);
  exact bad = make_exact(&rng, n, 40, exchange);
  double *x = sup_filled(n, 0.25), *v = sup_filled(n, 0.0), unit;
  lu f;
  open_lu(&f, engine, n, 32, 1);
  multiply(&good, true, 1, x, v, &unit);
  bad.s[3 + n] = 1e39;
  for (int round = 0; round < 3; round++) {
    CHECK_EQ_INT(factor(&f, bad.s, n), HONE_OK);
    CHECK_EQ_INT(factor(&f, good.s, n), HONE_OK);
    check_exact_factors(&f, &good);
    check_exact_solve(&f, true, 1, x, v, unit);
  }
  close_lu(&f);
  sup_free(x);
  sup_free(v);
  free_exact(&good);
  free_exact(&bad);
}

static void says_how_much_memory_it_holds(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  static const int64_t columns[] = {1, 3, 4, 64};
  for (int64_t n = 1; n <= 200; n += 99) {
    double *s = sup_filled(n * n, 0.0), *v = sup_filled(n * MOST, 0.5);
    for (int64_t i = 0; i < n; i++)
      s[i + i * n] = 1.0;
    for (int k = 0; k < 4; k++) {
      lu f;
      open_lu(&f, engine, n, 0, 1);
      CHECK_EQ_INT(factor(&f, s, n), HONE_OK);
      CHECK_EQ_INT(engine->solve(f.self, false, columns[k], v, n), HONE_OK);
      /* Beside what was asked for, up to 100 bytes an allocation. */
      CHECK_LE(f.mem.peak, engine->bytes(n, columns[k]) + 1000);
      close_lu(&f);
    }
    sup_free(s);
    sup_free(v);
  }
}

static void *refuse(size_t bytes, void *ctx) {
  int *left = ctx;
  return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void release(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

static void survives_every_failed_allocation(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  int st = HONE_NO_MEMORY;
  for (int k = 0; st != HONE_OK && k < 20; k++) {
    int left = k;
    hone_mem mem = {.alloc = refuse, .free = release, .ctx = &left};
    hone_watch watch = {.deadline_s = 0.0};
    const hone_engine_config config = {.n = 50, .mem = &mem, .watch = &watch};
    void *self = &left;
    st = engine->create(&self, &config);
    if (st == HONE_OK) {
      CHECK(k > 0);
      engine->destroy(self, &mem);
    } else {
      CHECK_EQ_INT(st, HONE_NO_MEMORY);
      CHECK(self == NULL);
    }
    CHECK_EQ_INT(mem.held, 0);
  }
  CHECK_EQ_INT(st, HONE_OK);
}

/* The list --------------------------------------------------------------- */

#define ENTRY(name)                                                            \
  { #name, name }
static const struct {
  const char *name;
  void (*run)(const void *engine);
} checks[] = {
    ENTRY(solves_exactly_where_the_arithmetic_is),
    ENTRY(solves_exactly_with_several_threads),
    ENTRY(agrees_with_sgetrf),
    ENTRY(reports_growth_to_the_last_digit),
    ENTRY(names_the_first_zero_pivot),
    ENTRY(counts_what_vanishes_in_single),
    ENTRY(flushes_by_the_scaled_value),
    ENTRY(growth_is_not_finite_after_overflow),
    ENTRY(gives_up_on_what_single_cannot_hold),
    ENTRY(stops_between_block_columns_when_told),
    ENTRY(remembers_nothing_of_the_matrix_before),
    ENTRY(says_how_much_memory_it_holds),
    ENTRY(survives_every_failed_allocation),
};

CT_CONSTRUCTOR static void register_checks(void) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    ct_register("engine_host/lu", checks[i].name, checks[i].run,
                &hone_engine_single);
    ct_register("engine_cuda/lu", checks[i].name, checks[i].run,
                &hone_engine_single_cuda);
  }
}
