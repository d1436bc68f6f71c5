/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses of CUDA calls, and the functions of cuBLAS and cuSOLVER, which are
   loaded when the program runs. */
#include "gpu_sp/calls.h"

extern "C" {
#include "base/device_memory.h"
}

#include <atomic>
#include <pthread.h>
#ifndef HONE_EMULATE
#include <dlfcn.h>
#endif

int hone_cuda_runtime_status(cudaError_t e) {
  if (e == cudaSuccess)
    return HONE_OK;
  (void)cudaGetLastError(); /* forget it: the next call is not to blame */
  return e == cudaErrorMemoryAllocation ? HONE_NO_MEMORY : HONE_DEVICE_FAILED;
}

int hone_cuda_blas_status(cublasStatus_t s) {
  if (s == CUBLAS_STATUS_SUCCESS)
    return HONE_OK;
  return s == CUBLAS_STATUS_ALLOC_FAILED ? HONE_NO_MEMORY : HONE_DEVICE_FAILED;
}

int hone_cuda_solver_status(cusolverStatus_t s) {
  if (s == CUSOLVER_STATUS_SUCCESS)
    return HONE_OK;
  return s == CUSOLVER_STATUS_ALLOC_FAILED ? HONE_NO_MEMORY
                                           : HONE_DEVICE_FAILED;
}

