/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device that the host cannot read: the caller's arrays may lie
   there. Small ones are copied here and back. Of a matrix the host has a copy,
   which comes while the device factors the original: its twin. */
#ifndef HONE_PLACE_H
#define HONE_PLACE_H

#include "api/base.h"

typedef struct hone_place {
  int ordinal;   /* of the device */
  void *context; /* that it was allocated in; NULL: in none */
} hone_place;

/* Is p memory of a device that the host cannot read? Makes no context, and
   loads no driver. */
bool hone_place_of(const void *p, hone_place *place);

/* rows rows of 'bytes' bytes, from_pitch and to_pitch bytes apart, from the
   device to the host or back. Waits. HONE_OK, HONE_NO_MEMORY or
   HONE_DEVICE_FAILED, as below. */
int hone_place_fetch(const hone_place *place, size_t bytes, size_t rows,
                     const void *from, size_t from_pitch, void *to,
                     size_t to_pitch);
int hone_place_store(const hone_place *place, size_t bytes, size_t rows,
                     const void *from, size_t from_pitch, void *to,
                     size_t to_pitch);

typedef enum hone_twin_state {
  HONE_TWIN_NONE,   /* the matrix is the host's, or there is none */
  HONE_TWIN_THERE,  /* nothing of it has been fetched */
  HONE_TWIN_COMING, /* threads are at it */
  HONE_TWIN_COPIED, /* the host has it */
  HONE_TWIN_FAILED  /* it could not be fetched */
} hone_twin_state;

enum { HONE_TWIN_SLOTS = 16 };
/* Tests: bytes of a slot, or a column where that is more. */
extern int64_t hone_twin_slot;

/* The caller's matrix on the device (original: borrowed, never written), and
   the copy of it that the host reads. Begins as zeros. Calls are the caller's
   thread's; NULL is a twin of no state. */
typedef struct hone_twin {
  hone_twin_state state;
  int64_t n, ld; /* ld: of the original; the copy's is n */
  const double *original;
  double *copy;
  hone_place place;
  bool native; /* the context that a CUDA engine works in reads the original
                  where it is */
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
  void *stream[HONE_TWIN_SLOTS];
  int64_t width, chunks, next; /* columns of a chunk; the next to be taken */
  int takers, status;
} hone_twin;

/* The matrix at 'original'; the one before is forgotten. HONE_OK: room for the
   copy is there, nothing is in it yet. */
int hone_twin_open(hone_twin *twin, hone_mem *mem, int64_t n,
                   const hone_place *place, const double *original, int64_t ld);
/* These columns now, before the others. */
int hone_twin_columns(hone_twin *twin, const int64_t *column, int count);
/* The pool's threads begin to fetch all of it, and do nothing else until
   hone_twin_await, which helps and waits; or hone_twin_stop, which gives it
   up. */
void hone_twin_start(hone_twin *twin, hone_pool *pool);
int hone_twin_await(hone_twin *twin, hone_pool *pool);
void hone_twin_stop(hone_twin *twin);
/* The matrix is the solver's no more: its copy is given back. */
void hone_twin_close(hone_twin *twin);
/* And all else that it holds. */
void hone_twin_destroy(hone_twin *twin);

#endif
