/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization on a CUDA device, by block columns from left to right.
   Block column J of width w at column j:

     load     F[:, J]     <- S[:, J], scaled and rounded, its rows in the
                             present order
     update   for each panel before it, K its columns:
              U[K, J]      = inv(L11) F[K, J]
              F[below, J] -= L21 U[K, J]              (the trailing update)
     factor   P F[j:n, J]  = L U, by outer panels: lu.cu, cholesky.cu
     judge    do the pivots fall so fast that the factors are of no use?

   Cholesky's takes the lower triangle of A by block columns, which are block
   rows of the upper one: cholesky.cu. So most of A comes first, and little work
   is left when the last block column has come.

   Everything runs on streams of the engine's own: work (the factorization),
   feed (A comes to the device) and fetch (pivots come to the host while work
   goes on); with look-ahead, those of the panels and of the next panel's
   columns (outer_panels.cu), too. Nothing uses the default stream or
   waits for the whole device, and nothing is allocated after create. The host
   runs ahead of the device: it judges the pivots one block column late. While A
   comes in, the block columns behind the present one are loaded and brought up
   to date as soon as they have arrived, beside the panels. */
#include "gpu_sp/factor/loop.h"

#include "gpu_sp/factor/outer_panels.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/residual/residual.h"

extern "C" {
#include "base/pivot_fall.h"
}

#include <cfloat>
#include <cmath>
#include <cstring>

namespace {

hone_cuda_column *column_at(hone_cuda *c, int64_t j) {
  int i = c->column_count - 1;
  while (i > 0 && c->columns[i].j > j)
    i--;
  return c->columns + i;
}

/* Brings the block column up to date with the panels on its left. */
int update_column(hone_cuda *c, int64_t j, int64_t w) {
  return hone_cuda_apply_panels_from(c, column_at(c, j)->applied, j, j + w);
}

/* ---- While one block column is being factored -------------------------- */

/* *reached becomes true if the device has reached the event. */
int query_event(cudaEvent_t event, bool *reached) {
  const cudaError_t e = cudaEventQuery(event);
  *reached = e == cudaSuccess;
  if (e != cudaErrorNotReady)
    return hone_cuda_status(e);
  (void)cudaGetLastError();
  return HONE_OK;
}

/* Returns true if a block column that is not in F has arrived or will. */
bool more_columns_come(const hone_cuda *c) {
  return c->arriving && c->forms.side.stream && c->column_count < c->coming;
}

/* Loads the next block column into F if it has arrived. */
int load_if_arrived(hone_cuda *c, bool *loaded) {
  const hone_cuda_column *col = c->columns + c->column_count;
  *loaded = false;
  if (!more_columns_come(c) || !hone_cuda_column_sent(col))
    return HONE_OK;
  int st = query_event(col->fed, loaded);
  if (st == HONE_OK && *loaded)
    st = hone_cuda_load_next(c, &c->job.a, nullptr, col->j, col->w);
  return st;
}

/* While A comes in, waits until a block column has arrived, or the device is
   only HONE_CUDA_PACE panels behind the host: the columns that have arrived
   when a panel is enqueued decide which updates go beside it, so the host must
   not enqueue it much too early. */
int keep_pace(hone_cuda *c) {
  int st = HONE_OK;
  bool loaded = false, near = c->panel_count < HONE_CUDA_PACE;
  while (st == HONE_OK && more_columns_come(c) && !near && !loaded) {
    st = load_if_arrived(c, &loaded);
    if (st == HONE_OK && !loaded)
      st = query_event(c->pace[c->panel_count % HONE_CUDA_PACE], &near);
    if (st == HONE_OK && !loaded && !near)
      hone_cuda_feed_help(c);
  }
  return st;
}

/* Updates the block columns behind this one, beside the next panel. The panels
   that a block column has not been updated by are divided evenly among the
   panels that are factored before its turn comes. left: panels of this block
   column that remain. */
int update_columns_behind(hone_cuda *c, const hone_cuda_column *now,
                          int64_t left) {
  int st = HONE_OK;
  for (int i = (int)(now - c->columns) + 1; i < c->column_count; i++) {
    hone_cuda_column *col = c->columns + i;
    const int64_t until = left + (col->j - now->j - now->w) / c->nb;
    const int64_t owed = c->panel_count - col->applied;
    const int to = col->applied + (int)((owed + until - 1) / until);
    TRY(hone_cuda_apply_panels(c, col->applied, to, col->j, col->j + col->w));
    col->applied = to;
  }
  return st;
}

/* Factors the outer panel of kw columns from k on, of a block column that ends
   at 'end', and updates the rest of that block column. */
int do_outer_panel(hone_cuda *c, int64_t k, int64_t kw, int64_t end) {
  int st = hone_cuda_factor_panel(c, k, kw, end);
  TRY(hone_cuda_apply_panel(c, c->panel_count - 1, k + kw, end));
  return st;
}

} // namespace

