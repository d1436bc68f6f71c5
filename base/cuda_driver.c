/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the CUDA driver if it is loaded in the process. Asking the dynamic
   loader takes long enough to show in the smallest solves, so that it is asked
   again only after another library has been loaded; the loader counts those. */
#define _GNU_SOURCE /* for dl_iterate_phdr */
#include "base/cuda_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static hone_driver driver;
static _Atomic bool found;
static _Atomic unsigned long long asked_at; /* libraries loaded then */

/* No thread counts the loader's libraries when the process is forked: its lock
   for that would stay locked in the child, whose first call would wait for it
   for ever. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static void lock_loader(void) { pthread_mutex_lock(&asking); }
static void unlock_loader(void) { pthread_mutex_unlock(&asking); }
__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(lock_loader, unlock_loader, unlock_loader);
}

/* Reads, from the first library visited, how many have been loaded so far. */
static int count_libraries(struct dl_phdr_info *info, size_t size, void *to) {
  const size_t with =
      offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds;
  unsigned long long adds = 0;
  if (size >= with)
    adds = info->dlpi_adds;
  memcpy(to, &adds, sizeof adds);
  return 1;
}

/* Looks a function up. memcpy is used because ISO C has no conversion from void
 * to a function pointer. */
static bool find(void *library, const char *name, void *call) {
  void *at = dlsym(library, name);
  memcpy(call, &at, sizeof at);
  return at != NULL;
}

static bool find_all(void *library, hone_driver *d) {
  (void)find(library, "cuThreadExchangeStreamCaptureMode",
             &d->exchange_capture_mode);
  return find(library, "cuPointerGetAttributes", &d->attributes) &&
         find(library, "cuDeviceGet", &d->device) &&
         find(library, "cuDevicePrimaryCtxGetState", &d->state) &&
         find(library, "cuDevicePrimaryCtxRetain", &d->retain) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", &d->release) &&
         find(library, "cuCtxPushCurrent_v2", &d->push) &&
         find(library, "cuCtxPopCurrent_v2", &d->pop) &&
         find(library, "cuCtxGetCurrent", &d->current) &&
         find(library, "cuCtxSetCurrent", &d->set_current) &&
         find(library, "cuMemcpy2DUnaligned_v2", &d->copy) &&
         find(library, "cuMemcpy2DAsync_v2", &d->copy_async) &&
         find(library, "cuStreamCreate", &d->stream_create) &&
         find(library, "cuStreamSynchronize", &d->stream_wait) &&
         find(library, "cuStreamDestroy_v2", &d->stream_destroy) &&
         find(library, "cuMemHostAlloc", &d->pin) &&
         find(library, "cuMemFreeHost", &d->unpin);
}

/* Looks for the driver, without the lock: a thread that loads a library has one
   of the loader's, and may call us from that library's constructor. (That lock
   is open again in a child. The one that guards the list of libraries is not.)
   Once found the driver stays: the handle is never closed. */
static void ask(unsigned long long libraries) {
  hone_driver there;
  memset(&there, 0, sizeof there);
  void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  const bool all = library != NULL && find_all(library, &there);
  if (library != NULL && !all)
    dlclose(library);
  lock_loader();
  if (all && !found) {
    driver = there;
    found = true;
  }
  asked_at = libraries;
  unlock_loader();
}

const hone_driver *hone_driver_present(void) {
  unsigned long long libraries = 0;
  if (!found) {
    lock_loader();
    dl_iterate_phdr(count_libraries, &libraries);
    unlock_loader();
    if (!found && (libraries == 0 || libraries != asked_at))
      ask(libraries); /* 0: it does not count */
  }
  return found ? &driver : NULL;
}
