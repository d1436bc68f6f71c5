/* SPDX-License-Identifier: BSD-3-Clause */
/* The determinants of a batch: of systems that blocks solve, and of those that
   are solved by themselves. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 9 };

/* In this call blocks solve nothing. */
static void solve_alone(bat *t) {
  t->options.criterion = HONE_CRITERION_NORMWISE;
}

static void clear(const bat *t, int64_t k) {
  memset(bat_a(t, k), 0,
         (size_t)(t->batch.lda * t->batch.n * t->parts) * sizeof(double));
}

/* The determinant of system k is (re + i im) 2^exponent, with re^2 + im^2 = 1.
   The rounding of n factors and of two logarithms is allowed for. */
static void expect(const bat *t, int64_t k, double re, double im,
                   double exponent) {
  const hone_batch_result *r = &t->results[k];
  const double n = (double)t->batch.n;
  const double log_abs = exponent * log(2.0);
  CHECK_NEAR(r->log_abs_det, log_abs,
             4.0 * SUP_EPS * (n + fabs(log_abs) + 1.0));
  CHECK_NEAR(r->det_re, re, 8.0 * n * SUP_EPS);
  CHECK_NEAR(r->det_im, im, 8.0 * n * SUP_EPS);
}

/* Every way, for both kinds of numbers, in blocks and alone. */
static bat make(int way, int64_t n) {
  bat t = bat_make(1 + way % 2, COUNT, n, 1);
  t.batch.determinants = 1;
  if (way / 2 % 2 == 1)
    solve_alone(&t);
  ct_note("parts %d, n %d, alone %d", t.parts, (int)n, way / 2 % 2);
  return t;
}

static void solve(bat *t) {
  CHECK_EQ_INT(bat_call(t), HONE_OK);
  CHECK_EQ_INT(bat_in_blocks(t),
               t->options.criterion == HONE_CRITERION_NORMWISE ? 0 : COUNT);
}

TEST(batch_determinants, of_diagonals_of_powers_of_two) {
  static const int64_t orders[] = {1, 2, 5, 16, 64, 131};
  for (int way = 0; way < 24; way++) {
    const int64_t n = orders[way / 4];
    bat t = make(way, n);
    for (int64_t k = 0; k < COUNT; k++) {
      clear(&t, k);
      for (int64_t i = 0; i < n; i++)
        *bat_entry(&t, k, i, i) = ldexp(i == 0 ? -1.0 : 1.0, (int)(i % 9 - k));
    }
    solve(&t);
    for (int64_t k = 0; k < COUNT; k++) {
      double exponent = 0.0;
      for (int64_t i = 0; i < n; i++)
        exponent += (double)(i % 9 - k);
      expect(&t, k, -1.0, 0.0, exponent);
      CHECK(t.results[k].det_re <= -1.0 && t.results[k].det_re >= -1.0);
    }
    bat_discard(&t);
  }
}

/* Far beyond the range of double, both ways. */
TEST(batch_determinants, are_logarithms_that_do_not_overflow) {
  for (int way = 0; way < 16; way++) {
    const int of = way / 4 % 2 == 0 ? 40 : -40;
    const int64_t n = way / 8 == 0 ? 64 : 65;
    bat t = make(way, n);
    for (int64_t k = 0; k < COUNT; k++)
      for (int64_t i = 0; i < n * n * t.parts; i++)
        bat_a(&t, k)[i] = i / t.parts % (n + 1) == 0 && i % t.parts == 0
                              ? ldexp(1.0, of + (int)k)
                              : 0.0;
    solve(&t);
    for (int64_t k = 0; k < COUNT; k++)
      expect(&t, k, 1.0, 0.0, (double)(n * (of + k)));
    bat_discard(&t);
  }
}

/* The sign of a permutation: a cycle of n, which is odd for even n, after so
   many exchanges. */
