/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes: the statement that they make, with the probability that it
   names, and the contraction that they find for engines whose E is known. */
#include "refine/probes.h"

#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- The statement --------------------------------------------------------
 */

/* 6^(-t/2) V_t s^(t/2) = p / count for t = 12, V_12 = pi^6 / 720 */
static double unlikely_square(double p) {
  const double pi = 3.14159265358979323846;
  return pow(p * pow(6.0, 6.0) * 720.0 / pow(pi, 6.0), 1.0 / 6.0);
}

/* The formula for t = 8, V_8 = pi^4 / 24: the factor of powers from the second
   on. */
static double later_factor(double count) {
  const double pi = 3.14159265358979323846;
  const double p = HONE_PROBE_FAILURE / count;
  return 1.0 / sqrt(pow(p * pow(6.0, 4.0) * 24.0 / pow(pi, 4.0), 0.25));
}

TEST(probes, multiply_by_the_factor_that_their_theorem_gives) {
  static const double counts[] = {1.0, 2.0, 1000.0, 1e9};
  CHECK_EQ_INT(HONE_PROBES, 12);
  for (int i = 0; i < 4; i++) {
    const double s = unlikely_square(HONE_PROBE_FAILURE / counts[i]);
    const double factor = hone_probe_factor(counts[i]);
    CHECK_NEAR(factor, 1.0 / sqrt(s), 1e-12 * factor);
  }
  CHECK_LE(200.0 * HONE_PROBE_FAILURE, HONE_PROBE_FAILURE_ALL);
}

/* The logarithm of the volume of the unit ball in t dimensions, by the Gamma
   function. */
TEST(probes, have_a_factor_for_any_number_of_vectors) {
  const double pi = 3.14159265358979323846;
  for (int t = 1; t <= 16; t++) {
    const double volume = 0.5 * t * log(pi) - lgamma(0.5 * t + 1.0);
    const double p = log(HONE_PROBE_FAILURE / 7.0);
    const double root = (p + 0.5 * t * log(6.0) - volume) / t;
    const double factor = hone_probe_factor_of(t, 7.0);
    CHECK_NEAR(factor, exp(-root), 1e-12 * factor);
  }
}

TEST(probes, draw_uniform_numbers_of_variance_1) {
  enum { COUNT = 200000 };
  double *v = sup_filled(COUNT, 0.0), sums[5] = {0.0};
  uint64_t seed = 11;
  hone_probe_draw(COUNT, &seed, v);
  for (int i = 0; i < COUNT; i++) {
    CHECK(fabs(v[i]) <= sqrt(3.0));
    sums[0] += v[i];
    sums[1] += v[i] * v[i];
    sums[2] += v[i] * v[i] * v[i] * v[i];
    sums[3] += i > 0 ? v[i] * v[i - 1] : 0.0; /* independent */
    sums[4] += fabs(v[i]) <= 0.01 * sqrt(3.0);
  }
  /* Five standard deviations. */
  const double root = sqrt((double)COUNT);
  CHECK_NEAR(sums[0] / COUNT, 0.0, 5.0 / root);
  CHECK_NEAR(sums[1] / COUNT, 1.0, 5.0 * sqrt(0.8) / root);
  CHECK_NEAR(sums[2] / COUNT, 1.8, 5.0 * 2.4 / root);
  CHECK_NEAR(sums[3] / COUNT, 0.0, 5.0 / root);
  CHECK_NEAR(sums[4] / COUNT, 0.01, 5.0 * 0.1 / root);
  sup_free(v);
}

TEST(probes, draw_other_numbers_every_time_and_the_same_for_one_seed) {
  double v[3][10];
  uint64_t seed = 5, again = 5;
  hone_probe_draw(10, &seed, v[0]);
  hone_probe_draw(10, &seed, v[1]);
  hone_probe_draw(10, &again, v[2]);
  CHECK_MEM_EQ(v[0], v[2], sizeof v[0]);
  for (int i = 0; i < 10; i++)
    CHECK(v[0][i] != v[1][i]);
}

enum { LONG = 12 };

/* How often, of 'runs', the probes miss the length 1 of w: sum_k (w^T g_k)^2 <=
   s. */
