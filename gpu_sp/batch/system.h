/* SPDX-License-Identifier: BSD-3-Clause */
/* One system of a batch, and the threads that solve it, a thread block or some
   lanes of a warp: which thread has which part of the matrix, and sums and
   largest numbers over rows, columns and all threads. The matrix lies in
   registers: a thread has the entries (i, j) with i = r mod R and j = c mod C.
   Device code. Next to read: invert.h. */
#ifndef HONE_DEVICE_BATCH_SYSTEM_H
#define HONE_DEVICE_BATCH_SYSTEM_H

#include "gpu_sp/batch/verdict.h"

namespace {

/* How R x C threads hold a matrix of order up to N, of numbers of P parts.
   Where these are fewer than a warp has, a thread block of one warp has several
   SYSTEMS. SHUFFLED: within a warp, sums over rows and columns are by shuffles,
   not by way of shared memory. T: of what the inverse is made; vectors are of
   doubles, and so is all arithmetic with them. */
template <int P_, int R_, int C_, int N_, bool SHUFFLED_ = false,
          class T_ = double>
struct shape {
  using T = T_;
  static constexpr bool SINGLE = sizeof(T) < sizeof(double);
  static constexpr int P = P_, R = R_, C = C_, N = N_;
  static constexpr int THREADS = R * C, WARPS = (THREADS + 31) / 32;
  static constexpr int SYSTEMS = THREADS < 32 ? 32 / THREADS : 1;
  static constexpr int BLOCK = THREADS * SYSTEMS;
  static constexpr int TR = N / R, TC = N / C;
  static constexpr bool SHUFFLED = SHUFFLED_;
  static constexpr bool WHOLE_ROWS = C == 1; /* of the matrix, in a thread */
  static_assert(!SHUFFLED || (THREADS <= 32 && R <= N && C <= N),
                "a warp has the matrix");
  static_assert(!WHOLE_ROWS || TR == 1, "a thread has one row");
  static constexpr int K = 2 / P;                  /* random vectors at once */
  static constexpr int ROUNDINGS = P == 1 ? 1 : 3; /* as in base/entry.h */
  /* Sums of parts of rows: two doubles for each part, and one. */
  static constexpr int ROW_SUMS = (2 * P + 1) * C;
  /* Sums of parts of columns: one for each warp where a warp has one column. */
  static constexpr bool WARP_COLUMNS = R % 32 == 0;
  static constexpr int COLUMN_SUMS = WARP_COLUMNS ? R / 32 : R;
  static constexpr int PARTIAL =
      (COLUMN_SUMS > ROW_SUMS ? COLUMN_SUMS : ROW_SUMS) * N;
  static_assert(N % R == 0 && N % C == 0 && THREADS >= N &&
                    (THREADS % 32 == 0 || 32 % THREADS == 0),
                "a thread has whole rows and columns of entries, and each row "
                "a thread");
  static_assert(R % 32 == 0 || 32 % R == 0, "a column has whole warps, or one");
};

/* Return the number that another lane has: the lanes that have a system count
   from 0, and the mask names them. */
template <int LANES>
__device__ __forceinline__ double shuffled(unsigned mask, double v, int lane) {
  return __shfl_sync(mask, v, lane, LANES);
}
template <int LANES>
__device__ __forceinline__ double shuffled_xor(unsigned mask, double v,
                                               int by) {
  return __shfl_xor_sync(mask, v, by, LANES);
}
template <int LANES, int P>
__device__ __forceinline__ number<P> shuffled(unsigned mask, number<P> v,
                                              int lane) {
  for (int p = 0; p < P; p++)
    v.part[p] = shuffled<LANES>(mask, v.part[p], lane);
  return v;
}
template <int LANES, int P>
__device__ __forceinline__ number<P> shuffled_xor(unsigned mask, number<P> v,
                                                  int by) {
  for (int p = 0; p < P; p++)
    v.part[p] = shuffled_xor<LANES>(mask, v.part[p], by);
  return v;
}

/* The shared memory of a system. */
template <class S> struct shared_memory {
  using entry = number<S::P>;
  using factor = number_of<S::P, typename S::T>;
  entry c[S::N], y[S::N], r[S::N], d[S::N];  /* R b, inv(C) x, residual, step */
  factor column[2][S::N];                    /* of a step of the elimination; */
  alignas(16) factor pivot_row[S::C][S::TC]; /* for the threads of every c */
  entry v[S::K][S::N], product[S::K][S::N];  /* random vectors; S v */
  entry pivot[S::N];
  double row[S::N], col[S::N]; /* R and C, powers of two */
  double den[S::N];            /* |S| |y| + |c| */
  double rows[S::N];           /* bounds on the 2-norms of the rows of E */
  double partial[S::PARTIAL];
  double scratch[8][32];
  unsigned keys[2][S::R / 32 + 1]; /* the largest of a column, by warps */
  int from[S::N];                  /* row from[k] of S had pivot k */
  int place[S::N];                 /* the inverse permutation */
};

/* The shared memory of a thread block: where it has several systems, their
   parts begin half of all banks apart, since their lanes read the same members
   at a time. */
template <class S>
constexpr size_t
    SHARED_STRIDE = S::SYSTEMS == 1
                        ? sizeof(shared_memory<S>)
                        : (sizeof(shared_memory<S>) + 127) / 128 * 128 + 64;
template <class S> constexpr size_t SHARED_BYTES = SHARED_STRIDE<S> *S::SYSTEMS;

/* A thread's part of a system. */
template <class S> struct system {
  using entry = number<S::P>;
  using factor = number_of<S::P, typename S::T>;
  static constexpr int P = S::P, N = S::N, ROUNDINGS = S::ROUNDINGS;
  /* With an inverse in single precision, an x needs more corrections; before
     the first ones nobody asks how good it is. */
  static constexpr bool SINGLE = S::SINGLE;
  static constexpr int CORRECTIONS = SINGLE ? 6 : 3, UNSEEN = SINGLE ? 2 : 0;
  factor m[S::TR][S::TC];
  shared_memory<S> *s;
  const hone_device_systems *in;
  const entry *a;
  unsigned own_lanes; /* the lanes of the warp that have this system */
  int n, thread, r, c;

  __device__ __forceinline__ unsigned lanes() const {
    return S::SYSTEMS == 1 ? ALL : own_lanes;
  }
  __device__ __forceinline__ int i_of(int ii) const { return r + S::R * ii; }
  __device__ __forceinline__ int j_of(int jj) const { return c + S::C * jj; }
  __device__ __forceinline__ bool is_row() const { return thread < n; }

  __device__ __forceinline__ void sync() const {
    if constexpr (S::WARPS == 1)
      __syncwarp(lanes());
    else
      sync_threads<S::WARPS>();
  }

  /* Returns the entry in the thread's place (ii, jj), of S or of its
     inverse. */
  __device__ __forceinline__ entry at(int ii, int jj) const {
    return widened(m[ii][jj]);
  }

  /* Entry (i, j) of op(A); outside of it, that of the unit matrix. */
  __device__ __forceinline__ entry entry_of_a(int i, int j) const {
    if (i >= n || j >= n)
      return make<S::P>(i == j ? 1.0 : 0.0);
    entry e = a[i * in->by_row + j * in->by_column];
    if (S::P == 2 && in->conjugate)
      e.part[S::P - 1] = -e.part[S::P - 1];
    return e;
  }

  /* Entry (i, j) of S = R op(A) C. */
  __device__ __forceinline__ entry entry_of_s(int i, int j) const {
    return scaled(entry_of_a(i, j), s->row[i] * s->col[j]);
  }

  /* Combines what threads have that are FROM, 2 FROM, ... below TO apart, and
     tells each what the lane has that 'from' names, for one of M numbers, the
     'which'-th. */
  template <int FROM, int TO, int M, class T, class Op>
  __device__ __forceinline__ T by_shuffles(const T (&v)[M], Op op, int from,
                                           int which) const {
    constexpr int LANES = S::THREADS;
    T out = {};
    sync();
#pragma unroll
    for (int q = 0; q < M; q++) {
      T all = v[q];
#pragma unroll
      for (int by = FROM; by < TO; by *= 2)
        all = op(all, shuffled_xor<LANES>(lanes(), all, by));
      const T there = shuffled<LANES>(lanes(), all, from);
      out = which == q ? there : out;
    }
    sync(); /* as where shared memory is read: callers may overwrite theirs */
    return out;
  }

  /* Combines what the threads of a row have: the result is that of row
     'thread'. */
  template <class Op>
  __device__ __forceinline__ double over_columns(const double (&v)[S::TR],
                                                 Op op) const {
    if constexpr (S::WHOLE_ROWS) {
      sync(); /* as where shared memory is read */
      return v[0];
    }
    if constexpr (S::SHUFFLED)
      return by_shuffles<S::R, S::THREADS>(v, op, thread % S::R, thread / S::R);
    sync();
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      s->partial[c * S::N + i_of(ii)] = v[ii];
    sync();
    double out = 0.0;
    if (thread < S::N)
      for (int k = 0; k < S::C; k++)
        out = op(out, s->partial[k * S::N + thread]);
    return out;
  }

  template <class Op>
  __device__ __forceinline__ double over_rows(const double (&v)[S::TC],
                                              Op op) const {
    if constexpr (S::SHUFFLED)
      return by_shuffles<1, S::R>(v, op, thread % S::C * S::R, thread / S::C);
    sync();
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++) {
      double most = v[jj];
#pragma unroll
      for (int by = 16; S::WARP_COLUMNS && by > 0; by /= 2)
        most = op(most, __shfl_xor_sync(ALL, most, by));
      if (!S::WARP_COLUMNS)
        s->partial[r * S::N + j_of(jj)] = most;
      else if (r % 32 == 0)
        s->partial[r / 32 * S::N + j_of(jj)] = most;
    }
    sync();
    double out = 0.0;
    if (thread < S::N)
      for (int k = 0; k < S::COLUMN_SUMS; k++)
        out = op(out, s->partial[k * S::N + thread]);
    return out;
  }

