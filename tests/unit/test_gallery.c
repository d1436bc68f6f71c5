/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrices of the gallery are what their rows in the table say. */
#include "tests/gallery/gallery.h"
#include "tests/gallery/reference.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 70 };
static const int64_t orders[] = {1, 2, 3, 7, 16, 33, 64};

/* Has the family matrices of order n? */
static bool fits(const gallery_family *f, int64_t n) {
  return n >= f->least_n && n <= f->most_n;
}

static double middle(const gallery_family *f) {
  return 0.5 * (f->low + f->high);
}

static void make(const char *name, int64_t n, double parameter, double *a) {
  gallery_make(gallery_find(name), n, parameter, 1, a, n);
}

TEST(gallery, families_have_distinct_names_and_descriptions) {
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    ct_note("%s", f->name);
    CHECK(gallery_find(f->name) == f); /* its name is the only one */
    CHECK(strlen(f->what) > 10);
    CHECK(f->least_n >= 1 && f->least_n <= 2 && f->most_n >= 12);
    CHECK_LE(f->low, f->high);
    CHECK(!(f->properties & GALLERY_SPD) ||
          (f->properties & GALLERY_SYMMETRIC));
  }
  CHECK(gallery_find("no such family") == NULL);
}

TEST(gallery, entries_are_finite_and_rows_below_are_not_written) {
  static double a[ROOM * ROOM];
  for (int k = 0; k < gallery_count; k++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
      for (int end = 0; end < 2; end++) {
        const gallery_family *f = &gallery_families[k];
        const int64_t n = orders[o], lda = n + 2;
        if (!fits(f, n))
          continue;
        for (int64_t i = 0; i < lda * n; i++)
          a[i] = 77.0;
        gallery_make(f, n, end ? f->high : f->low, 5, a, lda);
        int bad = 0;
        for (int64_t i = 0; i < lda * n; i++)
          bad += i % lda < n ? !isfinite(a[i]) : a[i] != 77.0;
        ct_note("%s, n = %d, end %d", f->name, (int)n, end);
        CHECK_EQ_INT(bad, 0);
      }
}

TEST(gallery, a_seed_gives_one_matrix_and_another_seed_another) {
  static double a[ROOM * ROOM], b[ROOM * ROOM], c[ROOM * ROOM];
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    const int64_t n = f->most_n < 20 ? f->most_n : 20;
    const size_t bytes = (size_t)(n * n) * sizeof *a;
    gallery_make(f, n, middle(f), 1, a, n);
    gallery_make(f, n, middle(f), 1, b, n);
    gallery_make(f, n, middle(f), 2, c, n);
    ct_note("%s", f->name);
    CHECK_MEM_EQ(a, b, bytes);
    CHECK_EQ_INT(memcmp(a, c, bytes) == 0,
                 (f->properties & GALLERY_FIXED) != 0);
  }
}

TEST(gallery, the_parameter_makes_a_difference_where_there_is_one) {
  static double a[ROOM * ROOM], b[ROOM * ROOM];
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    const int64_t n = f->most_n < 20 ? f->most_n : 20;
    gallery_make(f, n, f->low, 1, a, n);
    gallery_make(f, n, f->low < f->high ? f->high : f->low + 1.0, 1, b, n);
    ct_note("%s", f->name);
    CHECK_EQ_INT(memcmp(a, b, (size_t)(n * n) * sizeof *a) == 0,
                 !(f->low < f->high));
  }
}

TEST(gallery, symmetric_matrices_are_exactly_symmetric) {
  static double a[ROOM * ROOM];
  for (int k = 0; k < gallery_count; k++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
      const gallery_family *f = &gallery_families[k];
      const int64_t n = orders[o];
      int apart = 0;
      if (!(f->properties & GALLERY_SYMMETRIC) || !fits(f, n))
        continue;
      gallery_make(f, n, middle(f), 3, a, n);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++)
          apart += a[i + j * n] != a[j + i * n];
      ct_note("%s, n = %d", f->name, (int)n);
      CHECK_EQ_INT(apart, 0);
    }
}

