/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_gpu does this on the device: it runs cuSOLVER's solvers and measures
   the highest rates of copies and products. Functions that return a text return
   what failed, or an empty one. */
#ifndef HONE_BENCH_GPU_PEERS_H
#define HONE_BENCH_GPU_PEERS_H

#include "bench/gpu/factor.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <cstdint>
#include <string>
#include <vector>

/* Keeps the text of a failed call. Calls are chained:
   c.ok(f(), "f") && c.ok(g(), "g"). */
struct Calls {
  std::string why;
  bool ok(cudaError_t st, const char *what);
  bool ok(cublasStatus_t st, const char *what);
  bool ok(cusolverStatus_t st, const char *what);
};

struct Device {
  std::string name, driver, runtime, cublas, cusolver, nvcc;
  int sms = 0;
  double clock_mhz = 0.0; /* highest clock of the multiprocessors */
  double memory_gib = 0.0;
};
/* Returns why no GPU can be used, or an empty text. */
std::string device_find(Device *device);

/* Allocates page-locked memory; NULL if there is none. */
double *pinned_allocate(int64_t doubles, std::string *why);
void pinned_free(double *memory);

/* Measure the highest rates, in medians of 5: the bytes per second of copying
   1 GiB from pinned memory, and the operations per second of C -= A B with A, B
   in FP16, C in FP32, m = n = 8192 and k = 1536. */
std::string pinned_bandwidth(double *bytes_s);
std::string gemm_rate(double *flops_s);

/* Fills d[i], i < count, with numbers uniform in [-0.5, 0.5) or normal, which
   are a hash of seed and i. */
std::string device_fill(float *d, int64_t count, bool normal, uint64_t seed);

enum Peer {
  PEER_LU, /* Xgetrf FP64 + Xgetrs */
  /* IRSXgesv in FP64 with this lowest precision, refined by GMRES, at most 100
     iterations, fallback enabled. */
  PEER_IRS_32F,
  PEER_IRS_TF32,
  PEER_IRS_16F,
  PEER_CHOLESKY, /* Xpotrf FP64 + Xpotrs, lower */
  PEERS
};
extern const char *const peer_names[PEERS];
/* Those of complex systems, in C_64F and lower precisions of complex numbers.
 */
extern const char *const complex_peer_names[PEERS];

/* The peers with their handles, device memory for order n, and one workspace
   large enough for each. open makes them, untimed. */
class Peers {
public:
  ~Peers() { close(); }
  /* use[p] tells whether peer p will be used. If one cannot be opened, its
     solve says why. Entries have so many parts: see Systems. */
  std::string open(int64_t n, const bool *use, int parts = 1);
  void close();
  /* Solves A x = b from host to host: cudaMemcpy of A and b, the solver, and
     cudaMemcpy of x, which waits. a: n x n [host, pageable or pinned]. */
  std::string solve(Peer peer, const double *a, const double *b, double *x);
  /* A system on the device is solved in three steps: copies A and b, which the
     solver overwrites, and waits; solves, and waits; where x is then. */
  std::string bring(const double *d_a, const double *d_b);
  std::string solve_there(Peer peer);
  const double *solution(Peer peer) const {
    return peer == PEER_LU || peer == PEER_CHOLESKY ? d_b_ : d_x_;
  }
  /* Reads the info of the last solve, untimed. */
  std::string verify(Peer peer, std::string *note);

private:
  size_t query(Peer peer, Calls *c);
  std::string reserve();
  bool run(Peer peer, Calls *c);

  int64_t n_ = 0;
  int parts_ = 1;
  cudaDataType type() const { return parts_ == 2 ? CUDA_C_64F : CUDA_R_64F; }
  size_t vector() const {
    return static_cast<size_t>(n_ * parts_) * sizeof(double);
  }
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

/* Xgetrf in FP32 with partial pivoting, of a matrix on the device, whose
   entries are floats or complex numbers of two. */
class SingleLu {
public:
  ~SingleLu() { close(); }
  /* Makes A. */
  std::string open(int64_t n, bool normal, uint64_t seed, int parts = 1);
  void close();
  const float *matrix() const { return d_a_; }
  /* Factors a fresh copy of A; events take the time of the factorization. */
  std::string run(double *ms);
  /* Computes the residual of the last factors. */
  std::string residual(double *relative);

private:
  int64_t n_ = 0;
  int parts_ = 1;
  cudaDataType type() const { return parts_ == 2 ? CUDA_C_32F : CUDA_R_32F; }
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
