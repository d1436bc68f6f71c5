/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the blocked LU on the device, in single precision:

     factor an inner panel    with pivoting (panel.cu); move the rows in the
                              outer panel's other columns, compute the rows of U
                              and their 16-bit parts, F -= L U on tensor cores
     before an update         move the rows, for all inner panels at once
     rows below a panel       F -= L U

   outer_panels.cu, which calls them, should be read first. Read next: panel.cu,
   steps.cu, then solve/triangles.h. */
#include "gpu_sp/factor/operands.h"
#include "gpu_sp/forms/forms.h"

namespace {

/* Inner panels whose rows of U are computed by one launch; measured on an
   H200. */
enum { ROWS_TOGETHER = HONE_PARTS > 1 ? 2 : 1 };

/* Subtracts L U from the block of F, for k rows of parts from row 'from' on.
   GEMM sees the transpose, U^T L^T. */
int product_of_parts(hone_cuda *c, const hone_cuda_queue &on, int64_t from,
                     int64_t k, const hone_cuda_panel_info *p,
                     const hone_f_block &b) {
  const cudaDataType_t type = part_type(c);
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)padded_columns(c, b.c0, b.c1),
      (int)b.m, (int)k, &scale_at(c, b.c0)->alpha,
      parts_at(on.up, from * on.ldu + HONE_PARTS * (b.c0 - b.first)), type,
      (int)on.ldu, parts_at(on.lp, (b.i - p->k) * on.ldl + from), type,
      (int)on.ldl, c->constants, hone_cuda_f_at(c, b.i, b.c0), CUDA_R_32F,
      (int)c->ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* Does so without parts, in single precision or TF32, for 'wide' columns of
   L. */
int product_of_floats(hone_cuda *c, const hone_cuda_queue &on, int64_t wide,
                      const hone_cuda_panel_info *p, const hone_f_block &b) {
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_32F : CUDA_R_32F;
  const int64_t columns = padded_columns(c, b.c0, b.c1) / HONE_PARTS;
  const int ld = (int)(c->ld / HONE_PARTS);
  return CALL(c->blas->gemm(
      on.handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)columns, (int)b.m, (int)wide,
      hone_cuda_minus_one(c), hone_cuda_f_at(c, p->k, b.c0), type, ld,
      hone_cuda_f_at(c, b.i, p->k), type, ld, c->constants,
      hone_cuda_f_at(c, b.i, b.c0), type, ld,
      c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT));
}

/* Subtracts L U from the block of F, for the panel's first 'inner' inner
   panels. */
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

int update_below(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int64_t c0, int64_t c1, int64_t,
                 int64_t first) {
  const int64_t below = p->k + p->w;
  return product(c, on, p, p->count, {below, c->n - below, c0, c1, first});
}

/* Splits L of an inner panel alone into the operand of products. */
int split_inner_l(hone_cuda *c, const hone_cuda_queue &on,
                  const hone_cuda_panel_info *one) {
  const int64_t below = one->k + one->w;
  return CALL(
      hone_cuda_split_l(matrix_f(c), below, one->k, one->w,
                        {c->pieces, c->scale, parts_at(on.lp, one->w * on.ldl),
                         on.ldl, place_of(c, 0, 1), overflow_flag(c)},
                        on.stream));
}

/* Splits all inner panels of L into the operand of products of the stream
   work, when the stream ahead has read it. */
int split_all_l(hone_cuda *c, const hone_cuda_panel_info *p,
                cudaStream_t stream) {
  const int64_t i0 = p->k + inner_width(p, 0);
  int st = HONE_OK;
  if (hone_cuda_ahead_is_apart(c) && stream != c->forms.ahead.stream)
    st = CALL(cudaStreamWaitEvent(stream, c->forms.read, 0));
  c->split_panel = (int)(p - c->panels);
  TRY_CUDA(hone_cuda_split_l(matrix_f(c), i0, p->k, p->w,
                             {c->pieces, c->scale,
                              parts_at(c->lp, (i0 - p->k) * c->ldl), c->ldl,
                              place_of(c, 0, p->count), overflow_flag(c)},
                             stream));
  return st;
}

