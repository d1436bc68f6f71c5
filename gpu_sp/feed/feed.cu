/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the caller's matrix A, in double precision, to the device. A in
   pageable memory, which the device cannot read at speed, is copied by pieces
   (pieces.h), beside the factorization: the caller's matrix is neither pinned
   nor copied as a whole. Memory that the device can read itself (pinned,
   managed, or its own: hone_host_copy) is sent as it is. Of a symmetric A in
   memory of the host the device gets one triangle. On the way the threads
   take the projection of A (project.h), with which the host later checks
   residuals of the device; of an A in its own memory the device takes it. Read
   next: round.h. */
#include "gpu_sp/feed/feed.h"

#include "gpu_sp/create.h"
#include "gpu_sp/feed/pieces.h"
#include "gpu_sp/feed/project.h"

extern "C" {
#include "base/rounding.h"
}

#include <climits>
#include <cstring>
#include <sched.h>

namespace {

const size_t STAGE = (size_t)8 << 20; /* bytes of a buffer for floats, about */
/* Columns of one triangle that are sent as a rectangle. */
enum { TRIANGLE_STEP = 512 };

/* Waits until the column has been sent, and does pieces meanwhile. */
void wait_for(hone_cuda *c, const hone_cuda_column *col) {
  while (!hone_cuda_column_sent(col) &&
         __atomic_load_n(&c->job.status, __ATOMIC_RELAXED) == HONE_OK)
    hone_cuda_feed_help(c);
}

int feed_directly(hone_cuda *c, int64_t to) {
  const size_t entry = sizeof(hone_entry);
  if (c->in_place)
    return HONE_OK;
  int st = HONE_OK;
  for (int64_t j = c->fed, w; j < to && st == HONE_OK; j += w) {
    const int64_t row = c->one_triangle ? hone_cuda_dealt_column(c, j) : 0;
    w = c->deal.of > 1 ? c->deal.width - j % c->deal.width : to - j;
    if (c->one_triangle && w > TRIANGLE_STEP)
      w = TRIANGLE_STEP;
    w = w < to - j ? w : to - j;
    const size_t bytes = (size_t)(c->n - row) * entry;
    st = CALL(cudaMemcpy2DAsync(
        c->a + row + j * c->lda, (size_t)c->lda * entry,
        c->original + row + hone_cuda_dealt_column(c, j) * c->original_ld,
        (size_t)c->original_ld * entry, bytes, (size_t)w, cudaMemcpyDefault,
        c->feed));
    c->used.to_device += c->original_on_device ? 0 : w * (int64_t)bytes;
  }
  return st;
}

/* Chooses what the device reads as A: its copy, or the caller's A itself if
   that lies there with columns that can be loaded as fast. */
void choose_matrix(hone_cuda *c) {
  const size_t pair = 2 * sizeof(double);
  if (c->copy == nullptr)
    return;
  c->in_place = c->original_on_device && c->original_ld * HONE_PARTS % 2 == 0 &&
                c->original_ld <= INT_MAX &&
                reinterpret_cast<uintptr_t>(c->original) % pair == 0;
  c->a = c->in_place ? const_cast<hone_entry *>(c->original) : c->copy;
  c->lda = c->in_place ? c->original_ld : round_up(c->n, 2);
}

} // namespace

/* Only where A does not stay on the device are there buffers for floats. */
int hone_cuda_feed_create(hone_cuda *c) {
  const size_t column = (size_t)c->ld * sizeof(float);
  int st = c->a ? hone_cuda_pieces_create(c) : (int)HONE_OK;
  int64_t w = (int64_t)(STAGE / column);
  w = w < (c->n + 3) / 4 ? w : (c->n + 3) / 4;
  c->stage_bytes = (w > 0 ? (size_t)w : 1) * column;
  for (int i = 0; c->a == nullptr && i < HONE_CUDA_STAGES; i++) {
    hone_cuda_slot *slot = c->staged + i;
    TRY(hone_cuda_pin(c, reinterpret_cast<void **>(&slot->memory),
                      c->stage_bytes));
    TRY(CREATE(&slot->free,
               cudaEventCreateWithFlags(&slot->free, cudaEventDisableTiming)));
  }
  return st;
}

void hone_cuda_feed_destroy(hone_cuda *c) {
  hone_cuda_pieces_destroy(c);
  for (const hone_cuda_slot &slot : c->staged) {
    if (slot.free)
      (void)cudaEventDestroy(slot.free);
    (void)cudaFreeHost(slot.memory);
  }
}

int hone_cuda_feed_begin(hone_cuda *c, const hone_dense *a) {
  cudaPointerAttributes at;
  memset(&at, 0, sizeof at);
  c->source = a->a;
  c->fed = c->inspected = 0;
  const hone_host_copy *host_copy = a->copy;
  const void *const original = host_copy ? host_copy->original : nullptr;
  c->original_on_device =
      host_copy && c->deal.of <= 1 && host_copy->state != HONE_HOST_COPY_NONE &&
      static_cast<const void *>(host_copy->copy) == a->a && host_copy->native &&
      host_copy->place.ordinal == c->ordinal;
  c->original =
      c->original_on_device ? static_cast<const hone_entry *>(original) : a->a;
  c->original_ld = c->original_on_device ? host_copy->ld : a->lda;
  c->original_readable = c->original_on_device;
  int st = HONE_OK;
  if (!c->original_on_device) { /* A is read in the host's memory */
    st = hone_host_copy_await(a->copy, c->pool);
    TRY_CUDA(cudaPointerGetAttributes(&at, a->a));
    c->original_readable =
        st == HONE_OK && at.type != cudaMemoryTypeUnregistered;
  }
  const bool in_host_memory =
      !c->original_readable || at.type == cudaMemoryTypeHost;
  TRY(hone_cuda_projection_begin(c, a,
                                 in_host_memory && !c->original_on_device));
  /* Several devices compare no triangles. */
  c->one_triangle =
      c->spd && (in_host_memory || c->deal.of > 1) && !c->original_on_device;
  c->mirrored = false;
  choose_matrix(c);
  c->nonfinite = 0;
  c->asymmetry = 0;
  return st;
}

