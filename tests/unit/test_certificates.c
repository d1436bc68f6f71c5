/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates beside the truth: forward error bounds, digits and condition
   estimates of hard matrices beside solutions in quadruple precision. */
#include "tests/unit/reference.h"

#include "refine/bounds.h"
#include "tests/gallery/gallery.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3, LARGEST = 60, SAMPLES = 4096 };

static const double UNTOUCHED = 77.25;

/* A matrix, right-hand sides and what the library says of them. */
typedef struct trial {
  int64_t n;
  double *a, *b, *x, *hi, *lo;
  bool solvable;
  hone_options options;
  hone_column column[COLUMNS];
  hone_report report;
} trial;

static double log_uniform(sup_rng *rng, double from, double to) {
  return from * pow(to / from, sup_uniform(rng) + 0.5);
}

/* Two right-hand sides from known solutions, the third as it comes. */
static trial make(sup_rng *rng, int family, int64_t n, double cond,
                  bool trans) {
  trial t = {.n = n,
             .a = sup_filled(n * n, 0.0),
             .b = sup_filled(COLUMNS * n, 0.0),
             .x = sup_filled(COLUMNS * n, UNTOUCHED),
             .hi = sup_filled(COLUMNS * n, 1.0),
             .lo = sup_filled(COLUMNS * n, 0.0)};
  ref_matrix(rng, family, n, cond, t.a);
  sup_random(rng, n, 1, t.hi + n, n);
  for (int c = 0; c < COLUMNS - 1; c++)
    sup_multiply(n, t.a, n, trans, t.hi + c * n, t.b + c * n);
  sup_random(rng, n, 1, t.b + (COLUMNS - 1) * n, n);
  t.solvable = ref_solve(n, t.a, trans, COLUMNS, t.b, t.hi, t.lo);
  t.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&t.report, sizeof t.report);
  t.options.factor_precision = HONE_FACTOR_SINGLE;
  t.options.trans = trans;
  return t;
}

static int solve(trial *t) {
  t->options.columns = t->column;
  return hone_solve(t->n, COLUMNS, t->a, t->n, t->b, t->n, t->x, t->n,
                    &t->options, &t->report);
}

static void discard(trial *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
  sup_free(t->hi);
  sup_free(t->lo);
}

/* Orders at which a reference exists and the family is not hopeless. */
static int64_t order(sup_rng *rng, int family) {
  int64_t n = 1 + (int64_t)(sup_next(rng) % LARGEST);
  if (family == REF_HILBERT && n <= 12)
    return 2 + n % 9;
  return family == REF_VANDERMONDE ? 2 + n % 14 : n;
}

typedef struct ratios {
  int count;
  double of[SAMPLES];
} ratios;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double quantile(ratios *r, double part) {
  qsort(r->of, (size_t)r->count, sizeof *r->of, ascending);
  return r->of[(int)(part * (double)(r->count - 1))];
}

static void check_column(const trial *t, int c, ratios *seen) {
  const hone_column *said = &t->column[c];
  double error =
      ref_error(t->n, t->x + c * t->n, t->hi + c * t->n, t->lo + c * t->n);
  double digits =
      said->forward_error < 1.0 ? floor(-log10(said->forward_error)) : 0.0;
  CHECK_LE(error, said->forward_error);
  CHECK_EQ_INT(said->digits, digits);
  if (said->status == HONE_OK)
    CHECK_LE(said->forward_error, 0.1);
  if (said->status == HONE_OK && error > SUP_EPS && seen->count < SAMPLES)
    seen->of[seen->count++] = said->forward_error / error;
}

static void check_families(int criterion, double tolerance, int matrices,
                           ratios *seen) {
  for (int family = 0; family < REF_FAMILIES; family++)
    for (int k = 0; k < matrices; k++) {
      sup_rng rng = {(uint64_t)(family * 1000 + k)};
      const int64_t n = order(&rng, family);
      const double cond = log_uniform(&rng, 1e2, 1e15);
      trial t = make(&rng, family, n, cond, k % 2);
      ct_note("%s, n %d, condition %.1e, matrix %d", ref_name(family), (int)n,
              cond, k);
      t.options.criterion = criterion;
      t.options.tolerance = tolerance;
      int st = solve(&t);
      for (int c = 0; t.solvable && st >= 0 && c < COLUMNS; c++)
        check_column(&t, c, seen);
      discard(&t);
    }
}