static double frequency(const double *w, double s, int runs) {
  uint64_t seed = 99;
  int missed = 0;
  for (int run = 0; run < runs; run++) {
    double sum = 0.0, g[LONG];
    for (int k = 0; k < HONE_PROBES; k++) {
      double dot = 0.0;
      hone_probe_draw(LONG, &seed, g);
      for (int i = 0; i < LONG; i++)
        dot += w[i] * g[i];
      sum += dot * dot;
    }
    missed += sum <= s;
  }
  return (double)missed / runs;
}

/* Two equal entries are the worst case of the theorem: the bound is reached
   there for small s. */
TEST(probes, fail_no_more_often_than_proved_and_for_some_nearly_as_often) {
  enum { RUNS = 20000, VECTORS = 5 };
  static const double probability[] = {0.1, 0.01, 0.002};
  double w[VECTORS][LONG] = {{1.0}, {sqrt(0.5), -sqrt(0.5)}, {0.0}};
  double sum = 0.0;
  for (int i = 0; i < LONG; i++) {
    w[2][i] = 1.0 / sqrt((double)LONG);
    w[3][i] = pow(0.5, 0.5 * (i + 1));
    sum += w[3][i] * w[3][i];
    w[4][i] = i < 3 ? 1.0 / sqrt(3.0) : 0.0;
  }
  for (int i = 0; i < LONG; i++)
    w[3][i] /= sqrt(sum);
  for (int k = 0; k < 3; k++) {
    const double p = probability[k], s = unlikely_square(p);
    for (int at = 0; at < VECTORS; at++) {
      const double seen = frequency(w[at], s, RUNS);
      ct_note("p %g, vector %d", p, at);
      CHECK_LE(seen, p + 5.0 * sqrt(p / RUNS));
    }
  }
  CHECK_LE(0.1 * 0.002, frequency(w[1], unlikely_square(0.002), RUNS));
}

/* ---- The contraction ------------------------------------------------------
 */

enum { N = 40 };

/* A = I, and an engine that multiplies entry i by gain[i], or transposed by
   gain_trans[i]: E is diagonal. Every entry may also get a part of the one
   before. */
static double gain[N], gain_trans[N], before;
static int solved_columns;

static int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  (void)self;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = N - 1; i >= 0; i--) {
      double *at = v + i + c * ldv;
      *at *= trans ? gain_trans[i] : gain[i];
      if (i > 0)
        *at -= before * at[-1];
    }
  solved_columns += (int)k;
  return HONE_OK;
}

typedef struct probe_case {
  hone_engine engine;
  hone_matrix a;
  hone_scaling scaling;
  hone_factored f;
  hone_probing probing;
  hone_contraction out;
  double *identity, *scratch, *rows;
} probe_case;

static void set_up(probe_case *s, double every_gain) {
  *s = (probe_case){.engine = {.precision = 64, .solve = solve}};
  s->identity = sup_filled(N * N, 0.0);
  s->scratch = sup_filled(hone_certify_scratch(N, false), (double)NAN);
  s->rows = sup_filled(2 * N, -1.0);
  for (int64_t i = 0; i < N; i++) {
    s->identity[i * (N + 1)] = 1.0;
    gain[i] = gain_trans[i] = every_gain;
  }
  before = 0.0;
  solved_columns = 0;
  s->a = *sup_matrix(N, N, s->identity);
  s->f =
      (hone_factored){.engine = &s->engine, .a = &s->a, .scaling = &s->scaling};
  s->probing = (hone_probing){.f = &s->f, .seed = 17, .scratch = s->scratch};
  s->out.rows = s->rows;
}

static void tear_down(probe_case *s) {
  sup_free(s->identity);
  sup_free(s->scratch);
  sup_free(s->rows);
}

/* The bound by two vectors, which suffices for factors in double up to 1/64. */
static double bound_by_two(double e, double sum) {
  const double pi = 3.14159265358979323846;
  return sqrt(sum * pi / 6.0 / HONE_PROBE_FAILURE) * e;
}

/* With E = +- e: ||E^m g|| = e^m ||g||, from the numbers that were drawn: two
   or twelve vectors for m = 1, eight of them for a higher power. No eigenvalue
   prevails, so that nothing is relaxed. */
