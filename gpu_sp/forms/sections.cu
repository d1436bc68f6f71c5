/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections of the factorization in the forms beside the default: see
   cuda_forms.h. F is kept row by row, so cuBLAS sees the transpose of all.

   Seeded: X = inv(L11) A12, or A21 inv(U11), by a product with the inverse of
   the diagonal block, then corrected: the defect of X, times the inverse, is
   added to X. The inverse of a triangle of 128 is good to about its condition
   times 2^-24, and each correction gains as much again, so that one, or two,
   bring X to where substitution would; that it is there is seen from the size
   of the correction. Measured on the device, by lines, so that a line that is
   small is not lost beside a large one; NaN and Inf never pass. */
#include "gpu_sp/factor/pieces.h"
#include "gpu_sp/state.h"

#include "gpu_sp/forms/crout.h"

#include <cfloat>

int hone_cuda_corrections = 4;

namespace {

/* A correction below this part of X is the last: what it leaves is this part
   of it again, or what substitution would leave too. */
constexpr float SMALL = 0x1p-10F;
/* Of the iteration of crout.h, relative to the right-hand side. */
const double CROUT_TOLERANCE = 0x1p-24;

enum { THREADS = 256, CROUT_BLOCK = 32, SPLIT_ROWS = 16 };
enum { ONE, MINUS_ONE, ZERO }; /* forms.constants */

/* ---- Kernels ------------------------------------------------------------ */

/* Both triangles of a diagonal block of w, completed by the unit matrix. */
__global__ void triangles(const float *block, int64_t ld, int w, float *lower,
                          float *upper) {
  const int i = (int)blockIdx.x, j = (int)threadIdx.x, at = i * HONE_PANEL + j;
  const float unit = i == j ? 1.0F : 0.0F;
  const bool in = i < w && j < w;
  const float v = in ? block[i * ld + j] : unit;
  lower[at] = j < i ? v : unit;
  upper[at] = j >= i ? v : 0.0F;
}

/* L11 beside the unit matrix: what hone_cuda_rows makes inv(L11) of. */
__global__ void beside(const float *block, int64_t ld, int w, float *out) {
  const int i = (int)blockIdx.x, j = (int)threadIdx.x;
  float *row = out + i * 2 * HONE_PANEL;
  row[j] = j < i && i < w ? block[i * ld + j] : 0.0F;
  row[HONE_PANEL + j] = i == j ? 1.0F : 0.0F;
}

/* Bits of magnitudes order as they do, and those of NaN are above all. */
__device__ __forceinline__ unsigned magnitude(float v) {
  return __float_as_uint(fabsf(v));
}

__device__ __forceinline__ void judge(unsigned step, unsigned x, int *changed) {
  const float e = __uint_as_float(step), to = __uint_as_float(x);
  if (!(e <= SMALL * to && to <= FLT_MAX))
    *changed = 1; /* many may write the same */
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
    judge(top_step, top, changed);
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
  judge(top_step, top, changed);
}

/* Pieces of finished rows of U: see hone_cuda_rows. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_u(const float *x, int64_t ld, int w, int64_t cols,
            const hone_piece_scale *scale, typename T::type *out, int64_t ldo,
            hone_piece_place place, int *overflow) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int first = (int)blockIdx.y * SPLIT_ROWS;
  if (j >= cols)
    return;
  const float factor = scale->u;
  for (int i = first; i < first + SPLIT_ROWS; i++) {
    const pieces_of<T> p =
        cut<T>(i < w ? x[i * ld + j] * factor : 0.0F, overflow);
    typename T::type *to = out + i * ldo + j;
    to[place.hh * ldo] = p.hi;
    if (THREE) {
      to[place.lo * ldo] = p.lo;
      to[place.hi * ldo] = p.hi;
    }
  }
}

/* ---- Launches ----------------------------------------------------------- */

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

template <class T, bool THREE>
cudaError_t launch_split(const float *x, int64_t ld, int64_t w, int64_t cols,
                         const hone_piece_scale *scale, void *out, int64_t ldo,
                         hone_piece_place place, int *overflow,
                         cudaStream_t stream) {
  const dim3 grid(blocks_of(cols, THREADS), HONE_PANEL / SPLIT_ROWS);
  HONE_LAUNCH((split_u<T, THREE>), grid, THREADS, 0, stream, x, ld, (int)w,
              cols, scale, static_cast<typename T::type *>(out), ldo, place,
              overflow);
  return cudaGetLastError();
}

cudaError_t cut_u(const hone_cuda *c, const hone_cuda_lane &on, const float *x,
                  int64_t w, int64_t cols, const hone_piece_scale *scale,
                  hone_piece_place place) {
  if (c->pieces == HONE_FLOATS)
    return cudaSuccess;
  auto launch = launch_split<half_type, true>;
  if (c->pieces == HONE_HALF_1)
    launch = launch_split<half_type, false>;
  else if (c->pieces == HONE_BFLOAT_3)
    launch = launch_split<bfloat_type, true>;
  else if (c->pieces == HONE_BFLOAT_1)
    launch = launch_split<bfloat_type, false>;
  return launch(x, c->ld, w, cols, scale, on.up, on.ldu, place, c->flags + 1,
                on.stream);
}

cudaError_t both_triangles(const hone_cuda *c, const hone_cuda_lane &on,
                           int64_t k, int64_t w) {
  HONE_LAUNCH(triangles, HONE_PANEL, HONE_PANEL, 0, on.stream,
              c->f + k * c->ld + k, c->ld, (int)w, on.lower, on.upper);
  return cudaGetLastError();
}

/* ---- A section ----------------------------------------------------------- */

/* X with T X = B (left: T = L11) or X T = B (T = U11), B in the place of X. */
struct section {
  bool left;
  bool kept;          /* B is in lane.right already */
  int64_t k, w;       /* the diagonal block */
  int64_t rows, cols; /* of X; one of them is w */
  float *x;           /* in F */
  const float *inverse, *triangle;
  int64_t lds; /* of lane.right, .defect and .step */
};

/* out = alpha a b + beta out, all row by row. */
int product(const hone_cuda *c, const hone_cuda_lane &on, int64_t rows,
            int64_t cols, int64_t inner, int alpha, const float *a, int64_t lda,
            const float *b, int64_t ldb, int beta, float *out, int64_t ldo) {
  return CALL(c->blas->gemm(on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)cols,
                            (int)rows, (int)inner, c->forms.constants + alpha,
                            b, CUDA_R_32F, (int)ldb, a, CUDA_R_32F, (int)lda,
                            c->forms.constants + beta, out, CUDA_R_32F,
                            (int)ldo, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* out = alpha t m + beta out, or with m on the left. */
int apply(const hone_cuda *c, const hone_cuda_lane &on, const section &s,
          int alpha, const float *t, const float *m, int64_t ldm, int beta,
          float *out, int64_t ldo) {
  if (s.left)
    return product(c, on, s.rows, s.cols, s.w, alpha, t, HONE_PANEL, m, ldm,
                   beta, out, ldo);
  return product(c, on, s.rows, s.cols, s.w, alpha, m, ldm, t, HONE_PANEL, beta,
                 out, ldo);
}

int direct(const hone_cuda *c, const hone_cuda_lane &on, const section &s) {
  const float *t = c->f + s.k * c->ld + s.k;
  return CALL(c->blas->trsm(
      on.handle, s.left ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT,
      s.left ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
      s.left ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, (int)s.cols,
      (int)s.rows, c->constants, t, (int)c->ld, s.x, (int)c->ld));
}

int copy(const hone_cuda_lane &on, const section &s, float *to, int64_t ldto,
         const float *from, int64_t ldfrom) {
  return CALL(cudaMemcpy2DAsync(to, (size_t)ldto * sizeof(float), from,
                                (size_t)ldfrom * sizeof(float),
                                (size_t)s.cols * sizeof(float), (size_t)s.rows,
                                cudaMemcpyDeviceToDevice, on.stream));
}

cudaError_t correct(const hone_cuda *c, const hone_cuda_lane &on,
                    const section &s) {
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

/* One correction; *changed: it was not small. Waits for it. */
int sweep(const hone_cuda *c, const hone_cuda_lane &on, const section &s,
          bool *changed) {
  int st = copy(on, s, on.defect, s.lds, on.right, s.lds);
  if (st == HONE_OK)
    st = apply(c, on, s, MINUS_ONE, s.triangle, s.x, c->ld, ONE, on.defect,
               s.lds);
  if (st == HONE_OK)
    st =
        apply(c, on, s, ONE, s.inverse, on.defect, s.lds, ZERO, on.step, s.lds);
  if (st == HONE_OK)
    st = CALL(cudaMemsetAsync(on.changed, 0, sizeof(int), on.stream));
  if (st == HONE_OK)
    st = CALL(correct(c, on, s));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(on.seen, on.changed, sizeof(int),
                              cudaMemcpyDeviceToHost, on.stream));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(on.stream));
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

int seeded(hone_cuda *c, const hone_cuda_lane &on, const section &s) {
  bool changed = true;
  int sweeps = 0;
  int st = CALL(both_triangles(c, on, s.k, s.w));
  if (st == HONE_OK && !s.kept)
    st = copy(on, s, on.right, s.lds, s.x, c->ld);
  if (st == HONE_OK)
    st = apply(c, on, s, ONE, s.inverse, on.right, s.lds, ZERO, s.x, c->ld);
  for (; st == HONE_OK && changed && sweeps < hone_cuda_corrections; sweeps++)
    st = sweep(c, on, s, &changed);
  count(c, sweeps, changed);
  if (st == HONE_OK && changed) {
    st = copy(on, s, s.x, c->ld, on.right, s.lds);
    if (st == HONE_OK)
      st = direct(c, on, s);
  }
  return st;
}

/* The iteration of crout.h sees L11^T on the right. */
int crout(hone_cuda *c, const hone_cuda_lane &on, const section &s) {
  hone_crout_solver how = {};
  int64_t sweeps = 0;
  how.block = CROUT_BLOCK;
  how.tolerance = CROUT_TOLERANCE;
  how.unit = 1;
  how.stream = on.stream;
  how.work = on.right;
  how.seen = on.seen;
  if (hone_cuda_must_fail())
    return HONE_DEVICE_FAILED;
  const int st = hone_crout_columns(&how, s.w, s.cols, c->f + s.k * c->ld + s.k,
                                    c->ld, s.x, c->ld, &sweeps);
  if (st != HONE_OK && st != HONE_NOT_CONVERGED)
    return st;
  count(c, sweeps, st != HONE_OK);
  return st == HONE_OK ? st : direct(c, on, s);
}

/* The section of L below the diagonal block. */
section below(const hone_cuda *c, const hone_cuda_lane &on, int64_t k,
              int64_t w) {
  section s = {};
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

int hone_cuda_section_l_begin(hone_cuda *c, const hone_cuda_lane &on, int64_t k,
                              int64_t w) {
  const section s = below(c, on, k, w);
  return s.rows > 0 ? copy(on, s, on.right, s.lds, s.x, c->ld) : (int)HONE_OK;
}

int hone_cuda_section_l(hone_cuda *c, const hone_cuda_lane &on, int64_t k,
                        int64_t w) {
  const section s = below(c, on, k, w);
  return s.rows > 0 ? seeded(c, on, s) : (int)HONE_OK;
}

int hone_cuda_section_u(hone_cuda *c, const hone_cuda_lane &on, int index,
                        int64_t k, int64_t w, int64_t c0, int64_t c1,
                        const hone_piece_scale *scale, hone_piece_place place) {
  section s = {};
  if (c1 <= c0)
    return HONE_OK;
  s.left = true;
  s.k = k;
  s.w = s.rows = w;
  s.cols = c1 - c0;
  s.x = c->f + k * c->ld + c0;
  s.inverse = c->forms.inverse + (int64_t)index * HONE_PANEL * HONE_PANEL;
  s.triangle = on.lower;
  s.lds =
      (s.cols + HONE_CUDA_PADDING - 1) / HONE_CUDA_PADDING * HONE_CUDA_PADDING;
  int st;
  if (c->choices.sections == HONE_BLOCK_ROWS_SEEDED)
    st = seeded(c, on, s);
  else if (c->choices.sections == HONE_BLOCK_ROWS_CROUT)
    st = crout(c, on, s);
  else
    st = direct(c, on, s);
  if (st == HONE_OK)
    st = CALL(cut_u(c, on, s.x, w, s.cols, scale, place));
  return st;
}

int hone_cuda_section_seed(hone_cuda *c, const hone_cuda_lane &on, int index,
                           int64_t k, int64_t w) {
  const int64_t size = HONE_PANEL;
  float *both = c->forms.identity;
  auto put = [&] {
    HONE_LAUNCH(beside, HONE_PANEL, HONE_PANEL, 0, on.stream,
                c->f + k * c->ld + k, c->ld, (int)w, both);
    return cudaGetLastError();
  };
  int st = CALL(put());
  if (st == HONE_OK)
    st = CALL(hone_cuda_rows(HONE_FLOATS, both, 2 * size, 0, size, size,
                             2 * size, nullptr, nullptr, 0, {-1, -1, -1},
                             nullptr, on.stream));
  if (st == HONE_OK)
    st = CALL(cudaMemcpy2DAsync(c->forms.inverse + index * size * size,
                                (size_t)size * sizeof(float), both + size,
                                2 * (size_t)size * sizeof(float),
                                (size_t)size * sizeof(float), (size_t)size,
                                cudaMemcpyDeviceToDevice, on.stream));
  return st;
}
