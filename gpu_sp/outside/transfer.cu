/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of panels between the host's memory, where A and F lie column by
   column, and the device, where F lies row by row: threads of the pool copy
   columns to pinned buffers or back, the bus takes them from there, and a
   kernel transposes them. All panels go through the same stages on the device
   in turn, and all pieces of them through the same pinned buffers.

     host to device    stream feed; then 'work' transposes, and puts each row
                       where it is now
     device to host    'work' transposes; then stream fetch */
#include "gpu_sp/outside/outside.h"

#include "gpu_sp/feed/round.h"

extern "C" {
#include "base/rounding.h"
}

#include <cstring>

namespace {

enum { THREADS = 256, TILE = 32 };

/* *place = where a row is now, in place of its number in S. */
__global__ void __launch_bounds__(THREADS)
    find_places(int64_t rows, int *place, const int *new_row) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < rows)
    place[i] = new_row[place[i]];
}

/* out[i + c n] = f_ic for w columns. A thread block takes a tile. */
__global__ void __launch_bounds__(THREADS)
    take_columns(int64_t n, int64_t w, const float *f, int64_t ld,
                 hone_single *out) {
  __shared__ hone_single tile[TILE][TILE + 1];
  const int64_t i0 = (int64_t)blockIdx.x * TILE,
                c0 = (int64_t)blockIdx.y * TILE;
  const int lane = (int)threadIdx.x % TILE, warp = (int)threadIdx.x / TILE;
  for (int q = warp; q < TILE; q += THREADS / TILE)
    if (i0 + q < n && c0 + lane < w)
      tile[q][lane] = *reinterpret_cast<const hone_single *>(
          f + (i0 + q) * ld + HONE_PARTS * (c0 + lane));
  __syncthreads();
  for (int q = warp; q < TILE; q += THREADS / TILE)
    if (i0 + lane < n && c0 + q < w)
      out[i0 + lane + (c0 + q) * n] = tile[lane][q];
}

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

hone_outside_stage *next_stage(hone_outside *o) {
  return o->stage + o->stages_used++ % HONE_OUTSIDE_STAGES;
}

/* Returns pinned memory for the rows of a stage. */
int *pinned_rows(const hone_outside *o, const hone_outside_stage *stage) {
  const int at = HONE_CUDA_X + (int)(stage - o->stage);
  return reinterpret_cast<int *>(
      hone_cuda_pinned(o->c, static_cast<hone_cuda_part_of_h_v>(at)));
}

/* ---- Pieces: some columns, which a pinned buffer holds ------------------- */

/* 'count' columns of F in host memory, and of these the rows from 'row' on. */
struct piece {
  const hone_outside *o;
  int64_t j, count, row;
  hone_single *buffer; /* of the rows alone */
  bool out;            /* to the buffer; false: back */
};

void copy_column(void *ctx, int64_t task) {
  const piece *p = static_cast<const piece *>(ctx);
  const int64_t rows = p->o->n - p->row;
  hone_single *column = p->o->to.f + (p->j + task) * p->o->to.ld + p->row;
  hone_single *packed = p->buffer + task * rows;
  memcpy(p->out ? packed : column, p->out ? column : packed,
         (size_t)rows * sizeof(hone_single));
}

void copy_piece(piece p) { hone_pool_run(p.o->pool, p.count, copy_column, &p); }

/* Returns how many columns of so many rows a buffer takes. */
int64_t columns_of_buffer(const hone_outside *o, int64_t rows) {
  return (int64_t)(o->c->stage_bytes / ((size_t)rows * sizeof(hone_single)));
}

/* Waits until the next buffer may be written. */
int take_buffer(hone_outside *o, hone_cuda_slot **slot) {
  *slot = o->c->staged + o->c->stages_used++ % HONE_CUDA_STAGES;
  return CALL(cudaEventSynchronize((*slot)->free));
}

/* Sends what is in the buffer, to entry 'at' of the stage. */
int send_buffer(hone_outside *o, hone_cuda_slot *slot,
                hone_outside_stage *stage, int64_t at, int64_t entries) {
  hone_cuda *c = o->c;
  const size_t bytes = (size_t)entries * sizeof(hone_single);
  int st = CALL(cudaMemcpyAsync(stage->entries + at, slot->memory, bytes,
                                cudaMemcpyHostToDevice, c->feed));
  TRY_CUDA(cudaEventRecord(slot->free, c->feed));
  c->used.to_device += (int64_t)bytes;
  return st;
}

/* Lets 'work' wait for the stage, which all of a panel has been sent to. */
int end_send(hone_outside *o, hone_outside_stage *stage) {
  int st = CALL(cudaEventRecord(stage->filled, o->c->feed));
  TRY_CUDA(cudaStreamWaitEvent(o->c->work, stage->filled, 0));
  return st;
}

