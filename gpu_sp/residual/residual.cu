/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals in double-double arithmetic on the device. The memory bounds the
   time: A is read in whole sectors, and each thread has four loads of 16 bytes
   (or eight of 8) under way.

   The error of every product and sum is computed and added up too, as in
   cpu_dp/residual_kernels.c (Ogita, Rump & Oishi 2005, Dot2). All sums are
   taken in an order that the sizes alone determine; no atomic operation adds to
   them. Read next: passes.h, inspect.cu.
 */
#include "gpu_sp/residual/many.h"
#include "gpu_sp/residual/sums.h"

extern "C" {
#include "base/engine.h"
}

#include <cfloat>
#include <cmath>

namespace {

enum { MOST_PARTS = 32 }; /* partial sums of a row, where A is not transposed */
/* Plain residuals are made for so many columns at once, and their parts have at
   most so many entries. */
enum { PLAIN_COLUMNS = 64, PLAIN_ENTRIES = 1 << 20 };

__device__ inline sums exchange(const sums &s, int distance) {
  sums other = s;
  hone_exchange<SUMS>(&part_of(other, 0), distance);
  return other;
}

/* Returns for how many columns the parts of plain residuals have room: the
   fewer the longer they are. */
int64_t plain_columns(int64_t n) {
  const int64_t columns = PLAIN_ENTRIES / (HONE_PARTS * n);
  return columns < 1               ? 1
         : columns < PLAIN_COLUMNS ? columns
                                   : (int64_t)PLAIN_COLUMNS;
}

/* ---- Residual, A not transposed ------------------------------------------ */

/* A thread block takes TILE rows and a range of columns. Each of its warps
   takes GROUP columns at a time, in all TILE rows. */
enum { LANE_ROWS = 4 / HONE_PARTS, TILE = LANE_ROWS * WARP, GROUP = 2 };
/* Thread blocks of the kernels below that an SM shall hold: sums of complex
   entries take more registers. */
enum { SUM_BLOCKS = HONE_PARTS > 1 ? BLOCKS - 1 : (int)BLOCKS };

/* Returns the number of columns that a thread block takes. */
int64_t row_part_width(int64_t n) {
  const int64_t step = 2 * GROUP * WARPS;
  return step * divide_up(n, step * MOST_PARTS);
}

/* The lane's rows of a warp's tile: two pairs of real ones, or rows WARP
   apart. */
struct lane_rows {
  int at[LANE_ROWS];
};

template <bool PAIRS> __device__ inline int row_in_tile(int lane, int k) {
  return PAIRS && LOAD_ROWS == 2 ? 2 * lane + k / 2 * (2 * WARP) + k % 2
                                 : lane + k * WARP;
}

/* Rows beyond the end read the last row; they are not stored. */
template <bool PAIRS>
__device__ inline lane_rows rows_of_lane(int lane, int64_t rows) {
  lane_rows l;
  for (int k = 0; k < LANE_ROWS; k++) {
    int at = row_in_tile<PAIRS>(lane, k);
    l.at[k] = at < rows ? at : static_cast<int>(rows - 1);
  }
  return l;
}

template <bool PAIRS>
__device__ inline void load_rows(const hone_entry *a, const lane_rows &l,
                                 entry *v) {
#ifdef HONE_COMPLEX
#pragma unroll
  for (int k = 0; k < LANE_ROWS; k++)
    v[k] = load_entry<PAIRS>(a + l.at[k]);
#else
#pragma unroll
  for (int k = 0; k < LANE_ROWS; k += 2) {
    pair p = PAIRS ? load<true>(a + l.at[k]) : pair{a[l.at[k]], a[l.at[k + 1]]};
    v[k] = p.x;
    v[k + 1] = p.y;
  }
#endif
}

/* Adds the columns from, from + 1, ... of the warp that lie before column 'to',
   for K vectors x, which lie m apart. */
template <bool PAIRS, int K>
__device__ inline void
add_columns(const hone_entry *__restrict__ a, int64_t lda,
            const hone_entry *__restrict__ x, int64_t m, int64_t from,
            int64_t to, const lane_rows &l, sums (*s)[K]) {
  a += from * lda;
  for (; from + GROUP <= to; from += GROUP * WARPS) {
    entry v[GROUP][LANE_ROWS];
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      load_rows<PAIRS>(a + g * lda, l, v[g]);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
#pragma unroll
      for (int c = 0; c < K; c++) {
        const factor by = factor_of(x[from + g + c * m]);
#pragma unroll
        for (int k = 0; k < LANE_ROWS; k++)
          add_product(v[g][k], by, &s[k][c]);
      }
    a += GROUP * WARPS * lda;
  }
  for (; from < to; from++, a += lda) {
    entry v[LANE_ROWS];
    load_rows<PAIRS>(a, l, v);
#pragma unroll
    for (int c = 0; c < K; c++) {
      const factor by = factor_of(x[from + c * m]);
#pragma unroll
      for (int k = 0; k < LANE_ROWS; k++)
        add_product(v[k], by, &s[k][c]);
    }
  }
}

/* Where the sums of a thread block's warps meet. */
typedef double met[SUMS][WARPS][TILE];

template <bool PAIRS, int K>
__device__ inline void put_tile(const sums (*s)[K], int c, met part) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int k = 0; k < LANE_ROWS; k++) {
    const int at = row_in_tile<PAIRS>(lane, k);
#pragma unroll
    for (int q = 0; q < SUMS; q++)
      part[q][warp][at] = part_of(s[k][c], q);
  }
}

