/* SPDX-License-Identifier: BSD-3-Clause */
/* The first solve of each engine, before any correction. Refinement would hide
   a wrong solve: x would still become right after more corrections. So the
   tolerance here is that of the engine's own arithmetic, and no correction must
   be needed, for any order, number of columns, transpose, layout and unit. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIAGONAL, LOWER, UPPER, BAND, DEFINITE, FULL, KINDS };
enum { MOST_COLUMNS = 70 };

typedef struct sys {
  int64_t n, lda, nrhs;
  int units;
  double *a, *b, *x;
  hone_column column[MOST_COLUMNS];
  hone_options options;
  hone_report report;
} sys;

static bool inside(int kind, int64_t i, int64_t j) {
  switch (kind) {
  case DIAGONAL:
    return i == j;
  case LOWER:
    return i >= j;
  case UPPER:
    return i <= j;
  case BAND:
    return i <= j + 2 && j <= i + 3;
  default:
    return true;
  }
}

/* Diagonally dominant and without entries near zero, so that |L| |U| is at most
   a small multiple of |A|, entry by entry. units sets the powers of two of rows
   and columns. */
static void fill(sys *s, int kind, int units) {
  sup_rng rng = {(uint64_t)(11 * s->n + kind)};
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t low = HONE_MIN(i, j), high = HONE_MAX(i, j);
      sup_rng pair = {(uint64_t)(low * s->n + high)};
      double v = sup_uniform(kind == DEFINITE ? &pair : &rng);
      const double off = copysign(0.25 + 0.5 * fabs(v), v);
      v = i == j ? 1.5 + v : off / (kind == BAND ? 8.0 : (double)s->n);
      s->a[i + j * s->lda] =
          inside(kind, i, j)
              ? ldexp(v, units * (int)((i * 5) % 7 + (j * 3) % 11 - 8))
              : 0.0;
    }
}

static sys make(int kind, int64_t n, int64_t nrhs, int units) {
  sys s = {.report = HONE_REPORT_INIT,
           .n = n,
           .lda = n + 1,
           .nrhs = nrhs,
           .units = units};
  sup_rng rng = {(uint64_t)(n + nrhs)};
  s.a = sup_filled(s.lda * n, 3e99);
  s.b = sup_filled(n * nrhs, 0.0);
  s.x = sup_filled(n * nrhs, 0.0);
  fill(&s, kind, units);
  sup_random(&rng, n, nrhs, s.b, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.options.device = HONE_DEVICE_CPU;
  s.options.threads = 2;
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* x must have the backward error of LU and two substitutions, n eps |L| |U| for
   each, where |L| |U| is hardly larger than |A|. With mixed units scaling may
   leave entries off the diagonal the largest; then a quarter of the digits is
   enough, as a wrong solve has none. */
static void check_at_once(sys *s, double eps, const char *way) {
  const bool trans =
      (s->options.trans == HONE_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
  s->options.columns = s->column;
  s->options.tolerance =
      s->units ? pow(eps, 0.25) : 4.0 * (double)(s->n + 4) * eps;
  const int st = hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->n, s->x, s->n,
                            &s->options, &s->report);
  ct_note("n %d, nrhs %d, trans %d, row-major %d, %s (%s)", (int)s->n,
          (int)s->nrhs, s->options.trans, s->options.layout, s->report.path,
          s->report.reason);
  CHECK_EQ_INT(st, HONE_OK);
  CHECK(strncmp(s->report.path, way, strlen(way)) == 0);
  CHECK_EQ_INT(s->report.iterations, 0);
  CHECK_EQ_INT(s->report.gmres_steps, 0);
  CHECK_EQ_INT(s->report.fallback_columns, 0);
  for (int64_t c = 0; c < s->nrhs; c++) {
    CHECK_EQ_INT(s->column[c].iterations, 0);
    if (s->n <= 65 && c < 9) /* quadruple precision is slow */
      CHECK_LE(sup_backward_error(s->n, s->a, s->lda, trans, s->x + c * s->n,
                                  s->b + c * s->n),
               s->options.tolerance);
  }
}

static void every_form(sys *s, double eps, const char *way) {
  for (int form = 0; form < 4; form++) {
    s->options.trans = form & 1 ? HONE_TRANS : HONE_NO_TRANS;
    s->options.layout = form & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    check_at_once(s, eps, way);
  }
}

static const char *const direct[] = {"diagonal solve", "triangular solve",
                                     "triangular solve", "banded LU"};

/* The boundaries are blocks of 64 columns, pieces of 256 rows where A is
   scaled, and up to three right-hand sides, which are solved one by one. */
TEST(first_solve, of_a_direct_engine_is_right_for_any_columns) {
  static const int orders[] = {25, 64, 65, 330};
  static const int columns[] = {1, 3, 4, 70};
  for (int kind = DIAGONAL; kind <= BAND; kind++)
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
      for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        if (columns[c] == 70 && orders[k] > 65)
          continue;
        for (int units = 0; units < 2; units++) {
          sys s = make(kind, orders[k], columns[c], 9 * units);
          every_form(&s, SUP_EPS, direct[kind]);
          CHECK_EQ_INT(
              s.report.scale_exponent_min < s.report.scale_exponent_max, units);
          discard(&s);
        }
      }
}

TEST(first_solve, of_lu_in_double_is_right_for_any_columns) {
  static const int orders[] = {1, 2, 31, 64, 65, 130, 260};
  static const int columns[] = {1, 2, 3, 4, 9};
  for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
      for (int units = 0; units < 2; units++) {
        sys s = make(FULL, orders[k], columns[c], 9 * units);
        s.options.structure = HONE_STRUCTURE_GENERAL;
        s.options.factor_precision = HONE_FACTOR_DOUBLE;
        s.options.deterministic = 1; /* by the engine */
        every_form(&s, SUP_EPS, "double LU");
        discard(&s);
      }
}

/* The project's LU and OpenBLAS's, with their blocks. */
TEST(first_solve, of_lu_in_single_is_right_for_any_columns) {
  static const int orders[] = {1,  2,  3,   4,   5,   7,   8,   9,  15,
                               16, 17, 31,  32,  33,  48,  63,  64, 65,
                               96, 97, 127, 128, 129, 200, 257, 420};
  static const int columns[] = {1, 2, 3, 4, 5, 8, 9, 17};
  for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
      if (orders[k] > 130 && c % 3 != 1)
        continue;
      sys s = make(FULL, orders[k], columns[c], c % 2 ? 9 : 0);
      s.options.structure = HONE_STRUCTURE_GENERAL;
      s.options.factor_precision = HONE_FACTOR_SINGLE;
      every_form(&s, 0x1p-24, "single LU");
      discard(&s);
    }
}