/* Writes the stage's panel of w columns, rows row .. n-1 of what is stored, to
   F. place: device. */
int put_in_f(hone_outside *o, hone_outside_stage *stage, int64_t row, int64_t w,
             int64_t to, const int *place, unsigned *top) {
  hone_cuda *c = o->c;
  int st =
      CALL(hone_cuda_transpose(o->n - row, stage->entries, o->n - row, to, w,
                               {o->f, c->ld, place, top, nullptr}, c->work));
  TRY_CUDA(cudaEventRecord(stage->free, c->work));
  return st;
}

} // namespace

int hone_outside_send_a(hone_outside *o, const hone_dense *a,
                        const hone_scaling *scaling, int p, int64_t place,
                        unsigned *top) {
  hone_cuda *c = o->c;
  hone_outside_stage *stage = next_stage(o);
  const int64_t j = hone_outside_start(o, p), w = hone_outside_width(o, p);
  const int64_t most = columns_of_buffer(o, o->n);
  int st = CALL(cudaStreamWaitEvent(c->feed, stage->free, 0));
  for (int64_t at = 0, now; at < w && st == HONE_OK; at += now) {
    hone_cuda_slot *slot = nullptr;
    now = w - at < most ? w - at : most;
    st = take_buffer(o, &slot);
    if (st != HONE_OK)
      return st;
    const hone_rounding r = {a,
                             scaling,
                             j + at,
                             now,
                             nullptr,
                             0,
                             reinterpret_cast<hone_single *>(slot->memory),
                             o->n,
                             o->to.col_max + j + at,
                             false};
    c->host_flushed += hone_round_columns(o->pool, &r);
    st = send_buffer(o, slot, stage, at * o->n, now * o->n);
  }
  TRY(end_send(o, stage));
  TRY(put_in_f(o, stage, 0, w, place, c->new_row, top));
  return st;
}

int hone_outside_send_l(hone_outside *o, int p, int64_t place,
                        unsigned *unused) {
  hone_cuda *c = o->c;
  hone_outside_stage *stage = next_stage(o);
  const int64_t k = hone_outside_start(o, p), w = hone_outside_width(o, p);
  const int64_t rows = o->n - k, most = columns_of_buffer(o, rows);
  const size_t bytes = (size_t)rows * sizeof(int);
  int *numbers = pinned_rows(o, stage);
  int st = CALL(cudaEventSynchronize(stage->filled)); /* numbers are not read */
  TRY_CUDA(cudaStreamWaitEvent(c->feed, stage->free, 0));
  if (st != HONE_OK)
    return st;
  memcpy(numbers, o->order + p * o->n + k, bytes);
  st = CALL(cudaMemcpyAsync(stage->rows, numbers, bytes, cudaMemcpyHostToDevice,
                            c->feed));
  for (int64_t at = 0, now; at < w && st == HONE_OK; at += now) {
    hone_cuda_slot *slot = nullptr;
    now = w - at < most ? w - at : most;
    st = take_buffer(o, &slot);
    if (st != HONE_OK)
      return st;
    copy_piece({o, k + at, now, k,
                reinterpret_cast<hone_single *>(slot->memory), true});
    st = send_buffer(o, slot, stage, at * rows, now * rows);
  }
  TRY(end_send(o, stage));
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(find_places, blocks_of(rows, THREADS), THREADS, 0, c->work, rows,
              stage->rows, c->new_row);
  st = CALL(cudaGetLastError());
  TRY(put_in_f(o, stage, k, w, place, stage->rows, unused));
  return st;
}

int hone_outside_begin_take(hone_outside *o, int p, int64_t place,
                            hone_outside_stage **to) {
  hone_cuda *c = o->c;
  hone_outside_stage *stage = *to = next_stage(o);
  const int64_t n = o->n, w = hone_outside_width(o, p);
  int st = CALL(cudaMemcpyAsync(stage->rows, c->perm, (size_t)n * sizeof(int),
                                cudaMemcpyDeviceToDevice, c->work));
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(take_columns, dim3(blocks_of(n, TILE), blocks_of(w, TILE)),
              THREADS, 0, c->work, n, w, o->f + HONE_PARTS * place, c->ld,
              stage->entries);
  st = CALL(cudaGetLastError());
  TRY_CUDA(cudaEventRecord(stage->filled, c->work));
  return st;
}

