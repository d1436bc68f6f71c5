/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky's factorization on the device, S = U^H U (U^T U where entries are
   real), in single precision, blocked as the LU is but without row moves. A
   block column of A's lower triangle, of width w at column j, is a block row of
   F: the rows j .. j+w-1, from the diagonal on. The steps, which
   outer_panels.cu calls:

     factor an inner panel    factor its diagonal block; in the outer panel's
                              other columns: compute the rows of U, F -= U^H U
     rows of U                those of a panel, in all columns behind it
     rows below a panel       F -= U^H U with an inner dimension of 3 nb, in the
                              other rows of its block row, in strips of rows
                              from the diagonal on
     a later block row        the same, by a panel whose rows of U are complete

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
  STRIDE = HONE_PANEL + 4, /* entries from row to row in shared memory */
  STRIP_ROWS = 1024        /* rows of a product along the diagonal */
};

/* ---- The diagonal block ------------------------------------------------- */

struct block_shared {
  number a[HONE_PANEL][STRIDE];
};

/* Computes STEP rows of U; each lane has one column of them, v. Every warp has
   the diagonal tile in its first STEP lanes, and more columns in the others.
   Below the tile's diagonal v holds any numbers, which no other lane reads. The
   time is that of the chain of pivots: each one's square, d, is computed by its
   own lane as soon as the row before is known, and the exact root beside the
   chain. */
__device__ __forceinline__ void finish_rows(number (&v)[STEP], int lane,
                                            bool tells, int column,
                                            int *not_positive) {
  float square = real_of(v[0]);
#pragma unroll
  for (int p = 0; p < STEP; p++) {
    float d = __shfl_sync(0xffffffffU, square, p);
    if (!(d > 0.0F)) {
      if (tells && lane == p)
        atomicMin(not_positive, column + p);
      d = 1.0F;
    }
    const float inverse = rsqrtf(d), root = d * inverse;
    /* a Newton step makes the root nearly exact */
    const float exact = fmaf(fmaf(-root, root, d), 0.5F * inverse, root);
    const number row = times(v[p], inverse);
    if (p + 1 < STEP)
      square = real_of(less_product(v[p + 1], conjugate(row), row));
    v[p] = choose(lane == p, number_of(exact), row);
#pragma unroll
    for (int q = p + 1; q < STEP; q++)
      v[q] = less_product(v[q], conjugate(shuffle(row, q)), row);
  }
}

/* Loads or stores TILE neighbouring numbers. */
__device__ __forceinline__ void load_tile(const number *from,
                                          number (&to)[TILE]) {
#pragma unroll
  for (int c = 0; c < TILE; c += NUMBERS_IN_FOUR)
    take_four(*reinterpret_cast<const float4 *>(from + c), to + c);
}
__device__ __forceinline__ void store_tile(const number (&from)[TILE],
                                           number *to) {
#pragma unroll
  for (int c = 0; c < TILE; c += NUMBERS_IN_FOUR)
    *reinterpret_cast<float4 *>(to + c) = four_of(from + c);
}

/* Subtracts the product of the STEP rows before row 'from' from the upper
   triangle from there on. The triangle consists of 'side' rows of tiles. Rows t
   and side - 1 - t have side + 1 tiles together; so tile number e belongs to
   row e / (side + 1) or to the other row of that pair. */
