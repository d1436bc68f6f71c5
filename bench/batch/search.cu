/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks for the shape of thread blocks that solves batches of small systems in
 * the least time, for each class of orders: R x C threads hold a matrix, and so
 * many blocks shall share a multiprocessor. Prints the median of each, in
 * microseconds, from device memory to device memory, beside cuBLAS's
 * getrfBatched and getrsBatched, which neither refine nor judge.
 *
 *   search_batch [count]     so many systems of each order (10000)
 *
 * Shapes of gpu_sp/batch/systems.cu are the best of this list on an H200.
 */
#include "gpu_sp/batch/kernel.h"

#include <cublas_v2.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

enum { ROUNDS = 9 };

void must(bool is, const char *what) {
  if (is)
    return;
  fprintf(stderr, "search_batch: %s failed\n", what);
  exit(1);
}

#define MUST(call) must((call) == 0, #call)

template <class T> T *device_array(size_t count) {
  void *p = nullptr;
  MUST(cudaMalloc(&p, count * sizeof(T)));
  return static_cast<T *>(p);
}

/* Random systems on the device. */
struct problem {
  int parts;
  int64_t count, n;
  std::vector<double> host;
  double *a, *b, *x;
  hone_device_systems in;
};

problem make(int parts, int64_t count, int64_t n) {
  problem p = {};
  p.parts = parts;
  p.count = count;
  p.n = n;
  const size_t all = static_cast<size_t>(count * n * n * parts);
  const size_t sides = static_cast<size_t>(count * n * parts);
  p.host.resize(all);
  uint64_t seed = 1;
  for (double &v : p.host)
    v = static_cast<double>(hone_random_bits(&seed) >> 11) * 0x1p-53 - 0.5;
  p.a = device_array<double>(all);
  p.b = device_array<double>(sides);
  p.x = device_array<double>(sides);
  MUST(cudaMemcpy(p.a, p.host.data(), all * 8, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(p.b, p.host.data(), sides * 8, cudaMemcpyHostToDevice));
  p.in.count = count;
  p.in.n = n;
  p.in.nrhs = 1;
  p.in.parts = parts;
  p.in.a = {p.a, n * n, nullptr};
  p.in.b = {p.b, n, nullptr};
  p.in.x = {p.x, n, nullptr};
  p.in.by_row = 1;
  p.in.by_column = p.in.ldb = p.in.ldx = n;
  p.in.limit = 0x1p-51;
  p.in.corrections = 3;
  p.in.seed = 1;
  p.in.seed_step = 12345;
  p.in.lane = device_array<hone_block_lane>(static_cast<size_t>(count));
  p.in.column = device_array<hone_block_column>(static_cast<size_t>(count));
  return p;
}

void discard(problem *p) {
  for (void *at : {static_cast<void *>(p->a), static_cast<void *>(p->b),
                   static_cast<void *>(p->x), static_cast<void *>(p->in.lane),
                   static_cast<void *>(p->in.column)})
    MUST(cudaFree(at));
}

int64_t served(const problem &p) {
  std::vector<hone_block_lane> lane(static_cast<size_t>(p.count));
  MUST(cudaMemcpy(lane.data(), p.in.lane, lane.size() * sizeof lane[0],
                  cudaMemcpyDeviceToHost));
  return std::count_if(lane.begin(), lane.end(),
                       [](const hone_block_lane &l) { return l.serves; });
}

/* The median of ROUNDS runs, in microseconds; 'before' is not timed. */
template <class Before, class Run> double time_of(Before before, Run run) {
  cudaEvent_t from, to;
  std::vector<float> ms(ROUNDS + 1);
  MUST(cudaEventCreate(&from));
  MUST(cudaEventCreate(&to));
  for (float &t : ms) {
    before();
    MUST(cudaEventRecord(from));
    run();
    MUST(cudaEventRecord(to));
    MUST(cudaEventSynchronize(to));
    MUST(cudaEventElapsedTime(&t, from, to));
  }
  MUST(cudaEventDestroy(from));
  MUST(cudaEventDestroy(to));
  std::sort(ms.begin() + 1, ms.end());
  return 1e3 * static_cast<double>(ms[1 + ROUNDS / 2]);
}

template <class S, int BLOCKS> void try_shape(const problem &p) {
  const size_t lanes = static_cast<size_t>(p.count) * sizeof(hone_block_lane);
  const double us = time_of([&] { MUST(cudaMemset(p.in.lane, 0, lanes)); },
                            [&] { MUST((launch<S, BLOCKS>(p.in, nullptr))); });
  cudaFuncAttributes a;
  int blocks = 0;
  MUST(cudaFuncGetAttributes(&a, solve_systems<S, BLOCKS>));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, solve_systems<S, BLOCKS>, S::THREADS, sizeof(shared_memory<S>)));
  printf("| %d | %d | %d x %d | %d | %d | %d | %d | %.1f | %lld |\n", p.parts,
         static_cast<int>(p.n), S::R, S::C, BLOCKS, blocks, a.numRegs,
         static_cast<int>(a.localSizeBytes), us,
         static_cast<long long>(p.count - served(p)));
  fflush(stdout);
}

