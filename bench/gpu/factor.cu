/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the factorization alone, on the device: cuSOLVER's getrf in FP32,
   and the residual of single-precision factors. See gpu/factor.h and
   gpu/peers.h. */
#include "bench/gpu/peers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

/* ---- the residual ---- */

namespace {

/* The columns of a block; DGEMM reaches its full rate with this k. */
const int64_t residual_block = 1024;

enum Part { WHOLE, UNIT_LOWER, UPPER };

/* Numbers in single precision, and what is done with them in double. */
__device__ double wide_of(float v) { return static_cast<double>(v); }
__device__ double2 wide_of(float2 v) {
  return make_double2(static_cast<double>(v.x), static_cast<double>(v.y));
}
__device__ void set(double *v, double re) { *v = re; }
__device__ void set(double2 *v, double re) { *v = make_double2(re, 0.0); }

template <class T> struct in_double;
template <> struct in_double<float> { typedef double number; };
template <> struct in_double<float2> { typedef double2 number; };

cublasStatus_t norm_of(cublasHandle_t blas, int64_t count, const double *v,
                       double *norm) {
  return cublasDnrm2_64(blas, count, v, 1, norm);
}
cublasStatus_t norm_of(cublasHandle_t blas, int64_t count, const double2 *v,
                       double *norm) {
  return cublasDznrm2_64(blas, count, v, 1, norm);
}

/* C = C - op(A) B, without gaps between the columns of A and B; ld: of C. */
template <class T> struct Product {
  int64_t rows, columns, depth;
  const T *a, *b;
  T *c;
  int64_t ld;
  bool trans;
};
cublasStatus_t subtract(cublasHandle_t blas, const Product<double> &p) {
  const double minus = -1.0, one = 1.0;
  return cublasDgemm_64(blas, p.trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
                        p.rows, p.columns, p.depth, &minus, p.a,
                        p.trans ? p.depth : p.rows, p.b, p.depth, &one, p.c,
                        p.ld);
}
cublasStatus_t subtract(cublasHandle_t blas, const Product<double2> &p) {
  const double2 minus = {-1.0, 0.0}, one = {1.0, 0.0};
  return cublasZgemm_64(blas, p.trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
                        p.rows, p.columns, p.depth, &minus, p.a,
                        p.trans ? p.depth : p.rows, p.b, p.depth, &one, p.c,
                        p.ld);
}

/* out (rows x columns, ld rows, dp) = the given part of in (ld, sp). Row i of
   out is row from[i] of in, or row i if from is NULL. */
template <class T>
__global__ void widen(Part part, int64_t rows, int64_t columns, const T *in,
                      int64_t ld, const int *from,
                      typename in_double<T>::number *out) {
  int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t j = blockIdx.y; j < columns; j += gridDim.y)
    for (int64_t i =
             static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < rows; i += step) {
      int64_t row = from != nullptr ? from[i] : i;
      auto value = wide_of(in[row + j * ld]);
      if (part == UNIT_LOWER && i <= j)
        set(&value, i == j ? 1.0 : 0.0);
      if (part == UPPER && i > j)
        set(&value, 0.0);
      out[i + j * rows] = value;
    }
}

template <class T>
bool widen_into(Calls *c, typename in_double<T>::number *out, Part part,
                int64_t rows, int64_t columns, const T *in, int64_t ld,
                const int *from) {
  dim3 grid(static_cast<unsigned>(std::min<int64_t>((rows + 255) / 256, 64)),
            static_cast<unsigned>(std::min<int64_t>(columns, 1024)));
  widen<<<grid, 256>>>(part, rows, columns, in, ld, from, out);
  return c->ok(cudaGetLastError(), "widening to double");
}

template <class T> struct Residual {
  typedef typename in_double<T>::number number;
  Calls c;
  cublasHandle_t blas = nullptr;
  number *d_r = nullptr; /* n x w: P A - L U, w = min(n, residual_block) */
  number *d_l = nullptr; /* n x w: a block column of L */
  number *d_u = nullptr; /* w x w: a block of U */
  double sum_r = 0.0;    /* of the squares of P A - L U */
  double sum_a = 0.0;    /* of the squares of A */
};

template <class T>
bool add_squares(Residual<T> *s, int64_t count, double *sum) {
  double norm = 0.0;
  bool fine = s->c.ok(norm_of(s->blas, count, s->d_r, &norm), "norm");
  *sum += norm * norm;
  return fine;
}

/* The factors L \ U of P A, or the factor U of A = U^T U. */
template <class T> struct Factors {
  const T *d;
  int64_t ld;
  const int *d_perm; /* NULL for U^T U */
};

