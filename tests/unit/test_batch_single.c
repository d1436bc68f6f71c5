/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches whose matrices a CUDA device inverts in single precision first: every
   answer is as good as with an inverse in double, which solves what the first
   one does not serve for. */
#include "tests/gallery/either.h"
#include "tests/unit/batch_away.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bat make(int parts, int64_t count, int64_t n, int64_t nrhs) {
  bat t = bat_make(parts, count, n, nrhs);
  t.options.device = HONE_DEVICE_CUDA;
  ct_note("parts %d, n %d, nrhs %d, count %d", parts, (int)n, (int)nrhs,
          (int)count);
  return t;
}

static int64_t in_single(const bat *t) {
  int64_t count = 0;
  for (int64_t k = 0; k < t->batch.count; k++)
    count += t->results[k].precision == 32;
  return count;
}

/* Calls with single precision allowed, or not. */
static int call(bat *t, bool single) {
  wrapped_trial.single = single;
  const int st = bat_call(t);
  wrapped_trial = (hone_trial){0};
  return st;
}

static void check_alone(bat *t, int64_t k) {
  t->options.device = HONE_DEVICE_CPU;
  bat_check_alone(t, k);
  t->options.device = HONE_DEVICE_CUDA;
}

static void solve_orders(int parts, const int64_t *orders, int count) {
  for (int o = 0; o < count; o++)
    for (int64_t nrhs = 1; nrhs <= 2; nrhs++) {
      bat t = make(parts, 5, orders[o], nrhs);
      const int st = call(&t, true);
      CHECK_EQ_INT(st, HONE_OK);
      bat_check(&t, st);
      CHECK_EQ_INT(bat_on_device(&t), 5);
      CHECK_EQ_INT(in_single(&t), 5);
      CHECK_EQ_INT(t.report.precision, 32);
      CHECK_EQ_INT(t.columns[0].precision, 32);
      for (int64_t k = 0; k < 5; k += 2)
        check_alone(&t, k);
      bat_discard(&t);
    }
}

TEST(batch_single, solves_every_order) {
  NEED_DEVICE();
  static const int64_t orders[] = {17, 24, 31, 32,  33,  48, 63,
                                   64, 65, 96, 127, 128, 97};
  solve_orders(1, orders, 13);
}

TEST(batch_single, solves_every_order_of_complex_systems) {
  NEED_DEVICE();
  static const int64_t orders[] = {17, 31, 32, 33, 48, 63, 64};
  solve_orders(2, orders, 7);
}

/* One condition for each system, from 1 to 1e17: single precision serves up to
   1e4 at least and never beyond 1e9, double up to 1e13. */
TEST(batch_single, serves_up_to_a_condition) {
  NEED_DEVICE();
  reference r = {0};
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 18, 24, 1);
    const size_t bytes = (size_t)(24 * 24 * parts) * sizeof(double);
    for (int64_t k = 0; k < 18; k++) {
      sys s = sys_make_of(parts, 24, 1);
      sys_set_cond(&s, (uint64_t)(k + 1), 3, pow(10.0, (double)k));
      memcpy(bat_a(&t, k), s.a, bytes);
      sys_discard(&s);
    }
    bat_check(&t, call(&t, true));
    for (int64_t k = 0; k < 18; k++) {
      ct_note("parts %d, condition 1e%d", parts, (int)k);
      const int precision = t.results[k].precision;
      CHECK(k > 4 || precision == 32);
      CHECK(k < 9 || precision != 32);
      CHECK_EQ_INT(t.results[k].status < 0 || t.results[k].status > 0, k > 15);
      bat_check_claims(&t, k, true, &r);
    }
    CHECK_GE(bat_on_device(&t), 10);
    bat_discard(&t);
  }
  reference_free(&r);
}

/* Two parameters of every family. */
static void solve_gallery(int parts, int64_t n) {
  reference r = {0};
  int64_t served = 0, systems = 0;
  for (int kind = 0; kind < either_families(parts); kind++) {
    const gallery_family *f = &gallery_families[kind];
    if (n < f->least_n || n > f->most_n)
      continue;
    bat t = make(parts, 2, n, 2);
    for (int64_t k = 0; k < 2; k++) {
      const double place = (double)(2 * k + kind % 2) / 3.0;
      const double parameter = f->low + (f->high - f->low) * place;
      either_make(f, parts, n, parameter, (uint64_t)(k + kind), bat_a(&t, k),
                  n);
      for (int64_t c = 0; c < 2; c++)
        either_rhs((int)((kind + k + c) % gallery_rhs_count), parts, n,
                   bat_a(&t, k), n, (uint64_t)k, bat_b(&t, k) + c * n * parts);
    }
    ct_note("%s, parts %d, n %d", f->name, parts, (int)n);
    (void)call(&t, true);
    for (int64_t k = 0; k < 2; k++)
      bat_check_claims(&t, k, true, &r);
    served += in_single(&t);
    systems += 2;
    bat_discard(&t);
  }
  CHECK(served >= systems / 20);
  reference_free(&r);
}

