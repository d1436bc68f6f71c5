/* SPDX-License-Identifier: BSD-3-Clause */
/* Block LU of S with partial pivoting: panel after panel is updated by all
   panels before it (panel_update.h), and factored in registers by Gauss-Jordan
   elimination. Of a row that had its pivot in panel p, only the panels before p
   change later ones: then it is a row of A12 of panel p. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_FACTOR_H
#define HONE_DEVICE_BATCH_PANEL_FACTOR_H

#include "gpu_sp/batch/panel_update.h"

namespace {

/* A key orders the rows of a column by the sizes of their entries, to about 10
   bits, with NaN above all, and names the row; 0: none. */
template <class S>
__device__ __forceinline__ unsigned panel_key(number<S::P> v, int row) {
  const unsigned high =
      static_cast<unsigned>(__double_as_longlong(size_of(v)) >> 32);
  return 0x80000000U | (high & ~1023U) | (1023U - static_cast<unsigned>(row));
}

/* The thread's row r may have the pivot of column KK of the registers. */
template <int KK, class System>
__device__ __forceinline__ void give_row(const System &t, int turn, int r,
                                         const held<typename System::S> &h) {
  using S = typename System::S;
  number<S::P> *to = t.s->given[turn][t.warp];
#pragma unroll
  for (int c = 0; c < S::NB; c += 2)
    store_two(c == KK ? make<S::P>(1.0) : h.m[r][c],
              c + 1 == KK ? make<S::P>(1.0) : h.m[r][c + 1], to + c);
  t.s->candidate[turn][t.warp] = h.m[r][KK];
}

/* Column KK of the registers is the present one: each warp gives the row with
   its largest entry. Bit r of 'open': row r may have the pivot. */
template <int KK, class System>
__device__ __forceinline__ void
give_candidate(const System &t, int turn, unsigned open,
               const held<typename System::S> &h) {
  using S = typename System::S;
  unsigned key[S::R], best = 0;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    key[r] = open >> r & 1 ? panel_key<S>(h.m[r][KK], t.index(r)) : 0;
    best = max(best, key[r]);
  }
  best = __reduce_max_sync(ALL, best);
  if (t.lane == 0)
    t.s->keys[turn][t.warp] = best;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (best != 0 && key[r] == best)
      give_row<KK>(t, turn, r, h);
}

/* The row that has the pivot. */
template <class System>
__device__ __forceinline__ int pivot_row(const System &t, int turn) {
  using S = typename System::S;
  unsigned best = t.lane < S::WARPS ? t.s->keys[turn][t.lane] : 0;
  if (S::WARPS > 1)
    best = __reduce_max_sync(ALL, best);
  else
    best = __shfl_sync(ALL, best, 0);
  return static_cast<int>(1023U - (best & 1023U));
}

