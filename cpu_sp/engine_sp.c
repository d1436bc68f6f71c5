/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision engines: the blocked LU of lu.c on the host and on a
   CUDA device, and Cholesky's factorization by the same driver. They differ in
   their device table and its mode alone. */
#include "gpu_sp/device.h"

typedef struct engine_sp {
  const hone_device *device;
  void *on; /* the device's own state */
  hone_engine_config config;
} engine_sp;

static void destroy(void *self, hone_mem *mem) {
  engine_sp *e = self;
  if (e == NULL)
    return;
  e->device->destroy(e->on, mem);
  hone_mem_put(mem, e);
}

static int create_on(const hone_device *device, bool spd, void **self,
                     const hone_engine_config *config) {
  engine_sp *e = hone_mem_get(config->mem, sizeof *e);
  *self = NULL;
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (engine_sp){.device = device, .config = *config};
  e->config.spd = spd;
  int st = device->create(&e->on, &e->config);
  if (st == HONE_OK)
    *self = e;
  else
    hone_mem_put(config->mem, e);
  return st;
}

static int create_host(void **self, const hone_engine_config *config) {
  return create_on(&hone_device_host, false, self, config);
}

static int create_cuda(void **self, const hone_engine_config *config) {
  return create_on(&hone_device_cuda, false, self, config);
}

static int create_host_spd(void **self, const hone_engine_config *config) {
  return create_on(&hone_device_host, true, self, config);
}

static int create_cuda_spd(void **self, const hone_engine_config *config) {
  return create_on(&hone_device_cuda, true, self, config);
}

static bool probe_host(char *why, size_t why_size) {
  return hone_device_host.probe(why, why_size);
}

static bool probe_cuda(char *why, size_t why_size) {
  return hone_device_cuda.probe(why, why_size);
}

static int64_t bytes_host(int64_t n, int64_t k) {
  return (int64_t)sizeof(engine_sp) + hone_device_host.bytes(n, k);
}

static int64_t bytes_cuda(int64_t n, int64_t k) {
  return (int64_t)sizeof(engine_sp) + hone_device_cuda.bytes(n, k);
}

static bool applies_spd(const hone_structure *structure, int64_t n) {
  (void)n;
  return structure->definite;
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  engine_sp *e = self;
  return hone_lu(e->device, e->on, &e->config, a, scaling, info);
}

static int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  engine_sp *e = self;
  return e->device->solve(e->on, trans, k, v, ldv);
}

static int apply(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  engine_sp *e = self;
  return e->device->apply(e->on, trans, k, v, ldv);
}

static bool resident(void *self) {
  engine_sp *e = self;
  return e->device->resident != NULL && e->device->resident(e->on);
}

static int inspect(void *self, const hone_matrix *a,
                   const hone_scaling *scaling, double *scratch,
                   hone_inspection *seen) {
  engine_sp *e = self;
  return e->device->inspect(e->on, a, scaling, scratch, seen);
}

static int residual(void *self, const hone_matrix *a, bool trans,
                    const double *x, const double *b, double *r, double *den) {
  engine_sp *e = self;
  return e->device->residual(e->on, a, trans, x, b, r, den);
}

static void expect(void *self) {
  engine_sp *e = self;
  e->device->expect(e->on);
}

static void account(void *self, hone_account *account) {
  engine_sp *e = self;
  e->device->account(e->on, account);
}

static int64_t device_bytes_cuda(const hone_engine_config *config,
                                 bool resident) {
  return hone_device_cuda.device_bytes(config, resident);
}

static int64_t device_bytes_cuda_spd(const hone_engine_config *config,
                                     bool resident) {
  hone_engine_config spd = *config;
  spd.spd = true;
  return hone_device_cuda.device_bytes(&spd, resident);
}

const hone_engine hone_engine_single = {.name = "single LU",
                                        .place = "CPU",
                                        .precision = 32,
                                        .probe = probe_host,
                                        .create = create_host,
                                        .factor = factor,
                                        .solve = solve,
                                        .apply = apply,
                                        .destroy = destroy,
                                        .bytes = bytes_host};

const hone_engine hone_engine_single_cuda = {.name = "single LU",
                                             .place = "CUDA",
                                             .precision = 32,
                                             .probe = probe_cuda,
                                             .create = create_cuda,
                                             .factor = factor,
                                             .solve = solve,
                                             .destroy = destroy,
                                             .bytes = bytes_cuda,
                                             .resident = resident,
                                             .inspect = inspect,
                                             .residual = residual,
                                             .expect = expect,
                                             .account = account,
                                             .device_bytes = device_bytes_cuda};

const hone_engine hone_engine_cholesky = {.name = "single Cholesky",
                                          .place = "CPU",
                                          .precision = 32,
                                          .symmetric = true,
                                          .applies = applies_spd,
                                          .probe = probe_host,
                                          .create = create_host_spd,
                                          .factor = factor,
                                          .solve = solve,
                                          .apply = apply,
                                          .destroy = destroy,
                                          .bytes = bytes_host};

const hone_engine hone_engine_cholesky_cuda = {.name = "single Cholesky",
                                               .place = "CUDA",
                                               .precision = 32,
                                               .symmetric = true,
                                               .applies = applies_spd,
                                               .probe = probe_cuda,
                                               .create = create_cuda_spd,
                                               .factor = factor,
                                               .solve = solve,
                                               .destroy = destroy,
                                               .bytes = bytes_cuda,
                                               .resident = resident,
                                               .inspect = inspect,
                                               .residual = residual,
                                               .expect = expect,
                                               .account = account,
                                               .device_bytes =
                                                   device_bytes_cuda_spd};
