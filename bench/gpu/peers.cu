/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's whole solves, and the highest rates of the device; see
   gpu/peers.h. The factorization alone is in gpu/factor.cu. */
#include "bench/gpu/peers.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>

/* ---- errors ---- */

bool Calls::ok(cudaError_t st, const char *what) {
  if (st != cudaSuccess) {
    why = std::string(what) + ": " + cudaGetErrorString(st);
    cudaGetLastError(); /* so that the next call does not report it again */
  }
  return st == cudaSuccess;
}

bool Calls::ok(cublasStatus_t st, const char *what) {
  if (st != CUBLAS_STATUS_SUCCESS)
    why = std::string(what) + ": " + cublasGetStatusString(st);
  return st == CUBLAS_STATUS_SUCCESS;
}

bool Calls::ok(cusolverStatus_t st, const char *what) {
  if (st != CUSOLVER_STATUS_SUCCESS)
    why = std::string(what) + ": cuSOLVER status " + std::to_string(st);
  return st == CUSOLVER_STATUS_SUCCESS;
}

/* ---- the device ---- */

namespace {

/* Returns "13.0" for 13000. */
std::string cuda_version(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

} // namespace

std::string device_find(Device *device) {
  Calls c;
  int count = 0;
  int driver = 0;
  int runtime = 0;
  int solver = 0;
  int khz = 0;
  cublasHandle_t blas = nullptr;
  cudaDeviceProp properties;
  if (!c.ok(cudaGetDeviceCount(&count), "cudaGetDeviceCount"))
    return c.why;
  if (count < 1)
    return "there is no device";
  int blas_version = 0;
  if (c.ok(cudaSetDevice(0), "cudaSetDevice") &&
      c.ok(cudaGetDeviceProperties(&properties, 0), "device properties") &&
      c.ok(cudaDriverGetVersion(&driver), "driver version") &&
      c.ok(cudaRuntimeGetVersion(&runtime), "runtime version") &&
      c.ok(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0), "clock") &&
      c.ok(cusolverGetVersion(&solver), "cuSOLVER version") &&
      c.ok(cublasCreate(&blas), "cublasCreate")) {
    c.ok(cublasGetVersion(blas, &blas_version), "cuBLAS version");
    cublasDestroy(blas);
  }
  if (!c.why.empty())
    return c.why;
  device->name = properties.name;
  device->sms = properties.multiProcessorCount;
  device->memory_gib = static_cast<double>(properties.totalGlobalMem) * 0x1p-30;
  device->clock_mhz = 1e-3 * khz;
  device->driver = cuda_version(driver);
  device->runtime = cuda_version(runtime);
  device->cublas = std::to_string(blas_version);
  device->cusolver = std::to_string(solver);
  device->nvcc = std::to_string(__CUDACC_VER_MAJOR__) + "." +
                 std::to_string(__CUDACC_VER_MINOR__) + "." +
                 std::to_string(__CUDACC_VER_BUILD__);
  return "";
}

double *pinned_allocate(int64_t doubles, std::string *why) {
  Calls c;
  void *memory = nullptr;
  size_t bytes = static_cast<size_t>(doubles) * sizeof(double);
  if (!c.ok(cudaMallocHost(&memory, bytes), "cudaMallocHost"))
    *why = c.why;
  return static_cast<double *>(memory);
}

void pinned_free(double *memory) {
  if (memory != nullptr)
    cudaFreeHost(memory);
}

/* ---- the highest rates ---- */

namespace {

__device__ uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Fills d with numbers in [-0.5, 0.5), or with normal ones by Box & Muller's
   method. */
template <class T>
__global__ void fill(T *d, int64_t count, bool normal, uint64_t seed) {
  int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += step) {
    uint64_t at = mix(seed) + 2 * static_cast<uint64_t>(i);
    uint64_t bits = mix(at * 0x9e3779b97f4a7c15u);
    double value = static_cast<double>(bits >> 11) * 0x1p-53;
    if (normal) {
      uint64_t more = mix((at + 1) * 0x9e3779b97f4a7c15u);
      double angle = static_cast<double>(more >> 11) * 0x1p-52;
      value = sqrt(-2.0 * log(1.0 - value)) * cospi(angle);
    } else {
      value -= 0.5;
    }
    d[i] = static_cast<T>(value);
  }
}

/* Times work(), which enqueues on stream, by events: the median of 5 times,
   after one that is not counted. */
