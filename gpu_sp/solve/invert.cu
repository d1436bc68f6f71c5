/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverts the triangles of the diagonal blocks of float factors, in double
   arithmetic, on the device, for the solves of triangles.cu. Read that next. */
#include "gpu_sp/factor/factor.h"
#include "gpu_sp/solve/triangles.h"

namespace {

constexpr int B = HONE_PANEL;
constexpr int SIDE = 16;          /* threads along each side of a block */
constexpr int STRIDES = B / SIDE; /* rows, and columns, of each thread */

/* Eliminates with the columns SIDE * A + s, s < SIDE. y[a][b] is entry
   (SIDE * a + tr, SIDE * b + tc) of the inverse; only a >= b is used. */
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

/* blockIdx.x is the diagonal block. blockIdx.y is 0 for the lower triangle and
   1 for the upper one, which is rotated by half a turn to become lower. */
__global__ void __launch_bounds__(SIDE *SIDE, 2)
    invert_kernel(int64_t n, const float *__restrict__ f, int64_t ld,
                  double *__restrict__ inv_l, double *__restrict__ inv_u) {
  HONE_DYNAMIC_SHARED(double, shared);
  double *rows = shared;               /* 2 x B, two rows of the inverse */
  double *reciprocal = shared + 2 * B; /* B, of the diagonal */
  float *tile = reinterpret_cast<float *>(shared + 3 * B);
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
    float x = r == c ? 1.0f : 0.0f;
    if (first + r < n && first + c < n && !(unit && r == c))
      x = f[first + r + (first + c) * ld];
    tile[rotated ? B * B - 1 - e : e] = x;
    if (r == c)
      reciprocal[rotated ? B - 1 - r : r] = 1.0 / static_cast<double>(x);
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

  double *out = (rotated ? inv_u : inv_l) + first * B;
#pragma unroll
  for (int a = 0; a < STRIDES; a++)
#pragma unroll
    for (int b = 0; b < STRIDES; b++) {
      const int r = SIDE * a + tr, c = SIDE * b + tc, e = r + c * B;
      out[rotated ? B * B - 1 - e : e] = a >= b && r >= c ? y[a][b] : 0.0;
    }
}

int64_t block_rows(int64_t n) { return (n + B - 1) / B; }

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
