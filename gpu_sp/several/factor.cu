/* SPDX-License-Identifier: BSD-3-Clause */
/* P S = L U on several devices. For panel p, on the stream 'work' of each
   device, but for the factorization of the panel itself, which has a stream of
   its own where there is look-ahead:

     all          load the columns of A that have arrived (arrive.cu)
     its owner    factors the panel
     the others   get L of it, and its row exchanges (stream 'arrive')
     all          move the rows of their columns on its right; update these, the
                  columns of panel p + 1 first; move the rows of L on its left

   The steps are those of lu.cu, which see S by its own columns: while a device
   works on panel p, c->f is set beside F so that column k of S, the first of
   the panel, is where the device has the panel. All rows are in the same order
   on all devices, which compose the exchanges each for itself. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/outer_panels.h"

extern "C" {
#include "base/pivot_fall.h"
}

#include <cfloat>

namespace {

/* The host enqueues so many panels ahead: fewer than there are slots. */
enum { PACE = HONE_SEVERAL_SLOTS - 1 };
enum { JUDGED = 4 }; /* the pivots are judged at so many parts of n */

/* ---- One panel ----------------------------------------------------------- */

/* Sets c->f so that column k of S is at the share's column 'place'. */
void stand_at(hone_share *share, int64_t k, int64_t place) {
  share->c->f = share->f + HONE_PARTS * (place - k);
  share->c->standing = place - k;
}
void stand_back(hone_share *share) { stand_at(share, 0, 0); }

/* Every state has the same list of panels. */
void add_panel(hone_several *s, int p) {
  const int64_t w = hone_several_width(s, p);
  const int inner = (int)((w + HONE_PANEL - 1) / HONE_PANEL);
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    c->panels[p] = {hone_several_start(s, p), w, c->moves_count, inner};
    c->panel_count = p + 1;
    c->moves_count += inner;
    c->split_panel = -1;
  }
}

/* Returns the queue on which the share factors panels. */
const hone_cuda_queue &panel_queue(const hone_share *share) {
  const hone_cuda_forms &f = share->c->forms;
  return f.side.stream ? f.side : f.main;
}

/* Factors panel p on its owner. */
int factor_panel(hone_several *s, int p) {
  hone_share *share = &s->share[hone_several_owner(s, p)];
  hone_cuda *c = share->c;
  const hone_cuda_queue &on = panel_queue(share);
  const hone_cuda_panel_info *panel = c->panels + p;
  const int slot = p % HONE_SEVERAL_SLOTS;
  int st = hone_several_enter(share);
  TRY_CUDA(cudaStreamWaitEvent(on.stream, share->ready, 0));
  stand_at(share, panel->k, hone_several_place(s, p));
  for (int inner = 0; inner < panel->count && st == HONE_OK; inner++)
    st = hone_cuda_lu_steps.factor_inner(c, on, panel, inner);
  stand_back(share);
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

/* Moves the rows of the columns c0 .. loaded-1 of share d's F, and updates
   those before c1 by panel p. */
int update_columns(hone_several *s, int d, int p, int64_t c0, int64_t c1,
                   int64_t loaded) {
  int st = c0 < loaded ? move_rows(&s->share[d], p, 0, c0, loaded) : HONE_OK;
  if (c0 < c1)
    TRY(hone_several_update(s, d, p, c0, c1));
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
  if (next)
    TRY_CUDA(cudaEventRecord(share->ready, c->work));
  if (from < c->m)
    TRY(update_columns(s, d, p, first, end, hone_several_end(s, d, s->loaded)));
  TRY_CUDA(cudaEventRecord(share->used[slot], c->work));
  TRY(move_left(s, d, p));
  return st;
}

/* ---- The judgement of the pivots ----------------------------------------- */

/* Fetches |u_cc| of the columns j .. j+w-1, which are factored. */
int fetch_pivots(void *ctx, int64_t j, int64_t w, float *out) {
  hone_several *s = static_cast<hone_several *>(ctx);
  float pivot[HONE_PARTS * HONE_PIVOT_SAMPLE];
  const size_t bytes = HONE_PARTS * sizeof(float);
  int st = w <= HONE_PIVOT_SAMPLE ? (int)HONE_OK : (int)HONE_INTERNAL;
  for (int64_t at = j, now; at < j + w && st == HONE_OK; at += now) {
    const int p = (int)(at / s->nb);
    const int64_t end = hone_several_start(s, p) + hone_several_width(s, p);
    const hone_share *share = &s->share[hone_several_owner(s, p)];
    const hone_cuda *c = share->c;
    now = end < j + w ? end - at : j + w - at;
    st = hone_several_enter(share);
    TRY_CUDA(cudaMemcpy2DAsync(pivot + HONE_PARTS * (at - j), bytes,
                               share->f + at * c->ld +
                                   HONE_PARTS *
                                       (hone_several_place(s, p) + at % s->nb),
                               (size_t)c->ld * sizeof(float) + bytes, bytes,
                               (size_t)now, cudaMemcpyDeviceToHost, c->fetch));
    TRY_CUDA(cudaStreamSynchronize(c->fetch));
  }
  for (int64_t i = 0; i < w && st == HONE_OK; i++)
    out[i] = hone_cuda_pivot_size(pivot + HONE_PARTS * i);
  return st;
}

/* Waits until the panel before the last PACE ones is factored, and judges the
   pivots when one more of JUDGED parts of the columns is. */
int keep_pace(hone_several *s, int p, bool *hopeless) {
  const int behind = p - PACE;
  if (behind < 0)
    return HONE_OK;
  const hone_share *share = &s->share[hone_several_owner(s, behind)];
  const int64_t done = hone_several_start(s, behind + 1);
  const bool another =
      done * JUDGED / s->n > hone_several_start(s, behind) * JUDGED / s->n;
  int st =
      CALL(cudaEventSynchronize(share->factored[behind % HONE_SEVERAL_SLOTS]));
  if (another && done < s->n)
    TRY(hone_cuda_judge_pivots(fetch_pivots, s, s->n, done, hopeless));
  return st;
}

/* Waits for all that was enqueued. */
int settle(hone_several *s) {
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    hone_share *share = &s->share[d];
    cudaStream_t streams[] = {share->c->feed, share->arrive,
                              share->c->forms.side.stream, share->c->work};
    stand_back(share);
    const int now = hone_several_enter(share);
    st = st == HONE_OK ? now : st;
    for (cudaStream_t stream : streams) {
      const int waited = stream ? CALL(cudaStreamSynchronize(stream)) : HONE_OK;
      st = st == HONE_OK ? waited : st;
    }
  }
  return st;
}

