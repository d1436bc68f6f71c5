/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches on a CUDA device, true or emulated: every answer is that of
   hone_solve, wherever the arrays lie, and whatever call of CUDA fails. */
#include "tests/gallery/either.h"
#include "tests/unit/batch_away.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t up_to(const bat *t) { return t->batch.n > 0 ? 1024 : 0; }

static bat make(int parts, int64_t count, int64_t n, int64_t nrhs) {
  bat t = bat_make(parts, count, n, nrhs);
  t.options.device = HONE_DEVICE_CUDA;
  ct_note("parts %d, n %d, nrhs %d, count %d", parts, (int)n, (int)nrhs,
          (int)count);
  return t;
}

/* The result of system k is that of hone_solve on the CPU. */
static void check_alone(bat *t, int64_t k) {
  t->options.device = HONE_DEVICE_CPU;
  bat_check_alone(t, k);
  t->options.device = HONE_DEVICE_CUDA;
}

/* Every system must be accepted, and all of them on the device. */
static void check_solved(bat *t) {
  CHECK_EQ_INT(bat_solve(t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(t), t->batch.n <= up_to(t) ? t->batch.count : 0);
}

/* Orders at which the shapes of thread blocks are full, or have a rest. */
static void solve_orders(int parts) {
  static const int64_t orders[] = {1,  2,  7,  8,  9,  15, 16, 17,  24,  31,
                                   32, 33, 48, 63, 64, 65, 96, 127, 128, 129};
  for (int o = 0; o < 20; o++)
    for (int64_t nrhs = 1; nrhs <= 3; nrhs += 2) {
      bat t = make(parts, 5, orders[o], nrhs);
      check_solved(&t);
      for (int64_t k = 0; k < 5; k += 2)
        check_alone(&t, k);
      bat_discard(&t);
    }
}

TEST(batch_device, solves_every_order) {
  NEED_DEVICE();
  solve_orders(1);
}

TEST(batch_device, solves_every_order_of_complex_systems) {
  NEED_DEVICE();
  solve_orders(2);
}

TEST(batch_device, takes_every_layout_and_transposition) {
  NEED_DEVICE();
  static const int64_t of[] = {3, 8, 33};
  for (int way = 0; way < 12; way++)
    for (int o = 0; o < 3; o++) {
      bat t = bat_make_padded(1 + way / 6, 4, of[o], 2, 3 * (way % 2));
      t.options.device = HONE_DEVICE_CUDA;
      t.options.trans = way % 3;
      t.options.layout = way / 3 % 2;
      ct_note("parts %d, trans %d, layout %d, n %d", t.parts, t.options.trans,
              t.options.layout, (int)of[o]);
      check_solved(&t);
      for (int64_t k = 0; k < 4; k++)
        check_alone(&t, k);
      bat_discard(&t);
    }
}

/* Rows and columns that differ by powers of two from 2^-40 to 2^40. */
TEST(batch_device, solves_strongly_scaled_systems) {
  NEED_DEVICE();
  for (int way = 0; way < 4; way++) {
    bat t = make(1 + way % 2, 5, way < 2 ? 7 : 20, 1);
    const int64_t n = t.batch.n;
    for (int64_t k = 0; k < 5; k++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          for (int p = 0; p < t.parts; p++) {
            double *v = bat_entry(&t, k, i, j) + p;
            *v = ldexp(*v,
                       (int)((i * 37 + k) % 81 - 40) + (int)((j * 29 + k) % 9));
          }
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    for (int64_t k = 0; k < 5; k++)
      check_alone(&t, k);
    bat_discard(&t);
  }
}

/* More systems than one portion has. */
TEST(batch_device, solves_by_portions) {
  NEED_DEVICE();
  bat t = make(1, 330, 64, 1);
  check_solved(&t);
  for (int64_t k = 0; k < 330; k += 47)
    check_alone(&t, k);
  bat_discard(&t);
}

/* Batches in host memory stay there, unless the device is asked for. */
TEST(batch_device, is_not_chosen_for_arrays_in_host_memory) {
  NEED_DEVICE();
  bat t = make(1, 9, 40, 1);
  t.options.device = HONE_DEVICE_AUTO;
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), 0);
  bat_discard(&t);
}

