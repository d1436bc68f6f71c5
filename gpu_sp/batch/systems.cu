/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel for batches: how many threads hold a matrix of which
   order. bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/kernel.h"

namespace {

cudaError_t launch_real(const hone_device_systems &in, cudaStream_t stream) {
  if (in.n <= 8)
    return launch<shape<1, 8, 1, 8>, 20>(in, stream);
  if (in.n <= 16)
    return launch<shape<1, 16, 1, 16>, 16>(in, stream);
  if (in.n <= 32)
    return launch<shape<1, 8, 4, 32>, 12>(in, stream);
  if (in.n <= 64)
    return launch<shape<1, 16, 4, 64>, 4>(in, stream);
  if (in.n <= 96)
    return launch<shape<1, 16, 8, 96>, 2>(in, stream);
  return launch<shape<1, 32, 8, 128>, 1>(in, stream);
}

cudaError_t launch_complex(const hone_device_systems &in, cudaStream_t stream) {
  if (in.n <= 8)
    return launch<shape<2, 8, 1, 8>, 12>(in, stream);
  if (in.n <= 16)
    return launch<shape<2, 16, 1, 16>, 12>(in, stream);
  if (in.n <= 32)
    return launch<shape<2, 8, 4, 32>, 8>(in, stream);
  return launch<shape<2, 32, 4, 64>, 2>(in, stream);
}

} // namespace

int hone_device_batch_launch(const hone_device_systems *s, void *stream) {
  const cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (s->count < 1)
    return HONE_OK;
  if (s->definite && s->parts == 1 && s->n > 16)
    return hone_device_batch_launch_definite(s, stream);
  return CALL(s->parts == 1 ? launch_real(*s, on) : launch_complex(*s, on));
}
