/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of hone_batch_solve by itself, timed by events: it is what is left
   of a call when the host's part of it takes no time. */
#ifndef BENCH_GPU_BATCH_KERNEL_H
#define BENCH_GPU_BATCH_KERNEL_H

#include "bench/gpu/gpu_bench.h"
#include "gpu_sp/batch/batch.h"

#include <algorithm>

class Batch_kernel {
public:
  Batch_kernel() = default;
  ~Batch_kernel() {
    void *const all[] = {in_.rcond, in_.column, in_.work};
    for (void *at : all)
      cudaFree(at);
    for (cudaEvent_t event : {from_, to_})
      if (event != nullptr)
        cudaEventDestroy(event);
  }
  Batch_kernel(const Batch_kernel &) = delete;
  Batch_kernel &operator=(const Batch_kernel &) = delete;

  /* Systems of numbers of so many parts that lie one behind the other in device
     memory. */
  std::string open(int parts, bool definite, int64_t n, int64_t count,
                   const void *a, const void *b, void *x) {
    Calls c;
    const size_t all = static_cast<size_t>(count);
    in_.count = count;
    in_.n = in_.by_column = in_.ldb = in_.ldx = n;
    in_.nrhs = in_.by_row = 1;
    in_.parts = parts;
    in_.a = {a, n * n, nullptr};
    in_.b = {b, n, nullptr};
    in_.x = {x, n, nullptr};
    in_.limit = 0x1p-51;
    in_.corrections = 3;
    in_.seed = 1;
    in_.seed_step = UINT64_C(0xd1342543de82ef95);
    in_.definite = definite;
    (void)(c.ok(cudaMalloc(&in_.rcond, all * sizeof *in_.rcond),
                "cudaMalloc of results") &&
           c.ok(cudaMalloc(&in_.column, all * sizeof *in_.column),
                "cudaMalloc of results") &&
           c.ok(cudaEventCreate(&from_), "cudaEventCreate") &&
           c.ok(cudaEventCreate(&to_), "cudaEventCreate"));
    return c.why.empty() && hone_device_batch_by_panels(&in_) ? make_work()
                                                              : c.why;
  }

  /* Solves all systems once. */
  std::string run(double *ms) {
    Calls c;
    float passed = 0.0F;
    if (!c.ok(cudaEventRecord(from_), "cudaEventRecord"))
      return c.why;
    const int st = !hone_device_batch_by_panels(&in_)
                       ? hone_device_batch_launch(&in_, nullptr)
                   : in_.parts == 1
                       ? hone_device_batch_launch_large(&in_, nullptr)
                       : hone_device_batch_z_launch_large(&in_, nullptr);
    if (st != HONE_OK)
      return "the kernel cannot be launched";
    (void)(c.ok(cudaEventRecord(to_), "cudaEventRecord") &&
           c.ok(cudaEventSynchronize(to_), "the kernel") &&
           c.ok(cudaEventElapsedTime(&passed, from_, to_), "its time"));
    *ms = static_cast<double>(passed);
    return c.why;
  }

private:
  std::string make_work() {
    Calls c;
    hone_device_room room = {};
    const int st = in_.parts == 1 ? hone_device_batch_plan(&in_, &room)
                                  : hone_device_batch_z_plan(&in_, &room);
    if (st != HONE_OK)
      return "the kernel has no place on the device";
    in_.blocks = std::min(in_.count, room.blocks);
    in_.work_stride = room.stride;
    c.ok(cudaMalloc(&in_.work,
                    static_cast<size_t>(in_.blocks * room.stride * in_.parts) *
                        sizeof(double)),
         "cudaMalloc of the kernel's workspace");
    return c.why;
  }

  hone_device_systems in_ = {};
  cudaEvent_t from_ = nullptr, to_ = nullptr;
};

#endif
