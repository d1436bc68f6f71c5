/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of P S = L U on several devices, which factor.cu calls for panel p:

     its owner    factors the panel
     the others   get L of it, and its row exchanges (stream 'arrive')
     all          move the rows of their columns on its right; update these, the
                  columns of panel p + 1 first; move the rows of L on its left;
                  send the first device rows that change no more (outcome.cu)

   They are those of gpu_sp/factor/lu.cu, which see S by its own columns: while
   a device works on panel p, c->f is set beside F so that column k of S, the
   first of the panel, is where the device has the panel. All rows are in the
   same order on all devices, which compose the exchanges each for itself. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/outer_panels.h"

namespace {

/* Sets c->f so that column k of S is at the share's column 'place'. */
void stand_at(hone_share *share, int64_t k, int64_t place) {
  share->c->f = share->f + HONE_PARTS * (place - k);
  share->c->standing = place - k;
}

/* Factors panel p on its owner. */
int factor_panel(hone_several *s, int p) {
  hone_share *share = &s->share[hone_several_owner(s, p)];
  hone_cuda *c = share->c;
  const hone_cuda_queue &on = hone_several_panel_queue(share);
  const hone_cuda_panel_info *panel = c->panels + p;
  const int slot = p % HONE_SEVERAL_SLOTS;
  int st = hone_several_enter(share);
  TRY_CUDA(cudaStreamWaitEvent(on.stream, share->ready, 0));
  stand_at(share, panel->k, hone_several_place(s, p));
  for (int inner = 0; inner < panel->count && st == HONE_OK; inner++)
    st = hone_cuda_lu_steps.factor_inner(c, on, panel, inner);
  hone_several_stand_back(share);
  TRY_CUDA(cudaEventRecord(share->factored[slot], on.stream));
  return st;
}

/* Sends share d, which is the current one, L of panel p from its first row on,
   and the row exchanges. */
int get_panel(hone_several *s, int d, int p) {
  const hone_share *from = &s->share[hone_several_owner(s, p)];
  hone_share *to = &s->share[d];
  const hone_cuda_panel_info *panel = to->c->panels + p;
  const int slot = p % HONE_SEVERAL_SLOTS;
  const size_t width = (size_t)(HONE_PARTS * panel->w) * sizeof(float);
  const size_t rows = (size_t)(s->n - panel->k);
  auto at = [&](const hone_share *share, int number) {
    float *first = share->f + panel->k * share->c->ld +
                   HONE_PARTS * hone_several_place_of_l(s, number, p);
    return make_cudaPitchedPtr(first, (size_t)share->c->ld * sizeof(float),
                               width, rows);
  };
  cudaMemcpy3DPeerParms copy = {};
  copy.srcPtr = at(from, hone_several_owner(s, p));
  copy.srcDevice = from->c->ordinal;
  copy.dstPtr = at(to, d);
  copy.dstDevice = to->c->ordinal;
  copy.extent = make_cudaExtent(width, rows, 1);
  int st = CALL(cudaStreamWaitEvent(to->arrive, from->factored[slot], 0));
  if (p >= HONE_SEVERAL_SLOTS)
    TRY_CUDA(cudaStreamWaitEvent(to->arrive, to->used[slot], 0));
  TRY_CUDA(cudaMemcpy3DPeerAsync(&copy, to->arrive));
  TRY_CUDA(cudaMemcpyPeerAsync(to->c->moves + panel->first, to->c->ordinal,
                               from->c->moves + panel->first, from->c->ordinal,
                               (size_t)panel->count * sizeof(hone_moves),
                               to->arrive));
  TRY_CUDA(cudaEventRecord(to->got[slot], to->arrive));
  TRY_CUDA(cudaStreamWaitEvent(to->c->work, to->got[slot], 0));
  return st;
}

/* Moves the rows of the columns 0 .. left-1 and c0 .. c1-1 of the share's F by
   the exchanges of panel p, which were composed last. */
int move_rows(hone_share *share, int p, int64_t left, int64_t c0, int64_t c1) {
  const hone_cuda *c = share->c;
  return CALL(hone_cuda_move(
      share->f, c->ld, left, c0, c1,
      {c->dst, c->src, c->panels[p].count * 2 * HONE_PANEL}, c->work));
}

/* Updates the columns c0 .. c1-1 of share d's F, whose rows are in the present
   order, by panel p. */
int update(hone_several *s, int d, int p, int64_t c0, int64_t c1) {
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const int64_t k = hone_several_start(s, p);
  const int64_t place = hone_several_place_of_l(s, d, p);
  int st = HONE_OK;
  stand_at(share, k, place);
  for (int i = 0; i < c->column_count; i++) { /* each has a scale of its own */
    const bool last = i + 1 == c->column_count;
    const int64_t j = c->columns[i].j, end = last ? c1 : c->columns[i + 1].j;
    const int64_t from = j > c0 ? j : c0, to = end < c1 ? end : c1;
    if (from < to)
      TRY(hone_cuda_apply_panels(c, p, p + 1, from - place + k,
                                 to - place + k));
  }
  hone_several_stand_back(share);
  return st;
}

/* Moves the rows of the columns c0 .. loaded-1 of share d's F, and updates
   those before c1 by panel p. */
int update_columns(hone_several *s, int d, int p, int64_t c0, int64_t c1,
                   int64_t loaded) {
  int st = c0 < loaded ? move_rows(&s->share[d], p, 0, c0, loaded) : HONE_OK;
  if (c0 < c1)
    TRY(update(s, d, p, c0, c1));
  return st;
}

/* Moves the rows of L on the left of panel p, and those of L that is kept for
   columns that come later. Other devices may still be reading L of the share's
   last panel before it. */
int move_left(hone_several *s, int d, int p) {
  const hone_share *share = &s->share[d];
  const int64_t left = hone_several_before(s, d, p);
  const int64_t c0 = share->padded + HONE_SEVERAL_SLOTS * s->nb;
  const int64_t kept = s->level < s->parts ? p * s->nb - left : 0;
  int last = p - 1;
  while (last >= 0 && hone_several_owner(s, last) != d)
    last--;
  int st = HONE_OK;
  for (int e = 0; e < s->count && last >= 0; e++)
    if (e != d)
      TRY_CUDA(cudaStreamWaitEvent(
          share->c->work, s->share[e].got[last % HONE_SEVERAL_SLOTS], 0));
  if (left > 0 || kept > 0)
    TRY(move_rows(&s->share[d], p, left, c0, c0 + kept));
  return st;
}

/* Brings share d up to date with panel p. */
int apply_panel(hone_several *s, int d, int p) {
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const int slot = p % HONE_SEVERAL_SLOTS;
  const bool next = p + 1 < s->panels && hone_several_owner(s, p + 1) == d;
  const int64_t end = hone_several_end(s, d, s->level);
  const int64_t from = hone_several_before(s, d, p + 1);
  const int64_t first = next && from + s->nb < end ? from + s->nb : end;
  int st = hone_several_enter(share);
  if (d == hone_several_owner(s, p))
    TRY_CUDA(cudaStreamWaitEvent(c->work, share->factored[slot], 0));
  else
    TRY(get_panel(s, d, p));
  TRY(hone_cuda_lu_steps.compose(c, c->panels + p));
  if (from < c->m)
    TRY(update_columns(s, d, p, from, first, first));
  if (next) {
    TRY_CUDA(cudaEventRecord(share->ready, c->work));
    hone_cuda_leave_room(c, hone_several_start(s, p + 1), s->nb);
  }
  if (from < c->m)
    TRY(update_columns(s, d, p, first, end, hone_several_end(s, d, s->loaded)));
  c->room = {};
  TRY_CUDA(cudaEventRecord(share->used[slot], c->work));
  TRY(move_left(s, d, p));
  TRY(hone_several_bring(s, d, p));
  return st;
}

int finish(hone_several *s) {
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++)
    TRY(hone_several_finish(s, d));
  if (s->whole)
    TRY(hone_several_finish_together(s));
  return st;
}

} // namespace

const hone_several_steps hone_several_lu_steps = {factor_panel, apply_panel,
                                                  update, finish};
