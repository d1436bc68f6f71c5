/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes that an engine makes where it keeps A: against the same probes
   made of its products and solves, and how many vectors are wanted of it. */
#include "base/engine.h"
#include "base/numbers.h"
#include "refine/relaxation.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

enum { N = 131, VECTORS = 6, SOLUTIONS = 3, COLUMNS = VECTORS + SOLUTIONS };

typedef struct trial {
  const hone_matrix *a;
  const double *entries;
  int64_t lda;
  const hone_engine *engine;
  void *self;
  bool slow; /* one direction is left, and the second step relaxes */
  hone_probe_step step;
  double *v; /* N x COLUMNS: the vectors, then the solutions */
  double *h; /* N x SOLUTIONS */
} trial;

/* p = op(S) v for one column, or h - op(S) v. */
static void multiply(const trial *t, const double *h, const double *v,
                     double *p) {
  const hone_scaling *s = t->step.scaling;
  for (int64_t i = 0; i < N; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < N; j++) {
      const int64_t row = t->step.trans ? j : i, col = t->step.trans ? i : j;
      const double by = s->used ? s->row[row] * s->col[col] : 1.0;
      sum += by * t->entries[row + col * t->lda] * v[j];
    }
    p[i] = h ? h[i] - sum : sum;
  }
}

/* Makes the step by solves of the engine, omega times if it relaxes, by the
   last vector that is not used any more. */
static void step_by_solves(trial *t) {
  double *p = sup_filled(N * COLUMNS, 0.0), omega = 1.0;
  for (int64_t c = 0; c < COLUMNS; c++)
    multiply(t, c < VECTORS ? NULL : t->h + (c - VECTORS) * N, t->v + c * N,
             p + c * N);
  CHECK_EQ_INT(t->engine->solve(t->self, t->step.trans, COLUMNS, p, N),
               HONE_OK);
  if (t->step.relaxes) {
    const int64_t u = (t->step.dropped - 1) * N;
    omega = hone_relaxation_by(N, t->v + u, p + u);
    CHECK_NEAR(t->step.excess, omega - 1.0, 1e-6 * fabs(omega - 1.0));
    CHECK(!(fabs(omega - 1.0) <= 1e-3)); /* it makes a difference here */
  }
  for (int64_t e = 0; e < N * COLUMNS; e++)
    t->v[e] += omega * (e < N * VECTORS ? -p[e] : p[e]);
  sup_free(p);
}

static double squares_of(int64_t count, const double *v) {
  double sum = 0.0;
  for (int64_t e = 0; e < count; e++)
    sum += v[e] * v[e];
  return sum;
}

/* Returns the 1-norm of the column of inv(S) to which the gradient at y points,
   by solves of the engine. */
static double norm_by_gradient(const trial *t, const double *y) {
  double z[N], sum = 0.0;
  int64_t at = 0;
  for (int64_t i = 0; i < N; i++)
    z[i] = y[i] >= 0.0 ? 1.0 : -1.0;
  CHECK_EQ_INT(t->engine->solve(t->self, true, 1, z, N), HONE_OK);
  for (int64_t i = 0; i < N; i++)
    at = fabs(z[i]) > fabs(z[at]) ? i : at;
  memset(z, 0, sizeof z);
  z[at] = 1.0;
  CHECK_EQ_INT(t->engine->solve(t->self, false, 1, z, N), HONE_OK);
  for (int64_t i = 0; i < N; i++)
    sum += fabs(z[i]);
  return sum;
}

/* The vectors of the second step are differences of numbers of size 1e-7 that
   were themselves computed to eps: they agree to about 1e-8. */
