/* SPDX-License-Identifier: BSD-3-Clause */
/* A call made while the caller captures a CUDA graph, in the mode in which
   other calls of the program break it. To free device memory, as a fallback to
   double precision does, breaks it in any mode. */
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "api/hone.h"
}

namespace {

void solve_during_capture(int64_t n) {
  numbers r = {static_cast<uint64_t>(n)};
  const std::vector<double> a = r.array<double>(n * n), b = r.array<double>(n);
  std::vector<double> x(b.size());
  hone_options o = HONE_OPTIONS_INIT;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  o.device = HONE_DEVICE_CUDA;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  (void)hone_release_kept();
  for (int k = 0; k < 2; k++) { /* the second one finds a kept engine */
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_EQ_INT(
        hone_solve(n, 1, a.data(), n, b.data(), n, x.data(), n, &o, nullptr),
        HONE_OK);
    ct_note("n %d, solve %d", (int)n, k);
    CHECK_EQ_INT(cudaStreamEndCapture(stream, &graph), cudaSuccess);
#ifndef HONE_EMULATE
    MUST(cudaGraphDestroy(graph));
#endif
  }
  MUST(cudaStreamDestroy(stream));
  (void)hone_release_kept();
}

TEST(captured_graph, is_not_broken_by_a_solve) {
  NEED_DEVICE();
  solve_during_capture(150);
  solve_during_capture(600); /* by several threads */
}

} // namespace
