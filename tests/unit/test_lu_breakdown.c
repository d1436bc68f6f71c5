/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision LU engines where a factorization breaks down, stops
   early or fails, and their state after that. */
#include "tests/unit/lu_engine.h"

#include <float.h>
#include <math.h>

/* Breakdown ---------------------------------------------------------------- */

static void names_the_first_zero_pivot(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  for (int o = 0; o < ORDERS; o++) {
    const int64_t n = lu_orders[o];
    const int64_t places[] = {0, n / 3, n / 2, n - 1};
    for (int at = 0; at < 4 * BLOCKS; at++) {
      sup_rng rng = {(uint64_t)at};
      const int64_t block = lu_block(at / 4, n);
      if (lu_too_slow(engine, block, n) || lu_not_its_turn(engine, at + o, 4))
        continue;
      exact e = exact_make(&rng, n, places[at % 4],
                           lu_can_exchange(engine, block, n));
      lu f;
      ct_note("n = %d, block %d, pivot %d", (int)n, (int)block,
              (int)places[at % 4]);
      lu_open(&f, engine, n, block, 1);
      CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_OK);
      CHECK_EQ_INT(f.info.zero_pivot, places[at % 4]);
      lu_close(&f);
      exact_lu_free(&e);
    }
  }
}

/* Below the diagonal of every second column of the identity stand entries that
   underflow in single precision, and four that do not. In half of the cases
   rows and columns of A have different units. */
static void counts_entries_that_underflow_in_single(const void *arg) {
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
    if (lu_not_its_turn(engine, at + at / 2 + 1, 2)) /* 1 and 2 have all */
      continue;
    lu_open(&f, engine, N, at % 2 ? 64 : 0, at < 2 ? 3 : 1);
    for (int i = 0; at == 2 && i < N * N; i++)
      s[i] = ldexp(s[i], i % N % 7 + i / N % 5);
    for (int i = 0; at >= 2 && i < N; i++)
      lu_set_scale(&f, i, -(i % 7), -(i % 5));
    CHECK_EQ_INT(lu_factor(&f, s, N), HONE_OK);
    CHECK_EQ_INT(f.info.flushed, (N + 1) / 2 * (LISTED - KEPT));
    CHECK_EQ_INT(f.info.zero_pivot, -1);
    lu_close(&f);
  }
  sup_free(s);
}

/* A matrix of order 1: a scaled entry below FLT_MIN becomes 0. */
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
    lu_open(&f, engine, 1, 0, 1);
    lu_set_scale(&f, 0, cases[i].row_exp, cases[i].col_exp);
    CHECK_EQ_INT(lu_factor(&f, &cases[i].a, 1), HONE_OK);
    CHECK_EQ_INT(f.info.flushed, cases[i].flushed);
    CHECK_EQ_INT(f.info.zero_pivot, cases[i].flushed ? 0 : -1);
    lu_close(&f);
  }
}

