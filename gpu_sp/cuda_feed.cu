/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of A to the device. The caller's matrix lies in pageable memory,
   which the device cannot read at speed: the pool's threads copy its columns
   into a ring of pinned buffers, each is sent while the next is being filled,
   and the factorization takes a block column as soon as it is there. The
   caller's matrix is neither pinned nor copied as a whole. Memory that the
   device can read itself (pinned, managed, its own) is sent as it is.

   Of a symmetric matrix the upper triangle goes, in steps as wide as a chunk;
   the threads look through the other one for NaN and Inf. */
#include "gpu_sp/cuda_state.h"

extern "C" {
#include "gpu_sp/round.h"
}

#include <string.h>

namespace {

enum { PIECE = 1 << 18 }; /* bytes of a task */
const size_t SLOT = (size_t)8 << 20;

/* Columns on their way: chunk after chunk through the slots of the ring, each
   cut into tasks that any thread takes, in order. Whoever finishes a chunk
   sends it. One job for all chunks: threads that are waited for after each
   one cost a third of the speed. */
struct feed_job {
  hone_cuda *c;
  const hone_matrix *a;
  int64_t from, to, width; /* columns; of a chunk */
  int64_t parts;           /* tasks of a column */
  int64_t first;           /* the first chunk's number since create */
  int status;
};

int64_t load_of(const int64_t *p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Waits until the slot's number is reached; false: the job has failed. */
bool reached(feed_job *job, const int64_t *number, int64_t wanted) {
  while (load_of(number) < wanted) {
    if (__atomic_load_n(&job->status, __ATOMIC_RELAXED) != HONE_OK)
      return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return true;
}

void fail(feed_job *job, int st) {
  if (st != HONE_OK)
    __atomic_store_n(&job->status, st, __ATOMIC_RELEASE);
}

/* Chunk 'number' may use its slot when what was there before has been sent
   and has arrived. Its first task sees to that. */
bool open_slot(feed_job *job, int64_t number, bool first) {
  hone_cuda *c = job->c;
  hone_cuda_slot *slot = c->ring + number % HONE_CUDA_SLOTS;
  if (first) {
    if (!reached(job, &slot->sent, number - HONE_CUDA_SLOTS + 1))
      return false;
    const int st = CALL(cudaEventSynchronize(slot->free));
    fail(job, st);
    slot->filled = 0;
    __atomic_store_n(&slot->opened, number + 1, __ATOMIC_RELEASE);
    return st == HONE_OK;
  }
  return reached(job, &slot->opened, number + 1);
}

/* w columns of 'bytes' bytes, ld bytes apart on both sides. */
int send(hone_cuda *c, hone_cuda_slot *slot, void *to, size_t ld, size_t bytes,
         int64_t w) {
  int st = CALL(cudaSetDevice(c->ordinal));
  if (st == HONE_OK)
    st = CALL(cudaMemcpy2DAsync(to, ld, slot->memory, ld, bytes, (size_t)w,
                                cudaMemcpyHostToDevice, c->feed));
  __atomic_add_fetch(&c->used.to_device, w * (int64_t)bytes, __ATOMIC_RELAXED);
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(slot->free, c->feed));
  return st;
}

/* Part number 'part' of 'parts' of the count rows from 'row' on. */
struct rows {
  int64_t at, count;
};
rows part_of(int64_t row, int64_t count, int64_t part, int64_t parts) {
  const int64_t each = (count + parts - 1) / parts, left = count - part * each;
  return {row + part * each, left < each ? left : each};
}

void feed_task(void *ctx, int64_t task) {
  feed_job *job = static_cast<feed_job *>(ctx);
  hone_cuda *c = job->c;
  const int64_t tasks = job->width * job->parts; /* of a chunk */
  const int64_t chunk = task / tasks, number = job->first + chunk;
  const int64_t j = job->from + chunk * job->width;
  const int64_t left = job->to - j, w = left < job->width ? left : job->width;
  const int64_t column = task % tasks / job->parts;
  const int64_t high = c->triangle ? j + w : c->n; /* rows that go */
  const rows go = part_of(0, high, task % job->parts, job->parts);
  const rows stay = part_of(high, c->n - high, task % job->parts, job->parts);
  const double *a = job->a->a + (j + column) * job->a->lda;
  const size_t ld = (size_t)c->lda * sizeof(double);
  hone_cuda_slot *slot = c->ring + number % HONE_CUDA_SLOTS;
  if (!open_slot(job, number, task % tasks == 0))
    return;
  if (column < w && go.count > 0)
    memcpy(reinterpret_cast<double *>(slot->memory) + column * c->lda + go.at,
           a + go.at, (size_t)go.count * sizeof(double));
  if (column < w && stay.count > 0 && !hone_all_finite(stay.count, a + stay.at))
    __atomic_store_n(&c->odd, j + column + 1, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&slot->filled, 1, __ATOMIC_ACQ_REL) < tasks)
    return;
  fail(job,
       send(c, slot, c->a + j * c->lda, ld, (size_t)high * sizeof(double), w));
  __atomic_store_n(&slot->sent, number + 1, __ATOMIC_RELEASE);
}

int feed_directly(hone_cuda *c, const hone_matrix *a, int64_t to) {
  const size_t column = (size_t)c->n * sizeof(double);
  int st = CALL(cudaMemcpy2DAsync(
      c->a + c->fed * c->lda, (size_t)c->lda * sizeof(double),
      a->a + c->fed * a->lda, (size_t)a->lda * sizeof(double), column,
      (size_t)(to - c->fed), cudaMemcpyDefault, c->feed));
  c->used.to_device += (to - c->fed) * (int64_t)column;
  return st;
}

/* A slot for the calling thread alone. */
int next_slot(hone_cuda *c, hone_cuda_slot **slot) {
  *slot = c->ring + c->chunks % HONE_CUDA_SLOTS;
  (*slot)->opened = (*slot)->sent = ++c->chunks;
  return CALL(cudaEventSynchronize((*slot)->free));
}

} // namespace

