// SPDX-License-Identifier: BSD-3-Clause
// Triangular solves with float factors, in double arithmetic.
//
// A sweep has one thread block for each block row of HONE_PANEL rows. Tickets
// hand the block rows out in the order of their dependencies, so that a block
// waits only for blocks that already run. Each adds up F(i,j) v_j over the
// finished j, and multiplies by the inverted diagonal block: no split of the
// sum over blocks, no order that scheduling decides. Both sweeps of a solve are
// one launch where their tiles are read the same way: the second one's blocks
// have the later tickets, and find their v_i where the first one posts it.
//
// What counts is the time from one v_j to the next, n / HONE_PANEL times.
// - The finished v_j go through a mailbox whose words are all ones until
//   written: the value is its own flag, and no fence or second trip to memory
//   stands between the blocks. There are two sets of them: a launch empties
//   what the one before it filled.
// - Every v_i is read once, and written once, so that it may as well stand in
//   the host's pinned memory.
// - The registers of a tile are loaded anew for the next one as they are used,
//   so each multiprocessor has up to 64 KB on its way, also while it waits.
// - Before the last wait of a block row its tile is already converted to
//   double and its inverted diagonal block is in shared memory, and in
//   registers as far as there are some left.

#include "gpu_sp/kernels.h"

namespace {

constexpr int B = HONE_PANEL;
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int PAIRS = B * B / THREADS / 2; // of each thread, of a tile
constexpr long long EMPTY = -1;            // a NaN that is never posted

static_assert(B == 128, "the thread layouts below are for 128 rows");

// ---- Inverses of the diagonal blocks ----

constexpr int SIDE = 16;          // threads along each side of a block
constexpr int STRIDES = B / SIDE; // and how often they repeat

// Eliminates under column SIDE * A + s, s < SIDE. y[a][b] is entry
// (SIDE * a + tr, SIDE * b + tc) of the inverse; only a >= b is ever touched.
template <int A>
__device__ inline void eliminate(double (&y)[STRIDES][STRIDES], int tr, int tc,
                                 const float *tile, const double *reciprocal,
                                 double *rows) {
  for (int s = 0; s < SIDE; s++) {
    const int k = SIDE * A + s;
    double *row = rows + (k & 1) * B;
    if (tr == s) {
      const double d = reciprocal[k];
#pragma unroll
      for (int b = 0; b <= A; b++) {
        y[A][b] *= d;
        row[SIDE * b + tc] = y[A][b];
      }
    }
    __syncthreads();
    double x[A + 1];
#pragma unroll
    for (int b = 0; b <= A; b++)
      x[b] = row[SIDE * b + tc];
#pragma unroll
    for (int a = A; a < STRIDES; a++)
      if (a > A || tr > s) {
        const double l = -static_cast<double>(tile[k * B + SIDE * a + tr]);
#pragma unroll
        for (int b = 0; b <= A; b++)
          y[a][b] = fma(l, x[b], y[a][b]);
      }
  }
}

// blockIdx.x: the diagonal block; blockIdx.y: 0 for the lower triangle, 1 for
// the upper one, which is turned by half a turn to be lower as well.
__global__ void __launch_bounds__(SIDE *SIDE, 2)
    invert_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                  double *__restrict__ inv_l, double *__restrict__ inv_u) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *rows = shared;               // 2 x B
  double *reciprocal = shared + 2 * B; // B
  float *tile = reinterpret_cast<float *>(shared + 3 * B);
  const int t = static_cast<int>(threadIdx.x);
  const int tr = t % SIDE, tc = t / SIDE;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * B;
  const bool turned = blockIdx.y == 1;
  const bool unit = turned; // of F kept by rows: L^T

#pragma unroll 8
  for (int e = t; e < B * B; e += SIDE * SIDE) {
    const int r = e % B, c = e / B;
    if (turned ? r > c : r < c)
      continue;
    float x = r == c ? 1.0f : 0.0f;
    if (first + r < n && first + c < n && !(unit && r == c))
      x = f[first + r + (first + c) * ld];
    tile[turned ? B * B - 1 - e : e] = x;
    if (r == c)
      reciprocal[turned ? B - 1 - r : r] = 1.0 / static_cast<double>(x);
  }

  double y[STRIDES][STRIDES];
#pragma unroll
  for (int a = 0; a < STRIDES; a++)
