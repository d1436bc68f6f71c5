/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel for batches: how many threads hold a matrix of which
   order. bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/kernel.h"

namespace {

/* Solves with an inverse in single precision, by shape SINGLE, and what that
   did not solve by DOUBLE. */
template <class SINGLE, int SINGLE_BLOCKS, class DOUBLE, int BLOCKS>
cudaError_t launch_both(const hone_device_systems &in, cudaStream_t stream) {
  hone_device_systems left = in;
  if (in.single) {
    const cudaError_t e = launch<SINGLE, SINGLE_BLOCKS>(in, stream);
    if (e != cudaSuccess)
      return e;
    left.left_only = true;
  }
  return launch<DOUBLE, BLOCKS>(left, stream);
}

cudaError_t launch_real(const hone_device_systems &in, cudaStream_t stream) {
  if (in.n <= 8)
    return launch<shape<1, 8, 1, 8>, 20>(in, stream);
  if (in.n <= 16)
    return launch<shape<1, 16, 1, 16>, 16>(in, stream);
  if (in.n <= 32)
    return launch_both<shape<1, 8, 4, 32, false, float>, 10, shape<1, 8, 4, 32>,
                       8>(in, stream);
  if (in.n <= 64)
    return launch_both<shape<1, 16, 4, 64, false, float>, 6,
                       shape<1, 32, 4, 64>, 4>(in, stream);
  if (in.n <= 96)
    return launch_both<shape<1, 16, 8, 96, false, float>, 3,
                       shape<1, 32, 8, 96>, 2>(in, stream);
  return launch_both<shape<1, 16, 8, 128, false, float>, 2,
                     shape<1, 32, 8, 128>, 1>(in, stream);
}

cudaError_t launch_complex(const hone_device_systems &in, cudaStream_t stream) {
  if (in.n <= 8)
    return launch<shape<2, 8, 1, 8>, 16>(in, stream);
  if (in.n <= 16)
    return launch<shape<2, 16, 1, 16>, 12>(in, stream);
  if (in.n <= 32)
    return launch_both<shape<2, 16, 4, 32, false, float>, 6,
                       shape<2, 16, 4, 32>, 5>(in, stream);
  return launch_both<shape<2, 32, 4, 64, false, float>, 3, shape<2, 32, 8, 64>,
                     2>(in, stream);
}

} // namespace

int hone_device_batch_launch(const hone_device_systems *s, void *stream) {
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (s->count < 1)
    return HONE_OK;
  return CALL(s->parts == 1 ? launch_real(*s, on) : launch_complex(*s, on));
}
