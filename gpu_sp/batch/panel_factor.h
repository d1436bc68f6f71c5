/* SPDX-License-Identifier: BSD-3-Clause */
/* Block LU with partial pivoting, or without it for definite matrices, of S.
   Panel after panel is read from A into registers, updated by all panels before
   it, and factored there by Gauss-Jordan elimination. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_FACTOR_H
#define HONE_DEVICE_BATCH_PANEL_FACTOR_H

#include "gpu_sp/batch/panel_load.h"

namespace {

/* The panel: row r of the thread, and all its columns. */
template <class S> struct held { number<S::P> m[S::R][S::NB]; };

/* Reads the rows of panel q; of a definite matrix those from the panel's own
   ones on. */
template <class System>
__device__ __forceinline__ void read_panel(const System &t, int q,
                                           held<typename System::S> *h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const bool is =
        t.place(r) < t.n && (!t.definite || t.place(r) >= q * S::NB);
    const int i = is ? t.s->from[t.place(r)] : t.n;
#pragma unroll
    for (int c = 0; c < S::NB; c++)
      h->m[r][c] = t.entry_of_s(i, q * S::NB + c);
  }
}

/* Copies the rows A12 of panel p to shared memory for all threads: from the
   registers of those that have them, or, of a definite matrix, from where
   panel p has left the conjugate of A21. */
template <class System>
__device__ __forceinline__ void share_top(const System &t, int p, int q,
                                          const held<typename System::S> &h) {
  using S = typename System::S;
  auto &to = t.s->top[p % 2];
  if (t.definite) {
    const number<S::P> *from = t.row_of_panel(q, p * S::NB);
    for (int i = t.thread; i < S::NB * S::NB; i += S::THREADS)
      to[i / S::NB][i % S::NB] = from[i];
  } else {
#pragma unroll
    for (int r = 0; r < S::R; r++)
      if (t.place(r) / S::NB == p)
#pragma unroll
        for (int c = 0; c < S::NB; c += 2)
          store_two(h.m[r][c], h.m[r][c + 1], &to[t.place(r) % S::NB][c]);
  }
}

/* Adds the products of columns k .. k + 3 of the thread's rows of panel p, g,
   and rows k .. k + 3 of A12. */
template <class S>
__device__ __forceinline__ void add_products(const number<S::P> (&g)[S::R][4],
                                             const number<S::P> (*top)[S::NB],
                                             held<S> *h) {
#pragma unroll
  for (int k = 0; k < 4; k++)
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

/* Loads four columns of the thread's rows of a panel; at[r] NULL: zeros. */
template <class S>
__device__ __forceinline__ void
load_columns(const number<S::P> *const (&at)[S::R], int k,
             number<S::P> (&g)[S::R][4]) {
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int q = 0; q < 4; q += 2) {
      g[r][q] = g[r][q + 1] = make<S::P>(0.0);
      if (at[r] != nullptr)
        load_two(at[r] + k + q, &g[r][q], &g[r][q + 1]);
    }
}

/* Subtracts A21 A11^-1 A12 of panel p from the rows behind it. */
template <class System>
__device__ __forceinline__ void update_by(const System &t, int p, int q,
                                          held<typename System::S> *h) {
  using S = typename System::S;
  const int from = t.definite ? q * S::NB : (p + 1) * S::NB;
  if (!t.reaches(from))
    return;
  const number<S::P> *at[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int k = t.place(r);
    at[r] = k >= from && k < t.n ? t.row_of_panel(p, t.s->from[k]) : nullptr;
  }
  number<S::P> g[S::R][4], next[S::R][4];
  load_columns<S>(at, 0, g);
#pragma unroll 1
  for (int k = 0; k < S::NB; k += 4) {
    load_columns<S>(at, (k + 4) % S::NB, next);
    add_products<S>(g, &t.s->top[p % 2][k], h);
#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        g[r][i] = next[r][i];
  }
}

