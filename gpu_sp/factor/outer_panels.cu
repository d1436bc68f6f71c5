/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that the blocked LU and Cholesky have in common, in single
   precision, two levels deep. An outer panel has nb columns, its inner panels
   HONE_PANEL:

     for each inner panel     factor it, and update the outer panel's other
                              columns by it
     then, for the columns on the right of the outer panel
                              compute the rows of U, some panels' at a time;
                              update the rows below, with an inner dimension of
                              3 nb

   A block column that arrives later is loaded with its rows in the present
   order, and is brought up to date with the panels before it. In Cholesky's it
   is a block row, and the rows of U of those panels are complete.

   Look-ahead: in large matrices the outer panels are factored on a stream of
   their own. The columns of the next outer panel are brought up to date first.
   While that panel is being factored, on few of the multiprocessors (or with
   its diagonal blocks on the CPU), the update of the other columns goes on, and
   so does that of block columns that have arrived by then. In the LU, the
   columns of the outer panel behind are updated by each inner panel while the
   next one is being factored, so that little is left between two outer
   panels.

   Read next: lu.cu and cholesky.cu for the steps. */
#include "gpu_sp/factor/operands.h"

#include <cmath>

namespace {

const hone_cuda_steps *steps_of(const hone_cuda *c) {
  return c->spd ? &hone_cuda_cholesky_steps : &hone_cuda_lu_steps;
}

bool has_look_ahead(const hone_cuda *c) {
  return c->forms.side.stream != nullptr;
}

/* A product takes every multiprocessor until it ends, and each kernel of the
   panel that is factored beside it would wait for that end. So the products
   that begin with the panel leave room for it: as many multiprocessors as it
   has thread blocks, and a part of all at least. When those that they take have
   done what they can while a panel is factored, the rest is multiplied by all.
   This does not pay where products are left less than a part of the
   multiprocessors. Measured on an H200 (docs/performance.md). */
struct room_beside {
  double panel; /* the least part of the multiprocessors for the panel, and */
  double products; /* for the products */
  double work;     /* floating-point operations that one multiprocessor does
                      while an inner panel is factored, or more: then hardly
                      anything is multiplied by all */
};
const room_beside ROOM = {3.0 / 11, 0.625, HONE_PARTS > 1 ? 0.6e9 : 1.06e9};
/* Where products do not decide, or nothing is known of that, for want of a
   stream ahead; and where several devices wait for the panel. */
const room_beside ROOM_OF_DECIDING_PANELS =
    HONE_PARTS > 1 ? room_beside{0.4, 0.3, 2.4e9} : ROOM;
const room_beside ROOM_OF_SEVERAL = {1.0 / 3, 0.3, ROOM.work};
/* See products_decide; measured on an H200. */
const int64_t PRODUCTS_DECIDE = HONE_PARTS > 1 ? 4608 : 9216;
enum {
  MORE_FOR_PARTS = 2, /* a panel of k parts is taken to last as long as k + 2
                         launches: one for the winners, and the division of the
                         other rows */
  TOGETHER = 512 /* a part of a product has a multiple of so many columns */
};

/* Lets the panel stream begin as soon as the panel's columns are up to date. */
int start_panel_stream(hone_cuda *c, int64_t k) {
  hone_cuda_forms *f = &c->forms;
  int st = HONE_OK;
  if (f->ready_at != k)
    st = CALL(cudaEventRecord(f->ready, c->work));
  f->ready_at = -1;
  TRY_CUDA(cudaStreamWaitEvent(f->side.stream, f->ready, 0));
  TRY_CUDA(cudaEventRecord(f->busy, c->work));
  return st;
}

/* Lets the stream 'work' wait for the panel stream. */
int join_panel_stream(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  int st = CALL(cudaEventRecord(f->factored, f->side.stream));
  TRY_CUDA(cudaStreamWaitEvent(c->work, f->factored, 0));
  return st;
}

/* Returns how many of so many columns, in which the panel updates m rows, are
   to be updated while there is room for the next panel; the work that may be
   done so becomes less. */
int64_t columns_beside(hone_cuda *c, const hone_cuda_panel_info *p, int64_t m,
                       int64_t columns) {
  const double each = (double)hone_split_rows(c->pieces) / HONE_WIDE *
                      HONE_PARTS * HONE_PARTS * 2.0 * (double)p->w * (double)m;
  if (c->room.processors == 0 || !(c->room.work > 0.0) || !(each > 0.0))
    return 0;
  const double wanted = ceil(c->room.work / (TOGETHER * each)) * TOGETHER;
  if (wanted < (double)(columns - TOGETHER / 2))
    columns = (int64_t)wanted;
  c->room.work -= (double)columns * each;
  return columns;
}

/* Updates the rows below the panel in the columns at .. to-1, by rows of U that
   have been computed, from column 'first' on: first some with room for the next
   panel. */
int update_part_below(hone_cuda *c, const hone_cuda_panel_info *p, int64_t at,
                      int64_t to, int64_t end, int64_t first) {
  const hone_cuda_steps *steps = steps_of(c);
  const hone_cuda_queue &on = c->forms.main;
  const int64_t middle = at + columns_beside(c, p, c->n - p->k - p->w, to - at);
  int st = HONE_OK;
  if (middle > at) {
    st = CALL(c->blas->set_processors(on.handle, c->room.processors));
    TRY(steps->below(c, on, p, at, middle, end, first));
    const int all = CALL(c->blas->set_processors(on.handle, 0));
    st = st == HONE_OK ? all : st;
  }
  if (middle < to)
    TRY(steps->below(c, on, p, middle, to, end, first));
  return st;
}

/* Does so, but updates the columns of the panel behind the next one before the
   others, where that is wanted. */
int update_below(hone_cuda *c, const hone_cuda_panel_info *p, int64_t at,
                 int64_t to, int64_t end) {
  hone_cuda_forms *f = &c->forms;
  const int64_t first = at;
  int st = HONE_OK;
  if (c->behind_end > 0 && c->behind_end > at) {
    const int64_t part = c->behind_end < to ? c->behind_end : to;
    st = update_part_below(c, p, at, part, end, first);
    TRY_CUDA(cudaEventRecord(f->behind, c->work));
    f->behind_at = at;
    c->behind_end = 0;
    at = part;
  }
  if (at < to)
    TRY(update_part_below(c, p, at, to, end, first));
  return st;
}

/* Updates the rows below the panel in the columns of the next one, by the rows
   of U that the stream ahead has computed. */
int update_next(hone_cuda *c, const hone_cuda_panel_info *p, int64_t c0,
                int64_t c1, int64_t end) {
  hone_cuda_queue on = c->forms.main;
  on.up = c->forms.ahead.up;
  on.ldu = c->forms.ahead.ldu;
  return steps_of(c)->below(c, on, p, c0, c1, end, c0);
}

/* Computes the panel's rows of U in the columns c0 .. c1-1. */
int compute_rows(hone_cuda *c, const hone_cuda_queue &on,
                 const hone_cuda_panel_info *p, int64_t c0, int64_t c1) {
  const hone_cuda_steps *steps = steps_of(c);
  const int together =
      c->choices.sections == HONE_BLOCK_ROWS_AUTO ? steps->together : 1;
  int st = HONE_OK;
  for (int inner = 0; inner < p->count && st == HONE_OK; inner += together) {
    const int64_t k = inner_start(p, inner);
    const int64_t w = rows_together(p, inner, together);
    if (inner > 0)
      st = steps->product(c, on, p, inner, {k, w, c0, c1, c0});
    TRY(steps->rows(c, on, p, inner, w, c0, c1));
  }
  return st;
}

/* Computes the panel's rows of U in the columns c0 .. c1-1, and updates the
   rows below, Cholesky's up to row end-1; a strip at a time. */
int update_strips(hone_cuda *c, const hone_cuda_panel_info *p, int64_t c0,
                  int64_t c1, int64_t end) {
  int st = HONE_OK;
  for (int64_t at = c0; at < c1 && st == HONE_OK; at += c->strip) {
    const int64_t to = at + c->strip < c1 ? at + c->strip : c1;
    st = compute_rows(c, c->forms.main, p, at, to);
    TRY(update_below(c, p, at, to, end));
  }
  return st;
}

/* Updates the columns c0 .. c1-1 by the panel, whose rows of U there are
   computed first; Cholesky's the rows up to row end-1. */
int update_by_panel(hone_cuda *c, int panel, int64_t c0, int64_t c1,
                    int64_t end) {
  int st = HONE_OK;
  if (c0 >= c1)
    return st;
  st = steps_of(c)->split(c, panel, c0, c1);
  TRY(update_strips(c, c->panels + panel, c0, c1, end));
  return st;
}

/* Updates the columns c0 .. c1-1 of a block column that came later by the
   panels from .. to-1. */
int update_later(hone_cuda *c, int from, int to, int64_t c0, int64_t c1) {
  const hone_cuda_steps *steps = steps_of(c);
  int st = HONE_OK;
  for (int i = from; i < to && c0 < c1 && st == HONE_OK; i++)
    st = steps->later ? steps->later(c, i, c0, c1)
                      : update_by_panel(c, i, c0, c1, c->n);
  return st;
}

/* Returns the end of the columns that are updated first: with look-ahead those
   of the next panel, otherwise all. */
int64_t end_of_first_part(const hone_cuda *c, int64_t c0, int64_t c1) {
  return has_look_ahead(c) && c0 + c->nb < c1 ? c0 + c->nb : c1;
}

/* Returns the end of the columns behind the panel, from c0 on, that are updated
   while it is being factored: those of the next panel. 0: there are none. */
int64_t end_of_next(const hone_cuda *c, int64_t c0, int64_t end) {
  const int64_t next = end_of_first_part(c, c0, end);
  return c->forms.ahead.stream && c0 < end && next - c0 <= c->strip ? next : 0;
}

/* Returns true if the products of a panel last longer than the chain of the
   steps of the next one, which ends at column 'end', so that the stream ahead
   would have too few multiprocessors for products. (Beside the first panel
   there are no products yet.) */
bool products_decide(const hone_cuda *c, int64_t end) {
  const int64_t chosen = c->choices.trial.products_from;
  return hone_cuda_ahead_is_apart(c) &&
         c->n - end >= (chosen > 0 ? chosen : PRODUCTS_DECIDE);
}

/* Returns true if, while panel number 'index' is factored, which ends at column
   'end' and has 'count' inner panels, the stream ahead computes rows of U
   alone: where products decide; where the panel has one inner panel, whose
   product is as soon done on the stream work; and where products read L from F,
   in which the next inner panel moves rows. */
bool computes_rows_alone(const hone_cuda *c, int index, int count,
                         int64_t end) {
  if (c->pieces == HONE_SPLIT_NONE)
    return true;
  return hone_cuda_ahead_is_apart(c) ? index > 0 && products_decide(c, end)
                                     : count == 1;
}

/* Lets the stream ahead update the columns of the panel behind the next one,
   from *c0 on, where it will go on with them; or, where rows of U alone will be
   computed there, lets the products of the stream work begin there. *c0 becomes
   the first column that is left. */
int update_behind(hone_cuda *c, int panel, int64_t *c0, int64_t c1) {
  hone_cuda_forms *f = &c->forms;
  const hone_cuda_panel_info *p = c->panels + panel;
  const int64_t first = *c0, to = end_of_next(c, first, c1);
  hone_cuda_queue on = f->ahead;
  on.lp = f->main.lp;
  on.ldl = f->main.ldl;
  if (to > 0 && computes_rows_alone(c, panel + 1, p->count, first))
    c->behind_end = to;
  if (to == 0 || c->behind_end > 0)
    return HONE_OK;
  f->behind_at = first;
  *c0 = to;
  int st = CALL(cudaEventRecord(f->behind, c->work));
  TRY_CUDA(cudaStreamWaitEvent(on.stream, f->behind, 0));
  TRY(compute_rows(c, on, p, first, to));
  TRY(steps_of(c)->below(c, on, p, first, to, c->n, first));
  TRY_CUDA(cudaEventRecord(f->read, on.stream));
  return st;
}

/* Finds the largest entry of the rows of U above the last panel, which is
   factored meanwhile. */
int search_rows_above(hone_cuda *c, int64_t k) {
  int st = CALL(cudaStreamWaitEvent(c->work, c->forms.ready, 0));
  c->searched = k;
  TRY_CUDA(hone_cuda_largest_u(c->n, k, c->f, c->ld, c->top + c->column_room,
                               c->work));
  return st;
}

/* Lets the stream 'work' wait for what was done ahead, as far as its products
   need it; where there is no stream for that, updates the next panel's columns
   c0 .. c1-1, if rows of U alone were computed there. */
int finish_next(hone_cuda *c, const hone_cuda_panel_info *p, bool alone,
                int64_t c0, int64_t c1) {
  int st = join_panel_stream(c);
  if (hone_cuda_ahead_is_apart(c)) {
    if (!alone)
      TRY_CUDA(cudaStreamWaitEvent(c->work, c->forms.done, 0));
  } else if (alone) {
    TRY(update_next(c, p, c0, c1, c->n));
    TRY(record_ready(c, c0, c->work));
  }
  return st;
}

} // namespace

