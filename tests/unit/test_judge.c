/* SPDX-License-Identifier: BSD-3-Clause */
/* When cpu_sp/lu.c gives up: a device that does nothing but remember what it
   was asked, and whose pivots are made up. Sizes are in powers of ten of the
   first pivot, which itself is of any size. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "gpu_sp/device.h"

#include <math.h>
#include <string.h>

enum { WHOLE = -1 };

/* Pivot c is 10^(at + fall c / n), 'drop' powers less from column 'from' on. */
typedef struct shape {
  double at, fall, drop;
  int64_t from;
} shape;

typedef struct maker {
  int64_t n;
  shape pivots;
  int64_t loaded, updated, paneled, finished, outcomes, abandoned;
  int pivot_status, pivots_asked, pivots_fail_at;
  int64_t zero_at;
  bool complete;
  double growth; /* of the first outcome; 1 afterwards */
  int safer_left;
} maker;

static int load(void *self, const hone_matrix *a, const hone_scaling *scaling,
                int64_t j, int64_t w) {
  maker *m = self;
  (void)a;
  (void)scaling;
  m->loaded = j + w;
  return HONE_OK;
}

static int update(void *self, int64_t j, int64_t w) {
  maker *m = self;
  m->updated = j + w;
  return j > 0 ? HONE_OK : HONE_INTERNAL; /* there is nothing to the left */
}

static int panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  maker *m = self;
  m->paneled = j + w;
  if (m->zero_at >= j && m->zero_at < j + w)
    *zero_pivot = m->zero_at;
  return HONE_OK;
}

static int finish(void *self) {
  maker *m = self;
  m->finished++;
  return HONE_OK;
}

static int pivots(void *self, int64_t j, int64_t w, float *out) {
  maker *m = self;
  if (m->pivots_asked++ == m->pivots_fail_at)
    return HONE_DEVICE_FAILED;
  CHECK(j >= 0 && j + w <= m->n);
  for (int64_t c = j; c < j + w; c++)
    out[c - j] = (float)pow(
        10.0, m->pivots.at + m->pivots.fall * (double)c / (double)m->n -
                  (c >= m->pivots.from ? m->pivots.drop : 0.0));
  return m->pivot_status;
}

static int outcome(void *self, bool complete, hone_factor_info *info) {
  maker *m = self;
  m->outcomes++;
  m->complete = complete;
  if (complete)
    info->growth = m->outcomes == 1 ? m->growth : 1.0;
  return HONE_OK;
}

static void abandon(void *self) { ((maker *)self)->abandoned++; }

static bool safer(void *self) {
  maker *m = self;
  return m->safer_left-- > 0;
}

static int factor(maker *m, bool behind, int64_t block,
                  hone_factor_info *info) {
  const hone_device device = {.name = "made up",
                              .load = load,
                              .update = update,
                              .panel = panel,
                              .finish = finish,
                              .pivots = pivots,
                              .outcome = outcome,
                              .behind = behind,
                              .abandon = abandon,
                              .safer = safer};
  hone_watch watch = {0};
  const hone_engine_config config = {
      .n = m->n, .watch = &watch, .block = block};
  const hone_matrix a = {.n = m->n};
  const hone_scaling scaling = {.used = false};
  memset(info, 0x5a, sizeof *info);
  return hone_lu(&device, m, &config, &a, &scaling, info);
}

static maker with(int64_t n, shape pivots) {
  return (maker){.n = n,
                 .pivots = pivots,
                 .pivots_fail_at = -1,
                 .zero_at = -1,
                 .growth = 1.0};
}

/* Gives up after so many columns, or WHOLE: does not. */
static void check_columns(int64_t n, int64_t block, bool behind, shape pivots,
                          int64_t columns) {
  static const double sizes[] = {-20.0, -3.0, 0.0, 4.0, 20.0};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    hone_factor_info info;
    maker m = with(n, pivots);
    m.pivots.at += sizes[k];
    ct_note("n %d, blocks of %d, first pivot 1e%g, fall %g, drop %g at %d",
            (int)n, (int)block, m.pivots.at, pivots.fall, pivots.drop,
            (int)pivots.from);
    CHECK_EQ_INT(factor(&m, behind, block, &info), HONE_OK);
    CHECK_EQ_INT(info.hopeless, columns != WHOLE);
    CHECK_EQ_INT(m.paneled, columns == WHOLE ? n : columns);
    CHECK_EQ_INT(m.loaded, m.paneled);
    CHECK_EQ_INT(m.updated, m.paneled > block ? m.paneled : 0);
    CHECK_EQ_INT(m.finished, columns == WHOLE);
    CHECK_EQ_INT(m.complete, columns == WHOLE);
    CHECK_EQ_INT(m.outcomes, 1);
    CHECK_EQ_INT(info.zero_pivot, -1);
    CHECK_EQ_INT(isnan(info.growth), columns != WHOLE);
  }
}

