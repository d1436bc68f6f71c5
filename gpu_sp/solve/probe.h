/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes on the device: powers of E applied to vectors that stay
   there. */
#ifndef HONE_CUDA_PROBE_H
#define HONE_CUDA_PROBE_H

#include "gpu_sp/state.h"

/* Members of the engine tables: probe_step, expect_probes, probed. */
int hone_cuda_probe_step(void *self, const hone_matrix *a,
                         hone_probe_step *step);
void hone_cuda_expect_probes(void *self, const hone_matrix *a,
                             const hone_probe_step *step);
int hone_cuda_probed(void *self, const hone_probe_step *step,
                     const hone_probed *out);

#endif
