/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions with a certified inverse or with factors: refined by residuals in
   double-double, measured and bounded as in cpu_batch/kernels.c, where the
   bound is derived. A kernel's type of system says which rows a thread has
   (each_row), and has residual(t), apply(t, in, out), which solves with the
   factors, and lost_in_solve(t, m, ||d||), a bound on the rounding errors of
   that. Device code. */
#ifndef HONE_DEVICE_BATCH_SOLVE_H
#define HONE_DEVICE_BATCH_SOLVE_H

#include "gpu_sp/batch/verdict.h"

#include <cfloat>

namespace {

/* As in cpu_batch/kernels.c. */
constexpr double LARGEST_SIDE = 0x1p400, SMALLEST_SIDE = 0x1p-400;
constexpr double LEAST_SQUARED = 0x1p-440;
constexpr double TIGHT = 2.0, SMALL = 0.25 * HONE_EPS;
constexpr double ROUNDING = 4.0 * HONE_EPS, NOISE_FACTOR = 2.0;
constexpr double ABOVE = 1.0 + 0x1p-36, GRAIN = 0x1p-900;

/* Prepares c = R b. Returns max |b_i|, or NaN where b is not for this kernel.
 */
template <class System>
__device__ __forceinline__ double begin_side(const System &t,
                                             const typename System::entry *b) {
  double v[3] = {0.0, 0.0, -1.0};
  t.each_place([&](int i) {
    t.s->c[i] = make<System::P>(0.0);
    if (i >= t.n)
      return;
    const double row = t.s->row[i];
    const typename System::entry c = scaled(b[i], row);
    t.s->c[i] = c;
    v[0] = larger()(v[0], modulus_of(c) / row);
    v[1] = larger()(v[1], extreme_of(c));
    for (int p = 0; p < System::P; p++) {
      const double size = fabs(c.part[p]);
      v[2] = size > 0.0 && -size > v[2] ? -size : v[2];
    }
  });
  t.sync();
  t.all(v, larger());
  const bool serves =
      v[1] > 0.0 && v[1] <= LARGEST_SIDE && -v[2] >= SMALLEST_SIDE;
  return serves ? v[0] : HONE_NAN;
}

/* max_i |r_i| / den_i; NaN where a denominator may have lost digits, or the
   square of a complex number beside it. */
template <class System>
__device__ __forceinline__ double componentwise(const System &t) {
  const double least =
      System::P == 1 ? t.n * DBL_MIN / HONE_EPS / HONE_EPS : LEAST_SQUARED;
  double v[1] = {0.0};
  t.each_row([&](int i) {
    const double den = t.s->den[i];
    const double ratio = modulus_of(t.s->r[i]) / den;
    const bool lost =
        !(den > least) || !(den <= DBL_MAX) || !(ratio <= DBL_MAX);
    v[0] = larger()(v[0], lost ? HONE_NAN : ratio);
  });
  t.all(v, larger());
  return v[0];
}

/* Solves and corrects until the solution is accepted, or has had its
   corrections; d is that of the last y. Returns whether it is. The code of a
   solution, a long one, is there once. */
template <class System>
__device__ __forceinline__ bool refine(const System &t, double *omega,
                                       int *corrections) {
  t.each_place([&](int i) {
    t.s->y[i] = make<System::P>(0.0);
    t.s->r[i] = t.s->c[i];
  });
  t.sync();
#pragma unroll 1
  for (int step = -1;; step++) {
    apply(t, t.s->r, t.s->d);
    if (step >= 0) {
      const bool accepted = *omega <= t.in->limit;
      if (accepted || step >= t.in->corrections)
        return accepted;
    }
    t.each_row([&](int i) { t.s->y[i] = sum_of(t.s->y[i], t.s->d[i]); });
    t.sync();
    residual(t);
    *omega = componentwise(t);
    *corrections = step + 1;
  }
}

/* Largest numbers and sums over the components, the same in all threads. */
struct norms {
  double d_square, noise_square, d_most, d_most_unit, y_most, x_most, r_most;
  double widest; /* the largest c_i */
};

template <class System>
__device__ __forceinline__ norms take_norms(const System &t) {
  const double terms = 8.0 * t.n + 16.0 + 0.5 * System::CHAIN * System::CHAIN;
  const double gamma = System::ROUNDINGS * terms * HONE_EPS * HONE_EPS;
  double sum[2] = {}, most[6] = {};
  t.each_row([&](int i) {
    const double d = modulus_of(t.s->d[i]), col = t.s->col[i];
    const double y = modulus_of(t.s->y[i]), r = modulus_of(t.s->r[i]);
    const double wrong = gamma * t.s->den[i], noise = wrong + HONE_EPS * r;
    const double of_row[6] = {
        d, d * col, y, y * col, (r + wrong) / t.s->row[i], col};
    sum[0] = fma(d, d, sum[0]);
    sum[1] = fma(noise, noise, sum[1]);
    for (int q = 0; q < 6; q++)
      most[q] = larger()(most[q], of_row[q]);
  });
  t.all(sum, plus());
  t.all(most, larger());
  return {sum[0], sum[1], most[0], most[1], most[2], most[3], most[4], most[5]};
}

/* Bounds the errors. Returns the relative bound, or NaN where noise would
   count, or the bound is not tight. */
template <class System>
__device__ __forceinline__ double
bound_errors(const System &t, const certified &m, const norms &v) {
  const double eta = m.contraction, size = sqrt(v.d_square) * ABOVE;
  const double noise = NOISE_FACTOR * ABOVE * m.inverse * sqrt(v.noise_square);
  const double lost = lost_in_solve(t, m, size) + GRAIN * v.y_most;
  const double f = (noise + lost * sqrt(static_cast<double>(t.n)) + size) /
                   (1.0 - eta) * ABOVE;
  double total[2] = {};
  t.each_row([&](int i) {
    const double d = modulus_of(t.s->d[i]);
    const double bar =
        ABOVE * (d + t.s->rows[i] * f + noise + lost + ROUNDING * d);
    total[0] = larger()(total[0], bar);
    total[1] = larger()(total[1], bar * t.s->col[i]);
  });
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
template <class System>
__device__ __forceinline__ bool give_solution(const System &t,
                                              typename System::entry *x) {
  double wrong[1] = {0.0};
  t.each_row([&](int i) {
    const double col = t.s->col[i];
    const typename System::entry y = t.s->y[i], own = scaled(y, col);
    for (int p = 0; p < System::P; p++)
      if (!(own.part[p] / col == y.part[p]) || !(fabs(own.part[p]) <= DBL_MAX))
        wrong[0] = 1.0;
  });
  t.all(wrong, larger());
  if (wrong[0] == 0.0)
    t.each_row([&](int i) { x[i] = scaled(t.s->y[i], t.s->col[i]); });
  return wrong[0] == 0.0;
}

/* Solves for one right-hand side; the result is the same in all threads. */
template <class System>
__device__ __forceinline__ hone_block_column
solve_column(const System &t, const certified &m, double norm,
             const typename System::entry *b, typename System::entry *x) {
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