TEST(batch_device, sorts_systems_by_their_orders) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    int64_t orders[12];
    bat t = make(parts, 12, 20, 2);
    for (int64_t k = 0; k < 12; k++)
      orders[k] = k % 5 == 4 ? 0 : 20 - k % 3 * 7;
    t.batch.orders = orders;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 10);
    for (int64_t k = 0; k < 12; k++)
      check_alone(&t, k);
    bat_discard(&t);
  }
}

/* ---- Systems that fail -------------------------------------------------- */

static void spoil(bat *t, int64_t k) {
  const size_t column = (size_t)(t->batch.n * t->parts) * sizeof(double);
  if (k == 1)
    *bat_entry(t, k, 2, 3) = (double)NAN;
  if (k == 3)
    memset(bat_entry(t, k, 0, 2), 0, column);
  if (k == 5)
    bat_b(t, k)[1] = HUGE_VAL;
  if (k == 6)
    memcpy(bat_entry(t, k, 0, 1), bat_entry(t, k, 0, 4), column);
  if (k == 8)
    memset(bat_b(t, k), 0, column);
}

TEST(batch_device, leaves_the_neighbours_of_bad_systems_alone) {
  NEED_DEVICE();
  for (int way = 0; way < 6; way++) {
    bat t = make(1 + way % 2, 10, way < 2 ? 6 : way < 4 ? 12 : 40, 1);
    const size_t bytes = (size_t)bat_doubles(&t) * sizeof(double);
    const int64_t each = t.batch.n * t.parts;
    t.options.deterministic = 1;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    double *good = malloc(bytes);
    memcpy(good, t.x, bytes);
    for (int64_t k = 0; k < 10; k++)
      spoil(&t, k);
    CHECK_EQ_INT(bat_solve(&t), HONE_NOT_FINITE_A);
    for (int64_t k = 0; k < 10; k++) {
      const bool bad = k == 1 || k == 3 || k == 5 || k == 6;
      CHECK_EQ_INT(t.results[k].status < 0 || t.results[k].status > 0, bad);
      check_alone(&t, k);
      if (!bad && k != 8)
        CHECK_MEM_EQ(bat_x(&t, k), good + k * each,
                     (size_t)each * sizeof *good);
    }
    free(good);
    bat_discard(&t);
  }
}

/* Returns how many calls of CUDA that may fail a batch makes, of which every
   second system is singular, or none is. */
static int64_t calls_of(int parts, bool singular) {
  const int64_t many = 1000000;
  bat t = make(parts, 24, 8, 1);
  for (int64_t k = 0; singular && k < 24; k += 2) /* two columns are alike */
    memcpy(bat_a(&t, k), bat_a(&t, k) + t.batch.lda * t.parts,
           (size_t)(t.batch.n * t.parts) * sizeof(double));
  (void)bat_call(&t); /* what the process keeps is made */
  failing_calls.fail_at = many;
  (void)bat_call(&t);
  const int64_t calls = many - failing_calls.fail_at;
  failing_calls.fail_at = 0;
  for (int64_t k = 0; k < 24; k++)
    CHECK_EQ_INT(t.results[k].status == HONE_OK, !singular || k % 2 == 1);
  bat_discard(&t);
  return calls;
}

/* Systems that a device leaves do not go there once more, one by one. */
TEST(batch_device, many_singular_systems_cost_little) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    const int64_t calls = calls_of(parts, false);
    CHECK(calls > 0);
    CHECK_LE((double)calls_of(parts, true), (double)calls);
  }
}

