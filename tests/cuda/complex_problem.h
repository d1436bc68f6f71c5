/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the CUDA engine for complex entries: a random problem,
   and an engine that has factored it. */
#ifndef TESTS_COMPLEX_PROBLEM_H
#define TESTS_COMPLEX_PROBLEM_H

#include "tests/cuda/test_kernels.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

#include <complex>

namespace {

typedef std::complex<double> cplx;
typedef std::complex<long double> wide;
const hone_engine *const D = &hone_engine_single_cuda;

inline hone_entry *entries(std::vector<cplx> &v) {
  return reinterpret_cast<hone_entry *>(v.data());
}
inline const hone_entry *entries(const std::vector<cplx> &v) {
  return reinterpret_cast<const hone_entry *>(v.data());
}

inline std::vector<cplx> random_entries(numbers *r, int64_t count) {
  std::vector<cplx> v(static_cast<size_t>(count));
  for (cplx &e : v) {
    const double re = r->uniform();
    e = cplx(re, r->uniform());
  }
  return v;
}

/* A random A with a heavier diagonal, and b[trans] = op(A) x. */
struct problem {
  int64_t n, lda;
  std::vector<cplx> a, x, b[2];

  problem(int64_t order, int64_t pad, double diagonal)
      : n(order), lda(order + pad) {
    numbers r = {static_cast<uint64_t>(order)};
    a = random_entries(&r, lda * n);
    x = random_entries(&r, n);
    for (int64_t i = 0; i < n; i++)
      a.data()[i + i * lda] += cplx(diagonal, -diagonal);
    for (int trans = 0; trans < 2; trans++) {
      b[trans].assign(static_cast<size_t>(n), cplx(0));
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          b[trans].data()[trans ? j : i] +=
              a.data()[i + j * lda] * x.data()[trans ? i : j];
    }
  }
  /* Makes the last column the mean of the others, but for a part of it. b is
     not changed. */
  void make_columns_dependent(double part) {
    cplx *last = a.data() + (n - 1) * lda;
    for (int64_t i = 0; i < n; i++) {
      last[i] *= part;
      for (int64_t j = 0; j < n - 1; j++)
        last[i] += a.data()[i + j * lda] / static_cast<double>(n - 1);
    }
  }
  cplx at(bool trans, int64_t i, int64_t j) const {
    return trans ? a.data()[j + i * lda] : a.data()[i + j * lda];
  }
};

/* No scaling at all. */
struct unscaled {
  std::vector<double> ones;
  std::vector<int> zeros;
  explicit unscaled(int64_t n)
      : ones(static_cast<size_t>(n), 1.0), zeros(ones.size()) {}
  hone_scaling get() {
    return {ones.data(), ones.data(), zeros.data(), zeros.data(), false};
  }
};

/* An engine that has factored the problem's A. */
struct factored {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  hone_dense dense;
  hone_matrix matrix;
  hone_factor_info info = {};
  void *self = nullptr;
  int status;

  factored(const problem &p, const hone_choices &choices, int64_t block,
           const hone_scaling *scaling = nullptr, hone_pool *pool = nullptr) {
    dense = {p.n, p.lda, entries(p.a), nullptr, false, 0};
    matrix = hone_dense_matrix(&dense);
    config.n = p.n;
    config.mem = &mem;
    config.watch = &watch;
    config.pool = pool;
    config.block = block;
    config.choices = choices;
    status = D->create(&self, &config);
    unscaled plain(p.n);
    const hone_scaling none = plain.get();
    if (status == HONE_OK && !D->resident(self) && scaling == nullptr)
      scaling = &none;
    if (status == HONE_OK)
      status = D->factor(self, &matrix, scaling, &info);
  }
  factored(const factored &) = delete;
  ~factored() {
    if (self)
      D->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
};

} // namespace

#endif
