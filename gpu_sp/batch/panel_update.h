/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel is read from A into registers, and A21 A11^-1 A12 of every panel
   before it is subtracted. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_UPDATE_H
#define HONE_DEVICE_BATCH_PANEL_UPDATE_H

#include "gpu_sp/batch/panel_load.h"

namespace {

/* The panel: row r of the thread, and all its columns. */
template <class S> struct held { number<S::P> m[S::R][S::NB]; };

/* The rows as panel q finds them: bit r of 'open' says that the thread's row r
   has no pivot yet. The columns of the factors below limit[r] change the row;
   -1: it has no part in the panel. 'most' is the largest limit in the warp, or
   0. */
template <class S> struct panel_rows {
  int limit[S::R], most;
  unsigned open;
};

template <bool DEFINITE, class System>
__device__ __forceinline__ panel_rows<typename System::S>
rows_of_panel(const System &t, int q) {
  using S = typename System::S;
  panel_rows<S> out = {};
  int most = 0;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.index(r), place = t.s->place[i];
    const bool open = i < t.n && place == S::N;
    const bool takes_part = DEFINITE ? open : i < t.n;
    out.limit[r] = takes_part ? min(place, q * S::NB) / S::NB * S::NB : -1;
    out.open |= open ? 1U << r : 0;
    most = max(most, out.limit[r]);
  }
  out.most =
      static_cast<int>(__reduce_max_sync(ALL, static_cast<unsigned>(most)));
  return out;
}

/* Reads panel q of S. */
template <class System>
__device__ __forceinline__ void
read_panel(const System &t, int q, const panel_rows<typename System::S> &rows,
           held<typename System::S> *h) {
  using S = typename System::S;
  int row[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++)
    row[r] = rows.limit[r] >= 0 ? t.index(r) : -1;
  number<S::P> e[S::NB][S::R];
  t.load_entries(row, q * S::NB, e);
  t.make_entries(row, q * S::NB, e);
#pragma unroll
  for (int c = 0; c < S::NB; c++)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      h->m[r][c] = e[c][r];
}

/* Copies the rows A12 of panel p to shared memory for all threads, from the
   registers of those that have them. */
template <class System>
__device__ __forceinline__ void
share_top(const System &t, int p, const panel_rows<typename System::S> &rows,
          const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    if (rows.limit[r] != p * S::NB)
      continue;
    number<S::P> *const row =
        t.s->top[p % 2][t.s->place[t.index(r)] - p * S::NB];
#pragma unroll
    for (int c = 0; c < S::NB; c += 2)
      store_two(h.m[r][c], h.m[r][c + 1], row + c);
  }
}

/* Begins to do so for a definite matrix, whose A12 panel p has left in its
   place. The copies are part of the next group. */
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
}

/* Adds the products of AT_ONCE columns of a panel, g, and as many rows of its
   A12. */
template <class S>
__device__ __forceinline__ void
add_products(const number<S::P> (&g)[S::R][S::AT_ONCE],
             const number<S::P> (*top)[S::NB], held<S> *h) {
#pragma unroll
  for (int k = 0; k < S::AT_ONCE; k++)
#pragma unroll
    for (int c = 0; c < S::NB; c += 2) {
      number<S::P> u[2];
      load_two(&top[k][c], &u[0], &u[1]);
#pragma unroll
      for (int r = 0; r < S::R; r++) {
        h->m[r][c] = plus_product(h->m[r][c], g[r][k], u[0]);
        h->m[r][c + 1] = plus_product(h->m[r][c + 1], g[r][k], u[1]);
      }
    }
}

/* Begins to copy AT_ONCE columns of the factors, from j on, for the thread's
   rows; zeros where a column does not change the row. */
template <class System>
__device__ __forceinline__ void
begin_step(const System &t, int j, const panel_rows<typename System::S> &rows) {
  using S = typename System::S;
  using steps = panel_steps<S>;
  auto *to = t.steps()->part[j / S::AT_ONCE % steps::STEPS];
#pragma unroll
  for (int k = 0; k < S::AT_ONCE; k += S::GROUP) {
    const number<S::P> *at = t.group(j + k, t.index(0));
#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        hone_begin_copy_16(
            &to[r * steps::OF_ROW + k / S::GROUP * 2 + half][t.thread],
            at + 32 * r * S::GROUP + half * S::GROUP / 2, j < rows.limit[r]);
  }
  hone_end_copy_group();
}

/* Takes what was copied. */
template <class System>
__device__ __forceinline__ void
take_step(const System &t, int j,
          typename System::entry (&g)[System::S::R][System::S::AT_ONCE]) {
  using S = typename System::S;
  using steps = panel_steps<S>;
  const auto *from = t.steps()->part[j / S::AT_ONCE % steps::STEPS];
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int i = 0; i < steps::OF_ROW; i++) {
      const double2 v = from[r * steps::OF_ROW + i][t.thread];
      const int k = 2 * i / S::P;
      g[r][k].part[0] = v.x;
      if constexpr (S::P == 1)
        g[r][k + 1].part[0] = v.y;
      else
        g[r][k].part[1] = v.y;
    }
}

/* Reads panel q and subtracts A21 A11^-1 A12 of every panel before it. While
   columns of the factors are used the next ones are under way, beyond the end
   of a panel too, and so is the next A12 of a definite matrix. All threads have
   all that was begun at the end. */
template <bool DEFINITE, class System>
__device__ __forceinline__ void
bring_up_to_date(const System &t, int q,
                 const panel_rows<typename System::S> &rows,
                 held<typename System::S> *h) {
  using S = typename System::S;
  constexpr int AHEAD = panel_steps<S>::STEPS - 1;
  static_assert(AHEAD < S::NB / S::AT_ONCE,
                "the latest groups have nothing of the next A12");
  if (DEFINITE && q > 0) {
    begin_top(t, 0, q);
    hone_end_copy_group();
  }
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
    begin_step(t, i * S::AT_ONCE, rows);
  read_panel(t, q, rows, h);
#pragma unroll 1
  for (int p = 0; p < q; p++) {
    if (!DEFINITE)
      share_top(t, p, rows, *h);
    else if (p * S::NB <= rows.most) /* later groups have nothing of A12 */
      hone_await_copies<AHEAD>();
    else
      hone_await_copies<0>();
    t.sync();
    if (DEFINITE && p + 1 < q) {
      begin_top(t, p + 1, q);
      if (rows.most <= p * S::NB) /* no step follows */
        hone_end_copy_group();
    }
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

} // namespace

#endif