static void compare(const trial *t, double tolerance) {
  const int64_t from = t->step.dropped;
  const double squares = squares_of(N * (VECTORS - from), t->v + from * N);
  const double *rows = t->step.row_squares;
  double largest = 0.0, y[N], norm = 0.0;
  const hone_probed wanted = {SOLUTIONS - 1, y, &norm, SOLUTIONS - 1};
  for (int64_t e = from * N; e < N * VECTORS; e++)
    largest = fmax(largest, fabs(t->v[e]));
  const double first = squares_of(N, t->v + from * N);
  CHECK_NEAR(t->step.squares, squares, tolerance * squares);
  CHECK_NEAR(t->step.first_squares, first, tolerance * squares);
  CHECK_NEAR(t->step.largest, largest, tolerance * largest);
  CHECK_EQ_INT(t->engine->probed(t->self, &t->step, &wanted), HONE_OK);
  for (int64_t i = 0; i < N; i++) {
    double sum = 0.0;
    for (int64_t c = from; c < VECTORS; c++)
      sum += t->v[i + c * N] * t->v[i + c * N];
    CHECK_NEAR(rows[i], sum, tolerance * squares);
  }
  for (int64_t c = 0; c < SOLUTIONS; c++) {
    const double size = squares_of(N, t->v + (VECTORS + c) * N);
    CHECK_NEAR(t->step.solution_squares[c], size, 1e-9 * size);
    for (int64_t i = 0; c == wanted.solution && i < N; i++)
      CHECK_NEAR(y[i], t->v[i + (VECTORS + c) * N], 1e-9 * sqrt(size));
  }
  if (!t->step.trans)
    CHECK_NEAR(norm, norm_by_gradient(t, y), 1e-9 * norm);
}

static void check_steps(trial *t, bool trans, const hone_scaling *scaling) {
  uint64_t seed = 11, other = 12;
  double rows[N];
  t->step = (hone_probe_step){.scaling = scaling,
                              .trans = trans,
                              .vectors = VECTORS,
                              .solutions = SOLUTIONS,
                              .seed = seed,
                              .solutions_seed = other,
                              .row_squares = rows};
  memset(t->v, 0, N * COLUMNS * sizeof *t->v);
  for (int64_t c = 0; c < VECTORS; c++)
    hone_probe_draw(N, &seed, t->v + c * N);
  for (int64_t c = 0; c < SOLUTIONS; c++)
    hone_probe_draw(N, &other, t->h + c * N);
  for (int k = 0; k < 3; k++) {
    t->step.first = k == 0;
    t->step.relaxes = t->slow && k == 1;
    t->step.dropped = k == 2 ? VECTORS / 2 : t->step.relaxes ? 2 : 0;
    t->step.estimates = k == 1 && !trans;
    t->step.from = 1;
    const double norm =
        t->step.estimates ? norm_by_gradient(t, t->v + (VECTORS + 1) * N) : 0.0;
    REQUIRE(t->engine->probe_step(t->self, t->a, &t->step) == HONE_OK);
    if (t->step.estimates)
      CHECK_NEAR(t->step.inverse_norm, norm, 1e-9 * norm);
    step_by_solves(t);
    compare(t, k == 0 ? 1e-6 : k == 1 ? 1e-3 : 1e-2);
  }
}

/* slow: A has one small singular value, which factors in single precision do
   not resolve. */
static void check_probes(bool slow) {
  char why[128];
  const hone_engine *engine = &hone_engine_single_cuda;
  if (!engine->probe(why, sizeof why))
    SKIP(why);
  const int64_t lda = N + 2;
  sup_rng rng = {3};
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_factor_info info;
  void *self = NULL;
  double *a = sup_filled(lda * N, 0.0), *other = sup_filled(lda * N, 1.0);
  double *v = sup_filled(N * COLUMNS, 0.0), *h = sup_filled(N * SOLUTIONS, 0.0);
  double row[N], col[N];
  hone_scaling scaling = {.row = row, .col = col, .used = true};
  const hone_scaling none = {.used = false};
  if (slow)
    sup_matrix_cond(&rng, N, SUP_ONE_SMALL, 3e6, a, lda);
  else
    sup_random(&rng, N, N, a, lda);
  for (int64_t i = 0; i < N; i++) {
    row[i] = ldexp(1.0, (int)(i % 5) - 2);
    col[i] = ldexp(1.0, (int)(i % 3) - 1);
  }
  const hone_engine_config config = {.n = N, .mem = &mem, .watch = &watch};
  REQUIRE(engine->create(&self, &config) == HONE_OK);
  for (int scaled = 0; scaled < 2; scaled++) {
    const hone_matrix *matrix = sup_matrix(N, lda, a);
    REQUIRE(engine->factor(self, matrix, scaled ? &scaling : NULL, &info) ==
            HONE_OK);
    trial t = {.a = matrix,
               .entries = a,
               .lda = lda,
               .engine = engine,
               .self = self,
               .slow = slow,
               .v = v,
               .h = h};
    for (int trans = 0; trans < 2; trans++)
      check_steps(&t, trans, scaled ? &scaling : &none);
    CHECK_EQ_INT(engine->probe_step(self, sup_matrix(N, lda, other), &t.step),
                 HONE_NO_DEVICE);
  }
  engine->destroy(self, &mem);
  CHECK_EQ_INT(mem.held, 0);
  sup_free(a);
  sup_free(other);
  sup_free(v);
  sup_free(h);
}