/* Four parameters of every family; an emulated device takes two of them. */
static void solve_gallery(int parts, int64_t n) {
  const int64_t count = sup_emulated() ? 2 : 4;
  reference r = {0};
  int64_t served = 0, systems = 0;
  for (int kind = 0; kind < either_families(parts); kind++) {
    const gallery_family *f = &gallery_families[kind];
    if (n < f->least_n || n > f->most_n)
      continue;
    bat t = make(parts, count, n, 2);
    for (int64_t k = 0; k < count; k++) {
      const double place = (double)(count == 4 ? k : 2 * k + kind % 2) / 3.0;
      const double parameter = f->low + (f->high - f->low) * place;
      either_make(f, parts, n, parameter, (uint64_t)(k + kind), bat_a(&t, k),
                  n);
      for (int64_t c = 0; c < 2; c++)
        either_rhs((int)((kind + k + c) % gallery_rhs_count), parts, n,
                   bat_a(&t, k), n, (uint64_t)k, bat_b(&t, k) + c * n * parts);
    }
    ct_note("%s, parts %d, n %d", f->name, parts, (int)n);
    (void)bat_call(&t);
    for (int64_t k = 0; k < count; k++)
      bat_check_claims(&t, k, true, &r);
    served += bat_on_device(&t);
    systems += count;
    bat_discard(&t);
  }
  CHECK(served >= systems / 10);
  reference_free(&r);
}

TEST(batch_device, claims_nothing_wrong_of_systems_of_the_gallery) {
  NEED_DEVICE();
  solve_gallery(1, 6);
  solve_gallery(1, 20);
  solve_gallery(2, 7);
}

/* One condition for each system, from 1 to 1e17. With one correction allowed
   the first x must not be taken for a good one. */
TEST(batch_device, accepts_systems_up_to_a_condition) {
  NEED_DEVICE();
  reference r = {0};
  for (int way = 0; way < 8; way++) {
    const int64_t n = way / 4 == 0 ? 6 : 24;
    bat t = make(1 + way % 2, 18, n, 1);
    const size_t bytes = (size_t)(n * n * t.parts) * sizeof(double);
    t.options.max_iterations = way / 2 % 2;
    for (int64_t k = 0; k < 18; k++) {
      sys s = sys_make_of(t.parts, n, 1);
      sys_set_cond(&s, (uint64_t)(k + 1), 3, pow(10.0, (double)k));
      memcpy(bat_a(&t, k), s.a, bytes);
      sys_discard(&s);
    }
    bat_check(&t, bat_call(&t));
    CHECK_GE(bat_on_device(&t), t.options.max_iterations == 1 ? 4 : 10);
    CHECK_LE(bat_on_device(&t), 15);
    for (int64_t k = 0; k < 18; k++) {
      CHECK_EQ_INT(t.results[k].status < 0 || t.results[k].status > 0, k > 15);
      bat_check_claims(&t, k, true, &r);
    }
    bat_discard(&t);
  }
  reference_free(&r);
}

/* ---- Determinants ------------------------------------------------------- */

TEST(batch_device, finds_determinants) {
  NEED_DEVICE();
  for (int way = 0; way < 20; way++) {
    static const int64_t of[] = {1, 6, 13, 40, 99};
    bat t = make(1 + way % 2, 6, of[way / 4], 1);
    hone_batch_result there[6];
    t.batch.determinants = 1;
    if (way / 2 % 2 == 1) {
      t.options.structure = HONE_STRUCTURE_SPD;
      for (int64_t k = 0; k < 6; k++)
        bat_make_definite(&t, k, 1.0);
    }
    for (int64_t j = 0; way % 4 == 0 && j < t.batch.n; j++)
      *bat_entry(&t, 2, 0, j) *= 1024.0; /* one that is scaled */
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 6);
    memcpy(there, t.results, sizeof there);
    t.options.device = HONE_DEVICE_CPU;
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    for (int64_t k = 0; k < 6; k++) {
      const hone_batch_result *v = &there[k], *w = &t.results[k];
      CHECK_NEAR(v->log_abs_det, w->log_abs_det,
                 1e-12 * (1.0 + fabs(w->log_abs_det)));
      CHECK_NEAR(v->det_re, w->det_re, 1e-12);
      CHECK_NEAR(v->det_im, w->det_im, 1e-12);
    }
    bat_discard(&t);
  }
}

