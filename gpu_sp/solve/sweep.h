// SPDX-License-Identifier: BSD-3-Clause
// The kernel of the triangular solves.
//
// A sweep is a solve with one triangle for one or more groups of up to K
// columns, and has one thread block for each group and each block row of
// HONE_WIDE real numbers. Tickets hand out the block rows in the order of their
// dependencies, so a thread block waits only for thread blocks that already
// run. Each sums F(i,j) v_j over the finished j and multiplies by the inverted
// diagonal block: no sum is divided among thread blocks, and scheduling decides
// no order. Both sweeps of a solve are one launch where their tiles are read
// the same way: the thread blocks of the second sweep have the later tickets,
// and find their v_i where the first sweep posts it.
//
// The time from one v_j to the next, which passes n / HONE_PANEL times, bounds
// the time of a solve. Complex matrices act as real ones (triangles.h): all but
// the tiles, the transposes of inverted blocks and the products with a tile is
// the same.
// - The finished v_j go through mailboxes (mailbox.h), of which there are two
//   sets: a launch clears the set that the launch before it filled.
// - Every v_i is read and written once, so it may be in pinned host memory.
// - Most multiprocessors wait, so the groups take hardly more time than one.
// - The registers of a tile are loaded with the next tile as they are used, so
//   each multiprocessor has up to 64 KB of loads in flight, also while it
//   waits.
// - Before the last wait of a block row its tile has been converted to double,
//   and its inverted diagonal block is in shared memory, and in registers as
//   far as there are any left.
//
// Device code; included by triangles.cu alone, which launches it. Read next:
// tile.h, mailbox.h.
#ifndef HONE_CUDA_SWEEP_H
#define HONE_CUDA_SWEEP_H

#include "gpu_sp/solve/mailbox.h"

namespace {

// ---- Shared memory ----

// An inverted diagonal block in shared memory, its triangle lower (rotated by
// half a turn where it is upper): four chunks of 32 outputs, of which chunk h
// has 32 * (h + 1) inputs; stored as [input][34], 34 against bank conflicts.
constexpr int CHUNK_STRIDE = 34;
constexpr int INVERSE = 10 * 32 * CHUNK_STRIDE; // doubles
__device__ inline int inverse_at(int out, int in) {
  const int h = out / 32;
  return (16 * h * (h + 1) + in) * CHUNK_STRIDE + out % 32;
}

// 2, 3, 5 and 6 warps of a thread block work on the chunks, so that each warp
// has at most SHARE inputs, an even number. The first HELD inputs, as many as
// fit, are kept in registers.
constexpr int SHARE = 22;
template <int K> constexpr int HELD = K == 1 ? 18 : K == 2 ? 12 : 4;
__device__ inline int
chunk_warp(int h) { // the chunk's first warp; chunk_warp(4) is WARPS
  return h == 0 ? 0 : h == 1 ? 2 : h == 2 ? 5 : h == 3 ? 10 : WARPS;
}
__device__ inline int chunk_share(int h) { // inputs of each of its warps
  return h == 0 ? 16 : h == 2 ? 20 : SHARE;
}

template <int K> struct Shared { // offsets in doubles
  static constexpr int sums = INVERSE;
  static constexpr int values = sums + K * B; // two of K * B
  static constexpr int parts = values + 2 * K * B;
  static constexpr int size = parts + PARTS * K * B;
};

// ---- The plan of a launch ----

// The one or two sweeps of a solve.
struct Plan {
  const double *inverse[2]; // see triangles.h
  bool forward[2];
  int groups; // of K columns, and the columns of all groups
  int columns;
  int *ticket;       // the last that the launch has handed out; -1 at first
  long long *box[2]; // mailboxes, one group after the other, EMPTY at first
  int first, last;   // the launch's first sweep, and the last of the solve
  // Used by the solve before, to be cleared for the next one: two tickets, and
  // the mailboxes of so many columns.
  int *old_ticket;
  long long *old_box[2];
  int old_columns;
  bool turned[2];     // what the sweep is given is conjugated first,
  bool result_turned; // and the solution last
};

// Returns v, which is real number r of a vector, or its part of the conjugate.
__device__ inline double part_of(bool conjugate, int r, double v) {
  return HONE_PARTS > 1 && conjugate && r % HONE_PARTS > 0 ? -v : v;
}

// The right-hand sides and the solutions, which may be the same memory.
struct Vectors {
  const double *from;
  double *to;
};

// Clears, for the next solve, the half that the solve before this one used.
__device__ inline void clear_old_half(const Plan &plan, int64_t number,
                                      int group) {
  const int t = static_cast<int>(threadIdx.x);
  const int words = plan.old_columns * B;
  if (number == 0 && group == 0 && t < 2)
    plan.old_ticket[t] = -1;
#pragma unroll
  for (int s = 0; s < 2; s++)
    for (int e = group * THREADS + t; e < words; e += plan.groups * THREADS)
      plan.old_box[s][number * words + e] = EMPTY;
}

// ---- The steps of a block row ----

// Takes the next ticket: all groups of a block row come before the next block
// row. *taken becomes the number of the block row, counted through both sweeps.
// *waits becomes 1 if the block row depends on others of its sweep, else 0.
__device__ inline void take_ticket(const Plan &plan, int64_t blocks, int t,
                                   int *taken, int *group, int *waits) {
  if (t == 0) {
    const int ticket = atomicAdd(plan.ticket, 1) + 1; // it starts at -1
    *taken = ticket / plan.groups;
    *group = ticket % plan.groups;
    *waits = *taken != 0 && *taken != blocks;
  }
  __syncthreads();
}

// The block row of a thread block.
struct BlockRow {
  int64_t n, blocks;
  int64_t i, number; // its place in T, and in the order of the sweep
  bool second;       // it belongs to the second of two sweeps
  bool forward;      // the sweep goes from the first block row to the last
  // The thread, its lane and its warp. They are kept here because the kernel
  // needs more registers if every step reads threadIdx.
  int t, lane, warp;

