/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for several devices, LU and Cholesky: creation, destruction, and
   their tables. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/create.h"
#include "gpu_sp/layout.h"

#include <cstdio>
#include <cstring>

namespace {

/* Returns how many devices are used at most: trial.logical parts of the current
   one, or that one and those behind it. */
int devices_wanted(const hone_choices *choices) {
  const int64_t wanted = choices->trial.logical > 0
                             ? choices->trial.logical
                             : hone_cuda_devices(choices->devices);
  return (int)(wanted < HONE_SEVERAL_MOST ? wanted
                                          : (int64_t)HONE_SEVERAL_MOST);
}

/* Returns the columns of a panel: a multiple of HONE_PANEL, as the inverses of
   diagonal blocks are for so many rows, and no more than a solve takes. */
int64_t panel_width(bool spd, const hone_engine_config *config) {
  const int64_t nb = round_up(hone_cuda_outer_width(spd, config), HONE_PANEL);
  return nb < HONE_SEVERAL_WIDEST ? nb : (int64_t)HONE_SEVERAL_WIDEST;
}

/* Returns the number of shares of so many devices: each has a panel at least.
 */
int shares_of(bool spd, const hone_engine_config *config, int devices) {
  const int64_t nb = panel_width(spd, config);
  const int64_t panels = (config->n + nb - 1) / nb;
  return (int)(devices < panels ? devices : panels);
}

/* Returns the shape of share d; kept: A comes by parts, and in the LU the
   others' L is kept meanwhile. There F has slots for L, and room for what is
   kept, behind the share's own columns. */
hone_cuda_shape shape_of(bool spd, const hone_engine_config *config, int count,
                         int d, bool kept) {
  hone_several s = {};
  s.spd = spd;
  s.n = config->n;
  s.nb = panel_width(spd, config);
  s.count = count;
  hone_several_set_parts(&s, &config->choices, kept);
  const int panels = s.first[s.parts - 1];
  const hone_cuda_deal deal = {s.nb, count, d, panels - panels / count, 0};
  return {spd, deal, spd ? 0 : (HONE_SEVERAL_SLOTS + deal.kept) * deal.width};
}

/* Returns the bytes of a share's room for what comes from the other devices:
   sums, or columns of A. */
int64_t gather_bytes(const hone_cuda_shape &of, int64_t padded) {
  const int64_t columns =
      of.spd ? of.deal.width : (int64_t)of.deal.of * HONE_SEVERAL_COLUMNS;
  return columns * padded * (int64_t)sizeof(hone_entry);
}

int64_t padded_columns(int64_t m) { return round_up(m, HONE_CUDA_PADDING); }

int64_t share_bytes(bool spd, const hone_engine_config *config, int count,
                    bool kept) {
  const hone_cuda_shape shape = shape_of(spd, config, count, 0, kept);
  const int64_t m = hone_cuda_dealt_columns(config->n, &shape.deal);
  return hone_cuda_share_bytes(shape, config) +
         gather_bytes(shape, padded_columns(m));
}

/* Returns the most that one device needs, of as many as the caller names,
   whether they are there or not; kept: LU's with L of others, so that A can
   come by parts. */
int64_t device_bytes(bool spd, const hone_engine_config *config, bool kept) {
  const int named = config->choices.devices;
  const int most = named < HONE_SEVERAL_MOST ? named : (int)HONE_SEVERAL_MOST;
  const int devices = named > 0 ? most : devices_wanted(&config->choices);
  return share_bytes(spd, config, shares_of(spd, config, devices), kept);
}

bool probe(char *why, size_t why_size) {
  int count = 0;
  if (!hone_cuda_probe(why, why_size))
    return false;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 1)
    return true;
  (void)cudaGetLastError();
  snprintf(why, why_size, "there is one CUDA device");
  return false;
}

/* Lets each device reach the memory of the others where that is possible;
   where it is not, copies between them go through the host. */
void open_ways(const hone_several *s) {
  for (int d = 0; d < s->count; d++)
    for (int e = 0; e < s->count; e++) {
      const int here = s->share[d].c->ordinal, there = s->share[e].c->ordinal;
      int can = 0;
      if (here == there || hone_several_enter(&s->share[d]) != HONE_OK ||
          cudaDeviceCanAccessPeer(&can, here, there) != cudaSuccess || can == 0)
        continue;
      if (cudaDeviceEnablePeerAccess(there, 0) != cudaSuccess)
        (void)cudaGetLastError(); /* it was open, or the driver copies */
    }
}

