/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/wrapped.h"

#include "api/engines.h"
#include "base/device_memory.h"

hone_trial wrapped_trial;
wrapped_calls failing_calls;
const hone_driver *wrapped_driver;
int64_t wrapped_slot_bytes;

/* ld prescribes these names. */
hone_choices __real_hone_choices_of(const hone_options *options);
hone_choices __wrap_hone_choices_of(const hone_options *options);
const hone_driver *__real_hone_driver_present(void);
const hone_driver *__wrap_hone_driver_present(void);
int __real_hone_host_copy_open(hone_host_copy *host_copy, hone_mem *mem,
                               int64_t n, const hone_device_memory *place,
                               const void *original, int64_t ld, size_t entry);
int __wrap_hone_host_copy_open(hone_host_copy *host_copy, hone_mem *mem,
                               int64_t n, const hone_device_memory *place,
                               const void *original, int64_t ld, size_t entry);
/* These do not exist in a build without CUDA, where nobody calls them. */
int __real_hone_cuda_runtime_status(int result) __attribute__((weak));
int __real_hone_cuda_blas_status(int result) __attribute__((weak));
int __real_hone_cuda_solver_status(int result) __attribute__((weak));
int __wrap_hone_cuda_runtime_status(int result);
int __wrap_hone_cuda_blas_status(int result);
int __wrap_hone_cuda_solver_status(int result);

hone_choices __wrap_hone_choices_of(const hone_options *options) {
  hone_choices choices = __real_hone_choices_of(options);
  choices.trial = wrapped_trial;
  return choices;
}

const hone_driver *__wrap_hone_driver_present(void) {
  return wrapped_driver != NULL ? wrapped_driver : __real_hone_driver_present();
}

int __wrap_hone_host_copy_open(hone_host_copy *host_copy, hone_mem *mem,
                               int64_t n, const hone_device_memory *place,
                               const void *original, int64_t ld, size_t entry) {
  host_copy->slot = wrapped_slot_bytes;
  return __real_hone_host_copy_open(host_copy, mem, n, place, original, ld,
                                    entry);
}

bool wrapped_reaches(int64_t *fail_at) {
  int64_t at = __atomic_load_n(fail_at, __ATOMIC_RELAXED);
  while (at > 0 &&
         !__atomic_compare_exchange_n(fail_at, &at, at - 1, false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  return at == 1;
}

/* Called from any of the engine's threads. */
static bool must_fail(void) {
  __atomic_add_fetch(&failing_calls.made, 1, __ATOMIC_RELAXED);
  return wrapped_reaches(&failing_calls.fail_at);
}

int __wrap_hone_cuda_runtime_status(int result) {
  const int st = __real_hone_cuda_runtime_status(result);
  return must_fail() ? HONE_DEVICE_FAILED : st;
}

int __wrap_hone_cuda_blas_status(int result) {
  const int st = __real_hone_cuda_blas_status(result);
  return must_fail() ? HONE_DEVICE_FAILED : st;
}

int __wrap_hone_cuda_solver_status(int result) {
  const int st = __real_hone_cuda_solver_status(result);
  return must_fail() ? HONE_DEVICE_FAILED : st;
}
