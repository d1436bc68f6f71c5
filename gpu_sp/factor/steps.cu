/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels between the panels of the blocked LU (lu.cu), in single
   precision: row moves, the triangular solve that computes the pivot rows of U,
   and the splitting of L and U into the 16-bit operands of the trailing update.
   Read next: split_float.h for the splitting of one float, panel.cu for the
   panels. */
#include "gpu_sp/factor/split_float.h"

namespace {

enum { THREADS = 256, STEP = HONE_STEP };

const int64_t MANY_COLUMNS = 12288; /* docs/performance.md */

/* ---- Splitting L --------------------------------------------------------- */

__global__ void set_scale(bool fp16, const unsigned *top,
                          hone_split_scale *scale) {
  const float max = __uint_as_float(*top);
  int e = 0;
  if (fp16 && max > 0.0F && max <= 3.4e38F)
    (void)frexpf(max, &e);
  e = e > 120 ? 120 : (e < -112 ? -112 : e); /* alpha stays normal */
  /* The largest entry of the block column becomes 8, so that U may grow
     4096-fold. */
  scale->l = fp16 ? 1024.0F : 1.0F;
  scale->u = fp16 ? ldexpf(8.0F, -e) : 1.0F;
  scale->alpha = fp16 ? -ldexpf(1.0F / 8192.0F, e) : -1.0F;
}

/* Splits the columns k .. of the rows i0 .. n-1. A thread takes one column of
   several rows; blockIdx.y counts blocks of 128 columns. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_l(const hone_float_matrix a, int64_t i0, int64_t k, int w,
            const hone_operand to) {
  const float *const f = a.f;
  const int64_t ld = a.ld, n = a.n, ldo = to.ldo;
  typename T::type *const out = static_cast<typename T::type *>(to.out);
  int *const overflow = to.overflow;
  hone_split_place place = to.place;
  const int block = (int)blockIdx.y;
  const int c = (int)threadIdx.x % HONE_PANEL;
  k += block * HONE_PANEL;
  w -= block * HONE_PANEL;
  place.lo += block * 2 * HONE_PANEL;
  place.hi += block * 2 * HONE_PANEL;
  place.hh += block * HONE_PANEL;
  const int64_t step = (int64_t)gridDim.x * (THREADS / HONE_PANEL);
  const float factor = to.scale->l;
  for (int64_t i = i0 + (int64_t)blockIdx.x * (THREADS / HONE_PANEL) +
                   (int)threadIdx.x / HONE_PANEL;
       i < n; i += step) {
    float v = 0.0F;
    if (c < w && i > k + c) /* the strictly lower triangle */
      v = f[i * ld + k + c] * factor;
    const two_parts<T> p = split<T>(v, overflow);
    typename T::type *at = out + (i - i0) * ldo + c;
    at[place.hh] = p.hi;
    if (THREE) {
      at[place.lo] = p.hi;
      at[place.hi] = p.lo;
    }
  }
}

/* ---- The pivot rows of U ------------------------------------------------ */

enum {
  ROWS_GROUPS = HONE_PANEL / HONE_STEP, /* warps, 16 rows each */
  ROWS_THREADS = 32 * ROWS_GROUPS,
  ROWS_STRIDE = HONE_PANEL + 4
};

/* A lane has E columns, 32 apart. */
template <int E> struct rows_shared {
  float l[HONE_PANEL][ROWS_STRIDE]; /* L11, column by column; or U11^T, with
                                       the inverse of its diagonal there */
  float x[2][STEP][32 * E];         /* 16 finished rows */
};

/* Where the parts of a row of U go: 'out' is the right operand of products,
   'left' (S = U^T U alone) the left one. */
template <class T> struct rows_out {
  typename T::type *out;
  int64_t ldo;
  typename T::type *left;
  int64_t ldl;
  hone_split_place place;
  int *overflow;
};

template <class T, int PARTS, bool SPD>
__device__ __forceinline__ void put_parts(const rows_out<T> &o, float v, int i,
                                          int64_t at) {
  const two_parts<T> p = split<T>(v, o.overflow);
  typename T::type *to = o.out + i * o.ldo + at;
  to[o.place.hh * o.ldo] = p.hi;
  if (PARTS == 3) {
    to[o.place.lo * o.ldo] = p.lo;
    to[o.place.hi * o.ldo] = p.hi;
  }
  if (SPD) {
    typename T::type *too = o.left + i * o.ldl + at;
    too[o.place.hh * o.ldl] = p.hi;
    if (PARTS == 3) {
      too[o.place.lo * o.ldl] = p.hi;
      too[o.place.hi * o.ldl] = p.lo;
    }
  }
}

