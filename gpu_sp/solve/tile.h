// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a triangle, HONE_PANEL x HONE_PANEL entries of T, in the
// registers of the threads of a thread block: loads, and products with a part
// of v. Rows and the entries of v count real numbers, columns of T entries: a
// pair is two real entries of a column, or one complex entry. Device code;
// included by mailbox.h alone. Read sweep.h next.
#ifndef HONE_CUDA_TILE_H
#define HONE_CUDA_TILE_H

#include "gpu_sp/factor/factor.h"
#include "gpu_sp/solve/triangles.h"

namespace {

constexpr int B = HONE_WIDE;
constexpr int COLUMNS = HONE_PANEL; // of a tile
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int PAIRS =
    B * COLUMNS / THREADS / 2;         // pairs of a tile that each thread has
constexpr int PARTS = 2 * THREADS / B; // threads that have the same two rows

static_assert(B == 128, "the thread layouts are for 128 rows");

// The row and the column of this thread's pair u (two rows of a column) in a
// tile. Transposed, lanes differ in the column so that the sums are few: 64
// bytes of each of four columns are loaded together.
constexpr int EACH = 2 / HONE_PARTS; // columns of a thread, transposed
template <bool TRANS> __device__ inline int pair_row(int u) {
  const int t = static_cast<int>(threadIdx.x);
  return TRANS ? 2 * (t % 8) + 16 * (u / EACH) : 2 * (t % 64);
}
template <bool TRANS> __device__ inline int pair_column(int u) {
  const int t = static_cast<int>(threadIdx.x);
  return TRANS ? EACH * (t / 8) + u % EACH : PAIRS * (t / 64) + u;
}
// The real number of which a transposed tile's sum m is a part.
__device__ inline int sum_row(int m) {
  return 2 * (static_cast<int>(threadIdx.x) / 8) + m;
}

struct Pair {
  float a, b;
};

struct Tile {
  const float *next; // this thread's pair 0, and the pairs after it
  int64_t ld;
  int64_t rows, columns; // rows and columns inside the matrix
  bool fast;             // the tile is inside, and its pairs are aligned
};

// Loads pair u; u ascends.
template <bool TRANS, bool FAST>
__device__ inline Pair load(Tile &tile, int u) {
  const float *p = tile.next;
  if (TRANS)
    p += 16 * (u / EACH) + (u % EACH) * tile.ld;
  else
    tile.next += tile.ld;
  if (FAST) {
    const float2 both = *reinterpret_cast<const float2 *>(p);
    return Pair{both.x, both.y};
  }
  const int r = pair_row<TRANS>(u);
  const bool in = pair_column<TRANS>(u) < tile.columns;
  return Pair{in && r < tile.rows ? p[0] : 0.0f,
              in && r + 1 < tile.rows ? p[1] : 0.0f};
}

#ifdef HONE_COMPLEX

// sum += (a + b i) v, both ways.
template <int K, bool TRANS>
__device__ inline void add(double (&sum)[2][K], int u, double a, double b,
                           const double *v) {
  const int at = TRANS ? pair_row<true>(u) : 2 * pair_column<false>(u);
#pragma unroll
  for (int k = 0; k < K; k++) {
    const double2 w = *reinterpret_cast<const double2 *>(v + k * B + at);
    sum[0][k] = fma(a, w.x, sum[0][k]);
    sum[1][k] = fma(a, w.y, sum[1][k]);
    sum[0][k] = fma(-b, w.y, sum[0][k]);
    sum[1][k] = fma(b, w.x, sum[1][k]);
  }
}

#else

template <int K, bool TRANS>
__device__ inline void add(double (&sum)[2][K], int u, double a, double b,
                           const double *v) {
#pragma unroll
  for (int k = 0; k < K; k++)
    if (TRANS) {
      const double *w = v + k * B + pair_row<TRANS>(u);
      const double2 both = *reinterpret_cast<const double2 *>(w);
      sum[u % 2][k] = fma(a, both.x, sum[u % 2][k]);
      sum[u % 2][k] = fma(b, both.y, sum[u % 2][k]);
    } else {
      const double w = v[k * B + pair_column<TRANS>(u)];
      sum[0][k] = fma(a, w, sum[0][k]);
      sum[1][k] = fma(b, w, sum[1][k]);
    }
}

#endif

// Adds the tile in x times v, and loads the next tile into x.
template <int K, bool TRANS, bool FAST>
__device__ inline void add_and_load(double (&sum)[2][K], Pair (&x)[PAIRS],
                                    const double *v, Tile next) {
#pragma unroll
  for (int u = 0; u < PAIRS; u++) {
    const Pair old = x[u];
    x[u] = load<TRANS, FAST>(next, u);
    add<K, TRANS>(sum, u, static_cast<double>(old.a),
                  static_cast<double>(old.b), v);
  }
}

} // namespace

#endif
