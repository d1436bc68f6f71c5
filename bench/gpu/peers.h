/* SPDX-License-Identifier: BSD-3-Clause */
/* Device side of bench_gpu: the vendor's solvers, ceilings, and the residual
   of single-precision factors. Errors are text: empty, or what failed. */
#ifndef HONE_BENCH_GPU_PEERS_H
#define HONE_BENCH_GPU_PEERS_H

#include "bench/gpu/factor.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <cstdint>
#include <string>
#include <vector>

/* The first call that failed. Chained: c.ok(f(), "f") && c.ok(g(), "g"). */
struct Calls {
  std::string why;
  bool ok(cudaError_t st, const char *what);
  bool ok(cublasStatus_t st, const char *what);
  bool ok(cusolverStatus_t st, const char *what);
};

struct Device {
  std::string name, driver, runtime, cublas, cusolver, nvcc;
  int sms = 0;
  double clock_mhz = 0.0; /* highest, of the multiprocessors */
  double memory_gib = 0.0;
};
std::string device_find(Device *device); /* not empty: no usable GPU */

/* Page-locked memory, NULL when there is none. */
double *pinned_allocate(int64_t doubles, std::string *why);
void pinned_free(double *memory);

/* Ceilings, median of 5: bytes a second of 1 GiB from pinned memory; operations
   a second of C -= A B, FP16 in, FP32 out, m = n = 8192, k = 1536. */
std::string pinned_bandwidth(double *bytes_s);
std::string gemm_rate(double *flops_s);

/* d[i], i < count: uniform in [-0.5, 0.5) or normal, a function of seed and
   i. */
std::string device_fill(float *d, int64_t count, bool normal, uint64_t seed);

enum Peer {
  PEER_LU,       /* Xgetrf FP64 + Xgetrs */
  PEER_IRS_32F,  /* IRSXgesv, main precision FP64, this lowest one, GMRES */
  PEER_IRS_TF32, /* refinement, fallback on, at most 100 iterations */
  PEER_IRS_16F,
  PEER_CHOLESKY, /* Xpotrf FP64 + Xpotrs, lower */
  PEERS
};
extern const char *const peer_names[PEERS];

/* Handles, device memory for order n and one workspace large enough for each
   of the peers in use: made by open, outside the clock. */
class Peers {
public:
  ~Peers() { close(); }
  /* use[p]: peer p is wanted. What is missing for one is told by its solve. */
  std::string open(int64_t n, const bool *use);
  void close();
  /* Host to host, A x = b: cudaMemcpy of A and b, the solver, cudaMemcpy of
     x, which waits. a: n x n [host, pageable or pinned]. */
  std::string solve(Peer peer, const double *a, const double *b, double *x);
  /* Outside the clock: what the last solve left in its info. */
  std::string verify(Peer peer, std::string *note);

private:
  size_t query(Peer peer, Calls *c);
  std::string reserve();
  bool run(Peer peer, Calls *c);

  int64_t n_ = 0;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  cusolverDnIRSParams_t irs_[PEERS] = {};
  cusolverDnIRSInfos_t infos_ = nullptr;
  int irs_iterations_ = 0;
  double *d_a_ = nullptr, *d_b_ = nullptr, *d_x_ = nullptr;
  int64_t *d_pivots_ = nullptr;
  int *d_info_ = nullptr; /* of the factorization and of the solve */
  void *d_work_ = nullptr;
  size_t d_bytes_[PEERS] = {}, h_bytes_[PEERS] = {};
  std::vector<char> h_work_;
  std::string why_not_[PEERS];
};

/* Xgetrf FP32 with partial pivoting, A already on the device. */
class SingleLu {
public:
  ~SingleLu() { close(); }
  std::string open(int64_t n, bool normal, uint64_t seed); /* makes A */
  void close();
  const float *matrix() const { return d_a_; }
  /* From a fresh copy of A, made outside the clock; by events. */
  std::string run(double *ms);
  std::string residual(double *relative); /* of the last run's factors */

private:
  int64_t n_ = 0;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t before_ = nullptr, after_ = nullptr;
  float *d_a_ = nullptr, *d_lu_ = nullptr;
  int64_t *d_pivots_ = nullptr;
  int *d_perm_ = nullptr, *d_info_ = nullptr;
  void *d_work_ = nullptr;
  size_t d_bytes_ = 0, h_bytes_ = 0;
  std::vector<char> h_work_;
};

#endif
