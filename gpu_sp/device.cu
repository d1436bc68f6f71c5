/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA device behind the table of device.h. Everything runs on streams of
   its own: work (the factorization), feed (A on its way), look (results
   fetched while work goes on). No default stream, no device-wide wait, and
   after create nothing is allocated. Where the device has room, the caller's
   matrix stays there in double, for scaling, rounding and residuals. Here:
   block columns, from the caller's to factored ones, and the table. */
#include "gpu_sp/state.h"

#include <cfloat>
#include <cmath>
#include <cstring>

namespace {

const int64_t SMALL_ORDER = 8192;  /* the last part of A is half of it */
const int64_t LARGE_ORDER = 20000; /* eight equal parts from here on */

bool resident(void *self) {
  return static_cast<hone_cuda *>(self)->a != nullptr;
}

/* A comes in parts that are factored while the next are on their way, and
   brought up to date with all panels before them, a fixed cost for each. Beside
   the panels, with look-ahead, that costs less: more parts then, the first
   one small, for there is nothing else to do. (docs/performance.md) */
int64_t feed_width(const hone_cuda *c, int64_t j) {
  static const int64_t parts[] = {2, 4, 4, 4, 4, 6, 8}; /* n / 32 */
  const int64_t n = c->n, part = round_up((n + 7) / 8, c->nb);
  int64_t end = 0;
  if (c->forms.side.stream) {
    for (int64_t p : parts) {
      end += round_up(p * n / 32, c->nb);
      if (end > j)
        return end - j;
    }
    return n - j;
  }
  if (j < 2 * part || n > LARGE_ORDER)
    return part;
  return n <= SMALL_ORDER && j >= 4 * part ? n - j : 2 * part;
}

/* A that is there already is factored as a whole. */
int64_t block(void *self, const hone_scaling *scaling, int64_t j) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  if (j == 0 ? scaling && c->looked && hone_cuda_all_there(c) : c->again)
    return c->n - j;
  if (c->stage_columns > 0)
    return c->stage_columns;
  return feed_width(c, j);
}

} // namespace

