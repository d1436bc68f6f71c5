/* SPDX-License-Identifier: BSD-3-Clause */
/* A symmetric, positive definite system, and its factors on the device. */
#ifndef TESTS_DEFINITE_SYSTEM_H
#define TESTS_DEFINITE_SYSTEM_H

#include "tests/cuda/test_kernels.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

namespace {

/* A symmetric matrix of condition about 40, positive definite, and b. */
struct definite_system {
  int64_t n;
  std::vector<double> a, b;

  explicit definite_system(int64_t order) : n(order) {
    numbers r = {static_cast<uint64_t>(order)};
    const double diagonal = 3.0 * std::sqrt(static_cast<double>(n));
    a.resize(static_cast<size_t>(n * n));
    b = r.array<double>(n);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++)
        a.data()[i + j * n] = a.data()[j + i * n] =
            r.uniform() + (i == j ? diagonal : 0.0);
  }
};

struct factors {
  const hone_engine *engine;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_dense dense;
  hone_matrix matrix;
  void *self = nullptr;

  factors(const hone_engine *e, const definite_system &s)
      : engine(e), dense{s.n, s.n, s.a.data(), nullptr, false, 0},
        matrix(hone_dense_matrix(&dense)) {
    hone_engine_config config = {};
    config.n = s.n;
    config.mem = &mem;
    config.watch = &watch;
    CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
    factor();
  }
  factors(const factors &) = delete;
  ~factors() {
    engine->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
  void factor() {
    hone_factor_info info;
    CHECK_EQ_INT(engine->factor(self, &matrix, nullptr, &info), HONE_OK);
    CHECK_EQ_INT(info.zero_pivot, -1);
  }
};

const hone_engine *const engines[] = {&hone_engine_single_cuda,
                                      &hone_engine_cholesky_cuda};

} // namespace

#endif
