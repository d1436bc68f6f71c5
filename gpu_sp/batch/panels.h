/* SPDX-License-Identifier: BSD-3-Clause */
/* A system whose inverse the registers of a thread block do not hold, or not as
   fast: its factors go through the registers by panels of NB columns and lie in
   device memory by groups of columns: of a row the group's numbers
   are 32 bytes, what memory is read by, and the next row's follow. So the lanes
   of a warp, which have neighbouring rows, go through neighbouring lines, and
   what one lane does not need is not read for another's sake. A thread has the
   same rows of op(A) during the factorization: none are exchanged for the
   pivots. At its end the rows are brought into the order of the pivots, in
   which all solves go through them.

   The factors are those of block LU: with the matrix [A11 A12; A21 A22], whose
   first NB rows are those with the pivots of the panel, the panel's rows become
   A11^-1 and -A21 A11^-1, and A12 stays as it is: A22 - A21 A11^-1 A12 is next.
   Neither factorization nor solves have a triangle in which one column waits
   for the one before. Device code. Next to read: panel_factor.h. */
#ifndef HONE_DEVICE_BATCH_PANELS_H
#define HONE_DEVICE_BATCH_PANELS_H

#include "gpu_sp/batch/verdict.h"

#include <cstddef>

namespace {

/* How T threads, each with R rows, factor a matrix of order up to N, by panels
   of NB columns, in numbers of P parts. */
template <int P_, int T_, int R_, int NB_> struct panels {
  static constexpr int P = P_, THREADS = T_, R = R_, NB = NB_, N = T_ * R_;
  static constexpr int WARPS = THREADS / 32;
  static constexpr int K = 4 / P;                  /* random vectors at once */
  static constexpr int ROUNDINGS = P == 1 ? 1 : 3; /* as in base/entry.h */
  static constexpr int GROUP = 4 / P;              /* columns of the factors */
  static constexpr int AT_ONCE = NB / 4;           /* of them go together */
  static constexpr int LOADED = 16 / (R * P);      /* and of A, in a pass */
  static constexpr int LINE = 4;                   /* rows of a group */
  static_assert(THREADS % 32 == 0 && WARPS <= 32 && 32 % NB == 0 && N <= 1024 &&
                    NB % 8 == 0 && AT_ONCE % GROUP == 0,
                "the rows of a panel are in one warp");
};

/* Columns of the factors on their way to shared memory while a panel is brought
   up to date: of AT_ONCE columns a thread has its own rows' numbers, OF_ROW
   parts of 16 bytes of each, and so for several steps. No other thread reads
   them. */
template <class S> struct panel_steps {
  static constexpr int STEPS = 3;
  static constexpr int OF_ROW = S::AT_ONCE * S::P / 2;
  double2 part[STEPS][S::R * OF_ROW][S::THREADS];
};

/* The shared memory of a thread block. While a panel is brought up to date the
   panel_steps lie in the place of what is not needed then, from the second half
   of 'side' on. */
template <class S> struct panel_memory {
  using entry = number<S::P>;
  alignas(16) entry top[2][S::NB][S::NB]; /* rows of a panel, for all threads */
  alignas(
      16) entry given[2][S::WARPS][S::NB]; /* rows that may have the pivot */
  entry candidate[2][S::WARPS];            /* which that would be */
  entry pivot[S::N];
  double row[S::N], col[S::N]; /* R and C, powers of two */
  unsigned keys[2][32];
  int from[S::N];  /* row from[k] of S had pivot k */
  int place[S::N]; /* row i had pivot place[i]; N: none yet */
  alignas(16) entry side[2 * S::K][S::N]; /* right-hand sides of the certificate
                                           */
  entry c[S::N], y[S::N], r[S::N], d[S::N]; /* R b, inv(C) x, residual, step */
  double den[S::N];                         /* |S| |y| + |c| */
  double rows[S::N]; /* bounds on the 2-norms of the rows of E */
  double scratch[8][S::WARPS];
  double sum[2][S::WARPS][32]; /* of columns, by warps */
  unsigned high[2][S::WARPS][32];
};

/* How many bytes a thread block has, and from where on the steps lie there. */
template <class S> struct panel_bytes {
  static constexpr size_t STEPS_FROM =
      offsetof(panel_memory<S>, side) + S::K * S::N * sizeof(number<S::P>);
  static constexpr size_t STEPS_TO = STEPS_FROM + sizeof(panel_steps<S>);
  static constexpr size_t ALL = STEPS_TO > sizeof(panel_memory<S>)
                                    ? STEPS_TO
                                    : sizeof(panel_memory<S>);
};

/* A thread's part of a system. */
template <class S_> struct panel_system {
  using S = S_;
  using entry = number<S::P>;
  static constexpr int P = S::P, N = S::N, ROUNDINGS = S::ROUNDINGS;
  static constexpr int CHAIN = 0; /* sums of residuals are folded */
  panel_memory<S> *s;
  const hone_device_systems *in;
  const entry *a;
  entry *f; /* the factors */
  int ld;   /* a multiple of LINE */
  int n, thread, warp, lane;
  int64_t by_row, by_column; /* of in */
  long long conjugates;      /* a sign_word */
  bool definite;             /* by claim: no pivoting */

  /* Says where the memory is, which a function that is not inlined does not
     know. */
  __device__ __forceinline__ void locate() const {
    hone_is_shared(s);
    hone_is_global(a);
    hone_is_global(f);
  }
  __device__ __forceinline__ panel_steps<S> *steps() const {
    return reinterpret_cast<panel_steps<S> *>(s->side[S::K]);
  }

  /* The thread's number r of those from 0 to N - 1: its row of S in the
     factorization, and its place in the order of the pivots in solves. */
  __device__ __forceinline__ int index(int r) const {
    return (warp * S::R + r) * 32 + lane;
  }
  /* Has the warp numbers from this one on, or below this one? */
  __device__ __forceinline__ bool reaches(int from) const {
    return (warp + 1) * S::R * 32 > from;
  }
  __device__ __forceinline__ bool starts_below(int to) const {
    return warp * S::R * 32 < to;
  }
  /* The warp that has this number. */
  __device__ __forceinline__ int warp_of(int i) const {
    return i / (32 * S::R);
  }
  __device__ __forceinline__ int panel_count() const {
    return N == S::NB ? 1 : (n + S::NB - 1) / S::NB;
  }
  /* The numbers of row i in the group of columns of the factors that begins
     with column j. */
  __device__ __forceinline__ entry *group(int j, int i) const {
    return f + j * ld + i * S::GROUP;
  }
  /* Load and store GROUP numbers. */
  __device__ __forceinline__ void load_group(const entry *from,
                                             entry *to) const {
#pragma unroll
    for (int c = 0; c < S::GROUP; c += 2)
      load_two(from + c, to + c, to + c + 1);
  }
  __device__ __forceinline__ void store_group(const entry *from,
                                              entry *to) const {
#pragma unroll
    for (int c = 0; c < S::GROUP; c += 2)
      store_two(from[c], from[c + 1], to + c);
  }
  __device__ __forceinline__ void sync() const { sync_threads<S::WARPS>(); }

  __device__ __forceinline__ entry entry_of_a(int i, int j) const {
    return conjugated(a[i * by_row + j * by_column], conjugates);
  }
  /* Loads entries (row[r], j0 + u) of A, or others where these are outside of
     it, as a negative row is. No load waits for another, or for a branch. */
  template <int U>
  __device__ __forceinline__ void load_entries(const int (&row)[S::R], int j0,
                                               entry (&e)[U][S::R]) const {
#pragma unroll
    for (int r = 0; r < S::R; r++) {
      const int i = row[r] >= 0 && row[r] < n ? row[r] : 0;
      const entry *at = a + i * by_row + min(j0, n - 1) * by_column;
#pragma unroll
      for (int u = 0; u < U; u++) {
        e[u][r] = *at;
        at += j0 + u + 1 < n ? by_column : 0;
      }
    }
  }
  /* Makes them entries of S = R op(A) C, or 0 outside of it. */
  template <int U>
  __device__ __forceinline__ void make_entries(const int (&row)[S::R], int j0,
                                               entry (&e)[U][S::R]) const {
    double unit[S::R];
#pragma unroll
    for (int r = 0; r < S::R; r++)
      unit[r] = row[r] >= 0 && row[r] < n ? s->row[row[r]] : 0.0;
#pragma unroll
    for (int u = 0; u < U; u++) {
      const double col = j0 + u < n ? s->col[j0 + u] : 0.0;
#pragma unroll
      for (int r = 0; r < S::R; r++)
        e[u][r] = inside_of_s(conjugated(e[u][r], conjugates), unit[r] * col);
    }
  }

  /* Calls use(j, e) with entries e of LOADED columns of S, from j on, until all
     columns were there. While some are used, the next ones are under way. */
  template <class F>
  __device__ __forceinline__ void each_columns(const int (&row)[S::R],
                                               F use) const {
    entry next[S::LOADED][S::R];
    load_entries(row, 0, next);
#pragma unroll 1
    for (int j = 0; j < n; j += S::LOADED) {
      entry e[S::LOADED][S::R];
#pragma unroll
      for (int u = 0; u < S::LOADED; u++)
#pragma unroll
        for (int r = 0; r < S::R; r++)
          e[u][r] = next[u][r];
      load_entries(row, j + S::LOADED, next);
      make_entries(row, j, e);
      use(j, e);
    }
  }

  template <class F> __device__ __forceinline__ void each_row(F f_) const {
    for (int i = thread; i < n; i += S::THREADS)
      f_(i);
  }
  template <class F> __device__ __forceinline__ void each_place(F f_) const {
    for (int i = thread; i < N; i += S::THREADS)
      f_(i);
  }
  template <int M, class Op>
  __device__ __forceinline__ void all(double (&v)[M], Op op) const {
    combine<S::WARPS>(s->scratch, thread, v, op);
  }

private:
  /* An entry in its unit. Where there is none the result is 0, whatever was
     loaded. */
  __device__ __forceinline__ entry inside_of_s(entry e, double unit) const {
#pragma unroll
    for (int p = 0; p < P; p++)
      e.part[p] = unit > 0.0 ? e.part[p] * unit : 0.0;
    return e;
  }
};

} // namespace

#endif
