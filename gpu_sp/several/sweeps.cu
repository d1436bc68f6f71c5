/* SPDX-License-Identifier: BSD-3-Clause */
/* See sweeps.h. Vectors are taken GROUP at a time, a group by each row of
   thread blocks; all sums are taken in an order that the sizes alone determine.
 */
#include "gpu_sp/several/sweeps.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/factor.h"

namespace {

enum {
  WARP = 32,
  GROUP = 4,
  MOST = 512,          /* rows of a panel */
  SOLVE_THREADS = 512, /* of the one thread block that solves for a panel */
  SOLVE_WARPS = SOLVE_THREADS / WARP,
  ROW_THREADS = 256,
  ROWS_EACH = 4, /* rows of a warp */
  COLUMN_THREADS = 128,
  B = HONE_PANEL
};

/* Adds each sum over the lanes of the warp; then every lane has it. */
__device__ __forceinline__ void add_lanes(hone_entry (&sum)[GROUP]) {
  hone_warp_sums<GROUP * HONE_PARTS>(reinterpret_cast<double *>(sum));
}

/* The vectors of a group, of which there may be fewer than GROUP. */
struct group {
  int first, count;
};
__device__ __forceinline__ group group_of(int k) {
  const int first = (int)blockIdx.y * GROUP, left = k - first;
  return {first, left < GROUP ? left : (int)GROUP};
}

/* ---- The diagonal block of a panel --------------------------------------- */

struct solve_shared {
  hone_entry v[GROUP][MOST]; /* right-hand sides, which become solutions */
  hone_entry x[GROUP][B];    /* the solution of the present block */
};

/* Entry (i, j) of an inverse is number i + j HONE_WIDE: a complex one is kept
   as a block of real numbers (solve/triangles.h), whose first column are its
   parts. */
__device__ __forceinline__ const hone_entry *
column_of(const hone_entry *inverse, int j) {
  return inverse + (int64_t)j * HONE_WIDE;
}

/* x = inv(T) v for the rows b .. b+rows-1. inverse: that of T^T, column-major;
   a warp takes a row, which lies in one piece. */
__device__ __forceinline__ void block_by_rows(const hone_entry *inverse, int b,
                                              int rows, solve_shared *sh) {
  const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
  for (int i = warp; i < rows; i += SOLVE_WARPS) {
    hone_entry sum[GROUP] = {};
    for (int j = lane; j < rows; j += WARP) {
      const hone_entry e = column_of(inverse, i)[j];
#pragma unroll
      for (int g = 0; g < GROUP; g++)
        sum[g] = plus_product(sum[g], e, sh->v[g][b + j]);
    }
    add_lanes(sum);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      if (lane == 0)
        sh->x[g][i] = sum[g];
  }
}

/* Does the same where 'inverse' is that of T itself: a thread takes a row of
   one vector. */
__device__ __forceinline__ void
block_by_columns(const hone_entry *inverse, int b, int rows, solve_shared *sh) {
  static_assert(SOLVE_THREADS == GROUP * 128 && B <= 128, "a thread each");
  const int g = (int)threadIdx.x / 128, i = (int)threadIdx.x % 128;
  hone_entry sum = zero_entry();
  if (i >= rows)
    return;
#pragma unroll 8
  for (int j = 0; j < rows; j++)
    sum = plus_product(sum, column_of(inverse, j)[i], sh->v[g][b + j]);
  sh->x[g][i] = sum;
}

/* v -= T[to .. end-1, b .. b+rows-1] x, T = F: a warp takes a row. */
__device__ __forceinline__ void subtract_by_rows(const hone_panel_columns &p,
                                                 int b, int rows, int to,
                                                 int end, solve_shared *sh) {
  const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
  for (int i = to + warp; i < end; i += SOLVE_WARPS) {
    const float *const row = p.f + (p.k + i) * p.ld + HONE_PARTS * b;
    hone_entry sum[GROUP] = {};
    for (int j = lane; j < rows; j += WARP) {
      const hone_entry e = widened(row + HONE_PARTS * j);
#pragma unroll
      for (int g = 0; g < GROUP; g++)
        sum[g] = plus_product(sum[g], e, sh->x[g][j]);
    }
    add_lanes(sum);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      if (lane == 0)
        sh->v[g][i] = sh->v[g][i] - sum[g];
  }
}

/* Does the same for T = F^T: a thread takes a column of F. */
__device__ __forceinline__ void subtract_by_columns(const hone_panel_columns &p,
                                                    int b, int rows, int to,
                                                    int end, solve_shared *sh) {
  const int i = to + (int)threadIdx.x;
  if (i >= end)
    return;
  hone_entry sum[GROUP] = {};
#pragma unroll 8
  for (int j = 0; j < rows; j++) {
    const hone_entry e = widened(p.f + (p.k + b + j) * p.ld + HONE_PARTS * i);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      sum[g] = plus_product(sum[g], e, sh->x[g][j]);
  }
#pragma unroll
  for (int g = 0; g < GROUP; g++)
    sh->v[g][i] = sh->v[g][i] - sum[g];
}

__global__ void __launch_bounds__(SOLVE_THREADS)
    solve_panel(const hone_panel_columns p, const hone_panel_solve s) {
  __shared__ solve_shared sh;
  const int t = (int)threadIdx.x, w = (int)p.w, blocks = (w + B - 1) / B;
  const group of = group_of(s.k);
  const bool down = s.kind == HONE_SWEEP_L || s.kind == HONE_SWEEP_UT;
  const bool trans = s.kind == HONE_SWEEP_UT || s.kind == HONE_SWEEP_LT;
  for (int g = 0; g < GROUP; g++)
    for (int i = t; i < w; i += SOLVE_THREADS) {
      const int64_t at = (int64_t)(of.first + g) * w + i;
      hone_entry v = zero_entry();
      if (g < of.count) {
        hone_entry sum = s.sums[at];
        for (int e = 0; e < s.sources; e++)
          sum = sum + s.gather[e * s.apart + at];
        v = s.x[at] - sum;
      }
      sh.v[g][i] = v;
    }
  __syncthreads();
  for (int step = 0; step < blocks; step++) {
    const int b = B * (down ? step : blocks - 1 - step);
    const int rows = w - b < B ? w - b : (int)B;
    const hone_entry *inverse =
        reinterpret_cast<const hone_entry *>(s.inverse) +
        (int64_t)b * HONE_WIDE;
    if (trans)
      block_by_columns(inverse, b, rows, &sh);
    else
      block_by_rows(inverse, b, rows, &sh);
    __syncthreads();
    const int to = down ? b + rows : 0, end = down ? w : b;
    if (trans)
      subtract_by_columns(p, b, rows, to, end, &sh);
    else
      subtract_by_rows(p, b, rows, to, end, &sh);
    for (int n = t; n < GROUP * rows; n += SOLVE_THREADS)
      sh.v[n / rows][b + n % rows] = sh.x[n / rows][n % rows];
    __syncthreads();
  }
  for (int g = 0; g < of.count; g++)
    for (int i = t; i < w; i += SOLVE_THREADS)
      s.x[(int64_t)(of.first + g) * w + i] = sh.v[g][i];
}

/* ---- Products with a panel ----------------------------------------------- */

/* Loads the group's vectors of the panel; zeros stand for those that it has
   not. */
__device__ __forceinline__ void
load_x(const hone_entry *x, int w, const group &of, hone_entry (*to)[MOST]) {
  for (int g = 0; g < GROUP; g++)
    for (int i = (int)threadIdx.x; i < w; i += (int)blockDim.x)
      to[g][i] =
          g < of.count ? x[(int64_t)(of.first + g) * w + i] : zero_entry();
  __syncthreads();
}

/* Returns where entry i of vector 0 lies, and *apart, how far the next
   vector's is. */
__device__ __forceinline__ int64_t place(const hone_panel_product &p, int64_t i,
                                         int64_t *apart) {
  const int64_t start = i / p.nb * p.nb, left = p.n - start;
  *apart = left < p.nb ? left : p.nb;
  return p.k * start + i - start;
}

__global__ void __launch_bounds__(ROW_THREADS)
    add_rows(const hone_panel_columns panel, const hone_panel_product p,
             int64_t r0, int64_t r1) {
  __shared__ hone_entry x[GROUP][MOST];
  const int lane = (int)threadIdx.x % WARP, w = (int)panel.w;
  const group of = group_of(p.k);
  load_x(p.x, w, of, x);
  int64_t r = r0 + ((int64_t)blockIdx.x * (ROW_THREADS / WARP) +
                    (int)threadIdx.x / WARP) *
                       ROWS_EACH;
  for (int e = 0; e < ROWS_EACH && r < r1; e++, r++) {
    const float *const row = panel.f + r * panel.ld;
    hone_entry sum[GROUP] = {};
#pragma unroll 8
    for (int j = lane; j < w; j += WARP) {
      const hone_entry f = widened(row + HONE_PARTS * j);
#pragma unroll
      for (int g = 0; g < GROUP; g++)
        sum[g] = plus_product(sum[g], f, x[g][j]);
    }
    int64_t apart;
    hone_entry *const to = p.sums + place(p, r, &apart);
    add_lanes(sum);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      if (lane == 0 && g < of.count)
        to[(of.first + g) * apart] = to[(of.first + g) * apart] + sum[g];
  }
}

__global__ void __launch_bounds__(COLUMN_THREADS)
    add_columns(const hone_panel_columns rows, const hone_panel_product p,
                const hone_dealt deal, int64_t c0, int64_t c1) {
  __shared__ hone_entry x[GROUP][MOST];
  const group of = group_of(p.k);
  const int w = (int)rows.w;
  const int64_t j = c0 + (int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
  load_x(p.x, w, of, x);
  if (j >= c1)
    return;
  const float *at = rows.f + rows.k * rows.ld + HONE_PARTS * j;
  hone_entry sum[GROUP] = {};
#pragma unroll 16
  for (int i = 0; i < w; i++) {
    const hone_entry f = widened(at + i * rows.ld);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      sum[g] = plus_product(sum[g], f, x[g][i]);
  }
  const int64_t column = (j / p.nb * deal.of + deal.first) * p.nb + j % p.nb;
  int64_t apart;
  hone_entry *const to = p.sums + place(p, column, &apart);
#pragma unroll
  for (int g = 0; g < GROUP; g++)
    if (g < of.count)
      to[(of.first + g) * apart] = to[(of.first + g) * apart] + sum[g];
}

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

} // namespace

cudaError_t hone_several_solve_panel(const hone_panel_columns &panel,
                                     const hone_panel_solve &solve,
                                     cudaStream_t stream) {
  const dim3 grid(1, blocks_of(solve.k, GROUP));
  HONE_LAUNCH(solve_panel, grid, SOLVE_THREADS, 0, stream, panel, solve);
  return cudaGetLastError();
}

cudaError_t hone_several_add_rows(const hone_panel_columns &panel,
                                  const hone_panel_product &product, int64_t r0,
                                  int64_t r1, cudaStream_t stream) {
  if (r0 >= r1)
    return cudaSuccess;
  const dim3 grid(blocks_of(r1 - r0, ROW_THREADS / WARP * ROWS_EACH),
                  blocks_of(product.k, GROUP));
  HONE_LAUNCH(add_rows, grid, ROW_THREADS, 0, stream, panel, product, r0, r1);
  return cudaGetLastError();
}

cudaError_t hone_several_add_columns(const hone_panel_columns &rows,
                                     const hone_panel_product &product,
                                     const hone_dealt &deal, int64_t c0,
                                     int64_t c1, cudaStream_t stream) {
  if (c0 >= c1)
    return cudaSuccess;
  const dim3 grid(blocks_of(c1 - c0, COLUMN_THREADS),
                  blocks_of(product.k, GROUP));
  HONE_LAUNCH(add_columns, grid, COLUMN_THREADS, 0, stream, rows, product, deal,
              c0, c1);
  return cudaGetLastError();
}
