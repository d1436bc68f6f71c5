/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference beside exactly known solutions and beside elimination in
   quadruple precision. */
#include "tests/gallery/gallery.h"
#include "tests/gallery/reference.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

enum { ROOM = 130 };
static double a[ROOM * ROOM], b[ROOM * 3], x[ROOM];

static quad size_of(quad v) { return v < 0 ? -v : v; }

/* |hi + lo - v| / max |v| for x = C (hi + lo) 2^shift. */
static double off_by(const reference *r, int64_t c, int64_t i, quad v,
                     quad largest) {
  const int e = r->exponent[i] + r->shift[c];
  quad got = (quad)ldexp(r->high[i + c * r->n], e) +
             (quad)ldexp(r->low[i + c * r->n], e);
  return (double)(size_of(got - v) / largest);
}

/* Hilbert's matrix cannot be stored exactly, but its inverse can: with A the
   inverse, the first unit vector has the solution 1, 1/2, 1/3, ... */
TEST(reference, solves_with_hilberts_inverse) {
  reference r = {0};
  for (int64_t n = 1; n <= 12; n++) {
    gallery_make(gallery_find("inverse_hilbert"), n, 0, 1, a, n);
    memset(b, 0, sizeof b);
    b[0] = 1.0;
    b[n + n - 1] = 1.0;
    reference_solve(&r, n, 2, a, n, b, n);
    ct_note("n = %d", (int)n);
    CHECK(r.state <= REFERENCE_DOUBLE_DOUBLE);
    CHECK_LE(r.error[0], 1e-17); /* 1e-20 to 2e-18, by LAPACK's kernels */
    for (int64_t i = 0; i < n; i++) {
      CHECK_LE(off_by(&r, 0, i, (quad)1 / (quad)(i + 1), 1), r.error[0]);
      CHECK_LE(off_by(&r, 1, i, (quad)1 / (quad)(i + n), (quad)1 / (quad)n),
               r.error[1]);
    }
  }
  reference_free(&r);
}

/* With integer x and exact b = A x, x is found to the last bit. */
TEST(reference, finds_integers_exactly) {
  reference r = {0};
  static const char *const names[] = {"integers", "frank", "moler", "minij",
                                      "growth"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    /* The condition of Frank's matrix is about n! */
    const int64_t n = k == 1 ? 22 : 40;
    gallery_make(gallery_find(names[k]), n, k == 4 ? 1 : 50, 4, a, n);
    for (int64_t i = 0; i < n; i++) {
      b[i] = 0.0;
      for (int64_t j = 0; j < n; j++)
        b[i] += a[i + j * n] * (double)(j % 7 - 3);
    }
    reference_solve(&r, n, 1, a, n, b, n);
    ct_note("%s", names[k]);
    CHECK(r.state <= REFERENCE_DOUBLE_DOUBLE);
    CHECK_LE(r.error[0], 1e-20);
    for (int64_t i = 0; i < n; i++)
      x[i] = (double)(i % 7 - 3);
    CHECK_LE((double)reference_distance(&r, 0, x, false), r.error[0]);
    CHECK_LE((double)reference_distance(&r, 0, x, true), r.error[0]);
    x[5] *= 1.0 + 1e-6; /* and a wrong entry is noticed */
    CHECK_GE((double)reference_distance(&r, 0, x, true), 0.9e-6 / 3.0);
  }
  reference_free(&r);
}

/* Gaussian elimination with partial pivoting in quadruple precision. */
static void eliminate(int64_t n, quad *m, quad *v) {
  for (int64_t k = 0; k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < n; i++)
      p = size_of(m[i + k * n]) > size_of(m[p + k * n]) ? i : p;
    for (int64_t j = 0; j < n; j++) {
      quad old = m[k + j * n];
      m[k + j * n] = m[p + j * n];
      m[p + j * n] = old;
    }
    quad old = v[k];
    v[k] = v[p];
    v[p] = old;
    for (int64_t i = k + 1; i < n; i++) {
      quad l = m[i + k * n] / m[k + k * n];
      for (int64_t j = k; j < n; j++)
        m[i + j * n] -= l * m[k + j * n];
      v[i] -= l * v[k];
    }
  }
  for (int64_t k = n - 1; k >= 0; k--) {
    for (int64_t j = k + 1; j < n; j++)
      v[k] -= m[k + j * n] * v[j];
    v[k] /= m[k + k * n];
  }
}

/* All families for which elimination in quadruple precision is accurate to
   about 1e-15: both solutions differ by no more than condition and bound
   explain. */
