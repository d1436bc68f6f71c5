/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that factor P S = L U, or S = U^H U, in place in F, in single
   precision: panels, row exchanges, rows of U, and the 16-bit operands that the
   trailing update multiplies on tensor cores. Read next: lu.cu for the blocked
   algorithm, panel.cu for pivoting, steps.cu for the kernels between the
   panels, cholesky.cu for S = U^H U; then solve/triangles.h.

   The caller's matrix A is column-major, but F is kept row by row, f_ij at
   f[i * ld + j]: pivoting moves rows, and a row in contiguous memory moves at
   the speed of memory. Column-major, a move took fifteen times as long. */
#ifndef HONE_CUDA_FACTOR_H
#define HONE_CUDA_FACTOR_H

#include "gpu_sp/launch.h"

/* Entries are floats, or pairs of floats (re, im). A panel has as many floats
   in a row of either, so that it takes the same memory and registers. */
enum {
  HONE_WIDE = 128,                          /* floats in a row of a panel */
  HONE_STEP_FLOATS = 16,                    /* floats in a row of a step */
  HONE_PANEL = HONE_WIDE / HONE_PARTS,      /* columns of a panel, and of the
                                               inverted      blocks */
  HONE_STEP = HONE_STEP_FLOATS / HONE_PARTS /* columns whose pivots are chosen
                                               together */
};

/* The matrix that becomes its factors. */
struct hone_float_matrix {
  float *f;      /* device, n x n entries, row by row: f_ij at
                    f[i * ld + HONE_PARTS * j] */
  int64_t ld, n; /* floats from row to row; order */
};

/* ---- Panels (panel.cu, tall_panel.cu) ----------------------------------- */

/* How the pivots of a panel are chosen. */
enum hone_pivoting {
  HONE_TOURNAMENT, /* among all rows from the diagonal down */
  HONE_BLOCK_ONLY, /* among the rows of the diagonal block */
  HONE_NATURAL     /* not at all: the rows stay in their order */
};

/* The panel F[k:n, k:k+w], w <= HONE_PANEL. */
struct hone_panel {
  hone_float_matrix f;
  int64_t k, w;
  enum hone_pivoting pivoting;
};

/* The row exchanges of one panel. For each of the 2 HONE_PANEL entries with
   dst[i] >= 0, row dst[i] of the new order is row src[i] of the old one. The
   first w entries are the pivot rows, in order. */
struct hone_moves {
  int dst[2 * HONE_PANEL], src[2 * HONE_PANEL];
};

/* The workspace of panels, which use it one after the other, and the number of
   rows of a panel that one launch takes. */
struct hone_panel_room {
  void *memory;      /* hone_cuda_panel_bytes; cleared before the first panel */
  int64_t part_rows; /* at least 2 HONE_PANEL; 0: hone_cuda_panel_rows() */
  bool few_blocks;   /* thread blocks of more rows, where that leaves room for
                        products */
};
/* Returns the bytes for panels of at most n rows. */
int64_t hone_cuda_panel_bytes(int64_t n, int64_t part_rows);
/* Returns the most rows that one launch can hold; tall_panel.cu factors taller
   panels. */
int64_t hone_cuda_panel_rows();
/* Returns the number of thread blocks of a launch for a panel of so many
   rows. */
int hone_cuda_panel_blocks(int64_t rows, const hone_panel_room &room);
/* Factors the panel in place, and puts its rows into their new order. *moves
   (device) is written. *zero_pivot (device) is lowered to the first column
   whose pivot is exactly zero. The launch is cooperative: all its thread blocks
   must be resident at once. */
cudaError_t hone_cuda_panel(const hone_panel &panel, hone_moves *moves,
                            int *zero_pivot, const hone_panel_room &room,
                            cudaStream_t stream);

/* Returns into how many parts a panel of so many rows is divided, each with a
   launch. Where they are several, hone_cuda_panel calls hone_cuda_tall_panel,
   which does the same. */
int64_t hone_cuda_panel_parts(int64_t rows, int64_t part_rows);
/* Returns the bytes that tall panels need of the workspace; 0 where no panel of
   order n is tall. */
int64_t hone_cuda_tall_bytes(int64_t n, int64_t part_rows);
cudaError_t hone_cuda_tall_panel(const hone_panel &panel, hone_moves *moves,
                                 int *zero_pivot, const hone_panel_room &room,
                                 cudaStream_t stream);

