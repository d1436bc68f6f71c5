/* SPDX-License-Identifier: BSD-3-Clause */
/* The systems with known answers of tests/campaign/known.h: their right-hand
   sides are exact, and those that are said to be singular are. */
#include "tests/campaign/known.h"
#include "tests/unit/ct.h"

#include <math.h>

enum { ROOM = KNOWN_MOST_N * KNOWN_MOST_N * 2 };
static double a[ROOM], t[KNOWN_MOST_N * 2], b[KNOWN_MOST_N * 2];

static known_system system_of(int64_t n, int parts) {
  return (known_system){n, parts, a, t, b};
}

/* Returns part q of row i of b - A t. Every sum is exact: its terms are whole
   numbers below 2^53, times the same power of two. */
static long double residual(const known_system *s, int64_t i, int q) {
  const int p = s->parts;
  long double r = (long double)s->b[i * p + q];
  for (int64_t j = 0; j < s->n; j++) {
    const double *e = s->a + (i + j * s->n) * p, *x = s->t + j * p;
    r -= (long double)e[0] * (long double)x[q];
    if (p == 2)
      r += (q == 0 ? 1.0L : -1.0L) * (long double)e[1] * (long double)x[1 - q];
  }
  return r;
}

TEST(known, right_hand_sides_are_exact) {
  for (int family = 0; family < KNOWN_FAMILIES; family++)
    for (int parts = 1; parts <= 2; parts++)
      for (uint64_t seed = 1; seed <= 12; seed++) {
        const known_family *f = &known_families[family];
        const int64_t n =
            seed % 4 == 0 ? f->most_n : f->least_n + (int)seed % 4;
        const known_system s = system_of(n, parts);
        double size = 0.0;
        if (parts == 2 && f->real_only)
          continue;
        (void)known_make(&s, family, seed);
        ct_note("%s, parts %d, n %d, seed %d", f->name, parts, (int)n,
                (int)seed);
        for (int64_t i = 0; i < n; i++)
          for (int q = 0; q < parts; q++) {
            CHECK((double)residual(&s, i, q) == 0.0);
            size += fabs(t[i * parts + q]);
          }
        CHECK(size > 0.0);
      }
}

/* The determinant of n whole columns from 'column' on, of the rows whose bits
   are set, by expansion. */
static double expand(int64_t n, int64_t column, unsigned rows) {
  double sum = 0.0, sign = 1.0;
  if (rows == 0)
    return 1.0;
  for (int64_t i = 0; i < n; i++)
    if (rows >> i & 1U) {
      sum +=
          sign * a[i + column * n] * expand(n, column + 1, rows & ~(1U << i));
      sign = -sign;
    }
  return sum;
}

/* Is a column the sum of the two that follow it? */
static bool has_sum(int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    const double *one = a + (j + 1) % n * n, *other = a + (j + 2) % n * n;
    int64_t equal = 0;
    for (int64_t i = 0; i < n; i++)
      equal += a[i + j * n] == one[i] + other[i];
    if (equal == n)
      return true;
  }
  return false;
}

TEST(known, singular_systems_are_found) {
  for (int family = 0; family < KNOWN_FAMILIES; family++) {
    const known_family *f = &known_families[family];
    int singular = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
      const int64_t n = f->least_n + (int64_t)(seed % 4);
      const known_system s = system_of(n, 1);
      const bool said = known_make(&s, family, seed);
      const bool is = f->real_only ? !(expand(n, 0, (1U << n) - 1U) != 0.0)
                                   : n > 2 && has_sum(n);
      ct_note("%s, n %d, seed %d", f->name, (int)n, (int)seed);
      CHECK_EQ_INT(said, is);
      singular += said;
    }
    if (f->real_only)
      CHECK(singular > 4 && singular < 396);
  }
}
