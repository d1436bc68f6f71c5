/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of the single-precision CUDA engines, as members of
   the engine tables (base/engine.h), and pinned memory for all engines. */
#ifndef HONE_CUDA_CREATE_H
#define HONE_CUDA_CREATE_H

#include "gpu_sp/state.h"

bool hone_cuda_probe(char *why, size_t why_size);
/* spd: the engine is Cholesky's. */
int hone_cuda_create(bool spd, void **self, const hone_engine_config *config);
/* Creates the state of one of several devices, the current one. It is not kept.
 */
int hone_cuda_create_share(hone_cuda **created, const hone_cuda_shape &of,
                           const hone_engine_config *config);
/* Creates the state of a device that has deal->window columns of F at once, and
   room for 'beside' columns behind them, and no copy of A. It is not kept, and
   cannot solve. */
int hone_cuda_create_window(hone_cuda **created,
                            const hone_engine_config *config,
                            const hone_cuda_deal *deal, int64_t beside);
/* *most: the bytes of the current device's memory that may be used: those that
   are free, when what the process keeps was given back for want of 'wanted'
   bytes, or fewer by the caller's choice. *of: all bytes that it has. */
int hone_cuda_memory_allowed(const hone_choices *choices, int64_t wanted,
                             int64_t *most, int64_t *of);
/* Returns HONE_NO_MEMORY, and says why, where so many bytes of device memory
   are more than 'most'. */
int hone_cuda_within(const hone_engine_config *config, int64_t bytes,
                     int64_t most);
/* Does the same for the caller's limit, if there is one. */
inline int hone_cuda_within_limit(const hone_engine_config *config,
                                  int64_t bytes) {
  const int64_t limit = config->choices.device_limit;
  return limit > 0 ? hone_cuda_within(config, bytes, limit) : (int)HONE_OK;
}
/* Do Cholesky's engines apply? Member of their tables. */
inline bool hone_cuda_is_definite(const hone_structure *structure, int64_t) {
  return structure->definite;
}
/* Accepts a state whose creation failed anywhere. */
void hone_cuda_destroy(void *self, hone_mem *mem);
int64_t hone_cuda_host_bytes(int64_t n, int64_t k);

/* Allocates pinned host memory, within the caller's limit. */
int hone_cuda_pin(hone_cuda *c, void **at, size_t bytes);
/* Puts an engine that is in no account into that of mem, and takes it out of
   its owner's. Returns false, and does nothing, where the limit forbids it. */
bool hone_cuda_charge(hone_cuda *c, hone_mem *mem);
void hone_cuda_discharge(hone_cuda *c);
/* Takes all pinned memory off the caller's account; it is freed elsewhere. */
void hone_cuda_unpin(hone_cuda *c);

#endif
