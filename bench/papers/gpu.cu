/* SPDX-License-Identifier: BSD-3-Clause */
/* The block operations of papers/blocked.h by cuBLAS in FP32, without TF32, on
   one stream; and the description of the device. papers/vendor.cu has the
   solves by cuSOLVER. */
#include "bench/gpu/peers.h"
#include "bench/papers/gpu.h"

#include <algorithm>
#include <cmath>

std::string gpu_open(std::vector<std::pair<std::string, std::string>> *facts) {
  Device device;
  const std::string why = device_find(&device);
  if (why.empty())
    *facts = {{"device", device.name},
              {"device_memory", std::to_string(device.memory_gib) + " GiB"},
              {"multiprocessors", std::to_string(device.sms)},
              {"sm_clock_highest", std::to_string(device.clock_mhz) + " MHz"},
              {"driver", "CUDA " + device.driver},
              {"cuda_runtime", device.runtime},
              {"cublas", device.cublas},
              {"cusolver", device.cusolver},
              {"nvcc", device.nvcc}};
  return why;
}

namespace {

/* Writes ones to the diagonal from row 'from' on. */
__global__ void put_ones(float *a, int64_t n, int64_t from) {
  const int64_t i =
      from + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    a[i + i * n] = 1.0f;
}

const float minus_one = -1.0f, plus_one = 1.0f;

class Gpu : public Place {
public:
  ~Gpu() override {
    if (params_ != nullptr)
      cusolverDnDestroyParams(params_);
    if (solver_ != nullptr)
      cusolverDnDestroy(solver_);
    if (blas_ != nullptr)
      cublasDestroy(blas_);
    if (stream_ != nullptr)
      cudaStreamDestroy(stream_);
    release();
    cudaFree(d_info_);
  }
  std::string open() {
    Calls c;
    c.ok(cudaStreamCreate(&stream_), "stream") &&
        c.ok(cublasCreate(&blas_), "cublasCreate") &&
        c.ok(cublasSetStream(blas_, stream_), "cublasSetStream") &&
        c.ok(cudaMalloc(&d_info_, sizeof(int)), "cudaMalloc");
    return c.why;
  }
  const char *name() const override { return "GPU"; }