  // Returns the block row whose turn comes at this step of the sweep.
  __device__ inline int64_t at(int64_t step) const {
    return forward ? step : blocks - 1 - step;
  }
  // Returns the index in the block after a rotation by half a turn, which makes
  // the triangle of a backward sweep lower.
  __device__ inline int rotated(int r) const { return forward ? r : B - 1 - r; }
  // Returns true if entry e of K columns of B rows is inside the right-hand
  // sides.
  template <int K> __device__ inline bool inside(int e, int columns) const {
    const int r = e % B, k = e / B;
    return e < K * B && i * B + r < n && k < columns;
  }
};

// T; aligned: its pairs may be loaded at once.
struct Matrix {
  const float *f;
  int64_t ld;
  bool aligned;
};

// Returns the block row's tile for this step of the sweep.
template <bool TRANS>
__device__ inline Tile tile_at(const BlockRow &block_row, const Matrix &m,
                               int64_t step) {
  const int64_t i = block_row.i, j = block_row.at(step);
  const int64_t row = (TRANS ? j : i) * B, column = (TRANS ? i : j) * COLUMNS;
  Tile tile;
  tile.next =
      m.f + row + pair_row<TRANS>(0) + (column + pair_column<TRANS>(0)) * m.ld;
  tile.ld = m.ld;
  tile.rows = block_row.n - row;
  tile.columns = block_row.n / HONE_PARTS - column;
  tile.fast = m.aligned && tile.rows >= B && tile.columns >= COLUMNS;
  return tile;
}

// Loads a tile.
template <bool TRANS, bool FAST>
__device__ inline void load_all(Tile &tile, Pair (&x)[PAIRS]) {
#pragma unroll
  for (int u = 0; u < PAIRS; u++)
    x[u] = load<TRANS, FAST>(tile, u);
}

// The entries of v_i that this thread moves to shared memory: from memory or,
// in a second sweep, from the mailbox where the first sweep posts them.
template <int K> struct Given {
  static constexpr int WORDS = Inbox<K>::WORDS;
  double v[WORDS];
  Inbox<K> before;

  __device__ inline void request(const BlockRow &row, const long long *box,
                                 int columns, const double *from, int64_t ldv) {
    if (row.second)
      before.request(box, row.i);
    else
#pragma unroll
      for (int w = 0; w < WORDS; w++) {
        const int e = row.t + w * THREADS;
        v[w] = row.inside<K>(e, columns) ? from[row.i * B + e % B + e / B * ldv]
                                         : 0.0;
      }
  }
  __device__ inline void await(const BlockRow &row, int columns) {
    if (!row.second)
      return;
    before.await(row.number > 1);
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const int e = row.t + w * THREADS;
      v[w] = row.inside<K>(e, columns) ? __longlong_as_double(before.word[w])
                                       : 0.0;
    }
  }
  // apart: from column to column of sums.
  __device__ inline void store(const BlockRow &row, bool turned, int apart,
                               double *sums) const {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const int e = row.t + w * THREADS;
      if (e < K * B)
        sums[e / B * apart + row.rotated(e % B)] = part_of(turned, e % B, v[w]);
    }
  }
};

