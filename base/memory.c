/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates memory and keeps the account of it; see memory.h. */
#define _GNU_SOURCE /* for madvise */
#include "base/memory.h"

#include "base/numbers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  ALIGNMENT = 64,
  HUGE_PAGE = 1 << 21,
  KEPT_LEAST = 1 << 22, /* bytes of a block that is kept, */
  KEPT_MOST = 1 << 29,
  KEPT_PART = 64 /* and at most this part of the machine's memory */
};

/* A header that lies directly below the memory handed out. */
typedef struct block_head {
  void *raw;     /* the pointer that the allocator returned; NULL: the arena */
  int64_t bytes; /* the size requested from the allocator */
} block_head;

/* ---- The block that the process keeps ------------------------------------ */

/* Nobody waits for the lock: who does not get it at once does without. */
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static char *kept; /* as hone_mem_get returned it */

static block_head head_of(const void *memory) {
  block_head head = {NULL, 0};
  if (memory != NULL)
    memcpy(&head, (const char *)memory - sizeof head, sizeof head);
  return head;
}

/* Takes the kept block if it has so many bytes; 0: whatever it has. */
static void *take_kept(int64_t bytes) {
  if (pthread_mutex_trylock(&keeping) != 0)
    return NULL;
  char *memory = kept;
  if (bytes == 0 || head_of(memory).bytes == bytes)
    kept = NULL;
  else
    memory = NULL;
  pthread_mutex_unlock(&keeping);
  return memory;
}

/* Keeps the block in place of the one before. */
static bool keep(const hone_mem *mem, void *memory) {
  const int64_t bytes = head_of(memory).bytes;
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (!mem->keeps || mem->alloc != NULL || mem->free != NULL ||
      bytes < KEPT_LEAST || bytes > KEPT_MOST ||
      bytes > pages / KEPT_PART * page || pthread_mutex_trylock(&keeping) != 0)
    return false;
  void *before = head_of(kept).raw;
  kept = memory;
  pthread_mutex_unlock(&keeping);
  free(before);
  return true;
}

int64_t hone_mem_kept(void) {
  void *memory = take_kept(0);
  const hone_mem mem = {.keeps = true};
  const int64_t bytes = head_of(memory).bytes;
  if (memory != NULL && !keep(&mem, memory))
    free(head_of(memory).raw);
  return bytes;
}

/* ---- Allocation ---------------------------------------------------------- */

static bool exceeds_limit(const hone_mem *mem, int64_t bytes) {
  return mem->limit > 0 && bytes > mem->limit - mem->held;
}

static void *refuse(hone_mem *mem, int64_t bytes, bool by_limit) {
  mem->refused_bytes = bytes;
  mem->refused_by_limit = by_limit;
  return NULL;
}

static void count(hone_mem *mem, int64_t bytes) {
  mem->held += bytes;
  mem->peak = HONE_MAX(mem->peak, mem->held);
}

static char *align_up(char *at, size_t align) {
  const uintptr_t here = (uintptr_t)at;
  return at + ((here + align - 1) / align * align - here);
}

/* Memory of the arena, or NULL. */
static char *take_from_arena(hone_mem *mem, size_t bytes) {
  if (mem->arena == NULL)
    return NULL;
  char *memory = align_up(mem->arena_at + sizeof(block_head), ALIGNMENT);
  if (memory > mem->arena_end || bytes > (size_t)(mem->arena_end - memory))
    return NULL;
  mem->arena_at = memory + bytes;
  return memory;
}

static void free_kept(hone_mem *mem) {
  free(head_of(take_kept(0)).raw);
  mem->left = false;
}

/* Where there is no memory, what the process keeps is given back first. */
static char *allocate(hone_mem *mem, size_t bytes) {
  if (mem->alloc != NULL)
    return mem->alloc(bytes, mem->ctx);
  char *raw = malloc(bytes);
  if (raw == NULL && mem->keeps) {
    free_kept(mem);
    raw = malloc(bytes);
  }
  return raw;
}

