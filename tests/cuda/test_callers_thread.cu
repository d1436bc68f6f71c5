/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by a thread that has a context of its own current, or has left an error
   unread, and what it finds afterwards. */
extern "C" {
#include "api/hone.h"
#include "base/cuda_driver.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
}
#include "gpu_sp/calls.h"

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

namespace {

/* A = n I + (1, ..., 1) (1, ..., 1)^T / 2 and b = A (1, ..., 1). */
struct plain_system {
  explicit plain_system(int64_t order)
      : n(order), a((size_t)(n * n), 0.5), b((size_t)n, 1.5 * (double)n), x(b) {
    for (int64_t i = 0; i < n; i++)
      a[(size_t)(i * (n + 1))] += (double)n;
  }
  /* On the device alone. */
  int solve(hone_report *report) {
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CUDA;
    o.factor_precision = HONE_FACTOR_SINGLE;
    hone_report_init(report, sizeof *report);
    return hone_solve(n, 1, a.data(), n, b.data(), n, x.data(), n, &o, report);
  }
  void check() const {
    for (const double v : x)
      CHECK_NEAR(v, 1.0, 1e-14);
  }
  int64_t n;
  std::vector<double> a, b, x;
};

/* Systems of order 8 on the device, from memory of the host. */
void check_batch() {
  bat t = bat_make(1, 50, 8, 1);
  t.options.device = HONE_DEVICE_CUDA;
  CHECK_EQ_INT(bat_call(&t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(&t), 50);
  bat_discard(&t);
}

/* An error that nobody has read. */
void leave_error() { CHECK(cudaSetDevice(INT_MAX) != cudaSuccess); }

TEST(callers_thread, may_have_left_an_error) {
  NEED_DEVICE();
  for (int64_t n : {100, 500}) {
    plain_system s(n);
    hone_report r;
    leave_error();
    ct_note("order %d", (int)n);
    CHECK_EQ_INT(s.solve(&r), HONE_OK);
    CHECK_STR(r.reason, "");
    s.check();
  }
  leave_error();
  check_batch();
}

/* The fake driver's own context is the primary one. */
TEST(callers_thread, has_its_context_again) {
  static char others;
  NEED_DEVICE();
  NEED_FAKE();
  for (void *context :
       {static_cast<void *>(nullptr), static_cast<void *>(&fake_own),
        static_cast<void *>(&others)}) {
    plain_system s(500);
    hone_report r;
    device_begin();
    fake_current = context;
    const int64_t before = fake_set;
    CHECK_EQ_INT(s.solve(&r), HONE_OK);
    CHECK(fake_current == context);
    CHECK_EQ_INT(fake_set > before, context == &others);
    check_batch();
    CHECK(fake_current == context);
    CHECK_EQ_INT(fake_capture_mode, 0);
    fake_current = nullptr;
    device_end();
  }
}

/* Not even beside a context of the thread's own, where ours would be the
   primary one. */
TEST(callers_thread, keeps_its_context_where_nothing_is_released) {
  static char others;
  NEED_DEVICE();
  NEED_FAKE();
  device_begin();
  (void)hone_release_kept();
  fake_current = &others;
  const int64_t before = fake_set;
  CHECK_EQ_INT(hone_release_kept(), 0);
  CHECK_EQ_INT(fake_set, before);
  fake_current = nullptr;
  device_end();
}

#ifdef HONE_EMULATE
/* As where the driver is not initialized yet. */
TEST(callers_thread, keeps_its_capture_mode_where_it_cannot_be_exchanged) {
  hone_cuda_callers callers;
  hone_emulate::refused_exchanges = 1;
  hone_cuda_enter(&callers);
  hone_cuda_leave(&callers);
  CHECK_EQ_INT(hone_emulate::capture_mode, cudaStreamCaptureModeGlobal);
  hone_cuda_enter(&callers);
  CHECK_EQ_INT(hone_emulate::capture_mode, cudaStreamCaptureModeRelaxed);
  hone_cuda_leave(&callers);
  CHECK_EQ_INT(hone_emulate::capture_mode, cudaStreamCaptureModeGlobal);
}
#endif

/* ---- A true device ------------------------------------------------------- */

template <class F> F find(const char *name) {
  return reinterpret_cast<F>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), name));
}

TEST(callers_thread, may_have_a_context_of_its_own) {
  NEED_DEVICE();
  if (!device_is_true())
    SKIP("there is no true device");
  auto create = find<int (*)(void **, unsigned, int)>("cuCtxCreate_v2");
  auto destroy = find<int (*)(void *)>("cuCtxDestroy_v2");
  auto current = find<int (*)(void **)>("cuCtxGetCurrent");
  auto set = find<int (*)(void *)>("cuCtxSetCurrent");
  void *before = nullptr, *own = nullptr, *now = nullptr;
  hone_report r;
  CHECK_EQ_INT(current(&before), 0);
  REQUIRE(create(&own, 0, 0) == 0);
  for (int64_t n : {100, 1000, 3000}) {
    plain_system s(n);
    ct_note("order %d", (int)n);
    CHECK_EQ_INT(s.solve(&r), HONE_OK);
    CHECK(strstr(r.device, "CUDA") != nullptr);
    CHECK_STR(r.reason, "");
    CHECK(current(&now) == 0 && now == own);
    s.check();
  }
  check_batch();
  CHECK(current(&now) == 0 && now == own);
  CHECK_EQ_INT(set(before), 0);
  CHECK_EQ_INT(destroy(own), 0);
}

/* Is the primary context of device 0 active? */
bool is_active() {
  unsigned flags = 0;
  int device = 0, active = 0;
  const hone_driver *driver = hone_driver_present();
  return driver != nullptr && driver->device(&device, 0) == 0 &&
         driver->state(device, &flags, &active) == 0 && active != 0;
}

/* In a process of its own, where nothing else has made one. */
TEST(callers_thread, has_no_context_for_what_needs_none) {
  const char *const alone = "HONE_TEST_ALONE";
  char program[PATH_MAX + 200], *end = program;
  NEED_DEVICE();
  if (!device_is_true())
    SKIP("there is no true device");
  if (getenv(alone) != nullptr) {
    CHECK(!is_active());
    int64_t bytes = hone_release_kept();
    CHECK_EQ_INT(bytes, 0);
    CHECK(!is_active());
    return;
  }
  end += snprintf(end, 100, "%s=1 '", alone);
  const ssize_t length = readlink("/proc/self/exe", end, PATH_MAX);
  REQUIRE(length > 0 && length < PATH_MAX);
  strcpy(end + length, "' --gtest_filter=callers_thread.has_no_context_for_* "
                       ">/dev/null 2>&1");
  CHECK_EQ_INT(system(program), 0);
}

} // namespace
