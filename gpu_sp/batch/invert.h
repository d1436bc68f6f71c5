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

/* As in cpu_batch/pack.h. */
constexpr double LARGEST_ENTRY = 0x1p300, SMALLEST_ENTRY = 0x1p-300;
constexpr double LEVEL = 0x1p6, NEAR_ONE = 0x1p20;

/* The power of two by which v becomes at least 1 and less than 2. */
__device__ __forceinline__ double levelling(double v) {
  const long long exponent = __double_as_longlong(v) & 0x7ff0000000000000LL;
  return __longlong_as_double(0x7fe0000000000000LL - exponent);
}

/* A row-wise or column-wise largest part or sum of moduli of what is in
   registers. */
template <class S>
__device__ __forceinline__ double largest_in_row(const system<S> &t) {
  double v[S::TR] = {};
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      v[ii] = larger()(v[ii], extreme_of(t.m[ii][jj]));
  return t.over_columns(v, larger());
}

template <class S>
__device__ __forceinline__ double largest_in_column(const system<S> &t,
                                                    const double *by) {
  double v[S::TC] = {};
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      v[jj] = larger()(v[jj], extreme_of(t.m[ii][jj]) *
                                  (by != nullptr ? by[t.i_of(ii)] : 1.0));
  return t.over_rows(v, larger());
}

template <class S>
__device__ __forceinline__ double row_sum(const system<S> &t) {
  double v[S::TR] = {};
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      v[ii] += modulus_of(t.m[ii][jj]);
  return t.over_columns(v, plus());
}

template <class S>
__device__ __forceinline__ double column_sum(const system<S> &t) {
  double v[S::TC] = {};
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      v[jj] += modulus_of(t.m[ii][jj]);
  return t.over_rows(v, plus());
}

/* The smallest part of the thread's entries that is not 0, at most 1. */
template <class S>
__device__ __forceinline__ double least_part(const system<S> &t) {
  double least = 1.0;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      for (int p = 0; p < S::P; p++) {
        const double size = fabs(t.m[ii][jj].part[p]);
        least = size > 0.0 && size < least ? size : least;
      }
  return least;
}

/* Loads op(A), and finds its norms and whether it needs to be scaled. */
template <class S> __device__ __forceinline__ matrix_norms load(system<S> &t) {
  matrix_norms out;
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] = t.entry_of_a(t.i_of(ii), t.j_of(jj));
  const double in_row = largest_in_row(t);
  const double in_column = largest_in_column(t, nullptr);
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
  out.norm_rows = v[4];
  out.norm_cols = out.norm_scaled = v[5];
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
  const double in_column = largest_in_column(t, t.s->row);
  if (t.is_row())
    t.s->col[t.thread] = levelling(in_column);
  t.sync();
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      t.m[ii][jj] =
          scaled(t.m[ii][jj], t.s->row[t.i_of(ii)] * t.s->col[t.j_of(jj)]);
  const double sum = column_sum(t);
  double v[1] = {t.is_row() ? sum : 0.0};
  t.all(v, larger());
  norms->norm_scaled = v[0];
}

/* What the elimination found, the same in all threads. */
struct pivots {
  double smallest;
  int at;
};

/* The row with the largest entry of the column, of those that had no pivot yet;
   'used' has a bit for every 32nd row from the lane's first on. Entries that
   agree to 12 bits count as equal. Every warp finds it for itself. */
template <class S>
__device__ __forceinline__ int
find_pivot(const system<S> &t, const number<S::P> *column, unsigned used) {
  const int lane = t.thread % 32;
  unsigned best = 0;
  for (int q = 0; q * 32 < S::N; q++) {
    const int row = lane + 32 * q;
    if (row < t.n && !(used >> q & 1)) {
      const unsigned high = static_cast<unsigned>(
          __double_as_longlong(size_of(column[row])) >> 32);
      const unsigned key = 0x80000000U | (high & ~127U) | (127U - row);
      best = max(best, key);
    }
  }
  best = __reduce_max_sync(ALL, best);
  return static_cast<int>(127U - (best & 127U));
}

/* Copies column k of the thread block's matrix to shared memory, and sets it to
   0. */
template <class S>
__device__ __forceinline__ void give_column(system<S> &t, int k,
                                            number<S::P> *to) {
  if (t.c != k % S::C)
    return;
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
    if (jj == k / S::C)
#pragma unroll
      for (int ii = 0; ii < S::TR; ii++) {
        to[t.i_of(ii)] = t.m[ii][jj];
        t.m[ii][jj] = make<S::P>(0.0);
      }
}

/* The same with row p; entry k, of the column that is away, becomes 1. */
template <class S>
__device__ __forceinline__ void give_row(system<S> &t, int p, int k,
                                         number<S::P> *to) {
  if (t.r != p % S::R)
    return;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++)
    if (ii == p / S::R)
#pragma unroll
      for (int jj = 0; jj < S::TC; jj++) {
        const int j = t.j_of(jj);
        to[j] = j == k ? make<S::P>(1.0) : t.m[ii][jj];
        t.m[ii][jj] = make<S::P>(0.0);
      }
}

/* Subtracts multiples of the pivot row from all rows; row p, which is 0 now,
   becomes the pivot row divided by the pivot. */
template <class S>
__device__ __forceinline__ void eliminate(system<S> &t, int p,
                                          number<S::P> inverse,
                                          const number<S::P> *column) {
  number<S::P> by[S::TR];
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const int i = t.i_of(ii);
    by[ii] = i == p ? scaled(inverse, -1.0) : product_of(column[i], inverse);
  }
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++) {
    const number<S::P> u = t.s->pivot_row[t.j_of(jj)];
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] = minus_product(t.m[ii][jj], by[ii], u);
  }
}

/* Replaces S by its inverse, as the beginning of this file says. */
template <class S> __device__ __forceinline__ pivots invert(system<S> &t) {
  pivots out = {HONE_INF, 0};
  unsigned used = 0;
  for (int i = t.thread; i < S::N; i += S::THREADS)
    t.s->from[i] = t.s->place[i] = i;
#pragma unroll 1
  for (int k = 0; k < t.n; k++) {
    number<S::P> *column = t.s->column[k % 2];
    give_column(t, k, column);
    t.sync();
    const int p = find_pivot(t, column, used);
    const number<S::P> pivot = column[p];
    give_row(t, p, k, t.s->pivot_row);
    if (t.thread == 0) {
      t.s->from[k] = p;
      t.s->place[p] = k;
      t.s->pivot[k] = pivot;
    }
    if (p % 32 == t.thread % 32)
      used |= 1U << (p / 32);
    if (size_of(pivot) < out.smallest)
      out.at = k;
    out.smallest = smaller()(out.smallest, size_of(pivot));
    t.sync();
    eliminate(t, p, reciprocal_of(pivot), column);
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
  t.template row_products<K>(
      [&](int ii, int jj) { return t.m[ii][jj]; },
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
