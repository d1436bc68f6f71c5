/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the library's iterative Crout method for bench_papers, from host memory
   to host memory. Tests compile it for the CPU too (tests/emulate/emulate.h).
 */
#ifdef HONE_EMULATE
#include HONE_EMULATE
#else
#include <cuda_runtime.h>
#endif

#include "bench/harness/systems.h"
#include "bench/papers/gpu.h"

extern "C" {
#include "api/hone.h"
}

namespace {

int crout(hone_crout *c, int64_t n, float *a, hone_crout_report *r) {
  return hone_crout_s(c, n, a, n, r);
}
int crout(hone_crout *c, int64_t n, double *a, hone_crout_report *r) {
  return hone_crout_d(c, n, a, n, r);
}

std::string text_of(cudaError_t e, const char *what) {
  if (e == cudaSuccess)
    return "";
  (void)cudaGetLastError(); /* so that the next call does not report it */
  return std::string(what) + ": " + cudaGetErrorString(e);
}

} // namespace

template <class T>
std::string gpu_crout(int64_t n, const T *a, T *z, const hone_crout_options &o,
                      hone_crout_report *report, double *ms) {
  const size_t bytes = static_cast<size_t>(n * n) * sizeof(T);
  T *d = nullptr;
  hone_crout *method = nullptr;
  std::string why =
      text_of(cudaMalloc(reinterpret_cast<void **>(&d), bytes), "cudaMalloc");
  if (!why.empty())
    return why;
  const int st = hone_crout_create(&method, n, &o);
  if (st != HONE_OK)
    why = std::string("hone_crout_create: ") + hone_status_text(st);
  const double start = now_s();
  if (why.empty())
    why = text_of(cudaMemcpy(d, a, bytes, cudaMemcpyHostToDevice), "copy of A");
  if (why.empty()) /* the copy of pageable memory may not have ended */
    why = text_of(cudaDeviceSynchronize(), "waiting");
  if (why.empty()) {
    (void)crout(method, n, d, report); /* its status is in the report */
    why = text_of(cudaMemcpy(z, d, bytes, cudaMemcpyDeviceToHost), "copy of Z");
  }
  *ms = 1e3 * (now_s() - start);
  hone_crout_destroy(method);
  (void)cudaFree(d);
  return why;
}

template std::string gpu_crout(int64_t, const float *, float *,
                               const hone_crout_options &, hone_crout_report *,
                               double *);
template std::string gpu_crout(int64_t, const double *, double *,
                               const hone_crout_options &, hone_crout_report *,
                               double *);