__device__ inline sums sums_of_warp(const met part, int warp, int i) {
  sums s;
#pragma unroll
  for (int q = 0; q < SUMS; q++)
    part_of(s, q) = part[q][warp][i];
  return s;
}

__device__ inline sums add_warps(const met part, int i) {
  sums s = sums_of_warp(part, 0, i);
  for (int k = 1; k < WARPS; k++)
    add_sums(sums_of_warp(part, k, i), &s);
  return s;
}

/* The rows from 'row' on that a thread block takes, and the columns from, ...,
   to-1. */
struct tile {
  int64_t row, from, to;
};

/* Adds a tile for K vectors x, and writes the sums of its rows: those of vector
   c to the workspace number c. */
template <bool PAIRS, int K>
__device__ inline void add_tile(int64_t n, int64_t m,
                                const hone_entry *__restrict__ a, int64_t lda,
                                const hone_entry *__restrict__ x, const tile &t,
                                double *work, met part) {
  const int warp = threadIdx.x / WARP, i = threadIdx.x;
  const lane_rows l = rows_of_lane<PAIRS>(threadIdx.x % WARP, n - t.row);
  sums s[LANE_ROWS][K] = {};
  add_columns<PAIRS, K>(a + t.row, lda, x, m, t.from + warp * GROUP, t.to, l,
                        s);
#pragma unroll
  for (int c = 0; c < K; c++) {
    put_tile<PAIRS, K>(s, c, part);
    __syncthreads();
    if (i < TILE && t.row + i < n)
      put_sums(work + c * SUMS * gridDim.y * n, n, gridDim.y, blockIdx.y,
               t.row + i, add_warps(part, i));
    __syncthreads();
  }
}

template <bool PAIRS, int K>
__global__ void __launch_bounds__(THREADS, K > 1 ? 1 : SUM_BLOCKS)
    row_parts(int64_t n, int64_t m, const hone_entry *__restrict__ a,
              int64_t lda, const hone_entry *__restrict__ x, int64_t width,
              double *__restrict__ work) {
  __shared__ met part;
  const int64_t from = blockIdx.y * width;
  const tile t = {static_cast<int64_t>(blockIdx.x) * TILE, from,
                  from + width < m ? from + width : m};
  if (PAIRS && t.row + TILE <= n)
    add_tile<true, K>(n, m, a, lda, x, t, work, part);
  else
    add_tile<false, K>(n, m, a, lda, x, t, work, part);
}

