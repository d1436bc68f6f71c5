/* SPDX-License-Identifier: BSD-3-Clause */
/* A batch whose arrays lie on the device is solved after what the caller has
   begun in the default stream, for which nobody has waited. */
#include "gpu_sp/calls.h"

extern "C" {
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
}

#include <vector>

#define MUST(call) CHECK_EQ_INT(call, cudaSuccess)

namespace {

enum { N = 6, COUNT = 40, TURNS = 40 };

/* Keeps the default stream busy for some milliseconds. */
void *begin_delay() {
  const size_t bytes = size_t{1} << (device_is_true() ? 30 : 10);
  void *memory = nullptr;
  MUST(cudaMalloc(&memory, bytes));
  for (int turn = 0; turn < TURNS; turn++)
    MUST(cudaMemsetAsync(memory, turn, bytes, nullptr));
  return memory;
}

/* The matrices are 0 until the copy that stands in the default stream. */
TEST(batch_stream, follows_the_default_stream) {
  NEED_DEVICE();
  device_begin();
  bat t = bat_make(1, COUNT, N, 1);
  const int64_t sides = COUNT * N, all = sides * N;
  const std::vector<double> zeros(static_cast<size_t>(all), 0.0);
  hone_batch there = t.batch;
  double *const good = on_device(t.a, all), *const b = on_device(t.b, sides);
  double *const a = on_device(zeros.data(), all), *const x =
                                                      device_alloc(sides);
  there.a = a;
  there.b = b;
  there.x = x;
  t.options.device = HONE_DEVICE_AUTO;
  void *const memory = begin_delay();
  MUST(cudaMemcpyAsync(a, good, static_cast<size_t>(all) * sizeof *a,
                       cudaMemcpyDeviceToDevice, nullptr));
#ifdef HONE_EMULATE
  const int64_t before = hone_emulate::waits_for_default;
#endif
  CHECK_EQ_INT(bat_call_with(1, &there, &t.options, t.results, &t.report),
               HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), COUNT);
#ifdef HONE_EMULATE
  CHECK_EQ_INT(hone_emulate::waits_for_default - before, 1);
#endif
  device_get(t.x, x, static_cast<size_t>(sides) * sizeof *x);
  for (int64_t k = 0; k < COUNT; k++)
    CHECK_LE(bat_omega(&t, k, 0, bat_x(&t, k)), 0x1p-51);
  MUST(cudaFree(memory));
  for (double *p : {good, a, b, x})
    device_free(p);
  bat_discard(&t);
  device_end();
}

} // namespace
