/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's keywords and vector types for emulate.h, and the settings of the
   emulation. */
#ifndef HONE_EMULATE_LANGUAGE_H
#define HONE_EMULATE_LANGUAGE_H

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(__x86_64__) && !defined(HONE_EMULATE_UCONTEXT)
#define HONE_EMULATE_UCONTEXT /* slower: it also saves the signal mask */
#endif
#ifdef HONE_EMULATE_UCONTEXT
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#ifndef HONE_EMULATE_WORKERS
#define HONE_EMULATE_WORKERS 2
#endif
#ifndef HONE_EMULATE_PROCESSORS
#define HONE_EMULATE_PROCESSORS 4 /* the number that the device reports */
#endif
#ifndef HONE_EMULATE_STACK
#define HONE_EMULATE_STACK 65536 /* bytes of a thread's stack */
#endif
#ifndef HONE_EMULATE_PATIENCE
#define HONE_EMULATE_PATIENCE                                                  \
  20 /* seconds that a grid may go without progress */
#endif

/* ---- The language ------------------------------------------------------ */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __clang__
#define __builtin_assume(x) ((x) ? (void)0 : hone_emulate::fail("assume: " #x))
#endif

/* Kernels read arrays of t by these, as nvcc allows. */
#define HONE_EMULATE_ALIAS [[gnu::may_alias]]
#define HONE_EMULATE_TYPE(t, name)                                             \
  struct alignas(2 * sizeof(t)) HONE_EMULATE_ALIAS name##2 {                   \
    t x, y;                                                                    \
  };                                                                           \
  struct HONE_EMULATE_ALIAS name##3 {                                          \
    t x, y, z;                                                                 \
  };                                                                           \
  struct alignas(sizeof(t) < 4 ? 4 * sizeof(t) : 16)                           \
      HONE_EMULATE_ALIAS name##4 {                                             \
    t x, y, z, w;                                                              \
  };                                                                           \
  inline name##2 make_##name##2(t x, t y) { return {x, y}; }                   \
  inline name##3 make_##name##3(t x, t y, t z) { return {x, y, z}; }           \
  inline name##4 make_##name##4(t x, t y, t z, t w) { return {x, y, z, w}; }
HONE_EMULATE_TYPE(signed char, char)
HONE_EMULATE_TYPE(unsigned char, uchar)
HONE_EMULATE_TYPE(short, short)
HONE_EMULATE_TYPE(unsigned short, ushort)
HONE_EMULATE_TYPE(int, int)
HONE_EMULATE_TYPE(unsigned, uint)
HONE_EMULATE_TYPE(long long, longlong)
HONE_EMULATE_TYPE(unsigned long long, ulonglong)
HONE_EMULATE_TYPE(float, float)
HONE_EMULATE_TYPE(double, double)
#undef HONE_EMULATE_TYPE
#undef HONE_EMULATE_ALIAS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1)
      : x(vx), y(vy), z(vz) {}
};

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

#endif
