/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems whose rows and columns have units hundreds of powers of two apart, up
   to the ends of the range of double. Units are exact: the system D1 A D2 y =
   D1 b has the solution inv(D2) x, and nothing else of it may differ. */
#include "tests/gallery/either.h"
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The exponent of unit i, which alternates. */
static int unit(int64_t i, int size) { return i % 2 ? -size : size; }

/* A becomes D1 A D2 and b D1 b. */
static void set_units(sys *s, int rows, int columns) {
  const int64_t p = s->parts;
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n * p; i++) {
      double *a = s->a + i + j * s->n * p;
      *a = ldexp(*a, unit(i / p, rows) + unit(j, columns));
    }
  for (int64_t i = 0; i < s->n * p; i++)
    s->b[i] = ldexp(s->b[i], unit(i / p, rows));
}

/* Is x the solution in these units of the system that has the solution
   'plain' without them? Both are within their bounds, so that they may
   differ by the sum of these. */
static void check_solution(const sys *s, const double *plain, int columns) {
  const int64_t p = s->parts;
  double size = 0.0, error = 0.0;
  for (int64_t i = 0; i < s->n * p; i++) {
    size = fmax(size, fabs(plain[i]));
    const double d = fabs(ldexp(s->x[i], unit(i / p, columns)) - plain[i]);
    if (!(d <= error) && !isnan(error)) /* NaN stays */
      error = d;
  }
  CHECK_LE(error, 1e-13 * size);
}

/* Solves without units, then with them. */
static void solve_in_units(sys *s, int rows, int columns) {
  sys_expect(s, HONE_OK);
  double *plain = sup_filled(sys_doubles(s), 0.0);
  memcpy(plain, s->x, (size_t)sys_doubles(s) * sizeof *plain);
  for (int64_t i = 0; i < sys_doubles(s); i++)
    s->x[i] = UNTOUCHED;
  set_units(s, rows, columns);
  sys_expect(s, HONE_OK);
  check_solution(s, plain, columns);
  CHECK_LE(s->report.forward_error, 1e-13);
  CHECK_LE(s->report.residual_error, 1e-13);
  CHECK_GE(s->report.rcond, 0.0);
  if (s->n > 1 && abs(rows) + abs(columns) >= 500)
    CHECK_LE(s->report.rcond, 0x1p-950);
  sup_free(plain);
}

static const int64_t orders[] = {1, 2, 3, 10, 50, 150};
enum { ORDERS = sizeof orders / sizeof *orders };

TEST(contract, solves_rows_and_columns_in_units_of_any_size) {
  static const int units[][2] = {
      {720, 0},  {0, 720},   {720, 300},  {300, 720}, {-300, 720}, {1000, 0},
      {0, 1000}, {500, 500}, {-500, 500}, {900, 100}, {100, -900}};
  for (int parts = 1; parts <= 2; parts++)
    for (int o = 1; o < ORDERS; o++)
      for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
          sys s = sys_make_of(parts, orders[o], 1);
          ct_note("parts %d, n %d, rows 2^+-%d, columns 2^+-%d, start %d",
                  parts, (int)s.n, units[u][0], units[u][1], start);
          s.options.factor_precision = start;
          solve_in_units(&s, units[u][0], units[u][1]);
          sys_discard(&s);
        }
}

TEST(contract, solves_definite_systems_in_units_of_any_size) {
  static const int units[] = {200, 360, 500};
  for (int o = 0; o < ORDERS; o++)
    for (int k = 0; k < 3 * 2; k++) {
      sys s = sys_make(orders[o], 1);
      const int size = units[k / 2];
      ct_note("n %d, units 2^+-%d, claimed %d", (int)s.n, size, k % 2);
      for (int64_t j = 0; j < s.n; j++)
        for (int64_t i = 0; i <= j; i++)
          s.a[i + j * s.n] = i == j ? (double)s.n + 1.0
                                    : (s.a[j + i * s.n] = s.a[i + j * s.n]);
      if (k % 2)
        s.options.structure = HONE_STRUCTURE_SPD;
      solve_in_units(&s, size, size);
      sys_discard(&s);
    }
}

/* b = op(A) v, rounded, for the v that b holds. */
static void set_right_hand_side(sys *s) {
  const int64_t n = s->n, p = s->parts;
  double *v = sup_copy(s->b, n * p);
  memset(s->b, 0, (size_t)(n * p) * sizeof *s->b);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double *a = s->a + (s->options.trans ? j + i * n : i + j * n) * p;
      s->b[i * p] += a[0] * v[j * p] - (p == 2 ? a[1] * v[j * p + 1] : 0.0);
      if (p == 2)
        s->b[i * p + 1] += a[0] * v[j * p + 1] + a[1] * v[j * p];
    }
  sup_free(v);
}

