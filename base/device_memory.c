/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between the memory of a device and the host, by calls of the CUDA
   driver alone; see device_memory.h. A matrix is fetched through pinned
   buffers, the slots. Each thread has a slot and a stream: it claims the next
   columns that no other thread has claimed, waits until they are in its slot
   and copies them on, so that the bus stays busy while threads copy. If no
   memory can be pinned, or there is only one thread, the driver copies to the
   host's memory directly. */
#include "base/device_memory.h"

#include "base/cuda_driver.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
  UNSHARED = 16 << 20, /* bytes of one copy without slots */
  SHARED_FROM = 4,     /* slots are used if A fills so many */
  NON_BLOCKING = 1,    /* the stream does not wait for the default one */
  PORTABLE = 1         /* memory is pinned for all contexts */
};

static const int64_t SLOT = 1 << 20; /* bytes */

static int status_of(int result) {
  if (result == 0)
    return HONE_OK;
  return result == HONE_DRIVER_OUT_OF_MEMORY ? HONE_NO_MEMORY
                                             : HONE_DEVICE_FAILED;
}

/* Returns true if the host can read at p. The kernel reads it, in write(), so
   that a bad address only gives an error. */
static bool readable(const void *p) {
  int end[2];
  if (pipe(end) != 0)
    return true; /* this is not known; the host is assumed */
  const bool can = write(end[1], p, 1) == 1;
  close(end[0]);
  close(end[1]);
  return can;
}

/* No thread is inside the driver's query when the process is forked: a lock of
   the driver that is held then stays locked in the child, whose first call
   would wait for it for ever. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static void lock_query(void) { pthread_mutex_lock(&asking); }
static void unlock_query(void) { pthread_mutex_unlock(&asking); }
__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(lock_query, unlock_query, unlock_query);
}

bool hone_device_memory_exists(void) { return hone_driver_present() != NULL; }

/* The driver may fail because there is no device, or because a kernel crashed.
   Then p is taken for the host's memory if the host can read it. */
static bool ask(const hone_driver *driver, const void *p, unsigned attributes,
                hone_device_range *found) {
  static const int which[] = {HONE_DRIVER_TYPE,    HONE_DRIVER_MANAGED,
                              HONE_DRIVER_ORDINAL, HONE_DRIVER_CONTEXT,
                              HONE_DRIVER_FROM,    HONE_DRIVER_BYTES};
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  void *context = NULL;
  unsigned long long from = 0;
  size_t bytes = 0;
  void *values[] = {&type, &managed, &ordinal, &context, &from, &bytes};
  lock_query();
  const bool told =
      driver->attributes(attributes, which, values, (uintptr_t)p) == 0;
  unlock_query();
  *found =
      (hone_device_range){.place = {.ordinal = ordinal, .context = context}};
  if (!told)
    return !readable(p);
  found->from = (uintptr_t)from;
  found->to = (uintptr_t)from + bytes;
  return type == HONE_DRIVER_DEVICE && managed == 0;
}

bool hone_device_memory_of(const void *p, hone_device_memory *place) {
  const hone_driver *driver = p != NULL ? hone_driver_present() : NULL;
  hone_device_range found;
  if (driver == NULL)
    return false;
  const bool there = ask(driver, p, 4, &found);
  *place = found.place;
  return there;
}

bool hone_device_memory_in(hone_device_range *known, const void *p,
                           hone_device_memory *place) {
  const hone_driver *driver = p != NULL ? hone_driver_present() : NULL;
  const uintptr_t at = (uintptr_t)p;
  hone_device_range found;
  if (driver == NULL)
    return false;
  if (at >= known->from && at < known->to) {
    *place = known->place;
    return true;
  }
  const bool there = ask(driver, p, 6, &found);
  *place = found.place;
  if (there)
    *known = found;
  return there;
}

/* Contexts ----------------------------------------------------------------- */

typedef struct entered_context {
  const hone_driver *driver;
  int device;
  bool retained, relaxed; /* the primary context was; the mode is */
  int mode;               /* of captures: the caller's, then */
} entered_context;

static int enter_context(entered_context *in, const hone_device_memory *place) {
  void *context = place->context;
  *in = (entered_context){.driver = hone_driver_present(),
                          .mode = HONE_DRIVER_RELAXED};
  if (in->driver == NULL)
    return HONE_DEVICE_FAILED;
  int st = status_of(in->driver->device(&in->device, place->ordinal));
  if (st == HONE_OK && context == NULL) {
    st = status_of(in->driver->retain(&context, in->device));
    in->retained = st == HONE_OK;
  }
  if (st == HONE_OK)
    st = status_of(in->driver->push(context));
  if (st == HONE_OK)
    in->relaxed = hone_driver_exchange_capture_mode(in->driver, &in->mode);
  else if (in->retained)
    (void)in->driver->release(in->device);
  return st;
}

