/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix is copied to shared memory, where it stays for residuals, brought
   into registers and scaled by powers of two. There it is inverted
   (eliminate.h, definite.h), and products with the inverse solve. Device code.
 */
#ifndef HONE_DEVICE_BATCH_INVERT_H
#define HONE_DEVICE_BATCH_INVERT_H

#include "gpu_sp/batch/definite.h"

namespace {

/* The upper half of a number that is not negative orders as the number does,
   but for the last 32 bits, with NaN above all. */
__device__ __forceinline__ double of_high_bits(unsigned high) {
  return __longlong_as_double(static_cast<long long>(high) << 32);
}

/* The largest part of an entry in row or column 'thread' but for its last bits,
   and the sum of the moduli there. */
struct line_norms {
  double most, sum;
};

/* Also finds the smallest part of the thread's entries that is not 0, as the
   others. */
template <class S>
__device__ __forceinline__ line_norms norms_of_row(const system<S> &t,
                                                   double *least) {
  double most[S::TR], sum[S::TR];
  unsigned small = ~0U;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    unsigned high = 0;
    sum[ii] = 0.0;
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++) {
      sum[ii] += modulus_of(t.m[ii][jj]);
#pragma unroll
      for (int p = 0; p < S::P; p++) {
        const double part = fabs(t.m[ii][jj].part[p]);
        const unsigned own = high_bits(part);
        high = max(high, own);
        small = part > 0.0 ? min(small, own) : small;
      }
    }
    most[ii] = of_high_bits(high);
  }
  *least = small == ~0U ? 1.0 : of_high_bits(small);
  const double of_row = t.over_columns(most, larger());
  return {of_row, t.over_columns(sum, plus())};
}

template <class S>
__device__ __forceinline__ line_norms norms_of_column(const system<S> &t) {
  double most[S::TC], sum[S::TC];
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++) {
    unsigned high = 0;
    sum[jj] = 0.0;
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++) {
      sum[jj] += modulus_of(t.m[ii][jj]);
      high = max(high, high_bits(extreme_of(t.m[ii][jj])));
    }
    most[jj] = of_high_bits(high);
  }
  const double of_column = t.over_rows(most, larger());
  return {of_column, t.over_rows(sum, plus())};
}

template <class To>
__device__ __forceinline__ void begin_copy(To *to, const To *from) {
  if constexpr (sizeof *to == 16)
    hone_begin_copy_16(to, from, true);
  else
    hone_begin_copy_8(to, from);
}

/* Copies A to shared memory, or its transpose, with the unit matrix outside of
   it. */
template <class S> __device__ __forceinline__ void keep(const system<S> &t) {
  const bool turned = t.in->by_row != 1;
#pragma unroll(8)
  for (int q = t.thread; q < S::N * S::N; q += S::THREADS) {
    const int at = q % S::N, line = q / S::N; /* of those that lie together */
    const int i = turned ? line : at, j = turned ? at : line;
    number<S::P> *to = &t.s->kept[j][i];
    if (i < t.n && j < t.n)
      begin_copy(to, t.a + i * t.in->by_row + j * t.in->by_column);
    else
      *to = make<S::P>(i == j ? 1.0 : 0.0);
  }
  hone_end_copy_group();
  hone_await_copies<0>();
  t.sync();
}

/* Loads op(A), and finds its norms and whether it needs to be scaled. */
template <class S> __device__ __forceinline__ matrix_norms load(system<S> &t) {
  const long long conjugates = sign_word(t.in->conjugate);
  matrix_norms out;
  double least;
  keep(t);
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] = conjugated(t.entry_of_s(ii, jj), conjugates);
  const line_norms row = norms_of_row(t, &least);
  const line_norms column = norms_of_column(t);
  const bool is = t.is_row();
  double v[7] = {is ? row.most : 0.0,
                 is ? -row.most : -HONE_INF,
                 is ? column.most : 0.0,
                 is ? -column.most : -HONE_INF,
                 is ? row.sum : 0.0,
                 is ? column.sum : 0.0,
                 -least};
  t.all(v, larger());
  out.plain = v[0] <= -LEVEL * v[1] && v[2] <= -LEVEL * v[3] &&
              v[0] <= NEAR_ONE && -v[1] >= 1.0 / NEAR_ONE && v[2] <= NEAR_ONE &&
              -v[3] >= 1.0 / NEAR_ONE;
  out.serves = v[0] <= LARGEST_ENTRY && -v[6] >= SMALLEST_ENTRY &&
               -v[1] > 0.0 && -v[3] > 0.0;
  out.norm_rows = v[4];
  out.norm_cols = out.norm_scaled = v[5];
  if (t.thread < S::N) {
    t.s->row[t.thread] = is && !out.plain ? levelling(row.most) : 1.0;
    t.s->col[t.thread] = 1.0;
  }
  t.sync();
  return out;
}

/* S = R op(A) C: R levels the rows, and C then the columns. */
template <class S>
__device__ __forceinline__ void level(system<S> &t, matrix_norms *norms) {
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const double row = t.s->row[t.i_of(ii)];
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++)
      t.m[ii][jj] = scaled(t.m[ii][jj], row);
  }
  const double in_column = norms_of_column(t).most;
  if (t.is_row())
    t.s->col[t.thread] = levelling(in_column);
  t.sync();
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++) {
    const double col = t.s->col[t.j_of(jj)];
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.m[ii][jj] = scaled(t.m[ii][jj], col);
  }
  const double sum = norms_of_column(t).sum;
  double v[1] = {t.is_row() ? sum : 0.0};
  t.all(v, larger());
  norms->norm_scaled = v[0];
}

/* S in shared memory becomes the one in registers where these differ. */
template <class S>
__device__ __forceinline__ void scale(system<S> &t, matrix_norms *norms) {
  if (!norms->plain)
    level(t, norms);
  if (norms->plain && !t.in->conjugate)
    return;
#pragma unroll
  for (int jj = 0; jj < S::TC; jj++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      t.s->kept[t.j_of(jj)][t.i_of(ii)] = t.m[ii][jj];
  t.sync();
}

/* Replaces S by its inverse, as the beginning of eliminate.h says. Returns the
   size of the smallest pivot, or of a definite matrix the smallest pivot or
   minor of two, the same in all threads. */
template <class S> __device__ __forceinline__ double invert(system<S> &t) {
  const bool is = t.is_row();
  const unsigned name = 0x80000000U | (127U - static_cast<unsigned>(t.thread));
  panel<S> p = {0,       t.n, t.thread, is ? 0x7fffff80U : 0U, is ? name : 0U,
                HONE_INF};
  for (int i = t.thread; i < S::N; i += S::THREADS) {
    t.s->from[i] = i;
    t.s->place[i] = i < t.n && !S::DEFINITE ? -1 : i;
  }
  t.sync();
  if constexpr (S::WHOLE_ROWS)
    eliminate_columns<0>(t, &p, t.m[0]);
  else if constexpr (S::DEFINITE)
    invert_definite(t, &p);
  else
    invert_by_panels(t, &p);
  if (!S::WHOLE_ROWS && t.thread == 0)
    t.s->smallest = p.smallest;
  t.sync();
  return S::WHOLE_ROWS ? p.smallest : t.s->smallest;
}

/* out = inv(S) in, for K vectors in shared memory. */
template <int K, class S>
__device__ __forceinline__ void apply_inverse(const system<S> &t,
                                              const number<S::P> (*in)[S::N],
                                              number<S::P> (*out)[S::N]) {
  number<S::P> sum[K];
  t.template row_products<K, true>(
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