int hone_cuda_factor_column(hone_cuda *c, int64_t j, int64_t w) {
  const int64_t end = j + w;
  hone_cuda_column *now = column_at(c, j);
  int st = HONE_OK;
  for (int64_t k = j, kw; k < end && st == HONE_OK; k += kw) {
    kw = end - k < c->nb ? end - k : c->nb;
    st = keep_pace(c);
    TRY(do_outer_panel(c, k, kw, end));
    if (k + kw < end)
      TRY(update_columns_behind(c, now, (end - k - kw + c->nb - 1) / c->nb));
    if (c->arriving)
      TRY_CUDA(cudaEventRecord(c->pace[(c->panel_count - 1) % HONE_CUDA_PACE],
                               c->work));
  }
  TRY_CUDA(cudaEventRecord(now->factored, c->work));
  return st;
}

namespace {

/* Inverts the diagonal blocks and finds the largest entry of U, on the stream
   'on'. */
int invert_and_search(hone_cuda *c, cudaStream_t on) {
  const int64_t from = c->searched;
  int st = CALL(hone_cuda_invert_blocks(c->n, c->f, c->ld, c->lower,
                                        c->spd ? nullptr : c->upper, on));
  TRY_CUDA(hone_cuda_largest_u(c->n - from, c->n - from,
                               hone_cuda_f_at(c, from, from), c->ld,
                               c->top + c->column_room, on));
  return st;
}

/* Returns true if that can be done on the stream of the panels, while the last
   rows of L are moved: if no row moves in a diagonal block. */
bool can_finish_beside(const hone_cuda *c) {
  bool beside = c->forms.side.stream && !c->spd;
  for (int i = 0; i < c->panel_count; i++)
    beside = beside && c->panels[i].k % HONE_PANEL == 0;
  return beside;
}

} // namespace

int hone_cuda_finish(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  const bool beside = can_finish_beside(c);
  int st = invert_and_search(c, beside ? f->side.stream : c->work);
  if (beside) {
    TRY_CUDA(cudaEventRecord(f->factored, f->side.stream));
    TRY_CUDA(cudaStreamWaitEvent(c->work, f->factored, 0));
  }
  if (c->one_triangle && c->a) { /* whose other triangle is copied on feed */
    TRY_CUDA(cudaEventRecord(c->columns->in_f, c->feed));
    TRY_CUDA(cudaStreamWaitEvent(c->work, c->columns->in_f, 0));
  }
  return st;
}

namespace {

/* ---- The judgement of the pivots ---------------------------------------- */

/* Fetches |u_cc|, or u_cc^2 for Cholesky, of the columns j .. j+w-1, while the
   device works on block columns behind them. */
int fetch_pivots(void *ctx, int64_t j, int64_t w, float *out) {
  hone_cuda *c = static_cast<hone_cuda *>(ctx);
  int i = 0;
  float pivot[HONE_PARTS * HONE_PIVOT_SAMPLE];
  const size_t bytes = HONE_PARTS * sizeof(float);
  if (w > HONE_PIVOT_SAMPLE)
    return HONE_INTERNAL;
  while (i + 1 < c->column_count && c->columns[i].j + c->columns[i].w < j + w)
    i++;
  int st = CALL(cudaStreamWaitEvent(c->fetch, c->columns[i].factored, 0));
  TRY_CUDA(cudaMemcpy2DAsync(pivot, bytes, hone_cuda_f_at(c, j, j),
                             (size_t)c->ld * sizeof(float) + bytes, bytes,
                             (size_t)w, cudaMemcpyDeviceToHost, c->fetch));
  TRY_CUDA(cudaStreamSynchronize(c->fetch));
  if (st != HONE_OK)
    return st;
  for (int64_t k = 0; k < w; k++) {
    out[k] = hone_cuda_pivot_size(pivot + HONE_PARTS * k);
    out[k] = c->spd ? out[k] * out[k] : out[k];
  }
  return st;
}

int fetch_mean_pivot(hone_cuda_fetch_pivots *fetch, void *ctx, int64_t j,
                     double *mean) {
  float pivot[HONE_PIVOT_SAMPLE];
  const int st = fetch(ctx, j, HONE_PIVOT_SAMPLE, pivot);
  if (st == HONE_OK)
    *mean = hone_pivot_mean(pivot);
  return st;
}

} // namespace

int hone_cuda_judge_pivots(hone_cuda_fetch_pivots *fetch, void *ctx, int64_t n,
                           int64_t done, bool *hopeless) {
  hone_pivot_fall fall = {};
  int st = HONE_OK;
  *hopeless = false;
  if (!hone_pivots_can_be_judged(n, done))
    return HONE_OK;
  fall.n = n;
  fall.done = done;
  TRY(fetch_mean_pivot(fetch, ctx, 0, &fall.start));
  TRY(fetch_mean_pivot(fetch, ctx, hone_pivot_middle(done), &fall.middle));
  TRY(fetch_mean_pivot(fetch, ctx, hone_pivot_end(done), &fall.end));
  TRY(fetch(ctx, 0, 1, &fall.first));
  if (st == HONE_OK)
    *hopeless = hone_pivots_hopeless(&fall);
  return st;
}

