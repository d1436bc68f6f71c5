/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex columns rounded to single precision, beside plain loops, vectors
   scaled by powers of two, and checksums of triangles. Compiled with
   HONE_COMPLEX. */
#include "base/rounding.h"
#include "refine/scale.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/mirror_difference.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1100, W = 3, J = 40, LDF = N + 2 };

static double rounded(double v) {
  const float f = (float)v;
  return fabsf(f) >= FLT_MIN ? (double)f : 0.0;
}

/* Entries of 0, and of sizes whose parts vanish alone or together. */
static hone_entry *make(void) {
  hone_entry *a = cs_random((int64_t)N, N, 3);
  for (int64_t k = 0; k < (int64_t)N * N; k++) {
    if (k % 7 == 0)
      a[k] = CMPLX(creal(a[k]), 0x1p-140 * cimag(a[k]));
    else if (k % 11 == 0)
      a[k] *= 0x1p-135;
    else if (k % 13 == 0)
      a[k] = 0.0;
    a[k] *= 0x1p-20; /* the largest magnitude is below 1 */
  }
  return a;
}

/* Column c of S, before rows are exchanged. */
static hone_entry entry(const hone_rounding *r, int64_t i, int64_t c) {
  const hone_entry v = r->a->a[i + (J + c) * r->a->lda];
  const double by =
      r->scaling->used ? r->scaling->row[i] * r->scaling->col[J + c] : 1.0;
  return CMPLX(rounded(by * creal(v)), rounded(by * cimag(v)));
}