TEST(batch_determinants, have_the_sign_of_permutations) {
  static const int64_t larger[] = {64, 95, 96, 97, 133, 256};
  for (int way = 0; way < 4 * (19 + 6); way++) {
    const int64_t n = way < 4 * 19 ? 1 + way / 4 : larger[way / 4 - 19];
    bat t = make(way, n);
    for (int64_t k = 0; k < COUNT; k++) {
      clear(&t, k);
      for (int64_t i = 0; i < n; i++) {
        const int64_t j = k % 2 == 0 ? (i + 1) % n
                          : n == 1   ? 0
                          : i == 0   ? 1
                          : i == 1   ? 0
                                     : i;
        *bat_entry(&t, k, i, j) = 2.0;
      }
    }
    solve(&t);
    for (int64_t k = 0; k < COUNT; k++) {
      const bool odd = k % 2 == 0 ? n % 2 == 0 : n > 1;
      expect(&t, k, odd ? -1.0 : 1.0, 0.0, (double)n);
    }
    bat_discard(&t);
  }
}

/* Integers with known determinants: L U with ones on both diagonals but for
   one entry. exp brings the very number back. */
TEST(batch_determinants, of_integers_are_right) {
  for (int way = 0; way < 24; way++) {
    const int64_t n = 2 + way / 4 * 2;
    bat t = make(way, n);
    for (int64_t k = 0; k < COUNT; k++) {
      clear(&t, k);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          for (int64_t m = 0; m <= HONE_MIN(i, j); m++) {
            const double l = i == m ? 1.0 : (double)((i + 2 * m + k) % 3 - 1);
            const double u = j != m       ? (double)((2 * j + m + k) % 3 - 1)
                             : m == n - 1 ? (double)(2 * k - 9)
                                          : 1.0;
            *bat_entry(&t, k, i, j) += l * u;
          }
    }
    solve(&t);
    for (int64_t k = 0; k < COUNT; k++) {
      const hone_batch_result *r = &t.results[k];
      CHECK_NEAR(r->det_re * exp(r->log_abs_det), (double)(2 * k - 9), 1e-12);
    }
    bat_discard(&t);
  }
}

