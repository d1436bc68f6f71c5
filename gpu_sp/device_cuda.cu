/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA device behind the table of device.h: F stays on the GPU, its block
   columns are rounded by the CPU's cores into pinned memory and sent, panels
   are factored by the CPU (OpenBLAS), everything else by cuBLAS in FP32 on
   one stream of its own. No default stream, no device-wide wait, nothing
   allocated after create but for a larger number of right-hand sides. */
extern "C" {
#include "gpu_sp/device.h"
#include "gpu_sp/round.h"
void sgetrf_(const int *m, const int *n, float *a, const int *lda, int *ipiv,
             int *info);
}

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <dlfcn.h>
#include <pthread.h>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

enum { BLOCK = 512, TILE = 32, THREADS = 256 };

/* What is used of cuBLAS, found when it is first asked for: a program linked
   with this library also starts where there is no cuBLAS. */
struct blas_calls {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSgemm_v2) sgemm;
  decltype(&cublasStrsm_v2) strsm;
  decltype(&cublasStrsv_v2) strsv;
};
blas_calls blas;
bool blas_found;
pthread_once_t blas_once = PTHREAD_ONCE_INIT;

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

template <class F> bool find(void *library, const char *name, F *call) {
  *call = reinterpret_cast<F>(dlsym(library, name));
  return *call != nullptr;
}

/* Once for the process; the library stays loaded. */
void find_blas() {
  void *library = dlopen("libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW);
  blas_found = library != nullptr &&
               find(library, "cublasCreate_v2", &blas.create) &&
               find(library, "cublasDestroy_v2", &blas.destroy) &&
               find(library, "cublasSetStream_v2", &blas.set_stream) &&
               find(library, "cublasSgemm_v2", &blas.sgemm) &&
               find(library, "cublasStrsm_v2", &blas.strsm) &&
               find(library, "cublasStrsv_v2", &blas.strsv);
}

struct cuda {
  int64_t n, ld, nb;
  hone_mem *mem;
  hone_pool *pool;
  cudaStream_t stream;
  cublasHandle_t blas;
  float *d_f;     /* n x n, ld */
  int *d_pivot;   /* n, from 1, as LAPACK */
  float *d_max;   /* largest |u_ij|, or Inf */
  float *d_v;     /* n x v_columns */
  float *h_panel; /* pinned, n x nb: a block column on its way */
  float *h_v;     /* pinned, n x v_columns */
  int64_t v_columns;
  int *h_pivot;   /* n */
  float *col_max; /* n */
};

/* Every status of the runtime and of cuBLAS becomes one of ours. */
int of(cudaError_t e) {
  if (e == cudaSuccess)
    return HONE_OK;
  (void)cudaGetLastError(); /* forget it: the next call is not to blame */
  return e == cudaErrorMemoryAllocation ? HONE_NO_MEMORY : HONE_DEVICE_FAILED;
}

int of(cublasStatus_t s) {
  if (s == CUBLAS_STATUS_SUCCESS)
    return HONE_OK;
  return s == CUBLAS_STATUS_ALLOC_FAILED ? HONE_NO_MEMORY : HONE_DEVICE_FAILED;
}

bool probe(char *why, size_t why_size) {
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) {
    pthread_once(&blas_once, find_blas);
    if (!blas_found)
      snprintf(why, why_size,
               "libcublas.so." TEXT(CUBLAS_VER_MAJOR) " cannot "
                                                      "be loaded");
    return blas_found;
  }
  (void)cudaGetLastError();
  snprintf(why, why_size, "no usable CUDA device: %s",
           e == cudaSuccess ? "none is present" : cudaGetErrorString(e));
  return false;
}

int64_t block(int64_t n, int64_t j) {
  (void)n;
  (void)j;
  return BLOCK;
}

int64_t bytes(int64_t n, int64_t k) {
  int64_t nb = HONE_MIN(n, (int64_t)BLOCK);
  return (n * nb + n * k + n) * (int64_t)sizeof(float) +
         n * (int64_t)sizeof(int) + (int64_t)sizeof(cuda);
}

