/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision CUDA engines: whether they can be used, how much memory
   they take, their creation and their destruction. */
#include "gpu_sp/create.h"

#include "gpu_sp/batch/batch.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/kept.h"
#include "gpu_sp/layout.h"
#include "gpu_sp/residual/residual.h"

extern "C" {
#include "base/rounding.h"
#include "base/seed.h"
}

#include <cstdio>
#include <cstring>

namespace {

const int64_t LEAVE_FREE = 256 << 20; /* bytes for others and for the driver */
const int64_t KEPT_PART = 4; /* a quarter of the device's memory may be kept */

/* The oldest for which the kernels are compiled. */
const int LEAST_CAPABILITY = 80;

/* Returns 10 times the compute capability of the current device. */
int capability_here() {
  int device = 0, major = 0, minor = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                             device) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                             device) == cudaSuccess;
  if (!known)
    (void)cudaGetLastError();
  return known ? 10 * major + minor : LEAST_CAPABILITY;
}

} // namespace

bool hone_cuda_probe(char *why, size_t why_size) {
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) {
    const int capability = capability_here();
    if (hone_cuda_blas() == nullptr)
      snprintf(why, why_size, "libcublas.so.%d cannot be loaded",
               CUBLAS_VER_MAJOR);
    else if (capability < LEAST_CAPABILITY)
      snprintf(why, why_size,
               "the CUDA device has compute capability %d.%d: 8.0 is needed",
               capability / 10, capability % 10);
    return hone_cuda_blas() != nullptr && capability >= LEAST_CAPABILITY;
  }
  (void)cudaGetLastError();
  snprintf(why, why_size, "no usable CUDA device: %s",
           e == cudaSuccess ? "none is present" : cudaGetErrorString(e));
  return false;
}

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
         hone_mem_size(c->mirror_keys) + hone_mem_size(c->projection.memory) +
         c->pinned;
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
  hone_cuda_allocation p[HONE_CUDA_ALLOCATIONS];
  if (c == nullptr)
    return;
  hone_cuda_feed_stop(c);
  cudaStream_t streams[] = {c->work, c->feed, c->fetch};
  bool sound = true;
  for (cudaStream_t s : {c->work, c->feed, c->fetch, c->forms.side.stream,
                         c->forms.ahead.stream})
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
  destroy_event(c->seen);
  destroy_event(c->factored);
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamDestroy(s);
  int count = hone_cuda_list_working(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  count = hone_cuda_list_resident(c, p);
  for (int i = 0; i < count; i++)
    (void)cudaFree(*p[i].at);
  (void)cudaFreeHost(c->h_v);
  (void)cudaFreeHost(c->h_top);
  hone_cuda_unpin(c);
  (void)cudaGetLastError();
  hone_mem_put(mem, c->projection.memory);
  hone_mem_put(mem, c->col_max);
  hone_mem_put(mem, c->mirror_keys);
  hone_mem_put(mem, c->columns);
  hone_mem_put(mem, c->panels);
  hone_mem_put(mem, c);
}

namespace {

int allocate(hone_cuda *c, const hone_cuda_allocation *p, int count) {
  int st = HONE_OK;
  for (int i = 0; i < count && st == HONE_OK; i++) {
    const size_t bytes = (size_t)(p[i].bytes > 0 ? p[i].bytes : 1);
    st = CREATE(p[i].at, cudaMalloc(p[i].at, bytes));
    if (st == HONE_OK)
      c->used.device_bytes += p[i].bytes;
  }
  return st;
}

} // namespace

namespace {

/* Frees what the process keeps of engines and of batches. */
int64_t release_all_kept() {
  return hone_cuda_release_all_kept() + hone_device_batch_release();
}

} // namespace

int hone_cuda_memory_allowed(const hone_choices *choices, int64_t wanted,
                             int64_t *most, int64_t *of) {
  size_t free_bytes = 0, total = 0;
  int st = CALL(cudaMemGetInfo(&free_bytes, &total));
  if (st == HONE_OK && wanted > (int64_t)free_bytes - LEAVE_FREE &&
      release_all_kept() > 0)
    st = CALL(cudaMemGetInfo(&free_bytes, &total));
  *of = (int64_t)total;
  *most = (int64_t)free_bytes - LEAVE_FREE;
  if (choices->device_limit > 0 && choices->device_limit < *most)
    *most = choices->device_limit;
  return st;
}