/* Multiplying rows and columns by powers of two adds their exponents. */
TEST(batch_determinants, follow_the_scaling_of_rows_and_columns) {
  for (int way = 0; way < 12; way++) {
    const int64_t n = 3 + 4 * (way / 4);
    bat plain = make(way, n), t = make(way, n);
    double exponent = 0.0;
    for (int64_t i = 0; i < n; i++)
      exponent += (double)((i * 37) % 81 - 40 + (i * 29) % 61 - 30);
    for (int64_t k = 0; k < COUNT; k++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          for (int p = 0; p < t.parts; p++) {
            double *v = bat_entry(&t, k, i, j) + p;
            *v = ldexp(*v, (int)((i * 37) % 81 - 40 + (j * 29) % 61 - 30));
          }
    solve(&plain);
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    for (int64_t k = 0; k < COUNT; k++) {
      const hone_batch_result *p = &plain.results[k];
      expect(&t, k, p->det_re, p->det_im, p->log_abs_det / log(2.0) + exponent);
    }
    bat_discard(&plain);
    bat_discard(&t);
  }
}

/* Diagonals of complex numbers on the unit circle, of which the phases add. */
TEST(batch_determinants, of_complex_matrices_have_phases) {
  for (int way = 0; way < 12; way++) {
    const int trans = way / 2 % 3;
    const int64_t n = 6;
    bat t = make(1 + 2 * (way % 2), n);
    t.options.trans = trans;
    t.options.layout = way / 6;
    for (int64_t k = 0; k < COUNT; k++) {
      clear(&t, k);
      for (int64_t i = 0; i < n; i++) {
        const double phase = 0.1 * (double)(k + 1) + 0.3 * (double)i;
        double *v = bat_entry(&t, k, i, (i + 1) % n); /* an odd permutation */
        v[0] = 2.0 * cos(phase);
        v[1] = 2.0 * sin(phase);
      }
    }
    solve(&t);
    for (int64_t k = 0; k < COUNT; k++) {
      const double phase = 0.6 * (double)(k + 1) + 4.5;
      const double sign = trans == HONE_CONJ_TRANS ? -1.0 : 1.0;
      expect(&t, k, -cos(phase), -sign * sin(phase), (double)n);
    }
    bat_discard(&t);
  }
}

TEST(batch_determinants, of_singular_matrices_are_zero) {
  for (int way = 0; way < 4; way++) {
    bat t = make(way, 5);
    memset(bat_a(&t, 2), 0, (size_t)(25 * t.parts) * sizeof(double));
    memset(bat_entry(&t, 5, 0, 1), 0, (size_t)(5 * t.parts) * sizeof(double));
    for (int64_t j = 0; j < 5; j++)
      memset(bat_entry(&t, 7, 3, j), 0, (size_t)t.parts * sizeof(double));
    CHECK_EQ_INT(bat_call(&t), HONE_SINGULAR);
    for (int64_t k = 0; k < COUNT; k++) {
      const hone_batch_result *r = &t.results[k];
      const bool zero = k == 2 || k == 5 || k == 7;
      CHECK_EQ_INT(r->status, zero ? HONE_SINGULAR : HONE_OK);
      CHECK_EQ_INT(isinf(r->log_abs_det) && r->log_abs_det < 0.0, zero);
      CHECK_NEAR(hypot(r->det_re, r->det_im), zero ? 0.0 : 1.0, 1e-14);
    }
    bat_discard(&t);
  }
}

/* The last pivot of a graph's Laplacian may be a rounding error; a null vector
   shows that the matrix is singular. */
TEST(batch_determinants, of_graphs_are_zero) {
  static const double graph[9] = {8.0, -7.0, -1.0, -7.0, 7.0,
                                  0.0, -1.0, 0.0,  1.0};
  bat t = bat_make(1, 2, 3, 1);
  t.batch.determinants = 1;
  memcpy(bat_a(&t, 1), graph, sizeof graph);
  CHECK_EQ_INT(bat_solve(&t), HONE_SINGULAR);
  const hone_batch_result *r = &t.results[1];
  CHECK_EQ_INT(r->status, HONE_SINGULAR);
  CHECK(r->log_abs_det < 0.0 && isinf(r->log_abs_det));
  CHECK_NEAR(r->det_re, 0.0, 0.0);
  CHECK_NEAR(r->det_im, 0.0, 0.0);
  CHECK_LE(0, r->row);
  CHECK_LE(0, r->col);
  bat_discard(&t);
}

/* Rows of which each has large entries and small ones, which decide. Blocks
   serve one right-hand side and not the other; nothing depends on that, nor on
   how the array is read. */
TEST(batch_determinants, do_not_depend_on_the_right_hand_side_or_the_layout) {
  static const double rows[9] = {-12.0,    8192.0,    0x1p54,
                                 -0.75,    0x1.8p-20, 0x1.8p-59,
                                 -0x1p-36, 0.0,       -0x1p-14};
  for (int way = 0; way < 8; way++) {
    bat t = bat_make(1, 2, 3, 1);
    t.batch.determinants = 1;
    t.options.layout = way % 2;
    t.options.trans = way / 2 % 2;
    for (int64_t k = 0; k < 2; k++) {
      memcpy(bat_a(&t, k), rows, sizeof rows);
      for (int64_t i = 0; i < 3; i++)
        bat_b(&t, k)[i] = k == 0 ? 1.0 : i == 2 ? 0x1p-600 : 0.0;
    }
    if (way / 4 == 1)
      solve_alone(&t);
    ct_note("way %d", way);
    (void)bat_solve(&t);
    for (int64_t k = 0; k < 2; k++) {
      /* Two of the six products are 0.375 and -0.375, and two are 0. */
      const double det = 18.0 * 0x1p-34 - 0x1.8p-82;
      const hone_batch_result *r = &t.results[k];
      CHECK(r->status >= HONE_OK);
      if (r->status == HONE_OK) {
        CHECK_NEAR(r->det_re, 1.0, 0.0);
        CHECK_NEAR(r->log_abs_det, log(det), 1e-9);
      }
    }
    bat_discard(&t);
  }
}

/* Those of systems that no block serves, in a batch with others. */
TEST(batch_determinants, are_there_where_the_solution_is_not_of_a_block) {
  for (int way = 0; way < 4; way++) {
    const int64_t n = way < 2 ? 4 : 260;
    bat t = make(way % 2, n);
    for (int64_t k = 0; k < COUNT; k++) {
      const int at = k == 3 ? 700 : k == 6 ? -700 : 3;
      clear(&t, k);
      for (int64_t i = 0; i < n; i++) {
        *bat_entry(&t, k, i, i) = ldexp(k == 6 && i == 1 ? -1.0 : 1.0, at);
        *bat_entry(&t, k, i, 0) = ldexp(1.0, at);
      }
    }
    const int st = bat_call(&t);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK_EQ_INT(bat_in_blocks(&t), n == 4 ? COUNT - 2 : 0);
    for (int64_t k = 0; k < COUNT; k++)
      expect(&t, k, k == 6 ? -1.0 : 1.0, 0.0,
             (double)(n * (k == 3   ? 700
                           : k == 6 ? -700
                                    : 3)));
    bat_discard(&t);
  }
}

/* |re| + |im| of an entry is beyond the range of double. */
TEST(batch_determinants, of_the_largest_numbers_are_finite) {
  bat t = make(1, 3);
  for (int64_t k = 0; k < COUNT; k++) {
    clear(&t, k);
    for (int64_t i = 0; i < 3; i++)
      for (int p = 0; p < 2; p++)
        bat_entry(&t, k, i, i)[p] = 0x1p1023;
    for (int64_t i = 0; i < 6; i++)
      bat_b(&t, k)[i] = 0x1p1000;
  }
  CHECK_EQ_INT(bat_call(&t), HONE_OK);
  for (int64_t k = 0; k < COUNT; k++) /* (1 + i)^3 = -2 + 2 i */
    expect(&t, k, -sqrt(0.5), sqrt(0.5), 3 * 1023 + 1.5);
  bat_discard(&t);
}

TEST(batch_determinants, are_unknown_where_none_are_asked_for_or_A_is_bad) {
  for (int way = 0; way < 4; way++) {
    bat t = make(way, 5);
    *bat_entry(&t, 4, 1, 1) = (double)NAN;
    CHECK_EQ_INT(bat_call(&t), HONE_NOT_FINITE_A);
    CHECK(isnan(t.results[4].log_abs_det) && isnan(t.results[4].det_re) &&
          isnan(t.results[4].det_im));
    CHECK(isfinite(t.results[3].log_abs_det));
    t.batch.determinants = 0;
    CHECK_EQ_INT(bat_call(&t), HONE_NOT_FINITE_A);
    for (int64_t k = 0; k < COUNT; k++)
      CHECK(isnan(t.results[k].log_abs_det) && isnan(t.results[k].det_re) &&
            isnan(t.results[k].det_im));
    bat_discard(&t);
  }
}

/* Without right-hand sides nothing reads A but the determinants. */
TEST(batch_determinants, need_no_right_hand_sides) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, COUNT, 3, 0);
    t.batch.determinants = 1;
    ct_note("parts %d", parts);
    for (int64_t k = 0; k < COUNT; k++) {
      clear(&t, k);
      for (int64_t i = 0; i < 3; i++)
        *bat_entry(&t, k, i, i) = -2.0;
    }
    *bat_entry(&t, 5, 1, 0) = (double)NAN;
    clear(&t, 7); /* HONE_OK says nothing of it, and -Inf is told */
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    for (int64_t k = 0; k < COUNT; k++)
      if (k == 5)
        CHECK(isnan(t.results[k].log_abs_det));
      else if (k == 7)
        CHECK(isinf(t.results[k].log_abs_det));
      else
        expect(&t, k, -1.0, 0.0, 3.0);
    t.batch.a = NULL; /* as hone_solve allows then */
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    CHECK(isnan(t.results[0].log_abs_det));
    bat_discard(&t);
  }
}
