/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of a factorization and what belongs to them: memory for the
   operands of products, events, more cuBLAS handles, and the workspace of
   the methods of forms.h. Look-ahead: the next panel is factored on the stream
   side while the stream work updates the other columns, and the columns of the
   panel behind it are updated on the stream ahead. */
#include "gpu_sp/create.h"
#include "gpu_sp/forms/forms.h"

#include "gpu_sp/forms/crout.h"

#include <cstring>

namespace {

/* Measured on an H200 (docs/performance.md). */
const int64_t AHEAD_FROM = HONE_PARTS > 1 ? 2048 : 2049;
const int64_t AHEAD_FROM_SPD = HONE_PARTS > 1 ? 1025 : 2049;
const int64_t STREAM_AHEAD_FROM = HONE_PARTS > 1 ? 6145 : 8193;
const int64_t ONE_SLOT_FROM = 32769;
enum { SIZE = HONE_PANEL * HONE_PANEL };
const int64_t BLAS_WORK = 8 << 20; /* workspace of a cuBLAS handle */

bool cpu_chosen(const hone_cuda *c) {
  return c->choices.diagonal == HONE_DIAGONAL_CPU && !c->spd;
}

/* Returns true if the next panel is factored during the update, on a stream of
   its own. */
bool has_look_ahead(const hone_cuda *c) {
  const int64_t chosen = c->choices.trial.ahead_from;
  const int64_t own = c->spd ? AHEAD_FROM_SPD : AHEAD_FROM;
  return cpu_chosen(c) || (c->nb < c->n && c->n >= (chosen > 0 ? chosen : own));
}

/* Divides the one allocation, or only counts its bytes. */
struct parts {
  unsigned char *base;
  int64_t used;
  template <class T> void take(T **at, int64_t bytes) {
    if (base && bytes > 0)
      *at = reinterpret_cast<T *>(base + used);
    used += (bytes + 255) / 256 * 256;
  }
};

void lay_out_queue(const hone_cuda *c, hone_cuda_queue *on, parts *p) {
  const int64_t size = SIZE * (int64_t)sizeof(float);
  const int64_t wide = c->n > c->ldu ? c->n : c->ldu;
  const int64_t room = HONE_PANEL * ((wide + 63) / 64 * 64);
  const int64_t bytes = room * (int64_t)sizeof(float);
  p->take(&on->right, bytes);
  p->take(&on->defect, bytes);
  p->take(&on->step, bytes);
  p->take(&on->lower, size);
  p->take(&on->upper, size);
  p->take(&on->changed, sizeof(int));
}

/* The panel stream has one inner panel at a time, in the columns of its outer
   panel; in Cholesky's factorization on several devices all rows of U of the
   outer panel, in all columns. */
bool has_all_rows(const hone_cuda *c) { return c->spd && c->deal.of > 1; }

/* Returns the rows of the operands of the panel stream. */
int64_t side_rows(const hone_cuda *c) {
  const int64_t inner = (c->nb + HONE_PANEL - 1) / HONE_PANEL;
  return hone_split_rows(c->pieces) * (has_all_rows(c) ? inner : 1);
}

/* Returns the rows of the operand of the stream ahead. */
int64_t rows_of_ahead(const hone_cuda *c) {
  return hone_split_rows(c->pieces) * ((c->nb + HONE_PANEL - 1) / HONE_PANEL);
}

/* Returns true if the columns of the next panel are updated while a panel is
   being factored: on one device, unless the caller has chosen another
   method. */
bool has_updates_ahead(const hone_cuda *c) {
  return !c->spd && c->deal.of <= 1 && !cpu_chosen(c) &&
         c->choices.sections == HONE_BLOCK_ROWS_AUTO;
}

/* Returns true if that is done on a stream of its own, while products go on:
   where these last longer than the panel. */
bool has_stream_ahead(const hone_cuda *c) {
  const int64_t chosen = c->choices.trial.stream_from;
  return has_updates_ahead(c) &&
         c->n >= (chosen > 0 ? chosen : STREAM_AHEAD_FROM);
}

/* Returns for how many inner panels side.lp has room: for all of an outer
   panel, so that none waits for the stream ahead; in large matrices, where
   products decide but for the last panels, for one. */
int slots_of(const hone_cuda *c) {
  const int64_t chosen = c->choices.trial.one_slot_from;
  const bool all =
      has_updates_ahead(c) && c->n < (chosen > 0 ? chosen : ONE_SLOT_FROM);
  return all ? (int)((c->nb + HONE_PANEL - 1) / HONE_PANEL) : 1;
}

/* Lays out the one allocation, and returns its bytes. blas: the workspaces of
   the cuBLAS handles of the streams side and ahead. */
int64_t lay_out(const hone_cuda *c, hone_cuda_forms *f, void *(&blas)[2]) {
  const int64_t size = SIZE * (int64_t)sizeof(float);
  const int sections = c->choices.sections;
  const bool chosen =
      !c->spd && (cpu_chosen(c) || sections > HONE_BLOCK_ROWS_TRSM);
  parts p = {static_cast<unsigned char *>(f->memory), 0};
  f->slots = slots_of(c);
  if (chosen)
    p.take(&f->constants, 3 * sizeof(float));
  if (chosen && sections > HONE_BLOCK_ROWS_TRSM)
    lay_out_queue(c, &f->main, &p);
  if (chosen && sections == HONE_BLOCK_ROWS_SEEDED) {
    p.take(&f->inverse, c->moves_room * size);
    p.take(&f->identity, 2 * size);
  }
  if (!has_look_ahead(c))
    return p.used;
  const int64_t rows = side_rows(c);
  const int64_t wide = ((has_all_rows(c) ? c->n : c->nb) + 63) / 64 * 64;
  f->side.ldl = c->spd ? wide : rows;
  f->side.ldu = HONE_PARTS * wide;
  if (chosen)
    lay_out_queue(c, &f->side, &p);
  p.take(&f->side.lp, (c->spd ? wide : c->n * f->slots) * rows * 2);
  p.take(&f->side.up, rows * f->side.ldu * 2);
  f->ahead.ldu = HONE_PARTS * (wide + 64); /* F's padding takes part */
  if (has_stream_ahead(c))
    p.take(&f->ahead.up, rows_of_ahead(c) * f->ahead.ldu * 2);
  if (cpu_chosen(c))
    p.take(&f->upper, size);
  p.take(&blas[0], BLAS_WORK);
  if (has_stream_ahead(c))
    p.take(&blas[1], BLAS_WORK);
  return p.used;
}

/* Makes the queue's stream and its cuBLAS handle. */
int create_queue(hone_cuda *c, hone_cuda_queue *on, int priority,
                 void *blas_work) {
  int st =
      CREATE(&on->stream, cudaStreamCreateWithPriority(
                              &on->stream, cudaStreamNonBlocking, priority));
  TRY(CREATE(&on->handle, c->blas->create(&on->handle)));
  TRY_CUDA(c->blas->set_stream(on->handle, on->stream));
  TRY_CUDA(c->blas->set_workspace(on->handle, blas_work, (size_t)BLAS_WORK));
  TRY_CUDA(c->blas->set_pointer_mode(on->handle, CUBLAS_POINTER_MODE_DEVICE));
  return st;
}

/* Makes the streams of look-ahead. Panels come first: where a multiprocessor is
   free, a thread block of a product must not take it before. */
int create_side(hone_cuda *c, void *(&blas_work)[2]) {
  hone_cuda_forms *f = &c->forms;
  hone_cuda_queue *on = &f->side;
  int least = 0, most = 0;
  int st = CALL(cudaDeviceGetStreamPriorityRange(&least, &most));
  TRY(create_queue(c, on, most, blas_work[0]));
  if (has_stream_ahead(c))
    TRY(create_queue(c, &f->ahead, most < least ? most + 1 : most,
                     blas_work[1]));
  else if (has_updates_ahead(c))
    f->ahead = f->main;
  cudaEvent_t *plain[] = {&f->ready,    &f->factored, &f->moved, &f->updated,
                          &f->behind,   &f->done,     &f->used,  &f->read,
                          &f->in_order, &f->composed};
  cudaEvent_t *timed[] = {&f->busy, &f->out, &f->in};
  for (cudaEvent_t *event : plain)
    TRY(CREATE(event, cudaEventCreateWithFlags(event, cudaEventDisableTiming)));
  for (cudaEvent_t *event : timed)
    TRY(CREATE(event, cudaEventCreateWithFlags(event, cudaEventDefault)));
  const int64_t rows = side_rows(c), ahead = rows_of_ahead(c);
  if (st == HONE_OK && rows > 0)
    st =
        CALL(cudaMemsetAsync(on->up, 0, (size_t)(rows * on->ldu) * 2, c->work));
  if (st == HONE_OK && has_stream_ahead(c) && ahead > 0)
    st = CALL(cudaMemsetAsync(f->ahead.up, 0,
                              (size_t)(ahead * f->ahead.ldu) * 2, c->work));
  return st;
}

/* The pinned memory holds the block, then the flags of the two queues. */
int take_pinned(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  const size_t flags = HONE_CROUT_FLAGS * sizeof(int);
  const size_t block = (sizeof(hone_cuda_block) + 255) / 256 * 256;
  int st = hone_cuda_pin(c, &f->pinned, block + 2 * flags);
  if (st != HONE_OK)
    return st;
  unsigned char *at = static_cast<unsigned char *>(f->pinned);
  f->block = reinterpret_cast<hone_cuda_block *>(at);
  memset(static_cast<void *>(f->block), 0, sizeof *f->block);
  f->main.seen = reinterpret_cast<int *>(at + block);
  f->side.seen = f->main.seen + HONE_CROUT_FLAGS;
  const float constants[] = {1.0F, -1.0F, 0.0F};
  memcpy(f->block->lu, constants, sizeof constants);
  st = CALL(cudaMemcpyAsync(f->constants, f->block->lu, sizeof constants,
                            cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  return st;
}

} // namespace

int64_t hone_cuda_forms_bytes(const hone_cuda *c) {
  hone_cuda_forms counted = {};
  void *blas[2] = {};
  return lay_out(c, &counted, blas);
}

int hone_cuda_forms_create(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  void *blas[2] = {};
  f->ready_at = f->behind_at = f->composed_panel = -1;
  f->main.stream = c->work;
  f->main.handle = c->handle;
  f->main.lp = c->lp;
  f->main.up = c->up;
  f->main.ldl = c->spd ? c->ld / HONE_PARTS : c->ldl;
  f->main.ldu = c->ldu;
  (void)lay_out(c, f, blas);
  int st = f->constants ? take_pinned(c) : (int)HONE_OK;
  if (st == HONE_OK && has_look_ahead(c))
    st = create_side(c, blas);
  return st;
}

void hone_cuda_forms_destroy(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  cudaEvent_t events[] = {f->ready,    f->factored, f->moved, f->updated,
                          f->behind,   f->done,     f->used,  f->read,
                          f->in_order, f->composed, f->busy,  f->out,
                          f->in};
  if (!hone_cuda_ahead_is_apart(c)) {
    f->ahead.stream = nullptr;
    f->ahead.handle = nullptr;
  }
  for (cudaStream_t stream : {f->side.stream, f->ahead.stream})
    if (stream)
      (void)cudaStreamSynchronize(stream);
  for (cublasHandle_t handle : {f->side.handle, f->ahead.handle})
    if (handle)
      (void)c->blas->destroy(handle);
  for (cudaEvent_t e : events)
    if (e)
      (void)cudaEventDestroy(e);
  for (cudaStream_t stream : {f->side.stream, f->ahead.stream})
    if (stream)
      (void)cudaStreamDestroy(stream);
  (void)cudaFreeHost(f->pinned);
}

int hone_cuda_forms_clear(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  hone_account *used = &c->used;
  used->diagonal_ms = used->exposed_ms = 0.0;
  used->sections = used->sweeps = used->sweeps_max = used->fallback = 0;
  f->ready_at = f->behind_at = f->composed_panel = -1;
  int st = HONE_OK;
  if (f->side.stream)
    st = CALL(cudaStreamSynchronize(f->side.stream));
  if (hone_cuda_ahead_is_apart(c))
    TRY_CUDA(cudaStreamSynchronize(f->ahead.stream));
  return st;
}