void hone_cuda_leave_room(hone_cuda *c, int64_t k, int64_t w) {
  const int64_t rows = c->n - k;
  const int64_t blocks = hone_cuda_panel_blocks(rows, c->panel_work);
  const int64_t parts = hone_cuda_panel_parts(rows, c->panel_work.part_rows);
  const int64_t wide = w < c->nb ? w : c->nb;
  const int64_t inner = (wide + HONE_PANEL - 1) / HONE_PANEL;
  const room_beside part =
      c->deal.of > 1
          ? ROOM_OF_SEVERAL
          : (products_decide(c, k + wide) ? ROOM : ROOM_OF_DECIDING_PANELS);
  const int64_t least_room = (int64_t)(part.panel * (double)c->processors);
  const int64_t left =
      (c->processors - (blocks > least_room ? blocks : least_room)) / 2 * 2;
  const double chosen = c->choices.trial.beside;
  c->room = {};
  if (has_look_ahead(c) && !c->spd && three_products(c) &&
      (double)left >= part.products * (double)c->processors)
    c->room = {(int)left,
               (chosen > 0.0 ? chosen : part.work) * (double)(left * inner) *
                   (parts > 1 ? (double)(parts + MORE_FOR_PARTS) : 1.0)};
}

int hone_cuda_factor_panel(hone_cuda *c, int64_t k, int64_t w, int64_t end) {
  const hone_cuda_steps *steps = steps_of(c);
  const int index = c->panel_count;
  hone_cuda_panel_info *p = c->panels + index;
  if (index >= c->panel_room)
    return HONE_INTERNAL;
  *p = {k, w, c->moves_count, (int)((w + HONE_PANEL - 1) / HONE_PANEL)};
  c->split_panel = -1;
  c->ahead_end = end_of_next(c, k + w, end);
  c->rows_alone =
      c->ahead_end > 0 && computes_rows_alone(c, index, p->count, k + w);
  const hone_cuda_queue &on = has_look_ahead(c) ? c->forms.side : c->forms.main;
  int st = has_look_ahead(c) ? start_panel_stream(c, k) : (int)HONE_OK;
  if (has_look_ahead(c) && steps->compose && k + w == c->n)
    TRY(search_rows_above(c, k));
  for (int inner = 0; inner < p->count && st == HONE_OK; inner++)
    st = steps->factor_inner(c, on, p, inner);
  if (c->ahead_end > 0) /* what else has been begun may go on: finish_next */
    TRY_CUDA(cudaStreamWaitEvent(c->work, c->forms.moved, 0));
  else if (has_look_ahead(c))
    TRY(join_panel_stream(c));
  c->panel_count++;
  c->moves_count += p->count;
  if (steps->compose == nullptr || c->ahead_end > 0)
    return st;
  TRY(steps->compose(c, p));
  /* Rows that the next panel does not need move while it is being factored:
     hone_cuda_apply_panel does that. */
  const int64_t loaded = hone_cuda_loaded_end(c);
  const int64_t next = k + w < end ? end_of_first_part(c, k + w, end) : loaded;
  TRY(steps->move(c, p, next < loaded ? 0 : k, k + w, next));
  return st;
}

