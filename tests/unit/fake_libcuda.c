/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver linked as libcuda.so.1, with the true names. Device memory is
   the array hone_there, which the host can touch too, and what cuMemAlloc
   returns, at which the host finds nothing: that memory is mapped at a second
   address, which only the driver's copies know. Copies on a stream of the
   library are made at once. hone_fake_queue queues one on a stream, and it is
   made when somebody waits for that stream, or for the device. */
#define _GNU_SOURCE /* memfd_create */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long pointer;

enum { BLOCKS = 256, QUEUED = 16, DEVICE = 2 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201 };

typedef struct copy { /* CUDA_MEMCPY2D */
  size_t from_x, from_y;
  int from_type;
  const void *from_host;
  pointer from_device;
  void *from_array;
  size_t from_pitch, to_x, to_y;
  int to_type;
  void *to_host;
  pointer to_device;
  void *to_array;
  size_t to_pitch, bytes, rows;
} copy;

/* Tests read and set these. */
double hone_there[64];
int hone_fake_devices = 1;               /* 0: cuInit fails */
size_t hone_fake_room = (size_t)1 << 40; /* bytes that can be allocated */
int hone_fake_live; /* allocations, contexts retained or current */
int hone_fake_device_waits, hone_fake_fetches; /* calls so far */
bool hone_fake_lazy; /* the driver's copies to the device wait in the default
                        stream */

int cuInit(unsigned flags);
int cuPointerGetAttributes(unsigned count, const int *which, void **data,
                           pointer p);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuMemcpy2DUnaligned_v2(const copy *c);
int cuMemcpy2DAsync_v2(const copy *c, void *stream);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuStreamDestroy_v2(void *stream);
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
int cuMemFreeHost(void *p);
int cuMemAlloc_v2(pointer *p, size_t bytes);
int cuMemFree_v2(pointer p);
int cuMemsetD8_v2(pointer p, unsigned char value, size_t bytes);
int hone_fake_queue(uintptr_t stream, pointer to, pointer from, size_t bytes);

/* Queued work -------------------------------------------------------------- */

typedef struct queued {
  uintptr_t stream;
  char *to, *from; /* from is freed, where it is not NULL */
  size_t bytes;
} queued;
static queued queue[QUEUED];

/* The work of a stream is done now; of all streams if it is 0. */
static void finish(uintptr_t stream) {
  for (int i = 0; i < QUEUED; i++)
    if (queue[i].from != NULL && (stream == 0 || queue[i].stream == stream)) {
      memcpy(queue[i].to, queue[i].from, queue[i].bytes);
      free(queue[i].from);
      queue[i].from = NULL;
    }
}

/* Memory ------------------------------------------------------------------- */

typedef struct block {
  char *at, *real;
  size_t bytes;
} block;
static block blocks[BLOCKS];

static const block *block_of(pointer p) {
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].at != NULL && p >= (uintptr_t)blocks[i].at &&
        p < (uintptr_t)blocks[i].at + blocks[i].bytes)
      return &blocks[i];
  return NULL;
}

static bool is_open(pointer p) {
  const uintptr_t from = (uintptr_t)hone_there;
  return p >= from && p < from + sizeof hone_there;
}

/* The address at which the host finds device memory; NULL: it is none. */
static char *real_of(pointer p) {
  const block *b = block_of(p);
  if (is_open(p))
    return (char *)(uintptr_t)p;
  return b == NULL ? NULL : b->real + (p - (uintptr_t)b->at);
}

int cuMemAlloc_v2(pointer *p, size_t bytes) {
  int i = 0;
  while (i < BLOCKS && blocks[i].at != NULL)
    i++;
  if (bytes == 0)
    return INVALID_VALUE;
  if (i == BLOCKS || bytes > hone_fake_room)
    return OUT_OF_MEMORY;
  const int file = memfd_create("device", 0);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
    abort();
  block *b = &blocks[i];
  b->bytes = bytes;
  b->real = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  b->at = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (b->at == MAP_FAILED || b->real == MAP_FAILED)
    abort();
  memset(b->real, 0x40, bytes); /* every double is about 32.5 */
  *p = (uintptr_t)b->at;
  hone_fake_live++;
  return 0;
}

int cuMemFree_v2(pointer p) {
  block *b = (block *)block_of(p);
  if (b == NULL || p != (uintptr_t)b->at)
    return INVALID_VALUE;
  for (int i = 0; i < QUEUED; i++) /* nobody will read what it brings */
    if (queue[i].to >= b->real && queue[i].to < b->real + b->bytes) {
      free(queue[i].from);
      queue[i] = (queued){.from = NULL};
    }
  munmap(b->at, b->bytes);
  munmap(b->real, b->bytes);
  *b = (block){.at = NULL};
  hone_fake_live--;
  return 0;
}

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  *p = malloc(bytes);
  return flags != 1;
}

int cuMemFreeHost(void *p) {
  free(p);
  return 0;
}

