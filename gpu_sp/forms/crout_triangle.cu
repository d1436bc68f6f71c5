/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves X U = B for one triangle inside a blocked LU by Jacobi iteration, in
   single precision on the device. The sweeps are those of the section below a
   diagonal section: see crout.h, and read crout_sweep.h next. */
#include "gpu_sp/forms/crout_sweep.h"

#include <cfloat>
#include <climits>

namespace {

/* Writes the largest magnitude of each row of b, NaN where one is NaN. */
__global__ void row_scales(int64_t rows, int64_t cols, const float *b,
                           int64_t ldb, float *scale) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  float top = 0.0F;
  for (int64_t j = 0; j < cols; j++) {
    const float v = fabsf(b[i + j * ldb]);
    top = v <= top || !(top == top) ? top : v;
  }
  scale[i] = top;
}

/* Exchanges b and w. */
__global__ void exchange(int64_t rows, int64_t cols, float *b, int64_t ldb,
                         float *w) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int64_t j = blockIdx.y; i < rows && j < cols; j += gridDim.y) {
    const float t = b[i + j * ldb];
    b[i + j * ldb] = w[i + j * rows];
    w[i + j * rows] = t;
  }
}

/* The workspace holds B (or, on entry, the guess X), the scales and the flags,
   each padded to a multiple of 64 floats. */
int64_t padded(int64_t floats) { return (floats + 63) / 64 * 64; }

int copy(float *to, int64_t ldto, const float *from, int64_t ldfrom,
         int64_t rows, int64_t cols, cudaStream_t stream) {
  return status_of(cudaMemcpy2DAsync(to, (size_t)ldto * sizeof(float), from,
                                     (size_t)ldfrom * sizeof(float),
                                     (size_t)rows * sizeof(float), (size_t)cols,
                                     cudaMemcpyDeviceToDevice, stream));
}

/* Puts B into s.a, the guess into s.z, and the scales where there is a
   tolerance. */
int begin(const hone_crout_solver *how, const section<float> &s, float *scale,
          cudaStream_t stream) {
  float *work = static_cast<float *>(how->work);
  if (how->tolerance > 0) {
    HONE_LAUNCH(row_scales, lines(s.rows, 1), LINE, 0, stream, s.rows, s.cols,
                (const float *)s.z, s.ldz, scale);
    const int st = launched();
    if (st != HONE_OK)
      return st;
  }
  if (how->guess == HONE_CROUT_FROM_B)
    return copy(work, s.rows, s.z, s.ldz, s.rows, s.cols, stream);
  HONE_LAUNCH(exchange, lines(s.rows, s.cols), LINE, 0, stream, s.rows, s.cols,
              s.z, s.ldz, work);
  return launched();
}

int check(const hone_crout_solver *how, int64_t k, int64_t m, const float *u,
          int64_t ldu, const float *b, int64_t ldb) {
  if (how == nullptr || how->work == nullptr || how->seen == nullptr ||
      u == nullptr || b == nullptr)
    return HONE_NULL_POINTER;
  if (k > HONE_CROUT_WIDTH || m > 65535 * 8)
    return HONE_BAD_SIZE; /* a grid has at most 65535 rows of thread blocks */
  if (ldu < k || ldu > INT_MAX || ldb < m || ldb > INT_MAX)
    return HONE_BAD_LEADING_DIMENSION;
  const hone_crout_solver &o = *how;
  const bool valid =
      (o.block == 0 || o.block == 8 || o.block == 16 || o.block == 32) &&
      (o.guess == HONE_CROUT_FROM_B || o.guess == HONE_CROUT_FROM_X) &&
      o.sweeps_per_read >= 0 && o.sweeps_per_read <= BATCH &&
      o.tolerance >= 0 && o.tolerance <= DBL_MAX && o.max_sweeps >= 0;
  return valid ? HONE_OK : HONE_BAD_OPTION;
}

} // namespace

extern "C" int64_t hone_crout_work_bytes(int64_t k, int64_t m) {
  return (padded(k * m) + padded(m)) * (int64_t)sizeof(float) +
         HONE_CROUT_FLAGS * (int64_t)sizeof(int);
}

extern "C" int hone_crout_columns(const hone_crout_solver *how, int64_t k,
                                  int64_t m, const float *u, int64_t ldu,
                                  float *b, int64_t ldb, int64_t *sweeps) {
  if (sweeps != nullptr)
    *sweeps = 0;
  if (k < 0 || m < 0)
    return HONE_BAD_SIZE;
  if (k == 0 || m == 0)
    return HONE_OK;
  int st = check(how, k, m, u, ldu, b, ldb);
  if (st != HONE_OK)
    return st;
  float *work = static_cast<float *>(how->work);
  float *scale = work + padded(k * m);
  hone_crout_queue on = {};
  on.stream = static_cast<cudaStream_t>(how->stream);
  on.flags = reinterpret_cast<int *>(scale + padded(m));
  on.seen = how->seen;
  task<float> t = {};
  t.on = &on;
  t.bound = how->max_sweeps > 0 ? HONE_MIN(how->max_sweeps, k + 1) : k + 1;
  t.s.kind = how->unit ? UNIT_COLUMNS : COLUMNS;
  t.s.rows = m;
  t.s.cols = k;
  t.s.lower = b;
  t.s.upper = u;
  t.s.ldl = ldb;
  t.s.ldu = ldu;
  t.s.z = b;
  t.s.ldz = ldb;
  t.s.pivot = u;
  t.s.ldp = ldu;
  t.s.a = work;
  t.s.ldw = m;
  t.s.scale = how->tolerance > 0 ? scale : nullptr;
  t.s.tolerance = (float)how->tolerance;
  st = begin(how, t.s, scale, on.stream);
  TRY(converge(how->block ? how->block : 32,
               how->sweeps_per_read ? how->sweeps_per_read : 8, &t, 1));
  if (sweeps != nullptr)
    *sweeps = t.sweeps;
  if (st != HONE_OK || t.at_rest)
    return st;
  st = copy(b, ldb, work, m, m, k, on.stream);
  return st == HONE_OK ? (int)HONE_NOT_CONVERGED : st;
}
