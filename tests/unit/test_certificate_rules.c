/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules by which certificates are made: the formula of the error bound and
   the digits that it leaves, on made-up numbers and with a scripted engine. */
#include "tests/unit/support.h"

#include "refine/bounds.h"
#include "refine/extra_precise.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>

/* An x of zeros is exact; so is an x whose residual is zero. */
TEST(certificates, of_an_exact_x_have_15_digits) {
  const double a[] = {4.0, 1.0, 2.0, 3.0}, b[] = {0.0, 0.0, 6.0, 4.0};
  double x[4];
  hone_column column[2];
  hone_options options = HONE_OPTIONS_INIT;
  options.columns = column;
  CHECK_EQ_INT(hone_solve(2, 2, a, 2, b, 2, x, 2, &options, NULL), HONE_OK);
  for (int c = 0; c < 2; c++) {
    CHECK_LE(column[c].forward_error, SUP_EPS * (1.0 + 1e-9));
    CHECK_LE(15, column[c].digits);
  }
  CHECK_NEAR(x[0], 0.0, 0.0);
  CHECK_NEAR(x[2], 1.0, 0.0);
}

/* The formula of the bound, on made-up numbers: the smaller one of the error
   bars and of what norms say. */
TEST(certificates, add_up_the_errors_that_they_know) {
  const hone_certificate good = {.inverse_bound = 1e3, .nonsingular = true};
  const hone_refined column = {.errors = {.residual_norm = 1e-3L,
                                          .noise = 1e-20L,
                                          .size = 2.0L,
                                          .size_scaled = 4.0L,
                                          .widest_unit = 8.0L},
                               .error_estimated = true,
                               .error = 1e-6,
                               .error_scaled = 1e-7};
  CHECK_NEAR(hone_bounds_forward(&good, &column, false), 1e-6 + SUP_EPS, 1e-20);
  CHECK_NEAR(hone_bounds_forward(&good, &column, true), 1e-7 + SUP_EPS, 1e-20);
  /* ||inv(S)|| (||r|| + noise), in units of x */
  hone_refined other = column;
  other.error_estimated = false;
  CHECK_NEAR(hone_bounds_forward(&good, &other, false), 8.0 / 2.0, 1e-12);
  CHECK_NEAR(hone_bounds_forward(&good, &other, true), 1.0 / 4.0, 1e-12);
  other.errors.noise = 1e-3L;
  CHECK_NEAR(hone_bounds_forward(&good, &other, true), 2.0 / 4.0, 1e-12);
  other = column;
  other.errors.residual_norm = 1e-13L;
  CHECK_NEAR(hone_bounds_forward(&good, &other, false), 4e-10, 1e-12);
  other.error = other.error_scaled = (double)NAN; /* must not be believed */
  CHECK(!(hone_bounds_forward(&good, &other, false) <= 1e-11));
  other = column;
  other.x_is_zero = true; /* there is nothing to be relative to */
  CHECK_LE(hone_bounds_forward(&good, &other, true), 1e-6);
  other.errors.residual_norm = 0.0L;
  other.error_estimated = false;
  CHECK_NEAR(hone_bounds_forward(&good, &other, false), SUP_EPS, 0.0);
  hone_certificate bad = good;
  bad.nonsingular = false;
  CHECK_LT(DBL_MAX, hone_bounds_forward(&bad, &column, false));
  bad = good;
  bad.inverse_bound = (double)INFINITY;
  other = column;
  other.error_estimated = false;
  CHECK_LT(DBL_MAX, hone_bounds_forward(&bad, &other, false));
  CHECK_NEAR(hone_bounds_forward(&bad, &column, false), 1e-6 + SUP_EPS, 1e-20);
}

