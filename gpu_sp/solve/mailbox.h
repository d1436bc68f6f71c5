// SPDX-License-Identifier: BSD-3-Clause
// The mailboxes in which the thread blocks of a sweep post their parts of v. A
// word is EMPTY until it is written: the value is its own flag, so no fence and
// no second access to memory stands between the thread blocks. Device code;
// included by sweep.h alone. Read that next.
#ifndef HONE_CUDA_MAILBOX_H
#define HONE_CUDA_MAILBOX_H

#include "gpu_sp/solve/tile.h"

namespace {

constexpr long long EMPTY = -1; // a NaN that is never posted

// The v of a block row, as its words arrive in the mailbox.
template <int K> struct Inbox {
  static constexpr int WORDS = (K * B + THREADS - 1) / THREADS;
  static constexpr bool ALL = K * B % THREADS == 0; // every thread has WORDS
  long long word[WORDS];
  const volatile long long *from;

  __device__ inline void request(const long long *box, int64_t block) {
    const int t = static_cast<int>(threadIdx.x);
    from = box + block * (K * B) + t;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      word[w] = ALL || t < K * B ? from[w * THREADS] : 0;
  }
  // far: more than one block row is to finish before; this one then sleeps, and
  // leaves the memory to the next.
  __device__ inline void await(bool far) {
    const int t = static_cast<int>(threadIdx.x);
#ifdef HONE_EMULATE
    far = true; // there a sleeping thread is what lets others run
#endif
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (ALL || t < K * B) {
        while (word[w] == EMPTY) {
          if (far)
            __nanosleep(100);
          word[w] = from[w * THREADS];
        }
      }
  }
  __device__ inline void wait(double *values, bool far) {
    const int t = static_cast<int>(threadIdx.x);
    await(far);
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (ALL || t < K * B)
        values[t + w * THREADS] = __longlong_as_double(word[w]);
    __syncthreads();
  }
};

// Posts an entry; a NaN as one that is not EMPTY.
__device__ inline void post(long long *word, double v) {
  const long long bits =
      v == v ? __double_as_longlong(v) : 0x7ff8000000000000LL;
  *static_cast<volatile long long *>(word) = bits;
}

} // namespace

#endif