// Entry (r, c) of a block has the place (of(c, r), of(r, c)) in its transpose.
// Complex: the parity of an index tells a part, and stays.
__device__ inline int transposed_index(int of, int other) {
  return of - of % HONE_PARTS + other % HONE_PARTS;
}

// Copies the inverted diagonal block to shared memory.
template <bool TRANS>
__device__ inline void load_inverse(const BlockRow &row,
                                    const double *__restrict__ inverse,
                                    double *shared) {
#pragma unroll 8
  for (int e = row.t; e < B * B; e += THREADS) {
    const int r = e % B, c = e / B;
    const int out = row.rotated(TRANS ? transposed_index(c, r) : r);
    const int in = row.rotated(TRANS ? transposed_index(r, c) : c);
    if (in / 32 <= out / 32)
      shared[inverse_at(out, in)] = inverse[row.i * (B * B) + e];
  }
}

// The inputs of the inverted diagonal block that one warp multiplies.
template <int K> struct WarpInputs {
  int from, count;
  const double *first; // the lane's row of the inverse, from its first input on
  double held[HELD<K> + 1];

  __device__ inline void find(const BlockRow &row, const double *shared) {
    const int chunk = (row.warp >= 2) + (row.warp >= 5) + (row.warp >= 10);
    const int share = chunk_share(chunk);
    from = (row.warp - chunk_warp(chunk)) * share;
    const int left = 32 * (chunk + 1) - from;
    count = left < share ? left : share;
    first = shared + inverse_at(32 * chunk + row.lane, from);
#pragma unroll
    for (int m = 0; m < HELD<K>; m++)
      held[m] = m < count ? first[m * CHUNK_STRIDE] : 0.0;
  }
};

template <int K> __device__ inline void clear(double (&sum)[2][K]) {
#pragma unroll
  for (int k = 0; k < K; k++)
    sum[0][k] = sum[1][k] = 0.0;
}

// Adds the tile in x times v, and loads the next tile into x.
template <int K, bool TRANS>
__device__ inline void add_tile(double (&sum)[2][K], Pair (&x)[PAIRS],
                                const double *v, const Tile &next) {
  if (next.fast)
    add_and_load<K, TRANS, true>(sum, x, v, next);
  else
    add_and_load<K, TRANS, false>(sum, x, v, next);
}

