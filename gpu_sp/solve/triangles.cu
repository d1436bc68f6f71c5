// SPDX-License-Identifier: BSD-3-Clause
// Triangular solves with float factors, in double arithmetic.
//
// A sweep is a solve with one triangle, and has one thread block for each block
// row of HONE_PANEL rows. Tickets hand out the block rows in the order of their
// dependencies, so a thread block waits only for thread blocks that already
// run. Each sums F(i,j) v_j over the finished j and multiplies by the inverted
// diagonal block: no sum is divided among thread blocks, and scheduling decides
// no order. Both sweeps of a solve are one launch where their tiles are read
// the same way: the thread blocks of the second sweep have the later tickets,
// and find their v_i where the first sweep posts it.
//
// The time from one v_j to the next, n / HONE_PANEL times, is what counts.
// - The finished v_j go through a mailbox whose words are all ones until they
// are
//   written. The value is its own flag, so no fence and no second access to
//   memory stands between the thread blocks. There are two sets of mailboxes: a
//   launch clears the set that the launch before it filled.
// - Every v_i is read once and written once, so it may be in pinned host
// memory.
// - The registers of a tile are loaded with the next tile as they are used, so
//   each multiprocessor has up to 64 KB of loads in flight, also while it
//   waits.
// - Before the last wait of a block row its tile has been converted to double,
// and
//   its inverted diagonal block is in shared memory, and in registers as far as
//   there are any left.
//
// Read next: triangles.h, invert.cu for the inverses, solve.cu for the callers.

#include "gpu_sp/factor/factor.h"
#include "gpu_sp/solve/triangles.h"

namespace {

constexpr int B = HONE_PANEL;
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int PAIRS =
    B * B / THREADS / 2;        // pairs of a tile that each thread has
constexpr long long EMPTY = -1; // a NaN that is never posted

static_assert(B == 128, "the thread layouts below are for 128 rows");

// ---- Sweeps ----

// An inverted diagonal block in shared memory, its triangle lower (rotated by
// half a turn where it is upper): four chunks of 32 outputs, of which chunk h
// has 32 * (h + 1) inputs; stored as [input][33], 33 against bank conflicts.
constexpr int CHUNK_STRIDE = 33;
constexpr int INVERSE = 10 * 32 * CHUNK_STRIDE; // doubles
__device__ inline int inverse_at(int out, int in) {
  const int h = out / 32;
  return (16 * h * (h + 1) + in) * CHUNK_STRIDE + out % 32;
}

// 2, 3, 5 and 6 warps of a thread block work on the chunks, so that each warp
// has at most SHARE inputs, an even number. The first HELD inputs, as many as
// fit, are kept in registers.
constexpr int SHARE = 22;
template <int K>
constexpr int HELD = K == 1   ? 18
                     : K == 2 ? 12
                     : K == 4 ? 4
                              : 0;
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
  // With eight columns the parts overlap the values, to fit the 163 KB of
  // sm_80.
  static constexpr bool overlap = K == 8;
  static constexpr int parts = overlap ? values : values + 2 * K * B;
  static constexpr int size = parts + B / PAIRS * K * B;
};

// The row and the column of this thread's pair u (two rows of a column) in a
// tile. Transposed, lanes differ in the column so that the sums are few: 64
// bytes of each of four columns are loaded together.
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

// A mailbox has room for HONE_TRIANGLE_COLUMNS columns; a sweep uses the first
// K * B words of each block row.
constexpr int BOX_ROW = HONE_TRIANGLE_COLUMNS * B;

