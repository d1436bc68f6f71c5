/* SPDX-License-Identifier: BSD-3-Clause */
/* base/pivot_fall.h, by which single-precision factorizations stop early: with
   made-up pivots, and with the host's loop on a diagonal matrix that has these
   pivots. Sizes are powers of ten relative to the first pivot, which has any
   size. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "base/pivot_fall.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = -1 };

/* Pivot c is 10^(at + fall c / n), and 10^drop times smaller from column from
   on. */
typedef struct shape {
  double at, fall, drop;
  int64_t from;
} shape;

static float pivot_of(int64_t n, shape pivots, int64_t c) {
  return (float)pow(10.0, pivots.at + pivots.fall * (double)c / (double)n -
                              (c >= pivots.from ? pivots.drop : 0.0));
}

static double mean_of(int64_t n, shape pivots, int64_t from) {
  float sample[HONE_PIVOT_SAMPLE];
  CHECK(from >= 0 && from + HONE_PIVOT_SAMPLE <= n);
  for (int64_t c = 0; c < HONE_PIVOT_SAMPLE; c++)
    sample[c] = pivot_of(n, pivots, from + c);
  return hone_pivot_mean(sample);
}

static bool hopeless_after(int64_t n, int64_t done, shape pivots) {
  if (!hone_pivots_can_be_judged(n, done))
    return false;
  const hone_pivot_fall fall = {.n = n,
                                .done = done,
                                .start = mean_of(n, pivots, 0),
                                .middle =
                                    mean_of(n, pivots, hone_pivot_middle(done)),
                                .end = mean_of(n, pivots, hone_pivot_end(done)),
                                .first = pivot_of(n, pivots, 0)};
  return hone_pivots_hopeless(&fall);
}

/* Does the host's engine, with block columns of that width, call its factors of
   a diagonal matrix with these pivots hopeless? */
static bool host_gives_up(int64_t n, int64_t block, shape pivots) {
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_factor_info info;
  void *self = NULL;
  double *a = sup_filled(n * n, 0.0), *one = sup_filled(n, 1.0);
  int *zero = calloc((size_t)n, sizeof *zero);
  const hone_scaling scaling = {one, one, zero, zero, false};
  const hone_engine_config config = {
      .n = n, .mem = &mem, .watch = &watch, .block = block};
  for (int64_t c = 0; c < n; c++)
    a[c * (n + 1)] = (double)pivot_of(n, pivots, c);
  CHECK_EQ_INT(hone_engine_single.create(&self, &config), HONE_OK);
  CHECK_EQ_INT(
      hone_engine_single.factor(self, sup_matrix(n, n, a), &scaling, &info),
      HONE_OK);
  const bool underflows = !(pivot_of(n, pivots, n - 1) >= FLT_MIN);
  if (!underflows)
    CHECK_EQ_INT(info.zero_pivot, -1);
  CHECK_EQ_INT(isnan(info.growth),
               info.hopeless || (info.zero_pivot >= 0 && !info.replaced));
  hone_engine_single.destroy(self, &mem);
  free(zero);
  sup_free(one);
  sup_free(a);
  return info.hopeless;
}

/* The factorization is to stop after so many columns; WHOLE means that it does
   not stop. behind: pivots are judged one block column late, as on a device. */
static void check_columns(int64_t n, int64_t block, bool behind, shape pivots,
                          int64_t columns) {
  static const double sizes[] = {-20.0, -3.0, 0.0, 4.0, 20.0};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    shape p = pivots;
    int64_t given_up = WHOLE;
    p.at += sizes[k];
    ct_note("n %d, blocks of %d, first pivot 1e%g, fall %g, drop %g at %d",
            (int)n, (int)block, p.at, p.fall, p.drop, (int)p.from);
    for (int64_t j = 0, w; j < n && given_up == WHOLE; j += w) {
      w = HONE_MIN(block, n - j);
      if (hopeless_after(n, behind ? j : j + w, p))
        given_up = j + w;
    }
    CHECK_EQ_INT(given_up, columns);
    if (!behind && n <= 640 && (n > 512 || block < n))
      CHECK_EQ_INT(host_gives_up(n, block, p), columns != WHOLE);
  }
}

static const shape level = {.from = 1 << 20};

TEST(pivot_fall, goes_to_the_end_with_pivots_that_are_level) {
  check_columns(640, 64, false, level, WHOLE);
  check_columns(640, 640, false, level, WHOLE);
  check_columns(4000, 96, true, level, WHOLE);
  check_columns(100, 7, false, level, WHOLE);
}

/* These pivots would end 10^6.9 (10^7.1) lower: the factorization stops after
   the first block column that ends behind column 96. */
TEST(pivot_fall, gives_up_on_pivots_that_would_end_too_low) {
  check_columns(640, 64, true, (shape){.fall = -6.9, .from = 1 << 20}, WHOLE);
  check_columns(640, 64, false, (shape){.fall = -7.1, .from = 1 << 20}, 128);
  check_columns(640, 96, false, (shape){.fall = -7.1, .from = 1 << 20}, 96);
  check_columns(640, 95, false, (shape){.fall = -7.1, .from = 1 << 20}, 190);
  check_columns(640, 64, true, (shape){.fall = -7.1, .from = 1 << 20}, 192);
}

/* It stops after a twentieth of the columns at the earliest, after four fifths
   at the latest. */
TEST(pivot_fall, is_judged_neither_too_early_nor_too_late) {
  const shape steep = {.fall = -30.0, .from = 1 << 20};
  check_columns(4000, 100, false, steep, 200);
  check_columns(4001, 100, false, steep, 300);
  check_columns(640, 512, false, steep, 512); /* 0.8 of the columns */
  check_columns(640, 513, true, steep, WHOLE);
}

