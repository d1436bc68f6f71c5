/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads block columns of the caller's matrix into F: chooses the width of each,
   and rounds it on the device or on the host. Where the device has room, A
   stays there in double precision, for scaling, rounding and residuals. See
   loop.h; feed/ brings A to the device. */
#include "gpu_sp/factor/loop.h"

#include "gpu_sp/factor/operands.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/round.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/layout.h"
#include "gpu_sp/residual/resident.h"

#include <cstring>

namespace {

const int64_t SMALL_ORDER = 8192;  /* up to here the last part is half of A */
const int64_t LARGE_ORDER = 20000; /* above, A comes in eight equal parts */
const int64_t LEAST_ROUNDS = 2;    /* of panels, in a part behind the first:
                                      of many devices each has few panels */

/* The lists of parts by which A comes where there is look-ahead, in 32nds of n;
   the rest is the last part. hone_trial chooses one by its number. */
enum { MOST_PARTS = 8 };
const int64_t lists[HONE_PARTS_LISTS][MOST_PARTS] = {
    {2, 4, 4, 4, 4, 6, 8}, /* HONE_PARTS_OF_8192, and so on */
    {32},
    {16, 16},
    {8, 24},
    {8, 8, 16},
    {8, 8, 8, 8},
    {4, 6, 6, 8, 8},
    {4, 6, 6, 6, 6, 4},
    {2, 2, 4, 4, 4, 4, 4, 4},
    {4, 4, 4, 4, 8, 8}};

/* Returns the list for this factorization. */
const int64_t *list_of(const hone_choices *choices, bool spd, int64_t n) {
  const int64_t chosen = choices->trial.feed;
  return lists[chosen > 0 && chosen <= HONE_PARTS_LISTS
                   ? chosen - 1
                   : (int64_t)hone_cuda_plan_for(spd, n)->parts];
}

/* Returns the width of the part of A that begins at column j. Each part is
   factored while the next ones are on their way. More parts let the device
   begin earlier, but to bring a part up to date with all panels before it has a
   fixed cost. With look-ahead that is done beside the panels and costs less:
   then there are more parts, and the first is small, because the device has
   nothing else to do until it has come (docs/performance.md). */
int64_t feed_width(const hone_cuda *c, int64_t j) {
  const int64_t n = c->n, part = round_up((n + 7) / 8, c->nb);
  const int64_t *parts = list_of(&c->choices, c->spd, n);
  int64_t end = 0;
  if (c->deal.of > 1)
    return c->deal.kept > 0
               ? hone_cuda_dealt_part_end(&c->choices, c->spd, n, &c->deal, j) -
                     j
               : c->m;
  if (c->forms.side.stream || c->spd) {
    for (int i = 0; i < MOST_PARTS && parts[i] > 0; i++) {
      end += round_up(parts[i] * n / 32, c->nb);
      if (end > j)
        return end - j;
    }
    return n - j;
  }
  if (j < 2 * part || n > LARGE_ORDER)
    return part;
  return n <= SMALL_ORDER && j >= 4 * part ? n - j : 2 * part;
}

} // namespace

int64_t hone_cuda_dealt_part_end(const hone_choices *choices, bool spd,
                                 int64_t n, const hone_cuda_deal *deal,
                                 int64_t j) {
  const int64_t rounds = n / (deal->width * deal->of);
  const int64_t *parts = list_of(choices, spd, n);
  const int64_t from = j / deal->width + (j > 0 ? LEAST_ROUNDS : 1);
  int64_t sum = 0;
  for (int i = 0; i < MOST_PARTS && parts[i] > 0; i++) {
    sum += parts[i];
    const int64_t end = (sum * rounds + 31) / 32;
    if (end >= from && end < rounds)
      return end * deal->width;
  }
  return INT64_MAX;
}

/* If A is on the device already, it is factored as one block column. */
int64_t hone_cuda_width(const hone_cuda *c, int64_t j) {
  const bool there = c->reused || c->original_on_device;
  int64_t w = c->stage_columns > 0 ? c->stage_columns : feed_width(c, j);
  if (c->block > 0)
    w = c->block;
  else if (there)
    w = c->m;
  return w < c->m - j ? w : c->m - j;
}

