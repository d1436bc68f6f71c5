/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines that are kept by the process when a solve has ended, for the next
   one of the same order: to create one takes tens of milliseconds. */
#ifndef HONE_CUDA_KEPT_H
#define HONE_CUDA_KEPT_H

#include "gpu_sp/state.h"

#include <pthread.h>
#include <sched.h>

/* Takes the lock of what is kept, in order to free it. Returns false if others
   have it for long: nobody waits, as the child of a fork would for ever. */
inline bool hone_cuda_lock_to_free(pthread_mutex_t *lock) {
  enum { ATTEMPTS = 1000 };
  for (int i = 0; i < ATTEMPTS; i++) {
    if (pthread_mutex_trylock(lock) == 0)
      return true;
    (void)sched_yield();
  }
  return false;
}

/* Returns a kept engine that serves config, charged to config->mem; NULL: there
   is none, or the caller's limit of memory forbids it. */
hone_cuda *hone_cuda_take_kept(bool spd, const hone_engine_config *config);

/* Keeps the engine, whose device work has ended; returns false if it may not be
   kept, and then is the caller's still. */
bool hone_cuda_keep(hone_cuda *c);

/* Forgets the matrix that the engine factored, and what was learned of it. */
void hone_cuda_begin_anew(hone_cuda *c, const hone_engine_config *config);

/* Destroys all engines for this type of entries that are kept; returns how many
   bytes of device memory that was. */
int64_t hone_cuda_release_kept();
/* Returns the bytes of device memory of those that are kept. */
int64_t hone_cuda_kept_bytes();

#endif