static const shape level = {.from = 1 << 20};

TEST(judge, goes_to_the_end_with_pivots_that_are_level) {
  check_columns(640, 64, false, level, WHOLE);
  check_columns(640, 640, false, level, WHOLE);
  check_columns(4000, 96, true, level, WHOLE);
  check_columns(100, 7, false, level, WHOLE);
}

/* They would end 10^6.9 (10^7.1) below where they are: after the first block
   column that ends behind 96 columns. */
TEST(judge, gives_up_on_pivots_that_would_end_too_low) {
  check_columns(640, 64, false, (shape){.fall = -6.9, .from = 1 << 20}, WHOLE);
  check_columns(640, 64, false, (shape){.fall = -7.1, .from = 1 << 20}, 128);
  check_columns(640, 96, false, (shape){.fall = -7.1, .from = 1 << 20}, 96);
  check_columns(640, 95, false, (shape){.fall = -7.1, .from = 1 << 20}, 190);
  check_columns(640, 64, true, (shape){.fall = -7.1, .from = 1 << 20}, 192);
}

/* At a twentieth of the columns at the earliest, at four fifths at the
   latest. */
TEST(judge, looks_neither_too_early_nor_too_late) {
  const shape steep = {.fall = -30.0, .from = 1 << 20};
  check_columns(4000, 100, false, steep, 200);
  check_columns(4001, 100, false, steep, 300);
  check_columns(640, 512, false, steep, 512); /* 0.8 of them */
  check_columns(640, 513, false, steep, WHOLE);
}

/* Down by 10^6.6 (10^6.5 is 3.2e-7), whatever they did before. */
TEST(judge, gives_up_on_pivots_down_in_the_rounding) {
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 20}, 320);
  check_columns(640, 320, false, (shape){.drop = 6.4, .from = 20}, WHOLE);
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 1}, 320);
  check_columns(640, 320, false, (shape){.drop = 6.6, .from = 320}, WHOLE);
}

/* A step between the middle and the end of the columns done, which are 48 of
   640 apart: at that rate the last pivot would be 10^7.3 (10^8.7) lower, but
   from the first on it would only be 10^3.7 (10^4.3, more than 10^4). */
TEST(judge, goes_on_where_pivots_fall_in_a_step) {
  check_columns(640, 128, false, (shape){.drop = 0.55, .from = 80}, WHOLE);
  check_columns(640, 128, false, (shape){.drop = 0.65, .from = 80}, 128);
}

TEST(judge, stops_at_a_zero_pivot_and_where_the_device_fails) {
  hone_factor_info info;
  maker m = with(640, level);
  m.zero_at = 130;
  CHECK_EQ_INT(factor(&m, false, 64, &info), HONE_OK);
  CHECK_EQ_INT(info.zero_pivot, 130);
  CHECK_EQ_INT(m.paneled, 192);
  CHECK_EQ_INT(m.finished, 0);
  CHECK_EQ_INT(m.complete, 0);
  CHECK_EQ_INT(m.abandoned, 0);
  CHECK(isnan(info.growth));
  for (int fails = 0; fails < 4; fails++) {
    m = with(640, level);
    m.pivots_fail_at = fails; /* each of the four questions of a judgement */
    CHECK_EQ_INT(factor(&m, false, 128, &info), HONE_DEVICE_FAILED);
    CHECK_EQ_INT(m.paneled, 128);
    CHECK_EQ_INT(m.abandoned, 1);
    CHECK_EQ_INT(m.outcomes, 0);
    CHECK_EQ_INT(m.pivots_asked, fails + 1);
  }
}

/* Again as long as there is a safer way, where the factors are not finite. */
TEST(judge, begins_again_the_safer_way) {
  for (int ways = 0; ways < 2; ways++)
    for (int finite = 0; finite < 2; finite++) {
      hone_factor_info info;
      maker m = with(640, level);
      m.growth = finite ? 2.0 : (double)INFINITY;
      m.safer_left = ways;
      ct_note("ways %d, finite %d", ways, finite);
      CHECK_EQ_INT(factor(&m, false, 64, &info), HONE_OK);
      CHECK_EQ_INT(m.outcomes, !finite && ways ? 2 : 1);
      CHECK_NEAR(info.growth, finite ? 2.0 : (ways ? 1.0 : (double)INFINITY),
                 0.0);
    }
}