/* ---- Residual, A transposed --------------------------------------------- */

/* A thread block takes a range of rows, whose x it keeps in shared memory, and
   DOTS columns for each warp. */
enum {
  DOTS = 4,
  STEP_ROWS = LOAD_ROWS * WARP, /* of a warp at once */
  LEAST_ROWS = 256, /* of a thread block: the reduction costs as much as two or
                       three steps */
  MOST_ROWS = 2048 / HONE_PARTS,
  DOT_PARTS = 8 /* parts of the rows where MOST_ROWS allows that */
};

/* Returns the number of rows that a thread block takes. */
int64_t dot_part_height(int64_t n) {
  int64_t rows = STEP_ROWS * divide_up(n, STEP_ROWS * DOT_PARTS);
  if (rows < LEAST_ROWS)
    rows = LEAST_ROWS;
  if (rows > MOST_ROWS)
    rows = MOST_ROWS;
  return rows;
}

/* Chooses each member by itself: a choice between addresses would put both sums
   into local memory. */
__device__ inline sums choose(bool first, const sums &s, const sums &t) {
  sums chosen;
#pragma unroll
  for (int k = 0; k < SUMS; k++) {
    const double one = part_of(s, k), other = part_of(t, k);
    part_of(chosen, k) = first ? one : other;
  }
  return chosen;
}

/* Adds up the partial sums that the lanes of a warp have for DOTS columns. The
   first two exchanges also divide the columns among the lanes: lane k returns
   the sum of column k / 8. */
__device__ inline sums reduce_dots(int lane, const sums *s) {
  const bool upper = lane & 16, odd = lane & 8;
  sums two[2];
#pragma unroll
  for (int k = 0; k < 2; k++) {
    two[k] = choose(upper, s[k + 2], s[k]);
    add_sums(exchange(choose(upper, s[k], s[k + 2]), 16), &two[k]);
  }
  sums one = choose(odd, two[1], two[0]);
  add_sums(exchange(choose(odd, two[0], two[1]), 8), &one);
#pragma unroll
  for (int d = 4; d > 0; d /= 2)
    add_sums(exchange(one, d), &one);
  return one;
}

/* The x of a thread block's rows: one vector is kept in shared memory, several
   are read where they are. */
template <int K> struct block_x {
  const loaded_x *staged;
  const hone_entry *x; /* the first of the block's rows */
  int64_t n;
  int rows;
  __device__ loaded_x at(int c, int i) const {
    if (K == 1)
      return staged[i / LOAD_ROWS];
    return x_at(x + c * n, i, rows);
  }
};

template <bool PAIRS, int K>
__device__ inline void add_dots(const block_x<K> &x,
                                const hone_entry *const *column,
                                sums (*s)[DOTS]) {
  int i = LOAD_ROWS * (threadIdx.x % WARP);
  for (; i + LOAD_ROWS - 1 < x.rows; i += STEP_ROWS) {
    pair v[DOTS];
#pragma unroll
    for (int q = 0; q < DOTS; q++)
      v[q] = load<PAIRS>(column[q] + i);
#pragma unroll
    for (int c = 0; c < K; c++) {
      const loaded_x t = x.at(c, i);
#pragma unroll
      for (int q = 0; q < DOTS; q++)
        add_loaded(v[q], t, &s[c][q]);
    }
  }
#ifndef HONE_COMPLEX
  if (i < x.rows)
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
      for (int q = 0; q < DOTS; q++)
        add_product(column[q][i], x.at(c, i).x, &s[c][q]);
#endif
}