/* Does so once for all updates by this panel. */
int split_panel_l(hone_cuda *c, int panel, int64_t, int64_t) {
  return c->split_panel == panel ? (int)HONE_OK
                                 : split_all_l(c, c->panels + panel, c->work);
}

/* Computes w rows of U, from those of the inner panel on, in the columns
   c0 .. c1-1, and their parts. */
int rows_of_u(hone_cuda *c, const hone_cuda_queue &on,
              const hone_cuda_panel_info *p, int inner, int64_t w, int64_t c0,
              int64_t c1) {
  const hone_u_rows rows = {inner_start(p, inner), w, c0, c1};
  const hone_operand to = {c->pieces,
                           scale_at(c, c0),
                           on.up,
                           on.ldu,
                           place_of(c, inner, p->count),
                           overflow_flag(c)};
  if (c->choices.sections != HONE_BLOCK_ROWS_AUTO)
    return hone_cuda_block_row_u(c, on, p->first + inner, rows, to);
  return CALL(hone_cuda_rows(matrix_f(c), rows, to, on.stream));
}

enum hone_pivoting pivoting(const hone_cuda *c) {
  if (c->choices.pivoting == HONE_PIVOT_BLOCK)
    return HONE_BLOCK_ONLY;
  return c->choices.pivoting == HONE_PIVOT_NONE ? HONE_NATURAL
                                                : HONE_TOURNAMENT;
}

/* Factors an inner panel. Where its block row is computed by iteration,
   computes the inverse that the iteration starts from. */
int factor_inner(hone_cuda *c, const hone_cuda_queue &on, int index, int64_t k,
                 int64_t w) {
  if (hone_cuda_cpu_factors_block(c, k))
    return hone_cuda_factor_block_on_cpu(c, on, index, k, w, pivoting(c));
  int st =
      CALL(hone_cuda_panel({matrix_f(c), k, w, pivoting(c)}, c->moves + index,
                           zero_pivot_flag(c), c->panel_work, on.stream));
  if (c->choices.sections == HONE_BLOCK_ROWS_SEEDED)
    TRY(hone_cuda_block_row_seed(c, on, index, k, w));
  return st;
}

/* ---- The columns of the next outer panel -------------------------------- */

/* Lets the stream ahead begin with the columns from c0 on when they are up to
   date with the panel before. */
int start_ahead(hone_cuda *c, int64_t c0) {
  const hone_cuda_forms *f = &c->forms;
  if (!hone_cuda_ahead_is_apart(c))
    return HONE_OK;
  return CALL(cudaStreamWaitEvent(f->ahead.stream,
                                  f->behind_at == c0 ? f->behind : f->busy, 0));
}

/* Returns the queue with the place of the inner panel's L. */
hone_cuda_queue queue_with_slot(const hone_cuda *c, hone_cuda_queue on,
                                int inner) {
  if (c->ahead_end > 0 && c->forms.slots > 1)
    on.lp = parts_at(on.lp, inner * c->n * on.ldl);
  return on;
}

/* Lets the inner panel's L be written when the stream ahead has read the one
   that was there. */
int wait_for_slot(hone_cuda *c, const hone_cuda_queue &on) {
  if (c->ahead_end == 0 || c->forms.slots > 1)
    return HONE_OK;
  return CALL(cudaStreamWaitEvent(on.stream, c->forms.used, 0));
}

/* Moves the rows of the next outer panel's columns and computes this inner
   panel's rows of U in them, on the stream ahead, behind follow_panel. */
