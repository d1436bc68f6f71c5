/* SPDX-License-Identifier: BSD-3-Clause */
/* The operands of the products in the two blocked factorizations: their type,
   scale, width, and place in memory. Included by outer_panels.cu, lu.cu and
   cholesky.cu alone; read these next. */
#ifndef HONE_CUDA_OPERANDS_H
#define HONE_CUDA_OPERANDS_H

#include "gpu_sp/factor/outer_panels.h"

namespace {

inline cudaDataType_t part_type(const hone_cuda *c) {
  return c->pieces == HONE_SPLIT_FP16_3 || c->pieces == HONE_SPLIT_FP16_1
             ? CUDA_R_16F
             : CUDA_R_16BF;
}

inline bool three_products(const hone_cuda *c) {
  return hone_split_rows(c->pieces) == 3 * HONE_WIDE;
}

/* Returns the places of the parts of inner panel 'inner' of 'count' along the
   inner dimension: first come, for all inner panels, the operands of the
   products with low parts, the last inner panel's first, then those of the
   products of high parts. So the operands of the first inner panels lie
   together, from first_place on. */
inline hone_split_place place_of(const hone_cuda *c, int inner, int count) {
  hone_split_place p = {-1, -1, (int64_t)inner * HONE_WIDE};
  if (three_products(c)) {
    p.lo = (int64_t)(count - 1 - inner) * 2 * HONE_WIDE;
    p.hi = p.lo + HONE_WIDE;
    p.hh += (int64_t)count * 2 * HONE_WIDE;
  }
  return p;
}

/* Returns where the operands of the first 'inner' inner panels begin. */
inline int64_t first_place(const hone_cuda *c, int inner, int count) {
  return three_products(c) ? (int64_t)(count - inner) * 2 * HONE_WIDE : 0;
}

/* Returns the scale of the block column that holds the column. */
inline const hone_split_scale *scale_at(const hone_cuda *c, int64_t column) {
  int i = c->column_count - 1;
  while (i > 0 && c->columns[i].j > column + c->standing)
    i--;
  return c->scale + i;
}

/* Returns the address of the 16-bit number with this index. */
inline void *parts_at(void *base, int64_t element) {
  return static_cast<char *>(base) + 2 * element;
}

inline hone_float_matrix matrix_f(const hone_cuda *c) {
  return {c->f, c->ld, c->n};
}

inline int *zero_pivot_flag(hone_cuda *c) { return c->flags; }
inline int *overflow_flag(hone_cuda *c) { return c->flags + 1; }
inline int *asymmetry_flag(hone_cuda *c) { return c->flags + 2; }

/* Records on the stream 'on', with look-ahead, that the columns of the next
   panel, from c0 on, are up to date. */
inline int record_ready(hone_cuda *c, int64_t c0, cudaStream_t on) {
  if (c->forms.side.stream == nullptr)
    return HONE_OK;
  c->forms.ready_at = c0;
  return CALL(cudaEventRecord(c->forms.ready, on));
}

/* The first column and the width of inner panel 'inner' of p. */
inline int64_t inner_start(const hone_cuda_panel_info *p, int inner) {
  return p->k + (int64_t)inner * HONE_PANEL;
}
inline int64_t inner_width(const hone_cuda_panel_info *p, int inner) {
  const int64_t left = p->w - (int64_t)inner * HONE_PANEL;
  return left < HONE_PANEL ? left : (int64_t)HONE_PANEL;
}

/* The rows of U of so many inner panels of p, from 'inner' on, or of those that
   there are. */
inline int64_t rows_together(const hone_cuda_panel_info *p, int inner,
                             int panels) {
  const int64_t left = p->w - (int64_t)inner * HONE_PANEL;
  const int64_t wanted = (int64_t)panels * HONE_PANEL;
  return left < wanted ? left : wanted;
}

/* Returns the number of floats in a row of a product. Those that pad F behind
   the last column take part. (Of a device that has some columns of F alone, as
   in the LU on several, the caller counts them, by other numbers.) */
inline int64_t padded_columns(const hone_cuda *c, int64_t c0, int64_t c1) {
  const bool last = c1 == c->n && (c->deal.of <= 1 || c->spd);
  return (last ? c->ld : HONE_PARTS * c1) - HONE_PARTS * c0;
}

} // namespace

#endif
