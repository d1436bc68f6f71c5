/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes max |A - L U| on the device, of all entries and in double, as
   largest_defect of papers/checks.h does on the CPU, where it takes seconds.
   Blocks of columns are widened to double and multiplied by DGEMM. */
#include "bench/gpu/peers.h"
#include "bench/papers/checks.h"
#include "bench/papers/gpu.h"

#include <algorithm>
#include <cmath>

namespace {

const int64_t most_columns = 1024; /* of a block */

enum Keep { WHOLE, LOWER, UNIT_LOWER, UPPER, UNIT_UPPER };

/* out (rows x columns, ld rows) = the given part of in. Row i of out is row
   from[i] of in, or row i if from is NULL. */
template <class T>
__global__ void widen(Keep keep, int64_t rows, int64_t columns, const T *in,
                      int64_t ld, const int64_t *from, double *out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const bool lower = keep == LOWER || keep == UNIT_LOWER;
  const bool upper = keep == UPPER || keep == UNIT_UPPER;
  const bool unit = keep == UNIT_LOWER || keep == UNIT_UPPER;
  for (int64_t j = blockIdx.y; j < columns; j += gridDim.y)
    for (int64_t i =
             static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < rows; i += step) {
      const int64_t row = from != nullptr ? from[i] : i;
      double value = static_cast<double>(in[row + j * ld]);
      if ((lower && i < j) || (upper && i > j))
        value = 0.0;
      if (unit && i == j)
        value = 1.0;
      out[i + j * rows] = value;
    }
}

/* Nonnegative numbers are ordered like their bits, with NaN above all. */
__global__ void largest(int64_t count, const double *r,
                        unsigned long long *top) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += step) {
    const unsigned long long bits =
        static_cast<unsigned long long>(__double_as_longlong(fabs(r[i])));
    mine = bits > mine ? bits : mine;
  }
  atomicMax(top, mine);
}

template <class T> struct Defect {
  Calls c;
  int64_t n, w;
  bool crout;
  cublasHandle_t blas = nullptr;
  T *d_a = nullptr, *d_z = nullptr;
  int64_t *d_rows = nullptr;
  double *d_r = nullptr, *d_l = nullptr, *d_u = nullptr;
  unsigned long long *d_top = nullptr;

  Defect(int64_t order, bool by_crout)
      : n(order), w(std::min(order, most_columns)), crout(by_crout) {}
  ~Defect() {
    if (blas != nullptr)
      cublasDestroy(blas);
    for (void *p : {static_cast<void *>(d_a), static_cast<void *>(d_z),
                    static_cast<void *>(d_rows), static_cast<void *>(d_r),
                    static_cast<void *>(d_l), static_cast<void *>(d_u),
                    static_cast<void *>(d_top)})
      cudaFree(p);
  }

  template <class U> bool bring(U **d, const U *from, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(U);
    return c.ok(cudaMalloc(d, bytes), "cudaMalloc") &&
           (from == nullptr
                ? c.ok(cudaMemset(*d, 0, bytes), "clearing")
                : c.ok(cudaMemcpy(*d, from, bytes, cudaMemcpyHostToDevice),
                       "copy of a matrix"));
  }
  bool open(const T *a, const T *z, const int64_t *rows) {
    return bring(&d_a, a, n * n) && bring(&d_z, z, n * n) &&
           bring(&d_rows, rows, n) && bring<double>(&d_r, nullptr, n * w) &&
           bring<double>(&d_l, nullptr, n * w) &&
           bring<double>(&d_u, nullptr, w * w) &&
           bring<unsigned long long>(&d_top, nullptr, 1) &&
           c.ok(cublasCreate(&blas), "cublasCreate");
  }
  bool take(Keep keep, int64_t rows, int64_t columns, const T *in,
            const int64_t *from, double *out) {
    const dim3 grid(
        static_cast<unsigned>(std::min<int64_t>((rows + 255) / 256, 64)),
        static_cast<unsigned>(std::min<int64_t>(columns, 1024)));
    widen<<<grid, 256>>>(keep, rows, columns, in, n, from, out);
    return c.ok(cudaGetLastError(), "widening to double");
  }

  /* R = P A(:, J) - sum over K <= J of L(:, K) U(K, J); J begins at column j.
   */
  bool block(int64_t j) {
    const double minus = -1.0, one = 1.0;
    const int64_t columns = std::min(w, n - j);
    bool fine = take(WHOLE, n, columns, d_a + j * n, d_rows, d_r);
    for (int64_t k = 0; k <= j && fine; k += w) {
      const int64_t depth = std::min(w, n - k), rows = n - k;
      const Keep right = k < j ? WHOLE : crout ? UNIT_UPPER : UPPER;
      fine = take(crout ? LOWER : UNIT_LOWER, rows, depth, d_z + k + k * n,
                  nullptr, d_l) &&
             take(right, depth, columns, d_z + k + j * n, nullptr, d_u) &&
             c.ok(cublasDgemm_64(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns,
                                 depth, &minus, d_l, rows, d_u, depth, &one,
                                 d_r + k, n),
                  "DGEMM");
    }
    if (fine)
      largest<<<264, 256>>>(n * columns, d_r, d_top);
    return fine && c.ok(cudaGetLastError(), "maximum");
  }
  bool result(double *error) {
    static_assert(sizeof *error == sizeof *d_top, "bits of a double");
    return c.ok(cudaMemcpy(error, d_top, sizeof *error, cudaMemcpyDeviceToHost),
                "copy of the maximum");
  }
};

} // namespace

template <class T>
std::string gpu_defect(int64_t n, const T *a, const T *z, bool crout,
                       const int64_t *pivots, double *error) {
  Defect<T> d(n, crout);
  std::vector<int64_t> rows(static_cast<size_t>(n));
  *error = NAN;
  if (!permutation(n, pivots, &rows))
    return "";
  bool fine = d.open(a, z, rows.data());
  for (int64_t j = 0; j < n && fine; j += d.w)
    fine = d.block(j);
  if (!(fine && d.result(error)))
    *error = NAN;
  return d.c.why;
}

template std::string gpu_defect(int64_t, const float *, const float *, bool,
                                const int64_t *, double *);
template std::string gpu_defect(int64_t, const double *, const double *, bool,
                                const int64_t *, double *);
