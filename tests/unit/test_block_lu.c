/* SPDX-License-Identifier: BSD-3-Clause */
/* The LU of a diagonal block on one core and the inverses of its triangles,
   beside products in double precision. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/block_lu.h"

#include <math.h>
#include <string.h>

enum { N = HONE_BLOCK };

static const double EPS = 0x1p-24;

/* The tested code: that for this processor's vectors, or the portable one. */
static const hone_block_code at_hand = {hone_block_lu, hone_block_upper,
                                        hone_block_lower};
static const hone_block_code *code = &at_hand;

/* GRADED: rows of very different sizes. STEEP: each row is twice the one above
   it, so that all rows are exchanged. DOMINANT: diagonally dominant. */
enum { UNIFORM, GRADED, STEEP, DOMINANT, KINDS };

typedef struct block {
  int w, kind, row[N];
  float a[N * N], lu[N * N], inverse[N * N];
} block;

static void fill(block *b, int kind, int w) {
  sup_rng rng = {(uint64_t)(1000 * kind + w)};
  b->kind = kind;
  b->w = w;
  for (int i = 0; i < N * N; i++)
    b->a[i] = NAN; /* nothing outside of the block may be read */
  for (int i = 0; i < w; i++)
    for (int j = 0; j < w; j++) {
      double v = sup_uniform(&rng);
      if (kind == GRADED)
        v = ldexp(v, (i * 7) % 60 - 30);
      if (kind == STEEP)
        v = ldexp(v, i / 4);
      if (kind == DOMINANT && i == j)
        v += i % 2 ? w : -w;
      b->a[i * N + j] = (float)v;
    }
  memcpy(b->lu, b->a, sizeof b->a);
  ct_note("order %d, kind %d", w, kind);
}

static double l_at(const block *b, int i, int j) {
  return i == j ? 1.0 : (i > j ? (double)b->lu[i * N + j] : 0.0);
}

static double u_at(const block *b, int i, int j) {
  return i <= j ? (double)b->lu[i * N + j] : 0.0;
}

static bool is_permutation(const block *b) {
  int seen[N] = {0};
  for (int i = 0; i < b->w; i++)
    if (b->row[i] < 0 || b->row[i] >= b->w || seen[b->row[i]]++)
      return false;
  return true;
}

/* max |P A - L U| / (w eps (|L| |U|)), entry by entry. */
static double defect(const block *b) {
  double worst = 0.0;
  for (int i = 0; i < b->w; i++)
    for (int j = 0; j < b->w; j++) {
      double sum = -(double)b->a[b->row[i] * N + j], size = 0.0;
      for (int k = 0; k < b->w; k++) {
        sum += l_at(b, i, k) * u_at(b, k, j);
        size += fabs(l_at(b, i, k) * u_at(b, k, j));
      }
      const double e = fabs(sum) / (b->w * EPS * size);
      worst = !(e <= worst) ? e : worst;
    }
  return worst;
}

static double largest_multiplier(const block *b) {
  double worst = 0.0;
  for (int i = 0; i < b->w; i++)
    for (int j = 0; j < i; j++) {
      const double e = fabs(l_at(b, i, j));
      worst = !(e <= worst) ? e : worst;
    }
  return worst;
}

static void check_factors(block *b, bool natural) {
  CHECK_EQ_INT(code->lu(b->w, natural, b->lu, b->row), -1);
  REQUIRE(is_permutation(b));
  CHECK_LE(defect(b), 1.0);
  if (!natural)
    CHECK_LE(largest_multiplier(b), 1.0);
  for (int i = 0; natural && i < b->w; i++)
    CHECK_EQ_INT(b->row[i], i);
}

static const int orders[] = {1,  2,  3,  7,  15, 16, 17,  23,  31,  32,
                             33, 48, 63, 64, 65, 97, 112, 113, 127, 128};
enum { ORDERS = sizeof orders / sizeof *orders };

