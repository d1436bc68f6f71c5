/* SPDX-License-Identifier: BSD-3-Clause */
/* What base/device_memory.h says, by the driver's calls alone. A matrix comes
   through pinned slots: each thread has one, and a stream, takes the next
   columns that nobody has taken, waits for them and moves them on, so that the
   bus is busy while threads copy. Where there is nothing to pin, or nobody to
   share the work with, the driver copies to the host's memory itself. */
#include "base/device_memory.h"

#include "base/cuda_driver.h"

#include <string.h>
#include <unistd.h>

enum {
  UNSHARED = 16 << 20, /* bytes at once without slots */
  SHARED_FROM = 4,     /* slots that A fills */
  NON_BLOCKING = 1,    /* a stream that does not wait for the default one */
  PORTABLE = 1         /* pinned for all contexts */
};

static const int64_t SLOT = 1 << 20; /* bytes */

static int status_of(int result) {
  if (result == 0)
    return HONE_OK;
  return result == HONE_DRIVER_OUT_OF_MEMORY ? HONE_NO_MEMORY
                                             : HONE_DEVICE_FAILED;
}

/* Can the host read at p? The kernel looks, so that nothing is hurt. */
static bool readable(const void *p) {
  int end[2];
  if (pipe(end) != 0)
    return true; /* as far as is known */
  const bool can = write(end[1], p, 1) == 1;
  close(end[0]);
  close(end[1]);
  return can;
}

/* A driver that fails, for there is no device or what ran on it broke, is no
   trouble of memory that is the host's. */
bool hone_device_memory_of(const void *p, hone_device_memory *place) {
  static const int which[] = {HONE_DRIVER_TYPE, HONE_DRIVER_MANAGED,
                              HONE_DRIVER_ORDINAL, HONE_DRIVER_CONTEXT};
  const hone_driver *driver = p != NULL ? hone_driver_present() : NULL;
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  void *context = NULL, *values[] = {&type, &managed, &ordinal, &context};
  if (driver == NULL)
    return false;
  const bool told = driver->attributes(4, which, values, (uintptr_t)p) == 0;
  *place = (hone_device_memory){.ordinal = ordinal, .context = context};
  return told ? type == HONE_DRIVER_DEVICE && managed == 0 : !readable(p);
}

/* In a context ------------------------------------------------------------- */

typedef struct visit {
  const hone_driver *driver;
  int device;
  bool retained; /* the device's own context */
} visit;

static int enter(visit *v, const hone_device_memory *place) {
  void *context = place->context;
  *v = (visit){.driver = hone_driver_present()};
  if (v->driver == NULL)
    return HONE_DEVICE_FAILED;
  int st = status_of(v->driver->device(&v->device, place->ordinal));
  if (st == HONE_OK && context == NULL) {
    st = status_of(v->driver->retain(&context, v->device));
    v->retained = st == HONE_OK;
  }
  if (st == HONE_OK)
    st = status_of(v->driver->push(context));
  if (st != HONE_OK && v->retained)
    (void)v->driver->release(v->device);
  return st;
}

static void leave(const visit *v) {
  void *context;
  (void)v->driver->pop(&context);
  if (v->retained)
    (void)v->driver->release(v->device);
}

/* from_type: the other side is the other's. */
static hone_driver_copy copy_of(unsigned from_type, size_t bytes, size_t rows,
                                const void *from, size_t from_pitch, void *to,
                                size_t to_pitch) {
  const bool fetch = from_type == HONE_DRIVER_DEVICE;
  return (hone_driver_copy){.from_type = from_type,
                            .from_host = fetch ? NULL : from,
                            .from_there = fetch ? (uintptr_t)from : 0,
                            .from_pitch = from_pitch,
                            .to_type =
                                fetch ? HONE_DRIVER_HOST : HONE_DRIVER_DEVICE,
                            .to_host = fetch ? to : NULL,
                            .to_there = fetch ? 0 : (uintptr_t)to,
                            .to_pitch = to_pitch,
                            .bytes = bytes,
                            .rows = rows};
}

