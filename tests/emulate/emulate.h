/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA kernels on the CPU, so that their results are tested where there is no
   GPU: g++ -x c++ -DHONE_EMULATE='"tests/emulate/emulate.h"' (gpu_sp/launch.h).

   A block is an OS thread. At most HONE_EMULATE_WORKERS blocks run at a time,
   in ascending order; in a cooperative grid all run at once. A CUDA thread is a
   fiber of its block, which runs until it waits. Launches are synchronous.
   Fresh memory, dynamic shared memory too, holds NaN. Where a kernel breaks the
   rules of a warp or waits for ever, the program ends with a message.

   Next to read: emulate_threads.h, emulate_grid.h, emulate_runtime.h,
   emulate_streams.h. */
#ifndef HONE_EMULATE_H
#define HONE_EMULATE_H

#include "tests/emulate/emulate_device.h"

#include "tests/emulate/emulate_blas.h"
#include "tests/emulate/emulate_streams.h"

using namespace hone_emulate::device;

#endif
