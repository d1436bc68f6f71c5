/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions with a certified inverse: refined by residuals in double-double,
   measured and bounded as in cpu_batch/kernels.c, where the bound is derived.
   The rounding errors of the last product with the inverse are bounded by that
   of the moduli. Device code. */
#ifndef HONE_DEVICE_BATCH_SOLVE_H
#define HONE_DEVICE_BATCH_SOLVE_H

#include "gpu_sp/batch/certify.h"

#include <cfloat>

namespace {

/* As in cpu_batch/kernels.c. */
constexpr double LARGEST_SIDE = 0x1p400, SMALLEST_SIDE = 0x1p-400;
constexpr double TIGHT = 2.0, SMALL = 0.25 * HONE_EPS;
constexpr double ROUNDING = 4.0 * HONE_EPS, NOISE_FACTOR = 2.0;
constexpr double ABOVE = 1.0 + 0x1p-36, GRAIN = 0x1p-900;

/* Prepares c = R b. Returns max |b_i|, or NaN where b is not for this kernel.
 */
template <class S>
__device__ __forceinline__ double begin_side(const system<S> &t,
                                             const number<S::P> *b) {
  number<S::P> own = make<S::P>(0.0), c = own;
  double least = 1.0;
  if (t.is_row()) {
    own = b[t.thread];
    c = scaled(own, t.s->row[t.thread]);
  }
  if (t.thread < S::N)
    t.s->c[t.thread] = c;
  for (int p = 0; p < S::P; p++) {
    const double size = fabs(c.part[p]);
    least = size > 0.0 && size < least ? size : least;
  }
  double v[3] = {modulus_of(own), extreme_of(c), -least};
  t.sync();
  t.all(v, larger());
  const bool serves =
      v[1] > 0.0 && v[1] <= LARGEST_SIDE && -v[2] >= SMALLEST_SIDE;
  return serves ? v[0] : HONE_NAN;
}

/* Sums a row's residual and denominator from those of the threads. */
template <class S> __device__ __forceinline__ void sum_row(const system<S> &t) {
  double den = modulus_of(t.s->c[t.thread]);
  const int q = S::C * S::N;
  wide sum[S::P] = {};
  number<S::P> r;
  for (int p = 0; p < S::P; p++)
    sum[p].hi = t.s->c[t.thread].part[p];
  for (int k = 0; k < S::C; k++) {
    const double *from = t.s->partial + k * S::N + t.thread;
    for (int p = 0; p < S::P; p++) {
      add_exactly(from[2 * p * q], &sum[p]);
      sum[p].lo += from[(2 * p + 1) * q];
    }
    den += from[2 * S::P * q];
  }
  for (int p = 0; p < S::P; p++)
    r.part[p] = sum[p].hi + sum[p].lo;
  t.s->r[t.thread] = r;
  t.s->den[t.thread] = den;
}

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|. */
template <class S>
__device__ __forceinline__ void residual(const system<S> &t) {
  wide own[S::TR][S::P] = {};
  double den[S::TR] = {};
#pragma unroll(S::TR < 8 ? 8 / S::TR : 1) /* loads under way at once */
  for (int jj = 0; jj < S::TC; jj++) {
    const number<S::P> y = t.s->y[t.j_of(jj)];
    const double size = modulus_of(y);
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++) {
      const number<S::P> e = t.entry_of_s(t.i_of(ii), t.j_of(jj));
      subtract_exact_product(e, y, own[ii]);
      den[ii] = fma(modulus_of(e), size, den[ii]);
    }
  }
  t.sync();
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    double *to = t.s->partial + t.c * S::N + t.i_of(ii);
    for (int p = 0; p < S::P; p++) {
      to[2 * p * S::C * S::N] = own[ii][p].hi;
      to[(2 * p + 1) * S::C * S::N] = own[ii][p].lo;
    }
    to[2 * S::P * S::C * S::N] = den[ii];
  }
  t.sync();
  if (t.thread < S::N)
    sum_row(t);
  t.sync();
}

/* max_i |r_i| / den_i; NaN where a denominator may have lost digits. */
template <class S>
__device__ __forceinline__ double componentwise(const system<S> &t) {
  const double least = t.n * DBL_MIN / HONE_EPS / HONE_EPS;
  double v[1] = {0.0};
  if (t.is_row()) {
    const double den = t.s->den[t.thread];
    v[0] = modulus_of(t.s->r[t.thread]) / den;
    if (!(den > least) || !(den <= DBL_MAX) || !(v[0] <= DBL_MAX))
      v[0] = HONE_NAN;
  }
  t.all(v, larger());
  return v[0];
}

/* Solves and corrects until the solution is accepted, or has had its
   corrections; d is that of the last y. Returns whether it is. */