TEST(engine_cuda, makes_probes_as_products_and_solves_make_them) {
  check_probes(false);
}

TEST(engine_cuda, relaxes_probes_as_they_are_relaxed_with_solves) {
  check_probes(true);
}

enum { SHORT = 12 };

/* A device whose steps leave bounds as they are written here. */
static struct {
  const double *bound;
  int vectors, steps, dropped[HONE_PROBE_POWERS], solutions[HONE_PROBE_POWERS];
  bool estimates[HONE_PROBE_POWERS], relaxes[HONE_PROBE_POWERS];
  int alone, fetched; /* estimates of no step, solutions */
} device_script;

static int scripted_step(void *self, const hone_matrix *a,
                         hone_probe_step *step) {
  (void)self;
  (void)a;
  const int k = device_script.steps++;
  const double root = device_script.bound[k] /
                      hone_probe_factor_of(step->vectors - step->dropped, 1.0);
  device_script.vectors = step->vectors;
  device_script.dropped[k] = step->dropped;
  device_script.solutions[k] = step->solutions;
  step->squares = root * root;
  step->largest = 1e-3;
  step->excess = step->relaxes ? 0.25 : 0.0;
  step->first_squares = device_script.bound[0] > 100.0 ? 64.1 : 63.9;
  device_script.estimates[k] = step->estimates;
  device_script.relaxes[k] = step->relaxes;
  for (int i = 0; i < SHORT; i++)
    step->row_squares[i] = 1e-8;
  for (int c = 0; c < HONE_SOLUTIONS_MOST; c++)
    step->solution_squares[c] = 1.0;
  return HONE_OK;
}

static int scripted_probed(void *self, const hone_probe_step *step,
                           const hone_probed *wanted) {
  (void)self;
  (void)step;
  device_script.alone += wanted->inverse_norm != NULL;
  device_script.fetched += wanted->solution >= 0;
  return HONE_OK;
}

static const hone_engine scripted = {.name = "scripted",
                                     .precision = 32,
                                     .probe_step = scripted_step,
                                     .probed = scripted_probed};
static const hone_scaling unscaled = {.used = false};
static const hone_matrix short_matrix = {.n = SHORT};
static const hone_factored scripted_factors = {.engine = &scripted,
                                               .a = &short_matrix,
                                               .scaling = &unscaled,
                                               .use_copy = true};

/* Most of the vectors are dropped where the bounds so far promise that the
   others suffice; a bound is that of the vectors which are left. Where the
   first one is longer than 8, the second power has it less, and is relaxed by
   it. */