__device__ __forceinline__ void update_rest(block_shared *sh, int from) {
  const int side = (HONE_PANEL - from) / TILE, row = side + 1;
  const number(*u)[STRIDE] = &sh->a[from - STEP];
  for (int e = (int)threadIdx.x; e < side / 2 * row; e += THREADS) {
    int i = e / row, j = i + e % row;
    if (j >= side) { /* past the end of row i: it is in row side - 1 - i */
      j -= i + 1;
      i = side - 1 - i;
    }
    const int r0 = from + i * TILE, c0 = from + j * TILE;
    number sum[TILE][TILE];
#pragma unroll
    for (int r = 0; r < TILE; r++)
      load_tile(&sh->a[r0 + r][c0], sum[r]);
#pragma unroll
    for (int p = 0; p < STEP; p++) {
      number by[TILE], y[TILE];
      load_tile(&u[p][r0], by);
      load_tile(&u[p][c0], y);
#pragma unroll
      for (int r = 0; r < TILE; r++)
#pragma unroll
        for (int k = 0; k < TILE; k++)
          sum[r][k] = less_product(sum[r][k], conjugate(by[r]), y[k]);
    }
#pragma unroll
    for (int r = 0; r < TILE; r++)
      store_tile(sum[r], &sh->a[r0 + r][c0]);
  }
}

