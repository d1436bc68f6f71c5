/* SPDX-License-Identifier: BSD-3-Clause */
/* Refinement bounds rounding errors by moduli, in which every part of a number
   must count. Those of sums of products of complex numbers are up to
   HONE_ROUNDINGS times those of real ones. Compiled twice, the second time for
   complex entries. */
#include "base/dense.h"
#include "refine/bounds.h"
#include "refine/evaluate.h"
#include "refine/extra_precise.h"
#include "refine/noise.h"
#include "tests/unit/entries.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* 1 for real entries; sqrt 8 < 3 for complex ones (docs/numerics.md). */
#ifdef HONE_COMPLEX
#define ROUNDINGS 3.0
#else
#define ROUNDINGS 1.0
#endif

enum { N = 16, SCRATCH = (4 * HONE_PROBES + 8) * N };

/* Returns a number of this size, of which only the last part is not 0. */
static hone_entry last_part(double size) {
  return ENTRY(0.0, size) + (HONE_PARTS == 1 ? size : 0.0);
}

/* Returns a number of modulus 1; a complex one has two parts. */
static hone_entry both_parts(void) {
  return HONE_PARTS == 1 ? 1.0 : ENTRY(0.6, 0.8);
}

/* A = I, and an engine that solves by 'turn', which keeps moduli. */
typedef struct moduli {
  hone_engine engine;
  hone_dense dense;
  hone_matrix a;
  hone_scaling scaling;
  int row_exp[N], col_exp[N];
  hone_watch watch;
  uint64_t seed;
  hone_refinement ctx;
  hone_refined column;
  hone_entry identity[N * N], b[N], scratch[SCRATCH];
  hone_entry x[2 * N], r[N], v[2 * N], tail[N], tail_r[N];
  double den[N], tail_den[N], rows[N];
} moduli;

static int solve_exactly(void *self, bool trans, int64_t k, hone_entry *v,
                         int64_t ldv) {
  (void)self, (void)trans, (void)k, (void)v, (void)ldv;
  return HONE_OK;
}

static int solve_turned(void *self, bool trans, int64_t k, hone_entry *v,
                        int64_t ldv) {
  (void)self, (void)trans;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < N; i++)
      v[i + c * ldv] = last_part(hone_abs(v[i + c * ldv]));
  return HONE_OK;
}

/* x = b = (1, ...), r = 0, den = 2. */
static void set_up(moduli *s) {
  memset(s, 0, sizeof *s);
  s->engine = (hone_engine){.precision = 64, .solve = solve_exactly};
  s->dense = (hone_dense){N, N, s->identity, NULL, false, 0};
  s->a = hone_dense_matrix(&s->dense);
  s->scaling = (hone_scaling){.row_exp = s->row_exp, .col_exp = s->col_exp};
  s->seed = 7;
  s->ctx = (hone_refinement){
      .f = {.engine = &s->engine, .a = &s->a, .scaling = &s->scaling},
      .criterion = HONE_CRITERION_COMPONENTWISE,
      .limit = 4.0 * HONE_EPS,
      .max_corrections = 8,
      .norm_a = 1.0,
      .watch = &s->watch,
      .scratch = s->scratch,
      .seed = &s->seed,
      .v = s->v};
  s->column = (hone_refined){
      .b = s->b,
      .x = s->x,
      .spare = s->x + N,
      .best = s->x,
      .r = s->r,
      .den = s->den,
      .tail = s->tail,
      .tail_r = s->tail_r,
      .tail_den = s->tail_den,
      .errors = {.size = 1.0L, .size_scaled = 1.0L, .widest_unit = 1.0L},
      .solution_size = 1.0,
      .has_x = true,
      .verified = true,
      .state = HONE_COLUMN_ACCEPTED};
  for (int i = 0; i < N; i++) {
    s->identity[i * (N + 1)] = s->x[i] = s->b[i] = 1.0;
    s->den[i] = 2.0;
  }
}

/* ---- Rounding errors of sums of products --------------------------------- */

