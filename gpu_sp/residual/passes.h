/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads of A in double precision, two entries at once, and the launch sizes
   that the passes over A share. Device code; included by residual.cu and
   inspect.cu alone. Read these next. */
#ifndef HONE_CUDA_PASSES_H
#define HONE_CUDA_PASSES_H

#include "gpu_sp/entries.h"
#include "gpu_sp/residual/residual.h"

namespace {

enum {
  WARP = 32,
  THREADS = 256,
  WARPS = THREADS / WARP,
  BLOCKS = 4 /* thread blocks that an SM shall hold at once */
};

constexpr unsigned ALL = 0xFFFFFFFFU;

/* Two doubles loaded at once. */
struct alignas(16) pair {
  double x, y;
};

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline unsigned blocks_of(int64_t a, int64_t b) {
  return static_cast<unsigned>(divide_up(a, b));
}

inline bool aligned(const void *p, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

/* Returns true if all columns start at multiples of 16 bytes. */
inline bool pairs_aligned(const hone_entry *a, int64_t lda) {
  return aligned(a, sizeof(pair)) && lda * HONE_PARTS % 2 == 0;
}

template <bool PAIRS> __device__ inline pair load(const double *p) {
  return PAIRS ? *reinterpret_cast<const pair *>(p) : pair{p[0], p[1]};
}

enum { LOAD_ROWS = 2 / HONE_PARTS }; /* rows of a column in one load */

#ifdef HONE_COMPLEX

typedef pair entry; /* (re, im) */

template <bool PAIRS> __device__ inline pair load(const hone_entry *p) {
  return PAIRS ? *reinterpret_cast<const pair *>(p) : pair{p->re, p->im};
}
template <bool PAIRS> __device__ inline entry load_entry(const hone_entry *p) {
  return load<PAIRS>(p);
}

#else

typedef double entry;

template <bool PAIRS> __device__ inline entry load_entry(const double *p) {
  return *p;
}

#endif

} // namespace

#endif
