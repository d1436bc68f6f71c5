/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverts the triangles of the diagonal blocks of float factors, in double
   arithmetic, on the device, for the solves of triangles.cu. Read that next. */
#include "gpu_sp/factor/factor.h"
#include "gpu_sp/solve/triangles.h"

namespace {

constexpr int B = HONE_PANEL;
constexpr int SIDE = 16;          /* threads along each side of a block */
constexpr int STRIDES = B / SIDE; /* rows, and columns, of each thread */

#ifdef HONE_COMPLEX

struct wide {
  double re, im;
};

__device__ inline wide wide_of(double v) { return {v, 0.0}; }
__device__ inline wide operator*(const wide &a, const wide &b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* Returns y - t x. */
__device__ inline wide less_product(const wide &y, const hone_single &t,
                                    const wide &x) {
  const double re = static_cast<double>(t.re), im = static_cast<double>(t.im);
  return {fma(im, x.im, fma(-re, x.re, y.re)),
          fma(-im, x.re, fma(-re, x.im, y.im))};
}
/* Returns 1 / v. The square of a float's modulus neither overflows nor vanishes
   in double. */
__device__ inline wide inverse_of(const hone_single &v) {
  const double re = static_cast<double>(v.re), im = static_cast<double>(v.im);
  const double by = 1.0 / (re * re + im * im);
  return {re * by, -im * by};
}
__device__ inline hone_single single_of(float v) { return {v, 0.0F}; }

/* Writes entry (r, c) of block 'out' as a block of real numbers. */
__device__ inline void store(double *out, int r, int c, const wide &v) {
  out += 2 * r + 2 * c * HONE_WIDE;
  out[0] = out[HONE_WIDE + 1] = v.re;
  out[1] = v.im;
  out[HONE_WIDE] = -v.im;
}

#else

typedef double wide;

__device__ inline wide wide_of(double v) { return v; }
__device__ inline wide less_product(double y, float t, double x) {
  return fma(-static_cast<double>(t), x, y);
}
__device__ inline wide inverse_of(float v) {
  return 1.0 / static_cast<double>(v);
}
__device__ inline float single_of(float v) { return v; }

__device__ inline void store(double *out, int r, int c, double v) {
  out[r + c * B] = v;
}

#endif

/* Eliminates with the columns SIDE * A + s, s < SIDE. y[a][b] is entry
   (SIDE * a + tr, SIDE * b + tc) of the inverse; only a >= b is used. */
template <int A>
__device__ inline void eliminate(wide (&y)[STRIDES][STRIDES], int tr, int tc,
                                 const hone_single *tile,
                                 const wide *reciprocal, wide *rows) {
  for (int s = 0; s < SIDE; s++) {
    const int k = SIDE * A + s;
    wide *row = rows + (k & 1) * B;
    if (tr == s) {
      const wide d = reciprocal[k];
#pragma unroll
      for (int b = 0; b <= A; b++) {
        y[A][b] = y[A][b] * d;
        row[SIDE * b + tc] = y[A][b];
      }
    }
    __syncthreads();
    wide x[A + 1];
#pragma unroll
    for (int b = 0; b <= A; b++)
      x[b] = row[SIDE * b + tc];
#pragma unroll
    for (int a = A; a < STRIDES; a++)
      if (a > A || tr > s) {
        const hone_single l = tile[k * B + SIDE * a + tr];
#pragma unroll
        for (int b = 0; b <= A; b++)
          y[a][b] = less_product(y[a][b], l, x[b]);
      }
  }
}

/* blockIdx.x is the diagonal block. blockIdx.y is 0 for the lower triangle and
   1 for the upper one, which is rotated by half a turn to become lower. */
__global__ void __launch_bounds__(SIDE *SIDE, 2)
    invert_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                  double *__restrict__ inv_l, double *__restrict__ inv_u) {
  HONE_DYNAMIC_SHARED(wide, shared);
  wide *rows = shared;               /* 2 x B, two rows of the inverse */
  wide *reciprocal = shared + 2 * B; /* B, of the diagonal */
  hone_single *tile = reinterpret_cast<hone_single *>(shared + 3 * B);
  const int t = static_cast<int>(threadIdx.x);
  const int tr = t % SIDE, tc = t / SIDE;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * B;
  const bool rotated = blockIdx.y == 1;
  const bool unit = rotated; /* L^T, as F is kept row by row */

#pragma unroll 8
  for (int e = t; e < B * B; e += SIDE * SIDE) {
    const int r = e % B, c = e / B;
    if (rotated ? r > c : r < c)
      continue;
    hone_single x = single_of(r == c ? 1.0f : 0.0f);
    if (first + r < n && first + c < n && !(unit && r == c))
      x = *reinterpret_cast<const hone_single *>(f + HONE_PARTS * (first + r) +
                                                 (first + c) * ld);
    tile[rotated ? B * B - 1 - e : e] = x;
    if (r == c)
      reciprocal[rotated ? B - 1 - r : r] = inverse_of(x);
  }

  wide y[STRIDES][STRIDES];
#pragma unroll
  for (int a = 0; a < STRIDES; a++)
#pragma unroll
    for (int b = 0; b < STRIDES; b++)
      y[a][b] = wide_of(a == b && tr == tc ? 1.0 : 0.0);
  __syncthreads();
  eliminate<0>(y, tr, tc, tile, reciprocal, rows);
  eliminate<1>(y, tr, tc, tile, reciprocal, rows);
  eliminate<2>(y, tr, tc, tile, reciprocal, rows);
  eliminate<3>(y, tr, tc, tile, reciprocal, rows);
#ifndef HONE_COMPLEX
  eliminate<4>(y, tr, tc, tile, reciprocal, rows);
  eliminate<5>(y, tr, tc, tile, reciprocal, rows);
  eliminate<6>(y, tr, tc, tile, reciprocal, rows);
  eliminate<7>(y, tr, tc, tile, reciprocal, rows);
#endif

  double *out = (rotated ? inv_u : inv_l) +
                static_cast<int64_t>(blockIdx.x) * HONE_WIDE * HONE_WIDE;
#pragma unroll
  for (int a = 0; a < STRIDES; a++)
#pragma unroll
    for (int b = 0; b < STRIDES; b++) {
      const int r = SIDE * a + tr, c = SIDE * b + tc;
      const bool in = a >= b && r >= c;
      wide v = wide_of(0.0);
      if (in)
        v = y[a][b];
      store(out, rotated ? B - 1 - r : r, rotated ? B - 1 - c : c, v);
    }
}

int64_t block_rows(int64_t n) { return (n + B - 1) / B; }

} // namespace

int64_t hone_cuda_inverse_bytes(int64_t n) {
  return block_rows(n) * HONE_WIDE * HONE_WIDE *
         static_cast<int64_t>(sizeof(double));
}

cudaError_t hone_cuda_invert_blocks(int64_t n, const float *f, int64_t ld,
                                    double *lower, double *upper,
                                    cudaStream_t stream) {
  if (n <= 0)
    return cudaSuccess;
  const int bytes = 3 * B * static_cast<int>(sizeof(wide)) +
                    B * B * static_cast<int>(sizeof(hone_single));
  const cudaError_t error = cudaFuncSetAttribute(
      invert_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess)
    return error;
  const dim3 grid(static_cast<unsigned>(block_rows(n)), upper ? 2 : 1);
  HONE_LAUNCH(invert_kernel, grid, SIDE * SIDE, bytes, stream, n, f, ld, lower,
              upper);
  return cudaGetLastError();
}
