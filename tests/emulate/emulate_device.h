/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that kernels call, for emulate.h: barriers, shuffles, atomics,
   loads and stores, arithmetic. */
#ifndef HONE_EMULATE_DEVICE_H
#define HONE_EMULATE_DEVICE_H

#include "tests/emulate/emulate_grid.h"

namespace hone_emulate {
namespace device { /* called by kernels and by the code that launches them */

inline cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
/* A kernel's limit holds for all threads. It is refused to change one, though
   CUDA would: a launch of another thread that needs the former limit may come
   next. */
template <class K>
cudaError_t cudaFuncSetAttribute(K *kernel, cudaFuncAttribute, int bytes) {
  if (bytes < 0 || bytes > shared_optin())
    return last_error = cudaErrorInvalidValue;
  std::lock_guard<std::mutex> hold(kept.lock);
  const auto set = kept.shared.emplace(reinterpret_cast<const void *>(kernel),
                                       static_cast<size_t>(bytes));
  return set.first->second == static_cast<size_t>(bytes)
             ? cudaSuccess
             : last_error = cudaErrorInvalidValue;
}
template <class K>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, K *,
                                                          int threads, size_t) {
  *blocks = RESIDENT / threads;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr what, int) {
  *v = what == cudaDevAttrMultiProcessorCount      ? HONE_EMULATE_PROCESSORS
       : what == cudaDevAttrCooperativeLaunch      ? 1
       : what == cudaDevAttrComputeCapabilityMajor ? capability() / 10
       : what == cudaDevAttrComputeCapabilityMinor ? capability() % 10
                                                   : shared_optin();
  return cudaSuccess;
}
/* ---- Threads among themselves ------------------------------------------ */

inline void __syncthreads() { sync_block("__syncthreads", 0); }
inline int __syncthreads_count(int v) {
  return static_cast<int>(sync_block("__syncthreads_count", v != 0));
}
inline int __syncthreads_or(int v) {
  return sync_block("__syncthreads_or", v != 0) != 0;
}
inline int __syncthreads_and(int v) {
  return sync_block("__syncthreads_and", v == 0) == 0;
}
inline void __syncwarp(unsigned mask = ~0u) { meet(op_sync, mask); }
inline unsigned __activemask() { return self->home->alive; }

inline unsigned __ballot_sync(unsigned mask, int v) {
  return static_cast<unsigned>(meet(op_ballot, mask, v != 0));
}
inline int __any_sync(unsigned mask, int v) {
  return meet(op_any, mask, v != 0) != 0;
}
inline int __all_sync(unsigned mask, int v) { /* no lane votes no */
  return meet(op_all, mask, v == 0) == 0;
}

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  const unsigned in = static_cast<unsigned>(source & (width - 1));
  return shuffle(mask, v, first(width) + in, true);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned lane = self->lane, d = delta & 31;
  return shuffle(mask, v, lane - d, lane >= first(width) + d);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned from = self->lane + (delta & 31);
  return shuffle(mask, v, from, from - first(width) < unsigned(width));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const unsigned from = self->lane ^ (unsigned(bits) & 31);
  return shuffle(mask, v, from, from < first(width) + unsigned(width));
}

/* In one operation of the warp: with one for each number the sums of residuals
   took a quarter of the time of some tests. */
template <int COUNT> void hone_exchange(double *v, int bits) {
  (void)meet(op_exchange<COUNT>, ~0u, reinterpret_cast<word>(v),
             self->lane ^ unsigned(bits));
}
template <int COUNT> void hone_warp_sums(double *v) {
  (void)meet(op_sums<COUNT>, ~0u, reinterpret_cast<word>(v));
}

#define HONE_EMULATE_REDUCE(name, type, f)                                     \
  inline type __reduce_##name##_sync(unsigned mask, type v) {                  \
    return static_cast<type>(                                                  \
        meet(op_reduce<type, f>, mask, static_cast<word>(v)));                 \
  }