int hone_cuda_upload_scaling(hone_cuda *c, const hone_scaling *scaling) {
  const size_t bytes = (size_t)c->n * sizeof(double);
  memcpy(c->h_v, scaling->row, bytes);
  memcpy(c->h_v + c->n, scaling->col, bytes);
  int st = CALL(
      cudaMemcpyAsync(c->row, c->h_v, bytes, cudaMemcpyHostToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->col, c->h_v + c->n, bytes,
                              cudaMemcpyHostToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  return st;
}

namespace {

/* Before the first block column of a factorization: results cleared. */
int clear(hone_cuda *c) {
  c->column_count = c->panel_count = c->moves_count = 0;
  c->split = -1;
  c->host_flushed = 0;
  int st = hone_cuda_forms_clear(c);
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->perm, c->map, (size_t)c->n * sizeof(int),
                              cudaMemcpyDeviceToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->place, c->map, (size_t)c->n * sizeof(int),
                              cudaMemcpyDeviceToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemsetAsync(c->panel_work, 0,
                              (size_t)hone_cuda_panel_bytes(c->n), c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemsetAsync(
        c->top, 0, (size_t)(c->column_room + 1) * sizeof(unsigned), c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemsetAsync(c->flushed, 0, sizeof *c->flushed, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemsetAsync(c->flags, 0, 2 * sizeof(int), c->work));
  if (st == HONE_OK) /* "first zero pivot": a large number */
    st = CALL(cudaMemsetAsync(c->flags, 0x7f, sizeof(int), c->work));
  return st;
}

/* A's way, by the block columns that block will name. */
void set_out(hone_cuda *c, const hone_dense *a) {
  int count = 0;
  for (int64_t j = 0, w; j < c->n && count < c->column_room; j += w) {
    w = c->block > 0 ? c->block : feed_width(c, j);
    w = w < c->n - j ? w : c->n - j;
    c->columns[count].j = j;
    c->columns[count++].w = w;
  }
  hone_cuda_feed_start(c, a, count);
  c->way = c->job.running;
}

int begin(hone_cuda *c, const hone_dense *a, const hone_scaling *scaling) {
  /* The same pointer may hold another matrix: only the factorization that
     follows one of A unseen finds A there. */
  const bool again = c->looked && hone_cuda_all_there(c) && c->source == a->a &&
                     scaling != nullptr;
  int st = clear(c);
  c->looked = scaling == nullptr;
  if (!c->careful) {
    c->pieces = c->wanted;
    c->tf32 = c->wanted_tf32;
  }
  c->careful = false;
  c->again = again;
  c->way = false;
  c->scaled = scaling != nullptr && scaling->used;
  if (st == HONE_OK && !again) {
    st = hone_cuda_feed_begin(c, a);
    if (st == HONE_OK && c->a)
      set_out(c, a);
    if (st == HONE_OK && c->a)
      st = CALL(cudaMemsetAsync(c->seen, 0, 2 * (size_t)c->n * sizeof(double),
                                c->work));
  }
  if (st == HONE_OK && c->scaled)
    st = hone_cuda_upload_scaling(c, scaling);
  return st;
}

/* A's columns j .. on the device, seen, and rounded into F. */
int load_resident(hone_cuda *c, const hone_dense *a, hone_cuda_column *col,
                  unsigned *top) {
  const int64_t j = col->j, w = col->w, n = c->n;
  int st = hone_cuda_feed(c, a, j + w, col->fed);
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(c->work, col->fed, 0));
  if (st == HONE_OK)
    st = hone_cuda_look(c, j + w);
  if (st == HONE_OK)
    st = CALL(hone_cuda_round(
        {c->a, c->lda, c->spd ? j + w : n, j, w},
        {c->scaled ? c->row : nullptr, c->scaled ? c->col : nullptr}, c->spd,
        {c->f, c->ld, c->place, top, c->flushed}, c->work));
  return st;
}

/* The same of an A that is the device's own, and not copied. */
int load_there(hone_cuda *c, const hone_cuda_column *col, unsigned *top) {
  return CALL(hone_cuda_round(
      {c->from, c->from_ld, c->spd ? col->j + col->w : c->n, col->j, col->w},
      {c->scaled ? c->row : nullptr, c->scaled ? c->col : nullptr}, c->spd,
      {c->f, c->ld, c->place, top, c->flushed}, c->work));
}

/* The same by way of the host, which scales and rounds. */
int load_rounded(hone_cuda *c, const hone_dense *a, const hone_scaling *scaling,
                 int index) {
  hone_cuda_column *col = c->columns + index;
  float *stage = c->stage + (index % 2) * c->ld * c->stage_columns;
  int st = HONE_OK;
  if (index >= 2) /* what it held has been turned */
    st = CALL(cudaStreamWaitEvent(c->feed, c->columns[index - 2].turned, 0));
  if (st == HONE_OK)
    st = hone_cuda_feed_rounded(c, a, scaling, col->j, col->w, stage);
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(col->fed, c->feed));
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(c->work, col->fed, 0));
  if (st == HONE_OK)
    st = CALL(hone_cuda_transpose(
        c->n, stage, c->ld, col->j, col->w,
        {c->f, c->ld, c->place, c->top + index, nullptr}, c->work));
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(col->turned, c->work));
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

int scale_pieces(hone_cuda *c, int index) {
  hone_piece_scale *scale = c->scale + index;
  return CALL(c->spd ? hone_cuda_piece_scale_spd(c->pieces, c->top, index + 1,
                                                 scale, c->work)
                     : hone_cuda_piece_scale(c->pieces, c->top + index, scale,
                                             c->work));
}

int load_next(hone_cuda *c, const hone_dense *a, const hone_scaling *scaling,
              int64_t j, int64_t w) {
  int index, st = add_column(c, j, w, &index);
  if (st != HONE_OK)
    return st;
  hone_cuda_column *col = c->columns + index;
  unsigned *top = c->top + index;
  if (c->a)
    st = load_resident(c, a, col, top);
  else
    st =
        c->there ? load_there(c, col, top) : load_rounded(c, a, scaling, index);
  if (st == HONE_OK)
    st = scale_pieces(c, index);
  return st;
}

int load(void *self, const hone_matrix *matrix, const hone_scaling *scaling,
         int64_t j, int64_t w) {
  const hone_dense *a = hone_dense_of(matrix);
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int st = j == 0 ? begin(c, a, scaling) : (int)HONE_OK;
  if (st != HONE_OK || (j > 0 && hone_cuda_loaded(c) > j))
    return st;
  return load_next(c, a, scaling, j, w);
}

hone_cuda_column *column_at(hone_cuda *c, int64_t j) {
  int i = c->column_count - 1;
  while (i > 0 && c->columns[i].j > j)
    i--;
  return c->columns + i;
}

int update(void *self, int64_t j, int64_t w) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  if (!c->spd)
    return hone_cuda_update(c, column_at(c, j)->applied, j, j + w);
  for (int p = 0; p < c->panel_count && st == HONE_OK; p++)
    st = hone_cuda_apply_spd(c, p, j, j + w);
  return st;
}

/* ---- While one block column is being factored -------------------------- */

/* *there: has the event come to pass? */
int ask(cudaEvent_t event, bool *there) {
  const cudaError_t e = cudaEventQuery(event);
  *there = e == cudaSuccess;
  if (e != cudaErrorNotReady)
    return hone_cuda_status(e);
  (void)cudaGetLastError();
  return HONE_OK;
}

/* Is one more block column of A on its way, or there and not in F? */
bool one_more(const hone_cuda *c) {
  return c->way && !c->spd && c->forms.side.stream &&
         c->column_count < c->job.count;
}

/* If the next block column is there, into F with it. */
int take_next(hone_cuda *c, bool *taken) {
  const hone_cuda_column *col = c->columns + c->column_count;
  *taken = false;
  if (!one_more(c) || !hone_cuda_sent(col))
    return HONE_OK;
  int st = ask(col->fed, taken);
  if (st == HONE_OK && *taken)
    st = load_next(c, &c->job.a, nullptr, col->j, col->w);
  return st;
}

/* The caller does not run ahead of the device while A comes in: what is there
   when a panel begins decides what is done beside it. */
int keep_pace(hone_cuda *c) {
  int st = HONE_OK;
  bool taken = false, late = c->panel_count < HONE_CUDA_PACE;
  while (st == HONE_OK && one_more(c) && !late && !taken) {
    st = take_next(c, &taken);
    if (st == HONE_OK && !taken)
      st = ask(c->pace[c->panel_count % HONE_CUDA_PACE], &late);
    if (st == HONE_OK && !taken && !late)
      hone_cuda_feed_help(c);
  }
  return st;
}

/* Beside the next panel: the block columns behind this one are brought up to
   date, evenly until their turn comes. left: panels of this one. */
int go_on_behind(hone_cuda *c, const hone_cuda_column *now, int64_t left) {
  int st = HONE_OK;
  for (int i = (int)(now - c->columns) + 1; i < c->column_count; i++) {
    hone_cuda_column *col = c->columns + i;
    const int64_t until = left + (col->j - now->j - now->w) / c->nb;
    const int64_t owed = c->panel_count - col->applied;
    const int to = col->applied + (int)((owed + until - 1) / until);
    if (st == HONE_OK)
      st = hone_cuda_catch_up(c, col->applied, to, col->j, col->j + col->w);
    col->applied = to;
  }
  return st;
}

int panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  hone_cuda_column *now = column_at(c, j);
  (void)zero_pivot; /* not known yet */
  for (int64_t k = j, kw; k < j + w && st == HONE_OK; k += kw) {
    kw = j + w - k < c->nb ? j + w - k : c->nb;
    st = keep_pace(c);
    if (st == HONE_OK)
      st = c->spd ? hone_cuda_factor_panel_spd(c, k, kw)
                  : hone_cuda_factor_panel(c, k, kw, j + w);
    if (st == HONE_OK)
      st = c->spd ? hone_cuda_apply_spd(c, c->panel_count - 1, k + kw, j + w)
                  : hone_cuda_apply(c, c->panel_count - 1, k + kw, j + w);
    if (st == HONE_OK && k + kw < j + w)
      st = go_on_behind(c, now, (j + w - k - kw + c->nb - 1) / c->nb);
    if (st == HONE_OK && c->way)
      st = CALL(cudaEventRecord(c->pace[(c->panel_count - 1) % HONE_CUDA_PACE],
                                c->work));
  }
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(now->done, c->work));
  return st;
}

