/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems by way of real ones of twice the order (tests/gallery): the
   families are what their rows in the table say, and errors are those that
   complex_system.c finds in quadruple precision. */
#include "tests/gallery/either.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 2 * 66 * 66 };
static const int64_t orders[] = {1, 2, 7, 16, 33};
static double a[ROOM], b[ROOM], m[2 * ROOM];

/* Has family k complex matrices of order n? */
static bool fits(int k, int64_t n) {
  return n >= gallery_families[k].least_n && n <= gallery_families[k].most_n;
}

static void make(int k, int64_t n, uint64_t seed, double *to) {
  const gallery_family *f = &gallery_families[k];
  ct_note("%s, n = %d, seed %d", f->name, (int)n, (int)seed);
  either_make(f, 2, n, 0.5 * (f->low + f->high), seed, to, n);
}

TEST(either, families_have_finite_entries_and_write_no_padding) {
  for (int k = 0; k < either_families(2); k++)
    for (int o = 0; o < 5; o++)
      for (int end = 0; end < 2; end++) {
        const gallery_family *f = &gallery_families[k];
        const int64_t n = orders[o], lda = n + 2;
        int bad = 0;
        if (!fits(k, n))
          continue;
        for (int64_t i = 0; i < 2 * lda * n; i++)
          a[i] = 77.0;
        either_make(f, 2, n, end ? f->high : f->low, 5, a, lda);
        for (int64_t i = 0; i < 2 * lda * n; i++)
          bad +=
              i / 2 % lda < n ? !either_finite(2, a + i / 2 * 2) : a[i] != 77.0;
        ct_note("%s, n = %d, end %d", f->name, (int)n, end);
        CHECK_EQ_INT(bad, 0);
      }
}

TEST(either, a_seed_gives_one_matrix_with_imaginary_parts) {
  int complex = 0, count = 0;
  for (int k = 0; k < either_families(2); k++)
    for (uint64_t seed = 1; seed <= 4; seed++) {
      const int64_t n = gallery_families[k].most_n < 12 ? 5 : 12;
      int parts = 0;
      make(k, n, seed, a);
      make(k, n, seed, b);
      CHECK_MEM_EQ(a, b, (size_t)(2 * n * n) * sizeof *a);
      for (int64_t i = 0; i < n * n; i++)
        parts += fabs(a[2 * i + 1]) > 0.0;
      complex += parts > 0;
      count++;
    }
  CHECK_LE(0.9 * count, complex); /* rows mixed with none stay real */
}

/* Is a_ij = a_ji, or with a sign of -1 its conjugate? */
static bool is_image(int64_t n, double sign) {
  bool same = true;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) {
      const double *v = a + 2 * (i + j * n), *w = a + 2 * (j + i * n);
      same = same && !(fabs(v[0] - w[0]) > 0.0) &&
             !(fabs(v[1] - sign * w[1]) > 0.0);
    }
  return same;
}

/* Positive pivots: m = L L^T, which is overwritten. */
static bool is_definite(int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    if (!(m[k + k * n] > 0.0))
      return false;
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = j; i < n; i++)
        m[i + j * n] -= m[i + k * n] * m[j + k * n] / m[k + k * n];
  }
  return true;
}

TEST(either, definite_matrices_are_hermitian_and_have_a_cholesky_factor) {
  int hermitian = 0, symmetric = 0;
  for (int k = 0; k < either_families(2); k++)
    for (uint64_t seed = 1; seed <= 8; seed++) {
      const gallery_family *f = &gallery_families[k];
      if (!(f->properties & GALLERY_SYMMETRIC) || !fits(k, 9))
        continue;
      either_make(f, 2, 9, f->low, seed, a, 9);
      ct_note("%s, seed %d", f->name, (int)seed);
      hermitian += is_image(9, -1.0);
      symmetric += is_image(9, 1.0);
      either_matrix(2, 9, a, 9, m);
      if (f->properties & GALLERY_SPD)
        CHECK(is_image(9, -1.0) && is_definite(18));
      else if (f->properties & GALLERY_COMPLEX)
        CHECK(is_image(9, -1.0) || is_image(9, 1.0));
    }
  CHECK(hermitian > 50 && symmetric > 50);
}