/* s->d_l = the block column of L that begins at (k, k); for U^T U, the block
   row of U that begins there. */
template <class T>
bool widen_left(Residual<T> *s, const Factors<T> &f, int64_t n, int64_t k,
                int64_t depth) {
  const T *corner = f.d + k + k * f.ld;
  return f.d_perm != nullptr ? widen_into(&s->c, s->d_l, UNIT_LOWER, n - k,
                                          depth, corner, f.ld, nullptr)
                             : widen_into(&s->c, s->d_l, UPPER, depth, n - k,
                                          corner, f.ld, nullptr);
}

/* R = P A(:, J) - sum over K <= J of L(:, K) U(K, J); J begins at column j. */
template <class T>
bool one_block(Residual<T> *s, int64_t n, int64_t j, const T *d_a,
               const Factors<T> &f) {
  const T *d_lu = f.d;
  const int64_t ld = f.ld;
  const bool lu = f.d_perm != nullptr;
  int64_t w = std::min(residual_block, n - j);
  if (!widen_into(&s->c, s->d_r, WHOLE, n, w, d_a + j * ld, ld, f.d_perm) ||
      !add_squares(s, n * w, &s->sum_a))
    return false;
  for (int64_t k = 0; k <= j; k += residual_block) {
    int64_t depth = std::min(residual_block, n - k);
    int64_t rows = n - k; /* L is zero above row k */
    if (!(widen_left(s, f, n, k, depth) &&
          widen_into(&s->c, s->d_u, k == j ? UPPER : WHOLE, depth, w,
                     d_lu + k + j * ld, ld, nullptr) &&
          s->c.ok(
              subtract(s->blas,
                       Product<typename in_double<T>::number>{
                           rows, w, depth, s->d_l, s->d_u, s->d_r + k, n, !lu}),
              "GEMM in double")))
      return false;
  }
  return add_squares(s, n * w, &s->sum_r);
}

template <class T>
double residual_of(int64_t n, const T *d_a, const Factors<T> &f) {
  Residual<T> s;
  const size_t number = sizeof *s.d_r;
  int64_t w = std::min(residual_block, n);
  size_t wide = static_cast<size_t>(n * w) * number;
  size_t small = static_cast<size_t>(w * w) * number;
  bool fine = s.c.ok(cudaDeviceSynchronize(), "waiting") &&
              s.c.ok(cudaMalloc(&s.d_r, wide), "cudaMalloc") &&
              s.c.ok(cudaMalloc(&s.d_l, wide), "cudaMalloc") &&
              s.c.ok(cudaMalloc(&s.d_u, small), "cudaMalloc") &&
              s.c.ok(cublasCreate(&s.blas), "cublasCreate");
  for (int64_t j = 0; j < n && fine; j += w)
    fine = one_block(&s, n, j, d_a, f);
  fine = fine && s.c.ok(cudaDeviceSynchronize(), "waiting");
  if (s.blas != nullptr)
    cublasDestroy(s.blas);
  cudaFree(s.d_r);
  cudaFree(s.d_l);
  cudaFree(s.d_u);
  return fine ? std::sqrt(s.sum_r / s.sum_a) : std::nan("");
}

} // namespace

double lu_residual(int64_t n, const float *d_a, const float *d_lu, int64_t ld,
                   const int *d_perm) {
  return residual_of<float>(n, d_a, {d_lu, ld, d_perm});
}

double complex_lu_residual(int64_t n, const float *d_a, const float *d_lu,
                           int64_t ld, const int *d_perm) {
  return residual_of<float2>(
      n, reinterpret_cast<const float2 *>(d_a),
      {reinterpret_cast<const float2 *>(d_lu), ld, d_perm});
}

double cholesky_residual(int64_t n, const float *d_a, const float *d_u,
                         int64_t ld) {
  return residual_of<float>(n, d_a, {d_u, ld, nullptr});
}

/* ---- Xgetrf in FP32 ---- */