/* By the reference, singular matrices are singular, and definite ones of
   moderate condition have a Cholesky factorization. */
TEST(gallery, singular_matrices_are_singular_in_double_double) {
  static double a[ROOM * ROOM], b[ROOM];
  reference r = {0};
  for (int k = 0; k < gallery_count; k++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
      const gallery_family *f = &gallery_families[k];
      const int64_t n = orders[o];
      if (!(f->properties & GALLERY_SINGULAR) || !fits(f, n))
        continue;
      gallery_make(f, n, middle(f), 3, a, n);
      for (int64_t i = 0; i < n; i++)
        b[i] = 1.0;
      reference_solve(&r, n, 1, a, n, b, n);
      ct_note("%s, n = %d", f->name, (int)n);
      CHECK_EQ_INT(r.state, REFERENCE_SINGULAR);
      CHECK(!(r.error[0] <= 1.0));
    }
  reference_free(&r);
}

/* Computes a = L L^T in place. Are all n pivots positive? */
static bool cholesky(int64_t n, double *a) {
  for (int64_t k = 0; k < n; k++) {
    if (!(a[k + k * n] > 0.0))
      return false;
    double d = sqrt(a[k + k * n]);
    for (int64_t i = k; i < n; i++)
      a[i + k * n] /= d;
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = j; i < n; i++)
        a[i + j * n] -= a[i + k * n] * a[j + k * n];
  }
  return true;
}

TEST(gallery, definite_matrices_have_a_cholesky_factorization) {
  static double a[ROOM * ROOM];
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    if (!(f->properties & GALLERY_SPD))
      continue;
    gallery_make(f, 9, f->low, 3, a, 9);
    ct_note("%s", f->name);
    CHECK(cholesky(9, a));
  }
}

/* The condition that a name promises, by the reference's estimate; in the
   1-norm it may differ by a factor of n. */
TEST(gallery, conditions_are_those_that_names_promise) {
  static const struct {
    const char *name;
    double parameter, least, most;
  } known[] = {{"dlatb4_4", 0, 1.5, 60},
               {"dlatb4_8", 0, 2e7 / 4, 2.2e7 * 30},
               {"dlatb4_9", 0, 4e14 / 10, 5e14 * 40},
               {"dlatms_1", 8, 1e8 / 30, 1e8 * 30},
               {"dlatms_2", 8, 1e8 / 30, 1e8 * 30},
               {"dlatms_3", 8, 1e8 / 30, 1e8 * 30},
               {"dlatms_4", 8, 1e8 / 30, 1e8 * 30},
               {"spd", 8, 1e8 / 30, 1e8 * 30},
               {"orthogonal", 0, 1, 30},
               {"scaled_orthogonal", 12, 1e15, 1e26},
               {"chebyshev_2", 0, 1e3, 1e6},
               {"near_duplicates", 10, 1e10, 1e13},
               {"rbf_gauss", 1.5, 1e16, 1e300}};
  static double a[ROOM * ROOM], b[ROOM];
  const int64_t n = 30;
  reference r = {0};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    make(known[k].name, n, known[k].parameter, a);
    for (int64_t i = 0; i < n; i++)
      b[i] = 1.0;
    reference_solve(&r, n, 1, a, n, b, n);
    ct_note("%s", known[k].name);
    CHECK_GE(r.condition, known[k].least);
    if (r.state != REFERENCE_SINGULAR)
      CHECK_LE(r.condition, known[k].most);
  }
  reference_free(&r);
}