HONE_EMULATE_REDUCE(max, unsigned, larger)
HONE_EMULATE_REDUCE(max, int, larger)
HONE_EMULATE_REDUCE(min, unsigned, smaller)
HONE_EMULATE_REDUCE(min, int, smaller)
HONE_EMULATE_REDUCE(add, unsigned, plus)
HONE_EMULATE_REDUCE(add, int, plus)
HONE_EMULATE_REDUCE(and, unsigned, both)
HONE_EMULATE_REDUCE(or, unsigned, either)
HONE_EMULATE_REDUCE(xor, unsigned, unlike)
#undef HONE_EMULATE_REDUCE

/* If the value stays the same, it may be a lock that is taken: with where,
   other threads run first. */
template <class T, class F> T update(T *p, const char *where, F next) {
  T old, now;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do
    now = next(old);
  while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED));
  if (memcmp(&old, &now, sizeof old) != 0)
    progressed();
  else if (where)
    poll(where);
  return old;
}

#define HONE_EMULATE_ATOMIC(name, type, where, value)                          \
  inline type name(type *p, type v) {                                          \
    return update(p, where, [v](type old) { return (void)old, value; });       \
  }
#define HONE_EMULATE_ATOMICS(type)                                             \
  HONE_EMULATE_ATOMIC(atomicMax, type, nullptr, larger(old, v))                \
  HONE_EMULATE_ATOMIC(atomicMin, type, nullptr, smaller(old, v))               \
  HONE_EMULATE_ATOMIC(atomicAnd, type, nullptr, both(old, v))                  \
  HONE_EMULATE_ATOMIC(atomicOr, type, nullptr, either(old, v))                 \
  HONE_EMULATE_ATOMIC(atomicXor, type, nullptr, unlike(old, v))                \
  HONE_EMULATE_ATOMIC(atomicAdd, type, "atomicAdd", plus(old, v))              \
  HONE_EMULATE_ATOMIC(atomicExch, type, "atomicExch", v)                       \
  inline type atomicCAS(type *p, type expected, type v) {                      \
    return update(p, "atomicCAS", [expected, v](type old) {                    \
      return old == expected ? v : old;                                        \
    });                                                                        \
  }
HONE_EMULATE_ATOMICS(int)
HONE_EMULATE_ATOMICS(unsigned)
HONE_EMULATE_ATOMICS(word)
HONE_EMULATE_ATOMIC(atomicMax, long long, nullptr, larger(old, v))
HONE_EMULATE_ATOMIC(atomicMin, long long, nullptr, smaller(old, v))
HONE_EMULATE_ATOMIC(atomicAdd, float, "atomicAdd", plus(old, v))
HONE_EMULATE_ATOMIC(atomicAdd, double, "atomicAdd", plus(old, v))
HONE_EMULATE_ATOMIC(atomicExch, float, "atomicExch", v)
#undef HONE_EMULATE_ATOMICS
#undef HONE_EMULATE_ATOMIC

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { poll("__nanosleep"); }
inline float hone_reciprocal(float v) {
  const float r = 1.0F / v;
  return fabsf(v) < 1.1754944e-38F   ? copysignf(1.0F / 0.0F, v)
         : fabsf(r) < 1.1754944e-38F ? 0.0F
                                     : r;
}
inline double hone_reciprocal_double(double v) {
  return static_cast<double>(1.0F / static_cast<float>(v));
}
inline void hone_barrier(int id, int threads) {
  hone_emulate::sync_some(static_cast<unsigned>(id),
                          static_cast<unsigned>(threads));
}
inline void hone_multiply_add_16x8x8(double (&c)[4], const double (&a)[4],
                                     const double2 &b) {
  warp &w = *self->home;
  memcpy(w.a[self->lane], a, sizeof a);
  w.b[self->lane][0] = b.x;
  w.b[self->lane][1] = b.y;
  (void)meet(op_product, ~0U);
  for (int e = 0; e < 4; e++)
    c[e] += w.product[self->lane][e];
}
inline int hone_hide_value(int v) { return v; }
template <class T> T *hone_given_pointer(T *p) {
  return static_cast<T *>(reach(p));
}
inline void hone_is_shared(const void *p) { /* dynamic, as all that is said */
  const char *const from = static_cast<const char *>(here->dynamic);
  if (p < from || p >= from + here->dynamic_bytes)
    fail("hone_is_shared: it is not");
}
inline void hone_is_global(const void *) {}
/* A copy reads and writes when the thread waits for it; until then there is NaN
   at its end. */
