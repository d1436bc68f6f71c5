/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices whose pivots drop at once and then stay level: those that are lost
   in single precision are not factored in it to the end, and those whose
   singular values are as small as that are (cpu_sp/blocked.c). */
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

enum { ORDER = 600 };

static sys make(int parts, double *a) {
  sys s = sys_make_of(parts, ORDER, 1);
  sup_rng rng = {6};
  sup_free(s.a);
  s.a = parts == 1 ? a : sys_with_phases(&rng, ORDER, ORDER, false, a);
  s.options.device = HONE_DEVICE_CPU;
  s.options.structure = HONE_STRUCTURE_GENERAL;
  s.options.factor_precision = HONE_FACTOR_SINGLE;
  ct_note("parts %d", parts);
  return s;
}

/* Notes how far the factorization in single precision has come. */
static int listen(void *user, const hone_progress *event) {
  double *last = user;
  if (strcmp(event->phase, "factor") == 0)
    *last = fmax(*last, event->fraction);
  return 0;
}

static int solve(sys *s, double *factored) {
  *factored = 0.0;
  s->options.progress = listen;
  s->options.progress_user = factored;
  return sys_solve(s);
}

/* A Cauchy matrix, of numerical rank 20 or so in single precision, plus a
   diagonal with which double precision solves. */
static double *lost(double diagonal) {
  double *a = sup_filled(ORDER * ORDER, 0.0);
  for (int64_t k = 0; k < ORDER * ORDER; k++) {
    const int64_t i = k % ORDER, j = k / ORDER;
    a[k] = (double)ORDER / (double)(ORDER + i + j) + (i == j ? diagonal : 0.0);
  }
  return a;
}

TEST(lost_columns, end_the_factorization_in_single_precision) {
  for (int parts = 1; parts <= 2; parts++)
    for (int k = 0; k < 2; k++) {
      double factored;
      sys s = make(parts, lost(k == 0 ? 0.0 : 1e-9));
      CHECK_EQ_INT(solve(&s, &factored),
                   k == 0 ? HONE_ILL_CONDITIONED : HONE_OK);
      CHECK_CONTAINS(s.report.reason, "pivots fall too fast");
      CHECK_EQ_INT(s.report.precision, 64);
      CHECK_LE(factored, 0.5);
      sys_discard(&s);
    }
}

/* Ones, and 5e-5 to 1e-4 more on the diagonal: all pivots but the first are as
   small, and single precision, which rounds to 6e-8, serves. */
TEST(lost_columns, are_told_from_those_that_are_small) {
  for (int parts = 1; parts <= 2; parts++) {
    double factored, *a = sup_filled(ORDER * ORDER, 1.0);
    sup_rng rng = {8};
    for (int64_t i = 0; i < ORDER; i++)
      a[i * (ORDER + 1)] += 7.5e-5 + 2.5e-5 * sup_uniform(&rng);
    sys s = make(parts, a);
    CHECK_EQ_INT(solve(&s, &factored), HONE_OK);
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_LE(0.5, factored);
    sys_discard(&s);
  }
}