template <bool PAIRS, int K>
__global__ void __launch_bounds__(THREADS, K > 1 ? 1 : SUM_BLOCKS)
    dot_parts(int64_t n, int64_t m, const hone_entry *__restrict__ a,
              int64_t lda, const hone_entry *__restrict__ x, int64_t height,
              double *__restrict__ work) {
  __shared__ loaded_x staged[K == 1 ? MOST_ROWS / LOAD_ROWS : 1];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t from = blockIdx.x * height;
  const int rows = static_cast<int>(n - from < height ? n - from : height);
  for (int i = threadIdx.x; K == 1 && LOAD_ROWS * i < rows; i += THREADS)
    staged[i] = x_at(x + from, LOAD_ROWS * i, rows);
  __syncthreads();

  const int64_t j = (static_cast<int64_t>(blockIdx.y) * WARPS + warp) * DOTS;
  const hone_entry *column[DOTS];
  sums s[K][DOTS] = {};
#pragma unroll
  for (int q = 0; q < DOTS; q++) /* beyond the end: the last one again */
    column[q] = a + (j + q < m ? j + q : m - 1) * lda + from;
  add_dots<PAIRS, K>({staged, x + from, n, rows}, column, s);
  const int64_t mine = j + lane / (WARP / DOTS);
#pragma unroll
  for (int c = 0; c < K; c++) {
    const sums sum = reduce_dots(lane, s[c]);
    if (lane % (WARP / DOTS) == 0 && mine < m)
      put_sums(work + c * SUMS * gridDim.x * m, m, gridDim.x, blockIdx.x, mine,
               sum);
  }
}

/* ---- Residual, both cases ----------------------------------------------- */

enum { SUM_THREADS = 64 }; /* a row each; few, so that every SM has some */

/* Adds the parts of each row of the sum to b, in double-double, for the vector
   number blockIdx.y. b, r and den may be in host memory: each entry is read or
   written once. */
__global__ void add_parts(int64_t n, int64_t parts, const double *work,
                          const hone_residual_vectors v) {
  const int64_t i =
      static_cast<int64_t>(blockIdx.x) * SUM_THREADS + threadIdx.x;
  if (i >= n)
    return;
  const int64_t c = blockIdx.y;
  work += c * SUMS * parts * n;
  sums s = v.b ? begin_sums(v.b[i + c * n]) : sums{};
#pragma unroll 8
  for (int64_t part = 0; part < parts; part++)
    add_sums(get_sums(work, n, parts, part, i), &s);
  hone_entry rest;
  const hone_entry r = end_sums(s, &rest);
  v.r[i + c * n] = r;
  v.den[i + c * n] = s.den;
  if (v.copy)
    v.copy[v.place ? v.place[i] : i] = r;
  if (v.rest)
    v.rest[i + c * n] = rest;
}

struct copies {
  hone_copy list[HONE_COPIES]; /* unused entries have no words */
};

__global__ void copy_kernel(const copies all) {
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * SUM_THREADS + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * SUM_THREADS;
#pragma unroll
  for (int c = 0; c < HONE_COPIES; c++)
    for (int64_t i = first; i < all.list[c].words; i += step)
      static_cast<int *>(all.list[c].to)[i] =
          static_cast<const int *>(all.list[c].from)[i];
}

} // namespace

int64_t hone_cuda_residual_bytes(int64_t n, int64_t m) {
  const int64_t rows = n * divide_up(m, row_part_width(m));
  const int64_t dots = m * divide_up(n, dot_part_height(n));
  const int64_t of_block = static_cast<int64_t>(sizeof(sums)) *
                           (rows > dots ? rows : dots) * HONE_RESIDUAL_BLOCK;
  const int64_t of_many = hone_cuda_many_bytes(n, m);
  const int64_t of_plain = HONE_PLAIN_PARTS * n * plain_columns(n) *
                           static_cast<int64_t>(sizeof(hone_entry));
  const int64_t most = of_block > of_many ? of_block : of_many;
  return most > of_plain ? most : of_plain;
}