TEST(either, singular_matrices_are_singular_in_double_double) {
  reference r = {0};
  for (int k = 0; k < either_families(2); k++)
    for (int o = 0; o < 5; o++) {
      const int64_t n = orders[o];
      if (!(gallery_families[k].properties & GALLERY_SINGULAR) || !fits(k, n))
        continue;
      for (int64_t i = 0; i < 2 * n; i++)
        b[i] = 1.0;
      make(k, n, (uint64_t)(3 + o), a);
      either_solve(&r, 2, n, 1, a, b);
      CHECK_EQ_INT(r.state, REFERENCE_SINGULAR);
    }
  reference_free(&r);
}

/* ---- Errors -------------------------------------------------------------- */

static void check_omega(int64_t n, const hone_complex *matrix,
                        const hone_complex *x, const hone_complex *rhs) {
  const cs_problem p = {.n = n, .lda = n, .a = matrix};
  const double expected = cs_backward_error(&p, x, rhs);
  const double omega = either_omega(2, n, (const double *)matrix,
                                    (const double *)x, (const double *)rhs);
  CHECK_NEAR(omega, expected, 1e-12 * expected);
  CHECK_LE(either_sparse_omega(2, n, (const double *)matrix,
                               (const double *)matrix, (const double *)x,
                               (const double *)rhs),
           omega * (1.0 + 1e-12));
}

TEST(either, backward_errors_are_those_in_quadruple_precision) {
  static const int exponents[] = {0, 500, -500, -1040};
  for (int family = 0; family < CS_FAMILIES; family++)
    for (int k = 0; k < 4; k++) {
      const int64_t n = 20;
      hone_complex *matrix = cs_matrix(family, n, 4);
      hone_complex *x = cs_random(n, 1, 5), *rhs = cs_random(n, 1, 6);
      ct_note("%s, x about 2^%d", cs_name(family), exponents[k]);
      for (int64_t i = 0; i < n; i++)
        x[i] *= ldexp(1.0, exponents[k]);
      check_omega(n, matrix, x, rhs);
      x[3] = HUGE_VAL;
      CHECK(isnan(
          either_omega(2, n, (double *)matrix, (double *)x, (double *)rhs)));
      free(matrix);
      free(x);
      free(rhs);
    }
}

TEST(either, forward_errors_are_those_in_quadruple_precision) {
  reference r = {0};
  for (int family = 0; family < CS_FAMILIES; family++) {
    const int64_t n = 20;
    hone_complex *matrix = cs_matrix(family, n, 4);
    hone_complex *x = cs_random(n, 1, 5), *rhs = cs_random(n, 1, 6);
    const cs_problem p = {.n = n, .lda = n, .a = matrix};
    hone_options o = HONE_OPTIONS_INIT;
    cs_errors errors;
    ct_note("%s", cs_name(family));
    o.tolerance = 1e-10; /* so that there are errors */
    (void)hone_z_solve(n, 1, matrix, n, rhs, n, x, n, &o, NULL);
    CHECK(cs_compare(&p, x, rhs, NULL, &errors));
    either_solve(&r, 2, n, 1, (double *)matrix, (double *)rhs);
    CHECK(r.state <= REFERENCE_DOUBLE_DOUBLE);
    CHECK_NEAR((double)either_distance(&r, 2, 0, (double *)x), errors.forward,
               1e-6 * errors.forward + 1e-25);
    free(matrix);
    free(x);
    free(rhs);
  }
  reference_free(&r);
}

/* A real system with zeros for imaginary parts is measured like the real
   one. */
TEST(either, real_systems_are_measured_as_such) {
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    const int64_t n = f->most_n < 12 ? 5 : 12;
    double real[144], x[12], rhs[12], zx[24] = {0.0}, zb[24] = {0.0};
    gallery_rng rng = {(uint64_t)k};
    gallery_make(f, n, f->high, 3, real, n);
    gallery_rhs(GALLERY_B_FEW, n, real, n, 3, rhs);
    for (int64_t i = 0; i < n; i++) {
      x[i] = gallery_below(&rng, 3) ? 0x1p-60 * gallery_normal(&rng) : 1.0;
      zx[2 * i] = x[i];
      zb[2 * i] = rhs[i];
    }
    memset(a, 0, sizeof a);
    for (int64_t i = 0; i < n * n; i++)
      a[2 * i] = real[i];
    const double omega = reference_omega(n, real, n, x, rhs);
    const double sparse = reference_sparse_omega(n, real, n, x, rhs);
    ct_note("%s", f->name);
    CHECK_NEAR(either_omega(2, n, a, zx, zb), omega, 1e-12 * omega);
    CHECK_NEAR(either_sparse_omega(2, n, a, a, zx, zb), sparse, 1e-9 * sparse);
  }
}