TEST(probes, bound_the_powers_of_a_known_e) {
  static const double rates[] = {0.0, 1e-9, 1e-3, 0.01, 0.1, 0.3, 0.5};
  for (int at = 0; at < 7; at++) {
    probe_case s;
    double sum[2] = {0.0}, row[3][N] = {{0.0}}, g[N], sum_of_two = 0.0;
    uint64_t seed = 17;
    const double e = rates[at];
    ct_note("rate %g", e);
    set_up(&s, 1.0 - e);
    for (int i = 0; i < N; i += 2)
      gain[i] = 1.0 + e;
    CHECK_EQ_INT(hone_probe(&s.probing, 20, &s.out), HONE_OK);
    for (int k = 0; k < HONE_PROBES; k++) {
      hone_probe_draw(N, &seed, g);
      for (int i = 0; i < N && k < 2; i++) {
        sum_of_two += g[i] * g[i];
        row[2][i] += g[i] * g[i];
      }
      for (int i = 0; i < N; i++)
        for (int later = 0; later < (k < 8 ? 2 : 1); later++) {
          sum[later] += g[i] * g[i];
          row[later][i] += g[i] * g[i];
        }
    }
    double bound = hone_probe_factor(1.0) * sqrt(sum[0]) * e;
    const bool two = bound_by_two(e, sum_of_two) <= 0x1p-6;
    int power = 1;
    if (two)
      bound = bound_by_two(e, sum_of_two);
    while (bound > 0.9)
      bound = later_factor(1.0) * sqrt(sum[1]) * pow(e, ++power);
    const int later = power > 1;
    CHECK(s.out.tried);
    CHECK_EQ_INT(s.out.power, power);
    CHECK_EQ_INT(s.probing.passes, two ? 1 : power + 1);
    CHECK_EQ_INT(solved_columns,
                 two ? 2 : HONE_PROBES + 8 * (power - 1) + later);
    CHECK_NEAR(s.out.bound, bound, 1e-9);
    CHECK_LE(pow(e, power), s.out.bound);
    for (int i = 0; i < N; i++) {
      const double factor = later ? later_factor(N) : hone_probe_factor(N);
      const double want = two ? bound_by_two(e, N * row[2][i])
                              : factor * sqrt(row[later][i]) * pow(e, power);
      CHECK_NEAR(s.rows[i], want, 1e-8);
      CHECK_LE(pow(e, power), s.rows[i]);
    }
    tear_down(&s);
  }
}

/* Small integers are not rounded in single precision. The probes count a
   rounding all the same, since a correction may have it; but not where an
   engine applies its single-precision factors in double arithmetic, and so has
   no function 'apply' beside 'solve'. */
TEST(probes, round_to_single_precision_whatever_the_digits) {
  for (int k = 0; k < 4; k++) {
    const int precision = k < 2 ? 32 : 64;
    probe_case s;
    ct_note("precision %d, apply %d", precision, k % 2);
    set_up(&s, 1.0);
    s.engine.precision = precision;
    s.engine.apply = k % 2 ? solve : NULL;
    CHECK_EQ_INT(hone_probe(&s.probing, 20, &s.out), HONE_OK);
    CHECK_EQ_INT(s.out.power, 1);
    for (int i = 0; i < N; i++) {
      CHECK_LE(s.rows[i], 1000.0 * 0x1p-24);
      CHECK_EQ_INT(s.rows[i] >= 0x1p-24, k == 1);
    }
    tear_down(&s);
  }
}

/* E = e F with F v = the entries of v moved down by one: ||E^m|| = e^m, until
   it vanishes. Where e > 1, E magnifies at first. */
TEST(probes, wait_for_the_power_that_contracts) {
  probe_case s;
  set_up(&s, 1.0);
  before = 0.25;
  CHECK_EQ_INT(hone_probe(&s.probing, 20, &s.out), HONE_OK);
  CHECK_LE(2, s.out.power);
  CHECK_LE(pow(0.25, s.out.power), s.out.bound);
  CHECK_LE(0.1 * 0x1p-53, s.rows[0]); /* row 0 of E is zero, but for rounding */
  CHECK_LE(s.rows[0], 100.0 * 0x1p-53);
  tear_down(&s);
}