static void leave_context(entered_context *in) {
  void *context;
  if (in->relaxed)
    hone_driver_exchange_capture_mode(in->driver, &in->mode);
  (void)in->driver->pop(&context);
  if (in->retained)
    (void)in->driver->release(in->device);
}

/* Describes a copy from memory of from_type, device or host, to the other. */
static hone_driver_copy copy_of(unsigned from_type, size_t bytes, size_t rows,
                                const void *from, size_t from_pitch, void *to,
                                size_t to_pitch) {
  const bool fetch = from_type == HONE_DRIVER_DEVICE;
  return (hone_driver_copy){.from_type = from_type,
                            .from_host = fetch ? NULL : from,
                            .from_device = fetch ? (uintptr_t)from : 0,
                            .from_pitch = from_pitch,
                            .to_type =
                                fetch ? HONE_DRIVER_HOST : HONE_DRIVER_DEVICE,
                            .to_host = fetch ? to : NULL,
                            .to_device = fetch ? 0 : (uintptr_t)to,
                            .to_pitch = to_pitch,
                            .bytes = bytes,
                            .rows = rows};
}

/* The driver's copy from memory of the host that is not pinned may return when
   it has read it, before all of it has arrived: then the default stream, to
   which such copies belong, is waited for, since the caller's streams may not
   wait for it. */
static int copy_now(const hone_device_memory *place,
                    const hone_driver_copy *copy) {
  entered_context in;
  int st = enter_context(&in, place);
  if (st != HONE_OK)
    return st;
  st = status_of(in.driver->copy(copy));
  if (st == HONE_OK && copy->to_type == HONE_DRIVER_DEVICE)
    st = status_of(in.driver->stream_wait(NULL));
  leave_context(&in);
  return st;
}

int hone_device_memory_fetch(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch) {
  const hone_driver_copy copy =
      copy_of(HONE_DRIVER_DEVICE, bytes, rows, from, from_pitch, to, to_pitch);
  return copy_now(place, &copy);
}

int hone_device_memory_store(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch) {
  const hone_driver_copy copy =
      copy_of(HONE_DRIVER_HOST, bytes, rows, from, from_pitch, to, to_pitch);
  return copy_now(place, &copy);
}

/* Slots ------------------------------------------------------------------- */

static void release_slots(hone_host_copy *t) {
  const hone_driver *driver = hone_driver_present();
  const hone_device_memory place = {.ordinal = t->slots_ordinal_plus_1 - 1};
  entered_context in;
  if (t->slots_ordinal_plus_1 == 0)
    return;
  const bool entered = enter_context(&in, &place) == HONE_OK;
  for (int i = 0; i < HONE_HOST_COPY_SLOTS; i++)
    if (t->stream[i] != NULL)
      (void)driver->stream_destroy(t->stream[i]);
  if (t->pinned != NULL)
    (void)driver->unpin(t->pinned);
  if (entered)
    leave_context(&in);
  (void)driver->release(t->device);
  memset(t->stream, 0, sizeof t->stream);
  (void)hone_mem_charge(t->mem, -(int64_t)t->pinned_bytes);
  t->pinned = NULL;
  t->pinned_bytes = 0;
  t->slots_ordinal_plus_1 = t->slots = 0;
}

/* Reserves 'count' slots in the device's primary context, which is retained for
   them. If that fails there are no slots, and none are needed. */
static void reserve_slots(hone_host_copy *t, int count, size_t bytes) {
  void *context, *pinned = NULL;
  entered_context in;
  if (t->slots_ordinal_plus_1 == t->place.ordinal + 1 && t->slots >= count &&
      t->slot_bytes >= bytes)
    return;
  release_slots(t);
  const size_t all = (size_t)count * bytes;
  if (enter_context(&in, &t->place) != HONE_OK)
    return;
  if (in.driver->retain(&context, in.device) == 0) {
    t->slots_ordinal_plus_1 = t->place.ordinal + 1;
    t->device = in.device;
    if (hone_mem_charge(t->mem, (int64_t)all))
      t->pinned_bytes = all;
    if (t->pinned_bytes > 0 && in.driver->pin(&pinned, all, PORTABLE) == 0)
      t->pinned = pinned;
  }
  leave_context(&in);
  if (t->pinned == NULL) {
    release_slots(t);
    return;
  }
  t->slots = count;
  t->slot_bytes = bytes;
}

/* Fetching ----------------------------------------------------------------- */

static void note_failure(hone_host_copy *t, int st) {
  if (st != HONE_OK)
    __atomic_store_n(&t->status, st, __ATOMIC_RELAXED);
}

