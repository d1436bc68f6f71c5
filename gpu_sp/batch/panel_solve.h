/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with the factors of panels.h, and residuals. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_SOLVE_H
#define HONE_DEVICE_BATCH_PANEL_SOLVE_H

#include "gpu_sp/batch/panel_factor.h"
#include "gpu_sp/batch/solve.h"

namespace {

/* Q right-hand sides, as far as they are the thread's rows. */
template <class S, int Q> struct sides { number<S::P> v[S::R][Q]; };

/* The shared memory for NB numbers of each of Q right-hand sides. */
template <int Q, class System>
__device__ __forceinline__
    typename System::entry (*shared_sides(const System &t, int turn))[Q] {
  static_assert(Q <= System::S::NB, "they fit");
  return reinterpret_cast<typename System::entry(*)[Q]>(t.s->top[turn]);
}

/* v += or -= the thread's row of panel p times what is shared, for rows at
   places from 'from' to 'to' - 1. */
template <bool ADD, int Q, class System>
__device__ __forceinline__ void take_panel(const System &t, int p, int from,
                                           int to, int turn,
                                           sides<typename System::S, Q> *z) {
  using S = typename System::S;
  const number<S::P>(*shared)[Q] = shared_sides<Q>(t, turn);
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int k = t.place(r);
    if (k < from || k >= to)
      continue;
    const number<S::P> *f = t.row_of_panel(p, t.s->from[k]);
#pragma unroll(8)
    for (int c = 0; c < S::NB; c += 2) {
      number<S::P> e[2];
      load_two(f + c, &e[0], &e[1]);
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int q = 0; q < Q; q++)
          z->v[r][q] = ADD ? plus_product(z->v[r][q], e[i], shared[c + i][q])
                           : minus_product(z->v[r][q], e[i], shared[c + i][q]);
    }
  }
}

/* The rows of panel p give theirs; places behind the last row give 0. */
template <int Q, class System>
__device__ __forceinline__ void
share_sides(const System &t, int p, int turn,
            const sides<typename System::S, Q> &z) {
  using S = typename System::S;
  number<S::P>(*shared)[Q] = shared_sides<Q>(t, turn);
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (t.place(r) / S::NB == p)
#pragma unroll
      for (int q = 0; q < Q; q++)
        shared[t.place(r) % S::NB][q] =
            t.place(r) < t.n ? z.v[r][q] : make<S::P>(0.0);
}

/* z = A11^-1 z for the rows of panel p, which are in one warp, with the other
   half of what is shared as scratch. */
template <int Q, class System>
__device__ __forceinline__ void
solve_diagonal(const System &t, int p, int turn,
               sides<typename System::S, Q> *z) {
  using S = typename System::S;
  if (p * S::NB / (32 * S::R) != t.warp)
    return;
  share_sides<Q>(t, p, turn, *z);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (t.place(r) / S::NB == p)
#pragma unroll
      for (int q = 0; q < Q; q++)
        z->v[r][q] = make<S::P>(0.0);
  take_panel<true, Q>(t, p, p * S::NB, min(t.n, (p + 1) * S::NB), turn, z);
  __syncwarp();
  share_sides<Q>(t, p, turn, *z);
}

/* out = inv(M) in, for Q vectors in shared memory, which may be the same. */
template <int Q, class System>
__device__ HONE_NOINLINE void
solve_panels(const System t, const typename System::entry (*in)[System::N],
             typename System::entry (*out)[System::N]) {
  using S = typename System::S;
  const int count = t.panel_count();
  sides<S, Q> z;
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int q = 0; q < Q; q++)
      z.v[r][q] =
          t.place(r) < t.n ? in[q][t.s->from[t.place(r)]] : make<S::P>(0.0);
#pragma unroll 1
  for (int p = 0; p + 1 < count; p++) {
    share_sides<Q>(t, p, p % 2, z);
    t.sync();
    take_panel<true, Q>(t, p, (p + 1) * S::NB, t.n, p % 2, &z);
  }
  t.sync();
#pragma unroll 1
  for (int p = count - 1; p >= 0; p--) {
    solve_diagonal<Q>(t, p, p % 2, &z);
    t.sync();
    take_panel<false, Q>(t, p, 0, p * S::NB, p % 2, &z);
  }
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int q = 0; q < Q; q++)
      if (t.place(r) < t.n)
        out[q][t.place(r)] = z.v[r][q];
  t.sync();
}

template <class S>
__device__ __forceinline__ void apply(const panel_system<S> &t,
                                      const number<S::P> (&in)[S::N],
                                      number<S::P> (&out)[S::N]) {
  solve_panels<1>(t, &in, &out);
}

/* ---- With the transpose ------------------------------------------------- */

/* Adds up v[c] over the lanes: lane c 32 / NB receives the sum of v[c]. */
template <class S>
__device__ __forceinline__ number<S::P>
sum_over_lanes(int lane, number<S::P> (&v)[S::NB]) {
#pragma unroll
  for (int half = S::NB / 2, by = 16; half > 0; half /= 2, by /= 2)
#pragma unroll
    for (int c = 0; c < half; c++)
#pragma unroll
      for (int p = 0; p < S::P; p++) {
        const double low = v[c].part[p], high = v[c + half].part[p];
        const bool upper = (lane & by) != 0;
        const double give = upper ? low : high;
        v[c].part[p] = (upper ? high : low) + __shfl_xor_sync(ALL, give, by);
      }
#pragma unroll
  for (int by = 16 / S::NB; by > 0; by /= 2)
#pragma unroll
    for (int p = 0; p < S::P; p++)
      v[0].part[p] += __shfl_xor_sync(ALL, v[0].part[p], by);
  return v[0];
}