int create_event(cudaEvent_t *event) {
  return CREATE(event, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

/* Creates share d on the current device. */
int create_share(hone_several *s, int d, const hone_engine_config *config) {
  hone_share *share = &s->share[d];
  const hone_cuda_shape shape =
      shape_of(s->spd, config, s->count, d, s->parts > 1);
  int st = hone_cuda_create_share(&share->c, shape, config);
  if (st != HONE_OK)
    return st;
  share->allocated = share->c->f;
  share->c->f = share->f = share->allocated + hone_cuda_lead(share->c);
  share->padded = s->spd ? share->c->m : padded_columns(share->c->m);
  st = CREATE(&share->arrive,
              cudaStreamCreateWithFlags(&share->arrive, cudaStreamNonBlocking));
  for (int i = 0; i < HONE_SEVERAL_SLOTS; i++) {
    TRY(create_event(&share->factored[i]));
    TRY(create_event(&share->got[i]));
    TRY(create_event(&share->used[i]));
  }
  TRY(create_event(&share->ready));
  TRY(create_event(&share->pushed));
  const int64_t bytes = gather_bytes(shape, padded_columns(share->c->m));
  TRY(hone_cuda_within_limit(config, share->c->used.device_bytes + bytes));
  TRY(CREATE(&share->gather, cudaMalloc(&share->gather, (size_t)bytes)));
  /* The place of the share's own sums stays zero. */
  TRY_CUDA(cudaMemsetAsync(
      share->allocated, 0,
      (size_t)(share->c->ld * s->n + hone_cuda_lead(share->c)) * sizeof(float),
      share->c->work));
  TRY_CUDA(cudaMemsetAsync(share->gather, 0, (size_t)bytes, share->c->work));
  TRY_CUDA(cudaStreamSynchronize(share->c->work));
  share->c->used.device_bytes += bytes;
  return st;
}

void destroy_share(hone_share *share, hone_mem *mem) {
  if (share->c == nullptr)
    return;
  (void)hone_several_enter(
      share); /* memory of the host is freed all the same */
  if (share->arrive)
    (void)cudaStreamSynchronize(share->arrive);
  (void)cudaStreamSynchronize(share->c->work);
  for (int i = 0; i < HONE_SEVERAL_SLOTS; i++)
    for (cudaEvent_t event :
         {share->factored[i], share->got[i], share->used[i]})
      if (event)
        (void)cudaEventDestroy(event);
  for (cudaEvent_t event : {share->ready, share->pushed})
    if (event)
      (void)cudaEventDestroy(event);
  if (share->arrive)
    (void)cudaStreamDestroy(share->arrive);
  (void)cudaFree(share->gather);
  share->c->f = share->allocated;
  hone_cuda_destroy(share->c, mem);
  *share = {};
}

} // namespace

void hone_several_destroy(void *self, hone_mem *mem) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  if (s == nullptr)
    return;
  hone_several_stop(s);
  if (hone_several_keep(s))
    return;
  if (s->whole && hone_several_enter(&s->share[0]) == HONE_OK) {
    (void)cudaStreamSynchronize(s->share[0].c->work);
    (void)cudaFree(s->whole);
  }
  for (hone_share &share : s->share)
    destroy_share(&share, mem);
  hone_mem_put(mem, s->sums);
  hone_mem_put(mem, s);
}