void *hone_mem_get(hone_mem *mem, size_t bytes) {
  /* Large blocks start on a huge page: a fresh factor of 64 MB then costs 32
     page faults instead of 16384. */
  size_t align = bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
  if (bytes > (size_t)INT64_MAX / 2)
    return refuse(mem, INT64_MAX, false);
  size_t total = bytes + align + sizeof(block_head);
  if (exceeds_limit(mem, (int64_t)total))
    return refuse(mem, mem->held + (int64_t)total, true);
  char *memory = mem->keeps && mem->alloc == NULL && total >= KEPT_LEAST
                     ? take_kept((int64_t)total)
                     : NULL;
  if (memory != NULL) {
    mem->left = false;
    count(mem, (int64_t)total);
    return memory;
  }
  if (mem->left && (total >= KEPT_LEAST || mem->limit > 0))
    free_kept(mem); /* it would be held beside */
  char *raw = NULL;
  memory = take_from_arena(mem, bytes);
  if (memory == NULL) {
    raw = allocate(mem, total);
    if (raw == NULL)
      return refuse(mem, (int64_t)total, false);
    memory = align_up(raw + sizeof(block_head), align);
  }
  block_head head = {raw, (int64_t)total};
  memcpy(memory - sizeof head, &head, sizeof head);
#ifdef MADV_HUGEPAGE
  if (align == HUGE_PAGE && mem->alloc == NULL) /* only a hint */
    (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  count(mem, head.bytes);
  return memory;
}

void hone_mem_put(hone_mem *mem, void *memory) {
  if (memory == NULL)
    return;
  const block_head head = head_of(memory);
  mem->held -= head.bytes;
  if (head.raw == NULL)
    return;
  if (keep(mem, memory)) {
    mem->left = true;
    return;
  }
  if (mem->free)
    mem->free(head.raw, mem->ctx);
  else
    free(head.raw);
}

int64_t hone_mem_size(const void *memory) { return head_of(memory).bytes; }

bool hone_mem_charge(hone_mem *mem, int64_t bytes) {
  if (exceeds_limit(mem, bytes))
    return refuse(mem, mem->held + bytes, true) != NULL;
  count(mem, bytes);
  return true;
}

/* ---- The arena ----------------------------------------------------------- */

enum { ARENA_MOST = 3 << 20 }; /* a complex system of order 256 by kernels */

/* The piece that is kept; its size comes first. */
static _Atomic(char *) kept_piece;

static int64_t size_of_piece(const char *piece) {
  int64_t size;
  memcpy(&size, piece, sizeof size);
  return size;
}

void hone_mem_open_arena(hone_mem *mem, int64_t bytes) {
  const int64_t size = bytes + ALIGNMENT;
  if (mem->alloc != NULL || size > ARENA_MOST || exceeds_limit(mem, size))
    return;
  char *piece = atomic_exchange(&kept_piece, NULL);
  if (piece != NULL && size_of_piece(piece) < size) {
    free(piece);
    piece = NULL;
  }
  if (piece == NULL) {
    piece = malloc((size_t)size);
    if (piece == NULL)
      return;
    memcpy(piece, &size, sizeof size);
  }
  mem->arena = piece;
  mem->arena_at = piece + sizeof size;
  mem->arena_end = piece + size_of_piece(piece);
}

void hone_mem_close_arena(hone_mem *mem) {
  char *none = NULL;
  if (mem->arena != NULL &&
      !atomic_compare_exchange_strong(&kept_piece, &none, mem->arena))
    free(mem->arena);
  mem->arena = mem->arena_at = mem->arena_end = NULL;
}

/* It is also called when the library is unloaded, or the process ends. */
__attribute__((destructor)) void hone_mem_release_kept(void) {
  free(atomic_exchange(&kept_piece, NULL));
  free(head_of(take_kept(0)).raw);
}
