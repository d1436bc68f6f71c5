/* SPDX-License-Identifier: BSD-3-Clause */
/* Several emulated devices: whose memory, streams, events and handles are
   whose, and what the emulator does not let pass. */
#include "tests/emulate/several_devices.h"

extern "C" {
#include "api/hone.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/launch.h"

#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct numbers_at {
  int count;
  double *p;
};

__global__ void add_one(const numbers_at at) {
  const int i = (int)threadIdx.x;
  if (i < at.count)
    at.p[i] += 1.0;
}

cudaError_t launch(double *p, cudaStream_t stream) {
  HONE_LAUNCH(add_one, 1, 32, 0, stream, numbers_at{8, p});
  return cudaGetLastError();
}

/* Returns true if a child of this process that does so is ended by the
   emulator. */
template <class F> bool ends(F call) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    (void)freopen("/dev/null", "w", stderr);
    call();
    _exit(0);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* A kernel in a stream that does not block is not behind copies from memory
   that is not pinned, nor behind cudaMemset; it is once something has waited.
 */
TEST(emulated_devices, copies_of_pageable_memory_arrive_late) {
  double one[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out[8], *p = nullptr;
  cudaStream_t stream;
  MUST(cudaMalloc(reinterpret_cast<void **>(&p), sizeof one));
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaMemcpy(p, one, sizeof one, cudaMemcpyHostToDevice));
  MUST(launch(p, stream));
  MUST(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
  CHECK_EQ_INT(out[0] == 1.0 && out[7] == 1.0, 1); /* what was added is gone */
  MUST(cudaMemset(p, 0, sizeof one));
  MUST(cudaDeviceSynchronize());
  MUST(launch(p, stream));
  MUST(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
  CHECK_EQ_INT(out[0] == 1.0 && out[7] == 1.0, 1);
  MUST(cudaMemcpy(p, one, sizeof one, cudaMemcpyHostToDevice));
  MUST(launch(p, nullptr));
  MUST(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
  CHECK_EQ_INT(out[0] == 2.0 && out[7] == 2.0, 1);
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(p));
}

TEST(emulated_devices, there_is_one_unless_more_are_asked_for) {
  int count = 0;
  {
    const several_devices three(3);
    MUST(cudaGetDeviceCount(&count));
    CHECK_EQ_INT(count, 3);
    CHECK_EQ_INT(cudaSetDevice(2), cudaSuccess);
    CHECK_EQ_INT(cudaSetDevice(3), cudaErrorInvalidDevice);
    CHECK_EQ_INT(cudaSetDevice(-1), cudaErrorInvalidDevice);
    (void)cudaGetLastError();
  }
  {
    const several_devices as_the_environment_says(0);
    setenv("HONE_EMULATE_DEVICES", "4", 1);
    MUST(cudaGetDeviceCount(&count));
    CHECK_EQ_INT(count, 4);
    setenv("HONE_EMULATE_DEVICES", "99", 1);
    MUST(cudaGetDeviceCount(&count));
    CHECK_EQ_INT(count, 1);
    unsetenv("HONE_EMULATE_DEVICES");
    MUST(cudaGetDeviceCount(&count));
    CHECK_EQ_INT(count, 1);
  }
}

TEST(emulated_devices, each_thread_has_a_current_device) {
  const several_devices two(2);
  int here = -1, there = -1;
  MUST(cudaSetDevice(1));
  std::thread other([&there] { (void)cudaGetDevice(&there); });
  other.join();
  MUST(cudaGetDevice(&here));
  CHECK_EQ_INT(here, 1);
  CHECK_EQ_INT(there, 0);
}

/* A solver's device need not be current in later calls, and the caller's stays
   the current one. */
TEST(emulated_devices, a_solver_works_on_its_own) {
  constexpr int64_t n = 40;
  const several_devices two(2);
  std::vector<double> a(n * n, 1.0), b(n, 1.0), x(n, 0.0);
  for (int64_t i = 0; i < n; i++)
    a[static_cast<size_t>(i * (n + 1))] = 3.0 * n;
  hone_options options = HONE_OPTIONS_INIT;
  options.device = HONE_DEVICE_CUDA;
  hone_solver *solver = nullptr;
  MUST(cudaSetDevice(1));
  REQUIRE(hone_solver_create(&solver, n, &options) == HONE_OK);
  for (int turn = 0; turn < 2; turn++) {
    int here = -1;
    hone_report report = HONE_REPORT_INIT;
    REQUIRE(hone_solver_factor(solver, a.data(), n, &report) == HONE_OK);
    CHECK(std::string(report.reason).empty()); /* or the host has done it */
    MUST(cudaSetDevice(0));
    CHECK_EQ_INT(hone_solver_solve(solver, 1, b.data(), n, x.data(), n, nullptr,
                                   &report),
                 HONE_OK);
    CHECK(std::string(report.reason).empty());
    CHECK_NEAR(x[0], 1.0 / (4.0 * n - 1.0), 1e-15);
    MUST(cudaGetDevice(&here));
    CHECK_EQ_INT(here, 0);
  }
  hone_solver_destroy(&solver);
  (void)hone_release_kept();
}

TEST(emulated_devices, memory_belongs_to_the_current_device) {
  const several_devices two(2);
  double *p = nullptr;
  size_t before[2], after[2], total;
  cudaPointerAttributes at;
  for (int d = 0; d < 2; d++) {
    MUST(cudaSetDevice(d));
    MUST(cudaMemGetInfo(&before[d], &total));
  }
  MUST(cudaMalloc(&p, 1024));
  for (int d = 0; d < 2; d++) {
    MUST(cudaSetDevice(d));
    MUST(cudaMemGetInfo(&after[d], &total));
  }
  CHECK_EQ_INT((int64_t)(before[0] - after[0]), 0);
  CHECK_EQ_INT((int64_t)(before[1] - after[1]), 1024);
  MUST(cudaPointerGetAttributes(&at, p));
  CHECK_EQ_INT(at.type, cudaMemoryTypeDevice);
  CHECK_EQ_INT(at.device, 1);
  MUST(cudaSetDevice(0));
  MUST(cudaFree(p));
}

/* A kernel on device 0 that is given memory of device 1, within a structure. */
TEST(emulated_devices, a_kernel_needs_access_to_what_it_touches) {
  const several_devices two(2);
  double *p = nullptr, v = 0.0;
  int can = 0;
  MUST(cudaSetDevice(1));
  MUST(cudaMalloc(&p, 8 * sizeof *p));
  MUST(cudaMemset(p, 0, 8 * sizeof *p));
  CHECK_EQ_INT(launch(p, nullptr), cudaSuccess);
  MUST(cudaSetDevice(0));
  CHECK(ends([p] { (void)launch(p, nullptr); }));
  MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK_EQ_INT(can, 1);
  MUST(cudaDeviceEnablePeerAccess(1, 0));
  CHECK_EQ_INT(cudaDeviceEnablePeerAccess(1, 0),
               cudaErrorPeerAccessAlreadyEnabled);
  (void)cudaGetLastError();
  CHECK_EQ_INT(launch(p, nullptr), cudaSuccess);
  MUST(cudaMemcpy(&v, p, sizeof v, cudaMemcpyDeviceToHost));
  CHECK(v == 2.0);
  MUST(cudaDeviceDisablePeerAccess(1));
  CHECK(ends([p] { (void)launch(p, nullptr); }));
  CHECK(ends([p] { (void)cudaMemset(p, 0, 8); }));
  MUST(cudaFree(p));
}

TEST(emulated_devices, streams_and_events_stay_on_their_device) {
  const several_devices two(2);
  cudaStream_t one = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  double *p = nullptr;
  MUST(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  MUST(cudaSetDevice(1));
  MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  MUST(cudaMalloc(&p, 8 * sizeof *p));
  CHECK_EQ_INT(launch(p, one), cudaErrorInvalidResourceHandle);
  CHECK_EQ_INT(launch(p, other), cudaSuccess);
  CHECK_EQ_INT(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
  CHECK_EQ_INT(cudaEventRecord(event, one), cudaSuccess);
  CHECK_EQ_INT(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  MUST(cudaFree(p));
  MUST(cudaEventDestroy(event));
  MUST(cudaStreamDestroy(one));
  MUST(cudaStreamDestroy(other));
}

TEST(emulated_devices, handles_stay_on_their_device) {
  const several_devices two(2);
  const hone_cublas *blas = hone_cuda_blas();
  cublasHandle_t handle = nullptr;
  float *p = nullptr;
  const float one = 1.0F, zero = 0.0F;
  CHECK_EQ_INT(blas->create(&handle), CUBLAS_STATUS_SUCCESS);
  MUST(cudaMalloc(&p, 3 * sizeof *p));
  MUST(cudaMemset(p, 0, 3 * sizeof *p));
  auto gemm = [&] {
    return blas->gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, p,
                      CUDA_R_32F, 1, p + 1, CUDA_R_32F, 1, &zero, p + 2,
                      CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  };
  CHECK_EQ_INT(gemm(), CUBLAS_STATUS_SUCCESS);
  MUST(cudaSetDevice(1));
  CHECK(ends([&] { (void)gemm(); }));
  MUST(cudaSetDevice(0));
  MUST(cudaFree(p));
  CHECK_EQ_INT(blas->destroy(handle), CUBLAS_STATUS_SUCCESS);
}

/* Two rows of three numbers go from device 1 to device 0. */
TEST(emulated_devices, peer_copies_need_no_access) {
  const several_devices two(2);
  double *to = nullptr, *from = nullptr, out[8];
  const double in[8] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0};
  MUST(cudaMalloc(&to, sizeof out));
  MUST(cudaSetDevice(1));
  MUST(cudaMalloc(&from, sizeof in));
  MUST(cudaMemcpy(from, in, sizeof in, cudaMemcpyHostToDevice));
  MUST(cudaMemcpyPeerAsync(to, 0, from, 1, sizeof in));
  cudaMemcpy3DPeerParms p = {};
  p.srcPtr = make_cudaPitchedPtr(from, 32, 32, 2);
  p.dstPtr = make_cudaPitchedPtr(to + 1, 24, 24, 2);
  p.srcDevice = 1;
  p.dstDevice = 0;
  p.extent = make_cudaExtent(24, 2, 1);
  MUST(cudaMemcpy3DPeerAsync(&p, nullptr));
  MUST(cudaMemcpy(out, to, sizeof out, cudaMemcpyDeviceToHost));
  const double expected[8] = {1.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0};
  CHECK(memcmp(out, expected, sizeof out) == 0);
  CHECK_EQ_INT((int64_t)hone_emulate::devices.peer_bytes, 64 + 48);
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes, 64 + 48);
  MUST(cudaDeviceEnablePeerAccess(0, 0));
  MUST(cudaMemcpyPeerAsync(to, 0, from, 1, 8));
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes, 64 + 48);
  CHECK(ends([&] { (void)cudaMemcpyPeerAsync(to, 1, from, 1, 8); }));
  CHECK(ends([&] { (void)cudaMemcpyPeerAsync(to, 0, from, 1, 72); }));
  MUST(cudaFree(to));
  MUST(cudaFree(from));
}

} // namespace