/* E moves entries down by one, times 100: no power up to 8 contracts. With
   weights that grow by 2^12 from one entry to the next, inv(W) E W does. */
TEST(probes, contract_in_the_units_that_weights_give) {
  for (int weighted = 0; weighted < 2; weighted++) {
    probe_case s;
    double weights[N];
    ct_note("weighted %d", weighted);
    set_up(&s, 1.0);
    before = 100.0;
    for (int i = 0; i < N; i++)
      weights[i] = ldexp(1.0, 12 * i - 240);
    s.probing.weights = weighted ? weights : NULL;
    CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
    CHECK_EQ_INT(s.out.power > 0, weighted);
    for (int i = s.out.power; weighted && i < N; i++)
      CHECK_LE(pow(100.0 / 4096.0, s.out.power), s.rows[i]);
    tear_down(&s);
  }
}

TEST(probes, find_no_contraction_where_one_direction_is_left) {
  static const double left[] = {1.0,        0.9, -1.0, 2.0, (double)INFINITY,
                                (double)NAN};
  for (int at = 0; at < 6; at++)
    for (int64_t where = 0; where < N; where += 13) {
      probe_case s;
      ct_note("rate %g, entry %d", left[at], (int)where);
      set_up(&s, 1.0 - 1e-7);
      gain[where] = 1.0 - left[at];
      s.probing.inverse = true;
      CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
      CHECK_EQ_INT(s.out.power, 0);
      CHECK(!(s.out.bound <= 0.9));
      tear_down(&s);
    }
}

/* inv(S) = I: the bound is not below its norm 1, and not too far above: four
   vectors give a factor of 407. The factors' own solutions are 'gain' times as
   long; they are corrected where much is missing, to inv(S) h itself, since
   there is but one eigenvalue. */
TEST(probes, bound_the_inverse_by_solutions) {
  static const double gains[] = {1.0, 0.9, 0.75, 0.97};
  for (int at = 0; at < 4; at++) {
    const bool corrected = gains[at] < 0.95;
    probe_case s;
    ct_note("gain %g", gains[at]);
    set_up(&s, gains[at]);
    s.probing.inverse = true;
    CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
    CHECK_LE(1.0, s.out.power);
    CHECK_LE(1.0, s.probing.inverse_bound);
    CHECK_LE(s.probing.inverse_bound,
             10.0 * (corrected ? 1.0 : 4.0) * 407.0 * sqrt(3.0 * 4.0 * N));
    CHECK_NEAR(s.probing.inverse_growth, corrected ? 1.0 / gains[at] : 1.0,
               1e-9);
    CHECK_EQ_INT(s.probing.passes, /* 1: two vectors did not suffice */
                 (corrected ? 2 : 1) * s.out.power - (corrected ? 1 : 0) +
                     (gains[at] < 1.0));
    tear_down(&s);
  }
}

static int fail(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  (void)self;
  (void)trans;
  (void)k;
  (void)v;
  (void)ldv;
  return HONE_DEVICE_FAILED;
}

TEST(probes, fail_where_a_solve_fails) {
  probe_case s;
  set_up(&s, 1.0);
  s.engine.solve = fail;
  CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_DEVICE_FAILED);
  CHECK_EQ_INT(s.out.power, 0);
  tear_down(&s);
}

/* ---- Certificates ---------------------------------------------------------
 */

static int certify(probe_case *s, hone_deflation *deflation,
                   hone_certificate *out) {
  uint64_t seed = 23;
  const hone_certify_job job = {.f = &s->f,
                                .deflation = deflation,
                                .norm1 = 1.0,
                                .norm1_scaled = 1.0,
                                .scratch = s->scratch,
                                .seed = &seed};
  *out = (hone_certificate){
      .contraction = {{.rows = s->rows}, {.rows = s->rows + N}}};
  const int st = hone_certify(&job, out);
  CHECK(seed != 23); /* nothing is drawn twice */
  return st;
}

