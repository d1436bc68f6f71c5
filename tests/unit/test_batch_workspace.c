/* SPDX-License-Identifier: BSD-3-Clause */
/* The device memory of batches that are solved by panels: arrays that lie there
   already, calls of CUDA that fail, and how much memory is taken and kept. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The least orders that are solved by panels, with a rest. */
static int64_t order_of(int parts) { return parts == 1 ? 130 : 66; }

/* A copy of the batch whose arrays lie on the device. */
typedef struct away {
  hone_batch batch;
  double *a, *b, *x;
} away;

static away send(const bat *t, bool in_place) {
  const int64_t all = t->batch.count * t->batch.n * t->parts;
  away w = {.batch = t->batch};
  w.a = on_device(t->a, all * t->batch.n);
  w.b = on_device(t->b, all * t->batch.nrhs);
  w.x = in_place ? w.b : device_alloc(all * t->batch.nrhs);
  w.batch.a = w.a;
  w.batch.b = w.b;
  w.batch.x = w.x;
  return w;
}

/* Fetches x. */
static void discard(const bat *t, away *w) {
  device_get(t->x, w->x, (size_t)bat_doubles(t) * sizeof(double));
  device_free(w->a);
  device_free(w->b);
  if (w->x != w->b)
    device_free(w->x);
}

TEST(batch_workspace, takes_arrays_in_device_memory) {
  NEED_DEVICE();
  for (int way = 0; way < 8; way++) {
    const int parts = 1 + way % 2;
    device_begin();
    bat t = bat_make(parts, 3, order_of(parts), 1 + way / 4 * 2);
    ct_note("parts %d, in place %d, nrhs %d", parts, way / 2 % 2,
            (int)t.batch.nrhs);
    *bat_entry(&t, 1, 0, 0) = 1e304; /* it is solved by itself */
    away w = send(&t, way / 2 % 2);
    t.options.device = HONE_DEVICE_AUTO;
    CHECK_EQ_INT(
        bat_call_with(parts, &w.batch, &t.options, t.results, &t.report),
        HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 2);
    discard(&t, &w);
    for (int64_t k = 0; k < 3; k++)
      for (int64_t c = 0; c < t.batch.nrhs; c++)
        CHECK_LE(bat_omega(&t, k, c, bat_x(&t, k) + c * t.batch.ldx * parts),
                 SUP_LIMIT);
    bat_discard(&t);
    device_end();
  }
}

/* ---- Failures ----------------------------------------------------------- */

/* Whichever call of CUDA fails, each x is right or is not there. */
TEST(batch_workspace, survives_every_failed_call) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, 2, order_of(parts), 1);
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
      failed += bat_on_device(&t) < 2;
      if (over)
        break;
      if (at % 2 == 0)
        (void)hone_release_kept();
    }
    CHECK_GE(failed, 8);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 2);
    bat_discard(&t);
  }
}

/* Does so with x in the place of b in device memory, where a b that is lost
   must not be solved for again. */
TEST(batch_workspace, survives_every_failed_call_in_place) {
  NEED_FAKE();
  NEED_DEVICE();
  bat t = bat_make(1, 2, order_of(1), 1);
  int refused = 0, solved = 0;
  t.options.device = HONE_DEVICE_AUTO;
  (void)hone_release_kept();
  for (int64_t at = 1; at < 200; at++) {
    device_begin();
    away w = send(&t, true);
    failing_calls.fail_at = at;
    (void)bat_call_with(1, &w.batch, &t.options, t.results, &t.report);
    const bool over = failing_calls.fail_at > 0;
    failing_calls.fail_at = 0;
    ct_note("call %d", (int)at);
    discard(&t, &w);
    for (int64_t k = 0; k < 2; k++) {
      refused += t.results[k].status < 0;
      solved += t.results[k].status == HONE_OK;
      if (t.results[k].status == HONE_OK)
        CHECK_LE(bat_omega(&t, k, 0, bat_x(&t, k)), SUP_LIMIT);
    }
    device_end();
    if (over)
      break;
  }
  CHECK_GE(refused, 2);
  CHECK_GE(solved, 2);
  bat_discard(&t);
}

/* ---- How much ----------------------------------------------------------- */

enum {
  PORTIONS = 3 * (64 + 8) << 20, /* bytes: input and output of three slots */
  EACH = 9 * 16 * 132 * 8        /* and the workspace of one matrix */
};

/* Solves three systems of order 130 with a limit, returns how many of them on
   the device together, and checks how many bytes there were kept; 0: at most
   the limit. */
static int64_t solve_within(int64_t limit, int64_t kept) {
  bat t = bat_make(1, 3, 130, 1);
  t.options.device = HONE_DEVICE_CUDA;
  t.options.device_memory_limit_bytes = limit;
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  const int64_t served = bat_on_device(&t);
  bat_discard(&t);
  const int64_t released = hone_release_kept();
  if (kept > 0)
    CHECK_EQ_INT(released, kept);
  else /* that of an engine for one system */
    CHECK_LE(released, limit);
  CHECK_EQ_INT(hone_release_kept(), 0);
  return served;
}

/* With less memory there are fewer thread blocks, each with a workspace; with
   too little each system is solved by itself. */
TEST(batch_workspace, keeps_to_the_limit_and_is_released) {
  NEED_DEVICE();
  (void)hone_release_kept();
  CHECK_EQ_INT(solve_within(0, PORTIONS + 3 * EACH), 3);
  CHECK_EQ_INT(solve_within(PORTIONS + 9 * EACH, PORTIONS + 3 * EACH), 3);
  CHECK_EQ_INT(solve_within(PORTIONS + 9 * EACH - 1, PORTIONS + EACH), 3);
  CHECK_EQ_INT(solve_within(PORTIONS + 3 * EACH, PORTIONS + EACH), 3);
  CHECK_EQ_INT(solve_within(PORTIONS + 3 * EACH - 1, 0), 0);
  CHECK_EQ_INT(solve_within(PORTIONS - 1, 0), 0);
}

/* Memory that an earlier call has left counts. */
TEST(batch_workspace, counts_what_is_kept_against_the_limit) {
  NEED_DEVICE();
  bat t = bat_make(1, 3, 130, 1);
  t.options.device = HONE_DEVICE_CUDA;
  (void)hone_release_kept();
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  bat_discard(&t);
  CHECK_EQ_INT(solve_within(PORTIONS + 3 * EACH - 1, 0), 0);
}