int cuPointerGetAttributes(unsigned count, const int *which, void **data,
                           pointer p) {
  const bool there = real_of(p) != NULL;
  const block *b = block_of(p);
  for (unsigned i = 0; i < count; i++)
    switch (which[i]) {
    case 1: /* CU_POINTER_ATTRIBUTE_CONTEXT */
      *(void **)data[i] = there ? hone_there : NULL;
      break;
    case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
      *(unsigned *)data[i] = there ? DEVICE : 0;
      break;
    case 8: /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
      *(unsigned *)data[i] = 0;
      break;
    case 9: /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
      *(int *)data[i] = 0;
      break;
    case 11: /* CU_POINTER_ATTRIBUTE_RANGE_START_ADDR */
      *(pointer *)data[i] = b != NULL ? (uintptr_t)b->at : 0;
      break;
    case 12: /* CU_POINTER_ATTRIBUTE_RANGE_SIZE */
      *(size_t *)data[i] = b != NULL ? b->bytes : 0;
      break;
    default:
      return INVALID_VALUE;
    }
  return 0;
}

/* Contexts ----------------------------------------------------------------- */

static _Thread_local int inside;

static void count_live(int change) {
  __atomic_add_fetch(&hone_fake_live, change, __ATOMIC_RELAXED);
}

int cuInit(unsigned flags) {
  return flags != 0 ? INVALID_VALUE : hone_fake_devices > 0 ? 0 : 100;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? 0 : INVALID_CONTEXT;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = device == 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = hone_there;
  count_live(device == 0);
  return device;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  count_live(-(device == 0));
  return device;
}

int cuCtxPushCurrent_v2(void *context) {
  if (context != hone_there)
    return INVALID_CONTEXT;
  inside++;
  count_live(1);
  return 0;
}

int cuCtxPopCurrent_v2(void **context) {
  if (inside == 0)
    return INVALID_CONTEXT;
  inside--;
  count_live(-1);
  *context = hone_there;
  return 0;
}

int cuCtxGetCurrent(void **context) {
  *context = inside > 0 ? hone_there : NULL;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  return context == hone_there ? 0 : INVALID_CONTEXT;
}

/* Streams ------------------------------------------------------------------ */

static int enqueue(uintptr_t stream, char *to, const char *from, size_t bytes) {
  int i = 0;
  while (i < QUEUED && queue[i].from != NULL)
    i++;
  if (i == QUEUED || to == NULL || from == NULL)
    return INVALID_VALUE;
  queue[i] = (queued){stream, to, malloc(bytes), bytes};
  memcpy(queue[i].from, from, bytes);
  return 0;
}

/* Queues a copy of what 'from', on the device, holds now. */
int hone_fake_queue(uintptr_t stream, pointer to, pointer from, size_t bytes) {
  return enqueue(stream, real_of(to), real_of(from), bytes);
}

int cuCtxSynchronize(void) {
  hone_fake_device_waits++;
  finish(0);
  return inside > 0 ? 0 : INVALID_CONTEXT;
}

int cuStreamSynchronize(void *stream) {
  if (stream == hone_there) /* of the library; its copies are made */
    return 0;
  finish(stream == NULL ? 1 : (uintptr_t)stream);
  return inside > 0 ? 0 : INVALID_CONTEXT;
}

int cuStreamCreate(void **stream, unsigned flags) {
  *stream = hone_there;
  return flags != 1;
}

int cuStreamDestroy_v2(void *stream) { return stream != hone_there; }

/* Copies ------------------------------------------------------------------- */

static int make(const copy *c, bool may_wait) {
  const char *from =
      c->from_type == DEVICE ? real_of(c->from_device) : c->from_host;
  char *to = c->to_type == DEVICE ? real_of(c->to_device) : c->to_host;
  if (from == NULL || to == NULL)
    return INVALID_VALUE;
  __atomic_add_fetch(&hone_fake_fetches,
                     c->from_type == DEVICE && c->to_type != DEVICE,
                     __ATOMIC_RELAXED);
  for (size_t i = 0; i < c->rows; i++) {
    char *row = to + i * c->to_pitch;
    const char *source = from + i * c->from_pitch;
    if (!may_wait || !hone_fake_lazy || c->to_type != DEVICE ||
        enqueue(1, row, source, c->bytes) != 0)
      memcpy(row, source, c->bytes);
  }
  return 0;
}

int cuMemcpy2DUnaligned_v2(const copy *c) {
  return inside > 0 ? make(c, true) : INVALID_CONTEXT;
}

int cuMemcpy2DAsync_v2(const copy *c, void *stream) {
  (void)stream;
  return make(c, false);
}

int cuMemsetD8_v2(pointer p, unsigned char value, size_t bytes) {
  char *to = real_of(p);
  if (to == NULL || inside == 0)
    return to == NULL ? INVALID_VALUE : INVALID_CONTEXT;
  memset(to, value, bytes);
  return 0;
}
