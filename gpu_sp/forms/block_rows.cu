/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes block rows of U and block columns of L by the methods that a caller
   may choose (forms.h), in single precision. F is kept row by row, so cuBLAS
   sees the transpose of every matrix.

   Seeded: X = inv(L11) A12, or A21 inv(U11), is first computed as a product
   with the inverse of the diagonal block, and is then corrected: the defect of
   X times the inverse is added to X. The relative error of the inverse of a
   triangle of order 128 is about its condition number times 2^-24, and each
   correction reduces the error of X by that factor. So one or two corrections
   make X as accurate as substitution would. Whether they did is told by the
   size of the last correction, which is measured on the device, for each row or
   column by itself, so that a small one is not hidden by a large one; NaN and
   Inf count as large. Read next: crout.h for the iterative Crout method,
   diagonal.cu. */
#include "gpu_sp/factor/split_float.h"
#include "gpu_sp/forms/forms.h"

#include "gpu_sp/forms/crout.h"

#include <cfloat>

namespace {

const int CORRECTIONS = 4; /* at most, before a direct solve */

/* A correction smaller than this part of X is the last one: the error that it
   leaves is this part of the correction, or the error of substitution. */
constexpr float SMALL = 0x1p-10F;
/* Tolerance of the iteration of crout.h, relative to the right-hand side. */
const double CROUT_TOLERANCE = 0x1p-24;

enum { THREADS = 256, CROUT_BLOCK = 32, SPLIT_ROWS = 16 };
enum { ONE, MINUS_ONE, ZERO }; /* indices into forms.constants */

/* ---- Kernels ------------------------------------------------------------ */

/* Copies both triangles of a diagonal block of w, completed by the unit matrix.
 */
__global__ void triangles(const float *block, int64_t ld, int w, float *lower,
                          float *upper) {
  const int i = (int)blockIdx.x, j = (int)threadIdx.x, at = i * HONE_PANEL + j;
  const float unit = i == j ? 1.0F : 0.0F;
  const bool in = i < w && j < w;
  const float v = in ? block[i * ld + j] : unit;
  lower[at] = j < i ? v : unit;
  upper[at] = j >= i ? v : 0.0F;
}

/* Writes L11 and the unit matrix side by side; hone_cuda_rows then replaces the
   latter by inv(L11). */
__global__ void l_and_identity(const float *block, int64_t ld, int w,
                               float *out) {
  const int i = (int)blockIdx.x, j = (int)threadIdx.x;
  float *row = out + i * 2 * HONE_PANEL;
  row[j] = j < i && i < w ? block[i * ld + j] : 0.0F;
  row[HONE_PANEL + j] = i == j ? 1.0F : 0.0F;
}

/* Returns the bits of |v|, which are ordered as the magnitudes are; those of
   NaN are the largest. */
__device__ __forceinline__ unsigned magnitude(float v) {
  return __float_as_uint(fabsf(v));
}

/* *changed becomes 1 if the step is not small beside x. */
__device__ __forceinline__ void compare_step(unsigned step, unsigned x,
                                             int *changed) {
  const float e = __uint_as_float(step), to = __uint_as_float(x);
  if (!(e <= SMALL * to && to <= FLT_MAX))
    *changed = 1; /* many threads may write the same */
}

/* X += step, a warp for each row. */
__global__ void __launch_bounds__(THREADS)
    correct_rows(int64_t rows, int w, float *x, int64_t ld, const float *step,
                 int64_t lds, int *changed) {
  const int lane = (int)threadIdx.x % 32;
  const int64_t i =
      (int64_t)blockIdx.x * (THREADS / 32) + (int)threadIdx.x / 32;
  if (i >= rows)
    return;
  unsigned top = 0, top_step = 0;
  for (int j = lane; j < w; j += 32) {
    const float e = step[i * lds + j], v = x[i * ld + j] + e;
    x[i * ld + j] = v;
    top = max(top, magnitude(v));
    top_step = max(top_step, magnitude(e));
  }
  top = __reduce_max_sync(0xffffffffU, top);
  top_step = __reduce_max_sync(0xffffffffU, top_step);
  if (lane == 0)
    compare_step(top_step, top, changed);
}

/* X += step, a thread for each column. */
__global__ void __launch_bounds__(THREADS)
    correct_columns(int64_t cols, int w, float *x, int64_t ld,
                    const float *step, int64_t lds, int *changed) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (j >= cols)
    return;
  unsigned top = 0, top_step = 0;
  for (int i = 0; i < w; i++) {
    const float e = step[i * lds + j], v = x[i * ld + j] + e;
    x[i * ld + j] = v;
    top = max(top, magnitude(v));
    top_step = max(top_step, magnitude(e));
  }
  compare_step(top_step, top, changed);
}

