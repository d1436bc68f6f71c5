/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over A in double: residual, inspection. All are bound by
   the memory: A is read in whole sectors, and each thread has four loads of
   16 bytes (or eight of 8) under way.

   The residual adds every product without error, as cpu_dp/residual_kernels.c
   does (Ogita, Rump & Oishi 2005, Dot2). All sums are taken in an order given
   by the sizes alone; nothing is added to by atomic operations but counts. */
#include "gpu_sp/kernels.h"

#include <cfloat>
#include <cmath>

namespace {

enum {
  WARP = 32,
  THREADS = 256,
  WARPS = THREADS / WARP,
  BLOCKS = 4,     /* that an SM shall hold at once */
  MOST_PARTS = 32 /* partial sums of a row, not transposed */
};

constexpr unsigned ALL = 0xFFFFFFFFU;

/* Two doubles loaded at once. */
struct alignas(16) pair {
  double x, y;
};

struct alignas(8) float_pair {
  float x, y;
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

unsigned blocks_of(int64_t a, int64_t b) {
  return static_cast<unsigned>(divide_up(a, b));
}

bool aligned(const void *p, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

/* Columns start at multiples of 16 bytes. */
bool pairs_aligned(const double *a, int64_t lda) {
  return aligned(a, sizeof(pair)) && lda % 2 == 0;
}

template <bool PAIRS> __device__ inline pair load(const double *p) {
  return PAIRS ? *reinterpret_cast<const pair *>(p) : pair{p[0], p[1]};
}

/* hi + lo, lo gathered apart, and the sum of magnitudes. Written with the
   intrinsics that the compiler does not contract. */
struct sums {
  double hi, lo, den;
};

/* s.hi + p with its error. */
__device__ inline double two_sum(double hi, double p, double *error) {
  double t = __dadd_rn(hi, p);
  double z = __dsub_rn(t, hi);
  *error = __dadd_rn(__dsub_rn(hi, __dsub_rn(t, z)), __dsub_rn(p, z));
  return t;
}

/* s -= a x. */
__device__ inline void add_product(double a, double x, sums *s) {
  double f, p = __dmul_rn(a, -x), e = __fma_rn(a, -x, -p);
  s->hi = two_sum(s->hi, p, &f);
  s->lo = __dadd_rn(s->lo, __dadd_rn(e, f));
  s->den = __fma_rn(fabs(a), fabs(x), s->den);
}

__device__ inline void add_sums(const sums &t, sums *s) {
  double f;
  s->hi = two_sum(s->hi, t.hi, &f);
  s->lo = __dadd_rn(s->lo, __dadd_rn(t.lo, f));
  s->den = __dadd_rn(s->den, t.den);
}

__device__ inline sums exchange(const sums &s, int distance) {
  return {__shfl_xor_sync(ALL, s.hi, distance),
          __shfl_xor_sync(ALL, s.lo, distance),
          __shfl_xor_sync(ALL, s.den, distance)};
}

/* Workspace: hi of every part (n each), then lo, then den. */
__device__ inline void put_sums(double *work, int64_t n, int64_t parts,
                                int64_t part, int64_t i, const sums &s) {
  work[part * n + i] = s.hi;
  work[(parts + part) * n + i] = s.lo;
  work[(2 * parts + part) * n + i] = s.den;
}

__device__ inline sums get_sums(const double *work, int64_t n, int64_t parts,
                                int64_t part, int64_t i) {
  return {work[part * n + i], work[(parts + part) * n + i],
          work[(2 * parts + part) * n + i]};
}

/* ---- Residual, not transposed ------------------------------------------ */

/* A block takes TILE rows and a range of columns; each of its warps takes
   GROUP columns in turn, all TILE rows of them. */
enum { LANE_ROWS = 4, TILE = LANE_ROWS * WARP, GROUP = 2 };

/* Columns of a block. */
int64_t row_part_width(int64_t n) {
  const int64_t step = 2 * GROUP * WARPS;
  return step * divide_up(n, step * MOST_PARTS);
}

/* The lane's rows of a warp's tile: two pairs, or rows WARP apart. */
struct lane_rows {
  int at[LANE_ROWS];
};

/* Rows beyond the end read the last one; they are not stored. */
template <bool PAIRS>
__device__ inline lane_rows rows_of_lane(int lane, int64_t rows) {
  lane_rows l;
  for (int k = 0; k < LANE_ROWS; k++) {
    int at = PAIRS ? 2 * lane + k / 2 * (2 * WARP) + k % 2 : lane + k * WARP;
    l.at[k] = at < rows ? at : static_cast<int>(rows - 1);
  }
  return l;
}

template <bool PAIRS>
__device__ inline void load_rows(const double *a, const lane_rows &l,
                                 double *v) {
#pragma unroll
  for (int k = 0; k < LANE_ROWS; k += 2) {
    pair p = PAIRS ? load<true>(a + l.at[k]) : pair{a[l.at[k]], a[l.at[k + 1]]};
    v[k] = p.x;
    v[k + 1] = p.y;
  }
}

/* Columns from, from + 1, ... of the warp, which end before column to. */
template <bool PAIRS>
__device__ inline void add_columns(const double *__restrict__ a, int64_t lda,
                                   const double *__restrict__ x, int64_t from,
                                   int64_t to, const lane_rows &l, sums *s) {
  a += from * lda;
  for (; from + GROUP <= to; from += GROUP * WARPS) {
    double v[GROUP][LANE_ROWS];
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      load_rows<PAIRS>(a + g * lda, l, v[g]);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
#pragma unroll
      for (int k = 0; k < LANE_ROWS; k++)
        add_product(v[g][k], x[from + g], &s[k]);
    a += GROUP * WARPS * lda;
  }
  for (; from < to; from++, a += lda) {
    double v[LANE_ROWS];
    load_rows<PAIRS>(a, l, v);
#pragma unroll
    for (int k = 0; k < LANE_ROWS; k++)
      add_product(v[k], x[from], &s[k]);
  }
}

template <bool PAIRS>
__device__ inline void add_tile(const double *__restrict__ a, int64_t lda,
                                const double *__restrict__ x, int64_t from,
                                int64_t to, int64_t rows,
                                double (*part)[WARPS][TILE]) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const lane_rows l = rows_of_lane<PAIRS>(lane, rows);
  sums s[LANE_ROWS] = {};
  add_columns<PAIRS>(a, lda, x, from + warp * GROUP, to, l, s);
  for (int k = 0; k < LANE_ROWS; k++) {
    int at = PAIRS ? l.at[k] : lane + k * WARP;
    part[0][warp][at] = s[k].hi;
    part[1][warp][at] = s[k].lo;
    part[2][warp][at] = s[k].den;
  }
}

template <bool PAIRS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    row_parts(int64_t n, const double *__restrict__ a, int64_t lda,
              const double *__restrict__ x, int64_t width,
              double *__restrict__ work) {
  __shared__ double part[3][WARPS][TILE];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * TILE;
  const int64_t from = blockIdx.y * width;
  const int64_t to = from + width < n ? from + width : n;
  if (PAIRS && row + TILE <= n)
    add_tile<true>(a + row, lda, x, from, to, n - row, part);
  else
    add_tile<false>(a + row, lda, x, from, to, n - row, part);
  __syncthreads();
  const int i = threadIdx.x;
  if (i >= TILE || row + i >= n)
    return;
  sums s = {part[0][0][i], part[1][0][i], part[2][0][i]};
  for (int k = 1; k < WARPS; k++)
    add_sums({part[0][k][i], part[1][k][i], part[2][k][i]}, &s);
  put_sums(work, n, gridDim.y, blockIdx.y, row + i, s);
}

/* ---- Residual, transposed ---------------------------------------------- */

/* A block takes a range of rows, of which x is kept in shared memory, of
   DOTS columns for each warp. */
enum {
  DOTS = 4,
  STEP_ROWS = 2 * WARP, /* of a warp at once */
  LEAST_ROWS = 256,     /* of a block: the reduction costs two or three steps */
  MOST_ROWS = 2048,
  DOT_PARTS = 8 /* where MOST_ROWS allow it */
};

/* Rows of a block. */
int64_t dot_part_height(int64_t n) {
  int64_t rows = STEP_ROWS * divide_up(n, STEP_ROWS * DOT_PARTS);
  if (rows < LEAST_ROWS)
    rows = LEAST_ROWS;
  if (rows > MOST_ROWS)
    rows = MOST_ROWS;
  return rows;
}

/* By parts: a choice of addresses would put both into local memory. */
__device__ inline sums choose(bool first, const sums &s, const sums &t) {
  return {first ? s.hi : t.hi, first ? s.lo : t.lo, first ? s.den : t.den};
}

/* Sums of DOTS columns over the lanes of a warp: the first two exchanges
   share the columns out. Lane k gets column k / 8, the same for all 8. */
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

template <bool PAIRS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    dot_parts(int64_t n, const double *__restrict__ a, int64_t lda,
              const double *__restrict__ x, int64_t height,
              double *__restrict__ work) {
  __shared__ pair staged[MOST_ROWS / 2];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t from = blockIdx.x * height;
  const int rows = static_cast<int>(n - from < height ? n - from : height);
  for (int i = threadIdx.x; 2 * i < rows; i += THREADS)
    staged[i] = {x[from + 2 * i], 2 * i + 1 < rows ? x[from + 2 * i + 1] : 0.0};
  __syncthreads();

  const int64_t j = (static_cast<int64_t>(blockIdx.y) * WARPS + warp) * DOTS;
  const double *column[DOTS];
  sums s[DOTS] = {};
#pragma unroll
  for (int q = 0; q < DOTS; q++) /* the last one again beyond the end */
    column[q] = a + (j + q < n ? j + q : n - 1) * lda + from;
  int i = 2 * lane;
  for (; i + 1 < rows; i += STEP_ROWS) {
    pair v[DOTS], t = staged[i / 2];
#pragma unroll
    for (int q = 0; q < DOTS; q++)
      v[q] = load<PAIRS>(column[q] + i);
#pragma unroll
    for (int q = 0; q < DOTS; q++) {
      add_product(v[q].x, t.x, &s[q]);
      add_product(v[q].y, t.y, &s[q]);
    }
  }
  if (i < rows)
#pragma unroll
    for (int q = 0; q < DOTS; q++)
      add_product(column[q][i], staged[i / 2].x, &s[q]);
  const sums sum = reduce_dots(lane, s);
  const int64_t mine = j + lane / (WARP / DOTS);
  if (lane % (WARP / DOTS) == 0 && mine < n)
    put_sums(work, n, gridDim.x, blockIdx.x, mine, sum);
}

/* ---- Residual, both ----------------------------------------------------- */

enum { SUM_THREADS = 64 }; /* a row each; few, so that all SMs have some */

/* b, r, den: also of the host, each entry read or written once. */
__global__ void add_parts(int64_t n, int64_t parts, const double *work,
                          const double *b, double *r, double *den,
                          const int *place, double *again) {
  const int64_t i =
      static_cast<int64_t>(blockIdx.x) * SUM_THREADS + threadIdx.x;
  if (i >= n)
    return;
  sums s = {b[i], 0.0, fabs(b[i])};
#pragma unroll 8
  for (int64_t part = 0; part < parts; part++)
    add_sums(get_sums(work, n, parts, part, i), &s);
  const double rest = __dadd_rn(s.hi, s.lo);
  r[i] = rest;
  den[i] = s.den;
  if (again)
    again[place ? place[i] : i] = rest;
}

struct copies {
  hone_copy list[HONE_COPIES]; /* those not used have no words */
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

int64_t hone_cuda_residual_bytes(int64_t n) {
  const int64_t rows = divide_up(n, row_part_width(n));
  const int64_t dots = divide_up(n, dot_part_height(n));
  return static_cast<int64_t>(sizeof(sums)) * n * (rows > dots ? rows : dots);
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

cudaError_t hone_cuda_residual(int64_t n, const double *a, int64_t lda,
                               bool trans, const double *x, const double *b,
                               double *r, double *den, const int *place,
                               double *again, void *work, cudaStream_t stream) {
  const bool pairs = pairs_aligned(a, lda);
  const int64_t size = trans ? dot_part_height(n) : row_part_width(n);
  const int64_t parts = divide_up(n, size);
  double *const part = static_cast<double *>(work);
  if (trans) {
    auto kernel = pairs ? dot_parts<true> : dot_parts<false>;
    const dim3 grid(static_cast<unsigned>(parts), blocks_of(n, DOTS * WARPS));
    HONE_LAUNCH(kernel, grid, THREADS, 0, stream, n, a, lda, x, size, part);
  } else {
    auto kernel = pairs ? row_parts<true> : row_parts<false>;
    const dim3 grid(blocks_of(n, TILE), static_cast<unsigned>(parts));
    HONE_LAUNCH(kernel, grid, THREADS, 0, stream, n, a, lda, x, size, part);
  }
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(add_parts, dim3(blocks_of(n, SUM_THREADS)), SUM_THREADS, 0,
              stream, n, parts, part, b, r, den, place, again);
  return cudaGetLastError();
}

/* ---- Inspection ---------------------------------------------------------- */

/* Columns and rows apart, each with its sums in one block: the order is
   fixed without workspace. A is read twice, but a block column that fits the
   second-level cache comes from there the second time. */
namespace {

enum {
  INSPECT_COLUMNS = 4, /* of a block: the row scales are read that seldom */
  MANY_COLUMNS = 1024, /* enough for that */
  ROW_WARPS = 16,      /* that share the columns of a tile of rows */
  ROW_LOADS = 8,       /* of a thread at once */
  MANY_ROWS = 8192     /* enough for two rows a thread */
};

/* Largest magnitude and sum of magnitudes. A NaN is in the sum alone. */
struct extent {
  double max, sum;
};

__device__ inline void add_extent(double max, double sum, extent *e) {
  e->max = max > e->max ? max : e->max;
  e->sum += sum;
}

__device__ inline void add_entry(double a, double row, double col, extent *e) {
  const double v = fabs(a * row * col);
  add_extent(v, v, e);
}

/* A sum of magnitudes is NaN where one of them is, and never else. */
__device__ inline double max_of(const extent &e) {
  return e.sum != e.sum ? HUGE_VAL : e.max;
}

__device__ inline double scale_of(const double *scale, int64_t i) {
  return scale ? scale[i] : 1.0;
}

template <bool PAIRS>
__device__ inline pair scales_of(const double *scale, int64_t i) {
  return scale ? load<PAIRS>(scale + i) : pair{1.0, 1.0};
}

/* Rows i, i + 1 and STEPS - 1 more such pairs, 2 * THREADS apart. */
template <int COLUMNS, int STEPS, bool PAIRS>
__device__ inline void add_pairs(const double *const *column, int64_t i,
                                 const double *__restrict__ row,
                                 const double *c, extent *e) {
  pair v[STEPS][COLUMNS], t[STEPS];
#pragma unroll
  for (int k = 0; k < STEPS; k++) {
    t[k] = scales_of<PAIRS>(row, i + k * 2 * THREADS);
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      v[k][q] = load<PAIRS>(column[q] + i + k * 2 * THREADS);
  }
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++) {
      add_entry(v[k][q].x, t[k].x, c[q], &e[q]);
      add_entry(v[k][q].y, t[k].y, c[q], &e[q]);
    }
}

template <int COLUMNS, bool PAIRS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    inspect_columns(int64_t n, const double *__restrict__ a, int64_t lda,
                    int64_t j, int64_t end, const double *__restrict__ row,
                    const double *__restrict__ col, double *col_max,
                    double *col_sum) {
  constexpr int STEPS = INSPECT_COLUMNS / COLUMNS;
  __shared__ extent part[COLUMNS][WARPS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  j += static_cast<int64_t>(blockIdx.x) * COLUMNS;
  const double *column[COLUMNS];
  double c[COLUMNS];
  extent e[COLUMNS] = {};
#pragma unroll
  for (int q = 0; q < COLUMNS; q++) { /* the last one again beyond the end */
    const int64_t jq = j + q < end ? j + q : end - 1;
    column[q] = a + jq * lda;
    c[q] = scale_of(col, jq);
  }
  int64_t i = 2 * static_cast<int64_t>(threadIdx.x);
  for (; i + 1 + (STEPS - 1) * 2 * THREADS < n; i += STEPS * 2 * THREADS)
    add_pairs<COLUMNS, STEPS, PAIRS>(column, i, row, c, e);
  for (; i + 1 < n; i += 2 * THREADS)
    add_pairs<COLUMNS, 1, PAIRS>(column, i, row, c, e);
  if (i < n)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
      add_entry(column[q][i], scale_of(row, i), c[q], &e[q]);
#pragma unroll
  for (int q = 0; q < COLUMNS; q++) {
    for (int d = WARP / 2; d > 0; d /= 2) {
      const double max = __shfl_xor_sync(ALL, e[q].max, d);
      const double sum = __shfl_xor_sync(ALL, e[q].sum, d);
      add_extent(max, sum, &e[q]);
    }
    if (lane == 0)
      part[q][warp] = e[q];
  }
  __syncthreads();
  const int q = threadIdx.x;
  if (q >= COLUMNS || j + q >= end)
    return;
  extent s = part[q][0];
  for (int k = 1; k < WARPS; k++)
    add_extent(part[q][k].max, part[q][k].sum, &s);
  col_max[j + q] = max_of(s);
  col_sum[j + q] = s.sum;
}

/* A block takes ROWS * WARP rows and all columns j .. end-1; its warps take
   groups of columns in turn. */
template <int ROWS>
__global__ void __launch_bounds__(ROW_WARPS *WARP, 2)
    inspect_rows(int64_t n, const double *__restrict__ a, int64_t lda,
                 int64_t j, int64_t end, const double *__restrict__ row,
                 const double *__restrict__ col, double *row_max,
                 double *row_sum) {
  constexpr int COLUMNS = ROW_LOADS / ROWS, ROW_TILE = ROWS * WARP;
  __shared__ extent part[ROW_WARPS][ROW_TILE];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * ROW_TILE;
  int64_t i[ROWS]; /* the last one again beyond the end */
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
    double v[COLUMNS][ROWS];
#pragma unroll
    for (int q = 0; q < COLUMNS; q++)
#pragma unroll
      for (int k = 0; k < ROWS; k++)
        v[q][k] = a[q * lda + i[k]];
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
      add_entry(a[i[k]], t[k], scale_of(col, j), &e[k]);
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
  const double max = max_of(s), old = row_max[first + r];
  row_max[first + r] = max > old ? max : old;
  row_sum[first + r] += s.sum;
}

} // namespace

cudaError_t hone_cuda_inspect(int64_t n, const double *a, int64_t lda,
                              int64_t j, int64_t w, const double *row,
                              const double *col, double *row_max,
                              double *row_sum, double *col_max, double *col_sum,
                              cudaStream_t stream) {
  if (w <= 0)
    return cudaSuccess;
  const bool pairs = pairs_aligned(a, lda) && aligned(row, sizeof(pair));
  const bool many = w >= MANY_COLUMNS, tall = n >= MANY_ROWS;
  auto columns = many    ? pairs ? inspect_columns<INSPECT_COLUMNS, true>
                                 : inspect_columns<INSPECT_COLUMNS, false>
                    : pairs ? inspect_columns<1, true>
                         : inspect_columns<1, false>;
  HONE_LAUNCH(columns, dim3(blocks_of(w, many ? INSPECT_COLUMNS : 1)), THREADS,
              0, stream, n, a, lda, j, j + w, row, col, col_max, col_sum);
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess)
    return e;
  auto rows = tall ? inspect_rows<2> : inspect_rows<1>;
  HONE_LAUNCH(rows, dim3(blocks_of(n, tall ? 2 * WARP : WARP)),
              ROW_WARPS * WARP, 0, stream, n, a, lda, j, j + w, row, col,
              row_max, row_sum);
  return cudaGetLastError();
}
