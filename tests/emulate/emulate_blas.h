/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of cuBLAS that the library calls, in plain loops; emulate.h
   includes this after its runtime. Sums are added in float, as on the device,
   in ascending order. */
#ifndef HONE_EMULATE_BLAS_H
#define HONE_EMULATE_BLAS_H

#include "tests/emulate/emulate_streams.h"

#include <atomic>
#include <complex>

#define CUBLAS_VER_MAJOR 0 /* none */

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasPointerMode_t {
  CUBLAS_POINTER_MODE_HOST,
  CUBLAS_POINTER_MODE_DEVICE
};
enum cublasMath_t { CUBLAS_DEFAULT_MATH };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_R_16BF = 14
};
typedef cudaDataType_t cudaDataType;

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t mode;
  int device;
  int processors; /* that its products may take; 0: all */
};
typedef cublasContext *cublasHandle_t;

inline cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  if (hone_emulate::refused(handle))
    return CUBLAS_STATUS_ALLOC_FAILED;
  *handle =
      hone_emulate::keep(new cublasContext{nullptr, CUBLAS_POINTER_MODE_HOST,
                                           hone_emulate::current_device, 0},
                         "cuBLAS handle");
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  hone_emulate::drop(handle, "cuBLAS handle");
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream_v2(cublasHandle_t handle,
                                         cudaStream_t stream) {
  hone_emulate::check_handle(handle, "cuBLAS handle");
  hone_emulate::check_stream(stream);
  if (hone_emulate::device_of_stream(stream) != handle->device)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                              cublasPointerMode_t mode) {
  hone_emulate::check_handle(handle, "cuBLAS handle");
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *work,
                                            size_t bytes) {
  hone_emulate::check_handle(handle, "cuBLAS handle");
  hone_emulate::check_place(work, bytes, true, "workspace of cuBLAS");
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  hone_emulate::check_handle(handle, "cuBLAS handle");
  if (count < 0 || count > HONE_EMULATE_PROCESSORS)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->processors = count;
  return CUBLAS_STATUS_SUCCESS;
}

namespace hone_emulate {

/* Products since the program began: of all, and with room for others. */
inline std::atomic<long> products_made{0}, products_with_room{0};

inline size_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

/* One factor of a product, op(A), converted to floats. Its rows are stored in
   strips of STRIP, whose columns follow each other without gaps; zeros fill the
   last strip. */
template <size_t STRIP> struct operand {
  const size_t inner; /* columns */
  std::vector<float> v;

  operand(const void *a, cudaDataType type, bool trans, int rows, int columns,
          int ld, bool tf32, const char *what)
      : inner(static_cast<size_t>(columns)),
        v((static_cast<size_t>(rows) + STRIP - 1) / STRIP * STRIP * inner) {
    const size_t r = static_cast<size_t>(trans ? columns : rows);
    const size_t c = static_cast<size_t>(trans ? rows : columns);
    const size_t step = static_cast<size_t>(ld);
    if (v.empty())
      return;
    check_place(a, ((c - 1) * step + r) * size_of(type), true, what);
    for (size_t j = 0; j < c; j++)
      for (size_t i = 0; i < r; i++) {
        const float value = at(a, type, i + j * step);
        v[trans ? place(j, i) : place(i, j)] =
            tf32 ? rounded_off(value) : value;
      }
  }
  size_t place(size_t i, size_t j) const {
    return (i / STRIP * inner + j) * STRIP + i % STRIP;
  }
  static float at(const void *a, cudaDataType type, size_t i) {
    if (type == CUDA_R_16F)
      return device::__half2float(static_cast<const device::__half *>(a)[i]);
    if (type == CUDA_R_16BF)
      return device::__bfloat162float(
          static_cast<const device::__nv_bfloat16 *>(a)[i]);
    return static_cast<const float *>(a)[i];
  }
  /* TF32 has 10 bits behind the leading one. */
  static float rounded_off(float v) {
    const unsigned b = device::__float_as_uint(v);
    return v - v == 0 ? device::__uint_as_float((b + 0x1000) & ~0x1fffu) : v;
  }
};

/* A tile of a product: ROWS x COLUMNS sums of 'inner' products each, in
   ascending order, from strips of op(A) and of op(B)^T. Wider vectors than all
   processors have do not change a bit. */
constexpr size_t ROWS = 16, COLUMNS = 4;
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define HONE_EMULATE_WIDEST                                                    \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else /* gcc and the C library choose a clone together */
#define HONE_EMULATE_WIDEST
#endif
HONE_EMULATE_WIDEST static inline void multiply_tile(size_t inner,
                                                     const float *a,
                                                     const float *b,
                                                     float (*sums)[ROWS]) {
  typedef float vector __attribute__((vector_size(ROWS * sizeof(float))));
  vector sum[COLUMNS] = {}, column;
  for (size_t p = 0; p < inner; p++) {
    memcpy(&column, a + p * ROWS, sizeof column);
#pragma GCC unroll 4
    for (size_t q = 0; q < COLUMNS; q++)
      sum[q] += column * b[p * COLUMNS + q];
  }
  memcpy(sums, sum, sizeof sum);
}

/* Checks that the handle and these operands belong to the thread's device. */
inline void check_operands(cublasHandle_t handle, const void *a, const void *b,
                           const void *c) {
  if (device_count() == 1)
    return;
  if (handle->device != current_device)
    fail("a cuBLAS handle of another device than the current one");
  for (const void *p : {a, b, c})
    check_near(p, current_device, "cuBLAS");
}

inline bool valid_gemm(int rows, int columns, int ld) {
  return ld >= rows && ld >= 1 && columns >= 0;
}

} // namespace hone_emulate