/* Splits finished rows of U: see hone_cuda_rows. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_u(const float *x, int64_t ld, int w, int64_t cols,
            const hone_operand out) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int first = (int)blockIdx.y * SPLIT_ROWS;
  if (j >= cols)
    return;
  const int64_t ldo = out.ldo;
  const float factor = out.scale->u;
  for (int i = first; i < first + SPLIT_ROWS; i++) {
    const two_parts<T> p =
        split<T>(i < w ? x[i * ld + j] * factor : 0.0F, out.overflow);
    typename T::type *to =
        static_cast<typename T::type *>(out.out) + i * ldo + j;
    to[out.place.hh * ldo] = p.hi;
    if (THREE) {
      to[out.place.lo * ldo] = p.lo;
      to[out.place.hi * ldo] = p.hi;
    }
  }
}

/* ---- Launches ----------------------------------------------------------- */

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

template <class T, bool THREE>
cudaError_t launch_split(const hone_cuda *c, const hone_cuda_queue &on,
                         const hone_u_rows &rows, const hone_operand &out) {
  const int64_t cols = rows.c1 - rows.c0;
  const dim3 grid(blocks_of(cols, THREADS), HONE_PANEL / SPLIT_ROWS);
  const float *x = c->f + rows.k * c->ld + rows.c0;
  HONE_LAUNCH((split_u<T, THREE>), grid, THREADS, 0, on.stream, x, c->ld,
              (int)rows.w, cols, out);
  return cudaGetLastError();
}

cudaError_t split_rows(const hone_cuda *c, const hone_cuda_queue &on,
                       const hone_u_rows &rows, const hone_operand &out) {
  if (out.split == HONE_SPLIT_NONE)
    return cudaSuccess;
  auto launch = launch_split<half_type, true>;
  if (out.split == HONE_SPLIT_FP16_1)
    launch = launch_split<half_type, false>;
  else if (out.split == HONE_SPLIT_BF16_3)
    launch = launch_split<bfloat_type, true>;
  else if (out.split == HONE_SPLIT_BF16_1)
    launch = launch_split<bfloat_type, false>;
  return launch(c, on, rows, out);
}

cudaError_t both_triangles(const hone_cuda *c, const hone_cuda_queue &on,
                           int64_t k, int64_t w) {
  HONE_LAUNCH(triangles, HONE_PANEL, HONE_PANEL, 0, on.stream,
              c->f + k * c->ld + k, c->ld, (int)w, on.lower, on.upper);
  return cudaGetLastError();
}

/* ---- A block row or block column ---------------------------------------- */

/* A system T X = B (left: T = L11) or X T = B (T = U11). X overwrites B. */
struct block_solve {
  bool left;
  bool kept;          /* B has been copied to queue.right */
  int64_t k, w;       /* first column and width of the diagonal block */
  int64_t rows, cols; /* of X; one of them is w */
  float *x;           /* in F */
  const float *inverse, *triangle;
  int64_t lds; /* leading dimension of queue.right, .defect and .step */
};

/* The result of a product, out = alpha (...) + beta out, row by row on the
   device. alpha and beta are indices into forms.constants. */
struct update_of {
  int alpha, beta;
  float *out;
  int64_t ldo;
};

/* A matrix on the device, row by row. */
struct rows_of_floats {
  const float *at;
  int64_t ld;
};

/* out = alpha a b + beta out, all row by row; out has the size of X, and the
   inner dimension is the width w of the diagonal block. */
