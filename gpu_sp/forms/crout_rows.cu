/* SPDX-License-Identifier: BSD-3-Clause */
/* One triangle of a blocked LU by Jacobi iteration: see crout.h. The sweeps
   are those of the sections right and below of a diagonal section. */
#include "gpu_sp/forms/crout_sweep.h"

#include <cfloat>
#include <climits>

namespace {

/* Largest magnitude of each line of b, NaN where one is NaN. */
__global__ void line_scales(int64_t lines, int64_t step_line, int64_t length,
                            int64_t step, const float *b, float *scale) {
  const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines)
    return;
  float top = 0.0F;
  for (int64_t q = 0; q < length; q++) {
    const float v = fabsf(b[line * step_line + q * step]);
    top = v <= top || !(top == top) ? top : v;
  }
  scale[line] = top;
}

/* b and w change places. */
__global__ void exchange(int64_t rows, int64_t cols, float *b, int64_t ldb,
                         float *w) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int64_t j = blockIdx.y; i < rows && j < cols; j += gridDim.y) {
    const float t = b[i + j * ldb];
    b[i + j * ldb] = w[i + j * rows];
    w[i + j * rows] = t;
  }
}

/* The workspace: B (and X before that), the scales, the flags. */
int64_t padded(int64_t floats) { return (floats + 63) / 64 * 64; }

int copy(float *to, int64_t ldto, const float *from, int64_t ldfrom,
         int64_t rows, int64_t cols, cudaStream_t stream) {
  return of(cudaMemcpy2DAsync(to, (size_t)ldto * sizeof(float), from,
                              (size_t)ldfrom * sizeof(float),
                              (size_t)rows * sizeof(float), (size_t)cols,
                              cudaMemcpyDeviceToDevice, stream));
}

/* B goes to s.a and the guess to s.z; the scales where there is a
   tolerance. */
int begin(const hone_crout_solver *how, const section<float> &s, float *scale,
          cudaStream_t stream) {
  float *work = static_cast<float *>(how->work);
  const bool rows = s.kind == ROWS;
  if (how->tolerance > 0) {
    const int64_t count = rows ? s.cols : s.rows;
    HONE_LAUNCH(line_scales, lines(count, 1), LINE, 0, stream, count,
                rows ? s.ldz : 1, rows ? s.rows : s.cols, rows ? 1 : s.ldz, s.z,
                scale);
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

int check(const hone_crout_solver *how, int64_t k, int64_t m, const float *f,
          int64_t ldf, const float *b, int64_t ldb, int64_t rows) {
  if (how == nullptr || how->work == nullptr || how->seen == nullptr ||
      f == nullptr || b == nullptr)
    return HONE_NULL_POINTER;
  if (k > HONE_CROUT_WIDTH || m > 65535 * 8)
    return HONE_BAD_SIZE; /* a grid has 65535 rows of blocks */
  if (ldf < k || ldf > INT_MAX || ldb < rows || ldb > INT_MAX)
    return HONE_BAD_LEADING_DIMENSION;
  const hone_crout_solver &o = *how;
  const bool valid =
      (o.block == 0 || o.block == 8 || o.block == 16 || o.block == 32) &&
      (o.guess == HONE_CROUT_FROM_B || o.guess == HONE_CROUT_FROM_X) &&
      o.sweeps_per_read >= 0 && o.sweeps_per_read <= BATCH &&
      o.tolerance >= 0 && o.tolerance <= DBL_MAX && o.max_sweeps >= 0;
  return valid ? HONE_OK : HONE_BAD_OPTION;
}

int solve(kind what, const hone_crout_solver *how, int64_t k, int64_t m,
          const float *f, int64_t ldf, float *b, int64_t ldb, int64_t *sweeps) {
  const bool by_rows = what == ROWS;
  const int64_t rows = by_rows ? k : m, cols = by_rows ? m : k;
  if (sweeps != nullptr)
    *sweeps = 0;
  if (k < 0 || m < 0)
    return HONE_BAD_SIZE;
  if (k == 0 || m == 0)
    return HONE_OK;
  int st = check(how, k, m, f, ldf, b, ldb, rows);
  if (st != HONE_OK)
    return st;
  float *work = static_cast<float *>(how->work);
  float *scale = work + padded(k * m);
  hone_crout_lane on = {};
  on.stream = static_cast<cudaStream_t>(how->stream);
  on.flags = reinterpret_cast<int *>(scale + padded(m));
  on.seen = how->seen;
  task<float> t = {};
  t.on = &on;
  t.bound = how->max_sweeps > 0 ? HONE_MIN(how->max_sweeps, k + 1) : k + 1;
  t.s.kind = what;
  t.s.rows = rows;
  t.s.cols = cols;
  t.s.lower = by_rows ? f : b;
  t.s.upper = by_rows ? b : f;
  t.s.ldl = by_rows ? ldf : ldb;
  t.s.ldu = by_rows ? ldb : ldf;
  t.s.z = b;
  t.s.ldz = ldb;
  t.s.pivot = f;
  t.s.ldp = ldf;
  t.s.a = work;
  t.s.ldw = rows;
  t.s.scale = how->tolerance > 0 ? scale : nullptr;
  t.s.tolerance = (float)how->tolerance;
  st = begin(how, t.s, scale, on.stream);
  if (st == HONE_OK)
    st = converge(how->block ? how->block : 32,
                  how->sweeps_per_read ? how->sweeps_per_read : 8, &t, 1);
  if (sweeps != nullptr)
    *sweeps = t.sweeps;
  if (st != HONE_OK || t.rest)
    return st;
  st = copy(b, ldb, work, rows, rows, cols, on.stream);
  return st == HONE_OK ? (int)HONE_NOT_CONVERGED : st;
}

} // namespace

extern "C" int64_t hone_crout_work_bytes(int64_t k, int64_t m) {
  return (padded(k * m) + padded(m)) * (int64_t)sizeof(float) +
         HONE_CROUT_FLAGS * (int64_t)sizeof(int);
}

extern "C" int hone_crout_rows(const hone_crout_solver *how, int64_t k,
                               int64_t m, const float *l, int64_t ldl, float *b,
                               int64_t ldb, int64_t *sweeps) {
  return solve(ROWS, how, k, m, l, ldl, b, ldb, sweeps);
}

extern "C" int hone_crout_columns(const hone_crout_solver *how, int64_t k,
                                  int64_t m, const float *u, int64_t ldu,
                                  float *b, int64_t ldb, int64_t *sweeps) {
  const kind what = how && how->unit ? UNIT_COLUMNS : COLUMNS;
  return solve(what, how, k, m, u, ldu, b, ldb, sweeps);
}
