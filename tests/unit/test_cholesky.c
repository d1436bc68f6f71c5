/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision Cholesky engines, that of the host and that of CUDA: the
   same checks for both. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/dense.h"
#include "base/engine.h"

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

/* An engine with all that it needs
 * --------------------------------------------- */

typedef struct chol {
  const hone_engine *engine;
  void *self;
  hone_mem mem;
  hone_watch watch;
  hone_engine_config config;
  hone_factor_info info;
} chol;

static void open_chol(chol *f, const hone_engine *engine, int64_t n,
                      int64_t block) {
  *f = (chol){.engine = engine};
  f->config = (hone_engine_config){
      .n = n, .mem = &f->mem, .watch = &f->watch, .block = block};
  if (!CHECK_EQ_INT(engine->create(&f->self, &f->config), HONE_OK))
    abort();
}

static void close_chol(chol *f) {
  f->engine->destroy(f->self, &f->mem);
  CHECK_EQ_INT(f->mem.held, 0);
}

static int factor(chol *f, const double *a) {
  const int64_t n = f->config.n;
  double *ones = sup_filled(n, 1.0);
  int *zeros = calloc((size_t)n, sizeof *zeros);
  if (zeros == NULL)
    abort();
  const hone_matrix matrix = *sup_matrix(n, n, a);
  const hone_scaling scaling = {ones, ones, zeros, zeros, false};
  memset(&f->info, 0x5a, sizeof f->info);
  int st = f->engine->factor(f->self, &matrix, &scaling, &f->info);
  sup_free(ones);
  free(zeros);
  return st;
}

static const int64_t orders[] = {1,   2,   3,   31,  127, 128,
                                 129, 200, 257, 500, 700};
static const int64_t blocks[] = {0, 1, 31, 64, 100, 300, 1000};
enum {
  ORDERS = sizeof orders / sizeof *orders,
  BLOCKS = sizeof blocks / sizeof *blocks
};

/* Not applicable, or too slow on the emulated device. */
static bool skipped(const hone_engine *engine, int64_t n, int64_t block) {
  return block > n || (engine == &hone_engine_cholesky_cuda && sup_emulated() &&
                       block > 0 && n / block > 40);
}

/* An emulated device takes one of the four places of a pivot for each order and
   block size; each place has its turn. */
static bool not_its_turn(const hone_engine *engine, int at) {
  return engine == &hone_engine_cholesky_cuda && sup_emulated() && at % 4 != 0;
}

/* The condition is 10, and v has entries up to 1/2. The solve is repeated with
   the transpose, which must give the same. */
static void check_solution(chol *f, const double *s, const double *x) {
  const int64_t n = f->config.n;
  double *v = sup_filled(2 * n, 0.0), *t = v + n;
  sup_multiply(n, s, n, false, x, v);
  memcpy(t, v, (size_t)n * sizeof *v);
  CHECK_EQ_INT(f->engine->solve(f->self, false, 1, v, n), HONE_OK);
  CHECK_EQ_INT(f->engine->solve(f->self, true, 1, t, n), HONE_OK);
  CHECK_LE(sup_forward_error(n, v, x), (10.0 + (double)n) * EPS_SP * 10.0);
  CHECK_MEM_EQ(v, t, (size_t)n * sizeof *v);
  sup_free(v);
}

static void solves_random_systems(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o++) {
    const int64_t n = orders[o];
    sup_rng rng = {(uint64_t)n};
    double *s = sup_filled(n * n, 0.0), *x = sup_filled(n, 0.0), top = 0.0;
    sup_matrix_spd(&rng, n, 10.0, s);
    sup_random(&rng, n, 1, x, n);
    for (int64_t i = 0; i < n; i++)
      top = fmax(top, s[i + i * n]);
    for (int b = 0; b < BLOCKS; b++) {
      chol f;
      if (skipped(engine, n, blocks[b]))
        continue;
      ct_note("n = %d, block %d", (int)n, (int)blocks[b]);
      open_chol(&f, engine, n, blocks[b]);
      CHECK_EQ_INT(factor(&f, s), HONE_OK);
      CHECK_EQ_INT(f.info.zero_pivot, -1);
      CHECK(!f.info.hopeless);
      CHECK_LE(f.info.growth, 1.0 + 1e-5);
      CHECK_GE(f.info.growth, s[0] / top * (1.0 - 1e-5)); /* u_00^2 = s_00 */
      check_solution(&f, s, x);
      close_chol(&f);
    }
    sup_free(s);
    sup_free(x);
  }
}