// The v of a block row, as its words arrive in the mailbox.
template <int K> struct Inbox {
  static constexpr int WORDS = (K * B + THREADS - 1) / THREADS;
  static constexpr bool ALL = K * B % THREADS == 0; // every thread has WORDS
  long long word[WORDS];
  const volatile long long *from;

  __device__ inline void request(const long long *box, int64_t block) {
    const int t = static_cast<int>(threadIdx.x);
    from = box + block * BOX_ROW + t;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      word[w] = ALL || t < K * B ? from[w * THREADS] : 0;
  }
  // far: more than one block row is to finish before; this one then sleeps, and
  // leaves the memory to the next.
  __device__ inline void await(bool far) {
    const int t = static_cast<int>(threadIdx.x);
#ifdef HONE_EMULATE
    far = true; // there a sleeping thread is what lets others run
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
    await(far);
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
  int first, last;   // sweeps: the launch's first one, and the last of all
  int *old_ticket;   // two tickets to clear, which the solve before used,
  long long *old_box[2];
  int old_columns; // the mailboxes it filled, for so many columns
};

// The right-hand sides and the solutions, which may be the same memory.
struct Vectors {
  const double *from;
  double *to;
};

// Clears for the next solve what the one before this one filled.
__device__ inline void clear_old_half(const Plan &plan, int64_t number) {
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
                 bool aligned, const Plan plan, int columns, const Vectors v,
                 int64_t ldv) {
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
    inbox.request(box, block_at(0));
  }

  // v_i: given, or of the sweep before.
  constexpr int WORDS = Inbox<K>::WORDS;
  double given[WORDS];
  Inbox<K> before;
  if (second)
    before.request(plan.box[0], i);
  else
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const int e = t + w * THREADS, r = e % B, k = e / B;
      const bool in = e < K * B && i * B + r < n && k < columns;
      given[w] = in ? v.from[i * B + r + k * ldv] : 0.0;
    }
  clear_old_half(plan, number);

  // Rotated to a lower triangle if the sweep is backward.
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
  const auto rotated = [&](int r) { return forward ? r : B - 1 - r; };
  if (second) {
    before.await(number > 1);
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
      sums[e / B * B + rotated(e % B)] = given[w];
  }
  __syncthreads();

  double sum[2][K];
#pragma unroll
  for (int k = 0; k < K; k++)
    sum[0][k] = sum[1][k] = 0.0;
  for (int64_t step = 0; step + 1 < number; step++) {
    double *now = values + (step % 2) * (K * B);
    inbox.wait(now, number - step > 2);
    inbox.request(box, block_at(step + 1));
    const Tile next = tile_at(step + 1);
    if (next.fast)
      add_and_load<K, TRANS, true>(sum, x, now, next);
    else
      add_and_load<K, TRANS, false>(sum, x, now, next);
  }

  // This warp's inputs of the inverse.
  const int chunk = (warp >= 2) + (warp >= 5) + (warp >= 10);
  const int share = chunk_share(chunk);
  const int from = (warp - chunk_warp(chunk)) * share;
  const int left = 32 * (chunk + 1) - from, count = left < share ? left : share;
  const double *row = shared + inverse_at(32 * chunk + lane, from);
  double held[HELD<K> + 1];
#pragma unroll
  for (int m = 0; m < HELD<K>; m++)
    held[m] = m < count ? row[m * CHUNK_STRIDE] : 0.0;

  double a[PAIRS], b[PAIRS];
#pragma unroll
  for (int u = 0; u < PAIRS; u++) {
    a[u] = static_cast<double>(x[u].a);
    b[u] = static_cast<double>(x[u].b);
  }
  // Runs once or never. It is a loop because the compiler does not move the
  // slow conversions into one, and they must be done before the wait.
#pragma unroll 1
  for (int left_to_do = waits; left_to_do > 0; left_to_do--) {
    double *now = values + ((number - 1) % 2) * (K * B);
    inbox.wait(now, false);
#pragma unroll
    for (int u = 0; u < PAIRS; u++)
      add<K, TRANS>(sum, u, a[u], b[u], now);
  }

  // sums = v_i less what the threads have summed
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
          sums[k * B + rotated(pair_column<TRANS>(m))] -= sum[m][k];
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
        sums[e / B * B + rotated(e % B)] -=
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
        d[h] = m < HELD<K> ? held[m < HELD<K> ? m + h : 0]
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
    const int e = e0 + t, out = e % B, k = e / B, r = rotated(out);
    if (e >= K * B)
      break;
    const int first = chunk_warp(out / 32), end = chunk_warp(out / 32 + 1);
    double s = 0.0;