/* cuBLAS: the factors take the place of a copy of A, which is not timed. */
void time_peer(const problem &p) {
  cublasHandle_t handle;
  MUST(cublasCreate(&handle));
  const int n = static_cast<int>(p.n), count = static_cast<int>(p.count);
  const size_t bytes = p.host.size() * sizeof(double);
  double *f = device_array<double>(p.host.size());
  int *pivots = device_array<int>(static_cast<size_t>(count * n));
  int *info = device_array<int>(static_cast<size_t>(count));
  std::vector<double *> list(static_cast<size_t>(2 * count));
  for (int k = 0; k < count; k++) {
    list[static_cast<size_t>(k)] =
        f + static_cast<int64_t>(k) * n * n * p.parts;
    list[static_cast<size_t>(count + k)] =
        p.x + static_cast<int64_t>(k) * n * p.parts;
  }
  double **at = device_array<double *>(list.size());
  MUST(cudaMemcpy(at, list.data(), list.size() * sizeof list[0],
                  cudaMemcpyHostToDevice));
  const double us = time_of(
      [&] {
        MUST(cudaMemcpy(f, p.a, bytes, cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(p.x, p.b, bytes / static_cast<size_t>(n),
                        cudaMemcpyDeviceToDevice));
      },
      [&] {
        int host = 0;
        if (p.parts == 1) {
          MUST(cublasDgetrfBatched(handle, n, at, n, pivots, info, count));
          MUST(cublasDgetrsBatched(handle, CUBLAS_OP_N, n, 1, at, n, pivots,
                                   at + count, n, &host, count));
        } else {
          auto z = reinterpret_cast<cuDoubleComplex **>(at);
          MUST(cublasZgetrfBatched(handle, n, z, n, pivots, info, count));
          MUST(cublasZgetrsBatched(handle, CUBLAS_OP_N, n, 1, z, n, pivots,
                                   z + count, n, &host, count));
        }
      });
  printf("| %d | %d | cuBLAS | | | | | %.1f | |\n", p.parts, n, us);
  MUST(cublasDestroy(handle));
  for (void *q : {static_cast<void *>(f), static_cast<void *>(pivots),
                  static_cast<void *>(info), static_cast<void *>(at)})
    MUST(cudaFree(q));
}

template <class Try>
void with(int parts, int64_t count, int64_t n, Try shapes) {
  problem p = make(parts, count, n);
  time_peer(p);
  shapes(p);
  discard(&p);
}

void search_real(int64_t count) {
  with(1, count, 8, [](const problem &p) {
    try_shape<shape<1, 8, 4, 8>, 16>(p);
    try_shape<shape<1, 8, 4, 8>, 24>(p);
  });
  with(1, count, 16, [](const problem &p) {
    try_shape<shape<1, 8, 4, 16>, 12>(p);
    try_shape<shape<1, 8, 4, 16>, 16>(p);
  });
  with(1, count, 32, [](const problem &p) {
    try_shape<shape<1, 32, 2, 32>, 8>(p);
    try_shape<shape<1, 8, 4, 32>, 8>(p);
    try_shape<shape<1, 16, 4, 32>, 6>(p);
    try_shape<shape<1, 8, 8, 32>, 6>(p);
    try_shape<shape<1, 8, 8, 32>, 8>(p);
  });
  with(1, count, 64, [](const problem &p) {
    try_shape<shape<1, 32, 4, 64>, 4>(p);
    try_shape<shape<1, 16, 8, 64>, 3>(p);
    try_shape<shape<1, 16, 8, 64>, 4>(p);
    try_shape<shape<1, 8, 8, 64>, 4>(p);
    try_shape<shape<1, 16, 4, 64>, 4>(p);
  });
  with(1, count, 96, [](const problem &p) {
    try_shape<shape<1, 32, 8, 96>, 2>(p);
    try_shape<shape<1, 16, 16, 96>, 1>(p);
    try_shape<shape<1, 16, 16, 96>, 2>(p);
  });
  with(1, count, 128, [](const problem &p) {
    try_shape<shape<1, 32, 8, 128>, 1>(p);
    try_shape<shape<1, 16, 16, 128>, 1>(p);
    try_shape<shape<1, 16, 8, 128>, 1>(p);
    try_shape<shape<1, 16, 32, 128>, 1>(p);
  });
}

void search_complex(int64_t count) {
  with(2, count, 8, [](const problem &p) {
    try_shape<shape<2, 8, 4, 8>, 12>(p);
    try_shape<shape<2, 8, 4, 8>, 16>(p);
  });
  with(2, count, 16, [](const problem &p) {
    try_shape<shape<2, 8, 4, 16>, 8>(p);
    try_shape<shape<2, 8, 4, 16>, 12>(p);
    try_shape<shape<2, 8, 8, 16>, 6>(p);
  });
  with(2, count, 32, [](const problem &p) {
    try_shape<shape<2, 32, 2, 32>, 5>(p);
    try_shape<shape<2, 16, 4, 32>, 5>(p);
    try_shape<shape<2, 8, 8, 32>, 5>(p);
    try_shape<shape<2, 16, 8, 32>, 4>(p);
  });
  with(2, count, 64, [](const problem &p) {
    try_shape<shape<2, 32, 8, 64>, 2>(p);
    try_shape<shape<2, 16, 16, 64>, 1>(p);
    try_shape<shape<2, 16, 16, 64>, 2>(p);
    try_shape<shape<2, 16, 8, 64>, 2>(p);
  });
}

} // namespace

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : 10000;
  printf("| parts | n | threads | blocks wanted | blocks | registers | local "
         "bytes | us | not served |\n|---|---|---|---|---|---|---|---|---|\n");
  search_real(count);
  search_complex(count);
  return 0;
}