TEST(first_solve, of_cholesky_in_single_is_right_for_any_columns) {
  static const int orders[] = {1, 2, 5, 16, 33, 64, 65, 130, 260};
  static const int columns[] = {1, 2, 3, 4, 9};
  for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++)
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
      sys s = make(DEFINITE, orders[k], columns[c], 0);
      s.options.structure = HONE_STRUCTURE_SPD;
      s.options.factor_precision = HONE_FACTOR_SINGLE;
      every_form(&s, 0x1p-24, "single Cholesky");
      discard(&s);
    }
}

/* The band has so many columns that every task has more than its minimum. The
   entry that makes the band widest stands in any of them. */
TEST(first_solve, of_a_long_band_is_right_wherever_it_is_widest) {
  const int64_t n = 4096; /* 134 MB, nearly all of it pages of zeros */
  sys s = {.report = HONE_REPORT_INIT, .n = n, .lda = n, .nrhs = 1};
  s.a = calloc((size_t)(n * n), sizeof *s.a);
  s.b = sup_filled(n, 1.0);
  s.x = sup_filled(n, 0.0);
  REQUIRE(s.a != NULL);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.options.device = HONE_DEVICE_CPU;
  s.options.threads = 2;
  for (int64_t i = 0; i < n; i++)
    s.a[i * (n + 1)] = 2.0;
  for (int64_t at = 1; at < n; at += n / 3) {
    s.a[at + 7 + (at - 1) * n] = 0.25;
    check_at_once(&s, SUP_EPS, "triangular solve");
    s.a[at + 3 + (at + 6) * n] = -0.25;
    check_at_once(&s, SUP_EPS, "banded LU (8 below, 3 above)");
    s.a[at + 7 + (at - 1) * n] = s.a[at + 3 + (at + 6) * n] = 0.0;
  }
  sup_free(s.b);
  sup_free(s.x);
  free(s.a);
}

/* Growth is a quotient: it has the same bits if A is multiplied by a power of
   four (Cholesky takes square roots). */
TEST(first_solve, has_the_same_growth_whatever_the_magnitude_of_a) {
  static const int sizes[] = {-70, -30, -4, 4, 30, 70};
  for (int kind = DIAGONAL; kind < KINDS; kind++)
    for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
      double growth = 0.0, norm1 = 0.0, rcond = 0.0;
      for (int k = -1; k < 6; k++) {
        sys s = make(kind, 40, 1, 0);
        s.options.factor_precision = start;
        s.options.structure =
            kind == DEFINITE ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
        for (int64_t i = 0; k >= 0 && i < s.lda * s.n; i++)
          s.a[i] = ldexp(s.a[i], sizes[k]);
        CHECK_EQ_INT(hone_solve(s.n, 1, s.a, s.lda, s.b, s.n, s.x, s.n,
                                &s.options, &s.report),
                     HONE_OK);
        ct_note("kind %d, times 2^%d: %s", kind, k < 0 ? 0 : sizes[k],
                s.report.path);
        if (k < 0) {
          growth = s.report.growth;
          norm1 = s.report.norm1;
          rcond = s.report.rcond;
          CHECK_LE(0.5, growth);
          CHECK_LE(growth, 2.0);
        }
        CHECK_NEAR(s.report.growth, growth, 0.0);
        CHECK_LE(rcond, 2.0 * s.report.rcond); /* an estimate, which depends */
        CHECK_LE(s.report.rcond, 2.0 * rcond); /* on the draw */
        CHECK_NEAR(s.report.norm1, ldexp(norm1, k < 0 ? 0 : sizes[k]), 0.0);
        discard(&s);
      }
    }
}
