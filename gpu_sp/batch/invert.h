/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix is brought into registers, scaled by powers of two, and inverted in
   its place by Gauss-Jordan elimination with partial pivoting. Rows are not
   exchanged: row from[k] has pivot k, and the inverse's row k is there, with
   its column from[j] in the place of column j. With an inverse in the place of
   LU factors a solution is a product, which all threads share; what an inverse
   lacks in backward stability the correction mends, and the certificate
   measures. Device code. */
#ifndef HONE_DEVICE_BATCH_INVERT_H
#define HONE_DEVICE_BATCH_INVERT_H

#include "gpu_sp/batch/system.h"

namespace {

/* Covers the rounding of entries to single precision, and of a thread's sums
   of up to 128 of them there. */
template <class S> constexpr double ROUNDED = S::SINGLE ? 1.0 + 0x1p-16 : 1.0;

template <int M, class T>
__device__ __forceinline__ void widen(const T (&v)[M], double (&to)[M]) {
#pragma unroll
  for (int q = 0; q < M; q++)
    to[q] = widened(v[q]);
}

/* Combine f of the entries that are in registers, by rows or by columns. A
   thread combines its own in the matrix's precision. */
template <class S, class Op, class F>
__device__ __forceinline__ double over_row_entries(const system<S> &t, Op op,
                                                   F f) {
  typename S::T v[S::TR] = {};
  double own[S::TR];
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      v[ii] = op(v[ii], f(t.m[ii][jj]));
  widen(v, own);
  return t.over_columns(own, op);
}

template <class S, class Op, class F>
__device__ __forceinline__ double over_column_entries(const system<S> &t, Op op,
                                                      F f) {
  typename S::T v[S::TC] = {};
  double own[S::TC];
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      v[jj] = op(v[jj], f(t.m[ii][jj]));
  widen(v, own);
  return t.over_rows(own, op);
}

/* The largest part of an entry, or the sum of the moduli, in row or column
   'thread'. */
template <class S>
__device__ __forceinline__ double largest_in_row(const system<S> &t) {
  return over_row_entries(
      t, larger(), [](typename system<S>::factor e) { return extreme_of(e); });
}
template <class S>
__device__ __forceinline__ double largest_in_column(const system<S> &t) {
  return over_column_entries(
      t, larger(), [](typename system<S>::factor e) { return extreme_of(e); });
}
template <class S>
__device__ __forceinline__ double row_sum(const system<S> &t) {
  return over_row_entries(
      t, plus(), [](typename system<S>::factor e) { return modulus_of(e); });
}
template <class S>
__device__ __forceinline__ double column_sum(const system<S> &t) {
  return over_column_entries(
      t, plus(), [](typename system<S>::factor e) { return modulus_of(e); });
}

/* Finds the largest part in a column with every row times a number of its own.
 */
template <class S>
__device__ __forceinline__ double largest_in_column_of(const system<S> &t,
                                                       const double *by) {
  double v[S::TC] = {};
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      v[jj] = larger()(v[jj], extreme_of(t.at(ii, jj)) * by[t.i_of(ii)]);
  return t.over_rows(v, larger());
}

/* The smallest part of the thread's entries that is not 0, at most 1. */
template <class S>
__device__ __forceinline__ double least_part(const system<S> &t) {
  typename S::T least = 1;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      for (int p = 0; p < S::P; p++) {
        const typename S::T size = fabs(t.m[ii][jj].part[p]);
        least = size > 0 && size < least ? size : least;
      }
  return widened(least);
}

/* Loads op(A), and finds its norms and whether it needs to be scaled. */
template <class S> __device__ __forceinline__ matrix_norms load(system<S> &t) {
  matrix_norms out;
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] =
          rounded_to<typename S::T>(t.entry_of_a(t.i_of(ii), t.j_of(jj)));
  const double in_row = largest_in_row(t);
  const double in_column = largest_in_column(t);
  const double of_row = row_sum(t), of_column = column_sum(t);
  const bool is = t.is_row();
  double v[7] = {is ? in_row : 0.0,    is ? -in_row : -HONE_INF,
                 is ? in_column : 0.0, is ? -in_column : -HONE_INF,
                 is ? of_row : 0.0,    is ? of_column : 0.0,
                 -least_part(t)};
  t.all(v, larger());
  out.plain = v[0] <= -LEVEL * v[1] && v[2] <= -LEVEL * v[3] &&
              v[0] <= NEAR_ONE && -v[1] >= 1.0 / NEAR_ONE && v[2] <= NEAR_ONE &&
              -v[3] >= 1.0 / NEAR_ONE;
  out.serves = v[0] <= LARGEST_ENTRY && -v[6] >= SMALLEST_ENTRY &&
               -v[1] > 0.0 && -v[3] > 0.0;
  out.norm_rows = v[4] / ROUNDED<S>;
  out.norm_cols = out.norm_scaled = v[5] * ROUNDED<S>;
  if (t.thread < S::N) {
    t.s->row[t.thread] = is && !out.plain ? levelling(in_row) : 1.0;
    t.s->col[t.thread] = 1.0;
  }
  t.sync();
  return out;
}