/* ---- Arrays in device memory -------------------------------------------- */

TEST(batch_device, takes_arrays_in_device_memory) {
  NEED_DEVICE();
  for (int way = 0; way < 32; way++) {
    const bool in_place = way / 2 % 2, lists = way / 4 % 2;
    device_begin();
    bat t = bat_make(1 + way % 2, 7, way / 8 % 2 ? 21 : 5, 1 + way / 16 * 2);
    ct_note("parts %d, in place %d, lists %d, n %d, nrhs %d", t.parts, in_place,
            lists, (int)t.batch.n, (int)t.batch.nrhs);
    away w = away_send(&t, in_place);
    if (lists)
      away_use_lists(&w);
    t.options.device = lists ? HONE_DEVICE_CUDA : HONE_DEVICE_AUTO;
    w.batch.determinants = 1;
    if (way / 8 % 2 == 0) /* one is solved by itself */
      *bat_entry(&t, 4, 0, 0) = 1e304;
    device_put(w.a, t.a,
               (size_t)(7 * t.batch.n * t.batch.n * t.parts) * sizeof(double));
    CHECK_EQ_INT(bat_call_with(t.parts, (const hone_batch *)&w.batch,
                               &t.options, t.results, &t.report),
                 HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), way / 8 % 2 ? 7 : 6);
    for (int64_t k = 0; k < 7; k++)
      CHECK(isfinite(t.results[k].log_abs_det));
    device_get(t.x, w.x, (size_t)bat_doubles(&t) * sizeof(double));
    for (int64_t k = 0; k < 7; k++)
      for (int64_t c = 0; c < t.batch.nrhs; c++)
        CHECK_LE(bat_omega(&t, k, c, bat_x(&t, k) + c * t.batch.ldx * t.parts),
                 SUP_LIMIT);
    away_discard(&w);
    bat_discard(&t);
    device_end();
  }
}

/* ---- Failures ----------------------------------------------------------- */

/* Whichever call of CUDA fails, each x is right or is not there. */
TEST(batch_device, survives_every_failed_call) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 6, 9, 2);
    int failed = 0;
    t.options.device = HONE_DEVICE_CUDA;
    (void)hone_release_kept();
    for (int64_t at = 1; at < 200; at++) {
      failing_calls.fail_at = at;
      const int st = bat_call(&t);
      const bool over = failing_calls.fail_at > 0;
      failing_calls.fail_at = 0;
      ct_note("parts %d, call %d", parts, (int)at);
      bat_check(&t, st);
      failed += bat_on_device(&t) < 6;
      if (over)
        break;
      if (at % 2 == 0)
        (void)hone_release_kept();
    }
    CHECK_GE(failed, 8);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 6);
    bat_discard(&t);
  }
}

/* So many small systems that their results, not their arrays, fill a slot,
   which is then not to be written beyond its end. Several threads copy them. */
TEST(batch_device, copies_the_results_of_a_whole_slot) {
  NEED_DEVICE();
  enum { COUNT = 64000 };
  device_begin();
  bat t = bat_make(1, COUNT, 1, 1);
  t.options.device = HONE_DEVICE_AUTO;
  t.options.columns = NULL;
  wrapped_trial.copier = 1 << 20;
  away w = away_send(&t, false);
  CHECK_EQ_INT(bat_call_with(1, &w.batch, &t.options, t.results, &t.report),
               HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), COUNT);
  device_get(t.x, w.x, COUNT * sizeof(double));
  int64_t wrong = 0;
  for (int64_t k = 0; k < COUNT; k++)
    wrong += !(t.results[k].status == HONE_OK &&
               bat_omega(&t, k, 0, bat_x(&t, k)) <= SUP_LIMIT);
  CHECK_EQ_INT(wrong, 0);
  CHECK_LE(1, hone_release_kept()); /* the slot, whose end is as it was */
  wrapped_trial = (hone_trial){0};
  away_discard(&w);
  bat_discard(&t);
  device_end();
}