namespace hone_emulate {

/* C = alpha op(A) op(B) + beta C for complex numbers of two T. op(A) is A or
   A^T, op(B) is B or, if hb, B^H. */
template <class T>
cublasStatus_t complex_product(cublasHandle_t handle, bool ta, bool hb, int m,
                               int n, int k, const void *alpha, const void *a,
                               int lda, const void *b, int ldb,
                               const void *beta, void *c, int ldc) {
  typedef std::complex<T> entry;
  const bool there = handle->mode == CUBLAS_POINTER_MODE_DEVICE;
  const size_t rows = static_cast<size_t>(m), inner = static_cast<size_t>(k);
  const size_t columns = static_cast<size_t>(n);
  const size_t da = static_cast<size_t>(lda), db = static_cast<size_t>(ldb);
  const size_t dc = static_cast<size_t>(ldc);
  check_place(alpha, sizeof(entry), there, "alpha");
  check_place(beta, sizeof(entry), there, "beta");
  check_place(
      a, (((ta ? rows : inner) - 1) * da + (ta ? inner : rows)) * sizeof(entry),
      true, "A");
  check_place(b,
              (((hb ? inner : columns) - 1) * db + (hb ? columns : inner)) *
                  sizeof(entry),
              true, "B");
  check_place(c, ((columns - 1) * dc + rows) * sizeof(entry), true, "C");
  const entry by = *static_cast<const entry *>(alpha);
  const entry old = *static_cast<const entry *>(beta);
  const entry *x = static_cast<const entry *>(reach(a)); /* the caller's A? */
  const entry *y = static_cast<const entry *>(b);
  for (size_t j = 0; j < columns; j++)
    for (size_t i = 0; i < rows; i++) {
      entry sum = 0;
      entry *out = static_cast<entry *>(c) + i + j * dc;
      for (size_t p = 0; p < inner; p++)
        sum += x[ta ? p + i * da : i + p * da] *
               (hb ? std::conj(y[j + p * db]) : y[p + j * db]);
      *out = by * sum + (old != entry(0) ? old * *out : entry(0));
    }
  return CUBLAS_STATUS_SUCCESS;
}

/* C = op(A) B in double; alpha = 1 and beta = 0 lie on the device. */
inline cublasStatus_t product(cublasHandle_t handle, bool ta, int m, int n,
                              int k, const double *alpha, const double *a,
                              int lda, const double *b, int ldb,
                              const double *beta, double *c, int ldc) {
  const bool there = handle->mode == CUBLAS_POINTER_MODE_DEVICE;
  const size_t rows = static_cast<size_t>(m), inner = static_cast<size_t>(k);
  const size_t columns = static_cast<size_t>(n);
  const size_t da = static_cast<size_t>(lda), db = static_cast<size_t>(ldb);
  const size_t dc = static_cast<size_t>(ldc);
  check_place(alpha, sizeof *alpha, there, "alpha");
  check_place(beta, sizeof *beta, there, "beta");
  check_place(a,
              ((ta ? rows : inner) - 1) * da * sizeof *a +
                  (ta ? inner : rows) * sizeof *a,
              true, "A");
  check_place(b, ((columns - 1) * db + inner) * sizeof *b, true, "B");
  check_place(c, ((columns - 1) * dc + rows) * sizeof *c, true, "C");
  if (*alpha != 1.0 || *beta != 0.0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  a = static_cast<const double *>(reach(a)); /* the caller's A, perhaps */
  for (size_t j = 0; j < columns; j++)
    for (size_t i = 0; i < rows; i++) {
      double sum = 0.0;
      for (size_t p = 0; p < inner; p++)
        sum += a[ta ? p + i * da : i + p * da] * b[p + j * db];
      c[i + j * dc] = sum;
    }
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace hone_emulate

namespace hone_emulate {

/* C = alpha op(A) op(B) + beta C, now. */
inline cublasStatus_t gemm_now(cublasHandle_t handle, cublasOperation_t trans_a,
                               cublasOperation_t trans_b, int m, int n, int k,
                               const void *alpha, const void *a,
                               cudaDataType type_a, int lda, const void *b,
                               cudaDataType type_b, int ldb, const void *beta,
                               void *c, cudaDataType type_c, int ldc,
                               cublasComputeType_t compute) {
  const bool ta = trans_a == CUBLAS_OP_T, tb = trans_b != CUBLAS_OP_N;
  const bool hb = trans_b == CUBLAS_OP_C;
  if (m < 0 || n < 0 || k < 0 || !valid_gemm(ta ? k : m, ta ? m : k, lda) ||
      !valid_gemm(tb ? n : k, tb ? k : n, ldb) || !valid_gemm(m, n, ldc))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0)
    return CUBLAS_STATUS_SUCCESS;
  if (type_c == CUDA_R_64F && type_a == CUDA_R_64F && type_b == CUDA_R_64F &&
      compute == CUBLAS_COMPUTE_64F && k > 0 && !tb)
    return product(
        handle, ta, m, n, k, static_cast<const double *>(alpha),
        static_cast<const double *>(a), lda, static_cast<const double *>(b),
        ldb, static_cast<const double *>(beta), static_cast<double *>(c), ldc);
  if (type_a == CUDA_C_64F && type_b == type_a && type_c == type_a &&
      compute == CUBLAS_COMPUTE_64F && k > 0 && !tb)
    return complex_product<double>(handle, ta, false, m, n, k, alpha, a, lda, b,
                                   ldb, beta, c, ldc);
  if (type_a == CUDA_C_32F && type_b == type_a && type_c == type_a &&
      compute != CUBLAS_COMPUTE_64F && k > 0 && tb == hb)
    return complex_product<float>(handle, ta, hb, m, n, k, alpha, a, lda, b,
                                  ldb, beta, c, ldc);
  if (type_a != type_b || type_c != CUDA_R_32F || type_a == CUDA_R_64F || hb)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool there = handle->mode == CUBLAS_POINTER_MODE_DEVICE;
  const bool tf32 =
      compute == CUBLAS_COMPUTE_32F_FAST_TF32 && type_a == CUDA_R_32F;
  const size_t rows = static_cast<size_t>(m), inner = static_cast<size_t>(k);
  check_place(alpha, sizeof(float), there, "alpha");
  check_place(beta, sizeof(float), there, "beta");
  check_place(c,
              (static_cast<size_t>(n - 1) * static_cast<size_t>(ldc) + rows) *
                  sizeof(float),
              true, "C");
  const float by = *static_cast<const float *>(alpha);
  const float old = *static_cast<const float *>(beta);
  const operand<ROWS> x(a, type_a, ta, m, k, lda, tf32, "A");
  const operand<COLUMNS> y(b, type_b, !tb, n, k, ldb, tf32, "B");
  float sums[COLUMNS][ROWS];
  for (size_t j = 0; j < static_cast<size_t>(n); j += COLUMNS)
    for (size_t i = 0; i < rows; i += ROWS) {
      multiply_tile(inner, x.v.data() + i * inner, y.v.data() + j * inner,
                    sums);
      for (size_t q = 0; q < COLUMNS && j + q < static_cast<size_t>(n); q++)
        for (size_t r = 0; r < ROWS && i + r < rows; r++) {
          float *const out = static_cast<float *>(c) + i + r +
                             (j + q) * static_cast<size_t>(ldc);
          *out = by * sums[q][r] + (old != 0.0f ? old * *out : 0.0f);
        }
    }
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace hone_emulate

inline cublasStatus_t
cublasGemmEx(cublasHandle_t handle, cublasOperation_t trans_a,
             cublasOperation_t trans_b, int m, int n, int k, const void *alpha,
             const void *a, cudaDataType type_a, int lda, const void *b,
             cudaDataType type_b, int ldb, const void *beta, void *c,
             cudaDataType type_c, int ldc, cublasComputeType_t compute,
             cublasGemmAlgo_t) {
  using namespace hone_emulate;
  check_handle(handle, "cuBLAS handle");
  check_stream(handle->stream);
  check_operands(handle, a, b, c);
  products_made++;
  products_with_room += handle->processors > 0;
  const auto now = [=] {
    return gemm_now(handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, b,
                    type_b, ldb, beta, c, type_c, ldc, compute);
  };
  const bool later = put_off(handle->stream, [=] {
    if (now() != CUBLAS_STATUS_SUCCESS)
      fail("a product that is late has failed");
  });
  return later ? CUBLAS_STATUS_SUCCESS : now();
}

/* B = alpha inv(A) B or B = alpha B inv(A), A not transposed. */
inline cublasStatus_t
cublasStrsm_v2(cublasHandle_t handle, cublasSideMode_t side,
               cublasFillMode_t fill, cublasOperation_t trans,
               cublasDiagType_t diag, int m, int n, const float *alpha,
               const float *a, int lda, float *b, int ldb) {
  using namespace hone_emulate;
  const bool left = side == CUBLAS_SIDE_LEFT;
  const int k = left ? m : n, lines = left ? n : m;
  check_handle(handle, "cuBLAS handle");
  check_stream(handle->stream);
  do_stream_late(handle->stream);
  check_operands(handle, a, b, b);
  if (m < 0 || n < 0 || lda < (k > 1 ? k : 1) || ldb < (m > 1 ? m : 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (trans != CUBLAS_OP_N)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0)
    return CUBLAS_STATUS_SUCCESS;
  const size_t ra = static_cast<size_t>(lda), rb = static_cast<size_t>(ldb);
  const size_t size = static_cast<size_t>(k);
  check_place(alpha, 4, handle->mode == CUBLAS_POINTER_MODE_DEVICE, "alpha");
  check_place(a, ((size - 1) * ra + size) * 4, true, "A");
  check_place(b, (static_cast<size_t>(n - 1) * rb + static_cast<size_t>(m)) * 4,
              true, "B");
  /* Unknown q of a line is at x[q * step]; forwards begins with the first. */
  const bool forwards = left == (fill == CUBLAS_FILL_MODE_LOWER);
  const size_t step = left ? 1 : rb, next = left ? rb : 1;
  for (size_t line = 0; line < static_cast<size_t>(lines); line++) {
    float *x = b + line * next;
    for (size_t done = 0; done < size; done++) {
      const size_t q = forwards ? done : size - 1 - done;
      float v = *alpha * x[q * step];
      for (size_t i = 0; i < done; i++) {
        const size_t p = forwards ? i : size - 1 - i;
        v -= (left ? a[q + p * ra] : a[p + q * ra]) * x[p * step];
      }
      x[q * step] = diag == CUBLAS_DIAG_UNIT ? v : v / a[q + q * ra];
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

#include "tests/emulate/emulate_solver.h"

#endif
