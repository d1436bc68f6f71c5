/* SPDX-License-Identifier: BSD-3-Clause */
/* What is found of a matrix's structure, and the direct ways that follow from
   it: diagonal, triangular, banded; Cholesky where it may be definite. Below
   it, the ladder with an engine that is for some matrices alone. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "cpu_dp/structure.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double UNTOUCHED = 6.5e99;

typedef enum shape {
  DIAGONAL,
  LOWER,
  UPPER,
  BAND, /* 2 below, 1 above */
  DEFINITE,
  FULL,
  SHAPES
} shape;

/* Padding below the n rows is NaN: nobody reads it. */
typedef struct sys {
  int64_t n, lda, nrhs;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} sys;

static bool inside(shape kind, int64_t i, int64_t j) {
  switch (kind) {
  case DIAGONAL:
    return i == j;
  case LOWER:
    return i >= j;
  case UPPER:
    return i <= j;
  case BAND:
    return i <= j + 2 && j <= i + 1;
  default:
    return true;
  }
}

/* Well conditioned; units: rows and columns span 10^+-units. */
static void fill(sys *s, shape kind, double units) {
  sup_rng rng = {(uint64_t)(7 * s->n + (int)kind)};
  double *d = sup_filled(2 * s->n, 1.0);
  for (int64_t i = 0; i < 2 * s->n && units > 0.0; i++)
    d[i] = pow(10.0, 2.0 * units * sup_uniform(&rng));
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++) {
      double v = sup_uniform(&rng) / sqrt((double)s->n);
      if (kind == BAND)
        v = sup_uniform(&rng);
      if (i == j) /* one diagonal entry of the band is small: pivoting */
        v = kind == BAND && i == 5 ? 1e-3 : 1.0 + fabs(v);
      if (kind == DEFINITE && i > j)
        v = 0.0;
      s->a[i + j * s->lda] = inside(kind, i, j) ? v * d[i] * d[s->n + j] : 0.0;
    }
  for (int64_t j = 0; j < s->n && kind == DEFINITE; j++)
    for (int64_t i = j + 1; i < s->n; i++)
      s->a[i + j * s->lda] = s->a[j + i * s->lda];
  sup_free(d);
}

