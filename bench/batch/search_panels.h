/* SPDX-License-Identifier: BSD-3-Clause */
/* One shape of the kernel that solves by panels, for the files of search_batch.
 */
#ifndef BENCH_BATCH_SEARCH_PANELS_H
#define BENCH_BATCH_SEARCH_PANELS_H

#include "bench/batch/search.h"
#include "gpu_sp/batch/panel_kernel.h"

namespace {

template <class S, int BLOCKS> void try_panels(search::problem p) {
  using namespace search;
  const size_t lanes = static_cast<size_t>(p.count) * sizeof(double);
  hone_device_room room = {};
  cudaFuncAttributes a;
  char shape[32];
  int processors = 0;
  MUST((plan<S, BLOCKS>(p.n, &room)));
  MUST(cudaFuncGetAttributes(&a, solve_large<S, BLOCKS>));
  MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  p.in.blocks = std::min(p.count, room.blocks);
  p.in.work_stride = room.stride;
  double *work = device_array<double>(
      static_cast<size_t>(p.in.blocks * room.stride * p.parts));
  p.in.work = work;
  const double us =
      time_of([&] { MUST(cudaMemset(p.in.rcond, 0, lanes)); },
              [&] { MUST((launch_large<S, BLOCKS>(p.in, nullptr))); });
  (void)snprintf(shape, sizeof shape, "%d, %d rows, %d columns", S::THREADS,
                 S::R, S::NB);
  print_line(p, shape, BLOCKS, static_cast<int>(room.blocks / processors), a,
             us);
  p.in.nrhs = 0;
  const double factored =
      time_of([] {}, [&] { MUST((launch_large<S, BLOCKS>(p.in, nullptr))); });
  printf("|  |  | without right-hand side | | | | | %.1f | |\n", factored);
  fflush(stdout);
  MUST(cudaFree(work));
}

} // namespace

#endif