/* Returns the address of a_ij on the device. */
static const char *original_at(const hone_host_copy *t, int64_t i, int64_t j) {
  return (const char *)t->original + (size_t)(i + j * t->ld) * t->entry;
}

/* Returns the bytes of a column of the copy. */
static size_t column_bytes(const hone_host_copy *t) {
  return (size_t)t->n * t->entry;
}

/* Returns the address of column j of the copy; n: of the line behind it. */
static char *column_of_copy(const hone_host_copy *t, int64_t j) {
  return (char *)t->copy + (size_t)j * column_bytes(t);
}

/* Fetches columns j .. j+w-1 through a slot; slot < 0: without one. */
static int fetch_columns(hone_host_copy *t, const entered_context *in, int slot,
                         int64_t j, int64_t w) {
  const size_t column = column_bytes(t);
  char *to = column_of_copy(t, j);
  char *by = slot < 0 ? to : t->pinned + (size_t)slot * t->slot_bytes;
  const hone_driver_copy copy =
      copy_of(HONE_DRIVER_DEVICE, column, (size_t)w, original_at(t, 0, j),
              (size_t)t->ld * t->entry, by, column);
  if (slot < 0)
    return status_of(in->driver->copy(&copy));
  int st = status_of(in->driver->copy_async(&copy, t->stream[slot]));
  if (st == HONE_OK)
    st = status_of(in->driver->stream_wait(t->stream[slot]));
  if (st == HONE_OK)
    memcpy(to, by, (size_t)w * column);
  return st;
}

/* Fetches one chunk of columns after another until none is left. */
static void fetch_chunks(hone_host_copy *t, const entered_context *in,
                         int slot) {
  int st = HONE_OK;
  while (st == HONE_OK &&
         __atomic_load_n(&t->status, __ATOMIC_RELAXED) == HONE_OK) {
    const int64_t chunk = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
    const int64_t j = chunk * t->width;
    if (chunk >= t->chunks)
      return;
    st = fetch_columns(t, in, slot, j, HONE_MIN(t->width, t->n - j));
  }
  note_failure(t, st);
}

static void fetch_task(void *ctx, int64_t task) {
  hone_host_copy *t = ctx;
  entered_context in;
  (void)task;
  const int worker = __atomic_fetch_add(&t->workers, 1, __ATOMIC_RELAXED);
  const int slot = t->slots_now > 0 ? worker : -1;
  if (slot >= t->slots_now)
    return;
  int st = enter_context(&in, &t->place);
  note_failure(t, st);
  if (st != HONE_OK)
    return;
  if (slot >= 0 && t->stream[slot] == NULL) {
    void *stream = NULL;
    st = status_of(in.driver->stream_create(&stream, NON_BLOCKING));
    t->stream[slot] = st == HONE_OK ? stream : NULL;
  }
  note_failure(t, st);
  if (st == HONE_OK)
    fetch_chunks(t, &in, slot);
  leave_context(&in);
}

/* The copy ----------------------------------------------------------------- */

bool hone_device_memory_is_primary(const hone_device_memory *place) {
  const hone_driver *driver = hone_driver_present();
  void *own = NULL;
  unsigned flags = 0;
  int device = 0, active = 0;
  if (place->context == NULL)
    return true;
  if (driver->device(&device, place->ordinal) != 0 ||
      driver->state(device, &flags, &active) != 0 || !active ||
      driver->retain(&own, device) != 0)
    return false;
  (void)driver->release(device);
  return own == place->context;
}

/* Waits until what the caller has done to A in the default stream is complete:
   streams that read A do not wait for that one, and cudaMemcpy from pageable
   memory returns when the host's memory may be reused, not when A has arrived.
   A copy of one entry waits. */
static int await_original(hone_host_copy *t) {
  return hone_device_memory_fetch(&t->place, t->entry, 1, t->original, t->entry,
                                  t->copy, t->entry);
}

static int end_fetch(hone_host_copy *t, int st) {
  if (st != HONE_OK) {
    t->status = st;
    t->state = HONE_HOST_COPY_FAILED;
  }
  return st;
}

int hone_host_copy_open(hone_host_copy *t, hone_mem *mem, int64_t n,
                        const hone_device_memory *place, const void *original,
                        int64_t ld, size_t entry) {
  const int64_t bytes = n * (n + 1) * (int64_t)entry;
  t->mem = mem;
  t->state = HONE_HOST_COPY_NONE;
  if (t->room < bytes) {
    hone_host_copy_close(t);
    t->copy = hone_mem_get(mem, (size_t)bytes);
    if (t->copy == NULL)
      return HONE_NO_MEMORY;
    t->room = bytes;
  }
  t->n = n;
  t->ld = ld;
  t->entry = entry;
  t->original = original;
  t->place = *place;
  t->native = hone_device_memory_is_primary(place);
  t->status = HONE_OK;
  t->state = HONE_HOST_COPY_PENDING;
  return end_fetch(t, await_original(t));
}