static sys make(shape kind, int64_t n, int64_t nrhs, int64_t pad) {
  sys s = {.n = n, .lda = n + pad, .nrhs = nrhs};
  sup_rng rng = {(uint64_t)n};
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(n * nrhs, 0.0);
  s.x = sup_filled(n * nrhs, UNTOUCHED);
  fill(&s, kind, 0.0);
  sup_random(&rng, n, nrhs, s.b, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s.report, sizeof s.report);
  s.options.device = HONE_DEVICE_CPU;
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* Is x as good as its status says? */
static void check_x(const sys *s, int st) {
  const bool trans =
      (s->options.trans == HONE_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
  for (int64_t c = 0; c < s->nrhs && st == HONE_OK; c++)
    CHECK_LE(sup_backward_error(s->n, s->a, s->lda, trans, s->x + c * s->n,
                                s->b + c * s->n),
             SUP_LIMIT);
  if (st < 0)
    CHECK(sup_untouched(s->x, s->n * s->nrhs, UNTOUCHED));
}

static int solve(sys *s) {
  int st = hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->n, s->x, s->n,
                      &s->options, &s->report);
  check_x(s, st);
  return st;
}

/* The structure expected of a shape, and the way that follows. */
static int found(shape kind, int64_t n) {
  if (kind == DIAGONAL || n == 1)
    return HONE_FOUND_DIAGONAL;
  if (kind == LOWER || kind == UPPER)
    return HONE_FOUND_TRIANGULAR;
  return kind == BAND && n >= 17 ? HONE_FOUND_BANDED : HONE_FOUND_GENERAL;
}

static const char *const ways[] = {"single LU", "single Cholesky",
                                   "banded LU (2 below, 1 above)",
                                   "triangular solve", "diagonal solve"};

static void check_way(const sys *s, int structure) {
  CHECK_EQ_INT(s->report.structure, structure);
  CHECK(strncmp(s->report.path, ways[structure], strlen(ways[structure])) == 0);
  CHECK(strstr(s->report.path, "set aside") == NULL);
  CHECK_STR(s->report.reason, "");
  CHECK_CONTAINS(s->report.device, "CPU");
  CHECK_LE(s->report.fallback_ms, 0.0);
  if (structure >= HONE_FOUND_BANDED) /* refinement mends wrong ways, too */
    CHECK_LE(s->report.iterations, 1);
  CHECK_EQ_INT(s->report.precision, structure >= HONE_FOUND_BANDED ? 64 : 32);
}

/* Every structure -----------------------------------------------------------
 */

static const int64_t orders[] = {1, 2, 3, 17, 64, 65, 200};
enum { ORDERS = sizeof orders / sizeof *orders, FORMS = 16 };

static void take_form(sys *s, int form) {
  s->options.trans = form & 1 ? HONE_TRANS : HONE_NO_TRANS;
  s->options.layout = form & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
}

TEST(direct, solves_every_structure_in_every_form) {
  for (int kind = 0; kind < SHAPES; kind++)
    for (int i = 0; i < ORDERS; i++)
      for (int form = 0; form < FORMS; form++) {
        sys s =
            make((shape)kind, orders[i], form & 4 ? 5 : 1, form & 8 ? 3 : 0);
        ct_note("shape %d, n %d, form %d", kind, (int)s.n, form);
        take_form(&s, form);
        CHECK_EQ_INT(solve(&s), HONE_OK);
        const int structure = found((shape)kind, s.n);
        if (kind != BAND || structure != HONE_FOUND_BANDED ||
            s.options.layout == HONE_COL_MAJOR)
          check_way(&s, structure);
        CHECK_EQ_INT(s.report.accepted, s.nrhs);
        discard(&s);
      }
}

/* must: it is to be accepted; else where LU of all of A is: numbers may leave
   the range of double precision whoever factors. */
static void check_no_worse_than_lu(sys *s, bool must) {
  if (!must) {
    s->options.structure = HONE_STRUCTURE_GENERAL;
    must = solve(s) == HONE_OK;
    s->options.structure = HONE_STRUCTURE_AUTO;
  }
  const int st = solve(s);
  CHECK(st == HONE_OK || (st > 0 && !must));
}

/* Pieces of A are then scaled on their way; those of order 600 are cut. */
TEST(direct, solves_every_structure_in_mixed_units) {
  static const double units[] = {5.0, 60.0};
  for (int kind = 0; kind <= BAND; kind++)
    for (int form = 0; form < FORMS / 2; form++)
      for (int u = 0; u < 2; u++) {
        sys s = make((shape)kind, form & 4 ? 90 : 400, form & 4 ? 5 : 1, 1);
        ct_note("shape %d, form %d, 10^+-%g", kind, form, units[u]);
        fill(&s, (shape)kind, units[u]);
        take_form(&s, form);
        check_no_worse_than_lu(&s, kind < BAND || u == 0);
        CHECK_EQ_INT(s.report.structure, found((shape)kind, s.n));
        CHECK(strstr(s.report.path, "set aside") == NULL);
        CHECK_LT(s.report.scale_exponent_min, -3);
        CHECK(u == 1 || strstr(s.report.path, "double") == NULL);
        if (kind < BAND)
          CHECK_LE(s.report.iterations, 2);
        discard(&s);
      }
}

TEST(direct, takes_cholesky_for_what_may_be_definite) {
  for (int form = 0; form < FORMS; form += 3) {
    sys s = make(DEFINITE, 520, form & 4 ? 5 : 1, form & 8 ? 3 : 0);
    ct_note("form %d", form);
    take_form(&s, form);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_way(&s, HONE_FOUND_DEFINITE);
    discard(&s);
  }
}

TEST(direct, shares_the_look_among_threads) {
  for (int kind = 0; kind < SHAPES; kind++)
    for (int threads = 1; threads <= 3; threads += 2) {
      sys s = make((shape)kind, 600, 1, 0);
      ct_note("shape %d, %d threads", kind, threads);
      s.options.threads = threads;
      CHECK_EQ_INT(solve(&s), HONE_OK);
      check_way(&s, kind == DEFINITE ? HONE_FOUND_DEFINITE
                                     : found((shape)kind, s.n));
      discard(&s);
    }
}

/* The pivots of a band are those of LU of all of A. */
TEST(direct, measures_the_growth_that_lu_would) {
  for (int kind = 0; kind <= BAND; kind++) {
    sys s = make((shape)kind, 90, 1, 0);
    ct_note("shape %d", kind);
    s.a[20 * 91] = 1e-9; /* a large multiplier, or an exchange */
    CHECK_EQ_INT(solve(&s), HONE_OK);
    const double growth = s.report.growth;
    s.options.structure = HONE_STRUCTURE_GENERAL;
    s.options.factor_precision = HONE_FACTOR_DOUBLE;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_NEAR(growth, kind == LOWER ? 1.0 : s.report.growth, 1e-12);
    CHECK(kind != BAND || growth > 1.01 || growth < 0.99);
    discard(&s);
  }
}

/* Options ------------------------------------------------------------------ */

TEST(direct, does_not_look_where_that_is_not_wanted) {
  for (int kind = 0; kind < SHAPES; kind++) {
    sys s = make((shape)kind, 520, 1, 0);
    ct_note("shape %d", kind);
    s.options.structure = HONE_STRUCTURE_GENERAL;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_way(&s, HONE_FOUND_GENERAL);
    s.options.structure = HONE_STRUCTURE_SPD; /* said, not found */
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_CONTAINS(s.report.path, "single Cholesky");
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_GENERAL);
    discard(&s);
  }
}

