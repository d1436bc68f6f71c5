/* SPDX-License-Identifier: BSD-3-Clause */
/* P S = L U by block columns that come to the device and go: see outside.h.
   While the device works on a panel and its update, the host takes the panel
   before it to its memory and loads A's columns that take its place. */
#include "gpu_sp/outside/outside.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/outer_panels.h"

#include <cfloat>

namespace {

/* Places in c->top: max |s_ij| of this block column, of the next one, and a
   place that nobody reads. */
enum { TOP_NOW, TOP_NEXT, TOP_UNUSED, TOPS };

/* The block column of the panels first .. end-1, and how many panels of the
   next one are in F, from its first column on. */
struct block_column {
  int first, end, loaded;
  hone_outside_stage *going; /* the stage of the panel that is being taken; */
  int taken;                 /* all panels before this one have been */
};

int64_t place_of_panel(const hone_outside *o, const block_column *b, int p) {
  return (p - b->first) * o->nb;
}

/* Returns the columns of F that belong to the block column, and those with the
   ones that pad them. */
int64_t width_of(const hone_outside *o, const block_column *b) {
  return place_of_panel(o, b, b->end - 1) + hone_outside_width(o, b->end - 1);
}
int64_t padded_width(const hone_outside *o, const block_column *b) {
  return round_up(width_of(o, b), HONE_CUDA_PADDING);
}

/* Sets c->f so that column k of S is at column 'place' of F. */
void stand_at(hone_outside *o, int64_t k, int64_t place) {
  o->c->f = o->f + HONE_PARTS * (place - k);
  o->c->standing = place - k;
}
void stand_back(hone_outside *o) { stand_at(o, 0, 0); }

/* Updates the columns c0 .. c1-1 of F by panel p, whose L is in F from column
   'place' on, in the present order of rows. */
int update(hone_outside *o, int p, int64_t place, int64_t c0, int64_t c1) {
  const int64_t k = hone_outside_start(o, p);
  if (c0 >= c1)
    return HONE_OK;
  stand_at(o, k, place);
  const int st =
      hone_cuda_apply_panels(o->c, p, p + 1, c0 - place + k, c1 - place + k);
  stand_back(o);
  return st;
}

/* ---- A block column begins ------------------------------------------------
 */

/* The columns that pad the last block column take part in its update: what
   another one has left there must not seem to overflow. */
int clear_padding(const hone_outside *o, const block_column *b) {
  const hone_cuda *c = o->c;
  const int64_t w = width_of(o, b), padding = padded_width(o, b) - w;
  if (padding == 0)
    return HONE_OK;
  return CALL(cudaMemset2DAsync(
      o->f + HONE_PARTS * w, (size_t)c->ld * sizeof(float), 0,
      (size_t)padding * sizeof(hone_single), (size_t)c->n, c->work));
}

/* The next block column, whose first panels are in F, becomes the present one.
 */
int advance(hone_outside *o, block_column *b) {
  hone_cuda *c = o->c;
  const int each = (int)(o->window / o->nb);
  const int first = b->end, loaded = b->loaded;
  const int end = first + each < o->panels ? first + each : o->panels;
  *b = {first, end, 0, nullptr, first};
  int st = CALL(cudaMemcpyAsync(c->top + TOP_NOW, c->top + TOP_NEXT,
                                sizeof(unsigned), cudaMemcpyDeviceToDevice,
                                c->work));
  TRY_CUDA(cudaMemsetAsync(c->top + TOP_NEXT, 0, sizeof(unsigned), c->work));
  TRY(clear_padding(o, b));
  b->loaded = loaded;
  return st;
}

/* Loads what is not in F yet. */
int load_rest(hone_outside *o, const hone_dense *a, const hone_scaling *scaling,
              block_column *b) {
  hone_cuda *c = o->c;
  int st = HONE_OK;
  for (int p = b->first + b->loaded; p < b->end && st == HONE_OK; p++)
    st = hone_outside_send_a(o, a, scaling, p, place_of_panel(o, b, p),
                             c->top + TOP_NOW);
  b->loaded = 0;
  TRY_CUDA(
      hone_cuda_split_scale(c->pieces, c->top + TOP_NOW, c->scale, c->work));
  return st;
}

/* Brings the block column up to date with all panels before it. */
int update_by_all_before(hone_outside *o, const block_column *b) {
  hone_cuda *c = o->c;
  int st = HONE_OK;
  for (int p = 0; p < b->first && st == HONE_OK; p++) {
    if (hone_watch_stop(o->watch, "factor", (double)b->first / o->panels, 0,
                        HONE_NAN))
      return HONE_CANCELLED;
    st = hone_outside_send_l(o, p, o->window, c->top + TOP_UNUSED);
    TRY(update(o, p, o->window, 0, padded_width(o, b)));
  }
  TRY_CUDA(cudaEventRecord(o->ready, c->work));
  return st;
}

/* ---- One panel ----------------------------------------------------------- */

void add_panel(hone_outside *o, int p) {
  hone_cuda *c = o->c;
  const int64_t w = hone_outside_width(o, p);
  const int inner = (int)((w + HONE_PANEL - 1) / HONE_PANEL);
  c->panels[p] = {hone_outside_start(o, p), w, c->moves_count, inner};
  c->panel_count = p + 1;
  c->moves_count += inner;
  c->split_panel = -1;
}

/* Factors panel p when its columns are up to date, beside the update where
   there is look-ahead. */
int factor_panel(hone_outside *o, const block_column *b, int p) {
  hone_cuda *c = o->c;
  const hone_cuda_queue &on =
      c->forms.side.stream ? c->forms.side : c->forms.main;
  const hone_cuda_panel_info *panel = c->panels + p;
  int st = CALL(cudaStreamWaitEvent(on.stream, o->ready, 0));
  stand_at(o, panel->k, place_of_panel(o, b, p));
  for (int inner = 0; inner < panel->count && st == HONE_OK; inner++)
    st = hone_cuda_lu_steps.factor_inner(c, on, panel, inner);
  stand_back(o);
  TRY_CUDA(cudaEventRecord(o->factored, on.stream));
  TRY_CUDA(cudaStreamWaitEvent(c->work, o->factored, 0));
  return st;
}

/* Moves the rows of the columns on the right of panel p, and of those of the
   next block column on its left; updates the former, the columns of the next
   panel first. L on its left has been taken, and stays as it is. */
int apply_panel(hone_outside *o, const block_column *b, int p) {
  hone_cuda *c = o->c;
  const hone_cuda_panel_info *panel = c->panels + p;
  const int64_t place = place_of_panel(o, b, p), from = place + panel->w;
  const int64_t end = p + 1 < b->end ? padded_width(o, b) : from;
  const int64_t first = from + o->nb < end ? from + o->nb : end;
  int st = hone_cuda_lu_steps.compose(c, panel);
  TRY_CUDA(hone_cuda_move(o->f, c->ld, b->loaded * o->nb, from, end,
                          {c->dst, c->src, panel->count * 2 * HONE_PANEL},
                          c->work));
  TRY(update(o, p, place, from, first));
  TRY_CUDA(cudaEventRecord(o->ready, c->work));
  TRY(update(o, p, place, first, end));
  return st;
}

/* Takes the panel that is on its way to the host, and loads the one of the next
   block column that has the same place. */
int take_panel(hone_outside *o, const hone_dense *a,
               const hone_scaling *scaling, block_column *b) {
  hone_outside_stage *stage = b->going;
  const int p = b->taken, next = b->end + (p - b->first);
  b->going = nullptr;
  if (stage == nullptr)
    return HONE_OK;
  int st = hone_outside_end_take(o, p, stage);
  b->taken++;
  if (next >= o->panels || st != HONE_OK)
    return st;
  b->loaded++;
  return hone_outside_send_a(o, a, scaling, next, place_of_panel(o, b, p),
                             o->c->top + TOP_NEXT);
}

/* ---- The loop ------------------------------------------------------------ */

/* Fetches |u_cc| of the columns j .. j+w-1, which have been taken. */
int fetch_pivots(void *ctx, int64_t j, int64_t w, float *out) {
  const hone_outside *o = static_cast<const hone_outside *>(ctx);
  for (int64_t i = 0; i < w; i++)
    out[i] = hone_cuda_pivot_size(
        reinterpret_cast<const float *>(o->to.f + (j + i) * o->to.ld + j + i));
  return HONE_OK;
}

int factor_block_column(hone_outside *o, const hone_dense *a,
                        const hone_scaling *scaling, block_column *b) {
  int st = advance(o, b);
  TRY(load_rest(o, a, scaling, b));
  TRY(update_by_all_before(o, b));
  for (int p = b->first; p < b->end && st == HONE_OK; p++) {
    if (hone_watch_stop(o->watch, "factor", (double)p / o->panels, 0, HONE_NAN))
      return HONE_CANCELLED;
    add_panel(o, p);
    st = factor_panel(o, b, p);
    TRY(apply_panel(o, b, p));
    TRY(take_panel(o, a, scaling, b));
    TRY(hone_outside_begin_take(o, p, place_of_panel(o, b, p), &b->going));
  }
  TRY(take_panel(o, a, scaling, b));
  return st;
}

/* NaN is an overflow, too. */
bool overflowed(const hone_factor_info *info) {
  return !(info->growth <= DBL_MAX);
}

/* Factors until a pivot is zero, the pivots are hopeless, or products have
   overflowed: then growth is infinite. */
int factor_block_columns(hone_outside *o, const hone_dense *a,
                         const hone_scaling *scaling, hone_factor_info *info) {
  hone_cuda *c = o->c;
  block_column b = {};
  *info = {};
  info->growth = HONE_NAN;
  info->zero_pivot = -1;
  int st = hone_cuda_load_clear(c);
  c->column_count = 1; /* all columns have the scale of the block column */
  c->columns[0].j = 0;
  c->columns[0].w = o->n;
  while (b.end < o->panels && st == HONE_OK) {
    st = factor_block_column(o, a, scaling, &b);
    TRY(hone_cuda_outcome(c, true, info));
    if (st != HONE_OK || info->zero_pivot >= 0 || overflowed(info))
      return st;
    const int64_t done = hone_outside_start(o, b.end);
    if (done < o->n)
      st = hone_cuda_judge_pivots(fetch_pivots, o, o->n, done, &info->hopeless);
    if (info->hopeless)
      return st;
  }
  return st;
}

/* Waits for all that was enqueued. */
int settle(hone_outside *o, int st) {
  hone_cuda *c = o->c;
  for (cudaStream_t stream :
       {c->feed, c->forms.side.stream, c->work, c->fetch}) {
    const int waited = stream ? CALL(cudaStreamSynchronize(stream)) : HONE_OK;
    st = st == HONE_OK ? waited : st;
  }
  return st;
}

} // namespace

/* The host finds the growth of factors that are complete; here it is 0. */
int hone_outside_factor(void *self, const hone_matrix *matrix,
                        const hone_scaling *scaling, hone_factor_info *info) {
  hone_outside *o = static_cast<hone_outside *>(self);
  hone_cuda *c = o->c;
  const hone_dense *a = hone_dense_of(matrix);
  const hone_cuda_current meanwhile;
  int st = CALL(cudaSetDevice(c->ordinal));
  for (bool again = true; again && st == HONE_OK;) {
    st = settle(o, factor_block_columns(o, a, scaling, info));
    again = st == HONE_OK && overflowed(info) &&
            (c->pieces != HONE_SPLIT_NONE || c->tf32);
    if (again) {
      c->keep_safer = true;
      c->pieces = HONE_SPLIT_NONE;
      c->tf32 = false;
    }
  }
  const bool complete =
      info->zero_pivot < 0 && !info->hopeless && !overflowed(info);
  if (st == HONE_OK && complete) {
    info->growth = 0.0;
    st = hone_outside_exchange_rows(
        o, reinterpret_cast<const int *>(hone_cuda_pinned(c, HONE_CUDA_PERM)));
  }
  return st;
}
