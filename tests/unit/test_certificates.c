/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds, digits and condition estimates of hard matrices beside
   solutions in quadruple precision. */
#include "tests/unit/reference.h"

#include "tests/gallery/gallery.h"
#include "tests/unit/ct.h"
#include "tests/unit/one_entry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3, LARGEST = 60, SAMPLES = 4096 };

static const double UNTOUCHED = 77.25;

/* A matrix, right-hand sides and the report of the library. */
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

/* Two right-hand sides belong to known solutions; the third is random. */
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

/* An order at which a reference exists and the family is not hopeless. */
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

/* The error of x is then far above rounding, and so is r. */
TEST(certificates, bound_the_error_of_what_a_loose_tolerance_accepts) {
  static ratios seen;
  static const double tolerances[] = {1e-8, 1e-4, 1e-6};
  for (int criterion = 0; criterion <= HONE_CRITERION_RESIDUAL; criterion++) {
    seen.count = 0;
    check_families(criterion, tolerances[criterion], 6, &seen);
    CHECK_LE(200, seen.count);
    CHECK_LE(quantile(&seen, 0.9), 8.0);
    CHECK_LE(quantile(&seen, 0.95), 50.0); /* larger with norms */
  }
}

TEST(certificates, bound_the_error_of_what_no_tolerance_would_accept) {
  static ratios seen;
  check_families(HONE_CRITERION_COMPONENTWISE, 1e-19, 8, &seen);
}

/* Nearly singular matrices: no x without a certain digit has status 0. */
TEST(certificates, accept_no_x_without_a_digit_of_a_nearly_singular_matrix) {
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

/* An x without a certain digit meets these tolerances; it is refined until it
   has one. */
TEST(certificates, demand_more_corrections_of_an_x_without_a_digit) {
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

/* Rows and columns have very different units: the norm of the inverse says
   nothing in the caller's, and x is refined with a tail until its largest entry
   has digits, although that may be tiny in scaled variables. */
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

/* Two spheres that nearly touch: the first step of the norm estimate makes it
   much larger, and the next step larger still. */
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
    /* In 300 such systems the rcond reported was at most 4.2 times the true
       one, and above 3 times in two. */
    CHECK_LE(inverse, 8.0 / (t.report.rcond * ref_norm1(n, t.a)));
    discard(&t);
  }
}

/* Systems solved in the middle of the range and then scaled by powers of two: x
   near overflow, where sums of its entries overflow, and A near underflow,
   where the norm of its inverse overflows. The errors stay the same. */
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
    int up = of_b[k % 4] - of_a[k % 4]; /* the exponent by which x moves */
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

/* Sums of the entries of A overflow. Products with x are scaled down no further
   than necessary, lest small entries of x underflow. */
TEST(certificates, bound_the_error_where_norms_overflow) {
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

/* ||inv(C)||_1 for c_ij = 1 / (i - j + s): a_ij of the inverse is a product of
   quotients (Knuth 1968, exercise 1.2.3-41). */
static double cauchy_inverse_norm(int64_t n, double s) {
  long double most = 0.0L;
  for (int64_t j = 0; j < n; j++) {
    long double sum = 0.0L;
    for (int64_t i = 0; i < n; i++) {
      long double p = 1.0L / ((long double)(j - i) + (long double)s);
      for (int64_t k = 0; k < n; k++) {
        p *= (long double)(j - k) + (long double)s;
        p *= (long double)(k - i) + (long double)s;
        p /= k == j ? 1.0L : (long double)(j - k);
        p /= k == i ? 1.0L : (long double)(k - i);
      }
      sum += fabsl(p);
    }
    most = fmaxl(most, sum);
  }
  return (double)most;
}

/* Nearly orthogonal matrices: all columns of the inverse are alike but for the
   first or the last ones. A gradient step from one vector led to a column that
   was up to 9 times as small as the largest. */
TEST(certificates, estimate_rcond_of_cauchy_matrices_within_four_times) {
  for (int64_t n = 30; n <= 150; n += 12)
    for (int k = 0; k < 3; k++) {
      const double s = 0.35 + 0.15 * k;
      sup_rng rng = {1};
      trial t = make(&rng, REF_RANDOM, n, 10.0, false);
      for (int64_t at = 0; at < n * n; at++)
        t.a[at] = 1.0 / ((double)(at % n - at / n) + s);
      ct_note("n %d, s %g", (int)n, s);
      t.options.deterministic = 1;
      CHECK_EQ_INT(solve(&t), HONE_OK);
      const double truth =
          1.0 / (ref_norm1(n, t.a) * cauchy_inverse_norm(n, s));
      CHECK_LE(truth, 1.1 * t.report.rcond);
      CHECK_LE(t.report.rcond, 4.0 * truth);
      discard(&t);
    }
}

/* The factors are those of the matrix before, and E has one entry of about 1.
   An estimate by these factors and the growth of solutions was 1.34 times too
   large; of random draws about one in a hundred still leads a gradient step to
   another column, and to as much. So this draw is fixed. */
TEST(certificates, estimate_rcond_after_an_update) {
  for (int64_t n = 130; n <= 430; n += 150) {
    sup_rng rng = {1};
    trial t = make(&rng, REF_RANDOM, n, 10.0, false);
    hone_solver *solver = NULL;
    t.options.device = HONE_DEVICE_CPU;
    t.options.deterministic = 1;
    one_entry_matrix(n, t.a);
    CHECK_EQ_INT(hone_solver_create(&solver, n, &t.options), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, t.a, n, NULL), HONE_OK);
    t.a[n - 3 + 7 * n] += (double)n;
    CHECK_EQ_INT(hone_solver_update(solver, t.a, n, &t.report), HONE_OK);
    ct_note("n %d, %s", (int)n, t.report.path);
    CHECK_CONTAINS(t.report.path, "of an earlier matrix");
    const double truth = one_entry_rcond(n, n - 3, 7, (double)n);
    CHECK_LE(fabs(t.report.rcond - truth), 0.1 * truth);
    hone_solver_destroy(&solver);
    discard(&t);
  }
}
