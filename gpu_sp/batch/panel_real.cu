/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of the kernel that solves real systems by panels.
   bench/batch/search.cu compares them with others. */
#include "gpu_sp/batch/panel_kernel.h"

namespace {

/* Does f for the shape of this order. */
template <class F> cudaError_t with_shape(int64_t n, F f) {
  if (n <= 256)
    return f.template of<panels<1, 128, 2, 16>, 4>();
  if (n <= 512)
    return f.template of<panels<1, 256, 2, 16>, 2>();
  return f.template of<panels<1, 512, 2, 16>, 1>();
}

} // namespace

int hone_device_batch_plan(const hone_device_systems *s,
                           hone_device_room *out) {
  *out = {0, 0};
  return CALL(with_shape(s->n, planner{s->n, out}));
}

size_t hone_device_batch_panel_shared(int64_t n) {
  size_t bytes = 0;
  (void)with_shape(n, panel_bytes_of{&bytes});
  return bytes;
}

int hone_device_batch_launch_large(const hone_device_systems *s, void *stream) {
  return CALL(with_shape(s->n, launcher{s, static_cast<cudaStream_t>(stream)}));
}
