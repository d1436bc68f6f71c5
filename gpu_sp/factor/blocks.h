/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things are in the two blocked factorizations, cuda_lu.cu and
   cuda_cholesky.cu: pieces, scales, widths. Included by them alone. */
#ifndef HONE_CUDA_BLOCKS_H
#define HONE_CUDA_BLOCKS_H

#include "gpu_sp/state.h"

namespace {

inline cudaDataType_t piece_type(const hone_cuda *c) {
  return c->pieces == HONE_HALF_3 || c->pieces == HONE_HALF_1 ? CUDA_R_16F
                                                              : CUDA_R_16BF;
}

inline bool three(const hone_cuda *c) {
  return hone_piece_rows(c->pieces) == 3 * HONE_PANEL;
}

/* Where the pieces of inner panel 'inner' of 'count' go: the low products of
   all of them, then the high ones. */
inline hone_piece_place place_of(const hone_cuda *c, int inner, int count) {
  hone_piece_place p = {-1, -1, (int64_t)inner * HONE_PANEL};
  if (three(c)) {
    p.lo = (int64_t)inner * 2 * HONE_PANEL;
    p.hi = p.lo + HONE_PANEL;
    p.hh += (int64_t)count * 2 * HONE_PANEL;
  }
  return p;
}

inline const hone_piece_scale *scale_at(const hone_cuda *c, int64_t column) {
  int i = c->column_count - 1;
  while (i > 0 && c->columns[i].j > column)
    i--;
  return c->scale + i;
}

inline void *pieces_at(void *base, int64_t element) {
  return static_cast<char *>(base) + 2 * element;
}

inline int *flag(hone_cuda *c, int which) { return c->flags + which; }

inline int64_t inner_width(const hone_cuda_panel_info *p, int inner) {
  const int64_t left = p->w - (int64_t)inner * HONE_PANEL;
  return left < HONE_PANEL ? left : (int64_t)HONE_PANEL;
}

/* Columns of a product: those that pad the last ones are worked on too. */
inline int64_t padded(const hone_cuda *c, int64_t c0, int64_t c1) {
  return (c1 == c->n ? c->ld : c1) - c0;
}

} // namespace

#endif
