/* SPDX-License-Identifier: BSD-3-Clause */
/* Anderson's acceleration of refinement, by itself and in the ladder, for real
   and for complex entries. */
#include "refine/accelerate.h"

#include "tests/unit/ct.h"
#include "tests/unit/ladder_fixture.h"

#include <math.h>
#include <string.h>

enum { N = HONE_ACCELERATED_FROM + 16, CORRECTIONS = 12 };

/* ---- By itself ----------------------------------------------------------- */

/* Refinement of x = 1, of a diagonal matrix whose factors leave rate[i] of the
   error of x_i; x_i has the unit 2^exponent[i]. */
typedef struct iteration {
  hone_dense dense;
  hone_matrix matrix;
  hone_scaling scaling;
  hone_refinement ctx;
  hone_refined column;
  int exponent[N];
  hone_entry history[HONE_ACCELERATED_VECTORS * N];
  hone_entry error[N], d[N], given[N];
  double rate[N], last;
} iteration;

static void begin(iteration *s, double first, double second) {
  memset(s, 0, sizeof *s);
  s->dense.n = N;
  s->matrix.n = N;
  s->scaling = (hone_scaling){.col_exp = s->exponent, .row_exp = s->exponent};
  s->ctx.f.a = &s->matrix;
  s->ctx.f.scaling = &s->scaling;
  s->ctx.history = s->history;
  for (int i = 0; i < N; i++) {
    s->rate[i] = i % 3 == 0 ? first : (i % 3 == 1 ? second : 1e-4);
    s->error[i] = 1.0 + 0.01 * i;
  }
  s->last = 1.0;
  hone_accelerate_begin(&s->ctx, 1, &s->column);
}

/* Returns the largest error in scaled variables after one correction more. */
static double correct(iteration *s) {
  double size = 0.0, most = 0.0;
  for (int i = 0; i < N; i++) {
    s->d[i] = s->given[i] = (1.0 - s->rate[i]) * s->error[i];
    size = fmax(size, hone_abs(hone_shift_entry(s->d[i], -s->exponent[i])));
  }
  s->column.rate = size / s->last;
  s->last = size;
  hone_accelerate(&s->ctx, &s->column, s->d);
  for (int i = 0; i < N; i++) {
    s->error[i] -= s->d[i];
    most = fmax(most, hone_abs(hone_shift_entry(s->error[i], -s->exponent[i])));
  }
  return most;
}

static double after(iteration *s, int corrections) {
  double most = HUGE_VAL;
  for (int k = 0; k < corrections; k++)
    most = correct(s);
  return most;
}

/* Plain corrections would leave 0.6^12 = 2e-3. */
TEST_OF(accelerate, makes_two_slow_directions_fast) {
  iteration s;
  begin(&s, 0.6, -0.4);
  CHECK_LE(after(&s, CORRECTIONS), 1e-14);
  begin(&s, 0.9, 1e-4);
  CHECK_LE(after(&s, CORRECTIONS), 1e-14);
}

/* The slow direction lies in columns of small units. */
TEST_OF(accelerate, sees_columns_of_every_unit) {
  iteration s;
  begin(&s, 0.6, -0.4);
  s.scaling.used = true;
  for (int i = 0; i < N; i++) {
    s.exponent[i] = i % 3 == 2 ? 300 : -300 + i;
    s.error[i] = hone_shift_entry(s.error[i], s.exponent[i]);
  }
  CHECK_LE(after(&s, CORRECTIONS), 1e-14);
}

/* An entry that has no digits left in scaled variables keeps those it has. */
TEST_OF(accelerate, keeps_what_scaled_variables_cannot_hold) {
  iteration s;
  begin(&s, 0.6, -0.4);
  s.scaling.used = true;
  s.exponent[N - 1] = 900;
  s.error[N - 1] = 0x1p-180; /* 2^-1080 there */
  (void)after(&s, 3);
  CHECK(hone_abs(s.d[N - 1]) > 0.0);
  CHECK_LE(hone_abs(s.error[N - 1]), 0x1p-181);
}

