/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks for the shape of thread blocks that solves batches of small systems in
 * the least time, for each class of orders: R x C threads hold a matrix, and so
 * many blocks shall share a multiprocessor. Prints the median of each, in
 * microseconds, from device memory to device memory, beside cuBLAS's
 * getrfBatched and getrsBatched, or cuSOLVER's potrfBatched and
 * potrsBatched, which neither refine nor judge.
 *
 *   search_batch [count] [groups] [real] [complex] [panels]
 *                [complex-panels] [definite] [definite-panels]
 *
 * solves so many systems of each order (10000; fewer of large ones), by an
 * inverse in registers, of real, complex or definite systems, with several
 * systems in a warp (groups) or not, or by panels;
 * without words all of these. A time is beside the floor of one reading of A.
 *
 * Shapes of gpu_sp/batch/systems.cu are the best of this list on an H100, those
 * of complex systems of order 32, 64 and, by panels, 128, and of definite ones
 * on an H200.
 */
#include "bench/batch/search.h"

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <cstring>

using namespace search;

namespace {

/* Arrays that cuBLAS and cuSOLVER want: the factors take the place of a copy of
   A, and x that of a copy of b, which is not timed. */
struct peer {
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  double *f;
  int *pivots, *info;
  double **at; /* count matrices, and count right-hand sides */
};

peer open_peer(const problem &p) {
  peer q = {};
  const int64_t n = p.n, count = p.count;
  MUST(cublasCreate(&q.blas));
  MUST(cusolverDnCreate(&q.solver));
  q.f = device_array<double>(p.host.size());
  q.pivots = device_array<int>(static_cast<size_t>(count * n));
  q.info = device_array<int>(static_cast<size_t>(count));
  std::vector<double *> list(static_cast<size_t>(2 * count));
  for (int64_t k = 0; k < count; k++) {
    list[static_cast<size_t>(k)] = q.f + k * n * n * p.parts;
    list[static_cast<size_t>(count + k)] = p.x + k * n * p.parts;
  }
  q.at = device_array<double *>(list.size());
  MUST(cudaMemcpy(q.at, list.data(), list.size() * sizeof list[0],
                  cudaMemcpyHostToDevice));
  return q;
}

void solve_lu(const problem &p, const peer &q) {
  const int n = static_cast<int>(p.n), count = static_cast<int>(p.count);
  int host = 0;
  if (p.parts == 1) {
    MUST(cublasDgetrfBatched(q.blas, n, q.at, n, q.pivots, q.info, count));
    MUST(cublasDgetrsBatched(q.blas, CUBLAS_OP_N, n, 1, q.at, n, q.pivots,
                             q.at + count, n, &host, count));
  } else {
    auto z = reinterpret_cast<cuDoubleComplex **>(q.at);
    MUST(cublasZgetrfBatched(q.blas, n, z, n, q.pivots, q.info, count));
    MUST(cublasZgetrsBatched(q.blas, CUBLAS_OP_N, n, 1, z, n, q.pivots,
                             z + count, n, &host, count));
  }
}

void solve_definite(const problem &p, const peer &q) {
  const int n = static_cast<int>(p.n), count = static_cast<int>(p.count);
  const auto lower = CUBLAS_FILL_MODE_LOWER;
  if (p.parts == 1) {
    MUST(cusolverDnDpotrfBatched(q.solver, lower, n, q.at, n, q.info, count));
    MUST(cusolverDnDpotrsBatched(q.solver, lower, n, 1, q.at, n, q.at + count,
                                 n, q.info, count));
  } else {
    auto z = reinterpret_cast<cuDoubleComplex **>(q.at);
    MUST(cusolverDnZpotrfBatched(q.solver, lower, n, z, n, q.info, count));
    MUST(cusolverDnZpotrsBatched(q.solver, lower, n, 1, z, n, z + count, n,
                                 q.info, count));
  }
}

} // namespace