void destroy(void *self, hone_mem *mem) {
  cuda *c = static_cast<cuda *>(self);
  if (c == nullptr)
    return;
  if (c->stream)
    (void)cudaStreamSynchronize(c->stream);
  if (c->blas)
    (void)blas.destroy(c->blas);
  if (c->stream)
    (void)cudaStreamDestroy(c->stream);
  (void)cudaFree(c->d_v);
  (void)cudaFree(c->d_max);
  (void)cudaFree(c->d_pivot);
  (void)cudaFree(c->d_f);
  (void)cudaFreeHost(c->h_v);
  (void)cudaFreeHost(c->h_panel);
  (void)cudaGetLastError();
  hone_mem_put(mem, c->col_max);
  hone_mem_put(mem, c->h_pivot);
  hone_mem_put(mem, c);
}

template <class T> void **address(T **p) {
  return reinterpret_cast<void **>(p);
}

int allocate(cuda *c) {
  const size_t n = (size_t)c->n;
  pthread_once(&blas_once, find_blas);
  if (!blas_found)
    return HONE_NO_DEVICE;
  int st = of(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
  if (st == HONE_OK)
    st = of(blas.create(&c->blas));
  if (st == HONE_OK)
    st = of(blas.set_stream(c->blas, c->stream));
  if (st == HONE_OK)
    st = of(cudaMalloc(address(&c->d_f), (size_t)c->ld * n * sizeof(float)));
  if (st == HONE_OK) /* the rows that pad it are read by wide loads */
    st = of(cudaMemsetAsync(c->d_f, 0, (size_t)c->ld * n * sizeof(float),
                            c->stream));
  if (st == HONE_OK)
    st = of(cudaMalloc(address(&c->d_pivot), n * sizeof(int)));
  if (st == HONE_OK)
    st = of(cudaMalloc(address(&c->d_max), sizeof(float)));
  if (st == HONE_OK)
    st = of(cudaMallocHost(address(&c->h_panel),
                           n * (size_t)c->nb * sizeof(float)));
  return st;
}

int create(void **self, const hone_engine_config *config) {
  const int64_t n = config->n;
  *self = nullptr;
  cuda *c = static_cast<cuda *>(hone_mem_get(config->mem, sizeof *c));
  if (c == nullptr)
    return HONE_NO_MEMORY;
  memset(c, 0, sizeof *c);
  c->n = n;
  c->ld = (n + TILE - 1) / TILE * TILE;
  c->nb = HONE_MIN(n, HONE_MAX(config->block, (int64_t)BLOCK));
  c->mem = config->mem;
  c->pool = config->pool;
  c->h_pivot =
      static_cast<int *>(hone_mem_get(config->mem, (size_t)n * sizeof(int)));
  c->col_max = static_cast<float *>(
      hone_mem_get(config->mem, (size_t)n * sizeof(float)));
  int st = c->h_pivot && c->col_max ? allocate(c) : (int)HONE_NO_MEMORY;
  if (st == HONE_OK)
    *self = c;
  else
    destroy(c, config->mem);
  return st;
}

/* Waits for the stream: the pinned block column is free, or filled. */
int wait(cuda *c) { return of(cudaStreamSynchronize(c->stream)); }

float *at(cuda *c, int64_t i, int64_t j) { return c->d_f + i + j * c->ld; }

int load(void *self, const hone_matrix *a, const hone_scaling *scaling,
         int64_t j, int64_t w, int64_t *flushed) {
  cuda *c = static_cast<cuda *>(self);
  int st = wait(c);
  if (st != HONE_OK)
    return st;
  hone_rounding r = {a,    scaling,       j, w, c->h_pivot, j, c->h_panel,
                     c->n, c->col_max + j};
  *flushed += hone_round_columns(c->pool, &r);
  const size_t column = (size_t)c->n * sizeof(float);
  return of(cudaMemcpy2DAsync(at(c, 0, j), (size_t)c->ld * sizeof(float),
                              c->h_panel, column, column, (size_t)w,
                              cudaMemcpyHostToDevice, c->stream));
}

int panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  cuda *c = static_cast<cuda *>(self);
  const int m = (int)(c->n - j), width = (int)w;
  const size_t column = (size_t)m * sizeof(float);
  const size_t pitch = (size_t)c->ld * sizeof(float);
  int st = of(cudaMemcpy2DAsync(c->h_panel, column, at(c, j, j), pitch, column,
                                (size_t)w, cudaMemcpyDeviceToHost, c->stream));
  if (st == HONE_OK)
    st = wait(c);
  if (st != HONE_OK)
    return st;
  int info = 0;
  sgetrf_(&m, &width, c->h_panel, &m, c->h_pivot + j, &info);
  if (info < 0)
    return HONE_INTERNAL;
  if (info > 0 && *zero_pivot < 0)
    *zero_pivot = j + info - 1;
  for (int64_t i = j; i < j + w; i++)
    c->h_pivot[i] += (int)j;
  st = of(cudaMemcpy2DAsync(at(c, j, j), pitch, c->h_panel, column, column,
                            (size_t)w, cudaMemcpyHostToDevice, c->stream));
  if (st == HONE_OK)
    st = of(cudaMemcpyAsync(c->d_pivot + j, c->h_pivot + j,
                            (size_t)w * sizeof(int), cudaMemcpyHostToDevice,
                            c->stream));
  return st;
}

