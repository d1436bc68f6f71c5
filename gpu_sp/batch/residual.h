/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of a system whose inverse is in registers, and corrections by it,
   for solve.h. Device code. */
#ifndef HONE_DEVICE_BATCH_RESIDUAL_H
#define HONE_DEVICE_BATCH_RESIDUAL_H

#include "gpu_sp/batch/certify.h"
#include "gpu_sp/batch/solve.h"

namespace {

/* out = inv(M) in. */
template <class S>
__device__ __forceinline__ void apply(const system<S> &t,
                                      const number<S::P> (&in)[S::N],
                                      number<S::P> (&out)[S::N]) {
  apply_inverse<1>(t, &in, &out);
}

/* A thread's part of a row of S y, negative, in double-double, and of |S| |y|.
 */
template <int P> struct row_part {
  wide sum[P];
  double den;
};

/* Gives row 'thread' the residual and the denominator from so many parts. */
template <int PARTS, class S, class Part>
__device__ __forceinline__ void give_row_residual(const system<S> &t,
                                                  Part part) {
  double den = modulus_of(t.s->c[t.thread]);
  wide sum[S::P] = {};
  number<S::P> r;
  for (int p = 0; p < S::P; p++)
    sum[p].hi = t.s->c[t.thread].part[p];
  for (int k = 0; k < PARTS; k++) {
    const row_part<S::P> own = part(k);
    for (int p = 0; p < S::P; p++) {
      add_exactly(own.sum[p].hi, &sum[p]);
      sum[p].lo += own.sum[p].lo;
    }
    den += own.den;
  }
  for (int p = 0; p < S::P; p++)
    r.part[p] = sum[p].hi + sum[p].lo;
  t.s->r[t.thread] = r;
  t.s->den[t.thread] = den;
}

/* Does so from the parts of S::C threads, in shared memory. */
template <class S> __device__ __forceinline__ void sum_row(const system<S> &t) {
  give_row_residual<S::C>(t, [&](int k) {
    const double *from = t.s->partial + k * S::ROW_STRIDE + t.thread;
    constexpr int q = S::C * S::ROW_STRIDE;
    row_part<S::P> out;
    for (int p = 0; p < S::P; p++)
      out.sum[p] = {from[2 * p * q], from[(2 * p + 1) * q]};
    out.den = from[2 * S::P * q];
    return out;
  });
}

/* Gives all rows theirs from the parts of all threads. */
template <class S>
__device__ __forceinline__ void
give_residual(const system<S> &t, const row_part<S::P> (&own)[S::TR]) {
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    double *to = t.s->partial + t.c * S::ROW_STRIDE + t.i_of(ii);
    constexpr int q = S::C * S::ROW_STRIDE;
    for (int p = 0; p < S::P; p++) {
      to[2 * p * q] = own[ii].sum[p].hi;
      to[(2 * p + 1) * q] = own[ii].sum[p].lo;
    }
    to[2 * S::P * q] = own[ii].den;
  }
  t.sync();
  if (t.thread < S::N)
    sum_row(t);
}

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|. */
template <class S>
__device__ __forceinline__ void residual(const system<S> &t) {
  row_part<S::P> own[S::TR] = {};
#pragma unroll(S::TR < 8 ? 8 / S::TR : 1) /* loads under way at once */
  for (int jj = 0; jj < S::TC; jj++) {
    const number<S::P> y = t.s->y[t.j_of(jj)];
    const double size = modulus_of(y);
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++) {
      const number<S::P> e = t.entry_of_s(ii, jj);
      subtract_exact_product(e, y, own[ii].sum);
      own[ii].den = fma(modulus_of(e), size, own[ii].den);
    }
  }
  t.sync();
  if constexpr (S::WHOLE_ROWS)
    give_row_residual<1>(t, [&](int) { return own[0]; });
  else
    give_residual(t, own);
  t.sync();
}

/* Bounds the rounding errors in d = inv(M) r: the longest chain of additions
   times the largest component of |inv(M)| |r|. */
template <class S>
__device__ __forceinline__ double lost_in_solve(const system<S> &t,
                                                const certified &, double) {
  number<S::P> sum[1];
  t.template row_products<1, true>(
      [&](int ii, int jj) { return t.m[ii][jj]; },
      [&](int, int j) { return make<S::P>(modulus_of(t.s->r[t.s->from[j]])); },
      [](number<S::P> to, number<S::P> e, number<S::P> size) {
        to.part[0] = fma(modulus_of(e), size.part[0], to.part[0]);
        return to;
      },
      sum);
  double v[1] = {t.is_row() ? sum[0].part[0] : 0.0};
  t.all(v, larger());
  return S::ROUNDINGS * (S::TC + S::C + 2) * HONE_EPS * ABOVE * v[0];
}

} // namespace

#endif
