/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes that an engine makes where it keeps A, against the same probes
   made of its products and solves. */
#include "base/engine.h"
#include "base/numbers.h"
#include "refine/probes.h"
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

/* Makes the step by solves of the engine. */
static void step_by_solves(trial *t) {
  double *p = sup_filled(N * COLUMNS, 0.0);
  for (int64_t c = 0; c < COLUMNS; c++)
    multiply(t, c < VECTORS ? NULL : t->h + (c - VECTORS) * N, t->v + c * N,
             p + c * N);
  CHECK_EQ_INT(t->engine->solve(t->self, t->step.trans, COLUMNS, p, N),
               HONE_OK);
  for (int64_t e = 0; e < N * COLUMNS; e++)
    t->v[e] += e < N * VECTORS ? -p[e] : p[e];
  sup_free(p);
}

static double squares_of(int64_t count, const double *v) {
  double sum = 0.0;
  for (int64_t e = 0; e < count; e++)
    sum += v[e] * v[e];
  return sum;
}

/* The vectors of the second step are differences of numbers of size 1e-7 that
   were themselves computed to eps: they agree to about 1e-8. */
static void compare(const trial *t, double tolerance) {
  const double squares = squares_of(N * VECTORS, t->v);
  double largest = 0.0, rows[N], y[N];
  const hone_probed wanted = {rows, SOLUTIONS - 1, y};
  for (int64_t e = 0; e < N * VECTORS; e++)
    largest = fmax(largest, fabs(t->v[e]));
  CHECK_NEAR(t->step.squares, squares, tolerance * squares);
  CHECK_NEAR(t->step.largest, largest, tolerance * largest);
  CHECK_EQ_INT(t->engine->probed(t->self, &t->step, &wanted), HONE_OK);
  for (int64_t i = 0; i < N; i++) {
    double sum = 0.0;
    for (int64_t c = 0; c < VECTORS; c++)
      sum += t->v[i + c * N] * t->v[i + c * N];
    CHECK_NEAR(rows[i], sum, tolerance * squares);
  }
  for (int64_t c = 0; c < SOLUTIONS; c++) {
    const double size = squares_of(N, t->v + (VECTORS + c) * N);
    CHECK_NEAR(t->step.solution_squares[c], size, 1e-9 * size);
    for (int64_t i = 0; c == wanted.solution && i < N; i++)
      CHECK_NEAR(y[i], t->v[i + (VECTORS + c) * N], 1e-9 * sqrt(size));
  }
}

static void check_steps(trial *t, bool trans, const hone_scaling *scaling) {
  uint64_t seed = 11, other = 12;
  t->step = (hone_probe_step){.scaling = scaling,
                              .trans = trans,
                              .vectors = VECTORS,
                              .solutions = SOLUTIONS,
                              .seed = seed,
                              .solutions_seed = other};
  memset(t->v, 0, N * COLUMNS * sizeof *t->v);
  for (int64_t c = 0; c < VECTORS; c++)
    hone_probe_draw(N, &seed, t->v + c * N);
  for (int64_t c = 0; c < SOLUTIONS; c++)
    hone_probe_draw(N, &other, t->h + c * N);
  for (int k = 0; k < 2; k++) {
    t->step.first = k == 0;
    REQUIRE(t->engine->probe_step(t->self, t->a, &t->step) == HONE_OK);
    step_by_solves(t);
    compare(t, k == 0 ? 1e-6 : 1e-3);
  }
}

TEST(engine_cuda, makes_probes_as_products_and_solves_make_them) {
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