/* One thread for each column: the exchanges of rows k .. k+kw-1 in turn. */
__global__ void exchange_rows(float *f, int64_t ld, int64_t k, int64_t kw,
                              const int *pivot, int64_t columns) {
  int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= columns)
    return;
  float *column = f + j * ld;
  for (int64_t i = k; i < k + kw; i++) {
    int64_t with = pivot[i] - 1;
    float t = column[i];
    column[i] = column[with];
    column[with] = t;
  }
}

int swap(void *self, int64_t k, int64_t kw) {
  cuda *c = static_cast<cuda *>(self);
  unsigned blocks = (unsigned)((k + THREADS - 1) / THREADS);
  if (k == 0)
    return HONE_OK;
  exchange_rows<<<blocks, THREADS, 0, c->stream>>>(c->d_f, c->ld, k, kw,
                                                   c->d_pivot, k);
  return of(cudaGetLastError());
}

int trsm(void *self, int64_t k, int64_t j, int64_t w) {
  cuda *c = static_cast<cuda *>(self);
  const float one = 1.0F;
  return of(blas.strsm(c->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                       CUBLAS_OP_N, CUBLAS_DIAG_UNIT, (int)k, (int)w, &one,
                       c->d_f, (int)c->ld, at(c, 0, j), (int)c->ld));
}

int gemm(void *self, int64_t k, int64_t j, int64_t w) {
  cuda *c = static_cast<cuda *>(self);
  const float one = 1.0F, minus = -1.0F;
  return of(blas.sgemm(c->blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)(c->n - k),
                       (int)w, (int)k, &minus, at(c, k, 0), (int)c->ld,
                       at(c, 0, j), (int)c->ld, &one, at(c, k, j), (int)c->ld));
}

int pivots(void *self, int64_t j, int64_t w, float *out) {
  cuda *c = static_cast<cuda *>(self);
  int st = of(cudaMemcpy2DAsync(
      out, sizeof(float), at(c, j, j), (size_t)(c->ld + 1) * sizeof(float),
      sizeof(float), (size_t)w, cudaMemcpyDeviceToHost, c->stream));
  if (st == HONE_OK)
    st = wait(c);
  for (int64_t i = 0; i < w; i++)
    out[i] = std::fabs(out[i]);
  return st;
}

/* The largest |u_ij| as the bits of a nonnegative float, which order as it
   does; NaN counts as Inf, above every number. One block for each column. */
__global__ void largest_u(const float *f, int64_t ld, unsigned *max) {
  const float *column = f + (int64_t)blockIdx.x * ld;
  unsigned top = 0;
  for (int64_t i = threadIdx.x; i <= blockIdx.x; i += blockDim.x) {
    float v = fabsf(column[i]);
    unsigned bits = __float_as_uint(v <= 3.4e38F ? v : INFINITY);
    top = bits > top ? bits : top;
  }
  for (int step = 16; step > 0; step /= 2) {
    unsigned other = __shfl_down_sync(0xffffffffU, top, step);
    top = other > top ? other : top;
  }
  if (threadIdx.x % 32 == 0)
    atomicMax(max, top);
}

