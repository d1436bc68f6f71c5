/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's getrf from host memory to host memory, and the solves of
   gpu/peers.h for bench_papers. */
#include "bench/gpu/peers.h"
#include "bench/harness/systems.h"
#include "bench/papers/gpu.h"

#include <algorithm>

namespace {

/* An n x n matrix on the device, which the destructor frees. */
template <class T> struct Square {
  T *d = nullptr;
  size_t bytes;
  explicit Square(int64_t n) : bytes(static_cast<size_t>(n * n) * sizeof(T)) {}
  ~Square() { cudaFree(d); }
  bool allocate(Calls *c) {
    return c->ok(cudaMalloc(&d, bytes), "cudaMalloc of A");
  }
  bool upload(Calls *c, const T *a) {
    return c->ok(cudaMemcpy(d, a, bytes, cudaMemcpyHostToDevice), "copy of A");
  }
  bool download(Calls *c, T *z) {
    return c->ok(cudaMemcpy(z, d, bytes, cudaMemcpyDeviceToHost), "copy of LU");
  }
};

/* ---- getrf ---- */

template <class T>
std::string getrf_run(int64_t n, const T *a, T *lu, int64_t *pivots,
                      double *ms) {
  const cudaDataType type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
  Calls c;
  Square<T> there(n);
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
  int64_t *d_pivots = nullptr;
  int *d_info = nullptr, info = 0;
  void *d_work = nullptr;
  size_t d_bytes = 0, h_bytes = 0;
  const size_t rows = static_cast<size_t>(n) * sizeof(int64_t);
  bool fine =
      there.allocate(&c) &&
      c.ok(cusolverDnCreate(&handle), "cusolverDnCreate") &&
      c.ok(cusolverDnCreateParams(&params), "cusolverDnCreateParams") &&
      c.ok(cudaMalloc(&d_info, sizeof info), "cudaMalloc") &&
      (pivots == nullptr || c.ok(cudaMalloc(&d_pivots, rows), "cudaMalloc")) &&
      c.ok(cusolverDnXgetrf_bufferSize(handle, params, n, n, type, there.d, n,
                                       type, &d_bytes, &h_bytes),
           "getrf's workspace") &&
      c.ok(cudaMalloc(&d_work, std::max<size_t>(d_bytes, 1)),
           "cudaMalloc of the workspace");
  std::vector<char> h_work(h_bytes + 8);
  const double start = now_s();
  fine = fine && there.upload(&c, a) &&
         c.ok(cusolverDnXgetrf(handle, params, n, n, type, there.d, n, d_pivots,
                               type, d_work, d_bytes, h_work.data(), h_bytes,
                               d_info),
              "Xgetrf") &&
         there.download(&c, lu);
  *ms = 1e3 * (now_s() - start);
  fine = fine &&
         c.ok(cudaMemcpy(&info, d_info, sizeof info, cudaMemcpyDeviceToHost),
              "copy of info") &&
         (pivots == nullptr ||
          c.ok(cudaMemcpy(pivots, d_pivots, rows, cudaMemcpyDeviceToHost),
               "copy of the pivots"));
  if (fine && info != 0)
    c.why = "info " + std::to_string(info);
  if (params != nullptr)
    cusolverDnDestroyParams(params);
  if (handle != nullptr)
    cusolverDnDestroy(handle);
  cudaFree(d_pivots);
  cudaFree(d_info);
  cudaFree(d_work);
  return c.why;
}

} // namespace

template <class T>
std::string gpu_getrf(int64_t n, const T *a, T *lu, int64_t *pivots,
                      double *ms) {
  return getrf_run(n, a, lu, pivots, ms);
}
template std::string gpu_getrf(int64_t, const float *, float *, int64_t *,
                               double *);
template std::string gpu_getrf(int64_t, const double *, double *, int64_t *,
                               double *);

/* ---- whole solves ---- */

namespace {

const Peer peer_of[VENDOR_SOLVES] = {PEER_LU, PEER_IRS_32F, PEER_CHOLESKY};

class Solves : public Vendor {
public:
  std::string open(int64_t n) {
    bool use[PEERS] = {};
    for (Peer peer : peer_of)
      use[peer] = true;
    return peers_.open(n, use);
  }
  std::string solve(VendorSolve which, const double *a, const double *b,
                    double *x) override {
    return peers_.solve(peer_of[which], a, b, x);
  }
  std::string verify(VendorSolve which, std::string *note) override {
    return peers_.verify(peer_of[which], note);
  }

private:
  Peers peers_;
};

} // namespace

std::unique_ptr<Vendor> vendor_open(int64_t n, std::string *why) {
  auto solves = std::make_unique<Solves>();
  *why = solves->open(n);
  if (!why->empty())
    return nullptr;
  return solves;
}
