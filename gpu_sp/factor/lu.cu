/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocked LU on the device, two levels deep. An outer panel of nb
   columns, inner panels of 128:

     for each inner panel     LU with pivoting (cuda_panel.cu)
                              its row moves, to the outer panel's other columns
                              its rows of U there, cut into pieces on the way
                              F -= L U there, pieces by tensor cores
     then, for the columns on the right of the outer panel
                              all its row moves at once
                              its rows of U, 128 at a time
                              F -= L U with an inner dimension of 3 nb

   A block column that arrives later is put into the order of the rows as
   they then are, and brought up to date with the panels before it.

   Look-ahead: in matrices that are large enough the outer panels are factored
   on a stream beside. The columns of the next one are brought up to date
   first, and while it is being factored, on few of the multiprocessors (or the
   CPU has its diagonal blocks), the update of the other columns goes on, and of
   block columns that have come by then. */
#include "gpu_sp/factor/blocks.h"

namespace {

/* F[i : i+m, c0:c1] -= L U by the pieces rows from .. from+k-1, in cuBLAS's
   eyes the transpose: U^T L^T. */
int piece_product(hone_cuda *c, const hone_cuda_lane &on, int64_t from,
                  int64_t k, const hone_cuda_panel_info *p, int64_t i,
                  int64_t m, int64_t c0, int64_t c1) {
  const cudaDataType_t type = piece_type(c);
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)padded(c, c0, c1), (int)m,
      (int)k, &scale_at(c, c0)->alpha, pieces_at(on.up, from * on.ldu), type,
      (int)on.ldu, pieces_at(on.lp, (i - p->k) * on.ldl + from), type,
      (int)on.ldl, c->constants, c->f + i * c->ld + c0, CUDA_R_32F, (int)c->ld,
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* F[i : i+m, c0:c1] -= L[i.., the panel's first 'inner' inner panels] U. */
int product(hone_cuda *c, const hone_cuda_lane &on,
            const hone_cuda_panel_info *p, int inner, int64_t i, int64_t m,
            int64_t c0, int64_t c1) {
  const int64_t wide = (int64_t)inner * HONE_PANEL;
  if (m <= 0 || c1 <= c0)
    return HONE_OK;
  if (c->pieces == HONE_FLOATS)
    return CALL(c->blas->gemm(
        on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)padded(c, c0, c1), (int)m,
        (int)(wide < p->w ? wide : p->w), c->constants + 1,
        c->f + p->k * c->ld + c0, CUDA_R_32F, (int)c->ld,
        c->f + i * c->ld + p->k, CUDA_R_32F, (int)c->ld, c->constants,
        c->f + i * c->ld + c0, CUDA_R_32F, (int)c->ld,
        c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT));
  if (!three(c))
    return piece_product(c, on, 0, wide, p, i, m, c0, c1);
  if (inner == p->count)
    return piece_product(c, on, 0, 3 * wide, p, i, m, c0, c1);
  int st = piece_product(c, on, 0, 2 * wide, p, i, m, c0, c1);
  if (st == HONE_OK)
    st = piece_product(c, on, (int64_t)p->count * 2 * HONE_PANEL, wide, p, i, m,
                       c0, c1);
  return st;
}

/* Pieces of inner panel 'inner' of L. */
int cut_l(hone_cuda *c, const hone_cuda_lane &on, const hone_cuda_panel_info *p,
          int inner) {
  const int64_t k = p->k + (int64_t)inner * HONE_PANEL;
  const int64_t w = inner_width(p, inner);
  return CALL(
      hone_cuda_split_l(c->pieces, c->n, c->f, c->ld, k + w, k, w, c->scale,
                        pieces_at(on.lp, (k + w - p->k) * on.ldl), on.ldl,
                        place_of(c, inner, p->count), flag(c, 1), on.stream));
}

/* Those of all its inner panels. */
int cut_all(hone_cuda *c, const hone_cuda_panel_info *p) {
  const int64_t i0 = p->k + inner_width(p, 0);
  return CALL(hone_cuda_split_l(c->pieces, c->n, c->f, c->ld, i0, p->k, p->w,
                                c->scale,
                                pieces_at(c->lp, (i0 - p->k) * c->ldl), c->ldl,
                                place_of(c, 0, p->count), flag(c, 1), c->work));
}

/* The inner panel's rows of U in the columns c0 .. c1-1, and their pieces. */
int rows_of_u(hone_cuda *c, const hone_cuda_lane &on,
              const hone_cuda_panel_info *p, int inner, int64_t c0,
              int64_t c1) {
  const int64_t k = p->k + (int64_t)inner * HONE_PANEL;
  if (c->choices.sections != HONE_BLOCK_ROWS_AUTO)
    return hone_cuda_section_u(c, on, p->first + inner, k,
                               inner_width(p, inner), c0, c1, scale_at(c, c0),
                               place_of(c, inner, p->count));
  return CALL(hone_cuda_rows(
      c->pieces, c->f, c->ld, k, inner_width(p, inner), c0, c1, scale_at(c, c0),
      on.up, on.ldu, place_of(c, inner, p->count), flag(c, 1), on.stream));
}

enum hone_pivoting pivoting(const hone_cuda *c) {
  if (c->choices.pivoting == HONE_PIVOT_BLOCK)
    return HONE_BLOCK_ONLY;
  return c->choices.pivoting == HONE_PIVOT_NONE ? HONE_NATURAL
                                                : HONE_TOURNAMENT;
}

/* The LU of an inner panel alone, and the inverse that seeds its sections. */
int factor_inner(hone_cuda *c, const hone_cuda_lane &on, int index, int64_t k,
                 int64_t w) {
  if (hone_cuda_by_cpu(c, k))
    return hone_cuda_diagonal(c, on, index, k, w, pivoting(c));
  int st = CALL(hone_cuda_panel(c->n, c->f, c->ld, k, w, pivoting(c),
                                c->moves + index, flag(c, 0), c->panel_work,
                                on.stream));
  if (st == HONE_OK && c->choices.sections == HONE_BLOCK_ROWS_SEEDED)
    st = hone_cuda_section_seed(c, on, index, k, w);
  return st;
}

/* Inner panel 'inner' and what it does to the rest of its outer panel. */
int inner_step(hone_cuda *c, const hone_cuda_lane &on,
               const hone_cuda_panel_info *p, int inner) {
  const int64_t k = p->k + (int64_t)inner * HONE_PANEL;
  const int64_t w = inner_width(p, inner), end = p->k + p->w;
  hone_moves *m = c->moves + p->first + inner;
  const hone_cuda_panel_info one = {k, w, p->first + inner, 1};
  int st = factor_inner(c, on, p->first + inner, k, w);
  if (st == HONE_OK) /* the outer panel's other columns */
    st = CALL(hone_cuda_move(c->f + p->k, c->ld, k - p->k, k + w - p->k,
                             end - p->k, m->dst, m->src, 2 * HONE_PANEL,
                             on.stream));
  if (st != HONE_OK || k + w >= end)
    return st;
  st = rows_of_u(c, on, &one, 0, k + w, end);
  if (st == HONE_OK)
    st = cut_l(c, on, &one, 0);
  if (st == HONE_OK)
    st = product(c, on, &one, 1, k + w, c->n - k - w, k + w, end);
  return st;
}

bool beside(const hone_cuda *c) { return c->forms.side.stream != nullptr; }

/* The stream beside begins as soon as the panel's columns are up to date. */
int go_beside(hone_cuda *c, int64_t k) {
  hone_cuda_forms *f = &c->forms;
  int st = HONE_OK;
  if (f->ready_at != k)
    st = CALL(cudaEventRecord(f->ready, c->work));
  f->ready_at = -1;
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(f->side.stream, f->ready, 0));
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(f->busy, c->work));
  return st;
}

