/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA device behind the table of device.h. Everything runs on streams of
   its own: work (the factorization), feed (A on its way), look (results
   fetched while work goes on). No default stream, no device-wide wait, and
   after create nothing is allocated. Where the device has room, the caller's
   matrix stays there in double, for scaling, rounding and residuals. */
#include "gpu_sp/cuda_state.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

enum { OUTER_SMALL = 256, OUTER = 512, STRIP = 8192 };
enum { FEED_PARTS = 8, ROUNDED_PARTS = 32 };
const int64_t SMALL_ORDER = 8192;     /* outer panels of 256 up to here */
const int64_t LARGE_ORDER = 20000;    /* eight equal parts from here on */
const size_t BLAS_WORK = 32U << 20;   /* what cuBLAS asks for on this card */
const int64_t LEAVE_FREE = 256 << 20; /* for others, and for the driver */

bool probe(char *why, size_t why_size) {
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) {
    if (hone_cuda_blas() == nullptr)
      snprintf(why, why_size, "libcublas.so.%d cannot be loaded",
               CUBLAS_VER_MAJOR);
    return hone_cuda_blas() != nullptr;
  }
  (void)cudaGetLastError();
  snprintf(why, why_size, "no usable CUDA device: %s",
           e == cudaSuccess ? "none is present" : cudaGetErrorString(e));
  return false;
}

int64_t round_up(int64_t v, int64_t to) { return (v + to - 1) / to * to; }

int64_t outer_width(int64_t n, int64_t block) {
  const int64_t nb = n <= SMALL_ORDER ? OUTER_SMALL : OUTER;
  return block > 0 && block < nb ? block : nb;
}

/* Memory ----------------------------------------------------------------- */

/* One allocation, on the device or pinned, with its account. */
struct place {
  void **at;
  int64_t bytes;
};

enum { PLACES = 32 };

/* Everything on the device but A itself. */
int list_places(hone_cuda *c, place *p) {
  const int64_t n = c->n, f4 = sizeof(float), d8 = sizeof(double);
  const int64_t rows = hone_piece_rows(c->pieces);
  const int64_t inner = (c->nb + HONE_PANEL - 1) / HONE_PANEL;
  const int64_t entries = inner * 2 * HONE_PANEL;
  int count = 0;
  auto add = [&](auto **at, int64_t bytes) {
    p[count++] = {reinterpret_cast<void **>(at), bytes};
  };
  add(&c->f, c->ld * n * f4);
  add(&c->lp, rows ? c->ldl * (c->spd ? c->ld : n) * 2 : 0);
  add(&c->up, c->ldu * rows * inner * 2);
  add(&c->stage, 2 * c->ld * c->stage_columns * f4);
  add(&c->blas_work, BLAS_WORK);
  add(&c->constants, 2 * f4);
  add(&c->scale, c->column_room * (int64_t)sizeof(hone_piece_scale));
  add(&c->top, (c->column_room + 1) * f4);
  add(&c->flags, 2 * (int64_t)sizeof(int));
  add(&c->flushed, d8);
  add(&c->panel_work, hone_cuda_panel_bytes(n));
  add(&c->moves, c->moves_room * (int64_t)sizeof(hone_moves));
  add(&c->dst, entries * (int64_t)sizeof(int));
  add(&c->src, 2 * entries * (int64_t)sizeof(int));
  add(&c->perm, n * (int64_t)sizeof(int));
  add(&c->place, n * (int64_t)sizeof(int));
  add(&c->map, n * (int64_t)sizeof(int));
  add(&c->lower, hone_cuda_inverse_bytes(n));
  add(&c->upper, c->spd ? 0 : hone_cuda_inverse_bytes(n));
  add(&c->triangle_flags, hone_cuda_triangle_flags(n) * (int64_t)sizeof(int));
  add(&c->v, n * HONE_CUDA_COLUMNS * d8);
  add(&c->w, n * HONE_CUDA_COLUMNS * d8);
  add(&c->row, n * d8);
  add(&c->col, n * d8);
  add(&c->forms.memory, hone_cuda_forms_bytes(c));
  return count;
}

