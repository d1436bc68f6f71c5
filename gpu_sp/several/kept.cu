/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine for several devices that the process keeps when a solve has ended:
   one at most, for real or for complex entries, under the rules of
   gpu_sp/kept.cu. It is of use only to the process, and in the contexts of all
   its devices, that made it. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/create.h"
#include "gpu_sp/kept.h"

#include <string.h>
#include <unistd.h>

namespace {

hone_several *kept; /* belongs to nobody, and is in no account */
pid_t process;
uint64_t contexts[HONE_SEVERAL_MOST]; /* of its shares */
int64_t kept_bytes; /* the device memory of a share, at most */
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int64_t charged(const hone_several *s) {
  return hone_mem_size(s) + hone_mem_size(s->sums);
}

/* Takes the engine off its owner's account. */
void discharge(hone_several *s) {
  for (int d = 0; d < s->count; d++)
    hone_cuda_discharge(s->share[d].c);
  (void)hone_mem_charge(s->mem, -charged(s));
  s->mem = nullptr;
}

/* Puts an engine that is in no account into that of mem. Returns false, and
   does nothing, where the limit forbids it. */
bool charge(hone_several *s, hone_mem *mem) {
  int done = 0;
  if (!hone_mem_charge(mem, charged(s)))
    return false;
  while (done < s->count && hone_cuda_charge(s->share[done].c, mem))
    done++;
  if (done == s->count) {
    s->mem = mem;
    return true;
  }
  while (done-- > 0)
    hone_cuda_discharge(s->share[done].c);
  (void)hone_mem_charge(mem, -charged(s));
  return false;
}

/* *id = the number of the context of the share's device. */
bool context_of(const hone_share *share, uint64_t *id) {
  return hone_several_enter(share) == HONE_OK && hone_cuda_context(id);
}

int64_t most_bytes(const hone_several *s) {
  int64_t most = 0;
  for (int d = 0; d < s->count; d++)
    most = HONE_MAX(most, s->share[d].c->used.device_bytes);
  return most;
}

/* Forgets an engine of another process, or one of a context that is gone. */
void forget_other() {
  const hone_cuda_current meanwhile;
  bool there = kept != nullptr && process == getpid();
  for (int d = 0; there && d < kept->count; d++) {
    uint64_t now = 0;
    there = context_of(&kept->share[d], &now) && now == contexts[d];
  }
  if (!there) {
    kept = nullptr;
    __atomic_store_n(&kept_bytes, 0, __ATOMIC_RELAXED);
  }
}

/* Destroys the one that is kept; returns how much device memory that was. */
int64_t destroy_kept() {
  hone_mem nobody = {};
  hone_several *s = kept;
  int64_t bytes = 0;
  kept = nullptr;
  __atomic_store_n(&kept_bytes, 0, __ATOMIC_RELAXED);
  if (s == nullptr)
    return 0;
  for (int d = 0; d < s->count; d++)
    bytes += s->share[d].c->used.device_bytes;
  s->may_be_kept = false;
  (void)charge(s, &nobody);
  hone_several_destroy(s, &nobody);
  return bytes;
}

bool serves(const hone_several *s, bool spd, const hone_engine_config *config,
            int count) {
  int ordinal = -1;
  (void)cudaGetDevice(&ordinal);
  return s->spd == spd && s->n == config->n && s->block == config->block &&
         s->count == count && s->share[0].c->ordinal == ordinal &&
         memcmp(&s->choices, &config->choices, sizeof s->choices) == 0;
}

} // namespace

hone_several *hone_several_take_kept(bool spd, const hone_engine_config *config,
                                     int count) {
  hone_several *s = nullptr;
  if (config->mem->alloc != nullptr || pthread_mutex_trylock(&lock) != 0)
    return nullptr;
  if (kept)
    forget_other();
  if (kept && serves(kept, spd, config, count) && charge(kept, config->mem)) {
    s = kept;
    kept = nullptr;
    __atomic_store_n(&kept_bytes, 0, __ATOMIC_RELAXED);
    s->pool = config->pool;
    s->watch = config->watch;
    s->residuals = 0;
    for (int d = 0; d < s->count; d++)
      hone_cuda_begin_anew(s->share[d].c, config);
  }
  (void)pthread_mutex_unlock(&lock);
  return s;
}

/* A device keeps no more for all engines together than it would for one. */
bool hone_several_keep(hone_several *s) {
  const hone_cuda_current meanwhile;
  bool keeps =
      s->may_be_kept && s->mem->alloc == nullptr && s->mem->arena == nullptr;
  for (int d = 0; d < s->count && keeps; d++) {
    const hone_cuda *c = s->share[d].c;
    keeps = c != nullptr && c->used.device_bytes <= c->keep_at_most;
  }
  if (!keeps || hone_several_wait(s, HONE_OK) != HONE_OK ||
      pthread_mutex_trylock(&lock) != 0)
    return false;
  if (kept)
    forget_other();
  (void)destroy_kept();
  (void)hone_several_release_kept_of(HONE_PARTS == 1);
  const int64_t bytes = most_bytes(s);
  const int64_t others =
      hone_cuda_kept_bytes_of(false) + hone_cuda_kept_bytes_of(true);
  if (bytes + others > s->share[0].c->keep_at_most)
    for (bool complex_entries : {false, true})
      (void)hone_cuda_release_kept_of(complex_entries);
  for (int d = 0; d < s->count && keeps; d++)
    keeps = context_of(&s->share[d], &contexts[d]);
  if (keeps) {
    discharge(s);
    process = getpid();
    kept = s;
    __atomic_store_n(&kept_bytes, bytes, __ATOMIC_RELAXED);
  }
  (void)pthread_mutex_unlock(&lock);
  return keeps;
}

int64_t hone_several_kept_bytes() {
  return __atomic_load_n(&kept_bytes, __ATOMIC_RELAXED);
}

int64_t hone_several_release_kept() {
  int64_t bytes = 0;
  if (!hone_cuda_lock_to_free(&lock))
    return 0;
  if (kept)
    forget_other();
  bytes = destroy_kept();
  (void)pthread_mutex_unlock(&lock);
  return bytes;
}
