/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix in registers is inverted in its place by Gauss-Jordan elimination
   with partial pivoting. Rows are not exchanged: row from[k] has pivot k, and
   the inverse's row k is there, with its column from[j] in the place of column
   j. With an inverse in the place of LU factors a solution is a product, which
   all threads share; what an inverse lacks in backward stability the correction
   mends, and the certificate measures.

   Threads that have a row each eliminate NB columns, a panel, from shared
   memory. These are then -A21 inv(A11), and in the rows of the pivots inv(A11);
   what they do to the other columns is a product with the rows of the pivots,
   by all threads. Where a thread has a whole row, the panel is the matrix.
   Device code. */
#ifndef HONE_DEVICE_BATCH_ELIMINATE_H
#define HONE_DEVICE_BATCH_ELIMINATE_H

#include "gpu_sp/batch/system.h"

namespace {

/* The upper half of a number: where that is not negative, it orders numbers to
   20 bits, with NaN above all. */
__device__ __forceinline__ unsigned high_bits(double v) {
  return static_cast<unsigned>(__double_as_longlong(v) >> 32);
}

/* The largest key among the lanes of a warp that have the system. */
template <class S>
__device__ __forceinline__ unsigned largest_key(const system<S> &t,
                                                unsigned key) {
  if constexpr (S::SYSTEMS == 1) {
    key = __reduce_max_sync(ALL, key);
  } else {
#pragma unroll
    for (int by = S::LANES / 2; by > 0; by /= 2)
      key = max(key, __shfl_xor_sync(t.lanes(), key, by));
  }
  return key;
}

/* The columns from k0 on, of which 'count' are to be eliminated; a thread has
   row 'row'. A key orders the rows of a column by the sizes of their entries,
   to 13 bits, with NaN above all, and names the row; a row that has its pivot,
   or is none, has the key 0. */
template <class S> struct panel {
  int k0, count, row;
  unsigned mask, name;
  double smallest; /* pivot */

  __device__ __forceinline__ unsigned key(number<S::P> v) const {
    return (high_bits(S::P == 1 ? v.part[0] : size_of(v)) & mask) | name;
  }
};
__device__ __forceinline__ int row_of_key(unsigned key) {
  return static_cast<int>(127U - (key & 127U));
}

/* The threads that have a panel wait for one another. */
template <class S>
__device__ __forceinline__ void sync_panel(const system<S> &t) {
  if constexpr (S::PANEL_WARPS > 1)
    hone_barrier(1, 32 * S::PANEL_WARPS);
  else
    __syncwarp(t.lanes());
}

/* Each warp copies the row with its largest entry in column KK to shared
   memory, with 1 in the place of that entry, and then the entry and its
   reciprocal. */
template <int KK, class S>
__device__ __forceinline__ void give_candidate(const system<S> &t, unsigned key,
                                               const number<S::P> (&v)[S::NB]) {
  const unsigned best = largest_key(t, key);
  const number<S::P> inverse = reciprocal_of(v[KK]);
  const int warp = t.thread / 32;
  if (t.thread % S::LANES == 0)
    t.s->keys[KK % 2][warp] = best;
  if (key != best || key == 0)
    return;
  number<S::P> *to = t.s->given[KK % 2][warp];
#pragma unroll
  for (int c = 0; c < S::NB; c++)
    to[c] = c == KK ? make<S::P>(1.0) : v[c];
  to[S::NB] = v[KK];
  to[S::NB + 1] = inverse;
}

/* Subtracts multiples of the pivot row from all rows, v; the row of the pivot
   becomes the pivot row divided by the pivot. */
template <int KK, class S>
__device__ __forceinline__ void
eliminate_column(const system<S> &t, panel<S> *p, number<S::P> (&v)[S::NB]) {
  const unsigned key = p->key(v[KK]);
  give_candidate<KK>(t, key, v);
  sync_panel(t);
  unsigned best = t.s->keys[KK % 2][0];
#pragma unroll
  for (int w = 1; w < S::PANEL_WARPS; w++)
    best = max(best, t.s->keys[KK % 2][w]);
  const number<S::P> *given =
      t.s->given[KK % 2][S::PANEL_WARPS > 1 ? row_of_key(best) / 32 : 0];
  const number<S::P> inverse = given[S::NB + 1];
  const bool own = key == best;
  p->smallest = smaller()(p->smallest, size_of(given[S::NB]));
  if (own) {
    p->mask = p->name = 0;
    t.s->from[p->k0 + KK] = p->row;
    t.s->place[p->row] = p->k0 + KK;
    t.s->pivot[p->k0 + KK] = v[KK];
  }
  const number<S::P> by =
      own ? scaled(inverse, -1.0) : product_of(v[KK], inverse);
#pragma unroll
  for (int c = 0; c < S::NB; c++)
    v[c] = minus_product(own || c == KK ? make<S::P>(0.0) : v[c], by, given[c]);
}

/* Columns KK to count - 1 of the panel. */
template <int KK, class S>
__device__ __forceinline__ void
eliminate_columns(const system<S> &t, panel<S> *p, number<S::P> (&v)[S::NB]) {
  if constexpr (KK < S::NB) {
    if (KK < p->count) {
      eliminate_column<KK>(t, p, v);
      eliminate_columns<KK + 1>(t, p, v);
    }
  }
}

/* As many threads as there are rows eliminate a panel in shared memory. */
template <class S>
__device__ __forceinline__ void
eliminate_shared(const system<S> &t, panel<S> *p,
                 number<S::P> (*at)[S::PANEL_STRIDE]) {
  number<S::P> v[S::NB];
#pragma unroll
  for (int c = 0; c < S::NB; c++)
    v[c] = at[c][p->row];
  eliminate_columns<0>(t, p, v);
#pragma unroll
  for (int c = 0; c < S::NB; c++)
    at[c][p->row] = v[c];
}

/* Copies the thread's columns of the panel, its first ones, to shared memory.
 */
template <class S>
__device__ __forceinline__ void
give_panel(const system<S> &t, number<S::P> (*to)[S::PANEL_STRIDE]) {
#pragma unroll
  for (int w = 0; w < S::PANEL_COLUMNS; w++)
#pragma unroll
    for (int ii = 0; ii < S::TR; ii++)
      to[w * S::C + t.c][t.i_of(ii)] = t.m[ii][w];
}

/* Copies the rows with the pivots of the panel to shared memory, and sets them
   to 0. (So are rows behind the last one, which the update gives back, as their
   columns are those of the unit matrix.) A tile's eight columns lie one behind
   the other as the tensor core numbers them: two are a thread's. */
template <class S>
__device__ __forceinline__ void
give_pivot_rows(system<S> &t, int k0, number<S::P> (*rows)[S::PANEL_STRIDE]) {
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    const int k = t.s->place[t.i_of(ii)] - k0;
    if (k < 0 || k >= S::NB)
      continue;
    number<S::P> *to = &rows[k][t.c / 4 * 8 + t.c % 4 * 2];
#pragma unroll
    for (int jj = 0; jj < S::TC; jj += 2) {
      store_two(t.m[ii][jj], t.m[ii][jj + 1],
                &to[jj / 2 * S::WARP_COLUMNS * 8]);
      t.m[ii][jj] = t.m[ii][jj + 1] = make<S::P>(0.0);
    }
  }
}