/* Loads L11, or U11^T. */
template <bool SPD, int E>
__device__ __forceinline__ void load_triangle(const float *f, int64_t ld,
                                              int64_t k, int w, int tid,
                                              rows_shared<E> *sh) {
#pragma unroll 16
  for (int n = tid; n < HONE_PANEL * HONE_PANEL; n += ROWS_THREADS) {
    const int i = n / HONE_PANEL, j = n % HONE_PANEL;
    if (!SPD)
      sh->l[j][i] = i < w && j < i ? f[(k + i) * ld + k + j] : 0.0F;
    else if (i == j) /* here i is the column */
      sh->l[i][i] = i < w ? 1.0F / f[(k + i) * ld + k + i] : 1.0F;
    else
      sh->l[i][j] = j < w && i < j ? f[(k + i) * ld + k + j] : 0.0F;
  }
}

/* Solves for a warp's own 16 rows, v, the first of which is 'row', and gives
   them to the other warps in x. l: the triangle's columns at these rows. */
template <bool SPD, int E>
__device__ __forceinline__ void
finish_rows(float (&v)[STEP][E], const float (*l)[ROWS_STRIDE], int row,
            int lane, float (*x)[32 * E]) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
#pragma unroll
    for (int e = 0; e < E; e++)
      if (SPD)
        v[p][e] *= l[p][row + p];
#pragma unroll
    for (int q = p + 1; q < STEP; q++)
#pragma unroll
      for (int e = 0; e < E; e++)
        v[q][e] -= l[p][row + q] * v[p][e];
#pragma unroll
    for (int e = 0; e < E; e++)
      x[p][lane + 32 * e] = v[p][e];
  }
}

/* Subtracts multiples of 16 finished rows from a warp's rows, the first of
   which is 'row'. l: the triangle's columns at the finished rows. */
template <int E>
__device__ __forceinline__ void
subtract_rows(float (&v)[STEP][E], const float (*l)[ROWS_STRIDE], int row,
              int lane, const float (*finished)[32 * E]) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    float x[E];
#pragma unroll
    for (int e = 0; e < E; e++)
      x[e] = finished[p][lane + 32 * e];
#pragma unroll
    for (int r = 0; r < STEP; r++)
#pragma unroll
      for (int e = 0; e < E; e++)
        v[r][e] -= l[p][row + r] * x[e];
  }
}

/* U = inv(L11) F, in place. Warp g holds the rows 16 g .. 16 g + 15 of 32 E
   columns in registers. In each step one warp finishes its rows, and the later
   warps subtract multiples of them from their own. The bound is the rate at
   which entries of L11 are read, the same one by all lanes, so a lane takes
   several columns where there are many. SPD: U11^T stands in the place of L11,
   and the left operand of the products is written as well. */
template <class T, int PARTS, bool SPD, int E>
__global__ void __launch_bounds__(ROWS_THREADS)
    solve_rows(float *f, int64_t ld, int64_t k, int w, int64_t c0, int64_t c1,
               const hone_split_scale *scale, rows_out<T> o) {
  HONE_DYNAMIC_SHARED(rows_shared<E>, sh);
  const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 32;
  const int64_t c = c0 + (int64_t)blockIdx.x * (32 * E) + lane;
  float *at = f + (k + group * STEP) * ld + c;
  float v[STEP][E];
#pragma unroll
  for (int r = 0; r < STEP; r++)
#pragma unroll
    for (int e = 0; e < E; e++)
      v[r][e] =
          group * STEP + r < w && c + 32 * e < c1 ? at[r * ld + 32 * e] : 0.0F;
  load_triangle<SPD, E>(f, ld, k, w, tid, sh);
  __syncthreads();
#pragma unroll 1
  for (int step = 0; step < ROWS_GROUPS; step++) {
    const float(*l)[ROWS_STRIDE] = &sh->l[step * STEP];
    if (group == step)
      finish_rows<SPD, E>(v, l, step * STEP, lane, sh->x[step % 2]);
    __syncthreads();
    if (group > step)
      subtract_rows<E>(v, l, group * STEP, lane, sh->x[step % 2]);
  }
  const float factor = PARTS > 0 ? scale->u : 1.0F;
#pragma unroll
  for (int r = 0; r < STEP; r++) {
    const int i = group * STEP + r;
#pragma unroll
    for (int e = 0; e < E; e++) {
      if (c + 32 * e >= c1)
        continue;
      if (i < w)
        at[r * ld + 32 * e] = v[r][e];
      if (PARTS > 0)
        put_parts<T, PARTS, SPD>(o, v[r][e] * factor, i, c - c0 + 32 * e);
    }
  }
}

/* ---- Row moves --------------------------------------------------------- */

enum { MOVE_THREADS = 1024, MOVE_WARPS = MOVE_THREADS / 32 };