namespace {

const int64_t LEAVE_FREE = (int64_t)1 << 30; /* bytes, for others */

/* Allocates room for all of F on the first share's device, the current one, if
   there is enough that is free and allowed. */
void allocate_whole(hone_several *s, const hone_engine_config *config) {
  size_t free_bytes = 0, total = 0;
  hone_cuda *c = s->share[0].c;
  s->whole_ld = HONE_PARTS * round_up(s->n, HONE_CUDA_PADDING);
  const int64_t bytes = s->whole_ld * s->n * (int64_t)sizeof(float);
  const int64_t limit = config->choices.device_limit;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess ||
      bytes > (int64_t)free_bytes - LEAVE_FREE ||
      (limit > 0 && c->used.device_bytes + bytes > limit) ||
      cudaMalloc(&s->whole, (size_t)bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    s->whole = nullptr;
    return;
  }
  c->used.device_bytes += bytes;
}

/* Creates the shares on the devices from number 'current' on. */
int create_each(hone_several *s, const hone_engine_config *config, int current,
                int present) {
  int st = HONE_OK;
  for (int d = 0; d < s->count && st == HONE_OK; d++) {
    const int ordinal =
        config->choices.trial.logical > 0 ? current : (current + d) % present;
    st = CALL(cudaSetDevice(ordinal));
    TRY(create_share(s, d, config));
  }
  return st;
}

/* Where there is no memory to keep L of others, A comes at once. */
int create_shares(hone_several *s, const hone_engine_config *config) {
  const hone_cuda_current meanwhile;
  int current = 0, present = 0;
  int st = CALL(cudaGetDevice(&current));
  TRY_CUDA(cudaGetDeviceCount(&present));
  hone_several_set_parts(s, &config->choices, true);
  TRY(create_each(s, config, current, present));
  if (st == HONE_NO_MEMORY && s->parts > 1 && !s->spd) {
    for (hone_share &share : s->share)
      destroy_share(&share, config->mem);
    hone_several_set_parts(s, &config->choices, false);
    st = create_each(s, config, current, present);
  }
  if (st == HONE_OK) {
    open_ways(s);
    st = hone_several_enter(&s->share[0]);
    if (st == HONE_OK && !config->choices.trial.apart && !s->spd)
      allocate_whole(s, config);
  }
  return st;
}

int create_new(bool spd, hone_several **created,
               const hone_engine_config *config, int count) {
  hone_several *s = static_cast<hone_several *>(
      hone_mem_get(config->mem, sizeof(hone_several)));
  if (s == nullptr)
    return HONE_NO_MEMORY;
  memset(static_cast<void *>(s), 0, sizeof *s);
  s->spd = spd;
  s->steps = spd ? &hone_several_cholesky_steps : &hone_several_lu_steps;
  s->choices = config->choices;
  s->block = config->block;
  s->mem = config->mem;
  s->pool = config->pool;
  s->watch = config->watch;
  s->n = config->n;
  s->nb = panel_width(spd, config);
  s->panels = (int)((s->n + s->nb - 1) / s->nb);
  s->count = count;
  s->sums = static_cast<double *>(hone_mem_get(
      config->mem, HONE_SEVERAL_SUMS * (size_t)s->n * sizeof(double)));
  int st = s->count < 2 ? (int)HONE_NO_DEVICE : (int)HONE_OK;
  if (s->sums == nullptr)
    st = HONE_NO_MEMORY;
  TRY(create_shares(s, config));
  if (st == HONE_OK)
    *created = s;
  else
    hone_several_destroy(s, config->mem);
  return st;
}

int create(bool spd, void **self, const hone_engine_config *config) {
  const int count = shares_of(spd, config, devices_wanted(&config->choices));
  hone_several *s = hone_several_take_kept(spd, config, count);
  int st = s ? (int)HONE_OK : create_new(spd, &s, config, count);
  *self = nullptr;
  if (st != HONE_OK)
    return st;
  s->may_be_kept = config->keep;
  *self = s;
  return HONE_OK;
}

int create_lu(void **self, const hone_engine_config *config) {
  return create(false, self, config);
}

int64_t device_bytes_lu(const hone_engine_config *config, bool kept) {
  return device_bytes(false, config, kept);
}

bool resident(void *self) {
  return static_cast<hone_several *>(self)->share[0].c != nullptr;
}

void account(void *self, hone_account *out) {
  const hone_several *s = static_cast<hone_several *>(self);
  *out = {};
  for (int d = 0; d < s->count; d++) {
    const hone_account *one = &s->share[d].c->used;
    out->device_bytes += one->device_bytes;
    out->to_device += one->to_device;
    out->from_device += one->from_device;
  }
  out->residuals = s->residuals;
  const hone_cuda *c = s->share[0].c;
  snprintf(out->text, sizeof out->text, "%s, %s, %d GPUs",
           hone_cuda_arithmetic_name(c),
           s->spd ? "one triangle" : hone_cuda_pivoting_name(c), s->count);
}

int64_t host_bytes(int64_t n, int64_t k) {
  return 2 * hone_cuda_host_bytes(n, k);
}

/* Returns a table with the members that both engines have in common. */
constexpr hone_engine common() {
  hone_engine t = {};
  t.place = "CUDA";
  t.precision = 32;
  t.wide = true;
  t.probe = hone_cuda_aside<probe>::call;
  t.factor = hone_cuda_aside<hone_several_factor>::call;
  t.solve = hone_cuda_aside<hone_several_solve>::call;
  t.destroy = hone_cuda_aside<hone_several_destroy>::call;
  t.bytes = host_bytes;
  t.resident = resident;
  t.inspect = hone_cuda_aside<hone_several_inspect>::call;
  t.residual = hone_cuda_aside<hone_several_residual>::call;
  t.residuals = hone_cuda_aside<hone_several_residuals>::call;
  t.projection = hone_several_projection;
  t.product = hone_cuda_aside<hone_several_product>::call;
  t.probe_step = hone_cuda_aside<hone_several_probe_step>::call;
  t.probed = hone_cuda_aside<hone_several_probed>::call;
  t.solve_refined = hone_cuda_aside<hone_several_solve_refined>::call;
  t.account = account;
  return t;
}

constexpr hone_engine lu() {
  hone_engine t = common();
  t.name = "single LU";
  t.create = hone_cuda_aside<create_lu>::call;
  t.device_bytes = device_bytes_lu;
  return t;
}

int create_cholesky(void **self, const hone_engine_config *config) {
  return create(true, self, config);
}

int64_t device_bytes_cholesky(const hone_engine_config *config, bool kept) {
  return device_bytes(true, config, kept);
}

constexpr hone_engine cholesky() {
  hone_engine t = common();
  t.name = "single Cholesky";
  t.symmetric = true;
  t.applies = hone_cuda_is_definite;
  t.create = hone_cuda_aside<create_cholesky>::call;
  t.device_bytes = device_bytes_cholesky;
  return t;
}

} // namespace

extern "C" const hone_engine hone_engine_several_cuda = lu();
extern "C" const hone_engine hone_engine_several_cholesky_cuda = cholesky();