TEST(certificates, bound_the_error_of_every_x_and_not_by_much) {
  static ratios seen;
  seen.count = 0;
  check_families(HONE_CRITERION_COMPONENTWISE, 0.0, 16, &seen);
  CHECK_LE(300, seen.count);
  CHECK_LE(quantile(&seen, 0.5), 3.0);
  CHECK_LE(quantile(&seen, 0.95), 8.0);
}

/* x is then far from what rounding allows, and r far from rounding. */
TEST(certificates, bound_the_error_of_what_a_loose_tolerance_accepts) {
  static ratios seen;
  static const double tolerances[] = {1e-8, 1e-4, 1e-6};
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    seen.count = 0;
    check_families(criterion, tolerances[criterion], 6, &seen);
    CHECK_LE(200, seen.count);
    CHECK_LE(quantile(&seen, 0.9), 8.0);
    CHECK_LE(quantile(&seen, 0.95), 50.0); /* norms, hidden errors */
  }
}

TEST(certificates, bound_the_error_of_what_no_tolerance_would_accept) {
  static ratios seen;
  check_families(HONE_CRITERION_COMPONENTWISE, 1e-19, 8, &seen);
}

/* Nearly singular: whatever is said, no x without a digit has status 0. */
TEST(certificates, are_no_promise_where_rounding_decides) {
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++)
    for (int k = 0; k < 48; k++) {
      sup_rng rng = {(uint64_t)k};
      const double cond = log_uniform(&rng, 1e14, 1e19);
      const int family = k % 2 ? REF_NEAR_COLUMNS : REF_ONE_LARGE + k % 10 / 2;
      trial t = make(&rng, family, 5 + k % 40, cond, k % 4 == 3);
      ratios ignored = {.count = SAMPLES};
      ct_note("%s, condition %.1e, criterion %d, matrix %d", ref_name(family),
              cond, criterion, k);
      t.options.criterion = criterion;
      int st = solve(&t);
      for (int c = 0; t.solvable && st >= 0 && c < COLUMNS; c++)
        check_column(&t, c, &ignored);
      discard(&t);
    }
}

/* Tolerances that an x without a digit meets: it is refined until it has. */
TEST(certificates, make_more_of_an_x_without_a_digit) {
  int accepted = 0;
  for (int k = 0; k < 24; k++) {
    sup_rng rng = {(uint64_t)k};
    trial t = make(&rng, REF_GEOMETRIC + k % 3, 40, 1e6, k % 2);
    t.options.criterion =
        k % 2 ? HONE_CRITERION_RESIDUAL : HONE_CRITERION_NORMWISE;
    t.options.tolerance = 0.5;
    ct_note("matrix %d", k);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    for (int c = 0; c < COLUMNS; c++) {
      accepted += t.column[c].status == HONE_OK;
      CHECK_LE(1, t.column[c].digits);
      CHECK_LE(ref_error(t.n, t.x + c * t.n, t.hi + c * t.n, t.lo + c * t.n),
               0.1);
    }
    discard(&t);
  }
  CHECK_EQ_INT(accepted, 24 * COLUMNS);
}

/* Rows and columns of any size: the norm of the inverse says nothing in the
   caller's units, and x is refined with a tail until its largest entry, be it
   tiny in scaled variables, has digits. */
TEST(certificates, hold_in_units_that_differ_by_30_powers_of_ten) {
  for (int k = 0; k < 24; k++) {
    sup_rng rng = {(uint64_t)k};
    trial t = make(&rng, REF_MIXED_UNITS, 30, 1e15, k % 2);
    ratios ignored = {.count = SAMPLES};
    ct_note("matrix %d", k);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK(t.solvable);
    for (int c = 0; c < COLUMNS; c++)
      check_column(&t, c, &ignored);
    discard(&t);
  }
}

TEST(certificates, count_digits_as_the_bound_leaves_them) {
  sup_rng rng = {5};
  for (int k = 0; k < 15; k++) {
    trial t = make(&rng, REF_ONE_SMALL, 20, pow(10.0, k), false);
    int32_t fewest = 16;
    int st = solve(&t);
    for (int c = 0; c < COLUMNS; c++)
      fewest = HONE_MIN(fewest, t.column[c].digits);
    CHECK_EQ_INT(t.report.digits, fewest);
    CHECK(st == HONE_OK && fewest >= 1);
    discard(&t);
  }
}