TEST(batch_single, claims_nothing_wrong_of_systems_of_the_gallery) {
  NEED_DEVICE();
  solve_gallery(1, 20);
  solve_gallery(2, 18);
}

/* Entries that single precision does not have, scaled ones among them, and
   systems that are wrong, are for double, or for hone_solve. */
static void spoil(bat *t, int64_t k) {
  const int64_t n = t->batch.n;
  const size_t column = (size_t)(n * t->parts) * sizeof(double);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      for (int p = 0; p < t->parts; p++) {
        double *v = bat_entry(t, k, i, j) + p;
        if (k == 1)
          *v *= 0x1p200;
        if (k == 2)
          *v *= i % 2 ? 0x1p-180 : 1.0;
        if (k == 4)
          *v = ldexp(*v, (int)(i * 7 % 61 - 30));
      }
  if (k == 3)
    *bat_entry(t, k, 2, 3) = (double)NAN;
  if (k == 5)
    memcpy(bat_entry(t, k, 0, 1), bat_entry(t, k, 0, 4), column);
  if (k == 7)
    bat_b(t, k)[1] = HUGE_VAL;
}

TEST(batch_single, leaves_the_neighbours_of_other_systems_alone) {
  NEED_DEVICE();
  for (int way = 0; way < 6; way++) {
    bat t = make(1 + way % 2, 9, way < 2 ? 20 : way < 4 ? 40 : 60, 1);
    for (int64_t k = 0; k < 9; k++)
      spoil(&t, k);
    const int st = call(&t, true);
    CHECK_EQ_INT(st, HONE_NOT_FINITE_A);
    bat_check(&t, st);
    for (int64_t k = 0; k < 9; k++) {
      const bool bad = k == 3 || k == 5 || k == 7;
      ct_note("way %d, system %d", way, (int)k);
      CHECK_EQ_INT(t.results[k].status < 0 || t.results[k].status > 0, bad);
      CHECK(t.results[k].precision == 32 || bad || k == 1 || k == 2);
      CHECK(t.results[k].precision == 64 || (k != 1 && k != 2));
      check_alone(&t, k);
    }
    bat_discard(&t);
  }
}

/* Who wants determinants, or factors in double, gets no others. */
TEST(batch_single, is_not_for_determinants) {
  NEED_DEVICE();
  for (int way = 0; way < 2; way++) {
    bat t = make(1, 4, 40, 1);
    t.batch.determinants = way == 0;
    if (way == 1)
      t.options.factor_precision = HONE_FACTOR_DOUBLE;
    CHECK_EQ_INT(call(&t, true), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 4);
    CHECK_EQ_INT(in_single(&t), 0);
    bat_discard(&t);
  }
}

/* x in the place of b, which the inverse in double still needs where the one
   in single precision did not serve. */
TEST(batch_single, keeps_b_for_the_second_try) {
  NEED_DEVICE();
  for (int64_t nrhs = 1; nrhs <= 2; nrhs++) {
    device_begin();
    bat t = bat_make(1, 6, 40, nrhs);
    for (int64_t k = 0; k < 6; k += 2)
      spoil(&t, k);
    away w = away_send(&t, true);
    t.options.device = HONE_DEVICE_AUTO;
    t.options.columns = NULL;
    wrapped_trial.single = 1;
    CHECK_EQ_INT(bat_call_with(1, &w.batch, &t.options, t.results, &t.report),
                 HONE_OK);
    wrapped_trial = (hone_trial){0};
    CHECK_EQ_INT(bat_on_device(&t), 6);
    CHECK_EQ_INT(in_single(&t), 5);
    device_get(t.x, w.x, (size_t)bat_doubles(&t) * sizeof(double));
    for (int64_t k = 0; k < 6; k++)
      for (int64_t c = 0; c < nrhs; c++)
        CHECK_LE(bat_omega(&t, k, c, bat_x(&t, k) + c * t.batch.ldx),
                 SUP_LIMIT);
    away_discard(&w);
    bat_discard(&t);
    device_end();
  }
}

/* The report of a quiet call says which factors there were. */
TEST(batch_single, is_told_of_by_results_on_the_device) {
  NEED_DEVICE();
  device_begin();
  bat t = bat_make(1, 5, 24, 1);
  away w = away_send(&t, false);
  double *there = device_alloc(5 * sizeof *t.results / sizeof(double));
  t.options.device = HONE_DEVICE_AUTO;
  t.options.columns = NULL;
  wrapped_trial.single = 1;
  CHECK_EQ_INT(bat_call_with(1, &w.batch, &t.options,
                             (hone_batch_result *)(void *)there, &t.report),
               HONE_OK);
  wrapped_trial = (hone_trial){0};
  CHECK_EQ_INT(t.report.precision, 32);
  device_get(t.results, there, 5 * sizeof *t.results);
  CHECK_EQ_INT(in_single(&t), 5);
  device_free(there);
  away_discard(&w);
  bat_discard(&t);
  device_end();
}
