/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct solves of singular and nearly singular matrices. */
#include "tests/unit/shaped_system.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

TEST(direct, names_the_zero_on_the_diagonal_of_a_triangle) {
  for (int kind = LOWER; kind <= UPPER; kind++)
    for (int layout = 0; layout < 2; layout++) {
      shaped s = shaped_make((shape)kind, 80, 1, 0);
      ct_note("shape %d, layout %d", kind, layout);
      s.a[30 * (s.lda + 1)] = s.a[41 * (s.lda + 1)] = 0.0;
      s.options.layout = layout;
      CHECK_EQ_INT(shaped_solve(&s), HONE_SINGULAR);
      CHECK_EQ_INT(layout ? s.report.bad_row : s.report.bad_col, 30);
      CHECK_EQ_INT(layout ? s.report.bad_col : s.report.bad_row, -1);
      CHECK_CONTAINS(s.report.reason, "a pivot is exactly zero");
      CHECK(strstr(s.report.path, "LU") == NULL);
      shaped_discard(&s);
    }
  shaped s = shaped_make(DIAGONAL, 80, 1, 0); /* row 30 is zero */
  s.a[30 * (s.lda + 1)] = 0.0;
  CHECK_EQ_INT(shaped_solve(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_row, 30);
  shaped_discard(&s);
  s = shaped_make(BAND, 80, 1, 0); /* columns 39 and 40 are equal */
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + 39 * s.lda] = s.a[i + 40 * s.lda] = 0.0;
  s.a[39 + 39 * s.lda] = s.a[39 + 40 * s.lda] = 1.0;
  CHECK_EQ_INT(shaped_solve(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_col, 40);
  CHECK(strstr(s.report.path, "double") == NULL);
  shaped_discard(&s);
}

/* b = A ones, rounded once. The true error must be at most the bound; rounding
   b adds a backward error of eps. */
static void check_bound(shaped *s) {
  double *ones = sup_filled(s->n, 1.0), error = 0.0;
  sup_multiply(s->n, s->a, s->lda, false, ones, s->b);
  int st = shaped_solve(s);
  CHECK(st == HONE_OK || st == HONE_NOT_CONVERGED ||
        st == HONE_ILL_CONDITIONED || st == HONE_OVERFLOW);
  for (int64_t i = 0; i < s->n && st >= 0; i++)
    error += fabs(s->x[i] - 1.0) / (double)s->n;
  if (st == HONE_OK)
    CHECK_LE(error, 0.5);
  if (st >= 0 && s->report.forward_error < 1.0 && s->report.rcond > 1e-12)
    CHECK_LE(error, s->report.forward_error + SUP_LIMIT / s->report.rcond);
  sup_free(ones);
}

/* Kahan's triangle, whose condition is 4e4 at order 30 and 1e17 at 90. */
TEST(direct, bounds_errors_for_kahans_matrix) {
  for (int64_t n = 30; n <= 150; n += 30)
    for (int kind = LOWER; kind <= UPPER; kind++) {
      shaped s = shaped_make((shape)kind, n, 1, 0);
      const double sine = sin(1.2), cosine = cos(1.2);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++) {
          const double v = pow(sine, (double)i) * (i == j ? 1.0 : -cosine);
          s.a[kind == UPPER ? i + j * n : j + i * n] = v;
        }
      ct_note("shape %d, n %d", kind, (int)n);
      check_bound(&s);
      CHECK_EQ_INT(s.report.structure, HONE_FOUND_TRIANGULAR);
      if (n == 30)
        shaped_check_path(&s, HONE_FOUND_TRIANGULAR);
      shaped_discard(&s);
    }
}

TEST(direct, bounds_errors_for_random_triangles) {
  for (int64_t n = 20; n <= 320; n *= 2)
    for (int kind = LOWER; kind <= UPPER; kind++) {
      shaped s = shaped_make((shape)kind, n, 1, 0);
      sup_rng rng = {(uint64_t)n};
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          s.a[i + j * n] =
              shaped_inside((shape)kind, i, j) ? sup_normal(&rng) : 0.0;
      ct_note("shape %d, n %d", kind, (int)n);
      check_bound(&s);
      if (n > 100) { /* the condition is 2^n or more */
        CHECK(s.report.status != HONE_OK);
        CHECK_CONTAINS(s.report.reason,
                       "triangular solve: in double precision the matrix "
                       "cannot be told from a singular one");
      }
      shaped_discard(&s);
    }
}

TEST(direct, bounds_errors_for_tiny_diagonal_entries_and_grading) {
  static const double sizes[] = {1e-5, 1e-12, 1e-18, 1e-200, DBL_TRUE_MIN};
  for (int i = 0; i < 5; i++)
    for (int kind = DIAGONAL; kind <= BAND; kind++) {
      shaped s = shaped_make((shape)kind, 100, 1, 0);
      ct_note("shape %d, %g", kind, sizes[i]);
      s.a[50 * (s.lda + 1)] = sizes[i];
      check_bound(&s);
      if (kind == DIAGONAL && i < 4) /* below that, corrections may underflow */
        CHECK_EQ_INT(s.report.status, HONE_OK);
      shaped_fill(&s, (shape)kind, 0.0);
      for (int64_t j = 0; j < s.n; j++)
        for (int64_t k = 0; k < s.n; k++)
          s.a[k + j * s.lda] *= pow(sizes[i], (double)k / (double)s.n);
      check_bound(&s);
      shaped_check_no_worse_than_lu(&s, i < 3);
      shaped_discard(&s);
    }
}

/* The middle diagonal entry is 1e-600 of the largest entries of its row and of
   its column, and underflows when they are scaled. LU in double follows. */
TEST(direct, leaves_to_lu_a_diagonal_that_underflows_when_scaled) {
  shaped s = shaped_make(UPPER, 3, 1, 0);
  static const double a[9] = {1.0, 0.0, 0.0,   1e300, 1e-300,
                              0.0, 0.0, 1e300, 1.0};
  memcpy(s.a, a, sizeof a);
  s.options.structure = HONE_STRUCTURE_GENERAL;
  s.options.factor_precision = HONE_FACTOR_DOUBLE;
  const int st = shaped_solve(&s);
  s.options.structure = HONE_STRUCTURE_AUTO;
  s.options.factor_precision = HONE_FACTOR_AUTO;
  CHECK_EQ_INT(shaped_solve(&s), st);
  CHECK_CONTAINS(s.report.reason, "triangular solve: the factors overflow");
  CHECK_CONTAINS(s.report.path, "triangular solve set aside, double LU");
  shaped_discard(&s);
}