TEST(direct, leaves_cholesky_out_of_a_start_in_double) {
  for (int kind = 0; kind < SHAPES; kind++) {
    sys s = make((shape)kind, 520, 1, 0);
    ct_note("shape %d", kind);
    s.options.factor_precision = HONE_FACTOR_DOUBLE;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK((strstr(s.report.path, "double LU") == NULL) == (kind <= BAND));
    discard(&s);
  }
}

TEST(direct, needs_little_memory_and_no_more_than_it_says) {
  for (int kind = 0; kind <= BAND; kind++) {
    sys s = make((shape)kind, 1000, 1, 0);
    ct_note("shape %d", kind);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_LE(s.report.host_bytes, 1000000); /* single LU: 4 n^2 */
    discard(&s);
  }
  for (int64_t n = 20; n <= 660; n += 128) {
    sys s = make(BAND, n, 1, 0);
    int64_t single = 0, below = n;
    while (!hone_band_pays(below, 1, n))
      below--;
    for (int64_t j = 0; j < n; j++) /* the widest band, most of it below */
      for (int64_t i = j + 1; i < HONE_MIN(j + below + 1, n); i++)
        s.a[i + j * n] = 1.0 / (double)(n + i + j);
    ct_note("n %d, %d below", (int)n, (int)below);
    CHECK_EQ_INT(hone_memory_needed(n, 1, &s.options, &single, NULL), HONE_OK);
    s.options.memory_limit_bytes = single;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_BANDED);
    CHECK_LE(s.report.host_bytes, single);
    CHECK_LE(1.0, (double)hone_engine_banded.bytes(n, 1) /
                      (8.0 * (double)n * (2.0 * (double)below + 2.0)));
    discard(&s);
  }
}

/* Near misses -------------------------------------------------------------- */

static hone_structure look(const sys *s) {
  hone_structure structure;
  double *scratch = sup_filled(s->n, 0.0);
  const hone_matrix a = *sup_matrix(s->n, s->lda, s->a);
  hone_structure_find(NULL, hone_dense_of(&a), true, scratch, &structure);
  sup_free(scratch);
  return structure;
}

/* Every single entry outside a band of 4 below and 3 above. */
TEST(direct, finds_the_band_whichever_entry_makes_it) {
  static const double values[] = {1.0, -DBL_TRUE_MIN, (double)NAN,
                                  (double)INFINITY};
  sys s = make(BAND, 150, 1, 2);
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++) {
      const int64_t lower = HONE_MAX(i - j, (int64_t)2);
      const int64_t upper = HONE_MAX(j - i, (int64_t)1);
      double *entry = &s.a[i + j * s.lda];
      if (inside(BAND, i, j))
        continue;
      *entry = values[(i + j) % 4];
      const hone_structure f = look(&s);
      const bool pays = hone_band_pays(lower, upper, s.n);
      if (f.lower != (pays ? lower : s.n - 1) ||
          f.upper != (pays ? upper : s.n - 1) || f.definite) {
        ct_note("entry %d, %d: %d, %d", (int)i, (int)j, (int)f.lower,
                (int)f.upper);
        CHECK_STR("the band is wrong", "");
      }
      *entry = -0.0;
    }
  CHECK_EQ_INT(look(&s).lower, 2); /* zeros of either sign */
  CHECK_EQ_INT(look(&s).upper, 1);
  discard(&s);
}

TEST(direct, finds_triangles_whichever_entry_breaks_them) {
  for (int kind = LOWER; kind <= UPPER; kind++) {
    sys s = make((shape)kind, 90, 1, 1);
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t i = 0; i < s.n; i++) {
        if (inside((shape)kind, i, j))
          continue;
        s.a[i + j * s.lda] = 1e-300;
        const hone_structure f = look(&s);
        if (f.lower != s.n - 1 || f.upper != s.n - 1) {
          ct_note("entry %d, %d: %d, %d", (int)i, (int)j, (int)f.lower,
                  (int)f.upper);
          CHECK_STR("no triangle", "");
        }
        s.a[i + j * s.lda] = 0.0;
      }
    CHECK_EQ_INT(kind == LOWER ? look(&s).upper : look(&s).lower, 0);
    discard(&s);
  }
}

TEST(direct, finds_symmetry_broken_by_one_bit_anywhere) {
  sys s = make(DEFINITE, 70, 1, 1);
  CHECK(look(&s).definite);
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++) {
      double *entry = &s.a[i + j * s.lda], before = *entry;
      *entry = i == j ? -before : nextafter(before, 2.0);
      if (look(&s).definite) {
        ct_note("entry %d, %d", (int)i, (int)j);
        CHECK_STR("taken for definite", "");
      }
      *entry = (double)NAN;
      if (look(&s).definite) {
        ct_note("NaN at %d, %d", (int)i, (int)j);
        CHECK_STR("taken for definite", "");
      }
      *entry = before;
    }
  s.a[3 + 50 * s.lda] = s.a[50 + 3 * s.lda] = 2.0; /* a minor of two */
  CHECK(!look(&s).definite);
  discard(&s);
}

