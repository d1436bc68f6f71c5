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

/* How R x C threads hold a matrix of order up to N, of numbers of P parts: a
   warp has 8 of R and 4 of C, lane l those with r = l / 4 and c = l % 4 mod
   these, as tensor cores want it. Or, with C = 1, a lane has a row, and a
   thread block of one warp several SYSTEMS. DEFINITE: the matrices are said to
   be positive definite, and no pivot is looked for. */
template <int P_, int R_, int C_, int N_, bool DEFINITE_ = false> struct shape {
  static constexpr int P = P_, R = R_, C = C_, N = N_;
  static constexpr bool DEFINITE = DEFINITE_;
  static constexpr int THREADS = R * C, WARPS = (THREADS + 31) / 32;
  static constexpr int SYSTEMS = THREADS < 32 ? 32 / THREADS : 1;
  static constexpr int BLOCK = THREADS * SYSTEMS;
  static constexpr int TR = N / R, TC = N / C;
  static constexpr bool WHOLE_ROWS = C == 1; /* of the matrix, in a thread */
  static_assert(N % R == 0 && N % C == 0 && THREADS >= N,
                "a thread has whole rows and columns of entries, and each row "
                "a thread");
  static_assert(WHOLE_ROWS
                    ? TR == 1 && 32 % R == 0
                    : R % 8 == 0 && C % 4 == 0 && TR % 2 == 0 && TC % 2 == 0,
                "a lane has a row, or a warp tiles of 16 x 8 entries");
  /* Warps along rows, and along columns. */
  static constexpr int WARP_ROWS = WHOLE_ROWS ? 1 : R / 8;
  static constexpr int WARP_COLUMNS = WHOLE_ROWS ? 1 : C / 4;
  /* A panel of the elimination: its columns, those that a thread has of them,
     and the warps, or the lanes, that have a row of it each. */
  static constexpr int NB = WHOLE_ROWS ? N : 8;
  static constexpr int PANEL_COLUMNS = NB / C;
  static constexpr int LANES = THREADS < 32 ? THREADS : 32;
  static constexpr int PANEL_WARPS = N / LANES;
  static_assert(NB % C == 0 && N % NB == 0 && N % LANES == 0,
                "a thread has as many columns of each panel, and whole warps "
                "have its rows");
  static_assert(!DEFINITE || (!WHOLE_ROWS && N % 16 == 0),
                "definite matrices are eliminated by tiles");
  static constexpr int K = 2 / P;                  /* random vectors at once */
  static constexpr int ROUNDINGS = P == 1 ? 1 : 3; /* as in base/entry.h */
  /* Parts of rows and of columns in shared memory lie so far apart that lanes
     use different banks. Of a row there are two doubles for each part, and one.
   */
  static constexpr int PANEL_STRIDE = N + 4 / P;
  static constexpr int KEPT_STRIDE = WHOLE_ROWS ? N : PANEL_STRIDE;
  static constexpr int ROW_STRIDE = N + 8;
  static constexpr int COLUMN_STRIDE = WHOLE_ROWS ? N + 1 : N + 4;
  static constexpr int ROW_PARTS = (2 * P + 1) * C * ROW_STRIDE;
  static constexpr int COLUMN_PARTS = R * COLUMN_STRIDE;
  static constexpr int PARTIAL =
      ROW_PARTS > COLUMN_PARTS ? ROW_PARTS : COLUMN_PARTS;
};

/* Panels (eliminate.h), one behind the other in turn where threads wait for one
   another in a barrier, and the rows of the pivots of one. Of a definite matrix
   (definite.h) there are a panel, the rows and the diagonal block of the next
   one, in turn where there is room, and the inverse of its own block. */
template <class S> struct panel_buffers {
  using entry = number<S::P>;
  static constexpr int ROWS = S::WHOLE_ROWS ? 1 : S::NB;
  static constexpr int TURNS = S::DEFINITE && S::WARPS >= 8 ? 2 : 1;
  static constexpr int PANELS = S::DEFINITE ? TURNS : S::WARPS > 1 ? 2 : 1;
  static constexpr int DIAGONAL_ROWS = S::DEFINITE ? S::NB : 1;
  alignas(16) entry at[PANELS][ROWS][S::PANEL_STRIDE];
  alignas(16) entry pivot_rows[TURNS][ROWS][S::PANEL_STRIDE];
  alignas(16) entry diagonal[TURNS][DIAGONAL_ROWS][S::NB + 4 / S::P];
  alignas(16) entry inverse[DIAGONAL_ROWS][S::NB + 4 / S::P];
};