TEST(block_lu, factors_every_order) {
  static block b;
  for (int w = 1; w <= N; w++) {
    fill(&b, UNIFORM, w);
    check_factors(&b, false);
  }
}

TEST(block_lu, factors_rows_of_any_size) {
  static block b;
  for (int kind = GRADED; kind < KINDS; kind++)
    for (int i = 0; i < ORDERS; i++) {
      fill(&b, kind, orders[i]);
      check_factors(&b, false);
    }
}

TEST(block_lu, leaves_the_rows_where_they_are) {
  static block b;
  for (int i = 0; i < ORDERS; i++) {
    fill(&b, DOMINANT, orders[i]);
    check_factors(&b, true);
  }
}

/* max |inv(U) U - I| or |L inv(L) - I|, relative to the product of the
   magnitudes; NaN if the other triangle is not zero. */
static double inverse_defect(const block *b, bool upper) {
  double worst = 0.0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      if (!(i < b->w && j < b->w && (upper ? i <= j : i >= j)) &&
          !(b->inverse[i * N + j] == 0.0F))
        return (double)NAN;
  for (int i = 0; i < b->w; i++)
    for (int j = 0; j < b->w; j++) {
      double sum = i == j ? -1.0 : 0.0, size = i == j ? 1.0 : 0.0;
      for (int k = 0; k < b->w; k++) {
        const double x = upper ? (double)b->inverse[i * N + k] : l_at(b, i, k);
        const double y = upper ? u_at(b, k, j) : (double)b->inverse[k * N + j];
        sum += x * y;
        size += fabs(x * y);
      }
      const double e = fabs(sum) / (b->w * EPS * (size > 0.0 ? size : 1.0));
      worst = !(e <= worst) ? e : worst;
    }
  return worst;
}

static void check_inverses(block *b) {
  memset(b->inverse, 0xff, sizeof b->inverse);
  code->upper(b->w, b->lu, b->inverse);
  CHECK_LE(inverse_defect(b, true), 2.0);
  memset(b->inverse, 0xff, sizeof b->inverse);
  code->lower(b->w, b->lu, b->inverse);
  CHECK_LE(inverse_defect(b, false), 1.0);
  CHECK_LE(defect(b), 1.0); /* the factors are unchanged */
}

TEST(block_lu, inverts_both_triangles) {
  static block b;
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < ORDERS; i++) {
      fill(&b, kind, orders[i]);
      (void)code->lu(b.w, false, b.lu, b.row);
      check_inverses(&b);
    }
}

TEST(block_lu, portable_code_factors_and_inverts_too) {
  static block b;
  code = &hone_block_portable;
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < ORDERS; i++) {
      fill(&b, kind, orders[i]);
      check_factors(&b, kind == DOMINANT);
      check_inverses(&b);
    }
  code = &at_hand;
}

/* Zero columns at every place of a panel, and two of them. */
TEST(block_lu, names_the_first_zero_pivot) {
  static block b;
  for (int i = 0; i < ORDERS; i++)
    for (int zero = 0; zero < orders[i]; zero++)
      for (int natural = 0; natural < 2; natural++) {
        fill(&b, DOMINANT, orders[i]);
        for (int r = 0; r < b.w; r++)
          b.lu[r * N + zero] = b.lu[r * N + b.w - 1] = 0.0F;
        CHECK_EQ_INT(code->lu(b.w, natural, b.lu, b.row), zero);
        CHECK(is_permutation(&b));
      }
}

/* Columns k and k + 1 are equal: elimination leaves zeros of the second one. */
TEST(block_lu, finds_a_column_that_depends_on_another) {
  static block b;
  for (int k = 0; k + 1 < 40; k++) {
    fill(&b, UNIFORM, 40);
    /* Powers of two, so that elimination is exact. */
    for (int i = 0; i < b.w; i++)
      for (int j = 0; j < b.w; j++)
        b.lu[i * N + j] = i == b.w - 1 - j ? 2.0F : 0.0F;
    for (int i = 0; i < b.w; i++)
      b.lu[i * N + k + 1] = b.lu[i * N + k];
    CHECK_EQ_INT(code->lu(b.w, false, b.lu, b.row), k + 1);
    CHECK(is_permutation(&b));
  }
}