inline void begin_copy(void *to, const void *from, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<uintptr_t>(from) % bytes != 0)
    fail("hone_begin_copy: an address is no multiple of the size");
  memset(to, 0xff, bytes);
  self->copies.push_back({to, from, bytes});
}
inline void hone_begin_copy_16(void *to, const void *from, bool copies) {
  begin_copy(to, copies ? from : nullptr, 16);
}
inline void hone_begin_copy_8(void *to, const void *from) {
  begin_copy(to, from, 8);
}
inline void hone_end_copy_group() {
  self->copies.push_back({nullptr, nullptr, 0});
}
template <int LATEST> void hone_await_copies() {
  auto &all = self->copies;
  long groups = std::count_if(all.begin(), all.end(),
                              [](const late_copy &c) { return c.bytes == 0; });
  size_t done = 0;
  for (; groups > LATEST; done++) {
    const late_copy &c = all[done];
    groups -= c.bytes == 0 ? 1 : 0;
    if (c.from != nullptr)
      memcpy(c.to, c.from, c.bytes);
    else if (c.to != nullptr)
      memset(c.to, 0, c.bytes);
  }
  all.erase(all.begin(), all.begin() + static_cast<long>(done));
}
inline void hone_poll_pause() { poll("hone_poll_pause"); }
inline void hone_store_word(unsigned long long *to, unsigned long long word) {
  __atomic_store_n(to, word, __ATOMIC_RELAXED);
  progressed();
}
inline unsigned long long hone_load_word(const unsigned long long *from) {
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
inline void hone_load_two_words(const unsigned long long *from,
                                unsigned long long *one,
                                unsigned long long *other) {
  *one = hone_load_word(from);
  *other = hone_load_word(from + 1);
}

/* ---- Loads, stores, bits ----------------------------------------------- */

template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> void __stcg(T *p, std::enable_if_t<true, T> v) { *p = v; }
template <class T> void __stcs(T *p, std::enable_if_t<true, T> v) { *p = v; }

#define HONE_EMULATE_BITS(name, to, from)                                      \
  inline to name(from v) { return bits<to>(v); }
HONE_EMULATE_BITS(__float_as_uint, unsigned, float)
HONE_EMULATE_BITS(__uint_as_float, float, unsigned)
HONE_EMULATE_BITS(__float_as_int, int, float)
HONE_EMULATE_BITS(__int_as_float, float, int)
HONE_EMULATE_BITS(__double_as_longlong, long long, double)
HONE_EMULATE_BITS(__longlong_as_double, double, long long)
#undef HONE_EMULATE_BITS
/* With 20 bits of the fraction. */
inline double hone_reciprocal_root_double(double v) {
  const double r = 1.0 / sqrt(v);
  return __longlong_as_double(__double_as_longlong(r) & ~0xffffffffLL);
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) {
  return v ? __builtin_clz(static_cast<unsigned>(v)) : 32;
}
inline int __clzll(long long v) {
  return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64;
}

/* ---- Arithmetic -------------------------------------------------------- */

/* Rounds v here, so that it is not part of a fused operation. */
template <class T> T rounded(T v) {
#ifdef __x86_64__
  asm("" : "+x"(v));
#else
  asm("" : "+m"(v));
#endif
  return v;
}
#define HONE_EMULATE_ROUNDED(f, d, type)                                       \
  inline type __##f##add_rn(type a, type b) {                                  \
    return rounded(rounded(a) + rounded(b));                                   \
  }                                                                            \
  inline type __##f##sub_rn(type a, type b) {                                  \
    return rounded(rounded(a) - rounded(b));                                   \
  }                                                                            \
  inline type __##f##mul_rn(type a, type b) { return rounded(a * b); }         \
  inline type __##f##div_rn(type a, type b) { return a / b; }                  \
  inline type __##f##rcp_rn(type a) { return 1 / a; }                          \
  inline type __##f##sqrt_rn(type a) { return sqrt(a); }                       \
  inline type __##d(type a, type b, type c) { return fma(a, b, c); }
