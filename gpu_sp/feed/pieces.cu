/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies A to the device by pieces of about a megabyte: some columns, and of
   long columns some rows. A thread takes the next piece and copies it to a
   pinned buffer, which has room for those of four groups of columns beside each
   other: to send them together takes the bus a tenth less time. The thread that
   completes a buffer sends it, with all others that are ready, unless another
   thread is sending just then: calls of the driver by many threads hold each
   other up, and the caller's, which enqueues the factorization. So a thread
   whose CPU another program uses holds up little more than the buffer that its
   piece goes to; the factorization takes a block column when all its pieces
   have been sent. To wait for the bus, a thread sleeps.

   Of a symmetric or Hermitian matrix only the lower triangle is sent, completed
   to whole pieces. Behind it come the pieces of the other triangle, which the
   threads look through for NaN and Inf. They compare both triangles by a sum
   that is zero if A is symmetric: only then does the copy made of one triangle
   equal A. Read next: piece_at.h, project.h. */
#include "gpu_sp/feed/pieces.h"

#include "gpu_sp/create.h"
#include "gpu_sp/feed/piece_at.h"
#include "gpu_sp/feed/project.h"

extern "C" {
#include "base/rounding.h"
}

#include <sched.h>
#include <time.h>

#include <cstring>

namespace {

/* Rows of a column that are read twice, 16 KB. */
enum { BLOCK_ROWS = 2048 };
const long SLEEP_NS = 50000; /* the kernel makes some 100 us of it */
/* Up to so many threads in all, the caller's does pieces too; beside more it
   keeps its time for the device, which would wait while it does one. */
enum { CALLER_HELPS = 4 };

void fail(hone_cuda_job *job, int st) {
  if (st != HONE_OK)
    __atomic_store_n(&job->status, st, __ATOMIC_RELEASE);
}

bool failed(const hone_cuda_job *job) {
  return __atomic_load_n(&job->status, __ATOMIC_ACQUIRE) != HONE_OK;
}

/* ---- One piece ----------------------------------------------------------- */

#ifdef HONE_COMPLEX
bool is_real(const hone_entry &v) { return v.im == 0.0; }
#else
bool is_real(double) { return true; }
#endif

bool all_finite(int64_t n, const hone_entry *v) {
  return hone_all_finite(HONE_PARTS * n, reinterpret_cast<const double *>(v));
}

/* Returns what 'count' rows from 'row' on of column j of A add to the sum that
   tells symmetry: entries above the diagonal count positive, those below
   negative, and one on it that is not real counts too. */
uint64_t symmetry_sum(const uint32_t *keys, const hone_entry *column, int64_t j,
                      int64_t row, int64_t count) {
  const int64_t end = row + count, above = end < j ? end : j;
  const int64_t below = row > j ? row : j + 1;
  uint64_t sum = 0;
  if (above > row)
    sum += hone_mirror_sum(above - row, row, j, keys, column + row);
  if (end > below)
    sum -= hone_mirror_sum(end - below, below, j, keys, column + below);
  if (row <= j && j < end && !is_real(column[j]))
    sum += 1 + (uint64_t)keys[HONE_PARTS * j];
  return sum;
}

/* Looks at 'count' rows from 'row' on of the device's column 'own' of a matrix
   of which one triangle is sent: at those that are not sent for NaN and Inf.
   Returns what they add to the sum that tells symmetry. */
uint64_t look_at_rows(hone_cuda *c, int64_t own, int64_t row, int64_t count,
                      bool sent) {
  const int64_t j = hone_cuda_dealt_column(c, own);
  const hone_entry *a = c->job.a.a + j * c->job.a.lda;
  if (!sent && !all_finite(count, a + row))
    __atomic_store_n(&c->nonfinite, own + 1, __ATOMIC_RELAXED);
  return symmetry_sum(c->mirror_keys, a, j, row, count);
}

/* Copies 'count' rows from 'row' on of column j; 'to' is where they begin. */
void copy_rows(hone_cuda *c, int64_t j, int64_t row, int64_t count,
               hone_entry *to) {
  const hone_entry *a =
      c->job.a.a + hone_cuda_dealt_column(c, j) * c->job.a.lda;
  memcpy(to, a + row, (size_t)count * sizeof *to);
}

/* Copies a piece to the buffer and projects it, by blocks that the cache
   holds, because they are read more than once: a projection along rows takes
   some columns at once. buffer: NULL for a piece that is not sent. */
void do_piece(hone_cuda *c, const piece &p, hone_entry *buffer, int worker) {
  const hone_cuda_job *job = &c->job;
  const int64_t ld = buffer_ld(p.rows);
  const bool along_rows = job->projects && c->projection.trans;
  const bool at_once = buffer && job->projects && !along_rows;
  const bool streams = __atomic_load_n(&c->buffers.streams, __ATOMIC_RELAXED);
  const int64_t columns = along_rows ? GROUP : 1;
  const int64_t block =
      at_once && !c->one_triangle ? PIECE_ROWS : (int64_t)BLOCK_ROWS;
  uint64_t sum = 0;
  for (int64_t j = p.j; j < p.j + p.w; j += columns) {
    const int64_t w = p.j + p.w - j < columns ? p.j + p.w - j : columns;
    hone_entry *const to = buffer ? buffer + (j - p.j) * ld : nullptr;
    for (int64_t done = 0; done < p.rows; done += block) {
      const int64_t row = p.row + done, left = p.rows - done;
      const int64_t rows = left < block ? left : block;
      for (int64_t k = 0; buffer && !at_once && k < w; k++)
        copy_rows(c, j + k, row, rows, to + k * ld + done);
      if (job->projects)
        hone_cuda_project(c, worker,
                          {j, w, row, rows, p.set, done == 0,
                           at_once ? to + done : nullptr, streams});
      if (c->one_triangle)
        sum += look_at_rows(c, j, row, rows, buffer != nullptr);
    }
  }
  if (sum != 0)
    __atomic_add_fetch(&c->asymmetry, sum, __ATOMIC_RELAXED);
}

/* Enqueues the copy of a buffer's pieces, and counts them. Behind the last one
   of their block column the column's event is recorded. */
int send_pieces(hone_cuda *c, int at) {
  hone_cuda_buffers *buffers = &c->buffers;
  hone_cuda_column *col = column_of(&c->job, buffers->piece[at]);
  const piece p = piece_at(c, buffers->piece[at]);
  const size_t bytes = (size_t)p.rows * sizeof(hone_entry);
  const size_t pitch = (size_t)buffer_ld(p.rows) * sizeof(hone_entry);
  const int64_t left = col->j + col->w - p.j, all = p.together * c->job.width;
  const int64_t columns = left < all ? left : all;
  int st = HONE_OK;
  if (bytes > 0)
    st = CALL(cudaMemcpy2DAsync(
        c->a + p.row + p.j * c->lda, (size_t)c->lda * sizeof(hone_entry),
        buffers->memory + (size_t)at * buffers->bytes, pitch, bytes,
        (size_t)columns, cudaMemcpyHostToDevice, c->feed));
  c->used.to_device += columns * (int64_t)bytes;
  col->sent += p.together;
  if (col->sent == col->pieces) {
    if (col->fed)
      TRY_CUDA(cudaEventRecord(col->fed, c->feed));
    __atomic_store_n(&col->arrived, 1, __ATOMIC_RELEASE);
  }
  return st;
}

/* ---- Buffers ------------------------------------------------------------- */

const uint64_t ALL_BUFFERS = ((uint64_t)1 << HONE_CUDA_BUFFERS) - 1;

/* Returns an empty buffer, now taken, or -1. */
int take_buffer(hone_cuda_buffers *b) {
  uint64_t free = __atomic_load_n(&b->free, __ATOMIC_ACQUIRE);
  while (free != 0)
    if (__atomic_compare_exchange_n(&b->free, &free, free & (free - 1), true,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return __builtin_ctzll(free);
  return -1;
}

/* Where more buffers wait, the bus is what limits. */
enum { MANY_WAIT = HONE_CUDA_BUFFERS / 2 };

/* Where the bus is slower than the threads, filled buffers wait for it. Then
   what is in the caches comes to the device faster. Where the threads are
   slower, they gain by writing past the caches. To do both in turn is slower
   than either, so that a job which began so goes on, unless buffers wait. A
   buffer in which the piece of a thread without CPU is missing does not
   count. */
void see_how_many(hone_cuda_buffers *b) {
  if (__atomic_load_n(&b->waiting, __ATOMIC_RELAXED) <= MANY_WAIT)
    return;
  __atomic_store_n(&b->filled, true, __ATOMIC_RELAXED);
  __atomic_store_n(&b->streams, false, __ATOMIC_RELAXED);
}

/* Empties the buffers that the device has read. */
int empty_buffers(hone_cuda_buffers *b) {
  while (b->first < b->last) {
    const int64_t at = b->first % HONE_CUDA_BUFFERS;
    const cudaError_t e = cudaEventQuery(b->done[at]);
    if (e == cudaErrorNotReady)
      (void)cudaGetLastError();
    if (e != cudaSuccess)
      return e == cudaErrorNotReady ? (int)HONE_OK : hone_cuda_status(e);
    __atomic_sub_fetch(&b->waiting, __builtin_popcountll(b->batch[at]),
                       __ATOMIC_RELAXED);
    __atomic_or_fetch(&b->free, b->batch[at], __ATOMIC_ACQ_REL);
    b->first++;
  }
  return HONE_OK;
}

/* Sends all that is ready, as one batch. There are never more batches than
   buffers. */
int send_batch(hone_cuda *c) {
  hone_cuda_buffers *b = &c->buffers;
  const uint64_t ready = __atomic_exchange_n(&b->ready, 0, __ATOMIC_ACQ_REL);
  const int64_t at = b->last % HONE_CUDA_BUFFERS;
  if (ready == 0)
    return HONE_OK;
  int st = CALL(cudaSetDevice(c->ordinal));
  for (uint64_t left = ready; left != 0; left &= left - 1)
    TRY(send_pieces(c, __builtin_ctzll(left)));
  TRY_CUDA(cudaEventRecord(b->done[at], c->feed));
  b->batch[at] = ready;
  b->last += st == HONE_OK;
  return st;
}

/* Empties and sends buffers, unless another thread is doing so: that one looks
   again afterwards, so that nothing that is ready is left behind. Returns true
   if it did. */
bool serve_buffers(hone_cuda *c) {
  hone_cuda_buffers *b = &c->buffers;
  if (__atomic_exchange_n(&b->sending, true, __ATOMIC_SEQ_CST))
    return false;
  fail(&c->job, empty_buffers(b));
  if (!failed(&c->job))
    fail(&c->job, send_batch(c));
  __atomic_store_n(&b->sending, false, __ATOMIC_SEQ_CST);
  return true;
}

void serve_until_none_ready(hone_cuda *c) {
  while (serve_buffers(c) && !failed(&c->job) &&
         __atomic_load_n(&c->buffers.ready, __ATOMIC_SEQ_CST) != 0)
    continue;
}

/* After a failure: waits for the device, and empties all buffers. */
void reset_buffers(hone_cuda *c) {
  (void)cudaStreamSynchronize(c->feed);
  c->buffers.free = ALL_BUFFERS;
  c->buffers.ready = 0;
  c->buffers.waiting = 0;
  c->buffers.first = c->buffers.last;
}

/* ---- The threads --------------------------------------------------------- */

/* job->next is the number of the next piece times MANY, plus that of the buffer
   that it goes to; before the first piece of a buffer, that of the last one. */
enum { MANY = HONE_CUDA_BUFFERS };

bool any_left(const hone_cuda_job *job) {
  const uint64_t next = __atomic_load_n(&job->next, __ATOMIC_RELAXED);
  return !failed(job) && (int64_t)(next / MANY) < job->pieces;
}

/* Takes the next piece; *at: its buffer, -1: it is not sent. Returns its
   number; -1: there is none, or no empty buffer for it. */
int64_t take_piece(hone_cuda *c, int *at) {
  hone_cuda_job *job = &c->job;
  hone_cuda_buffers *b = &c->buffers;
  const int64_t to_send = job->sends ? job->column_pieces : 0;
  uint64_t next = __atomic_load_n(&job->next, __ATOMIC_ACQUIRE), then = 0;
  int64_t number;
  bool begins;
  int empty = -1; /* a buffer that this thread has taken */
  do {
    number = (int64_t)(next / MANY);
    const piece p = number < to_send ? piece_at(c, number) : piece{};
    begins = number < to_send && p.place == 0;
    if (begins && empty < 0)
      empty = take_buffer(b);
    if (number >= job->pieces || (begins && empty < 0)) {
      number = -1;
      begins = false;
      break;
    }
    if (begins) {
      b->piece[empty] = number;
      b->left[empty] = (int)p.together;
    }
    *at = begins ? empty : (int)(next % MANY);
    then = (uint64_t)(number + 1) * MANY + (uint64_t)*at;
  } while (!__atomic_compare_exchange_n(&job->next, &next, then, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  if (empty >= 0 && !begins) /* another thread was faster */
    __atomic_or_fetch(&b->free, (uint64_t)1 << empty, __ATOMIC_ACQ_REL);
  *at = number >= 0 && number < to_send ? *at : -1;
  return number;
}

/* Does one piece. Returns false if there was no empty buffer or no piece. */
bool do_one(hone_cuda *c, int worker) {
  hone_cuda_buffers *b = &c->buffers;
  int at = -1;
  const int64_t number = take_piece(c, &at);
  if (number < 0)
    return false;
  const piece p = piece_at(c, number);
  hone_entry *to = nullptr;
  if (at >= 0) {
    see_how_many(b);
    to = reinterpret_cast<hone_entry *>(b->memory + (size_t)at * b->bytes) +
         p.place * c->job.width * buffer_ld(p.rows);
  }
  do_piece(c, p, to, worker);
  if (at >= 0 && __atomic_sub_fetch(&b->left[at], 1, __ATOMIC_ACQ_REL) == 0) {
    __atomic_add_fetch(&b->waiting, 1, __ATOMIC_RELAXED);
    __atomic_or_fetch(&b->ready, (uint64_t)1 << at, __ATOMIC_SEQ_CST);
    serve_until_none_ready(c);
  }
  return true;
}

} // namespace

void hone_cuda_pieces_work(void *ctx, int64_t worker) {
  hone_cuda *c = static_cast<hone_cuda *>(ctx);
  /* Before any other call, which would make a context on device 0. */
  fail(&c->job, CALL(cudaSetDevice(c->ordinal)));
  const hone_cuda_entry meanwhile;
  const timespec nap = {0, SLEEP_NS};
  while (any_left(&c->job)) {
    if (do_one(c, (int)worker))
      continue;
    serve_until_none_ready(c);
    if (__atomic_load_n(&c->buffers.free, __ATOMIC_RELAXED) == 0)
      (void)nanosleep(&nap, nullptr);
  }
}

void hone_cuda_pieces_start(hone_cuda *c, const hone_dense *a,
                            hone_cuda_column *column, int count, bool sends,
                            bool projects) {
  hone_cuda_job *job = &c->job;
  int64_t columns = 0;
  *job = {};
  job->a = *a;
  job->column = column;
  job->count = count;
  job->sends = sends;
  job->projects = projects;
  job->width = columns_of_piece(c->n);
  job->part_rows = rows_of_piece(c->n);
  job->parts = divide_up(c->n, job->part_rows);
  for (int i = 0; i < count; i++) {
    column[i].first = job->column_pieces;
    column[i].pieces = divide_up(column[i].w, job->width) * job->parts;
    column[i].sent = column[i].arrived = 0;
    job->column_pieces += column[i].pieces;
    columns += column[i].w;
  }
  job->pieces = c->one_triangle ? 2 * job->column_pieces : job->column_pieces;
  if (projects)
    hone_cuda_projection_divide(c, job->parts, c->one_triangle);
  if (sends) { /* as the last job says; its buffers may have been read */
    fail(job, empty_buffers(&c->buffers));
    c->buffers.streams = !c->buffers.filled;
    c->buffers.filled = false;
  }
  job->running = true;
  const bool enough = c->n * columns >= 1 << 15; /* to wake the others */
  job->caller_helps = !enough || hone_pool_threads(c->pool) <= CALLER_HELPS;
  if (enough && c->deal.of <= 1)
    hone_pool_start(c->pool, HONE_CUDA_FEEDERS, hone_cuda_pieces_work, c);
}

bool hone_cuda_pieces_help(hone_cuda *c) {
  if (!c->job.running)
    return false;
  if (c->job.caller_helps && any_left(&c->job) && do_one(c, HONE_CUDA_FEEDERS))
    return true;
  if (c->job.sends)
    serve_until_none_ready(c);
  return false;
}

void hone_cuda_pieces_stop(hone_cuda *c, int st) { fail(&c->job, st); }

int hone_cuda_pieces_end(hone_cuda *c) {
  if (!c->job.running)
    return HONE_OK;
  while (any_left(&c->job))
    if (!do_one(c, HONE_CUDA_FEEDERS)) {
      serve_until_none_ready(c);
      sched_yield();
    }
  hone_pool_wait(c->pool);
  while (c->job.sends && !failed(&c->job) && c->buffers.ready != 0)
    serve_until_none_ready(c);
  c->job.running = false;
  if (c->job.sends && failed(&c->job))
    reset_buffers(c);
  if (c->job.projects)
    c->projection.taken = c->job.status == HONE_OK;
  return c->job.status;
}

int hone_cuda_pieces_create(hone_cuda *c) {
  hone_cuda_buffers *b = &c->buffers;
  b->bytes = (size_t)(HONE_CUDA_TOGETHER * columns_of_piece(c->n) *
                      buffer_ld(rows_of_piece(c->n))) *
             sizeof(hone_entry);
  b->free = ALL_BUFFERS;
  int st = hone_cuda_pin(c, reinterpret_cast<void **>(&b->memory),
                         b->bytes * HONE_CUDA_BUFFERS);
  for (cudaEvent_t &done : b->done)
    TRY(CREATE(&done, cudaEventCreateWithFlags(&done, cudaEventDisableTiming)));
  return st;
}

void hone_cuda_pieces_destroy(hone_cuda *c) {
  for (cudaEvent_t done : c->buffers.done)
    if (done)
      (void)cudaEventDestroy(done);
  (void)cudaFreeHost(c->buffers.memory);
}
