/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads cuSOLVER when it is first called. bench_papers is linked with these
   functions instead of cuSOLVER. If the library is missing, every call returns
   an error, and the tables have a line that says so. */
#include <cusolverDn.h>
#include <dlfcn.h>

namespace {

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

void *library() {
  static void *const found =
      dlopen("libcusolver.so." TEXT(CUSOLVER_VER_MAJOR), RTLD_NOW);
  return found;
}

template <class F> F find(F, const char *name) {
  return library() != nullptr ? reinterpret_cast<F>(dlsym(library(), name))
                              : nullptr;
}

} // namespace

#define LATE(name, parameters, arguments)                                      \
  extern "C" cusolverStatus_t CUSOLVERAPI name parameters {                    \
    const auto f = find(&name, #name);                                         \
    return f != nullptr ? f arguments : CUSOLVER_STATUS_NOT_INITIALIZED;       \
  }

/* The version is 0 if the library is missing. */
extern "C" cusolverStatus_t CUSOLVERAPI cusolverGetVersion(int *version) {
  const auto f = find(&cusolverGetVersion, "cusolverGetVersion");
  *version = 0;
  return f != nullptr ? f(version) : CUSOLVER_STATUS_SUCCESS;
}

LATE(cusolverDnCreate, (cusolverDnHandle_t * h), (h))
LATE(cusolverDnDestroy, (cusolverDnHandle_t h), (h))
LATE(cusolverDnSetStream, (cusolverDnHandle_t h, cudaStream_t s), (h, s))
LATE(cusolverDnCreateParams, (cusolverDnParams_t * p), (p))
LATE(cusolverDnDestroyParams, (cusolverDnParams_t p), (p))
LATE(cusolverDnXgetrf_bufferSize,
     (cusolverDnHandle_t h, cusolverDnParams_t p, int64_t m, int64_t n,
      cudaDataType ta, const void *a, int64_t lda, cudaDataType tc, size_t *dw,
      size_t *hw),
     (h, p, m, n, ta, a, lda, tc, dw, hw))
LATE(cusolverDnXgetrf,
     (cusolverDnHandle_t h, cusolverDnParams_t p, int64_t m, int64_t n,
      cudaDataType ta, void *a, int64_t lda, int64_t *pivots, cudaDataType tc,
      void *d, size_t dw, void *w, size_t hw, int *info),
     (h, p, m, n, ta, a, lda, pivots, tc, d, dw, w, hw, info))
LATE(cusolverDnXgetrs,
     (cusolverDnHandle_t h, cusolverDnParams_t p, cublasOperation_t op,
      int64_t n, int64_t nrhs, cudaDataType ta, const void *a, int64_t lda,
      const int64_t *pivots, cudaDataType tb, void *b, int64_t ldb, int *info),
     (h, p, op, n, nrhs, ta, a, lda, pivots, tb, b, ldb, info))
LATE(cusolverDnXpotrf_bufferSize,
     (cusolverDnHandle_t h, cusolverDnParams_t p, cublasFillMode_t fill,
      int64_t n, cudaDataType ta, const void *a, int64_t lda, cudaDataType tc,
      size_t *dw, size_t *hw),
     (h, p, fill, n, ta, a, lda, tc, dw, hw))
LATE(cusolverDnXpotrf,
     (cusolverDnHandle_t h, cusolverDnParams_t p, cublasFillMode_t fill,
      int64_t n, cudaDataType ta, void *a, int64_t lda, cudaDataType tc,
      void *d, size_t dw, void *w, size_t hw, int *info),
     (h, p, fill, n, ta, a, lda, tc, d, dw, w, hw, info))
LATE(cusolverDnXpotrs,
     (cusolverDnHandle_t h, cusolverDnParams_t p, cublasFillMode_t fill,
      int64_t n, int64_t nrhs, cudaDataType ta, const void *a, int64_t lda,
      cudaDataType tb, void *b, int64_t ldb, int *info),
     (h, p, fill, n, nrhs, ta, a, lda, tb, b, ldb, info))
LATE(cusolverDnIRSParamsCreate, (cusolverDnIRSParams_t * p), (p))
LATE(cusolverDnIRSParamsDestroy, (cusolverDnIRSParams_t p), (p))
LATE(cusolverDnIRSParamsSetSolverPrecisions,
     (cusolverDnIRSParams_t p, cusolverPrecType_t main,
      cusolverPrecType_t lowest),
     (p, main, lowest))
LATE(cusolverDnIRSParamsSetRefinementSolver,
     (cusolverDnIRSParams_t p, cusolverIRSRefinement_t how), (p, how))
LATE(cusolverDnIRSParamsSetMaxIters,
     (cusolverDnIRSParams_t p, cusolver_int_t most), (p, most))
LATE(cusolverDnIRSParamsEnableFallback, (cusolverDnIRSParams_t p), (p))
LATE(cusolverDnIRSInfosCreate, (cusolverDnIRSInfos_t * infos), (infos))
LATE(cusolverDnIRSInfosDestroy, (cusolverDnIRSInfos_t infos), (infos))
LATE(cusolverDnIRSXgesv_bufferSize,
     (cusolverDnHandle_t h, cusolverDnIRSParams_t p, cusolver_int_t n,
      cusolver_int_t nrhs, size_t *bytes),
     (h, p, n, nrhs, bytes))
LATE(cusolverDnIRSXgesv,
     (cusolverDnHandle_t h, cusolverDnIRSParams_t p, cusolverDnIRSInfos_t infos,
      cusolver_int_t n, cusolver_int_t nrhs, void *a, cusolver_int_t lda,
      void *b, cusolver_int_t ldb, void *x, cusolver_int_t ldx, void *work,
      size_t bytes, cusolver_int_t *iterations, cusolver_int_t *info),
     (h, p, infos, n, nrhs, a, lda, b, ldb, x, ldx, work, bytes, iterations,
      info))