/* The shared memory of a system. */
template <class S> struct shared_memory {
  using entry = number<S::P>;
  /* Rows that may have the pivot, with it and its reciprocal, by warps. */
  alignas(16) entry given[2][S::PANEL_WARPS][S::NB + 2];
  alignas(16) entry kept[S::N][S::KEPT_STRIDE]; /* S, column by column */
  unsigned keys[2][S::PANEL_WARPS];
  entry c[S::N], y[S::N], r[S::N], d[S::N]; /* R b, inv(C) x, residual, step */
  entry v[S::K][S::N], product[S::K][S::N]; /* random vectors; S v */
  entry pivot[S::N];
  double row[S::N], col[S::N]; /* R and C, powers of two */
  double den[S::N];            /* |S| |y| + |c| */
  double rows[S::N];           /* bounds on the 2-norms of the rows of E */
  union {
    double partial[S::PARTIAL];
    panel_buffers<S> of_panel;
  };
  double scratch[S::WARPS > 1 ? 8 : 1][S::WARPS];
  double smallest; /* pivot */
  int from[S::N];  /* row from[k] of S had pivot k */
  int place[S::N]; /* the inverse permutation */
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
  static constexpr int P = S::P, N = S::N, ROUNDINGS = S::ROUNDINGS;
  static constexpr int CHAIN = S::TC; /* columns of a thread's sums */
  entry m[S::TR][S::TC];
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

  /* The entry of S in the thread's place (ii, jj); outside of the matrix, that
     of the unit matrix. */
  __device__ __forceinline__ entry entry_of_s(int ii, int jj) const {
    return s->kept[j_of(jj)][i_of(ii)];
  }

  /* Combines what the threads of a row have: the result is that of row
     'thread'. */
  template <class Op>
  __device__ __forceinline__ double over_columns(const double (&v)[S::TR],
                                                 Op op) const {
    double out = S::WHOLE_ROWS ? v[0] : 0.0;
    sync();
    if constexpr (!S::WHOLE_ROWS) {
#pragma unroll
      for (int ii = 0; ii < S::TR; ii++)
        s->partial[c * S::ROW_STRIDE + i_of(ii)] = v[ii];
      sync();
      if (thread < S::N)
#pragma unroll(8)
        for (int k = 0; k < S::C; k++)
          out = op(out, s->partial[k * S::ROW_STRIDE + thread]);
    }
    return out;
  }

  template <class Op>
  __device__ __forceinline__ double over_rows(const double (&v)[S::TC],
                                              Op op) const {
    sync();
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      s->partial[r * S::COLUMN_STRIDE + j_of(jj)] = v[jj];
    sync();
    double out = 0.0;
    if (thread < S::N)
#pragma unroll(8)
      for (int k = 0; k < S::R; k++)
        out = op(out, s->partial[k * S::COLUMN_STRIDE + thread]);
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
    sync(); /* where nothing is shared too: callers write what others read */
    if constexpr (S::WHOLE_ROWS) {
#pragma unroll
      for (int k = 0; k < K; k++)
        sum[k] = own[k][0];
    } else {
      sum_parts<K>(own, sum);
    }
  }

private:
  /* The sums of row 'thread' from those of the threads of the row. */
  template <int K>
  __device__ __forceinline__ void sum_parts(const entry (&own)[K][S::TR],
                                            entry (&sum)[K]) const {
    entry *partial = reinterpret_cast<entry *>(s->partial);
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int ii = 0; ii < S::TR; ii++)
        partial[(k * S::C + c) * S::ROW_STRIDE + i_of(ii)] = own[k][ii];
    sync();
#pragma unroll
    for (int k = 0; k < K; k++) {
      sum[k] = make<S::P>(0.0);
      if (thread < S::N)
#pragma unroll
        for (int q = 0; q < S::C; q++)
          sum[k] =
              sum_of(sum[k], partial[(k * S::C + q) * S::ROW_STRIDE + thread]);
    }
  }
};

} // namespace

#endif