int finish(void *self) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = CALL(hone_cuda_invert_blocks(c->n, c->f, c->ld, c->lower,
                                        c->spd ? nullptr : c->upper, c->work));
  if (st == HONE_OK)
    st = CALL(hone_cuda_largest_u(c->n, c->f, c->ld, c->top + c->column_room,
                                  c->work));
  return st;
}

/* While the block columns behind are still being worked on. */
int pivots(void *self, int64_t j, int64_t w, float *out) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int i = 0;
  while (i + 1 < c->column_count && c->columns[i].j + c->columns[i].w < j + w)
    i++;
  int st = CALL(cudaStreamWaitEvent(c->look, c->columns[i].done, 0));
  if (st == HONE_OK)
    st = CALL(cudaMemcpy2DAsync(out, sizeof(float), c->f + j + j * c->ld,
                                (size_t)(c->ld + 1) * sizeof(float),
                                sizeof(float), (size_t)w,
                                cudaMemcpyDeviceToHost, c->look));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->look));
  for (int64_t k = 0; k < w; k++)
    out[k] = c->spd ? out[k] * out[k] : std::fabs(out[k]);
  return st;
}

void abandon(void *self) {
  hone_cuda_feed_stop(static_cast<hone_cuda *>(self));
}

int outcome(void *self, bool complete, hone_factor_info *info) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int room = c->column_room;
  unsigned *top = c->h_top;
  struct results {
    int flags[2];
    unsigned long long flushed;
  } *r = reinterpret_cast<results *>(c->h_v);
  int st = c->job.running ? hone_cuda_feed(c, &c->job.a, c->n, nullptr)
                          : (int)HONE_OK;
  c->ahead = false;
  const hone_copy back[] = {
      /* perm: for the solves */
      {c->flags, r->flags, 2},
      {c->flushed, &r->flushed, 2},
      {c->top, top, room + 1},
      {c->perm, hone_cuda_at(c, HONE_CUDA_PERM), complete ? c->n : 0}};
  if (st == HONE_OK)
    st = CALL(hone_cuda_copy(back, 4, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  info->flushed = (int64_t)r->flushed + c->host_flushed;
  if (r->flags[0] < c->n)
    info->zero_pivot = r->flags[0];
  if (!complete)
    return HONE_OK;
  float u, s = 0.0F;
  for (int i = 0; i < c->column_count; i++) {
    float t;
    memcpy(&t, &top[i], sizeof t);
    s = t > s ? t : s;
  }
  memcpy(&u, &top[room], sizeof u);
  /* an S that is not finite must not look like one that does not grow */
  const bool finite = !r->flags[1] && s <= FLT_MAX;
  info->growth = finite ? (double)u / (double)s : HONE_INF;
  info->growth *= c->spd ? (double)u : 1.0;
  return HONE_OK;
}

/* FP16 pieces overflow where pivots grow: plain FP32 does not. */
bool safer(void *self) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const bool can = c->pieces != HONE_FLOATS || c->tf32;
  c->careful = true;
  c->pieces = HONE_FLOATS;
  c->tf32 = false;
  return can;
}

} // namespace

int hone_cuda_load_floats(hone_cuda *c, const float *a, int64_t lda) {
  int index;
  c->way = false;
  int st = clear(c);
  if (st == HONE_OK)
    st = add_column(c, 0, c->n, &index);
  if (st == HONE_OK)
    st = CALL(hone_cuda_transpose(c->n, a, lda, 0, c->n,
                                  {c->f, c->ld, nullptr, c->top, nullptr},
                                  c->work));
  if (st == HONE_OK)
    st = scale_pieces(c, 0);
  return st;
}

extern "C" const hone_device hone_device_cuda = {"CUDA",
                                                 hone_cuda_probe,
                                                 hone_cuda_create,
                                                 hone_cuda_destroy,
                                                 hone_cuda_host_bytes,
                                                 block,
                                                 load,
                                                 update,
                                                 panel,
                                                 finish,
                                                 pivots,
                                                 outcome,
                                                 hone_cuda_solve,
                                                 true,
                                                 abandon,
                                                 safer,
                                                 resident,
                                                 hone_cuda_see,
                                                 hone_cuda_take_residual,
                                                 hone_cuda_expect,
                                                 hone_cuda_account,
                                                 hone_cuda_device_bytes,
                                                 nullptr};