/* A key orders the rows of a column by the sizes of their entries, to about 10
   bits, with NaN above all, and names the row's place; 0: none. */
template <class S>
__device__ __forceinline__ unsigned panel_key(number<S::P> v, int place) {
  const unsigned high =
      static_cast<unsigned>(__double_as_longlong(size_of(v)) >> 32);
  return 0x80000000U | (high & ~1023U) | (1023U - static_cast<unsigned>(place));
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
    key[r] = open >> r & 1 ? panel_key<S>(h.m[r][KK], t.place(r)) : 0;
    best = max(best, key[r]);
  }
  best = __reduce_max_sync(ALL, best);
  if (t.lane == 0)
    t.s->keys[turn][t.warp] = best;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (best != 0 && key[r] == best) {
      number<S::P> *to = t.s->given[turn][t.warp];
#pragma unroll
      for (int c = 0; c < S::NB; c += 2)
        store_two(c == KK ? make<S::P>(1.0) : h.m[r][c],
                  c + 1 == KK ? make<S::P>(1.0) : h.m[r][c + 1], to + c);
      t.s->candidate[turn][t.warp] = h.m[r][KK];
    }
}

/* The place of the row that has the pivot. */
template <class System>
__device__ __forceinline__ int pivot_place(const System &t, int turn) {
  using S = typename System::S;
  unsigned best = t.lane < S::WARPS ? t.s->keys[turn][t.lane] : 0;
  if (S::WARPS > 1)
    best = __reduce_max_sync(ALL, best);
  else
    best = __shfl_sync(ALL, best, 0);
  return static_cast<int>(1023U - (best & 1023U));
}

/* Subtracts multiples of the pivot row from all rows of the panel; the row of
   the pivot becomes the pivot row divided by it. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_panel(const System &t, int from, int at, number<System::P> inverse,
                const number<System::P> *row, held<typename System::S> *h) {
  using S = typename System::S;
  number<S::P> by[S::R];
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const bool in_panel = t.place(r) >= from;
    by[r] = in_panel ? product_of(h->m[r][KK], inverse) : make<S::P>(0.0);
    h->m[r][KK] = in_panel ? make<S::P>(0.0) : h->m[r][KK];
  }
  if (at / (32 * S::R) == t.warp)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      if (at == t.place(r)) {
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

/* Finds the pivot of column k of panel q, and eliminates. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_step(const System &t, int q, int k, unsigned *open,
               held<typename System::S> *h, pivots *out) {
  using S = typename System::S;
  const int turn = k % 2, from = q * S::NB;
  unsigned may = *open;
  if (t.definite)
#pragma unroll
    for (int r = 0; r < S::R; r++)
      may = t.place(r) == from + k ? may : may & ~(1U << r);
  give_candidate<KK>(t, turn, may, *h);
  t.sync();
  const int at = pivot_place(t, turn), warp = at / (32 * S::R);
  number<S::P> pivot = t.s->candidate[turn][warp];
  double size = size_of(pivot);
  if (t.definite) {
    pivot = make<S::P>(pivot.part[0]);
    size = pivot.part[0];
  }
  out->at = size < out->smallest ? from + k : out->at;
  out->smallest = smaller()(out->smallest, size);
  if (t.thread == 0) {
    t.s->chosen[k] = at;
    t.s->pivot[from + k] = pivot;
  }
#pragma unroll
  for (int r = 0; r < S::R; r++)
    *open = at == t.place(r) ? *open & ~(1U << r) : *open;
  if (t.reaches(from))
    eliminate_panel<KK>(t, from, at, reciprocal_of(pivot),
                        t.s->given[turn][warp], h);
}

/* Steps KK to 7 of eight, whose columns are the first eight in registers. */
template <int KK, class System>
__device__ __forceinline__ void
eliminate_eight(const System &t, int q, int k0, unsigned *open,
                held<typename System::S> *h, pivots *out) {
  if constexpr (KK < 8) {
    if (q * System::S::NB + k0 + KK < t.n)
      eliminate_step<KK>(t, q, k0 + KK, open, h, out);
    eliminate_eight<KK + 1>(t, q, k0, open, h, out);
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

/* Leaves the conjugate of A21 in the places of A12, which it is. */
template <class System>
__device__ __forceinline__ void give_top(const System &t, int q,
                                         const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int k = t.place(r), p = k / S::NB;
    if (p <= q || p >= t.panel_count())
      continue;
#pragma unroll
    for (int c = 0; c < S::NB; c++) {
      number<S::P> e = k < t.n ? h.m[r][c] : make<S::P>(0.0);
      if (S::P == 2)
        e.part[S::P - 1] = -e.part[S::P - 1];
      t.row_of_panel(p, q * S::NB + c)[k % S::NB] = e;
    }
  }
}

/* Writes the panel: A12 above, A11^-1, and -A21 A11^-1 below. */
template <class System>
__device__ __forceinline__ void give_panel(const System &t, int q,
                                           const held<typename System::S> &h) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int k = t.place(r);
    if (k >= t.n || (t.definite && k < q * S::NB))
      continue;
    number<S::P> *to = t.row_of_panel(q, t.s->from[k]);
#pragma unroll
    for (int c = 0; c < S::NB; c += 2)
      store_two(h.m[r][c], h.m[r][c + 1], to + c);
  }
}