/* An x of zeros is exact; so is one whose residual is zero. */
TEST(certificates, know_what_is_exact) {
  const double a[] = {4.0, 1.0, 2.0, 3.0}, b[] = {0.0, 0.0, 6.0, 4.0};
  double x[4];
  hone_column column[2];
  hone_options options = HONE_OPTIONS_INIT;
  options.columns = column;
  CHECK_EQ_INT(hone_solve(2, 2, a, 2, b, 2, x, 2, &options, NULL), HONE_OK);
  for (int c = 0; c < 2; c++) {
    CHECK_LE(column[c].forward_error, SUP_EPS);
    CHECK_LE(15, column[c].digits);
  }
  CHECK_NEAR(x[0], 0.0, 0.0);
  CHECK_NEAR(x[2], 1.0, 0.0);
}

#if 0
/* The formula, on numbers made up. */
TEST(certificates, add_up_what_they_know) {
  const hone_certificate good = {
      .inverse_norm = 1e6L, .inverse_norm_scaled = 1e3, .nonsingular = true};
  const hone_refined column = {.errors = {.relative = 1e-3L,
                                          .relative_scaled = 1e-3L,
                                          .noise = 1e-20L,
                                          .noise_scaled = 1e-20L},
                               .error_estimated = true,
                               .contraction_known = true,
                               .error = 1e-6,
                               .error_scaled = 1e-7,
                               .noise_error = (double)INFINITY,
                               .noise_error_scaled = (double)INFINITY};
  double bound = hone_bounds_forward(&good, &column, false);
  CHECK_LE(2e-6, bound);
  CHECK_LE(bound, 3e-6);
  CHECK_LE(hone_bounds_forward(&good, &column, true), 3e-7);
  hone_refined more = column; /* what corrections leave is added */
  more.remainder = 1e-5;
  CHECK_LE(2.2e-5, hone_bounds_forward(&good, &more, false));
  CHECK_LE(hone_bounds_forward(&good, &more, false), 3e-5);
  more.noise_error = 1e-6; /* and was heard to be less, */
  CHECK_LE(3e-6, hone_bounds_forward(&good, &more, false));
  CHECK_LE(hone_bounds_forward(&good, &more, false), 4e-6);
  more.contraction_known = false; /* by factors that do not tell */
  CHECK_LE(2.2e-5, hone_bounds_forward(&good, &more, false));
  more.remainder = (double)NAN; /* anything: the norms say it */
  CHECK_LE(1e3, hone_bounds_forward(&good, &more, false));
  more = column;
  more.error_estimated = false;
  CHECK_LE(1e3, hone_bounds_forward(&good, &more, false));
  hone_refined loud = column;
  loud.errors.noise = 1e-9L;
  CHECK_LE(1e-3, hone_bounds_forward(&good, &loud, false));
  loud.noise_error = 1e-5; /* that noise was heard, and is not so large */
  CHECK_LE(1e-5, hone_bounds_forward(&good, &loud, false));
  CHECK_LE(hone_bounds_forward(&good, &loud, false), 2e-5);
  hone_certificate singular = good;
  singular.nonsingular = false;
  CHECK_LT(DBL_MAX, hone_bounds_forward(&singular, &column, false));
}

TEST(certificates, want_a_digit_in_scaled_variables_too) {
  const hone_certificate good = {
      .inverse_norm = 1.0L, .inverse_norm_scaled = 1.0, .nonsingular = true};
  for (int k = 0; k < 4; k++) {
    const double plain = k & 1 ? 0.2 : 0.01, scaled = k & 2 ? 0.2 : 0.01;
    const hone_refined column = {
        .errors = {.relative = (long double)plain,
                   .relative_scaled = (long double)scaled}};
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

/* d beside x, as they are and as inv(C) d beside inv(C) x (A^T: inv(R)). */
TEST(certificates, see_an_error_in_scaled_variables) {
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
    hone_bounds_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0, 0.0);
    CHECK_NEAR(beside.scaled, trans ? 0x1p-10 : 0x1p-20, 0.0);
    CHECK_NEAR(beside.spread, 1.0, 0.0);
    hone_bounds_relative_size(&ctx, &column, first, &beside);
    CHECK_NEAR(beside.scaled, 1.0, 0.0); /* and in the largest of units: */
    CHECK_NEAR(beside.spread, trans ? 0x1p10 : 0x1p20, 0.0);
    column.solution_size =
        0x1p76; /* what single factors drop beside that counts */
    hone_bounds_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0 + (trans ? 0x1p-10 : 1.0), 0.0);
    ctx.f.engine = &twice;
    hone_bounds_relative_size(&ctx, &column, d, &beside);
    CHECK_NEAR(beside.plain, 1.0, 0.0);
  }
}