/* Many columns at once, in whatever blocks the engine solves them. */
static void solves_for_many_columns(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 150, MOST = 20, LDV = N + 3 };
  sup_rng rng = {7};
  double *s = sup_filled(N * N, 0.0), *x = sup_filled(N * MOST, 0.0);
  double *v = sup_filled(LDV * MOST, 0.25);
  sup_matrix_spd(&rng, N, 10.0, s);
  sup_random(&rng, N, MOST, x, N);
  chol f;
  open_chol(&f, engine, N, 0);
  CHECK_EQ_INT(factor(&f, s), HONE_OK);
  for (int64_t c = 0; c < MOST; c++)
    sup_multiply(N, s, N, false, x + c * N, v + c * LDV);
  CHECK_EQ_INT(engine->solve(f.self, false, MOST, v, LDV), HONE_OK);
  for (int64_t c = 0; c < MOST; c++) {
    CHECK_LE(sup_forward_error(N, v + c * LDV, x + c * N), 100 * EPS_SP * 10.0);
    CHECK(sup_untouched(v + c * LDV + N, LDV - N, 0.25));
  }
  close_chol(&f);
  sup_free(s);
  sup_free(x);
  sup_free(v);
}

static void looks_at_one_triangle_alone(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 300 };
  sup_rng rng = {8};
  double *s = sup_filled(N * N, 0.0), *v = sup_filled(2 * N, 0.5), *w = v + N;
  sup_matrix_spd(&rng, N, 10.0, s);
  for (int b = 0; b < BLOCKS; b++) {
    chol f;
    if (skipped(engine, N, blocks[b]))
      continue;
    ct_note("block %d", (int)blocks[b]);
    for (int64_t i = 0; i < 2 * N; i++)
      v[i] = 0.5;
    open_chol(&f, engine, N, blocks[b]);
    CHECK_EQ_INT(factor(&f, s), HONE_OK);
    CHECK_EQ_INT(engine->solve(f.self, false, 1, v, N), HONE_OK);
    double *other = sup_copy(s, N * N);
    for (int64_t j = 0; j < N; j++)
      for (int64_t i = 0; i < j; i++) /* the lower one is read */
        other[i + j * N] = 1e-3 * (double)(j - i);
    CHECK_EQ_INT(factor(&f, other), HONE_OK);
    CHECK_EQ_INT(engine->solve(f.self, false, 1, w, N), HONE_OK);
    CHECK_MEM_EQ(v, w, N * sizeof *v);
    sup_free(other);
    close_chol(&f);
  }
  sup_free(s);
  sup_free(v);
}

static void names_the_first_pivot_not_positive(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o += 2) {
    const int64_t n = orders[o];
    const int64_t places[] = {0, n / 3, n / 2, n - 1};
    sup_rng rng = {9};
    double *s = sup_filled(n * n, 0.0);
    sup_matrix_spd(&rng, n, 10.0, s);
    for (int at = 0; at < 4 * BLOCKS; at++) {
      const int64_t block = blocks[at / 4], c = places[at % 4];
      const double bad[] = {-1.0, 0.0, (double)NAN}, old = s[c + c * n];
      chol f;
      if (skipped(engine, n, block) || not_its_turn(engine, at + o / 2))
        continue;
      ct_note("n = %d, block %d, pivot %d", (int)n, (int)block, (int)c);
      open_chol(&f, engine, n, block);
      s[c + c * n] = bad[(at + at / 4) % 3];
      CHECK_EQ_INT(factor(&f, s), HONE_OK);
      CHECK_EQ_INT(f.info.zero_pivot, c);
      s[c + c * n] = old; /* a later factorization is not affected */
      CHECK_EQ_INT(factor(&f, s), HONE_OK);
      CHECK_EQ_INT(f.info.zero_pivot, -1);
      CHECK_LE(f.info.growth, 1.0 + 1e-5);
      close_chol(&f);
    }
    sup_free(s);
  }
}