TEST(reference, agrees_with_quadruple_elimination) {
  enum { N = 17 };
  static quad m[N * N], v[N];
  reference r = {0};
  int compared = 0;
  for (int k = 0; k < gallery_count; k++) {
    const gallery_family *f = &gallery_families[k];
    if (N > f->most_n || (f->properties & (GALLERY_RANGE | GALLERY_SINGULAR)))
      continue;
    gallery_make(f, N, 0.5 * (f->low + f->high), 7, a, N);
    gallery_rhs(GALLERY_B_RANDOM, N, a, N, 8, b);
    reference_solve(&r, N, 1, a, N, b, N);
    if (!(r.condition <= 1e15))
      continue;
    for (int i = 0; i < N * N; i++)
      m[i] = (quad)a[i];
    quad largest = 0;
    for (int i = 0; i < N; i++)
      v[i] = (quad)b[i];
    eliminate(N, m, v);
    for (int i = 0; i < N; i++)
      largest = size_of(v[i]) > largest ? size_of(v[i]) : largest;
    ct_note("%s, condition %.1e", f->name, r.condition);
    CHECK(r.state <= REFERENCE_DOUBLE_DOUBLE);
    CHECK_LE(r.error[0], 1e-18);
    for (int i = 0; i < N; i++)
      CHECK_LE(off_by(&r, 0, i, v[i], largest),
               r.error[0] + 1e-32 * r.condition);
    compared++;
  }
  CHECK_GE(compared, 40);
  reference_free(&r);
}

/* Entries of A are multiples of 2^-45, and b = A x is exact: the bound must
   hold whatever the condition. */
TEST(reference, bounds_its_own_error_far_beyond_double) {
  reference r = {0};
  for (int p = 0; p <= 13; p++) {
    const int64_t n = 60;
    gallery_make(gallery_find("dlatms_3"), n, p, 4, a, n);
    for (int64_t i = 0; i < n * n; i++)
      a[i] = ldexp(rint(ldexp(a[i], 45)), -45);
    for (int64_t i = 0; i < n; i++) {
      b[i] = a[i] * 0.5 - 2.0 * a[i + n];
      x[i] = i == 0 ? 0.5 : i == 1 ? -2.0 : 0.0;
    }
    reference_solve(&r, n, 1, a, n, b, n);
    ct_note("condition 1e%d: %.1e", p, r.condition);
    CHECK(r.state <= REFERENCE_DOUBLE_DOUBLE);
    CHECK_LE(r.error[0], 1e-20);
    CHECK_LE((double)reference_distance(&r, 0, x, false), r.error[0]);
    CHECK_LE((double)reference_distance(&r, 0, x, true), r.error[0]);
  }
  reference_free(&r);
}

TEST(reference, admits_when_it_does_not_know_x) {
  reference r = {0};
  const int64_t n = 30;
  for (int64_t i = 0; i < n; i++)
    b[i] = 1.0;
  gallery_make(gallery_find("frank"), 60, 0, 1, a, 60); /* condition 1e80 */
  for (int64_t i = 0; i < 60; i++)
    b[i] = 1.0;
  reference_solve(&r, 60, 1, a, 60, b, 60);
  CHECK(r.state >= REFERENCE_UNTRUSTED);
  CHECK(!(r.error[0] <= DBL_MAX));
  memset(a, 0, sizeof a);
  reference_solve(&r, n, 1, a, n, b, n);
  CHECK_EQ_INT(r.state, REFERENCE_SINGULAR);
  CHECK(!(r.condition <= DBL_MAX));
  reference_free(&r);
}

/* Two columns are equal and b = A ones: refinement converges to some x, and
   only the known solutions show that it is not unique. */
TEST(reference, is_not_fooled_by_a_consistent_singular_system) {
  reference r = {0};
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const int64_t n = 2 + (int64_t)seed;
    gallery_make(gallery_find("duplicated_column"), n, 0, seed, a, n);
    gallery_rhs(GALLERY_B_ONES, n, a, n, seed, b);
    reference_solve(&r, n, 1, a, n, b, n);
    CHECK(r.state >= REFERENCE_UNTRUSTED);
  }
  reference_free(&r);
}

/* Columns of very different size and a solution that is one unit vector: the
   errors of the other entries are small beside 1 only in scaled variables. The
   bound has to hold in the caller's variables. */
TEST(reference, counts_errors_in_the_units_of_the_caller) {
  reference r = {0};
  int trusted = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const int size[] = {-2 * (int)seed, 0, 2 * (int)seed};
    const int64_t n = 3;
    gallery_make(gallery_find("uniform"), n, 0, seed, a, n);
    for (int64_t j = 0; j < n; j++)
      /* Graded symmetrically, like wide matrices. */
      for (int64_t i = 0; i < n; i++)
        a[i + j * n] = ldexp(a[i + j * n], size[j] + size[i]);
    for (int64_t i = 0; i < n; i++) {
      b[i] = a[i + 2 * n];
      x[i] = i == 2 ? 1.0 : 0.0;
    }
    reference_solve(&r, n, 1, a, n, b, n);
    ct_note("seed %d", (int)seed);
    trusted += r.error[0] <= 1.0;
    if (r.error[0] <= 1.0)
      CHECK_LE((double)reference_distance(&r, 0, x, false), r.error[0]);
  }
  CHECK_GE(trusted, 100); /* the reference does not trust the widest ones */
  reference_free(&r);
}

/* Scaling by powers of two changes only exponents, also near overflow and
   underflow. */
