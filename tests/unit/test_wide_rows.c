/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error in the report where rows are computed one by one in
   extended range, because no shift keeps the digits of all entries of x and b:
   it is that of the x returned, and not smaller by the rounding of long double,
   which is as large as the limit where n is in the hundreds. */
#include "tests/unit/complex_system.h"
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>

/* Both the reported omega and the measured one have denominators rounded in
   double or long double, and moduli: some units in the last place. */
static const double AGREES = 1e-12;

/* Row i (column i, for A^T) has the unit 2^e_i, and so has b_i; e_i is between
   -1000 and 1000, and is -1012 and 1015 once. */
static sys make(int parts, int64_t n, int trans, uint64_t seed) {
  sys s = sys_make_of(parts, n, 1);
  sup_rng rng = {seed};
  s.options.device = HONE_DEVICE_CPU;
  s.options.trans = trans;
  for (int64_t i = 0; i < n; i++) {
    const int random = (int)(1000.0 * sup_uniform(&rng));
    const int e = i == 0 ? 1015 : i == n - 1 ? -1012 : random;
    for (int64_t j = 0; j < n; j++)
      for (int p = 0; p < parts; p++) {
        const int64_t at = trans ? j + i * n : i + j * n;
        s.a[p + parts * at] = ldexp(sup_uniform(&rng), e);
      }
    for (int p = 0; p < parts; p++)
      s.b[p + parts * i] = ldexp(sup_uniform(&rng), e + 7);
  }
  return s;
}

/* Removes the entries below the diagonal, or above it. */
static void make_triangular(sys *s, bool lower) {
  for (int64_t k = 0; k < s->n * s->n; k++)
    for (int p = 0; p < s->parts; p++)
      if (lower ? k % s->n < k / s->n : k % s->n > k / s->n)
        s->a[p + s->parts * k] = 0.0;
}

static double measured(const sys *s) {
  const cs_problem p = {.n = s->n,
                        .lda = s->n,
                        .a = (const hone_complex *)s->a,
                        .trans = s->options.trans};
  if (s->parts == 1)
    return sup_backward_error(s->n, s->a, s->n, s->options.trans, s->x, s->b);
  return cs_backward_error(&p, (const hone_complex *)s->x,
                           (const hone_complex *)s->b);
}

static void check(sys *s) {
  const int st = sys_call(s);
  ct_note("parts %d, n %d, trans %d, status %d", s->parts, (int)s->n,
          s->options.trans, st);
  REQUIRE(st >= 0);
  const double omega = measured(s);
  CHECK_NEAR(s->report.backward_error, omega, AGREES * omega);
  if (st == HONE_OK)
    CHECK_LE(omega, SUP_LIMIT);
}

static void check_orders(int shape) {
  static const int64_t orders[] = {2, 3, 5, 9, 20, 60, 150};
  for (int parts = 1; parts <= 2; parts++)
    for (int k = 0; k < 28; k++) {
      sys s = make(parts, orders[k / 4], k / 2 % 2, (uint64_t)k);
      if (shape > 0)
        make_triangular(&s, shape == 1);
      check(&s);
      sys_discard(&s);
    }
}

TEST(wide_rows, have_the_backward_error_reported) { check_orders(0); }

TEST(wide_rows, have_it_in_triangular_systems) {
  check_orders(1);
  check_orders(2);
}