/* ---- The loop ------------------------------------------------------------ */

int factor_panels(hone_several *s, const hone_dense *a,
                  const hone_scaling *scaling, hone_factor_info *info) {
  if (hone_watch_stop(s->watch, "factor", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  int st = hone_several_begin(s, a, scaling);
  TRY(hone_several_enter(&s->share[0]));
  TRY_CUDA(cudaEventRecord(s->share[0].ready, s->share[0].c->work));
  for (int p = 0; p < s->panels && st == HONE_OK; p++) {
    if (hone_watch_stop(s->watch, "factor", (double)p / s->panels, 0, HONE_NAN))
      return HONE_CANCELLED;
    st = keep_pace(s, p, &info->hopeless);
    if (st != HONE_OK || info->hopeless)
      return st;
    add_panel(s, p);
    st = factor_panel(s, p);
    TRY(hone_several_load(s, a, scaling, p));
    for (int d = 0; d < s->count; d++)
      TRY(apply_panel(s, d, p));
  }
  for (int d = 0; d < s->count; d++)
    TRY(hone_several_finish(s, d));
  if (s->whole)
    TRY(hone_several_finish_together(s));
  return st;
}

/* Lets the next factorization use plain FP32 products, where the FP16 parts of
   this one overflowed. Returns false if this one used FP32 already. */
bool choose_safer_products(hone_several *s) {
  bool untried = false;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    untried = untried || c->pieces != HONE_SPLIT_NONE || c->tf32;
    c->keep_safer = true;
    c->pieces = HONE_SPLIT_NONE;
    c->tf32 = false;
  }
  return untried;
}

} // namespace

int hone_several_update(hone_several *s, int d, int p, int64_t c0, int64_t c1) {
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
  stand_back(share);
  return st;
}

int hone_several_factor(void *self, const hone_matrix *matrix,
                        const hone_scaling *scaling, hone_factor_info *info) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_dense *a = hone_dense_of(matrix);
  const hone_cuda_current meanwhile;
  int st = HONE_OK;
  for (bool again = true; again && st == HONE_OK;) {
    *info = {};
    info->growth = HONE_NAN; /* unless the factors are complete */
    info->zero_pivot = -1;
    st = factor_panels(s, a, scaling, info);
    const int settled = settle(s);
    st = st == HONE_OK ? settled : st;
    TRY(hone_several_outcome(s, !info->hopeless, info));
    if (st != HONE_OK)
      hone_several_stop(s);
    else if (info->hopeless) /* the rest of A has been sent */
      st = settle(s);
    const bool complete = info->zero_pivot < 0 && !info->hopeless;
    /* An A that was not inspected yet may only lack scaling. */
    again = st == HONE_OK && complete && !(info->growth <= DBL_MAX) &&
            scaling != nullptr && choose_safer_products(s);
  }
  return st;
}