// If waits is 1, waits for the last part of v, and adds the last tile, in x,
// times it; if waits is 0, does nothing. The loop runs once or never. It is a
// loop because the compiler does not move the slow conversions into one, and
// they must be done before the wait.
template <int K, bool TRANS>
__device__ inline void add_last(double (&sum)[2][K], const Pair (&x)[PAIRS],
                                const BlockRow &row, Inbox<K> &inbox,
                                double *values, const int &waits) {
  double a[PAIRS], b[PAIRS];
#pragma unroll
  for (int u = 0; u < PAIRS; u++) {
    a[u] = static_cast<double>(x[u].a);
    b[u] = static_cast<double>(x[u].b);
  }
#pragma unroll 1
  for (int left_to_do = waits; left_to_do > 0; left_to_do--) {
    double *now = values + ((row.number - 1) % 2) * (K * B);
    inbox.wait(now, false);
#pragma unroll
    for (int u = 0; u < PAIRS; u++)
      add<K, TRANS>(sum, u, a[u], b[u], now);
  }
}

// Subtracts from sums what the threads have added up, if the tiles are
// transposed: eight lanes each have a part of the same two rows.
template <int K>
__device__ inline void subtract_lanes(const BlockRow &row,
                                      const double (&sum)[2][K], double *sums) {
  const int mine = row.lane % 2; // the row that a lane goes on with
#pragma unroll
  for (int k = 0; k < K; k++) {
    double s = mine ? sum[1][k] : sum[0][k];
    s += __shfl_xor_sync(0xffffffffU, mine ? sum[0][k] : sum[1][k], 1);
#pragma unroll
    for (int d = 2; d < 8; d *= 2)
      s += __shfl_xor_sync(0xffffffffU, s, d);
    if (row.lane % 8 < 2)
      sums[k * B + row.rotated(sum_row(mine))] -= s;
  }
}

// Subtracts from sums what the threads have added up, if the tiles are not
// transposed: eight threads of different warps have a part of the same two
// rows.
template <int K>
__device__ inline void subtract_parts(const BlockRow &row,
                                      const double (&sum)[2][K], double *sums,
                                      double *parts) {
#pragma unroll
  for (int k = 0; k < K; k++) {
    double *part = parts + (row.t / 64 * K + k) * B + pair_row<false>(0);
    *reinterpret_cast<double2 *>(part) = make_double2(sum[0][k], sum[1][k]);
  }
  __syncthreads();
#pragma unroll
  for (int e0 = 0; e0 < K * B; e0 += THREADS) {
    const int e = e0 + row.t;
    if (e < K * B) {
      double s[PARTS];
#pragma unroll
      for (int g = 0; g < PARTS; g++)
        s[g] = parts[g * (K * B) + e];
      sums[e / B * B + row.rotated(e % B)] -=
          ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }
  }
}

// parts = the inverted diagonal block times sums, the share of each warp.
template <int K>
__device__ inline void multiply(const BlockRow &row,
                                const WarpInputs<K> &inputs, const double *sums,
                                double *parts) {
  double even[K], odd[K];
#pragma unroll
  for (int k = 0; k < K; k++)
    even[k] = odd[k] = 0.0;
#pragma unroll
  for (int m = 0; m < SHARE; m += 2)
    if (m < inputs.count) {
      double d[2];
#pragma unroll
      for (int h = 0; h < 2; h++)
        d[h] = m < HELD<K> ? inputs.held[m < HELD<K> ? m + h : 0]
                           : inputs.first[(m + h) * CHUNK_STRIDE];
#pragma unroll
      for (int k = 0; k < K; k++) {
        const double *w = sums + k * B + inputs.from + m;
        const double2 both = *reinterpret_cast<const double2 *>(w);
        even[k] = fma(d[0], both.x, even[k]);
        odd[k] = fma(d[1], both.y, odd[k]);
      }
    }
#pragma unroll
  for (int k = 0; k < K; k++)
    parts[(row.warp * K + k) * 32 + row.lane] = even[k] + odd[k];
}

// Where v_i goes.
struct Target {
  long long *box;
  double *to;
  int64_t ldv;
  int columns;
  bool written; // to memory too, after the last sweep;
  bool turned;  // what is written there is conjugated
};

__device__ inline Target target_of(const Plan &plan, const BlockRow &row,
                                   long long *box, double *to, int64_t ldv,
                                   int columns) {
  return {box,
          to,
          ldv,
          columns,
          plan.last == (row.second ? 1 : 0),
          plan.result_turned};
}