TEST(direct, solves_what_is_nearly_structured_by_lu) {
  for (int kind = 0; kind < SHAPES; kind++) {
    sys s = make((shape)kind, 520, 1, 0);
    double *entry = &s.a[kind == LOWER ? 11 + 499 * s.lda : 499 + 11 * s.lda];
    double *other = &s.a[kind == BAND ? 3 + 400 * s.lda : 0];
    ct_note("shape %d", kind);
    if (kind == DIAGONAL)
      s.a[7 + 300 * s.lda] = 1e-3;
    *entry = *entry == 0.0 ? 1e-3 : nextafter(*entry, 2.0);
    *other = *other == 0.0 ? 1e-3 : *other;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    check_way(&s, HONE_FOUND_GENERAL);
    discard(&s);
  }
}

/* NaN and Inf in the part that a direct way would not read, and in the one
   that it would. */
TEST(direct, finds_what_is_not_finite_wherever_it_is) {
  static const int64_t places[][2] = {{0, 519},   {519, 0}, {100, 300},
                                      {300, 100}, {77, 77}, {518, 519}};
  for (int kind = 0; kind < SHAPES; kind++)
    for (int p = 0; p < 6; p++)
      for (int layout = 0; layout < 2; layout++) {
        sys s = make((shape)kind, 520, 1, 0);
        const int64_t i = places[p][0], j = places[p][1];
        ct_note("shape %d, place %d, layout %d", kind, p, layout);
        s.a[i + j * s.lda] = (double)(p % 2 ? NAN : INFINITY);
        s.options.layout = layout;
        CHECK_EQ_INT(solve(&s), HONE_NOT_FINITE_A);
        CHECK_EQ_INT(layout ? s.report.bad_col : s.report.bad_row, i);
        CHECK_EQ_INT(layout ? s.report.bad_row : s.report.bad_col, j);
        discard(&s);
      }
}

/* Not definite after all: LU, and accepted. */
TEST(direct, leaves_cholesky_where_a_pivot_is_not_positive) {
  sys s = make(DEFINITE, 520, 2, 0);
  for (int64_t k = 0; k < 2; k++) /* eigenvalue 1 - 1.5 */
    for (int64_t l = 0; l < 3; l++)
      s.a[(517 + l) + (517 + (l + k + 1) % 3) * s.lda] = -0.75;
  for (int64_t l = 0; l < 3; l++)
    s.a[517 + l + (517 + l) * s.lda] = 1.0;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  CHECK_CONTAINS(s.report.reason, "single Cholesky: a pivot is not positive");
  CHECK_CONTAINS(s.report.path, "single Cholesky set aside, single LU");
  discard(&s);
}

/* Beyond single precision, found out by a pivot or by refinement: Cholesky in
   double, and no LU. */
TEST(direct, follows_cholesky_in_single_by_cholesky_in_double) {
  static const double conditions[] = {1e10, 1e13, 1e6};
  for (int i = 0; i < 3; i++) {
    sys s = make(DEFINITE, 520, 2, 0);
    sup_rng rng = {5};
    ct_note("condition %g", conditions[i]);
    sup_matrix_spd(&rng, s.n, conditions[i], s.a);
    for (int64_t k = 0; k < s.n * s.n; k++)
      s.a[k] *= 0.0625;
    s.options.max_iterations = conditions[i] <= 1e6;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "single Cholesky: ");
    CHECK_CONTAINS(s.report.path, "double Cholesky");
    CHECK(strstr(s.report.path, "LU") == NULL);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_LE(s.report.growth, 1.0 + 1e-9);
    discard(&s);
  }
}

/* Symmetric and singular: equations 100 and 400 are the same. */
TEST(direct, takes_nothing_singular_for_definite) {
  sys s = make(DEFINITE, 520, 1, 0);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + 400 * s.n] = s.a[i + 100 * s.n];
  for (int64_t j = 0; j < s.n; j++)
    s.a[400 + j * s.n] = s.a[100 + j * s.n];
  const int st = solve(&s);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  discard(&s);
}

/* Singular, or nearly ------------------------------------------------------ */

TEST(direct, names_the_zero_on_the_diagonal_of_a_triangle) {
  for (int kind = LOWER; kind <= UPPER; kind++)
    for (int layout = 0; layout < 2; layout++) {
      sys s = make((shape)kind, 80, 1, 0);
      ct_note("shape %d, layout %d", kind, layout);
      s.a[30 * (s.lda + 1)] = s.a[41 * (s.lda + 1)] = 0.0;
      s.options.layout = layout;
      CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
      CHECK_EQ_INT(layout ? s.report.bad_row : s.report.bad_col, 30);
      CHECK_EQ_INT(layout ? s.report.bad_col : s.report.bad_row, -1);
      CHECK_CONTAINS(s.report.reason, "a pivot is exactly zero");
      CHECK(strstr(s.report.path, "LU") == NULL);
      discard(&s);
    }
  sys s = make(DIAGONAL, 80, 1, 0); /* that is a row of zeros */
  s.a[30 * (s.lda + 1)] = 0.0;
  CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_row, 30);
  discard(&s);
  s = make(BAND, 80, 1, 0); /* columns 39 and 40 are equal */
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + 39 * s.lda] = s.a[i + 40 * s.lda] = 0.0;
  s.a[39 + 39 * s.lda] = s.a[39 + 40 * s.lda] = 1.0;
  CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
  CHECK_EQ_INT(s.report.bad_col, 40);
  CHECK(strstr(s.report.path, "double") == NULL);
  discard(&s);
}

