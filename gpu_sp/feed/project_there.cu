/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of an A that lies in the memory of the device, taken there:
   see project.h. It reads the caller's original, not the engine's copy of it if
   there is one, and shares neither code nor order with the residuals that it is
   to vouch for (residual/residual.cu): they go through rows and columns
   upwards, it goes down from the end, by other tiles, and adds its parts in
   that order. Weights come from the host and sums go there, through pinned
   memory.

   Sums along a column: a warp has a column of a part of the rows. Sums along a
   row: a thread has a row of a part of the columns. A sum is a pair in
   double-double and the sum of magnitudes; complex entries have a pair for each
   part, because weights are real, and moduli. The bits depend on n alone. */
#include "gpu_sp/feed/project.h"
#include "gpu_sp/launch.h"

#include <cmath>

namespace {

enum {
  LANES = 32,
  THREADS = 256,
  COLUMNS = THREADS / LANES, /* columns of a thread block */
  LOADS = 8,                 /* loads that a thread has under way */
  PART_ROWS = 4096,          /* of a sum along columns */
  ROW_PARTS = 16,            /* of a sum along rows */
  WORDS = 2 * HONE_PARTS + 1 /* doubles of a sum */
};

constexpr unsigned EVERY_LANE = 0xFFFFFFFFU;

/* hi + lo is a sum of products, size that of their magnitudes. */
struct weighed {
  double hi[HONE_PARTS], lo[HONE_PARTS], size;
};

/* The parts of the sums: of each part WORDS arrays of n doubles. */
struct parts {
  double *at;
  int64_t n, count;
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

unsigned blocks_for(int64_t a, int64_t b) {
  return static_cast<unsigned>(divide_up(a, b));
}

/* Adds t to *hi; what is lost goes into *lo. */
__device__ inline void add_to(double t, double *hi, double *lo) {
  const double sum = __dadd_rn(*hi, t), part = __dsub_rn(sum, *hi);
  const double lost =
      __dadd_rn(__dsub_rn(*hi, __dsub_rn(sum, part)), __dsub_rn(t, part));
  *hi = sum;
  *lo = __dadd_rn(*lo, lost);
}

/* Adds a v to *hi + *lo. */
__device__ inline void add_product(double a, double v, double *hi, double *lo) {
  const double product = __dmul_rn(a, v);
  add_to(product, hi, lo);
  *lo = __dadd_rn(*lo, __fma_rn(a, v, -product));
}

#ifdef HONE_COMPLEX

/* An entry that is loaded at once, where its address allows that. */
struct alignas(16) whole_entry {
  double re, im;
};
template <bool WHOLE> __device__ inline whole_entry load(const hone_entry *p) {
  return WHOLE ? *reinterpret_cast<const whole_entry *>(p)
               : whole_entry{p->re, p->im};
}
__device__ inline double weight_of(const hone_entry &v) { return v.re; }
__device__ inline void weigh(const whole_entry &a, double v, weighed *s) {
  add_product(a.re, v, &s->hi[0], &s->lo[0]);
  add_product(a.im, v, &s->hi[1], &s->lo[1]);
  s->size = __fma_rn(hypot(a.re, a.im), fabs(v), s->size);
}

#else

typedef double whole_entry;
template <bool WHOLE> __device__ inline double load(const double *p) {
  return *p;
}
__device__ inline double weight_of(double v) { return v; }
__device__ inline void weigh(double a, double v, weighed *s) {
  add_product(a, v, s->hi, s->lo);
  s->size = __dadd_rn(s->size, fabs(__dmul_rn(a, v)));
}

#endif

__device__ inline void join(const weighed &other, weighed *s) {
#pragma unroll
  for (int k = 0; k < HONE_PARTS; k++) {
    add_to(other.hi[k], &s->hi[k], &s->lo[k]);
    s->lo[k] = __dadd_rn(s->lo[k], other.lo[k]);
  }
  s->size = __dadd_rn(s->size, other.size);
}

/* Returns the sum of the lane that is d lanes behind. */
__device__ inline weighed of_lane_behind(const weighed &s, int d) {
  weighed other;
#pragma unroll
  for (int k = 0; k < HONE_PARTS; k++) {
    other.hi[k] = __shfl_down_sync(EVERY_LANE, s.hi[k], d);
    other.lo[k] = __shfl_down_sync(EVERY_LANE, s.lo[k], d);
  }
  other.size = __shfl_down_sync(EVERY_LANE, s.size, d);
  return other;
}

__device__ inline void put(const parts &to, int64_t part, int64_t i,
                           const weighed &s) {
  double *const at = to.at + WORDS * part * to.n + i;
#pragma unroll
  for (int k = 0; k < HONE_PARTS; k++) {
    at[2 * k * to.n] = s.hi[k];
    at[(2 * k + 1) * to.n] = s.lo[k];
  }
  at[2 * HONE_PARTS * to.n] = s.size;
}

__device__ inline weighed get(const parts &from, int64_t part, int64_t i) {
  const double *const at = from.at + WORDS * part * from.n + i;
  weighed s;
#pragma unroll
  for (int k = 0; k < HONE_PARTS; k++) {
    s.hi[k] = at[2 * k * from.n];
    s.lo[k] = at[(2 * k + 1) * from.n];
  }
  s.size = at[2 * HONE_PARTS * from.n];
  return s;
}

/* Part blockIdx.y of the sums along columns: rows from .. end-1. */
template <bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    weigh_columns(int64_t n, const hone_entry *__restrict__ a, int64_t lda,
                  const hone_entry *__restrict__ v, parts to) {
  const int lane = static_cast<int>(threadIdx.x) % LANES;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * COLUMNS +
                    static_cast<int>(threadIdx.x) / LANES;
  const int64_t from = static_cast<int64_t>(blockIdx.y) * PART_ROWS;
  const int64_t end = from + PART_ROWS < n ? from + PART_ROWS : n;
  if (j >= n)
    return; /* with all its warp */
  a += j * lda;
  weighed s = {};
  int64_t i = end - 1 - lane;
  for (; i - (LOADS - 1) * LANES >= from; i -= LOADS * LANES) {
    whole_entry entry[LOADS];
    double weight[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
      entry[k] = load<WHOLE>(a + i - k * LANES);
      weight[k] = weight_of(v[i - k * LANES]);
    }
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      weigh(entry[k], weight[k], &s);
  }
  for (; i >= from; i -= LANES)
    weigh(load<WHOLE>(a + i), weight_of(v[i]), &s);
  for (int d = 1; d < LANES; d *= 2)
    join(of_lane_behind(s, d), &s);
  if (lane == 0)
    put(to, blockIdx.y, j, s);
}

/* Part blockIdx.y of the sums along rows: 'width' columns. */
template <bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    weigh_rows(int64_t n, const hone_entry *__restrict__ a, int64_t lda,
               const hone_entry *__restrict__ v, int64_t width, parts to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t from = static_cast<int64_t>(blockIdx.y) * width;
  if (i >= n)
    return;
  weighed s = {};
  int64_t j = (from + width < n ? from + width : n) - 1;
  a += i;
  for (; j - (LOADS - 1) >= from; j -= LOADS) {
    whole_entry entry[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      entry[k] = load<WHOLE>(a + (j - k) * lda);
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      weigh(entry[k], weight_of(v[j - k]), &s);
  }
  for (; j >= from; j--)
    weigh(load<WHOLE>(a + j * lda), weight_of(v[j]), &s);
  put(to, blockIdx.y, i, s);
}

/* Adds up the parts, from the last one on; out, in pinned memory: n entries of
   high parts, n of low ones, and n doubles. */
__global__ void join_parts(parts from, double *out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t n = from.n;
  if (i >= n)
    return;
  weighed s = {};
  for (int64_t part = from.count - 1; part >= 0; part--)
    join(get(from, part, i), &s);
#pragma unroll
  for (int k = 0; k < HONE_PARTS; k++) {
    out[HONE_PARTS * i + k] = s.hi[k];
    out[HONE_PARTS * (n + i) + k] = s.lo[k];
  }
  out[2 * HONE_PARTS * n + i] = s.size;
}

int64_t parts_of(int64_t n, bool trans) {
  const int64_t width = divide_up(n, ROW_PARTS);
  return trans ? divide_up(n, width) : divide_up(n, PART_ROWS);
}

} // namespace

int64_t hone_cuda_projection_bytes(int64_t n) {
  const int64_t along_rows = parts_of(n, true), down = parts_of(n, false);
  const int64_t most = along_rows > down ? along_rows : down;
  return n * (HONE_PARTS + WORDS * most) * (int64_t)sizeof(double);
}

namespace {

template <bool WHOLE>
void weigh_all(const hone_cuda *c, bool trans, const hone_entry *v,
               const parts &sums) {
  const int64_t n = c->n;
  const dim3 grid(trans ? blocks_for(n, THREADS) : blocks_for(n, COLUMNS),
                  static_cast<unsigned>(sums.count));
  if (trans)
    HONE_LAUNCH(weigh_rows<WHOLE>, grid, THREADS, 0, c->feed, n, c->original,
                c->original_ld, v, divide_up(n, ROW_PARTS), sums);
  else
    HONE_LAUNCH(weigh_columns<WHOLE>, grid, THREADS, 0, c->feed, n, c->original,
                c->original_ld, v, sums);
}

} // namespace

int hone_cuda_project_there(hone_cuda *c, bool trans) {
  hone_cuda_projection *p = &c->projection;
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(hone_entry);
  double *const weights = hone_cuda_pinned(c, HONE_CUDA_WEIGHTS);
  const hone_entry *const v = reinterpret_cast<hone_entry *>(p->there);
  const parts sums = {p->there + HONE_PARTS * n, n, parts_of(n, trans)};
  const bool whole =
      reinterpret_cast<uintptr_t>(c->original) % sizeof(hone_entry) == 0;
  p->trans = trans;
  p->taken = p->added = false;
  int st = CALL(cudaMemcpyAsync(p->there, weights, bytes,
                                cudaMemcpyHostToDevice, c->feed));
  if (st != HONE_OK)
    return st;
  whole ? weigh_all<true>(c, trans, v, sums)
        : weigh_all<false>(c, trans, v, sums);
  TRY_CUDA(cudaGetLastError());
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(join_parts, dim3(blocks_for(n, THREADS)), THREADS, 0, c->feed,
              sums, weights + HONE_PARTS * n);
  TRY_CUDA(cudaGetLastError());
  p->taken = st == HONE_OK;
  c->used.to_device += (int64_t)bytes;
  c->used.from_device += WORDS * n * (int64_t)sizeof(double);
  return st;
}