/* The bars of a column that was not corrected: the norms, in each unit. */
TEST(certificates, bound_components_by_norms_where_there_are_no_bars) {
  const int exponents[] = {0, 20};
  double bars[2];
  const hone_certificate good = {.inverse_bound = 1e3, .nonsingular = true};
  hone_refined column = {.errors = {.residual_norm = 1e-9L}};
  hone_bounds_bars_by_norms(2, exponents, &good, &column, bars);
  CHECK_NEAR(bars[0], 1e-6, 1e-18);
  CHECK_NEAR(bars[1], 0x1p20 * 1e-6, 1e-12);
  column.errors.residual_norm = 0.0L;
  column.x_is_zero = true;
  hone_bounds_bars_by_norms(2, exponents, &good, &column, bars);
  CHECK_NEAR(bars[0] + bars[1], 0.0, 0.0);
  const hone_certificate none = {.inverse_bound = (double)INFINITY};
  column.errors.residual_norm = 1e-9L;
  hone_bounds_bars_by_norms(2, exponents, &none, &column, bars);
  CHECK(isinf(bars[0]) && isinf(bars[1]));
}

TEST(certificates, require_a_digit_in_scaled_variables_too) {
  const hone_certificate good = {.inverse_bound = 1.0, .nonsingular = true};
  for (int k = 0; k < 4; k++) {
    const double plain = k & 1 ? 0.2 : 0.01, scaled = k & 2 ? 0.2 : 0.01;
    const hone_refined column = {.errors = {.residual_norm = 1.0L,
                                            .size = 1.0L,
                                            .size_scaled = 1.0L,
                                            .widest_unit = 1.0L},
                                 .error_estimated = true,
                                 .error = plain,
                                 .error_scaled = scaled};
    CHECK_EQ_INT(hone_bounds_certify_a_digit(&good, &column), k == 0);
  }
  CHECK_EQ_INT(hone_bounds_digits((double)NAN), 0);
  CHECK_EQ_INT(hone_bounds_digits((double)INFINITY), 0);
  CHECK_EQ_INT(hone_bounds_digits(1.0), 0);
  CHECK_EQ_INT(hone_bounds_digits(0.11), 0);
  CHECK_EQ_INT(hone_bounds_digits(0.09), 1);
  CHECK_EQ_INT(hone_bounds_digits(5e-12), 11);
  CHECK_EQ_INT(hone_bounds_digits(0.0), 16);
}

/* The size of d relative to x, in the caller's variables and in scaled ones:
   inv(C) d and inv(C) x (for A^T: inv(R)). */
TEST(certificates, measure_an_error_in_scaled_variables) {
  int row_exp[] = {0, 10}, col_exp[] = {0, 20};
  const double x[] = {1.0, 1.0}, d[] = {0.0, 1.0}, first[] = {1.0, 0.0};
  const hone_matrix a = {.n = 2};
  const hone_scaling scaling = {
      .row_exp = row_exp, .col_exp = col_exp, .used = true};
  double copy[] = {x[0], x[1]};
  const hone_engine single = {.precision = 32}, twice = {.precision = 64};
  hone_refined column = {.x = copy};
  for (int trans = 0; trans < 2; trans++) {
    hone_refinement ctx = {
        .f = {.engine = &single, .a = &a, .scaling = &scaling}, .trans = trans};
    hone_relative_size beside;
    column.solution_size = 1.0;
    hone_extra_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0, 0.0);
    CHECK_NEAR(beside.scaled, trans ? 0x1p-10 : 0x1p-20, 0.0);
    hone_extra_relative_size(&ctx, &column, first, &beside);
    CHECK_NEAR(beside.scaled, 1.0, 0.0);
    /* Single precision drops a part of d that counts. */
    column.solution_size = 0x1p76;
    hone_extra_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0 + (trans ? 0x1p-10 : 1.0), 0.0);
    ctx.f.engine = &twice;
    hone_extra_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0, 0.0);
  }
}

/* A ladder with one scripted engine. */
typedef struct ladder_test {
  hone_mem mem;
  hone_watch watch;
  hone_ladder ladder;
  hone_report report;
  hone_column column;
  sup_script *script;
  double a[12 * 12], b[12], x[12];
} ladder_test;

static const hone_engine *set_up(ladder_test *s, double cond) {
  sup_rng rng = {3};
  *s = (ladder_test){.report = {.bad_row = -1}};
  sup_matrix_cond(&rng, 12, SUP_ONE_SMALL, cond, s->a, 12);
  sup_random(&rng, 12, 1, s->b, 12);
  return sup_scripted(0, "scripted", 32, &s->script);
}

