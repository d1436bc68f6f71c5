/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA device of a build without CUDA: never usable, says so. */
#include "gpu_sp/device.h"

#include <stdio.h>

static bool probe(char *why, size_t why_size) {
  snprintf(why, why_size, "this build of the library has no CUDA");
  return false;
}

static int create(void **self, const hone_engine_config *config) {
  (void)config;
  *self = NULL;
  return HONE_NO_DEVICE;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)n;
  (void)k;
  return 0;
}

static int64_t device_bytes(const hone_engine_config *config, bool resident) {
  (void)config;
  (void)resident;
  return 0;
}

const hone_engine hone_engine_double_cuda = {.name = "double LU",
                                             .place = "CUDA",
                                             .precision = 64,
                                             .probe = probe,
                                             .create = create,
                                             .bytes = bytes,
                                             .device_bytes = device_bytes};

/* No state was ever created, so that no other operation can be called. */
const hone_device hone_device_cuda = {.name = "CUDA",
                                      .probe = probe,
                                      .create = create,
                                      .bytes = bytes,
                                      .device_bytes = device_bytes};
