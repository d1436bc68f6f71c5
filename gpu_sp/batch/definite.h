/* SPDX-License-Identifier: BSD-3-Clause */
/* Definite matrices are inverted as eliminate.h inverts others, but without a
   search for pivots: the pivots of a panel are the diagonal of its block A11.
   So one warp inverts the next panel's A11 while the others multiply, and a
   panel itself is a product, -A21 inv(A11), by tiles. A claim that is wrong
   shows by a pivot that is not positive, or by the certificate. Nobody asks for
   their determinants here (hone_batch_is_definite). Device code. */
#ifndef HONE_DEVICE_BATCH_DEFINITE_H
#define HONE_DEVICE_BATCH_DEFINITE_H

#include "gpu_sp/batch/eliminate.h"

namespace {

template <class S> using diagonal_rows = number<S::P> (*)[S::NB + 4 / S::P];

/* Where the thread's column jj lies in the rows of pivots. */
template <class S> __device__ __forceinline__ int slot_of(int c, int jj) {
  return (jj / 2 * S::WARP_COLUMNS + c / 4) * 8 + c % 4 * 2 + jj % 2;
}

/* Copies the entries of the NB rows from k0 on and of as many columns, whose
   first ones of each thread are its column JJ, to shared memory. */
template <int JJ, class S>
__device__ __forceinline__ void give_diagonal(const system<S> &t, int k0,
                                              diagonal_rows<S> to) {
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const int r = t.i_of(ii) - k0;
    if (r < 0 || r >= S::NB)
      continue;
#pragma unroll
    for (int w = 0; w < S::PANEL_COLUMNS; w++)
      to[r][w * S::C + t.c] = t.m[ii][JJ + w];
  }
}

/* The numbers that a lane of the warp has. */
template <int P>
__device__ __forceinline__ void take_two(const number<P> (&v)[2], int lane,
                                         number<P> *one, number<P> *other) {
  for (int p = 0; p < P; p++) {
    one->part[p] = __shfl_sync(ALL, v[0].part[p], lane);
    other->part[p] = __shfl_sync(ALL, v[1].part[p], lane);
  }
}

/* Inverts a block of eight rows and columns, of which lane l has the entries
   (l / 4, 2 (l % 4)) and the next one, by Gauss-Jordan elimination with pivots
   of two rows and columns: the chain of operations is half as long as with
   single ones. Pivot KK and those behind. */
template <int KK, class S>
__device__ __forceinline__ void invert_from(const system<S> &t, panel<S> *p,
                                            number<S::P> (&v)[2]) {
  if constexpr (KK < S::NB / 2) {
    using entry = number<S::P>;
    constexpr int FIRST = 8 * KK, SECOND = FIRST + 4; /* lanes of its rows */
    const int lane = t.thread % 32, row = lane / 4, pair = lane % 4;
    entry p00, p01, p10, p11, u0, u1, above[2], below[2];
    take_two(v, FIRST + KK, &p00, &p01);
    take_two(v, SECOND + KK, &p10, &p11);
    take_two(v, row * 4 + KK, &u0, &u1);
    take_two(v, FIRST + pair, &above[0], &above[1]);
    take_two(v, SECOND + pair, &below[0], &below[1]);
    const entry det = minus_product(product_of(p00, p11), p01, p10);
    const entry inverse = reciprocal_of(det);
    p->smallest = smaller()(p->smallest, p00.part[0]);
    p->smallest = smaller()(p->smallest, det.part[0]);
    /* Rows of the pivot become those of its inverse times themselves. */
    const bool own = row / 2 == KK;
    if (own) {
      u0 = make<S::P>(row % 2 == 0 ? -1.0 : 0.0);
      u1 = make<S::P>(row % 2 == 0 ? 0.0 : -1.0);
    }
    const entry by0 =
        product_of(minus_product(product_of(u0, p11), u1, p10), inverse);
    const entry by1 =
        product_of(minus_product(product_of(u1, p00), u0, p01), inverse);
    const bool column = pair == KK;
#pragma unroll
    for (int c = 0; c < 2; c++) {
      if (column) {
        above[c] = make<S::P>(c == 0 ? 1.0 : 0.0);
        below[c] = make<S::P>(c == 0 ? 0.0 : 1.0);
      }
      v[c] =
          minus_product(own || column ? make<S::P>(0.0) : v[c], by0, above[c]);
      v[c] = minus_product(v[c], by1, below[c]);
    }
    invert_from<KK + 1>(t, p, v);
  }
}

