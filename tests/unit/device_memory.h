/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device for tests: a GPU's where there is one, else that of
   fake_driver.h. */
#ifndef TESTS_DEVICE_MEMORY_H
#define TESTS_DEVICE_MEMORY_H

#include "tests/unit/fake_driver.h"

bool cuda_usable(void); /* true or emulated */
bool device_is_true(void);

#define NEED_DEVICE()                                                          \
  do {                                                                         \
    if (!cuda_usable()) {                                                      \
      const char *required_ = getenv("HONE_REQUIRE_GPU");                      \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP("no usable CUDA device");                                           \
    }                                                                          \
  } while (0)

/* A driver that fails when it is told to. */
#define NEED_FAKE()                                                            \
  do {                                                                         \
    if (device_is_true())                                                      \
      SKIP("there is a true device");                                          \
  } while (0)

/* First and last of a test; nothing of the driver's may be left then. */
void device_begin(void);
void device_end(void);

double *device_alloc(int64_t count);
void device_free(void *p);
void device_put(void *to, const void *from, size_t bytes);
void device_get(void *to, const void *from, size_t bytes);
/* A copy there. */
double *on_device(const double *from, int64_t count);

#endif
