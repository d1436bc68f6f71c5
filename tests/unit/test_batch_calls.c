/* SPDX-License-Identifier: BSD-3-Clause */
/* The work that a batch on a CUDA device, true or emulated, costs the host: how
   often it asks the driver and calls CUDA, and how threads share the results.
 */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/wrapped.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1500, LISTED = 50 };

/* ---- Calls -------------------------------------------------------------- */

/* A batch whose arrays lie on the device, by strides or by lists. */
typedef struct away {
  bat t;
  hone_batch batch;
  double *a, *b, *x;
  const double *a_list[LISTED], *b_list[LISTED];
  double *x_list[LISTED];
} away;

static void send(away *w, int64_t count, int64_t n, bool lists) {
  w->t = bat_make(1, count, n, 1);
  w->batch = w->t.batch;
  w->batch.a = w->a = on_device(w->t.a, count * n * n);
  w->batch.b = w->b = on_device(w->t.b, count * n);
  w->batch.x = w->x = device_alloc(count * n);
  for (int64_t k = 0; k < count && lists; k++) {
    w->a_list[k] = w->a + k * n * n;
    w->b_list[k] = w->b + k * n;
    w->x_list[k] = w->x + k * n;
  }
  if (lists) {
    w->batch.a_list = w->a_list;
    w->batch.b_list = w->b_list;
    w->batch.x_list = w->x_list;
  }
  w->t.options.device = HONE_DEVICE_AUTO;
}

/* Solves all systems on the device. */
static void solve(away *w) {
  CHECK_EQ_INT(
      bat_call_with(1, &w->batch, &w->t.options, w->t.results, &w->t.report),
      HONE_OK);
  CHECK_EQ_INT(bat_on_device(&w->t), w->batch.count);
}

static void discard(away *w) {
  device_free(w->a);
  device_free(w->b);
  device_free(w->x);
  bat_discard(&w->t);
}

/* The calls of CUDA of a process that has solved such a batch before. */
static int64_t calls_for(int64_t count) {
  away w = {.a = NULL};
  send(&w, count, 3, false);
  solve(&w);
  const int64_t before = failing_calls.made;
  solve(&w);
  const int64_t made = failing_calls.made - before;
  discard(&w);
  return made;
}

TEST(batch_calls, are_few_however_many_systems_there_are) {
  NEED_DEVICE();
  device_begin();
  const int64_t calls = calls_for(2);
  CHECK_LE(calls, 8);
  CHECK_EQ_INT(calls_for(600), calls);
  device_end();
}

/* Three arrays, results and columns are five questions. */
TEST(batch_calls, ask_the_driver_once_for_an_array) {
  NEED_FAKE();
  NEED_DEVICE();
  for (int lists = 0; lists <= 1; lists++) {
    device_begin();
    away w = {.a = NULL};
    send(&w, LISTED, 3, lists);
    fake.questions = 0;
    solve(&w);
    CHECK_EQ_INT(fake.questions, 5);
    discard(&w);
    device_end();
  }
}

/* A list may lead to arrays of the host as well: those systems are solved in
   another way. */
TEST(batch_calls, see_which_of_listed_arrays_lie_elsewhere) {
  NEED_DEVICE();
  device_begin();
  away w = {.a = NULL};
  send(&w, LISTED, 3, true);
  for (int64_t k = 1; k < LISTED; k += 7)
    w.a_list[k] = bat_a(&w.t, k);
  CHECK_EQ_INT(
      bat_call_with(1, &w.batch, &w.t.options, w.t.results, &w.t.report),
      HONE_OK);
  CHECK_EQ_INT(bat_on_device(&w.t), LISTED - 7);
  device_get(w.t.x, w.x, (size_t)bat_doubles(&w.t) * sizeof(double));
  for (int64_t k = 0; k < LISTED; k++)
    CHECK_LE(bat_omega(&w.t, k, 0, bat_x(&w.t, k)), SUP_LIMIT);
  discard(&w);
  device_end();
}

/* Where the first and the last system lie in host memory, nobody asks for those
   between them. */
TEST(batch_calls, do_not_ask_for_every_array_in_host_memory) {
  NEED_FAKE();
  NEED_DEVICE();
  device_begin();
  bat t = bat_make(1, 200, 3, 1);
  t.options.device = HONE_DEVICE_AUTO;
  fake.questions = 0;
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_EQ_INT(bat_in_blocks(&t), 200);
  CHECK_LE(fake.questions, 8);
  bat_discard(&t);
  device_end();
}