int hone_cuda_upload_scaling(hone_cuda *c, const hone_scaling *scaling,
                             bool dealt) {
  const int64_t columns = dealt ? c->m : c->n;
  const size_t bytes = (size_t)c->n * sizeof(double);
  memcpy(c->h_v, scaling->row, bytes);
  for (int64_t j = 0; j < columns; j++)
    c->h_v[c->n + j] = scaling->col[dealt ? hone_cuda_dealt_column(c, j) : j];
  int st = CALL(
      cudaMemcpyAsync(c->row, c->h_v, bytes, cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(cudaMemcpyAsync(c->col, c->h_v + c->n,
                           (size_t)columns * sizeof(double),
                           cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  return st;
}

namespace {

/* Clears the results of the factorization before. */
int clear(hone_cuda *c) {
  c->column_count = c->panel_count = c->moves_count = 0;
  c->split_panel = -1;
  c->ahead_end = c->behind_end = c->searched = 0;
  c->room = {};
  c->host_flushed = 0;
  int st = hone_cuda_forms_clear(c);
  TRY_CUDA(cudaMemcpyAsync(c->perm, c->identity, (size_t)c->n * sizeof(int),
                           cudaMemcpyDeviceToDevice, c->work));
  TRY_CUDA(cudaMemcpyAsync(c->new_row, c->identity, (size_t)c->n * sizeof(int),
                           cudaMemcpyDeviceToDevice, c->work));
  const hone_panel_room &room = c->panel_work;
  TRY_CUDA(cudaMemsetAsync(room.memory, 0,
                           (size_t)hone_cuda_panel_bytes(c->n, room.part_rows),
                           c->work));
  TRY_CUDA(cudaMemsetAsync(
      c->top, 0, (size_t)(c->column_room + 1) * sizeof(unsigned), c->work));
  TRY_CUDA(cudaMemsetAsync(c->flushed, 0, sizeof *c->flushed, c->work));
  TRY_CUDA(cudaMemsetAsync(c->flags, 0, 2 * sizeof(int), c->work));
  /* the first zero pivot: a large number, which means none */
  TRY_CUDA(cudaMemsetAsync(c->flags, 0x7f, sizeof(int), c->work));
  return st;
}

} // namespace

int hone_cuda_load_clear(hone_cuda *c) {
  int st = hone_cuda_forget(c);
  c->companion.there = false;
  TRY(clear(c));
  if (!c->keep_safer) {
    c->pieces = c->wanted_pieces;
    c->tf32 = c->wanted_tf32;
  }
  c->keep_safer = false;
  return st;
}

namespace {

/* Lets the threads begin to send A, by the block columns that hone_cuda_width
   will return. */
int start_feed(hone_cuda *c, const hone_dense *a) {
  int count = 0;
  for (int64_t j = 0, w; j < c->m && count < c->column_room; j += w) {
    w = c->block > 0 ? c->block : feed_width(c, j);
    w = w < c->m - j ? w : c->m - j;
    c->columns[count].j = j;
    c->columns[count++].w = w;
  }
  hone_cuda_feed_start(c, a, count);
  c->arriving = hone_cuda_sending(c);
  c->coming = count;
  /* Block columns are loaded when they have arrived: the last copies are not to
     wait until the host comes to them. */
  return c->original_readable && !c->original_on_device && c->block == 0
             ? hone_cuda_feed_all(c, count)
             : (int)HONE_OK;
}

/* Prepares to bring A to the device, and begins. The matrix before may have
   been given up, and inspected in another stream. */
int begin_feed(hone_cuda *c, const hone_dense *a) {
  int st = hone_cuda_feed_begin(c, a);
  if (st != HONE_OK || c->a == nullptr)
    return st;
  st = start_feed(c, a);
  TRY_CUDA(cudaStreamWaitEvent(hone_cuda_inspects_on(c), c->seen, 0));
  TRY_CUDA(cudaMemsetAsync(c->magnitudes, 0, 2 * (size_t)c->n * sizeof(double),
                           hone_cuda_inspects_on(c)));
  TRY_CUDA(cudaMemsetAsync(asymmetry_flag(c), 0, sizeof(int),
                           hone_cuda_inspects_on(c)));
  TRY_CUDA(cudaEventRecord(c->seen, hone_cuda_inspects_on(c)));
  return st;
}

} // namespace

int hone_cuda_load_begin(hone_cuda *c, const hone_dense *a,
                         const hone_scaling *scaling) {
  /* A pointer that is equal may hold another matrix, which another engine had
     first: only the factorization that follows one of A unseen finds A there.
   */
  const bool again = c->uninspected && hone_cuda_has_all_of_a(c) &&
                     c->source == a->a && c->serial == a->serial &&
                     scaling != nullptr;
  int st = hone_cuda_load_clear(c);
  c->uninspected = scaling == nullptr && st == HONE_OK;
  c->reused = again;
  c->arriving = false;
  c->scaled = scaling != nullptr && scaling->used;
  c->serial = a->serial;
  if (!again)
    TRY(begin_feed(c, a));
  if (c->scaled)
    TRY(hone_cuda_upload_scaling(c, scaling, true));
  return st;
}

namespace {

/* Rounds the columns j .. j+w-1 of a matrix on the device into F. Where several
   devices share a symmetric one, these are of one panel, and their rows of F
   are those of their numbers in A. */
int round_columns(hone_cuda *c, const hone_entry *a, int64_t lda, int64_t j,
                  int64_t w, unsigned *top) {
  const hone_double_columns from = {a, lda, c->n, j, w};
  const hone_device_scaling scaling = {c->scaled ? c->row : nullptr,
                                       c->scaled ? c->col : nullptr};
  const hone_rounded to = {c->f, c->ld, c->new_row, top, c->flushed};
  return CALL(c->spd
                  ? hone_cuda_round_triangle(from, hone_cuda_dealt_column(c, j),
                                             scaling, to, c->work)
                  : hone_cuda_round(from, scaling, to, c->work));
}

/* Rounds the block column of a matrix on the device into F. */
int round_column(hone_cuda *c, const hone_entry *a, int64_t lda,
                 const hone_cuda_column *col, unsigned *top) {
  const bool by_panels = c->spd && c->deal.of > 1;
  const int64_t end = col->j + col->w;
  int st = HONE_OK;
  for (int64_t j = col->j, w; j < end && st == HONE_OK; j += w) {
    w = by_panels ? c->deal.width - j % c->deal.width : col->w;
    w = w < end - j ? w : end - j;
    st = round_columns(c, a, lda, j, w, top);
  }
  return st;
}

/* Brings the block column to the device, inspects it, and rounds it into F. */
int load_resident(hone_cuda *c, const hone_dense *a, hone_cuda_column *col,
                  unsigned *top) {
  int st = hone_cuda_feed_columns(c, a, col->j + col->w, col->fed);
  TRY_CUDA(cudaStreamWaitEvent(c->work, col->fed, 0));
  TRY(hone_cuda_inspect_arrived(c, col->j + col->w));
  TRY(round_column(c, c->a, c->lda, col, top));
  return st;
}

/* Scales and rounds the block column on the host, and sends it as floats. */
int load_from_host(hone_cuda *c, const hone_dense *a,
                   const hone_scaling *scaling, int index) {
  hone_cuda_column *col = c->columns + index;
  float *stage = c->stage + (index % 2) * c->ld * c->stage_columns;
  int st = HONE_OK;
  if (index >= 2) /* the block column that stage held is in F */
    st = CALL(cudaStreamWaitEvent(c->feed, c->columns[index - 2].in_f, 0));
  TRY(hone_cuda_feed_rounded(c, a, scaling, col->j, col->w, stage));
  TRY_CUDA(cudaEventRecord(col->fed, c->feed));
  TRY_CUDA(cudaStreamWaitEvent(c->work, col->fed, 0));
  TRY_CUDA((c->spd ? hone_cuda_take_triangle : hone_cuda_transpose)(
      c->n, reinterpret_cast<const hone_single *>(stage), c->ld / HONE_PARTS,
      col->j, col->w, {c->f, c->ld, c->new_row, c->top + index, nullptr},
      c->work));
  return st;
}

int add_column(hone_cuda *c, int64_t j, int64_t w, int *index) {
  if (c->column_count >= c->column_room)
    return HONE_INTERNAL;
  *index = c->column_count++;
  c->columns[*index].j = j;
  c->columns[*index].w = w;
  c->columns[*index].applied = 0;
  return HONE_OK;
}

int set_split_scale(hone_cuda *c, int index) {
  hone_split_scale *scale = c->scale + index;
  return CALL(c->spd ? hone_cuda_split_scale_spd(c->pieces, c->top, index + 1,
                                                 scale, c->work)
                     : hone_cuda_split_scale(c->pieces, c->top + index, scale,
                                             c->work));
}

} // namespace

int hone_cuda_load_next(hone_cuda *c, const hone_dense *a,
                        const hone_scaling *scaling, int64_t j, int64_t w) {
  int index, st = add_column(c, j, w, &index);
  if (st != HONE_OK)
    return st;
  hone_cuda_column *col = c->columns + index;
  unsigned *top = c->top + index;
  if (c->a)
    st = load_resident(c, a, col, top);
  else if (c->original_on_device)
    st = round_column(c, c->original, c->original_ld, col, top);
  else
    st = load_from_host(c, a, scaling, index);
  TRY_CUDA(cudaEventRecord(col->in_f, c->work));
  TRY(set_split_scale(c, index));
  return st;
}

int hone_cuda_load(hone_cuda *c, const hone_dense *a,
                   const hone_scaling *scaling, int64_t j, int64_t w) {
  if (j > 0 && hone_cuda_loaded_end(c) > j)
    return HONE_OK;
  return hone_cuda_load_next(c, a, scaling, j, w);
}

int hone_cuda_load_floats(hone_cuda *c, const hone_single *a, int64_t lda) {
  int index;
  c->arriving = false;
  int st = clear(c);
  TRY(add_column(c, 0, c->n, &index));
  TRY_CUDA(hone_cuda_transpose(
      c->n, a, lda, 0, c->n, {c->f, c->ld, nullptr, c->top, nullptr}, c->work));
  TRY(set_split_scale(c, 0));
  return st;
}
