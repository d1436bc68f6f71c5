/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels between the panels of the blocked LU (lu.cu), in single
   precision: the triangular solve that computes the pivot rows of U,
   and the splitting of L and U into the 16-bit operands of the trailing update.
   Read next: split_float.h for the splitting of one float, panel.cu for the
   panels. */
#include "gpu_sp/factor/number.h"
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

/* Splits the columns k .. of the rows i0 .. n-1. A thread takes one float of
   several rows; blockIdx.y counts blocks of HONE_PANEL columns. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_l(const hone_float_matrix a, int64_t i0, int64_t k, int w,
            const hone_operand to) {
  const float *const f = a.f;
  const int64_t ld = a.ld, n = a.n, ldo = to.ldo;
  typename T::type *const out = static_cast<typename T::type *>(to.out);
  int *const overflow = to.overflow;
  const int block = (int)blockIdx.y;
  const hone_split_place place = place_behind(to.place, block);
  const int c = (int)threadIdx.x % HONE_WIDE;
  k += block * HONE_PANEL;
  w -= block * HONE_PANEL;
  const int64_t step = (int64_t)gridDim.x * (THREADS / HONE_WIDE);
  const float factor = to.scale->l;
  for (int64_t i = i0 + (int64_t)blockIdx.x * (THREADS / HONE_WIDE) +
                   (int)threadIdx.x / HONE_WIDE;
       i < n; i += step) {
    float v = 0.0F;
    if (c < HONE_PARTS * w && i > k + c / HONE_PARTS) /* strictly lower */
      v = f[i * ld + HONE_PARTS * k + c] * factor;
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
  ROWS_GROUPS = HONE_PANEL / HONE_STEP, /* warps, HONE_STEP rows each */
  ROWS_THREADS = 32 * ROWS_GROUPS,
  ROWS_STRIDE = HONE_PANEL + 4
};

/* A lane has E columns, 32 apart. */
template <int E> struct rows_shared {
  number l[HONE_PANEL][ROWS_STRIDE]; /* L11, column by column; or U11^H, with
                                        the inverse of its diagonal there */
  number x[2][STEP][32 * E];         /* STEP finished rows */
};

#ifdef HONE_COMPLEX

__device__ __forceinline__ number pivot_inverse(number v) {
  return reciprocal(v);
}

#else

__device__ __forceinline__ number pivot_inverse(number v) { return 1.0F / v; }

#endif

/* Writes the parts of entry (i, at) for the operands of products. */
template <class T, int PARTS, bool SPD>
__device__ __forceinline__ void put_parts(const rows_out<T> &o, number v, int i,
                                          int64_t at) {
  put_right<T, PARTS == 3>(o, v, i, at);
  if (SPD)
    put_left<T, PARTS == 3>(o, v, i, at);
}

/* Loads L11, or U11^H. f: the diagonal block. */
template <bool SPD, int E>
__device__ __forceinline__ void load_triangle(const float *f, int64_t ld, int w,
                                              int tid, rows_shared<E> *sh) {
#pragma unroll 16
  for (int n = tid; n < HONE_PANEL * HONE_PANEL; n += ROWS_THREADS) {
    const int i = n / HONE_PANEL, j = n % HONE_PANEL;
    const float *const at = f + i * ld + HONE_PARTS * j;
    const number zero = number_of(0.0F), unit = number_of(1.0F);
    if (!SPD)
      sh->l[j][i] = i < w && j < i ? load_number(at) : zero;
    else if (i == j) /* here i is the column */
      sh->l[i][i] = i < w ? pivot_inverse(load_number(at)) : unit;
    else
      sh->l[i][j] = j < w && i < j ? conjugate(load_number(at)) : zero;
  }
}

/* Solves for a warp's own rows, v, the first of which is 'row', and gives
   them to the other warps in x. l: the triangle's columns at these rows. */
template <bool SPD, int E>
__device__ __forceinline__ void
finish_rows(number (&v)[STEP][E], const number (*l)[ROWS_STRIDE], int row,
            int lane, number (*x)[32 * E]) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
#pragma unroll
    for (int e = 0; e < E; e++)
      if (SPD)
        v[p][e] = v[p][e] * l[p][row + p];
#pragma unroll
    for (int q = p + 1; q < STEP; q++)
#pragma unroll
      for (int e = 0; e < E; e++)
        v[q][e] = less_product(v[q][e], l[p][row + q], v[p][e]);
#pragma unroll
    for (int e = 0; e < E; e++)
      x[p][lane + 32 * e] = v[p][e];
  }
}

/* Subtracts multiples of STEP finished rows from a warp's rows, the first of
   which is 'row'. l: the triangle's columns at the finished rows. */
template <int E>
__device__ __forceinline__ void
subtract_rows(number (&v)[STEP][E], const number (*l)[ROWS_STRIDE], int row,
              int lane, const number (*finished)[32 * E]) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    number x[E];
#pragma unroll
    for (int e = 0; e < E; e++)
      x[e] = finished[p][lane + 32 * e];
#pragma unroll
    for (int r = 0; r < STEP; r++)
#pragma unroll
      for (int e = 0; e < E; e++)
        v[r][e] = less_product(v[r][e], l[p][row + r], x[e]);
  }
}

/* U = inv(L11) F, in place. Warp g holds STEP rows from row STEP g on, of 32 E
   columns, in registers. In each step one warp finishes its rows, and the later
   warps subtract multiples of them from their own. The bound is the rate at
   which entries of L11 are read, the same one by all lanes, so a lane takes
   several columns where there are many. SPD: U11^H stands in the place of L11,
   and the left operand of the products is written as well. */
template <class T, int PARTS, bool SPD, int E>
__global__ void __launch_bounds__(ROWS_THREADS)
    solve_rows(float *f, int64_t ld, int64_t k, int w, int64_t c0, int64_t c1,
               const hone_split_scale *scale, rows_out<T> o) {
  HONE_DYNAMIC_SHARED(rows_shared<E>, sh);
  const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 32;
  const int64_t c = c0 + (int64_t)blockIdx.x * (32 * E) + lane;
  float *at = f + (k + group * STEP) * ld + HONE_PARTS * c;
  number v[STEP][E];
#pragma unroll
  for (int r = 0; r < STEP; r++)
#pragma unroll
    for (int e = 0; e < E; e++)
      v[r][e] = group * STEP + r < w && c + 32 * e < c1
                    ? load_number(at + r * ld + HONE_PARTS * 32 * e)
                    : number_of(0.0F);
  load_triangle<SPD, E>(f + k * ld + HONE_PARTS * k, ld, w, tid, sh);
  __syncthreads();
#pragma unroll 1
  for (int step = 0; step < ROWS_GROUPS; step++) {
    const number(*l)[ROWS_STRIDE] = &sh->l[step * STEP];
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
        store_number(at + r * ld + HONE_PARTS * 32 * e, v[r][e]);
      if (PARTS > 0)
        put_parts<T, PARTS, SPD>(o, times(v[r][e], factor), i, c - c0 + 32 * e);
    }
  }
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
  unsigned blocks = blocks_of(f.n - i0, THREADS / HONE_WIDE);
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
