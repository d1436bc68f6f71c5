/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel for batches: how many threads hold a matrix of which
   order. bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/kernel.h"

namespace {

template <class F>
cudaError_t with_real(const hone_device_systems &in, const F &f) {
  if (in.n <= 8)
    return f.template of<shape<1, 8, 1, 8>, 20>(in);
  if (in.n <= 16)
    return f.template of<shape<1, 16, 1, 16>, 16>(in);
  if (in.n <= 32)
    return f.template of<shape<1, 8, 4, 32>, 12>(in);
  if (in.n <= 64)
    return f.template of<shape<1, 16, 4, 64>, 4>(in);
  if (in.n <= 96)
    return f.template of<shape<1, 16, 8, 96>, 2>(in);
  return f.template of<shape<1, 32, 8, 128>, 1>(in);
}

template <class F>
cudaError_t with_complex(const hone_device_systems &in, const F &f) {
  if (in.n <= 8)
    return f.template of<shape<2, 8, 1, 8>, 12>(in);
  if (in.n <= 16)
    return f.template of<shape<2, 16, 1, 16>, 12>(in);
  if (in.n <= 32)
    return f.template of<shape<2, 8, 4, 32>, 8>(in);
  return f.template of<shape<2, 32, 4, 64>, 2>(in);
}

template <class F>
cudaError_t with_shape(const hone_device_systems &in, const F &f) {
  return in.parts == 1 ? with_real(in, f) : with_complex(in, f);
}

bool is_definite(const hone_device_systems *s) {
  return s->definite && s->parts == 1 && s->n > 16;
}

} // namespace

int hone_device_batch_launch(const hone_device_systems *s, void *stream) {
  if (s->count < 1)
    return HONE_OK;
  if (is_definite(s))
    return hone_device_batch_launch_definite(s, stream);
  return CALL(
      with_shape(*s, inverse_launcher{static_cast<cudaStream_t>(stream)}));
}

size_t hone_device_batch_shared(const hone_device_systems *s) {
  size_t bytes = 0;
  if (is_definite(s))
    return hone_device_batch_shared_definite(s);
  (void)with_shape(*s, inverse_bytes{&bytes});
  return bytes;
}
