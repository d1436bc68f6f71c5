/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of cuSOLVER that the library calls, by LAPACK; emulate_blas.h
   includes this. */
#ifndef HONE_EMULATE_SOLVER_H
#define HONE_EMULATE_SOLVER_H

extern "C" {
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv,
             int *info);
void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a,
             const int *lda, const int *ipiv, double *b, const int *ldb,
             int *info);
}

enum cusolverStatus_t {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3
};
struct cusolverDnContext {
  cudaStream_t stream;
};
typedef cusolverDnContext *cusolverDnHandle_t;

inline cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
  if (hone_emulate::refused(handle))
    return CUSOLVER_STATUS_ALLOC_FAILED;
  *handle =
      hone_emulate::keep(new cusolverDnContext{nullptr}, "cuSOLVER handle");
  return CUSOLVER_STATUS_SUCCESS;
}
inline cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  hone_emulate::drop(handle, "cuSOLVER handle");
  return CUSOLVER_STATUS_SUCCESS;
}
inline cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle,
                                            cudaStream_t stream) {
  hone_emulate::check_handle(handle, "cuSOLVER handle");
  hone_emulate::check_stream(stream);
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
namespace hone_emulate {
/* Makes the workspace have more doubles than an int can hold. */
inline bool workspace_overflows = false;
} // namespace hone_emulate

inline cusolverStatus_t cusolverDnDgetrf_bufferSize(cusolverDnHandle_t handle,
                                                    int m, int n, double *,
                                                    int lda, int *lwork) {
  hone_emulate::check_handle(handle, "cuSOLVER handle");
  *lwork = hone_emulate::workspace_overflows ? -1 : n;
  return m >= 0 && n >= 0 && lda >= m ? CUSOLVER_STATUS_SUCCESS
                                      : CUSOLVER_STATUS_INVALID_VALUE;
}

namespace hone_emulate {
inline size_t square_bytes(int n, int columns, int ld) {
  return (static_cast<size_t>(columns - 1) * static_cast<size_t>(ld) +
          static_cast<size_t>(n)) *
         sizeof(double);
}
} // namespace hone_emulate

inline cusolverStatus_t cusolverDnDgetrf(cusolverDnHandle_t handle, int m,
                                         int n, double *a, int lda,
                                         double *work, int *ipiv, int *info) {
  using namespace hone_emulate;
  check_handle(handle, "cuSOLVER handle");
  check_stream(handle->stream);
  do_stream_late(handle->stream);
  check_place(a, square_bytes(m, n, lda), true, "A");
  check_place(work, sizeof(double), true, "workspace of cuSOLVER");
  check_place(ipiv, static_cast<size_t>(n) * sizeof(int), true, "pivots");
  check_place(info, sizeof(int), true, "info");
  dgetrf_(&m, &n, a, &lda, ipiv, info);
  return CUSOLVER_STATUS_SUCCESS;
}
inline cusolverStatus_t cusolverDnDgetrs(cusolverDnHandle_t handle,
                                         cublasOperation_t trans, int n,
                                         int nrhs, const double *a, int lda,
                                         const int *ipiv, double *b, int ldb,
                                         int *info) {
  using namespace hone_emulate;
  check_handle(handle, "cuSOLVER handle");
  check_stream(handle->stream);
  do_stream_late(handle->stream);
  check_place(a, square_bytes(n, n, lda), true, "A");
  check_place(b, square_bytes(n, nrhs, ldb), true, "B");
  check_place(info, sizeof(int), true, "info");
  dgetrs_(trans == CUBLAS_OP_T ? "T" : "N", &n, &nrhs, a, &lda, ipiv, b, &ldb,
          info);
  return CUSOLVER_STATUS_SUCCESS;
}

#endif