/* A thread block takes 32 columns of all rows that move, a warp EACH of those
   rows. */
template <int EACH>
__global__ void __launch_bounds__(MOVE_THREADS)
    move_rows(float *f, int64_t ld, int64_t left, int64_t c0, int64_t c1,
              const int *dst, const int *src, int entries) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int64_t lefts = (left + 31) / 32, b = blockIdx.x;
  const int64_t c = (b < lefts ? b * 32 : c0 + (b - lefts) * 32) + lane;
  const bool in = c < (b < lefts ? left : c1);
  float v[EACH];
  int to[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int i = warp + e * MOVE_WARPS;
    to[e] = in && i < entries ? dst[i] : -1;
    v[e] = to[e] < 0 ? 0.0F : f[(int64_t)src[i] * ld + c];
  }
  __syncthreads(); /* all read before one is overwritten */
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (to[e] >= 0)
      f[(int64_t)to[e] * ld + c] = v[e];
}

/* See hone_cuda_compose. The one thread block applies the panels' moves to map,
   one panel after the other, then enters every row that they name once into the
   composed list, and restores map. */
__global__ void __launch_bounds__(1024)
    compose(const hone_moves *moves, int panels, int *dst, int *src, int *perm,
            int *place, int *map) {
  const int tid = (int)threadIdx.x, entries = 2 * HONE_PANEL;
  const int all = panels * entries;
  for (int p = 0; p < panels; p++) {
    int to = -1, from = 0;
    if (tid < entries) {
      to = moves[p].dst[tid];
      from = to < 0 ? 0 : map[moves[p].src[tid]];
    }
    __syncthreads();
    if (to >= 0)
      map[to] = from;
    __syncthreads();
  }
  for (int e = tid; e < all; e += (int)blockDim.x) {
    const int row = moves[e / entries].dst[e % entries];
    int from = -1;
    if (row >= 0)
      from = atomicExch(&map[row], -1); /* the first thread enters the row */
    dst[e] = from < 0 || from == row ? -1 : row;
    src[e] = from < 0 ? 0 : from;
    src[e + all] = from < 0 ? -1 : row; /* whose map is restored below */
  }
  __syncthreads();
  for (int e = tid; e < all; e += (int)blockDim.x) {
    if (src[e + all] >= 0)
      map[src[e + all]] = src[e + all];
    src[e + all] = perm[src[e]];
  }
  __syncthreads();
  for (int e = tid; e < all; e += (int)blockDim.x)
    if (dst[e] >= 0) {
      perm[dst[e]] = src[e + all];
      place[src[e + all]] = dst[e];
    }
}

/* ---- Growth ------------------------------------------------------------ */

/* The bits of nonnegative floats are ordered as the floats are. A thread block
   takes a row: all of it, or the upper triangle's part. */
__global__ void __launch_bounds__(THREADS)
    largest(int64_t n, bool upper, const float *f, int64_t ld, unsigned *max) {
  const float *row = f + (int64_t)blockIdx.x * ld;
  unsigned top = 0;
  for (int64_t j = (upper ? (int64_t)blockIdx.x : 0) + threadIdx.x; j < n;
       j += THREADS) {
    const float v = fabsf(row[j]);
    const unsigned bits = v <= 3.4e38F ? __float_as_uint(v) : 0x7f800000U;
    top = bits > top ? bits : top;
  }
  top = __reduce_max_sync(0xffffffffU, top);
  if (threadIdx.x % 32 == 0)
    atomicMax(max, top);
}

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

} // namespace

cudaError_t hone_cuda_split_scale(enum hone_split split, const unsigned *top,
                                  hone_split_scale *scale,
                                  cudaStream_t stream) {
  const bool fp16 = split == HONE_SPLIT_FP16_3 || split == HONE_SPLIT_FP16_1;
  HONE_LAUNCH(set_scale, 1, 1, 0, stream, fp16, top, scale);
  return cudaGetLastError();
}

template <class T, bool THREE>
static cudaError_t launch_split(const hone_float_matrix &f, int64_t i0,
                                int64_t k, int64_t w, const hone_operand &to,
                                cudaStream_t stream) {
  unsigned blocks = blocks_of(f.n - i0, THREADS / HONE_PANEL);
  blocks = blocks < 2048 ? blocks : 2048;
  const dim3 grid(blocks, blocks_of(w, HONE_PANEL));
  HONE_LAUNCH((split_l<T, THREE>), grid, THREADS, 0, stream, f, i0, k, (int)w,
              to);
  return cudaGetLastError();
}

