/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the caller in the memory of a device, which the host cannot read.
   Vectors are copied to the host and back. Of a matrix the host makes a copy
   when it first reads it; until then it may fetch single rows and columns. */
#ifndef HONE_DEVICE_MEMORY_H
#define HONE_DEVICE_MEMORY_H

#include "base/base.h"

typedef struct hone_device_memory {
  int ordinal;   /* the number of the device */
  void *context; /* the context of the allocation; NULL: it has none */
} hone_device_memory;

/* Returns false if no pointer of this process can be a device's, because no
   driver is loaded. */
bool hone_device_memory_exists(void);
/* Returns true, and fills place, if p points to memory of a device that the
   host cannot read. Creates no context and loads no driver. */
bool hone_device_memory_of(const void *p, hone_device_memory *place);

/* An allocation on a device; zeros: none. */
typedef struct hone_device_range {
  uintptr_t from, to;
  hone_device_memory place;
} hone_device_range;

/* Does so for many pointers, one after the other: the driver is not asked again
   where the last answer was for memory of the same allocation, which *known
   holds. The allocation stays meanwhile. */
bool hone_device_memory_in(hone_device_range *known, const void *p,
                           hone_device_memory *place);

/* Returns true if the memory belongs to the device's primary context, in which
   our kernels work. That context is not created for this. */
bool hone_device_memory_is_primary(const hone_device_memory *place);

/* Copy 'rows' rows of 'bytes' bytes, which lie from_pitch and to_pitch bytes
   apart, from the device to the host (fetch) or back (store), and wait until
   that is done. Like the functions below they return HONE_OK, HONE_NO_MEMORY or
   HONE_DEVICE_FAILED. */
int hone_device_memory_fetch(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch);
int hone_device_memory_store(const hone_device_memory *place, size_t bytes,
                             size_t rows, const void *from, size_t from_pitch,
                             void *to, size_t to_pitch);

typedef enum hone_host_copy_state {
  HONE_HOST_COPY_NONE,     /* A lies in host memory, or there is no A */
  HONE_HOST_COPY_PENDING,  /* no part has been fetched, or not all of it */
  HONE_HOST_COPY_ARRIVING, /* threads are fetching it */
  HONE_HOST_COPY_COMPLETE, /* the host has it */
  HONE_HOST_COPY_FAILED    /* it could not be fetched */
} hone_host_copy_state;

enum { HONE_HOST_COPY_SLOTS = 16 };

/* The caller's matrix on the device (original: borrowed, never written), and
   the copy of it that the host reads. Entries are doubles, or complex numbers
   of two. Begins as zeros. Calls are the caller's thread's; NULL counts as a
   copy without a matrix. */
typedef struct hone_host_copy {
  hone_host_copy_state state;
  int64_t n, ld; /* ld: of the original; the copy's is n */
  size_t entry;  /* bytes of an entry */
  const void *original;
  void *copy; /* n x n, and behind it a line: n entries */
  hone_device_memory place;
  bool native;  /* the context that a CUDA engine works in reads the original
                   where it is */
  int64_t slot; /* bytes of a slot, but at least a column; 0: the size that was
                   measured to be best. Set before open */
  int64_t fetched, stored; /* bytes so far, of this and other matrices, and of
                              whatever else the owner counts here */
  /* The members below belong to device_memory.c. */
  hone_mem *mem;
  hone_pool *pool;
  int64_t room;             /* bytes of copy */
  int slots_ordinal_plus_1; /* of the device whose primary context is retained
                               for the slots; 0: there are no slots */
  int device;               /* the driver's handle of that device */
  int slots, slots_now; /* one for each thread; those of the present fetch */
  char *pinned;         /* the pinned memory that holds the slots */
  size_t slot_bytes, pinned_bytes;
  void *stream[HONE_HOST_COPY_SLOTS];
  int64_t width, chunks,
      next;            /* columns of a chunk, chunks of A, the next chunk */
  int workers, status; /* threads that have begun the present fetch */
  bool line_taken;
} hone_host_copy;

/* Prepares to fetch the matrix at 'original', with entries of so many bytes,
   and forgets the one before. After HONE_OK the copy has memory but no contents
   yet. */
int hone_host_copy_open(hone_host_copy *host_copy, hone_mem *mem, int64_t n,
                        const hone_device_memory *place, const void *original,
                        int64_t ld, size_t entry);
/* Fetches these columns now, before the others. */
int hone_host_copy_columns(hone_host_copy *host_copy, const int64_t *column,
                           int count);
/* Can the host read all of A where it is now? */
bool hone_host_copy_serves(const hone_host_copy *host_copy);
/* Returns column i of A, or row i, fetched for this call without gaps; NULL if
   that fails. Any thread may call it while no other function does more than
   this: it waits until the thread that has the line gives it back. Only for an
   A that hone_host_copy_serves denies. */
const void *hone_host_copy_take_line(hone_host_copy *host_copy, bool row,
                                     int64_t i);
void hone_host_copy_give_line(hone_host_copy *host_copy);
/* Returns HONE_OK, or why A could not be fetched. */
int hone_host_copy_failure(const hone_host_copy *host_copy);
/* start lets the threads of the pool begin to fetch all of A; they do nothing
   else until await, which helps and waits, or stop, which abandons the copy. */
void hone_host_copy_start(hone_host_copy *host_copy, hone_pool *pool);
int hone_host_copy_await(hone_host_copy *host_copy, hone_pool *pool);
void hone_host_copy_stop(hone_host_copy *host_copy);
/* Frees the copy; A may no longer be used. */
void hone_host_copy_close(hone_host_copy *host_copy);
/* Frees everything that it holds, the slots too. */
void hone_host_copy_destroy(hone_host_copy *host_copy);

#endif