std::string SingleLu::open(int64_t n, bool normal, uint64_t seed, int parts) {
  close();
  n_ = n;
  parts_ = parts;
  Calls c;
  size_t bytes = static_cast<size_t>(n * n * parts) * sizeof(float);
  size_t order = static_cast<size_t>(n);
  if (!(c.ok(cudaMalloc(&d_a_, bytes), "cudaMalloc of A") &&
        c.ok(cudaMalloc(&d_lu_, bytes), "cudaMalloc of LU") &&
        c.ok(cudaMalloc(&d_pivots_, order * sizeof(int64_t)), "cudaMalloc") &&
        c.ok(cudaMalloc(&d_perm_, order * sizeof(int)), "cudaMalloc") &&
        c.ok(cudaMalloc(&d_info_, sizeof(int)), "cudaMalloc") &&
        c.ok(cudaStreamCreate(&stream_), "stream") &&
        c.ok(cudaEventCreate(&before_), "event") &&
        c.ok(cudaEventCreate(&after_), "event") &&
        c.ok(cusolverDnCreate(&handle_), "cusolverDnCreate") &&
        c.ok(cusolverDnSetStream(handle_, stream_), "cusolverDnSetStream") &&
        c.ok(cusolverDnCreateParams(&params_), "cusolverDnCreateParams") &&
        c.ok(cusolverDnXgetrf_bufferSize(handle_, params_, n, n, type(), d_lu_,
                                         n, type(), &d_bytes_, &h_bytes_),
             "getrf's workspace") &&
        c.ok(cudaMalloc(&d_work_, std::max<size_t>(d_bytes_, 1)),
             "cudaMalloc of the workspace")))
    return c.why;
  h_work_.resize(h_bytes_ + 8);
  return device_fill(d_a_, n * n * parts, normal, seed);
}

void SingleLu::close() {
  if (params_ != nullptr)
    cusolverDnDestroyParams(params_);
  if (handle_ != nullptr)
    cusolverDnDestroy(handle_);
  if (before_ != nullptr)
    cudaEventDestroy(before_);
  if (after_ != nullptr)
    cudaEventDestroy(after_);
  if (stream_ != nullptr)
    cudaStreamDestroy(stream_);
  cudaFree(d_a_);
  cudaFree(d_lu_);
  cudaFree(d_pivots_);
  cudaFree(d_perm_);
  cudaFree(d_info_);
  cudaFree(d_work_);
  params_ = nullptr;
  handle_ = nullptr;
  before_ = after_ = nullptr;
  stream_ = nullptr;
  d_a_ = d_lu_ = nullptr;
  d_pivots_ = nullptr;
  d_perm_ = d_info_ = nullptr;
  d_work_ = nullptr;
}

std::string SingleLu::run(double *ms) {
  Calls c;
  size_t bytes = static_cast<size_t>(n_ * n_ * parts_) * sizeof(float);
  float elapsed = 0.0f;
  int info = 0;
  if (c.ok(cudaMemcpyAsync(d_lu_, d_a_, bytes, cudaMemcpyDeviceToDevice,
                           stream_),
           "copy of A") &&
      c.ok(cudaStreamSynchronize(stream_), "waiting") &&
      c.ok(cudaEventRecord(before_, stream_), "event") &&
      c.ok(cusolverDnXgetrf(handle_, params_, n_, n_, type(), d_lu_, n_,
                            d_pivots_, type(), d_work_, d_bytes_,
                            h_work_.data(), h_bytes_, d_info_),
           "Xgetrf") &&
      c.ok(cudaEventRecord(after_, stream_), "event") &&
      c.ok(cudaEventSynchronize(after_), "waiting") &&
      c.ok(cudaEventElapsedTime(&elapsed, before_, after_), "event") &&
      c.ok(cudaMemcpy(&info, d_info_, sizeof info, cudaMemcpyDeviceToHost),
           "copy of info") &&
      info != 0)
    c.why = "info " + std::to_string(info);
  *ms = static_cast<double>(elapsed);
  return c.why;
}

std::string SingleLu::residual(double *relative) {
  Calls c;
  size_t order = static_cast<size_t>(n_);
  std::vector<int64_t> pivots(order);
  std::vector<int> perm(order);
  if (!c.ok(cudaMemcpy(pivots.data(), d_pivots_, order * sizeof(int64_t),
                       cudaMemcpyDeviceToHost),
            "copy of the pivots"))
    return c.why;
  /* pivots, counted from 1, are row interchanges, made one after the other */
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = 0; i < order; i++) {
    if (pivots[i] < 1 || pivots[i] > n_)
      return "a pivot is out of range";
    std::swap(perm[i], perm[static_cast<size_t>(pivots[i] - 1)]);
  }
  if (!c.ok(cudaMemcpy(d_perm_, perm.data(), order * sizeof(int),
                       cudaMemcpyHostToDevice),
            "copy of the permutation"))
    return c.why;
  const auto residual = parts_ == 2 ? complex_lu_residual : lu_residual;
  *relative = residual(n_, d_a_, d_lu_, n_, d_perm_);
  return "";
}