TEST(gallery, small_matrices_are_as_in_the_literature) {
  double a[16];
  make("hilbert", 3, 0, a);
  CHECK_NEAR(a[5], 1.0 / 4.0, 0.0);
  make("inverse_hilbert", 3, 0, a);
  const double inverse[] = {9, -36, 30, -36, 192, -180, 30, -180, 180};
  CHECK_MEM_EQ(a, inverse, sizeof inverse);
  make("frank", 3, 0, a);
  const double frank[] = {3, 2, 0, 2, 2, 1, 1, 1, 1};
  CHECK_MEM_EQ(a, frank, sizeof frank);
  make("growth", 3, 1, a);
  const double growth[] = {1, -1, -1, 0, 1, -1, 1, 1, 1};
  CHECK_MEM_EQ(a, growth, sizeof growth);
  make("moler", 3, 0, a);
  const double moler[] = {1, -1, -1, -1, 2, 0, -1, 0, 3};
  CHECK_MEM_EQ(a, moler, sizeof moler);
  make("laplace_neumann", 4, 0, a);
  const double neumann[] = {2,  -1, -1, 0,  -1, 2,  0,  -1,
                            -1, 0,  2,  -1, 0,  -1, -1, 2};
  CHECK_MEM_EQ(a, neumann, sizeof neumann);
  make("chebyshev_1", 1, 0, a);
  CHECK_NEAR(a[0], -0.5, 1e-15);
  make("kahan", 2, 1.0, a);
  CHECK_NEAR(a[2], -cos(1.0), 0.0);
  CHECK_NEAR(a[3], sin(1.0), 0.0);
}

/* D applied to x^2 with the point 1 removed: f = x^2 - 1 is zero there. */
TEST(gallery, early_families_come_first) {
  CHECK_STR(gallery_families[gallery_early_count - 1].name, "saddle_units");
  CHECK_STR(gallery_families[gallery_early_count].name, "helmholtz_1d");
}

/* Entries of A times ones or another null vector are exactly zero. */
TEST(gallery, models_have_the_null_vectors_that_they_are_made_for) {
  static double a[ROOM * ROOM];
  const int64_t n = 24;
  make("network_floating", n, 12, a);
  int64_t floating = 0;
  for (int64_t i = 0; i < n; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < n; j++)
      sum += a[i + j * n];
    floating += fabs(sum) <= 0.0;
  }
  CHECK_GE((double)floating, n / 3);
  make("truss_mechanism", n, 0, a);
  int moves = 0;
  for (int64_t first = 0; first < n; first += 4) { /* all nodes beyond */
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = first + 1; j < n; j += 2)
        sum += a[i + j * n];
      most = fmax(most, fabs(sum));
    }
    moves += most <= 0.0;
  }
  CHECK_EQ_INT(moves, 1);
}

/* A shift by an eigenvalue makes one singular value as small as rounding. */
TEST(gallery, helmholtz_grids_are_at_resonance) {
  static const char *const names[] = {"helmholtz_1d", "helmholtz_2d",
                                      "helmholtz_3d"};
  static double a[ROOM * ROOM], b[ROOM];
  reference r = {0};
  for (int k = 0; k < 3; k++)
    for (uint64_t seed = 1; seed <= 20; seed++)
      for (int near = 0; near < 2; near++) {
        const int64_t n = 5 + (int64_t)seed;
        gallery_make(gallery_find(names[k]), n, near ? 9 : 20, seed, a, n);
        gallery_rhs(GALLERY_B_RANDOM, n, a, n, seed, b);
        reference_solve(&r, n, 1, a, n, b, n);
        ct_note("%s, seed %d, near %d", names[k], (int)seed, near);
        CHECK(!(r.condition <= (near ? 1e7 : 1e13)));
      }
  reference_free(&r);
}

TEST(gallery, chebyshev_differentiates_polynomials) {
  static double a[ROOM * ROOM];
  const int64_t n = 12;
  for (int order = 1; order <= 2; order++) {
    const double h = 3.141592653589793 / (double)(n + order - 1);
    make(order == 1 ? "chebyshev_1" : "chebyshev_2", n, 0, a);
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0, x = cos(h * (double)(i + 1));
      for (int64_t j = 0; j < n; j++) {
        double y = cos(h * (double)(j + 1));
        sum += a[i + j * n] * (y * y - 1.0);
      }
      CHECK_NEAR(sum, order == 1 ? 2.0 * x : 2.0, 1e-11);
    }
  }
}