/* S = R op(A) C: R levels the rows, and C then the columns. */
template <class S>
__device__ __forceinline__ void scale(system<S> &t, matrix_norms *norms) {
  if (norms->plain)
    return;
  const double in_column = largest_in_column_of(t, t.s->row);
  if (t.is_row())
    t.s->col[t.thread] = levelling(in_column);
  t.sync();
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      t.m[ii][jj] = rounded_to<typename S::T>(
          scaled(t.at(ii, jj), t.s->row[t.i_of(ii)] * t.s->col[t.j_of(jj)]));
  const double sum = column_sum(t);
  double v[1] = {t.is_row() ? sum : 0.0};
  t.all(v, larger());
  norms->norm_scaled = v[0] * ROUNDED<S>;
}

/* A key orders the rows of a column by the sizes of their entries, to 12 bits,
   with NaN above all, and names the row; 0: none. */
__device__ __forceinline__ unsigned high_bits(double size) {
  return static_cast<unsigned>(__double_as_longlong(size) >> 32);
}
__device__ __forceinline__ unsigned high_bits(float size) {
  return __float_as_uint(size);
}
template <int P, class T>
__device__ __forceinline__ unsigned key_of(number_of<P, T> v, int row) {
  const unsigned high = high_bits(size_of(v));
  return 0x80000000U | (high & ~127U) | (127U - static_cast<unsigned>(row));
}

/* Copies the present column, which is the first of the threads with that c, to
   shared memory, and sets it to 0. Each of their warps finds its largest entry
   in a row that had no pivot yet: bit ii of 'used' says whether row ii of the
   thread had one. */
template <class S>
__device__ __forceinline__ void give_column(system<S> &t, int c, unsigned used,
                                            typename system<S>::factor *to,
                                            unsigned *keys) {
  unsigned best = 0;
  const bool mine = S::R >= 32 ? t.c == c : t.thread / 32 == c * S::R / 32;
  if (!mine) /* the whole warp has other columns */
    return;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
    if (t.c == c) {
      const int row = t.i_of(ii);
      const unsigned key = key_of(t.m[ii][0], row);
      best = max(best, row < t.n && !(used >> ii & 1) ? key : 0U);
      to[row] = t.m[ii][0];
      t.m[ii][0] = {};
    }
  if constexpr (S::SYSTEMS == 1) {
    best = __reduce_max_sync(ALL, best);
  } else {
#pragma unroll
    for (int by = S::THREADS / 2; by > 0; by /= 2)
      best = max(best, __shfl_xor_sync(t.lanes(), best, by));
  }
  if (t.thread % 32 == 0)
    keys[S::R >= 32 ? t.r / 32 : 0] = best;
}

/* The row with the largest key. */
template <class S>
__device__ __forceinline__ int best_row(const unsigned *keys) {
  unsigned best = keys[0];
#pragma unroll
  for (int w = 1; w < S::R / 32; w++)
    best = max(best, keys[w]);
  return static_cast<int>(127U - (best & 127U));
}

/* Copies row p to shared memory, and sets it to 0; its entry in the present
   column becomes 1. The thread's row is a constant of the template: with a loop
   the compiler would index the registers, and so keep them in memory. */