/* Solves for unknowns of about 1 in units 2^+-exponent. */
static void find_digits(int parts, int64_t n, bool trans, int exponent,
                        int start, int device) {
  sys s = sys_make_of(parts, n, 1);
  ct_note("parts %d, n %d, trans %d, 2^+-%d, start %d", parts, (int)n, trans,
          exponent, start);
  s.options.trans = trans ? HONE_TRANS : HONE_NO_TRANS;
  s.options.factor_precision = start;
  s.options.device = device;
  s.options.deterministic = 1;
  set_units(&s, trans ? exponent : 0, trans ? 0 : exponent);
  for (int64_t i = 0; i < sys_doubles(&s); i++)
    s.b[i] = 1.0 + (double)(i * 7 % 11) / 7.0;
  set_right_hand_side(&s);
  CHECK_EQ_INT(sys_call(&s), HONE_OK);
  CHECK_LE(s.report.backward_error, SUP_LIMIT);
  CHECK_LE(s.report.forward_error, 1e-9);
  double *m = sup_filled(parts * n * n, 0.0);
  reference r = {0};
  either_copy(parts, n, s.a, s.lda, trans, false, m);
  either_solve(&r, parts, n, 1, m, s.b);
  CHECK_LE((double)either_distance(&r, parts, 0, s.x), s.report.forward_error);
  reference_free(&r);
  sup_free(m);
  sys_discard(&s);
}

/* In scaled variables those with small coefficients vanish beside the others,
   and a backward error of rounding size says nothing of them; in the caller's
   units they are as large, and after b was rounded larger. Such x had 1 to 5
   digits. */
TEST(contract, finds_the_digits_of_unknowns_whose_coefficients_are_small) {
  static const int64_t sizes[] = {4, 20, 60};
  for (int at = 0; at < 3 * 2 * 2 * 2 * 3; at++)
    find_digits(1 + at % 2, sizes[at / 24], at / 2 % 2, at / 4 % 2 ? 40 : 20,
                at / 8 % 3, HONE_DEVICE_CPU);
}

TEST(contract, finds_these_digits_on_a_device) {
  NEED_DEVICE();
  for (int at = 0; at < 2 * 2 * 2 * 2; at++)
    find_digits(1 + at % 2, at / 8 ? 20 : 4, at / 2 % 2, at / 4 % 2 ? 40 : 20,
                HONE_FACTOR_AUTO, HONE_DEVICE_CUDA);
}

/* Products of one row overflow if ||A|| and max |x| belong to one another,
   which they do not here. The residual once lost its range to that, and the
   report said that ||b - A x|| / ||b|| was 1e96. */
TEST(contract, solves_diagonal_systems_of_large_and_small_entries) {
  for (int parts = 1; parts <= 2; parts++)
    for (int64_t n = 2; n < 200; n = 5 * n + 1)
      for (int way = 0; way < 3; way++) {
        sys s = sys_make_of(parts, n, 1);
        ct_note("parts %d, n %d, way %d", parts, (int)n, way);
        for (int64_t k = 0; k < n * n * parts; k++)
          s.a[k] = 0.0;
        for (int64_t i = 0; i < n; i++) {
          double *a = s.a + (i + i * n) * parts, *b = s.b + i * parts;
          a[0] = i % 2 ? 1e-300 : 1e300;
          for (int p = 0; p < parts; p++)
            b[p] = way == 0 ? 1.0 : way == 1 ? a[p] : a[0] * b[p];
        }
        sys_expect(&s, HONE_OK);
        CHECK_LE(s.report.residual_error, 1e-15);
        CHECK_LE(s.report.forward_error, way < 2 ? 1e-13 : 1e-3);
        for (int64_t i = 0; i < n * parts; i++) {
          const double a = s.a[i / parts * (n + 1) * parts];
          CHECK_LE(fabs(s.x[i] - s.b[i] / a), 1e-15 * fabs(s.b[i] / a));
        }
        sys_discard(&s);
      }
}

/* The sum of the magnitudes of row 0 is beyond double, though all entries of A
   and b are within; other rows are as small as can be. */
TEST(contract, solves_rows_whose_sums_overflow_beside_small_ones) {
  for (int parts = 1; parts <= 2; parts++)
    for (int64_t n = 4; n < 200; n = 6 * n) {
      sys s = sys_make_of(parts, n, 1);
      const double most = 0x1p1023 / (sqrt((double)n) + 2.0);
      ct_note("parts %d, n %d", parts, (int)n);
      sys_expect(&s, HONE_OK);
      double size = 0.0;
      for (int64_t i = 0; i < n * parts; i++)
        size = fmax(size, fabs(s.x[i]));
      for (int64_t i = 0; i < n * parts; i++) {
        const double by = i / parts % 2 ? 0x1p-950 : most;
        s.b[i] = s.b[i] / size * by;
        for (int64_t j = 0; j < n; j++)
          s.a[i + j * n * parts] *= by;
      }
      sys_expect(&s, HONE_OK);
      CHECK_LE(s.report.residual_error, 1e-13);
      sys_discard(&s);
    }
}

/* In each of these, the two largest exponents of the scaling belong to entries
   that do not meet, and an entry of S of 2^-1000 was lost on the way to it. The
   solution of the first is beyond double. */
TEST(contract, does_not_call_a_regular_matrix_singular_for_its_units) {
  static const double a[2][9] = {
      {0x1.1p-1000, 0x1.3p-1000, 0.0, 0x1.7p-999, 0x1.2p-1000, 0x1.5p-1000, 0.0,
       0x1.1p1001, 0x1.9p1001},
      {0x1.1p-700, 0x1.3p-700, 0.0, 0x1.7p-699, 0x1.2p-700, 0x1.5p-700, 0.0,
       0x1.1p701, 0x1.9p701}};
  for (int k = 0; k < 2; k++) {
    sys s = sys_make(3, 1);
    ct_note("system %d", k);
    memcpy(s.a, a[k], sizeof a[k]);
    CHECK(sys_solve(&s) != HONE_SINGULAR);
    sys_discard(&s);
  }
}