template <class F>
bool time_5(Calls *c, cudaStream_t stream, F work, double *ms) {
  cudaEvent_t before = nullptr;
  cudaEvent_t after = nullptr;
  float times[6] = {};
  bool fine = c->ok(cudaEventCreate(&before), "event") &&
              c->ok(cudaEventCreate(&after), "event");
  for (int k = 0; k < 6 && fine; k++)
    fine = c->ok(cudaEventRecord(before, stream), "event") && work() &&
           c->ok(cudaEventRecord(after, stream), "event") &&
           c->ok(cudaEventSynchronize(after), "waiting") &&
           c->ok(cudaEventElapsedTime(&times[k], before, after), "event");
  std::sort(times + 1, times + 6);
  *ms = static_cast<double>(times[3]);
  if (before != nullptr)
    cudaEventDestroy(before);
  if (after != nullptr)
    cudaEventDestroy(after);
  return fine;
}

} // namespace

std::string device_fill(float *d, int64_t count, bool normal, uint64_t seed) {
  Calls c;
  fill<<<4096, 256>>>(d, count, normal, seed);
  c.ok(cudaGetLastError(), "filling") &&
      c.ok(cudaDeviceSynchronize(), "filling");
  return c.why;
}

std::string pinned_bandwidth(double *bytes_s) {
  const size_t bytes = size_t{1} << 30;
  Calls c;
  void *host = nullptr;
  void *device = nullptr;
  cudaStream_t stream = nullptr;
  double ms = 0.0;
  if (c.ok(cudaMallocHost(&host, bytes), "cudaMallocHost") &&
      c.ok(cudaMalloc(&device, bytes), "cudaMalloc") &&
      c.ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
           "stream")) {
    memset(host, 1, bytes);
    auto copy = [&] {
      return c.ok(
          cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
          "copy");
    };
    if (time_5(&c, stream, copy, &ms))
      *bytes_s = static_cast<double>(bytes) / (1e-3 * ms);
  }
  if (stream != nullptr)
    cudaStreamDestroy(stream);
  cudaFree(device);
  cudaFreeHost(host);
  return c.why;
}

std::string gemm_rate(double *flops_s) {
  enum { M = 8192, K = 1536, TIMES = 8 };
  Calls c;
  __half *d_a = nullptr;
  __half *d_b = nullptr;
  float *d_c = nullptr;
  cublasHandle_t blas = nullptr;
  cudaStream_t stream = nullptr;
  float minus = -1.0f;
  float one = 1.0f;
  double ms = 0.0;
  int64_t thin = static_cast<int64_t>(M) * K;
  int64_t square = static_cast<int64_t>(M) * M;
  auto products = [&] {
    for (int k = 0; k < TIMES; k++)
      if (!c.ok(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, M, M, K, &minus,
                             d_a, CUDA_R_16F, M, d_b, CUDA_R_16F, K, &one, d_c,
                             CUDA_R_32F, M, CUBLAS_COMPUTE_32F,
                             CUBLAS_GEMM_DEFAULT),
                "cublasGemmEx"))
        return false;
    return true;
  };
  if (c.ok(cudaMalloc(&d_a, static_cast<size_t>(thin) * 2), "cudaMalloc") &&
      c.ok(cudaMalloc(&d_b, static_cast<size_t>(thin) * 2), "cudaMalloc") &&
      c.ok(cudaMalloc(&d_c, static_cast<size_t>(square) * 4), "cudaMalloc") &&
      c.ok(cudaStreamCreate(&stream), "stream") &&
      c.ok(cublasCreate(&blas), "cublasCreate") &&
      c.ok(cublasSetStream(blas, stream), "cublasSetStream")) {
    fill<<<1024, 256, 0, stream>>>(d_a, thin, false, 1);
    fill<<<1024, 256, 0, stream>>>(d_b, thin, false, 2);
    fill<<<1024, 256, 0, stream>>>(d_c, square, false, 3);
    if (c.ok(cudaGetLastError(), "filling") &&
        time_5(&c, stream, products, &ms))
      *flops_s = 2.0 * static_cast<double>(square) * K * TIMES / (1e-3 * ms);
  }
  if (blas != nullptr)
    cublasDestroy(blas);
  if (stream != nullptr)
    cudaStreamDestroy(stream);
  cudaFree(d_a);
  cudaFree(d_b);
  cudaFree(d_c);
  return c.why;
}

/* ---- whole solves ---- */

const char *const peer_names[PEERS] = {
    "copy + getrf FP64 + getrs", "copy + IRS R_32F", "copy + IRS R_TF32",
    "copy + IRS R_16F", "copy + potrf FP64 + potrs"};
const char *const complex_peer_names[PEERS] = {
    "copy + getrf C64F + getrs", "copy + IRS C_32F", "copy + IRS C_TF32",
    "copy + IRS C_16F", "copy + potrf C64F + potrs"};