__global__ void __launch_bounds__(THREADS)
    potrf(float *f, int64_t ld, int64_t k, int w, int *not_positive,
          const int *overflow) {
  HONE_DYNAMIC_SHARED(block_shared, sh);
  const int tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32;
  constexpr int BESIDE = 32 - STEP; /* columns beside the tile, of a warp */
  const bool tells = warp == 0 && *overflow == 0;
  float *const block = f + k * ld + HONE_PARTS * k;
#pragma unroll 16
  for (int e = tid; e < HONE_PANEL * HONE_PANEL; e += THREADS) {
    const int i = e / HONE_PANEL, j = e % HONE_PANEL;
    sh->a[i][j] = i <= j && j < w ? load_number(block + i * ld + HONE_PARTS * j)
                                  : number_of(i == j ? 1.0F : 0.0F);
  }
  __syncthreads();
#pragma unroll 1
  for (int at = 0; at < w; at += STEP) {
    const int next = at + STEP, mine = next + warp * BESIDE;
    if (warp == 0 || mine < HONE_PANEL) {
      const bool tile = lane < STEP;
      const int own = mine + lane - STEP;
      const bool in = !tile && own < HONE_PANEL;
      const int c = in ? own : at + lane % STEP;
      number v[STEP];
#pragma unroll
      for (int q = 0; q < STEP; q++)
        v[q] = sh->a[at + q][c];
      finish_rows(v, lane, tells, (int)k + at, not_positive);
#pragma unroll
      for (int q = 0; q < STEP; q++) {
        if (tile ? warp == 0 && at + q <= c && c < w : in && c < w)
          store_number(block + (at + q) * ld + HONE_PARTS * c, v[q]);
        if (in)
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

/* No entry of U is larger than the root of the largest of S. Those of S that
   have come become 2^9 at most, so that the later ones may be 2^14 times as
   large; otherwise parts overflow, which is seen. */
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
  scale->l = scale->u = fp16 ? ldexpf(512.0F, -e) : 1.0F;
  scale->alpha = fp16 ? -ldexpf(1.0F / 262144.0F, 2 * e) : -1.0F;
}

/* A thread takes one column of STEP rows, a thread block 256 columns; every
   HONE_PANEL rows are an inner panel, which has the columns on the right of its
   diagonal block. */
template <class T, bool THREE, bool LEFT>
__global__ void __launch_bounds__(THREADS)
    split_u(const float *f, int64_t ld, const hone_u_rows rows,
            const hone_operand to) {
  constexpr int GROUPS = HONE_PANEL / STEP;
  const int inner = (int)blockIdx.y / GROUPS;
  const int row = (int)blockIdx.y % GROUPS * STEP;
  const int64_t c = rows.c0 + (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t k = rows.k + inner * HONE_PANEL;
  const int64_t more = rows.w - inner * HONE_PANEL;
  const int w = more < HONE_PANEL ? (int)more : (int)HONE_PANEL;
  const float factor = to.scale->u;
  typename T::type *const out = static_cast<typename T::type *>(to.out);
  const rows_out<T> o = {
      out, to.ldo, out, to.ldo, place_behind(to.place, inner), to.overflow};
  if (c >= rows.c1 || c < k + w)
    return;
#pragma unroll
  for (int r = row; r < row + STEP; r++) {
    const number v =
        r < w ? times(load_number(f + (k + r) * ld + HONE_PARTS * c), factor)
              : number_of(0.0F);
    if (LEFT)
      put_left<T, THREE>(o, v, r, c - rows.c0);
    else
      put_right<T, THREE>(o, v, r, c - rows.c0);
  }
}

template <class T, bool THREE, bool LEFT>
cudaError_t launch_split(const hone_float_matrix &f, const hone_u_rows &rows,
                         const hone_operand &to, cudaStream_t stream) {
  const int64_t inner = (rows.w + HONE_PANEL - 1) / HONE_PANEL;
  const dim3 grid((unsigned)((rows.c1 - rows.c0 + THREADS - 1) / THREADS),
                  (unsigned)inner * HONE_PANEL / STEP);
  HONE_LAUNCH((split_u<T, THREE, LEFT>), grid, THREADS, 0, stream,
              (const float *)f.f, f.ld, rows, to);
  return cudaGetLastError();
}

template <bool LEFT>
cudaError_t split_as(const hone_float_matrix &f, const hone_u_rows &rows,
                     const hone_operand &to, cudaStream_t stream) {
  if (to.split == HONE_SPLIT_NONE || rows.c1 <= rows.c0)
    return cudaSuccess;
  auto launch = launch_split<half_type, true, LEFT>;
  if (to.split == HONE_SPLIT_FP16_1)
    launch = launch_split<half_type, false, LEFT>;
  else if (to.split == HONE_SPLIT_BF16_3)
    launch = launch_split<bfloat_type, true, LEFT>;
  else if (to.split == HONE_SPLIT_BF16_1)
    launch = launch_split<bfloat_type, false, LEFT>;
  return launch(f, rows, to, stream);
}

/* ---- The steps ---------------------------------------------------------- */

/* Subtracts from the block the product of the rows of parts from .. from+k-1.
   GEMM sees the transpose. */
int product_of_parts(hone_cuda *c, const hone_cuda_queue &on, int64_t from,
                     int64_t k, const hone_cuda_panel_info *p,
                     const hone_f_block &b) {
  const cudaDataType_t type = part_type(c);
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, CUBLAS_OP_T, (int)padded_columns(c, b.c0, b.c1),
      (int)b.m, (int)k, &scale_at(c, p->k)->alpha,
      parts_at(on.up, from * on.ldu + HONE_PARTS * (b.c0 - b.first)), type,
      (int)on.ldu, parts_at(on.lp, from * on.ldl + b.i - p->k), type,
      (int)on.ldl, c->constants, hone_cuda_f_at(c, b.i, b.c0), CUDA_R_32F,
      (int)c->ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* Does so without parts, in single precision or TF32, for 'wide' rows of U. */
int product_of_floats(hone_cuda *c, const hone_cuda_queue &on, int64_t wide,
                      const hone_cuda_panel_info *p, const hone_f_block &b) {
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_32F : CUDA_R_32F;
  const int64_t columns = padded_columns(c, b.c0, b.c1) / HONE_PARTS;
  const int ld = (int)(c->ld / HONE_PARTS);
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, HONE_PARTS > 1 ? CUBLAS_OP_C : CUBLAS_OP_T,
      (int)columns, (int)b.m, (int)wide, hone_cuda_minus_one(c),
      hone_cuda_f_at(c, p->k, b.c0), type, ld, hone_cuda_f_at(c, p->k, b.i),
      type, ld, c->constants, hone_cuda_f_at(c, b.i, b.c0), type, ld,
      c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT));
}

/* Subtracts U^H U from the block, for the panel's first 'inner' inner panels.
 */
int product(hone_cuda *c, const hone_cuda_queue &on,
            const hone_cuda_panel_info *p, int inner, const hone_f_block &b) {
  const int64_t wide = (int64_t)inner * HONE_WIDE;
  const int64_t columns = (int64_t)inner * HONE_PANEL;
  if (b.m <= 0 || b.c1 <= b.c0)
    return HONE_OK;
  if (c->pieces == HONE_SPLIT_NONE)
    return product_of_floats(c, on, columns < p->w ? columns : p->w, p, b);
  return product_of_parts(c, on, first_place(c, inner, p->count),
                          three_products(c) ? 3 * wide : wide, p, b);
}

/* Updates the rows r0 .. r1-1 in the columns c0 .. c1-1, down to the diagonal.
 */
int update_rows(hone_cuda *c, const hone_cuda_queue &on,
                const hone_cuda_panel_info *p, int64_t r0, int64_t r1,
                int64_t c0, int64_t c1, int64_t first) {
  const int64_t chosen = c->choices.trial.diagonal;
  const int64_t rows = chosen > 0 ? chosen : (int64_t)STRIP_ROWS;
  const int64_t above = r1 < c0 ? r1 : c0, end = r1 < c1 ? r1 : c1;
  int st = HONE_OK;
  if (r0 < above)
    st = product(c, on, p, p->count, {r0, above - r0, c0, c1, first});
  for (int64_t i = r0 < c0 ? c0 : r0, m; i < end && st == HONE_OK; i += m) {
    m = end - i > 2 * rows ? rows : end - i;
    st = product(c, on, p, p->count, {i, m, i, c1, first});
  }
  return st;
}

/* Updates the rows from the panel's end on, up to row end-1. */
int update_below(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int64_t c0, int64_t c1,
                 int64_t end, int64_t first) {
  return update_rows(c, on, p, p->k + p->w, end, c0, c1, first);
}

/* Computes the inner panel's rows of U in the columns c0 .. c1-1, and their
   parts. */
int rows_of_u(hone_cuda *c, const hone_cuda_queue &on,
              const hone_cuda_panel_info *p, int inner, int64_t w, int64_t c0,
              int64_t c1) {
  const hone_u_rows rows = {inner_start(p, inner), w, c0, c1};
  return CALL(
      hone_cuda_rows_spd(matrix_f(c), rows,
                         {c->pieces, scale_at(c, p->k), on.up, on.ldu,
                          place_of(c, inner, p->count), overflow_flag(c)},
                         {parts_at(on.lp, c0 - p->k), on.ldl}, on.stream));
}

/* Splits the panel's rows of U in the columns from .. to-1 into the left
   operand. */
int split_left(hone_cuda *c, const hone_cuda_queue &on,
               const hone_cuda_panel_info *p, int64_t from, int64_t to) {
  return CALL(hone_cuda_split_u_left(
      matrix_f(c), {p->k, p->w, from, to},
      {c->pieces, scale_at(c, p->k), parts_at(on.lp, from - p->k), on.ldl,
       place_of(c, 0, p->count), overflow_flag(c)},
      on.stream));
}

/* Splits them into the right one, which has these columns alone. */
int split_right(hone_cuda *c, const hone_cuda_queue &on,
                const hone_cuda_panel_info *p, int64_t from, int64_t to) {
  return CALL(
      hone_cuda_split_u_right(matrix_f(c), {p->k, p->w, from, to},
                              {c->pieces, scale_at(c, p->k), on.up, on.ldu,
                               place_of(c, 0, p->count), overflow_flag(c)},
                              on.stream));
}

/* Splits those from the panel's first inner panel's end to c0, unless they are
   there: rows_of_u has written those of earlier columns. */
int split_panel_u(hone_cuda *c, int panel, int64_t c0, int64_t c1) {
  const hone_cuda_panel_info *p = c->panels + panel;
  const bool there = c->split_panel == panel && c->split_end == c0;
  c->split_panel = panel;
  c->split_end = c1;
  return there ? (int)HONE_OK
               : split_left(c, c->forms.main, p, p->k + inner_width(p, 0), c0);
}

/* Updates the rows r0 .. r1-1 by a panel of an earlier block row. */
int update_later_rows(hone_cuda *c, int panel, int64_t r0, int64_t r1) {
  const hone_cuda_panel_info *p = c->panels + panel;
  const hone_cuda_queue &on = c->forms.main;
  int st = split_left(c, on, p, r0, r1);
  c->split_panel = -1;
  for (int64_t at = r0; at < c->n && st == HONE_OK; at += c->strip) {
    const int64_t to = at + c->strip < c->n ? at + c->strip : c->n;
    st = split_right(c, on, p, at, to);
    TRY(update_rows(c, on, p, r0, r1, at, to, at));
  }
  return st;
}

/* Factors inner panel 'inner' and updates the rest of its outer panel. */
int inner_step(hone_cuda *c, const hone_cuda_queue &on,
               const hone_cuda_panel_info *p, int inner) {
  const int64_t k = inner_start(p, inner);
  const int64_t w = inner_width(p, inner), end = p->k + p->w;
  const hone_cuda_panel_info one = {k, w, 0, 1};
  int st = CALL(hone_cuda_potrf(c->f, c->ld, k, w, zero_pivot_flag(c),
                                overflow_flag(c), on.stream));
  if (st != HONE_OK || k + w >= end)
    return st;
  st = rows_of_u(c, on, &one, 0, w, k + w, end);
  TRY(update_below(c, on, &one, k + w, end, end, k + w));
  return st;
}

} // namespace

int hone_cuda_cholesky_rows(hone_cuda *c, const hone_cuda_queue &on,
                            const hone_cuda_panel_info *p) {
  const int64_t end = p->k + p->w;
  if (end >= c->n)
    return HONE_OK;
  int st = split_left(c, on, p, p->k + inner_width(p, 0), end);
  for (int inner = 0; inner < p->count && st == HONE_OK; inner++) {
    if (inner > 0)
      st = product(
          c, on, p, inner,
          {inner_start(p, inner), inner_width(p, inner), end, c->n, end});
    TRY(rows_of_u(c, on, p, inner, inner_width(p, inner), end, c->n));
  }
  return st;
}

int hone_cuda_cholesky_split(hone_cuda *c, int panel, int64_t from) {
  const hone_cuda_panel_info *p = c->panels + panel;
  int st = split_left(c, c->forms.main, p, from, c->n);
  TRY(split_right(c, c->forms.main, p, from, c->n));
  return st;
}

int hone_cuda_cholesky_update(hone_cuda *c, int panel, int64_t r0, int64_t r1,
                              int64_t from) {
  return update_rows(c, c->forms.main, c->panels + panel, r0, r1, from, c->n,
                     from);
}

const hone_cuda_steps hone_cuda_cholesky_steps = {
    inner_step,   split_panel_u,     rows_of_u, 1,      product,
    update_below, update_later_rows, nullptr,   nullptr};

cudaError_t hone_cuda_potrf(float *f, int64_t ld, int64_t k, int64_t w,
                            int *not_positive, const int *overflow,
                            cudaStream_t stream) {
  const size_t shared = sizeof(block_shared);
  cudaError_t e = cudaFuncSetAttribute(
      potrf, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(potrf, 1, THREADS, shared, stream, f, ld, k, (int)w, not_positive,
              overflow);
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

cudaError_t hone_cuda_split_u_left(const hone_float_matrix &f,
                                   const hone_u_rows &rows,
                                   const hone_operand &left,
                                   cudaStream_t stream) {
  return split_as<true>(f, rows, left, stream);
}

cudaError_t hone_cuda_split_u_right(const hone_float_matrix &f,
                                    const hone_u_rows &rows,
                                    const hone_operand &right,
                                    cudaStream_t stream) {
  return split_as<false>(f, rows, right, stream);
}