  bool load(int64_t order, const float *a, int64_t padded) override {
    const size_t side = static_cast<size_t>(padded) * sizeof(float);
    const size_t given = static_cast<size_t>(order) * sizeof(float);
    why.clear();
    if (padded != n || d_kept_ == nullptr) {
      release();
      n = padded;
      if (!(fine(cudaMalloc(&d_a_, bytes()), "cudaMalloc") &&
            fine(cudaMalloc(&d_kept_, bytes()), "cudaMalloc")))
        return false;
    }
    if (order < n &&
        !fine(cudaMemsetAsync(d_kept_, 0, bytes(), stream_), "clearing"))
      return false;
    if (order < n)
      put_ones<<<static_cast<unsigned>((n - order + 255) / 256), 256, 0,
                 stream_>>>(d_kept_, n, order);
    return fine(cudaGetLastError(), "padding") &&
           fine(cudaMemcpy2DAsync(d_kept_, side, a, given, given,
                                  static_cast<size_t>(order),
                                  cudaMemcpyHostToDevice, stream_),
                "copy of A") &&
           restore();
  }
  bool restore() override {
    why.clear();
    return fine(cudaMemcpyAsync(d_a_, d_kept_, bytes(),
                                cudaMemcpyDeviceToDevice, stream_),
                "copy of A") &&
           wait();
  }
  bool wait() override { return fine(cudaStreamSynchronize(stream_), "wait"); }
  bool fetch(Part p, float *to) override {
    return copy(to, p.m, at(p.i, p.j), n, p, cudaMemcpyDeviceToHost);
  }
  bool bring(Part p, const float *from) override {
    return copy(at(p.i, p.j), n, from, p.m, p, cudaMemcpyHostToDevice);
  }
  bool divide_right(Part t, Part b) override {
    return fine(cublasStrsm(blas_, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER,
                            CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, size(b.m),
                            size(b.n), &plus_one, at(t.i, t.j), size(n),
                            at(b.i, b.j), size(n)),
                "TRSM");
  }
  bool divide_left(Part t, Part b) override {
    return fine(cublasStrsm(blas_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                            CUBLAS_OP_N, CUBLAS_DIAG_UNIT, size(b.m), size(b.n),
                            &plus_one, at(t.i, t.j), size(n), at(b.i, b.j),
                            size(n)),
                "TRSM");
  }
  bool square(Part c, Part a) override {
    return fine(cublasSsyrk(blas_, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                            size(c.m), size(a.n), &minus_one, at(a.i, a.j),
                            size(n), &plus_one, at(c.i, c.j), size(n)),
                "SYRK");
  }
  bool multiply(Part c, Part a, Part b, bool transposed) override {
    return fine(cublasSgemm(blas_, CUBLAS_OP_N,
                            transposed ? CUBLAS_OP_T : CUBLAS_OP_N, size(c.m),
                            size(c.n), size(a.n), &minus_one, at(a.i, a.j),
                            size(n), at(b.i, b.j), size(n), &plus_one,
                            at(c.i, c.j), size(n)),
                "GEMM");
  }
  /* Igual exchanges each row by one SSWAP, too. */
  bool exchange(int64_t k, int64_t b, int64_t c0, int64_t c1) override {
    bool going = true;
    for (int64_t i = k; i < k + b && going; i++) {
      const int64_t other = pivots[static_cast<size_t>(i)] - 1;
      if (other != i)
        going = fine(cublasSswap(blas_, size(c1 - c0), at(i, c0), size(n),
                                 at(other, c0), size(n)),
                     "SWAP");
    }
    return going;
  }
  bool scalar(Part block) override;
  bool vendor(bool cholesky) override;
  std::string hone(bool cholesky, int64_t block, double *ms,
                   double *error) override;

private:
  static int size(int64_t v) { return static_cast<int>(v); }
  size_t bytes() const { return static_cast<size_t>(n * n) * sizeof(float); }
  float *at(int64_t i, int64_t j) { return d_a_ + i + j * n; }
  template <class S> bool fine(S status, const char *what) {
    Calls c;
    if (c.ok(status, what))
      return true;
    why = c.why;
    return false;
  }
  /* Copies the part p and waits. */
  bool copy(float *to, int64_t ldto, const float *from, int64_t ldfrom, Part p,
            cudaMemcpyKind kind) {
    const size_t one = sizeof(float);
    return fine(cudaMemcpy2DAsync(to, static_cast<size_t>(ldto) * one, from,
                                  static_cast<size_t>(ldfrom) * one,
                                  static_cast<size_t>(p.m) * one,
                                  static_cast<size_t>(p.n), kind, stream_),
                "copy of a block") &&
           wait();
  }
  void release() {
    cudaFree(d_a_);
    cudaFree(d_kept_);
    cudaFree(d_work_);
    cudaFree(d_pivots_);
    d_a_ = d_kept_ = nullptr;
    d_work_ = nullptr;
    d_pivots_ = nullptr;
  }
  bool prepare_vendor(bool cholesky);

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  cusolverDnHandle_t solver_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  float *d_a_ = nullptr;    /* n x n, is factored */
  float *d_kept_ = nullptr; /* n x n, as loaded */
  int *d_info_ = nullptr;
  int64_t *d_pivots_ = nullptr;
  void *d_work_ = nullptr;
  size_t d_bytes_ = 0, h_bytes_ = 0;
  bool prepared_for_cholesky_ = false;
  std::vector<char> h_work_;
};

/* Factors column by column, left-looking: a GEMV updates the column, the CPU
   takes the root of its pivot, as in Igual's work, and a SCAL divides. */
bool Gpu::scalar(Part p) {
  for (int64_t j = 0; j < p.n; j++) {
    const int rows = size(p.m - j), before = size(j);
    float *column = at(p.i + j, p.j + j), pivot = 0.0f;
    if (j > 0 && !fine(cublasSgemv(blas_, CUBLAS_OP_N, rows, before, &minus_one,
                                   at(p.i + j, p.j), size(n), at(p.i + j, p.j),
                                   size(n), &plus_one, column, 1),
                       "GEMV"))
      return false;
    if (!copy(&pivot, 1, column, n, {0, 1, 0, 1}, cudaMemcpyDeviceToHost))
      return false;
    if (!(pivot > 0.0f)) {
      why = "not positive definite, column " + std::to_string(p.j + j);
      return false;
    }
    const float by = 1.0f / std::sqrt(pivot);
    if (!fine(cublasSscal(blas_, rows, &by, column, 1), "SCAL"))
      return false;
  }
  return true;
}

bool Gpu::prepare_vendor(bool cholesky) {
  if (solver_ == nullptr &&
      !(fine(cusolverDnCreate(&solver_), "cusolverDnCreate") &&
        fine(cusolverDnSetStream(solver_, stream_), "cusolverDnSetStream") &&
        fine(cusolverDnCreateParams(&params_), "cusolverDnCreateParams")))
    return false;
  if (d_work_ != nullptr && prepared_for_cholesky_ == cholesky)
    return true;
  cudaFree(d_work_);
  cudaFree(d_pivots_);
  d_work_ = nullptr;
  d_pivots_ = nullptr;
  const bool known =
      cholesky
          ? fine(cusolverDnXpotrf_bufferSize(
                     solver_, params_, CUBLAS_FILL_MODE_LOWER, n, CUDA_R_32F,
                     d_a_, n, CUDA_R_32F, &d_bytes_, &h_bytes_),
                 "potrf's workspace")
          : fine(cusolverDnXgetrf_bufferSize(solver_, params_, n, n, CUDA_R_32F,
                                             d_a_, n, CUDA_R_32F, &d_bytes_,
                                             &h_bytes_),
                 "getrf's workspace");
  h_work_.resize(h_bytes_ + 8);
  prepared_for_cholesky_ = cholesky;
  return known &&
         fine(cudaMalloc(&d_pivots_, static_cast<size_t>(n) * sizeof(int64_t)),
              "cudaMalloc") &&
         fine(cudaMalloc(&d_work_, std::max<size_t>(d_bytes_, 1)),
              "cudaMalloc of the workspace");
}

bool Gpu::vendor(bool cholesky) {
  int info = 0;
  if (!prepare_vendor(cholesky))
    return false;
  const bool done =
      cholesky
          ? fine(cusolverDnXpotrf(solver_, params_, CUBLAS_FILL_MODE_LOWER, n,
                                  CUDA_R_32F, d_a_, n, CUDA_R_32F, d_work_,
                                  d_bytes_, h_work_.data(), h_bytes_, d_info_),
                 "Xpotrf FP32")
          : fine(cusolverDnXgetrf(solver_, params_, n, n, CUDA_R_32F, d_a_, n,
                                  d_pivots_, CUDA_R_32F, d_work_, d_bytes_,
                                  h_work_.data(), h_bytes_, d_info_),
                 "Xgetrf FP32");
  if (!(done && fine(cudaMemcpyAsync(&info, d_info_, sizeof info,
                                     cudaMemcpyDeviceToHost, stream_),
                     "copy of info")))
    return false;
  std::vector<int64_t> rows(static_cast<size_t>(n));
  if (!cholesky && !fine(cudaMemcpyAsync(rows.data(), d_pivots_,
                                         rows.size() * sizeof(int64_t),
                                         cudaMemcpyDeviceToHost, stream_),
                         "copy of the pivots"))
    return false;
  if (!wait())
    return false;
  pivots.resize(rows.size());
  std::transform(rows.begin(), rows.end(), pivots.begin(),
                 [](int64_t row) { return static_cast<int>(row); });
  if (info != 0)
    why = "info " + std::to_string(info);
  return info == 0;
}

std::string Gpu::hone(bool cholesky, int64_t block, double *ms, double *error) {
  char text[200] = "";
  const hone_bench_form form = {0, cholesky, block, 0, 0, 0, 0, 0};
  const int st = hone_bench_form_factor(&form, n, d_kept_, n, 1, ms, error,
                                        text, sizeof text);
  return st == 0 ? "" : text;
}

} // namespace

std::unique_ptr<Place> gpu_place(std::string *why) {
  auto place = std::make_unique<Gpu>();
  *why = place->open();
  if (!why->empty())
    return nullptr;
  return place;
}
