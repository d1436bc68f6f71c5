/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky's factorization on the device, S = U^T U, in single precision,
   blocked as the LU of lu.cu is but without row moves. An outer panel has nb
   rows of U, its inner panels 128:

     for each inner panel     factor its diagonal block;
                              in the outer panel's other columns: compute the
                              rows of U, F -= U^T U
     then, for the columns on the right of the outer panel
                              compute the rows of U, 128 at a time;
                              F -= U^T U with an inner dimension of 3 nb, in
                              strips of rows from the diagonal on

   The rows of U are split twice, for the two operands of a product: into up as
   in the LU, and into lp in the order of L's parts, but row by row of U. Read
   next: steps.cu for the rows of U, then solve/triangles.h. */
#include "gpu_sp/factor/operands.h"
#include "gpu_sp/factor/split_float.h"

namespace {

enum {
  STEP = HONE_STEP,
  THREADS = 256,
  TILE = 4,                /* a thread updates TILE x TILE entries at a time */
  STRIDE = HONE_PANEL + 4, /* floats from row to row in shared memory */
  STRIP_ROWS = 1024        /* rows of a product along the diagonal */
};

/* ---- The diagonal block ------------------------------------------------- */

struct block_shared {
  float a[HONE_PANEL][STRIDE];
};

/* Computes STEP rows of U; each lane has one column of them, v. Every warp has
   the diagonal tile in its first 16 lanes, and 16 more columns in the others.
   Below the tile's diagonal v holds any numbers, which no other lane reads. */
__device__ __forceinline__ void finish_rows(float (&v)[STEP], int lane,
                                            bool first, int column,
                                            int *not_positive) {
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    float d = __shfl_sync(0xffffffffU, v[p], p);
    if (!(d > 0.0F)) {
      if (first && lane == p)
        atomicMin(not_positive, column + p);
      d = 1.0F;
    }
    const float inverse = rsqrtf(d), root = d * inverse;
    if (lane == p) /* a Newton step makes the root nearly exact */
      v[p] = fmaf(fmaf(-root, root, d), 0.5F * inverse, root);
    else
      v[p] *= inverse;
#pragma unroll
    for (int q = p + 1; q < STEP; q++)
      v[q] -= __shfl_sync(0xffffffffU, v[p], q) * v[p];
  }
}

/* Subtracts the product of the STEP rows before row 'from' from the upper
   triangle from there on. The triangle consists of 'side' rows of tiles. Rows t
   and side - 1 - t have side + 1 tiles together; so tile number e belongs to
   row e / (side + 1) or to the other row of that pair. */
__device__ __forceinline__ void update_rest(block_shared *sh, int from) {
  const int side = (HONE_PANEL - from) / TILE, row = side + 1;
  const float(*u)[STRIDE] = &sh->a[from - STEP];
  for (int e = (int)threadIdx.x; e < side / 2 * row; e += THREADS) {
    int i = e / row, j = i + e % row;
    if (j >= side) { /* past the end of row i: it is in row side - 1 - i */
      j -= i + 1;
      i = side - 1 - i;
    }
    const int r0 = from + i * TILE, c0 = from + j * TILE;
    float4 sum[TILE];
#pragma unroll
    for (int r = 0; r < TILE; r++)
      sum[r] = *reinterpret_cast<const float4 *>(&sh->a[r0 + r][c0]);
#pragma unroll
    for (int p = 0; p < STEP; p++) {
      const float4 x = *reinterpret_cast<const float4 *>(&u[p][r0]);
      const float4 y = *reinterpret_cast<const float4 *>(&u[p][c0]);
      const float by[TILE] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int r = 0; r < TILE; r++) {
        sum[r].x -= by[r] * y.x;
        sum[r].y -= by[r] * y.y;
        sum[r].z -= by[r] * y.z;
        sum[r].w -= by[r] * y.w;
      }
    }
#pragma unroll
    for (int r = 0; r < TILE; r++)
      *reinterpret_cast<float4 *>(&sh->a[r0 + r][c0]) = sum[r];
  }
}