TEST(reference, works_at_the_ends_of_the_range) {
  reference r = {0};
  static double s[ROOM * ROOM];
  const int64_t n = 20;
  gallery_make(gallery_find("uniform"), n, 0, 3, a, n);
  gallery_rhs(GALLERY_B_RANDOM, n, a, n, 3, b);
  reference_solve(&r, n, 1, a, n, b, n);
  CHECK_LE(r.error[0], 1e-20);
  for (int64_t i = 0; i < n; i++)
    x[i] = r.high[i] * ldexp(1.0, r.exponent[i] + r.shift[0]);
  CHECK_LE((double)reference_distance(&r, 0, x, false), 0x1p-53);
  for (int e = -960; e <= 1020; e += 180) {
    for (int64_t i = 0; i < n * n; i++)
      s[i] = ldexp(a[i], e);
    reference_solve(&r, n, 1, s, n, b, n);
    ct_note("2^%d", e);
    CHECK_EQ_INT(r.state, REFERENCE_DOUBLE);
    CHECK_LE(r.error[0], 1e-20);
    for (int64_t i = 0; i < n; i++)
      b[n + i] = ldexp(x[i], -e);
    if (e > -960)
      CHECK_LE((double)reference_distance(&r, 0, b + n, false), 0x1p-53);
  }
  reference_free(&r);
}

/* In scaled variables x_1 and x_2 are 2^-155 of the largest entry, which is not
   so in the caller's units. Rounding errors of solves were larger than what the
   last corrections changed. */
TEST(reference, counts_rounding_errors_of_its_solves) {
  static const double wide[] = {
      0x1.3f7bd994f9228p+380, 0x1.b5eb25d0e3c98p+315, 0x1.8dcffc1abd384p+50,
      0x1.9a2302ed6262ep+408, 0x1.9ba71eaca118cp-312, 0x1.01bfd9b6397e8p+85,
      0x1.e42c976f8fc42p-72,  0x1.545e917ee17fep+192, 0x1.ba47fc897c1d4p-364,
      -0x1.32086a109d068p+56, -0x1.e85dae78f881cp-1,  -0x1.03c4c5fe5fbb2p+439,
      0x1.fd51d36649048p-278, -0x1.4f9878d874048p+33, 0x1.9d49d8cdf20d4p+44,
      0x1.80403eaaf52cp-210};
  static const double sides[] = {-0x1.87cefb8502e68p+437, 0x1.35e7f32a1fbep+437,
                                 0x1.7c904a94b9204p+438,
                                 0x1.1e1186e3644a4p+437};
  /* by rational arithmetic, rounded */
  static const double truth[] = {-0x1.39f409f94eae1p+57, 0x1.341a34d4cc97ap+352,
                                 0x1.93b337cd63eeap+105,
                                 0x1.d77583a48ecd3p+393};
  reference r = {0};
  reference_solve(&r, 4, 1, wide, 4, sides, 4);
  CHECK_EQ_INT(r.state, REFERENCE_DOUBLE);
  CHECK_LE(r.error[0], 1e-12);
  for (int64_t i = 0; i < 4; i++)
    CHECK_LE((double)reference_miss(&r, 0, i, truth[i]),
             r.error[0] * truth[3] + 0x1p-53 * fabs(truth[i]));
  reference_free(&r);
}

/* Quadruple precision again, for a random x. */
TEST(reference, omega_is_that_of_quadruple_precision) {
  static const int exponents[] = {0, 600, -600, 1000, -1000};
  for (int k = 0; k < 5; k++) {
    const int64_t n = 33;
    gallery_rng rng = {(uint64_t)k};
    double want = 0.0;
    gallery_make(gallery_find("wide"), n, k, 3, a, n);
    for (int64_t i = 0; i < n; i++) {
      x[i] = ldexp(gallery_normal(&rng), exponents[k]);
      b[i] = ldexp(gallery_normal(&rng), exponents[4 - k]);
    }
    for (int64_t i = 0; i < n; i++) {
      quad r = (quad)b[i], d = size_of(r);
      for (int64_t j = 0; j < n; j++) {
        r -= (quad)a[i + j * n] * (quad)x[j];
        d += size_of((quad)a[i + j * n] * (quad)x[j]);
      }
      want = fmax(want, (double)(size_of(r) / d));
    }
    ct_note("case %d", k);
    CHECK_NEAR(reference_omega(n, a, n, x, b), want, 1e-12 * want);
    x[4] = (double)NAN;
    CHECK(isnan(reference_omega(n, a, n, x, b)));
  }
}

TEST(reference, omega_sees_a_residual_of_an_ulp) {
  const double one[1] = {3.0}, rhs[1] = {1.0}, third[1] = {1.0 / 3.0};
  const double zero[1] = {0.0};
  /* 1 - 3 fl(1/3) = 2^-54 */
  CHECK_NEAR(reference_omega(1, one, 1, third, rhs), 0x1p-55, 1e-30);
  CHECK_EQ_INT(reference_omega(1, one, 1, zero, zero) == 0.0, 1);
  CHECK_EQ_INT(reference_omega(1, one, 1, zero, rhs) == 1.0, 1);
}
