/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast loops over vectors in base/vectors.c, refine/scale.c and
   refine/apply_factors.c, beside plain loops. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/vectors.h"
#include "refine/extra_precise.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 70 };

/* With integers every order of addition gives the same sum. */
TEST(vectors, sums_of_magnitudes_miss_no_entry) {
  double v[MOST];
  for (int64_t n = 0; n <= MOST; n++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
      v[i] = (i % 3 ? 1.0 : -1.0) * (double)(1 + i * i);
      sum += fabs(v[i]);
    }
    ct_note("n %d", (int)n);
    CHECK(hone_sum_abs(n, v) == sum);
    if (n > 0) {
      v[n / 2] = HONE_NAN;
      CHECK(isnan(hone_sum_abs(n, v)));
    }
  }
}

TEST(vectors, the_first_of_the_largest_is_found_beside_nan) {
  double v[MOST];
  for (int64_t n = 1; n <= MOST; n++)
    for (int64_t at = 0; at < n; at++) {
      for (int64_t i = 0; i < n; i++)
        v[i] = i >= at ? (i % 2 ? 3.0 : -3.0) : 2.0;
      CHECK_EQ_INT(hone_largest_at(n, v), at);
      v[at] = -HONE_INF;
      CHECK_EQ_INT(hone_largest_at(n, v), at);
      v[at] = HONE_NAN;
      v[n - 1] = 4.0;
      CHECK_EQ_INT(hone_largest_at(n, v), n - 1);
    }
  for (int64_t i = 0; i < MOST; i++)
    v[i] = 0.0;
  CHECK_EQ_INT(hone_largest_at(MOST, v), 0);
  v[0] = HONE_NAN;
  CHECK_EQ_INT(hone_largest_at(1, v), 0);
}

TEST(vectors, the_largest_magnitude_keeps_nan_wherever_it_stands) {
  double v[MOST] = {0.0};
  CHECK(hone_max_abs(0, v) == 0.0);
  for (int64_t n = 1; n <= MOST; n++)
    for (int64_t at = 0; at < n; at++) {
      for (int64_t i = 0; i < n; i++)
        v[i] = i == at ? -3.0 : (double)(i % 3);
      ct_note("n %d, at %d", (int)n, (int)at);
      CHECK(hone_max_abs(n, v) == 3.0);
      v[(at + 1) % n] = -HONE_INF;
      CHECK(hone_max_abs(n, v) == HONE_INF);
      v[at] = at % 2 ? HONE_NAN : -HONE_NAN;
      CHECK(isnan(hone_max_abs(n, v)));
    }
}

TEST(vectors, signs_are_computed_and_a_change_of_one_is_noticed) {
  double v[MOST], sign[MOST];
  for (int64_t n = 1; n <= MOST; n++) {
    for (int64_t i = 0; i < n; i++) {
      v[i] = i % 3 ? 0.5 : -0.5;
      sign[i] = 0.0;
    }
    CHECK(!hone_take_signs(n, v, sign));
    CHECK(hone_take_signs(n, v, sign));
    for (int64_t at = 0; at < n; at++) {
      CHECK(sign[at] == (at % 3 ? 1.0 : -1.0));
      v[at] = at % 3 ? HONE_NAN : -0.0; /* signs -1 and 1 */
      CHECK(!hone_take_signs(n, v, sign));
      CHECK(sign[at] == (at % 3 ? -1.0 : 1.0));
    }
  }
}

/* All kinds of numbers, and exponents that stay small, that reach the limit, or
   that exceed it together with k. */
TEST(vectors, powers_of_two_are_those_of_ldexp) {
  static const double kinds[] = {1.0,     -3.25,  0.0,      -0.0,     5e-324,
                                 DBL_MIN, 1e-310, DBL_MAX,  HONE_INF, -1e300,
                                 1e-300,  0.7,    -DBL_MIN, 1e200,    -7e-320};
  static const int reach[] = {0, 3, 60, 500, 1000};
  sup_rng rng = {5};
  double v[MOST], want[MOST], got[MOST];
  int e[MOST];
  for (int c = 0; c < 5; c++)
    for (int k = -2100; k <= 2100; k += c < 2 ? 7 : 61)
      for (int sign = -1; sign <= 1; sign++) { /* 0: no exponents */
        for (int i = 0; i < MOST; i++) {
          v[i] = kinds[i % 15];
          e[i] = (int)(2.0 * sup_uniform(&rng) * reach[c]);
          e[i] = i == k % MOST ? -reach[c] : i == k % 69 ? reach[c] : e[i];
          want[i] = ldexp(v[i], sign * e[i] + k);
        }
        hone_scale_by(MOST, sign ? e : NULL, sign, k, v, got);
        ct_note("exponents to %d, k %d, sign %d", reach[c], k, sign);
        CHECK_MEM_EQ(got, want, sizeof want);
        hone_scale_by(MOST, sign ? e : NULL, sign, k, v, v);
        CHECK_MEM_EQ(v, want, sizeof want);
      }
}

/* hone_extra_relative_size gives the same as long double at the ends of the
   range and in its middle. */
TEST(vectors, relative_sizes_are_right_in_all_of_the_range) {
  static const hone_engine engine = {.precision = 64};
  const int64_t n = 40;
  double x[40], d[40], powers[40];
  int exponents[40];
  for (int shift = -1000; shift <= 1000; shift += 100)
    for (int spread = -960; spread <= 960; spread += 120) {
      long double size = 0.0L, of_x = 0.0L;
      for (int i = 0; i < n; i++) {
        exponents[i] = spread + i % 7;
        powers[i] = ldexp(1.0, exponents[i]);
        x[i] = ldexp(1.0 + i, shift / 2);
        d[i] = ldexp(1.0 + i % 11, shift - 20);
        size = fmaxl(size, ldexpl((long double)d[i], -exponents[i]));
        of_x = fmaxl(of_x, ldexpl((long double)x[i], -exponents[i]));
      }
      hone_scaling s = {powers, powers, exponents, exponents, true};
      hone_matrix a = {.n = n};
      hone_refinement ctx = {.f = {.engine = &engine, .a = &a, .scaling = &s}};
      hone_refined c = {.x = x};
      hone_relative_size out;
      const double want = (double)(size / of_x);
      hone_extra_relative_size(&ctx, &c, d, &out);
      ct_note("2^%d in units of 2^%d", shift, spread);
      CHECK_NEAR(out.scaled, want, 1e-15 * want);
      d[n / 2] = -HONE_NAN;
      hone_extra_relative_size(&ctx, &c, d, &out);
      CHECK(isnan(out.scaled) && isnan(out.plain));
    }
}