/* And what goes with A. */
int list_resident(hone_cuda *c, place *p) {
  const int64_t n = c->n, d8 = sizeof(double);
  p[0] = {reinterpret_cast<void **>(&c->a), c->lda * n * d8};
  p[1] = {reinterpret_cast<void **>(&c->den), n * d8};
  p[2] = {reinterpret_cast<void **>(&c->seen), 4 * n * d8};
  p[3] = {&c->residual_work, hone_cuda_residual_bytes(n)};
  return 4;
}

int64_t sum(const place *p, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    bytes += p[i].bytes;
  return bytes;
}

/* Order, widths and rooms, from the order and the caller's choices. */
void lay_out(hone_cuda *c, const hone_engine_config *config) {
  const int64_t n = config->n;
  const int chosen = config->tuning.arithmetic;
  c->n = n;
  c->tuning = config->tuning;
  c->spd = config->spd;
  c->block = config->block;
  c->ld = round_up(n, HONE_CUDA_PADDING);
  c->lda = round_up(n, 2);
  c->nb = outer_width(n, config->block);
  c->strip = n < STRIP ? n : (int64_t)STRIP;
  c->pieces = HONE_HALF_3;
  if (chosen == HONE_FP32 || chosen == HONE_TF32)
    c->pieces = HONE_FLOATS;
  else if (chosen == HONE_BF16X3)
    c->pieces = HONE_BFLOAT_3;
  else if (chosen == HONE_FP16)
    c->pieces = HONE_HALF_1;
  else if (chosen == HONE_BF16)
    c->pieces = HONE_BFLOAT_1;
  c->tf32 = chosen == HONE_TF32;
  c->wanted = c->pieces;
  c->wanted_tf32 = c->tf32;
  const int64_t inner = c->nb < HONE_PANEL ? c->nb : (int64_t)HONE_PANEL;
  c->ldl = hone_piece_rows(c->pieces) * ((c->nb + HONE_PANEL - 1) / HONE_PANEL);
  c->ldu = round_up(c->strip, 64);
  c->column_room = config->block > 0
                       ? (int)((n + config->block - 1) / config->block)
                       : ROUNDED_PARTS + 2;
  c->panel_room = (int)((n + c->nb - 1) / c->nb) + c->column_room;
  c->moves_room = (int)((n + inner - 1) / inner) + c->panel_room;
}

int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return n * (4 * HONE_CUDA_COLUMNS * (int64_t)sizeof(double) + 64) +
         (64 << 20) + (int64_t)sizeof(hone_cuda);
}