TEST(probes, on_a_device_become_fewer_where_fewer_will_do) {
  enum { ALL = HONE_PROBES_DEVICE, BUT_ONE = ALL - 1, FEW = 7 };
  enum { MOST = 4 };
  static const struct {
    double bound[MOST];
    int power, left[MOST]; /* left: vectors of each step */
  } cases[] = {{{0.5}, 1, {ALL}},
               {{2.0, 0.1}, 2, {ALL, FEW}},
               {{4.0, 0.1}, 2, {ALL, FEW}},
               {{4.1, 0.1}, 2, {ALL, ALL}},
               {{93.0, 5.6, 0.4}, 3, {ALL, ALL, ALL}},
               {{101.0, 5.6, 0.4}, 3, {ALL, BUT_ONE, BUT_ONE}},
               {{101.0, 0.95, 0.03}, 3, {ALL, BUT_ONE, BUT_ONE}},
               {{93.0, 1.0, 0.04}, 3, {ALL, ALL, ALL}},
               {{130.0, 1.0, 0.01}, 3, {ALL, BUT_ONE, FEW}},
               {{3.0, 1.0, 0.1}, 3, {ALL, FEW, FEW}},
               {{5.0, 1.0, 0.1}, 3, {ALL, ALL, ALL}}};
  hone_entry *scratch = sup_filled(hone_probe_scratch(SHORT, true), 0.0);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    double rows[SHORT];
    hone_contraction out = {.rows = rows};
    hone_probing probing = {
        .f = &scripted_factors, .seed = 7, .scratch = scratch};
    const double *bound = cases[c].bound;
    device_script.bound = bound;
    device_script.steps = 0;
    ct_note("case %d", (int)c);
    CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
    CHECK_EQ_INT(out.power, cases[c].power);
    CHECK_EQ_INT(device_script.steps, out.power);
    for (int k = 0; k < out.power; k++) {
      CHECK_EQ_INT(ALL - device_script.dropped[k], cases[c].left[k]);
      CHECK_EQ_INT(device_script.relaxes[k], k == 1 && bound[0] > 100.0);
    }
    const int t = cases[c].left[out.power - 1];
    const double last = cases[c].bound[out.power - 1];
    CHECK_NEAR(out.bound, last, 1e-14 * last);
    const bool relaxed = bound[0] > 100.0;
    CHECK_NEAR(out.excess, relaxed ? 0.25 : 0.0, 0.0);
    double before = out.power < 2 ? 0.0 : bound[0];
    if (relaxed)
      before = 1.25 * bound[0] + 0.25;
    before += out.power > 2 ? bound[1] : 0.0;
    CHECK_NEAR(out.before, before, 1e-14 * before);
    const double largest = out.power > 1 ? 1e-3 : sqrt(3.0);
    CHECK_NEAR(rows[0],
               hone_probe_factor_of(t, SHORT) *
                   (1e-4 + sqrt(t) * HONE_EPS * largest),
               1e-14 * rows[0]);
  }
  sup_free(scratch);
}

/* From order 24,576 on, a run begins with 22 vectors. */
TEST(probes, on_a_device_are_more_for_a_large_matrix) {
  static const double bound[] = {0.5};
  for (int64_t n = 24575; n <= 24576; n++) {
    const hone_matrix a = {.n = n};
    const hone_factored f = {
        .engine = &scripted, .a = &a, .scaling = &unscaled, .use_copy = true};
    hone_entry *scratch = sup_filled(hone_probe_scratch(n, true), 0.0);
    double *rows = sup_filled(n, 0.0);
    hone_contraction out = {.rows = rows};
    hone_probing probing = {.f = &f, .seed = 7, .scratch = scratch};
    memset(&device_script, 0, sizeof device_script);
    device_script.bound = bound;
    CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
    CHECK_EQ_INT(device_script.vectors, n == 24576 ? 22 : 16);
    sup_free(rows);
    sup_free(scratch);
  }
}

/* The condition is estimated beside the second power, or alone where the first
   one suffices; the host sees a solution only where it begins from one; and
   solutions are corrected only where the first power leaves much. */
TEST(probes, on_a_device_estimate_the_condition_on_the_way) {
  enum { CASES = 5, H = HONE_SOLUTIONS_MOST };
  static const struct {
    double bound[3];
    int power, steps, corrected; /* solutions that the second power corrects */
  } cases[CASES] = {{{0.5}, 1, 1, 0},
                    {{2.0, 0.1}, 2, 2, 0},
                    {{3.9, 0.1}, 2, 2, 0},
                    {{4.1, 0.1}, 2, 2, H},
                    {{9.0, 1e6}, 0, 2, H}};
  hone_entry *scratch = sup_filled(hone_probe_scratch(SHORT, true), 0.0);
  for (int c = 0; c < 2 * CASES; c++) {
    const hone_scaling scaling = {.used = c >= CASES};
    const hone_factored f = {.engine = &scripted,
                             .a = &short_matrix,
                             .scaling = &scaling,
                             .use_copy = true};
    const int power = cases[c % CASES].power;
    double rows[SHORT];
    hone_contraction out = {.rows = rows};
    hone_probing probing = {
        .f = &f, .seed = 7, .scratch = scratch, .inverse = true};
    ct_note("case %d", c);
    memset(&device_script, 0, sizeof device_script);
    device_script.bound = cases[c % CASES].bound;
    CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
    CHECK_EQ_INT(out.power, power);
    CHECK_EQ_INT(device_script.steps, cases[c % CASES].steps);
    for (int k = 0; k < device_script.steps; k++)
      CHECK_EQ_INT(device_script.estimates[k], k == 1);
    CHECK_EQ_INT(device_script.solutions[0], H);
    if (device_script.steps > 1)
      CHECK_EQ_INT(device_script.solutions[1], cases[c % CASES].corrected);
    CHECK_EQ_INT(device_script.alone, device_script.steps == 1);
    CHECK(probing.estimated);
    CHECK_EQ_INT(device_script.fetched, power == 0 || scaling.used);
    CHECK_EQ_INT(probing.solution != NULL, device_script.fetched);
  }
  sup_free(scratch);
}

