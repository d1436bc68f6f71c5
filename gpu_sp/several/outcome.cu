/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the solves what they need of a factorization on several devices
   (factor.cu), some of it while that goes on, and tells what was found of the
   factors. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"

#include <cfloat>
#include <cstring>

namespace {

enum {
  THREADS = 256,
  LAST_PART = 6 /* no more is sent before the end where less than a sixth of
                   the rows is left */
};

/* *max is raised to the bits of the largest magnitude of the u_ij, or of their
   parts, in the share's columns, and to those of Inf for NaN. A thread block
   takes a row of U. */
__global__ void __launch_bounds__(THREADS)
    largest_of_share(const float *f, int64_t ld, int64_t m, hone_cuda_deal deal,
                     unsigned *max) {
  const int64_t i = blockIdx.x, round = deal.width * deal.of;
  /* The first column that is not left of the diagonal. */
  int64_t rest = i % round - deal.width * deal.first;
  rest = rest < 0 ? 0 : (rest < deal.width ? rest : deal.width);
  unsigned top = 0;
  const int64_t from = i / round * deal.width + rest;
  for (int64_t j = HONE_PARTS * from + threadIdx.x; j < HONE_PARTS * m;
       j += THREADS) {
    const float v = fabsf(f[i * ld + j]);
    const unsigned bits = v <= 3.4e38F ? __float_as_uint(v) : 0x7f800000U;
    top = bits > top ? bits : top;
  }
  top = __reduce_max_sync(0xffffffffU, top);
  if (threadIdx.x % 32 == 0)
    atomicMax(max, top);
}

/* Copies the rows up to to-1 of the share's factors, those that have not been
   copied yet, to where the first device has all of F: on the stream 'feed', by
   which A came, behind all that the stream 'work' has to do so far. */
int bring_together(hone_several *s, int d, int64_t to) {
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const hone_cuda *first = s->share[0].c;
  const int64_t from = share->brought;
  int st = CALL(cudaEventRecord(share->pushed, c->work));
  TRY_CUDA(cudaStreamWaitEvent(c->feed, share->pushed, 0));
  for (int p = d; p < s->panels && st == HONE_OK; p += s->count) {
    const size_t width = (size_t)hone_several_width(s, p) * sizeof(hone_single),
                 rows = (size_t)(to - from);
    cudaMemcpy3DPeerParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(
        share->f + from * c->ld + HONE_PARTS * hone_several_place(s, p),
        (size_t)c->ld * sizeof(float), width, rows);
    copy.srcDevice = c->ordinal;
    copy.dstPtr = make_cudaPitchedPtr(
        s->whole + from * s->whole_ld + HONE_PARTS * hone_several_start(s, p),
        (size_t)s->whole_ld * sizeof(float), width, rows);
    copy.dstDevice = first->ordinal;
    copy.extent = make_cudaExtent(width, rows, 1);
    st = CALL(cudaMemcpy3DPeerAsync(&copy, c->feed));
  }
  share->brought = to;
  return st;
}

} // namespace

int hone_several_bring(hone_several *s, int d, int p) {
  hone_share *share = &s->share[d];
  const int64_t final = hone_several_start(s, p + 1);
  const int64_t left = s->n - share->brought;
  if (s->whole == nullptr || s->level < s->parts || p + 1 >= s->panels ||
      left < s->n / LAST_PART || s->n - final > left / 2)
    return HONE_OK;
  return bring_together(s, d, final);
}

int hone_several_finish_together(hone_several *s) {
  hone_cuda *c = s->share[0].c;
  int st = hone_several_enter(&s->share[0]);
  for (int d = 0; d < s->count; d++)
    TRY_CUDA(cudaStreamWaitEvent(c->work, s->share[d].pushed, 0));
  TRY_CUDA(hone_cuda_invert_blocks(s->n, s->whole, s->whole_ld, c->lower,
                                   c->upper, c->work));
  return st;
}

int hone_several_finish(hone_several *s, int d) {
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  int st = hone_several_enter(share);
  if (s->whole) {
    TRY(bring_together(s, d, s->n));
    TRY_CUDA(cudaEventRecord(share->pushed, c->feed));
  }
  for (int p = d; p < s->panels && st == HONE_OK && !s->whole; p += s->count) {
    const int64_t place = hone_several_place(s, p);
    const int64_t at = place / HONE_PANEL * HONE_WIDE * HONE_WIDE;
    st = CALL(hone_cuda_invert_blocks(
        hone_several_width(s, p),
        share->f + hone_several_start(s, p) * c->ld + HONE_PARTS * place, c->ld,
        c->lower + at, c->upper + at, c->work));
  }
  if (st == HONE_OK) {
    HONE_LAUNCH(largest_of_share, (unsigned)s->n, THREADS, 0, c->work, share->f,
                c->ld, c->m, c->deal, c->top + c->column_room);
    st = CALL(cudaGetLastError());
  }
  return st;
}

namespace {

float bits_of(unsigned bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

} // namespace

int hone_several_outcome(hone_several *s, bool complete,
                         hone_factor_info *info) {
  float largest_u = 0.0F, largest_s = 0.0F;
  bool finite = true;
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    hone_factor_info one = {};
    one.growth = HONE_NAN;
    one.zero_pivot = -1;
    TRY(hone_several_enter(&s->share[d]));
    TRY(hone_cuda_outcome(c, complete, &one));
    if (st != HONE_OK)
      continue;
    const float u = bits_of(c->h_top[c->column_room]);
    float of_s = 0.0F;
    for (int i = 0; i < c->column_count; i++) {
      const float top = bits_of(c->h_top[i]);
      of_s = top > of_s ? top : of_s;
    }
    info->flushed += one.flushed;
    if (one.zero_pivot >= 0 &&
        (info->zero_pivot < 0 || one.zero_pivot < info->zero_pivot))
      info->zero_pivot = one.zero_pivot;
    finite = finite && (one.growth <= DBL_MAX || !(of_s > 0.0F));
    largest_u = u > largest_u ? u : largest_u;
    largest_s = of_s > largest_s ? of_s : largest_s;
  }
  if (st == HONE_OK && complete)
    info->growth =
        finite ? (double)largest_u / (double)largest_s : (double)HONE_INF;
  if (st == HONE_OK && complete && s->spd) /* max u_ij^2 / max |s_ij| */
    info->growth *= (double)largest_u;
  return st;
}
