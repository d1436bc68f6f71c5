/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches in host memory that several emulated devices share
   (gpu_sp/batch/portions.cu): portions are dealt to them in turn. */
#include "tests/emulate/several_devices.h"

extern "C" {
#include "tests/unit/batch_away.h"

/* These are declared in tests/unit/device_memory.h too, which cannot be
   included here: its on_device is another function than that of
   test_kernels.h. */
void device_begin(void);
void device_end(void);
}
#include "tests/unit/wrapped.h"

#include <string>

namespace {

/* While it exists portions have so many systems. */
class portions_of {
public:
  explicit portions_of(int64_t systems) { wrapped_trial.portion = systems; }
  ~portions_of() { wrapped_trial.portion = 0; }
  portions_of(const portions_of &) = delete;
  portions_of &operator=(const portions_of &) = delete;
};

/* A batch for so many devices. */
struct batch {
  bat t;
  batch(int parts, int64_t count, int64_t n, int64_t nrhs, int devices)
      : t(bat_make(parts, count, n, nrhs)) {
    t.options.device = HONE_DEVICE_CUDA;
    t.options.devices = devices;
    t.options.deterministic = 1;
    ct_note("parts %d, n %d, nrhs %d, %d devices", parts, (int)n, (int)nrhs,
            devices);
  }
  ~batch() { bat_discard(&t); }
  batch(const batch &) = delete;
  batch &operator=(const batch &) = delete;
  /* Solves, and says whether so many systems were solved on so many devices. */
  bool solves_on(int devices, int64_t count) {
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    const std::string on =
        devices > 1 ? std::to_string(devices) + " devices" : "the device";
    return strstr(
               t.report.path,
               (": " + std::to_string(count) + " on " + on + ", ").c_str()) !=
           nullptr;
  }
  std::vector<double> solution() const { return {t.x, t.x + bat_doubles(&t)}; }
};

size_t used_on(int device) {
  size_t unused = 0, total = 0;
  MUST(cudaSetDevice(device));
  MUST(cudaMemGetInfo(&unused, &total));
  MUST(cudaSetDevice(0));
  return total - unused;
}

/* The bits of every x are those that one device gives. Slots are on all
   devices; those that have solved systems by panels have a workspace besides.
 */
TEST(several_batches, share_the_systems) {
  const portions_of three(3);
  for (int parts : {1, 2})
    for (int64_t n : {5, 30, 150}) {
      const size_t slots = n > 128 ? 3 * (72 << 20) : 3 * (16 << 20);
      std::vector<double> one;
      for (int devices : {1, 2, 3, 8}) {
        const several_devices present(devices);
        batch b(parts, 26, n, 2, devices);
        CHECK(b.solves_on(devices, 26));
        if (devices == 1)
          one = b.solution();
        CHECK(same(one, b.solution()));
        for (int d = 0; d < devices; d++)
          CHECK(n > 128 ? used_on(d) > slots : used_on(d) == slots);
      }
    }
}

/* Work that streams do as late as they may does not change the results. */
TEST(several_batches, work_is_late) {
  const several_devices two(2);
  const portions_of two_each(2);
  for (uint64_t seed = 0; seed < 4; seed++) {
    const hone_emulate::late_streams late(seed);
    batch b(1 + (int)(seed % 2), 23, 33, 1, 2);
    CHECK(b.solves_on(2, 23));
  }
}

TEST(several_batches, no_more_devices_than_portions) {
  const several_devices four(4);
  CHECK(batch(1, 9, 6, 1, -1).solves_on(1, 9));
  const portions_of three(3);
  CHECK(batch(1, 9, 6, 1, -1).solves_on(3, 9));
  CHECK(batch(1, 9, 6, 1, 2).solves_on(2, 9));
  CHECK(batch(1, 9, 6, 1, 0).solves_on(1, 9));
}

/* Systems that lie on a device are solved there. */
TEST(several_batches, arrays_on_a_device_stay_there) {
  const several_devices two(2);
  const portions_of two_each(2);
  device_begin();
  {
    batch b(1, 8, 6, 1, 2);
    away there = away_send(&b.t, false);
    CHECK_EQ_INT(
        bat_call_with(1, &there.batch, &b.t.options, b.t.results, &b.t.report),
        HONE_OK);
    CHECK_CONTAINS(b.t.report.path, ": 8 on the device, ");
    away_discard(&there);
  }
  device_end();
}

/* Another device has no memory: one serves. */
TEST(several_batches, one_device_where_others_have_no_memory) {
  const several_devices two(2);
  const portions_of three(3);
  size_t unused = 0, total = 0;
  MUST(cudaMemGetInfo(&unused, &total));
  hone_emulate::devices.others[1] = total - (1 << 20);
  batch b(1, 12, 8, 1, 2);
  CHECK(b.solves_on(1, 12));
  hone_emulate::devices.others[1] = 0;
  CHECK(b.solves_on(2, 12));
}

/* The limit is that of each device. */
TEST(several_batches, memory_limits) {
  const several_devices two(2);
  const portions_of three(3);
  batch b(1, 12, 8, 1, 2);
  b.t.options.device_memory_limit_bytes = 3 * (16 << 20);
  CHECK(b.solves_on(2, 12));
  b.t.options.device_memory_limit_bytes--;
  CHECK_EQ_INT(bat_solve(&b.t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(&b.t), 0);
}

/* The last call's memory is kept, and no other. */
TEST(several_batches, memory_is_kept) {
  const several_devices three(3);
  const portions_of three_each(3);
  const size_t before = hone_emulate::owned_now();
  const int64_t each = 3 * (16 << 20);
  for (int devices : {2, 3, 1, 2}) {
    batch b(1, 12, 8, 1, devices);
    CHECK(b.solves_on(devices, 12));
    const size_t kept = hone_emulate::owned_now();
    CHECK(b.solves_on(devices, 12));
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)kept);
    if (devices != 3)
      continue;
    CHECK_EQ_INT(hone_release_kept(), 3 * each);
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
  }
  MUST(cudaSetDevice(2));
  CHECK(batch(1, 12, 8, 1, 2).solves_on(2, 12));
  int now = -1;
  MUST(cudaGetDevice(&now));
  CHECK_EQ_INT(now, 2);
  MUST(cudaSetDevice(0));
  CHECK_EQ_INT(hone_release_kept(), 2 * each);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
}

/* Every call of CUDA fails once. */
TEST(several_batches, survive_every_failed_call) {
  const several_devices two(2);
  const portions_of three(3);
  const size_t before = hone_emulate::owned_now();
  for (int64_t n : {9, 140}) {
    int64_t at = 1;
    for (bool over = false; !over; at += n < 100 ? 1 : 3) {
      batch b(1, 13, n, 1, 2);
      ct_note("n %d, call %d", (int)n, (int)at);
      failing_calls.fail_at = at;
      CHECK_EQ_INT(bat_solve(&b.t), HONE_OK);
      over = failing_calls.fail_at > 0;
      failing_calls.fail_at = 0;
      (void)hone_release_kept();
      CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
    }
    CHECK(at > 40);
  }
}

} // namespace
