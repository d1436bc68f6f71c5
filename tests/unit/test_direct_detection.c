/* SPDX-License-Identifier: BSD-3-Clause */
/* Which structure is found in a matrix, where a single entry makes the
   difference. */
#include "tests/unit/shaped_system.h"

#include "cpu_dp/structure.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

static hone_structure search(const shaped *s, hone_search how) {
  hone_structure structure;
  double *scratch = sup_filled(s->n, 0.0);
  const hone_matrix a = *sup_matrix(s->n, s->lda, s->a);
  hone_structure_find(NULL, hone_dense_of(&a), how, scratch, &structure);
  sup_free(scratch);
  return structure;
}

static hone_structure detect(const shaped *s) {
  return search(s, HONE_SEARCH_ALL);
}

/* Each entry outside a band of 2 below and 1 above, one at a time. */
TEST(direct, finds_the_band_whichever_entry_widens_it) {
  static const double values[] = {1.0, -DBL_TRUE_MIN, (double)NAN,
                                  (double)INFINITY};
  shaped s = shaped_make(BAND, 150, 1, 2);
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++) {
      const int64_t lower = HONE_MAX(i - j, (int64_t)2);
      const int64_t upper = HONE_MAX(j - i, (int64_t)1);
      double *entry = &s.a[i + j * s.lda];
      if (shaped_inside(BAND, i, j))
        continue;
      *entry = values[(i + j) % 4];
      const hone_structure f = detect(&s);
      const bool pays = hone_band_pays(lower, upper, s.n);
      if (f.lower != (pays ? lower : s.n - 1) ||
          f.upper != (pays ? upper : s.n - 1) || f.definite) {
        ct_note("entry %d, %d: %d, %d", (int)i, (int)j, (int)f.lower,
                (int)f.upper);
        CHECK_STR("the band found", "");
      }
      *entry = -0.0;
    }
  CHECK_EQ_INT(detect(&s).lower, 2); /* zeros of either sign */
  CHECK_EQ_INT(detect(&s).upper, 1);
  shaped_discard(&s);
}

TEST(direct, finds_triangles_whichever_entry_breaks_them) {
  for (int kind = LOWER; kind <= UPPER; kind++) {
    shaped s = shaped_make((shape)kind, 90, 1, 1);
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t i = 0; i < s.n; i++) {
        if (shaped_inside((shape)kind, i, j))
          continue;
        s.a[i + j * s.lda] = 1e-300;
        const hone_structure f = detect(&s);
        if (f.lower != s.n - 1 || f.upper != s.n - 1) {
          ct_note("entry %d, %d: %d, %d", (int)i, (int)j, (int)f.lower,
                  (int)f.upper);
          CHECK_STR("the triangle found", "");
        }
        s.a[i + j * s.lda] = 0.0;
      }
    CHECK_EQ_INT(kind == LOWER ? detect(&s).upper : detect(&s).lower, 0);
    shaped_discard(&s);
  }
}

TEST(direct, finds_symmetry_broken_by_one_bit_anywhere) {
  shaped s = shaped_make(DEFINITE, 70, 1, 1);
  CHECK(detect(&s).definite);
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++) {
      double *entry = &s.a[i + j * s.lda], before = *entry;
      *entry = i == j ? -before : nextafter(before, 2.0);
      if (detect(&s).definite) {
        ct_note("entry %d, %d", (int)i, (int)j);
        CHECK_STR("taken for definite", "");
      }
      *entry = (double)NAN;
      if (detect(&s).definite) {
        ct_note("NaN at %d, %d", (int)i, (int)j);
        CHECK_STR("taken for definite", "");
      }
      *entry = before;
    }
  /* Makes a 2 x 2 minor negative. */
  s.a[3 + 50 * s.lda] = s.a[50 + 3 * s.lda] = 2.0;
  CHECK(!detect(&s).definite);
  shaped_discard(&s);
}

