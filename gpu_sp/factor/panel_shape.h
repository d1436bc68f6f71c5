/* SPDX-License-Identifier: BSD-3-Clause */
/* How many rows a launch of panel.cu can hold on the current device, and how a
   panel is divided among thread blocks. Included by panel.cu alone. */
#ifndef HONE_CUDA_PANEL_SHAPE_H
#define HONE_CUDA_PANEL_SHAPE_H

#include "gpu_sp/factor/tournament.h"

namespace {

/* Thread blocks have WARP_ROWS rows, or 2 or 3 times as many. */
enum { SIZES = 3 };
static_assert(SIZES * WARP_ROWS == MOST_ROWS, "the largest one");

/* How a panel of m rows is divided among thread blocks. Few thread blocks leave
   the other multiprocessors to other kernels; many rows in each take longer to
   update. */
struct panel_shape {
  int rows, blocks;
  int merged_blocks, scratch_at; /* see panel_args */
  size_t shared;                 /* bytes */
};

/* *bytes = the dynamic shared memory that a kernel may ask for. */
cudaError_t shared_limit(int device, size_t *bytes) {
  int most = 0;
  const cudaError_t e = cudaDeviceGetAttribute(
      &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  *bytes = (size_t)most - sizeof(shared_state) - 8 * HONE_PANEL * sizeof(int);
  return e;
}

/* The size of a launch. A device with fewer multiprocessors, or less shared
   memory, than an H100 has can hold less. */
struct panel_limits {
  size_t shared;     /* dynamic, that a kernel may ask for; bytes */
  int blocks[SIZES]; /* thread blocks of each size that are resident at once, as
                        a cooperative launch needs; MAX_BLOCKS at most */
};

/* Returns the rows of a thread block, where a panel has m: the least while the
   thread blocks send no more candidates than GROUP with real entries do, and
   otherwise those that a launch can hold. */
int rows_of_block(int64_t m, bool few, const panel_limits &limits) {
  const int64_t wanted = few ? (int64_t)FEW_BLOCKS : (int64_t)MAX_BLOCKS;
  const auto holds = [&limits, m](int size, int64_t most) {
    const int64_t blocks = limits.blocks[size - 1];
    return m <= (blocks < most ? blocks : most) * size * WARP_ROWS;
  };
  if (holds(1, (int64_t)GROUP * HONE_PARTS))
    return WARP_ROWS;
  if (holds(2, wanted))
    return 2 * WARP_ROWS;
  for (int size = SIZES; size > 1; size--)
    if (holds(size, MAX_BLOCKS))
      return size * WARP_ROWS;
  return WARP_ROWS;
}

/* Shapes a panel of m rows and w columns with thread blocks of so many rows.
   most: the bytes of dynamic shared memory that a kernel may ask for. */
void shape_of(int64_t m, int64_t w, int rows, size_t most, panel_shape *p) {
  p->rows = rows;
  p->blocks = (int)((m + p->rows - 1) / p->rows);
  p->scratch_at = ((p->rows + 1) * HONE_PARTS * (int)w + 3) / 4 * 4;
  const auto shared = [p](int blocks) {
    const size_t wide = (size_t)(blocks * STEP) * sizeof(candidate_row);
    const size_t u = HONE_PANEL * sizeof(column_of_u) + STEP * sizeof(row_of_a);
    return (size_t)p->scratch_at * sizeof(float) + (wide > u ? wide : u);
  };
  p->merged_blocks = GROUP;
  p->shared = shared(p->blocks < GROUP ? p->blocks : (int)GROUP);
  if (p->blocks > GROUP && p->blocks <= MERGED_BLOCKS &&
      shared(p->blocks) <= most) {
    p->merged_blocks = MERGED_BLOCKS;
    p->shared = shared(p->blocks);
  }
}

/* Counts the thread blocks of the largest panel, of HONE_PANEL columns. The
   launch bounds of the kernels have one fit into a multiprocessor whose shared
   memory suffices. Nothing is asked of the device that creates a context:
   hone_device_memory_needed comes here, too. */
cudaError_t count_blocks(int device, panel_limits *limits) {
  int processors = 0;
  const cudaError_t e = cudaDeviceGetAttribute(
      &processors, cudaDevAttrMultiProcessorCount, device);
  for (int size = 1; size <= SIZES; size++) {
    panel_shape shape = {};
    const int rows = size * WARP_ROWS;
    shape_of((int64_t)MAX_BLOCKS * rows, HONE_PANEL, rows, limits->shared,
             &shape);
    const int fit = processors < MAX_BLOCKS ? processors : (int)MAX_BLOCKS;
    limits->blocks[size - 1] = shape.shared <= limits->shared ? fit : 0;
  }
  return e;
}

/* Returns those of the current device, or of an H100 where there is none. */
panel_limits limits_here() {
  panel_limits limits = {};
  int device = 0;
  cudaError_t e = cudaGetDevice(&device);
  if (e == cudaSuccess)
    e = shared_limit(device, &limits.shared);
  if (e == cudaSuccess)
    e = count_blocks(device, &limits);
  if (e == cudaSuccess)
    return limits;
  (void)cudaGetLastError();
  return {(size_t)227 << 10, {MAX_BLOCKS, MAX_BLOCKS, MAX_BLOCKS}};
}

} // namespace

#endif