int hone_host_copy_columns(hone_host_copy *t, const int64_t *column,
                           int count) {
  entered_context in;
  int st = enter_context(&in, &t->place);
  if (st != HONE_OK)
    return end_fetch(t, st);
  for (int i = 0; i < count && st == HONE_OK; i++)
    st = fetch_columns(t, &in, -1, column[i], 1);
  leave_context(&in);
  t->fetched += count * (int64_t)column_bytes(t);
  return end_fetch(t, st);
}

bool hone_host_copy_serves(const hone_host_copy *t) {
  return t == NULL || t->state == HONE_HOST_COPY_NONE ||
         t->state == HONE_HOST_COPY_COMPLETE;
}

int hone_host_copy_failure(const hone_host_copy *t) {
  return t != NULL && t->state == HONE_HOST_COPY_FAILED ? t->status : HONE_OK;
}

/* A row is fetched as n rows of one entry each. */
const void *hone_host_copy_take_line(hone_host_copy *t, bool row, int64_t i) {
  const size_t entry = t->entry, column = column_bytes(t);
  void *line = column_of_copy(t, t->n);
  int looks = 0;
  while (__atomic_exchange_n(&t->line_taken, true, __ATOMIC_ACQUIRE))
    hone_wait(&looks);
  int st = hone_host_copy_failure(t);
  if (st == HONE_OK)
    st = row ? hone_device_memory_fetch(&t->place, entry, (size_t)t->n,
                                        original_at(t, i, 0),
                                        (size_t)t->ld * entry, line, entry)
             : hone_device_memory_fetch(&t->place, column, 1,
                                        original_at(t, 0, i), column, line,
                                        column);
  t->fetched += (int64_t)column;
  if (end_fetch(t, st) == HONE_OK)
    return line;
  hone_host_copy_give_line(t);
  return NULL;
}

void hone_host_copy_give_line(hone_host_copy *t) {
  __atomic_store_n(&t->line_taken, false, __ATOMIC_RELEASE);
}

void hone_host_copy_start(hone_host_copy *t, hone_pool *pool) {
  if (t == NULL || t->state != HONE_HOST_COPY_PENDING)
    return;
  const int64_t column = (int64_t)column_bytes(t);
  const int64_t threads = hone_pool_threads(pool), all = t->n * column;
  const int64_t slot = t->slot > 0 ? t->slot : SLOT;
  const bool shared = threads > 1 && t->native && all >= SHARED_FROM * slot;
  int64_t bytes = HONE_MAX(slot / column, (int64_t)1) * column;
  t->slots_now = 0;
  if (shared) {
    reserve_slots(t, (int)HONE_MIN(threads, (int64_t)HONE_HOST_COPY_SLOTS),
                  (size_t)bytes);
    t->slots_now = t->slots;
  }
  if (t->slots_now == 0)
    bytes = HONE_MAX(UNSHARED / column, (int64_t)1) * column;
  t->width = bytes / column;
  t->chunks = (t->n + t->width - 1) / t->width;
  t->next = 0;
  t->workers = 0;
  t->status = HONE_OK;
  t->pool = t->slots_now > 0 ? pool : NULL;
  t->state = HONE_HOST_COPY_ARRIVING;
  if (t->pool != NULL)
    hone_pool_start(pool, threads, fetch_task, t);
}

int hone_host_copy_await(hone_host_copy *t, hone_pool *pool) {
  if (t == NULL)
    return HONE_OK;
  hone_host_copy_start(t, pool);
  if (t->state == HONE_HOST_COPY_ARRIVING) {
    fetch_task(t, 0);
    hone_pool_wait(t->pool);
    t->state = HONE_HOST_COPY_COMPLETE;
    if (end_fetch(t, t->status) == HONE_OK)
      t->fetched += t->n * (int64_t)column_bytes(t);
  }
  return t->state == HONE_HOST_COPY_FAILED ? t->status : HONE_OK;
}

void hone_host_copy_stop(hone_host_copy *t) {
  if (t == NULL || t->state != HONE_HOST_COPY_ARRIVING)
    return;
  note_failure(t, HONE_CANCELLED);
  hone_pool_wait(t->pool);
  t->state = HONE_HOST_COPY_PENDING;
}

void hone_host_copy_close(hone_host_copy *t) {
  hone_host_copy_stop(t);
  hone_mem_put(t->mem, t->copy);
  t->copy = NULL;
  t->room = 0;
  t->state = HONE_HOST_COPY_NONE;
}

void hone_host_copy_destroy(hone_host_copy *t) {
  if (t->mem == NULL)
    return;
  hone_host_copy_close(t);
  release_slots(t);
}