/* Where the device reads A itself, the threads have only to project it, and to
   compare its triangles if the device gets one of them. */
void hone_cuda_feed_start(hone_cuda *c, const hone_dense *a, int count) {
  const bool sends = !c->original_readable;
  const bool projects = c->projection.wanted && !c->projection.by_device;
  if (sends || projects || c->one_triangle)
    hone_cuda_pieces_start(c, a, c->columns, count, sends, projects);
}

int hone_cuda_feed_all(hone_cuda *c, int count) {
  int st = HONE_OK;
  for (int i = 0; i < count && st == HONE_OK; i++) {
    hone_cuda_column *col = c->columns + i;
    st = feed_directly(c, col->j + col->w);
    TRY_CUDA(cudaEventRecord(col->fed, c->feed));
    if (st == HONE_OK)
      c->fed = col->j + col->w;
    col->arrived = st == HONE_OK;
  }
  c->arriving = st == HONE_OK;
  return st;
}

bool hone_cuda_sending(const hone_cuda *c) {
  return c->job.running && c->job.sends;
}

bool hone_cuda_column_sent(const hone_cuda_column *column) {
  return __atomic_load_n(&column->arrived, __ATOMIC_ACQUIRE) != 0;
}

void hone_cuda_feed_help(hone_cuda *c) {
  if (!hone_cuda_pieces_help(c))
    sched_yield();
}

void hone_cuda_feed_stop(hone_cuda *c) {
  if (c->job.running) {
    hone_cuda_pieces_stop(c, HONE_CANCELLED);
    (void)hone_cuda_pieces_end(c);
  }
  if (c->original_readable) /* the device itself may be reading it still */
    (void)cudaStreamSynchronize(c->feed);
  if (c->original_on_device && (c->in_place || !c->a))
    (void)cudaStreamSynchronize(c->work);
}

int hone_cuda_feed_end(hone_cuda *c) { return hone_cuda_pieces_end(c); }

int hone_cuda_feed_columns(hone_cuda *c, const hone_dense *a, int64_t to,
                           cudaEvent_t fed) {
  int st = HONE_OK;
  const bool under_way = hone_cuda_sending(c);
  if (c->fed < to && !c->original_readable && !under_way) {
    c->whole = {};
    c->whole.j = c->fed;
    c->whole.w = to - c->fed;
    hone_cuda_pieces_start(c, a, &c->whole, 1, true, false);
  }
  for (int i = 0; hone_cuda_sending(c) && i < c->job.count; i++)
    if (c->job.column[i].j < to)
      wait_for(c, c->job.column + i);
  const bool failed = c->job.status != HONE_OK;
  /* The other one of two triangles is looked at until hone_cuda_feed_end. */
  const bool last = to == c->m && !c->one_triangle;
  if (hone_cuda_sending(c) && (failed || !under_way || last))
    st = hone_cuda_pieces_end(c);
  if (c->fed < to && c->original_readable)
    st = feed_directly(c, to);
  /* After a failure nothing may rely on columns of A on the device. */
  if (st == HONE_OK && c->fed < to)
    c->fed = to;
  if (fed && !c->arriving)
    TRY_CUDA(cudaEventRecord(fed, c->feed));
  const hone_cuda_projection *p = &c->projection;
  if (c->fed == c->m && p->wanted && p->by_device && !p->taken)
    TRY(hone_cuda_project_there(c, p->trans));
  return st;
}

namespace {

/* Sends w columns of floats, which lie ld bytes apart there and here. */
int send_floats(hone_cuda *c, hone_cuda_slot *slot, float *to, size_t ld,
                int64_t w) {
  int st = CALL(cudaMemcpy2DAsync(to, ld, slot->memory, ld, ld, (size_t)w,
                                  cudaMemcpyHostToDevice, c->feed));
  c->used.to_device += w * (int64_t)ld;
  TRY_CUDA(cudaEventRecord(slot->free, c->feed));
  return st;
}

} // namespace

int hone_cuda_feed_rounded(hone_cuda *c, const hone_dense *a,
                           const hone_scaling *scaling, int64_t j, int64_t w,
                           float *stage) {
  const size_t column = (size_t)c->ld * sizeof(float);
  const int64_t most = (int64_t)(c->stage_bytes / column);
  int st = HONE_OK;
  for (int64_t at = j, now; at < j + w && st == HONE_OK; at += now) {
    hone_cuda_slot *slot = c->staged + c->stages_used++ % HONE_CUDA_STAGES;
    now = j + w - at < most ? j + w - at : most;
    st = CALL(cudaEventSynchronize(slot->free));
    if (st != HONE_OK)
      return st;
    const hone_rounding r = {a,
                             scaling,
                             at,
                             now,
                             nullptr,
                             0,
                             reinterpret_cast<hone_single *>(slot->memory),
                             c->ld / HONE_PARTS,
                             c->col_max + at,
                             false};
    c->host_flushed += hone_round_columns(c->pool, &r);
    st = send_floats(c, slot, stage + (at - j) * c->ld, column, now);
  }
  return st;
}
