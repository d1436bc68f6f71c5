/* SPDX-License-Identifier: BSD-3-Clause */
/* The double-precision engine on a GPU: cuSOLVER's LU of the scaled matrix, for
   systems that cannot be refined with single-precision factors. A comes through
   a ring of pinned buffers, as for the single-precision engines: this engine
   calls feed/ with a state of theirs, of which it fills what feed/ reads. It is
   on the current device or, where the caller allows several, on one of the
   others if that one has no memory for it. */
#include "gpu_sp/batch/batch.h"
#include "gpu_sp/create.h"
#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/kept.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

enum { THREADS = 256, BLOCKS = 1024 };
constexpr unsigned ALL = 0xffffffffU;
typedef unsigned long long bits64;

struct engine {
  hone_cuda feeder;       /* order, ring, streams, the matrix, scaling */
  const double *borrowed; /* another engine's copy of A, for the next factor;
                             NULL: none */
  int64_t borrowed_ld;
  const hone_cusolver *solver;
  cusolverDnHandle_t handle;
  double *work;
  int *ipiv, *info;
  bits64 *top; /* max |s_ij|, max |u_ij| as bits */
  int64_t bytes;
};

/* S = R A C in place (row NULL: S = A); *top is raised to the bits of max
   |s_ij|, and to those of Inf or NaN where an entry is that. upper: only in the
   upper triangle. A thread block takes one column after another. */
__global__ void __launch_bounds__(THREADS)
    scale_and_measure(int64_t n, double *a, int64_t lda, const double *row,
                      const double *col, bool upper, bits64 *top) {
  bits64 max = 0;
  for (int64_t j = blockIdx.x; j < n; j += gridDim.x)
    for (int64_t i = threadIdx.x; i < (upper ? j + 1 : n); i += THREADS) {
      double v = a[i + j * lda];
      if (row) {
        const scale_pair by = scale_pair_of(row[i], col[j]);
        v = v * by.first * by.second;
        a[i + j * lda] = v;
      }
      const bits64 seen = (bits64)__double_as_longlong(fabs(v));
      max = seen > max ? seen : max;
    }
  for (int step = 16; step > 0; step /= 2) {
    const bits64 other = __shfl_xor_sync(ALL, max, step);
    max = other > max ? other : max;
  }
  if (threadIdx.x % 32 == 0)
    atomicMax(top, max);
}

/* Makes the engine's device the current one. */
int enter(const engine *e) { return CALL(cudaSetDevice(e->feeder.ordinal)); }

int measure(engine *e, bool scaled, bool upper) {
  hone_cuda *c = &e->feeder;
  const int blocks = c->n < BLOCKS ? (int)c->n : (int)BLOCKS;
  HONE_LAUNCH(scale_and_measure, blocks, THREADS, 0, c->work, c->n, c->a,
              c->lda, scaled ? (const double *)c->row : nullptr,
              (const double *)c->col, upper, e->top + (upper ? 1 : 0));
  return CALL(cudaGetLastError());
}

bool probe(char *why, size_t why_size) {
  if (!hone_cuda_probe(why, why_size))
    return false;
  if (hone_cuda_solver() != nullptr)
    return true;
  snprintf(why, why_size, "no usable cuSOLVER");
  return false;
}

void destroy(void *self, hone_mem *mem) {
  engine *e = static_cast<engine *>(self);
  if (e == nullptr)
    return;
  const hone_cuda_current meanwhile;
  hone_cuda *c = &e->feeder;
  (void)cudaSetDevice(c->ordinal);
  cudaStream_t streams[] = {c->work, c->feed};
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamSynchronize(s);
  if (e->handle)
    (void)e->solver->destroy(e->handle);
  hone_cuda_feed_destroy(c);
  if (c->columns && c->columns->fed)
    (void)cudaEventDestroy(c->columns->fed);
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamDestroy(s);
  void *there[] = {c->a,    c->v,    c->row,  c->col,
                   e->work, e->ipiv, e->info, e->top};
  for (void *p : there)
    (void)cudaFree(p);
  (void)cudaFreeHost(c->h_v);
  hone_cuda_unpin(c);
  (void)cudaGetLastError();
  hone_mem_put(mem, c->columns);
  hone_mem_put(mem, e);
}

template <class T> int allocate(engine *e, T **at, int64_t count) {
  const size_t bytes = (size_t)count * sizeof(T);
  e->bytes += (int64_t)bytes;
  return CREATE(at, cudaMalloc(reinterpret_cast<void **>(at), bytes));
}

/* Returns the bytes of device memory without cuSOLVER's workspace. */
int64_t bytes_on_device(int64_t n) {
  return 8 * (round_up(n, 2) * n + n * HONE_CUDA_COLUMNS + 3 * n);
}

/* lwork: the doubles that cuSOLVER asks for, negative where an int cannot hold
   their number. */
