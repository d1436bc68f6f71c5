/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the caller's matrix A, in double precision, to the device. A lies in
   pageable memory, which the device cannot read at speed. So the pool's threads
   copy its columns into a ring of pinned buffers, each buffer is sent while the
   next is being filled, and the factorization takes a block column as soon as
   it has arrived. All of A is one job: chunk after chunk goes through the slots
   of the ring, and each chunk is divided into tasks that any thread takes, in
   order. The thread that finishes a chunk sends it; the caller takes tasks only
   while it has to wait for a column. The caller's matrix is neither pinned nor
   copied as a whole. Memory that the device can read itself (pinned, managed,
   or its own: hone_host_copy) is sent as it is.

   Of a symmetric matrix only the upper triangle is sent, completed to whole
   chunks. The threads look for NaN and Inf in the other triangle, and compare
   both triangles by a sum that is zero if A is symmetric: only then does the
   copy made of one triangle equal A. Read next: round.h. */
#include "gpu_sp/feed/feed.h"

#include "gpu_sp/create.h"

extern "C" {
#include "base/rounding.h"
}

#include <sched.h>
#include <string.h>

namespace {

enum { TASK_BYTES = 1 << 18 }; /* bytes of a task */
/* Threads that copy A, beside the caller: so many keep the bus busy. With more
   of them one is often on a CPU that another program uses, and what it has in
   hand holds up the ring. (To compare triangles takes all that there are.) */
enum { FEEDERS = 8 };
const size_t SLOT = (size_t)8 << 20;

int64_t load_number(const int64_t *p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Waits until *number is at least 'wanted'; returns false if the job has failed
   before. */
bool reached(const hone_cuda_job *job, const int64_t *number, int64_t wanted) {
  while (load_number(number) < wanted) {
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

/* A chunk may use its slot once the chunk before it there has been sent and has
   arrived. The chunk's first task waits for that and opens the slot; the others
   wait for the first. Returns false if the job has failed. */
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

/* Sends w columns of 'bytes' bytes, which lie ld bytes apart in the slot and on
   the device. */
int send(hone_cuda *c, hone_cuda_slot *slot, void *to, size_t ld, size_t bytes,
         int64_t w) {
  int st = CALL(cudaSetDevice(c->ordinal));
  TRY_CUDA(cudaMemcpy2DAsync(to, ld, slot->memory, ld, bytes, (size_t)w,
                             cudaMemcpyHostToDevice, c->feed));
  __atomic_add_fetch(&c->used.to_device, w * (int64_t)bytes, __ATOMIC_RELAXED);
  TRY_CUDA(cudaEventRecord(slot->free, c->feed));
  return st;
}

struct row_range {
  int64_t at, count;
};
/* Returns part number 'part' of 'parts' equal parts of the count rows from
   'row' on. */
row_range part_of(int64_t row, int64_t count, int64_t part, int64_t parts) {
  const int64_t each = (count + parts - 1) / parts, left = count - part * each;
  return {row + part * each, left < each ? left : each};
}

/* Adds the part of a column of A to the sum that tells symmetry: entries above
   the diagonal count positive, those below it negative. */
void add_symmetry_sum(hone_cuda *c, const double *column, int64_t at,
                      row_range part) {
  const int64_t end = part.at + (part.count > 0 ? part.count : 0);
  const int64_t above = end < at ? end : at;
  const int64_t below = part.at > at ? part.at : at + 1;
  uint64_t sum = 0;
  if (above > part.at)
    sum += hone_mirror_sum(above - part.at, part.at, at, column + part.at);
  if (end > below)
    sum -= hone_mirror_sum(end - below, below, at, column + below);
  if (sum != 0)
    __atomic_add_fetch(&c->asymmetry, sum, __ATOMIC_RELAXED);
}

/* Records that the block column's last chunk has been sent. */
int record_column_sent(hone_cuda *c, hone_cuda_column *col) {
  const int st =
      col->fed ? CALL(cudaEventRecord(col->fed, c->feed)) : (int)HONE_OK;
  __atomic_store_n(&col->arrived, 1, __ATOMIC_RELEASE);
  return st;
}

void do_task(hone_cuda *c, int64_t task) {
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
  const int64_t high = c->one_triangle ? j + w : c->n; /* rows that are sent */
  const row_range sent = part_of(0, high, task % job->parts, job->parts);
  const row_range kept =
      part_of(high, c->n - high, task % job->parts, job->parts);
  const double *a = job->a.a + (j + column) * job->a.lda;
  const size_t ld = (size_t)c->lda * sizeof(double);
  hone_cuda_slot *slot = c->ring + number % HONE_CUDA_SLOTS;
  if (!open_slot(c, number, task % tasks == 0))
    return;
  if (column < w && sent.count > 0)
    memcpy(reinterpret_cast<double *>(slot->memory) + column * c->lda + sent.at,
           a + sent.at, (size_t)sent.count * sizeof(double));
  if (column < w && kept.count > 0 && !hone_all_finite(kept.count, a + kept.at))
    __atomic_store_n(&c->nonfinite, j + column + 1, __ATOMIC_RELAXED);
  if (c->one_triangle && column < w) {
    add_symmetry_sum(c, a, j + column, sent);
    add_symmetry_sum(c, a, j + column, kept);
  }
  if (__atomic_add_fetch(&slot->filled, 1, __ATOMIC_ACQ_REL) < tasks)
    return;
  fail(job,
       send(c, slot, c->a + j * c->lda, ld, (size_t)high * sizeof(double), w));
  __atomic_store_n(&slot->sent, number + 1, __ATOMIC_RELEASE);
  if (__atomic_add_fetch(&col->sent, 1, __ATOMIC_ACQ_REL) == col->chunks)
    fail(job, record_column_sent(c, col));
}

/* Takes and does one task; returns false if none is left, or the job has
   failed. */
bool do_one_task(hone_cuda *c) {
  hone_cuda_job *job = &c->job;
  if (__atomic_load_n(&job->status, __ATOMIC_RELAXED) != HONE_OK)
    return false;
  const int64_t task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
  if (task < job->tasks)
    do_task(c, task);
  return task < job->tasks;
}

void do_tasks(void *ctx, int64_t) {
  const hone_cuda_uncaptured meanwhile;
  while (do_one_task(static_cast<hone_cuda *>(ctx)))
    continue;
}

void start_job(hone_cuda *c, const hone_dense *a, hone_cuda_column *column,
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
  job->parts = ((int64_t)bytes + TASK_BYTES - 1) / TASK_BYTES;
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
  if (c->n * columns >= 1 << 15) /* enough work to wake the others */
    hone_pool_start(c->pool, c->one_triangle ? INT32_MAX : (int)FEEDERS,
                    do_tasks, c);
}

/* Waits until the column has been sent, and does tasks meanwhile. */
void wait_for(hone_cuda *c, const hone_cuda_column *col) {
  hone_cuda_job *job = &c->job;
  while (!hone_cuda_column_sent(col) &&
         __atomic_load_n(&job->status, __ATOMIC_RELAXED) == HONE_OK)
    hone_cuda_feed_help(c);
}

/* Waits until no thread works on the job any more. */
int end_job(hone_cuda *c) {
  hone_pool_wait(c->pool);
  c->job.running = false;
  for (int i = 0; c->job.status != HONE_OK && i < HONE_CUDA_SLOTS; i++) {
    c->ring[i].opened = c->ring[i].sent = c->chunks = 0; /* as after create */
  }
  return c->job.status;
}

int feed_directly(hone_cuda *c, int64_t to) {
  const size_t column = (size_t)c->n * sizeof(double);
  int st = CALL(
      cudaMemcpy2DAsync(c->a + c->fed * c->lda, (size_t)c->lda * sizeof(double),
                        c->original + c->fed * c->original_ld,
                        (size_t)c->original_ld * sizeof(double), column,
                        (size_t)(to - c->fed), cudaMemcpyDefault, c->feed));
  c->used.to_device +=
      c->original_on_device ? 0 : (to - c->fed) * (int64_t)column;
  return st;
}

/* Takes the next slot for the calling thread alone. */
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
    TRY(CREATE(&slot->free,
               cudaEventCreateWithFlags(&slot->free, cudaEventDisableTiming)));
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
  c->original_on_device = host_copy &&
                          host_copy->state != HONE_HOST_COPY_NONE &&
                          host_copy->copy == a->a && host_copy->native &&
                          host_copy->place.ordinal == c->ordinal;
  c->original = c->original_on_device ? host_copy->original : a->a;
  c->original_ld = c->original_on_device ? host_copy->ld : a->lda;
  c->original_readable = c->original_on_device;
  int st = HONE_OK;
  if (!c->original_on_device) { /* A is read in the host's memory */
    st = hone_host_copy_await(a->copy, c->pool);
    TRY_CUDA(cudaPointerGetAttributes(&at, a->a));
    c->original_readable =
        st == HONE_OK && at.type != cudaMemoryTypeUnregistered;
  }
  c->one_triangle = c->spd && !c->original_readable;
  c->nonfinite = 0;
  c->asymmetry = 0;
  return st;
}

void hone_cuda_feed_start(hone_cuda *c, const hone_dense *a, int count) {
  if (!c->original_readable)
    start_job(c, a, c->columns, count);
}

bool hone_cuda_column_sent(const hone_cuda_column *column) {
  return load_number(&column->arrived) != 0;
}

void hone_cuda_feed_help(hone_cuda *c) {
  if (!c->job.running || !do_one_task(c))
    sched_yield();
}

void hone_cuda_feed_stop(hone_cuda *c) {
  if (c->job.running) {
    fail(&c->job, HONE_CANCELLED);
    (void)end_job(c);
  }
  if (c->original_readable) /* the device itself may be reading it still */
    (void)cudaStreamSynchronize(c->feed);
  if (c->original_on_device && !c->a)
    (void)cudaStreamSynchronize(c->work);
}

int hone_cuda_feed_columns(hone_cuda *c, const hone_dense *a, int64_t to,
                           cudaEvent_t fed) {
  int st = HONE_OK;
  const bool under_way = c->job.running;
  if (c->fed < to && !c->original_readable && !under_way) {
    c->whole = {};
    c->whole.j = c->fed;
    c->whole.w = to - c->fed;
    start_job(c, a, &c->whole, 1);
  }
  for (int i = 0; c->job.running && i < c->job.count; i++)
    if (c->job.column[i].j < to)
      wait_for(c, c->job.column + i);
  const bool failed = c->job.status != HONE_OK;
  if (c->job.running && (failed || !under_way || to == c->n))
    st = end_job(c);
  if (c->fed < to && c->original_readable)
    st = feed_directly(c, to);
  /* After a failure nothing may rely on columns of A on the device. */
  if (st == HONE_OK && c->fed < to)
    c->fed = to;
  if (fed && !c->arriving)
    TRY_CUDA(cudaEventRecord(fed, c->feed));
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
