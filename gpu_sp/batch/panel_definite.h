/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel of a definite matrix is factored without pivoting: one warp inverts
   the diagonal block without waiting for others, and the rows below are
   products with it. A12 is the conjugate of A21. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_DEFINITE_H
#define HONE_DEVICE_BATCH_PANEL_DEFINITE_H

#include "gpu_sp/batch/panel_factor.h"

namespace {

/* Leaves the conjugate of A21 in the places of A12, which it is. */
template <class System>
__device__ __forceinline__ void give_top(const System &t, int q,
                                         const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int j = t.index(r), p = j / S::NB;
    if (p <= q || p >= t.panel_count())
      continue;
    number<S::P> *to =
        t.group(j / S::GROUP * S::GROUP, q * S::NB) + j % S::GROUP;
#pragma unroll
    for (int c = 0; c < S::NB; c++) {
      number<S::P> e = j < t.n ? h.m[r][c] : make<S::P>(0.0);
      if (S::P == 2)
        e.part[S::P - 1] = -e.part[S::P - 1];
      to[c * S::GROUP] = e;
    }
  }
}

/* Row j has the pivot of column KK of the registers: eliminates the rows of the
   warp that 'live' has bits of, as in eliminate_step. */
template <int KK, class System>
__device__ __forceinline__ void
definite_step(const System &t, int j, unsigned live,
              held<typename System::S> *h, double *smallest) {
  using S = typename System::S;
  const int turn = j % 2;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (t.index(r) == j)
      give_row<KK>(t, turn, r, *h);
  __syncwarp();
  const number<S::P> pivot = make<S::P>(t.s->candidate[turn][t.warp].part[0]);
  *smallest = smaller()(*smallest, pivot.part[0]);
  if (t.lane == 0) {
    t.s->from[j] = t.s->place[j] = j;
    t.s->pivot[j] = pivot;
  }
  eliminate_panel<KK>(t, live, j, reciprocal_of(pivot),
                      t.s->given[turn][t.warp], h);
}

/* Steps KK to 7 of eight, as in eliminate_eight. */
template <int KK, class System>
__device__ __forceinline__ void
definite_eight(const System &t, int j0, unsigned live,
               held<typename System::S> *h, double *smallest) {
  if constexpr (KK < 8) {
    if (j0 + KK < t.n)
      definite_step<KK>(t, j0 + KK, live, h, smallest);
    definite_eight<KK + 1>(t, j0, live, h, smallest);
  }
}

/* Copies the rows of panel q that 'live' has bits of, those of the diagonal
   block, to shared memory. */
template <class System>
__device__ __forceinline__ void share_block(const System &t, int q,
                                            unsigned live,
                                            const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (live >> r & 1)
#pragma unroll
      for (int c = 0; c < S::NB; c += 2)
        store_two(h.m[r][c], h.m[r][c + 1],
                  &t.s->top[q % 2][t.index(r) % S::NB][c]);
}

/* Puts the conjugate of the lower triangle of the warp's diagonal block in the
   place of the upper one, by shared memory: the factors are those of a
   Hermitian matrix, whatever the upper triangle is, and differ from S where S
   is not. Bit r of 'live': row r is in the block. */
template <class System>
__device__ __forceinline__ void mirror_diagonal(const System &t, int q,
                                                unsigned live,
                                                held<typename System::S> *h) {
  using S = typename System::S;
  const number<S::P>(*block)[S::NB] = t.s->top[q % 2];
  share_block(t, q, live, *h);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.index(r) % S::NB;
#pragma unroll
    for (int c = 1; c < S::NB; c++)
      if ((live >> r & 1) != 0 && c > i && q * S::NB + c < t.n)
        h->m[r][c] = conjugated(block[c][i], sign_word(true));
  }
  __syncwarp();
}

/* The warp that has the diagonal block of panel q, A11, inverts it, and leaves
   the inverse in shared memory too. */
template <class System>
__device__ __forceinline__ void invert_diagonal(const System &t, int q,
                                                held<typename System::S> *h,
                                                double *smallest) {
  using S = typename System::S;
  unsigned live = 0;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    live |= t.index(r) / S::NB == q && t.index(r) < t.n ? 1U << r : 0;
  mirror_diagonal(t, q, live, h);
#pragma unroll 1
  for (int k0 = 0; k0 < S::NB; k0 += 8) {
    definite_eight<0>(t, q * S::NB + k0, live, h, smallest);
    rotate_eight(h);
  }
  share_block(t, q, live, *h);
}

/* Computes columns c to c + GROUP - 1 of -A21 A11^-1 for the thread's rows. */
template <class System>
__device__ __forceinline__ void multiply_by_diagonal(
    const System &t, int q, int c, const held<typename System::S> &h,
    typename System::entry (&e)[System::S::R][System::S::GROUP]) {
  using S = typename System::S;
  const number<S::P>(*block)[S::NB] = t.s->top[q % 2];
#pragma unroll
  for (int k = 0; k < S::NB; k++) {
    number<S::P> b[S::GROUP];
#pragma unroll
    for (int i = 0; i < S::GROUP; i += 2)
      load_two(&block[k][c + i], &b[i], &b[i + 1]);
#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
      for (int i = 0; i < S::GROUP; i++)
        e[r][i] = minus_product(e[r][i], h.m[r][k], b[i]);
  }
}

/* Writes panel q: the rows of A11^-1, and those of -A21 A11^-1. */
template <class System>
__device__ __forceinline__ void
give_definite(const System &t, int q,
              const panel_rows<typename System::S> &rows,
              const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int c = 0; c < S::NB; c += S::GROUP) {
    number<S::P> e[S::R][S::GROUP] = {};
    if (t.reaches((q + 1) * S::NB))
      multiply_by_diagonal(t, q, c, h, e);
#pragma unroll
    for (int r = 0; r < S::R; r++) {
      const bool diagonal = t.index(r) / S::NB == q;
#pragma unroll
      for (int i = 0; i < S::GROUP; i++)
        e[r][i] = diagonal ? h.m[r][c + i] : e[r][i];
      if (rows.limit[r] >= 0)
        t.store_group(e[r], t.group(q * S::NB + c, t.index(r)));
    }
  }
}

/* Factors the panel in the registers. Ends where its diagonal block is in
   shared memory. */
template <class System>
__device__ __forceinline__ void
factor_definite(const System &t, int q,
                const panel_rows<typename System::S> &rows,
                held<typename System::S> *h, double *smallest) {
  using S = typename System::S;
  give_top(t, q, *h);
  if (t.warp_of(q * S::NB) == t.warp)
    invert_diagonal(t, q, h, smallest);
  t.sync();
  give_definite(t, q, rows, *h);
}

} // namespace

#endif
