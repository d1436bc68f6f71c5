/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's part of the engine whose factors lie in host memory: how wide
   its block columns are, creation, destruction, and its table, which has no
   solve. */
#include "gpu_sp/outside/outside.h"

#include "gpu_sp/create.h"
#include "gpu_sp/layout.h"

#include <cstdio>
#include <cstring>

namespace {

/* The least columns of a block column, in panels: the next panel is factored
   beside the update of another one. */
enum { LEAST_PANELS = 2 };

/* Returns the columns of a panel: whole inner panels. */
int64_t panel_width(const hone_engine_config *config) {
  return round_up(hone_cuda_outer_width(false, config), HONE_PANEL);
}

hone_cuda_deal deal_of(int64_t nb, int64_t window) {
  return {nb, 2, 0, 0, window};
}

int64_t stage_bytes(int64_t n, int64_t nb) {
  const int64_t bytes =
      n * (nb * (int64_t)sizeof(hone_single) + (int64_t)sizeof(int));
  return round_up(bytes, 256);
}

/* Returns the bytes of device memory for block columns of 'window' columns. */
int64_t bytes_for(const hone_engine_config *config, int64_t window) {
  const int64_t nb = panel_width(config);
  const hone_cuda_deal deal = deal_of(nb, window);
  return hone_cuda_window_bytes(config, &deal, nb) +
         HONE_OUTSIDE_STAGES * stage_bytes(config->n, nb);
}

int64_t least_window(const hone_engine_config *config) {
  const int64_t nb = panel_width(config);
  const int64_t wanted = config->choices.trial.window;
  return wanted > 0 ? round_up(wanted, nb) : LEAST_PANELS * nb;
}

/* Returns the most bytes, within 'most', that block columns of equal width can
   use: fewer columns than there is room for, where there are as many block
   columns then. */
int64_t choose_window(const hone_engine_config *config, int64_t most) {
  const int64_t nb = panel_width(config);
  const int64_t panels = (config->n + nb - 1) / nb;
  int64_t each = least_window(config) / nb;
  while (config->choices.trial.window == 0 && each < panels &&
         bytes_for(config, (each + 1) * nb) <= most)
    each++;
  const int64_t count = (panels + each - 1) / each;
  return (panels + count - 1) / count * nb;
}

int64_t device_bytes(const hone_engine_config *config, bool) {
  return bytes_for(config, least_window(config));
}

int create_event(cudaEvent_t *event) {
  return CREATE(event, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

int create_stages(hone_outside *o) {
  const int64_t bytes = stage_bytes(o->n, o->nb);
  const size_t all = (size_t)(HONE_OUTSIDE_STAGES * bytes);
  int st = CREATE(&o->stages, cudaMalloc(&o->stages, all));
  for (int i = 0; i < HONE_OUTSIDE_STAGES && st == HONE_OK; i++) {
    hone_outside_stage *stage = o->stage + i;
    unsigned char *at = o->stages + i * bytes;
    stage->entries = reinterpret_cast<hone_single *>(at);
    stage->rows = reinterpret_cast<int *>(at + (size_t)(o->n * o->nb) *
                                                   sizeof(hone_single));
    st = create_event(&stage->filled);
    TRY(create_event(&stage->free));
  }
  TRY(create_event(&o->ready));
  TRY(create_event(&o->factored));
  if (st == HONE_OK)
    o->c->used.device_bytes += (int64_t)all;
  return st;
}

/* Creates what is on the device. */
int create_there(hone_outside *o, const hone_engine_config *config) {
  int64_t most = 0, total = 0;
  const int64_t need = bytes_for(config, least_window(config));
  int st = hone_cuda_memory_allowed(&config->choices, need, &most, &total);
  if (st == HONE_OK && need > most) {
    if (config->why)
      snprintf(config->why, config->why_size,
               "block columns need %.3f GB of device memory, %.3f may be used",
               1e-9 * (double)need, 1e-9 * (double)most);
    return HONE_NO_MEMORY;
  }
  if (st != HONE_OK)
    return st;
  o->window = choose_window(config, most);
  const hone_cuda_deal deal = deal_of(o->nb, o->window);
  st = hone_cuda_create_window(&o->c, config, &deal, o->nb);
  if (st != HONE_OK)
    return st;
  o->allocated = o->c->f;
  o->c->f = o->f = o->allocated + hone_cuda_lead(o->c);
  return create_stages(o);
}

int create(void **self, const hone_engine_config *config) {
  *self = nullptr;
  if (config->host_factors == nullptr)
    return HONE_INTERNAL;
  hone_outside *o = static_cast<hone_outside *>(
      hone_mem_get(config->mem, sizeof(hone_outside)));
  if (o == nullptr)
    return HONE_NO_MEMORY;
  memset(static_cast<void *>(o), 0, sizeof *o);
  o->to = *config->host_factors;
  o->mem = config->mem;
  o->pool = config->pool;
  o->watch = config->watch;
  o->n = config->n;
  o->nb = panel_width(config);
  o->panels = (int)((o->n + o->nb - 1) / o->nb);
  o->order = static_cast<int *>(hone_mem_get(
      config->mem, (size_t)o->panels * (size_t)o->n * sizeof(int)));
  const int st = o->order ? create_there(o, config) : (int)HONE_NO_MEMORY;
  if (st == HONE_OK)
    *self = o;
  else
    hone_outside_destroy(o, config->mem);
  return st;
}

void account(void *self, hone_account *out) {
  const hone_cuda *c = static_cast<hone_outside *>(self)->c;
  *out = c->used;
  snprintf(out->text, sizeof out->text,
           "%s, %s, block columns through the device",
           hone_cuda_arithmetic_name(c), hone_cuda_pivoting_name(c));
}

/* With the numbers of rows, for the narrowest panels, and what it takes to put
   rows into order. */
int64_t host_bytes(int64_t n, int64_t k) {
  const int64_t orders = n * (n / HONE_PANEL + 3) * (int64_t)sizeof(int);
  return hone_cuda_host_bytes(n, k) + orders + hone_outside_ordering_bytes(n) +
         (int64_t)sizeof(hone_outside);
}

constexpr hone_engine table() {
  hone_engine t = {};
  t.name = "single LU";
  t.place = "CUDA";
  t.precision = 32;
  t.probe = hone_cuda_aside<hone_cuda_probe>::call;
  t.create = hone_cuda_aside<create>::call;
  t.factor = hone_cuda_aside<hone_outside_factor>::call;
  t.destroy = hone_cuda_aside<hone_outside_destroy>::call;
  t.bytes = host_bytes;
  t.account = account;
  t.device_bytes = device_bytes;
  return t;
}

} // namespace

void hone_outside_destroy(void *self, hone_mem *mem) {
  hone_outside *o = static_cast<hone_outside *>(self);
  if (o == nullptr)
    return;
  const hone_cuda_current meanwhile;
  if (o->c) {
    (void)cudaSetDevice(o->c->ordinal);
    for (cudaStream_t stream : {o->c->work, o->c->feed, o->c->fetch})
      (void)cudaStreamSynchronize(stream);
    o->c->f = o->allocated;
  }
  for (const hone_outside_stage &stage : o->stage)
    for (cudaEvent_t event : {stage.filled, stage.free})
      if (event)
        (void)cudaEventDestroy(event);
  for (cudaEvent_t event : {o->ready, o->factored})
    if (event)
      (void)cudaEventDestroy(event);
  (void)cudaFree(o->stages);
  hone_cuda_destroy(o->c, mem);
  hone_mem_put(mem, o->order);
  hone_mem_put(mem, o);
}

extern "C" const hone_engine hone_engine_outside_cuda = table();
