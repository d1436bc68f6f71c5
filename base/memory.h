/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory allocation with an account: every solver counts the bytes that it
   holds, against a limit that the caller may set. */
#ifndef HONE_MEMORY_H
#define HONE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A source of memory, and the number of bytes taken from it. */
typedef struct hone_mem {
  void *(*alloc)(size_t bytes, void *ctx); /* NULL: malloc and free are used */
  void (*free)(void *memory, void *ctx);
  void *ctx;
  bool keeps;    /* with malloc: a large block that is freed may be kept, */
  bool left;     /* and the last one of this account was */
  int64_t limit; /* the most bytes it may hold; 0: no limit */
  int64_t held, peak; /* bytes held now, and the most ever held */
  /* The last refusal: the bytes that the allocator did not give, or those
     that would have been held, above the limit. 0: there was none. */
  int64_t refused_bytes;
  bool refused_by_limit;
  char *arena, *arena_at, *arena_end; /* see hone_mem_open_arena */
} hone_mem;

/* Returns 'bytes' bytes, aligned to 64 bytes, with undefined contents. Returns
   NULL when there is no memory or the limit forbids it. bytes = 0 gives a
   valid pointer. */
void *hone_mem_get(hone_mem *mem, size_t bytes);
/* Frees memory of hone_mem_get; NULL is allowed. */
void hone_mem_put(hone_mem *mem, void *memory);
/* Adds to the account memory that others allocate, for example pinned buffers;
   bytes < 0 takes it off again. Returns false, and counts nothing, when the
   sum would exceed the limit. */
bool hone_mem_charge(hone_mem *mem, int64_t bytes);

/* Where 'keeps' is set, the process keeps one block of those that were freed,
   of 4 to 512 MiB and at most a 64th of
   the memory of the machine, for the next request of the same size from malloc:
   the kernel clears memory that it hands out, which took a tenth of the time of
   a system of order 4000. Returns the bytes of the block that is kept. */
int64_t hone_mem_kept(void);

/* The bytes that memory of hone_mem_get takes in its account; NULL: none. */
int64_t hone_mem_size(const void *memory);

/* Lets hone_mem_get take memory from one piece of at least so many bytes, as
   far as it goes, until hone_mem_close_arena; by then all of it has been freed.
   The process keeps the piece for the next call, if it is small. malloc would
   give it back to the system after each call, and fetch it again. Does nothing
   where the caller allocates. */
void hone_mem_open_arena(hone_mem *mem, int64_t bytes);
void hone_mem_close_arena(hone_mem *mem);
/* Frees the block and the piece that are kept. */
void hone_mem_release_kept(void);

#endif