TEST_OF(moduli, residuals_are_wrong_by_the_rounding_of_complex_products) {
  moduli s;
  hone_refined *list[1] = {&s.column};
  set_up(&s);
  hone_refined_measure(&s.ctx, true, false, 1, list);
  CHECK_NEAR(s.column.gamma, (double)hone_pair_terms(N) * 0x1p-106, 0.0);
  hone_refined_measure(&s.ctx, false, false, 1, list);
  CHECK_NEAR(s.column.gamma, ROUNDINGS * (N + 4) * 0x1p-53, 0.0);
}

/* The products of each row cancel, beside some b that are 2^-60 of them, so
   that r = b: its noise is the rounding of r to double and gamma den, gamma
   being that of 4 N sums in pairs of long doubles, 8 N for complex entries. */
TEST_OF(moduli, rows_in_long_double_leave_the_rounding_of_r_alone) {
  const double u = (double)(0.5L * LDBL_EPSILON);
  const double m = 4.0 * HONE_PARTS * N;
  const hone_entry small = 0x1p-60 * both_parts();
  moduli s;
  set_up(&s);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      s.identity[i + j * N] = j % 2 ? -both_parts() : both_parts();
  for (int i = 0; i < N; i++) {
    s.b[i] = i % 4 == 0 ? small : i % 4;
    s.r[i] = HONE_NAN;
    s.den[i] = HONE_NAN;
  }
  s.column.gamma = (double)hone_pair_terms(N) * 0x1p-106;
  s.column.shift = 3;
  s.column.den_lost = true;
  CHECK(!hone_noise_rows_serve(&s.ctx, &s.column));
  s.column.extra_precise = true;
  CHECK(hone_noise_rows_serve(&s.ctx, &s.column));
  CHECK(hone_noise_by_rows(&s.ctx, &s.column));
  CHECK(s.column.wide && !s.column.den_lost);
  CHECK(!hone_noise_rows_serve(&s.ctx, &s.column));
  const double gamma = HONE_PARTS * (m * m / 2.0 + 2.0 * m + 2.0) * u * u;
  CHECK_NEAR(s.column.gamma, gamma, 1e-15 * gamma);
  for (int i = 0; i < N; i++) {
    CHECK_NEAR(hone_abs(s.r[i] - 8.0 * s.b[i]), 0.0, 0.0);
    CHECK_NEAR(s.den[i], 8.0 * (N + hone_abs(s.b[i])), 1e-13);
  }
  const double most = 3.0 * 0x1p-53 + gamma * (N + 3.0);
  CHECK_LE((double)s.column.errors.noise, sqrt(N) * most * 1.0001);
  CHECK_LE(most * 0.9999, (double)s.column.errors.noise);
}

/* One of two columns is noisy; the noise of the other one was sampled, and it
   has no bound yet: both begin anew, with denominators that are right. */
TEST_OF(moduli, sampled_denominators_are_measured_before_bounds_begin_anew) {
  moduli s, other;
  hone_refined *list[2] = {&s.column, &other.column};
  set_up(&s);
  set_up(&other);
  s.column.noisy = s.column.extra_precise = true;
  s.column.gamma = 1.0;
  other.column.den_lost = true;
  for (int i = 0; i < N; i++)
    other.den[i] = 0x1p-90;
  CHECK(hone_bounds_measure_noisy(&s.ctx, 2, list));
  CHECK(s.column.wide && !s.column.noisy && !other.column.den_lost);
  for (int i = 0; i < N; i++)
    CHECK_NEAR(other.den[i], 2.0, 1e-15);
  CHECK(!hone_bounds_measure_noisy(&s.ctx, 2, list));
}

static int stop_at_once(void *user, const hone_progress *progress) {
  (void)user, (void)progress;
  return 1;
}

