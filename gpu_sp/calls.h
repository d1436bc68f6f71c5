/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the CUDA runtime, of cuBLAS and of cuSOLVER: every one goes through
   CALL, which makes its result one of our statuses. */
#ifndef HONE_CUDA_CALLS_H
#define HONE_CUDA_CALLS_H

#include "api/hone.h"

extern "C" {
#include "base/cuda_driver.h"
}

#include <cstdint>

#ifdef HONE_EMULATE /* for the CPU, by tests: see kernels.h */
#include HONE_EMULATE
#else
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>
#endif

/* The result of a call as one of our statuses. Functions by these names, so
   that a test can link its own in their place and fail any call. */
extern "C" int hone_cuda_runtime_status(cudaError_t e);
extern "C" int hone_cuda_blas_status(cublasStatus_t s);
extern "C" int hone_cuda_solver_status(cusolverStatus_t s);
inline int hone_cuda_status(cudaError_t e) {
  return hone_cuda_runtime_status(e);
}
inline int hone_cuda_status(cublasStatus_t s) {
  return hone_cuda_blas_status(s);
}
inline int hone_cuda_status(cusolverStatus_t s) {
  return hone_cuda_solver_status(s);
}

#define CALL(call) hone_cuda_status(call)

/* Sets *at to NULL where the call that should have created it failed: CUDA does
   not say what it leaves there. */
template <class T, class Result>
inline Result hone_cuda_null_unless_created(T *at, Result result) {
  if (result != Result(0)) /* the value of success in all three libraries */
    *at = nullptr;
  return result;
}

/* The status of a call that creates *at. */
#define CREATE(at, call) CALL(hone_cuda_null_unless_created((at), (call)))

/* A function keeps one status in a local 'int st', HONE_OK at first. TRY and
   TRY_CUDA take the next step, and keep its status, only while that is so: no
   step after a failed one runs. */
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

/* The state of this thread that belongs to the caller. */
struct hone_cuda_callers {
  const hone_driver *driver; /* NULL: it is not loaded, and all else is unset */
  int capture_mode;
  bool relaxed;  /* the mode was exchanged for ours */
  void *context; /* NULL: it may stay as it is */
};

/* From enter to leave, calls of this thread
   - neither break nor join a capture of a CUDA graph that the caller has begun,
     in this thread or another: ours are made on streams of our own, and wait
     for them. (To free device memory breaks a capture all the same.)
   - are made in the primary context of the caller's device, where all of ours
     lies, if the caller has made another one current, which is so again then.
   - take no error for theirs that an earlier call of the caller has left, where
     both share one CUDA runtime. The caller cannot ask for it any more.
   No context is created for this, unless the caller's is not the primary one.
   The two may be nested. */
void hone_cuda_enter(hone_cuda_callers *callers);
void hone_cuda_leave(hone_cuda_callers *callers);

namespace {

/* While it exists, this thread makes our calls: see hone_cuda_enter. */
class hone_cuda_entry {
public:
  hone_cuda_entry() { hone_cuda_enter(&callers_); }
  ~hone_cuda_entry() { hone_cuda_leave(&callers_); }
  hone_cuda_entry(const hone_cuda_entry &) = delete;
  hone_cuda_entry &operator=(const hone_cuda_entry &) = delete;

private:
  hone_cuda_callers callers_;
};

/* While it exists other devices may become the current one of this thread; then
   the caller's is so again. */
class hone_cuda_current {
public:
  hone_cuda_current() { (void)cudaGetDevice(&ordinal_); }
  ~hone_cuda_current() { (void)cudaSetDevice(ordinal_); }
  hone_cuda_current(const hone_cuda_current &) = delete;
  hone_cuda_current &operator=(const hone_cuda_current &) = delete;
  int ordinal() const { return ordinal_; }

private:
  int ordinal_ = 0;
};

/* A member of an engine table that does as 'member' does, meanwhile. */
template <auto member> struct hone_cuda_aside;
template <class R, class... P, R (*member)(P...)>
struct hone_cuda_aside<member> {
  static R call(P... p) {
    const hone_cuda_entry meanwhile;
    return member(p...);
  }
};

} // namespace

/* *id = the number of the current CUDA context, which no other context of this
   process has had or will have. Returns false where it cannot be told. */
bool hone_cuda_context(uint64_t *id);

/* Returns how many devices a caller means who wants so many, from the current
   one on; 0 or less: all. */
int hone_cuda_devices(int wanted);

/* The process keeps engines for real and for complex entries (kept.h).
   Released: returns how many bytes of device memory that was. The first
   function creates no context where nothing is kept. */
int64_t hone_cuda_release_all_kept();
int64_t hone_cuda_release_kept_of(bool complex_entries);
int64_t hone_cuda_kept_bytes_of(bool complex_entries);
/* Likewise of the engines for several devices (several/kept.cu); the bytes of
   one are those of the device on which it has most. */
int64_t hone_several_release_kept_of(bool complex_entries);
int64_t hone_several_kept_bytes_of(bool complex_entries);

/* The functions of cuBLAS that are used. The library is loaded when they are
   first asked for, so that a program linked with Hone also starts where there
   is no cuBLAS. */
struct hone_cublas {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetPointerMode_v2) set_pointer_mode;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetSmCountTarget) set_processors; /* 0: all */
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                         int m, int n, int k, const void *alpha, const void *a,
                         cudaDataType, int lda, const void *b, cudaDataType,
                         int ldb, const void *beta, void *c, cudaDataType,
                         int ldc, cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasStrsm_v2) trsm;
};
/* Returns NULL if cuBLAS cannot be loaded. It stays loaded. */
const hone_cublas *hone_cuda_blas();

/* The functions of cuSOLVER, for the double-precision factorization alone. */
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