template <class S>
__device__ __forceinline__ bool refine(const system<S> &t, double *omega,
                                       int *corrections) {
  apply_inverse<1>(t, &t.s->c, &t.s->y);
  for (int step = 0;; step++) {
    residual(t);
    *omega = componentwise(t);
    *corrections = step;
    apply_inverse<1>(t, &t.s->r, &t.s->d);
    const bool accepted = *omega <= t.in->limit;
    if (accepted || step >= t.in->corrections)
      return accepted;
    if (t.is_row())
      t.s->y[t.thread] = sum_of(t.s->y[t.thread], t.s->d[t.thread]);
    t.sync();
  }
}

/* Bounds the rounding errors in d = inv(M) r: the longest chain of additions
   times the largest component of |inv(M)| |r|. */
template <class S>
__device__ __forceinline__ double lost_in_solve(const system<S> &t) {
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

/* Largest numbers and sums over the components, the same in all threads. */
struct norms {
  double d_square, noise_square, d_most, d_most_unit, y_most, x_most, r_most;
  double widest; /* the largest c_i */
};

template <class S>
__device__ __forceinline__ norms take_norms(const system<S> &t) {
  const double gamma = S::ROUNDINGS * (t.n + 4) * HONE_EPS * HONE_EPS;
  double sum[2] = {}, most[6] = {};
  if (t.is_row()) {
    const double d = modulus_of(t.s->d[t.thread]), col = t.s->col[t.thread];
    const double y = modulus_of(t.s->y[t.thread]);
    const double r = modulus_of(t.s->r[t.thread]);
    const double noise = gamma * t.s->den[t.thread] + HONE_EPS * r;
    sum[0] = d * d;
    sum[1] = noise * noise;
    most[0] = d;
    most[1] = d * col;
    most[2] = y;
    most[3] = y * col;
    most[4] = r / t.s->row[t.thread];
    most[5] = col;
  }
  t.all(sum, plus());
  t.all(most, larger());
  return {sum[0], sum[1], most[0], most[1], most[2], most[3], most[4], most[5]};
}

/* Bounds the errors. Returns the relative bound, or NaN where noise would
   count, or the bound is not tight. */
template <class S>
__device__ __forceinline__ double
bound_errors(const system<S> &t, const certified &m, const norms &v) {
  const double eta = m.contraction, size = sqrt(v.d_square) * ABOVE;
  const double noise = NOISE_FACTOR * ABOVE * m.inverse * sqrt(v.noise_square);
  const double lost = lost_in_solve(t) + GRAIN * v.y_most;
  const double f = (noise + lost * sqrt(static_cast<double>(t.n)) + size) /
                   (1.0 - eta) * ABOVE;
  double total[2] = {};
  if (t.is_row()) {
    const double d = modulus_of(t.s->d[t.thread]);
    const double bar =
        ABOVE * (d + t.s->rows[t.thread] * f + noise + lost + ROUNDING * d);
    total[0] = bar;
    total[1] = bar * t.s->col[t.thread];
  }
  t.all(total, larger());
  const double small = SMALL * v.y_most, small_unit = SMALL * v.x_most;
  const double scaled_bound = total[0] / v.y_most + HONE_EPS;
  const double bound = total[1] / v.x_most + HONE_EPS;
  const bool serves = noise <= small && v.widest * noise <= small_unit &&
                      total[0] <= TIGHT * v.d_most + small &&
                      total[1] <= TIGHT * v.d_most_unit + small_unit &&
                      scaled_bound <= 0.1 && bound <= 0.1 &&
                      v.y_most >= SMALLEST_SIDE && v.y_most <= LARGEST_SIDE;
  return serves ? bound : HONE_NAN;
}

/* x = C y. Returns whether that is exact. */
template <class S>
__device__ __forceinline__ bool give_solution(const system<S> &t,
                                              number<S::P> *x) {
  double wrong[1] = {0.0};
  number<S::P> own = make<S::P>(0.0);
  if (t.is_row()) {
    const double col = t.s->col[t.thread];
    own = scaled(t.s->y[t.thread], col);
    for (int p = 0; p < S::P; p++)
      if (!(own.part[p] / col == t.s->y[t.thread].part[p]) ||
          !(fabs(own.part[p]) <= DBL_MAX))
        wrong[0] = 1.0;
  }
  t.all(wrong, larger());
  if (t.is_row() && wrong[0] == 0.0)
    x[t.thread] = own;
  return wrong[0] == 0.0;
}

/* Solves for one right-hand side; the result is the same in all threads. */
template <class S>
__device__ __forceinline__ hone_block_column solve_column(const system<S> &t,
                                                          const certified &m,
                                                          double norm,
                                                          const number<S::P> *b,
                                                          number<S::P> *x) {
  hone_block_column out = {};
  const double largest_b = begin_side(t, b);
  if (!(largest_b >= 0.0) || !refine(t, &out.componentwise, &out.corrections))
    return out;
  const norms v = take_norms(t);
  out.forward = bound_errors(t, m, v);
  out.normwise = v.r_most / norm / v.x_most / sqrt(static_cast<double>(t.n));
  out.residual = v.r_most / largest_b;
  out.accepted = out.forward <= 0.1 && give_solution(t, x);
  return out;
}

} // namespace

#endif
