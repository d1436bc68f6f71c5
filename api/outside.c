/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine for factors that do not fit the memory of a GPU: a GPU makes them
   in host memory (gpu_sp/outside/), and all else is done by the host's engine,
   whose arrays they are in. */
#include "api/engines.h"

#include "cpu_sp/blocked.h"

typedef struct outside {
  void *host;   /* of hone_engine_single */
  void *device; /* of hone_engine_outside_cuda */
} outside;

static bool probe(char *why, size_t why_size) {
  return hone_engine_outside_cuda.probe(why, why_size);
}

static void destroy(void *self, hone_mem *mem) {
  outside *o = self;
  if (o == NULL)
    return;
  if (o->device != NULL)
    hone_engine_outside_cuda.destroy(o->device, mem);
  if (o->host != NULL)
    hone_engine_single.destroy(o->host, mem);
  hone_mem_put(mem, o);
}

static int create(void **self, const hone_engine_config *config) {
  outside *o = hone_mem_get(config->mem, sizeof *o);
  *self = NULL;
  if (o == NULL)
    return HONE_NO_MEMORY;
  *o = (outside){.host = NULL};
  int st = hone_engine_single.create(&o->host, config);
  if (st == HONE_OK) {
    const hone_blocked *h = o->host;
    const hone_host_factors factors = {
        .f = h->f, .ld = h->ld, .pivot = h->ipiv, .col_max = h->col_max};
    hone_engine_config of_device = *config;
    of_device.host_factors = &factors;
    st = hone_engine_outside_cuda.create(&o->device, &of_device);
  }
  if (st == HONE_OK)
    *self = o;
  else
    destroy(o, config->mem);
  return st;
}

/* The host finds the growth of the factors, which the device does not hold all
   at once. */
static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  const outside *o = self;
  hone_blocked *h = o->host;
  const int st = hone_engine_outside_cuda.factor(o->device, a, scaling, info);
  if (st != HONE_OK)
    return st;
  const bool complete =
      info->zero_pivot < 0 && !info->hopeless && info->growth <= DBL_MAX;
  h->flushed = info->flushed;
  if (complete)
    hone_blocked_outcome(h, true, info);
  return st;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const outside *o = self;
  return hone_engine_single.solve(o->host, trans, k, v, ldv);
}

static int apply(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  const outside *o = self;
  return hone_engine_single.apply(o->host, trans, k, v, ldv);
}

static int64_t bytes(int64_t n, int64_t k) {
  return hone_engine_single.bytes(n, k) + hone_engine_outside_cuda.bytes(n, k) +
         (int64_t)sizeof(outside);
}

static int64_t device_bytes(const hone_engine_config *config, bool resident) {
  return hone_engine_outside_cuda.device_bytes(config, resident);
}

static void account(void *self, hone_account *out) {
  const outside *o = self;
  hone_engine_outside_cuda.account(o->device, out);
}

const hone_engine hone_engine_outside = {.name = "single LU",
                                         .place = "CUDA",
                                         .precision = 32,
                                         .spare = true,
                                         .probe = probe,
                                         .create = create,
                                         .factor = factor,
                                         .solve = solve,
                                         .apply = apply,
                                         .destroy = destroy,
                                         .bytes = bytes,
                                         .account = account,
                                         .device_bytes = device_bytes};