TEST(probes, probe_the_transpose_by_itself) {
  for (int bad = 0; bad < 2; bad++) {
    probe_case s;
    hone_certificate out;
    uint64_t seed = 29;
    ct_note("bad %d", bad);
    set_up(&s, 1.0 - 1e-7);
    if (bad)
      gain_trans[7] = 0.0; /* the engine's transposed solve misses one entry */
    CHECK_EQ_INT(certify(&s, NULL, &out), HONE_OK);
    CHECK(out.nonsingular);
    CHECK(out.contraction[0].power == 1 && !out.contraction[1].tried);
    const hone_certify_job job = {.f = &s.f,
                                  .norm1 = 1.0,
                                  .norm1_scaled = 1.0,
                                  .scratch = s.scratch,
                                  .seed = &seed};
    const int passes = out.passes;
    CHECK_EQ_INT(hone_certify_transpose(&job, &out), HONE_OK);
    CHECK(out.contraction[1].tried);
    CHECK_EQ_INT(out.contraction[1].power, bad ? 0 : 1);
    CHECK_LE(passes + 1, out.passes);
    tear_down(&s);
  }
}

/* E^2 = 0, but E has twelve large entries. */
static int solve_with_large_powers(void *self, bool trans, int64_t k, double *v,
                                   int64_t ldv) {
  (void)self;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < 24; i += 2)
      v[c * ldv + i + trans] -= 60.0 * v[c * ldv + i + !trans];
  return HONE_OK;
}

/* The first power of E leaves so much that deflation is tried. It finds
   nothing, and the second power contracts all the same. */
TEST(probes, go_on_where_deflation_finds_nothing) {
  probe_case s;
  hone_certificate out;
  double *memory = sup_filled(hone_deflation_entries(N), (double)NAN);
  hone_deflation deflation = hone_deflation_make(N, memory);
  set_up(&s, 1.0);
  s.engine.solve = solve_with_large_powers;
  CHECK_EQ_INT(certify(&s, &deflation, &out), HONE_OK);
  CHECK_EQ_INT(deflation.count, 0);
  CHECK_EQ_INT(out.contraction[0].power, 2);
  CHECK(out.nonsingular && !out.singular);
  tear_down(&s);
  sup_free(memory);
}

/* Some entries are hardly corrected by the factors: deflation mends that. If it
   is not allowed, or if there are more such entries than it takes, there is no
   certificate. */
TEST(probes, deflate_the_directions_that_do_not_contract) {
  for (int bad = 0; bad <= 10; bad++)
    for (int allowed = 0; allowed < 2; allowed++) {
      probe_case s;
      hone_certificate out;
      double *memory = sup_filled(hone_deflation_entries(N), (double)NAN);
      hone_deflation deflation = hone_deflation_make(N, memory);
      ct_note("%d entries, allowed %d", bad, allowed);
      set_up(&s, 1.0 - 1e-7);
      for (int i = 0; i < bad; i++)
        gain[3 * i + 1] = gain_trans[3 * i + 1] = 1e-3 * (i + 1);
      CHECK_EQ_INT(certify(&s, allowed ? &deflation : NULL, &out), HONE_OK);
      const hone_contraction *c = &out.contraction[0];
      const bool good = bad == 0 || (allowed && bad <= HONE_DEFLATED_MOST);
      CHECK_EQ_INT(out.nonsingular, good);
      CHECK_EQ_INT(c->power > 0, good);
      CHECK_EQ_INT(deflation.count, good ? bad : 0);
      CHECK(!out.singular);
      if (good)
        CHECK(c->bound <= 0.9 && out.inverse_bound >= 1.0);
      else
        CHECK(isinf(out.inverse_bound));
      sup_free(memory);
      tear_down(&s);
    }
}

/* ||inv(S)||_1 = 1; a factor of two for estimates by the factors alone. */
TEST(probes, estimate_the_condition_of_a_known_matrix) {
  probe_case s;
  hone_certificate out;
  set_up(&s, 0.75);
  CHECK_EQ_INT(certify(&s, NULL, &out), HONE_OK);
  CHECK(out.nonsingular);
  CHECK_LE(0.5, out.rcond);
  CHECK_LE(out.rcond, 2.0);
  tear_down(&s);
}