static int run(ladder_test *s, const hone_engine *engine, double limit) {
  const hone_request request = {.limit = limit};
  s->script->ladder = &s->ladder;
  int st = sup_ladder_create(&s->ladder, 12, &engine, 1, &request, &s->mem,
                             NULL, &s->watch);
  if (st == HONE_OK)
    st = hone_ladder_factor(&s->ladder, sup_matrix(12, 12, s->a), &s->report);
  if (st == HONE_OK)
    st = hone_ladder_solve(&s->ladder, false, 1, s->b, 12, s->x, 12, NULL, 0,
                           &s->column, &s->report);
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  return st;
}

/* Factors of 5/4 and 5/6 of the columns of A leave a fifth of every error, with
   either sign; the certificate bounds that, with a power of E that leaves less.
 */
TEST(certificates, measure_how_much_of_an_error_factors_leave) {
  ladder_test s;
  double near[12 * 12];
  const hone_engine *engine = set_up(&s, 10.0);
  for (int64_t i = 0; i < 12 * 12; i++)
    near[i] = s.a[i] / (i / 12 % 2 ? 0.8 : 1.2);
  s.script->instead = near;
  CHECK_EQ_INT(run(&s, engine, 1e-3), HONE_OK);
  const hone_contraction *c = &s.ladder.rung[0].certificate.contraction[0];
  CHECK_LE(pow(0.2, c->power), c->bound);
  CHECK_LE(c->bound, pow(0.2, c->power) * 8.0 * 12.0 * hone_probe_factor(1.0));
  CHECK_LE(2, c->power);
}

/* The first x meets the tolerance, and the engine does not improve it. Then the
   status blames the matrix only if its condition is large. */
TEST(certificates, name_the_cause_of_an_x_without_a_digit) {
  for (int k = 0; k < 2; k++) {
    ladder_test s;
    const hone_engine *engine = set_up(&s, k == 0 ? 10.0 : 1e14);
    s.script->rate = -0.9;
    int st = run(&s, engine, 0.99);
    ct_note("case %d", k);
    CHECK_EQ_INT(st, k == 0 ? HONE_NOT_CONVERGED : HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(s.column.digits, 0);
    CHECK_LE(s.column.backward_error, 0.99);
  }
}
/* One entry of x underflows in double, so that omega is 1. The other entries
   must be as accurate as ever. */
TEST(certificates, hold_where_an_entry_of_x_underflows) {
  const int64_t n = 8;
  double a[64], b[8], x[8], largest = 0.0, error = 0.0;
  const double truth[] = {3.0, -1.0, 2.0, 5.0, -4.0, 1.0, 1.5, 0.0};
  sup_rng rng = {11};
  sup_random(&rng, n, n, a, n);
  for (int64_t i = 0; i < n; i++) {
    a[i * (n + 1)] = ldexp(rint(a[i * (n + 1)] * 1024.0), -10) + 3.0;
    a[i + (n - 1) * n] = i == n - 1;
    if (i < n - 1)
      a[n - 1 + i * n] = 0.0;
  }
  a[n - 1] = 0x1p-600;
  for (int64_t i = 0; i < n - 1; i++) {
    long double sum = 0.0L;
    for (int64_t j = 0; j < n - 1; j++)
      sum += (long double)a[i + j * n] * (long double)truth[j];
    b[i] = ldexp((double)sum, -500);
  }
  b[n - 1] = 0.0;
  hone_options options;
  hone_column column;
  options = (hone_options)HONE_OPTIONS_INIT;
  options.factor_precision = HONE_FACTOR_SINGLE;
  options.columns = &column;
  CHECK_EQ_INT(hone_solve(n, 1, a, n, b, n, x, n, &options, NULL),
               HONE_OK); /* the row of that entry alone is measured by norms */
  CHECK_LE(column.backward_error, SUP_LIMIT);
  for (int64_t i = 0; i < n; i++) {
    largest = fmax(largest, fabs(truth[i]));
    error = fmax(error, fabs(ldexp(x[i], 500) - truth[i]));
  }
  CHECK_LE(error, 1e-14 * largest);
  CHECK_LE(error / largest, column.forward_error);
}
