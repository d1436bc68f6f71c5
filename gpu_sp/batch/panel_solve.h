/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with the factors of panels.h, whose rows are in the order of the
   pivots, and residuals. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_SOLVE_H
#define HONE_DEVICE_BATCH_PANEL_SOLVE_H

#include "gpu_sp/batch/panel_definite.h"
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

/* Loads columns C .. C + 3 of panel p for the thread's places from 'from' to
   'to' - 1; zeros for others. */
template <int C, class System>
__device__ __forceinline__ void load_part(const System &t, int p, int from,
                                          int to,
                                          held<typename System::S> *part) {
  using S = typename System::S;
#pragma unroll
  for (int c = C; c < C + 4; c += S::GROUP) {
    const number<S::P> *at = t.group(p * S::NB + c, t.index(0));
#pragma unroll
    for (int r = 0; r < S::R; r++) {
      const int k = t.index(r);
#pragma unroll
      for (int i = 0; i < S::GROUP; i++)
        part->m[r][c + i] = make<S::P>(0.0);
      if (k >= from && k < to)
        t.load_group(at + 32 * r * S::GROUP, &part->m[r][c]);
    }
  }
}

/* z += or -= columns C .. C + 3 of the part of a panel times what is shared. */
template <int C, bool ADD, int Q, class S>
__device__ __forceinline__ void
multiply_part(const held<S> &part, const number<S::P> *shared, sides<S, Q> *z) {
#pragma unroll
  for (int w = C * Q; w < (C + 4) * Q; w += 2) {
    number<S::P> u[2];
    load_two(shared + w, &u[0], &u[1]);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int r = 0; r < S::R; r++) {
        number<S::P> *to = &z->v[r][(w + i) % Q];
        const number<S::P> e = part.m[r][(w + i) / Q];
        *to = ADD ? plus_product(*to, e, u[i]) : minus_product(*to, e, u[i]);
      }
  }
}

/* Which panel's numbers are loaded next, for places from 'from' to 'to' - 1. */
struct next_part {
  int p, from, to;
};

/* z += or -= the part of a panel times what is shared, unless the warp has no
   part; the numbers of the next one take the places of those that are used. */
template <bool ADD, int Q, int C = 0, class System>
__device__ __forceinline__ void
take_part(const System &t, bool has_part, int turn, const next_part &next,
          held<typename System::S> *part, sides<typename System::S, Q> *z) {
  using S = typename System::S;
  if constexpr (C < S::NB) {
    if (has_part)
      multiply_part<C, ADD, Q>(*part, shared_sides<Q>(t, turn)[0], z);
    load_part<C>(t, next.p, next.from, next.to, part);
    take_part<ADD, Q, C + 4>(t, has_part, turn, next, part, z);
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
    if (t.index(r) / S::NB == p)
#pragma unroll
      for (int q = 0; q < Q; q++)
        shared[t.index(r) % S::NB][q] =
            t.index(r) < t.n ? z.v[r][q] : make<S::P>(0.0);
}

/* z = A11^-1 z for the rows of panel p, which are in one warp; they take no
   part in the panel after that. */
template <int Q, class System>
__device__ __forceinline__ void
solve_diagonal(const System &t, int p, int turn, held<typename System::S> *part,
               sides<typename System::S, Q> *z) {
  using S = typename System::S;
  if (t.warp_of(p * S::NB) != t.warp)
    return;
  const number<S::P>(*shared)[Q] = shared_sides<Q>(t, turn);
  share_sides<Q>(t, p, turn, *z);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    if (t.index(r) / S::NB != p)
      continue;
#pragma unroll
    for (int q = 0; q < Q; q++)
      z->v[r][q] = make<S::P>(0.0);
#pragma unroll
    for (int c = 0; c < S::NB; c++) {
#pragma unroll
      for (int q = 0; q < Q; q++)
        z->v[r][q] = plus_product(z->v[r][q], part->m[r][c], shared[c][q]);
      part->m[r][c] = make<S::P>(0.0);
    }
  }
  __syncwarp();
  share_sides<Q>(t, p, turn, *z);
}

/* out = inv(M) in, for Q vectors in shared memory, which may be the same. A
   panel's numbers are under way before the barrier that it waits for. */
