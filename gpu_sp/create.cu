/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision CUDA engines: whether they can be used, how much memory
   they take, their creation and their destruction. */
#include "gpu_sp/create.h"

#include "gpu_sp/batch/batch.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/kept.h"
#include "gpu_sp/residual/residual.h"

#include <cstdio>
#include <cstring>

namespace {

enum { OUTER_TINY = 128, OUTER_SMALL = 256, OUTER = 512, STRIP = 8192 };
enum { ROUNDED_PARTS = 32 };
const int64_t TINY_ORDER = 2048;      /* outer panels of 128 up to here, */
const int64_t SMALL_ORDER = 12288;    /* of 256 up to here */
const size_t BLAS_WORK = 32U << 20;   /* bytes that cuBLAS wants on an H200 */
const int64_t LEAVE_FREE = 256 << 20; /* bytes for others and for the driver */
const int64_t KEPT_PART = 4; /* a quarter of the device's memory may be kept */

} // namespace

bool hone_cuda_probe(char *why, size_t why_size) {
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

int64_t hone_cuda_outer_width(const hone_engine_config *config) {
  const int64_t n = config->n, block = config->block;
  int64_t nb = n <= SMALL_ORDER ? OUTER_SMALL : OUTER;
  if (n <= TINY_ORDER)
    nb = OUTER_TINY;
  if (config->choices.trial.outer > 0)
    nb = config->choices.trial.outer;
  return block > 0 && block < nb ? block : nb;
}

int64_t hone_cuda_dealt_columns(int64_t n, const hone_cuda_deal *deal) {
  const int64_t round = deal->width * deal->of;
  const int64_t rest = n % round - deal->width * deal->first;
  if (deal->of <= 1)
    return n;
  return n / round * deal->width +
         (rest < 0 ? 0 : (rest < deal->width ? rest : deal->width));
}

namespace {

/* Memory ----------------------------------------------------------------- */

/* One allocation on the device: where its pointer goes, and its size. */
struct allocation {
  void **at;
  int64_t bytes;
};

enum { ALLOCATIONS = 32 };

/* Lists the device memory that is needed without a copy of A. */
int list_working(hone_cuda *c, allocation *p) {
  const int64_t n = c->n, f4 = sizeof(float), d8 = sizeof(double);
  const int64_t entry = sizeof(hone_entry);
  const int64_t rows = hone_split_rows(c->pieces);
  const int64_t inner = (c->nb + HONE_PANEL - 1) / HONE_PANEL;
  const int64_t entries = inner * 2 * HONE_PANEL;
  int count = 0;
  auto add = [&](auto **at, int64_t bytes) {
    p[count++] = {reinterpret_cast<void **>(at), bytes};
  };
  add(&c->f, c->ld * n * f4);
  add(&c->lp, rows ? c->ldl * (c->spd ? c->ld / HONE_PARTS : n) * 2 : 0);
  add(&c->up, c->ldu * rows * inner * 2);
  add(&c->stage, 2 * c->ld * c->stage_columns * f4);
  add(&c->blas_work, BLAS_WORK);
  add(&c->constants, 4 * f4 + 4 * d8);
  add(&c->scale, c->column_room * (int64_t)sizeof(hone_split_scale));
  add(&c->top, (c->column_room + 1) * f4);
  add(&c->flags, 2 * (int64_t)sizeof(int));
  add(&c->flushed, d8);
  add(&c->panel_work.memory, hone_cuda_panel_bytes(n, c->panel_work.part_rows));
  add(&c->moves, c->moves_room * (int64_t)sizeof(hone_moves));
  add(&c->dst, entries * (int64_t)sizeof(int));
  add(&c->src, 2 * entries * (int64_t)sizeof(int));
  add(&c->perm, n * (int64_t)sizeof(int));
  add(&c->new_row, n * (int64_t)sizeof(int));
  add(&c->identity, n * (int64_t)sizeof(int));
  add(&c->lower, hone_cuda_inverse_bytes(n));
  add(&c->upper, c->spd ? 0 : hone_cuda_inverse_bytes(n));
  add(&c->triangles.there, hone_cuda_triangle_bytes(n));
  add(&c->v, n * HONE_CUDA_COLUMNS * entry);
  add(&c->w, n * HONE_CUDA_COLUMNS * entry);
  add(&c->probes, n * HONE_CUDA_PROBES * entry);
  add(&c->row, n * d8);
  add(&c->col, n * d8);
  add(&c->forms.memory, hone_cuda_forms_bytes(c));
  return count;
}

/* Lists the copy of A, and the device memory that is needed with it. */
int list_resident(hone_cuda *c, allocation *p) {
  const int64_t n = c->n, d8 = sizeof(double);
  p[0] = {reinterpret_cast<void **>(&c->copy),
          round_up(n, 2) * c->m * (int64_t)sizeof(hone_entry)};
  p[1] = {reinterpret_cast<void **>(&c->magnitudes), 4 * n * d8};
  p[2] = {&c->residual_work, hone_cuda_residual_bytes(n, c->m)};
  p[3] = {reinterpret_cast<void **>(&c->projection.there),
          hone_cuda_projection_bytes(n)};
  return 4;
}

int64_t sum(const allocation *p, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    bytes += p[i].bytes;
  return bytes;
}

/* Whether the engine is Cholesky's, the columns that it has, and how many more
   there is room for in F. */
struct shape {
  bool spd;
  hone_cuda_deal deal;
  int64_t beside;
};

/* Sets sizes, widths and capacities from the order and the caller's choices. */
void lay_out(hone_cuda *c, const shape &of, const hone_engine_config *config) {
  const int64_t n = config->n;
  const int chosen = config->choices.arithmetic;
  c->n = n;
  c->deal = of.deal;
  c->m = hone_cuda_dealt_columns(n, &of.deal);
  c->choices = config->choices;
  /* The methods of forms/ are for real matrices on one device. */
  if (HONE_PARTS > 1 || of.deal.of > 1) {
    c->choices.diagonal = HONE_DIAGONAL_AUTO;
    c->choices.sections = HONE_BLOCK_ROWS_AUTO;
  }
  c->spd = of.spd;
  c->block = of.deal.of > 1 ? 0 : config->block;
  c->ld = HONE_PARTS * (round_up(c->m, HONE_CUDA_PADDING) +
                        round_up(of.beside, HONE_CUDA_PADDING));
  c->lda = round_up(n, 2);
  c->nb =
      of.deal.of > 1 ? of.deal.width : hone_cuda_outer_width(config);
  c->panel_work.part_rows = config->choices.trial.part_rows;
  c->triangles.group = config->choices.trial.together;
  const int64_t strip = config->choices.trial.strip;
  c->strip = strip > 0 ? strip : (int64_t)STRIP;
  c->strip = n < c->strip ? n : c->strip;
  c->pieces = HONE_SPLIT_FP16_3;
  if (chosen == HONE_ARITHMETIC_FP32 || chosen == HONE_ARITHMETIC_TF32)
    c->pieces = HONE_SPLIT_NONE;
  else if (chosen == HONE_ARITHMETIC_BF16X3)
    c->pieces = HONE_SPLIT_BF16_3;
  else if (chosen == HONE_ARITHMETIC_FP16)
    c->pieces = HONE_SPLIT_FP16_1;
  else if (chosen == HONE_ARITHMETIC_BF16)
    c->pieces = HONE_SPLIT_BF16_1;
  c->tf32 = chosen == HONE_ARITHMETIC_TF32;
  c->wanted_pieces = c->pieces;
  c->wanted_tf32 = c->tf32;
  const int64_t inner = c->nb < HONE_PANEL ? c->nb : (int64_t)HONE_PANEL;
  c->ldl = hone_split_rows(c->pieces) * ((c->nb + HONE_PANEL - 1) / HONE_PANEL);
  c->ldu = HONE_PARTS * round_up(c->strip, 64);
  c->column_room = config->block > 0
                       ? (int)((n + config->block - 1) / config->block)
                       : ROUNDED_PARTS + 2;
  c->panel_room = (int)((n + c->nb - 1) / c->nb) + c->column_room;
  c->moves_room = (int)((n + inner - 1) / inner) + c->panel_room;
}

} // namespace

int64_t hone_cuda_host_bytes(int64_t n, int64_t k) {
  (void)k;
  const int64_t doubles =
      n * HONE_CUDA_H_V_PARTS * HONE_PARTS + hone_cuda_projection_room(n);
  return doubles * (int64_t)sizeof(double) + n * 64 + (64 << 20) +
         (int64_t)sizeof(hone_cuda);
}

int hone_cuda_pin(hone_cuda *c, void **at, size_t bytes) {
  if (!hone_mem_charge(c->mem, (int64_t)bytes))
    return HONE_NO_MEMORY;
  c->pinned += (int64_t)bytes;
  return CREATE(at, cudaMallocHost(at, bytes));
}

void hone_cuda_unpin(hone_cuda *c) {
  (void)hone_mem_charge(c->mem, -c->pinned);
  c->pinned = 0;
}

namespace {

/* Returns what the engine counts in the account of its owner. */
int64_t charged(const hone_cuda *c) {
  return hone_mem_size(c) + hone_mem_size(c->columns) +
         hone_mem_size(c->panels) + hone_mem_size(c->col_max) +
         hone_mem_size(c->projection.memory) + c->pinned;
}

} // namespace

bool hone_cuda_charge(hone_cuda *c, hone_mem *mem) {
  const bool allowed = hone_mem_charge(mem, charged(c));
  if (allowed)
    c->mem = mem;
  return allowed;
}

void hone_cuda_discharge(hone_cuda *c) {
  (void)hone_mem_charge(c->mem, -charged(c));
  c->mem = nullptr;
}

namespace {

void destroy_event(cudaEvent_t event) {
  if (event)
    (void)cudaEventDestroy(event);
}

} // namespace

void hone_cuda_destroy(void *self, hone_mem *mem) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  allocation p[ALLOCATIONS];
  if (c == nullptr)
    return;
  hone_cuda_feed_stop(c);
  cudaStream_t streams[] = {c->work, c->feed, c->fetch};
  bool sound = true;
  for (cudaStream_t s : streams)
    if (s)
      sound = cudaStreamSynchronize(s) == cudaSuccess && sound;
  if (sound && hone_cuda_keep(c))
    return;
  hone_cuda_forms_destroy(c);
  if (c->handle)
    (void)c->blas->destroy(c->handle);
  hone_cuda_feed_destroy(c);
  for (int i = 0; c->columns && i < c->column_room; i++) {
    destroy_event(c->columns[i].fed);
    destroy_event(c->columns[i].in_f);
    destroy_event(c->columns[i].factored);
  }
  for (cudaEvent_t event : c->pace)
    destroy_event(event);
  destroy_event(c->residual_done);
  destroy_event(c->beside);
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamDestroy(s);
  int count = list_working(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  count = list_resident(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  (void)cudaFreeHost(c->h_v);
  (void)cudaFreeHost(c->h_top);
  hone_cuda_unpin(c);
  (void)cudaGetLastError();
  hone_mem_put(mem, c->projection.memory);
  hone_mem_put(mem, c->col_max);
  hone_mem_put(mem, c->columns);
  hone_mem_put(mem, c->panels);
  hone_mem_put(mem, c);
}

namespace {

int allocate(hone_cuda *c, const allocation *p, int count) {
  int st = HONE_OK;
  for (int i = 0; i < count && st == HONE_OK; i++) {
    const size_t bytes = (size_t)(p[i].bytes > 0 ? p[i].bytes : 1);
    st = CREATE(p[i].at, cudaMalloc(p[i].at, bytes));
    if (st == HONE_OK)
      c->used.device_bytes += p[i].bytes;
  }
  return st;
}

/* Sets the size of the two buffers through which an A that is not kept on the
   device comes, as floats, in narrower block columns. */
void set_stage_columns(hone_cuda *c, const hone_engine_config *config) {
  const int64_t w = (c->n + ROUNDED_PARTS - 1) / ROUNDED_PARTS;
  c->stage_columns = config->block > 0 ? config->block : round_up(w, c->nb);
  if (c->stage_columns > c->n)
    c->stage_columns = c->n;
}

} // namespace

namespace {

int64_t bytes_of(const shape &of, const hone_engine_config *config,
                 bool stays) {
  allocation p[ALLOCATIONS];
  hone_cuda c = {};
  lay_out(&c, of, config);
  if (!stays)
    set_stage_columns(&c, config);
  int64_t bytes = sum(p, list_working(&c, p));
  return stays ? bytes + sum(p, list_resident(&c, p)) : bytes;
}

} // namespace

int64_t hone_cuda_device_bytes(bool spd, const hone_engine_config *config,
                               bool stays) {
  return bytes_of({spd, {}, 0}, config, stays);
}

int64_t hone_cuda_share_bytes(const hone_engine_config *config,
                              const hone_cuda_deal *deal, int64_t beside) {
  return bytes_of({false, *deal, beside}, config, true);
}

namespace {

/* Frees what the process keeps of engines and of batches. */
int64_t release_all_kept() {
  return hone_cuda_release_all_kept() + hone_device_batch_release();
}

/* Allocates the device memory, with that for a copy of A if there is enough
   that is free and allowed. */
int allocate_device_memory(hone_cuda *c, const hone_engine_config *config) {
  allocation p[ALLOCATIONS], q[ALLOCATIONS];
  size_t free_bytes = 0, total = 0;
  int count = list_working(c, p);
  const int with = list_resident(c, q);
  int64_t most, need = sum(p, count), more = sum(q, with);
  int st = CALL(cudaMemGetInfo(&free_bytes, &total));
  if (st == HONE_OK && need + more > (int64_t)free_bytes - LEAVE_FREE &&
      release_all_kept() > 0)
    st = CALL(cudaMemGetInfo(&free_bytes, &total));
  if (st != HONE_OK)
    return st;
  c->keep_at_most = (int64_t)total / KEPT_PART;
  most = (int64_t)free_bytes - LEAVE_FREE;
  if (c->choices.device_limit > 0 && c->choices.device_limit < most)
    most = c->choices.device_limit;
  const bool stays =
      c->choices.residuals != HONE_RESIDUALS_HOST && need + more <= most;
  if (!stays) {
    set_stage_columns(c, config);
    count = list_working(c, p);
    need = sum(p, count);
  }
  if (need > most) {
    if (config->why)
      snprintf(config->why, config->why_size,
               "needs %.3f GB of device memory, %.3f may be used",
               1e-9 * (double)need, 1e-9 * (double)most);
    return HONE_NO_MEMORY;
  }
  st = allocate(c, p, count);
  if (stays)
    TRY(allocate(c, q, with));
  c->a = c->copy;
  return st;
}

int create_streams(hone_cuda *c) {
  int st = HONE_OK;
  for (cudaStream_t *stream : {&c->work, &c->feed, &c->fetch})
    TRY(CREATE(stream,
               cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking)));
  return st;
}

int create_blas(hone_cuda *c) {
  int st = CREATE(&c->handle, c->blas->create(&c->handle));
  TRY_CUDA(c->blas->set_stream(c->handle, c->work));
  TRY_CUDA(c->blas->set_workspace(c->handle, c->blas_work, BLAS_WORK));
  TRY_CUDA(c->blas->set_pointer_mode(c->handle, CUBLAS_POINTER_MODE_DEVICE));
  return st;
}

int create_event(cudaEvent_t *event) {
  return CREATE(event, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

int create_events(hone_cuda *c) {
  int st = create_event(&c->residual_done);
  TRY(create_event(&c->beside));
  for (cudaEvent_t &event : c->pace)
    TRY(create_event(&event));
  for (int i = 0; i < c->column_room && st == HONE_OK; i++) {
    st = create_event(&c->columns[i].fed);
    TRY(create_event(&c->columns[i].in_f));
    TRY(create_event(&c->columns[i].factored));
  }
  return st;
}

/* Fills the constant arrays, and clears the rows that only pad. */
int fill_constants(hone_cuda *c) {
  const int64_t n = c->n;
  int *identity = reinterpret_cast<int *>(c->h_v);
  float *one = reinterpret_cast<float *>(c->h_v + n);
  for (int64_t i = 0; i < n; i++)
    identity[i] = (int)i;
  double *unit = reinterpret_cast<double *>(one + 4);
  memset(one, 0, 4 * sizeof *one + 4 * sizeof *unit);
  one[0] = 1.0F;
  one[2] = -1.0F;
  unit[0] = 1.0;
  int st = CALL(cudaMemcpyAsync(c->identity, identity, (size_t)n * sizeof(int),
                                cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(cudaMemcpyAsync(c->constants, one,
                           4 * sizeof(float) + 4 * sizeof(double),
                           cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(
      cudaMemsetAsync(c->f, 0, (size_t)(c->ld * n) * sizeof(float), c->work));
  if (c->ldl > 0)
    TRY_CUDA(cudaMemsetAsync(c->up, 0, (size_t)(c->ldl * c->ldu) * 2, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  return st;
}

int create_all(hone_cuda *c, const hone_engine_config *config) {
  const size_t n = (size_t)c->n;
  c->blas = hone_cuda_blas();
  if (c->blas == nullptr)
    return HONE_NO_DEVICE;
  int st = CALL(cudaGetDevice(&c->ordinal));
  TRY(allocate_device_memory(c, config));
  TRY(create_streams(c));
  TRY(create_blas(c));
  TRY(create_events(c));
  TRY(hone_cuda_pin(c, reinterpret_cast<void **>(&c->h_v),
                    n * HONE_CUDA_H_V_PARTS * sizeof(hone_entry)));
  TRY(hone_cuda_pin(c, reinterpret_cast<void **>(&c->h_top),
                    ((size_t)c->column_room + 8) * sizeof(unsigned)));
  TRY(hone_cuda_feed_create(c));
  TRY(hone_cuda_forms_create(c));
  TRY(fill_constants(c));
  return st;
}

template <class T> T *zeroed(hone_mem *mem, int64_t count) {
  const size_t bytes = (size_t)count * sizeof(T);
  T *p = static_cast<T *>(hone_mem_get(mem, bytes));
  if (p)
    memset(static_cast<void *>(p), 0, bytes);
  return p;
}

int create_new(const shape &of, hone_cuda **created,
               const hone_engine_config *config) {
  hone_cuda *c = zeroed<hone_cuda>(config->mem, 1);
  if (c == nullptr)
    return HONE_NO_MEMORY;
  c->mem = config->mem;
  c->pool = config->pool;
  c->watch = config->watch;
  c->deterministic = config->deterministic;
  lay_out(c, of, config);
  c->columns = zeroed<hone_cuda_column>(c->mem, c->column_room);
  c->panels = zeroed<hone_cuda_panel_info>(c->mem, c->panel_room);
  c->col_max = zeroed<float>(c->mem, c->n);
  const size_t room = (size_t)hone_cuda_projection_room(c->n) * sizeof(double);
  c->projection.memory = static_cast<double *>(hone_mem_get(config->mem, room));
  const bool complete =
      c->columns && c->panels && c->col_max && c->projection.memory;
  int st = complete ? create_all(c, config) : (int)HONE_NO_MEMORY;
  if (st == HONE_OK)
    *created = c;
  else
    hone_cuda_destroy(c, config->mem);
  return st;
}

} // namespace

/* The published methods (forms) are not kept: they have streams of their own.
 */
int hone_cuda_create(bool spd, void **self, const hone_engine_config *config) {
  hone_cuda *c = hone_cuda_take_kept(spd, config);
  int st = HONE_OK;
  *self = nullptr;
  if (c == nullptr) {
    st = create_new({spd, {}, 0}, &c, config);
    if (st == HONE_NO_MEMORY && release_all_kept() > 0)
      st = create_new({spd, {}, 0}, &c, config);
  }
  if (st != HONE_OK)
    return st;
  c->may_be_kept = config->keep && c->forms.constants == nullptr;
  *self = c;
  return HONE_OK;
}

/* Without a copy of A there is nothing to compute residuals with. */
int hone_cuda_create_share(hone_cuda **created,
                           const hone_engine_config *config,
                           const hone_cuda_deal *deal, int64_t beside) {
  int st = create_new({false, *deal, beside}, created, config);
  if (st == HONE_OK && (*created)->a == nullptr) {
    hone_cuda_destroy(*created, config->mem);
    *created = nullptr;
    st = HONE_NO_MEMORY;
  }
  return st;
}
