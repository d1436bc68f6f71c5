/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches CUDA kernels, and wraps the few instructions that C++ has no word
   for. All kernels of gpu_sp/ use this. The tests put an emulation on the CPU
   in its place.

   Each folder declares its kernels by the host functions that enqueue them on a
   stream. None of those waits, allocates memory or touches the default stream;
   all return the error of the launch. Read next: feed/round.h,
   factor/factor.h, solve/triangles.h, residual/residual.h and forms/forms.h,
   in the order in which a matrix passes through them. */
#ifndef HONE_CUDA_LAUNCH_H
#define HONE_CUDA_LAUNCH_H

#ifdef HONE_EMULATE /* the tests compile the kernels for the CPU */
#include HONE_EMULATE
#define HONE_NOINLINE
#else
#define HONE_NOINLINE __noinline__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/* Launches a kernel: grid, block, bytes of dynamic shared memory, stream, then
   the kernel's arguments. */
#define HONE_LAUNCH(kernel, grid, block, shared, stream, ...)                  \
  kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
/* Launches a kernel whose thread blocks must all be resident at once. */
#define HONE_LAUNCH_COOPERATIVE(kernel, grid, block, shared, stream, ...)      \
  hone_launch_cooperative(kernel, grid, block, shared, stream, __VA_ARGS__)
template <class... P, class... A>
inline void hone_launch_cooperative(void (*kernel)(P...), int grid, int block,
                                    size_t shared, cudaStream_t stream,
                                    A... given) {
  auto call = [&](P... p) {
    void *list[] = {static_cast<void *>(&p)...};
    (void)cudaLaunchCooperativeKernel(
        reinterpret_cast<const void *>(kernel), dim3((unsigned)grid),
        dim3((unsigned)block), list, shared, stream);
  };
  call(given...);
}
/* Declares the dynamic shared memory as an array of the type. */
#define HONE_DYNAMIC_SHARED(type, name)                                        \
  extern __shared__ __align__(16) unsigned char hone_dynamic_shared[];         \
  type *name = reinterpret_cast<type *>(hone_dynamic_shared)
/* Relaxed stores and loads of words by which thread blocks tell each other
   numbers. Each word is complete in itself: no order among words, or between
   words and other memory, is needed. Every load reads memory anew. */
__device__ __forceinline__ void hone_store_word(unsigned long long *to,
                                                unsigned long long word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word)
               : "memory");
}
__device__ __forceinline__ unsigned long long
hone_load_word(const unsigned long long *from) {
  unsigned long long word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(word)
               : "l"(from)
               : "memory");
  return word;
}
/* Loads two words at an address that is a multiple of 16. Each is read whole,
   but not the two at one instant. */
__device__ __forceinline__ void
hone_load_two_words(const unsigned long long *from, unsigned long long *one,
                    unsigned long long *other) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(*one), "=l"(*other)
               : "l"(from)
               : "memory");
}
/* Returns v, and hides from the compiler that it is v. What a loop computes
   from it is then computed in the loop, instead of before it and kept in
   registers, which are scarce. */
__device__ __forceinline__ int hone_hide_value(int v) {
  asm volatile("" : "+r"(v));
  return v;
}
/* Returns p, an address that the caller gave within a structure or a list. (An
   emulated device has it elsewhere.) */
template <class T> __device__ __forceinline__ T *hone_given_pointer(T *p) {
  return p;
}
/* Tell the compiler that p lies in shared memory, or in the device's. In a
   function that is not inlined it would not know, and would use instructions
   that take longer and wider addresses. */
__device__ __forceinline__ void hone_is_shared(const void *p) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isShared(p));
#else
  (void)p;
#endif
}
__device__ __forceinline__ void hone_is_global(const void *p) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(p));
#else
  (void)p;
#endif
}
/* Begins to copy 16 bytes of device memory to shared memory, or to set them to
   zero there. */
__device__ __forceinline__ void hone_begin_copy_16(void *to, const void *from,
                                                   bool copies) {
#ifdef __CUDA_ARCH__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
               "l"(from), "r"(copies ? 16 : 0)
               : "memory");
#else
  (void)to, (void)from, (void)copies;
#endif
}
/* Begins to copy 8 bytes of device memory to shared memory. */
__device__ __forceinline__ void hone_begin_copy_8(void *to, const void *from) {
#ifdef __CUDA_ARCH__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from)
               : "memory");
#else
  (void)to, (void)from;
#endif
}
/* The copies that the thread has begun since the last call are a group. */
__device__ __forceinline__ void hone_end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Waits for all groups of the thread but the latest ones, so many. */
template <int LATEST> __device__ __forceinline__ void hone_await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
}
/* A waiting thread calls this between two loads; on a GPU it does nothing. */
__device__ __forceinline__ void hone_poll_pause() {}
/* About 23 bits of 1 / v; 0 or Inf where the result is not a normal number. */
__device__ __forceinline__ float hone_reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
/* About 20 bits of 1 / v. */
__device__ __forceinline__ double hone_reciprocal_double(double v) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(v));
  return r;
}
/* About 20 bits of 1 / sqrt(v), v a normal number. */
__device__ __forceinline__ double hone_reciprocal_root_double(double v) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(v));
  return r;
}
/* c = c + A B for the warp, A 16 x 8, B 8 x 8: lane l has of A the entries (r,
   k), (r + 8, k), (r, k + 4), (r + 8, k + 4), r = l / 4 and k = l % 4; of B (k,
   r) and (k + 4, r); of c (r, 2 k), (r, 2 k + 1), and both eight rows below. */
__device__ __forceinline__ void hone_multiply_add_16x8x8(double (&c)[4],
                                                         const double (&a)[4],
                                                         const double2 &b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b.x), "d"(b.y));
#else
  for (int e = 0; e < 4; e++) /* 8 x 4 entries of A */
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
        "{%0, %1};"
        : "+d"(c[2 * (e % 2)]), "+d"(c[2 * (e % 2) + 1])
        : "d"(a[e]), "d"(e < 2 ? b.x : b.y));
#endif
}
#ifdef __CUDACC__ /* the C++ compiler alone has no such instruction */
/* Each lane takes the COUNT numbers of the lane whose number differs from its
   own in the given bits. All of the warp take part. */
template <int COUNT>
__device__ __forceinline__ void hone_exchange(double *v, int bits) {
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    v[k] = __shfl_xor_sync(0xffffffffU, v[k], bits);
}
/* Each of the COUNT numbers becomes its sum over the lanes, in every lane with
   the same bits. All of the warp take part. */
template <int COUNT> __device__ __forceinline__ void hone_warp_sums(double *v) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2)
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      v[k] += __shfl_xor_sync(0xffffffffU, v[k], bits);
}
#endif
/* A barrier like __syncthreads for 'threads' threads of the thread block, a
   multiple of 32. */
__device__ __forceinline__ void hone_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#endif

#include <cstdint>

extern "C" {
#include "base/entry.h"
}

#endif
