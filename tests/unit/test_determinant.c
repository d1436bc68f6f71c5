/* SPDX-License-Identifier: BSD-3-Clause */
/* The determinant of one matrix in whatever units its entries are, and the
   matching that finds scalings for it. Compiled for both scalars. */
#include "base/memory.h"
#include "cpu_batch/determinant.h"
#include "cpu_batch/matching.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>

#ifdef HONE_COMPLEX
#define SUITE determinant_complex
#else
#define SUITE determinant
#endif
#define OWN_TEST_OF(suite, name) TEST(suite, name)
#define OWN_TEST(name) OWN_TEST_OF(SUITE, name)

enum { MOST = 40 };

static int below(sup_rng *rng, int most) {
  return (int)(sup_next(rng) % (uint64_t)most);
}

/* ---- Matchings ----------------------------------------------------------- */

/* The largest sum of exponents over all choices for rows i to n - 1 of columns
   that are not taken, or a number far below. */
static int best_from(int n, const int32_t *e, int i, unsigned taken) {
  int best = -1000000;
  if (i == n)
    return 0;
  for (int j = 0; j < n; j++)
    if ((taken >> j & 1) == 0 && e[i + j * n] != HONE_NO_EXPONENT) {
      const int sum = e[i + j * n] + best_from(n, e, i + 1, taken | 1u << j);
      best = HONE_MAX(best, sum);
    }
  return best;
}

/* Row and column exponents are dual: no choice can have a larger sum than minus
   theirs, and the best one has it. */
OWN_TEST(exponents_are_those_of_the_heaviest_matching) {
  sup_rng rng = {11};
  int without = 0;
  for (int t = 0; t < 3000; t++) {
    enum { LARGEST = 6 };
    const int n = 1 + below(&rng, LARGEST), zeros = below(&rng, 5);
    int32_t e[LARGEST * LARGEST];
    int64_t row[LARGEST], col[LARGEST], work[4 * (LARGEST + 1)], sum = 0;
    for (int i = 0; i < n * n; i++)
      e[i] = below(&rng, 6) < zeros
                 ? (int32_t)HONE_NO_EXPONENT
                 : below(&rng, 401) - 200 + (t % 2) * below(&rng, 1800);
    const int best = best_from(n, e, 0, 0);
    ct_note("n %d, matrix %d", n, t);
    const bool found = hone_match(n, e, row, col, work);
    CHECK_EQ_INT(found, best > -100000);
    without += !found;
    for (int j = 0; found && j < n; j++) {
      sum += row[j] + col[j];
      for (int i = 0; i < n; i++)
        CHECK(e[i + j * n] == HONE_NO_EXPONENT ||
              e[i + j * n] + row[i] + col[j] <= 0);
    }
    if (found)
      CHECK_EQ_INT(-sum, best);
  }
  CHECK(without > 300);
}

OWN_TEST(a_matching_of_many_rows_has_exponents_that_fit) {
  enum { N = 300 };
  sup_rng rng = {12};
  int32_t *e = malloc(sizeof *e * N * N);
  int64_t *row = malloc(sizeof *row * (2 * N + 4 * (N + 1)));
  int64_t *col = row + N, *work = col + N;
  for (int i = 0; i < N * N; i++)
    e[i] = i % 7 == 0 ? (int32_t)HONE_NO_EXPONENT : below(&rng, 2000) - 1000;
  CHECK(hone_match(N, e, row, col, work));
  for (int j = 0; j < N; j++) {
    int equal = 0;
    for (int i = 0; i < N; i++) {
      CHECK(e[i + j * N] + row[i] + col[j] <= 0);
      equal += e[i + j * N] != HONE_NO_EXPONENT &&
               e[i + j * N] + row[i] + col[j] == 0;
    }
    CHECK_LE(1, equal);
  }
  free(e);
  free(row);
}

/* ---- Determinants -------------------------------------------------------- */

/* P (D + U) Q, with a strictly upper U: the determinant is the product of the
   diagonal, with the signs of P and Q, whatever U is. */
typedef struct known {
  int n;
  hone_entry a[MOST * MOST];
  double log_abs, sign;
} known;

/* Makes a random permutation, and returns its sign. */
static double shuffle(sup_rng *rng, int n, int *p) {
  double sign = 1.0;
  for (int i = 0; i < n; i++)
    p[i] = i;
  for (int i = n - 1; i > 0; i--) {
    const int j = below(rng, i + 1), held = p[i];
    p[i] = p[j];
    p[j] = held;
    sign = i == j ? sign : -sign;
  }
  return sign;
}

