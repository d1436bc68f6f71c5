/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of an A that lies in the memory of the device, taken there:
   see project.h. It reads the caller's original, not the engine's copy of it,
   and shares neither code, memory nor order with the residuals that it is to
   vouch for (residual/residual.cu): they go through rows and columns upwards,
   it goes down from the end, by other tiles, and adds its parts in that order.
   Weights come from the host and sums go there, through pinned memory.

   Sums along a column: a warp has a column of a part of the rows. Sums along a
   row: a thread has a row of a part of the columns. A sum is a pair in
   double-double and the sum of magnitudes. The bits depend on n alone. */
#include "gpu_sp/feed/project.h"
#include "gpu_sp/launch.h"

namespace {

enum {
  LANES = 32,
  THREADS = 256,
  COLUMNS = THREADS / LANES, /* columns of a thread block */
  LOADS = 8,                 /* loads that a thread has under way */
  PART_ROWS = 4096,          /* of a sum along columns */
  ROW_PARTS = 16             /* of a sum along rows */
};

constexpr unsigned EVERY_LANE = 0xFFFFFFFFU;

/* hi + lo is a sum of products, size that of their magnitudes. */
struct weighed {
  double hi, lo, size;
};

/* The parts of the sums, n entries of one array after the other. */
struct parts {
  double *at;
  int64_t n, count;
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

unsigned blocks_for(int64_t a, int64_t b) {
  return static_cast<unsigned>(divide_up(a, b));
}

/* Adds t to hi; what is lost goes into lo. */
__device__ inline void add_to(double t, weighed *s) {
  const double sum = __dadd_rn(s->hi, t), part = __dsub_rn(sum, s->hi);
  const double lost =
      __dadd_rn(__dsub_rn(s->hi, __dsub_rn(sum, part)), __dsub_rn(t, part));
  s->hi = sum;
  s->lo = __dadd_rn(s->lo, lost);
}

__device__ inline void weigh(double a, double v, weighed *s) {
  const double product = __dmul_rn(a, v);
  add_to(product, s);
  s->lo = __dadd_rn(s->lo, __fma_rn(a, v, -product));
  s->size = __dadd_rn(s->size, fabs(product));
}

__device__ inline void join(const weighed &other, weighed *s) {
  add_to(other.hi, s);
  s->lo = __dadd_rn(s->lo, other.lo);
  s->size = __dadd_rn(s->size, other.size);
}

__device__ inline void put(const parts &to, int64_t part, int64_t i,
                           const weighed &s) {
  double *const at = to.at + 3 * part * to.n + i;
  at[0] = s.hi;
  at[to.n] = s.lo;
  at[2 * to.n] = s.size;
}

/* Part blockIdx.y of the sums along columns: rows from .. end-1. */
__global__ void __launch_bounds__(THREADS)
    weigh_columns(int64_t n, const double *__restrict__ a, int64_t lda,
                  const double *__restrict__ v, parts to) {
  const int lane = static_cast<int>(threadIdx.x) % LANES;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * COLUMNS +
                    static_cast<int>(threadIdx.x) / LANES;
  const int64_t from = static_cast<int64_t>(blockIdx.y) * PART_ROWS;
  const int64_t end = from + PART_ROWS < n ? from + PART_ROWS : n;
  if (j >= n)
    return; /* with all its warp */
  a += j * lda;
  weighed s = {0.0, 0.0, 0.0};
  int64_t i = end - 1 - lane;
  for (; i - (LOADS - 1) * LANES >= from; i -= LOADS * LANES) {
    double entry[LOADS], weight[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
      entry[k] = a[i - k * LANES];
      weight[k] = v[i - k * LANES];
    }
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      weigh(entry[k], weight[k], &s);
  }
  for (; i >= from; i -= LANES)
    weigh(a[i], v[i], &s);
  for (int d = 1; d < LANES; d *= 2) {
    const weighed other = {__shfl_down_sync(EVERY_LANE, s.hi, d),
                           __shfl_down_sync(EVERY_LANE, s.lo, d),
                           __shfl_down_sync(EVERY_LANE, s.size, d)};
    join(other, &s);
  }
  if (lane == 0)
    put(to, blockIdx.y, j, s);
}

/* Part blockIdx.y of the sums along rows: 'width' columns. */
__global__ void __launch_bounds__(THREADS)
    weigh_rows(int64_t n, const double *__restrict__ a, int64_t lda,
               const double *__restrict__ v, int64_t width, parts to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t from = static_cast<int64_t>(blockIdx.y) * width;
  if (i >= n)
    return;
  weighed s = {0.0, 0.0, 0.0};
  int64_t j = (from + width < n ? from + width : n) - 1;
  a += i;
  for (; j - (LOADS - 1) >= from; j -= LOADS) {
    double entry[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      entry[k] = a[(j - k) * lda];
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      weigh(entry[k], v[j - k], &s);
  }
  for (; j >= from; j--)
    weigh(a[j * lda], v[j], &s);
  put(to, blockIdx.y, i, s);
}

/* Adds up the parts, from the last one on; out: three arrays of n doubles in
   pinned memory. */
__global__ void join_parts(parts from, double *out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t n = from.n;
  if (i >= n)
    return;
  weighed s = {0.0, 0.0, 0.0};
  for (int64_t part = from.count - 1; part >= 0; part--) {
    const double *const at = from.at + 3 * part * n + i;
    join({at[0], at[n], at[2 * n]}, &s);
  }
  out[i] = s.hi;
  out[n + i] = s.lo;
  out[2 * n + i] = s.size;
}

int64_t parts_of(int64_t n, bool trans) {
  const int64_t width = divide_up(n, ROW_PARTS);
  return trans ? divide_up(n, width) : divide_up(n, PART_ROWS);
}

} // namespace

int64_t hone_cuda_projection_bytes(int64_t n) {
  const int64_t along_rows = parts_of(n, true), down = parts_of(n, false);
  const int64_t most = along_rows > down ? along_rows : down;
  return n * (1 + 3 * most) * (int64_t)sizeof(double);
}

int hone_cuda_project_there(hone_cuda *c, bool trans) {
  hone_cuda_projection *p = &c->projection;
  const int64_t n = c->n;
  double *const weights = hone_cuda_pinned(c, HONE_CUDA_WEIGHTS);
  double *const v = p->there;
  const parts sums = {v + n, n, parts_of(n, trans)};
  const dim3 grid(trans ? blocks_for(n, THREADS) : blocks_for(n, COLUMNS),
                  static_cast<unsigned>(sums.count));
  p->trans = trans;
  p->taken = p->added = false;
  int st = CALL(cudaMemcpyAsync(v, weights, (size_t)n * sizeof(double),
                                cudaMemcpyHostToDevice, c->feed));
  if (st != HONE_OK)
    return st;
  if (trans)
    HONE_LAUNCH(weigh_rows, grid, THREADS, 0, c->feed, n, c->original,
                c->original_ld, v, divide_up(n, ROW_PARTS), sums);
  else
    HONE_LAUNCH(weigh_columns, grid, THREADS, 0, c->feed, n, c->original,
                c->original_ld, v, sums);
  TRY_CUDA(cudaGetLastError());
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(join_parts, dim3(blocks_for(n, THREADS)), THREADS, 0, c->feed,
              sums, weights + n);
  TRY_CUDA(cudaGetLastError());
  p->taken = st == HONE_OK;
  c->used.to_device += n * (int64_t)sizeof(double);
  c->used.from_device += 3 * n * (int64_t)sizeof(double);
  return st;
}
