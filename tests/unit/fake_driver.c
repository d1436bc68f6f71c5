/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "tests/unit/fake_driver.h"

#include "tests/unit/wrapped.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 32, FAILURE = 999, NO_VALUE = 1, ALIGNMENT = 4096 };

fake_driver fake;
char fake_own;
__thread void *fake_current;
__thread int fake_capture_mode;
__thread int64_t fake_set;

typedef struct block {
  char *at, *real;
  size_t bytes;
} block;
static block blocks[BLOCKS];

static const block *block_of(const void *p) {
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].at != NULL && (const char *)p >= blocks[i].at &&
        (const char *)p < blocks[i].at + blocks[i].bytes)
      return &blocks[i];
  return NULL;
}

void *fake_real(const void *p) {
  const block *b = block_of(p);
  return b ? b->real + ((const char *)p - b->at) : NULL;
}

void *fake_alloc(size_t bytes, bool open) {
  const int file = memfd_create("device", 0);
  for (int i = 0; i < BLOCKS; i++) {
    if (blocks[i].at != NULL)
      continue;
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
      abort();
    blocks[i].bytes = bytes;
    blocks[i].real =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    blocks[i].at =
        mmap(NULL, bytes, open ? PROT_READ : PROT_NONE, MAP_SHARED, file, 0);
    close(file);
    if (blocks[i].at == MAP_FAILED || blocks[i].real == MAP_FAILED)
      abort();
    memset(blocks[i].real, 0xff, bytes);
    return blocks[i].at;
  }
  abort();
}

void fake_free(void *p) {
  block *b = (block *)block_of(p);
  if (b == NULL)
    abort();
  munmap(b->at, b->bytes);
  munmap(b->real, b->bytes);
  *b = (block){.at = NULL};
}

/* Calls -------------------------------------------------------------------- */

static _Thread_local int inside;

static void count_live(int change) {
  __atomic_add_fetch(&fake.live, change, __ATOMIC_RELAXED);
}