#pragma unroll
    for (int w = 0; w < 6; w++)
      if (first + w < end)
        s += parts[((first + w) * K + k) * 32 + out % 32];
    // A NaN is posted as one that is not EMPTY.
    const long long bits =
        s == s ? __double_as_longlong(s) : 0x7ff8000000000000LL;
    *static_cast<volatile long long *>(box + i * BOX_ROW + k * B + r) = bits;
    if (plan.last == (second ? 1 : 0) && i * B + r < n && k < columns)
      v.to[i * B + r + k * ldv] = s;
  }
}

int64_t block_rows(int64_t n) { return (n + B - 1) / B; }

bool transposed(enum hone_triangle which) {
  return which == HONE_LOWER_TRANS || which == HONE_UPPER_TRANS;
}

// The members that all columns of a solve share, and the columns of one launch.
struct Solve {
  hone_triangles t;
  hone_solve_columns v; // v.k <= HONE_TRIANGLE_COLUMNS
  hone_triangle_work *work;
  cudaStream_t stream;
};

// Enqueues so many sweeps, from plan.first on, in one launch.
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
  const hone_triangles &t = s.t;
  const bool aligned =
      reinterpret_cast<uintptr_t>(t.t) % sizeof(float2) == 0 && t.ld % 2 == 0;
  HONE_LAUNCH(kernel, static_cast<unsigned>(sweeps * block_rows(t.n)), THREADS,
              bytes, s.stream, t.n, t.t, t.ld, aligned, plan, columns,
              Vectors{s.v.from, s.v.to}, s.v.ldv);
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

// Takes the half of the workspace that is clear, and plans to clear the other.
// Two words of tickets stand before the mailboxes.
cudaError_t take_half(const Solve &s, int columns, Plan *plan) {
  hone_triangle_work *const work = s.work;
  const int64_t box = block_rows(s.t.n) * BOX_ROW;
  if (!work->clean) {
    const size_t words = static_cast<size_t>(2 + 4 * box);
    const cudaError_t error =
        cudaMemsetAsync(work->there, 0xff, words * sizeof(long long), s.stream);
    if (error != cudaSuccess)
      return error;
    work->half = work->columns = 0;
  }
  int *const tickets = static_cast<int *>(work->there);
  long long *const boxes = static_cast<long long *>(work->there) + 2;
  const int now = work->half, old = 1 - now;
  for (int i = 0; i < 2; i++) {
    plan->box[i] = boxes + (2 * now + i) * box;
    plan->old_box[i] = boxes + (2 * old + i) * box;
  }
  plan->ticket = tickets + 2 * now;
  plan->old_ticket = tickets + 2 * old;
  plan->old_columns = work->columns;
  work->half = old;
  work->columns = columns == 3 ? 4 : columns > 4 ? 8 : columns;
  return cudaSuccess;
}

cudaError_t solve_some(const hone_sweep *sweep, int sweeps, const Solve &s,
                       int columns) {
  Plan plan = {};
  cudaError_t error = take_half(s, columns, &plan);
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

int64_t hone_cuda_triangle_bytes(int64_t n) {
  // Tickets, and two sets of two mailboxes.
  return (2 + 4 * block_rows(n) * BOX_ROW) *
         static_cast<int64_t>(sizeof(long long));
}

cudaError_t hone_cuda_triangles(const hone_sweep *sweep, int sweeps,
                                const hone_triangles &t,
                                const hone_solve_columns &v,
                                hone_triangle_work *work, cudaStream_t stream) {
  if (t.n <= 0)
    return cudaSuccess;
  for (int64_t done = 0; done < v.k; done += HONE_TRIANGLE_COLUMNS) {
    const int64_t left = v.k - done;
    const int columns = static_cast<int>(
        left < HONE_TRIANGLE_COLUMNS ? left : int64_t(HONE_TRIANGLE_COLUMNS));
    const hone_solve_columns now = {columns, v.from + done * v.ldv,
                                    v.to + done * v.ldv, v.ldv};
    const cudaError_t error =
        solve_some(sweep, sweeps, Solve{t, now, work, stream}, columns);
    if (error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}