static void does_not_hide_an_overflow(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 150 };
  const int64_t rows[] = {0, N / 3, N - 1}, columns[] = {N - 1, N / 2, N - 1};
  for (int at = 0; at < 3; at++) {
    sup_rng rng = {10};
    double *s = sup_filled(N * N, 0.0);
    chol f;
    sup_matrix_spd(&rng, N, 10.0, s);
    s[rows[at] + N * columns[at]] = s[columns[at] + N * rows[at]] = 1e39;
    open_chol(&f, engine, N, at == 1 ? 64 : 0);
    CHECK_EQ_INT(factor(&f, s), HONE_OK);
    CHECK(f.info.zero_pivot >= 0 || !(f.info.growth <= DBL_MAX));
    close_chol(&f);
    sup_free(s);
  }
}

/* u_cc^2 is judged as the pivots of LU are. */
static void judges_pivots_as_lu_does(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 600 };
  sup_rng rng = {11};
  double *s = sup_filled(N * N, 0.0);
  for (int at = 0; at < 2; at++) {
    chol f;
    memset(s, 0, (size_t)(N * N) * sizeof *s);
    for (int64_t i = 0; i < N; i++) /* from 1 down to 1e-6 or 1e-12 */
      s[i + i * N] = pow(at ? 1e-12 : 1e-6, (double)i / N);
    open_chol(&f, engine, N, 64);
    CHECK_EQ_INT(factor(&f, s), HONE_OK);
    CHECK_EQ_INT(f.info.hopeless, at);
    close_chol(&f);
  }
  sup_matrix_spd(&rng, N, 1e4, s);
  chol f;
  open_chol(&f, engine, N, 64);
  CHECK_EQ_INT(factor(&f, s), HONE_OK);
  CHECK(!f.info.hopeless);
  CHECK_EQ_INT(f.info.zero_pivot, -1);
  f.watch.deadline_s = hone_now_s() - 1.0;
  CHECK_EQ_INT(factor(&f, s), HONE_CANCELLED);
  close_chol(&f);
  sup_free(s);
}

static void *refuse(size_t bytes, void *ctx) {
  int *left = ctx;
  return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void release(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

static void holds_no_more_memory_than_it_says(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int64_t n = 1; n <= 601; n += 300) {
    double *s = sup_filled(n * n, 0.0), *v = sup_filled(n * 64, 0.5);
    chol f;
    for (int64_t i = 0; i < n; i++)
      s[i + i * n] = 1.0;
    open_chol(&f, engine, n, 0);
    CHECK_EQ_INT(factor(&f, s), HONE_OK);
    CHECK_EQ_INT(engine->solve(f.self, false, 64, v, n), HONE_OK);
    CHECK(sup_untouched(v, 64 * n, 0.5));
    CHECK_LE(f.mem.peak, engine->bytes(n, 64) + 1000);
    close_chol(&f);
    sup_free(s);
    sup_free(v);
  }
  int st = HONE_NO_MEMORY;
  for (int k = 0; st != HONE_OK && k < 20; k++) {
    int left = k;
    hone_mem mem = {.alloc = refuse, .free = release, .ctx = &left};
    const hone_engine_config config = {.n = 50, .mem = &mem};
    void *self = &left;
    st = engine->create(&self, &config);
    if (st == HONE_OK)
      engine->destroy(self, &mem);
    CHECK(st == HONE_OK ? k > 0 : st == HONE_NO_MEMORY && self == NULL);
    CHECK_EQ_INT(mem.held, 0);
  }
  CHECK_EQ_INT(st, HONE_OK);
}

#define ENTRY(name)                                                            \
  { #name, name }
static const struct {
  const char *name;
  void (*run)(const void *engine);
} checks[] = {
    ENTRY(solves_random_systems),
    ENTRY(solves_for_many_columns),
    ENTRY(looks_at_one_triangle_alone),
    ENTRY(names_the_first_pivot_not_positive),
    ENTRY(does_not_hide_an_overflow),
    ENTRY(judges_pivots_as_lu_does),
    ENTRY(holds_no_more_memory_than_it_says),
};

CT_CONSTRUCTOR static void register_checks(void) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    ct_register("engine_host/cholesky", checks[i].name, checks[i].run,
                &hone_engine_cholesky);
    ct_register("engine_cuda/cholesky", checks[i].name, checks[i].run,
                &hone_engine_cholesky_cuda);
  }
}