namespace {

/* ---- The outcome -------------------------------------------------------- */

/* Returns max |u_ij| / max |s_ij|, for Cholesky max u_ij^2 / max |s_ij|; Inf
   where the factors or S are not finite: otherwise an S with infinite entries
   would seem not to grow. */
double growth(const hone_cuda *c, bool overflow) {
  const unsigned *top = c->h_top;
  float u, s = 0.0F;
  for (int i = 0; i < c->column_count; i++) {
    float t;
    memcpy(&t, &top[i], sizeof t);
    s = t > s ? t : s;
  }
  memcpy(&u, &top[c->column_room], sizeof u);
  const bool finite = !overflow && s <= FLT_MAX;
  const double ratio = finite ? (double)u / (double)s : HONE_INF;
  return ratio * (c->spd ? (double)u : 1.0);
}

/* Lets the host do something else while the device completes the factors. */
void run_meanwhile(hone_cuda *c) {
  const hone_task run = c->meanwhile;
  c->meanwhile = nullptr;
  if (run)
    run(c->meanwhile_ctx, 0);
}

} // namespace

int hone_cuda_outcome(hone_cuda *c, bool complete, hone_factor_info *info) {
  struct results {
    int flags[2];
    unsigned long long flushed;
  } *r = reinterpret_cast<results *>(hone_cuda_pinned(c, HONE_CUDA_OUTCOME));
  int st = hone_cuda_sending(c)
               ? hone_cuda_feed_columns(c, &c->job.a, c->m, nullptr)
               : (int)HONE_OK;
  TRY(hone_cuda_feed_end(c));
  const hone_copy back[] = {{c->flags, r->flags, 2},
                            {c->flushed, &r->flushed, 2},
                            {c->top, c->h_top, c->column_room + 1},
                            {c->perm, hone_cuda_pinned(c, HONE_CUDA_PERM),
                             complete ? c->n : 0}}; /* the solves need perm */
  TRY_CUDA(hone_cuda_copy(back, 4, c->work));
  TRY_CUDA(cudaEventRecord(c->factored, c->work));
  if (st == HONE_OK && complete)
    run_meanwhile(c);
  TRY_CUDA(cudaEventSynchronize(c->factored));
  if (st != HONE_OK)
    return st;
  info->flushed = (int64_t)r->flushed + c->host_flushed;
  if (r->flags[0] < c->n)
    info->zero_pivot = r->flags[0];
  if (complete)
    info->growth = growth(c, r->flags[1] != 0);
  return HONE_OK;
}

namespace {

/* Lets the next factorization use plain FP32 products, where the FP16 parts of
   this one overflowed because entries grew. Returns false if this one used FP32
   already. */
bool choose_safer_products(hone_cuda *c) {
  const bool untried = c->pieces != HONE_SPLIT_NONE || c->tf32;
  c->keep_safer = true;
  c->pieces = HONE_SPLIT_NONE;
  c->tf32 = false;
  return untried;
}

/* ---- The loop ----------------------------------------------------------- */

int factor_block_columns(hone_cuda *c, const hone_dense *a,
                         const hone_scaling *scaling, hone_factor_info *info) {
  const int64_t n = c->n;
  int st = hone_cuda_load_begin(c, a, scaling);
  for (int64_t j = 0, w; j < n && st == HONE_OK; j += w) {
    w = hone_cuda_width(c, j);
    const double done = (double)j / (double)n;
    if (hone_watch_stop(c->watch, "factor", done, 0, HONE_NAN))
      return HONE_CANCELLED;
    st = hone_cuda_load(c, a, scaling, j, w);
    if (j > 0)
      TRY(update_column(c, j, w));
    TRY(hone_cuda_factor_column(c, j, w));
    TRY(hone_cuda_judge_pivots(
        fetch_pivots, c, n, j,
        &info->hopeless)); /* while the device works on J */
    if (st != HONE_OK || info->hopeless)
      return st;
  }
  TRY(hone_cuda_finish(c));
  return st;
}

/* Ends what was begun for an A that is given up, of which kernels may still
   read the copy that the next one overwrites. */
void abandon(hone_cuda *c) {
  hone_cuda_feed_stop(c);
  (void)cudaStreamSynchronize(c->work);
}

} // namespace

int hone_cuda_factor(void *self, const hone_matrix *matrix,
                     const hone_scaling *scaling, hone_factor_info *info) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const hone_dense *a = hone_dense_of(matrix);
  for (;;) {
    *info = {};
    info->growth = HONE_NAN; /* unless the factors are complete */
    info->zero_pivot = -1;
    int st = factor_block_columns(c, a, scaling, info);
    TRY(hone_cuda_outcome(c, !info->hopeless, info));
    if (st != HONE_OK)
      abandon(c);
    c->meanwhile = nullptr; /* if it failed */
    const bool complete = info->zero_pivot < 0 && !info->hopeless;
    if (st != HONE_OK || !complete || info->growth <= DBL_MAX)
      return st;
    /* An A that was not inspected yet may only lack scaling. */
    if (scaling == nullptr || !choose_safer_products(c))
      return st;
  }
}

void hone_cuda_meanwhile(void *self, hone_task run, void *ctx) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  c->meanwhile = run;
  c->meanwhile_ctx = ctx;
}