int growth(void *self, double *growth) {
  cuda *c = static_cast<cuda *>(self);
  float u = 0.0F, s = 0.0F;
  int st = of(cudaMemsetAsync(c->d_max, 0, sizeof(float), c->stream));
  if (st != HONE_OK)
    return st;
  largest_u<<<(unsigned)c->n, THREADS, 0, c->stream>>>(
      c->d_f, c->ld, reinterpret_cast<unsigned *>(c->d_max));
  st = of(cudaGetLastError());
  if (st == HONE_OK)
    st = of(cudaMemcpyAsync(&u, c->d_max, sizeof u, cudaMemcpyDeviceToHost,
                            c->stream));
  if (st == HONE_OK)
    st = wait(c);
  for (int64_t j = 0; j < c->n; j++)
    s = c->col_max[j] > s ? c->col_max[j] : s;
  *growth = (double)u / (double)s;
  return st;
}

int reserve(cuda *c, int64_t k) {
  if (k <= c->v_columns)
    return HONE_OK;
  const size_t size = (size_t)(c->n * k) * sizeof(float);
  (void)cudaFree(c->d_v);
  (void)cudaFreeHost(c->h_v);
  c->d_v = c->h_v = nullptr;
  c->v_columns = 0;
  int st = of(cudaMalloc(address(&c->d_v), size));
  if (st == HONE_OK)
    st = of(cudaMallocHost(address(&c->h_v), size));
  if (st == HONE_OK)
    c->v_columns = k;
  return st;
}

/* v = inv(L) v and so on: one triangle, its transpose where trans. */
int triangle(cuda *c, bool lower, bool trans, int64_t k) {
  const float one = 1.0F;
  const cublasFillMode_t fill =
      lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  const cublasDiagType_t diag = lower ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  const cublasOperation_t op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int n = (int)c->n, ld = (int)c->ld;
  if (k == 1)
    return of(blas.strsv(c->blas, fill, op, diag, n, c->d_f, ld, c->d_v, 1));
  return of(blas.strsm(c->blas, CUBLAS_SIDE_LEFT, fill, op, diag, n, (int)k,
                       &one, c->d_f, ld, c->d_v, n));
}

/* Row exchanges on the host, forwards or back. */
void exchange(const cuda *c, bool back, float *v) {
  for (int64_t i = 0; i < c->n; i++) {
    int64_t k = back ? c->n - 1 - i : i, with = c->h_pivot[k] - 1;
    float t = v[k];
    v[k] = v[with];
    v[with] = t;
  }
}

int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  cuda *c = static_cast<cuda *>(self);
  int st = reserve(c, k);
  if (st != HONE_OK)
    return st;
  const size_t size = (size_t)(c->n * k) * sizeof(float);
  for (int64_t q = 0; q < k; q++) {
    float *h = c->h_v + q * c->n;
    for (int64_t i = 0; i < c->n; i++)
      h[i] = (float)v[q * ldv + i];
    if (!trans)
      exchange(c, false, h);
  }
  st = of(
      cudaMemcpyAsync(c->d_v, c->h_v, size, cudaMemcpyHostToDevice, c->stream));
  if (st == HONE_OK)
    st = triangle(c, !trans, trans, k);
  if (st == HONE_OK)
    st = triangle(c, trans, trans, k);
  if (st == HONE_OK)
    st = of(cudaMemcpyAsync(c->h_v, c->d_v, size, cudaMemcpyDeviceToHost,
                            c->stream));
  int waited = wait(c); /* also after an error: h_v must be at rest */
  if (st == HONE_OK)
    st = waited;
  for (int64_t q = 0; st == HONE_OK && q < k; q++) {
    float *h = c->h_v + q * c->n;
    if (trans)
      exchange(c, true, h);
    for (int64_t i = 0; i < c->n; i++)
      v[q * ldv + i] = (double)h[i];
  }
  return st;
}

} // namespace

extern "C" const hone_device hone_device_cuda = {
    "CUDA", probe, create, destroy, bytes,  block,  load,
    panel,  swap,  trsm,   gemm,    pivots, growth, solve};
