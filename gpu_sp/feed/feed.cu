/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of A to the device. The caller's matrix lies in pageable memory,
   which the device cannot read at speed: the pool's threads copy its columns
   into a ring of pinned buffers, each is sent while the next is being filled,
   and the factorization takes a block column as soon as it is there. All of A
   is one job, chunk after chunk through the slots of the ring, each chunk cut
   into tasks that any thread takes, in order; whoever finishes a chunk sends
   it, and the caller takes tasks only while it has to wait for a column. The
   caller's matrix is neither pinned nor copied as a whole. Memory that the
   device can read itself (pinned, managed, its own: hone_host_copy) is sent as
   it is.

   Of a symmetric matrix the upper triangle goes, in steps as wide as a chunk;
   the threads look through the other one for NaN and Inf, and through both for
   whether it is symmetric: the copy that is made of the triangle is A then. */
#include "gpu_sp/state.h"

extern "C" {
#include "base/rounding.h"
}

#include <sched.h>
#include <string.h>

namespace {

enum { PIECE = 1 << 18 }; /* bytes of a task */
const size_t SLOT = (size_t)8 << 20;

int64_t load_of(const int64_t *p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Waits until the slot's number is reached; false: the job has failed. */
bool reached(const hone_cuda_job *job, const int64_t *number, int64_t wanted) {
  while (load_of(number) < wanted) {
    if (__atomic_load_n(&job->status, __ATOMIC_RELAXED) != HONE_OK)
      return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return true;
}

void fail(hone_cuda_job *job, int st) {
  if (st != HONE_OK)
    __atomic_store_n(&job->status, st, __ATOMIC_RELEASE);
}

/* Chunk 'number' may use its slot when what was there before has been sent
   and has arrived. Its first task sees to that. */
bool open_slot(hone_cuda *c, int64_t number, bool first) {
  hone_cuda_job *job = &c->job;
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

/* Rows of A's column, of which those above the diagonal count for, those below
   it against. */
void weigh_mirror(hone_cuda *c, const double *column, int64_t at, rows part) {
  const int64_t end = part.at + (part.count > 0 ? part.count : 0);
  const int64_t above = end < at ? end : at;
  const int64_t below = part.at > at ? part.at : at + 1;
  uint64_t sum = 0;
  if (above > part.at)
    sum += hone_mirror_sum(above - part.at, part.at, at, column + part.at);
  if (end > below)
    sum -= hone_mirror_sum(end - below, below, at, column + below);
  if (sum != 0)
    __atomic_add_fetch(&c->mirror, sum, __ATOMIC_RELAXED);
}

/* The block column's last chunk is on its way. */
int all_sent(hone_cuda *c, hone_cuda_column *col) {
  const int st =
      col->fed ? CALL(cudaEventRecord(col->fed, c->feed)) : (int)HONE_OK;
  __atomic_store_n(&col->arrived, 1, __ATOMIC_RELEASE);
  return st;
}

void feed_task(hone_cuda *c, int64_t task) {
  hone_cuda_job *job = &c->job;
  const int64_t tasks = job->width * job->parts; /* of a chunk */
  const int64_t chunk = task / tasks, number = job->first + chunk;
  hone_cuda_column *col = job->column;
  while (chunk >= col->chunk + col->chunks)
    col++;
  const int64_t j = col->j + (chunk - col->chunk) * job->width;
  const int64_t left = col->j + col->w - j;
  const int64_t w = left < job->width ? left : job->width;
  const int64_t column = task % tasks / job->parts;
  const int64_t high = c->triangle ? j + w : c->n; /* rows that go */
  const rows go = part_of(0, high, task % job->parts, job->parts);
  const rows stay = part_of(high, c->n - high, task % job->parts, job->parts);
  const double *a = job->a.a + (j + column) * job->a.lda;
  const size_t ld = (size_t)c->lda * sizeof(double);
  hone_cuda_slot *slot = c->ring + number % HONE_CUDA_SLOTS;
  if (!open_slot(c, number, task % tasks == 0))
    return;
  if (column < w && go.count > 0)
    memcpy(reinterpret_cast<double *>(slot->memory) + column * c->lda + go.at,
           a + go.at, (size_t)go.count * sizeof(double));
  if (column < w && stay.count > 0 && !hone_all_finite(stay.count, a + stay.at))
    __atomic_store_n(&c->odd, j + column + 1, __ATOMIC_RELAXED);
  if (c->triangle && column < w) {
    weigh_mirror(c, a, j + column, go);
    weigh_mirror(c, a, j + column, stay);
  }
  if (__atomic_add_fetch(&slot->filled, 1, __ATOMIC_ACQ_REL) < tasks)
    return;
  fail(job,
       send(c, slot, c->a + j * c->lda, ld, (size_t)high * sizeof(double), w));
  __atomic_store_n(&slot->sent, number + 1, __ATOMIC_RELEASE);
  if (__atomic_add_fetch(&col->sent, 1, __ATOMIC_ACQ_REL) == col->chunks)
    fail(job, all_sent(c, col));
}

/* Takes one task; false: there is none left, or the job has failed. */
bool feed_some(hone_cuda *c) {
  hone_cuda_job *job = &c->job;
  if (__atomic_load_n(&job->status, __ATOMIC_RELAXED) != HONE_OK)
    return false;
  const int64_t task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
  if (task < job->tasks)
    feed_task(c, task);
  return task < job->tasks;
}

void feed_all(void *ctx, int64_t) {
  while (feed_some(static_cast<hone_cuda *>(ctx)))
    continue;
}

void set_out(hone_cuda *c, const hone_dense *a, hone_cuda_column *column,
             int count) {
  hone_cuda_job *job = &c->job;
  const size_t bytes = (size_t)c->lda * sizeof(double);
  const int64_t most = (int64_t)(c->slot_bytes / bytes);
  int64_t widest = 0, columns = 0, chunks = 0;
  for (int i = 0; i < count; i++)
    widest = column[i].w > widest ? column[i].w : widest;
  *job = {};
  job->a = *a;
  job->column = column;
  job->count = count;
  job->width = widest < most ? widest : most;
  job->parts = ((int64_t)bytes + PIECE - 1) / PIECE;
  job->first = c->chunks;
  for (int i = 0; i < count; i++) {
    column[i].chunk = chunks;
    column[i].chunks = (column[i].w + job->width - 1) / job->width;
    column[i].sent = column[i].arrived = 0;
    chunks += column[i].chunks;
    columns += column[i].w;
  }
  c->chunks += chunks;
  job->tasks = chunks * job->width * job->parts;
  job->running = true;
  if (c->n * columns >= 1 << 15) /* worth waking the others */
    hone_pool_start(c->pool, feed_all, c);
}

/* Waits for the column, helping. */
void await(hone_cuda *c, const hone_cuda_column *col) {
  hone_cuda_job *job = &c->job;
  while (!hone_cuda_sent(col) &&
         __atomic_load_n(&job->status, __ATOMIC_RELAXED) == HONE_OK)
    hone_cuda_feed_help(c);
}

/* Until nobody works on the job any more. */
int end_job(hone_cuda *c) {
  hone_pool_wait(c->pool);
  c->job.running = false;
  for (int i = 0; c->job.status != HONE_OK && i < HONE_CUDA_SLOTS; i++) {
    c->ring[i].opened = c->ring[i].sent = c->chunks = 0; /* as at first */
  }
  return c->job.status;
}

int feed_directly(hone_cuda *c, int64_t to) {
  const size_t column = (size_t)c->n * sizeof(double);
  int st = CALL(cudaMemcpy2DAsync(
      c->a + c->fed * c->lda, (size_t)c->lda * sizeof(double),
      c->from + c->fed * c->from_ld, (size_t)c->from_ld * sizeof(double),
      column, (size_t)(to - c->fed), cudaMemcpyDefault, c->feed));
  c->used.to_device += c->there ? 0 : (to - c->fed) * (int64_t)column;
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

int hone_cuda_feed_begin(hone_cuda *c, const hone_dense *a) {
  cudaPointerAttributes at;
  memset(&at, 0, sizeof at);
  c->source = a->a;
  c->fed = c->inspected = 0;
  const hone_host_copy *host_copy = a->copy;
  c->there = host_copy && host_copy->state != HONE_HOST_COPY_NONE &&
             host_copy->copy == a->a && host_copy->native &&
             host_copy->place.ordinal == c->ordinal;
  c->from = c->there ? host_copy->original : a->a;
  c->from_ld = c->there ? host_copy->ld : a->lda;
  c->direct = c->there;
  int st = HONE_OK;
  if (!c->there) { /* the host's memory is read */
    st = hone_host_copy_await(a->copy, c->pool);
    if (st == HONE_OK)
      st = CALL(cudaPointerGetAttributes(&at, a->a));
    c->direct = st == HONE_OK && at.type != cudaMemoryTypeUnregistered;
  }
  c->triangle = c->spd && !c->direct;
  c->odd = 0;
  c->mirror = 0;
  return st;
}

void hone_cuda_feed_start(hone_cuda *c, const hone_dense *a, int count) {
  if (!c->direct)
    set_out(c, a, c->columns, count);
}

bool hone_cuda_sent(const hone_cuda_column *column) {
  return load_of(&column->arrived) != 0;
}

void hone_cuda_feed_help(hone_cuda *c) {
  if (!c->job.running || !feed_some(c))
    sched_yield();
}

void hone_cuda_feed_stop(hone_cuda *c) {
  if (c->job.running) {
    fail(&c->job, HONE_CANCELLED);
    (void)end_job(c);
  }
  if (c->direct) /* the device itself reads the caller's memory */
    (void)cudaStreamSynchronize(c->feed);
  if (c->there && !c->a)
    (void)cudaStreamSynchronize(c->work);
}

int hone_cuda_feed(hone_cuda *c, const hone_dense *a, int64_t to,
                   cudaEvent_t fed) {
  int st = HONE_OK;
  const bool under_way = c->job.running;
  if (c->fed < to && !c->direct && !under_way) {
    c->rest = {};
    c->rest.j = c->fed;
    c->rest.w = to - c->fed;
    set_out(c, a, &c->rest, 1);
  }
  for (int i = 0; c->job.running && i < c->job.count; i++)
    if (c->job.column[i].j < to)
      await(c, c->job.column + i);
  const bool failed = c->job.status != HONE_OK;
  if (c->job.running && (failed || !under_way || to == c->n))
    st = end_job(c);
  if (c->fed < to && c->direct)
    st = feed_directly(c, to);
  if (st == HONE_OK && c->fed < to) /* else nothing may take A to be there */
    c->fed = to;
  if (st == HONE_OK && fed && !c->way)
    st = CALL(cudaEventRecord(fed, c->feed));
  return st;
}

int hone_cuda_feed_rounded(hone_cuda *c, const hone_dense *a,
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