/* The pivots are down by 10^6.6 (the limit of 10^6.5 is 3.2e-7). Their earlier
   course does not matter. */
TEST(pivot_fall, gives_up_on_pivots_near_rounding_errors) {
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 20}, 320);
  check_columns(640, 320, false, (shape){.drop = 6.4, .from = 20}, WHOLE);
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 1}, 320);
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 320}, WHOLE);
}

/* The pivots fall in one step between the middle and the end of the columns
   done, which are 48 of 640 apart. At that rate the last pivot would be 10^7.3
   (10^8.7) lower, but from the first pivot on only 10^3.7 (10^4.3, more than
   10^4). */
TEST(pivot_fall, goes_on_where_pivots_fall_in_a_step) {
  check_columns(640, 128, false, (shape){.drop = 0.55, .from = 80}, WHOLE);
  check_columns(640, 128, false, (shape){.drop = 0.65, .from = 80}, 128);
}

/* A zero pivot has a mean of -Inf, which no limit accepts; nor is NaN
   accepted. */
TEST(pivot_fall, gives_up_on_pivots_that_are_zero_or_nan) {
  float sample[HONE_PIVOT_SAMPLE];
  for (int c = 0; c < HONE_PIVOT_SAMPLE; c++)
    sample[c] = 1.0F;
  CHECK_NEAR(hone_pivot_mean(sample), 0.0, 0.0);
  sample[7] = 0.0F;
  hone_pivot_fall fall = {.n = 640, .done = 128, .first = 1.0F};
  CHECK(!hone_pivots_hopeless(&fall));
  fall.end = hone_pivot_mean(sample);
  CHECK(fall.end < 0.0 && isinf(fall.end));
  CHECK(hone_pivots_hopeless(&fall));
  fall.end = (double)NAN;
  CHECK(hone_pivots_hopeless(&fall));
}

/* From 0.4 of the columns on the host gives up on a fall by 10^6.3. */
TEST(pivot_fall, host_is_stricter_when_it_is_late) {
  const shape much = {.fall = -6.3, .from = 1 << 20};
  const shape less = {.fall = -5.3, .from = 1 << 20};
  CHECK(!hopeless_after(640, 128, much) && !hopeless_after(640, 512, much));
  CHECK(host_gives_up(640, 64, much));
  CHECK(!host_gives_up(640, 64, less));
}

/* Where the pivots of the first part fall by 10^2.5 at their rate, they are
   judged again in the middle; a step at column 300 is then seen. */
TEST(pivot_fall, host_judges_falling_pivots_again) {
  const shape falls = {.fall = -2.5, .drop = 2.4, .from = 300};
  const shape level_first = {.drop = 2.4, .from = 300};
  CHECK(host_gives_up(640, 0, falls));
  CHECK(!host_gives_up(640, 640, falls));
  CHECK(!host_gives_up(640, 0, level_first));
}

/* The small LU is judged by fifths. A fall as steep as this leaves too few
   pivots between large and small ones for the judgement of all. */
TEST(pivot_fall, host_judges_a_small_matrix_by_parts) {
  CHECK(host_gives_up(320, 0, (shape){.fall = -36.0, .from = 1 << 20}));
  CHECK(host_gives_up(500, 0, (shape){.fall = -36.0, .from = 1 << 20}));
  CHECK(!host_gives_up(320, 0, (shape){.fall = -5.3, .from = 1 << 20}));
}

/* Pivots that fade are those of which a fourth are small and a tenth between;
   where half of them drop at once, a search for a null vector may serve. */
TEST(pivot_fall, host_gives_up_on_pivots_that_fade) {
  const shape drops = {.drop = 6.0, .from = 320};
  CHECK(host_gives_up(640, 640, (shape){.fall = -7.0, .from = 1 << 20}));
  CHECK(!host_gives_up(640, 640, (shape){.fall = -6.5, .from = 1 << 20}));
  CHECK(!host_gives_up(640, 640, drops));
  hone_pivot_counts counts = {.n = 0};
  for (int c = 0; c < 10; c++)
    hone_pivot_count(&counts, NAN, 1.0F);
  CHECK(!hone_pivots_fade(&counts));
}

/* A matrix whose pivots fade is factored in double without a certificate of
   the factors in single precision, which takes 9 passes over A or more; one
   that these factors serve is not. */
TEST(pivot_fall, certificate_that_cannot_succeed_is_not_begun) {
  enum { ORDER = 400 };
  static const double conds[] = {1e6, 1e9};
  double *a = sup_filled(ORDER * ORDER, 0.0), *b = sup_filled(ORDER, 1.0);
  double *x = sup_filled(ORDER, 0.0);
  for (int k = 0; k < 2; k++) {
    sup_rng rng = {5};
    hone_options options = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    options.deterministic = 1;
    options.threads = 1;
    sup_matrix_cond(&rng, ORDER, SUP_GEOMETRIC, conds[k], a, ORDER);
    CHECK_EQ_INT(
        hone_solve(ORDER, 1, a, ORDER, b, ORDER, x, ORDER, &options, &report),
        HONE_OK);
    CHECK_EQ_INT(report.precision, k == 0 ? 32 : 64);
    CHECK_EQ_INT(strstr(report.reason, "pivots fall too fast") != NULL, k == 1);
    if (k == 1)
      CHECK_LE(report.host_passes, 6);
  }
  sup_free(x);
  sup_free(b);
  sup_free(a);
}
