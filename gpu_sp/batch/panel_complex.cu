/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel that solves complex systems by panels.
   bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/panel_kernel.h"

namespace {

/* Does f for the shape of this order. */
template <class F> cudaError_t with_shape(int64_t n, F f) {
  if (n <= 64)
    return f.template of<panels<2, 64, 1, 8>, 4>();
  if (n <= 128)
    return f.template of<panels<2, 128, 1, 16>, 4>();
  if (n <= 256)
    return f.template of<panels<2, 256, 1, 16>, 2>();
  if (n <= 512)
    return f.template of<panels<2, 512, 1, 16>, 1>();
  return f.template of<panels<2, 512, 2, 8>, 1>();
}

} // namespace

int hone_device_batch_z_plan(const hone_device_systems *s,
                             hone_device_room *out) {
  *out = {0, 0};
  return CALL(with_shape(s->n, planner{s->n, out}));
}

size_t hone_device_batch_z_panel_shared(int64_t n) {
  size_t bytes = 0;
  (void)with_shape(n, panel_bytes_of{&bytes});
  return bytes;
}

int hone_device_batch_z_launch_large(const hone_device_systems *s,
                                     void *stream) {
  return CALL(with_shape(s->n, launcher{s, static_cast<cudaStream_t>(stream)}));
}