/* A first bound of up to 3000 does not end the run where deflation may
   follow, as one above 100 does on the host. */
TEST(probes, on_a_device_go_on_before_directions_are_deflated) {
  static const struct {
    double bound[3];
    int power, steps;
    bool cut_short;
  } cases[] = {{{2.9e3, 29.0, 0.2}, 3, 3, false}, {{3.1e3}, 0, 1, true}};
  hone_entry *scratch = sup_filled(hone_probe_scratch(SHORT, true), 0.0);
  for (int c = 0; c < 2; c++) {
    double rows[SHORT];
    hone_contraction out = {.rows = rows};
    hone_probing probing = {.f = &scripted_factors,
                            .seed = 7,
                            .scratch = scratch,
                            .deflation_follows = true};
    ct_note("case %d", c);
    memset(&device_script, 0, sizeof device_script);
    device_script.bound = cases[c].bound;
    CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
    CHECK_EQ_INT(out.power, cases[c].power);
    CHECK_EQ_INT(device_script.steps, cases[c].steps);
    CHECK(probing.cut_short == cases[c].cut_short);
  }
  sup_free(scratch);
}

/* A run that persists goes on at the rate of all powers. One may take hardly
   anything and the next one much: with two eigenvalues of E, or behind a
   relaxed one. The second one decides nothing, unless it takes nothing at all.
   (The first three lists are like those of matrices of order 400 and 600.)
   Another run ends earlier. */
TEST(probes, on_a_device_persist_at_the_rate_of_all_powers) {
  static const struct {
    double bound[HONE_PROBE_POWERS];
    int power, steps, otherwise; /* steps if the run does not persist */
  } cases[] = {{{92.6, 11.0, 7.8, 1.5, 0.7}, 5, 5, 3},
               {{196.0, 101.6, 43.4, 16.4, 5.8, 2.0, 0.67}, 7, 7, 2},
               {{99.0, 90.0, 28.0, 4.3, 0.8}, 5, 5, 2},
               {{99.0, 99.1}, 0, 2, 2},
               {{99.0, 98.9, 98.8}, 0, 3, 2},
               {{187.0, 5.0, 6.0, 3.0, 1.5, 0.8}, 6, 6, 3},
               {{99.0, 5.0, 4.9, 4.8, 0.1}, 0, 4, 3},
               {{99.0, (double)NAN}, 0, 2, 2},
               {{99.0, (double)INFINITY}, 0, 2, 2},
               {{30.0, 19.0, 12.0, 0.1}, 0, 3, 2}};
  hone_entry *scratch = sup_filled(hone_probe_scratch(SHORT, true), 0.0);
  for (int c = 0; c < 2 * (int)(sizeof cases / sizeof cases[0]); c++) {
    double rows[SHORT];
    hone_contraction out = {.rows = rows};
    const bool persists = c % 2 > 0;
    hone_probing probing = {.f = &scripted_factors,
                            .seed = 7,
                            .scratch = scratch,
                            .persists = persists};
    ct_note("case %d, persists %d", c / 2, persists);
    memset(&device_script, 0, sizeof device_script);
    device_script.bound = cases[c / 2].bound;
    CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
    CHECK_EQ_INT(out.power, persists ? cases[c / 2].power : 0);
    CHECK_EQ_INT(device_script.steps,
                 persists ? cases[c / 2].steps : cases[c / 2].otherwise);
  }
  sup_free(scratch);
}