TEST_OF(moduli, rows_in_long_double_end_where_the_caller_says_so) {
  moduli s;
  set_up(&s);
  s.watch.progress = stop_at_once;
  s.column.extra_precise = true;
  s.column.gamma = 1.0;
  CHECK(!hone_noise_by_rows(&s.ctx, &s.column));
  CHECK(!s.column.wide);
  CHECK_NEAR(s.column.gamma, 1.0, 0.0);
}

/* v = r - t for r without noise is wrong by gamma (|t| + |r|) + eps |v|. */
TEST_OF(moduli, the_rest_of_such_rows_has_noise_of_its_own) {
  const double gamma = (double)hone_pair_terms(N) * 0x1p-106;
  moduli s;
  hone_entry v[N];
  set_up(&s);
  for (int i = 0; i < N; i++)
    v[i] = 0x1p-50 * last_part(1.0);
  s.column.spread = 3.0L;
  CHECK_NEAR((double)hone_noise_of_rest(&s.ctx, &s.column, v, s.den), 0.0, 0.0);
  s.column.wide = true;
  const double wanted = 3.0 * sqrt(N) * (2.0 * gamma + 0x1p-103);
  CHECK_NEAR((double)hone_noise_of_rest(&s.ctx, &s.column, v, s.den), wanted,
             1e-12 * wanted);
}

TEST_OF(moduli, a_plain_pass_suffices_below_the_limit_by_its_rounding) {
  moduli s;
  set_up(&s);
  s.ctx.limit = 1e-10;
  for (int times = 1; times <= 8; times++) {
    const double below = times * (N + 2) * 0x1p-53;
    ct_note("%d (n + 2) eps below the limit", times);
    CHECK_EQ_INT(hone_plain_suffices(&s.ctx, s.ctx.limit - below * 1.0001),
                 times >= ROUNDINGS);
  }
  s.ctx.limit = 1e-13; /* not loose */
  CHECK(!hone_plain_suffices(&s.ctx, 0.0));
}

TEST_OF(moduli, solves_are_wrong_by_the_rounding_of_complex_products) {
  const hone_contraction exact = {.tried = true, .power = 1};
  moduli s;
  set_up(&s);
  CHECK_NEAR((double)hone_noise_of_solve(&s.ctx, s.x, 1.0L, 2.0L, &exact),
             ROUNDINGS * 8.0 * 0x1p-53, 1e-30);
}

/* ---- Moduli -------------------------------------------------------------- */

/* |r| = 5 rounds by 5 eps at most, beside gamma den and what underflows. */
TEST_OF(moduli, residuals_have_a_rounding_of_their_own) {
  moduli s;
  set_up(&s);
  s.r[1] = ENTRY(3.0, 4.0);
  s.r[2] = last_part(5.0);
  s.column.gamma = 0x1p-60;
  CHECK_NEAR(hone_refined_residual_noise(&s.column, N, 0), 0x1p-59, 0.0);
  CHECK_NEAR(hone_refined_residual_noise(&s.column, N, 1),
             0x1p-59 + (HONE_PARTS == 1 ? 3.0 : 5.0) * 0x1p-53, 1e-30);
  CHECK_NEAR(hone_refined_residual_noise(&s.column, N, 2),
             0x1p-59 + 5.0 * 0x1p-53, 1e-30);
}

/* inv(M) turns all numbers until only their last part is left. */
TEST_OF(moduli, sampled_noise_counts_every_part) {
  const hone_contraction exact = {.tried = true, .power = 1};
  moduli s;
  set_up(&s);
  s.engine.solve = solve_turned;
  hone_contraction contraction = exact;
  contraction.rows = s.rows;
  s.column.gamma = 1.0;
  for (int i = 0; i < N; i++)
    s.den[i] = i % 2 ? 0x1p-40 : 0x1p-80;
  long double norm = 1.0L;
  CHECK_EQ_INT(hone_noise_sample(&s.ctx, &contraction, NULL, &s.column, &norm),
               HONE_OK);
  for (int i = 0; i < N; i++) {
    const double noise = i % 2 ? 0x1p-40 : 0x1p-80;
    CHECK_LE(noise, s.den[i]);
    CHECK_LE(s.den[i], 1e3 * noise);
  }
  CHECK_LE(0x1p-40, (double)norm);
}

