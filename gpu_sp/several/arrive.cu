/* SPDX-License-Identifier: BSD-3-Clause */
/* A comes to several devices beside the factorization (factor.cu). It is
   divided into parts of whole rounds of panels; every device gets its columns
   of a part before those of the next one, and all get them at the same time.
   The panels of a part are factored, and the parts that have arrived are
   updated, while the next ones are on their way.

   A part that arrives when panels before it are factored is loaded into F with
   its rows in their present order, and then brought up to date with these
   panels, some of them beside each panel that is factored before the part's
   turn comes: panels leave the devices time. For that every device needs L of
   these panels once more. So until the last part is up to date every device
   keeps L of other devices' panels, in room of its own behind its columns, and
   moves its rows with each later panel, as it does with the rows of its own L.
   Where there is no memory for that, A comes at once.

   A column is updated by the same products whenever it arrives: results do not
   depend on the time that A takes. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/pieces.h"

#include <cstring>

namespace {

/* A thread of the pool serves the device that its number gives it, as one of
   HONE_CUDA_FEEDERS, and then the others, unless each thread of a device has
   sums of its own there (feed/project.h). */
void feed_all(void *ctx, int64_t worker) {
  hone_several *s = static_cast<hone_several *>(ctx);
  const hone_cuda_projection *p = &s->share[0].c->projection;
  const int served = p->wanted && p->trans ? 1 : s->count;
  for (int i = 0; i < served; i++) {
    hone_cuda *c = s->share[(worker + i) % s->count].c;
    if (c->job.running)
      hone_cuda_pieces_work(c, worker / s->count);
  }
}

/* All devices project A on the same weights. */
void share_weights(hone_several *s) {
  const hone_cuda_projection *first = &s->share[0].c->projection;
  for (int d = 1; d < s->count; d++)
    if (first->wanted && s->share[d].c->projection.wanted)
      memcpy(s->share[d].c->projection.memory, first->memory,
             (size_t)s->n * sizeof(hone_entry));
}

/* The columns that pad a device's own take part in the update: factors that
   overflow leave NaN there. */
int clear_padding(const hone_share *share) {
  const hone_cuda *c = share->c;
  const size_t bytes = (size_t)(share->padded - c->m) * sizeof(hone_single);
  if (bytes == 0)
    return HONE_OK;
  return CALL(cudaMemset2DAsync(share->f + HONE_PARTS * c->m,
                                (size_t)c->ld * sizeof(float), 0, bytes,
                                (size_t)c->n, c->work));
}

/* Lets the threads begin to send A. */
int start(hone_several *s, const hone_dense *a, const hone_scaling *scaling) {
  int st = HONE_OK;
  bool running = false;
  for (int d = 0; d < s->count && st == HONE_OK; d++) {
    st = hone_several_enter(&s->share[d]);
    TRY(hone_cuda_load_begin(s->share[d].c, a, scaling));
    TRY(clear_padding(&s->share[d]));
    s->share[d].brought = 0;
    running = running || s->share[d].c->job.running;
  }
  if (st != HONE_OK || !running)
    return st;
  share_weights(s);
  if (s->n >= HONE_THREADS_FROM)
    hone_pool_start(s->pool, (int64_t)s->count * HONE_CUDA_FEEDERS, feed_all,
                    s);
  return st;
}

/* *yes becomes true if all devices have their columns of the next part. */
int has_arrived(const hone_several *s, bool *yes) {
  int st = HONE_OK;
  *yes = true;
  for (int d = 0; d < s->count && *yes && st == HONE_OK; d++) {
    const hone_cuda_column *col = s->share[d].c->columns + s->loaded;
    *yes = hone_cuda_column_sent(col);
    const cudaError_t e = *yes ? cudaEventQuery(col->fed) : cudaSuccess;
    *yes = *yes && e == cudaSuccess;
    if (e == cudaErrorNotReady)
      (void)cudaGetLastError();
    else
      st = CALL(e);
  }
  return st;
}

