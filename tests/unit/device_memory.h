/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory for tests: that of a GPU where there is one, else that of
   fake_driver.h. */
#ifndef TESTS_DEVICE_MEMORY_H
#define TESTS_DEVICE_MEMORY_H

#include "tests/unit/fake_driver.h"

bool cuda_usable(void); /* on a true or an emulated device */
bool device_is_true(void);

#define NEED_DEVICE()                                                          \
  do {                                                                         \
    if (!cuda_usable()) {                                                      \
      const char *required_ = getenv("HONE_REQUIRE_GPU");                      \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP("no usable CUDA device");                                           \
    }                                                                          \
  } while (0)

/* For tests that need a driver which fails on demand. */
#define NEED_FAKE()                                                            \
  do {                                                                         \
    if (device_is_true())                                                      \
      SKIP("there is a true device");                                          \
  } while (0)

/* The first and the last call of a test. The last one checks that no memory,
   stream or context of the driver is left. */
void device_begin(void);
void device_end(void);

double *device_alloc(int64_t count);
void device_free(void *p);
void device_put(void *to, const void *from, size_t bytes);
void device_get(void *to, const void *from, size_t bytes);
/* Copies an array of count doubles to the device. */
double *on_device(const double *from, int64_t count);

#endif
