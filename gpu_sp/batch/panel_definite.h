/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization of all panels; of definite matrices without pivoting. Their
   A12 is the conjugate of A21, and one warp inverts the diagonal block of a
   panel without waiting for others. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_DEFINITE_H
#define HONE_DEVICE_BATCH_PANEL_DEFINITE_H

#include "gpu_sp/batch/panel_factor.h"

namespace {

/* ---- Definite matrices --------------------------------------------------- */

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

/* Begins to copy the rows A12 of panel p, of the columns of panel q, to shared
   memory for all threads. */
template <class System>
__device__ __forceinline__ void begin_top(const System &t, int p, int q) {
  using S = typename System::S;
  constexpr int OF_ROW = S::NB * S::P / 2; /* parts of 16 bytes */
  for (int i = t.thread; i < S::NB * OF_ROW; i += S::THREADS) {
    const int k = i / OF_ROW, c = i % OF_ROW * 2 / S::P;
    const int first = c / S::GROUP * S::GROUP;
    hone_begin_copy_16(&t.s->top[p % 2][k][c],
                       t.group(q * S::NB + first, p * S::NB + k) + (c - first),
                       true);
  }
  hone_end_copy_group();
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
#pragma unroll 1
  for (int k0 = 0; k0 < S::NB; k0 += 8) {
    definite_eight<0>(t, q * S::NB + k0, live, h, smallest);
    rotate_eight(h);
  }
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (live >> r & 1)
#pragma unroll
      for (int c = 0; c < S::NB; c += 2)
        store_two(h->m[r][c], h->m[r][c + 1],
                  &t.s->top[q % 2][t.index(r) % S::NB][c]);
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

/* ---- All panels ---------------------------------------------------------- */

/* Reads panel q and subtracts A21 A11^-1 A12 of every panel before it. While
   columns of the factors are used the next ones are under way, beyond the end
   of a panel too, and so is the next A12 of a definite matrix. */
template <bool DEFINITE, class System>
__device__ __forceinline__ void
bring_up_to_date(const System &t, int q,
                 const panel_rows<typename System::S> &rows,
                 held<typename System::S> *h) {
  using S = typename System::S;
  constexpr int AHEAD = panel_steps<S>::STEPS - 1;
  static_assert(AHEAD <= S::NB / S::AT_ONCE, "of A12 nothing is begun later");
  if (DEFINITE && q > 0)
    begin_top(t, 0, q);
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
    begin_step(t, i * S::AT_ONCE, rows);
  read_panel(t, q, rows, h);
#pragma unroll 1
  for (int p = 0; p < q; p++) {
    if (!DEFINITE)
      share_top(t, p, rows, *h);
    else if (p * S::NB <= rows.most) /* A12 was begun before these steps */
      hone_await_copies<AHEAD>();
    else
      hone_await_copies<0>();
    t.sync();
    if (DEFINITE && p + 1 < q)
      begin_top(t, p + 1, q);
#pragma unroll 1
    for (int j = p * S::NB; j < min(rows.most, (p + 1) * S::NB);
         j += S::AT_ONCE) {
      number<S::P> g[S::R][S::AT_ONCE];
      hone_await_copies<AHEAD - 1>();
      take_step(t, j, g);
      begin_step(t, j + AHEAD * S::AT_ONCE, rows);
      add_products<S>(g, &t.s->top[p % 2][j % S::NB], h);
    }
  }
  hone_await_copies<0>();
}

/* Factors the panel in the registers, with pivoting. */
template <class System>
__device__ __forceinline__ void
factor_general(const System &t, int q,
               const panel_rows<typename System::S> &rows,
               held<typename System::S> *h, double *smallest) {
  using S = typename System::S;
  unsigned open = rows.open;
#pragma unroll 1
  for (int k0 = 0; k0 < S::NB; k0 += 8) {
    eliminate_eight<0>(t, q * S::NB + k0, rows.open, &open, h, smallest);
    rotate_eight(h);
  }
  give_panel(t, q, rows, *h);
}

/* Factors S. Returns the size of the smallest pivot, the same in all threads.
 */
template <bool DEFINITE, class System>
__device__ HONE_NOINLINE double factor_panels(const System t) {
  using S = typename System::S;
  double smallest[1] = {HONE_INF};
  held<S> h;
  t.locate();
  t.each_place([&](int i) { t.s->place[i] = S::N; });
  t.sync();
#pragma unroll 1
  for (int q = 0; q < t.panel_count(); q++) {
    const panel_rows<S> rows = rows_of_panel<DEFINITE>(t, q);
    bring_up_to_date<DEFINITE>(t, q, rows, &h);
    if constexpr (DEFINITE)
      factor_definite(t, q, rows, &h, smallest);
    else
      factor_general(t, q, rows, &h, smallest);
    t.sync();
  }
  if (DEFINITE)
    t.all(smallest, smaller());
  return smallest[0];
}

} // namespace

#endif