/* Loads the next part on all devices; waits until it has been sent. */
int load_part(hone_several *s, const hone_dense *a,
              const hone_scaling *scaling) {
  int st = HONE_OK;
  for (int d = 0; d < s->count && st == HONE_OK; d++) {
    hone_cuda *c = s->share[d].c;
    const int64_t j = s->loaded > 0 ? hone_cuda_loaded_end(c) : 0;
    st = hone_several_enter(&s->share[d]);
    TRY(hone_cuda_load_next(c, a, scaling, j, hone_cuda_width(c, j)));
  }
  if (st == HONE_OK)
    s->applied[s->loaded++] = 0;
  return st;
}

/* Updates part g by panels before p. Those that it has not been updated by are
   divided evenly among the steps until it must be level. The devices do so at
   the same time. */
int catch_up(hone_several *s, int g, int p) {
  const int steps = s->first[g] - p;
  const int to = s->applied[g] + (p - s->applied[g] + steps - 1) / steps;
  int st = HONE_OK;
  for (; s->applied[g] < to && st == HONE_OK; s->applied[g]++)
    for (int d = 0; d < s->count && st == HONE_OK; d++) {
      st = hone_several_enter(&s->share[d]);
      TRY(s->steps->update(s, d, s->applied[g], hone_several_end(s, d, g),
                           hone_several_end(s, d, g + 1)));
    }
  return st;
}

/* The calls that complete A's upper triangle are divided evenly among the
   panels that are left, so that none of them waits long for the host. */
int mirror_some(hone_several *s, int p, int st) {
  const int left = s->panels - s->mirrored, steps = s->panels - p;
  TRY(hone_several_mirror(s, s->mirrored + (left + steps - 1) / steps));
  return st;
}

} // namespace

void hone_several_set_parts(hone_several *s, const hone_choices *choices,
                            bool by_parts) {
  const hone_cuda_deal deal = {s->nb, s->count, 0, 0, 0};
  int64_t j = 0;
  s->parts = 0;
  do {
    s->first[s->parts++] = (int)(j / s->nb) * s->count;
    j = hone_cuda_dealt_part_end(choices, s->spd, s->n, &deal, j);
  } while (by_parts && j < INT64_MAX && s->parts < HONE_SEVERAL_PARTS);
}

int hone_several_begin(hone_several *s, const hone_dense *a,
                       const hone_scaling *scaling) {
  int st = start(s, a, scaling);
  bool there = true;
  for (int d = 0; d < s->count; d++)
    there = there && s->share[d].c->reused;
  s->loaded = 0;
  s->kept = there ? 0 : s->first[s->parts - 1];
  TRY(load_part(s, a, scaling));
  if (there)
    s->loaded = s->parts;
  s->level = s->loaded;
  s->mirrored = there ? s->panels : 0;
  return st;
}

/* A part is level before the panel that precedes it is applied, whose products
   with the part are divided for the look-ahead. */
int hone_several_load(hone_several *s, const hone_dense *a,
                      const hone_scaling *scaling, int p) {
  int st = HONE_OK;
  bool now = true;
  while (s->loaded < s->parts && now && st == HONE_OK) {
    now = p + 1 >= s->first[s->loaded];
    if (!now)
      st = has_arrived(s, &now);
    if (now)
      TRY(load_part(s, a, scaling));
  }
  for (int g = s->level; g < s->loaded && st == HONE_OK; g++)
    st = catch_up(s, g, p);
  if (s->level < s->loaded && p + 1 >= s->first[s->level])
    s->level++;
  return s->spd && s->loaded == s->parts ? mirror_some(s, p, st) : st;
}

/* Every job stops before one is waited for, as the threads are those of all. */
void hone_several_stop(hone_several *s) {
  for (const hone_share &share : s->share)
    if (share.c && share.c->job.running)
      hone_cuda_pieces_stop(share.c, HONE_CANCELLED);
  for (const hone_share &share : s->share)
    if (share.c) {
      (void)hone_several_enter(&share);
      hone_cuda_feed_stop(share.c);
    }
}
