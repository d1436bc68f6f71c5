/* SPDX-License-Identifier: BSD-3-Clause */
/* The errors in the report are those of the x returned. Here that x is the
   caller's x0, accepted as it is, so that its errors are large enough to
   compare digits with the definitions of hone.h. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 3 };

typedef long double wide;

typedef struct sys {
  int64_t n, lda;
  int units;
  double *a, *b, *x0, *x;
  hone_column column[COLUMNS];
  hone_options options;
  hone_report report;
} sys;

/* Diagonally dominant. The entries of A have the magnitude 2^size, those of x
   2^size_x; units sets the powers of two of rows and columns. */
static sys make(int64_t n, int size, int size_x, int units) {
  sys s = {.report = HONE_REPORT_INIT, .n = n, .lda = n + 2, .units = units};
  sup_rng rng = {(uint64_t)(n + size)};
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(n * COLUMNS, 0.0);
  s.x0 = sup_filled(n * COLUMNS, 0.0);
  s.x = sup_filled(n * COLUMNS, 0.0);
  sup_random(&rng, n, n, s.a, s.lda);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double *v = &s.a[i + j * s.lda];
      *v = i == j ? 1.5 + *v : *v / (double)n;
      *v = ldexp(*v, size + units * (int)(i % 5 - j % 3));
    }
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.options.device = HONE_DEVICE_CPU;
  s.options.structure = HONE_STRUCTURE_GENERAL;
  for (int64_t i = 0; i < n * COLUMNS; i++)
    s.x0[i] = ldexp(1.0 + sup_uniform(&rng), size_x);
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x0);
  sup_free(s->x);
}

static double entry(const sys *s, bool trans, int64_t i, int64_t j) {
  return trans ? s->a[j + i * s->lda] : s->a[i + j * s->lda];
}

/* Scales x0 to its units; b = op(A) x0, each column then perturbed by a
   relative amount of its own. */
static void take_right_hand_sides(sys *s, bool trans) {
  static const double parts[COLUMNS] = {1e-4, 1e-3, 1e-5};
  sup_rng rng = {77};
  for (int64_t c = 0; c < COLUMNS; c++) {
    for (int64_t j = 0; j < s->n; j++)
      s->x0[j + c * s->n] =
          ldexp(s->x0[j + c * s->n], s->units * (int)(trans ? -j % 5 : j % 3));
    sup_multiply(s->n, s->a, s->lda, trans, s->x0 + c * s->n, s->b + c * s->n);
    for (int64_t i = 0; i < s->n; i++)
      s->b[i + c * s->n] *= 1.0 + parts[c] * (0.5 + fabs(sup_uniform(&rng)));
  }
}

typedef struct errors {
  double componentwise, normwise, residual, forward;
} errors;

static wide larger(wide a, wide b) { return b <= a ? a : b; }

/* The errors by the definitions of hone.h, in long double. */
static errors of_column(const sys *s, bool trans, int64_t c) {
  const double *x = s->x0 + c * s->n, *b = s->b + c * s->n;
  wide omega = 0, r_max = 0, b_max = 0, x_max = 0, norm = 0;
  for (int64_t i = 0; i < s->n; i++) {
    wide r = (wide)b[i], den = (wide)fabs(b[i]), row = 0;
    for (int64_t j = 0; j < s->n; j++) {
      const wide v = (wide)entry(s, trans, i, j);
      r -= v * (wide)x[j];
      den += fabsl(v * (wide)x[j]);
      row += fabsl(v);
    }
    omega = larger(omega, fabsl(r) / den);
    r_max = larger(r_max, fabsl(r));
    b_max = larger(b_max, (wide)fabs(b[i]));
    x_max = larger(x_max, (wide)fabs(x[i]));
    norm = larger(norm, row);
  }
  return (errors){.componentwise = (double)omega,
                  .normwise =
                      (double)(r_max / sqrtl((wide)s->n) / norm / x_max),
                  .residual = (double)(r_max / b_max)};
}

/* A sum of n products has an error of n eps times the sum of the magnitudes.
   The errors here are 1e-5 and more, which leaves nine digits at these
   orders. */
static void check_near(double reported, double wanted) {
  CHECK_NEAR(reported, wanted, 1e-9 * wanted);
}

