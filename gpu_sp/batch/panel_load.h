/* SPDX-License-Identifier: BSD-3-Clause */
/* A pass over op(A): norms, whether it needs to be scaled, and products with
   random vectors. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_LOAD_H
#define HONE_DEVICE_BATCH_PANEL_LOAD_H

#include "gpu_sp/batch/panels.h"

namespace {

/* As in certify.h: the random numbers of one batch of K vectors: those of the
   vectors, then those that round their products. */
template <class System>
__device__ __forceinline__ double panel_drawn(uint64_t seed, bool rounds, int k,
                                              int i, int part) {
  using S = typename System::S;
  const int first = rounds ? S::K * S::N * S::P : 0;
  return random_unit(
      seed, static_cast<uint64_t>(first + (k * S::N + i) * S::P + part));
}

template <class System>
__device__ __forceinline__ typename System::entry drawn_vector(uint64_t seed,
                                                               int k, int i) {
  typename System::entry g;
  for (int p = 0; p < System::P; p++)
    g.part[p] = 1.7320508075688772 * panel_drawn<System>(seed, false, k, i, p);
  return g;
}

/* Changes the digits of v at random by up to two units. */
template <class System>
__device__ __forceinline__ typename System::entry
rounded_at_random(typename System::entry v, uint64_t seed, int k, int i) {
  for (int p = 0; p < System::P; p++)
    v.part[p] +=
        2.0 * HONE_EPS * panel_drawn<System>(seed, true, k, i, p) * v.part[p];
  return v;
}

/* Draws K vectors g into the second half of 'side'. Ends where the threads may
   read them. */
template <class System>
__device__ __forceinline__ void draw_vectors(const System &t, uint64_t seed) {
  using S = typename System::S;
  t.each_place([&](int i) {
#pragma unroll
    for (int k = 0; k < S::K; k++)
      t.s->side[S::K + k][i] =
          i < t.n ? drawn_vector<System>(seed, k, i) : make<S::P>(0.0);
  });
  t.sync();
}

/* Found by a thread: the largest parts and the sums of moduli of its rows, the
   rows of products with g, the smallest part that is not 0, and the largest sum
   of a column. The largest parts of columns are in 'den', behind which there
   may be anything. */
template <class S> struct scanned {
  double most[S::R], sum[S::R];
  number<S::P> product[S::R][S::K];
  double least, column_sum;
};

/* Adds up v[c] over the lanes: lane c 32 / C receives the sum of v[c]. */
template <int C, int P>
__device__ __forceinline__ number<P> sum_over_lanes(int lane,
                                                    number<P> (&v)[C]) {
#pragma unroll
  for (int half = C / 2, by = 16; half > 0; half /= 2, by /= 2)
#pragma unroll
    for (int c = 0; c < half; c++)
#pragma unroll
      for (int p = 0; p < P; p++) {
        const double low = v[c].part[p], high = v[c + half].part[p];
        const bool upper = (lane & by) != 0;
        const double give = upper ? low : high;
        v[c].part[p] = (upper ? high : low) + __shfl_xor_sync(ALL, give, by);
      }
#pragma unroll
  for (int by = 16 / C; by > 0; by /= 2)
#pragma unroll
    for (int p = 0; p < P; p++)
      v[0].part[p] += __shfl_xor_sync(ALL, v[0].part[p], by);
  return v[0];
}

/* Takes column j: entries e of the thread's rows. Returns the sum of their
   moduli and, in 'high', the upper half of the largest part in the warp. */
template <class System>
__device__ __forceinline__ double
take_column(const System &t, int j, const number<System::P> (&e)[System::S::R],
            scanned<typename System::S> *out, unsigned *high) {
  using S = typename System::S;
  double sum = 0.0;
  unsigned own = 0;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const double most = extreme_of(e[r]), size = modulus_of(e[r]);
    out->most[r] = larger()(out->most[r], most);
    out->sum[r] += size;
    sum += size;
    own = max(own, static_cast<unsigned>(__double_as_longlong(most) >> 32));
    for (int p = 0; p < S::P; p++) {
      const double part = fabs(e[r].part[p]);
      out->least = part > 0.0 && part < out->least ? part : out->least;
    }
  }
#pragma unroll
  for (int k = 0; k < S::K; k++) {
    const number<S::P> g = t.s->side[S::K + k][j];
#pragma unroll
    for (int r = 0; r < S::R; r++)
      out->product[r][k] = plus_rounded(out->product[r][k], e[r], g);
  }
  *high = __reduce_max_sync(ALL, own);
  return sum;
}

/* Takes entries e of LOADED columns from j on. Those behind the last one are 0.
 */
template <class System>
__device__ __forceinline__ void
take_loaded(const System &t, int j,
            const number<System::P> (&e)[System::S::LOADED][System::S::R],
            scanned<typename System::S> *out) {
  using S = typename System::S;
  constexpr int LANES = 32 / S::LOADED; /* for each column */
  number<1> sum[S::LOADED];
  unsigned own = 0;
#pragma unroll
  for (int u = 0; u < S::LOADED; u++) {
    unsigned high;
    sum[u].part[0] = take_column(t, j + u, e[u], out, &high);
    own = t.lane / LANES == u ? high : own;
  }
  const number<1> of_column = sum_over_lanes<S::LOADED>(t.lane, sum);
  if (t.lane % LANES != 0)
    return;
  const int turn = j / 32 % 2, at = j % 32 + t.lane / LANES;
  t.s->sum[turn][t.warp][at] = of_column.part[0];
  t.s->high[turn][t.warp][at] = own;
}