/* A warp inverts the diagonal block of panel p and leaves it for all; its
   entries are in place of the lanes already. */
template <class S>
__device__ __forceinline__ void invert_diagonal(const system<S> &t, panel<S> *p,
                                                number<S::P> (&v)[2]) {
  const int lane = t.thread % 32;
  invert_from<0>(t, p, v);
  store_two(v[0], v[1], &t.s->of_panel.inverse[lane / 4][lane % 4 * 2]);
}

/* Inverts the first diagonal block. */
template <class S>
__device__ __forceinline__ void invert_first(const system<S> &t, panel<S> *p) {
  const int lane = t.thread % 32;
  number<S::P> v[2];
  load_two(&t.s->of_panel.inverse[lane / 4][lane % 4 * 2], &v[0], &v[1]);
  invert_diagonal(t, p, v);
}

/* Updates the diagonal block behind panel p, and inverts it. */
template <class S>
__device__ __forceinline__ void invert_next(const system<S> &t, panel<S> *p,
                                            int turn) {
  const int k = t.thread % 4, label = t.thread % 32 / 4;
  const int row = p->k0 + S::NB + label;
  const auto left = t.s->of_panel.at[turn];
  const auto rows = t.s->of_panel.pivot_rows[turn];
  const number<S::P> *from = &t.s->of_panel.diagonal[turn][label][2 * k];
  const number<S::P> zero = make<S::P>(0.0);
  const number<S::P> a[4] = {left[k][row], zero, left[k + 4][row], zero};
  const int slot = slot_of<S>(label % S::C, S::PANEL_COLUMNS + label / S::C);
  const number<S::P> b[2] = {rows[k][slot], rows[k + 4][slot]};
  number<S::P> c[4] = {from[0], from[1], zero, zero};
  multiply_add(c, a, b);
  number<S::P> v[2] = {c[0], c[1]};
  p->k0 += S::NB;
  invert_diagonal(t, p, v);
}

/* The panel becomes -A21 inv(A11), and inv(A11) in the rows of its pivots. A
   warp has tiles of 16 rows. */
template <class S>
__device__ __forceinline__ void
multiply_panel(const system<S> &t, int k0,
               number<S::P> (*at)[S::PANEL_STRIDE]) {
  const int k = t.thread % 4, label = t.thread % 32 / 4;
  const auto inverse = t.s->of_panel.inverse;
  const number<S::P> b[2] = {inverse[k][label], inverse[k + 4][label]};
#pragma unroll 1
  for (int i0 = t.thread / 32 * 16; i0 < S::N; i0 += S::WARPS * 16) {
    const int i = i0 + label;
    const number<S::P> a[4] = {at[k][i], at[k][i + 8], at[k + 4][i],
                               at[k + 4][i + 8]};
    number<S::P> c[4] = {};
    multiply_add(c, a, b);
    __syncwarp(); /* the tile has been read */
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int column = 2 * k + e % 2, row = i + e / 2 * 8;
      const bool is = row >= k0 && row < k0 + S::NB;
      at[column][row] = is ? inverse[label][column] : scaled(c[e], -1.0);
    }
  }
}

/* Inverts S. The first warp inverts diagonal blocks, before it multiplies. */
template <class S>
__device__ __forceinline__ void invert_definite(system<S> &t, panel<S> *p) {
  constexpr int TURNS = panel_buffers<S>::TURNS;
  auto &shared = t.s->of_panel;
  const bool inverts = t.thread < 32;
  give_diagonal<0>(t, 0, shared.inverse);
  t.sync();
  if (inverts)
    invert_first(t, p);
#pragma unroll 1
  for (int k0 = 0; k0 < S::N; k0 += S::NB) {
    const int turn = k0 / S::NB % TURNS;
    const auto at = shared.at[turn], rows = shared.pivot_rows[turn];
    if (k0 < t.n) {
      if (TURNS == 1)
        t.sync(); /* nobody reads what is about the panel before this one */
      give_panel(t, at);
      give_diagonal<S::PANEL_COLUMNS>(t, k0 + S::NB, shared.diagonal[turn]);
      give_pivot_rows(t, k0, rows);
      t.sync();
      multiply_panel(t, k0, at);
      t.sync();
      if (inverts && k0 + S::NB < t.n)
        invert_next(t, p, turn);
      update(t, at, rows);
    }
    move_columns(t, k0 < t.n, at);
  }
}

} // namespace

#endif
