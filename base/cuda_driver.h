/* SPDX-License-Identifier: BSD-3-Clause */
/* The little that is asked of the CUDA driver itself, to know the device's
   memory from the host's and to copy it: by prototypes of our own, so that a
   library built without CUDA does it as well. The driver's calls by these
   names have kept their meaning since CUDA 7. */
#ifndef HONE_CUDA_DRIVER_H
#define HONE_CUDA_DRIVER_H

#include <stddef.h>

/* A copy of rows of bytes: CUDA_MEMCPY2D. */
typedef struct hone_driver_copy {
  size_t from_x, from_y;
  unsigned from_type; /* HONE_DRIVER_HOST, ... */
  const void *from_host;
  unsigned long long from_there;
  void *from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  unsigned to_type;
  void *to_host;
  unsigned long long to_there;
  void *to_array;
  size_t to_pitch;
  size_t bytes, rows;
} hone_driver_copy;

enum { HONE_DRIVER_HOST = 1, HONE_DRIVER_DEVICE = 2 }; /* types of memory */
enum { HONE_DRIVER_OUT_OF_MEMORY = 2 };                /* a result */

/* Attributes of a pointer. */
enum {
  HONE_DRIVER_CONTEXT = 1, /* void *; NULL: of the device, in no context */
  HONE_DRIVER_TYPE = 2,    /* unsigned */
  HONE_DRIVER_MANAGED = 8, /* unsigned */
  HONE_DRIVER_ORDINAL = 9  /* int */
};

/* Each returns 0, or says what failed. */
typedef struct hone_driver {
  /* Does not fail for memory that is none of CUDA's: all become 0. */
  int (*attributes)(unsigned count, const int *which, void **values,
                    unsigned long long pointer);
  int (*device)(int *device, int ordinal);
  int (*state)(int device, unsigned *flags, int *active); /* of the context */
  int (*retain)(void **context, int device); /* that is the device's own */
  int (*release)(int device);
  int (*push)(void *context);
  int (*pop)(void **context);
  int (*copy)(const hone_driver_copy *copy);
  int (*copy_async)(const hone_driver_copy *copy, void *stream);
  int (*stream_create)(void **stream, unsigned flags);
  int (*stream_wait)(void *stream);
  int (*stream_destroy)(void *stream);
  int (*pin)(void **memory, size_t bytes, unsigned flags);
  int (*unpin)(void *memory);
} hone_driver;

/* NULL where no driver is in the process, and so no memory of a device: it is
   not loaded for this. Tens of nanoseconds. */
const hone_driver *hone_driver_present(void);

#endif