#pragma unroll
    for (int b = 0; b < STRIDES; b++)
      y[a][b] = a == b && tr == tc ? 1.0 : 0.0;
  __syncthreads();
  eliminate<0>(y, tr, tc, tile, reciprocal, rows);
  eliminate<1>(y, tr, tc, tile, reciprocal, rows);
  eliminate<2>(y, tr, tc, tile, reciprocal, rows);
  eliminate<3>(y, tr, tc, tile, reciprocal, rows);
  eliminate<4>(y, tr, tc, tile, reciprocal, rows);
  eliminate<5>(y, tr, tc, tile, reciprocal, rows);
  eliminate<6>(y, tr, tc, tile, reciprocal, rows);
  eliminate<7>(y, tr, tc, tile, reciprocal, rows);

  double *out = (turned ? inv_u : inv_l) + first * B;
#pragma unroll
  for (int a = 0; a < STRIDES; a++)
#pragma unroll
    for (int b = 0; b < STRIDES; b++) {
      const int r = SIDE * a + tr, c = SIDE * b + tc, e = r + c * B;
      out[turned ? B * B - 1 - e : e] = a >= b && r >= c ? y[a][b] : 0.0;
    }
}

// ---- Sweeps ----

// An inverted diagonal block in shared memory, its triangle lower (turned by
// half a turn if need be): four chunks of 32 outputs, of which chunk h has
// 32 * (h + 1) inputs; stored [input][33], the one against bank conflicts.
constexpr int CHUNK_STRIDE = 33;
constexpr int INVERSE = 10 * 32 * CHUNK_STRIDE; // doubles
__device__ inline int inverse_at(int out, int in) {
  const int h = out / 32;
  return (16 * h * (h + 1) + in) * CHUNK_STRIDE + out % 32;
}

// The warps of a thread block are dealt to the chunks 2, 3, 5, 6, which gives
// each at most SHARE inputs, an even number; the first of them, as many as
// fit, are kept in registers.
constexpr int SHARE = 22;
template <int K>
constexpr int HELD = K == 1   ? 18
                     : K == 2 ? 12
                     : K == 4 ? 4
                              : 0;
__device__ inline int chunk_warp(int h) { // its first; chunk_warp(4) is WARPS
  return h == 0 ? 0 : h == 1 ? 2 : h == 2 ? 5 : h == 3 ? 10 : WARPS;
}
__device__ inline int chunk_share(int h) { // inputs of each of its warps
  return h == 0 ? 16 : h == 2 ? 20 : SHARE;
}

template <int K> struct Shared { // offsets in doubles
  static constexpr int sums = INVERSE;
  static constexpr int values = sums + K * B; // two of K * B
  // Eight columns: over the values, to stay within the 163 KB of sm_80.
  static constexpr bool overlap = K == 8;
  static constexpr int parts = overlap ? values : values + 2 * K * B;
  static constexpr int size = parts + B / PAIRS * K * B;
};

// Where pair u (two rows of a column) of this thread lies in a tile.
// Transposed, lanes that differ in the column keep the sums few: 64 bytes of
// each of four columns are loaded together.
template <bool TRANS> __device__ inline int pair_row(int u) {
  const int t = static_cast<int>(threadIdx.x);
  return TRANS ? 2 * (t % 8) + 16 * (u / 2) : 2 * (t % 64);
}
template <bool TRANS> __device__ inline int pair_column(int u) {
  const int t = static_cast<int>(threadIdx.x);
  return TRANS ? 2 * (t / 8) + u % 2 : PAIRS * (t / 64) + u;
}

struct Pair {
  float a, b;
};

struct Tile {
  const float *next; // pair 0 of this thread, and on from there
  int64_t ld;
  int64_t rows, columns; // inside of the matrix
  bool fast;             // all of them, and pairs are aligned
};