__global__ void __launch_bounds__(THREADS)
    potrf(float *f, int64_t ld, int64_t k, int w, int *not_positive) {
  HONE_DYNAMIC_SHARED(block_shared, sh);
  const int tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32;
  float *const block = f + k * ld + k;
#pragma unroll 16
  for (int e = tid; e < HONE_PANEL * HONE_PANEL; e += THREADS) {
    const int i = e / HONE_PANEL, j = e % HONE_PANEL;
    sh->a[i][j] = i <= j && j < w ? block[i * ld + j] : (i == j ? 1.0F : 0.0F);
  }
  __syncthreads();
#pragma unroll 1
  for (int at = 0; at < w; at += STEP) {
    const int next = at + STEP, mine = next + warp * STEP;
    if (warp == 0 || mine < HONE_PANEL) {
      const bool tile = lane < STEP, in = tile || mine < HONE_PANEL;
      const int c = (tile || !in ? at : mine) + lane % STEP;
      float v[STEP];
#pragma unroll
      for (int q = 0; q < STEP; q++)
        v[q] = sh->a[at + q][c];
      finish_rows(v, lane, warp == 0, (int)k + at, not_positive);
#pragma unroll
      for (int q = 0; q < STEP; q++) {
        if (tile ? warp == 0 && at + q <= c && c < w : in && c < w)
          block[(at + q) * ld + c] = v[q];
        if (!tile && in)
          sh->a[at + q][c] = v[q];
      }
    }
    __syncthreads();
    if (next < w)
      update_rest(sh, next);
    __syncthreads();
  }
}

/* ---- Splitting U --------------------------------------------------------- */

/* No entry of U is larger than the root of the largest of S, so scaling makes
   them 2^12 at most. */
__global__ void set_scale_spd(bool fp16, const unsigned *top, int count,
                              hone_split_scale *scale) {
  unsigned bits = 0;
  for (int i = 0; i < count; i++)
    bits = top[i] > bits ? top[i] : bits;
  const float max = __uint_as_float(bits);
  int e = 0;
  if (fp16 && max > 0.0F && max <= 3.4e38F)
    (void)frexpf(max, &e);
  e = e >= 0 ? (e + 1) / 2 : -(-e / 2);
  scale->l = scale->u = fp16 ? ldexpf(4096.0F, -e) : 1.0F;
  scale->alpha = fp16 ? -ldexpf(1.0F / 16777216.0F, 2 * e) : -1.0F;
}

/* A thread takes one column of 16 rows, a thread block 256 columns. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_u(const float *f, int64_t ld, const hone_u_rows rows,
            const hone_operand left) {
  const int64_t ldl = left.ldo;
  const int64_t c = rows.c0 + (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int row = (int)blockIdx.y * STEP, w = (int)rows.w;
  const float factor = left.scale->u;
  if (c >= rows.c1)
    return;
#pragma unroll
  for (int r = row; r < row + STEP; r++) {
    const float v = r < w ? f[(rows.k + r) * ld + c] * factor : 0.0F;
    const two_parts<T> p = split<T>(v, left.overflow);
    typename T::type *at =
        static_cast<typename T::type *>(left.out) + r * ldl + (c - rows.c0);
    at[left.place.hh * ldl] = p.hi;
    if (THREE) {
      at[left.place.lo * ldl] = p.hi;
      at[left.place.hi * ldl] = p.lo;
    }
  }
}

template <class T, bool THREE>
cudaError_t launch_split(const hone_float_matrix &f, const hone_u_rows &rows,
                         const hone_operand &left, cudaStream_t stream) {
  const dim3 grid((unsigned)((rows.c1 - rows.c0 + THREADS - 1) / THREADS),
                  HONE_PANEL / STEP);
  HONE_LAUNCH((split_u<T, THREE>), grid, THREADS, 0, stream, (const float *)f.f,
              f.ld, rows, left);
  return cudaGetLastError();
}

/* ---- The blocked algorithm ---------------------------------------------- */

/* A block of F that products are subtracted from. up holds the parts of the
   columns from 'first' on, lp those of the rows from the panel's first on. */