/* Subtracts multiples of the pivot row from the rows that 'live' has bits of,
   none of which has its pivot in an earlier panel; the row of the pivot becomes
   the pivot row divided by it. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_panel(const System &t, unsigned live, int at,
                number<System::P> inverse, const number<System::P> *row,
                held<typename System::S> *h) {
  using S = typename System::S;
  number<S::P> by[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const bool in_panel = (live >> r & 1) != 0;
    by[r] = in_panel ? product_of(h->m[r][KK], inverse) : make<S::P>(0.0);
    h->m[r][KK] = in_panel ? make<S::P>(0.0) : h->m[r][KK];
  }
  if (t.warp_of(at) == t.warp)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      if (at == t.index(r)) {
        by[r] = scaled(inverse, -1.0);
#pragma unroll
        for (int c = 0; c < S::NB; c++)
          h->m[r][c] = make<S::P>(0.0);
      }
#pragma unroll
  for (int c = 0; c < S::NB; c += 2) {
    number<S::P> u[2];
    load_two(row + c, &u[0], &u[1]);
#pragma unroll
    for (int r = 0; r < S::R; r++) {
      h->m[r][c] = minus_product(h->m[r][c], by[r], u[0]);
      h->m[r][c + 1] = minus_product(h->m[r][c + 1], by[r], u[1]);
    }
  }
}

/* Finds the pivot of column j of S, and eliminates. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_step(const System &t, int j, unsigned live, unsigned *open,
               held<typename System::S> *h, double *smallest) {
  using S = typename System::S;
  const int turn = j % 2;
  give_candidate<KK>(t, turn, *open, *h);
  t.sync();
  const int at = pivot_row(t, turn), warp = t.warp_of(at);
  const number<S::P> pivot = t.s->candidate[turn][warp];
  *smallest = smaller()(*smallest, size_of(pivot));
  if (t.thread == 0) {
    t.s->from[j] = at;
    t.s->place[at] = j;
    t.s->pivot[j] = pivot;
  }
#pragma unroll
  for (int r = 0; r < S::R; r++)
    *open = at == t.index(r) ? *open & ~(1U << r) : *open;
  if (live != 0)
    eliminate_panel<KK>(t, live, at, reciprocal_of(pivot),
                        t.s->given[turn][warp], h);
}

/* Steps KK to 7 of eight, whose columns are the first eight in registers. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_eight(const System &t, int j0, unsigned live, unsigned *open,
                held<typename System::S> *h, double *smallest) {
  if constexpr (KK < 8) {
    if (j0 + KK < t.n)
      eliminate_step<KK>(t, j0 + KK, live, open, h, smallest);
    eliminate_eight<KK + 1>(t, j0, live, open, h, smallest);
  }
}

/* The columns move up by eight, the first ones to the end. */
template <class S> __device__ __forceinline__ void rotate_eight(held<S> *h) {
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const number<S::P> first = h->m[r][i];
#pragma unroll
      for (int c = i; c + 8 < S::NB; c += 8)
        h->m[r][c] = h->m[r][c + 8];
      h->m[r][S::NB - 8 + i] = first;
    }
}

/* Writes the panel: A12 where a row had its pivot before, the rows of A11^-1,
   and those of -A21 A11^-1. */
template <class System>
__device__ __forceinline__ void
give_panel(const System &t, int q, const panel_rows<typename System::S> &rows,
           const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int c = 0; c < S::NB; c += S::GROUP)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      if (rows.limit[r] >= 0)
        t.store_group(&h.m[r][c], t.group(q * S::NB + c, t.index(r)));
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

/* ---- The order of the rows ---------------------------------------------- */

/* The thread's numbers of AT_ONCE columns of the factors. */
template <class S> struct of_columns { number<S::P> v[S::R][S::AT_ONCE]; };

/* Loads those of the rows with the pivots that the thread's places name, from
   column j on. */
template <class System>
__device__ __forceinline__ void load_rows(const System &t, int j,
                                          const int (&from)[System::S::R],
                                          of_columns<typename System::S> *to) {
  using S = typename System::S;
#pragma unroll
  for (int c = 0; c < S::AT_ONCE; c += S::GROUP)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      t.load_group(t.group(j + c, from[r]), &to->v[r][c]);
}

/* Brings the factors' rows into the order of the pivots, unless they are in it.
 */
template <class System>
__device__ HONE_NOINLINE void order_rows(const System t) {
  using S = typename System::S;
  double moved[1] = {0.0};
  t.locate();
  t.each_row([&](int i) { moved[0] = t.s->from[i] != i ? 1.0 : moved[0]; });
  t.all(moved, larger());
  if (moved[0] == 0.0)
    return;
  const int count = t.panel_count() * S::NB;
  of_columns<S> now, next;
  int from[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++)
    from[r] = t.index(r) < t.n ? t.s->from[t.index(r)] : 0;
  load_rows(t, 0, from, &now);
#pragma unroll 1
  for (int j = 0; j < count; j += S::AT_ONCE) {
    load_rows(t, min(j + S::AT_ONCE, count - S::AT_ONCE), from, &next);
    t.sync();
#pragma unroll
    for (int c = 0; c < S::AT_ONCE; c += S::GROUP)
#pragma unroll
      for (int r = 0; r < S::R; r++)
        if (t.index(r) < t.n)
          t.store_group(&now.v[r][c], t.group(j + c, t.index(r)));
    now = next;
  }
  t.sync();
}

} // namespace

#endif