/* In way 0 the host makes the results, since those of right-hand sides are
   wanted; in ways 1 and 2 the device does, by portions; in way 2 a system is
   left. */
static void fail_calls_in_place(int way) {
  bat t = bat_make(1, 6, 9, 1);
  int refused = 0, solved = 0;
  t.options.device = HONE_DEVICE_AUTO;
  if (way > 0) {
    t.options.columns = NULL;
    wrapped_trial.portion = 2;
    wrapped_trial.copier = 100;
  }
  if (way == 2)
    *bat_entry(&t, 3, 0, 0) = 1e304;
  (void)hone_release_kept();
  for (int64_t at = 1; at < 200; at++) {
    device_begin();
    away w = away_send(&t, true);
    failing_calls.fail_at = at;
    (void)bat_call_with(1, &w.batch, &t.options, t.results, &t.report);
    const bool over = failing_calls.fail_at > 0;
    failing_calls.fail_at = 0;
    ct_note("way %d, call %d", way, (int)at);
    device_get(t.x, w.x, (size_t)bat_doubles(&t) * sizeof(double));
    for (int64_t k = 0; k < 6; k++) {
      refused += t.results[k].status < 0;
      solved += t.results[k].status == HONE_OK;
      if (t.results[k].status == HONE_OK)
        CHECK_LE(bat_omega(&t, k, 0, bat_x(&t, k)), SUP_LIMIT);
    }
    away_discard(&w);
    device_end();
    if (over)
      break;
  }
  CHECK_GE(refused, way > 0 ? 2 : 6);
  CHECK_GE(solved, 6);
  wrapped_trial = (hone_trial){0};
  bat_discard(&t);
}

/* Does so with x in the place of b in device memory, where a b that is lost
   must not be solved for again. */
TEST(batch_device, survives_every_failed_call_in_place) {
  NEED_FAKE();
  NEED_DEVICE();
  for (int way = 0; way < 3; way++)
    fail_calls_in_place(way);
}

/* Five portions, of which three are under way at a time. Where a wait fails, a
   portion that was listed but not sent finds the results of an earlier one in
   its slot, which must not be taken for its own. */
TEST(batch_device, survives_every_failed_call_between_portions) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 10, 5, 1);
    int some = 0;
    t.options.device = HONE_DEVICE_CUDA;
    wrapped_trial.portion = 2;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 10);
    for (int64_t at = 1; at < 200; at++) {
      failing_calls.fail_at = at;
      const int st = bat_call(&t);
      const bool over = failing_calls.fail_at > 0;
      failing_calls.fail_at = 0;
      ct_note("parts %d, call %d", parts, (int)at);
      bat_check(&t, st);
      some += bat_on_device(&t) > 0 && bat_on_device(&t) < 10;
      if (over)
        break;
    }
    wrapped_trial = (hone_trial){0};
    CHECK_GE(some, 4); /* a call failed when others had succeeded */
    bat_discard(&t);
  }
}

/* Without room for portions the CPU solves. */
TEST(batch_device, needs_no_device_memory_to_be_allowed) {
  NEED_DEVICE();
  bat t = make(1, 6, 9, 1);
  t.options.memory_limit_bytes = 1 << 20;
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), 0);
  bat_discard(&t);
}

/* A process keeps the memory of portions, and gives it back. */
TEST(batch_device, keeps_memory_until_it_is_released) {
  NEED_DEVICE();
  bat t = make(1, 6, 9, 1);
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_GE(hone_release_kept(), 1 << 20);
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), 6);
  bat_discard(&t);
}
