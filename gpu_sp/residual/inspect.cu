/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest magnitudes and the sums of magnitudes of the rows and columns of
   a scaled matrix, in double precision, on the device.

   One kernel sums columns, another one rows, each sum in one thread block, so
   that the order of the terms is fixed without workspace. A is read twice, but
   a block column that fits into the second-level cache is read from there the
   second time. No atomic operation adds anything. Read next: passes.h,
   residual.cu. */
#include "gpu_sp/residual/passes.h"

#include <cmath>

namespace {

enum {
  INSPECT_COLUMNS = 4, /* columns of a thread block, which reads the scales of
                          rows once for them, */
  MANY_COLUMNS = 1024, /* if there are so many columns; else it takes one */
  ROW_WARPS = 16,      /* warps that share the columns of a tile of rows */
  ROW_LOADS = 8,       /* loads that a thread has under way */
  MANY_ROWS = 8192     /* from so many rows on a thread takes two */
};

/* Where the largest magnitudes and the sums go. */
struct results {
  double *max, *sum;
};

/* Largest magnitude and sum of magnitudes. A NaN counts in the sum alone. */
struct extent {
  double max, sum;
};

__device__ inline void add_extent(double max, double sum, extent *e) {
  e->max = max > e->max ? max : e->max;
  e->sum += sum;
}

/* A modulus is taken of the scaled parts: that of a_ij itself might overflow.
 */
__device__ inline void add_entry(const entry &a, double row, double col,
                                 extent *e) {
  const scale_pair by = scale_pair_of(row, col);
#ifdef HONE_COMPLEX
  const double v =
      modulus(a.x * by.first * by.second, a.y * by.first * by.second);
#else
  const double v = fabs(a * by.first * by.second);
#endif
  add_extent(v, v, e);
}

/* A sum of magnitudes is NaN if and only if one of them is. */
__device__ inline double max_of(const extent &e) {
  return e.sum != e.sum ? HUGE_VAL : e.max;
}

__device__ inline double scale_of(const double *scale, int64_t i) {
  return scale ? scale[i] : 1.0;
}

enum { STRIDE = LOAD_ROWS * THREADS }; /* rows that a thread block loads */

#ifdef HONE_COMPLEX

typedef double scales; /* of the rows of one load */
template <bool PAIRS>
__device__ inline scales scales_of(const double *scale, int64_t i) {
  return scale_of(scale, i);
}
__device__ inline void add_load(const pair &v, scales t, double col,
                                extent *e) {
  add_entry(v, t, col, e);
}

#else

typedef pair scales;
template <bool PAIRS>
__device__ inline scales scales_of(const double *scale, int64_t i) {
  return scale ? load<PAIRS>(scale + i) : pair{1.0, 1.0};
}
__device__ inline void add_load(const pair &v, const scales &t, double col,
                                extent *e) {
  add_entry(v.x, t.x, col, e);
  add_entry(v.y, t.y, col, e);
}

#endif

/* Adds the entries of the load from row i on, and of STEPS - 1 more such loads,
   STRIDE rows apart. */
template <int COLUMNS, int STEPS, bool PAIRS>
__device__ inline void add_loads(const hone_entry *const *column, int64_t i,
                                 const double *__restrict__ row,
                                 const double *c, extent *e) {
  pair v[STEPS][COLUMNS];
  scales t[STEPS];
#pragma unroll
  for (int k = 0; k < STEPS; k++) {
    t[k] = scales_of<PAIRS>(row, i + k * STRIDE);
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      v[k][q] = load<PAIRS>(column[q] + i + k * STRIDE);
  }
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      add_load(v[k][q], t[k], c[q], &e[q]);
}

template <int COLUMNS, bool PAIRS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    inspect_columns(int64_t n, const hone_entry *__restrict__ a, int64_t lda,
                    int64_t j, int64_t end, const double *__restrict__ row,
                    const double *__restrict__ col, results out) {
  constexpr int STEPS = INSPECT_COLUMNS / COLUMNS;
  __shared__ extent part[COLUMNS][WARPS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  j += static_cast<int64_t>(blockIdx.x) * COLUMNS;
  const hone_entry *column[COLUMNS];
  double c[COLUMNS];
  extent e[COLUMNS] = {};
#pragma unroll
  for (int q = 0; q < COLUMNS; q++) { /* beyond the end: the last one again */
    const int64_t jq = j + q < end ? j + q : end - 1;
    column[q] = a + jq * lda;
    c[q] = scale_of(col, jq);
  }
  int64_t i = LOAD_ROWS * static_cast<int64_t>(threadIdx.x);
  for (; i + LOAD_ROWS - 1 + (STEPS - 1) * STRIDE < n; i += STEPS * STRIDE)
    add_loads<COLUMNS, STEPS, PAIRS>(column, i, row, c, e);
  for (; i + LOAD_ROWS - 1 < n; i += STRIDE)
    add_loads<COLUMNS, 1, PAIRS>(column, i, row, c, e);
  if (i < n)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      add_entry(load_entry<PAIRS>(column[q] + i), scale_of(row, i), c[q],
                &e[q]);
#pragma unroll
  for (int d = WARP / 2; d > 0; d /= 2) {
    extent other[COLUMNS];
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      other[q] = e[q];
    hone_exchange<2 * COLUMNS>(reinterpret_cast<double *>(other), d);
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      add_extent(other[q].max, other[q].sum, &e[q]);
  }
#pragma unroll
  for (int q = 0; q < COLUMNS; q++)
    if (lane == 0)
      part[q][warp] = e[q];
  __syncthreads();
  const int q = threadIdx.x;
  if (q >= COLUMNS || j + q >= end)
    return;
  extent s = part[q][0];
  for (int k = 1; k < WARPS; k++)
    add_extent(part[q][k].max, part[q][k].sum, &s);
  out.max[j + q] = max_of(s);
  out.sum[j + q] = s.sum;
}

/* A thread block takes ROWS * WARP rows and all columns j .. end-1; its warps
   take groups of columns in turn. */
template <int ROWS>
__global__ void __launch_bounds__(ROW_WARPS *WARP, 2)
    inspect_rows(int64_t n, const hone_entry *__restrict__ a, int64_t lda,
                 int64_t j, int64_t end, const double *__restrict__ row,
                 const double *__restrict__ col, results out) {
  constexpr int COLUMNS = ROW_LOADS / ROWS, ROW_TILE = ROWS * WARP;
  __shared__ extent part[ROW_WARPS][ROW_TILE];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * ROW_TILE;
  int64_t i[ROWS]; /* beyond the end: the last one again */
  double t[ROWS];
  extent e[ROWS] = {};
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    i[k] = first + lane + k * WARP;
    i[k] = i[k] < n ? i[k] : n - 1;
    t[k] = scale_of(row, i[k]);
  }
  j += warp * COLUMNS;
  a += j * lda;
  for (; j + COLUMNS <= end; j += COLUMNS * ROW_WARPS) {
    entry v[COLUMNS][ROWS];
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
#pragma unroll
      for (int k = 0; k < ROWS; k++)
        v[q][k] = load_entry<false>(a + q * lda + i[k]);
#pragma unroll
    for (int q = 0; q < COLUMNS; q++) {
      const double c = scale_of(col, j + q);
#pragma unroll
      for (int k = 0; k < ROWS; k++)
        add_entry(v[q][k], t[k], c, &e[k]);
    }
    a += COLUMNS * ROW_WARPS * lda;
  }
  for (; j < end; j++, a += lda)
#pragma unroll
    for (int k = 0; k < ROWS; k++)
      add_entry(load_entry<false>(a + i[k]), t[k], scale_of(col, j), &e[k]);
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    part[warp][lane + k * WARP] = e[k];
  __syncthreads();
  const int r = threadIdx.x;
  if (r >= ROW_TILE || first + r >= n)
    return;
  extent s = part[0][r];
  for (int k = 1; k < ROW_WARPS; k++)
    add_extent(part[k][r].max, part[k][r].sum, &s);
  const double max = max_of(s), old = out.max[first + r];
  out.max[first + r] = max > old ? max : old;
  out.sum[first + r] += s.sum;
}

} // namespace