/* The rows with the pivots of panel q take its places; those that were there
   take the places that become free. One warp does it. */
template <class System>
__device__ __forceinline__ void exchange_places(const System &t, int q) {
  using S = typename System::S;
  int *from = t.s->from, *chosen = t.s->chosen, *left = t.s->free_;
  const int first = q * S::NB, k = t.lane;
  const int count = min(S::NB, t.n - first);
  const bool is = k < count;
  const int own = is ? chosen[k] : 0;
  const bool outside = is && own >= first + count;
  const unsigned out = __ballot_sync(ALL, outside);
  unsigned inside = is && !outside ? 1U << (own - first) : 0;
#pragma unroll
  for (int by = 16; by > 0; by /= 2)
    inside |= __shfl_xor_sync(ALL, inside, by);
  const bool displaced = is && !(inside >> k & 1);
  const unsigned all_displaced = __ballot_sync(ALL, displaced);
  const unsigned below = (1U << k) - 1;
  if (outside)
    left[__popc(out & below)] = own;
  const int of_pivot = is ? from[own] : 0, of_place = is ? from[first + k] : 0;
  __syncwarp();
  if (is)
    from[first + k] = of_pivot;
  if (displaced)
    from[left[__popc(all_displaced & below)]] = of_place;
}

/* Factors S. */
template <class System>
__device__ HONE_NOINLINE pivots factor_panels(const System t) {
  using S = typename System::S;
  pivots out = {HONE_INF, 0};
  held<S> h;
  t.each_place([&](int i) { t.s->from[i] = i; });
  t.sync();
#pragma unroll 1
  for (int q = 0; q < t.panel_count(); q++) {
    unsigned open = 0;
    read_panel(t, q, &h);
#pragma unroll 1
    for (int p = 0; p < q; p++) {
      share_top(t, p, q, h);
      t.sync();
      update_by(t, p, q, &h);
    }
    if (t.definite)
      give_top(t, q, h);
#pragma unroll
    for (int r = 0; r < S::R; r++)
      open |= t.place(r) >= q * S::NB && t.place(r) < t.n ? 1U << r : 0;
#pragma unroll 1
    for (int k0 = 0; k0 < S::NB; k0 += 8) {
      eliminate_eight<0>(t, q, k0, &open, &h, &out);
      rotate_eight(&h);
    }
    give_panel(t, q, h);
    t.sync();
    if (!t.definite) {
      if (t.warp == 0)
        exchange_places(t, q);
      t.sync();
    }
  }
  return out;
}

} // namespace

#endif
