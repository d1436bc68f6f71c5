/* SPDX-License-Identifier: BSD-3-Clause */
/* Random systems on the device, and the time of kernels that solve them, for
   the files of search_batch. */
#ifndef BENCH_BATCH_SEARCH_H
#define BENCH_BATCH_SEARCH_H

#include "gpu_sp/batch/kernel.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace search {

enum { ROUNDS = 9 };

inline void must(bool is, const char *what) {
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

/* Makes the matrices Hermitian, with a diagonal that makes them definite. */
inline void make_definite(problem *p) {
  const int64_t n = p->n, parts = p->parts;
  for (int64_t k = 0; k < p->count; k++) {
    double *a = p->host.data() + k * n * n * parts;
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = j; i < n; i++)
        for (int64_t q = 0; q < parts; q++) {
          double *v = &a[(i + j * n) * parts + q];
          if (i == j)
            *v = q == 0 ? 2.0 * sqrt(static_cast<double>(n)) : 0.0;
          a[(j + i * n) * parts + q] = q == 0 ? *v : -*v;
        }
  }
}

inline problem make(int parts, int64_t count, int64_t n, bool definite) {
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
  if (definite)
    make_definite(&p);
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
  p.in.rcond = device_array<double>(static_cast<size_t>(count));
  p.in.column = device_array<hone_block_column>(static_cast<size_t>(count));
  return p;
}

inline void discard(problem *p) {
  for (void *at : {static_cast<void *>(p->a), static_cast<void *>(p->b),
                   static_cast<void *>(p->x), static_cast<void *>(p->in.rcond),
                   static_cast<void *>(p->in.column)})
    MUST(cudaFree(at));
}

inline int64_t served(const problem &p) {
  std::vector<double> rcond(static_cast<size_t>(p.count));
  MUST(cudaMemcpy(rcond.data(), p.in.rcond, rcond.size() * sizeof rcond[0],
                  cudaMemcpyDeviceToHost));
  return std::count_if(rcond.begin(), rcond.end(),
                       [](double v) { return v > 0.0; });
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

/* Prints the line of a shape: threads along rows and columns, or threads, rows
   of each and columns of a panel; thread blocks of a multiprocessor, as wanted
   and as they are; registers, bytes of local memory; the time. */
inline void print_line(const problem &p, const char *shape, int wanted,
                       int blocks, const cudaFuncAttributes &a, double us) {
  printf("| %d%s | %d | %s | %d | %d | %d | %d | %.1f | %lld |\n", p.parts,
         p.in.definite ? ", definite" : "", static_cast<int>(p.n), shape,
         wanted, blocks, a.numRegs, static_cast<int>(a.localSizeBytes), us,
         static_cast<long long>(p.count - served(p)));
  fflush(stdout);
}

/* cuBLAS's, or of definite systems cuSOLVER's, time (search.cu). */
void time_peer(const problem &p);

template <class Try>
void with(int parts, int64_t count, int64_t n, bool definite, Try shapes) {
  problem p = make(parts, count, n, definite);
  p.in.definite = definite;
  time_peer(p);
  shapes(p);
  discard(&p);
}

/* Times a shape of threads that compute an inverse, and prints its line. */
template <class S, int BLOCKS> void try_shape(const problem &p) {
  const size_t lanes = static_cast<size_t>(p.count) * sizeof(double);
  const double us = time_of([&] { MUST(cudaMemset(p.in.rcond, 0, lanes)); },
                            [&] { MUST((launch<S, BLOCKS>(p.in, nullptr))); });
  cudaFuncAttributes a;
  int blocks = 0;
  char shape[32];
  MUST(cudaFuncGetAttributes(&a, solve_systems<S, BLOCKS>));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, solve_systems<S, BLOCKS>, S::BLOCK, SHARED_BYTES<S>));
  (void)snprintf(shape, sizeof shape, "%d x %d", S::R, S::C);
  print_line(p, shape, BLOCKS, blocks, a, us);
}

/* The files' parts of the search. */
void search_groups(int64_t count);
void search_panels_real(int64_t count);
void search_panels_complex(int64_t count);
void search_panels_definite(int64_t count);

} // namespace search

#endif
