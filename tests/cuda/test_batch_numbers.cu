/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of the kernels for batches. */
#include "gpu_sp/batch/numbers.h"

extern "C" {
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
}

#include "base/base.h"

#include <vector>

#define MUST(call) CHECK_EQ_INT(call, cudaSuccess)

namespace {

enum { COUNT = 4096, THREADS = 128 };

__global__ void take_roots(double *v) {
  const int i = static_cast<int>(blockIdx.x * THREADS + threadIdx.x);
  v[i] = root_of(v[i]);
}

std::vector<double> roots_of(const std::vector<double> &v) {
  std::vector<double> out(v.size());
  double *const there = on_device(v.data(), COUNT);
  HONE_LAUNCH(take_roots, COUNT / THREADS, THREADS, 0, nullptr, there);
  MUST(cudaGetLastError());
  device_get(out.data(), there, COUNT * sizeof(double));
  device_free(there);
  return out;
}

/* Numbers of all sizes whose root is not 0. */
std::vector<double> numbers_of_all_sizes() {
  std::vector<double> v(COUNT);
  uint64_t seed = 7;
  for (double &s : v) {
    const int exponent =
        static_cast<int>(hone_random_bits(&seed) % 2044) - 1020;
    s = ldexp(1.0 +
                  static_cast<double>(hone_random_bits(&seed) >> 12) * 0x1p-52,
              exponent);
  }
  return v;
}

TEST(batch_numbers, roots_are_right_but_for_two_roundings) {
  NEED_DEVICE();
  device_begin();
  const std::vector<double> v = numbers_of_all_sizes(), roots = roots_of(v);
  for (size_t i = 0; i < v.size(); i++) {
    const double error = fabs(roots[i] / std::sqrt(v[i]) - 1.0);
    ct_note("of %a", v[i]);
    CHECK_LE(error, 0x1p-51);
  }
  device_end();
}

TEST(batch_numbers, roots_at_the_ends_of_the_range) {
  NEED_DEVICE();
  device_begin();
  std::vector<double> v(COUNT, 0.0);
  v[1] = 0x1p-1074;
  v[2] = 0x1.fffp-1021;
  v[3] = 0x1p-1020;
  v[4] = HONE_NAN;
  v[5] = HONE_INF;
  v[6] = DBL_MAX;
  const std::vector<double> roots = roots_of(v);
  for (size_t i = 0; i < 3; i++)
    CHECK(roots[i] == 0.0);
  CHECK_LE(fabs(roots[3] / 0x1p-510 - 1.0), 0x1p-51);
  CHECK(roots[4] != roots[4]);
  CHECK(roots[5] == HONE_INF);
  CHECK_LE(fabs(roots[6] / std::sqrt(DBL_MAX) - 1.0), 0x1p-51);
  device_end();
}

} // namespace