/* b = A times ones, rounded once: is the bound on x's error one? The data's
   own rounding adds omega = eps. */
static void check_bound(sys *s) {
  double *ones = sup_filled(s->n, 1.0), error = 0.0;
  sup_multiply(s->n, s->a, s->lda, false, ones, s->b);
  int st = solve(s);
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

/* Kahan's triangle: condition 4e4 at order 30, 1e17 at 90. */
TEST(direct, is_honest_about_kahans_matrix) {
  for (int64_t n = 30; n <= 150; n += 30)
    for (int kind = LOWER; kind <= UPPER; kind++) {
      sys s = make((shape)kind, n, 1, 0);
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
        check_way(&s, HONE_FOUND_TRIANGULAR);
      discard(&s);
    }
}

TEST(direct, is_honest_about_triangles_of_random_numbers) {
  for (int64_t n = 20; n <= 320; n *= 2)
    for (int kind = LOWER; kind <= UPPER; kind++) {
      sys s = make((shape)kind, n, 1, 0);
      sup_rng rng = {(uint64_t)n};
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          s.a[i + j * n] = inside((shape)kind, i, j) ? sup_normal(&rng) : 0.0;
      ct_note("shape %d, n %d", kind, (int)n);
      check_bound(&s);
      if (n > 100) /* condition 2^n and more */
        CHECK(s.report.status != HONE_OK);
      discard(&s);
    }
}

TEST(direct, is_honest_about_tiny_diagonals_and_graded_triangles) {
  static const double sizes[] = {1e-5, 1e-12, 1e-18, 1e-200, DBL_TRUE_MIN};
  for (int i = 0; i < 5; i++)
    for (int kind = DIAGONAL; kind <= BAND; kind++) {
      sys s = make((shape)kind, 100, 1, 0);
      ct_note("shape %d, %g", kind, sizes[i]);
      s.a[50 * (s.lda + 1)] = sizes[i];
      check_bound(&s);
      if (kind == DIAGONAL && i < 4) /* below, errors may have vanished */
        CHECK_EQ_INT(s.report.status, HONE_OK);
      fill(&s, (shape)kind, 0.0);
      for (int64_t j = 0; j < s.n; j++)
        for (int64_t k = 0; k < s.n; k++)
          s.a[k + j * s.lda] *= pow(sizes[i], (double)k / (double)s.n);
      check_bound(&s);
      check_no_worse_than_lu(&s, i < 3);
      discard(&s);
    }
}

/* The only diagonal entry of its row and column, 10^-600 of both in size, is
   zero once these are scaled: LU says what it can of that. */
TEST(direct, leaves_to_lu_what_scaling_takes_from_the_diagonal) {
  sys s = make(UPPER, 3, 1, 0);
  static const double a[9] = {1.0, 0.0, 0.0,   1e300, 1e-300,
                              0.0, 0.0, 1e300, 1.0};
  memcpy(s.a, a, sizeof a);
  s.options.structure = HONE_STRUCTURE_GENERAL;
  const int st = solve(&s);
  s.options.structure = HONE_STRUCTURE_AUTO;
  CHECK_EQ_INT(solve(&s), st);
  CHECK_CONTAINS(s.report.reason, "triangular solve: the factors overflow");
  CHECK_CONTAINS(s.report.path, "triangular solve set aside, double LU");
  discard(&s);
}

/* A solver that is kept -----------------------------------------------------
 */

static void solve_kept(hone_solver *solver, sys *s) {
  for (int trans = 0; trans < 2; trans++) {
    s->options.trans = trans;
    int st = sup_solver_solve(solver, trans, s->nrhs, s->b, s->n, s->x, s->n,
                              NULL, 0, NULL, &s->report);
    CHECK_EQ_INT(st, HONE_OK);
    check_x(s, st);
  }
}

static int64_t calls;

static void *count(size_t bytes, void *ctx) {
  (void)ctx;
  calls++;
  return malloc(bytes);
}

static void release(void *memory, void *ctx) {
  (void)ctx;
  free(memory);
}

TEST(direct, takes_matrices_of_other_structure_one_after_another) {
  hone_solver *solver = NULL;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.alloc = count;
  o.free = release;
  REQUIRE(hone_solver_create(&solver, 520, &o) == HONE_OK);
  for (int round = 0; round < 3; round++) {
    if (round == 2)
      calls = 0; /* every structure has been there, in both units */
    for (int kind = 0; kind < SHAPES; kind++) {
      sys s = make((shape)kind, 520, 2, 3);
      ct_note("round %d, shape %d", round, kind);
      fill(&s, (shape)kind, round == 1 ? 5.0 : 0.0);
      CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
      solve_kept(solver, &s);
      if (round != 1)
        check_way(&s, kind == DEFINITE ? HONE_FOUND_DEFINITE
                                       : found((shape)kind, s.n));
      discard(&s);
    }
  }
  CHECK_EQ_INT(calls, 0);
  hone_solver_destroy(&solver);
}

/* Room for the widest band so far. */
TEST(direct, takes_bands_of_any_width_one_after_another) {
  static const int64_t widths[] = {2, 9, 3, 14, 14, 9};
  static const bool grows[] = {true, true, false, true, false, false};
  hone_solver *solver = NULL;
  sys s = make(BAND, 150, 1, 0);
  s.options.alloc = count;
  s.options.free = release;
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  for (int i = 0; i < 6; i++) {
    fill(&s, BAND, 0.0);
    for (int64_t j = 0; j + widths[i] < s.n; j++)
      s.a[j + widths[i] + j * s.n] = s.a[j + (j + widths[i]) * s.n] = 0.1;
    calls = 0;
    ct_note("band %d", i);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
    CHECK_EQ_INT(s.report.structure, HONE_FOUND_BANDED);
    CHECK((calls > 0) == grows[i]);
    solve_kept(solver, &s);
  }
  hone_solver_destroy(&solver);
  discard(&s);
}

/* The matrix before is gone when the next is there. */
TEST(direct, updates_from_every_structure_to_every_other) {
  for (int from = 0; from < SHAPES; from++)
    for (int to = 0; to < SHAPES; to++) {
      hone_solver *solver = NULL;
      sys s = make((shape)from, 90, 1, 0), t = make((shape)to, 90, 1, 0);
      REQUIRE(hone_solver_create(&solver, 90, &s.options) == HONE_OK);
      ct_note("from %d to %d", from, to);
      CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, NULL), HONE_OK);
      solve_kept(solver, &s);
      for (int64_t i = 0; i < s.n * s.n; i++)
        s.a[i] = (double)NAN;
      CHECK_EQ_INT(hone_solver_update(solver, t.a, t.lda, &t.report), HONE_OK);
      if (from <= BAND)
        CHECK_STR(t.report.reason, "");
      solve_kept(solver, &t);
      hone_solver_destroy(&solver);
      discard(&s);
      discard(&t);
    }
}

