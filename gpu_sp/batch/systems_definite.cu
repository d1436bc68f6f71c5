/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel for batches of real systems that are said to be
   positive definite. bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/kernel.h"

namespace {

cudaError_t launch_real(const hone_device_systems &in, cudaStream_t stream) {
  if (in.n <= 32)
    return launch<shape<1, 8, 4, 32, true>, 12>(in, stream);
  if (in.n <= 64)
    return launch<shape<1, 16, 4, 64, true>, 4>(in, stream);
  if (in.n <= 96)
    return launch<shape<1, 16, 8, 96, true>, 2>(in, stream);
  return launch<shape<1, 32, 8, 128, true>, 1>(in, stream);
}

} // namespace

int hone_device_batch_launch_definite(const hone_device_systems *s,
                                      void *stream) {
  return CALL(launch_real(*s, static_cast<cudaStream_t>(stream)));
}