namespace {

/* Each table has a row for real numbers and one for complex ones. */
const cusolverPrecType_t highest[2] = {CUSOLVER_R_64F, CUSOLVER_C_64F};
const cusolverPrecType_t lowest[2][PEERS] = {
    {CUSOLVER_R_64F, CUSOLVER_R_32F, CUSOLVER_R_TF32, CUSOLVER_R_16F,
     CUSOLVER_R_64F},
    {CUSOLVER_C_64F, CUSOLVER_C_32F, CUSOLVER_C_TF32, CUSOLVER_C_16F,
     CUSOLVER_C_64F}};

const int iteration_limit = 100;

} // namespace

/* Returns the bytes of a peer's workspace on the device, and sets h_bytes_. */
size_t Peers::query(Peer peer, Calls *c) {
  size_t bytes = 0;
  size_t *host = &h_bytes_[peer];
  cusolverDnIRSParams_t *irs = &irs_[peer];
  if (peer == PEER_LU)
    c->ok(cusolverDnXgetrf_bufferSize(handle_, params_, n_, n_, type(), d_a_,
                                      n_, type(), &bytes, host),
          "getrf's workspace");
  else if (peer == PEER_CHOLESKY)
    c->ok(cusolverDnXpotrf_bufferSize(handle_, params_, CUBLAS_FILL_MODE_LOWER,
                                      n_, type(), d_a_, n_, type(), &bytes,
                                      host),
          "potrf's workspace");
  else
    c->ok(cusolverDnIRSParamsCreate(irs), "IRSParamsCreate") &&
        c->ok(cusolverDnIRSParamsSetSolverPrecisions(*irs, highest[parts_ - 1],
                                                     lowest[parts_ - 1][peer]),
              "IRSParamsSetSolverPrecisions") &&
        c->ok(cusolverDnIRSParamsSetRefinementSolver(*irs,
                                                     CUSOLVER_IRS_REFINE_GMRES),
              "IRSParamsSetRefinementSolver") &&
        c->ok(cusolverDnIRSParamsSetMaxIters(*irs, iteration_limit),
              "IRSParamsSetMaxIters") &&
        c->ok(cusolverDnIRSParamsEnableFallback(*irs),
              "IRSParamsEnableFallback") &&
        c->ok(cusolverDnIRSXgesv_bufferSize(handle_, *irs, static_cast<int>(n_),
                                            1, &bytes),
              "IRSXgesv's workspace");
  return bytes;
}

/* Allocates one workspace for all peers; if there is not so much memory, for
   those that need less. */
std::string Peers::reserve() {
  for (;;) {
    int largest = -1;
    for (int p = 0; p < PEERS; p++)
      if (why_not_[p].empty() &&
          (largest < 0 || d_bytes_[p] > d_bytes_[largest]))
        largest = p;
    if (largest < 0)
      return "";
    Calls c;
    if (c.ok(cudaMalloc(&d_work_, std::max<size_t>(d_bytes_[largest], 1)),
             "cudaMalloc of the workspace"))
      return "";
    why_not_[largest] = c.why;
  }
}

std::string Peers::open(int64_t n, const bool *use, int parts) {
  close();
  n_ = n;
  parts_ = parts;
  Calls c;
  const size_t order = static_cast<size_t>(n);
  if (!(c.ok(cudaMalloc(&d_a_, vector() * order), "cudaMalloc of A") &&
        c.ok(cudaMalloc(&d_b_, vector()), "cudaMalloc") &&
        c.ok(cudaMalloc(&d_x_, vector()), "cudaMalloc") &&
        c.ok(cudaMalloc(&d_pivots_, order * sizeof(int64_t)), "cudaMalloc") &&
        c.ok(cudaMalloc(&d_info_, 2 * sizeof(int)), "cudaMalloc") &&
        c.ok(cusolverDnCreate(&handle_), "cusolverDnCreate") &&
        c.ok(cusolverDnCreateParams(&params_), "cusolverDnCreateParams") &&
        c.ok(cusolverDnIRSInfosCreate(&infos_), "IRSInfosCreate")))
    return c.why;
  size_t host = 0;
  for (int p = 0; p < PEERS; p++) {
    Calls mine;
    d_bytes_[p] = h_bytes_[p] = 0;
    if (use[p])
      d_bytes_[p] = query(static_cast<Peer>(p), &mine);
    why_not_[p] = use[p] ? mine.why : "not asked for";
    host = std::max(host, h_bytes_[p]);
  }
  h_work_.resize(host + 8);
  return reserve();
}