namespace {

/* A piece on its way to the host. */
struct fetched {
  hone_cuda_slot *slot;
  int64_t at, count; /* columns of the panel */
};

/* Enqueues the copy of a piece to the next buffer. */
int fetch_piece(hone_outside *o, const hone_outside_stage *stage, fetched *of) {
  const size_t bytes = (size_t)(of->count * o->n) * sizeof(hone_single);
  int st = take_buffer(o, &of->slot);
  TRY_CUDA(cudaMemcpyAsync(of->slot->memory, stage->entries + of->at * o->n,
                           bytes, cudaMemcpyDeviceToHost, o->c->fetch));
  TRY_CUDA(cudaEventRecord(of->slot->free, o->c->fetch));
  o->c->used.from_device += (int64_t)bytes;
  return st;
}

/* Waits for a piece, and copies it to where F lies. */
int put_piece(hone_outside *o, int p, const fetched &of) {
  const int st = CALL(cudaEventSynchronize(of.slot->free));
  if (st == HONE_OK)
    copy_piece({o, hone_outside_start(o, p) + of.at, of.count, 0,
                reinterpret_cast<hone_single *>(of.slot->memory), false});
  return st;
}

} // namespace

/* All buffers but one are filled while that one is emptied. The stage is free
   when the host has all pieces. */
int hone_outside_end_take(hone_outside *o, int p, hone_outside_stage *stage) {
  enum { BEHIND = HONE_CUDA_STAGES - 1 };
  hone_cuda *c = o->c;
  const int64_t n = o->n, w = hone_outside_width(o, p);
  const int64_t most = columns_of_buffer(o, n), pieces = (w + most - 1) / most;
  int *numbers = pinned_rows(o, stage);
  fetched of[HONE_CUDA_STAGES] = {};
  int st = CALL(cudaStreamWaitEvent(c->fetch, stage->filled, 0));
  TRY_CUDA(cudaMemcpyAsync(numbers, stage->rows, (size_t)n * sizeof(int),
                           cudaMemcpyDeviceToHost, c->fetch));
  for (int64_t i = 0; i < pieces + BEHIND && st == HONE_OK; i++) {
    fetched *now = of + i % HONE_CUDA_STAGES;
    *now = {nullptr, i * most, w - i * most < most ? w - i * most : most};
    if (i < pieces)
      st = fetch_piece(o, stage, now);
    if (i >= BEHIND)
      TRY(put_piece(o, p, of[(i - BEHIND) % HONE_CUDA_STAGES]));
  }
  if (st == HONE_OK) /* every piece came behind the numbers */
    memcpy(o->order + p * n, numbers, (size_t)n * sizeof(int));
  return st;
}

namespace {

/* Columns of F whose rows below their panel are put into order by one task. */
struct ordering {
  hone_outside *o;
  const int *place;  /* n: row i of S has become row place[i] */
  hone_single *room; /* n for each task */
};

enum { TASKS = 64 }; /* each takes every so many-th column */

void order_columns(void *ctx, int64_t task) {
  const ordering *all = static_cast<const ordering *>(ctx);
  const hone_outside *o = all->o;
  hone_single *column = all->room + task * o->n;
  for (int64_t j = task; j < o->n; j += TASKS) {
    const int p = (int)(j / o->nb);
    const int64_t end = hone_outside_start(o, p) + hone_outside_width(o, p);
    const int *order = o->order + p * o->n;
    hone_single *f = o->to.f + j * o->to.ld;
    for (int64_t i = end; i < o->n; i++)
      column[all->place[order[i]]] = f[i];
    memcpy(f + end, column + end, (size_t)(o->n - end) * sizeof *f);
  }
}

} // namespace

int64_t hone_outside_ordering_bytes(int64_t n) {
  return TASKS * n * (int64_t)sizeof(hone_single);
}

/* Exchange k brings the row that is k-th in the end to place k: at[] says where
   each row is, and who[] which row is where. */
int hone_outside_exchange_rows(hone_outside *o, const int *perm) {
  const size_t n = (size_t)o->n;
  int *at = static_cast<int *>(hone_mem_get(o->mem, 2 * n * sizeof(int)));
  hone_single *room = static_cast<hone_single *>(
      hone_mem_get(o->mem, (size_t)hone_outside_ordering_bytes(o->n)));
  const bool there = at != nullptr && room != nullptr;
  if (there) {
    int *who = at + n;
    for (int64_t i = 0; i < o->n; i++)
      at[perm[i]] = (int)i;
    ordering all = {o, at, room};
    hone_pool_run(o->pool, TASKS, order_columns, &all);
    for (int64_t i = 0; i < o->n; i++)
      at[i] = who[i] = (int)i;
    for (int64_t k = 0; k < o->n; k++) {
      const int from = at[perm[k]], moved = who[k];
      o->to.pivot[k] = from + 1;
      who[from] = moved;
      at[moved] = from;
      who[k] = perm[k];
      at[perm[k]] = (int)k;
    }
  }
  hone_mem_put(o->mem, room);
  hone_mem_put(o->mem, at);
  return there ? (int)HONE_OK : (int)HONE_NO_MEMORY;
}
