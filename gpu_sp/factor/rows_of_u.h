/* SPDX-License-Identifier: BSD-3-Clause */
/* The triangular solve that computes the pivot rows of U in the blocked LU, or
   rows of U in Cholesky's, by a thread block for some columns, in single
   precision. Device code; included by steps.cu alone. Read split_float.h
   first. */
#ifndef HONE_CUDA_ROWS_OF_U_H
#define HONE_CUDA_ROWS_OF_U_H

#include "gpu_sp/factor/number.h"
#include "gpu_sp/factor/split_float.h"

namespace {

enum {
  STEP = HONE_STEP,
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

/* Makes the row moves of a panel in the lanes' column. f: its first row. */
__device__ __forceinline__ void move_in_column(float *f, int64_t ld, bool in,
                                               const hone_moves *moves,
                                               int group) {
  constexpr int EACH = 2 * HONE_PANEL / ROWS_GROUPS;
  number v[EACH];
  int to[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int i = group + e * ROWS_GROUPS;
    to[e] = in ? moves->dst[i] : -1;
    v[e] = to[e] < 0 ? number_of(0.0F)
                     : load_number(f + (int64_t)moves->src[i] * ld);
  }
  __syncthreads(); /* all read before one is overwritten */
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (to[e] >= 0)
      store_number(f + (int64_t)to[e] * ld, v[e]);
}

/* Makes them where rows of U will be stored: takes the warp's pivot rows, which
   the first w entries name, from where they are, and moves only the rows that
   they displace, one of SHARE lanes with the same column. Loads L11 meanwhile,
   where it is needed next. f: the first row of the lanes' column; diagonal: the
   diagonal block. */
template <int SHARE>
__device__ __forceinline__ void
take_pivot_rows(number (&v)[STEP][1], float *f, const float *diagonal,
                int64_t ld, bool in, const hone_u_rows &rows, int tid,
                rows_shared<1> *sh) {
  const bool moves = tid % 32 < 32 / SHARE;
  const int w = (int)rows.w, first = tid / 32 * STEP;
  number other[STEP];
  int pivot[STEP], from[STEP], to[STEP];
#pragma unroll
  for (int r = 0; r < STEP; r++) {
    const int i = first + r; /* w + i < 2 HONE_PANEL */
    pivot[r] = in && i < w ? rows.moves->src[i] : -1;
    to[r] = in && moves ? rows.moves->dst[w + i] : -1;
    from[r] = rows.moves->src[w + i];
  }
  if (rows.left == 0)
    load_triangle<false, 1>(diagonal, ld, w, tid, sh);
#pragma unroll
  for (int r = 0; r < STEP; r++) {
    v[r][0] = pivot[r] < 0 ? number_of(0.0F)
                           : load_number(f + (int64_t)pivot[r] * ld);
    other[r] =
        to[r] < 0 ? number_of(0.0F) : load_number(f + (int64_t)from[r] * ld);
  }
  __syncthreads(); /* all read before one is overwritten */
#pragma unroll
  for (int r = 0; r < STEP; r++)
    if (to[r] >= 0)
      store_number(f + (int64_t)to[r] * ld, other[r]);
}

/* Subtracts products with the rows p of STEP rows of U for which p % SHARE is
   'share'. l: L10's columns at those rows. */
template <int SHARE>
__device__ __forceinline__ void
subtract_share(number (&v)[STEP][1], const number (*l)[ROWS_STRIDE], int row,
               int share, int column, const number (*u)[32 / SHARE]) {
#pragma unroll
  for (int p = 0; p < STEP; p += SHARE) {
    const number x = u[p + share][column];
#pragma unroll
    for (int r = 0; r < STEP; r++)
      v[r][0] = less_product(v[r][0], l[p + share][row + r], x);
  }
}

/* v -= L10 U0, a block of HONE_PANEL columns of L10 at a time. SHARE lanes have
   the same column of v and divide the products among them, in the same way
   wherever the column is. f_column: the first row of the lanes' column of F.
   Behind *sh there is room for a block of U0. */
template <int SHARE>
__device__ __forceinline__ void
subtract_above(number (&v)[STEP][1], const float *f, const float *f_column,
               int64_t ld, bool in, const hone_u_rows &rows, int tid,
               rows_shared<1> *sh) {
  constexpr int COLUMNS = 32 / SHARE, ROWS_AT_ONCE = ROWS_THREADS / COLUMNS;
  number(*u)[COLUMNS] = reinterpret_cast<number(*)[COLUMNS]>(sh + 1);
  const int lane = tid % 32, group = tid / 32, w = (int)rows.w;
  const int share = lane / COLUMNS, column = lane % COLUMNS;
#pragma unroll
  for (int r = 0; r < STEP; r++)
    v[r][0] = share == 0 ? v[r][0] : number_of(0.0F);
  for (int64_t q = rows.k - rows.left; q < rows.k; q += HONE_PANEL) {
#pragma unroll 16
    for (int n = tid; n < HONE_PANEL * HONE_PANEL; n += ROWS_THREADS) {
      const int i = n / HONE_PANEL, j = n % HONE_PANEL;
      sh->l[j][i] =
          i < w ? load_number(f + (rows.k + i) * ld + HONE_PARTS * (q + j))
                : number_of(0.0F);
    }
#pragma unroll
    for (int j = tid / COLUMNS; j < HONE_PANEL; j += ROWS_AT_ONCE)
      u[j][column] =
          in ? load_number(f_column + (q + j) * ld) : number_of(0.0F);
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < ROWS_GROUPS; step++)
      subtract_share<SHARE>(v, &sh->l[step * STEP], group * STEP, share, column,
                            &u[step * STEP]);
    __syncthreads();
  }
#pragma unroll
  for (int other = COLUMNS; other < 32; other *= 2)
#pragma unroll
    for (int r = 0; r < STEP; r++)
      v[r][0] = plus(v[r][0], shuffle(v[r][0], lane ^ other));
}

/* v = inv(L11) v for rows of U of 32 E columns, of which warp g holds STEP rows
   from row STEP g on. In each step one warp finishes its rows, and the later
   warps subtract multiples of them from their own. SPD: U11^H stands in the
   place of L11. */
template <bool SPD, int E>
__device__ __forceinline__ void solve_triangle(number (&v)[STEP][E], int tid,
                                               rows_shared<E> *sh) {
  const int lane = tid % 32, group = tid / 32;
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
}

/* Loads the lanes' rows of F, from column c on. */
template <int E>
__device__ __forceinline__ void load_rows(number (&v)[STEP][E], const float *f,
                                          int64_t ld, int64_t c, int group,
                                          const hone_u_rows &rows) {
  const int first = group * STEP;
  const float *at = f + (rows.k + first) * ld + HONE_PARTS * c;
#pragma unroll
  for (int r = 0; r < STEP; r++)
#pragma unroll
    for (int e = 0; e < E; e++)
      v[r][e] = first + r < rows.w && c + 32 * e < rows.c1
                    ? load_number(at + r * ld + HONE_PARTS * 32 * e)
                    : number_of(0.0F);
}

/* Stores them, and their parts. */
template <class T, int PARTS, bool SPD, int E>
__device__ __forceinline__ void
store_rows(const number (&v)[STEP][E], float *f, int64_t ld, int64_t c,
           int group, const hone_u_rows &rows, const hone_split_scale *scale,
           const rows_out<T> &o) {
  const int first = group * STEP;
  float *at = f + (rows.k + first) * ld + HONE_PARTS * c;
  const float factor = PARTS > 0 ? scale->u : 1.0F;
#pragma unroll
  for (int r = 0; r < STEP; r++) {
    const int i = first + r;
#pragma unroll
    for (int e = 0; e < E; e++) {
      if (c + 32 * e >= rows.c1)
        continue;
      if (i < rows.w)
        store_number(at + r * ld + HONE_PARTS * 32 * e, v[r][e]);
      if (PARTS > 0)
        put_parts<T, PARTS, SPD>(o, times(v[r][e], factor), i,
                                 c - rows.c0 + 32 * e);
    }
  }
}

/* U = inv(L11) F, in place, for a thread block's 32 E columns. The bound is the
   rate at which entries of L11 are read, the same one by all lanes, so a lane
   takes several columns where there are many. SPD: U11^H stands in the place of
   L11, and the left operand of the products is written as well. */
template <class T, int PARTS, bool SPD, int E>
__device__ __forceinline__ void
solve_rows_of_block(float *f, int64_t ld, const hone_u_rows &rows,
                    const hone_split_scale *scale, const rows_out<T> &o,
                    rows_shared<E> *sh) {
  const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 32;
  const int64_t c = rows.c0 + (int64_t)blockIdx.x * (32 * E) + lane;
  number v[STEP][E];
  load_rows<E>(v, f, ld, c, group, rows);
  load_triangle<SPD, E>(f + rows.k * ld + HONE_PARTS * rows.k, ld, (int)rows.w,
                        tid, sh);
  solve_triangle<SPD, E>(v, tid, sh);
  store_rows<T, PARTS, SPD, E>(v, f, ld, c, group, rows, scale, o);
}

/* Does so for the rows of several inner panels, one after the other, of which
   the products with those above are subtracted. Behind *sh there is room for a
   block of U0. */
template <class T, int PARTS>
__device__ __forceinline__ void
solve_panels_of_block(float *f, int64_t ld, const hone_u_rows &rows,
                      const hone_split_scale *scale, rows_out<T> o,
                      rows_shared<1> *sh) {
  const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 32;
  const int64_t c = rows.c0 + (int64_t)blockIdx.x * 32 + lane;
  const int64_t end = rows.k + rows.w;
  hone_u_rows one = rows;
#pragma unroll 1
  for (; one.k < end; one.k += HONE_PANEL, one.left += HONE_PANEL) {
    number v[STEP][1];
    one.w = end - one.k < HONE_PANEL ? end - one.k : (int64_t)HONE_PANEL;
    load_rows<1>(v, f, ld, c, group, one);
    if (one.left > 0)
      subtract_above<1>(v, f, f + HONE_PARTS * c, ld, c < one.c1, one, tid, sh);
    load_triangle<false, 1>(f + one.k * ld + HONE_PARTS * one.k, ld, (int)one.w,
                            tid, sh);
    solve_triangle<false, 1>(v, tid, sh);
    store_rows<T, PARTS, false, 1>(v, f, ld, c, group, one, scale, o);
    o.place = place_behind(o.place, 1);
    __syncthreads(); /* the next rows need these, and their place for L11 */
  }
}

/* Does so for the rows of one inner panel, which move first. ABOVE: products
   with the rows of U above are subtracted, by SHARE lanes for each column,
   which all compute the same before and after that; one of them stores. */
template <class T, int PARTS, bool ABOVE, int SHARE>
__device__ __forceinline__ void
solve_moved_rows_of_block(float *f, int64_t ld, const hone_u_rows &rows,
                          const hone_split_scale *scale, const rows_out<T> &o,
                          rows_shared<1> *sh) {
  constexpr int COLUMNS = 32 / SHARE;
  const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 32;
  const int64_t c = rows.c0 + (int64_t)blockIdx.x * COLUMNS + lane % COLUMNS;
  const float *diagonal = f + rows.k * ld + HONE_PARTS * rows.k;
  float *column = f + HONE_PARTS * c;
  const bool in = c < rows.c1;
  number v[STEP][1];
  take_pivot_rows<SHARE>(v, column, diagonal, ld, in, rows, tid, sh);
  if constexpr (ABOVE) {
    subtract_above<SHARE>(v, f, column, ld, in, rows, tid, sh);
    load_triangle<false, 1>(diagonal, ld, (int)rows.w, tid, sh);
  }
  solve_triangle<false, 1>(v, tid, sh);
  if (lane < COLUMNS)
    store_rows<T, PARTS, false, 1>(v, f, ld, c, group, rows, scale, o);
}

} // namespace

#endif