static void check_rounding(const hone_rounding *r) {
  hone_entry *column = malloc(N * sizeof *column);
  int64_t flushed = 0;
  int wrong = 0;
  const int64_t returned = hone_round_columns(NULL, r);
  for (int64_t c = 0; c < W; c++) {
    const int64_t first = r->lower ? J + c : 0;
    double most = 0.0;
    for (int64_t i = first; i < N; i++) {
      column[i] = entry(r, i, c);
      most = fmax(most, cabs(column[i]));
      flushed += column[i] == 0.0 && r->a->a[i + (J + c) * N] != 0.0;
    }
    for (int64_t k = 0; k < r->exchanges; k++) {
      const int64_t with = r->exchange[k] - 1;
      const hone_entry t = column[k];
      column[k] = column[with];
      column[with] = t;
    }
    for (int64_t i = 0; i < LDF; i++) {
      const hone_entry f = (hone_entry)r->f[i + c * LDF];
      wrong += i >= first && i < N ? f != column[i] : f != 77.0;
    }
    CHECK_NEAR((double)r->col_max[c], most, 0x1p-22 * most);
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(returned, flushed);
  CHECK_LE(1, flushed);
  free(column);
}

TEST(complex_rounding, is_that_of_the_parts) {
  hone_entry *a = make();
  hone_single *f = malloc((size_t)W * LDF * sizeof *f);
  int exchange[20];
  float most[W];
  hone_scaling scaling = {.row = sup_filled(N, 1.0), .col = sup_filled(N, 1.0)};
  const hone_dense dense = {.n = N, .lda = N, .a = a};
  for (int k = 0; k < 20; k++)
    exchange[k] = k + 1 + 50 * k;
  for (int way = 0; way < 6 + 2; way++) {
    const bool lower = way == 4 || way == 5;
    /* The last two ways have r_i a_ij out of range, unlike r_i a_ij c_j. */
    const int apart = way < 6 ? 0 : way == 6 ? 1015 : -1015;
    scaling.used = way % 2 || apart != 0;
    for (int i = 0; i < N; i++) {
      scaling.row[i] = ldexp(1.0, i % 9 - 4 - apart);
      scaling.col[i] = ldexp(1.0, i % 5 - 2 + apart);
    }
    for (int64_t k = 0; k < W * LDF; k++)
      f[k] = 77.0F;
    ct_note("way %d", way);
    check_rounding(&(hone_rounding){.a = &dense,
                                    .scaling = &scaling,
                                    .j = J,
                                    .w = W,
                                    .exchange = exchange,
                                    .exchanges = way % 4 >= 2 ? 20 : 0,
                                    .f = f,
                                    .ldf = LDF,
                                    .col_max = most,
                                    .lower = lower});
  }
  free(a);
  free(f);
  sup_free(scaling.row);
  sup_free(scaling.col);
}

/* A vector is brought near 1 by the larger part of its entries, of which the
   first one has an imaginary part of 2^40. */
TEST(complex_scale, brings_vectors_near_1_by_their_larger_parts) {
  const int exponents[] = {0, 5};
  const hone_entry r[] = {CMPLX(0x1p-30, 0x1p40), CMPLX(-0x1p-30, 0x1p-30)};
  hone_entry v[2];
  CHECK_EQ_INT(hone_scale_in(2, exponents, r, v), -41);
  CHECK(creal(v[0]) == 0x1p-71 && cimag(v[0]) == 0x1p-1);
  CHECK(creal(v[1]) == -0x1p-66 && cimag(v[1]) == 0x1p-66);
}

/* ---- Checksums that tell a triangle from its mirror image ---------------- */

/* a_ij = v, and a_ji = w. */
static void put(hone_entry *a, int64_t n, int64_t i, int64_t j, hone_entry v,
                hone_entry w) {
  a[i + j * n] = v;
  a[j + i * n] = w;
}

TEST(complex_rounding, checksums_differ_wherever_a_is_not_hermitian) {
  enum { n = 40 };
  hone_entry *a = cs_random((int64_t)n, n, 5);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < j; i++)
      a[j + i * n] = conj(a[i + j * n]);
  CHECK(mirror_difference(n, a) == 0);
  put(a, n, 3, 20, CMPLX(1.0, 0.0), CMPLX(1.0, 0.0));
  put(a, n, 3, 21, CMPLX(-0.0, 2.0), CMPLX(0.0, -2.0));
  CHECK(mirror_difference(n, a) == 0);
  put(a, n, 4, 30, CMPLX(1.0, 2.0), CMPLX(1.0, 2.0)); /* not conjugate */
  CHECK(mirror_difference(n, a) != 0);
  put(a, n, 4, 30, CMPLX(1.0, 2.0), CMPLX(2.0, -1.0)); /* parts exchanged */
  CHECK(mirror_difference(n, a) != 0);
  put(a, n, 4, 30, CMPLX(1.0, 2.0), CMPLX(1.0, -2.0));
  for (int bit = 0; bit < 128; bit++) { /* one bit of either part */
    const hone_entry old = a[9 + 4 * n];
    uint64_t bits[2];
    memcpy(bits, &old, sizeof bits);
    bits[bit / 64] ^= (uint64_t)1 << bit % 64;
    memcpy(&a[9 + 4 * n], bits, sizeof bits);
    ct_note("bit %d", bit);
    CHECK(mirror_difference(n, a) != 0);
    a[9 + 4 * n] = old;
  }
  for (int64_t i = 6; i < n; i++) { /* two entries exchanged */
    const hone_entry v = a[5 + 2 * n], w = a[i + 2 * n];
    a[5 + 2 * n] = w;
    a[i + 2 * n] = v;
    CHECK(mirror_difference(n, a) != 0);
    a[5 + 2 * n] = v;
    a[i + 2 * n] = w;
  }
  CHECK(mirror_difference(n, a) == 0);
  free(a);
}

/* A block of integers whose mirror image was stored conjugate but not
   transposed. */
TEST(complex_rounding, checksums_see_differences_that_cancel_each_other) {
  enum { n = MIRROR_MOST };
  hone_entry *a = malloc((size_t)n * n * sizeof *a);
  for (int64_t m = 2; m <= 32; m++) {
    for (int64_t i = 0; i < n * n; i++)
      a[i] = 1.0;
    CHECK(mirror_difference(n, a) == 0);
    for (int64_t q = 0; q < m; q++)
      for (int64_t p = 0; p < m; p++) {
        const hone_entry v = CMPLX((double)((p * 7 + q * 3 + m) % 11),
                                   (double)((p * 5 + q * 2 + m) % 7));
        a[10 + p + (60 + q) * n] = v;
        a[60 + p + (10 + q) * n] = conj(v);
      }
    ct_note("a block of %d", (int)m);
    CHECK(mirror_difference(n, a) != 0);
  }
  free(a);
}