void search::time_peer(const problem &p) {
  const peer q = open_peer(p);
  const size_t bytes = p.host.size() * sizeof(double);
  const double us = time_of(
      [&] {
        MUST(cudaMemcpy(q.f, p.a, bytes, cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(p.x, p.b, bytes / static_cast<size_t>(p.n),
                        cudaMemcpyDeviceToDevice));
      },
      [&] {
        if (p.in.definite)
          solve_definite(p, q);
        else
          solve_lu(p, q);
      });
  printf("| %d | %d | %s | | | | | %.1f | |\n", p.parts, static_cast<int>(p.n),
         p.in.definite ? "cuSOLVER" : "cuBLAS", us);
  printf("| %d | %d | floor: A once at 4.3 TB/s | | | | | %.1f | |\n", p.parts,
         static_cast<int>(p.n), static_cast<double>(bytes) / 4.3e6);
  fflush(stdout);
  MUST(cublasDestroy(q.blas));
  MUST(cusolverDnDestroy(q.solver));
  for (void *at : {static_cast<void *>(q.f), static_cast<void *>(q.pivots),
                   static_cast<void *>(q.info), static_cast<void *>(q.at)})
    MUST(cudaFree(at));
}

namespace {

void search_real(int64_t count) {
  with(1, count, 32, false, [](const problem &p) {
    try_shape<shape<1, 8, 4, 32>, 8>(p);
    try_shape<shape<1, 8, 4, 32>, 10>(p);
    try_shape<shape<1, 8, 4, 32>, 12>(p);
    try_shape<shape<1, 8, 4, 32>, 14>(p);
    try_shape<shape<1, 8, 4, 32>, 16>(p);
    try_shape<shape<1, 16, 4, 32>, 6>(p);
    try_shape<shape<1, 16, 4, 32>, 8>(p);
    try_shape<shape<1, 32, 1, 32>, 12>(p);
  });
  with(1, count, 64, false, [](const problem &p) {
    try_shape<shape<1, 16, 8, 64>, 3>(p);
    try_shape<shape<1, 16, 8, 64>, 4>(p);
    try_shape<shape<1, 16, 8, 64>, 5>(p);
    try_shape<shape<1, 16, 4, 64>, 4>(p);
    try_shape<shape<1, 16, 4, 64>, 5>(p);
    try_shape<shape<1, 16, 4, 64>, 6>(p);
    try_shape<shape<1, 32, 4, 64>, 3>(p);
    try_shape<shape<1, 32, 4, 64>, 4>(p);
    try_shape<shape<1, 32, 8, 64>, 2>(p);
    try_shape<shape<1, 32, 8, 64>, 3>(p);
  });
  with(1, count, 96, false, [](const problem &p) {
    try_shape<shape<1, 16, 8, 96>, 2>(p);
    try_shape<shape<1, 16, 8, 96>, 3>(p);
    try_shape<shape<1, 48, 4, 96>, 2>(p);
    try_shape<shape<1, 48, 8, 96>, 1>(p);
  });
  with(1, count, 128, false, [](const problem &p) {
    try_shape<shape<1, 32, 8, 128>, 1>(p);
    try_shape<shape<1, 16, 8, 128>, 1>(p);
    try_shape<shape<1, 64, 4, 128>, 1>(p);
    try_shape<shape<1, 64, 8, 128>, 1>(p);
  });
}

void search_complex(int64_t count) {
  with(2, count, 32, false, [](const problem &p) {
    try_shape<shape<2, 8, 4, 32>, 7>(p);
    try_shape<shape<2, 8, 4, 32>, 8>(p);
    try_shape<shape<2, 8, 4, 32>, 10>(p);
    try_shape<shape<2, 16, 4, 32>, 5>(p);
    try_shape<shape<2, 16, 4, 32>, 6>(p);
    try_shape<shape<2, 16, 4, 32>, 8>(p);
  });
  with(2, count, 64, false, [](const problem &p) {
    try_shape<shape<2, 32, 8, 64>, 1>(p);
    try_shape<shape<2, 32, 4, 64>, 2>(p);
    try_shape<shape<2, 16, 8, 64>, 2>(p);
    try_shape<shape<2, 16, 8, 64>, 3>(p);
  });
}

void search_definite(int64_t count) {
  with(1, count, 32, true,
       [](const problem &p) { try_shape<shape<1, 8, 4, 32, true>, 12>(p); });
  with(1, count, 64, true, [](const problem &p) {
    try_shape<shape<1, 16, 4, 64, true>, 4>(p);
    try_shape<shape<1, 16, 8, 64, true>, 3>(p);
  });
  with(1, count, 96, true,
       [](const problem &p) { try_shape<shape<1, 16, 8, 96, true>, 2>(p); });
  with(1, count, 128, true, [](const problem &p) {
    try_shape<shape<1, 32, 8, 128, true>, 1>(p);
    try_shape<shape<1, 64, 4, 128, true>, 1>(p);
  });
}

/* Is this part wanted? Without words all are. */
bool is_wanted(int argc, char **argv, const char *part) {
  bool any = false;
  for (int i = 2; i < argc; i++) {
    any = true;
    if (strcmp(argv[i], part) == 0)
      return true;
  }
  return !any;
}

} // namespace

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : 10000;
  printf("| parts | n | threads | blocks wanted | blocks | registers | local "
         "bytes | us | not served |\n|---|---|---|---|---|---|---|---|---|\n");
  if (is_wanted(argc, argv, "groups"))
    search::search_groups(count);
  if (is_wanted(argc, argv, "real"))
    search_real(count);
  if (is_wanted(argc, argv, "complex"))
    search_complex(count);
  if (is_wanted(argc, argv, "panels"))
    search::search_panels_real(count);
  if (is_wanted(argc, argv, "complex-panels"))
    search::search_panels_complex(count);
  if (is_wanted(argc, argv, "definite"))
    search_definite(count);
  if (is_wanted(argc, argv, "definite-panels"))
    search::search_panels_definite(count);
  return 0;
}