// Pair u, in ascending order.
template <bool TRANS, bool FAST>
__device__ inline Pair load(Tile &tile, int u) {
  const float *p = tile.next;
  if (TRANS)
    p += 16 * (u / 2) + (u % 2) * tile.ld;
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

// A mailbox has room for the most columns; a sweep uses the first K * B words
// of each block row.
constexpr int BOX_ROW = HONE_TRIANGLE_COLUMNS * B;

// The v of a block, as its words of the mailbox arrive.
template <int K> struct Inbox {
  static constexpr int WORDS = (K * B + THREADS - 1) / THREADS;
  static constexpr bool ALL = K * B % THREADS == 0; // every thread has WORDS
  long long word[WORDS];
  const volatile long long *from;

  __device__ inline void ask(const long long *box, int64_t block) {
    const int t = static_cast<int>(threadIdx.x);
    from = box + block * BOX_ROW + t;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      word[w] = ALL || t < K * B ? from[w * THREADS] : 0;
  }
  // far: not the next block row to finish; it leaves the memory to that.
  __device__ inline void arrive(bool far) {
    const int t = static_cast<int>(threadIdx.x);
#ifdef HONE_EMULATE
    far = true; // there, sleep is what lets others run
#endif
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (ALL || t < K * B) {
        while (word[w] == EMPTY) {
          if (far)
            __nanosleep(100);
          word[w] = from[w * THREADS];
        }
      }
  }
  __device__ inline void wait(double *values, bool far) {
    const int t = static_cast<int>(threadIdx.x);
    arrive(far);
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (ALL || t < K * B)
        values[t + w * THREADS] = __longlong_as_double(word[w]);
    __syncthreads();
  }
};

// The one or two sweeps of a solve.
struct Plan {
  const double *inverse[2];
  bool forward[2];
  int *ticket;       // of the launch, -1 at first
  long long *box[2]; // all ones at first
  int first, last;   // the launch's first one, and the last of all
  int *old_ticket;   // two, to be emptied: what the solve before took,
  long long *old_box[2];
  int old_columns; // and filled
};

// What the solve before this one filled is emptied for the one after it.
__device__ inline void empty(const Plan &plan, int64_t number) {
  const int t = static_cast<int>(threadIdx.x);
  if (number == 0 && t < 2)
    plan.old_ticket[t] = -1;
#pragma unroll
  for (int s = 0; s < 2; s++)
    for (int e = t; e < plan.old_columns * B; e += THREADS)
      plan.old_box[s][number * BOX_ROW + e] = EMPTY;
}

template <int K, bool TRANS>
__global__ void __launch_bounds__(THREADS, 1)
    sweep_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                 bool aligned, const Plan plan, int columns,
                 const double *old_v, double *new_v, int64_t ldv) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *sums = shared + Shared<K>::sums;
  double *values = shared + Shared<K>::values;
  double *parts = shared + Shared<K>::parts;
  __shared__ int taken, waits;
  const int t = static_cast<int>(threadIdx.x);
  const int lane = t % 32, warp = t / 32;
  const int64_t blocks = (n + B - 1) / B;
  if (t == 0) {
    taken = atomicAdd(plan.ticket, 1) + 1; // it starts at -1
    waits = taken != 0 && taken != blocks;
  }
  __syncthreads();
  // This block row is number `number` in the order of the sweep.
  const bool second = plan.first == 1 || taken >= blocks;
  const int64_t number = taken >= blocks ? taken - blocks : taken;
  const bool forward = second ? plan.forward[1] : plan.forward[0];
  const double *__restrict__ inv = second ? plan.inverse[1] : plan.inverse[0];
  long long *const box = second ? plan.box[1] : plan.box[0];
  const int64_t i = forward ? number : blocks - 1 - number;

  const auto tile_at = [&](int64_t step) {
    const int64_t j = forward ? step : blocks - 1 - step;
    const int64_t row = (TRANS ? j : i) * B, column = (TRANS ? i : j) * B;
    Tile tile;
    tile.next =
        f + row + pair_row<TRANS>(0) + (column + pair_column<TRANS>(0)) * ld;
    tile.ld = ld;
    tile.rows = n - row;
    tile.columns = n - column;
    tile.fast = aligned && tile.rows >= B && tile.columns >= B;
    return tile;
  };
  const auto block_at = [&](int64_t step) {
    return forward ? step : blocks - 1 - step;
  };

  Pair x[PAIRS] = {};
  Inbox<K> inbox;
  if (number > 0) {
    Tile tile = tile_at(0);
    if (tile.fast) {
#pragma unroll
      for (int u = 0; u < PAIRS; u++)
        x[u] = load<TRANS, true>(tile, u);
    } else {
#pragma unroll
      for (int u = 0; u < PAIRS; u++)
        x[u] = load<TRANS, false>(tile, u);
    }
    inbox.ask(box, block_at(0));
  }

  // v_i: given, or of the sweep before.
  constexpr int WORDS = Inbox<K>::WORDS;
  double given[WORDS];
  Inbox<K> before;
  if (second)
    before.ask(plan.box[0], i);
  else
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const int e = t + w * THREADS, r = e % B, k = e / B;
      const bool in = e < K * B && i * B + r < n && k < columns;
      given[w] = in ? old_v[i * B + r + k * ldv] : 0.0;
    }
  empty(plan, number);

  // Turned, if the sweep is backward, to a lower triangle.
