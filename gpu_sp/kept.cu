/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of kept engines, one for each type of entries; together they keep no
   more than one would. An engine in it belongs to nobody: its memory is in no
   account, its streams are empty. It is of use only to the process, and in
   the CUDA context, that made it: a child after fork() forgets what it
   inherited, and after cudaDeviceReset() nothing of it exists any more.

   The list is never waited for. Where another thread has it at that moment (or
   had it when this process was forked), nothing is taken and nothing kept. At
   the end of the process the driver takes everything back. */
#include "gpu_sp/kept.h"

#include "gpu_sp/create.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

namespace {

enum { MOST = 4 };

struct kept {
  hone_cuda *c;
  pid_t process;
  uint64_t context;
};

kept list[MOST]; /* the oldest first */
int count;
int64_t all_bytes; /* of device memory, of those in the list */
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Destroys an engine that is in no account, which was made in this context; if
   that is gone, so is what the engine had, and its addresses may be others'. */
void destroy(hone_cuda *c, uint64_t context) {
  hone_mem nobody = {};
  int current = c->ordinal;
  uint64_t now = 0;
  (void)cudaGetDevice(&current);
  (void)cudaSetDevice(c->ordinal);
  if (hone_cuda_context(&now) && now == context) {
    (void)hone_cuda_charge(c, &nobody);
    c->may_be_kept = false;
    hone_cuda_destroy(c, &nobody);
  }
  (void)cudaSetDevice(current);
}

/* Adds to all_bytes, which another thread may read. */
void add_bytes(int64_t bytes) {
  (void)__atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED);
}

void remove(int at) {
  add_bytes(-list[at].c->used.device_bytes);
  count--;
  for (int i = at; i < count; i++)
    list[i] = list[i + 1];
}

/* Forgets engines of another process, and those of this device that were made
   in another context, which may be gone. */
void forget_others(uint64_t context) {
  int ordinal = -1;
  (void)cudaGetDevice(&ordinal);
  for (int i = count; i-- > 0;)
    if (list[i].process != getpid() ||
        (list[i].c->ordinal == ordinal && list[i].context != context))
      remove(i);
}

bool serves(const kept &k, bool spd, const hone_engine_config *config,
            uint64_t context) {
  const hone_cuda *c = k.c;
  return k.context == context && c->spd == spd && c->n == config->n &&
         c->block == config->block &&
         memcmp(&c->choices, &config->choices, sizeof c->choices) == 0;
}

} // namespace

void hone_cuda_begin_anew(hone_cuda *c, const hone_engine_config *config) {
  const int64_t bytes = c->used.device_bytes;
  c->deterministic = config->deterministic;
  c->pool = config->pool;
  c->watch = config->watch;
  c->source = nullptr;
  c->fed = c->inspected = 0;
  c->uninspected = c->keep_safer = c->arriving = c->reused = c->scaled = false;
  c->companion.there = false;
  c->meanwhile = nullptr;
  c->solve_expected = c->solving_ahead = c->probing_ahead = false;
  c->projection.taken = c->projection.wanted = false;
  c->column_count = c->panel_count = c->moves_count = 0;
  c->used = {};
  c->used.device_bytes = bytes;
}

hone_cuda *hone_cuda_take_kept(bool spd, const hone_engine_config *config) {
  uint64_t context = 0;
  hone_cuda *c = nullptr;
  if (config->mem->alloc != nullptr || !hone_cuda_context(&context) ||
      pthread_mutex_trylock(&lock) != 0)
    return nullptr;
  forget_others(context);
  for (int i = count; i-- > 0 && c == nullptr;)
    if (serves(list[i], spd, config, context) &&
        hone_cuda_charge(list[i].c, config->mem)) {
      c = list[i].c;
      remove(i);
      hone_cuda_begin_anew(c, config);
    }
  (void)pthread_mutex_unlock(&lock);
  return c;
}

bool hone_cuda_keep(hone_cuda *c) {
  uint64_t context = 0;
  if (c->may_be_kept && c->used.device_bytes <= c->keep_at_most &&
      c->used.device_bytes + hone_cuda_kept_bytes_of(false) +
              hone_cuda_kept_bytes_of(true) +
              hone_several_kept_bytes_of(false) +
              hone_several_kept_bytes_of(true) >
          c->keep_at_most)
    for (bool complex_entries : {false, true})
      (void)hone_several_release_kept_of(complex_entries);
  if (c->may_be_kept && c->used.device_bytes <= c->keep_at_most &&
      c->used.device_bytes + hone_cuda_kept_bytes_of(HONE_PARTS == 1) >
          c->keep_at_most)
    (void)hone_cuda_release_kept_of(HONE_PARTS == 1);
  if (!c->may_be_kept || c->mem->alloc != nullptr || c->mem->arena != nullptr ||
      c->a == nullptr || !hone_cuda_context(&context) ||
      pthread_mutex_trylock(&lock) != 0)
    return false;
  forget_others(context);
  int64_t bytes = c->used.device_bytes;
  for (int i = 0; i < count; i++)
    bytes += list[i].c->used.device_bytes;
  const bool fits = c->used.device_bytes <= c->keep_at_most;
  while (fits && (count == MOST || bytes > c->keep_at_most)) {
    const kept oldest = list[0];
    bytes -= oldest.c->used.device_bytes;
    remove(0);
    destroy(oldest.c, oldest.context);
  }
  if (fits) {
    hone_cuda_discharge(c);
    list[count++] = {c, getpid(), context};
    add_bytes(c->used.device_bytes);
  }
  (void)pthread_mutex_unlock(&lock);
  return fits;
}

int64_t hone_cuda_kept_bytes() {
  return __atomic_load_n(&all_bytes, __ATOMIC_RELAXED);
}

int64_t hone_cuda_release_kept() {
  uint64_t context = 0; /* no context has this number */
  int64_t bytes = 0;
  if (!hone_cuda_lock_to_free(&lock))
    return 0;
  if (count > 0) { /* without a context there is nothing to free */
    (void)hone_cuda_context(&context);
    forget_others(context);
  }
  while (count > 0) {
    const kept last = list[count - 1];
    remove(count - 1);
    bytes += last.c->used.device_bytes;
    destroy(last.c, last.context);
  }
  (void)pthread_mutex_unlock(&lock);
  return bytes;
}
