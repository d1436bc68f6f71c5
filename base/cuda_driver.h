/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the CUDA driver that tell a device's memory from the host's
   and copy it. They are declared here, so that a library built without CUDA can
   call them too. The driver's functions of these names have kept their meaning
   since CUDA 7. */
#ifndef HONE_CUDA_DRIVER_H
#define HONE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* A copy of rows of bytes. The layout is that of CUDA_MEMCPY2D. */
typedef struct hone_driver_copy {
  size_t from_x, from_y;
  unsigned from_type; /* HONE_DRIVER_HOST, ... */
  const void *from_host;
  unsigned long long from_device;
  void *from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  unsigned to_type;
  void *to_host;
  unsigned long long to_device;
  void *to_array;
  size_t to_pitch;
  size_t bytes, rows;
} hone_driver_copy;

enum { HONE_DRIVER_HOST = 1, HONE_DRIVER_DEVICE = 2 }; /* types of memory */
enum { HONE_DRIVER_OUT_OF_MEMORY = 2 };                /* a result */
enum { HONE_DRIVER_RELAXED = 2 }; /* a capture mode: calls break no capture */

/* Attributes of a pointer. */
enum {
  HONE_DRIVER_CONTEXT = 1, /* void *; NULL: device memory without a context */
  HONE_DRIVER_TYPE = 2,    /* unsigned */
  HONE_DRIVER_MANAGED = 8, /* unsigned */
  HONE_DRIVER_ORDINAL = 9, /* int */
  HONE_DRIVER_FROM = 11, /* unsigned long long: where the allocation begins, */
  HONE_DRIVER_BYTES = 12 /* size_t: and how long it is */
};

/* Each function returns 0 or the driver's error number. */
typedef struct hone_driver {
  /* For memory that CUDA does not know it succeeds, and every value is 0. */
  int (*attributes)(unsigned count, const int *which, void **values,
                    unsigned long long pointer);
  int (*device)(int *device, int ordinal);
  /* state, retain and release act on the device's primary context. */
  int (*state)(int device, unsigned *flags, int *active);
  int (*retain)(void **context, int device);
  int (*release)(int device);
  int (*push)(void *context);
  int (*pop)(void **context);
  int (*current)(void **context); /* NULL: this thread has none */
  int (*set_current)(void *context);
  int (*copy)(const hone_driver_copy *copy);
  int (*copy_async)(const hone_driver_copy *copy, void *stream);
  int (*stream_create)(void **stream, unsigned flags);
  int (*stream_wait)(void *stream);
  int (*stream_destroy)(void *stream);
  int (*pin)(void **memory, size_t bytes, unsigned flags);
  int (*unpin)(void *memory);
  /* Exchanges *mode for this thread's, which says what its calls do to a graph
     that is captured. NULL where the driver is older than CUDA 10.1. */
  int (*exchange_capture_mode)(int *mode);
} hone_driver;

/* Exchanges the thread's mode for *mode. Returns false, and does nothing, where
   that cannot be done; driver may be NULL. */
static inline bool hone_driver_exchange_capture_mode(const hone_driver *driver,
                                                     int *mode) {
  return driver != NULL && driver->exchange_capture_mode != NULL &&
         driver->exchange_capture_mode(mode) == 0;
}

/* NULL where no driver is in the process, and so no memory of a device: it is
   not loaded for this. Tens of nanoseconds. */
const hone_driver *hone_driver_present(void);

#endif