static void growth_is_not_finite_after_overflow(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  enum { N = 150 };
  for (int at = 0; at < 4 * BLOCKS; at++) {
    sup_rng rng = {5};
    if (at % 4 == 3 && lu_one_panel(lu_block(at / 4, N), N))
      continue; /* the transpose of the matrix below does not grow */
    if (lu_too_slow(engine, lu_block(at / 4, N), N))
      continue;
    double *s = sup_filled(N * N, 0.0);
    if (at % 4 < 3) { /* 1e39 in the first column, inside, in the last one */
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
    ct_note("case %d, block %d", at % 4, (int)lu_block(at / 4, N));
    lu_open(&f, engine, N, lu_block(at / 4, N), 1);
    CHECK_EQ_INT(lu_factor(&f, s, N), HONE_OK);
    CHECK(!(f.info.growth <= DBL_MAX));
    lu_close(&f);
    sup_free(s);
  }
}

/* Stopping early ----------------------------------------------------------- */

typedef struct listener {
  int events, stop_at; /* number of the event that asks to stop; -1: none */
  double last;         /* fraction of the last event */
  bool in_order;
} listener;

static int listen(void *user, const hone_progress *event) {
  listener *l = user;
  l->in_order = l->in_order && strcmp(event->phase, "factor") == 0 &&
                event->fraction >= l->last && event->fraction < 1.0;
  l->last = event->fraction;
  return l->events++ == l->stop_at;
}

static void watch_progress(lu *f, listener *l, int stop_at) {
  *l = (listener){.stop_at = stop_at, .in_order = true};
  f->watch = (hone_watch){.progress = listen, .user = l};
}

enum { JUDGED = 600, JUDGED_BLOCK = 64, JUDGED_BLOCKS = 10 };

static void check_verdict(const hone_engine *engine, const char *name,
                          const double *s, bool hopeless) {
  lu f;
  listener l;
  lu_open(&f, engine, JUDGED, JUDGED_BLOCK, 1);
  watch_progress(&f, &l, -1);
  ct_note("%s", name);
  CHECK_EQ_INT(lu_factor(&f, s, JUDGED), HONE_OK);
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
  lu_close(&f);
}

static void gives_up_where_pivots_fall_too_fast(const void *arg) {
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
  exact e = exact_make(&rng, n, -1, lu_can_exchange(engine, block, n));
  lu f;
  listener l;
  lu_open(&f, engine, n, block, 1);
  for (int stop_at = 0; stop_at < 4; stop_at++) {
    watch_progress(&f, &l, stop_at);
    CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_CANCELLED);
    CHECK_EQ_INT(l.events, stop_at + 1);
    CHECK_NEAR(l.last, (double)(stop_at * block) / (double)n, 1e-15);
    CHECK(l.in_order);
  }
  f.watch = (hone_watch){.deadline_s = hone_now_s() - 1.0};
  CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_CANCELLED);
  f.watch = (hone_watch){.deadline_s = 0.0};
  /* The next factorization starts anew. */
  CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_OK);
  exact_check_factors(&f, &e);
  lu_close(&f);
  exact_lu_free(&e);
}

/* State and memory --------------------------------------------------------- */

static void remembers_nothing_of_the_matrix_before(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  const int64_t n = 129;
  sup_rng rng = {13};
  const bool exchange = lu_can_exchange(engine, 32, n);
  exact good = exact_make(&rng, n, -1, exchange);
  exact bad = exact_make(&rng, n, 40, exchange);
  double *x = sup_filled(n, 0.25), *v = sup_filled(n, 0.0), unit;
  lu f;
  lu_open(&f, engine, n, 32, 1);
  exact_multiply(&good, true, 1, x, v, &unit);
  bad.s[3 + n] = 1e39;
  for (int round = 0; round < 3; round++) {
    CHECK_EQ_INT(lu_factor(&f, bad.s, n), HONE_OK);
    CHECK_EQ_INT(lu_factor(&f, good.s, n), HONE_OK);
    exact_check_factors(&f, &good);
    exact_check_solve(&f, true, 1, x, v, unit);
  }
  lu_close(&f);
  sup_free(x);
  sup_free(v);
  exact_lu_free(&good);
  exact_lu_free(&bad);
}

static void holds_no_more_memory_than_announced(const void *arg) {
  const hone_engine *engine = arg;
  NEED(engine);
  static const int64_t columns[] = {1, 3, 4, 64};
  for (int64_t n = 1; n <= 200; n += 99) {
    double *s = sup_filled(n * n, 0.0), *v = sup_filled(n * MOST, 0.5);
    for (int64_t i = 0; i < n; i++)
      s[i + i * n] = 1.0;
    for (int k = 0; k < 4; k++) {
      lu f;
      lu_open(&f, engine, n, 0, 1);
      CHECK_EQ_INT(lu_factor(&f, s, n), HONE_OK);
      CHECK_EQ_INT(engine->solve(f.self, false, columns[k], v, n), HONE_OK);
      /* Each allocation may take 100 bytes more than was asked for. */
      CHECK_LE(f.mem.peak, engine->bytes(n, columns[k]) + 1000);
      lu_close(&f);
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

#define ENTRY(name)                                                            \
  { #name, name }
static const lu_check checks[] = {
    ENTRY(names_the_first_zero_pivot),
    ENTRY(counts_entries_that_underflow_in_single),
    ENTRY(flushes_by_the_scaled_value),
    ENTRY(growth_is_not_finite_after_overflow),
    ENTRY(gives_up_where_pivots_fall_too_fast),
    ENTRY(stops_between_block_columns_when_told),
    ENTRY(remembers_nothing_of_the_matrix_before),
    ENTRY(holds_no_more_memory_than_announced),
    ENTRY(survives_every_failed_allocation),
};

CT_CONSTRUCTOR static void register_checks(void) {
  lu_register(checks, sizeof checks / sizeof *checks);
}