/* ---- Operands of products (steps.cu, cholesky.cu) ------------------------ */

/* How GEMM reads the float factors: as they are, or split into 16-bit parts,
   a = hi + lo, for the tensor cores. */
enum hone_split {
  HONE_SPLIT_NONE,   /* not split: GEMM reads F itself, in FP32 or TF32 */
  HONE_SPLIT_FP16_3, /* FP16, three products: hi hi + hi lo + lo hi */
  HONE_SPLIT_BF16_3, /* BF16, three products */
  HONE_SPLIT_FP16_1, /* FP16, one product: hi hi */
  HONE_SPLIT_BF16_1  /* BF16, one product */
};

/* Returns the length that a panel of HONE_PANEL columns takes along the inner
   dimension of a product. With three products the parts of L lie there as
   hi hi lo, those of U as hi lo hi.

   A product of complex matrices is one of real matrices, four times as many
   flops: a row of L is its 2 k floats, and an entry a + b i of U becomes the
   block

     a  b
    -b  a

   so that L U has its real and imaginary parts side by side, as F has. */
inline int64_t hone_split_rows(enum hone_split p) {
  if (p == HONE_SPLIT_NONE)
    return 0;
  return p == HONE_SPLIT_FP16_3 || p == HONE_SPLIT_BF16_3 ? 3 * HONE_WIDE
                                                          : HONE_WIDE;
}

/* The powers of two by which the operands are multiplied before they are
   split, so that low parts in FP16 stay normal numbers and nothing overflows:
   l for L, u for the U of one block column. alpha = -1 / (l u) undoes both in
   GEMM, which reads it on the device. */
struct hone_split_scale {
  float l, u, alpha;
};
/* Computes *scale (device) for a block column of which *top (device) has the
   bits of the largest magnitude. */
cudaError_t hone_cuda_split_scale(enum hone_split split, const unsigned *top,
                                  hone_split_scale *scale, cudaStream_t stream);
/* Computes *scale where S = U^H U, from the tops of the first 'count' block
   columns: no entry of U exceeds the square root of the largest entry of S, and
   block columns that come later are expected to be not much larger. l = u. */
cudaError_t hone_cuda_split_scale_spd(enum hone_split split,
                                      const unsigned *top, int count,
                                      hone_split_scale *scale,
                                      cudaStream_t stream);

/* Three places along the inner dimension of a product, where the parts of the
   HONE_WIDE floats of a panel's L (or the rows of U) begin:

     place  part of L  part of U
     lo        hi         lo
     hi        lo         hi
     hh        hi         hi

   The products with a low part come first, so that GEMM adds them while the sum
   is small. With one product there is only hh; lo and hi are -1. */
struct hone_split_place {
  int64_t lo, hi, hh;
};

/* An operand of products on the device, and how it is made. */
struct hone_operand {
  enum hone_split split;
  const hone_split_scale *scale; /* device; not read for HONE_SPLIT_NONE */
  void *
      out; /* device, ldo: FP16 or BF16 numbers; not used for HONE_SPLIT_NONE */
  int64_t ldo;
  hone_split_place place;
  int *overflow; /* device: becomes nonzero where a part overflows */
};

/* Splits L[i0:n, k:k+w], the strictly lower triangle alone: float c of row i
   goes to out[(i - i0) * ldo + place + c], in HONE_WIDE columns, of which those
   behind column w are zero. If w > HONE_PANEL, every HONE_PANEL columns are
   split like this; their places lie 256 before (lo, hi) or 128 behind (hh)
   those of the columns before them. */
cudaError_t hone_cuda_split_l(const hone_float_matrix &f, int64_t i0, int64_t k,
                              int64_t w, const hone_operand &to,
                              cudaStream_t stream);

/* Rows k .. k+w-1 of U in the columns c0 .. c1-1; w <= HONE_PANEL where the
   functions below do not say what more are. */
struct hone_u_rows {
  int64_t k, w, c0, c1;
  const hone_moves *moves = nullptr; /* device: made in these columns first;
                                        with them, */
  int64_t left = 0;   /* a multiple of HONE_PANEL: so many rows of U above, to
                         k-1, are there, and have not been subtracted */
  int64_t spread = 0; /* nonzero: more thread blocks subtract them, for which
                         enough multiprocessors should be free */
};