int rows_ahead(hone_cuda *c, const hone_cuda_queue &on,
               const hone_cuda_panel_info *p, int inner) {
  hone_cuda_forms *f = &c->forms;
  const hone_cuda_queue &ahead = f->ahead;
  const int64_t k = inner_start(p, inner), c0 = p->k + p->w;
  const bool alone = c->rows_alone;
  int st = inner == 0 ? start_ahead(c, c0) : (int)HONE_OK;
  TRY_CUDA(cudaEventRecord(f->moved, on.stream));
  TRY_CUDA(cudaStreamWaitEvent(ahead.stream, f->moved, 0));
  TRY_CUDA(hone_cuda_rows(
      matrix_f(c),
      {k, inner_width(p, inner), c0, c->ahead_end, c->moves + p->first + inner,
       alone ? k - p->k : 0, alone && inner + 1 == p->count},
      {c->pieces, scale_at(c, c0), ahead.up, ahead.ldu,
       alone ? place_of(c, inner, p->count) : place_of(c, 0, 1),
       overflow_flag(c)},
      ahead.stream));
  return st;
}

/* Updates the rows below the inner panel 'one' in the columns of the next outer
   panel by those rows of U, on the stream ahead. A stream of its own begins
   with that when the next inner panel can be factored, which so has its
   multiprocessors first; behind the last one when its L is split, which nothing
   else has needed. */
int update_ahead(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int inner,
                 const hone_cuda_panel_info *one) {
  hone_cuda_forms *f = &c->forms;
  hone_cuda_queue ahead = f->ahead;
  const int64_t c0 = p->k + p->w;
  const bool last = inner + 1 == p->count;
  int st = last ? split_inner_l(c, on, one) : (int)HONE_OK;
  ahead.lp = on.lp;
  ahead.ldl = on.ldl;
  if (last || hone_cuda_ahead_is_apart(c)) {
    TRY_CUDA(cudaEventRecord(f->updated, on.stream));
    TRY_CUDA(cudaStreamWaitEvent(ahead.stream, f->updated, 0));
  }
  TRY(update_below(c, ahead, one, c0, c->ahead_end, c->n, c0));
  if (f->slots == 1)
    TRY_CUDA(cudaEventRecord(f->used, ahead.stream));
  return st;
}

/* Composes the moves of all inner panels into one list, on the stream 'on'. */
int compose_on(hone_cuda *c, const hone_cuda_panel_info *p, cudaStream_t on) {
  return CALL(hone_cuda_compose(c->moves + p->first, p->count, c->dst, c->src,
                                c->perm, c->new_row, c->identity, on));
}

/* Does so on the stream of the panels, when the moves before have been made and
   columns loaded by the order of rows before: the stream work, which has longer
   to do, will find it done. */
int compose_beside(hone_cuda *c, const hone_cuda_queue &on,
                   const hone_cuda_panel_info *p) {
  hone_cuda_forms *f = &c->forms;
  const hone_cuda_column *last = c->columns + c->column_count - 1;
  int st = CALL(cudaStreamWaitEvent(on.stream, f->in_order, 0));
  TRY_CUDA(cudaStreamWaitEvent(on.stream, last->in_f, 0));
  TRY(compose_on(c, p, on.stream));
  TRY_CUDA(cudaEventRecord(f->composed, on.stream));
  f->composed_panel = (int)(p - c->panels);
  return st;
}

/* Splits all of L for the other products, when the update before has read the
   operand, and records that the columns of the next panel, from c0 on, are up
   to date: at once, or behind the product with rows of U that were computed
   alone, if the stream work does not make it. */
int finish_ahead(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int64_t c0) {
  hone_cuda_forms *f = &c->forms;
  const bool apart = hone_cuda_ahead_is_apart(c);
  const cudaStream_t ahead = f->ahead.stream;
  const cudaStream_t splits = apart && !c->rows_alone ? ahead : on.stream;
  int st = HONE_OK;
  if (!c->rows_alone)
    st = record_ready(c, c0, ahead);
  else if (apart)
    st = compose_beside(c, on, p);
  if (c->rows_alone || c->ahead_end < c->n) {
    TRY_CUDA(cudaStreamWaitEvent(splits, f->busy, 0));
    TRY(split_all_l(c, p, splits));
  }
  if (apart && c->rows_alone) {
    hone_cuda_queue all = f->ahead;
    all.lp = f->main.lp;
    all.ldl = f->main.ldl;
    TRY_CUDA(cudaEventRecord(f->updated, splits));
    TRY_CUDA(cudaStreamWaitEvent(ahead, f->updated, 0));
    TRY(update_below(c, all, p, c0, c->ahead_end, c->n, c0));
    TRY_CUDA(cudaEventRecord(f->read, ahead));
    TRY(record_ready(c, c0, ahead));
  }
  if (apart)
    TRY_CUDA(cudaEventRecord(f->done, ahead));
  return st;
}