int allocate_workspace(engine *e, const hone_engine_config *config, int lwork) {
  const int64_t count = lwork > 0 ? lwork : 1;
  if (lwork < 0 && config->why)
    snprintf(config->why, config->why_size,
             "cuSOLVER cannot say how much workspace it needs");
  if (lwork < 0)
    return HONE_NO_MEMORY;
  int st = hone_cuda_within_limit(config,
                                  e->bytes + count * (int64_t)sizeof *e->work);
  TRY(allocate(e, &e->work, count));
  return st;
}

int allocate_all(engine *e, const hone_engine_config *config) {
  hone_cuda *c = &e->feeder;
  const int64_t n = c->n;
  int lwork = 0, st = hone_cuda_within_limit(config, bytes_on_device(n));
  TRY(allocate(e, &c->a, c->lda * n));
  TRY(allocate(e, &c->v, n * HONE_CUDA_COLUMNS));
  TRY(allocate(e, &c->row, n));
  TRY(allocate(e, &c->col, n));
  TRY(allocate(e, &e->ipiv, n));
  TRY(allocate(e, &e->info, 1));
  TRY(allocate(e, &e->top, 2));
  TRY_CUDA(e->solver->buffer_size(e->handle, (int)n, (int)n, c->a, (int)c->lda,
                                  &lwork));
  TRY(allocate_workspace(e, config, lwork));
  TRY(hone_cuda_pin(c, reinterpret_cast<void **>(&c->h_v),
                    (size_t)n * HONE_CUDA_H_V_PARTS * sizeof(double)));
  return st;
}

int create_all(engine *e, const hone_engine_config *config) {
  hone_cuda *c = &e->feeder;
  c->columns = static_cast<hone_cuda_column *>(
      hone_mem_get(config->mem, sizeof *c->columns));
  if (c->columns == nullptr)
    return HONE_NO_MEMORY;
  memset(static_cast<void *>(c->columns), 0, sizeof *c->columns);
  e->solver = hone_cuda_solver();
  if (e->solver == nullptr)
    return HONE_NO_DEVICE;
  int st = enter(e);
  cudaEvent_t *const fed = &c->columns->fed;
  for (cudaStream_t *stream : {&c->work, &c->feed})
    TRY(CREATE(stream,
               cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking)));
  TRY(CREATE(fed, cudaEventCreateWithFlags(fed, cudaEventDisableTiming)));
  TRY(CREATE(&e->handle, e->solver->create(&e->handle)));
  TRY_CUDA(e->solver->set_stream(e->handle, c->work));
  TRY(allocate_all(e, config));
  TRY(hone_cuda_feed_create(c));
  return st;
}

/* Creates the engine on the device with this number. */
int create_on(int ordinal, void **self, const hone_engine_config *config) {
  *self = nullptr;
  engine *e = static_cast<engine *>(hone_mem_get(config->mem, sizeof *e));
  if (e == nullptr)
    return HONE_NO_MEMORY;
  memset(static_cast<void *>(e), 0, sizeof *e);
  hone_cuda *c = &e->feeder;
  c->ordinal = ordinal;
  c->n = c->m = config->n;
  c->ld = round_up(c->n, HONE_CUDA_PADDING);
  c->lda = round_up(c->n, 2);
  c->mem = config->mem;
  c->pool = config->pool;
  c->choices = config->choices;
  c->watch = config->watch;
  const int st = create_all(e, config);
  if (st == HONE_OK)
    *self = e;
  else
    destroy(e, config->mem);
  return st;
}

int create(void **self, const hone_engine_config *config) {
  const hone_cuda_current current;
  const int wanted = config->choices.devices, here = current.ordinal();
  int st = create_on(here, self, config);
  if (st == HONE_NO_MEMORY &&
      hone_cuda_release_all_kept() + hone_device_batch_release() > 0)
    st = create_on(here, self, config);
  const int count = wanted == 0 ? 1 : hone_cuda_devices(wanted);
  const int present = hone_cuda_devices(0);
  for (int d = 1; d < count && st == HONE_NO_MEMORY; d++)
    st = create_on((here + d) % present, self, config);
  return st;
}

void borrow(void *self, const double *copy, int64_t ld) {
  engine *e = static_cast<engine *>(self);
  cudaPointerAttributes at = {};
  const bool here =
      copy != nullptr && cudaPointerGetAttributes(&at, copy) == cudaSuccess &&
      at.type == cudaMemoryTypeDevice && at.device == e->feeder.ordinal;
  (void)cudaGetLastError();
  e->borrowed = here ? copy : nullptr;
  e->borrowed_ld = ld;
}

/* Enqueues the copy of A to the device. */
int bring(engine *e, const hone_dense *a) {
  hone_cuda *c = &e->feeder;
  const size_t column = (size_t)c->n * sizeof(double);
  const double *borrowed = e->borrowed;
  e->borrowed = nullptr;
  if (borrowed)
    return CALL(
        cudaMemcpy2DAsync(c->a, (size_t)c->lda * sizeof(double), borrowed,
                          (size_t)e->borrowed_ld * sizeof(double), column,
                          (size_t)c->n, cudaMemcpyDeviceToDevice, c->work));
  int st = hone_cuda_feed_begin(c, a);
  TRY(hone_cuda_feed_columns(c, a, c->n, c->columns->fed));
  TRY_CUDA(cudaStreamWaitEvent(c->work, c->columns->fed, 0));
  return st;
}