static int step(void) {
  __atomic_add_fetch(&fake.calls, 1, __ATOMIC_RELAXED);
  return wrapped_reaches(&fake.fail_at) ? fake.failure : 0;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void take_time(void) {
  if (fake.asking == 0)
    return;
  pthread_mutex_lock(&gate);
  usleep(fake.asking);
  pthread_mutex_unlock(&gate);
}

static int attributes(unsigned count, const int *which, void **values,
                      unsigned long long pointer) {
  take_time();
  const block *b = block_of((const void *)(uintptr_t)pointer);
  const bool there = b != NULL;
  const int failed = step();
  fake.questions++;
  for (unsigned i = 0; failed == 0 && i < count; i++)
    switch (which[i]) {
    case HONE_DRIVER_CONTEXT:
      *(void **)values[i] = there ? fake.context : NULL;
      break;
    case HONE_DRIVER_TYPE:
      *(unsigned *)values[i] = there ? HONE_DRIVER_DEVICE : 0;
      break;
    case HONE_DRIVER_MANAGED:
      *(unsigned *)values[i] = 0;
      break;
    case HONE_DRIVER_FROM:
      *(unsigned long long *)values[i] = there ? (uintptr_t)b->at : 0;
      break;
    case HONE_DRIVER_BYTES:
      *(size_t *)values[i] = there ? b->bytes : 0;
      break;
    default:
      *(int *)values[i] = there ? fake.ordinal : 0;
    }
  return failed;
}

static int device(int *out, int ordinal) {
  const int failed = step();
  *out = ordinal + 100;
  return ordinal == fake.ordinal ? failed : NO_VALUE;
}

static int state(int which, unsigned *flags, int *active) {
  *flags = 0;
  *active = !fake.inactive;
  return which == fake.ordinal + 100 ? step() : NO_VALUE;
}

static int retain(void **context, int which) {
  const int failed = step();
  if (failed != 0 || which != fake.ordinal + 100)
    return failed != 0 ? failed : NO_VALUE;
  *context = &fake_own;
  count_live(1);
  return 0;
}

static int release(int which) {
  count_live(-1);
  return which == fake.ordinal + 100 ? step() : NO_VALUE;
}

static int push(void *context) {
  const int failed = step();
  if (failed != 0 || (context != &fake_own && context != fake.context))
    return failed != 0 ? failed : NO_VALUE;
  inside++;
  count_live(1);
  return 0;
}

static int pop(void **context) {
  *context = NULL;
  if (inside == 0)
    return NO_VALUE;
  inside--;
  count_live(-1);
  return step();
}

/* These two, and exchange_capture_mode, do not count as calls, and do not fail.
 */
static int current(void **context) {
  *context = fake_current;
  return 0;
}

static int set_current(void *context) {
  fake_current = context;
  fake_set++;
  return 0;
}

static int exchange_capture_mode(int *mode) {
  const int before = fake_capture_mode;
  fake_capture_mode = *mode;
  *mode = before;
  return 0;
}

/* The memory at one end of a copy; NULL if it is not of the type that the
   caller claims. */
static char *side(unsigned type, const void *host, unsigned long long there) {
  if (type == HONE_DRIVER_DEVICE)
    return fake_real((const void *)(uintptr_t)there);
  return type == HONE_DRIVER_HOST && fake_real(host) == NULL ? (char *)host
                                                             : NULL;
}

static int make(const hone_driver_copy *c) {
  if (fake.over)
    __atomic_add_fetch(&fake.late, 1, __ATOMIC_RELAXED);
  const char *from = side(c->from_type, c->from_host, c->from_device);
  char *to = side(c->to_type, c->to_host, c->to_device);
  if (from == NULL || to == NULL || c->from_pitch < c->bytes ||
      c->to_pitch < c->bytes)
    return NO_VALUE;
  for (size_t i = 0; i < c->rows; i++)
    memcpy(to + i * c->to_pitch, from + i * c->from_pitch, c->bytes);
  if (c->from_type == HONE_DRIVER_DEVICE)
    __atomic_add_fetch(&fake.fetched, (int64_t)(c->bytes * c->rows),
                       __ATOMIC_RELAXED);
  return 0;
}

/* Copies of the default stream that have been read and have not arrived, the
   earliest first; each has its own copy of the bytes. */
static struct {
  hone_driver_copy copy;
  void *bytes;
} on_their_way[BLOCKS];
static int on_their_way_count;
static pthread_mutex_t way = PTHREAD_MUTEX_INITIALIZER;

/* With 'failed' they are lost. */
static int arrive(int failed) {
  for (int i = 0; i < on_their_way_count; i++) {
    failed = failed != 0 ? failed : make(&on_their_way[i].copy);
    free(on_their_way[i].bytes);
  }
  on_their_way_count = 0;
  return failed;
}

static void send(const hone_driver_copy *c) {
  char *bytes = malloc(c->bytes * c->rows + 1);
  if (bytes == NULL)
    abort();
  for (size_t i = 0; i < c->rows; i++)
    memcpy(bytes + i * c->bytes, (const char *)c->from_host + i * c->from_pitch,
           c->bytes);
  on_their_way[on_their_way_count].copy = *c;
  on_their_way[on_their_way_count].copy.from_host = bytes;
  on_their_way[on_their_way_count].copy.from_pitch = c->bytes;
  on_their_way[on_their_way_count++].bytes = bytes;
}

static int copy(const hone_driver_copy *c) {
  int failed = step();
  if (failed != 0 || inside == 0)
    return failed != 0 ? failed : NO_VALUE;
  pthread_mutex_lock(&way);
  failed = arrive(0);
  const bool sends =
      c->to_type == HONE_DRIVER_DEVICE && c->from_type == HONE_DRIVER_HOST &&
      c->from_pitch >= c->bytes && fake_real(c->from_host) == NULL;
  if (failed == 0 && sends)
    send(c);
  else if (failed == 0)
    failed = make(c);
  pthread_mutex_unlock(&way);
  return failed;
}

typedef struct stream {
  hone_driver_copy waiting;
  bool any;
} stream;

static int copy_async(const hone_driver_copy *c, void *on) {
  stream *s = on;
  const int failed = step();
  if (failed != 0 || inside == 0 || s == NULL || s->any)
    return failed != 0 ? failed : NO_VALUE;
  s->waiting = *c;
  s->any = true;
  return 0;
}

static int stream_create(void **out, unsigned flags) {
  const int failed = step();
  if (failed != 0 || inside == 0 || flags != 1)
    return failed != 0 ? failed : NO_VALUE;
  *out = calloc(1, sizeof(stream));
  count_live(1);
  return 0;
}

static int stream_wait(void *on) {
  stream *s = on;
  const int failed = step();
  if (s == NULL) {
    pthread_mutex_lock(&way);
    const int arrived = arrive(failed);
    pthread_mutex_unlock(&way);
    return arrived;
  }
  const bool any = s->any;
  s->any = false;
  if (fake.slow > 0)
    usleep(fake.slow);
  return failed == 0 && any ? make(&s->waiting) : failed;
}

static int stream_destroy(void *on) {
  free(on);
  count_live(-1);
  return step();
}

static int pin(void **memory, size_t bytes, unsigned flags) {
  const int failed = step();
  if (failed != 0 || inside == 0 || flags != 1)
    return failed != 0 ? failed : NO_VALUE;
  *memory =
      aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  memset(*memory, 0xff, bytes);
  count_live(1);
  return 0;
}

static int unpin(void *memory) {
  free(memory);
  count_live(-1);
  return step();
}

static const hone_driver table = {attributes,
                                  device,
                                  state,
                                  retain,
                                  release,
                                  push,
                                  pop,
                                  current,
                                  set_current,
                                  copy,
                                  copy_async,
                                  stream_create,
                                  stream_wait,
                                  stream_destroy,
                                  pin,
                                  unpin,
                                  exchange_capture_mode};

void fake_begin(void) {
  fake = (fake_driver){.failure = FAILURE, .context = &fake_own};
  wrapped_driver = &table;
}

void fake_end(void) { wrapped_driver = NULL; }