void destroy(void *self, hone_mem *mem) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  place p[PLACES];
  if (c == nullptr)
    return;
  cudaStream_t streams[] = {c->work, c->feed, c->look};
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamSynchronize(s);
  hone_cuda_forms_destroy(c);
  if (c->handle)
    (void)c->blas->destroy(c->handle);
  hone_cuda_feed_destroy(c);
  for (int i = 0; c->columns && i < c->column_room; i++) {
    if (c->columns[i].fed)
      (void)cudaEventDestroy(c->columns[i].fed);
    if (c->columns[i].done)
      (void)cudaEventDestroy(c->columns[i].done);
    if (c->columns[i].turned)
      (void)cudaEventDestroy(c->columns[i].turned);
  }
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamDestroy(s);
  int count = list_places(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  count = list_resident(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  (void)cudaFreeHost(c->h_v);
  (void)cudaFreeHost(c->h_top);
  (void)cudaGetLastError();
  hone_mem_put(mem, c->col_max);
  hone_mem_put(mem, c->columns);
  hone_mem_put(mem, c->panels);
  hone_mem_put(mem, c);
}

int take(hone_cuda *c, const place *p, int count) {
  int st = HONE_OK;
  for (int i = 0; i < count && st == HONE_OK; i++) {
    st = CALL(cudaMalloc(p[i].at, (size_t)(p[i].bytes > 0 ? p[i].bytes : 1)));
    if (st == HONE_OK)
      c->used.device_bytes += p[i].bytes;
  }
  return st;
}

/* Without A there, it comes in narrower block columns, through two buffers. */
void expect_rounded(hone_cuda *c, const hone_engine_config *config) {
  const int64_t w = (c->n + ROUNDED_PARTS - 1) / ROUNDED_PARTS;
  c->stage_columns = config->block > 0 ? config->block : round_up(w, c->nb);
  if (c->stage_columns > c->n)
    c->stage_columns = c->n;
}

/* What create would ask for. */
int64_t device_bytes(const hone_engine_config *config, bool stays) {
  place p[PLACES];
  hone_cuda c = {};
  lay_out(&c, config);
  if (!stays)
    expect_rounded(&c, config);
  int64_t bytes = sum(p, list_places(&c, p));
  return stays ? bytes + sum(p, list_resident(&c, p)) : bytes;
}

/* Decides whether A stays on the device, by what is free and allowed. */
int take_device_memory(hone_cuda *c, const hone_engine_config *config) {
  place p[PLACES], q[4];
  size_t free_bytes = 0, total = 0;
  int count = list_places(c, p);
  const int with = list_resident(c, q);
  int64_t most, need = sum(p, count), more = sum(q, with);
  int st = CALL(cudaMemGetInfo(&free_bytes, &total));
  if (st != HONE_OK)
    return st;
  most = (int64_t)free_bytes - LEAVE_FREE;
  if (c->tuning.device_limit > 0 && c->tuning.device_limit < most)
    most = c->tuning.device_limit;
  const bool stays =
      c->tuning.residuals != HONE_RESIDUALS_HOST && need + more <= most;
  if (!stays) {
    expect_rounded(c, config);
    count = list_places(c, p);
    need = sum(p, count);
  }
  if (need > most) {
    if (config->why)
      snprintf(config->why, config->why_size,
               "needs %.3f GB of device memory, %.3f may be used",
               1e-9 * (double)need, 1e-9 * (double)most);
    return HONE_NO_MEMORY;
  }
  st = take(c, p, count);
  if (st == HONE_OK && stays)
    st = take(c, q, with);
  return st;
}

int take_streams(hone_cuda *c) {
  int st = CALL(cudaStreamCreateWithFlags(&c->work, cudaStreamNonBlocking));
  if (st == HONE_OK)
    st = CALL(cudaStreamCreateWithFlags(&c->feed, cudaStreamNonBlocking));
  if (st == HONE_OK)
    st = CALL(cudaStreamCreateWithFlags(&c->look, cudaStreamNonBlocking));
  if (st == HONE_OK)
    st = CALL(c->blas->create(&c->handle));
  if (st == HONE_OK)
    st = CALL(c->blas->set_stream(c->handle, c->work));
  if (st == HONE_OK)
    st = CALL(c->blas->set_workspace(c->handle, c->blas_work, BLAS_WORK));
  if (st == HONE_OK)
    st = CALL(c->blas->set_pointer_mode(c->handle, CUBLAS_POINTER_MODE_DEVICE));
  for (int i = 0; i < c->column_room && st == HONE_OK; i++) {
    st = CALL(
        cudaEventCreateWithFlags(&c->columns[i].fed, cudaEventDisableTiming));
    if (st == HONE_OK)
      st = CALL(cudaEventCreateWithFlags(&c->columns[i].done,
                                         cudaEventDisableTiming));
    if (st == HONE_OK)
      st = CALL(cudaEventCreateWithFlags(&c->columns[i].turned,
                                         cudaEventDisableTiming));
  }
  return st;
}

/* What never changes, and the rows that only pad. */
int fill_constants(hone_cuda *c) {
  const int64_t n = c->n;
  int *identity = reinterpret_cast<int *>(c->h_v);
  float *one = reinterpret_cast<float *>(c->h_v + n);
  for (int64_t i = 0; i < n; i++)
    identity[i] = (int)i;
  one[0] = 1.0F;
  one[1] = -1.0F;
  int st = CALL(cudaMemcpyAsync(c->map, identity, (size_t)n * sizeof(int),
                                cudaMemcpyHostToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->constants, one, 2 * sizeof(float),
                              cudaMemcpyHostToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(
        cudaMemsetAsync(c->f, 0, (size_t)(c->ld * n) * sizeof(float), c->work));
  if (st == HONE_OK && c->ldl > 0)
    st =
        CALL(cudaMemsetAsync(c->up, 0, (size_t)(c->ldl * c->ldu) * 2, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  return st;
}

int create_all(hone_cuda *c, const hone_engine_config *config) {
  const size_t n = (size_t)c->n;
  c->blas = hone_cuda_blas();
  if (c->blas == nullptr)
    return HONE_NO_DEVICE;
  if (c->n > hone_cuda_panel_rows()) {
    if (config->why)
      snprintf(config->why, config->why_size, "orders above %d are not for it",
               (int)hone_cuda_panel_rows());
    return HONE_NO_DEVICE;
  }
  int st = CALL(cudaGetDevice(&c->ordinal));
  if (st == HONE_OK)
    st = take_device_memory(c, config);
  if (st == HONE_OK)
    st = take_streams(c);
  if (st == HONE_OK)
    st = CALL(cudaMallocHost(reinterpret_cast<void **>(&c->h_v),
                             4 * n * HONE_CUDA_COLUMNS * sizeof(double)));
  if (st == HONE_OK)
    st = CALL(cudaMallocHost(reinterpret_cast<void **>(&c->h_top),
                             ((size_t)c->column_room + 8) * sizeof(unsigned)));
  if (st == HONE_OK)
    st = hone_cuda_feed_create(c);
  if (st == HONE_OK)
    st = hone_cuda_forms_create(c);
  if (st == HONE_OK)
    st = fill_constants(c);
  return st;
}

template <class T> T *zeroed(hone_mem *mem, int64_t count) {
  const size_t bytes = (size_t)count * sizeof(T);
  T *p = static_cast<T *>(hone_mem_get(mem, bytes));
  if (p)
    memset(static_cast<void *>(p), 0, bytes);
  return p;
}

int create(void **self, const hone_engine_config *config) {
  *self = nullptr;
  hone_cuda *c = zeroed<hone_cuda>(config->mem, 1);
  if (c == nullptr)
    return HONE_NO_MEMORY;
  c->mem = config->mem;
  c->pool = config->pool;
  lay_out(c, config);
  c->columns = zeroed<hone_cuda_column>(c->mem, c->column_room);
  c->panels = zeroed<hone_cuda_panel_info>(c->mem, c->panel_room);
  c->col_max = zeroed<float>(c->mem, c->n);
  int st = c->columns && c->panels && c->col_max ? create_all(c, config)
                                                 : (int)HONE_NO_MEMORY;
  if (st == HONE_OK)
    *self = c;
  else
    destroy(c, config->mem);
  return st;
}

/* Factorization ----------------------------------------------------------- */

bool resident(void *self) {
  return static_cast<hone_cuda *>(self)->a != nullptr;
}

bool all_there(const hone_cuda *c) { return c->a && c->fed == c->n; }

/* A comes in parts that are factored while the next is on its way. Few, for
   each has to be brought up to date with all panels before it, a fixed cost;
   and the last ones small where the way takes about as long as the work
   (docs/performance.md). */
int64_t feed_width(int64_t n, int64_t j, int64_t nb) {
  const int64_t part = round_up((n + FEED_PARTS - 1) / FEED_PARTS, nb);
  if (j < 2 * part || n > LARGE_ORDER)
    return part;
  return n <= SMALL_ORDER && j >= 4 * part ? n - j : 2 * part;
}

/* A that is there already is factored as a whole. */
int64_t block(void *self, const hone_scaling *scaling, int64_t j) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  if (j == 0 ? scaling && c->looked && all_there(c) : c->again)
    return c->n - j;
  if (c->stage_columns > 0)
    return c->stage_columns;
  return feed_width(c->n, j, c->nb);
}

int upload_scaling(hone_cuda *c, const hone_scaling *scaling) {
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

/* Before the first block column of a factorization: results cleared. */
int clear(hone_cuda *c) {
  c->column_count = c->panel_count = c->moves_count = 0;
  c->split = -1;
  c->factored = false;
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

int begin(hone_cuda *c, const hone_matrix *a, const hone_scaling *scaling) {
  /* The same pointer may hold another matrix: only the factorization that
     follows one of A unseen finds A there. */
  const bool again =
      c->looked && all_there(c) && c->source == a->a && scaling != nullptr;
  int st = clear(c);
  c->looked = scaling == nullptr;
  if (!c->careful) {
    c->pieces = c->wanted;
    c->tf32 = c->wanted_tf32;
  }
  c->careful = false;
  c->again = again;
  c->scaled = scaling != nullptr && scaling->used;
  if (st == HONE_OK && !again) {
    st = hone_cuda_feed_begin(c, a);
    if (st == HONE_OK && c->a)
      st = CALL(cudaMemsetAsync(c->seen, 0, 2 * (size_t)c->n * sizeof(double),
                                c->work));
  }
  if (st == HONE_OK && c->scaled)
    st = upload_scaling(c, scaling);
  return st;
}

/* A's columns j .. on the device, seen, and rounded into F. */
int load_resident(hone_cuda *c, const hone_matrix *a, hone_cuda_column *col,
                  unsigned *top) {
  const int64_t j = col->j, w = col->w, n = c->n;
  const bool fresh = c->fed < j + w;
  int st = hone_cuda_feed(c, a, j + w);
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(col->fed, c->feed));
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(c->work, col->fed, 0));
  if (st == HONE_OK && fresh)
    st = CALL(hone_cuda_inspect(n, c->a, c->lda, j, w, nullptr, nullptr,
                                c->seen, c->seen + n, c->seen + 2 * n,
                                c->seen + 3 * n, c->work));
  if (st == HONE_OK)
    st = CALL(hone_cuda_round(c->spd ? j + w : n, c->a, c->lda, j, w,
                              c->scaled ? c->row : nullptr,
                              c->scaled ? c->col : nullptr, c->place, c->f,
                              c->ld, c->flushed, top, c->work));
  return st;
}

/* The same by way of the host, which scales and rounds. */
int load_rounded(hone_cuda *c, const hone_matrix *a,
                 const hone_scaling *scaling, int index) {
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
    st = CALL(hone_cuda_turn(c->n, stage, c->ld, col->j, col->w, c->place, c->f,
                             c->ld, c->top + index, c->work));
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
  return HONE_OK;
}

int scale_pieces(hone_cuda *c, int index) {
  hone_piece_scale *scale = c->scale + index;
  return CALL(c->spd ? hone_cuda_piece_scale_spd(c->pieces, c->top, index + 1,
                                                 scale, c->work)
                     : hone_cuda_piece_scale(c->pieces, c->top + index, scale,
                                             c->work));
}

int load(void *self, const hone_matrix *a, const hone_scaling *scaling,
         int64_t j, int64_t w) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = j == 0 ? begin(c, a, scaling) : (int)HONE_OK;
  if (st != HONE_OK)
    return st;
  int index;
  st = add_column(c, j, w, &index);
  if (st != HONE_OK)
    return st;
  hone_cuda_column *col = c->columns + index;
  unsigned *top = c->top + index;
  st =
      c->a ? load_resident(c, a, col, top) : load_rounded(c, a, scaling, index);
  if (st == HONE_OK)
    st = scale_pieces(c, index);
  return st;
}

int update(void *self, int64_t j, int64_t w) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  if (!c->spd)
    return hone_cuda_update(c, j, j + w);
  for (int p = 0; p < c->panel_count && st == HONE_OK; p++)
    st = hone_cuda_apply_spd(c, p, j, j + w);
  return st;
}

int panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  (void)zero_pivot; /* not known yet */
  for (int64_t k = j, kw; k < j + w && st == HONE_OK; k += kw) {
    kw = j + w - k < c->nb ? j + w - k : c->nb;
    st = c->spd ? hone_cuda_factor_panel_spd(c, k, kw)
                : hone_cuda_factor_panel(c, k, kw, j + w);
    if (st == HONE_OK)
      st = c->spd ? hone_cuda_apply_spd(c, c->panel_count - 1, k + kw, j + w)
                  : hone_cuda_apply(c, c->panel_count - 1, k + kw, j + w);
  }
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(c->columns[c->column_count - 1].done, c->work));
  return st;
}

