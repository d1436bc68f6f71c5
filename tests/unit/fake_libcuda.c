/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver linked as libcuda.so.1, with the true names. It takes the array
   hone_there for device memory, and copies as the host does. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

double hone_there[64];

typedef struct copy { /* CUDA_MEMCPY2D */
  size_t from_x, from_y;
  int from_type;
  const void *from_host;
  unsigned long long from_device;
  void *from_array;
  size_t from_pitch, to_x, to_y;
  int to_type;
  void *to_host;
  unsigned long long to_device;
  void *to_array;
  size_t to_pitch, bytes, rows;
} copy;

int cuPointerGetAttributes(unsigned count, const int *which, void **data,
                           unsigned long long p);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuMemcpy2DUnaligned_v2(const copy *c);
int cuMemcpy2DAsync_v2(const copy *c, void *stream);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuStreamDestroy_v2(void *stream);
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
int cuMemFreeHost(void *p);

int cuPointerGetAttributes(unsigned count, const int *which, void **data,
                           unsigned long long p) {
  const uintptr_t from = (uintptr_t)hone_there;
  for (unsigned i = 0; i < count; i++)
    if (which[i] == 2) /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
      *(unsigned *)data[i] = p >= from && p < from + sizeof hone_there ? 2 : 0;
  return 0;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = device == 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = hone_there;
  return device;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device; }

int cuCtxPushCurrent_v2(void *context) { return context != hone_there; }

int cuCtxPopCurrent_v2(void **context) {
  *context = hone_there;
  return 0;
}

int cuMemcpy2DUnaligned_v2(const copy *c) {
  const char *from =
      c->from_type == 2 ? (char *)(uintptr_t)c->from_device : c->from_host;
  char *to = c->to_type == 2 ? (char *)(uintptr_t)c->to_device : c->to_host;
  for (size_t i = 0; i < c->rows; i++)
    memcpy(to + i * c->to_pitch, from + i * c->from_pitch, c->bytes);
  return 0;
}

int cuMemcpy2DAsync_v2(const copy *c, void *stream) {
  (void)stream;
  return cuMemcpy2DUnaligned_v2(c);
}

int cuStreamCreate(void **stream, unsigned flags) {
  *stream = hone_there;
  return flags != 1;
}

int cuStreamSynchronize(void *stream) { return stream != hone_there; }

int cuStreamDestroy_v2(void *stream) { return stream != hone_there; }

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  *p = malloc(bytes);
  return flags != 1;
}

int cuMemFreeHost(void *p) {
  free(p);
  return 0;
}
