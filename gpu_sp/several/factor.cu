/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorizations on several devices, P S = L U and S = U^H U. For panel p,
   on the stream 'work' of each device, but for the factorization of the panel
   itself, which has a stream of its own where there is look-ahead:

     its owner    factors the panel
     all          load the columns of A that have arrived (arrive.cu)
     the others   get what the panel gives them (stream 'arrive')
     all          update what they have behind it, that of panel p + 1 first

   Read next: the steps, lu.cu and cholesky.cu. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"

extern "C" {
#include "base/pivot_fall.h"
}

#include <cfloat>

namespace {

/* The host enqueues so many panels ahead: fewer than there are slots. */
enum { PACE = HONE_SEVERAL_SLOTS - 1 };
enum { JUDGED = 4 }; /* the pivots are judged at so many parts of n */

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

/* ---- The judgement of the pivots ----------------------------------------- */

/* Fetches |u_cc|, or u_cc^2 for Cholesky, of the columns j .. j+w-1, which are
   factored. */
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
                                       (hone_several_in_f(s, p) + at % s->nb),
                               (size_t)c->ld * sizeof(float) + bytes, bytes,
                               (size_t)now, cudaMemcpyDeviceToHost, c->fetch));
    TRY_CUDA(cudaStreamSynchronize(c->fetch));
  }
  for (int64_t i = 0; i < w && st == HONE_OK; i++) {
    out[i] = hone_cuda_pivot_size(pivot + HONE_PARTS * i);
    out[i] = s->spd ? out[i] * out[i] : out[i];
  }
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
    hone_several_stand_back(share);
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
    st = s->steps->factor(s, p);
    TRY(hone_several_load(s, a, scaling, p));
    for (int d = 0; d < s->count; d++)
      TRY(s->steps->apply(s, d, p));
  }
  TRY(s->steps->finish(s));
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

/* Completes the copy of an A whose factorization was given up. */
int complete(hone_several *s) {
  int st = settle(s);
  if (s->spd)
    TRY(hone_several_mirror(s, s->panels));
  const int settled = settle(s);
  return st == HONE_OK ? settled : st;
}

} // namespace

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
      st = complete(s);
    const bool complete = info->zero_pivot < 0 && !info->hopeless;
    /* An A that was not inspected yet may only lack scaling. */
    again = st == HONE_OK && complete && !(info->growth <= DBL_MAX) &&
            scaling != nullptr && choose_safer_products(s);
  }
  return st;
}