cudaError_t hone_cuda_inspect(const hone_double_columns &a,
                              const hone_device_scaling &scaling,
                              const hone_magnitudes &out, cudaStream_t stream) {
  const int64_t n = a.rows, w = a.w;
  if (w <= 0)
    return cudaSuccess;
  const double *const row = scaling.row, *const col = scaling.col;
  const bool pairs = pairs_aligned(a.a, a.lda) && aligned(row, sizeof(pair));
  const bool many = w >= MANY_COLUMNS, tall = n >= MANY_ROWS;
  auto columns = many    ? pairs ? inspect_columns<INSPECT_COLUMNS, true>
                                 : inspect_columns<INSPECT_COLUMNS, false>
                    : pairs ? inspect_columns<1, true>
                         : inspect_columns<1, false>;
  HONE_LAUNCH(columns, dim3(blocks_of(w, many ? INSPECT_COLUMNS : 1)), THREADS,
              0, stream, n, a.a, a.lda, a.j, a.j + w, row, col,
              results{out.col_max, out.col_sum});
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess)
    return e;
  auto rows = tall ? inspect_rows<2> : inspect_rows<1>;
  HONE_LAUNCH(rows, dim3(blocks_of(n, tall ? 2 * WARP : WARP)),
              ROW_WARPS * WARP, 0, stream, n, a.a, a.lda, a.j, a.j + w, row,
              col, results{out.row_max, out.row_sum});
  return cudaGetLastError();
}