/* With weights or exponents, norms are summed in long double. */
TEST_OF(moduli, norms_of_corrections_count_every_part) {
  int e[N];
  double weights[N];
  for (int parts = 0; parts < 2; parts++) {
    hone_entry d[N];
    for (int i = 0; i < N; i++) {
      d[i] = parts ? both_parts() : last_part(1.0);
      e[i] = 3;
      weights[i] = 0.5;
    }
    ct_note("parts %d", parts);
    CHECK_NEAR((double)hone_noise_scaled_norm(N, d, e, NULL), 0.5, 1e-15);
    CHECK_NEAR((double)hone_noise_scaled_norm(N, d, NULL, weights), 8.0, 1e-14);
    CHECK_NEAR((double)hone_noise_scaled_norm(N, d, NULL, NULL), 4.0, 1e-13);
  }
}

/* The rounding of what deflation removed counts where the factors alone gave
   more than four times what is left. */
TEST_OF(moduli, what_deflation_left_is_measured_in_every_part) {
  const hone_contraction rounded = {
      .tried = true, .power = 1, .rounding = 0x1p-20};
  for (int parts = 0; parts < 2; parts++)
    for (int largest = 3; largest <= 5; largest++) {
      moduli s;
      set_up(&s);
      ct_note("parts %d, largest %d", parts, largest);
      for (int i = 0; i < N; i++)
        s.x[i] = parts ? both_parts() : last_part(1.0);
      const long double noise =
          hone_noise_of_solve(&s.ctx, s.x, largest, 0.0L, &rounded);
      CHECK_NEAR((double)noise, largest > 4 ? largest * 0x1p-20 : 0.0, 0.0);
    }
}

/* ||d|| / ||x|| where d or x has one part alone, or two, in the range of double
   and not. */
TEST_OF(moduli, corrections_have_the_size_of_every_part) {
  static const int exponents[] = {0, 3, 900, -900};
  for (int which = 0; which < 4; which++)
    for (int way = 0; way < 4; way++) {
      const hone_entry odd = way / 2 ? both_parts() : last_part(1.0);
      moduli s;
      hone_relative_size size;
      hone_entry d[N] = {0.0};
      set_up(&s);
      ct_note("exponent %d, way %d", exponents[which], way);
      s.scaling.used = true;
      for (int i = 0; i < N; i++) {
        s.col_exp[i] = exponents[which];
        d[i] = 0x1p-10 * (way % 2 ? 1.0 : odd);
        s.x[i] = way % 2 ? odd : 1.0;
      }
      hone_extra_relative_size(&s.ctx, &s.column, d, &size);
      CHECK_NEAR(size.scaled, 0x1p-10, 0x1p-60);
      if (exponents[which] < 900) /* else what vanishes in d counts */
        CHECK_NEAR(size.plain, 0x1p-10, 0x1p-60);
    }
}

/* The smallest entry lacks one of its parts. */
TEST_OF(moduli, extra_precise_refinement_corrects_every_part_of_small_entries) {
  for (int way = 0; way < 2; way++) {
    moduli s;
    hone_refined *list[1] = {&s.column};
    set_up(&s);
    ct_note("way %d", way);
    s.x[3] = 0x1p-70 * (way ? last_part(1.0) : 1.0);
    s.b[3] = s.x[3] + 0x1p-76 * (way ? 1.0 : last_part(1.0));
    hone_refined_measure(&s.ctx, true, false, 1, list);
    s.ctx.limit = 1.0; /* any x may begin */
    CHECK_EQ_INT(hone_refine_extra_precise(&s.ctx, HONE_AIM_LAST_BIT, 1, list),
                 HONE_OK);
    CHECK(s.column.state == HONE_COLUMN_ACCEPTED);
    CHECK_LE(hone_abs(s.column.x[3] - s.b[3]), 0x1p-122);
  }
}
