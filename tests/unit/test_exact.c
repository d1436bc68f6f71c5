/* SPDX-License-Identifier: BSD-3-Clause */
/* Rational arithmetic: determinants and errors that are known by construction,
   and agreement with the reference in more than double precision. */
#include "tests/gallery/exact.h"
#include "tests/gallery/gallery.h"
#include "tests/gallery/reference.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double b_of_ones[40] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* det a for a matrix whose determinant is in range. */
static double determinant(int64_t n, const double *a) {
  int64_t exponent = 0;
  exact_system *e = exact_solve(n, 0, a, n, b_of_ones, n);
  const double f = exact_determinant(e, &exponent);
  CHECK_EQ_INT(exact_singular(e), !(fabs(f) > 0.0));
  exact_free(e);
  return ldexp(f, (int)exponent);
}

TEST(exact, finds_determinants) {
  const double one[] = {-0.375}, exchange[] = {0, 1, 1, 0};
  const double three[] = {2, 0, 0, 0, 0x1p-1000, 0, 0, 0, 0x1p1000};
  const double cancel[] = {1, 1, 1, 1 + 0x1p-52};
  const double tenths[] = {0.1, 0.3, 0.2, 0.7};
  CHECK_NEAR(determinant(1, one), -0.375, 0.0);
  CHECK_NEAR(determinant(2, exchange), -1.0, 0.0);
  CHECK_NEAR(determinant(3, three), 2.0, 0.0);
  CHECK_NEAR(determinant(2, cancel), 0x1p-52, 0.0);
  /* The doubles next to tenths: 0.07 - 0.06, and not 0.01 in double. */
  CHECK_NEAR(determinant(2, tenths), 0.01, 1e-17);
}

TEST(exact, knows_families_that_are_singular_by_construction) {
  static double a[40 * 40];
  for (int k = 0; k < gallery_count; k++)
    for (uint64_t seed = 1; seed <= 12; seed++) {
      const gallery_family *f = &gallery_families[k];
      const int64_t n = seed == 12 ? 24 : (int64_t)seed;
      if (!(f->properties & GALLERY_SINGULAR) || n < f->least_n)
        continue;
      gallery_make(f, n, seed % 2 ? f->high : f->low, seed, a, n);
      ct_note("%s, n = %d, seed %d", f->name, (int)n, (int)seed);
      CHECK_NEAR(determinant(n, a), 0.0, 0.0);
    }
}

TEST(exact, knows_regular_families_and_unimodular_ones) {
  static const char *const names[] = {"network_grounded", "truss_braced",
                                      "unimodular", "spd", "condex_4"};
  double a[12 * 12];
  for (int k = 0; k < 5; k++)
    for (int64_t n = 2; n <= 12; n++) {
      const gallery_family *f = gallery_find(names[k]);
      gallery_make(f, n, f->high, 7, a, n);
      ct_note("%s, n = %d", f->name, (int)n);
      CHECK(fabs(determinant(n, a)) > 0.0);
      if (k == 2)
        CHECK_NEAR(fabs(determinant(n, a)), 1.0, 0.0);
    }
}

TEST(exact, measures_errors_of_every_component) {
  /* x = (1/3, -2, 2^-1074 2^100), in rows of very different size. */
  const double a[] = {3, 0, 0, 0, 0x1p900, 0, 6, 0, 0x1p-100};
  const double b[] = {1, -0x1p901, 0};
  const double x[] = {0.333, -2.0, 0.0};
  long double d[3];
  exact_system *e = exact_solve(3, 1, a, 3, b, 3);
  const long double error = exact_error(e, 0, x, d);
  CHECK_NEAR((double)d[0], 1.0 / 3.0 - 0.333, 1e-16);
  CHECK_NEAR((double)d[1], 0.0, 0.0);
  CHECK_NEAR((double)d[2], 0.0, 0.0);
  CHECK_NEAR((double)error, (1.0 / 3.0 - 0.333) / 2.0, 1e-16);
  CHECK_NEAR((double)exact_solution(e, 0, 0), 1.0 / 3.0, 1e-16);
  CHECK_NEAR((double)exact_solution(e, 1, 0), -2.0, 0.0);
  const double zero[3] = {0}, bad[] = {1, (double)NAN, 1};
  CHECK(isinf(exact_error(e, 0, zero, NULL)));
  CHECK(isinf(exact_error(e, 0, bad, NULL)));
  exact_free(e);
}

TEST(exact, says_that_zero_solves_a_zero_right_hand_side) {
  const double a[] = {2, 1, 1, 1}, zero[2] = {0}, x[] = {0, 1};
  exact_system *e = exact_solve(2, 1, a, 2, zero, 2);
  CHECK_NEAR((double)exact_error(e, 0, zero, NULL), 0.0, 0.0);
  CHECK_NEAR((double)exact_error(e, 0, x, NULL), 1.0, 0.0);
  exact_free(e);
}

TEST(exact, agrees_with_the_reference) {
  static double a[40 * 40], b[40], x[40];
  reference r = {0};
  int compared = 0;
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    if (f->properties & (GALLERY_SINGULAR | GALLERY_RANGE))
      continue;
    gallery_make(f, 9, 0.5 * (f->low + f->high), 3, a, 9);
    gallery_rhs(GALLERY_B_RANDOM, 9, a, 9, 4, b);
    reference_solve(&r, 9, 1, a, 9, b, 9);
    exact_system *e = exact_solve(9, 1, a, 9, b, 9);
    if (r.error[0] <= 1e-18 && !exact_singular(e)) {
      for (int i = 0; i < 9; i++) /* wrong by 2^-20 and by less */
        x[i] = (double)exact_solution(e, i, 0) * (1.0 + ldexp(1.0, -20 - i));
      const double known = (double)exact_error(e, 0, x, NULL);
      ct_note("%s", f->name);
      CHECK_NEAR((double)reference_distance(&r, 0, x, true), known,
                 1e-12 * known);
      compared++;
    }
    exact_free(e);
  }
  CHECK_GE(compared, 50);
  reference_free(&r);
}