TEST(gallery, floating_truss_has_the_motions_of_a_rigid_body) {
  static double a[ROOM * ROOM];
  const int64_t n = 24; /* 12 nodes at (k / 2, k % 2) */
  make("truss_free", n, 0, a);
  for (int motion = 0; motion < 3; motion++)
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++) {
        double x = (double)(j / 2 / 2), y = (double)(j / 2 % 2);
        double u[3] = {j % 2 ? 0.0 : 1.0, j % 2 ? 1.0 : 0.0, j % 2 ? x : -y};
        sum += a[i + j * n] * u[motion];
      }
      CHECK_EQ_INT(sum == 0.0, 1);
    }
}

TEST(gallery, right_hand_sides_are_finite_whatever_the_matrix) {
  static double a[ROOM * ROOM], b[ROOM];
  int bad = 0;
  for (int k = 0; k < gallery_count; k++)
    for (int kind = 0; kind < gallery_rhs_count; kind++)
      for (uint64_t seed = 0; seed < 4; seed++) {
        const gallery_family *f = &gallery_families[k];
        const int64_t n = seed % 2 ? 31 : f->least_n;
        if (!fits(f, n))
          continue;
        gallery_make(f, n, f->high, seed, a, n);
        gallery_rhs(kind, n, a, n, seed, b);
        ct_note("%s, %s, n = %d", f->name, gallery_rhs_names[kind], (int)n);
        for (int64_t i = 0; i < n; i++)
          bad += !isfinite(b[i]);
        CHECK_EQ_INT(bad, 0);
      }
}

TEST(gallery, right_hand_sides_are_of_their_kind) {
  static double a[ROOM * ROOM], b[ROOM];
  const int64_t n = 20;
  make("uniform", n, 0, a);
  for (int kind = 0; kind < gallery_rhs_count; kind++) {
    double max = 0.0, sum = 0.0, row = 0.0;
    gallery_rhs(kind, n, a, n, 9, b);
    for (int64_t i = 0; i < n; i++) {
      max = fmax(max, fabs(b[i]));
      sum += fabs(b[i]);
      row += a[3 + i * n];
    }
    ct_note("%s", gallery_rhs_names[kind]);
    CHECK(isfinite(max) &&
          (kind == GALLERY_B_FEW || (max > 0.0) == (kind != GALLERY_B_ZERO)));
    if (kind == GALLERY_B_ONES)
      CHECK_NEAR(b[3], row, 1e-14);
    if (kind == GALLERY_B_UNIT)
      CHECK(max == 1.0 && sum == 1.0);
    if (kind == GALLERY_B_FEW) { /* a combination of at most three columns */
      reference r = {0};
      int entries = 0, least = 0;
      reference_solve(&r, n, 1, a, n, b, n);
      for (int64_t i = 0; i < n; i++)
        entries += fabs(r.high[i]) > 1e-12;
      CHECK(entries <= 3);
      CHECK(reference_size(&r, 0, &least) <= 2);
      reference_free(&r);
    }
    if (kind == GALLERY_B_TINY)
      CHECK(max <= 0x1p-1000 && max > 0x1p-1010);
    if (kind == GALLERY_B_HUGE)
      CHECK(max <= 0x1p1000 && max > 0x1p990);
  }
}

/* ||x|| / ||b|| is about the norm of the inverse. */
TEST(gallery, left_null_vector_makes_x_large) {
  static double a[ROOM * ROOM], b[ROOM];
  const int64_t n = 20;
  reference r = {0};
  make("dlatms_2", n, 6, a);
  gallery_rhs(GALLERY_B_LEFT_NULL, n, a, n, 9, b);
  reference_solve(&r, n, 1, a, n, b, n);
  int least = 0;
  CHECK_GE(reference_size(&r, 0, &least), 17); /* about 10^6 divided by n */
  CHECK(least <= reference_size(&r, 0, &least));
  make("duplicated_column", n, 0, a);
  gallery_rhs(GALLERY_B_LEFT_NULL, n, a, n, 9, b);
  for (int64_t i = 0; i < n; i++)
    CHECK(isfinite(b[i]));
  reference_free(&r);
}