int hone_cuda_apply_panel(hone_cuda *c, int panel, int64_t c0, int64_t c1) {
  const hone_cuda_steps *steps = steps_of(c);
  const hone_cuda_panel_info *p = c->panels + panel;
  const int64_t end = c1;
  int st = HONE_OK;
  if (c0 < c1 && c0 == p->k + p->w) {
    const int64_t next = end_of_first_part(c, c0, c1),
                  loaded = hone_cuda_loaded_end(c);
    const bool ahead = c->ahead_end > 0, alone = c->rows_alone;
    c->ahead_end = 0;
    /* A stream of its own goes on beside the row moves; otherwise the next
       panel's columns come first. */
    const bool moves_first = hone_cuda_ahead_is_apart(c);
    if (!ahead) {
      st = update_by_panel(c, panel, c0, next, end);
      TRY(record_ready(c, c0, c->work));
    }
    if (ahead && !moves_first)
      st = finish_next(c, p, alone, c0, next);
    if (ahead)
      TRY(steps->compose(c, p));
    if (steps->move && (ahead || next < loaded))
      TRY(steps->move(c, p, p->k, next, loaded));
    if (ahead && moves_first)
      TRY(finish_next(c, p, alone, c0, next));
    hone_cuda_leave_room(c, c0, c1 - c0);
    c0 = next;
    if (hone_cuda_ahead_is_apart(c))
      TRY(update_behind(c, panel, &c0, c1));
  }
  TRY(update_by_panel(c, panel, c0, steps->later ? c->n : c1, end));
  c->room = {};
  return st;
}

int hone_cuda_apply_panels_from(hone_cuda *c, int from, int64_t c0,
                                int64_t c1) {
  const int64_t next = end_of_first_part(c, c0, c1);
  const int last = c->panel_count - 1;
  int st = update_later(c, from, last, c0, c1);
  TRY(update_later(c, last, last + 1, c0, next));
  TRY(record_ready(c, c0, c->work));
  hone_cuda_leave_room(c, c0, c1 - c0);
  TRY(update_later(c, last, last + 1, next, c1));
  c->room = {};
  return st;
}

int hone_cuda_apply_panels(hone_cuda *c, int from, int to, int64_t c0,
                           int64_t c1) {
  return update_later(c, from, to, c0, c1);
}