/* c += a b for a tile of 16 x 8 entries, as hone_multiply_add_16x8x8 wants it.
 */
__device__ __forceinline__ void multiply_add(number<1> (&c)[4],
                                             const number<1> (&a)[4],
                                             const number<1> (&b)[2]) {
  double to[4], by[4];
#pragma unroll
  for (int e = 0; e < 4; e++) {
    to[e] = c[e].part[0];
    by[e] = a[e].part[0];
  }
  hone_multiply_add_16x8x8(to, by, make_double2(b[0].part[0], b[1].part[0]));
#pragma unroll
  for (int e = 0; e < 4; e++)
    c[e].part[0] = to[e];
}
__device__ __forceinline__ void multiply_add(number<2> (&c)[4],
                                             const number<2> (&a)[4],
                                             const number<2> (&b)[2]) {
  double to[2][4], by[2][4], less[4];
#pragma unroll
  for (int e = 0; e < 4; e++) {
#pragma unroll
    for (int p = 0; p < 2; p++) {
      to[p][e] = c[e].part[p];
      by[p][e] = a[e].part[p];
    }
    less[e] = -by[1][e];
  }
  const double2 re = make_double2(b[0].part[0], b[1].part[0]);
  const double2 im = make_double2(b[0].part[1], b[1].part[1]);
  hone_multiply_add_16x8x8(to[0], by[0], re);
  hone_multiply_add_16x8x8(to[1], by[0], im);
  hone_multiply_add_16x8x8(to[0], less, im);
  hone_multiply_add_16x8x8(to[1], by[1], re);
#pragma unroll
  for (int e = 0; e < 4; e++)
#pragma unroll
    for (int p = 0; p < 2; p++)
      c[e].part[p] = to[p][e];
}