#pragma unroll 8
  for (int e = t; e < B * B; e += THREADS) {
    const int r = e % B, c = e / B;
    int out = TRANS ? c : r, in = TRANS ? r : c;
    if (!forward) {
      out = B - 1 - out;
      in = B - 1 - in;
    }
    if (in / 32 <= out / 32)
      shared[inverse_at(out, in)] = inv[i * (B * B) + e];
  }
  const auto turn = [&](int r) { return forward ? r : B - 1 - r; };
  if (second) {
    before.arrive(number > 1);
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const int e = t + w * THREADS, r = e % B, k = e / B;
      const bool in = e < K * B && i * B + r < n && k < columns;
      given[w] = in ? __longlong_as_double(before.word[w]) : 0.0;
    }
  }
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    const int e = t + w * THREADS;
    if (e < K * B)
      sums[e / B * B + turn(e % B)] = given[w];
  }
  __syncthreads();

  double sum[2][K];
#pragma unroll
  for (int k = 0; k < K; k++)
    sum[0][k] = sum[1][k] = 0.0;
  for (int64_t step = 0; step + 1 < number; step++) {
    double *now = values + (step % 2) * (K * B);
    inbox.wait(now, number - step > 2);
    inbox.ask(box, block_at(step + 1));
    const Tile next = tile_at(step + 1);
    if (next.fast)
      add_and_load<K, TRANS, true>(sum, x, now, next);
    else
      add_and_load<K, TRANS, false>(sum, x, now, next);
  }

  // The inputs of the inverse that are this warp's.
  const int chunk = (warp >= 2) + (warp >= 5) + (warp >= 10);
  const int share = chunk_share(chunk);
  const int from = (warp - chunk_warp(chunk)) * share;
  const int left = 32 * (chunk + 1) - from, count = left < share ? left : share;
  const double *row = shared + inverse_at(32 * chunk + lane, from);
  double near[HELD<K> + 1];
#pragma unroll
  for (int m = 0; m < HELD<K>; m++)
    near[m] = m < count ? row[m * CHUNK_STRIDE] : 0.0;

  double a[PAIRS], b[PAIRS];
#pragma unroll
  for (int u = 0; u < PAIRS; u++) {
    a[u] = static_cast<double>(x[u].a);
    b[u] = static_cast<double>(x[u].b);
  }
  // Once or never; but into a loop the compiler does not move the slow
  // conversions, which are to be done before the wait.
#pragma unroll 1
  for (int rounds = waits; rounds > 0; rounds--) {
    double *now = values + ((number - 1) % 2) * (K * B);
    inbox.wait(now, false);
#pragma unroll
    for (int u = 0; u < PAIRS; u++)
      add<K, TRANS>(sum, u, a[u], b[u], now);
  }

  // sums = v_i less what the threads added up
  if (TRANS) {
#pragma unroll
    for (int d = 1; d < 8; d *= 2)
#pragma unroll
      for (int k = 0; k < K; k++)
#pragma unroll
        for (int m = 0; m < 2; m++)
          sum[m][k] += __shfl_xor_sync(0xffffffffu, sum[m][k], d);
    if (lane % 8 == 0) {
#pragma unroll
      for (int k = 0; k < K; k++)
#pragma unroll
        for (int m = 0; m < 2; m++)
          sums[k * B + turn(pair_column<TRANS>(m))] -= sum[m][k];
    }
  } else {
    if (Shared<K>::overlap)
      __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
      double *part = parts + (t / 64 * K + k) * B + pair_row<TRANS>(0);
      *reinterpret_cast<double2 *>(part) = make_double2(sum[0][k], sum[1][k]);
    }
    __syncthreads();