template <int Q, class System>
__device__ HONE_NOINLINE void
solve_panels(const System t, const typename System::entry (*in)[System::N],
             typename System::entry (*out)[System::N]) {
  using S = typename System::S;
  const int count = t.panel_count();
  t.locate();
  hone_is_shared(in);
  hone_is_shared(out);
  sides<S, Q> z = {};
  held<S> part;
  take_part<true, Q>(t, false, 0, {0, count > 1 ? S::NB : 0, t.n}, &part, &z);
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int q = 0; q < Q; q++)
      if (t.index(r) < t.n)
        z.v[r][q] = in[q][t.s->from[t.index(r)]];
#pragma unroll 1
  for (int p = 0; p + 1 < count; p++) {
    const int from = (p + 1) * S::NB; /* of the last panel, all is next */
    share_sides<Q>(t, p, p % 2, z);
    t.sync();
    take_part<true, Q>(t, t.reaches(from), p % 2,
                       {p + 1, p + 2 < count ? from + S::NB : 0, t.n}, &part,
                       &z);
  }
#pragma unroll 1
  for (int p = count - 1; p >= 0; p--) {
    solve_diagonal<Q>(t, p, p % 2, &part, &z);
    t.sync();
    take_part<false, Q>(t, t.starts_below(p * S::NB), p % 2,
                        {p - 1, 0, p * S::NB}, &part, &z);
  }
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int q = 0; q < Q; q++)
      if (t.index(r) < t.n)
        out[q][t.index(r)] = z.v[r][q];
  t.sync();
}

template <class S>
__device__ __forceinline__ void apply(const panel_system<S> &t,
                                      const number<S::P> (&in)[S::N],
                                      number<S::P> (&out)[S::N]) {
  solve_panels<1>(t, &in, &out);
}

/* ---- With the transpose ------------------------------------------------- */

/* A warp adds up whole columns of a panel, COLUMNS, and has ROWS times 32 of
   their rows under way at once. */
template <class S> struct column_sums {
  static constexpr int OF_WARP = S::NB / S::WARPS;
  static constexpr int COLUMNS = OF_WARP > S::GROUP ? OF_WARP : S::GROUP;
  static constexpr int ROWS = COLUMNS * S::P >= 16 ? 1 : 16 / (COLUMNS * S::P);
  static_assert(COLUMNS % S::GROUP == 0, "they are whole groups");
};

/* The column of a panel whose sum the thread receives, or -1. */
template <class System>
__device__ __forceinline__ int column_of_sum(const System &t) {
  using S = typename System::S;
  constexpr int C = column_sums<S>::COLUMNS;
  const bool is = t.lane % (32 / C) == 0 && t.warp * C < S::NB;
  return is ? t.warp * C + t.lane / (32 / C) : -1;
}

/* Returns sum_k F(k, c) u[k], F being panel p and c the column_of_sum, over the
   places k from 'from' to 'to' - 1. */
template <class System>
__device__ __forceinline__ typename System::entry
sum_columns(const System &t, int p, int from, int to,
            const typename System::entry *u) {
  using S = typename System::S;
  constexpr int C = column_sums<S>::COLUMNS, ROWS = column_sums<S>::ROWS;
  number<S::P> v[C] = {};
  if (t.warp * C >= S::NB)
    return v[0];
  const int j = p * S::NB + t.warp * C;
#pragma unroll 1
  for (int k0 = from + t.lane; k0 < to + t.lane; k0 += 32 * ROWS) {
    number<S::P> e[ROWS][C] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int c = 0; c < C; c += S::GROUP)
        if (k0 + 32 * r < to)
          t.load_group(t.group(j + c, k0 + 32 * r), &e[r][c]);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int k = k0 + 32 * r;
      const number<S::P> by = k < to ? u[k] : make<S::P>(0.0);
#pragma unroll
      for (int c = 0; c < C; c++)
        v[c] = plus_product(v[c], e[r][c], by);
    }
  }
  return sum_over_lanes<C>(t.lane, v);
}

/* Loads the thread's numbers of A11^-1 of panel p for sum_diagonal. */
template <class System, int C>
__device__ __forceinline__ void load_diagonal(const System &t, int p,
                                              typename System::entry (&e)[C]) {
  using S = typename System::S;
  const int k = p * S::NB + t.lane;
  const bool is = t.lane < S::NB && k < t.n && t.warp * C < S::NB;
#pragma unroll
  for (int c = 0; c < C; c++)
    e[c] = make<S::P>(0.0);
#pragma unroll
  for (int c = 0; c < C; c += S::GROUP)
    if (is)
      t.load_group(t.group(p * S::NB + t.warp * C + c, k), &e[c]);
}