int product(const hone_cuda *c, const hone_cuda_queue &on, const block_solve &s,
            const rows_of_floats &a, const rows_of_floats &b,
            const update_of &u) {
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)s.cols, (int)s.rows, (int)s.w,
      c->forms.constants + u.alpha, b.at, CUDA_R_32F, (int)b.ld, a.at,
      CUDA_R_32F, (int)a.ld, c->forms.constants + u.beta, u.out, CUDA_R_32F,
      (int)u.ldo, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* out = alpha t m + beta out, or alpha m t + beta out where X is on the left.
   t is a triangle, HONE_PANEL x HONE_PANEL. */
int apply(const hone_cuda *c, const hone_cuda_queue &on, const block_solve &s,
          const float *t, const rows_of_floats &m, const update_of &u) {
  const rows_of_floats triangle = {t, HONE_PANEL};
  return s.left ? product(c, on, s, triangle, m, u)
                : product(c, on, s, m, triangle, u);
}

int direct(const hone_cuda *c, const hone_cuda_queue &on,
           const block_solve &s) {
  const float *t = c->f + s.k * c->ld + s.k;
  return CALL(c->blas->trsm(
      on.handle, s.left ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT,
      s.left ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
      s.left ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, (int)s.cols,
      (int)s.rows, c->constants, t, (int)c->ld, s.x, (int)c->ld));
}

int copy(const hone_cuda_queue &on, const block_solve &s, float *to,
         int64_t ldto, const float *from, int64_t ldfrom) {
  return CALL(cudaMemcpy2DAsync(to, (size_t)ldto * sizeof(float), from,
                                (size_t)ldfrom * sizeof(float),
                                (size_t)s.cols * sizeof(float), (size_t)s.rows,
                                cudaMemcpyDeviceToDevice, on.stream));
}

cudaError_t correct(const hone_cuda *c, const hone_cuda_queue &on,
                    const block_solve &s) {
  if (s.left)
    HONE_LAUNCH(correct_columns, blocks_of(s.cols, THREADS), THREADS, 0,
                on.stream, s.cols, (int)s.w, s.x, c->ld, on.step, s.lds,
                on.changed);
  else
    HONE_LAUNCH(correct_rows, blocks_of(s.rows, THREADS / 32), THREADS, 0,
                on.stream, s.rows, (int)s.w, s.x, c->ld, on.step, s.lds,
                on.changed);
  return cudaGetLastError();
}

/* Makes one correction; *changed: it was not small. Waits for it. */
int sweep(const hone_cuda *c, const hone_cuda_queue &on, const block_solve &s,
          bool *changed) {
  int st = copy(on, s, on.defect, s.lds, on.right, s.lds);
  TRY(apply(c, on, s, s.triangle, {s.x, c->ld},
            {MINUS_ONE, ONE, on.defect, s.lds}));
  TRY(apply(c, on, s, s.inverse, {on.defect, s.lds},
            {ONE, ZERO, on.step, s.lds}));
  TRY_CUDA(cudaMemsetAsync(on.changed, 0, sizeof(int), on.stream));
  TRY_CUDA(correct(c, on, s));
  TRY_CUDA(cudaMemcpyAsync(on.seen, on.changed, sizeof(int),
                           cudaMemcpyDeviceToHost, on.stream));
  TRY_CUDA(cudaStreamSynchronize(on.stream));
  *changed = st != HONE_OK || *on.seen != 0;
  return st;
}

void count(hone_cuda *c, int64_t sweeps, bool fallback) {
  hone_account *used = &c->used;
  used->sections++;
  used->sweeps += (int)sweeps;
  if (used->sweeps_max < (int)sweeps)
    used->sweeps_max = (int)sweeps;
  used->fallback += fallback;
}

int seeded(hone_cuda *c, const hone_cuda_queue &on, const block_solve &s) {
  const int chosen = c->choices.trial.corrections;
  const int most = chosen == 0 ? CORRECTIONS : chosen;
  bool changed = true;
  int sweeps = 0;
  int st = CALL(both_triangles(c, on, s.k, s.w));
  if (!s.kept)
    TRY(copy(on, s, on.right, s.lds, s.x, c->ld));
  TRY(apply(c, on, s, s.inverse, {on.right, s.lds}, {ONE, ZERO, s.x, c->ld}));
  for (; st == HONE_OK && changed && sweeps < most; sweeps++)
    st = sweep(c, on, s, &changed);
  count(c, sweeps, changed);
  if (st == HONE_OK && changed) {
    st = copy(on, s, s.x, c->ld, on.right, s.lds);
    TRY(direct(c, on, s));
  }
  return st;
}