TEST(direct, solves_matrices_nearly_of_a_structure_by_lu) {
  for (int kind = 0; kind < SHAPES; kind++) {
    shaped s = shaped_make((shape)kind, 520, 1, 0);
    double *entry = &s.a[kind == LOWER ? 11 + 499 * s.lda : 499 + 11 * s.lda];
    double *other = &s.a[kind == BAND ? 3 + 400 * s.lda : 0];
    ct_note("shape %d", kind);
    if (kind == DIAGONAL)
      s.a[7 + 300 * s.lda] = 1e-3;
    *entry = *entry == 0.0 ? 1e-3 : nextafter(*entry, 2.0);
    *other = *other == 0.0 ? 1e-3 : *other;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    shaped_check_path(&s, HONE_FOUND_GENERAL);
    shaped_discard(&s);
  }
}

/* Changes an entry by a bit and searches a sample, or all of A. */
static hone_structure search_changed(shaped *s, int64_t i, int64_t j,
                                     hone_search how) {
  double *const entry = &s->a[i + j * s->lda], before = *entry;
  *entry = nextafter(before, 10.0);
  const hone_structure f = search(s, how);
  *entry = before;
  return f;
}

/* Four block columns of 8 are compared with their mirror images, in an order of
   1100 those from columns 192, 448, 640 and 896 on. */
TEST(direct, sees_in_a_sample_what_crosses_its_columns) {
  shaped s = shaped_make(DEFINITE, 1100, 1, 2);
  const hone_structure sample = search(&s, HONE_SEARCH_SAMPLE);
  const hone_structure all = search(&s, HONE_SEARCH_ALL);
  CHECK(sample.definite && sample.sampled);
  CHECK(all.definite && !all.sampled);
  static const int64_t columns[] = {192, 199, 448, 647, 896, 903};
  for (int64_t i = 0; i < s.n; i += 37)
    for (int c = 0; c < 6; c++) {
      const int64_t j = columns[c];
      if (i == j)
        continue;
      ct_note("entry %d, %d", (int)i, (int)j);
      CHECK(!search_changed(&s, i, j, HONE_SEARCH_SAMPLE).definite);
      CHECK(!search_changed(&s, j, i, HONE_SEARCH_SAMPLE).definite);
    }
  const hone_structure missed =
      search_changed(&s, 1000, 950, HONE_SEARCH_SAMPLE);
  CHECK(missed.definite && missed.sampled);
  CHECK(!search_changed(&s, 1000, 950, HONE_SEARCH_ALL).definite);
  shaped_discard(&s);
}

TEST(direct, sees_the_diagonal_and_minors_in_a_sample) {
  shaped s = shaped_make(DEFINITE, 1100, 1, 0);
  double *const diagonal = &s.a[950 * (s.n + 1)], before = *diagonal;
  *diagonal = -before;
  CHECK(!search(&s, HONE_SEARCH_SAMPLE).definite);
  *diagonal = before;
  s.a[70 + 450 * s.n] = s.a[450 + 70 * s.n] = 1e3;
  CHECK(!search(&s, HONE_SEARCH_SAMPLE).definite);
  s.a[70 + 450 * s.n] = s.a[450 + 70 * s.n] = 0.0;
  CHECK(search(&s, HONE_SEARCH_SAMPLE).definite);
  shaped_discard(&s);
}

/* The last tile of 64 rows and columns has one. */
TEST(direct, compares_a_last_row_that_is_a_tile_of_its_own) {
  shaped s = shaped_make(DEFINITE, 129, 1, 0);
  CHECK(search(&s, HONE_SEARCH_ALL).definite);
  CHECK(!search_changed(&s, 128, 5, HONE_SEARCH_ALL).definite);
  CHECK(!search_changed(&s, 5, 128, HONE_SEARCH_ALL).definite);
  shaped_discard(&s);
  s = shaped_make(DEFINITE, 961, 1, 0);
  CHECK(search(&s, HONE_SEARCH_SAMPLE).sampled);
  CHECK(!search_changed(&s, 960, 192, HONE_SEARCH_SAMPLE).definite);
  CHECK(!search_changed(&s, 192, 960, HONE_SEARCH_SAMPLE).definite);
  shaped_discard(&s);
}