static void make(sup_rng *rng, int n, int spread, known *k) {
  int p[MOST], q[MOST];
  *k = (known){.n = n, .sign = shuffle(rng, n, p) * shuffle(rng, n, q)};
  for (int j = 0; j < n; j++)
    for (int i = 0; i <= j; i++) {
      const double size = (i == j ? 1.0 : 2.0 * sup_uniform(rng)) *
                          ldexp(1.0, below(rng, 2 * spread + 1) - spread);
      const double v = sup_next(rng) % 2 == 0 ? size : -size;
      k->a[p[i] + q[j] * n] = v;
      if (i == j) {
        k->log_abs += log(fabs(v));
        k->sign *= v < 0.0 ? -1.0 : 1.0;
      }
    }
}

static hone_determinant_value evaluate(const known *k, uint64_t seed) {
  hone_mem mem = {0};
  hone_determinant_value out = {0.0, 0.0, 0.0, false};
  const hone_determinant_job job = {
      .n = k->n, .a = k->a, .lda = k->n, .seed = seed};
  CHECK_EQ_INT(hone_determinant(&job, &mem, &out), HONE_OK);
  CHECK_EQ_INT(mem.held, 0);
  return out;
}

/* Values that are certain are right, and nearly all of them are certain. */
OWN_TEST(is_right_whatever_the_sizes_of_entries) {
  static const int spreads[] = {0, 3, 30, 200, 480};
  known *k = malloc(sizeof *k);
  sup_rng rng = {13};
  for (int s = 0; s < 5; s++) {
    int certain = 0;
    for (int t = 0; t < 200; t++) {
      make(&rng, 1 + below(&rng, 8), spreads[s], k);
      const hone_determinant_value v = evaluate(k, (uint64_t)t);
      ct_note("n %d, spread %d, number %d", k->n, spreads[s], t);
      certain += v.certain;
      if (!v.certain)
        continue;
      CHECK_NEAR(v.log_abs, k->log_abs, 1e-3);
      CHECK_NEAR(v.re, k->sign, 1e-3);
      CHECK_NEAR(v.im, 0.0, 1e-3);
    }
    ct_note("spread %d", spreads[s]);
    CHECK_LE(190, certain);
  }
  free(k);
}

/* The order in which an array is read decides nothing. */
OWN_TEST(of_the_transpose_is_the_same) {
  known *k = malloc(sizeof *k), *turned = malloc(sizeof *turned);
  sup_rng rng = {14};
  int certain = 0;
  for (int t = 0; t < 100; t++) {
    make(&rng, 2 + below(&rng, MOST - 1), 100, k);
    *turned = *k;
    for (int j = 0; j < k->n; j++)
      for (int i = 0; i < k->n; i++)
        turned->a[j + i * k->n] = k->a[i + j * k->n];
    const hone_determinant_value v = evaluate(k, 1), w = evaluate(turned, 2);
    ct_note("n %d, number %d", k->n, t);
    if (!v.certain || !w.certain)
      continue;
    certain++;
    CHECK_NEAR(v.log_abs, w.log_abs, 1e-3);
    CHECK_NEAR(v.re, w.re, 1e-3);
    CHECK_NEAR(v.re, k->sign, 1e-3);
  }
  CHECK_LE(50, certain); /* inverses of large triangles may be that large */
  free(k);
  free(turned);
}

/* Nothing is certain of a matrix that rounding may make singular, or that is;
   but entries that cannot be scaled without loss may be too small to matter.
 */
OWN_TEST(of_what_is_nearly_singular_is_not_certain) {
  known *k = malloc(sizeof *k);
  *k = (known){.n = 2, .a = {1.0, 1.0, 1.0, 1.0 + 0x1p-52}};
  CHECK(!evaluate(k, 1).certain);
  *k = (known){.n = 2, .a = {1.0, 2.0, 3.0, 6.0}};
  CHECK(!evaluate(k, 1).certain);
  *k = (known){.n = 3, .a = {1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 5.0, 3.0}};
  CHECK(!evaluate(k, 1).certain);
  CHECK(isinf(evaluate(k, 1).log_abs));
  *k = (known){.n = 2, .a = {0x1p1023, 0x1p1023, 0x1.8p-1073, 0x1p1000}};
  CHECK(evaluate(k, 1).certain);
  *k = (known){.n = 2, .a = {1.0, 1.0, 1.0, 1.0 + 0x1p-20}};
  CHECK(evaluate(k, 1).certain);
  free(k);
}