namespace {

hone_cublas blas;
hone_cusolver solver;
bool found, found_solver;
using context_id_fn = int(void *context, unsigned long long *id);
pthread_once_t once = PTHREAD_ONCE_INIT, solver_once = PTHREAD_ONCE_INIT;

#ifdef HONE_EMULATE

void find_all() {
  blas = {cublasCreate_v2,       cublasDestroy_v2,
          cublasSetStream_v2,    cublasSetPointerMode_v2,
          cublasSetWorkspace_v2, cublasSetSmCountTarget,
          cublasGemmEx,          cublasStrsm_v2};
  found = true;
}

void find_solver() {
  solver = {cusolverDnCreate,    cusolverDnDestroy,
            cusolverDnSetStream, cusolverDnDgetrf_bufferSize,
            cusolverDnDgetrf,    cusolverDnDgetrs};
  found_solver = true;
}

bool exchange_capture_mode(hone_cuda_callers *callers) {
  auto mode = static_cast<cudaStreamCaptureMode>(callers->capture_mode);
  if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
    return false;
  callers->capture_mode = mode;
  return true;
}

/* An emulated device has one context. */
int emulated_id(void *, unsigned long long *id) {
  int device = 0;
  const cudaError_t e = cudaGetDevice(&device);
  *id = 1ULL + (unsigned)device;
  return (int)e;
}
context_id_fn *context_id() { return emulated_id; }

#else

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

template <class F> bool find(void *library, const char *name, F *call) {
  *call = reinterpret_cast<F>(dlsym(library, name));
  return *call != nullptr;
}

void find_all() {
  void *library = dlopen("libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW);
  found = library != nullptr &&
          find(library, "cublasCreate_v2", &blas.create) &&
          find(library, "cublasDestroy_v2", &blas.destroy) &&
          find(library, "cublasSetStream_v2", &blas.set_stream) &&
          find(library, "cublasSetPointerMode_v2", &blas.set_pointer_mode) &&
          find(library, "cublasSetWorkspace_v2", &blas.set_workspace) &&
          find(library, "cublasSetSmCountTarget", &blas.set_processors) &&
          find(library, "cublasGemmEx", &blas.gemm) &&
          find(library, "cublasStrsm_v2", &blas.trsm);
}

void find_solver() {
  void *library = dlopen("libcusolver.so." TEXT(CUSOLVER_VER_MAJOR), RTLD_NOW);
  found_solver =
      library != nullptr && find(library, "cusolverDnCreate", &solver.create) &&
      find(library, "cusolverDnDestroy", &solver.destroy) &&
      find(library, "cusolverDnSetStream", &solver.set_stream) &&
      find(library, "cusolverDnDgetrf_bufferSize", &solver.buffer_size) &&
      find(library, "cusolverDnDgetrf", &solver.getrf) &&
      find(library, "cusolverDnDgetrs", &solver.getrs);
}

/* The runtime's function would create a context. */
bool exchange_capture_mode(hone_cuda_callers *callers) {
  return hone_driver_exchange_capture_mode(callers->driver,
                                           &callers->capture_mode);
}

/* The number of a context, NULL: of the current one. The driver has this
   function since CUDA 12, and the runtime has loaded it. No lock is held that a
   thread could wait for which has one of the loader's: two may look at once. */
context_id_fn *context_id() {
  static std::atomic<context_id_fn *> found_one{nullptr};
  context_id_fn *function = found_one.load(std::memory_order_acquire);
  if (function != nullptr)
    return function;
  void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  if (library != nullptr)
    (void)find(library, "cuCtxGetId", &function);
  found_one.store(function, std::memory_order_release);
  return function;
}

#endif

/* A context that has been found to be the primary one of its device. Its
   address may be another one's later, its number not. */
struct primary_context {
  void *at;
  unsigned long long id;
};
thread_local primary_context known;

bool is_primary(void *context, int ordinal) {
  unsigned long long id = 0;
  context_id_fn *const number = context_id();
  const bool numbered = number != nullptr && number(context, &id) == 0;
  if (numbered && known.at == context && known.id == id)
    return true;
  const hone_device_memory in = {ordinal, context};
  const bool is = hone_device_memory_is_primary(&in);
  if (is && numbered)
    known = {context, id};
  return is;
}

} // namespace

const hone_cusolver *hone_cuda_solver() {
  pthread_once(&solver_once, find_solver);
  return found_solver ? &solver : nullptr;
}

void hone_cuda_enter(hone_cuda_callers *callers) {
  int ordinal = 0;
  (void)cudaGetLastError();
  void *context = nullptr;
  *callers = {hone_driver_present(), HONE_DRIVER_RELAXED, false, nullptr};
  callers->relaxed = exchange_capture_mode(callers);
  if (callers->driver == nullptr || callers->driver->current(&context) != 0 ||
      context == nullptr || cudaGetDevice(&ordinal) != cudaSuccess ||
      is_primary(context, ordinal))
    return;
  callers->context = context;
  (void)cudaSetDevice(ordinal); /* makes the primary context current */
}

void hone_cuda_leave(hone_cuda_callers *callers) {
  if (callers->context != nullptr)
    (void)callers->driver->set_current(callers->context);
  if (callers->relaxed)
    (void)exchange_capture_mode(callers);
}

bool hone_cuda_context(uint64_t *id) {
  unsigned long long number = 0;
  if (cudaFree(nullptr) != cudaSuccess) { /* makes a context current */
    (void)cudaGetLastError();
    return false;
  }
  context_id_fn *const of = context_id();
  const bool known = of != nullptr && of(nullptr, &number) == 0;
  *id = number;
  return known;
}

const hone_cublas *hone_cuda_blas() {
  pthread_once(&once, find_all);
  return found ? &blas : nullptr;
}

int hone_cuda_devices(int wanted) {
  int present = 0;
  if (cudaGetDeviceCount(&present) != cudaSuccess) {
    (void)cudaGetLastError();
    present = 0;
  }
  return wanted > 0 && wanted < present ? wanted : present;
}

/* Those of kept.cu and several/kept.cu, which are compiled for either type. */
int64_t hone_cuda_release_kept();
int64_t hone_z_cuda_release_kept();
int64_t hone_cuda_kept_bytes();
int64_t hone_z_cuda_kept_bytes();
int64_t hone_several_release_kept();
int64_t hone_z_several_release_kept();
int64_t hone_several_kept_bytes();
int64_t hone_z_several_kept_bytes();

int64_t hone_cuda_release_kept_of(bool complex_entries) {
  return complex_entries ? hone_z_cuda_release_kept()
                         : hone_cuda_release_kept();
}

int64_t hone_cuda_kept_bytes_of(bool complex_entries) {
  return complex_entries ? hone_z_cuda_kept_bytes() : hone_cuda_kept_bytes();
}

int64_t hone_several_release_kept_of(bool complex_entries) {
  return complex_entries ? hone_z_several_release_kept()
                         : hone_several_release_kept();
}

int64_t hone_several_kept_bytes_of(bool complex_entries) {
  return complex_entries ? hone_z_several_kept_bytes()
                         : hone_several_kept_bytes();
}

int64_t hone_cuda_release_all_kept() {
  int64_t bytes = 0;
  for (bool complex_entries : {false, true})
    bytes += hone_cuda_kept_bytes_of(complex_entries) +
             hone_several_kept_bytes_of(complex_entries);
  if (bytes == 0)
    return 0;
  const hone_cuda_entry meanwhile;
  bytes = 0;
  for (bool complex_entries : {false, true})
    bytes += hone_cuda_release_kept_of(complex_entries) +
             hone_several_release_kept_of(complex_entries);
  return bytes;
}
