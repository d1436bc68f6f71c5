/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes of an engine whose E is known entry by entry, for real and for
   complex entries: every number that is drawn counts, whichever part of an
   entry it is. Next to read: test_probes.c, for the statement that they make.
 */
#include "refine/probes.h"

#include "base/probe_factor.h"
#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

enum { N = 12, SEED = 7 };

/* S is diagonal, and E = I - inv(M) S leaves -rates[i] of entry i, times a
   phase where entries are complex. */
typedef struct probed {
  hone_mem mem;
  hone_watch watch;
  hone_entry a[N * N];
  hone_matrix matrix;
  double ones[N], rates[N], rows[N];
  int none[N];
  hone_scaling scaling;
  hone_engine engine;
  void *self;
  hone_factored f;
  hone_entry *scratch;
  hone_probing probing;
  hone_contraction out;
} probed;

static void set_up(probed *s, double rate) {
  sup_script *script;
  hone_factor_info info;
  *s = (probed){.rates = {0.0}};
  for (int i = 0; i < N; i++) {
    s->a[i + i * N] = ENTRY(2.0 + i, -1.0);
    s->rates[i] = rate * (i + 1);
    s->ones[i] = 1.0;
  }
  s->matrix = *sup_matrix(N, N, s->a);
  s->scaling = (hone_scaling){s->ones, s->ones, s->none, s->none, false};
  s->engine = *sup_scripted(0, "scripted", 32, &script);
  script->rates = s->rates;
  const hone_engine_config config = {
      .n = N, .mem = &s->mem, .watch = &s->watch};
  CHECK_EQ_INT(s->engine.create(&s->self, &config), HONE_OK);
  CHECK_EQ_INT(s->engine.factor(s->self, &s->matrix, &s->scaling, &info),
               HONE_OK);
  s->f = (hone_factored){.engine = &s->engine,
                         .self = s->self,
                         .a = &s->matrix,
                         .scaling = &s->scaling};
  s->scratch = entries_filled(hone_probe_scratch(N, false), (double)NAN);
  s->out.rows = s->rows;
  s->probing = (hone_probing){.f = &s->f, .seed = SEED, .scratch = s->scratch};
}

static void tear_down(probed *s) {
  s->engine.destroy(s->self, &s->mem);
  entries_free(s->scratch);
}

/* 6^(-t/2) V_t s^(t/2) = p / count for t = 12 numbers, V_12 = pi^6 / 720; a
   complex vector has two of them. */
static double factor(double count) {
  const double pi = 3.14159265358979323846;
  const double p = HONE_PROBE_FAILURE / count;
  return 1.0 / sqrt(pow(p * pow(6.0, 6.0) * 720.0 / pow(pi, 6.0), 1.0 / 6.0));
}

/* sum_k |g_k,i|^2 of the vectors drawn, for every i. */
static void sum_draws(double *squares) {
  uint64_t seed = SEED;
  hone_entry g[N];
  for (int i = 0; i < N; i++)
    squares[i] = 0.0;
  for (int k = 0; k < HONE_PROBES; k++) {
    hone_probe_draw(N, &seed, g);
    for (int i = 0; i < N; i++)
      squares[i] +=
          hone_real(g[i]) * hone_real(g[i]) + hone_imag(g[i]) * hone_imag(g[i]);
  }
}

TEST_OF(probe_parts, all_count_in_the_bounds_of_e_and_of_its_rows) {
  probed s;
  double squares[N], sum = 0.0;
  set_up(&s, 1e-4);
  sum_draws(squares);
  CHECK_EQ_INT(hone_probe(&s.probing, 1, &s.out), HONE_OK);
  CHECK_EQ_INT(s.out.power, 1);
  for (int i = 0; i < N; i++) {
    const double row = factor(N) * s.rates[i] * sqrt(squares[i]);
    CHECK_NEAR(s.rows[i], row, 1e-9 * row);
    sum += s.rates[i] * s.rates[i] * squares[i];
  }
  CHECK_NEAR(s.out.bound, factor(1.0) * sqrt(sum), 1e-9 * s.out.bound);
  tear_down(&s);
}

/* An E below eps may leave nothing of a vector, so that rows have the rounding
   of v - inv(M) S v added, for the largest modulus that is drawn. What was left
   stands first in scratch. */
TEST_OF(probe_parts, have_the_rounding_of_the_largest_modulus_in_rows) {
  probed s;
  const double largest = sqrt(3.0 * HONE_PARTS);
  set_up(&s, 0.0);
  CHECK_EQ_INT(hone_probe(&s.probing, 1, &s.out), HONE_OK);
  CHECK_EQ_INT(s.out.power, 1);
  for (int i = 0; i < N; i++) {
    double left = 0.0;
    for (int k = 0; k < HONE_PROBES; k++)
      left += pow(hone_abs(s.scratch[i + k * N]), 2.0);
    const double row = factor(N) * (sqrt(left) + sqrt((double)HONE_PROBES) *
                                                     SUP_EPS * largest);
    CHECK_NEAR(s.rows[i], row, 1e-9 * row);
  }
  tear_down(&s);
}

/* The next run draws no number that this one has drawn. */
TEST_OF(probe_parts, are_drawn_once) {
  enum { DRAWN = HONE_PARTS * HONE_PROBES * N };
  probed s;
  hone_entry first[HONE_PROBES * N], next[N];
  double numbers[DRAWN], others[HONE_PARTS * N];
  uint64_t seed = SEED;
  set_up(&s, 1e-4);
  hone_probe_draw(HONE_PROBES * N, &seed, first);
  CHECK_EQ_INT(hone_probe(&s.probing, 1, &s.out), HONE_OK);
  hone_probe_draw(N, &s.probing.seed, next);
  memcpy(numbers, first, sizeof numbers);
  memcpy(others, next, sizeof others);
  for (int i = 0; i < HONE_PARTS * N; i++)
    for (int k = 0; k < DRAWN; k++)
      CHECK(others[i] != numbers[k]);
  tear_down(&s);
}

/* Right-hand sides are rounded at random: every part of every entry is. */
TEST_OF(probe_parts, are_all_rounded_to_the_precision_of_the_solve) {
  probed s;
  uint64_t seed = 3;
  hone_entry *v = entries_filled(N, 1.0), *w = entries_filled(N, 0.0);
  set_up(&s, 0.0);
  s.engine.apply = s.engine.solve; /* tells single from double arithmetic */
  s.f.rounding_seed = &seed;
  CHECK_EQ_INT(hone_apply_inverse(&s.f, true, false, 1, v, N, NULL, NULL),
               HONE_OK);
  entries_multiply(N, s.a, N, false, v, w); /* the rounded right-hand side */
  const double *part = (const double *)w;
  for (int i = 0; i < HONE_PARTS * N; i++) {
    CHECK_LE(fabs(part[i] - 1.0), 0x1p-24 + 0x1p-48);
    CHECK_GE(fabs(part[i] - 1.0), 0x1p-44);
  }
  entries_free(v);
  entries_free(w);
  tear_down(&s);
}