/* The factors are kept, and the new matrix is not looked at. */
TEST(direct, updates_cholesky_to_a_matrix_that_is_not_symmetric) {
  hone_solver *solver = NULL;
  sys s = make(DEFINITE, 520, 1, 0);
  REQUIRE(hone_solver_create(&solver, s.n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, &s.report), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  s.a[7] += 1e-4;
  CHECK_EQ_INT(hone_solver_update(solver, s.a, s.lda, &s.report), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_GENERAL);
  solve_kept(solver, &s);
  CHECK_CONTAINS(s.report.path, "single Cholesky of an earlier matrix");
  hone_solver_destroy(&solver);
  discard(&s);
}

TEST(direct, is_not_factored_after_a_matrix_that_could_not_be) {
  hone_solver *solver = NULL;
  sys s = make(UPPER, 90, 1, 0);
  REQUIRE(hone_solver_create(&solver, 90, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, NULL), HONE_OK);
  s.a[0] = 0.0;
  CHECK_EQ_INT(hone_solver_update(solver, s.a, s.lda, NULL), HONE_SINGULAR);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, s.n, s.x, s.n, NULL, 0, NULL, NULL),
      HONE_NOT_FACTORED);
  hone_solver_destroy(&solver);
  discard(&s);
}

/* Stopping ----------------------------------------------------------------- */

static int stop_at(void *user, const hone_progress *event) {
  return strcmp(event->phase, user) == 0;
}

TEST(direct, stops_where_the_caller_says_so) {
  static char phases[][8] = {"inspect", "factor", "refine"};
  for (int kind = 0; kind <= BAND; kind++)
    for (int p = 0; p < 3; p++) {
      sys s = make((shape)kind, 100, 1, 0);
      ct_note("shape %d, phase %d", kind, p);
      s.options.progress = stop_at;
      s.options.progress_user = phases[p];
      s.options.tolerance = p == 2 ? 1e-30 : 0.0; /* never at its end */
      CHECK_EQ_INT(solve(&s), p == 2 ? HONE_INTERRUPTED : HONE_CANCELLED);
      discard(&s);
    }
}

TEST(direct, keeps_to_a_deadline) {
  for (int kind = 0; kind <= BAND; kind++) {
    sys s = make((shape)kind, 100, 1, 0);
    s.options.deadline_s = 1e-9;
    CHECK_EQ_INT(solve(&s), HONE_CANCELLED);
    discard(&s);
  }
}

/* The ladder --------------------------------------------------------------- */

