/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of an inverse, by the method of refine/probes.c: random
   vectors g bound ||E||_2, E = I - inv(M) S, and the norms of its rows. The
   inverse itself is at hand here: its norms are summed, not estimated, and
   ||inv(S)||_2 <= ||inv(M)||_F / (1 - ||E||_2). Device code. */
#ifndef HONE_DEVICE_BATCH_CERTIFY_H
#define HONE_DEVICE_BATCH_CERTIFY_H

#include "gpu_sp/batch/invert.h"

namespace {

/* The random numbers of one batch of S::K vectors: those of the vectors, then
   those that round their products. */
template <class S>
__device__ __forceinline__ double drawn(const system<S> &t, uint64_t seed,
                                        bool rounds, int k, int part) {
  const int first = rounds ? S::K * S::N * S::P : 0;
  return random_unit(
      seed, static_cast<uint64_t>(first + (k * S::N + t.thread) * S::P + part));
}

/* Draws S::K vectors. Ends where the threads may read them. */
template <class S>
__device__ __forceinline__ void draw(const system<S> &t, uint64_t seed) {
#pragma unroll
  for (int k = 0; k < S::K; k++) {
    number<S::P> g = make<S::P>(0.0);
    for (int p = 0; p < S::P && t.is_row(); p++)
      g.part[p] = 1.7320508075688772 * drawn(t, seed, false, k, p);
    if (t.thread < S::N)
      t.s->v[k][t.thread] = g;
  }
  t.sync();
}

/* product = S v, every product and every sum rounded, and then, at random,
   digits changed by up to two units: with fused operations S v and the solve
   for it can undo one another exactly, and rounding alone leaves numbers of few
   digits as they are (docs/numerics.md). e(ii, jj): the entries of S. */
template <bool REGISTERS, class S, class Entry>
__device__ __forceinline__ void multiply(const system<S> &t, uint64_t seed,
                                         Entry e) {
  number<S::P> sum[S::K];
  t.template row_products<S::K, REGISTERS>(
      e, [&](int k, int j) { return t.s->v[k][j]; },
      [](number<S::P> to, number<S::P> at, number<S::P> v) {
        return plus_rounded(to, at, v);
      },
      sum);
#pragma unroll
  for (int k = 0; k < S::K; k++) {
    for (int p = 0; p < S::P; p++)
      sum[k].part[p] +=
          2.0 * HONE_EPS * drawn(t, seed, true, k, p) * sum[k].part[p];
    if (t.thread < S::N)
      t.s->product[k][t.thread] = sum[k];
  }
  t.sync();
}

/* Adds what E g shows for the vectors whose products are there: to the row's
   square, which is returned, and to that of all. */
template <class S>
__device__ __forceinline__ double add_vectors(const system<S> &t) {
  double square = 0.0;
  apply_inverse<S::K>(t, t.s->product, t.s->product);
  if (t.is_row())
#pragma unroll
    for (int k = 0; k < S::K; k++)
      square += square_of(
          difference_of(t.s->v[k][t.thread], t.s->product[k][t.thread]));
  return square;
}

/* Makes a statement of the row's sum of squares over t vectors. Returns the
   bound on ||E||_2. */
template <class S>
__device__ __forceinline__ double state(const system<S> &t, double square,
                                        int vectors, double theta,
                                        double by_row) {
  const double rounding =
      sqrt(static_cast<double>(vectors)) * HONE_EPS * sqrt(3.0 * S::P);
  double v[1] = {square};
  t.all(v, plus());
  if (t.is_row())
    t.s->rows[t.thread] = by_row * (sqrt(square) + rounding);
  return theta * sqrt(v[0]);
}

/* The Frobenius norm and the 1-norm of the inverse of S, and the latter of the
   inverse of op(A). */
struct inverse_norms {
  double frobenius, one, one_of_a;
};

template <class S>
__device__ __forceinline__ inverse_norms inverse_norms_of(const system<S> &t,
                                                          bool plain) {
  double square = 0.0, sum[S::TC] = {}, sum_of_a[S::TC] = {};
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const int i = t.i_of(ii);
    const bool inside = i < t.n;
    const double unit = t.s->col[t.s->place[i]];
#pragma unroll
    for (int jj = 0; jj < S::TC; jj++) {
      const double size = inside ? modulus_of(t.m[ii][jj]) : 0.0;
      square = fma(size, size, square);
      sum[jj] += size;
      if (!plain)
        sum_of_a[jj] = fma(size, unit, sum_of_a[jj]);
    }
  }
  const double scaled_sum = t.over_rows(sum, plus());
  double of_a = plain ? scaled_sum : t.over_rows(sum_of_a, plus());
  if (t.is_row())
    of_a *= t.s->row[t.s->from[t.thread]];
  double most[2] = {t.is_row() ? scaled_sum : 0.0, t.is_row() ? of_a : 0.0};
  double squares[1] = {square};
  t.all(most, larger());
  t.all(squares, plus());
  return {sqrt(squares[0]) * SUMMED, most[0], most[1]};
}

/* Sums over all vectors, in portions of S::K, with A read again. */
template <class S>
__device__ __forceinline__ double probe_all(const system<S> &t, uint64_t seed,
                                            const probe_factors &f) {
  const int vectors = PROBES_ALL / S::P;
  double square = 0.0;
  for (int done = 0; done < vectors; done += S::K) {
    seed += 0x632be59bd9b4e019U;
    draw(t, seed);
    multiply<false>(t, seed,
                    [&](int ii, int jj) { return t.entry_of_s(ii, jj); });
    square += add_vectors(t);
  }
  return state(t, square, vectors, f.all, f.all_rows);
}

/* Certifies the inverse; the first vectors' products are there. */
template <class S>
__device__ __forceinline__ certified certify(const system<S> &t,
                                             const matrix_norms &a,
                                             uint64_t seed,
                                             const probe_factors &f) {
  const inverse_norms of_inverse = inverse_norms_of(t, a.plain);
  certified out;
  out.contraction = state(t, add_vectors(t), S::K, f.few, f.few_rows);
  out.inverse = of_inverse.frobenius / (1.0 - out.contraction);
  const double noise = (t.n + 4) * HONE_EPS * a.norm_scaled * out.inverse;
  if (!(out.contraction <= FEW_BOUND) || !(noise <= FEW_NOISE)) {
    out.contraction = probe_all(t, seed, f);
    out.inverse = of_inverse.frobenius / (1.0 - out.contraction);
  }
  out.rcond_scaled = 1.0 / (a.norm_scaled * of_inverse.one);
  out.rcond =
      a.plain ? out.rcond_scaled : 1.0 / (a.norm_cols * of_inverse.one_of_a);
  out.rcond = out.rcond > 1.0 ? 1.0 : out.rcond;
  out.serves = a.serves && out.contraction <= ALL_BOUND &&
               out.rcond_scaled >= HONE_EPS && out.rcond > 0.0 &&
               out.inverse <= LARGEST_ENTRY;
  return out;
}

} // namespace

#endif