void Peers::close() {
  for (cusolverDnIRSParams_t &irs : irs_) {
    if (irs != nullptr)
      cusolverDnIRSParamsDestroy(irs);
    irs = nullptr;
  }
  if (infos_ != nullptr)
    cusolverDnIRSInfosDestroy(infos_);
  if (params_ != nullptr)
    cusolverDnDestroyParams(params_);
  if (handle_ != nullptr)
    cusolverDnDestroy(handle_);
  cudaFree(d_a_);
  cudaFree(d_b_);
  cudaFree(d_x_);
  cudaFree(d_pivots_);
  cudaFree(d_info_);
  cudaFree(d_work_);
  infos_ = nullptr;
  params_ = nullptr;
  handle_ = nullptr;
  d_a_ = d_b_ = d_x_ = nullptr;
  d_pivots_ = nullptr;
  d_info_ = nullptr;
  d_work_ = nullptr;
}

/* Leaves x in d_b_, or in d_x_ for IRS. */
bool Peers::run(Peer peer, Calls *c) {
  void *h_work = h_work_.data();
  int n = static_cast<int>(n_);
  switch (peer) {
  case PEER_LU:
    return c->ok(cusolverDnXgetrf(handle_, params_, n_, n_, type(), d_a_, n_,
                                  d_pivots_, type(), d_work_, d_bytes_[peer],
                                  h_work, h_bytes_[peer], d_info_),
                 "Xgetrf") &&
           c->ok(cusolverDnXgetrs(handle_, params_, CUBLAS_OP_N, n_, 1, type(),
                                  d_a_, n_, d_pivots_, type(), d_b_, n_,
                                  d_info_ + 1),
                 "Xgetrs");
  case PEER_CHOLESKY:
    return c->ok(cusolverDnXpotrf(handle_, params_, CUBLAS_FILL_MODE_LOWER, n_,
                                  type(), d_a_, n_, type(), d_work_,
                                  d_bytes_[peer], h_work, h_bytes_[peer],
                                  d_info_),
                 "Xpotrf") &&
           c->ok(cusolverDnXpotrs(handle_, params_, CUBLAS_FILL_MODE_LOWER, n_,
                                  1, type(), d_a_, n_, type(), d_b_, n_,
                                  d_info_ + 1),
                 "Xpotrs");
  default:
    return c->ok(cusolverDnIRSXgesv(handle_, irs_[peer], infos_, n, 1, d_a_, n,
                                    d_b_, n, d_x_, n, d_work_, d_bytes_[peer],
                                    &irs_iterations_, d_info_),
                 "IRSXgesv");
  }
}

std::string Peers::solve(Peer peer, const double *a, const double *b,
                         double *x) {
  if (!why_not_[peer].empty())
    return why_not_[peer];
  Calls c;
  c.ok(cudaMemcpy(d_a_, a, vector() * static_cast<size_t>(n_),
                  cudaMemcpyHostToDevice),
       "copy of A") &&
      c.ok(cudaMemcpy(d_b_, b, vector(), cudaMemcpyHostToDevice),
           "copy of b") &&
      run(peer, &c) &&
      c.ok(cudaMemcpy(x, solution(peer), vector(), cudaMemcpyDeviceToHost),
           "copy of x");
  return c.why;
}

std::string Peers::bring(const double *d_a, const double *d_b) {
  Calls c;
  c.ok(cudaMemcpy(d_a_, d_a, vector() * static_cast<size_t>(n_),
                  cudaMemcpyDeviceToDevice),
       "copy of A") &&
      c.ok(cudaMemcpy(d_b_, d_b, vector(), cudaMemcpyDeviceToDevice),
           "copy of b") &&
      c.ok(cudaDeviceSynchronize(), "copies");
  return c.why;
}

std::string Peers::solve_there(Peer peer) {
  Calls c;
  if (!why_not_[peer].empty())
    return why_not_[peer];
  if (run(peer, &c))
    c.ok(cudaDeviceSynchronize(), "the solver");
  return c.why;
}

std::string Peers::verify(Peer peer, std::string *note) {
  Calls c;
  int info[2] = {};
  bool irs = irs_[peer] != nullptr; /* IRS writes the first info only */
  if (c.ok(cudaMemcpy(info, d_info_, irs ? sizeof(int) : sizeof info,
                      cudaMemcpyDeviceToHost),
           "copy of info") &&
      (info[0] != 0 || info[1] != 0))
    c.why = "info " + std::to_string(info[0]) + " of the factorization, " +
            std::to_string(info[1]) + " of the solve";
  if (irs)
    *note = std::to_string(irs_iterations_) + " iterations" +
            (irs_iterations_ < 0 ? " (fell back to FP64)" : "");
  return c.why;
}