/* ---- Results ------------------------------------------------------------ */

/* Threads share the results of one portion, or of several that end together;
   some systems are for nobody. */
TEST(batch_calls, let_threads_share_results) {
  NEED_DEVICE();
  for (int64_t portion = 0; portion <= 600; portion += 600) {
    bat t = bat_make(1, MANY, 6, 1);
    t.options.device = HONE_DEVICE_CUDA;
    t.options.threads = 4;
    for (int64_t k = 100; k < MANY; k += 400)
      *bat_entry(&t, k, 0, 0) = 1e304; /* it is solved by itself */
    wrapped_trial.portion = portion;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), MANY - 4);
    for (int64_t k = 0; k < MANY; k += 100) {
      t.options.device = HONE_DEVICE_CPU;
      bat_check_alone(&t, k);
    }
    wrapped_trial = (hone_trial){0};
    bat_discard(&t);
  }
}

/* The report of a call of which a device has solved everything is made without
   the results: it is that of the results all the same. */
TEST(batch_calls, sum_up_what_the_device_has_solved) {
  NEED_DEVICE();
  for (int64_t portion = 0; portion <= 600; portion += 600) {
    bat t = bat_make(1, MANY, 6, 1);
    t.options.device = HONE_DEVICE_CUDA;
    t.options.threads = 4;
    wrapped_trial.portion = portion;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), MANY);
    hone_batch_result worst = t.results[0];
    for (int64_t k = 1; k < MANY; k++) {
      const hone_batch_result *r = &t.results[k];
      worst.rcond = r->rcond < worst.rcond ? r->rcond : worst.rcond;
      worst.digits = r->digits < worst.digits ? r->digits : worst.digits;
      if (r->forward_error > worst.forward_error)
        worst.forward_error = r->forward_error;
      if (r->backward_error > worst.backward_error)
        worst.backward_error = r->backward_error;
    }
    CHECK(t.report.rcond == worst.rcond);
    CHECK(t.report.forward_error == worst.forward_error);
    CHECK(t.report.backward_error == worst.backward_error);
    CHECK_EQ_INT(t.report.digits, worst.digits);
    CHECK_EQ_INT(t.report.precision, 64);
    CHECK_EQ_INT(t.report.accepted, MANY);
    wrapped_trial = (hone_trial){0};
    bat_discard(&t);
  }
}

typedef struct stopper {
  int64_t left; /* calls until it stops the batch */
} stopper;

static int stop(void *user, const hone_progress *event) {
  stopper *s = user;
  (void)event;
  return s->left-- <= 0;
}

/* Wherever it is stopped, every system has a result: that of its x, or that
   there is none. */
TEST(batch_calls, give_every_system_a_result_when_stopped) {
  NEED_DEVICE();
  int some = 0;
  for (int64_t at = 0; at < 8; at++) {
    bat t = bat_make(1, 12, 3, 1);
    stopper s = {.left = at};
    memset(t.results, 0x5a, 12 * sizeof *t.results);
    t.options.device = HONE_DEVICE_CUDA;
    t.options.progress = stop;
    t.options.progress_user = &s;
    wrapped_trial.portion = 2;
    const int st = bat_call(&t);
    bat_check(&t, st);
    for (int64_t k = 0; k < 12; k++)
      CHECK(t.results[k].status == HONE_OK ||
            t.results[k].status == HONE_CANCELLED);
    some += bat_on_device(&t) > 0 && st == HONE_CANCELLED;
    wrapped_trial = (hone_trial){0};
    bat_discard(&t);
  }
  CHECK_GE(some, 2);
}

/* So many right-hand sides that not one system has room in a portion. */
TEST(batch_calls, leave_systems_that_no_portion_has_room_for) {
  NEED_DEVICE();
  bat t = bat_make(1, 2, 1, (8 << 20) / 40);
  t.options.device = HONE_DEVICE_CUDA;
  memset(t.results, 0x5a, 2 * sizeof *t.results);
  (void)bat_call(&t);
  CHECK_EQ_INT(bat_on_device(&t), 0);
  for (int64_t k = 0; k < 2; k++)
    CHECK_EQ_INT(t.results[k].status, HONE_OK);
  bat_discard(&t);
}