#pragma unroll
    for (int e0 = 0; e0 < K * B; e0 += THREADS) {
      const int e = e0 + t;
      if (e < K * B) {
        double s[B / PAIRS];
#pragma unroll
        for (int g = 0; g < B / PAIRS; g++)
          s[g] = parts[g * (K * B) + e];
        sums[e / B * B + turn(e % B)] -=
            ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
      }
    }
  }
  __syncthreads();

  double even[K], odd[K];
#pragma unroll
  for (int k = 0; k < K; k++)
    even[k] = odd[k] = 0.0;
#pragma unroll
  for (int m = 0; m < SHARE; m += 2)
    if (m < count) {
      double d[2];
#pragma unroll
      for (int h = 0; h < 2; h++)
        d[h] = m < HELD<K> ? near[m < HELD<K> ? m + h : 0]
                           : row[(m + h) * CHUNK_STRIDE];
#pragma unroll
      for (int k = 0; k < K; k++) {
        const double *w = sums + k * B + from + m;
        const double2 both = *reinterpret_cast<const double2 *>(w);
        even[k] = fma(d[0], both.x, even[k]);
        odd[k] = fma(d[1], both.y, odd[k]);
      }
    }
#pragma unroll
  for (int k = 0; k < K; k++)
    parts[(warp * K + k) * 32 + lane] = even[k] + odd[k];
  __syncthreads();
#pragma unroll
  for (int e0 = 0; e0 < K * B; e0 += THREADS) {
    const int e = e0 + t, out = e % B, k = e / B, r = turn(out);
    if (e >= K * B)
      break;
    const int first = chunk_warp(out / 32), end = chunk_warp(out / 32 + 1);
    double s = 0.0;
#pragma unroll
    for (int w = 0; w < 6; w++)
      if (first + w < end)
        s += parts[((first + w) * K + k) * 32 + out % 32];
    // Some NaN, but never the one that says EMPTY.
    const long long bits =
        s == s ? __double_as_longlong(s) : 0x7ff8000000000000LL;
    *static_cast<volatile long long *>(box + i * BOX_ROW + k * B + r) = bits;
    if (plan.last == (second ? 1 : 0) && i * B + r < n && k < columns)
      new_v[i * B + r + k * ldv] = s;
  }
}

int64_t block_rows(int64_t n) { return (n + B - 1) / B; }

bool transposed(enum hone_triangle which) {
  return which == HONE_LOWER_TRANS || which == HONE_UPPER_TRANS;
}

// What is the same for all columns of a solve.
struct Solve {
  int64_t n;
  const float *f;
  int64_t ld;
  const double *from;
  double *to;
  int64_t ldv;
  hone_triangle_work *work;
  cudaStream_t stream;
};

// 'sweeps' of them, from plan.first on, in one launch.
template <int K, bool TRANS>
cudaError_t launch(const Solve &s, const Plan &plan, int sweeps, int columns) {
  const int bytes = Shared<K>::size * static_cast<int>(sizeof(double));
  const auto kernel = sweep_kernel<K, TRANS>;
  const unsigned bit = 1U << (2 * K + (TRANS ? 1 : 0));
  if (!(s.work->ready & bit)) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess)
      return error;
    s.work->ready |= bit;
  }
  const bool aligned =
      reinterpret_cast<uintptr_t>(s.f) % sizeof(float2) == 0 && s.ld % 2 == 0;
  HONE_LAUNCH(kernel, static_cast<unsigned>(sweeps * block_rows(s.n)), THREADS,
              bytes, s.stream, s.n, s.f, s.ld, aligned, plan, columns, s.from,
              s.to, s.ldv);
  return cudaGetLastError();
}

template <int K>
cudaError_t launch(bool trans, const Solve &s, const Plan &plan, int sweeps,
                   int columns) {
  return trans ? launch<K, true>(s, plan, sweeps, columns)
               : launch<K, false>(s, plan, sweeps, columns);
}

cudaError_t launch_some(bool trans, const Solve &s, const Plan &plan,
                        int sweeps, int columns) {
  return columns == 1   ? launch<1>(trans, s, plan, sweeps, columns)
         : columns == 2 ? launch<2>(trans, s, plan, sweeps, columns)
         : columns <= 4 ? launch<4>(trans, s, plan, sweeps, columns)
                        : launch<8>(trans, s, plan, sweeps, columns);
}

