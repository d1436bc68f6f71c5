/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call of the CUDA runtime and of cuBLAS goes through CALL: its status
   becomes one of ours, and a test can make any of them fail. */
#ifndef HONE_CUDA_CALLS_H
#define HONE_CUDA_CALLS_H

#include "api/hone.h"

#ifdef HONE_EMULATE /* for the CPU, by tests: see cuda_kernels.h */
#include HONE_EMULATE
#else
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>
#endif

/* Tests: the call that takes this from 1 to 0 fails without being made. 0:
   none. Counts every call made, so that a test knows how many there are. */
extern "C" int64_t hone_cuda_fail_at, hone_cuda_calls;

bool hone_cuda_must_fail();
int hone_cuda_status(cudaError_t e);
int hone_cuda_status(cublasStatus_t s);
int hone_cuda_status(cusolverStatus_t s);

#define CALL(call)                                                             \
  (hone_cuda_must_fail() ? (int)HONE_DEVICE_FAILED : hone_cuda_status(call))

/* A function keeps one status in a local 'int st', HONE_OK at first. Each step
   is done only while that is so, and its status is kept: no step after a
   failed one runs, and no ladder of ifs is needed. */
#define TRY(st_expr)                                                           \
  do {                                                                         \
    if (st == HONE_OK)                                                         \
      st = (st_expr);                                                          \
  } while (0)
#define TRY_CUDA(call)                                                         \
  do {                                                                         \
    if (st == HONE_OK)                                                         \
      st = CALL(call);                                                         \
  } while (0)

/* What is used of cuBLAS, found when it is first asked for: a program linked
   with this library also starts where there is no cuBLAS. */
struct hone_cublas {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetPointerMode_v2) set_pointer_mode;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                         int m, int n, int k, const void *alpha, const void *a,
                         cudaDataType, int lda, const void *b, cudaDataType,
                         int ldb, const void *beta, void *c, cudaDataType,
                         int ldc, cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasStrsm_v2) trsm;
};
/* NULL: it cannot be loaded. It stays loaded for the process. */
const hone_cublas *hone_cuda_blas();

/* The same of cuSOLVER, for the double-precision factorization alone. */
struct hone_cusolver {
  decltype(&cusolverDnCreate) create;
  decltype(&cusolverDnDestroy) destroy;
  decltype(&cusolverDnSetStream) set_stream;
  decltype(&cusolverDnDgetrf_bufferSize) buffer_size;
  decltype(&cusolverDnDgetrf) getrf;
  decltype(&cusolverDnDgetrs) getrs;
};
const hone_cusolver *hone_cuda_solver();

#endif
