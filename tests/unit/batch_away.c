/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/batch_away.h"

#include "tests/unit/device_memory.h"

away away_send(const bat *t, bool in_place) {
  const int64_t count = t->batch.count, parts = t->parts;
  const int64_t all = count * t->batch.n * parts;
  away w = {.batch = t->batch, .in_place = in_place};
  w.a = on_device(t->a, all * t->batch.n);
  w.b = on_device(t->b, all * t->batch.nrhs);
  w.x = in_place ? w.b : device_alloc(all * t->batch.nrhs);
  w.batch.a = w.a;
  w.batch.b = w.b;
  w.batch.x = w.x;
  for (int64_t k = 0; k < count && k < 8; k++) {
    w.a_list[k] = w.a + k * w.batch.stride_a * parts;
    w.b_list[k] = w.b + k * w.batch.stride_b * parts;
    w.x_list[k] = w.x + k * w.batch.stride_x * parts;
  }
  return w;
}

void away_discard(away *w) {
  device_free(w->a);
  device_free(w->b);
  if (!w->in_place)
    device_free(w->x);
}

void away_use_lists(away *w) {
  w->batch.a_list = w->a_list;
  w->batch.b_list = w->b_list;
  w->batch.x_list = w->x_list;
}