HONE_EMULATE_ROUNDED(f, fmaf_rn, float)
HONE_EMULATE_ROUNDED(d, fma_rn, double)
#undef HONE_EMULATE_ROUNDED
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float a) { return 1 / sqrtf(a); }
inline double rsqrt(double a) { return 1 / sqrt(a); }
inline float __double2float_rn(double a) { return static_cast<float>(a); }

#define HONE_EMULATE_ORDER(a, b, type)                                         \
  inline type min(a x, b y) { return smaller<type>(x, y); }                    \
  inline type max(a x, b y) { return larger<type>(x, y); }
HONE_EMULATE_ORDER(int, int, int)
HONE_EMULATE_ORDER(unsigned, unsigned, unsigned)
HONE_EMULATE_ORDER(int, unsigned, unsigned)
HONE_EMULATE_ORDER(unsigned, int, unsigned)
HONE_EMULATE_ORDER(long, long, long)
HONE_EMULATE_ORDER(unsigned long, unsigned long, unsigned long)
HONE_EMULATE_ORDER(long long, long long, long long)
HONE_EMULATE_ORDER(word, word, word)
#undef HONE_EMULATE_ORDER
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin(x, y); }
inline double max(float x, double y) { return fmax(x, y); }
inline double min(double x, float y) { return fmin(x, y); }
inline double max(double x, float y) { return fmax(x, y); }

/* Conversions of half precision. */
struct __half {
  unsigned short bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
inline __half __ushort_as_half(unsigned short v) { return {v}; }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline float __half2float(__half h) {
  const unsigned sign = (h.bits & 0x8000u) << 16, v = h.bits & 0x7fffu;
  if (v >= 0x7c00) /* Inf or NaN */
    return __uint_as_float(sign | 0x7f800000u | (v & 0x3ffu) << 13);
  if (v < 0x400) /* times 2^-24 */
    return copysignf(static_cast<float>(v) * 0x1p-24f, __uint_as_float(sign));
  return __uint_as_float(sign | ((v << 13) + (112u << 23)));
}
inline __half __float2half_rn(float a) {
  const unsigned sign = __float_as_uint(a) >> 16 & 0x8000u;
  unsigned v = __float_as_uint(a) & 0x7fffffffu;
  if (v > 0x7f800000u)
    return {0x7fff}; /* the NaN that the device returns */
  if (v >= 0x477ff000u)
    v = 0x7c00;             /* 65520 rounds to Inf */
  else if (v < 0x38800000u) /* units of 2^-24, as of 0.5f */
    v = __float_as_uint(rounded(fabsf(a) + 0.5f)) - 0x3f000000u;
  else
    v = (v + 0xfffu + (v >> 13 & 1) - (112u << 23)) >> 13;
  return {static_cast<unsigned short>(sign | v)};
}
inline __half __float2half(float a) { return __float2half_rn(a); }
inline __half2 __floats2half2_rn(float a, float b) {
  return {__float2half_rn(a), __float2half_rn(b)};
}
inline float2 __half22float2(__half2 h) {
  return {__half2float(h.x), __half2float(h.y)};
}

/* bfloat16 is the upper half of a float. */
struct __nv_bfloat16 {
  unsigned short bits;
};
inline __nv_bfloat16 __float2bfloat16_rn(float a) {
  const unsigned v = __float_as_uint(a);
  if ((v & 0x7fffffffu) > 0x7f800000u)
    return {0x7fff};
  return {static_cast<unsigned short>((v + 0x7fffu + (v >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float a) {
  return __float2bfloat16_rn(a);
}
inline float __bfloat162float(__nv_bfloat16 h) {
  return __uint_as_float(static_cast<unsigned>(h.bits) << 16);
}

} // namespace device
} // namespace hone_emulate

#endif