// Posts entry r of column k of v_i, and writes it to memory where it is due.
template <int K>
__device__ inline void give(const BlockRow &row, int r, int k, double v,
                            const Target &target) {
  post(target.box + row.i * (K * B) + k * B + r, v);
  if (target.written && row.i * B + r < row.n && k < target.columns)
    target.to[row.i * B + r + k * target.ldv] = part_of(target.turned, r, v);
}

// Adds the parts of the warps: v_i, which is given away.
template <int K>
__device__ inline void finish(const BlockRow &row, const double *parts,
                              const Target &target) {
#pragma unroll
  for (int e0 = 0; e0 < K * B; e0 += THREADS) {
    const int e = e0 + row.t, out = e % B, k = e / B;
    if (e >= K * B)
      break;
    const int first = chunk_warp(out / 32), end = chunk_warp(out / 32 + 1);
    double s = 0.0;
#pragma unroll
    for (int w = 0; w < 6; w++)
      if (first + w < end)
        s += parts[((first + w) * K + k) * 32 + out % 32];
    give<K>(row, row.rotated(out), k, s, target);
  }
}

// ---- The kernel ----

template <int K, bool TRANS>
__global__ void __launch_bounds__(THREADS, 1)
    sweep_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                 bool aligned, const Plan plan, const Vectors v, int64_t ldv) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *sums = shared + Shared<K>::sums;
  double *values = shared + Shared<K>::values;
  double *parts = shared + Shared<K>::parts;
  __shared__ int taken, group, waits;
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  const int64_t blocks = (n + B - 1) / B;
  take_ticket(plan, blocks, t, &taken, &group, &waits);
  const bool second = plan.first == 1 || taken >= blocks;
  const int64_t number = taken >= blocks ? taken - blocks : taken;
  const bool forward = second ? plan.forward[1] : plan.forward[0];
  const double *__restrict__ inv = second ? plan.inverse[1] : plan.inverse[0];
  const int mine = group;
  const int64_t boxes = mine * blocks * (K * B), first = mine * K * ldv;
  long long *const box = (second ? plan.box[1] : plan.box[0]) + boxes;
  const int columns = plan.columns - mine * K;
  const int64_t i = forward ? number : blocks - 1 - number;
  const BlockRow row = {n, blocks, i, number, second, forward, t, lane, warp};
  const Matrix matrix = {f, ld, aligned};
  Pair x[PAIRS] = {};
  Inbox<K> inbox;
  if (number > 0) {
    Tile tile = tile_at<TRANS>(row, matrix, 0);
    if (tile.fast)
      load_all<TRANS, true>(tile, x);
    else
      load_all<TRANS, false>(tile, x);
    inbox.request(box, row.at(0));
  }
  Given<K> given;
  given.request(row, plan.box[0] + boxes, columns, v.from + first, ldv);
  clear_old_half(plan, number, mine);
  load_inverse<TRANS>(row, inv, shared);
  given.await(row, columns);
  given.store(row, second ? plan.turned[1] : plan.turned[0], B, sums);
  __syncthreads();
  double sum[2][K];
  clear<K>(sum);
  for (int64_t step = 0; step + 1 < number; step++) {
    double *now = values + (step % 2) * (K * B);
    inbox.wait(now, number - step > 2);
    inbox.request(box, row.at(step + 1));
    add_tile<K, TRANS>(sum, x, now, tile_at<TRANS>(row, matrix, step + 1));
  }
  WarpInputs<K> inputs;
  inputs.find(row, shared);
  add_last<K, TRANS>(sum, x, row, inbox, values, waits);
  if (TRANS)
    subtract_lanes<K>(row, sum, sums);
  else
    subtract_parts<K>(row, sum, sums, parts);
  __syncthreads();
  multiply<K>(row, inputs, sums, parts);
  __syncthreads();
  finish<K>(row, parts, target_of(plan, row, box, v.to + first, ldv, columns));
}

} // namespace

#endif