static void check_measured(sys *s, int criterion) {
  const bool trans =
      (s->options.trans == HONE_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
  errors worst = {0};
  take_right_hand_sides(s, trans);
  s->options.criterion = criterion;
  s->options.tolerance = 0.1;
  s->options.x0 = s->x0;
  s->options.ldx0 = s->n;
  s->options.columns = s->column;
  CHECK_EQ_INT(hone_solve(s->n, COLUMNS, s->a, s->lda, s->b, s->n, s->x, s->n,
                          &s->options, &s->report),
               HONE_OK);
  CHECK_MEM_EQ(s->x, s->x0, (size_t)(s->n * COLUMNS) * sizeof(double));
  CHECK_EQ_INT(s->report.iterations, 0);
  CHECK_NEAR(s->report.tolerance, 0.1, 0.0);
  for (int64_t c = 0; c < COLUMNS; c++) {
    const errors wanted = of_column(s, trans, c);
    const hone_column *got = &s->column[c];
    check_near(got->backward_error, wanted.componentwise);
    check_near(got->normwise_error, wanted.normwise);
    check_near(got->residual_error, wanted.residual);
    CHECK_EQ_INT(got->status, HONE_OK);
    CHECK_EQ_INT(got->iterations, 0);
    CHECK_EQ_INT(got->digits, (int)floor(-log10(got->forward_error)));
    worst.componentwise = fmax(worst.componentwise, got->backward_error);
    worst.normwise = fmax(worst.normwise, got->normwise_error);
    worst.residual = fmax(worst.residual, got->residual_error);
    worst.forward = fmax(worst.forward, got->forward_error);
  }
  CHECK_NEAR(s->report.backward_error, worst.componentwise, 0.0);
  CHECK_NEAR(s->report.normwise_error, worst.normwise, 0.0);
  CHECK_NEAR(s->report.residual_error, worst.residual, 0.0);
  CHECK_NEAR(s->report.forward_error, worst.forward, 0.0);
  CHECK_EQ_INT(s->report.digits, (int)floor(-log10(worst.forward)));
}

static void every_form(int64_t n, int size, int size_x, int units) {
  for (int form = 0; form < 4; form++)
    for (int criterion = 0; criterion < 3; criterion++) {
      sys s = make(n, size, size_x, units);
      s.options.trans = form & 1 ? HONE_TRANS : HONE_NO_TRANS;
      s.options.layout = form & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
      ct_note("n %d, A 2^%d, x 2^%d, units %d, form %d, criterion %d", (int)n,
              size, size_x, units, form, criterion);
      check_measured(&s, criterion);
      discard(&s);
    }
}

TEST(reported_errors, are_those_of_the_x_returned) {
  static const int orders[] = {1, 2, 3, 4, 5, 33, 130};
  for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
    every_form(orders[k], 0, 0, 0);
}

TEST(reported_errors, do_not_depend_on_units) {
  every_form(7, 0, 0, 20);
  every_form(40, -3, 5, -20);
}

/* Where products of A and x are above 2^600 or below 2^-600, the library scales
   them. */
TEST(reported_errors, do_not_depend_on_the_range) {
  static const int sizes[][2] = {
      {500, 400},   {400, 500}, {-500, -400}, {-400, -500}, {900, 100},
      {-900, -100}, {300, 301}, {-300, -301}, {700, -700},  {-700, 700}};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
    every_form(9, sizes[k][0], sizes[k][1], 0);
}

/* The bound is above the error, but not far above. */
TEST(reported_errors, bound_the_forward_error_closely) {
  for (int form = 0; form < 2; form++) {
    sys s = make(50, 3, -2, 0);
    double *exact = sup_filled(50, 0.0);
    s.options.trans = form;
    check_measured(&s, HONE_CRITERION_COMPONENTWISE);
    hone_options o = s.options;
    o.tolerance = 0.0;
    o.x0 = NULL;
    o.columns = NULL;
    for (int64_t c = 0; c < COLUMNS; c++) {
      CHECK_EQ_INT(
          hone_solve(50, 1, s.a, s.lda, s.b + c * 50, 50, exact, 50, &o, NULL),
          HONE_OK);
      const double error = sup_forward_error(50, s.x0 + c * 50, exact);
      ct_note("form %d, column %d", form, (int)c);
      CHECK_LE(error, s.column[c].forward_error * (1.0 + 1e-9));
      CHECK_LE(s.column[c].forward_error, 3.0 * error);
    }
    sup_free(exact);
    discard(&s);
  }
}
