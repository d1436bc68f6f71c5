/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of S = U^H U on several devices, which factor.cu calls for panel p.
   The columns of A's lower triangle that a device has are block rows of F, from
   the diagonal on:

     its owner    factors the diagonal block of block row p, and computes the
                  rows of U behind it
     the others   get these rows (stream 'arrive')
     all          update their block rows behind them, block row p + 1 first

   Every device has all of F: rows of U that come stay where they are needed for
   block rows that come later (arrive.cu), and for the solves. Nothing moves, so
   that no device waits until others have read what it sent. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/outer_panels.h"

namespace {

/* The steps find the scale of panel p by its columns' numbers in A: sets them
   beside those of this device, which has a part's columns under other ones. */
void stand_at(hone_share *share, const hone_several *s, int p) {
  share->c->standing = hone_several_place(s, p) - hone_several_start(s, p);
}

/* Factors panel p on its owner. */
int factor_panel(hone_several *s, int p) {
  hone_share *share = &s->share[hone_several_owner(s, p)];
  hone_cuda *c = share->c;
  const hone_cuda_queue &on = hone_several_panel_queue(share);
  const hone_cuda_panel_info *panel = c->panels + p;
  int st = hone_several_enter(share);
  TRY_CUDA(cudaStreamWaitEvent(on.stream, share->ready, 0));
  stand_at(share, s, p);
  for (int inner = 0; inner < panel->count && st == HONE_OK; inner++)
    st = hone_cuda_cholesky_steps.factor_inner(c, on, panel, inner);
  TRY(hone_cuda_cholesky_rows(c, on, panel));
  hone_several_stand_back(share);
  TRY_CUDA(cudaEventRecord(share->factored[p % HONE_SEVERAL_SLOTS], on.stream));
  return st;
}

/* Sends share d, which is the current one, the rows of U of panel p, from the
   diagonal on. */
int get_panel(hone_several *s, int d, int p) {
  const hone_share *from = &s->share[hone_several_owner(s, p)];
  hone_share *to = &s->share[d];
  const int64_t k = hone_several_start(s, p);
  const int slot = p % HONE_SEVERAL_SLOTS;
  const size_t width = (size_t)(s->n - k) * sizeof(hone_single);
  const size_t rows = (size_t)hone_several_width(s, p);
  auto at = [&](const hone_share *share) {
    return make_cudaPitchedPtr(hone_cuda_f_at(share->c, k, k),
                               (size_t)share->c->ld * sizeof(float), width,
                               rows);
  };
  cudaMemcpy3DPeerParms copy = {};
  copy.srcPtr = at(from);
  copy.srcDevice = from->c->ordinal;
  copy.dstPtr = at(to);
  copy.dstDevice = to->c->ordinal;
  copy.extent = make_cudaExtent(width, rows, 1);
  int st = CALL(cudaStreamWaitEvent(to->arrive, from->factored[slot], 0));
  TRY_CUDA(cudaMemcpy3DPeerAsync(&copy, to->arrive));
  TRY_CUDA(cudaEventRecord(to->got[slot], to->arrive));
  TRY_CUDA(cudaStreamWaitEvent(to->c->work, to->got[slot], 0));
  return st;
}

/* Updates the block rows that are share d's columns c0 .. c1-1 by panel p,
   whose operands are there from column 'from' of S on. */
int update_rows(hone_several *s, int d, int p, int64_t c0, int64_t c1,
                int64_t from) {
  hone_cuda *c = s->share[d].c;
  int st = HONE_OK;
  for (int64_t j = c0, w; j < c1 && st == HONE_OK; j += w) {
    const int64_t row = hone_cuda_dealt_column(c, j);
    w = s->nb < c1 - j ? s->nb : c1 - j;
    st = hone_cuda_cholesky_update(c, p, row, row + w, from);
  }
  return st;
}

int update(hone_several *s, int d, int p, int64_t c0, int64_t c1) {
  hone_share *share = &s->share[d];
  if (c0 >= c1)
    return HONE_OK;
  const int64_t from = hone_cuda_dealt_column(share->c, c0);
  stand_at(share, s, p);
  int st = hone_cuda_cholesky_split(share->c, p, from);
  TRY(update_rows(s, d, p, c0, c1, from));
  hone_several_stand_back(share);
  return st;
}

/* Brings share d up to date with panel p. */
int apply_panel(hone_several *s, int d, int p) {
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const bool next = p + 1 < s->panels && hone_several_owner(s, p + 1) == d;
  const int64_t end = hone_several_end(s, d, s->level);
  const int64_t c0 = hone_several_before(s, d, p + 1);
  const int64_t first = next && c0 + s->nb < end ? c0 + s->nb : end;
  int st = hone_several_enter(share);
  if (d == hone_several_owner(s, p))
    TRY_CUDA(cudaStreamWaitEvent(c->work,
                                 share->factored[p % HONE_SEVERAL_SLOTS], 0));
  else
    TRY(get_panel(s, d, p));
  if (c0 < end) {
    const int64_t from = hone_cuda_dealt_column(c, c0);
    stand_at(share, s, p);
    TRY(hone_cuda_cholesky_split(c, p, from));
    TRY(update_rows(s, d, p, c0, first, from));
    if (next)
      TRY_CUDA(cudaEventRecord(share->ready, c->work));
    TRY(update_rows(s, d, p, first, end, from));
    hone_several_stand_back(share);
  }
  return st;
}

/* Every device solves with all of F: inverts the diagonal blocks on each, and
   finds max |u_ij| on the first one. */
int finish(hone_several *s) {
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    TRY(hone_several_enter(&s->share[d]));
    TRY_CUDA(
        hone_cuda_invert_blocks(s->n, c->f, c->ld, c->lower, nullptr, c->work));
    if (d == 0)
      TRY_CUDA(hone_cuda_largest_u(s->n, s->n, c->f, c->ld,
                                   c->top + c->column_room, c->work));
  }
  return st;
}

} // namespace

const hone_several_steps hone_several_cholesky_steps = {
    factor_panel, apply_panel, update, finish};