int come_back(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  int st = CALL(cudaEventRecord(f->factored, f->side.stream));
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(c->work, f->factored, 0));
  return st;
}

/* The columns c0 .. c1-1 in strips. */
int apply_strips(hone_cuda *c, const hone_cuda_panel_info *p, int64_t c0,
                 int64_t c1) {
  const hone_cuda_lane &on = c->forms.main;
  const int64_t below = p->k + p->w;
  int st = HONE_OK;
  for (int64_t at = c0; at < c1 && st == HONE_OK; at += c->strip) {
    const int64_t to = at + c->strip < c1 ? at + c->strip : c1;
    for (int inner = 0; inner < p->count && st == HONE_OK; inner++) {
      const int64_t k = p->k + (int64_t)inner * HONE_PANEL;
      if (inner > 0)
        st = product(c, on, p, inner, k, inner_width(p, inner), at, to);
      if (st == HONE_OK)
        st = rows_of_u(c, on, p, inner, at, to);
    }
    if (st == HONE_OK)
      st = product(c, on, p, p->count, below, c->n - below, at, to);
  }
  return st;
}

/* What the panels from .. to-1 do to the columns c0 .. c1-1. */
int apply_some(hone_cuda *c, int from, int to, int64_t c0, int64_t c1) {
  int st = HONE_OK;
  for (int i = from; i < to && c0 < c1 && st == HONE_OK; i++) {
    if (c->split != i)
      st = cut_all(c, c->panels + i);
    c->split = i;
    if (st == HONE_OK)
      st = apply_strips(c, c->panels + i, c0, c1);
  }
  return st;
}

