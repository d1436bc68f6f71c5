// SPDX-License-Identifier: BSD-3-Clause
// The kernel of the triangular solves for many columns, whose products are made
// by the tensor cores in double precision: sweep.h says how the thread blocks
// of a sweep work together, and this does the same with K columns to a group.
//
// An instruction multiplies 16 x 8 entries of a tile by 8 x 8 entries of v. A
// warp has 16 rows of every tile and half of its inputs, those of warps 0 to 7
// or of warps 8 to 15. Lane l has rows l / 4 and l / 4 + 8 and of v column l /
// 4; of eight inputs it has the two from 2 (l % 4) on, which the instruction
// takes for inputs l % 4 and l % 4 + 4: the order of a sum is free, and so the
// lane loads pairs.
//
// Device code; included by triangles.cu alone, which launches it. Read next:
// sweep.h.
#ifndef HONE_CUDA_WIDE_H
#define HONE_CUDA_WIDE_H

#include "gpu_sp/solve/sweep.h"

namespace {

constexpr int EIGHTS = 8;             // columns of a product, and inputs
constexpr int HALF = WARPS / 2;       // warps that have half of the inputs
constexpr int STEPS = B / EIGHTS / 2; // products of a warp to a tile
constexpr int HELD_PAIRS = 2 * STEPS; // of a tile, by each lane
// From column to column in shared memory: half a turn of the banks, so that two
// columns of four lanes are read at once.
constexpr int APART = B + 8;
// And where lanes write columns that are two apart.
constexpr int PART = B + 2;

static_assert(HALF * 16 == B, "a warp has 16 rows");

template <int K> struct WideShared { // offsets in doubles
  static constexpr int sums = INVERSE;
  static constexpr int values = sums + K * APART; // two of K * APART
  static constexpr int parts = values; // two of K * PART, when those were used
  static constexpr int size = values + 2 * K * APART;
};

// Where entry e of K columns of B rows stands in shared memory.
__device__ inline int apart(int e) { return e / B * APART + e % B; }

// A lane's place in a product.
struct Lane {
  int row;   // the first of its two rows; the other one is 8 behind it
  int pair;  // l % 4
  int other; // l / 4: the column of v
  bool half; // its warp has the second half of the inputs
  __device__ inline explicit Lane(const BlockRow &at)
      : row(16 * (at.warp % HALF) + at.lane / 4), pair(at.lane % 4),
        other(at.lane / 4), half(at.warp >= HALF) {}
  // The first of its two inputs of product u.
  __device__ inline int input(int u) const {
    return EIGHTS * (STEPS * half + u) + 2 * pair;
  }
};

// The sums of a warp: 16 rows, K columns. [2 h + m]: row lane.row + 8 h, column
// 2 * lane.pair + m of eight.
template <int K> struct Sums {
  double of[K / EIGHTS][4];
  __device__ inline void clear() {
#pragma unroll
    for (int c = 0; c < K / EIGHTS; c++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        of[c][e] = 0.0;
  }
  // Adds the products of two inputs, a in the first row, b in the other; v:
  // those of the lane's column.
  __device__ inline void add(const double2 &a, const double2 &b,
                             const double *v) {
    const double entries[4] = {a.x, b.x, a.y, b.y};
#pragma unroll
    for (int c = 0; c < K / EIGHTS; c++)
      hone_multiply_add_16x8x8(
          of[c], entries,
          *reinterpret_cast<const double2 *>(v + c * EIGHTS * APART));
  }
  // Writes them to parts, the K columns of the warp's half.
  __device__ inline void store(const Lane &l, double *parts) const {
#pragma unroll
    for (int c = 0; c < K / EIGHTS; c++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        parts[(l.half * K + c * EIGHTS + 2 * l.pair + e % 2) * PART + l.row +
              e / 2 * 8] = of[c][e];
  }
};

// Entry e of K columns of B rows, of which each half has stored its part.
template <int K>
__device__ inline double sum_of_halves(const double *parts, int e) {
  const double *p = parts + e / B * PART + e % B;
  return p[0] + p[K * PART];
}

// ---- The tiles of a lane ----

struct WideTile {
  const float *from; // the lane's pair 0
  int64_t ld;
  int64_t rows, columns; // rows and columns inside the matrix
  bool fast;             // the tile is inside, and its pairs are aligned
};

// The column of T, and the real number of it, of the first entry of pair u,
// within a tile: u / 2 is the product, and u % 2 the row. The pair's second
// entry follows it in the column, but for real tiles that are not transposed:
// these have it in the next column.
template <bool TRANS> __device__ inline int wide_column(const Lane &l, int u) {
  return (TRANS ? l.row + u % 2 * 8 : l.input(u / 2)) / HONE_PARTS;
}
template <bool TRANS> __device__ inline int wide_number(const Lane &l, int u) {
  return TRANS ? l.input(u / 2) : (l.row + u % 2 * 8) / HONE_PARTS * HONE_PARTS;
}

template <bool TRANS>
__device__ inline WideTile wide_tile(const BlockRow &at, const Lane &lane,
                                     const Matrix &m, int64_t step) {
  const int64_t i = at.i, j = at.at(step);
  const int64_t row = (TRANS ? j : i) * B, column = (TRANS ? i : j) * COLUMNS;
  WideTile tile;
  tile.from = m.f + row + wide_number<TRANS>(lane, 0) +
              (column + wide_column<TRANS>(lane, 0)) * m.ld;
  tile.ld = m.ld;
  tile.rows = at.n - row;
  tile.columns = at.n / HONE_PARTS - column;
  tile.fast = m.aligned && tile.rows >= B && tile.columns >= COLUMNS;
  return tile;
}

template <bool TRANS, bool FAST>
__device__ inline Pair wide_load(const WideTile &tile, const Lane &l, int u) {
  constexpr bool ACROSS = !TRANS && HONE_PARTS == 1;
  const int64_t other_row = TRANS ? 8 / HONE_PARTS * tile.ld : 8;
  const int64_t product = TRANS ? EIGHTS : EIGHTS / HONE_PARTS * tile.ld;
  const float *p = tile.from + u / 2 * product + u % 2 * other_row;
  if (FAST && !ACROSS) {
    const float2 both = *reinterpret_cast<const float2 *>(p);
    return Pair{both.x, both.y};
  }
  const int64_t second = ACROSS ? tile.ld : 1;
  const int r = wide_number<TRANS>(l, u), c = wide_column<TRANS>(l, u);
  const bool one = FAST || (r < tile.rows && c < tile.columns);
  const bool other =
      FAST || (r + !ACROSS < tile.rows && c + ACROSS < tile.columns);
  return Pair{one ? p[0] : 0.0F, other ? p[second] : 0.0F};
}

template <bool TRANS, bool FAST>
__device__ inline void wide_load_all(const WideTile &tile, const Lane &lane,
                                     Pair (&x)[HELD_PAIRS]) {
#pragma unroll
  for (int u = 0; u < HELD_PAIRS; u++)
    x[u] = wide_load<TRANS, FAST>(tile, lane, u);
}

// The two entries of the real matrix that a pair stands for in a row; complex:
// a row of the block of triangles.h.
__device__ inline double2 entries_of(const Pair &x, int row) {
  const double a = static_cast<double>(x.a), b = static_cast<double>(x.b);
  if (HONE_PARTS == 1)
    return make_double2(a, b);
  return row % 2 > 0 ? make_double2(b, a) : make_double2(a, -b);
}

// Adds the tile in x times v, and loads the next tile into x.
template <int K, bool TRANS, bool FAST>
__device__ inline void wide_add_and_load(Sums<K> &sums, Pair (&x)[HELD_PAIRS],
                                         const double *v, const Lane &lane,
                                         const WideTile &next) {
#pragma unroll
  for (int u = 0; u < STEPS; u++) {
    const double2 a = entries_of(x[2 * u], lane.row);
    const double2 b = entries_of(x[2 * u + 1], lane.row);
    x[2 * u] = wide_load<TRANS, FAST>(next, lane, 2 * u);
    x[2 * u + 1] = wide_load<TRANS, FAST>(next, lane, 2 * u + 1);
    sums.add(a, b, v + lane.other * APART + lane.input(u));
  }
}

// ---- The steps of a block row ----

// Waits for the part of v that was asked for, and puts it into shared memory.
template <int K>
__device__ inline void wide_receive(Inbox<K> &inbox, double *values, int t,
                                    bool far) {
  inbox.await(far);
#pragma unroll
  for (int w = 0; w < Inbox<K>::WORDS; w++)
    values[apart(t + w * THREADS)] = __longlong_as_double(inbox.word[w]);
  __syncthreads();
}

// If waits is 1, waits for the last part of v and adds the last tile, in x,
// times it; if waits is 0, does nothing. The loop runs once or never: see
// add_last in sweep.h.
template <int K>
__device__ inline void wide_add_last(Sums<K> &sums, const Pair (&x)[HELD_PAIRS],
                                     const BlockRow &row, const Lane &lane,
                                     Inbox<K> &inbox, double *values,
                                     const int &waits) {
  double2 a[HELD_PAIRS];
#pragma unroll
  for (int u = 0; u < HELD_PAIRS; u++)
    a[u] = entries_of(x[u], lane.row);
#pragma unroll 1
  for (int left_to_do = waits; left_to_do > 0; left_to_do--) {
    double *now = values + ((row.number - 1) % 2) * (K * APART);
    wide_receive<K>(inbox, now, row.t, false);
#pragma unroll
    for (int u = 0; u < STEPS; u++)
      sums.add(a[2 * u], a[2 * u + 1],
               now + lane.other * APART + lane.input(u));
  }
}

// The inverted diagonal block times v, in shared memory. Sixteen rows have as
// many inputs at least, and each half every other eight of them.
template <int K>
__device__ inline void wide_multiply(const BlockRow &row, const Lane &lane,
                                     const double *inverse, const double *v,
                                     Sums<K> &product) {
  v += lane.other * APART;
  product.clear();
#pragma unroll 4
  for (int u = 0; u <= row.warp % HALF; u++) {
    const int in = EIGHTS * (2 * u + lane.half) + 2 * lane.pair;
    const double *a = inverse + inverse_at(lane.row, in), *b = a + 8;
    product.add(make_double2(a[0], a[CHUNK_STRIDE]),
                make_double2(b[0], b[CHUNK_STRIDE]), v + in);
  }
}

// Makes v_i of the sums of all warps and what is left of it, and gives it away.
template <int K>
__device__ inline void wide_finish(const BlockRow &row, const Lane &lane,
                                   Sums<K> &sums, double *shared,
                                   const Target &target) {
  double *left = shared + WideShared<K>::sums;
  double *parts = shared + WideShared<K>::parts;
  __syncthreads(); // the values there have been used
  sums.store(lane, parts);
  __syncthreads();
#pragma unroll
  for (int e = row.t; e < K * B; e += THREADS)
    left[e / B * APART + row.rotated(e % B)] -= sum_of_halves<K>(parts, e);
  __syncthreads();
  wide_multiply<K>(row, lane, shared, left, sums);
  sums.store(lane, parts);
  __syncthreads();
#pragma unroll
  for (int e = row.t; e < K * B; e += THREADS)
    give<K>(row, row.rotated(e % B), e / B, sum_of_halves<K>(parts, e), target);
}

// ---- The kernel ----

template <int K, bool TRANS>
__global__ void __launch_bounds__(THREADS, 1)
    wide_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                bool aligned, const Plan plan, const Vectors v, int64_t ldv) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *values = shared + WideShared<K>::values;
  __shared__ int taken, group, waits;
  const int t = static_cast<int>(threadIdx.x);
  const int64_t blocks = (n + B - 1) / B;
  take_ticket(plan, blocks, t, &taken, &group, &waits);
  const bool second = plan.first == 1 || taken >= blocks;
  const int64_t number = taken >= blocks ? taken - blocks : taken;
  const bool forward = second ? plan.forward[1] : plan.forward[0];
  const double *__restrict__ inv = second ? plan.inverse[1] : plan.inverse[0];
  const int64_t boxes = group * blocks * (K * B), first = group * K * ldv;
  long long *const box = (second ? plan.box[1] : plan.box[0]) + boxes;
  const int columns = plan.columns - group * K;
  const int64_t i = forward ? number : blocks - 1 - number;
  const BlockRow row = {n,       blocks, i,      number, second,
                        forward, t,      t % 32, t / 32};
  const Matrix matrix = {f, ld, aligned};
  const Lane lane(row);
  Pair x[HELD_PAIRS] = {};
  Inbox<K> inbox;
  if (number > 0) {
    const WideTile tile = wide_tile<TRANS>(row, lane, matrix, 0);
    if (tile.fast)
      wide_load_all<TRANS, true>(tile, lane, x);
    else
      wide_load_all<TRANS, false>(tile, lane, x);
    inbox.request(box, row.at(0));
  }
  Given<K> given;
  given.request(row, plan.box[0] + boxes, columns, v.from + first, ldv);
  clear_old_half(plan, number, group);
  load_inverse<TRANS>(row, inv, shared);
  given.await(row, columns);
  given.store(row, second ? plan.turned[1] : plan.turned[0], APART,
              shared + WideShared<K>::sums);
  __syncthreads();
  Sums<K> sums;
  sums.clear();
  for (int64_t step = 0; step + 1 < number; step++) {
    double *now = values + (step % 2) * (K * APART);
    wide_receive<K>(inbox, now, t, number - step > 2);
    inbox.request(box, row.at(step + 1));
    const WideTile next = wide_tile<TRANS>(row, lane, matrix, step + 1);
    if (next.fast)
      wide_add_and_load<K, TRANS, true>(sums, x, now, lane, next);
    else
      wide_add_and_load<K, TRANS, false>(sums, x, now, lane, next);
  }
  wide_add_last<K>(sums, x, row, lane, inbox, values, waits);
  wide_finish<K>(row, lane, sums, shared,
                 target_of(plan, row, box, v.to + first, ldv, columns));
}

} // namespace

#endif
