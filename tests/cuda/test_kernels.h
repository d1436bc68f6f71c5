/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the CUDA kernels. They are compiled twice: by nvcc for
   a GPU, and for the CPU, which emulates one (emulate.h). */
#ifndef TESTS_TEST_KERNELS_H
#define TESTS_TEST_KERNELS_H

#include "gpu_sp/factor/factor.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/triangles.h"
#include "tests/unit/ct.h"

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

/* Skips where there is no device, unless one is required. */
#define NEED_DEVICE()                                                          \
  do {                                                                         \
    int count_ = 0;                                                            \
    const char *required_ = getenv("HONE_REQUIRE_GPU");                        \
    if (cudaGetDeviceCount(&count_) != cudaSuccess || count_ == 0) {           \
      (void)cudaGetLastError();                                                \
      REQUIRE(required_ == nullptr || strcmp(required_, "1") != 0);            \
      SKIP("no usable CUDA device");                                           \
    }                                                                          \
  } while (0)

#define MUST(call) CHECK_EQ_INT(call, cudaSuccess)

/* Random numbers that are equal on every machine: splitmix64. */
struct numbers {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(n));
  }
  double uniform() { /* in [-1/2, 1/2) */
    return static_cast<double>(next() >> 11) * 0x1p-53 - 0.5;
  }
  template <class T> std::vector<T> array(int64_t count) {
    std::vector<T> v(static_cast<size_t>(count));
    for (T &x : v)
      x = static_cast<T>(uniform());
    return v;
  }
  std::vector<int> permutation(int64_t n) {
    std::vector<int> p(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++) {
      const int64_t j = below(i + 1);
      p.data()[i] = p.data()[j];
      p.data()[j] = static_cast<int>(i);
    }
    return p;
  }
};

/* An array on the device with a guard behind its end. The destructor checks
   that no kernel overwrote the guard. The constructors wait: copies from memory
   that is not pinned, and what cudaMemset does, may still be under way when
   these calls return, and streams that do not block would not wait for them. */
template <class T> struct on_device {
  enum { GUARD = 64 };
  T *p = nullptr;
  size_t count;

  explicit on_device(int64_t n, int fill = 0xff)
      : count(static_cast<size_t>(n)) {
    MUST(cudaMalloc(reinterpret_cast<void **>(&p), count * sizeof(T) + GUARD));
    MUST(cudaMemset(p, fill, count * sizeof(T)));
    MUST(cudaMemset(p + count, 0x5a, GUARD));
    MUST(cudaDeviceSynchronize());
  }
  explicit on_device(const std::vector<T> &v)
      : on_device(static_cast<int64_t>(v.size())) {
    MUST(cudaMemcpy(p, v.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
  }
  on_device(const on_device &) = delete;
  ~on_device() {
    unsigned char guard[GUARD], whole[GUARD];
    memset(whole, 0x5a, GUARD);
    MUST(cudaMemcpy(guard, p + count, GUARD, cudaMemcpyDeviceToHost));
    CHECK_MEM_EQ(guard, whole, GUARD);
    MUST(cudaFree(p));
  }
  std::vector<T> get() const {
    std::vector<T> v(count);
    MUST(cudaMemcpy(v.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
  operator T *() const { return p; }
};

template <class T> bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

inline unsigned bits_of(float v) {
  unsigned b;
  memcpy(&b, &v, sizeof b);
  return b;
}

#endif
