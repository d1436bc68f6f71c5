/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel for batches of real systems that are said to be
   positive definite. bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/kernel.h"

namespace {

template <class F>
cudaError_t with_shape(const hone_device_systems &in, const F &f) {
  if (in.n <= 32)
    return f.template of<shape<1, 8, 4, 32, true>, 12>(in);
  if (in.n <= 64)
    return f.template of<shape<1, 16, 4, 64, true>, 4>(in);
  if (in.n <= 96)
    return f.template of<shape<1, 16, 8, 96, true>, 2>(in);
  return f.template of<shape<1, 32, 8, 128, true>, 1>(in);
}

} // namespace

int hone_device_batch_launch_definite(const hone_device_systems *s,
                                      void *stream) {
  return CALL(
      with_shape(*s, inverse_launcher{static_cast<cudaStream_t>(stream)}));
}

size_t hone_device_batch_shared_definite(const hone_device_systems *s) {
  size_t bytes = 0;
  (void)with_shape(*s, inverse_bytes{&bytes});
  return bytes;
}