  /* Combines M numbers of each thread; all threads get the results. */
  template <int M, class Op>
  __device__ __forceinline__ void all(double (&v)[M], Op op) const {
    if constexpr (S::WARPS == 1)
      combine_lanes<S::THREADS>(lanes(), v, op);
    else
      combine<S::WARPS>(s->scratch, thread, v, op);
  }

  /* f(i) for the rows of this thread, one at most; each_place: also for places
     behind the last row. */
  template <class F> __device__ __forceinline__ void each_row(F f) const {
    if (thread < n)
      f(thread);
  }
  template <class F> __device__ __forceinline__ void each_place(F f) const {
    if (thread < N)
      f(thread);
  }

  /* The sums of row 'thread' over its entries e(ii, jj) times those of vectors:
     sum[k] = sum_j e(i, j) by(k, j), by 'multiply'. UNROLL: entries are in
     registers, so that the loop over them must be unrolled. */
  template <int K, bool UNROLL, class Entry, class By, class Multiply>
  __device__ __forceinline__ void
  row_products(Entry e, By by, Multiply multiply, entry (&sum)[K]) const {
    entry own[K][S::TR] = {};
#pragma unroll(UNROLL ? S::TC : 1)
    for (int jj = 0; jj < S::TC; jj++) {
      entry v[K];
#pragma unroll
      for (int k = 0; k < K; k++)
        v[k] = by(k, j_of(jj));
#pragma unroll
      for (int ii = 0; ii < S::TR; ii++) {
        const entry at = e(ii, jj);
#pragma unroll
        for (int k = 0; k < K; k++)
          own[k][ii] = multiply(own[k][ii], at, v[k]);
      }
    }
    if constexpr (S::WHOLE_ROWS) {
      sync(); /* as where shared memory is read */
#pragma unroll
      for (int k = 0; k < K; k++)
        sum[k] = own[k][0];
      return;
    }
    if constexpr (S::SHUFFLED) {
#pragma unroll
      for (int k = 0; k < K; k++)
        sum[k] = by_shuffles<S::R, S::THREADS>(
            own[k], [](entry v, entry w) { return sum_of(v, w); },
            thread % S::R, thread / S::R);
      return;
    }
    entry *partial = reinterpret_cast<entry *>(s->partial);
    sync();
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int ii = 0; ii < S::TR; ii++)
        partial[(k * S::C + c) * S::N + i_of(ii)] = own[k][ii];
    sync();
#pragma unroll
    for (int k = 0; k < K; k++) {
      sum[k] = make<S::P>(0.0);
      if (thread < S::N)
#pragma unroll
        for (int q = 0; q < S::C; q++)
          sum[k] = sum_of(sum[k], partial[(k * S::C + q) * S::N + thread]);
    }
  }
};

} // namespace

#endif
