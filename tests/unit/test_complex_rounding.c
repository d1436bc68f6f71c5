/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex columns rounded to single precision, beside plain loops, and vectors
   scaled by powers of two. Compiled with HONE_COMPLEX. */
#include "base/rounding.h"
#include "refine/scale.h"
#include "tests/unit/complex_system.h"
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