cudaError_t hone_cuda_copy(const hone_copy *list, int count,
                           cudaStream_t stream) {
  copies all = {};
  int64_t most = 1;
  for (int c = 0; c < count; c++) {
    all.list[c] = list[c];
    most = list[c].words > most ? list[c].words : most;
  }
  HONE_LAUNCH(copy_kernel, dim3(blocks_of(most, SUM_THREADS)), SUM_THREADS, 0,
              stream, all);
  return cudaGetLastError();
}

namespace {

template <int K>
cudaError_t launch_parts(const hone_double_matrix &a, bool trans,
                         const hone_entry *x, int64_t size, int64_t parts,
                         double *part, cudaStream_t stream) {
  const int64_t n = a.n;
  const bool pairs = pairs_aligned(a.a, a.lda);
  if (trans) {
    auto kernel = pairs ? dot_parts<true, K> : dot_parts<false, K>;
    const dim3 grid(static_cast<unsigned>(parts), blocks_of(a.m, DOTS * WARPS));
    HONE_LAUNCH(kernel, grid, THREADS, 0, stream, n, a.m, a.a, a.lda, x, size,
                part);
  } else {
    auto kernel = pairs ? row_parts<true, K> : row_parts<false, K>;
    const dim3 grid(blocks_of(n, TILE), static_cast<unsigned>(parts));
    HONE_LAUNCH(kernel, grid, THREADS, 0, stream, n, a.m, a.a, a.lda, x, size,
                part);
  }
  return cudaGetLastError();
}

/* Makes the residuals of 'count' columns in one read of A; many: those of
   many.cu. */
cudaError_t make_some(const hone_double_matrix &a, bool trans,
                      const hone_residual_vectors &v, int64_t count, bool many,
                      double *part, cudaStream_t stream) {
  const int64_t n = trans ? a.m : a.n; /* entries of r */
  const int64_t size = many    ? hone_cuda_many_width(trans ? a.n : a.m)
                       : trans ? dot_part_height(a.n)
                               : row_part_width(a.m);
  const int64_t parts = divide_up(trans ? a.n : a.m, size);
  const cudaError_t e =
      many        ? hone_cuda_many_parts(a, trans, v.x, count, part, stream)
      : count > 1 ? launch_parts<HONE_RESIDUAL_BLOCK>(a, trans, v.x, size,
                                                      parts, part, stream)
                  : launch_parts<1>(a, trans, v.x, size, parts, part, stream);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(add_parts,
              dim3(blocks_of(n, SUM_THREADS), static_cast<unsigned>(count)),
              SUM_THREADS, 0, stream, n, parts, part, v);
  return cudaGetLastError();
}

/* Returns v of the columns from k on: x has 'in' entries each, and r 'out'. */
hone_residual_vectors vectors_from(const hone_residual_vectors &v, int64_t k,
                                   int64_t in, int64_t out) {
  return {v.x + k * in,
          v.b ? v.b + k * out : nullptr,
          v.r + k * out,
          v.den + k * out,
          v.place,
          v.copy,
          v.rest ? v.rest + k * out : nullptr};
}

} // namespace

cudaError_t hone_cuda_residual(const hone_double_matrix &a, bool trans,
                               const hone_residual_vectors &v, int64_t count,
                               bool rough, void *work, cudaStream_t stream) {
  const int64_t in = trans ? a.n : a.m, out = trans ? a.m : a.n;
  cudaError_t e = cudaSuccess;
  for (int64_t k = 0, now; k < count && e == cudaSuccess; k += now) {
    const int64_t left = count - k;
    const bool many = rough && hone_cuda_many_serves(a, left);
    now = many
              ? (left < HONE_RESIDUAL_MANY ? left : (int64_t)HONE_RESIDUAL_MANY)
          : left >= HONE_RESIDUAL_BLOCK ? (int64_t)HONE_RESIDUAL_BLOCK
                                        : 1;
    e = make_some(a, trans, vectors_from(v, k, in, out), now, many,
                  static_cast<double *>(work), stream);
  }
  return e;
}