/* A zero on the diagonal makes a row exchange, or is reported where rows may
   not be exchanged. */
TEST(block_lu, needs_pivoting_for_a_zero_on_the_diagonal) {
  static block b;
  for (int k = 0; k < 40; k++) {
    fill(&b, UNIFORM, 40);
    for (int i = 0; i < b.w; i++)
      for (int j = 0; j < b.w; j++)
        b.a[i * N + j] = i == j && i != k ? 1.0F : 0.0F;
    b.a[k * N + (k + 1) % 40] = b.a[(k + 1) % 40 * N + k] = 3.0F;
    memcpy(b.lu, b.a, sizeof b.a);
    CHECK_EQ_INT(code->lu(b.w, true, b.lu, b.row), k == 39 ? -1 : k);
    memcpy(b.lu, b.a, sizeof b.a);
    check_factors(&b, false);
  }
}

/* Is there an entry of the factors that is not finite? */
static bool spoiled(const block *b) {
  for (int i = 0; i < b->w; i++)
    for (int j = 0; j < b->w; j++)
      if (!isfinite(b->lu[i * N + j]))
        return true;
  return false;
}

TEST(block_lu, hides_neither_nan_nor_infinity) {
  static block b;
  static const float bad[] = {NAN, INFINITY, -INFINITY};
  for (int v = 0; v < 3; v++)
    for (int i = 0; i < ORDERS; i++)
      for (int at = 0; at < orders[i]; at += 5)
        for (int natural = 0; natural < 2; natural++) {
          fill(&b, DOMINANT, orders[i]);
          b.lu[at * N + (at * 3) % b.w] = bad[v];
          CHECK_EQ_INT(code->lu(b.w, natural, b.lu, b.row), -1);
          CHECK(is_permutation(&b));
          CHECK(spoiled(&b));
          code->upper(b.w, b.lu, b.inverse);
        }
}

/* A column that holds a NaN beside zeros has no zero pivot. */
TEST(block_lu, takes_nan_for_a_pivot_rather_than_zero) {
  static block b;
  fill(&b, UNIFORM, 20);
  for (int i = 0; i < b.w; i++)
    b.lu[i * N] = i == 13 ? NAN : 0.0F;
  CHECK_EQ_INT(code->lu(b.w, false, b.lu, b.row), -1);
  CHECK_EQ_INT(b.row[0], 13);
  CHECK(is_permutation(&b));
}

/* Subnormal pivots, whose reciprocals overflow. */
TEST(block_lu, divides_by_subnormal_numbers) {
  static block b;
  fill(&b, UNIFORM, 20);
  for (int i = 0; i < b.w; i++)
    for (int j = 0; j < b.w; j++)
      b.lu[i * N + j] = b.a[i * N + j] =
          i == j ? 0x1p-140F : (j < i ? 0x1p-141F : 0.0F);
  CHECK_EQ_INT(code->lu(b.w, false, b.lu, b.row), -1);
  for (int i = 0; i < b.w; i++)
    for (int j = 0; j < i; j++)
      CHECK(b.lu[i * N + j] == 0.5F);
}

TEST(block_lu, gives_the_same_bits_again) {
  static block b, c;
  fill(&b, UNIFORM, 113);
  fill(&c, UNIFORM, 113);
  check_factors(&b, false);
  check_factors(&c, false);
  for (int i = 0; i < b.w; i++)
    CHECK_MEM_EQ(b.lu + i * N, c.lu + i * N, 113 * sizeof(float));
  CHECK_MEM_EQ(b.row, c.row, 113 * sizeof(int));
}