template <int II, class S>
__device__ __forceinline__ void give_row(system<S> &t, int own, int c,
                                         typename system<S>::factor *to) {
  if (own == II) {
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++) {
      to[jj] = t.m[II][jj];
      t.m[II][jj] = {};
    }
    if (t.c == c)
      to[0] = unit_of<S::P>(typename S::T(1));
  } else if constexpr (II + 1 < S::TR) {
    give_row<II + 1>(t, own, c, to);
  }
}

/* The thread's columns move up by one, the first to the end: so the present
   column is always in the first registers. */
template <class S> __device__ __forceinline__ void rotate(system<S> &t) {
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const typename system<S>::factor first = t.m[ii][0];
#pragma unroll
    for (int jj = 1; jj < S::TC; jj++)
      t.m[ii][jj - 1] = t.m[ii][jj];
    t.m[ii][S::TC - 1] = first;
  }
}

/* Subtracts multiples of the pivot row from all rows; row p, which is 0 now,
   becomes the pivot row divided by the pivot. */
template <class S>
__device__ __forceinline__ void
eliminate(system<S> &t, int p, typename system<S>::factor inverse,
          const typename system<S>::factor *column) {
  typename system<S>::factor by[S::TR];
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const int i = t.i_of(ii);
    by[ii] = i == p ? scaled(inverse, typename S::T(-1))
                    : product_of(column[i], inverse);
  }
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++) {
    const typename system<S>::factor u = t.s->pivot_row[t.c][jj];
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] = minus_product(t.m[ii][jj], by[ii], u);
  }
}

/* Step k of the elimination; columns have been rotated k / C times. */
template <class S>
__device__ __forceinline__ void eliminate_column(system<S> &t, int k,
                                                 unsigned *used, pivots *out) {
  typename system<S>::factor *column = t.s->column[k % 2];
  unsigned *keys = t.s->keys[k % 2];
  give_column(t, k % S::C, *used, column, keys);
  t.sync();
  const int p = best_row<S>(keys);
  const typename system<S>::factor pivot = column[p];
  if (t.r == p % S::R) {
    give_row<0>(t, p / S::R, k % S::C, t.s->pivot_row[t.c]);
    *used |= 1U << (p / S::R);
  }
  if (t.thread == 0) {
    t.s->from[k] = p;
    t.s->place[p] = k;
    t.s->pivot[k] = widened(pivot);
  }
  const double size = static_cast<double>(size_of(pivot));
  out->at = size < out->smallest ? k : out->at;
  out->smallest = smaller()(out->smallest, size);
  const typename system<S>::factor inverse = reciprocal_of(pivot);
  t.sync();
  eliminate(t, p, inverse, column);
}

/* Replaces S by its inverse, as the beginning of this file says. */
template <class S> __device__ __forceinline__ pivots invert(system<S> &t) {
  pivots out = {HONE_INF, 0};
  unsigned used = 0;
  for (int i = t.thread; i < S::N; i += S::THREADS)
    t.s->from[i] = t.s->place[i] = i;
#pragma unroll 1
  for (int k0 = 0; k0 < S::N; k0 += S::C) {
#pragma unroll 1
    for (int k = k0; k < k0 + S::C && k < t.n; k++)
      eliminate_column(t, k, &used, &out);
    rotate(t);
  }
  t.sync();
  return out;
}

/* out = inv(S) in, for K vectors in shared memory. */
template <int K, class S>
__device__ __forceinline__ void apply_inverse(const system<S> &t,
                                              const number<S::P> (*in)[S::N],
                                              number<S::P> (*out)[S::N]) {
  number<S::P> sum[K];
  t.template row_products<K, true>(
      [&](int ii, int jj) { return t.at(ii, jj); },
      [&](int k, int j) { return in[k][t.s->from[j]]; },
      [](number<S::P> to, number<S::P> e, number<S::P> v) {
        return plus_product(to, e, v);
      },
      sum);
  if (t.thread < S::N)
#pragma unroll
    for (int k = 0; k < K; k++)
      out[k][t.s->place[t.thread]] = sum[k];
  t.sync();
}

} // namespace

#endif