#endif
/* A ladder of one engine that does as told. */
typedef struct stage {
  hone_mem mem;
  hone_watch watch;
  hone_ladder ladder;
  hone_report report;
  hone_column column;
  sup_script *script;
  double a[12 * 12], b[12], x[12];
} stage;

static const hone_engine *set_up(stage *s, double cond) {
  sup_rng rng = {3};
  *s = (stage){.report = {.bad_row = -1}};
  sup_matrix_cond(&rng, 12, SUP_ONE_SMALL, cond, s->a, 12);
  sup_random(&rng, 12, 1, s->b, 12);
  return sup_scripted(0, "scripted", 32, &s->script);
}

static int play(stage *s, const hone_engine *engine, double limit) {
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

#if 0
/* Factors of 5/4 A leave a fifth of every error, and it is measured. */
TEST(certificates, measure_how_much_of_an_error_factors_leave) {
  stage s;
  double near[12 * 12];
  const hone_engine *engine = set_up(&s, 10.0);
  for (int64_t i = 0; i < 12 * 12; i++)
    near[i] = 1.25 * s.a[i];
  s.script->instead = near;
  CHECK_EQ_INT(play(&s, engine, 1e-3), HONE_OK);
  CHECK_NEAR(s.ladder.rung[0].certificate.contraction, 0.2, 1e-6);
}

#endif
/* A tolerance that the first x meets, and an engine that makes it no better:
   the matrix is to blame where its condition is, else it is not. */
TEST(certificates, name_what_leaves_no_digit) {
  for (int k = 0; k < 2; k++) {
    stage s;
    const hone_engine *engine = set_up(&s, k == 0 ? 10.0 : 1e14);
    s.script->rate = -0.9;
    int st = play(&s, engine, 0.99);
    ct_note("case %d", k);
    CHECK_EQ_INT(st, k == 0 ? HONE_NOT_CONVERGED : HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(s.column.digits, 0);
    CHECK_LE(s.column.backward_error, 0.99);
  }
}

TEST(certificates, estimate_rcond_within_ten_times) {
  for (int family = 0; family < REF_FAMILIES; family++)
    for (int k = 0; k < 6; k++) {
      sup_rng rng = {(uint64_t)(family * 100 + k)};
      const int64_t n = HONE_MIN(order(&rng, family), (int64_t)32);
      const double cond = log_uniform(&rng, 1e1, 1e13);
      trial t = make(&rng, family, n, cond, k % 2);
      ct_note("%s, n %d, condition %.1e", ref_name(family), (int)n, cond);
      t.options.factor_precision = k % 3;
      double inverse = ref_inverse_norm1(n, t.a);
      CHECK_LE(0, solve(&t));
      double truth = 1.0 / (ref_norm1(n, t.a) * inverse);
      CHECK_LE(truth, 1.1 * t.report.rcond);
      CHECK_LE(t.report.rcond, 10.0 * truth);
      CHECK_NEAR(t.report.norm1, ref_norm1(n, t.a), 1e-14 * t.report.norm1);
      discard(&t);
    }
}

/* Two spheres that nearly touch: the estimate's first step makes it much
   larger, and the next one finds more still. */
TEST(certificates, do_not_stop_at_the_first_large_column) {
  const gallery_family *family = gallery_find("bem_spheres");
  for (uint64_t seed = 1; seed <= 60; seed++) {
    gallery_rng rng = {seed};
    sup_rng other = {seed};
    const int64_t n = 28 + (int64_t)(seed % 13);
    trial t = make(&other, REF_RANDOM, n, 10.0, false);
    gallery_make(family, n, gallery_parameter(family, &rng), seed, t.a, n);
    ct_note("seed %d, n %d", (int)seed, (int)n);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    const double inverse = ref_inverse_norm1(n, t.a);
    CHECK_LE(inverse, 4.0 / (t.report.rcond * ref_norm1(n, t.a)));
    discard(&t);
  }
}

/* Systems that were solved in the middle of the range, moved by powers of two:
   x to its top, where sums of its entries overflow; A to its bottom, where the
   norm of its inverse does. Errors stay what they were. */
TEST(certificates, bound_errors_at_the_ends_of_the_range) {
  static const int of_a[] = {0, -900, -1010, 960},
                   of_b[] = {900, 0, -1000, 900};
  for (int k = 0; k < 80; k++) {
    sup_rng rng = {(uint64_t)k + 1};
    const int64_t n = 40;
    trial t = make(&rng, REF_GEOMETRIC, n, 1e4, k / 4 % 2);
    double top = 0.0;
    for (int64_t i = 0; i < COLUMNS * n; i++)
      top = fmax(top, fabs(t.hi[i]));
    int up = of_b[k % 4] - of_a[k % 4]; /* of x */
    if (k % 4 == 0)
      up = 1022 - ilogb(top);
    for (int64_t i = 0; i < n * n; i++)
      t.a[i] = ldexp(t.a[i], k % 4 == 0 ? -300 : of_a[k % 4]);
    for (int64_t i = 0; i < COLUMNS * n; i++)
      t.b[i] = ldexp(t.b[i], k % 4 == 0 ? up - 300 : of_b[k % 4]);
    ct_note("%d: A by 2^%d, x by 2^%d", k, of_a[k % 4], up);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    for (int c = 0; c < COLUMNS; c++) {
      for (int64_t i = 0; i < n; i++)
        t.x[i + c * n] = ldexp(t.x[i + c * n], -up);
      const double error =
          ref_error(n, t.x + c * n, t.hi + c * n, t.lo + c * n);
      CHECK_LE(error, t.column[c].forward_error);
      CHECK_LE(t.column[c].forward_error, 20.0 * error + 4.0 * SUP_EPS);
    }
    discard(&t);
  }
}

/* An entry of x below the range of double: omega is 1 whatever the others are,
   and they are no worse for it. */
TEST(certificates, keep_the_best_of_what_does_not_vanish) {
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
               HONE_NOT_CONVERGED);
  CHECK_NEAR(column.backward_error, 1.0, 1e-15);
  for (int64_t i = 0; i < n; i++) {
    largest = fmax(largest, fabs(truth[i]));
    error = fmax(error, fabs(ldexp(x[i], 500) - truth[i]));
  }
  CHECK_LE(error, 1e-14 * largest);
  CHECK_LE(error / largest, column.forward_error);
}

/* Sums of its entries overflow, and products with x are brought no further
   down than they have to be, lest small entries of x vanish. */
TEST(certificates, are_to_the_last_bit_where_norms_overflow) {
  for (int k = 0; k < 20; k++) {
    sup_rng rng = {(uint64_t)k + 5};
    const int64_t n = 40;
    trial t = make(&rng, REF_RANDOM, n, 10.0, k % 2);
    double top = 0.0;
    for (int64_t i = 0; i < n * n; i++)
      top = fmax(top, fabs(t.a[i]));
    const int up = 1023 - ilogb(top);
    for (int64_t i = 0; i < n * n; i++)
      t.a[i] = ldexp(t.a[i], up);
    for (int64_t i = 0; i < COLUMNS * n; i++)
      t.b[i] = ldexp(t.b[i], up - 10);
    t.options.extra_precise = 1;
    ct_note("%d: A by 2^%d", k, up);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK_LT(0.0, t.report.rcond);
    for (int c = 0; c < COLUMNS; c++) {
      for (int64_t i = 0; i < n; i++)
        t.x[i + c * n] = ldexp(t.x[i + c * n], 10);
      CHECK_LE(ref_error(n, t.x + c * n, t.hi + c * n, t.lo + c * n),
               t.column[c].forward_error);
      CHECK_LT(0.0, t.column[c].normwise_error);
    }
    discard(&t);
  }
}