int hone_cuda_within(const hone_engine_config *config, int64_t bytes,
                     int64_t most) {
  if (bytes <= most)
    return HONE_OK;
  if (config->why)
    snprintf(config->why, config->why_size,
             "needs %.3f GB of device memory, %.3f may be used",
             1e-9 * (double)bytes, 1e-9 * (double)most);
  return HONE_NO_MEMORY;
}

namespace {

/* Allocates the device memory, with that for a copy of A if there is enough
   that is free and allowed. */
int allocate_device_memory(hone_cuda *c, const hone_engine_config *config) {
  hone_cuda_allocation p[HONE_CUDA_ALLOCATIONS], q[HONE_CUDA_ALLOCATIONS];
  int count = hone_cuda_list_working(c, p);
  const int with = hone_cuda_list_resident(c, q);
  int64_t most = 0, total = 0, need = hone_cuda_sum_bytes(p, count),
          more = hone_cuda_sum_bytes(q, with);
  const bool window = c->deal.window > 0;
  int st = hone_cuda_memory_allowed(&c->choices, need + (window ? 0 : more),
                                    &most, &total);
  if (st != HONE_OK)
    return st;
  c->keep_at_most = total / KEPT_PART;
  const bool stays = c->choices.residuals != HONE_RESIDUALS_HOST &&
                     need + more <= most && !window;
  if (!stays && !window) {
    hone_cuda_set_stage_columns(c, config);
    count = hone_cuda_list_working(c, p);
    need = hone_cuda_sum_bytes(p, count);
  }
  st = hone_cuda_within(config, need, most);
  TRY(allocate(c, p, count));
  if (stays)
    TRY(allocate(c, q, with));
  c->a = c->copy;
  return st;
}

int create_streams(hone_cuda *c) {
  int st = CALL(cudaDeviceGetAttribute(
      &c->processors, cudaDevAttrMultiProcessorCount, c->ordinal));
  for (cudaStream_t *stream : {&c->work, &c->feed, &c->fetch})
    TRY(CREATE(stream,
               cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking)));
  return st;
}

int create_blas(hone_cuda *c) {
  int st = CREATE(&c->handle, c->blas->create(&c->handle));
  TRY_CUDA(c->blas->set_stream(c->handle, c->work));
  TRY_CUDA(
      c->blas->set_workspace(c->handle, c->blas_work, HONE_CUDA_BLAS_WORK));
  TRY_CUDA(c->blas->set_pointer_mode(c->handle, CUBLAS_POINTER_MODE_DEVICE));
  return st;
}

int create_event(cudaEvent_t *event) {
  return CREATE(event, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

int create_events(hone_cuda *c) {
  int st = create_event(&c->residual_done);
  TRY(create_event(&c->beside));
  TRY(create_event(&c->seen));
  TRY(create_event(&c->factored));
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

int create_new(const hone_cuda_shape &of, hone_cuda **created,
               const hone_engine_config *config) {
  hone_cuda *c = zeroed<hone_cuda>(config->mem, 1);
  if (c == nullptr)
    return HONE_NO_MEMORY;
  c->mem = config->mem;
  c->pool = config->pool;
  c->watch = config->watch;
  c->deterministic = config->deterministic;
  hone_cuda_lay_out(c, of, config);
  c->columns = zeroed<hone_cuda_column>(c->mem, c->column_room);
  c->panels = zeroed<hone_cuda_panel_info>(c->mem, c->panel_room);
  c->col_max = zeroed<float>(c->mem, c->n);
  c->mirror_keys = zeroed<uint32_t>(c->mem, HONE_PARTS * c->n);
  const size_t room = (size_t)hone_cuda_projection_room(c->n) * sizeof(double);
  c->projection.memory = static_cast<double *>(hone_mem_get(config->mem, room));
  const bool complete = c->columns && c->panels && c->col_max &&
                        c->mirror_keys && c->projection.memory;
  if (complete && c->spd)
    hone_mirror_keys(hone_process_seed(), c->n, c->mirror_keys);
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
int hone_cuda_create_share(hone_cuda **created, const hone_cuda_shape &of,
                           const hone_engine_config *config) {
  int st = create_new(of, created, config);
  if (st == HONE_OK && (*created)->a == nullptr) {
    hone_cuda_destroy(*created, config->mem);
    *created = nullptr;
    st = HONE_NO_MEMORY;
  }
  return st;
}

int hone_cuda_create_window(hone_cuda **created,
                            const hone_engine_config *config,
                            const hone_cuda_deal *deal, int64_t beside) {
  return create_new({false, *deal, beside}, created, config);
}