/* ---- The steps ----------------------------------------------------------- */

/* Moves rows in the columns from .. k-1 and on the right of inner panel 'one'
   up to end-1, computes its rows of U in the latter, and splits L. */
int follow_panel(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *one, int64_t from, int64_t end) {
  const hone_moves *m = c->moves + one->first;
  const int64_t right = one->k + one->w;
  int st = HONE_OK;
  if (right < end && c->choices.sections == HONE_BLOCK_ROWS_AUTO)
    return CALL(hone_cuda_follow_panel(
        matrix_f(c), {one->k, one->w, right, end, m}, from,
        {c->pieces, scale_at(c, right), on.up, on.ldu, place_of(c, 0, 1),
         overflow_flag(c)},
        {c->pieces, c->scale, parts_at(on.lp, one->w * on.ldl), on.ldl,
         place_of(c, 0, 1), overflow_flag(c)},
        on.stream));
  st = CALL(hone_cuda_move(hone_cuda_f_at(c, 0, from), c->ld, one->k - from,
                           right - from, end - from,
                           {m->dst, m->src, 2 * HONE_PANEL}, on.stream));
  if (right < end) {
    TRY(rows_of_u(c, on, one, 0, one->w, right, end));
    TRY(split_inner_l(c, on, one));
  }
  return st;
}

/* Factors inner panel 'inner' and updates the rest of its outer panel, and the
   columns of the next one. */
int inner_step(hone_cuda *c, const hone_cuda_queue &queue,
               const hone_cuda_panel_info *p, int inner) {
  const int64_t k = inner_start(p, inner);
  const int64_t w = inner_width(p, inner), end = p->k + p->w;
  const hone_cuda_panel_info one = {k, w, p->first + inner, 1};
  const hone_cuda_queue on = queue_with_slot(c, queue, inner);
  int st = factor_inner(c, on, p->first + inner, k, w);
  TRY(wait_for_slot(c, on));
  TRY(follow_panel(c, on, &one, p->k, end));
  if (c->ahead_end > 0)
    TRY(rows_ahead(c, on, p, inner));
  if (k + w < end)
    TRY(update_below(c, on, &one, k + w, end, c->n, k + w));
  if (c->ahead_end > 0 && !c->rows_alone)
    TRY(update_ahead(c, on, p, inner, &one));
  if (c->ahead_end > 0 && inner + 1 == p->count)
    TRY(finish_ahead(c, on, p, end));
  return st;
}

/* Composes the moves of all inner panels for the stream work, or waits for
   that. */
int compose_moves(hone_cuda *c, const hone_cuda_panel_info *p) {
  if (c->forms.composed_panel == (int)(p - c->panels))
    return CALL(cudaStreamWaitEvent(c->work, c->forms.composed, 0));
  return compose_on(c, p, c->work);
}

/* Makes the panel's row moves, which were composed last, in the columns
   0 .. left-1 and c0 .. c1-1. */
int move_rows(hone_cuda *c, const hone_cuda_panel_info *p, int64_t left,
              int64_t c0, int64_t c1) {
  int st = CALL(hone_cuda_move(c->f, c->ld, left, c0, c1,
                               {c->dst, c->src, p->count * 2 * HONE_PANEL},
                               c->work));
  if (hone_cuda_ahead_is_apart(c))
    TRY_CUDA(cudaEventRecord(c->forms.in_order, c->work));
  return st;
}

} // namespace

const hone_cuda_steps hone_cuda_lu_steps = {
    inner_step,   split_panel_l, rows_of_u,     ROWS_TOGETHER, product,
    update_below, nullptr,       compose_moves, move_rows};