/* U = inv(L11) (F[k:k+w, c0:c1] - L10 U0) in place, L11 the unit lower triangle
   of the diagonal block at k, L10 = F[k:k+w, k-left:k] and U0 the rows of U
   above. The parts of row r go to
   out[(place + r) * ldo + c - c0], in HONE_WIDE rows, of which those behind row
   w are zero; complex: each entry as a block of two rows and columns. If
   w > HONE_PANEL, without moves, every HONE_PANEL rows are an inner panel, with
   the places that hone_cuda_split_l gives them. */
cudaError_t hone_cuda_rows(const hone_float_matrix &f, const hone_u_rows &rows,
                           const hone_operand &to, cudaStream_t stream);

/* Does all that follows a panel in other columns of its outer panel, in one
   launch: makes rows.moves in the columns from .. k-1 and c0 .. c1-1, computes
   rows of U in the latter (left = 0) and their parts, u, and splits L below the
   panel into l. */
cudaError_t hone_cuda_follow_panel(const hone_float_matrix &f,
                                   const hone_u_rows &rows, int64_t from,
                                   const hone_operand &u, const hone_operand &l,
                                   cudaStream_t stream);

/* ---- Cholesky (cholesky.cu; the rows in steps.cu) ------------------------ */

/* Replaces the diagonal block F[k:k+w, k:k+w], w <= HONE_PANEL, by U, U^H U
   being that block, in the upper triangle. The strict lower triangle is neither
   read nor written. *not_positive (device) is lowered to the first column whose
   pivot is not positive, or NaN; 1 then stands in for the pivot. Where
   *overflow (device) is not 0, pivots are not to be relied on, and none is
   named. */
cudaError_t hone_cuda_potrf(float *f, int64_t ld, int64_t k, int64_t w,
                            int *not_positive, const int *overflow,
                            cudaStream_t stream);

/* The rows of U once more, as the left operand of products. The parts of row r
   are at out[(place + r) * ldo + c - c0], and their places those of L's parts;
   complex: rows 2 r and 2 r + 1 have the parts of the conjugate. */
struct hone_left_operand {
  void *out; /* device, ldo */
  int64_t ldo;
};

/* U = inv(U11^H) F[k:k+w, c0:c1] in place, U11 the upper triangle of the
   diagonal block at k. Both operands are written; see hone_cuda_rows for the
   right one. */
cudaError_t hone_cuda_rows_spd(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream);

/* Write the left operand alone, and the right one, from rows of U that are in
   F, in the columns c0 .. c1-1. If w > HONE_PANEL, every HONE_PANEL rows are an
   inner panel, with the places that hone_cuda_split_l gives them, and columns
   behind its diagonal block alone. */
cudaError_t hone_cuda_split_u_left(const hone_float_matrix &f,
                                   const hone_u_rows &rows,
                                   const hone_operand &left,
                                   cudaStream_t stream);
cudaError_t hone_cuda_split_u_right(const hone_float_matrix &f,
                                    const hone_u_rows &rows,
                                    const hone_operand &right,
                                    cudaStream_t stream);

/* ---- Row exchanges and growth (moves.cu) --------------------------------- */

/* Row dst[i] of the new order is row src[i] of the old one, i < entries <=
   2048, on the device; dst[i] = -1: entry i is not used. */
struct hone_move_list {
  const int *dst, *src;
  int entries;
};

/* Moves the rows of F in the columns 0 .. left-1 and c0 .. c1-1. */
cudaError_t hone_cuda_move(float *f, int64_t ld, int64_t left, int64_t c0,
                           int64_t c1, const hone_move_list &list,
                           cudaStream_t stream);

/* Composes the moves of 'panels' panels into one list of 2 HONE_PANEL panels
   entries (src has room for twice as many), and applies it to perm (perm[i] is
   the original row of row i) and to place, the inverse of perm. map: n ints,
   0 .. n-1 before and after. All on the device. */
cudaError_t hone_cuda_compose(const hone_moves *moves, int panels, int *dst,
                              int *src, int *perm, int *place, int *map,
                              cudaStream_t stream);

/* *max (device) is raised to the bits of the largest |f_ij|; to Inf's for
   NaN. */
cudaError_t hone_cuda_largest(int64_t n, const float *f, int64_t ld,
                              unsigned *max, cudaStream_t stream);
/* Finds the largest magnitude in the upper triangle's first rows alone. */
cudaError_t hone_cuda_largest_u(int64_t n, int64_t rows, const float *f,
                                int64_t ld, unsigned *max, cudaStream_t stream);

#endif