/* Like sum_columns, of A11^-1 and u[0] to u[NB - 1]. */
template <class System, int C>
__device__ __forceinline__ typename System::entry
sum_diagonal(const System &t, typename System::entry (&e)[C],
             const typename System::entry *u) {
  using S = typename System::S;
  const number<S::P> by = t.lane < S::NB ? u[t.lane] : make<S::P>(0.0);
#pragma unroll
  for (int c = 0; c < C; c++)
    e[c] = product_of(e[c], by);
  return sum_over_lanes<C>(t.lane, e);
}

/* out = inv(M)^T in; u: scratch, all in shared memory. */
template <class System>
__device__ HONE_NOINLINE void
solve_transposed(const System t, const typename System::entry *in,
                 typename System::entry *u, typename System::entry *out) {
  using S = typename System::S;
  const int count = t.panel_count(), c = column_of_sum(t);
  t.locate();
  hone_is_shared(in);
  hone_is_shared(u);
  hone_is_shared(out);
  number<S::P> *rest = &t.s->top[0][0][0];
#pragma unroll 1
  for (int p = 0; p < count; p++) {
    const int first = p * S::NB;
    number<S::P> diagonal[column_sums<S>::COLUMNS];
    load_diagonal(t, p, diagonal);
    const number<S::P> above = sum_columns(t, p, 0, first, u);
    if (c >= 0)
      rest[c] = first + c < t.n ? difference_of(in[first + c], above)
                                : make<S::P>(0.0);
    t.sync();
    const number<S::P> own = sum_diagonal(t, diagonal, rest);
    if (c >= 0 && first + c < t.n)
      u[first + c] = own;
    t.sync();
  }
#pragma unroll 1
  for (int p = count - 2; p >= 0; p--) {
    const int first = p * S::NB;
    const number<S::P> below = sum_columns(t, p, first + S::NB, t.n, u);
    if (c >= 0)
      u[first + c] = sum_of(u[first + c], below);
    t.sync();
  }
  t.each_row([&](int k) { out[t.s->from[k]] = u[k]; });
  t.sync();
}

/* ---- Residuals ---------------------------------------------------------- */

enum { FOLDED = 4 }; /* columns after which the pairs of sums are folded */

/* r = c - S y in double-double, rounded once, and den = |S| |y| + |c|. */
template <class S>
__device__ HONE_NOINLINE void residual_of(const panel_system<S> t) {
  wide sum[S::R][S::P];
  double den[S::R];
  int row[S::R];
  t.locate();
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.thread + r * S::THREADS;
    const number<S::P> c = i < t.n ? t.s->c[i] : make<S::P>(0.0);
    row[r] = i;
    den[r] = modulus_of(c);
    for (int p = 0; p < S::P; p++)
      sum[r][p] = {c.part[p], 0.0};
  }
  t.each_columns(row, [&](int j, const number<S::P>(&e)[S::LOADED][S::R]) {
#pragma unroll
    for (int u = 0; u < S::LOADED; u++) {
      const number<S::P> y = j + u < t.n ? t.s->y[j + u] : make<S::P>(0.0);
      const double size = modulus_of(y);
#pragma unroll
      for (int r = 0; r < S::R; r++) {
        subtract_exact_product(e[u][r], y, sum[r]);
        for (int p = 0; p < S::P && u % FOLDED == FOLDED - 1; p++)
          fold(&sum[r][p]);
        den[r] = fma(modulus_of(e[u][r]), size, den[r]);
      }
    }
  });
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
   larger factor because the factors are those of block LU. Where blocks are
   nearly singular they are larger, but then the random vectors have shown
   errors of that size: the bound on ||E|| is that of theirs. */
template <class S>
__device__ __forceinline__ double
lost_in_solve(const panel_system<S> &, const certified &m, double size) {
  const double usual =
      16.0 * S::ROUNDINGS * HONE_EPS * (1.0 + m.contraction) / m.rcond_scaled;
  return (usual + m.contraction) * size;
}

} // namespace

#endif