static bool as_given(const iteration *s) {
  return memcmp(s->d, s->given, sizeof s->d) == 0;
}

TEST_OF(accelerate, leaves_corrections_that_shrink_fast) {
  iteration s;
  begin(&s, 0.01, -0.01);
  for (int k = 0; k < 4; k++) {
    (void)correct(&s);
    CHECK(as_given(&s));
  }
}

/* Small coefficients alone are of use: what grows, and NaN, is left as it is.
 */
TEST_OF(accelerate, leaves_what_no_step_explains) {
  iteration s;
  begin(&s, 0.98, 0.98);
  (void)after(&s, 3);
  CHECK(as_given(&s));
  for (int first = 0; first < 3; first++) { /* the correction that is NaN */
    begin(&s, 0.5, 0.5);
    for (int k = 0; k < 3; k++) {
      s.error[7] = k == first ? (double)NAN : s.error[7];
      (void)correct(&s);
      CHECK(hone_abs(s.d[8]) <= 2.0);
    }
  }
  for (int sign = -1; sign <= 1; sign += 2) { /* squares out of range */
    begin(&s, 0.5, 0.5);
    for (int i = 0; i < N; i++)
      s.error[i] = hone_shift_entry(s.error[i], sign * 600);
    (void)after(&s, 4);
    CHECK(as_given(&s));
  }
  begin(&s, 0.5, 0.5);
  memset(s.error, 0, sizeof s.error);
  CHECK_NEAR(after(&s, 3), 0.0, 0.0);
}

TEST_OF(accelerate, serves_few_columns_of_larger_orders) {
  hone_refined columns[HONE_ACCELERATED_MOST + 1];
  iteration s;
  begin(&s, 0.5, 0.5);
  memset(columns, 0, sizeof columns);
  hone_accelerate_begin(&s.ctx, HONE_ACCELERATED_MOST, columns);
  CHECK(columns[0].history == s.history);
  CHECK(columns[1].history == s.history + HONE_ACCELERATED_VECTORS * N);
  hone_accelerate_begin(&s.ctx, HONE_ACCELERATED_MOST + 1, columns);
  CHECK(columns[0].history == NULL);
  s.matrix.n = HONE_ACCELERATED_FROM - 1;
  hone_accelerate_begin(&s.ctx, 1, columns);
  CHECK(columns[0].history == NULL);
  CHECK_EQ_INT(hone_accelerate_entries(HONE_ACCELERATED_FROM - 1, 1), 0);
  CHECK_EQ_INT(hone_accelerate_entries(N, 9),
               HONE_ACCELERATED_VECTORS * HONE_ACCELERATED_MOST * N);
}

/* ---- In the ladder ------------------------------------------------------- */

/* A diagonal matrix of order N and an engine with two slow directions. */
static void set_up_slow(fixture *s, double *rates) {
  fixture_set_up(s, 1);
  entries_free(s->a);
  entries_free(s->b);
  entries_free(s->x);
  entries_free(s->x_true);
  s->n = N;
  s->a = entries_filled(N * N, 0.0);
  s->b = entries_filled(N, 0.0);
  s->x = entries_filled(N, 77.0);
  s->x_true = entries_filled(N, 0.0);
  for (int64_t i = 0; i < N; i++) {
    s->a[i + i * N] = 1.0 + 0.01 * (double)i;
    s->b[i] = 1.0 + (double)(i % 7);
    rates[i] = i % 3 == 0 ? 0.03 : (i % 3 == 1 ? -0.02 : 1e-5);
  }
  fixture_add_scripted(s, "scripted", 32)->rates = rates;
}

/* Without acceleration it takes ten corrections. */
TEST_OF(accelerate, saves_corrections) {
  fixture s;
  double rates[N];
  set_up_slow(&s, rates);
  fixture_add_double(&s);
  s.request.gmres_steps = s.request.deflation = -1;
  CHECK_EQ_INT(fixture_run(&s), HONE_OK);
  fixture_check_accepted(&s);
  CHECK_EQ_INT(s.report.precision, 32);
  CHECK_LE(s.report.iterations, 7);
  fixture_tear_down(&s);
}
