/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device that the host cannot read: the caller's arrays may lie
   there. Small ones are copied here and back. Of a matrix the host has a copy,
   which comes while the device factors the original: its twin. */
#ifndef HONE_DEVICE_MEMORY_H
#define HONE_DEVICE_MEMORY_H

#include "base/base.h"

typedef struct hone_device_memory {
  int ordinal;   /* of the device */
  void *context; /* that it was allocated in; NULL: in none */
} hone_device_memory;

/* Is p memory of a device that the host cannot read? Makes no context, and
   loads no driver. */
bool hone_device_memory_of(const void *p, hone_device_memory *place);

/* rows rows of 'bytes' bytes, from_pitch and to_pitch bytes apart, from the
   device to the host or back. Waits. HONE_OK, HONE_NO_MEMORY or
   HONE_DEVICE_FAILED, as below. */
int hone_device_memory_fetch(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch);
int hone_device_memory_store(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch);

typedef enum hone_host_copy_state {
  HONE_HOST_COPY_NONE,     /* the matrix is the host's, or there is none */
  HONE_HOST_COPY_PENDING,  /* nothing of it has been fetched */
  HONE_HOST_COPY_ARRIVING, /* threads are at it */
  HONE_HOST_COPY_COMPLETE, /* the host has it */
  HONE_HOST_COPY_FAILED    /* it could not be fetched */
} hone_host_copy_state;

enum { HONE_HOST_COPY_SLOTS = 16 };

/* The caller's matrix on the device (original: borrowed, never written), and
   the copy of it that the host reads. Begins as zeros. Calls are the caller's
   thread's; NULL is a twin of no state. */
typedef struct hone_host_copy {
  hone_host_copy_state state;
  int64_t n, ld; /* ld: of the original; the copy's is n */
  const double *original;
  double *copy;
  hone_device_memory place;
  bool native;  /* the context that a CUDA engine works in reads the original
                   where it is */
  int64_t slot; /* bytes of a slot, or a column where that is more; 0: as was
                   measured to be best. Set before open */
  int64_t fetched, stored; /* bytes so far, of this and other matrices, and of
                              whatever else the owner counts here */
  /* What follows is place.c's. */
  hone_mem *mem;
  hone_pool *pool;
  int64_t room; /* bytes of copy */
  int slots_of; /* 1 + ordinal of the device whose own context is kept for the
                   slots; 0: there are none */
  int device;   /* the same, as the driver names it */
  int slots, slots_now; /* each for one thread; of this fetch */
  char *pinned;         /* that they are parts of */
  size_t slot_bytes, pinned_bytes;
  void *stream[HONE_HOST_COPY_SLOTS];
  int64_t width, chunks, next; /* columns of a chunk; the next to be taken */
  int takers, status;
} hone_host_copy;

/* The matrix at 'original'; the one before is forgotten. HONE_OK: room for the
   copy is there, nothing is in it yet. */
int hone_host_copy_open(hone_host_copy *host_copy, hone_mem *mem, int64_t n,
                        const hone_device_memory *place, const double *original,
                        int64_t ld);
/* These columns now, before the others. */
int hone_host_copy_columns(hone_host_copy *host_copy, const int64_t *column,
                           int count);
/* The pool's threads begin to fetch all of it, and do nothing else until
   hone_host_copy_await, which helps and waits; or hone_host_copy_stop, which
   gives it up. */
void hone_host_copy_start(hone_host_copy *host_copy, hone_pool *pool);
int hone_host_copy_await(hone_host_copy *host_copy, hone_pool *pool);
void hone_host_copy_stop(hone_host_copy *host_copy);
/* The matrix is the solver's no more: its copy is given back. */
void hone_host_copy_close(hone_host_copy *host_copy);
/* And all else that it holds. */
void hone_host_copy_destroy(hone_host_copy *host_copy);

#endif