/* A direct way and single and double LU that do as they are told. */
typedef struct stage {
  hone_engine direct;
  sup_script *script[SUP_SCRIPTS];
  hone_ladder ladder;
  hone_mem mem;
  hone_watch watch;
  hone_report report;
} stage;

static const double stage_a[4] = {2.0, 0.5, 0.0, 1.0};

static bool for_triangles(const hone_structure *structure, int64_t n) {
  return n == 2 && structure->upper == 0;
}

static void open_stage(stage *s) {
  *s = (stage){.report.bad_col = -1};
  const hone_request request = {.limit = SUP_LIMIT};
  s->direct = *sup_scripted(0, "direct way", 64, &s->script[0]);
  s->direct.applies = for_triangles;
  const hone_engine *engines[] = {
      &s->direct, sup_scripted(1, "single LU", 32, &s->script[1]),
      sup_scripted(2, "double LU", 64, &s->script[2])};
  CHECK_EQ_INT(sup_ladder_create(&s->ladder, 2, engines, 3, &request, &s->mem,
                                 NULL, &s->watch),
               HONE_OK);
  for (int i = 0; i < SUP_SCRIPTS; i++)
    s->script[i]->ladder = &s->ladder;
}

static int run_stage(stage *s, const double *a) {
  const double b[2] = {1.0, -1.0};
  double x[2] = {0.0, 0.0};
  int st = hone_ladder_factor(&s->ladder, sup_matrix(2, 2, a), &s->report);
  if (st == HONE_OK)
    st = hone_ladder_solve(&s->ladder, false, 1, b, 2, x, 2, NULL, 0, NULL,
                           &s->report);
  if (st == HONE_OK)
    CHECK_LE(sup_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  return st;
}

static void check_factors(const stage *s, int direct, int single, int dp) {
  CHECK_EQ_INT(s->script[0]->factors, direct);
  CHECK_EQ_INT(s->script[1]->factors, single);
  CHECK_EQ_INT(s->script[2]->factors, dp);
}

TEST(direct, is_made_for_its_structure_alone) {
  static const double full[4] = {2.0, 0.5, 0.25, 1.0};
  stage s;
  open_stage(&s);
  CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_STR(s.report.reason, "");
  open_stage(&s);
  CHECK_EQ_INT(run_stage(&s, full), HONE_OK);
  check_factors(&s, 0, 1, 0);
  CHECK_EQ_INT(s.script[0]->creates, 0);
  CHECK_EQ_INT(s.report.fallback_columns, 0);
  CHECK_STR(s.report.reason, "");
}

TEST(direct, is_followed_by_lu_in_double_where_it_does_not_serve) {
  for (int kind = 0; kind < 3; kind++) {
    stage s;
    open_stage(&s);
    if (kind == 0)
      s.script[0]->info.growth = (double)NAN;
    else if (kind == 1)
      s.script[0]->rate = 0.9;
    else
      s.script[0]->rate = (double)NAN;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
    check_factors(&s, 1, 0, 1);
    CHECK_CONTAINS(s.report.reason, "direct way: ");
    CHECK_EQ_INT(s.report.fallback_columns, 1);
  }
}

TEST(direct, is_followed_by_the_next_rung_where_it_cannot_be_had) {
  for (int kind = 0; kind < 2; kind++) {
    stage s;
    open_stage(&s);
    if (kind == 0)
      s.script[0]->create_status = HONE_NO_MEMORY;
    else
      s.script[0]->factor_status = HONE_NO_MEMORY;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
    check_factors(&s, kind, 1, 0);
    CHECK_CONTAINS(s.report.reason, "direct way: out of memory");
  }
}

TEST(direct, has_the_last_word_on_zero_pivots) {
  stage s;
  open_stage(&s);
  s.script[0]->info.zero_pivot = 1;
  CHECK_EQ_INT(run_stage(&s, stage_a), HONE_SINGULAR);
  check_factors(&s, 1, 0, 0);
  CHECK_EQ_INT(s.report.bad_col, 1);
}

/* Factors of another matrix do not reproduce A: in double, nothing else will;
   the x they give is the best there is and no more. */
TEST(direct, is_not_climbed_from_for_the_sake_of_the_certificate) {
  static const double another[4] = {1e-17, 0.0, 0.0, -1.0};
  stage s;
  open_stage(&s);
  s.script[0]->instead = another;
  int st = hone_ladder_factor(&s.ladder, sup_matrix(2, 2, stage_a), &s.report);
  CHECK_EQ_INT(st, HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_CONTAINS(s.report.reason, "cannot tell the matrix from a singular one");
  hone_ladder_destroy(&s.ladder);
}

/* Engines that take A unseen ------------------------------------------------
 */

static int unseen;
static int (*scripted_factor)(void *self, const hone_matrix *a,
                              const hone_scaling *scaling,
                              hone_factor_info *info);

static bool is_resident(void *self) { return self != NULL; }

/* Refuses what it has not seen; the ladder then looks for itself. */
static int refuse_unseen(void *self, const hone_matrix *a,
                         const hone_scaling *scaling, hone_factor_info *info) {
  unseen += scaling == NULL;
  return scaling == NULL ? HONE_DEVICE_FAILED
                         : scripted_factor(self, a, scaling, info);
}

TEST(direct, comes_before_an_engine_that_takes_a_unseen) {
  static const double full[4] = {2.0, 0.5, 0.25, 1.0};
  for (int triangle = 0; triangle < 2; triangle++) {
    stage s;
    open_stage(&s);
    hone_engine device = *s.ladder.rung[1].engine;
    scripted_factor = device.factor;
    device.factor = refuse_unseen;
    device.resident = is_resident;
    s.ladder.rung[1].engine = &device;
    unseen = 0;
    ct_note("triangle %d", triangle);
    CHECK_EQ_INT(run_stage(&s, triangle ? stage_a : full), HONE_OK);
    CHECK_EQ_INT(unseen, !triangle);
    check_factors(&s, triangle, !triangle, 0);
    CHECK_EQ_INT(s.script[1]->creates, !triangle);
  }
}

TEST(direct, is_found_where_a_gpu_is_asked_for) {
  static const char *const places[] = {"CPU", "CPU",  "CPU",
                                       "CPU", "CUDA", "CUDA"};
  char why[160] = "";
  const char *required = getenv("HONE_REQUIRE_GPU");
  if (!hone_engine_single_cuda.probe(why, sizeof why)) {
    REQUIRE(required == NULL || strcmp(required, "1") != 0);
    SKIP(why);
  }
  for (int kind = 0; kind < SHAPES; kind++)
    for (int layout = 0; layout < 2; layout++) {
      sys s = make((shape)kind, 300, 2, layout ? 3 : 0);
      ct_note("shape %d, layout %d", kind, layout);
      s.options.device = HONE_DEVICE_CUDA;
      s.options.layout = layout;
      CHECK_EQ_INT(solve(&s), HONE_OK);
      CHECK_EQ_INT(s.report.structure, kind == DEFINITE
                                           ? HONE_FOUND_DEFINITE
                                           : found((shape)kind, s.n));
      CHECK_CONTAINS(s.report.device, places[kind]);
      CHECK_CONTAINS(s.report.path, kind == DEFINITE ? "single Cholesky"
                                    : kind == FULL   ? "single LU"
                                                     : "");
      CHECK_STR(s.report.reason, "");
      discard(&s);
    }
}

/* Cholesky in single and double, LU in single that do as they are told, and
   LU in double that is itself. What is told of: */
enum {
  SINGLE_BREAKS,
  SINGLE_ROUNDS,
  SINGLE_CREEPS,
  BOTH_BREAK, /* the first by rounding */
  DOUBLE_CREEPS,
  TALES
};

TEST(direct, climbs_from_cholesky_by_what_failed) {
  static const char *const paths[TALES] = {
      "C32 set aside, LU32", "C32 set aside, C64", "C32, C64",
      "C32 set aside, C64 set aside, LU32", "C32 set aside, C64, double LU"};
  static const double a[4] = {2.0, 0.5, 0.5, 1.0}, b[2] = {1.0, -1.0};
  for (int tale = 0; tale < TALES; tale++) {
    stage s = {.report.bad_col = -1};
    const hone_request request = {.limit = SUP_LIMIT};
    hone_engine c32 = *sup_scripted(0, "C32", 32, &s.script[0]);
    hone_engine c64 = *sup_scripted(1, "C64", 64, &s.script[1]);
    c32.symmetric = c64.symmetric = true;
    const hone_engine *engines[] = {&c32, &c64,
                                    sup_scripted(2, "LU32", 32, &s.script[2]),
                                    &hone_engine_double};
    double x[2];
    CHECK_EQ_INT(sup_ladder_create(&s.ladder, 2, engines, 4, &request, &s.mem,
                                   NULL, &s.watch),
                 HONE_OK);
    s.script[0]->ladder = s.script[1]->ladder = &s.ladder;
    s.script[0]->info.zero_pivot = tale == SINGLE_CREEPS ? -1 : 1;
    s.script[0]->info.rounding = tale != SINGLE_BREAKS;
    s.script[0]->rate = tale == SINGLE_CREEPS ? 0.9 : 0.0;
    s.script[1]->info.zero_pivot = tale == BOTH_BREAK ? 1 : -1;
    s.script[1]->rate = tale == DOUBLE_CREEPS ? 0.9 : 0.0;
    ct_note("tale %d", tale);
    CHECK_EQ_INT(hone_ladder_factor(&s.ladder, sup_matrix(2, 2, a), &s.report),
                 HONE_OK);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, 1, b, 2, x, 2, NULL, 0,
                                   NULL, &s.report),
                 HONE_OK);
    CHECK_LE(sup_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
    CHECK_STR(s.report.path, paths[tale]);
    hone_ladder_destroy(&s.ladder);
    CHECK_EQ_INT(s.mem.held, 0);
  }
}