// The half of the workspace that is empty for this solve, the other one to be
// emptied. In front of the mailboxes: two words of tickets.
cudaError_t take_turn(const Solve &s, int columns, Plan *plan) {
  hone_triangle_work *const work = s.work;
  const int64_t box = block_rows(s.n) * BOX_ROW;
  if (!work->clean) {
    const size_t words = static_cast<size_t>(2 + 4 * box);
    const cudaError_t error =
        cudaMemsetAsync(work->there, 0xff, words * sizeof(long long), s.stream);
    if (error != cudaSuccess)
      return error;
    work->turn = work->columns = 0;
  }
  int *const tickets = static_cast<int *>(work->there);
  long long *const boxes = static_cast<long long *>(work->there) + 2;
  const int now = work->turn, old = 1 - now;
  for (int i = 0; i < 2; i++) {
    plan->box[i] = boxes + (2 * now + i) * box;
    plan->old_box[i] = boxes + (2 * old + i) * box;
  }
  plan->ticket = tickets + 2 * now;
  plan->old_ticket = tickets + 2 * old;
  plan->old_columns = work->columns;
  work->turn = old;
  work->columns = columns == 3 ? 4 : columns > 4 ? 8 : columns;
  return cudaSuccess;
}

cudaError_t solve_some(const hone_sweep *sweep, int sweeps, const Solve &s,
                       int columns) {
  Plan plan = {};
  cudaError_t error = take_turn(s, columns, &plan);
  s.work->clean = false; // unless all goes well
  bool trans[2] = {};
  for (int i = 0; i < sweeps; i++) {
    plan.inverse[i] = sweep[i].inverse;
    plan.forward[i] =
        sweep[i].which == HONE_LOWER || sweep[i].which == HONE_UPPER_TRANS;
    trans[i] = transposed(sweep[i].which);
  }
  plan.last = sweeps - 1;
  const bool together = sweeps == 2 && trans[0] == trans[1];
  if (error == cudaSuccess)
    error = launch_some(trans[0], s, plan, together ? 2 : 1, columns);
  if (error == cudaSuccess && sweeps == 2 && !together) {
    plan.first = 1;
    plan.ticket++;
    error = launch_some(trans[1], s, plan, 1, columns);
  }
  s.work->clean = error == cudaSuccess;
  return error;
}

} // namespace

int64_t hone_cuda_inverse_bytes(int64_t n) {
  return block_rows(n) * B * B * static_cast<int64_t>(sizeof(double));
}

cudaError_t hone_cuda_invert_blocks(int64_t n, const float *f, int64_t ld,
                                    double *lower, double *upper,
                                    cudaStream_t stream) {
  if (n <= 0)
    return cudaSuccess;
  const int bytes = 3 * B * static_cast<int>(sizeof(double)) +
                    B * B * static_cast<int>(sizeof(float));
  const cudaError_t error = cudaFuncSetAttribute(
      invert_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess)
    return error;
  const dim3 grid(static_cast<unsigned>(block_rows(n)), upper ? 2 : 1);
  HONE_LAUNCH(invert_kernel, grid, SIDE * SIDE, bytes, stream, n, f, ld, lower,
              upper);
  return cudaGetLastError();
}

int64_t hone_cuda_triangle_bytes(int64_t n) {
  // Tickets, and two sets of two mailboxes.
  return (2 + 4 * block_rows(n) * BOX_ROW) *
         static_cast<int64_t>(sizeof(long long));
}

cudaError_t hone_cuda_triangles(const hone_sweep *sweep, int sweeps, int64_t n,
                                const float *f, int64_t ld, int64_t k,
                                const double *from, double *to, int64_t ldv,
                                hone_triangle_work *work, cudaStream_t stream) {
  if (n <= 0)
    return cudaSuccess;
  for (int64_t done = 0; done < k; done += HONE_TRIANGLE_COLUMNS) {
    const int64_t left = k - done;
    const int columns = static_cast<int>(
        left < HONE_TRIANGLE_COLUMNS ? left : int64_t(HONE_TRIANGLE_COLUMNS));
    const cudaError_t error = solve_some(
        sweep, sweeps,
        Solve{n, f, ld, from + done * ldv, to + done * ldv, ldv, work, stream},
        columns);
    if (error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}