cudaError_t hone_cuda_split_l(const hone_float_matrix &f, int64_t i0, int64_t k,
                              int64_t w, const hone_operand &to,
                              cudaStream_t stream) {
  if (to.split == HONE_SPLIT_NONE || i0 >= f.n)
    return cudaSuccess;
  auto launch = launch_split<half_type, true>;
  if (to.split == HONE_SPLIT_FP16_1)
    launch = launch_split<half_type, false>;
  else if (to.split == HONE_SPLIT_BF16_3)
    launch = launch_split<bfloat_type, true>;
  else if (to.split == HONE_SPLIT_BF16_1)
    launch = launch_split<bfloat_type, false>;
  return launch(f, i0, k, w, to, stream);
}

template <class T, int PARTS, bool SPD, int E>
static cudaError_t launch_lanes(const hone_float_matrix &f,
                                const hone_u_rows &rows,
                                const hone_split_scale *scale,
                                const rows_out<T> &o, cudaStream_t stream) {
  const size_t shared = sizeof(rows_shared<E>);
  const auto kernel = solve_rows<T, PARTS, SPD, E>;
  const cudaError_t e = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(kernel, blocks_of(rows.c1 - rows.c0, 32 * E), ROWS_THREADS,
              shared, stream, f.f, f.ld, rows.k, (int)rows.w, rows.c0, rows.c1,
              scale, o);
  return cudaGetLastError();
}

/* With many columns a lane takes several, so long as every multiprocessor has
   some. */
template <class T, int PARTS, bool SPD>
static cudaError_t launch_rows(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  typedef typename T::type number;
  const rows_out<T> o = {static_cast<number *>(to.out),
                         to.ldo,
                         static_cast<number *>(left.out),
                         left.ldo,
                         to.place,
                         to.overflow};
  auto launch = launch_lanes<T, PARTS, SPD, 1>;
  if (rows.c1 - rows.c0 > MANY_COLUMNS)
    launch = launch_lanes<T, PARTS, SPD, 4>;
  return launch(f, rows, to.scale, o, stream);
}

template <bool SPD>
static cudaError_t choose_rows(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  if (rows.c1 <= rows.c0)
    return cudaSuccess;
  auto launch = launch_rows<half_type, 0, SPD>;
  if (to.split == HONE_SPLIT_FP16_3)
    launch = launch_rows<half_type, 3, SPD>;
  else if (to.split == HONE_SPLIT_FP16_1)
    launch = launch_rows<half_type, 1, SPD>;
  else if (to.split == HONE_SPLIT_BF16_3)
    launch = launch_rows<bfloat_type, 3, SPD>;
  else if (to.split == HONE_SPLIT_BF16_1)
    launch = launch_rows<bfloat_type, 1, SPD>;
  return launch(f, rows, to, left, stream);
}

cudaError_t hone_cuda_rows(const hone_float_matrix &f, const hone_u_rows &rows,
                           const hone_operand &to, cudaStream_t stream) {
  return choose_rows<false>(f, rows, to, {nullptr, 0}, stream);
}

cudaError_t hone_cuda_rows_spd(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  return choose_rows<true>(f, rows, to, left, stream);
}

cudaError_t hone_cuda_move(float *f, int64_t ld, int64_t left, int64_t c0,
                           int64_t c1, const hone_move_list &list,
                           cudaStream_t stream) {
  const unsigned blocks =
      blocks_of(left, 32) + (c1 > c0 ? blocks_of(c1 - c0, 32) : 0U);
  if (blocks == 0)
    return cudaSuccess;
  auto kernel = move_rows<8>;
  if (list.entries > 32 * MOVE_WARPS)
    kernel = move_rows<64>;
  else if (list.entries > 16 * MOVE_WARPS)
    kernel = move_rows<32>;
  else if (list.entries > 8 * MOVE_WARPS)
    kernel = move_rows<16>;
  HONE_LAUNCH(kernel, blocks, MOVE_THREADS, 0, stream, f, ld, left, c0, c1,
              list.dst, list.src, list.entries);
  return cudaGetLastError();
}

cudaError_t hone_cuda_compose(const hone_moves *moves, int panels, int *dst,
                              int *src, int *perm, int *place, int *map,
                              cudaStream_t stream) {
  HONE_LAUNCH(compose, 1, 1024, 0, stream, moves, panels, dst, src, perm, place,
              map);
  return cudaGetLastError();
}

cudaError_t hone_cuda_largest_u(int64_t n, const float *f, int64_t ld,
                                unsigned *max, cudaStream_t stream) {
  HONE_LAUNCH(largest, (unsigned)n, THREADS, 0, stream, n, true, f, ld, max);
  return cudaGetLastError();
}

cudaError_t hone_cuda_largest(int64_t n, const float *f, int64_t ld,
                              unsigned *max, cudaStream_t stream) {
  HONE_LAUNCH(largest, (unsigned)n, THREADS, 0, stream, n, false, f, ld, max);
  return cudaGetLastError();
}
