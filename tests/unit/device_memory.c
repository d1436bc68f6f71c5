/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "tests/unit/device_memory.h"

#include "base/device_memory.h"

#include "base/cuda_driver.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

bool cuda_usable(void) {
  char why[128];
  return hone_engine_single_cuda.probe(why, sizeof why);
}

bool device_is_true(void) { return !sup_emulated() && cuda_usable(); }

static struct {
  int (*alloc)(unsigned long long *p, size_t bytes);
  int (*release)(unsigned long long p);
  int (*put)(unsigned long long to, const void *from, size_t bytes);
  int (*get)(void *to, unsigned long long from, size_t bytes);
} cuda; /* functions of the true driver */

static void find(const char *name, void *call) {
  void *at = dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), name);
  if (at == NULL)
    abort();
  memcpy(call, &at, sizeof at);
}

void device_begin(void) {
  double a = 2.0, b = 1.0;
  void *context;
  hone_options options;
  if (!device_is_true()) {
    wrapped_slot_bytes = 1 << 15; /* many pieces even of small matrices */
    fake_begin();
    return;
  }
  if (cuda.alloc != NULL)
    return;
  options = (hone_options)HONE_OPTIONS_INIT;
  options.device = HONE_DEVICE_CUDA;
  hone_solve(1, 1, &a, 1, &b, 1, &b, 1, &options, NULL); /* loads the driver */
  find("cuMemAlloc_v2", &cuda.alloc);
  find("cuMemFree_v2", &cuda.release);
  find("cuMemcpyHtoD_v2", &cuda.put);
  find("cuMemcpyDtoH_v2", &cuda.get);
  if (hone_driver_present()->retain(&context, 0) != 0 ||
      hone_driver_present()->push(context) != 0)
    abort();
}

void device_end(void) {
  if (device_is_true())
    return;
  CHECK_EQ_INT(fake.live, 0);
  wrapped_slot_bytes = 0;
  fake_end();
}

double *device_alloc(int64_t count) {
  const size_t bytes = (size_t)count * sizeof(double);
  unsigned long long p = 0;
  if (!device_is_true())
    return fake_alloc(bytes, false);
  if (cuda.alloc(&p, bytes) != 0)
    abort();
  return (double *)(uintptr_t)p;
}

void device_free(void *p) {
  if (!device_is_true())
    fake_free(p);
  else if (cuda.release((uintptr_t)p) != 0)
    abort();
}

void device_put(void *to, const void *from, size_t bytes) {
  char first;
  if (!device_is_true())
    memcpy(fake_real(to), from, bytes);
  else if (cuda.put((uintptr_t)to, from, bytes) != 0 ||
           cuda.get(&first, (uintptr_t)to, 1) != 0)
    abort(); /* put may return before all has arrived, get does not */
}

void device_get(void *to, const void *from, size_t bytes) {
  if (!device_is_true())
    memcpy(to, fake_real(from), bytes);
  else if (cuda.get(to, (uintptr_t)from, bytes) != 0)
    abort();
}

double *on_device(const double *from, int64_t count) {
  double *p = device_alloc(count);
  device_put(p, from, (size_t)count * sizeof *p);
  return p;
}