int finish(void *self) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = CALL(hone_cuda_invert_blocks(c->n, c->f, c->ld, c->lower,
                                        c->spd ? nullptr : c->upper, c->work));
  if (st == HONE_OK)
    st = CALL(hone_cuda_largest_u(c->n, c->f, c->ld, c->top + c->column_room,
                                  c->work));
  c->factored = st == HONE_OK;
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

int outcome(void *self, bool complete, hone_factor_info *info) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int room = c->column_room;
  unsigned *top = c->h_top;
  struct results {
    int flags[2];
    unsigned long long flushed;
  } *r = reinterpret_cast<results *>(c->h_v);
  int st = CALL(cudaMemcpyAsync(r->flags, c->flags, sizeof r->flags,
                                cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(&r->flushed, c->flushed, sizeof r->flushed,
                              cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st =
        CALL(cudaMemcpyAsync(top, c->top, (size_t)(room + 1) * sizeof(unsigned),
                             cudaMemcpyDeviceToHost, c->work));
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
  info->growth = r->flags[1] ? HONE_INF : (double)u / (double)s;
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

/* Solves ------------------------------------------------------------------ */

int triangle(hone_cuda *c, enum hone_triangle which, int64_t k, double *v) {
  const bool lower = which == HONE_LOWER || which == HONE_LOWER_TRANS;
  return CALL(hone_cuda_triangle(which, c->n, c->f, c->ld,
                                 lower ? c->lower : c->upper, k, v, c->n,
                                 c->triangle_flags, c->work));
}

/* P S = L U: inv(S) = inv(U) inv(L) P, inv(S^T) = P^T inv(L^T) inv(U^T). The
   kernels see the transpose of F: U^T below the diagonal, L^T above. S = U^T U
   is its own transpose. */
int solve_some(hone_cuda *c, bool trans, int64_t k, double *v, int64_t ldv) {
  const int64_t n = c->n;
  const size_t bytes = (size_t)(n * k) * sizeof(double);
  for (int64_t i = 0; i < k; i++)
    memcpy(c->h_v + i * n, v + i * ldv, (size_t)n * sizeof(double));
  int st = CALL(
      cudaMemcpyAsync(c->v, c->h_v, bytes, cudaMemcpyHostToDevice, c->work));
  trans = trans && !c->spd;
  double *x = trans ? c->v : c->w;
  if (st == HONE_OK && !trans)
    st =
        CALL(hone_cuda_permute(n, c->perm, true, k, c->v, n, c->w, n, c->work));
  if (st == HONE_OK)
    st = triangle(c, trans || c->spd ? HONE_LOWER : HONE_UPPER_TRANS, k, x);
  if (st == HONE_OK)
    st = triangle(c, trans ? HONE_UPPER : HONE_LOWER_TRANS, k, x);
  if (st == HONE_OK && trans)
    st = CALL(
        hone_cuda_permute(n, c->perm, false, k, c->v, n, c->w, n, c->work));
  if (st == HONE_OK)
    st = CALL(
        cudaMemcpyAsync(c->h_v, c->w, bytes, cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  for (int64_t i = 0; i < k && st == HONE_OK; i++)
    memcpy(v + i * ldv, c->h_v + i * n, (size_t)n * sizeof(double));
  c->used.to_device += (int64_t)bytes;
  c->used.from_device += (int64_t)bytes;
  return st;
}

int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t now =
        k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    st = solve_some(c, trans, now, v + i * ldv, ldv);
  }
  return st;
}

/* A on the device ---------------------------------------------------------- */

/* What is seen of S; of A itself it was gathered while A came in. */
int inspect(void *self, const hone_matrix *a, const hone_scaling *scaling,
            hone_seen *seen) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n, from = c->fed;
  const size_t bytes = (size_t)n * sizeof(double);
  int st = from < n ? hone_cuda_feed(c, a, n) : (int)HONE_OK;
  if (st == HONE_OK && from < n) {
    st = CALL(cudaStreamSynchronize(c->feed));
    if (st == HONE_OK)
      st = CALL(hone_cuda_inspect(n, c->a, c->lda, from, n - from, nullptr,
                                  nullptr, c->seen, c->seen + n,
                                  c->seen + 2 * n, c->seen + 3 * n, c->work));
  }
  if (st == HONE_OK && scaling) {
    st = upload_scaling(c, scaling);
    if (st == HONE_OK)
      st = CALL(cudaMemsetAsync(c->seen, 0, 2 * bytes, c->work));
    if (st == HONE_OK)
      st = CALL(hone_cuda_inspect(n, c->a, c->lda, 0, n, c->row, c->col,
                                  c->seen, c->seen + n, c->seen + 2 * n,
                                  c->seen + 3 * n, c->work));
  }
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->h_v, c->seen, 4 * bytes,
                              cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  c->used.from_device += 4 * (int64_t)bytes;
  memcpy(seen->row_max, c->h_v, bytes);
  memcpy(seen->row_sum, c->h_v + n, bytes);
  memcpy(seen->col_max, c->h_v + 2 * n, bytes);
  memcpy(seen->col_sum, c->h_v + 3 * n, bytes);
  return HONE_OK;
}

int residual(void *self, const hone_matrix *a, bool trans, const double *x,
             const double *b, double *r, double *den) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  if (!all_there(c) || c->source != a->a)
    return HONE_NO_DEVICE;
  memcpy(c->h_v, x, bytes);
  memcpy(c->h_v + n, b, bytes);
  int st = CALL(cudaMemcpyAsync(c->v, c->h_v, 2 * bytes, cudaMemcpyHostToDevice,
                                c->work));
  if (st == HONE_OK)
    st = CALL(hone_cuda_residual(n, c->a, c->lda, trans, c->v, c->v + n, c->w,
                                 c->w + n, c->residual_work, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->h_v, c->w, 2 * bytes, cudaMemcpyDeviceToHost,
                              c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  memcpy(r, c->h_v, bytes);
  memcpy(den, c->h_v + n, bytes);
  c->used.residuals++;
  c->used.to_device += 2 * (int64_t)bytes;
  c->used.from_device += 2 * (int64_t)bytes;
  return HONE_OK;
}

void account(void *self, hone_account *out) {
  static const char *const names[] = {"fp32", "fp16x3", "bf16x3", "fp16",
                                      "bf16"};
  hone_cuda *c = static_cast<hone_cuda *>(self);
  *out = c->used;
  const char *pivots =
      c->tuning.pivoting == HONE_PIVOT_BLOCK
          ? "pivoting in the diagonal block"
          : (c->tuning.pivoting == HONE_PIVOT_NONE ? "no pivoting"
                                                   : "tournament pivoting");
  static const char *const sections[] = {
      "", ", TRSM sections", ", seeded sections", ", Crout sections"};
  const bool cpu = c->tuning.diagonal == HONE_DIAGONAL_CPU;
  snprintf(out->text, sizeof out->text, "%s, %s%s%s",
           c->tf32 ? "tf32" : names[c->pieces],
           c->spd ? "one triangle" : pivots,
           cpu && !c->spd ? ", diagonal blocks by the CPU" : "",
           c->spd ? "" : sections[c->tuning.sections]);
}

} // namespace

int hone_cuda_load_floats(hone_cuda *c, const float *a, int64_t lda) {
  int index;
  int st = clear(c);
  if (st == HONE_OK)
    st = add_column(c, 0, c->n, &index);
  if (st == HONE_OK)
    st = CALL(hone_cuda_turn(c->n, a, lda, 0, c->n, nullptr, c->f, c->ld,
                             c->top, c->work));
  if (st == HONE_OK)
    st = scale_pieces(c, 0);
  return st;
}

extern "C" const hone_device hone_device_cuda = {
    "CUDA", probe,    create,  destroy,  bytes,   block,       load,
    update, panel,    finish,  pivots,   outcome, solve,       true,
    safer,  resident, inspect, residual, account, device_bytes};