/* The end of the columns that are brought up to date first: those of the
   next panel, where that is factored beside; otherwise all at once. */
int64_t first_part(const hone_cuda *c, int64_t c0, int64_t c1) {
  return beside(c) && c0 + c->nb < c1 ? c0 + c->nb : c1;
}

/* The columns from c0 on that the next panel takes are up to date. */
int tell_ready(hone_cuda *c, int64_t c0) {
  if (!beside(c))
    return HONE_OK;
  c->forms.ready_at = c0;
  return CALL(cudaEventRecord(c->forms.ready, c->work));
}

/* The panel's row moves, composed last, in the columns up to 'left' and from c0
   to c1. */
int move_rows(hone_cuda *c, const hone_cuda_panel_info *p, int64_t left,
              int64_t c0, int64_t c1) {
  return CALL(hone_cuda_move(c->f, c->ld, left, c0, c1, c->dst, c->src,
                             p->count * 2 * HONE_PANEL, c->work));
}

} // namespace

int hone_cuda_factor_panel(hone_cuda *c, int64_t k, int64_t w, int64_t end) {
  const int index = c->panel_count;
  hone_cuda_panel_info *p = c->panels + index;
  if (index >= c->panel_room)
    return HONE_INTERNAL;
  *p = {k, w, c->moves_count, (int)((w + HONE_PANEL - 1) / HONE_PANEL)};
  c->split = -1;
  const hone_cuda_lane &on = beside(c) ? c->forms.side : c->forms.main;
  int st = beside(c) ? go_beside(c, k) : (int)HONE_OK;
  for (int inner = 0; inner < p->count && st == HONE_OK; inner++)
    st = inner_step(c, on, p, inner);
  if (st == HONE_OK && beside(c))
    st = come_back(c);
  c->panel_count++;
  c->moves_count += p->count;
  if (st == HONE_OK)
    st = CALL(hone_cuda_compose(c->moves + p->first, p->count, c->dst, c->src,
                                c->perm, c->place, c->map, c->work));
  /* What is not needed for the next panel is moved when that is on its way:
     by hone_cuda_apply. */
  const int64_t loaded = hone_cuda_loaded(c);
  const int64_t next = k + w < end ? first_part(c, k + w, end) : loaded;
  return st == HONE_OK ? move_rows(c, p, next < loaded ? 0 : k, k + w, next)
                       : st;
}

int hone_cuda_apply(hone_cuda *c, int panel, int64_t c0, int64_t c1) {
  const int64_t below = c->panels[panel].k + c->panels[panel].w;
  int st = HONE_OK;
  if (c0 < c1 && c0 == below) {
    const hone_cuda_panel_info *p = c->panels + panel;
    const int64_t next = first_part(c, c0, c1), loaded = hone_cuda_loaded(c);
    st = apply_some(c, panel, panel + 1, c0, next);
    if (st == HONE_OK)
      st = tell_ready(c, c0);
    if (st == HONE_OK && next < loaded)
      st = move_rows(c, p, p->k, next, loaded);
    c0 = next;
  }
  return st == HONE_OK ? apply_some(c, panel, panel + 1, c0, c1) : st;
}

int hone_cuda_update(hone_cuda *c, int from, int64_t c0, int64_t c1) {
  const int64_t next = first_part(c, c0, c1);
  const int last = c->panel_count - 1;
  int st = apply_some(c, from, last, c0, c1);
  if (st == HONE_OK)
    st = apply_some(c, last, last + 1, c0, next);
  if (st == HONE_OK)
    st = tell_ready(c, c0);
  if (st == HONE_OK)
    st = apply_some(c, last, last + 1, next, c1);
  return st;
}

int hone_cuda_catch_up(hone_cuda *c, int from, int to, int64_t c0, int64_t c1) {
  return apply_some(c, from, to, c0, c1);
}