/* Thread c < NB returns sum_k F(k, c) u[k], F being panel p, over the places k
   from 'from' to 'to' - 1; u[k - base] is in shared memory. */
template <class System>
__device__ __forceinline__ typename System::entry
sum_columns(const System &t, int p, int from, int to,
            const typename System::entry *u, int base) {
  using S = typename System::S;
  number<S::P> v[S::NB];
#pragma unroll
  for (int c = 0; c < S::NB; c++)
    v[c] = make<S::P>(0.0);
#pragma unroll 1
  for (int r = 0; r < S::R; r++) {
    const int k = t.place(r);
    if (k < from || k >= to)
      continue;
    const number<S::P> *f = t.row_of_panel(p, t.s->from[k]);
    const number<S::P> by = u[k - base];
#pragma unroll
    for (int c = 0; c < S::NB; c += 2) {
      number<S::P> e[2];
      load_two(f + c, &e[0], &e[1]);
      v[c] = plus_product(v[c], e[0], by);
      v[c + 1] = plus_product(v[c + 1], e[1], by);
    }
  }
  const number<S::P> own = sum_over_lanes<S>(t.lane, v);
  t.sync(); /* the sums before are no longer read */
  if (t.lane % (32 / S::NB) == 0)
    t.s->sums[t.warp][t.lane / (32 / S::NB)] = own;
  t.sync();
  number<S::P> sum = make<S::P>(0.0);
  for (int w = 0; w < S::WARPS && t.thread < S::NB; w++)
    sum = sum_of(sum, t.s->sums[w][t.thread]);
  return sum;
}

/* out = inv(M)^T in; u: scratch, all in shared memory. */
template <class System>
__device__ HONE_NOINLINE void
solve_transposed(const System t, const typename System::entry *in,
                 typename System::entry *u, typename System::entry *out) {
  using S = typename System::S;
  const int count = t.panel_count(), c = t.thread;
  number<S::P> *rest = &t.s->top[0][0][0];
#pragma unroll 1
  for (int p = 0; p < count; p++) {
    const int first = p * S::NB;
    const number<S::P> above = sum_columns(t, p, 0, first, u, 0);
    if (c < S::NB)
      rest[c] = first + c < t.n ? difference_of(in[first + c], above)
                                : make<S::P>(0.0);
    t.sync();
    const number<S::P> own =
        sum_columns(t, p, first, min(t.n, first + S::NB), rest, first);
    if (c < S::NB && first + c < t.n)
      u[first + c] = own;
    t.sync();
  }
#pragma unroll 1
  for (int p = count - 2; p >= 0; p--) {
    const number<S::P> below = sum_columns(t, p, (p + 1) * S::NB, t.n, u, 0);
    if (c < S::NB)
      u[p * S::NB + c] = sum_of(u[p * S::NB + c], below);
    t.sync();
  }
  t.each_row([&](int k) { out[t.s->from[k]] = u[k]; });
  t.sync();
}

/* ---- Residuals ---------------------------------------------------------- */

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|. */
template <class S>
__device__ HONE_NOINLINE void residual_of(const panel_system<S> t) {
  constexpr int AT_ONCE = S::R * S::P >= 4 ? 2 : 4;
  wide sum[S::R][S::P];
  double den[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.thread + r * S::THREADS;
    const number<S::P> c = i < t.n ? t.s->c[i] : make<S::P>(0.0);
    den[r] = modulus_of(c);
    for (int p = 0; p < S::P; p++)
      sum[r][p] = {c.part[p], 0.0};
  }
#pragma unroll 1
  for (int j = 0; j < t.n; j += AT_ONCE) {
    number<S::P> e[AT_ONCE][S::R];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
      for (int r = 0; r < S::R; r++)
        e[u][r] = t.entry_of_s(t.thread + r * S::THREADS, j + u);
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const number<S::P> y = j + u < t.n ? t.s->y[j + u] : make<S::P>(0.0);
      const double size = modulus_of(y);
#pragma unroll
      for (int r = 0; r < S::R; r++) {
        subtract_exact_product(e[u][r], y, sum[r]);
        den[r] = fma(modulus_of(e[u][r]), size, den[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.thread + r * S::THREADS;
    if (i >= t.n)
      continue;
    for (int p = 0; p < S::P; p++)
      t.s->r[i].part[p] = sum[r][p].hi + sum[r][p].lo;
    t.s->den[i] = den[r];
  }
  t.sync();
}

template <class S>
__device__ __forceinline__ void residual(const panel_system<S> &t) {
  residual_of<S>(t);
}

/* Bounds the rounding errors in d = inv(M) r as in refine/bounds.c, with a
   larger factor because the factors are those of block LU. */
template <class S>
__device__ __forceinline__ double
lost_in_solve(const panel_system<S> &, const certified &m, double size) {
  return 16.0 * S::ROUNDINGS * HONE_EPS * (1.0 + m.contraction) * size /
         m.rcond_scaled;
}

} // namespace

#endif