static int copy_now(const hone_device_memory *place,
                    const hone_driver_copy *copy) {
  visit v;
  int st = enter(&v, place);
  if (st != HONE_OK)
    return st;
  st = status_of(v.driver->copy(copy));
  leave(&v);
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

static void give_slots_back(hone_host_copy *t) {
  const hone_driver *driver = hone_driver_present();
  const hone_device_memory place = {.ordinal = t->slots_of - 1};
  visit v;
  if (t->slots_of == 0)
    return;
  const bool inside = enter(&v, &place) == HONE_OK;
  for (int i = 0; i < HONE_HOST_COPY_SLOTS; i++)
    if (t->stream[i] != NULL)
      (void)driver->stream_destroy(t->stream[i]);
  if (t->pinned != NULL)
    (void)driver->unpin(t->pinned);
  if (inside)
    leave(&v);
  (void)driver->release(t->device);
  memset(t->stream, 0, sizeof t->stream);
  (void)hone_mem_charge(t->mem, -(int64_t)t->pinned_bytes);
  t->pinned = NULL;
  t->pinned_bytes = 0;
  t->slots_of = t->slots = 0;
}

/* count slots in the device's own context, which is kept for them. Where they
   cannot be had, it goes without. */
static void take_slots(hone_host_copy *t, int count, size_t bytes) {
  void *context, *pinned = NULL;
  visit v;
  if (t->slots_of == t->place.ordinal + 1 && t->slots >= count &&
      t->slot_bytes >= bytes)
    return;
  give_slots_back(t);
  const size_t all = (size_t)count * bytes;
  if (enter(&v, &t->place) != HONE_OK)
    return;
  if (v.driver->retain(&context, v.device) == 0) {
    t->slots_of = t->place.ordinal + 1;
    t->device = v.device;
    if (hone_mem_charge(t->mem, (int64_t)all))
      t->pinned_bytes = all;
    if (t->pinned_bytes > 0 && v.driver->pin(&pinned, all, PORTABLE) == 0)
      t->pinned = pinned;
  }
  leave(&v);
  if (t->pinned == NULL) {
    give_slots_back(t);
    return;
  }
  t->slots = count;
  t->slot_bytes = bytes;
}

/* Fetching ------------------------------------------------------------------
 */

static void fail(hone_host_copy *t, int st) {
  if (st != HONE_OK)
    __atomic_store_n(&t->status, st, __ATOMIC_RELAXED);
}

/* Columns j .. j+w-1 by way of this slot; slot < 0: of none. */
static int fetch_columns(hone_host_copy *t, const visit *v, int slot, int64_t j,
                         int64_t w) {
  const size_t column = (size_t)t->n * sizeof(double);
  double *to = t->copy + j * t->n;
  char *by = slot < 0 ? (char *)to : t->pinned + (size_t)slot * t->slot_bytes;
  const hone_driver_copy copy =
      copy_of(HONE_DRIVER_DEVICE, column, (size_t)w, t->original + j * t->ld,
              (size_t)t->ld * sizeof(double), by, column);
  if (slot < 0)
    return status_of(v->driver->copy(&copy));
  int st = status_of(v->driver->copy_async(&copy, t->stream[slot]));
  if (st == HONE_OK)
    st = status_of(v->driver->stream_wait(t->stream[slot]));
  if (st == HONE_OK)
    memcpy(to, by, (size_t)w * column);
  return st;
}

/* Chunk after chunk until none is left. */
static void fetch_chunks(hone_host_copy *t, const visit *v, int slot) {
  int st = HONE_OK;
  while (st == HONE_OK &&
         __atomic_load_n(&t->status, __ATOMIC_RELAXED) == HONE_OK) {
    const int64_t chunk = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
    const int64_t j = chunk * t->width;
    if (chunk >= t->chunks)
      return;
    st = fetch_columns(t, v, slot, j, HONE_MIN(t->width, t->n - j));
  }
  fail(t, st);
}

static void fetch_task(void *ctx, int64_t task) {
  hone_host_copy *t = ctx;
  visit v;
  (void)task;
  const int taker = __atomic_fetch_add(&t->takers, 1, __ATOMIC_RELAXED);
  const int slot = t->slots_now > 0 ? taker : -1;
  if (slot >= t->slots_now)
    return;
  int st = enter(&v, &t->place);
  fail(t, st);
  if (st != HONE_OK)
    return;
  if (slot >= 0 && t->stream[slot] == NULL)
    st = status_of(v.driver->stream_create(&t->stream[slot], NON_BLOCKING));
  fail(t, st);
  if (st == HONE_OK)
    fetch_chunks(t, &v, slot);
  leave(&v);
}

/* The twin ------------------------------------------------------------------
 */

/* Is the context of the pointer the device's own? It is not made for this. */
static bool is_native(const hone_device_memory *place) {
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

int hone_host_copy_open(hone_host_copy *t, hone_mem *mem, int64_t n,
                        const hone_device_memory *place, const double *original,
                        int64_t ld) {
  const int64_t bytes = n * n * (int64_t)sizeof(double);
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
  t->original = original;
  t->place = *place;
  t->native = is_native(place);
  t->status = HONE_OK;
  t->state = HONE_HOST_COPY_PENDING;
  return HONE_OK;
}

static int end_fetch(hone_host_copy *t, int st) {
  if (st != HONE_OK) {
    t->status = st;
    t->state = HONE_HOST_COPY_FAILED;
  }
  return st;
}

int hone_host_copy_columns(hone_host_copy *t, const int64_t *column,
                           int count) {
  visit v;
  int st = enter(&v, &t->place);
  if (st != HONE_OK)
    return end_fetch(t, st);
  for (int i = 0; i < count && st == HONE_OK; i++)
    st = fetch_columns(t, &v, -1, column[i], 1);
  leave(&v);
  return end_fetch(t, st);
}

void hone_host_copy_start(hone_host_copy *t, hone_pool *pool) {
  if (t == NULL || t->state != HONE_HOST_COPY_PENDING)
    return;
  const int64_t column = t->n * (int64_t)sizeof(double);
  const int64_t threads = hone_pool_threads(pool), all = t->n * column;
  const int64_t slot = t->slot > 0 ? t->slot : SLOT;
  const bool shared = threads > 1 && t->native && all >= SHARED_FROM * slot;
  int64_t bytes = HONE_MAX(slot / column, (int64_t)1) * column;
  t->slots_now = 0;
  if (shared) {
    take_slots(t, (int)HONE_MIN(threads, (int64_t)HONE_HOST_COPY_SLOTS),
               (size_t)bytes);
    t->slots_now = t->slots;
  }
  if (t->slots_now == 0)
    bytes = HONE_MAX(UNSHARED / column, (int64_t)1) * column;
  t->width = bytes / column;
  t->chunks = (t->n + t->width - 1) / t->width;
  t->next = 0;
  t->takers = 0;
  t->status = HONE_OK;
  t->pool = t->slots_now > 0 ? pool : NULL;
  t->state = HONE_HOST_COPY_ARRIVING;
  if (t->pool != NULL)
    hone_pool_start(pool, fetch_task, t);
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
      t->fetched += t->n * t->n * (int64_t)sizeof(double);
  }
  return t->state == HONE_HOST_COPY_FAILED ? t->status : HONE_OK;
}

void hone_host_copy_stop(hone_host_copy *t) {
  if (t == NULL || t->state != HONE_HOST_COPY_ARRIVING)
    return;
  fail(t, HONE_CANCELLED);
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
  give_slots_back(t);
}