/* Combines what the warps have found of 32 columns from j0 on. */
template <class System>
__device__ __forceinline__ void take_columns(const System &t, int j0,
                                             double *column_sum) {
  using S = typename System::S;
  const int turn = j0 / 32 % 2;
  t.sync();
  if (t.warp > 0)
    return;
  double sum = 0.0;
  unsigned high = 0;
  for (int w = 0; w < S::WARPS; w++) {
    sum += t.s->sum[turn][w][t.lane];
    high = max(high, t.s->high[turn][w][t.lane]);
  }
  t.s->den[j0 + t.lane] =
      __longlong_as_double(static_cast<long long>(high) << 32);
  *column_sum = larger()(*column_sum, j0 + t.lane < t.n ? sum : 0.0);
}

/* Goes through S once. */
template <class System>
__device__ HONE_NOINLINE void scan(const System t,
                                   scanned<typename System::S> *out) {
  using S = typename System::S;
  scanned<S> v = {};
  int row[S::R];
  t.locate();
  v.least = 1.0;
#pragma unroll
  for (int r = 0; r < S::R; r++)
    row[r] = t.thread + r * S::THREADS;
  t.each_columns(row, [&](int j, const number<S::P>(&e)[S::LOADED][S::R]) {
    const int to = j + S::LOADED;
    take_loaded(t, j, e, &v);
    if (to % 32 == 0 || to >= t.n)
      take_columns(t, j / 32 * 32, &v.column_sum);
  });
  *out = v;
  t.sync();
}

/* Writes the products, rounded at random, into the first half of 'side'. */
template <class System>
__device__ __forceinline__ void
give_products(const System &t, uint64_t seed,
              const scanned<typename System::S> &v) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++)
#pragma unroll
    for (int k = 0; k < S::K; k++) {
      const int i = t.thread + r * S::THREADS;
      if (i < t.n)
        t.s->side[k][i] =
            rounded_at_random<System>(v.product[r][k], seed, k, i);
    }
  t.sync();
}

/* R and C of a matrix that is not level: R levels the rows, and C then the
   columns; those of a definite one bring its diagonal to at least 1 and below
   4. Returns ||S||_1. */
template <class System>
__device__ __forceinline__ double scale_system(const System &t,
                                               scanned<typename System::S> *v) {
  using S = typename System::S;
#pragma unroll
  for (int r = 0; r < S::R; r++) {
    const int i = t.thread + r * S::THREADS;
    if (i < t.n && !t.definite) {
      t.s->row[i] = levelling(v->most[r]);
    } else if (i < t.n) {
      const long long bits = __double_as_longlong(t.entry_of_a(i, i).part[0]);
      const long long exponent = (bits >> 52 & 0x7ff) - 1023;
      t.s->row[i] = __longlong_as_double((1023 - (exponent >> 1)) << 52);
    }
  }
  t.sync();
  if (!t.definite)
    scan(t, v);
  t.each_row([&](int i) {
    t.s->col[i] = t.definite ? t.s->row[i] : levelling(t.s->den[i]);
  });
  t.sync();
  scan(t, v);
  double sum[1] = {v->column_sum};
  t.all(sum, larger());
  return sum[0];
}

/* Does the diagonal show that the matrix is not definite? */
template <class System>
__device__ __forceinline__ bool is_diagonal_positive(const System &t) {
  double wrong[1] = {0.0};
  t.each_row([&](int i) {
    if (!(t.entry_of_a(i, i).part[0] > 0.0))
      wrong[0] = 1.0;
  });
  t.all(wrong, larger());
  return wrong[0] == 0.0;
}

/* Finds the norms of op(A) and scales it, and leaves the products with the
   first vectors. */
template <class System>
__device__ __forceinline__ matrix_norms prepare(const System &t,
                                                uint64_t seed) {
  using S = typename System::S;
  matrix_norms out;
  scanned<S> v;
  t.each_place([&](int i) { t.s->row[i] = t.s->col[i] = 1.0; });
  draw_vectors(t, seed);
  scan(t, &v);
  double m[7] = {0.0, -HONE_INF, 0.0, -HONE_INF, 0.0, v.column_sum, -v.least};
#pragma unroll
  for (int r = 0; r < S::R; r++)
    if (t.thread + r * S::THREADS < t.n) {
      m[0] = larger()(m[0], v.most[r]);
      m[1] = larger()(m[1], -v.most[r]);
      m[4] = larger()(m[4], v.sum[r]);
    }
  t.each_row([&](int j) {
    m[2] = larger()(m[2], t.s->den[j]);
    m[3] = larger()(m[3], -t.s->den[j]);
  });
  t.all(m, larger());
  out.plain = m[0] <= -LEVEL * m[1] && m[2] <= -LEVEL * m[3] &&
              m[0] <= NEAR_ONE && -m[1] >= 1.0 / NEAR_ONE && m[2] <= NEAR_ONE &&
              -m[3] >= 1.0 / NEAR_ONE;
  out.serves = m[0] <= LARGEST_ENTRY && -m[6] >= SMALLEST_ENTRY &&
               -m[1] > 0.0 && -m[3] > 0.0 &&
               (!t.definite || is_diagonal_positive(t));
  out.norm_rows = m[4];
  out.norm_cols = out.norm_scaled = m[5];
  if (out.serves && !out.plain)
    out.norm_scaled = scale_system(t, &v);
  give_products(t, seed, v);
  return out;
}

} // namespace

#endif
