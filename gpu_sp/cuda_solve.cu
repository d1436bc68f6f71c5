// SPDX-License-Identifier: BSD-3-Clause
// Triangular solves with float factors, in double arithmetic.
//
// A sweep is one launch of one thread block for each block row of HONE_PANEL
// rows. Tickets hand the block rows out in the order of their dependencies,
// so that a block waits only for blocks that already run. Each adds up
// F(i,j) v_j over the finished j, and multiplies by the inverted diagonal
// block: no split of the sum over blocks, no order that scheduling decides.
//
// What counts is the time from one v_j to the next, n / HONE_PANEL times.
// - The finished v_j go through a mailbox whose words are all ones until
//   written: the value is its own flag, and no fence or second trip to memory
//   stands between the blocks.
// - The registers of a tile are loaded anew for the next one as they are used,
//   so each multiprocessor has up to 64 KB on its way, also while it waits.
// - Before the last wait of a block row its tile is already converted to
//   double and its inverted diagonal block is in shared memory, and in
//   registers as far as there are some left.

#include "gpu_sp/cuda_kernels.h"

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

// The v of a block, as its words of the mailbox arrive.
template <int K> struct Inbox {
  static constexpr int WORDS = (K * B + THREADS - 1) / THREADS;
  static constexpr bool ALL = K * B % THREADS == 0; // every thread has WORDS
  long long word[WORDS];
  const volatile long long *from;

  __device__ inline void ask(const long long *box, int64_t block) {
    const int t = static_cast<int>(threadIdx.x);
    from = box + block * (K * B) + t;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      word[w] = ALL || t < K * B ? from[w * THREADS] : 0;
  }
  // far: not the next block row to finish; it leaves the memory to that.
  __device__ inline void wait(double *values, bool far) {
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
        values[t + w * THREADS] = __longlong_as_double(word[w]);
      }
    __syncthreads();
  }
};

template <int K, bool TRANS>
__global__ void __launch_bounds__(THREADS, 1)
    sweep_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                 bool aligned, const double *__restrict__ inv, bool forward,
                 int columns, double *__restrict__ v, int64_t ldv, int *ticket,
                 long long *box) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *sums = shared + Shared<K>::sums;
  double *values = shared + Shared<K>::values;
  double *parts = shared + Shared<K>::parts;
  __shared__ int taken, waits;
  const int t = static_cast<int>(threadIdx.x);
  const int lane = t % 32, warp = t / 32;
  if (t == 0) {
    taken = atomicAdd(ticket, 1) + 1; // it starts at -1
    waits = taken > 0;
  }
  __syncthreads();
  // This block row is number `number` in the order of the sweep.
  const int64_t blocks = static_cast<int64_t>(gridDim.x), number = taken;
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
  for (int e = t; e < K * B; e += THREADS) {
    const int r = e % B, k = e / B;
    const bool in = i * B + r < n && k < columns;
    sums[k * B + turn(r)] = in ? v[i * B + r + k * ldv] : 0.0;
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
    *static_cast<volatile long long *>(box + (i * K + k) * B + r) = bits;
    if (i * B + r < n && k < columns)
      v[i * B + r + k * ldv] = s;
  }
}

__global__ void permute_kernel(int64_t n, const int *__restrict__ perm,
                               bool gather, int64_t k,
                               const double *__restrict__ v, int64_t ldv,
                               double *__restrict__ w, int64_t ldw) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const int64_t p = perm[i], from = gather ? p : i, to = gather ? i : p;
  for (int64_t c = blockIdx.y; c < k; c += gridDim.y)
    w[to + c * ldw] = v[from + c * ldv];
}

int64_t block_rows(int64_t n) { return (n + B - 1) / B; }

template <int K, bool TRANS>
cudaError_t sweep(bool forward, int64_t n, const float *f, int64_t ld,
                  const double *inv, int columns, double *v, int64_t ldv,
                  int *flags, cudaStream_t stream) {
  // Two words: the ticket, and the mailbox after it, all ones.
  int *ticket = flags + (reinterpret_cast<uintptr_t>(flags) % 8 != 0);
  long long *box = reinterpret_cast<long long *>(ticket) + 1;
  const int64_t blocks = block_rows(n);
  const size_t words = static_cast<size_t>(1 + blocks * B * K);
  cudaError_t error =
      cudaMemsetAsync(ticket, 0xff, words * sizeof *box, stream);
  if (error != cudaSuccess)
    return error;
  const int bytes = Shared<K>::size * static_cast<int>(sizeof(double));
  const auto kernel = sweep_kernel<K, TRANS>;
  error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess)
    return error;
  const bool aligned =
      reinterpret_cast<uintptr_t>(f) % sizeof(float2) == 0 && ld % 2 == 0;
  HONE_LAUNCH(kernel, static_cast<unsigned>(blocks), THREADS, bytes, stream, n,
              f, ld, aligned, inv, forward, columns, v, ldv, ticket, box);
  return cudaGetLastError();
}

template <int K>
cudaError_t sweep(enum hone_triangle which, int64_t n, const float *f,
                  int64_t ld, const double *inv, int columns, double *v,
                  int64_t ldv, int *flags, cudaStream_t stream) {
  const bool forward = which == HONE_LOWER || which == HONE_UPPER_TRANS;
  if (which == HONE_LOWER_TRANS || which == HONE_UPPER_TRANS)
    return sweep<K, true>(forward, n, f, ld, inv, columns, v, ldv, flags,
                          stream);
  return sweep<K, false>(forward, n, f, ld, inv, columns, v, ldv, flags,
                         stream);
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

int64_t hone_cuda_triangle_flags(int64_t n) {
  // One to align, two for the ticket's word, two for each of the mailbox.
  return 3 + 2 * block_rows(n) * B * HONE_TRIANGLE_COLUMNS;
}

cudaError_t hone_cuda_triangle(enum hone_triangle which, int64_t n,
                               const float *f, int64_t ld, const double *inv,
                               int64_t k, double *v, int64_t ldv, int *flags,
                               cudaStream_t stream) {
  if (n <= 0)
    return cudaSuccess;
  for (int64_t done = 0; done < k; done += HONE_TRIANGLE_COLUMNS) {
    const int64_t left = k - done;
    const int columns = static_cast<int>(
        left < HONE_TRIANGLE_COLUMNS ? left : int64_t(HONE_TRIANGLE_COLUMNS));
    const auto run = columns == 1   ? sweep<1>
                     : columns == 2 ? sweep<2>
                     : columns <= 4 ? sweep<4>
                                    : sweep<8>;
    const cudaError_t error =
        run(which, n, f, ld, inv, columns, v + done * ldv, ldv, flags, stream);
    if (error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

cudaError_t hone_cuda_permute(int64_t n, const int *perm, bool gather,
                              int64_t k, const double *v, int64_t ldv,
                              double *w, int64_t ldw, cudaStream_t stream) {
  if (n <= 0 || k <= 0)
    return cudaSuccess;
  const int threads = 256;
  const dim3 grid(static_cast<unsigned>((n + threads - 1) / threads),
                  static_cast<unsigned>(k < 1024 ? k : 1024));
  HONE_LAUNCH(permute_kernel, grid, threads, 0, stream, n, perm, gather, k, v,
              ldv, w, ldw);
  return cudaGetLastError();
}