/* Solves by the iteration of crout.h, which sees X^T L11^T = B^T. */
int crout(hone_cuda *c, const hone_cuda_queue &on, const block_solve &s) {
  hone_crout_solver how = {};
  int64_t sweeps = 0;
  how.block = CROUT_BLOCK;
  how.tolerance = CROUT_TOLERANCE;
  how.unit = 1;
  how.stream = on.stream;
  how.work = on.right;
  how.seen = on.seen;
  const int st = hone_crout_columns(&how, s.w, s.cols, c->f + s.k * c->ld + s.k,
                                    c->ld, s.x, c->ld, &sweeps);
  if (st != HONE_OK && st != HONE_NOT_CONVERGED)
    return st;
  count(c, sweeps, st != HONE_OK);
  return st == HONE_OK ? st : direct(c, on, s);
}

/* Describes the block column of L below the diagonal block. */
block_solve below(const hone_cuda *c, const hone_cuda_queue &on, int64_t k,
                  int64_t w) {
  block_solve s = {};
  s.kept = true;
  s.k = k;
  s.w = s.cols = w;
  s.rows = c->n - k - w;
  s.x = c->f + (k + w) * c->ld + k;
  s.inverse = c->forms.upper;
  s.triangle = on.upper;
  s.lds = HONE_PANEL;
  return s;
}

} // namespace

int hone_cuda_block_column_begin(hone_cuda *c, const hone_cuda_queue &on,
                                 int64_t k, int64_t w) {
  const block_solve s = below(c, on, k, w);
  return s.rows > 0 ? copy(on, s, on.right, s.lds, s.x, c->ld) : (int)HONE_OK;
}

int hone_cuda_block_column_l(hone_cuda *c, const hone_cuda_queue &on, int64_t k,
                             int64_t w) {
  const block_solve s = below(c, on, k, w);
  return s.rows > 0 ? seeded(c, on, s) : (int)HONE_OK;
}

int hone_cuda_block_row_u(hone_cuda *c, const hone_cuda_queue &on, int index,
                          const hone_u_rows &rows, const hone_operand &to) {
  block_solve s = {};
  if (rows.c1 <= rows.c0)
    return HONE_OK;
  s.left = true;
  s.k = rows.k;
  s.w = s.rows = rows.w;
  s.cols = rows.c1 - rows.c0;
  s.x = c->f + rows.k * c->ld + rows.c0;
  s.inverse = c->forms.inverse + (int64_t)index * HONE_PANEL * HONE_PANEL;
  s.triangle = on.lower;
  s.lds = round_up(s.cols, HONE_CUDA_PADDING);
  int st;
  if (c->choices.sections == HONE_BLOCK_ROWS_SEEDED)
    st = seeded(c, on, s);
  else if (c->choices.sections == HONE_BLOCK_ROWS_CROUT)
    st = crout(c, on, s);
  else
    st = direct(c, on, s);
  TRY_CUDA(split_rows(c, on, rows, to));
  return st;
}

int hone_cuda_block_row_seed(hone_cuda *c, const hone_cuda_queue &on, int index,
                             int64_t k, int64_t w) {
  const int64_t size = HONE_PANEL;
  float *both = c->forms.identity;
  auto put = [&] {
    HONE_LAUNCH(l_and_identity, HONE_PANEL, HONE_PANEL, 0, on.stream,
                c->f + k * c->ld + k, c->ld, (int)w, both);
    return cudaGetLastError();
  };
  const hone_operand none = {HONE_SPLIT_NONE, nullptr, nullptr, 0,
                             {-1, -1, -1},    nullptr};
  int st = CALL(put());
  TRY_CUDA(hone_cuda_rows({both, 2 * size, size}, {0, size, size, 2 * size},
                          none, on.stream));
  TRY_CUDA(cudaMemcpy2DAsync(c->forms.inverse + index * size * size,
                             (size_t)size * sizeof(float), both + size,
                             2 * (size_t)size * sizeof(float),
                             (size_t)size * sizeof(float), (size_t)size,
                             cudaMemcpyDeviceToDevice, on.stream));
  return st;
}
