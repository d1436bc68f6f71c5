/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors in host memory, whose block columns come to an emulated device and go
   (gpu_sp/outside/): how tests bring that about at small orders. The tests are
   compiled for real and for complex entries. */
#ifndef HONE_EMULATE_OUTSIDE_H
#define HONE_EMULATE_OUTSIDE_H

#include "tests/emulate/several_problem.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

namespace {

/* While it exists factors may lie in host memory at any order, in block columns
   of so many columns. */
class window_of {
public:
  explicit window_of(int64_t columns) {
    wrapped_trial.window = columns / HONE_PARTS;
  }
  ~window_of() { wrapped_trial = {}; }
  window_of(const window_of &) = delete;
  window_of &operator=(const window_of &) = delete;
};

/* Returns options with less device memory than one device needs. */
inline hone_options outside_options(int64_t n) {
  hone_options o = options_for(0);
  hone_engine_config config = {};
  config.n = n;
  config.choices.trial = wrapped_trial;
  const int64_t single = hone_engine_single_cuda.device_bytes(&config, false);
  const int64_t least = hone_engine_outside.device_bytes(&config, false);
  CHECK(least > 0);
  CHECK(least < single);
  o.device_memory_limit_bytes = (least + single) / 2;
  return o;
}

const char *const SAYS = "block columns through the device";

inline void check_report(const hone_report &r, const hone_options &o) {
  CHECK_CONTAINS(r.path, SAYS);
  CHECK_CONTAINS(r.path, "fp16x3, tournament pivoting");
  CHECK_CONTAINS(r.reason, "GB of device memory");
  CHECK_EQ_INT(r.precision, 32);
  CHECK(r.device_bytes > 0);
  CHECK(r.device_bytes <= o.device_memory_limit_bytes);
  CHECK_EQ_INT(r.device_passes, 0);
  CHECK(r.host_passes > 0);
  CHECK(r.growth >= 0.5 && r.growth < 1e3);
}

} // namespace

#endif