struct target {
  int64_t i, m, c0, c1, first; /* i .. c1: see f_block */
};

/* Subtracts from the target the product of the rows of parts from .. from+k-1.
   GEMM sees the transpose. */
int product_of_parts(hone_cuda *c, int64_t from, int64_t k,
                     const hone_cuda_panel_info *p, const target &t) {
  const cudaDataType_t type = part_type(c);
  return CALL(c->blas->gemm(
      c->handle, CUBLAS_OP_N, CUBLAS_OP_T, (int)padded_columns(c, t.c0, t.c1),
      (int)t.m, (int)k, &scale_at(c, t.first)->alpha,
      parts_at(c->up, from * c->ldu + t.c0 - t.first), type, (int)c->ldu,
      parts_at(c->lp, from * c->ld + t.i - p->k), type, (int)c->ld,
      c->constants, c->f + t.i * c->ld + t.c0, CUDA_R_32F, (int)c->ld,
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* Subtracts U^T U from the target, for the panel's first 'inner' inner
   panels. */
int product(hone_cuda *c, const hone_cuda_panel_info *p, int inner,
            const target &t) {
  const int64_t wide = (int64_t)inner * HONE_PANEL;
  if (t.m <= 0 || t.c1 <= t.c0)
    return HONE_OK;
  if (c->pieces == HONE_SPLIT_NONE) {
    const float *rows = c->f + p->k * c->ld;
    return CALL(c->blas->gemm(
        c->handle, CUBLAS_OP_N, CUBLAS_OP_T, (int)padded_columns(c, t.c0, t.c1),
        (int)t.m, (int)(wide < p->w ? wide : p->w), hone_cuda_minus_one(c),
        rows + t.c0, CUDA_R_32F, (int)c->ld, rows + t.i, CUDA_R_32F, (int)c->ld,
        c->constants, c->f + t.i * c->ld + t.c0, CUDA_R_32F, (int)c->ld,
        c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT));
  }
  if (!three_products(c))
    return product_of_parts(c, 0, wide, p, t);
  if (inner == p->count)
    return product_of_parts(c, 0, 3 * wide, p, t);
  int st = product_of_parts(c, 0, 2 * wide, p, t);
  TRY(product_of_parts(c, (int64_t)p->count * 2 * HONE_PANEL, wide, p, t));
  return st;
}

/* Updates the rows from i0 on of the columns c0 .. c1-1, down to the diagonal.
 */
int update_below(hone_cuda *c, const hone_cuda_panel_info *p, int64_t i0,
                 int64_t c0, int64_t c1) {
  int st = HONE_OK;
  if (i0 < c0)
    st = product(c, p, p->count, {i0, c0 - i0, c0, c1, c0});
  for (int64_t i = i0 < c0 ? c0 : i0, m; i < c1 && st == HONE_OK; i += m) {
    m = c1 - i > 2 * STRIP_ROWS ? (int64_t)STRIP_ROWS : c1 - i;
    st = product(c, p, p->count, {i, m, i, c1, c0});
  }
  return st;
}

/* Computes the inner panel's rows of U in the columns c0 .. c1-1, and their
   parts. */
int rows_of_u(hone_cuda *c, const hone_cuda_panel_info *p, int inner,
              int64_t c0, int64_t c1) {
  const hone_u_rows rows = {inner_start(p, inner), inner_width(p, inner), c0,
                            c1};
  return CALL(
      hone_cuda_rows_spd(matrix_f(c), rows,
                         {c->pieces, scale_at(c, c0), c->up, c->ldu,
                          place_of(c, inner, p->count), overflow_flag(c)},
                         {parts_at(c->lp, c0 - p->k), c->ld}, c->work));
}

/* Splits the rows of U in the columns between the inner panel and c1 again,
   with the scale of the columns from c1 on. */
int split_inner_u(hone_cuda *c, const hone_cuda_panel_info *p, int inner,
                  int64_t c1) {
  const int64_t k = inner_start(p, inner), w = inner_width(p, inner);
  return CALL(hone_cuda_split_u(
      matrix_f(c), {k, w, k + w, c1},
      {c->pieces, scale_at(c, c1), parts_at(c->lp, k + w - p->k), c->ld,
       place_of(c, inner, p->count), overflow_flag(c)},
      c->work));
}

/* Factors inner panel 'inner' and updates the rest of its outer panel. */
int inner_step(hone_cuda *c, const hone_cuda_panel_info *p, int inner) {
  const int64_t k = inner_start(p, inner);
  const int64_t w = inner_width(p, inner), end = p->k + p->w;
  const hone_cuda_panel_info one = {k, w, 0, 1};
  int st =
      CALL(hone_cuda_potrf(c->f, c->ld, k, w, zero_pivot_flag(c), c->work));
  if (st != HONE_OK || k + w >= end)
    return st;
  st = rows_of_u(c, &one, 0, k + w, end);
  TRY(update_below(c, &one, k + w, k + w, end));
  return st;
}

} // namespace

cudaError_t hone_cuda_potrf(float *f, int64_t ld, int64_t k, int64_t w,
                            int *not_positive, cudaStream_t stream) {
  const size_t shared = sizeof(block_shared);
  cudaError_t e = cudaFuncSetAttribute(
      potrf, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(potrf, 1, THREADS, shared, stream, f, ld, k, (int)w,
              not_positive);
  return cudaGetLastError();
}

cudaError_t hone_cuda_split_scale_spd(enum hone_split split,
                                      const unsigned *top, int count,
                                      hone_split_scale *scale,
                                      cudaStream_t stream) {
  const bool fp16 = split == HONE_SPLIT_FP16_3 || split == HONE_SPLIT_FP16_1;
  HONE_LAUNCH(set_scale_spd, 1, 1, 0, stream, fp16, top, count, scale);
  return cudaGetLastError();
}

cudaError_t hone_cuda_split_u(const hone_float_matrix &f,
                              const hone_u_rows &rows, const hone_operand &left,
                              cudaStream_t stream) {
  if (left.split == HONE_SPLIT_NONE || rows.c1 <= rows.c0)
    return cudaSuccess;
  auto launch = launch_split<half_type, true>;
  if (left.split == HONE_SPLIT_FP16_1)
    launch = launch_split<half_type, false>;
  else if (left.split == HONE_SPLIT_BF16_3)
    launch = launch_split<bfloat_type, true>;
  else if (left.split == HONE_SPLIT_BF16_1)
    launch = launch_split<bfloat_type, false>;
  return launch(f, rows, left, stream);
}

int hone_cuda_factor_panel_spd(hone_cuda *c, int64_t k, int64_t w) {
  hone_cuda_panel_info *p = c->panels + c->panel_count;
  if (c->panel_count >= c->panel_room)
    return HONE_INTERNAL;
  *p = {k, w, 0, (int)((w + HONE_PANEL - 1) / HONE_PANEL)};
  int st = HONE_OK;
  for (int inner = 0; inner < p->count && st == HONE_OK; inner++)
    st = inner_step(c, p, inner);
  c->panel_count++;
  return st;
}

int hone_cuda_apply_panel_spd(hone_cuda *c, int panel, int64_t c0, int64_t c1) {
  const hone_cuda_panel_info *p = c->panels + panel;
  int st = HONE_OK;
  if (c0 >= c1)
    return HONE_OK;
  for (int inner = 0; inner < p->count && st == HONE_OK; inner++)
    st = split_inner_u(c, p, inner, c0);
  for (int64_t at = c0; at < c1 && st == HONE_OK; at += c->strip) {
    const int64_t to = at + c->strip < c1 ? at + c->strip : c1;
    for (int inner = 0; inner < p->count && st == HONE_OK; inner++) {
      const int64_t k = inner_start(p, inner);
      if (inner > 0)
        st = product(c, p, inner, {k, inner_width(p, inner), at, to, at});
      TRY(rows_of_u(c, p, inner, at, to));
    }
    TRY(update_below(c, p, p->k + p->w, at, to));
  }
  return st;
}