TEST(direct, compares_all_of_a_small_matrix) {
  shaped s = shaped_make(DEFINITE, 900, 1, 0);
  const hone_structure f = search(&s, HONE_SEARCH_SAMPLE);
  CHECK(f.definite && !f.sampled);
  CHECK(!search_changed(&s, 880, 850, HONE_SEARCH_SAMPLE).definite);
  CHECK(!search(&s, HONE_SEARCH_ZEROS).definite);
  shaped_discard(&s);
}

/* NaN or Inf stands in an entry that a direct solve would not read, or in one
   that it would. */
TEST(direct, finds_nan_and_infinity_anywhere) {
  static const int64_t places[][2] = {{0, 519},   {519, 0}, {100, 300},
                                      {300, 100}, {77, 77}, {518, 519}};
  for (int kind = 0; kind < SHAPES; kind++)
    for (int p = 0; p < 6; p++)
      for (int layout = 0; layout < 2; layout++) {
        shaped s = shaped_make((shape)kind, 520, 1, 0);
        const int64_t i = places[p][0], j = places[p][1];
        ct_note("shape %d, place %d, layout %d", kind, p, layout);
        s.a[i + j * s.lda] = (double)(p % 2 ? NAN : INFINITY);
        s.options.layout = layout;
        CHECK_EQ_INT(shaped_solve(&s), HONE_NOT_FINITE_A);
        CHECK_EQ_INT(layout ? s.report.bad_col : s.report.bad_row, i);
        CHECK_EQ_INT(layout ? s.report.bad_row : s.report.bad_col, j);
        shaped_discard(&s);
      }
}

/* The matrix only seems definite: LU follows. */
TEST(direct, falls_back_to_lu_where_a_cholesky_pivot_is_not_positive) {
  shaped s = shaped_make(DEFINITE, 520, 2, 0);
  for (int64_t k = 0; k < 2; k++) /* an eigenvalue is 1 - 1.5 */
    for (int64_t l = 0; l < 3; l++)
      s.a[(517 + l) + (517 + (l + k + 1) % 3) * s.lda] = -0.75;
  for (int64_t l = 0; l < 3; l++)
    s.a[517 + l + (517 + l) * s.lda] = 1.0;
  CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  CHECK_CONTAINS(s.report.reason, "single Cholesky: a pivot is not positive");
  CHECK_CONTAINS(s.report.path, "single Cholesky set aside, single LU");
  shaped_discard(&s);
}

/* If single precision does not suffice, as a pivot or refinement shows,
   Cholesky in double follows and not LU. */
TEST(direct, follows_cholesky_in_single_by_cholesky_in_double) {
  static const double conditions[] = {1e10, 1e13, 1e6};
  for (int i = 0; i < 3; i++) {
    shaped s = shaped_make(DEFINITE, 520, 2, 0);
    sup_rng rng = {5};
    ct_note("condition %g", conditions[i]);
    sup_matrix_spd(&rng, s.n, conditions[i], s.a);
    for (int64_t k = 0; k < s.n * s.n; k++)
      s.a[k] *= 0.0625;
    s.options.max_iterations = conditions[i] <= 1e6;
    CHECK_EQ_INT(shaped_solve(&s), HONE_OK);
    CHECK_CONTAINS(s.report.reason, "single Cholesky: ");
    CHECK_CONTAINS(s.report.path, "double Cholesky");
    CHECK(strstr(s.report.path, "LU") == NULL);
    CHECK_EQ_INT(s.report.precision, 64);
    CHECK_LE(s.report.growth, 1.0 + 1e-9);
    shaped_discard(&s);
  }
}

/* A symmetric singular matrix: equations 100 and 400 are equal. */
TEST(direct, takes_no_singular_matrix_for_definite) {
  shaped s = shaped_make(DEFINITE, 520, 1, 0);
  for (int64_t i = 0; i < s.n; i++)
    s.a[i + 400 * s.n] = s.a[i + 100 * s.n];
  for (int64_t j = 0; j < s.n; j++)
    s.a[400 + j * s.n] = s.a[100 + j * s.n];
  const int st = shaped_solve(&s);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(s.report.structure, HONE_FOUND_DEFINITE);
  shaped_discard(&s);
}
