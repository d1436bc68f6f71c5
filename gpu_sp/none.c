/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of a CUDA device in a build without CUDA: their probes say that
   there is none. No state is ever created, so that no other member is ever
   called. */
#include "base/engine.h"

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

static bool is_definite(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

#define LU_WITHOUT_CUDA                                                        \
  {                                                                            \
    .name = "single LU", .place = "CUDA", .precision = 32, .probe = probe,     \
    .create = create, .bytes = bytes, .device_bytes = device_bytes             \
  }

const hone_engine hone_engine_single_cuda = LU_WITHOUT_CUDA;
const hone_engine hone_engine_several_cuda = LU_WITHOUT_CUDA;
const hone_engine hone_engine_outside_cuda = LU_WITHOUT_CUDA;

#define CHOLESKY_WITHOUT_CUDA                                                  \
  {                                                                            \
    .name = "single Cholesky", .place = "CUDA", .precision = 32,               \
    .symmetric = true, .applies = is_definite, .probe = probe,                 \
    .create = create, .bytes = bytes, .device_bytes = device_bytes             \
  }

const hone_engine hone_engine_cholesky_cuda = CHOLESKY_WITHOUT_CUDA;
const hone_engine hone_engine_several_cholesky_cuda = CHOLESKY_WITHOUT_CUDA;

const hone_engine hone_engine_double_cuda = {.name = "double LU",
                                             .place = "CUDA",
                                             .precision = 64,
                                             .probe = probe,
                                             .create = create,
                                             .bytes = bytes,
                                             .device_bytes = device_bytes};