/* Adds the panel times the rows of its pivots to the other columns, by tiles
   whose rows are two of each thread, and whose columns are too. */
template <class S>
__device__ __forceinline__ void
update(system<S> &t, const number<S::P> (*at)[S::PANEL_STRIDE],
       const number<S::P> (*rows)[S::PANEL_STRIDE]) {
  const int k = t.thread % 4, label = t.thread % 32 / 4;
  number<S::P> a[S::TR / 2][4];
#pragma unroll
  for (int i = 0; i < S::TR / 2; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      a[i][e] = at[k + e / 2 * 4][t.i_of(2 * i + e % 2)];
#pragma unroll
  for (int j = 0; j < S::TC / 2; j++) {
    if (2 * j + 1 < S::PANEL_COLUMNS) /* they are the panel's */
      continue;
    const int first = (j * S::WARP_COLUMNS + t.c / 4) * 8 + label;
    const number<S::P> b[2] = {rows[k][first], rows[k + 4][first]};
#pragma unroll
    for (int i = 0; i < S::TR / 2; i++) {
      number<S::P> c[4];
#pragma unroll
      for (int e = 0; e < 4; e++)
        c[e] = t.m[2 * i + e / 2][2 * j + e % 2];
      multiply_add(c, a[i], b);
#pragma unroll
      for (int e = 0; e < 4; e++)
        t.m[2 * i + e / 2][2 * j + e % 2] = c[e];
    }
  }
}

/* The thread's columns move up by as many as it has of a panel, and these, from
   shared memory if they were eliminated, to the end: so the next panel is in
   the first registers. */
template <class S>
__device__ __forceinline__ void
move_columns(system<S> &t, bool eliminated,
             const number<S::P> (*at)[S::PANEL_STRIDE]) {
  constexpr int W = S::PANEL_COLUMNS;
#pragma unroll
  for (int ii = 0; ii < S::TR; ii++) {
    number<S::P> last[W];
#pragma unroll
    for (int w = 0; w < W; w++)
      last[w] = eliminated ? at[w * S::C + t.c][t.i_of(ii)] : t.m[ii][w];
#pragma unroll
    for (int jj = W; jj < S::TC; jj++)
      t.m[ii][jj - W] = t.m[ii][jj];
#pragma unroll
    for (int w = 0; w < W; w++)
      t.m[ii][S::TC - W + w] = last[w];
  }
}

/* Inverts S panel by panel. */
template <class S>
__device__ __forceinline__ void invert_by_panels(system<S> &t, panel<S> *p) {
  constexpr int PANELS = panel_buffers<S>::PANELS;
  const auto rows = t.s->of_panel.pivot_rows[0];
#pragma unroll 1
  for (p->k0 = 0; p->k0 < S::N; p->k0 += S::NB) {
    auto at = t.s->of_panel.at[p->k0 / S::NB % PANELS];
    p->count = min(S::NB, t.n - p->k0);
    if (p->count > 0) {
      if (PANELS == 1)
        t.sync(); /* nobody reads the panel before this one */
      give_panel(t, at);
      t.sync();
      if (t.thread < S::N)
        eliminate_shared(t, p, at);
      t.sync();
      give_pivot_rows(t, p->k0, rows);
      t.sync();
      update(t, at, rows);
    }
    move_columns(t, p->count > 0, at);
  }
}

} // namespace

#endif