/* Brings A to the device, and scales it there. */
int load(engine *e, const hone_dense *a, const hone_scaling *scaling) {
  hone_cuda *c = &e->feeder;
  int st = bring(e, a);
  if (scaling->used)
    TRY(hone_cuda_upload_scaling(c, scaling, true));
  TRY_CUDA(cudaMemsetAsync(e->top, 0, 2 * sizeof *e->top, c->work));
  TRY(measure(e, scaling->used, false));
  return st;
}

int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
           hone_factor_info *info) {
  const hone_cuda_current meanwhile;
  engine *e = static_cast<engine *>(self);
  hone_cuda *c = &e->feeder;
  struct results {
    double top[2];
    int info;
  } *r = reinterpret_cast<results *>(c->h_v);
  *info = {};
  info->growth = HONE_NAN;
  info->zero_pivot = -1;
  if (hone_watch_stop(c->watch, "factor in double", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  int st = enter(e);
  TRY(load(e, hone_dense_of(a), scaling));
  TRY_CUDA(e->solver->getrf(e->handle, (int)c->n, (int)c->n, c->a, (int)c->lda,
                            e->work, e->ipiv, e->info));
  TRY(measure(e, false, true));
  TRY_CUDA(cudaMemcpyAsync(r->top, e->top, sizeof r->top,
                           cudaMemcpyDeviceToHost, c->work));
  TRY_CUDA(cudaMemcpyAsync(&r->info, e->info, sizeof r->info,
                           cudaMemcpyDeviceToHost, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st != HONE_OK) { /* the device may be reading A still */
    (void)cudaStreamSynchronize(c->feed);
    (void)cudaStreamSynchronize(c->work);
    return st;
  }
  if (r->info < 0)
    return HONE_INTERNAL;
  if (r->info > 0)
    info->zero_pivot = r->info - 1;
  info->growth = r->top[1] / r->top[0]; /* NaN and Inf stay so */
  return HONE_OK;
}

int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  const hone_cuda_current meanwhile;
  engine *e = static_cast<engine *>(self);
  hone_cuda *c = &e->feeder;
  const size_t bytes = (size_t)c->n * sizeof(double);
  const cublasOperation_t op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
  int st = enter(e);
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t left = k - i, most = HONE_CUDA_COLUMNS;
    const int64_t now = left < most ? left : most;
    for (int64_t j = 0; j < now; j++)
      memcpy(c->h_v + j * c->n, v + (i + j) * ldv, bytes);
    st = CALL(cudaMemcpyAsync(c->v, c->h_v, (size_t)now * bytes,
                              cudaMemcpyHostToDevice, c->work));
    TRY_CUDA(e->solver->getrs(e->handle, op, (int)c->n, (int)now, c->a,
                              (int)c->lda, e->ipiv, c->v, (int)c->n, e->info));
    TRY_CUDA(cudaMemcpyAsync(c->h_v, c->v, (size_t)now * bytes,
                             cudaMemcpyDeviceToHost, c->work));
    TRY_CUDA(cudaStreamSynchronize(c->work));
    for (int64_t j = 0; j < now && st == HONE_OK; j++)
      memcpy(v + (i + j) * ldv, c->h_v + j * c->n, bytes);
    c->used.to_device += now * (int64_t)bytes;
    c->used.from_device += now * (int64_t)bytes;
  }
  return st;
}

int64_t host_bytes(int64_t n, int64_t k) {
  return hone_cuda_host_bytes(n, k) + (int64_t)sizeof(engine);
}

void account(void *self, hone_account *out) {
  engine *e = static_cast<engine *>(self);
  *out = e->feeder.used;
  out->device_bytes = e->bytes;
  snprintf(out->text, sizeof out->text, "cuSOLVER");
}

int64_t device_bytes(const hone_engine_config *config, bool) {
  return bytes_on_device(config->n);
}

constexpr hone_engine table() {
  hone_engine t = {};
  t.name = "double LU";
  t.place = "CUDA";
  t.precision = 64;
  t.probe = hone_cuda_aside<probe>::call;
  t.create = hone_cuda_aside<create>::call;
  t.factor = hone_cuda_aside<factor>::call;
  t.borrow = hone_cuda_aside<borrow>::call;
  t.solve = hone_cuda_aside<solve>::call;
  t.destroy = hone_cuda_aside<destroy>::call;
  t.bytes = host_bytes;
  t.account = account;
  t.device_bytes = device_bytes;
  return t;
}

} // namespace

extern "C" const hone_engine hone_engine_double_cuda = table();