int hone_cuda_feed_create(hone_cuda *c) {
  const size_t column = (size_t)c->ld * sizeof(double); /* lda <= ld */
  const size_t whole = column * (size_t)c->n;
  size_t bytes = SLOT / column * column;
  int st = HONE_OK;
  if (bytes < column)
    bytes = column;
  if (bytes > (whole + 3) / 4) /* small orders: four chunks in all */
    bytes = ((size_t)c->n + 3) / 4 * column;
  c->slot_bytes = bytes;
  for (int i = 0; i < HONE_CUDA_SLOTS && st == HONE_OK; i++) {
    hone_cuda_slot *slot = c->ring + i;
    st = hone_cuda_pin(c, reinterpret_cast<void **>(&slot->memory), bytes);
    if (st == HONE_OK)
      st = CALL(cudaEventCreateWithFlags(&slot->free, cudaEventDisableTiming));
  }
  return st;
}

void hone_cuda_feed_destroy(hone_cuda *c) {
  for (int i = 0; i < HONE_CUDA_SLOTS; i++) {
    if (c->ring[i].free)
      (void)cudaEventDestroy(c->ring[i].free);
    (void)cudaFreeHost(c->ring[i].memory);
  }
}

int hone_cuda_feed_begin(hone_cuda *c, const hone_matrix *a) {
  cudaPointerAttributes at;
  memset(&at, 0, sizeof at);
  c->source = a->a;
  c->fed = 0;
  int st = CALL(cudaPointerGetAttributes(&at, a->a));
  c->direct = st == HONE_OK && at.type != cudaMemoryTypeUnregistered;
  c->triangle = c->spd && !c->direct;
  c->odd = 0;
  return st;
}

int hone_cuda_feed(hone_cuda *c, const hone_matrix *a, int64_t to) {
  const size_t column = (size_t)c->lda * sizeof(double);
  const int64_t w = to - c->fed, most = (int64_t)(c->slot_bytes / column);
  if (w <= 0)
    return HONE_OK;
  feed_job job = {c, a, c->fed, to, w < most ? w : most, 0, c->chunks, HONE_OK};
  const int64_t chunks = (w + job.width - 1) / job.width;
  job.parts = ((int64_t)column + PIECE - 1) / PIECE;
  if (c->direct)
    job.status = feed_directly(c, a, to);
  else
    hone_pool_run(c->n * w < 1 << 15 ? nullptr : c->pool,
                  chunks * job.width * job.parts, feed_task, &job);
  c->chunks += c->direct ? 0 : chunks;
  c->fed = to;
  for (int i = 0; job.status != HONE_OK && i < HONE_CUDA_SLOTS; i++) {
    c->ring[i].opened = c->ring[i].sent = c->chunks = 0; /* as at first */
  }
  return job.status;
}

int hone_cuda_feed_rounded(hone_cuda *c, const hone_matrix *a,
                           const hone_scaling *scaling, int64_t j, int64_t w,
                           float *stage) {
  const size_t column = (size_t)c->ld * sizeof(float);
  const int64_t most = (int64_t)(c->slot_bytes / column);
  int st = HONE_OK;
  for (int64_t at = j, now; at < j + w && st == HONE_OK; at += now) {
    hone_cuda_slot *slot;
    now = j + w - at < most ? j + w - at : most;
    st = next_slot(c, &slot);
    if (st != HONE_OK)
      return st;
    const hone_rounding r = {a,
                             scaling,
                             at,
                             now,
                             nullptr,
                             0,
                             reinterpret_cast<float *>(slot->memory),
                             c->ld,
                             c->col_max + at};
    c->host_flushed += hone_round_columns(c->pool, &r);
    st = send(c, slot, stage + (at - j) * c->ld, column, column, now);
  }
  return st;
}
